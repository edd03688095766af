"""A coloured table of numbers: names left and above, the colour a value on a scale."""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false
# pyright: reportGeneralTypeIssues=false, reportOperatorIssue=false, reportReturnType=false

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, to_rgb
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from trustlab.metrics.estimate import MIN_CASES
from trustlab.metrics.schema import need, refuse
from trustlab.plots import style

ROW_INCHES = 0.29
NARROW = 0.5
"""Inches: in cells less wide than this, the columns' names stand upright and numbers are small."""
BLANK = "#E4E4E4"
Look = dict[str, Any]


def grid(
    table: pd.DataFrame,
    rows: str,
    columns: str,
    families: Mapping[str, str],
    *,
    names: Mapping[str, str] | None = None,
    title: str = "",
    form: str = ".2f",
    reach: float = 0.1,
    bold: pd.Series | None = None,
    width: float = 0.78,
) -> Axes:
    """Each ``value`` in the cell of its ``rows`` and ``columns``, in the table's order.

    The colour is on a scale called ``title`` around 0, which ends at the largest value but not
    before ``reach``. Numbers are written as ``form`` says: bold where ``bold`` says so, with a star
    on rows of their own (``own_rows``), on white below ten cases. No value is a dash; a row without
    any says why. At the right stands the row's ``n``. A column's name stands over its first cell,
    beside a triangle. ``families`` colours names and must know every row's; ``names`` gives their
    words, else ``label``. ``width``: inches of a cell. ``ValueError`` for no rows, lacking columns
    or two values for a cell.
    """
    need(table, dict.fromkeys([rows, columns, "value"]))
    if not len(table):
        raise ValueError("the table has no rows")
    refuse(table, table.duplicated([rows, columns]), "a cell holds one value")
    for name in table[rows]:
        style.family_of(name, families)

    def named(name: str) -> Look:
        ink = style.text_colour(families[name]) if name in families else style.INK
        return {"text": (names or {}).get(name) or style.label(name), "color": ink}

    down, across = (
        {name: at for at, name in enumerate(dict.fromkeys(table[names_of]))}
        for names_of in (rows, columns)
    )
    cells = table.assign(x=table[columns].map(across), y=table[rows].map(down))
    cells["sure"] = False if bold is None else bold
    cells["told"] = cells.groupby("y")["value"].transform("count") > 0
    cells["top"] = cells.groupby("x")["y"].transform("min")

    ax = style.axes_row(width * len(across), ROW_INCHES * len(down))[0]
    ax.set(xlim=(-0.5, len(across) - 0.5), ylim=(len(down) - 0.5, -0.5))
    colour = _scale(ax, table["value"], reach, title)
    for row in cells.to_dict("records"):
        _cell(ax, row, colour(row["value"]), form, size=7 if width < NARROW else 8.5)
    _rows(ax, cells, [named(name) for name in down])
    for x, top, name in cells.drop_duplicates("x")[["x", "top", columns]].to_numpy():
        _over(ax, x, top, named(name), width)
    shown = [families[name] for name in (*down, *table[columns]) if name in families]
    style.name_colours(ax, shown, 0.9)
    return ax


def _cell(ax: Axes, row: Mapping[str, Any], fill: Any, form: str, size: float) -> None:
    few = pd.notna(row["value"]) and row.get("n_cases", MIN_CASES) < MIN_CASES
    fill = "white" if few else fill if pd.notna(row["value"]) else BLANK
    edge: Look = {"ec": style.GREY, "lw": 0.6, "label": style.FEW} if few else {"lw": 0}
    ax.add_patch(Rectangle((row["x"] - 0.48, row["y"] - 0.47), 0.96, 0.94, fc=fill, **edge))
    words = _number(row["value"], form) + "*" * bool(row.get("own_rows"))
    dark = np.dot(to_rgb(fill), (0.299, 0.587, 0.114)) < 0.45
    look: Look = {"color": "white" if dark else style.INK, "size": size}
    look |= {"weight": "bold" if row["sure"] else "normal"}
    place: Look = {"ha": "center", "va": "center_baseline"}
    ax.text(row["x"], row["y"], words if row["told"] else "", **look, **place)


def _number(value: float, form: str) -> str:
    """A number with a true minus, a dash for NaN; zero has no sign."""
    if pd.isna(value):
        return "–"
    words = f"{value:{form}}".replace("-", "−")
    return words if words.strip("+−0.") else words.strip("+−")


def _scale(ax: Axes, values: pd.Series, reach: float, title: str) -> Callable[[float], Any]:
    """A colour bar below the axes; returns the colour of a value."""
    far = max([reach, *values.abs().dropna()])
    scale = ScalarMappable(Normalize(-far, far), cmap="PuOr_r")
    wide, high = style.inches(ax)
    bar = ax.inset_axes((0, -0.45 / high, 2.2 / wide, 0.1 / high))
    ax.figure.colorbar(scale, cax=bar, orientation="horizontal", ticks=[-far, 0, far])
    bar.set_xticklabels([_number(v, "+.2f") for v in (-far, 0, far)], size=9)
    bar.set_title(title, size=10, pad=4, loc="left")
    return scale.to_rgba


def _rows(ax: Axes, cells: pd.DataFrame, shown: Sequence[Look]) -> None:
    """The rows' names, the ``n`` of each, and why a row has no value."""
    ax.set(xticks=[], yticks=range(len(shown)), yticklabels=[look["text"] for look in shown])
    ax.tick_params(length=0)
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
    for tick, look in zip(ax.get_yticklabels(), shown, strict=True):
        tick.set_color(look["color"])
    right, letters = ax.get_xlim()[1], int(style.inches(ax)[0] * 72 / 4.4)
    for y, row in cells.groupby("y"):
        if "n" in row:
            counts = style.told_n(row.loc[row["value"].notna(), "n"])
            _beside(ax, counts, (right, y), (62, 0), ha="right", va="center_baseline")
        if "missing" in row and not row["told"].any():
            why = textwrap.shorten(row["missing"].iloc[0], letters, placeholder=" …")
            _beside(ax, why, (-0.4, y), (0, 0), ha="left", va="center_baseline", size=8)
    if "n" in cells:
        _beside(ax, "n", (right, -0.5), (62, 4), ha="right", va="bottom")


def _over(ax: Axes, x: float, top: int, look: Look, width: float) -> None:
    """A column's name over its first cell."""
    turned = width < NARROW
    words = look["text"] if turned else textwrap.fill(look["text"], int(14.5 * width))
    more: Look = {"color": look["color"], "rotation": 90 * turned, "size": 9.5 if turned else 8.5}
    _beside(ax, words, (x, top - 0.5), (0, 4), ha="center", va="bottom", **more)


def _beside(ax: Axes, words: str, xy: Any, shift: tuple[float, float], **look: Any) -> Text:
    """Words that stand ``shift`` points off the place ``xy``, in small print."""
    return ax.annotate(
        words, xy, shift, textcoords="offset points", **{"color": style.GREY, "size": 9} | look
    )
