"""How well, how fast and at what size the retrievers search: ``python -m benchmarks.retrieval
--beir FOLDER --corpus FILE``.

Every measurement runs in a process of its own, so that its peak memory is its own. What each column
means: ``README.md`` beside this file. Needs Linux.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import platform
import random
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

# Nothing heavy is imported up here: every process starts with this file.

DEPTH = 10
PLAIN = {"bioasq": (0.662, 0.585), "liveqa_medquad": (0.356, 0.478)}
"""nDCG@10 and recall@10 of BM25 (k1 1.2, b 0.75) with every word kept, no stemming: what ours must
not fall below."""
MIB = 2**20
WORDS_CHANGED, WORDS_NEW = 0.1, 0.005
"""Of a repeated passage's words, the shares that become another passage's word, and a word that no
passage has yet."""

Judged = dict[str, dict[str, int]]


# -- measures
# --------------------------------------------------------------------------------------------------


def ndcg(ranked: Sequence[str], judged: Mapping[str, int], depth: int = DEPTH) -> float:
    """Normalised discounted cumulative gain, in [0, 1]: 2^score - 1 by log2(rank + 1). A score
    above 0 must be there."""

    def gained(scores: Sequence[int]) -> float:
        return sum(
            (2**score - 1) / math.log2(rank + 1)
            for rank, score in enumerate(scores[:depth], 1)
        )

    return gained([judged.get(i, 0) for i in ranked]) / gained(
        sorted(judged.values(), reverse=True)
    )


def recall(
    ranked: Sequence[str], judged: Mapping[str, int], depth: int = DEPTH
) -> float:
    """Share of the ids with a score above 0 that are among the first ``depth``, in [0, 1]."""
    wanted = {i for i, score in judged.items() if score > 0}
    return len(wanted & set(ranked[:depth])) / len(wanted)


# -- data
# --------------------------------------------------------------------------------------------------


def json_lines(file: Path) -> Iterator[dict[str, Any]]:
    with (
        gzip.open(file, "rt", encoding="utf-8")
        if file.suffix == ".gz"
        else file.open(encoding="utf-8")
    ) as stream:
        yield from map(json.loads, stream)


def either(folder: Path, name: str) -> Path:
    return next(
        f
        for f in (folder / f"{name}.jsonl.gz", folder / f"{name}.jsonl")
        if f.is_file()
    )


def beir(folder: Path, scratch: Path) -> tuple[Path, dict[str, str], Judged]:
    """A folder in BEIR's layout: its corpus as snippets (a file in ``scratch``), its queries, and
    their judgements.

    Kept are the queries with at least one score above 0.
    """
    corpus = scratch / f"{folder.name}.jsonl"
    with corpus.open("w", encoding="utf-8") as out:
        for row in json_lines(either(folder, "corpus")):
            out.write(
                json.dumps(
                    {"id": row["_id"], "title": row["title"], "content": row["text"]}
                )
                + "\n"
            )
    judged: Judged = defaultdict(dict)
    for line in (
        (folder / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()[1:]
    ):
        query, passage, score = line.split("\t")
        judged[query][passage] = int(score)
    judged = {
        query: scores for query, scores in judged.items() if max(scores.values()) > 0
    }
    queries = {
        row["_id"]: row["text"]
        for row in json_lines(either(folder, "queries"))
        if row["_id"] in judged
    }
    return corpus, queries, judged


def grown(corpora: Sequence[Path], n: int, out: Path) -> None:
    """Writes ``n`` passages: the real ones, then copies with some words exchanged, so that the
    vocabulary grows too."""
    rng = random.Random(0)
    rows = [row for file in corpora for row in json_lines(file)]
    words = re.findall(
        r"\w+",
        " ".join(row["content"] for row in rng.sample(rows, min(len(rows), 20_000))),
    )

    def other(match: re.Match[str]) -> str:
        chance = rng.random()
        if chance < WORDS_NEW:
            return f"{match.group()}{rng.randrange(10_000)}"
        return (
            rng.choice(words) if chance < WORDS_NEW + WORDS_CHANGED else match.group()
        )

    with out.open("w", encoding="utf-8") as stream:
        for i in range(n):
            row, again = rows[i % len(rows)], i // len(rows)
            content = re.sub(r"\w+", other, row["content"]) if again else row["content"]
            snippet = {
                "id": f"{row['id']}-{again}",
                "title": row["title"],
                "content": content,
            }
            stream.write(json.dumps(snippet, ensure_ascii=False) + "\n")


# -- measurements, each in a process of its own
# ---------------------------------------------------------------------


def alone(task: Callable[..., Any], *given: Any) -> Any:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(task, *given).result()


def memory(field: str) -> float:
    """MiB of this process: ``VmHWM`` the most it has held, ``RssFile`` what it now holds of mapped
    files."""
    status = Path("/proc/self/status").read_text()
    (found,) = re.findall(rf"^{field}:\s+(\d+) kB", status, re.MULTILINE)
    return int(found) / 1024


def opened(kind: str, corpora: Sequence[Path], scratch: Path) -> Any:
    """A retriever of a kind, whatever the number of passages; an index is kept in ``scratch``."""
    from trustlab.retrieval import BM25
    from trustlab.retrieval.corpora import corpus_files, load_corpus
    from trustlab.retrieval.disk_index import open_index

    if kind == "rank_bm25":
        return BM25(load_corpus(corpora))
    return open_index(corpus_files(corpora), scratch)


def quality(
    kind: str, corpus: Path, scratch: Path, queries: dict[str, str], judged: Judged
) -> tuple[float, float, float]:
    """Mean nDCG@10, mean recall@10, and queries a second."""
    retriever = opened(kind, [corpus], scratch)
    began = time.perf_counter()
    ranked = {
        query: [p.id for p in retriever.search(text, DEPTH)]
        for query, text in queries.items()
    }
    per_s = len(queries) / (time.perf_counter() - began)
    means = [
        sum(measure(ranked[q], judged[q]) for q in queries) / len(queries)
        for measure in (ndcg, recall)
    ]
    return means[0], means[1], per_s


def opening(kind: str, corpora: Sequence[Path], scratch: Path) -> dict[str, float]:
    """Opens (and for bm25s at first makes) a retriever: seconds without imports, peak MiB, bytes of
    all indexes."""
    from trustlab.retrieval import terms

    terms("so that no import is timed")
    __import__({"bm25s": "bm25s", "rank_bm25": "rank_bm25"}[kind])
    began = time.perf_counter()
    opened(kind, corpora, scratch)
    size = sum(file.stat().st_size for file in scratch.rglob("*") if file.is_file())
    return {
        "seconds": time.perf_counter() - began,
        "peak": memory("VmHWM"),
        "bytes": size,
    }


def searching(
    kind: str, corpora: Sequence[Path], scratch: Path, queries: Sequence[str], warm: int
) -> dict[str, float]:
    """Queries a second for the 15 best, after ``warm`` queries; seconds to open; peak MiB and
    mapped files among it."""
    from trustlab.retrieval import terms

    terms("so that no import is timed")
    __import__({"bm25s": "bm25s", "rank_bm25": "rank_bm25"}[kind])
    before = memory("VmHWM")
    began = time.perf_counter()
    retriever = opened(kind, corpora, scratch)
    opening_s = time.perf_counter() - began
    for query in queries[:warm]:
        retriever.search(query)
    began = time.perf_counter()
    for query in queries:
        retriever.search(query)
    per_s = len(queries) / (time.perf_counter() - began)
    return {
        "open": opening_s,
        "per_s": per_s,
        "peak": memory("VmHWM"),
        "mapped": memory("RssFile"),
        "imports": before,
    }


# -- report
# --------------------------------------------------------------------------------------------------


def judge(folders: Sequence[Path], scratch: Path) -> list[str]:
    """Quality on every set by both retrievers; the queries' texts."""
    texts: list[str] = []
    print(
        f"{'quality':<18}{'queries':>8} "
        f" {'retriever':<12}{'nDCG@10':>9}{'recall@10':>11}{'queries/s':>11}"
    )
    for folder in folders:
        corpus, queries, judged = beir(folder, scratch)
        texts += queries.values()
        for kind in ("rank_bm25", "bm25s"):
            gain, found, per_s = alone(
                quality, kind, corpus, scratch / "judged", queries, judged
            )
            print(
                f"{folder.name:<18}{len(queries):>8,} "
                f" {kind:<12}{gain:>9.3f}{found:>11.3f}{per_s:>11,.0f}",
                flush=True,
            )
        if folder.name in PLAIN:
            gain, found = PLAIN[folder.name]
            print(f"{'':<28}{'all words':<12}{gain:>9.3f}{found:>11.3f}")
    return texts


def sets_of_queries(questions: Sequence[str]) -> dict[str, list[str]]:
    """Names of conditions, as MedConf asks, and questions where there are some."""
    from trustlab.knowledge.findings import load_knowledge

    names = [condition.name for condition in load_knowledge().conditions.values()]
    return {"condition names": names} | (
        {"questions": list(questions)[:500]} if questions else {}
    )


def speed(
    corpora: Sequence[Path], scratch: Path, asked: Mapping[str, list[str]], few: int
) -> None:
    print(
        f"\n{'speed':<12}{'queries':<18}{'asked':>6}{'open, s':>9}{'queries/s':>11}"
        f"{'peak MiB':>10}{'mapped MiB':>12}"
    )
    alone(opening, "bm25s", corpora, scratch)
    for kind in ("rank_bm25", "bm25s"):
        for name, queries in asked.items():
            queries = queries[:few] if kind == "rank_bm25" else queries
            got = alone(
                searching,
                kind,
                corpora,
                scratch,
                queries,
                0 if kind == "rank_bm25" else len(queries),
            )
            speeds = f"{got['open']:>9.2f}{got['per_s']:>11,.1f}"
            memory = f"{got['peak']:>10,.0f}{got['mapped']:>12,.0f}"
            print(f"{kind:<12}{name:<18}{len(queries):>6}{speeds}{memory}", flush=True)
    print(f"a process that has only imported what it needs: {got['imports']:,.0f} MiB")


def growth(
    corpora: Sequence[Path],
    sizes: Sequence[int],
    scratch: Path,
    asked: Mapping[str, list[str]],
) -> None:
    columns = "".join(f"{name + '/s':>20}" for name in asked)
    print(
        f"\n{'growth (bm25s)':<15}{'corpus MiB':>11}"
        f"{'build s':>9}{'build MiB':>11}{'index MiB':>11}",
        end="",
    )
    print(f"{'open s':>8}{'peak MiB':>10}{columns}")
    for n in sizes:
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            corpus, index = Path(folder) / "grown.jsonl", Path(folder) / "indexes"
            alone(grown, corpora, n, corpus)
            built = alone(opening, "bm25s", [corpus], index)
            got = {
                name: alone(searching, "bm25s", [corpus], index, queries, len(queries))
                for name, queries in asked.items()
            }
            peak, opened = (
                max(g[what] for g in got.values()) for what in ("peak", "open")
            )
            print(
                f"{n:<15,}{corpus.stat().st_size / MIB:>11,.0f}"
                f"{built['seconds']:>9.1f}{built['peak']:>11,.0f}",
                end="",
            )
            print(f"{built['bytes'] / MIB:>11,.0f}{opened:>8.2f}{peak:>10,.0f}", end="")
            print("".join(f"{g['per_s']:>20,.0f}" for g in got.values()), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="benchmarks.retrieval",
        description="Quality, speed and size of the retrievers.",
    )
    parser.add_argument(
        "--beir",
        type=Path,
        action="append",
        default=[],
        help="a judged set in BEIR's layout (may repeat)",
    )
    parser.add_argument(
        "--corpus",
        type=Path,
        action="append",
        default=[],
        help="a JSONL corpus to time (may repeat)",
    )
    parser.add_argument(
        "--few",
        type=int,
        default=20,
        help="queries that rank_bm25 is timed on (default: %(default)s)",
    )
    parser.add_argument(
        "--growth",
        type=int,
        nargs="*",
        default=[],
        help="passages to grow the corpora to, e.g. 50000 1000000",
    )
    parser.add_argument(
        "--scratch",
        type=Path,
        help="folder for what is made and deleted (default: the system's)",
    )
    options = parser.parse_args()
    load = f"{os.getloadavg()[0]:.1f}"
    with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
        questions = judge(options.beir, Path(folder)) if options.beir else []
        if options.corpus:
            asked = sets_of_queries(questions)
            speed(options.corpus, Path(folder) / "indexes", asked, options.few)
            growth(options.corpus, options.growth, Path(folder), asked)
    made = ", ".join(
        f"{name} {version(name)}"
        for name in ("bm25s", "rank-bm25", "numpy", "scipy", "scikit-learn")
    )
    machine = f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"\n{machine}, load before the start {load}\n{made}")


if __name__ == "__main__":
    main()
