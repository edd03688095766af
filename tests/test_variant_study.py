"""Open choices read from the same replies: rules for "same meaning", SAR's context, formulas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from asking import ask
from fake_model import TEXT_ONLY, FakeEncoder, FakeModel, made_cases

from studies.ablations import (
    CosineEntailment,
    ExactEntailment,
    differences,
    forms,
    readings,
)
from trustlab.confidence import METHODS
from trustlab.levels import views
from trustlab.meaning.entailment import Entailment, matrices
from trustlab.run import Run, benchmark

CASES, LEVELS = made_cases(12), [20, 60, 100]
VIEWS = views(CASES, LEVELS)
LETTERS = FakeEncoder()
RULES = [ExactEntailment(), CosineEntailment(LETTERS, 0.6)]


def asked(model: FakeModel | None = None, methods="all") -> Run:
    how = {"samples": 5, "encoder": FakeEncoder()}
    return ask(benchmark, CASES, [model or FakeModel()], methods, LEVELS, **how)


@pytest.fixture(scope="module")
def run() -> Run:
    return asked()


@pytest.fixture(scope="module")
def read(run) -> pd.DataFrame:
    return readings(run, VIEWS, RULES, encoder=LETTERS)


# Rules


def test_exact_strings_forgive_case_and_punctuation_alone():
    pairs = [("Acute gout.", "acute  gout"), ("Gout", "Acute gout"), ("Flu", "Influenza")]
    found = ExactEntailment().probabilities(pairs)
    np.testing.assert_array_equal(found, [[1, 0, 0], [0, 0, 1], [0, 0, 1]])
    assert ExactEntailment().probabilities([]).shape == (0, 3)


def test_the_encoder_rule_is_a_threshold_with_the_border_inside():
    class Plane:
        revision = "plane"

        def encode(self, texts):
            return np.array([[1.0, 0.0] if t == "a" else [0.6, 0.8] for t in texts])

    at, above = (
        CosineEntailment(Plane(), t).probabilities([("a", "b"), ("a", "a")]) for t in (0.6, 0.61)
    )
    np.testing.assert_array_equal(at, [[1, 0, 0], [1, 0, 0]])
    np.testing.assert_array_equal(above, [[0, 0, 1], [1, 0, 0]])
    assert CosineEntailment(Plane(), 0.6).name != CosineEntailment(Plane(), 0.61).name


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_is_a_judge_of_entailment_and_owns_to_being_no_nli_model(rule):
    assert isinstance(rule, Entailment) and rule.stand_in and rule.name in rule.revision
    ((entails, contradicts),) = matrices(rule, [["Gout", "Gout", "Influenza"]])
    np.testing.assert_array_equal(entails + contradicts, np.ones((3, 3)))
    np.testing.assert_array_equal(entails[0], [1, 1, 0])


def test_a_threshold_that_is_no_cosine_is_refused():
    with pytest.raises(ValueError, match=r"threshold is 1.5; allowed is a cosine"):
        CosineEntailment(LETTERS, 1.5)


# Formulas


def test_variants_stand_under_their_base_and_others_nowhere():
    found = forms(list(METHODS))
    assert found["msp"] == ["sequence_probability", "min_token_probability"]
    assert found["semantic_entropy"] == ["semantic_entropy_normalised", "semantic_entropy_discrete"]
    assert "semantic_similarity" not in found and "semantic_similarity_med" not in found
    listed = [m for variants in found.values() for m in variants]
    assert sorted(listed) == sorted(
        m.name for m in METHODS.values() if m.equation.endswith("(variant)")
    )
    assert forms(["sequence_probability", "asp"]) == {}


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
        "default": "", "exact strings": "same meaning", "cosine 0.6": "same meaning",
        "full": "context",
    }  # fmt: skip


def test_by_exact_strings_the_semantic_share_is_the_share_of_the_most_frequent_string(run, read):
    exact = read[(read["option"] == "exact strings") & (read["method"] == "semantic_poc")][
        "confidence"
    ]
    poc = run.confidence[run.confidence["method"] == "poc"]["confidence"]
    np.testing.assert_allclose(exact.to_numpy(), poc.to_numpy())


def test_a_rule_by_which_all_mean_the_same_finds_one_set(run):
    found = readings(run, VIEWS, [CosineEntailment(LETTERS, -1)], ["answer"], LETTERS)
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
        encoder=LETTERS,
    )
    assert all((a == g.entailment).all() for a, g in zip(before, run.generations, strict=True))


def test_the_context_changes_what_a_token_weighs(run, read):
    full = read[(read["option"] == "full") & (read["method"] == "token_sar")][
        "confidence"
    ].to_numpy()
    answer = run.confidence[run.confidence["method"] == "token_sar"]["confidence"].to_numpy()
    assert full.shape == answer.shape and not np.allclose(full, answer)


def test_a_model_without_probabilities_keeps_its_reasons():
    found = readings(asked(FakeModel(provides=TEXT_ONLY)), VIEWS, RULES, encoder=LETTERS)
    lost = found[found["method"].isin(["ccp", "sar"]) & (found["option"] != "default")]
    assert (
        len(lost)
        and lost["confidence"].isna().all()
        and lost["missing"].str.contains("gives no").all()
    )
    assert found.query("method == 'num_set'")["confidence"].notna().all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"views": VIEWS[1:]}, "views lack"),
        ({"rules": [ExactEntailment(), ExactEntailment()]}, "rules need a name each"),
        ({"contexts": ["whole"]}, "contexts are"),
    ],
)
def test_what_cannot_be_read_is_refused(run, change, message):
    with pytest.raises(ValueError, match=message):
        readings(**{"run": run, "views": VIEWS, "rules": RULES, "encoder": LETTERS, **change})


# Differences, on a table made by hand

KEY = {"dataset": "made", "model": "m", "bound": "", "missing": ""}


def by_hand(n: int = 24) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Answers of ``n`` cases at one level, half right; confidences whose AUROC is known: ``deg`` 1,
    ``asp`` 0.875, ``msp`` 0.

    The variant of msp has 1. By the rule "r", deg has 0.
    """
    right = np.arange(n) % 2
    half = np.where(np.arange(n) % 4 < 2, right, 0.5)
    values = {
        "deg": right,
        "asp": half,
        "msp": -right,
        "min_token_probability": right,
        "poc": np.full(n, np.nan),
    }
    cases = [f"c{i:02d}" for i in range(n)]
    answers = pd.DataFrame({"case_id": cases, "level": 100, "correct": right, "answer": "x", **KEY})
    table = [
        pd.DataFrame(
            {
                "case_id": cases,
                "level": 100,
                "method": m,
                "confidence": v * 1.0,
                "choice": "",
                "option": "default",
                **KEY,
            }
        )
        for m, v in values.items()
    ]
    table.append(table[0].assign(confidence=-1.0 * right, choice="same meaning", option="r"))
    return answers, pd.concat(table, ignore_index=True)


def test_differences_are_to_the_default_and_name_the_choice():
    found = differences(*by_hand(), n_draws=50).set_index(["method", "option"])
    assert found.loc[("msp", "min_token_probability"), ["choice", "difference"]].to_list() == [
        "formula",
        1.0,
    ]
    assert found.loc[("deg", "r"), ["choice", "difference"]].to_list() == ["same meaning", -1.0]
    assert set(found["level"]) == {"within"} and "asp" not in found.index.get_level_values("method")


def test_without_choices_there_are_no_differences_and_the_columns_stay():
    answers, read = by_hand()
    none = differences(answers, read[read["method"] == "asp"], n_draws=10)
    assert none.empty and list(none.columns) == list(differences(answers, read, n_draws=10).columns)


def test_a_whole_run_has_a_difference_for_each_method_that_reads_a_context(run, read):
    found = differences(run.answers, read, n_draws=20, min_per_class=1)
    assert set(found.query("choice == 'context'")["method"]) == {"token_sar", "sar"}
