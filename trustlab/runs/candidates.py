"""Chooses among named diagnoses by how likely the model finds each name."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
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
from trustlab.records import LEVELS, Case, View
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
    if (own := knowledge.condition_named(name)) is None:
        return []

    def alike(other: Condition) -> tuple[float, str]:
        either = {*own.findings, *other.findings}
        pairs = np.array([[c.findings.get(f, 0.0) for c in (own, other)] for f in either])
        return -pairs.min(1).sum() / pairs.max(1).sum(), other.name

    return [c.name for c in sorted(knowledge.conditions.values(), key=alike) if c.id != own.id]


def candidates_of(case: Case, n: int = 5, seed: int = 0) -> tuple[str, ...]:
    """The diagnosis of a case and what it could be taken for, in an order drawn by ``seed`` and id.
    The options of its question, where it has some (MedQA; a column ``options``, with semicolons
    between); else ``n``: the likeliest of the release's differential, then :func:`look_alikes`."""
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
    """What the models chose.

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
            each = [part.assign(method=m, confidence=part[m], bound="") for m in METRICS if m]
            for label, rows in rows_of_methods(part, pd.concat(each)):
                label |= {"variant": str(scoring)}
                for level, at in {"pooled": rows, **rows.by("level")}.items():
                    chance = float(at["chance"].mean()) if len(at) and not label["method"] else NAN
                    about = {**label, "level": str(level), "chance": chance}
                    lines += measure([(about, at)], METRICS[label["method"]])
                if label["method"]:
                    found = stratified(rows, "auroc")
                    lines.append(label | {"metric": "auroc", "level": "within", **found})
        return table(lines, ["variant", "model", "dataset", "method", "level"], ["chance"])


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
    rows = [
        row
        for model in bench.models(models)
        for row in _scores(model, [(one, names[one.case.case_id]) for one in shown], bench, listed)
    ]
    scores = pd.DataFrame(rows)
    by_view = groups(scores, [*KEYS, "truth"])
    answers = [row for about, part in by_view for row in _chosen(about, part)]
    return Choices(pd.DataFrame(answers), scores)


def _scores(
    model: Model, shown: list[tuple[View, tuple[str, ...]]], bench: Workbench, listed: bool
) -> list[dict[str, Any]]:
    """A row for each candidate of each view."""
    cached = bench.cached(model)
    prompts = bench.prompts_for(model)
    able = cached.scores_text
    rows: list[dict[str, Any]] = []
    requests: list[Request] = []
    for one, names in shown:
        case = one.case
        why = ALONE * (len(names) < 2) if able else NO_SCORES.format(model.name)
        key = dict(zip(KEYS, (case.case_id, case.dataset, one.level, model.name), strict=True))
        for name in names:
            about = {"candidate": name, "right": name in case.accepted, "missing": why}
            rows.append(key | {"truth": case.diagnosis, **about})
        fill = {"asks": case.question} | ({"candidates": "\n".join(names)} if listed else {})
        prompt = partial(prompts.render, "choice" if listed else "diagnosis", **fill)
        both = [prompt(patient=text) for text in (one.text, None)]
        for name, messages in product([] if why else names, both):
            request = Request(
                messages,
                want=frozenset({"logprobs"}),
                purpose="choice",
                continuation=f"[{name}]",
                about=About.of(one),
            )
            requests.append(request)
    replies = iter([reply for (reply,) in cached.generate(requests)])
    if cached is not model:
        cached.close()
    for row in (row for row in rows if not row["missing"]):
        told = next(replies)
        untold = next(replies)
        row["missing"] = told.missing or untold.missing or ""
        for name, reply in {"likelihood": told, "without_patient": untold}.items():
            row[name] = float(reply.trace.logprobs.sum()) if reply.trace else NAN  # type: ignore
        row["n_tokens"] = told.n_tokens_out
    return rows


def _chosen(about: dict[str, Any], part: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """The choice of one view by each scoring; of equals the first shown."""
    why = next(filter(None, part["missing"]), "")
    for scoring in SCORINGS:
        line = {
            **about,
            "scoring": scoring,
            "n_candidates": len(part),
            "answer": None,
            "correct": NAN,
            "missing": why,
            "probability": NAN,
            "margin": NAN,
        }
        if not why:
            values = part["likelihood"].to_numpy()
            if scoring != "likelihood":
                prior = part["without_patient"]
                length = part["n_tokens"]
                values = values / length if scoring == "per_token" else values - prior
            chances = softmax(np.asarray(values))
            second, first = np.sort(chances)[-2:]
            chosen = part.iloc[int(chances.argmax())]
            line |= {
                "answer": chosen["candidate"],
                "correct": float(chosen["right"]),
                "probability": float(first),
                "margin": float(first - second),
            }
        yield line
