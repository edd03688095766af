"""Messages and pages are held to the facts that they carry, not to their sentences."""

from __future__ import annotations

import re
from typing import Any


def _whole(fact: str) -> str:
    """A pattern for this text: no part of a longer word or number."""
    before = after = ""
    if fact[:1].isalnum():
        before = r"(?<!\w)(?<!\d[.,])" if fact[0].isdigit() else r"(?<!\w)"
    if fact[-1:].isalnum():
        after = r"(?!\w|[.,]\d)" if fact[-1].isdigit() else r"(?!\w)"
    return before + re.escape(fact) + after


def saying(*facts: Any) -> str:
    """A pattern for text that holds each of these, in whatever order; a tuple is several."""
    each: list[Any] = []
    for fact in facts:
        each += fact if isinstance(fact, tuple) else [fact]
    return r"(?s)\A" + "".join(f"(?=.*{_whole(str(fact))})" for fact in each)


def says(text: Any, *facts: Any) -> bool:
    """Whether a text, or an error's, holds each of these."""
    return re.search(saying(*facts), str(text)) is not None
