"""Keeps a calibrator in a file: what a confidence is worth as a chance, which answers to give."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import BaseModel, Field, ValidationError, model_validator

from trustlab.choices import Chance, utf8
from trustlab.confidence import METHODS
from trustlab.metrics.calibration import brier, cross_fitted, ece
from trustlab.metrics.estimate import Line, Rows, estimate, groups
from trustlab.metrics.promise import Threshold, cases_needed, promised, thresholds
from trustlab.metrics.recalibration import Kind, knots_of
from trustlab.metrics.run_tables import KEYS, checked_answers, joined
from trustlab.metrics.schema import pick, table
from trustlab.metrics.selective import RISK
from trustlab.metrics.ties import reaches
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
LEAST_ANSWERS = 200
LEAST_CASES = 100
"""From so many answers and cases on the curve is isotonic; below, a logistic one."""
OF_SAMPLES = ("samples", "similarity", "entailment", "contradiction")
ONLY_FOR = {
    "n_samples": (*OF_SAMPLES, "sample_relevance", "p_true"),
    "sample_temperature": (*OF_SAMPLES, "sample_relevance", "panel"),
    "panel": ("panel",),
    "encoder": ("similarity", "relevance", "panel"),
    "medical_encoder": ("similarity_med",),
    "entailment": ("entailment", "contradiction"),
    "medconf": ("assessment",),
    "retriever": ("assessment",),
    "assessor": ("assessment",),
}
"""What a run chose -> words in the needs of the methods that it matters for. A parameter of the
methods that is not named here counts for all."""
NONE = "no answer with a verdict is given"
BY_MODEL = ("prompts", "model_options", "held_to_a_form")
"""Facts of a run that it has by model."""

Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]
Enough = Annotated[int, Field(ge=LEAST)]


class Calibrator(
    BaseModel, frozen=True, strict=True, extra="forbid", allow_inf_nan=False
):
    """Makes probabilities of one method's confidences in one model, and says which answers to give.

    - ``facts``: what the confidences depend on (:func:`facts_of`).
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
    levels: tuple[int, ...]
    facts: dict[str, Any]
    n_cases: Count
    n_right: Enough
    n_wrong: Enough
    n_missing: Count
    kind: Kind
    knots: tuple[tuple[float, ...], tuple[float, ...]]
    risk: Chance
    sure: Chance
    threshold: Threshold | None
    worth: dict[str, Share]

    @model_validator(mode="after")
    def _rises(self) -> Calibrator:
        at, chances = self.knots
        whole = [0.0, *chances, 1.0]
        is_rising = len(at) > 0 and (np.diff(at) > 0).all()
        never_falls = whole == sorted(whole)
        if len(at) != len(chances) or not is_rising or not never_falls:
            raise ValueError("knots must rise, and their chances not fall, from 0 to 1")
        return self

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
          choice, wording, grader or level); with ``anyway`` :attr:`Applied.strange` has it. Also a
          run without this method, or from whose replies nothing is claimed.
        """
        if model is None and self.model in set(run.answers["model"]):
            model = self.model
        model, answers, confidence = part_of(run, self.method, model)
        facts = facts_of(run, model, self.method)
        levels = set(answers["level"].astype(int))
        strange = []
        for name, fact in {**self.facts, **facts}.items():
            if fact != self.facts.get(name):
                fitted = self.facts.get(name)
                strange.append(f"{name} is {fact!r}, fitted was {fitted!r}")
        if not levels <= set(self.levels):
            strange.append(f"levels are {levels}, fitted were {list(self.levels)}")
        if strange and not anyway:
            raise ValueError(f"the calibrator is refused: {'; '.join(strange)}")
        notes = []
        if None in (self.facts["revision"], self.facts["prompts"]):
            notes.append("no revision or no prompts are told, so none are compared")
        if set(answers["dataset"]) != {self.dataset} or levels != set(self.levels):
            fitted = f"{self.dataset}, levels {list(self.levels)} together"
            notes.append(f"the promise is for cases like those fitted: {fitted}")
        shown = self._decided(answers, confidence)
        return Applied(shown, self._report(shown), strange, notes)

    def _decided(self, answers: pd.DataFrame, confidence: pd.DataFrame) -> pd.DataFrame:
        """A row an answer: its confidence, probability, and whether it is given."""
        own = confidence[[*KEYS, "confidence", "missing"]]
        shown: Any = answers[[*KEYS, "answer", "correct"]].merge(own, "left", KEYS)
        is_read = shown["answer"].notna()
        values = shown["confidence"].where(is_read).to_numpy(dtype=float)
        lowest = np.inf
        if self.threshold is not None:
            lowest = self.threshold.confidence
        decision = np.where(reaches(values, lowest), "yes", "no")
        at, chances = self.knots
        is_above = reaches(values, at[0])
        is_below = reaches(-values, -at[-1])
        is_outside = ~(is_above & is_below)
        is_missing = np.isnan(values)
        return shown.assign(
            confidence=values,
            probability=np.interp(values, at, chances),
            given=np.where(is_missing, "missing", decision),
            outside=np.where(is_missing, np.nan, is_outside),
        )

    def _report(self, shown: pd.DataFrame) -> pd.DataFrame:
        """A row a data set: the risk among the answers given, and whether the promise was kept."""
        shown = shown.assign(wrong=1 - shown["correct"])
        lines: list[Line] = []
        for label, part in groups(shown, ["model", "dataset"]):
            is_answered = part["given"].eq("yes")
            line = estimate(Rows.of(part[is_answered], "wrong", NONE), RISK)
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
    model, answers, confidence = part_of(run, method, model, dataset)
    datasets = list(answers["dataset"].unique())
    if len(datasets) > 1:
        raise ValueError(
            f"the run has several data sets, {datasets}: name one (dataset)"
        )
    rows: Any = joined(checked_answers(answers), confidence)
    rows = rows[rows["confidence"].notna()]
    hit = rows["correct"].to_numpy() > 0
    values = rows["confidence"].to_numpy(dtype=float)
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
    is_enough = len(hit) >= LEAST_ANSWERS and n_cases >= LEAST_CASES
    kind: Kind = "isotonic" if is_enough else "logistic"
    is_probability = METHODS[method].scale == "probability"
    at, chances = knots_of(kind, is_probability, values, hit)
    candidates = thresholds(hit, values, rows["case_id"], method in PRODUCTS)
    return Calibrator(
        model=model,
        method=method,
        dataset=datasets[0],
        levels=tuple(sorted(set(rows["level"].tolist()))),
        facts=facts_of(run, model, method),
        n_cases=n_cases,
        n_right=n_right,
        n_wrong=n_wrong,
        n_missing=len(answers) - len(hit),
        kind=kind,
        knots=(tuple(at.tolist()), tuple(chances.tolist())),
        risk=risk,
        sure=sure,
        threshold=promised(candidates, risk, sure),
        worth=_worth(rows, kind, is_probability),
    )


def _worth(rows: Any, kind: Kind, is_probability: bool) -> dict[str, float]:
    """Brier score and ECE of confidences, where they can be calibrated on other cases."""
    fit = partial(knots_of, kind, is_probability)
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
    if content.get("version") != VERSION:
        words = f"{VERSION}; a newer trustlab writes others: update it"
        raise DataError(file, None, "version", content.get("version"), words)
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
    answers = pick(run.answers, model=model)
    confidence = pick(run.confidence, model=model, method=method)
    if dataset is not None:
        answers = pick(answers, dataset=dataset)
        confidence = pick(confidence, dataset=dataset)
    reasons = withheld(run.parameters, [method])
    why = reasons.get((model, ""), reasons.get((model, method)))
    if why:
        raise ValueError(f"nothing is claimed of {method} in this run: {why}")
    return model, answers, confidence


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
    needs = " ".join(METHODS[method].needs)
    for name in [*ONLY_FOR, *(field.name for field in fields(Parameters))]:
        if any(word in needs for word in ONLY_FOR.get(name, [""])):
            facts[name] = parameters.get(name)
    return facts
