"""Writes each request of a run with its replies and what was read.

A row is one JSON object (:func:`row_of`). A request that serves several views, as the profile of
a diagnosis, names the first; of a consultation ``level`` is the turn. What differs whenever the run
is made (``n_cached``, ``n_made``, ``seconds``) comes last.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from trustlab.models.base import Request
from trustlab.models.cache import CachedModel, json_lines, packed
from trustlab.parsing.counts import ReadReply
from trustlab.parsing.reply import Span
from trustlab.records import Reply

NAME = "replies.jsonl.gz"
Attach = Callable[..., None]
"""Takes models, cached or not; requests to the cached ones are recorded from then on."""


def json_line(row: object) -> bytes:
    """A row as a line of JSON; half a character, which UTF-8 does not take, is spelt out.
    ``ValueError`` for a number that is not finite."""
    text = json.dumps(
        row,
        ensure_ascii=False,
        allow_nan=False,
        separators=(",", ":"),
        default=np.generic.item,
    )
    return f"{text}\n".encode("utf-8", "backslashreplace")


@contextmanager
def recording(folder: Path | None) -> Iterator[Attach]:
    """Record the requests to models in ``folder``; of ``None`` nothing is recorded.
    Row by row, so that memory does not grow with the run. A model that had a recorder before has it
    back at the end."""
    if folder is None:
        yield lambda *models: None
        return
    before: list[tuple[CachedModel, Any]] = []
    with packed(folder / NAME) as file:

        def record(name: str, request: Request, *served: Any) -> None:
            file.write(json_line(row_of(name, request, *served)))

        def attach(*models: object) -> None:
            for model in models:
                if isinstance(model, CachedModel) and model.recorder is not record:
                    before.append((model, model.recorder))
                    model.recorder = record

        try:
            yield attach
        finally:
            for model, recorder in reversed(before):
                model.recorder = recorder


def row_of(
    model: str,
    request: Request,
    replies: Iterable[Reply],
    read_replies: Iterable[ReadReply],
    counted: Mapping[str, Any],
) -> dict[str, Any]:
    """A request as a row; ``read_replies`` says what became of each reply, its ``kind`` (read, cut,
    placeholder or unread, '' where the backend failed) among it."""
    about = request.about
    reply_rows = []
    for reply, read_reply in zip(replies, read_replies, strict=True):
        row = {
            "raw": reply.text if reply.raw is None else reply.raw,
            "thought": reply.reasoning,
            "finish": reply.finish,
            "kind": read_reply.kind,
            "read": plain(read_reply.read),
            "why": read_reply.why,
            "n_tokens_in": reply.n_tokens_in,
            "n_tokens_out": reply.n_tokens_out,
        }
        reply_rows.append(row)
    return {
        "dataset": about and about.dataset,
        "case_id": about and about.case_id,
        "level": about and about.level,
        "n_views": about.n_views if about else 0,
        "diagnosis": about and about.diagnosis,
        "model": model,
        "purpose": request.purpose,
        "messages": request.messages,
        "temperature": request.temperature,
        "seed": request.seed,
        "max_tokens": request.max_tokens,
        "replies": reply_rows,
        **counted,
    }


def plain(value: Any) -> Any:
    """The reading of a reply, short and as JSON: empty fields are left out."""
    if isinstance(value, Span):
        return value.text
    if is_dataclass(value) and not isinstance(value, type):
        fields = asdict(value)
        return {
            name: plain(part)
            for name, part in fields.items()
            if part not in (None, "", ())
        }
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return value


INDEXED = ("dataset", "case_id", "level", "diagnosis", "purpose", "model")


class Replies:
    """The rows of a folder's ``replies.jsonl.gz``, by case and level, or by diagnosis.
    The file is read once, when first asked, into a passing SQLite table that spills to the disk."""

    def __init__(self, folder: Path | None) -> None:
        self.path = None if folder is None else folder / NAME

    def __bool__(self) -> bool:
        return self.path is not None and self.path.is_file()

    def of(
        self,
        dataset: str,
        case_id: str,
        level: int | None,
        models: Collection[str] = (),
    ) -> list[dict[str, Any]]:
        """The rows of a case at a level, in the order in which they were asked; with ``models``,
        theirs and a judge's."""
        where = "dataset = ? AND case_id = ? AND level IS ?"
        if models:
            where += f" AND (purpose = 'judge' OR model IN ({_placeholders(models)}))"
        return self._select(where, dataset, case_id, level, *models)

    def about(self, diagnosis: str, purposes: Sequence[str]) -> list[dict[str, Any]]:
        """The rows about a diagnosis, whatever the view that they name."""
        where = f"diagnosis = ? AND purpose IN ({_placeholders(purposes)})"
        return self._select(where, diagnosis, *purposes)

    def _select(self, where: str, *values: object) -> list[dict[str, Any]]:
        if not self:
            return []
        lines = self._table.execute(
            f"SELECT line FROM rows WHERE {where} ORDER BY n", values
        )
        return [json.loads(line) for (line,) in lines]

    @cached_property
    def _table(self) -> sqlite3.Connection:
        assert self.path is not None
        table = sqlite3.connect("", check_same_thread=False)
        table.execute(f"CREATE TABLE rows (n, {', '.join(INDEXED)}, line)")
        insert = f"INSERT INTO rows VALUES (?, {_placeholders(INDEXED)}, ?)"
        table.executemany(insert, _rows_to_insert(self.path))
        table.execute("CREATE INDEX views ON rows (case_id, level)")
        table.execute("CREATE INDEX diagnoses ON rows (diagnosis, purpose)")
        return table


def replies_in(folder: Path | None) -> Replies:
    """The replies of a run's folder, read once as long as the file stays the same."""
    replies = Replies(folder)
    if not replies or replies.path is None:
        return replies
    return _replies_of(folder, replies.path.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _replies_of(folder: Path | None, _: int) -> Replies:
    return Replies(folder)


def _placeholders(values: Collection[str]) -> str:
    return ", ".join("?" * len(values))


def _rows_to_insert(path: Path) -> Iterator[tuple[Any, ...]]:
    for n, line in json_lines(path):
        try:
            row = json.loads(line)
            keys = [row[name] for name in INDEXED]
            are_texts = all(
                isinstance(reply["raw"], str | None) for reply in row["replies"]
            )
            if not are_texts or not all(
                isinstance(key, str | int | None) for key in keys
            ):
                raise ValueError("a reply or a key is no text")
        except (ValueError, TypeError, LookupError) as error:
            raise ValueError(
                f"{path}, line {n} is no row of replies: {error}"
            ) from error
        yield (n, *keys, line)
