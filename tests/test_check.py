"""``trustlab data check``: what it tells of a data set, and loaders' options."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_ddxplus import release

from trustlab.datasets import read_data
from trustlab.datasets.cases_file import Read
from trustlab.datasets.check import check_text
from trustlab.records import Case, Statement


def case(number: int, diagnosis: str, n: int = 11, **patient: object) -> Case:
    told = tuple(Statement(f"Statement {i} of four words") for i in range(1, n + 1))
    return Case(f"made-{number}", "made", told, diagnosis, (diagnosis,), patient)


def lines(read: Read) -> list[str]:
    return check_text("made", read).splitlines()


def test_counts_drops_by_reason_and_facts_come_first() -> None:
    dropped = {"no diagnosis": [str(i) for i in range(1, 8)], "fewer than 11 statements": ["9"]}
    told = lines(Read([case(1, "Gout")], 1009, dropped, {"exchanges left out": 3}))
    assert told[:4] == [
        "made: 1,009 entries read, 1 case",
        "dropped, no diagnosis: 7 (1, 2, 3, 4, 5, ...)",
        "dropped, fewer than 11 statements: 1 (9)",
        "exchanges left out: 3",
    ]
    assert told[-1] == "Research only. Not for clinical use."


def test_lengths_are_quartiles_of_statements_and_words() -> None:
    told = lines(Read([case(i, "Gout", n) for i, n in enumerate([11, 12, 13, 14, 20])], 5))
    assert next(line for line in told if line.startswith("statements")).split()[3:] == [
        "11.0",
        "12.0",
        "13.0",
        "14.0",
        "20.0",
        "14.0",
    ]
    assert next(line for line in told if line.startswith("words")).split()[3:] == [
        "55.0",
        "60.0",
        "65.0",
        "70.0",
        "100.0",
        "70.0",
    ]


def test_what_could_command_a_terminal_is_not_printed() -> None:
    nasty = Case(
        "made-\x1b[2J", "made", (Statement("a\x1b]0;owned\x07b"),) * 11, "Gout\x9b", ("Gout",)
    )
    assert all(
        c.isprintable() or c == "\n"
        for c in check_text("made", Read([nasty], 1, {"odd\x1b": ["\x07"]}))
    )


def test_without_a_case_the_drops_are_still_told() -> None:
    assert lines(Read([], 2, {"no diagnosis": ["1", "2"]}))[:2] == [
        "made: 2 entries read, 0 cases",
        "dropped, no diagnosis: 2 (1, 2)",
    ]


def test_an_option_that_a_loader_does_not_know_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="ddxplus has no option 'split'; it has none"):
        read_data("ddxplus", path=release(tmp_path), split="test")
