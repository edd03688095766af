"""What a consultation and other words take: the questions, the patient's answers, the new wordings
that are taught."""

from __future__ import annotations

import re

import numpy as np
import pytest

from training.evaluate_talk import talk_report
from training.replies import nobody, rows_of
from training.rewording import question_row, reply_row
from training.speech import loose_wordings
from training.talk import (
    BEST,
    ENOUGH,
    NO,
    NOBODY_KNOWS,
    UNKNOWN,
    ask_row,
    best_questions,
    consulted,
    enough_row,
    gains,
    history,
    in_vain,
    patient_row,
)
from training.tokenizer import Tokens, tokenizer_of
from training.world import Fact, World
from trustlab.knowledge.findings import answer_text
from trustlab.models.base import Messages, Model
from trustlab.records import Reply, Statement


@pytest.fixture(scope="module")
def world() -> World:
    return World()


@pytest.fixture(scope="module")
def encode(world: World) -> Tokens:
    return Tokens(tokenizer_of("embedded-clinic", world), world)


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def inside(messages: Messages, tag: str) -> str:
    found = re.search(f"<{tag}>\n(.*?)\n</{tag}>", messages[1][1], re.DOTALL)
    assert found
    return found[1]


# -- what to ask
# --------------------------------------------------------------------------------------------------


def test_a_question_s_gain_is_the_mutual_information_of_condition_and_answer(world: World) -> None:
    """Enumerated anew, condition by condition, for a top finding after a cough."""
    facts, answers = (Fact("cough", True),), (Fact("nausea", False),)
    p, j = world.posterior(facts, answers=answers), world.column["fever"]
    w = world.presence[:, :, j].mean(0)
    gained = 0.0
    for chance in (w, 1 - w):
        whole = float(sum(p[c] * chance[c] for c in range(len(p))))
        gained += sum(
            p[c] * chance[c] * np.log(chance[c] / whole)
            for c in range(len(p))
            if p[c] > 0 and chance[c] > 0
        )
    found = gains(world, facts, {"cough", "nausea"}, answers)
    assert found["fever"] == pytest.approx(gained, abs=1e-9)


def test_an_answer_counts_as_its_chance_in_place_of_not_having_been_spoken_of(world: World) -> None:
    """The law by hand: each (talkativeness, denial, sex, condition) summed for itself."""
    facts = (Fact("cough", True),)
    answers = (Fact("fever", True), Fact("nausea", False))
    plain = world.posterior(facts)
    log = world._log
    total = np.zeros(len(world.conditions))
    for g, (r, d) in enumerate(world.grid):
        for s in range(2):
            weight = np.exp(log["base"][g, s])
            for f, spoken in (("cough", "told"),):
                j = world.column[f]
                weight = weight * np.exp(log[spoken][g, s, :, j] - log["silent"][g, s, :, j])
            for f, so in (("fever", True), ("nausea", False)):
                j = world.column[f]
                w, a = world.presence[s, :, j], world.asked[s, :, j]
                silent = 1 - r * w - r * d * (1 - w) * a
                weight = weight * (w if so else 1 - w) / silent
            for child in world.children.get("cough", ()):
                j = world.column[child.id]
                weight = weight * np.exp(log["silent"][g, s, :, j])
            total += weight
    found = world.posterior(facts, answers=answers)
    assert found == pytest.approx(total / total.sum(), abs=1e-9)
    assert np.abs(found - plain).max() > 0.01


def test_whoever_is_asked_answers_from_the_record(world: World) -> None:
    said = []
    for seed in range(40):
        patient, facts, answers = consulted(world, rng(seed))
        so = {f.finding for f in patient.record}
        assert facts == patient.facts[: len(facts)]
        assert all(f.affirmed == (f.finding in so) for f in (*facts, *answers))
        asked = [f.finding for f in (*facts, *answers)]
        assert len(set(asked)) == len(asked)
        for k, f in enumerate(answers):
            parent = world.knowledge.findings[f.finding].parent
            before = {x.finding for x in (*facts, *answers[:k]) if x.affirmed}
            assert parent is None or parent in before
        chances = world.posterior(facts, answers=answers)
        said.append(chances[world.index[patient.condition]])
    assert np.mean(said) > 0.3


def test_the_record_is_what_the_draw_made_so_and_its_stream_moves_nothing(world: World) -> None:
    """Chances of the record are the table's: over many patients of one condition."""
    patients = [world.draw(rng(seed)) for seed in range(2500)]
    mine = [p for p in patients if p.condition == "influenza"]
    w = world.presence[:, world.index["influenza"], world.column["fever"]].mean()
    share = np.mean(["fever" in {f.finding for f in p.record} for p in mine])
    assert len(mine) > 60 and abs(share - w) < 4 * np.sqrt(w * (1 - w) / len(mine))
    for p in patients[:200]:
        so = {f.finding: f for f in p.record}
        assert all((f.finding in so) == f.affirmed for f in p.facts)
        assert all(so[f.finding] == f for f in p.facts if f.affirmed)
        assert all(
            (parent := world.knowledge.findings[f].parent) is None or parent in so for f in so
        )
        assert p.answer("no such finding") == Fact("no such finding", False)


def test_nothing_is_asked_twice_and_follow_ups_only_after_their_parent(world: World) -> None:
    findings = world.knowledge.findings
    without = gains(world, (Fact("cough", True),), {"cough"})
    assert "cough" not in without and not any(findings[f].parent for f in without)
    with_pain = gains(world, (Fact("pain", True),), {"pain"})
    assert {findings[f].parent for f in with_pain} == {None, "pain"} and "pain_site" in with_pain
    assert not any(
        findings[f].parent
        for f in gains(world, (Fact("cough", True), Fact("pain", False)), {"cough", "pain"})
    )


def test_the_best_questions_stand_first_with_chances_that_grow_with_what_they_tell(
    world: World,
) -> None:
    facts = (Fact("cough", True),)
    every, best = gains(world, facts, {"cough"}), best_questions(world, facts, {"cough"})
    assert list(best) == sorted(every, key=lambda f: -every[f])[:BEST]
    assert sum(best.values()) == pytest.approx(1) and list(best.values()) == sorted(
        best.values(), reverse=True
    )
    first, second = list(best)[:2]
    assert best[first] / best[second] == pytest.approx((every[first] / every[second]) ** 4)


def test_a_history_begins_with_what_the_patient_told_first_and_knows_what_was_asked(
    world: World,
) -> None:
    for seed in range(30):
        h = history(world, rng(seed))
        spoken = (*h.facts, *h.answers)
        assert h.statements[0].finding == h.facts[0].finding == h.patient.facts[0].finding
        told = [s for s in h.statements if s.finding is not None]
        assert [s.finding for s in told] == [f.finding for f in spoken]
        assert {f.finding for f in spoken} <= h.asked
        vain = [s for s in h.statements if s.finding is None]
        assert all(s.text.endswith(f"Patient: {UNKNOWN}") for s in vain)
        assert len(h.asked) == len(spoken) + len(vain)


def test_the_reply_to_ask_is_the_best_question_that_was_not_asked(world: World) -> None:
    for seed in range(20):
        _, (messages, reply, options) = ask_row(world, rng(seed))
        told = inside(messages, "patient")
        assert reply == max(options, key=lambda o: options[o]) and len(options) == BEST
        assert not any(f"Doctor: {o[1:-1]}\n" in told for o in options)


def test_enough_is_known_from_a_posterior_of_nine_tenths(world: World) -> None:
    said = set()
    for seed in range(40):
        _, (_, reply, _) = enough_row(world, rng(seed))
        h = history(world, rng(seed))  # the same draw
        sure = world.posterior(h.facts, answers=h.answers).max() >= ENOUGH
        assert reply == ("[enough]" if sure else "[more]")
        said.add(reply)
    assert said == {"[enough]", "[more]"}


# -- what a patient answers
# ----------------------------------------------------------------------------------------


def test_a_patient_answers_with_the_fact_s_own_words_or_no_or_does_not_know(world: World) -> None:
    said = {"words": 0, NO: 0, UNKNOWN: 0}
    for seed in range(120):
        _, (messages, reply, _) = patient_row(world, rng(seed))
        facts, question = inside(messages, "facts"), inside(messages, "question")
        complete = "all that is so" in messages[1][1]
        if question in NOBODY_KNOWS:
            assert complete and reply == f"[{UNKNOWN}]"
            continue
        finding = next(
            f
            for f in world.knowledge.findings.values()
            if question in (f.question, *loose_wordings().get(f.id, {}).get("ask", ()))
        )
        if reply in (f"[{UNKNOWN}]", f"[{NO}]"):
            assert f"Doctor: {finding.question}\n" not in facts
            assert (reply == f"[{NO}]") == complete
        else:
            assert f"\nPatient: {reply[1:-1]}" in facts
        said[reply[1:-1] if reply[1:-1] in said else "words"] += 1
    assert min(said.values()) > 10 and said["words"] > 50


def test_questions_in_vain_stand_after_the_first_and_leave_the_order(world: World) -> None:
    statements = tuple(Statement(str(i), f"finding-{i}", True) for i in range(4))
    changed = [in_vain(world, statements, rng(seed)) for seed in range(40)]
    assert all(
        tuple(s for s in told if s.finding) == statements and told[0] == statements[0]
        for told in changed
    )
    grown = [told for told in changed if len(told) > len(statements)]
    assert 1 < len(grown) < 14
    assert all(s.text.endswith(UNKNOWN) for told in grown for s in told if s.finding is None)


# -- other words
# --------------------------------------------------------------------------------------------------


def test_a_reworded_reply_tells_the_same_finding_the_same_way_in_other_words(world: World) -> None:
    findings = world.knowledge.findings
    for seed in range(40):
        _, (messages, _, options) = reply_row(world, rng(seed))
        said, question = inside(messages, "reply"), inside(messages, "question")
        asked = [
            f
            for f in findings.values()
            if question in (f.question, *loose_wordings().get(f.id, {}).get("ask", ()))
        ]
        patterns = [
            [t.partition("{value}")[0] for t in group]
            for f in asked
            for group in (f.affirm, f.deny)
        ]
        matching = [
            g for g in patterns if all(any(o[1:].startswith(head) for head in g) for o in options)
        ]
        assert matching and sum(options.values()) == pytest.approx(1)
        assert f"[{said}]" not in options or len(options) == 1


def test_values_stay_in_a_reworded_reply(world: World) -> None:
    site = world.knowledge.findings["pain_site"]
    sites = [v.phrase for v in world.knowledge.values.values() if v.kind == "site"]
    met = 0
    for seed in range(300):
        _, (messages, reply, options) = reply_row(world, rng(seed))
        if inside(messages, "question") == site.question:
            said = {s for s in sites if s in inside(messages, "reply")}
            assert all({s for s in sites if s in o} == said for o in options)
            met += 1
    assert met > 3
    assert answer_text(site, True, sites[:2]).count(" and ") >= 1


def test_a_reworded_question_asks_for_the_same_finding(world: World) -> None:
    for seed in range(40):
        _, (messages, reply, options) = question_row(world, rng(seed))
        asked = inside(messages, "question")
        ways = next(
            {f.question, *loose_wordings()[f.id]["ask"]}
            for f in world.knowledge.findings.values()
            if asked in (f.question, *loose_wordings().get(f.id, {}).get("ask", ()))
        )
        assert reply in options and {o[1:-1] for o in options} <= ways - {asked}


# -- as rows
# --------------------------------------------------------------------------------------------------


def test_every_reply_that_would_do_has_its_chance_in_the_targets(
    world: World, encode: Tokens
) -> None:
    for row in rows_of(world, rng(4), {"ask": 1.0}, 10, nobody):
        soft = encode(row).soft
        assert row.options and soft[1] is not None and soft[0] is None
        assert soft[1] == pytest.approx(
            {encode.lines(o)[1]: p for o, p in row.options.items() if p > 1e-5}, rel=1e-3
        )
        assert soft[2:] == [None] * (len(soft) - 2)


class Says(Model):
    """A model that always gives one reply."""

    name, revision, provides = "says", "1", frozenset({"text"})

    def __init__(self, text: str):
        self.text = text

    def generate(self, requests):
        return [[Reply(self.text)] for _ in requests]


def test_the_report_counts_what_is_right(world: World) -> None:
    shy = talk_report(world, Says(f"[{UNKNOWN}]"), 20)
    assert shy["patient"]["right_where_unknown"] == 1 and shy["patient"]["right_where_known"] == 0
    assert shy["ask"] == {"right": 0, "best": 0, "asked_before": 0} and shy["rephrase_reply"] == {
        "right": 0
    }
    more, enough = (
        talk_report(world, Says(f"[{word}]"), 20)["enough"]["right"] for word in ("more", "enough")
    )
    assert 0 < enough < 1 and more + enough == pytest.approx(1)
