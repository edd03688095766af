"""Replies in the manners of chat models, written for these tests, and what is read of each.

``found`` is read with ``reading="chat"``, ``strict`` in the printed form alone. Where nothing is,
``why`` says so (of JSON: the words of the refusal), and ``unless`` is the reply without that flaw,
which gives ``found`` of its own: so the reason is the one that is named.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from fake_medconf import CRITERIA, LEVELS, confidence, evidence_json, profile_json, rows_of, summary


@dataclass(frozen=True)
class Told:
    """One reply to one step."""

    step: str
    text: str
    found: Any = None
    strict: Any = None
    why: str = ""
    unless: tuple[str, Any] | None = None


def box(words: str) -> str:
    return "\\boxed{" + words + "}"


PROFILE = profile_json()
ROWS = json.loads(PROFILE)
LISTED = json.dumps(ROWS, indent=2)


def upper(rows: list[dict[str, Any]]) -> str:
    """The rows with keys and importance as chat models like to write them."""
    return json.dumps(
        [{k.title(): v.title() if k == "importance" else v for k, v in row.items()} for row in rows]
    )


PROFILES = [
    Told("profile", f"Here is the profile:\n\n```json\n{LISTED}\n```", CRITERIA),
    Told("profile", f"Here is the symptom profile for influenza: {PROFILE}", CRITERIA),
    Told("profile", upper(ROWS), CRITERIA),
    Told("profile", json.dumps({"diagnosis": "Flu", "symptoms": ROWS}), CRITERIA),
    Told("profile", json.dumps([{**r, "id": str(r["id"])} for r in ROWS]), CRITERIA),
    Told("profile", f"Sure!\n{json.dumps({'criteria': ROWS}, indent=1)}", CRITERIA),
    Told("profile", f"Output:\n```\n{PROFILE}", CRITERIA),
    Told("profile", json.dumps({"result": {"profile": ROWS, "sources": ["p1"]}}),
         CRITERIA),
]  # fmt: skip

EVIDENCE = evidence_json()
KEPT = (LEVELS, 70.0)
WHOLE = json.loads(EVIDENCE)


def said(score: Any, **more: Any) -> str:
    """An assessment with this as its score."""
    return json.dumps(WHOLE | {"confidence": {"reasoning": "It fits.", "confidence_score": score}}
                      | more)  # fmt: skip


EVIDENCES = [
    Told("evidence", said(70), KEPT, (LEVELS, None)),
    Told("evidence", EVIDENCE.replace('"<<70>>"', "<<70>>"), KEPT),
    Told("evidence", f"Here is the assessment:\n{EVIDENCE}", KEPT),
    Told("evidence", said("70/100"), KEPT, (LEVELS, None)),
    Told("evidence", EVIDENCE.replace("supported", "Supported"), KEPT, (None, 70.0)),
    Told("evidence", EVIDENCE.replace("support_level", "Support Level"), KEPT,
         (None, 70.0)),
    Told("evidence", json.dumps({"assessment": WHOLE}), KEPT),
    Told("evidence", said("<<70/100>>"), KEPT, (LEVELS, None)),
    Told("evidence", json.dumps(WHOLE | {"confidence": 70}), KEPT, (LEVELS, None)),
    Told("evidence", json.dumps({k: v for k, v in WHOLE.items() if k != "confidence"}
         | {"confidence_score": "<<70>>", "reasoning": "It fits."}), KEPT, (LEVELS, None)),
    Told("evidence", json.dumps({"criteria": rows_of(), "summary": summary()
         | {"confidence": {"confidence_score": 70}}}), KEPT, (LEVELS, None)),
    Told("evidence", f"I weigh it all.\n\n{said('70')}\n\nDone.", KEPT),
    Told("evidence", json.dumps({"criteria": [{**r, "id": str(r["id"])}
         for r in rows_of()], **confidence()}), KEPT, (None, 70.0)),
    Told("evidence", json.dumps(rows_of()), (LEVELS, None)),
    Told("evidence", said(0.7), (LEVELS, None), (LEVELS, None)),
    Told("evidence", said("70 to 80"), (LEVELS, None), (LEVELS, None)),
    Told("evidence", said(True), (LEVELS, None), (LEVELS, None)),
    Told("evidence", said(70, confidence_score=80), (LEVELS, None), (LEVELS, None)),
    Told("evidence", "The fever fits, nothing speaks against it.\n\nConfidence: <<70>>",
         (None, 70.0), (None, None)),
]  # fmt: skip

SECTION = "<thinking_process>Fever and cough.</thinking_process>\n"
PLAN = {
    "prescriptions": [{"drug": "paracetamol", "dose": "1 g", "route": "by mouth"}],
    "tests": ["ECG"],
}
PLANNED = (("paracetamol, 1 g, by mouth",), ("ECG",))
PLAIN = json.dumps(PLAN)


def marks(key: str, *verdicts: str, ids: tuple[Any, ...] = (1, 2)) -> str:
    return json.dumps([{"id": i, key: v} for i, v in zip(ids, verdicts, strict=True)])


PANEL = [
    Told("opinion", f"{SECTION}**Influenza**", "Influenza"),
    Told("opinion", f"{SECTION}{box('Influenza')}", "Influenza"),
    Told("plan", f"Here is the plan:\n{PLAIN}", PLANNED),
    Told("plan", PLAIN.replace("drug", "Drug").replace("tests", "Tests"), PLANNED),
    Told("plan", json.dumps({"plan": PLAN}), PLANNED),
    Told("ratings", marks("rating", "Safe", "Safe with caution"),
         ("SAFE", "SAFE WITH CAUTION"), (None, None)),
    Told("ratings", f"My review: {marks('rating', 'SAFE', 'UNSAFE')}",
         ("SAFE", "UNSAFE"), (None, None)),
    Told("ratings", marks("rating", "SAFE", "UNSAFE", ids=("1", "2")),
         ("SAFE", "UNSAFE"), (None, None)),
    Told("ratings", marks("Rating", "unsafe", "mostly safe"), ("UNSAFE", None),
         (None, None)),
    Told("ratings", marks("rating", "SAFE", "UNSAFE", ids=("1", 1)), (None, None),
         (None, None)),
    Told("flags", json.dumps({"reviews": json.loads(marks("flag", "Fine", "Risky")),
         "note": "none"}), ("FINE", "RISKY"), (None, None)),
    Told("flags", f"```json\n{marks('flag', 'fine', 'REDUNDANT')}\n```\nAll in all fine.",
         ("FINE", "REDUNDANT"), (None, None)),
]  # fmt: skip

TOLD = [*PROFILES, *EVIDENCES, *PANEL]
