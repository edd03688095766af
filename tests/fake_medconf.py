"""A model that answers MedConf's three prompts from a script, a library of made passages, and
replies of the asked-for form."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from fake_model import TEXT_ONLY, FakeModel

from trustlab.models.base import Messages, Request
from trustlab.records import IMPORTANCES, SUPPORT_LEVELS, Criterion, Evidence, Reply
from trustlab.retrieval import Passage

Script = str | None | Reply | Callable[[Request], "str | None | Reply"]

ILLS = "Flu/common/cold/laryngitis/pulmonary/embolism"
PASSAGES = tuple(
    Passage(f"p{i}", f"{ILLS} {i}", "Words.", f"{ILLS} {i}. Words of\n  passage {i}.")
    for i in (3, 1, 4, 2, 5)
)
"""In the order in which :class:`Shelf` finds them; in each a line break and two spaces."""
CRITERIA = (
    Criterion(1, "fever", "strong"),
    Criterion(2, "dry cough", "moderate"),
    Criterion(3, "aching muscles", "weak"),
)
PROSE = "Look for fever, a dry cough and aching muscles."
PATIENT = (
    "Doctor: Have you got a fever?\nPatient: Yes, since Monday.\nDoctor: Do you cough?\nPatient:"
    " No, I don't cough at all."
)
LEVELS = {1: "supported", 2: "contradicted", 3: "missing"}
QUOTES = {1: "Yes, since Monday.", 2: "No, I don't cough at all."}


class Shelf:
    """Finds :data:`PASSAGES` for every word but "nothing"; ``asked`` keeps what it was asked."""

    revision = "shelf r1"

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def search(self, query: str, k: int = 15) -> list[Passage]:
        self.asked.append((query, k))
        return [] if query == "nothing" else list(PASSAGES[:k])


class Scripted(FakeModel):
    """``keyword``, ``profile`` and ``evidence`` say how each is answered: else well-formed."""

    def __init__(self, name: str = "scripted", **script: Script) -> None:
        super().__init__(name, TEXT_ONLY)
        usual = {"keyword": "[flu]", "profile": asked_profile, "evidence": asked_evidence}
        self.script: dict[str, Script] = usual | script

    def reply(self, request: Request, i: int) -> Reply:
        assert (request.n, request.temperature, request.want) == (1, 0.0, frozenset())
        found = self.script[request.purpose]
        found = found(request) if callable(found) else found
        return found if isinstance(found, Reply) else Reply(found)


class Narrow(Scripted):
    """The same with a window, counted in words."""

    def __init__(self, window: float, **script: Script) -> None:
        super().__init__(**script)
        self.window = window

    def count_tokens(self, messages: Messages) -> int:
        return sum(len(text.split()) for _, text in messages)

    def reply(self, request: Request, i: int) -> Reply:
        assert self.count_tokens(request.messages) + request.max_tokens <= self.window
        return super().reply(request, i)


def user_of(request: Request) -> str:
    return dict(request.messages)["user"]


def about(
    diagnosis: str, bad: Script, good: Callable[[Request], str]
) -> Callable[[Request], str | None | Reply]:
    """The bad reply about one diagnosis, the good one about any other."""

    def reply(request: Request) -> str | None | Reply:
        if f"iagnosis: {diagnosis}\n" not in user_of(request):
            return good(request)
        return bad(request) if callable(bad) else bad

    return reply


def profile_json(importance: bool = True) -> str:
    rows = [{"id": c.id, "description": c.description} for c in CRITERIA]
    weights = [{"importance": c.importance} if importance else {} for c in CRITERIA]
    return json.dumps([row | weight for row, weight in zip(rows, weights, strict=True)])


def asked_profile(request: Request) -> str:
    """A profile in the form that the prompt's last line asks for."""
    last = user_of(request).splitlines()[-1]
    return profile_json("importance" in last) if "JSON list" in last else PROSE


def asked_evidence(request: Request) -> str:
    """An assessment in the form that the prompt's last line asks for."""
    last = user_of(request).splitlines()[-1]
    if '"criteria"' in last:
        return evidence_json(weighed="importance" in last)
    return json.dumps(confidence())


def confidence(score: str = "<<70>>", reasoning: str = "It fits well.") -> dict[str, object]:
    return {"confidence": {"reasoning": reasoning, "confidence_score": score}}


def summary(levels: Mapping[int, str] = LEVELS, weighed: bool = True) -> dict[str, object]:
    """The ids by support level, and by importance where criteria have one."""
    found: dict[str, object] = {}
    for level in SUPPORT_LEVELS:
        ids = [i for i in levels if levels[i] == level]
        each = {w: [i for i in ids if i < 4 and IMPORTANCES[i - 1] == w] for w in IMPORTANCES}
        found[level] = each if weighed else ids
    return found


def rows_of(
    levels: Mapping[int, str] = LEVELS, quotes: Mapping[int, str | None] = QUOTES
) -> list[dict[str, object]]:
    return [
        {"id": i, "description": "x", "support_level": s, "evidence": quotes.get(i)}
        for i, s in levels.items()
    ]


def evidence_json(
    levels: Mapping[int, str] = LEVELS,
    quotes: Mapping[int, str | None] = QUOTES,
    *,
    weighed: bool = True,
    score: str = "<<70>>",
) -> str:
    """A whole assessment as it is asked for."""
    criteria = {"criteria": rows_of(levels, quotes), "summary": summary(levels, weighed)}
    return json.dumps(criteria | confidence(score))


def table(levels: Sequence[str], importances: Sequence[str | None]) -> tuple[Evidence, ...]:
    """A table of evidence with these support levels and importances."""
    pairs = enumerate(zip(levels, importances, strict=True), 1)
    return tuple(
        Evidence(Criterion(i, f"criterion {i}", weight), level) for i, (level, weight) in pairs
    )


CASE_STUDY = table(
    ["missing", "supported", "supported", *["missing"] * 5],
    ["strong", "strong", "moderate", "strong", "moderate", "moderate", "weak", "weak"],
)
"""The case study of Ren et al. 2026: eight criteria, of which 2 and 3 are supported."""
