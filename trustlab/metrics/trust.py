"""Computes the trust indices CDR, RDC, ETI, OSI and FTI. Of numbers, or arrays element by element;
NaN stays NaN, out of range is a ``ValueError``. ``formulation``: "trust-x" (accuracy, CDR and RDC
are fractions, RDC a cosine) or "medguard-x" (percent)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any, TypeVar

import numpy as np

FORMULATIONS = ("trust-x", "medguard-x")
ETI_WEIGHTS = (0.4, 0.3, 0.3)
"""Weights of accuracy, agreement (1 - CDR) and RDC, as both sources print them."""
RX_VARIANTS = ("unsafe or caution", "unsafe")
HEADLINE = {"trust-x": "unsafe", "medguard-x": "unsafe or caution"}
"""Formulation -> which of them its UnsafeRx % is."""
UNREADABLE = ("dropped", "disagrees")  # what becomes of a vote that cannot be read
ROUNDING = 1e-6
"""So little out of range is rounding (cosines in single precision), put on the range's end."""

V = TypeVar("V", float, np.ndarray)
Weights = Sequence[float]


def cdr(diagnoses: Iterable[str | None], unreadable: str = "dropped") -> float:
    """Consensus Disagreement Rate of one case: 1 - (largest vote) / K, from 0 to 1 - 1/K.

    - ``diagnoses``: what each doctor said, synonyms merged, None where unreadable.
    - ``unreadable``: "dropped" (NaN below two readable of several) or "disagrees" (each with
      everybody).
    - ``trust-x``; ``medguard-x`` prints no formula: 100 times the mean of this over cases here.
    """
    votes = _voices(diagnoses, unreadable)
    return 1 - max(votes.values()) / votes.total() if votes else float("nan")


def any_disagreement(diagnoses: Iterable[str | None], unreadable: str = "dropped") -> float:
    """1 where the ``diagnoses`` of one case differ, else 0: a variant, with NaN as :func:`cdr`."""
    votes = _voices(diagnoses, unreadable)
    return float(len(votes) > 1) if votes else float("nan")


def majority(diagnoses: Iterable[str | None], case_id: str) -> tuple[str | None, tuple[str, ...]]:
    """The panel's diagnosis of one case, and the names that tied for it (sorted; empty without).
    A tie is drawn by the SHA-256 hash of the case id over the sorted names, whatever the doctors'
    order. Unreadable diagnoses (None) have no vote: (None, ()) without any."""
    votes = Counter(d for d in _said(diagnoses) if d is not None)
    if not votes:
        return None, ()
    most = max(votes.values())
    tied = sorted(name for name, n in votes.items() if n == most)
    drawn = int(sha256(str(case_id).encode()).hexdigest(), 16) % len(tied)
    return tied[drawn], tuple(tied) if len(tied) > 1 else ()


def rdc(cosine: V, formulation: str = "trust-x") -> V:
    """Reasoning–diagnosis consistency by the cosine of the two, in [-1, 1], or its mean over
    doctors. ``trust-x``: the cosine itself; ``medguard-x``: 50 (1 + cosine)."""
    cosine = _within("a cosine", cosine, -1, 1)
    return cosine if check_formulation(formulation) == "trust-x" else 50 * (1 + cosine)


def eti(
    accuracy: V, cdr: V, rdc: V, weights: Weights = ETI_WEIGHTS, formulation: str = "trust-x"
) -> V:
    """Epistemic trust index: w1 accuracy + w2 (full - CDR) + w3 RDC.
    ``trust-x``: fractions, RDC in [-1, 1], full = 1; ``medguard-x``: percent, full = 100.
    ``weights`` are not negative and sum to 1. NaN where a part is, also under weight 0."""
    first, second, third = check_weights(weights)
    lowest, full = (-1, 1) if check_formulation(formulation) == "trust-x" else (0, 100)
    right, apart = _within("accuracy", accuracy, 0, full), _within("cdr", cdr, 0, full)
    return first * right + second * (full - apart) + third * _within("rdc", rdc, lowest, full)


def unsafe_rx_percent(
    n_unsafe: V,
    n_caution: V,
    n_rated: V,
    variant: str = RX_VARIANTS[0],
    n_proposed: V | None = None,
) -> V:
    """Share of the rated prescriptions that are UNSAFE or SAFE WITH CAUTION, in percent.
    ``variant`` "unsafe": UNSAFE alone (``medguard-x`` prints both). 0 where nothing was proposed;
    NaN where none is rated of some, or ``n_proposed`` is not said. ``ValueError`` for negative
    counts, more than ``n_rated``, more rated than proposed."""
    if variant not in RX_VARIANTS:
        raise ValueError(f"variant is {variant!r}; allowed are {list(RX_VARIANTS)}")
    return _percent(n_unsafe, n_caution, n_rated, n_proposed, also_second=variant != "unsafe")


def test_alerts_percent(n_risky: V, n_redundant: V, n_rated: V, n_proposed: V | None = None) -> V:
    """Share of the rated tests that are risky or redundant, as :func:`unsafe_rx_percent`."""
    return _percent(n_risky, n_redundant, n_rated, n_proposed)


test_alerts_percent.__test__ = False  # type: ignore[attr-defined]  # for pytest: no test


def osi(
    unsafe_rx_percent: V, test_alerts_percent: V, safety: bool = True, formulation: str = "trust-x"
) -> V:
    """Operational safety index, in percent: 100 less the mean of UnsafeRx % and TestAlerts %.
    With ``safety`` off nothing was rated: ``trust-x`` defines 0, ``medguard-x`` has no rule: NaN.
    """
    rx = _within("unsafe_rx_percent", unsafe_rx_percent, 0, 100)
    tests = _within("test_alerts_percent", test_alerts_percent, 0, 100)
    off = 0.0 if check_formulation(formulation) == "trust-x" else float("nan")
    if safety:
        return 100 - (rx + tests) / 2
    return _like(rx, np.full(np.shape(rx), off))


def fti(eti: V, osi: V, formulation: str = "trust-x", as_printed: bool = False) -> V:
    """Final trust index, in percent: the mean of ETI, ``eti`` in its own unit, and OSI.
    ``trust-x`` as printed adds a fraction to a percentage; it is taken times 100 but for
    ``as_printed``."""
    fraction = check_formulation(formulation) == "trust-x"
    thought = _within("eti", eti, -1, 1) if fraction else _within("eti", eti, 0, 100)
    unit = 100 if fraction and not as_printed else 1
    return (unit * thought + _within("osi", osi, 0, 100)) / 2


def check_formulation(formulation: str) -> str:
    """``formulation`` itself; ``ValueError`` for an unknown one."""
    if formulation not in FORMULATIONS:
        raise ValueError(f"formulation is {formulation!r}; allowed are {list(FORMULATIONS)}")
    return formulation


def check_weights(weights: Weights) -> tuple[float, ...]:
    """The three weights; ``ValueError`` for another number, a negative one or another sum."""
    found = tuple(float(w) for w in weights)
    if len(found) != 3 or not all(w >= 0 for w in found) or abs(sum(found) - 1) > 1e-9:
        must = "weights must be 3 numbers, none negative, that sum to 1"
        raise ValueError(f"{must}; received {tuple(weights)}")
    return found


def _said(diagnoses: Iterable[str | None]) -> list[str | None]:
    if isinstance(diagnoses, str):
        must = "diagnoses must be a sequence with an entry for each doctor"
        raise ValueError(f"{must}; received the text {diagnoses!r}")
    return list(diagnoses)


def _voices(diagnoses: Iterable[str | None], unreadable: str) -> Counter[Any]:
    """The votes that are compared with each other; none below two readable ones of several."""
    if unreadable not in UNREADABLE:
        raise ValueError(f"unreadable is {unreadable!r}; allowed are {list(UNREADABLE)}")
    said = _said(diagnoses)
    votes: Counter[Any] = Counter(d for d in said if d is not None)
    if unreadable == "disagrees" and len(said) > 1:
        votes.update(i for i, d in enumerate(said) if d is None)  # a number is no diagnosis
    return votes if votes.total() >= min(len(said), 2) else Counter()


def _within(name: str, value: V, low: float, high: float) -> V:
    """The value, put on the range's end where rounding alone took it out; NaN passes."""
    values = np.asarray(value, dtype=float)
    outside = values[(values < low - ROUNDING) | (values > high + ROUNDING)]
    if len(outside):
        raise ValueError(f"{name} must lie between {low} and {high}; received {outside[0]}")
    return _like(value, np.clip(values, low, high))


def _percent(first: V, second: V, rated: V, proposed: V | None, also_second: bool = True) -> V:
    given = (first, second, rated, np.maximum(rated, 1) if proposed is None else proposed)
    counts = np.broadcast_arrays(*(np.asarray(n, dtype=float) for n in given))
    one, two, done, there = counts
    bad = (np.min(counts, axis=0) < 0) | (one + two > done) | (done > there)
    if bad.any():
        received = [float(n[bad].flat[0]) for n in counts[: 3 if proposed is None else 4]]
        must = "counts must not be negative, nor more rated than proposed"
        raise ValueError(f"{must}, nor the first two above those rated; received {received}")
    share = 100 * (one + two if also_second else one) / np.where(done > 0, done, 1)
    return _like(rated, np.where(done > 0, share, np.where(there > 0, np.nan, 0.0)))


def _like(given: Any, found: np.ndarray) -> Any:
    """An array where an array was given, otherwise a number."""
    return found if isinstance(given, np.ndarray) else float(found)
