"""Reads MedConf's profile, evidence and score."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from typing import Any, Literal

from trustlab.parsing import chat, json_reply
from trustlab.parsing.json_reply import Id, Strict, Words, an_object, read_json, valid
from trustlab.parsing.reply import UNWRITABLE, Unreadable
from trustlab.parsing.scores import out_of
from trustlab.records import IMPORTANCES, SUPPORT_LEVELS, Criterion, Evidence, Reading, normalise

_SCORE = re.compile(r"<<\s*([0-9]+(?:\.[0-9]+)?)\s*%?\s*>>")


class _Criterion(Strict):
    id: Id
    description: Words
    importance: Literal["strong", "moderate", "weak"] | None = None


class _Evidence(Strict):
    id: Id
    support_level: Literal["supported", "missing", "contradicted"]
    evidence: str | None = None


class _Confidence(Strict):
    reasoning: str | None = None
    confidence_score: str


def read_profile(
    text: str, *, importance: bool = True, reading: Reading = "chat"
) -> tuple[Criterion, ...]:
    """The criteria of a symptom profile: a JSON list of id, description and (where asked for)
    importance; not empty, no id twice."""
    return read_json(text, partial(_profile, importance), chat.rows, reading)


def _profile(importance: bool, value: Any, _: str) -> tuple[Criterion, ...]:
    rows = json_reply.only_value(value)
    if not isinstance(rows, list):
        raise Unreadable("no JSON list")
    if not rows:
        raise Unreadable("empty profile")
    found = [valid(_Criterion, row, f"criterion {i}") for i, row in enumerate(rows, 1)]
    if len({c.id for c in found}) < len(found):
        raise Unreadable("an id comes twice")
    if importance and any(c.importance is None for c in found):
        raise Unreadable("a criterion without importance")
    kept = ((c, c.importance if importance else None) for c in found)
    return tuple(Criterion(c.id, c.description, weight) for c, weight in kept)


def read_prose(text: str) -> str:
    """A symptom profile in prose, trimmed; not empty, and what a file can hold."""
    if UNWRITABLE.search(text):
        raise Unreadable("characters that are no text")
    if not text.strip():
        raise Unreadable("empty profile")
    return text.strip()


@lru_cache(maxsize=2048)  # a part's replies are read for the log, the record and the counts
def read_evidence(
    text: str, profile: tuple[Criterion, ...], patient: str, reading: Reading = "chat"
) -> tuple[tuple[Evidence, ...], bool | None]:
    """Every criterion's support level and quotation, in the profile's order, and whether the
    summary agrees (``None``: none). Each criterion must be assessed exactly once, by its id, and
    nothing else."""
    return read_json(text, partial(_evidence, profile, patient), chat.assessment, reading)


def _evidence(
    profile: tuple[Criterion, ...], patient: str, value: Any, text: str
) -> tuple[tuple[Evidence, ...], bool | None]:
    whole = an_object(value)
    rows = whole.get("criteria")
    if isinstance(rows, dict):  # by their ids
        each = rows.items()
        rows = [{"id": int(i), **row} for i, row in each if i.isdecimal() and isinstance(row, dict)]
    if not isinstance(rows, list):
        raise Unreadable("no list of criteria")
    found = [valid(_Evidence, row, f"criterion {i}") for i, row in enumerate(rows, 1)]
    by_id = {e.id: e for e in found}
    asked = [c.id for c in profile]
    if len(by_id) < len(found):
        raise Unreadable("a criterion is assessed twice")
    if set(by_id) != set(asked):
        raise Unreadable(f"criteria {_listed(by_id)} are assessed, {_listed(asked)} were asked for")
    _at_most(text, "support_level", len(found))
    said, evidence = f" {normalise(patient)} ", []
    for criterion in profile:
        row = by_id[criterion.id]
        quote = (row.evidence or "").strip() or None
        occurs = json_reply.quoted(quote, said)
        evidence.append(Evidence(criterion, row.support_level, quote, occurs))
    return tuple(evidence), _summary_agrees(whole.get("summary"), evidence)


def read_score(
    text: str, patient: str | None = None, reading: Reading = "chat"
) -> tuple[float, str | None]:
    """The confidence from 0 to 100 in double angle brackets, and the reasoning.

    It stands in ``confidence``, at the top or inside ``summary`` (the paper's printed form), once,
    and is not the x of "x out of y". With ``reading="chat"`` a reply without any JSON may end on
    the score alone, not one of the ``patient``'s numbers.
    """
    if reading == "chat" and "{" not in text:
        if (score := chat.score(text, patient)) is None:
            raise Unreadable("no JSON")
        return score, None
    return read_json(text, _confidence, chat.assessment, reading)


def _confidence(value: Any, text: str) -> tuple[float, str | None]:
    whole = an_object(value)
    inner = whole.get("summary")
    inner = inner.get("confidence") if isinstance(inner, dict) else None
    found = valid(_Confidence, whole.get("confidence", inner), "confidence")
    _at_most(text, "confidence_score", 1)
    said = found.confidence_score
    number = _SCORE.search(said) if said.count("<<") == 1 else None
    around = (said[: number.start()], said[number.end() :]) if number else ("", "")
    doubted = out_of(*around) or chat.rivals(*around, None)
    if number is None or doubted or float(number[1]) > 100:
        raise Unreadable("no single number from 0 to 100 in double angle brackets")
    return float(number[1]), found.reasoning


def _summary_agrees(summary: Any, evidence: list[Evidence]) -> bool | None:
    if not isinstance(summary, dict) or not any(level in summary for level in SUPPORT_LEVELS):
        return None
    weighed = evidence[0].criterion.importance is not None
    weights: Sequence[Any] = IMPORTANCES if weighed else (None,)
    for level in SUPPORT_LEVELS:
        told: Any = summary.get(level) if weighed else {None: summary.get(level)}
        if not isinstance(told, dict):
            return False
        for weight in weights:
            group = [e.criterion for e in evidence if e.support_level == level]
            right = sorted(c.id for c in group if c.importance == weight)
            if _sorted(told.get(weight, [])) != right:
                return False
    return True


def _sorted(ids: Any) -> Any:
    return sorted(ids) if isinstance(ids, list) and all(type(i) is int for i in ids) else ids


def _listed(ids: Iterable[int]) -> str:
    """Ids as a reason shows them: the first dozen."""
    first, more = sorted(ids)[:12], sorted(ids)[12:]
    return f"{str(first)[:-1]}, ...]" if more else str(first)


def _at_most(text: str, key: str, times: int) -> None:
    """Refuse more keys than entries: a quotation that breaks out of its string brings its own."""
    if text.count(key) > times:
        raise Unreadable(f"{key} stands more than {'once' if times == 1 else f'{times} times'}")
