"""Reads a patient's chart, and says it in a prompt. It stands in ``Case.patient`` under
:data:`FIELDS`. An illness or pregnancy that a told statement affirms is in it too."""

from __future__ import annotations

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
NOT_RECORDED = "not recorded"
NONE = "none"


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
    tables = read_yaml(DATA / "knowledge" / "chart.yml")
    kinds = {
        "allergies": "allergies",
        "illnesses": "conditions",
        "pregnancy": "pregnancy",
    }
    list_of_facts = TypeAdapter(list[ChartFact])
    facts_by_kind = {}
    for kind, key in kinds.items():
        facts = list_of_facts.validate_python(tables[key])
        facts_by_kind[kind] = {fact.id: fact for fact in facts}
    return facts_by_kind


def by_phrase(facts: Mapping[str, ChartFact]) -> dict[str, ChartFact]:
    """The facts by what a chart calls them, normalised."""
    return {
        normalise(phrase): fact
        for fact in facts.values()
        for phrase in (fact.phrase, *fact.synonyms)
    }


def chart_of(case: Case, shown: Sequence[Statement] | None = None) -> Chart:
    """The chart of a case after the statements ``shown`` (``None``: all) have been told.
    ``ValueError`` names a field whose value is not allowed."""
    chart = chart_from(case.patient, case.case_id)
    statements = case.statements if shown is None else shown
    affirmed = {s.finding for s in statements if s.affirmed and s.finding}
    illnesses = chart_facts()["illnesses"]
    illness_of_phrase = by_phrase(illnesses)
    conditions = chart.conditions or ()
    recorded = [illness_of_phrase.get(normalise(phrase)) for phrase in conditions]
    new = [
        illness.phrase
        for illness in illnesses.values()
        if illness.finding in affirmed and illness not in recorded
    ]
    if new:
        chart = replace(chart, conditions=(*conditions, *new))
    if chart.pregnancy is None and "pregnancy" in affirmed:
        chart = replace(chart, pregnancy="pregnant")
    return chart


def chart_from(patient: Mapping[str, object], case_id: str = "") -> Chart:
    """The chart that the fields of ``patient`` make; other keys are let be. ``ValueError`` for a
    value that is none.
    As in a table's cells, a list may be one text with semicolons ("none" for no entry), and a
    number may be text."""
    values: dict[str, Any] = {}
    for field in FIELDS:
        value = patient.get(field)
        if value is None or (isinstance(value, str) and not value.strip()):
            continue
        values[field] = _field_value(field, value)
        if values[field] is None:
            allowed = _allowed(field)
            raise ValueError(
                f"{case_id or 'patient'}: {field} is {value!r}; allowed is {allowed}"
            )
    return Chart(**values)


def _field_value(field: str, value: object) -> Any:
    """A field's value as a chart holds it; ``None`` where it is not allowed."""
    if field in LISTS:
        return _phrases(value)
    if field in NUMBERS:
        return _whole_number(value)
    if not isinstance(value, str) or not value.isprintable():
        return None
    word = value.strip()
    if field == "sex":
        return SEXES.get(word.casefold(), word.casefold())
    return word


def _allowed(field: str) -> str:
    """What a field may hold, in words."""
    if field in LISTS:
        return "a list of names, empty for none"
    if field in NUMBERS:
        return "a number from 0 to 300"
    return "a text on one line"


def _phrases(value: object) -> tuple[str, ...] | None:
    """The phrases of a list, or of a text with semicolons."""
    parts = value.split(";") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple):
        return None
    phrases = []
    for part in parts:
        if not isinstance(part, str) or not part.isprintable():
            return None
        if part.strip():
            phrases.append(part.strip())
    if len(phrases) == 1 and phrases[0].casefold() == NONE:
        return ()
    return tuple(phrases)


def _whole_number(value: object) -> int | None:
    """A number from 0 to 300, cut to a whole one."""
    if isinstance(value, bool):
        return None
    try:
        number = float(str(value))
    except ValueError:
        return None
    return int(number) if 0 <= number <= 300 else None


def chart_text(chart: Chart) -> str:
    """What a model reads: a line for each field."""
    age = None if chart.age is None else f"{chart.age} years"
    egfr = (
        None if chart.renal_function is None else f"eGFR {chart.renal_function} ml/min"
    )
    lines = [_line("Age", age), _line("Sex", chart.sex)]
    if chart.sex != "male":
        lines.append(_line("Pregnancy", chart.pregnancy))
    lines.append(_list_line("allergies", chart.allergies))
    lines.append(_list_line("medication", chart.medication))
    lines.append(_list_line("conditions", chart.conditions))
    lines.append(_line("Kidney function", egfr))
    lines.append(_list_line("tests_done", chart.tests_done))
    return "\n".join(lines)


def _line(head: str, words: str | None) -> str:
    """A line of a prompt's chart."""
    return f"{head}: {words or NOT_RECORDED}"


def _list_line(field: str, phrases: tuple[str, ...] | None) -> str:
    """The line of a field that holds several phrases."""
    words = None
    if phrases is not None:
        words = ", ".join(phrases) or NONE
    return _line(LISTS[field], words)
