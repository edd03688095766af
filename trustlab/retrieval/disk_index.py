"""BM25 over a library on disk, for corpora larger than memory."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import tempfile
import time
from array import array
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, overload

import numpy as np

from trustlab import paths
from trustlab.retrieval.bm25 import (
    BM25,
    K1,
    N_BEST,
    NO_WORDS,
    B,
    Marks,
    check,
    terms,
    words_revision,
)
from trustlab.retrieval.corpus import (
    FILE,
    CorpusFile,
    CorpusPath,
    Passage,
    corpus_files,
    digest,
    joined,
    read_passages,
)

PASSAGES, STARTS = "passages.jsonl", "starts.npy"


class Shelf(Sequence[Passage]):
    """The passages that :func:`shelve` wrote into ``folder``, in corpus order."""

    def __init__(self, folder: Path):
        self._lines = np.memmap(folder / PASSAGES, mode="r")
        self._starts = np.load(folder / STARTS, mmap_mode="r")

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, index: int) -> Passage: ...
    @overload
    def __getitem__(self, index: slice) -> list[Passage]: ...
    def __getitem__(self, index: int | slice) -> Passage | list[Passage]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        i = range(len(self))[index]  # from the end where negative; IndexError beyond the ends
        line = self._lines[self._starts[i] : self._starts[i + 1]]
        ident, title, content, *own = json.loads(line.tobytes())
        return Passage(ident, title, content, *(own or [joined(title, content)]))


def shelve(passages: Iterable[Passage], folder: Path) -> Iterator[Passage]:
    """Writes ``passages`` into ``folder`` as they go by; the files are whole once the last one
    has."""
    starts = array("q", [0])
    with (folder / PASSAGES).open("wb") as out:
        for passage in passages:
            row = [passage.id, passage.title, passage.content]
            if passage.contents != joined(passage.title, passage.content):
                row.append(passage.contents)
            line = json.dumps(row, ensure_ascii=False).encode() + b"\n"
            starts.append(starts[-1] + out.write(line))
            yield passage
    np.save(folder / STARTS, np.asarray(starts))


FORMAT = 2
"""Goes up when the files of an index change their meaning."""
MANIFEST = "index.json"
STALE_S = 24 * 3600
"""Seconds after which a build that did not end is taken for dead."""


class BM25S:
    """The index in ``folder``, as :func:`open_index` keeps it: the rankings of ``BM25``, from
    postings and passages on disk.

    Scores are single precision, so passages whose scores differ by less than about one part in a
    million may change places.
    """

    def __init__(self, folder: Path):
        import bm25s

        self.revision: str = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["revision"]
        self.passages: Sequence[Passage] = Shelf(folder)
        self._index: Any = bm25s.BM25.load(folder, mmap=True, show_progress=False)

    def search(self, query: str, k: int = N_BEST) -> list[Passage]:
        """The ``k`` best passages, best first, ties in corpus order; a passage that holds no word
        of the query is none."""
        asked = self._index.get_tokens_ids(terms(query))
        if not (asked and k > 0):
            return []
        scores = self._index.get_scores_from_ids(asked)
        ends, postings = self._index.scores["indptr"], self._index.scores["indices"]
        holds = np.zeros(len(scores), bool)  # a score may be 0 though the passage holds the word
        for word in set(asked):
            holds[postings[ends[word] : ends[word + 1]]] = True
        found = np.flatnonzero(holds)
        if len(found) > k:  # sort the best and all that tie with the last of them, not a million
            found = found[scores[found] >= np.partition(scores[found], -k)[-k]]
        return [self.passages[int(i)] for i in found[np.argsort(-scores[found], kind="stable")][:k]]


def open_index(files: Sequence[CorpusFile], k1: float, b: float, index_dir: Path) -> BM25S:
    """The index of ``files`` in a folder of ``index_dir``, made where it is missing or damaged (a
    file gone or changed).

    The folder's name is a hash of the files' bytes, the settings, the words and bm25s's version:
    whatever changes the rankings makes another index. To open one, corpus and index are hashed but
    not read. Errors: as ``load_corpus``.
    """
    check(k1, b)
    if index_dir.exists() and not index_dir.is_dir():
        allowed = "a folder, or a name for a new one"
        raise ValueError(f"index_dir is {str(index_dir)!r}, which is a file; allowed is {allowed}")
    folder = index_dir / _key(files, k1, b)
    if not _sound(folder):
        _make(folder, files, k1, b)
    return BM25S(folder)


def _key(files: Sequence[CorpusFile], k1: float, b: float) -> str:
    parts = (FORMAT, version("bm25s"), words_revision(), float(k1), float(b), digest(files))
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _sound(folder: Path) -> bool:
    """Whether the folder holds every file that its manifest names, byte for byte."""
    try:
        kept = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["sha256"]
        return all(_sha256(folder / name) == found for name, found in kept.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _make(folder: Path, files: Sequence[CorpusFile], k1: float, b: float) -> None:
    """Built beside, then renamed: of two builds at once the first stays.

    A build that is killed leaves a folder ``building-...``, which nothing reads; the next build
    deletes it after a day.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    for left in folder.parent.glob("building-*"):
        with contextlib.suppress(FileNotFoundError):  # its build has ended meanwhile
            if time.time() - left.stat().st_mtime > STALE_S:
                shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="building-", dir=folder.parent) as beside:
        built = Path(beside) / "index"
        built.mkdir()
        _build(files, built, k1, b)
        if _key(files, k1, b) != folder.name:
            what = f"{files[0].path} or a file beside it changed while the index was made"
            raise ValueError(f"{what}; open the corpus again")
        if not _sound(folder):
            with contextlib.suppress(FileNotFoundError):
                folder.rename(Path(beside) / "damaged")  # deleted with the temporary folder
        try:
            built.rename(folder)
        except OSError:
            if not _sound(folder):
                raise


class _Tokens:
    """The word numbers of every passage, end to end: four bytes a word; bm25s goes through them
    passage by passage."""

    def __init__(self) -> None:
        self.vocab: dict[str, int] = {}
        self._words, self._ends = array("i"), array("q", [0])

    def add(self, words: Iterable[str]) -> None:
        vocab = self.vocab
        self._words.extend([vocab.setdefault(word, len(vocab)) for word in words])
        self._ends.append(len(self._words))

    @property
    def ids(self) -> _Tokens:
        return self

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __iter__(self) -> Iterator[array[int]]:
        return (self._words[start:end] for start, end in pairwise(self._ends))


def _build(files: Sequence[CorpusFile], folder: Path, k1: float, b: float) -> None:
    """Reads the corpus once, passage by passage; what is held in memory is the words' numbers and
    the postings."""
    import bm25s

    marks, tokens = Marks(), _Tokens()
    for passage in shelve(read_passages(files), folder):
        marks.add(passage)
        tokens.add(terms(passage.contents))
    if not tokens.vocab:
        raise ValueError(NO_WORDS)
    index: Any = bm25s.BM25(k1=k1, b=b, method="atire", idf_method="lucene", csc_backend="scipy")
    index.index(tokens, create_empty_token=False, show_progress=False)
    _weigh_words_as_rank_bm25_does(index.scores)
    index.save(folder, show_progress=False)
    kept = {file.name: _sha256(file) for file in folder.iterdir()}
    manifest = {"revision": f"bm25s {marks.revision(k1, b)}", "sha256": kept}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")


def _weigh_words_as_rank_bm25_does(scores: dict[str, Any]) -> None:
    """bm25s weighs words by Lucene's idf; they are scaled to Okapi's where ``BM25`` uses it."""
    n, n_within = scores["num_docs"], np.diff(scores["indptr"])
    odds = (n - n_within + 0.5) / (n_within + 0.5)
    if (odds > 1).all():
        scale = np.log(odds) / np.log1p(odds)
        scores["data"] *= np.repeat(scale.astype(np.float32), n_within)


LARGE = 5_000
"""Passages up to which rank-bm25, the reference, answers fast enough (about 20 ms a query)."""


KINDS = ("rank_bm25", "bm25s")


def open_retriever(
    path: CorpusPath | None = None,
    *,
    k1: float = K1,
    b: float = B,
    index_dir: str | Path | None = None,
    kind: str | None = None,
) -> BM25 | BM25S:
    """A retriever over the corpus at ``path`` (a file, a folder, a list of either; default: the
    project's own).

    ``kind``: ``"rank_bm25"`` keeps all passages in memory and scores every one for every query;
    ``"bm25s"`` keeps an index in ``index_dir`` (default: ``runs/indexes``) and opens it again the
    next time. ``None`` takes the first up to :data:`LARGE` passages and the second above; the
    rankings are the same. Raises ``ValueError`` for an unknown kind and for ``k1`` below 0 or ``b``
    outside 0 to 1; errors of the corpus: as ``load_corpus``.
    """
    if kind not in (None, *KINDS):
        raise ValueError(f"kind is {kind!r}; allowed are None, {', '.join(map(repr, KINDS))}")
    files = corpus_files(FILE if path is None else path)
    if kind != "bm25s":
        passages = tuple(islice(read_passages(files), LARGE + 1 if kind is None else None))
        if kind == "rank_bm25" or len(passages) <= LARGE:
            return BM25(passages, k1=k1, b=b)
    folder = Path(index_dir).expanduser() if index_dir else paths.RUNS / "indexes"
    return open_index(files, k1, b, folder)
