"""The rule check: each prescription and test of a plan held against the chart by the safety table,
without a model.

It stands beside the reviewers, so that what they miss and what they object to in vain can be
counted. It knows the table and nothing else: what the chart does not record, and doses, it cannot
check.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from trustlab.knowledge import load_knowledge
from trustlab.records import FLAGS, RATINGS, Mark, Plan
from trustlab.safety.chart import Chart
from trustlab.safety.table import ChartFact, Entry, Rule, Safety, load_safety

DUPLICATE = "the patient takes it already"
REPEAT = "it has been done already"
REPEAT_IN_PLAN = "it stands in the plan twice"
_WORST = {v: i for i, v in enumerate(("UNSAFE", "SAFE WITH CAUTION", "RISKY", "REDUNDANT"))}


def check_prescriptions(
    plan: Plan, chart: Chart, diagnosis: str | None = None, safety: Safety | None = None
) -> tuple[Mark, ...]:
    """The worst rating that a rule leads to for each prescription, SAFE where none does.

    A drug that the table does not know is UNKNOWN. One that the patient takes already, or that
    stands earlier in the plan, is SAFE WITH CAUTION, unless some rule is worse. The ``diagnosis``
    counts as an illness.
    """
    safety = safety or load_safety()
    chart = _with_diagnosis(chart, diagnosis, safety)
    drugs = [safety.drug_named(p.drug) for p in plan.prescriptions]
    taken = [(name, safety.drug_named(name)) for name in chart.medication or ()]
    marks = []
    for i, drug in enumerate(drugs):
        others = [
            (p.drug, d)
            for j, (p, d) in enumerate(zip(plan.prescriptions, drugs, strict=True))
            if j != i
        ]
        hits = list(_hits(drug, chart, safety, taken + others, [], [])) if drug else []
        hits += [
            ("SAFE WITH CAUTION", name, DUPLICATE, "duplicate")
            for name, d in taken
            if d and d is drug
        ]
        hits += [
            ("SAFE WITH CAUTION", name, REPEAT_IN_PLAN, "duplicate")
            for name, d in others[:i]
            if d and d is drug
        ]
        marks.append(_mark(drug, hits, RATINGS[0]))
    return tuple(marks)


def check_tests(
    plan: Plan, chart: Chart, diagnosis: str | None = None, safety: Safety | None = None
) -> tuple[Mark, ...]:
    """The worst flag that a rule leads to for each test (RISKY before REDUNDANT), FINE where none
    does.

    A test that the table does not know is UNKNOWN. One that has been done already (unless it is a
    serial test), or that stands earlier in the plan, is REDUNDANT, unless it is RISKY. The
    ``diagnosis`` counts as an illness.
    """
    safety = safety or load_safety()
    chart = _with_diagnosis(chart, diagnosis, safety)
    tests = [safety.test_named(name) for name in plan.tests]
    done = [(name, safety.test_named(name)) for name in chart.tests_done or ()]
    taken = [(name, safety.drug_named(name)) for name in chart.medication or ()]
    marks = []
    for i, test in enumerate(tests):
        also = [
            (name, t) for j, (name, t) in enumerate(zip(plan.tests, tests, strict=True)) if j != i
        ]
        hits = list(_hits(test, chart, safety, taken, done, also)) if test else []
        hits += [
            ("REDUNDANT", name, REPEAT, "repeat")
            for name, t in done
            if t and t is test and not t.serial
        ]
        hits += [
            ("REDUNDANT", name, REPEAT_IN_PLAN, "repeat") for name, t in also[:i] if t and t is test
        ]
        marks.append(_mark(test, hits, FLAGS[0]))
    return tuple(marks)


def _with_diagnosis(chart: Chart, diagnosis: str | None, safety: Safety) -> Chart:
    """The chart with the diagnosis among its illnesses, where a rule can speak of it."""
    if not diagnosis:
        return chart
    fact, listed = _illness(diagnosis, safety), chart.conditions or ()
    if fact is None or fact in [_illness(phrase, safety) for phrase in listed]:
        return chart
    return replace(chart, conditions=(*listed, diagnosis))


Named = Sequence[tuple[str, Entry | None]]
"""Names as they stand in chart or plan, and what they mean."""


def _hits(
    entry: Entry, chart: Chart, safety: Safety, taken: Named, done: Named, also: Named
) -> Iterator[tuple[str, str, str, str]]:
    """(verdict, the words that speak against it, why, rule) of each rule that holds."""
    lists = {"medication": taken, "done": done, "also": also}
    for rule in safety.rules_for(entry):
        if rule.kind in lists:
            words = [
                name
                for name, e in lists[rule.kind]
                if e and e is not entry and rule.values & e.kinds
            ]
        else:
            words = _said(rule, chart, safety)
        for said in words:
            yield rule.verdict, said, rule.reason, rule.id


def _said(rule: Rule, chart: Chart, safety: Safety) -> list[str]:
    """The words of the chart that the rule looks for."""
    kind, number = rule.kind, rule.number
    if kind == "allergy":
        return [
            phrase
            for phrase in chart.allergies or ()
            if _id(safety.fact_named("allergies", phrase)) in rule.values
        ]
    if kind == "condition":
        return [
            phrase
            for phrase in chart.conditions or ()
            if _id(_illness(phrase, safety)) in rule.values
        ]
    if kind == "pregnancy":
        return (
            [chart.pregnancy]
            if chart.pregnancy
            and _id(safety.fact_named("pregnancy", chart.pregnancy)) in rule.values
            else []
        )
    if kind == "sex":
        return [chart.sex] if chart.sex in rule.values and chart.sex else []
    if kind == "egfr_below":
        egfr = chart.renal_function
        return (
            [f"eGFR {egfr} ml/min"]
            if egfr is not None and number is not None and egfr < number
            else []
        )
    if chart.age is None or number is None:
        return []
    holds = (
        chart.age < number if kind == "age_below" else kind == "age_from" and chart.age >= number
    )
    return [f"{chart.age} years"] if holds else []


def _illness(phrase: str, safety: Safety) -> ChartFact | None:
    """The illness that a phrase of the chart, or any name of the condition that it names, means."""
    known = load_knowledge().condition_named(phrase)
    return next(
        (
            f
            for n in (phrase, *(known.names if known else ()))
            if (f := safety.fact_named("illnesses", n))
        ),
        None,
    )


def _id(fact: ChartFact | None) -> str | None:
    return fact.id if fact else None


def _mark(entry: Entry | None, hits: list[tuple[str, str, str, str]], fine: str) -> Mark:
    if entry is None:
        return Mark("UNKNOWN", reason="the table does not know it")
    if not hits:
        return Mark(fine)
    verdict, quote, reason, rule = min(
        hits, key=lambda hit: _WORST[hit[0]]
    )  # the first of the worst
    return Mark(verdict, quote, True, reason, rule)
