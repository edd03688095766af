"""A patient's chart: what a doctor knows beside what the patient tells, and how it reads in a
prompt.

It stands in ``Case.patient`` under :data:`FIELDS`; what is not there was not recorded. Where a case
says which finding each statement tells, an illness or pregnancy that has been affirmed so far is in
the chart too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from trustlab.records import Case, Statement
from trustlab.safety.table import Safety, load_safety

FIELDS = (
    "age",
    "sex",
    "pregnancy",
    "allergies",
    "medication",
    "conditions",
    "renal_function",
    "tests_done",
)
"""Keys of ``Case.patient`` that make a chart: age in years, renal function as eGFR in ml/min/1.73
m², the rest in words."""
LISTS = {
    "allergies": "Allergies",
    "medication": "Current medication",
    "conditions": "Known illnesses",
    "tests_done": "Tests already done",
}
"""Fields that hold several phrases, with the head of their line."""
NOT_RECORDED, NONE = "not recorded", "none"


@dataclass(frozen=True)
class Chart:
    """``None`` means not recorded; an empty tuple that there is none. ``renal_function`` is the
    eGFR in ml/min/1.73 m²."""

    age: int | None = None
    sex: str | None = None
    pregnancy: str | None = None
    allergies: tuple[str, ...] | None = None
    medication: tuple[str, ...] | None = None
    conditions: tuple[str, ...] | None = None
    renal_function: int | None = None
    tests_done: tuple[str, ...] | None = None


def chart_of(
    case: Case, shown: Sequence[Statement] | None = None, safety: Safety | None = None
) -> Chart:
    """The chart of a case of which the statements ``shown`` have been told (all of them where
    ``None``).

    ``ValueError`` names a field that holds what it cannot.
    """
    chart = chart_from(case.patient, case.case_id)
    safety = safety or load_safety()
    affirmed = {
        s.finding for s in (case.statements if shown is None else shown) if s.affirmed and s.finding
    }
    known = [safety.fact_named("illnesses", phrase) for phrase in chart.conditions or ()]
    if new := [
        f.phrase for f in safety.illnesses.values() if f.finding in affirmed and f not in known
    ]:
        chart = replace(chart, conditions=(*(chart.conditions or ()), *new))
    if chart.pregnancy is None and "pregnancy" in affirmed:
        chart = replace(chart, pregnancy="pregnant")
    return chart


def chart_from(patient: Mapping[str, object], case_id: str = "") -> Chart:
    """The chart that the fields of ``patient`` make; other keys are let be. ``ValueError`` for a
    value that is none.

    As in a table's cells, a list may be one text with semicolons ("none" for no entry), and a
    number may be text.
    """
    found: dict[str, object] = {}
    for field in FIELDS:
        value = patient.get(field)
        if value is None or (isinstance(value, str) and not value.strip()):
            continue
        read = (
            _list
            if field in LISTS
            else {"age": _number, "renal_function": _number, "sex": _sex}.get(field, _words)
        )
        allowed, found[field] = read(value)
        if found[field] is None:
            raise ValueError(f"{case_id or 'patient'}: {field} is {value!r}; allowed is {allowed}")
    return Chart(**found)  # pyright: ignore[reportArgumentType]


def _list(value: object) -> tuple[str, tuple[str, ...] | None]:
    parts = value.split(";") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or not all(
        isinstance(v, str) and v.isprintable() for v in parts
    ):
        return "a list of names, empty for none", None
    names = tuple(v.strip() for v in parts if v.strip())
    return "", () if [n.casefold() for n in names] == [NONE] else names


def _number(value: object) -> tuple[str, int | None]:
    allowed = "a number from 0 to 300"
    try:
        number = (
            math.nan
            if isinstance(value, bool) or not isinstance(value, int | float | str)
            else float(value)
        )
    except ValueError:
        number = math.nan
    return allowed, int(number) if 0 <= number <= 300 else None


def _sex(value: object) -> tuple[str, str | None]:
    allowed, word = _words(value)
    return allowed, word and {"f": "female", "m": "male"}.get(word.casefold(), word.casefold())


def _words(value: object) -> tuple[str, str | None]:
    fine = isinstance(value, str) and value.isprintable()
    return "a text on one line", str(value).strip() if fine else None


def chart_text(chart: Chart) -> str:
    """What a model reads: a line for each field."""
    lines = [
        f"Age: {NOT_RECORDED if chart.age is None else f'{chart.age} years'}",
        f"Sex: {chart.sex or NOT_RECORDED}",
    ]
    if chart.sex != "male":
        lines.append(f"Pregnancy: {chart.pregnancy or NOT_RECORDED}")
    for field, head in LISTS.items():
        if field == "tests_done":
            egfr = chart.renal_function
            lines.append(
                f"Kidney function: {NOT_RECORDED if egfr is None else f'eGFR {egfr} ml/min'}"
            )
        value = getattr(chart, field)
        lines.append(f"{head}: {NOT_RECORDED if value is None else ', '.join(value) or NONE}")
    return "\n".join(lines)
