"""How well each method tells right answers from wrong: AUROC and AUPRC as dots with their intervals.

Every function takes a finished table and draws it. ``metrics`` is the table of ``metrics_table`` (model, dataset, method,
metric, value, level, low, high, n, n_cases, reason), cut to one model and one data set;
``families`` maps method to family.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from trustlab.plots.benchmark import one_run, runs_by_set, set_title
from trustlab.plots.style import (
    FAMILY_COLOURS,
    FAMILY_MARKERS,
    GREY,
    INK,
    axes_grid,
    axes_row,
    family_legend,
    family_of,
    inches,
    label,
    plot_marks,
)

NAMES = {"auroc": "AUROC", "auprc": "AUPRC"}
LEVEL_NAMES = {"pooled": "pooled over levels", "within": "within level (mean over levels)"}
ROW_INCHES = 0.27
MARKER_POINTS = {"o": 8.0, "s": 7.5, "^": 9.0, "D": 7.5, "X": 9.5, "P": 9.5}
"""Sizes at which the families' shapes look equally large."""
REPEATED: dict[str, Any] = {"ms": 6, "mfc": "#D0D0D0", "mec": "#9A9A9A", "mew": 1.0, "ls": ""}


def discrimination(
    metrics: pd.DataFrame,
    families: Mapping[str, str],
    metric: str = "auroc",
    level: str = "pooled",
    *,
    prevalence: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """AUROC or AUPRC (0 to 1) of each method as a dot with its 95 % interval, best on top, value and n at the right.

    The dashed line is chance: 0.5 for AUROC, ``prevalence`` (share of correct answers) for AUPRC where given.
    Methods without a value stand at the bottom with the reason. Raises ``ValueError`` for a metric, level or family
    that does not exist.
    """
    table = _measured(metrics, metric, level)
    table = table.loc[_order(table)]
    ax = ax or axes_row(5.2, ROW_INCHES * max(len(table), 3))[0]
    _dots(ax, table, families)
    _chance(ax, 0.5 if metric == "auroc" else prevalence)
    _value_axis(ax, table)
    ax.set_xlabel(f"{NAMES[metric]} {LEVEL_NAMES.get(level, f'at {level} % information')}, 0 to 1")
    _method_ticks(ax, table)
    family_legend(ax, [family_of(method, families) for method in table.index])
    return ax


def discrimination_pair(
    metrics: pd.DataFrame,
    families: Mapping[str, str],
    metric: str = "auroc",
    *,
    prevalence: Mapping[str, float] | None = None,
    axes: Sequence[Axes] | None = None,
) -> tuple[Axes, Axes]:
    """Discrimination pooled over levels and within level, side by side, both in the order of the value within level.

    The pooled value is repeated at the right as a small grey marker, so that the drop shows.
    ``prevalence`` gives chance for AUPRC by level, such as ``{"pooled": 0.6, "within": 0.6}``.
    Otherwise as :func:`discrimination`.
    """
    pooled, within = _measured(metrics, metric, "pooled"), _measured(metrics, metric, "within")
    order = _order(within, pooled)
    tables = {"pooled": pooled.reindex(order), "within": within.reindex(order)}
    left, right = (
        axes if axes is not None else axes_row(3.7, ROW_INCHES * max(len(order), 3), n=2, gap=1.25)
    )
    for ax, (level, table) in zip((left, right), tables.items(), strict=True):
        _dots(ax, table, families)
        _chance(ax, 0.5 if metric == "auroc" else (prevalence or {}).get(level))
        ax.set_title(LEVEL_NAMES[level].capitalize(), pad=20)
        ax.set_xlabel(f"{NAMES[metric]}, 0 to 1")
    for y, method in enumerate(order):
        before, after = tables["pooled"].loc[method, "value"], tables["within"].loc[method, "value"]
        if pd.notna(before) and pd.notna(after):
            right.plot([before, after], [y, y], color=REPEATED["mec"], lw=0.9, zorder=1.5)
            right.plot(
                before, y, marker=FAMILY_MARKERS[family_of(method, families)], **REPEATED, zorder=2
            )
    for ax in (left, right):
        _value_axis(ax, pd.concat(list(tables.values())))
    _method_ticks(left, tables["pooled"])
    right.set(yticks=range(len(order)), yticklabels=[], ylabel="")
    repeated = Line2D([], [], marker="o", label="pooled value, repeated", **REPEATED)
    family_legend(left, [family_of(method, families) for method in order], [repeated])
    return left, right


def discrimination_by_set(
    metrics: pd.DataFrame,
    families: Mapping[str, str],
    methods: Sequence[str],
    metric: str = "auroc",
    level: str = "within",
    axes: Sequence[Axes] | None = None,
) -> list[Axes]:
    """AUROC or AUPRC of a few ``methods``: a row of panels for each model, a column for each data set, on one scale.

    Drawn as :func:`discrimination` does, the methods in the order given. The title's n is the most cases of any row of
    that model and data set, so leave the accuracy in ``metrics``. Raises as :func:`discrimination`, and
    ``ValueError`` for a method that the table does not hold.
    """
    runs, n_sets = runs_by_set(metrics)
    tables = {pair: _measured(run, metric, level) for pair, run in runs.items()}
    if (
        lacking := [
            name for name in methods if any(name not in table.index for table in tables.values())
        ]
        or not methods
    ):
        raise ValueError(
            f"methods must be some of {list(next(iter(tables.values())).index)}; received {list(methods)} ({lacking})"
        )
    tables = {pair: table.loc[list(methods)] for pair, table in tables.items()}
    panels = (
        list(axes)
        if axes is not None
        else axes_grid(2.9, ROW_INCHES * max(len(methods), 3), len(tables) // n_sets, n_sets)
    )
    for i, (ax, ((model, dataset), table)) in enumerate(zip(panels, tables.items(), strict=True)):
        _dots(ax, table, families)
        _chance(ax, 0.5 if metric == "auroc" else None)
        _method_ticks(ax, table)
        set_title(
            ax,
            model,
            dataset,
            f"n {int(runs[model, dataset]['n_cases'].max()):,} cases",
            36,
            pad=18,
        )
        ax.set_xlabel(
            f"{NAMES[metric]} {LEVEL_NAMES.get(level, f'at {level} %').partition(' (')[0]}, 0 to 1"
        )
        if axes is None and i % n_sets:
            ax.set_yticklabels([])
        if axes is None and i < len(tables) - n_sets:
            ax.set(xlabel="")
            ax.tick_params(labelbottom=False)
    low = pd.concat(list(tables.values()))["low"].min()  # NaN where every value is withheld
    start = 0.4 if pd.isna(low) or low > 0.42 else max(low - 0.02, -0.01)
    for ax in panels:
        ax.set_xticks(np.arange(0, 11, 1 if start > 0.3 else 2) / 10)
        ax.set_xlim(start, 1.01)
    family_legend(panels[len(tables) - n_sets], [family_of(name, families) for name in methods])
    return panels


def _measured(metrics: pd.DataFrame, metric: str, level: str) -> pd.DataFrame:
    """One row per method: the values of ``metric`` at ``level``."""
    table = one_run(metrics)
    if metric not in NAMES:
        raise ValueError(f"metric is {metric!r}; allowed are {list(NAMES)}")
    mine = table.loc[table["metric"] == metric]
    if level not in set(mine["level"]):
        raise ValueError(
            f"level is {level!r}; for {metric} the table holds {list(dict.fromkeys(mine['level']))}"
        )
    mine = mine.loc[mine["level"] == level].set_index("method")
    if not mine.index.is_unique:
        raise ValueError(
            f"each method may have one {metric} at level {level!r}; received {list(mine.index)}"
        )
    return mine


def _order(*tables: pd.DataFrame) -> list[str]:
    """Methods from the highest value to the lowest, those without one last; ties by the next table's values, then by name."""
    values = pd.concat(
        [table["value"] for table in tables], axis=1, keys=range(len(tables))
    ).sort_index()
    return [
        str(name)
        for name in values.sort_values(
            list(values), ascending=False, kind="stable", na_position="last"
        ).index
    ]


def _dots(ax: Axes, table: pd.DataFrame, families: Mapping[str, str]) -> None:
    """A dot with whiskers, its value and n per row of ``table`` (index: method), first row on top; a reason where no value."""
    beside: dict[str, Any] = {
        "xycoords": ("axes fraction", "data"),
        "textcoords": "offset points",
        "va": "center_baseline",
    }
    rows: dict[Any, dict[str, Any]] = table.to_dict("index")
    for y, (method, row) in enumerate(rows.items()):
        family = family_of(method, families)
        if pd.isna(row["value"]):
            words = textwrap.wrap(
                _why(row["missing"]), int(inches(ax)[0] * 72 / 4.9), max_lines=2, placeholder=" …"
            )
            small = {
                "size": 8 if len(words) == 1 else 7,
                "color": GREY,
                "va": "center",
                "linespacing": 1.05,
            }
            paper = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
            text = ax.annotate(
                "\n".join(words), (0, y), (6, 0), **{**beside, **small}, bbox=paper, zorder=4
            )
            text.set_parse_math(False)
            continue
        colour, marker = FAMILY_COLOURS[family], FAMILY_MARKERS[family]
        ax.hlines(y, row["low"], row["high"], color=colour, lw=2, alpha=0.8, zorder=3)
        size = MARKER_POINTS[marker]
        plot_marks(
            ax, row["value"], y, row["n_cases"], color=colour, marker=marker, ms=size, zorder=4
        )
        ax.annotate(f"{row['value']:.2f}", (1, y), (36, 0), **beside, ha="right", size=9, color=INK)
        ax.annotate(f"{int(row['n']):,}", (1, y), (74, 0), **beside, ha="right", size=9, color=GREY)
    for words, x, colour in (("value", 36, INK), ("n", 74, GREY)):
        ax.annotate(
            words,
            (1, 1),
            (x, 4),
            "axes fraction",
            "offset points",
            ha="right",
            va="bottom",
            size=9,
            color=colour,
        )
    ax.set(ylim=(len(table) - 0.5, -0.5))


def _why(reason: object) -> str:
    words = reason if isinstance(reason, str) and reason else "no reason given"
    if words.startswith("fewer than"):
        return f"withheld: {words}"
    return f"missing: {words.removeprefix('no confidence: ')}"


def _chance(ax: Axes, value: float | None) -> None:
    if value is None:
        return
    ax.axvline(value, ls="--", lw=1.2, color=INK, zorder=1)
    place: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
    ax.annotate(
        f"chance {value:.2f}", (value, 1), (0, 4), **place, ha="center", va="bottom", size=9
    )


def _value_axis(ax: Axes, table: pd.DataFrame) -> None:
    """Limits that hold every value, interval and line drawn, with a margin, inside 0 to 1."""
    lines = [x for line in ax.lines for x in np.ravel(line.get_xdata())]
    held = pd.Series([*table["low"], *table["high"], *table["value"], *lines], dtype=float).dropna()
    if table["value"].isna().all():
        ax.set_xlim(-0.01, 1.01)
        return
    ax.set_xlim(max(held.min() - 0.04, -0.01), min(held.max() + 0.04, 1.01))


def _method_ticks(ax: Axes, table: pd.DataFrame) -> None:
    ax.set(
        yticks=range(len(table)),
        yticklabels=[label(str(method)) for method in table.index],
        ylabel="",
    )
    for tick, value in zip(ax.get_yticklabels(), table["value"], strict=True):
        tick.set_color(GREY if pd.isna(value) else INK)
