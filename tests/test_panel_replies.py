"""Replies of a panel's doctors and reviewers, read strictly: what is not in the asked-for form is
missing, never guessed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from each import each

from trustlab.parsing.agents import MAX_ITEMS, read_flags, read_opinion, read_plan, read_ratings
from trustlab.parsing.reply import NO_DIAGNOSIS, Unreadable
from trustlab.records import FLAGS, RATINGS, Mark, Plan, Prescription, Reply

NOT_ONE_SECTION = "the reasoning does not stand in one closed section"
SHOWN = "Allergies: penicillin\nKidney function: eGFR 27 ml/min\nPatient: It's worse at night."


def thought(words: str) -> str:
    return f"<thinking_process>{words}</thinking_process>"


# Opinions


@each(
    ("reply", "thinking", "diagnosis", "missing"),
    [
        (thought("Cough and fever.") + "\n[Influenza]", "Cough and fever.", "Influenza", ""),
        (thought("\n Cough.\nFever. \n") + " It is [ Influenza ].",
         "Cough.\nFever.", "Influenza", ""),
        (thought("[Croup] or [Asthma]?") + "\n[Influenza]",
         "[Croup] or [Asthma]?", "Influenza", ""),
        (thought("Surely [Croup].") + "\nInfluenza?", "Surely [Croup].", None, NO_DIAGNOSIS),
        (thought("Cough.") + "\n[1]", "Cough.", None, NO_DIAGNOSIS),
        ("[Croup]" + thought("Cough.") + "", "Cough.", None, NO_DIAGNOSIS),
        (thought("Cough.") + "[Croup] no, [Influenza] [2]", "Cough.", "Influenza", ""),
        (thought("  ") + "[Influenza]", None, "Influenza", "no reasoning"),
        (thought(""), None, None, NO_DIAGNOSIS),
        ("Cough and fever. [Influenza]", None, "Influenza", "no reasoning"),
        ("<thinking>Cough.</thinking>[Influenza]", None, "Influenza", "no reasoning"),
        ("", None, None, NO_DIAGNOSIS),
        ("<thinking_process>Cough. [Influenza]", None, None, NOT_ONE_SECTION),
        ("Cough.</thinking_process>[Influenza]", None, None, NOT_ONE_SECTION),
        ("</thinking_process>Cough.<thinking_process>[Influenza]", None, None, NOT_ONE_SECTION),
        (thought("Cough.") + thought("Or not.") + "[Influenza]", None, None, NOT_ONE_SECTION),
        (thought("I write <thinking_process> first.") + "[Influenza]", None, None, NOT_ONE_SECTION),
        (thought("Cough.\x00") + "[Influenza]", None, None, "characters that are no text"),
        (thought("Cough.") + "[Influ\ud800enza]", None, None, "characters that are no text"),
    ],
)  # fmt: skip
def test_an_opinion_is_one_closed_section_and_a_diagnosis_after_it(
    reply: str, thinking, diagnosis, missing: str
) -> None:
    assert read_opinion(Reply(reply)) == (thinking, diagnosis, missing)


@pytest.mark.parametrize(
    ("reply", "missing"),
    [
        (Reply(thought("Cough.") + "[Influenza]", finish="length"), "ran out of tokens"),
        (Reply(None, missing="the server did not answer"), "the server did not answer"),
        (Reply(None), "no reply"),
    ],
)
def test_an_opinion_that_did_not_come_whole_says_nothing(reply: Reply, missing: str) -> None:
    assert read_opinion(reply) == (None, None, missing)


# Plans


def prescribed(**changes: Any) -> dict[str, Any]:
    return {"drug": "amoxicillin", "dose": "500 mg", "route": "by mouth"} | changes


def plan_json(prescriptions: Any = None, tests: Any = None, **more: Any) -> str:
    drugs = [prescribed()] if prescriptions is None else prescriptions
    return json.dumps({"prescriptions": drugs, "tests": ["ECG"] if tests is None else tests} | more)


AMOXICILLIN = Prescription("amoxicillin", "500 mg", "by mouth")
PLAN = Plan((AMOXICILLIN,), ("ECG",))


@each(
    ("reply", "plan"),
    [
        (plan_json(), PLAN),
        (f"\n```json\n{plan_json()}\n```\n", PLAN),
        (plan_json(note="take care"), PLAN),
        (plan_json([prescribed(drug=" amoxicillin\n", days=7)]), PLAN),
        (plan_json().replace('"ECG"]', '"ECG",]'), PLAN),
        (plan_json().replace('"', "'"), PLAN),
        (plan_json([], []), Plan()),
        (plan_json([], ["ECG", "CRP", "ECG"]), Plan((), ("ECG", "CRP", "ECG"))),
        (plan_json([prescribed()] * MAX_ITEMS, []), Plan((AMOXICILLIN,) * MAX_ITEMS)),
        (
            plan_json([prescribed(drug="paracétamol")]),
            Plan((Prescription("paracétamol", "500 mg", "by mouth"),), ("ECG",)),
        ),
    ],
)
def test_a_plan_is_one_json_object_with_both_lists(reply: str, plan: Plan) -> None:
    assert read_plan(Reply(reply)) == plan


@each(
    ("reply", "why"),
    [
        ("Amoxicillin and an ECG.", "no JSON"),
        (f"Here is the plan: {plan_json()}", "no JSON"),
        (f"{plan_json()} I hope this helps.", "something follows"),
        (plan_json() + plan_json(), "something follows|more than"),
        (f"[{plan_json()}]", "no JSON object"),
        (plan_json()[:-9], "brackets do not close"),
        (json.dumps({"tests": []}), "prescriptions: field required"),
        (json.dumps({"prescriptions": []}), "tests: field required"),
        (json.dumps({"plan": json.loads(plan_json())}), "field required"),
        ('{"prescriptions": [], "tests": [], "tests": ["ECG"]}', "tests comes twice"),
        ('{"prescriptions": null, "tests": []}', "prescriptions"),
        (plan_json(tests="ECG"), "tests"),
        (plan_json(tests=[""]), "tests.0"),
        (plan_json(tests=["ECG", None]), "tests.1"),
        (plan_json(tests=[{"name": "ECG"}]), "tests.0"),
        (plan_json(tests=["E\x00CG"]), "tests.0"),
        (plan_json(tests=["E\ud800CG"]), "tests.0"),
        (plan_json(tests=["x" * 121]), "tests.0"),
        (plan_json(tests=["ECG"] * (MAX_ITEMS + 1)), "tests"),
        (plan_json(["amoxicillin 500 mg by mouth"]), "prescriptions.0"),
        (plan_json([prescribed(), prescribed(dose=500)]), "prescriptions.1.dose"),
        (plan_json([prescribed(route=None)]), "prescriptions.0.route"),
        (
            plan_json([{"drug": "amoxicillin", "dose": "500 mg"}]),
            "prescriptions.0.route: field required",
        ),
        (plan_json([prescribed(drug="amoxicillin\nwarfarin")]), "prescriptions.0.drug"),
        (plan_json([prescribed()] * 10_000), "prescriptions"),
        ("[" * 100_000, "no JSON"),
        ("\x00", "characters that are no text"),
    ],
)
def test_another_plan_is_unreadable_as_a_whole(reply: str, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        read_plan(Reply(reply), "strict")


def test_a_drug_that_comes_with_two_names_has_none() -> None:
    twice = (
        '{"prescriptions": [{"drug": "amoxicillin", "drug": "warfarin", "dose": "1 g", "route": "by'
        ' mouth"}], "tests": []}'
    )
    with pytest.raises(Unreadable, match=r"prescriptions\.0\.drug"):
        read_plan(Reply(twice))


def test_a_plan_that_was_cut_off_is_unreadable_even_where_it_could_be_read() -> None:
    with pytest.raises(Unreadable, match="ran out of tokens"):
        read_plan(Reply(plan_json(), finish="length"))


# Ratings and flags: the same rules, other words

BOTH = each(
    ("read", "key", "words"),
    [(read_ratings, "rating", RATINGS), (read_flags, "flag", FLAGS)],
    ids=["ratings", "flags"],
)


def marked(key: str, *verdicts: Any, **more: Any) -> str:
    return json.dumps([{"id": i, key: v} | more for i, v in enumerate(verdicts, 1)])


@BOTH
def test_every_word_that_is_asked_for_is_read_for_its_item(
    read, key: str, words: tuple[str, ...]
) -> None:
    assert read(Reply(marked(key, *words)), 4, SHOWN) == tuple(map(Mark, words))
    rows = json.loads(marked(key, *words))
    assert read(Reply(json.dumps(rows[::-1])), 4, SHOWN) == tuple(
        map(Mark, words)
    )  # numbers count, not places
    for wrapped in (
        f"```json\n{json.dumps(rows)}\n```",
        json.dumps({"review": rows}),
        json.dumps(rows).replace("}]", "},]"),
    ):
        assert read(Reply(wrapped), 4, SHOWN) == tuple(map(Mark, words))
    assert read(Reply(marked(key, words[0], note="x", drug="y")), 1, SHOWN) == (Mark(words[0]),)


@BOTH
@each(
    "verdict",
    [
        *("safe", "fine", "Risky", "SAFE_WITH_CAUTION", " SAFE", "FINE ", "SAFE or UNSAFE", ""),
        *(None, True, 1, ["SAFE"]),
    ],
)
def test_another_word_makes_its_item_unreadable_and_no_other(
    read, key: str, words: tuple[str, ...], verdict: object
) -> None:
    reply = Reply(marked(key, words[1], verdict, words[2]))
    first, second, third = read(reply, 3, SHOWN, "strict")
    assert (first, third) == (Mark(words[1]), Mark(words[2]))
    assert second.verdict is None and second.missing.startswith(f"item 2, {key}: ")


def test_a_flag_is_no_rating_and_a_rating_no_flag() -> None:
    assert read_ratings(Reply(marked("rating", "RISKY")), 1, SHOWN)[0].verdict is None
    assert read_flags(Reply(marked("flag", "UNSAFE")), 1, SHOWN)[0].verdict is None
    assert (
        read_flags(Reply(marked("rating", "RISKY")), 1, SHOWN)[0].missing
        == "item 1, flag: field required"
    )


@BOTH
def test_an_item_that_is_not_marked_is_missing(read, key: str, words: tuple[str, ...]) -> None:
    assert read(Reply(json.dumps([{"id": 2, key: words[2]}])), 2, SHOWN) == (
        Mark(None, missing="it is not marked"),
        Mark(words[2]),
    )
    assert read(Reply("[]"), 2, SHOWN) == (Mark(None, missing="it is not marked"),) * 2


@BOTH
@each(
    ("ids", "why"),
    [
        ((1, 1), "the items marked are"),
        ((1, 2, 3), "the items marked are"),
        ((0, 1), "the items marked are"),
        ((1, -2), "the items marked are"),
        ((1, "2"), "the items marked are"),
        ((1, 2.0), "the items marked are"),
        ((1, None), "the items marked are"),
        ((True, 2), "the items marked are"),
        ((1, [2]), "the items marked are"),
        (tuple(range(1, 10_001)), "the items marked are"),
    ],
)  # fmt: skip
def test_items_doubled_strange_or_too_many_make_every_mark_unreadable(
    read, key, words, ids: tuple, why: str
) -> None:
    rows = json.dumps([{"id": i, key: words[2]} for i in ids])
    found = read(Reply(rows), 2, SHOWN, "strict")
    assert [m.verdict for m in found] == [None, None]
    assert all(m.missing.startswith(why) and len(m.missing) < 200 for m in found)


@BOTH
@each(
    ("form", "why"),
    [
        ("All is well.", "no JSON"),
        ("The review: {rows}", "no JSON"),
        ("{rows} Take care.", "brackets do not close"),
        ("{rows}{rows}", "brackets do not close"),
        ("{cut}", "brackets do not close"),
        ('{{"review": {rows}, "note": "x"}}', "no JSON list"),
        ('{{"review": {rows}, "review": {rows}}}', "no JSON list"),
        ("[{rows}]", "the items marked are"),
        ('["{word}", "{word}"]', "the items marked are"),
        ('[{{"id": 1, "id": 1}}]', "the items marked are [twice], those asked for 1 to 2"),
        ("{rows}\x00", "characters that are no text"),
        (
            '[{{"id": 1, "{key}": "{word}", "{key}": "{other}"}}, {{"id": 2, "{key}": "{word}"}}]',
            "stands more often than there are",
        ),
        ("null", "no JSON"),
        ("", "no JSON"),
    ],
)
def test_a_reply_that_is_no_list_of_marks_makes_every_mark_unreadable(
    read, key, words, form: str, why: str
) -> None:
    rows = marked(key, words[0], words[2])
    text = form.format(rows=rows, cut=rows[:-6], word=words[0], other=words[2], key=key)
    found = read(Reply(text), 2, SHOWN, "strict")
    assert [m.verdict for m in found] == [None, None] and all(why in m.missing for m in found), (
        found
    )


@BOTH
def test_a_review_that_did_not_come_whole_is_unreadable(
    read, key: str, words: tuple[str, ...]
) -> None:
    assert read(Reply(marked(key, words[0]), finish="length"), 1, SHOWN) == (
        Mark(None, missing="ran out of tokens"),
    )
    assert (
        read(Reply(None, missing="no server"), 2, SHOWN) == (Mark(None, missing="no server"),) * 2
    )


@BOTH
@each(
    ("quote", "kept", "occurs"),
    [
        ("penicillin", "penicillin", True),
        (" eGFR 27 ml/min ", "eGFR 27 ml/min", True),
        ("ALLERGIES: Penicillin.", "ALLERGIES: Penicillin.", True),
        ("penicill", "penicill", False),  # half a word
        ("eGFR 7 ml/min", "eGFR 7 ml/min", False),
        ("aspirin", "aspirin", False),
        ("penicillin at night", "penicillin at night", False),  # words that do not stand together
        ("...", "...", False),
        ("", None, None),
        ("  ", None, None),
        (None, None, None),
    ],
)
def test_a_quotation_is_looked_up_in_what_was_shown(read, key, words, quote, kept, occurs) -> None:
    (found,) = read(
        Reply(marked(key, words[2], quote=quote, reason="it speaks against it")), 1, SHOWN
    )
    assert found == Mark(words[2], kept, occurs, "it speaks against it")


@BOTH
@each(
    ("reason", "kept"),
    [(None, None), ("", None), ("  ", None), (" why ", "why"), ("x" * 500, "x" * 500)],
)
def test_a_reason_is_kept_where_there_is_one(read, key, words, reason, kept) -> None:
    assert read(Reply(marked(key, words[2], reason=reason)), 1, SHOWN) == (
        Mark(words[2], reason=kept),
    )


@BOTH
@each(
    "extra",
    [{"quote": ["penicillin"]}, {"quote": 27}, {"reason": 1}, {"reason": "x" * 501},
     {"quote": "a\x00b"}, {"reason": "\x00"}, {"quote": "\ud800"}, {"reason": "\udfff"}],
)  # fmt: skip
def test_words_that_no_file_could_hold_or_no_words_make_the_item_unreadable(
    read, key, words, extra: dict
) -> None:
    (found,) = read(Reply(marked(key, words[2], **extra)), 1, SHOWN)
    assert found.verdict is None and found.missing.startswith(f"item 1, {next(iter(extra))}: ")
    found.missing.encode()
