"""The prompts: one text file each, so that anyone can put another wording beside it.

A file has a ``[system]`` and a ``[user]`` part. ``{patient}`` is what has been told so far, set between
delimiters that cannot occur in it; ``{answer}`` is a proposed diagnosis. A prompt's text is part of every
cache key, because the messages are.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from trustlab.models.base import Messages

FOLDER = Path(__file__).parent
OPEN, CLOSE = "<patient>", "</patient>"
WITHHELD = "(nothing is known about the patient)"
"""What stands in the patient's place when the prior of an answer is scored."""


def names() -> list[str]:
    """The names of all prompts."""
    return sorted(p.stem for p in FOLDER.glob("*.txt"))


@lru_cache(maxsize=64)
def template(name: str) -> tuple[str, str]:
    """The (system, user) texts of prompt ``name``; ``ValueError`` names the known ones."""
    path = FOLDER / f"{name}.txt"
    if not path.is_file():
        raise ValueError(f"there is no prompt {name!r}; known are {', '.join(names())}")
    head, _, user = path.read_text(encoding="utf-8").partition("[user]\n")
    return head.removeprefix("[system]\n").strip(), user.strip()


def render(name: str, *, patient: str | None, answer: str | None = None) -> Messages:
    """The messages of prompt ``name``. ``patient=None`` leaves the patient information out (for the prior)."""
    system, user = template(name)
    shown = WITHHELD if patient is None else _harmless(patient)
    fill = {"patient": f"{OPEN}\n{shown}\n{CLOSE}", "answer": " ".join(_harmless(answer or "").split())}
    return (("system", system), ("user", re.sub(r"\{(patient|answer)\}", lambda m: fill[m[1]], user)))


def _harmless(text: str) -> str:
    """The text without our delimiters: their first character becomes a look-alike."""
    for mark in (OPEN, CLOSE):
        text = text.replace(mark, "\u2039" + mark[1:])
    return text
