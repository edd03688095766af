"""Reads the cases that come along: our own. They are read as they are, not checked again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trustlab.datasets.cases_file import Read
from trustlab.datasets.ddxplus import told_first
from trustlab.knowledge.chart import FIELDS
from trustlab.knowledge.findings import load_knowledge
from trustlab.paths import DATA
from trustlab.records import Case, Statement
from trustlab.tables import json_lines

STARTER, KEPT = DATA / "starter", DATA / "ddxplus" / "cases.jsonl"


def read_starter(path: None = None, seed: int = 0) -> Read:
    """The generated patients: ``patient`` (age in years, sex, and what else a chart holds),
    ``statements`` (``text``, ``finding``, ``affirmed``), and ``record``, all else that is so.
    Beside them stands what could be known of each: statements shown -> diagnosis -> chance."""
    known = {row["case_id"]: row["posterior"] for row in _rows(STARTER / "posterior.jsonl")}
    denies = frozenset(load_knowledge().findings)
    return _read(
        Case(
            row["case_id"],
            "starter",
            _marked(row["statements"]),
            row["diagnosis"],
            load_knowledge().conditions[row["condition"]].names,
            _chart(row["patient"]),
            posteriors={int(n): _floats(chances) for n, chances in known[row["case_id"]].items()},
            record=_marked(row["record"]),
            denies=denies,
        )
        for row in _rows(STARTER / "structured.jsonl")
    )


def read_spoken(kind: str, path: None = None, seed: int = 0) -> Read:
    """Conversations ("dialogue"), a statement for each exchange, or reports ("report"), one for
    each sentence."""
    return _read(
        Case(
            row["case_id"],
            f"starter-{kind}",
            tuple(map(Statement, row["statements"])),
            row["diagnosis"],
            load_knowledge().conditions[row["condition"]].names,
            _chart(row | row.get("chart", {})),
        )
        for row in _rows(STARTER / f"{kind}.jsonl")
    )


def read_ddxplus(path: None = None, seed: int = 0, demographics: bool = False) -> Read:
    """171 cases of DDXPlus' test split in our words, of seed 0: those of
    ``load_cases("ddxplus", path=FOLDER, n=171)``, without a download; ``demographics`` as there."""
    knowledge = load_knowledge()
    denies = frozenset(finding.id for finding in knowledge.finding_of_code.values())

    def case(row: dict) -> Case:
        who, chances = row["patient"], _floats(row["differential"])
        first = told_first(demographics, who["age"], who["sex"])
        told = (*first, *_marked(row["statements"]))
        return Case(
            row["case_id"],
            "ddxplus",
            told,
            row["diagnosis"],
            knowledge.names_for(row["diagnosis"]),
            who | {"differential": tuple(chances.items())},
            posteriors={len(told): chances},
            denies=denies,
        )

    return _read(map(case, _rows(KEPT)))


def _rows(file: Path) -> list[dict]:
    return [row for _, row in json_lines(file)]


def _read(cases: Any) -> Read:
    found = list(cases)
    return Read(found, len(found))


def _marked(rows: list[dict]) -> tuple[Statement, ...]:
    return tuple(Statement(row["text"], row["finding"], row["affirmed"]) for row in rows)


def _floats(chances: Mapping[str, float]) -> dict[str, float]:
    return {name: float(chance) for name, chance in chances.items()}


def _chart(who: Mapping[str, Any]) -> dict[str, Any]:
    return {name: who[name] for name in FIELDS if who.get(name) is not None}
