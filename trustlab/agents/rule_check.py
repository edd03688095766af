"""Checks each prescription and test by rules, without a model. What the table or the chart does not
hold, and doses, it cannot check."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from trustlab.agents.safety_table import ChartFact, Entry, Rule, Safety, load_safety
from trustlab.knowledge.chart import Chart
from trustlab.knowledge.findings import load_knowledge
from trustlab.records import FLAGS, RATINGS, Mark, Plan

DUPLICATE = "the patient takes it already"
REPEAT = "it has been done already"
REPEAT_IN_PLAN = "it stands in the plan twice"
_WORST = ("UNSAFE", "SAFE WITH CAUTION", "RISKY", "REDUNDANT")
Named = Sequence[tuple[str, Entry | None]]
"""Names as they stand in chart or plan, and what they mean."""


class Hit(NamedTuple):
    """A rule that holds, and the words that speak against a prescription or a test."""

    verdict: str
    quote: str
    reason: str
    rule: str


_TAKEN = Hit("SAFE WITH CAUTION", "", DUPLICATE, "duplicate")
_PRESCRIBED_TWICE = Hit("SAFE WITH CAUTION", "", REPEAT_IN_PLAN, "duplicate")
_DONE = Hit("REDUNDANT", "", REPEAT, "repeat")
_ORDERED_TWICE = Hit("REDUNDANT", "", REPEAT_IN_PLAN, "repeat")


def check_prescriptions(
    plan: Plan, chart: Chart, diagnosis: str | None = None, safety: Safety | None = None
) -> tuple[Mark, ...]:
    """The worst rating that a rule leads to for each prescription, SAFE where none does, UNKNOWN
    where the table does not know it; at least SAFE WITH CAUTION where the patient takes it already
    or it stands earlier in the plan. The ``diagnosis`` counts as an illness."""
    safety = safety or load_safety()
    chart = _with_diagnosis(chart, diagnosis, safety)
    drugs = _with_entries([p.drug for p in plan.prescriptions], safety.drug_named)
    medication = _with_entries(chart.medication, safety.drug_named)
    marks = []
    for i, (_, drug) in enumerate(drugs):
        earlier = drugs[:i]
        later = drugs[i + 1 :]
        lists = {"medication": medication + earlier + later}
        hits = _hits(drug, chart, safety, lists)
        hits += _again(drug, medication, _TAKEN)
        hits += _again(drug, earlier, _PRESCRIBED_TWICE)
        marks.append(_mark(drug, hits, RATINGS[0]))
    return tuple(marks)


def check_tests(
    plan: Plan, chart: Chart, diagnosis: str | None = None, safety: Safety | None = None
) -> tuple[Mark, ...]:
    """The worst flag that a rule leads to for each test (RISKY before REDUNDANT), else FINE,
    UNKNOWN as above; REDUNDANT, unless RISKY, where it has been done (but for a serial test) or
    stands earlier in the plan. The ``diagnosis`` counts as an illness."""
    safety = safety or load_safety()
    chart = _with_diagnosis(chart, diagnosis, safety)
    tests = _with_entries(plan.tests, safety.test_named)
    done = _with_entries(chart.tests_done, safety.test_named)
    medication = _with_entries(chart.medication, safety.drug_named)
    marks = []
    for i, (_, test) in enumerate(tests):
        earlier = tests[:i]
        later = tests[i + 1 :]
        lists = {"medication": medication, "done": done, "also": earlier + later}
        hits = _hits(test, chart, safety, lists)
        if test and not test.serial:
            hits += _again(test, done, _DONE)
        hits += _again(test, earlier, _ORDERED_TWICE)
        marks.append(_mark(test, hits, FLAGS[0]))
    return tuple(marks)


def _with_entries(
    names: Sequence[str] | None, entry_named: Callable[[str], Entry | None]
) -> list[tuple[str, Entry | None]]:
    """Each name, and the drug or test that it means."""
    return [(name, entry_named(name)) for name in names or ()]


def _with_diagnosis(chart: Chart, diagnosis: str | None, safety: Safety) -> Chart:
    """The chart with the diagnosis among its illnesses, where a rule can speak of it."""
    if not diagnosis:
        return chart
    listed = chart.conditions or ()
    fact = _fact("illnesses", diagnosis, safety)
    if fact is None or fact in [
        _fact("illnesses", phrase, safety) for phrase in listed
    ]:
        return chart
    return replace(chart, conditions=(*listed, diagnosis))


def _again(entry: Entry | None, named: Named, hit: Hit) -> list[Hit]:
    """The hit for each name that means the entry, with the name as its quote."""
    if entry is None:
        return []
    names = [name for name, other in named if other is entry]
    return [hit._replace(quote=name) for name in names]


def _hits(
    entry: Entry | None, chart: Chart, safety: Safety, lists: Mapping[str, Named]
) -> list[Hit]:
    """One for each rule that holds and words that speak against the entry; ``lists`` by the kind of
    rule that looks into them."""
    hits: list[Hit] = []
    if entry is None:
        return hits
    for rule in safety.rules_for(entry):
        if rule.kind in ("medication", "done", "also"):
            quotes = [
                name
                for name, other in lists.get(rule.kind, ())
                if other and other is not entry and rule.values & other.kinds
            ]
        else:
            quotes = _against(rule, chart, safety)
        for quote in quotes:
            hits.append(Hit(rule.verdict, quote, rule.reason, rule.id))
    return hits


def _against(rule: Rule, chart: Chart, safety: Safety) -> list[str]:
    """The words of the chart that the rule looks for."""
    phrases = {
        "allergy": ("allergies", chart.allergies),
        "condition": ("illnesses", chart.conditions),
        "pregnancy": ("pregnancy", (chart.pregnancy,) if chart.pregnancy else ()),
    }
    if rule.kind in phrases:
        kind, listed = phrases[rule.kind]
        facts = [(phrase, _fact(kind, phrase, safety)) for phrase in listed or ()]
        return [phrase for phrase, fact in facts if fact and fact.id in rule.values]
    if rule.kind == "sex":
        return [chart.sex] if chart.sex and chart.sex in rule.values else []
    if rule.kind == "egfr_below":
        value = chart.renal_function
        quote = f"eGFR {value} ml/min"
    else:
        value = chart.age
        quote = f"{value} years"
    if value is None or rule.number is None:
        return []
    is_reached = value >= rule.number
    is_from = rule.kind == "age_from"
    return [quote] if is_reached == is_from else []


def _fact(kind: str, phrase: str, safety: Safety) -> ChartFact | None:
    """What a phrase of the chart means; for an illness any name of the condition that it names
    counts."""
    names = [phrase]
    condition = (
        load_knowledge().condition_named(phrase) if kind == "illnesses" else None
    )
    if condition is not None:
        names += condition.names
    for name in names:
        fact = safety.fact_named(kind, name)
        if fact is not None:
            return fact
    return None


def _mark(entry: Entry | None, hits: list[Hit], fine: str) -> Mark:
    if entry is None:
        return Mark("UNKNOWN", reason="the table does not know it")
    if not hits:
        return Mark(fine)
    worst = min(hits, key=lambda hit: _WORST.index(hit.verdict))
    return Mark(worst.verdict, worst.quote, True, worst.reason, worst.rule)
