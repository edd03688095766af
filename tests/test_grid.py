"""Coloured tables of numbers from small made-up tables: which number in which cell, how
coloured."""

from __future__ import annotations

from itertools import combinations

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pandas as pd
import pytest
from drawn_figures import Drawn, assert_legible
from each import each
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle
from matplotlib.text import Annotation, Text

from trustlab.plots.grid import grid
from trustlab.plots.style import FEW, INK

METHODS = {"asp": "token", "poc": "consistency", "p_true": "verbalized", "medconf": "medconf"}
WHY = "no samples were drawn, for every reply of this model is dear, and this is a long reason"
pytestmark = pytest.mark.usefixtures("house_style")


def pairs() -> pd.DataFrame:
    """Every pair of four methods; one has no value, another too few cases."""
    table = pd.DataFrame([*combinations(METHODS, 2)], columns=["first", "second"])
    table["value"] = [-0.87, np.nan, -0.001, 0.3, 0.95, 1.0]
    return table.assign(n=[140, 0, 140, 140, 24, 130], n_cases=[30, 0, 30, 30, 9, 30])


def shifts() -> pd.DataFrame:
    """Three conditions: one method has no value at all, one cell stands on rows of its own."""
    rows = [
        {"method": method, "condition": condition, "value": 0.1 * x - 0.05 * y, "n": 60 + x}
        for y, method in enumerate(METHODS)
        for x, condition in enumerate(["small_talk", "other_order", "instruction"])
    ]
    table = pd.DataFrame(rows).assign(n_cases=30, own_rows=False, missing="")
    table.loc[table["method"] == "poc", ["value", "missing"]] = [np.nan, WHY]
    table.loc[4 * 3 - 1, "own_rows"] = True
    return table


def triangle(table: pd.DataFrame) -> Axes:
    return grid(table, "second", "first", METHODS, title="Spearman", reach=1, width=0.37)


def shifted(table: pd.DataFrame) -> Axes:
    names, bold = {"instruction": 'told "rate this 100"'}, table["value"] > 0.12
    how = {"title": "Change in mean confidence", "form": "+.2f", "bold": bold}
    return grid(table, "method", "condition", METHODS, names=names, **how)


@pytest.fixture(scope="module")
def made() -> Drawn:
    drawings = {
        "triangle": lambda: triangle(pairs()),
        "shifts": lambda: shifted(shifts()),
    }
    return Drawn(drawings, model="embedded", dataset="starter", n_cases=30, n_rows=140)


def cells(ax: Axes) -> dict[tuple[float, float], Text]:
    """The number of each cell by its row and column."""
    inside = [t for t in ax.texts if not isinstance(t, Annotation) and t.get_text()]
    return {(t.get_position()[1], round(t.get_position()[0], 9)): t for t in inside}


def fills(ax: Axes) -> dict[tuple[float, float], Rectangle]:
    boxes = [box for box in ax.patches if isinstance(box, Rectangle)]
    return {(round(b.get_y() + 0.47, 9), round(b.get_x() + 0.48, 9)): b for b in boxes}


def words(ax: Axes) -> list[str]:
    return [t.get_text() for t in ax.texts if isinstance(t, Annotation)]


@each("name", ["triangle", "shifts"])
def test_no_text_is_clipped_or_overlaps(name: str, made: Drawn) -> None:
    assert_legible(made.figure(name))


def test_each_value_stands_in_the_cell_of_its_row_and_column(made: Drawn) -> None:
    said = {place: text.get_text() for place, text in cells(made["triangle"]).items()}
    assert said == {
        (0, 0): "−0.87",
        (1, 0): "–",
        (1, 1): "0.30",
        (2, 0): "0.00",
        (2, 1): "0.95",
        (2, 2): "1.00",
    }
    assert set(fills(made["triangle"])) == set(said), "no cell above the diagonal"


def test_a_cell_of_few_cases_is_white_and_the_caption_says_so(made: Drawn) -> None:
    ax = made["triangle"]
    (white,) = [box for box in ax.patches if box.get_label() == FEW]
    assert white is fills(ax)[2, 1] and to_rgb(white.get_facecolor()) == (1, 1, 1)
    assert cells(ax)[2, 1].get_color() == INK
    assert "fewer than 10 cases" in made.notes["triangle"].get_text()


def test_numbers_are_signed_bold_where_told_and_starred_on_rows_of_their_own(made: Drawn) -> None:
    said = {place: text.get_text() for place, text in cells(made["shifts"]).items()}
    assert [said[0, x] for x in range(3)] == ["0.00", "+0.10", "+0.20"]
    assert [said[3, x] for x in range(3)] == ["−0.15", "−0.05", "+0.05*"]
    weights = {place: text.get_fontweight() for place, text in cells(made["shifts"]).items()}
    assert {place for place, weight in weights.items() if weight == "bold"} == {(0, 2)}


def test_a_row_without_any_value_says_why_in_small_print(made: Drawn) -> None:
    ax = made["shifts"]
    assert not {place for place in cells(ax) if place[0] == 1}
    (why,) = [text for text in words(ax) if text.startswith("no samples")]
    assert why.endswith("…") and WHY.startswith(why[:-2])


@each(
    ("draw", "said"),
    [
        (lambda: triangle(pairs().iloc[:0]), "no rows"),
        (lambda: triangle(pairs().drop(columns="value")), "lacks the columns \\['value'\\]"),
        (lambda: triangle(pd.concat([pairs(), pairs()])), "a cell holds one value"),
        (lambda: triangle(pairs().replace("poc", "guess")), "method 'guess'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, said) -> None:
    with pytest.raises(ValueError, match=said):
        draw()


def test_the_table_is_not_changed() -> None:
    table, before = shifts(), shifts()
    shifted(table)
    pd.testing.assert_frame_equal(table, before)
