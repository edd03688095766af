"""Chooses among named diagnoses by how likely the model finds each name."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import softmax

from trustlab.knowledge.findings import Condition, load_knowledge
from trustlab.levels import views
from trustlab.metrics.calibration import CALIBRATION
from trustlab.metrics.discrimination import RANKING
from trustlab.metrics.estimate import NAN, Metric, at_least, groups, measure, rate
from trustlab.metrics.run_tables import KEYS, rows_of_methods, stratified
from trustlab.metrics.schema import table
from trustlab.models.base import About, Model, Request
from trustlab.prompts import Prompts
from trustlab.records import LEVELS, Case, Reply, View
from trustlab.runs.workbench import Workbench, opened
from trustlab.settings import Setup, given

SCORINGS = ("likelihood", "per_token", "contrast")
"""What of a name is normalised over the candidates: the log-likelihood of its tokens, summed; their
mean; the sum less that of the same name where nothing of the patient is told."""
AUROC = {"auroc": Metric(RANKING["auroc"], at_least(10))}
METRICS: dict[str, dict[str, Any]] = {
    "": {"accuracy": rate("correct")},
    "probability": AUROC | {name: CALIBRATION[name] for name in ("brier", "ece")},
    "margin": AUROC,
}
"""What is measured of the choices, of the chosen one's probability, and of this less the next."""
NO_SCORES = "{} gives no probability of a text that it did not write"
ALONE = "the case has no candidates beside its diagnosis"


def look_alikes(name: str) -> list[str]:
    """Other conditions of the knowledge table, the most alike first: by the findings that both have
    over those that either has, weighed by their chance. None of a name not in it."""
    knowledge = load_knowledge()
    condition = knowledge.condition_named(name)
    if condition is None:
        return []
    others = []
    for other in knowledge.conditions.values():
        if other.id != condition.id:
            others.append((-_finding_overlap(condition, other), other.name))
    return [name for _, name in sorted(others)]


def _finding_overlap(condition: Condition, other: Condition) -> float:
    """The chances of the findings that both have over those of the findings that either has."""
    pairs = []
    for finding in {*condition.findings, *other.findings}:
        pairs.append(
            (condition.findings.get(finding, 0.0), other.findings.get(finding, 0.0))
        )
    chances = np.array(pairs)
    return chances.min(1).sum() / chances.max(1).sum()


def candidates_of(case: Case, n: int = 5, seed: int = 0) -> tuple[str, ...]:
    """The diagnosis of a case and its look-alikes, in an order drawn by ``seed`` and the case's id.
    The options of its question, where it has some (MedQA; a column ``options``, with semicolons
    between); else ``n``: the likeliest of the release's differential, then :func:`look_alikes`."""
    names = _options_of(case)
    if not names:
        names = _look_alikes_of(case)[:n]
    random.Random(f"{seed}:{case.case_id}").shuffle(names)
    return tuple(names)


def _options_of(case: Case) -> list[str]:
    """The options of a case's question, and its diagnosis where that is not among them; none where
    the question has no options."""
    options: Any = case.patient.get("options", ())
    if not options:
        return []
    if isinstance(options, str):
        options = options.split(";")
    names = [option.strip() for option in options]
    if set(names).isdisjoint(case.accepted):
        names.append(case.diagnosis)
    return names


def _look_alikes_of(case: Case) -> list[str]:
    """The diagnosis of a case, then the likeliest of its differential, then look-alikes."""
    differential: Any = case.patient.get("differential", ())
    names = [case.diagnosis]
    ranked = sorted(differential, key=lambda pair: (-pair[1], pair[0]))
    others = [name for name, _ in ranked] + look_alikes(case.diagnosis)
    for name in dict.fromkeys(others):
        if name not in case.accepted:
            names.append(name)
    return names


@dataclass(frozen=True)
class Choices:
    """The models' choices among candidate diagnoses.

    - ``answers``: one row for each model, case, level and scoring (:data:`SCORINGS`): ``answer``,
      ``truth``, ``correct`` (1 or 0), ``probability`` and ``margin`` (the probability minus the
      next one's), both in [0, 1]; ``missing`` says why there is no choice.
    - ``scores``: one row for each candidate of each view, in the order shown: ``likelihood`` and
      ``without_patient`` in nats, ``n_tokens``, ``right`` and ``missing``.
    """

    answers: pd.DataFrame
    scores: pd.DataFrame

    def metrics(self) -> pd.DataFrame:
        """:data:`METRICS` by level, within levels and pooled, with intervals over cases. Accuracy
        has the ``chance`` of a guess beside it (:mod:`trustlab.metrics.schema`)."""
        lines: list[dict[str, Any]] = []
        for scoring, part in self.answers.groupby("scoring", sort=False):
            part = part.assign(chance=1 / part["n_candidates"])
            confidences = []
            for name in ("probability", "margin"):
                confidences.append(
                    part.assign(method=name, confidence=part[name], bound="")
                )
            for label, rows in rows_of_methods(part, pd.concat(confidences)):
                label["variant"] = str(scoring)
                method = label["method"]
                for level, at_level in {"pooled": rows, **rows.by("level")}.items():
                    chance = NAN
                    if len(at_level) and not method:
                        chance = float(at_level["chance"].mean())
                    about = {**label, "level": str(level), "chance": chance}
                    lines += measure([(about, at_level)], METRICS[method])
                if method:
                    within = stratified(rows, "auroc")
                    lines.append(
                        label | {"metric": "auroc", "level": "within", **within}
                    )
        return table(
            lines, ["variant", "model", "dataset", "method", "level"], ["chance"]
        )

    def shares(self, scoring: str = "likelihood") -> pd.DataFrame:
        """The chances of the candidates by a scoring, a row each: for
        :func:`trustlab.conformal_sets`."""
        parts = []
        for _, part in groups(self.scores, KEYS):
            parts.append(part.assign(probability=_chances(scoring, part)))
        return pd.concat(parts).rename(columns={"candidate": "option"})


def choice(
    cases: Sequence[Case],
    models: str | Model | Sequence[str | Model] | None = None,
    levels: Sequence[int] | None = None,
    setup: Setup | Workbench | None = None,
    *,
    n: int = 5,
    listed: bool = True,
) -> Choices:
    """Let every model choose among candidate diagnoses (:func:`candidates_of`) at every level.
    Each name, in brackets, is scored as the reply to a prompt that lists all names. With
    ``listed=False`` the prompt asks for a diagnosis, for a model that was taught no other prompt.
    If ``None``, models and levels come from ``setup``. A model that cannot score a given text has
    no choice, with that reason. ``ValueError`` if ``n`` is below 2."""
    if n < 2:
        raise ValueError(f"n is {n!r}; it must be a whole number, at least 2")
    bench = opened(setup)
    shown = views(cases, given(levels, bench.levels, LEVELS))
    names = {case.case_id: candidates_of(case, n, bench.seed) for case in cases}
    candidates = [(view, names[view.case.case_id]) for view in shown]
    rows = []
    for model in bench.models(models):
        rows += _scores(model, candidates, bench, listed)
    scores = pd.DataFrame(rows)
    answers = []
    for labels, part in groups(scores, [*KEYS, "truth"]):
        for scoring in SCORINGS:
            answers.append(labels | _choose(scoring, part))
    return Choices(pd.DataFrame(answers), scores)


def _scores(
    model: Model,
    candidates: list[tuple[View, tuple[str, ...]]],
    bench: Workbench,
    listed: bool,
) -> list[dict[str, Any]]:
    """A row for each candidate of each view."""
    cached = bench.cached(model)
    prompts = bench.prompts_for(model)
    scores_text = cached.scores_text
    rows: list[dict[str, Any]] = []
    requests: list[Request] = []
    for view, names in candidates:
        case = view.case
        why = ""
        if not scores_text:
            why = NO_SCORES.format(model.name)
        elif len(names) < 2:
            why = ALONE
        for name in names:
            row = {
                "case_id": case.case_id,
                "dataset": case.dataset,
                "level": view.level,
                "model": model.name,
                "truth": case.diagnosis,
                "candidate": name,
                "right": name in case.accepted,
                "missing": why,
                "likelihood": NAN,
                "without_patient": NAN,
                "n_tokens": NAN,
            }
            rows.append(row)
        if not why:
            requests += _scoring_requests(view, names, prompts, listed)
    replies = iter([reply for (reply,) in cached.generate(requests)])
    if cached is not model:
        cached.close()
    for row in rows:
        if row["missing"]:
            continue
        with_patient = next(replies)
        without_patient = next(replies)
        row["missing"] = with_patient.missing or without_patient.missing or ""
        row["likelihood"] = _log_likelihood(with_patient)
        row["without_patient"] = _log_likelihood(without_patient)
        row["n_tokens"] = with_patient.n_tokens_out
    return rows


def _log_likelihood(reply: Reply) -> float:
    """The log-likelihood of a scored text, in nats; NaN without a trace."""
    if not reply.trace:
        return NAN
    logprobs: Any = reply.trace.logprobs
    return float(logprobs.sum())


def _scoring_requests(
    view: View, names: Sequence[str], prompts: Prompts, listed: bool
) -> list[Request]:
    """Two requests for each name: with the patient's words, and without them."""
    fill = {"asks": view.case.question}
    if listed:
        fill["candidates"] = "\n".join(names)
    prompt = "choice" if listed else "diagnosis"
    with_patient = prompts.render(prompt, patient=view.text, **fill)
    without_patient = prompts.render(prompt, patient=None, **fill)
    requests = []
    for name, messages in product(names, [with_patient, without_patient]):
        request = Request(
            messages,
            want=frozenset({"logprobs"}),
            purpose="choice",
            continuation=f"[{name}]",
            about=About.of(view),
        )
        requests.append(request)
    return requests


def _chances(scoring: str, part: pd.DataFrame) -> np.ndarray:
    """The probabilities of the candidates of one view (n,) by a scoring; NaN without its scores."""
    values = part["likelihood"].to_numpy()
    if scoring == "per_token":
        values = values / part["n_tokens"]
    elif scoring == "contrast":
        values = values - part["without_patient"]
    return softmax(np.asarray(values))


def _choose(scoring: str, part: pd.DataFrame) -> dict[str, Any]:
    """The choice among the candidates of one view by a scoring; of equals the first shown."""
    reasons = [why for why in part["missing"] if why]
    if reasons:
        return {
            "scoring": scoring,
            "n_candidates": len(part),
            "answer": None,
            "correct": NAN,
            "missing": reasons[0],
            "probability": NAN,
            "margin": NAN,
        }
    chances = _chances(scoring, part)
    second, first = np.sort(chances)[-2:]
    chosen = part.iloc[int(chances.argmax())]
    return {
        "scoring": scoring,
        "n_candidates": len(part),
        "answer": chosen["candidate"],
        "correct": float(chosen["right"]),
        "missing": "",
        "probability": float(first),
        "margin": float(first - second),
    }
