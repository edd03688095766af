"""Data sets by name, picks of n, what ``data check`` tells, and the starter cases."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path

import pytest
from each import each
from made_ddxplus import patients, release

import trustlab as tl
from trustlab.agents.chart import FIELDS
from trustlab.choices import utf8
from trustlab.datasets import DataError, load_cases, load_sets, read_data
from trustlab.datasets.cases_file import NAMED, Read
from trustlab.datasets.check import check_text
from trustlab.knowledge import Finding, load_knowledge
from trustlab.paths import DATA
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


def test_several_sets_come_one_after_the_other_each_with_its_own_n(tmp_path: Path) -> None:
    cases = load_sets(["ddxplus", "starter"], path=[release(tmp_path), None], n=5, seed=3)
    of_release = load_cases("ddxplus", path=tmp_path, seed=3)
    assert len(of_release) < 5 and cases == of_release + load_cases("starter", n=5, seed=3)
    assert load_sets("starter", n=7, seed=2) == load_cases("starter", n=7, seed=2)
    assert load_sets("starter", n=5000) == load_cases("starter")


TWICE = "3 cases are in the data sets starter, starter-structured more than once"
REFUSED = [
    ("ddx", {}, "'ddx'; allowed are starter, starter-structured, .*ddxplus"),
    ("starter", {"n": 0}, "n is 0; starter has 240 cases"),
    ("starter", {"n": -1}, "n is -1; starter has 240 cases"),
    ("starter", {"n": 2.5}, "n is 2.5; allowed are whole numbers"),
    ("starter", {"n": True}, "n is True; allowed are whole numbers"),
    ("starter", {"seed": "a"}, "seed is 'a'; allowed is a whole number"),
    ("starter", {"options": 3}, "options are"),
    ("starter", {"options": {"starter": 3}}, "options are"),
    ("starter", {"options": {"medqa": {}}}, "options are for 'medqa'"),
    ("starter", {"options": {"starter": {"split": "test"}}}, "no option 'split'; it has none"),
    ("starter", {"path": "none.jsonl"}, "training/starter.py"),
    ("starter-report", {"path": "none.jsonl"}, "data/starter/report.jsonl"),
    ([], {}, "0 data sets need a path each"),
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


def test_a_data_error_survives_another_process_and_cuts_what_is_long() -> None:
    error = pickle.loads(pickle.dumps(DataError("f.csv", 3, "AGE", "x", "numbers")))
    where = "f.csv, row 3 (counted from 1, header not counted), AGE"
    assert str(error) == f"{where}: received 'x'; allowed: numbers"
    assert len(str(DataError("f.csv", 1, "EVIDENCES", "x" * 10_000, "less"))) < 400


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
    ({"patient": {"age": 31.5, "sex": "male"}}, "patient.age"),
    ({"patient": {"age": True, "sex": "male"}}, "patient.age"),
    ({"patient": {"age": 121, "sex": "male"}}, "patient.age"),
    ({"patient": {"age": 31, "sex": "M"}}, "patient.sex"),
    ({"statements": MARKED[:10]}, "statements"),
    ({"statements": None}, "statements"),
    ({"statements": [*MARKED, "text"]}, "statement 12"),
    (one_more(text=" "), "statement 12, text"),
    (one_more(finding="E_91"), "statement 12, finding"),
    (one_more(affirmed=1), "statement 12, affirmed"),
    (one_more(text="\ud800"), "statements"),
    ({"record": [1]}, "record 1"),
    ({"record": [{"text": ""}]}, "record 1, text"),
]
SPOKEN_BAD = [
    ({"case_id": ""}, "case_id"),
    ({"case_id": "a"}, "case_id"),
    ({"condition": "gout_of_the_moon"}, "condition"),
    ({"diagnosis": "Appendicitis, acute"}, "diagnosis"),
    ({"age": "31"}, "age"),
    ({"age": None}, "age"),
    ({"statements": "text"}, "statements"),
    ({"statements": ["x"] * 10}, "statements"),
    ({"statements": ["x"] * 11 + [" "]}, "statement 12"),
    ({"statements": ["x"] * 11 + [{"text": "x"}]}, "statement 12"),
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


# -- the cases outside the knowledge table


def answers(finding: Finding) -> re.Pattern[str]:
    """Every answer the table has to the question of ``finding``."""
    values = [v.phrase for v in load_knowledge().values.values() if v.kind == finding.values]
    one = f"(?:{'|'.join(map(re.escape, values or map(str, range(1, 11))))})"
    filled = f"{one}(?:(?:, {one})* and {one})?" if finding.form == "several" else one
    affirmed = [re.escape(a).replace(re.escape("{value}"), filled) for a in finding.affirm]
    return re.compile("|".join([*affirmed, *map(re.escape, finding.deny)]))


def test_the_cases_that_the_table_does_not_know() -> None:
    """Sixteen diseases, half told in our words and half in the table's; no name is spoken."""
    cases, knowledge = (
        tl.load_cases("table", path=DATA / "starter" / "unknown.jsonl"),
        load_knowledge(),
    )
    names = [normalise(name) for case in cases for name in case.accepted]
    assert len({case.diagnosis for case in cases}) == 16 and len(set(names)) == len(names)
    assert not set(names) & set(knowledge.condition_of_name)
    assert [case.patient["told"] for case in cases] == ["natural"] * 8 + ["table"] * 8
    by_question = {f.question: f for f in knowledge.findings.values()}
    for case in cases:
        spoken = " | ".join(f" {normalise(s.text)} " for s in case.statements)
        assert not [n for n in {*names, *knowledge.condition_of_name} if f" {n} " in spoken]
        asked = []
        for statement in case.statements:
            question, answer = statement.text.removeprefix("Doctor: ").split("\nPatient: ")
            finding = by_question.get(question)
            if case.patient["told"] == "natural":
                assert finding is None
                continue
            assert finding and answers(finding).fullmatch(answer), statement.text
            assert finding.parent is None or finding.parent in asked, statement.text
            assert finding.sex in (None, case.patient["sex"])
            asked.append(finding.id)
        assert len(set(asked)) == len(asked) and 12 <= len(case.statements) <= 16


# -- trustlab data check


def made(number: int, n: int = 11, diagnosis: str = "Gout") -> Case:
    told = tuple(Statement(f"Statement {i} of four words") for i in range(1, n + 1))
    return Case(f"made-{number}", "made", told, diagnosis, (diagnosis,), {})


def test_a_check_tells_counts_drops_lengths_and_what_the_table_knows() -> None:
    dropped = {"no diagnosis": [str(i) for i in range(1, 8)], "fewer than 11 statements": ["9"]}
    cases = [made(i, n) for i, n in enumerate([11, 12, 13, 14, 20])]
    lines = check_text("made", Read(cases, 1009, dropped, {"exchanges left out": 3})).splitlines()
    assert lines[:5] == [
        "made: 1,009 entries read, 5 cases",
        "dropped, no diagnosis: 7 (1, 2, 3, 4, 5, ...)",
        "dropped, fewer than 11 statements: 1 (9)",
        "exchanges left out: 3",
        f"{NAMED}: 0",
    ]
    assert "statements a case      11.0     12.0    13.0            14.0     20.0  14.0" in lines
    known = "the knowledge table has 0 of the 1 diagnoses, the right one in 0 of 5 cases"
    assert any(line.startswith(f"{known}; elsewhere only") for line in lines)
    known = "the knowledge table has 1 of the 1 diagnoses, the right one in 1 of 1 cases"
    assert known in check_text("made", Read([made(1, diagnosis="Influenza")], 1)).splitlines()
    nothing = check_text("made", Read([], 2, {"no diagnosis": ["1", "2"]})).splitlines()
    assert nothing[:2] == ["made: 2 entries read, 0 cases", "dropped, no diagnosis: 2 (1, 2)"]
    assert nothing[-1] == "Research only. Not for clinical use."


def test_what_could_command_a_terminal_is_not_printed() -> None:
    told = (Statement("a\x1b]0;owned\x07b"),) * 11
    nasty = Case("made-\x1b[2J", "made", told, "Gout\x9b", ("Gout",))
    text = check_text("made", Read([nasty], 1, {"odd\x1b": ["\x07"]}))
    assert all(c.isprintable() or c == "\n" for c in text)
