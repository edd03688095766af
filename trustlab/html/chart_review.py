"""One case as a chart review to read, as HTML for notebooks and as plain text.

The chart, the patient's words, what each doctor thought, the vote, the plan, and beside each of its items the reviewer's mark and
the rule check's. Blocks, colours and escaping are those of :mod:`trustlab.html.show`: every word of a model or patient is escaped.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from trustlab.html.blocks import (
    GREY,
    INK,
    LINE,
    WARNING,
    Html,
    banner,
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
from trustlab.records import Mark
from trustlab.safety.chart import chart_of, chart_text
from trustlab.studies.trust_indices import Checked, known_items

RIGHT, WRONG, UNJUDGED = ("✓ right", "#006B4A"), ("✗ wrong", WARNING), ("? not judged", GREY)
LOOKS = {
    "SAFE": ("✓", "#009E73"), "FINE": ("✓", "#009E73"), "SAFE WITH CAUTION": ("!", "#E69F00"), "REDUNDANT": ("!", "#E69F00"),
    "UNSAFE": ("✗", "#D55E00"), "RISKY": ("✗", "#D55E00"), "UNKNOWN": ("?", "#56B4E9"), None: ("–", "#9A9A9A"),
}  # fmt: skip
"""Verdict -> its sign and colour."""
UNREADABLE = "UNREADABLE"
NO_PLAN = "There is no plan to review"
NO_REVIEW = "with safety off: not reviewed"
NO_QUOTE = "not in what the reviewer was shown"
NOT_KNOWN = "the table does not know it"


def chart_review(checked: Checked) -> Html:
    """Chart, words, doctors, vote, plan and marks of one configuration and case as HTML; sense never hangs on colour alone."""
    case = checked.view.case
    parts = [_head(f"{case.case_id}: {checked.configuration}, {checked.view.level} % told")]
    parts += [
        _title("Chart"),
        preformatted(chart_text(chart_of(case, checked.view.statements))),
        _title("What the patient told"),
    ]
    parts += [
        turn_block(speaker, words)
        for s in checked.view.statements
        for speaker, words in turns_of(s.text)
    ]
    parts.append(_title("What the doctors think"))
    parts += [
        _doctor(name, diagnosis, thinking, why)
        for name, diagnosis, thinking, why in _opinions(checked)
    ]
    verdict, colour = _graded(checked)
    parts.append(
        f"<p style='margin:8px 0;color:{INK}'><b>Vote:</b> {escaped(vote_words(checked))} {coloured(verdict, colour)}</p>"
    )
    parts.append(_title("The plan, and what is said of it"))
    if checked.proposed.plan is None:
        parts.append(banner(f"{NO_PLAN}: {checked.proposed.missing or 'no reason given'}"))
    for kind, rows in _items(checked):
        if rows:
            cells = [
                html_row(html_cell(escaped(text)), _marked(mark, known), _marked(rule, True))
                for text, known, mark, rule in rows
            ]
            parts.append(html_table([kind, "Reviewer", "Rule check"], cells))
        elif checked.proposed.plan is not None:
            parts.append(note(f"{kind}: none."))
    parts.append(
        note(
            f"What it was: {case.diagnosis}. The rule check knows the project's safety table and nothing else."
        )
    )
    return block("".join(parts))


def chart_review_text(checked: Checked) -> str:
    """The same in plain text, for a terminal."""
    case = checked.view.case
    lines = [
        f"{case.case_id}: {checked.configuration}, {checked.view.level} % told",
        "",
        chart_text(chart_of(case, checked.view.statements)),
        "",
    ]
    lines += [checked.view.text, ""]
    for name, diagnosis, thinking, why in _opinions(checked):
        lines += [
            f"{name}: {diagnosis}",
            f"  {' '.join(thinking.split())}",
            *([f"  ! {why}"] if why else []),
        ]
    lines += ["", f"Vote: {vote_words(checked)} ({_graded(checked)[0]})"]
    if checked.proposed.plan is None:
        lines.append(f"{NO_PLAN}: {checked.proposed.missing or 'no reason given'}")
    for kind, rows in _items(checked):
        for text, known, mark, rule in rows:
            lines += [
                f"{kind}: {text}",
                f"  reviewer: {_mark_words(mark, known)}",
                f"  rule check: {_mark_words(rule, True)}",
            ]
    return "\n".join([*lines, f"What it was: {case.diagnosis}"])


def worth_reading(checked: Sequence[Checked], model: str) -> Checked:
    """The case of ``model`` that shows most: a panel that differs, a plan, an objection of the rules, one of the reviewer.

    The first of the best, panels before single doctors. ``ValueError`` where there is none of that model.
    """
    mine = [c for c in checked if c.model == model]
    if not mine:
        raise ValueError(
            f"nothing was asked of {model!r}; there are {list(dict.fromkeys(c.model for c in checked))}"
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


def _opinions(checked: Checked) -> list[tuple[str, str, str, str]]:
    """(whose, the diagnosis with its RDC, the reasoning, what is missing) of each doctor."""
    found = []
    cosines = checked.panel.cosines or (math.nan,) * checked.n_doctors
    for i, (opinion, cosine) in enumerate(zip(checked.panel.opinions, cosines, strict=True), 1):
        fit = "" if math.isnan(cosine) else f" (cosine of reasoning and diagnosis {cosine:.2f})"
        diagnosis = f"{opinion.diagnosis}{fit}" if opinion.diagnosis else "(no readable diagnosis)"
        found.append(
            (
                f"Doctor {i}, {opinion.model}",
                diagnosis,
                opinion.thinking or "(no readable reasoning)",
                opinion.missing,
            )
        )
    return found


def _graded(checked: Checked) -> tuple[str, str]:
    return UNJUDGED if math.isnan(checked.correct) else RIGHT if checked.correct == 1 else WRONG


def _items(checked: Checked) -> list[tuple[str, list[tuple[str, bool, Mark | None, Mark]]]]:
    """(kind, [what is proposed, whether the table knows it, the reviewer's mark, the rule check's])."""
    plan, rules = checked.proposed.plan, checked.rules
    if plan is None or rules is None:
        return []
    drugs, tests = known_items(checked)
    said = checked.review
    none = [None] * max(len(drugs), len(tests))
    prescriptions = zip(
        map(str, plan.prescriptions),
        drugs,
        said.prescriptions if said else none,
        rules.prescriptions,
        strict=False,
    )
    ordered = zip(plan.tests, tests, said.tests if said else none, rules.tests, strict=False)
    return [("Prescription", list(prescriptions)), ("Test", list(ordered))]


def _mark_parts(mark: Mark | None, known: bool) -> tuple[str, str, str]:
    """(verdict, quotation and reason, a warning) in words."""
    if mark is None:
        return UNREADABLE, NO_REVIEW, ""
    said = f"“{mark.quote}”" if mark.quote else ""
    why = mark.missing if mark.verdict is None else mark.reason or ""
    warnings = [NO_QUOTE] if mark.quote_occurs is False else []
    warnings += [NOT_KNOWN] if not known else []
    return mark.verdict or UNREADABLE, " · ".join(filter(None, (said, why))), "; ".join(warnings)


def _mark_words(mark: Mark | None, known: bool) -> str:
    verdict, why, warning = _mark_parts(mark, known)
    return "; ".join(filter(None, (verdict, why, f"! {warning}" if warning else "")))


def _marked(mark: Mark | None, known: bool) -> str:
    verdict, why, warning = _mark_parts(mark, known)
    sign, colour = LOOKS[mark.verdict if mark else None]
    inside = f"{sign} <b>{escaped(verdict)}</b>" + (f"<br>{escaped(why)}" if why else "")
    inside += f"<br><b>{coloured(f'⚠ {warning}', WARNING)}</b>" if warning else ""
    return html_cell(
        inside, f"width:34%;background:{tint(colour, 0.18)};border-left:5px solid {colour}"
    )


def _doctor(name: str, diagnosis: str, thinking: str, why: str) -> str:
    look = f"border:1px solid {LINE};border-radius:3px;padding:5px 10px;margin:4px 0;color:{INK};break-inside:avoid"
    lost = f"<div style='font-size:12px'>{coloured(f'⚠ {why}', WARNING)}</div>" if why else ""
    return f"<div style='{look}'><b>{escaped(name)}:</b> {escaped(diagnosis)}{quoted('Reasoning', thinking)}{lost}</div>"


def _head(words: str) -> str:
    return f"<p style='margin:0 0 6px;font-size:15px;color:{INK}'><b>{escaped(words)}</b></p>"


def _title(words: str) -> str:
    return f"<p style='margin:10px 0 2px;color:{GREY}'><b>{escaped(words)}</b></p>"
