"""MedConf's replies: JSON that must satisfy a schema, a paragraph of prose, and a score in double angle brackets.

A reply is one JSON value, nothing before or after it but spaces and one Markdown fence around it. It is read as it stands;
a key that comes twice in one object has no value, rather than the last of them. Where the reply is no JSON, the library
json-repair may mend its *punctuation*: commas, colons, the style of quotes, Python's spelling of true, false and null. The
library would also close what was cut off, drop a comment, choose between two values. So its result counts only if (1) the
reply's brackets close by themselves, (2) its words and brackets are the reply's, one by one and in order, and (3) no
quotation mark was left inside a string, which is how a string that has run into the next one looks.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Any, Literal, TypeVar

import json_repair
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from trustlab.knowledge import normalise
from trustlab.parsing.brackets import UNWRITABLE
from trustlab.parsing.scores import out_of
from trustlab.records import IMPORTANCES, SUPPORT_LEVELS, Criterion, Evidence

MAX_MENDED = 10_000
"""Characters of the longest reply that is mended: json-repair's time grows with the square of them."""
_FENCE = re.compile(r"\A```[A-Za-z]*[ \t]*\r?\n(.*?)\n?```\Z", re.DOTALL)
_SCORE = re.compile(r"<<\s*([0-9]+(?:\.[0-9]+)?)\s*%?\s*>>")
_WORDS = re.compile(r"""[\[\]{}]|[^\s\[\]{},:"'\\]+""")
"""What punctuation leaves: brackets and words."""
_SPACE = re.compile(r"\\[nrt]")
_RUN_ON = re.compile(r"""\\"|'\s*[,:]""")
_TWICE = object()
"""The value of a key that comes twice in one object."""
_CLOSES = {"]": "[", "}": "{"}
_Id = Annotated[int, Field(ge=0, le=9999)]
_Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]
_Kind = TypeVar("_Kind", bound=BaseModel)


class Unreadable(ValueError):
    """A reply that does not have the asked-for form; its words say what is wrong."""


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")


class _Criterion(_Strict):
    id: _Id
    description: _Words
    importance: Literal["strong", "moderate", "weak"] | None = None


class _Evidence(_Strict):
    id: _Id
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


def read_prose(text: str) -> str:
    """A symptom profile in prose, trimmed; :class:`Unreadable` if it is empty or no file could hold it."""
    if UNWRITABLE.search(text):
        raise Unreadable("characters that are no text")
    if not text.strip():
        raise Unreadable("empty profile")
    return text.strip()


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
        raise Unreadable(f"criteria {_listed(by_id)} are assessed, {_listed(asked)} were asked for")
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

    It stands in ``confidence``, at the top or inside ``summary`` (the paper's printed form), once, and is not the x of "x out
    of y". :class:`Unreadable` otherwise.
    """
    whole = _object(text)
    inner = whole.get("summary")
    confidence = whole.get("confidence", inner.get("confidence") if isinstance(inner, dict) else None)
    found = _valid(_Confidence, confidence, "confidence")
    _at_most(text, "confidence_score", 1)
    said = found.confidence_score
    number = _SCORE.search(said)
    if number is None or said.count("<<") > 1 or float(number[1]) > 100 or out_of(said[: number.start()], said[number.end() :]):
        raise Unreadable("no single number from 0 to 100 in double angle brackets")
    return float(number[1]), found.reasoning


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


def _listed(ids: Iterable[int]) -> str:
    """Ids as a reason shows them: the first dozen."""
    first, more = sorted(ids)[:12], sorted(ids)[12:]
    return f"{str(first)[:-1]}, ...]" if more else str(first)


def _at_most(text: str, key: str, times: int) -> None:
    """Refuse a reply that says more than one thing: a quotation that breaks out of its string brings its own keys."""
    if text.count(key) > times:
        raise Unreadable(f"{key} stands more than {'once' if times == 1 else f'{times} times'}")


def _valid(kind: type[_Kind], row: Any, where: str) -> _Kind:
    for key in kind.model_fields if isinstance(row, dict) else ():
        if row.get(key) is _TWICE:
            raise Unreadable(f"{where}: {key} comes twice")
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
        return json.loads(text, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError):  # ValueError also for a number of thousands of digits
        return _mended(text)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose repeated keys hold what no schema takes."""
    times = Counter(key for key, _ in pairs)
    return {key: value if times[key] == 1 else _TWICE for key, value in pairs}


def _mended(text: str) -> Any:
    """What json-repair makes of ``text``, if only the punctuation differs."""
    if len(text) > MAX_MENDED:
        raise Unreadable(f"no JSON, and longer than the {MAX_MENDED} characters that are mended")
    if not _closes(text):
        raise Unreadable("no JSON: its brackets do not close, or something follows them")
    try:
        found = json_repair.loads(text)
        spelled = json.dumps(found, ensure_ascii=False)
    except (ValueError, RecursionError) as error:
        raise Unreadable("no JSON") from error
    if _RUN_ON.search(spelled) or _words(spelled) != _words(text):
        raise Unreadable("no JSON: more than its punctuation is wrong")
    return found


def _words(text: str) -> list[str]:
    """The words and brackets of ``text`` in order, Python's None as null."""
    return ["null" if word == "none" else word for word in _WORDS.findall(_SPACE.sub(" ", text).lower())]


def _closes(text: str) -> bool:
    """Whether ``text`` is one bracketed whole, strings not told apart: each bracket closed, the first one last."""
    opened: list[str] = []
    for i, mark in enumerate(text):
        if mark in "[{":
            opened.append(mark)
        elif mark in _CLOSES:
            if not opened or opened.pop() != _CLOSES[mark]:
                return False
            if not opened:
                return i == len(text) - 1
    return False
