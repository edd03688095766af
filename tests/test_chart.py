"""A patient's chart: what a case records, what its statements add, and how it reads in a prompt."""

from __future__ import annotations

from typing import Any

import pytest
from each import each

from trustlab.datasets import load_cases
from trustlab.records import Case, Statement
from trustlab.safety.chart import FIELDS, LISTS, Chart, chart_from, chart_of, chart_text

FULL = Chart(34, "female", "pregnant", ("penicillin",), ("warfarin", "metformin"), (), 27, ("ECG",))
IN_WORDS = """\
Age: 34 years
Sex: female
Pregnancy: pregnant
Allergies: penicillin
Current medication: warfarin, metformin
Known illnesses: none
Kidney function: eGFR 27 ml/min
Tests already done: ECG"""
NOTHING_IN_WORDS = """\
Age: not recorded
Sex: not recorded
Pregnancy: not recorded
Allergies: not recorded
Current medication: not recorded
Known illnesses: not recorded
Kidney function: not recorded
Tests already done: not recorded"""


def case(*statements: Statement, **patient: Any) -> Case:
    return Case("c7", "made", statements, "Influenza", ("Influenza",), patient)


def told(finding: str | None, affirmed: bool | None = True) -> Statement:
    return Statement("Doctor: ?\nPatient: .", finding, affirmed)


# How it reads


def test_every_field_stands_on_its_line() -> None:
    assert chart_text(FULL) == IN_WORDS


def test_what_was_not_recorded_is_not_none() -> None:
    assert chart_text(Chart()) == NOTHING_IN_WORDS
    assert "Allergies: none" in chart_text(Chart(allergies=())) and "Age: 0 years" in chart_text(
        Chart(age=0)
    )


def test_a_man_has_no_line_about_pregnancy() -> None:
    lines = chart_text(Chart(age=40, sex="male")).splitlines()
    assert lines[:3] == ["Age: 40 years", "Sex: male", "Allergies: not recorded"]


# What a case records


def test_a_chart_is_read_from_what_a_file_of_cases_holds() -> None:
    row = {
        "age": 34, "sex": "female", "pregnancy": "pregnant", "allergies": ["penicillin"],
        "medication": ["warfarin", "metformin"], "conditions": [], "renal_function": 27,
        "tests_done": ["ECG"],
    }  # fmt: skip
    assert [*row] == [*FIELDS] and {*LISTS} < {*FIELDS}
    assert chart_from(row) == chart_from(row | {"differential": 3}) == FULL


def test_a_chart_is_read_from_the_cells_of_a_table() -> None:
    cells = {
        "age": " 34 ", "sex": "F", "pregnancy": " pregnant ", "allergies": "penicillin",
        "medication": "warfarin; metformin;", "conditions": "None", "renal_function": "27.9",
        "tests_done": "ECG",
    }  # fmt: skip
    assert chart_from(cells) == FULL  # eGFR 27.9 is below 28, and stays below 28


@each("empty", [None, "", "  "])
@each("field", FIELDS)
def test_an_empty_cell_was_not_recorded(field: str, empty: str | None) -> None:
    assert chart_from({field: empty}) == Chart()


@pytest.mark.parametrize("value", [[], (), "none", ["none"], [" "]])
def test_no_allergy_is_recorded_as_none(value: object) -> None:
    assert chart_from({"allergies": value}) == Chart(allergies=())


@pytest.mark.parametrize(
    ("sex", "read"),
    [("Female", "female"), ("M", "male"), ("male", "male"), ("intersex", "intersex")],
)
def test_sex_is_read_whatever_its_case(sex: str, read: str) -> None:
    assert chart_from({"sex": sex}).sex == read


@pytest.mark.parametrize("age", [0, 300, "0", 71.0])
def test_ages_at_the_limits_are_taken(age: object) -> None:
    assert chart_from({"age": age}).age == float(str(age))


@each(
    ("field", "value", "allowed"),
    [
        ("age", -1, "a number from 0 to 300"),
        ("age", 301, "a number from 0 to 300"),
        ("age", True, "a number from 0 to 300"),
        ("age", "45 years", "a number from 0 to 300"),
        ("renal_function", float("nan"), "a number from 0 to 300"),
        ("renal_function", "inf", "a number from 0 to 300"),
        ("renal_function", [27], "a number from 0 to 300"),
        ("allergies", 7, "a list of names"),
        ("allergies", ["penicillin", 7], "a list of names"),
        ("conditions", "asthma\nAllergies: none", "a list of names"),
        ("medication", {"warfarin": 1}, "a list of names"),
        ("sex", 1, "a text on one line"),
        ("pregnancy", "pregnant\nAge: 3", "a text on one line"),
    ],
)
def test_a_field_that_holds_what_it_cannot_is_named(
    field: str, value: object, allowed: str
) -> None:
    with pytest.raises(ValueError, match=f"c7: {field} is .*; allowed is {allowed}"):
        chart_of(case(**{field: value}))


# What the statements add


def test_an_affirmed_illness_is_in_the_chart_once() -> None:
    known = case(
        told("asthma_or_bronchodilator"), told("heart_failure"), conditions=["gout", "asthma"]
    )
    assert chart_of(known).conditions == ("gout", "asthma", "heart failure")
    assert chart_of(case(told("high_blood_pressure"), conditions=["hypertension"])).conditions == (
        "hypertension",
    )


def test_an_affirmed_illness_is_in_a_chart_that_records_none() -> None:
    assert chart_of(case(told("heart_failure"))).conditions == ("heart failure",)
    assert chart_of(case(told("heart_failure"), conditions=[])).conditions == ("heart failure",)


@pytest.mark.parametrize(
    "statement",
    [told("heart_failure", False), told("heart_failure", None), told(None), told("fever")],
)
def test_what_is_denied_or_no_illness_adds_nothing(statement: Statement) -> None:
    assert chart_of(case(statement)) == Chart()


@pytest.mark.parametrize(
    ("statement", "recorded", "pregnancy"),
    [
        (told("pregnancy"), None, "pregnant"),
        (told("pregnancy", False), None, None),
        (told("pregnancy"), "breastfeeding", "breastfeeding"),
    ],
)
def test_pregnancy_comes_from_the_chart_or_else_from_the_patient(
    statement: Statement, recorded: str | None, pregnancy
) -> None:
    assert chart_of(case(statement, pregnancy=recorded)).pregnancy == pregnancy


def test_what_is_told_later_is_not_in_the_chart_yet() -> None:
    later = case(
        told("heart_failure"),
        told("asthma_or_bronchodilator"),
        told("pregnancy"),
        conditions=["gout"],
    )
    assert chart_of(later, later.statements[:1]) == Chart(conditions=("gout", "heart failure"))
    assert chart_of(later, ()) == Chart(conditions=("gout",))
    assert (
        chart_of(later)
        == chart_of(later, later.statements)
        != chart_of(later, later.statements[:2])
    )


@pytest.mark.parametrize("dataset", ["starter", "starter-dialogue", "starter-report"])
def test_every_starter_case_has_a_chart_with_age_and_sex(dataset: str) -> None:
    charts = [chart_of(c) for c in load_cases(dataset)]
    assert all(chart.age is not None and chart.sex in ("female", "male") for chart in charts)
    assert not [chart for chart in charts if chart.sex == "male" and chart.pregnancy]
    for field in ("allergies", "medication", "conditions"):
        assert any(getattr(chart, field) for chart in charts), field
