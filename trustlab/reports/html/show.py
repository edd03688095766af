"""Shows an answer, its evidence, or a consultation within a notebook.

Every page stands alone, without script; templates escape every word of a model, patient or file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jinja2 import Environment, FunctionLoader, StrictUndefined

from trustlab.agents.consultation import Consultation
from trustlab.agents.review import Checked, Review
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
    templates = Environment(
        loader=FunctionLoader(_template), autoescape=True, undefined=StrictUndefined
    )
    functions = {f.__name__: f for f in (graded, label, summary, tint, turns_of)}
    templates.globals.update(**COLOURS, **functions, NOTICE=NOTICE)
    templates.tests["missing"] = pd.isna
    return templates


def _template(name: str) -> str:
    """A template's text without line breaks and indents, which are for its reader."""
    text = (
        files("trustlab.reports.html")
        .joinpath("templates", name)
        .read_text(encoding="utf-8")
    )
    return re.sub(r"\s*\n\s*", "", _TAG.sub(lambda tag: " ".join(tag[0].split()), text))


def tint(colour: str, share: float) -> str:
    """``colour`` so thin that ``share`` of it is seen on white paper."""
    return f"{colour}{round(255 * share):02X}"


def turns_of(text: str) -> list[tuple[str, str]]:
    """(speaker, words) of each turn; a line without a name continues the turn before it."""
    turns: list[tuple[str, str]] = []
    for line in text.splitlines():
        match = re.match(r"(Doctor|Patient):\s*(.*)", line)
        if match:
            speaker, words = match.groups()
            turns.append((speaker, words))
        elif turns:
            speaker, words = turns[-1]
            turns[-1] = (speaker, f"{words}\n{line}")
        else:
            turns.append(("", line))
    return turns


def graded(correct: float) -> tuple[str, str]:
    """Words and colour of a right, a wrong and an ungraded diagnosis."""
    if pd.isna(correct):
        return "? not judged", GREY
    return ("✓ right", "#006B4A") if correct == 1 else ("✗ wrong", WARNING)


# One answer


def dialogue(statements: Iterable[Statement | str]) -> Html:
    """Doctor's and patient's turns, which differ in side, colour and name; other text is plain."""
    return render("dialogue", statements=list(map(str, statements)))


def tokens(reply: Reply, n_alternatives: int = 3) -> Html:
    """The diagnosis's tokens as boxes with their best alternatives; darker is more probable."""
    trace = reply.trace
    boxes = []
    if trace is not None and trace.tokens:
        n_tokens = len(trace)
        probs = [None] * n_tokens
        if trace.logprobs is not None:
            probs = np.exp(trace.logprobs).tolist()
        alternatives = trace.alternatives or ((),) * n_tokens
        for token, prob, best in zip(trace.tokens, probs, alternatives, strict=True):
            others = [
                (other, float(np.exp(logprob)))
                for other, logprob in best
                if other != token
            ]
            boxes.append((token, prob, others[:n_alternatives]))
    return render("tokens", reply=reply, trace=trace, boxes=boxes, n=n_alternatives)


def votes(samples: Sequence[Reply] | None) -> Html:
    """Bars of the distinct diagnoses among the samples with their counts, most frequent first."""
    texts = [reply.text for reply in samples or ()]
    readable = [text for text in texts if text is not None]
    spellings: dict[str, Counter[str]] = {}
    for text in readable:
        spellings.setdefault(normalise(text), Counter())[text] += 1
    counts = []
    for same in spellings.values():
        [(commonest, _)] = same.most_common(1)
        counts.append((commonest, same.total()))
    counts.sort(key=lambda count: -count[1])
    n = len(texts)
    lost = n - len(readable)
    return render("votes", counts=counts, n=n, lost=lost)


USUAL = ("ce", "cot_ce", "topk_ce", "p_true")
"""Methods whose replies a page shows even where there are none."""


class MethodReplies(NamedTuple):
    """What a page shows of the replies to a method's question, and the number read from them."""

    label: str
    words: str | None
    remark: str
    value: float
    missing: str


def replies(generation: Generation) -> Html:
    """The model's unchanged replies when asked how sure it is, beside the number read from them."""
    names = dict.fromkeys((*USUAL, *generation.probes))
    methods = [_replies_to(name, generation) for name in names]
    return render("replies", methods=methods)


def _replies_to(name: str, generation: Generation) -> MethodReplies:
    value, missing, _ = METHODS[name].evaluate(generation)
    probe_replies = generation.probes.get(name) or ()
    lines = [_raw(reply) for reply in probe_replies]
    remark = ""
    if name == "p_true" and probe_replies:
        counts = Counter(lines)
        lines = [f"{n} × {text}" for text, n in counts.items()]
        n_readable = sum(reply.text is not None for reply in probe_replies)
        remark = f"{n_readable} of {len(probe_replies)} are True or False"
    elif name not in USUAL and not missing:
        likelihoods = shares(generation, name)
        lines = [f"{text}: {share:.3f}" for text, share in likelihoods.items()]
        remark = "texts that were given, with their shares of the likelihood"
    words = None
    if probe_replies:
        words = "\n".join(lines)
    return MethodReplies(label(name), words, remark, value, missing)


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
    parts = [
        f"model's score: {'none' if a.score is None else f'{a.score:g} out of 100'}"
    ]
    if a.evidence:
        counts = Counter(e.support_level for e in a.evidence)
        levels = ("supported", "missing", "contradicted")
        parts.insert(0, ", ".join(f"{counts[level]} {level}" for level in levels))
        parts.append(
            f"fixed weights (medconf_weighted): {weighted_support(a.evidence):.2f}"
        )
        agrees = (
            f"{'agrees' if a.summary_agrees else 'does not agree'} with its verdicts"
        )
        parts.append(
            f"model's own summary: {'none' if a.summary_agrees is None else agrees}"
        )
    if a.is_baseless:
        parts.append("sure of what nothing supports")
    if not a.keyword_read:
        parts.append("no keyword could be read: the diagnosis stood in")
    dropped = f"{a.n_dropped} more did not fit" if a.n_dropped else "none dropped"
    shown = f"passages shown: {len(a.passages)}, {dropped}"
    return [*parts, shown if a.passages or a.n_dropped else "no passages shown"]


# A consultation, a chart review


def transcript(
    consultation: Consultation, rows: pd.DataFrame, methods: Sequence[str]
) -> Html:
    """The dialogue, and after each turn the diagnosis with the confidence of each of ``methods``.
    ``rows``: level, answer, correct and a column for each method; a row for each level reached."""
    states = rows.set_index("level").to_dict("index")
    return render(
        "transcript", consultation=consultation, states=states, methods=methods
    )


def chart_review(checked: Checked) -> Html:
    """Chart, words, doctors, vote, plan and marks of one configuration and case."""
    in_table = known_items(checked.proposed.plan)
    return render(
        "chart_review",
        checked=checked,
        case=checked.view.case,
        chart=chart_text(chart_of(checked.view.case, checked.view.statements)),
        cosines=checked.panel.cosines or [None] * checked.n_doctors,
        votes=Counter(vote for vote in checked.panel.votes if vote is not None),
        known=dict(zip(("prescriptions", "tests"), in_table, strict=True)),
    )


OBJECTIONS = ("UNSAFE", "SAFE WITH CAUTION", "RISKY", "REDUNDANT")


def worth_reading(checked: Sequence[Checked], model: str) -> Checked:
    """The case of ``model`` that shows most: doctors who differ, a plan, objections to it.
    Panels come before single doctors, then the first one. ``ValueError``: ``model`` has none."""
    of_model = [review for review in checked if review.model == model]
    if of_model:
        return max(of_model, key=_worth)
    models = dict.fromkeys(review.model for review in checked)
    raise ValueError(f"nothing was asked of {model!r}; there are {list(models)}")


def _worth(checked: Checked) -> tuple[int, ...]:
    by_rules = _objections(checked.rules)
    by_review = _objections(checked.review)
    diagnoses = set(checked.panel.votes) - {None}
    opinions = checked.panel.opinions
    return (
        bool(by_rules),
        checked.n_doctors > 1,
        any(by_rules),
        len(diagnoses) > 1,
        checked.review is not None and by_rules != by_review,
        any(by_review),
        sum(bool(opinion.thinking and opinion.diagnosis) for opinion in opinions),
    )


def _objections(review: Review | None) -> list[bool]:
    """Whether each prescription and test of a plan is objected to; empty without a review."""
    if not review:
        return []
    marks = (*review.prescriptions, *review.tests)
    return [mark.verdict in OBJECTIONS for mark in marks]
