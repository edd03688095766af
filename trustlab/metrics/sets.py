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
from scipy.stats import beta, binomtest

from trustlab.metrics.discrimination import RANKING
from trustlab.metrics.estimate import (
    Interval,
    Metric,
    Rows,
    at_least,
    grouped,
    groups,
    mean,
    measure,
    rate,
)
from trustlab.metrics.run_tables import CHANCE, KEYS
from trustlab.metrics.schema import need, pick, table
from trustlab.metrics.ties import numbers

ROUNDING = 1e-9
"""How far a number may be off by rounding alone."""
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
    ascending = np.sort(scores)
    n = len(ascending)
    rank = (n + 1) * (1 - error)
    k = math.ceil(rank - ROUNDING)
    if k > n:
        return np.inf, [1.0, 1.0, 1.0]
    low, high = beta.interval(0.95, k, n + 1 - k)
    mean_coverage = k / (n + 1)
    score = ascending[k - 1]
    return score, [mean_coverage, low, high]


def hashed_half(names: ArrayLike, seed: int = 0) -> np.ndarray:
    """Which names (n,) belong to the first half, by a hash of ``seed`` and each name alone."""
    texts = np.asarray(names, dtype=str).astype(object)
    hashes = hash_array(texts, hash_key=f"{seed:016d}")  # type: ignore  # untyped
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
      it is the right one). The probabilities of an answer sum to 1, or are missing.
    - The half is drawn by a hash of the case and ``seed``; no case that is fitted is tried, at
      whatever level or data set.
    - ``by``: columns of ``shares`` whose groups are shown by themselves.
    - Coverage has its exact interval, and beside it (``chance``) what such a split varies by.
    - ``ValueError``: other columns or values, and a level or data set that there is not.
    """
    need(shares, [*KEYS, "probability", "right", *by], "shares")
    pick(shares, dataset=dataset, level=level)  # refuses what there is not
    answers: Any = pd.DataFrame(
        label | _of_options(options) for label, options in groups(shares, [*KEYS, *by])
    )
    is_strange = [answers["dataset"].ne(dataset), answers["level"].ne(level)]
    answers["set"] = np.select(is_strange, [DATA, LEVEL], LIKE)
    can_be_fitted = answers["set"].eq(LIKE) & answers["missing"].eq("")
    answers["fitted"] = can_be_fitted & hashed_half(answers["case_id"], seed)
    fitted_cases = answers.loc[answers["fitted"], "case_id"]
    keys = ["model", "set", "dataset", "level"]
    parts = []
    lines = []
    for _, of_model in groups(answers, ["model"]):
        largest, band = fitted(of_model.loc[of_model["fitted"], "score"], error)
        of_model = _with_sets(of_model, largest)
        parts.append(of_model)
        tried = of_model[~of_model["case_id"].isin(fitted_cases)]
        shown = _with_groups(tried, by)
        for line in measure(grouped(shown, keys, "size"), MEASURES):
            if line["metric"] == "coverage":
                line |= dict(zip(CHANCE, band, strict=True))
            lines.append(line)
    columns = table(lines, keys, [*CHANCE, "n_rarer"])
    return Sets(pd.concat(parts, ignore_index=True), columns)


def _of_options(options: Any) -> dict[str, Any]:
    """The ``chances`` of an answer's options, the ``score`` of the right one, whether the likeliest
    is ``correct`` (of equals the first), and why there is no set."""
    chances = options["probability"].to_numpy(dtype=float)
    is_right = options["right"].to_numpy(dtype=bool)
    answer = {"chances": chances, "score": np.nan, "correct": np.nan}
    if np.isnan(chances).all():
        return answer | {"missing": NO_CHANCES}
    if not (chances >= 0).all() or not np.isclose(chances.sum(), 1):
        raise ValueError(
            f"probabilities must be at least 0 and sum to 1; received {chances}"
        )
    if not is_right.any():
        return answer | {"missing": NO_RIGHT}
    score = 1 - chances[is_right].max()
    correct = float(is_right[chances.argmax()])
    return answer | {"score": score, "correct": correct, "missing": ""}


def _with_sets(answers: Any, largest: float) -> Any:
    """The answers with the ``size`` of their sets, whether they hold the right option, and the
    confidence that this is."""
    has_set = answers["missing"].eq("")
    is_inside = answers["chances"].map(
        lambda chances: 1 - chances <= largest + ROUNDING
    )
    size = is_inside.map(sum)
    covered = answers["score"].le(largest + ROUNDING).astype(float)
    confidence = -size.replace(0, answers["chances"].map(len).max() + 1)
    return answers.assign(
        size=size.where(has_set),
        covered=covered.where(has_set),
        confidence=confidence.where(has_set),
    )


def _exact(values: np.ndarray, rows: Rows) -> Interval:
    """Clopper and Pearson's interval of sets that hold the right option, of one answer a case."""
    test = binomtest(int(rows["covered"].sum()), len(rows))
    return Interval(*test.proportion_ci())


MEASURES = {
    "coverage": replace(rate("covered"), interval=_exact),
    "size": mean("size"),
    "auroc": Metric(RANKING["auroc"], at_least(10)),
}
"""Of sets: how often they hold the right option, their mean size, and whether it tells when the
likeliest option is right."""


def _with_groups(answers: Any, by: Sequence[str]) -> pd.DataFrame:
    """The answers, and those like the fitted once more by group, which ``set`` names."""
    like = answers[answers["set"].eq(LIKE)]
    parts = [answers]
    for column in by:
        parts.append(like.assign(set=column + ": " + like[column].astype(str)))
    return pd.concat(parts)
