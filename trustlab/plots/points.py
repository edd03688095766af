"""Marks by family over two axes or over named columns; a line or a band behind, a list beside."""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportGeneralTypeIssues=false
# pyright: reportCallIssue=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from trustlab.metrics.estimate import MIN_CASES
from trustlab.metrics.schema import need
from trustlab.plots import style

WIDTH, HEIGHT = 4.4, 4.2
LINE_INCHES = 0.2
"""From one line of a list to the next."""
APART, STEP, ABREAST = 0.21, 0.035, 5
"""In a column: from one family to the next, between marks of one family, and how many abreast."""


def over_columns(
    table: pd.DataFrame,
    x: str,
    y: str,
    panel: str,
    *,
    names: Mapping[str, str],
    band: str,
) -> list[Axes]:
    """``y`` of each row over the column of its ``x``, a panel for each value of ``panel``.

    The grey band is what the table's ``chance_low`` and ``chance_high`` hold and ``band`` says in
    words, ``chance`` the line in it. Marks of one column stand side by side without a meaning.
    ``names`` are the words of panels and columns, which stand in its order. ``ValueError`` for no
    rows, lacking columns or a family without a colour.
    """
    ends = ["chance_low", "chance", "chance_high"]
    _check(table, [x, y, panel, *ends])
    parts = dict(list(table.groupby(panel, sort=False)))
    panels = style.axes_row(WIDTH, HEIGHT, len(parts), 0.25)
    columns = [name for name in names if name in set(table[x])]
    families = style.present(table["family"])
    for ax, (name, part) in zip(panels, parts.items(), strict=True):
        low, middle, high = part[ends].iloc[0]
        ax.axhspan(low, high, color=style.GREY, alpha=0.22, lw=0, zorder=0)
        ax.axhline(middle, color=style.GREY, lw=1.4, zorder=1)
        for (column, family), here in part.groupby([x, "family"], sort=False):
            k = families.index(family) - (len(families) - 1) / 2
            abreast = STEP * (pd.RangeIndex(len(here)) % ABREAST - ABREAST // 2)
            _marks(ax, columns.index(column) + APART * k + abreast, here[y], here)
        ax.set_xticks(range(len(columns)), [names[column] for column in columns])
        ax.set(xlim=(-0.5, len(columns) - 0.5), ylim=_span(table[y]), title=names[name])
        ax.grid(visible=False, axis="x")
    for ax in panels[1:]:
        ax.set_yticklabels([])
    shade = Patch(color=style.GREY, alpha=0.3, label=band)
    line = Line2D([], [], color=style.GREY, lw=1.4, label="median")
    style.legend_below(
        panels[0], [*style.family_marks(table["family"]), shade, line], handletextpad=0.5
    )
    return panels


def against(table: pd.DataFrame, x: str, y: str, listed: str, rest: str) -> Axes:
    """``y`` of each row over its ``x``, beside the line where both are equal.

    ``listed`` is a column of words: the rows that have some are numbered and listed at the right,
    in the table's order; the others, which are ``rest``, are small and grey. ``ValueError`` for no
    rows, lacking columns or a family without a colour.
    """
    _check(table, [x, y, listed])
    told = table[listed].fillna("").ne("")
    side = max(HEIGHT, LINE_INCHES * told.sum())
    ax = style.axes_row(side, side)[0]
    span = _span(pd.concat([table[x], table[y]]))
    ax.plot(span, span, color=style.GREY, lw=1.2, zorder=1)
    grey: Any = {"color": style.GREY, "ms": 4.5, "alpha": 0.45, "zorder": 2}
    _marks(ax, table.loc[~told, x], table.loc[~told, y], table[~told], **grey)
    _marks(ax, table.loc[told, x], table.loc[told, y], table[told])
    small: Any = {"textcoords": "offset points", "size": 9}
    for number, row in enumerate(table[told].to_dict("records"), 1):
        off: Any = {"ha": "right", "va": "bottom"} if row[y] > row[x] else {"va": "top"}
        ax.annotate(
            str(number), (row[x], row[y]), (-4, 2) if row[y] > row[x] else (4, -2), **off, **small
        )
        down = 1 - (number - 0.5) * LINE_INCHES / side
        place: Any = {"xycoords": "axes fraction", "va": "center_baseline", "parse_math": False}
        ax.annotate(str(number), (1, down), (24, 0), ha="right", **place, **small)
        ax.annotate(row[listed], (1, down), (30, 0), **place, **small)
    ax.set(xlim=span, ylim=span)
    more = [Line2D([], [], marker="o", ls="", ms=5, color=style.GREY, alpha=0.6, label=rest)]
    style.legend_below(ax, [*style.family_marks(table.loc[told, "family"]), *more])
    return ax


def _check(table: pd.DataFrame, columns: list[str]) -> None:
    need(table, [*columns, "family"])
    if not len(table):
        raise ValueError("the table has no rows")
    for family in table["family"]:
        style.family_of(family, {family: family})


def _marks(ax: Axes, x: Any, y: Any, rows: pd.DataFrame, **look: Any) -> None:
    """A mark at each of ``x`` and ``y`` (n,) for each of the ``rows``, in its family's look."""
    cases = rows.get("n_cases", pd.Series(MIN_CASES, index=rows.index))
    for px, py, n_cases, family in zip(x, y, cases, rows["family"], strict=True):
        colour, shape = style.FAMILY_COLOURS[family], style.FAMILY_MARKERS[family]
        own = {"color": colour, "marker": shape, "ms": style.MARKER_POINTS[shape], "zorder": 3}
        style.plot_marks(ax, px, py, n_cases, **own | look)


def _span(values: pd.Series) -> tuple[float, float]:
    """From 0 to 1, further where values lie beyond, with a little room."""
    return min(0, values.min()) - 0.03, max(1, values.max()) + 0.03
