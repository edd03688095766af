"""BM25 over a library in memory, and the words that it counts."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import islice
from typing import Protocol

import numpy as np

from trustlab.retrieval.corpus import Passage

_WORD = re.compile(r"\w+")
_UNSEEN = re.compile("\u00ad\\s*|[\u200b-\u200d\u2060\ufeff]")
"""What may stand unseen within a word: a soft hyphen, with the end of its line, and joiners."""


def terms(text: str) -> list[str]:
    """What is searched by: lower-case words and numbers, without English stop words (scikit-learn's
    list); no stemming. Letters are composed, and ligatures apart (Unicode's NFKC)."""
    stop, plain = stop_words(), unicodedata.normalize("NFKC", _UNSEEN.sub("", text))
    return [word for word in _WORD.findall(plain.lower()) if word not in stop]


@cache
def stop_words() -> frozenset[str]:
    """scikit-learn's 318 English stop words."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return ENGLISH_STOP_WORDS


def words_revision() -> str:
    """Names all that :func:`terms` depends on, so that an index made with other words is never
    taken for this one."""
    how = (_WORD.pattern, _UNSEEN.pattern, "NFKC", unicodedata.unidata_version)
    parts = (*how, *sorted(stop_words()))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


K1, B = 1.2, 0.75
N_BEST = 15
NO_WORDS = "no passage holds a word to search by"


class Retriever(Protocol):
    """Finds passages; ``revision`` names corpus and settings, for the manifest."""

    revision: str

    def search(self, query: str, k: int = N_BEST) -> list[Passage]:
        """The ``k`` best passages, best first."""
        ...


class BM25:
    """The reference retriever. Fine for some thousand passages: each query is scored against all of
    them.

    Words weigh by Okapi's idf. It is 0 or less for a word in half of the passages or more: where
    there is such a word, as in most small libraries, all words weigh by Lucene's idf.

    Raises ``ValueError`` where no passage holds a word, and for settings out of range.
    """

    def __init__(self, passages: Sequence[Passage], k1: float = K1, b: float = B):
        from rank_bm25 import BM25Okapi

        check(k1, b)
        self.passages = tuple(passages)
        documents = [terms(p.contents) for p in self.passages]
        if not any(documents):
            raise ValueError(NO_WORDS)
        self._index = BM25Okapi(documents, k1=k1, b=b)
        self._words = [set(document) for document in documents]
        within = Counter(word for words in self._words for word in words)
        if (n := len(documents)) <= 2 * max(within.values()):
            self._index.idf = {w: math.log1p((n - k + 0.5) / (k + 0.5)) for w, k in within.items()}
        marks = Marks()
        for passage in self.passages:
            marks.add(passage)
        self.revision = f"bm25 {marks.revision(k1, b)}"

    def search(self, query: str, k: int = N_BEST) -> list[Passage]:
        """The ``k`` best passages, best first, ties in corpus order; a passage that holds no word
        of the query is none."""
        asked = terms(query)
        order = np.argsort(-self.scores(query), kind="stable")
        found = (self.passages[i] for i in order if not self._words[i].isdisjoint(asked))
        return list(islice(found, max(k, 0)))

    def scores(self, query: str) -> np.ndarray:
        """Each passage's score, shape (passages,)."""
        return np.asarray(self._index.get_scores(terms(query)))


def check(k1: float, b: float) -> None:
    """Raises ``ValueError`` unless ``k1`` is at least 0 and ``b`` between 0 and 1."""
    if not 0 <= k1 < float("inf"):
        raise ValueError(f"k1 is {k1!r}; allowed is a number of at least 0")
    if not 0 <= b <= 1:
        raise ValueError(f"b is {b!r}; allowed is a number from 0 to 1")


class Marks:
    """Names the corpus that it is shown passage by passage: the same for the same passages,
    whatever files they were in."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self.n = 0

    def add(self, passage: Passage) -> None:
        """Takes note of the next passage."""
        self._digest.update(f"{chr(0) if self.n else ''}{passage.id}\1{passage.contents}".encode())
        self.n += 1

    def revision(self, k1: float, b: float) -> str:
        """Settings, number of passages, and the corpus's digest."""
        return f"k1={k1} b={b} passages={self.n} {self._digest.hexdigest()[:16]}"
