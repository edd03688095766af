"""What an unreliable grader would do to AUROC: labels flipped at random, and what to expect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import kendalltau, rankdata

from trustlab.metrics.estimate import (
    Metric,
    Rows,
    Statistic,
    at_least,
    estimate,
    mean_of_known,
    within,
)
from trustlab.metrics.run_tables import rows_of_methods
from trustlab.metrics.schema import table
from trustlab.metrics.ties import tied

RATES = (0.0, 0.05, 0.1, 0.2)
RUN = ["model", "dataset"]
NO_ORDER = "fewer than two methods that differ"


def expected_auroc(
    auroc: float, prevalence: float, right_to_wrong: float, wrong_to_right: float | None = None
) -> float:
    """AUROC to expect after flips that do not look at the confidence, in a large sample.

    - ``prevalence``: the true share of right answers, in (0, 1); the other two: the chances that a
      right answer is called wrong and a wrong one right (the same where ``None``).
    - s is the share of right answers among those called right, minus that among those called
      wrong. A pair of one called right and one called wrong is then as it seems, reversed or of
      one kind, so AUROC' = 1/2 + s (AUROC - 1/2).
    - ``ValueError`` for chances outside [0, 1] or a class left empty.
    """
    lost, gained = right_to_wrong, right_to_wrong if wrong_to_right is None else wrong_to_right
    if not (0 < prevalence < 1 and 0 <= lost <= 1 and 0 <= gained <= 1):
        received = f"{prevalence}, {lost}, {gained}"
        raise ValueError(f"prevalence must be in (0, 1) and flips in [0, 1]; received {received}")
    called_right = prevalence * (1 - lost) + (1 - prevalence) * gained
    if not 0 < called_right < 1:
        raise ValueError(f"flips of {lost} and {gained} leave one class only")
    s = prevalence * (1 - lost) / called_right - prevalence * lost / (1 - called_right)
    return 0.5 + s * (auroc - 0.5)


def auroc_under_noise(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    methods: Sequence[str],
    rates: Sequence[float] = RATES,
    n_repeats: int = 20,
    seed: int = 0,
    min_per_class: int = 10,
) -> pd.DataFrame:
    """AUROC of each method when each grade is flipped with chance ``rate``, right or wrong alike.

    - ``level`` is "pooled" or "within": mean over the levels that have both classes without noise.
    - ``value`` is the mean over the repeats, ``low`` and ``high`` hold the middle 95 % of them: the
      spread over flips, not over cases. ``n_rarer`` counts before any flip.
    - ``expected`` is :func:`expected_auroc`, within level as the mean of the levels'.
    - All methods share the flips; a grade flipped at a rate stays flipped at a higher one.
    - Withheld below ``min_per_class`` right or wrong answers. ``ValueError`` for other rates, no
      repeats, or a method that ``confidence`` does not hold.
    """
    few = at_least(min_per_class)
    lines = []
    for label, over, rows, drawn in _parts(answers, confidence, methods, rates, n_repeats, seed):
        for method in methods:
            why = few(rows[method])
            for rate, each in zip(map(float, rates), drawn[method][1:], strict=True):
                noisy = Metric(lambda _, each=each: each, few, widthless=True)
                told = {"method": method, "rate": rate, "metric": "auroc"}
                told["expected"] = np.nan if why else over(_expected(rate))(rows[method])[0]
                lines.append({**label, **told, **estimate(rows[method], noisy)})
    return table(lines, ["model", "dataset", "method", "rate", "level"], ["expected", "n_rarer"])


def order_under_noise(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    methods: Sequence[str],
    rates: Sequence[float] = RATES,
    min_per_class: int = 10,
    **how: Any,
) -> pd.DataFrame:
    """How far flipped grades change the order of the methods: Kendall's tau (b) to that without.

    - ``value`` is the mean over the repeats, ``low`` and ``high`` hold the middle 95 % of them.
    - ``moved`` names the methods whose place changed in the order by mean AUROC, such as "poc 1 to
      2", of ``n_methods``: those without a value are left out. ``n`` counts the answers.
    - Otherwise as :func:`auroc_under_noise`.
    """
    few = at_least(min_per_class)
    lines = []
    for label, _, rows, drawn in _parts(answers, confidence, methods, rates, **how):
        names = [m for m in methods if not few(rows[m]) and not np.isnan(drawn[m]).any()]
        each = np.stack([drawn[m] for m in names] or [np.zeros((1 + len(rates), 2))])[: len(names)]
        clean = each[:, 0, 0]
        for i, rate in enumerate(map(float, rates), 1):
            before, after = (rankdata(-tied(x), "ordinal") for x in (clean, each[:, i, 0]))
            places = zip(names, before, after, strict=True)
            told = {"rate": rate, "metric": "kendall_tau", "n_methods": len(names)}
            told["moved"] = ", ".join(f"{m} {a:.0f} to {b:.0f}" for m, a, b in places if a != b)
            orders = each[:, i, 1:].T if len(names) > 1 else []
            taus = np.array([kendalltau(tied(clean), tied(x))[0] for x in orders] or [np.nan])
            tau = np.append(mean_of_known(taus), taus)
            metric = Metric(lambda _, tau=tau: tau, undefined=NO_ORDER, widthless=True)
            lines.append({**label, **told, **estimate(rows[""], metric)})
    return table(lines, ["model", "dataset", "level", "rate"], ["n_methods", "moved"])


def _parts(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    methods: Sequence[str],
    rates: Sequence[float],
    n_repeats: int = 20,
    seed: int = 0,
) -> Iterator[tuple[dict[str, str], Callable, dict[str, Rows], dict[str, np.ndarray]]]:
    """Each run pooled and within level: its keys, how a statistic is taken there, and by method.

    - The rows of each method ('' is the answers).
    - Its AUROC (1 + rates, 1 + n_repeats): first without noise, and first the mean over repeats.
    """
    held = list(dict.fromkeys(confidence["method"]))
    if not methods or not set(methods) <= set(held):
        raise ValueError(f"methods must be one or more of {held}; received {list(methods)}")
    if n_repeats < 1 or not len(rates) or not all(0 <= rate <= 1 for rate in rates):
        received = f"{list(rates)} and {n_repeats}"
        raise ValueError(f"rates must be in [0, 1] and n_repeats at least 1; received {received}")
    given: Any = answers.reset_index(drop=True)
    graded = given[given["answer"].notna() & given["correct"].notna()]
    place = graded.sort_values(["case_id", "level"]).groupby(RUN).cumcount()  # whatever the order
    mine: Any = confidence[confidence["method"].isin(list(methods))]
    runs: dict[tuple[str, str], dict[str, Rows]] = {}
    for label, rows in rows_of_methods(given.assign(place=place), mine, n_repeats, seed):
        runs.setdefault((label["model"], label["dataset"]), {})[label["method"]] = rows
    for key, rows in runs.items():
        n = len(rows[""].asked["place"].dropna())
        chance = np.random.default_rng(seed).random((n_repeats, n))
        inside = {m: _mixed(each) for m, each in rows.items()}
        for level, over, part in (("pooled", lambda of: of, rows), ("within", within, inside)):
            flipped = [over(_flipped(chance, rate)) for rate in (0.0, *rates)]
            drawn = {m: np.stack([of(part[m]) for of in flipped]) for m in methods}
            yield dict(zip(RUN, key, strict=True)) | {"level": level}, over, part, drawn


def _mixed(rows: Rows) -> Rows:
    """The rows at levels that have both classes; all where none has a value."""
    levels = [level for level, part in rows.by("level").items() if part.rarer]
    return rows.where("level", levels) if len(rows) else rows


def _flipped(chance: np.ndarray, rate: float) -> Statistic:
    """AUROC after flips: the mean over the repeats, then each, (1 + n_repeats,)."""

    def of(rows: Rows) -> np.ndarray:
        drawn = _auroc(rows, chance[:, rows["place"].astype(int)] < rate)
        return np.append(mean_of_known(drawn), drawn)

    return of


def _expected(rate: float) -> Statistic:
    """What :func:`expected_auroc` gives, (1,)."""
    return lambda rows: np.array([expected_auroc(_auroc(rows)[0], rows["correct"].mean(), rate)])


def _auroc(rows: Rows, flip: np.ndarray | bool = False) -> np.ndarray:
    """AUROC (R,) after flips (R, n), by Mann and Whitney's count; NaN where one class is left."""
    correct = np.atleast_2d(rows["correct"].astype(bool) ^ flip)
    ranks = rankdata(tied(rows["confidence"]))
    n_right = correct.sum(axis=1)
    n_pairs = n_right * (len(ranks) - n_right)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(n_pairs, (correct @ ranks - n_right * (n_right + 1) / 2) / n_pairs, np.nan)
