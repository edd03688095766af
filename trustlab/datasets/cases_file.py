"""Cases from a file: the starter data, a user's own table; errors that name file, row and field."""

from __future__ import annotations

import csv
import io
import json
import re
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

from trustlab.choices import WRITABLE, utf8
from trustlab.datasets.giveaway import names_its_diagnosis
from trustlab.datasets.sentences import sentences
from trustlab.knowledge import Condition, Knowledge, load_knowledge
from trustlab.paths import DATA, from_spreadsheet
from trustlab.records import Case, Statement, normalise
from trustlab.safety.chart import FIELDS, chart_from

MIN_STATEMENTS = 11
"""Cases need more than 10 statements (Ren et al. 2026, section on the benchmark)."""

_LONGEST = 160


class DataError(ValueError):
    """A file that cannot be used as it is: where, what was found, what is allowed.

    ``row`` counts from 1 and leaves the header out; it is ``None`` where the fault is the whole
    file's.
    """

    def __init__(self, file: Path | str, row: int | None, field: str, value: object, allowed: str):
        super().__init__(str(file), row, field, value, allowed)
        self.file, self.row, self.field = str(file), row, field
        self.value, self.allowed = value, allowed

    def __str__(self) -> str:
        found = repr(self.value)
        if len(found) > _LONGEST:
            found = f"{found[:_LONGEST]}... ({len(found)} characters)"
        row = "" if self.row is None else f", row {self.row} (counted from 1, header not counted)"
        return f"{self.file}{row}, {self.field}: received {found}; allowed: {self.allowed}"


def wrong_encoding(
    file: Path | str, error: UnicodeDecodeError, row: int | None = None, line: int | None = None
) -> DataError:
    """The :class:`DataError` for bytes that are not UTF-8, with the row or line where it is
    known."""
    where = "" if line is None else f", which line {line:,} is not"
    found = error.object[error.start : error.start + 4]
    return DataError(file, row, "encoding", found, f"UTF-8 text{where}; save the file as UTF-8")


def each_key_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object hook for ``json.loads``: ``ValueError`` where a key comes twice, of which one value
    would be lost."""
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} comes twice")
        found[key] = value
    return found


def read_text(file: Path) -> str:
    """The whole of a UTF-8 file, without a byte-order mark. Raises :class:`DataError` for another
    encoding."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise wrong_encoding(file, error, line=_line(error)) from error


def _line(error: UnicodeDecodeError) -> int:
    """The line, from 1, of what was decoded from its beginning."""
    return error.object.count(b"\n", 0, error.start) + 1


def whole_json(file: Path) -> object:
    """The JSON value of a UTF-8 file. Raises :class:`DataError` where it is no file, no JSON, or an
    object has a key twice."""
    if not file.is_file():
        raise DataError(file, None, "file", file.name, "a JSON file that exists")
    text = read_text(file)
    try:
        return json.loads(text, object_pairs_hook=each_key_once)
    except (ValueError, RecursionError) as error:
        raise DataError(file, None, "JSON", text[:60], f"one whole JSON value ({error})") from error


NAMED = "cases whose text names their diagnosis"
"""A history, a question or a denial may do that: such a case is kept, and easier than it looks."""
N_NAMED = 5
"""How many of the dropped entries are named for each reason."""


@dataclass(frozen=True)
class Read:
    """What a loader made of a file.

    ``cases`` are in file order and may be made only when looked at. ``n_entries`` counts the rows,
    dialogues or questions read; ``dropped`` says which of them became no case (row numbers or ids)
    by reason. ``counts`` are the loader's further counts, by what they count.
    """

    cases: Sequence[Case]
    n_entries: int
    dropped: Mapping[str, Sequence[str]] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def facts(self) -> dict[str, int]:
        """``counts``, and how many cases name their diagnosis. Every case is made and looked at."""
        return {**self.counts, NAMED: sum(map(names_its_diagnosis, self.cases))}

    @property
    def losses(self) -> list[str]:
        """What was dropped, a line for each reason with the number of entries and the first of
        them."""
        return [
            f"{reason}: {len(entries):,}"
            f" ({', '.join(entries[:N_NAMED])}{', ...' * (len(entries) > N_NAMED)})"
            for reason, entries in self.dropped.items()
        ]


FILE = DATA / "starter" / "structured.jsonl"
SEXES = ("female", "male")


def read_starter(path: Path | None = None, seed: int = 0) -> Read:
    """The cases of ``path`` (default :data:`FILE`; a folder means its ``structured.jsonl``), in
    file order.

    One JSON object a line: ``case_id``, ``diagnosis`` (the condition's name), ``condition`` (its
    id), ``patient`` (``age`` in years, ``sex``, and what else a chart holds:
    :data:`trustlab.safety.chart.FIELDS`) and ``statements`` (``text``, ``finding``, ``affirmed``).
    Every name of the condition is accepted. ``seed`` changes nothing: the file has an order. Raises
    :class:`DataError` for a bad row (rows are lines), ``ValueError`` where there is no such file.
    """
    read = read_cases(
        path or FILE, FILE.name, "a starter file such as training/starter.py writes", _case
    )
    known = _posteriors((path if path and path.is_dir() else (path or FILE).parent) / POSTERIOR)
    cases = [replace(c, posteriors=known.get(c.case_id, {})) for c in read.cases]
    return replace(read, cases=cases)


POSTERIOR = "posterior.jsonl"
"""Beside the starter cases: what could be known of each, a JSON object a line, ``case_id`` and
``posterior``: statements shown -> diagnosis -> chance."""


def _posteriors(file: Path) -> dict[str, dict[int, dict[str, float]]]:
    """By case; none where there is no file. :class:`DataError` for a line of another form."""
    if not file.is_file():
        return {}
    found = {}
    for number, line in enumerate(read_text(file).rstrip("\n").split("\n"), 1):
        bad = partial(DataError, file, number)
        row = json_object(bad, line)
        try:
            posterior = row["posterior"].items()
            chances = {int(n): {str(d): float(p) for d, p in of.items()} for n, of in posterior}
            found[str(row["case_id"])] = chances
        except (KeyError, AttributeError, TypeError, ValueError) as error:
            allowed = "case_id, and posterior: statements shown -> diagnosis -> chance"
            raise bad("line", line, allowed) from error
        if any(not 0 <= p <= 1 for of in chances.values() for p in of.values()):
            raise bad("posterior", line, "chances from 0 to 1")
    return found


def read_cases(
    path: Path,
    name: str,
    allowed: str,
    case_of: Callable[[partial[DataError], dict, Knowledge], Case],
) -> Read:
    """The cases of a file of JSON lines, or of the file ``name`` in a folder, each made by
    ``case_of``; ids must differ."""
    file = path / name if path.is_dir() else path
    if not file.is_file():
        raise ValueError(f"path is {str(file)!r}, which is no file; allowed is {allowed}")
    knowledge = load_knowledge()
    cases: dict[str, Case] = {}
    for number, line in enumerate(read_text(file).split("\n"), 1):
        if line.strip():
            bad = partial(DataError, file, number)
            case = case_of(bad, json_object(bad, line), knowledge)
            if case.case_id in cases:
                raise bad("case_id", case.case_id, "an id that no earlier row has")
            cases[case.case_id] = case
    return Read(list(cases.values()), len(cases))


def json_object(bad: partial[DataError], line: str) -> dict:
    """The JSON object that ``line`` holds, all of it :data:`~trustlab.choices.WRITABLE`."""
    try:
        row = json.loads(line, object_pairs_hook=each_key_once)
        writable = utf8(row)
    except (ValueError, RecursionError) as error:
        raise bad("line", line, f"one JSON object a line ({error})") from error
    if not isinstance(row, dict):
        raise bad("line", row, "one JSON object a line")
    if not writable:
        pairs = ((field, one) for name in row for field, one in (("key", name), (name, row[name])))
        field, value = next(pair for pair in pairs if not utf8(pair[1]))
        raise bad(field, value, WRITABLE)
    return row


def check_fields(bad: partial[DataError], row: dict, kinds: Mapping[str, type]) -> None:
    """Refuse a field that is missing, empty or of another kind, and too few statements."""
    for name, kind in kinds.items():
        if not isinstance(row.get(name), kind) or not row[name]:
            raise bad(name, row.get(name), f"a {kind.__name__} that is not empty")
    if len(row["statements"]) < MIN_STATEMENTS:
        found = f"{len(row['statements'])} statements"
        raise bad("statements", found, f"at least {MIN_STATEMENTS}")


def condition_of(bad: partial[DataError], row: dict, knowledge: Knowledge) -> Condition:
    """The condition that ``condition`` and ``diagnosis`` both mean."""
    condition = knowledge.conditions.get(row["condition"])
    if condition is None:
        raise bad("condition", row["condition"], "an id of data/knowledge/conditions.yml")
    if row["diagnosis"] != condition.name:
        raise bad("diagnosis", row["diagnosis"], f"the name of {condition.id}, {condition.name!r}")
    return condition


def patient_of(
    bad: partial[DataError],
    age: object,
    sex: object,
    prefix: str = "",
    chart: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """``age`` and ``sex``, and what else of a ``chart`` is recorded, checked; ``prefix`` stands
    before them in an error."""
    if type(age) is not int or not 0 <= age <= 120:
        raise bad(f"{prefix}age", age, "a whole number from 0 to 120")
    if sex not in SEXES:
        raise bad(f"{prefix}sex", sex, " or ".join(SEXES))
    rest = {field: chart[field] for field in FIELDS[2:] if chart and chart.get(field) is not None}
    try:
        chart_from(rest)
    except ValueError as error:
        raise bad(f"{prefix}chart", rest, str(error)) from error
    return {"age": age, "sex": sex, **rest}


def _case(bad: partial[DataError], row: dict, knowledge: Knowledge) -> Case:
    kinds = {"case_id": str, "diagnosis": str, "condition": str, "patient": dict}
    check_fields(bad, row, {**kinds, "statements": list})
    condition, record = condition_of(bad, row, knowledge), row.get("record")
    told = row["patient"]
    if not isinstance(record, list | None):
        raise bad("record", record, "a list, or left out")
    return Case(
        case_id=row["case_id"],
        dataset="starter",
        statements=tuple(
            _statement(bad, f"statement {i}", item, knowledge)
            for i, item in enumerate(row["statements"], 1)
        ),
        diagnosis=condition.name,
        accepted=condition.names,
        patient=patient_of(bad, told.get("age"), told.get("sex"), "patient.", told),
        record=tuple(
            _statement(bad, f"record {i}", item, knowledge)
            for i, item in enumerate(record or (), 1)
        ),
        denies=frozenset() if record is None else frozenset(knowledge.findings),
    )


def _statement(
    bad: partial[DataError], where: str, item: object, knowledge: Knowledge
) -> Statement:
    if not isinstance(item, dict):
        raise bad(where, item, "an object with text, finding and affirmed")
    text, finding, affirmed = item.get("text"), item.get("finding"), item.get("affirmed")
    if not isinstance(text, str) or not text.strip():
        raise bad(f"{where}, text", text, "a str that is not empty")
    if not isinstance(finding, str) or finding not in knowledge.findings:
        raise bad(f"{where}, finding", finding, "an id of data/knowledge/findings.yml")
    if not isinstance(affirmed, bool):
        raise bad(f"{where}, affirmed", affirmed, "true or false")
    return Statement(text, finding, affirmed)


DELIMITERS = {".csv": ",", ".tsv": "\t"}
SHEETS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
"""How a spreadsheet's own file begins: it is a zip, or Excel's older format."""
AS_CSV = "save the table as CSV, with commas, in UTF-8"
HEAD = 1 << 16
"""Bytes of a table that are looked at before it is read."""
OWN = ("id", "statements", "text", "diagnosis", "accepted")
"""The columns with a meaning; every other one describes the patient."""

_TURN = re.compile(r"(?:^|\s+)(?=(?:Doctor|Patient):)")
_DIALOGUE = re.compile(r"^\s*(?:Doctor|Patient):", re.MULTILINE)
_EMPTY = (None, "", [])
NO_NAMES = ("", "na", "n a", "n a n a", "nan", "nat", "null", "nil", "none", "1 ind", "1 qnan")
"""What other programs write for an empty cell, normalised."""
_NAMELESS = re.compile(r"(Unnamed: \d+(\.\d+)?)?")
"""How a column without a name is called, by pandas too."""
_SHORT, _BLANK = f"fewer than {MIN_STATEMENTS} statements", "empty rows"


def read_table(path: Path | None = None, seed: int = 0) -> Read:
    """The cases of the table ``path`` in file order: ``.csv``, ``.tsv`` or ``.jsonl`` (one JSON
    object a line), in UTF-8.

    Columns (or keys):

    - ``id``: any text, different in every row (``007`` stays ``007``; in JSON lines a string).
    - ``statements``: what is told, in order. JSON lines: a list of strings. CSV: a statement on
      each line of the cell.
    - ``text``, instead of ``statements``: running text, cut by :func:`sentences`; a dialogue is cut
      into its exchanges.
    - ``diagnosis``: the name of the right diagnosis.
    - ``accepted``, optional: its other names. A list, or one text with ``;`` between the names.
    - Every other column goes to ``Case.patient`` where it is filled. No model sees it, nor the
      diagnosis, but a panel's doctors and reviewers see those of a chart
      (:data:`trustlab.safety.chart.FIELDS`).

    Lines that begin with ``Doctor:`` and ``Patient:`` are a dialogue: a doctor's line and the
    patient's line after it are one statement. A benchmark needs more than 10 statements a case:
    shorter cases and empty rows are left out, and a warning counts them. Cells are read_table as
    text; JSON values outside the columns above stay as they are. ``seed`` changes nothing.

    Raises :class:`DataError` for a row or header that breaks the format, those left out too, and
    ``ValueError`` where there is no such file or nothing is left.
    """
    if path is None:
        told = "a .csv, .tsv or .jsonl file (data/README.md shows the format)"
        raise ValueError(f"path is None; give your table as path, {told}")
    if not path.exists():
        allowed = "a .csv, .tsv or .jsonl file"
        raise ValueError(f"path is {str(path)!r}, which does not exist; allowed is {allowed}")
    cases: list[Case] = []
    seen: dict[str, int] = {}
    left_out: dict[str, list[int]] = {_SHORT: [], _BLANK: []}
    n_rows = 0
    for n_rows, row in table_rows(path, _check_header):
        if all(value in _EMPTY for value in row.values()):
            left_out[_BLANK].append(n_rows)
            continue
        bad = partial(DataError, path, n_rows)
        case = _case_of_row(bad, row)
        if case.case_id in seen:
            allowed = f"an id that no earlier row has (row {seen[case.case_id]} has it)"
            raise bad("id", case.case_id, allowed)
        seen[case.case_id] = n_rows
        if len(case.statements) < MIN_STATEMENTS:
            left_out[_SHORT].append(n_rows)
        else:
            cases.append(case)
    return Read(
        cases, n_rows, {what: list(map(str, rows)) for what, rows in left_out.items() if rows}
    )


# -- files
# --------------------------------------------------------------------------------------------------


def check_table(file: Path) -> None:
    """Refuse, by its name and first bytes, what :func:`read_table` cannot read.

    :class:`DataError` for another kind of file, a spreadsheet's own, whatever its name, semicolons
    for commas, and another encoding.
    """
    kind, head = file.suffix.lower(), b""
    if file.is_file():
        with file.open("rb") as stream:
            head = stream.read(HEAD)
    if head.startswith(SHEETS):
        sheet = "a .csv, .tsv or .jsonl file, and this is a spreadsheet's own or an archive"
        raise DataError(file, None, "file", head[:4], f"{sheet}; {AS_CSV}")
    if not file.is_file() or kind not in (*DELIMITERS, ".jsonl"):
        raise DataError(file, None, "file", file.name, "a .csv, .tsv or .jsonl file")
    try:
        text = getincrementaldecoder("utf-8")().decode(head, final=len(head) < HEAD)
    except UnicodeDecodeError as error:
        raise wrong_encoding(file, error, line=_line(error)) from error
    header = _without_sep(text, DELIMITERS.get(kind, "")).partition("\n")[0].strip()
    for mark, name in ((";", "semicolons"), ("\t", "tabs")):
        if kind == ".csv" and mark in header and "," not in header:
            raise DataError(file, None, "header", header, f"commas, and no {name}; {AS_CSV}")


CheckHeader = Callable[[Path, Sequence[str], str], None]
"""Refuses the header of a file whose cells have this delimiter between."""


def _without_sep(text: str, delimiter: str) -> str:
    """The text without Excel's first line ``sep=,``, where it names the delimiter."""
    return re.sub(rf"\Asep={delimiter}\s*\n", "", text, flags=re.IGNORECASE)


def table_text(file: Path) -> str:
    """The text of a ``.csv`` or ``.tsv`` file from its header on; errors: :func:`read_text`."""
    return _without_sep(read_text(file), DELIMITERS.get(file.suffix.lower(), ","))


def named_columns(
    file: Path | str, header: Sequence[str], rows: Iterable[Sequence[object]]
) -> list[int]:
    """Places of the columns to read: those with a name.

    Without one may be pandas' index, before all others, and columns that are empty, which Excel
    leaves. :class:`DataError` for another one, and for a name that comes twice.
    """
    kept: list[int] = []
    for place, name in enumerate(header):
        bad = partial(DataError, file, None, f"header, column {place + 1}")
        if _NAMELESS.fullmatch(name):
            cells = [str(cell).strip() for row in rows for cell in row[place : place + 1]]
            filled = [cell for cell in cells if normalise(cell) not in NO_NAMES]
            whole = all(re.fullmatch(r"\d+(\.0)?", cell) for cell in filled)
            if not filled or (whole and not kept):
                continue
            if not name:
                raise bad(filled[0], "a name for every column that is not empty")
        if name in header[:place]:
            raise bad(name, "a name for every column, and no name twice")
        kept.append(place)
    return kept


def table_rows(
    file: Path, check: CheckHeader | None = None
) -> Iterator[tuple[int, dict[str, object]]]:
    """(row number from 1, columns) of every row, empty ones too; blank lines at the end are
    none."""
    check_table(file)
    kind = file.suffix.lower()
    if kind in DELIMITERS:
        yield from _csv_rows(file, table_text(file).rstrip("\n"), DELIMITERS[kind], check)
    elif text := read_text(file).rstrip("\n"):
        for number, line in enumerate(text.split("\n"), 1):
            row = json_object(partial(DataError, file, number), line) if line.strip() else {}
            yield number, {column: _stripped(value) for column, value in row.items()}


def _csv_rows(
    file: Path, text: str, delimiter: str, check: CheckHeader | None
) -> Iterator[tuple[int, dict[str, object]]]:
    rows: list[list[str]] = []
    try:
        for cells in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True):
            rows.append(cells)
    except csv.Error as error:
        allowed = (
            f"quotation marks in pairs, and up to {csv.field_size_limit():,} characters a cell"
        )
        raise DataError(file, len(rows) or None, "row", str(error), allowed) from error
    header = [from_spreadsheet(name.strip()) for name in rows.pop(0)] if rows else []
    kept = named_columns(file, header, rows)
    if check is not None:
        check(file, [header[place] for place in kept], delimiter)
    least = kept[-1] + 1 if kept else 0
    for number, cells in enumerate(rows, 1):
        beyond = any(map(str.strip, cells[len(header) :]))
        if any(map(str.strip, cells)) and (len(cells) < least or beyond):
            allowed = f"{len(header)}, as the header (cells may need quotation marks)"
            raise DataError(file, number, "row", f"{len(cells)} cells", allowed)
        there = {header[place]: cells[place].strip() for place in kept if place < len(cells)}
        yield number, {name: from_spreadsheet(cell) for name, cell in there.items()}


def _check_header(file: Path, header: Sequence[str], delimiter: str) -> None:
    bad = partial(DataError, file, None, "header", list(header))
    missing = [name for name in ("id", "diagnosis") if name not in header]
    if not {"statements", "text"} & set(header):
        missing.append("statements or text")
    if missing:
        between = "tabs" if delimiter == "\t" else "commas"
        allowed = f"id, diagnosis, and statements or text, with {between} between"
        raise bad(f"{allowed}; missing: {', '.join(missing)}")


def _stripped(value: object) -> object:
    return value.strip() if isinstance(value, str) else value


# -- rows
# --------------------------------------------------------------------------------------------------


def _case_of_row(bad: partial[DataError], row: dict[str, object]) -> Case:
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
        patient={
            name: value for name, value in row.items() if name not in OWN and value not in _EMPTY
        },
    )


def _name(bad: partial[DataError], field: str, value: object) -> str:
    if not isinstance(value, str) or normalise(value) in NO_NAMES:
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
        allowed = "a list of strings, or one str with a statement on each line"
        raise bad("statements", statements, allowed)
    if text is not None and not isinstance(text, str):
        raise bad("text", text, "a str")
    for i, statement in enumerate(statements or [], 1):
        if not isinstance(statement, str) or not statement.strip():
            raise bad(f"statement {i}", statement, "a str that is not empty")
    return _exchanges(statements or _pieces(text or ""))


def _pieces(text: str) -> list[str]:
    """Running text as sentences; a dialogue as turns, with what stands before the first one as
    sentences."""
    if not _DIALOGUE.search(text):
        return sentences(text)
    before, *turns = _TURN.split(text)
    return sentences(before) + [" ".join(turn.split()) for turn in turns]


def _exchanges(pieces: Iterable[str]) -> list[str]:
    """``pieces`` with each doctor's turn joined to the patient's turn right after it, on a line
    each."""
    found: list[str] = []
    for piece in map(str.strip, pieces):
        asked = bool(found) and found[-1].startswith("Doctor:") and "Patient:" not in found[-1]
        if asked and piece.startswith("Patient:"):
            found[-1] += f"\n{piece}"
        else:
            found.append(piece)
    return found


DIALOGUE = DATA / "starter" / "dialogue.jsonl"
REPORT = DATA / "starter" / "report.jsonl"


def read_dialogue(path: Path | None = None, seed: int = 0) -> Read:
    """Conversations, a statement for each exchange: the cases of ``path``, by default
    :data:`DIALOGUE`, in file order.

    One JSON object a line: ``case_id``, ``diagnosis`` (the condition's name), ``condition`` (its
    id), ``age`` in years, ``sex``, perhaps ``chart`` (:data:`trustlab.safety.chart.FIELDS`), and
    ``statements`` (texts). Every name of the condition is accepted; what a statement tells is not
    marked. A folder means its ``dialogue.jsonl``. ``seed`` changes nothing. Raises as
    :func:`read_starter`.
    """
    return _read_spoken("starter-dialogue", path or DIALOGUE, DIALOGUE.name)


def read_report(path: Path | None = None, seed: int = 0) -> Read:
    """Reports, a statement for each sentence: the same format, by default :data:`REPORT`
    (``report.jsonl`` in a folder)."""
    return _read_spoken("starter-report", path or REPORT, REPORT.name)


def _read_spoken(dataset: str, path: Path, name: str) -> Read:
    return read_cases(
        path, name, f"a file in the format of data/starter/{name}", partial(_spoken_case, dataset)
    )


def _spoken_case(dataset: str, bad: partial[DataError], row: dict, knowledge: Knowledge) -> Case:
    check_fields(bad, row, {"case_id": str, "diagnosis": str, "condition": str, "statements": list})
    condition = condition_of(bad, row, knowledge)
    if not isinstance(row.get("chart", {}), dict):
        raise bad("chart", row["chart"], "an object")
    for i, text in enumerate(row["statements"], 1):
        if not isinstance(text, str) or not text.strip():
            raise bad(f"statement {i}", text, "a str that is not empty")
    return Case(
        case_id=row["case_id"],
        dataset=dataset,
        statements=tuple(map(Statement, row["statements"])),
        diagnosis=condition.name,
        accepted=condition.names,
        patient=patient_of(bad, row.get("age"), row.get("sex"), chart=row.get("chart") or {}),
    )
