"""Methods against a reference and the best of each family: what is compared with what, and what it
says where it cannot."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from trustlab.measures import best_of_families, compare_methods
from trustlab.metrics.paired import paired_differences, reference_of
from trustlab.metrics.significance import holm, sample_size_for_power

pytestmark = pytest.mark.usefixtures("every_interval")


NAN = float("nan")
LEVELS = (20, 60, 100)
KNOWS = {"medconf": 0.8, "asp": 1.4, "msp": 0.0, "poc": 0.7, "ce": 0.1, "random": 0.0}
"""How far each method's confidence rises for a right answer, in standard deviations of its
noise."""


def made(
    n: int = 40, seed: int = 0, knows: dict[str, float] = KNOWS, model: str = "m"
) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(seed)
    rows = [(f"c{i:02d}", q) for i in range(n) for q in LEVELS]
    answers = pd.DataFrame(rows, columns=["case_id", "level"]).assign(dataset="made", model=model)
    answers["correct"] = (rng.random(len(rows)) < 0.3 + 0.004 * answers["level"]).astype(float)
    sides = [
        answers.drop(columns="correct").assign(
            method=m, confidence=lift * answers["correct"] + rng.normal(size=len(rows)), missing=""
        )
        for m, lift in knows.items()
    ]
    return answers, pd.concat(sides, ignore_index=True)


ANSWERS, SURE = made()


def without(method: str, share: float = 1.0, why: str = "no probabilities") -> pd.DataFrame:
    """The confidences with the first share of a method's values missing."""
    table = SURE.copy()
    rows = table.index[table["method"] == method]
    gone = rows[: int(share * len(rows))]
    table.loc[gone, "confidence"], table.loc[gone, "missing"] = NAN, why
    return table


def row(table: pd.DataFrame, **where: object) -> pd.Series:
    for column, value in where.items():
        table = table[table[column] == value]
    assert len(table) == 1
    return table.iloc[0]


# -- each method
# --------------------------------------------------------------------------------------------------


def test_it_is_the_paired_difference_with_family_reference_and_cases_needed_beside_it():
    found = compare_methods(ANSWERS, SURE, n_draws=200, seed=3)
    table = SURE.merge(ANSWERS, on=["case_id", "level", "dataset", "model"])
    plain = paired_differences(
        table, "medconf", by="method", metrics=["auroc"], n_draws=200, seed=3
    )
    same = [
        "method",
        "metric",
        "level",
        "value",
        "reference",
        "difference",
        "low",
        "high",
        "p",
        "p_holm",
        "n",
        "missing",
    ]
    pd.testing.assert_frame_equal(found[same], plain[same])
    assert set(found["against"]) == {"medconf"}
    assert list(found["method"].unique()) == ["asp", "msp", "poc", "ce", "random"]
    one = row(found, method="asp", level="within")
    assert one["family"] == "token" and one["difference"] > 0 and one["low"] > 0
    assert one["cases_needed"] == sample_size_for_power(
        one["difference"], one["standard_error"], 40
    )


def test_each_method_stands_on_the_rows_that_it_shares_with_the_reference():
    found = compare_methods(ANSWERS, without("asp", 0.25), n_draws=50)
    assert row(found, method="asp", level="pooled")[["n", "n_missing"]].tolist() == [90, 30]
    assert row(found, method="poc", level="pooled")[["n", "n_missing"]].tolist() == [120, 0]


def test_the_family_of_tests_are_the_methods_of_one_metric_and_level():
    found = compare_methods(ANSWERS, SURE, metrics=("auroc", "auprc"), n_draws=200)
    for _, part in found.groupby(["metric", "level"]):
        assert len(part) == 5 and part["p_holm"].tolist() == pytest.approx(holm(part["p"]).tolist())


def test_a_twin_of_the_reference_needs_no_number_of_cases():
    twin = SURE[SURE["method"] == "medconf"].assign(method="medconf_weighted")
    one = row(
        compare_methods(ANSWERS, pd.concat([SURE, twin]), n_draws=50),
        method="medconf_weighted",
        level="within",
    )
    assert one["difference"] == 0 and np.isnan([one["cases_needed"], one["p"], one["low"]]).all()
    assert one["missing"] == "no interval: all draws alike"


def test_a_reference_without_values_gives_rows_that_say_why_and_an_unknown_one_is_refused():
    found = compare_methods(ANSWERS, without("medconf"), n_draws=20)
    assert found["difference"].isna().all() and set(found["missing"]) == {
        "no confidence: no probabilities"
    }
    for compare in (compare_methods, best_of_families):
        with pytest.raises(
            ValueError, match=r"reference is 'medcof'; the confidences are of \['medconf', 'asp'"
        ):
            compare(ANSWERS, SURE, "medcof")
    assert compare_methods(ANSWERS, SURE[SURE["method"] == "medconf"]).empty


# -- the best of each family
# ------------------------------------------------------------------------------------------


def test_the_best_of_a_family_is_the_one_with_the_highest_auroc_against_the_reference():
    found = best_of_families(ANSWERS, SURE, n_draws=200, seed=3)
    assert list(found["family"]) == ["token", "consistency", "verbalized", "baseline"]
    token, alone = row(found, family="token"), row(found, family="consistency")
    assert (token["method"], token["n_methods"], token["n"], token["n_missing"]) == (
        "asp",
        2,
        120,
        0,
    ) and token["chosen_in"] > 0.9
    same = row(compare_methods(ANSWERS, SURE, n_draws=200, seed=3), method="asp", level="within")
    shared = [
        "value",
        "reference",
        "difference",
        "low",
        "high",
        "p",
        "standard_error",
        "cases_needed",
    ]
    assert token[shared].astype(float).tolist() == pytest.approx(
        same[shared].astype(float).tolist()
    )
    assert alone["chosen_in"] == 1
    assert found["p_holm"].tolist() == pytest.approx(holm(found["p"]).tolist())


@pytest.mark.parametrize("level", ["within", "pooled"])
def test_its_value_is_that_of_the_comparison_at_the_same_level(level):
    best = best_of_families(ANSWERS, SURE, level=level, n_draws=50)
    every = compare_methods(ANSWERS, SURE, n_draws=50).set_index(["method", "level"])
    for one in best.itertuples():
        assert one.value == pytest.approx(every.loc[(one.method, level), "value"]), one.method


def test_all_of_a_family_stand_on_the_rows_that_all_have_and_who_has_few_is_named():
    some, few = (
        best_of_families(ANSWERS, without("asp", share), n_draws=50) for share in (0.25, 0.6)
    )
    assert row(some, family="token")[["method", "n", "n_methods", "left_out"]].tolist() == [
        "asp",
        90,
        2,
        "",
    ]
    assert row(few, family="token")[["method", "n", "n_methods", "left_out"]].tolist() == [
        "msp",
        120,
        1,
        "asp",
    ]
    assert row(some, family="consistency")["n"] == 120


def test_a_family_or_a_reference_without_values_has_no_best_and_says_why():
    lost = row(best_of_families(ANSWERS, without("poc"), n_draws=20), family="consistency")
    assert (lost["method"], lost["n"], lost["left_out"]) == ("", 0, "poc") and np.isnan(
        lost["difference"]
    )
    assert lost["missing"] == "no method has a value on half of the answers"
    found = best_of_families(ANSWERS, without("medconf"), n_draws=20)
    assert (
        set(found["missing"]) == {"no medconf: no probabilities"}
        and found["p_holm"].isna().all()
        and len(found) == 4
    )


def test_too_few_right_or_wrong_answers_withhold_the_best():
    one_kind = ANSWERS.assign(correct=[float(i >= 9) for i in range(len(ANSWERS))])
    found = best_of_families(one_kind, SURE, n_draws=20, level="pooled")
    assert (
        found["value"].isna().all()
        and set(found["missing"]) == {"fewer than 10 correct or wrong"}
        and set(found["n"]) == {120}
    )
    enough = best_of_families(one_kind, SURE, n_draws=20, level="pooled", min_per_class=9)
    assert enough["value"].notna().all()


def test_equals_are_named():
    twin = SURE[SURE["method"] == "asp"].assign(method="perplexity")
    one = row(best_of_families(ANSWERS, pd.concat([SURE, twin]), n_draws=50), family="token")
    assert (one["method"], one["missing"]) == ("asp", "as good: perplexity") and one[
        "chosen_in"
    ] <= 0.5


def test_ungraded_answers_and_a_level_with_one_kind_count_for_nothing():
    lost = ANSWERS.assign(
        correct=ANSWERS["correct"]
        .where(ANSWERS["case_id"] != "c00")
        .mask(ANSWERS["level"] == 100, 1.0)
    )
    lost.loc[lost["case_id"] == "c00", "correct"] = NAN
    one = row(best_of_families(lost, SURE, n_draws=20), family="token")
    assert (one["n"], one["n_cases"], one["n_missing"]) == (78, 39, 42)


def test_two_runs_are_compared_each_with_its_own():
    other = made(seed=5, model="other")
    answers, sure = (pd.concat(pair) for pair in zip((ANSWERS, SURE), other, strict=True))
    for compare in (compare_methods, best_of_families):
        both, single = compare(answers, sure, n_draws=50), compare(*other, n_draws=50)
        mine = both[both["model"] == "other"].reset_index(drop=True)
        pd.testing.assert_frame_equal(mine, single)


def test_a_level_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="level is '20'; allowed are 'within' and 'pooled'"):
        best_of_families(ANSWERS, SURE, level="20")


def test_without_medconf_the_first_method_is_the_reference():
    assert [
        reference_of(names) for names in (["asp", "medconf"], {"asp": "token", "poc": ""}, [])
    ] == ["medconf", "asp", "medconf"]


# -- to read
# --------------------------------------------------------------------------------------------------
