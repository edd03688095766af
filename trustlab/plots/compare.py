"""Differences to a reference method: every method's, and those of the best of each family.

Finished tables of one model and data set in, Axes out. Colour and marker mean method family; a dark
edge is what holds after Holm's correction.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportReturnType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from trustlab.metrics.significance import cases_shown
from trustlab.plots.forest import checked_run, mark, name_rows, number_column, withheld, zero_line
from trustlab.plots.style import (
    FAMILY_COLOURS,
    FAMILY_LABELS,
    GREY,
    INK,
    axes_row,
    family_legend,
    family_of,
    label,
    mark_look,
)

NEED = [
    "method",
    "against",
    "metric",
    "level",
    "difference",
    "low",
    "high",
    "p_holm",
    "n",
    "n_cases",
]
NEED += ["cases_needed", "missing"]
HOLDS = 0.05
ROW_INCHES = 0.27
WORDS = {
    "auroc": "AUROC {level} minus that of {against} (right of 0: better)",
    "auprc": "AUPRC {level} minus that of {against} (right of 0: better)",
    "cv_group": "CV group minus that of {against}, points (left of 0: steadier)",
    "cv_sample": "CV sample minus that of {against}, points (left of 0: steadier)",
}
LOWER_FIRST = ("cv_group", "cv_sample")
CASES = "cases to\ntell apart"


def compared(
    table: pd.DataFrame,
    families: Mapping[str, str],
    metric: str = "auroc",
    level: str = "within",
    ax: Axes | None = None,
) -> Axes:
    """Each method's difference to the reference with its paired 95 % interval, best on top; the dashed line is no difference.

    ``table`` is that of ``compare_methods`` or ``cv_differences``. At the right ``n``, the answers compared, and how many cases
    like these would tell the observed difference from none. What has no value stands at the bottom with its reason. Raises
    ``ValueError`` for several runs, or a metric and level that the table does not hold.
    """
    mine = _chosen(table, metric, level)
    mine = mine.sort_values(
        "difference", ascending=metric in LOWER_FIRST, kind="stable", na_position="last"
    )
    rows = mine.to_dict("records")
    ax = ax or axes_row(5.2, ROW_INCHES * max(len(rows), 3))[0]
    for y, row in enumerate(rows):
        mark(ax, row, y, families, sure=row["p_holm"] < HOLDS, shift=row["difference"])
    _columns(ax, rows)
    _axis(ax, mine, metric, level, [*mine["difference"], *mine["low"], *mine["high"]])
    name_rows(ax, [label(row["method"]) for row in rows])
    for tick, row in zip(ax.get_yticklabels(), rows, strict=True):
        tick.set_color(GREY if pd.isna(row["difference"]) else INK)
    family_legend(ax, [family_of(row["method"], families) for row in rows], [_sure()])
    return ax


def best_of_families(
    table: pd.DataFrame, families: Mapping[str, str], ax: Axes | None = None
) -> Axes:
    """The best method of each family against the reference: its paired 95 % interval, and below it the one of the choice.

    ``table`` is that of ``best_of_families`` or ``steadiest_of_families``, one metric and level. The coloured interval takes the
    method as named beforehand; the grey one is of the family's best, chosen anew in each draw. At the right, beside ``n`` and
    the cases to tell apart, the percentage of draws in which this method would have been chosen. Raises as :func:`compared`.
    """
    metric, level = (str(table[name].iloc[0]) if len(table) else "" for name in ("metric", "level"))
    mine = _chosen(table, metric, level)
    rows = checked_run(mine, ["family", "low_chosen", "high_chosen", "chosen_in"]).to_dict(
        "records"
    )
    ax = ax or axes_row(5.2, 0.4 * max(len(rows), 3))[0]
    for y, row in enumerate(rows):
        if pd.isna(row["difference"]):
            withheld(ax, y, row["missing"])
            continue
        ax.hlines(y + 0.25, row["low_chosen"], row["high_chosen"], color=GREY, lw=1.4, zorder=2)
        mark(ax, row, y, families, sure=row["p_holm"] < HOLDS, shift=row["difference"])
    _columns(ax, rows)
    share = ["" if pd.isna(row["chosen_in"]) else f"{100 * row['chosen_in']:.0f} %" for row in rows]
    number_column(ax, {y: [text] for y, text in enumerate(share)}, "best in", 138)
    ends = ["difference", "low", "high", "low_chosen", "high_chosen"]
    _axis(ax, mine, metric, level, mine[ends].to_numpy(float).ravel().tolist())
    named = [(FAMILY_LABELS.get(row["family"], row["family"]), row["method"]) for row in rows]
    name_rows(ax, [f"{family}: {label(method)}" if method else family for family, method in named])
    anew = Line2D([], [], color=GREY, lw=1.4, label=" chosen anew")
    family_legend(
        ax, [row["family"] for row in rows if row["family"] in FAMILY_COLOURS], [_sure(), anew]
    )
    return ax


def _chosen(table: pd.DataFrame, metric: str, level: str) -> pd.DataFrame:
    checked = checked_run(table, NEED)
    mine = checked[checked["metric"].eq(metric) & checked["level"].eq(level)]
    if mine.empty or metric not in WORDS:
        held = checked[["metric", "level"]].drop_duplicates().to_numpy().tolist()
        raise ValueError(
            f"metric and level are {metric!r} and {level!r}; the table holds {held}, of {list(WORDS)} are drawn"
        )
    return mine


def _columns(ax: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    needed = [
        "" if pd.isna(row["difference"]) else cases_shown(row["cases_needed"]) for row in rows
    ]
    number_column(ax, {y: [f"{int(row['n']):,}"] for y, row in enumerate(rows)})
    number_column(ax, {y: [text] for y, text in enumerate(needed)}, CASES, 88)


def _axis(ax: Axes, mine: pd.DataFrame, metric: str, level: str, held: Sequence[float]) -> None:
    zero_line(ax, held)
    ax.locator_params(axis="x", nbins=6)
    levels = {"within": "within level", "pooled": "pooled over levels"}.get(level, f"at {level} %")
    ax.set_xlabel(WORDS[metric].format(level=levels, against=label(str(mine["against"].iloc[0]))))


def _sure() -> Line2D:
    look = {"color": GREY} | mark_look("#BDBDBD", sure=True)
    return Line2D([], [], ls="", marker="o", ms=7, label="p < 0.05 (Holm)", **look)
