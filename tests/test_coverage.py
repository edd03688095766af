"""An interval is printed where simulations say that it holds, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from each import each

from benchmarks import intervals
from trustlab.metrics import coverage
from trustlab.metrics.calibration import CALIBRATION, ece, ece_by_chance
from trustlab.metrics.correlation import OVER_LEVELS
from trustlab.metrics.discrimination import RANKING
from trustlab.metrics.estimate import Rows, across, difference, estimate, kind_of, mean, within
from trustlab.metrics.selective import SELECTIVE
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
    return Rows.of(table, "confidence", n_draws=200)


def test_every_kind_that_a_table_prints_was_simulated_at_every_size() -> None:
    known, some = coverage.simulated(), rows(answers())
    ranked = [of for of, _ in RANKING.values()]
    levels = [across(of) for of in OVER_LEVELS.values()]
    single = [*(m.statistic for m in CALIBRATION.values()), *SELECTIVE.values(), *CVS.values()]
    paired = [*ranked, *map(within, ranked), *levels, *CVS.values()]
    printed = [*ranked, *map(within, ranked), *levels, *single, *map(difference, paired)]
    kinds = {kind_of(of)[0](some) for of in [*printed, mean("correct"), mean("confidence")]}
    kinds |= {"kappa", "risk", "recalibration", "best", *INTERVALS.values()}
    kinds |= {f"{name} of cases" for name in OVER_LEVELS}
    kinds |= {f"difference of {kind}" for kind in ("share", "mean", "eti", "osi", "fti")}
    assert kinds <= set(known), kinds - set(known)
    for kind, table in known.items():
        assert set(table["n_cases"]) == {12, 24, 60, 240}, kind
    every = pd.concat(known.values())
    assert (every["repetitions"] >= np.where(every["n_cases"] == 240, 100, 300)).all()


@each(
    ("kind", "n_cases", "value", "printed"),
    [
        ("share", 60, 0.7, True),
        ("auroc", 60, 0.7, True),
        ("auroc", 60, 0.998, False),  # one law has no estimate at this size
        ("difference of auroc within", 60, 0.0, True),
        ("pearson", 240, 0.999, False),
        ("share", 11, 0.7, False),
        ("a statistic of one's own", 12, 0.7, True),
    ],
)
def test_what_is_printed(kind: str, n_cases: int, value: float, printed: bool) -> None:
    assert (coverage.withheld(kind, n_cases, value) == "") is printed


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    def use(lines: list[tuple[int, float, float, float, float]]) -> None:
        names = ["n_cases", "low", "high", "coverage", "standard_error"]
        table = pd.DataFrame(lines, columns=names).assign(kind="k")
        table.to_csv(tmp_path / "c.csv", index=False)
        monkeypatch.setattr(coverage, "FILE", tmp_path / "c.csv")
        coverage.simulated.cache_clear()
        coverage.withheld.cache_clear()

    yield use
    monkeypatch.undo()
    coverage.simulated.cache_clear()
    coverage.withheld.cache_clear()


def test_a_larger_size_that_fails_takes_the_smaller_with_it(made: Any) -> None:
    made([(12, 0, 1, 0.95, 0.01), (24, 0, 1, 0.80, 0.01), (60, 0, 1, 0.89, 0.02)])
    found = {n: coverage.withheld("k", n, 0.5) for n in (11, 12, 23, 24, 59, 60, 1000)}
    assert [n for n, why in found.items() if not why] == [60, 1000]  # 0.89 + 0.02 is enough
    assert "docs/coverage.md" in found[24]


def test_a_table_has_no_bracket_that_does_not_hold_and_says_why() -> None:
    some = rows(answers())
    pearson = estimate(some, across(OVER_LEVELS["pearson"]))
    assert pearson["value"] > 0.95 and np.isnan(pearson["low"]) and np.isnan(pearson["high"])
    assert pearson["missing"] == coverage.NOT_HELD
    accuracy = estimate(some, mean("correct"))
    assert accuracy["low"] < accuracy["value"] < accuracy["high"] and accuracy["missing"] == ""
    tested = estimate(some, across(OVER_LEVELS["pearson"]), test=True)
    assert np.isnan(tested["p"]) and np.isnan(tested["standard_error"])


def test_chance_gives_the_ece_of_a_calibrated_confidence() -> None:
    sure = np.random.default_rng(1).random(60)
    drawn = [np.random.default_rng(k).random(60) < sure for k in range(200)]
    values = [ece(right.astype(float), sure) for right in drawn]
    assert ece_by_chance(sure) == pytest.approx(np.quantile(values, [0.025, 0.5, 0.975]), rel=0.1)
    assert ece_by_chance([0.0, 1.0]) == (0.0, 0.0, 0.0)


def test_the_page_shows_the_table() -> None:
    assert (ROOT / "docs" / "coverage.md").read_text() == intervals.page(pd.read_csv(coverage.FILE))
