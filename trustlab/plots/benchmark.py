"""The benchmark's figures: accuracy over levels by data set, and correlations between methods.

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
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from trustlab.metrics.estimate import MIN_CASES
from trustlab.plots.style import (
    FEW,
    GREY,
    INK,
    axes_row,
    family_of,
    inches,
    label,
    name_colours,
    panel_grid,
    plot_marks,
    text_colour,
    told_n,
)

LEVEL_AXIS = "Information shown (percent of the case's statements; 1 = one statement)"


def rank_correlations(
    table: pd.DataFrame, families: Mapping[str, str], ax: Axes | None = None
) -> Axes:
    """Spearman correlation (-1 to 1) between every two methods' confidences: the lower triangle, in the order given.

    ``table`` is ``tables.rank_correlations``: a row a pair, first second value n n_cases, each pair
    once and the first method before the second. A pair without a value stays grey; one of fewer
    than ten cases keeps its number on white. The colour of a method's name is its family. Raises
    ``ValueError`` without pairs, or where some are lacking.
    """
    need(table, ["first", "second", "value", "n", "n_cases"])
    names = list(dict.fromkeys([table["first"].iloc[0], *table["second"]]))
    if [*zip(table["first"], table["second"], strict=True)] != list(combinations(names, 2)):
        raise ValueError(
            f"the table must hold every pair of {names} once, in this order; it has {len(table)} rows"
        )
    matrix, cases = (
        table.pivot(index="second", columns="first", values=name)
        .loc[names[1:], names[:-1]]
        .astype(float)
        for name in ("value", "n_cases")
    )
    n = len(names)
    if ax is None:
        side = max(0.37 * n, min(0.6 * (n - 1), 3.6))
        ax = axes_row(side, side)[0]
    cells = pd.DataFrame(matrix.to_numpy())
    few = cases.to_numpy() < MIN_CASES
    upper = np.triu(np.ones(cells.shape, bool), k=1)
    width, height = inches(ax)
    roomy = n >= 10  # then the scale and the families fit into the empty triangle
    bar = ax.inset_axes(
        (1 - 2.2 / width, 1 + (-0.5 if roomy else 0.95) / height, 2.2 / width, 0.1 / height)
    )
    options = {
        "vmin": -1,
        "vmax": 1,
        "center": 0,
        "linewidths": 0.6,
        "linecolor": "white",
        "ax": ax,
    }
    sns.heatmap(
        cells.fillna(0),
        mask=upper | cells.notna().to_numpy(),
        cmap=["#DDDDDD"],
        cbar=False,
        **options,
    )
    scale = {"orientation": "horizontal", "ticks": [-1, -0.5, 0, 0.5, 1]}
    look: dict[str, Any] = {
        "cmap": "RdBu_r",
        "annot": True,
        "fmt": ".2f",
        "annot_kws": {"size": 7 if n <= 24 else 6},
    }
    white = few & cells.notna().to_numpy()
    sns.heatmap(
        cells,
        mask=upper | cells.isna().to_numpy() | white,
        cbar_ax=bar,
        cbar_kws=scale,
        **look,
        **options,
    )
    for text in ax.texts:
        text.set_color("white" if abs(float(text.get_text())) > 0.6 else INK)
    for y, x in zip(*np.nonzero(white), strict=True):
        place: Any = {"facecolor": "white", "edgecolor": GREY, "lw": 0.6, "label": FEW}
        ax.add_patch(Rectangle((x + 0.04, y + 0.04), 0.92, 0.92, **place))
        middle: Any = {"ha": "center", "va": "center", "color": INK, **look["annot_kws"]}
        ax.text(x + 0.5, y + 0.5, f"{cells.iat[y, x]:.2f}", **middle)
    for text in ax.texts:
        text.set_text(text.get_text().replace("-", "−"))
    bar.set_title(
        f"Spearman correlation, −1 to 1\n(n {told_n(table['n'])} answers a pair)", size=10, pad=5
    )
    bar.tick_params(labelsize=9, length=2)
    ax.set(
        facecolor="white",
        xlabel="",
        ylabel="",
        xticks=np.arange(n - 1) + 0.5,
        yticks=np.arange(n - 1) + 0.5,
    )
    ax.grid(False)
    ax.set_xticklabels([label(name) for name in names[:-1]], rotation=90, size=9.5)
    ax.set_yticklabels([label(name) for name in names[1:]], rotation=0, size=9.5)
    for ticks, shown in ((ax.get_xticklabels(), names[:-1]), (ax.get_yticklabels(), names[1:])):
        for tick, name in zip(ticks, shown, strict=True):
            tick.set_color(text_colour(family_of(name, families)))
    name_colours(
        ax, [family_of(name, families) for name in names], 1 + (-0.95 if roomy else 0.6) / height
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
