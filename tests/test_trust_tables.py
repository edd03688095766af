"""Who has the highest ETI at each weighting of its parts; ETI and OSI over resampled cases."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from resampled import case_weights

from studies.trust_indices import (
    CORRELATIONS,
    WEIGHTS,
    contenders,
    eti_at,
    weight_grid,
    weight_sweep,
)
from trustlab.metrics.estimate import Rows, estimate, percentile_interval
from trustlab.metrics.trust import ETI_WEIGHTS

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


def test_the_printed_weights_give_the_eti_that_is_printed() -> None:
    found = eti_at(contenders(indices(**ONE_AND_THREE)), ETI_WEIGHTS)
    assert found.to_dict() == pytest.approx({"one": 63, "three": 66})


def test_indices_that_lack_a_part_are_refused() -> None:
    table = indices(a=(0.9, 0.6, 0.1))
    with pytest.raises(ValueError, match=r"indices lack \['rdc'\] of 'trust-x'"):
        weight_sweep(table.query("metric != 'rdc'"), 2)
    with pytest.raises(ValueError, match="indices lack .* of 'trust-x'"):
        weight_sweep(table.assign(formulation="medguard-x"), 2)
    with pytest.raises(ValueError, match=r"indices lacks the columns \['value'\]"):
        weight_sweep(table.drop(columns="value"), 2)


def test_the_interval_of_a_correlation_resamples_its_cases() -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 20))
    cases = pd.DataFrame({"case_id": [f"c{i:02d}" for i in range(20)], "x": x, "y": y, "both": 1.0})
    found = estimate(Rows.of(cases, "both", 60, 2), CORRELATIONS["pearson"])
    times = case_weights(cases["case_id"], 60, 2)
    drawn = [np.corrcoef(np.repeat(x, w), np.repeat(y, w))[0, 1] for w in times]
    assert found["value"] == pytest.approx(np.corrcoef(x, y)[0, 1])
    assert (found["low"], found["high"]) == pytest.approx(percentile_interval(drawn))
