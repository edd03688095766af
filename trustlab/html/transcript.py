"""One consultation to read, as HTML for notebooks and as plain text.

What was said, and after each turn the diagnosis with its confidence. Blocks, colours and escaping are those of
:mod:`trustlab.html.show`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from trustlab.agents.consultation import CONFIDENT, NO_QUESTION, REPEATS, Consultation, Turn
from trustlab.html.blocks import (
    GREY,
    INK,
    LINE,
    PAPER,
    WARNING,
    Html,
    block,
    coloured,
    escaped,
    note,
    tint,
    turn_block,
    turns_of,
)
from trustlab.plots.style import label

RIGHT, WRONG, FAILED = ("✓ right", "#006B4A"), ("✗ wrong", WARNING), ("? not judged", GREY)
KEPT = {
    "volunteered": "the patient wanted to tell more than one fact: only one was spoken",
    "invented": "the patient's words were in no fact: not spoken",
    "leaked": "the patient named the diagnosis: not spoken",
    "out of place": "the patient gave an answer to another question: not spoken",
    "unreadable": "the patient's reply could not be read",
}


def transcript(consultation: Consultation, rows: pd.DataFrame, methods: Sequence[str]) -> Html:
    """The consultation as HTML: after each turn the diagnosis, right or wrong, and the confidence of each of ``methods``.

    ``rows`` is ``trustlab.studies.consultation.transcript_rows``. Every word of a model is escaped.
    """
    parts = []
    for level, (said, remark, state) in enumerate(_steps(consultation, rows, methods)):
        parts.append(
            f"<div style='color:{GREY};font-size:12px;margin:8px 0 2px'>{_heading(level)}</div>"
        )
        parts += [turn_block(speaker, words) for speaker, words in turns_of(said)]
        if remark:
            parts.append(
                f"<p style='margin:2px 0 2px 12%;font-size:12px;color:{WARNING}'>⚠ {escaped(remark)}</p>"
            )
        if state is not None:
            answer, (verdict, colour), numbers = state
            look = f"margin:4px 0;padding:4px 10px;border:1px solid {LINE};background:{tint(colour, 0.08)};color:{INK}"
            told = f"Diagnosis: <b>{escaped(answer)}</b> &nbsp; <b>{coloured(verdict, colour)}</b>"
            parts.append(
                f"<div style='{look};break-inside:avoid'>{told}<br>{coloured(numbers, INK)}</div>"
            )
    parts.append(
        f"<p style='margin:8px 0 0;background:{PAPER};color:{INK}'>{escaped(ending(consultation))}</p>"
    )
    return block("".join(parts) + note(f"What it was: {consultation.case.diagnosis}"))


def transcript_text(consultation: Consultation, rows: pd.DataFrame, methods: Sequence[str]) -> str:
    """The same in plain text, for a terminal."""
    lines = []
    for level, (said, remark, state) in enumerate(_steps(consultation, rows, methods)):
        lines += [f"[{_heading(level)}]", said, *([f"  ! {remark}"] if remark else [])]
        if state is not None:
            answer, (verdict, _), numbers = state
            lines.append(f"  -> {answer} ({verdict}); {numbers}")
    return "\n".join([*lines, ending(consultation), f"What it was: {consultation.case.diagnosis}"])


def ending(consultation: Consultation) -> str:
    """Why the consultation ended, in a sentence."""
    n = len(consultation.turns)
    after = f"The consultation ended after {n} question{'' if n == 1 else 's'}: "
    if consultation.ended == REPEATS:
        return f"{after}the doctor asked again what had been asked ({consultation.why})"
    if consultation.ended == NO_QUESTION:
        return f"{after}the doctor asked nothing readable ({consultation.why})."
    if consultation.ended == CONFIDENT:
        return f"{after}the confidence reached the threshold."
    return f"{after}the turn limit."


def _heading(level: int) -> str:
    return "Opening" if level == 0 else f"Question {level}"


def _steps(consultation: Consultation, rows: pd.DataFrame, methods: Sequence[str]):
    """(what was said, a remark, the state after it or ``None``) for each level."""
    states = rows.set_index("level")
    turns: list[Turn | None] = [None, *consultation.turns]
    for level, (statement, turn) in enumerate(zip(consultation.statements, turns, strict=True)):
        remark = KEPT.get(turn.said.outcome, "") if turn else ""
        yield (
            statement.text,
            remark,
            _state(states.loc[level], methods) if level in states.index else None,
        )


def _state(row: Any, methods: Sequence[str]) -> tuple[str, tuple[str, str], str]:
    answer = row["answer"] if isinstance(row["answer"], str) else "(no readable diagnosis)"
    verdict = FAILED if pd.isna(row["correct"]) else RIGHT if row["correct"] == 1 else WRONG
    numbers = [
        f"{label(m)} {'missing' if pd.isna(row[m]) else format(row[m], '.2f')}" for m in methods
    ]
    return answer, verdict, " · ".join(numbers)
