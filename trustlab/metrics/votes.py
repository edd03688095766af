"""How far do doctors agree beyond chance? Fleiss' kappa and Gwet's AC1, some votes missing.

Both are (observed - chance) / (1 - chance), where observed is the mean share of agreeing pairs of
doctors of a case. They differ in the chance:

- Fleiss (Psychological Bulletin 76, 1971, 378-382): the sum of the diagnoses' squared shares, which
  nears 1 where one diagnosis dominates, so that kappa falls although all agree.
- Gwet (Br J Math Stat Psychol 61, 2008, 29-48): the sum of share times (1 - share) by the number of
  diagnoses less one, which nears 0 there.

Cases with fewer than two readable diagnoses have no pair and are left out; where the number of
doctors differs, each case counts the same, with its own shares.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from trustlab.metrics.trust import pair_agreement

Diagnoses = Iterable[str | None]
SURE = 1e-12
"""Chance agreement this near to 1 is 1 up to rounding: one diagnosis for all."""


@dataclass(frozen=True)
class Votes:
    """The cases that have a pair: their places, pair agreement (n,), and shares (n, diagnoses)."""

    index: np.ndarray
    agreement: np.ndarray
    shares: np.ndarray


def count_votes(cases: Sequence[Diagnoses]) -> Votes:
    """The votes of ``cases`` that have a pair, each the doctors' diagnoses, None if unreadable."""
    votes = [Counter(d for d in case if d is not None) for case in cases]
    index = np.array([i for i, vote in enumerate(votes) if vote.total() >= 2], dtype=int)
    names = sorted({name for i in index for name in votes[i]})
    shares = [[votes[i][name] / votes[i].total() for name in names] for i in index]
    agreement = [pair_agreement(votes[i].elements()) for i in index]
    by_name = np.array(shares, dtype=float).reshape(len(index), len(names))
    return Votes(index, np.array(agreement, dtype=float), by_name)


def fleiss_kappa(cases: Sequence[Diagnoses]) -> float:
    """Fleiss' kappa of the doctors over ``cases``, at most 1; 0 is what chance gives.

    NaN without a pair of readable diagnoses, or where all doctors always say one and the same.
    """
    votes = count_votes(cases)
    return float(fleiss_kappa_weighted(votes, np.ones((1, len(votes.index))))[0])


def gwet_ac1(cases: Sequence[Diagnoses], n_diagnoses: int | None = None) -> float:
    """Gwet's AC1 of the doctors over ``cases``, at most 1; 0 is what chance gives.

    - ``n_diagnoses``: how many there are to choose from, by default those that some doctor used (a
      lower bound where answers are free).
    - NaN without a pair, or with one diagnosis. ``ValueError`` where more are used than there are.
    """
    votes = count_votes(cases)
    return float(gwet_ac1_weighted(votes, np.ones((1, len(votes.index))), n_diagnoses)[0])


def fleiss_kappa_weighted(votes: Votes, weights: np.ndarray) -> np.ndarray:
    """Fleiss' kappa under each of B weightings (B, n) of the cases of ``votes``, (B,)."""
    observed, shares = _weighted(votes, weights)
    return _beyond(observed, (shares**2).sum(axis=1))


def gwet_ac1_weighted(
    votes: Votes, weights: np.ndarray, n_diagnoses: int | None = None
) -> np.ndarray:
    """AC1 under each of B weightings (B, n) of the cases, (B,); as many diagnoses in each."""
    used = votes.shares.shape[1]
    among = used if n_diagnoses is None else n_diagnoses
    if among < used:
        raise ValueError(
            f"n_diagnoses must be at least {used}, the number used; received {n_diagnoses}"
        )
    observed, shares = _weighted(votes, weights)
    if among < 2:
        return np.full(len(observed), np.nan)
    return _beyond(observed, (shares * (1 - shares)).sum(axis=1) / (among - 1))


def _weighted(votes: Votes, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean pair agreement (B,) and shares of diagnoses (B, diagnoses); NaN without weight."""
    weight = np.asarray(weights, dtype=float)
    total = weight.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        return (weight @ votes.agreement) / total[:, 0], (weight @ votes.shares) / total


def _beyond(observed: np.ndarray, chance: np.ndarray) -> np.ndarray:
    alike = np.isnan(observed) | (chance > 1 - SURE)
    return np.where(alike, np.nan, (observed - chance) / np.where(alike, 1, 1 - chance))
