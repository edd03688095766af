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
    reached = reaches(sure, threshold)
    return np.where(reached.any(axis=1), reached.argmax(axis=1), sure.shape[1] - 1)


def thresholds_of(confidence: ArrayLike) -> np.ndarray:
    """Every threshold that decides otherwise, (G,), strictest first: infinity (never stop early),
    then each distinct confidence, near-ties as one."""
    (sure,) = _turns(confidence=confidence)
    known = tied(sure.ravel())
    return np.unique(np.append(np.inf, known[~np.isnan(known)]))[::-1]


def along(values: ArrayLike, at: ArrayLike) -> np.ndarray:
    """Each case's value where it stops, (..., n): ``values`` (n, T), ``at`` (..., n) from 0."""
    (each,), turns = _turns(values=values), np.asarray(at)
    if turns.shape[-1:] != each.shape[:1]:
        raise ValueError(f"at must name a turn for {len(each)} cases; received {turns.shape}")
    return each[np.arange(len(each)), turns]


def best_threshold(
    confidence: ArrayLike, correct: ArrayLike, utterances: ArrayLike, price: float
) -> float:
    """The threshold of highest accuracy minus ``price`` times mean utterances.
    Of equals the one with fewer utterances; ``price``: a share of accuracy, at least 0."""
    numbers("price", price, n_dim=0, low=0)
    sure, right, said = _turns(confidence=confidence, correct=correct, utterances=utterances)
    if not len(sure):
        raise ValueError("n must be at least 1; received no case")
    tried, sure = thresholds_of(sure), tied(sure.ravel()).reshape(*sure.shape)
    at = np.stack([stop_turns(sure, threshold) for threshold in tried])
    accuracy, asked = (along(values, at).mean(axis=1) for values in (right, said))
    # rounded, so that equals are equal; the last of them is the laxest, which asks least
    worth = np.round(accuracy - price * asked, 12)
    return float(tried[np.flatnonzero(worth == worth.max())[-1]])


def fold_of(case_ids: ArrayLike, n_folds: int, seed: int = 0) -> np.ndarray:
    """A fold for each case, (n,) of 0 to ``n_folds - 1``, as equal as can be, by the set of ids and
    ``seed``.
    ``ValueError`` for fewer than two folds or ids that come twice."""
    ids = np.asarray(case_ids).astype(str)
    if n_folds < 2 or len(np.unique(ids)) < len(ids):
        received = f"{n_folds} and {ids[:5].tolist()} ..."
        raise ValueError(f"at least 2 folds and different ids are needed; received {received}")
    folds = np.empty(len(ids), int)
    folds[np.argsort(ids)] = np.random.default_rng(seed).permutation(len(ids)) % n_folds
    return folds


def _turns(**given: ArrayLike) -> list[np.ndarray]:
    found = {name: numbers(name, x, n_dim=2, missing=True) for name, x in given.items()}
    same_shape(**found)
    if not all(each.shape[1] for each in found.values()):
        raise ValueError(f"{' and '.join(found)} must have a turn; received none")
    if "correct" in found:
        numbers("correct", found["correct"], n_dim=2, only=(0, 1))
    return list(found.values())
