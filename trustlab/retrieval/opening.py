"""Opens the retriever that suits a corpus."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from trustlab import paths
from trustlab.retrieval.bm25 import BM25, K1, B
from trustlab.retrieval.corpus import FILE, read_passages
from trustlab.retrieval.files import CorpusPath, corpus_files
from trustlab.retrieval.index import BM25S, open_index

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
    """A retriever over the corpus at ``path`` (a file, a folder, a list of either; default: the project's own).

    ``kind``: ``"rank_bm25"`` keeps all passages in memory and scores every one for every query; ``"bm25s"`` keeps an index
    in ``index_dir`` (default: ``runs/indexes``) and opens it again the next time. ``None`` takes the first up to
    :data:`LARGE` passages and the second above; the rankings are the same. Raises ``ValueError`` for an unknown kind and
    for ``k1`` below 0 or ``b`` outside 0 to 1; errors of the corpus: as ``load_corpus``.
    """
    if kind not in (None, *KINDS):
        raise ValueError(f"kind is {kind!r}; allowed are None, {', '.join(map(repr, KINDS))}")
    files = corpus_files(FILE if path is None else path)
    if kind != "bm25s":
        passages = tuple(islice(read_passages(files), LARGE + 1 if kind is None else None))
        if kind == "rank_bm25" or len(passages) <= LARGE:
            return BM25(passages, k1=k1, b=b)
    return open_index(files, k1, b, Path(index_dir).expanduser() if index_dir else paths.RUNS / "indexes")
