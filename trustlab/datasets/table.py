"""A user's own cases: a table as CSV, TSV or JSON lines, a case a row."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from trustlab.datasets.errors import MIN_STATEMENTS, DataError, read_text
from trustlab.datasets.reading import Read
from trustlab.datasets.sentences import sentences
from trustlab.datasets.starter import json_object
from trustlab.knowledge import normalise
from trustlab.records import Case, Statement

DELIMITERS = {".csv": ",", ".tsv": "\t"}
OWN = ("id", "statements", "text", "diagnosis", "accepted")
"""The columns with a meaning; every other one describes the patient."""

_TURN = re.compile(r"(?:^|\s+)(?=(?:Doctor|Patient):)")
_DIALOGUE = re.compile(r"^\s*(?:Doctor|Patient):", re.MULTILINE)
_EMPTY = (None, "", [])
_NO_NAMES = ("", "na", "n a", "nan", "null", "nil", "none")
"""What other programs write for an empty cell, normalised."""
_SHORT, _BLANK = f"fewer than {MIN_STATEMENTS} statements", "empty rows"


def read(path: Path | None = None, seed: int = 0) -> Read:
    """The cases of the table ``path`` in file order: ``.csv``, ``.tsv`` or ``.jsonl`` (one JSON object a line), in UTF-8.

    Columns (or keys):

    - ``id``: any text, different in every row (``007`` stays ``007``; in JSON lines a string).
    - ``statements``: what is told, in order. JSON lines: a list of strings. CSV: a statement on each line of the cell.
    - ``text``, instead of ``statements``: running text, cut by :func:`sentences`; a dialogue is cut into its exchanges.
    - ``diagnosis``: the name of the right diagnosis.
    - ``accepted``, optional: its other names. A list, or one text with ``;`` between the names.
    - Every other column goes to ``Case.patient`` where it is filled. No model sees it, nor the diagnosis, but a panel's doctors
      and reviewers see those of a chart (:data:`trustlab.chart.FIELDS`).

    Lines that begin with ``Doctor:`` and ``Patient:`` are a dialogue: a doctor's line and the patient's line after it are
    one statement. A benchmark needs more than 10 statements a case: shorter cases and empty rows are left out, and a
    warning counts them. Cells are read as text; JSON values outside the columns above stay as they are. ``seed`` changes
    nothing.

    Raises :class:`DataError` for a row or header that breaks the format, those left out too, and ``ValueError`` where
    there is no such file or nothing is left.
    """
    if path is None:
        raise ValueError("path is None; give your table as path, a .csv, .tsv or .jsonl file (data/README.md shows the format)")
    if not path.exists():
        raise ValueError(f"path is {str(path)!r}, which does not exist; allowed is a .csv, .tsv or .jsonl file")
    cases: list[Case] = []
    seen: dict[str, int] = {}
    left_out: dict[str, list[int]] = {_SHORT: [], _BLANK: []}
    n_rows = 0
    for n_rows, row in _rows(path):
        if all(value in _EMPTY for value in row.values()):
            left_out[_BLANK].append(n_rows)
            continue
        bad = partial(DataError, path, n_rows)
        case = _case(bad, row)
        if case.case_id in seen:
            raise bad("id", case.case_id, f"an id that no earlier row has (row {seen[case.case_id]} has it)")
        seen[case.case_id] = n_rows
        if len(case.statements) < MIN_STATEMENTS:
            left_out[_SHORT].append(n_rows)
        else:
            cases.append(case)
    return Read(cases, n_rows, {what: list(map(str, rows)) for what, rows in left_out.items() if rows})


# -- files ----------------------------------------------------------------------------------------------------------


def _rows(file: Path) -> Iterator[tuple[int, dict[str, object]]]:
    """(row number from 1, columns) of every row, empty ones too; blank lines at the end are none."""
    kind = file.suffix.lower()
    if not file.is_file() or kind not in (*DELIMITERS, ".jsonl"):
        raise DataError(file, None, "file", file.name, "a .csv, .tsv or .jsonl file")
    text = read_text(file).rstrip("\n")
    if kind in DELIMITERS:
        yield from _csv_rows(file, text, DELIMITERS[kind])
    elif text:
        for number, line in enumerate(text.split("\n"), 1):
            row = json_object(partial(DataError, file, number), line) if line.strip() else {}
            yield number, {column: _stripped(value) for column, value in row.items()}


def _csv_rows(file: Path, text: str, delimiter: str) -> Iterator[tuple[int, dict[str, object]]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    number: int | None = None
    try:
        header = [name.strip() for name in next(reader, [])]
        _check_header(file, header, delimiter)
        number = 0
        for number, cells in enumerate(reader, 1):
            if any(cell.strip() for cell in cells) and len(cells) != len(header):
                raise DataError(
                    file, number, "row", f"{len(cells)} cells", f"{len(header)}, as the header (cells may need quotation marks)"
                )
            yield number, dict(zip(header, map(_stripped, cells), strict=False))
    except csv.Error as error:
        where = None if number is None else number + 1
        raise DataError(
            file, where, "row", str(error), f"quotation marks in pairs, and up to {csv.field_size_limit():,} characters a cell"
        ) from error


def _check_header(file: Path, header: Sequence[str], delimiter: str) -> None:
    bad = partial(DataError, file, None, "header", list(header))
    missing = [name for name in ("id", "diagnosis") if name not in header]
    if not {"statements", "text"} & set(header):
        missing.append("statements or text")
    if missing:
        between = "tabs" if delimiter == "\t" else "commas"
        raise bad(f"id, diagnosis, and statements or text, with {between} between; missing: {', '.join(missing)}")
    if "" in header or len(set(header)) < len(header):
        raise bad("a name for every column, and no name twice")


def _stripped(value: object) -> object:
    return value.strip() if isinstance(value, str) else value


# -- rows -----------------------------------------------------------------------------------------------------------


def _case(bad: partial[DataError], row: dict[str, object]) -> Case:
    case_id = row.get("id")
    if not isinstance(case_id, str) or not case_id:
        raise bad("id", case_id, "a str that is not empty")
    diagnosis = _name(bad, "diagnosis", row.get("diagnosis"))
    return Case(
        case_id=case_id,
        dataset="table",
        statements=tuple(map(Statement, _told(bad, row))),
        diagnosis=diagnosis,
        accepted=tuple(dict.fromkeys((diagnosis, *_accepted(bad, row.get("accepted"))))),
        patient={name: value for name, value in row.items() if name not in OWN and value not in _EMPTY},
    )


def _name(bad: partial[DataError], field: str, value: object) -> str:
    if not isinstance(value, str) or normalise(value) in _NO_NAMES:
        allowed = "a name with a letter or digit, and no word for an empty cell (NaN, null, n/a)"
        raise bad(field, value, allowed)
    return value.strip()


def _accepted(bad: partial[DataError], value: object) -> list[str]:
    if isinstance(value, str):
        value = [name for name in value.split(";") if name.strip()]
    if value is not None and not isinstance(value, list):
        raise bad("accepted", value, "a list of names, or one str with ; between the names")
    return [_name(bad, "accepted", name) for name in value or []]


def _told(bad: partial[DataError], row: dict[str, object]) -> list[str]:
    statements, text = row.get("statements"), row.get("text")
    if statements not in _EMPTY and text not in _EMPTY:
        raise bad("text", text, "statements or text, not both in one row")
    if not ("statements" in row or "text" in row):
        raise bad("statements", None, "statements or text in every row")
    if isinstance(statements, str):
        statements = [line for line in statements.split("\n") if line.strip()]
    if statements is not None and not isinstance(statements, list):
        raise bad("statements", statements, "a list of strings, or one str with a statement on each line")
    if text is not None and not isinstance(text, str):
        raise bad("text", text, "a str")
    for i, statement in enumerate(statements or [], 1):
        if not isinstance(statement, str) or not statement.strip():
            raise bad(f"statement {i}", statement, "a str that is not empty")
    return _exchanges(statements or _pieces(text or ""))


def _pieces(text: str) -> list[str]:
    """Running text as sentences; a dialogue as turns, with what stands before the first one as sentences."""
    if not _DIALOGUE.search(text):
        return sentences(text)
    before, *turns = _TURN.split(text)
    return sentences(before) + [" ".join(turn.split()) for turn in turns]


def _exchanges(pieces: Iterable[str]) -> list[str]:
    """``pieces`` with each doctor's turn joined to the patient's turn right after it, on a line each."""
    found: list[str] = []
    for piece in map(str.strip, pieces):
        asked = bool(found) and found[-1].startswith("Doctor:") and "Patient:" not in found[-1]
        if asked and piece.startswith("Patient:"):
            found[-1] += f"\n{piece}"
        else:
            found.append(piece)
    return found
