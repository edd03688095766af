"""What one panel, its plan and its reviews came to, as rows of the tables of :mod:`trustlab.experiments.trust`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trustlab.agents.plan import Proposed
from trustlab.agents.reviewers import Review
from trustlab.parsing.whole import CUT
from trustlab.records import Mark, Opinion, Panel, View
from trustlab.safety import load_safety

KEYS = ("model", "dataset", "configuration", "n_doctors", "safety", "level", "case_id")
REVIEWS = [
    *KEYS, "diagnoses", "diagnosis", "tied", "n_no_answer", "truth", "correct", "correct_share",
    "cosine", "cosine_missing", "cosine_med", "cosine_med_missing", "cosine_med_proxy",
    "n_prescriptions", "n_safe", "n_caution", "n_unsafe", "n_rx_unknown", "n_rx_unreadable",
    "n_tests", "n_unflagged", "n_risky", "n_redundant", "n_tests_unknown", "n_tests_unreadable", "plan_missing",
]  # fmt: skip
OPINIONS = [
    "model",
    "dataset",
    "level",
    "case_id",
    "doctor",
    "speaker",
    "diagnosis",
    "vote",
    "thinking",
    "cosine",
    "missing",
]
MARKS = [
    "model", "dataset", "configuration", "level", "case_id", "kind", "item", "text", "known", "said", "verdict", "quote",
    "quote_occurs", "reason", "missing", "rule_verdict", "rule_quote", "rule",
]  # fmt: skip
RX = {
    "SAFE": "n_safe",
    "SAFE WITH CAUTION": "n_caution",
    "UNSAFE": "n_unsafe",
    "UNKNOWN": "n_rx_unknown",
    None: "n_rx_unreadable",
}
TESTS = {
    "FINE": "n_unflagged",
    "RISKY": "n_risky",
    "REDUNDANT": "n_redundant",
    "UNKNOWN": "n_tests_unknown",
    None: "n_tests_unreadable",
}


@dataclass(frozen=True)
class Checked:
    """A configuration's panel for one view, the plan of the doctor in charge, the reviewers' marks and the rule check's."""

    model: str
    configuration: str
    n_doctors: int
    view: View
    panel: Panel
    medical_cosines: tuple[float, ...] | None
    no_medical: str
    proposed: Proposed
    review: Review | None
    rules: Review | None
    correct: float = math.nan
    correct_share: float = math.nan
    proxy: str = ""

    @property
    def keys(self) -> dict[str, Any]:
        """What every row of it begins with."""
        case = self.view.case
        return {
            "model": self.model,
            "dataset": case.dataset,
            "level": self.view.level,
            "case_id": case.case_id,
        }


def verdict(mark: Mark, known: bool) -> str | None:
    """The verdict that counts: of what the safety table does not know it is UNKNOWN, whatever the reviewer says."""
    return mark.verdict if known else "UNKNOWN"


def no_answer(opinion: Opinion) -> bool:
    """Whether a doctor's reply is no answer: it was cut off, is all thought, or never came."""
    return opinion.raw is None or opinion.missing.startswith(CUT)


def review_rows(c: Checked) -> Iterator[dict[str, Any]]:
    """Two rows: safety off (no plan is reviewed, all counts of marks are 0) and on."""
    plan = c.proposed.plan
    named = {
        **c.keys,
        "configuration": c.configuration,
        "n_doctors": c.n_doctors,
        "diagnoses": c.panel.votes,
        "diagnosis": c.panel.diagnosis,
        "tied": c.panel.tied,
        "n_no_answer": sum(no_answer(o) for o in c.panel.opinions),
        "truth": c.view.case.diagnosis,
        "correct": c.correct,
        "correct_share": c.correct_share,
        **_cosine("cosine", c.panel.cosines, ""),
        **_cosine("cosine_med", c.medical_cosines, c.no_medical),
        "cosine_med_proxy": c.proxy,
        "n_prescriptions": len(plan.prescriptions) if plan else 0,
        "n_tests": len(plan.tests) if plan else 0,
        "plan_missing": c.proposed.missing,
    }
    empty = dict.fromkeys([*RX.values(), *TESTS.values()], 0)
    yield {**named, "safety": False, **empty}
    drugs, tests = known_items(c)
    counts = Counter(empty)
    if c.review:
        counts.update(RX[verdict(m, k)] for m, k in zip(c.review.prescriptions, drugs, strict=True))
        counts.update(TESTS[verdict(m, k)] for m, k in zip(c.review.tests, tests, strict=True))
    yield {**named, "safety": True, **counts}


def known_items(c: Checked) -> tuple[list[bool], list[bool]]:
    """Whether the safety table knows each prescription's drug, and each test."""
    plan, safety = c.proposed.plan, load_safety()
    if plan is None:
        return [], []
    drugs = [safety.drug_named(p.drug) is not None for p in plan.prescriptions]
    return drugs, [safety.test_named(t) is not None for t in plan.tests]


def opinion_rows(c: Checked) -> Iterator[dict[str, Any]]:
    """A row for each doctor of a panel, from 1."""
    for i, (opinion, name) in enumerate(zip(c.panel.opinions, c.panel.votes, strict=True)):
        yield {
            **c.keys,
            "doctor": i + 1,
            "speaker": opinion.model,
            "diagnosis": opinion.diagnosis,
            "vote": name,
            "thinking": opinion.thinking,
            "cosine": c.panel.cosines[i] if c.panel.cosines else math.nan,
            "missing": opinion.missing,
        }


def mark_rows(c: Checked) -> Iterator[dict[str, Any]]:
    """A row for each prescription and test: ``said`` is the reviewer's own word, ``verdict`` what counts."""
    plan = c.proposed.plan
    if plan is None or c.review is None or c.rules is None:
        return
    drugs, tests = known_items(c)
    kinds = (
        (
            "prescription",
            [str(p) for p in plan.prescriptions],
            drugs,
            c.review.prescriptions,
            c.rules.prescriptions,
        ),
        ("test", list(plan.tests), tests, c.review.tests, c.rules.tests),
    )
    for kind, texts, known, marks, rules in kinds:
        for i, (text, k, mark, rule) in enumerate(zip(texts, known, marks, rules, strict=True), 1):
            yield {
                **c.keys,
                "configuration": c.configuration,
                "kind": kind,
                "item": i,
                "text": text,
                "known": k,
                "said": mark.verdict,
                "verdict": verdict(mark, k),
                "quote": mark.quote,
                "quote_occurs": mark.quote_occurs,
                "reason": mark.reason,
                "missing": mark.missing,
                "rule_verdict": rule.verdict,
                "rule_quote": rule.quote,
                "rule": rule.rule,
            }


def _cosine(name: str, values: Sequence[float] | None, why: str) -> dict[str, Any]:
    """The mean over the doctors that have one, and why there is none."""
    there = [v for v in values or () if not math.isnan(v)]
    missing = "" if there else why or "no doctor gave both reasoning and diagnosis"
    return {name: sum(there) / len(there) if there else math.nan, f"{name}_missing": missing}
