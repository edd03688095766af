"""Values of the wrong kind in files of data: refused with their place, or absent where null is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from each import each
from made_ddxplus import ROW, release
from made_meditod import canonical, doctor, entries, numbered, raw, told, write
from made_medqa import official, row

from trustlab.datasets import DataError, ddxplus, load_cases, meditod
from trustlab.datasets.cases_file import FILE, POSTERIOR
from trustlab.datasets.own import STARTER

OBJECTS = "a list of objects"
CHART = "an object of what a chart holds"
FINDING = "an id of data/knowledge/findings.yml"
CONDITION = "an id of data/knowledge/conditions.yml"
LISTS = {
    "accepted": "a list of names, or one str with ; between",
    "statements": "a list of strings, or one str with a statement on each line",
}


def first_of(file: Path) -> dict:
    with file.open(encoding="utf-8") as stream:
        return json.loads(stream.readline())


def starter(folder: Path, **changed: Any) -> Path:
    return write(folder / "structured.jsonl", first_of(FILE) | changed)


def finding(folder: Path, value: Any) -> Path:
    case = first_of(FILE)
    case["statements"][1] |= {"finding": value}
    return write(folder / "structured.jsonl", case)


def own(folder: Path, **field: Any) -> Path:
    return write(folder / "mine.jsonl", {"id": "a", "diagnosis": "Gout", "text": "He."} | field)


def annotated(folder: Path, field: str, value: Any) -> Path:
    utterances = numbered(told())
    utterances[4] |= {field: value}
    return write(folder / "dialogs.json", {"1": {"utterances": utterances}})


def disease(folder: Path, value: str) -> Path:
    return canonical(folder, {"1": told(doctor("It is.", disease=[value]))})


def chart(folder: Path, value: Any) -> Path:
    return write(folder / "dialogue.jsonl", first_of(STARTER / "dialogue.jsonl") | {"chart": value})


def chances(folder: Path, value: Any) -> Path:
    return write(folder / "cases.jsonl", first_of(ddxplus.KEPT) | {"differential": value})


ROWS: list[tuple[str, Any, list, str, str]] = [
    ("starter", lambda f, v: starter(f, condition=v), [7, None, ["fever"]], "condition", CONDITION),
    ("starter", finding, [7, None, ["fever"]], "statement 2, finding", FINDING),
    *(
        ("table", lambda f, v, field=field: own(f, **{field: v}), [7, {"a": 1}, True], field, words)
        for field, words in LISTS.items()
    ),
    ("medqa", lambda f, v: official(f, [row(options=v)]), ["A", ["Gout", "Flu"], 7], "options",
     "an object, letter to text, two options or more"),
    *(
        ("meditod", lambda f, v, field=field: annotated(f, field, v), ["x", {"action": "x"}, 7],
         f"dialogue 1, utterance 4, {field}", OBJECTS)
        for field in ("nlu", "actions")
    ),
    ("meditod", disease, [",", " , ", "?"],
     "dialogue 1, utterance 22, action 1, disease 1, value", "the name of a disease"),
    ("starter-dialogue", chart, [7, [], "none"], "chart", CHART),
    ("ddxplus-171", chances, [{}], "differential", "at least 1"),
    ("ddxplus-171", chances, [{"Gout": 0.5, "gout": 0.5}], "differential",
     "every diagnosis once, in whatever spelling"),
]  # fmt: skip
"""Data set, what writes its file with a value, such values, the field and what is allowed."""


@each(("name", "made", "values", "field", "allowed"), ROWS)
def test_a_value_of_the_wrong_kind_is_refused_with_its_place(
    name: str, made: Any, values: list, field: str, allowed: str, tmp_path: Path
) -> None:
    for value in values:
        with pytest.raises(DataError) as caught:
            load_cases(name, path=made(tmp_path, value))
        assert (caught.value.field, caught.value.allowed) == (field, allowed), value


def test_null_is_absent_where_a_field_may_be(tmp_path: Path) -> None:
    dialogue = told(doctor("So.", disease=["nevus"]))
    plain = meditod.read(canonical(tmp_path / "plain", {"1": dialogue})).cases
    for utterance in dialogue:
        utterance |= {"nlu": utterance.get("nlu"), "actions": utterance.get("actions")}
        for action in utterance["actions"] or ():
            action |= {"status": None, "disease": action.get("disease")}
    assert meditod.read(canonical(tmp_path / "null", {"1": dialogue})).cases == plain
    (case,) = load_cases("starter-dialogue", path=chart(tmp_path, None))
    assert set(case.patient) == {"age", "sex"}
    file, known = raw(tmp_path, {"1": told(), "2": told()}), entries(told())
    none: list[object] = [None, [], [{"intent": "diagnosis", "value": None, "uid": 0}]]
    for value in none:
        write(tmp_path / "annotations.json", {"1": value, "2": known})
        assert meditod.read(file).dropped == {meditod.NO_DIAGNOSIS: ["1"]}
    for value in (0, "", False, [None], {"0": None}):
        write(tmp_path / "annotations.json", {"1": value, "2": known})
        with pytest.raises(DataError) as caught:
            load_cases("meditod", path=file)
        assert (caught.value.field, caught.value.allowed) == ("dialogue 1", OBJECTS)


def test_a_chance_is_told_once_for_each_diagnosis(tmp_path: Path) -> None:
    case = first_of(FILE)
    starter(tmp_path)
    twice = {"case_id": case["case_id"], "posterior": {"1": {"Gout": 0.5, "GOUT": 0.1}}}
    write(tmp_path / POSTERIOR, twice)
    with pytest.raises(DataError, match="posterior: .*diagnosis, each once -> chance"):
        load_cases("starter", path=tmp_path)
    pairs = str([["Made-up disease", 0.5], ["Made-up disease", 0.25]])
    folder = release(tmp_path, [ROW | {"DIFFERENTIAL_DIAGNOSIS": pairs}])
    with pytest.raises(DataError, match="DIFFERENTIAL_DIAGNOSIS: .*every condition once"):
        load_cases("ddxplus", path=folder)
