"""The written starter cases, in natural language: ``data/starter/dialogue.jsonl`` and ``data/starter/report.jsonl``."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from trustlab.datasets.errors import DataError
from trustlab.datasets.reading import Read
from trustlab.datasets.starter import check_fields, condition_of, patient_of, read_cases
from trustlab.knowledge import Knowledge
from trustlab.paths import DATA
from trustlab.records import Case, Statement

DIALOGUE = DATA / "starter" / "dialogue.jsonl"
REPORT = DATA / "starter" / "report.jsonl"


def read_dialogue(path: Path | None = None, seed: int = 0) -> Read:
    """Conversations, a statement for each exchange: the cases of ``path``, by default :data:`DIALOGUE`, in file order.

    One JSON object a line: ``case_id``, ``diagnosis`` (the condition's name), ``condition`` (its id), ``age`` in years,
    ``sex``, perhaps ``chart`` (:data:`trustlab.chart.FIELDS`), and ``statements`` (texts). Every name of the condition is
    accepted; what a statement tells is not marked. A folder means its ``dialogue.jsonl``. ``seed`` changes nothing. Raises as
    :func:`trustlab.datasets.starter.read`.
    """
    return _read("starter-dialogue", path or DIALOGUE, DIALOGUE.name)


def read_report(path: Path | None = None, seed: int = 0) -> Read:
    """Reports, a statement for each sentence: the same format, by default :data:`REPORT` (``report.jsonl`` in a folder)."""
    return _read("starter-report", path or REPORT, REPORT.name)


def _read(dataset: str, path: Path, name: str) -> Read:
    return read_cases(path, name, f"a file in the format of data/starter/{name}", partial(_case, dataset))


def _case(dataset: str, bad: partial[DataError], row: dict, knowledge: Knowledge) -> Case:
    check_fields(bad, row, {"case_id": str, "diagnosis": str, "condition": str, "statements": list})
    condition = condition_of(bad, row, knowledge)
    if not isinstance(row.get("chart", {}), dict):
        raise bad("chart", row["chart"], "an object")
    for i, text in enumerate(row["statements"], 1):
        if not isinstance(text, str) or not text.strip():
            raise bad(f"statement {i}", text, "a str that is not empty")
    return Case(
        case_id=row["case_id"],
        dataset=dataset,
        statements=tuple(map(Statement, row["statements"])),
        diagnosis=condition.name,
        accepted=condition.names,
        patient=patient_of(bad, row.get("age"), row.get("sex"), chart=row.get("chart") or {}),
    )
