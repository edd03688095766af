"""Blocks of HTML that notebooks show: one answer, a consultation, a chart review. Every word is
escaped, every verdict told without colour."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from typing import Any

import numpy as np
from each import each
from fake_consultation import QUESTIONS, Talker, asked
from generations import generation, told
from saying import says

from trustlab.agents.review import Checked, Proposed, Review
from trustlab.paths import NOTICE
from trustlab.records import (
    Assessment,
    Case,
    Criterion,
    Evidence,
    Mark,
    Opinion,
    Panel,
    Plan,
    Prescription,
    Reply,
    Statement,
    TokenTrace,
    View,
)  # fmt: skip
from trustlab.reports.html import show
from trustlab.reports.html.prompts import prompts_shown
from trustlab.retrieval import Passage

NASTY = "<script>alert('x')</script> & \"pain\" $5"
SIGNS = {"supported": "✓", "missing": "?", "contradicted": "✗"}
DOTS = {"strong": "●●●", "moderate": "●●", "weak": "●"}
ROWS: list[tuple[str, Any, Any, str | None, bool | None]] = [
    ("Sudden sharp pain", "strong", "supported", "it came on in the night", True),
    ("Shortness of breath", "strong", "supported", NASTY, True),
    ("Swollen calf on one side", "strong", "missing", None, None),
    ("Recent operation", "moderate", "supported", "weeks of lying in bed", False),
    ("Coughing up blood", "moderate", "contradicted", "no blood", True),
    ("Fainting", "weak", "missing", None, None),
]
EVIDENCE = tuple(
    Evidence(Criterion(i, text, weight), *rest) for i, (text, weight, *rest) in enumerate(ROWS, 1)
)
WHOLE = Assessment(
    "Pulmonary embolism",
    keyword="embolism",
    passages=("a", "b", "c"),
    n_dropped=2,
    profile=tuple(e.criterion for e in EVIDENCE),
    evidence=EVIDENCE,
    summary_agrees=True,
    reasoning="Two strong criteria are supported, one is missing.",
    score=62.0,
)
WHY = "confidence from evidence: no JSON"
FAILED = replace(WHOLE, evidence=(), summary_agrees=None, reasoning=None, score=None, missing=WHY)
PROSE = Assessment(NASTY, passages=("a",), prose=NASTY, reasoning=NASTY, score=40.0, missing=NASTY)
NO_WORDS = tuple(replace(e, criterion=Criterion(1, "", None)) for e in EVIDENCE)
WORDLESS = replace(WHOLE, evidence=NO_WORDS)
ASSESSMENTS = {
    "whole": WHOLE, "failed": FAILED, "prose": PROSE,
    "no score": replace(WHOLE, reasoning=None, score=None, missing=WHY),
    "early": Assessment("Flu", missing="keyword: none in square brackets"),
}  # fmt: skip
TRACE = TokenTrace(
    (" pul", "monary", "<b>"),
    logprobs=np.log([0.32, 0.9722, 0.5]),
    alternatives=(
        ((" pul", np.log(0.32)), (" <i>", np.log(0.3)), (" Co", -3.0)),
        (("monary", np.log(0.9722)), ("mo", -4.0), ("\n", -5.0)),
        (("a", -0.6), ("<b>", np.log(0.5)), ("c", -5.0)),
    ),
)
TRACED = Reply("pulmonary<b>", TRACE)
PASSAGES = [Passage(f"p{i}", f"Title {i} & more", f"Content {i} {NASTY}", "") for i in range(7)]


class Seen(HTMLParser):
    """The words a reader sees and every tag; fails where tags do not close in order."""

    def __init__(self, page: str):
        super().__init__()
        self.open, self.tags, self.words = [], set(), []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        assert {name for name, _ in attrs} <= {"style", "class", "tabindex"}
        self.open += [tag] if tag != "br" else []

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)


BLOCKS = {
    "dialogue": show.dialogue([Statement(f"Doctor: What is it?\nPatient: {NASTY}"), NASTY]),
    "no dialogue": show.dialogue([]),
    "tokens": show.tokens(TRACED),
    "tokens without trace": show.tokens(Reply(NASTY)),
    "no diagnosis": show.tokens(Reply(None, missing=NASTY)),
    "votes": show.votes(told(NASTY, "Flu", "flu.", None)),
    "no votes": show.votes(None),
    "replies": show.replies(
        generation(answer=Reply("Flu"), probes={"ce": told(NASTY), "p_true": told(NASTY, "True")})
    ),
    "passages": show.passages(PASSAGES),
    "no passages": show.passages([]),
    **{name: show.evidence(a) for name, a in ASSESSMENTS.items()},
    "beside": show.evidence_beside({NASTY: WHOLE, **ASSESSMENTS, "wordless": WORDLESS}),
    "prompts": prompts_shown(["samples", "evidence", "diagnosis"]),
    "no prompts": prompts_shown([]),
}
TAGS = {*re.findall(r"\w+", "div p b br span pre table thead tbody tr th td details summary")}
NASTY_ONES = ("dialogue", "tokens without trace", "no diagnosis", "votes", "replies", "passages")


@each("name", BLOCKS)
def test_a_block_is_escaped_and_loads_nothing(name):
    page = BLOCKS[name]._repr_html_()
    seen = Seen(page)
    assert seen.tags <= TAGS and "url(" not in page and "http" not in page
    assert page.count(NOTICE) == (name in {*ASSESSMENTS, "beside"})
    assert name not in (*NASTY_ONES, "prose", "beside") or NASTY in seen.text


def test_tokens_show_probability_and_other_tokens():
    words = Seen(BLOCKS["tokens"]).words
    assert words[:7] == ["␣pul", "0.32", "␣<i> 0.30", "␣Co 0.05", "monary", "0.97", "mo 0.02"]
    assert "↵ 0.01" in words and "␣Co 0.05" not in show.tokens(TRACED, n_alternatives=1)
    bare = show.tokens(Reply("Flu", replace(TRACE, logprobs=None, alternatives=None)))
    assert "no token probabilities" in bare and "monary" in bare
    assert "no token statistics" in BLOCKS["tokens without trace"]


def test_votes_merge_spellings_and_leave_out_the_unreadable():
    words = Seen(show.votes(told("Flu", "flu.", "Flu", "Croup", None))).words
    assert words[2:6] == ["Flu", "3 of 4", "Croup", "1 of 4"]
    assert says(words[-1], "1 of 5 samples")
    assert "No readable samples" in show.votes(told(None)) and "No samples" in BLOCKS["no votes"]


def test_a_number_that_is_missing_has_its_reason():
    text = Seen(BLOCKS["replies"]).text
    assert says(text, "missing", "no single number", "probes.cot_ce")
    lost = {"ce": (Reply(None, missing="too long"),)}
    assert "(no reply: too long)" in show.replies(generation(probes=lost))


def test_evidence_says_each_verdict_with_symbol_and_word_and_a_missing_one_why():
    page = show.evidence(WHOLE)
    rows = re.findall(r"<tr .*?</tr>", page)
    for row, e in zip(rows, EVIDENCE, strict=True):
        assert f"{SIGNS[e.support_level]} <b>{e.support_level}</b>" in row
        weight = e.criterion.importance
        assert weight and f"{DOTS[weight]} {weight}" in row
        assert ("“" in row) == (e.quote is not None)
        assert ("not in the patient's words" in unescape(row)) == (e.quote_occurs is False)
    text = Seen(page).text
    for part in ("3 supported, 2 missing, 1 contradicted", "62 out of 100", f"“{NASTY}”"):
        assert part in text, part
    failed = Seen(BLOCKS["failed"]).text
    assert WHY in failed and failed.count("not assessed") == len(ROWS)
    assert "model's score: none" in failed and WHY in BLOCKS["no score"]


def test_a_transcript_is_shorter_where_the_consultation_was_says_why_and_escapes_all():
    said = {"ask": "[Do you <b>swim</b>?]", "patient": "[It is influenza]"}
    run = asked(1, model=Talker(QUESTIONS, replies=said))
    (c,) = run.consultations["fake"]
    wide = run.confidence.pivot(index="level", columns="method", values="confidence")
    rows = run.answers.set_index("level")[["answer", "correct"]].join(wide).loc[: len(c.turns)]
    page = show.transcript(c, rows.reset_index(), ["ce"])
    assert len(rows) == 2 and "asked again" in page
    assert "named the diagnosis" in page and "It is influenza" not in page
    assert "&lt;b&gt;swim" in page and "<b>swim" not in page


def test_every_word_of_a_model_or_patient_is_escaped():
    patient = {"age": 40, "sex": "female", "allergies": ("penicillin", NASTY)}
    statements = (Statement(f"Doctor: Any fever?\nPatient: {NASTY}"),)
    case = Case("case-7", "made", statements, "Influenza", ("Influenza",), patient)
    votes, mark = (NASTY, "Flu", "Flu"), Mark("UNSAFE", NASTY, False, NASTY)
    opinions = tuple(Opinion("m", i, NASTY, vote, "") for i, vote in enumerate(votes))
    one = Checked(
        model="m",
        configuration="panel of 3",
        n_doctors=3,
        view=View(case, 100, statements),
        panel=Panel(opinions, votes, NASTY, (), (0.4,) * 3),
        medical_cosines=None,
        proposed=Proposed(Plan((Prescription(*[NASTY] * 3),), (NASTY,))),
        review=Review((mark,), (Mark(None, missing=NASTY),)),
        rules=Review((mark,), (mark,)),
        correct=1.0,
    )
    page = show.chart_review(one)
    assert "<script" not in page and page.count("&lt;script&gt;") > 12
