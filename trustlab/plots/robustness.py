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
from matplotlib.lines import Line2D

from trustlab.plots.auroc import MARKER_POINTS, ROW_INCHES
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
    paler,
    plot_marks,
    spread,
    text_colour,
    told_n,
)

CVS = {"cv_sample": "CV sample, percent", "cv_group": "CV group, percent"}
MOVED = {
    "difference": "accuracy less that as told, points",
    "other_answer": "answers other than as told, percent",
}
POINT = ["value", "low", "high", "n", "n_cases"]
OWN = " *"
"""Beside what stands on rows of its own, not on those that the other methods share."""


def variation(
    table: pd.DataFrame,
    families: Mapping[str, str],
    level: str = "all",
    axes: Sequence[Axes] | None = None,
) -> list[Axes]:
    """CV sample and CV group of each method as dots with 95 % intervals, side by side, the stablest on top.

    ``table`` is that of ``variation_table``, cut to one model and data set. A grey bar across a row of CV group: what conditions
    that are exchangeable stay below in 95 % of the draws. A method without a value stands at the bottom with the reason; a star:
    on rows of its own. Raises ``ValueError`` for several runs, an empty table or a level that it does not hold.
    """
    columns = [
        "method",
        "level",
        "metric",
        "value",
        "low",
        "high",
        "n",
        "n_cases",
        "chance",
        "own_rows",
        "missing",
    ]
    mine = _one_run(table, columns)
    mine = mine[mine["level"] == _held(level, mine["level"], "level")]
    sample = (
        mine[mine["metric"] == "cv_sample"]
        .set_index("method")
        .sort_values("value", na_position="last", kind="stable")
    )
    panels = (
        list(axes)
        if axes is not None
        else axes_row(3.5, ROW_INCHES * max(len(sample), 3), n=2, gap=1.2)
    )
    for i, (ax, metric) in enumerate(zip(panels, CVS, strict=True)):
        rows = mine[mine["metric"] == metric].set_index("method").loc[sample.index]
        for y, (method, row) in enumerate(rows.to_dict("index").items()):
            if pd.notna(row["value"]) and pd.notna(row["chance"]):
                ax.barh(y, row["chance"], height=0.62, color=GREY, alpha=0.3, lw=0, zorder=1)
            _dot(ax, y, row, family_of(str(method), families))
        _right(ax, [f"{v:.1f}" if pd.notna(v) else "" for v in rows["value"]], "%", 34)
        _right(ax, [f"{int(n):,}" for n in rows["n"]], "n", 64, GREY)
        ax.set(xlabel=CVS[metric], ylim=(len(rows) - 0.5, -0.5), xlim=_limits(rows, 0))
        _names(ax, [str(m) for m in rows.index] if i == 0 else [], len(rows), own=rows["own_rows"])
    band = [
        Line2D(
            [],
            [],
            marker="s",
            ls="",
            ms=9,
            mew=0,
            color=GREY,
            alpha=0.3,
            label="exchangeable conditions, 95 %",
        )
    ]
    family_legend(panels[0], [family_of(str(m), families) for m in sample.index], band)
    return panels


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


def accuracy_by_condition(
    table: pd.DataFrame, labels: Mapping[str, str], axes: Sequence[Axes] | None = None
) -> list[Axes]:
    """What each condition does to the answers: accuracy less that as told (points), and the share of other answers (percent).

    ``table`` is that of ``accuracy_table``, cut to one model and data set; all levels together. Both over the answers
    whose telling the condition changed: ``n`` of them, with the accuracy at the right. Raises ``ValueError`` for several runs.
    """
    mine = _one_run(
        table, ["condition", "level", "metric", "value", "low", "high", "n", "n_cases", "missing"]
    )
    mine = mine[mine["level"] == "all"]
    conditions = list(dict.fromkeys(mine["condition"]))
    panels = (
        list(axes)
        if axes is not None
        else axes_row(3.5, 0.3 * max(len(conditions), 3), n=2, gap=1.25)
    )
    wide = {
        m: mine[mine["metric"] == m].set_index("condition").reindex(conditions)
        for m in ("accuracy", *MOVED)
    }
    for i, (ax, (metric, words)) in enumerate(zip(panels, MOVED.items(), strict=True)):
        rows = 100 * wide[metric][["value", "low", "high"]].astype(float)
        for y, (row, n) in enumerate(
            zip(rows.to_dict("records"), wide[metric]["n_cases"], strict=True)
        ):
            if pd.notna(row["value"]):
                ax.hlines(y, row["low"], row["high"], color=INK, lw=2, alpha=0.7, zorder=3)
                plot_marks(ax, row["value"], y, n, color=INK, marker="o", ms=7, zorder=4)
        far = np.nanmax(rows.abs().to_numpy(), initial=10.0)
        ax.set(
            xlabel=words,
            xlim=(-1.08 * far, 1.08 * far) if i == 0 else (-3, 103),
            ylim=(len(conditions) - 0.5, -0.5),
        )
        ax.set(
            yticks=range(len(conditions)),
            yticklabels=[labels.get(c, c) for c in conditions] if i == 0 else [],
        )
        ax.grid(visible=False, axis="y")
    panels[0].axvline(0, ls="--", lw=1.1, color=GREY, zorder=1)
    _right(
        panels[0],
        [_signed(100 * v, 0) if pd.notna(v) else "" for v in wide["difference"]["value"]],
        "points",
        36,
    )
    _right(panels[0], [f"{int(n):,}" for n in wide["accuracy"]["n"]], "n", 60, GREY)
    _right(
        panels[1],
        [f"{100 * v:.0f}" if pd.notna(v) else "" for v in wide["other_answer"]["value"]],
        "other %",
        44,
    )
    _right(
        panels[1],
        [f"{100 * v:.0f}" if pd.notna(v) else "" for v in wide["accuracy"]["value"]],
        "right %",
        92,
        GREY,
    )
    return panels


def variation_beside_published(
    ours: pd.DataFrame,
    published: pd.DataFrame,
    families: Mapping[str, str],
    level: str = "all",
    axes: Sequence[Axes] | None = None,
) -> list[Axes]:
    """The methods that the paper prints CVs of: ours on the left, theirs on the right, two panels with scales of their own.

    ``ours`` is the table of ``variation_table`` cut to one model and data set, shown at ``level``,
    ``published`` that of ``published_table("robustness")``. Paler: CV group. At the right of ours
    the answers behind a row. Raises ``ValueError`` for several runs or a level that the table does
    not hold.
    """
    mine = _one_run(ours, ["method", "level", "metric", "value", "n", "n_cases"])
    here = mine[mine["level"] == _held(level, mine["level"], "level")]
    wide = here.pivot(index="method", columns="metric", values="value")
    cases = here.pivot(index="method", columns="metric", values="n_cases")
    methods = list(published.sort_values("cv_sample")["method"])
    who, where = (", ".join(dict.fromkeys(published[c])) for c in ("model", "dataset"))
    sides = {
        f"Ours: {mine['model'].iloc[0]},\n{mine['dataset'].iloc[0]}": wide.reindex(methods),
        f"Printed by Ren et al. 2026:\n{who} (a large model), {where}": published.set_index(
            "method"
        ).loc[methods],
    }
    panels = list(axes) if axes is not None else axes_row(3.2, 0.42 * len(methods), n=2, gap=0.9)
    for i, (ax, (title, rows)) in enumerate(zip(panels, sides.items(), strict=True)):
        for y, (method, row) in enumerate(rows.to_dict("index").items()):
            family = family_of(str(method), families)
            colour, look = (
                FAMILY_COLOURS[family],
                {"marker": FAMILY_MARKERS[family], "ms": 8, "zorder": 3},
            )
            behind = cases.loc[method] if i == 0 and method in cases.index else {}
            for metric, aside, shade in (
                ("cv_sample", -0.14, colour),
                ("cv_group", 0.14, paler(colour)),
            ):
                plot_marks(
                    ax, row[metric], y + aside, behind.get(metric, np.nan), color=shade, **look
                )
            if pd.isna(row["cv_sample"]):
                ax.annotate(
                    "no value",
                    (0.02, y),
                    xycoords=("axes fraction", "data"),
                    va="center",
                    size=8.5,
                    color=GREY,
                )
        top = np.nanmax(rows[["cv_sample", "cv_group"]].to_numpy(float), initial=0) or 1.0
        ax.set(
            xlim=(-0.04 * top, 1.08 * top),
            ylim=(len(methods) - 0.5, -0.5),
            xlabel="coefficient of variation, percent",
        )
        ax.set_title(title, size=10)
        _names(ax, methods if i == 0 else [], len(methods))
    _right(panels[0], [told_n(here.loc[here["method"].eq(m), "n"]) for m in methods], "n", 40, GREY)
    marks = [Line2D([], [], marker="o", color=GREY, ls="", ms=7, label="CV sample")]
    marks.append(Line2D([], [], marker="o", color=paler(GREY), ls="", ms=7, label="CV group"))
    family_legend(panels[0], [family_of(m, families) for m in methods], marks)
    return panels


def two_at_once(table: pd.DataFrame, families: Mapping[str, str], ax: Axes | None = None) -> Axes:
    """Accuracy and each method's mean confidence, of patients alone (paler) and two told as one, in percent.

    ``table`` is that of ``two_at_once_table``, cut to one model and data set; the number at the right is the paired difference in
    points, bold where its 95 % interval does not hold 0, and its number of merged cases' answers.
    Raises ``ValueError`` for several runs.
    """
    mine = _one_run(table, ["method", "metric", "told", "value", "low", "high", "n", "n_cases"])
    mine = mine[mine["metric"].isin(["accuracy", "mean_confidence"])]
    methods = list(dict.fromkeys(mine["method"]))
    rows: dict[Any, dict[str, Any]] = mine.set_index(["method", "told"]).to_dict("index")
    ax = ax or axes_row(4.6, 0.36 * max(len(methods), 3))[0]
    for y, method in enumerate(methods):
        family = family_of(method, families) if method else ""
        colour, marker = (FAMILY_COLOURS[family], FAMILY_MARKERS[family]) if method else (INK, "o")
        counts = []
        for told, offset, shade in (
            ("one patient", -0.16, paler(colour)),
            ("two at once", 0.16, colour),
        ):
            row = {k: 100 * rows[method, told][k] for k in ("value", "low", "high")}
            n_cases = rows[method, told]["n_cases"]
            counts.append(int(rows[method, told]["n"]))
            ax.hlines(y + offset, row["low"], row["high"], color=shade, lw=1.6, alpha=0.8, zorder=2)
            plot_marks(
                ax, row["value"], y + offset, n_cases, color=shade, marker=marker, ms=6.5, zorder=3
            )
        change = rows[method, "difference"]
        sure = change["low"] > 0 or change["high"] < 0
        words = _signed(100 * change["value"], 0)
        place: dict[str, Any] = {
            "xycoords": ("axes fraction", "data"),
            "textcoords": "offset points",
            "va": "center_baseline",
        }
        ax.annotate(
            words, (1, y), (36, 0), **place, ha="right", size=9, weight="bold" if sure else "normal"
        )
        number = "; ".join(f"{n:,}" for n in (*counts, int(change["n"])))
        ax.annotate(number, (1, y), (118, 0), **place, ha="right", size=9, color=GREY)
    heads = {"ha": "right", "va": "bottom", "size": 9, "color": GREY}
    ax.annotate("n: one; two; pairs", (1, 1), (148, 4), "axes fraction", "offset points", **heads)
    ax.annotate(
        "difference",
        (1, 1),
        (52, 4),
        "axes fraction",
        "offset points",
        ha="right",
        va="bottom",
        size=9,
    )
    ax.set(
        xlim=(-3, 103),
        ylim=(len(methods) - 0.5, -0.5),
        xlabel="accuracy, or mean confidence, percent",
    )
    ax.set(
        yticks=range(len(methods)),
        yticklabels=[label(m) if m else "Accuracy (either diagnosis)" for m in methods],
    )
    ax.grid(visible=False, axis="y")
    marks = [Line2D([], [], marker="o", color=paler(GREY), ls="", ms=6.5, label="one patient")]
    marks.append(Line2D([], [], marker="o", color=GREY, ls="", ms=6.5, label="two at once"))
    family_legend(ax, [family_of(m, families) for m in methods if m], marks)
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


def _dot(ax: Axes, y: float, row: Mapping[str, Any], family: str) -> None:
    if pd.isna(row["value"]):
        words = textwrap.shorten(
            row["missing"] or "no reason given", int(inches(ax)[0] * 72 / 4.4), placeholder=" …"
        )
        ax.annotate(
            words, (0.02, y), xycoords=("axes fraction", "data"), va="center", size=8, color=GREY
        )
        return
    colour, marker = FAMILY_COLOURS[family], FAMILY_MARKERS[family]
    ax.hlines(y, row["low"], row["high"], color=colour, lw=2, alpha=0.8, zorder=3)
    look: Any = {"marker": marker, "ms": MARKER_POINTS[marker], "zorder": 4}
    plot_marks(ax, row["value"], y, row["n_cases"], color=colour, **look)


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


def _limits(rows: pd.DataFrame, least: float) -> tuple[float, float]:
    held = pd.Series([least, *rows["value"], *rows["high"], *rows["chance"]], dtype=float).dropna()
    top = held.max() if held.max() > 0 else 1.0
    return least - 0.03 * top, 1.04 * top


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
