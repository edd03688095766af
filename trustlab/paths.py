"""Says where results go, and writes them whole or not at all."""

from __future__ import annotations

import errno
import glob
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Self

from trustlab.files import DATA, ROOT, read_yaml  # noqa: F401

if TYPE_CHECKING:
    import pandas as pd

PRIVATE = 0o600
"""Rights of each file that is written, whatever the system gives to new ones."""
_ABOVE = (Path.cwd(), *Path.cwd().parents)
WORK = next((f for f in _ABOVE if (f / "notebooks" / "parameters").is_dir()), _ABOVE[0])
"""The nearest folder from the working folder upwards that has notebooks and their parameters; else
the working folder."""
NOTEBOOKS = next(
    n for n in (WORK / "notebooks", ROOT / "notebooks") if (n / "parameters").is_dir()
)
FIGURES = WORK / "figures"
RUNS = WORK / (os.environ.get("TRUSTLAB_RUNS") or "runs")
"""What runs leave behind, the reply cache among it; the environment variable TRUSTLAB_RUNS names
another folder."""
REPLIES = RUNS / "replies.sqlite"  # the reply cache of whatever names no other


def user_cache() -> Path:
    """The user's folder for what takes seconds to make and holds nothing of a run: "trustlab" in
    the folder that the environment variable XDG_CACHE_HOME names, else in ``~/.cache``; of a user
    without a home :data:`RUNS`."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    return folder / "trustlab" if folder.is_absolute() else RUNS


def use_studies() -> None:
    """Make ``notebooks/studies`` importable as ``studies``, also in joblib's workers; a folder of
    that name in the working folder has priority."""
    if str(NOTEBOOKS) not in sys.path:
        sys.path.append(str(NOTEBOOKS))


def offline(replies: bool = False) -> bool:
    """Whether TRUSTLAB_OFFLINE=1 forbids to ask any model: what is not kept is then an error.
    ``replies``: whether a language model may not be asked, which TRUSTLAB_OFFLINE=replies forbids
    alone, so that sentences are encoded anew."""
    value = os.environ.get("TRUSTLAB_OFFLINE")
    if value == "replies":
        return replies
    return value == "1"


def sha256_of(file: Path) -> str:
    """Of a file's bytes, in hex digits."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _is_dead(process: str) -> bool:
    """Whether no process has this number, as far as that can be told."""
    if not process.isdecimal() or os.name == "nt":  # a signal of 0 ends a process there
        return False
    try:
        os.kill(int(process), 0)
    except OSError as error:
        return isinstance(error, ProcessLookupError)
    return False


_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A name beside ``path`` to write to; it becomes ``path`` once the block ends, so that no half
    file is ever there. Where the block fails the old file stays; a kill leaves what was written,
    ending in ``.part``, until the same file is written again. Only the user may read it: patients'
    words may be in it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for part in path.parent.glob(f"{glob.escape(path.name)}.*.part"):
        process = part.name.split(".")[-2]
        if _is_dead(process):
            part.unlink(missing_ok=True)
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        beside.touch(PRIVATE)
        yield beside
        beside.replace(path)
    except OSError as error:
        if error.errno in _DISK_FULL and not error.filename:
            raise OSError(error.errno, os.strerror(error.errno), str(path)) from error
        raise
    finally:
        beside.unlink(missing_ok=True)


def save_text(text: str, path: Path) -> None:
    """Write UTF-8 text, :func:`whole`."""
    with whole(path) as beside:
        beside.write_text(text, encoding="utf-8")


def save_json(facts: Mapping[str, Any], path: Path) -> None:
    """Write a manifest's facts, :func:`whole`."""
    save_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n", path)


_BEGINS_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_IS_NUMBER = re.compile(r"[-+]?\d[\d.]*(e[-+]?\d+)?( \[.*)?", re.IGNORECASE)


def for_spreadsheet(cell: Any) -> Any:
    """A cell with an apostrophe before it where a spreadsheet would take its text for a formula; a
    number, also with its interval, stays."""
    if not isinstance(cell, str) or not _BEGINS_FORMULA.match(cell):
        return cell
    return cell if _IS_NUMBER.fullmatch(cell) else f"'{cell}"


def from_spreadsheet(cell: Any) -> Any:
    """The cell without the apostrophe of :func:`for_spreadsheet`."""
    if not isinstance(cell, str) or not _BEGINS_FORMULA.match(cell):
        return cell
    return cell.removeprefix("'")


def save_table(table: pd.DataFrame, path: str | Path, index: bool = False) -> None:
    """Write a table in full precision, :func:`whole`, in the format of its ending: ``.csv`` or
    ``.tsv``, with text :func:`for_spreadsheet`, or ``.parquet``; ``ValueError`` for another."""
    kind = Path(path).suffix.lower()
    if kind not in (".csv", ".tsv", ".parquet"):
        raise ValueError(
            f"path is {str(path)!r}; its ending must be .csv, .tsv or .parquet"
        )
    with whole(Path(path)) as beside:
        if kind == ".parquet":
            table.to_parquet(beside, index=index)
            return
        table = table.rename(columns=for_spreadsheet)
        for i, column_type in enumerate(table.dtypes):
            if column_type.kind not in "biufcmM":
                column = table.iloc[:, i]
                table.isetitem(i, column.map(for_spreadsheet))
        table.to_csv(
            beside,
            sep="\t" if kind == ".tsv" else ",",
            index=index,
            lineterminator="\n",
            encoding="utf-8",
        )


def save_tables(run: object, names: Iterable[str], folder: Path) -> None:
    """Write each named table of ``run`` into ``folder``, as ``NAME.csv``."""
    for name in names:
        save_table(getattr(run, name), folder / f"{name}.csv")


class Growing:
    """Tables that grow by rows, part by part.

    - ``columns``: table -> column -> "string", "int64" or "float64".
    - With ``keep`` they stay in memory. Without, each is a Parquet file in ``folder`` (``None``: a
      passing one), a row group a part, :func:`whole`.
    """

    def __init__(
        self, columns: Mapping[str, Mapping[str, str]], folder: Path | None, keep: bool
    ) -> None:
        self._columns = columns
        self._keep = keep
        self._open = ExitStack()
        self._rows: dict[str, list[tuple]] = {name: [] for name in columns}
        self._writers: dict[str, Any] = {}
        self._passing = None
        if folder is None and not keep:
            self._passing = TemporaryDirectory()
            folder = Path(self._passing.name)
        self._folder = folder or Path()

    def __enter__(self) -> Self:
        import pyarrow as pa
        from pyarrow.parquet import ParquetWriter

        if self._keep:
            return self
        for name, columns in self._columns.items():
            file = self._folder / f"{name}.parquet"
            beside = self._open.enter_context(whole(file))
            writer = ParquetWriter(beside, pa.schema(list(columns.items())))
            self._writers[name] = self._open.enter_context(writer)
        return self

    def __exit__(self, *raised: Any) -> None:
        self._open.__exit__(*raised)

    def add(self, name: str, rows: Iterable[tuple]) -> None:
        """Add rows to a table."""
        self._rows[name] += rows

    def end_part(self) -> None:
        """Write what was added, where the tables are files."""
        import pyarrow as pa

        for name, writer in self._writers.items():
            rows = self._rows[name]
            if rows:
                columns = zip(*rows, strict=True)
                arrays = []
                for values, field in zip(columns, writer.schema, strict=True):
                    arrays.append(pa.array(values, field.type, from_pandas=True))
                writer.write_table(pa.Table.from_arrays(arrays, schema=writer.schema))
                rows.clear()

    def frames(self) -> dict[str, pd.DataFrame]:
        """The tables, once all is done."""
        import pandas as pd
        from pyarrow.parquet import read_table

        frames: dict[str, pd.DataFrame] = {}
        for name, types in self._columns.items():
            if self._keep:
                frame = pd.DataFrame(self._rows[name], columns=list(types))
                whole_numbers = {
                    column: kind for column, kind in types.items() if kind == "int64"
                }
                frames[name] = typed(frame, whole_numbers)
            else:
                table = read_table(self._folder / f"{name}.parquet")
                frames[name] = table.to_pandas(split_blocks=True, self_destruct=True)
        return frames


def typed(table: pd.DataFrame, kinds: Mapping[str, str]) -> pd.DataFrame:
    """The table with its columns of these ``kinds``; whole numbers of which one is missing are
    float64."""
    types = dict(kinds)
    for column in kinds:
        if table[column].isna().to_numpy().any():
            types[column] = "float64"
    return table.astype(types)


NOTICE = "Research only. Not for clinical use."
