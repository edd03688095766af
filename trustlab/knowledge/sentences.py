"""Splits running text into sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trustlab.knowledge.words import word_lists

_LISTS = {
    name: frozenset(words.split()) for name, words in word_lists("sentences").items()
}
"""What the words of ``words/sentences.yml`` do is said there."""
ABBREVIATIONS = _LISTS["abbreviations"]
OPENERS = _LISTS["openers"]
LETTERED = _LISTS["lettered"]
_EITHER_WAY = _LISTS["either_way"]
_NUMBER = _LISTS["number"]
_VALUED = _LISTS["valued"]
_LENGTHS = _LISTS["lengths"]

_STOP = re.compile(r"""[.!?]+["'”’)\]]*\s+(?=\S)""")
_BLANK_LINES = re.compile(r"\n[^\S\n]*(?:\n[^\S\n]*)+")
_OPENING = "\"'“‘(["
_DOTTED = re.compile(r"(?:[A-Za-z]\.){2,}")
_INITIAL = re.compile(r"[A-Z]\.")
_NAME = re.compile(r"[A-Z][a-z]+")
_APPOSED = re.compile(r"[a-z]+,")
_INTRODUCES = re.compile(
    r"\b(?:are|is|was|were|shows?|showed|shown|reveal(?:s|ed)?|follows?|following|below"
    r"|demonstrate[sd]?|includ(?:es?|ing))\b"
)
_VALUE = re.compile(r"\d|:\s*$")
_LONGEST_ROW = 12


def sentences(text: str) -> list[str]:
    """The sentences of running text, white space made single; cut again they stay as they are.

    A sentence ends at ``.``, ``!`` or ``?`` (and quotation marks or brackets that close) before
    white space, and at a blank line, unless

    - a lower-case letter follows, or it would hold no letter ("1.");
    - the word is one of :data:`ABBREVIATIONS`, an initial, or "No." before a number;
    - a number follows a measurement's name ("Hct. 30%", "max. 3"; but after a number "min." is
      minutes), or a length's unit that has a number before it ("5 ft. 4 in. tall");
    - the word is dotted ("i.v.", "etc.") and none of :data:`OPENERS` follows.

    Rows after a line that ends in a colon are a table and belong to its sentence: lines of at most
    12 words in which no sentence ends, and after a blank line those that hold a number or end in a
    colon. A line that introduces another table begins a sentence of its own.
    """
    pieces = []
    for block in _blocks(text):
        start = 0
        for stop in _STOP.finditer(block):
            end = stop.end()
            if _ends(block[start:end].strip(), block[end:]):
                pieces.append(block[start:end])
                start = end
        pieces.append(block[start:])
    return [" ".join(piece.split()) for piece in pieces if piece.strip()]


def _ends(piece: str, rest: str) -> bool:
    """Whether ``piece``, which closes with a stop, ends where ``rest`` begins."""
    *before, last = piece.split()
    word = last.lstrip(_OPENING)
    following = rest.split(maxsplit=1)[0]
    if rest[0].islower() or word in ABBREVIATIONS:
        return False
    if not any(map(str.isalpha, piece)):
        return False
    if word in _NUMBER:
        return not following[0].isdigit()
    if following[0].isdigit():
        is_after_number = bool(before) and before[-1][-1].isdigit()
        if word in _VALUED:
            return is_after_number
        if word in _LENGTHS:
            return not is_after_number
    if _DOTTED.fullmatch(word) or word in _EITHER_WAY:
        return following.strip(_OPENING + ",;:") in OPENERS
    if _INITIAL.fullmatch(word) and following[0].isupper():
        return not _is_initial(before, following)
    return True


def _is_initial(before: list[str], following: str) -> bool:
    """Whether a single capital between these words belongs to a person's name."""
    if following.strip(",;:.") in OPENERS:
        return False
    if not before:
        return True
    last = before[-1].lstrip(_OPENING)
    if last in ABBREVIATIONS or _INITIAL.fullmatch(last) or _APPOSED.fullmatch(last):
        return True
    return _NAME.fullmatch(last) is not None and last not in LETTERED


def _blocks(text: str) -> Iterator[str]:
    """Stretches of ``text`` that no sentence crosses: paragraphs, and tables with their heads."""
    block: list[str] = []
    in_table = False
    for paragraph in _BLANK_LINES.split(text):
        lines = paragraph.split("\n")
        if block and not _continues(block, in_table, lines[0]):
            yield "\n".join(block)
            block = []
            in_table = False
        for line in lines:
            if in_table and not _is_row(line):
                in_table = False
                if not line.lstrip()[:1].islower():
                    yield "\n".join(block)
                    block = []
            if block and _opens_table(block[-1]):
                in_table = True
            block.append(line)
    if block:
        yield "\n".join(block)


def _continues(block: list[str], in_table: bool, line: str) -> bool:
    """Whether a line after a blank one is the next row of the block's table."""
    if not _is_row(line):
        return False
    return _opens_table(block[-1]) or (in_table and bool(_VALUE.search(line)))


def _opens_table(line: str) -> bool:
    return line.rstrip().endswith(":")


def _is_row(line: str) -> bool:
    """Whether ``line`` can be a row of a table: short, no end of a sentence in it, and no
    introduction of another table."""
    words = line.split()
    if not 0 < len(words) <= _LONGEST_ROW:
        return False
    if _opens_table(line) and _INTRODUCES.search(line):
        return False
    # a letter before and a capital after: no stop in it may depend on its neighbours
    shown = f"x {' '.join(words)} X"
    for stop in _STOP.finditer(shown):
        end = stop.end()
        if _ends(shown[:end].strip(), shown[end:]):
            return False
    return True
