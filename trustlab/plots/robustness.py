"""What changes to the telling do to confidences and answers. A finished table in, Axes out."""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportGeneralTypeIssues=false, reportCallIssue=false

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from trustlab.metrics.estimate import MIN_CASES
from trustlab.plots.style import (
    FAMILY_COLOURS,
    FAMILY_MARKERS,
    FEW,
    GREY,
    INK,
    MARKER_POINTS,
    axes_row,
    family_legend,
    family_of,
    inches,
    label,
    plot_marks,
    spread,
    text_colour,
    told_n,
)

POINT = ["value", "low", "high", "n", "n_cases"]
ROW_INCHES = 0.27
OWN = " *"
"""Beside what stands on rows of its own, not on those that the other methods share."""
SURE = 0.05
LEAST_SHIFT = 0.1
"""The colour scale of shifts reaches at least this far, so that noise is not painted as a storm."""


def stability_and_discrimination(
    table: pd.DataFrame, families: Mapping[str, str], ax: Axes | None = None
) -> Axes:
    """Each method's CV sample (percent, less is stabler) against its AUROC as told (0 to 1), with 95 % intervals.

    ``table`` is that of ``scatter_table``, cut to one model and data set; beside a name the answers
    behind its CV and its AUROC. A star: on rows of its own. Good methods stand at the upper left; a
    constant one stands at the left too, but at 0.5. Methods that lack either number are named
    below. Raises ``ValueError`` for several runs.
    """
    mine = _one_run(table, ["method", "metric", *POINT, "own_rows"]).set_index("metric")
    both = (
        mine.loc[[m], ["method", "own_rows", *POINT]].rename(columns={"value": m})
        for m in ("cv_sample", "auroc")
    )
    mine = pd.merge(*both, on=["method", "own_rows"], suffixes=("", "_auroc"))
    ax = ax or axes_row(5.2, 4.2)[0]
    known = mine.dropna(subset=["cv_sample", "auroc"]).sort_values("auroc", kind="stable")
    for row in known.to_dict("records"):
        family = family_of(row["method"], families)
        colour, marker = FAMILY_COLOURS[family], FAMILY_MARKERS[family]
        ax.hlines(row["auroc"], row["low"], row["high"], color=colour, lw=1.2, alpha=0.5, zorder=2)
        ax.vlines(
            row["cv_sample"],
            row["low_auroc"],
            row["high_auroc"],
            color=colour,
            lw=1.2,
            alpha=0.5,
            zorder=2,
        )
        few = min(row["n_cases"], row["n_cases_auroc"])
        look: Any = {"marker": marker, "ms": MARKER_POINTS[marker], "zorder": 4}
        plot_marks(ax, row["cv_sample"], row["auroc"], few, color=colour, **look)
    ax.axhline(0.5, ls="--", lw=1.2, color=INK, zorder=1)
    place: dict[str, Any] = {
        "xycoords": ("axes fraction", "data"),
        "textcoords": "offset points",
        "ha": "right",
        "va": "top",
    }
    ax.annotate("chance 0.50", (1, 0.5), (-3, -3), **place, size=9)
    x = pd.Series([*known["cv_sample"], *known["high"]], dtype=float).dropna()
    y = pd.Series(
        [0.5, *known["auroc"], *known["low_auroc"], *known["high_auroc"]], dtype=float
    ).dropna()
    reach = x.max() if len(x) and x.max() > 0 else 1.0
    ax.set(
        xlim=(-0.03 * reach, 1.05 * reach),
        ylim=(max(y.min() - 0.04, -0.02), min(max(y.max(), 0.6) + 0.04, 1.02)),
    )
    ax.set(xlabel="CV sample, percent (less is stabler)", ylabel="AUROC as told, 0 to 1")
    _name_points(ax, known, families)
    lacking = [label(m) for m in mine["method"] if m not in set(known["method"])]
    family_legend(
        ax, [family_of(m, families) for m in (known["method"] if len(known) else mine["method"])]
    )
    if lacking:
        words = "\n".join(textwrap.wrap(f"without one of the two: {', '.join(lacking)}", 78))
        ax.annotate(
            words,
            (0, 0),
            (0, -62),
            "axes fraction",
            "offset points",
            va="top",
            size=8.5,
            color=GREY,
        )
    return ax


def shifts(
    table: pd.DataFrame,
    families: Mapping[str, str],
    labels: Mapping[str, str],
    among: str = "all answers",
    ax: Axes | None = None,
) -> Axes:
    """How far each condition moves each method's mean confidence, in the method's units (0 to 1): a field of signed numbers.

    ``table`` is that of ``shift_table``, cut to one model and data set; all levels together. Bold:
    the shift is other than 0 after Holm over all cells (``p_holm`` below 0.05). A star: on rows of
    its own. A dash: no value. ``labels`` names the conditions; at the right the numbers of answers
    behind a row's cells. A cell of fewer than ten cases is white. Raises ``ValueError`` for several
    runs or another ``among``.
    """
    columns = [
        "condition",
        "method",
        "level",
        "among",
        "value",
        "n",
        "n_cases",
        "p_holm",
        "own_rows",
    ]
    mine = _one_run(table, columns)
    mine = mine[(mine["level"] == "all") & (mine["among"] == _held(among, mine["among"], "among"))]
    conditions, methods = (list(dict.fromkeys(mine[c])) for c in ("condition", "method"))
    values = (
        mine.pivot(index="method", columns="condition", values="value")
        .loc[methods, conditions]
        .to_numpy(float)
    )
    rows: dict[Any, dict[str, Any]] = mine.set_index(["method", "condition"]).to_dict("index")
    ax = ax or axes_row(0.78 * len(conditions), ROW_INCHES * len(methods))[0]
    known = np.abs(values[~np.isnan(values)])
    reach = max(LEAST_SHIFT, known.max() if len(known) else 0)
    ax.imshow(
        np.ma.masked_invalid(values),
        cmap="PuOr_r",
        vmin=-reach,
        vmax=reach,
        aspect="auto",
        zorder=1,
    )
    for y, method in enumerate(methods):
        for x, condition in enumerate(conditions):
            row = rows.get(
                (method, condition),
                {"value": np.nan, "n": 0, "n_cases": 0, "p_holm": np.nan, "own_rows": False},
            )
            few = row["n_cases"] < MIN_CASES and pd.notna(row["value"])
            if few:
                place: Any = {"fc": "white", "ec": GREY, "lw": 0.6, "label": FEW, "zorder": 2}
                ax.add_patch(Rectangle((x - 0.46, y - 0.44), 0.92, 0.88, **place))
            sure = row["p_holm"] < SURE
            words = _signed(row["value"], 2) + OWN.strip() * bool(row["own_rows"])
            ink = "white" if not few and abs(row["value"]) > 0.7 * reach else INK
            ax.text(
                x,
                y,
                words,
                ha="center",
                va="center",
                size=8.5,
                color=ink,
                weight="bold" if sure else "normal",
                zorder=3,
            )
    ax.grid(visible=False)
    counts = [told_n(mine.loc[mine["method"].eq(m) & mine["value"].notna(), "n"]) for m in methods]
    _right(ax, counts, "n", 58, GREY)
    _names(ax, methods, len(methods), families)
    shown = ["\n".join(textwrap.wrap(labels.get(c, c), 11)) for c in conditions]
    ax.set_xticks(range(len(conditions)), shown, size=8.5)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.set_xlabel(f"mean confidence less that as told, {among}, all levels")
    ax.xaxis.set_label_position("bottom")
    return ax


# -- parts ------------------------------------------------------------------------------------------------------------


def _one_run(table: pd.DataFrame, need: Sequence[str]) -> pd.DataFrame:
    if lacking := [name for name in ("model", "dataset", *need) if name not in table.columns]:
        raise ValueError(f"the table lacks the columns {lacking}; it has {list(table.columns)}")
    if table.empty:
        raise ValueError(
            "the table is empty: there is nothing to draw; one figure shows one model and data set"
        )
    runs = table[["model", "dataset"]].drop_duplicates()
    if len(runs) != 1:
        raise ValueError(
            f"one figure shows one model and data set; received {runs.to_numpy().tolist()}"
        )
    return table


def _signed(value: float, digits: int) -> str:
    """The number with its sign, a dash for NaN; what rounds to nought has no sign."""
    if pd.isna(value):
        return "–"
    return f"{value:+.{digits}f}".replace("-", "−") if round(value, digits) else f"{0:.{digits}f}"


def _held(value: str, column: pd.Series, what: str) -> str:
    if value not in set(column):
        raise ValueError(f"{what} is {value!r}; the table holds {list(dict.fromkeys(column))}")
    return value


def _right(ax: Axes, words: Sequence[str], head: str, points: float, colour: str = INK) -> None:
    """A column of small text to the right of the axes, with its head above."""
    for y, text in enumerate(words):
        place: dict[str, Any] = {
            "xycoords": ("axes fraction", "data"),
            "textcoords": "offset points",
            "va": "center_baseline",
        }
        ax.annotate(text, (1, y), (points, 0), **place, ha="right", size=9, color=colour)
    ax.annotate(
        head,
        (1, 1),
        (points, 4),
        "axes fraction",
        "offset points",
        ha="right",
        va="bottom",
        size=9,
        color=colour,
    )


def _names(
    ax: Axes,
    methods: Sequence[str],
    n: int,
    families: Mapping[str, str] | None = None,
    own: Sequence[bool] | pd.Series = (),
) -> None:
    stars = [OWN * bool(o) for o in own] or [""] * len(methods)
    ax.set(
        yticks=range(n),
        yticklabels=[label(m) + s for m, s in zip(methods, stars, strict=True)] if methods else [],
        ylabel="",
    )
    ax.grid(visible=False, axis="y")
    for tick, method in zip(ax.get_yticklabels(), methods, strict=False):
        tick.set_color(text_colour(family_of(method, families)) if families else INK)


def _name_points(ax: Axes, known: pd.DataFrame, families: Mapping[str, str]) -> None:
    """Each point's name at the right edge at about its height, a thin line between them."""
    if not len(known):
        return
    bottom, top = ax.get_ylim()
    places = spread(list(known["auroc"]), 13.5 / 72 * (top - bottom) / inches(ax)[1], bottom, top)
    for row, y in zip(known.to_dict("records"), places, strict=True):
        colour = text_colour(family_of(row["method"], families))
        line = {
            "arrowstyle": "-",
            "color": colour,
            "lw": 0.6,
            "alpha": 0.6,
            "relpos": (0, 0.5),
            "shrinkA": 1,
            "shrinkB": 5,
        }
        style: dict[str, Any] = {
            "color": colour,
            "size": 9.5,
            "va": "center",
            "annotation_clip": False,
            "arrowprops": line,
        }
        own = told_n((row["n"], row["n_auroc"])).replace(" to ", ", ")
        name = f"{label(row['method'])}{OWN * bool(row['own_rows'])} (n {own})"
        ax.annotate(
            name,
            (row["cv_sample"], row["auroc"]),
            (1.03, y),
            "data",
            ("axes fraction", "data"),
            **style,
        )
