"""Methods against a reference and the best of each family: what is compared with what, and what it
says where it cannot."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from resampled import one_row as row
from saying import saying, says

from trustlab.metrics.coverage import NOT_HELD
from trustlab.metrics.paired import paired_differences, reference_of
from trustlab.metrics.significance import holm, sample_size_for_power
from trustlab.runs.measures import best_of_families, compare_methods

pytestmark = pytest.mark.usefixtures("every_interval")
NAN = float("nan")
LEVELS = (20, 60, 100)
KNOWS = {"medconf": 0.8, "asp": 1.4, "msp": 0.0, "poc": 0.7, "ce": 0.1, "random": 0.0}
"""How far each method's confidence rises for a right answer, in standard deviations of its
noise."""
ENDS = ["value", "reference", "difference", "low", "high", "p", "standard_error", "cases_needed"]


def made(n: int = 40, seed: int = 0, model: str = "m") -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(seed)
    rows = [(f"c{i:02d}", q) for i in range(n) for q in LEVELS]
    keys = pd.DataFrame(rows, columns=["case_id", "level"]).assign(dataset="made", model=model)
    right = (rng.random(len(rows)) < 0.3 + 0.004 * keys["level"]).astype(float)
    sides = [
        keys.assign(method=m, confidence=lift * right + rng.normal(size=len(rows)), missing="")
        for m, lift in KNOWS.items()
    ]
    return keys.assign(correct=right), pd.concat(sides, ignore_index=True)


ANSWERS, SURE = made()


def without(method: str, share: float = 1.0) -> pd.DataFrame:
    """The confidences with the first share of a method's values missing."""
    table = SURE.copy()
    rows = table.index[table["method"] == method]
    gone = rows[: int(share * len(rows))]
    table.loc[gone, ["confidence", "missing"]] = [NAN, "no probabilities"]
    return table


def with_twin(method: str, name: str) -> pd.DataFrame:
    return pd.concat([SURE, SURE[SURE["method"] == method].assign(method=name)])


def test_it_is_the_paired_difference_with_family_reference_and_cases_needed_beside_it():
    found = compare_methods(ANSWERS, SURE)
    table = SURE.merge(ANSWERS, on=["case_id", "level", "dataset", "model"])
    options = {"by": "method", "metrics": ["auroc"]}
    plain = paired_differences(table, "medconf", **options)
    same = ["method", "metric", "level", *ENDS[:-2], "p_holm", "n", "missing"]
    pd.testing.assert_frame_equal(found[same], plain[same])
    assert set(found["against"]) == {"medconf"}
    assert list(found["method"].unique()) == ["asp", "msp", "poc", "ce", "random"]
    one = row(found, method="asp", level="within", metric="auroc")
    assert one["family"] == "token" and 0 < one["difference"] < one["high"]
    needed = sample_size_for_power(one["difference"], one["standard_error"], 40)
    assert one["cases_needed"] == needed
    for _, part in found.groupby(["metric", "level"]):
        assert len(part) == 5 and part["p_holm"].tolist() == pytest.approx(holm(part["p"]).tolist())


def test_each_method_stands_on_the_rows_that_it_shares_with_the_reference():
    found = compare_methods(ANSWERS, without("asp", 0.25))
    assert row(found, method="asp", level="pooled")[["n", "n_missing"]].tolist() == [90, 30]
    assert row(found, method="poc", level="pooled")[["n", "n_missing"]].tolist() == [120, 0]


def test_a_twin_of_the_reference_needs_no_number_of_cases():
    found = compare_methods(ANSWERS, with_twin("medconf", "medconf_weighted"))
    one = row(found, method="medconf_weighted", level="within")
    assert one["difference"] == 0 and np.isnan(one["cases_needed"]) and one["missing"] == ""
    assert one["p"] == 1 and one["low"] == pytest.approx(-one["high"])


def test_a_reference_without_values_gives_rows_that_say_why_and_an_unknown_one_is_refused():
    found = compare_methods(ANSWERS, without("medconf"))
    assert found["difference"].isna().all()
    assert {says(why, "confidence", "no probabilities") for why in found["missing"]} == {True}
    message = saying("reference", "'medcof'", "'medconf'", "'asp'")
    for compare in (compare_methods, best_of_families):
        with pytest.raises(ValueError, match=message):
            compare(ANSWERS, SURE, "medcof")
    assert compare_methods(ANSWERS, SURE[SURE["method"] == "medconf"]).empty
    named = [reference_of(names) for names in (["asp", "medconf"], {"asp": "t", "poc": ""}, [])]
    assert named == ["medconf", "asp", "medconf"]  # without medconf the first


def test_the_best_of_a_family_is_the_one_with_the_highest_auroc_against_the_reference():
    found = best_of_families(ANSWERS, SURE)
    assert list(found["family"]) == ["token", "consistency", "verbalized", "baseline"]
    token, alone = row(found, family="token"), row(found, family="consistency")
    assert token[["method", "n_methods", "n", "n_missing"]].tolist() == ["asp", 2, 120, 0]
    assert alone["method"] == "poc"
    every = compare_methods(ANSWERS, SURE)
    same = row(every, method="asp", level="within")
    assert token[ENDS[:3]].tolist() == pytest.approx(same[ENDS[:3]].tolist())
    # chosen on the answers that it is judged on, so that nothing more is said of the difference
    assert found[[*ENDS[3:], "p_holm"]].isna().all(axis=None) and set(found["missing"]) == {
        NOT_HELD
    }
    for one in found.itertuples():
        value = row(every, method=one.method, level="within")["value"]
        assert one.value == pytest.approx(value), one.method


def test_all_of_a_family_stand_on_the_rows_that_all_have_and_who_has_few_is_named():
    for share, expected in ((0.25, ["asp", 90, 2, ""]), (0.6, ["msp", 120, 1, "asp"])):
        found = best_of_families(ANSWERS, without("asp", share))
        token = row(found, family="token")
        assert token[["method", "n", "n_methods", "left_out"]].tolist() == expected
        assert row(found, family="consistency")["n"] == 120
    found = best_of_families(ANSWERS, with_twin("asp", "perplexity"))
    one = row(found, family="token")
    assert (one["method"], one["missing"]) == ("asp", f"{NOT_HELD}; as good: perplexity")


def test_a_family_or_a_reference_without_values_has_no_best_and_says_why():
    lost = row(best_of_families(ANSWERS, without("poc")), family="consistency")
    assert (lost["method"], lost["n"], lost["left_out"]) == ("", 0, "poc")
    assert np.isnan(lost["difference"])
    assert "half" in lost["missing"]
    found = best_of_families(ANSWERS, without("medconf"))
    assert [says(why, "medconf", "no probabilities") for why in found["missing"]] == [True] * 4
    assert found["p_holm"].isna().all()
    one_kind = ANSWERS.assign(correct=[float(i >= 9) for i in range(len(ANSWERS))])
    found = best_of_families(one_kind, SURE)
    assert found["value"].isna().all()
    assert {says(why, 10, "correct", "wrong") for why in found["missing"]} == {True}


def test_ungraded_answers_and_a_level_with_one_kind_count_for_nothing():
    right = ANSWERS["correct"].mask(ANSWERS["level"] == 100, 1.0)
    lost = ANSWERS.assign(correct=right.where(ANSWERS["case_id"] != "c00"))
    one = row(best_of_families(lost, SURE), family="token")
    assert (one["n"], one["n_cases"], one["n_missing"]) == (78, 39, 42)


def test_two_runs_are_compared_each_with_its_own():
    other = made(seed=5, model="other")
    answers, sure = (pd.concat(pair) for pair in zip((ANSWERS, SURE), other, strict=True))
    for compare in (compare_methods, best_of_families):
        both, single = compare(answers, sure), compare(*other)
        mine = both[both["model"] == "other"].reset_index(drop=True)
        pd.testing.assert_frame_equal(mine, single)
