"""What does telling right from wrong cost? AUROC against the cost of an answer, and the front that no method beats.

The table is that of ``experiments.costs.pareto_table``, cut to one model and one data set.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter
from matplotlib.transforms import ScaledTranslation, Transform

from trustlab.plots.auroc import LEVEL_NAMES, MARKER_POINTS
from trustlab.plots.benchmark import need
from trustlab.plots.style import (
    FAMILY_COLOURS,
    FAMILY_MARKERS,
    GREY,
    INK,
    axes_row,
    family_legend,
    family_of,
    inches,
    label,
    mark_look,
    spread,
    text_colour,
)

COLUMNS = [
    "model",
    "dataset",
    "method",
    "level",
    "cost",
    "unit",
    "value",
    "low",
    "high",
    "n",
    "n_cases",
]
COLUMNS += ["on_front", "missing"]
UNIT_WORDS = {
    "replies": "replies",
    "tokens": "tokens, in and out,",
    "seconds": "seconds",
    "usd": "US dollars",
}
STEP, WIDEST = 4.5, 76.0
"""Points between the marks of methods that cost the same, and the most that all of them may take."""
FAINT = 0.45


def auroc_by_cost(
    table: pd.DataFrame,
    families: Mapping[str, str],
    ax: Axes | None = None,
    *,
    named: Sequence[str] = ("medconf",),
) -> Axes:
    """AUROC (0 to 1) with its 95 % interval against the cost of one answer, and the Pareto front as a step line.

    Methods on the front and those in ``named`` carry their names and full colour, all others are faint marks of their
    family. Methods that cost the same stand side by side around that cost, the best in the middle. The axis of costs is
    logarithmic where all are above 0. Methods without value or cost are counted below. Raises ``ValueError`` for several
    models or data sets, lacking columns, a method given twice or a family without a colour.
    """
    rows = _checked(table)
    for method in rows["method"]:
        family_of(method, families)
    known = rows.dropna(subset=["cost", "value"]).sort_values(
        ["cost", "value", "method"], ignore_index=True
    )
    ax = ax or axes_row(6.4, 4.4)[0]
    _cost_axis(ax, known, str(rows["unit"].iloc[0]))
    level = str(rows["level"].iloc[0])
    ax.set_ylabel(f"AUROC {LEVEL_NAMES.get(level, f'at {level} % information')}, 0 to 1")
    _value_axis(ax, known)
    if len(known):
        _front(ax, known[known["on_front"].astype(bool)])
        ends = _marks(ax, known, families, set(named))
        _names(ax, ends, families)
    else:
        reasons = textwrap.fill(
            " / ".join(dict.fromkeys(map(str, rows["missing"]))) or "no reason given",
            60,
            max_lines=5,
        )
        place = {
            "transform": ax.transAxes,
            "ha": "center",
            "va": "center",
            "color": GREY,
            "size": 9,
        }
        ax.text(
            0.5, 0.75, f"no method has both AUROC and cost:\n{reasons}", **place
        ).set_parse_math(False)
    front = [Line2D([], [], color=INK, lw=1.2, label=" Pareto front")] if len(known) else []
    family_legend(ax, [family_of(m, families) for m in known["method"]], front)
    lost, alike = len(rows) - len(known), known["cost"].round(9).duplicated().any()
    notes = ["side by side: of the same cost, the best in the middle"] if alike else []
    notes += (
        [f"{lost} method{'s' if lost > 1 else ''} without AUROC or cost: not drawn"] if lost else []
    )
    place: Any = {"xycoords": "axes fraction", "textcoords": "offset points", "va": "top"}
    ax.annotate("; ".join(notes), (0, 0), (0, -60), **place, size=9, color=GREY)
    return ax


def _checked(table: pd.DataFrame) -> pd.DataFrame:
    need(table, COLUMNS)
    runs = table[["model", "dataset"]].drop_duplicates()
    if len(runs) > 1:
        raise ValueError(
            f"one figure shows one model and data set; received {runs.to_numpy().tolist()}"
        )
    if table["method"].duplicated().any():
        raise ValueError(
            f"each method may come once; received {table.loc[table['method'].duplicated(), 'method'].iloc[0]!r} again"
        )
    if unknown := set(table["unit"]) - set(UNIT_WORDS):
        raise ValueError(f"unit is {sorted(unknown)}; allowed are {list(UNIT_WORDS)}")
    return table


def _cost_axis(ax: Axes, known: pd.DataFrame, unit: str) -> None:
    logarithmic = len(known) > 0 and known["cost"].min() > 0
    ax.set_xlabel(f"Cost: {UNIT_WORDS[unit]} for one answer{' (log scale)' if logarithmic else ''}")
    if not len(known):
        ax.set(xticks=[])
        return
    low, high = float(known["cost"].min()), float(known["cost"].max())
    if not logarithmic:
        room = 0.1 * (high - low) or 1.0
        ax.set_xlim(low - room, high + room)
        return
    ax.set_xscale("log")
    room = max((high / low) ** 0.12, 1.3)
    ax.set_xlim(low / room, high * room)
    digits = (1, 2, 5) if high / low >= 10 else (1, 2, 3, 4, 5, 7)
    ticks = [
        d * 10.0**p
        for p in range(-9, 12)
        for d in digits
        if low / room <= d * 10.0**p <= high * room
    ]
    ax.set_xticks(ticks)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


def _value_axis(ax: Axes, known: pd.DataFrame) -> None:
    """Limits that hold every value, interval and chance, with a margin, inside 0 to 1."""
    held = pd.Series([0.5, *known["low"], *known["high"], *known["value"]], dtype=float).dropna()
    ax.set_ylim(
        (max(held.min() - 0.03, -0.01), min(held.max() + 0.03, 1.01))
        if len(known)
        else (-0.01, 1.01)
    )
    ax.axhline(0.5, ls="--", lw=1.2, color=INK, zorder=1)
    place: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
    ax.annotate("chance 0.50", (1, 0.5), (-4, -3), **place, ha="right", va="top", size=9)


def _front(ax: Axes, front: pd.DataFrame) -> None:
    """The best value that each cost buys, from the cheapest method to the right edge."""
    steps = front.drop_duplicates("cost")
    edge = ax.get_xlim()[1]
    x, y = [*steps["cost"], edge], [*steps["value"], steps["value"].iloc[-1]]
    ax.plot(x, y, drawstyle="steps-post", color=INK, lw=1.2, zorder=2.5)


def _marks(
    ax: Axes, known: pd.DataFrame, families: Mapping[str, str], named: set[str]
) -> list[tuple[str, float, int, Any]]:
    """A mark with its interval for each row; (method, value, n, (cost, transform)) of those that get a name."""
    ends = []
    groups = known.groupby(known["cost"].round(9), sort=True)
    for _, part in groups:
        step = min(STEP, WIDEST / len(part))
        for i, row in enumerate(
            part.sort_values(["value", "method"], ascending=[False, True]).to_dict("records")
        ):
            method = row["method"]
            family = family_of(method, families)
            told = bool(row["on_front"]) or method in named
            place = _moved(
                ax, (i + 1) // 2 * step * (-1) ** i
            )  # the best where the cost is, the others left and right in turn
            colour, marker = FAMILY_COLOURS[family], FAMILY_MARKERS[family]
            look: dict[str, Any] = {
                "color": colour,
                "transform": place,
                "alpha": 1 if told else FAINT,
            }
            ax.plot(
                [row["cost"]] * 2,
                [row["low"], row["high"]],
                lw=1.8 if told else 1.0,
                zorder=4 if told else 3,
                **look,
            )
            size = MARKER_POINTS[marker] * (1 if told else 0.75)
            more = mark_look(colour, row["n_cases"], sure=told) | {"mew": 0.9 if told else 0.4}
            ax.plot(
                [row["cost"]],
                [row["value"]],
                marker=marker,
                ms=size,
                ls="",
                zorder=5 if told else 3.5,
                **more,
                **look,
            )
            if told:
                ends.append((method, float(row["value"]), int(row["n"]), (row["cost"], place)))
    return ends


def _moved(ax: Axes, points: float) -> Transform:
    """Data coordinates, moved to the right by ``points``."""
    figure: Any = ax.figure
    return ax.transData + ScaledTranslation(points / 72, 0, figure.dpi_scale_trans)


def _names(ax: Axes, ends: list[tuple[str, float, int, Any]], families: Mapping[str, str]) -> None:
    """Names with values at the right of the axes, a thin line to each mark, moved up or down to stand apart."""
    ends = sorted(ends, key=lambda end: end[1])
    bottom, top = ax.get_ylim()
    places = spread(
        [value for _, value, *_ in ends], 14 / 72 * (top - bottom) / inches(ax)[1], bottom, top
    )
    for (method, value, n, (cost, place)), y in zip(ends, np.asarray(places), strict=True):
        colour = text_colour(family_of(method, families))
        line = {
            "arrowstyle": "-",
            "color": colour,
            "lw": 0.6,
            "alpha": 0.8,
            "relpos": (0, 0.5),
            "shrinkA": 1,
            "shrinkB": 4,
        }
        style: dict[str, Any] = {
            "color": colour,
            "size": 9.5,
            "va": "center",
            "annotation_clip": False,
            "arrowprops": line,
        }
        text = ax.annotate(
            f"{label(method)} {value:.2f} (n {n:,})",
            (cost, value),
            (1.03, y),
            xycoords=place,
            textcoords=("axes fraction", "data"),
            **style,
        )
        text.set_parse_math(False)
