"""Keeps a calibrator in a file: what a confidence is worth as a chance, which answers to give."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from pydantic import BaseModel

from trustlab.choices import Chance, plain
from trustlab.confidence import METHODS
from trustlab.metrics.calibration import brier, cross_fitted, ece
from trustlab.metrics.estimate import Line, Rows, estimate, groups
from trustlab.metrics.promise import Threshold, cases_needed, promised, thresholds
from trustlab.metrics.recalibration import Kind, knots_of
from trustlab.metrics.run_tables import KEYS, checked_answers, joined
from trustlab.metrics.schema import pick, table
from trustlab.metrics.selective import RISK
from trustlab.paths import save_json
from trustlab.records import PRODUCTS, Parameters
from trustlab.runs.gate import withheld
from trustlab.runs.run import Run
from trustlab.tables import DataError, whole_json

FORMAT = "trustlab calibrator"
VERSION = 1
"""Of the file's form: a file of a later one is refused."""
LEAST = 10
"""Right and wrong answers below which nothing is fitted."""
LEAST_ANSWERS = 200
LEAST_CASES = 100
"""From so many answers and cases on the curve is isotonic; below, a logistic one."""
CHOICES = (
    "grader", "encoder", "medical_encoder", "entailment", "medconf", "retriever", "assessor",
    *(field.name for field in fields(Parameters)),
)  # fmt: skip
"""What a run chose; all of it counts for every method."""
NONE = "no answer with a verdict is given"
ABSTAINS = "no threshold keeps the promise: no answer is given"
BY_MODEL = ("prompts", "model_options", "held_to_a_form")
"""Facts of a run that it has by model."""


class Calibrator(
    BaseModel, frozen=True, strict=True, extra="forbid", allow_inf_nan=False
):
    """Makes probabilities of one method's confidences in one model, and says which answers to give.

    - ``facts``: what the confidences depend on (:func:`facts_of`); ``None``: the run does not
      tell it, so that it is not compared.
    - ``knots``: the curve from confidence to probability
      (:func:`~trustlab.metrics.recalibration.knots_of`): confidences, from the lowest to the
      highest fitted, and their probabilities; straight between two, constant beyond.
    - ``threshold``: which answers are given. With probability ``sure`` (over the cases fitted) at
      most a share ``risk`` of such answers is wrong, for the fitted mix of levels. ``None``: no
      threshold keeps that promise: abstain from all.
    - ``worth``: Brier score and ECE, as given (of a probability), and calibrated on other cases.
    """

    format: Literal["trustlab calibrator"] = FORMAT
    version: Literal[1] = VERSION
    model: str
    method: str
    dataset: str
    levels: list[int]
    facts: dict[str, Any]
    n_cases: int
    n_right: int
    n_wrong: int
    n_missing: int
    kind: Kind
    knots: tuple[list[float], list[float]]
    risk: Chance
    sure: Chance
    threshold: Threshold | None
    worth: dict[str, float]

    def save(self, path: str | Path) -> None:
        """Write it as JSON, with a fingerprint that tells a damaged file."""
        content = self.model_dump(mode="json")
        save_json({**content, "sha256": _fingerprint(content)}, Path(path))

    def apply(
        self, run: Run, *, model: str | None = None, anyway: bool = False
    ) -> Applied:
        """Probabilities of a run's answers, and which of them to give.

        - ``run``: of :func:`trustlab.benchmark`, :func:`trustlab.score` or
          :func:`trustlab.load_run`. ``model``: whose answers; by default those of the calibrator's
          model, or of the only one.
        - ``ValueError``: what the calibrator was not fitted with (another model, revision, method,
          choice, wording, grader or level); with ``anyway`` :attr:`Applied.differences` has it.
          Also a run without this method, or from whose replies nothing is claimed.
        """
        if model is None and self.model in set(run.answers["model"]):
            model = self.model
        model, answers, confidence = part_of(run, self.method, model)
        differences = []
        facts = facts_of(run, model)
        for name, fact in facts.items():
            fitted = self.facts.get(name)
            if fact != fitted:
                differences.append(f"{name} is {fact!r}, fitted was {fitted!r}")
        strange = set(answers["level"].tolist()).difference(self.levels)
        if strange:
            differences.append(f"levels {strange} are none of those fitted")
        if differences and not anyway:
            raise ValueError(f"the calibrator is refused: {'; '.join(differences)}")
        shown = self._decided(answers, confidence)
        return Applied(shown, self._report(shown), differences)

    def _decided(self, answers: pd.DataFrame, confidence: pd.DataFrame) -> pd.DataFrame:
        """A row an answer: its confidence, probability, and whether it is given."""
        own = confidence[[*KEYS, "confidence", "missing"]]
        shown: Any = answers[[*KEYS, "answer", "correct"]].merge(own, "left", KEYS)
        values = shown["confidence"].where(shown["answer"].notna()).to_numpy(float)
        lowest = np.inf
        if self.threshold is not None:
            lowest = self.threshold.confidence
        at, chances = self.knots
        is_missing = np.isnan(values)
        is_outside = (values < at[0]) | (values > at[-1])
        decision = np.where(values >= lowest, "yes", "no")
        return shown.assign(
            confidence=values,
            probability=np.interp(values, at, chances),
            given=np.where(is_missing, "missing", decision),
            outside=np.where(is_missing, np.nan, is_outside),
        )

    def _report(self, shown: pd.DataFrame) -> pd.DataFrame:
        """A row a data set: the risk among the answers given, and whether the promise was kept."""
        shown = shown.assign(wrong=1 - shown["correct"])
        none = NONE if self.threshold else ABSTAINS
        lines: list[Line] = []
        for label, part in groups(shown, ["model", "dataset"]):
            is_answered = part["given"].eq("yes")
            line = estimate(Rows.of(part[is_answered], "wrong", none), RISK)
            outcome = "open"
            if line["value"] <= self.risk:
                outcome = "kept"
            elif line["low"] > self.risk:
                outcome = "broken"
            line |= {"metric": "risk", "reference": self.risk, "promise": outcome}
            line["coverage"] = is_answered.mean()
            line["outside"] = part["outside"].mean()
            lines.append(label | line)
        keys = ["model", "dataset", "coverage"]
        return table(lines, keys, ["reference", "promise", "outside"])


@dataclass(frozen=True)
class Applied:
    """A calibrator applied to a run.

    - ``table``: a row an answer: ``confidence``, ``probability``, ``given`` ("yes", "no" or
      "missing": no confidence), ``correct`` where it is known.
    - ``report``: by data set the share of answers given (``coverage``), the risk among these with
      its interval, and the share of confidences ``outside`` those fitted. ``promise``: "kept" where
      the risk is at most ``reference``, "broken" where its whole interval is above, else "open".
    - ``differences``: why it would be refused, but for ``anyway``.
    """

    table: pd.DataFrame
    report: pd.DataFrame
    differences: list[str]


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
    model, answers, confidence = part_of(run, method, model, dataset)
    datasets = list(answers["dataset"].unique())
    if len(datasets) > 1:
        raise ValueError(f"name one data set (dataset) of those in the run: {datasets}")
    rows: Any = joined(checked_answers(answers), confidence).dropna(subset="confidence")
    hit = rows["correct"].to_numpy() > 0
    values = rows["confidence"].to_numpy()
    n_cases = rows["case_id"].nunique()
    print(
        f"A risk of at most {risk:g} with probability {sure:g} needs {cases_needed(risk, sure):,}"
        " cases behind the answers given if none of them is wrong, and"
        f" {cases_needed(risk, sure, risk / 2):,} if half as many are as it allows. This run has"
        f" {n_cases:,}."
    )
    n_right = int(hit.sum())
    n_wrong = len(hit) - n_right
    if min(n_right, n_wrong) < LEAST:
        counts = f"{n_right} right and {n_wrong} wrong answers with a confidence"
        raise ValueError(f"{method}: {counts}; a calibrator needs {LEAST} of each")
    kind: Kind = "logistic"
    if len(hit) >= LEAST_ANSWERS and n_cases >= LEAST_CASES:
        kind = "isotonic"
    is_probability = METHODS[method].scale == "probability"
    fit = partial(knots_of, kind, is_probability)
    at, chances = fit(values, hit)
    candidates = thresholds(hit, values, rows["case_id"], method in PRODUCTS)
    worth = _worth(
        hit, cross_fitted(hit, values, rows["case_id"], fit=fit), "calibrated"
    )
    if is_probability:
        worth |= _worth(hit, values, "as given")
    return Calibrator(
        model=model,
        method=method,
        dataset=datasets[0],
        levels=sorted(set(rows["level"].tolist())),
        facts=facts_of(run, model),
        n_cases=n_cases,
        n_right=n_right,
        n_wrong=n_wrong,
        n_missing=len(answers) - len(hit),
        kind=kind,
        knots=(at.tolist(), chances.tolist()),
        risk=risk,
        sure=sure,
        threshold=promised(candidates, risk, sure),
        worth=worth,
    )


def _worth(hit: np.ndarray, chances: np.ndarray, how: str) -> dict[str, float]:
    """Brier score and ECE of probabilities (n,); none where they could not be fitted (NaN)."""
    if np.isnan(chances).any():
        return {}
    return {
        f"Brier score, {how}": brier(hit, chances),
        f"ECE, {how}": ece(hit, chances),
    }


def load_calibrator(path: str | Path) -> Calibrator:
    """A calibrator from its file. :class:`~trustlab.datasets.DataError`: a file that is damaged, of
    a newer form, or no calibrator's."""
    file = Path(path)
    content: Any = whole_json(file)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise DataError(file, None, "file", content, f"a {FORMAT}'s")
    if content.get("version") != VERSION:
        words = f"{VERSION}; a newer trustlab writes others: update it"
        raise DataError(file, None, "version", content.get("version"), words)
    fingerprint = content.pop("sha256", None)
    if fingerprint != _fingerprint(content):
        words = "that of the content: the file is damaged, or was changed by hand"
        raise DataError(file, None, "sha256", fingerprint, words)
    return Calibrator.model_validate_json(json.dumps(content))


def _fingerprint(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def part_of(
    run: Run, method: str, model: str | None, dataset: str | None = None
) -> tuple[str, pd.DataFrame, pd.DataFrame]:
    """The model, its answers and one method's confidences in them that a calibrator is about;
    ``None``: the only model, all data sets.
    ``ValueError``: what the run does not have, and where nothing is claimed from it."""
    if model is None:
        models = list(run.answers["model"].unique())
        if len(models) != 1:
            raise ValueError(f"name one model (model) of those in the run: {models}")
        model = str(models[0])
    wanted = {"model": model}
    if dataset is not None:
        wanted["dataset"] = dataset
    answers = pick(run.answers, **wanted)
    confidence = pick(run.confidence, **wanted, method=method)
    reasons = withheld(run.parameters, [method])
    why = reasons.get((model, ""), reasons.get((model, method)))
    if why:
        raise ValueError(f"nothing is claimed of {method} in this run: {why}")
    return model, answers, confidence


def facts_of(run: Run, model: str) -> dict[str, Any]:
    """What confidences in a model depend on, as JSON has it: revision, wording, grader, and the
    methods' choices. ``None``: the run does not tell it."""
    parameters = run.parameters
    facts = {"model": model, "revision": parameters["models"].get(model) or None}
    for name in BY_MODEL:
        facts[name] = parameters.get(name, {}).get(model)
    for name in CHOICES:
        facts[name] = parameters.get(name)
    return plain(facts)
