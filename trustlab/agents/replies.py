"""Strict reading of MedConf's replies: what does not fit the asked-for form is refused with its reason, never guessed at.

JSON is read as it stands; where that fails the library json-repair may mend its punctuation (a missing comma or quote),
and the result must satisfy the same schema.
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Literal, TypeVar

import json_repair
from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from trustlab.knowledge import normalise
from trustlab.records import IMPORTANCES, SUPPORT_LEVELS, Criterion, Evidence

_FENCE = re.compile(r"\A```[a-z]*\n(.*?)\n?```\Z", re.DOTALL)
_SCORE = re.compile(r"<<\s*([0-9]+(?:\.[0-9]+)?)\s*%?\s*>>")
_Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]


_Kind = TypeVar("_Kind", bound=BaseModel)


class Unreadable(ValueError):
    """A reply that does not have the asked-for form; its words say what is wrong."""


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")


class _Criterion(_Strict):
    id: int
    description: _Words
    importance: Literal["strong", "moderate", "weak"] | None = None


class _Evidence(_Strict):
    id: int
    support_level: Literal["supported", "missing", "contradicted"]
    evidence: str | None = None


class _Confidence(_Strict):
    reasoning: str | None = None
    confidence_score: str


def read_profile(text: str, *, importance: bool = True) -> tuple[Criterion, ...]:
    """The criteria of a symptom profile: a JSON list of id, description and (where asked for) importance.

    :class:`Unreadable` for anything else, an id that comes twice, a missing importance, and an empty list.
    """
    rows = _json(text)
    if isinstance(rows, dict) and len(rows) == 1:
        rows = next(iter(rows.values()))
    if not isinstance(rows, list):
        raise Unreadable("no JSON list")
    if not rows:
        raise Unreadable("empty profile")
    found = [_valid(_Criterion, row, f"criterion {i}") for i, row in enumerate(rows, 1)]
    if len({c.id for c in found}) < len(found):
        raise Unreadable("an id comes twice")
    if importance and any(c.importance is None for c in found):
        raise Unreadable("a criterion without importance")
    return tuple(Criterion(c.id, c.description, c.importance if importance else None) for c in found)


def read_evidence(text: str, profile: tuple[Criterion, ...], patient: str) -> tuple[tuple[Evidence, ...], bool | None]:
    """Every criterion's support level and quotation, in the profile's order, and whether the summary agrees (``None``: none).

    :class:`Unreadable` unless each criterion of the profile is assessed exactly once, by its id, and nothing else is.
    """
    whole = _object(text)
    rows = whole.get("criteria")
    if not isinstance(rows, list):
        raise Unreadable("no list of criteria")
    found = [_valid(_Evidence, row, f"criterion {i}") for i, row in enumerate(rows, 1)]
    by_id = {e.id: e for e in found}
    asked = [c.id for c in profile]
    if len(by_id) < len(found):
        raise Unreadable("a criterion is assessed twice")
    if set(by_id) != set(asked):
        raise Unreadable(f"criteria {sorted(by_id)} are assessed, {sorted(asked)} were asked for")
    _at_most(text, "support_level", len(found))
    said = f" {normalise(patient)} "
    evidence = []
    for criterion in profile:
        row = by_id[criterion.id]
        quote = (row.evidence or "").strip() or None
        occurs = None if quote is None else bool(normalise(quote)) and f" {normalise(quote)} " in said
        evidence.append(Evidence(criterion, row.support_level, quote, occurs))
    return tuple(evidence), _summary_agrees(whole.get("summary"), evidence)


def read_score(text: str) -> tuple[float, str | None]:
    """The confidence from 0 to 100 in double angle brackets, and the reasoning.

    It stands in ``confidence``, at the top or inside ``summary`` (the paper's printed form). :class:`Unreadable` otherwise.
    """
    whole = _object(text)
    inner = whole.get("summary")
    confidence = whole.get("confidence", inner.get("confidence") if isinstance(inner, dict) else None)
    found = _valid(_Confidence, confidence, "confidence")
    _at_most(text, "confidence_score", 1)
    numbers = _SCORE.findall(found.confidence_score)
    if len(numbers) != 1 or not 0 <= float(numbers[0]) <= 100:
        raise Unreadable("no single number from 0 to 100 in double angle brackets")
    return float(numbers[0]), found.reasoning


def _summary_agrees(summary: Any, evidence: list[Evidence]) -> bool | None:
    if not isinstance(summary, dict) or not any(level in summary for level in SUPPORT_LEVELS):
        return None
    weighed = evidence[0].criterion.importance is not None
    for level in SUPPORT_LEVELS:
        group = [e.criterion for e in evidence if e.support_level == level]
        told = summary.get(level)
        right = (
            {w: sorted(c.id for c in group if c.importance == w) for w in IMPORTANCES} if weighed else sorted(c.id for c in group)
        )
        if weighed and isinstance(told, dict):
            told = {w: _sorted(told.get(w, [])) for w in IMPORTANCES}
        elif not weighed:
            told = _sorted(told)
        if told != right:
            return False
    return True


def _sorted(ids: Any) -> Any:
    return sorted(ids) if isinstance(ids, list) and all(type(i) is int for i in ids) else ids


def _at_most(text: str, key: str, times: int) -> None:
    """Refuse a reply that says more than one thing: a quotation that breaks out of its string brings its own keys."""
    if text.count(key) > times:
        raise Unreadable(f"{key} stands more than {'once' if times == 1 else f'{times} times'}")


def _valid(kind: type[_Kind], row: Any, where: str) -> _Kind:
    try:
        return kind.model_validate(row)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise Unreadable(f"{where}{', ' + place if place else ''}: {first['msg'][0].lower()}{first['msg'][1:]}") from error


def _object(text: str) -> dict[str, Any]:
    found = _json(text)
    if not isinstance(found, dict):
        raise Unreadable("no JSON object")
    return found


def _json(text: str) -> Any:
    text = text.strip()
    if fenced := _FENCE.match(text):
        text = fenced[1].strip()
    if not text.startswith(("{", "[")):
        raise Unreadable("no JSON")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # ValueError also for a number of thousands of digits
        pass
    try:
        return json_repair.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable("no JSON") from error
