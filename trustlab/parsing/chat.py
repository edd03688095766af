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
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from trustlab.files import read_yaml
from trustlab.records import FLAGS, IMPORTANCES, RATINGS, SUPPORT_LEVELS

_LISTS: dict[str, Any] = read_yaml(Path(__file__).with_name("chat.yml"))
_FORMS: dict[str, str] = _LISTS.pop("patterns")
WORDS = {name: text.replace(" | ", "|") for name, text in _LISTS.items()}
"""Name of a list in chat.yml -> its words, as a pattern."""
_BY_NAME = {name: words.replace(" ", r"\ ") for name, words in WORDS.items()} | _FORMS
_NAME_IN_BRACES = re.compile(r"\{(" + "|".join(_BY_NAME) + r")\}")


def _compiled(form: str) -> re.Pattern[str]:
    """``form`` with the words and patterns of chat.yml at their names in braces."""
    while _NAME_IN_BRACES.search(form):
        form = _NAME_IN_BRACES.sub(lambda braces: _BY_NAME[braces[1]], form)
    return re.compile(form, re.IGNORECASE | re.VERBOSE)


PATTERNS = {name: _compiled(form) for name, form in _FORMS.items()}
"""Name of a pattern in chat.yml -> the pattern."""


def has_pattern(text: str, pattern: str) -> bool:
    """Whether a pattern of chat.yml, by its name, occurs in ``text``."""
    return PATTERNS[pattern].search(text) is not None


def text_before(text: str, place: int, n: int) -> str:
    """The characters in front of a place, at most ``n``."""
    return text[max(0, place - n) : place]


# Answers

_TRIM = " \t*_\"'`\u201c\u201d.!"
_QUOTES = " \t*_\"'`\u201c\u201d\u2018\u2019"
_NO_LEAD = f"{_TRIM}->#:"  # a line with these alone says nothing


@dataclass(frozen=True)
class Span:
    """A part of a reply: ``reply[start:stop] == text``."""

    text: str
    start: int
    stop: int

    def trimmed(self, marks: str = _TRIM) -> Span:
        """The part without these characters at its ends."""
        from_first = self.text.lstrip(marks)
        start = self.stop - len(from_first)
        words = from_first.rstrip(marks)
        return Span(words, start, start + len(words))

    def behind(self, n: int) -> Span:
        """The part without its first ``n`` characters."""
        return Span(self.text[n:], self.start + n, self.stop)


def _group(match: re.Match[str], number: int = 1) -> Span:
    """A group of a match, with its place in the text."""
    return Span(match[number], *match.span(number))


def name(text: str) -> Span | None:
    """The one answer of a reply; ``None`` where there is any doubt."""
    if has_pattern(text, "bracket") or _has_denied_box(text):
        return None
    lines = _lines(text)
    boxed = [_group(box).trimmed() for box in PATTERNS["boxed"].finditer(text)]
    labelled = [span for span in map(_behind_label, lines) if span]
    stated = [
        sentence
        for sentence in PATTERNS["stated"].finditer(text)
        if is_whole(text, _group(sentence))
    ]
    bold = _bold_names(text)
    is_only = len(bold) == 1
    bold_answers = [span for span in bold if _is_bold_answer(text, span, is_only)]

    answers = [*boxed]
    for span in labelled:
        if span.stop > lines[-1].start or is_whole(text, span):
            answers.append(span)
    for sentence in stated:
        lead = text_before(text, sentence.start(), 300)
        if has_pattern(lead, "leads_in"):  # nothing, or what leads to a conclusion
            answers.append(_group(sentence))
    rivals = [*boxed, *labelled, *map(_group, stated)]
    rivals += bold_answers if answers else bold
    if not rivals:
        return _only_line(text)
    return _last_if_alike(answers or bold_answers, rivals)


def _last_if_alike(answers: list[Span], rivals: list[Span]) -> Span | None:
    """The last answer; ``None`` where its rivals are other names, or it is none."""
    names = set()
    for rival in rivals:
        words = rival.trimmed().text.casefold().split()
        names.add(" ".join(words))
    if not answers or len(names) > 1:
        return None
    last = max(answers, key=lambda answer: (answer.start, answer.stop)).trimmed()
    if has_pattern(last.text, "names_none"):
        return None
    return last


def is_whole(text: str, span: Span) -> bool:
    """Whether these words are a bare name, and the next line does not go on with another."""
    words = span.trimmed().text
    if not PATTERNS["bare_name"].fullmatch(words):
        return False
    if PATTERNS["goes_on"].match(text, span.stop):
        return False
    return not (has_pattern(words, "is_sentence") or has_pattern(words, "names_none"))


def spoken(text: str, label: str) -> Span | None:
    """The one line that the whole reply is, bare, in quotes or bold, behind this label (a pattern)
    and a colon, or JSON's only field; ``None`` where a bracket stands in it, or there is more."""
    field = PATTERNS["field"].fullmatch(text)
    if field and field[2]:
        if re.fullmatch(label, field[1], re.IGNORECASE):
            return _group(field, 2)
        return None
    lines = _lines(text)
    if len(lines) != 1 or re.search(r"[][{}<>]", text):
        return None
    line = lines[0].trimmed(_QUOTES)
    head = re.match(rf"(?:{label})[*_ \t]*:[*_ \t]*", line.text, re.IGNORECASE)
    if head:
        line = line.behind(head.end()).trimmed(_QUOTES)
    is_plain = line.text and not re.search('["\u201c\u201d]', line.text)
    return line if is_plain else None


def _only_line(text: str) -> Span | None:
    """The name that is the whole reply, perhaps behind a label."""
    line = spoken(text, "(?:final[ _])?(?:diagnosis|disease|answer|keyword)")
    if line is None or not is_whole(text, line):
        return None
    return line.trimmed()


def _lines(text: str) -> list[Span]:
    """The lines with something in them, without the white space around them."""
    lines = []
    for match in re.finditer(r"[^\r\n\u2028\u2029]+", text):
        line = _group(match, 0).trimmed(" \t\v\f\x85\u00a0")
        if line.text:
            lines.append(line)
    return lines


def _has_denied_box(text: str) -> bool:
    """Whether words in front of a box say that it is no answer."""
    boxes = PATTERNS["boxed"].finditer(text)
    leads = [text_before(text, box.start(), 40) for box in boxes]
    return any(has_pattern(lead, "not_this") for lead in leads)


def _behind_label(line: Span) -> Span | None:
    """The words behind "Diagnosis:" in this line, where there are some and no box."""
    label = PATTERNS["label"].match(line.text)
    if label is None or "\\boxed" in line.text:
        return None
    words = line.behind(label.end()).trimmed()
    if not words.text:
        return None
    return words


def _bold_names(text: str) -> list[Span]:
    """The words in bold, but headings, without the label that stands among them."""
    names = []
    for match in PATTERNS["bold"].finditer(text):
        bold = _group(match)
        words = _behind_label(bold) or bold.trimmed()
        is_heading = PATTERNS["a_heading"].fullmatch(words.text)
        if not is_heading and re.search(r"[^\W\d]", words.text):
            names.append(words)
    return names


def _is_bold_answer(text: str, bold: Span, is_only: bool) -> bool:
    """Whether words in bold end their line (the only ones: or their clause) and are what it says;
    a line of theirs alone is the reply's first or last."""
    above, _, before = text[: bold.start].rpartition("\n")
    after, _, below = text[bold.stop :].partition("\n")
    label = PATTERNS["label"].match(before)
    if label:
        before = before[label.end() :]
    clause = re.split(r"[.,;!?]\s", before[-300:])[-1]
    if has_pattern(clause, "denied"):
        return False
    if not before.strip(_NO_LEAD):
        line_above = above.rstrip().rpartition("\n")[2]
        if _is_another_heading(line_above):
            return False
    lead = before[-80:].rstrip(" \t*")
    ends_line = not after.strip(f"{_TRIM}\r")
    if not ends_line and not (is_only and _ends_clause(lead, after)):
        return False
    if not has_pattern(lead, "leads"):
        return False
    is_alone = not lead.strip(_NO_LEAD)
    is_between = above.strip() and below.strip()
    return not is_alone or not is_between


def _is_another_heading(line: str) -> bool:
    """Whether a line with a colon at its end is about something else than the answer."""
    if not line.rstrip(" *").endswith(":"):
        return False
    return not has_pattern(line, "asks") or has_pattern(line, "denied")


def _ends_clause(lead: str, after: str) -> bool:
    """Whether the clause around a name ends behind it, and the next does not deny it."""
    if not lead or re.search(r"\bha(?:s|ve)\b", lead):
        return False
    ends = PATTERNS["clause"].match(after)
    return bool(ends) and not has_pattern(after, "denied")


# Scores

_SCORE_FORMS = {
    manner: PATTERNS[f"form_{manner}"]
    for manner in ("bracket", "words", "fraction", "percent", "bare")
}
"""How a score may be written, each a manner of its own."""
_PATTERN_OF_MANNER = {"percent": "percent", "bare": "plain", "words": "plain"}
"""Manner -> the numbers in the patient's words that are none of the model's."""


class _Number(NamedTuple):
    """The manner in which a number is written, and the score that it is."""

    manner: str
    value: float | None


def score(text: str, patient: str | None = None) -> float | None:
    """The number from 0 to 100 that the last line is, or else a sentence gives; ``None`` where
    there is none, or any doubt."""
    value = _last_line_score(text, patient)
    if value is None:
        return _stated_score(text, patient)
    return value


def _last_line_score(text: str, patient: str | None) -> float | None:
    """The score that the last line is, alone or behind a label."""
    lines = _lines(text)
    if not lines:
        return None
    line = _plain(lines[-1].text).strip(" \t\"'").rstrip(".")
    line = re.sub(r"\A[-\u2022][ \t]+", "", line)
    label = PATTERNS["labelled"].match(line)
    if label:
        line = line[label.end() :]
    manner, value = _number(line)
    if value is None or has_pattern(text, "tenths"):
        return None
    if label is None:
        line_above = lines[-2].text if len(lines) > 1 else ""
        numbers_above = rivals(text[: lines[-1].start], "", patient)
        if _is_part_of(line_above, value) or numbers_above - {value}:
            return None
    plain = _plain(text)
    looks = PATTERNS["looks"].finditer(plain)
    n_bracketed = sum(match["bracket"] is not None for match in looks)
    if _values("looks", plain) - {value} or n_bracketed > 1:
        return None
    own_manner = "label" if label else manner
    patient_words = patient or ""
    patient_scores = _values("looks", _plain(patient_words))
    if own_manner in _PATTERN_OF_MANNER:
        patient_scores |= _values(_PATTERN_OF_MANNER[own_manner], patient_words)
    return None if value in patient_scores else value


def _is_part_of(line_above: str, value: float) -> bool:
    """Whether a number on a line of its own belongs to the line above: the next of a list, another
    number beside the score, or one of something else."""
    above = line_above.rstrip(" *")
    if re.match(rf"[-*\s]*{value - 1:g}[.)]|[-*\u2022][ \t]", above):
        return True
    if has_pattern(above, "another"):
        return True
    return above.endswith(":") and not has_pattern(above, "scored")


def _stated_score(text: str, patient: str | None) -> float | None:
    """The one number that sentences, labelled lines or JSON's only field give."""
    plain = _plain(text)
    statements: list[re.Match[str]] = []
    behind: list[str] = []  # what follows the last of them
    for sentence in re.split(r"(?<=[.!?])\s+|\n", plain):
        statement = PATTERNS["says"].search(sentence.strip())
        if statement:
            statements.append(statement)
            behind = [statement.string[statement.end() :]]
        elif statements:
            behind.append(sentence.strip())
    values = {number(_filled_group(statement)) for statement in statements}
    field = PATTERNS["field"].fullmatch(text)
    if field:
        label = field[1].replace("_", " ") + ":"
        is_score = PATTERNS["labelled"].fullmatch(label)
        values = {number(field[2] or field[3]) if is_score else None}
    numbers_beside = _values("looks", plain) | all_numbers("\n".join(behind))
    if len(values) != 1 or numbers_beside - values or has_pattern(text, "tenths"):
        return None
    if any(has_pattern(statement.string, "another") for statement in statements):
        return None
    if values & all_numbers(patient or ""):
        return None
    return values.pop()


def listed(text: str, n: int) -> tuple[float, ...] | None:
    """The ``n`` scores that are listed, numbered or not, perhaps behind words and a colon; ``None``
    where there is anything else, and where they count from 1."""
    lead, _, list_text = _plain(text).rpartition(":")
    list_text = list_text.strip(" \t\r\n.[]-\u2022")
    items = list(PATTERNS["item"].finditer(list_text))
    is_list = "".join(item[0] for item in items) == list_text
    if not is_list or re.search(r"[0-9\[\]]", lead):
        return None
    ordinals = list(range(1, n + 1))
    is_numbered = [item[1] for item in items] == list(map(str, ordinals))
    if not is_numbered and any(item[1] for item in items):
        return None
    scores = []
    for item in items:
        value = number(item[2])
        if value is None:
            return None
        scores.append(value)
    if len(scores) != n or scores == ordinals:
        return None
    return tuple(scores)


def guess(part: str) -> float | None:
    """The number that ``part`` begins with, where no other digit stands behind it."""
    first = PATTERNS["guess"].match(part)
    if first is None or re.search("[0-9]", part[first.end() :]):
        return None
    return _in_range(first)


@lru_cache(maxsize=64)  # a patient's words stand behind several questions
def all_numbers(text: str) -> frozenset[float]:
    """Every number of ``text`` in plain digits."""
    return frozenset(_values("plain", text))


def number(text: str) -> float | None:
    """The score from 0 to 100 that ``text`` is and nothing else."""
    return _number(text.strip()).value


def _number(text: str) -> _Number:
    """The number that ``text`` is and nothing else; its manner is '' where it is none."""
    for manner, form in _SCORE_FORMS.items():
        match = form.fullmatch(text)
        if match:
            return _Number(manner, _in_range(match))
    return _Number("", None)


def _in_range(match: re.Match[str]) -> float | None:
    """The number of a match; ``None`` over 100, and of a share of one."""
    digits = _filled_group(match)
    value = float(digits)
    is_share = "." in digits and value <= 1
    if value > 100 or is_share:
        return None
    return value


def _filled_group(match: re.Match[str]) -> str:
    """The first group of a match that holds something."""
    return next(group for group in match.groups() if group)


def rivals(before: str, after: str, patient: str | None) -> set[float]:
    """The numbers around a bracketed one that could be the score in its place: all but those of a
    list, a scale, an age and the like, and the ``patient``'s, unless they look like a score or
    stand right in front of the bracket. One in words is NaN; none is over 100."""
    plain = _plain(f"{before};{after}")
    around = PATTERNS["scale"].sub(" ", plain)
    unmeasured = PATTERNS["measure"].sub(" ", around)
    numbers = _values("alone", unmeasured) - all_numbers(patient or "")
    numbers |= _values("looks", around)
    numbers |= _values("beside", unmeasured)
    if has_pattern(around, "in_words"):
        numbers.add(math.nan)
    return {number for number in numbers if not number > 100}


def _values(pattern: str, text: str) -> set[float]:
    """The numbers that occur in the form of a pattern."""
    values = set()
    for match in PATTERNS[pattern].finditer(text):
        filled = filter(None, match.groups())
        digits = next(group for group in filled if group[0].isdigit())
        values.add(float(digits))
    return values


_MARKS = re.compile(r"(?<![0-9])[*_`$]+|[*_`$]+(?![0-9])")


def _plain(text: str) -> str:
    """``text`` without Markdown's and LaTeX's marks, save those between two digits."""
    return _MARKS.sub("", text)


def verdict(text: str) -> bool | None:
    """True or False, where the whole reply is "Answer: True", "The diagnosis is true." or a box, or
    begins with the word and does not take it back."""
    words = re.sub(r"[*_`$]", "", text).strip(" \t\r\n.!\"'")
    answer = PATTERNS["verdict"].fullmatch(words)
    if answer is None:
        answer = PATTERNS["reasoned"].fullmatch(words)
        if answer is None or has_pattern(
            answer[2], f"back_from_{answer[1].casefold()}"
        ):
            return None
    return _filled_group(answer).casefold() == "true"


# JSON

_KEYS = (
    "id",
    "description",
    "importance",
    "support_level",
    "evidence",
    "criteria",
    "summary",
    "confidence",
    "reasoning",
    "confidence_score",
    "prescriptions",
    "tests",
    "drug",
    "dose",
    "route",
    "quote",
    "reason",
    "rating",
    "flag",
)
_FIXED_WORDS = {
    "importance": IMPORTANCES,
    "support_level": SUPPORT_LEVELS,
    "rating": RATINGS,
    "flag": FLAGS,
}
_IDS = (*IMPORTANCES, *SUPPORT_LEVELS)  # keys of a summary, whose lists hold ids
_DECODER = json.JSONDecoder()
_JSON = (dict, list, str, int, float, type(None))  # what a key may hold that comes once


def _fold(word: str) -> str:
    return re.sub(r"[\s_-]+", "", word).casefold()


_PRINTED_KEYS = {_fold(key): key for key in (*_KEYS, *_IDS)} | {
    "criterion": "description"
}
_PRINTED_WORDS = {
    key: {_fold(w): w for w in words} for key, words in _FIXED_WORDS.items()
}


def only_value(text: str) -> str:
    """The only object, or list of objects, in ``text``; '' also where a bracket is left over: a
    part of something longer is none."""
    opening = PATTERNS["opens"].search(text)
    if opening is None:
        return ""
    start = opening.start()
    try:
        _, stop = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        stop = _closing(text, start)
    before = text[:start]
    around = before + text[stop:]
    if re.search("[{}]", around) or around.count("[") != around.count("]"):
        return ""
    line_before = before.rstrip(" \t\r\n`*:").rpartition("\n")[2]
    if has_pattern(line_before, "not_meant"):
        return ""
    return PATTERNS["unquoted"].sub(r'\1"\2"', text[start:stop])


def _closing(text: str, start: int) -> int:
    """Behind the bracket that closes the one at ``start``, else ``start``; strings count, too."""
    depth = 0
    for mark in re.compile(r"[\[\]{}]").finditer(text, start):
        depth += 1 if mark[0] in "[{" else -1
        if depth == 0:
            return mark.end()
    return start


def printed(value: Any, key: str = "") -> Any:
    """``value`` with its fixed words as they are asked for; ``ValueError`` where a key comes twice
    then."""
    if isinstance(value, dict):
        parts: dict[str, Any] = {}
        for own_key, part in value.items():
            fixed_key = _PRINTED_KEYS.get(_fold(own_key), "")
            if fixed_key and (fixed_key in parts or not isinstance(part, _JSON)):
                raise ValueError(f"{fixed_key} comes twice")
            parts[fixed_key or own_key] = printed(part, fixed_key)
        return parts
    if isinstance(value, list):
        part_key = "id" if key in _IDS else ""
        return [printed(part, part_key) for part in value]
    if not isinstance(value, str):
        return value
    if key == "id":
        is_number = re.fullmatch(r"\s{0,9}[0-9]{1,4}\s{0,9}", value)
        return int(value) if is_number else value
    return _PRINTED_WORDS.get(key, {}).get(_fold(value), value)


def rows(value: Any, key: str = "") -> Any:
    """The list that ``value`` is, or its only list, or its only one of objects (which have
    ``key``)."""
    if isinstance(value, list):
        return value
    if not isinstance(value, dict):
        return None
    tables = [part for part in unwrapped(value).values() if _is_table(part)]
    if key or len(tables) > 1:
        tables = [table for table in tables if table and _is_table(table, key)]
    return tables[0] if len(tables) == 1 else None


def _is_table(value: Any, key: str = "") -> bool:
    """Whether a value is a list of objects, each with this key."""
    if not isinstance(value, list):
        return False
    return all(isinstance(row, dict) and (not key or key in row) for row in value)


def unwrapped(value: Any) -> Any:
    """``value``, or the object that it holds under a single key of no meaning."""
    if not isinstance(value, dict) or len(value) != 1:
        return value
    key, part = next(iter(value.items()))
    if not isinstance(part, dict):
        return value
    if key in _KEYS or has_pattern(key, "not_meant"):
        return value
    return part


def assessment(value: Any) -> Any:
    """MedConf's evidence in its printed place: the table under ``criteria``, the score as
    "<<number>>" in ``confidence``."""
    if isinstance(value, list) and value:
        return {"criteria": value}
    if not isinstance(value, dict):
        return value
    parts = _with_score(unwrapped(value))
    table = None if "criteria" in parts else rows(parts, "support_level")
    if table is not None:
        parts = {
            "criteria" if part is table else key: part for key, part in parts.items()
        }
    summary = parts.get("summary")
    if isinstance(summary, dict):
        parts = parts | {"summary": _with_score(summary)}
    return parts


def _with_score(parts: dict[str, Any]) -> dict[str, Any]:
    """The same object with its confidence, and the score in it, where they are asked for."""
    confidence = parts.get("confidence")
    if "confidence" not in parts and "confidence_score" in parts:
        confidence = {
            key: parts[key] for key in ("reasoning", "confidence_score") if key in parts
        }
        parts = {key: part for key, part in parts.items() if key not in confidence}
    elif isinstance(confidence, str | int | float):
        confidence = {"confidence_score": confidence}
    if not isinstance(confidence, dict):
        return parts
    score_text = str(confidence.get("confidence_score"))
    value = None if "[" in score_text else number(score_text)
    if value is not None:
        confidence = confidence | {"confidence_score": f"<<{value!r}>>"}
    return parts | {"confidence": confidence}
