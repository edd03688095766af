"""What a panel and its reviewers take: charts that agree, plans and reviews by the safety table,
and how they are measured."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

from training import charts
from training.clinic import (
    CHILD,
    NO_DRUGS,
    NO_TESTS,
    careful_plan,
    careless_plan,
    doctor_row,
    plan_row,
    prescription,
    review_prescriptions_row,
    review_tests_row,
)
from training.evaluate_clinic import clinic_report
from training.replies import TALK, nobody, rows_of
from training.tokenizer import WINDOW, Tokens, tokenizer_of
from training.world import Fact, Patient, World
from trustlab.agents.rule_check import check_prescriptions, check_tests
from trustlab.agents.safety_table import load_safety
from trustlab.knowledge.chart import Chart, chart_text
from trustlab.parsing.agents import read_flags, read_opinion, read_plan, read_ratings
from trustlab.records import Plan, Reply

SKILLS = ("doctor", "plan", "review_prescriptions", "review_tests")


@pytest.fixture(scope="module")
def world() -> World:
    return World()


@pytest.fixture(scope="module")
def encode(world: World) -> Tokens:
    return Tokens(tokenizer_of("embedded-clinic", world), world)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# -- charts
# --------------------------------------------------------------------------------------------------


def test_a_known_sex_keeps_the_conditions_of_the_other_sex_out(world: World) -> None:
    facts = (Fact("pain", True), Fact("nausea", True))
    ectopic = world.index["ectopic_pregnancy"]
    assert (
        world.posterior(facts, "male")[ectopic]
        == 0
        < world.posterior(facts)[ectopic]
        < world.posterior(facts, "female")[ectopic]
    )


def test_an_age_changes_the_odds_of_two_conditions_by_the_chances_of_that_age(world: World) -> None:
    """Bronchiolitis is drawn from 0 to 2 years, so from 1 to 2 here; pneumonia from its own range;
    15 % from 1 to 95."""
    young, other = (world.knowledge.conditions[c] for c in ("bronchiolitis", "pneumonia"))
    patient = Patient("pneumonia", "male", (Fact("cough", True),))
    before = charts.posterior(world, patient, Chart(None, "male"))
    after = charts.posterior(world, patient, Chart(2, "male"))

    def chance(age: tuple[int, int]) -> float:
        low, high = max(age[0], 1), min(age[1], 95)
        return 0.15 / 95 + 0.85 * (low <= 2 <= high) / (high - low + 1)

    a, b = world.index[young.id], world.index[other.id]
    assert after[a] / after[b] == pytest.approx(
        before[a] / before[b] * chance(young.age) / chance(other.age)
    )
    assert after.sum() == pytest.approx(1) and before == pytest.approx(
        world.posterior(patient.facts, "male")
    )


def test_a_chart_agrees_with_what_was_told_and_does_not_name_the_condition(world: World) -> None:
    safety = load_safety()
    told = (
        Fact("cough", True),
        Fact("asthma_or_bronchodilator", False),
        Fact("heart_failure", True),
        Fact("pregnancy", False),
    )
    chart = Chart(40, "female", "pregnant", (), (), ("asthma", "unstable angina", "gout"), 90, ())
    found = charts.agreeing(chart, world, Patient("unstable_angina", "female", told), safety)
    assert found.conditions == ("gout", "heart failure") and found.pregnancy == "not pregnant"
    assert charts.agreeing(
        Chart(), world, Patient("unstable_angina", "male", told), safety
    ).conditions == ("heart failure",)


def test_a_drug_that_the_patient_denies_is_not_in_the_chart(world: World) -> None:
    safety = load_safety()
    drug = next(d for d in safety.drugs.values() if d.finding == "nsaid_use")
    chart = Chart(40, "male", medication=(drug.name, "lithium"))
    found = charts.agreeing(
        chart, world, Patient("pneumonia", "male", (Fact("nsaid_use", False),)), safety
    )
    assert found.medication == ("lithium",)


def test_drawn_charts_hold_the_tables_words_and_pregnancy_where_it_can_be(world: World) -> None:
    safety, seen = load_safety(), set()
    for seed in range(150):
        patient = world.draw(rng(seed))
        chart = charts.draw(world, patient, rng(seed))
        seen |= {field for field, value in vars(chart).items() if value is None}
        assert all(safety.fact_named("allergies", a) for a in chart.allergies or ())
        assert all(safety.drug_named(m) for m in chart.medication or ())
        if chart.pregnancy == "pregnant" and "pregnancy" not in {f.finding for f in patient.facts}:
            assert chart.sex == "female" and chart.age is not None and 15 <= chart.age <= 50
    assert seen == set(vars(Chart()))


def test_a_trouble_put_into_a_chart_is_one_that_the_rule_check_finds() -> None:
    safety = load_safety()
    chart = Chart(30, "female", "not pregnant", (), (), (), 90, ())
    for drug in safety.drugs.values():
        if not drug.regimens or not any(
            charts._possible(r, chart) for r in charts.troubles()[drug.id]
        ):
            continue
        troubled = charts.with_trouble(chart, drug, rng(1))
        (mark,) = check_prescriptions(Plan((prescription(drug.id),)), troubled)
        assert mark.verdict in ("UNSAFE", "SAFE WITH CAUTION") and mark.quote in chart_text(
            troubled
        ), drug.id
    for test in safety.tests.values():
        rules = [r for r in charts.troubles()[test.id] if charts._possible(r, chart)]
        if rules:
            (mark,) = check_tests(
                Plan(tests=(test.name,)), charts.with_trouble(chart, test, rng(1))
            )
            assert mark.verdict in ("RISKY", "REDUNDANT"), test.id


# -- replies
# --------------------------------------------------------------------------------------------------


def test_a_doctor_s_replies_share_their_reasoning_and_carry_the_exact_chances(world: World) -> None:
    for seed in range(8):
        _, (messages, reply, options) = doctor_row(world, rng(seed))
        assert reply in options and sum(options.values()) == pytest.approx(1, abs=0.01)
        assert len({o.partition("\n")[0] for o in options}) == 1
        thought, named, missing = read_opinion(Reply(reply))
        assert thought and named in reply and missing == ""
        assert "<chart>\n" in messages[1][1] and "<patient>\nDoctor: " in messages[1][1]


@pytest.fixture(scope="module")
def bad_chart() -> Chart:
    """Against the usual plan for pneumonia: allergic to penicillin, a contrast allergy, eight years
    old."""
    return Chart(
        8, "male", None, ("penicillin", "iodinated contrast"), (), (), 90, ("chest X-ray",)
    )


def test_a_careful_doctor_avoids_what_a_careless_one_gives(world: World, bad_chart: Chart) -> None:
    usual = load_safety().plans["pneumonia"]
    careless = [careless_plan(usual, 8, rng(s)) for s in range(30)]
    careful = [careful_plan(usual, bad_chart, "Pneumonia", rng(s)) for s in range(30)]

    def worst(plan: Plan) -> set[str | None]:
        return {m.verdict for m in check_prescriptions(plan, bad_chart, "Pneumonia")}

    assert any("UNSAFE" in worst(p) for p in careless) and not any(
        "UNSAFE" in worst(p) for p in careful
    )
    assert all(
        {m.verdict for m in check_tests(p, bad_chart, "Pneumonia")} <= {"FINE"} for p in careful
    )
    assert {len(p.tests) for p in careless} == set(range(1, len(usual.tests) + 1))


def test_children_get_a_child_s_dose_where_the_table_has_one() -> None:
    assert (
        "/kg" in prescription("paracetamol", CHILD - 1).dose
        and "/kg" not in prescription("paracetamol", CHILD).dose
    )
    assert "/kg" not in prescription("paracetamol").dose


def test_a_plan_s_reply_is_read_back_as_the_plan(world: World) -> None:
    for seed in range(8):
        _, (messages, reply, options) = plan_row(world, rng(seed))
        plan = read_plan(Reply(reply))
        safety = load_safety()
        assert all(safety.drug_named(p.drug) for p in plan.prescriptions) and all(
            safety.test_named(t) for t in plan.tests
        )
        assert options == {reply: 1.0} and "\nThe diagnosis: " in messages[1][1]


@pytest.mark.parametrize(
    ("make", "read", "made_up"),
    [(review_prescriptions_row, read_ratings, NO_DRUGS), (review_tests_row, read_flags, NO_TESTS)],
)
def test_a_review_marks_every_item_and_quotes_what_stands_there(
    world: World, make, read, made_up: tuple[str, ...]
) -> None:
    verdicts = set()
    for seed in range(60):
        _, (messages, reply, _) = make(world, rng(seed))
        listed = messages[1][1].partition("<plan>\n")[2].partition("\n</plan>")[0].split("\n")
        marks = read(Reply(reply), len(listed), messages[1][1])
        for line, mark in zip(listed, marks, strict=True):
            verdicts.add(mark.verdict)
            assert (mark.verdict == "UNKNOWN") == any(name in line for name in made_up)
            objected = mark.verdict not in ("SAFE", "FINE", "UNKNOWN")
            assert bool(mark.quote) == objected == bool(mark.reason) and mark.quote_occurs in (
                None,
                True,
            )
    assert len(verdicts) == 4


def test_no_made_up_name_is_one_that_the_table_has() -> None:
    safety = load_safety()
    assert not any(map(safety.drug_named, NO_DRUGS)) and not any(map(safety.test_named, NO_TESTS))


def test_replies_are_few_tokens_and_prompts_fit_the_window(world: World, encode: Tokens) -> None:
    for skill in SKILLS:
        for row in rows_of(world, rng(), {skill: 1.0}, 20, nobody):
            ids = encode(row)
            assert len(ids.reply) <= 80 and len(ids) <= WINDOW // 2 and not ids.scores
            assert row.options and row.reply[0] in row.options


# -- measuring
# --------------------------------------------------------------------------------------------------


def perfect(world: World) -> SimpleNamespace:
    """A model that gives the taught reply, found by its prompt."""
    known = {}
    for k, skill in enumerate(SKILLS):
        stream = np.random.default_rng([77_003, k])
        known |= {row[0]: row[1] for row in (TALK[skill](world, stream)[1] for _ in range(12))}
    return SimpleNamespace(generate=lambda requests: [[Reply(known[r.messages])] for r in requests])


def test_a_model_that_gives_the_taught_replies_is_measured_as_perfect(world: World) -> None:
    found = clinic_report(world, perfect(world), n=12)
    assert (
        found["doctor"]["readable"]
        == found["doctor"]["diagnosis_right"]
        == found["doctor"]["what_was_told_right"]
        == 1
    )
    assert found["plan"] == {"readable": 1, "known_names": 1, "drugs_that_are_usual": 1}
    for skill in ("review_prescriptions", "review_tests"):
        part = found[skill]
        assert all(
            part[k] == 1
            for k in ("readable", "right", "sensitivity", "specificity", "quotations_right")
        ), skill


def test_a_model_that_always_says_safe_has_no_sensitivity(world: World) -> None:
    def said(request) -> str:
        key, fine = (
            ("rating", "SAFE") if "Rate each" in request.messages[1][1] else ("flag", "FINE")
        )
        n = (
            request.messages[1][1].partition("<plan>\n")[2].partition("\n</plan>")[0].count("\n")
            + 1
        )
        return json.dumps(
            [{"id": i, "quote": None, key: fine, "reason": None} for i in range(1, n + 1)]
        )

    model = SimpleNamespace(generate=lambda requests: [[Reply(said(r))] for r in requests])
    part = clinic_report(world, model, n=12)["review_prescriptions"]
    assert (part["sensitivity"], part["specificity"], part["readable"]) == (0, 1, 1) and 0 < part[
        "right"
    ] < 1


def test_a_model_that_says_nothing_readable_is_measured_as_such(world: World) -> None:
    model = SimpleNamespace(
        generate=lambda requests: [[Reply("Take two aspirins.")] for _ in requests]
    )
    found = clinic_report(world, model, n=5)
    assert (
        found["doctor"]["readable"]
        == found["plan"]["readable"]
        == found["review_tests"]["readable"]
        == 0
    )
    assert (
        found["plan"]["known_names"] is None
        and found["review_tests"]["quotations_that_occur"] is None
    )
