"""Values of the wrong kind in files of data: refused with their place, or absent where null is."""

from __future__ import annotations

from pathlib import Path

import pytest
from each import each
from made_ddxplus import ROW, release
from made_meditod import canonical, doctor, numbered, told, write
from made_medqa import official, row
from saying import saying, says

from trustlab.datasets import DataError, load_cases, meditod

ALLOWED = {
    "accepted": "a valid list",
    "statements": "a valid list",
    "options": "a valid dictionary",
    "objects": "a valid list",
}


def refused(name: str, file: Path, field: str, allowed: str) -> None:
    with pytest.raises(DataError) as caught:
        load_cases(name, path=file)
    assert caught.value.field == field and says(caught.value.allowed, allowed)


@each("field", ["accepted", "statements"])
@each("value", [7, {"a": 1}, True])
def test_lists_of_a_table_are_lists_or_text(tmp_path: Path, field: str, value: object) -> None:
    own = {"id": "a", "diagnosis": "Gout", "text": "He coughs.", field: value}
    refused("table", write(tmp_path / "mine.jsonl", own), field, ALLOWED[field])


@each("options", ["A", ["Gout", "Flu"], 7])
def test_options_are_an_object(tmp_path: Path, options: object) -> None:
    file = official(tmp_path, [row(options=options)])
    refused("medqa", file, "options", ALLOWED["options"])


@each("field", ["nlu", "actions"])
@each("value", ["inform", {"action": "inform"}, 7])
def test_what_annotates_an_utterance_is_a_list(tmp_path: Path, field: str, value: object) -> None:
    utterances = numbered(told())
    utterances[4] |= {field: value}
    file = write(tmp_path / "dialogs.json", {"1": {"utterances": utterances}})
    refused("meditod", file, f"dialogue 1, utterance 4, {field}", ALLOWED["objects"])


@each("value", [",", " ", "?"])
def test_a_disease_has_a_name(tmp_path: Path, value: str) -> None:
    file = canonical(tmp_path, {"1": told(doctor("It is.", disease=[value]))})
    place = "dialogue 1, utterance 22, action 1, disease 1, value"
    refused("meditod", file, place, "name of a disease")


def test_null_is_absent_where_a_field_may_be(tmp_path: Path) -> None:
    dialogue = told(doctor("So.", disease=["nevus"]))
    plain = meditod.read(canonical(tmp_path / "plain", {"1": dialogue})).cases
    for utterance in dialogue:
        utterance |= {"nlu": utterance.get("nlu"), "actions": utterance.get("actions")}
        for action in utterance["actions"] or ():
            action |= {"status": None, "disease": action.get("disease")}
    assert meditod.read(canonical(tmp_path / "null", {"1": dialogue})).cases == plain


def test_a_chance_is_told_once_for_each_diagnosis(tmp_path: Path) -> None:
    pairs = str([["Made-up disease", 0.5], ["Made-up disease", 0.25]])
    folder = release(tmp_path, [ROW | {"DIFFERENTIAL_DIAGNOSIS": pairs}])
    with pytest.raises(DataError, match=saying("DIFFERENTIAL_DIAGNOSIS", "once")):
        load_cases("ddxplus", path=folder)
