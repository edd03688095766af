"""A model that also talks: it asks the knowledge table's questions in an order of its own, and
answers as a patient."""

from __future__ import annotations

import re

from asking import ask
from fake_model import FakeEncoder, FakeModel, prompt_of

from studies.consultation import ConsultationRun, consultations
from trustlab.knowledge.findings import load_knowledge
from trustlab.models.base import Request
from trustlab.records import Case, Reply, Statement

TOLD = (
    ("cough", "Have you got a cough?", "I cough day and night."),
    ("fever", "Do you run a temperature?", "My fever began on Monday."),
    ("travel", "Have you been abroad?", "I came back from Spain last week."),
    ("rash", "Any rash?", "No."),
    ("smoke", "Do you smoke?", "I gave up smoking long ago."),
)
QUESTIONS = [question for _, question, _ in TOLD[1:]] + ["Do you swim?", "Do you sing?"]
"""Four that the facts answer, and two that they do not."""


def told_case(
    case_id: str = "a", diagnosis: str = "Influenza", accepted: tuple[str, ...] = ("Flu",)
) -> Case:
    """Five exchanges, one answered by a bare "No."; any but case ``a`` opens with its own words."""
    told = [Statement(f"Doctor: {q}\nPatient: {a}", f, a != "No.") for f, q, a in TOLD]
    if case_id != "a":
        hello = f"Doctor: What brings you, {case_id}?\nPatient: I am {case_id} and unwell."
        told.insert(0, Statement(hello))
    return Case(case_id, "made", tuple(told), diagnosis, (diagnosis, *accepted))


class Talker(FakeModel):
    """Asks, by a hash of what it was told, a question of ``questions`` that it did not ask; answers
    by the facts' own words.

    ``enough_from`` is the number of questions from which it says enough; ``replies`` overrules what
    it says to a purpose.
    """

    def __init__(
        self,
        questions: list[str] | None = None,
        enough_from: int = 3,
        replies: dict | None = None,
        **options,
    ) -> None:
        super().__init__(**options)
        self.questions = questions or [
            f.question for f in load_knowledge().findings.values() if f.form == "binary"
        ]
        self.enough_from, self.replies = enough_from, replies or {}

    def reply(self, request: Request, i: int) -> Reply:
        kind, user = prompt_of(request), request.messages[-1][1]
        if kind in self.replies:
            said = self.replies[kind](user) if callable(self.replies[kind]) else self.replies[kind]
        elif kind == "ask":
            left = [q for q in self.questions if f"Doctor: {q}\n" not in user]
            said = f"[{left[int(self.rng(request, 0).integers(len(left)))]}]"
        elif kind == "enough":
            said = "[enough]" if user.count("Doctor: ") > self.enough_from else "[more]"
        elif kind == "patient":
            asked = user.partition("<question>\n")[2].partition("\n</question>")[0]
            found = re.search(re.escape(f"Doctor: {asked}\nPatient: ") + "(.*)", user)
            words = found[1] if found else "I don't know"
            said = f"[{words}]"
        else:
            return super().reply(request, i)
        return said if isinstance(said, Reply) else Reply(said, n_tokens_in=50, n_tokens_out=5)


def cases(n: int) -> list[Case]:
    """``c00``, ``c01``, ...: influenza and common cold in turn."""
    return [told_case(f"c{i:02}", ("Influenza", "Common cold")[i % 2], ()) for i in range(n)]


def asked(
    n: int = 4, max_turns: int = 3, model: Talker | None = None, methods=("ce", "poc"), **options
) -> ConsultationRun:
    """A run of :func:`cases` with a talker that asks :data:`QUESTIONS`."""
    options = {"samples": 3, "encoder": FakeEncoder(), **options}
    return ask(consultations, cases(n), [model or Talker(QUESTIONS)], methods, max_turns, **options)
