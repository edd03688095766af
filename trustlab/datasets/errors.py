"""What every file of cases must satisfy, and the error that names the row which does not."""

from __future__ import annotations

from pathlib import Path

MIN_STATEMENTS = 11
"""Cases need more than 10 statements (Ren et al. 2026, section on the benchmark)."""

_LONGEST = 160


class DataError(ValueError):
    """A file that cannot be used as it is: where, what was found, what is allowed.

    ``row`` counts from 1 and leaves the header out; it is ``None`` where the fault is the whole file's.
    """

    def __init__(self, file: Path | str, row: int | None, field: str, value: object, allowed: str):
        super().__init__(str(file), row, field, value, allowed)
        self.file, self.row, self.field, self.value, self.allowed = str(file), row, field, value, allowed

    def __str__(self) -> str:
        found = repr(self.value)
        if len(found) > _LONGEST:
            found = f"{found[:_LONGEST]}... ({len(found)} characters)"
        row = "" if self.row is None else f", row {self.row} (counted from 1, header not counted)"
        return f"{self.file}{row}, {self.field}: received {found}; allowed: {self.allowed}"


def wrong_encoding(file: Path | str, error: UnicodeDecodeError) -> DataError:
    """The :class:`DataError` for bytes that are not UTF-8."""
    return DataError(file, None, "encoding", error.object[error.start : error.start + 4], "UTF-8 text")


def each_key_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object hook for ``json.loads``: ``ValueError`` where a key comes twice, of which one value would be lost."""
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} comes twice")
        found[key] = value
    return found


def read_text(file: Path) -> str:
    """The whole of a UTF-8 file, without a byte-order mark. Raises :class:`DataError` for another encoding."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise wrong_encoding(file, error) from error
