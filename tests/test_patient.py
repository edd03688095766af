"""A patient speaks facts of the case as they stand, or does not know; what a model tried beside
that is counted by kind."""

from __future__ import annotations

from dataclasses import replace

from each import each
from fake_consultation import TOLD, Talker, told_case
from hypothesis import given, settings
from hypothesis import strategies as st

from trustlab.agents import patient as patients
from trustlab.knowledge.findings import load_knowledge
from trustlab.parsing.agents import read_enough, read_question
from trustlab.parsing.reply import Unreadable
from trustlab.records import Case, Reply, Statement

COUGH, FEVER, _, RASH = range(4)
ASKED = "Are you coughing?"


def said(reply: str | Reply, question: str = ASKED, case: Case | None = None) -> patients.Answer:
    given = reply if isinstance(reply, Reply) else Reply(reply)
    return patients.read_answer(given, case or told_case(), question)


@each(
    ("reply", "outcome", "fact"),
    [
        ("[I cough day and night.]", "answered", COUGH),
        ("[Patient: i COUGH day and night]", "answered", COUGH),
        ("Of course: [cough day and night]", "answered", COUGH),
        ("I cough day and night.", "answered", COUGH),
        ("[I don't know]", "does not know", None),
        ("[My fever began on Monday. I cough day and night.]", "volunteered", FEVER),
        ("[I cough day and night, and I gave up smoking long ago]", "volunteered", COUGH),
        ("[I cough at night only]", "invented", None),
        ("[I cough day and night and my back hurts]", "invented", None),
        ("[I have influenza]", "leaked", None),
        (Reply("[It is influenza and", finish="length"), "leaked", None),
        ("[No.]", "out of place", None),
        ("[I cough day and night.] [I don't know]", "unreadable", None),
        ("[]", "unreadable", None),
        (Reply("[I cough day and night.]", finish="length"), "unreadable", None),
        (Reply(None, missing="the call failed"), "unreadable", None),
    ],
)
def test_only_a_fact_as_it_stands_is_spoken(reply, outcome: str, fact: int | None) -> None:
    found = said(reply)
    assert (found.outcome, found.fact) == (outcome, fact)
    assert found.words == (patients.UNKNOWN if fact is None else TOLD[fact][2])
    assert not isinstance(reply, Reply) or not reply.missing or found.why == reply.missing


def with_facts(*facts: tuple[str, str, str | None], diagnosis: str = "Influenza") -> Case:
    told = tuple(Statement(f"Doctor: {q}\nPatient: {a}", f) for q, a, f in facts)
    case = told_case(diagnosis=diagnosis, accepted=())
    return replace(case, statements=(*case.statements, *told))


PAIN, BOTH = load_knowledge().findings["pain"].question, "Any pain or cough?"
BARE = [("Cigarettes?", "No, I don't smoke cigarettes.", None),
        ("Where?", "I've got a pain in my belly.", None)]  # fmt: skip
TWO = [("Back?", "My back aches badly.", None), ("Belly?", "My belly hurts at night.", None)]
SHARED = [(BOTH, "My back aches badly.", "pain"), (BOTH, "Nothing of the sort.", "cough")]


@each(
    ("facts", "words", "question", "outcome", "fact"),
    [
        # a part that tells nothing fits its own question alone
        ([], "No.", "any rash", "answered", RASH),
        ([("Any pain?", "No.", "pain")], "No.", "Anything else?", "out of place", None),
        (BARE, "No, I don't.", "Cigarettes?", "answered", 5),
        (BARE, "No, I don't.", "Any rash?", "out of place", None),
        (BARE, "got a pain in my", "Anything else?", "out of place", None),  # two telling words
        # a fact of another finding, where it is known what was asked
        ([], "I cough day and night.", PAIN, "out of place", None),
        ([], "I cough day and night.", "Have you got a cough?", "answered", COUGH),
        (SHARED, "My back aches badly.", BOTH, "answered", 5),
        (SHARED, "My fever began on Monday.", BOTH, "out of place", None),
        # of several facts the one that was asked for
        ([], "I came back from Spain last week. I cough day and night.",
         "Have you got a cough?", "volunteered", COUGH),
        (TWO, "My back aches badly. My belly hurts at night.", "Belly?", "volunteered", 6),
        # the diagnosis where the fact or the question has it is no leak
        ([("Before?", "They said influenza last year.", None)],
         "They said influenza last year.", ASKED, "answered", 5),
        ([], "influenza, I don't know", "Have you had a cold?", "leaked", None),
    ],
)  # fmt: skip
def test_which_fact_is_spoken_to_which_question(facts, words, question, outcome, fact) -> None:
    found = said(f"[{words}]", question, with_facts(*facts))
    assert (found.outcome, found.fact) == (outcome, fact)


@each(
    ("diagnosis", "words"),
    [
        ("Acute appendicitis", "I have appendicitis"),
        ("Chronic obstructive pulmonary disease (COPD)", "It is my COPD"),
        ("Allergic asthma", "I am asthmatic"),
    ],
)
def test_a_telling_word_of_the_diagnosis_is_a_leak_unless_a_quoted_fact_says_it(
    diagnosis: str, words: str
) -> None:
    case = with_facts(diagnosis=diagnosis)
    cut = Reply(f"[{words}", finish="length")
    for reply in (f"{words}. [I gave up smoking long ago.]", f"[{words}]", words, cut):
        assert said(reply, case=case).outcome == "leaked"
    innocent = with_facts(("At home?", f"{words}, my mother thinks.", None), diagnosis=diagnosis)
    assert said(f"[{words}, my mother thinks.]", case=innocent).outcome == "answered"
    assert said(Reply(f"[{words}, my mo", finish="length"), case=innocent).outcome == "unreadable"
    asked = f"Is it true: {words}?"
    assert said(f"{words}. [I gave up smoking long ago.]", asked, case).outcome == "answered"


@settings(max_examples=60)
@given(
    st.text(alphabet="[]. \nINoaghinbutdy'Kw", max_size=40)
    | st.sampled_from([f"[{a}]" for *_, a in TOLD])
)
def test_whatever_comes_back_nothing_but_a_fact_or_not_knowing_is_spoken(text: str) -> None:
    found = said(text)
    assert found.words in {patients.UNKNOWN, *(a for *_, a in TOLD)}
    assert found.outcome in patients.OUTCOMES
    assert (found.fact is None) == (found.words == patients.UNKNOWN)


def test_the_model_sees_every_fact_and_the_question_and_is_asked_once_for_each() -> None:
    model, case = Talker(), told_case()
    asked = [(case, "Have you got a cough?"), (told_case("b"), "Do you swim?")]
    found = patients.ModelPatient(model, seed=3).answer(asked, 0)
    assert [s.outcome for s, _ in found] == ["answered", "does not know"]
    assert [reply and reply.n_tokens_in for _, reply in found] == [50, 50]
    how = [(r.purpose, r.seed, r.n, r.temperature) for r in model.requests]
    assert how == [("patient", 3, 1, 0.0)] * 2
    shown = model.requests[0].messages[1][1]
    assert "\n".join(map(str, case.facts)) in shown
    assert "<question>\nHave you got a cough?\n</question>" in shown


def test_the_rule_patient_answers_known_questions_and_no_other() -> None:
    rule, case = patients.FactPatient(), told_case()
    fever = rule.answer_to(case, "do you run a temperature")
    assert fever == patients.Answer("My fever began on Monday.", "answered", FEVER)
    assert rule.answer_to(case, table_question("cough")).fact == COUGH  # the table's own words
    assert rule.answer_to(case, PAIN).why == "not told"
    unmarked = replace(case, statements=(*case.statements, Statement("My belly hurts at night.")))
    assert rule.answer_to(unmarked, PAIN).why == "findings not marked"
    assert rule.answer_to(case, "How do you feel?").why == "not a known question"
    asks_no_model = rule.answer([(case, "Any rash?")], 0)
    assert asks_no_model[0][0].words == "No."
    assert set().union(*patients.findings_of_question().values()) == set(load_knowledge().findings)


def who_knows() -> Case:
    """A case whose record holds one thing that was not told: all else is not so."""
    nausea = load_knowledge().statement("nausea", True)
    return replace(told_case(), record=(nausea,), denies=frozenset(load_knowledge().findings))


def table_question(finding: str) -> str:
    return load_knowledge().findings[finding].question


def test_who_is_asked_answers_from_the_record_yes_or_no() -> None:
    rule, case = patients.FactPatient(), who_knows()
    words = patients.parts_of(case.facts[5])[1]
    assert rule.answer_to(case, table_question("nausea")) == patients.Answer(words, "answered", 5)
    assert said(f"[{words}]", table_question("nausea"), case).fact == 5
    no = rule.answer_to(case, PAIN)
    assert (no.outcome, no.fact, no.denied, no.why) == ("answered", None, "pain", "not so")
    assert no.words in load_knowledge().findings["pain"].deny
    assert replace(said("[No.]", PAIN, case), raw="") == no
    told = no.statement(case, PAIN)
    assert (told.finding, told.affirmed) == ("pain", False) and told.text.endswith(no.words)
    # a follow-up to what is not so gets the denial of that
    assert rule.answer_to(case, table_question("pain_site")).denied == "pain"
    hurts = replace(case, record=(*case.record, load_knowledge().statement("pain", True)))
    assert rule.answer_to(hurts, table_question("pain_site")).denied == "pain_site"
    # only what the case would tell is denied
    less = replace(case, denies=frozenset({"pain"}))
    assert rule.answer_to(less, PAIN).denied == "pain"
    other = rule.answer_to(less, table_question("weight_loss"))
    assert (other.words, other.why, other.denied) == (patients.UNKNOWN, "not told", None)


@each(
    ("reply", "question", "outcome"),
    [
        ("[No.]", table_question("nausea"), "out of place"),  # it is so
        ("[No.]", table_question("cough"), "out of place"),
        ("[No.]", "How do you feel?", "out of place"),  # nobody knows what this asks for
        ("[I have no pain at all]", PAIN, "invented"),  # words of no fact
        ("[I don't know.]", PAIN, "does not know"),
    ],
)
def test_a_no_is_spoken_only_to_what_is_not_so(reply: str, question: str, outcome: str) -> None:
    found = said(reply, question, who_knows())
    assert (found.outcome, found.words, found.denied) == (outcome, patients.UNKNOWN, None)


@each(
    ("read", "reply", "found"),
    [
        (read_question, "Next: [Any\tpain]", "Any pain"),
        (read_question, "[a?] [b?]", "2 questions in square brackets"),
        (read_question, "[" + "a" * 301 + "]", "more than 300 characters"),
        (read_question, "[" + "a" * 300 + "]", "a" * 300),
        (read_question, "[Any pain? Patient: No.]", "speaks for doctor or patient"),
        (read_question, Reply("[Any pain?]", finish="length"), "ran out of tokens"),
        (read_enough, "I say [Enough]", True),
        (read_enough, "[More.]", False),
        (read_enough, "[not enough]", "neither enough nor more"),
    ],
)
def test_a_question_and_a_decision_are_the_only_group(read, reply, found) -> None:
    reply = reply if isinstance(reply, Reply) else Reply(reply)
    try:
        assert read(reply) == found
    except Unreadable as error:
        assert found in str(error)
