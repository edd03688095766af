"""The tables beneath the trust indices: weights, correlations of the parts, agreement, weak
points."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from made_reviews import SAFETY_OFF, many_cases, review, two_cases
from scipy.stats import kendalltau

from studies import trust_indices as study
from studies.trust_indices import (
    VARIANTS,
    WEIGHTS,
    agreement_table,
    component_correlations,
    indices_shown,
    rank_stability,
    variants,
    weak_points,
    weight_grid,
    weight_shares,
    weight_sweep,
)
from trustlab.metrics.agreement import fleiss_kappa, gwet_ac1
from trustlab.metrics.estimate import case_weights, jackknife_interval, percentile_interval
from trustlab.metrics.trust import FORMULATIONS, pair_agreement
from trustlab.metrics.trust_table import trust_indices
from trustlab.settings import Setup

NAN = float("nan")
BOTH = pytest.mark.parametrize("formulation", FORMULATIONS)


def indices(**parts: tuple[float, float, float]) -> pd.DataFrame:
    """Rows of the indices in ``trust-x``: configuration = (accuracy, cdr, rdc)."""
    run = {
        "formulation": "trust-x",
        "model": "m",
        "dataset": "d",
        "level": 100,
        "safety": True,
        "n": 20,
    }
    return pd.DataFrame(
        run | {"configuration": name, "metric": metric, "value": value}
        for name, values in parts.items()
        for metric, value in zip(["accuracy", "cdr", "rdc", "eti"], [*values, NAN], strict=True)
    )


def at(table: pd.DataFrame, *weights: float) -> pd.Series:
    """The one row of a sweep at these weights."""
    found = table[np.isclose(table[WEIGHTS].astype(float), weights).all(axis=1)]
    assert len(found) == 1
    return found.iloc[0]


# Weights

ONE_AND_THREE = {"one": (0.6, 0.0, 0.3), "three": (0.9, 0.3, 0.3)}
"""One doctor: less accurate, nobody to disagree. ETI: 60 w1 + 100 w2 + 30 w3 against 90 w1 + 70 w2
+ 30 w3."""


def test_the_grid_holds_every_weighting_once() -> None:
    assert sorted(map(tuple, weight_grid(2))) == [
        (0, 0, 1), (0, 0.5, 0.5), (0, 1, 0), (0.5, 0, 0.5), (0.5, 0.5, 0), (1, 0, 0),
    ]  # fmt: skip
    assert len(weight_grid(20)) == 231 and np.allclose(weight_grid(20).sum(axis=1), 1)
    with pytest.raises(ValueError, match="steps must be at least 1; received 0"):
        weight_grid(0)


def test_whoever_has_the_highest_eti_wins_a_point() -> None:
    sweep = weight_sweep(indices(**ONE_AND_THREE, never=(0.1, 0.5, 0.1)), steps=10)
    printed = at(sweep, 0.4, 0.3, 0.3)  # 24 + 30 + 9 = 63 against 36 + 21 + 9 = 66
    assert (printed["winner"], printed["value"], printed["margin"]) == (
        "three",
        pytest.approx(66),
        pytest.approx(3),
    )
    assert at(sweep, 0.2, 0.5, 0.3)["winner"] == "one"
    equal = at(sweep, 0.3, 0.3, 0.4)
    assert (equal["winner"], equal["tied"], equal["margin"]) == ("tie", ("one", "three"), 0)


def test_a_difference_by_rounding_is_a_tie() -> None:
    assert at(weight_sweep(indices(a=(0.1 + 0.2, 0.1, 0.3), b=(0.3, 0.2, 0.3)), 2), 1, 0, 0)[
        "tied"
    ] == ("a", "b")


def test_shares_of_the_simplex_count_points_and_split_ties() -> None:
    # Of the 6 points with steps 2: three wins (1, 0, 0) and (0.5, 0, 0.5); one wins (0, 1, 0) and
    # (0, 0.5, 0.5); 2 ties.
    shares = weight_shares(weight_sweep(indices(**ONE_AND_THREE, never=(0.1, 0.5, 0.1)), steps=2))
    assert dict(zip(shares["configuration"], shares["value"], strict=True)) == pytest.approx(
        {"one": 0.5, "three": 0.5}
    )
    assert shares["n"].tolist() == [6, 6]
    shares = weight_shares(weight_sweep(indices(one=(0.6, 0, 0.4), three=(0.9, 0.3, 0.3)), steps=2))
    assert shares.set_index("configuration")["value"].to_dict() == pytest.approx(
        {"one": 3.5 / 6, "three": 2.5 / 6}
    )


def test_the_sweep_is_the_same_in_both_units() -> None:
    cases = many_cases(12)
    panels = pd.concat([cases, many_cases(12, seed=1, configuration="other")])
    found = [weight_sweep(trust_indices(panels, f, draws=0), 5, f) for f in FORMULATIONS]
    accurate = [
        t[np.isclose(t["w_rdc"].astype(float), 0)][["winner", "value", "margin"]].reset_index(
            drop=True
        )
        for t in found
    ]
    pd.testing.assert_frame_equal(*accurate)  # without RDC the two differ in their units alone


def test_safety_on_and_off_count_once_unless_they_differ() -> None:
    both = pd.concat([indices(one=(0.6, 0, 0.3)), indices(one=(0.6, 0, 0.3)).assign(safety=False)])
    sweep = weight_sweep(both, 2)
    assert (
        set(sweep["winner"]) == {"one"}
        and sweep["n"].unique().tolist() == [1]
        and sweep["margin"].isna().all()
    )
    both.loc[~both["safety"] & both["metric"].eq("rdc"), "value"] = 0.2
    assert at(weight_sweep(both, 2), 0, 0, 1)["winner"] == "one, safety on"


def test_a_configuration_without_one_part_is_left_out_of_every_point() -> None:
    sweep = weight_sweep(indices(one=(0.6, 0, 0.3), three=(0.9, 0.3, NAN)), 2)
    assert set(sweep["winner"]) == {"one"} and (sweep["n_missing"] == 1).all()
    sweep = weight_sweep(indices(three=(0.9, 0.3, NAN)), 2)
    assert set(sweep["winner"]) == {""} and set(sweep["missing"]) == {
        "no configuration has accuracy, CDR and RDC"
    }
    assert weight_shares(sweep).empty


def test_rank_stability_compares_each_weighting_with_the_printed_one() -> None:
    table = indices(a=(0.9, 0.6, 0.1), b=(0.7, 0.3, 0.2), c=(0.5, 0.0, 0.2))
    # Printed weights: a 36 + 12 + 3 = 51, b 28 + 21 + 6 = 55, c 20 + 30 + 6 = 56: c, b, a.
    found = rank_stability(table, 10)
    assert (
        at(found, 0.4, 0.3, 0.3)["value"] == 1
        and at(found, 1, 0, 0)["value"] == -1
        and at(found, 0, 1, 0)["value"] == 1
    )
    assert at(found, 0, 0, 1)["value"] == pytest.approx(
        kendalltau([51, 55, 56], [1, 2, 2]).statistic
    )  # a tie: tau-b
    assert (found["n"] == 3).all() and len(found) == 66


def test_the_ranking_to_compare_with_is_that_of_the_printed_weights() -> None:
    # Printed: a 36 + 16.5 + 9 = 61.5, b 24 + 27 + 9 = 60. Equal weights would put b first: 58.3 and
    # 60.
    found = rank_stability(indices(a=(0.9, 0.45, 0.3), b=(0.6, 0.1, 0.3)), 2)
    assert at(found, 1, 0, 0)["value"] == 1 and at(found, 0, 1, 0)["value"] == -1


def test_models_are_ranked_together_and_data_sets_apart() -> None:
    table = indices(a=(0.9, 0.6, 0.1), b=(0.7, 0.3, 0.2))
    other = table.assign(model="n", value=table["value"].mask(table["metric"].eq("accuracy"), 0.2))
    found = rank_stability(pd.concat([table, other, table.assign(dataset="e")]), 2)
    assert found.groupby("dataset")["n"].first().to_dict() == {"d": 4, "e": 2}


def test_a_ranking_of_one_or_of_equals_has_no_tau() -> None:
    assert set(rank_stability(indices(a=(0.9, 0.6, 0.1)), 2)["missing"]) == {
        "fewer than 2 rows to rank"
    }
    corner = at(rank_stability(indices(a=(0.9, 0.2, 0.1), b=(0.9, 0.3, 0.1)), 2), 1, 0, 0)
    assert np.isnan(corner["value"]) and corner["missing"] == "all rows have the same ETI"


@pytest.mark.parametrize("make", [weight_sweep, rank_stability])
def test_indices_of_another_formulation_are_refused(make: Callable) -> None:
    with pytest.raises(
        ValueError, match=r"indices hold nothing of 'medguard-x'; they hold \['trust-x'\]"
    ):
        make(indices(a=(0.9, 0.6, 0.1)), 2, "medguard-x")
    with pytest.raises(
        ValueError, match=r"indices lack \['rdc'\]; they have \['accuracy', 'cdr', 'eti'\]"
    ):
        make(indices(a=(0.9, 0.6, 0.1)).query("metric != 'rdc'"), 2)
    with pytest.raises(ValueError, match=r"indices lacks the columns \['value'\]"):
        make(indices(a=(0.9, 0.6, 0.1)).drop(columns="value"), 2)


# Correlations


def pair(table: pd.DataFrame, first: str, second: str, measure: str = "pearson") -> pd.Series:
    found = table[
        (table["first"] == first) & (table["second"] == second) & (table["metric"] == measure)
    ]
    assert len(found) == 1
    return found.iloc[0]


def test_correlations_of_the_parts_over_cases() -> None:
    votes = [["flu"] * 3, ["flu", "flu", "cold"], ["flu", "cold", "gout"]]  # agreement 1, 2/3, 1/3
    plans = [
        {"n_safe": 1, "n_unsafe": 0},
        {"n_safe": 1, "n_unsafe": 1},
        {"n_safe": 0, "n_caution": 1},
    ]  # unsafe 0, 1/2, 1
    rows = [
        review(str(i), v, cosine=c, n_prescriptions=2, **p)
        for i, (v, c, p) in enumerate(zip(votes, (0.9, 0.2, 0.1), plans, strict=True))
    ]
    found = component_correlations(pd.DataFrame(rows), draws=20)
    assert len(found) == 20  # ten pairs, two measures
    assert pair(found, "agreement", "unsafe_rx")["value"] == pytest.approx(-1)
    # Agreement less its mean 1/3, 0, -1/3; cosine less 0.4: 0.5, -0.2, -0.3: (0.8/3) / sqrt(2/9 ·
    # 0.38) = 0.9177
    assert pair(found, "agreement", "cosine")["value"] == pytest.approx(0.9177, abs=1e-4)
    assert pair(found, "agreement", "cosine", "spearman")["value"] == pytest.approx(1)
    assert pair(found, "agreement", "cosine")["missing"] == "no interval: fewer than 10 cases"
    assert pair(found, "cosine", "test_alerts")["missing"] == "test_alerts the same in every case"


def test_cases_that_lack_a_part_are_left_out_of_its_pairs_and_counted() -> None:
    cases = many_cases(30)
    cases.loc[:3, "cosine"] = NAN
    cases.loc[5, ["n_prescriptions", "n_safe", "n_caution", "n_unsafe"]] = (
        0  # nothing rated is no share of 0
    )
    found = component_correlations(cases, draws=50)
    assert pair(found, "cosine", "unsafe_rx")[["n", "n_missing"]].tolist() == [25, 5]
    row = pair(found, "correct", "agreement")
    assert row["n"] == 30 and -1 <= row["low"] < row["value"] < row["high"] <= 1


def test_the_interval_of_a_correlation_resamples_its_cases() -> None:
    cases = many_cases(20)
    row = pair(component_correlations(cases, draws=60, seed=2), "cosine", "test_alerts")
    alerts = (cases["n_risky"] + cases["n_redundant"]) / 4
    drawn = [
        np.corrcoef(np.repeat(cases["cosine"], w), np.repeat(alerts, w))[0, 1]
        for w in case_weights(cases["case_id"], 60, 2)
    ]
    assert (row["low"], row["high"]) == pytest.approx(percentile_interval(drawn))


def test_with_safety_off_no_case_has_shares_of_ratings() -> None:
    found = component_correlations(many_cases(12).assign(**SAFETY_OFF), draws=20)
    assert pair(found, "correct", "unsafe_rx")["missing"] == "no case has unsafe_rx"
    assert (
        pair(found, "unsafe_rx", "test_alerts")["missing"] == "no case has unsafe_rx or test_alerts"
    )
    assert pair(found, "correct", "cosine")["missing"] == ""


# Agreement


def test_agreement_of_a_panel_with_intervals_over_cases() -> None:
    cases = many_cases(25)
    votes = list(cases["diagnoses"])
    found = agreement_table(cases, draws=60, seed=1).set_index("metric")
    means = {"pair_agreement": np.mean([pair_agreement(v) for v in votes])}
    assert found["value"].to_dict() | means == pytest.approx(found["value"].to_dict())
    weights = case_weights(cases["case_id"], 60, 1)
    pairs = np.array([pair_agreement(v) for v in votes])
    row = found.loc["pair_agreement"]
    assert (row["low"], row["high"]) == pytest.approx(percentile_interval(weights @ pairs / 25))
    for measure, kappa in (("fleiss_kappa", fleiss_kappa), ("gwet_ac1", gwet_ac1)):
        without = [kappa([*votes[:i], *votes[i + 1 :]]) for i in range(25)]
        row = found.loc[measure]
        expected = (kappa(votes), *jackknife_interval(kappa(votes), without)[:2])
        assert (row["value"], row["low"], row["high"]) == pytest.approx(expected), measure
    assert (
        found.loc["gwet_ac1", "value"]
        < agreement_table(cases, 65, 60).set_index("metric").loc["gwet_ac1", "value"]
    )


def test_agreement_by_hand_with_unreadable_votes() -> None:
    cases = [
        review("a", ["flu", "flu", "cold"]),
        review("b", ["flu", None, None]),
        review("c", [None] * 3),
    ]
    found = agreement_table(pd.DataFrame(cases), draws=20).set_index("metric")
    # One case has two readable votes: CDR 1/3, of three pairs one agrees.
    # Shares 2/3, 1/3: (1/3 - 5/9)/(4/9) and (1/3 - 4/9)/(5/9)
    expected = {
        "cdr": 1 / 3,
        "any_disagreement": 1,
        "pair_agreement": 1 / 3,
        "fleiss_kappa": -0.5,
        "gwet_ac1": -0.2,
    }
    assert found["value"].to_dict() == pytest.approx(expected)
    assert found["n"].tolist() == [1] * 5 and found["n_missing"].tolist() == [2] * 5
    assert set(found["missing"]) == {"no interval: fewer than 10 cases"}


def test_one_doctor_agrees_with_nobody() -> None:
    found = agreement_table(
        pd.DataFrame([review(str(i), ["flu"]) for i in range(12)]), draws=20
    ).set_index("metric")
    assert found.loc["cdr", "value"] == 0
    assert found.loc["cdr", "missing"].startswith("0 by definition with one doctor; no interval")
    alone = found.loc[["pair_agreement", "fleiss_kappa", "gwet_ac1"]]
    assert alone["value"].isna().all() and set(alone["missing"]) == {
        "one doctor: nobody to agree with"
    }


def test_a_panel_that_always_says_the_same_has_no_kappa() -> None:
    found = agreement_table(
        pd.DataFrame([review(str(i), ["flu"] * 3) for i in range(12)]), draws=20
    ).set_index("metric")
    assert (
        found.loc["pair_agreement", "value"] == 1
        and found.loc["pair_agreement", "missing"] == "no interval: all draws alike"
    )
    assert (
        np.isnan(found.loc["fleiss_kappa", "value"])
        and found.loc["fleiss_kappa", "missing"] == "one diagnosis in all cases"
    )


def test_the_doctors_count_once_whether_or_not_they_are_reviewed() -> None:
    cases = many_cases(12)
    found = agreement_table(pd.concat([cases, cases.assign(**SAFETY_OFF)]), draws=20)
    assert len(found) == 5 and "safety" not in found and set(found["n"]) == {12}
    other = agreement_table(
        pd.concat([cases, many_cases(12, seed=5).assign(**SAFETY_OFF)]), draws=20
    )
    assert len(other) == 10 and set(other["safety"]) == {True, False}


def test_variants_stand_beside_the_default_row_by_row() -> None:
    cases = pd.concat(
        [two_cases(), pd.DataFrame([review("c", ["gout", None, None])])], ignore_index=True
    )
    found = variants(cases, draws=0).set_index(["metric", "variant"])
    # of five rated one is UNSAFE, one with caution
    assert found.loc["unsafe_rx_percent", "value"].to_dict() == pytest.approx(
        dict(zip(VARIANTS, [40, 20, 40], strict=True))
    )
    cdr = found.loc["cdr"]
    assert cdr["value"].tolist() == pytest.approx(
        [1 / 6, 1 / 6, 1 / 3]
    )  # 1/3, 0 and dropped, or 2/3
    assert cdr["n"].tolist() == [2, 2, 3] and list(cdr.index) == list(VARIANTS)
    shown = indices_shown(variants(cases, "medguard-x", draws=0).assign(proxy="by a proxy"))
    assert shown["CDR"].tolist() == ["17", "17", "33"] and shown["n (ETI)"].tolist() == [2, 2, 3]
    assert shown["variant"].tolist() == list(VARIANTS) and set(shown["RDC by"]) == {"by a proxy"}


# Weak points


def test_a_panel_that_cannot_be_read_stays_so_when_it_is_scored_as_one_doctor() -> None:
    gone = review("b", [None] * 3, n_no_answer=3, cosine=NAN)
    table = pd.DataFrame([review("a", ["flu", "cold", "flu"]), gone]).fillna({"n_no_answer": 0})
    found = what_if(weak_points(table), "a panel scored as one doctor")
    assert found["eti_after"] - found["eti_before"] == pytest.approx(
        10
    )  # 0.3 · 1/3; accuracy is 1 of 1 in both


def what_if(table: pd.DataFrame, name: str) -> dict[str, float]:
    """The three indices before and after."""
    found = table[table["what_if"] == name].set_index("metric").rename({"eti_percent": "eti"})
    assert list(found.index) == ["eti", "osi", "fti"]
    ends = (("before", "reference"), ("after", "value"))
    return {
        f"{index}_{when}": found.loc[index, column]
        for index in found.index
        for when, column in ends
    }


def test_weak_points_by_hand_in_trust_x() -> None:
    found = weak_points(two_cases())  # before: ETI 54, OSI 55, FTI 54.5, see made_reviews
    before = {"eti_before": 54, "osi_before": 55, "fti_before": 54.5}
    safest = before | {"eti_after": 54, "osi_after": 100, "fti_after": 77}
    assert what_if(found, "reviewers who never object") == pytest.approx(safest)
    assert what_if(found, "an empty plan") == pytest.approx(safest)
    agreed = before | {
        "eti_after": 59,
        "osi_after": 55,
        "fti_after": 57,
    }  # 0.3 · CDR = 5 points for nobody's agreement
    assert what_if(found, "a panel scored as one doctor") == pytest.approx(agreed)
    copied = before | {"eti_after": 75, "osi_after": 55, "fti_after": 65}  # RDC 1 in place of 0.3
    assert what_if(found, "reasoning that only repeats the diagnosis") == pytest.approx(copied)
    eti = found[found["metric"] == "eti_percent"]
    assert eti["difference"].tolist() == pytest.approx([0, 0, 5, 21])
    assert eti["n"].tolist() == eti["n_reference"].tolist() == eti["n_cases"].tolist() == [2] * 4


def test_weak_points_by_hand_in_medguard_x() -> None:
    found = weak_points(
        two_cases(), "medguard-x", constant_cosine=0.2
    )  # before: ETI 69, OSI 55, FTI 62
    assert what_if(found, "every cosine 0.2") == pytest.approx(  # RDC 60 in place of 80
        {
            "eti_before": 69,
            "osi_before": 55,
            "fti_before": 62,
            "eti_after": 63,
            "osi_after": 55,
            "fti_after": 59,
        }
    )


def test_switching_on_reviewers_who_never_object_is_worth_the_whole_osi() -> None:
    off = two_cases(**SAFETY_OFF)
    found = what_if(weak_points(off), "reviewers who never object")
    assert (found["osi_before"], found["osi_after"]) == (0, 100)
    table = weak_points(off, "medguard-x")
    found = what_if(table, "reviewers who never object")
    assert np.isnan(found["osi_before"]) and found["osi_after"] == 100
    row = table[table["what_if"].str.startswith("reviewers") & table["metric"].eq("osi")].iloc[0]
    assert (row["n_reference"], row["n"], row["missing"]) == (
        0,
        2,
        "before: safety off",
    ) and np.isnan(row["difference"])
    assert "an empty plan" not in set(weak_points(off)["what_if"])


def test_one_doctor_cannot_be_scored_as_one_doctor_instead() -> None:
    found = weak_points(pd.DataFrame([review("a", ["flu"])]))
    assert "a panel scored as one doctor" not in set(found["what_if"]) and len(found) == 9


@BOTH
def test_what_ifs_leave_the_reviews_alone_and_keep_safety_apart(formulation) -> None:
    cases = many_cases(6)
    table = pd.concat([cases, cases.assign(**SAFETY_OFF)], ignore_index=True)
    kept = table.copy(deep=True)
    found = weak_points(table, formulation, eti_weights=(1, 0, 0))
    pd.testing.assert_frame_equal(table, kept)
    eti = found[found["metric"] == "eti_percent"]
    assert eti["reference"].tolist() == pytest.approx(
        eti["value"].tolist()
    )  # accuracy has no weak point here
    assert eti.groupby("what_if")["safety"].apply(sorted).to_dict() == {
        "a panel scored as one doctor": [False, True],
        "an empty plan": [True],
        "reasoning that only repeats the diagnosis": [False, True],
        "reviewers who never object": [False, True],
    }


def test_a_correlation_of_a_part_that_hardly_varies_is_no_finding() -> None:
    # three cases of 20 differ, and their cosines lie together: a bootstrap's p would be 0.003
    x = np.r_[np.ones(3), np.zeros(17)]
    y = np.r_[0.66, 0.65, 0.64, np.linspace(0, 0.8, 17)]
    pairs = pd.DataFrame({"case_id": [f"c{i:02}" for i in range(20)], "x": x, "y": y})
    rows = study.Rows.of(pairs.assign(both=x + y), "both", 400, 0)
    key = {"model": "m", "dataset": "d", "level": 100, "configuration": "c", "safety": True}

    def only(*_):
        yield {**key, "first": "agreement", "second": "cosine"}, rows

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "_pairs", only)
        patch.setattr(study, "check_reviews", lambda reviews: reviews)
        found = component_correlations(pairs, draws=400).set_index("metric").loc["spearman"]
    assert found["low"] > 0 and found["p_holm"] == found["p"] > 0.05
    assert found["difference"] == found["value"]
    assert found["standard_error"] == pytest.approx(1 / np.sqrt(19))
    # (1.960 + 0.842) squared 20 / 19 over the square of the value
    needed = 20 * (2.8016 / np.sqrt(19) / found["value"]) ** 2
    assert found["cases_needed"] == pytest.approx(needed, abs=1)


def test_weak_pairs_are_those_whose_interval_is() -> None:
    table = pd.DataFrame({"low": [-0.2, -0.4, NAN], "high": [0.2, 0.1, NAN]})
    assert study.weak_pairs(table) == "Shown to be weak (interval within ±0.3): 1 of 2 pairs."
    pair_of = study.named_pair({"first": "correct", "second": "unsafe_rx"})
    assert pair_of == "correct and objections to prescriptions"


def percents(**accuracy: float) -> pd.DataFrame:
    """Indices in percent, safety on, ``trust-x``: the accuracy of each configuration."""
    rows = [
        ("m", team.replace("_", " "), name, value, value - 5, value + 5)
        for team, right in accuracy.items()
        for name, value in (("accuracy", right), ("eti_percent", 79.0), ("fti", NAN))
    ]
    columns = ["model", "configuration", "metric", "value", "low", "high"]
    return pd.DataFrame(rows, columns=columns).assign(safety=True, formulation="trust-x")


def test_the_message_of_the_indices_has_accuracy_beside_eti_and_fti() -> None:
    table = percents(one_doctor=80.0, panel_of_3=85.0)
    assert study.indices_message(table) == (
        "One doctor is right for 80 [75, 85] %: ETI 79, FTI –; panel of 3 is right for 85 [80, 90]"
        " %: ETI 79, FTI –."
    )
    both = pd.concat([table, table.assign(model="o")])
    assert [line[:3] for line in study.indices_message(both).splitlines()] == ["m: ", "o: "]
    assert study.indices_message(percents(one_doctor=NAN)) == ""


def test_the_message_of_the_reviewers_sums_items_over_panels() -> None:
    rows = [("prescription", "sensitivity", 0.5, 4), ("prescription", "sensitivity", 1.0, 2)]
    rows += [("prescription", "specificity", 0.9, 10), ("test", "sensitivity", NAN, 0)]
    table = pd.DataFrame(rows, columns=["kind", "metric", "value", "n"])
    assert study.reviewers_message(table) == (
        "Prescriptions: the reviewers object to 4 of 6 that the rules do and pass 9 of 10 that the"
        " rules pass."
    )
    assert study.reviewers_message(table[3:]) == study.reviewers_message(table[:0]) == ""


def test_the_message_of_the_weights_names_who_wins_at_the_printed_ones() -> None:
    rows = [(0.4, 0.3, 0.3, "panel"), (1.0, 0.0, 0.0, "panel"), (0.0, 1.0, 0.0, "one doctor")]
    sweep = pd.DataFrame(rows, columns=[*study.WEIGHTS, "winner"]).assign(model="m", dataset="d")
    words = "panel has the highest ETI at the printed weights and at 67 % of all weightings"
    assert study.weights_message(sweep) == f"{words}."
    both = pd.concat([sweep, sweep.assign(dataset="e")])
    assert study.weights_message(both) == f"d: {words}; e: {words}."
    assert study.weights_message(sweep.assign(winner="")) == ""


def test_doctors_who_are_the_same_for_all_are_convened_once() -> None:
    setup = Setup()
    told = study.same_doctors(setup, ["embedded", "embedded-overconfident"])
    assert told.startswith("the doctors are embedded-clinic, whoever is asked (embedded, embedded-")
    assert study.same_doctors(setup, ["embedded"]) == ""
    assert study.same_doctors(setup, ["one:A", "one:B"]) == ""


def test_by_panel_keeps_safety_on_and_parts_configurations() -> None:
    table = pd.DataFrame({"formulation": ["trust-x"] * 2, "configuration": ["a", "b"]})
    found = study.by_panel(table.assign(safety=[True, False]))
    assert found["formulation"].tolist() == ["trust-x, a"]
