"""Reads the cases that come along: our own. They are read as they are, not checked again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from trustlab.datasets.cases_file import Read
from trustlab.datasets.ddxplus import opening_statements
from trustlab.knowledge.chart import FIELDS
from trustlab.knowledge.findings import load_knowledge
from trustlab.paths import DATA
from trustlab.records import Case, Statement
from trustlab.tables import json_lines

STARTER = DATA / "starter"
DDXPLUS = DATA / "ddxplus" / "cases.jsonl"


def read_starter(path: None = None, seed: int = 0) -> Read:
    """The generated patients: ``patient`` (age in years, sex, and what else a chart holds),
    ``statements`` (``text``, ``finding``, ``affirmed``), and ``record``, all else that is so.
    Beside them stands what could be known of each: statements shown -> diagnosis -> chance."""
    rows = _json_rows(STARTER / "posterior.jsonl")
    posterior_by_case = {row["case_id"]: row["posterior"] for row in rows}
    knowledge = load_knowledge()
    denies = frozenset(knowledge.findings)

    def make_case(row: dict) -> Case:
        posteriors = {
            int(n_shown): _probabilities(posterior)
            for n_shown, posterior in posterior_by_case[row["case_id"]].items()
        }
        return Case(
            row["case_id"],
            "starter",
            _labelled_statements(row["statements"]),
            row["diagnosis"],
            knowledge.conditions[row["condition"]].names,
            _chart(row["patient"]),
            posteriors=posteriors,
            record=_labelled_statements(row["record"]),
            denies=denies,
        )

    return _read_cases(STARTER / "structured.jsonl", make_case)


def read_spoken(kind: str, path: None = None, seed: int = 0) -> Read:
    """Conversations ("dialogue"), a statement for each exchange, or reports ("report"), one for
    each sentence."""

    def make_case(row: dict) -> Case:
        return Case(
            row["case_id"],
            f"starter-{kind}",
            tuple(map(Statement, row["statements"])),
            row["diagnosis"],
            load_knowledge().conditions[row["condition"]].names,
            _chart(row | row.get("chart", {})),
        )

    return _read_cases(STARTER / f"{kind}.jsonl", make_case)


def read_ddxplus(path: None = None, seed: int = 0, demographics: bool = False) -> Read:
    """171 cases of DDXPlus' test split in our words, of seed 0: those of
    ``load_cases("ddxplus", path=FOLDER, n=171)``, without a download; ``demographics`` as there."""
    knowledge = load_knowledge()
    denies = frozenset(finding.id for finding in knowledge.finding_of_code.values())

    def make_case(row: dict) -> Case:
        patient = row["patient"]
        differential = _probabilities(row["differential"])
        opening = opening_statements(demographics, patient["age"], patient["sex"])
        statements = (*opening, *_labelled_statements(row["statements"]))
        return Case(
            row["case_id"],
            "ddxplus",
            statements,
            row["diagnosis"],
            knowledge.names_for(row["diagnosis"]),
            patient | {"differential": tuple(differential.items())},
            posteriors={len(statements): differential},
            denies=denies,
        )

    return _read_cases(DDXPLUS, make_case)


def _json_rows(file: Path) -> list[dict]:
    return [row for _, row in json_lines(file)]


def _read_cases(file: Path, make_case: Callable[[dict], Case]) -> Read:
    """The cases that ``make_case`` makes of a file's rows."""
    cases = list(map(make_case, _json_rows(file)))
    return Read(cases, len(cases))


def _labelled_statements(rows: list[dict]) -> tuple[Statement, ...]:
    """Statements with the finding that each affirms or denies."""
    return tuple(
        Statement(row["text"], row["finding"], row["affirmed"]) for row in rows
    )


def _probabilities(chances: Mapping[str, float]) -> dict[str, float]:
    return {name: float(chance) for name, chance in chances.items()}


def _chart(patient: Mapping[str, Any]) -> dict[str, Any]:
    """What a chart may hold of a patient."""
    return {name: patient[name] for name in FIELDS if patient.get(name) is not None}
