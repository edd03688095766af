"""Makes sets of options that hold the right one as often as promised.

Split conformal prediction (Vovk et al. 2005; Angelopoulos & Bates 2023). The promise is for answers
like those that the sets are fitted on; other levels, other data and groups may break it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import beta

from trustlab.metrics.discrimination import RANKING
from trustlab.metrics.estimate import (
    Interval,
    Line,
    Metric,
    Rows,
    at_least,
    groups,
    mean_between,
    measure,
    rate,
)
from trustlab.metrics.promise import exact_interval
from trustlab.metrics.run_tables import CHANCE, KEYS
from trustlab.metrics.schema import need, pick, refuse, table
from trustlab.metrics.ties import numbers

ROUNDING = 1e-9
"""How far probabilities may differ, or their sum lie from 1, by rounding alone."""
NO_RIGHT = "the right option is not among them"
NO_CHANCES = "no probability of the options"
LIKE = "like those fitted"
LEVEL = "another level"
DATA = "another data set"


class Fitted(NamedTuple):
    """An option is in a set if 1 less its probability is at most ``score``, the ``k``-th smallest
    of the right options of ``n`` cases; infinite where k is above n: all options."""

    score: float
    k: int
    n: int

    @property
    def chance(self) -> list[float]:
        """Coverage of such splits: its mean and the ends of the middle 95 %.
        It follows Beta(k, n + 1 - k) where no scores tie, and lies higher where some do."""
        if self.k > self.n:
            return [1.0, 1.0, 1.0]
        of_splits = beta(self.k, self.n + 1 - self.k)
        return [of_splits.mean(), *of_splits.ppf([0.025, 0.975])]


def fitted(scores: ArrayLike, error: float) -> Fitted:
    """The score below which sets hold the right option with probability 1 - ``error`` or more.
    ``scores`` (n,): 1 less the probability of the right option, of n cases; else ``ValueError``.
    """
    values = np.sort(numbers("a score", scores, low=0, high=1))
    if not 0 < error < 1:
        raise ValueError(f"error must be above 0 and below 1; received {error}")
    n = len(values)
    k = int(np.ceil(round((n + 1) * (1 - error), 9)))
    if k > n:
        return Fitted(np.inf, k, n)
    return Fitted(float(values[k - 1]), k, n)


def hashed_half(names: Iterable[object], seed: int = 0) -> np.ndarray:
    """Which names (n,) belong to the first half, by a hash of ``seed`` and each name alone."""
    in_half = []
    for name in names:
        digest = hashlib.sha256(f"{seed}:{name}".encode()).digest()
        in_half.append(digest[0] % 2 == 0)
    return np.array(in_half, dtype=bool)


@dataclass(frozen=True)
class Sets:
    """Sets of options, and how often they hold the right one.

    - ``answers``: a row an answer: whether its likeliest option is ``correct``, its set ``covered``
      the right one, ``size``, ``confidence`` (minus the size; an empty set is least sure), and
      whether it was ``fitted``; ``missing`` says why there is no set.
    - ``table``: the columns of :mod:`trustlab.metrics.schema`; ``set`` says what is shown.
    """

    answers: pd.DataFrame
    table: pd.DataFrame


def conformal_sets(
    shares: pd.DataFrame,
    level: int,
    *,
    error: float = 0.1,
    dataset: str | None = None,
    by: Sequence[str] = (),
    seed: int = 0,
) -> Sets:
    """Fit sets on half of the cases at one level of one data set, and try them on all else.

    - ``shares``: a row an option: ``case_id dataset level model option probability right`` (whether
      it is the right one). The probabilities of an answer sum to 1, or are
      missing.
    - ``dataset``: the one that is fitted; by default the first. The half is drawn by a hash of the
      case and ``seed``; no case that is fitted is tried, at whatever level or data set.
    - ``by``: columns of ``shares`` whose groups are shown by themselves.
    - Coverage has its exact interval, and beside it (``chance``) what such a split varies by.
    - ``ValueError``: other columns or values, and a level or data set that there is not.
    """
    need(shares, [*KEYS, "option", "probability", "right", *by], "shares")
    is_repeated = shares.duplicated([*KEYS, "option"])
    refuse(shares, is_repeated, "shares must hold each option of an answer once")
    if dataset is None:
        dataset = str(shares["dataset"].iloc[0])
    pick(shares, dataset=dataset, level=level)  # refuses what there is not
    answers = _answers(shares, by)
    is_place = answers["level"].eq(level) & answers["dataset"].eq(dataset)
    in_half = hashed_half(answers["case_id"], seed)
    answers["fitted"] = is_place & in_half & answers["missing"].eq("")
    parts = []
    lines: list[Line] = []
    for label, of_model in groups(answers, ["model"]):
        fit = fitted(of_model.loc[of_model["fitted"], "score"], error)
        of_model = _with_sets(of_model, fit)
        parts.append(of_model)
        band = dict(zip(CHANCE, fit.chance, strict=True))
        for line in measure(_tried(of_model, dataset, level, by), MEASURES):
            if line["metric"] == "coverage":
                line |= band
            lines.append(label | line)
    keys = ["model", "set", "dataset", "level"]
    return Sets(
        pd.concat(parts, ignore_index=True), table(lines, keys, [*CHANCE, "n_rarer"])
    )


def _answers(shares: pd.DataFrame, by: Sequence[str]) -> Any:
    """A row an answer: the ``chances`` of its options, the ``score`` of the right one, whether the
    likeliest is ``correct`` (of equals the first), and why there is no set."""
    rows = []
    for label, options in groups(shares, [*KEYS, *by]):
        chances = options["probability"].to_numpy(dtype=float)
        is_right = options["right"].to_numpy(dtype=bool)
        row = {**label, "chances": chances, "score": np.nan, "correct": np.nan}
        row["missing"] = NO_RIGHT
        if np.isnan(chances).all():
            row["missing"] = NO_CHANCES
        elif (chances < 0).any() or not np.isclose(chances.sum(), 1):
            raise ValueError(
                f"probabilities must be at least 0 and sum to 1; received {chances} of {label}"
            )
        elif is_right.any():
            row["score"] = max(1 - chances[is_right].max(), 0.0)
            row["correct"] = float(is_right[chances.argmax()])
            row["missing"] = ""
        rows.append(row)
    return pd.DataFrame(rows)


def _with_sets(answers: Any, fit: Fitted) -> Any:
    """The answers with the ``size`` of their sets, whether they hold the right option, and the
    confidence that this is."""
    lowest = 1 - fit.score - ROUNDING
    has_set = answers["missing"].eq("")
    n_options = answers["chances"].map(len)
    size = answers["chances"].map(lambda chances: (chances >= lowest).sum())
    covered = answers["score"].le(fit.score + ROUNDING).astype(float)
    sure_of_least = size.mask(size.eq(0), n_options.max() + 1)
    return answers.assign(
        size=size.where(has_set),
        covered=covered.where(has_set),
        confidence=-sure_of_least.where(has_set),
        none=0,
        n_options=n_options,
    )


def _exact(values: np.ndarray, rows: Rows) -> Interval:
    low, high = exact_interval(float(values[0]), len(rows))
    return Interval(low, high)


COVERAGE = replace(rate("covered"), interval=_exact)
"""The share of sets that hold the right option, of one answer a case."""
MEASURES = {
    "coverage": COVERAGE,
    "size": mean_between("size", "none", "n_options"),
    "accuracy": rate("correct"),
    "auroc": Metric(RANKING["auroc"], at_least(10)),
}
"""Of sets: also their mean size; of the likeliest option, how often it is right, and whether the
size tells it."""


def _tried(
    answers: Any, dataset: str, level: int, by: Sequence[str]
) -> list[tuple[Line, Rows]]:
    """The answers of cases that are not fitted, by what they show: those like the fitted first,
    their groups, other levels, other data."""
    fitted_cases = answers.loc[answers["fitted"], "case_id"]
    others = answers[~answers["case_id"].isin(fitted_cases)]
    parts = []
    for place, part in groups(others, ["dataset", "level"]):
        name = LEVEL if place["dataset"] == dataset else DATA
        if place == {"dataset": dataset, "level": level}:
            name = LIKE
            for column in by:
                for group, rows in groups(part, [column]):
                    about = {"set": f"{column}: {group[column]}", **place}
                    parts.append((about, Rows.of(rows, "size")))
        parts.append(({"set": name, **place}, Rows.of(part, "size")))
    return parts
