"""Published tables looked at: printed beside recomputed p-values, what stays significant, chance bands, sampling error.

Finished tables of :mod:`trustlab.studies.published_tables` in, Axes out; nothing is computed. Colour and marker mean method
family; p-values are two-sided.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from trustlab.metrics.audit import DATASETS, MODELS
from trustlab.plots.style import (
    FAMILY_COLOURS,
    FAMILY_MARKERS,
    GREY,
    INK,
    axes_row,
    family_legend,
    label,
)

STANDING_LOOK = {
    "not significant": ("#F4F4F4", GREY),
    "printed only": ("#B3D1EA", INK),
    "Benjamini–Hochberg": ("#4A98C9", INK),
    "Holm": ("#08458A", "white"),
}
"""Standing -> colour of the cell and of its number; each darker than the one before, so that they can be told apart in grey."""
STANDING_WORDS = {
    "not significant": "printed p above 0.05",
    "printed only": "printed p at most 0.05",
    "Benjamini–Hochberg": "and after Benjamini–Hochberg",
    "Holm": "and after Holm",
}
ROW = 0.27
"""Inches of a row with 9-point text."""
COLUMNS = (98, 190, 250)
"""Points from the axes' right edge to the right edge of each column of numbers beside AUROC differences."""


def p_values(
    audit: pd.DataFrame, apart: pd.DataFrame, axes: Sequence[Axes] | None = None
) -> list[Axes]:
    """Left, printed against recomputed p, a mark a coefficient; right, those off the diagonal, both p-values on a line.

    ``audit`` is the table of ``correlations`` (its ``p_number`` is NaN where only a threshold is printed), ``apart`` that of
    ``apart``. Raises ``ValueError`` for an empty ``audit``.
    """
    if not len(audit):
        raise ValueError("the table has no rows")
    width, height = 4.4, max(ROW * len(apart), 4.4)
    left, right = axes if axes is not None else _beside(width, height, 4.6, 4.1)
    left.plot([0, 1], [0, 1], color=GREY, lw=1.2, zorder=1)
    given = audit.dropna(subset=["p_number"])
    for family, part in given.groupby("family", sort=False):
        off = part["apart"] > 0
        look: Any = {"marker": FAMILY_MARKERS[family], "ls": "", "mew": 0.7}
        left.plot(
            part.loc[~off, "p_t"],
            part.loc[~off, "p_number"],
            ms=4.5,
            color=GREY,
            alpha=0.45,
            mec="white",
            zorder=2,
            **look,
        )
        left.plot(
            part.loc[off, "p_t"],
            part.loc[off, "p_number"],
            ms=8,
            color=FAMILY_COLOURS[family],
            mec="white",
            zorder=3,
            **look,
        )
    left.set(
        xlim=(-0.02, 1.02),
        ylim=(-0.02, 1.02),
        aspect="equal",
        xlabel="p recomputed from the printed value",
        ylabel="p printed",
    )
    left.set_anchor("NW")
    more = [Line2D([], [], marker="o", ls="", ms=5, color=GREY, alpha=0.6, label="fits its value")]
    family_legend(left, given.loc[given["apart"] > 0, "family"], more)
    rows = apart.to_dict("records")
    for y, row in enumerate(rows):
        right.plot([row["p_t"], row["p_number"]], [y, y], color="#B5B5B5", lw=2, zorder=1)
        right.plot(row["p_t"], y, "o", ms=7, color="#8A8A8A", mec="white", mew=0.6, zorder=3)
        right.plot(row["p_number"], y, "D", ms=6.5, color=INK, mec="white", mew=0.6, zorder=4)
        place: Any = {
            "xycoords": ("axes fraction", "data"),
            "textcoords": "offset points",
            "va": "center",
            "size": 9,
        }
        right.annotate(
            f"{row['p_number']:.3f}  {row['p_t']:.3f}", (1, y), (6, 0), ha="left", **place
        )
    right.annotate(
        "p printed, recomputed",
        (1, 1),
        (6, 5),
        "axes fraction",
        "offset points",
        size=9,
        color=GREY,
    )
    names = [f"{_cell(row)}, {row['statistic'].capitalize()} {row['value']}" for row in rows]
    right.set_yticks(range(len(rows)), names, size=9)
    right.set(xlim=(-0.02, 1.02), ylim=(max(len(rows), 1) - 0.5, -0.5), xlabel="p")
    handles = [
        Line2D([], [], marker="D", ls="", ms=6.5, color=INK, label="printed"),
        Line2D(
            [],
            [],
            marker="o",
            ls="",
            ms=7,
            color="#8A8A8A",
            label="recomputed from the value and n",
        ),
    ]
    _under(right, handles, -0.6)
    return [left, right]


def standings(table: pd.DataFrame, axes: Sequence[Axes] | None = None) -> list[Axes]:
    """Every coefficient as a cell with its printed value, darker the stricter the correction that it passes: Pearson, Spearman.

    ``table`` is that of ``standings``. A row is a method, a column a model and data set; an empty cell was not printed. Raises
    ``ValueError`` for a standing without a colour.
    """
    if unknown := set(table["standing"]) - set(STANDING_LOOK):
        raise ValueError(
            f"standing must be one of {list(STANDING_LOOK)}; received {sorted(unknown)}"
        )
    methods = list(dict.fromkeys(table["method"]))
    columns = list(table[["model", "dataset"]].drop_duplicates().itertuples(index=False, name=None))
    panels = (
        list(axes)
        if axes is not None
        else axes_row(0.62 * len(columns), ROW * len(methods), 2, 0.35)
    )
    for i, (ax, statistic) in enumerate(zip(panels, ("pearson", "spearman"), strict=True)):
        for row in table[table["statistic"] == statistic].to_dict("records"):
            x, y = columns.index((row["model"], row["dataset"])), methods.index(row["method"])
            fill, ink = STANDING_LOOK[row["standing"]]
            ax.add_patch(Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, color=fill, lw=0))
            ax.text(x, y, row["value"], ha="center", va="center", size=8.5, color=ink)
        ax.grid(False)
        ax.set(xlim=(-0.55, len(columns) - 0.45), ylim=(len(methods) - 0.45, -0.55))
        ax.set_xticks(
            range(len(columns)),
            [DATASETS[name] for _, name in columns],
            size=8.5,
            rotation=35,
            ha="left",
            rotation_mode="anchor",
        )
        ax.xaxis.tick_top()
        ax.set_yticks(
            range(len(methods)), [_short(name) for name in methods] if i == 0 else [], size=9
        )
        ax.tick_params(length=0, pad=2)
        for spine in ax.spines.values():
            spine.set_visible(False)
        for model in dict.fromkeys(model for model, _ in columns):
            middle = np.mean([k for k, (name, _) in enumerate(columns) if name == model])
            ax.annotate(
                MODELS[model],
                (middle, -0.55),
                (0, 42),
                textcoords="offset points",
                ha="center",
                size=9.5,
            )
        ax.set_title(statistic.capitalize(), pad=60)
    shown = [name for name in STANDING_LOOK if name in set(table["standing"])]
    handles: Any = [
        Patch(color=STANDING_LOOK[name][0], ec="#B5B5B5", label=STANDING_WORDS[name])
        for name in shown
    ]
    _under(panels[0], handles, -0.12, ncols=len(handles))
    return panels


def spearman_steps(table: pd.DataFrame, alpha: float = 0.05, ax: Axes | None = None) -> Axes:
    """The p-value of each rank correlation that so few points can have: exact (steps) and by the t approximation (line).

    ``table`` is that of ``spearman_steps``. Above the axis, how often each value is printed, in brackets how often as
    significant; values that cannot occur are drawn as crosses.
    """
    ax = ax or axes_row(8.8, 3.6)[0]
    can, cannot = table[table["attainable"] == "yes"], table[table["attainable"] != "yes"]
    shown = can[can["p_t"] > 0]  # 0 has no place on a logarithmic axis
    ax.plot(
        shown["rho"],
        shown["p_t"],
        color=GREY,
        lw=1.6,
        ls="--",
        label="t approximation (0 at a rho of 1)",
        zorder=2,
    )
    ax.plot(
        can["rho"],
        can["p_exact"],
        "o",
        ms=7,
        color=INK,
        mec="white",
        mew=0.6,
        label="exact: share of all orders",
        zorder=3,
    )
    if len(cannot):
        ax.plot(
            cannot["rho"],
            cannot["p_t"],
            "X",
            ms=8,
            color="#D55E00",
            mec="white",
            mew=0.6,
            label="printed, not a possible value",
            zorder=4,
        )
    ax.axhline(alpha, color=INK, lw=1, zorder=1)
    ax.annotate(
        f"{alpha:g}", (0, alpha), (3, 3), ("axes fraction", "data"), "offset points", size=9
    )
    ax.set(
        yscale="log",
        ylim=(0.0007, 1.6),
        xlim=(-0.03, 1.03),
        xlabel="Spearman's rho",
        ylabel="p, logarithmic",
    )
    ax.set_yticks([0.001, 0.01, 0.1, 1], ["0.001", "0.01", "0.1", "1"])
    for row in table[table["n_printed"] > 0].to_dict("records"):
        count = f"{row['n_printed']}" + (
            f"\n({row['n_significant']})" if row["n_significant"] else ""
        )
        shift = (7 if row["attainable"] != "yes" else 0, 4)
        ax.annotate(
            count,
            (row["rho"], 1),
            shift,
            ("data", "axes fraction"),
            "offset points",
            ha="center",
            va="bottom",
            size=9,
        )
    ax.annotate(
        "times printed\n(as significant)",
        (0, 1),
        (-8, 4),
        "axes fraction",
        "offset points",
        ha="right",
        size=9,
        color=GREY,
    )
    ax.legend(loc="lower left")
    return ax


def pearsons_over_band(table: pd.DataFrame, axes: Sequence[Axes] | None = None) -> list[Axes]:
    """Every printed Pearson, a panel a model, over the band of what two unrelated rising series give.

    ``table`` is that of ``over_band``: the band's ``low``, ``median`` and ``high`` are the same in each row. Marks of one column
    stand side by side in the order of the table, which carries no meaning.
    """
    models = list(dict.fromkeys(table["model"]))
    panels = list(axes) if axes is not None else axes_row(4.4, 4.2, len(models), 0.25)
    low, median, high = (float(table[name].iloc[0]) for name in ("low", "median", "high"))
    families = [name for name in FAMILY_COLOURS if name in set(table["family"])]
    for ax, model in zip(panels, models, strict=True):
        ax.axhspan(low, high, color=GREY, alpha=0.22, lw=0, zorder=0)
        ax.axhline(median, color=GREY, lw=1.4, zorder=1)
        mine = table[table["model"] == model]
        for x, name in enumerate(DATASETS):
            here = mine[mine["dataset"] == name]
            for k, family in enumerate(families):
                values = here.loc[here["family"] == family, "r"]
                offsets = (k - (len(families) - 1) / 2) * 0.21 + 0.035 * (
                    (np.arange(len(values)) % 5) - 2
                )
                look: Any = {
                    "marker": FAMILY_MARKERS[family],
                    "color": FAMILY_COLOURS[family],
                    "mec": "white",
                    "mew": 0.6,
                }
                ax.plot(x + offsets, values, ls="", ms=7, zorder=3, **look)
        ax.set_xticks(range(len(DATASETS)), list(DATASETS.values()))
        ax.set(xlim=(-0.5, len(DATASETS) - 0.5), ylim=(-0.03, 1.03), title=MODELS[model])
        ax.grid(False, axis="x")
    for ax in panels[1:]:
        ax.set_yticklabels([])
    panels[0].set_ylabel("printed Pearson")
    words = [
        Patch(color=GREY, alpha=0.3, label="  unrelated, rising: 95 %"),
        Line2D([], [], color=GREY, lw=1.4, label="  their median"),
    ]
    family_legend(panels[0], families, words)
    return panels


def auroc_differences(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """MedConf's printed AUROC minus each baseline's, with two 95 % intervals: every answer counts, or every case once.

    ``table`` is that of ``auroc_differences``. At the right, the cases it would take to show the difference under
    the two readings, beside the cases there were.
    """
    rows = table[table["unit"] == "case"].to_dict("records")
    inner = table[table["unit"] == "answer"].to_dict("records")
    ax = ax or axes_row(4.6, ROW * 1.15 * len(rows))[0]
    for y, (case, answer) in enumerate(zip(rows, inner, strict=True)):
        colour, marker = FAMILY_COLOURS[case["family"]], FAMILY_MARKERS[case["family"]]
        ax.plot([case["low"], case["high"]], [y, y], color=colour, lw=1.3, zorder=2)
        ax.plot(
            [answer["low"], answer["high"]],
            [y, y],
            color=colour,
            lw=4.2,
            alpha=0.75,
            solid_capstyle="butt",
            zorder=3,
        )
        ax.plot(case["difference"], y, marker, ms=7.5, color=colour, mec="white", mew=0.8, zorder=4)
        place: Any = {
            "xycoords": ("axes fraction", "data"),
            "textcoords": "offset points",
            "va": "center",
            "ha": "right",
            "size": 9,
        }
        for shift, number in zip(
            COLUMNS, (answer["cases"], case["cases"], case["n_cases"]), strict=True
        ):
            ax.annotate(f"{number:,.0f}" if pd.notna(number) else "–", (1, y), (shift, 0), **place)
    heads = zip(
        COLUMNS,
        (
            "cases needed, if\neach answer counts",
            "cases needed, if\neach case once",
            "cases\nthere were",
        ),
        strict=True,
    )
    for shift, words in heads:
        ax.annotate(
            words,
            (1, 1),
            (shift, 4),
            "axes fraction",
            "offset points",
            ha="right",
            size=8.5,
            color=GREY,
        )
    ax.axvline(0, color=INK, lw=1.1, ls="--", zorder=1)
    ax.set_yticks(range(len(rows)), [_cell(row) for row in rows], size=9)
    ax.set(ylim=(len(rows) - 0.5, -0.5), xlabel="MedConf's AUROC minus the baseline's")
    more = [
        Line2D([], [], color=INK, lw=4.2, alpha=0.75, label="  each answer counts"),
        Line2D([], [], color=INK, lw=1.3, label="  each case once"),
    ]
    family_legend(ax, [row["family"] for row in rows], more)
    return ax


def _beside(width: float, height: float, second: float, gap: float) -> list[Axes]:
    """Two axes with room for the second one's long names between them."""
    first, *_ = axes_row(width, height, 1)
    figure: Any = first.figure
    tall = figure.get_size_inches()[1]
    whole = 0.7 + width + gap + second + 1.0
    figure.set_size_inches(whole, tall)
    first.set_position((0.7 / whole, 0.7 / tall, width / whole, height / tall))
    return [
        first,
        figure.add_axes(((0.7 + width + gap) / whole, 0.7 / tall, second / whole, height / tall)),
    ]


def _under(ax: Axes, handles: Sequence[Any], inches_below: float, ncols: int = 0) -> None:
    """A legend without a frame in one row, that far under the axes."""
    height = ax.get_window_extent().height / ax.figure.dpi
    place: Any = {
        "loc": "upper left",
        "bbox_to_anchor": (0, inches_below / height),
        "borderaxespad": 0,
        "borderpad": 0,
    }
    ax.legend(
        handles=list(handles),
        ncols=ncols or len(handles),
        frameon=False,
        columnspacing=1.4,
        handletextpad=0.5,
        **place,
    )


def _cell(row: dict[str, Any]) -> str:
    return f"{_short(row['method'])}, {DATASETS[row['dataset']]}, {MODELS[row['model']]}"


def _short(method: str) -> str:
    """A method's name without the note that tells one formula from another: the paper prints one of each."""
    return label(method).partition(" (as printed")[0]
