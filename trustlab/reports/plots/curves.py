"""Draws lines with marks, in panels. Colour and marker mean the method's family, dashes the method
within it. A point without a value is a gap, with its reason in small print."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from trustlab.metrics.estimate import MIN_CASES
from trustlab.metrics.schema import column_of, need, refuse, rows_where
from trustlab.reports.plots import style
from trustlab.reports.plots.behind import Line
from trustlab.reports.plots.style import GREY, INK, inches, words_of

DENSE = 12
"""A line of more points has marks only where they are hollow or stand alone, and its interval is a
band."""
MOST_NAMES = 6  # in one row of a legend above several panels; more stand in two
TITLE_LETTERS = 24
STEPS = [1, 2, 2.5, 5, 10]  # of ticks
MARK_POINTS = 6.5
MARK_SCALE = 0.85  # of the marks of intervals
CROSS_POINTS = 8
ANSWERS = {1: "answer right", 0: "answer wrong", None: "answer not judged"}


class Columns(NamedTuple):
    """The columns of a table that a figure shows: where, which line, which panel, filled or not."""

    x: str
    y: str
    by: str
    panels: str = ""
    filled: str = ""


class Look(NamedTuple):
    """Colour, marker and dashes of a line; ``is_method`` where they mean a family."""

    colour: str
    marker: str
    dashes: Any
    width: float = 1.8
    is_method: bool = False


NO_METHOD = (
    Look(INK, "o", "-", 2.4),
    Look(GREY, "P", "--"),
    Look(GREY, "*", ":"),
    Look(INK, "X", "-."),
)
"""Looks of the lines that are no methods, beside methods, in their order."""


class Curve(NamedTuple):
    """One line of one panel: the value of ``by``, its words, its points and its look."""

    name: Any
    words: str
    points: pd.DataFrame
    look: Look

    @property
    def drawn(self) -> pd.DataFrame:
        """The points that have a value."""
        return self.points.dropna(subset=["x", "y"])


def curves(  # noqa: PLR0913
    table: pd.DataFrame,
    *,
    x: str = "level",
    y: str = "value",
    by: str = "method",
    panels: str = "",
    families: Mapping[str, str] | None = None,
    lines: Sequence[Line] = (),
    bars: Collection[Any] = (),
    filled: str = "",
    xlabel: str = "",
    ylabel: str = "",
) -> list[Axes]:
    """A line for each value of ``by`` over ``x``, a panel for each value of ``panels``; the axes.

    - ``x``: a column of numbers, or of words, spaced evenly; its intervals are ``<x>_low`` and
      ``<x>_high``. A line whose panel is missing is in every panel.
    - ``families``: the family of each method that ``by`` names, or else ``panels="method"``: its
      colour and marker. What is no method is black or grey; without any method lines have the looks
      of series.
    - ``lines``: :class:`Line` at a height, or "diagonal", named in the legend.
    - ``bars``: the values of ``by`` whose intervals ``low`` to ``high`` are shown: a bar a point,
      or a band where the line has more than twelve.
    - ``filled``: a column; marks are filled where it is 1, hollow where 0, crossed where missing.
      Without it, marks of fewer than twelve cases (``n_cases``) are hollow.
    - ``ValueError`` for a table without rows, of several models or data sets that no panel or line
      tells apart, with two rows of a method at one place, or without a line that ``bars`` names;
      for a method without a family.
    """
    columns = Columns(x, y, by, panels, filled)
    return draw(table, columns, families or {}, lines, bars, (xlabel, ylabel))


def draw(
    table: pd.DataFrame,
    columns: Columns,
    families: Mapping[str, str],
    lines: Sequence[Line],
    bars: Collection[Any],
    words: tuple[str, str],
    alone: str = "",
) -> list[Axes]:
    """As :func:`curves`; the marks of the line ``alone``, which alone has its panel's family, are
    not joined."""
    _check(table, columns, bars, families)
    ticks = []
    if not pd.api.types.is_numeric_dtype(table[columns.x]):
        ticks = list(dict.fromkeys(table[columns.x]))
    points = _points(table, columns, ticks)
    points["x"] += _aside(points, bars if ticks else ())
    curves_by_panel = _curves(points, columns, families, alone)
    titles = [
        _title(panel, several, families) for panel, several in curves_by_panel.items()
    ]
    is_shared = _is_shared(curves_by_panel.values())
    axes = _axes(titles, curves_by_panel.values(), is_shared=is_shared)
    for ax, (panel, several) in zip(axes, curves_by_panel.items(), strict=True):
        for line in lines:
            if line.panel in ("", panel):
                _draw_line(ax, line)
        for curve in several:
            if curve.name in bars:
                _draw_interval(ax, curve)
            _draw_curve(ax, curve)
            if columns.filled:
                _fill_marks(ax, curve)
            else:
                _draw_marks(ax, curve)
        if _is_empty(several):
            _say_why(ax, several)
    _scales(axes, points, ticks)
    _axis_words(axes, words, repeated=not is_shared)
    answers = _answer_handles(column_of(points, "filled")) if columns.filled else []
    _write_legends(
        axes, list(curves_by_panel.values()), lines, answers, is_shared=is_shared
    )
    style.say_missing(axes[0].figure, _gaps(curves_by_panel, ticks))
    return axes


def _check(
    table: pd.DataFrame,
    columns: Columns,
    bars: Collection[Any],
    families: Mapping[str, str],
) -> None:
    """``ValueError`` for rows that cannot be drawn, or bars of lines that are not there."""
    place = list(filter(None, [columns.panels, columns.by, columns.x]))
    ends = ["low", "high"] if len(bars) else []
    need(table, [*place, columns.y, columns.filled or "n_cases", *ends])
    if not len(table):
        raise ValueError("the table has no rows")
    shared = {"model", "dataset"}
    if columns.by in shared:
        shared |= {"metric", "method"}
    for column in sorted(shared.intersection(table).difference(place)):
        several = list(table[column].dropna().unique())
        if len(several) > 1:
            raise ValueError(f"one figure shows one {column}; received {several}")
    names = list(dict.fromkeys(table[columns.by]))
    twice = table.duplicated(place) & table[columns.by].isin(list(families))
    refuse(table, twice, f"two rows at the same {place}")
    absent = [name for name in bars if name not in names]
    if absent:
        raise ValueError(f"no {columns.by} {absent}; the table holds {names}")


def _points(table: pd.DataFrame, columns: Columns, ticks: list[Any]) -> pd.DataFrame:
    """The table with this module's names; what it lacks is missing, words become places."""
    source = {
        "x": columns.x,
        "y": columns.y,
        "by": columns.by,
        "panel": columns.panels,
        "filled": columns.filled,
        "x_low": f"{columns.x}_low",
        "x_high": f"{columns.x}_high",
    }
    for name in ("low", "high", "n", "n_cases", "missing", "own_rows"):
        source[name] = name
    points = pd.DataFrame(
        {name: table.get(column, np.nan) for name, column in source.items()}
    )
    if not columns.panels:
        points["panel"] = ""
    if ticks:
        points["x"] = points["x"].map(ticks.index).astype(float)
    return points


def _aside(points: pd.DataFrame, bars: Collection[Any]) -> pd.Series:
    """How far beside its place each point stands, so that every bar is seen."""
    shifts = {name: 0.12 * (k - (len(bars) - 1) / 2) for k, name in enumerate(bars)}
    return column_of(points, "by").map(shifts).astype(float).fillna(0)


def _curves(
    points: pd.DataFrame, columns: Columns, families: Mapping[str, str], alone: str
) -> dict[str, list[Curve]]:
    """The lines of each panel in the table's order; a star for a method on rows of its own."""
    looks = _looks(points, columns, families, alone)
    curves_by_panel: dict[str, list[Curve]] = {}
    for panel in dict.fromkeys(points["panel"].dropna()):
        in_panel = points["panel"].eq(panel) | points["panel"].isna()
        curves_by_panel[panel] = []
        for name, part in rows_where(points, in_panel).groupby("by", sort=False):
            look = looks[panel, name]
            if name == alone:
                look = look._replace(dashes="")
            words = words_of(name)
            if look.is_method and _has_own_rows(part):
                words += " *"
            curve = Curve(name, words, part.sort_values("x", kind="stable"), look)
            curves_by_panel[panel].append(curve)
    return curves_by_panel


def _has_own_rows(points: pd.DataFrame) -> bool:
    return bool(points["own_rows"].eq(True).to_numpy().any())


def _looks(
    points: pd.DataFrame, columns: Columns, families: Mapping[str, str], alone: str
) -> dict[tuple[str, Any], Look]:
    """The look of each panel and line; a line has the same dashes in all panels. What is no method
    has the family of the method that is its panel, but models have the looks of series."""
    names = list(dict.fromkeys(points["by"]))
    panels = list(dict.fromkeys(points["panel"].dropna()))
    has_family = columns.panels == "method" and columns.by != "model"
    family_of_line: dict[tuple[str, Any], str] = {}
    for panel in panels:
        of_panel = families.get(panel, "") if has_family else ""
        for name in names:
            family = style.family_of(name, families)
            if not family and alone in ("", name):
                family = of_panel
            family_of_line[panel, name] = family
    if not any(family_of_line.values()):
        series = [Look(colour, marker, "-", 1.4) for colour, marker in style.SERIES]
        of_name = {name: series[k % len(series)] for k, name in enumerate(names)}
        return {(panel, name): of_name[name] for panel in panels for name in names}
    looks = {}
    for panel in panels:
        order: Counter[str] = Counter()  # of the lines of one family
        for name in names:
            family = family_of_line[panel, name]
            k = order[family]
            order[family] += 1
            if family:
                dashes = style.LINES[k % len(style.LINES)]
                colour, marker = (
                    style.FAMILY_COLOURS[family],
                    style.FAMILY_MARKERS[family],
                )
                looks[panel, name] = Look(colour, marker, dashes, is_method=True)
            else:
                looks[panel, name] = NO_METHOD[k % len(NO_METHOD)]
    return looks


def _is_shared(panels: Collection[Sequence[Curve]]) -> bool:
    """Whether one legend serves all panels: some line of theirs is in two of them."""
    names = [curve.name for several in panels for curve in _own(several)]
    return len(panels) == 1 or len(names) > len(set(names))


def _own(several: Sequence[Curve]) -> Sequence[Curve]:
    """The lines of methods; all where there are none."""
    return [curve for curve in several if curve.look.is_method] or several


def _title(
    panel: str, several: Sequence[Curve], families: Mapping[str, str]
) -> tuple[str, Any]:
    """What stands over a panel, with the number of answers behind its marks; its colour."""
    n = _n_shown(pd.concat([curve.drawn["n"] for curve in _own(several)]))
    counted = f"n {n}" if n not in ("", "1") else ""
    if not panel:
        return counted, GREY
    family = families.get(panel) or (panel if panel in style.FAMILY_LABELS else "")
    name = words_of(panel)
    if any(
        _has_own_rows(curve.points) and not curve.look.is_method
        for curve in _own(several)
    ):
        name += " *"
    if panel in style.FAMILY_LABELS and panel not in families:
        name = style.FAMILY_LABELS[panel]
        name = name[:1].upper() + name[1:]
    lines = filter(None, [textwrap.fill(name, TITLE_LETTERS), counted])
    return "\n".join(lines), style.text_colour(family) if family else INK


def _n_shown(counts: Iterable[float]) -> str:
    """The numbers behind several marks: "24", or "8 to 24" where they differ; '' for none."""
    ordered = sorted({int(n) for n in counts if n == n})
    ends = dict.fromkeys([*ordered[:1], *ordered[-1:]])
    return " to ".join(f"{n:,}" for n in ends)


def _axes(
    titles: Sequence[tuple[str, Any]],
    panels: Collection[Sequence[Curve]],
    *,
    is_shared: bool,
) -> list[Axes]:
    """Axes row by row under their titles: four a row, or two with legends of their own."""
    n = len(titles)
    letters = max(len(curve.words) for several in panels for curve in several)
    n_lines = max(title.count("\n") for title, _ in titles)
    if n == 1:
        axes = style.axes_grid(6.4, 4.0)
    elif is_shared:
        columns = -(-n // -(-n // 4))
        axes = style.axes_grid(2.25, 2.25, n, 0.19, 0.4 + 0.17 * n_lines, columns)
    else:
        gap = 1.25 + 0.08 * letters
        axes = style.axes_grid(2.9, 2.2, n, gap, 0.65 + 0.17 * n_lines, 2)
    for ax, (title, colour) in zip(axes, titles, strict=True):
        place = "left" if n > 1 else "right"
        size = 10 if n > 1 else 9
        ax.set_title(title, color=colour, parse_math=False, loc=place, size=size)
        ax.margins(0.04, 0.05)
    for ax in axes[1:]:
        ax.sharex(axes[0])
        ax.sharey(axes[0])
    return axes


def _draw_line(ax: Axes, line: Line) -> None:
    """A thin line behind the marks."""
    dashes = ":" if line.dotted else "--"
    if line.at == "diagonal":
        ax.axline((0, 0), slope=1, color=GREY, lw=1.2, ls=dashes, zorder=1)
    else:
        ax.axhline(line.at, color=GREY, lw=1.2, ls=dashes, zorder=1)


def _draw_interval(ax: Axes, curve: Curve) -> None:
    """A bar a point, or a band behind a line of many points."""
    colour = curve.look.colour
    drawn = curve.drawn
    if len(drawn) <= DENSE:
        ax.vlines(
            drawn["x"], drawn["low"], drawn["high"], color=colour, lw=1.4, alpha=0.55
        )
        ax.hlines(
            drawn["y"],
            drawn["x_low"],
            drawn["x_high"],
            color=colour,
            lw=1.4,
            alpha=0.55,
        )
        return
    points = curve.points
    ends = points["low"], points["high"]
    ax.fill_between(points["x"], *ends, color=colour, alpha=0.15, lw=0, zorder=1.5)


def _draw_curve(ax: Axes, curve: Curve) -> None:
    """The line with its gaps."""
    look = curve.look
    zorder = 3 if look.is_method else 2.5
    points = curve.points
    ax.plot(
        points["x"],
        points["y"],
        color=look.colour,
        ls=look.dashes,
        lw=look.width,
        zorder=zorder,
    )


def _draw_marks(ax: Axes, curve: Curve) -> None:
    """The marks; of a line of many points only those that are hollow or stand alone."""
    drawn = curve.drawn
    if len(drawn) > DENSE:
        single = _stand_alone(column_of(curve.points, "y"))[drawn.index]
        drawn = rows_where(drawn, drawn["n_cases"].lt(MIN_CASES) | single)
    look = curve.look
    style.plot_marks(
        ax,
        drawn["x"],
        drawn["y"],
        drawn["n_cases"],
        colour=look.colour,
        marker=look.marker,
        size=_mark_points(look),
    )


def _fill_marks(ax: Axes, curve: Curve) -> None:
    """Marks filled where the answer is right, hollow where wrong, crosses where nobody judged."""
    look = curve.look
    drawn = curve.drawn
    for value, face in ((1, look.colour), (0, "white")):
        some = drawn[drawn["filled"].eq(value)]
        ax.plot(
            some["x"],
            some["y"],
            ls="",
            marker=look.marker,
            ms=_mark_points(look),
            mfc=face,
            mec=look.colour,
            mew=1.3,
            zorder=4,
        )
    some = drawn[drawn["filled"].isna()]
    ax.plot(
        some["x"],
        some["y"],
        color=INK,
        marker="x",
        ms=CROSS_POINTS,
        mew=1.6,
        ls="",
        zorder=4,
    )


def _mark_points(look: Look) -> float:
    return MARK_SCALE * style.MARKER_POINTS[look.marker]


def _stand_alone(values: pd.Series) -> pd.Series:
    """Which values have none on either side, so that no line or band shows them."""
    is_gap = values.isna()
    return (
        ~is_gap & is_gap.shift(1, fill_value=True) & is_gap.shift(-1, fill_value=True)
    )


def _scales(axes: Sequence[Axes], points: pd.DataFrame, ticks: Sequence[Any]) -> None:
    """The ticks that all panels share; they count the answers where they differ."""
    ax = axes[0]
    ax.xaxis.set_major_locator(MaxNLocator(6, steps=STEPS))
    ax.yaxis.set_major_locator(MaxNLocator(6, steps=STEPS))
    places = sorted(points["x"].dropna().unique())
    if ticks:
        ax.set_xlim(-0.3, len(ticks) - 0.7)
        ax.set_xticks(range(len(ticks)), list(map(str, ticks)))
        return
    are_whole = all(place % 1 == 0 for place in places)
    if are_whole and 0 < len(places) <= DENSE:
        counts: Mapping[float, float] = {}
        if len(axes) == 1:
            counts = _counts(points)
        _tick_places(ax, places, counts)


def _tick_places(
    ax: Axes, places: Sequence[float], counts: Mapping[float, float]
) -> None:
    """A tick at each place that has room, with its n where these differ."""
    nearest = 0.22 * (places[-1] - places[0]) / inches(ax)[0]
    names: dict[float, str] = {}
    last = -np.inf
    for place in places:
        if place - last >= nearest:
            names[place] = f"{place:g}"
            last = place
    if len(set(counts.values())) > 1:
        for place in names:
            names[place] += f"\nn {counts.get(place, 0):,.0f}"
    ax.set_xticks(list(names), list(names.values()))


def _counts(points: pd.DataFrame) -> dict[float, float]:
    """The n at each place of the first line."""
    first = rows_where(points, points["by"].eq(points["by"].iloc[0])).dropna(subset="n")
    return dict(zip(first["x"], first["n"], strict=True))


def _axis_words(
    axes: Sequence[Axes], words: tuple[str, str], *, repeated: bool
) -> None:
    """Words at the outer panels; the inner ones keep their numbers where they are ``repeated``."""
    wide, tall = inches(axes[0])
    lefts = [ax.get_position().x0 for ax in axes]
    for k, ax in enumerate(axes):
        is_lowest = lefts[k] not in lefts[k + 1 :]
        is_first = lefts[k] == lefts[0]
        if is_lowest:
            ax.set_xlabel(textwrap.fill(words[0], int((15 if repeated else 12) * wide)))
        if is_first:
            ax.set_ylabel(textwrap.fill(words[1], int(14 * tall)))
        ax.tick_params(
            labelbottom=is_lowest or repeated, labelleft=is_first or repeated
        )


def _write_legends(
    axes: Sequence[Axes],
    panels: Sequence[Sequence[Curve]],
    lines: Sequence[Line],
    answers: Sequence[Line2D],
    *,
    is_shared: bool,
) -> None:
    """One legend at the right of one panel or above several, or each panel's at its right; and
    what filled and hollow marks mean."""
    of_lines = _line_handles(lines)
    if len(axes) == 1:
        handles = [*_curve_handles(panels), *of_lines, *answers]
        style.add_legend(axes[0], handles, (1.02, 1))
    elif is_shared:
        _write_above(axes, [*_curve_handles(panels), *of_lines, *answers])
    else:
        for ax, several in zip(axes, panels, strict=True):
            style.add_legend(ax, [*_curve_handles([several]), *of_lines], (1.04, 1))
        _write_above(axes, answers)


def _write_above(axes: Sequence[Axes], handles: Sequence[Line2D]) -> None:
    """A legend above the panels' titles, in at most two rows."""
    if not handles:
        return
    n_lines = max(ax.get_title(loc="left").count("\n") + 1 for ax in axes)
    tall = inches(axes[0])[1]
    place = (0, 1 + (0.15 + 0.18 * n_lines) / tall)
    columns = len(handles)
    if columns > MOST_NAMES:
        columns = -(-columns // 2)
    style.add_legend(axes[0], handles, place, corner="lower left", columns=columns)


def _curve_handles(panels: Sequence[Sequence[Curve]]) -> list[Line2D]:
    """A legend's line for each that has a value; grey where its colour differs by panel."""
    fullest_first = sorted(panels, key=len, reverse=True)  # so that it gives the order
    every = [
        curve for several in fullest_first for curve in several if len(curve.drawn)
    ]
    looks_by_words: dict[str, set[str]] = {}
    for curve in every:
        looks_by_words.setdefault(curve.words, set()).add(curve.look.colour)
    handles: dict[str, Line2D] = {}
    for curve in every:
        look = curve.look
        colour, marker = look.colour, look.marker
        if len(looks_by_words[curve.words]) > 1:
            colour = GREY
            marker = "" if look.dashes else "o"
        elif len(curve.drawn) > DENSE:
            marker = ""
        handles[curve.words] = Line2D(
            [],
            [],
            label=curve.words,
            color=colour,
            marker=marker,
            ms=_mark_points(look),
            mec="white" if marker else colour,
            mew=0.6,
            ls=look.dashes,
            lw=look.width,
        )
    return list(handles.values())


def _line_handles(lines: Sequence[Line]) -> list[Line2D]:
    """A legend's line for each thin line that has words."""
    handles = []
    for line in lines:
        if line.words:
            dashes = ":" if line.dotted else "--"
            handles.append(
                Line2D([], [], label=line.words, color=GREY, lw=1.2, ls=dashes)
            )
    return handles


def _answer_handles(filled: pd.Series) -> list[Line2D]:
    """What filled, hollow and crossed marks mean."""
    handles = []
    for value, face in ((1, GREY), (0, "white")):
        handles.append(
            Line2D(
                [],
                [],
                label=ANSWERS[value],
                color=GREY,
                marker="o",
                ms=MARK_POINTS,
                mfc=face,
                mec=GREY,
                mew=1.3,
                ls="",
            )
        )
    if filled.isna().any():
        handles.append(
            Line2D(
                [],
                [],
                label=ANSWERS[None],
                color=INK,
                marker="x",
                ms=CROSS_POINTS,
                mew=1.6,
                ls="",
            )
        )
    return handles


def _is_empty(several: Sequence[Curve]) -> bool:
    """Whether a panel has no line of a method; none at all where it has no methods."""
    return not any(len(curve.drawn) for curve in _own(several))


def _reasons(points: pd.DataFrame) -> str:
    reasons = points.loc[points["y"].isna(), "missing"].dropna().astype(str)
    return " / ".join(dict.fromkeys(filter(None, reasons))) or "no value"


def _say_why(ax: Axes, several: Sequence[Curve]) -> None:
    """In a panel without any line of a method: why."""
    reasons = _reasons(pd.concat([curve.points for curve in _own(several)]))
    ax.text(
        0.5,
        0.05,
        textwrap.fill(reasons, int(12 * inches(ax)[0])),
        transform=ax.transAxes,
        ha="center",
        va="bottom",
        zorder=6,
        color=GREY,
        size=8.5,
        bbox={"fc": "white", "ec": "none"},
        parse_math=False,
    )


def _gaps(
    curves_by_panel: Mapping[str, Sequence[Curve]], ticks: Sequence[Any]
) -> list[str]:
    """Which points have no value, and why."""
    n_panels = Counter(
        curve.name for several in curves_by_panel.values() for curve in several
    )
    notes = []
    for panel, several in curves_by_panel.items():
        if _is_empty(several):
            continue  # the panel says why
        for curve in several:
            gaps = rows_where(curve.points, curve.points["y"].isna())
            if not len(gaps):
                continue
            who = curve.words
            if n_panels[curve.name] > 1 and curve.look.is_method:
                who = f"{words_of(panel)}, {who}"
            places = [
                str(ticks[round(x)]) if ticks else f"{x:g}" for x in gaps["x"].dropna()
            ]
            where = f" at {', '.join(places)}" if len(curve.drawn) and places else ""
            notes.append(f"{who}{where} ({_reasons(gaps)})")
    return notes
