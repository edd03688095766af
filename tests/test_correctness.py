"""Right and wrong answers: the rules that every grader keeps, and what each adds."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustlab.correctness import GRADERS, EncoderGrader, ExactGrader, Grader, JudgeGrader, SynonymGrader, open_grader
from trustlab.correctness.encoder import THRESHOLD
from trustlab.correctness.names import bare_name, may_mean_the_same, same_name
from trustlab.datasets import load_cases
from trustlab.knowledge import Condition, Knowledge, load_knowledge, normalise
from trustlab.models.base import Request
from trustlab.models.cache import CachedModel
from trustlab.records import Case, Reply, Statement
from trustlab.semantics import Encoder

REFERENCE = Path(__file__).parents[1] / "figures/reference/01_benchmark/answers.csv"


def case(diagnosis: str, *accepted: str) -> Case:
    return Case("c1", "made", (Statement("Cough."),), diagnosis, (diagnosis, *accepted))


def condition(name: str, *synonyms: str) -> Condition:
    return Condition(normalise(name), name, synonyms, 1.0, "any", (0, 99), "made", {}, {}, {})


CONDITIONS = (condition("Influenza", "Flu", "Grippe"), condition("Croup"), condition("Atrial fibrillation", "A-fib"))
TABLE = Knowledge({}, {}, {}, condition_of_name={normalise(n): c for c in CONDITIONS for n in c.names})
NO_TABLE = Knowledge({}, {}, {})
PNEUMONIA = case("Pneumonia")
COPD = case("Chronic obstructive pulmonary disease", "Smoker's lung")


class SaysTrue:
    """A judge that finds everything the same."""

    name, revision, provides = "agreeable", "r1", frozenset({"text"})

    def __init__(self, text: str | None = "True", missing: str | None = None) -> None:
        self.reply, self.asked = Reply(text, missing=missing), []

    def generate(self, requests: list[Request]) -> list[list[Reply]]:
        self.asked += requests
        return [[self.reply] for _ in requests]


class EverythingAlike(Encoder):
    """An encoder to which all names are the same: what comes out wrong, a rule made wrong."""

    def encode(self, texts):
        return np.ones((len(texts), 1), dtype=np.float32)


EXACT, SYNONYM = ExactGrader(), SynonymGrader(NO_TABLE)
ALIKE = EncoderGrader(EverythingAlike(), knowledge=NO_TABLE)
AGREEABLE = JudgeGrader(SaysTrue(), knowledge=NO_TABLE)
EVERY = pytest.mark.parametrize("grader", [EXACT, SYNONYM, ALIKE, AGREEABLE], ids=["exact", "synonym", "encoder", "judge"])
BY_WORDS = pytest.mark.parametrize("grader", [SYNONYM, ALIKE], ids=["synonym", "encoder"])


# What every grader calls wrong


@EVERY
@pytest.mark.parametrize(
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
@pytest.mark.parametrize(
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
@pytest.mark.parametrize(
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
@pytest.mark.parametrize(
    "name",
    ["Acute COPD exacerbation / infection", "HIV (initial infection)", "Foot, hand and mouth disease", "No-reflow, or worse"],
)
def test_signs_of_lists_and_denials_in_a_true_name_do_not_count(grader: Grader, name: str) -> None:
    assert grader.correct(name.lower(), case(name)) == 1


@BY_WORDS
@pytest.mark.parametrize(
    ("answer", "truth"),
    [
        ("viral pneumonia", "Pneumonia"),
        ("pneumonia", "Viral pneumonia"),
        ("bacterial pneumonia", "Viral pneumonia"),
        ("Pneumonia (viral)", "Pneumonia"),
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
        ("Chronic anaemia", "Anaemia"),
        ("Migraine without aura", "Migraine with aura"),
        ("community-acquired pneumonia", "Hospital-acquired pneumonia"),
    ],
)
def test_another_cause_site_side_stage_or_kind_is_another_diagnosis(grader: Grader, answer: str, truth: str) -> None:
    assert grader.correct(answer, case(truth)) == 0


@BY_WORDS
def test_an_accepted_kind_is_right(grader: Grader) -> None:
    assert grader.correct("viral pneumonia", case("Pneumonia", "Viral pneumonia")) == 1


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
@pytest.mark.parametrize("answer", CERTAIN)
def test_words_of_certainty_and_degree_change_nothing(grader: Grader, answer: str) -> None:
    assert grader.correct(answer, PNEUMONIA) == 1


@pytest.mark.parametrize("answer", CERTAIN)
def test_the_exact_grader_is_strict_about_them(answer: str) -> None:
    assert EXACT.correct(answer, PNEUMONIA) == 0


@BY_WORDS
@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("Chronic obstructive pulmonary disease (COPD)", 1),
        ("COPD (chronic obstructive pulmonary disease)", 0),  # the abbreviation is no accepted name and stands first
        ("Smoker's lung (chronic obstructive pulmonary disease)", 1),
        ("likely chronic obstructive pulmonary disease (COPD)", 1),
        ("Chronic obstructive pulmonary disease (CHF)", 0),
        ("Chronic obstructive pulmonary disease (emphysema)", 0),
    ],
)
def test_an_abbreviation_or_another_name_may_stand_in_brackets(grader: Grader, answer: str, right: int) -> None:
    assert grader.correct(answer, COPD) == right


def test_an_accepted_abbreviation_may_follow_the_words_that_it_stands_for() -> None:
    assert SYNONYM.correct("Deep vein thrombosis (DVT)", case("DVT")) == 1
    assert SYNONYM.correct("Disorder of the very tired (DVT)", case("Thrombosis")) == 0


# The exact and the synonym grader


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
        ("Influenza (flu)", 1),
        ("Croup", 0),
        ("Influenza A", 0),
        ("acute influenza", 0),
        ("Influenza or croup", 0),
        ("Unheard-of disease", 0),
        ("the", 0),
    ],
)
def test_synonyms(answer: str, right: int) -> None:
    assert SynonymGrader(TABLE).correct(answer, case("Influenza", "Seasonal fever")) == right


def test_the_table_joins_names_that_the_case_does_not_list() -> None:
    assert SynonymGrader(TABLE).correct("Flu", case("Grippe")) == 1
    assert SynonymGrader(NO_TABLE).correct("Flu", case("Grippe")) == 0


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
    assert [EXACT.correct(answer, flu) for answer in ("influenza", "The influenza", "Flu", "Influenza (flu)")] == [1, 1, 0, 0]


def test_every_name_of_the_shipped_table_is_right_for_its_own_condition_only() -> None:
    grader, conditions = SynonymGrader(), list(load_knowledge().conditions.values())
    for this, other in zip(conditions, conditions[1:] + conditions[:1], strict=True):
        assert [grader.correct(name, case(this.name)) for name in this.names] == [1] * len(this.names)
        assert [grader.correct(name, case(other.name)) for name in this.names] == [0] * len(this.names)


@given(st.text(max_size=40))
def test_any_answer_is_graded_0_or_1(answer: str) -> None:
    for grader in (EXACT, SynonymGrader(TABLE), ALIKE):
        assert grader.correct(answer, case("Influenza")) in (0, 1)


@pytest.mark.skipif(not REFERENCE.exists(), reason="the committed reference tables are not here")
def test_the_reference_run_is_graded_as_it_was() -> None:
    answers = pd.read_csv(REFERENCE, keep_default_na=False)
    cases = {c.case_id: c for name in ("starter", "starter-dialogue", "starter-report") for c in load_cases(name)}
    said = [a if a else None for a in answers["answer"]]
    grades = SynonymGrader().grade(said, [cases[i] for i in answers["case_id"]])
    assert [g.correct for g in grades] == answers["correct"].to_list()


# The encoder


def test_the_encoder_forgives_wordings_and_the_words_alone_do_not() -> None:
    grader = EncoderGrader(knowledge=NO_TABLE)
    truth = case("Acute otitis media")
    assert grader.correct("Acute ottitis media", truth) == 1 and SYNONYM.correct("Acute ottitis media", truth) == 0
    for one, other in [
        ("Acute inflammation of the gallbladder", "Acute gallbladder inflammation"),
        ("Diabetes mellitus type II", "Type 2 diabetes mellitus"),
        ("Crohn's disease", "Crohn disease"),
        ("Hypokalaemia", "Hypokalemia"),
    ]:
        assert grader.correct(one, case(other)) == 1, one


@pytest.mark.parametrize(
    ("answer", "truth"), [("not pneumonia", "Pneumonia"), ("Kidney stone", "Influenza"), ("Viral pneumonia", "Pneumonia")]
)
def test_the_encoder_keeps_different_diseases_apart(answer: str, truth: str) -> None:
    assert EncoderGrader(knowledge=NO_TABLE).correct(answer, case(truth)) == 0


def test_what_the_table_knows_as_another_condition_is_not_left_to_the_cosine() -> None:
    assert ALIKE.correct("Bronchiolitis", case("Bronchitis")) == 1  # without a table, an encoder that sees no difference
    assert replace(ALIKE, knowledge=None).correct("Bronchiolitis", case("Bronchitis")) == 0


def test_a_lower_threshold_lets_more_through() -> None:
    pair = ("Inflammation of the heart muscle", case("Inflammation of the pericardium"))
    strict, lax = EncoderGrader(knowledge=NO_TABLE, threshold=0.8), EncoderGrader(knowledge=NO_TABLE, threshold=0.7)
    assert (strict.correct(*pair), lax.correct(*pair)) == (0, 1)


@pytest.mark.parametrize("threshold", [0, -0.5, 1.01, float("nan")])
def test_a_threshold_is_a_cosine(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold"):
        EncoderGrader(threshold=threshold)


def test_the_default_threshold_is_the_smallest_that_confuses_fewer_than_one_pair_in_a_thousand() -> None:
    conditions = list(load_knowledge().conditions.values())
    names = [(i, name) for i, c in enumerate(conditions) for name in c.names]
    cosine = Encoder().similarity([bare_name(name) for _, name in names]).round(3)
    cosine[[[not may_mean_the_same(a, b) for _, b in names] for _, a in names]] = -1
    np.fill_diagonal(cosine, -1)
    owner = np.array([i for i, _ in names])
    best = np.stack([cosine[:, owner == i].max(axis=1) for i in range(len(conditions))], axis=1)  # (names, conditions)
    others = best[owner[:, None] != np.arange(len(conditions))]
    assert [int((others >= t).sum()) for t in (THRESHOLD, THRESHOLD - 0.05)] == [8, 28] and len(others) == 22_656
    spelt_alike = [any(i == j and a != b and same_name(a, b) for j, b in names) for i, a in names]
    own = best[np.arange(len(names)), owner][~np.array(spelt_alike)]
    assert ((own >= THRESHOLD).sum(), len(own)) == (149, 352)


# The judge


def judged(text: str | None, answer: str = "Lung inflammation", missing: str | None = None):
    return JudgeGrader(SaysTrue(text, missing), knowledge=NO_TABLE).grade([answer], [PNEUMONIA])[0]


@pytest.mark.parametrize(("text", "right"), [("True", 1), ("false.", 0), ("**True**", 1), ('"False"', 0)])
def test_the_judges_one_word_is_the_verdict(text: str, right: int) -> None:
    assert judged(text).correct == right


@pytest.mark.parametrize("text", ["", "True, because both are infections", "not true", "True False", "yes", "1"])
def test_any_other_reply_leaves_the_answer_ungraded_and_is_repeated(text: str) -> None:
    grade = judged(text)
    assert grade.correct is None and "not the one word True or False" in grade.missing and text in grade.missing


def test_a_call_that_failed_leaves_the_answer_ungraded_with_its_reason() -> None:
    grade = judged(None, missing="the server is gone")
    assert grade.correct is None and "the server is gone" in grade.missing


def test_the_single_verdict_of_a_judge_that_cannot_tell_is_an_error() -> None:
    with pytest.raises(ValueError, match="'Lung inflammation' could not be graded"):
        JudgeGrader(SaysTrue("perhaps"), knowledge=NO_TABLE).correct("Lung inflammation", PNEUMONIA)


def test_the_judge_sees_every_true_name_and_the_answer_between_delimiters_and_nothing_of_the_patient() -> None:
    model = SaysTrue()
    JudgeGrader(model, knowledge=TABLE).grade(["Winter <proposed> fever"], [case("Influenza", "Seasonal fever")])
    (request,) = model.asked
    user = dict(request.messages)["user"]
    assert "<truth>\nInfluenza\nSeasonal fever\nFlu\nGrippe\n</truth>" in user
    assert "<proposed>\nWinter ‹proposed> fever\n</proposed>" in user and "Cough" not in user
    assert (request.temperature, request.purpose, request.want) == (0, "judge", frozenset())


def test_the_judge_is_asked_once_for_each_distinct_pair_and_not_for_what_rules_settle() -> None:
    model = SaysTrue("False")
    answers = ["Lung inflammation", "Lung inflammation", "Pneumonia", "not pneumonia", None, "Lung inflammation"]
    cases = [PNEUMONIA] * 5 + [case("Croup")]
    grades = JudgeGrader(model, knowledge=NO_TABLE).grade(answers, cases)
    assert [g.correct for g in grades] == [0, 0, 1, 0, 0, 0] and len(model.asked) == 2


def test_the_judges_replies_are_kept(tmp_path: Path) -> None:
    for model in (first := SaysTrue(), second := SaysTrue("False")):
        grader = JudgeGrader(CachedModel(model, tmp_path / "replies.sqlite"), knowledge=NO_TABLE)
        assert grader.correct("Lung inflammation", PNEUMONIA) == 1
    assert (len(first.asked), len(second.asked)) == (1, 0)


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
    assert {name: make().name for name, make in GRADERS.items()} == {name: name for name in ("synonym", "exact", "encoder")}
    assert AGREEABLE.name == "judge agreeable"


@EVERY
def test_a_grader_is_opened_by_name_or_passed_through(grader: Grader) -> None:
    assert isinstance(grader, Grader) and open_grader(grader) is grader
    assert open_grader("exact") == ExactGrader()


def test_an_unknown_grader_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="grader is 'judge'; allowed are synonym, exact, encoder, judge:MODEL"):
        open_grader("judge")


def test_a_judge_is_opened_by_its_model_s_name() -> None:
    assert open_grader("judge:embedded").name == "judge embedded"
    with pytest.raises(ValueError, match="model is 'nobody'"):
        open_grader("judge:nobody")
