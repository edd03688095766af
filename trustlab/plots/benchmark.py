"""The benchmark's figures: accuracy and mean confidence over levels, and correlations between methods.

Every function takes a finished table and draws it. ``metrics`` is the table of ``metrics_table``
(model, dataset, method, metric, value, level, low, high, n, n_cases, reason), cut to one model and
one data set; ``families`` maps method to family. Values in 0 to 1 are drawn in percent where the
axis says so.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from trustlab.metrics.estimate import MIN_CASES
from trustlab.plots.style import (
    FAMILY_COLOURS,
    FAMILY_MARKERS,
    GREY,
    INK,
    axes_row,
    family_of,
    inches,
    label,
    panel_grid,
    plot_marks,
    spread,
    text_colour,
    told_n,
)

LEVEL_AXIS = "Information shown (percent of the case's statements; 1 = one statement)"
LINES = ("-", "--", "-.", ":", (0, (6, 1.5, 1, 1.5, 1, 1.5)), (0, (9, 3)))


def accuracy_by_level(metrics: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Accuracy in percent against information level in percent, with its 95 % interval as a band and its values beside."""
    table = _by_level(metrics, "accuracy", "")
    ax = ax or axes_row(6.4, 4.0)[0]
    _accuracy_line(ax, table, marker="o")
    values = list(100 * table["value"])
    for x, y, following in zip(table["x"], values, [*values[1:], 100], strict=True):
        aside = -4 if following >= y else 4  # away from where the line goes next
        ax.annotate(
            f"{y:.0f}", (x, y), (aside, 7), textcoords="offset points", ha="center", zorder=5
        )
    _level_axis(ax, table)
    ax.set(ylim=(0, 108), yticks=range(0, 101, 20), ylabel="Accuracy (percent of answers)")
    return ax


def confidence_and_accuracy(
    metrics: pd.DataFrame,
    families: Mapping[str, str],
    methods: Sequence[str],
    ax: Axes | None = None,
) -> Axes:
    """Mean confidence of probability-scale ``methods`` over the levels beside accuracy (black, with its 95 % band), percent.

    Colour and marker say the family, the line's dashes the method within it; names stand at the
    lines' ends, with the number of answers behind each point where it is not that of the accuracy.
    Methods without any value are named under the axis. Raises ``ValueError`` for a method that the
    table does not hold.
    """
    ax = ax or axes_row(7.0, 4.8)[0]
    accuracy = _by_level(metrics, "accuracy", "")
    _accuracy_line(ax, accuracy, lw=3.4)
    whole = told_n(accuracy["n"])
    ends: list[tuple[str, pd.DataFrame, Any, str]] = []
    if len(accuracy):
        ends.append((f"Accuracy (n {whole} a level)", accuracy, INK, "bold"))
    seen: dict[str, int] = {}
    undrawn = []
    for method in methods:
        table = _by_level(metrics, "mean_confidence", method)
        if not len(table):
            undrawn.append(label(method))
            continue
        family = family_of(method, families)
        dashes = LINES[seen.setdefault(family, 0) % len(LINES)]
        seen[family] += 1
        colour, y = FAMILY_COLOURS[family], 100 * table["value"]
        ax.plot(table["x"], y, color=colour, ls=dashes, lw=1.7, label=label(method))
        look = {"marker": FAMILY_MARKERS[family], "ms": 6, "zorder": 2.5}
        plot_marks(ax, table["x"], y, table["n_cases"], color=colour, **look)
        own = told_n(table["n"])
        words = label(method) if own == whole else f"{label(method)} (n {own})"
        ends.append((words, table, text_colour(family), "normal"))
    _level_axis(ax, accuracy)
    ax.set(ylim=(0, 103), yticks=range(0, 101, 20), ylabel="Mean confidence; accuracy (percent)")
    _name_line_ends(ax, ends)
    if undrawn:
        words = textwrap.fill(f"No value, not drawn: {', '.join(undrawn)}", 90)
        ax.annotate(
            words, (0, 0), (0, -46), "axes fraction", "offset points", color=GREY, size=9, va="top"
        )
    return ax


def accuracy_by_set(metrics: pd.DataFrame, axes: Sequence[Axes] | None = None) -> list[Axes]:
    """Accuracy in percent against information level: a row of panels for each model, a column for each data set.

    ``metrics`` may hold several models and data sets. The other models' lines on the same data set are repeated in grey.
    """
    runs, n_sets = runs_by_set(metrics)
    lines = {pair: _by_level(run, "accuracy", "") for pair, run in runs.items()}
    panels = list(axes) if axes is not None else panel_grid(len(lines), n_sets)
    for ax, ((model, dataset), table) in zip(panels, lines.items(), strict=True):
        for (other, where), beside in lines.items():
            if where == dataset and other != model:
                ax.plot(
                    beside["x"],
                    100 * beside["value"],
                    color="#9A9A9A",
                    lw=1.3,
                    ls="--",
                    label=f"Accuracy of {other}",
                )
        _accuracy_line(ax, table, marker="o")
        _level_axis(ax, table)
        ax.set(
            ylim=(-4, 104),
            yticks=range(0, 101, 20),
            xlabel="Information shown\n(percent of statements)",
            ylabel="Accuracy (percent)",
        )
        ax.tick_params(labelsize=8.5)
        set_title(ax, model, dataset, f"n {told_n(table['n_cases']) or 0} cases a level", 26)
    for ax in panels if axes is None else []:
        ax.label_outer(remove_inner_ticks=True)
    return panels


def file_ending(model: str, models: Sequence[str]) -> str:
    """What tells the files of ``model`` from those of the first of ``models``: nothing for the first, else ``_`` and its name."""
    return "" if model == models[0] else "_" + re.sub(r"[^A-Za-z0-9.-]+", "-", model)


def runs_by_set(metrics: pd.DataFrame) -> tuple[dict[tuple[str, str], pd.DataFrame], int]:
    """The rows of each (model, data set), model by model in the order of the table, and the number of data sets."""
    need(metrics, ["model", "dataset"])
    models, sets = (list(dict.fromkeys(metrics[column])) for column in ("model", "dataset"))
    runs = {
        (m, d): metrics.loc[(metrics["model"] == m) & (metrics["dataset"] == d)]
        for m in models
        for d in sets
    }
    if lacking := [pair for pair, run in runs.items() if not len(run)]:
        raise ValueError(f"every model needs rows on every data set; none for {lacking}")
    return runs, len(sets)


def set_title(ax: Axes, model: str, dataset: str, n: str, width: int, pad: float = 6) -> None:
    """Over one of several panels: the data set, the model and how much it shows, lines no longer than ``width`` letters."""
    lines = [*textwrap.wrap(dataset, width), *textwrap.wrap(model, width), n]
    ax.set_title("\n".join(lines), size=9.5, pad=pad, parse_math=False)


def need(table: pd.DataFrame, columns: Sequence[str]) -> None:
    """``ValueError`` for a table without rows or one of ``columns``."""
    lacking = [name for name in columns if name not in table.columns]
    if lacking or not len(table):
        raise ValueError(
            f"the table needs rows and the columns {columns}; it has {len(table)} rows and lacks {lacking}"
        )


def one_run(metrics: pd.DataFrame) -> pd.DataFrame:
    """``metrics`` as it is; ``ValueError`` where it holds more than one model and data set, or is no table of metrics."""
    columns = [
        "model",
        "dataset",
        "method",
        "metric",
        "value",
        "level",
        "low",
        "high",
        "n",
        "n_cases",
        "missing",
    ]
    need(metrics, columns)
    runs = metrics[["model", "dataset"]].drop_duplicates()
    if len(runs) > 1:
        raise ValueError(
            f"one figure shows one model and data set; received {runs.to_numpy().tolist()}"
        )
    return metrics


def _by_level(metrics: pd.DataFrame, metric: str, method: str) -> pd.DataFrame:
    """One metric's values at the single levels, ascending, with ``x`` = the level as a number; rows without value left out.

    ``attrs["levels"]`` are all levels, those without a value too.
    """
    table = one_run(metrics)
    mine = table.loc[(table["metric"] == metric) & (table["method"] == method)]
    mine = mine.loc[mine["level"].astype(str).str.isdigit()]
    if not len(mine):
        held = sorted(set(table.loc[table["metric"] == metric, "method"]))
        raise ValueError(
            f"no {metric} by level for method {method!r}; the table holds it for {held}"
        )
    mine = mine.assign(x=mine["level"].astype(int)).sort_values("x")
    known = mine.dropna(subset="value")
    known.attrs["levels"] = mine["x"].tolist()
    return known


def _accuracy_line(ax: Axes, table: pd.DataFrame, lw: float = 2.2, marker: str = "") -> None:
    ax.fill_between(
        table["x"], 100 * table["low"], 100 * table["high"], color=INK, alpha=0.13, lw=0
    )
    ax.plot(table["x"], 100 * table["value"], color=INK, lw=lw, label="Accuracy")
    shown = table if marker else table[table["n_cases"] < MIN_CASES]
    y = 100 * shown["value"]
    plot_marks(ax, shown["x"], y, shown["n_cases"], color=INK, marker=marker or "o", ms=6, zorder=3)


def _level_axis(ax: Axes, table: pd.DataFrame) -> None:
    levels = table.attrs["levels"]
    counts = dict(zip(table["x"], table["n"], strict=True))
    apart = len(set(counts.values())) > 1
    names = [
        f"{level}\nn {counts[level]:,}" if apart and level in counts else str(level)
        for level in levels
    ]
    ax.set(xticks=levels, xticklabels=names, xlim=(-3, 104), xlabel=LEVEL_AXIS)
    for level in set(levels) - set(table["x"]):
        words: dict[str, Any] = {
            "xycoords": ("data", "axes fraction"),
            "ha": "center",
            "va": "center",
            "rotation": 90,
        }
        ax.annotate("no answer", (level, 0.5), **words, size=8.5, color=GREY)


def _name_line_ends(ax: Axes, ends: list[tuple[str, pd.DataFrame, Any, str]]) -> None:
    """Write each line's name to the right of its last point, moved up or down as little as keeps the names apart."""
    ends = sorted(ends, key=lambda end: end[1]["value"].iloc[-1])
    bottom, top = ax.get_ylim()
    wanted = [100 * end[1]["value"].iloc[-1] for end in ends]
    places = spread(wanted, 13.5 / 72 * (top - bottom) / inches(ax)[1], bottom, top)
    for (words, table, colour, weight), y in zip(ends, places, strict=True):
        last = (table["x"].iloc[-1], 100 * table["value"].iloc[-1])
        line = {
            "arrowstyle": "-",
            "color": colour,
            "lw": 0.7,
            "relpos": (0, 0.5),
            "shrinkA": 1,
            "shrinkB": 5,
        }
        style = {
            "color": colour,
            "weight": weight,
            "size": 9.5,
            "va": "center",
            "annotation_clip": False,
        }
        ax.annotate(
            words,
            last,
            (1.05, y),
            xycoords="data",
            textcoords=("axes fraction", "data"),
            arrowprops=line,
            **style,
        )
