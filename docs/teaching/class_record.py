"""What a class hands in: ``python docs/teaching/class_record.py FOLDER`` sums up its records.

The folder holds a file ``NAME_OF_A_STUDENT.jsonl`` for each student, the ``record.jsonl`` of the
lessons. Students hand them in, so they are read strictly.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pandas as pd
from pydantic import ValidationError

sys.path.append(str(Path(__file__).parents[2] / "notebooks" / "lessons"))

from record import Check  # noqa: E402  # pyright: ignore

MOST_BYTES = 2_000_000
STUDENT = re.compile(r"\w[\w .-]{0,60}")
"""Names of files that are read, without their ending: a student each."""


def read_class(folder: str | Path) -> pd.DataFrame:
    """All checks in the files ``NAME_OF_A_STUDENT.jsonl`` of a folder: columns student, time,
    exercise, verdict, sentence.

    - A file that is not as :class:`Check` says is left out whole, and named with line and reason.
    - ``ValueError`` where no file can be read.
    """
    tables = []
    for file in sorted(Path(folder).glob("*.jsonl")):
        try:
            tables.append(_read(file))
        except ValueError as error:
            print(f"left out: {error}")
    if not tables:
        raise ValueError(f"{folder} has no readable file *.jsonl, one for each student")
    return pd.concat(tables, ignore_index=True)


def _read(file: Path) -> pd.DataFrame:
    """A student's checks; ``ValueError`` with file, line, field and value."""
    if not STUDENT.fullmatch(file.stem):
        raise ValueError(
            f"{file.name!r} is no name of letters, digits, spaces, . and -"
        )
    if file.is_symlink() or not file.is_file():
        raise ValueError(f"{file.name} is no plain file")
    if file.stat().st_size > MOST_BYTES:
        raise ValueError(f"{file.name} is larger than {MOST_BYTES:,} bytes")
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise ValueError(f"{file.name} is no UTF-8 text") from None
    checks = []
    for n, line in enumerate(lines, 1):
        try:
            checks.append(Check.model_validate_json(line).model_dump())
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            field = ".".join(map(str, first["loc"])) or "line"
            value = repr(first["input"])[:60]
            place = f"{file.name}, line {n}, {field}"
            raise ValueError(f"{place}: {first['msg']}; it is {value}") from None
    if not checks:
        raise ValueError(f"{file.name} is empty")
    table = pd.DataFrame(checks)
    table.insert(0, "student", file.stem)
    return table


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Of :func:`read_class`, a row for each exercise: students who checked an answer, those who
    were right, the median number of checks up to the first right one (of those), and the sentence
    that most students met."""
    lines = []
    for exercise, checks in table.sort_values("time").groupby("exercise"):
        n_checks = []
        for _, of_student in checks.groupby("student"):
            is_right = (of_student["verdict"] == "right").to_numpy()
            if is_right.any():
                n_checks.append(is_right.argmax() + 1)
        mistakes = checks[checks["verdict"] == "wrong"]
        met = mistakes.groupby("sentence")["student"].nunique()
        line = {"exercise": exercise, "students": checks["student"].nunique()}
        line["right"] = len(n_checks)
        line["checks until right"] = pd.Series(n_checks, dtype=float).median()
        line["commonest mistake"] = met.idxmax() if len(met) else ""
        lines.append(line)
    return pd.DataFrame(lines).set_index("exercise")


if __name__ == "__main__":
    print(summary(read_class(sys.argv[1])).to_string())
