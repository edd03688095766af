"""The prompts: one text file each, so that anyone can put another wording beside it.

A file has an ``[about]`` part, which says what the prompt is for and is never sent, a ``[system]``
and a ``[user]`` part. In braces stand its slots: ``{patient}`` (what has been told so far),
``{passages}`` and ``{profile}`` are set between delimiters that cannot occur in them; ``{answer}``
is a proposed diagnosis. A grader's prompt shows ``{truth}`` (the true names) and ``{proposed}``
(the answer) between delimiters instead; those that word a statement anew show its ``{question}``
and ``{reply}``; the one that speaks for a patient shows the ``{question}`` and all ``{facts}``;
those of doctors and reviewers show the patient's ``{chart}``, and reviewers the ``{plan}``; the one
that lets choose shows the ``{candidates}``. A line
that begins with ``@name`` belongs to the prompt only where the option ``name`` is on, ``@not name``
only where it is off, ``@a,not b`` where both hold. A prompt's text is part of every cache key,
because the messages are.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path

from trustlab.models.base import Messages

FOLDER = Path(__file__).parent
TAGS = ("patient", "passages", "profile")
"""Slots about a patient that are set between delimiters of their own name."""
OTHER_TAGS = (
    "truth", "proposed", "question", "reply", "facts", "chart", "plan", "candidates",
)  # fmt: skip
"""Slots of single prompts (a grader's, those that word a statement anew, the one that speaks for a
patient, those of doctors and reviewers), set the same way."""
WITHHELD = "(nothing is known about the patient)"
"""What stands in the patient's place when the prior of an answer is scored."""
_CONDITION = re.compile(r"@((?:not )?[a-z]+(?:,(?:not )?[a-z]+)*) (.*)", re.DOTALL)
_MARK = re.compile("<(/?)(" + "|".join(TAGS + OTHER_TAGS) + ")>")


def names() -> list[str]:
    """The names of all prompts."""
    return sorted(p.stem for p in FOLDER.glob("*.txt"))


@lru_cache(maxsize=64)
def template(name: str) -> tuple[str, str]:
    """The (system, user) texts of prompt ``name``; ``ValueError`` names the known ones."""
    _, system, user = _parts(name)
    return system, user


def about(name: str) -> str:
    """What prompt ``name`` is for, in a sentence; ``ValueError`` names the known ones."""
    return _parts(name)[0]


def _parts(name: str) -> tuple[str, str, str]:
    """The (about, system, user) texts of a prompt's file."""
    path = FOLDER / f"{name}.txt"
    if not path.is_file():
        raise ValueError(f"there is no prompt {name!r}; known are {', '.join(names())}")
    head, _, user = path.read_text(encoding="utf-8").partition("[user]\n")
    told, _, system = head.partition("[system]\n")
    return told.removeprefix("[about]\n").strip(), system.strip(), user.strip()


def render(
    name: str,
    *,
    patient: str | None = None,
    answer: str | None = None,
    passages: str | None = None,
    profile: str | None = None,
    options: Collection[str] = (),
    **others: str,
) -> Messages:
    """The messages of prompt ``name``. ``patient=None`` leaves the patient information out (for the
    prior).

    ``others`` fill :data:`OTHER_TAGS`; ``TypeError`` for a slot that there is not.
    """
    if strange := set(others) - set(OTHER_TAGS):
        raise TypeError(
            f"there is no slot {', '.join(sorted(strange))}; there are"
            f" {', '.join((*TAGS, 'answer', *OTHER_TAGS))}"
        )
    texts = {
        "patient": WITHHELD if patient is None else patient,
        "passages": passages or "",
        "profile": profile or "",
    }
    texts |= {tag: others.get(tag) or "(none)" for tag in OTHER_TAGS}
    fill = {tag: f"<{tag}>\n{harmless(text)}\n</{tag}>" for tag, text in texts.items()}
    fill["answer"] = " ".join(harmless(answer or "").split())
    slots = re.compile(r"\{(" + "|".join(fill) + r")\}")
    system, user = (
        slots.sub(lambda m: fill[m[1]], _chosen(part, options)) for part in template(name)
    )
    return (("system", system), ("user", user))


def _chosen(text: str, options: Collection[str]) -> str:
    """The lines of a template that the options leave in."""
    kept = []
    for line in text.split("\n"):
        marked = _CONDITION.fullmatch(line)
        if marked is None:
            kept.append(line)
        elif all(
            (c.removeprefix("not ") in options) != c.startswith("not ")
            for c in marked[1].split(",")
        ):
            kept.append(marked[2])
    return "\n".join(kept)


def harmless(text: str) -> str:
    """The text without our delimiters: their first character becomes a look-alike."""
    return _MARK.sub(lambda m: "\u2039" + m[0][1:], text)
