"""Draws lines with marks, in panels. Colour and marker mean the method's family, dashes the method
within it. A point without a value is a gap, with its reason in small print."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from trustlab.metrics.estimate import MIN_CASES
from trustlab.metrics.schema import column_of, need, refuse, rows_where
from trustlab.reports.plots import style
from trustlab.reports.plots.style import CAPTION_LETTERS, CAPTION_POINTS, GREY, INK, inches, label

DENSE = 12  # a line of more points has marks only where they are hollow or stand alone
MOST_NAMES = 6  # in one row of a legend above several panels; more stand in two
MOST_BANDS = 2  # so many bands of one figure can be told apart
NAMES = ("ends", "legend")
DIAGONAL: Literal["diagonal"] = "diagonal"
MARK_POINTS, NAME_POINTS = 6.5, 9.5
CROSS: dict[str, Any] = {"color": INK, "marker": "x", "ms": 8, "mew": 1.6, "ls": ""}
GUIDE: dict[str, Any] = {"color": GREY, "lw": 1.2, "ls": "--", "zorder": 1}
ANSWERS = {1: "answer right", 0: "answer wrong", None: "answer not judged"}


class Line(NamedTuple):
    """One line of one panel: what it is of, its words, its points, its look and its name's."""

    of: Any
    words: str
    points: pd.DataFrame
    look: dict[str, Any]
    name: dict[str, Any]
    reference: bool

    @property
    def known(self) -> pd.DataFrame:
        """The points that have a value."""
        return self.points.dropna(subset=["x", "y"])


def curves(  # noqa: PLR0913
    table: pd.DataFrame,
    families: Mapping[str, str],
    x: str = "level",
    y: str = "value",
    by: str = "method",
    panels: str = "",
    *,
    words: tuple[str, str] = ("", ""),
    references: Mapping[Any, Mapping[str, Any]] | None = None,
    guides: Mapping[str, float | Literal["diagonal"]] | None = None,
    bands: Collection[Any] = (),
    bars: Collection[Any] = (),
    filled: str = "",
    joined: bool = True,
    names: str = "ends",
    percent: str = "",
    limits: tuple[float, float] | None = None,
) -> list[Axes]:
    """A line for each value of ``by`` over ``x``, a panel for each value of ``panels``; the axes.

    - ``families``: the family of each method that ``by``, or else ``panels``, names. ``x``: a
      column of numbers, or of words, spaced evenly; its intervals are ``<x>_low`` and ``<x>_high``.
    - ``words``: the words at the x axis and at the y axis. ``limits``: those of the y axis.
    - ``references``: values of ``by`` that are no method -> look in matplotlib's words (default:
      black without marks). A reference without a panel is in every panel.
    - ``guides``: thin dashed lines: words -> the y of each, or "diagonal".
    - ``bands``, ``bars``: the values of ``by`` whose intervals are bands (at most two) or bars.
    - ``filled``: a column; marks are filled where it is 1, hollow where 0, crossed where missing.
      Without it, marks of fewer than twelve cases are hollow.
    - ``joined``: False draws marks alone; references keep their lines.
    - ``names``: lines are named at their "ends" (two panels in a row) or in a "legend" (four).
    - ``percent``: the axes of "xy" whose shares are written as percent.
    - ``ValueError`` for a table without rows, of several models or data sets, or with two rows at
      one place; for a line without a family; for a name that the table does not contain.
    """
    references = references or {}
    guides = guides or {}
    ends = ["low", "high"] if len(bands) or len(bars) else []
    need(table, [x, y, by, *filter(None, [panels]), filled or "n_cases", *ends])
    _check(table, [c for c in (panels, by, x) if c], by, [*bands, *bars], references)
    if len(bands) > MOST_BANDS:
        raise ValueError(f"at most {MOST_BANDS} bands can be told apart; received {list(bands)}")
    if names not in NAMES:
        raise ValueError(f"names is {names!r}; allowed are {list(NAMES)}")
    ticks = [] if pd.api.types.is_numeric_dtype(table[x]) else list(dict.fromkeys(table[x]))
    points = _points(table, {"x": x, "y": y, "by": by, "panel": panels, "filled": filled}, ticks)
    aside = {name: 0.12 * (k - (len(bars) - 1) / 2) for k, name in enumerate(bars if ticks else ())}
    beside = column_of(points, "by").map(aside).astype(float)
    points["x"] += beside.fillna(0)  # so that every bar is seen
    lines = _lines(points, by, families, references, joined)
    titles = [_title(*panel, families) for panel in lines.items()]
    told = [[line.words for line in of] + list(guides) for of in lines.values()]
    axes = _grid(titles, *((2, told) if names == "ends" else (4, [])))
    panes = list(zip(axes, lines.values(), strict=True))
    for ax, of in panes:
        for at in guides.values():
            ax.axline((0, 0), slope=1, **GUIDE) if at == DIAGONAL else ax.axhline(at, **GUIDE)
        for line in of:
            _draw(ax, line, line.of in bands, line.of in bars, bool(filled))
        if _empty(of):
            _say_why(ax, of)
    _scales(axes, points, ticks, percent, limits)
    _axis_words(axes, words, alone=names == "ends")
    for ax, of in panes if names == "ends" else ():
        _name_ends(ax, of, guides)
    judged = column_of(points, "filled") if filled else None
    _legend(axes, lines, guides if names == "legend" else None, judged)
    _say_gaps(axes, lines, ticks)
    return axes


def _check(
    table: pd.DataFrame, place: list[str], by: str, asked: list[Any], references: Collection[Any]
) -> None:
    """``ValueError`` for rows that cannot be drawn, or lines that are asked for and not there."""
    if not len(table):
        raise ValueError("the table has no rows")
    for column in {"model", "dataset"} & set(table):
        several = list(table[column].dropna().unique())
        if len(several) > 1:
            raise ValueError(f"one figure shows one {column}; received {several}")
    twice = table.duplicated(place) & ~table[by].isin(list(references))
    refuse(table, twice, f"two rows at the same {place}")
    held = list(dict.fromkeys(table[by]))
    if lacking := [name for name in asked if name not in held]:
        raise ValueError(f"no {by} {lacking}; the table holds {held}")


def _points(table: pd.DataFrame, own: dict[str, str], ticks: list[Any]) -> pd.DataFrame:
    """The table with this module's names; what it lacks is missing, words become places."""
    own |= {"x_low": f"{own['x']}_low", "x_high": f"{own['x']}_high"}
    own |= {name: name for name in ("low", "high", "n", "n_cases", "missing", "own_rows")}
    found = pd.DataFrame({new: table.get(old, np.nan) for new, old in own.items()})
    if not own["panel"]:
        found["panel"] = ""
    return found.assign(x=found["x"].map(ticks.index).astype(float)) if ticks else found


def _lines(
    points: pd.DataFrame,
    by: str,
    families: Mapping[str, str],
    references: Mapping[Any, Mapping[str, Any]],
    joined: bool,
) -> dict[str, list[Line]]:
    """The lines of each panel in the table's order; one line has the same dashes in all panels."""
    alone = points["panel"].isna() & ~points["by"].isin(list(references))
    refuse(points, alone, "a line without a panel must be one of references")
    order: dict[str, list[Any]] = {}
    for name in dict.fromkeys(points["by"]):
        if name not in references:
            order.setdefault(families.get(name, ""), []).append(name)

    def line(panel: str, name: Any, own: pd.DataFrame) -> Line:
        look: dict[str, Any] = {"color": INK, "lw": 1.4, "marker": "", "ls": "-", "zorder": 2.5}
        if name in references:
            look |= references[name]
            text = {"color": INK, "weight": "bold"} if look["color"] == INK else {"color": GREY}
            return Line(name, look.pop("label", str(name)), own, look, text, True)
        family = style.family_of(
            panel if name not in families and panel in families else name, families
        )
        dashes = style.LINES[order[families.get(name, "")].index(name) % len(style.LINES)]
        look |= {"color": style.FAMILY_COLOURS[family], "marker": style.FAMILY_MARKERS[family]}
        look |= {"ls": dashes if joined else "", "lw": 1.8, "zorder": 3}
        words = label(name) if isinstance(name, str) else f"{by.replace('_', ' ')} {name:g}"
        if own["own_rows"].eq(True).to_numpy().any():
            words += " *"
        return Line(name, words, own, look, {"color": style.text_colour(family)}, False)

    found: dict[str, list[Line]] = {}
    for panel in dict.fromkeys(points["panel"].dropna()):
        mine = rows_where(points, points["panel"].eq(panel) | points["panel"].isna())
        found[panel] = [
            line(panel, name, part.sort_values("x", kind="stable"))
            for name, part in mine.groupby("by", sort=False)
        ]
    return found


def _title(panel: str, lines: Sequence[Line], families: Mapping[str, str]) -> tuple[str, Any]:
    """What stands over a panel, with the number of answers behind its marks; its colour."""
    own = [line for line in lines if not line.reference] or lines
    n = style.told_n(pd.concat([line.known["n"] for line in own]))
    counted = f"n {n}" if n not in ("", "1") else ""
    if not panel:
        return counted, GREY
    family = panel if panel in style.FAMILY_LABELS else families.get(panel)
    name = style.FAMILY_LABELS.get(panel, label(panel))
    shown = textwrap.fill(name[:1].upper() + name[1:], 24)
    return "\n".join(filter(None, [shown, counted])), style.text_colour(family) if family else INK


def _grid(
    titles: Sequence[tuple[str, Any]], most: int, told: Sequence[Sequence[str]]
) -> list[Axes]:
    """Axes row by row under their titles, with room at the right for the names ``told``, if any."""
    n = len(titles)
    columns = -(-n // -(-n // most))
    wide, tall = (6.4, 4.0) if n == 1 else (2.9, 2.2) if told else (2.25, 2.25)
    beside = 0.75 + 0.08 * max((len(name) for of in told for name in of), default=-7)
    above = 0.4 + 0.17 * max(title.count("\n") for title, _ in titles) + 0.25 * bool(told)
    axes = style.axes_grid(wide, tall, n, beside, above, columns)
    for ax, (title, ink) in zip(axes, titles, strict=True):
        place: Any = {"loc": "left", "size": 10} if n > 1 else {"loc": "right", "size": 9}
        ax.set_title(title, color=ink, parse_math=False, **place)
        ax.margins(0.04, 0.05)
    for ax in axes[1:]:
        ax.sharex(axes[0])
        ax.sharey(axes[0])
    return axes


def _draw(ax: Axes, line: Line, band: bool, bars: bool, filled: bool) -> None:
    """The interval, the line with its gaps, and the marks."""
    points = line.points
    look = line.look
    known = line.known
    colour = look["color"]
    marker = look["marker"]
    if band:
        x, low, high = (column_of(points, name) for name in ("x", "low", "high"))
        ax.fill_between(x, low, high, color=colour, alpha=0.15, lw=0, zorder=1.5)
        alone = _alone(low)
        ax.vlines(x[alone], low[alone], high[alone], color=colour, alpha=0.15, lw=6)
    if bars:
        bar: Any = {"color": colour, "lw": 1.4, "alpha": 0.55, "zorder": 2}
        ax.vlines(known["x"], known["low"], known["high"], **bar)
        if known["x_low"].notna().to_numpy().any():
            ax.hlines(known["y"], known["x_low"], known["x_high"], **bar)
    ax.plot(points["x"], points["y"], **look)[0].set_marker("")
    spot: Any = {
        "marker": marker or "o",
        "ms": look.get("ms", MARK_POINTS),
        "zorder": look["zorder"] + 1,
    }
    if filled:
        for value, face in ((1, colour), (0, "white")):
            some = known[known["filled"].eq(value)]
            ax.plot(some["x"], some["y"], **spot, ls="", mfc=face, mec=colour, mew=1.3)
        some = known[known["filled"].isna()]
        ax.plot(some["x"], some["y"], **CROSS, zorder=spot["zorder"])
        return
    few = known["n_cases"].lt(MIN_CASES) | _alone(column_of(points, "y"))[known.index]
    shown = known if marker and len(known) <= DENSE else known[few]
    style.plot_marks(ax, shown["x"], shown["y"], shown["n_cases"], color=colour, **spot)


def _alone(values: pd.Series) -> pd.Series:
    """Which values have none on either side, so that no line or band shows them."""
    gone = values.isna()
    return ~gone & gone.shift(1, fill_value=True) & gone.shift(-1, fill_value=True)


def _scales(
    axes: Sequence[Axes],
    points: pd.DataFrame,
    ticks: Sequence[Any],
    percent: str,
    limits: tuple[float, float] | None,
) -> None:
    """The limits and ticks that all panels share; ticks count the answers where they differ."""
    ax = axes[0]
    at = sorted(points["x"].dropna().unique())
    if limits:
        above = 0.05 * (limits[1] - limits[0])
        ax.set_ylim(limits[0] - above, limits[1] + above)
    for name, axis in (("x", ax.xaxis), ("y", ax.yaxis)):
        axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
        if name in percent:
            axis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g}"))
    if ticks:
        ax.set_xlim(-0.3, len(ticks) - 0.7)
        names = {k: str(word) for k, word in enumerate(ticks)}
    elif at and len(at) <= DENSE and all(place % 1 == 0 for place in at) and "x" not in percent:
        names = {}
        last = -np.inf
        for place in at:
            if place - last >= 0.22 * (at[-1] - at[0]) / inches(ax)[0]:
                names[place], last = f"{place:g}", place
        first = rows_where(points, points["by"].eq(points["by"].iloc[0])).dropna(subset="n")
        counts = dict(zip(first["x"], first["n"], strict=True)) if len(axes) == 1 else {}
        if len(set(counts.values())) > 1:
            names = {k: f"{name}\nn {counts.get(k, 0):,.0f}" for k, name in names.items()}
    else:
        return
    ax.set_xticks(list(names), list(names.values()))


def _axis_words(axes: Sequence[Axes], words: tuple[str, str], *, alone: bool) -> None:
    """Words at the outer panels; the inner ones keep their numbers where they stand ``alone``."""
    wide, tall = inches(axes[0])
    lefts = [ax.get_position().x0 for ax in axes]
    for k, ax in enumerate(axes):
        lowest = lefts[k] not in lefts[k + 1 :]
        first = lefts[k] == lefts[0]
        ax.set_xlabel(textwrap.fill(words[0], int((15 if alone else 12) * wide)) if lowest else "")
        ax.set_ylabel(textwrap.fill(words[1], int(14 * tall)) if first else "")
        ax.tick_params(labelbottom=lowest or alone, labelleft=first or alone)


def _name_ends(ax: Axes, lines: Sequence[Line], guides: Mapping[str, Any]) -> None:
    """Each name at the right of its line's last point, moved as little as keeps the names apart."""
    (_, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    last = [(line, line.known.iloc[-1]) for line in lines if len(line.known)]
    ends = [(row["y"], row["x"], line.words, line.name) for line, row in last]
    grey = {"color": GREY}
    ends += [(right if at == DIAGONAL else at, right, text, grey) for text, at in guides.items()]
    if not ends:
        return
    ends.sort(key=lambda end: end[0])
    wide, tall = inches(ax)
    places = style.spread([end[0] for end in ends], 13.5 / 72 * (top - bottom) / tall, bottom, top)
    for (y, x, text, look), place in zip(ends, places, strict=True):
        line = {
            "arrowstyle": "-",
            "color": look["color"],
            "lw": 0.7,
            "relpos": (0, 0.5),
            "shrinkA": 1,
            "shrinkB": 4,
        }
        ax.annotate(
            text,
            (x, y),
            (1 + 0.28 / wide, place),
            xycoords="data",
            textcoords=("axes fraction", "data"),
            va="center",
            annotation_clip=False,
            arrowprops=line,
            size=NAME_POINTS,
            **look,
        )


def _legend(
    axes: Sequence[Axes],
    lines: Mapping[str, Sequence[Line]],
    guides: Mapping[str, Any] | None,
    filled: pd.Series | None,
) -> None:
    """Lines and guides, where a legend names them, and what filled and hollow marks mean."""
    handles = {}
    colours = {}
    fullest_first = sorted(lines.values(), key=len, reverse=True)  # so that it gives the order
    every = [line for of in fullest_first for line in of if guides is not None]
    for line in every:
        colours.setdefault(line.words, set()).add(line.look["color"])
    for line in every:
        if len(line.known):
            handle = Line2D([], [], label=line.words, **line.look)
            handle.set_markersize(line.look.get("ms", MARK_POINTS))
            if len(colours[line.words]) > 1 and not line.reference:  # another family's elsewhere
                handle.set_color(GREY)
                handle.set_marker("" if line.look["ls"] else "o")
            elif len(line.known) > DENSE:
                handle.set_marker("")
            handles[line.words] = handle
    for words in guides or ():
        handles[words] = Line2D([], [], label=words, **GUIDE)
    beside = len(axes) == 1 and guides is not None
    if filled is not None:
        mark: Any = {"marker": "o", "ms": MARK_POINTS, "mec": GREY, "mew": 1.3, "ls": ""}
        looks = {1: mark | {"mfc": GREY}, 0: mark | {"mfc": "white"}, None: CROSS}
        for value in looks if filled.isna().any() else (1, 0):
            handles[ANSWERS[value]] = Line2D([], [], label=ANSWERS[value], **looks[value])
    if beside:
        place: Any = {"loc": "upper left", "bbox_to_anchor": (1.02, 1)}
    else:
        titles = [ax.get_title(loc="left") for ax in axes]
        n_lines = max(title.count("\n") + bool(title) for title in titles)
        above = 1 + (0.15 + 0.18 * n_lines) / inches(axes[0])[1]
        place = {"loc": "lower left", "bbox_to_anchor": (0, above)}
        place["ncols"] = len(handles) if len(handles) <= MOST_NAMES else -(-len(handles) // 2)
    if handles:
        look = {"frameon": False, "borderaxespad": 0, "borderpad": 0, "handlelength": 2.8}
        axes[0].legend(handles=list(handles.values()), **look, **place)


def _empty(lines: Sequence[Line]) -> bool:
    """Whether a panel has no line of a method; of references where it has no others."""
    own = [line for line in lines if not line.reference] or lines
    return not any(len(line.known) for line in own)


def _reasons(points: pd.DataFrame) -> str:
    told = points.loc[points["y"].isna(), "missing"].dropna().astype(str)
    return " / ".join(dict.fromkeys(why for why in told if why)) or "no value"


def _say_why(ax: Axes, lines: Sequence[Line]) -> None:
    """In a panel without any line of a method: why."""
    own = [line.points for line in lines if not line.reference]
    why = _reasons(pd.concat(own or [line.points for line in lines]))
    words = textwrap.fill(why, int(12 * inches(ax)[0]))
    ax.text(
        0.5,
        0.05,
        words,
        transform=ax.transAxes,
        ha="center",
        va="bottom",
        zorder=6,
        color=GREY,
        size=8.5,
        bbox={"fc": "white", "ec": "none"},
    )


def _say_gaps(
    axes: Sequence[Axes], lines: Mapping[str, Sequence[Line]], ticks: Sequence[Any]
) -> None:
    """Under the figure, in small print: which points have no value, and why."""
    often = Counter(line.of for of in lines.values() for line in of if not line.reference)
    notes: dict[str, None] = {}
    for panel, of in lines.items():
        for line in () if _empty(of) else of:
            gone = rows_where(line.points, line.points["y"].isna())
            at = [ticks[round(x)] if ticks else f"{x:g}" for x in gone["x"].dropna()]
            who = f"{label(panel)}, {line.words}" if often[line.of] > 1 else line.words
            where = f" at {', '.join(at)}" if len(line.known) and at else ""
            if len(gone):
                notes[f"{who}{where} ({_reasons(gone)})"] = None
    if notes:
        text, width = style.text_beside(axes[0].figure, -0.06, size=CAPTION_POINTS, color=GREY)
        text.set_text(textwrap.fill(f"No value: {'; '.join(notes)}", int(CAPTION_LETTERS * width)))
