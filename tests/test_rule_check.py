"""The rule check: prescriptions and tests held against a chart, each verdict worked out by hand
from a small table."""

from __future__ import annotations

import pytest
from each import each
from made_safety import MADE

from trustlab.records import Mark, Plan, Prescription
from trustlab.safety.chart import Chart
from trustlab.safety.rule_check import (
    DUPLICATE,
    REPEAT,
    REPEAT_IN_PLAN,
    check_prescriptions,
    check_tests,
)

CAUTION = "SAFE WITH CAUTION"


def plan(*drugs: str, tests: tuple[str, ...] = ()) -> Plan:
    return Plan(tuple(Prescription(drug, "1 g", "by mouth") for drug in drugs), tests)


def rated(
    chart: Chart, *drugs: str, diagnosis: str | None = None
) -> list[tuple[str | None, str | None, str | None]]:
    """(rating, words that speak against it, rule) of each drug."""
    return [
        (m.verdict, m.quote, m.rule)
        for m in check_prescriptions(plan(*drugs), chart, diagnosis, MADE)
    ]


def flagged(
    chart: Chart, *tests: str, drugs: tuple[str, ...] = ()
) -> list[tuple[str | None, str | None, str | None]]:
    return [
        (m.verdict, m.quote, m.rule)
        for m in check_tests(plan(*drugs, tests=tests), chart, None, MADE)
    ]


SAFE, FINE, UNKNOWN = ("SAFE", None, None), ("FINE", None, None), ("UNKNOWN", None, None)


# Prescriptions


def test_a_mark_names_the_words_and_the_rule_that_speak_against_a_drug() -> None:
    marks = check_prescriptions(
        plan("Amoxil", "cefalexin"), Chart(allergies=("latex", "Pen V")), safety=MADE
    )
    assert marks == (
        Mark("UNSAFE", "Pen V", True, "why allergy", "allergy"),
        Mark(CAUTION, "Pen V", True, "why cross", "cross"),
    )


def test_nothing_recorded_speaks_against_nothing() -> None:
    every = tuple(MADE.drugs)
    assert [m for drug in every for m in check_prescriptions(plan(drug), Chart(), safety=MADE)] == [
        Mark("SAFE")
    ] * len(every)
    nothing = Chart(
        allergies=(), medication=(), conditions=(), tests_done=(), pregnancy="not pregnant"
    )
    assert rated(nothing, "amoxicillin", "ibuprofen") == [SAFE, SAFE]


@each(
    ("chart", "expected"),
    [
        (Chart(medication=("warfarin",)), ("UNSAFE", "warfarin", "bleeding")),
        (Chart(medication=("Warfarin 3 mg",)), ("UNSAFE", "Warfarin 3 mg", "bleeding")),
        (Chart(medication=("diclofenac",)), (CAUTION, "diclofenac", "two_nsaids")),
        (Chart(medication=("some herb", "diclofenac")), (CAUTION, "diclofenac", "two_nsaids")),
        (Chart(conditions=("Peptic  Ulcer",)), ("UNSAFE", "Peptic  Ulcer", "ulcer")),
        (
            Chart(conditions=("Peptic ulcer disease",)),
            ("UNSAFE", "Peptic ulcer disease", "ulcer"),
        ),  # the disease's own name
        (Chart(allergies=("asthma",)), SAFE),  # an allergy is no illness
        (Chart(pregnancy="pregnant"), ("UNSAFE", "pregnant", "unborn")),
        (Chart(pregnancy="not pregnant"), SAFE),
        (Chart(pregnancy="who knows"), SAFE),
        (Chart(age=74), SAFE),
        (Chart(age=75), (CAUTION, "75 years", "old")),
        (Chart(renal_function=30), SAFE),
        (Chart(renal_function=29), ("UNSAFE", "eGFR 29 ml/min", "kidneys")),
        (Chart(age=29, renal_function=75), SAFE),  # no limit is read off the other number
    ],
)
def test_each_kind_of_fact_speaks_against_ibuprofen(chart: Chart, expected: tuple) -> None:
    assert rated(chart, "ibuprofen") == [expected]


@pytest.mark.parametrize(
    ("age", "expected"), [(0, "UNSAFE"), (11, "UNSAFE"), (12, "SAFE"), (13, "SAFE")]
)
def test_an_age_below_which_a_drug_is_unsafe_is_not_itself_too_young(
    age: int, expected: str
) -> None:
    assert rated(Chart(age=age), "cefalexin")[0][0] == expected


def test_drugs_of_one_plan_speak_against_each_other() -> None:
    assert rated(Chart(), "ibuprofen", "warfarin") == [("UNSAFE", "warfarin", "bleeding"), SAFE]
    assert rated(Chart(), "ibuprofen", "diclofenac") == [
        (CAUTION, "diclofenac", "two_nsaids"),
        (CAUTION, "ibuprofen", "two_nsaids"),
    ]


def test_a_drug_taken_or_planned_already_is_a_duplicate_and_no_interaction_with_itself() -> None:
    taken = check_prescriptions(plan("ibuprofen"), Chart(medication=("ibuprofen",)), safety=MADE)
    assert taken == (Mark(CAUTION, "ibuprofen", True, DUPLICATE, "duplicate"),)
    twice = check_prescriptions(plan("amoxicillin", "cefalexin", "Amoxil"), Chart(), safety=MADE)
    assert twice == (
        Mark("SAFE"),
        Mark("SAFE"),
        Mark(CAUTION, "amoxicillin", True, REPEAT_IN_PLAN, "duplicate"),
    )


def test_the_worst_rating_wins_and_of_several_the_first_rule() -> None:
    worse_later = Chart(age=80, conditions=("asthma",), renal_function=20)
    assert rated(worse_later, "ibuprofen") == [("UNSAFE", "eGFR 20 ml/min", "kidneys")]
    assert rated(Chart(medication=("ibuprofen", "warfarin")), "ibuprofen") == [
        ("UNSAFE", "warfarin", "bleeding")
    ]
    both_unsafe = Chart(conditions=("peptic ulcer",), pregnancy="pregnant", renal_function=20)
    assert rated(both_unsafe, "ibuprofen") == [("UNSAFE", "peptic ulcer", "ulcer")]


def test_the_diagnosis_counts_as_an_illness_of_the_patient() -> None:
    assert rated(Chart(), "ibuprofen", diagnosis="Peptic ulcer disease") == [
        ("UNSAFE", "Peptic ulcer disease", "ulcer")
    ]
    recorded = Chart(conditions=("peptic ulcer",))
    assert rated(recorded, "ibuprofen", diagnosis="Peptic ulcer disease") == [
        ("UNSAFE", "peptic ulcer", "ulcer")
    ]
    assert (
        rated(Chart(), "ibuprofen", diagnosis="Influenza")
        == rated(Chart(), "ibuprofen", diagnosis="")
        == [SAFE]
    )


def test_a_drug_that_the_table_does_not_know_is_unknown_whatever_the_chart_says() -> None:
    chart = Chart(
        age=80, pregnancy="pregnant", medication=("warfarin", "zelotrine"), allergies=("zelotrine",)
    )
    assert rated(chart, "zelotrine", "ibuprofan", "") == [UNKNOWN] * 3
    assert (
        check_prescriptions(plan("zelotrine"), chart, safety=MADE)[0].reason
        == "the table does not know it"
    )
    assert rated(Chart(), "ibuprofen", "zelotrine") == [SAFE, UNKNOWN]


@each(
    "name",
    [
        "amoxicillin", "AMOXICILLIN", "Amoxil", "amoxicillin 500 mg", "amoxicillin (oral)",
        "Amoxicillin, 500 mg", "amoxicillin capsules", "oral amoxicillin",
        "amoxicillin suspension 250 mg/5 ml", "amoxicillin [generic]",
    ],
)  # fmt: skip
def test_a_drug_is_known_with_dose_and_form_beside_its_name(name: str) -> None:
    assert MADE.drug_named(name) is MADE.drugs["amoxicillin"]


@each(
    "name",
    [
        "",
        " ",
        "500 mg",
        "amoxicilin",
        "not amoxicillin",
        "amoxicillin or cefalexin",
        "penicillin",
        "tablets",
        "CT of the abdomen",
    ],
)
def test_no_drug_is_guessed(name: str) -> None:
    assert MADE.drug_named(name) is None


def test_an_empty_plan_has_no_marks() -> None:
    assert (
        check_prescriptions(Plan(), Chart(age=80), safety=MADE)
        == check_tests(Plan(), Chart(age=80), safety=MADE)
        == ()
    )


# Tests


def test_facts_of_the_chart_make_a_test_risky() -> None:
    assert flagged(Chart(pregnancy="pregnant"), "abdominal CT", "ultrasound of the abdomen")[0] == (
        "RISKY",
        "pregnant",
        "radiation",
    )
    assert flagged(Chart(sex="female"), "chest X-ray") == [("RISKY", "female", "women")]
    assert flagged(Chart(sex="male", pregnancy="not pregnant"), "chest X-ray", "troponin") == [
        FINE,
        FINE,
    ]


def test_a_test_is_held_against_current_drugs_and_not_against_new_ones() -> None:
    assert flagged(Chart(medication=("warfarin",)), "ultrasound of the abdomen") == [
        ("RISKY", "warfarin", "bruise")
    ]
    assert flagged(Chart(), "ultrasound of the abdomen", drugs=("warfarin",)) == [FINE]


def test_another_test_of_the_plan_makes_one_redundant_whatever_their_order() -> None:
    redundant = ("REDUNDANT", "CT of the abdomen", "seen")
    assert flagged(Chart(), "ultrasound of the abdomen", "CT of the abdomen") == [redundant, FINE]
    assert flagged(Chart(), "CT of the abdomen", "ultrasound of the abdomen") == [FINE, redundant]


def test_a_test_already_done_makes_itself_and_others_redundant_unless_it_is_serial() -> None:
    done = Chart(tests_done=("abdominal CT", "troponin"))
    again = check_tests(plan(tests=("CT of the abdomen", "troponin")), done, safety=MADE)
    assert again == (Mark("REDUNDANT", "abdominal CT", True, REPEAT, "repeat"), Mark("FINE"))
    assert flagged(done, "ultrasound of the abdomen") == [
        ("REDUNDANT", "abdominal CT", "seen_before")
    ]


def test_a_test_ordered_twice_is_redundant_the_second_time_even_a_serial_one() -> None:
    marks = check_tests(
        plan(tests=("chest X-ray", "troponin", "Chest x-ray", "troponin")), Chart(), safety=MADE
    )
    assert marks == (
        Mark("FINE"),
        Mark("FINE"),
        Mark("REDUNDANT", "chest X-ray", True, REPEAT_IN_PLAN, "repeat"),
        Mark("REDUNDANT", "troponin", True, REPEAT_IN_PLAN, "repeat"),
    )


def test_risky_comes_before_redundant() -> None:
    chart = Chart(pregnancy="pregnant", tests_done=("CT of the abdomen",))
    assert flagged(chart, "CT of the abdomen") == [("RISKY", "pregnant", "radiation")]


def test_a_test_that_the_table_does_not_know_is_unknown() -> None:
    assert flagged(
        Chart(pregnancy="pregnant", tests_done=("aura reading",)), "aura reading", "ibuprofen"
    ) == [UNKNOWN, UNKNOWN]


# The table that comes with the package


@each(
    ("drug", "chart", "rating"),
    [
        ("Augmentin", Chart(allergies=("penicillin",)), "UNSAFE"),
        ("cefalexin", Chart(allergies=("penicillin",)), CAUTION),
        ("ibuprofen", Chart(allergies=("aspirin",)), "UNSAFE"),
        ("ibuprofen", Chart(medication=("warfarin",)), "UNSAFE"),
        ("clarithromycin", Chart(medication=("simvastatin",)), "UNSAFE"),
        ("bisoprolol", Chart(conditions=("asthma",)), "UNSAFE"),
        ("ibuprofen", Chart(conditions=("peptic ulcer",)), "UNSAFE"),
        ("doxycycline", Chart(pregnancy="pregnant"), "UNSAFE"),
        ("ibuprofen", Chart(renal_function=29), "UNSAFE"),
        ("aspirin", Chart(age=15), "UNSAFE"),
        ("aspirin", Chart(age=16), "SAFE"),
        ("paracetamol", Chart(age=40, conditions=("asthma",), pregnancy="pregnant"), "SAFE"),
    ],
)
def test_textbook_facts_are_in_the_table(drug: str, chart: Chart, rating: str) -> None:
    assert check_prescriptions(plan(drug), chart)[0].verdict == rating
