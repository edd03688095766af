"""The cases outside the knowledge table: they load, and no answer that the table knows can be
right."""

from __future__ import annotations

import re

import trustlab as tl
from trustlab.knowledge import Finding, load_knowledge
from trustlab.paths import DATA
from trustlab.records import Case, normalise

PATH = DATA / "starter" / "unknown.jsonl"


def cases() -> list[Case]:
    return tl.load_cases("table", path=PATH)


def told(how: str) -> list[Case]:
    return [case for case in cases() if case.patient["told"] == how]


def answers(finding: Finding) -> re.Pattern[str]:
    """Every answer the table has to the question of ``finding``."""
    values = [v.phrase for v in load_knowledge().values.values() if v.kind == finding.values] or [
        str(n) for n in range(1, 11)
    ]
    one = f"(?:{'|'.join(map(re.escape, values))})"
    filled = f"{one}(?:(?:, {one})* and {one})?" if finding.form == "several" else one
    affirmed = [re.escape(a).replace(re.escape("{value}"), filled) for a in finding.affirm]
    return re.compile("|".join([*affirmed, *map(re.escape, finding.deny)]))


def test_sixteen_different_diseases_half_told_in_our_words_and_half_in_the_tables() -> None:
    assert (
        len(cases())
        == len({case.case_id for case in cases()})
        == len({case.diagnosis for case in cases()})
        == 16
    )
    assert [case.patient["told"] for case in cases()] == ["natural"] * 8 + ["table"] * 8
    for case in cases():
        assert 12 <= len(case.statements) <= 16
        assert all(
            re.fullmatch(r"Doctor: [^\n]+\nPatient: [^\n]+", s.text) for s in case.statements
        ), case.case_id
        assert set(case.patient) == {"told", "age", "sex"}


def test_the_table_knows_none_of_the_names() -> None:
    knowledge = load_knowledge()
    names = [name for case in cases() for name in case.accepted]
    assert [name for name in names if knowledge.condition_named(name)] == []
    assert len(set(map(normalise, names))) == len(names)


def test_no_statement_speaks_a_name() -> None:
    names = {normalise(name) for case in cases() for name in case.accepted} | set(
        load_knowledge().condition_of_name
    )
    for case in cases():
        spoken = " | ".join(f" {normalise(s.text)} " for s in case.statements)
        assert [name for name in names if f" {name} " in spoken] == [], case.case_id


def test_the_second_half_speaks_the_tables_phrasings() -> None:
    by_question = {f.question: f for f in load_knowledge().findings.values()}
    for case in told("table"):
        asked = []
        for statement in case.statements:
            question, answer = statement.text.removeprefix("Doctor: ").split("\nPatient: ")
            finding = by_question[question]
            assert answers(finding).fullmatch(answer), statement.text
            assert finding.parent is None or finding.parent in asked, statement.text
            assert finding.sex in (None, case.patient["sex"])
            asked.append(finding.id)
        assert len(set(asked)) == len(asked), case.case_id


def test_the_first_half_does_not() -> None:
    questions = {f.question for f in load_knowledge().findings.values()}
    spoken = [
        s.text.split("\n")[0].removeprefix("Doctor: ")
        for case in told("natural")
        for s in case.statements
    ]
    assert [question for question in spoken if question in questions] == []
