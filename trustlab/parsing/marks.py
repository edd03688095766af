"""Takes off a reply what is none of its words; blanks stand in its place.

Patterns of chat.yml: ``others`` begins somebody else's turn, ``end`` ends a turn or begins another,
``mark`` is any mark of a chat template, ``front`` are those in front of a reply's own turn, perhaps
with the question again. "[PAD]" is also a disease: it is a mark only behind a bracket. ``cited``
are brackets that are no answer: the text of a link, a footnote, a source, a year, or a label such
as "Confidence: high".
"""

from __future__ import annotations

import re

from trustlab.parsing.chat import PATTERNS


def _blanks(part: re.Match[str]) -> str:
    return " " * len(part[0])


def own_turn(text: str) -> str:
    """The reply without marks, up to the first that ends its turn or begins another: what stands
    behind is a turn that the model invented."""
    if not PATTERNS["mark"].search(text):  # of most replies
        return text
    text = PATTERNS["front"].sub(_blanks, text, count=1)
    end = PATTERNS["end"].search(text)
    if end:
        text = text[: end.start()]
    return PATTERNS["mark"].sub(_blanks, text)


def own_words(text: str) -> str:
    """:func:`own_turn` without brackets that name a source, or say how sure something is."""
    return PATTERNS["cited"].sub(_blanks, own_turn(text))


def without_footnotes(words: str) -> str:
    """An answer that is no number, without small numbers in brackets right behind it."""
    return PATTERNS["footnote"].sub(_blanks, words)
