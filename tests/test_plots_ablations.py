"""The figures of ablations and open choices from small made-up tables."""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from drawn_figures import Drawn, assert_legible
from each import each
from matplotlib.axes import Axes
from matplotlib.colors import same_color

from trustlab.plots import FAMILY_COLOURS, FAMILY_MARKERS
from trustlab.plots.ablations import (
    auroc_by_passages,
    auroc_by_samples,
)
from trustlab.plots.style import paler

KEY = {"model": "embedded", "dataset": "starter"}
FAMILIES = {
    "medconf": "medconf",
    "medconf_weighted": "medconf",
    "poc": "consistency",
    "mc_se": "consistency",
    "asp": "token",
}
NAN = float("nan")
GONE = "no confidence: no table of evidence without a structured profile"
COUNTS, TEMPERATURES = (2, 5, 15), (0.2, 1.0)
pytestmark = pytest.mark.usefixtures("house_style")


def measured(value: float, **settings) -> dict:
    span = {
        "value": value,
        "low": value - 0.06,
        "high": value + 0.05,
        "missing": GONE if np.isnan(value) else "",
        "n": 100,
    }
    span["n_cases"] = 40
    return {**KEY, "metric": "auroc", "level": "within", **span, **settings}


def by_passages() -> pd.DataFrame:
    rows = [measured(0.6 + 0.01 * n, method="medconf", n_passages=n) for n in (1, 5, 15)]
    return pd.DataFrame(
        [
            *rows,
            *(
                measured(0.62 + 0.01 * n, method="medconf_weighted", n_passages=n)
                for n in (1, 5, 15)
            ),
        ]
    )


def by_samples() -> pd.DataFrame:
    return pd.DataFrame(
        measured(
            NAN if m == "asp" else 0.6 + 0.01 * k + 0.1 * t, method=m, n_samples=k, temperature=t
        )
        for m in ("poc", "mc_se", "asp")
        for t in TEMPERATURES
        for k in COUNTS
    )


DRAWINGS = {
    "passages": lambda: auroc_by_passages(by_passages(), FAMILIES),
    "samples": lambda: auroc_by_samples(by_samples(), FAMILIES, ["poc", "mc_se", "asp"]),
}


@pytest.fixture(scope="module")
def drawn() -> Drawn:
    told = {"model": "embedded", "dataset": "starter", "n_cases": 40, "n_rows": 120}
    return Drawn(DRAWINGS, **told, note="paired")


def markers(ax: Axes) -> list:
    return [line for line in ax.lines if line.get_marker() in FAMILY_MARKERS.values()]


@each("name", DRAWINGS)
def test_no_text_is_clipped_or_overlaps(name: str, drawn: Drawn) -> None:
    assert_legible(drawn.figure(name))


@each("name", DRAWINGS)
def test_every_mark_has_its_familys_colour_and_shape_or_is_not_ours(
    name: str, drawn: Drawn
) -> None:
    of = {FAMILY_COLOURS[f]: FAMILY_MARKERS[f] for f in set(FAMILIES.values())}
    allowed = {(m, c) for colour, m in of.items() for c in (colour, paler(colour))}
    for ax in drawn.axes(name):
        for line in markers(ax):
            assert any(
                line.get_marker() == m and same_color(line.get_markerfacecolor(), c)
                for m, c in allowed
            )


def test_the_answers_behind_the_points_of_a_line_are_told_and_where_they_differ_their_range(
    drawn: Drawn,
) -> None:
    assert drawn["passages"].get_title() == "n = 100"
    table = by_samples()
    table.loc[(table["method"] == "poc") & (table["n_samples"] == 2), "n"] = 40
    titles = [ax.get_title() for ax in auroc_by_samples(table, FAMILIES, ["poc", "mc_se", "asp"])]
    assert titles == ["PoC\nn = 40 to 100", "MC-SE\nn = 100", "ASP"]


def test_lines_go_over_the_numbers_of_passages_in_order() -> None:
    table = by_passages().sample(frac=1, random_state=1)
    ax = auroc_by_passages(table, FAMILIES)
    values = [list(line.get_ydata()) for line in ax.lines if len(line.get_xdata()) == 3]
    assert sorted(values) == [pytest.approx([0.61, 0.65, 0.75]), pytest.approx([0.63, 0.67, 0.77])]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["1", "5", "15"]
    assert {"MedConf", "MedConf (fixed weights)", "chance 0.50"} <= {t.get_text() for t in ax.texts}


def test_a_panel_holds_a_line_for_each_temperature_in_a_style_of_its_own(drawn: Drawn) -> None:
    panels = drawn.axes("samples")
    assert [ax.get_title() for ax in panels] == ["PoC\nn = 100", "MC-SE\nn = 100", "ASP"]
    cold, warm = (line for line in panels[0].lines if len(line.get_xdata()) == 3)
    assert list(cold.get_ydata()) == pytest.approx([0.64, 0.67, 0.77]) and list(
        warm.get_ydata()
    ) == pytest.approx([0.72, 0.75, 0.85])
    assert cold.get_linestyle() != warm.get_linestyle()
    assert [t.get_text() for t in panels[0].figure.legends[0].get_texts()] == [
        "temperature 0.2",
        "temperature 1",
        "chance",
    ]


def test_a_panel_without_values_says_why(drawn: Drawn) -> None:
    told = " ".join(t.get_text().replace("\n", " ") for t in drawn.axes("samples")[2].texts)
    assert told == GONE.removeprefix("no confidence: ")


@each(
    ("draw", "message"),
    [
        (lambda: auroc_by_passages(by_passages(), FAMILIES, "40"), "level is '40'"),
        (lambda: auroc_by_samples(by_samples(), FAMILIES, ["best"]), "methods must be some of"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw()


def test_more_than_four_temperatures_cannot_be_told_apart() -> None:
    warm = pd.concat([by_samples().assign(temperature=t) for t in (0.1, 0.2, 0.3, 0.4, 0.5)])
    with pytest.raises(ValueError, match="at most 4 temperatures"):
        auroc_by_samples(warm, FAMILIES, ["poc"])


def test_given_axes_are_drawn_on() -> None:
    ax = plt.figure().add_subplot()
    assert auroc_by_passages(by_passages(), FAMILIES, ax=ax) is ax
