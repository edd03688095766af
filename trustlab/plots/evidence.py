"""MedConf's evidence in one answer as a table to save."""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from trustlab.html import show
from trustlab.html.show import Verdict
from trustlab.paths import NOTICE
from trustlab.plots.style import GREY, INK, wrapped
from trustlab.records import Assessment, Evidence

WIDTH, MARGIN, PAD = 10.0, 0.15, 0.09
"""Inches: the figure's width, its margin, and the space around a cell's words."""
LEADING = 0.175
"""Inches from one line of a cell to the next."""
POINTS, SMALL = 9.5, 8.5
HEADS = ("#", "Criterion", "Importance", "Verdict", "Quotation")
WIDTHS = (0.4, 3.0, 1.3, 1.5, 3.5)
UNWEIGHED = (0.4, 3.7, 0.0, 1.5, 4.1)
BOLD = {"weight": "bold"}
Lines = list[tuple[str, dict[str, Any]]]
"""Lines of one cell, each with how it is drawn."""


def evidence_table(assessment: Assessment) -> Axes:
    """MedConf's evidence: criterion, importance, verdict, quotation; below, what it comes to."""
    a, rows = assessment, show.judged(assessment)
    ax = plt.figure(figsize=(WIDTH, 1)).add_axes((0, 0, 1, 1))
    ax.set_axis_off()
    ax.set_xlim(0, WIDTH)
    y = _paragraph(ax, f"Evidence for {a.diagnosis}", MARGIN, size=12.5, **BOLD)
    if a.missing:
        y = _paragraph(
            ax, f"⚠ {show.NO_VALUE}: {a.missing}", y, size=10.5, color=show.WARNING, **BOLD
        )
    if a.evidence:
        y = _paragraph(ax, show.legend(), y, size=SMALL, color=GREY)
    if rows:
        y = _rows(ax, rows, y)
    prose = None if a.profile else a.prose
    told = {
        "What a patient with it would tell or have": prose,
        "The model's reasoning": a.reasoning,
    }
    for title, words in told.items():
        if words:
            y = _paragraph(ax, title, y, size=SMALL, color=GREY)
            y = _paragraph(ax, words, y, size=POINTS)
    y = _paragraph(ax, "  ·  ".join(show.summary(a)), y, size=POINTS, **BOLD)
    y = _paragraph(ax, NOTICE, y, size=SMALL, color=GREY)
    ax.figure.set_size_inches(WIDTH, y + MARGIN)
    ax.set_ylim(y + MARGIN, 0)
    return ax


def _paragraph(ax: Axes, words: str, y: float, **look: Any) -> float:
    """Write ``words`` from ``y`` downwards over the whole width; returns where they end."""
    for line in _lines(ax, words, WIDTH - 2 * MARGIN, **look):
        _write(ax, MARGIN, y, line, **look)
        y += LEADING * look["size"] / POINTS
    return y + 0.07


def _rows(ax: Axes, rows: list[tuple[Evidence, Verdict]], y: float) -> float:
    """Draw heads and rows from ``y`` downwards; returns where they end."""
    weighed = any(e.criterion.importance for e, _ in rows)
    widths = WIDTHS if weighed else UNWEIGHED
    lefts = MARGIN + np.cumsum([0, *widths[:-1]])
    heads = [[(head, BOLD)] for head, width in zip(HEADS, widths, strict=True) if width]
    y = _row(ax, heads, lefts[np.array(widths) > 0], y)
    _rule(ax, y, INK, 1.2)
    for e, verdict in rows:
        quote, warning = show.quotation(e)
        said: Lines = [(line, {}) for line in _lines(ax, quote or "–", widths[4] - 2 * PAD)]
        if warning:
            said.append((warning, BOLD | {"color": show.WARNING}))
        number: Lines = [(str(e.criterion.id), {"color": GREY})]
        described = _lines(ax, e.criterion.description, widths[1] - 2 * PAD)
        criterion: Lines = [(line, {}) for line in described]
        judgement: Lines = [(f"{verdict.symbol} {verdict.word}", BOLD)]
        cells = [number, criterion, [(show.importance(e), {})], judgement, said]
        bottom = _row(ax, cells, lefts, y)
        for width, back in (
            (widths[3] - PAD, show.tint(verdict.colour, 0.22)),
            (0.05, verdict.colour),
        ):
            ax.add_patch(
                Rectangle((lefts[3], y), width, bottom - y, fc=back, ec="none", zorder=0.5)
            )
        y = bottom
        _rule(ax, y, "#D0D0D0", 0.8)
    return y + 0.14


def _row(ax: Axes, cells: list[Lines], lefts: np.ndarray, y: float) -> float:
    """Write the cells of one row; returns its lower edge."""
    for left, lines in zip(lefts, cells, strict=True):
        for i, (line, look) in enumerate(lines):
            _write(ax, left + PAD, y + PAD + i * LEADING, line, **look)
    return y + 2 * PAD + LEADING * max(len(lines) for lines in cells) - 0.04


def _rule(ax: Axes, y: float, colour: str, width: float) -> None:
    ax.plot([MARGIN, WIDTH - MARGIN], [y, y], color=colour, lw=width, solid_capstyle="butt")


def _write(ax: Axes, x: float, y: float, line: str, **look: Any) -> None:
    ax.text(x, y, line, va="top", parse_math=False, **({"size": POINTS, "color": INK} | look))


def _lines(ax: Axes, words: str, width: float, **look: Any) -> list[str]:
    """``words`` in lines at most ``width`` inches wide."""
    probe = ax.figure.text(0, 0, "", parse_math=False, **({"size": POINTS} | look))
    lines = wrapped(probe, words, width)
    probe.remove()
    return lines
