"""Writes a run's records as JSON lines, and reads them back.

One codec for every frozen dataclass of :mod:`trustlab.records`, led by the types of its fields:

- an array is its ``dtype``, ``shape`` and ``values``, in full precision; a tuple is a list;
- a number that JSON does not have is the text "NaN", "Infinity" or "-Infinity";
- a field that is unknown or of another type is a ``ValueError`` with file and line, and so is one
  that is missing and has no default.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import numpy as np
from pydantic import TypeAdapter, ValidationError
from pydantic_core import (
    PydanticSerializationError,
    SchemaValidator,
    to_json,
    to_jsonable_python,
)
from pydantic_core.core_schema import (
    literal_schema,
    no_info_after_validator_function,
    no_info_plain_validator_function,
    union_schema,
)

from trustlab.choices import STRICT
from trustlab.records import Generation
from trustlab.runs.folder.replies_log import json_lines, packed
from trustlab.tables import problem

NAME = "generations.jsonl.gz"
DTYPES = ("float64", "float32", "int64", "int32", "int8", "bool")
"""Of the arrays that records hold."""
NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def line_of(record: object) -> bytes:
    """A record as a line; the same one gives the same bytes."""
    try:
        line = to_json(record, inf_nan_mode="strings", fallback=_as_json)
    except PydanticSerializationError:  # half a character, which UTF-8 does not take
        plain = to_jsonable_python(record, fallback=_as_json)
        text = json.dumps(plain, ensure_ascii=False).encode(
            "utf-16-le", "surrogatepass"
        )
        whole = json.loads(text.decode("utf-16-le", "replace"))
        line = to_json(whole, inf_nan_mode="strings")
    return line + b"\n"


def save_records(records: Iterable[object], path: Path) -> None:
    """Write them, :func:`~trustlab.paths.whole`."""
    with packed(path) as file:
        file.writelines(map(line_of, records))


def read_records(path: Path, kind: type[Any] = Generation) -> tuple[Any, ...]:
    """The records of a file of :func:`save_records`; ``ValueError`` with file and line if it is no
    such file."""
    records = []
    for n, line in json_lines(path):
        records.append(_read_line(path, n, line, kind))
    return tuple(records)


def find_records(
    path: Path, wanted: Collection[tuple[str, int, str]]
) -> Iterator[Generation]:
    """The records of these answers (case, level, model), without the others being read."""
    beginnings = set()
    for case_id, level, model in wanted:
        line = line_of({"case_id": case_id, "level": level, "model": model})
        beginnings.add(line.removesuffix(b"}\n"))
    for n, line in json_lines(path):
        beginning, *_ = line.partition(b',"seed":')
        if beginning in beginnings:
            yield _read_line(path, n, line, Generation)


def _read_line(path: Path, n: int, line: bytes, kind: type[Any]) -> Any:
    try:
        (record,) = _reader(kind).validate_json(b"[%b]" % line)
    except ValidationError as error:
        raise ValueError(f"{path}, line {n}: {problem(error, 1)}") from error
    except (OverflowError, TypeError) as error:
        raise ValueError(f"{path}, line {n}: {error}") from error
    return record


def _as_json(value: Any) -> Any:
    """A value that JSON does not have, an array or a number of NumPy, as one that it has."""
    if isinstance(value, np.ndarray):
        return {
            "dtype": value.dtype.name,
            "shape": value.shape,
            "values": value.ravel().tolist(),
        }
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a record holds {type(value).__name__}, which is not written")


@lru_cache
def _reader(kind: type[Any]) -> SchemaValidator:
    """Reads a list of one record; every field is strictly of its type."""
    alias: Any = tuple.__class_getitem__((kind,))
    return SchemaValidator(_as_written(TypeAdapter(alias, config=STRICT).core_schema))


def _as_written(schema: Any) -> Any:
    """A schema of pydantic's for how records stand in a line."""
    if isinstance(schema, list):
        return [_as_written(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "is-instance" and schema["cls"] is np.ndarray:
        return no_info_plain_validator_function(_read_array)
    if schema == {"type": "float"}:
        words = no_info_after_validator_function(
            NOT_FINITE.get, literal_schema([*NOT_FINITE])
        )
        return union_schema([cast(Any, schema), words], mode="left_to_right")
    return {name: _as_written(part) for name, part in schema.items()}


def _read_array(value: Any) -> np.ndarray:
    if not isinstance(value, dict) or value.keys() != {"dtype", "shape", "values"}:
        raise ValueError("it must be an array: dtype, shape and values")
    dtype = value["dtype"]
    if dtype not in DTYPES:
        raise ValueError(f"the dtype of an array must be among {DTYPES}")
    numbers = []
    for number in value["values"]:
        numbers.append(
            NOT_FINITE.get(number, number) if isinstance(number, str) else number
        )
    allowed = {"bool": {bool}, "float64": {float, int}, "float32": {float, int}}
    if not set(map(type, numbers)) <= allowed.get(dtype, {int}):
        raise ValueError(f"it must be an array of numbers, all {dtype}")
    array = np.array(numbers, dtype=dtype).reshape(value["shape"])
    array.setflags(write=False)
    return array
