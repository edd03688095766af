"""A choice among candidate diagnoses: the likelihood of each name as the reply, with no reply to
parse and nothing to grade."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import softmax
from tqdm import tqdm

from trustlab.knowledge import Condition, load_knowledge
from trustlab.levels import views
from trustlab.metrics.calibration import CALIBRATION
from trustlab.metrics.discrimination import RANKING
from trustlab.metrics.estimate import NAN, Metric, at_least, estimate, mean
from trustlab.metrics.run_tables import rows_of_methods, stratified
from trustlab.metrics.schema import table
from trustlab.models.base import About, Request
from trustlab.models.cache import CachedModel
from trustlab.prompts import render
from trustlab.records import LEVELS, Case, Reply, View
from trustlab.settings import Setup, given
from trustlab.workbench import Workbench, opened

SCORINGS = ("likelihood", "per_token", "contrast")
"""What of a name is normalised over the candidates: the log-likelihood of its tokens, summed; their
mean; the sum less that of the same name where nothing of the patient is told (what is left when
the name's own commonness and its place in the list are taken off)."""
METHODS = ("probability", "margin")
"""Of the candidate that was chosen: its probability, and this less the next one's."""
NO_SCORES = "{} gives no probability of a text that it did not write"
ALONE = "the case has no candidates beside its diagnosis"


def look_alikes(name: str) -> list[str]:
    """Other conditions of the knowledge table, the most alike first; none of a name not in it.

    Alike: the findings that both have, over those that either has, weighed by their chance.
    """
    knowledge = load_knowledge()
    if (own := knowledge.condition_named(name)) is None:
        return []

    def alike(other: Condition) -> tuple[float, str]:
        pairs = [
            (own.findings.get(f, 0.0), other.findings.get(f, 0.0))
            for f in {*own.findings, *other.findings}
        ]
        return -sum(map(min, pairs)) / sum(map(max, pairs)), other.name

    others = [c for c in knowledge.conditions.values() if c.id != own.id]
    return [other.name for other in sorted(others, key=alike)]


def candidates_of(case: Case, n: int = 5, seed: int = 0) -> tuple[str, ...]:
    """The diagnosis of a case and what it could be taken for, in an order drawn by ``seed`` and the
    case's id.

    The options of its question, however many, where it has some (MedQA; a column ``options`` of
    one's own table, parted by semicolons); else ``n``: the likeliest others of the release's
    differential (DDXPlus), then :func:`look_alikes`.
    """
    options: Any = case.patient.get("options", ())
    differential: Any = case.patient.get("differential", ())
    if options:
        names = [x.strip() for x in (options.split(";") if isinstance(options, str) else options)]
        names += [] if set(names) & set(case.accepted) else [case.diagnosis]
    else:
        likeliest = [name for name, _ in sorted(differential, key=lambda pair: (-pair[1], pair[0]))]
        others = dict.fromkeys([*likeliest, *look_alikes(case.diagnosis)])
        names = [case.diagnosis, *(x for x in others if x not in case.accepted)][:n]
    random.Random(f"{seed}:{case.case_id}").shuffle(names)
    return tuple(names)


@dataclass(frozen=True)
class Choices:
    """What was chosen.

    - ``answers``: a row a model, case, level and scoring (:data:`SCORINGS`): ``answer`` of
      ``n_candidates``, ``truth``, ``correct`` (1 or 0), ``probability`` and ``margin`` in [0, 1],
      ``missing`` says why there is none.
    - ``scores``: a row a candidate of each view, in the order shown: ``likelihood`` and
      ``without_patient`` in nats, ``n_tokens``.
    """

    answers: pd.DataFrame
    scores: pd.DataFrame

    def metrics(self, n_draws: int = 2000, seed: int = 0) -> pd.DataFrame:
        """Accuracy (method '') beside what guessing gives (``chance``); AUROC of probability and
        margin, Brier score and ECE of the probability; by level, within levels and pooled, with
        intervals over cases (:mod:`trustlab.metrics.schema`)."""
        lines = [
            {"variant": scoring} | line
            for scoring, part in self.answers.groupby("scoring", sort=False)
            for line in _measured(part, n_draws, seed)
        ]
        keys = ["variant", "model", "dataset", "method", "level"]
        return table(lines, keys, ["n_rarer", "chance"])


def choice(
    cases: Sequence[Case] | None = None,
    models: Any = None,
    levels: Sequence[int] | None = None,
    setup: Setup | Workbench | None = None,
    *,
    n: int = 5,
    listed: bool = True,
) -> Choices:
    """Let every model choose among candidate diagnoses (:func:`candidates_of`) at every level.

    Each name in brackets is scored as the reply to a prompt that lists them all; not ``listed``, to
    the one that asks for a diagnosis, for a model that was taught no other. What is not given is
    ``setup``'s. A model that scores no given text has no choice, with that reason. ``ValueError``
    for ``n`` below 2.
    """
    if n < 2:
        raise ValueError(f"n is {n!r}; it must be a whole number, at least 2")
    bench = opened(setup)
    cases = bench.cases() if cases is None else cases
    shown = views(cases, given(levels, bench.levels, LEVELS))
    names = {case.case_id: candidates_of(case, n, bench.seed) for case in cases}
    answers, scores = [], []
    for model in bench.models(models):
        for one, rows, why in _asked(model, shown, names, bench, listed):
            key = {"case_id": one.case.case_id, "dataset": one.case.dataset}
            key |= {"level": one.level, "model": model.name}
            scores += [key | row for row in rows]
            answers += [key | row for row in _chosen(one, rows, len(names[key["case_id"]]), why)]
    return Choices(pd.DataFrame(answers), pd.DataFrame(scores))


def _asked(
    model: Any,
    shown: Sequence[View],
    names: dict[str, tuple[str, ...]],
    bench: Workbench,
    listed: bool,
) -> Iterator[tuple[View, list[dict[str, Any]], str]]:
    """Each view with what its candidates scored, or why they have no scores."""
    inner = model.model if isinstance(model, CachedModel) else model
    why = "" if getattr(inner, "scores_text", False) else NO_SCORES.format(model.name)
    lacks = {case_id: why or ALONE * (len(some) < 2) for case_id, some in names.items()}
    requests = [
        _request(one, names[one.case.case_id] if listed else (), name, told)
        for one in shown
        for name in names[one.case.case_id]
        for told in (True, False)
        if not lacks[one.case.case_id]
    ]
    cached = model if isinstance(model, CachedModel) else CachedModel(model, bench.store)
    with tqdm(total=len(requests), disable=bench.quiet, desc=f"choice, {model.name}") as bar:
        replies = iter([reply for (reply,) in cached.generate(requests, progress=bar.update)])
    if cached is not model:
        cached.close()
    for one in shown:
        if why := lacks[one.case.case_id]:
            yield one, [], why
            continue
        pairs = [(name, next(replies), next(replies)) for name in names[one.case.case_id]]
        why = next((r.missing for _, *both in pairs for r in both if r.missing), "")
        yield one, [] if why else [_scored(*pair) for pair in pairs], why


def _request(one: View, listed: Sequence[str], name: str, told: bool) -> Request:
    """The question whose reply is to be a name, or the same with the patient left out."""
    patient = one.text if told else None
    return Request(
        render("choice", patient=patient, candidates="\n".join(listed))
        if listed
        else render("diagnosis", patient=patient),
        want=frozenset({"logprobs"}),
        continuation=f"[{name}]",
        purpose="choice",
        about=About.of(one),
    )


def _scored(name: str, told: Reply, untold: Reply) -> dict[str, Any]:
    likelihood, prior = (float(np.sum(r.trace.logprobs)) for r in (told, untold))  # type: ignore
    more = {"without_patient": prior, "n_tokens": told.n_tokens_out}
    return {"candidate": name, "likelihood": likelihood, **more}


def _chosen(one: View, rows: list[dict[str, Any]], n: int, why: str) -> Iterator[dict[str, Any]]:
    """The choice by each scoring; of equals the first shown."""
    for scoring in SCORINGS:
        line = {"scoring": scoring, "n_candidates": n, "answer": None, "truth": one.case.diagnosis}
        line |= {"correct": np.nan, "probability": np.nan, "margin": np.nan, "missing": why}
        if rows:
            sums, priors, lengths = (
                np.array([row[k] for row in rows])
                for k in ("likelihood", "without_patient", "n_tokens")
            )
            by = {"likelihood": sums, "per_token": sums / lengths, "contrast": sums - priors}
            chances = softmax(by[scoring])
            best, (second, first) = int(chances.argmax()), np.sort(chances)[-2:]
            answer = rows[best]["candidate"]
            line |= {"answer": answer, "correct": float(answer in one.case.accepted)}
            line |= {"probability": float(first), "margin": float(first - second)}
        yield line


def _measured(answers: pd.DataFrame, n_draws: int, seed: int) -> Iterator[dict[str, Any]]:
    """The lines of one scoring."""
    confidence = pd.concat(
        [answers.assign(method=m, confidence=answers[m], bound="") for m in METHODS]
    )
    guessing = answers.assign(chance=1 / answers["n_candidates"])
    for label, rows in rows_of_methods(guessing, confidence, n_draws, seed):
        each = {"pooled": rows, **rows.by("level")}
        if not label["method"]:
            for level, part in each.items():
                line = estimate(part, mean("correct"))
                line["chance"] = float(part["chance"].mean()) if len(part) else NAN
                yield label | {"metric": "accuracy", "level": str(level), **line}
            continue
        auroc = Metric(RANKING["auroc"][0], at_least(10))
        for level, part in each.items():
            line = estimate(part, auroc) | {"chance": 0.5}
            yield label | {"metric": "auroc", "level": str(level), **line}
        yield label | {"metric": "auroc", "level": "within", **stratified(rows, "auroc")}
        if label["method"] == "probability":
            for name in ("brier", "ece"):
                for level, part in each.items():
                    found = estimate(part, CALIBRATION[name])
                    yield label | {"metric": name, "level": str(level), **found}
