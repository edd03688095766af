"""Draws the weights of ETI as a triangle. Each point is a weighting of accuracy, agreement (1 −
CDR) and RDC that sums to 1."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import cycle, product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from trustlab.metrics.estimate import MIN_CASES
from trustlab.metrics.schema import column_of, need
from trustlab.reports.plots import style

WEIGHTS = ["w_accuracy", "w_agreement", "w_rdc"]
PRINTED = (0.4, 0.3, 0.3)
SIDE, RIGHT, ABOVE = 2.5, 1.3, 0.95
"""Inches of a triangle's side, and free at its right and above it."""
HEIGHT = np.sqrt(3) / 2  # of a triangle whose sides are 1
SMALL = 8.5
STAR_POINTS = 12.5
OTHERS = [(style.FAMILY_COLOURS["trust"], "h")]
OTHERS += [(colour, "s") for colour in ("#8A8A8A", "#5A5A5A", "#D8B4CC")]


class Corner(NamedTuple):
    """A corner of the triangle: its words, its place, and where they stand beside it (points)."""

    words: str
    place: tuple[float, float]
    shift: tuple[float, float]
    across: str
    down: str


CORNERS = (
    Corner("accuracy", (0.5, HEIGHT), (8, -2), "left", "center"),
    Corner("agreement\n(1 − CDR)", (0, 0), (0, -6), "center", "top"),
    Corner("RDC", (1, 0), (0, -6), "center", "top"),
)


def star(places: tuple[Any, Any], label: str) -> Line2D:
    """The mark of the printed weighting."""
    return Line2D(
        *places,
        label=label,
        ls="",
        marker="*",
        ms=STAR_POINTS,
        color="white",
        mec=style.INK,
        mew=1.1,
        zorder=5,
    )


def winners(sweep: pd.DataFrame) -> list[Axes]:
    """Who has the highest ETI at each weighting: a triangle a model (rows) and data set (columns).
    ``sweep`` is ``weight_sweep`` at one level; the star is the printed weighting. Where no
    weighting is fair, since a part is missing, the panel says so. ``ValueError`` for lacking
    columns, no rows, or a model without rows on a data set."""
    need(sweep, ["model", "dataset", *WEIGHTS, "winner", "n_cases", "missing"])
    models = list(dict.fromkeys(sweep["model"]))
    sets = list(dict.fromkeys(sweep["dataset"]))
    runs = dict(list(sweep.groupby(["model", "dataset"], sort=False)))
    n = len(models) * len(sets)
    if not len(sweep) or len(runs) < n:
        raise ValueError(
            f"every model needs rows on every data set; received {list(runs)}"
        )
    looks = _looks(column_of(sweep, "winner"))
    panels = style.axes_grid(SIDE, SIDE * HEIGHT, n, RIGHT, ABOVE, len(sets))
    for ax, (model, dataset) in zip(panels, product(models, sets), strict=True):
        part = runs[model, dataset]
        n_cases = float(column_of(part, "n_cases").min())
        title = f"{dataset}\n{model}\n{_shares(part)}; n {n_cases:.0f} cases"
        ax.set_title(title, size=9.5, pad=10, parse_math=False)
        for name, (colour, marker) in looks.items():
            x, y = _places(part.loc[part["winner"] == name, WEIGHTS])
            is_few = n_cases < MIN_CASES
            ax.scatter(
                x,
                y,
                s=30,
                marker=marker,
                facecolor="white" if is_few else colour,
                edgecolor=colour,
                lw=0.9 if is_few else 0,
                label=style.FEW if is_few else "",
                zorder=3,
            )
        _frame(ax, part)
    handles = [
        Line2D([], [], ls="", marker=marker, ms=6.5, color=colour, label=name)
        for name, (colour, marker) in looks.items()
    ]
    handles.append(star(([], []), "printed weights (0.4, 0.3, 0.3)"))
    style.legend_below(panels[-len(sets)], handles, down=0.5)
    return panels


def _places(weights: pd.DataFrame | Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Where weightings lie: accuracy on top, agreement at the lower left, RDC at the right."""
    first, _, third = np.asarray(weights, dtype=float).T
    return third + first / 2, first * HEIGHT


def _frame(ax: Axes, part: pd.DataFrame) -> None:
    """Sides, names of the corners, the printed weighting, and why a triangle is empty."""
    ax.set(xlim=(-0.04, 1.04), ylim=(-0.04 * HEIGHT, 1.04 * HEIGHT), aspect="equal")
    ax.axis("off")
    ax.plot([0, 1, 0.5, 0], [0, 0, HEIGHT, 0], color="#B5B5B5", lw=1.0, zorder=1)
    ax.add_line(star(_places([PRINTED]), ""))
    for corner in CORNERS:
        ax.annotate(
            corner.words,
            corner.place,
            corner.shift,
            textcoords="offset points",
            color=style.INK,
            ha=corner.across,
            va=corner.down,
            size=SMALL,
            annotation_clip=False,
        )
    reasons = [reason for reason in part["missing"] if reason]
    if reasons:
        ax.annotate(
            textwrap.fill(reasons[0], 26),
            (0.5, 0.3),
            ha="center",
            va="center",
            parse_math=False,
            zorder=6,
            color=style.GREY,
            size=SMALL,
            annotation_clip=False,
        )


def _shares(part: pd.DataFrame) -> str:
    """How much of the triangle each wins, in a line."""
    won = part.loc[part["winner"] != "", "winner"].value_counts(normalize=True)
    percent = {
        n: "under 1" if share < 0.01 else f"{100 * share:.0f}"
        for n, share in won.items()
    }
    return (
        ", ".join(f"{name}: {share} %" for name, share in percent.items())
        or "no winner"
    )


def _looks(won: pd.Series) -> dict[str, tuple[str, str]]:
    """Colour and shape of each winner: one doctor dark, the panel purple, others lighter, ties."""
    names = sorted(set(won) - {"", "one doctor", "tie"})
    looks = dict(zip(names, cycle(OTHERS), strict=False))
    if "one doctor" in set(won):
        looks = {"one doctor": (style.INK, "o"), **looks}
    if "tie" in set(won):
        looks["tie"] = ("#BDBDBD", "D")
    return looks
