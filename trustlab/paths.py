"""Where the project's own folders are, how a result is written there, and the words it carries."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "data"
NOTEBOOKS = ROOT / "notebooks"
FIGURES = ROOT / "figures"
RUNS = ROOT / (os.environ.get("TRUSTLAB_RUNS") or "runs")
"""What runs leave behind, the reply cache among it; the environment variable TRUSTLAB_RUNS names
another folder."""
REPLIES = RUNS / "replies.sqlite"
"""The reply cache of whatever names no other."""


def offline() -> bool:
    """Whether TRUSTLAB_OFFLINE=1 forbids to ask any model: what is not kept is then an error."""
    return os.environ.get("TRUSTLAB_OFFLINE") == "1"


def read_yaml(path: Path) -> Any:
    """What a YAML file of the project holds; read with libyaml where it is there, much the
    faster."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(path.read_text(encoding="utf-8"), Loader=loader)


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A name beside ``path`` to write to; it becomes ``path`` once the block ends, so that no half
    file is ever there.

    Where the block fails, what it wrote is removed, and the old file stays; a kill leaves it,
    ending in ``.part``. The folder is made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        yield beside
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def save_text(text: str, path: Path) -> None:
    """Write UTF-8 text, :func:`whole`."""
    with whole(path) as beside:
        beside.write_text(text, encoding="utf-8")


def save_json(facts: Mapping[str, Any], path: Path) -> None:
    """Write a manifest's facts, :func:`whole`."""
    save_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n", path)


def save_table(table: pd.DataFrame, path: Path, index: bool = False) -> None:
    """Write a table as CSV in full precision, :func:`whole`."""
    with whole(path) as beside:
        table.to_csv(beside, index=index, lineterminator="\n", encoding="utf-8")


def save_tables(run: object, names: Iterable[str], folder: Path) -> None:
    """Write each named table of ``run`` into ``folder``, as ``NAME.csv``."""
    for name in names:
        save_table(getattr(run, name), folder / f"{name}.csv")


WRITABLE = "text that UTF-8 can write, without half surrogates"


def utf8(value: object) -> bool:
    r"""Whether all text in ``value``, names and lists too, is :data:`WRITABLE`: JSON may spell half
    a character, ``\ud800``."""
    if isinstance(value, Mapping):
        return all(map(utf8, (*value, *value.values())))
    if isinstance(value, list | tuple):
        return all(map(utf8, value))
    try:
        return not isinstance(value, str | Path) or str(value).encode() is not None
    except UnicodeEncodeError:
        return False


NOTICE = "Research only. Not for clinical use."
