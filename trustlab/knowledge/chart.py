"""Reads a patient's chart, and says it in a prompt. It stands in ``Case.patient`` under
:data:`FIELDS`. An illness or pregnancy that a told statement affirms is in it too."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter

from trustlab.files import DATA, read_yaml
from trustlab.records import Case, Statement, normalise

LISTS = {
    "allergies": "Allergies",
    "medication": "Current medication",
    "conditions": "Known illnesses",
    "tests_done": "Tests already done",
}
"""Fields that hold several phrases, with the head of their line."""
NUMBERS = ("age", "renal_function")
SEXES = {"f": "female", "m": "male"}
NOT_RECORDED, NONE = "not recorded", "none"


@dataclass(frozen=True)
class Chart:
    """A patient's chart. ``None`` means not recorded; an empty tuple means that there is none.
    ``age`` is in years, ``renal_function`` is the eGFR in ml/min/1.73 m²."""

    age: int | None = None
    sex: str | None = None
    pregnancy: str | None = None
    allergies: tuple[str, ...] | None = None
    medication: tuple[str, ...] | None = None
    conditions: tuple[str, ...] | None = None
    renal_function: int | None = None
    tests_done: tuple[str, ...] | None = None


FIELDS = tuple(field.name for field in fields(Chart))
"""Keys of ``Case.patient`` that make a chart."""


@dataclass(frozen=True)
class ChartFact:
    """An allergy, an illness or a state of pregnancy that a chart can hold."""

    id: str
    phrase: str
    synonyms: tuple[str, ...] = ()
    finding: str | None = None


@lru_cache(maxsize=1)
def chart_facts() -> dict[str, dict[str, ChartFact]]:
    """``data/knowledge/chart.yml``: allergies, illnesses and pregnancy, each fact by its id."""
    read = read_yaml(DATA / "knowledge" / "chart.yml")
    kinds = {"allergies": "allergies", "illnesses": "conditions", "pregnancy": "pregnancy"}
    facts = TypeAdapter(list[ChartFact])
    return {
        kind: {fact.id: fact for fact in facts.validate_python(read[key])}
        for kind, key in kinds.items()
    }


def by_phrase(facts: Mapping[str, ChartFact]) -> dict[str, ChartFact]:
    """The facts by what a chart calls them, normalised."""
    return {normalise(n): fact for fact in facts.values() for n in (fact.phrase, *fact.synonyms)}


def chart_of(case: Case, shown: Sequence[Statement] | None = None) -> Chart:
    """The chart of a case after the statements ``shown`` (``None``: all) have been told.
    ``ValueError`` names a field whose value is not allowed."""
    chart = chart_from(case.patient, case.case_id)
    told = case.statements if shown is None else shown
    affirmed = {s.finding for s in told if s.affirmed and s.finding}
    illnesses = chart_facts()["illnesses"]
    phrases = by_phrase(illnesses)
    known = [phrases.get(normalise(phrase)) for phrase in chart.conditions or ()]
    told_of = [fact for fact in illnesses.values() if fact.finding in affirmed]
    if new := [fact.phrase for fact in told_of if fact not in known]:
        chart = replace(chart, conditions=(*(chart.conditions or ()), *new))
    if chart.pregnancy is None and "pregnancy" in affirmed:
        chart = replace(chart, pregnancy="pregnant")
    return chart


def chart_from(patient: Mapping[str, object], case_id: str = "") -> Chart:
    """The chart that the fields of ``patient`` make; other keys are let be. ``ValueError`` for a
    value that is none.
    As in a table's cells, a list may be one text with semicolons ("none" for no entry), and a
    number may be text."""
    found: dict[str, Any] = {}
    for field in FIELDS:
        value = patient.get(field)
        if value is None or (isinstance(value, str) and not value.strip()):
            continue
        if field in LISTS:
            found[field], allowed = _names(value), "a list of names, empty for none"
        elif field in NUMBERS:
            found[field], allowed = _number(value), "a number from 0 to 300"
        else:
            found[field], allowed = _words(value, field), "a text on one line"
        if found[field] is None:
            raise ValueError(f"{case_id or 'patient'}: {field} is {value!r}; allowed is {allowed}")
    return Chart(**found)


def _names(value: object) -> tuple[str, ...] | None:
    parts = value.split(";") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple):
        return None
    if not all(isinstance(part, str) and part.isprintable() for part in parts):
        return None
    names = tuple(part.strip() for part in parts if part.strip())
    return () if [name.casefold() for name in names] == [NONE] else names


def _number(value: object) -> int | None:
    try:
        number = float(str(value)) if not isinstance(value, bool) else math.nan
    except ValueError:
        return None
    return int(number) if 0 <= number <= 300 else None


def _words(value: object, field: str) -> str | None:
    if not (isinstance(value, str) and value.isprintable()):
        return None
    word = value.strip()
    return SEXES.get(word.casefold(), word.casefold()) if field == "sex" else word


def chart_text(chart: Chart) -> str:
    """What a model reads: a line for each field."""

    def line(head: str, words: str | None) -> str:
        return f"{head}: {words or NOT_RECORDED}"

    lists = {field: getattr(chart, field) for field in LISTS}
    several = [
        line(LISTS[field], None if names is None else ", ".join(names) or NONE)
        for field, names in lists.items()
    ]
    egfr = None if chart.renal_function is None else f"eGFR {chart.renal_function} ml/min"
    lines = [
        line("Age", None if chart.age is None else f"{chart.age} years"),
        line("Sex", chart.sex),
        *([] if chart.sex == "male" else [line("Pregnancy", chart.pregnancy)]),
        *several[:3],
        line("Kidney function", egfr),
        several[3],
    ]
    return "\n".join(lines)
