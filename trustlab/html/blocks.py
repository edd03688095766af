"""Pieces of HTML that what notebooks show is made of: blocks, tables, notes, turns of a dialogue.

Inline styles, no script, nothing from elsewhere. Words of a model or a patient go through :func:`escaped`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

INK, GREY, LINE, PAPER, WARNING = "#222222", "#5A5A5A", "#D0D0D0", "#FFFFFF", "#8A3C00"
SHADE = "#0072B2"


class Html(str):
    """HTML that a notebook shows as such."""

    def _repr_html_(self) -> str:
        return str(self)

    def __repr__(self) -> str:
        return f"<HTML, {len(self):,} characters>"


def tint(colour: str, share: float) -> str:
    """``colour`` mixed with white; ``share`` 0 is white."""
    parts = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(255 + share * (part - 255)):02X}" for part in parts)


def escaped(words: object) -> str:
    """Words of a model, a patient or a file, so that a browser shows them and does nothing else."""
    return html.escape(str(words))


def block(inside: str) -> Html:
    """What stands alone in a notebook: its own background and colours, in light and dark themes."""
    look = f"background:{PAPER};color:{INK};border:1px solid {LINE};border-radius:4px;padding:10px 12px;margin:4px 0"
    text = "font-family:sans-serif;font-size:13px;line-height:1.45;max-width:900px;overflow-wrap:anywhere;text-align:left"
    ink = "-webkit-print-color-adjust:exact;print-color-adjust:exact"
    # the classes keep MathJax from reading a patient's dollar signs as formulas
    return Html(
        f"<div class='tex2jax_ignore mathjax_ignore' style='{look};{text};{ink};box-sizing:border-box'>{inside}</div>"
    )


def note(words: str) -> str:
    """A line in small grey print."""
    return f"<p style='margin:4px 0;font-size:12px;color:{GREY}'>{escaped(words)}</p>"


def banner(words: str) -> str:
    """A warning that cannot be overlooked, in colour and with a sign."""
    look = f"background:{tint('#E69F00', 0.25)};color:{INK};border-left:5px solid #E69F00;padding:6px 10px;margin:4px 0"
    return f"<div style='{look}'><b>⚠ {escaped(words)}</b></div>"


def quoted(title: str, words: str) -> str:
    """Words as they were said, under a title."""
    look = f"margin:2px 0 6px;padding:4px 10px;border-left:3px solid {LINE};color:{INK};white-space:pre-wrap"
    return f"<p style='margin:6px 0 0;color:{GREY}'>{escaped(title)}</p><div style='{look}'>{escaped(words)}</div>"


def coloured(words: str, colour: str) -> str:
    """Words in a colour."""
    return f"<span style='color:{colour}'>{escaped(words)}</span>"


def preformatted(words: str) -> str:
    """Words with their line breaks, in letters of one width."""
    look = f"background:#F4F4F4;color:{INK};border:1px solid {LINE};padding:4px 8px;margin:0;font-size:12px"
    return f"<pre style='{look};white-space:pre-wrap;overflow-wrap:anywhere'>{escaped(words)}</pre>"


def bar(share: float) -> str:
    """A bar as wide as ``share`` (0 to 1) of the room there is."""
    return f"<div style='background:{SHADE};width:{100 * share:.1f}%;height:12px;border-radius:2px'></div>"


def html_table(heads: Sequence[str], rows: Sequence[str]) -> str:
    """A table of ``rows`` made by :func:`html_row` under ``heads``."""
    look = f"text-align:left;padding:4px 8px;border-bottom:2px solid {GREY};background:{PAPER};color:{INK};font-weight:bold"
    top = "".join(f"<th style='{look}'>{escaped(head)}</th>" for head in heads)
    # Columns as wide as what they hold: JupyterLab would make them all alike.
    whole = f"border-collapse:collapse;table-layout:auto;width:100%;margin:4px 0;background:{PAPER};color:{INK};font-size:13px"
    return f"<table style='{whole}'><thead><tr>{top}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def html_row(*cells: str) -> str:
    """A row of cells made by :func:`html_cell`."""
    return f"<tr style='break-inside:avoid;background:{PAPER}'>{''.join(cells)}</tr>"


def html_cell(inside: str, style: str = "") -> str:
    """A cell; ``inside`` is HTML, so escape what a model wrote."""
    look = f"text-align:left;vertical-align:top;padding:5px 8px;border-bottom:1px solid {LINE};background:{PAPER};color:{INK}"
    return f"<td style='{look};white-space:normal;max-width:none;{style}'>{inside}</td>"


def turns_of(text: str) -> list[tuple[str, str]]:
    """(speaker, words) of each turn; a line without a name goes on where the one before left off."""
    turns: list[tuple[str, str]] = []
    for line in text.splitlines():
        found = re.match(r"(Doctor|Patient):\s*(.*)", line)
        if found or not turns:
            turns.append((found[1], found[2]) if found else ("", line))
        else:
            turns[-1] = (turns[-1][0], f"{turns[-1][1]}\n{line}")
    return turns


def turn_block(speaker: str, words: str) -> str:
    """One turn of a dialogue, told apart by side, colour and name."""
    said = escaped(words).replace("\n", "<br>")
    if not speaker:
        return f"<p style='margin:6px 0;color:{INK}'>{said}</p>"
    colour, side = (
        ("#0072B2", "margin:4px 12% 4px 0")
        if speaker == "Doctor"
        else ("#E69F00", "margin:4px 0 4px 12%")
    )
    look = f"padding:5px 10px;border-left:4px solid {colour};background:{tint(colour, 0.12)};color:{INK};border-radius:3px"
    return f"<div style='{side};{look};break-inside:avoid'><b>{speaker}:</b> {said}</div>"
