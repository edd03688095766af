"""Keeps a calibrator in a file: what a confidence is worth as a chance, which answers to give."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from pydantic import BaseModel, Field, ValidationError, model_validator

from trustlab.choices import Chance, utf8
from trustlab.confidence import METHODS
from trustlab.metrics.calibration import brier, cross_fitted, ece
from trustlab.metrics.estimate import (
    Line,
    Rows,
    Statistic,
    estimate,
    groups,
    rate,
    ratio,
)
from trustlab.metrics.promise import cases_needed, promised, thresholds
from trustlab.metrics.recalibration import (
    Kind,
    Knots,
    curve_of,
    kind_for,
    knots_of,
    through,
)
from trustlab.metrics.run_tables import KEYS, checked_answers, joined
from trustlab.metrics.schema import pick, table
from trustlab.metrics.ties import width
from trustlab.paths import save_json
from trustlab.records import PRODUCTS, Parameters
from trustlab.runs.gate import withheld
from trustlab.runs.run import Run
from trustlab.tables import DataError, problem, whole_json

FORMAT = "trustlab calibrator"
VERSION = 1
"""Of the file's form: a file of a later one is refused."""
LEAST = 10
"""Right and wrong answers below which nothing is fitted."""
OF_SAMPLES = (
    "samples", "similarity", "similarity_med", "entailment", "contradiction", "sample_relevance",
)  # fmt: skip
ONLY_FOR = {
    "n_samples": (*OF_SAMPLES, "probes.p_true"),
    "sample_temperature": (*OF_SAMPLES, "panel"),
    "p_true_temperature": ("probes.p_true",),
    "topk_combination": ("probes.topk_ce",),
    "n_doctors": ("panel",),
    "doctor_temperature": ("panel",),
    "reasoning_from": ("panel",),
    "panel": ("panel",),
    "encoder": ("similarity", "relevance", "sample_relevance", "panel"),
    "medical_encoder": ("similarity_med",),
    "entailment": ("entailment", "contradiction", "alternative_entailment"),
    "medconf": ("assessment",),
    "retriever": ("assessment",),
    "assessor": ("assessment",),
}
"""What a run chose, and the needs of the methods that depend on it. A parameter of the methods that
is not named here counts for all."""
BY_MODEL = ("prompts", "model_options", "held_to_a_form")
"""Facts of a run that it has by model."""

Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]
Enough = Annotated[int, Field(ge=LEAST)]


class Calibrator(
    BaseModel, frozen=True, strict=True, extra="forbid", allow_inf_nan=False
):
    """Makes probabilities of one method's confidences in one model, and says which answers to give.

    - ``facts``: what the confidences depend on (:func:`facts_of`); ``levels``: level -> answers
      fitted.
    - ``knots``: the curve from confidence to probability
      (:func:`~trustlab.metrics.recalibration.knots_of`); ``low`` and ``high``: the confidences
      fitted.
    - ``threshold``: answers with at least this confidence are given. With probability ``sure``
      (over the cases fitted) at most a share ``risk`` of such answers is wrong, for the fitted mix
      of levels. ``None``: no threshold keeps that promise: abstain from all.
    - ``coverage`` and ``selective_risk``: the share of the fitted answers that is given, and of
      wrong ones among them.
    - ``worth``: Brier score and ECE, as given (of a probability), and calibrated on other cases.
    """

    format: Literal["trustlab calibrator"] = FORMAT
    version: Literal[1] = VERSION
    model: str
    method: str
    dataset: str
    levels: dict[int, Count] = Field(min_length=1)
    facts: dict[str, Any]
    n_cases: Count
    n_right: Enough
    n_wrong: Enough
    n_missing: Count
    kind: Kind
    knots: Knots = Field(min_length=1)
    low: float
    high: float
    risk: Chance
    sure: Chance
    threshold: float | None
    coverage: Share
    selective_risk: Share | None
    worth: dict[str, Share]

    @model_validator(mode="after")
    def _rises(self) -> Calibrator:
        at, values = np.transpose(self.knots)
        rises = (np.diff(at) > 0).all() and (np.diff(values) >= 0).all()
        if not rises or values[0] < 0 or values[-1] > 1:
            raise ValueError("knots must rise, and so must their values, from 0 to 1")
        if not self.low <= at[0] <= at[-1] <= self.high:
            raise ValueError("knots must lie from low to high")
        return self

    def save(self, path: str | Path) -> None:
        """Write it as JSON, with a fingerprint that tells a damaged file."""
        content = json.loads(self.model_dump_json())
        save_json({**content, "sha256": _fingerprint(content)}, Path(path))

    def apply(
        self, run: Run, *, model: str | None = None, anyway: bool = False
    ) -> Applied:
        """Probabilities of a run's answers, and which of them to give.

        - ``run``: of :func:`trustlab.benchmark`, :func:`trustlab.score` or
          :func:`trustlab.load_run`. ``model``: whose answers; by default those of the calibrator's
          model, or of the only one.
        - ``ValueError``: what the calibrator was not fitted with (another model, revision, method,
          choice, wording, grader or level); with ``anyway`` :attr:`Applied.strange` has it. Also a
          run without this method, or from whose replies nothing is claimed.
        """
        if model is None and self.model in set(run.answers["model"]):
            model = self.model
        part = part_of(run, self.method, model)
        levels = set(part.answers["level"].astype(int))
        strange = []
        for name in dict.fromkeys([*self.facts, *part.facts]):
            here = part.facts.get(name)
            fitted = self.facts.get(name)
            if here != fitted:
                strange.append(f"{name} is {here!r}, fitted was {fitted!r}")
        if not levels <= set(self.levels):
            strange.append(f"levels are {levels}, fitted were {list(self.levels)}")
        if strange and not anyway:
            raise ValueError(f"the calibrator is refused: {'; '.join(strange)}")
        notes = []
        if self.facts["revision"] is None or self.facts["prompts"] is None:
            notes.append("no revision or no prompts are told, so none are compared")
        if set(part.answers["dataset"]) != {self.dataset}:
            notes.append(f"another data set than {self.dataset}, which was fitted")
        if levels != set(self.levels):
            notes.append(f"the promise is for levels {list(self.levels)} together")
        shown = self._decided(part)
        return Applied(shown, self._report(shown), strange, notes)

    def _decided(self, part: Part) -> pd.DataFrame:
        """A row an answer: its confidence, probability, and whether it is given."""
        own = part.confidence[[*KEYS, "method", "confidence", "missing"]]
        answers = part.answers[[*KEYS, "answer", "correct"]]
        shown: Any = answers.merge(own, on=KEYS, how="left")
        values = shown["confidence"].where(shown["answer"].notna())
        decision = values.isna().map({True: "missing", False: "no"})
        if self.threshold is not None:
            decision = decision.mask(values >= self.threshold, "yes")
        return shown.assign(
            method=self.method,
            confidence=values,
            probability=through(self.knots)(values.to_numpy(dtype=float)),
            given=decision,
        )

    def _report(self, shown: pd.DataFrame) -> pd.DataFrame:
        """The :data:`MEASURES`, by data set."""
        correct = shown["correct"]
        is_given = shown["given"].eq("yes")
        values = shown["confidence"]
        outside = values.lt(self.low) | values.gt(self.high)
        measured = shown[[*KEYS, "method"]].assign(
            coverage=is_given.astype(float),
            risk=(1 - correct).where(is_given),
            brier=(shown["probability"] - correct) ** 2,
            outside=outside.astype(float).where(values.notna()),
        )
        lines: list[Line] = []
        for label, part in groups(measured, ["model", "dataset", "method"]):
            for name, statistic in MEASURES.items():
                rows = Rows.of(part, name, none="no verdict on such answers")
                lines.append({**label, "metric": name, **estimate(rows, statistic)})
                if name == "risk":
                    lines[-1] |= {
                        "reference": self.risk,
                        "promise": self._outcome(lines[-1]),
                    }
        return table(lines, ["model", "dataset", "method"], ["reference", "promise"])

    def _outcome(self, line: Line) -> str:
        """Whether the promise was kept, as :class:`Applied` has it."""
        if not line["n"]:
            return "none given"
        if line["value"] <= self.risk:
            return "kept"
        return "broken" if line["low"] > self.risk else "open"


MEASURES = {
    "coverage": rate("coverage"),
    "risk": ratio("risk", kind="risk", uneven=True),
    "brier": Statistic(lambda rows: rows.mean(rows["brier"]), "brier"),
    "outside": rate("outside"),
}
"""Of a calibrator that is applied: the share of answers given, that of wrong ones among them, the
Brier score of the probabilities, the share of confidences outside the range fitted."""


@dataclass(frozen=True)
class Applied:
    """A calibrator applied to a run.

    - ``table``: a row an answer: ``confidence``, ``probability``, ``given`` ("yes", "no" or
      "missing": no confidence), ``correct`` where it is known.
    - ``report``: :data:`MEASURES` by data set. ``promise``: "kept" where the risk is at most
      ``reference``, "broken" where its whole interval is above, else "open".
    - ``strange``: why it would be refused, but for ``anyway``; ``notes``: what is not promised.
    """

    table: pd.DataFrame
    report: pd.DataFrame
    strange: list[str]
    notes: list[str]


def calibrate(
    run: Run,
    method: str,
    *,
    risk: float = 0.2,
    sure: float = 0.95,
    model: str | None = None,
    dataset: str | None = None,
) -> Calibrator:
    """Fit a calibrator on a run, and print first how many cases its promise needs.

    - The promise: of the answers that :meth:`Calibrator.apply` gives, at most a share ``risk`` is
      wrong, with probability ``sure``. ``model`` and ``dataset``: which, where the run has several.
    - Isotonic from 200 answers of 100 cases on, else logistic; fitted on all answers, its worth
      told on other cases (five folds by case).
    - ``ValueError``: a method, model or data set that the run does not have; ``risk`` or ``sure``
      outside (0, 1); fewer than 10 right or wrong answers; nothing is claimed from the run.
    """
    part = part_of(run, method, model, dataset)
    datasets = list(part.answers["dataset"].unique())
    if len(datasets) > 1:
        raise ValueError(
            f"the run has several data sets, {datasets}: name one (dataset)"
        )
    rows: Any = joined(checked_answers(part.answers), part.confidence)
    rows = rows[rows["confidence"].notna()]
    hit = rows["correct"].to_numpy() > 0
    values = rows["confidence"].to_numpy(dtype=float)
    n_cases = rows["case_id"].nunique()
    print(
        f"a risk of at most {risk:g} with probability {sure:g} needs {cases_needed(risk, sure):,}"
        f" cases behind the answers given if none of them is wrong,"
        f" {cases_needed(risk, sure, risk / 2):,} if {risk / 2:.1%} are; this run has {n_cases:,}"
    )
    n_right = int(hit.sum())
    n_wrong = len(hit) - n_right
    if min(n_right, n_wrong) < LEAST:
        counts = f"{n_right} right and {n_wrong} wrong answers with a confidence"
        raise ValueError(f"{method}: {counts}; a calibrator needs {LEAST} of each")
    kind = kind_for(len(hit), n_cases)
    is_probability = METHODS[method].scale == "probability"
    candidates = thresholds(hit, values, rows["case_id"], method in PRODUCTS)
    threshold = promised(candidates, risk, sure)
    slack = width(values)
    levels = rows["level"].value_counts().sort_index()
    return Calibrator(
        model=part.facts["model"],
        method=method,
        dataset=datasets[0],
        levels={int(level): int(n) for level, n in levels.items()},
        facts=part.facts,
        n_cases=n_cases,
        n_right=n_right,
        n_wrong=n_wrong,
        n_missing=len(part.answers) - len(hit),
        kind=kind,
        knots=knots_of(kind, is_probability, values, hit),
        low=values.min() - slack,
        high=values.max() + slack,
        risk=risk,
        sure=sure,
        threshold=threshold.confidence if threshold else None,
        coverage=threshold.share if threshold else 0.0,
        selective_risk=threshold.risk if threshold else None,
        worth=_worth(rows, kind, is_probability),
    )


def _worth(rows: Any, kind: Kind, is_probability: bool) -> dict[str, float]:
    """Brier score and ECE of confidences, where they can be calibrated on other cases."""
    fit = partial(curve_of, kind, is_probability)
    hit = rows["correct"]
    values = rows["confidence"].to_numpy()
    by_how = {"calibrated": cross_fitted(hit, values, rows["case_id"], fit=fit)}
    if is_probability:
        by_how["as given"] = values
    worth = {}
    for how, chances in by_how.items():
        if not np.isnan(chances).any():
            worth[f"Brier score, {how}"] = brier(hit, chances)
            worth[f"ECE, {how}"] = ece(hit, chances)
    return worth


def load_calibrator(path: str | Path) -> Calibrator:
    """A calibrator from its file. :class:`~trustlab.datasets.DataError`: a file that is damaged, of
    a newer form, or no calibrator's."""
    file = Path(path)
    content: Any = whole_json(file)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise DataError(file, None, "file", content, f"a {FORMAT}'s")
    version = content.get("version")
    if version != VERSION:
        words = f"{VERSION}; a newer trustlab writes others: update it"
        raise DataError(file, None, "version", version, words)
    fingerprint = content.pop("sha256", None)
    if not utf8(content) or fingerprint != _fingerprint(content):
        words = "that of the content: the file is damaged, or was changed by hand"
        raise DataError(file, None, "sha256", fingerprint, words)
    try:
        return Calibrator.model_validate_json(json.dumps(content))
    except ValidationError as error:
        raise ValueError(f"{file}: {problem(error)}") from None


def _fingerprint(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


class Part(NamedTuple):
    """One model's answers in a run, one method's confidences in them, and what these depend on."""

    answers: pd.DataFrame
    confidence: pd.DataFrame
    facts: dict[str, Any]


def part_of(
    run: Run, method: str, model: str | None, dataset: str | None = None
) -> Part:
    """What of a run a calibrator is about; ``None``: the only model, all data sets.
    ``ValueError``: what the run does not have, and where nothing is claimed from it."""
    models = list(run.answers["model"].unique())
    if model is None and len(models) == 1:
        model = str(models[0])
    if model is None:
        raise ValueError(f"name one model (model) of those in the run: {models}")
    answers = pick(run.answers, model=model)
    confidence = pick(run.confidence, model=model, method=method)
    if dataset is not None:
        answers = pick(answers, dataset=dataset)
        confidence = pick(confidence, dataset=dataset)
    reasons = withheld(run.parameters, [method])
    why = reasons.get((model, "")) or reasons.get((model, method))
    if why:
        raise ValueError(f"nothing is claimed of {method} in this run: {why}")
    return Part(answers, confidence, facts_of(run, model, method))


def facts_of(run: Run, model: str, method: str) -> dict[str, Any]:
    """What a method's confidences in a model depend on, as JSON has it: revision, wording, grader,
    and the choices that the method reads. ``None``: the run does not tell it."""
    parameters = run.parameters
    facts = {
        "model": model,
        "method": method,
        "revision": parameters["models"].get(model) or None,
        "grader": parameters.get("grader"),
    }
    for name in BY_MODEL:
        facts[name] = parameters.get(name, {}).get(model)
    needs = set()
    for need in METHODS[method].needs:
        needs |= {need, need.partition(".")[0]}
    for name in [*ONLY_FOR, *(field.name for field in fields(Parameters))]:
        if name not in ONLY_FOR or not needs.isdisjoint(ONLY_FOR[name]):
            facts[name] = parameters.get(name)
    return json.loads(json.dumps(facts, default=str))
