"""The collection of replies as chat models write them: each is read as a person labelled it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from each import each

from trustlab.models.base import About
from trustlab.parsing.agents import read_enough, read_question, read_replies, read_wording
from trustlab.parsing.counts import both, named, read_reply
from trustlab.parsing.scores import guesses, score_0_100, true_or_false
from trustlab.records import PLACEHOLDER, Reading, Reply

COLLECTION = Path(__file__).parent / "data" / "chat_replies.yml"
KEPT: dict[str, Any] = yaml.safe_load(COLLECTION.read_text(encoding="utf-8"))
ROWS = [
    (step, *row, *[None] * (3 - len(row)))
    for part in ("written", "real")
    for step, rows in KEPT[part].items()
    for row in rows
]
READERS: dict[str, Callable[[Reply, str | None, Reading], Any]] = {
    "answer": lambda reply, _, how: named(reply, how).text,
    "keyword": lambda reply, _, how: named(reply, how).text,
    "score": lambda reply, patient, how: score_0_100(reply.text, patient, how),
    "guesses": lambda reply, patient, how: guesses(reply.text, patient=patient, reading=how),
    "verdict": lambda reply, _, how: true_or_false(reply.text, how),
    "question": lambda reply, _, how: read_question(reply, how),
    "enough": lambda reply, _, how: read_enough(reply, how),
    "wording": lambda reply, _, how: read_wording(reply, how),
    "patient": lambda reply, _, how: read_replies(reply, how),
}


def read(step: str, text: str, patient: str | None, how: Reading) -> Any:
    """What is read; PLACEHOLDER as the collection has it."""

    def reads(reply: Reply, reading: Reading) -> Any:
        return READERS[step](reply, patient, reading)

    found = read_reply(Reply(text), About("d", "c", 0, **both(reads, how)))
    value = list(found.read) if isinstance(found.read, tuple) else found.read
    return "PLACEHOLDER" if found.kind == "placeholder" else value


@each(("step", "text", "label", "patient"), ROWS)
def test_a_reply_is_read_as_it_is_labelled(
    step: str, text: str, label: Any, patient: str | None
) -> None:
    expected = KEPT["misread"].get(text, label)
    assert read(step, text, patient, "chat") == expected
    assert text not in KEPT["misread"] or expected != label, "it is read rightly by now"
    strict = read(step, text, patient, "strict")
    assert strict in (expected, None) or "PLACEHOLDER" in (strict, expected)
    assert strict is None or "[" in text or step == "verdict"


def test_a_placeholder_has_its_own_words_in_each_step() -> None:
    about = About("d", "c", 0, **both(read_question, "chat"))
    expected = PLACEHOLDER.replace("diagnosis", "question")
    assert read_reply(Reply("[question]"), about).why == expected
