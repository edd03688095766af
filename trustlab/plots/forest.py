"""What figures of differences share: a mark with its interval in each row, names at the left, columns of numbers at the right."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from trustlab.plots.auroc import MARKER_POINTS
from trustlab.plots.style import (
    FAMILY_COLOURS,
    FAMILY_MARKERS,
    GREY,
    INK,
    family_of,
    inches,
    paler,
    plot_marks,
)

N_POINTS = 26
"""Where the column of counts ends, in points from the axes' right side."""


def checked_run(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """``table`` itself; ``ValueError`` unless it has the columns, and one model and data set."""
    need = ["model", "dataset", *columns]
    if lacking := [name for name in need if name not in table.columns]:
        raise ValueError(f"the table lacks the columns {lacking}; it has {list(table.columns)}")
    runs = table[["model", "dataset"]].drop_duplicates()
    if len(runs) != 1:
        raise ValueError(
            f"one figure shows one model and data set; received {runs.to_numpy().tolist()}"
        )
    return table


def mark(
    ax: Axes,
    row: Mapping[str, Any],
    y: float,
    families: Mapping[str, str],
    *,
    shift: float,
    sure: bool = False,
    second: bool = False,
) -> None:
    """A marker at ``shift`` with its interval, or the reason why there is none.

    Hollow below ten cases, ``sure`` with a dark edge, paler where it is the ``second`` of two
    methods of one family.
    """
    family = family_of(row["method"], families)
    colour, marker = second_colour(family, second), FAMILY_MARKERS[family]
    if pd.isna(shift):
        withheld(ax, y, row["missing"])
        return
    ax.hlines(y, row["low"], row["high"], color=colour, lw=1.8, alpha=0.85, zorder=3)
    look: Any = {"marker": marker, "ms": 0.95 * MARKER_POINTS[marker], "zorder": 4}
    plot_marks(ax, shift, y, row["n_cases"], color=colour, sure=sure, **look)


def withheld(ax: Axes, y: float, reason: object) -> None:
    """Why a row has no mark, in small print where the mark would be."""
    words = textwrap.shorten(
        str(reason).removeprefix("no confidence: "), int(inches(ax)[0] * 72 / 3.9), placeholder=" …"
    )
    where: Any = {
        "xycoords": ("axes fraction", "data"),
        "bbox": {"fc": "white", "ec": "none", "pad": 0.5},
        "zorder": 4,
    }
    ax.annotate(words, (0.02, y), **where, va="center", size=7, color=GREY).set_parse_math(False)


def second_colour(family: str, second: bool) -> Any:
    """The family's colour, or its paler one for the ``second`` of two methods."""
    return paler(FAMILY_COLOURS[family]) if second else FAMILY_COLOURS[family]


def number_column(
    ax: Axes, of_rows: Mapping[int, Sequence[str]], heading: str = "n", right: int = N_POINTS
) -> None:
    """A column at the right, ``right`` points from the axes: row -> a text for each of its marks, once where all are the same."""
    beside: Any = {"textcoords": "offset points", "ha": "right", "size": 8, "color": GREY}
    for y, texts in of_rows.items():
        told = texts[:1] if len(set(texts)) == 1 else texts
        for k, text in enumerate(told):
            at = (1, y + 0.3 * (k - (len(told) - 1) / 2))
            ax.annotate(
                text, at, (right, 0), ("axes fraction", "data"), va="center_baseline", **beside
            )
    ax.annotate(heading, (1, 1), (right, 4), "axes fraction", va="bottom", **beside)


def name_rows(ax: Axes, names: Sequence[str]) -> None:
    """The rows' names, the first on top."""
    wrapped = ["\n".join(textwrap.wrap(name, 40)) for name in names]
    ax.set(yticks=range(len(names)), yticklabels=wrapped, ylim=(len(names) - 0.5, -0.5), ylabel="")
    ax.grid(visible=False, axis="y")


def zero_line(ax: Axes, held: Sequence[float]) -> None:
    """No difference as a dashed line, and limits that show it beside all that is ``held`` (values, ends of intervals)."""
    ax.axvline(0, ls="--", lw=1.2, color=INK, zorder=1)
    known = pd.Series([0, *held], dtype=float).dropna()
    room = max(0.08 * (known.max() - known.min()), 0.02)
    ax.set_xlim(known.min() - room, known.max() + room)
