"""Data sets by name, picks of n, what ``data check`` tells, and the starter cases."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path
from typing import Any

import pytest
from each import each
from made_ddxplus import patients, release
from saying import saying, says

import trustlab as tl
from trustlab.datasets import DataError, load_cases, load_sets, read_data
from trustlab.datasets.cases_file import NAMED, Read
from trustlab.datasets.check import check_text
from trustlab.knowledge.chart import FIELDS
from trustlab.knowledge.findings import Finding, load_knowledge
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
    each = load_sets(["starter", "starter-report"], n=[2, None])
    assert each == load_cases("starter", n=2) + load_cases("starter-report")


REFUSED = [
    ("ddx", {}, ("'ddx'", "starter", "starter-dialogue", "ddxplus")),
    ("starter", {"n": 0}, ("n", 0, "starter", 240)),
    ("starter", {"n": -1}, ("n", -1, "starter", 240)),
    ("starter", {"n": 2.5}, ("n", 2.5, "whole")),
    ("starter", {"n": True}, ("n", True, "whole")),
    ("starter", {"seed": "a"}, ("seed", "'a'", "whole")),
    ("starter", {"options": 3}, "options are"),
    ("starter", {"options": {"starter": 3}}, "options are"),
    ("starter", {"options": {"medqa": {}}}, ("options", "'medqa'", "starter")),
    ("starter", {"options": {"starter": {"split": "test"}}}, ("starter", "'split'", "none")),
    ("starter", {"path": "mine.jsonl"}, ("path", "'mine.jsonl'", None, "starter")),
    ("medqa", {}, ("path", None, "medqa", "JSONL", "trustlab data fetch medqa")),
    ("table", {"path": "no.csv"}, ("'no.csv'", "exist", "table", ".jsonl")),
    ([], {}, ("0 data sets", "path")),
    (["ddxplus", "starter"], {"path": ["folder"]}, ("2 data sets", "path", ["folder"])),
    (["starter", "ddxplus"], {"path": "folder"}, ("2 data sets", "path", ["folder"])),
    (["starter", "starter"], {"n": 3}, ("3 cases", "starter, starter", "once")),
    ("starter", {"n": [3, None]}, ("1 data sets", "n", [3, None])),
]


@each("names, more, message", REFUSED)
def test_what_does_not_fit_is_refused(names, more: dict, message: Any) -> None:
    with pytest.raises(ValueError, match=saying(message)):
        load_sets(names, **more)


def test_an_n_that_is_too_large_says_how_many_there_are(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=saying("n", 3, "ddxplus", 2)):
        load_cases("ddxplus", path=release(tmp_path), n=3)


def test_a_data_error_survives_another_process_and_cuts_what_is_long() -> None:
    error = pickle.loads(pickle.dumps(DataError("f.csv", 3, "AGE", "x", "numbers")))
    assert says(error, "f.csv", "row 3", "counted from 1", "AGE", "'x'", "numbers")
    assert len(str(DataError("f.csv", 1, "EVIDENCES", "x" * 10_000, "less"))) < 400


OWN = {"starter": 240, "starter-dialogue": 48, "starter-report": 48, "ddxplus-171": 171}


@pytest.mark.parametrize("name", OWN)
def test_the_cases_that_come_along_keep_their_promises(name: str) -> None:
    cases = load_cases(name)
    assert len({case.case_id for case in cases}) == len(cases) == OWN[name]
    parents = {f.id: f.parent for f in load_knowledge().findings.values()}
    for case in cases:
        assert case.dataset == name.removesuffix("-171") and len(case.statements) > 10
        assert set(case.patient) <= {*FIELDS, "differential"}
        spoken = " ".join(f" {normalise(s.text)} |" for s in case.statements)
        said = [a for a in case.accepted if f" {normalise(a)} " in spoken]
        told = [s.finding for s in case.statements]
        if name == "ddxplus-171":  # the rest in test_ddxplus.py, where the release is there
            assert case.posteriors == {len(told): dict(case.patient["differential"])}
            continue
        assert said == [], case.case_id
        if name == "starter":
            assert all(parents[f or ""] not in told[i + 1 :] for i, f in enumerate(told))
            assert case.denies == set(parents) and not {s.finding for s in case.record} & set(told)
            assert all(case.posteriors[n] for n in (1, len(told)))
        elif name == "starter-dialogue":
            for text in (s.text for s in case.statements):
                assert text.startswith("Doctor: ") and text.count("\nPatient: ") == 1


def test_a_starter_case_holds_its_row() -> None:
    with (DATA / "starter" / "structured.jsonl").open(encoding="utf-8") as lines:
        row = json.loads(next(lines))
    case, told = load_cases("starter")[0], [Statement(**one) for one in row["statements"]]
    assert (case.case_id, case.diagnosis) == (row["case_id"], row["diagnosis"])
    assert list(case.statements) == told and len(case.record) == len(row["record"])
    assert dict(case.patient) == row["patient"] and case.accepted[0] == case.diagnosis
    assert read_data("starter").facts[NAMED] == 5  # by an everyday name


def answers(finding: Finding) -> re.Pattern[str]:
    """Every answer the table has to the question of ``finding``."""
    values = [v.phrase for v in load_knowledge().values.values() if v.kind == finding.values]
    one = f"(?:{'|'.join(map(re.escape, values or map(str, range(1, 11))))})"
    filled = f"{one}(?:(?:, {one})* and {one})?" if finding.form == "several" else one
    affirmed = [re.escape(a).replace(re.escape("{value}"), filled) for a in finding.affirm]
    return re.compile("|".join([*affirmed, *map(re.escape, finding.deny)]))


def test_the_cases_that_the_table_does_not_know() -> None:
    """Sixteen diseases, half told in our words and half in the table's; no name is spoken."""
    cases = tl.load_cases("table", path=DATA / "starter" / "unknown.jsonl")
    knowledge = load_knowledge()
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


def made(number: int, n: int = 11, diagnosis: str = "Gout") -> Case:
    told = tuple(Statement(f"Statement {i} of four words") for i in range(1, n + 1))
    return Case(f"made-{number}", "made", told, diagnosis, (diagnosis,), {})


def test_a_check_tells_counts_drops_lengths_and_what_the_table_knows() -> None:
    dropped = {"no diagnosis": [str(i) for i in range(1, 8)], "fewer than 11 statements": ["9"]}
    cases = [made(i, n) for i, n in enumerate([11, 12, 13, 14, 20])]
    lines = check_text("made", Read(cases, 1009, dropped, {"exchanges left out": 3})).splitlines()
    facts: list[tuple] = [("made", "1,009", 5), ("no diagnosis", 7, "1, 2, 3, 4, 5"), (11, 1, 9)]
    facts += [("exchanges left out", 3), (NAMED, 0)]
    assert [says(line, *of) for line, of in zip(lines[:5], facts, strict=True)] == [True] * 5
    assert any(says(line, 11.0, 12.0, 13.0, 14.0, 20.0) for line in lines)
    assert any(says(line, "0 of the 1", "0 of 5", "elsewhere") for line in lines)
    in_table = check_text("made", Read([made(1, diagnosis="Influenza")], 1)).splitlines()
    assert any(says(line, "1 of the 1", "1 of 1") for line in in_table)
    nothing = check_text("made", Read([], 2, {"no diagnosis": ["1", "2"]})).splitlines()
    assert says(nothing[0], "made", 2, 0) and says(nothing[1], "no diagnosis", 2, "1, 2")
    assert nothing[-1] == tl.NOTICE


def test_what_could_command_a_terminal_is_not_printed() -> None:
    told = (Statement("a\x1b]0;owned\x07b"),) * 11
    nasty = Case("made-\x1b[2J", "made", told, "Gout\x9b", ("Gout",))
    text = check_text("made", Read([nasty], 1, {"odd\x1b": ["\x07"]}))
    assert all(c.isprintable() or c == "\n" for c in text)
