"""Small corpora made for the tests of retrieval."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path

from trustlab.retrieval import Passage


def made(*texts: str) -> list[Passage]:
    """Passages p0, p1, ... that are searched by just these words."""
    return [Passage(f"p{i}", "t", text, text) for i, text in enumerate(texts)]


def ids(found: Iterable[Passage]) -> list[str]:
    return [p.id for p in found]


def row(**change: object) -> dict[str, object]:
    plain = {"id": "a", "title": "Croup", "content": "It barks.", "contents": "Croup. It barks."}
    return plain | change


def written(
    folder: Path,
    *rows: object,
    name: str = "corpus.jsonl",
    encoding: str = "utf-8",
    end: str = "\n",
) -> Path:
    """A file of these rows, a ``str`` as it stands and anything else as JSON; gzipped where the
    name says so."""
    lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
    content = ("\n".join(lines) + end).encode(encoding)
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress(content) if name.lower().endswith(".gz") else content)
    return file


def written_passages(folder: Path, passages: Iterable[Passage], name: str = "corpus.jsonl") -> Path:
    return written(folder, *(vars(p) for p in passages), name=name)
