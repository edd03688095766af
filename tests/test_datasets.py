"""Data sets by name, picks of n, what ``data check`` tells, and the starter cases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from each import each
from made_ddxplus import patients, release

from trustlab.agents.chart import FIELDS
from trustlab.choices import utf8
from trustlab.datasets import DataError, load_cases, load_sets, read_data
from trustlab.datasets.cases_file import NAMED, Read
from trustlab.datasets.check import check_text
from trustlab.knowledge import load_knowledge
from trustlab.records import Case, Statement, normalise


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


TWICE = "3 cases are in the data sets starter, starter-structured more than once"
REFUSED = [
    ("ddx", {}, "'ddx'; allowed are starter, starter-structured, .*ddxplus"),
    ("starter", {"n": 0}, "n is 0; starter has 240 cases"),
    ("starter", {"n": 2.5}, "n is 2.5; allowed are whole numbers"),
    ("starter", {"seed": "a"}, "seed is 'a'; allowed is a whole number"),
    ("starter", {"options": 3}, "options are"),
    ("starter", {"options": {"medqa": {}}}, "options are for 'medqa'"),
    ("starter", {"options": {"starter": {"split": "test"}}}, "no option 'split'; it has none"),
    ("starter-report", {"path": "none.jsonl"}, "data/starter/report.jsonl"),
    (["ddxplus", "starter"], {"path": "folder"}, "2 data sets need a path each"),
    (["starter", "starter-structured"], {"n": 3}, TWICE),
]


@each("names, more, message", REFUSED)
def test_what_does_not_fit_is_refused(names, more: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_sets(names, **more)


def test_an_n_that_is_too_large_says_how_many_there_are(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="n is 3; ddxplus has 2 cases"):
        load_cases("ddxplus", path=release(tmp_path), n=3)


# -- starter cases, structured and written

TEXTS = [f"Doctor: {i}?\nPatient: no\u2028fever." for i in range(11)]
MARKED = [{"text": t, "finding": "fever", "affirmed": i % 2 == 0} for i, t in enumerate(TEXTS)]
APPENDICITIS = load_knowledge().conditions["acute_appendicitis"]
ROW = {"case_id": "a", "diagnosis": APPENDICITIS.name, "condition": APPENDICITIS.id}
STRUCTURED = ROW | {"patient": {"age": 31, "sex": "male"}, "statements": MARKED}
SPOKEN = ROW | {"age": 0, "sex": "male", "statements": TEXTS}
COUGH = {"text": "Doctor: a?\nPatient: b", "finding": "cough", "affirmed": True}


def written(folder: Path, name: str, *rows: dict) -> Path:
    file = folder / f"{name.removeprefix('starter-')}.jsonl"
    file.write_text("\n".join(json.dumps(r, ensure_ascii=not utf8(r)) for r in rows), "utf-8")
    return file


@pytest.mark.parametrize("name", ["starter-structured", "starter-dialogue", "starter-report"])
def test_a_row_becomes_a_case_from_a_file_or_its_folder(tmp_path: Path, name: str) -> None:
    own = STRUCTURED if name == "starter-structured" else SPOKEN
    file = written(tmp_path, name, own, own | {"case_id": "b"})
    first, second = load_cases(name, path=file)
    assert [first.case_id, second.case_id] == ["a", "b"]
    assert first.diagnosis == "Acute appendicitis" and first.accepted == APPENDICITIS.names
    assert first.patient["sex"] == "male" and [s.text for s in first.statements] == TEXTS
    marks = (first.statements[1].finding, first.statements[1].affirmed)
    assert marks == (("fever", False) if own is STRUCTURED else (None, None))
    assert load_cases(name, path=tmp_path, seed=9) == [first, second]
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes() + b"\n\n")
    assert load_cases(name, path=file) == [first, second]


def test_a_record_is_what_is_so_beside_the_statements(tmp_path: Path) -> None:
    rows = [{"record": [COUGH]}, {"case_id": "b", "record": []}, {"case_id": "c"}]
    file = written(tmp_path, "structured", *(STRUCTURED | more for more in rows))
    full, empty, none = load_cases("starter", path=file)
    assert [s.finding for s in full.record] == ["cough"] and full.facts[-1].finding == "cough"
    assert full.denies == empty.denies == set(load_knowledge().findings) and not none.denies
    assert empty.facts == empty.statements


def one_more(**changes: object) -> dict:
    return {"statements": [*MARKED, COUGH | changes]}


STRUCTURED_BAD = [
    ({"case_id": 7}, "case_id"),
    ({"patient": {"age": 121, "sex": "male"}}, "patient.age"),
    ({"patient": {"age": 31, "sex": "M"}}, "patient.sex"),
    ({"statements": MARKED[:10]}, "statements"),
    (one_more(finding="E_91"), "statement 12, finding"),
    (one_more(affirmed=1), "statement 12, affirmed"),
    ({"record": [{"text": ""}]}, "record 1, text"),
]
SPOKEN_BAD = [
    ({"case_id": "a"}, "case_id"),
    ({"condition": "gout_of_the_moon"}, "condition"),
    ({"diagnosis": "Appendicitis, acute"}, "diagnosis"),
    ({"age": "31"}, "age"),
    ({"statements": ["x"] * 10}, "statements"),
    ({"statements": ["x"] * 11 + [" "]}, "statement 12"),
]
BAD = [("starter-structured", STRUCTURED, *bad) for bad in STRUCTURED_BAD]
BAD += [("starter-dialogue", SPOKEN, *bad) for bad in SPOKEN_BAD]


@each("name, own, changes, field", BAD)
def test_a_bad_row_is_refused(tmp_path: Path, name: str, own: dict, changes, field: str) -> None:
    with pytest.raises(DataError) as caught:
        load_cases(name, path=written(tmp_path, name, own, own | {"case_id": "b"} | changes))
    assert (caught.value.row, caught.value.field) == (2, field)
    with pytest.raises(DataError, match="row 1 .*one JSON object a line"):
        load_cases(name, path=written(tmp_path, name, [1]))  # pyright: ignore


OWN = {"starter": 240, "starter-dialogue": 48, "starter-report": 48}


@pytest.mark.parametrize("name", OWN)
def test_the_cases_that_come_along_keep_their_promises(name: str) -> None:
    cases = load_cases(name)
    assert len({case.case_id for case in cases}) == len(cases) == OWN[name]
    parents = {f.id: f.parent for f in load_knowledge().findings.values()}
    for case in cases:
        assert case.dataset == name and len(case.statements) > 10
        assert set(case.patient) <= set(FIELDS)
        spoken = " ".join(f" {normalise(s.text)} |" for s in case.statements)
        assert not [a for a in case.accepted if f" {normalise(a)} " in spoken], case.case_id
        told = [s.finding for s in case.statements]
        if name == "starter":
            assert all(parents[f or ""] not in told[i + 1 :] for i, f in enumerate(told))
            assert case.denies == set(parents) and not {s.finding for s in case.record} & set(told)
        elif name == "starter-dialogue":
            for text in (s.text for s in case.statements):
                assert text.startswith("Doctor: ") and text.count("\nPatient: ") == 1
    denied = [not s.affirmed for case in cases for s in case.statements if s.finding]
    assert not denied or sum(denied) >= len(denied) / 4
    assert read_data(name).facts[NAMED] == (5 if name == "starter" else 0)  # an everyday name


# -- trustlab data check


def test_what_could_command_a_terminal_is_not_printed() -> None:
    told = (Statement("a\x1b]0;owned\x07b"),) * 11
    nasty = Case("made-\x1b[2J", "made", told, "Gout\x9b", ("Gout",))
    text = check_text("made", Read([nasty], 1, {"odd\x1b": ["\x07"]}))
    assert all(c.isprintable() or c == "\n" for c in text)
