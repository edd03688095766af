"""Published tables looked at: printed beside recomputed p-values, what stays significant, chance bands, sampling error.

Finished tables of :mod:`trustlab.studies.published_tables` in, Axes out; nothing is computed. Colour and marker mean method
family; p-values are two-sided.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from trustlab.metrics.audit import DATASETS, MODELS
from trustlab.plots.style import (
    FAMILY_COLOURS,
    FAMILY_MARKERS,
    GREY,
    INK,
    axes_row,
    family_legend,
    label,
)

ROW = 0.27
"""Inches of a row with 9-point text."""
COLUMNS = (98, 190, 250)
"""Points from the axes' right edge to the right edge of each column of numbers beside AUROC differences."""


def auroc_differences(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """MedConf's printed AUROC minus each baseline's, with two 95 % intervals: every answer counts, or every case once.

    ``table`` is that of ``auroc_differences``. At the right, the cases it would take to show the difference under
    the two readings, beside the cases there were.
    """
    rows = table[table["unit"] == "case"].to_dict("records")
    inner = table[table["unit"] == "answer"].to_dict("records")
    ax = ax or axes_row(4.6, ROW * 1.15 * len(rows))[0]
    for y, (case, answer) in enumerate(zip(rows, inner, strict=True)):
        colour, marker = FAMILY_COLOURS[case["family"]], FAMILY_MARKERS[case["family"]]
        ax.plot([case["low"], case["high"]], [y, y], color=colour, lw=1.3, zorder=2)
        ax.plot(
            [answer["low"], answer["high"]],
            [y, y],
            color=colour,
            lw=4.2,
            alpha=0.75,
            solid_capstyle="butt",
            zorder=3,
        )
        ax.plot(case["difference"], y, marker, ms=7.5, color=colour, mec="white", mew=0.8, zorder=4)
        place: Any = {
            "xycoords": ("axes fraction", "data"),
            "textcoords": "offset points",
            "va": "center",
            "ha": "right",
            "size": 9,
        }
        for shift, number in zip(
            COLUMNS, (answer["cases"], case["cases"], case["n_cases"]), strict=True
        ):
            ax.annotate(f"{number:,.0f}" if pd.notna(number) else "–", (1, y), (shift, 0), **place)
    heads = zip(
        COLUMNS,
        (
            "cases needed, if\neach answer counts",
            "cases needed, if\neach case once",
            "cases\nthere were",
        ),
        strict=True,
    )
    for shift, words in heads:
        ax.annotate(
            words,
            (1, 1),
            (shift, 4),
            "axes fraction",
            "offset points",
            ha="right",
            size=8.5,
            color=GREY,
        )
    ax.axvline(0, color=INK, lw=1.1, ls="--", zorder=1)
    ax.set_yticks(range(len(rows)), [_cell(row) for row in rows], size=9)
    ax.set(ylim=(len(rows) - 0.5, -0.5), xlabel="MedConf's AUROC minus the baseline's")
    more = [
        Line2D([], [], color=INK, lw=4.2, alpha=0.75, label="  each answer counts"),
        Line2D([], [], color=INK, lw=1.3, label="  each case once"),
    ]
    family_legend(ax, [row["family"] for row in rows], more)
    return ax


def _cell(row: dict[str, Any]) -> str:
    return f"{_short(row['method'])}, {DATASETS[row['dataset']]}, {MODELS[row['model']]}"


def _short(method: str) -> str:
    """A method's name without the note that tells one formula from another: the paper prints one of each."""
    return label(method).partition(" (as printed")[0]
