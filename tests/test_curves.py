"""Lines over an x from small made-up tables: what stands where, what is told, what is refused."""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pandas as pd
import pytest
from drawn_figures import Drawn, assert_legible
from each import each
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D

from trustlab.plots.curves import curves
from trustlab.plots.style import FAMILY_COLOURS, FAMILY_MARKERS, FEW, GREY

FAMILIES = {
    "asp": "token",
    "msp": "token",
    "sequence_probability": "token",
    "poc": "consistency",
    "ce": "verbalized",
    "p_true": "verbalized",
    "medconf": "medconf",
}
LEVELS = (1, 20, 40, 60, 80, 100)
NAN = float("nan")
pytestmark = pytest.mark.usefixtures("house_style")


def by_level(names=tuple(FAMILIES), **more) -> pd.DataFrame:
    """A rising line a method, an accuracy ("") with few cases at the first level."""
    rows = [
        {"method": name, "level": level, "value": 0.1 * k + 0.09 * i, "n": 24, "n_cases": 24}
        for k, name in enumerate(["", *names])
        for i, level in enumerate(LEVELS)
    ]
    table = pd.DataFrame(rows).assign(**{"model": "m", "dataset": "d", "missing": "", **more})
    table = table.assign(low=table["value"] - 0.05, high=table["value"] + 0.05)
    few = table["method"].eq("") & table["level"].eq(1)
    table.loc[few, ["n", "n_cases", "low", "high"]] = [4, 4, NAN, NAN]
    return table.assign(family=table["method"].map(FAMILIES))


def coverage() -> pd.DataFrame:
    """Three methods and a reference at twenty coverages; "ce" has no value at all."""
    rows = [
        {"method": name, "coverage": k / 20, "value": 0.02 * k * (i + 1) / 4, "n_cases": 3 + 2 * k}
        for i, name in enumerate(["any order", "asp", "msp", "poc"])
        for k in range(1, 21)
    ]
    rows.append({"method": "ce", "n_cases": 0, "missing": "no confidence: no number"})
    table = pd.DataFrame(rows).assign(n=60)
    return table.assign(low=table["value"] - 0.02, high=table["value"] + 0.02)


def by_samples() -> pd.DataFrame:
    rows = [
        {"method": name, "temperature": t, "n_samples": k, "value": 0.6 + 0.05 * i + 0.1 * t}
        for name in ("poc", "asp")
        for t in (0.2, 0.5, 1.0)
        for i, k in enumerate(("2", "5", "15"))
    ]
    table = pd.DataFrame(rows).assign(n=71, n_cases=24, missing="")
    table = table.assign(low=table["value"] - 0.1, high=table["value"] + 0.1)
    table.loc[table["method"].eq("asp"), ["value", "low", "high"]] = NAN
    table.loc[table["method"].eq("asp"), "missing"] = "fewer than 10 correct or wrong"
    return table


def bins() -> pd.DataFrame:
    rows = [
        {"method": name, "line": line, "confidence": x, "value": x**2, "n": 15, "n_cases": n}
        for name in ("asp", "ce", "medconf")
        for line, n in (("bins", 9), ("recalibrated", 24))
        for x in (0.1, 0.5, 0.9)
    ]
    return pd.DataFrame(rows).assign(low=lambda t: t["value"], high=lambda t: t["value"] + 0.1)


def rules() -> pd.DataFrame:
    """Marks near each other, with intervals in both directions, and a line of fixed lengths."""
    at = {"asp": (10.7, 0.3), "poc": (12.6, 0.33), "ce": (13.6, 0.33), "medconf": (13.7, 0.33)}
    rows = [{"method": name, "utterances": x, "value": y} for name, (x, y) in at.items()]
    for k in range(5):
        rows.append({"method": "fixed", "utterances": 2 + 3.5 * k, "value": 0.3 + 0.1 * (k == 4)})
    rows.append({"method": "oracle", "utterances": 11.5, "value": 0.43})
    table = pd.DataFrame(rows).assign(n=30, n_cases=30)
    for name, half in (("utterances", 2.0), ("value", 0.15)):
        ends = ("low", "high") if name == "value" else ("utterances_low", "utterances_high")
        table[ends[0]], table[ends[1]] = table[name] - half, table[name] + half
    return table


def one_case() -> pd.DataFrame:
    table = by_level().query("method != ''").drop(columns=["low", "high", "n_cases"])
    return table.assign(n=1, correct=[0, 0, 0, 1, 1, NAN] * len(FAMILIES))


def gaps() -> pd.DataFrame:
    table = by_level(("asp", "poc"))
    gone = table["method"].eq("asp") & table["level"].isin([20, 60])
    table.loc[gone, ["value", "low", "high"]] = NAN
    table.loc[gone, "missing"] = "unreadable answer"
    return table


ACCURACY = {"": {"label": "Accuracy", "lw": 2.6, "marker": "o"}}
LEVEL, SHARE = "Information shown (percent of statements)", "Mean confidence (percent)"
DRAWINGS = {
    "one panel": lambda: curves(
        by_level(), FAMILIES, references=ACCURACY, bands=[""], words=(LEVEL, SHARE), percent="y"
    ),
    "families": lambda: curves(
        by_level(),
        FAMILIES,
        panels="family",
        references=ACCURACY,
        bands=[""],
        words=(LEVEL, SHARE),
        percent="y",
        limits=(0, 1),
    ),
    "coverage": lambda: curves(
        coverage(),
        FAMILIES,
        "coverage",
        references={"any order": {"label": "random order", "color": GREY, "ls": "--"}},
        bands=["asp", "poc"],
        names="legend",
        words=("Coverage (percent)", "Selective risk (percent)"),
        percent="xy",
    ),
    "samples": lambda: curves(
        by_samples(),
        FAMILIES,
        "n_samples",
        by="temperature",
        panels="method",
        bars=[0.2, 0.5, 1.0],
        guides={"chance": 0.5},
        names="legend",
        words=("K, samples per answer", "AUROC (0 to 1)"),
    ),
    "reliability": lambda: curves(
        bins(),
        FAMILIES,
        "confidence",
        by="line",
        panels="method",
        references={"recalibrated": {"lw": 1.2}},
        bars=["bins"],
        guides={"calibrated": "diagonal"},
        names="legend",
        words=("Mean confidence (percent)", "Accuracy (percent)"),
        percent="xy",
        limits=(0, 1),
    ),
    "rules": lambda: curves(
        rules(),
        FAMILIES,
        "utterances",
        references={"fixed": {"color": GREY, "marker": "."}, "oracle": {"marker": "*"}},
        bars=["asp", "poc", "ce", "medconf", "oracle"],
        names="legend",
        words=("Mean utterances", "Accuracy (percent)"),
        percent="y",
    ),
    "one case": lambda: curves(
        one_case(), FAMILIES, panels="family", filled="correct", words=(LEVEL, SHARE)
    ),
    "gaps": lambda: curves(
        gaps(), FAMILIES, references=ACCURACY, bands=[""], words=(LEVEL, SHARE), percent="y"
    ),
}


@pytest.fixture(scope="module")
def drawn() -> Drawn:
    return Drawn(DRAWINGS, model="x", dataset="d", n_cases=24, n_rows=144)


def lines_of(ax: Axes, colour: object) -> list[Line2D]:
    """The drawn lines of a colour that join something."""
    joined = [line for line in ax.lines if line.get_linestyle() != "None"]
    return [line for line in joined if to_rgb(line.get_color()) == to_rgb(colour)]


def texts(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


def legend_of(ax: Axes) -> dict[str, Line2D]:
    legend = ax.get_legend()
    assert legend is not None
    handles = [h for h in legend.legend_handles if isinstance(h, Line2D)]
    return dict(zip([t.get_text() for t in legend.get_texts()], handles, strict=True))


@each("name", DRAWINGS)
def test_no_text_is_clipped_or_overlaps(name: str, drawn: Drawn) -> None:
    assert_legible(drawn.figure(name))


def test_a_line_stands_where_the_table_says_with_the_look_of_its_family(drawn: Drawn) -> None:
    ax = drawn.axes("one panel")[0]
    table = by_level()
    asp, msp, _ = lines_of(ax, FAMILY_COLOURS["token"])
    for line, name in ((asp, "asp"), (msp, "msp")):
        mine = table[table["method"].eq(name)]
        np.testing.assert_allclose(line.get_xdata(), mine["level"])
        np.testing.assert_allclose(line.get_ydata(), mine["value"])
    assert asp.get_linestyle() != msp.get_linestyle()
    marks = [m for m in ax.lines if m.get_marker() == FAMILY_MARKERS["medconf"]]
    assert [float(np.asarray(m.get_ydata()).item()) for m in marks] == pytest.approx(
        table.loc[table["method"].eq("medconf"), "value"].tolist()
    )
    assert ax.yaxis.get_major_formatter()(0.07, 0) == "7"


def test_a_mark_of_fewer_than_ten_cases_is_hollow_and_its_answers_are_counted(drawn: Drawn) -> None:
    ax = drawn.axes("one panel")[0]
    hollow = [line for line in ax.lines if line.get_label() == FEW]
    assert [tuple(np.ravel(h.get_xydata())) for h in hollow] == [(1, 0)]
    assert to_rgb(hollow[0].get_markerfacecolor()) == (1, 1, 1)
    assert ax.get_xticklabels()[0].get_text() == "1\nn 4"
    assert ax.get_title(loc="right") == "n 24"
    assert "hollow" in drawn.notes["one panel"].get_text()


def test_a_mark_is_filled_where_the_answer_is_right_and_crossed_where_nobody_judged(
    drawn: Drawn,
) -> None:
    ax = drawn.axes("one case")[1]
    marks = [line for line in ax.lines if line.get_linestyle() == "None"]
    (filled,) = [m for m in marks if to_rgb(m.get_markerfacecolor()) == to_rgb("#E69F00")]
    (hollow,) = [m for m in marks if m.get_markerfacecolor() == "white"]
    (crossed,) = [m for m in marks if m.get_marker() == "x"]
    assert list(filled.get_xdata()) == [60, 80]
    assert list(hollow.get_xdata()) == [1, 20, 40]
    assert list(crossed.get_xdata()) == [100]
    assert list(legend_of(drawn.axes("one case")[0])) == [
        *("answer right", "answer wrong", "answer not judged")
    ]
    assert "hollow" not in drawn.notes["one case"].get_text()


def test_a_missing_value_is_a_gap_whose_reason_is_told(drawn: Drawn) -> None:
    ax = drawn.axes("gaps")[0]
    (asp,) = lines_of(ax, FAMILY_COLOURS["token"])
    np.testing.assert_array_equal(
        np.isnan(asp.get_ydata()), [False, True, False, True, False, False]
    )
    alone = [m for m in ax.lines if m.get_marker() == FAMILY_MARKERS["token"]]
    assert len([m for m in alone if 40 in np.ravel(m.get_xdata())]) >= 1
    told = [text.get_text() for text in drawn.figure("gaps").texts]
    assert told[0] == "No value: ASP at 20, 60 (unreadable answer)"


def test_a_dense_line_shows_a_point_that_stands_alone() -> None:
    table = coverage().query("method == 'asp'").assign(n_cases=60)
    table.loc[table["coverage"].isin([0.5, 0.6]), "value"] = NAN
    (ax,) = curves(table, FAMILIES, "coverage")
    marks = [m for m in ax.lines if m.get_marker() == FAMILY_MARKERS["token"]]
    assert [np.ravel(m.get_xdata()).tolist() for m in marks] == [[0.55]]


def test_the_table_is_not_changed() -> None:
    table = by_samples()
    before = table.copy()
    panels = {"by": "temperature", "panels": "method", "bars": [0.2, 0.5, 1.0]}
    curves(table, FAMILIES, "n_samples", **panels)
    pd.testing.assert_frame_equal(table, before)


PLAIN = {"references": ACCURACY}
REFUSED = {
    "lacks the columns": (by_level().drop(columns="n_cases"), PLAIN),
    "the table has no rows": (by_level().iloc[:0], PLAIN),
    "one figure shows one model": (pd.concat([by_level(), by_level(model="other")]), PLAIN),
    "two rows at the same": (pd.concat([by_level(), by_level()]), PLAIN),
    "families gives None for method ''": (by_level(), {}),
    "must be one of references": (by_level(), {"panels": "family"}),
    "no method": (by_level(), PLAIN | {"bands": ["pmi"]}),
    "at most 2 bands": (by_level(), PLAIN | {"bands": ["", "asp", "poc"]}),
    "names is 'left'": (by_level(), PLAIN | {"names": "left"}),
}


@each("message", REFUSED)
def test_what_cannot_be_drawn_is_refused(message: str) -> None:
    table, options = REFUSED[message]
    with pytest.raises(ValueError, match=message):
        curves(table, FAMILIES, **options)
