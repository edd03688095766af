"""The index on disk: ranked as the reference ranks, made once, never half made, made again when
damaged or out of date."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from made_corpora import ids, made, written, written_passages

from benchmarks.retrieval import either, json_lines
from trustlab.agents.medconf import is_about
from trustlab.datasets import DataError
from trustlab.paths import ROOT, RUNS
from trustlab.retrieval import BM25, BM25S, Passage, disk_index, load_corpus
from trustlab.retrieval import open_retriever as open_any
from trustlab.retrieval.corpus import corpus_files, read_passages

REAL = ROOT.parent / "shared" / "datasets"
TEXTS = (
    "croup barks at night",
    "gout hurts in the toe",
    "a rash itches",
    "croup and fever",
    "fever, rash and croup",
)
FILES = [
    *(
        "data.csc.index.npy",
        "indices.csc.index.npy",
        "indptr.csc.index.npy",
        "vocab.index.json",
        "params.index.json",
    ),
    *("corpus.jsonl", "corpus.mmindex.json", "index.json"),
]


def opened(file: Path, **options: Any) -> BM25S:
    found = open_any(file, kind="bm25s", index_dir=file.parent / "indexes", **options)
    assert isinstance(found, BM25S)
    return found


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return written_passages(tmp_path, made(*TEXTS))


def kept(corpus: Path) -> list[Path]:
    """The finished indexes beside ``corpus``."""
    return sorted(
        p for p in (corpus.parent / "indexes").glob("*") if not p.name.startswith("building-")
    )


@pytest.fixture
def no_building(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    def refuse(*given: object) -> None:
        raise AssertionError("an index was built")

    return lambda: monkeypatch.setattr(disk_index, "_build", refuse)


# The same rankings


def assert_alike(reference: BM25, other: BM25S, query: str, k: int) -> None:
    """Both score every passage alike and find the same ones place by place, ties in order."""
    assert other.scores(query) == pytest.approx(reference.scores(query), rel=0, abs=1e-6), query
    assert other.search(query, k) == reference.search(query, k), query


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("common", [True, False], ids=["Lucene's idf", "Okapi's idf"])
def test_both_rank_alike(tmp_path: Path, seed: int, common: bool) -> None:
    rng = random.Random(seed)
    words = [f"w{i}" for i in range(150)]
    chances = [1 / (i + 1) if common else 1 for i in range(150)]
    texts = [" ".join(rng.choices(words, chances, k=rng.randrange(1, 40))) for _ in range(400)]
    assert common == (max(sum(w in t.split() for t in texts) for w in words) >= 200)
    reference, other = BM25(made(*texts)), opened(written_passages(tmp_path, made(*texts)))
    for _ in range(60):
        query = " ".join(rng.choices(words, k=rng.randrange(1, 6)))
        assert_alike(reference, other, query, 15)
        assert_alike(reference, other, query, 400)
    assert_alike(reference, other, "w0 w0 w1 unheard", 400)


@pytest.mark.realdata
@pytest.mark.skipif(
    not REAL.is_dir(), reason="the data sets are not at ../shared/datasets beside the repository"
)
def test_both_rank_real_passages_alike(tmp_path: Path) -> None:
    passages: list[Passage] = []
    for name in ("pubmed_snippets.jsonl.gz", "medquad_snippets.jsonl.gz"):
        passages += islice(read_passages(corpus_files(REAL / "corpora" / name)), 1500)
    reference, other = BM25(passages), opened(written_passages(tmp_path, passages))
    questions = [
        row["text"]
        for row in islice(json_lines(either(REAL / "retrieval" / "bioasq", "queries")), 50)
    ]
    assert (len(passages), len(questions)) == (3000, 50)
    for question in questions:
        assert_alike(reference, other, question, 15)


@pytest.mark.realdata
@pytest.mark.slow
@pytest.mark.skipif(
    not REAL.is_dir(), reason="the data sets are not at ../shared/datasets beside the repository"
)
def test_real_snippets_are_about_diseases_that_our_library_lacks(tmp_path: Path) -> None:
    ours, found = BM25(load_corpus()), open_any(REAL / "corpora", index_dir=tmp_path)
    for name in ("Kawasaki disease", "Wilson disease", "Cystic fibrosis", "Addison disease"):
        assert not any(is_about(p, name) for p in ours.search(name, 5))
        best = found.search(name, 3)
        assert len(best) == 3 and all(is_about(p, name) for p in best), [p.title for p in best]


def test_the_own_corpus_is_ranked_place_by_place_as_by_the_reference(tmp_path: Path) -> None:
    reference, other = BM25(load_corpus()), open_any(kind="bm25s", index_dir=tmp_path)
    assert isinstance(other, BM25S)
    for title in {p.title for p in reference.passages}:
        assert_alike(reference, other, title, 15)


# Which retriever


def test_few_passages_are_held_in_memory_and_many_in_an_index(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kind(n: int, **options: Any) -> type:
        monkeypatch.setattr(disk_index, "LARGE", n)
        return type(open_any(corpus, index_dir=corpus.parent / "indexes", **options))

    assert (kind(len(TEXTS)), kept(corpus)) == (BM25, [])
    assert kind(len(TEXTS) - 1) is BM25S and len(kept(corpus)) == 1
    assert kind(len(TEXTS) - 1, kind="rank_bm25") is BM25
    assert disk_index.LARGE < 5000 and kind(5000, kind="bm25s") is BM25S


def test_an_unknown_kind_is_refused(corpus: Path) -> None:
    with pytest.raises(ValueError, match="kind is 'bm25'; allowed are None, 'rank_bm25', 'bm25s'"):
        open_any(corpus, kind="bm25")


def test_without_bm25s_the_error_says_how_to_get_it(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "bm25s", None)
    assert type(open_any(corpus)) is BM25
    with pytest.raises(ImportError, match=r'needs bm25s: pip install "trustlab\[corpora\]"$'):
        opened(corpus)
    assert not (corpus.parent / "indexes").exists()


def test_the_default_is_the_own_corpus_in_the_folder_of_runs() -> None:
    assert open_any().search("croup") == BM25(load_corpus()).search("croup")
    open_any(kind="bm25s")
    assert len(list((RUNS / "indexes").iterdir())) == 1


def test_revisions_name_the_passages_and_not_their_files(corpus: Path) -> None:
    packed = written(corpus.parent, *corpus.read_text().splitlines(), name="packed.jsonl.gz")
    revisions = {opened(corpus).revision, opened(packed).revision}
    assert revisions == {BM25(made(*TEXTS)).revision.replace("bm25 ", "bm25s ", 1)}


# Passages on disk


def test_passages_come_back_from_disk_as_they_were(tmp_path: Path) -> None:
    passages = (
        Passage("a", "", "Ödem\u2028\n\t\"'\\ 漢", "Ödem\u2028\n\t\"'\\ 漢"),
        Passage("b", "Croup", "It barks.", "Croup. It barks."),
        Passage("c", " ", "Itches.", "What itches?"),
    )
    found = opened(written_passages(tmp_path, passages)).search("ödem barks itches")
    assert sorted(found, key=lambda p: p.id) == list(passages)


# Made once


def test_an_index_is_made_once(corpus: Path, no_building: Callable[[], None]) -> None:
    first = opened(corpus)
    no_building()
    again = opened(corpus)
    assert again.revision == first.revision
    assert again.search("croup") == first.search("croup")
    assert ids(again.search("croup fever")) == ids(BM25(made(*TEXTS)).search("croup fever"))


def test_a_snippet_file_may_be_renamed(corpus: Path, no_building: Callable[[], None]) -> None:
    opened(corpus)
    no_building()
    assert ids(opened(corpus.rename(corpus.with_name("other.jsonl"))).search("toe")) == ["p1"]


def test_other_settings_or_passages_make_another_index(corpus: Path) -> None:
    opened(corpus)
    for n, options in enumerate([{"k1": 1.5}, {"b": 0.5}], 2):
        opened(corpus, **options)
        assert len(kept(corpus)) == n
    written_passages(
        corpus.parent, [*made(*TEXTS), Passage("new", "", "Mumps swell.", "Mumps swell.")]
    )
    assert ids(opened(corpus).search("mumps")) == ["new"]
    assert len(kept(corpus)) == 4


def test_other_stop_words_make_another_index(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(corpus)
    monkeypatch.setattr("trustlab.retrieval.bm25.stop_words", lambda: frozenset({"croup"}))
    assert opened(corpus).search("croup") == []
    assert len(kept(corpus)) == 2


def test_a_text_file_with_another_name_makes_another_index(tmp_path: Path) -> None:
    file = written(tmp_path, "Gout hurts.", name="gout.txt")
    assert ids(opened(file).search("gout")) == ["gout.txt-1"]
    assert ids(opened(file.rename(tmp_path / "toes.txt")).search("gout")) == ["toes.txt-1"]


# Never half made


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["gone", "cut", "empty", "changed"])
def test_a_damaged_index_is_made_again(corpus: Path, name: str, damage: str) -> None:
    wanted = ids(opened(corpus).search("croup"))
    (folder,) = kept(corpus)
    file = folder / name
    content = file.read_bytes()
    file.unlink()
    if damage != "gone":
        file.write_bytes(
            {"cut": content[:-1], "empty": b"", "changed": content[:-1] + bytes([content[-1] ^ 1])}[
                damage
            ]
        )
    assert ids(opened(corpus).search("croup")) == wanted == ["p3", "p0", "p4"]
    assert kept(corpus) == [folder] and sorted(p.name for p in folder.iterdir()) == sorted(FILES)
    assert file.read_bytes() == content


@pytest.mark.parametrize(
    "manifest",
    [
        *("[]", "{}", "7", "null", '{"sha256": 7}', '{"sha256": {"absent": "1"}}'),
        *('{"sha256": {}, "revision": "x"}', '{"sha256": {"absent": "1"}, "revision": 7}'),
    ],
)
def test_an_index_whose_manifest_says_nothing_is_made_again(corpus: Path, manifest: str) -> None:
    opened(corpus)
    (kept(corpus)[0] / "index.json").write_text(manifest)
    assert ids(opened(corpus).search("toe")) == ["p1"]


def test_an_index_with_a_file_more_is_made_again(corpus: Path) -> None:
    opened(corpus)
    (kept(corpus)[0] / "more.npy").write_bytes(b"")
    assert ids(opened(corpus).search("toe")) == ["p1"]
    assert sorted(p.name for p in kept(corpus)[0].iterdir()) == sorted(FILES)


KILLED = """
import os, sys
from trustlab.retrieval import disk_index as index, open_retriever
if sys.argv[3] == "before the renaming":
    index.Path.rename = lambda *given: os._exit(9)
else:
    index.terms = lambda *given: os._exit(9)
open_retriever(sys.argv[1], index_dir=sys.argv[2], kind="bm25s")
"""


@pytest.mark.slow
@pytest.mark.parametrize("when", ["at the first passage", "before the renaming"])
def test_a_killed_build_is_not_taken_for_an_index(corpus: Path, when: str) -> None:
    command = [sys.executable, "-c", KILLED, str(corpus), str(corpus.parent / "indexes"), when]
    assert subprocess.run(command, cwd=ROOT, timeout=120).returncode == 9
    assert len(list((corpus.parent / "indexes").iterdir())) == 1 and kept(corpus) == []
    assert ids(opened(corpus).search("toe")) == ["p1"]
    assert len(kept(corpus)) == 1


def test_a_build_that_fails_leaves_nothing(tmp_path: Path) -> None:
    file = written(tmp_path, {"id": "a", "title": "", "content": "Croup barks."}, "{no json")
    with pytest.raises(DataError, match="row 2"):
        opened(file)
    assert list((tmp_path / "indexes").iterdir()) == []


def test_a_corpus_that_changes_while_it_is_read_is_refused(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = disk_index._build

    def changing(*given: Any) -> None:
        build(*given)
        corpus.write_text(
            corpus.read_text() + json.dumps({"id": "new", "title": "", "content": "Mumps."})
        )

    monkeypatch.setattr(disk_index, "_build", changing)
    with pytest.raises(ValueError, match="changed while the index was made"):
        opened(corpus)
    assert list((corpus.parent / "indexes").iterdir()) == []


def test_of_two_builders_the_later_one_takes_the_earlier_ones_index(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = disk_index._build
    earlier: list[int] = []

    def overtaken(*given: Any) -> None:
        build(*given)
        monkeypatch.setattr(disk_index, "_build", build)
        opened(corpus)  # another builder begins and ends before this one
        earlier.append(kept(corpus)[0].stat().st_ino)

    monkeypatch.setattr(disk_index, "_build", overtaken)
    assert ids(opened(corpus).search("toe")) == ["p1"]
    assert [p.stat().st_ino for p in (corpus.parent / "indexes").iterdir()] == earlier


def test_many_may_open_a_new_corpus_at_once(corpus: Path) -> None:
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _: ids(opened(corpus).search("croup")), range(6)))
    assert found == [["p3", "p0", "p4"]] * 6
    assert len(list((corpus.parent / "indexes").iterdir())) == 1
