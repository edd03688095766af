"""What notebooks show as HTML: an answer, its evidence, a consultation, a chart review.

Every page stands alone: inline styles, its own background and text colour (so light and dark themes
both do), no script and nothing from elsewhere. The templates escape every word of a model, a
patient or a file. Sense never hangs on colour alone.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jinja2 import Environment, FunctionLoader, StrictUndefined

from trustlab.agents.consultation import CONFIDENT, NO_QUESTION, REPEATS, Consultation
from trustlab.agents.panel import Checked
from trustlab.confidence import METHODS
from trustlab.confidence.others import weighted_support
from trustlab.confidence.registry import label
from trustlab.confidence.verbalized import shares
from trustlab.paths import NOTICE
from trustlab.records import Assessment, Evidence, Generation, Mark, Reply, Statement, normalise
from trustlab.retrieval import Passage
from trustlab.safety.chart import chart_of, chart_text
from trustlab.safety.table import known_items

INK, GREY, LINE, PAPER, WARNING = "#222222", "#5A5A5A", "#D0D0D0", "#FFFFFF", "#8A3C00"
SHADE = "#0072B2"
DEEPEST = 0.75
"""Share of ``SHADE`` at probability 1: dark text stays legible on it."""
_TAG = re.compile(r"\{[%{#].*?[%}#]\}", re.DOTALL)


class Html(str):
    """HTML that a notebook shows as such, and that a template takes as it is."""

    def _repr_html_(self) -> str:
        return str(self)

    __html__ = _repr_html_

    def __repr__(self) -> str:
        return f"<HTML, {len(self):,} characters>"


def render(page: str, **values: Any) -> Html:
    """The template ``page`` filled in; every value is escaped that is not HTML already."""
    return Html(_templates().get_template(f"{page}.html").render(values))


@lru_cache
def _templates() -> Environment:
    made = Environment(loader=FunctionLoader(_template), autoescape=True, undefined=StrictUndefined)
    colours = {"INK": INK, "GREY": GREY, "LINE": LINE, "PAPER": PAPER, "WARNING": WARNING}
    made.globals.update(**colours, SHADE=SHADE, DEEPEST=DEEPEST, NOTICE=NOTICE, tint=tint)
    return made


def _template(name: str) -> str:
    """A template's text without line breaks and indents, which are for its reader."""
    text = files("trustlab.html").joinpath("templates", name).read_text(encoding="utf-8")
    return re.sub(r"\s*\n\s*", "", _TAG.sub(lambda tag: " ".join(tag[0].split()), text))


def tint(colour: str, share: float) -> str:
    """``colour`` mixed with white; ``share`` 0 is white."""
    parts = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(255 + share * (part - 255)):02X}" for part in parts)


class Verdict(NamedTuple):
    """How a support level is shown; ``colour`` is one of Okabe and Ito's."""

    colour: str
    symbol: str
    word: str
    meaning: str


VERDICTS = {
    "supported": Verdict("#009E73", "✓", "supported", "the patient's words show it"),
    "missing": Verdict("#56B4E9", "?", "missing", "nothing is said of it"),
    "contradicted": Verdict("#D55E00", "✗", "contradicted", "the patient's words speak against it"),
}
UNJUDGED = Verdict("#9A9A9A", "–", "not assessed", "the model gave no readable verdict")
DOTS = {"strong": "●●●", "moderate": "●●", "weak": "●"}
NO_VALUE = "MedConf gives no value"
NOT_SAID = "not in the patient's words"
RIGHT, WRONG, FAILED = ("✓ right", "#006B4A"), ("✗ wrong", WARNING), ("? not judged", GREY)


def turns_of(text: str) -> list[tuple[str, str]]:
    """(speaker, words) of each turn; a line without a name goes on where the last left off."""
    turns: list[tuple[str, str]] = []
    for line in text.splitlines():
        found = re.match(r"(Doctor|Patient):\s*(.*)", line)
        if found or not turns:
            turns.append((found[1], found[2]) if found else ("", line))
        else:
            turns[-1] = (turns[-1][0], f"{turns[-1][1]}\n{line}")
    return turns


def _spoken(texts: Iterable[str]) -> list[tuple[str, str]]:
    return [turn for text in texts for turn in turns_of(text)]


# One answer


def dialogue(statements: Iterable[Statement | str]) -> Html:
    """Doctor's and patient's turns, told apart by side, colour and name; other sentences plain."""
    return render("dialogue", spoken=_spoken(map(str, statements)))


def tokens(reply: Reply, n_alternatives: int = 3) -> Html:
    """The diagnosis's tokens as boxes, darker the more probable, with their best alternatives."""
    trace = reply.trace
    boxes, remarks = [], ["The model gave no token probabilities."]
    if trace is not None and trace.tokens:
        n = len(trace)
        known = [None] * n if trace.logprobs is None else np.exp(trace.logprobs).tolist()
        others = trace.alternatives or ((),) * n
        boxes = [
            (visible(token), p, _others(token, best)[:n_alternatives])
            for token, p, best in zip(trace.tokens, known, others, strict=True)
        ]
        if trace.logprobs is not None:
            remarks = ["Below each token: its probability, given the tokens before it; the darker,"]
            remarks.append("the more probable.")
            if n_alternatives and trace.alternatives is None:
                remarks.append("The model gave no alternatives.")
            elif n_alternatives:
                remarks.append("Then the most probable tokens in its place.")
        if any(" " in token for token in trace.tokens):
            remarks.append("␣ is a space.")
    told = {"answer": reply.text, "missing": reply.missing or "no reply", "boxes": boxes}
    return render("tokens", **told, remarks=" ".join(remarks))


def _others(token: str, best: Iterable[tuple[str, float]]) -> list[tuple[str, float]]:
    return [(visible(other), float(np.exp(logprob))) for other, logprob in best if other != token]


def votes(samples: Sequence[Reply] | None) -> Html:
    """The distinct diagnoses among the samples with their counts, most frequent first, as bars."""
    n, readable = len(samples or ()), [r.text for r in samples or () if r.text is not None]
    spellings: dict[str, Counter[str]] = {}
    for text in readable:
        spellings.setdefault(normalise(text), Counter())[text] += 1
    counts = [(told.most_common(1)[0][0], told.total()) for told in spellings.values()]
    counts.sort(key=lambda counted: -counted[1])
    return render("votes", counts=counts, n=n, lost=n - len(readable))


def replies(generation: Generation) -> Html:
    """What the model replied when asked how sure it is, as it came, beside the number read."""
    methods, usual = [], ("ce", "cot_ce", "topk_ce", "p_true")
    for name in (*usual, *(name for name in generation.probes if name not in usual)):
        came = generation.probes.get(name) or ()
        raw, remark = "\n".join(map(_raw, came)), ""
        if name == "p_true" and came:
            raw = "\n".join(f"{n} × {text}" for text, n in Counter(map(_raw, came)).items())
            readable = sum(reply.text is not None for reply in came)
            remark = f"{readable} of {len(came)} are True or False"
        value, missing, _ = METHODS[name].evaluate(generation)
        if name not in usual and not missing:
            raw = "\n".join(f"{text}: {x:.3f}" for text, x in shares(generation, name).items())
            remark = "texts that were given, with their shares of the likelihood"
        told = {"reply": raw if came else None, "remark": remark, "missing": missing}
        methods.append({"label": label(name), "value": value, **told})
    return render("replies", methods=methods)


def _raw(reply: Reply) -> str:
    text = reply.text if reply.raw is None else reply.raw
    return f"(no reply: {reply.missing or 'nothing came'})" if text is None else text


def passages(passages: Sequence[Passage], n: int = 5) -> Html:
    """Title and text of the first ``n`` passages, in their order; the rest is folded away."""
    return render("passages", passages=passages, n=n)


def evidence(assessment: Assessment) -> Html:
    """MedConf's table: each criterion, how important it is, the verdict, and which words show it.

    Without a table (an ablation, or a step that failed) what there is: the profile, the prose, the
    reasoning, the score.
    """
    return render("evidence", **_evidence(assessment))


def _evidence(a: Assessment) -> dict[str, Any]:
    rows = []
    for e, verdict in judged(a):
        quote, wrong = quotation(e)
        c = e.criterion
        look = {"colour": verdict.colour, "symbol": verdict.symbol, "word": verdict.word}
        told = {"id": c.id, "description": c.description, "importance": importance(e)}
        rows.append({**told, **look, "quote": quote, "wrong": wrong})
    return {
        "diagnosis": a.diagnosis,
        "missing": f"{NO_VALUE}: {a.missing}" if a.missing else "",
        "legend": legend() if a.evidence else "",
        "rows": rows,
        "prose": a.prose,
        "reasoning": a.reasoning,
        "summary": summary(a),
    }


def evidence_beside(assessments: Mapping[str, Assessment]) -> Html:
    """MedConf's tables of several patients or models beside each other, each under its title:
    criteria (where their words are known), importance, verdict; counts and scores below."""
    sides = [
        _evidence(a) | {"title": title, "summary": summary(a)[: 3 if a.evidence else 1]}
        for title, a in assessments.items()
    ]
    return render("beside", sides=sides, legend=legend())


def judged(assessment: Assessment) -> list[tuple[Evidence, Verdict]]:
    """The rows of the evidence table; criteria never held against the patient are not assessed."""
    if assessment.evidence:
        return [(e, VERDICTS[e.support_level]) for e in assessment.evidence]
    return [(Evidence(c, "missing"), UNJUDGED) for c in assessment.profile]


def legend() -> str:
    """What the verdicts mean, in one line."""
    return " · ".join(f"{v.symbol} {v.word}: {v.meaning}" for v in VERDICTS.values())


def summary(assessment: Assessment) -> list[str]:
    """Counts, scores, whether the model's own summary agrees, and the passages behind them."""
    a, parts = assessment, []
    if a.evidence:
        counts = Counter(e.support_level for e in a.evidence)
        parts.append(", ".join(f"{counts[level]} {VERDICTS[level].word}" for level in VERDICTS))
    parts.append(
        "model's score: none" if a.score is None else f"model's score: {a.score:g} out of 100"
    )
    if a.evidence:
        parts.append(f"fixed weights (medconf_weighted): {weighted_support(a.evidence):.2f}")
        told = {
            True: "agrees with its verdicts",
            False: "does not agree with its verdicts",
            None: "none",
        }
        parts.append(f"model's own summary: {told[a.summary_agrees]}")
    if a.is_baseless:
        parts.append("sure of what nothing supports")
    if not a.keyword_read:
        parts.append("no keyword could be read: the diagnosis stood in")
    if a.passages or a.n_dropped:
        dropped = f", {a.n_dropped} more did not fit" if a.n_dropped else ", none dropped"
        parts.append(f"passages shown: {len(a.passages)}{dropped}")
    else:
        parts.append("no passages shown")
    return parts


def quotation(evidence: Evidence) -> tuple[str, str]:
    """The quotation in its marks ('' for none), and a warning where it is not the patient's."""
    if not evidence.quote:
        return "", ""
    return f"“{evidence.quote}”", f"⚠ {NOT_SAID}" if evidence.quote_occurs is False else ""


def importance(evidence: Evidence) -> str:
    """Dots and the word; '' where the profile has no importance."""
    word = evidence.criterion.importance
    return f"{DOTS[word]} {word}" if word else ""


def visible(token: str) -> str:
    """A token with spaces and line breaks made visible; part of a character has no own text."""
    return token.replace(" ", "␣").replace("\n", "↵") or "(part)"


# A consultation

KEPT = {
    "volunteered": "the patient wanted to tell more than one fact: only one was spoken",
    "invented": "the patient's words were in no fact: not spoken",
    "leaked": "the patient named the diagnosis: not spoken",
    "out of place": "the patient gave an answer to another question: not spoken",
    "unreadable": "the patient's reply could not be read",
}


def transcript(consultation: Consultation, rows: pd.DataFrame, methods: Sequence[str]) -> Html:
    """What was said, and after each turn the diagnosis with the confidence of each of ``methods``.

    ``rows``: level answer correct, and a column a method, a row a level that was reached.
    """
    states = rows.set_index("level")
    turns = [None, *consultation.turns]
    steps = []
    for level, (said, turn) in enumerate(zip(consultation.statements, turns, strict=True)):
        remark = KEPT.get(turn.said.outcome, "") if turn else ""
        state = _state(states.loc[level], methods) if level in states.index else {"answer": ""}
        steps.append({"spoken": _spoken([said.text]), "remark": remark, **state})
    truth = consultation.case.diagnosis
    return render("transcript", steps=steps, ending=ending(consultation), truth=truth)


def _state(row: Any, methods: Sequence[str]) -> dict[str, Any]:
    numbers = [
        f"{label(m)} {'missing' if pd.isna(row[m]) else format(row[m], '.2f')}" for m in methods
    ]
    answer = row["answer"] if isinstance(row["answer"], str) else "(no readable diagnosis)"
    return {"answer": answer, "graded": graded(row["correct"]), "numbers": " · ".join(numbers)}


def graded(correct: float) -> tuple[str, str]:
    """Words and colour of a right, a wrong and an ungraded diagnosis."""
    return FAILED if pd.isna(correct) else RIGHT if correct == 1 else WRONG


def ending(consultation: Consultation) -> str:
    """Why the consultation ended, in a sentence."""
    n = len(consultation.turns)
    after = f"The consultation ended after {n} question{'' if n == 1 else 's'}: "
    if consultation.ended == REPEATS:
        return f"{after}the doctor asked again what had been asked ({consultation.why})"
    if consultation.ended == NO_QUESTION:
        return f"{after}the doctor asked nothing readable ({consultation.why})."
    if consultation.ended == CONFIDENT:
        return f"{after}the confidence reached the threshold."
    return f"{after}the turn limit."


# A chart review

LOOKS = {
    **dict.fromkeys(("SAFE", "FINE"), ("✓", "#009E73")),
    **dict.fromkeys(("SAFE WITH CAUTION", "REDUNDANT"), ("!", "#E69F00")),
    **dict.fromkeys(("UNSAFE", "RISKY"), ("✗", "#D55E00")),
    **{"UNKNOWN": ("?", "#56B4E9"), None: ("–", "#9A9A9A")},
}
"""Verdict -> its sign and colour."""
UNREADABLE = "UNREADABLE"
NO_PLAN = "There is no plan to review"
NO_REVIEW = "with safety off: not reviewed"
NO_QUOTE = "not in what the reviewer was shown"
NOT_KNOWN = "the table does not know it"


def chart_review(checked: Checked) -> Html:
    """Chart, words, doctors, vote, plan and marks of one configuration and case."""
    case = checked.view.case
    return render(
        "chart_review",
        checked=checked,
        case=case,
        chart=chart_text(chart_of(case, checked.view.statements)),
        spoken=_spoken(s.text for s in checked.view.statements),
        doctors=_opinions(checked),
        vote=vote_words(checked),
        graded=graded(checked.correct),
        items=_items(checked),
        no_plan=NO_PLAN,
    )


def worth_reading(checked: Sequence[Checked], model: str) -> Checked:
    """The case of ``model`` that shows most: doctors who differ, a plan, objections to it.

    The first of the best, panels before single doctors. ``ValueError`` where ``model`` has none.
    """
    mine = [c for c in checked if c.model == model]
    if not mine:
        raise ValueError(
            f"nothing was asked of {model!r}; "
            f"there are {list(dict.fromkeys(c.model for c in checked))}"
        )
    return max(mine, key=_worth)


def vote_words(checked: Checked) -> str:
    """How the doctors voted, in a sentence."""
    counts = Counter(v for v in checked.panel.votes if v is not None)
    if not counts:
        return "no readable diagnosis."
    told = ", ".join(f"{name} {n}" for name, n in counts.most_common())
    lost = checked.n_doctors - counts.total()
    unread = f", unreadable {lost}" if lost else ""
    drawn = " (a tie, drawn by the case's name)" if checked.panel.tied else ""
    return f"{told}{unread}; the diagnosis is {checked.panel.diagnosis}{drawn}."


def _worth(checked: Checked) -> tuple[int, ...]:
    marks = [] if checked.rules is None else [*checked.rules.prescriptions, *checked.rules.tests]
    said = [] if checked.review is None else [*checked.review.prescriptions, *checked.review.tests]
    votes = {v for v in checked.panel.votes if v is not None}
    seen = [m.verdict in ("UNSAFE", "SAFE WITH CAUTION", "RISKY", "REDUNDANT") for m in marks]
    objections = [m.verdict in ("UNSAFE", "SAFE WITH CAUTION", "RISKY", "REDUNDANT") for m in said]
    apart = any(a != b for a, b in zip(seen, objections, strict=True))
    readable = sum(bool(o.thinking and o.diagnosis) for o in checked.panel.opinions)
    return (
        bool(marks),
        checked.n_doctors > 1,
        any(seen),
        len(votes) > 1,
        apart,
        any(objections),
        readable,
    )


def _opinions(checked: Checked) -> list[dict[str, str]]:
    """Of each doctor: the name, the diagnosis with its RDC, the reasoning, what is missing."""
    found = []
    cosines = checked.panel.cosines or (math.nan,) * checked.n_doctors
    for i, (opinion, cosine) in enumerate(zip(checked.panel.opinions, cosines, strict=True), 1):
        fit = "" if math.isnan(cosine) else f" (cosine of reasoning and diagnosis {cosine:.2f})"
        diagnosis = f"{opinion.diagnosis}{fit}" if opinion.diagnosis else "(no readable diagnosis)"
        found.append(
            {
                "name": f"Doctor {i}, {opinion.model}",
                "diagnosis": diagnosis,
                "thinking": opinion.thinking or "(no readable reasoning)",
                "missing": opinion.missing,
            }
        )
    return found


def _items(checked: Checked) -> list[tuple[str, list[tuple[str, dict[str, str], dict[str, str]]]]]:
    """(kind, [what is proposed, the reviewer's mark, the rule check's])."""
    plan, rules = checked.proposed.plan, checked.rules
    if plan is None or rules is None:
        return []
    drugs, tests = known_items(plan)
    prescribed = [str(p) for p in plan.prescriptions]
    review = checked.review
    said = (
        (review.prescriptions, review.tests)
        if review
        else ([None] * len(drugs), [None] * len(tests))
    )
    return [
        ("Prescription", _marks(prescribed, drugs, said[0], rules.prescriptions)),
        ("Test", _marks(plan.tests, tests, said[1], rules.tests)),
    ]


def _marks(
    proposed: Sequence[str],
    known: Sequence[bool],
    said: Sequence[Mark | None],
    rules: Sequence[Mark],
) -> list[tuple[str, dict[str, str], dict[str, str]]]:
    rows = zip(proposed, known, said, rules, strict=False)
    return [(text, _mark(mark, yes), _mark(rule, True)) for text, yes, mark, rule in rows]


def _mark(mark: Mark | None, known: bool) -> dict[str, str]:
    """Verdict with its sign and colour, quotation and reason, and a warning, in words."""
    sign, colour = LOOKS[mark.verdict if mark else None]
    told = {"sign": sign, "colour": colour, "verdict": UNREADABLE, "why": NO_REVIEW, "warning": ""}
    if mark is None:
        return told
    quote = f"“{mark.quote}”" if mark.quote else ""
    why = mark.missing if mark.verdict is None else mark.reason or ""
    wrong = [NO_QUOTE] * (mark.quote_occurs is False) + [NOT_KNOWN] * (not known)
    return told | {
        "verdict": mark.verdict or UNREADABLE,
        "why": " · ".join(filter(None, (quote, why))),
        "warning": f"⚠ {'; '.join(wrong)}" if wrong else "",
    }
