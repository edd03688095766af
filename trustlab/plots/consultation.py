"""When to stop asking: accuracy against utterances, when methods stop, one consultation, a guarantee, and the published figures.

A finished table in, Axes out. Each function takes the tables of ``trustlab.studies.consultation``, cut to one model;
``families`` maps method to family.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from trustlab.metrics.estimate import MIN_CASES
from trustlab.plots.auroc import MARKER_POINTS
from trustlab.plots.style import (
    FAMILY_COLOURS,
    FAMILY_MARKERS,
    FEW,
    GREY,
    INK,
    axes_row,
    family_of,
    inches,
    label,
    mark_look,
    panel_grid,
    plot_marks,
    text_colour,
)

DASHES = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1, 2)))
"""Methods of one family, in order: shape and colour stay the family's."""
ITSELF, ORACLE = "decides itself", "oracle"
NAMES = {ITSELF: "Model decides itself", ORACLE: "Oracle (no rule can follow it)"}
OWN: dict[str, dict[str, Any]] = {
    ITSELF: {"marker": "P", "ms": 10, "color": INK, "mec": "white", "mew": 0.6, "ls": ""},
    ORACLE: {"marker": "*", "ms": 14, "color": "#9A9A9A", "mec": "white", "mew": 0.6, "ls": ""},
}
CROSS: dict[str, Any] = {"color": INK, "marker": "x", "ms": 9, "mew": 1.6, "ls": ""}
FIXED: dict[str, Any] = {
    "color": "#9A9A9A",
    "lw": 1.4,
    "marker": ".",
    "ms": 7,
    "ls": "-",
    "zorder": 2,
}
SAID = "Mean utterances (doctor's and patient's)"


def frontier(
    table: pd.DataFrame, chosen: pd.DataFrame, families: Mapping[str, str], ax: Axes | None = None
) -> Axes:
    """Accuracy (percent) against mean utterances at every threshold, a stepped line a method.

    A mark with its 95 % interval stands where the threshold that was picked on other cases ends up; the grey line joins the fixed
    lengths. ``table`` is ``frontier_table``, ``chosen`` is ``chosen_table``. Raises ``ValueError`` for lacking columns or several
    models.
    """
    table, chosen = _wide(table, ["method", "threshold"], empty=True), _wide(chosen, ["policy"])
    ax = ax or axes_row(6.6, 4.6)[0]
    handles = []
    for method, look in _looks(list(dict.fromkeys(table["method"])), families).items():
        line = table[table["method"] == method].sort_values("utterances", kind="stable")
        ax.plot(
            line["utterances"],
            100 * line["accuracy"],
            drawstyle="steps-post",
            lw=1.6,
            alpha=0.75,
            zorder=2.5,
            **look["line"],
        )
        handles.append(
            Line2D([], [], lw=1.6, label=label(method), **{**look["mark"], **look["line"]})
        )
    for row in chosen[chosen["policy"].isin(families)].to_dict("records"):
        _marked(ax, row, _looks([row["policy"]], families)[row["policy"]]["mark"])
    fixed = chosen[chosen["policy"].str.startswith("fixed")]
    if len(fixed):
        ax.plot(fixed["utterances"], 100 * fixed["accuracy"], **FIXED)
        handles.append(Line2D([], [], label="Fixed number of questions", **FIXED))
    for row in chosen[chosen["policy"].isin(list(OWN))].to_dict("records"):
        _marked(ax, row, OWN[row["policy"]])
        handles.append(Line2D([], [], label=NAMES[row["policy"]], **OWN[row["policy"]]))
    ax.set(xlabel=SAID, ylabel="Accuracy (percent of consultations)")
    ax.set_ylim(*_percent(ax))
    _legend_right(ax, handles)
    return ax


def stopping(table: pd.DataFrame, families: Mapping[str, str]) -> list[Axes]:
    """When each rule stops: a panel a rule, a bar for each number of questions, percent of the consultations.

    ``table`` is ``stops_table``. Raises ``ValueError`` for lacking columns, no rows or several models.
    """
    _one(table, ["model", "policy", "questions", "value", "n_cases"])
    policies = list(dict.fromkeys(table["policy"]))
    panels = panel_grid(len(policies), 3)
    for ax, policy in zip(panels, policies, strict=True):
        rows = table[table["policy"] == policy]
        colour = (
            FAMILY_COLOURS[family_of(policy, families)]
            if policy in families
            else "#9A9A9A"
            if policy == ORACLE
            else INK
        )
        n_cases = int(rows["n_cases"].max())
        look = {"color": colour, "edgecolor": "white", "linewidth": 0.5}
        if n_cases < MIN_CASES:
            look = {"color": "white", "edgecolor": colour, "linewidth": 1.2}
        bars = ax.bar(rows["questions"], 100 * rows["value"], width=0.8, **look)
        for bar in bars if n_cases < MIN_CASES else ():
            bar.set_label(FEW)
        tint = text_colour(family_of(policy, families)) if policy in families else INK
        ax.set_title(
            "\n".join([*textwrap.wrap(NAMES.get(policy, label(policy)), 22), f"n {n_cases:,}"]),
            size=10,
            color=tint,
        )
        last = int(rows["questions"].max())
        ax.set(
            xticks=range(0, last + 1, max(1, -(-last // 6))),
            ylim=(0, 104),
            yticks=range(0, 101, 25),
        )
        ax.set(xlabel="Questions asked", ylabel="Consultations (percent)")
        ax.grid(axis="x", visible=False)
    for ax in panels:
        ax.label_outer()
    return panels


def confidence_by_turn(
    table: pd.DataFrame, families: Mapping[str, str], ax: Axes | None = None
) -> Axes:
    """One consultation: each method's confidence (0 to 1) after each question; filled where the diagnosis is right.

    Hollow where it is wrong, a cross where it was not judged. ``table`` is ``transcript_rows``:
    level, correct, and a column a method. Methods without any value are named under the axis, as
    are those with a value outside 0 to 1, which only rank. Raises ``ValueError`` for lacking
    columns or rows.
    """
    if not len(table) or not {"level", "correct"} <= set(table.columns):
        raise ValueError(
            f"the table needs rows and the columns level and correct; it has {len(table)} of {list(table.columns)}"
        )
    ax = ax or axes_row(6.6, 3.6)[0]
    methods = [m for m in families if m in table.columns]
    drawn = [m for m in methods if table[m].notna().any() and table[m].dropna().between(0, 1).all()]
    right, wrong, unjudged = (
        x.to_numpy()
        for x in (table["correct"].eq(1), table["correct"].eq(0), table["correct"].isna())
    )
    handles = []
    for method, look in _looks(drawn, families).items():
        ax.plot(table["level"], table[method], lw=1.6, zorder=2, **look["line"])
        colour = look["mark"]["color"]
        for at, face in ((right, colour), (wrong, "white")):
            mark = {**look["mark"], "mfc": face, "mec": colour, "mew": 1.3}
            ax.plot(table["level"][at], table[method][at], ls="", zorder=3, **mark)
        if unjudged.any():
            ax.plot(table["level"][unjudged], table[method][unjudged], zorder=4, **CROSS)
        handles.append(
            Line2D([], [], lw=1.6, label=label(method), **{**look["mark"], **look["line"]})
        )
    plain: dict[str, Any] = {"ls": "", "marker": "o", "ms": 8, "mec": GREY, "mew": 1.3}
    handles += [
        Line2D([], [], mfc=GREY, label="diagnosis right", **plain),
        Line2D([], [], mfc="white", label="diagnosis wrong", **plain),
        *([Line2D([], [], label="diagnosis not judged", **CROSS)] if unjudged.any() else []),
    ]
    last = int(table["level"].max())
    ax.set(
        xlabel="Questions asked",
        ylabel="Confidence (0 to 1)",
        ylim=(-0.04, 1.04),
        xlim=(-0.3, max(last, 1) + 0.3),
    )
    ax.set_xticks(range(0, last + 1, max(1, -(-last // 12))))
    _legend_right(ax, handles)
    if undrawn := [label(m) for m in methods if m not in drawn]:
        _below(ax, f"Not drawn, no value between 0 and 1: {', '.join(undrawn)}")
    return ax


def beside_published(
    chosen: pd.DataFrame,
    published: pd.DataFrame,
    families: Mapping[str, str],
    axes: Sequence[Axes] | None = None,
) -> tuple[Axes, Axes]:
    """Accuracy against mean utterances: ours at the left with 95 % intervals, the published figures in a panel of their own.

    ``chosen`` is ``chosen_table``; ``published`` has method, utterances and accuracy_percent. Each panel has its own axes: two
    different things. Raises ``ValueError`` for lacking columns or several models.
    """
    chosen = _wide(chosen, ["policy"])
    left, right = axes if axes is not None else axes_row(3.5, 3.4, n=2, gap=0.85)
    methods = [m for m in dict.fromkeys([*published["method"], *chosen["policy"]]) if m in families]
    ours = {row["policy"]: row for row in chosen.to_dict("records")}
    theirs = {row["method"]: row for row in published.to_dict("records")}
    handles = []
    for method, look in _looks(methods, families).items():
        if method in ours:
            _marked(left, ours[method], look["mark"])
        if method in theirs:
            right.plot(
                theirs[method]["utterances"],
                theirs[method]["accuracy_percent"],
                ls="",
                zorder=4,
                **look["mark"],
            )
        handles.append(Line2D([], [], ls="", label=label(method), **look["mark"]))
    name, n = chosen["model"].iloc[0], int(chosen["n_cases"].iloc[0])
    left.set_title("\n".join(textwrap.wrap(f"Ours: {name}, {n} cases", 34)))
    right.set_title("Published: large models, other cases\n(Ren et al. 2026)")
    for ax in (left, right):
        ax.set(xlabel=SAID.partition(" (")[0], ylabel="Accuracy (percent)")
        ax.set_ylim(*_percent(ax))
        ax.margins(x=0.12)
    place: Any = {
        "loc": "upper left",
        "bbox_to_anchor": (0, -0.6 / inches(left)[1]),
        "borderaxespad": 0,
    }
    left.legend(
        handles=handles,
        ncols=len(handles),
        frameon=False,
        handletextpad=0.1,
        columnspacing=1.2,
        **place,
    )
    return left, right


def guarantee(table: pd.DataFrame, families: Mapping[str, str], ax: Axes | None = None) -> Axes:
    """What was allowed against what came: error (percent) among later cases diagnosed early, with 95 % Clopper-Pearson intervals.

    ``table`` is ``guarantee_table``. The dashed line is the rate allowed in the population, while the marks are a few test cases:
    one above it breaks no promise and one below proves none; the number beside a mark counts the
    cases diagnosed early. A promise stands for one method and one rate named beforehand;
    choosing the best mark afterwards voids it. Methods for which no threshold could be vouched are named under the axis.
    Raises ``ValueError`` for lacking columns, no rows or several models.
    """
    _one(table, ["model", "method", "alpha", "value", "low", "high", "n", "missing"])
    ax = ax or axes_row(5.6, 4.0)[0]
    alphas = sorted(set(table["alpha"]))
    methods = list(dict.fromkeys(table["method"]))
    gap = 100 * (min(np.diff(alphas)) if len(alphas) > 1 else 0.05)
    step = gap * 0.7 / max(len(methods), 1)
    handles, undrawn = [], []
    for i, (method, look) in enumerate(_looks(methods, families).items()):
        rows = table[(table["method"] == method) & table["value"].notna()]
        if not len(rows):
            undrawn.append(label(method))
            continue
        x = 100 * rows["alpha"] + (i - (len(methods) - 1) / 2) * step
        ax.vlines(
            x,
            100 * rows["low"],
            100 * rows["high"],
            color=look["mark"]["color"],
            lw=1.8,
            alpha=0.8,
            zorder=3,
        )
        shape = {key: look["mark"][key] for key in ("marker", "ms", "color")}
        plot_marks(ax, x, 100 * rows["value"], rows["n"], zorder=4, **shape)
        for px, py, n in zip(x, 100 * rows["value"], rows["n"], strict=True):
            ax.annotate(
                f"{n}",
                (px, py),
                (7, 0),
                textcoords="offset points",
                va="center",
                size=8,
                color=GREY,
            )
        handles.append(Line2D([], [], ls="", label=label(method), **look["mark"]))
    handles.append(Line2D([], [], ls="--", lw=1.2, color=INK, label="what was allowed"))
    ax.plot([0, 100], [0, 100], ls="--", lw=1.2, color=INK, zorder=1)
    limit = 100 * max(alphas) + gap
    high = 100 * np.nanmax([*table["high"].astype(float), max(alphas)]) + 4
    ax.set(xlim=(0, limit), ylim=(-3, min(max(high, limit), 104)), xticks=[100 * a for a in alphas])
    ax.set(
        xlabel="Error allowed among those diagnosed early (percent)",
        ylabel="Error observed on other cases (percent)",
    )
    _legend_right(ax, handles)
    if len(undrawn) == len(methods):
        ax.text(
            0.97,
            0.05,
            "no threshold can be vouched for",
            transform=ax.transAxes,
            ha="right",
            color=GREY,
            size=11,
        )
    elif undrawn:
        _below(ax, f"No threshold to vouch for, or nobody diagnosed early: {', '.join(undrawn)}")
    return ax


def _looks(
    methods: Sequence[str], families: Mapping[str, str]
) -> dict[str, dict[str, dict[str, Any]]]:
    """Line and mark of each method: colour and shape its family's, dashes the method's place within it."""
    seen: dict[str, int] = {}
    found = {}
    for method in methods:
        family = family_of(method, families)
        k = seen[family] = seen.get(family, -1) + 1
        colour, marker = FAMILY_COLOURS[family], FAMILY_MARKERS[family]
        mark = {
            "color": colour,
            "marker": marker,
            "ms": MARKER_POINTS[marker],
            "mec": "white",
            "mew": 0.6,
        }
        found[method] = {"line": {"color": colour, "ls": DASHES[k % len(DASHES)]}, "mark": mark}
    return found


def _marked(ax: Axes, row: Mapping[Any, Any], look: Mapping[str, Any]) -> None:
    if pd.notna(row["low"]):
        ax.vlines(
            row["utterances"],
            100 * row["low"],
            100 * row["high"],
            color=look["color"],
            lw=1.6,
            alpha=0.6,
            zorder=3,
        )
    filled = mark_look(look["color"], row["n_cases"])
    ax.plot(row["utterances"], 100 * row["accuracy"], zorder=4, **{**look, "ls": "", **filled})


def _percent(ax: Axes) -> tuple[float, float]:
    """Limits of a percent axis that hold what is drawn, inside 0 to 100 with a margin."""
    low, high = ax.dataLim.y0, ax.dataLim.y1
    if not np.isfinite([low, high]).all():
        return -3, 103
    return max(low - 5, -3), min(max(high + 5, low + 20), 103)


def _legend_right(ax: Axes, handles: Sequence[Line2D]) -> None:
    place: Any = {"loc": "upper left", "bbox_to_anchor": (1.02, 1), "borderaxespad": 0}
    ax.legend(handles=list(handles), frameon=False, handlelength=2.4, **place)


def _below(ax: Axes, words: str) -> None:
    wrapped = textwrap.fill(words, int(inches(ax)[0] * 15))
    ax.annotate(
        wrapped, (0, 0), (0, -46), "axes fraction", "offset points", color=GREY, size=9, va="top"
    )


def _wide(table: pd.DataFrame, keys: Sequence[str], empty: bool = False) -> pd.DataFrame:
    """A row for each of ``keys``: accuracy with its interval and cases, and utterances."""
    _one(table, ["model", *keys, "metric", "value", "low", "high", "n_cases"], empty)
    accuracy, said = (
        table[table["metric"] == metric].rename(columns={"value": metric})
        for metric in ("accuracy", "utterances")
    )
    return accuracy.merge(
        said[["model", *keys, "utterances"]], on=["model", *keys], validate="one_to_one"
    )


def _one(table: pd.DataFrame, columns: Sequence[str], empty: bool = False) -> None:
    """Refuse a table that lacks columns, of several models, or (unless ``empty``) without rows."""
    lacking = [name for name in columns if name not in table.columns]
    if lacking or not (len(table) or empty):
        raise ValueError(
            f"the table needs rows and the columns {list(columns)}; it has {len(table)} rows and lacks {lacking}"
        )
    if table["model"].nunique() > 1:
        raise ValueError(f"one figure shows one model; received {table['model'].unique().tolist()}")
