"""Keeps each reply in a file, so that it is asked for once: a killed run goes on from there."""

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
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal, NamedTuple, Self, TypeVar

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from tqdm import tqdm

from trustlab.models.abilities import Abilities, too_long
from trustlab.models.base import Keep, Messages, Model, Request
from trustlab.models.ranges import MOST_NATS, ROUNDING, SENTINEL, are_alternatives
from trustlab.models.server.openai_wire import MOST_TOKENS
from trustlab.models.stops import Stopped
from trustlab.models.thought import apart
from trustlab.models.wrapper import TextOnly, Wrapper
from trustlab.parsing.counts import ReadReply, count, read_reply
from trustlab.paths import PRIVATE, typed, whole
from trustlab.paths import offline as told_offline
from trustlab.records import Reply, TokenTrace
from trustlab.tables import problem, shortened

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")

# How a value is kept: as JSON, numbers in full precision, no field more and none less

_as_array = AfterValidator(lambda values: np.array(values, dtype=np.float64))
LogProb = Annotated[float, Field(gt=SENTINEL, le=ROUNDING)]
LogProbs = Annotated[list[LogProb], _as_array]
Nats = Annotated[list[Annotated[float, Field(ge=-ROUNDING, le=MOST_NATS)]], _as_array]
Distances = Annotated[list[Annotated[float, Field(ge=-ROUNDING, lt=1)]], _as_array]
Tokens = Annotated[int, Field(ge=0, le=MOST_TOKENS)]


class _Kept(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class _Trace(_Kept):
    tokens: tuple[str, ...]
    logprobs: LogProbs | None
    entropies: Nats | None
    renyi: Nats | None
    fisher_rao: Distances | None
    prior_logprobs: LogProbs | None
    alternatives: tuple[tuple[tuple[str, LogProb], ...], ...] | None
    bounds: dict[str, Literal["lower", "upper"]]
    lacks: dict[str, str] = {}

    @model_validator(mode="after")
    def _one_a_token(self) -> Self:
        for name in (*TokenTrace.ARRAYS, "alternatives"):
            values = getattr(self, name)
            if values is not None and len(values) != len(self.tokens):
                raise ValueError(f"{name} are {len(values)} of {len(self.tokens)} tokens")
        if not all(map(are_alternatives, self.alternatives or ())):
            raise ValueError("alternatives of a token have probabilities that sum to over 1")
        return self


class _Reply(_Kept):
    text: str
    raw: str | None
    finish: str
    trace: _Trace | None
    n_tokens_in: Tokens | None
    n_tokens_out: Tokens | None
    served_by: str = ""
    reasoning: str | None = None


class _Count(_Kept):
    n_tokens: Tokens


def _fields(value: Any) -> Any:
    """What JSON does not know as what it does; of a record what is not taken for granted."""
    if isinstance(value, np.ndarray):
        return np.asarray(value, dtype=np.float64).tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, Mapping):
        return dict(value)
    usual: dict[str, Any] = {"missing": None, "served_by": "", "reasoning": None}
    if isinstance(value, Abilities):
        usual = {**vars(Abilities(frozenset()))}
        del usual["provides"], usual["lacks"]
    elif isinstance(value, TokenTrace):
        usual = {"lacks": {}}
    return {n: v for n, v in vars(value).items() if n not in usual or v != usual[n]}


to_json = json.JSONEncoder(
    allow_nan=False, sort_keys=True, separators=(",", ":"), default=_fields
).encode


def encode_reply(reply: Reply) -> str:
    """A complete reply as JSON; ``ValueError`` for what could not be read again."""
    value = to_json(reply)
    decode_reply(value)
    return value


def decode_reply(value: str) -> Reply:
    """The reply that :func:`encode_reply` wrote, arrays as float64 (L,); ``ValueError`` if it is
    anything else, or what no reply can hold (log-probabilities above 0, half a character)."""
    kept = _read(_Reply.model_validate_json, value)
    trace = None if kept.trace is None else TokenTrace(**vars(kept.trace))
    return Reply(**{**vars(kept), "trace": trace})


def decode_abilities(value: str) -> Abilities:
    """What a model can do, as it was kept in JSON; ``ValueError`` if it is anything else."""
    return _read(TypeAdapter(Abilities).validate_json, value)


def _decode_count(value: str) -> int:
    return _read(_Count.model_validate_json, value).n_tokens


def _read(validate: Callable[[str], T], value: str) -> T:
    try:
        return validate(value)
    except ValidationError as error:
        raise ValueError(problem(error)) from None


# Keys, and the file

Recorder = Callable[
    [str, Request, Sequence[Reply], Sequence[ReadReply], Mapping[str, int | float]], None
]
"""Gets (model, request, its replies, {n_cached, n_made, seconds}) of each request served."""
CALL_COLUMNS = ("purpose", "n", "n_tokens_in", "n_tokens_out", "seconds", "n_made", "n_cached")
BUSY_TIMEOUT_S = 60.0
CHUNK = 500
SCHEMA = "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, value TEXT)"
"""With row ids: without, replies of 1 kB take three times the room."""
INSERT = "INSERT OR IGNORE INTO replies VALUES (?, ?)"


FORKED = "opened before this process was forked; open the model in the forked process"
ELSEWHERE = (
    "a network file system may lack what SQLite needs, a disk may be full: with cache=FILE, or"
    " TRUSTLAB_RUNS=FOLDER, replies are kept on another, local disk"
)


class CacheMiss(LookupError):
    """Offline, a reply is not in the cache. ``request`` is the first one missing."""

    def __init__(self, message: str, request: Request) -> None:
        super().__init__(message)
        self.request = request


def request_keys(request: Request, name: str, revision: str) -> list[str]:
    """The key of each of the request's ``n`` replies, 64 hex digits: sha256 over JSON of all that
    decides a reply. ``purpose`` and ``n`` play no part, ``prior_messages`` only where ``prior`` is
    wanted, the order of the Rényi divergence and the number of alternatives only where
    ``distributions`` are, a schema and a continuation only where there is one; greedy replies share
    index 0."""
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
    """An SQLite file whose errors name it. It serves the process that opened it alone: SQLite's
    locks do not reach a forked one."""

    path: object = ":memory:"
    process: int

    @contextmanager
    def named(self) -> Iterator[None]:
        """An error within names the file, and says what to do where its folder is no good one."""
        if self.process != os.getpid() and self.path not in (None, ":memory:"):
            raise sqlite3.ProgrammingError(f"{self.path}: {FORKED}")
        try:
            yield
        except sqlite3.Error as error:
            if str(self.path) not in str(error):
                hint = f" ({ELSEWHERE})" if isinstance(error, sqlite3.OperationalError) else ""
                error.args = (f"{self.path}: {error}{hint}",)
            raise

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


def _opened(path: object, target: str, statements: Iterable[str], **how: Any) -> Store:
    connection = sqlite3.connect(target, check_same_thread=False, factory=Store, **how)
    connection.path, connection.process = path, os.getpid()
    connection.text_factory = lambda raw: raw.decode(errors="surrogateescape")  # damage is text
    try:
        for statement in statements:
            connection.execute(statement)
    except (sqlite3.Error, UnicodeDecodeError) as error:  # of damage that SQLite quotes
        connection.close()
        if isinstance(error, sqlite3.OperationalError):
            raise
        words = "it is not an SQLite file, or a damaged one"
        raise ValueError(f"{path}: {error}: {words}") from error
    return connection


def connect(path: str | os.PathLike[str] | None, schema: str) -> Store:
    """Open or make an SQLite file in WAL mode with the table of ``schema``; None or ":memory:"
    stays in memory. A commit survives the death of the process; other processes may read and write
    meanwhile. A file that may not be written is only read (:func:`is_read_only`). ValueError if it
    is something else."""
    target = ":memory:" if path is None else os.fspath(path)
    if target != ":memory:":
        if is_read_only(target):
            return _to_read(target)
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        if not Path(target).exists():
            Path(target).touch(PRIVATE)  # what SQLite puts beside it has the same rights
    statements = "PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL", schema
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            return _opened(path, target, statements, timeout=BUSY_TIMEOUT_S)
        except sqlite3.OperationalError as error:
            # SQLite does not wait by itself when two processes turn a new file to WAL at once.
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _to_read(path: str | os.PathLike[str]) -> Store:
    address = Path(path).resolve().as_uri()
    for how in ("mode=ro", "mode=ro&immutable=1"):  # in a folder that takes no file beside it
        try:
            look = ["SELECT count(*) FROM sqlite_master"]
            return _opened(path, f"{address}?{how}", look, uri=True)
        except sqlite3.OperationalError:
            continue
    raise ValueError(f"{path} cannot be read")


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


def _summed(key: str, value: str) -> str:
    """A value as it is kept, with the checksum of it and its key."""
    return f"{value}\n{zlib.crc32((key + value).encode()):08x}"


def _plain(key: str, kept: object) -> str:
    """The JSON of a kept value; ValueError where its checksum is another's. Older rows have
    none."""
    value, mark, total = str(kept).partition("\n")
    if mark and kept != _summed(key, value):
        raise ValueError(f"its checksum is not {total!r}")
    return value


def contains(longer: str, shorter: str) -> bool:
    """Whether one text is the other with three words or more put in at one place."""
    if len(longer.split()) <= len(shorter.split()) + 2:
        return False
    begin = os.path.commonprefix([longer, shorter])
    return longer.endswith(shorter[len(begin) :])


# The model


class _Part(NamedTuple):
    """Neighbouring replies of the request at ``at`` that are asked for, with their keys."""

    at: int
    request: Request
    keys: list[str]


def _blocks(requests: Sequence[Request], wanted: Sequence[int], size: int) -> Iterator[list[int]]:
    """Request indices in blocks of ``size`` distinct message lists, as these first appear."""
    groups: dict[Messages, list[int]] = {}
    for i in wanted:
        groups.setdefault(requests[i].messages, []).append(i)
    rest = iter(groups.values())
    while block := [i for group in islice(rest, size) for i in group]:
        yield block


def _parts(
    requests: Sequence[Request],
    keys: Sequence[Sequence[str]],
    block: Sequence[int],
    known: Collection[str],
) -> list[_Part]:
    """Each unknown reply of the block once, in that request which has the most replies."""
    parts: list[_Part] = []
    claimed: set[str] = set()
    for at in sorted(block, key=lambda i: -requests[i].n):
        request, row = requests[at], list(dict.fromkeys(keys[at]))
        lacking = [j for j, key in enumerate(row) if key not in known and key not in claimed]
        claimed.update(row)
        for _, run in groupby(enumerate(lacking), lambda pair: pair[1] - pair[0]):
            first, *more = (j for _, j in run)
            n = 1 + len(more)
            part = replace(request, n=n, first=request.first + first, about=None)
            parts.append(_Part(at, part, row[first : first + n]))
    place = {i: k for k, i in enumerate(block)}
    return sorted(parts, key=lambda part: place[part.at])


class CachedModel(Wrapper):
    """A model whose complete replies are kept in an SQLite file and never asked for again.

    - ``path`` None keeps them in memory.
    - ``block``: how many distinct message lists go to the model before the replies are committed. A
      model that streams gets all at once, and each reply is committed when it arrives.
    - ``offline`` (None: as TRUSTLAB_OFFLINE says, or where the file may not be written): a reply
      that is not in the file raises :class:`CacheMiss`.
    - ``calls`` lists the requests served; ``counts`` says what became of their replies, by purpose
      (:mod:`trustlab.parsing.counts`). ``served`` counts replies by the model that the server says
      it used, if it says so. ``recorder`` receives each request with its replies.
    - ``trial`` sees the requests first (:class:`trustlab.models.trial.Trial`). With ``shows_bars``
      a bar counts the requests of a call.
    - Several processes may share the file. A reply that one has asked for is not asked for again,
      but two that miss the same reply at the same time both ask.
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
        super().__init__(model)
        self.path = path
        self.offline = offline
        self.block = block
        self._why_offline = "it may not be written" if read_only else "offline=True"
        self.shows_bars = False
        self.calls: list[dict[str, object]] = []
        self.counts: dict[str, dict[str, int]] = {}
        self.served: Counter[str] = Counter()
        self._last = "", 0
        self.recorder: Recorder | None = None
        self.trial: Callable[[CachedModel, Sequence[Request]], None] | None = None
        self._connection = _replies(path)
        self._writing = threading.Lock()

    @property
    def provides(self) -> frozenset[str]:
        """What the model provides."""
        return self._source.provides

    @property
    def streams(self) -> bool:
        """False: what a cache keeps, it keeps itself."""
        return False

    @property
    def lacks(self) -> Mapping[str, str]:
        """Need -> why the model cannot meet it."""
        return self._source.lacks

    @property
    def _source(self) -> Abilities | Model:
        """Where it stands what the model provides: a view of the text alone need not be asked."""
        asks = self.model.finds_out and not isinstance(self.model, TextOnly)
        return self.abilities if asks else self.model

    @property
    def window(self) -> float:
        """Tokens that prompt and reply may have together; infinite where that is not known, also
        offline where the file does not contain it."""
        try:
            return self.abilities.window
        except LookupError:
            return math.inf

    @property
    def abilities(self) -> Abilities:
        """What the model can do. The file keeps it if the model had to find it out, so that a
        replay need not."""
        if self.settled is None:
            self.settled = self._settle() if self.model.finds_out else self.model.abilities
        return self.settled

    def _settle(self) -> Abilities:
        def decode(value: str) -> Abilities:
            abilities = decode_abilities(value)
            self.model.recall(abilities)
            return abilities

        why = f"say what {self.name} provides"
        return self._once(self._key("provides"), decode, lambda: self.model.abilities, why)

    def count_tokens(self, messages: Messages) -> int | None:
        """Tokens of a prompt; ``None`` where the model does not count. The file keeps the number if
        the model has to be asked."""
        if not self.abilities.counts:
            return None
        count = partial(self.model.count_tokens, messages)
        if not self.model.finds_out:
            return count()
        why = f"say how long a prompt is for {self.name}"
        return self._once(self._key("n_tokens", messages), _decode_count, count, why)

    def _once(self, key: str, decode: Callable[[str], T], ask: Callable[[], T], why: str) -> T:
        """What the model says of itself: kept, or asked, and then read as a replay will. Offline
        only a model in a folder here is asked; ``LookupError``: another would have to be."""
        if not (found := self._whole([key], decode)):
            if self.offline and not self.model.is_packaged:
                where = f"the cache {self.path} does not {why}"
                raise LookupError(f"offline, and {where}; run once online")
            told = ask()
            if self.offline or told is None:
                return told
            self._put({key: to_json({"n_tokens": told} if isinstance(told, int) else told)})
            found = self._whole([key], decode)
        return found[key]

    def _key(self, what: str, *more: object) -> str:
        return hashlib.sha256(to_json([what, self.name, self.revision, *more]).encode()).hexdigest()

    def _put(self, rows: Mapping[str, str]) -> None:
        with self._writing, self._connection:
            kept = ((key, _summed(key, value)) for key, value in rows.items())
            self._connection.executemany(INSERT, kept)

    def generate(
        self, requests: Sequence[Request], *, keep: Keep | None = None
    ) -> list[list[Reply]]:
        """Answer every request; the model is asked only for those with an unknown reply."""
        if self.trial is not None:
            self.trial(self, requests)
        purposes = ", ".join(dict.fromkeys(request.purpose for request in requests))
        with tqdm(
            total=len(requests),
            desc=f"{self.name}: {purposes}",
            unit="request",
            leave=False,
            disable=not self.shows_bars,
        ) as bar:
            return self._answered(requests, bar.update)

    def _answered(
        self, requests: Sequence[Request], report: Callable[[int], object]
    ) -> list[list[Reply]]:
        """The replies; ``report`` is told how many requests are done since it was last called."""
        if not self.model.structured:
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
        if done := len(requests) - len(missing):
            report(done)
        made: dict[int, tuple[int, float]] = {}
        streams = bool(missing) and self.model.streams
        blocks = [missing] if streams else _blocks(requests, missing, self.block)
        for block in blocks:
            parts = _parts(requests, keys, block, known)
            made |= self._ask(parts, known, len(block), report, streams)
        replies = [[known[key] for key in row] for row in keys]
        for i, (request, row) in enumerate(zip(requests, replies, strict=True)):
            self._count(request, row, *made.get(i, (0, 0.0)))
        return replies

    def _ask(
        self,
        parts: Sequence[_Part],
        known: dict[str, Reply],
        n_requests: int,
        report: Callable[[int], object],
        streams: bool,
    ) -> dict[int, tuple[int, float]]:
        """Ask the model for a block, commit, add to ``known``; request -> (replies asked for,
        seconds). What streams is committed, and its requests reported, as it comes."""
        left = Counter(at for at, part, _ in parts for _ in range(part.n))
        kept: set[str] = set()

        def keep(k: int, first: int, replies: list[Reply]) -> None:
            part = parts[k]
            kept.update(self._store(dict(zip(part.keys[first:], replies, strict=False))))
            left[part.at] -= len(replies)
            if left[part.at] == 0:
                report(1)

        if streams:
            report(n_requests - len(left))  # their replies are others' too
        start = time.perf_counter()
        try:
            asked = [part.request for part in parts]
            answers = super().generate(asked, keep=keep if streams else None)
        except Stopped as stopped:
            self._keep(parts, stopped.replies, kept)
            raise
        elapsed = time.perf_counter() - start
        if [len(row) for row in answers] != (n := [part.n for part in asked]):
            raise ValueError(f"{self.name} returned {[*map(len, answers)]} replies for n={n}")
        fresh = self._keep(parts, answers, kept)
        known |= fresh | self._look_up(fresh)  # another process may have been the first
        tokens = [sum(reply.n_tokens_out or 0 for reply in row) for row in answers]
        made: dict[int, tuple[int, float]] = {}
        for (at, part, _), n_tokens in zip(parts, tokens, strict=True):
            n_made, seconds = made.get(at, (0, 0.0))
            share = n_tokens / sum(tokens) if sum(tokens) else 1 / len(tokens)
            made[at] = (n_made + part.n, seconds + elapsed * share)
        if not streams:
            report(n_requests)
        return made

    def _keep(
        self, parts: Sequence[_Part], answers: Sequence[list[Reply]], kept: Collection[str]
    ) -> dict[str, Reply]:
        """Store what is complete among the answers and not kept yet; all of them by key."""
        fresh: dict[str, Reply] = {}
        for part, replies in zip(parts, answers, strict=True):
            fresh |= dict(zip(part.keys, replies, strict=False))
        self._store({key: reply for key, reply in fresh.items() if key not in kept})
        for part, replies in zip(parts, answers, strict=True):
            n = replies[0].n_tokens_in or 0 if replies and replies[0].missing else 0
            if n and replies[0] == too_long(self.name, self.window, n):
                self._once(
                    self._key("n_tokens", part.request.messages), _decode_count, partial(int, n), ""
                )
        return fresh

    def _store(self, fresh: Mapping[str, Reply]) -> set[str]:
        """Keep the complete ones; their keys."""
        rows: dict[str, str] = {}
        whole = {key: reply for key, reply in fresh.items() if reply.missing is None}
        for key, reply in whole.items():
            try:
                rows[key] = encode_reply(reply)
            except ValueError as error:
                told = f"a reply of {self.name} is not kept: {error}"
                warnings.warn(f"{told}; it reads {str(reply.text)[:80]!r}", stacklevel=4)
        self._put(rows)
        return {*whole}

    def _count(self, request: Request, replies: list[Reply], n_made: int, seconds: float) -> None:
        """Count a request that was served, and tell the recorder."""
        self.served.update(reply.served_by for reply in replies if reply.served_by)
        answered = [reply for reply in replies if reply.missing is None or reply.n_tokens_in]
        prompts = [reply.n_tokens_in or None for reply in answered]  # 0: of an older version
        n_in = None if None in prompts else max(filter(None, prompts), default=0)
        outs = [reply.n_tokens_out for reply in answered]
        n_out = None if None in outs else sum(filter(None, outs))
        if n_in and self.model.finds_out:
            self._compare(request, n_in)
        n_cached = 0 if n_made and request.temperature == 0 else request.n - n_made
        found = [read_reply(reply, request.about) for reply in replies]
        examples = {text for role, text in request.messages if role == "assistant"}
        n_examples = sum((reply.text or "").strip() in examples for reply in replies)
        count(self.counts, request.purpose, found, n_examples)
        if self.recorder is not None:
            counted = {"n_cached": n_cached, "n_made": n_made, "seconds": seconds}
            self.recorder(self.name, request, replies, found, counted)
        call = (request.purpose, request.n, n_in, n_out, seconds, n_made, n_cached)
        self.calls.append(dict(zip(CALL_COLUMNS, call, strict=True)))

    def _compare(self, request: Request, n_tokens: int) -> None:
        """Count a prompt that a server says to have as many tokens as the one before it, of which
        one contains the other: it cuts prompts, or miscounts them."""
        prompt = "\n".join(content for _, content in request.messages)
        before, n_before = self._last
        self._last = prompt, n_tokens
        if n_tokens == n_before:
            shorter, longer = sorted([before, prompt], key=len)
            self.n_cut_prompts += contains(longer, shorter)

    def _found_too_long(
        self, requests: Sequence[Request], unknown: Sequence[int]
    ) -> dict[int, Reply]:
        """Request -> its reply, of those whose prompt was found to be longer than the window."""
        keys = {i: self._key("n_tokens", requests[i].messages) for i in unknown}
        lengths = self._whole(keys.values(), _decode_count)
        window = self.window if lengths else math.inf
        found = {i: n for i, key in keys.items() if (n := lengths.get(key, 0)) > window}
        return {i: too_long(self.name, window, n) for i, n in found.items()}

    def _look_up(self, keys: Iterable[str]) -> dict[str, Reply]:
        """The kept replies; one that was kept with a thought in its text is parted now."""
        found = self._whole(keys, decode_reply)
        if self.model.thinking == "auto":
            for key, reply in found.items():
                if reply.reasoning is None:
                    tokens = reply.trace.tokens if reply.trace else ()
                    found[key] = apart(reply, pieces=tokens, named=tokens)
        return found

    def _whole(self, keys: Iterable[str], decode: Callable[[str], T]) -> dict[str, T]:
        """What is kept, without damaged rows: these are dropped, so that they are asked again."""
        found: dict[str, T] = {}
        damaged: dict[str, str] = {}
        for key, value in select(self._connection, "replies", "value", keys):
            try:
                found[key] = decode(_plain(key, value))
            except DAMAGE as error:
                damaged[key] = str(error)
        if damaged and not self.offline:
            with self._writing:
                _drop(self._connection, damaged)
        for key, why in damaged.items():
            left = "is left out" if self.offline else "is dropped, and asked again"
            warnings.warn(f"{self.path}: the damaged row {key} {left}: {why}", stacklevel=5)
        return found

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
        """One row for each request served since the last reset.
        ``n_tokens_in`` counts the prompt once, ``n_tokens_out`` all ``n`` replies, kept or new; NaN
        where the server does not count them.
        ``seconds`` is the request's share, by tokens out, of its block's wall time (0 where nothing
        was asked). ``n_made`` replies were asked of the model now, ``n_cached`` were served without
        it (of 15 with 10 known, 5 are asked for)."""
        import pandas as pd

        kinds = dict.fromkeys(CALL_COLUMNS, "int64") | {"seconds": "float64", "purpose": "str"}
        return typed(pd.DataFrame(self.calls, columns=list(CALL_COLUMNS)), kinds)

    def reset_calls(self) -> None:
        """Forget the rows of ``calls``, and what ``served`` counted."""
        self.calls.clear()
        self.n_cut_prompts = 0
        self.counts.clear()
        self.served.clear()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


# One file that travels, and what is damaged

SQLITE = b"SQLite format 3\0"
LONGEST_LINE = 64 << 20  # bytes of an exported reply at most; no more of a line is unpacked
DAMAGE = (ValueError, TypeError, RecursionError)  # what a row raises that is none
_KEY = re.compile(r"[0-9a-f]{64}")
_KIND = re.compile(r'[{,]\s*"(n_tokens|provides)"\s*:')
_LINE = re.compile(r'\s*\{\s*"key"\s*:\s*"([^"]*)"\s*,\s*"value"\s*:\s*(\{.*\})\s*\}\s*')
"""An exported reply; what follows the value is no JSON of one."""
DAMAGED = "a damaged one, whose whole rows trustlab cache export saves"
PAGE = 4096
_CELL = re.compile(rb"\x81\x0d([\x80-\xff]{0,4}[\x00-\x7f])([0-9a-f]{64}\{)")
"""How SQLite begins a row here: the kinds of key and value, a key, and an object of JSON."""
_BROKEN = {sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def export_cache(path: str | os.PathLike[str], target: str | os.PathLike[str]) -> int:
    """Write every whole reply of the cache to one JSON-lines file, sorted by key; the number of
    replies. It is compressed by gzip, or by xz, smaller and slower, where its name ends in ".xz".
    The same replies give the same bytes. What is damaged is left out with a warning.
    FileNotFoundError if there is no cache at ``path``."""
    n_rows = 0
    with packed(Path(target), 9) as file:
        for key, value, why in _every_row(path):
            if why:
                warnings.warn(f"{path}: {key} is damaged, and not written: {why}", stacklevel=2)
            else:
                file.write(f'{{"key":"{key}","value":{value}}}\n'.encode())
                n_rows += 1
    return n_rows


def damaged_rows(path: str | os.PathLike[str]) -> dict[str, str]:
    """Key -> what is wrong, of the rows of a cache that no run takes; a run asks for them again.
    Where SQLite finds the file itself damaged, the one key is "the file"."""
    return {key: why for key, _, why in _every_row(path) if why}


def _every_row(path: str | os.PathLike[str]) -> Iterator[tuple[str, str, str]]:
    """Key, value and, of what is damaged, what is wrong, sorted by key: all rows, or those that are
    whole of a file that is damaged itself; ``ValueError`` if it has none."""
    if why := _damage(path):
        rows = _whole_rows(Path(path))
        if not rows:
            raise ValueError(f"{path} holds no whole reply: {why}")
        yield "the file", "", f"{why} (trustlab cache export saves its {len(rows)} whole rows)"
        yield from ((key, rows[key], "") for key in sorted(rows))
    else:
        with closing(_there(path)) as connection:
            yield from _checked_rows(connection)


def _damage(path: str | os.PathLike[str]) -> str:
    """What SQLite finds wrong with the file itself; '' where it is whole."""
    try:
        with closing(_there(path)) as connection:
            return _integrity(connection)
    except (sqlite3.DatabaseError, ValueError) as error:
        if isinstance(error, sqlite3.Error) and error.sqlite_errorcode & 0xFF not in _BROKEN:
            raise
        return str(error)


def _integrity(connection: Store) -> str:
    (words,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    return "" if words == "ok" else words


def _there(path: str | os.PathLike[str]) -> Store:
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no reply cache at {path}")
    return _replies(path)


def _replies(path: str | os.PathLike[str] | None) -> Store:
    """The reply cache at ``path``, made where it is absent. ``ValueError`` for a file with another
    table, or one whose own description is damaged: an empty table there would be asked all anew."""
    if path not in (None, ":memory:") and Path(path).is_file():
        with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as look:
            _refuse_another(look, path)
    return connect(path, SCHEMA)


def _refuse_another(look: sqlite3.Connection, path: object) -> None:
    """``ValueError`` where a file that is not empty has no table ``replies``."""
    kinds = dict(look.execute("SELECT lower(name), type FROM sqlite_master"))
    (n_pages,) = look.execute("PRAGMA page_count").fetchone()
    if kinds.get("replies") != "table" and (kinds or n_pages > 1):
        raise ValueError(f"{path} holds no table of replies: it is another's file, or {DAMAGED}")


def _drop(connection: Store, keys: Iterable[str]) -> None:
    """Drop rows; ``ValueError`` where the file itself is damaged: a key may lead to another row."""
    if why := _integrity(connection):
        raise ValueError(f"{connection.path}: {why}: {DAMAGED}")
    with connection:
        connection.executemany("DELETE FROM replies WHERE key = ?", [(key,) for key in keys])


def _whole_rows(path: Path) -> dict[str, str]:
    """Key -> value of the whole rows in a damaged file, and in what SQLite has beside it."""
    beside = (path, path.with_name(f"{path.name}-wal"))
    raw = b"".join(file.read_bytes() for file in beside if file.is_file())
    rows = (_checked_row(key, kept) for key, kept in _carved(raw))
    return {key: value for key, value, why in rows if not why}


def _carved(raw: bytes) -> Iterator[tuple[str, str]]:
    """Key and kept value of each row in the bytes of a file, wherever it stands in them; what does
    not fit its page goes on in a chain of others (sqlite.org/fileformat2.html)."""
    most, least = PAGE - 35, (PAGE - 12) * 32 // 255 - 23
    for cell in _CELL.finditer(raw):
        kind = 0
        for byte in cell[1]:
            kind = kind << 7 | byte & 0x7F
        head, n = 3 + len(cell[1]), 64 + (kind - 13) // 2
        here = head + n
        if here > most:
            fits = least + (here - least) % (PAGE - 4)
            here = fits if fits <= most else least
        end = cell.start(2) + here - head
        row, page = raw[cell.start(2) : end], int.from_bytes(raw[end : end + 4])
        while len(row) < n and 0 < page <= len(raw) // PAGE:
            at = (page - 1) * PAGE
            row, page = row + raw[at + 4 : at + PAGE], int.from_bytes(raw[at : at + 4])
        text = row[:n].decode(errors="surrogateescape")
        yield text[:64], text[64:]


def _checked_rows(connection: Store) -> Iterator[tuple[str, str, str]]:
    """Key, value and, of a damaged row, what is wrong, sorted by key."""
    with connection.named():
        for row in connection.execute("SELECT key, value FROM replies ORDER BY key"):
            yield _checked_row(*row)


def _checked_row(key: object, kept: object) -> tuple[str, str, str]:
    try:
        return str(key), _checked(str(key), _plain(str(key), kept)), ""
    except DAMAGE as error:
        return str(key), "", str(error)


def _checked(key: str, value: str) -> str:
    """A value as it is kept; ``ValueError`` or ``TypeError`` if it is none, or the key is none."""
    if not _KEY.fullmatch(key):
        raise ValueError(f"key must be 64 hex digits, got {key!r}")
    kind = _KIND.search(value)  # within a text its quotes would have backslashes
    if kind and kind[1] == "n_tokens":
        return to_json({"n_tokens": _decode_count(value)})
    return to_json((decode_abilities if kind else decode_reply)(value))


@contextmanager
def packed(path: Path, level: int = 4) -> Iterator[BinaryIO]:
    """A file to write to, :func:`~trustlab.paths.whole`, compressed without a time or a name in it:
    by gzip, or by xz, smaller and slower, where its name ends in ".xz"."""
    with (
        whole(path) as beside,
        beside.open("wb") as raw,
        (
            lzma.open(raw, "wb", preset=9)
            if path.suffix == ".xz"
            else gzip.GzipFile(filename="", mode="wb", compresslevel=level, fileobj=raw, mtime=0)
        ) as file,
    ):
        yield file  # pyright: ignore[reportReturnType]


def json_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """(number from 1, line) of a file that :func:`packed` wrote; ``ValueError`` where it is
    damaged, or a line is too long."""
    n, kind = 0, "xz" if path.suffix == ".xz" else "gzip"
    try:
        with (lzma if kind == "xz" else gzip).open(path, "rb") as file:
            for line in iter(lambda: file.readline(LONGEST_LINE + 1), b""):
                n += 1
                if len(line) > LONGEST_LINE:
                    most = f"a line has at most {LONGEST_LINE:,} bytes, this one has more"
                    raise ValueError(f"{path}, line {n}: {most}")
                yield n, line
    except (gzip.BadGzipFile, lzma.LZMAError, EOFError, zlib.error) as error:
        where = f"{path} is not a whole {kind} file (after line {n})"
        raise ValueError(f"{where}: {error}") from error


def import_cache(path: str | os.PathLike[str], source: str | os.PathLike[str]) -> dict[str, int]:
    """Add the replies of an exported file, or of another cache, to the cache at ``path``: counts of
    new, known and conflicting ones. A key already there with another reply is conflicting and stays
    as it was. ValueError names the line or key of the first bad row; nothing of the file is then
    added. FileNotFoundError: there is no such file."""
    counts = {"new": 0, "known": 0, "conflicting": 0}
    with Path(source).open("rb") as file:
        is_cache = file.read(len(SQLITE)) == SQLITE
    rows = _kept_rows if is_cache else _exported_rows
    with closing(_replies(path)) as connection, connection:
        connection.execute("BEGIN IMMEDIATE")
        for key, value in rows(Path(source)):
            kept = _summed(key, value)
            what = "new"
            if not connection.execute(INSERT, (key, kept)).rowcount:
                row = connection.execute("SELECT value FROM replies WHERE key = ?", (key,))
                try:
                    what = "known" if _plain(key, *row.fetchone()) == value else "conflicting"
                except ValueError:  # damaged: this one takes its place
                    connection.execute("UPDATE replies SET value = ? WHERE key = ?", (kept, key))
            counts[what] += 1
    return counts


def _kept_rows(source: Path) -> Iterator[tuple[str, str]]:
    for key, value, why in _every_row(source):
        if why:
            raise ValueError(f"{source} is no whole reply cache: {key}: {why}")
        yield key, value


def _exported_rows(source: Path) -> Iterator[tuple[str, str]]:
    for n, line in json_lines(source):
        try:
            if (row := _LINE.fullmatch(text := line.decode())) is None:
                told = f'a line is {{"key": ..., "value": {{...}}}}, got {shortened(text.strip())}'
                raise ValueError(told)
            key, value = row[1], _checked(*row.groups())
        except DAMAGE as error:
            raise ValueError(f"{source}, line {n}: {error}") from error
        yield key, value
