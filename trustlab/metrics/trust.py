"""Computes the trust indices CDR, RDC, ETI, OSI and FTI. Of numbers, or arrays element by element;
NaN stays NaN, out of range is a ``ValueError``. ``formulation``: "trust-x" (accuracy, CDR and RDC
are fractions, RDC a cosine) or "medguard-x" (percent)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any, TypeVar

import numpy as np

from trustlab.metrics.ties import check_allowed

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
    votes = _compared_votes(diagnoses, unreadable)
    if not votes:
        return float("nan")
    return 1 - max(votes.values()) / votes.total()


def any_disagreement(
    diagnoses: Iterable[str | None], unreadable: str = "dropped"
) -> float:
    """1 where the ``diagnoses`` of one case differ, else 0: a variant, with NaN as :func:`cdr`."""
    votes = _compared_votes(diagnoses, unreadable)
    if not votes:
        return float("nan")
    return float(len(votes) > 1)


def majority(
    diagnoses: Iterable[str | None], case_id: str
) -> tuple[str | None, tuple[str, ...]]:
    """The panel's diagnosis of one case, and the names that tied for it (sorted; empty without).
    A tie is drawn by the SHA-256 hash of the case id over the sorted names, whatever the doctors'
    order. Unreadable diagnoses (None) have no vote: (None, ()) without any."""
    votes = Counter(name for name in _entries(diagnoses) if name is not None)
    if not votes:
        return None, ()
    most = max(votes.values())
    winners = sorted(name for name, n in votes.items() if n == most)
    if len(winners) == 1:
        return winners[0], ()
    digest = sha256(str(case_id).encode()).hexdigest()
    place = int(digest, 16) % len(winners)
    return winners[place], tuple(winners)


def rdc(cosine: V, formulation: str = "trust-x") -> V:
    """Reasoning–diagnosis consistency by the cosine of the two, in [-1, 1], or its mean over
    doctors. ``trust-x``: the cosine itself; ``medguard-x``: 50 (1 + cosine)."""
    cosine = _within("a cosine", cosine, -1, 1)
    if is_trust_x(formulation):
        return cosine
    return 50 * (1 + cosine)


def eti(
    accuracy: V,
    cdr: V,
    rdc: V,
    weights: Weights = ETI_WEIGHTS,
    formulation: str = "trust-x",
) -> V:
    """Epistemic trust index: w1 accuracy + w2 (full - CDR) + w3 RDC.
    ``trust-x``: fractions, RDC in [-1, 1], full = 1; ``medguard-x``: percent, full = 100.
    ``weights`` are not negative and sum to 1. NaN where a part is, also under weight 0."""
    w_accuracy, w_agreement, w_rdc = check_weights(weights)
    lowest, full = 0, 100
    if is_trust_x(formulation):
        lowest, full = -1, 1
    accuracy = _within("accuracy", accuracy, 0, full)
    agreement = full - _within("cdr", cdr, 0, full)
    rdc = _within("rdc", rdc, lowest, full)
    return w_accuracy * accuracy + w_agreement * agreement + w_rdc * rdc


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
    check_allowed("variant", variant, RX_VARIANTS)
    with_caution = variant != "unsafe"
    return _percent(n_unsafe, n_caution, n_rated, n_proposed, also_second=with_caution)


def test_alerts_percent(
    n_risky: V, n_redundant: V, n_rated: V, n_proposed: V | None = None
) -> V:
    """Share of the rated tests that are risky or redundant, as :func:`unsafe_rx_percent`."""
    return _percent(n_risky, n_redundant, n_rated, n_proposed)


test_alerts_percent.__test__ = False  # type: ignore[attr-defined]  # for pytest: no test


def osi(
    unsafe_rx_percent: V,
    test_alerts_percent: V,
    safety: bool = True,
    formulation: str = "trust-x",
) -> V:
    """Operational safety index, in percent: 100 less the mean of UnsafeRx % and TestAlerts %.
    With ``safety`` off nothing was rated: ``trust-x`` defines 0, ``medguard-x`` has no rule: NaN.
    """
    rx = _within("unsafe_rx_percent", unsafe_rx_percent, 0, 100)
    tests = _within("test_alerts_percent", test_alerts_percent, 0, 100)
    by_rule = float("nan")
    if is_trust_x(formulation):
        by_rule = 0.0
    if safety:
        return 100 - (rx + tests) / 2
    return _like(rx, np.full(np.shape(rx), by_rule))


def fti(eti: V, osi: V, formulation: str = "trust-x", as_printed: bool = False) -> V:
    """Final trust index, in percent: the mean of ETI, ``eti`` in its own unit, and OSI.
    ``trust-x`` as printed adds a fraction to a percentage; it is taken times 100 but for
    ``as_printed``."""
    lowest, highest, unit = 0, 100, 1
    if is_trust_x(formulation):
        lowest, highest, unit = -1, 1, 100
    if as_printed:
        unit = 1
    eti = _within("eti", eti, lowest, highest)
    osi = _within("osi", osi, 0, 100)
    return (unit * eti + osi) / 2


def is_trust_x(formulation: str) -> bool:
    """Whether a formulation takes fractions; ``ValueError`` for an unknown one."""
    check_allowed("formulation", formulation, FORMULATIONS)
    return formulation == "trust-x"


def check_weights(weights: Weights) -> tuple[float, ...]:
    """The three weights; ``ValueError`` for another number, a negative one or another sum."""
    numbers = tuple(float(weight) for weight in weights)
    is_negative = any(not number >= 0 for number in numbers)
    distance = abs(sum(numbers) - 1)
    if len(numbers) != 3 or is_negative or distance > 1e-9:
        must = "weights must be 3 numbers, none negative, that sum to 1"
        raise ValueError(f"{must}; received {tuple(weights)}")
    return numbers


def _entries(diagnoses: Iterable[str | None]) -> list[str | None]:
    """The entry of each doctor; ``ValueError`` for a text in place of several."""
    if isinstance(diagnoses, str):
        must = "diagnoses must be a sequence with an entry for each doctor"
        raise ValueError(f"{must}; received the text {diagnoses!r}")
    return list(diagnoses)


def _compared_votes(diagnoses: Iterable[str | None], unreadable: str) -> Counter[Any]:
    """The votes that are compared with each other; none below two readable ones of several."""
    check_allowed("unreadable", unreadable, UNREADABLE)
    entries = _entries(diagnoses)
    n_doctors = len(entries)
    votes: Counter[Any] = Counter(name for name in entries if name is not None)
    if unreadable == "disagrees" and n_doctors > 1:
        n_unreadable = sum(name is None for name in entries)
        votes.update(range(n_unreadable))  # a number is no diagnosis
    if votes.total() < min(n_doctors, 2):
        return Counter()
    return votes


def _within(name: str, value: V, low: float, high: float) -> V:
    """The value, put on the range's end where rounding alone took it out; NaN passes."""
    values = np.asarray(value, dtype=float)
    is_outside = (values < low - ROUNDING) | (values > high + ROUNDING)
    outside = values[is_outside]
    if len(outside):
        raise ValueError(
            f"{name} must lie between {low} and {high}; received {outside[0]}"
        )
    return _like(value, np.clip(values, low, high))


def _percent(
    first: V, second: V, rated: V, proposed: V | None, also_second: bool = True
) -> V:
    limit = proposed
    if proposed is None:
        limit = np.maximum(rated, 1)
    arrays = [np.asarray(count, dtype=float) for count in (first, second, rated, limit)]
    counts = np.broadcast_arrays(*arrays)
    n_first, n_second, n_rated, n_proposed = counts
    is_negative = np.min(counts, axis=0) < 0
    exceeds_rated = n_first + n_second > n_rated
    exceeds_proposed = n_rated > n_proposed
    is_bad = is_negative | exceeds_rated | exceeds_proposed
    if is_bad.any():
        received = [float(count[is_bad].flat[0]) for count in counts]
        if proposed is None:
            received.pop()
        must = "counts must not be negative, nor more rated than proposed"
        raise ValueError(
            f"{must}, nor the first two above those rated; received {received}"
        )
    hits = n_first
    if also_second:
        hits = n_first + n_second
    has_rated = n_rated > 0
    percent = 100 * hits / np.where(has_rated, n_rated, 1)
    unrated_percent = np.where(n_proposed > 0, np.nan, 0.0)
    return _like(rated, np.where(has_rated, percent, unrated_percent))


def _like(sample: Any, values: np.ndarray) -> Any:
    """The values as an array where the sample is one, otherwise as a number."""
    if isinstance(sample, np.ndarray):
        return values
    return float(values)
