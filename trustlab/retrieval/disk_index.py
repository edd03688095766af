"""Searches a library on disk by BM25."""

from __future__ import annotations

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
from trustlab.retrieval import bm25
from trustlab.retrieval.bm25 import BM25, K1, N_BEST, B, terms
from trustlab.retrieval.corpora import (
    FILE,
    CorpusFile,
    CorpusPath,
    Passage,
    corpus_files,
    digest,
    read_passages,
)

FORMAT = 3  # goes up when the files of an index change their meaning
MANIFEST = "index.json"
LARGE = 5_000
"""Passages up to which rank-bm25, the reference, answers fast enough (about 20 ms a query)."""


def open_retriever(path: CorpusPath | None = None) -> BM25 | BM25S:
    """A retriever over the corpus at ``path`` (default: the project's own;
    :func:`~trustlab.retrieval.corpora.corpus_files`).

    - Up to :data:`LARGE` passages are in memory; above by an index in ``runs/indexes``, which is
      made once. Both give the same rankings.
    - ``ImportError``: bm25s is needed and not installed. Errors of the corpus: those of
      ``load_corpus``.
    """
    files = corpus_files(FILE if path is None else path)
    passages = tuple(islice(read_passages(files), LARGE + 1))
    if len(passages) <= LARGE:
        return BM25(passages)
    return open_index(files, paths.RUNS / "indexes")


def open_index(files: Sequence[CorpusFile], indexes: Path) -> BM25S:
    """The index of a corpus, in a folder of ``indexes``, made where it is not there."""
    _import_bm25s()
    folder = indexes / _folder_name(files)
    if not folder.is_dir():
        _make_index(folder, files)
    return BM25S(folder)


class BM25S:
    """The index in ``folder`` that :func:`open_retriever` saved, with the rankings and scores of
    ``BM25``. Postings and passages are mapped into memory, not read. ``ValueError``: a file of the
    folder is damaged."""

    def __init__(self, folder: Path):
        self.revision = _check_index(folder)
        self._index: Any = _import_bm25s().BM25.load(
            folder, mmap=True, load_corpus=True, show_progress=False, verbosity=0
        )

    def search(self, query: str, k: int = N_BEST) -> list[Passage]:
        """The ``k`` best passages that contain a word of the query; ties in corpus order."""
        places = bm25.best(self.scores(query), k)
        return [Passage(**self._index.corpus[int(place)]) for place in places]

    def scores(self, query: str) -> np.ndarray:
        """Each passage's score, shape (passages,); above 0 if it contains a word of the query."""
        word_ids = self._index.get_tokens_ids(terms(query))
        return self._index.get_scores_from_ids(word_ids)


def _import_bm25s() -> Any:
    try:
        import bm25s
    except ImportError as error:
        raise ImportError(
            'an index on disk, for a large library, needs bm25s: pip install "trustlab[corpora]"'
        ) from error
    return bm25s


def _folder_name(files: Sequence[CorpusFile]) -> str:
    """The name of an index's folder: a hash of all that changes the rankings."""
    parts = (FORMAT, version("bm25s"), words_revision(), K1, B, digest(files))
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _check_index(folder: Path) -> str:
    """The revision of the index in a folder; ``ValueError`` unless it holds the files that its
    manifest names, byte for byte."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        digests = manifest["sha256"].items()
        if all(paths.sha256_of(folder / name) == digest for name, digest in digests):
            return manifest["revision"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    raise ValueError(
        f"{folder} is no whole index; delete that folder, and it is made again"
    )


def _make_index(folder: Path, files: Sequence[CorpusFile]) -> None:
    """Build an index beside its folder, then rename it: of two builds at once the first stays. A
    killed build leaves a folder ``building-...``, which nothing reads."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="building-", dir=folder.parent) as beside:
        built = Path(beside) / "index"
        _build(files, built)
        if _folder_name(files) != folder.name:
            change = (
                f"{files[0].path} or a file beside it changed while the index was made"
            )
            raise ValueError(f"{change}; open the corpus again")
        try:
            built.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise


def _build(files: Sequence[CorpusFile], folder: Path) -> None:
    """Read the corpus twice: words and postings stay in memory, passages go to disk."""
    word_ids: list[array[int]] = []
    vocabulary: dict[str, int] = {}
    n_with_word: Counter[str] = Counter()

    def count_words() -> Iterator[Passage]:
        for passage in read_passages(files):
            words = terms(passage.contents)
            n_with_word.update(set(words))
            passage_ids = array("i")
            for word in words:
                passage_ids.append(vocabulary.setdefault(word, len(vocabulary)))
            word_ids.append(passage_ids)
            yield passage

    revision = f"bm25s {bm25.revision(count_words())}"
    if not vocabulary:
        raise ValueError(bm25.NO_WORDS)
    is_okapi = bm25.okapi_weighs(len(word_ids), n_with_word)
    index: Any = _import_bm25s().BM25(
        k1=K1,
        b=B,
        idf_method="robertson" if is_okapi else "lucene",
        method="atire",
        dtype="float64",
        csc_backend="scipy",
    )
    index.index((word_ids, vocabulary), create_empty_token=False, show_progress=False)
    passages = map(vars, read_passages(files))
    index.save(folder, passages, show_progress=False, raise_on_serialization_error=True)
    digests = {file.name: paths.sha256_of(file) for file in folder.iterdir()}
    manifest = json.dumps({"revision": revision, "sha256": digests}, indent=1)
    (folder / MANIFEST).write_text(manifest, encoding="utf-8")


def words_revision() -> str:
    """A hash of all that :func:`terms` depends on."""
    patterns = (bm25.WORD.pattern, bm25.UNSEEN.pattern)
    parts = [*patterns, "NFKC", unicodedata.unidata_version, *sorted(bm25.stop_words())]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
