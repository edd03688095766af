"""Accuracy beside mean confidence, set by set: does a model notice that it has left its world?"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes

from trustlab.plots.style import FAMILY_COLOURS, FAMILY_MARKERS, INK, axes_row, label

STEP = 0.16


def beyond_world(table: pd.DataFrame, families: Mapping[str, str], titles: Mapping[str, str] | None = None) -> Axes:
    """One block a set: accuracy in black, each method's mean confidence below it in its family's colour, percent.

    ``table`` is ``trustlab.experiments.beyond.beyond_table``; bars are 95 % intervals over cases. ``titles`` renames sets.
    """
    sets = list(dict.fromkeys(table["set"]))
    lines = list(dict.fromkeys(table["what"]))
    (ax,) = axes_row(6.4, 0.55 + 0.235 * len(sets) * len(lines))
    ticks = []
    for i, name in enumerate(sets):
        part = table[table["set"] == name].set_index("what")
        for k, what in enumerate(lines):
            y = i + (k - (len(lines) - 1) / 2) * STEP
            value, low, high = (100 * float(part.at[what, c]) for c in ("value", "low", "high"))
            family = families.get(what, "")
            colour = INK if what == "accuracy" else FAMILY_COLOURS[family]
            ax.plot([low, high], [y, y], color=colour, linewidth=1.6, solid_capstyle="butt", zorder=2)
            marker = "o" if what == "accuracy" else FAMILY_MARKERS[family]
            shown = "accuracy" if what == "accuracy" else label(what)
            ax.plot([value], [y], marker, color=colour, markersize=6.5, zorder=3, label=shown if i == 0 else None)
        ticks.append(f"{(titles or {}).get(name, name)}\n(n = {int(part['n'].iloc[0])})")
        if i:
            ax.axhline(i - 0.5, color="#D9D9D9", linewidth=0.8, zorder=1)
    ax.set(xlim=(-2, 102), ylim=(len(sets) - 0.5, -0.5), xlabel="Accuracy, or mean confidence, when everything is told (percent)")
    ax.set_yticks(range(len(sets)), ticks)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="y", visible=False)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False)
    return ax
