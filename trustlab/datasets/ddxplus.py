"""DDXPlus, English release (Fansi Tchango et al. 2022): synthetic patients as evidence codes, spoken here in our words.

A statement is one evidence name with all its values. Their order is ours, since the file's own is alphabetical by code.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import overload

from trustlab.datasets.ddxplus_release import (
    COLUMNS,
    GET_IT,
    Evidence,
    Patient,
    Release,
    patient_of,
    patients_file,
    read_release,
    rows,
)
from trustlab.datasets.errors import MIN_STATEMENTS
from trustlab.datasets.reading import Read
from trustlab.knowledge import Finding, Knowledge, answer_text, load_knowledge, phrase_list, say
from trustlab.records import Case, Statement

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

    def __init__(self, file: Path, kept: Sequence[tuple[int, tuple[str, ...]]], release: Release, seed: int):
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
        patient = patient_of(self._file, number, dict(zip(COLUMNS, row, strict=True)), self._release)
        rng = random.Random(f"{self._seed}:{number}")
        return Case(
            case_id=f"ddxplus-{number}",
            dataset="ddxplus",
            statements=tuple(self._words.statement(c, patient.evidences[c], rng) for c in _order(patient, self._release, rng)),
            diagnosis=patient.pathology,
            accepted=self._words.names(patient.pathology),
            patient={"age": patient.age, "sex": patient.sex, "differential": patient.differential},
        )


class _Words:
    """Evidences and conditions in words. Each text is made once: the whole release repeats few of them very often."""

    def __init__(self, release: Release, knowledge: Knowledge):
        self._release, self._knowledge = release, knowledge
        self._statements: dict[tuple[str, tuple[str, ...], int], Statement] = {}

    def names(self, pathology: str) -> tuple[str, ...]:
        """The release's name of the condition, and every name that the knowledge table has for it."""
        condition = self._knowledge.condition_of_ddxplus.get(pathology) or self._knowledge.condition_named(pathology)
        return tuple(dict.fromkeys((pathology, *(condition.names if condition else ()))))

    def statement(self, code: str, values: Sequence[str], rng: random.Random) -> Statement:
        """The evidence in one of its wordings; the default value means "not present": a denial, or left out beside others."""
        evidence = self._release.evidences[code]
        present = tuple(v for v in values if v != evidence.default)
        affirmed = evidence.data_type == "B" or bool(present)
        finding = self._knowledge.finding_of_code.get(code)
        wording = rng.randrange(len(finding.affirm if affirmed else finding.deny)) if finding else 0
        key = (code, present, wording)
        if key not in self._statements:
            self._statements[key] = self._made(evidence, present, affirmed, finding, wording)
        return self._statements[key]

    def _made(
        self, evidence: Evidence, present: Sequence[str], affirmed: bool, finding: Finding | None, wording: int
    ) -> Statement:
        if finding is None:
            return Statement(_release_words(evidence, present), evidence.code, affirmed)
        known = self._knowledge.value_of_code
        phrases = [known[v].phrase if v in known else evidence.meanings[v] for v in present]
        return Statement(say(finding, answer_text(finding, affirmed, phrases, wording)), finding.id, affirmed)


def _order(patient: Patient, release: Release, rng: random.Random) -> list[str]:
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


def _release_words(evidence: Evidence, present: Sequence[str]) -> str:
    """The release's own question and meanings, for an evidence that our knowledge table lacks."""
    meanings = [evidence.meanings.get(v, v) for v in present or [evidence.default]]
    answer = "yes" if evidence.data_type == "B" else phrase_list([_PLAIN.get(m, m) for m in meanings])
    return f"Doctor: {evidence.question}\nPatient: {answer[:1].upper()}{answer[1:]}."
