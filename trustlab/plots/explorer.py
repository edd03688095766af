"""The explorer's still figure: one case from the first statement to the last."""

# pandas' types leave open what a selection gives.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from trustlab.confidence import METHODS
from trustlab.plots.style import (
    FAMILY_COLOURS,
    FAMILY_MARKERS,
    GREY,
    INK,
    LINES,
    axes_row,
    caption,
    family_of,
    inches,
    label,
    spread,
    text_colour,
)

if TYPE_CHECKING:
    from trustlab.run import Run

LETTERS = 17
"""Letters of an answer in one line under its level."""


def still_table(run: Run, case_id: str, model: str) -> pd.DataFrame:
    """What :func:`explorer_still` draws: level n_statements answer correct method confidence, probability-scale methods only.

    ``ValueError`` where the run has no answer of ``model`` to the case.
    """
    answers = run.answers.loc[(run.answers["case_id"] == case_id) & (run.answers["model"] == model)]
    if not len(answers):
        raise ValueError(f"the run holds no answer of model {model!r} to case {case_id!r}")
    mine = run.confidence.loc[
        (run.confidence["case_id"] == case_id) & (run.confidence["model"] == model)
    ]
    mine = mine.loc[
        [METHODS[name].scale == "probability" for name in mine["method"]],
        ["level", "method", "confidence"],
    ]
    table = answers[["level", "n_statements", "answer", "correct"]].merge(
        mine, on="level", how="left"
    )
    return table.sort_values("level", kind="stable", ignore_index=True)


def explorer_still(run: Run, case_id: str, model: str, truth: bool = False) -> Figure:
    """The probability-scale confidences of one case (0 to 1) over the levels, with the answer at each level underneath.

    Colour and marker say the family, dashes the method within it. Only with ``truth`` are the right diagnosis and the
    verdicts shown: a filled marker is then a right answer, a hollow one a wrong, none an answer that could not be had.
    ``ValueError`` where the run has no answer of ``model`` to the case.
    """
    table = still_table(run, case_id, model)
    steps = table.drop_duplicates("level")
    ax = axes_row(max(1.3 * len(steps), 3.9), 3.6)[0]
    ends, seen, undrawn = [], {}, []
    for method in [name for name in run.families if name in set(table["method"].dropna())]:
        rows = table.loc[table["method"] == method].set_index("level").reindex(steps["level"])
        if rows["confidence"].isna().all():
            undrawn.append(label(method))
            continue
        family = family_of(method, run.families)
        seen[family] = seen.get(family, -1) + 1
        _line(
            ax, rows if truth else rows.assign(correct=1), family, LINES[seen[family] % len(LINES)]
        )
        known = rows["confidence"].reset_index(drop=True).dropna()
        ends.append((label(method), known.index[-1], known.iloc[-1], text_colour(family)))
    if not ends:
        ax.text(
            0.5,
            0.5,
            "no confidence on a scale from 0 to 1",
            transform=ax.transAxes,
            ha="center",
            color=GREY,
        )
    ticks = [f"{r.level} %\n{r.n_statements} told" for r in steps.itertuples()]
    ax.set(
        xticks=range(len(steps)),
        xticklabels=ticks,
        xlim=(-0.5, len(steps) - 0.5),
        ylim=(-0.03, 1.03),
    )
    ax.set(ylabel="Confidence, 0 to 1", xlabel="")
    _name_ends(ax, ends)
    _answers(ax, steps, truth)
    about = run.answers.loc[run.answers["case_id"] == case_id].iloc[0]
    title = f"Case {case_id}; the truth: {about['truth']}" if truth else f"Case {case_id}"
    ax.set_title(title, loc="left").set_parse_math(False)
    dataset = str(about["dataset"])
    note = "filled marker: right answer, hollow: wrong; " if truth else ""
    note += "under each level how many statements were told and the answer"
    note += f"; no value: {', '.join(undrawn)}" if undrawn else ""
    caption(ax, model=model, dataset=dataset, n_cases=1, n_rows=len(steps), note=note, interval="")
    assert isinstance(ax.figure, Figure)
    return ax.figure


def _line(ax: Axes, rows: pd.DataFrame, family: str, dashes: Any) -> None:
    colour, x = FAMILY_COLOURS[family], range(len(rows))
    ax.plot(x, rows["confidence"], color=colour, ls=dashes, lw=1.7, zorder=2)
    for right, fill in ((1, colour), (0, "white")):
        mine = rows["confidence"].where(rows["correct"] == right)
        ax.plot(
            x,
            mine,
            ls="",
            marker=FAMILY_MARKERS[family],
            ms=7,
            color=colour,
            mfc=fill,
            mec=colour,
            mew=1.3,
            zorder=3,
        )


def _name_ends(ax: Axes, ends: list[tuple[str, Any, float, Any]]) -> None:
    """Each line's name at the right, moved up or down as little as keeps the names apart."""
    ends = sorted(ends, key=lambda end: end[2])
    bottom, top = ax.get_ylim()
    places = (
        spread([end[2] for end in ends], 13.5 / 72 * (top - bottom) / inches(ax)[1], bottom, top)
        if ends
        else []
    )
    for (words, x, y, colour), place in zip(ends, places, strict=True):
        line = {
            "arrowstyle": "-",
            "color": colour,
            "lw": 0.7,
            "relpos": (0, 0.5),
            "shrinkA": 1,
            "shrinkB": 5,
        }
        style: dict[str, Any] = {
            "color": colour,
            "size": 9.5,
            "va": "center",
            "annotation_clip": False,
        }
        ax.annotate(
            words,
            (x, y),
            (1.02, place),
            xycoords="data",
            textcoords=("axes fraction", "data"),
            arrowprops=line,
            **style,
        )


def _answers(ax: Axes, steps: pd.DataFrame, truth: bool) -> None:
    """The answer under each level; with ``truth``, right or wrong."""
    for x, row in enumerate(steps.itertuples()):
        verdict = (
            "– not judged" if pd.isna(row.correct) else "✓ right" if row.correct else "✗ wrong"
        )
        absent = "no answer" if pd.isna(row.correct) else "no readable answer"
        said = absent if pd.isna(row.answer) else str(row.answer)
        lines = textwrap.wrap(said, LETTERS, max_lines=5, placeholder=" …")
        words = "\n".join([verdict, *lines] if truth else lines)
        text = ax.annotate(
            words,
            (x, 0),
            (0, -40),
            ("data", "axes fraction"),
            "offset points",
            ha="center",
            va="top",
            size=8,
        )
        text.set(color=GREY if truth and row.correct != 1 else INK, linespacing=1.25)
        text.set_parse_math(False)
