"""The safety table's six files hold together, and every rule can be set off by something that a
chart and a plan can hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from each import each

from trustlab.knowledge import load_knowledge
from trustlab.paths import DATA
from trustlab.records import FLAGS, RATINGS, Mark, Plan, Prescription, normalise
from trustlab.safety.chart import Chart, chart_from, chart_text
from trustlab.safety.rule_check import check_prescriptions, check_tests
from trustlab.safety.table import ChartFact, Entry, Rule, load_safety

FILES = ("chart", "drugs", "drug_rules", "tests", "test_rules", "plans")
SAFETY = load_safety()
ROUTES = {
    "by mouth", "by inhalation", "by nebuliser", "into a vein", "into a muscle", "under the skin",
    "on the skin", "into the nose", "into the ear", "under the tongue", "rectally",
}  # fmt: skip
FACTS: Mapping[str, Mapping[str, ChartFact]] = {
    "allergies": SAFETY.allergies,
    "illnesses": SAFETY.illnesses,
    "pregnancy": SAFETY.pregnancy,
}
ITEMS = {"drugs": (SAFETY.drugs, SAFETY.drug_rules), "tests": (SAFETY.tests, SAFETY.test_rules)}
of_both = pytest.mark.parametrize("part", list(ITEMS))


def twice(things: Iterable[object]) -> list[object]:
    return [thing for thing, n in Counter(things).items() if n > 1]


def classes(entries: Mapping[str, Entry]) -> set[str]:
    return {c for e in entries.values() for c in e.classes}


def every_rule() -> list[tuple[str, Rule]]:
    return [(part, rule) for part, (_, rules) in ITEMS.items() for rule in rules.values()]


# The files as they stand


@pytest.mark.parametrize("name", FILES)
def test_no_id_and_no_key_comes_twice_in_a_file(name: str) -> None:
    class Strict(yaml.SafeLoader):
        pass

    def mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict:
        keys = [loader.construct_object(key) for key, _ in node.value]
        assert not twice(keys), f"{name}.yml, line {node.start_mark.line + 1}"
        return {
            key: loader.construct_object(value, deep=True)
            for key, (_, value) in zip(keys, node.value, strict=True)
        }

    Strict.add_constructor("tag:yaml.org,2002:map", mapping)
    read = yaml.load(
        Path(DATA / "knowledge" / f"{name}.yml").read_text(encoding="utf-8"), Loader=Strict
    )
    lists = {
        "chart": ["allergies", "conditions", "pregnancy"],
        "drug_rules": ["rules"],
        "test_rules": ["rules"],
    }.get(name)
    for rows in [read[key] for key in lists] if lists else [read] if isinstance(read, list) else []:
        assert not twice(row["id"] for row in rows)


def test_ids_of_drugs_tests_and_classes_do_not_collide() -> None:
    for entries, _ in ITEMS.values():
        assert not classes(entries) & entries.keys()
    assert not twice([*SAFETY.drug_rules, *SAFETY.test_rules])


@pytest.mark.parametrize("kind", list(FACTS))
def test_phrases_of_a_chart_mean_one_thing_each(kind: str) -> None:
    facts = FACTS[kind]
    assert not twice(normalise(n) for f in facts.values() for n in (f.phrase, *f.synonyms))
    for fact in facts.values():
        assert all(SAFETY.fact_named(kind, n) is fact for n in (fact.phrase, *fact.synonyms))
        assert fact.phrase.isprintable() and not set(fact.phrase) & set(
            ",;\n"
        )  # they separate the phrases of a list


@of_both
def test_names_mean_one_drug_or_test_each_and_are_found(part: str) -> None:
    entries, named = ITEMS[part][0], SAFETY.drug_named if part == "drugs" else SAFETY.test_named
    assert not twice(normalise(n) for e in entries.values() for n in (e.name, *e.synonyms))
    for entry in entries.values():
        assert all(normalise(n) and named(n) is entry for n in (entry.name, *entry.synonyms))


def test_findings_that_drugs_and_illnesses_point_to_exist() -> None:
    known = load_knowledge().findings
    for entry in [*SAFETY.drugs.values(), *SAFETY.illnesses.values()]:
        assert entry.finding is None or entry.finding in known, entry.id
    assert not twice(f.finding for f in SAFETY.illnesses.values() if f.finding)


def test_regimens_are_a_dose_and_a_known_route() -> None:
    for drug in SAFETY.drugs.values():
        assert len(drug.regimens) <= 2
        for regimen in drug.regimens:
            assert regimen.route in ROUTES and regimen.dose == regimen.dose.strip() != "", drug.id


# Rules


@of_both
def test_rules_speak_of_what_the_table_has(part: str) -> None:
    entries, rules = ITEMS[part]
    known, drugs = entries.keys() | classes(entries), SAFETY.drugs.keys() | classes(SAFETY.drugs)
    of_kind = {
        "allergy": SAFETY.allergies.keys(),
        "condition": SAFETY.illnesses.keys(),
        "pregnancy": SAFETY.pregnancy.keys(),
        "sex": {"female", "male"},
        "medication": drugs,
        "done": known,
        "also": known,
    }
    for rule in rules.values():
        assert rule.items and rule.items <= known, rule.id
        assert rule.source in SAFETY.sources, rule.id
        assert rule.verdict in (RATINGS[1:3] if part == "drugs" else FLAGS[1:3]), rule.id
        if rule.number is None:
            assert rule.values and rule.values <= of_kind[rule.kind], rule.id
        else:
            assert 0 < rule.number <= 120 and rule.number == int(rule.number), rule.id


def test_drug_rules_do_not_hang_on_tests() -> None:
    assert not [r.id for r in SAFETY.drug_rules.values() if r.kind in ("done", "also")]


def test_everything_that_is_there_for_the_rules_is_used_by_one() -> None:
    rules = [rule for _, rule in every_rule()]
    assert SAFETY.allergies.keys() == {v for r in rules if r.kind == "allergy" for v in r.values}
    assert SAFETY.illnesses.keys() == {v for r in rules if r.kind == "condition" for v in r.values}
    drug_ids = {i for r in SAFETY.drug_rules.values() for i in r.items}
    named = drug_ids | {v for r in rules if r.kind == "medication" for v in r.values}
    assert classes(SAFETY.drugs) <= named
    test_ids = {
        i
        for r in SAFETY.test_rules.values()
        for i in r.items | (r.values if r.kind in ("done", "also") else set())
    }
    assert classes(SAFETY.tests) <= test_ids
    assert SAFETY.sources.keys() == {r.source for r in rules}


@of_both
def test_no_two_rules_give_one_item_two_verdicts_for_one_fact(part: str) -> None:
    entries, _ = ITEMS[part]
    for entry in entries.values():
        said: dict[tuple[str, object], Rule] = {}
        for rule in SAFETY.rules_for(entry):
            looked_for = (
                SAFETY.drugs
                if rule.kind == "medication"
                else SAFETY.tests
                if rule.kind in ("done", "also")
                else None
            )
            facts = (
                rule.values
                if looked_for is None
                else {e.id for e in looked_for.values() if e.kinds & rule.values}
            )
            for fact in facts - {entry.id} if rule.number is None else {rule.number}:
                other = said.setdefault((rule.kind, fact), rule)
                assert other is rule, f"{entry.id} and {fact}: {other.id} and {rule.id}"


# Plans


def test_every_condition_has_a_plan_of_known_drugs_and_tests() -> None:
    assert list(SAFETY.plans) == list(load_knowledge().conditions)
    for condition, usual in SAFETY.plans.items():
        assert len(usual.prescriptions) <= 3 and 2 <= len(usual.tests) <= 5, condition
        assert not twice(usual.tests) and set(usual.tests) <= SAFETY.tests.keys(), condition
        for need in usual.prescriptions:
            assert 1 <= len(need) <= 4 and not twice(need), condition
            assert all(SAFETY.drugs[drug].regimens for drug in need), (
                condition
            )  # KeyError names a drug that is not there


def test_no_plan_gives_one_drug_for_two_needs() -> None:
    for condition, usual in SAFETY.plans.items():
        assert not twice(drug for need in usual.prescriptions for drug in need), condition


def test_a_sound_plan_exists_for_each_condition_where_the_chart_holds_nothing() -> None:
    """The diagnosis itself does not speak against what is given first for it, nor one first choice
    against another."""
    for condition, usual in SAFETY.plans.items():
        plan = Plan(tuple(prescribed(SAFETY.drugs[need[0]].name) for need in usual.prescriptions))
        marks = check_prescriptions(
            plan, Chart(age=40), load_knowledge().conditions[condition].name
        )
        assert [m.rule for m in marks if m.verdict == "UNSAFE"] == [], condition


# Each rule set off


def prescribed(drug: str) -> Prescription:
    return Prescription(drug, "as usual", "by mouth")


def one_of(entries: Mapping[str, Entry], kinds: frozenset[str], but: str) -> list[Entry]:
    return [e for e in entries.values() if e.kinds & kinds and e.id != but]


def set_off(rule: Rule, item: Entry) -> list[tuple[Chart, Plan]]:
    """Charts and plans with ``item`` that hold a fact ``rule`` looks for; each goes through the
    words that a file would hold."""
    of_drugs = rule.id in SAFETY.drug_rules
    plan = Plan((prescribed(item.name),)) if of_drugs else Plan(tests=(item.name,))
    if rule.kind in ("medication", "done", "also"):
        found = one_of(
            SAFETY.drugs if rule.kind == "medication" else SAFETY.tests, rule.values, item.id
        )
        if rule.kind == "also":
            return [(Chart(), replace(plan, tests=(e.name, *plan.tests))) for e in found]
        field = "medication" if rule.kind == "medication" else "tests_done"
        charts = [(chart_from({field: [e.name]}), plan) for e in found]
        more = [
            (Chart(), replace(plan, prescriptions=(prescribed(e.name), *plan.prescriptions)))
            for e in found
        ]
        return charts + (
            more if of_drugs else []
        )  # a test is held against what the patient takes, not against new drugs
    if rule.number is not None:
        at = {"age_below": rule.number - 1, "age_from": rule.number, "egfr_below": rule.number - 1}[
            rule.kind
        ]
        return [
            (chart_from({"renal_function" if rule.kind == "egfr_below" else "age": int(at)}), plan)
        ]
    field, kind = {
        "allergy": ("allergies", "allergies"),
        "condition": ("conditions", "illnesses"),
        "pregnancy": ("pregnancy", "pregnancy"),
        "sex": ("sex", ""),
    }[rule.kind]
    phrases = [FACTS[kind][value].phrase if kind else value for value in sorted(rule.values)]
    return [(chart_from({field: phrase}), plan) for phrase in phrases]


def mark_of(item: Entry, chart: Chart, plan: Plan, of_drugs: bool) -> Mark:
    marks = check_prescriptions(plan, chart) if of_drugs else check_tests(plan, chart)
    names = [p.drug for p in plan.prescriptions] if of_drugs else list(plan.tests)
    return marks[names.index(item.name)]


@each(("part", "rule"), every_rule(), ids=lambda thing: getattr(thing, "id", thing))
def test_each_rule_can_be_set_off(part: str, rule: Rule) -> None:
    of_drugs, worst = part == "drugs", (RATINGS[2], FLAGS[1])
    items = one_of(ITEMS[part][0], rule.items, "")
    assert items, "no drug or test is of its kind"
    spoken = 0
    for item in items:
        for chart, plan in set_off(rule, item):
            mark = mark_of(item, chart, plan, of_drugs)
            others = SAFETY.drug_rules if of_drugs else SAFETY.test_rules
            assert mark.verdict == rule.verdict or mark.verdict in worst, f"{item.name}: {mark}"
            assert mark.rule == rule.id or others[str(mark.rule)].verdict == mark.verdict, (
                f"{item.name}: {mark}"
            )
            spoken += mark.rule == rule.id
            shown = "\n".join([chart_text(chart), *map(str, plan.prescriptions), *plan.tests])
            assert mark.quote and f" {normalise(mark.quote)} " in f" {normalise(shown)} ", (
                f"{item.name}: {mark}"
            )
    assert spoken, f"{rule.id} is never the rule that speaks"


@each(("part", "rule"), every_rule(), ids=lambda thing: getattr(thing, "id", thing))
def test_no_rule_speaks_where_nothing_is_recorded(part: str, rule: Rule) -> None:
    of_drugs = part == "drugs"
    for item in one_of(ITEMS[part][0], rule.items, ""):
        plan = Plan((prescribed(item.name),)) if of_drugs else Plan(tests=(item.name,))
        assert mark_of(item, Chart(), plan, of_drugs) == Mark(RATINGS[0] if of_drugs else FLAGS[0])
