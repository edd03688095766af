"""What each part, setting and open choice brings: differences to a whole, ranges of ranks.

Finished tables of one model and data set in, Axes out. Colour and marker mean method family; where two methods of one family
share a figure, the second is paler.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportReturnType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from trustlab.plots.auroc import LEVEL_NAMES, MARKER_POINTS
from trustlab.plots.forest import (
    checked_run,
    mark,
    name_rows,
    number_column,
    second_colour,
    zero_line,
)
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
    mark_look,
    plot_marks,
)

METRIC_NAMES = {"auroc": "AUROC", "auprc": "AUPRC", "pearson": "Pearson", "spearman": "Spearman"}
PANELS = (("auroc", "within"), ("auprc", "within"), ("pearson", "across"), ("spearman", "across"))
WHOLE = "full"
ROW_INCHES = 0.42


def differences(
    table: pd.DataFrame,
    families: Mapping[str, str],
    metrics: Sequence[tuple[str, str]] = PANELS,
    by: str = "variant",
    *,
    against: str = "the whole",
    axes: Sequence[Axes] | None = None,
) -> list[Axes]:
    """Each row's difference to a reference, a panel for each (metric, level), with paired 95 % intervals; 0 is no difference.

    ``table`` is that of ``paired_differences``, ``by`` its column that names the rows; at most two
    methods a row, the second paler. At the right ``n``, the answers compared; what has no value
    says why. Raises ``ValueError`` for several runs or a (metric, level) that the table does not
    hold.
    """
    mine = checked_run(
        table,
        ["method", by, "metric", "level", "difference", "low", "high", "n", "n_cases", "missing"],
    )
    held = set(zip(mine["metric"], mine["level"], strict=True))
    if lacking := [pair for pair in metrics if pair not in held] or not metrics:
        raise ValueError(
            f"metrics must be some of {sorted(held)}; received {list(metrics)} ({lacking})"
        )
    rows = list(dict.fromkeys(mine[by]))
    many = max(mine.groupby(by)["method"].nunique())
    if many > 2:
        raise ValueError(
            f"at most two methods a row can be told apart; received {list(dict.fromkeys(mine['method']))}"
        )
    width = 5.2 if len(metrics) == 1 else 2.75
    panels = (
        list(axes)
        if axes is not None
        else axes_row(width, _height(len(rows), many), len(metrics), 0.55)
    )
    for i, (ax, (metric, level)) in enumerate(zip(panels, metrics, strict=True)):
        part = mine[(mine["metric"] == metric) & (mine["level"] == level)]
        for y, row in enumerate(rows):
            of_row = part[part[by] == row].to_dict("records")
            for k, one in enumerate(of_row):
                mark(
                    ax,
                    one,
                    y + 0.3 * (k - (len(of_row) - 1) / 2),
                    families,
                    shift=one["difference"],
                    second=k > 0,
                )
        number_column(
            ax,
            {
                y: [f"{int(n):,}" for n in part.loc[part[by] == row, "n"]]
                for y, row in enumerate(rows)
            },
        )
        zero_line(ax, [*part["low"], *part["high"], *part["difference"]])
        _rows(ax, rows if i == 0 or axes is not None else [""] * len(rows))
        shown = {"within": "within level", "across": "over levels"}.get(level, level)
        ax.set_title(f"{METRIC_NAMES[metric]} {shown}", pad=8)
        ax.set_xlabel(f"difference to {against}" if len(metrics) == 1 else "difference")
        ax.locator_params(axis="x", nbins=5)
    _legend(panels[0], mine, families)
    return panels


def rank_ranges(ranks: pd.DataFrame, families: Mapping[str, str], ax: Axes | None = None) -> Axes:
    """Each method's rank by AUROC under the defaults (dot), over all choices (grey bar), and if cases were drawn anew (line).

    ``ranks`` is the first table of ``rank_stability``; rank 1 is best. At the right the AUROC and the percentage of draws in
    which the method is first. Raises ``ValueError`` for several runs.
    """
    need = [
        "method",
        "metric",
        "value",
        "low",
        "high",
        "chosen_in",
        "lowest",
        "highest",
        "n_cases",
        "missing",
    ]
    every = checked_run(ranks, need)
    mine, auroc = (
        every[every["metric"] == "rank"],
        every[every["metric"] == "auroc"].set_index("method")["value"],
    )
    ax = ax or axes_row(5.2, 0.25 * max(len(mine), 3))[0]
    beside: dict[str, Any] = {
        "xycoords": ("axes fraction", "data"),
        "textcoords": "offset points",
        "va": "center_baseline",
    }
    for y, row in enumerate(mine.to_dict("records")):
        if pd.isna(row["value"]):
            ax.annotate(f"withheld: {row['missing']}", (0, y), (6, 0), **beside, size=8, color=GREY)
            continue
        family = family_of(row["method"], families)
        marker, colour = FAMILY_MARKERS[family], FAMILY_COLOURS[family]
        ax.hlines(y, row["lowest"] - 0.3, row["highest"] + 0.3, color="#CFCFCF", lw=9, zorder=2)
        ax.hlines(y, row["low"], row["high"], color=colour, lw=2, zorder=3)
        look: Any = {"marker": marker, "ms": MARKER_POINTS[marker], "zorder": 4}
        plot_marks(ax, row["value"], y, row["n_cases"], color=colour, **look)
        first = "" if pd.isna(row["chosen_in"]) else f"{100 * row['chosen_in']:.0f} %"
        for text, x, shade in ((f"{auroc[row['method']]:.2f}", 42, INK), (first, 84, GREY)):
            ax.annotate(text, (1, y), (x, 0), **beside, ha="right", size=9, color=shade)
    for words, x, shade in (("AUROC", 42, INK), ("first in", 84, GREY)):
        ax.annotate(
            words,
            (1, 1),
            (x, 4),
            "axes fraction",
            "offset points",
            ha="right",
            va="bottom",
            size=9,
            color=shade,
        )
    _rows(ax, [label(name) for name in mine["method"]])
    ax.set(
        xlim=(0.2, max(mine["value"].notna().sum(), 1) + 0.8),
        xlabel="rank by AUROC within level (1 = best)",
    )
    more = [
        Line2D([], [], color=GREY, lw=2, label="other cases (95 %)"),
        Patch(color="#CFCFCF", lw=0, label="other choices"),
    ]
    family_legend(ax, [family_of(name, families) for name in mine["method"]])
    if of_families := ax.get_legend():
        ax.add_artist(of_families)
        of_families.set_clip_on(
            False
        )  # else it does not count as part of the axes, and a caption runs into it
    place: Any = {
        "loc": "lower left",
        "bbox_to_anchor": (0, 1),
        "borderaxespad": 0.3,
        "borderpad": 0,
    }
    ax.legend(handles=more, ncols=2, frameon=False, **place)
    return ax


def published_beside_ours(
    metrics: pd.DataFrame,
    published: pd.DataFrame,
    families: Mapping[str, str],
    metric: str = "auroc",
    level: str = "within",
    axes: Sequence[Axes] | None = None,
) -> tuple[Axes, Axes]:
    """AUROC or AUPRC (0 to 1) of each variant of MedConf: ours at the left, the published ones in a panel of their own.

    ``metrics`` is the table of ``variant_metrics`` for the method ``medconf``, ``published`` that of
    ``published_table("ablation")``, which prints no intervals. Other models and other patients: what can be compared
    is the order within a panel. Raises ``ValueError`` for several runs or an unknown metric or level.
    """
    if metric not in ("auroc", "auprc"):
        raise ValueError(f"metric is {metric!r}; allowed are 'auroc' and 'auprc'")
    mine = _auroc(
        metrics[metrics["method"] == "medconf"], level, ["variant", "n"], metric
    ).set_index("variant")
    theirs = published.set_index("variant")
    rows = list(dict.fromkeys([*mine.index, *theirs.index]))
    left, right = axes if axes is not None else axes_row(3.6, _height(len(rows), 1), 2, 0.5)
    for y, row in enumerate(rows):
        if row in mine.index:
            mark(
                left,
                mine.loc[row].to_dict() | {"method": "medconf"},
                y,
                families,
                shift=mine.at[row, "value"],
            )
        if row in theirs.index:
            x = float(theirs.at[row, metric])
            right.plot(x, y, "o", ms=8, color=INK, mec="white", mew=0.6)
            right.annotate(
                f"{x:.2f}", (x, y), (9, 0), textcoords="offset points", va="center_baseline", size=9
            )
    name = METRIC_NAMES[metric]
    number_column(
        left,
        {y: [f"{int(mine.at[row, 'n']):,}"] for y, row in enumerate(rows) if row in mine.index},
    )
    left.set_title(f"Ours: {metrics['model'].iloc[0]}, {metrics['dataset'].iloc[0]}", pad=8)
    right.set_title(
        f"Published: {', '.join(theirs['model'].unique())}, {', '.join(theirs['dataset'].unique())}",
        pad=8,
    )
    left.set_xlabel(f"{name} {LEVEL_NAMES.get(level, level).partition(' (')[0]}, 0 to 1")
    right.set_xlabel(f"{name} as printed, 0 to 1")
    for ax, held in (
        (left, [*mine["low"], *mine["high"], *mine["value"]]),
        (right, theirs[metric]),
    ):
        known = pd.Series([*held, 0.5], dtype=float).dropna()
        ax.set_xlim(max(known.min() - 0.05, -0.01), min(known.max() + 0.08, 1.01))
    _rows(left, rows)
    _rows(right, rows if axes is not None else [""] * len(rows))
    return left, right


def _auroc(
    metrics: pd.DataFrame, level: str, columns: Sequence[str], metric: str = "auroc"
) -> pd.DataFrame:
    mine = checked_run(
        metrics,
        ["method", "metric", "level", "value", "low", "high", "n_cases", "missing", *columns],
    )
    mine = mine[mine["metric"] == metric]
    if level not in set(mine["level"]):
        raise ValueError(
            f"level is {level!r}; the table holds {list(dict.fromkeys(mine['level']))}"
        )
    return mine[mine["level"] == level]


def _rows(ax: Axes, names: Sequence[str]) -> None:
    name_rows(ax, ["whole" if name == WHOLE else name.replace("_", " ") for name in names])


def _height(n_rows: int, many: int) -> float:
    return max((ROW_INCHES if many > 1 else 0.36) * n_rows, 1.1)


def _legend(ax: Axes, table: pd.DataFrame, families: Mapping[str, str]) -> None:
    """Names the methods where each row holds the same two, else their families."""
    names = list(dict.fromkeys(table["method"]))
    if len(names) > 2:
        family_legend(ax, [family_of(name, families) for name in names])
        return
    handles = []
    for k, name in enumerate(names):
        family = family_of(name, families)
        colour, look = (
            second_colour(family, k > 0),
            {"marker": FAMILY_MARKERS[family], "ms": 7.5, "ls": ""},
        )
        handles.append(Line2D([], [], label=label(name), **look, **mark_look(colour)))
    place: Any = {
        "loc": "upper left",
        "bbox_to_anchor": (0, -0.58 / inches(ax)[1]),
        "borderaxespad": 0,
        "borderpad": 0,
    }
    ax.legend(handles=handles, ncols=2, frameon=False, handletextpad=0.1, **place)
