"""The generated world: its posterior against a second writing of the law, its draws, and the
starter cases made from it."""

from __future__ import annotations

import itertools
import json
from collections import Counter

import numpy as np
import pytest

from training import starter
from training.world import DENIAL, DENIAL_CHANCE, TALK, TALK_CHANCE, Fact, Patient, World
from trustlab.knowledge.findings import Condition, Finding, Knowledge, Value, load_knowledge
from trustlab.paths import DATA

W = {"always": 0.92, "usual": 0.70, "some": 0.30, "rare": 0.12}


def finding(id: str, **more) -> Finding:
    own = {"id": id, "name": id, "kind": "symptom", "question": "?"}
    return Finding(**own | {"affirm": ("Y {value}",), "deny": ("N",)} | more)


def condition(id: str, prior: float, sex: str, system: str, grades: dict, values: dict):
    chances = {f: W[g] for f, g in grades.items()}
    return Condition(id, id, (), prior, sex, (18, 80), system, chances, values, grades)


def tiny(*, travel: bool = False) -> Knowledge:
    """Three conditions; a symptom with a binary and a value follow-up; one finding and one value of
    women only."""
    findings = [
        finding("ache", background=0.2),
        finding("cough", background=0.1),
        finding("discharge", sex="female", background=0.05),
        finding("smoking", kind="history", background=0.4),
        finding("jolt", parent="ache", background=0.1),
        finding("site", parent="ache", form="several", values="site"),
    ]
    if travel:
        findings.append(finding("recent_travel", kind="history", form="choice", values="region"))
    of_anyone = {"ache": "always", "jolt": "some", "smoking": "rare"}
    of_woman = {"ache": "some", "discharge": "usual"}
    sites = [{"site": {"none": 0.2, "belly": 0.6}}, {"site": {"belly": 0.3, "ovary": 0.99}}]
    region = {"recent_travel": {"none": 0.4, "asia": 1.0}}
    conditions = [
        condition("anyone", 2, "any", "gut", of_anyone, sites[0]),
        condition("woman", 1, "female", "gut", of_woman, sites[1]),
        condition("man", 0.5, "male", "chest", {"cough": "usual"}, region),
    ]
    values = [
        Value("belly", "site", "b"),
        Value("ovary", "site", "o", sex="female"),
        Value("asia", "region", "a"),
    ]
    return Knowledge(*({x.id: x for x in xs} for xs in (findings, conditions, values)))


# The law of the module's docstring, written again for the tiny world

GRID = [
    (r, d, pr * pd)
    for r, pr in zip(TALK, TALK_CHANCE, strict=True)
    for d, pd in zip(DENIAL, DENIAL_CHANCE, strict=True)
]
R, D, CELL = (np.array(column) for column in zip(*GRID, strict=True))
PRIOR = {("anyone", sex): 1 / 3.5 for sex in ("female", "male")}
PRIOR |= {("woman", "female"): 1 / 3.5, ("man", "male"): 0.5 / 3.5}
NEAR, FAR = 0.25, 0.01
LISTED = {  # w: the grade where listed, else 0.15 of the background
    "anyone": {"ache": 0.92, "cough": 0.015, "discharge": 0.0075, "smoking": 0.12, "jolt": 0.30},
    "woman": {"ache": 0.30, "cough": 0.015, "discharge": 0.70, "smoking": 0.06, "jolt": 0.015},
    "man": {"ache": 0.03, "cough": 0.70, "discharge": 0.0075, "smoking": 0.06, "jolt": 0.015},
}
# a: near where a condition of the same system lists it; smoking is common everywhere,
# so never specific
ASKED = {
    "gut": {"ache": NEAR, "cough": FAR, "discharge": NEAR, "smoking": FAR, "jolt": NEAR},
    "chest": {"ache": FAR, "cough": NEAR, "discharge": FAR, "smoking": FAR, "jolt": FAR},
}
NONE = {"anyone": 0.2, "woman": 0.03, "man": 0.03}
SITES = {"anyone": (0.6, 0.001), "woman": (0.3, 0.97), "man": (0.001, 0.001)}
TRAVEL_NONE = {"anyone": 0.03, "woman": 0.03, "man": 0.4}

Outcome = dict[str, str | frozenset[str]]
"""What is told of each finding: ``told``, ``denied``, ``silent`` or, for the site, ``none`` or the
sites."""


def spoken(c: str, sex: str, f: str, state: str) -> np.ndarray:
    """P(state of a binary finding | c, sex) for every (r, d), whatever becomes of its parent."""
    w, a = LISTED[c][f], ASKED["chest" if c == "man" else "gut"][f]
    if f == "discharge" and sex == "male":
        w = a = 0.0
    told, denied = R * w, R * D * (1 - w) * a
    return {"told": told, "denied": denied, "silent": 1 - told - denied}[state]


def site(c: str, sex: str, state: str | frozenset[str]) -> np.ndarray | float:
    """P(state of the site | c, sex, ache told): any of the sites by itself, drawn again while there
    is none."""
    if state == "silent":
        return 1 - R
    if state == "none":
        return R * NONE[c]
    belly, ovary = SITES[c][0], SITES[c][1] if sex == "female" else 0.0
    p = (belly if "belly" in state else 1 - belly) * (ovary if "ovary" in state else 1 - ovary)
    return R * (1 - NONE[c]) * p / (1 - (1 - belly) * (1 - ovary))


def chance(c: str, sex: str, outcome: Outcome) -> float:
    """P(c, sex, outcome), summed over talkativeness and denial rate."""
    p = np.ones(len(GRID))
    for f in ("ache", "cough", "discharge", "smoking"):
        p *= spoken(c, sex, f, str(outcome[f]))
    if outcome["ache"] == "told":
        p *= spoken(c, sex, "jolt", str(outcome["jolt"])) * site(c, sex, outcome["site"])
    if "travel" in outcome:
        asked = 0.7 * R
        none = TRAVEL_NONE[c]
        states = {"silent": 1 - asked, "none": asked * none, "asia": asked * (1 - none)}
        p *= states[str(outcome["travel"])]
    symptoms = ("ache", "cough", "discharge")
    nobody = np.prod([1 - spoken(c, sex, f, "told") for f in symptoms], axis=0)
    return float((CELL * p / (1 - nobody)).sum()) * PRIOR[c, sex]


def outcomes(*, travel: bool = False) -> list[Outcome]:
    """Everything that a patient of the tiny world can tell: at least one symptom, follow-ups of a
    told ache."""
    states = ("told", "denied", "silent")
    sites = [frozenset(s) for s in (("belly",), ("ovary",), ("belly", "ovary"))]
    found = []
    for ache, cough, discharge, smoking in itertools.product(states, repeat=4):
        top: Outcome = {"ache": ache, "cough": cough, "discharge": discharge, "smoking": smoking}
        if "told" in (ache, cough, discharge):
            more = [("silent", "silent")]
            if ache == "told":
                more = [*itertools.product(states, ["silent", "none", *sites])]
            found += [top | {"jolt": jolt, "site": where} for jolt, where in more]
    if travel:
        found = [o | {"travel": t} for o in found for t in ("silent", "none", "asia")]
    return found


def facts(outcome: Outcome) -> tuple[Fact, ...]:
    made = [
        Fact(f, outcome[f] == "told")
        for f in ("smoking", "discharge", "cough", "ache", "jolt")
        if outcome[f] != "silent"
    ]
    where, travel = outcome["site"], outcome.get("travel", "silent")
    if where != "silent":
        sites = () if isinstance(where, str) else tuple(sorted(where))
        made.append(Fact("site", where != "none", sites))
    if travel != "silent":
        made.append(Fact("recent_travel", travel == "asia", ("asia",) if travel == "asia" else ()))
    return tuple(made)


def joint(*, travel: bool = False) -> tuple[list[Outcome], np.ndarray]:
    """Every outcome, and P(condition, outcome) of shape (outcome, condition)."""
    told = outcomes(travel=travel)
    ids = ("anyone", "woman", "man")
    rows = [[sum(chance(c, s, o) for d, s in PRIOR if d == c) for c in ids] for o in told]
    return told, np.array(rows)


@pytest.mark.parametrize("travel", [False, True])
def test_posterior_is_exact_for_everything_that_can_be_told(travel: bool) -> None:
    world = World(tiny(travel=travel))
    told, p = joint(travel=travel)
    assert p.sum(0) == pytest.approx([2 / 3.5, 1 / 3.5, 0.5 / 3.5], abs=1e-12)  # a distribution
    possible = p.sum(1) > 0
    assert possible.sum() > 400
    exact = p[possible] / p[possible].sum(1, keepdims=True)
    ours = np.array([world.posterior(facts(o)) for o, ok in zip(told, possible, strict=True) if ok])
    assert np.abs(ours - exact).max() < 1e-9


def test_draws_follow_the_law() -> None:
    world, rng, n = World(tiny()), np.random.default_rng(8), 4000
    told, p = joint()
    want: Counter = Counter()
    for outcome, row in zip(told, p, strict=True):
        for fact in facts(outcome):
            for c, share in zip(("anyone", "woman", "man"), row, strict=True):
                want[c, fact.finding, fact.affirmed, fact.values] += share
    got: Counter = Counter()
    for patient in (world.draw(rng) for _ in range(n)):
        for f in patient.facts:
            got[patient.condition, f.finding, f.affirmed, tuple(sorted(f.values))] += 1
    assert not [k for k in got if want[k] == 0]
    for key, share in want.items():
        assert abs(got[key] / n - share) <= 4.5 * np.sqrt(share * (1 - share) / n) + 1 / n, key


def test_value_chances_sum_to_one() -> None:
    world = World()
    for f in world.valued:
        if f.form == "several":
            continue
        ways = [Fact(f.id, False)] + [Fact(f.id, True, (v,)) for v in world.value_ids(f)]
        total = np.exp([world.value_loglik(w) for w in ways]).sum(0)
        assert total == pytest.approx(np.ones_like(total), abs=1e-9), f.id


# The real table


@pytest.fixture(scope="module")
def world() -> World:
    return World()


@pytest.fixture(scope="module")
def patients(world: World) -> list[Patient]:
    rng = np.random.default_rng(2)
    return [world.draw(rng) for _ in range(1000)]


def best_and_right(world: World, patients: list[Patient]) -> tuple[np.ndarray, np.ndarray]:
    """The highest chance of each patient, and whether it is that of what it has."""
    chances = np.array([world.posterior(p.facts) for p in patients])
    assert chances.sum(1) == pytest.approx(np.ones(len(patients)))
    named = [world.conditions[k].id for k in chances.argmax(1)]
    right = [name == p.condition for name, p in zip(named, patients, strict=True)]
    return chances.max(1), np.array(right)


def test_posterior_is_calibrated(world: World, patients: list[Patient]) -> None:
    best, right = best_and_right(world, patients)
    error = np.sqrt((best * (1 - best)).sum()) / len(best)
    assert abs(best.mean() - right.mean()) < 3 * error
    assert 0.2 < right.mean() < 0.98
    rng = np.random.default_rng(2)
    assert [World().draw(rng) for _ in range(3)] == patients[:3]  # draws repeat under their seed


def test_stories_start_with_a_symptom_and_tell_parents_before_follow_ups(
    world: World, patients: list[Patient]
) -> None:
    findings, values = world.knowledge.findings, world.knowledge.values
    for p in patients:
        first = findings[p.facts[0].finding]
        assert p.facts[0].affirmed and first.kind == "symptom"
        assert first.parent is None and first.form == "binary"
        assert len({f.finding for f in p.facts}) == len(p.facts)
        # nothing is told of the other sex
        assert world.knowledge.conditions[p.condition].sex in ("any", p.sex)
        told: set[str] = set()
        for f in p.facts:
            parent = findings[f.finding].parent
            assert parent is None or parent in told, (p, f)
            if f.affirmed:
                told.add(f.finding)
                kinds = {values[v].sex for v in f.values if v in values}
                assert kinds | {findings[f.finding].sex} <= {None, p.sex}


def test_statements_say_the_fact_in_the_table_s_words(world: World) -> None:
    rng = np.random.default_rng(1)
    fact = Fact("pain_site", True, ("belly", "groin_left"))
    said = {world.statement(fact, rng).text for _ in range(60)}
    f = world.knowledge.findings["pain_site"]
    answers = [a.replace("{value}", "my belly and my left groin") for a in f.affirm]
    assert said == {f"Doctor: {f.question}\nPatient: {answer}" for answer in answers}


# The starter cases


@pytest.fixture(scope="module")
def drawn(world: World) -> list[tuple[dict, Patient]]:
    return starter.rows(world)


@pytest.fixture(scope="module")
def made(drawn: list[tuple[dict, Patient]]) -> list[dict]:
    return [row for row, _ in drawn]


def test_the_starter_file_is_what_the_program_writes(made: list[dict]) -> None:
    assert starter.text(made) == (DATA / "starter" / "structured.jsonl").read_text(encoding="utf-8")


def test_the_starter_posteriors_are_what_the_program_writes(
    world: World, drawn: list[tuple[dict, Patient]]
) -> None:
    lines = (DATA / "starter" / "posterior.jsonl").read_text(encoding="utf-8").splitlines()
    kept = [json.loads(line) for line in lines]
    made = [starter.posterior_row(world, *each) for each in drawn]
    assert [row["case_id"] for row in kept] == [row["case_id"] for row in made]
    for then, now in zip(kept, made, strict=True):
        assert list(then["posterior"]) == list(now["posterior"])
        for n, chances in then["posterior"].items():
            names = {*chances, *now["posterior"][n]}
            for name in names:  # one near the least may be there on one processor alone
                gap = abs(chances.get(name, 0.0) - now["posterior"][n].get(name, 0.0))
                assert gap < 1e-5 or chances.get(name, starter.LEAST) < 1.01 * starter.LEAST
            assert 0.99 < sum(chances.values()) < 1 + 1e-4


def test_starter_cases_have_the_promised_shape(made: list[dict]) -> None:
    knowledge = load_knowledge()
    assert [r["case_id"] for r in made] == [f"starter-{i:03d}" for i in range(1, 241)]
    assert len({r["condition"] for r in made}) >= 55
    assert len({json.dumps(r["statements"]) for r in made}) == len(made)
    for r in made:
        c = knowledge.conditions[r["condition"]]
        assert r["diagnosis"] == c.name and c.age[0] <= r["patient"]["age"] <= c.age[1]
        assert c.sex in ("any", r["patient"]["sex"])
        first = r["statements"][0]
        assert first["affirmed"] and first["finding"] not in starter.NO_COMPLAINT
    findings = [knowledge.findings[f] for f in starter.NO_COMPLAINT]
    assert all(f.kind == "symptom" and f.parent is None for f in findings)


def test_starter_cases_come_by_their_priors_with_all_that_is_so(
    world: World, drawn: list[tuple[dict, Patient]]
) -> None:
    share = np.zeros(len(world.conditions))
    for row, patient in drawn:
        share[world.index[row["condition"]]] += 1 / len(drawn)
        told, record = row["statements"], row["record"]
        assert [s["finding"] for s in told] == [f.finding for f in patient.facts]
        assert all(s["affirmed"] for s in record)
        so = {s["finding"] for s in (*told, *record) if s["affirmed"]}
        assert so == {f.finding for f in patient.record}
    assert np.abs(share - world.prior).sum() < 0.55  # as far as chance takes 240 of 65
    assert np.corrcoef(share, world.prior)[0, 1] > 0.5


def test_the_starter_seed_is_no_training_seed() -> None:
    files = (DATA / "models").glob("*/sittings.json")
    seeds = {sat["seed"] for file in files for sat in json.loads(file.read_text(encoding="utf-8"))}
    assert seeds and starter.SEED not in seeds
    stream = np.random.default_rng(starter.SEED).random(4).tolist()
    for seed, n in itertools.product(seeds, range(200)):
        assert np.random.default_rng([seed, n]).random(4).tolist() != stream
