"""One answer as HTML and as figures: every word escaped, every verdict told without colour, nothing
clipped."""

import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pytest
from each import each

from tests.generations import FULL, generation, told
from trustlab.html import show
from trustlab.html.prompts import prompts_shown
from trustlab.paths import NOTICE
from trustlab.prompts import about, template
from trustlab.records import Assessment, Criterion, Evidence, Reply, Statement, TokenTrace
from trustlab.retrieval import Passage

NASTY = "<script>alert('x')</script> & \"pain\" $5"
VOID = {"br"}
QUOTE = "it came on in the night and it has not let go of me since then"
VERDICTS = {
    "supported": ("#009E73", "✓"),
    "missing": ("#56B4E9", "?"),
    "contradicted": ("#D55E00", "✗"),
}
DOTS = {"strong": "●●●", "moderate": "●●", "weak": "●"}
ROWS = [
    (
        "Sudden sharp pain that gets worse when breathing in deeply",
        "strong",
        "supported",
        QUOTE,
        True,
    ),
    ("Shortness of breath", "strong", "supported", NASTY, True),
    ("Swollen calf on one side", "strong", "missing", None, None),
    (
        "Recent operation, long journey or weeks of lying in bed",
        "moderate",
        "supported",
        QUOTE,
        False,
    ),
    ("Coughing up blood", "moderate", "contradicted", "no blood, " + QUOTE, True),
    ("Fast heartbeat", "moderate", "missing", None, None),
    ("Fainting", "weak", "missing", None, None),
    ("Contraceptive pill or hormones", "weak", "supported", QUOTE, True),
    ("Relative with a clot in a vein", "weak", "missing", None, None),
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
NO_SCORE = replace(WHOLE, reasoning=None, score=None, missing=WHY)
EARLY = Assessment("Flu", missing="keyword: none in square brackets")
UNWEIGHED = replace(
    WHOLE,
    evidence=tuple(replace(e, criterion=replace(e.criterion, importance=None)) for e in EVIDENCE),
)
PROSE = Assessment(
    "Croup",
    passages=("a",),
    prose="A barking cough, a hoarse voice.",
    reasoning="It fits.",
    score=40.0,
)
STRAIGHT = Assessment(
    "Croup", passages=("a",), reasoning="It fits what the passages say.", score=55.5
)
ENDLESS = replace(
    WHOLE,
    evidence=(Evidence(Criterion(1, "x" * 300, "weak"), "missing", "$a_1$ " + "y" * 200, True),),
)
WORDLESS = replace(
    WHOLE,
    evidence=tuple(replace(e, criterion=replace(e.criterion, description="")) for e in EVIDENCE),
)
ASSESSMENTS = {
    "whole": WHOLE, "failed": FAILED, "no score": NO_SCORE, "early": EARLY, "unweighed": UNWEIGHED,
    "prose": PROSE, "straight": STRAIGHT, "endless words": ENDLESS,
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


class Checked(HTMLParser):
    """Collects the words a reader sees and every tag; fails where tags do not close in order."""

    def __init__(self, page: str):
        super().__init__()
        self.open, self.tags, self.styles, self.words = [], [], [], []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        assert {name for name, _ in attrs} <= {"style", "class", "tabindex"}
        self.styles.append((tag, dict(attrs).get("style") or ""))
        if tag not in VOID:
            self.open.append(tag)

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
    "nasty evidence": show.evidence(
        replace(PROSE, diagnosis=NASTY, prose=NASTY, reasoning=NASTY, missing=NASTY)
    ),
    **{name: show.evidence(a) for name, a in ASSESSMENTS.items()},
    "beside": show.evidence_beside({NASTY: WHOLE, **ASSESSMENTS, "wordless": WORDLESS}),
    "prompts": prompts_shown(["samples", "evidence", "diagnosis"]),
    "no prompts": prompts_shown([]),
}
pytestmark = pytest.mark.usefixtures("house_style")


@each("name", BLOCKS)
def test_a_block_is_escaped_self_contained_and_brings_its_own_colours(name):
    page = BLOCKS[name]._repr_html_()
    seen = Checked(page)
    allowed = {
        "div",
        "p",
        "b",
        "br",
        "span",
        "pre",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "details",
        "summary",
    }
    assert set(seen.tags) <= allowed
    assert "<script" not in page and "url(" not in page and "http" not in page
    for tag, style in seen.styles[:1] + [
        s for s in seen.styles if s[0] in ("td", "th", "pre", "table")
    ]:
        assert "background:" in style and "color:#" in style.replace("background", ""), tag
    assert page.count(NOTICE) == (name in {*ASSESSMENTS, "nasty evidence", "beside"})


@pytest.mark.parametrize(
    "name",
    ["dialogue", "tokens without trace", "no diagnosis", "votes", "replies", "passages", "beside"],
)
def test_words_come_back_as_they_were(name):
    assert NASTY in Checked(BLOCKS[name]).text


def test_tokens_show_probability_and_other_tokens():
    words = Checked(BLOCKS["tokens"]).words
    assert words[:7] == ["␣pul", "0.32", "␣<i> 0.30", "␣Co 0.05", "monary", "0.97", "mo 0.02"]
    assert "↵ 0.01" in words and "␣ is a space." in words[-1]
    assert "␣Co 0.05" not in show.tokens(TRACED, n_alternatives=1)
    assert "gave no alternatives" in show.tokens(Reply("Flu", replace(TRACE, alternatives=None)))
    bare = show.tokens(Reply("Flu", replace(TRACE, logprobs=None, alternatives=None)))
    assert "no token probabilities" in bare and "monary" in bare
    assert "no token statistics" in BLOCKS["tokens without trace"]


def test_votes_merge_spellings_and_leave_out_the_unreadable():
    page = show.votes(told("Flu", "flu.", "Flu", "Croup", None))
    words = Checked(page).words
    assert words[2:6] == ["Flu", "3 of 4", "Croup", "1 of 4"]
    assert "1 of 5 samples could not be read" in words[-1]
    assert "No readable samples" in show.votes(told(None)) and "No samples" in BLOCKS["no votes"]


def test_replies_stand_beside_the_number_read():
    text = Checked(show.replies(FULL)).text
    for part in (
        "[85]",
        "0.85",
        "It fits. [80]",
        "0.80",
        "0.82",
        "2 × True",
        "1 × False",
        "1 × perhaps",
        "0.67",
        "3 of 4",
    ):
        assert part in text, part
    text = Checked(BLOCKS["replies"]).text
    assert "missing: no single number" in text and "missing: probes.cot_ce not collected" in text
    cut = generation(
        answer=Reply("Flu"), probes={"cot_ce": (Reply("because", finish="length", raw="because"),)}
    )
    assert "missing: ran out of tokens" in show.replies(cut)
    assert "(no reply: too long)" in show.replies(
        generation(probes={"ce": (Reply(None, missing="too long"),)})
    )


def test_evidence_says_each_verdict_with_symbol_word_and_colour():
    page = show.evidence(WHOLE)
    rows = re.findall(r"<tr .*?</tr>", page)
    assert len(rows) == len(ROWS)
    for row, e in zip(rows, EVIDENCE, strict=True):
        colour, sign = VERDICTS[e.support_level]
        assert colour in row and f"{sign} <b>{e.support_level}</b>" in row
        assert (
            e.criterion.importance
            and f"{DOTS[e.criterion.importance]} {e.criterion.importance}" in row
        )
        assert ("“" in row) == (e.quote is not None)
        assert ("not in the patient's words" in unescape(row)) == (e.quote_occurs is False)
    text = Checked(page).text
    for part in (
        "4 supported, 4 missing, 1 contradicted",
        "62 out of 100",
        "0.39",
        "agrees",
        "shown: 3, 2 more did not fit",
    ):
        assert part in text, part
    assert f"“{NASTY}”" in text


def test_prompts_are_folded_once_each_in_the_order_of_asking():
    page = prompts_shown(["evidence", "samples", "diagnosis", "rephrase_reply", "ask"])
    names = re.findall(r"<summary [^>]*><b>(\w+)</b>", page)
    assert (
        names == ["ask", "diagnosis", "evidence", "rephrase_reply"] and "<details open" not in page
    )
    words = unescape(page)
    for name in names:
        assert about(name) in words and all(part in words for part in template(name))
    assert "@name" in page and "@name" not in prompts_shown(["diagnosis"])
    with pytest.raises(ValueError, match="no prompt 'guess'"):
        prompts_shown(["guess"])


def test_a_missing_assessment_says_why_and_shows_what_there_is():
    failed = Checked(show.evidence(FAILED)).text
    assert (
        WHY in failed
        and failed.count("not assessed") == len(ROWS)
        and "model's score: none" in failed
    )
    assert "supported:" not in failed  # no legend of verdicts that nobody gave
    kept = Checked(show.evidence(NO_SCORE)).text
    assert WHY in kept and "4 supported" in kept and "0.39" in kept
    early = show.evidence(EARLY)
    assert EARLY.missing and EARLY.missing in early and "<table" not in early
