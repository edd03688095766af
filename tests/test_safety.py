"""The chart, the safety table and the rule check: what a case records, what the table's files say,
and each verdict worked out by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from each import each
from saying import saying

from trustlab.agents.rule_check import check_prescriptions, check_tests
from trustlab.agents.safety_table import Entry, Regimen, Rule, Safety, Usual, load_safety
from trustlab.knowledge.chart import Chart, ChartFact, chart_from, chart_of, chart_text
from trustlab.knowledge.findings import load_knowledge
from trustlab.records import FLAGS, RATINGS, Case, Mark, Plan, Prescription, Statement, normalise

CAUTION = "SAFE WITH CAUTION"


# The chart

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
ROW = {
    "age": 34, "sex": "female", "pregnancy": "pregnant", "allergies": ["penicillin"],
    "medication": ["warfarin", "metformin"], "conditions": [], "renal_function": 27,
    "tests_done": ["ECG"],
}  # fmt: skip
CELLS = {
    "age": " 34 ", "sex": "F", "pregnancy": " pregnant ", "allergies": "penicillin",
    "medication": "warfarin; metformin;", "conditions": "None", "renal_function": "27.9",
    "tests_done": "ECG",
}  # fmt: skip


def case(*statements: Statement, **patient: Any) -> Case:
    return Case("c7", "made", statements, "Influenza", ("Influenza",), patient)


def told(finding: str | None, affirmed: bool | None = True) -> Statement:
    return Statement("Doctor: ?\nPatient: .", finding, affirmed)


def test_a_chart_is_read_from_a_file_s_row_or_a_table_s_cells_and_reads_as_it_should() -> None:
    assert chart_from(ROW | {"differential": 3}) == chart_from(CELLS) == FULL
    assert chart_text(FULL) == IN_WORDS
    bare = chart_text(Chart())
    assert bare.count(": not recorded\n") == 7 and len(bare.splitlines()) == 8
    assert "Allergies: none" in chart_text(Chart(allergies=()))
    assert "Pregnancy" not in chart_text(Chart(age=40, sex="male"))


@each(
    ("field", "value", "read"),
    [
        *((field, empty, None) for field in ROW for empty in (None, "", "  ")),
        *(("allergies", none, ()) for none in ([], (), "none", ["none"], [" "])),
        ("sex", "Female", "female"), ("sex", "M", "male"), ("sex", "intersex", "intersex"),
        ("age", 0, 0), ("age", 300, 300), ("age", 71.0, 71),
    ],
)  # fmt: skip
def test_a_field_holds(field: str, value: object, read: object) -> None:
    assert chart_from({field: value}) == Chart(**{field: read})


NUMBER, NAMES, TEXT = "0 to 300", "list of names", "one line"


@each(
    ("field", "value", "allowed"),
    [
        ("age", 301, NUMBER),
        ("age", True, NUMBER),
        ("renal_function", float("nan"), NUMBER),
        ("allergies", ["penicillin", 7], NAMES),
        ("conditions", "asthma\nAllergies: none", NAMES),
        ("pregnancy", "pregnant\nAge: 3", TEXT),
    ],
)
def test_a_field_that_holds_what_it_cannot_is_named(field: str, value: Any, allowed: str) -> None:
    with pytest.raises(ValueError, match=saying("c7", field, allowed)):
        chart_of(case(**{field: value}))


HEART, ASTHMA = told("heart_failure"), told("asthma_or_bronchodilator")
LATER = case(HEART, ASTHMA, told("pregnancy"), conditions=["gout"])


@each(
    ("of", "shown", "chart"),
    [
        (case(ASTHMA, HEART, conditions=["gout", "asthma"]), None,
         Chart(conditions=("gout", "asthma", "heart failure"))),
        (case(told("high_blood_pressure"), conditions=["hypertension"]), None,
         Chart(conditions=("hypertension",))),
        *((case(statement), None, Chart()) for statement in
          (told("heart_failure", False), told("heart_failure", None), told(None), told("fever"))),
        (case(told("pregnancy")), None, Chart(pregnancy="pregnant")),
        (case(told("pregnancy", False)), None, Chart()),
        (case(told("pregnancy"), pregnancy="nursing"), None, Chart(pregnancy="nursing")),
        # what is told later is not in the chart yet
        (LATER, 1, Chart(conditions=("gout", "heart failure"))),
    ],
)  # fmt: skip
def test_an_affirmed_illness_or_pregnancy_is_in_the_chart_once(of, shown, chart: Chart) -> None:
    assert chart_of(of, None if shown is None else of.statements[:shown]) == chart


# The rule check, by a table of five drugs and four tests


def by_id(*things: Any) -> Any:
    return {thing.id: thing for thing in things}


def drug(name: str, *classes: str, synonyms: tuple[str, ...] = ()) -> Entry:
    return Entry(name, name, synonyms, classes, (Regimen("1 g once a day", "by mouth"),))


def rule(id: str, items: str, kind: str, looked_for: str | float, verdict: str) -> Rule:
    number = None if isinstance(looked_for, str) else float(looked_for)
    values = frozenset() if number is not None else frozenset(str(looked_for).split())
    return Rule(id, frozenset(items.split()), kind, values, number, verdict, f"why {id}", "made")


MADE = Safety(
    allergies=by_id(ChartFact("penicillin", "penicillin", ("Pen V",))),
    illnesses=by_id(ChartFact("peptic_ulcer", "peptic ulcer"), ChartFact("asthma", "asthma")),
    pregnancy=by_id(ChartFact("pregnant", "pregnant"), ChartFact("not_pregnant", "not pregnant")),
    drugs=by_id(
        drug("amoxicillin", "penicillin", synonyms=("Amoxil",)), drug("cefalexin", "cephalosporin"),
        drug("ibuprofen", "nsaid"), drug("diclofenac", "nsaid"), drug("warfarin", "anticoagulant"),
    ),
    tests=by_id(
        Entry("ct", "CT of the abdomen", ("abdominal CT",), ("ionising",)),
        Entry("xray", "chest X-ray", (), ("ionising",)),
        Entry("ultrasound", "ultrasound of the abdomen"),
        Entry("troponin", "troponin", serial=True),
    ),
    drug_rules=by_id(
        rule("allergy", "penicillin", "allergy", "penicillin", "UNSAFE"),
        rule("cross", "cephalosporin", "allergy", "penicillin", CAUTION),
        rule("bleeding", "nsaid", "medication", "anticoagulant", "UNSAFE"),
        rule("two_nsaids", "nsaid", "medication", "nsaid", CAUTION),
        rule("ulcer", "nsaid", "condition", "peptic_ulcer", "UNSAFE"),
        rule("airways", "ibuprofen", "condition", "asthma", CAUTION),
        rule("unborn", "nsaid warfarin", "pregnancy", "pregnant", "UNSAFE"),
        rule("child", "cefalexin", "age_below", 12, "UNSAFE"),
        rule("old", "nsaid", "age_from", 75, CAUTION),
        rule("kidneys", "nsaid", "egfr_below", 30, "UNSAFE"),
    ),
    test_rules=by_id(
        rule("radiation", "ionising", "pregnancy", "pregnant", "RISKY"),
        rule("seen", "ultrasound", "also", "ct", "REDUNDANT"),
        rule("seen_before", "ultrasound", "done", "ct", "REDUNDANT"),
        rule("bruise", "ultrasound", "medication", "anticoagulant", "RISKY"),
        rule("women", "xray", "sex", "female", "RISKY"),
    ),
    plans={"influenza": Usual((("ibuprofen",),), ("xray",))},
    sources={"made": "made for the tests"},
)  # fmt: skip
SAFE, FINE, UNKNOWN = ("SAFE", None, None), ("FINE", None, None), ("UNKNOWN", None, None)


def plan(*drugs: str, tests: Iterable[str] = ()) -> Plan:
    return Plan(tuple(Prescription(drug, "1 g", "by mouth") for drug in drugs), tuple(tests))


WOMAN, OLD = Chart(sex="female"), Chart(80, renal_function=20)
DONE = Chart(tests_done=("abdominal CT", "troponin"))


@each(
    ("chart", "drugs", "diagnosis", "expected"),
    [
        (Chart(allergies=("latex", "Pen V")), ["Amoxil", "cefalexin"], None,
         [("UNSAFE", "Pen V", "allergy"), (CAUTION, "Pen V", "cross")]),
        (Chart(), [*MADE.drugs][:3], None, [SAFE] * 3),
        (Chart(medication=("Warfarin 3 mg",)), ["ibuprofen"], None,
         [("UNSAFE", "Warfarin 3 mg", "bleeding")]),
        (Chart(medication=("some herb", "diclofenac")), ["ibuprofen"], None,
         [(CAUTION, "diclofenac", "two_nsaids")]),
        # the disease's own name
        (Chart(conditions=("Peptic ulcer disease",)), ["ibuprofen"], None,
         [("UNSAFE", "Peptic ulcer disease", "ulcer")]),
        (Chart(allergies=("asthma",)), ["ibuprofen"], None, [SAFE]),  # an allergy is no illness
        (Chart(pregnancy="pregnant"), ["ibuprofen"], None, [("UNSAFE", "pregnant", "unborn")]),
        (Chart(age=75), ["ibuprofen"], None, [(CAUTION, "75 years", "old")]),
        (Chart(renal_function=30), ["ibuprofen"], None, [SAFE]),
        (Chart(renal_function=29), ["ibuprofen"], None, [("UNSAFE", "eGFR 29 ml/min", "kidneys")]),
        (Chart(age=11), ["cefalexin"], None, [("UNSAFE", "11 years", "child")]),
        (Chart(age=12), ["cefalexin"], None, [SAFE]),
        # drugs of one plan
        (Chart(), ["ibuprofen", "warfarin"], None, [("UNSAFE", "warfarin", "bleeding"), SAFE]),
        (Chart(medication=("ibuprofen",)), ["ibuprofen"], None,
         [(CAUTION, "ibuprofen", "duplicate")]),
        (Chart(), ["amoxicillin", "cefalexin", "Amoxil"], None,
         [SAFE, SAFE, (CAUTION, "amoxicillin", "duplicate")]),
        # the worst, and of several the first rule
        (OLD, ["ibuprofen"], None, [("UNSAFE", "eGFR 20 ml/min", "kidneys")]),
        # the diagnosis counts as an illness
        (Chart(), ["ibuprofen"], "Peptic ulcer", [("UNSAFE", "Peptic ulcer", "ulcer")]),
        (Chart(80, allergies=("zelotrine",)), ["zelotrine", "ibuprofan", ""], None, [UNKNOWN] * 3),
    ],
)  # fmt: skip
def test_prescriptions_by_hand(chart: Chart, drugs, diagnosis, expected: list) -> None:
    marks = check_prescriptions(plan(*drugs), chart, diagnosis, MADE)
    assert [(m.verdict, m.quote, m.rule) for m in marks] == expected


@each(
    ("chart", "tests", "drugs", "expected"),
    [
        (Chart(pregnancy="pregnant"), ["abdominal CT"], [], [("RISKY", "pregnant", "radiation")]),
        (WOMAN, ["chest X-ray"], [], [("RISKY", "female", "women")]),
        # against current drugs and not against new ones
        (Chart(medication=("warfarin",)), ["ultrasound of the abdomen"], [],
         [("RISKY", "warfarin", "bruise")]),
        (Chart(), ["ultrasound of the abdomen"], ["warfarin"], [FINE]),
        # another test of the plan, whatever their order
        (Chart(), ["ultrasound of the abdomen", "CT of the abdomen"], [],
         [("REDUNDANT", "CT of the abdomen", "seen"), FINE]),
        # done already, unless it is serial; ordered twice, even a serial one
        (DONE, ["CT of the abdomen", "troponin"], [],
         [("REDUNDANT", "abdominal CT", "repeat"), FINE]),
        (DONE, ["ultrasound of the abdomen"], [], [("REDUNDANT", "abdominal CT", "seen_before")]),
        (Chart(), ["chest X-ray", "troponin", "Chest x-ray", "troponin"], [],
         [FINE, FINE, ("REDUNDANT", "chest X-ray", "repeat"), ("REDUNDANT", "troponin", "repeat")]),
        (Chart(), ["aura reading"], [], [UNKNOWN]),
    ],
)  # fmt: skip
def test_tests_by_hand(chart: Chart, tests, drugs, expected: list) -> None:
    marks = check_tests(plan(*drugs, tests=tests), chart, None, MADE)
    assert [(m.verdict, m.quote, m.rule) for m in marks] == expected


KNOWN = [
    "AMOXICILLIN", "Amoxil", "Amoxicillin, 500 mg", "amoxicillin capsules", "oral amoxicillin",
]  # fmt: skip
GUESSES = ["", "500 mg", "amoxicilin", "not amoxicillin", "amoxicillin or cefalexin"]


@each(("name", "known"), [(n, True) for n in KNOWN] + [(n, False) for n in GUESSES])
def test_a_drug_is_known_with_dose_and_form_and_none_is_guessed(name: str, known: bool) -> None:
    assert MADE.drug_named(name) is (MADE.drugs["amoxicillin"] if known else None)


# The table that comes with the package


@each(
    ("drug", "chart", "rating"),
    [
        ("Augmentin", Chart(allergies=("penicillin",)), "UNSAFE"),
        ("cefalexin", Chart(allergies=("penicillin",)), CAUTION),
        ("ibuprofen", Chart(medication=("warfarin",)), "UNSAFE"),
        ("doxycycline", Chart(pregnancy="pregnant"), "UNSAFE"),
        ("ibuprofen", Chart(renal_function=29), "UNSAFE"),
        ("aspirin", Chart(age=15), "UNSAFE"),
        ("paracetamol", Chart(age=40, conditions=("asthma",), pregnancy="pregnant"), "SAFE"),
    ],
)
def test_textbook_facts_are_in_the_table(drug: str, chart: Chart, rating: str) -> None:
    assert check_prescriptions(plan(drug), chart)[0].verdict == rating


SAFETY = load_safety()
FACTS: Mapping[str, Mapping[str, ChartFact]] = {
    "allergies": SAFETY.allergies, "illnesses": SAFETY.illnesses, "pregnancy": SAFETY.pregnancy,
}  # fmt: skip
ITEMS = {"drugs": (SAFETY.drugs, SAFETY.drug_rules), "tests": (SAFETY.tests, SAFETY.test_rules)}


def twice(things: Iterable[object]) -> list[object]:
    return [thing for thing, n in Counter(things).items() if n > 1]


def test_names_and_phrases_mean_one_thing_each_and_are_found() -> None:
    for kind, facts in FACTS.items():
        assert not twice(normalise(n) for f in facts.values() for n in (f.phrase, *f.synonyms))
        for fact in facts.values():
            assert all(SAFETY.fact_named(kind, n) is fact for n in (fact.phrase, *fact.synonyms))
            assert not set(fact.phrase) & set(",;\n")  # they separate the phrases of a list
    for (entries, _), named in zip(
        ITEMS.values(), (SAFETY.drug_named, SAFETY.test_named), strict=True
    ):
        assert not twice(normalise(n) for e in entries.values() for n in (e.name, *e.synonyms))
        for entry in entries.values():
            assert all(named(n) is entry for n in (entry.name, *entry.synonyms))
            assert not set(entry.classes) & entries.keys()
    known = load_knowledge().findings
    for fact in [*SAFETY.drugs.values(), *SAFETY.illnesses.values()]:
        assert fact.finding is None or fact.finding in known, fact.id


def facts_for(rule: Rule, item: Entry) -> list[tuple[str, Any]]:
    """Fields of a chart, with a value, that ``rule`` looks for."""
    if rule.number is not None:
        field = "renal_function" if rule.kind == "egfr_below" else "age"
        return [(field, int(rule.number) - (rule.kind != "age_from"))]
    if rule.kind in ("medication", "done", "also"):
        entries = SAFETY.drugs if rule.kind == "medication" else SAFETY.tests
        field = {"medication": "medication", "done": "tests_done"}.get(rule.kind, "also")
        each = [e for e in entries.values() if e.kinds & rule.values and e is not item]
        return [(field, e.name) for e in each]
    kind = {"allergy": "allergies", "condition": "illnesses"}.get(rule.kind, rule.kind)
    phrases = [FACTS[kind][v].phrase if kind in FACTS else v for v in sorted(rule.values)]
    return [("conditions" if kind == "illnesses" else kind, phrase) for phrase in phrases]


@each(("part", "of"), [(part, r) for part, (_, rules) in ITEMS.items() for r in rules.values()],
      ids=lambda thing: getattr(thing, "id", thing))  # fmt: skip
def test_each_rule_can_be_set_off_and_speaks_where_nothing_is_recorded_never(
    part: str, of: Rule
) -> None:
    (entries, rules), drugs = ITEMS[part], part == "drugs"
    check, worst = (check_prescriptions, "UNSAFE") if drugs else (check_tests, "RISKY")
    assert of.source in SAFETY.sources and of.verdict in (RATINGS if drugs else FLAGS)[1:3]
    assert of.items <= entries.keys() | {c for e in entries.values() for c in e.classes}
    spoken = 0
    for item in (e for e in entries.values() if e.kinds & of.items):
        given = plan(item.name) if drugs else plan(tests=[item.name])
        assert check(given, Chart())[0] == Mark((RATINGS if drugs else FLAGS)[0])
        for field, value in facts_for(of, item):
            both = plan(tests=[item.name, value]) if field == "also" else given
            mark = check(both, Chart() if field == "also" else chart_from({field: value}))[0]
            assert mark.verdict in (of.verdict, worst), f"{item.name}: {mark}"
            assert mark.rule == of.id or rules[str(mark.rule)].verdict == mark.verdict, item.name
            spoken += mark.rule == of.id
    assert spoken, f"{of.id} is never the rule that speaks"


def test_every_condition_has_a_sound_plan_of_known_drugs_and_tests() -> None:
    assert list(SAFETY.plans) == list(load_knowledge().conditions)
    for condition, usual in SAFETY.plans.items():
        assert not twice(usual.tests) and set(usual.tests) <= SAFETY.tests.keys(), condition
        assert not twice(drug for need in usual.prescriptions for drug in need), condition
        for need in usual.prescriptions:  # KeyError names a drug that is not there
            assert need and all(SAFETY.drugs[drug].regimens for drug in need), condition
        first = plan(*(SAFETY.drugs[need[0]].name for need in usual.prescriptions))
        name = load_knowledge().conditions[condition].name
        marks = check_prescriptions(first, Chart(age=40), name)
        assert [m.rule for m in marks if m.verdict == "UNSAFE"] == [], condition
