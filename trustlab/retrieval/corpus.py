"""A corpus: passages in snippet form, one JSON object a line with ``id``, ``title``, ``content`` and ``contents``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from trustlab.datasets.errors import DataError, read_text
from trustlab.paths import DATA

FILE = DATA / "corpus" / "passages.jsonl"


@dataclass(frozen=True)
class Passage:
    """One passage; ``contents`` is title and content together: what is searched and what a model reads."""

    id: str
    title: str
    content: str
    contents: str


def load_corpus(path: str | Path | None = None) -> tuple[Passage, ...]:
    """The passages of ``path`` (default: the project's own), in file order; where ``contents`` is absent it is built.

    Raises :class:`DataError` for a bad line (counted from 1) or an id that comes twice, ``ValueError`` for no file.
    """
    file = Path(path).expanduser() if path else FILE
    if not file.is_file():
        raise ValueError(f"path is {str(file)!r}, which is no file; allowed is a JSONL file of passages")
    found: dict[str, Passage] = {}
    for number, line in enumerate(read_text(file).split("\n"), 1):
        if line.strip():
            passage = _passage(file, number, line)
            if passage.id in found:
                raise DataError(file, number, "id", passage.id, "an id that no earlier line has")
            found[passage.id] = passage
    if not found:
        raise DataError(file, None, "file", "no passages", "at least one passage")
    return tuple(found.values())


def _passage(file: Path, number: int, line: str) -> Passage:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(file, number, "line", line, f"one JSON object a line ({error})") from error
    if not isinstance(row, dict):
        raise DataError(file, number, "line", row, "one JSON object a line")
    for field in ("id", "title", "content"):
        if not isinstance(row.get(field), str) or not row[field].strip():
            raise DataError(file, number, field, row.get(field), "a str that is not empty")
    contents = row.get("contents") or f"{row['title']}. {row['content']}"
    if not isinstance(contents, str):
        raise DataError(file, number, "contents", contents, "a str")
    return Passage(row["id"], row["title"], row["content"], contents)
