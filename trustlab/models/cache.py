"""Replies kept in a file, so that each is asked for once; and how they are written there."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import math
import os
import re
import sqlite3
import threading
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import numpy as np

from trustlab.choices import WRITABLE, utf8
from trustlab.models.base import (
    STATISTICS,
    Abilities,
    Messages,
    Model,
    Request,
    Stopped,
    TextOnly,
    abilities_of,
    finds_out,
    too_long,
)
from trustlab.models.openai_replies import MOST_TOKENS, believed
from trustlab.models.opening import Later
from trustlab.models.thought import apart
from trustlab.parsing.counts import ReadReply, count, read_reply
from trustlab.paths import offline as told_offline
from trustlab.paths import whole
from trustlab.records import Reply, TokenTrace

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
to_json = json.JSONEncoder(allow_nan=False, sort_keys=True, separators=(",", ":")).encode
_REPLY_FIELDS = {"finish", "n_tokens_in", "n_tokens_out", "raw", "text", "trace"}
_MORE = {"served_by", "lacks", "reasoning"}
"""Fields of a reply, or its trace, that are written where they hold something."""
ABILITY_FIELDS = {"lacks", "provides"}
_MORE_ABILITIES = {
    "window": int, "counts": bool, "temperature": bool, "coldest": float, "structured": bool,
    "schema_form": str, "dialect": dict,
}  # fmt: skip
"""Written where they are not what is taken for granted."""
COUNT_FIELDS = {"n_tokens"}
"""Of a row that holds the length of a prompt."""
_TRACE_FIELDS = {"tokens", "alternatives", "bounds", *TokenTrace.ARRAYS}


def encode_reply(reply: Reply) -> str:
    """A complete reply as JSON, floats in full precision; ValueError for NaN, infinity or a reply
    that is missing."""
    if reply.missing is not None or reply.text is None:
        raise ValueError(
            f"only complete replies are kept, got missing={reply.missing!r}, text={reply.text!r}"
        )
    fields: dict[str, object] = {
        "text": reply.text,
        "raw": reply.raw,
        "finish": reply.finish,
        "trace": None,
        "n_tokens_in": int(reply.n_tokens_in),
        "n_tokens_out": int(reply.n_tokens_out),
    }
    if (trace := reply.trace) is not None:
        arrays = {n: _array(n, getattr(trace, n), len(trace)) for n in TokenTrace.ARRAYS}
        told: dict[str, object] = {n: a if a is None else a.tolist() for n, a in arrays.items()}
        rows = trace.alternatives
        best = rows and [[(token, float(logprob)) for token, logprob in row] for row in rows]
        told |= {"tokens": trace.tokens, "alternatives": best, "bounds": dict(trace.bounds)}
        fields["trace"] = told | ({"lacks": dict(trace.lacks)} if trace.lacks else {})
    more = {"served_by": reply.served_by or None, "reasoning": reply.reasoning}
    believed(reply)
    return to_json(fields | {name: value for name, value in more.items() if value is not None})


def decode_reply(value: str | Mapping[str, object]) -> Reply:
    """The reply that :func:`encode_reply` wrote, arrays as float64 (L,); ValueError or TypeError if
    it is anything else."""
    fields = json.loads(value, parse_constant=refuse_constant) if isinstance(value, str) else value
    if not isinstance(fields, Mapping) or set(fields) - _MORE != _REPLY_FIELDS:
        got = shortened(str(fields))
        raise ValueError(f"a reply has the fields {sorted(_REPLY_FIELDS)}, got {got}")
    for name in fields.keys() - {"trace"}:
        kinds = int if name.startswith("n_") else (str, type(None)) if name == "raw" else str
        if not isinstance(fields[name], kinds):
            raise ValueError(f"{name} has the wrong type: {fields[name]!r}")
    trace = fields["trace"]
    made: Any = {**fields, "trace": None if trace is None else _decode_trace(trace)}
    return believed(Reply(**made))


def encode_abilities(able: Abilities) -> str:
    """What a model can do, as JSON."""
    granted = Abilities(able.provides)
    more = {name: getattr(able, name) for name in _MORE_ABILITIES}
    more = {name: value for name, value in more.items() if value != getattr(granted, name)}
    return to_json({"provides": sorted(able.provides), "lacks": dict(able.lacks), **more})


def decode_abilities(fields: object) -> Abilities:
    """What :func:`encode_abilities` wrote; ValueError if it is anything else."""
    if not isinstance(fields, dict) or set(fields) - set(_MORE_ABILITIES) != ABILITY_FIELDS:
        known = f"what a model provides has the fields {sorted(ABILITY_FIELDS)}"
        raise ValueError(f"{known}, got {shortened(str(fields))}")
    provides, lacks = fields["provides"], fields["lacks"]
    if not isinstance(provides, list) or not set(map(str, provides)) <= {"text", *STATISTICS}:
        raise ValueError(f"provides must be among {('text', *STATISTICS)}, got {provides!r}")
    if not isinstance(lacks, dict) or not all(isinstance(why, str) for why in lacks.values()):
        raise ValueError(f"lacks must map needs to reasons, got {lacks!r}")
    more = {name: fields[name] for name in _MORE_ABILITIES if name in fields}
    for name, value in more.items():
        if type(value) is not _MORE_ABILITIES[name] or (name == "window" and value < 1):
            raise ValueError(f"{name} of a model cannot be {value!r}")
    return Abilities(frozenset(map(str, provides)), lacks, **more)


def _decode_count(fields: object) -> int:
    """The length of a prompt, as it was kept; ValueError if it is anything else."""
    if not isinstance(fields, dict) or set(fields) != COUNT_FIELDS:
        raise ValueError(f"a count has the field n_tokens, got {shortened(str(fields))}")
    if type(n := fields["n_tokens"]) is not int or not 0 <= n <= MOST_TOKENS:
        raise ValueError(f"n_tokens must be a whole number up to {MOST_TOKENS:,}, got {n!r}")
    return n


def _decode_trace(trace: object) -> TokenTrace:
    if not isinstance(trace, Mapping) or set(trace) - _MORE != _TRACE_FIELDS:
        got = shortened(str(trace))
        raise ValueError(f"a trace has the fields {sorted(_TRACE_FIELDS)}, got {got}")
    tokens, alternatives, bounds = trace["tokens"], trace["alternatives"], trace["bounds"]
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise ValueError(f"tokens must be a list of strings, got {tokens!r}")
    if not isinstance(bounds, Mapping) or set(bounds.values()) - {"lower", "upper"}:
        raise ValueError(f'bounds must map fields to "lower" or "upper", got {bounds!r}')
    arrays = {name: _array(name, trace[name], len(tokens)) for name in TokenTrace.ARRAYS}
    if alternatives is not None:
        alternatives = tuple(
            tuple((str(token), float(logprob)) for token, logprob in row) for row in alternatives
        )
        if len(alternatives) != len(tokens):
            n = len(alternatives)
            raise ValueError(f"alternatives must have {len(tokens)} positions, got {n}")
    lacks = trace.get("lacks", {})
    if not isinstance(lacks, Mapping) or not all(isinstance(why, str) for why in lacks.values()):
        raise ValueError(f"lacks must map fields to reasons, got {lacks!r}")
    more: Any = {"bounds": dict(bounds), "lacks": dict(lacks), **arrays}
    return TokenTrace(tuple(tokens), alternatives=alternatives, **more)


def _array(name: str, values: object, n_tokens: int) -> np.ndarray | None:
    array = None if values is None else np.asarray(values, dtype=np.float64)
    if array is not None and (array.shape != (n_tokens,) or not np.isfinite(array).all()):
        raise ValueError(f"{name} must hold {n_tokens} finite numbers, got {values!r}")
    return array


def refuse_constant(word: str) -> float:
    """What JSON does with NaN and infinities here: ValueError."""
    raise ValueError(f"{word} is no number that the cache keeps")


def shortened(text: str, limit: int = 200) -> str:
    """``text`` in quotes, cut where it is long."""
    return repr(text) if len(text) <= limit else f"{text[:limit]!r}… ({len(text)} characters)"


Recorder = Callable[
    [str, Request, Sequence[Reply], Sequence[ReadReply], Mapping[str, int | float]], None
]
"""Gets (model, request, its replies, {n_cached, n_made, seconds}) of each request served."""
CALL_COLUMNS = ("purpose", "n", "n_tokens_in", "n_tokens_out", "seconds", "n_made", "n_cached")
BUSY_TIMEOUT_S = 60.0
CHUNK = 500
SCHEMA = "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, value TEXT)"
"""With row ids: without, replies of 1 kB take three times the room (older files are read on)."""

_KEY = re.compile(r"[0-9a-f]{64}")


class CacheMiss(LookupError):
    """Offline, a reply is not in the cache. ``request`` is the first one missing."""

    def __init__(self, message: str, request: Request) -> None:
        super().__init__(message)
        self.request = request


def request_keys(request: Request, name: str, revision: str) -> list[str]:
    """The key of each of the request's ``n`` replies, 64 hex digits: sha256 over JSON of all that
    decides a reply.

    ``purpose`` and ``n`` play no part, ``prior_messages`` only where ``prior`` is wanted, the order
    of the Rényi divergence and the number of alternatives only where ``distributions`` are, a
    schema and a continuation only where there is one; greedy replies share index 0.
    """
    if request.n < 1:
        raise ValueError(f"n must be at least 1, got {request.n}")
    prior = request.prior_messages if "prior" in request.want else None
    content: list[Any] = [name, revision, request.messages, float(request.temperature)]
    content += [int(request.max_tokens), int(request.seed), sorted(request.want), prior]
    if "distributions" in request.want:
        content += [float(request.renyi_alpha), int(request.n_alternatives)]
    if request.schema is not None:
        content += ["schema", request.schema]
    if request.continuation is not None:
        content += ["continuation", request.continuation]
    # The index ends the list, so that fifteen samples hash a long prompt once.
    head = hashlib.sha256((to_json(content)[:-1] + ",").encode())
    keys, greedy = [], request.temperature == 0
    for i in range(1) if greedy else range(request.first, request.first + request.n):
        digest = head.copy()
        digest.update(f"{i}]".encode())
        keys.append(digest.hexdigest())
    return keys * request.n if greedy else keys


class Store(sqlite3.Connection):
    """An SQLite file whose errors name it."""

    path: object = ":memory:"

    @contextmanager
    def named(self) -> Iterator[None]:
        """An error within names the file."""
        try:
            yield
        except sqlite3.Error as error:
            if str(self.path) in str(error):
                raise
            raise type(error)(f"{self.path}: {error}") from error

    def execute(self, *args: Any) -> sqlite3.Cursor:
        """As in ``sqlite3``."""
        with self.named():
            return super().execute(*args)

    def executemany(self, *args: Any) -> sqlite3.Cursor:
        """As in ``sqlite3``."""
        with self.named():
            return super().executemany(*args)

    def __exit__(self, *args: Any) -> Any:
        with self.named():
            return super().__exit__(*args)


def _opened(path: object, target: str, **how: Any) -> Store:
    connection = sqlite3.connect(target, check_same_thread=False, factory=Store, **how)
    connection.path = path
    connection.text_factory = lambda raw: raw.decode(errors="surrogateescape")  # damage is text
    return connection


def connect(path: str | os.PathLike[str] | None, schema: str) -> Store:
    """Open or make an SQLite file in WAL mode with the table of ``schema``; None or ":memory:"
    stays in memory.

    A commit survives the death of the process; other processes may read and write meanwhile. A file
    that may not be written is only read (:func:`is_read_only`). ValueError if it is something else.
    """
    target = ":memory:" if path is None else os.fspath(path)
    if target != ":memory:":
        if is_read_only(target):
            return _connect_to_read(Path(target).resolve().as_uri())
        Path(target).parent.mkdir(parents=True, exist_ok=True)
    connection = _opened(path, target, timeout=BUSY_TIMEOUT_S)
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute(schema)
            return connection
        except sqlite3.OperationalError as error:
            # SQLite does not wait by itself when two processes turn a new file to WAL at once.
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        except sqlite3.DatabaseError as error:
            connection.close()
            raise ValueError(f"{error}: it is not an SQLite file") from error


def _connect_to_read(address: str) -> Store:
    for how in ("mode=ro", "mode=ro&immutable=1"):  # in a folder that takes no file beside it
        connection = _opened(address, f"{address}?{how}", uri=True)
        try:
            connection.execute("SELECT count(*) FROM sqlite_master")
            return connection
        except sqlite3.OperationalError:
            connection.close()
        except sqlite3.DatabaseError as error:
            connection.close()
            raise ValueError(f"{error}: it is not an SQLite file") from error
    raise ValueError(f"{address} cannot be read")


def is_read_only(path: str | os.PathLike[str] | None) -> bool:
    """Whether an SQLite file is there and it, or its folder, may not be written."""
    if path is None or not (file := Path(path)).is_file():
        return False
    return not (os.access(file, os.W_OK) and os.access(file.parent, os.W_OK))


def select(
    connection: Store, table: str, column: str, keys: Iterable[str]
) -> Iterator[tuple[str, str | bytes]]:
    """(key, ``column``) of every key found in ``table``, looked up in chunks of :data:`CHUNK`."""
    distinct = list(dict.fromkeys(keys))
    for chunk in (distinct[start : start + CHUNK] for start in range(0, len(distinct), CHUNK)):
        marks = ",".join("?" * len(chunk))
        with connection.named():
            yield from connection.execute(
                f"SELECT key, {column} FROM {table} WHERE key IN ({marks})", chunk
            )


def _summed(value: str) -> str:
    """A value as it is kept: a line of JSON, and its checksum (CRC-32)."""
    return f"{value}\n{zlib.crc32(value.encode()):08x}"


def _plain(kept: object) -> str:
    """The JSON of a kept value; ValueError where its checksum is another. Older rows have none."""
    value, mark, total = str(kept).partition("\n")
    if mark and _summed(value) != kept:
        raise ValueError(f"its checksum is not {total!r}")
    return value


def _blocks(requests: Sequence[Request], wanted: Sequence[int], size: int) -> Iterator[list[int]]:
    """Request indices in blocks of ``size`` distinct message lists, in order of first
    appearance."""
    groups: dict[Messages, list[int]] = {}
    for i in wanted:
        groups.setdefault(requests[i].messages, []).append(i)
    rest = iter(groups.values())
    while block := [i for group in islice(rest, size) for i in group]:
        yield block


def _unknown_parts(
    request: Request, keys: Sequence[str], known: Collection[str]
) -> Iterator[tuple[Request, list[str]]]:
    """The request cut down to its replies with an unknown key: one request for each run of
    neighbours, with their keys."""
    if request.temperature == 0:
        if keys[0] not in known:
            yield replace(request, n=1), [keys[0]]
        return
    start = 0
    for stop in range(1, len(keys) + 1):
        if stop < len(keys) and (keys[stop] in known) == (keys[start] in known):
            continue
        if keys[start] not in known:
            part = replace(request, n=stop - start, first=request.first + start)
            yield part, list(keys[start:stop])
        start = stop


class CachedModel:
    """A model whose complete replies are kept in an SQLite file and never asked for again.

    - ``path`` None keeps them in memory.
    - ``block``: how many distinct message lists go to the model before the replies are committed. A
      model that streams gets all at once, and each reply is committed as it comes.
    - ``offline`` (None: as TRUSTLAB_OFFLINE says, or where the file may not be written): a reply
      that is not there raises :class:`CacheMiss`.
    - ``calls`` lists the requests served, ``counts`` what became of their replies, by purpose
      (:mod:`trustlab.parsing.counts`); ``served`` counts the replies by the model that their
      server says it used, where it says so. ``recorder`` is told of each request with its replies.
    - ``trial`` sees the requests first (:class:`trustlab.models.trial.Trial`).
    - Several processes may share the file: what one has asked for is not asked for again, but two
      that miss the same reply at the same time both ask.
    """

    def __init__(
        self,
        model: Model,
        path: str | os.PathLike[str] | None,
        *,
        offline: bool | None = None,
        block: int = 128,
    ) -> None:
        read_only = is_read_only(path)
        offline = (told_offline(replies=True) or read_only) if offline is None else offline
        if read_only and not offline:
            raise ValueError(f"{path} may not be written: replies that are asked for would be lost")
        if block < 1:
            raise ValueError(f"block must be at least 1, got {block}")
        if offline and path not in (None, ":memory:") and not Path(path).is_file():
            what = "import one or run once online"
            raise FileNotFoundError(f"offline, but there is no reply cache at {path}; {what}")
        self.model, self.path, self.offline, self.block = model, path, offline, block
        self._why_offline = "it may not be written" if read_only else "offline=True"
        self.name, self.revision = model.name, model.revision
        self.prompts: Any = None
        self.taught: Mapping[str, Any] = getattr(model, "taught", {})
        self.usage: Mapping[str, float] = getattr(model, "usage", {})
        self.calls: list[dict[str, object]] = []
        self.counts: dict[str, dict[str, int]] = {}
        self.served: Counter[str] = Counter()
        self.recorder: Recorder | None = None
        self.trial: Callable[[CachedModel, Sequence[Request]], None] | None = None
        self._connection = connect(path, SCHEMA)
        self._writing = threading.Lock()

    @property
    def provides(self) -> frozenset[str]:
        """What the model provides."""
        return self._told_of("provides")

    @property
    def lacks(self) -> Mapping[str, str]:
        """Need -> why the model cannot meet it, where it says so."""
        return self._told_of("lacks")

    def _told_of(self, what: str) -> Any:
        """What is known of a view of the text alone without asking the model in it."""
        asks = finds_out(self.model) and not isinstance(self.model, TextOnly)
        return getattr(self.abilities if asks else self.model, what, {})

    @property
    def window(self) -> float:
        """Tokens that prompt and reply may have together; infinite where that is not known, also
        offline to a file that was kept before it was asked for."""
        try:
            return self.abilities.window
        except LookupError:
            return math.inf

    @cached_property
    def abilities(self) -> Abilities:
        """What the model can do; kept in the file where the model had to find it out, so that a
        replay need not."""
        if not finds_out(self.model):
            return abilities_of(self.model)
        model: Any = self.model
        told = self._kept("provides")
        if told is None:
            if self.offline:
                self._only_if_local(f"say what {self.name} provides")
                return abilities_of(model)
            self._put(self._key("provides"), encode_abilities(abilities_of(model)))
            told = self._kept("provides")  # as a replay reads it
        found = decode_abilities(told)
        if hasattr(type(model), "abilities"):
            model.abilities = found
        return found

    def _kept(self, what: str, *more: object) -> Any:
        """What was found out about the model, ``None`` where nothing is kept."""
        rows = select(self._connection, "replies", "value", [self._key(what, *more)])
        return next((json.loads(_plain(value)) for _, value in rows), None)

    def _only_if_local(self, what: str) -> None:
        """``LookupError`` offline, unless the model is in a folder here: it may then be opened."""
        if not isinstance(getattr(self.model, "model", self.model), Later):
            where = f"the cache {self.path} does not {what}"
            raise LookupError(f"offline, and {where}; run once online")

    def count_tokens(self, messages: Messages) -> int | None:
        """Tokens of a prompt; ``None`` where the model does not count. Kept in the file where it
        has to be asked."""
        if not self.abilities.counts:
            return None
        model: Any = self.model
        if not finds_out(model):
            return model.count_tokens(messages)
        if told := self._counts([self._key("n_tokens", messages)]):
            return next(iter(told.values()))
        if self.offline:
            self._only_if_local(f"say how long a prompt is for {self.name}")
            return model.count_tokens(messages)
        n_tokens = model.count_tokens(messages)
        if n_tokens is not None:
            self._put(self._key("n_tokens", messages), to_json({"n_tokens": n_tokens}))
            self._kept("n_tokens", messages)  # read, as a replay will
        return n_tokens

    def _key(self, what: str, *more: object) -> str:
        content = to_json([what, self.name, self.revision, *more])
        return hashlib.sha256(content.encode()).hexdigest()

    def _put(self, key: str, value: str) -> None:
        with self._writing, self._connection:
            row = key, _summed(value)
            self._connection.execute("INSERT OR IGNORE INTO replies VALUES (?, ?)", row)

    def generate(
        self, requests: Sequence[Request], *, progress: Callable[[int], None] | None = None
    ) -> list[list[Reply]]:
        """Answer every request, asking the model only for those with a reply unknown.

        ``progress`` is called with the number of requests done since it was last called, as
        ``tqdm.update`` takes it.
        """
        if self.trial is not None:
            self.trial(self, requests)
        report = progress or (lambda n_done: None)
        if not getattr(self.model, "structured", False):
            requests = [replace(r, schema=None) if r.schema else r for r in requests]
        keys = [request_keys(request, self.name, self.revision) for request in requests]
        known = self._look_up(key for row in keys for key in row)
        n_cached = [sum(key in known for key in row) for row in keys]
        missing = [i for i, row in enumerate(keys) if n_cached[i] < len(row)]
        for i, reply in self._found_too_long(requests, missing).items():
            known |= dict.fromkeys(keys[i], reply) | {k: known[k] for k in keys[i] if k in known}
            missing.remove(i)
        if missing and self.offline:
            first = missing[0]
            told = self._miss(requests[first], n_cached[first], len(missing))
            raise CacheMiss(told, requests[first])
        made: dict[int, tuple[int, float]] = {}
        if done := len(requests) - len(missing):
            report(done)
        if missing and getattr(self.model, "streams", False):
            made |= self._ask(requests, keys, missing, known, report)
        else:
            for block in _blocks(requests, missing, self.block):
                made |= self._ask(requests, keys, block, known)
                report(len(block))
        replies = [[known[key] for key in row] for row in keys]
        self.served.update(r.served_by for row in replies for r in row if r.served_by)
        for i, (request, row) in enumerate(zip(requests, replies, strict=True)):
            n_made, seconds = made.get(i, (0, 0.0))
            n_in, n_out = max(r.n_tokens_in for r in row), sum(r.n_tokens_out for r in row)
            counts = (n_made, 0 if n_made and request.temperature == 0 else request.n - n_made)
            found = [read_reply(reply, request.about) for reply in row]
            examples = {text for role, text in request.messages if role == "assistant"}
            n_examples = sum((reply.text or "").strip() in examples for reply in row)
            count(self.counts, request.purpose, found, n_examples)
            if self.recorder is not None:
                counted = {"n_cached": counts[1], "n_made": n_made, "seconds": seconds}
                self.recorder(self.name, request, row, found, counted)
            call = (request.purpose, request.n, n_in, n_out, seconds, *counts)
            self.calls.append(dict(zip(CALL_COLUMNS, call, strict=True)))
        return replies

    def _ask(
        self,
        requests: Sequence[Request],
        keys: list[list[str]],
        block: list[int],
        known: dict[str, Reply],
        report: Callable[[int], None] | None = None,
    ) -> dict[int, tuple[int, float]]:
        """Ask the model for a block, commit, add to ``known``; request -> (replies asked for,
        seconds).

        With ``report`` each reply is committed, and each request reported, as it comes.
        """
        # Each unknown reply is asked for once, by the request with the most replies that it belongs
        # to.
        parts: list[tuple[int, Request, list[str]]] = []
        claimed: set[str] = set()
        for i in sorted(block, key=lambda i: -requests[i].n):
            for part, row in _unknown_parts(requests[i], keys[i], known.keys() | claimed):
                parts.append((i, part, row))
                claimed.update(row)
        place = {i: k for k, i in enumerate(block)}
        parts.sort(key=lambda part: place[part[0]])
        left = Counter(i for i, part, _ in parts for _ in range(part.n))
        if report is not None:
            report(len(block) - len(left))  # their replies are others' too

        kept: set[str] = set()

        def keep(k: int, first: int, replies: list[Reply]) -> None:
            i, _, row = parts[k]
            self._store(fresh := dict(zip(row[first:], replies, strict=False)))
            kept.update(key for key, reply in fresh.items() if reply.missing is None)
            left[i] -= len(replies)
            if report is not None and left[i] == 0:
                report(1)

        named = {} if report is None else {"keep": keep}
        start = time.perf_counter()
        try:
            asked = [replace(part, about=None) for _, part, _ in parts]
            answers = self.model.generate(asked, **named)
        except Stopped as stopped:
            self._keep(parts, stopped.replies, kept)
            raise
        elapsed = time.perf_counter() - start
        if [len(row) for row in answers] != [part.n for _, part, _ in parts]:
            made_n, asked_n = [len(row) for row in answers], [part.n for _, part, _ in parts]
            raise ValueError(f"{self.name} returned {made_n} replies for n={asked_n}")
        fresh = self._keep(parts, answers, kept)
        known |= fresh | self._look_up(fresh)
        tokens = [sum(reply.n_tokens_out for reply in row) for row in answers]
        made: dict[int, tuple[int, float]] = {}
        for (i, part, _), n in zip(parts, tokens, strict=True):
            n_made, seconds = made.get(i, (0, 0.0))
            share = n / sum(tokens) if sum(tokens) else 1 / len(tokens)
            made[i] = (n_made + part.n, seconds + elapsed * share)
        return made

    def _keep(
        self,
        parts: list[tuple[int, Request, list[str]]],
        answers: list[list[Reply]],
        kept: Collection[str],
    ) -> dict[str, Reply]:
        """Store what is complete among the answers and not kept yet; all of them by key."""
        fresh: dict[str, Reply] = {}
        for (_, _, row), replies in zip(parts, answers, strict=True):
            fresh |= dict(zip(row, replies, strict=False))
        self._store({key: reply for key, reply in fresh.items() if key not in kept})
        for (_, part, _), replies in zip(parts, answers, strict=True):
            n = replies[0].n_tokens_in if replies and replies[0].missing else 0
            if n and replies[0] == too_long(self.name, self.window, n):
                self._put(self._key("n_tokens", part.messages), to_json({"n_tokens": n}))
                self._kept("n_tokens", part.messages)  # read, as a replay will
        return fresh

    def _found_too_long(
        self, requests: Sequence[Request], unknown: Sequence[int]
    ) -> dict[int, Reply]:
        """Request -> its reply, of those whose prompt was found to be longer than the window."""
        keys = {i: self._key("n_tokens", requests[i].messages) for i in unknown}
        lengths = self._counts(set(keys.values()))
        window = self.window if lengths else math.inf
        found = {i: n for i, key in keys.items() if (n := lengths.get(key, 0)) > window}
        return {i: too_long(self.name, window, n) for i, n in found.items()}

    def _look_up(self, keys: Iterable[str]) -> dict[str, Reply]:
        """The kept replies; one that was kept with a thought in its text is parted now."""
        found, parted = {}, getattr(self.model, "thinking", "auto") == "auto"
        for key, reply in self._whole(keys, decode_reply).items():
            tokens = reply.trace.tokens if reply.trace else ()
            whole = parted and reply.reasoning is None
            found[key] = apart(reply, pieces=tokens, named=tokens) if whole else reply
        return found

    def _counts(self, keys: Iterable[str]) -> dict[str, int]:
        return self._whole(keys, lambda value: _decode_count(json.loads(value)))

    def _whole(self, keys: Iterable[str], decode: Callable[[str], T]) -> dict[str, T]:
        """What is kept, without damaged rows: these are dropped, so that they are asked again."""
        found: dict[str, T] = {}
        damaged: dict[str, str] = {}
        for key, value in select(self._connection, "replies", "value", keys):
            try:
                found[key] = decode(_plain(value))
            except DAMAGE as error:
                damaged[key] = str(error)
        if damaged and not self.offline:
            with self._writing:
                _drop(self._connection, damaged)
        for key, why in damaged.items():
            left = "is left out" if self.offline else "is dropped, and asked again"
            warnings.warn(f"{self.path}: the damaged row {key} {left}: {why}", stacklevel=5)
        return found

    def _store(self, fresh: Mapping[str, Reply]) -> None:
        rows = []
        for key, reply in fresh.items():
            if reply.missing is not None or reply.text is None:
                continue
            try:
                rows.append((key, _summed(encode_reply(reply))))
            except ValueError as error:
                told = f"a reply of {self.name} is not kept: {error}"
                warnings.warn(f"{told}; it reads {reply.text[:80]!r}", stacklevel=4)
        with self._writing, self._connection:
            self._connection.executemany("INSERT OR IGNORE INTO replies VALUES (?, ?)", rows)

    def _miss(self, request: Request, n_known: int, n_missing: int) -> str:
        missing = f"{n_missing} request(s) not in the reply cache {self.path}"
        about = f"model {self.name}, revision {self.revision}; purpose {request.purpose!r}"
        settings = f"n={request.n}, temperature={request.temperature}"
        settings += f", max_tokens={request.max_tokens}, seed={request.seed}"
        prior = "absent" if request.prior_messages is None else "given"
        lines = [
            f"{missing}, and {self._why_offline}. The first:",
            f"{about}; {n_known} of {request.n} replies known",
            settings,
            f"want={sorted(request.want)}, prior_messages {prior}",
            *(f"{role}: {shortened(content)}" for role, content in request.messages),
        ]
        return "\n  ".join(lines)

    def calls_table(self) -> pd.DataFrame:
        """One row per request served since the last reset.

        ``n_tokens_in`` counts the prompt once, ``n_tokens_out`` all ``n`` replies, kept or new;
        ``seconds`` is the request's share, by tokens out, of its block's wall time (0 where nothing
        was asked); ``n_made`` replies were asked of the model now, ``n_cached`` were served without
        (of 15 with 10 known, 5 are asked for).
        """
        import pandas as pd

        kinds = {"seconds": "float64", "purpose": "str"}
        kinds = {c: kinds.get(c, "int64") for c in CALL_COLUMNS}
        return pd.DataFrame(self.calls, columns=list(CALL_COLUMNS)).astype(kinds)

    def reset_calls(self) -> None:
        """Forget the rows of ``calls``, and what ``served`` counted."""
        self.calls.clear()
        self.counts.clear()
        self.served.clear()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def export_cache(path: str | os.PathLike[str], target: str | os.PathLike[str]) -> int:
    """Write every reply of the cache to one JSON-lines file, sorted by key; the number of replies.

    It is compressed by gzip, or by xz, smaller and slower, where its name ends in ".xz". The same
    replies give the same bytes. FileNotFoundError if there is no cache at ``path``.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no reply cache at {path}")
    n_rows = 0
    with (
        closing(connect(path, SCHEMA)) as connection,
        whole(Path(target)) as beside,
        beside.open("wb") as raw,
        _compressed(raw, Path(target).suffix == ".xz") as file,
    ):
        for key, value, why in _checked_rows(connection):
            if why:
                warnings.warn(f"{path}: the damaged row {key} is not written: {why}", stacklevel=2)
            else:
                file.write(f'{{"key":"{key}","value":{value}}}\n'.encode())
                n_rows += 1
    return n_rows


def damaged_rows(path: str | os.PathLike[str], mend: bool = False) -> dict[str, str]:
    """Key -> what is wrong, of the rows of a cache that no run takes; ``mend`` drops them."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no reply cache at {path}")
    with closing(connect(path, SCHEMA)) as connection:
        found = {key: why for key, _, why in _checked_rows(connection) if why}
        if mend:
            _drop(connection, found)
    return found


def _drop(connection: Store, keys: Iterable[str]) -> None:
    with connection:
        connection.executemany("DELETE FROM replies WHERE key = ?", [(key,) for key in keys])


DAMAGE = (ValueError, TypeError, RecursionError)
"""What a row raises that is none."""


def _checked_rows(connection: Store) -> Iterator[tuple[str, str, str]]:
    """Key, value and, of a damaged row, what is wrong, sorted by key."""
    with connection.named():
        for key, value in connection.execute("SELECT key, value FROM replies ORDER BY key"):
            try:
                yield key, _checked_row({"key": key, "value": json.loads(_plain(value))}), ""
            except DAMAGE as error:
                yield key, "", str(error)


def _compressed(raw: BinaryIO, xz: bool) -> lzma.LZMAFile | gzip.GzipFile:
    """A file that compresses into ``raw``, with no name and no time in it."""
    if xz:
        return lzma.open(raw, "wb", preset=9)
    return gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=raw, mtime=0)


def import_cache(path: str | os.PathLike[str], source: str | os.PathLike[str]) -> dict[str, int]:
    """Add the replies of an exported file, or of another cache, to the cache at ``path``: counts of
    new, known and conflicting ones.

    A key already there with another reply is conflicting and stays as it was. ValueError names the
    line or key of the first bad row; nothing of the file is then added. FileNotFoundError: there is
    no such file.
    """
    counts = {"new": 0, "known": 0, "conflicting": 0}
    with Path(source).open("rb") as file:
        is_cache = file.read(len(SQLITE)) == SQLITE
    rows = _kept_rows if is_cache else _exported_rows
    with closing(connect(path, SCHEMA)) as connection, connection:
        connection.execute("BEGIN IMMEDIATE")
        for key, value in rows(Path(source)):
            row = connection.execute("SELECT value FROM replies WHERE key = ?", (key,)).fetchone()
            if row is None:
                connection.execute("INSERT INTO replies VALUES (?, ?)", (key, _summed(value)))
            same = row is not None and row[0].partition("\n")[0] == value
            counts["new" if row is None else "known" if same else "conflicting"] += 1
    return counts


SQLITE = b"SQLite format 3\0"
LONGEST_LINE = 64 << 20
"""Bytes of an exported reply at most; no more of a line is unpacked."""


def _checked(value: dict[str, object]) -> str:
    """An exported value as it is kept; ValueError or TypeError if it is none."""
    if not utf8(value):
        raise ValueError(f"it has half a character; it must be {WRITABLE}")
    if set(value) >= ABILITY_FIELDS:
        return encode_abilities(decode_abilities(value))
    if set(value) == COUNT_FIELDS:
        return to_json({"n_tokens": _decode_count(value)})
    return encode_reply(decode_reply(value))


def _kept_rows(source: Path) -> Iterator[tuple[str, str]]:
    with closing(_connect_to_read(source.resolve().as_uri())) as connection:
        try:
            for key, value, why in _checked_rows(connection):
                if why:
                    raise ValueError(f"row {key}: {why}")
                yield key, value
        except (sqlite3.DatabaseError, ValueError) as error:
            raise ValueError(f"{source} is no whole reply cache: {error}") from error


def _checked_row(fields: object) -> str:
    """The value of an exported row as it is kept; ValueError or TypeError if it is none."""
    if (
        not isinstance(fields, dict)
        or set(fields) != {"key", "value"}
        or not isinstance(fields["value"], dict)
    ):
        told = shortened(json.dumps(fields, ensure_ascii=False))
        raise ValueError(f'a line is {{"key": ..., "value": {{...}}}}, got {told}')
    if not _KEY.fullmatch(str(fields["key"])):
        raise ValueError(f"key must be 64 hex digits, got {fields['key']!r}")
    return _checked(fields["value"])


def _exported_rows(source: Path) -> Iterator[tuple[str, str]]:
    n_lines = 0
    try:
        opened = lzma.open if source.suffix == ".xz" else gzip.open
        with opened(source, "rb") as file:
            for raw in iter(lambda: file.readline(LONGEST_LINE + 1), b""):
                n_lines += 1
                if len(raw) > LONGEST_LINE:
                    most = f"{LONGEST_LINE:,} bytes"
                    raise ValueError(f"a line has at most {most}, this one has more")
                line = raw.decode("utf-8")
                fields = json.loads(line, parse_constant=refuse_constant)
                checked = _checked_row(fields)
                yield fields["key"], checked
    except (gzip.BadGzipFile, lzma.LZMAError, EOFError, zlib.error) as error:
        kind = "xz" if source.suffix == ".xz" else "gzip"
        where = f"{source} is not a whole {kind} file (after line {n_lines})"
        raise ValueError(f"{where}: {error}") from error
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"{source}, line {n_lines}: {error}") from error
