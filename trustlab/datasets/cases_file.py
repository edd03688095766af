"""Reads a user's own table of cases."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ValidationError, WrapValidator, model_validator
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
        return [
            f"{reason}: {len(entries):,}"
            f" ({', '.join(entries[:N_NAMED])}{', ...' * (len(entries) > N_NAMED)})"
            for reason, entries in self.dropped.items()
        ]


def allowed(words: str, holds: Callable[[Any], object] = lambda _: True) -> WrapValidator:
    """A pydantic check of a value that ``holds`` is true of; ``words`` say what is allowed."""

    def check(value: object, read: Callable[[object], object]) -> object:
        try:
            found = read(value)
        except ValidationError:
            found = None
        if found is None or not holds(found):
            raise PydanticCustomError("not allowed", words)  # pyright: ignore
        return found

    return WrapValidator(check)


class Row(BaseModel, strict=True):
    """The fields of a JSON object; further ones are let be, and null is absent."""

    @model_validator(mode="before")
    @classmethod
    def _whole(cls, row: Any) -> Any:
        if not isinstance(row, dict):
            return row
        required = (f.alias or n for n, f in cls.model_fields.items() if f.is_required())
        return dict.fromkeys(required) | {n: v for n, v in row.items() if v is not None}


R = TypeVar("R", bound=Row)


def checked(kind: type[R], row: object, bad: Bad) -> R:
    """The row as ``kind``; for the first value that breaks it the error of its place."""
    try:
        return kind.model_validate(row)
    except ValidationError as error:
        first = error.errors()[0]
        place = ""
        for part in first["loc"]:  # statement 3, text; patient.age
            if isinstance(part, int):
                place = f"{place.removesuffix('s')} {part + 1}, "
            else:
                place += f".{part}" if place[-1:] not in ("", " ") else part
        value, words = first["input"], first["msg"].removeprefix("Input should be ")
        if first["type"] == "model_type":
            words = "a JSON object"
        elif first["type"] == "too_short":
            value, words = f"{len(value)} of them", f"at least {first.get('ctx', {})['min_length']}"
        raise bad(place.removesuffix(", ") or "row", value, words) from None


Text = Annotated[str, allowed("a str that is not empty", lambda s: s.strip() and utf8(s))]


OWN = ("id", "statements", "text", "diagnosis", "accepted")
"""The columns with a meaning; every other one describes the patient."""
_DIALOGUE = re.compile(r"^\s*(?:Doctor|Patient):", re.MULTILINE)
_EMPTY = (None, "", [])
_SHORT = f"fewer than {MIN_STATEMENTS} statements"


def _parts(between: str, value: object) -> object:
    """The parts of a cell's text; any other value as it is."""
    if isinstance(value, str):
        return [part for part in value.split(between) if part.strip()]
    return value


Name = Annotated[str, allowed(NAME, is_name)]


class _Own(Row):
    id: Text
    diagnosis: Name
    accepted: Annotated[list[Name], BeforeValidator(partial(_parts, ";"))] = []
    statements: Annotated[list[Text], BeforeValidator(partial(_parts, "\n"))] = []
    text: str = ""


def read_table(path: Path, seed: int = 0) -> Read:
    """The cases of the table ``path`` in file order: ``.csv``, ``.tsv`` or ``.jsonl``, in UTF-8.
    The columns: data/README.md, *Your own cases*. Left out and counted: cases with 10 statements or
    fewer. :class:`DataError`: a row or header that breaks the format, also of those left out. A
    warning names cells that another program has encoded (``&#39;``). ``seed``: not used."""
    cases: list[Case] = []
    seen: dict[str, int] = {}
    short: list[str] = []
    rows = table_rows(path, _check_header)
    warn_of_encoded(path, rows, stacklevel=6)
    for number, row in enumerate(rows, 1):
        bad = partial(DataError, path, number)
        case = _case_of_row(bad, row)
        if first := seen.get(case.case_id):
            raise bad("id", case.case_id, f"an id that no earlier row has (row {first} has it)")
        seen[case.case_id] = number
        if len(case.statements) < MIN_STATEMENTS:
            short.append(str(number))
        else:
            cases.append(case)
    return Read(cases, len(rows), {_SHORT: short} if short else {})


def _check_header(file: Path, header: list[str]) -> None:
    missing = [name for name in ("id", "diagnosis") if name not in header]
    if not {"statements", "text"} & set(header):
        missing.append("statements or text")
    if missing:
        between = "tabs" if file.suffix.lower() == ".tsv" else "commas"
        words = f"id, diagnosis, and statements or text, with {between} between"
        raise DataError(file, None, "header", header, f"{words}; missing: {', '.join(missing)}")


def _case_of_row(bad: Bad, row: dict[str, object]) -> Case:
    own = checked(_Own, row, bad)
    if own.statements and own.text:
        raise bad("text", own.text, "statements or text, not both in one row")
    if not {"statements", "text"} & set(row):
        raise bad("statements", None, "statements or text in every row")
    if _DIALOGUE.search(own.text):
        raise bad("text", own.text, "running text; a dialogue goes into statements, turn by turn")
    statements = tuple(map(Statement, _exchanges(own.statements or sentences(own.text))))
    accepted = tuple(dict.fromkeys((own.diagnosis, *map(str.strip, own.accepted))))
    about = {n: value for n, value in row.items() if n not in OWN and value not in _EMPTY}
    return Case(own.id, "table", statements, own.diagnosis, accepted, about)


def _exchanges(pieces: Iterable[str]) -> list[str]:
    """``pieces``, each doctor's turn joined to the patient's right after it, on a line each."""
    found: list[str] = []
    for piece in map(str.strip, pieces):
        asked = bool(found) and found[-1].startswith("Doctor:") and "Patient:" not in found[-1]
        if asked and piece.startswith("Patient:"):
            found[-1] += f"\n{piece}"
        else:
            found.append(piece)
    return found


def names_its_diagnosis(case: Case) -> bool:
    """Whether a statement says the diagnosis: an accepted or an everyday name, even to deny it."""
    names = (case.diagnosis, *case.accepted)
    return any(_heard(names, statement.text) for statement in case.statements)


_of_names = lru_cache(maxsize=2**10)(giveaway)


@lru_cache(maxsize=2**16)
def _heard(names: tuple[str, ...], text: str) -> bool:
    """Data sets from templates repeat few texts very often."""
    return _of_names(names, "").heard_in(text)
