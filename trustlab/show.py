"""What one answer looks like, as HTML for notebooks: the dialogue, tokens, samples, replies, passages and the evidence.

Every block stands alone: inline styles, its own background and text colour (so light and dark themes both do), no script
and nothing from elsewhere. Words of a model or a patient are escaped. Sense never hangs on colour alone.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from trustlab.confidence import METHODS
from trustlab.confidence.medconf import weighted_support
from trustlab.knowledge import normalise
from trustlab.parsing import true_or_false
from trustlab.paths import NOTICE
from trustlab.records import Assessment, Evidence, Generation, Reply, Statement
from trustlab.retrieval import Passage

INK, GREY, LINE, PAPER, WARNING = "#222222", "#5A5A5A", "#D0D0D0", "#FFFFFF", "#8A3C00"
SHADE = "#0072B2"
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


class Html(str):
    """HTML that a notebook shows as such."""

    def _repr_html_(self) -> str:
        return str(self)

    def __repr__(self) -> str:
        return f"<HTML, {len(self):,} characters>"


def dialogue(statements: Iterable[Statement | str]) -> Html:
    """Doctor's and patient's turns, told apart by side, colour and name; any other sentence as a plain paragraph."""
    turns = [turn for statement in statements for turn in _turns(str(statement))]
    return _block("".join(_turn(speaker, words) for speaker, words in turns) or _note("Nothing has been said yet."))


def tokens(reply: Reply, n_alternatives: int = 3) -> Html:
    """The diagnosis's tokens as boxes, darker the more probable, each with its probability and the best alternatives."""
    if reply.text is None:
        return _block(_banner(f"No diagnosis: {reply.missing or 'no reply'}"))
    trace = reply.trace
    if trace is None or not trace.tokens:
        return _block(f"<p style='margin:0 0 4px'><b>{_e(reply.text)}</b></p>" + _note("The model gave no token statistics."))
    probabilities = [None] * len(trace) if trace.logprobs is None else [float(p) for p in np.exp(trace.logprobs)]
    others = trace.alternatives or ((),) * len(trace)
    boxes = [
        _token(token, p, [(t, lp) for t, lp in best if t != token][:n_alternatives])
        for token, p, best in zip(trace.tokens, probabilities, others, strict=True)
    ]
    remarks = ["The model gave no token probabilities."]
    if trace.logprobs is not None:
        remarks = ["Below each token: its probability, given the tokens before it; the darker, the more probable."]
        if n_alternatives and trace.alternatives is None:
            remarks.append("The model gave no alternatives.")
        elif n_alternatives:
            remarks.append("Then the most probable tokens in its place.")
    if any(" " in token for token in trace.tokens):
        remarks.append("␣ is a space.")
    return _block("".join(boxes) + _note(" ".join(remarks)))


def votes(samples: Sequence[Reply] | None) -> Html:
    """The distinct diagnoses among the samples with their counts, most frequent first, as bars."""
    readable = [reply.text for reply in samples or () if reply.text is not None]
    lost = len(samples or ()) - len(readable)
    unread = _note(f"{lost} of {len(samples or ())} samples could not be read and do not count.") if lost else ""
    if not readable:
        return _block(_banner("No readable samples." if samples else "No samples.") + unread)
    counts = Counter(normalise(text) for text in readable)
    spellings = {key: Counter(t for t in readable if normalise(t) == key).most_common(1)[0][0] for key in counts}
    rows = [
        _row(
            _cell(_e(spellings[key])),
            _cell(_bar(count / len(readable)), "width:45%"),
            _cell(f"{count} of {len(readable)}", "white-space:nowrap"),
        )
        for key, count in counts.most_common()
    ]
    return _block(_table(["Sampled diagnosis", "", "Samples"], rows) + unread)


def replies(generation: Generation) -> Html:
    """What the model replied when asked how confident it is, as it came, beside the number read from it."""
    rows = []
    for name, what in (("ce", "CE"), ("cot_ce", "CoT-CE"), ("topk_ce", "Top-k CE"), ("p_true", "P(True)")):
        came = generation.probes.get(name) or ()
        raw = _counted(came) if name == "p_true" else "\n".join(_raw(reply) for reply in came)
        box = _pre(raw) if came else _span("no reply", GREY)
        if name == "p_true" and came:
            readable = sum(true_or_false(reply.text) is not None for reply in came)
            box += _span(f"{readable} of {len(came)} are True or False", GREY)
        elif any(reply.finish == "length" for reply in came):
            box += _span("The reply was cut off.", WARNING)
        value, missing, _ = METHODS[name].evaluate(generation)
        read = _span(f"missing: {missing}", WARNING) if missing else f"<b>{value:.2f}</b>"
        rows.append(_row(_cell(f"<b>{_e(what)}</b>", "white-space:nowrap"), _cell(box), _cell(read, "width:24%")))
    return _block(_table(["Method", "Reply as it came", "Number read from it (0 to 1)"], rows))


def passages(passages: Sequence[Passage], n: int = 5) -> Html:
    """Title and text of the first ``n`` passages, in their order; the rest is folded away."""
    shown = [
        f"<p style='margin:0 0 8px;color:{INK}'><b>{i}. {_e(p.title)}</b><br>{_e(p.content)}</p>"
        for i, p in enumerate(passages, 1)
    ]
    if not shown:
        return _block(_note("No passages."))
    rest = shown[n:]
    folded = f"<details><summary style='cursor:pointer;color:{GREY}'>{len(rest)} more</summary>{''.join(rest)}</details>"
    return _block("".join(shown[:n]) + (folded if rest else ""))


def evidence(assessment: Assessment) -> Html:
    """MedConf's table: each criterion, how important it is, whether the patient's words bear it out, and which words.

    Without a table (an ablation, or a step that failed) what there is: the profile, the prose, the reasoning, the score.
    """
    a = assessment
    parts = [f"<p style='margin:0 0 6px;font-size:15px;color:{INK}'>Evidence for <b>{_e(a.diagnosis)}</b></p>"]
    if a.missing:
        parts.append(_banner(f"{NO_VALUE}: {a.missing}"))
    if a.evidence:
        parts.append(_note(legend()))
    if rows := judged(a):
        weighed = any(e.criterion.importance for e, _ in rows)
        heads = ["#", "Criterion", *(["Importance"] if weighed else []), "Verdict", "Quotation"]
        parts.append(_table(heads, [_evidence_row(e, verdict, weighed) for e, verdict in rows]))
    elif a.prose:
        parts.append(_quoted("What a patient with it would tell or have", a.prose))
    if a.reasoning:
        parts.append(_quoted("The model's reasoning", a.reasoning))
    parts.append(f"<p style='margin:8px 0 0;color:{INK}'>{' &nbsp;·&nbsp; '.join(map(_e, summary(a)))}</p>")
    parts.append(f"<p style='margin:6px 0 0;font-size:11px;color:{GREY}'>{_e(NOTICE)}</p>")
    return _block("".join(parts))


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
    parts.append("model's score: none" if a.score is None else f"model's score: {a.score:g} out of 100")
    if a.evidence:
        parts.append(f"fixed weights (medconf_weighted): {weighted_support(a.evidence):.2f}")
        told = {True: "agrees with its verdicts", False: "does not agree with its verdicts", None: "none"}
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


def tint(colour: str, share: float) -> str:
    """``colour`` mixed with white; ``share`` 0 is white."""
    parts = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(255 + share * (part - 255)):02X}" for part in parts)


def visible(token: str) -> str:
    """A token with its spaces and line breaks made visible; part of a character's bytes has no text of its own."""
    return token.replace(" ", "␣").replace("\n", "↵") or "(part)"


def _turns(text: str) -> list[tuple[str, str]]:
    """(speaker, words) of each turn; a line without a name goes on where the one before left off."""
    turns: list[tuple[str, str]] = []
    for line in text.splitlines():
        found = re.match(r"(Doctor|Patient):\s*(.*)", line)
        if found or not turns:
            turns.append((found[1], found[2]) if found else ("", line))
        else:
            turns[-1] = (turns[-1][0], f"{turns[-1][1]}\n{line}")
    return turns


def _turn(speaker: str, words: str) -> str:
    said = _e(words).replace("\n", "<br>")
    if not speaker:
        return f"<p style='margin:6px 0;color:{INK}'>{said}</p>"
    colour, side = ("#0072B2", "margin:4px 12% 4px 0") if speaker == "Doctor" else ("#E69F00", "margin:4px 0 4px 12%")
    look = f"padding:5px 10px;border-left:4px solid {colour};background:{tint(colour, 0.12)};color:{INK};border-radius:3px"
    return f"<div style='{side};{look};break-inside:avoid'><b>{speaker}:</b> {said}</div>"


def _token(token: str, probability: float | None, others: list[tuple[str, float]]) -> str:
    back = PAPER if probability is None else tint(SHADE, DEEPEST * probability)
    box = f"border:1px solid #6E6E6E;border-radius:3px;padding:3px 8px;background:{back};color:{INK};white-space:pre-wrap"
    number = "" if probability is None else f"<div><b>{probability:.2f}</b></div>"
    rest = "".join(f"<div style='color:{GREY};font-size:12px'>{_e(visible(t))} {np.exp(lp):.2f}</div>" for t, lp in others)
    place = "display:inline-block;max-width:100%;vertical-align:top;text-align:center;margin:0 4px 6px 0;break-inside:avoid"
    return f"<div style='{place}'><div style='{box};font-family:monospace'>{_e(visible(token))}</div>{number}{rest}</div>"


def _evidence_row(evidence: Evidence, verdict: Verdict, weighed: bool) -> str:
    quote, warning = quotation(evidence)
    said = _e(quote) or _span("–", GREY)
    if warning:
        said += f"<br><b>{_span(warning, WARNING)}</b>"
    back = f"background:{tint(verdict.colour, 0.22)};border-left:5px solid {verdict.colour};white-space:nowrap"
    return _row(
        _cell(str(evidence.criterion.id), f"color:{GREY}"),
        _cell(_e(evidence.criterion.description)),
        *([_cell(_e(importance(evidence)), "white-space:nowrap")] if weighed else []),
        _cell(f"{verdict.symbol} <b>{verdict.word}</b>", back),
        _cell(said, "width:38%"),
    )


def _counted(came: Sequence[Reply]) -> str:
    """How often each reply came, in the order of their first coming."""
    return "\n".join(f"{n} × {text}" for text, n in Counter(map(_raw, came)).items())


def _raw(reply: Reply) -> str:
    text = reply.text if reply.raw is None else reply.raw
    return f"(no reply: {reply.missing or 'nothing came'})" if text is None else text


def _e(words: object) -> str:
    return html.escape(str(words))


def _block(inside: str) -> Html:
    look = f"background:{PAPER};color:{INK};border:1px solid {LINE};border-radius:4px;padding:10px 12px;margin:4px 0"
    text = "font-family:sans-serif;font-size:13px;line-height:1.45;max-width:900px;overflow-wrap:anywhere;text-align:left"
    ink = "-webkit-print-color-adjust:exact;print-color-adjust:exact"
    # the classes keep MathJax from reading a patient's dollar signs as formulas
    return Html(f"<div class='tex2jax_ignore mathjax_ignore' style='{look};{text};{ink};box-sizing:border-box'>{inside}</div>")


def _note(words: str) -> str:
    return f"<p style='margin:4px 0;font-size:12px;color:{GREY}'>{_e(words)}</p>"


def _banner(words: str) -> str:
    look = f"background:{tint('#E69F00', 0.25)};color:{INK};border-left:5px solid #E69F00;padding:6px 10px;margin:4px 0"
    return f"<div style='{look}'><b>⚠ {_e(words)}</b></div>"


def _quoted(title: str, words: str) -> str:
    look = f"margin:2px 0 6px;padding:4px 10px;border-left:3px solid {LINE};color:{INK};white-space:pre-wrap"
    return f"<p style='margin:6px 0 0;color:{GREY}'>{_e(title)}</p><div style='{look}'>{_e(words)}</div>"


def _span(words: str, colour: str) -> str:
    return f"<span style='color:{colour}'>{_e(words)}</span>"


def _pre(words: str) -> str:
    look = f"background:#F4F4F4;color:{INK};border:1px solid {LINE};padding:4px 8px;margin:0;font-size:12px"
    return f"<pre style='{look};white-space:pre-wrap;overflow-wrap:anywhere'>{_e(words)}</pre>"


def _bar(share: float) -> str:
    return f"<div style='background:{SHADE};width:{100 * share:.1f}%;height:12px;border-radius:2px'></div>"


def _table(heads: Sequence[str], rows: Sequence[str]) -> str:
    look = f"text-align:left;padding:4px 8px;border-bottom:2px solid {GREY};background:{PAPER};color:{INK};font-weight:bold"
    top = "".join(f"<th style='{look}'>{_e(head)}</th>" for head in heads)
    # Columns as wide as what they hold: JupyterLab would make them all alike.
    whole = f"border-collapse:collapse;table-layout:auto;width:100%;margin:4px 0;background:{PAPER};color:{INK};font-size:13px"
    return f"<table style='{whole}'><thead><tr>{top}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _row(*cells: str) -> str:
    return f"<tr style='break-inside:avoid;background:{PAPER}'>{''.join(cells)}</tr>"


def _cell(inside: str, style: str = "") -> str:
    look = f"text-align:left;vertical-align:top;padding:5px 8px;border-bottom:1px solid {LINE};background:{PAPER};color:{INK}"
    return f"<td style='{look};white-space:normal;max-width:none;{style}'>{inside}</td>"
