"""01: the best possible accuracy, where the chance of each diagnosis is known; later methods."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np
import pandas as pd

from trustlab import __version__
from trustlab.choices import Switch, choices
from trustlab.confidence import METHODS
from trustlab.confidence.registry import LATER
from trustlab.levels import views as views_of
from trustlab.metrics import schema
from trustlab.metrics.estimate import grouped, groups, measure, rate
from trustlab.metrics.schema import rows_where
from trustlab.models.base import Keep, Model, Request
from trustlab.models.cache import CachedModel
from trustlab.parsing.counts import totals
from trustlab.records import LEVELS, Case, Reply
from trustlab.reports import plots
from trustlab.runs.candidates import Choices, choice
from trustlab.runs.collect import NOT_KNOWN
from trustlab.runs.experiment import benchmark
from trustlab.runs.run import Run
from trustlab.runs.workbench import Workbench


@choices
class Asked(Workbench):
    """The choices of notebook 01."""

    UNUSED = ("doctor", "patient", "reviewer", "medical_proxy")

    task: Literal[
        "free", "choice", "unlisted", "free and choice", "free and unlisted"
    ] = "free"
    """"free" asks for a diagnosis in the model's own words. "choice" asks which of five candidates,
    listed in the prompt, it takes; "unlisted" asks for a diagnosis and lists none."""
    later: Switch = False
    """Whether the field's later methods are shown, in a section of their own."""

    @property
    def needed_methods(self) -> list[str]:
        """The methods whose replies the notebook asks for."""
        methods = super().needed_methods
        return [*methods, "later"] if self.later else methods


setup = Asked.of


class NotAsked(CachedModel):
    """A model that a run asks for nothing: each reply is missing."""

    def generate(
        self, requests: Sequence[Request], *, keep: Keep | None = None
    ) -> list[list[Reply]]:
        """For every request its ``n`` missing replies."""
        missing = Reply(None, missing="not asked: task names only a choice")
        return [[missing] * request.n for request in requests]


def models_for_free_text(models: Sequence[Model], setup: Asked) -> list[Model]:
    """The models as the benchmark asks them; not at all where the task is a choice alone."""
    if "free" in setup.task:
        return list(models)
    return [NotAsked(model, None) for model in models]


def dry_run(cases: Sequence[Case], models: Sequence[Model], setup: Asked) -> None:
    """What the notebook asks beside the benchmark."""
    if setup.task != "free":
        choose(cases, models, setup)


def choose(cases: Sequence[Case], models: Sequence[Model], setup: Asked) -> Choices:
    """The models' choices among five diagnoses, which the prompt lists or not."""
    listed = not setup.task.endswith("unlisted")
    return choice(cases, models, setup=setup, listed=listed)


def later_run(
    cases: Sequence[Case], models: Sequence[Model], run: Run, notebook_setup: Asked
) -> Run:
    """The field's later methods on the same answers, as a run of its own without a folder. The
    run's methods that read the answer's tokens are asked for, too, so that a request wants the same
    statistics as before, and its saved reply serves."""
    methods = []
    for name in run.families:
        needs = METHODS[name].needs
        if needs and all(need.startswith("answer.") for need in needs):
            methods.append(name)
    bench = notebook_setup.shared().with_(run_dir=None)
    whole = benchmark(cases, models, [*methods, "later"], setup=bench)
    confidence = rows_where(whole.confidence, whole.confidence["method"].isin(LATER))
    parameters = {**whole.parameters, "methods": list(LATER)}
    return replace(whole, confidence=confidence, parameters=parameters)


def tied_at_zero(confidence: pd.DataFrame) -> dict[str, float]:
    """Model -> the share of its answers whose CoCoA is 0: all samples name the answer."""
    cocoa: Any = rows_where(confidence, confidence["method"].eq("cocoa_msp"))
    is_zero = cocoa["confidence"].dropna().eq(0)
    return is_zero.groupby(cocoa["model"], sort=False).mean().to_dict()


def bayes_optimal_table(
    cases: Sequence[Case], levels: Sequence[int] = LEVELS
) -> pd.DataFrame:
    """How often the likeliest diagnosis is right where the chance of each is known.
    A line a data set and level, metric "bayes_optimal_accuracy", of the cases that have
    ``posteriors``; the others are missing. Near-ties (1e-6) go to the first by name."""
    rows = []
    for view in views_of(cases, levels):
        posterior = view.posterior
        right = np.nan
        if posterior:
            highest = max(posterior.values())
            best = [
                name for name, chance in posterior.items() if chance > highest - 1e-6
            ]
            right = float(min(best) in view.case.accepted)
        case = view.case
        key = {"dataset": case.dataset, "case_id": case.case_id, "level": view.level}
        rows.append({**key, "right": right})
    labelled = grouped(pd.DataFrame(rows), ["dataset", "level"], "right", NOT_KNOWN)
    lines = measure(labelled, {"bayes_optimal_accuracy": rate("right")})
    return schema.table(list(lines), ["dataset", "level"])


NOT_NUMBERED = {"ce": "CE", "ce_expected": "CE (variant)"}
"""Equations of methods to which the paper gives no number."""
VARIANT = " (variant)"
"""How the equation of a variant ends."""


def variants_and_bases(methods: Iterable[str]) -> list[str]:
    """Methods with variants, each variant after the method whose equation it varies."""
    methods_by_base: dict[str, tuple[list[str], list[str]]] = {}
    for name in methods:
        own = METHODS[name].equation if name in METHODS else ""
        equation = NOT_NUMBERED.get(name, own)
        if equation:
            base = equation.removesuffix(VARIANT)
            bases, variants = methods_by_base.setdefault(base, ([], []))
            alike = bases if equation == base else variants
            alike.append(name)
    listed = []
    for bases, variants in methods_by_base.values():
        if variants:
            listed += [*bases, *variants]
    return listed


def accuracy_and_ece(metrics: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """Over all levels: accuracy, and each method's ECE beside that of chance, by ``quantity``.
    "ECE by chance" is what even a calibrated confidence gets with as many answers."""
    is_counted = metrics["level"].eq("pooled") & metrics["n"].gt(0)
    overall: Any = metrics[is_counted]
    accuracy = overall[overall["metric"].eq("accuracy")].copy()
    accuracy["quantity"] = "accuracy"
    is_ece = overall["metric"].eq("ece")
    is_of_methods = overall["method"].isin(methods)
    ece = overall[is_ece & is_of_methods].copy()
    labels = ece["method"].map(plots.label)
    ece["quantity"] = "ECE, " + labels
    chance = ece.copy()
    chance["quantity"] = "ECE by chance, " + labels
    for end in ("low", "high"):
        chance[end] = ece[f"chance_{end}"]
    chance["value"] = ece["chance"]
    return pd.concat([accuracy, ece, chance])


FOLDERS = r"(?<![^\s:])(?:~|[A-Za-z]:)?[/\\].*[/\\]"
"""The folders of an absolute path within a name."""


def shareable(name: object) -> str:
    """A name without folders, line breaks and control characters, of at most 120 characters."""
    printable = "".join(letter if letter.isprintable() else " " for letter in str(name))
    return re.sub(FOLDERS, "", printable)[:120]


def contribution(run: Run, metrics: pd.DataFrame) -> pd.DataFrame:
    """What others may lay beside theirs: a row a model and data set, no case text and no reply.
    What was asked, whom, and by whom it was read; accuracy of all asked, of those not cut off and
    of those read, each with its n; level-stratified ``auroc_METHOD`` and ``n_METHOD``."""
    rows = []
    for about, part in groups(metrics, ["model", "dataset"]):
        row = _run_facts(run.parameters, about["model"], about["dataset"])
        is_pooled = part["level"].eq("pooled")
        of_answers = part[is_pooled & part["method"].eq("")]
        accuracies = of_answers.set_index("metric")
        for name in ("accuracy_asked", "accuracy", "accuracy_read"):
            line = accuracies.loc[name if name in accuracies.index else "accuracy"]
            row[name] = line["value"]
            row[name.replace("accuracy", "n")] = line["n"]
            row.setdefault("n_cases", line["n_cases"])
        is_auroc = part["metric"].eq("auroc") & part["level"].eq("within")
        aurocs = part[is_auroc].set_index("method")
        for method, line in aurocs.iterrows():
            row[f"auroc_{method}"] = line["value"]
            row[f"n_{method}"] = line["n"]
        rows.append(row)
    return pd.DataFrame(rows)


def _run_facts(
    parameters: Mapping[str, Any], model: str, dataset: str
) -> dict[str, Any]:
    """What was asked of a model, and by whom it was read."""
    counts = totals({model: parameters["replies_read"].get(model, {})})
    n_replies = counts["asked"]
    names = {
        "model": model,
        "revision": parameters["models"][model],
        "dataset": dataset,
        "levels": " ".join(map(str, parameters["levels"])),
        "grader": parameters["grader"],
        "entailment": parameters["entailment"]["name"],
        "encoder": parameters["encoder"],
        "trustlab": __version__,
        "date": datetime.now(UTC).date(),
    }
    for kind, value in parameters["prompts"][model].items():
        names[f"prompts_{kind}"] = value
    facts: dict[str, Any] = {name: shareable(value) for name, value in names.items()}
    return {
        **facts,
        "samples": parameters["n_samples"],
        "temperature": parameters["sample_temperature"],
        "seed": parameters["seed"],
        "n_replies": n_replies,
        "share_read": counts["read"] / n_replies if n_replies else np.nan,
    }
