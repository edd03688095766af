"""The tables beneath the trust indices: the sweep of weights, ETI against OSI, what is shown."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from made_reviews import SAFETY_OFF, many_cases, review, two_cases
from resampled import case_weights
from scipy.stats import kendalltau

from studies import trust_indices as study
from studies.trust_indices import (
    WEIGHTS,
    eti_against_osi,
    indices_shown,
    rank_stability,
    weight_grid,
    weight_sweep,
)
from trustlab.metrics.estimate import percentile_interval
from trustlab.metrics.trust import FORMULATIONS
from trustlab.metrics.trust_table import trust_indices

NAN = float("nan")


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
def test_indices_that_lack_a_part_are_refused(make: Callable) -> None:
    table = indices(a=(0.9, 0.6, 0.1))
    with pytest.raises(ValueError, match=r"indices lack \['rdc'\] of 'trust-x'"):
        make(table.query("metric != 'rdc'"), 2)
    with pytest.raises(ValueError, match="indices lack .* of 'trust-x'"):
        make(table.assign(formulation="medguard-x"), 2)
    with pytest.raises(ValueError, match=r"indices lacks the columns \['value'\]"):
        make(table.drop(columns="value"), 2)


# ETI against OSI


def test_eti_against_osi_by_hand() -> None:
    votes = [["flu"] * 3, ["flu", "flu", "cold"], ["flu", "cold", "gout"]]  # CDR 0, 1/3, 2/3
    plans = [{"n_safe": 2}, {"n_safe": 1, "n_unsafe": 1}, {"n_safe": 0, "n_caution": 1}]
    rows = [
        review(str(i), v, cosine=c, n_prescriptions=2, **p)
        for i, (v, c, p) in enumerate(zip(votes, (0.9, 0.2, 0.1), plans, strict=True))
    ]
    reviews = pd.DataFrame(rows).fillna(0)
    found = eti_against_osi(reviews, draws=20).set_index("metric")
    # ETI 0.4 r + 0.3 (1 - CDR) + 0.3 cos; OSI 100, 75, 50
    right, cosine = ([row[name] for row in rows] for name in ("correct", "cosine"))
    eti = [
        0.4 * r + 0.3 * (1 - i / 3) + 0.3 * c
        for i, (r, c) in enumerate(zip(right, cosine, strict=True))
    ]
    expected = np.corrcoef(eti, [2, 1, 0])[0, 1]
    assert found.loc["pearson", "value"] == pytest.approx(expected)
    assert found.loc["spearman", "value"] == pytest.approx(1)
    assert set(found["missing"]) == {"no interval: fewer than 10 cases"} and set(found["n"]) == {3}


def test_cases_without_one_of_the_two_are_left_out_and_counted() -> None:
    cases = many_cases(30)
    cases.loc[:3, "cosine"] = NAN
    nothing = ["n_prescriptions", "n_safe", "n_caution", "n_unsafe", "n_tests", "n_unflagged"]
    cases.loc[5, [*nothing, "n_risky", "n_redundant"]] = 0
    cases.loc[5, "plan_missing"] = "no plan"
    found = eti_against_osi(pd.concat([cases, cases.assign(**SAFETY_OFF)]), draws=50)
    assert found[["safety", "n", "n_missing"]].to_numpy().tolist() == [[True, 25, 5]] * 2
    assert (found["low"] < found["value"]).all() and (found["value"] < found["high"]).all()


def test_the_interval_of_the_correlation_resamples_its_cases() -> None:
    cases = many_cases(20)
    found = eti_against_osi(cases, draws=60, seed=2).set_index("metric")
    single = (trust_indices(cases[i : i + 1], draws=0) for i in range(20))
    each = [table.set_index("metric")["value"] for table in single]
    eti, osi = ([float(one[name]) for one in each] for name in ("eti", "osi"))
    drawn = [
        np.corrcoef(np.repeat(eti, w), np.repeat(osi, w))[0, 1]
        for w in case_weights(cases["case_id"], 60, 2)
    ]
    row = found.loc["pearson"]
    assert row["value"] == pytest.approx(np.corrcoef(eti, osi)[0, 1])
    assert (row["low"], row["high"]) == pytest.approx(percentile_interval(drawn))


def test_reviewers_who_never_object_leave_no_correlation() -> None:
    cases = many_cases(12).assign(n_caution=0, n_unsafe=0, n_risky=0, n_redundant=0)
    found = eti_against_osi(cases, draws=20)
    assert set(found["missing"]) == {"OSI the same in every case"} and found["value"].isna().all()


def test_variants_are_shown_beside_the_default() -> None:
    cases = pd.concat(
        [two_cases(), pd.DataFrame([review("c", ["gout", None, None])])], ignore_index=True
    )
    other = {"unsafe": {"rx_variant": "unsafe"}, "apart": {"cdr_variant": "unreadable disagrees"}}
    each = {name: trust_indices(cases, draws=0, **one) for name, one in ({"": {}} | other).items()}
    found = pd.concat(each, names=["variant"]).reset_index("variant")
    # of five rated one is UNSAFE, one with caution; CDR is 1/3, 0 and dropped, or 2/3
    shown = indices_shown(found.assign(proxy="by a proxy"))
    assert shown["UnsafeRx %"].tolist() == ["40", "20", "40"]
    assert shown["CDR"].tolist() == ["17", "17", "33"] and shown["n (ETI)"].tolist() == [2, 2, 3]
    assert shown["variant"].tolist() == ["", *other] and set(shown["RDC by"]) == {"by a proxy"}


def test_what_is_drawn_is_trust_x_whole_and_of_medguard_x_what_differs() -> None:
    cases = many_cases(12)
    reviews = pd.concat([cases, cases.assign(**SAFETY_OFF)])
    each = [trust_indices(reviews, form, draws=20) for form in FORMULATIONS]
    drawn = study.in_rows(study.in_percent(pd.concat(each)))
    by = {about: part["metric"].tolist() for about, part in drawn.groupby("about", sort=False)}
    assert by == {
        "What it thinks": ["accuracy", "cdr", "rdc", "eti_percent"],
        "What it does": ["unsafe_rx_percent", "test_alerts_percent", "osi", "osi"],
        "The whole": ["fti", "fti"],
        study.OTHER: ["rdc", "eti_percent", "fti"],
    }
    off = drawn[~drawn["safety"]]
    assert off["team"].str.endswith("safety off").all() and set(off["formulation"]) == {"trust-x"}
    accuracy = drawn.loc[drawn["metric"].eq("accuracy"), "value"]
    assert accuracy.tolist() == pytest.approx([100 * cases["correct"].mean()])
