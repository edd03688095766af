"""One answer as figures to save: MedConf's table of evidence, and the probabilities of the diagnosis's tokens."""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Rectangle

from trustlab.html.show import (
    NO_VALUE,
    WARNING,
    Verdict,
    importance,
    judged,
    legend,
    quotation,
    summary,
    tint,
    visible,
)
from trustlab.paths import NOTICE
from trustlab.plots.style import FAMILY_COLOURS, GREY, INK
from trustlab.records import Assessment, Evidence, Reply

WIDTH, MARGIN, PAD = 10.0, 0.15, 0.09
"""Inches: the figure's width, its margin, and the space around a cell's words."""
LEADING = 0.175
"""Inches from one line of a cell to the next."""
POINTS, SMALL = 9.5, 8.5
ROW_INCHES = 0.34
LONGEST_TOKEN = 24

Lines = list[tuple[str, dict[str, Any]]]
"""Lines of one cell, each with how it is drawn."""


def evidence_table(assessment: Assessment) -> Axes:
    """MedConf's evidence as a table: criterion, importance, verdict and the patient's words, with what it comes to below."""
    rows = judged(assessment)
    figure = plt.figure(figsize=(WIDTH, 1))
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set_axis_off()
    ax.set_xlim(0, WIDTH)
    y = MARGIN
    for words, look in _above(assessment):
        y = _paragraph(ax, words, y, **look)
    if rows:
        y = _rows(ax, rows, y)
    for words, look in _below(assessment):
        y = _paragraph(ax, words, y, **look)
    figure.set_size_inches(WIDTH, y + MARGIN)
    ax.set_ylim(y + MARGIN, 0)
    return ax


def token_bars(reply: Reply) -> Axes:
    """The probability of each token of the diagnosis, in reading order from the top."""
    trace = reply.trace
    known = trace is not None and trace.logprobs is not None and len(trace) > 0
    n = len(trace) if trace is not None and known else 2
    figure, ax = plt.subplots(
        figsize=(6.4, 1.1 + ROW_INCHES * n), layout=ConstrainedLayoutEngine(h_pad=0.08, w_pad=0.1)
    )
    ax.set(xlim=(0, 1.09), xlabel="Probability of the token, given those before it", ylabel="")
    ax.set_xticks(np.arange(0, 1.01, 0.2))
    if trace is None or trace.logprobs is None or not known:
        why = (
            f"no diagnosis: {reply.missing or 'no reply'}"
            if reply.text is None
            else "the model gave no token probabilities"
        )
        ax.set_yticks([])
        lines = "\n".join(_wrapped(figure, why, 4.8, size=10))
        ax.text(
            0.5,
            0.5,
            lines,
            transform=ax.transAxes,
            ha="center",
            va="center",
            color=GREY,
            parse_math=False,
        )
        return ax
    probabilities = np.exp(trace.logprobs)
    ax.barh(range(n), probabilities, color=FAMILY_COLOURS["token"], height=0.72)
    for row, p in enumerate(probabilities):
        ax.annotate(f"{p:.2f}", (p, row), (4, 0), textcoords="offset points", va="center")
    ax.set(yticks=range(n), ylim=(n - 0.4, -0.6))
    ax.set_yticklabels([_shortened(visible(token)) for token in trace.tokens], parse_math=False)
    ax.grid(False, axis="y")
    return ax


def _above(a: Assessment) -> Lines:
    lines: Lines = [(f"Evidence for {a.diagnosis}", {"size": 12.5, "weight": "bold"})]
    if a.missing:
        lines.append(
            (f"⚠ {NO_VALUE}: {a.missing}", {"size": 10.5, "weight": "bold", "color": WARNING})
        )
    if a.evidence:
        lines.append((legend(), {"size": SMALL, "color": GREY}))
    return lines


def _below(a: Assessment) -> Lines:
    lines: Lines = []
    told = (
        ("What a patient with it would tell or have", None if a.profile else a.prose),
        ("The model's reasoning", a.reasoning),
    )
    for title, words in told:
        if words:
            lines += [(title, {"size": SMALL, "color": GREY}), (words, {"size": POINTS})]
    lines.append(("  ·  ".join(summary(a)), {"size": POINTS, "weight": "bold"}))
    return [*lines, (NOTICE, {"size": SMALL, "color": GREY})]


def _paragraph(ax: Axes, words: str, y: float, **look: Any) -> float:
    """Write ``words`` from ``y`` downwards over the whole width; returns where they end."""
    step = LEADING * look["size"] / POINTS
    for line in _wrapped(ax.figure, words, WIDTH - 2 * MARGIN, **look):
        ax.text(MARGIN, y, line, va="top", parse_math=False, **({"color": INK} | look))
        y += step
    return y + 0.07


def _rows(ax: Axes, rows: list[tuple[Evidence, Verdict]], y: float) -> float:
    """Draw heads and rows from ``y`` downwards; returns where they end."""
    weighed = any(e.criterion.importance for e, _ in rows)
    widths = [0.4, 3.0, 1.3, 1.5, 3.5] if weighed else [0.4, 3.7, 0.0, 1.5, 4.1]
    lefts = MARGIN + np.cumsum([0, *widths[:-1]])
    heads = ["#", "Criterion", "Importance" if weighed else "", "Verdict", "Quotation"]
    y = _table_row(ax, [[(head, {"weight": "bold"})] for head in heads], lefts, y)
    _rule(ax, y, INK, 1.2)
    for e, verdict in rows:
        bottom = _table_row(ax, _cells(ax.figure, e, verdict, widths), lefts, y)
        for width, back in ((widths[3] - PAD, tint(verdict.colour, 0.22)), (0.05, verdict.colour)):
            ax.add_patch(
                Rectangle(
                    (lefts[3], y), width, bottom - y, facecolor=back, edgecolor="none", zorder=0.5
                )
            )
        y = bottom
        _rule(ax, y, "#D0D0D0", 0.8)
    return y + 0.14


def _cells(figure: Figure | Any, e: Evidence, verdict: Verdict, widths: list[float]) -> list[Lines]:
    """The cells of one criterion: its number, description, importance, verdict and quotation."""
    quote, warning = quotation(e)
    described = _wrapped(figure, e.criterion.description, widths[1] - 2 * PAD, size=POINTS)
    said: Lines = [
        (line, {}) for line in _wrapped(figure, quote or "–", widths[4] - 2 * PAD, size=POINTS)
    ]
    return [
        [(str(e.criterion.id), {"color": GREY})],
        [(line, {}) for line in described],
        [(importance(e), {})],
        [(f"{verdict.symbol} {verdict.word}", {"weight": "bold"})],
        [*said, (warning, {"weight": "bold", "color": WARNING})] if warning else said,
    ]


def _table_row(ax: Axes, cells: list[Lines], lefts: np.ndarray, y: float) -> float:
    """Write the cells of one row; returns its lower edge."""
    for left, lines in zip(lefts, cells, strict=True):
        for i, (line, look) in enumerate(lines):
            ax.text(
                left + PAD,
                y + PAD + i * LEADING,
                line,
                va="top",
                parse_math=False,
                **({"size": POINTS, "color": INK} | look),
            )
    return y + 2 * PAD + LEADING * max(len(lines) for lines in cells) - 0.04


def _rule(ax: Axes, y: float, colour: str, width: float) -> None:
    ax.plot([MARGIN, WIDTH - MARGIN], [y, y], color=colour, lw=width, solid_capstyle="butt")


def _wrapped(figure: Figure | Any, words: str, width: float, **look: Any) -> list[str]:
    """``words`` in lines at most ``width`` inches wide as they will be drawn; a word too long is broken."""
    probe = figure.text(0, 0, "", parse_math=False, **look)

    def fits(text: str) -> bool:
        probe.set_text(text)
        return probe.get_window_extent().width <= width * figure.dpi

    lines = [""]
    for word in words.split():
        while word:
            longer = f"{lines[-1]} {word}".strip()
            if fits(longer):
                lines[-1], word = longer, ""
            elif lines[-1]:
                lines.append("")
            else:
                stop = next((k for k in range(len(word) - 1, 1, -1) if fits(word[:k])), 1)
                lines[-1], word = word[:stop], word[stop:]
    probe.remove()
    return lines


def _shortened(token: str) -> str:
    return token if len(token) <= LONGEST_TOKEN else f"{token[: LONGEST_TOKEN - 1]}…"
