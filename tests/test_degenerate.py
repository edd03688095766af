"""Data that say nothing: what every public function of the metrics makes of them.

No rows, one row, one class, a constant confidence, ties everywhere, nothing but missing values,
infinite ones. The result is NaN (with a reason, where there is a place for one), the number that
the definition gives, or a ``ValueError``; never a warning, another error, or an interval without
width. Tables are put to the same in test_degenerate_tables.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from degenerate_facts import (
    A_SHARE,
    INF,
    NAN,
    NO_VALUE,
    NOTHING,
    OTHERS,
    REFUSED,
    check,
    once,
)
from each import each

from trustlab.metrics import calibration, discrimination, selective

pytestmark = pytest.mark.filterwarnings("error")

# Right and wrong answers with their confidences

PAIRS: dict[str, tuple[list, list]] = {
    "no rows": ([], []),
    "one row": ([1], [0.7]),
    "one class": ([1, 1, 1], [0.2, 0.5, 0.9]),
    "constant confidence": ([1, 0, 1, 0], [0.5] * 4),
    "ties everywhere": ([1, 0, 1, 0, 0], [0.2, 0.2, 0.8, 0.8, 0.8]),
}
OF_PAIRS: dict[str, tuple[Callable[[Any, Any], Any], tuple[Any, ...]]] = {
    "discrimination.auroc": (discrimination.auroc, (*NO_VALUE, 0.5, 2.5 / 6)),
    "discrimination.auprc": (discrimination.auprc, (*NO_VALUE, 0.5, 11 / 30)),
    "discrimination.ranking_weighted": (
        lambda c, s: np.stack(discrimination.ranking_weighted(c, s, once(c)), axis=1),
        (*NO_VALUE, (0.5, 0.5), (2.5 / 6, 11 / 30)),
    ),
    "calibration.brier": (calibration.brier, (NAN, 0.09, 0.3, 0.25, 0.4)),
    "calibration.ece": (calibration.ece, (NAN, 0.3, 1.4 / 3, 0, (2 * 0.3 + 3 * (0.8 - 1 / 3)) / 5)),
    "calibration.ece_weighted": (
        lambda c, s: calibration.ece_weighted(c, s, once(c)),
        (NAN, 0.3, 1.4 / 3, 0, (2 * 0.3 + 3 * (0.8 - 1 / 3)) / 5),
    ),
    "calibration.brier_parts_weighted": (
        lambda c, s: calibration.brier_parts_weighted(c, s, once(c)),
        (NO_VALUE, NO_VALUE, NO_VALUE, (0, 0, 0.25), (0.16, 0, 0.24)),
    ),
    "calibration.cross_fitted": (
        lambda c, s: calibration.cross_fitted(c, s, np.arange(np.size(c)), n_folds=2, seed=1),
        (NOTHING, NAN, NAN, A_SHARE, A_SHARE),
    ),
    "calibration.Isotonic": (
        lambda c, s: calibration.Isotonic().fit(c, s).predict(s),
        (*(REFUSED,) * 3, 0.5, 0.4),
    ),
    "calibration.Platt": (
        lambda c, s: calibration.Platt().fit(c, s).predict(s).round(3),
        (*(REFUSED,) * 3, 0.5, A_SHARE),
    ),
    "selective.risk_at": (
        lambda c, s: selective.risk_at(c, s, once(c), [1.0]),
        (NAN, 0, 0, 0.5, 0.6),
    ),
    "selective.augrc_weighted": (
        lambda c, s: selective.augrc_weighted(c, s, once(c)),
        (*NO_VALUE, 0.25, 0.32),
    ),
    "selective.selective_weighted": (
        lambda c, s: np.stack(selective.selective_weighted(c, s, once(c)), axis=1),
        (*NO_VALUE, (0.5, 0), (0.645, -0.045 / (0.6 - 0.86 / 3))),
    ),
}


@each("situation", PAIRS)
@each("name", OF_PAIRS)
def test_answers_with_confidences(name, situation):
    call, expected = OF_PAIRS[name]
    check(lambda: call(*PAIRS[situation]), expected[list(PAIRS).index(situation)])


NOT_FINITE = {
    "infinite": ([1, 0, 1], [0.1, INF, 0.9]),
    "minus infinite": ([1, 0, 1], [-INF, 0.1, 0.9]),
    "missing confidence": ([1, 0, 1], [0.5, NAN, 0.9]),
    "unknown answer": ([1, NAN, 0], [0.5, 0.4, 0.9]),
    "other lengths": ([1, 0, 1], [0.5, 0.4]),
}


@each("situation", NOT_FINITE)
@each("name", OF_PAIRS)
def test_answers_or_confidences_that_are_no_numbers_are_refused(name, situation):
    check(lambda: OF_PAIRS[name][0](*NOT_FINITE[situation]), REFUSED)


# Everything else


@each(
    "call, expected",
    [fact[2:] for fact in OTHERS],
    ids=[f"{fact[0]}, {fact[1]}" for fact in OTHERS],
)
def test_everything_else(call, expected):
    check(call, expected)
