"""Does a paraphrase still say the same? Exact words against the table, loose words by likeness, and
what cannot be told."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
import yaml

from trustlab.changes.paraphrase_check import CAUGHT, ParaphraseChecker, Verdict
from trustlab.knowledge import Knowledge, load_knowledge
from trustlab.meaning.encoder import Encoder
from trustlab.records import Statement

TABLE = load_knowledge()
EXACT = ParaphraseChecker(TABLE)
FEVER = TABLE.statement("fever")
NO_FEVER = TABLE.statement("fever", False)
ASKED = f"Doctor: {TABLE.findings['fever'].question}\nPatient: "
SOME = (
    "fever",
    "pallor",
    "palpitations",
    "diarrhoea",
    "vomiting_blood",
    "black_stools",
    "fatigue",
    "nausea",
)
WORDINGS = Path(__file__).parents[1] / "training" / "wordings"


def verdict(statement: Statement, new: str, checker: ParaphraseChecker = EXACT) -> tuple[str, str]:
    found = checker.check(statement, new)
    return found.verdict, found.how


def fill(finding: str, affirmed: bool, wording: int) -> str:
    """A phrasing of the table, with the first values of its kind where it takes any."""
    f = TABLE.findings[finding]
    values = [v.id for v in TABLE.values.values() if v.kind == f.values][:2] or (
        ["7"] if f.form == "scale" else []
    )
    return TABLE.statement(
        finding, affirmed, values if affirmed and f.form != "binary" else (), wording
    ).text


@pytest.mark.parametrize("affirmed", [True, False])
def test_every_phrasing_of_every_finding_says_the_same_and_its_opposite_turns_it(
    affirmed: bool,
) -> None:
    for finding in list(TABLE.findings.values())[::3]:
        statement = Statement(fill(finding.id, affirmed, 0), finding.id, affirmed)
        opposite = Statement(fill(finding.id, not affirmed, 0), finding.id, not affirmed)
        for i in range(len(finding.affirm if affirmed else finding.deny)):
            new = fill(finding.id, affirmed, i)
            assert verdict(statement, new) == ("same", "exact"), new
            assert verdict(opposite, new) == ("turns", "exact"), new


def test_a_phrasing_inside_a_longer_one_is_not_heard_by_itself() -> None:
    denied = TABLE.statement("rash_peeling", False)
    new = TABLE.statement("rash_peeling", False, wording=2).text
    assert (
        "No bits of skin come away" in new
        and "Bits of skin come away" in TABLE.statement("rash_peeling", wording=2).text
    )
    assert verdict(denied, new) == ("same", "exact")


def test_words_of_another_finding_are_another_and_beside_the_own_they_add() -> None:
    assert EXACT.check(FEVER, f"{ASKED}There are red patches on my skin.") == Verdict(
        "another finding", "exact", "tells skin lesions or rash"
    )
    for more in ("There are red patches on my skin.", "And no, there is no rash on me."):
        assert verdict(FEVER, f"{ASKED}I felt really feverish all last night. {more}") == (
            "adds",
            "exact",
        )


def test_a_phrase_inside_other_words_is_not_yet_a_verdict() -> None:
    assert verdict(FEVER, f"{ASKED}It is not true that I felt really feverish all last night.") == (
        "not checked",
        "not checked",
    )


def test_fillers_case_and_punctuation_do_not_matter() -> None:
    assert verdict(FEVER, f"{ASKED}Well, yes doctor, I FELT really feverish all last night") == (
        "same",
        "exact",
    )


def test_a_question_must_stay_its_own() -> None:
    rash = TABLE.findings["skin_lesion"].question
    found = EXACT.check(FEVER, f"Doctor: {rash}\nPatient: I felt really feverish all last night.")
    assert found == Verdict("another finding", "exact", "asks about skin lesions or rash")
    assert verdict(
        FEVER, "Doctor: Temperature?\nPatient: I felt really feverish all last night."
    ) == (
        "not checked",
        "not checked",
    )


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (("groin_left", "mouth"), "I feel the pain in my mouth and my left groin.", "same"),
        (("groin_left", "mouth"), "I feel the pain in my mouth.", "drops"),
        (("mouth",), "I feel the pain in my mouth and my left groin.", "adds"),
        (("groin_left",), "I feel the pain in my right groin.", "another finding"),
    ],
)
def test_values_are_kept_dropped_added_or_replaced(
    old: tuple[str, ...], new: str, found: str
) -> None:
    statement = TABLE.statement("pain_site", True, old)
    question = statement.text.partition("\n")[0]
    assert verdict(statement, f"{question}\nPatient: {new}") == (found, "exact")


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("The pain is 7 out of ten in strength.", ("same", "exact")),
        ("The pain is 8 out of ten in strength.", ("another finding", "exact")),
        ("How strong is this pain? I would call it 7/10.", ("same", "likeness")),
        ("How strong is this pain? I would call it 9 out of 10.", ("another finding", "likeness")),
    ],
)
def test_a_number_on_a_scale_must_stay(said: str, found: tuple[str, str]) -> None:
    statement = TABLE.statement("pain_intensity", True, ["7"])
    two = Knowledge({f: TABLE.findings[f] for f in ("pain_intensity", "fever")}, {}, {})
    new = f"{statement.text.partition(chr(10))[0]}\nPatient: {said}"
    assert verdict(statement, new, ParaphraseChecker(two, Encoder())) == found


@pytest.mark.parametrize(
    "statement",
    [Statement(FEVER.text), Statement(FEVER.text, "fever"), Statement(FEVER.text, "unheard", True)],
)
def test_what_a_data_set_does_not_know_is_not_checked_and_not_caught(statement: Statement) -> None:
    found = EXACT.check(statement, f"{ASKED}My skin looks clear, without any marks.")
    assert (found.verdict, found.caught) == ("not checked", False)


def test_a_lost_half_drops_and_a_new_half_adds() -> None:
    assert verdict(FEVER, "I felt really feverish all last night.") == ("drops", "exact")
    alone = Statement("I felt really feverish all last night.", "fever", True)
    assert (
        verdict(alone, FEVER.text) == ("adds", "exact")
        and verdict(alone, "I've had a fever since yesterday.")[0] == "same"
    )


def test_the_verdicts_that_are_caught() -> None:
    assert {
        v for v in ("same", "unclear", "not checked", *CAUGHT) if Verdict(v, "exact").caught
    } == set(CAUGHT)


# -- loose words
# --------------------------------------------------------------------------------------------------


@cache
def by_likeness() -> ParaphraseChecker:
    """A checker with the real encoder over eight findings, so that little has to be encoded."""
    return ParaphraseChecker(Knowledge({f: TABLE.findings[f] for f in SOME}, {}, {}), Encoder())


@cache
def loose() -> list[tuple[str, bool, str]]:
    """Everyday wordings that the table does not hold: finding, affirmed, words."""
    words = {}
    for file in sorted(WORDINGS.glob("*.yml")):
        words |= yaml.safe_load(file.read_text(encoding="utf-8"))
    return [
        (f, yes, said)
        for f in SOME
        for yes, key in ((True, "yes"), (False, "no"))
        for said in words[f][key]
    ]


def shares(asked: list[tuple[Statement, str]]) -> dict[str, float]:
    found = [
        by_likeness().check(s, f"{s.text.partition(chr(10))[0]}\nPatient: {new}")
        for s, new in asked
    ]
    assert {v.how for v in found} == {"likeness"}
    return {
        name: sum(v.verdict == name for v in found) / len(found)
        for name in ("same", "unclear", *CAUGHT)
    }


def test_loose_words_for_the_same_are_mostly_let_through() -> None:
    found = shares([(TABLE.statement(f, yes), new) for f, yes, new in loose()])
    assert found["same"] > 0.65 and sum(found[c] for c in CAUGHT) < 0.15


def test_loose_words_for_the_opposite_are_mostly_caught() -> None:
    found = shares([(TABLE.statement(f, not yes), new) for f, yes, new in loose()])
    assert found["turns"] > 0.65 and found["same"] < 0.15


def test_loose_words_for_another_finding_are_nearly_always_caught() -> None:
    other = dict(zip(SOME, (*SOME[1:], SOME[0]), strict=True))
    found = shares([(TABLE.statement(other[f], yes), new) for f, yes, new in loose()])
    assert found["another finding"] > 0.9


def test_a_loose_sentence_about_another_finding_beside_the_own_adds() -> None:
    new = (
        f"{ASKED}I had a bit of a temperature yesterday evening. And my poo was like tar in the"
        " toilet bowl."
    )
    assert verdict(FEVER, new, by_likeness()) == ("adds", "likeness")


def test_a_loose_question_is_held_against_every_finding_s_own() -> None:
    says = "Patient: I felt really feverish all last night."
    assert verdict(
        FEVER, f"Doctor: Have you been hot, or run a temperature?\n{says}", by_likeness()
    ) == ("same", "likeness")
    assert verdict(FEVER, f"Doctor: Any black poo?\n{says}", by_likeness()) == (
        "another finding",
        "likeness",
    )


def test_words_about_nothing_are_unclear() -> None:
    checker = ParaphraseChecker(by_likeness().knowledge, Encoder())
    assert checker.check(FEVER, f"{ASKED}Seventeen bicycles went by.").verdict == "unclear"
