"""Why confidence methods mislead, on a run's own answers: forced tokens, common answers, samples that merely agree.

Each function is pure: a run, or one of the tables made here, in; a tidy table out. They stand behind the figures of
``trustlab.plots.walkthrough``, which show the mechanisms of Ren et al. 2026, figure 5.
Intervals are percentile bootstrap over cases.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportGeneralTypeIssues=false, reportReturnType=false

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from trustlab.confidence import METHODS
from trustlab.knowledge import Knowledge
from trustlab.metrics.estimate import bounded_interval, case_weights
from trustlab.metrics.ties import reaches

if TYPE_CHECKING:
    from trustlab.experiments.benchmark import Run

KEYS = ["case_id", "level", "model"]
MIN_ANSWERS = 10
"""A mean of fewer answers is left out of a figure of means."""
MEASURED = ["value", "low", "high", "n", "n_cases", "missing"]
LENGTHS = range(2, 11)
"""Numbers of tokens whose positions are compared."""


def token_table(run: Run) -> pd.DataFrame:
    """One row a token of each greedy diagnosis whose token probabilities are known.

    Columns case_id level model n_tokens position probability correct n; ``position`` counts from 1,
    ``n`` answers: one.
    """
    correct = _by_answer(run.answers, "correct")
    rows = []
    for g in run.generations:
        trace = g.answer.trace if g.answer is not None else None
        if trace is None or trace.logprobs is None:
            continue
        key = (g.case_id, g.level, g.model)
        for position, probability in enumerate(np.exp(trace.logprobs), start=1):
            rows.append((*key, len(trace), position, float(probability), correct[key]))
    return pd.DataFrame(rows, columns=[*KEYS, "n_tokens", "position", "probability", "correct"]).assign(n=1)


def position_means(tokens: pd.DataFrame) -> pd.DataFrame:
    """Mean token probability by position, for each number of tokens (2 to 10) that at least 10 answers have.

    Columns n_tokens position value n n_cases; ``n`` counts answers.
    """
    held = tokens[tokens["n_tokens"].isin(LENGTHS)]
    grouped: Any = held.groupby(["n_tokens", "position"])
    counted = {"n": ("probability", "size"), "n_cases": ("case_id", "nunique")}
    found = grouped.agg(value=("probability", "mean"), **counted).reset_index()
    return found[found["n"] >= MIN_ANSWERS].reset_index(drop=True)


def wrong_by_length(tokens: pd.DataFrame, n_draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """Of wrong answers, by number of tokens: the mean of all tokens' probabilities (ASP) and of the first token's.

    Columns n_tokens what value low high n n_cases reason; ``what`` is "asp" or "first". Lengths of
    fewer than 10 wrong answers are left out; ``missing`` says why there is no interval.
    """
    grouped: Any = tokens[tokens["correct"] == 0].groupby([*KEYS, "n_tokens"])["probability"]
    answers = grouped.agg(asp="mean", first="first").reset_index()
    columns = ["n_tokens", "what", *MEASURED]
    if not len(answers):
        return pd.DataFrame(columns=columns)
    weights = case_weights(answers["case_id"].to_numpy(), n_draws, seed)
    rows = []
    for length in sorted(answers["n_tokens"].unique()):
        at = (answers["n_tokens"] == length).to_numpy()
        if at.sum() < MIN_ANSWERS:
            continue
        for what in ("asp", "first"):
            rows.append((int(length), what, *_mean(answers[what], at, weights, answers["case_id"])))
    return pd.DataFrame(rows, columns=columns)


def token_means(tokens: pd.DataFrame) -> pd.DataFrame:
    """What the figure of token positions draws: :func:`position_means`, then :func:`wrong_by_length`, told apart by ``answers``.

    ``answers`` is "all" (a value a position) or "wrong" (``what`` "asp" or "first").
    """
    parts = {"all": position_means(tokens), "wrong": wrong_by_length(tokens)}
    return _joined(parts, "answers")


def _joined(parts: dict[str, pd.DataFrame], name: str) -> pd.DataFrame:
    """The tables under one another, column ``name`` saying which; those without rows add no columns' types."""
    held = [part.assign(**{name: key}) for key, part in parts.items() if len(part)]
    columns = [name, *dict.fromkeys(c for part in parts.values() for c in part)]
    return pd.concat(held, ignore_index=True).reindex(columns=columns) if held else pd.DataFrame(columns=columns)


def agreement_table(run: Run, knowledge: Knowledge) -> pd.DataFrame:
    """One row an answer: how common the answered condition is, and how far the samples agree.

    Columns case_id level model answer prior poc correct n. ``n`` counts answers, ``prior`` is the
    condition's share of all priors in ``knowledge``, NaN where the answer names none of its
    conditions; ``poc`` is NaN where missing. Raises ``ValueError`` for a run without PoC.
    """
    if "poc" not in set(run.confidence["method"]):
        raise ValueError("the run has no method 'poc', so its samples' agreement is unknown")
    whole = sum(c.prior for c in knowledge.conditions.values())
    table = run.answers[[*KEYS, "answer"]].copy()
    named = [knowledge.condition_named(a) if isinstance(a, str) else None for a in table["answer"]]
    table["prior"] = [math.nan if c is None else c.prior / whole for c in named]
    table["poc"] = _aligned(run, "poc")
    table = table.assign(correct=run.answers["correct"]).reset_index(drop=True)
    return table.assign(n=table["poc"].notna().astype(int))


def prior_means(table: pd.DataFrame, bins: int = 5, n_draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """Mean PoC by fifths of the answers' prior, right and wrong answers apart.

    Columns correct bin prior value low high n n_cases reason; ``prior`` is the bin's mean over
    right and wrong, whose limits are the same. Equal priors share a bin; with no more than ``bins``
    different priors each is one. Bins of fewer than 10 answers are left out; ``missing`` says why
    there is no interval.
    """
    known = table.dropna(subset=["prior", "poc"])
    columns = ["correct", "bin", "prior", *MEASURED]
    if not len(known):
        return pd.DataFrame(columns=columns)
    if known["prior"].nunique() <= bins:
        bin_of = known["prior"].rank(method="dense").to_numpy().astype(int) - 1
    else:
        rank = known["prior"].rank(method="average").to_numpy()
        bin_of = np.minimum((bins * (rank - 0.5) / len(known)).astype(int), bins - 1)
    weights = case_weights(known["case_id"].to_numpy(), n_draws, seed)
    rows = []
    for correct in (1, 0):
        for b in np.unique(bin_of):
            at = (bin_of == b) & (known["correct"] == correct).to_numpy()
            if at.sum() >= MIN_ANSWERS:
                prior = known["prior"].to_numpy()[bin_of == b].mean()
                found = _mean(known["poc"], at, weights, known["case_id"])
                rows.append((correct, int(b), prior, *found))
    return pd.DataFrame(rows, columns=columns)


def agreement_drawn(table: pd.DataFrame) -> pd.DataFrame:
    """What the figure of common answers draws: each answer of :func:`agreement_table`, then :func:`prior_means`.

    ``drawn`` tells them apart, "answer" or "mean"; ``value`` is PoC or its mean.
    """
    answers = table.rename(columns={"poc": "value"}).assign(n_cases=table["n"])
    answers["missing"] = np.where(answers["value"].isna(), "no PoC", "")
    parts = {"answer": answers, "mean": prior_means(table)}
    return _joined(parts, "drawn")


def consistent_table(run: Run, threshold: float = 0.8, n_draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """By level, the answers whose PoC reaches ``threshold``: how many, how often right, and what MedConf says of them.

    Columns model level threshold n n_cases n_answers accuracy low high poc medconf n_medconf
    medconf_cases shown reason. Accuracy, ``poc`` and ``shown`` are means over the ``n`` answers,
    ``medconf`` over ``n_medconf``. ``n_answers`` counts all of the level that could be had,
    ``n_medconf`` those of the ``n`` that have a MedConf; ``shown`` is the mean share of the case's
    statements shown. ``low`` and ``high`` bound the accuracy and are NaN below 10 cases, or where
    all are alike: ``missing``.
    """
    total = {(g.case_id, g.level, g.model): g.n_total for g in run.generations}
    table = run.answers[[*KEYS, "correct"]].assign(
        poc=_aligned(run, "poc"),
        medconf=_aligned(run, "medconf"),
        shown=[r.n_statements / total[r.case_id, r.level, r.model] for r in run.answers.itertuples()],
    )
    rows = []
    models: Any = table.groupby("model", sort=False)
    for model, part in models:
        weights = case_weights(part["case_id"].to_numpy(), n_draws, seed)
        for level in sorted(part["level"].unique()):
            here = ((part["level"] == level) & part["correct"].notna()).to_numpy()
            at = here & reaches(part["poc"], threshold)
            chosen = part[at]
            means = [float(chosen[c].mean()) for c in ("poc", "medconf")]
            accuracy, low, high, n, n_cases, reason = _mean(part["correct"], at, weights, part["case_id"])
            counts = (n, n_cases, int(here.sum()))
            scored = chosen.loc[chosen["medconf"].notna(), "case_id"]
            more = (len(scored), scored.nunique(), float(chosen["shown"].mean()), reason)
            rows.append((model, int(level), threshold, *counts, accuracy, low, high, *means, *more))
    columns = ["model", "level", "threshold", "n", "n_cases", "n_answers", "accuracy", "low", "high"]
    columns += ["poc", "medconf", "n_medconf", "medconf_cases", "shown", "missing"]
    return pd.DataFrame(rows, columns=columns)


def moves_table(run: Run, case_id: str) -> pd.DataFrame:
    """Every method's confidence at every level for one case, in the run's order of methods.

    Columns case_id model level method family scale confidence n missing answer correct; ``n`` is 1
    for a value, 0 for none. Raises ``ValueError`` for an unknown case.
    """
    mine = run.confidence[run.confidence["case_id"] == case_id]
    if not len(mine):
        raise ValueError(f"the run has no case {case_id!r}; it has {', '.join(run.answers['case_id'].unique()[:10])} ...")
    table = mine.merge(run.answers[[*KEYS, "answer", "correct"]], on=KEYS, how="left", validate="many_to_one")
    for name in ("family", "scale"):
        table[name] = [getattr(METHODS[m], name) for m in table["method"]]
    order = {m: i for i, m in enumerate(dict.fromkeys(table["method"]))}
    table = table.assign(place=table["method"].map(order)).sort_values(["model", "place", "level"], kind="stable")
    table = table.assign(n=table["confidence"].notna().astype(int))
    columns = ["case_id", "model", "level", "method", "family", "scale", "confidence", "n", "missing", "answer", "correct"]
    return table[columns].reset_index(drop=True)


def _by_answer(table: pd.DataFrame, column: str) -> dict[Any, Any]:
    """``column`` by (case_id, level, model)."""
    keys = table[KEYS].itertuples(index=False, name=None)
    return dict(zip(keys, table[column], strict=True))


def _aligned(run: Run, method: str) -> list[float]:
    """A method's confidence in the order of ``run.answers``, NaN where missing."""
    found = _by_answer(run.confidence[run.confidence["method"] == method], "confidence")
    return [found.get(key, math.nan) for key in run.answers[KEYS].itertuples(index=False, name=None)]


def _mean(
    values: pd.Series, at: np.ndarray, weights: np.ndarray, case_ids: pd.Series
) -> tuple[float, float, float, int, int, str]:
    """The mean of the rows ``at`` with its interval: :data:`MEASURED`; NaN where there are none."""
    if not at.any():
        return math.nan, math.nan, math.nan, 0, 0, "no answer"
    x, w, cases = values.to_numpy(float)[at], weights[:, at], case_ids.to_numpy()[at]
    with np.errstate(invalid="ignore"):
        draws = (w @ x) / w.sum(1)
    low, high, reason = bounded_interval(draws, cases)
    return float(x.mean()), low, high, len(x), len(np.unique(cases)), reason
