"""Training: what is taught, how it becomes tokens and targets, how a run goes, what is exported,
how it is measured."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import partialmethod
from pathlib import Path

import numpy as np
import pytest
import torch
from each import each

from training import replies
from training import train as program
from training.evaluate import fact_of, generated_cases, steps
from training.evidence import (
    MOST,
    Mark,
    criteria_of,
    evidence_json,
    mark,
    profile_json,
    profile_prose,
    score,
)
from training.passages import Criterion, Passage, Sentence, by_condition, keywords, passages
from training.replies import (
    CLINIC,
    FIRST,
    LATER,
    MORE_TALK,
    MOST_TALK,
    REVIEWS,
    SKILLS,
    VARIANTS,
    WITH_TALK,
    Example,
    elicited_score,
    example,
    reasons,
    shown_passages,
    stretched,
)
from training.speech import HEDGES_AFTER, HEDGES_BEFORE, TURNS, loose_wordings, spoken, told
from training.tokenizer import SPECIAL, WINDOW, build_tokenizer, phrases
from training.train import (
    BRANCHES,
    LONG,
    RECIPE,
    Batch,
    Encoder,
    Trainer,
    export,
    loss_of,
    new_model,
    pool_of_batches,
    rate,
    shares,
    tensors,
)
from training.world import Fact, Patient, World
from trustlab.agents.medconf import library_text, profile_text, reply_room
from trustlab.knowledge import normalise
from trustlab.parsing import (
    Unreadable,
    diagnosis,
    guesses,
    read_evidence,
    read_profile,
    read_score,
    score_0_100,
    true_or_false,
)
from trustlab.prompts import render
from trustlab.records import SUPPORT_LEVELS, Assessment, Case, Evidence, Generation, Statement, View
from trustlab.records import Criterion as Entry

SMALL = {"pool": 12, "first": 0, "later": 99, "batch_tokens": 1200, "warmup": 24}
TINY = RECIPE | SMALL | {"hidden": 16, "layers": 2, "heads": 2, "inner": 32}
PATIENT_TOLD = {"diagnosis", "p_true", "ce", "cot_ce", "topk_ce", "evidence"}
VARIANT = pytest.mark.parametrize("variant", list(VARIANTS), ids=lambda v: "+".join(v))


@pytest.fixture(scope="module")
def world() -> World:
    return World()


@pytest.fixture(scope="module")
def tokenizer(world: World):
    return build_tokenizer(world)


@pytest.fixture(scope="module")
def encode(tokenizer, world: World) -> Encoder:
    return Encoder(tokenizer, world)


@pytest.fixture(scope="module")
def examples(world: World) -> list[Example]:
    rng = np.random.default_rng(3)
    return [example(world, rng, skill) for skill in SKILLS for _ in range(10)]


@pytest.fixture(scope="module")
def made(world: World, encode: Encoder) -> list[list[Batch]]:
    """The first pools of the tiny recipe."""
    return [pool_of_batches(world, encode, TINY, n) for n in range(3)]


@pytest.fixture(scope="module", autouse=True)
def made_up_meanings():
    """Encoding the whole vocabulary takes half a minute; only the test of that does so, on a few
    texts."""
    with pytest.MonkeyPatch.context() as patch:

        def drawn(tokenizer, hidden):
            rows = torch.randn(len(tokenizer), hidden, generator=torch.Generator().manual_seed(8))
            return rows / rows.norm(dim=1, keepdim=True)

        patch.setattr(program, "meanings", drawn)
        yield


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def of(listed: list[Example], *skills: str) -> list[Example]:
    return [e for e in listed if e.skill in skills]


def inside(e: Example, tag: str) -> str | None:
    """What stands between the delimiters of a slot in the prompt."""
    found = re.search(f"<{tag}>\n(.*?)\n?</{tag}>", e.messages[1][1], re.DOTALL)
    return found[1] if found else None


def in_passages(e: Example) -> list[Passage]:
    """The passages that the prompt shows, in its order."""
    by_text = {p.contents: p for p in passages()}
    text = inside(e, "passages") or ""
    return [by_text[line.partition(". ")[2]] for line in text.split("\n") if line]


def listed_profile(e: Example, importance: bool) -> tuple[Entry, ...]:
    """The profile that an evidence prompt shows, as the package reads it."""
    return read_profile(inside(e, "profile") or "", importance=importance)


def ids_of(tokenizer, text: str | list[str]) -> list:
    return tokenizer(text, add_special_tokens=False)["input_ids"]


# -- scores
# --------------------------------------------------------------------------------------------------


@each(
    ("p", "score"),
    [
        (0.0, 0),
        (1.0, 100),
        (0.5, 50),
        (0.8, 90),
        (0.2, 10),
        (0.9, 95),
        (0.1, 5),
        (4 / 13, 25),
        (9 / 13, 75),
    ],
)
def test_elicited_score_by_hand(p: float, score: int) -> None:
    """Odds to the power 1.5: 0.8 has odds 4, so 8 to 1, 89 in 100; 0.9: 27 to 1, 96; 9/13: 3.375 to
    1, 77."""
    assert elicited_score(p) == stretched(p) == score


@pytest.mark.parametrize(("shift", "score"), [(-1, 20), (-0.5, 30), (0, 50), (0.5, 70), (1, 80)])
def test_stretched_moves_the_log_odds_first(shift: float, score: int) -> None:
    """At even odds a shift of 1 makes e to the power 1.5, 4.48 to 1: 82 in 100; 0.5 makes 2.12 to
    1: 68."""
    assert stretched(0.5, shift) == score


def test_elicited_score_rises_in_steps_of_five() -> None:
    scores = [elicited_score(p) for p in np.linspace(0, 1, 2001)]
    assert scores == sorted(scores) and set(scores) == set(range(0, 101, 5))


# -- examples: the answer and its confidence
# --------------------------------------------------------------------------


def test_skills_come_in_their_shares(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        World, "posterior", lambda self, facts: self.prior
    )  # not what is looked at here, and slow
    rng = np.random.default_rng(0)
    count = Counter(example(world, rng).skill for _ in range(200))
    for skill, share in SKILLS.items():
        assert abs(count[skill] / 200 - share) < 4 * np.sqrt(share * (1 - share) / 200), skill
    assert sum(SKILLS.values()) == pytest.approx(1) and sum(VARIANTS.values()) == pytest.approx(1)


def test_every_prompt_is_the_package_s_own(world: World, examples: list[Example]) -> None:
    assert {e.skill for e in examples} == set(SKILLS)
    for e in examples:
        if e.skill == "prior":
            assert e.messages == render("diagnosis", patient=None)
        elif e.skill == "keyword":
            assert e.messages == render(
                "keyword", answer=world.knowledge.conditions[e.patient.condition].name
            )
        elif e.skill in PATIENT_TOLD:
            words = inside(e, "patient") or ""
            assert words.count("Patient: ") == words.count("Doctor: ") == len(e.patient.facts)
            if e.skill != "evidence":
                proposed = world.knowledge.conditions[e.proposed].name if e.proposed else None
                assert e.messages == render(e.skill, patient=words, answer=proposed)


def test_a_diagnosis_is_the_patient_s_and_a_keyword_the_condition_s(
    world: World, examples: list[Example]
) -> None:
    for e in of(examples, "diagnosis", "prior"):
        span = diagnosis(e.reply)
        assert (
            span is not None and span.text == world.knowledge.conditions[e.patient.condition].name
        )
        assert e.proposed is None and e.posterior is None
    for e in of(examples, "keyword"):
        span = diagnosis(e.reply)
        assert span is not None and span.text == keywords()[e.patient.condition]


def test_a_judgement_is_right_of_the_proposed_diagnosis(examples: list[Example]) -> None:
    judged = of(examples, "p_true")
    assert {true_or_false(e.reply) for e in judged} == {True, False}
    assert all(true_or_false(e.reply) is (e.proposed == e.patient.condition) for e in judged)


def test_scores_are_the_stretched_posterior_of_the_proposed_diagnosis(
    world: World, examples: list[Example]
) -> None:
    for e in of(examples, "ce", "cot_ce", "topk_ce"):
        p = world.posterior(e.patient.facts)[world.index[e.proposed or ""]]
        assert e.posterior == pytest.approx(p)
        if e.skill == "topk_ce":
            found = guesses(e.reply)
            assert found is not None and found == tuple(
                stretched(p, s) for s in (0, -0.5, 0.5, -1, 1)
            )
            assert found[3] <= found[1] <= found[0] <= found[2] <= found[4]
        else:
            assert score_0_100(e.reply) == elicited_score(p)
        if e.skill == "cot_ce":
            why = reasons(world, world.knowledge.conditions[e.proposed or ""], e.patient.facts)
            assert e.reply == f"{why}. [{elicited_score(p)}]"


def test_chances_are_the_exact_posterior(world: World, examples: list[Example]) -> None:
    for e in examples:
        if e.skill not in ("diagnosis", "prior", "p_true"):
            assert e.chances is None, e.skill
            continue
        assert (
            e.chances is not None and e.chances.sum() == pytest.approx(1) and (e.chances >= 0).all()
        )
        posterior = world.posterior(e.patient.facts)
        if e.skill == "diagnosis":
            assert e.chances == pytest.approx(posterior)
            assert e.chances[world.index[e.patient.condition]] > 0
        elif e.skill == "prior":
            priors = [c.prior for c in world.knowledge.conditions.values()]
            assert e.chances == pytest.approx(np.array(priors) / sum(priors))
        else:
            p = posterior[world.index[e.proposed or ""]]
            assert e.chances == pytest.approx([p, 1 - p]) and e.posterior == pytest.approx(p)


def test_reasons_by_hand(world: World) -> None:
    bronchitis = world.knowledge.conditions["acute_bronchitis"]
    name = {f.id: f.name for f in world.knowledge.findings.values()}
    grades = bronchitis.grades
    assert {"cough", "fever", "runny_nose", "breathlessness"} <= set(grades) and not {
        "diarrhea",
        "ear_pain",
    } & set(grades)
    yes = [
        f.id
        for f in world.findings
        if grades.get(f.id) in ("always", "usual", "often", "some") and f.id != "pain"
    ]
    rare = [c for c in world.conditions if "rare" in c.grades.values()]
    other = [f.id for f in world.findings if f.id not in grades and f.id != "pain"][:2]
    facts = (
        Fact("pain", True),
        *(Fact(f, True) for f in yes[:4]),
        Fact(yes[4], False),
        *(Fact(f, True) for f in other),
    )
    facts += (Fact(other[0], False), Fact("pain_site", True, ("belly",)))
    assert (
        reasons(world, bronchitis, facts)
        == f"For it: {name[yes[0]]}, {name[yes[1]]} and {name[yes[2]]}. Against it, denied:"
        f" {name[yes[4]]}. Unexplained: {name[other[0]]} and {name[other[1]]}"
    )
    silent = "For it: nothing. Against it, denied: nothing. Unexplained: nothing"
    assert reasons(world, bronchitis, (Fact("pain", True),)) == silent
    for condition in rare[:1]:
        seldom = next(
            f for f, grade in condition.grades.items() if grade == "rare" and f in world.column
        )
        assert (
            reasons(world, condition, (Fact(seldom, True),))
            == reasons(world, condition, (Fact(seldom, False),))
            == silent
        )


# -- examples: MedConf's steps
# ------------------------------------------------------------------------------------------

FEVER = Criterion("fever", "fever", "strong")
COUGH = Criterion("cough", "cough", "moderate")
BELLY = Criterion("pain_site", "pain in the belly", "weak", frozenset({"belly", "epigastric"}))


def exchange(finding: str, affirmed: bool, words: str, *values: str) -> tuple[Fact, Statement]:
    return Fact(finding, affirmed, values), Statement(
        f"Doctor: Well?\nPatient: {words}", finding, affirmed
    )


@pytest.mark.parametrize(
    ("criterion", "level", "quote"),
    [
        (FEVER, "supported", "Burning hot."),
        (COUGH, "contradicted", "Not a cough."),
        (BELLY, "supported", "In my chest and my belly."),
        (
            Criterion("pain_site", "pain in the head", "weak", frozenset({"forehead"})),
            "contradicted",
            "In my chest and my belly.",
        ),
        (Criterion("nausea", "nausea", "weak"), "missing", None),
    ],
)
def test_a_criterion_is_held_against_what_was_said(
    criterion: Criterion, level: str, quote: str | None
) -> None:
    facts, said = zip(
        exchange("pain", True, "It hurts."),
        exchange("cough", False, "Not a cough."),
        exchange("fever", True, "Burning hot."),
        exchange("pain_site", True, "In my chest and my belly.", "chest", "belly"),
        strict=True,
    )
    assert mark(criterion, facts, said) == Mark(criterion, level, quote)


def test_pain_denied_contradicts_every_place_and_pain_without_a_place_none() -> None:
    for affirmed, level, quote in ((False, "contradicted", "No pain."), (True, "missing", None)):
        fact, said = exchange("pain", affirmed, "No pain.")
        assert mark(BELLY, [fact], [said]) == Mark(BELLY, level, quote)
        assert mark(FEVER, [fact], [said]) == Mark(FEVER, "missing", None)
    fact, said = exchange("pain_site", False, "Nowhere special.")
    assert mark(BELLY, [fact], [said]) == Mark(BELLY, "contradicted", "Nowhere special.")


@pytest.mark.parametrize(
    ("levels", "weighed", "plain"),
    [
        ("smc", 35, 0),
        ("sss", 100, 100),
        ("mmm", 0, 0),
        ("csc", 0, 0),
        ("ssc", 65, 35),
        ("mss", 50, 65),
    ],
)
def test_the_score_by_hand(levels: str, weighed: int, plain: int) -> None:
    """Weights 3, 2, 1 of 6: supported strong and contradicted weak make 2/6, 33, so 35; unweighed 0
    of 3."""
    names = {level[0]: level for level in SUPPORT_LEVELS}
    marks = [Mark(c, names[k], None) for c, k in zip((FEVER, COUGH, BELLY), levels, strict=True)]
    assert (score(marks), score(marks, importance=False)) == (weighed, plain)


def test_the_score_is_the_weighted_share_to_the_nearest_five() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        marks = [
            Mark((FEVER, COUGH, BELLY)[rng.integers(3)], SUPPORT_LEVELS[rng.integers(3)], None)
            for _ in range(int(rng.integers(1, MOST + 1)))
        ]
        for importance in (True, False):
            weight = np.array(
                [
                    {"s": 3, "m": 2, "w": 1}[m.criterion.importance[0]] if importance else 1
                    for m in marks
                ]
            )
            sign = np.array(
                [(m.level == "supported") - (m.level == "contradicted") for m in marks], float
            )
            found = score(marks, importance)
            assert (
                found % 5 == 0
                and abs(found - 100 * max(0.0, np.average(sign, weights=weight))) <= 2.5 + 1e-9
            )
    assert score([]) == 0


def passage(id: str, condition: str, *criteria: tuple[Criterion, ...]) -> Passage:
    return Passage(
        id,
        condition,
        "Title",
        tuple(Sentence(f"Sentence {i} of {id}.", c) for i, c in enumerate(criteria)),
    )


def test_a_profile_lists_what_the_passages_say_of_the_diagnosis_in_their_order() -> None:
    own = passage("a", "x", (FEVER,), (), (COUGH, BELLY))
    more = passage("b", "x", tuple(Criterion(f"f{i}", f"f{i}", "weak") for i in range(9)))
    other = passage("c", "y", (Criterion("nausea", "nausea", "strong"),))
    assert criteria_of("x", [other, own]) == [FEVER, COUGH, BELLY]
    assert [c.name for c in criteria_of("x", [more, other, own])] == [f"f{i}" for i in range(MOST)]
    assert [c.name for c in criteria_of("x", [own, more])][:4] == [
        "fever",
        "cough",
        "pain in the belly",
        "f0",
    ]
    assert criteria_of("x", [other]) == [] == criteria_of("x", [])
    assert profile_json([]) == "[]" and json.loads(profile_json([FEVER, BELLY])) == [
        {"id": 1, "description": "fever", "importance": "strong"},
        {"id": 2, "description": "pain in the belly", "importance": "weak"},
    ]
    assert (
        profile_prose([FEVER, COUGH, BELLY], importance=False)
        == "Look for fever, cough and pain in the belly."
    )
    assert (
        profile_prose([FEVER]) == "Look for fever (strong)."
        and profile_prose([]) == "Nothing is said of it."
    )


def test_shown_passages_vary_in_choice_and_order() -> None:
    condition = next(iter(by_condition()))
    rng, own = np.random.default_rng(8), [p.id for p in by_condition()[condition]]
    drawn = [[p.id for p in shown_passages(condition, rng)] for _ in range(100)]
    kept = [[i for i in ids if i in own] for ids in drawn]
    assert all(len(set(ids)) == len(ids) for ids in drawn)
    assert (
        own in kept
        and [] in kept
        and any(0 < len(k) < len(own) for k in kept)
        and own[::-1] in kept
    )
    assert any(ids[: len(own)] == own and len(ids) > len(own) for ids in drawn) and any(
        set(ids) - set(own) for ids in drawn
    )


@VARIANT
def test_profile_examples_read_as_the_package_reads_them(
    world: World, encode: Encoder, monkeypatch: pytest.MonkeyPatch, variant: tuple[str, ...]
) -> None:
    monkeypatch.setattr(replies, "_options", lambda rng: frozenset(variant))
    rng, options = np.random.default_rng(11), {*variant, "profile"}
    for _ in range(8):
        e = example(world, rng, "profile")
        condition = world.knowledge.conditions[e.patient.condition]
        retrieved, importance = "retrieval" in options, "importance" in options
        assert e.messages == render(
            "profile", answer=condition.name, passages=inside(e, "passages"), options=options
        )
        shown = in_passages(e) if retrieved else by_condition()[condition.id]
        assert (inside(e, "passages") is not None) == retrieved and (
            not retrieved or inside(e, "passages") == library_text(shown)
        )  # type: ignore[arg-type]
        stated = [
            c for p in shown if p.condition == condition.id for s in p.sentences for c in s.criteria
        ][:MOST]
        assert all(c.finding == "pain_site" or c.finding in condition.grades for c in stated)
        if "structure" not in options:
            assert e.reply == profile_prose(stated, importance)
        elif not stated:
            assert e.reply == "[]"
            with pytest.raises(Unreadable, match="empty"):
                read_profile(e.reply)
        else:
            read = read_profile(e.reply, importance=importance)
            assert [(c.id, c.description) for c in read] == [
                (i, c.name) for i, c in enumerate(stated, 1)
            ]
            assert [c.importance for c in read] == [
                c.importance if importance else None for c in stated
            ]
            assert profile_text(read) == e.reply
        assert_it_fits(encode, e)


def assert_it_fits(encode: Encoder, e: Example) -> None:
    """Nothing of it is cut in training, and the reply has room where the package asks for it."""
    prompt, reply, _ = encode(e)
    assert len(prompt) + len(reply) <= WINDOW and len(reply) <= reply_room(encode_window(), 10_000)


def encode_window():
    return type("Window", (), {"window": WINDOW})()


@VARIANT
def test_evidence_examples_read_as_the_package_reads_them(
    world: World, encode: Encoder, monkeypatch: pytest.MonkeyPatch, variant: tuple[str, ...]
) -> None:
    monkeypatch.setattr(replies, "_options", lambda rng: frozenset(variant))
    rng, options, levels = np.random.default_rng(12), set(variant), Counter()
    importance, whole = "importance" in options, {"profile", "structure"} <= options
    for _ in range(8):
        e = example(world, rng, "evidence")
        assert e.proposed is not None
        condition, words, profile = (
            world.knowledge.conditions[e.proposed],
            inside(e, "patient") or "",
            inside(e, "profile"),
        )
        again = {"passages": inside(e, "passages"), "profile": profile}
        assert e.messages == render(
            "evidence", patient=words, answer=condition.name, options=options, **again
        )
        assert (profile is not None) == ("profile" in options) and (again["passages"] is None) == (
            "profile" in options
        )
        said = tuple(
            Statement(f"Doctor: {s}", f.finding, f.affirmed)
            for s, f in zip(
                words.removeprefix("Doctor: ").split("\nDoctor: "), e.patient.facts, strict=True
            )
        )
        own = [c for p in by_condition()[condition.id] for s in p.sentences for c in s.criteria]
        if "profile" not in options:
            criteria = criteria_of(condition.id, in_passages(e))
        elif whole:
            criteria = [
                next(c for c in own if c.name == d.description)
                for d in listed_profile(e, importance)
            ]
        else:
            criteria = [
                c
                for c in own
                if re.search(rf"(for|,|and) {re.escape(c.name)} \({c.importance}\)", profile or "")
            ]
        marks = [mark(c, e.patient.facts, said) for c in criteria]
        value, reasoning = read_score(e.reply)
        assert value == score(marks, importance) and reasoning
        if whole:
            found, agrees = read_evidence(e.reply, listed_profile(e, importance), words)
            assert agrees is True
            assert [(f.support_level, f.quote) for f in found] == [
                (m.level, m.quote) for m in marks
            ]
            assert all(
                f.quote_occurs is (None if f.support_level == "missing" else True) for f in found
            )
            assert all(f.quote is None or f"\nPatient: {f.quote}" in words for f in found)
        levels.update(m.level for m in marks)
        assert_it_fits(encode, e)
    assert set(levels) == set(SUPPORT_LEVELS)


def test_the_package_s_library_reads_as_in_training() -> None:
    first, second = passages()[:2]
    assert (
        library_text([first, second])
        == f"1. {first.title}. {first.content}\n2. {second.title}. {second.content}"
    )


# -- speech
# --------------------------------------------------------------------------------------------------


def test_every_finding_has_its_loose_wordings(world: World) -> None:
    table = world.knowledge.findings
    assert set(loose_wordings()) == set(table)
    for finding, wordings in loose_wordings().items():
        answered = table[finding].form in ("binary", "flag")
        assert set(wordings) == ({"ask", "yes", "no"} if answered else {"ask"}), finding
        for texts in wordings.values():
            assert texts and all(isinstance(t, str) and t.strip() == t != "" for t in texts), (
                finding
            )
            assert len({normalise(t) for t in texts}) == len(texts), finding
        assert not {normalise(t) for t in wordings.get("yes", [])} & {
            normalise(t) for t in wordings.get("no", [])
        }, finding


def test_no_loose_wording_is_the_table_s(world: World) -> None:
    asked = {normalise(f.question) for f in world.knowledge.findings.values()}
    answers = {
        normalise(t) for f in world.knowledge.findings.values() for t in (*f.affirm, *f.deny)
    }
    for finding, wordings in loose_wordings().items():
        assert not {normalise(t) for t in wordings["ask"]} & asked, finding
        assert (
            not {normalise(t) for key in ("yes", "no") for t in wordings.get(key, [])} & answers
        ), finding


def stripped(text: str, before: tuple[str, ...], after: tuple[str, ...] = ()) -> set[str]:
    """The text without what may stand before and after it, compared without case and
    punctuation."""
    text = text.removesuffix(".")
    heads = {text, *(text[len(b) :] for b in before if text.startswith(b))}
    return {normalise(t) for h in heads for t in (h, *(h.removesuffix(a) for a in after))}


def test_loose_speech_keeps_the_finding_and_its_answer(world: World) -> None:
    rng, loosely = np.random.default_rng(6), 0
    for finding in world.knowledge.findings.values():
        wordings = loose_wordings()[finding.id]
        for affirmed in (True, False):
            fact = Fact(
                finding.id,
                affirmed,
                (world.value_ids(finding)[0],) if affirmed and finding.form in VALUED else (),
            )
            for _ in range(3):
                said = spoken(world, fact, rng, loose=True)
                assert (said.finding, said.affirmed) == (finding.id, affirmed)
                question, answer = said.text.removeprefix("Doctor: ").split("\nPatient: ")
                assert stripped(question, TURNS) & {
                    normalise(t) for t in (finding.question, *wordings["ask"])
                }, said.text
                own = {
                    world.knowledge.statement(finding.id, affirmed, fact.values, k).text.partition(
                        "\nPatient: "
                    )[2]
                    for k in range(9)
                }
                others = {normalise(t) for t in wordings.get("yes" if affirmed else "no", [])}
                assert answer in own or stripped(answer, HEDGES_BEFORE, HEDGES_AFTER) & others, (
                    said.text
                )
                loosely += answer not in own
    assert loosely > 600


VALUED = ("several", "choice", "scale")


def test_patients_speak_in_the_table_s_words_unless_loosely(world: World) -> None:
    rng = np.random.default_rng(7)
    patient = world.draw(rng, talk=0.9, denial=0.8)
    plain, asked = (
        told(world, patient, rng, loose=0.0),
        {f.question for f in world.knowledge.findings.values()},
    )
    assert [(s.finding, s.affirmed) for s in plain] == [
        (f.finding, f.affirmed) for f in patient.facts
    ]
    assert {s.text.removeprefix("Doctor: ").partition("\n")[0] for s in plain} <= asked
    every = [told(world, patient, rng, loose=1.0) for _ in range(10)]
    assert all(
        [(s.finding, s.affirmed) for s in t] == [(f.finding, f.affirmed) for f in patient.facts]
        for t in every
    )
    assert any(
        s.text.removeprefix("Doctor: ").partition("\n")[0] not in asked for t in every for s in t
    )


# -- tokens
# --------------------------------------------------------------------------------------------------


def test_every_phrase_is_one_token(world: World, tokenizer) -> None:
    every = list(dict.fromkeys(t for t in phrases(world) if t and "\n" not in t[1:]))
    found = tokenizer(every, add_special_tokens=False)["input_ids"]
    assert [t for t, ids in zip(every, found, strict=True) if len(ids) != 1] == []
    assert tokenizer.batch_decode(found) == every


def test_tokenizer_splits_names_and_keeps_its_marks_single(world: World, tokenizer) -> None:
    assert tokenizer.convert_ids_to_tokens(list(range(len(SPECIAL)))) == SPECIAL
    verdicts = [f'", "support_level": "{level}"}},' for level in ("supported", "contradicted")]
    fork = ['", "evidence": "', '", "evidence": null, "support_level": "missing"},']
    for word in (*SPECIAL, "[", "]", "True", "False", "50", "100", *verdicts, *fork):
        assert len(ids_of(tokenizer, word)) == 1, word
    for c in world.conditions:
        assert len(ids_of(tokenizer, c.name)) >= 2, c.name
        assert len(ids_of(tokenizer, f"[{c.name}]")) == len(ids_of(tokenizer, c.name)) + 2


def test_any_text_comes_back_whole(tokenizer) -> None:
    rng = np.random.default_rng(9)
    letters = list("abc XYZ 019 .,;:!?'\"[]{}()<>|&%\n\n\t") + list(
        "äöüÄÖÜßéèñçøłŠ€–…“”µ°½αЖ中日🙂🏥\u0301\u200b\r\x00"
    )
    texts = [
        "".join(letters[i] for i in rng.integers(len(letters), size=int(n)))
        for n in rng.integers(1, 60, size=300)
    ]
    texts += [
        "Übelkeit seit gestern, Fieber über 39 °C.",
        "naïve café",
        " two  spaces ",
        "\n\n",
        " ",
        "don 't , he said .",
    ]
    for text in texts:
        assert tokenizer.decode(ids_of(tokenizer, text)) == text


def test_encoding_line_by_line_equals_tokenising_the_whole_chat(
    tokenizer, encode: Encoder, examples: list[Example]
) -> None:
    for e in examples:
        chat = [{"role": r, "content": c} for r, c in (*e.messages, ("assistant", e.reply))]
        text = tokenizer.apply_chat_template(chat, tokenize=False)
        prompt, reply, soft = encode(e)
        end = (
            [tokenizer.eos_token_id] if e.skill == "lookup" else []
        )  # a look-up goes on in a whole reply
        assert prompt + reply + end == ids_of(tokenizer, text)
        assert tokenizer.decode(prompt + reply + end) == text
        assert tokenizer.decode(reply + end) == e.reply + "</s>" and len(soft) == len(reply)


def test_a_quotation_is_the_very_token_of_the_prompt(world: World, tokenizer) -> None:
    answer, quoted = ids_of(tokenizer, "\nPatient: "), ids_of(tokenizer, '", "evidence": "')
    assert len(answer) == len(quoted) == 1
    prompts, lines = [], []
    for f in world.findings:
        for affirmed, n in ((True, len(f.affirm)), (False, len(f.deny))):
            for wording in range(n):
                said = world.knowledge.statement(f.id, affirmed, (), wording)
                held = mark(Criterion(f.id, f.name, "weak"), [Fact(f.id, affirmed)], [said])
                prompts.append("\n" + said.text)
                lines.append("\n" + evidence_json([held]).split("\n")[1])
    for said, prompt, reply in zip(
        prompts, ids_of(tokenizer, prompts), ids_of(tokenizer, lines), strict=True
    ):
        assert len(prompt) == 4 and prompt[2:3] == answer, said
        at = reply.index(quoted[0])
        assert reply[at + 1] == prompt[3] and len(reply) == at + 3, said


# -- soft targets
# --------------------------------------------------------------------------------------------------


def test_soft_targets_are_the_marginal_over_names_that_share_the_prefix(
    world: World, tokenizer, encode: Encoder
) -> None:
    rng = np.random.default_rng(2)
    chances = rng.dirichlet(np.full(len(world.conditions), 0.5)) * 0.9 + 0.1 / len(world.conditions)
    names = [ids_of(tokenizer, f"[{c.name}]</s>") for c in world.conditions]
    for k, c in enumerate(world.conditions):
        patient = Patient(c.id, "female", ())
        _, reply, soft = encode(
            Example("diagnosis", render("diagnosis"), f"[{c.name}]", patient, chances=chances)
        )
        assert reply == names[k]
        for i, found in enumerate(soft):
            sharing = [
                (ids[i], p) for ids, p in zip(names, chances, strict=True) if ids[:i] == reply[:i]
            ]
            expected = {
                t: sum(p for u, p in sharing if u == t) / sum(p for _, p in sharing)
                for t, _ in sharing
            }
            assert (found or {reply[i]: 1.0}) == pytest.approx(expected)
        along = np.prod([s[t] for s, t in zip(soft, reply, strict=True) if s is not None])
        assert along == pytest.approx(chances[k])


def test_soft_targets_of_examples_sum_to_one_and_others_are_certain(
    encode: Encoder, examples: list[Example]
) -> None:
    for e in examples:
        _, reply, soft = encode(e)
        if e.skill == "p_true":
            assert e.chances is not None and soft == [
                dict(zip(encode.verdicts, e.chances, strict=True)),
                None,
            ]
        elif e.skill not in ("diagnosis", "prior"):
            assert soft == [None] * len(reply)
        assert all(sum(s.values()) == pytest.approx(1) for s in soft if s is not None)


def test_a_condition_that_is_ruled_out_leaves_the_other_certain(
    world: World, encode: Encoder
) -> None:
    chances = np.zeros(len(world.conditions))
    first, second = (
        0,
        next(
            i for i, c in enumerate(world.conditions) if c.name[:4] != world.conditions[0].name[:4]
        ),
    )
    chances[[first, second]] = 0.3, 0.7
    name = world.conditions[second].name
    patient = Patient(world.conditions[second].id, "female", ())
    _, reply, soft = encode(
        Example("diagnosis", render("diagnosis"), f"[{name}]", patient, chances=chances)
    )
    assert soft[0] is None and soft[2:] == [None] * (len(reply) - 2)
    assert soft[1] == pytest.approx({encode.answers[first][1]: 0.3, encode.answers[second][1]: 0.7})


# -- batches and the loss
# ---------------------------------------------------------------------------------------------


def test_pools_depend_on_their_number_only_and_fit_the_budget(
    world: World, tokenizer, made: list[list[Batch]]
) -> None:
    assert pool_of_batches(world, Encoder(tokenizer, world), TINY, 1) == made[1] != made[0]
    for batches in made:
        assert sum(len(b) for b in batches) == TINY["pool"]
        assert all(tensors(b, 0)[0].numel() <= TINY["batch_tokens"] for b in batches if len(b) > 1)


def test_the_first_pools_hold_their_own_mixture(
    world: World, encode: Encoder, made: list[list[Batch]]
) -> None:
    recipe = TINY | {"first": 1}
    assert (
        pool_of_batches(world, encode, recipe, 0) != made[0]
        and pool_of_batches(world, encode, recipe, 1) == made[1]
    )
    rng = np.random.default_rng(3)
    drawn = [example(world, rng, shares=FIRST).skill for _ in range(60)]
    assert set(drawn) == set(FIRST) and drawn.count("lookup") > 30


# A trunk whose second pool is the first of the whole mixture and whose fourth the first of the
# later one:
# pool, the pool where the branch leaves (None: on the trunk), what the pool holds.
MIXTURES = [
    (0, None, FIRST), (1, None, SKILLS), (2, None, SKILLS), (3, None, LATER), (50, None, LATER),
    (2, 2, SKILLS), (3, 2, SKILLS), (50, 3, SKILLS), (3, 3, SKILLS),
    (4, 4, LATER), (50, 4, LATER), (1, 1, FIRST), (0, 3, FIRST),
]  # fmt: skip


@each(("pool", "fork", "mixture"), MIXTURES)
def test_a_branch_keeps_the_mixture_with_which_it_left_the_trunk(
    pool: int, fork: int | None, mixture: dict
) -> None:
    assert shares({"first": 1, "later": 3}, pool, fork) == mixture
    assert FIRST != SKILLS != LATER != FIRST


def test_what_a_consultation_takes_comes_last() -> None:
    recipe = {
        "first": 1,
        "later": 2,
        "talk": 3,
        "more_talk": 5,
        "most_talk": 6,
        "clinic": 8,
        "reviews": 9,
    }
    met = [shares(recipe, n) for n in range(10)]
    assert met == [
        FIRST,
        SKILLS,
        LATER,
        WITH_TALK,
        WITH_TALK,
        MORE_TALK,
        MOST_TALK,
        MOST_TALK,
        CLINIC,
        REVIEWS,
    ]
    assert shares(recipe, 9, 4) == WITH_TALK


@pytest.mark.parametrize(("pool", "fork", "mixture"), MIXTURES)
def test_every_example_of_a_pool_is_drawn_from_its_mixture(
    world: World,
    encode: Encoder,
    monkeypatch: pytest.MonkeyPatch,
    pool: int,
    fork: int | None,
    mixture: dict,
) -> None:
    asked = []

    def recorded(world: World, rng: np.random.Generator, shares: dict) -> Example:
        asked.append(shares)
        return example(world, rng, "prior")

    monkeypatch.setattr(program, "example", recorded)
    batches = pool_of_batches(world, encode, TINY | {"first": 1, "later": 3}, pool, fork)
    assert asked == [mixture] * TINY["pool"] and sum(map(len, batches)) == TINY["pool"]


def test_both_models_end_on_the_last_mixture_and_the_closed_one_leaves_the_trunk_later() -> None:
    for at, length in BRANCHES.values():
        assert {n: shares(RECIPE, n, at) for n in range(at, at + length)} == dict.fromkeys(
            range(at, at + length), REVIEWS
        )
    assert BRANCHES["embedded"][0] < BRANCHES["embedded-closed"][0]


@pytest.mark.slow
def test_a_second_process_makes_the_same_pools(made: list[list[Batch]]) -> None:
    assert list(program.pools(TINY, range(1, 3))) == made[1:]
    assert list(program.pools(TINY, range(2, 2))) == []


def test_only_a_summary_s_keys_go_unscored_and_only_in_long_replies(
    made: list[list[Batch]], encode: Encoder
) -> None:
    seen: list[bool] = []
    for _, reply, soft in (row for batches in made for b in batches for row in b):
        for t, s in zip(reply, soft, strict=True):
            key = t in encode.fixed and len(reply) > LONG
            assert key or s != {}
            seen += [s == {}] * key
    assert len(seen) > 20 and 0.45 < np.mean(seen) < 0.95


def test_targets_are_the_reply_weighed_by_the_root_of_its_length() -> None:
    rows: Batch = [
        ([5, 6, 7], [8, 9, 10, 11], [None, {9: 0.25, 12: 0.75}, {}, None]),
        ([5], [4], [{3: 0.5, 4: 0.5}]),
    ]
    ids, labels, (at, token, chance) = tensors(rows, pad=0)
    assert ids.shape == labels.shape == (2, 8)
    assert ids.tolist() == [[5, 6, 7, 8, 9, 10, 11, 0], [5, 4, 0, 0, 0, 0, 0, 0]]
    assert labels.tolist() == [[-100, -100, 8, 9, -100, 11, -100, -100], [4, *[-100] * 7]]
    assert at.tolist() == [0, 1, 1, 2, 3, 3] and token.tolist() == [8, 9, 12, 11, 3, 4]
    assert chance.tolist() == pytest.approx([0.5, 0.125, 0.375, 0.5, 0.5, 0.5])


def test_a_prompt_beyond_the_window_is_cut_and_keeps_its_reply() -> None:
    ids, labels, _ = tensors([(list(range(10, 10 + 2 * WINDOW)), [3, 4], [None, None])], pad=0)
    assert ids.shape == (1, WINDOW) and ids[0, -2:].tolist() == [3, 4]
    assert labels[0, -3:].tolist() == [3, 4, -100] and (labels != -100).sum() == 2


class Few:
    """A tokenizer of a few tokens."""

    def __init__(self, tokens: list[str]):
        self.tokens = tokens

    def __len__(self) -> int:
        return len(self.tokens)

    def convert_ids_to_tokens(self, i: int) -> str:
        return self.tokens[i]


MEANINGS = program.meanings  # before the fixture above takes its place


def test_embeddings_begin_with_what_their_phrases_mean(world: World) -> None:
    fever, cough = (world.knowledge.findings[f] for f in ("fever", "cough"))
    tokens = [
        "<s>",
        "[",
        '", "evidence": "',
        fever.name,
        cough.name,
        fever.affirm[0],
        fever.deny[0],
        cough.affirm[0],
        "I own a bicycle.",
    ]
    tokens += [
        "Where do you live?",
        "The sun shines.",
        "We went to the market.",
        "My sister plays chess.",
        "It is Tuesday.",
    ]
    found = MEANINGS(Few(tokens), 8)
    assert found.shape == (len(tokens), 8) and not found[:3].any()
    assert torch.allclose(found[3:].norm(dim=1), torch.ones(len(tokens) - 3), atol=1e-5)
    alike = found @ found.T
    assert (
        min(alike[3, 5], alike[3, 6], alike[4, 7])
        > 0.5
        > max(alike[3, 7], alike[4, 5], alike[3, 8], alike[4, 8])
    )


def test_the_table_s_wordings_are_known_by_their_finding(world: World) -> None:
    known = program.worded(world)
    for f in world.knowledge.findings.values():
        assert all(
            piece in known for text in (*f.affirm, *f.deny) for piece in text.split("{value}")
        )
    assert known[world.knowledge.findings["fever"].deny[0]] == "fever"


def test_the_loss_is_the_weighted_cross_entropy_made_only_where_it_is_scored(tokenizer) -> None:
    model = new_model(tokenizer, TINY).eval()
    rows: Batch = [
        ([9, 10, 11], [20], [{20: 0.25, 30: 0.75}]),
        ([9, 12], [21, 22, 23, 24], [None, {}, None, None]),
    ]
    ids, labels, target = tensors(rows, pad=0)
    projected: list[int] = []
    hook = model.lm_head.register_forward_hook(
        lambda _m, given, _o: projected.append(given[0].shape[0])
    )
    with torch.no_grad():
        found = loss_of(model, ids, labels, target).item()
        hook.remove()
        logp = torch.log_softmax(model(input_ids=ids).logits, -1)
    short = 0.25 * logp[0, 2, 20] + 0.75 * logp[0, 2, 30]
    long = logp[1, 1, 21] + logp[1, 3, 23] + logp[1, 4, 24]
    assert found == pytest.approx(-((short + 0.5 * long) / (1 + 0.5 * 3)).item(), rel=1e-5)
    assert projected == [4]


def test_the_rate_warms_up_stays_and_falls_to_two_percent_on_a_branch() -> None:
    recipe = {"pool": 100, "lr": 2.0, "warmup": 400}
    assert rate(0, recipe) == pytest.approx(1.0) and rate(100, recipe) == pytest.approx(1.5)
    assert rate(200, recipe) == rate(5000, recipe) == rate(10**6, recipe) == 2.0
    branch = (30, 10)
    assert rate(3000, recipe, branch) == 2.0
    assert rate(3500, recipe, branch) == pytest.approx(2.0 * 0.51)
    assert rate(4000, recipe, branch) == rate(9000, recipe, branch) == pytest.approx(0.04)
    falling = [rate(n, recipe, branch) for n in range(3000, 4001, 50)]
    assert np.diff(falling) == pytest.approx(np.full(20, -0.098))


# -- runs
# --------------------------------------------------------------------------------------------------


class Interrupted(Exception):
    """Stands for the machine going off."""


@pytest.fixture
def tiny_runs(
    monkeypatch: pytest.MonkeyPatch, tokenizer, made: list[list[Batch]]
) -> pytest.MonkeyPatch:
    """Runs take the pools that are made already, and keep a checkpoint of each."""
    monkeypatch.setattr(program, "build_tokenizer", lambda world: tokenizer)
    monkeypatch.setattr(program, "pools", lambda recipe, numbers, fork: (made[n] for n in numbers))
    monkeypatch.setattr(
        program.Trainer, "run", partialmethod(program.Trainer.run, checkpoint_every=1)
    )
    return monkeypatch


def weights(path: Path) -> dict[str, torch.Tensor]:
    return torch.load(path, weights_only=True)["model"]


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(
        torch.allclose(w, b[n], atol=1e-6, rtol=0) for n, w in a.items()
    )


def test_branches_start_from_the_trunk_s_fork_and_leave_the_trunk_untouched(
    tmp_path: Path, tokenizer, tiny_runs: pytest.MonkeyPatch
) -> None:
    rates: list[float] = []

    def noted(model, optimiser, rows, pad, lr):
        rates.append(lr)
        return step(model, optimiser, rows, pad, lr)

    step = program.step
    tiny_runs.setattr(program, "step", noted)
    branches = {"early": (1, 1), "late": (2, 1)}
    early = program.train("early", TINY, tmp_path, branches).state_dict()
    fork = (tmp_path / "trunk-1.pt").read_bytes()
    assert same(weights(tmp_path / "trunk.pt"), weights(tmp_path / "trunk-1.pt"))
    assert same(early, weights(tmp_path / "early.pt")) and not same(
        early, weights(tmp_path / "trunk-1.pt")
    )
    summary = json.loads((tmp_path / "early.json").read_text())
    assert (summary["pools"], summary["examples"], summary["branch"], summary["recipe"]) == (
        2,
        2 * TINY["pool"],
        [1, 1],
        TINY,
    )

    n_early = len(rates)
    late = program.train("late", TINY, tmp_path, branches).state_dict()
    assert (tmp_path / "trunk-1.pt").read_bytes() == fork
    assert same(weights(tmp_path / "trunk.pt"), weights(tmp_path / "trunk-2.pt")) and not same(
        late, early
    )
    alone = Trainer(TINY)
    alone.run(2, tmp_path / "alone.pt")
    assert same(alone.model.state_dict(), weights(tmp_path / "trunk-2.pt"))
    branch = Trainer(TINY)
    branch.load(tmp_path / "trunk-1.pt")
    branch.run(2, tmp_path / "branch.pt", (1, 1))
    assert same(branch.model.state_dict(), early)
    assert not same(early, weights(tmp_path / "trunk-2.pt"))

    assert rates[0] == TINY["lr"]
    assert min(rates[:n_early]) < TINY["lr"] and rates[:n_early] == sorted(
        rates[:n_early], reverse=True
    )
    with pytest.raises(ValueError, match="2 pools, before leaves it at 1"):
        (tmp_path / "trunk-1.pt").unlink()
        program.train("before", TINY, tmp_path, {"before": (1, 1)})


@pytest.mark.parametrize("stopped_at", [1, 2], ids=["in the trunk", "on the branch"])
def test_an_interrupted_run_ends_where_an_unbroken_one_does(
    tmp_path: Path,
    tokenizer,
    tiny_runs: pytest.MonkeyPatch,
    made: list[list[Batch]],
    stopped_at: int,
) -> None:
    branches = {"it": (2, 1)} if stopped_at == 1 else {"it": (1, 2)}
    whole = program.train("it", TINY, tmp_path / "whole", branches).state_dict()

    def until(recipe: dict, numbers: range, fork: int | None) -> Iterator[list[Batch]]:
        for n in numbers:
            if n == stopped_at:
                raise Interrupted
            yield made[n]

    with tiny_runs.context() as m:
        m.setattr(program, "pools", until)
        with pytest.raises(Interrupted):
            program.train("it", TINY, tmp_path / "broken", branches)
    last = tmp_path / "broken" / ("trunk.pt" if stopped_at == 1 else "it.pt")
    half = torch.load(last, weights_only=True)
    assert (
        half["state"]["pools"] == stopped_at
        and half["state"]["examples"] == stopped_at * TINY["pool"]
    )
    resumed = program.train("it", TINY, tmp_path / "broken", branches).state_dict()
    assert (
        same(whole, resumed)
        and not same(whole, half["model"])
        and not same(whole, new_model(tokenizer, TINY).state_dict())
    )
    again = program.train("it", TINY, tmp_path / "broken", branches).state_dict()
    assert same(again, resumed)


def test_the_trunk_is_trained_in_the_order_in_which_branches_leave_it() -> None:
    leaves = [at for at, _ in BRANCHES.values()]
    assert leaves == sorted(leaves) and all(length > 0 for _, length in BRANCHES.values())


def test_the_exported_folder_opens_with_transformers(
    tmp_path: Path,
    tokenizer,
    encode: Encoder,
    examples: list[Example],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    monkeypatch.setattr(program, "build_tokenizer", lambda world: tokenizer)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    model = new_model(tokenizer, TINY)
    export(model, tmp_path / "model")
    opened = AutoModelForCausalLM.from_pretrained(tmp_path / "model", dtype=torch.float32).eval()
    words = AutoTokenizer.from_pretrained(tmp_path / "model")
    for e in examples[::10]:
        chat = [{"role": r, "content": c} for r, c in e.messages]
        ids = words.apply_chat_template(chat, add_generation_prompt=True, return_dict=False)
        assert ids == encode(e)[0]
    assert (words.pad_token, words.bos_token, words.eos_token, words.padding_side) == (
        "<pad>",
        "<s>",
        "</s>",
        "left",
    )
    saved = model.state_dict()
    assert saved.keys() == opened.state_dict().keys()
    assert all(torch.equal(w, saved[n].float()) for n, w in opened.state_dict().items())
    config = opened.generation_config
    assert (
        config.eos_token_id == tokenizer.eos_token_id
        and config.pad_token_id == tokenizer.pad_token_id
    )


# -- evaluation
# --------------------------------------------------------------------------------------------------


def test_fact_of_reads_the_places(world: World) -> None:
    rng, sites = (
        np.random.default_rng(4),
        [v.id for v in world.knowledge.values.values() if v.kind == "site"],
    )
    chosen = [(s,) for s in sites] + [
        tuple(sites[i] for i in rng.choice(len(sites), 3, replace=False)) for _ in range(100)
    ]
    for places in chosen:
        fact = fact_of(
            world, world.knowledge.statement("pain_site", True, places, int(rng.integers(9)))
        )
        assert (fact.finding, fact.affirmed, sorted(fact.values)) == (
            "pain_site",
            True,
            sorted(places),
        )
    assert fact_of(world, world.knowledge.statement("pain_site", False)) == Fact("pain_site", False)
    assert fact_of(world, world.knowledge.statement("fever")) == Fact("fever", True)


def test_generated_cases_tell_what_their_patients_have(world: World) -> None:
    cases, patients = generated_cases(world, 4)
    again, _ = generated_cases(world, 4)
    assert cases == again and len(cases) == len(patients) == 4
    for case, patient in zip(cases, patients, strict=True):
        assert (
            len(case.statements) > 10
            and case.diagnosis == world.knowledge.conditions[patient.condition].name
        )
        heard = [fact_of(world, s) for s in case.statements]
        assert [(f.finding, f.affirmed) for f in heard] == [
            (f.finding, f.affirmed) for f in patient.facts
        ]
        for c in criteria_of(patient.condition, by_condition()[patient.condition]):
            assert mark(c, heard, case.statements) == mark(c, patient.facts, case.statements)


def test_steps_of_hand_made_assessments(world: World) -> None:
    """One diagnosis met twice, one whose keyword finds nothing: every share is counted by hand."""
    condition = next(c for c in by_condition() if len(criteria_of(c, by_condition()[c][:1])) >= 4)
    shown = by_condition()[condition][0]
    stated = [c for c in criteria_of(condition, [shown]) if not c.places][:3]
    n_stated = len(criteria_of(condition, [shown]))
    beside = next(
        f
        for f in world.findings
        if f.id not in world.knowledge.conditions[condition].grades and f.parent is None
    )
    profile = tuple(
        Entry(i, name, "weak")
        for i, name in enumerate([*(c.name for c in stated), beside.name, "a thing unheard of"], 1)
    )
    said = (
        world.knowledge.statement(stated[0].finding),
        world.knowledge.statement(stated[1].finding, False),
    )
    case = Case("c", "made", said, "x", ("x",))
    whole, early = View(case, 100, said), View(case, 1, said[:1])
    name = world.knowledge.conditions[condition].name
    found = Assessment(name, keyword="k", passages=(shown.id,), profile=profile)
    full = evidence_of(
        profile,
        "supported",
        "supported",
        "missing",
        "contradicted",
        "supported",
        quotes={1: True, 2: False},
    )
    half = evidence_of(
        profile, "supported", "missing", "missing", "missing", "missing", quotes={1: True}
    )
    assessed = [
        (
            whole,
            Assessment(**vars(found) | {"evidence": full, "summary_agrees": True, "score": 40.0}),
        ),
        (
            early,
            Assessment(
                **vars(found) | {"evidence": half, "summary_agrees": None, "missing": "score"}
            ),
        ),
        (early, Assessment("A disease unheard of", missing="retrieval")),
    ]
    made = [
        Generation("c", v.level, "m", 0, v.n_statements, v.n_total, 1, assessment=a)
        for v, a in assessed
    ]
    made.append(Generation("c", 1, "m", 0, 1, 2, 1))
    result = steps(world, [*(v for v, _ in assessed), early], made)
    assert result == {
        "assessments": 3,
        "with_a_score": 0.3333,
        "keywords_that_find": 0.5,
        "profile_entries_the_passages_state": 0.6,
        "criteria_of_the_passages_in_the_profile": round(3 / min(n_stated, MOST), 4),
        # all but two of the eight: a denied one taken for support, one not spoken of for denied
        "criteria_labelled_right": 0.75,
        "labelled_right_by_true_label": {"supported": 1.0, "missing": 0.8, "contradicted": 0.0},
        "criteria": 8,
        "quotations": 3,
        "quotations_that_occur": 0.6667,
        "summaries_that_agree": 0.5,
    }
    assert steps(world, [early], made[-1:])["with_a_score"] is None


def evidence_of(
    profile: tuple[Entry, ...], *levels: str, quotes: dict[int, bool]
) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(c, level, "words" if c.id in quotes else None, quotes.get(c.id))
        for c, level in zip(profile, levels, strict=True)
    )


def test_steps_read_the_passages_in_the_order_shown(world: World) -> None:
    """A profile has room for the first criteria only, so another order of the same passages asks
    for others."""
    condition = next(
        c
        for c, own in by_condition().items()
        if sum(len(s.criteria) for p in own for s in p.sentences) > MOST
    )
    turned = by_condition()[condition][::-1]
    profile = tuple(
        Entry(i, c.name, c.importance) for i, c in enumerate(criteria_of(condition, turned), 1)
    )
    a = Assessment(
        world.knowledge.conditions[condition].name,
        passages=tuple(p.id for p in turned),
        profile=profile,
    )
    said = (world.knowledge.statement("fever"),)
    result = steps(
        world,
        [View(Case("c", "made", said, "x", ("x",)), 100, said)],
        [Generation("c", 100, "m", 0, 1, 1, 1, assessment=a)],
    )
    assert (
        result["profile_entries_the_passages_state"]
        == result["criteria_of_the_passages_in_the_profile"]
        == 1.0
    )
