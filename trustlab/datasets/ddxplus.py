"""DDXPlus: the English release as cases, its evidences as sentences."""

from __future__ import annotations

import ast
import csv
import io
import json
import random
import re
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TextIO, overload

from trustlab.datasets.cases_file import (
    MIN_STATEMENTS,
    DataError,
    Read,
    check_fields,
    read_cases,
    read_text,
    wrong_encoding,
)
from trustlab.datasets.cases_file import patient_of as patient_row
from trustlab.knowledge import Finding, Knowledge, answer_text, load_knowledge, phrase_list, say
from trustlab.paths import DATA
from trustlab.records import Case, Statement

CONDITIONS, EVIDENCES = "release_conditions.json", "release_evidences.json"
COLUMNS = ("AGE", "DIFFERENTIAL_DIAGNOSIS", "SEX", "PATHOLOGY", "EVIDENCES", "INITIAL_EVIDENCE")
SEXES = {"F": "female", "M": "male"}
GET_IT = (
    f"get it by trustlab data fetch ddxplus --to FOLDER, or download {CONDITIONS}, {EVIDENCES} and"
    " release_test_patients.zip of 'DDXPlus Dataset (English)', figshare article 22687585"
    " (https://figshare.com/articles/dataset/DDXPlus_Dataset_English_/22687585, CC BY), into one"
    " folder; give the folder as path"
)
_SPLIT_FILE = re.compile(r"release_(test|validate|train)_patients[^.]*(\.csv|\.txt|\.zip)?")


@dataclass(frozen=True)
class Evidence:
    """One entry of the evidence file. ``meanings`` maps each possible value, as text, to its
    English meaning."""

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
class Patient:
    """One row, checked. ``evidences``: name -> its values in file order (empty for a binary
    evidence), names in file order."""

    row: int
    age: int
    sex: str
    pathology: str
    differential: tuple[tuple[str, float], ...]
    evidences: Mapping[str, Sequence[str]]
    initial: str


# -- files
# --------------------------------------------------------------------------------------------------


def patients_file(path: Path) -> Path:
    """``path`` itself, or the one file of the test split in that folder; the other splits only by
    their own path.

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
        raise ValueError(
            f"path is {str(path)!r}, a folder with {what}; give one of them as path: {names}"
        )
    raise ValueError(
        f"path is {str(path)!r}, a folder without release_test_patients*.csv or .zip; {GET_IT}"
    )


def read_release(folder: Path) -> Release:
    """Conditions and evidences of ``folder``. Raises ``ValueError`` where one is missing,
    :class:`DataError` where broken."""
    return Release(
        conditions=frozenset(_json(folder / CONDITIONS)),
        evidences={
            code: _evidence(folder / EVIDENCES, code, entry)
            for code, entry in _json(folder / EVIDENCES).items()
        },
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
    kinds = {
        "code_question": str,
        "question_en": str,
        "data_type": str,
        "possible-values": list,
        "value_meaning": dict,
    }
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
    return Evidence(
        code,
        entry["data_type"],
        entry["question_en"],
        parent,
        str(entry["default_value"]),
        meanings,
    )


@contextmanager
def _open(file: Path) -> Iterator[TextIO]:
    if file.suffix != ".zip" and not zipfile.is_zipfile(file):
        with file.open(encoding="utf-8-sig", newline="") as stream:
            yield stream
        return
    with zipfile.ZipFile(file) as archive:
        members = [
            m for m in archive.namelist() if not m.endswith("/") and not m.startswith("__MACOSX/")
        ]
        if len(members) != 1:
            raise DataError(file, None, "members", members, "one file in the zip")
        with (
            archive.open(members[0]) as raw,
            io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as stream,
        ):
            yield stream


def rows(file: Path) -> Iterator[tuple[int, dict]]:
    """(row number from 1, columns) of every data row, unchecked. Raises :class:`DataError` where
    the file is no such table."""
    try:
        with _open(file) as stream:
            reader = csv.DictReader(stream)
            header = list(reader.fieldnames or [])
            missing = [c for c in COLUMNS if c not in header]
            if missing:
                raise DataError(
                    file,
                    None,
                    "header",
                    header,
                    f"all of {', '.join(COLUMNS)}; missing: {', '.join(missing)}",
                )
            if again := [name for name, times in Counter(header).items() if times > 1]:
                names = ", ".join(map(repr, again))
                raise DataError(file, None, "header", header, f"no name twice; repeated: {names}")
            yield from enumerate(reader, 1)
    except UnicodeDecodeError as error:
        raise wrong_encoding(file, error) from error
    except csv.Error as error:
        raise DataError(file, None, "content", str(error), "a CSV file") from error
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise DataError(file, None, "content", str(error), "a zip file") from error


# -- rows
# --------------------------------------------------------------------------------------------------


def patient_of(file: Path, number: int, row: dict, release: Release) -> Patient:
    """The row as a patient. Raises :class:`DataError`, naming row and field, where it breaks the
    format."""
    bad = partial(DataError, file, number)
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
    return Patient(
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
        content = _literal(row[column])
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        raise bad(column, row[column], "a Python list literal") from error
    if not isinstance(content, list):
        raise bad(column, row[column], "a Python list literal")
    return content


def _literal(text: str) -> object:
    """The Python literal; by way of JSON, which is several times as fast, where single quotes are
    all that differs.

    What only JSON knows (``true``, ``null``, ``NaN``) is no code, no name and no probability, so it
    is refused all the same.
    """
    if '"' not in text and "\\" not in text:
        with suppress(json.JSONDecodeError):
            return json.loads(text.replace("'", '"'), parse_constant=ast.literal_eval)
    return ast.literal_eval(text)


def _differential(
    bad: partial[DataError], pairs: list, release: Release
) -> tuple[tuple[str, float], ...]:
    table = []
    for pair in pairs:
        name, chance = pair if isinstance(pair, list) and len(pair) == 2 else ("", -1)
        known = isinstance(name, str) and name in release.conditions
        if not known or type(chance) not in (int, float) or not 0 <= chance <= 1:
            raise bad(
                "DIFFERENTIAL_DIAGNOSIS",
                pair,
                f"[a condition of {CONDITIONS}, a probability from 0 to 1]",
            )
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
                raise bad(
                    code,
                    f"{name} with one value ({values[0]} came before): only multi-choice evidences"
                    " repeat",
                )
            values.append(value)
    return table


SHORT, AGAIN = f"fewer than {MIN_STATEMENTS} statements", "the same row as an earlier one"
LACKING = "cases whose differential lacks their pathology"
_PLAIN = {"Y": "yes", "N": "no", "NA": "I cannot say"}


def read(path: Path | None = None, seed: int = 0) -> Read:
    """The cases of a release in file order, without repeated rows and those too short.

    ``path`` is the release's folder, or a patients file (CSV, or the official zip) with the two
    JSON files beside it. ``seed`` and the row number decide order and wording. A differential that
    lacks the pathology is counted, and the case kept: what is right is the pathology. Every row is
    checked, those dropped too; the first bad one raises :class:`DataError`. A case is made when it
    is looked at, so that a few of many cost little memory. Raises ``ValueError``, saying what to
    download, without a ``path``.
    """
    if path is None:
        raise ValueError(f"path is None; {GET_IT}")
    file = patients_file(path)
    release = read_release(file.parent)
    kept: dict[tuple[str, ...], int] = {}  # the row's columns -> its number
    dropped: dict[str, list[str]] = {}
    number = n_lacking = 0
    for number, row in rows(file):
        patient = patient_of(file, number, row, release)
        columns = tuple(row[column] for column in COLUMNS)
        if len(patient.evidences) < MIN_STATEMENTS:
            dropped.setdefault(SHORT, []).append(str(number))
        elif columns in kept:
            dropped.setdefault(AGAIN, []).append(str(number))
        else:
            kept[columns] = number
            n_lacking += patient.pathology not in dict(patient.differential)
    found = [(number, columns) for columns, number in kept.items()]
    return Read(_Cases(file, found, release, seed), number, dropped, {LACKING: n_lacking})


class _Cases(Sequence[Case]):
    """Checked rows, each made a case when it is looked at."""

    def __init__(
        self, file: Path, kept: Sequence[tuple[int, tuple[str, ...]]], release: Release, seed: int
    ):
        self._file, self._kept, self._release, self._seed = file, kept, release, seed
        self._words = _Words(release, load_knowledge())

    def __len__(self) -> int:
        return len(self._kept)

    @overload
    def __getitem__(self, index: int) -> Case: ...
    @overload
    def __getitem__(self, index: slice) -> list[Case]: ...
    def __getitem__(self, index: int | slice) -> Case | list[Case]:
        if isinstance(index, slice):
            return [self._made(*row) for row in self._kept[index]]
        return self._made(*self._kept[index])

    def _made(self, number: int, row: tuple[str, ...]) -> Case:
        patient = patient_of(
            self._file, number, dict(zip(COLUMNS, row, strict=True)), self._release
        )
        rng = random.Random(f"{self._seed}:{number}")
        statements = tuple(
            self._words.statement(c, patient.evidences[c], rng)
            for c in _order(patient, self._release, rng)
        )
        return Case(
            case_id=f"ddxplus-{number}",
            dataset="ddxplus",
            statements=statements,
            diagnosis=patient.pathology,
            accepted=names_of(patient.pathology, self._words.knowledge),
            patient={"age": patient.age, "sex": patient.sex, "differential": patient.differential},
            posteriors={len(statements): dict(patient.differential)},  # the release's own
            denies=self._words.findings,  # a row lists all that is so
        )


def names_of(pathology: str, knowledge: Knowledge) -> tuple[str, ...]:
    """The release's name of a condition, and every name that the knowledge table has for it."""
    condition = knowledge.condition_of_ddxplus.get(pathology)
    condition = condition or knowledge.condition_named(pathology)
    return tuple(dict.fromkeys((pathology, *(condition.names if condition else ()))))


class _Words:
    """Evidences and conditions in words. Each text is made once: the whole release repeats few of
    them very often."""

    def __init__(self, release: Release, knowledge: Knowledge):
        self._release, self.knowledge = release, knowledge
        known = (knowledge.finding_of_code.get(code) for code in release.evidences)
        self.findings = frozenset(f.id for f in known if f)
        self._statements: dict[tuple[str, tuple[str, ...], int], Statement] = {}

    def statement(self, code: str, values: Sequence[str], rng: random.Random) -> Statement:
        """The evidence in one of its wordings; the default value means "not present": a denial, or
        left out beside others."""
        evidence = self._release.evidences[code]
        present = tuple(v for v in values if v != evidence.default)
        affirmed = evidence.data_type == "B" or bool(present)
        finding = self.knowledge.finding_of_code.get(code)
        wording = rng.randrange(len(finding.affirm if affirmed else finding.deny)) if finding else 0
        key = (code, present, wording)
        if key not in self._statements:
            self._statements[key] = self._made(evidence, present, affirmed, finding, wording)
        return self._statements[key]

    def _made(
        self,
        evidence: Evidence,
        present: Sequence[str],
        affirmed: bool,
        finding: Finding | None,
        wording: int,
    ) -> Statement:
        if finding is None:
            return Statement(_release_words(evidence, present), evidence.code, affirmed)
        known = self.knowledge.value_of_code
        phrases = [known[v].phrase if v in known else evidence.meanings[v] for v in present]
        return Statement(
            say(finding, answer_text(finding, affirmed, phrases, wording)), finding.id, affirmed
        )


def _order(patient: Patient, release: Release, rng: random.Random) -> list[str]:
    """The initial evidence, then the rest shuffled; a follow-up drawn before its parent waits and
    comes right after it.

    A follow-up whose parent the patient lacks, or that names a parent which is no evidence, stands
    alone.
    """
    rest = [code for code in patient.evidences if code != patient.initial]
    rng.shuffle(rest)
    order = [patient.initial]
    while rest:
        code = next((c for c in rest if release.evidences[c].parent not in rest), rest[0])
        rest.remove(code)
        order.append(code)
    return order


def _release_words(evidence: Evidence, present: Sequence[str]) -> str:
    """The release's own question and meanings, for an evidence that our knowledge table lacks."""
    meanings = [evidence.meanings.get(v, v) for v in present or [evidence.default]]
    answer = (
        "yes" if evidence.data_type == "B" else phrase_list([_PLAIN.get(m, m) for m in meanings])
    )
    return f"Doctor: {evidence.question}\nPatient: {answer[:1].upper()}{answer[1:]}."


# -- the cases that come with the project
# --------------------------------------------------------------------------------------------------

KEPT = DATA / "ddxplus" / "cases.jsonl"


def read_kept(path: Path | None = None, seed: int = 0) -> Read:
    """171 cases of the test split in our words (default :data:`KEPT`): those of
    ``load_cases("ddxplus", path=FOLDER, n=171)``, without a download.

    One JSON object a line: ``case_id``, ``diagnosis``, ``patient`` (``age`` in years, ``sex``),
    ``differential`` (diagnosis -> probability, the release's own) and ``statements`` (``text``,
    ``finding``, ``affirmed``). ``seed`` changes nothing: the words are those of seed 0. Raises as
    :func:`trustlab.datasets.cases_file.read_starter`.
    """
    allowed = "a file such as data/ddxplus/cases.jsonl"
    return read_cases(path or KEPT, KEPT.name, allowed, _kept_case)


def _kept_case(bad: partial[DataError], row: dict, knowledge: Knowledge) -> Case:
    kinds = {"case_id": str, "diagnosis": str, "patient": dict, "differential": dict}
    check_fields(bad, row, kinds | {"statements": list})
    chances, told = row["differential"], []
    if not all(type(p) in (int, float) and 0 <= p <= 1 for p in chances.values()):
        raise bad("differential", chances, "a probability from 0 to 1 for each diagnosis")
    for i, item in enumerate(row["statements"], 1):
        kind = {"text": str, "finding": str, "affirmed": bool}
        if not isinstance(item, dict) or not all(isinstance(item.get(k), kind[k]) for k in kind):
            raise bad(f"statement {i}", item, "an object with text, finding and affirmed")
        told.append(Statement(item["text"], item["finding"], item["affirmed"]))
    who = patient_row(bad, row["patient"].get("age"), row["patient"].get("sex"), "patient.")
    return Case(
        case_id=row["case_id"],
        dataset="ddxplus",
        statements=tuple(told),
        diagnosis=row["diagnosis"],
        accepted=names_of(row["diagnosis"], knowledge),
        patient=who | {"differential": tuple(chances.items())},
        posteriors={len(told): chances},
        denies=frozenset(finding.id for finding in knowledge.finding_of_code.values()),
    )
