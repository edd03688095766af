"""Data sets by name, picks of n, the error for bad rows, and the starter cases."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from each import each
from made_ddxplus import patients, release

from trustlab.choices import utf8
from trustlab.datasets import LOADERS, DataError, cases_file, load_cases, load_sets
from trustlab.knowledge import load_knowledge
from trustlab.levels import view
from trustlab.records import LEVELS, normalise


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="'ddx'.*starter, starter-structured, .*ddxplus"):
        load_cases("ddx")


def test_starter_has_two_names_for_one_loader() -> None:
    assert LOADERS["starter"] is LOADERS["starter-structured"]


def test_n_is_a_seeded_pick_in_file_order_that_nests(tmp_path: Path) -> None:
    folder = release(tmp_path, patients(30))
    ids = [c.case_id for c in load_cases("ddxplus", path=folder)]
    assert ids == [f"ddxplus-{i}" for i in range(1, 31)]
    small = [c.case_id for c in load_cases("ddxplus", path=str(folder), n=6, seed=3)]
    large = [c.case_id for c in load_cases("ddxplus", path=folder, n=12, seed=3)]
    assert len(small) == 6 and set(small) < set(large)
    assert small == [i for i in ids if i in small] and large == [i for i in ids if i in large]
    assert small == [c.case_id for c in load_cases("ddxplus", path=folder, n=6, seed=3)]
    assert small != [c.case_id for c in load_cases("ddxplus", path=folder, n=6, seed=4)]


@pytest.mark.parametrize(
    "more", [{"n": "3"}, {"n": 2.5}, {"n": True}, {"seed": "a"}, {"seed": 1.5}]
)
def test_n_and_seed_are_whole_numbers(tmp_path: Path, more: dict) -> None:
    with pytest.raises(ValueError, match="allowed (are|is a) whole number"):
        load_cases("ddxplus", path=release(tmp_path), **more)


@pytest.mark.parametrize("options", [{"starter": 3}, [("starter", {})], {"medqa": {}}])
def test_options_are_a_mapping_of_the_sets_asked_for(options) -> None:
    with pytest.raises(ValueError, match="options are"):
        load_sets("starter", options=options)


def test_a_key_that_comes_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text(
        '{"id": "a", "diagnosis": "Gout", "diagnosis": "Croup", "text": "x"}\n'
    )
    with pytest.raises(DataError, match="row 1.*the key 'diagnosis' comes twice"):
        load_cases("table", path=tmp_path / "mine.jsonl")


@pytest.mark.parametrize("n", [0, -1, 3])
def test_n_out_of_reach_says_how_many_there_are(tmp_path: Path, n: int) -> None:
    with pytest.raises(ValueError, match=rf"n is {n}; ddxplus has 2 cases"):
        load_cases("ddxplus", path=release(tmp_path), n=n)


def test_several_sets_come_one_after_the_other_each_with_its_own_n(tmp_path: Path) -> None:
    cases = load_sets(["ddxplus", "starter"], path=[release(tmp_path), None], n=5, seed=3)
    n = len(load_cases("ddxplus", path=tmp_path))
    assert n < 5
    assert cases == [
        *load_cases("ddxplus", path=tmp_path, seed=3),
        *load_cases("starter", n=5, seed=3),
    ]


def test_one_set_by_name_is_as_alone_and_no_more_than_it_has(tmp_path: Path) -> None:
    assert (
        load_sets("starter", n=7, seed=2)
        == load_sets(["starter"], n=7, seed=2)
        == load_cases("starter", n=7, seed=2)
    )
    assert load_sets("starter", n=5000) == load_sets("starter") == load_cases("starter")
    assert load_sets("ddxplus", path=release(tmp_path)) == load_cases("ddxplus", path=tmp_path)


@pytest.mark.parametrize(
    ("names", "more", "message"),
    [
        ([], {}, "0 data sets need a path each"),
        (["ddxplus", "starter"], {"path": "folder"}, "2 data sets need a path each"),
        (["starter", "nosuch"], {}, "name is 'nosuch'"),
        (
            ["starter", "starter-structured"],
            {"n": 3},
            "3 cases are in the data sets starter, starter-structured more than once",
        ),
        ("starter", {"n": 0}, "n is 0; starter has 240 cases"),
    ],
    ids=str,
)
def test_sets_that_do_not_fit_are_refused(names, more: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_sets(names, **more)


def test_a_data_error_survives_another_process() -> None:
    error = pickle.loads(pickle.dumps(DataError("f.csv", 3, "AGE", "x", "numbers")))
    assert (
        str(error)
        == "f.csv, row 3 (counted from 1, header not counted), AGE: received 'x'; allowed: numbers"
    )


# -- starter
# --------------------------------------------------------------------------------------------------


def starter_row(**changes) -> dict:
    texts = [f"Doctor: {i}?\nPatient: no\u2028fever." for i in range(11)]
    statements = [
        {"text": text, "finding": "fever", "affirmed": i % 2 == 0} for i, text in enumerate(texts)
    ]
    condition = load_knowledge().conditions["acute_appendicitis"]
    row = {"case_id": "s-1", "diagnosis": condition.name, "condition": condition.id}
    row |= {"patient": {"age": 31, "sex": "male"}}
    return row | {"statements": statements} | changes


def one_more(item: object) -> dict:
    return {"statements": [*starter_row()["statements"], item]}


def starter_file(folder: Path, *rows: dict) -> Path:
    file = folder / "structured.jsonl"
    file.write_text("\n".join(json.dumps(r, ensure_ascii=not utf8(r)) for r in rows), "utf-8")
    return file


def test_a_record_is_what_is_so_beside_the_statements(tmp_path: Path) -> None:
    more = {"text": "Doctor: a?\nPatient: b", "finding": "cough", "affirmed": True}
    file = starter_file(
        tmp_path, starter_row(record=[more]), starter_row(case_id="b", record=[]),
        starter_row(case_id="c"),
    )  # fmt: skip
    full, empty, none = load_cases("starter", path=file)
    assert [s.finding for s in full.record] == ["cough"] and full.facts[-1].finding == "cough"
    assert full.denies == empty.denies == set(load_knowledge().findings) and not none.denies
    assert empty.facts == empty.statements
    for record, field in (({}, "record"), ([1], "record 1"), ([{"text": ""}], "record 1, text")):
        with pytest.raises(DataError) as caught:
            load_cases("starter", path=starter_file(tmp_path, starter_row(record=record)))
        assert caught.value.field == field


def test_starter_row_becomes_a_case(tmp_path: Path) -> None:
    file = starter_file(tmp_path, starter_row(), starter_row(case_id="s-2"))
    first, second = load_cases("starter", path=file)
    assert [first.case_id, second.case_id] == ["s-1", "s-2"]
    assert (first.dataset, first.diagnosis) == ("starter", "Acute appendicitis")
    assert set(first.accepted) >= {"Acute appendicitis", "Appendicitis, acute"}
    assert first.patient == {"age": 31, "sex": "male"}
    assert (
        first.statements[1].text,
        first.statements[1].finding,
        first.statements[1].affirmed,
    ) == (
        "Doctor: 1?\nPatient: no\u2028fever.",
        "fever",
        False,
    )
    assert load_cases("starter-structured", path=tmp_path, seed=9) == [first, second]
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes() + b"\n\n")
    assert load_cases("starter", path=file) == [first, second]


@each(
    ("changes", "field"),
    [
        ({"case_id": ""}, "case_id"),
        ({"case_id": 7}, "case_id"),
        ({"case_id": "s-1"}, "case_id"),
        ({"condition": "gout_of_the_moon"}, "condition"),
        ({"diagnosis": "Appendicitis, acute"}, "diagnosis"),
        ({"patient": {"age": 31.5, "sex": "male"}}, "patient.age"),
        ({"patient": {"age": True, "sex": "male"}}, "patient.age"),
        ({"patient": {"age": 121, "sex": "male"}}, "patient.age"),
        ({"patient": {"age": 31, "sex": "M"}}, "patient.sex"),
        ({"statements": starter_row()["statements"][:10]}, "statements"),
        ({"statements": None}, "statements"),
        (one_more("text"), "statement 12"),
        (one_more({"text": " ", "finding": "fever", "affirmed": True}), "statement 12, text"),
        (one_more({"text": "x", "finding": "E_91", "affirmed": True}), "statement 12, finding"),
        (one_more({"text": "x", "finding": "fever", "affirmed": 1}), "statement 12, affirmed"),
        (one_more({"text": "\ud800", "finding": "fever", "affirmed": True}), "statements"),
    ],
)
def test_a_bad_starter_row_is_refused(tmp_path: Path, changes: dict, field: str) -> None:
    with pytest.raises(DataError) as caught:
        load_cases(
            "starter",
            path=starter_file(tmp_path, starter_row(), starter_row(case_id="s-2") | changes),
        )
    assert (caught.value.row, caught.value.field) == (2, field)


def test_a_starter_line_that_is_no_object_is_refused(tmp_path: Path) -> None:
    for line in ("{'case_id': 1}", "[1]"):
        (tmp_path / "structured.jsonl").write_text(line)
        with pytest.raises(DataError, match="row 1 .*one JSON object a line"):
            load_cases("starter", path=tmp_path)


def test_a_missing_starter_file_says_what_writes_it(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="training/starter.py"):
        load_cases("starter", path=tmp_path / "none.jsonl")


@pytest.mark.skipif(
    not cases_file.FILE.exists(),
    reason="data/starter/structured.jsonl is not made yet: training/starter.py does",
)
def test_the_starter_cases_keep_their_promises() -> None:
    cases = load_cases("starter")
    assert len(cases) == 240
    parents = {f.id: f.parent for f in load_knowledge().findings.values()}
    for case in cases:
        assert len(case.statements) > 10
        told = [s.finding or "" for s in case.statements]
        assert all(parents[f] not in told[i + 1 :] for i, f in enumerate(told))
        spoken = " ".join(f" {normalise(s.text)} |" for s in case.statements)
        assert [name for name in case.accepted if f" {normalise(name)} " in spoken] == [], (
            case.case_id
        )
        assert case.denies == set(parents) and not {s.finding for s in case.record} & set(told)
        shown = [view(case, level).statements for level in LEVELS]
        assert all(
            large[: len(small)] == small for small, large in zip(shown, shown[1:], strict=False)
        )
    statements = [s for case in cases for s in case.statements]
    assert sum(not s.affirmed for s in statements) >= len(statements) / 4
