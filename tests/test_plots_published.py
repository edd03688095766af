"""The figures of the published tables from small made-up tables: what, where, which colour."""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pandas as pd
import pytest
from drawn_figures import Drawn, assert_legible
from matplotlib.axes import Axes
from matplotlib.colors import same_color

from trustlab.plots import FAMILY_COLOURS
from trustlab.plots import published as drawn

LLAMA, GPT = {"model": "llama-3.1"}, {"model": "gpt-4.1"}
pytestmark = pytest.mark.usefixtures("house_style")


@pytest.fixture(scope="module")
def made() -> Drawn:
    drawings = {"auroc_differences": lambda: drawn.auroc_differences(gaps())}
    told = {"model": "Llama-3.1", "dataset": "DDXPlus", "counts": "5 printed coefficients"}
    return Drawn(drawings, **told, interval="")


def points(ax: Axes, marker: str) -> list[tuple[float, float]]:
    """Where the axes hold marks of one shape."""
    lines = [line for line in ax.lines if line.get_marker() == marker]
    return [
        (float(x), float(y))
        for line in lines
        for x, y in zip(*np.atleast_2d(line.get_data()), strict=True)
    ]


def words(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts if text.get_text()]


def gaps() -> pd.DataFrame:
    rows = []
    for method, family, difference in (("ce", "verbalized", 0.05), ("asp", "token", 0.13)):
        for unit, reach, cases in (("answer", 0.03, 46), ("case", 0.1, 1584)):
            ends = {"difference": difference, "low": difference - reach, "high": difference + reach}
            rows.append(
                {
                    **LLAMA,
                    "dataset": "ddxplus",
                    "method": method,
                    "family": family,
                    "unit": unit,
                    **ends,
                    "cases": cases,
                }
            )
    return pd.DataFrame(rows).assign(n_cases=171)


def test_a_difference_has_two_intervals_and_the_cases_it_takes(made: Drawn) -> None:
    ax = made["auroc_differences"]
    bars = {
        (tuple(np.round(line.get_xdata(), 9)), line.get_ydata()[0]): line
        for line in ax.lines
        if len(line.get_xdata()) == 2
    }
    thin, thick = bars[(-0.05, 0.15), 0], bars[(0.02, 0.08), 0]
    assert thin.get_linewidth() < thick.get_linewidth() and same_color(
        thin.get_color(), FAMILY_COLOURS["verbalized"]
    )
    assert points(ax, "^") == [(0.05, 0)] and points(ax, "o") == [(0.13, 1)]
    said = words(ax)
    assert said.count("46") == said.count("1,584") == said.count("171") == 2
    assert [t.get_text() for t in ax.get_yticklabels()] == [
        "CE, DDXPlus, Llama-3.1",
        "ASP, DDXPlus, Llama-3.1",
    ]


def test_a_number_of_cases_that_is_unknown_leaves_its_place_empty() -> None:
    said = words(drawn.auroc_differences(gaps().assign(cases=np.nan)))
    assert "nan" not in said and said.count("–") == 4


def test_no_text_is_clipped_or_overlaps(made: Drawn) -> None:
    assert_legible(made.figure("auroc_differences"))
