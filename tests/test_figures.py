"""Figures from small made-up tables: what stands where, told, and refused."""

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
from matplotlib.colors import to_rgb, to_rgba

from trustlab.reports.plots import (
    Band,
    Line,
    auroc_rows,
    by_value,
    curves,
    grid,
    in_percent,
    intervals,
    reliability,
    winners,
)
from trustlab.reports.plots.simplex import HEIGHT, WEIGHTS
from trustlab.reports.plots.style import FAMILY_COLOURS, FAMILY_MARKERS, FEW, INK, label
from trustlab.runs.formatted import pivoted

NAN = float("nan")
FAMILIES = {
    "asp": "token",
    "msp": "token",
    "poc": "consistency",
    "semantic_similarity_med": "consistency",
    "ce": "verbalized",
    "medconf": "medconf",
}
LEVELS = (1, 20, 40, 60, 80, 100)
LINES = ("asp", "msp", "poc", "ce", "medconf")
pytestmark = pytest.mark.usefixtures("house_style")


# Lines


def by_level(names=LINES, **more) -> pd.DataFrame:
    """A rising line a method, an accuracy ("") with few cases at the first level."""
    told = [
        {"method": name, "level": level, "value": 0.1 * k + 0.09 * i, "n": 24, "n_cases": 24}
        for k, name in enumerate(["", *names])
        for i, level in enumerate(LEVELS)
    ]
    table = pd.DataFrame(told).assign(**{"model": "m", "dataset": "d", "missing": "", **more})
    table = table.assign(low=table["value"] - 0.05, high=table["value"] + 0.05)
    few = table["method"].eq("") & table["level"].eq(1)
    table.loc[few, ["n", "n_cases", "low", "high"]] = [4, 4, NAN, NAN]
    table["family"] = table["method"].map(FAMILIES)
    return in_percent(table).replace({"method": {"": "Accuracy"}})


def one_case() -> pd.DataFrame:
    table = by_level().query("method != 'Accuracy'").drop(columns=["low", "high", "n_cases"])
    return table.assign(n=1, correct=[0, 0, 0, 1, 1, NAN] * len(LINES))


def gaps() -> pd.DataFrame:
    table = by_level(("asp", "poc"))
    gone = table["method"].eq("asp") & table["level"].isin([20, 60])
    table.loc[gone, ["value", "low", "high"]] = NAN
    table.loc[gone, "missing"] = "unreadable answer"
    return table


# Rows

VALUES = {"ce": 0.62, "asp": 0.81, "semantic_similarity_med": NAN, "medconf": 0.74, "poc": 0.79}
GONE = "no confidence: no medical encoder is named, so that none of its vectors can be compared"


def made(**changes: Any) -> pd.DataFrame:
    """A line for each method, one of them without a value."""
    lines = [
        {"method": m, "value": v, "low": v - 0.1, "high": v + 0.08, "n": 1044, "n_cases": 174}
        | {"missing": GONE if np.isnan(v) else ""}
        for m, v in VALUES.items()
    ]
    return pd.DataFrame(lines).assign(**changes)


def dodged() -> pd.DataFrame:
    """Two marks a row, in one row one of them missing, and the answers themselves, of few cases."""
    one, two = made(told="one", n=72), made(told="two", value=made()["value"] + 0.05)
    two.loc[two["method"].eq("ce"), ["value", "low", "high"]] = NAN
    two.loc[two["method"].eq("ce"), "missing"] = "copies are not samples"
    both = pd.concat([one, two])
    answers = both[both["method"].eq("poc")]
    answers = answers.assign(method="Accuracy", n_cases=9, low=NAN, high=NAN)
    return pd.concat([answers, both])


def over_levels() -> pd.DataFrame:
    ends = {"chance_low": 0.7, "chance_high": 0.99, "chance": 0.9}
    same = dict.fromkeys(ends, 1.0)
    return pd.concat([made(metric="pearson", **ends), made(metric="spearman", **same)])


# Triangles

CORNERS = {"w_accuracy": (0.5, HEIGHT), "w_agreement": (0, 0), "w_rdc": (1, 0)}
WHY = "RDC is missing: no medical encoder is named"


def sweep(steps: int = 8) -> pd.DataFrame:
    """Two models on two data sets; one has too few cases, one lacks a part of the index."""
    grid = [(i / steps, j / steps) for i in range(steps + 1) for j in range(steps + 1 - i)]
    weights = pd.DataFrame([(*w, 1 - sum(w)) for w in grid], columns=WEIGHTS)
    won = np.where(weights["w_rdc"] > 0.5, "panel of 3", "one doctor")
    won = np.where(weights["w_accuracy"] == 1, "tie", won)
    whole = weights.assign(winner=won, n_cases=20, missing="")
    parts = {
        ("m", "starter"): whole,
        ("m", "starter-dialogue"): whole.assign(n_cases=9),
        ("n", "starter"): whole.assign(winner="", missing=WHY),
        ("n", "starter-dialogue"): whole.assign(winner="panel of 5, reviewed"),
    }
    both = [part.assign(model=model, dataset=dataset) for (model, dataset), part in parts.items()]
    return pd.concat(both, ignore_index=True)


def cells() -> pd.DataFrame:
    """Two methods and two models on two data sets; one model has no value of one method."""
    lines = []
    for k, (dataset, model) in enumerate([("d", "a"), ("d", "b"), ("e", "a"), ("e", "b")]):
        for method, own_rows in (("ce", False), ("asp", model == "a")):
            line = {"dataset": dataset, "model": model, "method": method, "own_rows": own_rows}
            line |= {"value": 0.6 + 0.1 * k, "chance": 0.5, "n": 100 + k}
            line["value"] = NAN if (method, model) == ("asp", "b") else line["value"]
            lines.append(line)
    return pd.DataFrame(lines)


def groups(models=("m",)) -> pd.DataFrame:
    """Groups of answers of one method, and the rising curve without groups."""
    lines = []
    for k, model in enumerate(models):
        for number, at in enumerate([0.2, 0.5, 0.9, 0.3, 0.8]):
            value = at - 0.1 * k
            line = {"model": model, "method": "ce", "bin": number if number < 3 else NAN}
            line |= {"confidence": at, "value": value, "low": value - 0.05, "high": value + 0.05}
            lines.append(line | {"n": 30, "n_cases": 30, "missing": ""})
    return pd.DataFrame(lines)


def accuracies(**changes: Any) -> list[Axes]:
    drawn = {"table": by_level(), "bars": ["Accuracy"], "families": FAMILIES} | changes
    return curves(**drawn)


N = {"value": "{value:.2f}", "n": "{n:,.0f}"}
UNORDERED = [Line(x, "5 % of unordered series", "spearman", dotted=True) for x in (-0.89, 0.89)]
DRAWINGS = {
    "one panel": accuracies,
    "families": lambda: accuracies(panels="family"),
    "one case": lambda: curves(one_case(), panels="family", filled="correct", families=FAMILIES),
    "gaps": lambda: accuracies(table=gaps()),
    "rows": lambda: intervals(
        made(),
        order=by_value(made()),
        columns=N,
        lines=[Line(0.5, "chance 0.50")],
        families=FAMILIES,
    ),
    "dodged": lambda: intervals(dodged(), series="told"),
    "band": lambda: intervals(
        over_levels(),
        panels="metric",
        columns=N,
        lines=[Band("null distribution", middle="chance"), *UNORDERED],
        xlabel={"pearson": "Pearson's r", "spearman": "Spearman's rho"},
        families=FAMILIES,
    ),
    "edge": lambda: intervals(
        over_levels(),
        panels="metric",
        columns=N,
        lines=[Line(0.5, "chance 0.50")],
        families=FAMILIES,
    ),
    "grid": lambda: grid(cells(), families=FAMILIES),
    "one model": lambda: reliability(groups(), families=FAMILIES),
    "models": lambda: reliability(groups(("m", "n")), families=FAMILIES),
    "weights": lambda: winners(sweep()),
}


@pytest.fixture(scope="module")
def drawn() -> Iterator[Drawn]:
    yield Drawn(DRAWINGS, model="embedded", dataset="starter", n_cases=24, n_rows=144)
    plt.close("all")


def lines_of(ax: Axes, colour: object) -> list[Any]:
    """The drawn lines of a colour that join something."""
    joined = [line for line in ax.lines if line.get_linestyle() != "None"]
    return [line for line in joined if to_rgb(line.get_color()) == to_rgb(colour)]


def marks(ax: Axes) -> dict[float, list[Any]]:
    """The marks of each row, by height."""
    found: dict[float, list[Any]] = {}
    for line in [line for line in ax.lines if line.get_zorder() == 4]:
        y: Any = line.get_ydata()
        found.setdefault(round(float(y[0]), 6), []).append(line)
    return found


def places(ax: Axes) -> dict[str, float]:
    """Where the row of each name stands."""
    ticks = zip(ax.get_yticklabels(), ax.get_yticks(), strict=True)
    return {text.get_text(): round(float(y), 6) for text, y in ticks}


def words(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


@each("name", [name for name in DRAWINGS if name not in ("one panel", "rows")])
def test_no_text_is_clipped_or_overlaps(name: str, drawn: Drawn) -> None:
    assert_legible(drawn.figure(name))


def test_a_line_stands_where_the_table_says_with_the_look_of_its_family(drawn: Drawn) -> None:
    ax = drawn.axes("one panel")[0]
    table = by_level()
    asp, msp = lines_of(ax, FAMILY_COLOURS["token"])
    for line, name in ((asp, "asp"), (msp, "msp")):
        mine = table[table["method"].eq(name)]
        np.testing.assert_allclose(line.get_xdata(), mine["level"])
        np.testing.assert_allclose(line.get_ydata(), mine["value"])
    assert asp.get_linestyle() != msp.get_linestyle()
    (hollow,) = [line for line in ax.lines if line.get_label() == FEW]  # fewer than twelve cases
    assert tuple(np.ravel(hollow.get_xydata())) == (1, 0)
    assert ax.get_xticklabels()[0].get_text() == "1\nn 4" and ax.get_title(loc="right") == "n 24"
    assert "hollow" in drawn.notes["one panel"].get_text()


def test_a_mark_is_filled_where_the_answer_is_right_and_crossed_where_nobody_judged(drawn) -> None:
    (of_poc,) = [ax for ax in drawn.axes("one case") if "onsistency" in ax.get_title(loc="left")]
    alone = [line for line in of_poc.lines if line.get_linestyle() == "None"]
    (filled,) = [m for m in alone if to_rgb(m.get_markerfacecolor()) == to_rgb("#E69F00")]
    (hollow,) = [m for m in alone if m.get_markerfacecolor() == "white"]
    (crossed,) = [m for m in alone if m.get_marker() == "x"]
    at = [list(m.get_xdata()) for m in (filled, hollow, crossed)]
    assert at == [[60, 80], [1, 20, 40], [100]]


def test_a_missing_value_is_a_gap_whose_reason_is_told(drawn: Drawn) -> None:
    ax = drawn.axes("gaps")[0]
    (asp,) = lines_of(ax, FAMILY_COLOURS["token"])
    gone = [False, True, False, True, False, False]
    np.testing.assert_array_equal(np.isnan(asp.get_ydata()), gone)
    told = [text.get_text() for text in drawn.figure("gaps").texts]
    assert told[0] == "No value: ASP at 20, 60 (unreadable answer)"
    table = by_level(("asp",), n_cases=60).query("method == 'asp'")
    dense = pd.concat(
        [table.assign(level=table["level"] + k) for k in (0, 0.1, 0.2)], ignore_index=True
    )
    dense.loc[dense["level"].isin([20, 20.2]), "value"] = NAN
    (ax,) = curves(dense, families=FAMILIES)  # marks only where a point stands alone
    alone = [m for m in ax.lines if m.get_marker() == FAMILY_MARKERS["token"]]
    assert [np.ravel(m.get_xdata()).tolist() for m in alone] == [[20.1]]


def test_marks_and_intervals_stand_where_the_table_says_and_what_is_missing_says_why(drawn) -> None:
    (ax,) = drawn.axes("rows")
    at = places(ax)
    assert list(at) == ["ASP", "PoC", "MedConf", "CE", "Semantic similarity (medical)"]
    assert list(at.values()) == sorted(at.values()) and ax.get_ylim()[0] > ax.get_ylim()[1]
    bars: list[Any] = [c for c in ax.collections if c.get_zorder() == 3]
    ends = [tuple(np.round([*s[:, 0], s[0, 1]], 6)) for c in bars for s in c.get_segments()]
    for method, value in VALUES.items():
        y = at[label(method)]
        if np.isnan(value):
            assert y not in marks(ax)
            continue
        (mark,) = marks(ax)[y]
        look = FAMILY_COLOURS[FAMILIES[method]], FAMILY_MARKERS[FAMILIES[method]]
        assert mark.get_xdata()[0] == value and (mark.get_color(), mark.get_marker()) == look
        assert (round(value - 0.1, 6), round(value + 0.08, 6), y) in ends
    (why,) = [text for text in ax.texts if text.get_text().startswith("missing: no medical")]
    assert why.xy[1] == pytest.approx(at["Semantic similarity (medical)"])
    assert {"value", "n", "0.81", "1,044", "chance 0.50"} <= set(words(ax))
    assert not [text for text in words(ax) if "nan" in text]
    few = made(missing="fewer than 10 correct or wrong", value=NAN, low=NAN, high=NAN)
    assert "withheld: fewer than 10 correct or wrong" in words(intervals(few)[0])


def test_marks_below_twelve_cases_are_hollow_and_what_has_no_room_is_named_below(drawn) -> None:
    (ax,) = drawn.axes("dodged")
    every = [mark for row in marks(ax).values() for mark in row]
    hollow = [mark for mark in every if mark.get_markerfacecolor() == "white"]
    assert len(hollow) == 2 and {mark.get_label() for mark in hollow} == {FEW}
    middle = places(ax)["PoC"]
    first, second = (marks(ax)[y] for y in sorted(marks(ax)) if abs(y - middle) < 0.1)
    assert first[0].get_color() == INK != second[0].get_color()
    below = [text.get_text() for text in drawn.figure("dodged").texts]
    assert below[0] == "No value: CE of two (copies are not samples)"
    assert [text for text in words(ax) if text.startswith("missing: no medical")]


def test_a_cell_has_its_value_and_the_distance_from_chance_as_colour(drawn: Drawn) -> None:
    (ax,) = drawn.axes("grid")
    mesh: Any = ax.collections[0]
    above = np.ma.filled(mesh.get_array().astype(float), NAN)
    np.testing.assert_allclose(above, [[0.1, NAN, 0.3, NAN], [0.1, 0.2, 0.3, 0.4]])
    texts = words(ax)
    assert {"0.60*", "0.80*", "0.70", "0.50", "101", "self-verbalised"} <= set(texts)
    assert not [text for text in texts if "nan" in text]
    assert list(places(ax)) == ["ASP", "CE"]


def test_reliability_is_in_percent_beside_the_diagonal(drawn: Drawn) -> None:
    (ax,) = drawn.axes("one model")
    at = [tuple(np.ravel(line.get_xydata()).round(6)) for line in ax.lines]
    assert (30, 30, 80, 80) in at  # the curve, joined; its groups are not
    joined = [line for line in ax.lines if line.get_linestyle() not in ("None", "--")]
    assert all(len(line.get_xdata()) < 3 for line in joined) and (50.0, 50.0) in at
    diagonal = [line for line in ax.lines if getattr(line, "_slope", None) == 1]
    assert len(diagonal) == 1
    (several,) = drawn.axes("models")
    legend: Any = several.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["m", "n", "confidence = accuracy"]


def test_a_band_stands_behind_each_row_that_has_one(drawn: Drawn) -> None:
    left, right = drawn.axes("band")
    grey: list[Any] = [c for c in left.collections if isinstance(c, PolyCollection)]
    bands = [c.get_paths()[0].get_extents() for c in grey]
    assert {(round(b.x0, 3), round(b.x1, 3)) for b in bands} == {(0.7, 0.99)}
    assert {round((b.y0 + b.y1) / 2, 6) for b in bands} == {*places(left).values()}
    dotted = [[ln for ln in ax.lines if ln.get_linestyle() == ":"] for ax in (left, right)]
    assert not dotted[0] and [line.get_xdata()[0] for line in dotted[1]] == [-0.89, 0.89]


def test_a_line_at_the_left_edge_is_named_clear_of_the_column_beside_it(drawn: Drawn) -> None:
    left, right = drawn.axes("edge")
    drawn.figure("edge").draw_without_rendering()
    (heading,) = [text for text in left.texts if text.get_text() == "n"]
    (name,) = [text for text in right.texts if text.get_text() == "chance 0.50"]
    assert name.get_window_extent().x0 - heading.get_window_extent().x1 > 5


def colour_at(ax: Axes, place: tuple[float, float]) -> tuple[float, ...]:
    found: list[Any] = [
        collection.get_facecolor()[0]
        for collection in ax.collections
        if any(np.allclose(p, place) for p in np.asarray(collection.get_offsets()))
    ]
    (colour,) = found
    return tuple(colour)


def test_a_weighting_lies_at_the_corner_of_its_part_and_few_cases_are_hollow(drawn: Drawn) -> None:
    first, few, none, _ = drawn["weights"]
    assert colour_at(first, CORNERS["w_agreement"]) == to_rgba(INK)
    assert colour_at(first, CORNERS["w_rdc"]) == to_rgba(FAMILY_COLOURS["trust"])
    (star,) = [line for line in first.lines if line.get_marker() == "*"]
    assert np.ravel(star.get_xydata()) == pytest.approx([0.3 + 0.4 / 2, 0.4 * HEIGHT])
    assert {c.get_label() for c in few.collections} == {FEW}
    assert WHY in [text.replace("\n", " ") for text in words(none)]


def line(**changes: Any) -> Any:
    return lambda: accuracies(**changes)


def row(**changes: Any) -> Any:
    drawn = {"table": made(level="pooled"), "families": FAMILIES} | changes
    return lambda: intervals(**drawn)


REFUSED = [
    (line(table=by_level().drop(columns="n_cases")), "lacks the columns"),
    (line(table=by_level().iloc[:0]), "the table has no rows"),
    (line(table=pd.concat([by_level(), by_level(model="other")])), "one figure shows one model"),
    (line(table=pd.concat([by_level(), by_level()])), "two rows at the same"),
    (line(table=by_level().replace("asp", "pmi")), "families gives None for method 'pmi'"),
    (line(bars=["pmi"]), "no method"),
    (row(by="condition"), "lacks the columns .'condition'"),
    (row(lines=[Line(0, panel="at 100")]), "a panel names .'at 100'"),
    (row(order=["poc", "entropy"]), "order names .'entropy'"),
    (row(families=FAMILIES | {"poc": "sampling"}), "'sampling' for method 'poc'"),
    (row(table=made()[:0]), "nothing to draw"),
    (row(table=pd.concat([made(), made()])), "a mark has several lines"),
    (lambda: auroc_rows(made(level="within"), FAMILIES), "'pooled'; the table's are within"),
    (row(table=dodged(), series="told"), "colours mean families or series"),
    (lambda: grid(pd.concat([cells(), cells()])), "a cell has several rows"),
    (lambda: grid(cells().drop(columns="chance")), "lacks the columns .'chance'"),
    (lambda: grid(cells()[:0]), "the table has no rows"),
    (lambda: reliability(groups().drop(columns="bin")), "lacks the columns .'bin'"),
    (lambda: winners(sweep().iloc[:0]), "needs rows"),
    (lambda: winners(sweep().drop(columns="winner")), "lacks the columns .'winner'"),
]


@each("call, message", REFUSED, ids=[message for _, message in REFUSED])
def test_what_cannot_be_drawn_is_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_a_method_on_answers_of_its_own_has_a_star_in_figures_and_tables() -> None:
    lines = [
        {"method": method, "level": level, "value": 0.5 + level / 1000, "low": NAN, "high": NAN}
        | {"n": 50, "n_cases": 20, "own_rows": method == "medconf", "missing": ""}
        for method in ("asp", "medconf")
        for level in (1, 100)
    ]
    table = pd.DataFrame(lines)
    axes = [
        *curves(table, families=FAMILIES, xlabel="Level", ylabel="Value"),
        *intervals(table[table["level"].eq(1)], families=FAMILIES, xlabel="Value"),
    ]
    for ax in axes:
        texts = {text.get_text() for text in ax.figure.findobj(plt.Text)}
        assert "MedConf *" in texts and "ASP *" not in texts
    shown = pivoted(table, ["method"], "level").set_index("method")
    assert shown.loc["medconf"].str.endswith(" *").all()
    assert not shown.loc["asp"].str.contains("*", regex=False).any()
