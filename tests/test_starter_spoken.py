"""The written starter cases, conversations and reports: they load, keep their promises, and bad
rows are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from each import each

from trustlab.agents.chart import FIELDS
from trustlab.datasets import DataError, load_cases
from trustlab.knowledge import load_knowledge
from trustlab.levels import view
from trustlab.records import LEVELS, normalise

SETS = each("name", ["starter-dialogue", "starter-report"])


@SETS
def test_the_cases_keep_their_promises(name: str) -> None:
    cases = load_cases(name)
    kind = name.removeprefix("starter-")
    assert [c.case_id for c in cases] == [f"{kind}-{i:03d}" for i in range(1, 49)]
    conditions = {c.name: c for c in load_knowledge().conditions.values()}
    for case in cases:
        assert case.dataset == name and len(case.statements) > 10
        assert case.accepted == conditions[case.diagnosis].names
        assert (
            {"age", "sex", "allergies", "medication", "conditions", "tests_done"}
            <= set(case.patient)
            <= set(FIELDS)
        )
        assert {(s.finding, s.affirmed) for s in case.statements} == {(None, None)}
        spoken = " ".join(f" {normalise(s.text)} |" for s in case.statements)
        assert [
            accepted for accepted in case.accepted if f" {normalise(accepted)} " in spoken
        ] == [], case.case_id


@SETS
def test_the_levels_nest(name: str) -> None:
    for case in load_cases(name):
        shown = [view(case, level).statements for level in LEVELS]
        assert len(shown[0]) == 1 and shown[-1] == case.statements
        assert all(
            large[: len(small)] == small for small, large in zip(shown, shown[1:], strict=False)
        )


def test_a_conversation_is_told_in_exchanges_and_a_report_in_sentences() -> None:
    exchanges = [s.text for case in load_cases("starter-dialogue") for s in case.statements]
    assert all(text.startswith("Doctor: ") and text.count("\nPatient: ") == 1 for text in exchanges)
    reported = [s.text for case in load_cases("starter-report") for s in case.statements]
    assert not any("\n" in text or "Doctor:" in text for text in reported)


# -- the format
# --------------------------------------------------------------------------------------------------


def row(**changes: object) -> dict:
    condition = load_knowledge().conditions["acute_appendicitis"]
    known = {
        "case_id": "a",
        "diagnosis": condition.name,
        "condition": condition.id,
        "age": 0,
        "sex": "male",
    }
    return known | {"statements": [f"Sentence {i}." for i in range(11)]} | changes


def written(folder: Path, name: str, *rows: object) -> Path:
    file = folder / f"{name.removeprefix('starter-')}.jsonl"
    file.write_text("\n".join(json.dumps(r) for r in rows), encoding="utf-8")
    return file


@SETS
def test_a_row_becomes_a_case_from_a_file_or_its_folder(tmp_path: Path, name: str) -> None:
    cases = load_cases(name, path=written(tmp_path, name, row(), row(case_id="b")))
    assert [(c.case_id, c.dataset, c.patient) for c in cases] == [
        (i, name, {"age": 0, "sex": "male"}) for i in "ab"
    ]
    assert load_cases(name, path=tmp_path, seed=3) == cases


@SETS
@each(
    ("changes", "field"),
    [
        ({"case_id": ""}, "case_id"),
        ({"case_id": "a"}, "case_id"),
        ({"condition": "gout_of_the_moon"}, "condition"),
        ({"diagnosis": "Appendicitis, acute"}, "diagnosis"),
        ({"age": "31"}, "age"),
        ({"age": None}, "age"),
        ({"sex": "M"}, "sex"),
        ({"statements": "text"}, "statements"),
        ({"statements": ["x"] * 10}, "statements"),
        ({"statements": ["x"] * 11 + [" "]}, "statement 12"),
        ({"statements": ["x"] * 11 + ["\ud800"]}, "statements"),
        ({"statements": ["x"] * 11 + [{"text": "x"}]}, "statement 12"),
    ],
    ids=str,
)
def test_a_bad_row_is_refused(tmp_path: Path, name: str, changes: dict, field: str) -> None:
    with pytest.raises(DataError) as caught:
        load_cases(name, path=written(tmp_path, name, row(), row(case_id="b") | changes))
    assert (caught.value.row, caught.value.field) == (2, field)


@SETS
def test_a_line_that_is_no_object_and_a_missing_file_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="row 1 .*one JSON object a line"):
        load_cases(name, path=written(tmp_path, name, [1]))
    with pytest.raises(ValueError, match=f"data/starter/{name.removeprefix('starter-')}.jsonl"):
        load_cases(name, path=tmp_path / "none.jsonl")
