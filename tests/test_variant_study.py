"""Open choices read from the same replies: rules for "same meaning", SAR's context, formulas, and
how firm the order is."""

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
    rank_stability,
    readings,
)
from trustlab.confidence import METHODS
from trustlab.levels import views
from trustlab.meaning.entailment import Entailment, matrices
from trustlab.metrics.estimate import TOO_FEW
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


# Differences and ranks, on a table made by hand

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


def ranked(answers, read, **how) -> pd.DataFrame:
    """The ranks alone."""
    ranks = rank_stability(answers, read, **how)[0]
    return ranks[ranks["metric"] == "rank"].reset_index(drop=True)


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


def test_ranks_by_hand():
    long, _ = rank_stability(*by_hand(), n_draws=50)
    ranks, auroc = (
        long[long["metric"] == metric].reset_index(drop=True) for metric in ("rank", "auroc")
    )
    assert list(ranks["method"]) == list(auroc["method"]) == ["deg", "asp", "msp"]
    # asp says 0.5 in half of the cases: a right answer is surer in 3 of 4 kinds of pairs and ties
    # in the fourth
    assert (
        auroc["value"].to_list() == [1.0, 0.875, 0.0]
        and auroc.loc[1, "low"] < 0.875 < auroc.loc[1, "high"]
    )
    assert ranks["value"].to_list() == [1, 2, 3] and set(ranks["n"]) == {24}
    assert ranks["lowest"].to_list() == [
        1,
        1,
        1,
    ]  # by rule "r" asp leads; with its variant, msp shares or takes the first place
    assert ranks["highest"].to_list() == [3, 3, 3]
    assert ranks["chosen_in"].sum() == pytest.approx(1) and ranks["chosen_in"].iloc[2] == 0
    assert ranks[["low", "high"]].iloc[2].to_list() == [3, 3]


def test_a_shared_first_place_is_shared():
    answers, read = by_hand()
    twin = read[(read["method"] == "deg") & (read["option"] == "default")].assign(method="eigv")
    ranks = ranked(answers, pd.concat([read, twin]), n_draws=50).set_index("method")
    assert ranks.loc[["deg", "eigv"], "value"].to_list() == [1.5, 1.5]
    assert (
        ranks.loc["deg", "chosen_in"]
        == ranks.loc["eigv", "chosen_in"]
        == pytest.approx(0.5, abs=0.05)
    )


def test_one_choice_at_a_time_and_the_worst_of_all():
    _, changes = rank_stability(*by_hand(), n_draws=50)
    assert set(changes["metric"]) == {"kendall_tau"} and set(changes["n"]) == {24}
    rows = changes.set_index("option")
    # default deg > asp > msp; rule r: asp > deg = msp (tau-b of one concordant, one discordant
    # pair, one tie: 0)
    assert rows.loc["r", ["choice", "value"]].to_list() == ["same meaning", 0.0]
    # with its variant msp ties with deg above asp: pairs deg-asp agrees, asp-msp not, deg-msp tied
    assert rows.loc["min_token_probability", ["method", "value", "moved", "by"]].to_list() == [
        "msp",
        0.0,
        "msp",
        1.5,
    ]
    assert (
        changes.iloc[-1]["choice"] == "all"
        and changes.iloc[-1]["option"] == "lowest of 4 combinations"
    )
    assert changes.iloc[-1]["value"] == -1.0


def test_only_rows_that_all_can_score_are_ranked():
    answers, read = by_hand()
    read.loc[(read["method"] == "asp") & (read["case_id"] == "c00"), "confidence"] = np.nan
    ranks = ranked(answers, read, n_draws=20)
    assert set(ranks["n"]) == {23} and set(ranks["n_missing"]) == {1}


def test_a_method_with_few_values_costs_the_others_nothing_and_is_named():
    answers, read = by_hand()
    whole = ranked(answers, read, n_draws=20)
    some = read.query("method == 'asp'").assign(method="medconf")
    some["confidence"] = some["confidence"].where(some["case_id"] < "c11")
    ranks = ranked(answers, pd.concat([some, read]), n_draws=20)
    pd.testing.assert_frame_equal(ranks.iloc[:3], whole, check_dtype=False)
    left_out = ranks.iloc[3]
    assert (left_out["method"], left_out["n"]) == ("medconf", 24) and np.isnan(left_out["value"])
    assert left_out["missing"] == "a value for only 11 of 24 answers" and len(ranks) == 4


def test_half_of_the_answers_is_enough_to_be_ranked():
    answers, read = by_hand(48)
    some = read.query("method == 'asp'").assign(method="medconf")
    some["confidence"] = some["confidence"].where(some["case_id"] < "c24")
    ranks, _ = rank_stability(answers, pd.concat([read, some]), n_draws=20)
    assert set(ranks["n"]) == {24} and "medconf" in set(ranks.dropna(subset="value")["method"])


def test_answers_that_no_method_can_score_count_against_none():
    answers, read = by_hand(48)
    gone = read.assign(confidence=read["confidence"].where(read["case_id"] < "c22"))
    assert ranked(answers, gone, n_draws=20)["value"].to_list() == [1, 2, 3]


def test_a_formula_or_reading_with_few_values_is_left_out_and_named_and_its_method_stays():
    answers, read = by_hand()
    few = (read["case_id"] >= "c06") & (
        (read["method"] == "min_token_probability") | (read["option"] == "r")
    )
    ranks, changes = rank_stability(
        answers, read.assign(confidence=read["confidence"].mask(few)), n_draws=20
    )
    assert list(dict.fromkeys(ranks["method"])) == ["deg", "asp", "msp"] and set(ranks["n"]) == {24}
    rows, why = changes.set_index("option"), "a value for only 6 of 24 answers"
    assert rows.loc["min_token_probability", ["choice", "method", "missing"]].to_list() == [
        "formula",
        "msp",
        why,
    ]
    assert rows.loc["r", ["choice", "missing"]].to_list() == ["same meaning", f"without deg: {why}"]
    assert (
        rows["value"].iloc[:2].isna().all()
        and changes.iloc[-1]["option"] == "lowest of 1 combinations"
    )


def test_a_reading_that_some_methods_have_is_kept_for_those():
    answers, read = by_hand()
    other = read[read["option"] == "r"].assign(method="asp")
    other["confidence"] = other["confidence"].where(other["case_id"] < "c06")
    rows = rank_stability(answers, pd.concat([read, other]), n_draws=20)[1].set_index("option")
    assert (
        rows.loc["r", "value"] == 0
        and rows.loc["r", "missing"] == "without asp: a value for only 6 of 24 answers"
    )


def test_where_all_is_withheld_the_reason_names_the_method_with_fewest_values():
    answers, read = by_hand()
    for method, last in (("asp", "c13"), ("msp", "c20")):
        read.loc[(read["method"] == method) & (read["case_id"] > last), "confidence"] = np.nan
    ranks, changes = rank_stability(answers, read, n_draws=20)
    assert (
        set(ranks["missing"]) == {"fewer than 10 correct or wrong; fewest values: asp (14 of 24)"}
        and changes.empty
    )
    none, _ = rank_stability(answers, read[read["method"].isin(["asp"])].head(5), n_draws=20)
    assert set(none["missing"]) == {"fewer than 10 correct or wrong"}


def test_too_few_answers_are_withheld_and_too_few_cases_have_no_range():
    ranks, changes = rank_stability(*by_hand(12), n_draws=20)
    assert (
        ranks["value"].isna().all()
        and set(ranks["missing"]) == {"fewer than 10 correct or wrong"}
        and changes.empty
    )
    few = ranked(*by_hand(8), n_draws=20, min_per_class=1)
    assert few[["low", "high", "chosen_in"]].isna().all(axis=None) and set(few["missing"]) == {
        TOO_FEW
    }
    assert few["value"].to_list() == [1, 2, 3]


def test_a_whole_run_gives_ranks_within_their_range(run, read):
    ranks, changes = rank_stability(run.answers, read, n_draws=50, min_per_class=1)
    only = ranks[ranks["metric"] == "rank"]
    assert (only["lowest"] <= only["value"]).all() and (only["value"] <= only["highest"]).all()
    assert not {"random", "sequence_probability", "semantic_similarity_med"} & set(ranks["method"])
    assert changes["value"].iloc[-1] == changes["value"].min()
    assert (
        len(
            differences(run.answers, read, n_draws=20, min_per_class=1).query("choice == 'context'")
        )
        == 2
    )


def test_a_run_without_any_value_is_no_error(run, read):
    ranks, changes = rank_stability(run.answers, read.assign(confidence=np.nan), n_draws=10)
    assert ranks.empty and changes.empty


def test_answers_at_a_level_of_one_kind_do_not_lift_a_ranking_over_ten_right_and_ten_wrong() -> (
    None
):
    keys = pd.DataFrame([(f"c{i}", "d", level, "m") for level in (1, 100) for i in range(30)])
    keys.columns = ["case_id", "dataset", "level", "model"]
    answers = keys.assign(
        correct=[float(i < 8) for i in range(30)] + [1.0] * 30
    )  # eight right at 1, all at 100
    read = pd.concat(
        [
            keys.assign(method=method, confidence=[(i * step) % 31 / 31 for i in range(60)])
            for method, step in (("poc", 7), ("asp", 11))
        ]
    ).assign(option="default", choice="")
    ranks, _ = rank_stability(answers, read, n_draws=50)
    assert (
        ranks["value"].isna().all()
        and ranks["missing"].str.startswith("fewer than 10 correct or wrong").all()
    )
