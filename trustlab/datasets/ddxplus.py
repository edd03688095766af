"""DDXPlus, English release (Fansi Tchango et al. 2022): synthetic patients as evidence codes, spoken here in our words.

A statement is one evidence name with all its values. Parse rules and quirks follow the official description
(github.com/mila-iqia/ddxplus); the order of statements is ours, since the file's own is alphabetical by code.
"""

from __future__ import annotations

import ast
import csv
import io
import json
import random
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TextIO

from trustlab.datasets.errors import MIN_STATEMENTS, DataError, read_text, wrong_encoding
from trustlab.knowledge import Knowledge, answer_text, load_knowledge, phrase_list, say
from trustlab.records import Case, Statement

CONDITIONS, EVIDENCES = "release_conditions.json", "release_evidences.json"
COLUMNS = ("AGE", "DIFFERENTIAL_DIAGNOSIS", "SEX", "PATHOLOGY", "EVIDENCES", "INITIAL_EVIDENCE")
SEXES = {"F": "female", "M": "male"}
GET_IT = (
    f"download {CONDITIONS}, {EVIDENCES} and release_test_patients.zip of 'DDXPlus Dataset (English)', figshare article 22687585 "
    "(https://figshare.com/articles/dataset/DDXPlus_Dataset_English_/22687585, CC BY), into one folder and give it as path"
)
_SPLIT_FILE = re.compile(r"release_(test|validate|train)_patients[^.]*(\.csv|\.txt|\.zip)?")
_PLAIN = {"Y": "yes", "N": "no", "NA": "I cannot say"}


@dataclass(frozen=True)
class Evidence:
    """One entry of the evidence file. ``meanings`` maps each possible value, as text, to its English meaning."""

    code: str
    data_type: str
    question: str
    parent: str | None
    default: str
    meanings: Mapping[str, str]


@dataclass(frozen=True)
class Release:
    """The two JSON files: the conditions' names, and the evidences by code."""

    conditions: frozenset[str]
    evidences: Mapping[str, Evidence]


@dataclass(frozen=True)
class _Patient:
    row: int
    age: int
    sex: str
    pathology: str
    differential: tuple[tuple[str, float], ...]
    evidences: Mapping[str, Sequence[str]]
    initial: str


def load(path: Path | None = None, seed: int = 0) -> list[Case]:
    """The cases of :func:`read_patients`. Raises ``ValueError``, saying what to download, without a ``path``."""
    if path is None:
        raise ValueError(f"path is None; {GET_IT}")
    return read_patients(path, seed)[0]


def read_patients(path: Path, seed: int = 0) -> tuple[list[Case], dict[str, int]]:
    """Cases in file order, and how many ``rows`` were read, became ``cases`` and were ``left_out`` as too short.

    ``path`` is the release's folder, or a patients file (CSV, or the official zip) with the two JSON files beside it.
    ``seed`` and the row number decide order and wording. Every row is checked, those left out too; the first bad one
    raises :class:`DataError`.
    """
    file = patients_file(path)
    release, knowledge = read_release(file.parent), load_knowledge()
    cases, n_rows = [], 0
    shared: dict[Statement, Statement] = {}  # the whole release repeats few texts very often
    for n_rows, row in _rows(file):
        patient = _patient(partial(DataError, file, n_rows), n_rows, row, release)
        if len(patient.evidences) >= MIN_STATEMENTS:
            cases.append(_case(patient, release, knowledge, random.Random(f"{seed}:{n_rows}"), shared))
    return cases, {"rows": n_rows, "cases": len(cases), "left_out": n_rows - len(cases)}


# -- files ------------------------------------------------------------------------------------------------------


def patients_file(path: Path) -> Path:
    """``path`` itself, or the one file of the test split in that folder; the other splits only by their own path.

    Raises ``ValueError`` where there is none, or several.
    """
    if path.is_file():
        return path
    if not path.is_dir():
        raise ValueError(f"path is {str(path)!r}, which does not exist; {GET_IT}")
    found = sorted(p for p in path.iterdir() if p.is_file() and _SPLIT_FILE.fullmatch(p.name))
    tests = [p for p in found if p.name.startswith("release_test_")]
    if len(tests) == 1:
        return tests[0]
    if found:
        names = ", ".join(p.name for p in tests or found)
        what = "several test files" if tests else "no test file, only other splits"
        raise ValueError(f"path is {str(path)!r}, a folder with {what}; give one of them as path: {names}")
    raise ValueError(f"path is {str(path)!r}, a folder without release_test_patients*.csv or .zip; {GET_IT}")


def read_release(folder: Path) -> Release:
    """Conditions and evidences of ``folder``. Raises ``ValueError`` where one is missing, :class:`DataError` where broken."""
    return Release(
        conditions=frozenset(_json(folder / CONDITIONS)),
        evidences={code: _evidence(folder / EVIDENCES, code, entry) for code, entry in _json(folder / EVIDENCES).items()},
    )


def _json(file: Path) -> dict:
    if not file.is_file():
        raise ValueError(f"{file.name} is not in {str(file.parent)!r}; {GET_IT}")
    text = read_text(file)
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(file, None, "content", text, f"JSON ({error})") from error
    if not isinstance(content, dict) or not content:
        raise DataError(file, None, "content", content, "a JSON object that is not empty")
    return content


def _evidence(file: Path, code: str, entry: object) -> Evidence:
    bad = partial(DataError, file, None)
    if not isinstance(entry, dict):
        raise bad(code, entry, "a JSON object")
    kinds = {"code_question": str, "question_en": str, "data_type": str, "possible-values": list, "value_meaning": dict}
    for field, kind in kinds.items():
        if not isinstance(entry.get(field), kind):
            raise bad(f"{code}.{field}", entry.get(field), f"a {kind.__name__}")
    if entry["data_type"] not in ("B", "C", "M"):
        raise bad(f"{code}.data_type", entry["data_type"], "B, C or M")
    if not isinstance(entry.get("default_value"), int | str):
        raise bad(f"{code}.default_value", entry.get("default_value"), "an int or a str")
    meanings = {}
    for value in map(str, entry["possible-values"]):
        meaning = entry["value_meaning"].get(value)
        meanings[value] = str(meaning.get("en", value)) if isinstance(meaning, dict) else value
    parent = entry["code_question"] if entry["code_question"] != code else None
    return Evidence(code, entry["data_type"], entry["question_en"], parent, str(entry["default_value"]), meanings)


@contextmanager
def _open(file: Path) -> Iterator[TextIO]:
    if file.suffix != ".zip" and not zipfile.is_zipfile(file):
        with file.open(encoding="utf-8-sig", newline="") as stream:
            yield stream
        return
    with zipfile.ZipFile(file) as archive:
        members = [m for m in archive.namelist() if not m.endswith("/") and not m.startswith("__MACOSX/")]
        if len(members) != 1:
            raise DataError(file, None, "members", members, "one file in the zip")
        with archive.open(members[0]) as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as stream:
            yield stream


def _rows(file: Path) -> Iterator[tuple[int, dict]]:
    """(row number from 1, columns) of every data row."""
    try:
        with _open(file) as stream:
            reader = csv.DictReader(stream)
            header = list(reader.fieldnames or [])
            missing = [c for c in COLUMNS if c not in header]
            if missing:
                raise DataError(file, None, "header", header, f"all of {', '.join(COLUMNS)}; missing: {', '.join(missing)}")
            yield from enumerate(reader, 1)
    except UnicodeDecodeError as error:
        raise wrong_encoding(file, error) from error
    except csv.Error as error:
        raise DataError(file, None, "content", str(error), "a CSV file") from error
    except zipfile.BadZipFile as error:
        raise DataError(file, None, "content", str(error), "a zip file") from error


# -- rows -------------------------------------------------------------------------------------------------------


def _patient(bad: partial[DataError], number: int, row: dict, release: Release) -> _Patient:
    if None in row:
        raise bad("row", row[None], "as many fields as the header has; these are over")
    for column in COLUMNS:
        if row[column] is None:
            raise bad(column, None, "as many fields as the header has; the row ends too early")
    if not re.fullmatch("[0-9]{1,3}", row["AGE"]) or int(row["AGE"]) > 120:
        raise bad("AGE", row["AGE"], "a whole number from 0 to 120")
    if row["SEX"] not in SEXES:
        raise bad("SEX", row["SEX"], " or ".join(SEXES))
    if row["PATHOLOGY"] not in release.conditions:
        raise bad("PATHOLOGY", row["PATHOLOGY"], f"a condition of {CONDITIONS}")
    codes = _list(bad, row, "EVIDENCES")
    if row["INITIAL_EVIDENCE"] not in codes:
        raise bad("INITIAL_EVIDENCE", row["INITIAL_EVIDENCE"], "one of the row's EVIDENCES")
    return _Patient(
        row=number,
        age=int(row["AGE"]),
        sex=SEXES[row["SEX"]],
        pathology=row["PATHOLOGY"],
        differential=_differential(bad, _list(bad, row, "DIFFERENTIAL_DIAGNOSIS"), release),
        evidences=_evidences(bad, codes, release),
        initial=row["INITIAL_EVIDENCE"].partition("_@_")[0],
    )


def _list(bad: partial[DataError], row: dict, column: str) -> list:
    try:
        content = ast.literal_eval(row[column])
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        raise bad(column, row[column], "a Python list literal") from error
    if not isinstance(content, list):
        raise bad(column, row[column], "a Python list literal")
    return content


def _differential(bad: partial[DataError], pairs: list, release: Release) -> tuple[tuple[str, float], ...]:
    table = []
    for pair in pairs:
        name, chance = pair if isinstance(pair, list) and len(pair) == 2 else ("", -1)
        known = isinstance(name, str) and name in release.conditions
        if not known or not isinstance(chance, int | float) or not 0 <= chance <= 1:
            raise bad("DIFFERENTIAL_DIAGNOSIS", pair, f"[a condition of {CONDITIONS}, a probability from 0 to 1]")
        table.append((sys.intern(str(name)), float(chance)))
    return tuple(table)


def _evidences(bad: partial[DataError], codes: list, release: Release) -> dict[str, list[str]]:
    """Name -> its values in file order (empty for a binary evidence), names in file order."""
    bad = partial(bad, "EVIDENCES")
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
                raise bad(code, f"{name} with one value ({values[0]} came before): only multi-choice evidences repeat")
            values.append(value)
    return table


# -- cases ------------------------------------------------------------------------------------------------------


def _case(patient: _Patient, release: Release, knowledge: Knowledge, rng: random.Random, shared: dict) -> Case:
    condition = knowledge.condition_of_ddxplus.get(patient.pathology) or knowledge.condition_named(patient.pathology)
    told = []
    for code in _order(patient, release, rng):
        statement = _statement(release.evidences[code], patient.evidences[code], knowledge, rng)
        told.append(shared.setdefault(statement, statement))
    return Case(
        case_id=f"ddxplus-{patient.row}",
        dataset="ddxplus",
        statements=tuple(told),
        diagnosis=patient.pathology,
        accepted=tuple(dict.fromkeys((patient.pathology, *(condition.names if condition else ())))),
        patient={"age": patient.age, "sex": patient.sex, "differential": patient.differential},
    )


def _order(patient: _Patient, release: Release, rng: random.Random) -> list[str]:
    """The initial evidence, then the rest shuffled; a follow-up drawn before its parent waits and comes right after it.

    A follow-up whose parent the patient lacks, or that names a parent which is no evidence, stands alone.
    """
    rest = [code for code in patient.evidences if code != patient.initial]
    rng.shuffle(rest)
    order = [patient.initial]
    while rest:
        code = next((c for c in rest if release.evidences[c].parent not in rest), rest[0])
        rest.remove(code)
        order.append(code)
    return order


def _statement(evidence: Evidence, values: Sequence[str], knowledge: Knowledge, rng: random.Random) -> Statement:
    """The evidence in words; the default value means "not present" and is a denial, or left out beside others."""
    present = [v for v in values if v != evidence.default]
    affirmed = evidence.data_type == "B" or bool(present)
    finding = knowledge.finding_of_code.get(evidence.code)
    if finding is None:
        return Statement(_release_words(evidence, present), evidence.code, affirmed)
    phrases = [knowledge.value_of_code[v].phrase if v in knowledge.value_of_code else evidence.meanings[v] for v in present]
    wording = rng.randrange(len(finding.affirm if affirmed else finding.deny))
    return Statement(say(finding, answer_text(finding, affirmed, phrases, wording)), finding.id, affirmed)


def _release_words(evidence: Evidence, present: Sequence[str]) -> str:
    """The release's own question and meanings, for an evidence that our knowledge table lacks."""
    meanings = [evidence.meanings.get(v, v) for v in present or [evidence.default]]
    answer = "yes" if evidence.data_type == "B" else phrase_list([_PLAIN.get(m, m) for m in meanings])
    return f"Doctor: {evidence.question}\nPatient: {answer[:1].upper()}{answer[1:]}."
