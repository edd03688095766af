"""Scatters from small made-up tables: which mark where, and what stands behind and beside."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pandas as pd
import pytest
from drawn_figures import Drawn, assert_legible
from each import each
from matplotlib.axes import Axes
from matplotlib.colors import same_color
from matplotlib.patches import Rectangle

from trustlab.plots.points import against, over_columns
from trustlab.plots.style import FAMILY_COLOURS, GREY

NAMES = {"llama-3.1": "Llama-3.1", "gpt-4.1": "GPT-4.1", "ddxplus": "DDXPlus", "medqa": "MedQA"}
BAND = "null distribution, 95 %"
pytestmark = pytest.mark.usefixtures("house_style")


def pearsons() -> pd.DataFrame:
    rows = [
        (model, dataset, family, value)
        for model in ("llama-3.1", "gpt-4.1")
        for dataset, family, value in [
            ("medqa", "token", 0.5),
            ("medqa", "token", 0.6),
            ("ddxplus", "token", -0.2),
            ("ddxplus", "medconf", 0.97),
        ]
    ]
    table = pd.DataFrame(rows, columns=["model", "dataset", "family", "value"])
    return table.assign(chance_low=0.73, chance=0.93, chance_high=0.99)


def coefficients() -> pd.DataFrame:
    """Two that fit their value and two that do not, one of these of few cases."""
    rows = [
        ("verbalized", 0.623, 0.957, "CE, DDXPlus: Spearman 0.029", 30),
        ("token", 0.137, 0.052, "MSP, MediTOD: Pearson 0.807, $5", 9),
        ("token", 0.059, 0.059, "", 30),
        ("consistency", 0.704, 0.704, "", 30),
    ]
    return pd.DataFrame(rows, columns=["family", "printed", "recomputed", "told", "n_cases"])


def columns(table: pd.DataFrame) -> list[Axes]:
    return over_columns(table, "dataset", "value", "model", names=NAMES, band=BAND)


def scatter(table: pd.DataFrame) -> Axes:
    ax = against(table, "recomputed", "printed", "told", "fits its value")
    ax.set(xlabel="p recomputed", ylabel="p printed")
    return ax


@pytest.fixture(scope="module")
def made() -> Drawn:
    drawings = {
        "columns": lambda: columns(pearsons()),
        "against": lambda: scatter(coefficients()),
    }
    told = {"model": "Llama-3.1", "dataset": "DDXPlus", "counts": "4 printed coefficients"}
    return Drawn(drawings, **told, interval="")


def marks(ax: Axes, shape: str) -> list[tuple[float, float]]:
    """Where the axes hold marks of one shape."""
    lines = [line for line in ax.lines if line.get_marker() == shape]
    return [
        (float(np.ravel(line.get_xdata())[0]), float(np.ravel(line.get_ydata())[0]))
        for line in lines
    ]


def mark(ax: Axes, place: Sequence[float]):
    single = [line for line in ax.lines if len(np.asarray(line.get_xydata())) == 1]
    (found,) = [line for line in single if np.allclose(line.get_xydata(), place)]
    return found


@each("name", ["columns", "against"])
def test_no_text_is_clipped_or_overlaps(name: str, made: Drawn) -> None:
    assert_legible(made.figure(name))


def test_a_long_list_makes_the_figure_taller() -> None:
    many = pd.concat([coefficients()] * 13, ignore_index=True)
    ax = scatter(many.assign(recomputed=np.linspace(0, 1, len(many))))
    listed = [t.get_window_extent() for t in ax.texts if t.get_position()[0] == 30]
    tops = sorted((box.y0, box.y1) for box in listed)
    assert len(tops) == 26
    assert all(a[1] <= b[0] + 2 for a, b in zip(tops, tops[1:], strict=False))
    assert tops[0][0] >= ax.get_window_extent().y0


def test_every_mark_stands_over_its_column_in_its_family_s_look(made: Drawn) -> None:
    panels = made["columns"]
    assert [ax.get_title() for ax in panels] == ["Llama-3.1", "GPT-4.1"]
    for ax in panels:
        assert [t.get_text() for t in ax.get_xticklabels()] == ["DDXPlus", "MedQA"]
        places = marks(ax, "o") + marks(ax, "D")
        rounded = sorted((round(x), y) for x, y in places)
        assert rounded == [(0, -0.2), (0, 0.97), (1, 0.5), (1, 0.6)]
        assert len({x for x, _ in places}) == 4, "side by side"
        assert ax.get_ylim()[0] < -0.2, "a value below 0 is not cut off"
        (colour,) = {line.get_color() for line in ax.lines if line.get_marker() == "D"}
        assert same_color(colour, FAMILY_COLOURS["medconf"])


def test_the_band_and_its_median_stand_behind_and_are_named(made: Drawn) -> None:
    for ax in made["columns"]:
        (band,) = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
        assert (band.get_y(), band.get_y() + band.get_height()) == pytest.approx((0.73, 0.99))
        assert any(list(line.get_ydata()) == [0.93, 0.93] for line in ax.lines)
    said = [t.get_text().strip() for t in made["columns"][0].get_legend().get_texts()]
    assert said == ["token", "MedConf", BAND, "median"]


def test_rows_with_words_are_coloured_numbered_and_listed_the_others_grey(made: Drawn) -> None:
    ax = made["against"]
    assert same_color(mark(ax, (0.957, 0.623)).get_color(), FAMILY_COLOURS["verbalized"])
    assert same_color(mark(ax, (0.704, 0.704)).get_color(), GREY)
    texts = {t.get_text() for t in ax.texts}
    assert texts == {"1", "2", *coefficients()["told"][:2]}
    numbers = {t.get_text(): t.xy for t in ax.texts if t.xy in [(0.957, 0.623), (0.052, 0.137)]}
    assert numbers == {"1": (0.957, 0.623), "2": (0.052, 0.137)}
    said = [t.get_text() for t in ax.get_legend().get_texts()]
    assert said == ["token", "self-verbalised", "fits its value"]


def test_a_mark_of_few_cases_is_hollow(made: Drawn) -> None:
    ax = made["against"]
    assert same_color(mark(ax, (0.052, 0.137)).get_markerfacecolor(), "white")
    assert not same_color(mark(ax, (0.957, 0.623)).get_markerfacecolor(), "white")


def test_a_table_in_which_all_fit_is_drawn() -> None:
    ax = scatter(coefficients().assign(told=""))
    assert len(marks(ax, "o")) == 2 and not ax.texts


@each(
    ("draw", "said"),
    [
        (lambda: columns(pearsons().iloc[:0]), "no rows"),
        (lambda: columns(pearsons().drop(columns="chance")), "lacks the columns \\['chance'\\]"),
        (lambda: scatter(coefficients().assign(family="guess")), "'guess'"),
        (lambda: scatter(coefficients().drop(columns="told")), "lacks the columns \\['told'\\]"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, said) -> None:
    with pytest.raises(ValueError, match=said):
        draw()
