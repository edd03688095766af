"""Do several say the same? Votes of a panel, kappa and AC1, with intervals over cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from trustlab.metrics.estimate import Metric, Rows, estimate, mean
from trustlab.metrics.ties import numbers, same_shape
from trustlab.metrics.trust import pair_agreement

AGREEMENT = {
    "kappa": Metric(
        lambda rows: rows.over(lambda w: cohen_kappa_weighted(rows["first"], rows["second"], w)),
        undefined="kappa is undefined: each grader says the same of all answers",
    ),
    "agreement": mean("same"),
}
"""Cohen's kappa, in [-1, 1], and the share of answers graded alike."""
COUNTS = {"both_right": (1, 1), "only_first": (1, 0), "only_second": (0, 1), "both_wrong": (0, 0)}
"""What the first and the second grader say of the answers counted."""


def cohen_kappa(a: ArrayLike, b: ArrayLike) -> float:
    """Cohen's kappa of two graders (n,), in [-1, 1]: agreement beyond what chance would give.

    - Grades are 0 or 1, else ``ValueError``; chance: from the shares of right answers.
    - NaN without rows, or where each says the same of all answers: then agreement and chance
      cannot be told apart.
    """
    return float(cohen_kappa_weighted(a, b, np.ones((1, np.size(a))))[0])


def cohen_kappa_weighted(a: ArrayLike, b: ArrayLike, weights: ArrayLike) -> np.ndarray:
    """:func:`cohen_kappa` under each of B weightings (B, n), shape (B,)."""
    one, other = _grades(a, b)
    weight = np.asarray(weights, dtype=np.float64)
    total = weight.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        right, also, agreed = (weight @ x / total for x in (one, other, one == other))
        chance = right * also + (1 - right) * (1 - also)
        kappa = (agreed - chance) / (1 - chance)
    constant = np.isin(right, (0, 1)) & np.isin(also, (0, 1))
    return np.where(constant, np.nan, kappa)


def agreement(
    a: ArrayLike, b: ArrayLike, case_ids: ArrayLike, n_draws: int = 2000, seed: int = 0
) -> list[dict[str, Any]]:
    """What two graders say of the same answers: a line, with :data:`COUNTS`, for each metric.

    ``a`` and ``b`` (n,) hold 0 or 1, NaN where ungraded: such answers are among ``n_missing``.
    """
    one, other = _grades(a, b, missing=True)
    counts = {name: int(((one == x) & (other == y)).sum()) for name, (x, y) in COUNTS.items()}
    asked = pd.DataFrame({"case_id": np.asarray(case_ids), "first": one, "second": other})
    asked["same"] = np.where(np.isnan(one + other), np.nan, one == other)
    rows = Rows.of(asked, "same", n_draws, seed, none="no answer that both graded")
    return [{"metric": m, **counts, **estimate(rows, x)} for m, x in AGREEMENT.items()]


def _grades(a: ArrayLike, b: ArrayLike, missing: bool = False) -> list[np.ndarray]:
    found = {
        name: numbers(name, x, only=(0, 1), missing=missing) for name, x in (("a", a), ("b", b))
    }
    same_shape(**found)
    return list(found.values())


Diagnoses = Iterable[str | None]
SURE = 1e-12
"""Chance agreement this near to 1 is 1 up to rounding: one diagnosis for all."""


class Votes(NamedTuple):
    """Pair agreement (n,) of the cases that have a pair, and their shares (n, diagnoses)."""

    agreement: np.ndarray
    shares: np.ndarray


def count_votes(cases: Sequence[Diagnoses]) -> Votes:
    """The votes of those ``cases`` that have a pair; None is an unreadable diagnosis."""
    votes = [Counter(d for d in case if d is not None) for case in cases]
    votes = [vote for vote in votes if vote.total() >= 2]
    names = sorted(set().union(*votes))
    shares = np.array([[vote[name] / vote.total() for name in names] for vote in votes])
    agreement = np.array([pair_agreement(vote.elements()) for vote in votes], dtype=float)
    return Votes(agreement, shares.reshape(len(votes), len(names)))


def fleiss_kappa(cases: Sequence[Diagnoses]) -> float:
    """Fleiss' kappa of the doctors over ``cases``, at most 1; 0 is what chance gives.

    NaN without a pair of readable diagnoses, or where all doctors always say one and the same.
    """
    votes = count_votes(cases)
    return float(fleiss_kappa_weighted(votes, np.ones((1, len(votes.agreement))))[0])


def gwet_ac1(cases: Sequence[Diagnoses], n_diagnoses: int | None = None) -> float:
    """Gwet's AC1 of the doctors over ``cases``, as :func:`fleiss_kappa`.

    ``n_diagnoses``: how many there are to choose from, by default those used (a lower bound where
    answers are free). ``ValueError`` where more are used than there are.
    """
    votes = count_votes(cases)
    return float(gwet_ac1_weighted(votes, np.ones((1, len(votes.agreement))), n_diagnoses)[0])


def fleiss_kappa_weighted(votes: Votes, weights: np.ndarray) -> np.ndarray:
    """Fleiss' kappa under each of B weightings (B, n) of the cases of ``votes``, (B,)."""
    return _beyond(votes, weights, lambda shares: shares**2)


def gwet_ac1_weighted(
    votes: Votes, weights: np.ndarray, n_diagnoses: int | None = None
) -> np.ndarray:
    """AC1 under each of B weightings (B, n) of the cases, (B,); as many diagnoses in each."""
    used = votes.shares.shape[1]
    among = used if n_diagnoses is None else n_diagnoses
    if among < used:
        must = f"n_diagnoses must be at least {used}, the number used"
        raise ValueError(f"{must}; received {n_diagnoses}")
    return _beyond(votes, weights, lambda shares: shares * (1 - shares) / (among - 1))


def _beyond(
    votes: Votes, weights: np.ndarray, chance_of: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """Mean pair agreement beyond the sum of ``chance_of`` each share, (B,); NaN without weight."""
    weight = np.asarray(weights, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        observed, shares = ((weight @ of).T / weight.sum(axis=1) for of in votes)
        chance = chance_of(shares).sum(axis=0)
        return np.where(chance > 1 - SURE, np.nan, (observed - chance) / (1 - chance))
