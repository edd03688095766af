"""The ideal replies of MedConf's steps: keyword, symptom profile, confidence from evidence, and
their ablations.

What is taught: a profile lists the criteria of the proposed diagnosis that the passages shown
state, in the order they are shown; evidence is labelled from what the patient said (affirmed:
supported; denied, or another place: contradicted; not spoken of: missing) and quotes the answer;
the score, which these texts leave open (:data:`OPEN`), is the exact posterior of the diagnosis.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trustlab.knowledge.findings import phrase_list
from trustlab.records import IMPORTANCES, SUPPORT_LEVELS, Statement

from .passages import Criterion, Passage
from .world import Fact

MOST = 8
"""A profile has at most so many criteria."""
OPEN = "<<>>"
"""Where a score goes."""


@dataclass(frozen=True)
class Mark:
    """One criterion held against the patient's words."""

    criterion: Criterion
    level: str
    quote: str | None


def criteria_of(condition: str, passages: Sequence[Passage]) -> list[Criterion]:
    """What the passages shown say of ``condition``, in their order."""
    return [
        c for p in passages if p.condition == condition for s in p.sentences for c in s.criteria
    ][:MOST]


def mark(criterion: Criterion, facts: Sequence[Fact], told: Sequence[Statement]) -> Mark:
    """Whether the facts support ``criterion``, and the words that show it."""
    for fact, statement in zip(facts, told, strict=True):
        words = statement.text.partition("\nPatient: ")[2] or statement.text
        if fact.finding == criterion.finding:
            right = fact.affirmed and (
                not criterion.places or bool(criterion.places & set(fact.values))
            )
            return Mark(criterion, "supported" if right else "contradicted", words)
        if criterion.places and fact.finding == "pain" and not fact.affirmed:
            return Mark(criterion, "contradicted", words)
    return Mark(criterion, "missing", None)


def entry(number: int, criterion: Criterion, importance: bool = True) -> str:
    """One criterion as a line of JSON, its brace left open."""
    weight = f'"importance": "{criterion.importance}", ' if importance else ""
    return f'{{"id": {number}, {weight}"description": "{criterion.name}"'


def profile_json(criteria: Sequence[Criterion], importance: bool = True) -> str:
    """The profile as a JSON list, one criterion a line."""
    if not criteria:
        return "[]"
    return (
        "[\n" + ",\n".join(entry(i, c, importance) + "}" for i, c in enumerate(criteria, 1)) + "\n]"
    )


def profile_prose(criteria: Sequence[Criterion], importance: bool = True) -> str:
    """The profile as one sentence."""
    if not criteria:
        return "Nothing is said of it."
    return (
        "Look for "
        + phrase_list([c.name + (f" ({c.importance})" if importance else "") for c in criteria])
        + "."
    )


def evidence_json(marks: Sequence[Mark], importance: bool = True) -> str:
    """The whole assessment: criteria, summary, confidence with its score open."""
    rows = []
    for i, m in enumerate(marks, 1):
        quote = "null" if m.quote is None else f'"{m.quote}"'
        rows.append(
            entry(i, m.criterion, importance)
            + f', "evidence": {quote}, "support_level": "{m.level}"}}'
        )
    listed = ",\n".join(rows)
    confidence = _confidence(_weighing(marks, importance))
    return (
        f'{{"criteria": [\n{listed}\n],\n"summary": {_summary(marks, importance)},\n{confidence}}}'
    )


def verdict_json(marks: Sequence[Mark]) -> str:
    """The assessment without a table: the findings that speak for and against it, and the score,
    open."""
    spoken = {
        level: [m.criterion.name for m in marks if m.level == level] for level in SUPPORT_LEVELS
    }
    words = (
        f"Supported: {_names(spoken['supported'])}. Contradicted:"
        f" {_names(spoken['contradicted'])}. "
    )
    words += f"Left open: {len(spoken['missing'])} of {len(marks)}."
    return "{" + _confidence(words) + "}"


def _names(listed: Sequence[str]) -> str:
    return phrase_list(listed) if listed else "nothing"


def _confidence(words: str) -> str:
    return f'"confidence": {{"reasoning": "{words}", "confidence_score": "{OPEN}"}}'


def _summary(marks: Sequence[Mark], importance: bool) -> str:
    def ids(level: str, weight: str | None = None) -> str:
        chosen = (
            i
            for i, m in enumerate(marks, 1)
            if m.level == level and weight in (None, m.criterion.importance)
        )
        return "[" + ", ".join(map(str, chosen)) + "]"

    if not importance:
        return "{" + ", ".join(f'"{level}": {ids(level)}' for level in SUPPORT_LEVELS) + "}"
    lists = {
        level: ", ".join(f'"{w}": {ids(level, w)}' for w in IMPORTANCES) for level in SUPPORT_LEVELS
    }
    parts = (f'"{level}": {{{listed}}}' for level, listed in lists.items())
    return "{" + ", ".join(parts) + "}"


def _weighing(marks: Sequence[Mark], importance: bool) -> str:
    contradicted = sum(m.level == "contradicted" for m in marks)
    if not importance:
        return (
            f"Supported {sum(m.level == 'supported' for m in marks)} of {len(marks)}, contradicted"
            f" {contradicted}."
        )
    shares = []
    for weight in IMPORTANCES:
        group = [m for m in marks if m.criterion.importance == weight]
        shares.append(f"{sum(m.level == 'supported' for m in group)} of {len(group)} {weight}")
    no = [m.criterion.importance for m in marks if m.level == "contradicted"]
    against = [str(no.count(weight)) for weight in IMPORTANCES]
    return f"Supported {', '.join(shares)}; contradicted {', '.join(against)}."


def json_pieces() -> Iterator[str]:
    """The fixed pieces of these replies and of the profile in a prompt: one token each."""
    for i in range(1, MOST + 1):
        yield f'\n{{"id": {i}, "description": "'
        yield from (f'\n{{"id": {i}, "importance": "{w}", "description": "' for w in IMPORTANCES)
    yield from ['"}', '"},', "\n]", "\n[", "\n", '"', '", "evidence": "']
    for end in ("}", "},"):
        yield f'", "evidence": null, "support_level": "missing"{end}'
        yield from (
            f'", "support_level": "{level}"{end}' for level in ("supported", "contradicted")
        )
    for w in IMPORTANCES:
        yield from [f" ({w}), ", f" ({w}) and ", f" ({w}).", f" {w}, ", f" {w}; contradicted "]
    yield from ["Look for ", "Nothing is said of it.", '{"criteria": [', "\n],"]
    yield from KEYS
    yield from [
        '\n"confidence": {"reasoning": "Supported ',
        " of ",
        '.", "confidence_score": "<<',
        '>>"}}',
        ", contradicted ",
    ]
    yield from [
        '{"confidence": {"reasoning": "Supported: ',
        ". Contradicted: ",
        ". Left open: ",
        "nothing",
        ".",
    ]


KEYS = [
    *(
        '\n"summary": {"supported": {"strong": ',
        ', "moderate": ',
        ', "weak": ',
        '}, "missing": {"strong": ',
    ),
    *(
        '}, "contradicted": {"strong": ',
        "}},",
        '\n"summary": {"supported": ',
        ', "missing": ',
        ', "contradicted": ',
        "},",
    ),
]
"""Keys of the summary, which follow from what stands before them."""
