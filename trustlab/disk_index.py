"""Searches a library on disk by BM25."""

from __future__ import annotations

import contextlib
import hashlib
import json
import tempfile
import unicodedata
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from trustlab import paths
from trustlab.corpora import (
    FILE,
    CorpusFile,
    CorpusPath,
    Passage,
    corpus_files,
    digest,
    read_passages,
)
from trustlab.retrieval import bm25
from trustlab.retrieval.bm25 import BM25, K1, N_BEST, B, terms

FORMAT = 3  # goes up when the files of an index change their meaning
MANIFEST = "index.json"
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
    """A retriever over the corpus at ``path`` (:func:`~trustlab.corpora.corpus_files`; default: the
    project's own). ``kind="rank_bm25"`` keeps all passages in memory. ``kind="bm25s"`` saves an
    index in ``index_dir`` (default: ``runs/indexes``) and reuses it. ``kind=None``: the first up to
    :data:`LARGE` passages, the second above. Both give the same rankings. ``ValueError``: unknown
    kind, setting out of range. ``ImportError``: bm25s is needed and not installed. Errors of the
    corpus: those of ``load_corpus``."""
    if kind not in (None, *KINDS):
        raise ValueError(f"kind is {kind!r}; allowed are None, {', '.join(map(repr, KINDS))}")
    files = corpus_files(FILE if path is None else path)
    if kind != "bm25s":
        passages = tuple(islice(read_passages(files), LARGE + 1 if kind is None else None))
        if kind == "rank_bm25" or len(passages) <= LARGE:
            return BM25(passages, k1=k1, b=b)
    bm25.check(k1, b)
    kept = Path(index_dir).expanduser() if index_dir else paths.RUNS / "indexes"
    if kept.exists() and not kept.is_dir():
        allowed = "a folder, or a name for a new one"
        raise ValueError(f"index_dir is {str(kept)!r}, which is a file; allowed is {allowed}")
    _bm25s()
    folder = kept / _key(files, k1, b)
    if not _sound(folder):
        _make(folder, files, k1, b)
    return BM25S(folder)


class BM25S:
    """The index in ``folder`` that :func:`open_retriever` saved, with the rankings and scores of
    ``BM25``. Postings and passages are mapped into memory, not read."""

    def __init__(self, folder: Path):
        self.revision: str = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["revision"]
        how: Any = {"mmap": True, "load_corpus": True, "show_progress": False, "verbosity": 0}
        self._index: Any = _bm25s().BM25.load(folder, **how)

    def search(self, query: str, k: int = N_BEST) -> list[Passage]:
        """The ``k`` best passages that contain a word of the query; ties in corpus order."""
        return [Passage(**self._index.corpus[int(i)]) for i in bm25.best(self.scores(query), k)]

    def scores(self, query: str) -> np.ndarray:
        """Each passage's score, shape (passages,); above 0 if it contains a word of the query."""
        return self._index.get_scores_from_ids(self._index.get_tokens_ids(terms(query)))


def _bm25s() -> Any:
    try:
        import bm25s
    except ImportError as error:
        raise ImportError(
            'an index on disk, for a large library, needs bm25s: pip install "trustlab[corpora]"'
        ) from error
    return bm25s


def _key(files: Sequence[CorpusFile], k1: float, b: float) -> str:
    """The name of a folder: a hash of all that changes the rankings."""
    parts = (FORMAT, version("bm25s"), words_revision(), float(k1), float(b), digest(files))
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _sound(folder: Path) -> bool:
    """Whether the folder holds the files that its manifest names, byte for byte."""
    try:
        kept = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["sha256"]
        return bool(kept) and all(paths.sha256_of(folder / n) == found for n, found in kept.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _make(folder: Path, files: Sequence[CorpusFile], k1: float, b: float) -> None:
    """Built beside, then renamed: of two builds at once the first stays. A killed build leaves a
    folder ``building-...``, which nothing reads."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="building-", dir=folder.parent) as beside:
        built = Path(beside) / "index"
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


def _build(files: Sequence[CorpusFile], folder: Path, k1: float, b: float) -> None:
    """Reads the corpus twice: words and postings are held in memory, passages go to disk."""
    numbers: list[array[int]] = []
    vocabulary: dict[str, int] = {}
    within: Counter[str] = Counter()

    def counted() -> Iterator[Passage]:
        for passage in read_passages(files):
            words = terms(passage.contents)
            within.update(set(words))
            numbers.append(array("i", [vocabulary.setdefault(w, len(vocabulary)) for w in words]))
            yield passage

    revision = f"bm25s {bm25.revision(counted(), k1, b)}"
    if not vocabulary:
        raise ValueError(bm25.NO_WORDS)
    idf = "robertson" if bm25.okapi_weighs(len(numbers), within) else "lucene"
    how: Any = {"method": "atire", "dtype": "float64", "csc_backend": "scipy"}
    index: Any = _bm25s().BM25(k1=k1, b=b, idf_method=idf, **how)
    index.index((numbers, vocabulary), create_empty_token=False, show_progress=False)
    passages = map(vars, read_passages(files))
    index.save(folder, passages, show_progress=False, raise_on_serialization_error=True)
    kept = {file.name: paths.sha256_of(file) for file in folder.iterdir()}
    manifest = json.dumps({"revision": revision, "sha256": kept}, indent=1)
    (folder / MANIFEST).write_text(manifest, encoding="utf-8")


def words_revision() -> str:
    """Names all that :func:`terms` depends on."""
    how = (bm25.WORD.pattern, bm25.UNSEEN.pattern, "NFKC", unicodedata.unidata_version)
    return hashlib.sha256("\0".join([*how, *sorted(bm25.stop_words())]).encode()).hexdigest()[:16]
