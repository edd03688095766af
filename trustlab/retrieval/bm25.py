"""Searches a library in memory by BM25."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Protocol

import numpy as np

WORD = re.compile(r"\w+")
"""What is a word."""
UNSEEN = re.compile("\u00ad\\s*|[\u200b-\u200d\u2060\ufeff]")
"""Unseen within a word: a soft hyphen, with the end of its line, and joiners."""
K1, B = 1.2, 0.75
N_BEST = 15
NO_WORDS = "no passage holds a word to search by"


def terms(text: str) -> list[str]:
    """What is searched by: lower-case words and numbers, without English stop words (scikit-learn's
    list); no stemming. Letters are composed, and ligatures apart (Unicode's NFKC)."""
    left_out = stop_words()
    plain = unicodedata.normalize("NFKC", UNSEEN.sub("", text))
    return [word for word in WORD.findall(plain.lower()) if word not in left_out]


@cache
def stop_words() -> frozenset[str]:
    """scikit-learn's 318 English stop words."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return ENGLISH_STOP_WORDS


@dataclass(frozen=True)
class Passage:
    """One passage; ``contents``, title and content together, is searched and read by models."""

    id: str
    title: str
    content: str
    contents: str


class Retriever(Protocol):
    """Finds passages; ``revision`` names corpus and settings, for the manifest."""

    revision: str

    def search(self, query: str, k: int = N_BEST) -> list[Passage]:
        """The ``k`` best passages, best first."""
        ...


class BM25:
    """The reference retriever: it scores each query against all passages, in memory.

    Words are weighted by Okapi's idf if :func:`okapi_weighs` is true, else by Lucene's.
    ``ValueError``: no passage contains a word.
    """

    def __init__(self, passages: Sequence[Passage]):
        from rank_bm25 import BM25Okapi

        self.passages = tuple(passages)
        documents = [terms(passage.contents) for passage in self.passages]
        if not any(documents):
            raise ValueError(NO_WORDS)
        self._index = BM25Okapi(documents, k1=K1, b=B)
        n = len(documents)
        n_with_word = Counter(chain.from_iterable(self._index.doc_freqs))
        if not okapi_weighs(n, n_with_word):
            self._index.idf = {
                word: math.log1p((n - k + 0.5) / (k + 0.5))
                for word, k in n_with_word.items()
            }
        self.revision = f"bm25 {revision(self.passages)}"

    def search(self, query: str, k: int = N_BEST) -> list[Passage]:
        """The ``k`` best passages that contain a word of the query; ties in corpus order."""
        return [self.passages[place] for place in best(self.scores(query), k)]

    def scores(self, query: str) -> np.ndarray:
        """Each passage's score, shape (passages,); above 0 if it contains a word of the query."""
        return np.asarray(self._index.get_scores(terms(query)))


def okapi_weighs(n: int, n_with_word: Counter[str]) -> bool:
    """Whether every word of ``n`` passages is in fewer than half of them (``n_with_word``: in how
    many). Okapi's idf of another is 0 or less."""
    return n > 2 * max(n_with_word.values())


def best(scores: np.ndarray, k: int) -> np.ndarray:
    """Places of the ``k`` best of ``scores`` (n,) that are above 0, best first, ties in order."""
    order = np.argsort(-scores, kind="stable")[: max(k, 0)]
    return order[scores[order] > 0]


def revision(passages: Iterable[Passage]) -> str:
    """Settings, number of passages, and their digest, whatever files they were in."""
    digest = hashlib.sha256()
    n_passages = 0
    for passage in passages:
        separator = "\0" if n_passages else ""
        digest.update(f"{separator}{passage.id}\1{passage.contents}".encode())
        n_passages += 1
    return f"k1={K1} b={B} passages={n_passages} {digest.hexdigest()[:16]}"
