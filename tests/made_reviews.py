"""Reviewed panels made up for the tests: one row a case, as ``trust_indices`` takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from trustlab.metrics.trust import majority

MARKS = ["n_safe", "n_caution", "n_unsafe", "n_unflagged"]
SAFETY_OFF: dict[str, Any] = dict.fromkeys([*MARKS, "n_risky", "n_redundant"], 0)
SAFETY_OFF |= {"safety": False}
EMPTY_PLAN = dict.fromkeys(["n_prescriptions", "n_tests", *MARKS], 0)


def review(
    case_id: str, diagnoses: Sequence[str | None], right: str = "flu", **changes: Any
) -> dict[str, Any]:
    """One case: the vote counted, ``right`` the right diagnosis, a plan of one safe prescription
    and one test without a flag."""
    diagnosis, tied = majority(diagnoses, case_id)
    known = diagnosis is not None
    row = {
        "model": "m", "dataset": "d", "configuration": f"panel of {len(diagnoses)}",
        "n_doctors": len(diagnoses), "safety": True, "level": 100, "case_id": case_id,
        "diagnoses": tuple(diagnoses), "diagnosis": diagnosis, "tied": tied,
        "correct": float(diagnosis == right) if known else np.nan,
        "correct_share":
            float(np.mean([d == right for d in tied or [diagnosis]])) if known else np.nan,
        "cosine": 0.5, "cosine_missing": "", "cosine_med": 0.8, "cosine_med_missing": "",
        "n_prescriptions": 1, "n_safe": 1, "n_caution": 0, "n_unsafe": 0, "n_rx_unknown": 0,
        "n_rx_unreadable": 0, "n_tests": 1, "n_unflagged": 1, "n_risky": 0, "n_redundant": 0,
        "n_tests_unknown": 0, "n_tests_unreadable": 0, "plan_missing": "",
    }  # fmt: skip
    return row | changes


def two_cases(**changes: Any) -> pd.DataFrame:
    """Case a: two of three say flu, rightly, with a plan that draws objections. Case b: all say
    gout, wrongly; no tests.

    Accuracy 1/2. CDR (1/3 + 0)/2 = 1/6. Cosines 0.5 and 0.1, biomedical 0.8 and 0.4. Of four rated
    prescriptions one is UNSAFE, one SAFE WITH CAUTION, and a fifth is unknown. Of five rated tests
    two are flagged.
    """
    plan = {"n_prescriptions": 4, "n_safe": 1, "n_caution": 1, "n_unsafe": 1, "n_rx_unknown": 1}
    tests = {"n_tests": 5, "n_unflagged": 3, "n_risky": 1, "n_redundant": 1}
    a = review("a", ["flu", "flu", "cold"], **plan, **tests)
    b = review("b", ["gout"] * 3, cosine=0.1, cosine_med=0.4, n_tests=0, n_unflagged=0)
    return pd.DataFrame([a | changes, b | changes])


def many_cases(n: int = 40, seed: int = 0, **changes: Any) -> pd.DataFrame:
    """``n`` cases of a panel of three at random: votes, cosines, ratings."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        rx, tests = rng.multinomial(3, [0.5, 0.3, 0.2]), rng.multinomial(4, [0.7, 0.2, 0.1])
        counts = dict(zip(MARKS[:3], map(int, rx), strict=True))
        counts |= dict(zip(["n_unflagged", "n_risky", "n_redundant"], map(int, tests), strict=True))
        votes = [str(d) for d in rng.choice(["flu", "cold", "gout"], 3, p=[0.6, 0.3, 0.1])]
        more = {"cosine": float(rng.uniform(-0.2, 0.9)), "cosine_med": float(rng.uniform(0.5, 1))}
        whole = counts | more | {"n_prescriptions": 3, "n_tests": 4}
        rows.append(review(f"c{i:02d}", votes, **whole) | changes)
    return pd.DataFrame(rows)
