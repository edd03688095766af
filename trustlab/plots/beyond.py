"""Accuracy beside mean confidence, set by set: does a model notice that it has left its world?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from trustlab.plots.style import (
    FAMILY_COLOURS,
    FAMILY_MARKERS,
    GREY,
    INK,
    axes_row,
    label,
    plot_marks,
)

STEP = 0.16


def beyond_world(
    table: pd.DataFrame, families: Mapping[str, str], titles: Mapping[str, str] | None = None
) -> Axes:
    """One block a set: accuracy in black, each method's mean confidence below it in its family's colour, percent.

    ``table`` is ``trustlab.studies.walkthrough.beyond_table``; bars are 95 % intervals over cases,
    and at the right stands how many answers are behind each mark. What has no value says why.
    ``titles`` renames sets.
    """
    sets = list(dict.fromkeys(table["set"]))
    lines = list(dict.fromkeys(table["method"]))
    (ax,) = axes_row(6.4, 0.55 + 0.235 * len(sets) * len(lines))
    small: Any = {
        "xycoords": ("axes fraction", "data"),
        "textcoords": "offset points",
        "size": 8.5,
        "color": GREY,
    }
    looks = {what: _look(what, families) for what in lines}
    for i, name in enumerate(sets):
        part: dict[Any, dict[str, Any]] = (
            table[table["set"] == name].set_index("method").to_dict("index")
        )
        for k, what in enumerate(lines):
            y, row, look = i + (k - (len(lines) - 1) / 2) * STEP, part[what], looks[what]
            value, low, high = (100 * float(row[c]) for c in ("value", "low", "high"))
            ax.annotate(f"{int(row['n']):,}", (1, y), (24, 0), ha="right", va="center", **small)
            if pd.isna(value):
                ax.annotate(
                    str(row["missing"]), (0, y), (6, 0), va="center", **small
                ).set_parse_math(False)
                continue
            ax.plot(
                [low, high],
                [y, y],
                color=look["color"],
                linewidth=1.6,
                solid_capstyle="butt",
                zorder=2,
            )
            plot_marks(ax, value, y, row["n_cases"], zorder=3, **look)
        if i:
            ax.axhline(i - 0.5, color="#D9D9D9", linewidth=0.8, zorder=1)
    ax.annotate(
        "n",
        (1, 1),
        (24, 4),
        "axes fraction",
        "offset points",
        ha="right",
        va="bottom",
        size=8.5,
        color=GREY,
    )
    ax.set(xlim=(-2, 102), ylim=(len(sets) - 0.5, -0.5))
    ax.set_xlabel("Accuracy, or mean confidence, when everything is told (percent)")
    ax.set_yticks(range(len(sets)), [str((titles or {}).get(name, name)) for name in sets])
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="y", visible=False)
    names = {what: label(what) if what else "accuracy" for what in lines}
    handles = [Line2D([], [], ls="", label=names[what], **looks[what]) for what in lines]
    ax.legend(
        handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.02), ncols=3, frameon=False
    )
    return ax


def _look(what: str, families: Mapping[str, str]) -> dict[str, Any]:
    family = families.get(what, "")
    if not what:
        return {"color": INK, "marker": "o", "ms": 6.5}
    return {"color": FAMILY_COLOURS[family], "marker": FAMILY_MARKERS[family], "ms": 6.5}
