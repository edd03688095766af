"""What is gained by answering only when sure: error among the answers given, against the share of answers given."""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from trustlab.metrics.estimate import MIN_CASES
from trustlab.plots.benchmark import LINES, need
from trustlab.plots.style import (
    FAMILY_COLOURS,
    GREY,
    axes_row,
    family_of,
    label,
    plot_marks,
    text_colour,
)

REFERENCES: dict[str, dict[str, Any]] = {
    "any order": {"ls": "--", "label": "Answers in any order"},
    "oracle": {"ls": ":", "label": "Right answers first (oracle)"},
}


def risk_coverage(
    table: pd.DataFrame,
    families: Mapping[str, str],
    methods: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Wrong answers among those given (percent) against answers given, surest first (percent), a line a method with its band.

    ``table`` is that of ``risk_coverage_table`` for one model and data set, values in 0 to 1; ``methods`` those drawn, in this
    order, by default all: a handful stays legible. Lower is better. Grey: answers in any order, and right ones first. Colour
    says the family, dashes the method within it; a hollow mark where the answers given are of fewer
    than ten cases. Methods without a curve are named under the axis, and where there is none at
    all the reason is told. Raises ``ValueError`` for several runs or a method that the table does not hold.
    """
    need(
        table,
        [
            "model",
            "dataset",
            "method",
            "role",
            "coverage",
            "value",
            "low",
            "high",
            "n",
            "n_cases",
            "missing",
        ],
    )
    runs = table[["model", "dataset"]].drop_duplicates()
    if len(runs) > 1:
        raise ValueError(
            f"one figure shows one model and data set; received {runs.to_numpy().tolist()}"
        )
    mine = table.loc[table["role"] == "method"]
    held = list(dict.fromkeys(mine["method"]))
    shown = held if methods is None else list(methods)
    if lacking := [name for name in shown if name not in held]:
        raise ValueError(f"no method {lacking}; the table holds {held}")
    ax = ax or axes_row(6.2, 4.4)[0]
    for name, look in REFERENCES.items():
        rows = table.loc[(table["role"] == "reference") & (table["method"] == name)].sort_values(
            "coverage"
        )
        if len(rows):
            ax.plot(
                100 * rows["coverage"], 100 * rows["value"], color=GREY, lw=1.5, zorder=1.5, **look
            )
    seen: dict[str, int] = {}
    undrawn, colours = [], []
    for method in shown:
        rows = mine.loc[mine["method"] == method].dropna(subset="value").sort_values("coverage")
        if not len(rows):
            undrawn.append(label(method))
            continue
        family = family_of(method, families)
        dashes = LINES[seen.setdefault(family, 0) % len(LINES)]
        seen[family] += 1
        x, colour = 100 * rows["coverage"], FAMILY_COLOURS[family]
        ax.fill_between(
            x, 100 * rows["low"], 100 * rows["high"], color=colour, alpha=0.1, lw=0, zorder=1
        )
        ax.plot(
            x, 100 * rows["value"], color=colour, ls=dashes, lw=2, zorder=3, label=label(method)
        )
        few = rows[rows["n_cases"] < MIN_CASES]
        spot = {"color": colour, "marker": "o", "ms": 5, "zorder": 3.5}
        plot_marks(ax, 100 * few["coverage"], 100 * few["value"], few["n_cases"], **spot)
        colours.append(text_colour(family))
    ax.set(xlim=(0, 101), xticks=range(0, 101, 20), ylim=(-1, None))
    ax.set(
        xlabel="Answers given, surest first (percent)",
        ylabel="Wrong among the answers given (percent)",
    )
    references = len(ax.get_legend_handles_labels()[1]) - len(colours)
    place: Any = {
        "loc": "upper left",
        "bbox_to_anchor": (1.02, 1),
        "borderaxespad": 0,
        "frameon": False,
        "handlelength": 2.6,
    }
    known = table.dropna(subset="value")
    if len(known):
        behind = (
            f"at 100 %: n {int(known['n'].max()):,} answers,\n{int(known['n_cases'].max()):,} cases"
        )
        ax.legend(
            labelcolor=[GREY] * references + colours,
            title=behind,
            title_fontsize=10,
            alignment="left",
            **place,
        )
    if not colours:
        why = str(mine.loc[mine["method"].isin(shown), "missing"].iloc[0])
        words = textwrap.fill(why if why.startswith("no confidence") else f"withheld: {why}", 60)
        ax.set_ylim(0, 100)
        ax.annotate(
            words,
            (0.5, 0.45),
            xycoords="axes fraction",
            ha="center",
            color=GREY,
            size=9.5,
            backgroundcolor="white",
        )
    if undrawn:
        words = textwrap.fill(f"No curve: {', '.join(undrawn)}", 90)
        ax.annotate(
            words, (0, 0), (0, -46), "axes fraction", "offset points", color=GREY, size=9, va="top"
        )
    return ax
