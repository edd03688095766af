r"""Reads replies as chat models write them.

- An answer: ``\boxed{Flu}``, a line "Diagnosis: Flu" (or answer, or keyword), "The diagnosis is
  flu.", or, where none of these stands, the only words in bold; else the whole reply: a bare name
  of at most eight words without a verb, or JSON with that field alone. No square bracket but a
  citation's stands beside it; two names, a heading, a hedge and a sentence are none.
- A score: the last line is the number alone, or a line or sentence gives it ("Confidence: 95",
  "I'm 95 % sure"). The number is bare, in square or double angle brackets or boxed, with ``%``,
  ``/100`` or "out of 100". A share of one (0.85) is no score, no other number may look like one,
  and a number that the patient says in the same manner is never the model's, nor in a sentence any
  of theirs. Several scores: a list and nothing else.
- True or False: the word, then a sentence that does not take it back.
- What is to be spoken: one line, bare, in quotes or behind a label ("Question:").
- JSON: the only object, or list of objects, in the reply, whatever words or fence stand around it.
  Of its fixed words case, spaces, hyphens and underscores do not count; an id may be text.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from trustlab.files import read_yaml
from trustlab.records import FLAGS, IMPORTANCES, RATINGS, SUPPORT_LEVELS

_WRITTEN: dict[str, Any] = read_yaml(Path(__file__).with_name("chat.yml"))
_PATTERNS: dict[str, str] = _WRITTEN.pop("patterns")
WORDS = {name: text.replace(" | ", "|") for name, text in _WRITTEN.items()}
"""Name of a list in chat.yml -> its words, as a pattern."""


def _pattern(form: str) -> re.Pattern[str]:
    """``form`` with the words and patterns of chat.yml at their names in braces."""
    spaced = {name: words.replace(" ", r"\ ") for name, words in WORDS.items()} | _PATTERNS
    names = re.compile(r"\{(" + "|".join(spaced) + r")\}")
    while (filled := names.sub(lambda found: spaced[found[1]], form)) != form:
        form = filled
    return re.compile(form, re.IGNORECASE | re.VERBOSE)


SAYS = {name: _pattern(form) for name, form in _PATTERNS.items()}

# Answers

Place = tuple[int, int]  # where a part of a text begins, and where it ends
_TRIM = " \t*_\"'`\u201c\u201d.!"
_QUOTES = " \t*_\"'`\u201c\u201d\u2018\u2019"


def name(text: str) -> Place | None:
    """Where the one answer of a reply stands; ``None`` where there is any doubt."""
    if SAYS["bracket"].search(text):
        return None
    lines = list(_lines(text))
    boxes = list(SAYS["boxed"].finditer(text))
    if any(SAYS["not_this"].search(text[max(0, box.start() - 40) : box.start()]) for box in boxes):
        return None
    boxed = [_trimmed(text, *found.span(1)) for found in boxes]
    labelled = [place for line in lines if (place := _after_label(text, *line))]
    told_of = [(a, b) for a, b in labelled if b > lines[-1][0] or is_whole(text, a, b)]
    given = [found for found in SAYS["stated"].finditer(text) if is_whole(text, *found.span(1))]
    before = [(text[max(0, found.start() - 300) : found.start()], found) for found in given]
    stated = [found.span(1) for lead, found in before if SAYS["leads_in"].search(lead)]
    bold = [_unlabelled(text, *found.span(1)) for found in SAYS["bold"].finditer(text)]
    bold = [(a, b) for a, b in bold if not SAYS["a_heading"].fullmatch(text[a:b])]
    bold = [(a, b) for a, b in bold if re.search(r"[^\W\d]", text[a:b])]
    told = [place for place in bold if _is_told(text, *place, only=len(bold) == 1)]
    taken = sorted([*boxed, *told_of, *stated])
    rivals = [*boxed, *labelled, *(found.span(1) for found in given), *(told if taken else bold)]
    taken = taken or told
    names = {" ".join(text[slice(*_trimmed(text, *r))].casefold().split()) for r in rivals}
    if not rivals and (place := spoken(text, "(?:final[ _])?(?:diagnosis|disease|answer|keyword)")):
        return _trimmed(text, *place) if is_whole(text, *place) else None
    if not taken or len(names) != 1:
        return None
    a, b = _trimmed(text, *taken[-1])
    return None if SAYS["names_none"].search(text[a:b]) else (a, b)


def is_whole(text: str, start: int, stop: int) -> bool:
    """Whether these words are a bare name, and the next line does not go on with another."""
    words = text[slice(*_trimmed(text, start, stop))]
    if not SAYS["bare_name"].fullmatch(words) or SAYS["goes_on"].match(text, stop):
        return False
    return not (SAYS["is_sentence"].search(words) or SAYS["names_none"].search(words))


def spoken(text: str, label: str) -> Place | None:
    """The one line that the whole reply is, bare, in quotes or bold, behind this label (a pattern)
    and a colon, or JSON's only field; ``None`` where a bracket stands in it, or there is more."""
    if (field := SAYS["field"].fullmatch(text)) and field[2]:
        return field.span(2) if re.fullmatch(label, field[1], re.IGNORECASE) else None
    lines = list(_lines(text))
    if len(lines) != 1 or re.search(r"[][{}<>]", text):
        return None
    a, b = _trimmed(text, *lines[0], _QUOTES)
    behind = re.compile(rf"(?:{label})[*_ \t]*:[*_ \t]*", re.IGNORECASE).match(text, a, b)
    a, b = _trimmed(text, behind.end() if behind else a, b, _QUOTES)
    return (a, b) if a < b and not re.search('["\u201c\u201d]', text[a:b]) else None


def _lines(text: str) -> Iterator[Place]:
    """The lines with something in them, white space and a list's mark taken off."""
    for line in re.finditer(r"[^\r\n\u2028\u2029]+", text):
        a, b = _trimmed(text, *line.span(), " \t\v\f\x85\u00a0")
        if a < b:
            yield a, b


def _trimmed(text: str, start: int, stop: int, marks: str = _TRIM) -> Place:
    part = text[start:stop]
    start += len(part) - len(part.lstrip(marks))
    return start, start + len(part.strip(marks))


def _after_label(text: str, start: int, stop: int) -> Place | None:
    """The words behind "Diagnosis:" in this line, where there are some and no box."""
    label = SAYS["label"].match(text, start, stop)
    if label is None or "\\boxed" in text[start:stop]:
        return None
    a, b = _trimmed(text, label.end(), stop)
    return (a, b) if a < b else None


def _unlabelled(text: str, start: int, stop: int) -> Place:
    """Words in bold without the label that stands among them."""
    return _after_label(text, start, stop) or _trimmed(text, start, stop)


def _is_told(text: str, start: int, stop: int, only: bool = False) -> bool:
    """Whether words in bold end their line (the ``only`` ones: or their clause) and are what it
    says; a line of theirs alone is the reply's first or last."""
    a, b = text.rfind("\n", 0, start) + 1, text.find("\n", stop)
    b = len(text) if b < 0 else b
    before, after, rest = text[a:start], text[stop:b], text[b:]
    if label := SAYS["label"].match(before):
        before = before[label.end() :]
    said = re.split(r"[.,;!?]\s", before[max(0, len(before) - 300) :])[-1]
    above = text[:a].rstrip().rpartition("\n")[2] if not before.strip(f"{_TRIM}->#:") else ""
    if SAYS["denied"].search(said):
        return False
    asked = SAYS["asks"].search(above) and not SAYS["denied"].search(above)
    if above.rstrip(" *").endswith(":") and not asked:
        return False
    before = before[max(0, len(before) - 80) :].rstrip(" \t*")
    if only and before and SAYS["clause"].match(after) and not re.search(r"\bha(?:s|ve)\b", before):
        after = "" if not SAYS["denied"].search(after) else after
    if after.strip(f"{_TRIM}\r") or not SAYS["leads"].search(before):
        return False
    return bool(before.strip(f"{_TRIM}->#:")) or not text[:a].strip() or not rest.strip()


# Scores

_FORM = {
    manner: SAYS[f"form_{manner}"] for manner in ("bracket", "words", "fraction", "percent", "bare")
}
"""How a score may be written, each a manner of its own."""


def _alone(lines: list[str], value: float) -> bool:
    """Whether a number on a line of its own, the last of these, is one: no part of a list, not
    another number beside one, and not said of something else."""
    above = lines[-2].rstrip(" *") if len(lines) > 1 else ""
    listed_above = re.match(rf"[-*\s]*{value - 1:g}[.)]|[-*\u2022][ \t]", above)
    if listed_above or SAYS["another"].search(above):
        return False
    return not above.endswith(":") or SAYS["scored"].search(above) is not None


def score(text: str, patient: str | None = None) -> float | None:
    """The number from 0 to 100 that the last line is, or else a sentence gives; ``None`` where
    there is none, or any doubt."""
    found = _last_line(text, patient)
    return _stated_score(text, patient) if found is None else found


def _last_line(text: str, patient: str | None) -> float | None:
    lines = list(_lines(text))
    if not lines:
        return None
    said = _plain(text[slice(*lines[-1])]).strip(" \t\"'").rstrip(".")
    said = re.sub(r"\A[-\u2022][ \t]+", "", said)
    label = SAYS["labelled"].match(said)
    manner, value = _number(said[label.end() :] if label else said)
    if value is None or SAYS["tenths"].search(text):
        return None
    alone = _alone([text[slice(*line)] for line in lines], value)
    if not label and (not alone or rivals(text[: lines[-1][0]], "", patient) - {value}):
        return None
    looks = [(found["bracket"], _value(found)) for found in SAYS["looks"].finditer(_plain(text))]
    if {v for _, v in looks} - {value} or sum(b is not None for b, _ in looks) > 1:
        return None
    own = "label" if label else manner
    return None if value in _told(patient or "", own) else value


def _stated_score(text: str, patient: str | None) -> float | None:
    """The one number that sentences, labelled lines or JSON's only field give."""
    said = [one.strip() for one in re.split(r"(?<=[.!?])\s+|\n", _plain(text))]
    given = [(k, found) for k, one in enumerate(said) if (found := SAYS["says"].search(one))]
    values = {number(next(filter(None, found.groups()))) for _, found in given}
    others = _values("looks", _plain(text))
    for k, found in given[-1:]:
        others |= all_numbers("\n".join([said[k][found.end() :], *said[k + 1 :]]))
    if field := SAYS["field"].fullmatch(text):
        rated = SAYS["labelled"].fullmatch(field[1].replace("_", " ") + ":")
        values = {number(field[2] or field[3]) if rated else None}
    if len(values) != 1 or others - values or SAYS["tenths"].search(text):
        return None
    denied = any(SAYS["another"].search(said[k]) for k, _ in given)
    return None if denied or values & all_numbers(patient or "") else values.pop()


def listed(text: str, n: int) -> tuple[float, ...] | None:
    """The ``n`` scores that are listed, numbered or not, perhaps behind words and a colon; ``None``
    where there is anything else, and where they count from 1."""
    lead, _, said = _plain(text).rpartition(":")
    said = said.strip(" \t\r\n.[]-\u2022")
    items, counted = list(SAYS["item"].finditer(said)), list(range(1, n + 1))
    marks = [item[1] for item in items]
    values = tuple(value for item in items if (value := number(item[2])) is not None)
    if "".join(item[0] for item in items) != said or re.search(r"[0-9\[\]]", lead):
        return None
    if marks not in ([None] * n, list(map(str, counted))) or list(values) == counted:
        return None
    return values if len(values) == n else None


def guess(part: str) -> float | None:
    """The number that ``part`` begins with, where no other digit stands behind it."""
    found = SAYS["guess"].match(part)
    more = found and re.search("[0-9]", part[found.end() :])
    return _in_range(found) if found and not more else None


@lru_cache(maxsize=64)  # a patient's words stand behind several questions
def all_numbers(text: str) -> frozenset[float]:
    """Every number of ``text`` in plain digits."""
    return frozenset(_values("plain", text))


def number(said: str) -> float | None:
    """The score from 0 to 100 that ``said`` is and nothing else."""
    return _number(said.strip())[1]


def _number(said: str) -> tuple[str, float | None]:
    """The manner in which ``said`` is written, and the score that it is."""
    for manner, form in _FORM.items():
        if found := form.fullmatch(said):
            return manner, _in_range(found)
    return "", None


def _in_range(found: re.Match[str]) -> float | None:
    """The number found; ``None`` over 100, and of a share of one."""
    digits = next(filter(None, found.groups()))
    value = float(digits)
    return None if value > 100 or ("." in digits and value <= 1) else value


def _value(found: re.Match[str]) -> float:
    return float(next(d for d in found.groups() if d and d[0].isdigit()))


def rivals(before: str, after: str, patient: str | None) -> set[float]:
    """The numbers around a bracketed one that could be the score in its place: all but those of a
    list, a scale, an age and the like, and the ``patient``'s, unless they look like a score or
    stand right in front of the bracket. One in words is NaN; none is over 100."""
    rest = SAYS["scale"].sub(" ", _plain(f"{before};{after}"))
    few = SAYS["measure"].sub(" ", rest)
    numbers = _values("alone", few) - all_numbers(patient or "")
    numbers |= _values("looks", rest) | _values("beside", few)
    if SAYS["in_words"].search(rest):
        numbers.add(math.nan)
    return {number for number in numbers if not number > 100}


def _values(form: str, text: str) -> set[float]:
    return {_value(number) for number in SAYS[form].finditer(text)}


_MARKS = re.compile(r"(?<![0-9])[*_`$]+|[*_`$]+(?![0-9])")


def _plain(text: str) -> str:
    """``text`` without Markdown's and LaTeX's marks, save those between two digits."""
    return _MARKS.sub("", text)


def _told(patient: str, manner: str) -> set[float]:
    """The numbers that stand in the patient's words as a score, or in the manner of this one."""
    found = _values("looks", _plain(patient))
    more = {"percent": "percent", "bare": "plain", "words": "plain"}.get(manner)
    return found | _values(more, patient) if more else found


def verdict(text: str) -> bool | None:
    """True or False, where the whole reply is "Answer: True", "The diagnosis is true." or a box, or
    begins with the word and does not take it back."""
    said = re.sub(r"[*_`$]", "", text).strip(" \t\r\n.!\"'")
    found = SAYS["verdict"].fullmatch(said)
    if found is None and (found := SAYS["reasoned"].fullmatch(said)):
        back = SAYS[f"back_from_{found[1].casefold()}"].search(found[2])
        found = None if back else found
    return None if found is None else next(filter(None, found.groups())).casefold() == "true"


# JSON

_KEYS = (
    "id", "description", "importance", "support_level", "evidence", "criteria", "summary",
    "confidence", "reasoning", "confidence_score", "prescriptions", "tests", "drug", "dose",
    "route", "quote", "reason", "rating", "flag",
)  # fmt: skip
_FIXED = {
    "importance": IMPORTANCES, "support_level": SUPPORT_LEVELS, "rating": RATINGS, "flag": FLAGS,
}  # fmt: skip
_IDS = (*IMPORTANCES, *SUPPORT_LEVELS)  # keys of a summary, whose lists hold ids
_DECODER = json.JSONDecoder()
_JSON = (dict, list, str, int, float, type(None))  # what a key may hold that comes once


def _fold(word: str) -> str:
    return re.sub(r"[\s_-]+", "", word).casefold()


_PRINTED = {_fold(word): word for word in (*_KEYS, *_IDS)} | {"criterion": "description"}
_SPELLED = {key: {_fold(w): w for w in words} for key, words in _FIXED.items()}


def only_value(text: str) -> str:
    """The only object, or list of objects, in ``text``; '' also where a bracket is left over: a
    part of something longer is none."""
    opens = SAYS["opens"].search(text)
    if opens is None:
        return ""
    start = opens.start()
    try:
        stop = _DECODER.raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        stop = _closes(text, start)
    rest = text[:start] + text[stop:]
    if re.search("[{}]", rest) or rest.count("[") != rest.count("]"):
        return ""
    if SAYS["not_meant"].search(text[:start].rstrip(" \t\r\n`*:").rpartition("\n")[2]):
        return ""
    return SAYS["unquoted"].sub(r'\1"\2"', text[start:stop])


def _closes(text: str, start: int) -> int:
    """Behind the bracket that closes the one at ``start``, else ``start``; strings count, too."""
    deep = 0
    for mark in re.compile(r"[\[\]{}]").finditer(text, start):
        deep += 1 if mark[0] in "[{" else -1
        if deep == 0:
            return mark.end()
    return start


def printed(value: Any, key: str = "") -> Any:
    """``value`` with its fixed words as they are asked for; ``ValueError`` where a key comes twice
    then."""
    if isinstance(value, dict):
        found: dict[str, Any] = {}
        for said, part in value.items():
            fixed = _PRINTED.get(_fold(said))
            if fixed and (fixed in found or not isinstance(part, _JSON)):
                raise ValueError(f"{fixed} comes twice")
            found[fixed or said] = printed(part, fixed or "")
        return found
    if isinstance(value, list):
        return [printed(part, "id" if key in _IDS else "") for part in value]
    if not isinstance(value, str):
        return value
    if key == "id":
        return int(value) if re.fullmatch(r"\s{0,9}[0-9]{1,4}\s{0,9}", value) else value
    return _SPELLED.get(key, {}).get(_fold(value), value)


def rows(value: Any, having: str = "") -> Any:
    """The list that ``value`` is, or its only list, or its only one of objects (which have the key
    ``having``)."""
    if isinstance(value, list):
        return value
    parts = unwrapped(value).values() if isinstance(value, dict) else ()
    lists = [p for p in parts if isinstance(p, list) and all(isinstance(row, dict) for row in p)]
    if having or len(lists) > 1:
        lists = [part for part in lists if part and all(having in row for row in part if having)]
    return lists[0] if len(lists) == 1 else None


def unwrapped(value: Any) -> Any:
    """``value``, or the object that it holds under a single key of no meaning."""
    for key, part in value.items() if isinstance(value, dict) else ():
        means = key in _KEYS or SAYS["not_meant"].search(key)
        if len(value) == 1 and isinstance(part, dict) and not means:
            return part
    return value


def assessment(value: Any) -> Any:
    """MedConf's evidence in its printed place: the table under ``criteria``, the score as
    "<<number>>" in ``confidence``."""
    if isinstance(value, list) and value:
        return {"criteria": value}
    if not isinstance(value, dict):
        return value
    value = _confident(unwrapped(value))
    if "criteria" not in value and (table := rows(value, "support_level")) is not None:
        value = {"criteria" if part is table else key: part for key, part in value.items()}
    summary = value.get("summary")
    return value | ({"summary": _confident(summary)} if isinstance(summary, dict) else {})


def _confident(held: dict[str, Any]) -> dict[str, Any]:
    """The same with the confidence, and its score, where they are asked for."""
    found = held.get("confidence")
    if "confidence" not in held and "confidence_score" in held:
        found = {k: held[k] for k in ("reasoning", "confidence_score") if k in held}
        held = {k: part for k, part in held.items() if k not in found}
    elif isinstance(found, str | int | float):
        found = {"confidence_score": found}
    if not isinstance(found, dict):
        return held
    said = str(found.get("confidence_score"))
    value = None if "[" in said else number(said)
    said = {} if value is None else {"confidence_score": f"<<{value!r}>>"}
    return held | {"confidence": found | said}
