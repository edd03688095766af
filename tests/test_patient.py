"""A patient speaks facts of the case as they stand, or does not know; what a model tried beside
that is counted by kind."""

from __future__ import annotations

from dataclasses import replace

import pytest
from each import each
from fake_consultation import TOLD, Talker, told_case
from hypothesis import given
from hypothesis import strategies as st

from trustlab.agents.patient import (
    OUTCOMES,
    UNKNOWN,
    FactPatient,
    ModelPatient,
    Said,
    facts_text,
    findings_of_question,
    parts_of,
    read_answer,
)
from trustlab.datasets import load_cases
from trustlab.knowledge import load_knowledge
from trustlab.models.base import Request
from trustlab.parsing.agents import read_enough, read_question
from trustlab.parsing.reply import Unreadable
from trustlab.records import Case, Reply, Statement

COUGH, FEVER, TRAVEL, RASH, SMOKE = range(5)
ASKED = "Are you coughing?"


def said(reply: str | Reply, question: str = ASKED, case: Case | None = None) -> Said:
    return read_answer(
        reply if isinstance(reply, Reply) else Reply(reply), case or told_case(), question
    )


@each(
    ("reply", "outcome", "fact"),
    [
        ("[I cough day and night.]", "answered", COUGH),
        ("[i COUGH day and night]", "answered", COUGH),
        ("[Patient: I cough day and night.]", "answered", COUGH),
        ("Of course: [cough day and night]", "answered", COUGH),
        ("[I gave up smoking long ago.] [I gave up smoking long ago.]", "answered", SMOKE),
        ("[I don't know]", "does not know", None),
        ("[I'm not sure.]", "does not know", None),
        ("[Not sure]", "does not know", None),
        ("[I dont know]", "does not know", None),
        ("[I am not sure]", "does not know", None),
        ("[unknown]", "does not know", None),
        ("[I do not know.]", "does not know", None),
        ("[My fever began on Monday. I cough day and night.]", "volunteered", FEVER),
        ("[I cough day and night, and I gave up smoking long ago]", "volunteered", COUGH),
        ("[I came back from Spain last week.] [I cough day and night.]", "volunteered", TRAVEL),
        ("[I cough at night only]", "invented", None),
        ("[I cough day and night and my back hurts]", "invented", None),
        ("[cough]", "invented", None),
        ("[My fever began on Monday.] [My back hurts.]", "invented", None),
        ("[I have influenza]", "leaked", None),
        ("[I cough day and night.] It is the flu.", "leaked", None),
        ("[No.]", "out of place", None),
        ("[I cough day and night.] [I don't know]", "unreadable", None),
        ("I cough day and night.", "answered", COUGH),
        ("I cough.\nI cough day and night.", "unreadable", None),
        ("[]", "unreadable", None),
        ("It is influenza", "leaked", None),
        (Reply("[It is influenza and", finish="length"), "leaked", None),
        ("[I cough day and night.]" + "[a]" * 20, "unreadable", None),
        (Reply("[I cough day and night.]", finish="length"), "unreadable", None),
        (Reply(None, missing="the call failed"), "unreadable", None),
    ],
)
def test_only_a_fact_as_it_stands_is_spoken(reply, outcome: str, fact: int | None) -> None:
    found = said(reply)
    assert (found.outcome, found.fact) == (outcome, fact)
    assert found.words == (UNKNOWN if fact is None else TOLD[fact][2])


def test_the_reason_of_a_failed_call_is_kept() -> None:
    assert said(Reply(None, missing="the call failed")).why == "the call failed"


def test_a_bare_answer_is_spoken_to_its_own_question_alone() -> None:
    assert said("[No.]", "any rash") == Said("No.", "answered", RASH, raw="[No.]")
    assert said("[No.]", "Do you sweat?").outcome == "out of place"


def with_facts(*facts: tuple[str, str, str | None], diagnosis: str = "Influenza") -> Case:
    told = tuple(Statement(f"Doctor: {q}\nPatient: {a}", f) for q, a, f in facts)
    return replace(
        told_case(diagnosis=diagnosis, accepted=()), statements=(*told_case().statements, *told)
    )


def test_a_part_of_a_fact_that_tells_nothing_is_spoken_to_its_own_question_alone() -> None:
    case = with_facts(
        ("Cigarettes?", "No, I don't smoke cigarettes.", None),
        ("Where?", "I've got a pain in my belly.", None),
    )
    for words, question in (("No, I don't.", "Cigarettes?"), ("I've got a", "Where?")):
        assert said(f"[{words}]", question, case).outcome == "answered"
        for other in ("Any rash?", "Anything else?"):
            assert said(f"[{words}]", other, case) == Said(
                UNKNOWN, "out of place", why="an answer to another question", raw=f"[{words}]"
            )
    assert said("[got a pain in my]", "Anything else?", case).outcome == "out of place", (
        "two telling words"
    )
    assert said("[smoke cigarettes]", "Anything else?", case).outcome == "invented", "two words"


def test_a_fact_of_another_finding_is_out_of_place_where_it_is_known_what_was_asked() -> None:
    words = "[I cough day and night.]"
    for question in (load_knowledge().findings["pain"].question, "Do you run a temperature?"):
        assert said(words, question) == Said(
            UNKNOWN, "out of place", why="a fact of another finding", raw=words
        )
    for question in (
        load_knowledge().findings["cough"].question,
        "Have you got a cough?",
        "How do you feel?",
    ):
        assert said(words, question).outcome == "answered"
    unmarked = with_facts(("Well?", "My belly hurts at night.", None))
    assert (
        said("[My belly hurts at night.]", "Do you run a temperature?", unmarked).outcome
        == "answered"
    ), "nobody knows better"


def test_a_question_of_several_findings_takes_any_of_them() -> None:
    both = "Any pain or cough?"
    case = with_facts(
        (both, "My back aches badly.", "pain"), (both, "Nothing of the sort.", "cough")
    )
    outcomes = {fact: said(f"[{TOLD[fact][2]}]", both, case).outcome for fact in (COUGH, FEVER)}
    assert outcomes == {COUGH: "answered", FEVER: "out of place"}
    assert said("[My back aches badly.]", both, case).outcome == "answered"


def test_of_several_facts_the_one_that_was_asked_for_is_spoken() -> None:
    both = "[I came back from Spain last week.] [I cough day and night.]"
    assert [said(both, q).fact for q in ("Have you got a cough?", "How do you feel?")] == [
        COUGH,
        TRAVEL,
    ]
    assert said(both, "Do you run a temperature?").outcome == "out of place"
    unmarked = with_facts(
        ("Back?", "My back aches badly.", None), ("Belly?", "My belly hurts at night.", None)
    )
    assert said("[My back aches badly.] [My belly hurts at night.]", "Belly?", unmarked).fact == 6


def test_a_bare_answer_that_stands_twice_is_that_of_the_question() -> None:
    case = told_case()
    twice = replace(
        case,
        statements=(*case.statements, Statement("Doctor: Any pain?\nPatient: No.", "pain", False)),
    )
    assert said("[No.]", "Any pain?", twice).fact == 5
    assert said("[No.]", "Any rash?", twice).fact == RASH
    assert said("[No.]", "Anything else?", twice).outcome == "out of place"


def test_words_that_stand_in_two_facts_point_at_neither() -> None:
    case = told_case()
    more = Statement("Doctor: And at work?\nPatient: At work I cough day and night.")
    twice = replace(case, statements=(*case.statements, more))
    assert said("[cough day and night]", case=twice).outcome == "unreadable"
    assert said("[I cough day and night.]", case=twice).fact == COUGH, (
        "a whole answer goes before a part of another"
    )


def test_of_a_fact_inside_a_longer_one_the_longer_is_volunteered() -> None:
    case = told_case()
    short, long = (
        Statement("Doctor: Pain?\nPatient: My back hurts."),
        Statement("Doctor: When?\nPatient: My back hurts on lifting."),
    )
    both = replace(case, statements=(*case.statements, short, long))
    found = said("[My back hurts on lifting. I cough day and night.]", case=both)
    assert (found.outcome, found.words) == ("volunteered", "My back hurts on lifting.")


def test_the_table_s_own_question_counts_as_the_fact_s() -> None:
    finding = load_knowledge().findings["cough"]
    fact = Statement("Doctor: Coughing much?\nPatient: Not really.", "cough", False)
    case = replace(told_case(), statements=(fact,))
    assert said("[Not really.]", finding.question, case).fact == 0


def test_a_diagnosis_that_the_fact_or_the_question_names_is_no_leak() -> None:
    fact = Statement("Doctor: What did you have?\nPatient: They said influenza last year.")
    case = replace(told_case(), statements=(*told_case().statements, fact))
    assert said("[They said influenza last year.]", case=case).outcome == "answered"
    assert (
        said("You ask about influenza: [I don't know]", "Have you had influenza?").outcome
        == "does not know"
    )
    assert (
        said("You ask about influenza: [I don't know]", "Have you had a cold?").outcome == "leaked"
    )


@pytest.mark.parametrize(
    ("diagnosis", "words"),
    [
        ("Acute appendicitis", "I have appendicitis"),
        ("HIV infection", "I have HIV"),
        ("Chronic obstructive pulmonary disease (COPD)", "It is my COPD"),
        ("Allergic asthma", "I am asthmatic"),
        ("Viral hepatitis", "They say hepatitis"),
        ("Iron deficiency anaemia", "I am anaemic"),
    ],
)
def test_a_telling_word_of_the_diagnosis_is_a_leak_unless_a_quoted_fact_says_it(
    diagnosis: str, words: str
) -> None:
    case = with_facts(diagnosis=diagnosis)
    for reply in (
        f"{words}. [I gave up smoking long ago.]",
        f"[{words}]",
        words,
        Reply(f"[{words}", finish="length"),
    ):
        assert said(reply, case=case).outcome == "leaked"
    innocent = with_facts(
        ("And at home?", f"{words}, my mother thinks.", None), diagnosis=diagnosis
    )
    assert said(f"[{words}, my mother thinks.]", case=innocent).outcome == "answered"
    assert said(Reply(f"[{words}, my mo", finish="length"), case=innocent).outcome == "unreadable"
    assert said(f"{words}, my mother thinks.\n-", case=innocent).outcome == "unreadable"
    assert (
        said(f"{words}. [I gave up smoking long ago.]", f"Is it true: {words}?", case).outcome
        == "answered"
    )


@pytest.mark.parametrize(("words", "outcome"), [("ALL", "leaked"), ("all", "invented")])
def test_an_acronym_that_is_also_a_word_leaks_in_capitals_alone(words: str, outcome: str) -> None:
    case = told_case(diagnosis="Acute lymphoblastic leukaemia", accepted=("ALL",))
    assert said(f"[That is {words} there is]", case=case).outcome == outcome


def test_running_text_is_spoken_as_it_stands_and_a_doctor_s_half_is_no_fact() -> None:
    case = Case(
        "r",
        "made",
        (Statement("He coughs at night."), Statement("Doctor: Any fever at all?")),
        "Croup",
        ("Croup",),
    )
    assert said("[He coughs at night.]", case=case) == Said(
        "He coughs at night.", "answered", 0, raw="[He coughs at night.]"
    )
    assert said("[Any fever at all]", case=case).outcome == "invented"


def test_a_fact_over_two_lines_is_spoken_on_one() -> None:
    case = replace(
        told_case(), statements=(Statement("Doctor: Well?\nPatient: I cough\nday and night."),)
    )
    assert said("[I cough day and night.]", case=case).words == "I cough day and night."


@given(
    st.text(alphabet="[]. \nINoaghinbutdy'Kw", max_size=40)
    | st.sampled_from([f"[{a}]" for *_, a in TOLD])
)
def test_whatever_comes_back_nothing_but_a_fact_or_not_knowing_is_spoken(text: str) -> None:
    found = said(text)
    assert found.words in {UNKNOWN, *(a for *_, a in TOLD)} and found.outcome in OUTCOMES
    assert (found.fact is None) == (found.words == UNKNOWN)


def test_no_answer_of_the_knowledge_table_is_bare() -> None:
    """Else a model patient could never give it to a question in other words."""
    for finding in load_knowledge().findings.values():
        for answer in (*finding.affirm, *finding.deny):
            words = answer.replace("{value}", "7")
            case = replace(
                told_case(), statements=(Statement(f"Doctor: Tell me?\nPatient: {words}"),)
            )
            assert said(f"[{words}]", "Something else?", case).outcome == "answered", words


def test_the_model_sees_every_fact_and_the_question_and_is_asked_once_for_each() -> None:
    model = Talker()
    asked = [(told_case(), "Have you got a cough?"), (told_case("b"), "Do you swim?")]
    found = ModelPatient(model, seed=3).answer(
        asked, lambda m, requests, step: m.generate(requests)
    )
    assert [s.outcome for s, _ in found] == ["answered", "does not know"]
    assert [reply.n_tokens_in for _, reply in found] == [50, 50]
    requests: list[Request] = model.requests
    assert [(r.purpose, r.seed, r.n, r.temperature) for r in requests] == [
        ("patient", 3, 1, 0.0)
    ] * 2
    shown = requests[0].messages[1][1]
    assert (
        facts_text(told_case()) in shown
        and "<question>\nHave you got a cough?\n</question>" in shown
    )


def test_the_rule_patient_answers_known_questions_and_no_other() -> None:
    rule, case = FactPatient(), told_case()
    assert rule.said(case, "do you run a temperature") == Said(
        "My fever began on Monday.", "answered", FEVER
    )
    table = load_knowledge().findings["cough"].question
    assert rule.said(case, table).fact == COUGH, "the table's question for the finding that is told"
    assert rule.said(case, load_knowledge().findings["pain"].question).why == "not told"
    unmarked = replace(case, statements=(*case.statements, Statement("My belly hurts at night.")))
    assert (
        rule.said(unmarked, load_knowledge().findings["pain"].question).why == "findings not marked"
    )
    assert rule.said(case, "How do you feel?").why == "not a known question"
    assert (
        rule.answer([(case, "Any rash?")], lambda *_: pytest.fail("asks no model"))[0][0].words
        == "No."
    )


def who_knows() -> Case:
    """A case whose record holds one thing that was not told: all else is not so."""
    nausea = load_knowledge().statement("nausea", True)
    return replace(told_case(), record=(nausea,), denies=frozenset(load_knowledge().findings))


def table_question(finding: str) -> str:
    return load_knowledge().findings[finding].question


def test_who_is_asked_answers_from_the_record_yes_or_no() -> None:
    rule, case = FactPatient(), who_knows()
    words = parts_of(case.facts[5])[1]
    assert rule.said(case, table_question("nausea")) == Said(words, "answered", 5)
    assert said(f"[{words}]", table_question("nausea"), case).fact == 5
    no = rule.said(case, table_question("pain"))
    assert (no.outcome, no.fact, no.denied, no.why) == ("answered", None, "pain", "not so")
    assert no.words in load_knowledge().findings["pain"].deny
    assert replace(said("[No.]", table_question("pain"), case), raw="") == no
    told = no.statement(case, table_question("pain"))
    assert (told.finding, told.affirmed) == ("pain", False) and told.text.endswith(no.words)


@each(
    ("reply", "question", "outcome"),
    [
        ("[No.]", "nausea", "out of place"),  # it is so
        ("[No.]", "cough", "out of place"),
        ("[No.]", "How do you feel?", "out of place"),  # nobody knows what this asks for
        ("[I have no pain at all]", "pain", "invented"),  # words of no fact
        ("[I don't know.]", "pain", "does not know"),
    ],
)
def test_a_no_is_spoken_only_to_what_is_not_so(reply: str, question: str, outcome: str) -> None:
    known = load_knowledge().findings
    asked = known[question].question if question in known else question
    found = said(reply, asked, who_knows())
    assert (found.outcome, found.words, found.denied) == (outcome, UNKNOWN, None)


def test_a_starter_patient_says_yes_or_no_to_every_question_of_the_table() -> None:
    for case in load_cases("starter")[::20]:
        so = {s.finding for s in case.facts if s.affirmed}
        for finding in load_knowledge().findings.values():
            said = FactPatient().said(case, finding.question)
            told = said.statement(case, finding.question)
            assert said.outcome == "answered", (case.case_id, finding.id)
            assert told.affirmed == (finding.id in so), (case.case_id, finding.id)


def test_a_follow_up_to_what_is_not_so_gets_the_denial_of_that() -> None:
    rule, case = FactPatient(), who_knows()
    no = rule.said(case, table_question("pain_site"))
    assert no.denied == "pain" and no.words in load_knowledge().findings["pain"].deny
    pain = load_knowledge().statement("pain", True)
    hurts = replace(case, record=(*case.record, pain))
    assert rule.said(hurts, table_question("pain_site")).denied == "pain_site"


def test_only_what_the_case_would_tell_is_denied() -> None:
    case = replace(who_knows(), denies=frozenset({"pain"}))
    assert FactPatient().said(case, table_question("pain")).denied == "pain"
    other = FactPatient().said(case, table_question("weight_loss"))
    assert (other.words, other.why, other.denied) == (UNKNOWN, "not told", None)
    assert said("[No.]", table_question("weight_loss"), case).words == UNKNOWN


def test_without_a_record_nothing_is_denied_and_the_prompt_says_which() -> None:
    question = table_question("pain")
    assert said("[No.]", question).outcome == "out of place"
    shown = []

    def put(_, requests, step):
        shown.extend(r.messages[1][1] for r in requests)
        return [[Reply("[No.]")] for _ in requests]

    case = who_knows()
    found = ModelPatient(Talker()).answer([(told_case(), question), (case, question)], put)
    assert [s.denied for s, _ in found] == [None, "pain"]
    assert "all that is so" not in shown[0] and "all that is so" in shown[1]
    assert case.facts[5].text in shown[1] and case.facts[5].text not in shown[0]


def test_every_question_of_the_table_is_known() -> None:
    found = findings_of_question()
    assert set().union(*found.values()) == set(load_knowledge().findings)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Doctor: a?\nPatient: b", ("a?", "b")),
        ("Doctor: a?\nPatient: b\nPatient: c", ("a?", "b\nPatient: c")),
        ("Patient: b", ("", "b")),
        ("Doctor: a?", ("a?", "")),
        ("He says so.", ("", "He says so.")),
    ],
)
def test_the_parts_of_a_statement(text: str, parts: tuple[str, str]) -> None:
    assert parts_of(Statement(text)) == parts


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("[Any pain?]", "Any pain?"),
        ("Next: [Any\tpain]", "Any pain"),
        ("[" + "a" * 300 + "]", "a" * 300),
    ],
)
def test_a_question_is_the_only_group(text: str, read: str) -> None:
    assert read_question(Reply(text)) == read


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("Any pain", "no question in square brackets"),
        ("Any pain? Any fever?", "no question in square brackets"),
        ("[a?] [b?]", "2 questions in square brackets"),
        ("[" + "a" * 301 + "]", "more than 300 characters"),
        ("[12?]", "holds no letter"),
        ("[Any pain? Patient: No.]", "speaks for doctor or patient"),
        (Reply("[Any pain?]", finish="length"), "ran out of tokens"),
        (Reply(None, missing="the call failed"), "the call failed"),
    ],
)
def test_another_form_is_no_question(reply, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        read_question(reply if isinstance(reply, Reply) else Reply(reply))


@pytest.mark.parametrize(
    ("text", "enough"), [("[enough]", True), ("[More.]", False), ("I say [Enough]", True)]
)
def test_enough_or_more(text: str, enough: bool) -> None:
    assert read_enough(Reply(text)) is enough


@pytest.mark.parametrize(
    "text", ["enough?", "not enough", "[enough] [more]", "[not enough]", "[yes]"]
)
def test_another_word_decides_nothing(text: str) -> None:
    with pytest.raises(Unreadable):
        read_enough(Reply(text))
