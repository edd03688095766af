"""Checks a choice of the user and says what is allowed."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, TypeVar, dataclass_transform

import numpy as np
import pandas as pd
from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass

Chosen = TypeVar("Chosen", bound="type[Any]")

STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, arbitrary_types_allowed=True)
"""No text for a number, no True for a 1, no other names."""
WRITABLE = "text that UTF-8 can write, without half surrogates"


def utf8(value: object) -> bool:
    r"""Whether all text in ``value``, names and lists too, is :data:`WRITABLE`: JSON may spell half
    a character, ``\ud800``."""
    if isinstance(value, Mapping):
        return all(map(utf8, (*value, *value.values())))
    if isinstance(value, list | tuple):
        return all(map(utf8, value))
    try:
        return not isinstance(value, str | Path) or str(value).encode() is not None
    except UnicodeEncodeError:
        return False


KEY_WORDS = {
    "auth", "authentication", "authorization", "bearer", "cookie", "cookies", "credential",
    "credentials", "header", "headers", "jwt", "oauth", "passphrase", "passwd", "password",
    "passwords", "pwd", "secret", "secrets", "accesskey", "accesstoken", "apikey", "apitoken",
    "authkey", "authtoken", "privatekey", "privatetoken", "secretkey", "secrettoken",
}  # fmt: skip
"""Words in the name of what may be a key."""
KEY_ENDS = ("key", "keys", "token")
"""Last words of such a name."""
NO_KEYS = {"bos", "cls", "eos", "mask", "pad", "per", "sep", "special", "stop", "unk"}
"""Words before the last in names of what is none."""
KEY_BEGINS = (
    r"sk-|gh[oprsu]_|github_pat_|glpat-|gsk_|r8_|AIza|ya29\.|nvapi-|tgp_|xox[abprs]-|AKIA|ASIA"
)
"""How keys begin, and no name of a model."""
KEY_OR_MODEL_BEGINS = "hf_|pplx-|xai-"
KEY_LIKE = re.compile(
    rf"(?<![\w-])(?:{KEY_BEGINS})(?:(?=[\w-]*\d)[\w-]{{6,}}|[\w-]{{16,}})"
    rf"|(?<![\w-])(?:{KEY_OR_MODEL_BEGINS})(?:(?=[^\W_]*\d)[^\W_]{{8,}}|[\w-]{{20,}})"
    r"|(?<![\w-])eyJ[\w-]{8,}\.[\w.-]+|-----BEGIN [A-Z ]*PRIVATE KEY"
    r"|(?i:(?<=bearer ))\S{8,}|(?i:(?<=basic ))(?=\S*(?:\d|=|[a-z][A-Z]))[\w+/-]{6,}={0,2}"
    r"|(?<=://)[^\s/@:]*:[^\s/@]+(?=@)"
)
"""What looks like a key, whoever gives it out: also ``Basic`` credentials (base64 mixes cases, and
words do not), and a login in an address."""


def names_key(name: str) -> bool:
    """Whether a value of this name may be a key: "api-key", "hfToken", "key2", "x_auth", not
    "eos_token" or "max_tokens"."""
    snake_case = re.sub("(?<=[a-z])(?=[A-Z])", "_", name).lower()
    words = re.findall("[a-z]+", snake_case) or [""]
    ends_as_key = words[-1] in KEY_ENDS and NO_KEYS.isdisjoint(words[-2:-1])
    return ends_as_key or not KEY_WORDS.isdisjoint(words)


def may_be_token(part: str) -> bool:
    """Whether a part of an address's path may be a token: 12 letters and digits mixed, or more,
    without a break."""
    pieces = re.split(r"[-._]", part)
    return any(len(p) >= 12 and re.search(r"\d", p) and re.search("[a-zA-Z]", p) for p in pieces)


def check_no_key(called: str, value: object) -> None:
    """``ValueError`` for what may carry a key, which would be written into notebook and manifest;
    nothing of the value is repeated. Names are those of mappings, of pairs in a list, and in text
    those before "=".
    """
    where = "set OPENAI_API_KEY, and OPENAI_BASE_URL, in the environment: parameters are written"
    where += " into notebooks and manifests"
    if isinstance(value, Mapping):
        pair = (value.get("name"), value.get("value"))
        for name, part in [*value.items(), pair]:
            check_no_key(called, str(name))
            if names_key(str(name)):
                raise ValueError(f"{called} has {str(name)!r}, which may carry a key; {where}")
            if name == "base_url" and (
                re.search(r"[@?#]", str(part)) or any(map(may_be_token, str(part).split("/")[3:]))
            ):
                what = "a login, a query or what looks like a token"
                raise ValueError(f"{called} has a base_url with {what}; {where}")
            check_no_key(called, part)
    elif isinstance(value, list | tuple | set | frozenset):
        for part in value:
            if isinstance(part, list | tuple) and len(part) == 2 and isinstance(part[0], str):
                part = {part[0]: part[1]}
            check_no_key(called, part)
    elif isinstance(value, str) and (
        KEY_LIKE.search(value) or any(map(names_key, re.findall(r"([\w-]+)=\S", value)))
    ):
        raise ValueError(f"{called} holds what looks like a key; {where}")


ARRAYS = (np.ndarray, pd.Series, pd.Index, pd.api.extensions.ExtensionArray)


def plain(value: Any) -> Any:
    """``value`` in Python's own types: a NumPy or pandas scalar as the number or text that it is;
    an array, a column, a range or a tuple as a list; what a dict or a list contains likewise."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, ARRAYS):
        return plain(value.tolist())
    if isinstance(value, dict):
        return {plain(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple | range):
        return [plain(part) for part in value]
    return value


@dataclass_transform(frozen_default=True, kw_only_default=True)
def choices(chosen: Chosen) -> Chosen:
    """Make the class a frozen dataclass whose values pydantic checks.

    Its errors are one line: parameter, received value, what is allowed. What may be a key is
    refused first, so that no other error repeats it. Values of NumPy and pandas become Python's
    (:func:`plain`).
    """
    made: Any = dataclass(frozen=True, kw_only=True, config=STRICT)(chosen)
    checked = made.__init__

    @functools.wraps(checked)
    def init(self: Any, **received: Any) -> None:
        values = {name: plain(value) for name, value in received.items()}
        for name, value in values.items():
            check_no_key(name, value)
            if not utf8(value):
                raise ValueError(f"{name} is {value!r}; it must be {WRITABLE}")
        try:
            checked(self, **values)
        except ValidationError as error:
            raise ValueError(_told(type(self), error, values)) from None

    made.__init__ = init
    return made


def _told(chosen: type[Any], error: ValidationError, values: Mapping[str, Any]) -> str:
    first = error.errors()[0]
    name = str(first["loc"][0]) if first["loc"] else ""
    if first["type"] == "value_error":
        return str(first.get("ctx", {})["error"])
    if first["type"] == "unexpected_keyword_argument":
        return unknown(name, names_of(chosen))
    about = chosen.__pydantic_fields__.get(name)
    allowed = about.description if about and about.description else first["msg"]
    if first["type"] == "missing":
        return f"{name} is not given; it must be {allowed}"
    return f"{name} is {values.get(name, first['input'])!r}; it must be {allowed}"


def unknown(name: str, known: Sequence[str], of: str = "there is") -> str:
    """The message for an unknown name: near names, and all."""
    near = difflib.get_close_matches(name, known, n=3)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    return f"{of} no parameter {name!r}; {hint}known are {', '.join(known)}"


def names_of(chosen: type[Any]) -> list[str]:
    """The names that a class of choices takes: its fields without those that it says are unused."""
    return [f.name for f in fields(chosen) if f.name not in getattr(chosen, "UNUSED", ())]


Count = Annotated[int, Field(ge=1, description="a whole number, at least 1")]
Seed = Annotated[int, Field(ge=0, description="a whole number, at least 0")]
Warmth = Annotated[float, Field(gt=0, lt=100, description="a number above 0 and below 100")]
Weight = Annotated[float, Field(ge=0, lt=1e6, description="a number, at least 0")]
Chance = Annotated[float, Field(gt=0, lt=1, description="a number above 0 and below 1")]
Switch = Annotated[bool, Field(description="True or False")]
Options = Annotated[dict[str, Any], Field(description="a mapping of names to values (a dict)")]
Counts = Annotated[
    Sequence[Count],
    Field(min_length=1, description="a list of whole numbers, at least 1 each, not empty"),
]
