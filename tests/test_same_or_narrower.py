"""Names as chat models write them: the true disease, a kind of it, or another."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pytest
from each import each
from made_graders import NO_TABLE, PNEUMONIA, SaysTrue, case

from trustlab.graders import (
    ExactGrader,
    Grade,
    JudgeGrader,
    SynonymGrader,
    agreement_sentence,
    icd10,
    known_truths,
    unknown_truths_warning,
)
from trustlab.graders.same_or_narrower import RIGHT

with (Path(__file__).parent / "data/diagnosis_pairs.csv").open(encoding="utf-8") as file:
    PAIRS = list(csv.DictReader(file))
GRADER = SynonymGrader()


@each(
    ("answer", "truth", "right"),
    [(row["answer"], row["truth"], row["expected"] in RIGHT) for row in PAIRS if not row["open"]],
)
def test_every_pair_is_graded_as_a_person_does(answer: str, truth: str, right: bool) -> None:
    assert GRADER.correct(answer, case(truth)) == right


def test_nearly_all_that_is_called_right_is_right_and_nearly_all_that_is_right_is_seen() -> None:
    called = [GRADER.correct(row["answer"], case(row["truth"])) for row in PAIRS]
    right = [row["expected"] in RIGHT for row in PAIRS]
    both = sum(c and r for c, r in zip(called, right, strict=True))
    assert len(PAIRS) > 700 and both / sum(called) >= 0.99 and both / sum(right) >= 0.97


@each(
    "answer",
    [f"Crohn{mark}s disease" for mark in "'’‘`´′ʹʼ＇"]
    + [
        "Cro\u00adhn disease",
        "Crohn\u200b disease",
        "Cro\u2060hn\ufe0f disease",
        "Crohn\u0301 disease",
    ],
)
def test_apostrophes_and_invisible_characters_change_nothing(answer: str) -> None:
    assert SynonymGrader(NO_TABLE).grade([answer], [case("Crohn disease")])[0].kind == "same"


@each(
    ("answer", "truth", "kind"),
    [
        ("Heart attack", "Myocardial infarction", "same"),
        ("Migraine without aura", "Migraine", "narrower"),
        ("Migraine", "Migraine without aura", "other"),
        ("Right lower lobe pneumonia", "Pneumonia", "narrower"),
        ("Pneumonia and croup", "Pneumonia", "other"),
    ],
)
def test_a_grade_says_which_kind_of_right_it_is(answer: str, truth: str, kind: str) -> None:
    assert GRADER.grade([answer], [case(truth)]) == [Grade(int(kind != "other"), kind=kind)]


def test_what_a_judge_calls_right_is_narrower_where_it_adds_words() -> None:
    judge = JudgeGrader(SaysTrue(), knowledge=NO_TABLE)
    grades = judge.grade(["Viral pneumonia", "Lung inflammation", "Croup"], [PNEUMONIA] * 3)
    assert [grade.kind for grade in grades] == ["narrower", "same", "same"]


def test_the_terminology_is_not_opened_for_what_names_and_table_settle(monkeypatch) -> None:
    monkeypatch.setattr(icd10, "_places", lambda: pytest.fail("opened"))
    answers = ["Flu", "Croup", "not influenza", "Flu or croup", "Influenza A", None]
    grades = GRADER.grade(answers, [case("Influenza")] * len(answers))
    assert [grade.correct for grade in grades] == [1, 0, 0, 0, 1, 0]


def test_truths_that_nobody_knows_are_counted_and_warned_of() -> None:
    known, strange = [case("Influenza"), case("Wilson disease")], [case(f"Zorb {n}") for n in "xyz"]
    assert known_truths([*known, *known, *strange]) == (2, 5)
    assert "3 of 5 true diagnoses" in unknown_truths_warning(GRADER, [*known, *strange])
    assert not unknown_truths_warning(GRADER, known)
    assert not unknown_truths_warning(ExactGrader(), strange)


def test_rules_and_judge_are_compared_on_what_both_graded() -> None:
    rules = [Grade(1), Grade(0), Grade(0), Grade(1), Grade(1)]
    judge = [Grade(1), Grade(1), Grade(0), Grade(0), Grade(None, "no reply")]
    pairs = [
        (a.correct, math.nan if b.correct is None else b.correct)
        for a, b in zip(rules, judge, strict=True)
    ]
    assert agreement_sentence(pairs, "judge m") == (
        "Rules and judge m agree on 2 of 4 answers; 1 are right to the judge alone, 1 to the rules"
        " alone."
    )
