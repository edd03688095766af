"""Shows an answer, its evidence, or a consultation within a notebook.

Every page stands alone, without script; templates escape every word of a model, patient or file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, FunctionLoader, StrictUndefined

from trustlab.agents.consultation import Consultation
from trustlab.agents.review import Checked
from trustlab.agents.safety_table import known_items
from trustlab.confidence import METHODS
from trustlab.confidence.others import weighted_support
from trustlab.confidence.registry import label
from trustlab.confidence.verbalized import shares
from trustlab.knowledge.chart import chart_of, chart_text
from trustlab.paths import NOTICE
from trustlab.records import Assessment, Generation, Reply, Statement, normalise
from trustlab.retrieval import Passage

GREY, WARNING = "#5A5A5A", "#8A3C00"
COLOURS = {"INK": "#222222", "GREY": GREY, "LINE": "#D0D0D0", "PAPER": "#FFFFFF"}
COLOURS |= {"WARNING": WARNING, "SHADE": "#0072B2"}
_TAG = re.compile(r"\{[%{#].*?[%}#]\}", re.DOTALL)


class Html(str):
    """HTML that a notebook renders and that a template inserts unchanged."""

    def _repr_html_(self) -> str:
        return str(self)

    __html__ = _repr_html_

    def __repr__(self) -> str:
        return f"<HTML, {len(self):,} characters>"


def render(page: str, **values: Any) -> Html:
    """The filled-in template ``page``; every value that is not HTML already is escaped."""
    return Html(_templates().get_template(f"{page}.html").render(values))


@lru_cache
def _templates() -> Environment:
    made = Environment(loader=FunctionLoader(_template), autoescape=True, undefined=StrictUndefined)
    functions = {f.__name__: f for f in (graded, label, summary, tint, turns_of)}
    made.globals.update(**COLOURS, **functions, NOTICE=NOTICE)
    made.tests["missing"] = pd.isna
    return made


def _template(name: str) -> str:
    """A template's text without line breaks and indents, which are for its reader."""
    text = files("trustlab.reports.html").joinpath("templates", name).read_text(encoding="utf-8")
    return re.sub(r"\s*\n\s*", "", _TAG.sub(lambda tag: " ".join(tag[0].split()), text))


def tint(colour: str, share: float) -> str:
    """``colour`` so thin that ``share`` of it is seen on white paper."""
    return f"{colour}{round(255 * share):02X}"


def turns_of(text: str) -> list[tuple[str, str]]:
    """(speaker, words) of each turn; a line without a name continues the turn before it."""
    turns: list[tuple[str, str]] = []
    for line in text.splitlines():
        found = re.match(r"(Doctor|Patient):\s*(.*)", line)
        if found or not turns:
            turns.append((found[1], found[2]) if found else ("", line))
        else:
            turns[-1] = (turns[-1][0], f"{turns[-1][1]}\n{line}")
    return turns


def graded(correct: float) -> tuple[str, str]:
    """Words and colour of a right, a wrong and an ungraded diagnosis."""
    if pd.isna(correct):
        return "? not judged", GREY
    return ("✓ right", "#006B4A") if correct == 1 else ("✗ wrong", WARNING)


# One answer


def dialogue(statements: Iterable[Statement | str]) -> Html:
    """Doctor's and patient's turns, which differ in side, colour and name; other text is plain."""
    return render("dialogue", told=list(map(str, statements)))


def tokens(reply: Reply, n_alternatives: int = 3) -> Html:
    """The diagnosis's tokens as boxes with their best alternatives; darker is more probable."""
    boxes, trace = [], reply.trace
    if trace is not None and trace.tokens:
        n = len(trace)
        known = [None] * n if trace.logprobs is None else np.exp(trace.logprobs).tolist()
        each = zip(trace.tokens, known, trace.alternatives or ((),) * n, strict=True)
        for token, prob, best in each:
            others = [(other, float(np.exp(of))) for other, of in best if other != token]
            boxes.append((token, prob, others[:n_alternatives]))
    return render("tokens", reply=reply, trace=trace, boxes=boxes, n=n_alternatives)


def votes(samples: Sequence[Reply] | None) -> Html:
    """Bars of the distinct diagnoses among the samples with their counts, most frequent first."""
    n, readable = len(samples or ()), [r.text for r in samples or () if r.text is not None]
    spellings: dict[str, Counter[str]] = {}
    for text in readable:
        spellings.setdefault(normalise(text), Counter())[text] += 1
    counts = [(of.most_common(1)[0][0], of.total()) for of in spellings.values()]
    counts.sort(key=lambda count: -count[1])
    return render("votes", counts=counts, n=n, lost=n - len(readable))


def replies(generation: Generation) -> Html:
    """The model's unchanged replies when asked how sure it is, beside the number read from them."""
    methods, usual = [], ("ce", "cot_ce", "topk_ce", "p_true")
    for name in dict.fromkeys((*usual, *generation.probes)):
        came = generation.probes.get(name) or ()
        lines, remark = [_raw(reply) for reply in came], ""
        value, missing, _ = METHODS[name].evaluate(generation)
        if name == "p_true" and came:
            lines = [f"{n} × {text}" for text, n in Counter(lines).items()]
            readable = sum(reply.text is not None for reply in came)
            remark = f"{readable} of {len(came)} are True or False"
        elif name not in usual and not missing:
            lines = [f"{text}: {x:.3f}" for text, x in shares(generation, name).items()]
            remark = "texts that were given, with their shares of the likelihood"
        methods.append((label(name), "\n".join(lines) if came else None, remark, value, missing))
    return render("replies", methods=methods)


def _raw(reply: Reply) -> str:
    text = reply.text if reply.raw is None else reply.raw
    return f"(no reply: {reply.missing or 'nothing came'})" if text is None else text


def passages(passages: Sequence[Passage], n: int = 5) -> Html:
    """Title and text of the first ``n`` passages, in their order; the rest is folded away."""
    return render("passages", passages=passages, n=n)


def evidence(assessment: Assessment) -> Html:
    """MedConf's table: each criterion, its importance, the verdict, and the words that show it.
    Without a table (an ablation, or a failed step): profile, prose, reasoning, score."""
    return render("evidence", a=assessment)


def evidence_beside(assessments: Mapping[str, Assessment]) -> Html:
    """MedConf's tables of several patients or models side by side, each under its title: criteria
    (where their words are known), importance and verdict; counts and scores are below."""
    return render("beside", assessments=assessments)


def summary(a: Assessment) -> list[str]:
    """Counts, scores, whether the model's own summary agrees, and the passages behind them."""
    parts = [f"model's score: {'none' if a.score is None else f'{a.score:g} out of 100'}"]
    if a.evidence:
        counts = Counter(e.support_level for e in a.evidence)
        levels = ("supported", "missing", "contradicted")
        parts.insert(0, ", ".join(f"{counts[level]} {level}" for level in levels))
        parts.append(f"fixed weights (medconf_weighted): {weighted_support(a.evidence):.2f}")
        agrees = f"{'agrees' if a.summary_agrees else 'does not agree'} with its verdicts"
        parts.append(f"model's own summary: {'none' if a.summary_agrees is None else agrees}")
    if a.is_baseless:
        parts.append("sure of what nothing supports")
    if not a.keyword_read:
        parts.append("no keyword could be read: the diagnosis stood in")
    dropped = f"{a.n_dropped} more did not fit" if a.n_dropped else "none dropped"
    shown = f"passages shown: {len(a.passages)}, {dropped}"
    return [*parts, shown if a.passages or a.n_dropped else "no passages shown"]


# A consultation, a chart review


def transcript(consultation: Consultation, rows: pd.DataFrame, methods: Sequence[str]) -> Html:
    """The dialogue, and after each turn the diagnosis with the confidence of each of ``methods``.
    ``rows``: level, answer, correct and a column for each method; a row for each level reached."""
    states = rows.set_index("level").to_dict("index")
    return render("transcript", consultation=consultation, states=states, methods=methods)


def chart_review(checked: Checked) -> Html:
    """Chart, words, doctors, vote, plan and marks of one configuration and case."""
    known = known_items(checked.proposed.plan)
    return render(
        "chart_review",
        checked=checked,
        case=checked.view.case,
        chart=chart_text(chart_of(checked.view.case, checked.view.statements)),
        cosines=checked.panel.cosines or [None] * checked.n_doctors,
        votes=Counter(vote for vote in checked.panel.votes if vote is not None),
        known=dict(zip(("prescriptions", "tests"), known, strict=True)),
    )


OBJECTIONS = ("UNSAFE", "SAFE WITH CAUTION", "RISKY", "REDUNDANT")


def worth_reading(checked: Sequence[Checked], model: str) -> Checked:
    """The case of ``model`` that shows most: doctors who differ, a plan, objections to it.
    Panels come before single doctors, then the first one. ``ValueError``: ``model`` has none."""
    if mine := [c for c in checked if c.model == model]:
        return max(mine, key=_worth)
    known = list(dict.fromkeys(c.model for c in checked))
    raise ValueError(f"nothing was asked of {model!r}; there are {known}")


def _worth(checked: Checked) -> tuple[int, ...]:
    by_rules, by_review = (
        [mark.verdict in OBJECTIONS for mark in (*of.prescriptions, *of.tests)] if of else []
        for of in (checked.rules, checked.review)
    )
    return (
        bool(by_rules),
        checked.n_doctors > 1,
        any(by_rules),
        len(set(checked.panel.votes) - {None}) > 1,
        checked.review is not None and by_rules != by_review,
        any(by_review),
        sum(bool(o.thinking and o.diagnosis) for o in checked.panel.opinions),
    )
