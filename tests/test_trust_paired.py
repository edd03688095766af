"""A panel against one doctor on the same cases: by hand, the same draws for both, and what has no
difference."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from long_table import check
from made_reviews import EMPTY_PLAN, SAFETY_OFF, many_cases, review
from resampled import case_weights

from studies.trust_indices import (
    configuration_differences,
    indices_on_shared_cases,
    weight_sweep,
)
from trustlab.metrics import schema
from trustlab.metrics.estimate import TOO_FEW, percentile_interval
from trustlab.metrics.significance import holm
from trustlab.metrics.trust_table import trust_indices


def alone(panel: pd.DataFrame) -> pd.DataFrame:
    """The panel's first doctor as a configuration of its own, with the panel's plan."""
    rows = [review(r.case_id, r.diagnoses[:1]) for r in panel.itertuples()]
    kept = panel.drop(
        columns=[
            "diagnoses",
            "diagnosis",
            "tied",
            "correct",
            "correct_share",
            "n_doctors",
            "configuration",
        ]
    )
    one = pd.DataFrame(rows)[
        ["diagnoses", "diagnosis", "tied", "correct", "correct_share", "n_doctors"]
    ]
    return pd.concat([kept.reset_index(drop=True), one], axis=1).assign(
        configuration="one doctor", cosine=kept["cosine"] - 0.1
    )


PANEL = many_cases(30)
BOTH = pd.concat([alone(PANEL), PANEL], ignore_index=True)


def test_differences_are_those_of_the_indices_in_percent():
    found = configuration_differences(BOTH, draws=50).set_index("metric")
    indices = trust_indices(BOTH, draws=0).set_index(["configuration", "metric"])["value"]
    assert list(found.index) == ["accuracy", "eti_percent", "osi", "fti"] and set(
        found["configuration"]
    ) == {"panel of 3"}
    for name, row in found.iterrows():
        unit = 100 if name == "accuracy" else 1
        expected = [unit * indices[c, name] for c in ("panel of 3", "one doctor")]
        assert [row["value"], row["reference"]] == pytest.approx(expected)
        assert row["difference"] == pytest.approx(expected[0] - expected[1])


def test_accuracy_by_hand_with_an_interval_over_the_same_cases():
    row = configuration_differences(BOTH, draws=300, seed=4).set_index("metric").loc["accuracy"]
    right = [t.sort_values("case_id")["correct"].to_numpy() for t in (PANEL, alone(PANEL))]
    draws = case_weights(np.arange(30), 300, 4)
    gaps = 100 * draws @ (right[0] - right[1]) / 30
    assert row["difference"] == pytest.approx(100 * (right[0].mean() - right[1].mean()))
    assert (row["low"], row["high"]) == pytest.approx(percentile_interval(gaps))
    assert row["standard_error"] == pytest.approx(gaps.std(ddof=1)) and row["n_cases"] == 30


def test_only_cases_that_both_have_are_compared_whatever_the_order_of_rows():
    fewer = BOTH.drop(
        BOTH.index[BOTH["configuration"].eq("one doctor") & BOTH["case_id"].isin(["c00", "c07"])]
    )
    found, shuffled = (
        configuration_differences(t, draws=50)
        for t in (fewer, fewer.sample(frac=1, random_state=1))
    )
    assert set(found["n"]) == set(found["n_cases"]) == {28} and set(found["n_missing"]) == {2}
    pd.testing.assert_frame_equal(found, shuffled)
    nothing = configuration_differences(
        fewer[fewer["configuration"].eq("one doctor") | fewer["case_id"].eq("c00")], draws=20
    )
    assert (
        set(nothing["missing"]) == {"no case that both have"} and nothing["difference"].isna().all()
    )


def test_fault_two_that_answer_alike_wherever_both_answer_do_not_differ():
    """One doctor is wrong where the panel cannot be read: its silence made it 45 points better, p
    0.003."""
    says = ["flu"] * 11 + ["cold"] * 9
    panel = [
        review(f"c{i:02d}", [said] * 3 if i < 11 else [None] * 3) for i, said in enumerate(says)
    ]
    one = [review(f"c{i:02d}", [said], configuration="one doctor") for i, said in enumerate(says)]
    found = configuration_differences(pd.DataFrame(one + panel), draws=500).set_index("metric")
    assert found.loc["accuracy", "difference"] == found.loc["eti_percent", "difference"] == 0
    assert found["n_cases"].to_dict() == {"accuracy": 11, "eti_percent": 11, "osi": 20, "fti": 11}
    assert found["p"].isna().all()


def test_each_index_is_compared_on_the_cases_that_both_could_answer_in_all_its_parts():
    table = BOTH.copy()
    mine, theirs = table["configuration"].eq("panel of 3"), table["configuration"].eq("one doctor")
    table.loc[mine & table["case_id"].isin(["c01", "c02"]), "cosine"] = np.nan
    table.loc[theirs & table["case_id"].isin(["c02", "c03"]), "cosine"] = np.nan
    nothing = dict.fromkeys([n for n in EMPTY_PLAN if n not in ("n_prescriptions", "n_tests")], 0)
    unrated = theirs & table["case_id"].eq("c04")
    table.loc[unrated, [*nothing, "n_risky", "n_redundant"]] = 0
    found = configuration_differences(table, draws=40).set_index("metric")
    assert found["n_cases"].to_dict() == {"accuracy": 30, "eti_percent": 27, "osi": 29, "fti": 26}
    kept = table[~table["case_id"].isin(["c01", "c02", "c03", "c04"])]
    expected = configuration_differences(kept, draws=40).set_index("metric").loc["fti"]
    assert found.loc["fti", "difference"] == pytest.approx(expected["difference"])
    apart = table.assign(cosine=table["cosine"].where(mine == (table["case_id"] < "c15")))
    told = configuration_differences(apart, draws=40).set_index("metric").loc["eti_percent"]
    assert (told["n_cases"], told["missing"]) == (0, "no case that both could answer")


def test_what_is_the_same_by_rule_or_missing_has_no_interval_and_says_why():
    off = configuration_differences(BOTH.assign(**SAFETY_OFF), draws=50).set_index("metric")
    assert (
        off.loc["osi", "difference"] == 0
        and off.loc["osi", "missing"] == "no interval: all draws alike"
    )
    assert (
        off.loc["osi", ["low", "p", "p_holm", "cases_needed"]].isna().all()
        and off.loc["eti_percent", "low"] < 0
    )
    gone = configuration_differences(
        BOTH.assign(cosine=np.nan, cosine_missing="no encoder"), draws=50
    )
    assert gone.set_index("metric").loc["fti", "missing"] == "one of the two has no value"
    few = configuration_differences(BOTH[BOTH["case_id"] < "c09"], draws=50)
    assert set(few["missing"]) == {TOO_FEW} and few["low"].isna().all()


def test_holm_is_over_the_indices_of_a_model_data_set_level_and_safety():
    table = pd.concat([BOTH, BOTH.assign(**SAFETY_OFF), BOTH.assign(model="other")])
    found = configuration_differences(table, draws=200)
    assert len(found) == 12
    for _, part in found.groupby(["model", "safety"]):
        assert part["p_holm"].tolist() == pytest.approx(holm(part["p"]).tolist(), nan_ok=True)


def test_a_team_without_the_reference_has_no_row_and_an_unknown_one_is_refused():
    mixed = pd.concat([BOTH, PANEL.assign(model="mixed")])
    assert set(configuration_differences(mixed, draws=20)["model"]) == {"m"}
    with pytest.raises(
        ValueError,
        match=r"against is 'two doctors'; the reviews hold \['one doctor', 'panel of 3'\]",
    ):
        configuration_differences(BOTH, against="two doctors")


def test_configurations_are_ranked_on_the_cases_that_all_could_answer() -> None:
    """The pair above: over all cases one doctor loses 0.4 of ETI's accuracy where the panel cannot
    be read."""
    says = ["flu"] * 11 + ["cold"] * 9
    panel = [
        review(f"c{i:02d}", [said] * 3 if i < 11 else [None] * 3) for i, said in enumerate(says)
    ]
    one = [review(f"c{i:02d}", [said], configuration="one doctor") for i, said in enumerate(says)]
    indices = indices_on_shared_cases(pd.DataFrame(one + panel))
    assert indices.loc[indices["metric"] == "eti", "n"].tolist() == [11, 11]
    assert set(weight_sweep(indices)["winner"]) == {"tie"} and set(
        weight_sweep(indices)["n_cases"]
    ) == {11}
    never = pd.DataFrame([*one[:5], *panel[5:]])  # no case is left to both
    assert set(weight_sweep(indices_on_shared_cases(never))["winner"]) == {""}


def test_every_table_of_the_indices_has_the_columns_of_the_schema() -> None:
    indices = trust_indices(BOTH, draws=20)
    shared = indices_on_shared_cases(BOTH)
    sweep = weight_sweep(shared, 2)
    made = [indices, shared, sweep, configuration_differences(BOTH, draws=20)]
    for table in made:
        check(table)
        assert set(table.columns) <= set(schema.COLUMNS) and not table["missing"].isna().any()
