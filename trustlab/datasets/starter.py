"""The starter cases: ``data/starter/structured.jsonl``, made by ``training/starter.py`` from the knowledge table."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from trustlab.chart import FIELDS, chart_from
from trustlab.datasets.errors import MIN_STATEMENTS, DataError, each_key_once, read_text
from trustlab.datasets.reading import Read
from trustlab.knowledge import Condition, Knowledge, load_knowledge
from trustlab.paths import DATA
from trustlab.records import Case, Statement

FILE = DATA / "starter" / "structured.jsonl"
SEXES = ("female", "male")


def read(path: Path | None = None, seed: int = 0) -> Read:
    """The cases of ``path`` (default :data:`FILE`; a folder means its ``structured.jsonl``), in file order.

    One JSON object a line: ``case_id``, ``diagnosis`` (the condition's name), ``condition`` (its id), ``patient``
    (``age`` in years, ``sex``, and what else a chart holds: :data:`trustlab.chart.FIELDS`) and ``statements`` (``text``,
    ``finding``, ``affirmed``). Every name of the condition
    is accepted. ``seed`` changes nothing: the file has an order. Raises :class:`DataError` for a bad row (rows are
    lines), ``ValueError`` where there is no such file.
    """
    return read_cases(path or FILE, FILE.name, "a starter file such as training/starter.py writes", _case)


def read_cases(path: Path, name: str, allowed: str, case_of: Callable[[partial[DataError], dict, Knowledge], Case]) -> Read:
    """The cases of a file of JSON lines, or of the file ``name`` in a folder, each made by ``case_of``; ids must differ."""
    file = path / name if path.is_dir() else path
    if not file.is_file():
        raise ValueError(f"path is {str(file)!r}, which is no file; allowed is {allowed}")
    knowledge = load_knowledge()
    cases: dict[str, Case] = {}
    for number, line in enumerate(read_text(file).split("\n"), 1):
        if line.strip():
            bad = partial(DataError, file, number)
            case = case_of(bad, json_object(bad, line), knowledge)
            if case.case_id in cases:
                raise bad("case_id", case.case_id, "an id that no earlier row has")
            cases[case.case_id] = case
    return Read(list(cases.values()), len(cases))


def json_object(bad: partial[DataError], line: str) -> dict:
    """The JSON object that ``line`` holds."""
    try:
        row = json.loads(line, object_pairs_hook=each_key_once)
    except (ValueError, RecursionError) as error:
        raise bad("line", line, f"one JSON object a line ({error})") from error
    if not isinstance(row, dict):
        raise bad("line", row, "one JSON object a line")
    return row


def check_fields(bad: partial[DataError], row: dict, kinds: Mapping[str, type]) -> None:
    """Refuse a field that is missing, empty or of another kind, and too few statements."""
    for field, kind in kinds.items():
        if not isinstance(row.get(field), kind) or not row[field]:
            raise bad(field, row.get(field), f"a {kind.__name__} that is not empty")
    if len(row["statements"]) < MIN_STATEMENTS:
        raise bad("statements", f"{len(row['statements'])} statements", f"at least {MIN_STATEMENTS}")


def condition_of(bad: partial[DataError], row: dict, knowledge: Knowledge) -> Condition:
    """The condition that ``condition`` and ``diagnosis`` both mean."""
    condition = knowledge.conditions.get(row["condition"])
    if condition is None:
        raise bad("condition", row["condition"], "an id of data/knowledge/conditions.yml")
    if row["diagnosis"] != condition.name:
        raise bad("diagnosis", row["diagnosis"], f"the name of {condition.id}, {condition.name!r}")
    return condition


def patient_of(
    bad: partial[DataError], age: object, sex: object, prefix: str = "", chart: Mapping[str, object] | None = None
) -> dict[str, object]:
    """``age`` and ``sex``, and what else of a ``chart`` is recorded, checked; ``prefix`` stands before them in an error."""
    if type(age) is not int or not 0 <= age <= 120:
        raise bad(f"{prefix}age", age, "a whole number from 0 to 120")
    if sex not in SEXES:
        raise bad(f"{prefix}sex", sex, " or ".join(SEXES))
    rest = {field: chart[field] for field in FIELDS[2:] if chart and chart.get(field) is not None}
    try:
        chart_from(rest)
    except ValueError as error:
        raise bad(f"{prefix}chart", rest, str(error)) from error
    return {"age": age, "sex": sex, **rest}


def _case(bad: partial[DataError], row: dict, knowledge: Knowledge) -> Case:
    check_fields(bad, row, {"case_id": str, "diagnosis": str, "condition": str, "patient": dict, "statements": list})
    condition = condition_of(bad, row, knowledge)
    return Case(
        case_id=row["case_id"],
        dataset="starter",
        statements=tuple(_statement(bad, i, item, knowledge) for i, item in enumerate(row["statements"], 1)),
        diagnosis=condition.name,
        accepted=condition.names,
        patient=patient_of(bad, row["patient"].get("age"), row["patient"].get("sex"), "patient.", row["patient"]),
    )


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
