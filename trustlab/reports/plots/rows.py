"""Draws rows: a name, a mark with its interval, its numbers."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from trustlab.confidence import METHODS
from trustlab.metrics import schema
from trustlab.metrics.schema import rows_where
from trustlab.reports.plots import style
from trustlab.reports.plots.style import GREY, INK, family_of, inches, label, mark_look, paler

SERIES = (
    (INK, "o"),
    (style.FAMILY_COLOURS["trust"], "P"),
    (style.FAMILY_COLOURS["token"], "s"),
    (style.FAMILY_COLOURS["consistency"], "^"),
    (style.FAMILY_COLOURS["verbalized"], "D"),
    (style.FAMILY_COLOURS["medconf"], "X"),
    (style.FAMILY_COLOURS["baseline"], "*"),
)
"""Looks of marks without a family, in their order in a row."""
WIDTHS = {1: 5.2, 2: 3.7}  # inches of a panel's inside by the number of panels
NARROW = 2.7
ROW, STEP, LINE, HEADING = 0.27, 0.15, 0.165, 0.3
"""Inches: a row of one mark, each mark more, a line of a name, the heading of a group."""
BAND = "#DDDDDD"
REPEATED: Any = {"ms": 6, "mfc": "#D0D0D0", "mec": "#9A9A9A", "mew": 1.0, "ls": ""}
NEAREST = 0.9995  # how near to 1 a stretched axis goes
TICKS = [-0.99, -0.9, -0.5, 0, 0.5, 0.9, 0.97, 0.99, 0.999]


class Line(NamedTuple):
    """An upright line: dashed and named above the axes, or ``dotted`` and named in the legend.
    ``panel``: the one that has it; '' for all."""

    at: float
    words: str = ""
    panel: str = ""
    dotted: bool = False


class Band(NamedTuple):
    """A grey band behind each row: what the legend calls it, the columns of its ends and middle."""

    words: str
    low: str = "chance_low"
    high: str = "chance_high"
    middle: str = ""


class Sure(NamedTuple):
    """Marks with a dark edge: the column that is true of them, and what the legend says of it."""

    column: str
    words: str


def by_value(table: pd.DataFrame, x: str = "value", *, rising: bool = False) -> list[str]:
    """Methods by their values, the highest first (``rising``: the lowest); missing last."""
    by_name = table.sort_values("method")
    ordered = by_name.sort_values(x, ascending=rising, kind="stable", na_position="last")
    return list(dict.fromkeys(ordered["method"]))


def rows(  # noqa: PLR0913
    table: pd.DataFrame,
    families: Mapping[str, str] | None = None,
    *,
    row: str = "method",
    x: str = "value",
    series: str = "",
    panels: str = "",
    groups: str = "",
    order: Sequence[str] | None = None,
    names: Mapping[str, str] | None = None,
    pale: Sequence[str] = (),
    sure: Sure | None = None,
    band: Band | None = None,
    ghost: str = "",
    lines: Sequence[Line] = (),
    columns: Mapping[str, str] | None = None,
    unit: float = 1.0,
    limits: Any = None,
    stretched: Sequence[str] = (),
    xlabel: Any = "",
    reasons: bool = True,
) -> list[Axes]:
    """A mark at ``x`` for each line of ``table``, with its interval ``low`` to ``high``.

    - Marks below twelve cases (``n_cases``) are hollow; a row without a value shows ``missing``.
      The name of one with ``own_rows`` has a star.
    - ``families``: family by method; a mark of the method '' is black.
    - ``row``, ``series``, ``panels``, ``groups``: columns that name the rows, the marks under one
      another in a row, the panels side by side, and the headings of groups of rows. All are in the
      order of the table; ``order`` gives another order of rows.
    - ``names``: value -> its word. ``pale``: series in paler colours. ``sure``, ``band``,
      ``lines``: see :class:`Sure` and so on. ``ghost``: the panel that the last one repeats, small
      and grey.
    - ``columns``: heading -> a format such as ``"{n:,.0f}"``.
    - ``unit``: a factor for all that is drawn. ``limits``: the least range of an axis.
    - ``stretched``: panels whose axis is stretched towards 1 and -1 (Fisher's z).
    - ``limits`` and ``xlabel`` may be given by panel; panels with one label share a scale.
    - Without ``reasons``, a series has no room in a row where it has no value and others have one.
    - ``ValueError`` for lacking columns, no lines, two lines for one mark, or an unknown name.
    """
    given = {"_panel": panels, "_group": groups, "_row": row, "_series": series}
    held = [x, "low", "high", *filter(None, band[1:] if band else ())]
    marks = _checked(table, given, held, unit)
    known: dict[str, list[str]] = {at: list(dict.fromkeys(marks[at])) for at in given}
    _among(order or (), known["_row"], "order")
    _among(pale, known["_series"], "pale")
    _among([ghost, *stretched, *(line.panel for line in lines)], ["", *known["_panel"]], "a panel")
    marks = marks if reasons else _with_values(marks, x)
    marks["_sure"] = marks[sure.column].astype(bool) if sure else False
    marks = _looks(marks, families, known["_series"], pale)
    called = {method: m.label for method, m in METHODS.items()} | dict(names or {}) | {"": ""}
    called = {name: called.get(name, name) for of in known.values() for name in of}

    row_names = {name: (names or {}).get(name, label(name)) for name in known["_row"]}
    if "own_rows" in marks:
        for name in marks.loc[marks["own_rows"].eq(True), "_row"].unique():
            row_names[name] += " *"
    row_names = {name: textwrap.wrap(words, 40) or [""] for name, words in row_names.items()}
    groups_named = {name: called[name] for name in known["_group"]}
    marks, headings, height = _placed(marks, groups_named, order or known["_row"], row_names)
    beside = _columns(marks, columns or {})
    n = len(known["_panel"])
    ends = [end for end, _ in beside.values()]
    axes = style.axes_grid(WIDTHS.get(n, NARROW), height, n, max(ends, default=0) / 72 + 0.25)
    for ax, panel in zip(axes, known["_panel"], strict=True):
        part = rows_where(marks, marks["_panel"].eq(panel))
        mine = [line for line in lines if line.panel in ("", panel)]
        ax.set(ylim=(height, 0), yticks=[], xlabel=_of(xlabel, panel) or "")
        scaled = part if isinstance(xlabel, Mapping) else marks
        _scale(ax, scaled.loc[:, held], mine, _of(limits, panel), panel in stretched)
        _rules(ax, marks["_middle"].unique(), list(headings)[1:])
        _behind(ax, part, band, mine)
        for mark in part.to_dict("records"):
            _mark(ax, mark, x)
        for heading, (end, texts) in beside.items():
            _column(ax, heading, end, part.assign(_text=texts))
        if called[panel]:
            above = any(line.words and not line.dotted for line in lines)
            ax.set_title(called[panel], pad=20 if above else 9)
    if ghost:
        _repeat(axes[-1], marks, x, ghost, known["_panel"][-1])
    _names(axes[0], marks, x, row_names, headings)
    told = _of_marks(marks, known["_series"], families, pale, called)
    more = _of_rest(sure, band, called.get(ghost, ""), lines)
    style.legend_below(axes[0], *([[*told, *more]] if len(told) + len(more) <= 6 else [told, more]))
    return axes


def _checked(
    table: pd.DataFrame, given: Mapping[str, str], held: Sequence[str], unit: float
) -> pd.DataFrame:
    """A copy whose columns ``given`` say where a mark stands, in the unit drawn, with a reason."""
    schema.need(table, [*filter(None, given.values()), *held, "n_cases"])
    if not len(table):
        raise ValueError("the table has no lines: there is nothing to draw")
    table = table.reset_index(drop=True)
    marks = table.assign(**{at: table[of].astype(str) if of else "" for at, of in given.items()})
    schema.refuse(table, marks.duplicated(list(given)), "a mark has several lines")
    marks[list(held)] = unit * table[list(held)].astype(float)
    why = table["missing"].astype(object).fillna("") if "missing" in table else ""
    return marks.assign(_reason=why)


def _with_values(marks: pd.DataFrame, x: str) -> Any:
    """The marks without those of series that have no value in a row, where other series have."""
    row = ["_group", "_row"]
    has = marks.assign(has=marks[x].notna())
    others: Any = has.groupby(row)["has"].transform("any")
    mine: Any = has.groupby([*row, "_series"])["has"].transform("any")
    return marks[mine | ~others].copy()


def _among(wanted: Sequence[str], known: Sequence[str], what: str) -> None:
    if unknown := [name for name in wanted if name not in known]:
        raise ValueError(f"{what} names {unknown}; the table holds {list(known)}")


def _of(option: Any, panel: str) -> Any:
    return option.get(panel) if isinstance(option, Mapping) else option


def _looks(
    marks: pd.DataFrame,
    families: Mapping[str, str] | None,
    series: Sequence[str],
    pale: Sequence[str],
) -> pd.DataFrame:
    """The marks in the order of their series, with the ``_colour`` and ``_shape`` of each."""
    kinds = [[name for name in series if (name in pale) is light] for light in (False, True)]
    looks = {name: SERIES[k % len(SERIES)] for kind in kinds for k, name in enumerate(kind)}

    def look(mark: Mapping[str, Any]) -> tuple[Any, str]:
        colour, shape = looks[mark["_series"]]
        if families is not None:
            family = family_of(mark["method"], families) if mark["method"] else ""
            colour = style.FAMILY_COLOURS.get(family, INK)
            shape = style.FAMILY_MARKERS.get(family, "o")
        return paler(colour) if mark["_series"] in pale else colour, shape

    colours, shapes = zip(*map(look, marks.to_dict("records")), strict=True)
    place = marks["_series"].map(list(series).index)
    marks = marks.assign(_colour=colours, _shape=shapes, _place=place)
    return marks.sort_values("_place", kind="stable")


def _placed(
    marks: pd.DataFrame,
    groups: Mapping[str, str],
    order: Sequence[str],
    names: Mapping[str, list[str]],
) -> tuple[pd.DataFrame, dict[float, str], float]:
    """The marks with the ``_middle`` of their row, their own height ``_y`` and how ``_many`` stand
    in it; headings by their heights; the end. All in inches from the top."""
    of_row = ["_group", "_row"]
    here = marks.groupby([*of_row, "_panel"])
    many: Any = here["_row"].transform("size")
    most = many.groupby([marks[name] for name in of_row]).max().to_dict()
    middles = {}
    headings = {}
    y = 0.0
    for group, heading in groups.items():
        if heading:
            headings[y + HEADING / 2] = heading
            y += HEADING
        for name in [name for name in order if (group, name) in most]:
            tall = max(ROW + STEP * (most[group, name] - 1), LINE * len(names[name]) + 0.1)
            middles[group, name] = y + tall / 2
            y += tall
    middle = [middles[key] for key in marks[of_row].itertuples(index=False, name=None)]
    own = middle + STEP * (here.cumcount() - (many - 1) / 2)
    return marks.assign(_middle=middle, _y=own, _many=many), headings, y


def _columns(marks: pd.DataFrame, columns: Mapping[str, str]) -> dict[str, tuple[float, pd.Series]]:
    """Heading -> where the column ends (points right of the axes), wide enough for its texts, and a
    text for each mark; '' for what is not known."""
    made = {}
    end = 0.0
    for heading, told in columns.items():
        texts = pd.Series(map(told.format_map, marks.to_dict("records")), index=marks.index)
        texts = texts.where(~texts.str.contains("nan"), "").str.replace("%", " %")
        texts = texts.str.replace(r"^[+-](0(\.0+)?)$", r"\1", regex=True).str.replace("-", "−")
        end += 5.7 * max(texts.str.len().max(), *map(len, heading.split("\n"))) + 13
        made[heading] = end, texts
    return made


def _scale(ax: Axes, drawn: pd.DataFrame, lines: Sequence[Line], least: Any, stretch: bool) -> None:
    """An axis that holds what is ``drawn``, the lines and ``least``, with a margin."""
    numbers = drawn.to_numpy(float).ravel()
    held = [*numbers[~np.isnan(numbers)], *(line.at for line in lines), *(least or ())]
    low, high = (min(held), max(held)) if held else (0.0, 1.0)
    if stretch:
        ax.set_xscale("function", functions=(_fisher, np.tanh))
        low, high = np.tanh(_fisher([low, high]) + [-0.25, 0.25])
        ax.set_xlim(max(low, -NEAREST), min(high, NEAREST))
        ax.xaxis.set_major_locator(FixedLocator(TICKS))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda r, _: f"{r:.4g}".replace("-", "−")))
        ax.xaxis.set_minor_locator(NullLocator())
        return
    room = 0.04 * (high - low) or 0.05
    ax.set_xlim(low - room, high + room)
    ax.xaxis.set_major_locator(MaxNLocator(5 if inches(ax)[0] < 5 else 9, steps=[1, 2, 2.5, 5, 10]))


def _fisher(r: Any) -> np.ndarray:
    return np.arctanh(np.clip(r, -NEAREST, NEAREST))


def _rules(ax: Axes, rows: Any, headings: Sequence[float]) -> None:
    """A pale line through each row, and one above each heading."""
    look: Any = {"lw": 0.8, "zorder": 0.5}
    ax.grid(visible=False, axis="y")
    ax.hlines(rows, 0, 1, color="#EFEFEF", transform=ax.get_yaxis_transform(), **look)
    for y in headings:
        ax.axhline(y - HEADING / 2, color="#C8C8C8", **look)


def _behind(ax: Axes, part: pd.DataFrame, band: Band | None, lines: Sequence[Line]) -> None:
    """Bands behind the rows, and upright lines."""
    for mark in part.to_dict("records") if band else ():
        assert band is not None
        ends = mark["_middle"] - 0.4 * ROW, mark["_middle"] + 0.4 * ROW
        ax.fill_betweenx(ends, mark[band.low], mark[band.high], color=BAND, lw=0, zorder=0.6)
        if band.middle:
            ax.vlines(mark[band.middle], *ends, color=GREY, lw=1.3, zorder=0.8)
    for line in lines:
        ax.axvline(line.at, ls=":" if line.dotted else "--", lw=1.2, color=INK, zorder=1)
        if line.words and not line.dotted:
            ax.annotate(
                line.words,
                (line.at, 1),
                (0, 4),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                ha="center",
                va="bottom",
                size=9,
            )


def _mark(ax: Axes, mark: Mapping[str, Any], x: str) -> None:
    """A mark with its interval, or in small print why there is none."""
    many = mark["_many"] > 1
    if pd.isna(mark[x]):
        words = (mark["_reason"] or "no reason given").removeprefix("no confidence: ")
        words = f"{'withheld' if words.startswith('fewer than') else 'missing'}: {words}"
        letters = int(inches(ax)[0] * 72 / 4.7) - 2
        told = textwrap.wrap(words, letters, max_lines=1 if many else 2, placeholder=" …")
        text = ax.annotate(
            "\n".join(told),
            (0, mark["_y"]),
            (6, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            size=8 if len(told) == 1 else 7,
            color=GREY,
            linespacing=1.05,
            bbox={"fc": "white", "ec": "none", "pad": 2.5},
            zorder=4,
            va="center",
        )
        text.set_parse_math(False)
        return
    colour = mark["_colour"]
    ax.hlines(mark["_y"], mark["low"], mark["high"], color=colour, lw=2, alpha=0.8, zorder=3)
    style.plot_marks(
        ax,
        mark[x],
        mark["_y"],
        mark["n_cases"],
        color=colour,
        marker=mark["_shape"],
        sure=mark["_sure"],
        zorder=4,
        clip_on=False,  # a stretched axis ends at 1
        ms=style.MARKER_POINTS[mark["_shape"]] * (0.85 if many else 1),
    )


def _column(ax: Axes, heading: str, end: float, part: pd.DataFrame) -> None:
    """Texts that end ``end`` points right of the axes, one a row where its marks' are alike, and
    above all rows the heading."""
    va, up = ("bottom", 4) if "\n" in heading else ("baseline", 6)
    ax.annotate(
        heading,
        (1, 1),
        (end, up),
        xycoords="axes fraction",
        textcoords="offset points",
        ha="right",
        va=va,
        linespacing=1.15,
        size=9,
        color=GREY,
    )
    rows: Any = part.groupby(["_group", "_row"], sort=False)
    for _, row in rows:
        alike = row["_text"].nunique() == 1
        for y, text in zip(row["_y"], row["_text"], strict=True):
            place = (1, row["_middle"].iloc[0] if alike else y)
            ax.annotate(
                text,
                place,
                (end, 0),
                xycoords=("axes fraction", "data"),
                textcoords="offset points",
                ha="right",
                va="center_baseline",
                size=9 if alike else 8,
                color=GREY if heading == "n" else INK,
            )
            if alike:
                break


def _repeat(ax: Axes, marks: pd.DataFrame, x: str, ghost: str, last: str) -> None:
    """The values of the panel ``ghost`` once more, with a line to those of the last one."""
    keys = ["_group", "_row", "_series"]
    each = [rows_where(marks, marks["_panel"].eq(panel)) for panel in (ghost, last)]
    was, now = (part.dropna(subset=x) for part in each)
    both = was.merge(now[[*keys, x, "_y"]], on=keys, suffixes=("", "_now"))
    for mark in both.to_dict("records"):
        y = mark["_y_now"]
        ax.plot([mark[x], mark[f"{x}_now"]], [y, y], color=REPEATED["mec"], lw=0.9, zorder=1.5)
        ax.plot(mark[x], y, marker=mark["_shape"], zorder=2, **REPEATED)


def _names(
    ax: Axes,
    marks: pd.DataFrame,
    x: str,
    names: Mapping[str, list[str]],
    headings: Mapping[float, str],
) -> None:
    """Names, and bold headings, at the left; grey where a row has no value in any panel."""
    told = [(y, words, INK, "bold") for y, words in headings.items()]
    rows: Any = marks.groupby(["_middle", "_row"])[x].count()
    for (y, name), n_known in rows.items():
        told.append((y, "\n".join(names[name]), INK if n_known else GREY, "normal"))
    ax.set_yticks([y for y, *_ in told], [text for _, text, *_ in told])
    ax.tick_params(axis="y", length=0)
    for tick, (*_, colour, weight) in zip(ax.get_yticklabels(), told, strict=True):
        tick.set(color=colour, weight=weight)


def _of_marks(
    marks: pd.DataFrame,
    series: Sequence[str],
    families: Mapping[str, str] | None,
    pale: Sequence[str],
    called: Mapping[str, str],
) -> list[Line2D]:
    """The legend's families, and series in grey; series alone where each of them has one look."""
    looks = marks[["_series", "_colour", "_shape"]].drop_duplicates().to_numpy().tolist()
    alone = len(looks) == len(series) > 1
    if not alone:
        greys = [(name, paler(GREY) if name in pale else GREY, "o") for name in series]
        looks = greys if len(series) > 1 else []
    found = [] if alone or not families else [families[name] for name in marks["method"] if name]
    return style.family_marks(found) + [style.legend_mark(called[s], c, m) for s, c, m in looks]


def _of_rest(
    sure: Sure | None, band: Band | None, ghost: str, lines: Sequence[Line]
) -> list[Line2D]:
    """What the legend says beside families and series."""
    looks: dict[str, Any] = {}
    if sure:
        looks[sure.words] = {"marker": "o", "ms": 7, "ls": "", **mark_look("#BDBDBD", sure=True)}
    if ghost:
        looks[f"{ghost}, repeated"] = {"marker": "o", **REPEATED}
    if band:
        looks[band.words] = {"color": BAND, "marker": "s", "ms": 10, "ls": ""}
    if band and band.middle:
        looks["its median"] = {"color": GREY, "marker": "|", "ms": 11, "mew": 1.3, "ls": ""}
    looks |= {line.words: {"color": INK, "lw": 1.4, "ls": ":"} for line in lines if line.dotted}
    return [Line2D([], [], label=words, **look) for words, look in looks.items()]


STRATA = {"pooled": "Pooled over levels", "within": "Level-stratified"}


def auroc_rows(table: pd.DataFrame, families: Mapping[str, str]) -> Any:
    """AUROC of each method with its interval, from the lines of one model and data set in a
    ``metrics_table``; level-stratified too where there is more than one level."""
    stratified = table.loc[table["level"].str.isdigit(), "level"].nunique() > 1
    last = "within" if stratified else "pooled"
    return rows(
        rows_where(table, table["level"].isin(["pooled", last])),
        families,
        panels="level",
        ghost="pooled" if stratified else "",
        order=by_value(rows_where(table, table["level"].eq(last))),
        names=STRATA if stratified else {"pooled": "All answers"},
        lines=[Line(0.5, "chance 0.50")],
        columns={"value": "{value:.2f}", "n": "{n:,.0f}"},
        xlabel="AUROC, 0 to 1",
    )
