"""Lists what a run did, as facts for a methods section."""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, StrictUndefined

from trustlab.confidence import METHODS
from trustlab.confidence.registry import BY_JUDGE, FAMILIES, OWN, Method
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
    "n_alternatives": frozenset({"alternative_entailment", "deepconf_lowest"}),
    "deepconf_window": frozenset({"deepconf_lowest"}),
    "sar_temperature": frozenset({"sentence_sar", "sentence_sar_printed", "sar"}),
    "eigenvalue_cut": frozenset({"ecc"}),
    "topk_combination": frozenset({"topk_ce"}),
    "relevance_context": frozenset({"relevance", "sample_relevance"}),
    "entailment_context": BY_JUDGE,
}
"""Open choices of the methods, and the methods or needs, by name, that read each."""
MEDCONF = ("profile", "structure", "importance")
"""Parts of MedConf that may be off."""
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
        columns = {}
        for name in SHOWN:
            column = self.costs[name]
            if not (column.isna() | column.eq("")).all():
                columns[name] = column.map(_number)
        alike = self.costs.assign(**columns).groupby(["model", *columns], sort=False)
        rows = alike["method"].agg(", ".join).reset_index()
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


def report(
    run: Run, usd_in: float | None = None, usd_out: float | None = None
) -> Report:
    """The facts of ``run`` for a methods section, and the cost of each of its methods.

    ``usd_in`` and ``usd_out``: as in ``method_costs``. Generations are not needed.
    """
    templates = Environment(
        trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    page = files("trustlab.reports.html").joinpath("templates", "run", "report.txt")
    facts = _facts(run) | {"least": MIN_CASES, "NOTICE": NOTICE}
    template = templates.from_string(page.read_text(encoding="utf-8"))
    text = template.render(facts)
    return Report(text.strip(), method_costs(run, usd_in, usd_out))


def _facts(run: Run) -> dict[str, Any]:
    """What the template ``report.txt`` reads, by name."""
    parameters = run.parameters
    methods = [METHODS[name] for name in parameters["methods"] if name in METHODS]
    needs = {need for method in methods for need in method.needs}
    readers_of_choices = needs | {method.name for method in methods}
    by_family = {}
    for family in (*FAMILIES, OWN):
        names = [method.name for method in methods if method.family == family]
        if names:
            by_family[family] = names
    medconf = parameters.get("medconf", {})
    cases = run.answers[["dataset", "case_id"]].drop_duplicates()
    return {
        "p": parameters,
        "needs": needs,
        "sampled": needs & SAMPLE_NEEDS,
        "manifest": manifest(run),
        "small": [name for name in parameters["models"] if name.startswith("embedded")],
        "n_cases": cases["dataset"].value_counts(sort=False).to_dict(),
        "families": by_family,
        "chosen": {
            name: parameters[name]
            for name, may_read in CHOICES.items()
            if may_read & readers_of_choices
        },
        "off": [part for part in MEDCONF if medconf.get(part) is False],
        "readers": _readers(methods, parameters),
        "without": _without_value(run.confidence),
        "remarks": formatted.remark_lines(parameters),
        "n": {name: f"{n:,}" for name, n in _counts(run, len(methods)).items()},
    }


def _readers(
    methods: Sequence[Method], parameters: Mapping[str, Any]
) -> dict[str, str]:
    """Kind of a model that reads for the methods -> its name, where it has one."""
    kinds = {kind for method in methods for kind in readers(method).split(", ")}
    names = {
        "encoder": parameters["encoder"],
        "medical encoder": parameters["medical_encoder"],
        "entailment": parameters["entailment"]["revision"],
    }
    return {kind: name for kind, name in names.items() if kind in kinds and name}


def _without_value(confidence: pd.DataFrame) -> dict[tuple[str, str], list[str]]:
    """(model, reason) -> the methods that have no value at all."""
    without = {}
    for key, rows in groups(confidence, ["model", "method"]):
        is_missing = rows["confidence"].isna()
        if is_missing.all():
            model_and_reason = (key["model"], most_frequent(rows))
            methods = without.setdefault(model_and_reason, [])
            methods.append(key["method"])
    return without


def _counts(run: Run, n_methods: int) -> dict[str, Any]:
    """Numbers of answers, confidences and requests, and of those without what they need."""
    failed = run.answers["correct"].isna()
    is_unread = run.answers["answer"].isna() & ~failed
    tokens = run.calls.reindex(columns=["n_tokens_in", "n_tokens_out"])
    return {
        "asked": len(run.answers),
        "failed": failed.sum(),
        "unread": is_unread.sum(),
        "methods": n_methods,
        "confidences": len(run.confidence),
        "missing": run.confidence["confidence"].isna().sum(),
        "requests": len(tokens),
        "without_usage": tokens.isna().any(axis=1).sum(),
    }
