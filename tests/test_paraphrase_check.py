"""Does a paraphrase still say the same? Exact words against the table, loose words by likeness, and
what cannot be told."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import yaml
from each import each

from trustlab.agents.paraphrase_check import CAUGHT, ParaphraseChecker
from trustlab.knowledge.findings import Knowledge, load_knowledge
from trustlab.meaning.encoder import Encoder
from trustlab.records import Statement

TABLE = load_knowledge()


class Unlike(Encoder):
    """An encoder to which no two texts are alike: what is not exact is unclear."""

    def encode(self, texts):
        return np.zeros((len(texts), 1), dtype=np.float32)


EXACT = ParaphraseChecker(TABLE, Unlike())
FEVER = TABLE.statement("fever")
SAYS = "I felt really feverish all last night."
ASKED = f"Doctor: {TABLE.findings['fever'].question}\nPatient: "
SOME = ("fever", "pallor", "palpitations", "diarrhoea", "vomiting_blood", "black_stools")
WORDINGS = Path(__file__).parents[1] / "training" / "wordings"


def verdict(statement: Statement, new: str, checker: ParaphraseChecker = EXACT) -> tuple[str, str]:
    found = checker.check(statement, new)
    return found.verdict, found.how


def fill(finding: str, affirmed: bool, wording: int) -> str:
    """A phrasing of the table, with the first values of its kind where it takes any."""
    f = TABLE.findings[finding]
    values = [v.id for v in TABLE.values.values() if v.kind == f.values][:2]
    values = values or (["7"] if f.form == "scale" else [])
    return TABLE.statement(
        finding, affirmed, values if affirmed and f.form != "binary" else (), wording
    ).text


@pytest.mark.parametrize("affirmed", [True, False])
def test_every_phrasing_of_every_finding_says_the_same_and_its_opposite_turns_it(
    affirmed: bool,
) -> None:
    for finding in list(TABLE.findings.values())[::5]:
        statement = Statement(fill(finding.id, affirmed, 0), finding.id, affirmed)
        opposite = Statement(fill(finding.id, not affirmed, 0), finding.id, not affirmed)
        for i in range(len(finding.affirm if affirmed else finding.deny)):
            new = fill(finding.id, affirmed, i)
            assert verdict(statement, new) == ("same", "exact"), new
            assert verdict(opposite, new) == ("turns", "exact"), new


RASH = TABLE.findings["skin_lesion"].question
NOT_CHECKED = ("not checked", "not checked")


@each(
    ("statement", "new", "found"),
    [
        (FEVER, f"{ASKED}There are red patches on my skin.", ("another finding", "exact")),
        (FEVER, f"{ASKED}{SAYS} There are red patches on my skin.", ("adds", "exact")),
        (FEVER, f"{ASKED}It is not true that {SAYS}", ("unclear", "likeness")),
        (FEVER, f"{ASKED}Well, yes doctor, {SAYS.upper()[:-1]}", ("same", "exact")),
        (FEVER, f"Doctor: {RASH}\nPatient: {SAYS}", ("another finding", "exact")),
        (FEVER, SAYS, ("drops", "exact")),
        *[
            (Statement(FEVER.text, *of), f"{ASKED}My skin looks clear.", NOT_CHECKED)
            for of in ((), ("fever",), ("unheard", True))
        ],
        # A longer phrasing that holds another one.
        (TABLE.statement("rash_peeling", False),
         TABLE.statement("rash_peeling", False, wording=2).text, ("same", "exact")),
    ],
)  # fmt: skip
def test_exact_words_decide(statement: Statement, new: str, found: tuple[str, str]) -> None:
    assert verdict(statement, new) == found
    assert EXACT.check(statement, new).caught == (found[0] in CAUGHT)


@each(
    ("old", "new", "found"),
    [
        (("groin_left", "mouth"), "I feel the pain in my mouth and my left groin.", "same"),
        (("groin_left", "mouth"), "I feel the pain in my mouth.", "drops"),
        (("mouth",), "I feel the pain in my mouth and my left groin.", "adds"),
        (("groin_left",), "I feel the pain in my right groin.", "another finding"),
    ],
)
def test_values_are_kept_dropped_added_or_replaced(old: tuple, new: str, found: str) -> None:
    statement = TABLE.statement("pain_site", True, old)
    question = statement.text.partition("\n")[0]
    assert verdict(statement, f"{question}\nPatient: {new}") == (found, "exact")


@cache
def by_likeness() -> ParaphraseChecker:
    """A checker with the real encoder over few findings, so that little has to be encoded."""
    return ParaphraseChecker(Knowledge({f: TABLE.findings[f] for f in SOME}, {}, {}), Encoder())


OTHER = dict(zip(SOME, (*SOME[1:], SOME[0]), strict=True))


@each(
    ("told", "most", "least"),
    [
        (lambda f, yes: TABLE.statement(f, yes), ("same", 0.65), (CAUGHT, 0.15)),
        (lambda f, yes: TABLE.statement(f, not yes), ("turns", 0.65), (("same",), 0.15)),
        (lambda f, yes: TABLE.statement(OTHER[f], yes), ("another finding", 0.9), (("same",), 0.1)),
    ],
)
def test_loose_words_for_the_same_pass_and_others_are_mostly_caught(told, most, least) -> None:
    words = {}
    for file in sorted(WORDINGS.glob("*.yml")):
        words |= yaml.safe_load(file.read_text(encoding="utf-8"))
    found = []
    for f in SOME:
        for yes, key in ((True, "yes"), (False, "no")):
            statement = told(f, yes)
            front = f"{statement.text.partition(chr(10))[0]}\nPatient: "
            found += [by_likeness().check(statement, front + new) for new in words[f][key]]
    assert {v.how for v in found} == {"likeness"}
    assert sum(v.verdict == most[0] for v in found) > most[1] * len(found)
    assert sum(v.verdict in least[0] for v in found) < least[1] * len(found)
