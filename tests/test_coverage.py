"""An interval is printed where simulations say that it holds, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from each import each
from saying import says

from benchmarks import intervals
from trustlab.metrics import coverage
from trustlab.metrics.calibration import CALIBRATION, dependence, ece, ece_by_chance
from trustlab.metrics.correlation import OVER_LEVELS
from trustlab.metrics.discrimination import RANKING, STRATIFIED
from trustlab.metrics.estimate import (
    Rows,
    across,
    difference,
    estimate,
    mean_share,
    rate,
)
from trustlab.metrics.groups import MEASURES
from trustlab.metrics.selective import RISK
from trustlab.metrics.stability import CVS
from trustlab.metrics.trust_table import INTERVALS
from trustlab.paths import ROOT


def answers(n: int = 60, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    case, level = np.repeat(np.arange(n), 6), np.tile(np.arange(6), n)
    chance = 0.2 + 0.12 * level
    right = (rng.random(len(case)) < chance).astype(float)
    sure = np.clip(chance + 0.1 * right + 0.05 * rng.normal(size=len(case)), 0, 1)
    return pd.DataFrame({"case_id": case, "level": level, "correct": right, "confidence": sure})


def rows(table: pd.DataFrame) -> Rows:
    return Rows.of(table, "confidence")


def test_every_kind_that_a_table_prints_was_simulated_at_every_size() -> None:
    shares = [rate("correct"), RISK, mean_share("confidence")]
    ranked = [*RANKING.values(), *STRATIFIED.values()]
    single = [m.statistic for m in CALIBRATION.values()]
    paired = [*ranked, rate("correct"), *CVS.values()]
    printed = [*shares, *ranked, *single, *CVS.values(), *map(difference, paired)]
    kinds = {of.kind for of in printed if of.kind}
    kinds |= {"kappa", "recalibration", *(index.kind for index in INTERVALS.values())}
    kinds |= {f"difference of {kind}" for kind in ("eti", "osi", "fti")}
    kinds |= {"Holm's correction", *(f"{name} by group" for name in MEASURES)}
    table: Any = pd.read_csv(coverage.FILE)
    assert kinds <= set(table["kind"]), kinds - set(table["kind"])
    for kind, part in table.groupby("kind"):
        sizes = {48, 240} if "combined" in str(kind) else set(intervals.SIZES)
        assert set(part["n_cases"]) == sizes, kind
    assert (table["repetitions"] >= 200).all()


def test_whether_an_interval_is_printed_has_no_hole_and_does_not_hang_on_the_estimate() -> None:
    assert [*signature(coverage.withheld).parameters] == ["kind", "n_cases", "rarer"]
    for kind in coverage.sizes():
        printed = [
            [coverage.withheld(kind, n, r) == "" for r in (0, 1, 9, 10, 11, 50)]
            for n in (1, 11, 12, 23, 24, 36, 42, 47, 48, 99, 100, 239, 240, 5000)
        ]
        for axis in (0, 1):
            assert (np.diff(np.array(printed, int), axis=axis) >= 0).all(), kind


@each(
    ("kind", "n_cases", "rarer", "why"),
    [
        ("share", 24, 0, ""),
        ("share", 11, 5, ("no interval", 12, "docs/coverage.md")),
        ("auroc within", 24, 10, ""),
        ("auroc within", 500, 9, ("no interval", 10, "right", "wrong")),
        ("a statistic of one's own", 500, 500, ("no interval", "a statistic of one's own")),
    ],
)
def test_what_is_printed(kind: str, n_cases: int, rarer: int, why: Any) -> None:
    found = coverage.withheld(kind, n_cases, rarer)
    assert says(found, why) and bool(found) is bool(why)


@each("correct", [0, 1, 24, 36, 42, 47, 48])
def test_every_accuracy_of_48_cases_has_an_interval(correct: int) -> None:
    right = np.arange(48) < correct
    table = pd.DataFrame({"case_id": np.arange(48), "correct": right.astype(float)})
    found = estimate(Rows.of(table, "correct"), rate("correct"))
    assert found["low"] <= found["value"] <= found["high"] and found["missing"] == ""


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    def use(lines: list[tuple[int, float, float]], kind: str = "k", rarer: int = 0) -> None:
        table = pd.DataFrame(lines, columns=["n_cases", "coverage", "coverage_printed"])
        table = table.assign(kind=kind, rarer=rarer, standard_error=0.01)
        table.to_csv(tmp_path / "c.csv", index=False)
        monkeypatch.setattr(coverage, "FILE", tmp_path / "c.csv")
        coverage.sizes.cache_clear()

    yield use
    monkeypatch.undo()
    coverage.sizes.cache_clear()


NAN = float("nan")


@each(
    ("lines", "printed"),
    [
        ([(12, 0.95, 0.95), (24, 0.80, 0.95), (48, 0.90, 0.90)], [48, 1000]),  # one law fails at 24
        ([(12, 0.95, 0.95), (12, 0.89, 0.95), (24, 0.95, 0.895), (48, 0.95, 0.95)], [24, 48, 1000]),
        ([(12, 0.95, 0.95), (24, 0.95, 0.88), (48, 0.95, 0.95)], [48, 1000]),  # where printed
        ([(12, NAN, NAN), (24, 0.95, NAN), (48, 0.95, 0.95)], [12, 24, 48, 1000]),
        ([(12, 0.95, 0.95), (24, 0.95, 0.95), (48, 0.85, 0.95)], []),
    ],
)
def test_a_larger_size_that_fails_takes_the_smaller_with_it(
    made: Any, lines: list[Any], printed: list[int]
) -> None:
    made(lines)
    found = {n: coverage.withheld("k", n, n) for n in (11, 12, 24, 48, 1000)}
    assert [n for n, why in found.items() if not why] == printed
    assert "docs/coverage.md" in found[11]


def test_holm_must_err_in_at_most_six_of_a_hundred_families(made: Any) -> None:
    made([(24, 0.92, 0.92), (48, 0.935, 0.935)], kind="Holm's correction")
    assert [bool(coverage.withheld("Holm's correction", n, n)) for n in (24, 48)] == [True, False]


def test_a_table_has_no_bracket_that_does_not_hold_and_says_why() -> None:
    some = rows(answers())
    pearson = estimate(some, across(OVER_LEVELS["pearson"]))
    assert pearson["value"] > 0.95 and np.isnan(pearson["low"]) and np.isnan(pearson["high"])
    assert pearson["missing"] == coverage.NOT_HELD
    accuracy = estimate(some, rate("correct"))
    assert accuracy["low"] < accuracy["value"] < accuracy["high"] and accuracy["missing"] == ""
    tested = estimate(some, across(OVER_LEVELS["pearson"]), test=True)
    assert np.isnan(tested["p"]) and np.isnan(tested["standard_error"])


@each("together", [False, True])
def test_chance_gives_the_ece_of_a_calibrated_confidence(together: bool) -> None:
    """Answers of a case that are right or wrong together vary more, and so does the ECE."""
    rng, case = np.random.default_rng(1), np.repeat(np.arange(60), 4)
    sure = np.round(rng.random(60), 2)[case] if together else rng.random(240)

    def answers_by_chance() -> np.ndarray:
        return (rng.random(60)[case] if together else rng.random(240)) < sure

    values = [ece(answers_by_chance(), sure) for _ in range(400)]
    found = np.median([ece_by_chance(answers_by_chance(), sure, case) for _ in range(5)], axis=0)
    assert found == pytest.approx(np.quantile(values, [0.025, 0.5, 0.975]), rel=0.15)


def test_dependence_by_hand() -> None:
    case, prob = np.array([0, 0, 1, 1, 2]), np.array([0.5, 0.5, 0.2, 0.6, 0.9])
    right = np.array([1, 1, 0, 1, 1])
    products = 0.5 * 0.5 + (0 - 0.2) * (1 - 0.6)
    assert dependence(right - prob, prob, case) == pytest.approx(
        products / (0.25 + np.sqrt(0.16 * 0.24))
    )
    assert dependence(right - prob, prob, np.arange(5)) == 0
    assert ece_by_chance([0, 1], [0.0, 1.0], [0, 1]) == (0.0, 0.0, 0.0)


LAWS = {law.name: law for law in intervals.LAWS}


@each(
    ("name", "kinds"),
    [
        ("4 % of the cases wholly wrong and sure", ["auroc", "difference of auroc", "risk"]),
        ("panel, nearly perfect", ["cdr", "rdc", "osi", "fti as printed", "difference of osi"]),
        ("few answers move", ["difference of cv_sample"]),
        ("changes in 3 % of the cases", ["difference of share", "mean"]),
        ("graders agree, few wrong", ["kappa"]),
    ],
)
def test_intervals_hold_where_those_of_resampled_cases_do_not(
    monkeypatch: pytest.MonkeyPatch, name: str, kinds: list[str]
) -> None:
    monkeypatch.setattr(coverage, "withheld", lambda *_: "")
    truth = intervals.truths(LAWS[name])
    samples = [LAWS[name].found(np.random.default_rng((1, key)), 48) for key in range(40)]
    for kind in kinds:
        made = [one[kind] for one in samples]
        assert all(np.isfinite([one.low, one.high]).all() for one in made)  # never withheld
        held = [one.low <= truth[kind] <= one.high for one in made]
        assert np.mean(held) >= 0.85, kind


def test_the_page_shows_the_table() -> None:
    assert (ROOT / "docs" / "coverage.md").read_text() == intervals.page(pd.read_csv(coverage.FILE))
