"""Reads a reply that is one JSON value.

A key that comes twice in one object has no value. json-repair may mend *punctuation*: commas,
colons, quotes, Python's true, false and null. Its result counts only if (1) the reply's brackets
close by themselves, (2) its words and brackets are the reply's, in order, and (3) no quotation mark
is left inside a string, as where one has run into the next.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import json_repair
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from trustlab.parsing import chat
from trustlab.parsing.reply import Unreadable
from trustlab.records import Reading, normalise

MAX_MENDED = 10_000  # characters: json-repair's time grows with the square of them
_FENCE = re.compile(r"\A```[A-Za-z]*[ \t]*\r?\n(.*?)\n?```\Z", re.DOTALL)
# what punctuation leaves
_WORD_OR_BRACKET = re.compile(r"""[\[\]{}]|[^\s\[\]{},:"'\\]+""")
_SPACE = re.compile(r"\\[nrt]")
_RUN_ON = re.compile(r"""\\"|'\s*[,:]""")


class _Repeated:
    # no address: a reason that shows it is the same in every run
    def __repr__(self) -> str:
        return "twice"


_REPEATED = _Repeated()  # the value of a key that comes twice in one object
_OPENING_OF = {"]": "[", "}": "{"}
Words = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)
]
Id = Annotated[int, Field(ge=0, le=9999)]
_Kind = TypeVar("_Kind", bound=BaseModel)
T = TypeVar("T")


class Strict(BaseModel):
    """A part of a reply: no value is turned into another type; further keys are let be."""

    model_config = ConfigDict(strict=True, extra="ignore")


def is_quoted(quote: str | None, words: str) -> bool | None:
    """Whether the quotation occurs in ``words``, which are normalised and between spaces."""
    if quote is None:
        return None
    quoted_words = normalise(quote)
    return bool(quoted_words) and f" {quoted_words} " in words


def an_object(value: Any) -> dict[str, Any]:
    """``value``, a JSON object; :class:`Unreadable` otherwise."""
    if not isinstance(value, dict):
        raise Unreadable("no JSON object")
    return value


def chat_value(text: str) -> Any:
    """The one JSON object, or list of objects, that a reply holds among other words, its fixed
    words as they are asked for (:mod:`trustlab.parsing.chat`)."""
    try:
        value = json_value(text)
    except Unreadable:
        part = chat.only_value(text)
        if not part:
            raise
        value = json_value(part)
    try:
        return chat.printed(value)
    except RecursionError as error:
        raise Unreadable("no JSON: nested too deep") from error
    except ValueError as error:
        raise Unreadable(str(error)) from error


def chatted(text: str, printed: Callable[[Any], Any]) -> tuple[Any, str]:
    """:func:`chat_value` in the ``printed`` form, and that as JSON."""
    value = printed(chat_value(text))
    try:
        return value, json.dumps(value, ensure_ascii=False, default=str)
    except RecursionError as error:
        raise Unreadable("no JSON: nested too deep") from error


def read_json(
    text: str,
    build: Callable[[Any, str], T],
    printed: Callable[[Any], Any],
    reading: Reading,
) -> T:
    """What ``build`` makes of the reply's JSON and its text; where it refuses and ``reading`` is
    "chat", of what is :func:`chatted`. :class:`Unreadable`: of the first, or of the second where
    the first found no JSON."""
    try:
        return build(json_value(text), text)
    except Unreadable as printed_error:
        if reading == "strict":
            raise
        try:
            return build(*chatted(text, printed))
        except Unreadable as chat_error:
            if str(printed_error).startswith("no JSON"):
                raise chat_error from None
            raise printed_error from None


def only_value(value: Any) -> Any:
    """What an object with one key holds, or ``value`` itself."""
    if isinstance(value, dict) and len(value) == 1:
        return next(iter(value.values()))
    return value


def json_value(text: str) -> Any:
    """The JSON object or list that the reply is; :class:`Unreadable` otherwise."""
    text = text.strip()
    fenced = _FENCE.match(text)
    if fenced:
        text = fenced[1].strip()
    if not text.startswith(("{", "[")):
        raise Unreadable("no JSON")
    try:
        return json.loads(text, object_pairs_hook=_without_repeats)
    # ValueError also for a number of thousands of digits
    except (ValueError, RecursionError):
        return _mended(text)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose repeated keys hold what no schema takes."""
    times = Counter(key for key, _ in pairs)
    parts = {}
    for key, value in pairs:
        parts[key] = value if times[key] == 1 else _REPEATED
    return parts


def _mended(text: str) -> Any:
    """What json-repair makes of ``text``, if only the punctuation differs."""
    if len(text) > MAX_MENDED:
        raise Unreadable(
            f"no JSON, and longer than the {MAX_MENDED} characters that are mended"
        )
    if not _is_bracketed_whole(text):
        raise Unreadable(
            "no JSON: its brackets do not close, or something follows them"
        )
    try:
        value = json_repair.loads(text)
        spelled = json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError) as error:
        raise Unreadable("no JSON") from error
    if _RUN_ON.search(spelled) or _words_and_brackets(spelled) != _words_and_brackets(
        text
    ):
        raise Unreadable("no JSON: more than its punctuation is wrong")
    return value


def _words_and_brackets(text: str) -> list[str]:
    """The words and brackets of ``text`` in order, Python's None as null."""
    words = _WORD_OR_BRACKET.findall(_SPACE.sub(" ", text).lower())
    return ["null" if word == "none" else word for word in words]


def _is_bracketed_whole(text: str) -> bool:
    """Whether ``text`` is one bracketed whole: each bracket closed, the first one last."""
    open_brackets: list[str] = []
    for i, character in enumerate(text):
        if character in "[{":
            open_brackets.append(character)
        elif character in _OPENING_OF:
            if not open_brackets or open_brackets.pop() != _OPENING_OF[character]:
                return False
            if not open_brackets:
                return i == len(text) - 1
    return False


def valid(kind: type[_Kind], row: Any, where: str) -> _Kind:
    """``row`` as ``kind``; :class:`Unreadable` says where (``where``) it is not."""
    if isinstance(row, dict):
        for key in kind.model_fields:
            if row.get(key) is _REPEATED:
                raise Unreadable(f"{where}: {key} comes twice")
    try:
        return kind.model_validate(row)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        place = ", ".join(filter(None, [where, field]))
        message = first["msg"]
        raise Unreadable(f"{place}: {message[0].lower()}{message[1:]}") from error
