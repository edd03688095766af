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

from trustlab.datasets.cases_file import MIN_STATEMENTS, Bad, Read, Row, parse_row
from trustlab.knowledge.findings import answer_text, load_knowledge, say
from trustlab.records import Case, Statement
from trustlab.tables import DataError, whole_json, within, wrong_encoding

CONDITIONS, EVIDENCES = "release_conditions.json", "release_evidences.json"
COLUMNS = (
    "AGE",
    "DIFFERENTIAL_DIAGNOSIS",
    "SEX",
    "PATHOLOGY",
    "EVIDENCES",
    "INITIAL_EVIDENCE",
)
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
        meanings = {}
        for value in map(str, self.possible_values):
            by_language = self.value_meaning.get(value)
            meanings[value] = value
            if isinstance(by_language, dict):
                meanings[value] = str(by_language.get("en", value))
        return meanings


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
    files = sorted(path.glob("release_test_patients*"))
    if len(files) != 1:
        names = ", ".join(file.name for file in files) or "none"
        folder = f"a folder with {len(files)} files release_test_patients* ({names})"
        raise ValueError(
            f"path is {str(path)!r}, {folder}; give one file as path, or {GET_IT}"
        )
    return files[0]


def read_release(folder: Path) -> Release:
    """Conditions and evidences of ``folder``; ``ValueError`` where one is missing or broken."""
    entries_by_code = _json_object(folder, EVIDENCES)
    conditions = _json_object(folder, CONDITIONS)
    evidences = {
        code: parse_row(Evidence, entry, within(folder / EVIDENCES, code, "."))
        for code, entry in entries_by_code.items()
    }
    for code in evidences:
        if code not in load_knowledge().finding_of_code:
            words = "the evidences of the English release, for which we have words"
            raise DataError(folder / EVIDENCES, None, "evidence", code, words)
    return Release(frozenset(conditions), evidences)


def _json_object(folder: Path, name: str) -> dict[str, Any]:
    """The content of a file of the release, which is not empty."""
    if not (folder / name).is_file():
        raise ValueError(f"{name} is not in {str(folder)!r}; {GET_IT}")
    content = whole_json(folder / name)
    if not isinstance(content, dict) or not content:
        words = "a JSON object that is not empty"
        raise DataError(folder / name, None, "content", content, words)
    return content


def read_rows(file: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """(number from 1, columns) of every row, unchecked; :class:`DataError` for no such table."""
    try:
        table = pd.read_csv(file, dtype=str, na_filter=False, encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise wrong_encoding(file, error) from error
    except (ValueError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        words = "a CSV file with its header, or a zip of one"
        raise DataError(file, None, "content", str(error), words) from error
    _check_patient_columns(file, table)
    records: list[dict[str, str]] = table[list(COLUMNS)].to_dict("records")  # type: ignore
    yield from enumerate(records, 1)


def _check_patient_columns(file: Path, table: pd.DataFrame) -> None:
    """:class:`DataError` unless the table has each of :data:`COLUMNS` once, and no index."""
    header = list(table.columns)
    missing = [name for name in COLUMNS if name not in header]
    # pandas' name of a second one
    repeated = [name for name in COLUMNS if f"{name}.1" in header]
    if missing or repeated or not isinstance(table.index, pd.RangeIndex):
        fault = "missing" if missing else "repeated"
        names = ", ".join(missing or repeated)
        columns = ", ".join(COLUMNS)
        allowed = f"all of {columns}, and no name twice; {fault}: {names}"
        raise DataError(file, None, "header", header, allowed)


def read_patient(file: Path, number: int, row: dict, release: Release) -> Patient:
    """The row as a patient; :class:`DataError` where it breaks the format."""
    bad = partial(DataError, file, number)
    if not re.fullmatch("[0-9]{1,3}", row["AGE"]) or int(row["AGE"]) > 120:
        raise bad("AGE", row["AGE"], "a whole number from 0 to 120")
    if row["SEX"] not in SEXES:
        raise bad("SEX", row["SEX"], " or ".join(SEXES))
    if row["PATHOLOGY"] not in release.conditions:
        raise bad("PATHOLOGY", row["PATHOLOGY"], f"a condition of {CONDITIONS}")
    codes = _read_list(bad, row, "EVIDENCES")
    if row["INITIAL_EVIDENCE"] not in codes:
        raise bad(
            "INITIAL_EVIDENCE", row["INITIAL_EVIDENCE"], "one of the row's EVIDENCES"
        )
    differential = _read_list(bad, row, "DIFFERENTIAL_DIAGNOSIS")
    return Patient(
        age=int(row["AGE"]),
        sex=SEXES[row["SEX"]],
        pathology=row["PATHOLOGY"],
        differential=_check_differential(bad, differential, release),
        evidences=_values_by_evidence(bad, codes, release),
        initial=row["INITIAL_EVIDENCE"].partition("_@_")[0],
    )


def _read_list(bad: Bad, row: dict, column: str) -> list:
    """The Python list that a column writes out."""
    content = cause = None
    try:
        content = ast.literal_eval(row[column])
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        cause = error
    if not isinstance(content, list):
        raise bad(column, row[column], "a Python list literal") from cause
    return content


def _check_differential(
    bad: Bad, pairs: list, release: Release
) -> tuple[tuple[str, float], ...]:
    """The pairs of condition and probability, each condition once."""
    differential: dict[str, float] = {}
    allowed = f"[a condition of {CONDITIONS}, a probability from 0 to 1]"
    for pair in pairs:
        if not _is_probability_of_condition(pair, release):
            raise bad("DIFFERENTIAL_DIAGNOSIS", pair, allowed)
        condition, probability = pair
        if condition in differential:
            raise bad("DIFFERENTIAL_DIAGNOSIS", pair, "every condition once")
        differential[condition] = float(probability)
    return tuple(differential.items())


def _is_probability_of_condition(pair: object, release: Release) -> bool:
    if not isinstance(pair, list) or len(pair) != 2:
        return False
    condition, probability = pair
    if not isinstance(condition, str) or condition not in release.conditions:
        return False
    return type(probability) in (int, float) and 0 <= probability <= 1


def _values_by_evidence(
    row: Bad, codes: list, release: Release
) -> dict[str, list[str]]:
    """Each evidence of a patient with its values, none of a binary one, in file order."""
    bad = partial(row, "EVIDENCES")
    values_by_name: dict[str, list[str]] = {}
    for code in codes:
        name, mark, value = (
            code.partition("_@_") if isinstance(code, str) else ("", "", "")
        )
        if name not in release.evidences:
            raise bad(code, f"a code of {EVIDENCES}, or code_@_value")
        evidence = release.evidences[name]
        values = values_by_name.setdefault(name, [])
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
    return values_by_name


SHORT, AGAIN = (
    f"fewer than {MIN_STATEMENTS} statements",
    "the same row as an earlier one",
)
LACKING = "cases whose differential lacks their pathology"


def opening_statements(demographics: bool, age: int, sex: str) -> tuple[Statement, ...]:
    """Age in years and sex as a first exchange, which is no finding; none without
    ``demographics``."""
    if type(demographics) is not bool:
        raise ValueError(
            f"demographics is {demographics!r}; allowed are True and False"
        )
    if not demographics:
        return ()
    years = "years" if age > 1 else "year"
    question = "Doctor: How old are you, and what is your sex?"
    answer = f"Patient: {age or 'Less than 1'} {years} old, {sex}."
    return (Statement(f"{question}\n{answer}"),)


def read(path: Path, seed: int = 0, demographics: bool = False) -> Read:
    """The cases of a release in file order, without repeated rows and those too short.

    ``path`` is the release's folder, or a patients file (CSV, or the official zip) with the two
    JSON files beside it. ``seed`` and the row number decide order and wording; ``demographics``:
    age and sex come first (:func:`opening_statements`), whoever qualifies without. A differential
    that lacks the pathology is counted, and the case kept. Every row is checked, and a case is made
    when it is looked at. ``ValueError`` where a file is lacking, :class:`DataError` for a bad row.
    """
    file = patients_file(path)
    release = read_release(file.parent)
    number_of_row: dict[tuple[str, ...], int] = {}
    dropped: dict[str, list[str]] = {}
    n_rows = 0
    n_lacking = 0
    for number, columns in read_rows(file):
        n_rows = number
        patient = read_patient(file, number, columns, release)
        row = tuple(columns[name] for name in COLUMNS)
        if len(patient.evidences) < MIN_STATEMENTS:
            dropped.setdefault(SHORT, []).append(str(number))
        elif row in number_of_row:
            dropped.setdefault(AGAIN, []).append(str(number))
        else:
            number_of_row[row] = number
            n_lacking += patient.pathology not in dict(patient.differential)
    opening = partial(opening_statements, demographics)
    cases = _Cases(file, number_of_row, release, seed, opening)
    return Read(cases, n_rows, dropped, {LACKING: n_lacking})


Opening = Callable[[int, str], tuple[Statement, ...]]
"""Age and sex -> the statements that come first."""


class _Cases(Sequence[Case]):
    """Checked rows, each made a case when it is looked at. ``number_of_row``: the cells of each, in
    the order of :data:`COLUMNS` -> its number, counted from 1."""

    def __init__(
        self,
        file: Path,
        number_of_row: Mapping[tuple[str, ...], int],
        release: Release,
        seed: int,
        opening: Opening,
    ):
        self._file = file
        self._case_rows = list(number_of_row.items())
        self._release = release
        self._seed = seed
        self._opening = opening
        finding_of_code = load_knowledge().finding_of_code
        self._denies = frozenset(finding_of_code[code].id for code in release.evidences)

    def __len__(self) -> int:
        return len(self._case_rows)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._make_case(*row) for row in self._case_rows[index]]
        return self._make_case(*self._case_rows[index])

    def _make_case(self, cells: tuple[str, ...], number: int) -> Case:
        """The case of a row; the seed and the row's number decide order and wording."""
        columns = dict(zip(COLUMNS, cells, strict=True))
        patient = read_patient(self._file, number, columns, self._release)
        rng = random.Random(f"{self._seed}:{number}")
        statements: list[Statement] = []
        codes = _order_evidences(patient, self._release, rng)
        for code in codes:
            statements.append(self._statement(code, patient.evidences[code], rng))
        statements = [*self._opening(patient.age, patient.sex), *statements]
        return Case(
            f"ddxplus-{number}",
            "ddxplus",
            tuple(statements),
            patient.pathology,
            load_knowledge().names_for(patient.pathology),
            {
                "age": patient.age,
                "sex": patient.sex,
                "differential": patient.differential,
            },
            # the release's own
            posteriors={len(statements): dict(patient.differential)},
            denies=self._denies,  # a row lists all that is so
        )

    def _statement(
        self, code: str, values: Sequence[str], rng: random.Random
    ) -> Statement:
        """The evidence in one of its wordings; the default value means "not present": a denial, or
        left out beside others."""
        evidence = self._release.evidences[code]
        finding = load_knowledge().finding_of_code[code]
        present_values = [
            value for value in values if value != str(evidence.default_value)
        ]
        affirmed = evidence.data_type == "B" or bool(present_values)
        wordings = finding.affirm if affirmed else finding.deny
        wording_index = rng.randrange(len(wordings))
        value_of_code = load_knowledge().value_of_code
        phrases = [
            value_of_code[value].phrase
            if value in value_of_code
            else evidence.meanings[value]
            for value in present_values
        ]
        answer = answer_text(finding, affirmed, phrases, wording_index)
        return Statement(say(finding, answer), finding.id, affirmed)


def _order_evidences(
    patient: Patient, release: Release, rng: random.Random
) -> list[str]:
    """The initial evidence, then the rest shuffled; a follow-up drawn before its parent waits and
    comes right after it. One whose parent the patient lacks stands alone."""
    parents = {
        code: release.evidences[code].code_question for code in patient.evidences
    }
    rest = [code for code in patient.evidences if code != patient.initial]
    rng.shuffle(rest)
    order = [patient.initial]
    while rest:
        code = rest[0]
        for candidate in rest:
            if parents[candidate] == candidate or parents[candidate] not in rest:
                code = candidate
                break
        rest.remove(code)
        order.append(code)
    return order
