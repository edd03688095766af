"""Makes sets of options that hold the right one as often as promised.

Split conformal prediction (Vovk et al. 2005; Angelopoulos & Bates 2023). The promise is for answers
like those that the sets are fitted on; other levels, other data and groups may break it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from pandas.util import hash_array
from scipy.stats import beta

from trustlab.metrics.discrimination import RANKING
from trustlab.metrics.estimate import (
    Interval,
    Metric,
    at_least,
    grouped,
    groups,
    mean,
    measure,
    rate,
)
from trustlab.metrics.promise import exact_interval
from trustlab.metrics.run_tables import CHANCE, KEYS
from trustlab.metrics.schema import need, pick, table
from trustlab.metrics.ties import numbers

ROUNDING = 1e-9
"""How far probabilities may differ, or their sum lie from 1, by rounding alone."""
NO_RIGHT = "the right option is not among them"
NO_CHANCES = "no probability of the options"
LIKE = "like those fitted"
LEVEL = "another level"
DATA = "another data set"


def fitted(scores: ArrayLike, error: float) -> tuple[float, list[float]]:
    """The score up to which options are in a set, so that sets hold the right one with probability
    1 - ``error`` or more.

    - ``scores`` (n,): 1 less the probability of the right option, of n cases. The score is the
      k-th smallest, k = (n + 1)(1 - ``error``) rounded up; infinite where k is above n.
    - Beside it what the coverage of such splits varies by, Beta(k, n + 1 - k): its mean and the
      ends of its middle 95 %. Where scores tie, coverage lies higher.
    """
    numbers("error", [error], low=0.001, high=0.999)
    ascending = np.sort(np.asarray(scores))
    n = len(ascending)
    rank = (n + 1) * (1 - error)
    k = math.ceil(round(rank, 9))
    if k > n:
        return np.inf, [1.0, 1.0, 1.0]
    coverage = beta(k, n + 1 - k)
    low, high = coverage.ppf([0.025, 0.975])
    return ascending[k - 1], [coverage.mean(), low, high]


def hashed_half(names: ArrayLike, seed: int = 0) -> np.ndarray:
    """Which names (n,) belong to the first half, by a hash of ``seed`` and each name alone."""
    texts = np.asarray(names, dtype=str).astype(object)
    hashes = hash_array(texts, hash_key=f"{seed:016d}")
    return hashes % 2 == 0


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
    dataset: str,
    level: int,
    *,
    error: float = 0.1,
    by: Sequence[str] = (),
    seed: int = 0,
) -> Sets:
    """Fit sets on half of the cases at one level of one data set, and try them on all else.

    - ``shares``: a row an option: ``case_id dataset level model option probability right`` (whether
      it is the right one). The probabilities of an answer sum to 1, or are
      missing.
    - The half is drawn by a hash of the case and ``seed``; no case that is fitted is tried, at
      whatever level or data set.
    - ``by``: columns of ``shares`` whose groups are shown by themselves.
    - Coverage has its exact interval, and beside it (``chance``) what such a split varies by.
    - ``ValueError``: other columns or values, and a level or data set that there is not.
    """
    need(shares, [*KEYS, "probability", "right", *by], "shares")
    pick(shares, dataset=dataset, level=level)  # refuses what there is not
    answers = _answers(shares, by)
    is_place = answers["level"].eq(level) & answers["dataset"].eq(dataset)
    in_half = hashed_half(answers["case_id"], seed)
    answers["fitted"] = is_place & in_half & answers["missing"].eq("")
    parts = []
    bands = {}
    for label, of_model in groups(answers, ["model"]):
        scores = of_model.loc[of_model["fitted"], "score"]
        largest, bands[label["model"]] = fitted(scores, error)
        parts.append(_with_sets(of_model, largest))
    answers = pd.concat(parts, ignore_index=True)
    keys = ["model", "set", "dataset", "level"]
    lines = []
    shown = grouped(_tried(answers, dataset, level, by), keys, "size")
    for line in measure(shown, MEASURES):
        if line["metric"] == "coverage":
            line |= dict(zip(CHANCE, bands[line["model"]], strict=True))
        lines.append(line)
    return Sets(answers, table(lines, keys, [*CHANCE, "n_rarer"]))


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


def _with_sets(answers: Any, largest: float) -> Any:
    """The answers with the ``size`` of their sets, whether they hold the right option, and the
    confidence that this is."""
    lowest = 1 - largest - ROUNDING
    has_set = answers["missing"].eq("")
    size = answers["chances"].map(lambda chances: (chances >= lowest).sum())
    covered = answers["score"].le(largest + ROUNDING).astype(float)
    largest_size = answers["chances"].map(len).max()
    doubt = size.mask(size.eq(0), largest_size + 1)
    return answers.assign(
        size=size.where(has_set),
        covered=covered.where(has_set),
        confidence=-doubt.where(has_set),
    )


COVERAGE = replace(
    rate("covered"),
    interval=lambda values, rows: Interval(*exact_interval(values[0], len(rows))),
)
"""The share of sets that hold the right option, of one answer a case."""
MEASURES = {
    "coverage": COVERAGE,
    "size": mean("size"),
    "auroc": Metric(RANKING["auroc"], at_least(10)),
}
"""Of sets: also their mean size, and whether it tells when the likeliest option is right."""


def _tried(answers: Any, dataset: str, level: int, by: Sequence[str]) -> pd.DataFrame:
    """The answers of cases that are not fitted, with what they show in ``set``: those like the
    fitted, other levels, other data; those like the fitted once more by group."""
    fitted_cases = answers.loc[answers["fitted"], "case_id"]
    others = answers[~answers["case_id"].isin(fitted_cases)]
    kind = np.where(others["level"].eq(level), LIKE, LEVEL)
    kind = np.where(others["dataset"].eq(dataset), kind, DATA)
    others = others.assign(set=kind)
    parts = [others]
    for column in by:
        part = others[others["set"].eq(LIKE)]
        names = column + ": " + part[column].astype(str)
        parts.append(part.assign(set=names))
    return pd.concat(parts)
