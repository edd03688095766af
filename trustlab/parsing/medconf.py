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
from trustlab.records import (
    IMPORTANCES,
    SUPPORT_LEVELS,
    Criterion,
    Evidence,
    Reading,
    normalise,
)

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
    criteria = [
        valid(_Criterion, row, f"criterion {i}") for i, row in enumerate(rows, 1)
    ]
    if len({criterion.id for criterion in criteria}) < len(criteria):
        raise Unreadable("an id comes twice")
    if importance and any(criterion.importance is None for criterion in criteria):
        raise Unreadable("a criterion without importance")
    profile = []
    for criterion in criteria:
        weight = criterion.importance if importance else None
        profile.append(Criterion(criterion.id, criterion.description, weight))
    return tuple(profile)


def read_prose(text: str) -> str:
    """A symptom profile in prose, trimmed; not empty, and what a file can hold."""
    if UNWRITABLE.search(text):
        raise Unreadable("characters that are no text")
    if not text.strip():
        raise Unreadable("empty profile")
    return text.strip()


# a part's replies are read for the log, the record and the counts
@lru_cache(maxsize=2048)
def read_evidence(
    text: str, profile: tuple[Criterion, ...], patient: str, reading: Reading = "chat"
) -> tuple[tuple[Evidence, ...], bool | None]:
    """Every criterion's support level and quotation, in the profile's order, and whether the
    summary agrees (``None``: none). Each criterion must be assessed exactly once, by its id, and
    nothing else."""
    return read_json(
        text, partial(_evidence, profile, patient), chat.assessment, reading
    )


def _evidence(
    profile: tuple[Criterion, ...], patient: str, value: Any, text: str
) -> tuple[tuple[Evidence, ...], bool | None]:
    whole = an_object(value)
    rows = whole.get("criteria")
    if isinstance(rows, dict):  # by ids; what is no row by a number is left out
        rows = [
            {"id": int(key), **row}
            for key, row in rows.items()
            if key.isdecimal() and isinstance(row, dict)
        ]
    if not isinstance(rows, list):
        raise Unreadable("no list of criteria")
    entries = [valid(_Evidence, row, f"criterion {i}") for i, row in enumerate(rows, 1)]
    by_id = {entry.id: entry for entry in entries}
    ids = [criterion.id for criterion in profile]
    if len(by_id) < len(entries):
        raise Unreadable("a criterion is assessed twice")
    if set(by_id) != set(ids):
        assessed = _first_ids(by_id)
        raise Unreadable(
            f"criteria {assessed} are assessed, {_first_ids(ids)} were asked for"
        )
    _refuse_more(text, "support_level", len(entries))
    patient_words = f" {normalise(patient)} "
    evidence = []
    for criterion in profile:
        row = by_id[criterion.id]
        quote = (row.evidence or "").strip() or None
        occurs = json_reply.is_quoted(quote, patient_words)
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
        score = chat.score(text, patient)
        if score is None:
            raise Unreadable("no JSON")
        return score, None
    return read_json(text, _confidence, chat.assessment, reading)


def _confidence(value: Any, text: str) -> tuple[float, str | None]:
    whole = an_object(value)
    summary = whole.get("summary")
    inner = summary.get("confidence") if isinstance(summary, dict) else None
    confidence = valid(_Confidence, whole.get("confidence", inner), "confidence")
    _refuse_more(text, "confidence_score", 1)
    score = _bracketed_score(confidence.confidence_score)
    if score is None:
        raise Unreadable("no single number from 0 to 100 in double angle brackets")
    return score, confidence.reasoning


def _bracketed_score(text: str) -> float | None:
    """The only number in double angle brackets; ``None`` where it is not from 0 to 100, or another
    stands beside it."""
    number = _SCORE.search(text)
    if number is None or text.count("<<") != 1:
        return None
    before = text[: number.start()]
    after = text[number.end() :]
    value = float(number[1])
    if value > 100 or out_of(before, after) or chat.rivals(before, after, None):
        return None
    return value


def _summary_agrees(summary: Any, evidence: list[Evidence]) -> bool | None:
    """Whether a summary lists each criterion's id by its level; ``None`` where there is none."""
    if not isinstance(summary, dict) or not any(
        level in summary for level in SUPPORT_LEVELS
    ):
        return None
    is_weighed = evidence[0].criterion.importance is not None
    weights: Sequence[Any] = IMPORTANCES if is_weighed else (None,)
    for level in SUPPORT_LEVELS:
        by_weight: Any = summary.get(level)
        if not is_weighed:
            by_weight = {None: by_weight}
        if not isinstance(by_weight, dict):
            return False
        criteria = [e.criterion for e in evidence if e.support_level == level]
        for weight in weights:
            ids = sorted(c.id for c in criteria if c.importance == weight)
            if _sorted_ids(by_weight.get(weight, [])) != ids:
                return False
    return True


def _sorted_ids(ids: Any) -> Any:
    """A list of ids in their order; anything else as it is."""
    if isinstance(ids, list) and all(type(i) is int for i in ids):
        return sorted(ids)
    return ids


def _first_ids(ids: Iterable[int]) -> str:
    """Ids as a reason shows them: the first dozen."""
    ordered = sorted(ids)
    first = str(ordered[:12])
    return f"{first[:-1]}, ...]" if len(ordered) > 12 else first


def _refuse_more(text: str, key: str, times: int) -> None:
    """Refuse more keys than entries: a quotation that breaks out of its string brings its own."""
    if text.count(key) > times:
        most = "once" if times == 1 else f"{times} times"
        raise Unreadable(f"{key} stands more than {most}")
