"""Draws intervals in rows: a name, a mark with its interval, its numbers."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from trustlab.metrics import schema
from trustlab.metrics.schema import rows_where
from trustlab.reports.plots import style
from trustlab.reports.plots.behind import Band, Line
from trustlab.reports.plots.curves import STEPS
from trustlab.reports.plots.prepare import by_value
from trustlab.reports.plots.style import GREY, INK, inches, words_of

WIDTHS = {1: 5.2, 2: 3.7}  # inches of a panel's inside by the number of panels
NARROW = 2.7
ROW, STEP, LINE, HEADING = 0.27, 0.15, 0.165, 0.3
"""Inches: a row of one mark, each mark more, a line of a name, the heading of a group."""
BAND = "#DDDDDD"
NAME_LETTERS = 40
MOST_IN_LEGEND = 6  # in one row of it


def intervals(  # noqa: PLR0913
    table: pd.DataFrame,
    *,
    x: str = "value",
    by: str = "method",
    series: str = "",
    panels: str = "",
    groups: str = "",
    order: Sequence[str] | None = None,
    columns: Mapping[str, str] | None = None,
    lines: Sequence[Line | Band] = (),
    xlabel: str | Mapping[str, str] = "",
    families: Mapping[str, str] | None = None,
) -> list[Axes]:
    """A mark at ``x`` for each line of ``table``, with its interval ``low`` to ``high``; the axes.

    - Marks below twelve cases (``n_cases``) are hollow. A row without a value says why
      (``missing``); a series without one, in a row where others have one, is named under the
      figure. The name of a row with ``own_rows`` has a star.
    - ``by``, ``series``, ``panels``, ``groups``: columns that name the rows, the marks under one
      another in a row, the panels side by side, and the headings of groups of rows. All are in the
      order of the table; ``order`` names the first rows. Methods are shown by their labels, other
      names as they are.
    - ``columns``: heading -> a format such as ``"{value:.2f}"``; without it n, if the table has it.
    - ``lines``: what stands behind the marks, :class:`Line` and :class:`Band`.
    - ``xlabel``: words of all axes; or by panel, each of which then has a scale of its own.
    - ``families``: the family of each method in ``method``, shown by colour and shape; what is no
      method is black. Colours and shapes mean families or ``series``, not both.
    - ``ValueError`` for lacking columns, no lines, two lines for one mark, or an unknown name.
    """
    _check_lines(lines)
    bands = [line for line in lines if isinstance(line, Band)]
    uprights = [line for line in lines if isinstance(line, Line)]
    numbers = [x, "low", "high"]
    for band in bands:
        numbers += filter(None, [band.low, band.high, band.middle])
    places = {"_panel": panels, "_group": groups, "_row": by, "_series": series}
    marks = _checked(table, places, numbers)
    names = {place: list(dict.fromkeys(marks[place])) for place in places}
    _among(order or (), names["_row"], "order")
    _among([line.panel for line in uprights if line.panel], names["_panel"], "a panel")
    marks = _with_looks(marks, families, names["_series"])
    row_names = _row_names(marks)
    is_shown = _is_shown(marks, x)
    absent = rows_where(marks, ~is_shown)
    marks = rows_where(marks, is_shown)
    ordered = list(dict.fromkeys([*(order or ()), *names["_row"]]))
    marks, headings, height = _placed(marks, names["_group"], ordered, row_names)

    texts = _texts(
        marks, {"n": "{n:,.0f}"} if columns is None and "n" in marks else columns or {}
    )
    ends = _column_ends(texts)
    n_panels = len(names["_panel"])
    beside = max(ends.values(), default=0) / 72 + 0.25
    axes = style.axes_grid(WIDTHS.get(n_panels, NARROW), height, n_panels, beside)
    for ax, panel in zip(axes, names["_panel"], strict=True):
        part = rows_where(marks, marks["_panel"].eq(panel))
        behind = [line for line in uprights if line.panel in ("", panel)]
        ax.set(ylim=(height, 0), yticks=[])
        ax.set_xlabel(xlabel if isinstance(xlabel, str) else xlabel.get(panel, ""))
        scaled = marks if isinstance(xlabel, str) else part
        _scale(ax, scaled.loc[:, numbers], behind)
        _rules(ax, marks["_middle"].unique(), list(headings)[1:])
        _draw_bands(ax, part, bands)
        _draw_lines(ax, behind)
        for mark in part.to_dict("records"):
            _draw_mark(ax, mark, x)
        for heading, end in ends.items():
            _write_column(ax, heading, end, part.assign(_text=texts[heading]))
        if isinstance(xlabel, str) and panel:
            is_above = any(line.words and not line.dotted for line in uprights)
            ax.set_title(words_of(panel), pad=20 if is_above else 9, parse_math=False)
    _write_names(axes[0], marks, x, row_names, headings)
    _write_legend(axes[0], marks, names["_series"], families, [*bands, *uprights])
    style.say_missing(axes[0].figure, _absent_words(absent))
    return axes


def _check_lines(lines: Sequence[Line | Band]) -> None:
    for line in lines:
        if not isinstance(line, Line | Band):
            raise ValueError(
                f"lines has {line!r}; each must be a plots.Line or plots.Band"
            )


def _checked(
    table: pd.DataFrame, places: Mapping[str, str], numbers: Sequence[str]
) -> pd.DataFrame:
    """A copy whose columns ``places`` say where a mark stands, with the reason of each."""
    schema.need(table, [*filter(None, places.values()), *numbers, "n_cases"])
    if not len(table):
        raise ValueError("the table has no lines: there is nothing to draw")
    table = table.reset_index(drop=True)
    marks = table.copy()
    for place, column in places.items():
        marks[place] = table[column].astype(str) if column else ""
    schema.refuse(table, marks.duplicated(list(places)), "a mark has several lines")
    marks[list(numbers)] = table[list(numbers)].astype(float)
    marks["_reason"] = ""
    if "missing" in table:
        reasons = table["missing"].astype(object).fillna("")
        marks["_reason"] = reasons.str.removeprefix("no confidence: ")
    return marks


def _among(names: Sequence[str], allowed: Sequence[str], what: str) -> None:
    unknown = [name for name in names if name not in allowed]
    if unknown:
        raise ValueError(f"{what} names {unknown}; the table holds {list(allowed)}")


def _is_shown(marks: pd.DataFrame, x: str) -> pd.Series:
    """Which marks have room: all but those of a series that has no value in a row of others."""
    row = [marks["_group"], marks["_row"]]
    has_value = marks[x].notna()
    by_row: Any = has_value.groupby(row)
    row.append(marks["_series"])
    by_series: Any = has_value.groupby(row)
    in_row = by_row.transform("any")
    in_series = by_series.transform("any")
    return in_series | ~in_row


def _absent_words(absent: pd.DataFrame) -> list[str]:
    """The series that have no room in a row, by their reason."""
    notes = []
    by_reason: Any = absent.groupby(["_series", "_reason"], sort=False)
    for (series, reason), part in by_reason:
        rows = ", ".join(dict.fromkeys(map(words_of, part["_row"])))
        notes.append(f"{rows} of {words_of(series)} ({reason or 'no reason given'})")
    return notes


def _with_looks(
    marks: pd.DataFrame, families: Mapping[str, str] | None, series: Sequence[str]
) -> pd.DataFrame:
    """The marks in the order of their series, with the ``_colour`` and ``_shape`` of each."""
    place = marks["_series"].map(list(series).index)
    marks = marks.iloc[place.argsort(kind="stable")]
    looks = dict(zip(series, cycle(style.SERIES), strict=False))
    own_looks = [looks[name] for name in marks["_series"]]
    if families:
        schema.need(marks, ["method"])
        if len(series) > 1:
            raise ValueError(
                f"colours mean families or series; received {list(series)}, too"
            )
        own_looks = [_family_look(name, families) for name in marks["method"]]
    return marks.assign(
        _colour=[colour for colour, _ in own_looks],
        _shape=[shape for _, shape in own_looks],
    )


def _family_look(method: str, families: Mapping[str, str]) -> tuple[str, str]:
    """Colour and shape of a method's family; black for what is no method."""
    family = style.family_of(method, families)
    return style.FAMILY_COLOURS.get(family, INK), style.FAMILY_MARKERS.get(family, "o")


def _row_names(marks: pd.DataFrame) -> dict[str, list[str]]:
    """The lines of each row's name; a star where it stands on rows of its own."""
    starred: set[str] = set()
    if "own_rows" in marks:
        starred = set(marks.loc[marks["own_rows"].eq(True), "_row"])
    names = {}
    for name in marks["_row"].unique():
        words = f"{words_of(name)} *" if name in starred else words_of(name)
        names[name] = textwrap.wrap(words, NAME_LETTERS) or [""]
    return names


def _placed(
    marks: pd.DataFrame,
    groups: Sequence[str],
    order: Sequence[str],
    names: Mapping[str, list[str]],
) -> tuple[pd.DataFrame, dict[float, str], float]:
    """The marks with the ``_middle`` of their row, their own height ``_y`` and how ``_many`` stand
    in it; headings by their heights; the end. All in inches from the top."""
    by_row = marks.groupby(["_group", "_row", "_panel"])
    n_marks: Any = by_row["_row"].transform("size")
    most_marks = n_marks.groupby([marks["_group"], marks["_row"]]).max().to_dict()
    middles = {}
    headings = {}
    y = 0.0
    for group in groups:
        if group:
            headings[y + HEADING / 2] = words_of(group)
            y += HEADING
        for name in order:
            if (group, name) in most_marks:
                tall_by_marks = ROW + STEP * (most_marks[group, name] - 1)
                tall = max(tall_by_marks, LINE * len(names[name]) + 0.1)
                middles[group, name] = y + tall / 2
                y += tall
    middle = [
        middles[place] for place in zip(marks["_group"], marks["_row"], strict=True)
    ]
    own_y = middle + STEP * (by_row.cumcount() - (n_marks - 1) / 2)
    return marks.assign(_middle=middle, _y=own_y, _many=n_marks), headings, y


def _texts(marks: pd.DataFrame, columns: Mapping[str, str]) -> dict[str, pd.Series]:
    """Heading -> a text for each mark; '' for what is missing."""
    texts_by_heading = {}
    for heading, template in columns.items():
        filled = [template.format_map(mark) for mark in marks.to_dict("records")]
        texts = pd.Series(filled, index=marks.index)
        is_missing = texts.str.contains(r"\bnan\b")
        texts = texts.mask(is_missing, "")
        texts = texts.str.replace("%", " %")
        # a zero has no sign
        texts = texts.str.replace(r"^[+-](0(\.0+)?)$", r"\1", regex=True)
        texts_by_heading[heading] = texts.str.replace("-", "−")
    return texts_by_heading


def _column_ends(texts: Mapping[str, pd.Series]) -> dict[str, float]:
    """Heading -> where its column ends (points right of the axes), wide enough for its texts."""
    ends = {}
    end = 0.0
    for heading, column in texts.items():
        letters = max(column.str.len().max(), *map(len, heading.split("\n")))
        end += 5.7 * letters + 13
        ends[heading] = end
    return ends


def _scale(ax: Axes, drawn: pd.DataFrame, lines: Sequence[Line]) -> None:
    """An axis that holds what is ``drawn`` and the lines, with a margin."""
    places = [line.at for line in lines]
    values = [*drawn.to_numpy(float).ravel(), *places]
    low = 0.0
    high = 1.0
    if np.isfinite(values).any():
        low = np.nanmin(values)
        high = np.nanmax(values)
    margin = 0.04 * (high - low) or 0.05
    ax.set_xlim(low - margin, high + margin)
    n_ticks = 9
    if inches(ax)[0] < 5:
        n_ticks = 5
    ax.xaxis.set_major_locator(MaxNLocator(n_ticks, steps=STEPS))


def _rules(ax: Axes, rows: Any, headings: Sequence[float]) -> None:
    """A pale line through each row, and one above each heading."""
    ax.grid(visible=False, axis="y")
    across = ax.get_yaxis_transform()
    ax.hlines(rows, 0, 1, color="#EFEFEF", transform=across, lw=0.8, zorder=0.5)
    for y in headings:
        ax.axhline(y - HEADING / 2, color="#C8C8C8", lw=0.8, zorder=0.5)


def _draw_bands(ax: Axes, part: pd.DataFrame, bands: Sequence[Band]) -> None:
    """Grey bands behind the rows, with their middles."""
    for band in bands:
        for mark in part.to_dict("records"):
            middle = mark["_middle"]
            ends = (middle - 0.4 * ROW, middle + 0.4 * ROW)
            low = mark[band.low]
            high = mark[band.high]
            ax.fill_betweenx(ends, low, high, color=BAND, lw=0, zorder=0.6)
            if band.middle:
                ax.vlines(mark[band.middle], *ends, color=GREY, lw=1.3, zorder=0.8)


def _draw_lines(ax: Axes, lines: Sequence[Line]) -> None:
    """Upright lines, the dashed ones named above the axes; right of a line at the left edge, where
    a centred name would stand over what is beside the axes."""
    low, high = ax.get_xlim()
    for line in lines:
        at = float(line.at)
        ax.axvline(at, ls=":" if line.dotted else "--", lw=1.2, color=INK, zorder=1)
        if line.words and not line.dotted:
            is_at_edge = at < low + 0.1 * (high - low)
            ax.annotate(
                line.words,
                (at, 1),
                (0, 4),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                ha="left" if is_at_edge else "center",
                va="bottom",
                size=9,
            )


def _draw_mark(ax: Axes, mark: Mapping[Any, Any], x: str) -> None:
    """A mark with its interval, or in small print why there is none."""
    if pd.isna(mark[x]):
        _write_reason(ax, mark)
        return
    colour = mark["_colour"]
    ax.hlines(
        mark["_y"], mark["low"], mark["high"], color=colour, lw=2, alpha=0.8, zorder=3
    )
    style.plot_marks(
        ax,
        mark[x],
        mark["_y"],
        mark["n_cases"],
        colour=colour,
        marker=mark["_shape"],
        size=style.MARKER_POINTS[mark["_shape"]] * (0.85 if mark["_many"] > 1 else 1),
    )


def _write_reason(ax: Axes, mark: Mapping[Any, Any]) -> None:
    """In small print, in the place of a mark: why it is missing, or was not worked out."""
    reason = mark["_reason"] or "no reason given"
    what = "withheld" if reason.startswith("fewer than") else "missing"
    lines = textwrap.wrap(
        f"{what}: {reason}",
        int(inches(ax)[0] * 72 / 4.7) - 2,
        max_lines=1 if mark["_many"] > 1 else 2,
        placeholder=" …",
    )
    ax.annotate(
        "\n".join(lines),
        (0, mark["_y"]),
        (6, 0),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        size=8 if len(lines) == 1 else 7,
        color=GREY,
        linespacing=1.05,
        bbox={"fc": "white", "ec": "none", "pad": 2.5},
        zorder=4,
        va="center",
        parse_math=False,
    )


def _write_column(ax: Axes, heading: str, end: float, part: pd.DataFrame) -> None:
    """Texts that end ``end`` points right of the axes, one a row where its marks' are alike, and
    above all rows the heading."""
    is_tall = "\n" in heading
    ax.annotate(
        heading,
        (1, 1),
        (end, 4 if is_tall else 6),
        xycoords="axes fraction",
        textcoords="offset points",
        ha="right",
        va="bottom" if is_tall else "baseline",
        linespacing=1.15,
        size=9,
        color=GREY,
    )
    by_row: Any = part.groupby(["_group", "_row"], sort=False)
    for _, row in by_row:
        is_alike = row["_text"].nunique() == 1
        texts = row["_text"].iloc[:1] if is_alike else row["_text"]
        heights = row["_middle"].iloc[:1] if is_alike else row["_y"]
        for y, text in zip(heights, texts, strict=True):
            ax.annotate(
                text,
                (1, y),
                (end, 0),
                xycoords=("axes fraction", "data"),
                textcoords="offset points",
                ha="right",
                va="center_baseline",
                size=9 if is_alike else 8,
                color=GREY if heading == "n" else INK,
            )


def _write_names(
    ax: Axes,
    marks: pd.DataFrame,
    x: str,
    names: Mapping[str, list[str]],
    headings: Mapping[float, str],
) -> None:
    """Names, and bold headings, at the left; grey where a row has no value in any panel."""
    heights = list(headings)
    words = list(headings.values())
    has_value: list[Any] = [True] * len(headings)
    counts: Any = marks.groupby(["_middle", "_row"])[x].count()
    for (y, name), n_values in counts.items():
        heights.append(y)
        words.append("\n".join(names[name]))
        has_value.append(n_values)
    ax.set_yticks(heights, words, parse_math=False)
    ax.tick_params(axis="y", length=0)
    for k, tick in enumerate(ax.get_yticklabels()):
        tick.set_color(INK if has_value[k] else GREY)
        tick.set_fontweight("bold" if k < len(headings) else "normal")


def _write_legend(
    ax: Axes,
    marks: pd.DataFrame,
    series: Sequence[str],
    families: Mapping[str, str] | None,
    lines: Iterable[Line | Band],
) -> None:
    """Families and series, then what stands behind; in one row where they are few."""
    of_marks = _handles_of_marks(marks, series, families)
    of_rest = _handles_of_rest(lines)
    if len(of_marks) + len(of_rest) <= MOST_IN_LEGEND:
        style.legend_below(ax, [*of_marks, *of_rest])
    else:
        style.legend_below(ax, of_marks, of_rest)


def _handles_of_marks(
    marks: pd.DataFrame, series: Sequence[str], families: Mapping[str, str] | None
) -> list[Line2D]:
    """The families, or the series where there are several."""
    if families:
        return style.family_marks(
            style.family_of(name, families) for name in marks["method"]
        )
    if len(series) == 1:
        return []
    looks = zip(series, cycle(style.SERIES), strict=False)
    return [style.legend_mark(words_of(name), *look) for name, look in looks]


def _handles_of_rest(lines: Iterable[Line | Band]) -> list[Line2D]:
    """What the legend says of bands and of dotted lines."""
    handles: dict[str, Line2D] = {}
    for line in lines:
        if isinstance(line, Band):
            handles[line.words] = Line2D(
                [], [], label=line.words, color=BAND, marker="s", ms=10, ls=""
            )
            if line.middle:
                handles["its median"] = Line2D(
                    [],
                    [],
                    label="its median",
                    color=GREY,
                    marker="|",
                    ms=11,
                    mew=1.3,
                    ls="",
                )
        elif line.dotted:
            handles[line.words] = Line2D(
                [], [], label=line.words, color=INK, lw=1.4, ls=":"
            )
    return list(handles.values())


STRATA = {"pooled": "Pooled over levels", "within": "Level-stratified"}


def auroc_rows(table: pd.DataFrame, families: Mapping[str, str]) -> list[Axes]:
    """AUROC of each method with its interval, from the lines of one model and data set in a
    ``metrics_table``; level-stratified too where there is more than one level."""
    is_stratified = table.loc[table["level"].str.isdigit(), "level"].nunique() > 1
    level = "within" if is_stratified else "pooled"
    drawn = rows_where(table, table["level"].isin(["pooled", level]))
    if not len(drawn):
        levels = ", ".join(map(str, table["level"].unique()))
        raise ValueError(f"no line has the level 'pooled'; the table's are {levels}")
    order = by_value(rows_where(drawn, drawn["level"].eq(level)))
    drawn = drawn.assign(level=drawn["level"].astype(str).replace(STRATA))
    return intervals(
        drawn,
        panels="level",
        order=order,
        lines=[Line(0.5, "chance 0.50")],
        columns={"value": "{value:.2f}", "n": "{n:,.0f}"},
        xlabel="AUROC, 0 to 1",
        families=families,
    )
