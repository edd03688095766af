"""Says how every figure looks and is saved."""

from __future__ import annotations

import hashlib
import re
import textwrap
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from trustlab.confidence import METHODS
from trustlab.confidence.registry import label  # noqa: F401 (figures take it from here)
from trustlab.metrics.estimate import MIN_CASES
from trustlab.paths import save_table, whole
from trustlab.reports.families import FAMILY_COLOURS, FAMILY_LABELS, FAMILY_MARKERS

MARKER_POINTS = {
    "o": 8.0,
    "s": 7.5,
    "^": 9.0,
    "D": 7.5,
    "X": 9.5,
    "P": 9.5,
    "v": 9.0,
    "*": 13.0,
}
"""Sizes at which the families' shapes look equally large."""

LINES: tuple[Any, ...] = (
    "-",
    "--",
    ":",
    "-.",
    (0, (6, 1.5, 1, 1.5, 1, 1.5)),
    (0, (9, 3)),
)
"""The lines of the methods of one family, in order."""

INK = "#222222"
GREY = "#6E6E6E"
SERIES = (
    (INK, "o"),
    (FAMILY_COLOURS["trust"], "P"),
    (FAMILY_COLOURS["token"], "s"),
    (FAMILY_COLOURS["consistency"], "^"),
    (FAMILY_COLOURS["verbalized"], "D"),
    (FAMILY_COLOURS["medconf"], "X"),
    (FAMILY_COLOURS["baseline"], "*"),
)
"""Looks of what has no family, in their order."""
CAPTION_POINTS = 8.5
CAPTION_LETTERS, TITLE_LETTERS = 16, 10
"""Letters of small print, and of a title, that an inch holds."""
RESEARCH_ONLY = "research only, not for clinical use"
UNBROKEN = "\N{NO-BREAK SPACE}"
"""Between words that stay in one line."""
FEW = "_few"
"""Label of a mark of fewer than twelve cases: no legend shows it, and a caption looks for it."""
VALUES = (
    "value", "difference", "accuracy", "probability", "confidence", "rank", "share", "error", "tau",
    "r", "rho", "p_number",
)  # fmt: skip
"""Columns that figures draw: a table that has some of them, all without a value, draws nothing."""
DPI = 150
STYLE = Path(__file__).with_name("trustlab.mplstyle")
SVG: Any = {"svg.fonttype": "none", "svg.hashsalt": "trustlab"}
"""Text stays text, and the names of an SVG's parts do not change from one run to the next."""


def family_of(name: str, families: Mapping[str, str]) -> str:
    """The family of a method; '' for what is no method, and of all without ``families``.
    ``ValueError`` where they give a method none that has a colour."""
    if not families or (name not in families and name not in METHODS):
        return ""
    family = families.get(name)
    if family not in FAMILY_COLOURS:
        allowed = list(FAMILY_COLOURS)
        raise ValueError(
            f"families gives {family!r} for method {name!r}; allowed are {allowed}"
        )
    return family


def words_of(name: Any) -> str:
    """The label of a method; any other name stands as it is."""
    return METHODS[name].label if name in METHODS else str(name)


def text_colour(family: str) -> tuple[float, float, float]:
    """The family's colour, dark enough for small text on white (contrast at least 4.5 to 1)."""
    red, green, blue = to_rgb(FAMILY_COLOURS[family])
    return 0.65 * red, 0.65 * green, 0.65 * blue


def plot_marks(
    ax: Axes,
    x: Any,
    y: Any,
    n_cases: Any,
    *,
    colour: Any,
    marker: str,
    size: float,
) -> None:
    """Marks at ``x`` and ``y`` (n,), filled, or hollow below twelve ``n_cases``, which have no
    interval. NaN cases: a number that others printed."""
    places = zip(
        np.atleast_1d(x), np.atleast_1d(y), np.atleast_1d(n_cases), strict=True
    )
    for mark_x, mark_y, n in places:
        few = n < MIN_CASES
        ax.plot(
            mark_x,
            mark_y,
            ls="",
            marker=marker,
            ms=size,
            mfc="white" if few else colour,
            mec=colour if few else "white",
            mew=1.4 if few else 0.6,
            color=colour,
            label=FEW if few else "",
            zorder=4,
        )


def present(families: Iterable[str]) -> list[str]:
    """Those of the families that occur, in their own order."""
    occurring = set(families)
    return [name for name in FAMILY_COLOURS if name in occurring]


def legend_mark(words: str, colour: Any, shape: str) -> Line2D:
    """A legend's mark, without a line."""
    return Line2D(
        [],
        [],
        label=words,
        color=colour,
        marker=shape,
        ls="",
        ms=7.5,
        mec="white",
        mew=0.6,
    )


def family_marks(families: Iterable[str]) -> list[Line2D]:
    """A legend's mark for each of the families."""
    return [
        legend_mark(FAMILY_LABELS[name], FAMILY_COLOURS[name], FAMILY_MARKERS[name])
        for name in present(families)
    ]


def add_legend(
    ax: Axes,
    handles: Sequence[Artist],
    place: tuple[float, float],
    *,
    corner: Literal["upper left", "lower left"] = "upper left",
    columns: int = 1,
    handle_length: float = 4.0,
) -> None:
    """A legend whose ``corner`` is at ``place`` (shares of the axes); legends there stay."""
    if earlier := ax.get_legend():
        ax.add_artist(earlier)
        # else it is no part of the axes, and a caption runs into it
        earlier.set_clip_on(False)
    legend = ax.legend(
        handles=list(handles),
        ncols=columns,
        loc=corner,
        bbox_to_anchor=place,
        handlelength=handle_length,
        handletextpad=0.4,
        columnspacing=1.2,
        frameon=False,
        borderpad=0,
        borderaxespad=0,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)


def legend_below(ax: Axes, *parts: Sequence[Artist], down: float = 0.62) -> None:
    """Each of ``parts`` in a row of its own, the first ``down`` inches under the axes."""
    for k, handles in enumerate(part for part in parts if part):
        place = (0, -(down + 0.25 * k) / inches(ax)[1])
        add_legend(ax, handles, place, columns=len(handles), handle_length=1.3)


def axes_grid(
    width: float,
    height: float,
    n: int = 1,
    gap: float = 0.0,
    above: float = 0.0,
    columns: int = 0,
) -> list[Axes]:
    """``n`` axes in rows of ``columns`` (default: in one), each ``width`` x ``height`` inches.
    ``gap`` is free between two columns, ``above`` between two rows; what is beside them is saved.
    """
    columns = columns or n
    rows = -(-n // columns)
    size = (columns * (width + gap) - gap, rows * (height + above) - above)
    figure = plt.figure(figsize=size)
    places = figure.add_gridspec(
        rows,
        columns,
        left=0,
        right=1,
        bottom=0,
        top=1,
        wspace=gap / width,
        hspace=above / height,
    )
    return [figure.add_subplot(places[k // columns, k % columns]) for k in range(n)]


def inches(ax: Axes) -> tuple[float, float]:
    """Width and height of the axes' inside, in inches."""
    box = ax.get_window_extent()
    return box.width / ax.figure.dpi, box.height / ax.figure.dpi


def use_style() -> None:
    """Set how figures of this process look: matplotlib's own defaults, whatever the user's
    matplotlibrc says, and ``trustlab.mplstyle`` over them; and warnings to plain lines
    (:func:`plain_warning`)."""
    warnings.formatwarning = plain_warning
    plt.style.use(["default", STYLE])


def plain_warning(message: object, category: type[Warning], *_: object) -> str:
    """A warning as one line, without the file and the code that it was raised from."""
    return (
        f"{category.__name__.removeprefix('User')}: {' '.join(str(message).split())}\n"
    )


LONGEST = 60
"""Letters of a model's name in a file's name, at most."""


def file_ending(model: str, models: Sequence[str]) -> str:
    """What tells the files of ``model`` from those of the first of ``models``: '' for the first.
    It ends with some digits of the name's hash, if the name is long or has others than small
    letters, digits, "." and "-"."""
    if not models or model == models[0]:
        return ""
    plain = re.sub("[^a-z0-9.-]+", "-", model.lower())[:LONGEST]
    if plain == model:
        return f"_{plain}"
    return f"_{plain}-{hashlib.sha256(model.encode()).hexdigest()[:6]}"


EMBEDDED = {
    "embedded": "a very small model",
    "embedded-clinic": "a very small model",
    "embedded-closed": "a very small model, text-only access",
    "embedded-overconfident": "a very small model, made too sure",
}
"""What captions say of the project's own models."""


def lay_out(figure: Figure) -> None:
    """Give the axes of a figure with a layout engine their places, as drawing it would."""
    if engine := figure.get_layout_engine():
        engine.execute(figure)


def text_beside(figure: Any, gap: float) -> tuple[Text, float]:
    """An empty text in small print, ``gap`` inches above all that is drawn or under it (negative),
    and the width of what is drawn."""
    lay_out(figure)
    box = figure.get_tightbbox()  # in inches
    width, height = figure.get_size_inches()
    text = figure.text(
        box.x0 / width,
        (box.y1 + gap if gap > 0 else box.y0 + gap) / height,
        "",
        va="bottom" if gap > 0 else "top",
        size=CAPTION_POINTS,
        color=GREY,
        linespacing=1.35,
        parse_math=False,
    )
    return text, box.width


def say_missing(figure: Any, notes: Iterable[str]) -> None:
    """Under the figure, in small print: what has no value, and why."""
    every_note = "; ".join(dict.fromkeys(notes))
    if every_note:
        text, width = text_beside(figure, -0.06)
        text.set_text(
            textwrap.fill(f"No value: {every_note}", int(CAPTION_LETTERS * width))
        )


def caption(  # noqa: PLR0913
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
    interval: str = "95 % interval over cases",
) -> Text:
    """Say in small print under the figure (or that of axes) what was measured; returns the text.

    - ``model``, ``dataset``: one name or several. ``levels``: information levels, in percent.
    - ``n_rows`` answers, of which ``n_failed`` could not be had or graded; or ``counts``, words in
      their place. ``ValueError`` without either.
    - ``interval=""`` where the figure shows none. Call it last: it fixes the layout.
    """
    figure = ax_or_fig if isinstance(ax_or_fig, Figure) else ax_or_fig.figure
    assert isinstance(figure, Figure)
    lay_out(figure)
    figure.set_layout_engine("none")
    text, width = text_beside(figure, -0.12)
    models = [model] if isinstance(model, str) else list(model)
    sets = [dataset] if isinstance(dataset, str) else list(dataset)
    named_models = [
        f"{name} ({EMBEDDED[name]})" if name in EMBEDDED else name for name in models
    ]
    if not counts:
        if n_cases is None or n_rows is None:
            raise ValueError("a caption needs n_cases and n_rows, or counts")
        lost = f", {n_failed:,} of them missing" if n_failed else ""
        counts = f"{_counted(n_cases, 'case')}, {_counted(n_rows, 'answer')}{lost}"
    is_hollow = any(
        part.get_label() == FEW for part in figure.findobj() if part.get_visible()
    )
    parts = [
        f"{'model' if len(models) == 1 else 'models'} {', '.join(named_models)}",
        f"data {', '.join(sets)}",
        counts,
        _levels(levels),
        interval,
        f"hollow: fewer than {MIN_CASES} cases, no interval" if is_hollow else "",
        note,
        RESEARCH_ONLY.replace(" ", UNBROKEN),
    ]
    words = " · ".join(filter(None, parts))
    text.set_text(
        textwrap.fill(words, int(CAPTION_LETTERS * width)).replace(UNBROKEN, " ")
    )
    return text


def _levels(levels: Sequence[int]) -> str:
    """The levels in words; '' for none."""
    shown = sorted(set(levels))
    if not shown:
        return ""
    return f"{'level' if len(shown) == 1 else 'levels'} {', '.join(map(str, shown))} %"


def headline(figure: Figure, words: str) -> Text:
    """What a figure shows, in bold above all that is drawn, as wide as that; call it before
    :func:`caption`."""
    text, width = text_beside(figure, 0.15)
    text.set(size=11, weight="bold", color=INK, linespacing=1.3)
    text.set_text(textwrap.fill(words, int(TITLE_LETTERS * width)))
    return text


def save_figure(
    fig: Figure, table: pd.DataFrame, name: str, folder: str | Path
) -> tuple[Path, Path, Path] | None:
    """Write ``name``.png, .svg and .csv (the table drawn) into ``folder``; returns their paths.

    - Floats of the table have 6 decimals; an index is kept unless it only counts rows.
    - Where nothing can be drawn (:data:`VALUES`), a line says why, and ``None`` comes back.
    - ``ValueError`` where ``name`` is not a plain file name.
    """
    if not name or Path(name).name != name:
        raise ValueError(
            f"name is {name!r}; it must be a file name without folder or ending"
        )
    if why := _nothing(table):
        print(f"Nothing to draw for {name}: {why}")
        plt.close(fig)
        return None
    png, svg, csv = (
        Path(folder) / f"{name}.{ending}" for ending in ("png", "svg", "csv")
    )
    lay_out(fig)  # once for both files, not for each as "tight" does
    edges: Any = fig.get_tightbbox().padded(0.12)
    with plt.rc_context(SVG), whole(png) as png_file, whole(svg) as svg_file:
        fig.savefig(
            png_file,
            format="png",
            metadata={"Software": None},
            dpi=DPI,
            bbox_inches=edges,
            facecolor="white",
        )
        fig.savefig(
            svg_file,
            format="svg",
            metadata={"Date": None, "Creator": None},
            dpi=DPI,
            bbox_inches=edges,
            facecolor="white",
        )
    rounded = table.copy()
    for column in table.select_dtypes("floating").columns:
        rounded[column] = table[column].round(6) + 0.0  # + 0.0 turns -0.0 into 0.0
    save_table(rounded, csv, index=not isinstance(table.index, pd.RangeIndex))
    return png, svg, csv


def _nothing(table: pd.DataFrame) -> str:
    """Why a table has nothing to draw: its commonest reasons; '' where it has something."""
    if not len(table):
        return "the table has no rows"
    drawn = [name for name in VALUES if name in table]
    if not drawn or table[drawn].notna().to_numpy().any():
        return ""
    if "missing" in table:
        reasons = table["missing"].replace("", np.nan).dropna()
        if len(reasons):
            return "; ".join(reasons.value_counts().index[:3].astype(str))
    return "no row has a value"


def _counted(n: int, thing: str) -> str:
    return f"{n:,} {thing}{'' if n == 1 else 's'}"
