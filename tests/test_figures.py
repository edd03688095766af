"""Lines, rows and triangles from small made-up tables: what stands where, told, and refused."""

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
from matplotlib.colors import to_rgb, to_rgba

from trustlab.plots.curves import curves
from trustlab.plots.rows import Line, by_value, rows
from trustlab.plots.simplex import HEIGHT, WEIGHTS, winners
from trustlab.plots.style import FAMILY_COLOURS, FAMILY_MARKERS, FEW, INK, label

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
    return table.assign(family=table["method"].map(FAMILIES))


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


ACCURACY = {"": {"label": "Accuracy", "lw": 2.6, "marker": "o"}}
PLAIN: dict[str, Any] = {"references": ACCURACY, "bands": [""], "percent": "y"}
N = {"value": "{value:.2f}", "n": "{n:,.0f}"}
DRAWINGS = {
    "one panel": lambda: curves(by_level(), FAMILIES, **PLAIN),
    "families": lambda: curves(by_level(), FAMILIES, panels="family", **PLAIN),
    "gaps": lambda: curves(gaps(), FAMILIES, **PLAIN),
    "rows": lambda: rows(
        made(), FAMILIES, order=by_value(made()), columns=N, lines=[Line(0.5, "chance 0.50")]
    ),
    "weights": lambda: winners(sweep()),
}  # fmt: skip


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


@each("name", ["families", "gaps", "rows", "weights"])
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
    assert ax.yaxis.get_major_formatter()(0.07, 0) == "7"
    (hollow,) = [line for line in ax.lines if line.get_label() == FEW]  # fewer than twelve cases
    assert tuple(np.ravel(hollow.get_xydata())) == (1, 0)
    assert ax.get_xticklabels()[0].get_text() == "1\nn 4" and ax.get_title(loc="right") == "n 24"
    assert "hollow" in drawn.notes["one panel"].get_text()


def test_a_missing_value_is_a_gap_whose_reason_is_told(drawn: Drawn) -> None:
    ax = drawn.axes("gaps")[0]
    (asp,) = lines_of(ax, FAMILY_COLOURS["token"])
    gone = [False, True, False, True, False, False]
    np.testing.assert_array_equal(np.isnan(asp.get_ydata()), gone)
    told = [text.get_text() for text in drawn.figure("gaps").texts]
    assert told[0] == "No value: ASP at 20, 60 (unreadable answer)"


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
    return lambda: curves(**{"table": by_level(), "families": FAMILIES, **PLAIN, **changes})


def row(**changes: Any) -> Any:
    return lambda: rows(**{"table": made(level="pooled"), "families": FAMILIES, **changes})


REFUSED = [
    (line(table=by_level().drop(columns="n_cases")), "lacks the columns"),
    (line(table=by_level().iloc[:0]), "the table has no rows"),
    (line(table=pd.concat([by_level(), by_level(model="other")])), "one figure shows one model"),
    (row(order=["poc", "entropy"]), "order names .'entropy'"),
    (row(table=pd.concat([made(), made()])), "a mark has several lines"),
    (lambda: winners(sweep().drop(columns="winner")), "lacks the columns .'winner'"),
]


@each("call, message", REFUSED, ids=[message for _, message in REFUSED])
def test_what_cannot_be_drawn_is_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
