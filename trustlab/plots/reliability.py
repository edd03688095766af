"""Does a confidence of 80 percent mean right in 80 of 100? One small panel per method, confidence against accuracy."""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from trustlab.plots.benchmark import need
from trustlab.plots.style import (
    FAMILY_COLOURS,
    FAMILY_MARKERS,
    GREY,
    INK,
    family_of,
    label,
    panel_grid,
    plot_marks,
    text_colour,
)


def reliability(
    table: pd.DataFrame,
    families: Mapping[str, str] | None = None,
    *,
    curves: pd.DataFrame | None = None,
    columns: int = 4,
    axes: Sequence[Axes] | None = None,
) -> list[Axes]:
    """Accuracy against mean confidence (percent), one panel per method and one point per bin of answers.

    ``table`` has the columns method, confidence, value (the accuracy), n, n_cases, low, high (all but
    the counts in 0 to 1; NaN where unknown). On the diagonal,
    confidence is what it says. A point's area grows with its answers: say so in the caption's note.
    ``curves`` (method, confidence, value, low, high in 0 to 1) adds a rising curve without
    bins, in grey with its band, in place of the line between the points. At most ``columns`` panels
    stand in a row.
    """
    need(table, ["method", "confidence", "value", "n", "n_cases", "low", "high"])
    methods = list(dict.fromkeys(table["method"]))
    panels = list(axes) if axes is not None else panel_grid(len(methods), columns)
    if len(panels) < len(methods):
        raise ValueError(f"{len(methods)} methods need as many axes; received {len(panels)}")
    for ax, method in zip(panels, methods, strict=False):
        rows = table.loc[table["method"] == method].sort_values("confidence")
        family = family_of(method, families) if families is not None else "token"
        x, y = 100 * rows["confidence"], 100 * rows["value"]
        ax.plot([0, 100], [0, 100], ls="--", lw=1.1, color=GREY, zorder=1)
        if curves is not None:
            _curve(ax, curves.loc[curves["method"] == method])
        else:
            ax.plot(x, y, color=FAMILY_COLOURS[family], lw=1.4, zorder=3)
        ax.vlines(
            x,
            100 * rows["low"],
            100 * rows["high"],
            color=FAMILY_COLOURS[family],
            lw=1.4,
            alpha=0.75,
            zorder=2,
        )
        size = np.sqrt(12 + 110 * rows["n"] / max(rows["n"].max(), 1))
        look = {
            "color": FAMILY_COLOURS[family],
            "marker": FAMILY_MARKERS[family],
            "zorder": 4,
            "clip_on": False,
        }
        for point in zip(x, y, rows["n_cases"], size, strict=True):
            plot_marks(ax, *point[:3], ms=point[3], **look)
        title = "\n".join(textwrap.wrap(label(method), 21))
        ax.set_title(
            f"{title}\nn {int(rows['n'].sum()):,}",
            size=10,
            color=text_colour(family) if families is not None else INK,
        )
        ax.set(
            xlim=(-4, 104), ylim=(-4, 104), xticks=[0, 50, 100], yticks=[0, 50, 100], aspect="equal"
        )
        ax.set(xlabel="Mean confidence (percent)", ylabel="Accuracy (percent)")
    for ax in panels if axes is None else []:
        ax.label_outer(remove_inner_ticks=True)
    return panels[: len(methods)]


def _curve(ax: Axes, rows: pd.DataFrame) -> None:
    """The rising curve and its band, behind the points; nothing where the method has none."""
    known = rows.dropna(subset=["confidence", "value"]).sort_values("confidence")
    x = 100 * known["confidence"]
    ax.fill_between(
        x, 100 * known["low"], 100 * known["high"], color="#BFBFBF", alpha=0.55, lw=0, zorder=1.2
    )
    ax.plot(x, 100 * known["value"], color=INK, lw=1.2, zorder=1.5)
