"""Agreement of samples against how common the answered condition is, right and wrong answers.

The table is that of ``trustlab.studies.walkthrough``, which also computes the means and intervals
drawn here. A mean of fewer than ten cases is hollow.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false, reportPrivateImportUsage=false

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from trustlab.plots.auroc import MARKER_POINTS
from trustlab.plots.style import (
    FAMILY_COLOURS,
    FAMILY_MARKERS,
    GREY,
    axes_row,
    plot_marks,
    text_colour,
)
from trustlab.studies.walkthrough import (
    MIN_ANSWERS,
    prior_means,
)


def agreement_by_prior(
    table: pd.DataFrame, axes: Sequence[Axes] | None = None
) -> tuple[Axes, Axes]:
    """PoC against how common the answered condition is (its share of the knowledge table's priors, log scale), percent.

    ``table`` is ``agreement_table``. A point is an answer; large markers are means by fifths of the prior with
    95 % intervals. Right answers stand in the left panel, wrong ones in the right.
    """
    _one(table, ["case_id", "level", "model", "prior", "poc", "correct"])
    known = table.dropna(subset=["prior", "poc"])
    means = prior_means(table)
    panels = tuple(axes) if axes is not None else tuple(axes_row(4.4, 3.7, n=2, gap=0.35))
    for ax, correct, words in zip(panels, (1, 0), ("Right", "Wrong"), strict=True):
        rows = known[known["correct"] == correct]
        _agreement(ax, rows, means[means["correct"] == correct])
        ax.set_title(f"{words} answers (n {len(rows):,})", pad=22)
        _prior_axis(ax, known["prior"])
        ax.set(ylim=(0, 106), yticks=range(0, 101, 20))
    panels[0].set(ylabel="Samples that agree: PoC (percent)")
    panels[1].tick_params(labelleft=False)
    left_out = len(table) - len(known)
    note = "Points are moved slightly apart. Large markers: means by fifth of the prior, with n above, from 10 answers on."
    note += f" Answers not drawn, prior or PoC unknown: {left_out:,}." if left_out else ""
    _below(panels[0], textwrap.fill(note, 125))
    return panels[0], panels[1]


def _one(table: pd.DataFrame, columns: Sequence[str]) -> None:
    """Refuse a table without rows or columns needed, or of several models."""
    lacking = [name for name in columns if name not in table.columns]
    if lacking or not len(table):
        raise ValueError(
            f"the table needs rows and the columns {list(columns)}; it has {len(table)} rows and lacks {lacking}"
        )
    if table["model"].nunique() > 1:
        raise ValueError(f"one figure shows one model; received {table['model'].unique().tolist()}")


def _below(ax: Axes, words: str) -> None:
    """A remark in small grey print under the axes' label."""
    ax.annotate(
        words, (0, 0), (0, -46), "axes fraction", "offset points", color=GREY, size=9, va="top"
    )


def _agreement(ax: Axes, rows: pd.DataFrame, means: pd.DataFrame) -> None:
    colour = FAMILY_COLOURS["consistency"]
    rng = np.random.default_rng(0)
    x = 100 * rows["prior"] * np.exp(rng.uniform(-0.045, 0.045, len(rows)))
    y = 100 * rows["poc"] + rng.uniform(-1.3, 1.3, len(rows))
    ax.scatter(x, y, s=14, color=colour, alpha=0.35, linewidth=0, zorder=2)
    centre = 100 * means["prior"]
    dark = text_colour("consistency")
    ax.vlines(centre, 100 * means["low"], 100 * means["high"], color=dark, lw=2, zorder=3)
    size = MARKER_POINTS[FAMILY_MARKERS["consistency"]]
    ax.plot(centre, 100 * means["value"], color=dark, lw=1.5, zorder=3.5)
    plot_marks(
        ax,
        centre,
        100 * means["value"],
        means["n_cases"],
        color=dark,
        marker="s",
        ms=size,
        zorder=4,
    )
    for px, n in zip(centre, means["n"], strict=True):
        where = ax.get_xaxis_transform()
        ax.annotate(
            f"n {n:,}",
            (px, 1),
            (0, 4),
            where,
            "offset points",
            ha="center",
            va="bottom",
            size=8.5,
            color=GREY,
        )
    if not len(means):
        words = f"no fifth of the prior\nhas {MIN_ANSWERS} answers"
        ax.annotate(words, (0.5, 0.06), xycoords="axes fraction", ha="center", color=GREY)


def _prior_axis(ax: Axes, priors: pd.Series) -> None:
    """A log axis in percent, with a tick at round numbers."""
    low, high = (100 * priors.min(), 100 * priors.max()) if len(priors) else (0.1, 10)
    low, high = low / 1.2, high * 1.2
    round_numbers = [a * 10.0**b for b in range(-4, 3) for a in (1, 1.5, 2, 3, 5, 7)]
    within = [t for t in round_numbers if low <= t <= high]
    ticks = (
        within if len(within) <= 7 else [t for t in within if f"{t:e}"[:3] in ("1.0", "2.0", "5.0")]
    )
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.set(xlim=(low, high), xlabel="Prior share of the answer (percent, log scale)")
