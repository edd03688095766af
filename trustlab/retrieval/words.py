"""What passages and queries are compared by: one way of cutting text into words, the same for every retriever."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import cache

_WORD = re.compile(r"\w+")


def terms(text: str) -> list[str]:
    """What is searched by: lower-case words and numbers, without English stop words (scikit-learn's list); no stemming."""
    stop = stop_words()
    return [word for word in _WORD.findall(text.lower()) if word not in stop]


@cache
def stop_words() -> frozenset[str]:
    """scikit-learn's 318 English stop words."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return ENGLISH_STOP_WORDS


def words_revision() -> str:
    """Names all that :func:`terms` depends on, so that an index made with other words is never taken for this one."""
    parts = (_WORD.pattern, unicodedata.unidata_version, *sorted(stop_words()))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
