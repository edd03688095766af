"""Reads rows and JSON lines for the modules that read a user's files, and says what is wrong."""

from __future__ import annotations

import csv
import io
import json
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from trustlab.choices import WRITABLE, utf8
from trustlab.paths import from_spreadsheet
from trustlab.records import normalise

_LONGEST = 160


class DataError(ValueError):
    """A file that cannot be used as it is: the place, the value there, and what is allowed.
    ``row`` counts from 1, without the header; ``None``: the fault concerns the whole file."""

    def __init__(
        self, file: Path | str, row: int | None, field: str, value: object, allowed: str
    ):
        super().__init__(str(file), row, field, value, allowed)
        self.file = str(file)
        self.row = row
        self.field = field
        self.value = value
        self.allowed = allowed

    def __str__(self) -> str:
        received = repr(self.value)
        if len(received) > _LONGEST:
            received = f"{received[:_LONGEST]}... ({len(received)} characters)"
        place = self.file
        if self.row is not None:
            place += f", row {self.row} (counted from 1, header not counted)"
        return f"{place}, {self.field}: received {received}; allowed: {self.allowed}"


def wrong_encoding(
    file: Path | str,
    error: UnicodeDecodeError,
    row: int | None = None,
    line: int | None = None,
) -> DataError:
    """The error for bytes that are not UTF-8, with the row or line where it is known."""
    where = "" if line is None else f", which line {line:,} is not"
    wrong_bytes = error.object[error.start : error.start + 4]
    allowed = f"UTF-8 text{where}; save the file as UTF-8"
    return DataError(file, row, "encoding", wrong_bytes, allowed)


def each_key_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object hook for ``json.loads``: ``ValueError`` where a key comes twice."""
    values: dict[str, object] = {}
    for key, value in pairs:
        if key in values:
            raise ValueError(f"the key {key!r} comes twice")
        values[key] = value
    return values


def read_text(file: Path) -> str:
    """The whole of a UTF-8 file, without a byte-order mark; :class:`DataError` for another."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise wrong_encoding(file, error, line=_line_number(error)) from error


def _line_number(error: UnicodeDecodeError) -> int:
    """The line, from 1, of what was decoded from its beginning."""
    return error.object.count(b"\n", 0, error.start) + 1


def whole_json(file: Path) -> object:
    """The JSON value of a UTF-8 file; :class:`DataError` where it is none, or has a key twice."""
    if not file.is_file():
        raise DataError(file, None, "file", file.name, "a JSON file that exists")
    text = read_text(file)
    try:
        return json.loads(text, object_pairs_hook=each_key_once)
    except (ValueError, RecursionError) as error:
        allowed = f"one whole JSON value ({error})"
        raise DataError(file, None, "JSON", text[:60], allowed) from error


Bad = Callable[[str, object, str], DataError]
"""Makes the error of a place in a file from field, value, and what is allowed."""


def within(file: Path, place: str, between: str = ", ") -> Bad:
    """Makes the errors of a place in a file that has no rows."""

    def bad(field: str, value: object, allowed: str) -> DataError:
        return DataError(file, None, place + between + field, value, allowed)

    return bad


def json_lines(file: Path) -> Iterator[tuple[partial[DataError], dict]]:
    """What makes the errors of a line, and the JSON object in it; blank lines at the end are
    none."""
    text = read_text(file).rstrip("\n")
    if not text:
        return
    for number, line in enumerate(text.split("\n"), 1):
        bad = partial(DataError, file, number)
        yield bad, json_object(bad, line)


def json_object(bad: Bad, line: str) -> dict:
    """The JSON object that ``line`` holds, all of it :data:`~trustlab.choices.WRITABLE`."""
    try:
        row = json.loads(line, object_pairs_hook=each_key_once)
        writable = utf8(row)
    except (ValueError, RecursionError) as error:
        raise bad("line", line, f"one JSON object a line ({error})") from error
    if not isinstance(row, dict):
        raise bad("line", row, "one JSON object a line")
    if not writable:
        for name in row:
            if not utf8(name):
                raise bad("key", name, WRITABLE)
        field = next(name for name in row if not utf8(row[name]))
        raise bad(field, row[field], WRITABLE)
    return row


DELIMITERS = {".csv": ",", ".tsv": "\t"}
KINDS = "a .csv, .tsv or .jsonl file (save a spreadsheet as CSV, with commas, in UTF-8)"
NO_NAMES = (
    "",
    "na",
    "n a",
    "n a n a",
    "nan",
    "nat",
    "null",
    "nil",
    "none",
    "1 ind",
    "1 qnan",
)
"""What other programs write for an empty cell, normalised."""
NAME = "a name with a letter or digit, on one line and without |, and no word for an empty cell"
NAME += " (NaN, null, n/a)"
_LATER = "[\x80-\xbf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]"
_ENCODED = re.compile(
    rf"&(#\d+|#[xX][\da-fA-F]+|[a-zA-Z]\w+);|\ufffd|[ÂÃÄÅÎÏÐÑ]{_LATER}|[âï]{_LATER}{{2}}|â€|ðŸ"
)
"""HTML's entities, what stands for lost bytes, and UTF-8 that was read as Latin-1 or cp1252."""
_OF_TOKENS = ("tokens", "logprobs", "alternatives")
"""How columns end whose texts may be parts of characters."""


def check_table(file: Path) -> None:
    """Refuse, by its name, what :func:`table_rows` cannot read."""
    if not file.is_file() or file.suffix.lower() not in (*DELIMITERS, ".jsonl"):
        raise DataError(file, None, "file", file.name, KINDS)


def check_columns(file: Path | str, header: Sequence[str]) -> None:
    """Refuse a column without a name, and a name that comes twice."""
    for place, name in enumerate(header, 1):
        if not name or name in header[: place - 1]:
            words = (
                "a name for every column, and no name twice (of pandas: index=False)"
            )
            raise DataError(file, None, f"header, column {place}", name, words)


def is_name(text: str) -> bool:
    """Whether a text can be one name: :data:`NAME`."""
    return normalise(text) not in NO_NAMES and "|" not in text and on_one_line(text)


def on_one_line(text: str) -> bool:
    """Whether there are no line ends within a text."""
    return len(text.splitlines()) <= 1


_as_text = json.JSONEncoder(ensure_ascii=False, skipkeys=True, default=str).encode
"""A cell's text, or its texts, as their characters are."""


def warn_of_encoded(
    file: object, rows: Iterable[Mapping[str, object]], stacklevel: int
) -> None:
    """Warn, with row and column, of text that another program has encoded; it is read as it is."""
    places = []
    for number, row in enumerate(rows, 1):
        for column, value in row.items():
            if not column.endswith(_OF_TOKENS) and _ENCODED.search(_as_text(value)):
                places.append(f"row {number}, {column}")
    if places:
        words = "text that another program encoded (&#39;, Ã¢, U+FFFD), read as it is"
        shown = "; ".join(places[:9])
        warnings.warn(
            f"{file}: {len(places)} cells with {words}: {shown}", stacklevel=stacklevel
        )


def table_rows(
    file: Path, check_header: Callable[[Path, list[str]], None] = lambda *_: None
) -> list[dict[str, object]]:
    """The rows of a table; blank lines at the end are none."""
    check_table(file)
    if file.suffix.lower() in DELIMITERS:
        return _csv_rows(file, check_header)
    return [row for _, row in json_lines(file)]


def _csv_rows(
    file: Path, check_header: Callable[[Path, list[str]], None]
) -> list[dict[str, object]]:
    stream = io.StringIO(read_text(file).rstrip("\n"), newline="")
    delimiter = DELIMITERS[file.suffix.lower()]
    cells: list[list[str]] = []
    try:
        for row in csv.reader(stream, delimiter=delimiter, strict=True):
            cells.append([from_spreadsheet(cell.strip()) for cell in row])
    except csv.Error as error:
        most = f"up to {csv.field_size_limit():,} characters a cell"
        words = f"quotation marks in pairs, and {most}"
        raise DataError(file, len(cells) or None, "row", str(error), words) from error
    header = cells.pop(0) if cells else []
    check_columns(file, header)
    check_header(file, header)
    for number, row in enumerate(cells, 1):
        if len(row) != len(header):
            words = f"{len(header)}, as the header (cells may need quotation marks)"
            raise DataError(file, number, "row", f"{len(row)} cells", words)
    return [dict(zip(header, row, strict=True)) for row in cells]


def problem(error: ValidationError, below: int = 0) -> str:
    """What pydantic finds wrong first, in a line: where (``below`` so many names), the value, what
    is allowed."""
    first = error.errors(include_url=False)[0]
    where = ".".join(map(str, first["loc"][below:]))
    words = first["msg"].removeprefix("Value error, ")
    if first["type"] not in ("missing", "json_invalid"):
        value = json.dumps(first["input"], default=repr)
        if len(value) > 200:
            value = f"{value[:200]} …"
        where = f"{where or 'it'} is {value}"
    return f"{where}: {words}".removeprefix(": ")


LONGEST_SHOWN = 200


def shortened(text: str) -> str:
    """``text`` in quotes, cut where it is long."""
    if len(text) <= LONGEST_SHOWN:
        return repr(text)
    return f"{text[:LONGEST_SHOWN]!r}… ({len(text)} characters)"
