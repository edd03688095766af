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
from trustlab.folder.saved import find_table, read_table
from trustlab.graders import GRADERS, EncoderGrader, ExactGrader, Grader, SynonymGrader, open_grader
from trustlab.graders.same_diagnosis import exclude
from trustlab.knowledge import Knowledge, load_knowledge

REFERENCE = find_table(Path(__file__).parents[1] / "figures/reference/01_benchmark", "answers")

NO_DIAGNOSIS = [
    "Yes.", "No", "unknown", "Unknown diagnosis", "The diagnosis is unclear", "I don't know", "N/A",
    "42", "37.5", "", " ", "?!",
]  # fmt: skip
SEVERAL = [
    "pneumonia or bronchitis", "pneumonia, bronchitis, asthma", "Pneumonia, bronchitis",
    "1. pneumonia 2. bronchitis", "1) Pneumonia 2) Croup", "pneumonia\nbronchitis",
    "pneumonia vs bronchitis", "Pneumonia vs. bronchitis", "pneumonia/bronchitis",
    "pneumonia; bronchitis", "pneumonia and bronchitis", "pneumonia & bronchitis",
    "Pneumonia (or bronchitis)", "Differential: pneumonia",
]  # fmt: skip
DENIALS = [
    "not pneumonia", "no pneumonia", "No evidence of pneumonia", "pneumonia ruled out",
    "Pneumonia (ruled out)", "rule out pneumonia", "unlikely pneumonia", "pneumonia unlikely",
    "not likely pneumonia", "pneumonia is excluded", "negative for pneumonia",
    "It isn't pneumonia", "without pneumonia",
]  # fmt: skip
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
@each(
    ("answer", "truth"),
    [*((answer, "Pneumonia") for answer in [*NO_DIAGNOSIS, *SEVERAL, *DENIALS]), *TRAPS],
)
def test_no_diagnosis_several_a_denial_or_another_one_is_wrong_to_every_grader(
    grader: Grader, answer: str, truth: str
) -> None:
    assert grader.correct(answer, case(truth)) == 0


@EVERY
def test_an_unreadable_answer_is_wrong_and_signs_in_a_true_name_do_not_count(grader) -> None:
    assert [g.correct for g in grader.grade([None], [PNEUMONIA])] == [0]
    for name in (
        "Acute COPD exacerbation / infection", "HIV (initial infection)",
        "Foot, hand and mouth disease", "No-reflow, or worse",
    ):  # fmt: skip
        assert grader.correct(name.lower(), case(name)) == 1, name


OTHER_KINDS = [
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
    ("Migraine without aura", "Migraine with aura"),
    ("community-acquired pneumonia", "Hospital-acquired pneumonia"),
    # labels, codes, shares and brackets hide no list, denial or other name
    ("Diagnosis: not pneumonia", "Pneumonia"),
    ("The diagnosis is pneumonia or bronchitis", "Pneumonia"),
    ("Pneumonia, viral, bacterial", "Viral pneumonia"),
    ("Pneumonia (0%)", "Pneumonia"),
]
CERTAIN = [
    "likely pneumonia", "Most likely pneumonia.", "probable pneumonia", "Suspected pneumonia",
    "a severe pneumonia", "pneumonia, mild", "Pneumonia (likely)", "Probably a mild pneumonia",
    "Pneumonia, not otherwise specified", "Pneumonia, unspecified", "Diagnosis: pneumonia",
    "The diagnosis is pneumonia", "Pneumonia (J18.9)", "Pneumonia (ICD-10: J18)",
    "Pneumonia (80%)", "Pneu\u00admon\u200bia",
]  # fmt: skip
SAME = [
    *((answer, "Pneumonia") for answer in CERTAIN),
    ("Bronchitis, acute", "Acute bronchitis"),
    ("Pneumonia, viral", "Viral pneumonia"),
    ("Sjogren syndrome", "Sjögren's syndrome"),
    ("Crohn disease", "Crohn's disease"),
    ("CLL", "Chronic lymphocytic leukemia (CLL)"),
    ("Chronic lymphocytic leukemia", "Chronic lymphocytic leukemia (CLL)"),
]


@BY_WORDS
@each(
    ("answer", "truth", "right"),
    [*((*pair, 0) for pair in OTHER_KINDS), *((*pair, 1) for pair in SAME)],
)
def test_another_kind_is_wrong_and_another_way_to_write_the_name_is_right(
    grader: Grader, answer: str, truth: str, right: int
) -> None:
    assert grader.correct(answer, case(truth)) == right
    assert EXACT.correct(answer, case(truth)) == 0  # which is strict about both


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
    assert grader.correct("viral pneumonia", case("Pneumonia", "Viral pneumonia")) == 1


# The exact and the synonym grader

FLU, NFD = case("Influenza", "Seasonal fever"), unicodedata.normalize("NFD", "Ménière disease")
RIPPLES = condition("Ripples", "Wavelets")
WAVES = Knowledge({}, {}, {}, condition_of_name={n: RIPPLES for n in ("ripples", "wavelets")})


@each(
    ("grader", "truth", "right", "wrong"),
    [
        (
            SynonymGrader(TABLE), FLU,
            ["Influenza", "  influenza. ", "INFLUENZA", "the flu", "The Grippe", "Seasonal fever",
             "a seasonal fever", "Influenza (flu)", "Influenza A", "acute influenza"],
            ["Croup", "Influenza or croup", "Unheard-of disease", "the"],
        ),
        (SynonymGrader(TABLE), case("Another disease"), [], ["Unheard-of disease"]),
        # an initial "a" is not always an article
        (SynonymGrader(TABLE), case("A-fib"), ["A-fib", "A fib", "Atrial fibrillation"], ["fib"]),
        (SynonymGrader(TABLE), case("Ménière disease"), [NFD], []),
        (EXACT, case("Ménière disease"), [NFD], []),
        (
            EXACT, case("Influenza", "Flu"),
            ["influenza", "The influenza"], ["Flu", "Influenza (flu)"],
        ),
        # the table joins names that the case does not list
        (SynonymGrader(WAVES), case("Ripples"), ["Wavelets"], []),
        (SynonymGrader(NO_TABLE), case("Ripples"), [], ["Wavelets"]),
        # an abbreviation may follow the words that it stands for
        (SYNONYM, case("DVT"), ["Deep vein thrombosis (DVT)"], []),
        (SYNONYM, case("Embolism"), [], ["Disorder of the very tired (DVT)"]),
    ],
)  # fmt: skip
def test_names_by_hand(grader: Grader, truth, right: list[str], wrong: list[str]) -> None:
    assert [grader.correct(answer, truth) for answer in right] == [1] * len(right)
    assert [grader.correct(answer, truth) for answer in wrong] == [0] * len(wrong)


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


def test_every_name_of_the_shipped_table_is_right_for_its_own_condition_only() -> None:
    grader, conditions = SynonymGrader(), list(load_knowledge().conditions.values())
    for this, other in zip(conditions, conditions[1:] + conditions[:1], strict=True):
        for truth, right in ((this, 1), (other, 0)):
            assert {grader.correct(name, case(truth.name)) for name in this.names} == {right}


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
def test_a_grader_is_opened_by_name_or_passed_through(grader: Grader) -> None:
    assert isinstance(grader, Grader) and open_grader(grader) is grader
    with pytest.raises(ValueError, match="2 answers and 1 cases"):
        grader.grade(["flu", "croup"], [PNEUMONIA])


def test_graders_have_names_and_an_unknown_one_is_refused_with_the_known_ones() -> None:
    names = {name: make().name for name, make in GRADERS.items()}
    assert names == {name: name for name in ("synonym", "exact", "encoder")}
    assert AGREEABLE.name == "judge agreeable" and open_grader("exact") == ExactGrader()
    assert open_grader("judge:embedded").name == "judge embedded"
    for name, message in [
        ("judge", "grader is 'judge'; allowed are synonym, exact, encoder, judge:MODEL"),
        ("judge:nobody", "model is 'nobody'"),
    ]:
        with pytest.raises(ValueError, match=message):
            open_grader(name)
