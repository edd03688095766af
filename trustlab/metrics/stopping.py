"""Says what each stopping threshold would have done. Of T turns stop at the first whose confidence
reaches the threshold, else at the last (Ren et al. 2026, consultation). ``confidence``, ``correct``
(0 or 1) and ``utterances`` (up to and with a turn) are (n, T), T at least 1, else ``ValueError``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from trustlab.metrics.ties import numbers, reaches, same_shape, tied


def stop_turns(confidence: ArrayLike, threshold: ArrayLike) -> np.ndarray:
    """The turn (from 0) at which each case stops, (n,): the first to reach ``threshold``, or last.
    ``threshold`` is one, or (n, 1) for one a case. A near-tie reaches it, NaN none."""
    (sure,) = _turns(confidence=confidence)
    is_reached = reaches(sure, threshold)
    first = is_reached.argmax(axis=1)
    last = sure.shape[1] - 1
    return np.where(is_reached.any(axis=1), first, last)


def thresholds_of(confidence: ArrayLike) -> np.ndarray:
    """Every threshold that decides otherwise, (G,), strictest first: infinity (never stop early),
    then each distinct confidence, near-ties as one."""
    (sure,) = _turns(confidence=confidence)
    values = tied(sure.ravel())
    is_present = ~np.isnan(values)
    with_never = np.append(np.inf, values[is_present])
    rising = np.unique(with_never)
    return rising[::-1]


def along(values: ArrayLike, at: ArrayLike) -> np.ndarray:
    """Each case's value where it stops, (..., n): ``values`` (n, T), ``at`` (..., n) from 0."""
    (by_turn,) = _turns(values=values)
    turns = np.asarray(at)
    n_cases = len(by_turn)
    if turns.shape[-1:] != (n_cases,):
        raise ValueError(
            f"at must name a turn for {n_cases} cases; received {turns.shape}"
        )
    return by_turn[np.arange(n_cases), turns]


def best_threshold(
    confidence: ArrayLike, correct: ArrayLike, utterances: ArrayLike, price: float
) -> float:
    """The threshold of highest accuracy minus ``price`` times mean utterances.
    Of equals the one with fewer utterances; ``price``: a share of accuracy, at least 0."""
    numbers("price", price, n_dim=0, low=0)
    sure, right, n_utterances = _turns(
        confidence=confidence, correct=correct, utterances=utterances
    )
    if not len(sure):
        raise ValueError("n must be at least 1; received no case")
    thresholds = thresholds_of(sure)
    sure = tied(sure.ravel()).reshape(*sure.shape)
    turns = np.stack([stop_turns(sure, threshold) for threshold in thresholds])
    accuracy = along(right, turns).mean(axis=1)
    mean_utterances = along(n_utterances, turns).mean(axis=1)
    # rounded, so that equals are equal; the last of them is the laxest, which asks least
    worth = np.round(accuracy - price * mean_utterances, 12)
    best = np.flatnonzero(worth == worth.max())
    return float(thresholds[best[-1]])


def fold_of(case_ids: ArrayLike, n_folds: int, seed: int = 0) -> np.ndarray:
    """A fold for each case, (n,) of 0 to ``n_folds - 1``, as equal as can be, by the set of ids and
    ``seed``.
    ``ValueError`` for fewer than two folds or ids that come twice."""
    ids = np.asarray(case_ids).astype(str)
    n_cases = len(ids)
    is_repeated = len(np.unique(ids)) < n_cases
    if n_folds < 2 or is_repeated:
        received = f"{n_folds} and {ids[:5].tolist()} ..."
        raise ValueError(
            f"at least 2 folds and different ids are needed; received {received}"
        )
    rng = np.random.default_rng(seed)
    order = rng.permutation(n_cases)
    folds = np.empty(n_cases, int)
    folds[np.argsort(ids)] = order % n_folds
    return folds


def _turns(**arrays: ArrayLike) -> list[np.ndarray]:
    """The named arrays as numbers (n, T); ``ValueError`` for what is not as the module says."""
    by_name = {
        name: numbers(name, array, n_dim=2, missing=True)
        for name, array in arrays.items()
    }
    same_shape(**by_name)
    if not all(values.shape[1] for values in by_name.values()):
        raise ValueError(f"{' and '.join(by_name)} must have a turn; received none")
    if "correct" in by_name:
        numbers("correct", by_name["correct"], n_dim=2, only=(0, 1))
    return list(by_name.values())
