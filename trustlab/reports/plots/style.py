"""Says how every figure looks and is saved."""

from __future__ import annotations

import hashlib
import re
import textwrap
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from scipy.optimize import isotonic_regression

from trustlab.confidence.registry import label  # noqa: F401 (figures take it from here)
from trustlab.metrics.estimate import MIN_CASES
from trustlab.paths import save_table, whole
from trustlab.reports.families import FAMILY_COLOURS, FAMILY_LABELS, FAMILY_MARKERS

MARKER_POINTS = {"o": 8.0, "s": 7.5, "^": 9.0, "D": 7.5, "X": 9.5, "P": 9.5, "v": 9.0, "*": 11.0}
"""Sizes at which the families' shapes look equally large."""

LINES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (6, 1.5, 1, 1.5, 1, 1.5)), (0, (9, 3)))
"""The lines of the methods of one family, in order."""

INK = "#222222"
GREY = "#6E6E6E"
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


def family_of(method: str, families: Mapping[str, str]) -> str:
    """The family of ``method``; ``ValueError`` where ``families`` gives none that has a colour."""
    family = families.get(method)
    if family not in FAMILY_COLOURS:
        allowed = list(FAMILY_COLOURS)
        raise ValueError(f"families gives {family!r} for method {method!r}; allowed are {allowed}")
    return family


def text_colour(family: str) -> tuple[float, float, float]:
    """The family's colour, dark enough for small text on white (contrast at least 4.5 to 1)."""
    red, green, blue = to_rgb(FAMILY_COLOURS[family])
    return 0.65 * red, 0.65 * green, 0.65 * blue


def mark_look(colour: Any, n_cases: float = MIN_CASES, *, sure: bool = False) -> dict[str, Any]:
    """How a mark is filled: with ``colour``, or hollow below twelve cases, which have no interval.
    ``n_cases`` NaN: a number that others printed. ``sure`` gives it a dark edge."""
    if n_cases < MIN_CASES:
        return {"mfc": "white", "mec": INK if sure else colour, "mew": 1.4, "label": FEW}
    return {"mfc": colour, "mec": INK if sure else "white", "mew": 1.5 if sure else 0.6}


def plot_marks(
    ax: Axes, x: Any, y: Any, n_cases: Any, *, color: Any, sure: bool = False, **look: Any
) -> None:
    """Marks at ``x`` and ``y`` (n,), each filled as :func:`mark_look` says of its ``n_cases``."""
    for px, py, n in zip(np.atleast_1d(x), np.atleast_1d(y), np.atleast_1d(n_cases), strict=True):
        ax.plot(px, py, ls="", color=color, **look | mark_look(color, n, sure=sure))


def paler(colour: Any) -> tuple[float, float, float]:
    """``colour`` halfway to white: the second of two series of one colour."""
    red, green, blue = (0.5 + 0.5 * part for part in to_rgb(colour))
    return red, green, blue


def told_n(counts: Iterable[float]) -> str:
    """The numbers behind several marks: "24", or "8 to 24" where they differ; '' for none."""
    known = sorted({int(n) for n in counts if n == n})
    return " to ".join(f"{n:,}" for n in dict.fromkeys([*known[:1], *known[-1:]]))


def present(families: Iterable[str]) -> list[str]:
    """Those of the families that are given, in their own order."""
    given = set(families)
    return [name for name in FAMILY_COLOURS if name in given]


def legend_mark(words: str, colour: Any, shape: str) -> Line2D:
    """A legend's mark, without a line."""
    return Line2D(
        [], [], label=words, color=colour, marker=shape, ls="", ms=7.5, mec="white", mew=0.6
    )


def family_marks(families: Iterable[str]) -> list[Line2D]:
    """A legend's mark for each of the families."""
    return [
        legend_mark(FAMILY_LABELS[name], FAMILY_COLOURS[name], FAMILY_MARKERS[name])
        for name in present(families)
    ]


def legend_below(ax: Axes, *parts: Sequence[Artist], down: float = 0.62) -> None:
    """Each of ``parts`` in a row of its own, the first ``down`` inches under the axes; legends
    already there stay."""
    for k, handles in enumerate(part for part in parts if part):
        if above := ax.get_legend():
            ax.add_artist(above)
            above.set_clip_on(False)  # else it is no part of the axes, and a caption runs into it
        ax.legend(
            handles=list(handles),
            ncols=len(handles),
            loc="upper left",
            bbox_to_anchor=(0, -(down + 0.25 * k) / inches(ax)[1]),
            handletextpad=0.3,
            columnspacing=1.0,
            handlelength=1.3,
            frameon=False,
            borderpad=0,
            borderaxespad=0,
        )


def axes_grid(
    width: float, height: float, n: int = 1, gap: float = 0.0, above: float = 0.0, columns: int = 0
) -> list[Axes]:
    """``n`` axes in rows of ``columns`` (default: in one), each ``width`` x ``height`` inches.
    ``gap`` is free between two columns, ``above`` between two rows; what is beside them is saved.
    """
    columns = columns or n
    rows = -(-n // columns)
    size = (columns * (width + gap) - gap, rows * (height + above) - above)
    figure = plt.figure(figsize=size)
    grid = {"wspace": gap / width, "hspace": above / height}
    places = figure.add_gridspec(rows, columns, left=0, right=1, bottom=0, top=1, **grid)
    return [figure.add_subplot(places[k // columns, k % columns]) for k in range(n)]


def inches(ax: Axes) -> tuple[float, float]:
    """Width and height of the axes' inside, in inches."""
    box = ax.get_window_extent()
    return box.width / ax.figure.dpi, box.height / ax.figure.dpi


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> np.ndarray:
    """Places at least ``gap`` apart, nearest to the ascending ``wanted`` (least squares), in
    ``low`` to ``high`` if they fit."""
    steps = gap * np.arange(len(wanted))
    nearest = isotonic_regression(np.asarray(wanted) - steps).x
    return np.clip(nearest, low, max(high - steps[-1], low)) + steps


def use_style() -> None:
    """Set how figures of this process look: matplotlib's own defaults, whatever the user's
    matplotlibrc says, and ``trustlab.mplstyle`` over them; and warnings to plain lines
    (:func:`plain_warning`)."""
    warnings.formatwarning = plain_warning
    plt.style.use(["default", STYLE])


def plain_warning(message: object, category: type[Warning], *_: object) -> str:
    """A warning as one line, without the file and the code that it was raised from."""
    return f"{category.__name__.removeprefix('User')}: {' '.join(str(message).split())}\n"


LONGEST = 60
"""Letters of a model's name in a file's name, at most."""


def file_ending(model: str, models: Sequence[str]) -> str:
    """What tells the files of ``model`` from those of the first of ``models``: '' for the first.
    It ends with some digits of the name's hash, if the name is long or has others than small
    letters, digits, "." and "-"."""
    if model == models[0]:
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


def text_beside(figure: Any, gap: float, **look: Any) -> tuple[Text, float]:
    """An empty text ``gap`` inches above all that is drawn, or under it (negative), and the width
    of what is drawn."""
    lay_out(figure)
    box = figure.get_tightbbox()  # in inches
    width, height = figure.get_size_inches()
    y = box.y1 + gap if gap > 0 else box.y0 + gap
    look |= {"va": "bottom" if gap > 0 else "top", "parse_math": False}
    return figure.text(box.x0 / width, y / height, "", **look), box.width


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
    text, width = text_beside(figure, -0.12, size=CAPTION_POINTS, color=GREY, linespacing=1.35)
    models, sets = ([x] if isinstance(x, str) else list(x) for x in (model, dataset))
    told = [f"{name} ({EMBEDDED[name]})" if name in EMBEDDED else name for name in models]
    if not counts:
        if n_cases is None or n_rows is None:
            raise ValueError("a caption needs n_cases and n_rows, or counts")
        lost = f", {n_failed:,} of them missing" if n_failed else ""
        counts = f"{_counted(n_cases, 'case')}, {_counted(n_rows, 'answer')}{lost}"
    shown = sorted(set(levels))
    where = f"level{'s' if len(shown) > 1 else ''} {', '.join(map(str, shown))} %" if shown else ""
    hollow = any(part.get_label() == FEW for part in figure.findobj() if part.get_visible())
    few = f"hollow: fewer than {MIN_CASES} cases, no interval" if hollow else ""
    who = f"{'model' if len(told) == 1 else 'models'} {', '.join(told)}"
    parts = [who, f"data {', '.join(sets)}", counts, where, interval, few, note]
    words = " · ".join(filter(None, [*parts, RESEARCH_ONLY.replace(" ", UNBROKEN)]))
    text.set_text(textwrap.fill(words, int(CAPTION_LETTERS * width)).replace(UNBROKEN, " "))
    return text


def headline(figure: Figure, words: str) -> Text:
    """What a figure shows, in bold above all that is drawn, as wide as that; call it before
    :func:`caption`."""
    text, width = text_beside(figure, 0.15, size=11, weight="bold", color=INK, linespacing=1.3)
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
        raise ValueError(f"name is {name!r}; it must be a file name without folder or ending")
    if why := _nothing(table):
        print(f"Nothing to draw for {name}: {why}")
        plt.close(fig)
        return None
    png, svg, csv = (Path(folder) / f"{name}.{ending}" for ending in ("png", "svg", "csv"))
    lay_out(fig)  # once for both files, not for each as "tight" does
    edges = fig.get_tightbbox().padded(0.12)
    look: Any = {"dpi": DPI, "bbox_inches": edges, "facecolor": "white"}
    with plt.rc_context(SVG), whole(png) as dots, whole(svg) as lines:
        fig.savefig(dots, format="png", metadata={"Software": None}, **look)
        fig.savefig(lines, format="svg", metadata={"Date": None, "Creator": None}, **look)
    rounded = table.copy()
    for column in table.select_dtypes("floating").columns:
        rounded[column] = table[column].round(6) + 0.0  # + 0.0 turns -0.0 into 0.0
    save_table(rounded, csv, index=not isinstance(table.index, pd.RangeIndex))
    return png, svg, csv


def _nothing(table: pd.DataFrame) -> str:
    """Why a table has nothing to draw: its commonest reasons; '' where it has something."""
    held = [name for name in VALUES if name in table]
    if len(table) and (not held or table[held].notna().to_numpy().any()):
        return ""
    if "missing" in table and len(told := table["missing"].replace("", np.nan).dropna()):
        return "; ".join(told.value_counts().index[:3].astype(str))
    return "the table has no rows" if not len(table) else "no row has a value"


def _counted(n: int, thing: str) -> str:
    return f"{n:,} {thing}{'' if n == 1 else 's'}"
