"""Says whether tokens spell a text, however a tokenizer writes them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from trustlab.parsing.marks import own_words


@lru_cache(maxsize=1)
def _byte_of_letter() -> dict[str, int]:
    """The letter that a byte-level tokenizer writes for a byte -> the byte: "Ġ" is a blank."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    bytes_by_letter = {chr(byte): byte for byte in printable}
    others = [byte for byte in range(256) if byte not in printable]
    for place, byte in enumerate(others):
        bytes_by_letter[chr(256 + place)] = byte
    return bytes_by_letter


def bytes_of(token: str) -> bytes | None:
    """The bytes that a byte-level tokenizer's token stands for; ``None`` where it is no such."""
    bytes_by_letter = _byte_of_letter()
    if any(letter not in bytes_by_letter for letter in token):
        return None
    return bytes(bytes_by_letter[letter] for letter in token)


def spells(tokens: Sequence[str], text: str) -> bool:
    """Whether tokens are those of a text, but for blanks, signs, case and marks of a template.
    Tokens may be written as their bytes ("Ġ"), and U+FFFD stands for a part of a character."""
    joined = "".join(tokens)
    letters = _letters(text)
    if _fits(joined, letters):
        return True
    token_bytes = bytes_of(joined)
    return token_bytes is not None and _fits(token_bytes.decode("utf-8", "replace"), letters)


def _fits(spelt: str, letters: str) -> bool:
    pattern = ""
    for part in re.split("(\ufffd+)", own_words(spelt)):
        if part.startswith("\ufffd"):
            pattern += f".{{0,{len(part)}}}"
        else:
            pattern += re.escape(_letters(part))
    return re.fullmatch(pattern, letters) is not None


def _letters(text: str) -> str:
    return "".join(letter for letter in text.casefold() if letter.isalnum())
