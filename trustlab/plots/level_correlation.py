"""Correlation of accuracy and mean confidence over the levels, each value before what chance alone would give.

``metrics`` is the table of ``metrics_table``, cut to one model and one data set; ``families`` maps method to family. The grey
band and its line are the table's ``chance_low``, ``chance_high`` and ``chance``: the same
accuracies beside a confidence that merely rises, row by row, since methods that miss answers have
accuracies of their own. Pearson's axis is stretched towards 1 (Fisher's z), where nearly all values
lie.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from trustlab.plots.auroc import ROW_INCHES, _dots, _method_ticks, _order
from trustlab.plots.benchmark import need, one_run
from trustlab.plots.style import GREY, INK, axes_row, family_legend, family_of, inches

NAMES = {"pearson": "Pearson's r", "spearman": "Spearman's rho"}
BAND = "#DDDDDD"
CHANCE = ["chance", "chance_low", "chance_high"]
NEAREST = 0.9995
"""How near to 1 Pearson's axis goes."""
TICKS = [-0.99, -0.9, -0.5, 0, 0.5, 0.9, 0.97, 0.99, 0.999]


def level_correlation(
    metrics: pd.DataFrame,
    families: Mapping[str, str],
    metric: str = "pearson",
    *,
    unordered: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Pearson's r or Spearman's rho (-1 to 1) of each method as a dot with its 95 % interval, highest on top, n at the right.

    Grey: the middle 95 % of what a confidence that merely rises gives with the same accuracies, the
    line its median (for Spearman all alike: a line). ``unordered``, for Spearman: the value that at
    most 5 % of series in any order reach in size, dotted; the high end of
    :func:`~trustlab.metrics.correlation.unordered_band`. Methods without a value stand at the bottom with the
    reason. Raises ``ValueError`` for another metric, several runs, or a method without a family.
    """
    table = _measured(metrics, metric)
    table = table.loc[_order(table)]
    ax = ax or axes_row(5.2, ROW_INCHES * max(len(table), 3))[0]
    _panel(ax, table, families, metric, unordered)
    _method_ticks(ax, table)
    _legend(ax, table, families, unordered)
    return ax


def level_correlations(
    metrics: pd.DataFrame,
    families: Mapping[str, str],
    *,
    unordered: float | None = None,
    axes: Sequence[Axes] | None = None,
) -> tuple[Axes, Axes]:
    """Pearson's r and Spearman's rho side by side, both in the order of Pearson's r; otherwise as :func:`level_correlation`."""
    tables = {metric: _measured(metrics, metric) for metric in NAMES}
    order = _order(*tables.values())
    left, right = (
        axes if axes is not None else axes_row(3.7, ROW_INCHES * max(len(order), 3), n=2, gap=1.25)
    )
    for ax, (metric, table) in zip((left, right), tables.items(), strict=True):
        _panel(
            ax, table.reindex(order), families, metric, unordered if metric == "spearman" else None
        )
    _method_ticks(left, tables["pearson"].reindex(order))
    right.set(yticks=range(len(order)), yticklabels=[], ylabel="")
    _legend(left, tables["pearson"].reindex(order), families, unordered)
    return left, right


def _measured(metrics: pd.DataFrame, metric: str) -> pd.DataFrame:
    """One row per method: its correlation over the levels."""
    if metric not in NAMES:
        raise ValueError(f"metric is {metric!r}; allowed are {list(NAMES)}")
    table = one_run(metrics)
    need(table, CHANCE)
    mine = table.loc[(table["metric"] == metric) & (table["level"] == "across")].set_index("method")
    if not len(mine) or not mine.index.is_unique:
        raise ValueError(
            f"each method needs one {metric} across the levels; received {list(mine.index)}"
        )
    return mine


def _panel(
    ax: Axes, table: pd.DataFrame, families: Mapping[str, str], metric: str, unordered: float | None
) -> None:
    _bands(ax, table)
    if unordered is not None:
        for x in (-unordered, unordered):
            ax.axvline(x, ls=":", lw=1.4, color=INK, zorder=1.5)
    _dots(ax, table, families)
    _axis(ax, table, metric)
    ax.set_title(NAMES[metric], pad=20)
    ax.set_xlabel(
        f"{NAMES[metric]}, {'−1 to 1' if metric == 'spearman' else 'axis stretched towards 1'}"
    )
    if metric == "spearman" and table["chance"].notna().any():
        above: dict[str, Any] = {
            "xycoords": ("data", "axes fraction"),
            "textcoords": "offset points",
            "va": "bottom",
        }
        ends = [f"{rho:.2g}".replace("-", "−") for rho in table["chance"].agg(["min", "max"])]
        words = f"any rising confidence: {' to '.join(dict.fromkeys(ends))}"
        ax.annotate(words, (1, 1), (0, 4), **above, ha="right", size=9, color=GREY)


def _axis(ax: Axes, table: pd.DataFrame, metric: str) -> None:
    """Limits that hold every value, interval and band; for Spearman always -1 to 1."""
    held = table[["value", "low", "high", *CHANCE]].stack().dropna()
    if metric == "spearman" or not len(held):
        ax.set_xlim(-1.04, 1.04)
        return
    ax.set_xscale(
        "function", functions=(lambda r: np.arctanh(np.clip(r, -NEAREST, NEAREST)), np.tanh)
    )
    low = np.tanh(np.arctanh(max(held.min(), -NEAREST)) - 0.25)
    ax.set_xlim(max(low, -NEAREST), NEAREST if held.max() > 0.998 else 0.9985)
    ax.xaxis.set_major_locator(FixedLocator(TICKS))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda r, _: f"{r:.4g}".replace("-", "−")))
    ax.xaxis.set_minor_locator(NullLocator())


def _bands(ax: Axes, table: pd.DataFrame) -> None:
    """What chance gives behind the rows, one rectangle for neighbours that share it."""
    known = [
        (y, *row) for y, row in enumerate(table[CHANCE].itertuples(index=False)) if pd.notna(row[0])
    ]
    for (middle, low, high), rows in groupby(known, key=lambda row: row[1:]):
        at = [row[0] for row in rows]
        ends = min(at) - 0.5, max(at) + 0.5
        ax.fill_betweenx(ends, low, high, color=BAND, lw=0, zorder=0.6)
        ax.vlines(middle, *ends, color=GREY, lw=1.1, zorder=0.8)


def _legend(
    ax: Axes, table: pd.DataFrame, families: Mapping[str, str], unordered: float | None
) -> None:
    """The families, and under them what stands behind the values."""
    family_legend(ax, [family_of(method, families) for method in table.index])
    behind = []
    if table["chance"].notna().any():
        label = "a confidence that merely rises: 95 %, and"
        behind.append(Line2D([], [], color=BAND, marker="s", ms=10, ls="", label=label))
        look: Any = {"color": GREY, "marker": "|", "ms": 11, "mew": 1.3, "ls": ""}
        behind.append(Line2D([], [], **look, label="its median"))
    if unordered is not None:
        behind.append(
            Line2D(
                [],
                [],
                color=INK,
                lw=1.4,
                ls=":",
                label=" reached by at most 5 % of unordered series",
            )
        )
    if behind:
        ax.add_artist(ax.get_legend())
        place: Any = {
            "loc": "upper left",
            "bbox_to_anchor": (0, -0.82 / inches(ax)[1]),
            "borderaxespad": 0,
            "borderpad": 0,
        }
        ax.legend(
            handles=behind,
            ncols=len(behind),
            frameon=False,
            handletextpad=0.3,
            columnspacing=0.8,
            handlelength=1.3,
            **place,
        )
