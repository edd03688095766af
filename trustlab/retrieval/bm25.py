"""BM25 over a corpus (Robertson and Zaragoza 2009), as the library rank-bm25 computes it: k1 1.2, b 0.75."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from trustlab.retrieval.corpus import Passage

K1, B = 1.2, 0.75
N_BEST = 15


class Retriever(Protocol):
    """Finds passages; ``revision`` names corpus and settings, for the manifest."""

    revision: str

    def search(self, query: str, k: int = N_BEST) -> list[Passage]:
        """The ``k`` best passages, best first."""
        ...


def terms(text: str) -> list[str]:
    """What is searched by: lower-case words and numbers, without English stop words (scikit-learn's list); no stemming."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return [word for word in re.findall(r"\w+", text.lower()) if word not in ENGLISH_STOP_WORDS]


class BM25:
    """The reference retriever. Fine for some thousand passages: each query is scored against all of them."""

    def __init__(self, passages: Sequence[Passage], k1: float = K1, b: float = B):
        from rank_bm25 import BM25Okapi

        self.passages = tuple(passages)
        documents = [terms(p.contents) for p in self.passages]
        if not any(documents):
            raise ValueError("no passage holds a word to search by")
        self._index = BM25Okapi(documents, k1=k1, b=b)
        self._words = [set(document) for document in documents]
        digest = hashlib.sha256("\0".join(f"{p.id}\1{p.contents}" for p in self.passages).encode()).hexdigest()
        self.revision = f"bm25 k1={k1} b={b} passages={len(self.passages)} {digest[:16]}"

    def search(self, query: str, k: int = N_BEST) -> list[Passage]:
        """The ``k`` best passages, best first, ties in corpus order; a passage that holds no word of the query is none."""
        asked = terms(query)
        scores = np.asarray(self._index.get_scores(asked))
        holds = [i for i in np.argsort(-scores, kind="stable") if not self._words[i].isdisjoint(asked)]
        return [self.passages[i] for i in holds[:k]]
