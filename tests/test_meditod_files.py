"""MediTOD's files: both official forms and others, splits, and what is refused and how."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from each import each
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_meditod import bare, canonical, doctor, entries, numbered, raw, told, write

from trustlab.datasets import DataError, meditod

ELEVEN = tuple(f"Doctor: Question {i}?\nPatient: Answer {i}." for i in range(1, 12))


def test_the_same_dialogues_raw_and_canonicalised_are_the_same_cases(tmp_path: Path) -> None:
    dialogues = {"1": told(), "7": told(doctor("Gout?", "inquire"), n=13)}
    assert meditod.read(raw(tmp_path / "raw", dialogues)) == meditod.read(
        canonical(tmp_path / "data", dialogues)
    )


def test_splits_pick_their_dialogues_and_are_told(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    canonical(folder, {"1": told(), "2": told(), "3": told()}, train=["2", "1"], test=["3"])
    read = meditod.read(tmp_path, split="train")
    assert [(c.case_id, c.patient) for c in read.cases] == [
        ("meditod-1", {"split": "train"}),
        ("meditod-2", {"split": "train"}),
    ]
    assert read.n_entries == 2
    assert [c.patient["split"] for c in meditod.read(folder).cases] == ["train", "train", "test"]
    with pytest.raises(ValueError, match="no valid_ids.json"):
        meditod.read(folder, split="valid")
    with pytest.raises(ValueError, match="allowed are train, valid, test"):
        meditod.read(folder, split="dev")


@pytest.mark.parametrize("ids", [["1", "9"], ["1", "1"], {"1": 1}, [None]])
def test_a_bad_list_of_ids_is_refused(tmp_path: Path, ids: object) -> None:
    canonical(tmp_path, {"1": told()}, test=ids)  # pyright: ignore[reportArgumentType]
    with pytest.raises(DataError, match="test_ids.json"):
        meditod.read(tmp_path)


def test_an_id_in_two_splits_is_refused(tmp_path: Path) -> None:
    canonical(tmp_path, {"1": told()}, train=["1"], test=["1"])
    with pytest.raises(DataError, match="train_ids.json lists it"):
        meditod.read(tmp_path)


@pytest.mark.parametrize(
    ("n_raw", "ids", "n_unread"), [(2, ["meditod-0", "meditod-1"], 1), (1, ["meditod-c"], 1)]
)
def test_of_a_repository_s_two_files_the_one_with_more_dialogues_is_read(
    tmp_path: Path, n_raw: int, ids: list, n_unread: int
) -> None:
    canonical(tmp_path / "data", {"c": told()})
    raw(tmp_path / "raw_data", {str(i): told() for i in range(n_raw)})
    read = meditod.read(tmp_path)
    assert ([case.case_id for case in read.cases], read.facts[meditod.UNREAD]) == (ids, n_unread)


def listed(folder: Path) -> Path:
    return write(
        folder / "dialogs.json", [{"dlg_id": i, "utterances": numbered(told())} for i in ("x", "y")]
    )


def single(folder: Path) -> Path:
    return write(folder / "dialogs.json", {"dlg_id": "x", "utterances": numbered(told())})


def bare_lists(folder: Path) -> Path:
    return write(folder / "dialogs.json", {"x": told(), "y": told()})


def labelling_tool(folder: Path) -> Path:
    write(folder / "annotations" / "one_annotations.json", entries(told()))
    noted = [*bare(told()), {"speaker": "control", "text": "", "uttr_id": 999}]
    return write(folder / "dialogs" / "one.json", {"dlg_id": "x", "utterances": noted})


def by_position(folder: Path) -> Path:
    file = raw(folder, {"x": told()})
    lists = [[e for e in entries(told()) if e["uid"] == str(i)] for i in range(len(told()))]
    write(
        folder / "annotations.json",
        {"x": [[{k: v for k, v in e.items() if k != "uid"} for e in some] for some in lists]},
    )
    return file


def by_uid(folder: Path) -> Path:
    file = raw(folder, {"x": told()})
    write(
        folder / "annotations.json",
        {"x": {str(i): [e for e in entries(told()) if e["uid"] == str(i)] for i in range(22 + 3)}},
    )
    return file


@pytest.mark.parametrize("form", [listed, single, bare_lists, labelling_tool, by_position, by_uid])
def test_other_forms_of_the_same_dialogue_are_read(tmp_path: Path, form) -> None:
    case = meditod.read(form(tmp_path)).cases[0]
    assert (case.case_id, case.diagnosis, tuple(s.text for s in case.statements)) == (
        "meditod-x",
        "gout",
        ELEVEN,
    )


@pytest.mark.parametrize(
    "change", [lambda b: b"\xef\xbb\xbf" + b, lambda b: b.replace(b', "', b',\r\n"')]
)
def test_other_line_ends_and_a_byte_order_mark_change_nothing(tmp_path: Path, change) -> None:
    file = canonical(tmp_path, {"1": told()})
    plain = meditod.read(file)
    file.write_bytes(change(file.read_bytes()))
    assert meditod.read(file) == plain


@pytest.mark.parametrize("name", [None, "absent", "", "data"])
def test_no_file_says_what_is_needed(tmp_path: Path, name: str | None) -> None:
    (tmp_path / "data").mkdir()
    with pytest.raises(ValueError, match="the MediTOD repository"):
        meditod.read(None if name is None else tmp_path / name)


@each("name", ["dialogs.json", "annotations.json"])
@each(
    "change",
    [
        lambda b: b.decode().encode("utf-16"),
        lambda b: b[:-9],
        lambda b: b"",
        lambda b: b"[" * 10**5,
    ],
)
def test_a_broken_file_is_one_clear_error(tmp_path: Path, name: str, change) -> None:
    raw(tmp_path, {"1": told()})
    (tmp_path / name).write_bytes(change((tmp_path / name).read_bytes()))
    with pytest.raises(DataError, match=f"{name}.*allowed: "):
        meditod.read(tmp_path)


def test_raw_dialogues_without_their_annotations_say_so(tmp_path: Path) -> None:
    raw(tmp_path, {"1": told()})
    (tmp_path / "annotations.json").unlink()
    with pytest.raises(DataError, match="annotations.json beside the file"):
        meditod.read(tmp_path)


@each(
    "content",
    [
        *("7", "[]", "{}", '{"1": 7}', '{"1": []}', '{"1": {"utterances": {}}}', '{"1": [7]}'),
        *("[[]]", '[{"dlg_id": 1}]'),
    ],
)
def test_a_file_that_holds_no_dialogues_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "dialogs.json").write_text(content)
    with pytest.raises(DataError, match="dialogs.json"):
        meditod.read(tmp_path)


def test_an_id_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    once = json.dumps(told())
    (tmp_path / "dialogs.json").write_text(f'{{"1": {once}, "1": {once}}}')
    with pytest.raises(DataError, match="the key .1. comes twice"):
        meditod.read(tmp_path)
    write(
        tmp_path / "dialogs.json",
        [{"dlg_id": "1", "utterances": told()}, {"dlg_id": 1, "utterances": told()}],
    )
    with pytest.raises(DataError, match="dialogue 1: .*no earlier dialogue"):
        meditod.read(tmp_path)


@each(
    ("changes", "field"),
    [
        ({"speaker": "nurse"}, "speaker"),
        ({"speaker": None}, "speaker"),
        ({"text": None}, "text"),
        ({"text": "\ud800"}, "text"),
        ({"uttr_id": 1}, "uttr_id"),
        ({"uttr_id": [0]}, "uttr_id"),
        ({"actions": {"action": "inquire"}}, "actions"),
        ({"actions": ["inquire"]}, "action 1"),
        ({"actions": [{}]}, "action 1, action"),
        ({"nlu": [{"intent": 7}]}, "nlu 1, intent"),
        ({"actions": [{"action": "diagnosis", "disease": "gout"}]}, "action 1, disease"),
        ({"actions": [{"action": "diagnosis", "disease": [{}]}]}, "action 1, disease 1, value"),
        (
            {"actions": [{"action": "diagnosis", "disease": [{"value": "?"}]}]},
            "action 1, disease 1, value",
        ),
    ],
)
def test_a_bad_utterance_is_refused_with_its_place(
    tmp_path: Path, changes: dict, field: str
) -> None:
    utterances = numbered(told())
    utterances[4] |= changes
    write(tmp_path / "dialogs.json", {"12": {"utterances": utterances}})
    with pytest.raises(DataError) as caught:
        meditod.read(tmp_path)
    assert re.fullmatch(rf"dialogue 12, utterance \d+, {re.escape(field)}", caught.value.field)


@each(
    ("annotations", "field"),
    [
        ([], "JSON"),
        ({}, "dialogue ids"),
        ({"3": []}, "dialogue ids"),
        ({"1": 7, "2": []}, "dialogue 1"),
        ({"1": [{"intent": "inform", "uid": "99"}], "2": []}, "dialogue 1, uid"),
        ({"1": [{"intent": "inform"}], "2": []}, "dialogue 1, uid"),
        ({"1": [{"uid": "0"}], "2": []}, "dialogue 1, uid 0, intent"),
        (
            {"1": [{"intent": "diagnosis", "value": 7, "uid": 0}], "2": []},
            "dialogue 1, uid 0, value",
        ),
        (
            {"1": [{"intent": "diagnosis", "value": "gout", "status": 7, "uid": 0}], "2": []},
            "dialogue 1, uid 0, status",
        ),
        ({"1": [[]] * 99, "2": []}, "dialogue 1"),
    ],
)
def test_bad_annotations_are_refused_with_their_place(
    tmp_path: Path, annotations: object, field: str
) -> None:
    raw(tmp_path, {"1": told(), "2": told()})
    write(tmp_path / "annotations.json", annotations)
    with pytest.raises(DataError) as caught:
        meditod.read(tmp_path)
    assert (Path(caught.value.file).name, caught.value.field) == ("annotations.json", field)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda s: (
        st.lists(s, max_size=3)
        | st.dictionaries(
            st.sampled_from(["utterances", "value", "action", "dlg_id", "a"]), s, max_size=3
        )
    ),
    max_leaves=6,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    place=st.sampled_from(
        [
            "file",
            "dialogue",
            "utterance",
            "speaker",
            "text",
            "uttr_id",
            "actions",
            "disease",
            "annotations",
        ]
    ),
    value=JSON,
)
def test_a_wrong_type_anywhere_is_a_data_error_or_harmless(
    tmp_path: Path, place: str, value: object
) -> None:
    utterances = numbered(told())
    if place == "utterance":
        utterances[2] = value  # pyright: ignore[reportArgumentType]
    elif place == "disease":
        utterances[2]["actions"] = [{"action": "diagnosis", "disease": value}]
    elif place == "annotations":
        utterances = bare(told())
        write(tmp_path / "annotations.json", value)
    else:
        utterances[2][place] = value
    content = {"file": value, "dialogue": {"1": value}}.get(
        place, {"1": {"utterances": utterances}}
    )
    write(tmp_path / "dialogs.json", content)
    try:
        assert meditod.read(tmp_path).n_entries >= 1
    except DataError as error:
        assert "allowed: " in str(error)
