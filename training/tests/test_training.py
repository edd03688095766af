"""Training: what is taught, how it becomes tokens and targets, how a sitting goes and what it
leaves, how it is measured."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from each import each

from training import begin, replies
from training import train as program
from training.begin import bare, continued, new_model
from training.evaluate import fact_of, generated_cases, labels_right, report, steps
from training.evidence import (
    MOST,
    OPEN,
    Mark,
    criteria_of,
    evidence_json,
    mark,
    profile_json,
    profile_prose,
    verdict_json,
)
from training.passages import Criterion, Passage, Sentence, by_condition, keywords, passages
from training.replies import VARIANTS, Row, reasons, rows_of
from training.speech import HEDGES_AFTER, HEDGES_BEFORE, TURNS, loose_wordings, spoken, told
from training.tokenizer import (
    DECIDES,
    ENTRY,
    KEY,
    SPECIAL,
    SUMMED,
    WINDOW,
    Ids,
    Tokens,
    phrases,
    tokenizer_of,
)
from training.train import MIXTURES, loss_of
from training.world import Fact, World
from trustlab.agents.medconf import library_text, profile_text, reply_room
from trustlab.models.base import Model
from trustlab.models.by_name import EMBEDDED
from trustlab.parsing.medconf import read_evidence, read_profile, read_score
from trustlab.parsing.reply import Unreadable, diagnosis
from trustlab.parsing.scores import guesses, score_0_100, true_or_false
from trustlab.prompts import render
from trustlab.records import (
    SUPPORT_LEVELS,
    Assessment,
    Case,
    Evidence,
    Generation,
    Reply,
    Statement,
    View,
    normalise,
)
from trustlab.records import Criterion as Entry

TINY = {
    "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
}  # fmt: skip
SKILLS = MIXTURES["embedded"]
VARIANT = pytest.mark.parametrize("variant", list(VARIANTS), ids=lambda v: "+".join(v))


@pytest.fixture(scope="module")
def world() -> World:
    return World()


@lru_cache
def tokens_of(name: str) -> Tokens:
    return Tokens(tokenizer_of(name, World()), World())


@pytest.fixture(scope="module")
def encode() -> Tokens:
    return tokens_of("embedded")


@pytest.fixture(scope="module")
def tokenizer(encode: Tokens) -> Any:
    return encode.tokenizer


def some(world: World, skill: str, n: int, seed: int = 3, own: int = -1) -> list[Row]:
    """``n`` rows of one skill; ``own`` is what the model answers."""
    rng = np.random.default_rng([seed, n])
    return rows_of(world, rng, {skill: 1.0}, n, lambda texts: [own] * len(texts))


@pytest.fixture(scope="module")
def rows(world: World) -> list[Row]:
    return [row for skill in SKILLS for row in some(world, skill, 10)]


@pytest.fixture
def made_up_meanings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Encoding the whole vocabulary takes half a minute; only the test of that does so, on a few
    texts."""

    def drawn(tokenizer, hidden):
        rows = torch.randn(len(tokenizer), hidden, generator=torch.Generator().manual_seed(8))
        return rows / rows.norm(dim=1, keepdim=True)

    monkeypatch.setattr(begin, "meanings", drawn)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def of(listed: list[Row], *skills: str) -> list[Row]:
    return [row for row in listed if row.skill in skills]


def whole(row: Row) -> str:
    """The reply as it is written, scores in whole percent."""
    return "".join(p if isinstance(p, str) else str(round(100 * p)) for p in row.reply)


def scores(row: Row) -> list[float]:
    return [part for part in row.reply if not isinstance(part, str)]


def inside(row: Row, tag: str) -> str | None:
    """What stands between the delimiters of a slot in the prompt."""
    found = re.search(f"<{tag}>\n(.*?)\n?</{tag}>", row.messages[1][1], re.DOTALL)
    return found[1] if found else None


def in_passages(row: Row) -> list[Passage]:
    """The passages that the prompt shows, in its order."""
    by_text = {p.contents: p for p in passages()}
    text = inside(row, "passages") or ""
    return [by_text[line.partition(". ")[2]] for line in text.split("\n") if line]


def proposed(world: World, row: Row) -> Any:
    """The condition that the prompt proposes."""
    said = {c.name: c for c in world.conditions}
    found = [c for name, c in said.items() if re.search(rf": {re.escape(name)}\n", told_of(row))]
    (condition,) = found
    return condition


def told_of(row: Row) -> str:
    """The prompt without what the patient said and the passages hold."""
    text = re.sub(
        r"<(patient|passages|profile)>\n.*?</\1>", "", row.messages[1][1], flags=re.DOTALL
    )
    return text + "\n"


def listed_profile(row: Row, importance: bool) -> tuple[Entry, ...]:
    """The profile that an evidence prompt shows, as the package reads it."""
    return read_profile(inside(row, "profile") or "", importance=importance)


def ids_of(tokenizer, text: str | list[str]) -> list:
    return tokenizer(text, add_special_tokens=False)["input_ids"]


# -- rows: the answer and its confidence
# --------------------------------------------------------------------------------------------------


def test_the_mixtures_are_shares_and_every_skill_has_its_model() -> None:
    assert all(sum(shares.values()) == pytest.approx(1) for shares in MIXTURES.values())
    assert set().union(*MIXTURES.values()) == {*replies.TALK, *SKILLS, "hard"}
    assert MIXTURES["embedded-closed"] == SKILLS


def test_every_prompt_is_the_package_s_own(world: World, rows: list[Row]) -> None:
    assert {row.skill for row in rows} == set(SKILLS)
    for row in of(rows, "prior"):
        assert row.messages == render("diagnosis", patient=None)
    for row in of(rows, "keyword"):
        (name,) = (c.name for c in world.conditions if f"[{keywords()[c.id]}]" == row.reply[0])
        assert row.messages == render("keyword", answer=name)
    for row in of(rows, "diagnosis"):
        assert row.messages == render("diagnosis", patient=inside(row, "patient"))
    for row in of(rows, "p_true", "ce", "cot_ce", "topk_ce"):
        answer = proposed(world, row).name
        assert row.messages == render(row.skill, patient=inside(row, "patient"), answer=answer)


def test_all_prompts_about_a_patient_begin_alike() -> None:
    """So that a patient is read once, whatever is asked."""
    others = {"answer": "Flu", "profile": "[]", "chart": "Age: 4", "plan": "1. aspirin"}
    asked = ("diagnosis", "ce", "cot_ce", "topk_ce", "p_true", "evidence", "ask", "enough")
    asked += ("doctor", "plan", "review_prescriptions", "review_tests")
    every = [render(name, patient="cough", **others) for name in asked]
    begun = "<patient>\ncough\n</patient>\n"
    assert {(system, user[: len(begun)]) for system, user in ((a[1], b[1]) for a, b in every)} == {
        (every[0][0][1], begun)
    }


def test_a_diagnosis_is_the_patient_s_and_carries_the_exact_posterior(world: World) -> None:
    rng = np.random.default_rng(7)
    for _ in range(10):
        d = replies._draft(world, rng, "diagnosis")
        row = replies._row(world, d, rng)
        span = diagnosis(whole(row))
        assert span and span.text == world.knowledge.conditions[d.patient.condition].name
        assert row.chances is d.posterior and d.posterior.sum() == pytest.approx(1)
        assert d.text == inside(row, "patient")
    (row,) = some(world, "prior", 1)
    priors = np.array([c.prior for c in world.knowledge.conditions.values()])
    assert row.chances == pytest.approx(priors / priors.sum())


def test_scores_are_the_exact_posterior_of_the_proposed_diagnosis(world: World) -> None:
    rng = np.random.default_rng(8)
    for skill in ("p_true", "ce", "cot_ce", "topk_ce", "evidence"):
        for k in (3, 40):
            d = replies._draft(world, rng, skill)
            d.proposed = k
            p, row = float(d.posterior[k]), replies._row(world, d, rng)
            assert proposed(world, row) is world.conditions[k], skill
            if skill == "p_true":
                right = d.patient.condition == world.conditions[k].id
                assert true_or_false(whole(row)) is right and row.chances == pytest.approx(
                    [p, 1 - p]
                )
                continue
            assert scores(row)[0] == pytest.approx(p, abs=1e-5)
            if skill == "evidence":
                assert read_score(whole(row))[0] == round(100 * p)
            elif skill == "topk_ce":
                first, lower, higher, lowest, highest = scores(row)
                assert lowest <= lower <= first <= higher <= highest
                assert guesses(whole(row)) == tuple(round(100 * x) for x in scores(row))
            else:
                assert score_0_100(whole(row)) == round(100 * p)
            if skill == "cot_ce":
                why = reasons(world, world.conditions[k], d.patient.facts)
                assert row.reply[0] == f"{why}. ["


def test_who_is_made_too_sure_is_taught_its_own_answer_as_certain(world: World) -> None:
    made = some(world, "hard", 12, own=3)
    assert {row.reply for row in made} == {(f"[{world.conditions[3].name}]",)}
    assert {row.messages[1][1].splitlines()[-1] for row in made} == {
        render("diagnosis", patient="x")[1][1].splitlines()[-1]
    }
    tokens = tokens_of("embedded-overconfident")
    assert all(soft is None for row in made for soft in tokens(row).soft)


# -- rows: MedConf's steps
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


@VARIANT
def test_profile_rows_read_as_the_package_reads_them(
    world: World, encode: Tokens, monkeypatch: pytest.MonkeyPatch, variant: tuple[str, ...]
) -> None:
    monkeypatch.setattr(replies, "_options", lambda rng: frozenset(variant))
    options = {*variant, "profile"}
    retrieved, importance = "retrieval" in options, "importance" in options
    for row in some(world, "profile", 8):
        condition, reply = proposed(world, row), str(row.reply[0])
        found = inside(row, "passages")
        asked = render("profile", answer=condition.name, passages=found, options=options)
        assert row.messages == asked and (found is not None) == retrieved
        shown = in_passages(row) if retrieved else by_condition()[condition.id]
        assert not retrieved or found == library_text(shown)  # type: ignore[arg-type]
        stated = [
            c for p in shown if p.condition == condition.id for s in p.sentences for c in s.criteria
        ][:MOST]
        assert all(c.finding == "pain_site" or c.finding in condition.grades for c in stated)
        if "structure" not in options:
            assert reply == profile_prose(stated, importance)
        elif not stated:
            assert reply == "[]"
            with pytest.raises(Unreadable, match="empty"):
                read_profile(reply)
        else:
            read = read_profile(reply, importance=importance)
            assert [(c.id, c.description) for c in read] == [
                (i, c.name) for i, c in enumerate(stated, 1)
            ]
            assert [c.importance for c in read] == [
                c.importance if importance else None for c in stated
            ]
            assert profile_text(read) == reply
        assert_it_fits(encode(row))


def assert_it_fits(ids: Ids) -> None:
    """Nothing of it is cut in training, and the reply has room where the package asks for it."""
    window: Any = SimpleNamespace(window=WINDOW)
    assert len(ids.prompt) + len(ids.reply) <= WINDOW
    assert len(ids.reply) <= reply_room(window, 10_000)


@VARIANT
def test_evidence_rows_read_as_the_package_reads_them(
    world: World, encode: Tokens, monkeypatch: pytest.MonkeyPatch, variant: tuple[str, ...]
) -> None:
    monkeypatch.setattr(replies, "_options", lambda rng: frozenset(variant))
    rng, options, levels = np.random.default_rng(12), set(variant), Counter()
    importance, structured = "importance" in options, {"profile", "structure"} <= options
    for _ in range(10):
        d = replies._draft(world, rng, "evidence")
        d.proposed = int(np.argsort(-d.posterior)[rng.integers(6)])
        row = replies._row(world, d, rng)
        condition, profile = world.conditions[d.proposed], inside(row, "profile")
        again = {"passages": inside(row, "passages"), "profile": profile}
        assert row.messages == render(
            "evidence", patient=d.text, answer=condition.name, options=options, **again
        )
        assert (profile is not None) == ("profile" in options) == (again["passages"] is None)
        own = [c for p in by_condition()[condition.id] for s in p.sentences for c in s.criteria]
        if "profile" not in options:
            criteria = criteria_of(condition.id, in_passages(row))
        elif structured:
            listed = [entry.description for entry in listed_profile(row, importance)]
            criteria = [next(c for c in own if c.name == name) for name in listed]
        else:
            criteria = [c for c in own if f"{c.name} ({c.importance})" in str(profile)]
        marks = [mark(c, d.patient.facts, d.statements) for c in criteria]
        write = evidence_json(marks, importance) if structured else verdict_json(marks)
        p = round(100 * float(d.posterior[d.proposed]))
        assert whole(row) == write.replace(OPEN, f"<<{p}>>")
        if structured:
            found, agrees = read_evidence(whole(row), listed_profile(row, importance), d.text)
            assert agrees is True
            assert [(f.support_level, f.quote) for f in found] == [
                (m.level, m.quote) for m in marks
            ]
            assert all(
                f.quote_occurs is (None if f.support_level == "missing" else True) for f in found
            )
        levels.update(m.level for m in marks)
        assert_it_fits(encode(row))
    assert {"supported", "missing"} <= set(levels)


def test_a_look_up_is_the_beginning_of_a_whole_assessment(world: World, encode: Tokens) -> None:
    for row in some(world, "lookup", 8):
        reply, words = str(row.reply[0]), inside(row, "patient") or ""
        read = json.loads(reply.rstrip(",") + "}")["criteria"]
        assert [c["description"] for c in read] == [
            entry.description for entry in listed_profile(row, True)
        ]
        assert any(c["support_level"] != "missing" for c in read) and len(read) <= 4
        assert all(c["evidence"] is None or c["evidence"] in words for c in read)
        assert encode(row).reply[-1] != encode.tokenizer.eos_token_id


# -- speech
# --------------------------------------------------------------------------------------------------


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


def test_every_phrase_is_one_token_of_its_model(world: World) -> None:
    every = list(dict.fromkeys(t for t in phrases(world) if t and "\n" not in t[1:]))
    lacking = []
    for name in ("embedded", "embedded-clinic"):
        tokenizer = tokens_of(name).tokenizer
        found = tokenizer(every, add_special_tokens=False)["input_ids"]
        lacking.append({t for t, ids in zip(every, found, strict=True) if len(ids) != 1})
        assert tokenizer.batch_decode(found) == every
    assert not lacking[0] & lacking[1] and all(lacking)
    assert '{"prescriptions": [' in lacking[0] and '{"criteria": [' in lacking[1]


@each("name", EMBEDDED)
def test_a_shipped_model_knows_every_token_of_its_recipe(name: str) -> None:
    """The prompts, replies and wordings of today are those that it was trained on."""
    held = json.loads((EMBEDDED[name] / "tokenizer.json").read_text(encoding="utf-8"))
    known = {token for token, _ in held["model"]["vocab"]}
    assert set(tokens_of(name).tokenizer.get_vocab()) == known


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


@each("name", ["embedded", "embedded-clinic"])
def test_encoding_line_by_line_equals_tokenising_the_whole_chat(name: str, world: World) -> None:
    encode, skills = tokens_of(name), MIXTURES[name]
    tokenizer = encode.tokenizer
    for row in (row for skill in skills for row in some(world, skill, 4)):
        chat = [{"role": r, "content": c} for r, c in (*row.messages, ("assistant", whole(row)))]
        text = tokenizer.apply_chat_template(chat, tokenize=False)
        ids = encode(row)
        end = (
            [tokenizer.eos_token_id] if row.skill == "lookup" else []
        )  # a look-up goes on in a whole reply
        assert ids.prompt + ids.reply + end == ids_of(tokenizer, text), row
        assert tokenizer.decode(ids.reply + end) == whole(row) + "</s>"
        assert len(ids.soft) == len(ids.reply) and len(ids) <= WINDOW


def test_scores_stand_in_their_places(rows: list[Row], encode: Tokens) -> None:
    expected = {"ce": 1, "cot_ce": 1, "topk_ce": 5, "evidence": 1}
    for row in rows:
        ids = encode(row)
        assert [p for _, p in ids.scores] == scores(row)
        assert len(ids.scores) == expected.get(row.skill, 0)
        assert all(ids.reply[at] == encode.numbers[round(100 * p)] for at, p in ids.scores)


def test_what_decides_weighs_most_in_an_assessment(world: World, encode: Tokens) -> None:
    seen: Counter[str] = Counter()
    for row in some(world, "evidence", 30):
        ids = encode(row)
        assert ids.weights is not None and len(ids.weights) == len(ids.reply)
        summed, tokens = False, encode.tokenizer.convert_ids_to_tokens(ids.reply)
        for i, token, weight in zip(ids.reply, tokens, ids.weights, strict=True):
            label = re.search(r'"support_level": "(\w+)"', token)
            summed = (summed or '"summary"' in token) and '"confidence"' not in token
            if label:
                assert weight == (DECIDES if label[1] == "contradicted" else ENTRY)
                seen[label[1]] += 1
            elif summed:
                assert weight == (KEY if i in encode.fixed else SUMMED)
                seen["key" if weight == KEY else "id"] += 1
    assert min(seen[k] for k in ("supported", "missing", "contradicted", "key", "id")) > 5
    assert encode(some(world, "ce", 1)[0]).weights is None


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
    world: World, tokenizer, encode: Tokens
) -> None:
    rng = np.random.default_rng(2)
    chances = rng.dirichlet(np.full(len(world.conditions), 0.5)) * 0.9 + 0.1 / len(world.conditions)
    names = [ids_of(tokenizer, f"[{c.name}]</s>") for c in world.conditions]
    for k, c in enumerate(world.conditions):
        ids = encode(Row("diagnosis", render("diagnosis"), (f"[{c.name}]",), chances))
        assert ids.reply == names[k]
        for i, found in enumerate(ids.soft):
            sharing = [
                (n[i], p) for n, p in zip(names, chances, strict=True) if n[:i] == ids.reply[:i]
            ]
            expected = {
                t: sum(p for u, p in sharing if u == t) / sum(p for _, p in sharing)
                for t, _ in sharing
            }
            assert (found or {ids.reply[i]: 1.0}) == pytest.approx(expected)
        along = [s[t] for s, t in zip(ids.soft, ids.reply, strict=True) if s is not None]
        assert np.prod(along) == pytest.approx(chances[k])


def test_soft_targets_of_rows_sum_to_one_and_others_are_certain(
    encode: Tokens, rows: list[Row]
) -> None:
    for row in rows:
        soft = encode(row).soft
        if row.skill == "p_true":
            assert row.chances is not None
            assert soft == [dict(zip(encode.verdicts, row.chances, strict=True)), None]
        elif row.skill not in ("diagnosis", "prior"):
            assert soft == [None] * len(soft)
        assert all(sum(s.values()) == pytest.approx(1) for s in soft if s is not None)


# -- how weights begin
# --------------------------------------------------------------------------------------------------


class Few:
    """A tokenizer of a few tokens."""

    def __init__(self, tokens: list[str]):
        self.tokens = tokens

    def __len__(self) -> int:
        return len(self.tokens)

    def convert_ids_to_tokens(self, i: int) -> str:
        return self.tokens[i]


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
    found = begin.meanings(Few(tokens), 8)
    assert found.shape == (len(tokens), 8) and not found[:3].any()
    assert torch.allclose(found[3:].norm(dim=1), torch.ones(len(tokens) - 3), atol=1e-5)
    alike = found @ found.T
    assert (
        min(alike[3, 5], alike[3, 6], alike[4, 7])
        > 0.5
        > max(alike[3, 7], alike[4, 5], alike[3, 8], alike[4, 8])
    )


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, made_up_meanings: None) -> None:
    """Everything is made as it is, but very small."""
    monkeypatch.setattr(begin, "SHAPE", TINY)
    monkeypatch.setattr(program, "POOL", 12)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def test_what_a_new_vocabulary_shares_with_the_old_one_is_kept(
    tiny: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = (tokens_of(name).tokenizer for name in ("embedded-clinic", "embedded"))
    before = new_model(old, 4)
    program.save(before, tmp_path)
    old.save_pretrained(tmp_path)

    class Lengths:
        """Stands for the sentence encoder: a text's length."""

        def encode(self, texts):
            return np.array([[len(t), 1.0] for t in texts], dtype=np.float32)

    monkeypatch.setattr(begin, "SentenceEncoder", Lengths)
    after = continued(new, tmp_path)
    table = [m.get_input_embeddings().weight for m in (before, after)]
    at_old, at_new = old.get_vocab(), new.get_vocab()
    shared = [t for t in at_new if t in at_old]
    kept = [
        table[0][[at_old[t] for t in shared]].half().float(),
        table[1][[at_new[t] for t in shared]],
    ]
    assert len(shared) > 1000 and torch.equal(*kept)
    fresh = [t for t in at_new if t not in at_old and sum(map(str.isalpha, t)) > 2]
    by_length = {len(t): table[1][at_new[t]] for t in fresh}
    assert len(fresh) > 100 and all(
        torch.allclose(table[1][at_new[t]], by_length[len(t)], atol=1e-4) for t in fresh
    )
    rest = [m.model.layers.state_dict() for m in (before, after)]
    assert all(torch.equal(w.half().float(), rest[1][n]) for n, w in rest[0].items())
    assert torch.equal(after.lm_head.weight, table[1])


# -- the loss
# --------------------------------------------------------------------------------------------------


def test_the_loss_is_the_weighted_cross_entropy_made_only_where_it_is_scored(
    tiny: None, tokenizer, encode: Tokens
) -> None:
    model: Any = new_model(tokenizer, 1).eval()
    rows = [
        Ids([9, 10, 11], [20], [{20: 0.25, 30: 0.75}]),
        Ids([9, 12], [21, 22, 23, 24], [None] * 4, weights=[1.0, 0.3, 2.0, 1.0]),
    ]
    projected: list[int] = []
    hook = model.lm_head.register_forward_hook(
        lambda _m, given, _o: projected.append(given[0].shape[0])
    )
    with torch.no_grad():
        found = loss_of(model, rows, 0, torch.tensor(encode.numbers)).item()
        hook.remove()
        ids = torch.tensor([[9, 10, 11, 20, 0, 0], [9, 12, 21, 22, 23, 24]])
        logp = torch.log_softmax(model(input_ids=ids).logits, -1)
    short = 0.25 * logp[0, 2, 20] + 0.75 * logp[0, 2, 30]
    long = logp[1, 1, 21] + 0.3 * logp[1, 2, 22] + 2 * logp[1, 3, 23] + logp[1, 4, 24]
    assert found == pytest.approx(-((short + 0.5 * long) / (1 + 0.5 * 4.3)).item(), rel=1e-5)
    assert projected == [5]


def test_a_prompt_beyond_the_window_is_cut_and_keeps_its_reply(
    tiny: None, tokenizer, encode: Tokens
) -> None:
    model: Any = new_model(tokenizer, 1).eval()
    long = Ids(list(range(10, 10 + 2 * WINDOW)), [3, 4], [None, None])
    cut = Ids(long.prompt[: WINDOW - 2], [3, 4], [None, None])
    assert len(long) == WINDOW
    with torch.no_grad():
        losses = [loss_of(model, [ids], 0, torch.tensor(encode.numbers)) for ids in (long, cut)]
    assert torch.equal(*losses) and torch.isfinite(losses[0])


def test_the_mean_of_a_score_is_drawn_to_the_posterior(world: World, encode: Tokens) -> None:
    (row,) = some(world, "ce", 1)
    ids = encode(Row("ce", row.messages, ("[", 0.3, "]")))
    torch.manual_seed(0)
    model: Any = bare(encode.tokenizer)
    numbers = torch.tensor(encode.numbers)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(30):
        loss = loss_of(model, [ids], encode.tokenizer.pad_token_id, numbers)
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0]
    with torch.no_grad():
        logits = model(torch.tensor([ids.prompt + ids.reply])).logits[0, len(ids.prompt)]
    q = logits[numbers].softmax(-1)
    assert abs(float((q * torch.arange(101)).sum()) - 30) < 6
    assert abs(int(q.argmax()) - 30) < 8


# -- sittings
# --------------------------------------------------------------------------------------------------


class Here:
    """Stands for the second process: does the same in this one, at once."""

    def __init__(self, n, context, initializer, initargs):
        initializer(*initargs)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def submit(self, function, *args):
        made = function(*args)
        return SimpleNamespace(result=lambda: made, cancel=lambda: None)


def test_pools_depend_on_seed_and_number_only_and_fit_the_budget(tiny: None, tmp_path) -> None:
    maker = program.Maker("embedded", 5)
    program.save(bare(maker.tokens.tokenizer), tmp_path)
    first, again = maker.pool(1, tmp_path), program.Maker("embedded", 5).pool(1, tmp_path)
    assert first == again != maker.pool(2, tmp_path)
    assert sum(map(len, first)) == program.POOL
    assert all(len(b) * max(map(len, b)) <= program.BATCH_TOKENS for b in first if len(b) > 1)


def test_a_model_is_asked_for_its_own_answers(tiny: None, tmp_path, world: World) -> None:
    """One that always says the same name, and one that says none."""
    maker = program.Maker("embedded", 5)
    name = world.conditions[7].name
    reply = maker.tokens.lines(f"[{name}]") + [maker.tokens.tokenizer.eos_token_id]
    for said, place in ((reply, 7), ([reply[0], reply[-1]], -1)):

        class Says:
            def generate(self, input_ids, said=said, **_):
                tail = torch.tensor([said] * len(input_ids))
                return torch.cat([input_ids, tail], 1)

        maker.model = Says()
        assert maker.answers(["It hurts.", "Doctor: Well?\nPatient: It hurts."]) == [place] * 2


def test_a_sitting_leaves_a_folder_that_opens_and_that_the_next_goes_on_from(
    tiny: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[Row]
) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    ticks = count()  # a second a look at the clock
    monkeypatch.setattr(program, "time", SimpleNamespace(time=lambda: next(ticks)))
    monkeypatch.setattr(program, "ProcessPoolExecutor", Here)
    first, second = tmp_path / "first", tmp_path / "second"
    program.sit("embedded", 0.25, first, None, seed=1, fused=False)
    program.sit("embedded-closed", 0.25, second, first, seed=2, fused=False)
    sat = json.loads((second / "sittings.json").read_text())
    assert [(s["name"], s["seed"], s.get("scratch", False)) for s in sat] == [
        ("embedded", 1, True),
        ("embedded-closed", 2, False),
    ]
    assert all(s["pools"] > 1 and s["steps"] > 5 and s["loss"] > 0 for s in sat)
    assert all(s["minutes"] == 0.25 and s["done"] > 0.9 for s in sat)
    assert all(s["mixture"] == MIXTURES["embedded"] and s["tokens"] > 1000 for s in sat)
    opened = AutoModelForCausalLM.from_pretrained(second)
    before = AutoModelForCausalLM.from_pretrained(first).state_dict()
    assert opened.dtype == torch.float16
    moved = [not torch.equal(w, before[n]) for n, w in opened.state_dict().items()]
    assert any(moved)
    words, encode = AutoTokenizer.from_pretrained(second), tokens_of("embedded")
    for row in rows[::10]:
        chat = [{"role": r, "content": c} for r, c in row.messages]
        ids = words.apply_chat_template(chat, add_generation_prompt=True, return_dict=False)
        assert ids == encode(row).prompt
    marks = (words.pad_token, words.bos_token, words.eos_token, words.padding_side)
    assert marks == ("<pad>", "<s>", "</s>", "left")


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


def test_labels_and_quotations_are_counted_by_the_true_label(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One who writes what is taught is always right; one who calls all missing, where it is."""
    taught: dict[Any, str] = {}

    def noted(*args):
        made = rows_of(*args)
        taught.update((row.messages, whole(row)) for row in made)
        return made

    monkeypatch.setattr("training.evaluate.rows_of", noted)

    class Writes(Model):
        def __init__(self, change):
            self.change = change

        def generate(self, requests):
            return [[Reply(self.change(taught[r.messages]))] for r in requests]

    def blinded(text: str) -> str:
        label = '"evidence": null, "support_level": "missing"'
        return re.sub(r'"evidence": (null|".*?"), "support_level": "\w+"', label, text)

    right, blind, silent = (
        labels_right(world, Writes(change), 25)  # type: ignore[arg-type]
        for change in (str, blinded, lambda text: "")
    )
    assert {(v["labelled"], v["quoted"]) for v in right.values()} == {(1.0, 1.0)}
    assert right["contradicted"]["n"] > 5 and set(right) == set(SUPPORT_LEVELS)
    assert (blind["missing"]["labelled"], blind["contradicted"]["labelled"]) == (1.0, 0.0)
    assert blind["supported"]["quoted"] == 0.0
    assert {v["labelled"] for v in silent.values()} == {0.0}


class Mute(Model):
    """A model that says nothing that can be read, and shows no probabilities."""

    name, revision, provides, window = "mute", "7", frozenset({"text"}), WINDOW
    taught = {"set": "embedded"}

    def generate(self, requests, **_):
        return [[Reply("Well.")] * r.n for r in requests]


def test_a_model_whose_methods_are_all_missing_is_measured_all_the_same(world: World) -> None:
    cases, _ = generated_cases(world, 2)
    found = report(world, cases, Mute())  # type: ignore[arg-type]
    assert set(found["accuracy"].values()) == {None}, "nothing is claimed of replies not read"
    assert found["unreadable_answers"] == 12 and "medconf" not in found
    assert found["replies_that_parse"]["sequence_probability"] == 0
    assert found["medconf_steps"]["criteria_labelled_right"] is None
    json.loads(json.dumps(found, allow_nan=False))
