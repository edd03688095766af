"""The trust indices: all of them in both formulations, over data sets, their components, agreement, reviewers, weak points.

A finished table in, Axes out. One doctor is a dark dot, the panel a purple cross; of full colour
with safety on, paler with it off.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from trustlab.plots.benchmark import need, runs_by_set, set_title
from trustlab.plots.style import (
    FAMILY_COLOURS,
    GREY,
    INK,
    axes_grid,
    axes_row,
    inches,
    paler,
    plot_marks,
    told_n,
)

ROW_INCHES = 0.42
ALONE: dict[str, Any] = {"marker": "o", "color": INK, "ms": 7.5}
PANEL: dict[str, Any] = {"marker": "P", "color": FAMILY_COLOURS["trust"], "ms": 9.5}
KINDS: dict[str, dict[str, Any]] = {
    "prescription": {"marker": "o", "color": INK, "ms": 7.5},
    "test": {"marker": "s", "color": "#8A8A8A", "ms": 7.5},
}
INDICES = {
    "accuracy": "Accuracy",
    "cdr": "CDR ↓",
    "rdc": "RDC",
    "eti_percent": "ETI",
    "unsafe_rx_percent": "UnsafeRx % ↓",
    "test_alerts_percent": "TestAlerts % ↓",
    "osi": "OSI",
    "fti": "FTI",
}
"""Columns drawn -> their names; with the arrow, lower is better."""
OF_SAFETY = ("unsafe_rx_percent", "test_alerts_percent", "osi", "fti")
"""Where safety on and off differ."""
TITLES = {
    "trust-x": "trust-x\nRDC = 100 × cosine; safety off: OSI 0",
    "medguard-x": "medguard-x\nRDC = 50 × (1 + cosine); safety off: none",
}
MEASURES = {
    "agreement": "1 − CDR",
    "pair_agreement": "Agreeing pairs",
    "fleiss_kappa": "Fleiss' kappa",
    "gwet_ac1": "Gwet's AC1",
}
PARTS = {
    "correct": "correct",
    "agreement": "agreement",
    "cosine": "cosine",
    "unsafe_rx": "unsafe share",
    "test_alerts": "alert share",
}


def indices(table: pd.DataFrame, axes: Sequence[Axes] | None = None) -> list[Axes]:
    """Every index in percent with its 95 % interval, a panel a formulation; a row without a value says why.

    At the right the numbers of cases behind a row's marks.

    ``table`` is ``trust_indices`` of one model, data set and level, made percent by ``trust_shown.in_percent``. Raises
    ``ValueError`` for lacking columns, no rows or several models or data sets.
    """
    _need_indices(table, list(INDICES))
    if len(table[["model", "dataset", "level"]].drop_duplicates()) > 1:
        raise ValueError("one figure shows one model, data set and level")
    formulations = list(dict.fromkeys(table["formulation"]))
    panels = (
        list(axes)
        if axes is not None
        else axes_row(4.1, ROW_INCHES * len(INDICES), n=len(formulations), gap=0.75)
    )
    looks = _looks(table)
    for i, (ax, name) in enumerate(zip(panels, formulations, strict=True)):
        _dots(ax, _index_rows(table[table["formulation"] == name]), list(INDICES), INDICES, looks)
        proxies = set(table.loc[table["formulation"] == name, "proxy"]) - {""}
        ax.set_title("\n".join([TITLES.get(name, name), *sorted(proxies)]), size=10)
        ax.set_xlabel("Percent")
        for y in (2.5, 3.5, 6.5):  # what it thinks, ETI, what it does, overall
            ax.axhline(y, color="#C8C8C8", lw=0.8, zorder=1)
        if i and axes is None:
            ax.set_yticklabels([])
    _share_limits(panels)
    _legend(panels[0], looks)
    return panels


def indices_by_set(
    table: pd.DataFrame, names: Sequence[str] = ("accuracy", "eti_percent", "osi", "fti")
) -> list[Axes]:
    """A few indices of one formulation: a row of panels a model, a column a data set, percent, 95 % intervals.

    ``table`` as for :func:`indices`, of one formulation and level. Raises ``ValueError`` where it holds several.
    """
    _need_indices(table, names)
    for column in ("formulation", "level"):
        if table[column].nunique() > 1:
            raise ValueError(
                f"one figure shows one {column}; received {table[column].unique().tolist()}"
            )
    looks = _looks(table)

    def drawn(ax: Axes, part: pd.DataFrame) -> None:
        _dots(ax, _index_rows(part.assign(n_cases=part["n"]), names), list(names), INDICES, looks)

    asked = table.assign(n_cases=table["n"] + table["n_missing"])  # of these the titles tell
    panels = _grid(asked, len(names), drawn, "Percent")
    _share_limits(panels)
    _legend(panels[_bottom(table)], looks)
    return panels


def correlations(table: pd.DataFrame, measure: str = "spearman") -> list[Axes]:
    """Correlation over cases of each pair of components with its 95 % interval: a row of panels a model, a column a data set.

    ``table`` is ``component_correlations`` of one safety setting and level. Raises ``ValueError`` for a measure it does not hold.
    """
    need(
        table,
        [
            "model",
            "dataset",
            "configuration",
            "first",
            "second",
            "metric",
            "value",
            "low",
            "high",
            "n",
            "missing",
        ],
    )
    mine = table[table["metric"] == measure]
    if not len(mine):
        raise ValueError(
            f"measure is {measure!r}; the table holds {list(dict.fromkeys(table['measure']))}"
        )
    mine = mine.assign(row=mine["first"] + "|" + mine["second"], series=mine["configuration"])
    names = {
        f"{a}|{b}": f"{PARTS.get(a, a)} – {PARTS.get(b, b)}"
        for a, b in zip(mine["first"], mine["second"], strict=True)
    }
    looks = _looks(mine.assign(safety=True))
    mine["series"] = [(c, True) for c in mine["configuration"]]
    counted = mine.assign(
        n_cases=mine["n"] + mine["n_missing"] if "n_missing" in mine else mine["n"]
    )
    panels = _grid(
        counted,
        len(names),
        lambda ax, part: _dots(ax, part.assign(n_cases=part["n"]), list(names), names, looks),
        f"{measure.capitalize()}, −1 to 1",
    )
    for ax in panels:
        ax.axvline(0, ls="--", lw=1.2, color=INK, zorder=1)
        ax.set(xlim=(-1.04, 1.04), xticks=(-1, -0.5, 0, 0.5, 1))
    _legend(panels[_bottom(counted)], looks)
    return panels


def agreement(table: pd.DataFrame) -> list[Axes]:
    """How far a panel's doctors agree, raw and beyond chance: a row of panels a model, a column a data set.

    ``table`` is ``agreement_table`` of panels (K above 1) at one level; 1 − CDR is drawn from its cdr.
    """
    need(
        table,
        [
            "model",
            "dataset",
            "configuration",
            "n_doctors",
            "metric",
            "value",
            "low",
            "high",
            "n",
            "missing",
        ],
    )
    raw = table[table["metric"] == "cdr"]
    turned = raw.assign(
        metric="agreement", value=1 - raw["value"], low=1 - raw["high"], high=1 - raw["low"]
    )
    mine = pd.concat([turned, table[table["metric"].isin(list(MEASURES))]])
    mine = mine.assign(row=mine["metric"], series=[(c, True) for c in mine["configuration"]])
    looks = _looks(mine.assign(safety=True))
    counted = mine.assign(n_cases=mine["n"])
    panels = _grid(
        counted,
        len(MEASURES),
        lambda ax, part: _dots(ax, part, list(MEASURES), MEASURES, looks),
        "Agreement, at most 1",
    )
    for ax in panels:
        ax.axvline(0, ls="--", lw=1.2, color=INK, zorder=1)
    _share_limits(panels, most=1.04)
    return panels


def reviewers(table: pd.DataFrame) -> list[Axes]:
    """Sensitivity, specificity and quotations (0 to 1) with 95 % intervals: a row of panels a model, a column a data set.

    ``table`` is ``reviewer_table`` at one level. At the right stand the items behind each mark; without any, why.
    """
    need(
        table,
        ["model", "dataset", "kind", "metric", "value", "low", "high", "n", "n_cases", "missing"],
    )
    names = {
        "sensitivity": "Sensitivity",
        "specificity": "Specificity",
        "quotation": "Quotation occurs",
    }
    mine = table.assign(row=table["metric"], series=table["kind"], n_items=table["n"])
    looks = {
        kind: KINDS[kind] | {"label": f"{kind}s"} for kind in KINDS if kind in set(table["kind"])
    }
    panels = _grid(
        mine,
        len(names),
        lambda ax, part: _dots(ax, part, list(names), names, looks),
        "Share, 0 to 1",
        unit="cases at most",
    )
    for ax in panels:
        ax.set(xlim=(-0.04, 1.04), xticks=(0, 0.25, 0.5, 0.75, 1))
        ax.annotate(
            "items",
            (1, 1),
            (4, 4),
            "axes fraction",
            "offset points",
            ha="left",
            va="bottom",
            size=8,
            color=GREY,
        )
    _legend(panels[_bottom(mine)], looks)
    return panels


def weak_points(table: pd.DataFrame, axes: Sequence[Axes] | None = None) -> list[Axes]:
    """What each index would become by construction: an arrow from its value to that under the what-if, percent, a panel an index.

    ``table`` is ``trust_tables.weak_points`` of one model, data set, level and formulation. Missing ones are named.
    """
    need(
        table,
        [
            "model",
            "dataset",
            "configuration",
            "safety",
            "what_if",
            "metric",
            "value",
            "reference",
            "n",
            "n_reference",
        ],
    )
    keys = ["what_if", "configuration", "safety"]
    if table.duplicated([*keys, "metric"]).any():
        raise ValueError("one figure shows one model, data set, level and formulation")
    rows: list[Any] = list(table[keys].drop_duplicates().itertuples(index=False, name=None))
    found = {tuple(r[k] for k in [*keys, "metric"]): r for r in table.to_dict("records")}
    panels = list(axes) if axes is not None else axes_row(2.5, 0.36 * len(rows), n=3, gap=0.3)
    for i, (ax, name) in enumerate(zip(panels, ("eti_percent", "osi", "fti"), strict=True)):
        for y, key in enumerate(rows):
            row = found[(*key, name)]
            before, after = (row["reference"], row["n_reference"]), (row["value"], row["n"])
            _arrow(ax, y, before, after, _look(row["configuration"], bool(row["safety"])))
        ax.set(ylim=(len(rows) - 0.4, -0.6), xlim=(-4, 109), xlabel="Percent", title=INDICES[name])
        told = [f"{w}: {c}, safety {'on' if s else 'off'}" for w, c, s in rows]
        ax.set_yticks(range(len(rows)), told if not i else [])
    measured = Line2D([], [], ls="", marker="o", ms=6, color=GREY, label="as measured")
    made = Line2D([], [], ls="", marker=">", ms=7, color=GREY, label="by construction")
    _legend_below(panels[0], [measured, made])
    return panels


def _need_indices(table: pd.DataFrame, names: Sequence[str]) -> None:
    keys = ["model", "dataset", "level", "formulation", "configuration", "safety"]
    need(table, [*keys, "metric", "value", "low", "high", "n", "n_missing", "missing", "proxy"])
    if lacking := [name for name in names if name not in set(table["metric"])]:
        raise ValueError(f"the table lacks {lacking}; it has {sorted(set(table['metric']))}")


def _index_rows(part: pd.DataFrame, names: Sequence[str] = tuple(INDICES)) -> pd.DataFrame:
    """The rows of these indices, safety on first (its reason is the one told); off only where it matters."""
    shown = part["safety"].astype(bool) & part["metric"].isin(names) | part["metric"].isin(
        ["osi", "fti"]
    )
    mine = part[shown].sort_values("safety", ascending=False, kind="stable")
    series = [(c, bool(s)) for c, s in zip(mine["configuration"], mine["safety"], strict=True)]
    return mine.assign(row=mine["metric"], series=series)


def _look(configuration: str, safety: bool) -> dict[str, Any]:
    base = ALONE if configuration == "one doctor" else PANEL
    return base if safety else base | {"color": paler(base["color"])}


def _looks(table: pd.DataFrame) -> dict[Any, dict[str, Any]]:
    """Look and name of each configuration with safety on and off, in the table's order."""
    pairs = list(
        dict.fromkeys(
            (c, bool(s)) for c, s in zip(table["configuration"], table["safety"], strict=True)
        )
    )
    both = len({s for _, s in pairs}) > 1
    pairs.sort(key=lambda pair: (pair[0] != "one doctor", not pair[1]))
    told = {
        pair: f"{pair[0]}, safety {'on' if pair[1] else 'off'}" if both else pair[0]
        for pair in pairs
    }
    return {pair: _look(*pair) | {"label": told[pair]} for pair in pairs}


def _dots(
    ax: Axes,
    table: pd.DataFrame,
    rows: Sequence[str],
    names: Mapping[str, str],
    looks: Mapping[Any, dict[str, Any]],
) -> None:
    """For each row its series as dots with whiskers, one under the other; where none has a value, why."""
    step = 0.8 / max(len(looks), 1)
    place: Any = {
        "xycoords": ("axes fraction", "data"),
        "textcoords": "offset points",
        "va": "center",
    }
    place |= {"size": 8, "color": GREY}
    for y, row in enumerate(rows):
        mine = table[table["row"] == row]
        if not mine["value"].notna().any():
            _say(
                ax,
                y,
                next((r for r in mine["missing"] if r), "no reason given")
                if len(mine)
                else "not measured",
            )
            continue
        here = {
            s: r
            for s, r in zip(mine["series"], mine.to_dict("records"), strict=True)
            if pd.notna(r["value"])
        }
        shown = [s for s in looks if s in here]
        for k, series in enumerate(shown):
            at, r = y + (k - (len(shown) - 1) / 2) * step, here[series]
            look = {
                key: value for key, value in looks[series].items() if key not in ("label", "color")
            }
            colour = looks[series]["color"]
            if pd.notna(r["low"]):
                ax.hlines(at, r["low"], r["high"], color=colour, lw=1.8, alpha=0.75, zorder=3)
            if "n_items" in r:
                ax.annotate(f"{int(r['n_items']):,}", (1, at), (4, 0), **place)
            plot_marks(ax, r["value"], at, r["n_cases"], color=colour, zorder=4, **look)
        if "n_items" not in mine:
            ax.annotate(told_n(here[s]["n_cases"] for s in shown), (1, y), (4, 0), **place)
    if "n_items" not in table:
        ax.annotate(
            "n", (1, 1), (4, 4), "axes fraction", "offset points", va="bottom", size=8, color=GREY
        )
    ax.set(ylim=(len(rows) - 0.5, -0.5))
    ax.set_yticks(range(len(rows)), [names[row] for row in rows])


def _say(ax: Axes, y: float, reason: str) -> None:
    words = textwrap.wrap(
        f"missing: {reason}", int(inches(ax)[0] * 72 / 4.6), max_lines=2, placeholder=" …"
    )
    place: Any = {
        "xycoords": ("axes fraction", "data"),
        "textcoords": "offset points",
        "va": "center",
        "size": 8,
    }
    paper = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
    text = ax.annotate(
        "\n".join(words),
        (0, y),
        (6, 0),
        color=GREY,
        linespacing=1.05,
        bbox=paper,
        zorder=4,
        **place,
    )
    text.set_parse_math(False)


def _arrow(
    ax: Axes, y: float, start: tuple[float, float], end: tuple[float, float], look: dict[str, Any]
) -> None:
    """From ``start`` to ``end``, each a value and the cases behind it."""
    colour, (before, n_before), (after, n_after) = look["color"], start, end
    if pd.isna(after):
        _say(ax, y, "a part has no value")
        return
    if pd.isna(before):
        plot_marks(ax, after, y, n_after, color=colour, marker=">", ms=7, zorder=4)
        return
    plot_marks(ax, before, y, n_before, color=colour, marker="o", ms=6, zorder=3)
    if abs(after - before) > 0.05:
        ax.plot([before, after], [y, y], color=colour, lw=1.6, zorder=2)
        plot_marks(
            ax,
            after,
            y,
            n_after,
            color=colour,
            marker=">" if after > before else "<",
            ms=7,
            zorder=4,
        )


def _grid(table: pd.DataFrame, n_rows: int, draw, xlabel: str, unit: str = "cases") -> list[Axes]:
    """``draw(ax, part)`` for each model (rows of panels) and data set (columns), with titles; names at the left only."""
    runs, n_sets = runs_by_set(table)
    panels = axes_grid(3.1, max(ROW_INCHES * 0.85 * n_rows, 1.1), len(runs) // n_sets, n_sets)
    for i, (ax, ((model, dataset), part)) in enumerate(zip(panels, runs.items(), strict=True)):
        draw(ax, part)
        n = part["n_cases"].max()
        set_title(ax, model, dataset, f"n {int(n):,} {unit}", 40)
        if i % n_sets:
            ax.set_yticklabels([])
        ax.set_xlabel(xlabel if i >= len(runs) - n_sets else "")
    return panels


def _bottom(table: pd.DataFrame) -> int:
    """The place of the lower left panel of a grid."""
    runs, n_sets = runs_by_set(table)
    return len(runs) - n_sets


def _share_limits(panels: Sequence[Axes], most: float = 104) -> None:
    """One scale that holds everything drawn, from 0 (or below) to ``most``."""
    lows = [ax.dataLim.x0 for ax in panels if np.isfinite(ax.dataLim.x0)]
    margin = 0.04 * most
    for ax in panels:
        ax.set_xlim(min([0, *lows]) - margin, most)


def _legend(ax: Axes, looks: Mapping[Any, dict[str, Any]]) -> None:
    _legend_below(
        ax,
        [Line2D([], [], ls="", **{"mec": "white", "mew": 1.0, **look}) for look in looks.values()],
    )


def _legend_below(ax: Axes, handles: Sequence[Line2D]) -> None:
    place: Any = {
        "loc": "upper left",
        "bbox_to_anchor": (0, -0.55 / inches(ax)[1]),
        "borderaxespad": 0,
        "borderpad": 0,
    }
    ax.legend(
        handles=list(handles),
        ncols=len(handles),
        frameon=False,
        handletextpad=0.1,
        columnspacing=1.0,
        **place,
    )
