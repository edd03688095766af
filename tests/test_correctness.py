"""Right and wrong answers: the rules that every grader keeps, and what each adds."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from each import each
from hypothesis import given
from hypothesis import strategies as st
from made_graders import (
    AGREEABLE,
    ALIKE,
    BY_WORDS,
    COPD,
    EVERY,
    EXACT,
    NO_TABLE,
    PNEUMONIA,
    SYNONYM,
    TABLE,
    case,
    condition,
)

from trustlab.datasets import load_cases
from trustlab.graders import GRADERS, EncoderGrader, ExactGrader, Grader, SynonymGrader, open_grader
from trustlab.graders.same_diagnosis import exclude
from trustlab.knowledge import Knowledge, load_knowledge
from trustlab.run import find_table, read_table

RIPPLES = condition("Ripples", "Wavelets")
REFERENCE = find_table(Path(__file__).parents[1] / "figures/reference/01_benchmark", "answers")

# What every grader calls wrong


@EVERY
@each(
    "answer",
    [
        "Yes.",
        "No",
        "unknown",
        "Unknown diagnosis",
        "The diagnosis is unclear",
        "I don't know",
        "N/A",
        "42",
        "37.5",
        "",
        " ",
        "?!",
    ],
)
def test_what_is_no_diagnosis_is_wrong(grader: Grader, answer: str) -> None:
    assert grader.correct(answer, PNEUMONIA) == 0


@EVERY
def test_an_unreadable_answer_is_wrong_and_not_ungraded(grader: Grader) -> None:
    assert [g.correct for g in grader.grade([None], [PNEUMONIA])] == [0]


@EVERY
@each(
    "answer",
    [
        "pneumonia or bronchitis",
        "pneumonia, bronchitis, asthma",
        "Pneumonia, bronchitis",
        "1. pneumonia 2. bronchitis",
        "1) Pneumonia 2) Croup",
        "pneumonia\nbronchitis",
        "pneumonia vs bronchitis",
        "Pneumonia vs. bronchitis",
        "pneumonia/bronchitis",
        "pneumonia; bronchitis",
        "pneumonia and bronchitis",
        "pneumonia & bronchitis",
        "Pneumonia (or bronchitis)",
        "Differential: pneumonia",
    ],
)
def test_several_diagnoses_are_not_one(grader: Grader, answer: str) -> None:
    assert grader.correct(answer, PNEUMONIA) == 0


@EVERY
@each(
    "answer",
    [
        "not pneumonia",
        "no pneumonia",
        "No evidence of pneumonia",
        "pneumonia ruled out",
        "Pneumonia (ruled out)",
        "rule out pneumonia",
        "unlikely pneumonia",
        "pneumonia unlikely",
        "not likely pneumonia",
        "pneumonia is excluded",
        "negative for pneumonia",
        "It isn't pneumonia",
        "without pneumonia",
    ],
)
def test_a_denial_is_not_the_diagnosis(grader: Grader, answer: str) -> None:
    assert grader.correct(answer, PNEUMONIA) == 0


@EVERY
@each(
    "name",
    [
        "Acute COPD exacerbation / infection",
        "HIV (initial infection)",
        "Foot, hand and mouth disease",
        "No-reflow, or worse",
    ],
)
def test_signs_of_lists_and_denials_in_a_true_name_do_not_count(grader: Grader, name: str) -> None:
    assert grader.correct(name.lower(), case(name)) == 1


@BY_WORDS
@each(
    ("answer", "truth"),
    [
        ("pneumonia", "Viral pneumonia"),
        ("bacterial pneumonia", "Viral pneumonia"),
        ("Acute pancreatitis", "Chronic pancreatitis"),
        ("pancreatitis", "Acute pancreatitis"),
        ("hypothyroidism", "Hyperthyroidism"),
        ("Type 1 diabetes", "Type 2 diabetes"),
        ("Hepatitis A", "Hepatitis B"),
        ("left heart failure", "Right heart failure"),
        ("lower lobe pneumonia", "Upper lobe pneumonia"),
        ("unstable angina", "Stable angina"),
        ("stage II lung cancer", "Stage III lung cancer"),
        ("Non-traumatic rib fracture", "Traumatic rib fracture"),
        ("mild asthma", "Severe asthma"),
        ("Migraine without aura", "Migraine with aura"),
        ("community-acquired pneumonia", "Hospital-acquired pneumonia"),
    ],
)
def test_another_cause_site_side_stage_or_kind_is_another_diagnosis(
    grader: Grader, answer: str, truth: str
) -> None:
    assert grader.correct(answer, case(truth)) == 0


@BY_WORDS
def test_an_accepted_kind_is_right(grader: Grader) -> None:
    assert grader.correct("viral pneumonia", case("Pneumonia", "Viral pneumonia")) == 1


TRAPS = [
    ("MEN2", "MEN1"),
    ("MEN2B", "MEN2A"),
    ("Multiple endocrine neoplasia 2B", "Multiple endocrine neoplasia 2A"),
    ("Vitamin B1 deficiency", "Vitamin B12 deficiency"),
    ("Hepatitis infection", "Hepatitis A infection"),
    ("Cushing's disease", "Cushing's syndrome"),
    ("Nephritic syndrome", "Nephrotic syndrome"),
    ("Schizotypal personality disorder", "Schizoid personality disorder"),
    ("Duodenal peptic ulcer", "Gastric peptic ulcer"),
    ("Central retinal vein occlusion", "Central retinal artery occlusion"),
    ("Systolic heart failure", "Diastolic heart failure"),
    ("Sensorineural hearing loss", "Conductive hearing loss"),
    ("Pneumonia", "Viral pneumonia"),
    ("mild asthma", "Severe asthma"),
    ("Option C", "Pneumonia"),
    ("C", "Pneumonia"),
    ("Pneumonia " * 21, "Pneumonia"),
]


@EVERY
@each(("answer", "truth"), TRAPS)
def test_every_grader_refuses_the_same_traps(grader: Grader, answer: str, truth: str) -> None:
    assert grader.correct(answer, case(truth)) == 0


@BY_WORDS
@each(
    ("answer", "truth"),
    [
        ("Bronchitis, acute", "Acute bronchitis"),
        ("Pneumonia, viral", "Viral pneumonia"),
        ("Diagnosis: pneumonia", "Pneumonia"),
        ("The diagnosis is pneumonia", "Pneumonia"),
        ("Pneumonia (J18.9)", "Pneumonia"),
        ("Pneumonia (ICD-10: J18)", "Pneumonia"),
        ("Pneumonia (80%)", "Pneumonia"),
        ("Sjogren syndrome", "Sjögren's syndrome"),
        ("Pneu\u00admon\u200bia", "Pneumonia"),
        ("Crohn disease", "Crohn's disease"),
        ("CLL", "Chronic lymphocytic leukemia (CLL)"),
        ("Chronic lymphocytic leukemia", "Chronic lymphocytic leukemia (CLL)"),
    ],
)
def test_another_way_to_write_the_name_is_right_but_not_to_the_exact_grader(
    grader: Grader, answer: str, truth: str
) -> None:
    assert grader.correct(answer, case(truth)) == 1
    assert EXACT.correct(answer, case(truth)) == 0


@BY_WORDS
@each(
    ("answer", "truth"),
    [
        ("Diagnosis: not pneumonia", "Pneumonia"),
        ("The diagnosis is pneumonia or bronchitis", "Pneumonia"),
        ("Pneumonia, viral, bacterial", "Viral pneumonia"),
        ("Pneumonia (0%)", "Pneumonia"),
    ],
)
def test_labels_codes_shares_and_brackets_hide_no_list_denial_or_other_name(
    grader: Grader, answer: str, truth: str
) -> None:
    assert grader.correct(answer, case(truth)) == 0


# What changes nothing

CERTAIN = [
    "likely pneumonia",
    "Most likely pneumonia.",
    "probable pneumonia",
    "Suspected pneumonia",
    "a severe pneumonia",
    "pneumonia, mild",
    "Pneumonia (likely)",
    "Probably a mild pneumonia",
    "Pneumonia, not otherwise specified",
    "Pneumonia, unspecified",
]


@BY_WORDS
@each("answer", CERTAIN)
def test_words_of_certainty_and_degree_change_nothing(grader: Grader, answer: str) -> None:
    assert grader.correct(answer, PNEUMONIA) == 1


@each("answer", CERTAIN)
def test_the_exact_grader_is_strict_about_them(answer: str) -> None:
    assert EXACT.correct(answer, PNEUMONIA) == 0


@BY_WORDS
@each(
    ("answer", "right"),
    [
        ("Chronic obstructive pulmonary disease (COPD)", 1),
        ("COPD (chronic obstructive pulmonary disease)", 1),
        ("Smoker's lung (chronic obstructive pulmonary disease)", 1),
        ("likely chronic obstructive pulmonary disease (COPD)", 1),
        ("Chronic obstructive pulmonary disease (CHF)", 0),
        ("Chronic obstructive pulmonary disease (emphysema)", 0),
    ],
)
def test_an_abbreviation_or_another_name_may_stand_in_brackets(
    grader: Grader, answer: str, right: int
) -> None:
    assert grader.correct(answer, COPD) == right


def test_an_accepted_abbreviation_may_follow_the_words_that_it_stands_for() -> None:
    assert SYNONYM.correct("Deep vein thrombosis (DVT)", case("DVT")) == 1
    assert SYNONYM.correct("Disorder of the very tired (DVT)", case("Embolism")) == 0


# The exact and the synonym grader


@each(
    ("answer", "right"),
    [
        ("Influenza", 1),
        ("  influenza. ", 1),
        ("INFLUENZA", 1),
        ("the flu", 1),
        ("The Grippe", 1),
        ("Seasonal fever", 1),
        ("a seasonal fever", 1),
        ("Influenza (flu)", 1),
        ("Croup", 0),
        ("Influenza A", 1),
        ("acute influenza", 1),
        ("Influenza or croup", 0),
        ("Unheard-of disease", 0),
        ("the", 0),
    ],
)
def test_synonyms(answer: str, right: int) -> None:
    assert SynonymGrader(TABLE).correct(answer, case("Influenza", "Seasonal fever")) == right


@each(
    ("one", "other", "apart"),
    [
        ("hyperthyroidism", "hypothyroidism", True),
        ("eclampsia", "preeclampsia", True),
        ("preeclampsia", "eclampsia", True),
        ("bronchitis", "arthritis", False),  # their ends agree, no prefixes make one the other
        ("hyperthyroidism", "hyperparathyroidism", False),
    ],
)
def test_opposite_prefixes_alone_rule_a_word_out(one: str, other: str, apart: bool) -> None:
    assert exclude({one}, {other}) is apart


def test_the_table_joins_names_that_the_case_does_not_list() -> None:
    table = Knowledge({}, {}, {}, condition_of_name={n: RIPPLES for n in ("ripples", "wavelets")})
    assert SynonymGrader(table).correct("Wavelets", case("Ripples")) == 1
    assert SynonymGrader(NO_TABLE).correct("Wavelets", case("Ripples")) == 0


def test_unknown_names_are_not_the_same_condition() -> None:
    assert SynonymGrader(TABLE).correct("Unheard-of disease", case("Another disease")) == 0


def test_an_initial_a_is_not_always_an_article() -> None:
    grader = SynonymGrader(TABLE)
    assert [
        grader.correct(answer, case("A-fib"))
        for answer in ("A-fib", "A fib", "Atrial fibrillation", "fib")
    ] == [1, 1, 1, 0]


def test_composed_and_decomposed_letters_are_the_same() -> None:
    name = "Ménière disease"
    for grader in (ExactGrader(), SynonymGrader(TABLE)):
        assert grader.correct(unicodedata.normalize("NFD", name), case(name)) == 1


def test_exact_knows_only_the_cases_own_name() -> None:
    flu = case("Influenza", "Flu")
    assert [
        EXACT.correct(answer, flu)
        for answer in ("influenza", "The influenza", "Flu", "Influenza (flu)")
    ] == [1, 1, 0, 0]


def test_every_name_of_the_shipped_table_is_right_for_its_own_condition_only() -> None:
    grader, conditions = SynonymGrader(), list(load_knowledge().conditions.values())
    for this, other in zip(conditions, conditions[1:] + conditions[:1], strict=True):
        assert [grader.correct(name, case(this.name)) for name in this.names] == [1] * len(
            this.names
        )
        assert [grader.correct(name, case(other.name)) for name in this.names] == [0] * len(
            this.names
        )


@given(st.text(max_size=40))
def test_any_answer_is_graded_0_or_1(answer: str) -> None:
    for grader in (EXACT, SynonymGrader(TABLE), ALIKE):
        assert grader.correct(answer, case("Influenza")) in (0, 1)


@pytest.mark.skipif(REFERENCE is None, reason="the committed reference tables are not here")
def test_the_reference_run_is_graded_as_it_was() -> None:
    assert REFERENCE is not None
    answers = read_table(REFERENCE)
    names = ["ddxplus-171" if name == "ddxplus" else name for name in answers["dataset"].unique()]
    cases = {c.case_id: c for name in names for c in load_cases(name)}
    said = [a if a else None for a in answers["answer"]]
    grades = SynonymGrader().grade(said, [cases[i] for i in answers["case_id"]])
    right = pd.to_numeric(answers["correct"]).to_numpy()  # missing where the reply was cut off
    assert np.isnan(right).sum() < 5
    assert all(g.correct == r for g, r in zip(grades, right, strict=True) if not np.isnan(r))


# All graders


def test_a_batch_is_graded_as_one_by_one() -> None:
    answers = ["flu", "Croup", None, "flu", "Atrial fibrillation"]
    cases = [case("Influenza"), case("Croup"), case("Croup"), case("Croup"), case("A-fib")]
    for grader in (EXACT, SynonymGrader(TABLE), EncoderGrader(knowledge=TABLE)):
        assert [g.correct for g in grader.grade(answers, cases)] == [
            grader.correct(a, c) for a, c in zip(answers, cases, strict=True)
        ]


@EVERY
def test_each_answer_needs_its_case(grader: Grader) -> None:
    with pytest.raises(ValueError, match="2 answers and 1 cases"):
        grader.grade(["flu", "croup"], [PNEUMONIA])


def test_graders_have_names_for_tables() -> None:
    assert {name: make().name for name, make in GRADERS.items()} == {
        name: name for name in ("synonym", "exact", "encoder")
    }
    assert AGREEABLE.name == "judge agreeable"


@EVERY
def test_a_grader_is_opened_by_name_or_passed_through(grader: Grader) -> None:
    assert isinstance(grader, Grader) and open_grader(grader) is grader
    assert open_grader("exact") == ExactGrader()


def test_an_unknown_grader_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        ValueError, match="grader is 'judge'; allowed are synonym, exact, encoder, judge:MODEL"
    ):
        open_grader("judge")


def test_a_judge_is_opened_by_its_model_s_name() -> None:
    assert open_grader("judge:embedded").name == "judge embedded"
    with pytest.raises(ValueError, match="model is 'nobody'"):
        open_grader("judge:nobody")
