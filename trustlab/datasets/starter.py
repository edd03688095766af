"""The starter cases: ``data/starter/structured.jsonl``, made by ``training/starter.py`` from the knowledge table."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

from trustlab.datasets.errors import MIN_STATEMENTS, DataError, read_text
from trustlab.knowledge import Condition, Knowledge, load_knowledge
from trustlab.paths import DATA
from trustlab.records import Case, Statement

FILE = DATA / "starter" / "structured.jsonl"
SEXES = ("female", "male")


def load(path: Path | None = None, seed: int = 0) -> list[Case]:
    """The cases of ``path`` (default :data:`FILE`; a folder means its ``structured.jsonl``), in file order.

    One JSON object a line: ``case_id``, ``diagnosis`` (the condition's name), ``condition`` (its id), ``patient``
    (``age`` in years, ``sex``) and ``statements`` (``text``, ``finding``, ``affirmed``). Every name of the condition
    is accepted. ``seed`` changes nothing: the file has an order. Raises :class:`DataError` for a bad row (rows are
    lines), ``ValueError`` where there is no such file.
    """
    file = path or FILE
    if file.is_dir():
        file = file / FILE.name
    if not file.is_file():
        raise ValueError(f"path is {str(file)!r}, which is no file; allowed is a starter file such as training/starter.py writes")
    knowledge = load_knowledge()
    cases: dict[str, Case] = {}
    for number, line in enumerate(read_text(file).split("\n"), 1):
        if line.strip():
            case = _case(file, number, line, knowledge)
            if case.case_id in cases:
                raise DataError(file, number, "case_id", case.case_id, "an id that no earlier row has")
            cases[case.case_id] = case
    return list(cases.values())


def _case(file: Path, number: int, line: str, knowledge: Knowledge) -> Case:
    bad = partial(DataError, file, number)
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise bad("line", line, f"one JSON object a line ({error})") from error
    if not isinstance(row, dict):
        raise bad("line", row, "one JSON object a line")
    for field, kind in {"case_id": str, "diagnosis": str, "condition": str, "patient": dict, "statements": list}.items():
        if not isinstance(row.get(field), kind) or not row[field]:
            raise bad(field, row.get(field), f"a {kind.__name__} that is not empty")
    condition = _condition(bad, row, knowledge)
    if len(row["statements"]) < MIN_STATEMENTS:
        raise bad("statements", f"{len(row['statements'])} statements", f"at least {MIN_STATEMENTS}")
    return Case(
        case_id=row["case_id"],
        dataset="starter",
        statements=tuple(_statement(bad, i, item, knowledge) for i, item in enumerate(row["statements"], 1)),
        diagnosis=condition.name,
        accepted=condition.names,
        patient=_patient(bad, row["patient"]),
    )


def _condition(bad: partial[DataError], row: dict, knowledge: Knowledge) -> Condition:
    condition = knowledge.conditions.get(row["condition"])
    if condition is None:
        raise bad("condition", row["condition"], "an id of data/knowledge/conditions.yml")
    if row["diagnosis"] != condition.name:
        raise bad("diagnosis", row["diagnosis"], f"the name of {condition.id}, {condition.name!r}")
    return condition


def _patient(bad: partial[DataError], patient: dict) -> dict[str, object]:
    age, sex = patient.get("age"), patient.get("sex")
    if type(age) is not int or not 0 <= age <= 120:
        raise bad("patient.age", age, "a whole number from 0 to 120")
    if sex not in SEXES:
        raise bad("patient.sex", sex, " or ".join(SEXES))
    return {"age": age, "sex": sex}


def _statement(bad: partial[DataError], position: int, item: object, knowledge: Knowledge) -> Statement:
    where = f"statement {position}"
    if not isinstance(item, dict):
        raise bad(where, item, "an object with text, finding and affirmed")
    text, finding, affirmed = item.get("text"), item.get("finding"), item.get("affirmed")
    if not isinstance(text, str) or not text.strip():
        raise bad(f"{where}, text", text, "a str that is not empty")
    if not isinstance(finding, str) or finding not in knowledge.findings:
        raise bad(f"{where}, finding", finding, "an id of data/knowledge/findings.yml")
    if not isinstance(affirmed, bool):
        raise bad(f"{where}, affirmed", affirmed, "true or false")
    return Statement(text, finding, affirmed)
