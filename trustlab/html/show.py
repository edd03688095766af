"""What one answer looks like, as HTML for notebooks: the dialogue, tokens, samples, replies, passages and the evidence.

Every block stands alone: inline styles, its own background and text colour (so light and dark themes both do), no script
and nothing from elsewhere. Words of a model or a patient are escaped. Sense never hangs on colour alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from trustlab.confidence import METHODS
from trustlab.confidence.others import weighted_support
from trustlab.html.blocks import (
    GREY,
    INK,
    PAPER,
    SHADE,
    WARNING,
    Html,
    banner,
    bar,
    block,
    coloured,
    escaped,
    html_cell,
    html_row,
    html_table,
    note,
    preformatted,
    quoted,
    tint,
    turn_block,
    turns_of,
)
from trustlab.knowledge import normalise
from trustlab.parsing import no_answer, true_or_false
from trustlab.paths import NOTICE
from trustlab.records import Assessment, Evidence, Generation, Reply, Statement
from trustlab.retrieval import Passage

DEEPEST = 0.75
"""Share of ``SHADE`` at probability 1: dark text stays legible on it."""


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


def dialogue(statements: Iterable[Statement | str]) -> Html:
    """Doctor's and patient's turns, told apart by side, colour and name; any other sentence as a plain paragraph."""
    turns = [turn for statement in statements for turn in turns_of(str(statement))]
    return block(
        "".join(turn_block(speaker, words) for speaker, words in turns)
        or note("Nothing has been said yet.")
    )


def tokens(reply: Reply, n_alternatives: int = 3) -> Html:
    """The diagnosis's tokens as boxes, darker the more probable, each with its probability and the best alternatives."""
    if reply.text is None:
        return block(banner(f"No diagnosis: {reply.missing or 'no reply'}"))
    trace = reply.trace
    if trace is None or not trace.tokens:
        return block(
            f"<p style='margin:0 0 4px'><b>{escaped(reply.text)}</b></p>"
            + note("The model gave no token statistics.")
        )
    probabilities = (
        [None] * len(trace)
        if trace.logprobs is None
        else [float(p) for p in np.exp(trace.logprobs)]
    )
    others = trace.alternatives or ((),) * len(trace)
    boxes = [
        _token(token, p, [(t, lp) for t, lp in best if t != token][:n_alternatives])
        for token, p, best in zip(trace.tokens, probabilities, others, strict=True)
    ]
    remarks = ["The model gave no token probabilities."]
    if trace.logprobs is not None:
        remarks = [
            "Below each token: its probability, given the tokens before it; the darker, the more probable."
        ]
        if n_alternatives and trace.alternatives is None:
            remarks.append("The model gave no alternatives.")
        elif n_alternatives:
            remarks.append("Then the most probable tokens in its place.")
    if any(" " in token for token in trace.tokens):
        remarks.append("␣ is a space.")
    return block("".join(boxes) + note(" ".join(remarks)))


def votes(samples: Sequence[Reply] | None) -> Html:
    """The distinct diagnoses among the samples with their counts, most frequent first, as bars."""
    readable = [reply.text for reply in samples or () if reply.text is not None]
    lost = len(samples or ()) - len(readable)
    unread = (
        note(f"{lost} of {len(samples or ())} samples could not be read and do not count.")
        if lost
        else ""
    )
    if not readable:
        return block(banner("No readable samples." if samples else "No samples.") + unread)
    counts = Counter(normalise(text) for text in readable)
    spellings = {
        key: Counter(t for t in readable if normalise(t) == key).most_common(1)[0][0]
        for key in counts
    }
    rows = [
        html_row(
            html_cell(escaped(spellings[key])),
            html_cell(bar(count / len(readable)), "width:45%"),
            html_cell(f"{count} of {len(readable)}", "white-space:nowrap"),
        )
        for key, count in counts.most_common()
    ]
    return block(html_table(["Sampled diagnosis", "", "Samples"], rows) + unread)


def replies(generation: Generation) -> Html:
    """What the model replied when asked how confident it is, as it came, beside the number read from it."""
    rows = []
    for name, what in (
        ("ce", "CE"),
        ("cot_ce", "CoT-CE"),
        ("topk_ce", "Top-k CE"),
        ("p_true", "P(True)"),
    ):
        came = generation.probes.get(name) or ()
        raw = _counted(came) if name == "p_true" else "\n".join(_raw(reply) for reply in came)
        box = preformatted(raw) if came else coloured("no reply", GREY)
        if name == "p_true" and came:
            answers = [reply.text for reply in came if not no_answer(reply)]
            readable = sum(true_or_false(text) is not None for text in answers)
            box += coloured(f"{readable} of {len(came)} are True or False", GREY)
        value, missing, _ = METHODS[name].evaluate(generation)
        read = coloured(f"missing: {missing}", WARNING) if missing else f"<b>{value:.2f}</b>"
        rows.append(
            html_row(
                html_cell(f"<b>{escaped(what)}</b>", "white-space:nowrap"),
                html_cell(box),
                html_cell(read, "width:24%"),
            )
        )
    return block(html_table(["Method", "Reply as it came", "Number read from it (0 to 1)"], rows))


def passages(passages: Sequence[Passage], n: int = 5) -> Html:
    """Title and text of the first ``n`` passages, in their order; the rest is folded away."""
    shown = [
        f"<p style='margin:0 0 8px;color:{INK}'><b>{i}. {escaped(p.title)}</b><br>{escaped(p.content)}</p>"
        for i, p in enumerate(passages, 1)
    ]
    if not shown:
        return block(note("No passages."))
    rest = shown[n:]
    folded = f"<details><summary style='cursor:pointer;color:{GREY}'>{len(rest)} more</summary>{''.join(rest)}</details>"
    return block("".join(shown[:n]) + (folded if rest else ""))


def evidence(assessment: Assessment) -> Html:
    """MedConf's table: each criterion, how important it is, whether the patient's words bear it out, and which words.

    Without a table (an ablation, or a step that failed) what there is: the profile, the prose, the reasoning, the score.
    """
    a = assessment
    parts = [
        f"<p style='margin:0 0 6px;font-size:15px;color:{INK}'>Evidence for <b>{escaped(a.diagnosis)}</b></p>"
    ]
    if a.missing:
        parts.append(banner(f"{NO_VALUE}: {a.missing}"))
    if a.evidence:
        parts.append(note(legend()))
    if rows := judged(a):
        weighed = any(e.criterion.importance for e, _ in rows)
        heads = ["#", "Criterion", *(["Importance"] if weighed else []), "Verdict", "Quotation"]
        parts.append(html_table(heads, [_evidence_row(e, verdict, weighed) for e, verdict in rows]))
    elif a.prose:
        parts.append(quoted("What a patient with it would tell or have", a.prose))
    if a.reasoning:
        parts.append(quoted("The model's reasoning", a.reasoning))
    parts.append(
        f"<p style='margin:8px 0 0;color:{INK}'>{' &nbsp;·&nbsp; '.join(map(escaped, summary(a)))}</p>"
    )
    parts.append(f"<p style='margin:6px 0 0;font-size:11px;color:{GREY}'>{escaped(NOTICE)}</p>")
    return block("".join(parts))


def judged(assessment: Assessment) -> list[tuple[Evidence, Verdict]]:
    """The rows of the evidence table; criteria of a profile that was never held against the patient are not assessed."""
    if assessment.evidence:
        return [(e, VERDICTS[e.support_level]) for e in assessment.evidence]
    return [(Evidence(c, "missing"), UNJUDGED) for c in assessment.profile]


def legend() -> str:
    """What the verdicts mean, in one line."""
    return " · ".join(f"{v.symbol} {v.word}: {v.meaning}" for v in VERDICTS.values())


def summary(assessment: Assessment) -> list[str]:
    """What the evidence comes to: counts, scores, whether the model's own summary agrees, and the passages behind it."""
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
    if a.passages or a.n_dropped:
        dropped = f", {a.n_dropped} more did not fit" if a.n_dropped else ", none dropped"
        parts.append(f"passages shown: {len(a.passages)}{dropped}")
    else:
        parts.append("no passages shown")
    return parts


def quotation(evidence: Evidence) -> tuple[str, str]:
    """The quotation in quotation marks ('' where there is none), and a warning where it is not the patient's."""
    if not evidence.quote:
        return "", ""
    return f"“{evidence.quote}”", f"⚠ {NOT_SAID}" if evidence.quote_occurs is False else ""


def importance(evidence: Evidence) -> str:
    """Dots and the word; '' where the profile has no importance."""
    word = evidence.criterion.importance
    return f"{DOTS[word]} {word}" if word else ""


def visible(token: str) -> str:
    """A token with its spaces and line breaks made visible; part of a character's bytes has no text of its own."""
    return token.replace(" ", "␣").replace("\n", "↵") or "(part)"


def _token(token: str, probability: float | None, others: list[tuple[str, float]]) -> str:
    back = PAPER if probability is None else tint(SHADE, DEEPEST * probability)
    box = f"border:1px solid #6E6E6E;border-radius:3px;padding:3px 8px;background:{back};color:{INK};white-space:pre-wrap"
    number = "" if probability is None else f"<div><b>{probability:.2f}</b></div>"
    rest = "".join(
        f"<div style='color:{GREY};font-size:12px'>{escaped(visible(t))} {np.exp(lp):.2f}</div>"
        for t, lp in others
    )
    place = "display:inline-block;max-width:100%;vertical-align:top;text-align:center;margin:0 4px 6px 0;break-inside:avoid"
    return f"<div style='{place}'><div style='{box};font-family:monospace'>{escaped(visible(token))}</div>{number}{rest}</div>"


def _evidence_row(evidence: Evidence, verdict: Verdict, weighed: bool) -> str:
    quote, warning = quotation(evidence)
    said = escaped(quote) or coloured("–", GREY)
    if warning:
        said += f"<br><b>{coloured(warning, WARNING)}</b>"
    back = f"background:{tint(verdict.colour, 0.22)};border-left:5px solid {verdict.colour};white-space:nowrap"
    return html_row(
        html_cell(str(evidence.criterion.id), f"color:{GREY}"),
        html_cell(escaped(evidence.criterion.description)),
        *([html_cell(escaped(importance(evidence)), "white-space:nowrap")] if weighed else []),
        html_cell(f"{verdict.symbol} <b>{verdict.word}</b>", back),
        html_cell(said, "width:38%"),
    )


def _counted(came: Sequence[Reply]) -> str:
    """How often each reply came, in the order of their first coming."""
    return "\n".join(f"{n} × {text}" for text, n in Counter(map(_raw, came)).items())


def _raw(reply: Reply) -> str:
    text = reply.text if reply.raw is None else reply.raw
    return f"(no reply: {reply.missing or 'nothing came'})" if text is None else text
