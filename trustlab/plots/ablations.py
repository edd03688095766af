"""What each part, setting and open choice brings: differences to a whole, lines over a setting, ranges of ranks.

Finished tables of one model and data set in, Axes out. Colour and marker mean method family; where two methods of one family
share a figure, the second is paler.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportReturnType=false

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from trustlab.metrics.schema import need
from trustlab.plots.style import (
    FAMILY_COLOURS,
    FAMILY_MARKERS,
    GREY,
    INK,
    LEVEL_NAMES,
    axes_row,
    family_of,
    inches,
    label,
    paler,
    panel_grid,
    plot_marks,
    spread,
    text_colour,
)

STYLES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.2, 1.6)), (0, (6, 2, 1, 2)))
"""Line styles, for as many settings as can be told apart."""


def auroc_by_passages(
    metrics: pd.DataFrame,
    families: Mapping[str, str],
    level: str = "within",
    ax: Axes | None = None,
) -> Axes:
    """AUROC (0 to 1) over the number of passages looked up, a line a method with its 95 % interval; the second paler, dashed.

    ``metrics`` is the table of ``variant_metrics``; its ``n``, the answers behind each point, stands above. Raises ``ValueError``
    for several runs or an unknown level.
    """
    mine = _auroc(metrics, level, ["n", "n_passages"])
    ax = ax or axes_row(5.2, 3.6)[0]
    counts = sorted(mine["n_passages"].unique())
    ends = {}
    for k, name in enumerate(dict.fromkeys(mine["method"])):
        line = mine[mine["method"] == name].dropna(subset="value").sort_values("n_passages")
        if len(line):
            x = [counts.index(c) + 0.08 * k for c in line["n_passages"]]
            _line(ax, x, line, family_of(name, families), STYLES[k % len(STYLES)], second=k > 0)
            ends[name] = float(line["value"].iloc[-1])
    ax.set(
        xticks=range(len(counts)),
        xticklabels=[str(c) for c in counts],
        xlim=(-0.3, len(counts) - 0.6),
    )
    ax.set(xlabel="passages looked up", ylabel=f"AUROC {LEVEL_NAMES.get(level, level)}, 0 to 1")
    ax.set_title(_answers(mine), size=10)
    _value_limits([ax], mine)
    _chance(ax)
    _ends(ax, ends, families)
    if not ends:
        _withheld(ax, mine)
    return ax


def auroc_by_samples(
    metrics: pd.DataFrame,
    families: Mapping[str, str],
    methods: Sequence[str],
    level: str = "within",
    axes: Sequence[Axes] | None = None,
) -> list[Axes]:
    """AUROC (0 to 1) over K, the number of samples: a panel a method, a line style a temperature, bars are 95 % intervals.

    ``metrics`` is the table of ``variant_metrics``; ``n`` in a title counts the answers behind each of the panel's points. Raises
    ``ValueError`` for several runs, an unknown level, a method that the table does not hold, or more than four temperatures.
    """
    mine = _auroc(metrics, level, ["n", "n_samples", "temperature"])
    if not methods or not set(methods) <= set(mine["method"]):
        raise ValueError(
            f"methods must be some of {list(dict.fromkeys(mine['method']))}; received {list(methods)}"
        )
    temperatures, counts = (
        sorted(mine[column].unique()) for column in ("temperature", "n_samples")
    )
    if len(temperatures) > len(STYLES):
        raise ValueError(
            f"at most {len(STYLES)} temperatures can be told apart; received {temperatures}"
        )
    panels = list(axes) if axes is not None else panel_grid(len(methods), 4)
    for ax, name in zip(panels, methods, strict=True):
        of_method = mine[mine["method"] == name]
        for k, temperature in enumerate(temperatures):
            line = (
                of_method[of_method["temperature"] == temperature]
                .dropna(subset="value")
                .sort_values("n_samples")
            )
            x = [
                counts.index(c) + 0.1 * (k - (len(temperatures) - 1) / 2) for c in line["n_samples"]
            ]
            _line(ax, x, line, family_of(name, families), STYLES[k])
        ax.set_title("\n".join(filter(None, [label(name), _answers(of_method)])), size=9.5)
        ax.set(
            xticks=range(len(counts)),
            xticklabels=[str(c) for c in counts],
            xlim=(-0.4, len(counts) - 0.6),
        )
        ax.axhline(0.5, ls="--", lw=1.0, color=INK, zorder=1)
        if of_method["value"].isna().all():
            _withheld(ax, of_method)
    _value_limits(panels, mine[mine["method"].isin(list(methods))])
    figure: Any = panels[0].figure
    if axes is None:
        figure.supxlabel("K, samples per answer", size=10.5)
        figure.supylabel(
            f"AUROC {LEVEL_NAMES.get(level, level).partition(' (')[0]}, 0 to 1", size=10.5
        )
        handles = [
            Line2D([], [], color=GREY, ls=STYLES[k], label=f"temperature {t:g}")
            for k, t in enumerate(temperatures)
        ]
        handles.append(Line2D([], [], color=INK, ls="--", lw=1.0, label="chance"))
        figure.legend(
            handles=handles, loc="outside upper center", ncols=len(handles), frameon=False
        )
    return panels


def _auroc(
    metrics: pd.DataFrame, level: str, columns: Sequence[str], metric: str = "auroc"
) -> pd.DataFrame:
    named = ["model", "dataset", "method", "metric", "level", "value", "low", "high", "n_cases"]
    need(metrics, [*named, "missing", *columns])
    mine = metrics
    runs = mine[["model", "dataset"]].drop_duplicates()
    if len(runs) != 1:
        raise ValueError(
            f"one figure shows one model and data set; received {runs.to_numpy().tolist()}"
        )
    mine = mine[mine["metric"] == metric]
    if level not in set(mine["level"]):
        raise ValueError(
            f"level is {level!r}; the table holds {list(dict.fromkeys(mine['level']))}"
        )
    return mine[mine["level"] == level]


def _line(
    ax: Axes,
    x: Sequence[float],
    line: pd.DataFrame,
    family: str,
    style: Any,
    *,
    second: bool = False,
) -> None:
    colour = paler(FAMILY_COLOURS[family]) if second else FAMILY_COLOURS[family]
    ax.vlines(x, line["low"], line["high"], color=colour, lw=1.1, alpha=0.5, zorder=2)
    ax.plot(x, line["value"], color=colour, ls=style, lw=1.6, zorder=2.5)
    look: Any = {"marker": FAMILY_MARKERS[family], "ms": 6, "zorder": 3}
    plot_marks(ax, x, line["value"], line["n_cases"], color=colour, **look)


def _answers(table: pd.DataFrame) -> str:
    """How many answers stand behind the points that have a value: one number where they share them."""
    n = table.loc[table["value"].notna(), "n"].astype(int)
    return (
        " to ".join(f"{'n = ' * (k == 0)}{at:,}" for k, at in enumerate(sorted({n.min(), n.max()})))
        if len(n)
        else ""
    )


def _value_limits(panels: Sequence[Axes], table: pd.DataFrame) -> None:
    held = pd.Series([0.5, *table["low"], *table["high"], *table["value"]], dtype=float).dropna()
    limits = (held.min() - 0.03, held.max() + 0.03) if table["value"].notna().any() else (0, 1)
    for ax in panels:
        ax.set_ylim(max(limits[0], -0.01), min(limits[1], 1.01))


def _chance(ax: Axes) -> None:
    ax.axhline(0.5, ls="--", lw=1.2, color=INK, zorder=1)
    ax.annotate(
        "chance 0.50",
        (0, 0.5),
        (4, 3),
        ("axes fraction", "data"),
        "offset points",
        ha="left",
        va="bottom",
        size=9,
    )


def _withheld(ax: Axes, table: pd.DataFrame) -> None:
    why = " / ".join(
        dict.fromkeys(str(r).removeprefix("no confidence: ") for r in table["missing"])
    )
    words = "\n".join(textwrap.wrap(why, int(inches(ax)[0] * 72 / 5)))
    ax.annotate(
        words, (0.5, 0.75), xycoords="axes fraction", ha="center", va="center", size=8, color=GREY
    )


def _ends(ax: Axes, ends: Mapping[str, float], families: Mapping[str, str]) -> None:
    """Each line's name at its end, moved up or down as little as keeps the names apart."""
    if not ends:
        return
    order = sorted(ends, key=lambda name: ends[name])
    bottom, top = ax.get_ylim()
    places = spread(
        [ends[name] for name in order], 14 / 72 * (top - bottom) / inches(ax)[1], bottom, top
    )
    for name, y in zip(order, np.asarray(places), strict=True):
        style: dict[str, Any] = {
            "color": text_colour(family_of(name, families)),
            "size": 9.5,
            "annotation_clip": False,
        }
        ax.annotate(
            label(name), (1.02, y), xycoords=("axes fraction", "data"), va="center", **style
        )
