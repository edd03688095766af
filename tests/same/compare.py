"""Two tables held against each other: keys and reasons equal, numbers within a tolerance."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from same.tables import Table

VOLATILE = frozenset({"seconds", "n_made", "n_cached", "date", "trustlab"})
"""Columns that say how a run went and not what it found."""
DIRECT = frozenset({
    "confidence", "probability", "prob", "logprob", "logprobs", "entropy", "cosine", "similarity",
    "relevance",
})  # fmt: skip
"""Columns of numbers straight from a reply or vector, with nothing ranked or resampled between."""
SHOWN_OF_A_ROW = 5

_DECIMAL = re.compile(r"[-−+]?\d+\.(\d+)(?:e[-+]?\d+)?")


@dataclass(frozen=True)
class Tolerance:
    """How far two numbers may lie apart, as a share of the larger of 1 and themselves."""

    number: float
    """What comes straight from a reply or vector (:data:`DIRECT`)."""
    metric: float
    """Everything else; whole numbers must be equal."""
    text: bool
    """Whether a decimal number inside a text may differ by as much, or by one in its last place."""

    def of(self, column: str) -> float:
        """The tolerance of a column."""
        return self.number if column.rpartition(" ")[2] in DIRECT else self.metric


SAME_MACHINE = Tolerance(1e-9, 1e-9, text=False)
ELSEWHERE = Tolerance(1e-6, 1e-3, text=True)


class Difference(NamedTuple):
    """What was and what is, at one place; ``row`` and ``column`` are empty for a whole table."""

    table: str
    row: str
    column: str
    then: Any
    now: Any

    def __str__(self) -> str:
        place = ", ".join(part for part in (self.table, self.row, self.column) if part)
        return f"{place}: then {self.then!r}, now {self.now!r}"


def differences(
    then: Mapping[str, Table],
    now: Mapping[str, Table],
    tolerance: Tolerance,
    renamed: Mapping[str, str] | None = None,
) -> Iterator[Difference]:
    """All differences between the tables that were and those that are.

    ``renamed``: old name -> new one, of columns, wherever they are, and of tables.
    """
    renamed = renamed or {}
    left = {renamed.get(name, name): table for name, table in then.items()}
    for name, table in left.items():
        if name in now:
            called = [(renamed.get(heading, heading), values) for heading, values in table]
            yield from _of_table(name, called, now[name], tolerance)
        else:
            yield Difference(name, "", "", "a table", None)
    for name in now:
        if name not in left:
            yield Difference(name, "", "", None, "a table")


def _of_table(name: str, then: Table, now: Table, tolerance: Tolerance) -> Iterator[Difference]:
    headings = [heading for heading, _ in then], [heading for heading, _ in now]
    if headings[0] != headings[1]:
        yield Difference(name, "", "columns", *headings)
    columns = [h for h in dict.fromkeys(headings[0]) if h in headings[1] and h not in VOLATILE]
    before, after = dict(then), dict(now)
    keys = _keys(before, columns), _keys(after, columns)
    if len(keys[0]) == len(keys[1]):
        if keys[0] != keys[1] and Counter(keys[0]) == Counter(keys[1]):
            yield Difference(name, "", "order of rows", _told(keys[0][0]), _told(keys[1][0]))
            return
        pairs = [(i, i) for i in range(len(keys[0]))]
    else:
        pairs = []
        for tag, i, i_end, j, j_end in SequenceMatcher(None, *keys, autojunk=False).get_opcodes():
            if tag == "equal":
                pairs += zip(range(i, i_end), range(j, j_end), strict=True)
                continue
            for k in range(i, i_end):
                yield Difference(name, f"row {k}", "", _told(keys[0][k]), None)
            for k in range(j, j_end):
                yield Difference(name, f"row {k}", "", None, _told(keys[1][k]))
    for i, j in pairs:
        for column in columns:
            if not alike(before[column][i], after[column][j], tolerance.of(column), tolerance.text):
                row = f"row {i} ({_told(keys[0][i])})"
                yield Difference(name, row, column, before[column][i], after[column][j])


def _keys(table: Mapping[str, list[Any]], columns: list[str]) -> list[tuple]:
    """What each row is about: its values that are no decimal numbers and nothing missing."""
    rows = zip(*(table[column] for column in columns), strict=True)
    return [tuple(v for v in row if v is not None and not isinstance(v, float)) for row in rows]


def _told(key: tuple) -> str:
    return ", ".join(str(value)[:40] for value in key[:SHOWN_OF_A_ROW])


def alike(then: Any, now: Any, tolerance: float, text: bool) -> bool:
    """Whether two values are the same to ``tolerance``; where ``text``, decimals in a text, too."""
    if then == now:
        return True
    if isinstance(then, str) and isinstance(now, str):
        return text and _texts_alike(then, now, tolerance)
    if not all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in (then, now)):
        return False
    if isinstance(then, int) and isinstance(now, int):
        return False
    return abs(then - now) <= tolerance * max(1.0, abs(then))


def _texts_alike(then: str, now: str, tolerance: float) -> bool:
    if _DECIMAL.sub("#", then) != _DECIMAL.sub("#", now):
        return False
    pairs = zip(_DECIMAL.finditer(then), _DECIMAL.finditer(now), strict=True)
    return all(_decimals_alike(a, b, tolerance) for a, b in pairs)


def _decimals_alike(a: re.Match[str], b: re.Match[str], tolerance: float) -> bool:
    x, y = (float(m[0].replace("−", "-")) for m in (a, b))
    last = 1.01 * 10.0 ** -min(len(a[1]), len(b[1]))  # it may be rounded the other way
    return abs(x - y) <= max(tolerance * max(1.0, abs(x)), last)
