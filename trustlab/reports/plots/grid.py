"""Draws a grid of values: methods down, models within data sets across."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from trustlab.metrics.schema import need, refuse
from trustlab.reports.plots import style
from trustlab.reports.plots.style import GREY, words_of

CELL_WIDTH, CELL_HEIGHT = 0.6, 0.27  # inches
FARTHEST = 0.5
"""The distance from chance at which a colour is full."""
N_HEIGHT, CHANCE_HEIGHT = -1.05, -0.1
"""Heights, in cells above the first, of the n and the chance of each column."""


CELL = ["method", "dataset", "model"]
"""Columns that say which cell a row is."""


class Cells(NamedTuple):
    """Columns of a table, each laid out as the grid."""

    value: pd.DataFrame
    chance: pd.DataFrame
    n: pd.DataFrame
    own_rows: pd.DataFrame


def grid(
    table: pd.DataFrame,
    *,
    families: Mapping[str, str] | None = None,
    label: str = "value minus chance",
) -> list[Axes]:
    """One number a cell, of one metric with a ``chance``; colour is the value minus chance.

    - A row a method; a column a model within each data set, above which are its largest ``n`` and
      chance. A star marks ``own_rows``; a hatched cell has no value.
    - ``families``: the family of each method, by which the rows are ordered and coloured.
    - ``label``: the words at the bar of colours.
    - ``ValueError`` for lacking columns, no rows, or two rows for one cell.
    """
    need(table, [*CELL, "value", "chance", "n"])
    if not len(table):
        raise ValueError("the table has no rows")
    refuse(table, table.duplicated(CELL), "a cell has several rows")
    rows = list(dict.fromkeys(table["method"]))
    families = families or {}
    family_of_row = {name: style.family_of(name, families) for name in rows}
    if families:
        order = [*style.FAMILY_COLOURS, ""]
        rows.sort(key=lambda name: order.index(family_of_row[name]))
    columns = pd.MultiIndex.from_product(
        [table["dataset"].unique(), table["model"].unique()]
    )
    marked = table.assign(own_rows=table.get("own_rows", False))
    laid_out = []
    for name in Cells._fields:
        cells = marked.pivot(index="method", columns=["dataset", "model"], values=name)
        laid_out.append(cells.reindex(index=rows, columns=columns).astype(float))
    drawn = Cells(*laid_out)
    (ax,) = style.axes_grid(CELL_WIDTH * len(columns), CELL_HEIGHT * len(rows))
    _draw_cells(ax, drawn, label)
    _write_columns(ax, drawn)
    _write_rows(ax, [family_of_row[name] for name in rows], rows)
    return [ax]


def _draw_cells(ax: Axes, cells: Cells, label: str) -> None:
    """Coloured cells with their numbers, hatched where there is none, and the bar of colours."""
    ax.patch.set(facecolor="#F4F4F4", hatch="////", edgecolor="#C0C0C0", lw=0)
    stars = cells.own_rows.eq(1).map(lambda is_own: "*" if is_own else "")
    wide = CELL_WIDTH * cells.value.shape[1]
    sns.heatmap(
        cells.value - cells.chance,
        annot=cells.value.map("{:.2f}".format) + stars,
        fmt="",
        annot_kws={"size": 9},
        cmap="RdBu",
        vmin=-FARTHEST,
        vmax=FARTHEST,
        linewidths=0.5,
        cbar_ax=ax.inset_axes((1 + 1.4 / wide, 0.25, 0.16 / wide, 0.5)),
        cbar_kws={"label": label},
        ax=ax,
    )
    ax.set(xlabel="", ylabel="")


def _write_columns(ax: Axes, cells: Cells) -> None:
    """Above each column its group and series, its largest n, and the value of chance there."""
    groups = cells.n.columns.get_level_values(0)
    heads = [f"{words_of(group)}\n{words_of(name)}" for group, name in cells.n.columns]
    places = np.arange(len(heads)) + 0.5
    ax.set_xticks(places, heads, rotation=90, size=9, parse_math=False)
    ax.tick_params("x", bottom=False, labelbottom=False, labeltop=True, pad=36)
    texts = [(-0.15, N_HEIGHT, "n", "right"), (-0.15, CHANCE_HEIGHT, "chance", "right")]
    for k, fullest in enumerate(cells.n.fillna(0).to_numpy().argmax(axis=0)):
        chance = cells.chance.iat[fullest, k]
        texts.append((k + 0.5, N_HEIGHT, f"{cells.n.iloc[:, k].max():,.0f}", "center"))
        texts.append(
            (
                k + 0.5,
                CHANCE_HEIGHT,
                "–" if np.isnan(chance) else f"{chance:.2f}",
                "center",
            )
        )
    for x, y, words, where in texts:
        ax.text(
            x, y, words.replace("nan", "–"), ha=where, va="bottom", size=9, color=GREY
        )
    for k in range(1, len(groups)):
        if groups[k] != groups[k - 1]:
            ax.axvline(k, color="white", lw=4)


def _write_rows(ax: Axes, families: Sequence[str], names: Sequence[str]) -> None:
    """The rows' names in the colours of their families, which stand at the right."""
    places = np.arange(len(names)) + 0.5
    ax.set_yticks(places, list(map(words_of, names)), size=9, parse_math=False)
    ax.tick_params("y", left=False)
    for tick, family in zip(ax.get_yticklabels(), families, strict=True):
        if family:
            tick.set_color(style.text_colour(family))
    right = ax.get_xlim()[1] + 0.15
    for family in filter(None, dict.fromkeys(families)):
        first = families.index(family)
        middle = first + families.count(family) / 2
        colour = style.text_colour(family)
        ax.text(
            right,
            middle,
            style.FAMILY_LABELS[family],
            va="center",
            size=9,
            color=colour,
        )
        if first:
            ax.axhline(first, color="white", lw=4)
