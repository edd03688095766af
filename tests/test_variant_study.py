"""Open choices read from the same replies: rules for "same meaning", SAR's context, formulas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from asking import ask
from fake_model import TEXT_ONLY, FakeEncoder, FakeModel, made_cases

from studies.ablations import readings
from trustlab.experiment import benchmark
from trustlab.levels import views
from trustlab.run import Run

CASES, LEVELS = made_cases(12), [20, 60, 100]
VIEWS = views(CASES, LEVELS)
LETTERS = FakeEncoder()
CONTEXTS = ["answer", "full"]


class Equal:
    """A judge of entailment: the same words, case and full stops aside, or a word shared."""

    revision, stand_in = "1", True

    def __init__(self, name: str, share: bool = False) -> None:
        self.name, self.share = name, share

    def probabilities(self, pairs):
        same = [
            a.lower().strip(".") == b.lower().strip(".")
            or (self.share and bool(set(a.split()) & set(b.split())))
            for a, b in pairs
        ]
        return np.array([[yes, 0, not yes] for yes in same], dtype=float).reshape(len(same), 3)


class Always(Equal):
    def probabilities(self, pairs):
        return np.tile([1.0, 0.0, 0.0], (len(pairs), 1))


RULES = [Equal("exact strings"), Equal("a word shared", share=True)]


def asked(model: FakeModel | None = None, methods="all") -> Run:
    how = {"samples": 5, "encoder": FakeEncoder()}
    return ask(benchmark, CASES, [model or FakeModel()], methods, LEVELS, **how)


@pytest.fixture(scope="module")
def run() -> Run:
    return asked()


@pytest.fixture(scope="module")
def read(run) -> pd.DataFrame:
    return readings(run, VIEWS, RULES, CONTEXTS, LETTERS)


def confidences(table: pd.DataFrame, method: str, option: str | None = None) -> np.ndarray:
    mine = table["method"].eq(method)
    return table.loc[mine if option is None else mine & table["option"].eq(option), "confidence"]


def test_the_default_is_the_run_itself_and_only_what_reads_meaning_is_read_again(run, read):
    plain = read[read["option"] == "default"].drop(columns=["choice", "option"])
    pd.testing.assert_frame_equal(plain.reset_index(drop=True), run.confidence)
    again = set(read.loc[read["option"] == "exact strings", "method"])
    assert {"poc", "mc_se", "sentence_sar", "medconf"}.isdisjoint(again)
    assert {"num_set", "ccp"} <= again
    assert set(read.loc[read["option"] == "full", "method"]) == {"token_sar", "sar"}
    chosen = dict(read[["option", "choice"]].drop_duplicates().to_numpy())
    rules = dict.fromkeys([rule.name for rule in RULES], "same meaning")
    assert chosen == {"default": "", **rules, "full": "context"}


def test_the_rules_and_the_context_change_what_reads_them(run, read):
    # by exact strings the semantic share is the share of the most frequent string
    exact = confidences(read, "semantic_poc", "exact strings")
    np.testing.assert_allclose(exact, confidences(run.confidence, "poc"))
    found = readings(run, VIEWS, [Always("always")], ["answer"], LETTERS)
    assert (confidences(found, "semantic_poc", "always") == 1).all()  # one set
    full = confidences(read, "token_sar", "full").to_numpy()
    answer = confidences(run.confidence, "token_sar").to_numpy()
    assert full.shape == answer.shape and not np.allclose(full, answer)


def test_reading_asks_no_model_and_changes_no_record(run):
    class Never(FakeModel):
        def generate(self, requests):
            raise AssertionError("asked")

    before = [g.entailment.copy() for g in run.generations if g.entailment is not None]
    unasked = replace(run, parameters={**run.parameters, "models": {"fake": Never()}})
    readings(unasked, VIEWS, RULES, CONTEXTS, LETTERS)
    assert all((a == g.entailment).all() for a, g in zip(before, run.generations, strict=True))


def test_a_model_without_probabilities_keeps_its_reasons():
    found = readings(asked(FakeModel(provides=TEXT_ONLY)), VIEWS, RULES, CONTEXTS, LETTERS)
    lost = found[found["method"].isin(["ccp", "sar"]) & (found["option"] != "default")]
    assert len(lost) and lost["confidence"].isna().all()
    assert lost["missing"].str.contains("gives no").all()
    assert confidences(found, "num_set").notna().all()
