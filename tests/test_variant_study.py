"""Open choices read from the same replies: rules for "same meaning", SAR's context, formulas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from asking import ask
from fake_model import TEXT_ONLY, FakeEncoder, FakeModel, made_cases

from studies.ablations import readings
from trustlab.levels import views
from trustlab.run import Run, benchmark

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


# Readings


def test_the_default_is_the_run_itself_and_only_what_reads_meaning_is_read_again(run, read):
    plain = (
        read[read["option"] == "default"].drop(columns=["choice", "option"]).reset_index(drop=True)
    )
    pd.testing.assert_frame_equal(plain, run.confidence)
    again = read[read["option"] == "exact strings"]
    assert {"poc", "mc_se", "sentence_sar", "medconf"}.isdisjoint(again["method"]) and {
        "num_set",
        "ccp",
    } <= set(again["method"])
    assert set(read.loc[read["option"] == "full", "method"]) == {"token_sar", "sar"}
    assert dict(read[["option", "choice"]].drop_duplicates().to_numpy()) == {
        "default": "", "exact strings": "same meaning", "a word shared": "same meaning",
        "full": "context",
    }  # fmt: skip


def test_by_exact_strings_the_semantic_share_is_the_share_of_the_most_frequent_string(run, read):
    exact = read[(read["option"] == "exact strings") & (read["method"] == "semantic_poc")][
        "confidence"
    ]
    poc = run.confidence[run.confidence["method"] == "poc"]["confidence"]
    np.testing.assert_allclose(exact.to_numpy(), poc.to_numpy())


def test_a_rule_by_which_all_mean_the_same_finds_one_set(run):
    found = readings(run, VIEWS, [Always("always")], ["answer"], LETTERS)
    assert (
        found.query("method == 'semantic_poc' and option != 'default'")["confidence"] == 1
    ).all()


def test_reading_asks_no_model_and_changes_no_record(run):
    class Never(FakeModel):
        def generate(self, requests):
            raise AssertionError("asked")

    before = [g.entailment.copy() for g in run.generations if g.entailment is not None]
    readings(
        replace(run, parameters={**run.parameters, "models": {"fake": Never()}}),
        VIEWS,
        RULES,
        CONTEXTS,
        LETTERS,
    )
    assert all((a == g.entailment).all() for a, g in zip(before, run.generations, strict=True))


def test_the_context_changes_what_a_token_weighs(run, read):
    full = read[(read["option"] == "full") & (read["method"] == "token_sar")][
        "confidence"
    ].to_numpy()
    answer = run.confidence[run.confidence["method"] == "token_sar"]["confidence"].to_numpy()
    assert full.shape == answer.shape and not np.allclose(full, answer)


def test_a_model_without_probabilities_keeps_its_reasons():
    found = readings(asked(FakeModel(provides=TEXT_ONLY)), VIEWS, RULES, CONTEXTS, LETTERS)
    lost = found[found["method"].isin(["ccp", "sar"]) & (found["option"] != "default")]
    assert (
        len(lost)
        and lost["confidence"].isna().all()
        and lost["missing"].str.contains("gives no").all()
    )
    assert found.query("method == 'num_set'")["confidence"].notna().all()
