"""Open choices read from the same replies: rules for "same meaning" and SAR's context."""

from __future__ import annotations

import numpy as np
import pandas as pd
from asking import ask
from fake_model import FakeEncoder, FakeModel, made_cases

from studies.ablations import readings
from trustlab.experiment import benchmark
from trustlab.levels import views

CASES, LEVELS = made_cases(6), [20, 100]


class Equal:
    """A judge of entailment: the same words, case and full stops aside, or anything."""

    revision, stand_in = "1", True

    def __init__(self, name: str, always: bool = False) -> None:
        self.name, self.always = name, always

    def probabilities(self, pairs):
        same = [self.always or a.lower().strip(".") == b.lower().strip(".") for a, b in pairs]
        return np.array([[yes, 0, not yes] for yes in same], dtype=float).reshape(len(same), 3)


def test_only_what_reads_meaning_or_context_is_read_again() -> None:
    how = {"samples": 5, "encoder": FakeEncoder()}
    run = ask(benchmark, CASES, [FakeModel()], "all", LEVELS, **how)
    rules = [Equal("exact"), Equal("always", True)]
    read = readings(run, views(CASES, LEVELS), rules, ["answer", "full"], FakeEncoder())
    of = dict(iter(read.groupby("option")))
    plain = of["default"].drop(columns=["choice", "option"]).reset_index(drop=True)
    pd.testing.assert_frame_equal(plain, run.confidence)
    assert {"poc", "mc_se", "sentence_sar", "medconf"}.isdisjoint(again := set(of["exact"].method))
    assert {"num_set", "ccp"} <= again and set(of["full"].method) == {"token_sar", "sar"}

    def values(option: str, method: str) -> np.ndarray:
        return of[option].loc[of[option]["method"] == method, "confidence"].to_numpy(float)

    # By exact strings the semantic share is the share of the most frequent string.
    np.testing.assert_allclose(values("exact", "semantic_poc"), values("default", "poc"))
    assert (values("always", "semantic_poc") == 1).all()  # one set
    assert not np.allclose(values("full", "token_sar"), values("default", "token_sar"))
