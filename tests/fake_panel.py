"""A model that plays doctors and reviewers from a script, an encoder without weights, and cases for
them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from fake_model import TEXT_ONLY, FakeModel

from trustlab.models.base import Request
from trustlab.records import Case, Reply, Statement

Words = str | Reply
Script = Words | Sequence[Words] | Callable[[Request, int], Words]


def opinion(diagnosis: str, thinking: str = "Cough and fever.") -> str:
    return f"<thinking_process>{thinking}</thinking_process>\n[{diagnosis}]"


def plan_json(*drugs: str, tests: Sequence[str] = ()) -> str:
    rows = [{"drug": drug, "dose": "1 g", "route": "by mouth"} for drug in drugs]
    return json.dumps({"prescriptions": rows, "tests": list(tests)})


def marks_json(key: str, *verdicts: str, quotes: Sequence[str | None] = ()) -> str:
    pairs = enumerate(zip(verdicts, quotes or [None] * len(verdicts), strict=True), 1)
    return json.dumps([{"id": i, "quote": q, key: v, "reason": None} for i, (v, q) in pairs])


class FakePanel(FakeModel):
    """Replies by purpose; a list is gone through by the reply's index: each doctor has its own."""

    def __init__(self, name: str = "fake", **script: Script) -> None:
        super().__init__(name, TEXT_ONLY)
        self.script = script

    def reply(self, request: Request, i: int) -> Reply:
        found: Any = self.script[request.purpose]
        if callable(found):
            found = found(request, i)
        elif not isinstance(found, str | Reply):
            found = found[i]
        return found if isinstance(found, Reply) else Reply(found)


def by_case(**scripts: Script) -> Callable[[Request, int], Words]:
    """Another script for each case, told apart by its id, which :func:`case`'s patient says."""

    def reply(request: Request, i: int) -> Words:
        told = request.messages[-1][1]
        found = next(s for case_id, s in scripts.items() if f"I am {case_id}." in told)
        if callable(found):
            return found(request, i)
        return found if isinstance(found, str | Reply) else found[i]

    return reply


class Wordy:
    """A text is the unit vector of (times "fever", times "cough"); ``room`` words a window."""

    name, revision = "wordy", "wordy r1"

    def __init__(self, room: int = 100) -> None:
        self.room, self.seen = room, [""][:0]

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self.seen += texts
        counts = [[t.lower().count(word) for word in ("fever", "cough")] for t in texts]
        rows = np.array(counts, dtype=np.float32).reshape(-1, 2)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def windows(self, text: str) -> list[str]:
        words = text.split()
        return [" ".join(words[i : i + self.room]) for i in range(0, len(words), self.room)]


def case(case_id: str, diagnosis: str = "Influenza", n: int = 11, **patient: Any) -> Case:
    """A case whose patient says its id first."""
    first = Statement(f"Doctor: Who are you?\nPatient: I am {case_id}.")
    rest = tuple(Statement(f"Doctor: Question {i}?\nPatient: Answer {i}.") for i in range(2, n + 1))
    return Case(case_id, "made", (first, *rest), diagnosis, (diagnosis,), patient)
