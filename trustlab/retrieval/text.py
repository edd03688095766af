"""Plain text cut into passages."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from trustlab.datasets.sentences import sentences

LONGEST = 1000
"""Characters in a passage at most, as in MedRAG's textbook snippets."""


def cut(text: str) -> Iterator[str]:
    """Passages of at most :data:`LONGEST` characters that end where a sentence does, without overlap; white space is single.

    A sentence that is longer is cut between words. A single word that is longer stays whole.
    """
    passage = ""
    for sentence in sentences(text):
        for piece in _pieces(sentence):
            if passage and len(passage) + 1 + len(piece) > LONGEST:
                yield passage
                passage = piece
            else:
                passage = f"{passage} {piece}".lstrip()
    if passage:
        yield passage


def _pieces(sentence: str) -> list[str]:
    if len(sentence) <= LONGEST:
        return [sentence]
    return textwrap.wrap(sentence, LONGEST, break_long_words=False, break_on_hyphens=False)
