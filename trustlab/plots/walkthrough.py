"""The walkthrough's figures: why confidences mislead, and how every method's confidence moves as more is told.

The tables are those of ``trustlab.studies.walkthrough``, which also computes the means and
intervals drawn here. Every figure shows one model; values in 0 to 1 are drawn in percent. Where a
marker is one answer (:func:`confidence_moves`), it is filled if that is right and hollow if wrong;
a mean of fewer than ten cases is hollow, as everywhere.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false, reportPrivateImportUsage=false

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from trustlab.plots.benchmark import LEVEL_AXIS, LINES
from trustlab.plots.style import (
    FAMILY_COLOURS,
    FAMILY_LABELS,
    FAMILY_MARKERS,
    GREY,
    INK,
    axes_row,
    family_of,
    inches,
    label,
    plot_marks,
    spread,
    text_colour,
)
from trustlab.studies.walkthrough import (
    LENGTHS,
    MIN_ANSWERS,
    position_means,
    wrong_by_length,
)

PALE = "#EFEFEF"
SHADES = plt.get_cmap("Blues")
DARKEST = 0.85
"""Share of the colour map used, so that the darkest cell is not black."""


def token_position(table: pd.DataFrame, axes: Sequence[Axes] | None = None) -> tuple[Axes, Axes]:
    """Mean token probability by position in the diagnosis, a line per number of tokens; beside it wrong answers by length.

    ``table`` is ``token_table``. The number at a line's end is its number of tokens. At the right, ASP of wrong answers
    and their first token's probability, with 95 % intervals. What fewer than 10 answers have is left out.
    """
    _one(table, ["case_id", "level", "model", "n_tokens", "position", "probability", "correct"])
    left, right = axes if axes is not None else axes_row(4.7, 3.7, n=2, gap=0.95)
    _positions(left, position_means(table))
    _lengths(right, wrong_by_length(table))
    for ax in (left, right):
        ax.set(ylim=(0, 117), yticks=range(0, 101, 20))
    left.set(
        xlabel="Position of the token in the diagnosis (1 = first)",
        ylabel="Mean token probability (percent)",
    )
    left.set_title("All answers; at a line's end its number of tokens", pad=10)
    right.set(xlabel="Number of tokens in the diagnosis", ylabel="Mean token probability (percent)")
    right.set_title("Wrong answers", pad=10)
    return left, right


def consistent_but_uninformed(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Of answers on which the samples agree: mean PoC, mean MedConf and the share that is right, over the levels, percent.

    ``table`` is ``consistent_table``. The band is the 95 % interval of the share right, from 10
    cases on. Above the axes stand, by level, how many answers these are, how many of them have a
    MedConf, and the mean share of statements shown.
    """
    _one(table, ["model", "level", "threshold", "metric", "value", "low", "high", "n", "n_cases"])
    ax = ax or axes_row(6.4, 4.0)[0]
    threshold = 100 * table["threshold"].iloc[0]
    of = {m: part.sort_values("level", ignore_index=True) for m, part in table.groupby("metric")}
    right, scored = of["accuracy"], of["medconf"]
    x = right["level"]
    ax.axhline(threshold, ls=":", lw=1.2, color=GREY, zorder=1)
    ax.fill_between(x, 100 * right["low"], 100 * right["high"], color=INK, alpha=0.13, lw=0)
    ax.plot(x, 100 * right["value"], color=INK, lw=2.6, zorder=3.5)
    plot_marks(ax, x, 100 * right["value"], right["n_cases"], color=INK, marker="o", ms=6, zorder=4)
    for px, py in zip(x, 100 * right["value"], strict=True):
        if pd.notna(py):
            up, va = (-8, "top") if py > 12 else (7, "bottom")
            ax.annotate(
                f"{py:.0f}",
                (px, py),
                (0, up),
                textcoords="offset points",
                ha="center",
                va=va,
                zorder=5,
            )
    ends = [("Share right", x, 100 * right["value"], INK, "bold")]
    for method, family in (("poc", "consistency"), ("medconf", "medconf")):
        y = 100 * of[method]["value"]
        if y.notna().any():
            ax.plot(x, y, color=FAMILY_COLOURS[family], lw=1.9, zorder=2.5)
            plot_marks(ax, x, y, of[method]["n_cases"], **_look(family), ms=7, zorder=3)
            ends.append((f"Mean {label(method)}", x, y, text_colour(family), "normal"))
    levels = list(x)
    ax.set(
        xticks=levels,
        xticklabels=[str(level) for level in levels],
        xlim=(-3, 104),
        xlabel=LEVEL_AXIS,
    )
    ax.set(
        ylim=(0, 106),
        yticks=range(0, 101, 20),
        ylabel=f"Answers with PoC of at least {threshold:.0f} % (percent)",
    )
    _name_ends(
        ax,
        [
            *ends,
            (
                f"chosen from {threshold:.0f} up",
                pd.Series([104]),
                pd.Series([threshold]),
                GREY,
                "normal",
            ),
        ],
    )
    rows = (
        ("answers", 6, [f"{n:,}" for n in right["n"]]),
        ("with MedConf", 20, [f"{n:,}" for n in scored["n"]]),
        ("percent shown", 34, [_number(100 * s) for s in of["shown"]["value"]]),
    )
    place: dict[str, Any] = {
        "textcoords": "offset points",
        "va": "bottom",
        "size": 9,
        "color": GREY,
    }
    for words, up, numbers in rows:
        ax.annotate(words, (1, 1), (6, up), "axes fraction", ha="left", **place)
        for level, number in zip(levels, numbers, strict=True):
            ax.annotate(number, (level, 1), (0, up), ax.get_xaxis_transform(), ha="center", **place)
    if scored["value"].isna().all():
        _below(ax, "No value, not drawn: MedConf")
    return ax


def confidence_moves(table: pd.DataFrame, families: Mapping[str, str]) -> list[Axes]:
    """How every method's confidence in one case moves as more is told; ``table`` is ``moves_table``.

    Probability methods are lines in percent, a panel per family, with markers filled where the answer is right and hollow where
    it is wrong. Scores, which only rank, are rows of a heat map: the values as they are, shaded from the method's own
    lowest to its highest over the levels. Returns the panels, then the heat map where there are scores.
    """
    _one(
        table, ["case_id", "model", "level", "method", "scale", "confidence", "missing", "correct"]
    )
    if table["case_id"].nunique() > 1:
        raise ValueError(
            f"one figure shows one case; received {table['case_id'].unique().tolist()}"
        )
    probable, scores = (
        table[table["scale"] == "probability"],
        table[table["scale"] != "probability"],
    )
    shown = _by_family(probable, families)
    rows = [method for methods in _by_family(scores, families).values() for method in methods]
    panels, heat = _moves_axes(len(shown), len(rows), len(set(table["level"])))
    for ax, (family, methods) in zip(panels, shown.items(), strict=True):
        _family_panel(ax, probable, family, methods)
    if heat is not None:
        _heat(heat, scores, rows, families)
    made = [*panels, *([heat] if heat is not None else [])]
    _right_or_wrong(made[0], str(table["case_id"].iloc[0]), high=not panels)
    return made


def _one(table: pd.DataFrame, columns: Sequence[str]) -> None:
    """Refuse a table without rows or columns needed, or of several models."""
    lacking = [name for name in columns if name not in table.columns]
    if lacking or not len(table):
        raise ValueError(
            f"the table needs rows and the columns {list(columns)}; it has {len(table)} rows and lacks {lacking}"
        )
    if table["model"].nunique() > 1:
        raise ValueError(f"one figure shows one model; received {table['model'].unique().tolist()}")


def _look(family: str) -> dict[str, Any]:
    return {"color": FAMILY_COLOURS[family], "marker": FAMILY_MARKERS[family]}


def _number(value: float) -> str:
    return "–" if pd.isna(value) else f"{value:.0f}"


def _below(ax: Axes, words: str) -> None:
    """A remark in small grey print under the axes' label."""
    ax.annotate(
        words, (0, 0), (0, -46), "axes fraction", "offset points", color=GREY, size=9, va="top"
    )


def _nothing(ax: Axes, words: str) -> None:
    ax.annotate(words, (0.5, 0.5), xycoords="axes fraction", ha="center", va="center", color=GREY)
    ax.set(xticks=[])


def _name_ends(ax: Axes, ends: Sequence[tuple[str, pd.Series, pd.Series, Any, str]]) -> None:
    """Write each line's name (name, x, y, colour, weight) to the right of its last point, kept apart from the others."""
    points = []
    for words, x, y, colour, weight in ends:
        drawn = y.notna().to_numpy()
        points.append((float(y[drawn].iloc[-1]), float(x[drawn].iloc[-1]), words, colour, weight))
    points.sort(key=lambda point: point[0])
    bottom, top = ax.get_ylim()
    places = spread([p[0] for p in points], 13.5 / 72 * (top - bottom) / inches(ax)[1], bottom, top)
    for (y, x, words, colour, weight), place in zip(points, places, strict=True):
        line = {
            "arrowstyle": "-",
            "color": colour,
            "lw": 0.7,
            "relpos": (0, 0.5),
            "shrinkA": 1,
            "shrinkB": 5,
        }
        style = {
            "color": colour,
            "weight": weight,
            "size": 9.5,
            "va": "center",
            "annotation_clip": False,
        }
        ax.annotate(
            words,
            (x, y),
            (1.05, place),
            xycoords="data",
            textcoords=("axes fraction", "data"),
            arrowprops=line,
            **style,
        )


def _positions(ax: Axes, means: pd.DataFrame) -> None:
    lengths = sorted(means["n_tokens"].unique())
    if not lengths:
        return _nothing(
            ax, f"no number of tokens from {LENGTHS[0]} to {LENGTHS[-1]}\nhas {MIN_ANSWERS} answers"
        )
    colours = plt.get_cmap("viridis")(np.linspace(0, 0.82, len(lengths)))
    for length, colour in zip(lengths, colours, strict=True):
        rows = means[means["n_tokens"] == length]
        ax.plot(rows["position"], 100 * rows["value"], color=colour, zorder=2.5)
        plot_marks(
            ax,
            rows["position"],
            100 * rows["value"],
            rows["n_cases"],
            color=colour,
            marker="o",
            ms=5,
            zorder=3,
        )
        over = (
            100 * means.loc[means["position"] == length, "value"].max()
        )  # no line runs through the number
        beside: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "bottom"}
        ax.annotate(
            f"n {rows['n'].iloc[0]:,}", (length, over), (0, 5), size=7.5, color=GREY, **beside
        )
        ax.annotate(str(length), (length, over), (0, 14), weight="bold", **beside)
    ax.set(xlim=(0.6, max(lengths) + 0.5), xticks=range(1, max(lengths) + 1))


def _lengths(ax: Axes, means: pd.DataFrame) -> None:
    if not len(means):
        return _nothing(ax, f"no number of tokens has {MIN_ANSWERS} wrong answers")
    ends = []
    for what, words, shift in (
        ("asp", "all tokens\n(ASP)", 0.06),
        ("first", "first token\nalone", -0.06),
    ):
        rows = means[means["metric"] == what]
        x, y = rows["n_tokens"] + shift, 100 * rows["value"]
        colour = FAMILY_COLOURS["token"] if what == "asp" else GREY
        ax.vlines(x, 100 * rows["low"], 100 * rows["high"], color=colour, lw=2, alpha=0.8, zorder=3)
        ax.plot(x, y, color=colour, lw=1.7, zorder=3.5, ls="-" if what == "asp" else "--")
        plot_marks(ax, x, y, rows["n_cases"], color=colour, marker="o", ms=7, zorder=4)
        ends.append((words, x, y, text_colour("token") if what == "asp" else GREY, "normal"))
    counts = means[means["metric"] == "asp"].set_index("n_tokens")["n"]
    ax.set(
        xlim=(counts.index.min() - 0.5, counts.index.max() + 0.5),
        xticks=list(counts.index),
        ylim=(0, 117),
    )
    ax.set_xticklabels([f"{length}\nn {n:,}" for length, n in counts.items()])
    _name_ends(ax, ends)


def _by_family(table: pd.DataFrame, families: Mapping[str, str]) -> dict[str, list[str]]:
    """The table's methods by family, families in the order of their colours."""
    methods = list(dict.fromkeys(table["method"]))
    found = {f: [m for m in methods if family_of(m, families) == f] for f in FAMILY_COLOURS}
    return {family: held for family, held in found.items() if held}


def _moves_axes(n_panels: int, n_rows: int, n_levels: int) -> tuple[list[Axes], Axes | None]:
    """Panels of 3 x 2.1 inches, two in a row with room for names, over a heat map of ``n_rows`` x ``n_levels`` cells."""
    wide, tall, names, gap, cell = 3.0, 2.1, 2.8, 0.95, (0.72, 0.27)
    grid = -(-n_panels // 2)
    width = max(0.75 + 2 * (wide + names), 3.0 + cell[0] * n_levels + 1.4)
    top = 0.75 + grid * (tall + gap)
    height = top + (0.55 + cell[1] * n_rows + 0.85 if n_rows else 0)
    figure = plt.figure(figsize=(width, height))

    def inside(x: float, y: float, w: float, h: float) -> Axes:
        return figure.add_axes((x / width, 1 - (y + h) / height, w / width, h / height))

    panels = [
        inside(0.75 + (i % 2) * (wide + names), 0.75 + (i // 2) * (tall + gap), wide, tall)
        for i in range(n_panels)
    ]
    for i, ax in enumerate(panels):
        last = i + 2 >= n_panels
        ax.set(
            xlabel="Information shown (percent of statements)" if last else "",
            ylabel="Confidence (percent)",
        )
    heat = inside(3.0, top + 0.55, cell[0] * n_levels, cell[1] * n_rows) if n_rows else None
    return panels, heat


def _family_panel(ax: Axes, table: pd.DataFrame, family: str, methods: Sequence[str]) -> None:
    levels = sorted(table["level"].unique())
    ax.set(xlim=(-4, 104), ylim=(-5, 105), xticks=levels, yticks=[0, 50, 100])
    ends, undrawn = [], []
    for i, method in enumerate(methods):
        rows = table[table["method"] == method].sort_values("level")
        x, y, colour = rows["level"], 100 * rows["confidence"], FAMILY_COLOURS[family]
        if y.isna().all():
            undrawn.append(label(method))
            continue
        ax.plot(x, y, color=colour, lw=1.6, ls=LINES[i % len(LINES)], zorder=2)
        for right in (True, False):
            at = (rows["correct"] == right).to_numpy()
            look = {
                **_look(family),
                "ls": "",
                "mec": colour,
                "mew": 1.3,
                "mfc": colour if right else "white",
            }
            ax.plot(x[at], y[at], **look, ms=6, zorder=3)
        ends.append((label(method), x, y, text_colour(family), "normal"))
    if ends:
        _name_ends(ax, ends)
    title = FAMILY_LABELS[family]
    ax.set_title(title[:1].upper() + title[1:], color=text_colour(family), loc="left", pad=5)
    if undrawn:
        words = textwrap.fill(f"no value: {', '.join(undrawn)}", 38)
        ax.annotate(
            words,
            (1.05, 1),
            (0, 9),
            "axes fraction",
            "offset points",
            va="bottom",
            size=8.5,
            color=GREY,
        )


def _heat(
    ax: Axes, table: pd.DataFrame, methods: Sequence[str], families: Mapping[str, str]
) -> None:
    levels = sorted(table["level"].unique())
    wide = table.pivot(index="method", columns="level", values="confidence").reindex(
        index=methods, columns=levels
    )
    values = wide.to_numpy(float)
    for i, method in enumerate(methods):
        row = values[i]
        known = row[~np.isnan(row)]
        if not len(known):
            reasons = [
                r
                for r in table.loc[table["method"] == method, "missing"]
                if isinstance(r, str) and r
            ]
            why = f"missing: {reasons[0] if reasons else 'no reason given'}"
            words = textwrap.shorten(why, 11 * len(levels), placeholder=" …")
            text = ax.text(0.1, i + 0.5, words, va="center", size=8, color=GREY)
            text.set_parse_math(False)
            continue
        span = known.max() - known.min()
        for j, value in enumerate(row):
            share = (value - known.min()) / span if span > 0 else 0.0
            colour: Any = (
                PALE if np.isnan(value) or span == 0 else SHADES(0.03 + (DARKEST - 0.03) * share)
            )
            ax.add_patch(plt.Rectangle((j, i), 1, 1, facecolor=colour, edgecolor="white", lw=1))
            words = "–" if np.isnan(value) else f"{value:.3g}".replace("-", "−")
            ink = "white" if span > 0 and share > 0.6 else INK
            ax.text(j + 0.5, i + 0.5, words, ha="center", va="center_baseline", size=8.5, color=ink)
    ax.set(xlim=(0, len(levels)), ylim=(len(methods), 0), facecolor="white")
    ax.grid(False)
    ax.set(xticks=np.arange(len(levels)) + 0.5, xticklabels=[str(level) for level in levels])
    ax.set(yticks=np.arange(len(methods)) + 0.5, yticklabels=[label(m) for m in methods])
    ax.tick_params(length=0)
    ax.set_xlabel("Information shown (percent of statements)")
    for tick, method in zip(ax.get_yticklabels(), methods, strict=True):
        tick.set_color(text_colour(family_of(method, families)))
    _family_brackets(ax, methods, families)
    verdicts = table.drop_duplicates("level").set_index("level")["correct"]
    high = 1 + 0.13 / inches(ax)[1]
    for j, level in enumerate(levels):
        if pd.isna(verdicts[level]):  # no answer: neither right nor wrong
            continue
        face = INK if verdicts[level] else "white"
        where = ax.get_xaxis_transform()
        ax.plot(
            j + 0.5, high, "o", ms=6, mfc=face, mec=INK, mew=1.3, transform=where, clip_on=False
        )
    ax.annotate(
        "the answer",
        (0, high),
        (-7, 0),
        "axes fraction",
        "offset points",
        ha="right",
        va="center",
        size=9.5,
    )
    ax.set_title("Scores, which only rank: values, shaded within the method", loc="left", pad=20)
    shading = "Shade: the method's lowest value over the levels is lightest, its highest darkest. Grey: missing, or all the same."
    _below(ax, textwrap.fill(shading, 75))


def _family_brackets(ax: Axes, methods: Sequence[str], families: Mapping[str, str]) -> None:
    """The family's name beside its rows, at the right."""
    names = [family_of(m, families) for m in methods]
    for family in dict.fromkeys(names):
        first, n = names.index(family), names.count(family)
        where, x = ax.get_yaxis_transform(), 1 + 0.08 / inches(ax)[0]
        ax.plot(
            [x, x],
            [first + 0.1, first + n - 0.1],
            color=FAMILY_COLOURS[family],
            lw=3,
            transform=where,
            clip_on=False,
        )
        place: dict[str, Any] = {"textcoords": "offset points", "va": "center", "size": 9.5}
        ax.annotate(
            FAMILY_LABELS[family],
            (x, first + n / 2),
            (6, 0),
            where,
            color=text_colour(family),
            **place,
        )


def _right_or_wrong(ax: Axes, case_id: str, high: bool) -> None:
    """Over the figure's first axes: which case it is, and what filled and hollow markers mean."""
    look: dict[str, Any] = {"marker": "o", "ls": "", "ms": 6, "mec": INK, "mew": 1.3}
    faces = {"answer right": INK, "answer wrong": "white"}
    handles = [Line2D([], [], mfc=face, label=words, **look) for words, face in faces.items()]
    place: dict[str, Any] = {
        "loc": "lower left",
        "bbox_to_anchor": (0, 1 + (0.5 if high else 0.27) / inches(ax)[1]),
    }
    handles.insert(0, Line2D([], [], ls="", label=f"case {case_id}:"))
    ax.legend(
        handles=handles,
        ncols=3,
        frameon=False,
        borderpad=0,
        borderaxespad=0,
        handletextpad=0.2,
        **place,
    )
