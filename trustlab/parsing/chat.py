r"""Replies as chat models write them: read only where the printed form is not (``reading="chat"``).

- An answer: ``\boxed{Flu}``, a line "Diagnosis: Flu" (or answer, or keyword), "The diagnosis is
  flu.", or, where none of these stands, the only words in bold; else the whole reply: a bare name
  (a line of at most eight words without a verb), or JSON with that field alone. No other square
  bracket than a citation's stands beside it; two names are none, and so are several in one, a
  heading, a hedge and a sentence.
- A score: the last line is the number alone, or a line or sentence gives it ("Confidence: 95",
  "Your score is 95.", "I'm 95 % sure"). The number is bare, in square or double angle brackets or
  boxed, with ``%``, ``/100`` or "out of 100". A share of one (0.85) is no score, and no other
  number in the reply may look like one. A number that the patient's words have in the same manner
  is never the model's, nor in a sentence any of theirs. Several scores: a list and nothing else.
- True or False: the word, then a sentence that does not take it back.
- What is to be spoken: one line, bare, in quotes or behind a label ("Question:").
- JSON: the only object, or list of objects, in the reply, whatever words or fence stand around it.
  Of its fixed words case, spaces, hyphens and underscores do not count; an id may be text.

Places and plain values come back, what is not read is ``None`` or left as it was.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trustlab.paths import read_yaml
from trustlab.records import FLAGS, IMPORTANCES, RATINGS, SUPPORT_LEVELS

_LISTS: dict[str, str] = read_yaml(Path(__file__).with_name("chat.yml"))
WORDS = {name: text.replace(" | ", "|") for name, text in _LISTS.items()}
"""Name of a list in chat.yml -> its words, as a pattern."""


def _pattern(form: str) -> re.Pattern[str]:
    """``form`` with the words of chat.yml at their names in braces."""
    named = re.compile(r"\{(" + "|".join(WORDS) + r")\}")
    return re.compile(named.sub(lambda found: WORDS[found[1]], form), re.IGNORECASE)


# Answers

Place = tuple[int, int]
"""Where a part of a text begins, and where it ends."""
_BOXED = re.compile(
    r"\\boxed\{[ \t]*(?:\\(?:text|textbf|textit|mathrm|mathbf)\{[ \t]*)?([^{}\\$\n]{1,200})\}"
)
_BOLD = re.compile(r"(?<!\*)\*\*([^*\n]{1,199}[^*\n:]|[^*\n:])\*\*(?![*:])")
_LABEL = re.compile(
    r"[ \t>#*_-]{0,20}(?:(?:my|the|final|main|primary|working|likely|most likely|single)[ \t]+)*"
    r"(?:diagnosis|answer|keyword)[*_ \t]{0,9}:[*_ \t]{0,9}",
    re.IGNORECASE,
)
_LEADS = _pattern(r"\A[\s>]*\Z|\b(?:{lead})(?:[ \t]+an?|[ \t]+the)?[\s:\u2013\u2014-]{0,9}\Z")
"""What stands before a name in bold: nothing, or the last words of a sentence that gives it."""
_DENIED = _pattern(r"n['\u2019]t\b|\b(?:{denial})(?!\w)")
"""Words of a clause which denies the name in bold, or says that there is a better one."""
_ASKED = _pattern("{asked}")
"""Words of a line with a colon at its end, and the answer in bold below it."""
_NOT_THIS = re.compile(
    r"(?:\b(?:not|never|than|format|example)|n['\u2019]t)(?:[ \t]+(?:is|an?|the))*[\s:$*(\\]*\Z",
    re.IGNORECASE,
)
"""What stands before a box that is no answer."""
_PLACE_HELD = _pattern("{unfilled}")
"""Words of a form that nobody filled in, or which name nothing."""
_HEADING = _pattern(r"(?:\w+ ){0,2}(?:{heading})")
_NO_NAME = _pattern(r"[][{}\\$*,;/?|<>=:%\u2192]|\.\s|--|\b\d+\)|\b(?:{no_name})\b")
_SENTENCE = _pattern(
    r"\b(?:{sentence})\b|\b(?:{sentence_end})\Z|\A(?:{courtesy})\Z|\A(?:{order})\b"
)
_BARE = re.compile(
    r"(?=[A-Za-z\u00c0-\u024f])(?:[A-Za-z\u00c0-\u024f0-9'\u2019()\u2010-\u2015-]+(?: |\Z)){1,8}"
)
_STATED = re.compile(
    r"\b(?:the|my|your)[ \t]+(?:(?:most|likely|final|main|primary|single|specific|working)[ \t]+"
    r"){0,3}diagnosis[ \t]+is[ \t]*:?[ \t]+(?:an?[ \t]+|the[ \t]+)?([^.!?\n]{3,199})(?=[.!\n]|\Z)",
    re.IGNORECASE,
)
_LEADS_IN = re.compile(
    r"(?:\A|[.!?\n])\s*(?:(?:so|thus|therefore|hence|based on|given|overall|in (?:conclusion"
    r"|summary))\b[^.!?\n]{0,200}[, ]\s*)?\Z",
    re.IGNORECASE,
)
"""What may stand in front of "the diagnosis is"."""
_GOES_ON = re.compile(r"[.!*\s-]{0,9}(?:or|and|vs)\b", re.IGNORECASE)
_CLAUSE = re.compile(
    r"\**(?:\.\s|,?[ \t]+(?:which|because|since|given)\b)(?!.*\b(?:or|may|could)\b)"
)
"""What may follow the only name in bold on its line."""
_FIELD = re.compile(
    r"\s*(?:```\w*\s*)?\{\s*\"([\w ]{1,40})\"\s*:\s*(?:\"([^\"\\\n]{1,600})\"|([0-9.]{1,9}))\s*\}"
    r"\s*(?:```\s*)?"
)
"""JSON with one field, and its words or number."""
_BRACKET = re.compile(r"(?<!\\)\[(?!\s{0,9}[0-9, ]{1,9}\])")
_TRIM = " \t*_\"'`\u201c\u201d.!"
_QUOTES = " \t*_\"'`\u201c\u201d\u2018\u2019"


def name(text: str) -> Place | None:
    """Where the one answer of a reply stands; ``None`` where there is none, or any doubt."""
    if _BRACKET.search(text):
        return None
    lines = list(_lines(text))
    boxes = list(_BOXED.finditer(text))
    if any(_NOT_THIS.search(text[max(0, box.start() - 40) : box.start()]) for box in boxes):
        return None
    boxed = [_trimmed(text, *found.span(1)) for found in boxes]
    labelled = [place for line in lines if (place := _after_label(text, *line))]
    told_of = [(a, b) for a, b in labelled if b > lines[-1][0] or _is_whole(text, a, b)]
    given = [found for found in _STATED.finditer(text) if _is_whole(text, *found.span(1))]
    before = [(text[max(0, found.start() - 300) : found.start()], found) for found in given]
    stated = [found.span(1) for lead, found in before if _LEADS_IN.search(lead)]
    bold = [_unlabelled(text, *found.span(1)) for found in _BOLD.finditer(text)]
    bold = [(a, b) for a, b in bold if not _HEADING.fullmatch(text[a:b])]
    bold = [(a, b) for a, b in bold if re.search(r"[^\W\d]", text[a:b])]
    told = [place for place in bold if _is_told(text, *place, only=len(bold) == 1)]
    taken = sorted([*boxed, *told_of, *stated])
    rivals = [*boxed, *labelled, *(found.span(1) for found in given), *(told if taken else bold)]
    taken = taken or told
    names = {" ".join(text[slice(*_trimmed(text, *r))].casefold().split()) for r in rivals}
    if not rivals and (place := spoken(text, "(?:final[ _])?(?:diagnosis|disease|answer|keyword)")):
        return _trimmed(text, *place) if _is_whole(text, *place) else None
    if not taken or len(names) != 1:
        return None
    a, b = _trimmed(text, *taken[-1])
    return None if _NO_NAME.search(text[a:b]) or _PLACE_HELD.fullmatch(text[a:b]) else (a, b)


def _is_whole(text: str, start: int, stop: int) -> bool:
    """Whether these words are a bare name, and the next line does not go on with another."""
    words = text[slice(*_trimmed(text, start, stop))]
    if not _BARE.fullmatch(words) or _GOES_ON.match(text, stop):
        return False
    return not (_SENTENCE.search(words) or _NO_NAME.search(words) or _PLACE_HELD.fullmatch(words))


def spoken(text: str, label: str) -> Place | None:
    """The one line that the whole reply is, bare, in quotes or bold, behind this label and a colon,
    or JSON's only field; ``None`` where a bracket stands in it, or there is more."""
    if (field := _FIELD.fullmatch(text)) and field[2]:
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
    label = _LABEL.match(text, start, stop)
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
    before, after, rest = text[a:start], text[stop:], ""
    if b >= 0:
        after, rest = text[stop:b], text[b:]
    if label := _LABEL.match(before):
        before = before[label.end() :]
    said = re.split(r"[.,;!?]\s", before[max(0, len(before) - 300) :])[-1]
    above = text[:a].rstrip().rpartition("\n")[2] if not before.strip(f"{_TRIM}->#:") else ""
    if _DENIED.search(said):
        return False
    if above.rstrip(" *").endswith(":") and (_DENIED.search(above) or not _ASKED.search(above)):
        return False
    before = before[max(0, len(before) - 80) :].rstrip(" \t*")
    if only and before and _CLAUSE.match(after) and not re.search(r"\bha(?:s|ve)\b", before):
        after = "" if not _DENIED.search(after) else after
    if after.strip(f"{_TRIM}\r") or not _LEADS.search(before):
        return False
    return bool(before.strip(f"{_TRIM}->#:")) or not text[:a].strip() or not rest.strip()


# Scores

_N = r"([0-9]{1,3}(?:\.[0-9]{1,9})?)"
_OF = r"[ \t]{0,3}(?:\\?%|/[ \t]{0,3}100)"
_FORMS = {
    "bracket": rf"\[[ \t]{{0,3}}{_N}(?:{_OF})?[ \t]{{0,3}}\]|\[[ \t]{{0,3}}{_N}[ \t]{{0,3}}\]{_OF}"
    rf"|<<[ \t]{{0,3}}{_N}(?:{_OF})?[ \t]{{0,3}}>>|\\boxed\{{[ \t]{{0,3}}{_N}(?:{_OF})?\}}",
    "words": rf"(?:{_N}|\[[ \t]{{0,3}}{_N}[ \t]{{0,3}}\])[ \t]{{1,3}}(?:(?:out )?of 100|percent)",
    "fraction": rf"{_N}[ \t]{{0,3}}/[ \t]{{0,3}}100",
    "percent": rf"{_N}[ \t]{{0,3}}%",
    "bare": _N,
}
"""How a score may be written, each a manner of its own."""
_FORM = {manner: re.compile(form) for manner, form in _FORMS.items()}
_LABELLED = re.compile(
    r"(?:(?:my|the|final|overall|estimated)[ \t]+)*(?:confidence|certainty|score|answer)"
    r"(?:[ \t]+(?:score|level|rating|estimate))?[ \t]*:[ \t]*",
    re.IGNORECASE,
)
_DIGITS = r"([0-9]{1,20}(?:\.[0-9]{1,20})?)"
_LOOKS = re.compile(
    rf"(?P<bracket>\[\s{{0,3}}{_DIGITS}|<<\s{{0,3}}{_DIGITS}|\\boxed\{{\s{{0,3}}{_DIGITS})"
    r"|(?:confiden\w{0,9}|certain\w{0,9}|score|rating|probability|likelihood)\b"
    rf"[^0-9\n]{{0,20}}{_DIGITS}"
    rf"|(?<![0-9.]){_DIGITS}[ \t]{{0,3}}(?:%[ \t]{{0,3}})?"
    r"(?:/[ \t]{0,3}100(?![0-9])|out of 100|confiden|certain|sure\b|likely|probab)",
    re.IGNORECASE,
)
"""Numbers that look like a score, wherever they stand."""
_PERCENT = re.compile(rf"(?<![0-9.]){_DIGITS}[ \t]{{0,3}}%")
_PLAIN = re.compile(rf"(?<![0-9.]){_DIGITS}")
_GUESS = re.compile(rf"[\s*`]{{0,9}}(?:{'|'.join(_FORMS.values())})(?![\w%/.][0-9\w]|\w)")
_NUMBER = (
    r"([\[<]{0,2}[0-9]{1,3}(?:\.[0-9]{1,9})?[\]>]{0,2}"
    r"(?:[ \t]?%|[ \t]?/[ \t]?100|[ \t](?:out )?of 100|[ \t]percent)?)"
)
_SAYS = re.compile(
    r"\b(?:(?:my|your|the|final|overall)[ \t]+){1,3}(?:confidence|certainty|score|rating)[ \t]+"
    r"(?:(?:score|level|rating)[ \t]+)?(?:in[ \t][\w \t]{1,30}[ \t](?:diagnosis|answer|it)[ \t]+)?"
    rf"is[ \t]*:?[ \t]+{_NUMBER}[.!]?\Z"
    rf"|\bi(?:['\u2019]m|[ \t]am)[ \t]+{_NUMBER}[ \t]+(?:confident|certain|sure)\b"
    rf"|\bi(?:['\u2019]d|[ \t]would)[ \t]+say[ \t]+{_NUMBER}[.!]?\Z"
    rf"|\A[>#\s-]{{0,9}}{_LABELLED.pattern}{_NUMBER}[.]?\Z",
    re.IGNORECASE,
)
"""A sentence, or a labelled line, that gives a score."""
_ITEM = re.compile(
    r"(?:([1-9])[.)][ \t]+)?\[?([0-9]{1,3}(?:\.[0-9]{1,9})?)[ \t]{0,3}%?"
    r"(?:[\s,;\[\]]+(?:(?<=\n)[-\u2022][ \t]+)?|\Z)"
)
"""A score in a list, and the number in front of it."""
_TENTHS = re.compile(r"\b[01][ \t]*(?:-|\u2013|to)[ \t]*10(?![0-9])")
"""Another scale than the one that was asked for."""
_ANOTHER = re.compile(
    r"n['\u2019]t\b|\b(?:uncertain\w*|doubt\w*|incorrect|wrong|not|unlikely|error)\b", re.IGNORECASE
)
_SCORED = re.compile(
    r"confiden|certain|answer|probab|likel|sure\b|100|(?:my|the|final|overall)\s+score",
    re.IGNORECASE,
)


def _alone(lines: list[str], value: float) -> bool:
    """Whether a number on a line of its own, the last of these, is one: no part of a list, not
    another number beside one, and not said of something else."""
    above = lines[-2].rstrip(" *") if len(lines) > 1 else ""
    if any(number(_plain(line)) not in (None, value) for line in lines[:-1]):
        return False
    if re.match(rf"[-*\s]*{value - 1:g}[.)]|[-*\u2022][ \t]", above) or _ANOTHER.search(above):
        return False
    return not above.endswith(":") or _SCORED.search(above) is not None


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
    label = _LABELLED.match(said)
    manner, value = _number(said[label.end() :] if label else said)
    if value is None or _TENTHS.search(text):
        return None
    if not label and not _alone([text[slice(*line)] for line in lines], value):
        return None
    looks = [(found["bracket"], _value(found)) for found in _LOOKS.finditer(_plain(text))]
    if {v for _, v in looks} - {value} or sum(b is not None for b, _ in looks) > 1:
        return None
    own = "label" if label else manner
    return None if value in _told(patient or "", own) else value


def _stated_score(text: str, patient: str | None) -> float | None:
    """The one number that sentences, labelled lines or JSON's only field give."""
    said = [one.strip() for one in re.split(r"(?<=[.!?])\s+|\n", _plain(text))]
    given = [(k, found) for k, one in enumerate(said) if (found := _SAYS.search(one))]
    values = {number(next(filter(None, found.groups()))) for _, found in given}
    others = {_value(found) for found in _LOOKS.finditer(_plain(text))}
    for k, found in given[-1:]:
        others |= all_numbers("\n".join([said[k][found.end() :], *said[k + 1 :]]))
    if field := _FIELD.fullmatch(text):
        rated = _LABELLED.fullmatch(field[1].replace("_", " ") + ":")
        values = {number(field[2] or field[3]) if rated else None}
    if len(values) != 1 or others - values or _TENTHS.search(text):
        return None
    denied = any(_ANOTHER.search(said[k]) for k, _ in given)
    return None if denied or values & all_numbers(patient or "") else values.pop()


def listed(text: str, n: int) -> tuple[float, ...] | None:
    """The ``n`` scores that are listed, numbered or not; ``None`` where anything else but words and
    a colon in front stands there, and where they count from 1."""
    lead, _, said = _plain(text).rpartition(":")
    said = said.strip(" \t\r\n.[]-\u2022")
    items, counted = list(_ITEM.finditer(said)), list(range(1, n + 1))
    marks = [item[1] for item in items]
    values = tuple(value for item in items if (value := number(item[2])) is not None)
    if "".join(item[0] for item in items) != said or re.search(r"[0-9\[\]]", lead):
        return None
    if marks not in ([None] * n, list(map(str, counted))) or list(values) == counted:
        return None
    return values if len(values) == n else None


def guess(part: str) -> float | None:
    """The number that ``part`` begins with, where no other digit stands behind it; ``None``
    otherwise."""
    found = _GUESS.match(part)
    if found is None or re.search("[0-9]", part[found.end() :]):
        return None
    return _in_range(found)


def all_numbers(text: str) -> set[float]:
    """Every number of ``text`` in plain digits."""
    return set(map(_value, _PLAIN.finditer(text)))


def number(said: str) -> float | None:
    """The score from 0 to 100 that ``said`` is and nothing else; ``None`` otherwise."""
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


_MARKS = re.compile(r"(?<![0-9])[*_`$]+|[*_`$]+(?![0-9])")


def _plain(text: str) -> str:
    """``text`` without Markdown's and LaTeX's marks, save those between two digits."""
    return _MARKS.sub("", text)


def _told(patient: str, manner: str) -> set[float]:
    """The numbers that stand in the patient's words as a score, or in the manner of this one."""
    found = {_value(one) for one in _LOOKS.finditer(_plain(patient))}
    more = {"percent": _PERCENT, "bare": _PLAIN, "words": _PLAIN}.get(manner)
    return found if more is None else found | {_value(one) for one in more.finditer(patient)}


_VERDICT = re.compile(
    r"(?:(?:my|the|final)\s+)*(?:answer|verdict|judge?ment)\s*:\s*(true|false)"
    r"|\\boxed\{\s*(?:\\text\{\s*)?(true|false)\s*\}{1,2}"
    r"|(?:(?:the|this)\s+(?:proposed\s+)?(?:diagnosis|statement|answer)|it|this|that)\s+is\s+"
    r"(true|false)",
    re.IGNORECASE,
)
_REASONED = re.compile(r"(true|false)(?:[.!]\s+|\s*\n\s*)([^][{}]+)", re.IGNORECASE)
"""The word, then a sentence."""
_BACK = r"however|but|although|though|unless|may|might|could|if|or|doubt\w*|unsure|unclear"
_TAKES_BACK = {
    "true": rf"\?|n['\u2019]t\b|\b(?:{_BACK}|not|no|never|false|incorrect|wrong|unlikely)\b",
    "false": rf"\?|\b(?:{_BACK}|(?<!not )(?:true|correct|accurate|likely)|is right)\b",
}
"""What a sentence behind each word may not say."""


def verdict(text: str) -> bool | None:
    """True or False, where the whole reply is "Answer: True", "The diagnosis is true." or a box
    around the word, or begins with the word and reasons that do not take it back."""
    said = re.sub(r"[*_`$]", "", text).strip(" \t\r\n.!\"'")
    found = _VERDICT.fullmatch(said)
    if found is None and (found := _REASONED.fullmatch(said)):
        back = re.search(_TAKES_BACK[found[1].casefold()], found[2], re.IGNORECASE)
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
_IDS = (*IMPORTANCES, *SUPPORT_LEVELS)
"""Keys of a summary, whose lists hold ids."""
_OPENS = re.compile(r"\{|\[\s{0,99}\{")
_UNQUOTED = re.compile(r"""(confidence_?score["']?\s{0,9}:\s{0,9})(<<[^<>"\n]{1,20}>>)""", re.I)
_NOT_MEANT = re.compile(
    r"(?:\b|_)(?:not|never|avoid|exclu\w+|contra\w+|reject\w+|unlikely|examples?|templates?|formats?"
    r"|wrong|incorrect)(?:\b|_)",
    re.IGNORECASE,
)
"""Words of a key, or of the line before the JSON, which say that it is not the reply."""
_DECODER = json.JSONDecoder()
_JSON = (dict, list, str, int, float, type(None))
"""What a key may hold that comes once."""


def _fold(word: str) -> str:
    return re.sub(r"[\s_-]+", "", word).casefold()


_PRINTED = {_fold(word): word for word in (*_KEYS, *_IDS)} | {"criterion": "description"}
_SPELLED = {key: {_fold(w): w for w in words} for key, words in _FIXED.items()}


def only_value(text: str) -> str:
    """The object, or list of objects, that stands in ``text``; '' where there is none or another,
    and where a bracket is left over: a part of something longer is none."""
    opens = _OPENS.search(text)
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
    if _NOT_MEANT.search(text[:start].rstrip(" \t\r\n`*:").rpartition("\n")[2]):
        return ""
    return _UNQUOTED.sub(r'\1"\2"', text[start:stop])


def _closes(text: str, start: int) -> int:
    """Behind the bracket that closes the one at ``start``, strings not told apart; ``start`` where
    none does."""
    deep = 0
    for mark in re.compile(r"[\[\]{}]").finditer(text, start):
        deep += 1 if mark[0] in "[{" else -1
        if deep == 0:
            return mark.end()
    return start


def printed(value: Any, key: str = "") -> Any:
    """``value`` with its fixed words as they are asked for; ``ValueError`` with the key where one
    of an object's comes twice then."""
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
    ``having``); ``None`` where there is none, or more."""
    if isinstance(value, list):
        return value
    lists = [
        part
        for part in (unwrapped(value).values() if isinstance(value, dict) else ())
        if isinstance(part, list) and all(isinstance(row, dict) for row in part)
    ]
    if having or len(lists) > 1:
        lists = [part for part in lists if part and all(having in row for row in part if having)]
    return lists[0] if len(lists) == 1 else None


def unwrapped(value: dict[str, Any]) -> dict[str, Any]:
    """``value``, or the object that it holds under a single key of no meaning."""
    for key, part in value.items():
        means = key in _KEYS or _NOT_MEANT.search(key)
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
    value = number(str(found.get("confidence_score")))
    said = {} if value is None else {"confidence_score": f"<<{value!r}>>"}
    return held | {"confidence": found | said}
