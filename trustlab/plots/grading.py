"""How AUROC moves with the grader. A finished table in, Axes out."""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from trustlab.metrics.estimate import MIN_CASES
from trustlab.plots.auroc import LEVEL_NAMES, MARKER_POINTS
from trustlab.plots.style import (
    FAMILY_COLOURS,
    FAMILY_MARKERS,
    GREY,
    INK,
    axes_row,
    family_of,
    inches,
    label,
    mark_look,
)

FILLS = ("full", "left", "right", "top", "bottom")
"""How a grader's marker is filled, in the order of the graders: shape and colour stay the family's; hollow is for few cases."""
STEP_INCHES = 0.17


def auroc_by_grader(
    table: pd.DataFrame,
    families: Mapping[str, str],
    methods: Sequence[str] | None = None,
    level: str = "within",
    ax: Axes | None = None,
) -> Axes:
    """AUROC (0 to 1) of a few methods under each grader: a dot with its 95 % interval for each, the graders below one another.

    ``table`` is that of ``experiments.grading.auroc_by_grader``, cut to one model and one data set;
    ``methods`` are drawn in the order given (the table's where ``None``). Raises ``ValueError`` for
    several runs, more than five graders, or a method or level that the table does not hold.
    """
    mine = _chosen(
        table[table["metric"] == "auroc"] if "metric" in table else table, methods, level, "grader"
    )
    names, graders = (list(dict.fromkeys(mine[column])) for column in ("method", "grader"))
    names = list(methods) if methods is not None else names
    if len(graders) > len(FILLS):
        raise ValueError(f"at most {len(FILLS)} graders can be told apart; received {graders}")
    ax = ax or axes_row(5.2, STEP_INCHES * len(names) * (len(graders) + 1))[0]
    gap = 1 / (len(graders) + 1)
    rows: dict[Any, dict[str, Any]] = mine.set_index(["method", "grader"]).to_dict("index")
    beside: Any = {
        "xycoords": ("axes fraction", "data"),
        "textcoords": "offset points",
        "ha": "right",
    }
    beside |= {"va": "center_baseline", "size": 8, "color": GREY}
    for i, name in enumerate(names):
        family = family_of(name, families)
        colour, marker = FAMILY_COLOURS[family], FAMILY_MARKERS[family]
        for k, grader in enumerate(graders):
            y = i + gap * (k - (len(graders) - 1) / 2)
            row = rows.get((name, grader))
            if row is None or pd.isna(row["value"]):
                why = (
                    "no row"
                    if row is None
                    else row["missing"].removeprefix("no confidence: ") or "no value"
                )
                where: Any = {
                    "xycoords": ("axes fraction", "data"),
                    "bbox": {"fc": "white", "ec": "none", "pad": 0.6},
                }
                ax.annotate(
                    f"{grader}: {why}",
                    (0.01, y),
                    **where,
                    va="center",
                    size=7.5,
                    color=GREY,
                    zorder=4,
                )
                continue
            ax.hlines(y, row["low"], row["high"], color=colour, lw=1.6, alpha=0.8, zorder=3)
            few = row["n_cases"] < MIN_CASES
            look: dict[str, Any] = mark_look(colour, row["n_cases"]) | {
                "mec": colour,
                "mew": 1.2,
                "mfcalt": "white",
            }
            look |= {"fillstyle": "full" if few else FILLS[k]}
            ax.plot(
                row["value"],
                y,
                marker=marker,
                ms=0.85 * MARKER_POINTS[marker],
                ls="",
                zorder=4,
                **look,
            )
            ax.annotate(f"{int(row['n']):,}", (1, y), (30, 0), **beside)
    ax.annotate(
        "n",
        (1, 1),
        (30, 4),
        "axes fraction",
        **{k: v for k, v in beside.items() if k not in ("xycoords", "va")},
    )
    for i in range(1, len(names)):
        ax.axhline(i - 0.5, color="#E6E6E6", lw=0.8, zorder=0)
    _chance_line(ax, vertical=True)
    held = pd.Series([*mine["low"], *mine["high"], *mine["value"], 0.5], dtype=float).dropna()
    limits = (held.min() - 0.04, held.max() + 0.04) if mine["value"].notna().any() else (0, 1)
    ax.set_xlim(max(limits[0], -0.01), min(limits[1], 1.01))
    ax.set(
        yticks=range(len(names)),
        yticklabels=[label(name) for name in names],
        ylim=(len(names) - 0.5, -0.5),
        ylabel="",
    )
    ax.grid(visible=False, axis="y")
    ax.set_xlabel(f"AUROC {LEVEL_NAMES.get(level, level)}, 0 to 1")
    handles = [_grader_mark(name, FILLS[k]) for k, name in enumerate(graders)]
    place: Any = {
        "loc": "upper left",
        "bbox_to_anchor": (0, -0.58 / inches(ax)[1]),
        "borderaxespad": 0,
        "borderpad": 0,
    }
    ax.legend(
        handles=handles,
        ncols=min(len(handles), 3),
        frameon=False,
        handletextpad=0.1,
        columnspacing=1.2,
        **place,
    )
    return ax


def _chosen(table: pd.DataFrame, methods: Sequence[str] | None, level: str, by: str) -> Any:
    """The rows of one run, level and some methods, each method and ``by`` once."""
    need = [
        "model",
        "dataset",
        "method",
        by,
        "level",
        "value",
        "low",
        "high",
        "n",
        "n_cases",
        "missing",
    ]
    if lacking := [name for name in need if name not in table.columns]:
        raise ValueError(f"the table lacks the columns {lacking}; it has {list(table.columns)}")
    runs = table[["model", "dataset"]].drop_duplicates()
    if len(runs) != 1:
        raise ValueError(
            f"one figure shows one model and data set; received {runs.to_numpy().tolist()}"
        )
    if level not in set(table["level"]):
        raise ValueError(
            f"level is {level!r}; the table holds {list(dict.fromkeys(table['level']))}"
        )
    mine = table[table["level"] == level]
    held = list(dict.fromkeys(mine["method"]))
    if methods is not None and (not methods or not set(methods) <= set(held)):
        raise ValueError(f"methods must be some of {held}; received {list(methods)}")
    return mine if methods is None else mine[mine["method"].isin(list(methods))]


def _chance_line(ax: Axes, *, vertical: bool) -> None:
    (ax.axvline if vertical else ax.axhline)(0.5, ls="--", lw=1.2, color=INK, zorder=1)
    if vertical:
        place: dict[str, Any] = {
            "xycoords": ("data", "axes fraction"),
            "textcoords": "offset points",
        }
        ax.annotate("chance 0.50", (0.5, 1), (0, 4), **place, ha="center", va="bottom", size=9)
    else:
        place = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
        ax.annotate("chance 0.50", (0, 0.5), (4, -3), **place, ha="left", va="top", size=9)


def _grader_mark(name: str, fill: str) -> Line2D:
    look: dict[str, Any] = {
        "marker": "o",
        "ms": 7,
        "mec": GREY,
        "mfc": GREY,
        "mfcalt": "white",
        "mew": 1.2,
        "ls": "",
    }
    return Line2D([], [], label=name, **look, fillstyle=fill)  # pyright: ignore[reportArgumentType]
