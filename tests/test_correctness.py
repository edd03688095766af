"""Right and wrong answers."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustlab.correctness import GRADERS, ExactGrader, Grader, SynonymGrader
from trustlab.knowledge import Condition, Knowledge, load_knowledge, normalise
from trustlab.records import Case, Statement


def case(diagnosis: str, *accepted: str) -> Case:
    return Case("c1", "made", (Statement("Cough."),), diagnosis, (diagnosis, *accepted))


def condition(name: str, *synonyms: str) -> Condition:
    return Condition(normalise(name), name, synonyms, 1.0, "any", (0, 99), "made", {}, {}, {})


CONDITIONS = (condition("Influenza", "Flu", "Grippe"), condition("Croup"), condition("Atrial fibrillation", "A-fib"))
TABLE = Knowledge({}, {}, {}, condition_of_name={normalise(n): c for c in CONDITIONS for n in c.names})


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("Influenza", 1),
        ("  influenza. ", 1),
        ("INFLUENZA", 1),
        ("the flu", 1),
        ("The Grippe", 1),
        ("Seasonal fever", 1),
        ("a seasonal fever", 1),
        ("Croup", 0),
        ("Influenza A", 0),
        ("acute influenza", 0),
        ("Influenza (flu)", 0),
        ("Influenza or croup", 0),
        ("Unheard-of disease", 0),
        ("the", 0),
        ("", 0),
        (None, 0),
    ],
)
def test_synonyms(answer: str | None, right: int) -> None:
    assert SynonymGrader(TABLE).correct(answer, case("Influenza", "Seasonal fever")) == right


def test_the_table_joins_names_that_the_case_does_not_list() -> None:
    assert SynonymGrader(TABLE).correct("Flu", case("Grippe")) == 1
    assert SynonymGrader(Knowledge({}, {}, {})).correct("Flu", case("Grippe")) == 0


def test_unknown_names_are_not_the_same_condition() -> None:
    assert SynonymGrader(TABLE).correct("Unheard-of disease", case("Another disease")) == 0


def test_an_initial_a_is_not_always_an_article() -> None:
    grader = SynonymGrader(TABLE)
    assert [grader.correct(answer, case("A-fib")) for answer in ("A-fib", "A fib", "Atrial fibrillation", "fib")] == [1, 1, 1, 0]


def test_composed_and_decomposed_letters_are_the_same() -> None:
    name = "Ménière disease"
    for grader in (ExactGrader(), SynonymGrader(TABLE)):
        assert grader.correct(unicodedata.normalize("NFD", name), case(name)) == 1


def test_exact_knows_only_the_cases_own_name() -> None:
    flu = case("Influenza", "Flu")
    assert [ExactGrader().correct(answer, flu) for answer in ("influenza", "The influenza", "Flu", "", None)] == [1, 1, 0, 0, 0]


def test_every_name_of_the_shipped_table_is_right_for_its_own_condition_only() -> None:
    grader, conditions = SynonymGrader(), list(load_knowledge().conditions.values())
    for this, other in zip(conditions, conditions[1:] + conditions[:1], strict=True):
        assert [grader.correct(name, case(this.name)) for name in this.names] == [1] * len(this.names)
        assert [grader.correct(name, case(other.name)) for name in this.names] == [0] * len(this.names)


@given(st.text(max_size=40))
def test_any_answer_is_graded_0_or_1(answer: str) -> None:
    for grader in (ExactGrader(), SynonymGrader(TABLE)):
        assert grader.correct(answer, case("Influenza")) in (0, 1)


def test_graders_have_names_for_tables() -> None:
    made = {name: make() for name, make in GRADERS.items()}
    assert {name: grader.name for name, grader in made.items()} == {"synonym": "synonym", "exact": "exact"}
    assert all(isinstance(grader, Grader) for grader in made.values())
