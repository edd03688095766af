"""How every figure looks, what it says underneath, and how it is saved with the table behind it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.text import Text
from scipy.optimize import isotonic_regression

from trustlab.confidence.registry import label  # noqa: F401 (figures take it from here)
from trustlab.metrics.estimate import MIN_CASES

FAMILY_COLOURS: dict[str, str] = {
    "token": "#0072B2",
    "consistency": "#E69F00",
    "verbalized": "#009E73",
    "medconf": "#D55E00",
    "baseline": "#56B4E9",
    "trust": "#CC79A7",
}
"""Okabe and Ito's colours, which colour-blind readers can tell apart."""

FAMILY_MARKERS: dict[str, str] = {
    "token": "o",
    "consistency": "s",
    "verbalized": "^",
    "medconf": "D",
    "baseline": "X",
    "trust": "P",
}
"""One shape per family, so that a figure printed in grey can still be read."""

FAMILY_LABELS: dict[str, str] = {
    "token": "token",
    "consistency": "consistency",
    "verbalized": "self-verbalised",
    "medconf": "MedConf",
    "baseline": "baseline",
    "trust": "trust",
}

INK = "#222222"
GREY = "#6E6E6E"
CAPTION_POINTS = 8.5
FEW = "_few"
"""Label of a mark with fewer cases than an interval takes; matplotlib keeps it out of legends, a caption looks for it."""
VALUES = (
    "value", "difference", "accuracy", "probability", "confidence", "rank", "share", "error", "tau",
    "r", "rho", "p_number",
)  # fmt: skip
"""Columns that hold what a figure draws: a table that has some of them, all without a value, draws nothing."""
DPI = 150
SVG: Any = {"svg.fonttype": "none", "svg.hashsalt": "trustlab"}
"""Text stays text, and the names of an SVG's parts do not change from one run to the next."""


def family_of(method: str, families: Mapping[str, str]) -> str:
    """The family of ``method``. Raises ``ValueError`` where ``families`` lacks it or names a family without a colour."""
    family = families.get(method)
    if family not in FAMILY_COLOURS:
        raise ValueError(
            f"families gives {family!r} for method {method!r}; allowed are {list(FAMILY_COLOURS)}"
        )
    return family


def text_colour(family: str) -> tuple[float, float, float]:
    """The family's colour, darkened until small text is legible on white (contrast at least 4.5 to 1)."""
    red, green, blue = to_rgb(FAMILY_COLOURS[family])
    return 0.65 * red, 0.65 * green, 0.65 * blue


def mark_look(colour: Any, n_cases: float = MIN_CASES, *, sure: bool = False) -> dict[str, Any]:
    """How a mark is filled: with ``colour``, or hollow where fewer than ten cases stand behind it, for it has no interval.

    ``n_cases`` NaN: a number that others printed. ``sure`` gives it a dark edge, whose meaning the
    figure's legend tells.
    """
    if n_cases < MIN_CASES:
        return {"mfc": "white", "mec": INK if sure else colour, "mew": 1.4, "label": FEW}
    return {"mfc": colour, "mec": INK if sure else "white", "mew": 1.5 if sure else 0.6}


def plot_marks(
    ax: Axes, x: Any, y: Any, n_cases: Any, *, color: Any, sure: bool = False, **look: Any
) -> None:
    """Marks at ``x`` and ``y`` (n,) without a line, each filled as :func:`mark_look` says of its ``n_cases`` (n,)."""
    points = zip(np.atleast_1d(x), np.atleast_1d(y), np.atleast_1d(n_cases), strict=True)
    for px, py, n in points:
        ax.plot(px, py, ls="", color=color, **{**look, **mark_look(color, n, sure=sure)})


def paler(colour: Any) -> tuple[float, float, float]:
    """``colour`` halfway to white: the second of two series of one colour."""
    red, green, blue = (0.5 + 0.5 * part for part in to_rgb(colour))
    return red, green, blue


def told_n(counts: Iterable[float]) -> str:
    """The numbers behind several marks: "24", or "8 to 24" where they differ; '' for none."""
    known = sorted({int(n) for n in counts if n == n})
    return " to ".join(f"{n:,}" for n in dict.fromkeys([*known[:1], *known[-1:]]))


def family_legend(ax: Axes, families: Iterable[str], more: Sequence[Line2D] = ()) -> None:
    """The families and ``more`` in one row under the axes' label, whatever the axes' height."""
    shown = _present(families)
    look: Any = {"ls": "", "ms": 7.5, "mec": "white", "mew": 0.6}
    handles = [
        Line2D(
            [],
            [],
            marker=FAMILY_MARKERS[name],
            color=FAMILY_COLOURS[name],
            label=FAMILY_LABELS[name],
            **look,
        )
        for name in shown
    ]
    handles += more
    place: Any = {
        "loc": "upper left",
        "bbox_to_anchor": (0, -0.58 / inches(ax)[1]),
        "borderaxespad": 0,
        "borderpad": 0,
    }
    ax.legend(
        handles=handles,
        ncols=len(handles),
        frameon=False,
        handletextpad=0.1,
        columnspacing=1.0,
        **place,
    )


def name_colours(ax: Axes, families: Iterable[str], top: float) -> None:
    """Which family a coloured name belongs to: at the right, hanging from ``top`` (fraction of the axes' height)."""
    shown = _present(families)
    handles = [Line2D([], [], ls="", label=FAMILY_LABELS[name]) for name in shown]
    place: Any = {
        "loc": "upper right",
        "bbox_to_anchor": (1, top),
        "borderaxespad": 0,
        "borderpad": 0,
        "handlelength": 0,
    }
    colours: Any = [text_colour(name) for name in shown]
    title: Any = {"title": "Colour of a name: its family", "title_fontsize": 10}
    ax.legend(handles=handles, labelcolor=colours, ncols=2, frameon=False, **title, **place)


def axes_row(width: float, height: float, n: int = 1, gap: float = 0.0) -> list[Axes]:
    """``n`` axes side by side, each exactly ``width`` x ``height`` inches; names around them are kept when it is saved."""
    left, below = 0.7, 0.7
    whole, tall = left + n * (width + gap) + 0.3, below + height + 0.3
    figure = plt.figure(figsize=(whole, tall))
    return [
        figure.add_axes(
            ((left + i * (width + gap)) / whole, below / tall, width / whole, height / tall)
        )
        for i in range(n)
    ]


def axes_grid(width: float, height: float, n_rows: int, n_columns: int) -> list[Axes]:
    """Axes row by row, each exactly ``width`` x ``height`` inches, with room above for a title and at the right for numbers."""
    left, below, right, above = 0.7, 0.7, 1.3, 0.95
    whole, tall = left + n_columns * (width + right), below + n_rows * (height + above)
    figure = plt.figure(figsize=(whole, tall))
    places = [
        (left + j * (width + right), below + i * (height + above))
        for i in reversed(range(n_rows))
        for j in range(n_columns)
    ]
    return [figure.add_axes((x / whole, y / tall, width / whole, height / tall)) for x, y in places]


def panel_grid(n: int, most: int) -> list[Axes]:
    """``n`` small panels in rows of nearly equal length, at most ``most`` in a row, with shared axes."""
    n_rows = -(-n // most)
    columns = -(-n // n_rows)
    size = (2.35 * columns, 2.75 * n_rows)
    layout = ConstrainedLayoutEngine(h_pad=0.08, w_pad=0.04)
    _, grid = plt.subplots(
        n_rows, columns, figsize=size, sharex=True, sharey=True, squeeze=False, layout=layout
    )
    for ax in list(grid.flat)[n:]:
        ax.set_visible(False)
    return list(grid.flat)[:n]


def inches(ax: Axes) -> tuple[float, float]:
    """Width and height of the axes' inside, in inches."""
    box = ax.get_window_extent()
    return box.width / ax.figure.dpi, box.height / ax.figure.dpi


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> np.ndarray:
    """Places at least ``gap`` apart, nearest to the ascending ``wanted`` (least squares), in ``low`` to ``high`` if they fit."""
    steps = gap * np.arange(len(wanted))
    return (
        np.clip(isotonic_regression(np.asarray(wanted) - steps).x, low, max(high - steps[-1], low))
        + steps
    )


def use_style() -> None:
    """Set matplotlib's defaults for this process: white grid, 10 to 11 point text, 150 dpi, text in SVG kept as text."""
    sns.set_theme(
        context="notebook",
        style="whitegrid",
        rc={
            # DejaVu Sans comes with matplotlib, so figures agree between machines; Verdana is as wide, for SVG viewers.
            "font.family": ["sans-serif"],
            "font.sans-serif": ["DejaVu Sans", "Verdana"],
            "font.size": 10,
            "axes.titlesize": 11,
            "axes.labelsize": 10.5,
            "xtick.labelsize": 10,
            "ytick.labelsize": 10,
            "legend.fontsize": 10,
            "text.color": INK,
            "axes.labelcolor": INK,
            "xtick.color": INK,
            "ytick.color": INK,
            "axes.edgecolor": "#B5B5B5",
            "grid.color": "#E6E6E6",
            "grid.linewidth": 0.8,
            "axes.linewidth": 0.8,
            "lines.linewidth": 1.8,
            "figure.dpi": DPI,
            "savefig.dpi": DPI,
            **SVG,
        },
    )


def _counted(n: int, thing: str) -> str:
    return f"{n:,} {thing}{'' if n == 1 else 's'}"


def level_words(levels: Sequence[int]) -> str:
    """What a caption says of the information levels: "level 100 %", "levels 1, 20, 100 %"; '' for none."""
    named = ", ".join(str(level) for level in sorted(set(levels)))
    return f"level{'s' if len(set(levels)) > 1 else ''} {named} %" if named else ""


def caption(
    ax_or_fig: Axes | Figure,
    *,
    model: str | Sequence[str],
    dataset: str | Sequence[str],
    n_cases: int | None = None,
    n_rows: int | None = None,
    n_failed: int = 0,
    counts: str = "",
    levels: Sequence[int] = (),
    note: str = "",
    interval: str = "95 % case-bootstrap interval",
) -> Text:
    """Say in small print under the axes (or the whole figure) what was measured; returns the text.

    ``model`` and ``dataset`` may be one name or several. ``n_rows`` counts answers, of which
    ``n_failed`` could not be had or graded; ``counts`` are words in place of these numbers, for
    what is neither; ``levels`` are the information levels shown, in percent; ``interval=""`` where
    the figure shows none. Lines are as wide as what they stand under and break between the parts
    first. Hollow marks (:func:`mark_look`) are explained. Call it last: it fixes the layout, so
    that nothing moves into the text. Raises ``ValueError`` without numbers and without words for
    them.
    """
    figure = ax_or_fig if isinstance(ax_or_fig, Figure) else ax_or_fig.figure
    assert isinstance(figure, Figure)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    if isinstance(ax_or_fig, Figure):
        box = figure.get_tightbbox()  # in inches
    else:
        pixels = ax_or_fig.get_tightbbox()
        if pixels is None:
            raise ValueError("the axes are invisible, so no caption can stand under them")
        box = pixels.transformed(figure.dpi_scale_trans.inverted())
    width, height = figure.get_size_inches()
    text = figure.text(
        box.x0 / width,
        (box.y0 - 0.12) / height,
        "",
        ha="left",
        va="top",
        size=CAPTION_POINTS,
        color=GREY,
        linespacing=1.35,
    )
    text.set_parse_math(False)
    models, sets = (
        [names] if isinstance(names, str) else list(names) for names in (model, dataset)
    )
    told = [
        f"{name} (a very small model)" if name.startswith("embedded") else name for name in models
    ]
    who = f"{'model' if len(told) == 1 else 'models'} {', '.join(told)}"
    lost = f", {n_failed:,} of them missing" if n_failed else ""
    if not counts:
        if n_cases is None or n_rows is None:
            raise ValueError("a caption needs n_cases and n_rows, or counts")
        counts = f"{_counted(n_cases, 'case')}, {_counted(n_rows, 'answer')}{lost}"
    few = "hollow: fewer than 10 cases, no interval" if _any_few(figure) else ""
    parts = [who, f"data {', '.join(sets)}", counts, level_words(levels), interval, few, note]
    parts = [part for part in [*parts, "research only, not for clinical use"] if part]
    text.set_text(_wrapped(parts, text, box.width * figure.dpi))
    return text


def save_figure(
    fig: Figure, table: pd.DataFrame, name: str, folder: str | Path
) -> tuple[Path, Path, Path] | None:
    """Write ``name``.png, ``name``.svg and ``name``.csv (the table drawn) into ``folder``, made if absent; returns the paths.

    Floats in the table are rounded to 6 decimals; an index is kept unless it only counts rows. No
    file holds a date or a program's name, so the same figure gives the same bytes. Where nothing in
    the table can be drawn (:data:`VALUES`), no file is written: a line says why, the figure is
    closed, and ``None`` comes back. Raises ``ValueError`` where ``name`` is not a plain file name.
    """
    if not name or Path(name).name != name:
        raise ValueError(f"name is {name!r}; it must be a file name without folder or ending")
    if why := _nothing(table):
        print(f"Nothing to draw for {name}: {why}")
        plt.close(fig)
        return None
    base = Path(folder)
    base.mkdir(parents=True, exist_ok=True)
    png, svg, csv = (base / f"{name}.{ending}" for ending in ("png", "svg", "csv"))
    with plt.rc_context(SVG):
        for path, metadata in ((png, {"Software": None}), (svg, {"Date": None, "Creator": None})):
            fig.savefig(
                path,
                dpi=DPI,
                bbox_inches="tight",
                pad_inches=0.12,
                facecolor="white",
                metadata=metadata,
            )
    rounded = table.copy()
    for column in table.select_dtypes("floating").columns:
        rounded[column] = table[column].round(6) + 0.0  # + 0.0 turns -0.0 into 0.0
    rounded.to_csv(
        csv, index=not isinstance(table.index, pd.RangeIndex), lineterminator="\n", encoding="utf-8"
    )
    return png, svg, csv


def _nothing(table: pd.DataFrame) -> str:
    """Why a table has nothing to draw: its commonest reasons; '' where it has something."""
    held = [name for name in VALUES if name in table]
    if len(table) and (not held or table[held].notna().to_numpy().any()):
        return ""
    for name in ("missing", "missing"):
        if name in table and len(told := table[name].replace("", np.nan).dropna()):
            return "; ".join(told.value_counts().index[:3].astype(str))
    return "the table has no rows" if not len(table) else "no row has a value"


def _any_few(figure: Figure) -> bool:
    return any(artist.get_label() == FEW for artist in figure.findobj() if artist.get_visible())


def _present(families: Iterable[str]) -> list[str]:
    given = set(families)
    return [name for name in FAMILY_COLOURS if name in given]


def _wrapped(parts: list[str], text: Text, limit: float) -> str:
    """``parts`` joined by dots into lines at most ``limit`` pixels wide as ``text`` would draw them."""

    def fits(words: str) -> bool:
        text.set_text(words)
        return text.get_window_extent().width <= limit

    lines = [""]
    for part in parts:
        joined = f"{lines[-1]} · {part}" if lines[-1] else part
        if fits(joined):
            lines[-1] = joined
            continue
        if lines[-1]:
            lines.append("")
        for (
            word
        ) in part.split():  # breaks inside the part only where it is too wide for a line of its own
            longer = f"{lines[-1]} {word}".strip()
            if fits(longer) or not lines[-1]:
                lines[-1] = longer
            else:
                lines.append(word)
    return "\n".join(lines)
