"""Rows of marks with their intervals: what is drawn where, in what look, and legible."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from drawn_figures import Drawn, assert_legible
from each import each
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection

from trustlab.confidence import METHODS
from trustlab.plots.rows import Band, Line, Sure, by_value, rows
from trustlab.plots.style import FAMILY_COLOURS, FAMILY_MARKERS, FEW, INK, label

NAN = float("nan")
FAMILIES = {
    "asp": "token",
    "msp": "token",
    "poc": "consistency",
    "semantic_similarity_med": "consistency",
    "ce": "verbalized",
    "medconf": "medconf",
    "random": "baseline",
}
VALUES = {"ce": 0.62, "asp": 0.81, "semantic_similarity_med": NAN, "medconf": 0.74, "poc": 0.79}
GONE = "no confidence: no medical encoder is named, so that none of its vectors can be compared"
CHANCE = Line(0.5, "chance 0.50")
N = {"value": "{value:.2f}", "n": "{n:,.0f}"}
pytestmark = pytest.mark.usefixtures("house_style")


def made(**changes: Any) -> pd.DataFrame:
    """A line for each method, one of them without a value."""
    lines = [
        {"method": m, "value": v, "low": v - 0.1, "high": v + 0.08, "n": 1044, "n_cases": 174}
        | {"missing": GONE if np.isnan(v) else ""}
        for m, v in VALUES.items()
    ]
    return pd.DataFrame(lines).assign(**changes)


def several(column: str, *parts: tuple[str, dict[str, Any]]) -> pd.DataFrame:
    """:func:`made` once for each part, which ``column`` names."""
    return pd.concat([made(**{column: name}, **changes) for name, changes in parts])


def two_levels() -> pd.DataFrame:
    lower = made()["value"] - 0.15
    return several("level", ("pooled", {}), ("within", {"value": lower, "low": lower - 0.1}))


def told() -> pd.DataFrame:
    """Two marks a row, and the answers themselves in a row without a method."""
    both = several("told", ("one", {"n": 72}), ("two", {"value": made()["value"] + 0.05}))
    answers = both[both["method"].eq("poc")].assign(method="", n_cases=9, low=NAN, high=NAN)
    return pd.concat([answers, both]).assign(
        moved=lambda t: t["method"].eq("ce") & t["told"].eq("two")
    )


def teams() -> pd.DataFrame:
    """Marks without a method: four series in a row, in two panels and two groups."""
    lines = [
        {"formulation": f, "part": part, "metric": m, "team": team, "value": 40 + 7 * k}
        | {"low": 30 + 7 * k, "high": 50 + 7 * k, "n": 20, "n_cases": 20, "missing": ""}
        for f in ("trust-x", "medguard-x")
        for part, m in (("What it thinks", "cdr"), ("What it does", "osi"))
        for k, team in enumerate(("one doctor", "panel of 3", "one doctor, off", "panel of 3, off"))
        if m == "osi" or k < 2
    ]
    return pd.DataFrame(lines)


def over_levels() -> pd.DataFrame:
    band = {"chance_low": 0.7, "chance_high": 0.99, "chance": 0.9}
    other = {"chance_low": 1.0, "chance_high": 1.0, "chance": 1.0}
    return several("metric", ("pearson", band), ("spearman", other))


def every() -> pd.DataFrame:
    """All methods that have a name, the more the longer a figure is."""
    known = [name for name in METHODS if name not in ("agreement", "rdc")]
    values = np.linspace(0.95, 0.4, len(known))
    table = pd.DataFrame({"method": known, "value": values, "low": values - 0.1, "high": values})
    return table.assign(n=12345, n_cases=24, missing="", cost=np.arange(len(known)) // 15)


DRAWINGS = {
    "plain": lambda: rows(
        made(), FAMILIES, order=by_value(made()), columns=N, lines=[CHANCE], xlabel="AUROC, 0 to 1"
    ),
    "panels": lambda: rows(
        two_levels(), FAMILIES, panels="level", ghost="pooled", columns=N, lines=[CHANCE],
        names={"pooled": "Pooled", "within": "Level-stratified"}, xlabel="AUROC, 0 to 1",
    ),
    "dodged": lambda: rows(
        told(), FAMILIES, series="told", pale=["one"], names={"": "Accuracy", "one": "one patient"},
        unit=100, limits=(0, 100), columns=N, xlabel="percent",
        sure=Sure("moved", "paired difference other than 0"),
    ),
    "two methods": lambda: rows(
        made(variant=["without a part", "without a part", "b", "c", "c"]), FAMILIES, row="variant",
        series="method", pale=["asp"], columns={"n": "{n}"}, xlabel="difference",
    ),
    "teams": lambda: rows(
        teams(), row="metric", series="team", panels="formulation", groups="part",
        columns={"n": "{n}"}, pale=["one doctor, off", "panel of 3, off"], names={"osi": "OSI"},
        limits=(0, 100), xlabel="percent",
    ),
    "band": lambda: rows(
        over_levels(), FAMILIES, panels="metric", stretched=["pearson"],
        limits={"spearman": (-1, 1)},
        band=Band("null distribution of two monotone series, 95 %", middle="chance"), columns=N,
        lines=[Line(x, "5 % of unordered series", "spearman", dotted=True) for x in (-0.89, 0.89)],
        xlabel={"pearson": "Pearson's r, axis stretched towards 1", "spearman": "Spearman's rho"},
    ),
    "all methods": lambda: rows(
        every(), dict.fromkeys(METHODS, "token"), groups="cost",
        columns=N | {"sample size for\n80 % power": "{n:,}"},
        names={"0": "The answer alone", "1": "Samples", "2": "The answer and evidence"},
        xlabel="level-stratified AUROC, 0 to 1",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def drawn() -> Iterator[Drawn]:
    facts = {"model": "embedded", "dataset": "starter", "n_cases": 24, "n_rows": 144}
    yield Drawn(DRAWINGS, **facts)
    plt.close("all")


def marks(ax: Axes) -> dict[float, list[Any]]:
    """The marks of each height, from the left, ghosts left out."""
    found: dict[float, list[Any]] = {}
    lines: list[Any] = [line for line in ax.lines if line.get_zorder() == 4]
    for line in lines:
        found.setdefault(round(float(line.get_ydata()[0]), 6), []).append(line)
    return found


def places(ax: Axes) -> dict[str, float]:
    """Where the row of each name stands."""
    ticks = zip(ax.get_yticklabels(), ax.get_yticks(), strict=True)
    return {text.get_text(): round(float(y), 6) for text, y in ticks}


def words(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


def legend_words(ax: Axes) -> list[str]:
    found: list[Any] = [child for child in ax.get_children() if type(child).__name__ == "Legend"]
    return [text.get_text() for legend in found for text in legend.get_texts()]


def intervals(ax: Axes) -> set[tuple[float, ...]]:
    """Every interval as (height, low, high)."""
    lines: list[Any] = [c for c in ax.collections if c.get_zorder() == 3]
    ends = [segment for c in lines for segment in c.get_segments()]
    return {tuple(np.round([y, x0, x1], 6)) for (x0, y), (x1, _) in ends}


@each("name", DRAWINGS)
def test_no_text_is_clipped_or_overlaps(name: str, drawn: Drawn) -> None:
    assert_legible(drawn.figure(name))


def test_marks_and_intervals_stand_where_the_table_says_in_the_look_of_their_family(drawn) -> None:
    (ax,) = drawn.axes("plain")
    at = places(ax)
    assert list(at) == ["ASP", "PoC", "MedConf", "CE", "Semantic similarity (medical)"]
    assert list(at.values()) == sorted(at.values()), "the first row on top"
    assert ax.get_ylim()[0] > ax.get_ylim()[1]
    for method, value in VALUES.items():
        y = at[label(method)]
        if np.isnan(value):
            assert y not in marks(ax)
            continue
        (mark,) = marks(ax)[y]
        family = FAMILIES[method]
        assert mark.get_xdata()[0] == value
        assert (mark.get_color(), mark.get_marker()) == (
            FAMILY_COLOURS[family],
            FAMILY_MARKERS[family],
        )
        assert (y, round(value - 0.1, 6), round(value + 0.08, 6)) in intervals(ax)
    assert legend_words(ax) == ["token", "consistency", "self-verbalised", "MedConf"]


def test_a_row_without_a_value_says_why_and_has_a_grey_name(drawn) -> None:
    (ax,) = drawn.axes("plain")
    (why,) = [text for text in ax.texts if text.get_text().startswith("missing: no medical")]
    assert why.xy[1] == pytest.approx(places(ax)["Semantic similarity (medical)"])
    grey = {t.get_text(): t.get_color() != INK for t in ax.get_yticklabels()}
    assert [name for name, is_grey in grey.items() if is_grey] == ["Semantic similarity (medical)"]
    few = made(missing="fewer than 10 correct or wrong", value=NAN, low=NAN, high=NAN)
    assert "withheld: fewer than 10 correct or wrong" in words(rows(few, FAMILIES)[0])
    assert "missing: no reason given" in words(rows(few.assign(missing=NAN), FAMILIES)[0])
    assert rows(few, FAMILIES)[0].get_xlim()[1] > 1, "an empty axis is one of 0 to 1"


def test_columns_hold_what_they_are_told_and_nothing_for_what_is_missing(drawn) -> None:
    (ax,) = drawn.axes("plain")
    assert {"value", "n", "0.81", "1,044", "chance 0.50"} <= set(words(ax))
    assert not [text for text in words(ax) if "nan" in text]
    signed = {"change": "{value:+.0f}", "share": "{value:.0%}"}
    changes = made(value=[0.2, -0.3, NAN, 3, -4])
    told = words(rows(changes, FAMILIES, columns=signed)[0])
    assert told.count("0") == 2 and {"+3", "−4", "300 %", "−400 %"} <= set(told)


def test_a_mark_of_fewer_than_ten_cases_is_hollow_and_the_caption_says_so(drawn) -> None:
    (ax,) = drawn.axes("dodged")
    hollow = [m for row in marks(ax).values() for m in row if m.get_markerfacecolor() == "white"]
    assert len(hollow) == 2 and {m.get_label() for m in hollow} == {FEW}
    assert "hollow: fewer than 12 cases" in drawn.notes["dodged"].get_text().replace("\n", " ")


def test_the_highest_stand_first_and_what_is_missing_last() -> None:
    highest = by_value(made())
    assert highest == ["asp", "poc", "medconf", "ce", "semantic_similarity_med"]
    assert by_value(made(), rising=True) == [*highest[3::-1], highest[4]]
    tied = made(value=1.0)
    assert by_value(tied) == sorted(VALUES), "ties by name"
    assert by_value(made(difference=lambda t: -t["value"]), "difference")[0] == "ce"


def test_a_band_stands_behind_each_row_that_has_one(drawn) -> None:
    left, right = drawn.axes("band")
    bands = [
        c.get_paths()[0].get_extents() for c in left.collections if isinstance(c, PolyCollection)
    ]
    assert {(round(b.x0, 3), round(b.x1, 3)) for b in bands} == {(0.7, 0.99)}
    rows_at = {y for name, y in places(left).items()}
    assert {round((b.y0 + b.y1) / 2, 6) for b in bands} == rows_at
    assert left.get_xscale() == "function" and left.get_xlim()[1] < 1
    assert right.get_xlim()[0] < -1 < 1 < right.get_xlim()[1]
    dotted = [line for line in right.lines if line.get_linestyle() == ":"]
    assert [line.get_xdata()[0] for line in dotted] == [-0.89, 0.89]
    assert not [line for line in left.lines if line.get_linestyle() == ":"]
    assert legend_words(left)[-3:] == [
        "null distribution of two monotone series, 95 %",
        "its median",
        "5 % of unordered series",
    ]


@each("changes, message", [
    ({"row": "condition"}, "lacks the columns .'condition'"),
    ({"x": "difference"}, "lacks the columns .'difference'"),
    ({"band": Band("chance")}, "chance_low"),
    ({"panels": "level", "ghost": "at 100"}, "a panel names .'at 100'"),
    ({"panels": "level", "lines": [Line(0, panel="pool")]}, "a panel names .'pool'"),
    ({"order": ["poc", "entropy"]}, "order names .'entropy'"),
    ({"pale": ["two"]}, "pale names .'two'"),
    ({"families": FAMILIES | {"poc": "sampling"}}, "'sampling' for method 'poc'"),
    ({"table": made()[:0]}, "nothing to draw"),
    ({"table": pd.concat([made(), made()])}, "a mark has several lines"),
])  # fmt: skip
def test_what_cannot_be_drawn_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rows(**({"table": made(level="pooled"), "families": FAMILIES} | changes))


def test_the_table_is_not_changed() -> None:
    table = told()
    before = table.copy()
    rows(table, FAMILIES, series="told", unit=100)
    pd.testing.assert_frame_equal(table, before)
