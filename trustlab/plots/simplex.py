"""The weights of ETI as a triangle: which configuration wins where, and how the ranking holds.

Each point is a weighting of accuracy, agreement (1 − CDR) and RDC that sums to 1: at a corner one of them counts alone, on the
opposite side not at all.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.lines import Line2D

from trustlab.metrics.estimate import MIN_CASES
from trustlab.plots.benchmark import need, runs_by_set, set_title
from trustlab.plots.style import FAMILY_COLOURS, FEW, GREY, INK, axes_grid, inches

WEIGHTS = ["w_accuracy", "w_agreement", "w_rdc"]
CORNERS = ("accuracy", "agreement\n(1 − CDR)", "RDC")
PRINTED = (0.4, 0.3, 0.3)
HEIGHT = np.sqrt(3) / 2
TIE = "#BDBDBD"
SIDE_INCHES = 2.5


def winners(sweep: pd.DataFrame) -> list[Axes]:
    """The configuration with the highest ETI at each weighting: a triangle for each model (rows) and data set (columns).

    ``sweep`` is ``weight_sweep`` at one level; the star is the printed weighting. Where no weighting is fair, since a part is
    missing, the panel says so. Raises ``ValueError`` for lacking columns or no rows.
    """
    need(sweep, ["model", "dataset", *WEIGHTS, "winner", "n_cases", "missing"])
    names = sorted(
        set(sweep["winner"]) - {"", "tie"},
        key=lambda name: (not name.startswith("one doctor"), name),
    )
    looks = _colours(names)
    runs, n_sets = runs_by_set(sweep)
    panels = _triangles(len(runs) // n_sets, n_sets)
    for ax, ((model, dataset), part) in zip(panels, runs.items(), strict=True):
        n_cases = int(part["n_cases"].min())
        set_title(ax, model, dataset, f"{_shares(part)}; n {n_cases} cases", 36, pad=10)
        x, y = _places(part)
        few = n_cases < MIN_CASES
        for name, (colour, marker) in looks.items():
            at = (part["winner"] == name).to_numpy()
            look: Any = {
                "facecolor": "white" if few else colour,
                "edgecolor": colour,
                "lw": 0.9 if few else 0,
            }
            ax.scatter(
                x[at], y[at], s=30, marker=marker, label=FEW if few else None, zorder=3, **look
            )
        _frame(ax, part)
    handles = [
        Line2D([], [], ls="", marker=m, ms=6.5, color=c, label=name)
        for name, (c, m) in looks.items()
        if _used(sweep, name)
    ]
    _legend(panels[len(runs) - n_sets], [*handles, _star()])
    return panels


def rank_stability(table: pd.DataFrame) -> list[Axes]:
    """Kendall's tau between the ranking under the printed weights and under each weighting: a triangle a data set.

    ``table`` is ``trust_tables.rank_stability`` at one level. Points where it has no value are
    crosses.
    """
    need(table, ["dataset", *WEIGHTS, "value", "n", "n_cases", "missing"])
    sets = list(dict.fromkeys(table["dataset"]))
    panels = _triangles(1, len(sets))
    scale = ScalarMappable(Normalize(-1, 1), cmap="PuOr")
    for ax, dataset in zip(panels, sets, strict=True):
        part = table[table["dataset"] == dataset]
        n_cases = int(part["n_cases"].min())
        told = f"{dataset}\n{int(part['n'].iloc[0])} rows ranked, n {n_cases} cases"
        ax.set_title(told, size=9.5, pad=10, parse_math=False)
        x, y = _places(part)
        known = part["value"].notna().to_numpy()
        colours, few = scale.to_rgba(part["value"][known].to_numpy(float)), n_cases < MIN_CASES
        look: Any = {
            "facecolor": "white" if few else colours,
            "edgecolor": colours if few else "#9A9A9A",
        }
        look |= {"lw": 1.6 if few else 0.3, "label": FEW if few else None}
        ax.scatter(x[known], y[known], s=30, zorder=3, **look)
        ax.scatter(x[~known], y[~known], s=12, marker="x", color=TIE, lw=0.8, zorder=3)
        _frame(ax, part.assign(missing=part["missing"]).loc[[not known.any()] * len(part)])
    bar = panels[-1].figure.colorbar(scale, ax=list(panels), shrink=0.8, pad=0.02)
    bar.set_label("Kendall's tau, −1 to 1")
    _legend(panels[0], [_star()])
    return panels


def _triangles(n_rows: int, n_columns: int) -> list[Axes]:
    panels = axes_grid(SIDE_INCHES, SIDE_INCHES * HEIGHT, n_rows, n_columns)
    for ax in panels:
        ax.set(xlim=(-0.04, 1.04), ylim=(-0.04 * HEIGHT, 1.04 * HEIGHT), aspect="equal")
        ax.axis("off")
    return panels


def _places(part: pd.DataFrame | Sequence[Sequence[float]]) -> tuple[np.ndarray, np.ndarray]:
    """Where the weightings lie: accuracy on top, agreement at the lower left, RDC at the lower right."""
    first, _, third = (
        part[WEIGHTS].to_numpy(float) if isinstance(part, pd.DataFrame) else np.asarray(part, float)
    ).T
    return third + first / 2, first * HEIGHT


def _frame(ax: Axes, part: pd.DataFrame) -> None:
    """Sides, names of the corners, the printed weighting, and why a triangle is empty."""
    ax.plot([0, 1, 0.5, 0], [0, 0, HEIGHT, 0], color="#B5B5B5", lw=1.0, zorder=1)
    x, y = _places([PRINTED])
    ax.plot(x, y, marker="*", ms=13, color="white", mec=INK, mew=1.1, ls="", zorder=5)
    small: Any = {
        "size": 8.5,
        "color": INK,
        "annotation_clip": False,
        "textcoords": "offset points",
    }
    for (px, py), name, (dx, dy), ha in (
        ((0.5, HEIGHT), CORNERS[0], (8, -2), "left"),
        ((0, 0), CORNERS[1], (0, -6), "center"),
        ((1, 0), CORNERS[2], (0, -6), "center"),
    ):
        ax.annotate(
            name, (px, py), (dx, dy), ha=ha, va="top" if ha == "center" else "center", **small
        )
    reasons = [r for r in dict.fromkeys(part["missing"]) if r]
    if reasons:
        words = textwrap.fill(reasons[0], 26)
        ax.annotate(
            words,
            (0.5, 0.3),
            ha="center",
            va="center",
            size=8.5,
            color=GREY,
            parse_math=False,
            zorder=6,
        )


def _shares(part: pd.DataFrame) -> str:
    """How much of the triangle each wins, in a line."""
    won = part.loc[part["winner"] != "", "winner"].value_counts(normalize=True)
    told = (
        f"{name} {'under 1' if share < 0.01 else f'{100 * share:.0f}'} %"
        for name, share in won.items()
    )
    return ", ".join(told) or "no winner"


def _colours(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Colour and shape of each winner: one doctor dark, the panel purple, others lighter; ties grey."""
    rest = iter(("#8A8A8A", "#5A5A5A", "#D8B4CC"))
    found = {}
    for name in names:
        if name == "one doctor":
            found[name] = INK, "o"
        elif name.startswith("panel") and "," not in name:
            found[name] = FAMILY_COLOURS["trust"], "h"
        else:
            found[name] = next(rest, GREY), "s"
    return found | {"tie": (TIE, "D")}


def _used(sweep: pd.DataFrame, name: str) -> bool:
    return bool((sweep["winner"] == name).any())


def _star() -> Line2D:
    return Line2D(
        [],
        [],
        ls="",
        marker="*",
        ms=12,
        color="white",
        mec=INK,
        mew=1.1,
        label="printed weights (0.4, 0.3, 0.3)",
    )


def _legend(ax: Axes, handles: Sequence[Line2D]) -> None:
    place: Any = {
        "loc": "upper left",
        "bbox_to_anchor": (0, -0.5 / inches(ax)[1]),
        "borderaxespad": 0,
        "borderpad": 0,
    }
    ax.legend(
        handles=list(handles),
        ncols=len(handles),
        frameon=False,
        handletextpad=0.1,
        columnspacing=1.0,
        **place,
    )
