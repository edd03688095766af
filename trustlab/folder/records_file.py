"""``generations.jsonl.gz``: a run's records, a line each, as strict JSON and back again.

One codec for every frozen dataclass of :mod:`trustlab.records`, led by the types of its fields:

- an array is its ``dtype``, ``shape`` and ``values``, in full precision; a tuple is a list;
- a number that JSON does not have is the text "NaN", "Infinity" or "-Infinity";
- a field that is unknown, missing or of another type is a ``ValueError`` with file and line.

Nothing of a file is ever evaluated.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from trustlab.folder.replies_log import json_line, json_lines, packed
from trustlab.parsing.scores import probes_read
from trustlab.records import Generation

NAME = "generations.jsonl.gz"
DTYPES = ("float64", "float32", "int64", "int32", "int8", "bool")
"""Of the arrays that records hold."""
_DTYPE_NAMES = {np.dtype(name): name for name in DTYPES}
NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def line_of(record: object) -> bytes:
    """A record as a line; the same one gives the same bytes."""
    try:
        return json_line(record, _part)  # by far the faster
    except ValueError:  # a number is not finite
        return json_line(encoded(record))


def save_records(records: Iterable[object], path: Path) -> None:
    """Write them, :func:`~trustlab.paths.whole`."""
    with packed(path) as file:
        file.writelines(map(line_of, records))


def read_records(path: Path, kind: type[Any] = Generation) -> tuple[Any, ...]:
    """What :func:`save_records` wrote; ``ValueError`` with file and line if it is anything else."""
    return tuple(each_record(path, kind))


def each_record(path: Path, kind: type[Any] = Generation) -> Iterator[Any]:
    """The same one after the other."""
    for n, line in json_lines(path):
        yield _read(path, n, line, kind)


def find_records(path: Path, wanted: Collection[tuple[str, int, str]]) -> Iterator[Generation]:
    """The records of these answers (case, level, model), without the others being read."""
    begin = {json_line({"case_id": c, "level": q, "model": m})[:-2] for c, q, m in wanted}
    for n, line in json_lines(path):
        if line.partition(b',"seed":')[0] in begin:
            yield _read(path, n, line, Generation)


def _read(path: Path, n: int, line: bytes, kind: type[Any]) -> Any:
    try:
        made = decoded(json.loads(line, parse_constant=_refused), kind)
    except (ValueError, TypeError, LookupError, RecursionError, OverflowError) as error:
        raise ValueError(f"{path}, line {n}: {error}") from error
    asked = [reply for of in made.probes.values() for reply in of] if kind is Generation else []
    if asked and all(reply.raw is None for reply in asked):
        return probes_read(made)  # an earlier version kept the words alone
    return made


def _part(value: Any) -> Any:
    """Of what JSON does not know, what it does, as :func:`encoded`; its parts are not looked at."""
    if isinstance(value, np.ndarray):
        values = value.ravel().tolist()
        name = _DTYPE_NAMES.get(value.dtype) or str(value.dtype)  # known names cost nothing
        return {"dtype": name, "shape": value.shape, "values": values}
    if isinstance(value, np.generic):
        return value.item()
    if is_dataclass(value) and not isinstance(value, type):
        return {name: getattr(value, name) for name in _names(type(value))}
    if isinstance(value, Mapping):
        return {str(k): v for k, v in value.items()}
    raise TypeError(f"a record holds {type(value).__name__}, which is not written")


@lru_cache
def _names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind))


def encoded(value: Any) -> Any:
    """A record, or a part of one, as what JSON can hold."""
    if isinstance(value, np.ndarray):
        values = [encoded(v) for v in value.ravel().tolist()]
        return {"dtype": str(value.dtype), "shape": list(value.shape), "values": values}
    if isinstance(value, np.generic):
        return encoded(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: encoded(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(k): encoded(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [encoded(v) for v in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a record holds {type(value).__name__}, which is not written")


def decoded(value: Any, kind: Any, where: str = "") -> Any:
    """The value of type ``kind`` that :func:`encoded` gave; ``ValueError`` if it is none."""
    return _decoder(kind)(value, where)


Decoder = Callable[[Any, str], Any]
"""Takes a value and where it stands, gives what it is; ``ValueError`` if it is nothing."""


@lru_cache
def _decoder(kind: Any) -> Decoder:
    """Of a type, found out once."""
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        inner = _decoder(next(a for a in args if a is not NoneType))
        return lambda value, where: None if value is None else inner(value, where)
    if origin is Literal:
        return lambda value, where: _checked(value, value in args, where, f"one of {args}")
    if isinstance(kind, type) and is_dataclass(kind):
        return _record(kind)
    if kind is np.ndarray:
        return _array
    if origin is tuple:
        return _many(args[0]) if args[-1] is Ellipsis else _fixed(args)
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(args[1])
    return _number if kind is float else _scalar(kind)


def _many(kind: Any) -> Decoder:
    of, plain = _decoder(kind), {kind}

    def many(value: Any, where: str) -> tuple[Any, ...]:
        _checked(value, isinstance(value, list), where, "a list")
        if set(map(type, value)) == plain:  # texts or numbers, nothing else
            return tuple(value)
        return tuple(of(v, where) for v in value)

    return many


def _fixed(kinds: tuple[Any, ...]) -> Decoder:
    each, n = [_decoder(kind) for kind in kinds], len(kinds)

    def fixed(value: Any, where: str) -> tuple[Any, ...]:
        _checked(value, isinstance(value, list), where, "a list")
        if len(value) != n:
            _checked(value, False, where, f"a list of {n}")
        return tuple([of(v, where) for of, v in zip(each, value, strict=True)])

    return fixed


def _mapping(kind: Any) -> Decoder:
    of = _decoder(kind)

    def mapping(value: Any, where: str) -> dict[str, Any]:
        _checked(value, isinstance(value, dict), where, "a mapping")
        return {k: of(v, f"{where}.{k}") for k, v in value.items()}

    return mapping


def _number(value: Any, where: str) -> float:
    if type(value) is float:
        return value
    value = NOT_FINITE.get(value, value) if isinstance(value, str) else value
    return _checked(value, type(value) in (float, int), where, "a number")


def _scalar(kind: Any) -> Decoder:
    assert kind in (str, int, bool), kind
    return lambda value, where: _checked(value, type(value) is kind, where, kind.__name__)


LATER = frozenset({"keyword_read"})
"""Fields that records of earlier versions lack; they have their defaults."""


def _record(kind: type[Any]) -> Decoder:
    hints = get_type_hints(kind)
    each = {f.name: _decoder(hints[f.name]) for f in fields(kind)}

    def record(value: Any, where: str) -> Any:
        _checked(value, isinstance(value, dict), where, f"the fields of {kind.__name__}")
        if off := sorted((value.keys() ^ each.keys()) - (LATER - value.keys())):
            what = [f"{name} ({'unknown' if name in value else 'missing'})" for name in off]
            raise ValueError(f"{where or kind.__name__} has other fields: {', '.join(what)}")
        dot = f"{where}." if where else ""
        given = ((name, of) for name, of in each.items() if name in value)
        return kind(**{name: of(value[name], dot + name) for name, of in given})

    return record


def _array(value: Any, where: str) -> np.ndarray:
    right = isinstance(value, dict) and value.keys() == {"dtype", "shape", "values"}
    _checked(value, right and value["dtype"] in DTYPES, where, "an array")
    values = [NOT_FINITE.get(v, v) if isinstance(v, str) else v for v in value["values"]]
    numbers = all(type(v) in (float, int, bool) for v in values)
    _checked(value, numbers, where, "an array of numbers")
    made = np.array(values, dtype=value["dtype"]).reshape(value["shape"])
    made.setflags(write=False)
    return made


def _checked(value: Any, right: bool, where: str, allowed: str) -> Any:
    if not right:
        told = json.dumps(value, default=repr)
        told = told if len(told) <= 60 else f"{told[:60]} …"
        raise ValueError(f"{where or 'the line'} is {told}; it must be {allowed}")
    return value


def _refused(word: str) -> float:
    raise ValueError(f"{word} is no JSON")
