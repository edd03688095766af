"""The graders' figures from small made-up tables: what is drawn, in whose colour, legible."""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from drawn_figures import Drawn, assert_legible, seen
from each import each
from matplotlib.colors import same_color

from trustlab.plots import FAMILY_COLOURS, FAMILY_MARKERS
from trustlab.plots.grading import auroc_by_grader

FAMILIES = {
    "asp": "token",
    "poc": "consistency",
    "semantic_entropy": "consistency",
    "ce": "verbalized",
    "medconf": "medconf",
}
GRADERS = ("exact", "synonym", "encoder", "judge some-model")
KEY = {"model": "embedded", "dataset": "starter"}
WITHHELD = "fewer than 10 correct or wrong"
NAN = float("nan")
pytestmark = pytest.mark.usefixtures("house_style")


def by_grader() -> pd.DataFrame:
    rows = [
        {
            **KEY,
            "method": "",
            "grader": "exact",
            "metric": "accuracy",
            "level": "pooled",
            "value": 0.5,
            "missing": "",
        }
    ]
    for i, method in enumerate(FAMILIES):
        for k, grader in enumerate(GRADERS):
            value = NAN if (method, grader) == ("ce", "exact") else 0.9 - 0.08 * i + 0.01 * k
            row = {
                "method": method,
                "grader": grader,
                "metric": "auroc",
                "value": value,
                "low": value - 0.05,
                "high": value + 0.05,
            }
            why = WITHHELD if np.isnan(value) else ""
            rows += [
                {**KEY, **row, "level": level, "n": 360, "n_cases": 60, "missing": why}
                for level in ("pooled", "within")
            ]
    return pd.DataFrame(rows)


DRAWINGS = {"grader": lambda **o: auroc_by_grader(by_grader(), FAMILIES, **o)}
TABLES = {"grader": (auroc_by_grader, by_grader)}


@pytest.fixture(scope="module")
def drawn() -> Drawn:
    told = {"model": "embedded", "dataset": "starter", "n_cases": 60, "n_rows": 360}
    return Drawn(DRAWINGS, **told, note="band: middle 95 % of 20 repeats")


@each("name", DRAWINGS)
def test_no_text_is_clipped_or_overlaps(name: str, drawn: Drawn) -> None:
    assert_legible(drawn.figure(name))


def test_each_grader_has_a_dot_in_the_shape_and_colour_of_the_methods_family() -> None:
    ax = DRAWINGS["grader"](methods=["medconf", "poc"])
    dots = [line for line in ax.lines if line.get_marker() in FAMILY_MARKERS.values()]
    assert [line.get_marker() for line in dots] == [FAMILY_MARKERS["medconf"]] * 4 + [
        FAMILY_MARKERS["consistency"]
    ] * 4
    assert all(
        same_color(line.get_markeredgecolor(), FAMILY_COLOURS["medconf"]) for line in dots[:4]
    )
    assert [float(line.get_xdata()[0]) for line in dots[:4]] == pytest.approx(
        [0.58, 0.59, 0.6, 0.61]
    )
    assert [t.get_text() for t in ax.get_legend().get_texts()] == list(GRADERS)


def test_methods_stand_in_the_order_asked_for_with_their_names() -> None:
    ax = DRAWINGS["grader"](methods=["medconf", "asp"])
    assert [t.get_text() for t in ax.get_yticklabels()] == [
        "MedConf",
        "ASP",
    ] and ax.yaxis_inverted()


def test_every_interval_and_one_half_lie_inside_the_axes(drawn: Drawn) -> None:
    low, high = drawn["grader"].get_xlim()
    assert low < 0.5 and by_grader()["high"].max() < high <= 1.01


def test_a_grader_without_a_value_says_why(drawn: Drawn) -> None:
    assert f"exact: {WITHHELD}" in [t.get_text() for t in seen(drawn.figure("grader"))]


@each("name", DRAWINGS)
def test_axes_tell_the_quantity_and_the_level(name: str) -> None:
    for level, words in (
        ("within", "AUROC within level (mean over levels), 0 to 1"),
        ("pooled", "AUROC pooled over levels, 0 to 1"),
    ):
        ax = DRAWINGS[name](level=level)
        assert words in (ax.get_xlabel(), ax.get_ylabel())


@each("name", DRAWINGS)
def test_a_given_axes_is_drawn_on(name: str) -> None:
    ax = plt.figure().add_subplot()
    assert DRAWINGS[name](ax=ax) is ax


@each("name", DRAWINGS)
def test_what_cannot_be_drawn_is_refused(name: str) -> None:
    draw, table = TABLES[name]
    with pytest.raises(ValueError, match="level is '40'"):
        draw(table(), FAMILIES, level="40")
    with pytest.raises(ValueError, match="methods must be some of.*'best'"):
        draw(table(), FAMILIES, ["best"])
    with pytest.raises(ValueError, match="one model and data set"):
        draw(pd.concat([table(), table().assign(model="other")]), FAMILIES)
    with pytest.raises(ValueError, match="lacks the columns"):
        draw(table().drop(columns="low"), FAMILIES)
