"""A panel against one doctor on the same cases, and who has the highest ETI at each weighting."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from made_reviews import EMPTY_PLAN, many_cases, review
from resampled import jackknife, without_each

from studies import trust_indices as study
from trustlab.metrics.trust import ETI_WEIGHTS
from trustlab.metrics.trust_table import trust_indices

NAN = float("nan")


def alone(panel: pd.DataFrame) -> pd.DataFrame:
    """The panel's first doctor as a configuration of its own, with the panel's plan."""
    said = ["diagnoses", "diagnosis", "tied", "correct", "correct_share", "n_doctors"]
    one = pd.DataFrame([review(r.case_id, r.diagnoses[:1]) for r in panel.itertuples()])[said]
    kept = panel.drop(columns=[*said, "configuration"]).reset_index(drop=True)
    both = pd.concat([kept, one], axis=1)
    return both.assign(configuration="one doctor", cosine=kept["cosine"] - 0.1)


PANEL = many_cases(30)
BOTH = pd.concat([alone(PANEL), PANEL], ignore_index=True)


def differences(reviews: pd.DataFrame, **more) -> pd.DataFrame:
    return study.configuration_differences(reviews, **more).set_index("metric")


def test_differences_are_those_of_the_indices_with_an_interval_over_the_same_cases():
    found = differences(BOTH)
    indices = trust_indices(BOTH).set_index(["configuration", "metric"])["value"]
    assert list(found.index) == ["accuracy", "eti_percent", "osi", "fti"]
    assert set(found["configuration"]) == {"panel of 3"}
    for name, row in found.iterrows():
        unit = 100 if name == "accuracy" else 1
        expected = [unit * indices[c, name] for c in ("panel of 3", "one doctor")]
        assert [row["value"], row["reference"]] == pytest.approx(expected)
        assert row["difference"] == pytest.approx(expected[0] - expected[1])
    right = [t.sort_values("case_id")["correct"].to_numpy() for t in (PANEL, alone(PANEL))]
    gaps = 100 * (right[0] - right[1])
    leaves = without_each(np.mean, np.arange(30), gaps)
    row = found.loc["accuracy"]
    ends = jackknife(gaps.mean(), leaves, (-100, 100))
    assert (row["low"], row["high"]) == pytest.approx(ends) and row["n_cases"] == 30
    assert row["standard_error"] == pytest.approx(gaps.std(ddof=1) / np.sqrt(30))


def unread() -> pd.DataFrame:
    """One doctor is wrong where the panel cannot be read: its silence made it 45 points better, p
    0.003."""
    says = ["flu"] * 11 + ["cold"] * 9
    ids = [f"c{i:02d}" for i in range(20)]
    panel = [review(c, [d if c < "c11" else None] * 3) for c, d in zip(ids, says, strict=True)]
    one = [review(c, [d], configuration="one doctor") for c, d in zip(ids, says, strict=True)]
    return pd.DataFrame([*one, *panel])


@pytest.mark.usefixtures("every_interval")
def test_fault_two_that_answer_alike_wherever_both_answer_do_not_differ():
    found = differences(unread())
    assert found.loc["accuracy", "difference"] == found.loc["eti_percent", "difference"] == 0
    assert found["n_cases"].to_dict() == {"accuracy": 11, "eti_percent": 11, "osi": 20, "fti": 11}
    assert found["p"].dropna().tolist() == [1]  # of OSI; the others have 11 cases
    indices = study.indices_on_shared_cases(unread())
    assert indices.loc[indices["metric"] == "eti", "n"].tolist() == [11, 11]
    sweep = study.weight_sweep(indices)
    assert set(sweep["winner"]) == {"tie"} and set(sweep["n_cases"]) == {11}


def test_each_index_is_compared_on_the_cases_that_both_could_answer_in_all_its_parts():
    table = BOTH.copy()
    mine, theirs = table["configuration"].eq("panel of 3"), table["configuration"].eq("one doctor")
    table.loc[mine & table["case_id"].isin(["c01", "c02"]), "cosine"] = NAN
    table.loc[theirs & table["case_id"].isin(["c02", "c03"]), "cosine"] = NAN
    rated = [n for n in EMPTY_PLAN if n not in ("n_prescriptions", "n_tests")]
    unrated = theirs & table["case_id"].eq("c04")
    table.loc[unrated, [*rated, "n_risky", "n_redundant"]] = 0
    found = differences(table)
    assert found["n_cases"].to_dict() == {"accuracy": 30, "eti_percent": 27, "osi": 29, "fti": 26}


def indices(safety: bool = True, **parts: tuple[float, float, float]) -> pd.DataFrame:
    """Rows of the indices in ``trust-x``: configuration = (accuracy, cdr, rdc)."""
    run = {"formulation": "trust-x", "model": "m", "dataset": "d", "level": 100, "n": 20}
    names = ["accuracy", "cdr", "rdc", "eti"]
    return pd.DataFrame(
        run | {"safety": safety, "configuration": configuration, "metric": metric, "value": value}
        for configuration, values in parts.items()
        for metric, value in zip(names, [*values, NAN], strict=True)
    )


def at(table: pd.DataFrame, *weights: float) -> pd.Series:
    """The one row of a sweep at these weights."""
    (found,) = table[np.isclose(table[study.WEIGHTS].astype(float), weights).all(axis=1)].index
    return table.loc[found]


def test_whoever_has_the_highest_eti_wins_a_point() -> None:
    halves = [(0, 0, 1), (0, 0.5, 0.5), (0, 1, 0), (0.5, 0, 0.5), (0.5, 0.5, 0), (1, 0, 0)]
    assert sorted(map(tuple, study.weight_grid(2))) == halves
    assert len(study.weight_grid(20)) == 231 and np.allclose(study.weight_grid(20).sum(axis=1), 1)
    # ETI: 60 w1 + 100 w2 + 30 w3 against 90 w1 + 70 w2 + 30 w3
    two = {"one": (0.6, 0.0, 0.3), "three": (0.9, 0.3, 0.3)}
    sweep = study.weight_sweep(indices(**two, never=(0.1, 0.5, 0.1)), steps=10)
    printed = at(sweep, *ETI_WEIGHTS)  # 24 + 30 + 9 = 63 against 36 + 21 + 9 = 66
    assert printed["winner"] == "three"
    assert (printed["value"], printed["margin"]) == pytest.approx((66, 3))
    expected = pytest.approx({"one": 63, "three": 66})
    assert study.eti_at(study.contenders(indices(**two)), ETI_WEIGHTS).to_dict() == expected
    assert at(sweep, 0.2, 0.5, 0.3)["winner"] == "one"
    equal = at(sweep, 0.3, 0.3, 0.4)
    assert (equal["winner"], equal["tied"], equal["margin"]) == ("tie", ("one", "three"), 0)
