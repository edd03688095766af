"""Reads DDXPlus, and says its evidences as sentences."""

from __future__ import annotations

import ast
import random
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import Field

from trustlab.datasets.cases_file import MIN_STATEMENTS, Bad, Read, Row, checked
from trustlab.knowledge.findings import answer_text, load_knowledge, say
from trustlab.records import Case, Statement
from trustlab.tables import DataError, whole_json, within, wrong_encoding

CONDITIONS, EVIDENCES = "release_conditions.json", "release_evidences.json"
COLUMNS = ("AGE", "DIFFERENTIAL_DIAGNOSIS", "SEX", "PATHOLOGY", "EVIDENCES", "INITIAL_EVIDENCE")
SEXES = {"F": "female", "M": "male"}
GET_IT = (
    f"trustlab data fetch ddxplus --to FOLDER gets {CONDITIONS}, {EVIDENCES} and"
    " release_test_patients.zip of 'DDXPlus Dataset (English)', figshare article 22687585, CC BY"
)


class Evidence(Row):
    """One entry of the evidence file, by its fields there."""

    code_question: str
    data_type: Literal["B", "C", "M"]
    default_value: int | str
    possible_values: list[Any] = Field(alias="possible-values")
    value_meaning: dict[str, Any]

    @cached_property
    def meanings(self) -> dict[str, str]:
        """Each possible value, as text, and its English meaning."""
        found = {value: self.value_meaning.get(value) for value in map(str, self.possible_values)}
        return {v: str(m.get("en", v)) if isinstance(m, dict) else v for v, m in found.items()}


@dataclass(frozen=True)
class Release:
    """The two JSON files: the conditions' names, and the evidences by code."""

    conditions: frozenset[str]
    evidences: Mapping[str, Evidence]


@dataclass(frozen=True)
class Patient:
    """One row, checked. ``evidences``: name -> its values (none of a binary one), in file order."""

    age: int
    sex: str
    pathology: str
    differential: tuple[tuple[str, float], ...]
    evidences: Mapping[str, Sequence[str]]
    initial: str


def patients_file(path: Path) -> Path:
    """``path`` itself, or the one file of the test split in that folder; ``ValueError`` where there
    is none, or several. The other splits are read only by their own path."""
    if path.is_file():
        return path
    found = sorted(path.glob("release_test_patients*"))
    if len(found) != 1:
        names = ", ".join(p.name for p in found) or "none"
        what = f"a folder with {len(found)} files release_test_patients* ({names})"
        raise ValueError(f"path is {str(path)!r}, {what}; give one file as path, or {GET_IT}")
    return found[0]


def read_release(folder: Path) -> Release:
    """Conditions and evidences of ``folder``; ``ValueError`` where one is missing or broken."""
    found: dict[str, dict[str, Any]] = {}
    for name in (EVIDENCES, CONDITIONS):
        if not (folder / name).is_file():
            raise ValueError(f"{name} is not in {str(folder)!r}; {GET_IT}")
        content = whole_json(folder / name)
        if not isinstance(content, dict) or not content:
            words = "a JSON object that is not empty"
            raise DataError(folder / name, None, "content", content, words)
        found[name] = content
    evidences = {
        code: checked(Evidence, entry, within(folder / EVIDENCES, code, "."))
        for code, entry in found[EVIDENCES].items()
    }
    for code in evidences:
        if code not in load_knowledge().finding_of_code:
            words = "the evidences of the English release, for which we have words"
            raise DataError(folder / EVIDENCES, None, "evidence", code, words)
    return Release(frozenset(found[CONDITIONS]), evidences)


def rows(file: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """(number from 1, columns) of every row, unchecked; :class:`DataError` for no such table."""
    try:
        table = pd.read_csv(file, dtype=str, na_filter=False, encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise wrong_encoding(file, error) from error
    except (ValueError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        words = "a CSV file with its header, or a zip of one"
        raise DataError(file, None, "content", str(error), words) from error
    header = list(table.columns)
    missing = [name for name in COLUMNS if name not in header]
    again = [name for name in COLUMNS if f"{name}.1" in header]  # as pandas calls a second one
    if missing or again or not isinstance(table.index, pd.RangeIndex):
        fault = f"{'missing' if missing else 'repeated'}: {', '.join(missing or again)}"
        words = f"all of {', '.join(COLUMNS)}, and no name twice; {fault}"
        raise DataError(file, None, "header", header, words)
    yield from enumerate(table[list(COLUMNS)].to_dict("records"), 1)  # type: ignore


def read_patient(file: Path, number: int, row: dict, release: Release) -> Patient:
    """The row as a patient; :class:`DataError` where it breaks the format."""
    bad = partial(DataError, file, number)
    if not re.fullmatch("[0-9]{1,3}", row["AGE"]) or int(row["AGE"]) > 120:
        raise bad("AGE", row["AGE"], "a whole number from 0 to 120")
    if row["SEX"] not in SEXES:
        raise bad("SEX", row["SEX"], " or ".join(SEXES))
    if row["PATHOLOGY"] not in release.conditions:
        raise bad("PATHOLOGY", row["PATHOLOGY"], f"a condition of {CONDITIONS}")
    codes = _list(bad, row, "EVIDENCES")
    if row["INITIAL_EVIDENCE"] not in codes:
        raise bad("INITIAL_EVIDENCE", row["INITIAL_EVIDENCE"], "one of the row's EVIDENCES")
    return Patient(
        age=int(row["AGE"]),
        sex=SEXES[row["SEX"]],
        pathology=row["PATHOLOGY"],
        differential=_differential(bad, _list(bad, row, "DIFFERENTIAL_DIAGNOSIS"), release),
        evidences=_evidences(bad, codes, release),
        initial=row["INITIAL_EVIDENCE"].partition("_@_")[0],
    )


def _list(bad: Bad, row: dict, column: str) -> list:
    why = content = None
    try:
        content = ast.literal_eval(row[column])
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        why = error
    if not isinstance(content, list):
        raise bad(column, row[column], "a Python list literal") from why
    return content


def _differential(bad: Bad, pairs: list, release: Release) -> tuple[tuple[str, float], ...]:
    table: dict[str, float] = {}
    allowed = f"[a condition of {CONDITIONS}, a probability from 0 to 1]"
    for pair in pairs:
        name, chance = pair if isinstance(pair, list) and len(pair) == 2 else ("", -1)
        known = isinstance(name, str) and name in release.conditions
        if not known or type(chance) not in (int, float) or not 0 <= chance <= 1:
            raise bad("DIFFERENTIAL_DIAGNOSIS", pair, allowed)
        if name in table:
            raise bad("DIFFERENTIAL_DIAGNOSIS", pair, "every condition once")
        table[str(name)] = float(chance)
    return tuple(table.items())


def _evidences(row: Bad, codes: list, release: Release) -> dict[str, list[str]]:
    """As :class:`Patient` holds them."""
    bad = partial(row, "EVIDENCES")
    table: dict[str, list[str]] = {}
    for code in codes:
        name, mark, value = code.partition("_@_") if isinstance(code, str) else ("", "", "")
        if name not in release.evidences:
            raise bad(code, f"a code of {EVIDENCES}, or code_@_value")
        evidence, values = release.evidences[name], table.setdefault(name, [])
        if evidence.data_type == "B":
            if mark:
                raise bad(code, f"{name} without a value: it is binary")
        elif not mark:
            raise bad(code, f"{name}_@_value: it is not binary")
        elif value not in evidence.meanings:
            raise bad(code, f"{name} with a value among {', '.join(evidence.meanings)}")
        elif value not in values:
            if evidence.data_type == "C" and values:
                once = f"{name} with one value ({values[0]} came before)"
                raise bad(code, f"{once}: only multi-choice evidences repeat")
            values.append(value)
    return table


SHORT, AGAIN = f"fewer than {MIN_STATEMENTS} statements", "the same row as an earlier one"
LACKING = "cases whose differential lacks their pathology"


def told_first(demographics: bool, age: int, sex: str) -> tuple[Statement, ...]:
    """Where ``demographics`` are told: age in years and sex, which are no finding."""
    if type(demographics) is not bool:
        raise ValueError(f"demographics is {demographics!r}; allowed are True and False")
    answer = f"{age or 'Less than 1'} year{'s' * (age > 1)} old, {sex}."
    asked = "Doctor: How old are you, and what is your sex?"
    return (Statement(f"{asked}\nPatient: {answer}"),) if demographics else ()


def read(path: Path, seed: int = 0, demographics: bool = False) -> Read:
    """The cases of a release in file order, without repeated rows and those too short.

    ``path`` is the release's folder, or a patients file (CSV, or the official zip) with the two
    JSON files beside it. ``seed`` and the row number decide order and wording; ``demographics``:
    age and sex come first (:func:`told_first`), whoever qualifies without. A differential that
    lacks the pathology is counted, and the case kept. Every row is checked, and a case is made when
    it is looked at. ``ValueError`` where a file is lacking, :class:`DataError` for a bad row.
    """
    file = patients_file(path)
    release = read_release(file.parent)
    kept: dict[tuple[str, ...], int] = {}  # the row's columns -> its number
    dropped: dict[str, list[str]] = {}
    number = n_lacking = 0
    for number, row in rows(file):
        patient = read_patient(file, number, row, release)
        columns = tuple(row[column] for column in COLUMNS)
        short = len(patient.evidences) < MIN_STATEMENTS
        if short or columns in kept:
            dropped.setdefault(SHORT if short else AGAIN, []).append(str(number))
        else:
            kept[columns] = number
            n_lacking += patient.pathology not in dict(patient.differential)
    found = [(number, columns) for columns, number in kept.items()]
    cases = _Cases(file, found, release, seed, partial(told_first, demographics))
    return Read(cases, number, dropped, {LACKING: n_lacking})


Kept = tuple[int, tuple[str, ...]]  # a row's number and its columns
First = Callable[[int, str], tuple[Statement, ...]]  # what is told of age and sex


class _Cases(Sequence[Case]):
    """Checked rows, each made a case when it is looked at."""

    def __init__(self, file: Path, kept: Sequence[Kept], release: Release, seed: int, first: First):
        self._file, self._kept, self._release, self._seed = file, kept, release, seed
        self._first = first
        known = load_knowledge().finding_of_code
        self._denies = frozenset(known[code].id for code in release.evidences)

    def __len__(self) -> int:
        return len(self._kept)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._case(*row) for row in self._kept[index]]
        return self._case(*self._kept[index])

    def _case(self, number: int, row: tuple[str, ...]) -> Case:
        columns = dict(zip(COLUMNS, row, strict=True))
        patient = read_patient(self._file, number, columns, self._release)
        rng = random.Random(f"{self._seed}:{number}")
        order = _order(patient, self._release, rng)
        statements = [self._statement(code, patient.evidences[code], rng) for code in order]
        statements = [*self._first(patient.age, patient.sex), *statements]
        return Case(
            f"ddxplus-{number}",
            "ddxplus",
            tuple(statements),
            patient.pathology,
            load_knowledge().names_for(patient.pathology),
            {"age": patient.age, "sex": patient.sex, "differential": patient.differential},
            posteriors={len(statements): dict(patient.differential)},  # the release's own
            denies=self._denies,  # a row lists all that is so
        )

    def _statement(self, code: str, values: Sequence[str], rng: random.Random) -> Statement:
        """The evidence in one of its wordings; the default value means "not present": a denial, or
        left out beside others."""
        evidence = self._release.evidences[code]
        finding = load_knowledge().finding_of_code[code]
        present = tuple(v for v in values if v != str(evidence.default_value))
        affirmed = evidence.data_type == "B" or bool(present)
        wording = rng.randrange(len(finding.affirm if affirmed else finding.deny))
        known = load_knowledge().value_of_code
        phrases = [known[v].phrase if v in known else evidence.meanings[v] for v in present]
        text = say(finding, answer_text(finding, affirmed, phrases, wording))
        return Statement(text, finding.id, affirmed)


def _order(patient: Patient, release: Release, rng: random.Random) -> list[str]:
    """The initial evidence, then the rest shuffled; a follow-up drawn before its parent waits and
    comes right after it. One whose parent the patient lacks stands alone."""
    parents = {code: release.evidences[code].code_question for code in patient.evidences}
    rest = [code for code in patient.evidences if code != patient.initial]
    rng.shuffle(rest)
    order = [patient.initial]
    while rest:
        free = (code for code in rest if parents[code] == code or parents[code] not in rest)
        code = next(free, rest[0])
        rest.remove(code)
        order.append(code)
    return order
