"""Made-up exam questions in MedQA's format, written into a folder for the tests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

ASKED = "Which of the following is the most likely diagnosis?"


def vignette(n: int = 11, who: str = "baker") -> str:
    """``n`` sentences about somebody, all different."""
    return " ".join(f"The {who} tells fact number {i}." for i in range(1, n + 1))


def row(question: object = f"{vignette()} {ASKED}", **changes: object) -> dict:
    """A row of the official files, which becomes a case; a key given as ``None`` is left out."""
    made = {"question": question, "answer": "Gout", "answer_idx": "B", "meta_info": "step2&3"}
    made |= {"options": {"A": "Septic joint", "B": "Gout", "C": "Bursitis", "D": "Fracture"}}
    return {key: value for key, value in (made | changes).items() if value is not None}


ARROWS = row(
    f"{vignette(12)} Which of the following changes are expected?",
    options={"A": "↑ ↑ ↓", "B": "↓ ↑ ↓", "C": "↓ ↓ ↓"},
    answer="↓ ↑ ↓",
)
"""As in one row of the official test split: a sound question, whose answer has no letter."""


def official(folder: Path, rows: Sequence[Mapping] | None = None, name: str = "test.jsonl") -> Path:
    file = folder / name
    lines = [json.dumps(one, ensure_ascii=False) for one in ([row()] if rows is None else rows)]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file
