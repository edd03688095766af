"""Reads a user's own table of patients, as cases."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ValidationError,
    WrapValidator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from trustlab.choices import utf8
from trustlab.knowledge.giveaway import giveaway
from trustlab.knowledge.sentences import sentences
from trustlab.records import Case, Statement
from trustlab.tables import NAME, Bad, DataError, is_name, table_rows, warn_of_encoded

MIN_STATEMENTS = 11
"""Cases need more than 10 statements (Ren et al. 2026, section on the benchmark)."""


NAMED = "cases whose text names their diagnosis"
"""A history, a question or a denial may do that: such a case is kept, and easier than it looks."""
N_NAMED = 5  # how many of the dropped entries are named for each reason


@dataclass(frozen=True)
class Read:
    """What a loader made of a file.
    ``cases`` are in file order and may be made only when they are used. ``n_entries``: how many
    rows, dialogues or questions were read. ``dropped``: reason -> row numbers or ids of the entries
    that became no case. ``counts``: the loader's further counts, by what they count."""

    cases: Sequence[Case]
    n_entries: int
    dropped: Mapping[str, Sequence[str]] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def facts(self) -> dict[str, int]:
        """``counts``, and how many cases name their diagnosis. This makes every case."""
        return {**self.counts, NAMED: sum(map(names_its_diagnosis, self.cases))}

    @property
    def losses(self) -> list[str]:
        """One line for each reason: how many entries were dropped, and the first of them."""
        lines = []
        for reason, entries in self.dropped.items():
            first_entries = ", ".join(entries[:N_NAMED])
            more = ", ..." if len(entries) > N_NAMED else ""
            lines.append(f"{reason}: {len(entries):,} ({first_entries}{more})")
        return lines


def allowed(
    words: str, holds: Callable[[Any], object] = lambda _: True
) -> WrapValidator:
    """A pydantic check of a value that ``holds`` is true of; ``words`` say what is allowed."""

    def check(value: object, read: Callable[[object], object]) -> object:
        try:
            parsed = read(value)
        except ValidationError:
            parsed = None
        if parsed is None or not holds(parsed):
            raise PydanticCustomError("not allowed", words)  # pyright: ignore
        return parsed

    return WrapValidator(check)


class Row(BaseModel, strict=True):
    """The fields of a JSON object; further ones are let be, and null is absent."""

    @model_validator(mode="before")
    @classmethod
    def _whole(cls, row: Any) -> Any:
        if not isinstance(row, dict):
            return row
        required = {
            field_info.alias or name: None
            for name, field_info in cls.model_fields.items()
            if field_info.is_required()
        }
        present = {name: value for name, value in row.items() if value is not None}
        return required | present


R = TypeVar("R", bound=Row)


def parse_row(kind: type[R], row: object, bad: Bad) -> R:
    """The row as ``kind``; for the first value that breaks it the error of its place."""
    try:
        return kind.model_validate(row)
    except ValidationError as error:
        raise _first_fault(error, bad) from None


def _first_fault(error: ValidationError, bad: Bad) -> DataError:
    """The error that names the first value that breaks a row, and what is allowed there."""
    fault = error.errors()[0]
    value = fault["input"]
    words = fault["msg"].removeprefix("Input should be ")
    if fault["type"] == "model_type":
        words = "a JSON object"
    elif fault["type"] == "too_short":
        least = fault.get("ctx", {})["min_length"]
        value = f"{len(value)} of them"
        words = f"at least {least}"
    return bad(_place_of_fault(fault["loc"]) or "row", value, words)


def _place_of_fault(location: Sequence[int | str]) -> str:
    """Where in a row a value is: ``statement 3, text``, ``patient.age``; '' for the whole row."""
    place = ""
    for part in location:
        if isinstance(part, int):
            place = f"{place.removesuffix('s')} {part + 1}, "
        elif place == "" or place.endswith(" "):
            place += part
        else:
            place += f".{part}"
    return place.removesuffix(", ")


def _is_text(text: str) -> bool:
    return text.strip() != "" and utf8(text)


Text = Annotated[str, allowed("a str that is not empty", _is_text)]


OWN = ("id", "statements", "text", "diagnosis", "accepted")
"""The columns with a meaning; every other one describes the patient."""
_DIALOGUE = re.compile(r"^\s*(?:Doctor|Patient):", re.MULTILINE)
_EMPTY = (None, "", [])
_SHORT = f"fewer than {MIN_STATEMENTS} statements"


def _split_cell(separator: str, value: object) -> object:
    """The parts of a cell's text; any other value as it is."""
    if isinstance(value, str):
        return [part for part in value.split(separator) if part.strip()]
    return value


Name = Annotated[str, allowed(NAME, is_name)]


class _Own(Row):
    id: Text
    diagnosis: Name
    accepted: Annotated[list[Name], BeforeValidator(partial(_split_cell, ";"))] = []
    statements: Annotated[list[Text], BeforeValidator(partial(_split_cell, "\n"))] = []
    text: str = ""


def read_table(path: Path, seed: int = 0) -> Read:
    """The cases of the table ``path`` in file order: ``.csv``, ``.tsv`` or ``.jsonl``, in UTF-8.
    The columns: data/README.md, *Your own cases*. Left out and counted: cases with 10 statements or
    fewer. :class:`DataError`: a row or header that breaks the format, also of those left out. A
    warning names cells that another program has encoded (``&#39;``). ``seed``: not used."""
    cases: list[Case] = []
    row_of_id: dict[str, int] = {}
    short_rows: list[str] = []
    rows = table_rows(path, _check_header)
    warn_of_encoded(path, rows, stacklevel=6)
    for number, row in enumerate(rows, 1):
        bad = partial(DataError, path, number)
        case = _case_of_row(bad, row)
        if case.case_id in row_of_id:
            first_row = row_of_id[case.case_id]
            words = f"an id that no earlier row has (row {first_row} has it)"
            raise bad("id", case.case_id, words)
        row_of_id[case.case_id] = number
        if len(case.statements) < MIN_STATEMENTS:
            short_rows.append(str(number))
        else:
            cases.append(case)
    dropped = {_SHORT: short_rows} if short_rows else {}
    return Read(cases, len(rows), dropped)


def _check_header(file: Path, header: list[str]) -> None:
    missing = [name for name in ("id", "diagnosis") if name not in header]
    if not {"statements", "text"} & set(header):
        missing.append("statements or text")
    if missing:
        separators = "tabs" if file.suffix.lower() == ".tsv" else "commas"
        words = f"id, diagnosis, and statements or text, with {separators} between"
        words += f"; missing: {', '.join(missing)}"
        raise DataError(file, None, "header", header, words)


def _case_of_row(bad: Bad, row: dict[str, object]) -> Case:
    own = parse_row(_Own, row, bad)
    if own.statements and own.text:
        raise bad("text", own.text, "statements or text, not both in one row")
    if not {"statements", "text"} & set(row):
        raise bad("statements", None, "statements or text in every row")
    if _DIALOGUE.search(own.text):
        raise bad(
            "text",
            own.text,
            "running text; a dialogue goes into statements, turn by turn",
        )
    exchanges = _join_exchanges(own.statements or sentences(own.text))
    statements = tuple(map(Statement, exchanges))
    accepted = dict.fromkeys((own.diagnosis, *map(str.strip, own.accepted)))
    patient = {
        name: value
        for name, value in row.items()
        if name not in OWN and value not in _EMPTY
    }
    return Case(own.id, "table", statements, own.diagnosis, tuple(accepted), patient)


def _join_exchanges(turns: Iterable[str]) -> list[str]:
    """Statements of a conversation: each doctor's turn, and the patient's right after it on a line
    of its own."""
    exchanges: list[str] = []
    for turn in map(str.strip, turns):
        is_answer = turn.startswith("Patient:")
        if is_answer and exchanges and _lacks_answer(exchanges[-1]):
            exchanges[-1] += f"\n{turn}"
        else:
            exchanges.append(turn)
    return exchanges


def _lacks_answer(exchange: str) -> bool:
    return exchange.startswith("Doctor:") and "Patient:" not in exchange


def names_its_diagnosis(case: Case) -> bool:
    """Whether a statement says the diagnosis: an accepted or an everyday name, even to deny it."""
    names = (case.diagnosis, *case.accepted)
    return any(_is_named_in(statement.text, names) for statement in case.statements)


_cached_giveaway = lru_cache(maxsize=2**10)(giveaway)


@lru_cache(maxsize=2**16)  # data sets from templates repeat few texts very often
def _is_named_in(text: str, names: tuple[str, ...]) -> bool:
    """Whether a text says one of the names of a diagnosis, or an everyday name of it."""
    return _cached_giveaway(names, "").heard_in(text)
