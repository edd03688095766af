"""Checks a choice of the user and says what is allowed."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar, dataclass_transform

import numpy as np
import pandas as pd
from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass

Chosen = TypeVar("Chosen", bound="type[Any]")

STRICT = ConfigDict(
    strict=True, extra="forbid", allow_inf_nan=False, arbitrary_types_allowed=True
)
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
        if isinstance(value, str | Path):
            str(value).encode()
    except UnicodeEncodeError:
        return False
    return True


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
    r"sk-|gh[oprsu]_|github_pat_|glpat-|gsk_|r8_|AIza|ya29\.|nvapi-|tgp_|xox[abprs]-"
    "|AKIA|ASIA"
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
    words = re.findall("[a-z]+", snake_case)
    if not words:
        return False
    if words[-1] in KEY_ENDS and NO_KEYS.isdisjoint(words[-2:-1]):
        return True
    return not KEY_WORDS.isdisjoint(words)


def may_be_token(part: str) -> bool:
    """Whether a part of an address's path may be a token: 12 letters and digits mixed, or more,
    without a break."""
    for piece in re.split(r"[-._]", part):
        if (
            len(piece) >= 12
            and re.search(r"\d", piece)
            and re.search("[a-zA-Z]", piece)
        ):
            return True
    return False


def check_no_key(called: str, value: object) -> None:
    """``ValueError`` for what may carry a key, which would be written into notebook and manifest;
    nothing of the value is repeated. Names are those of mappings, of pairs in a list, and in text
    those before "=".
    """
    if isinstance(value, Mapping):
        pair = (value.get("name"), value.get("value"))
        for name, part in [*value.items(), pair]:
            check_no_key(called, str(name))
            if names_key(str(name)):
                _refuse_key(f"{called} has {str(name)!r}, which may carry a key")
            if name == "base_url" and _may_hold_key(str(part)):
                what = "a login, a query or what looks like a token"
                _refuse_key(f"{called} has a base_url with {what}")
            check_no_key(called, part)
    elif isinstance(value, list | tuple | set | frozenset):
        for part in value:
            if (
                isinstance(part, list | tuple)
                and len(part) == 2
                and isinstance(part[0], str)
            ):
                name, named = part
                check_no_key(called, {name: named})
            else:
                check_no_key(called, part)
    elif isinstance(value, str):
        names = re.findall(r"([\w-]+)=\S", value)
        if KEY_LIKE.search(value) or any(names_key(name) for name in names):
            _refuse_key(f"{called} holds what looks like a key")


def _may_hold_key(address: str) -> bool:
    folders = address.split("/")[3:]
    return bool(re.search(r"[@?#]", address)) or any(
        may_be_token(part) for part in folders
    )


def _refuse_key(reason: str) -> NoReturn:
    where = "set OPENAI_API_KEY, and OPENAI_BASE_URL, in the environment"
    why = "parameters are written into notebooks and manifests"
    raise ValueError(f"{reason}; {where}: {why}")


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
    checked: Any = dataclass(frozen=True, kw_only=True, config=STRICT)(chosen)
    checked_init = checked.__init__

    @functools.wraps(checked_init)
    def init(self: Any, **received: Any) -> None:
        values = {name: plain(value) for name, value in received.items()}
        for name, value in values.items():
            check_no_key(name, value)
            if not utf8(value):
                raise ValueError(f"{name} is {value!r}; it must be {WRITABLE}")
        try:
            checked_init(self, **values)
        except ValidationError as error:
            raise ValueError(_message(type(self), error, values)) from None

    checked.__init__ = init
    return checked


def _message(
    chosen: type[Any], error: ValidationError, values: Mapping[str, Any]
) -> str:
    """What is wrong with the first value, in a line."""
    first = error.errors()[0]
    name = str(first["loc"][0]) if first["loc"] else ""
    if first["type"] == "value_error":
        return str(first.get("ctx", {})["error"])
    if first["type"] == "unexpected_keyword_argument":
        return unknown(name, names_of(chosen))
    allowed = first["msg"]
    field = chosen.__pydantic_fields__.get(name)
    if field is not None and field.description:
        allowed = field.description
    if first["type"] == "missing":
        return f"{name} is not given; it must be {allowed}"
    value = values.get(name, first["input"])
    return f"{name} is {value!r}; it must be {allowed}"


def unknown(name: str, names: Sequence[str], of: str = "there is") -> str:
    """The message for an unknown name: near names, and all."""
    near = difflib.get_close_matches(name, names, n=3)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    return f"{of} no parameter {name!r}; {hint}known are {', '.join(names)}"


def names_of(chosen: type[Any]) -> list[str]:
    """The names that a class of choices takes: its fields without those that it says are unused."""
    unused = getattr(chosen, "UNUSED", ())
    return [field.name for field in fields(chosen) if field.name not in unused]


Count = Annotated[int, Field(ge=1, description="a whole number, at least 1")]
Seed = Annotated[int, Field(ge=0, description="a whole number, at least 0")]
Warmth = Annotated[
    float, Field(gt=0, lt=100, description="a number above 0 and below 100")
]
Weight = Annotated[float, Field(ge=0, lt=1e6, description="a number, at least 0")]
Chance = Annotated[float, Field(gt=0, lt=1, description="a number above 0 and below 1")]
Switch = Annotated[bool, Field(description="True or False")]
Options = Annotated[
    dict[str, Any], Field(description="a mapping of names to values (a dict)")
]
Counts = Annotated[
    Sequence[Count],
    Field(
        min_length=1, description="a list of whole numbers, at least 1 each, not empty"
    ),
]
