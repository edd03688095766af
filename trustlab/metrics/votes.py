"""How far do doctors agree beyond chance? Fleiss' kappa and Gwet's AC1, some votes missing.

Both are (observed - chance) / (1 - chance), where observed is the mean share of agreeing pairs of
doctors of a case. They differ in the chance, of shares of diagnoses:

- Fleiss (Psychological Bulletin 76, 1971, 378-382): the sum of their squares, which nears 1 where
  one diagnosis dominates, so that kappa falls although all agree.
- Gwet (Br J Math Stat Psychol 61, 2008, 29-48): the sum of share times (1 - share) by the number of
  diagnoses less one, which nears 0 there.

Cases with fewer than two readable diagnoses have no pair and are left out; each other counts the
same, with its own shares, however many doctors it has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from trustlab.metrics.trust import pair_agreement

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
