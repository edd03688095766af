"""Lists what a run did, as facts for a methods section."""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportGeneralTypeIssues=false

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, StrictUndefined

from trustlab.confidence import METHODS
from trustlab.confidence.registry import FAMILIES, OWN
from trustlab.metrics.estimate import MIN_CASES, groups, most_frequent
from trustlab.paths import NOTICE
from trustlab.runs import formatted
from trustlab.runs.collect import SAMPLE_NEEDS
from trustlab.runs.costs import method_costs, readers
from trustlab.runs.folder.saved import manifest
from trustlab.runs.run import Run

CHOICES: dict[str, frozenset[str]] = {
    "renyi_alpha": frozenset({"answer.renyi"}),
    "pmi_weight": frozenset({"conditional_pmi", "conditional_pmi_original"}),
    "pmi_threshold": frozenset({"conditional_pmi", "conditional_pmi_original"}),
    "n_alternatives": frozenset({"alternative_entailment"}),
    "sar_temperature": frozenset({"sentence_sar", "sentence_sar_printed", "sar"}),
    "eigenvalue_cut": frozenset({"ecc"}),
    "topk_combination": frozenset({"topk_ce"}),
    "relevance_context": frozenset({"relevance", "sample_relevance"}),
    "entailment_context": frozenset({"entailment", "contradiction", "alternative_entailment"}),
}
"""Open choices of the methods, and the methods or needs, by name, that read each."""
SHOWN = {
    "purposes": "requests", "n_replies": "replies", "n_tokens_in": "tokens in",
    "n_tokens_out": "tokens out", "usd": "US dollars", "not_counted": "not counted",
    "missing": "remarks",
}  # fmt: skip
"""Columns of the costs that are shown, and their heads."""


@dataclass(frozen=True, repr=False)
class Report:
    """A run's facts as ``text``, one on each line, and ``costs``, the table of ``method_costs``."""

    text: str
    costs: pd.DataFrame

    @property
    def shown(self) -> pd.DataFrame:
        """The costs of one answer, to read; methods of a model with equal costs share one row."""
        kept = [c for c in SHOWN if not (self.costs[c].isna() | self.costs[c].eq("")).all()]
        table = self.costs.assign(**{c: self.costs[c].map(_number) for c in kept})
        rows = table.groupby(["model", *kept], sort=False)["method"].agg(", ".join).reset_index()
        return rows.rename(columns={**SHOWN, "method": "methods"})

    def __str__(self) -> str:
        return f"{self.text}\n\n{self.shown.to_string(index=False, justify='left')}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        words = f"<pre style='white-space:pre-wrap'>{escape(self.text)}</pre>"
        return words + self.shown.to_html(index=False)


def _number(value: Any) -> str:
    """Words as they are; whole numbers and those from 1,000 without decimals, others with three
    significant digits; "–" where it is missing."""
    if isinstance(value, str):
        return value
    if pd.isna(value):
        return "–"
    if value == round(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return np.format_float_positional(value, precision=3, fractional=False, trim="-")


def report(run: Run, usd_in: float | None = None, usd_out: float | None = None) -> Report:
    """The facts of ``run`` for a methods section, and the cost of each of its methods.

    ``usd_in`` and ``usd_out``: as in ``method_costs``. Generations are not needed.
    """
    made = Environment(trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
    page = files("trustlab.reports.html").joinpath("templates", "run", "report.txt")
    facts = _facts(run) | {"least": MIN_CASES, "NOTICE": NOTICE}
    text = made.from_string(page.read_text(encoding="utf-8")).render(facts)
    return Report(text.strip(), method_costs(run, usd_in, usd_out))


def _facts(run: Run) -> dict[str, Any]:
    """What the template ``report.txt`` reads, by name."""
    p, answers, confidence = run.parameters, run.answers, run.confidence
    methods = [METHODS[name] for name in p["methods"] if name in METHODS]
    needs = {need for method in methods for need in method.needs}
    cases = answers[["dataset", "case_id"]].drop_duplicates()
    named = {family: [m.name for m in methods if m.family == family] for family in (*FAMILIES, OWN)}
    known = {"encoder": p["encoder"], "medical encoder": p["medical_encoder"]}
    known["entailment"] = p["entailment"]["revision"]
    asked = {reader for method in methods for reader in readers(method).split(", ")}
    without: dict[tuple[str, str], list[str]] = {}
    for of, part in groups(confidence, ["model", "method"]):
        if part["confidence"].isna().all():
            without.setdefault((of["model"], most_frequent(part)), []).append(of["method"])
    failed = answers["correct"].isna()
    n = {
        "asked": len(answers),
        "failed": failed.sum(),
        "unread": (answers["answer"].isna() & ~failed).sum(),
        "methods": len(methods),
        "confidences": len(confidence),
        "missing": confidence["confidence"].isna().sum(),
    }
    reading = needs | {m.name for m in methods}
    tokens = run.calls.reindex(columns=["n_tokens_in", "n_tokens_out"])
    n |= {"requests": len(tokens), "without_usage": tokens.isna().any(axis=1).sum()}
    return {
        "p": p,
        "needs": needs,
        "sampled": needs & SAMPLE_NEEDS,
        "made": manifest(run),
        "small": [name for name in p["models"] if name.startswith("embedded")],
        "n_cases": cases["dataset"].value_counts(sort=False).to_dict(),
        "families": {family: names for family, names in named.items() if names},
        "chosen": {name: p[name] for name, by in CHOICES.items() if by & reading},
        "off": [
            of
            for of in ("profile", "structure", "importance")
            if p.get("medconf", {}).get(of) is False
        ],
        "readers": {who: name for who, name in known.items() if who in asked and name},
        "without": without,
        "remarks": formatted.remark_lines(p),
        "n": {name: f"{count:,}" for name, count in n.items()},
    }
