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
from itertools import chain
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    BinaryIO,
    Literal,
    NamedTuple,
    Self,
    TypeVar,
)

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

from trustlab.models.abilities import Abilities, too_long
from trustlab.models.base import Keep, Messages, Model, Request
from trustlab.models.ranges import MOST_NATS, ROUNDING, SENTINEL, are_alternatives
from trustlab.models.server.openai_wire import MOST_TOKENS
from trustlab.models.thought import apart
from trustlab.models.wrapper import TextOnly, Wrapper
from trustlab.parsing.counts import ReadReply, count, read_reply, totals
from trustlab.paths import PRIVATE, typed, whole
from trustlab.paths import offline as is_offline
from trustlab.processes import progress
from trustlab.records import Reply, TokenTrace
from trustlab.stops import Stopped
from trustlab.tables import problem, shortened

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
AnyPath = str | os.PathLike[str]

# How a value is stored: as JSON, numbers in full precision, no field more and none less

_as_array = AfterValidator(lambda values: np.array(values, dtype=np.float64))
LogProb = Annotated[float, Field(gt=SENTINEL, le=ROUNDING)]
LogProbs = Annotated[list[LogProb], _as_array]
Nats = Annotated[list[Annotated[float, Field(ge=-ROUNDING, le=MOST_NATS)]], _as_array]
Certainties = Annotated[
    list[Annotated[float, Field(ge=-ROUNDING, lt=-SENTINEL)]], _as_array
]
Distances = Annotated[list[Annotated[float, Field(ge=-ROUNDING, lt=1)]], _as_array]
Tokens = Annotated[int, Field(ge=0, le=MOST_TOKENS)]


class _Stored(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class _Trace(_Stored):
    tokens: tuple[str, ...]
    logprobs: LogProbs | None
    entropies: Nats | None
    renyi: Nats | None
    fisher_rao: Distances | None
    prior_logprobs: LogProbs | None
    alternatives: tuple[tuple[tuple[str, LogProb], ...], ...] | None
    bounds: dict[str, Literal["lower", "upper"]]
    lacks: dict[str, str] = {}
    certainty: Certainties | None = None

    @model_validator(mode="after")
    def _check_lengths(self) -> Self:
        for name in (*TokenTrace.ARRAYS, "alternatives"):
            values = getattr(self, name)
            if values is not None and len(values) != len(self.tokens):
                raise ValueError(
                    f"{name} are {len(values)} of {len(self.tokens)} tokens"
                )
        if not all(map(are_alternatives, self.alternatives or ())):
            raise ValueError(
                "alternatives of a token have probabilities that sum to over 1"
            )
        return self


class _Reply(_Stored):
    text: str
    raw: str | None
    finish: str
    trace: _Trace | None
    n_tokens_in: Tokens | None
    n_tokens_out: Tokens | None
    served_by: str = ""
    reasoning: str | None = None


class _Count(_Stored):
    n_tokens: Tokens


def _omitted_values(record: object) -> dict[str, Any]:
    """Fields that a record's JSON leaves out while they have these values."""
    if isinstance(record, TokenTrace):
        return {"lacks": {}, "certainty": None}
    if not isinstance(record, Abilities):
        return {"missing": None, "served_by": "", "reasoning": None}
    omitted = dict(vars(Abilities(frozenset())))
    del omitted["provides"]
    del omitted["lacks"]
    return omitted


def _fields(value: Any) -> Any:
    """A value in JSON's own types: arrays and sets as lists, a record as its fields, without those
    that :func:`_omitted_values` names."""
    if isinstance(value, np.ndarray):
        return np.asarray(value, dtype=np.float64).tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, Mapping):
        return dict(value)
    omitted = _omitted_values(value)
    fields: dict[str, Any] = {}
    for name, content in vars(value).items():
        is_array = isinstance(content, np.ndarray)
        if is_array or name not in omitted or content != omitted[name]:
            fields[name] = content
    return fields


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
    stored = _validated(_Reply.model_validate_json, value)
    fields = dict(vars(stored))
    if stored.trace is not None:
        fields["trace"] = TokenTrace(**vars(stored.trace))
    return Reply(**fields)


def decode_abilities(value: str) -> Abilities:
    """What a model can do, from its JSON; ``ValueError`` if it is anything else."""
    return _validated(TypeAdapter(Abilities).validate_json, value)


def _decode_count(value: str) -> int:
    return _validated(_Count.model_validate_json, value).n_tokens


def _validated(validate: Callable[[str], T], value: str) -> T:
    """What a stored value says; ``ValueError`` in one line if it has another form."""
    try:
        return validate(value)
    except ValidationError as error:
        raise ValueError(problem(error)) from None


# Keys, and the file

Recorder = Callable[
    [str, Request, Sequence[Reply], Sequence[ReadReply], Mapping[str, int | float]],
    None,
]
"""Gets (model, request, its replies, {n_cached, n_made, seconds}) of each request served."""
CALL_COLUMNS = (
    "purpose",
    "n",
    "n_tokens_in",
    "n_tokens_out",
    "seconds",
    "n_made",
    "n_cached",
)
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
    content = _key_content(request, name, revision)
    # The index ends the list, so that fifteen samples hash a long prompt once.
    beginning = to_json(content)[:-1] + ","
    head = hashlib.sha256(beginning.encode())
    if request.temperature == 0:
        return [_key_of_reply(head, 0)] * request.n
    indices = range(request.first, request.first + request.n)
    return [_key_of_reply(head, i) for i in indices]


def _key_content(request: Request, name: str, revision: str) -> list[Any]:
    """All that decides a request's replies, but a reply's index."""
    prior_messages = request.prior_messages if "prior" in request.want else None
    content: list[Any] = [
        name,
        revision,
        request.messages,
        float(request.temperature),
        int(request.max_tokens),
        int(request.seed),
        sorted(request.want),
        prior_messages,
    ]
    if "distributions" in request.want:
        content += [float(request.renyi_alpha), int(request.n_alternatives)]
    if request.schema is not None:
        content += ["schema", request.schema]
    if request.continuation is not None:
        content += ["continuation", request.continuation]
    return content


def _key_of_reply(head: Any, index: int) -> str:
    """The hash of a JSON list of which ``head`` has hashed all but its last item, ``index``."""
    digest = head.copy()
    digest.update(f"{index}]".encode())
    return digest.hexdigest()


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
                words = f"{self.path}: {error}"
                if isinstance(error, sqlite3.OperationalError):
                    words += f" ({ELSEWHERE})"
                error.args = (words,)
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


def _open_store(
    path: object,
    target: str,
    statements: Iterable[str],
    is_uri: bool = False,
) -> Store:
    """Open an SQLite file and execute the statements; ``ValueError`` if it is something else."""
    connection = sqlite3.connect(
        target,
        check_same_thread=False,
        factory=Store,
        timeout=BUSY_TIMEOUT_S,
        uri=is_uri,
    )
    connection.path = path
    connection.process = os.getpid()
    # damage is text
    connection.text_factory = lambda raw: raw.decode(errors="surrogateescape")
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


def connect(path: AnyPath | None, schema: str) -> Store:
    """Open or make an SQLite file in WAL mode with the table of ``schema``; None or ":memory:"
    stays in memory. A commit survives the death of the process; other processes may read and write
    meanwhile. A file that may not be written is only read (:func:`is_read_only`). ValueError if it
    is something else."""
    target = ":memory:" if path is None else os.fspath(path)
    if target != ":memory:":
        if is_read_only(target):
            return _open_read_only(target)
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        if not Path(target).exists():
            # what SQLite puts beside it has the same rights
            Path(target).touch(PRIVATE)
    statements = "PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL", schema
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            return _open_store(path, target, statements)
        except sqlite3.OperationalError as error:
            # SQLite does not wait by itself when two processes turn a new file to WAL at once.
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _open_read_only(path: AnyPath) -> Store:
    address = Path(path).resolve().as_uri()
    statements = ["SELECT count(*) FROM sqlite_master"]
    # in a folder that takes no file beside it
    for mode in ("mode=ro", "mode=ro&immutable=1"):
        try:
            return _open_store(path, f"{address}?{mode}", statements, is_uri=True)
        except sqlite3.OperationalError:
            continue
    raise ValueError(f"{path} cannot be read")


def is_read_only(path: AnyPath | None) -> bool:
    """Whether an SQLite file is there and it, or its folder, may not be written."""
    if path is None:
        return False
    file = Path(path)
    if not file.is_file():
        return False
    is_writable = os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)
    return not is_writable


def select(
    connection: Store, table: str, column: str, keys: Iterable[str]
) -> Iterator[tuple[str, str | bytes]]:
    """(key, ``column``) of every key that ``table`` has, looked up :data:`CHUNK` at a time."""
    distinct_keys = list(dict.fromkeys(keys))
    for start in range(0, len(distinct_keys), CHUNK):
        chunk = distinct_keys[start : start + CHUNK]
        marks = ",".join("?" * len(chunk))
        query = f"SELECT key, {column} FROM {table} WHERE key IN ({marks})"
        with connection.named():
            yield from connection.execute(query, chunk)


def _with_checksum(key: str, value: str) -> str:
    """A value as it is stored: behind it a line with the checksum of its key and it."""
    checksum = zlib.crc32((key + value).encode())
    return f"{value}\n{checksum:08x}"


def _without_checksum(key: str, stored: object) -> str:
    """The JSON of a stored value; ValueError where its checksum is another's. Older rows have
    none."""
    value, line_end, checksum = str(stored).partition("\n")
    if line_end and stored != _with_checksum(key, value):
        raise ValueError(f"its checksum is not {checksum!r}")
    return value


def contains(longer: str, shorter: str) -> bool:
    """Whether one text is the other with three words or more put in at one place."""
    n_more_words = len(longer.split()) - len(shorter.split())
    if n_more_words <= 2:
        return False
    prefix = os.path.commonprefix([longer, shorter])
    return longer.endswith(shorter[len(prefix) :])


# The model


class _Part(NamedTuple):
    """What a model is asked for the request at ``index``: neighbouring replies, with their keys."""

    index: int
    request: Request
    keys: list[str]


class _Cost(NamedTuple):
    """What the model did for a request: replies that it generated, and their share of the time."""

    n_replies: int = 0
    seconds: float = 0.0


def _blocks(
    requests: Sequence[Request], indices: Sequence[int], size: int
) -> Iterator[list[int]]:
    """Request indices in blocks of ``size`` distinct message lists, as these first appear."""
    indices_by_messages: dict[Messages, list[int]] = {}
    for i in indices:
        indices_by_messages.setdefault(requests[i].messages, []).append(i)
    groups = list(indices_by_messages.values())
    for start in range(0, len(groups), size):
        yield list(chain(*groups[start : start + size]))


def _runs(numbers: Iterable[int]) -> list[range]:
    """Ascending numbers as ranges of neighbours."""
    runs: list[range] = []
    for number in numbers:
        if runs and runs[-1].stop == number:
            runs[-1] = range(runs[-1].start, number + 1)
        else:
            runs.append(range(number, number + 1))
    return runs


def _parts(
    requests: Sequence[Request],
    keys: Sequence[Sequence[str]],
    block: Sequence[int],
    cached: Collection[str],
) -> list[_Part]:
    """Each reply of the block that is not cached once, in that request which has the most
    replies."""
    parts: list[_Part] = []
    claimed: set[str] = set()
    for index in sorted(block, key=lambda i: -requests[i].n):
        request = requests[index]
        row = list(dict.fromkeys(keys[index]))
        lacking = [
            j for j, key in enumerate(row) if key not in cached and key not in claimed
        ]
        claimed.update(row)
        for run in _runs(lacking):
            first = request.first + run.start
            part = replace(request, n=len(run), first=first, about=None)
            parts.append(_Part(index, part, row[run.start : run.stop]))
    place = {index: k for k, index in enumerate(block)}
    return sorted(parts, key=lambda part: place[part.index])


def _costs(
    parts: Sequence[_Part], replies_by_part: Sequence[list[Reply]], seconds: float
) -> dict[int, _Cost]:
    """Request index -> its cost; the ``seconds`` of all parts are shared by their tokens out."""
    tokens_by_part = [
        sum(reply.n_tokens_out or 0 for reply in row) for row in replies_by_part
    ]
    n_tokens = sum(tokens_by_part)
    costs: dict[int, _Cost] = {}
    for part, n_part_tokens in zip(parts, tokens_by_part, strict=True):
        share = n_part_tokens / n_tokens if n_tokens else 1 / len(parts)
        before = costs.get(part.index, _Cost())
        n_replies = before.n_replies + part.request.n
        costs[part.index] = _Cost(n_replies, before.seconds + seconds * share)
    return costs


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
        path: AnyPath | None,
        *,
        offline: bool | None = None,
        block: int = 128,
    ) -> None:
        read_only = is_read_only(path)
        if offline is None:
            offline = is_offline(replies=True) or read_only
        if read_only and not offline:
            raise ValueError(
                f"{path} may not be written: replies that are asked for would be lost"
            )
        if block < 1:
            raise ValueError(f"block must be at least 1, got {block}")
        if offline and path not in (None, ":memory:") and not Path(path).is_file():
            what = "import one or run once online"
            raise FileNotFoundError(
                f"offline, but there is no reply cache at {path}; {what}"
            )
        super().__init__(model)
        self.path = path
        self.offline = offline
        self.block = block
        self._why_offline = "it may not be written" if read_only else "offline=True"
        self.shows_bars = False
        self.calls: list[dict[str, object]] = []
        self.counts: dict[str, dict[str, int]] = {}
        self.served: Counter[str] = Counter()
        self._last_prompt = ""
        self._last_n_tokens = 0
        self.recorder: Recorder | None = None
        self.trial: Callable[[CachedModel, Sequence[Request]], None] | None = None
        self._connection = _open_replies(path)
        self._writing = threading.Lock()

    @property
    def provides(self) -> frozenset[str]:
        """What the model provides."""
        return self._source.provides

    @property
    def streams(self) -> bool:
        """False: replies that stream are stored here, and not handed on."""
        return False

    @property
    def lacks(self) -> Mapping[str, str]:
        """Need -> why the model cannot meet it."""
        return self._source.lacks

    @property
    def _source(self) -> Abilities | Model:
        """The abilities that had to be found out, else the model itself: a view of the text alone
        is not asked."""
        if self.model.finds_out and not isinstance(self.model, TextOnly):
            return self.abilities
        return self.model

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
            self.settled = (
                self._settle() if self.model.finds_out else self.model.abilities
            )
        return self.settled

    def _settle(self) -> Abilities:
        def decode(value: str) -> Abilities:
            abilities = decode_abilities(value)
            self.model.recall(abilities)
            return abilities

        why = f"say what {self.name} provides"
        return self._recall_or_ask(
            self._fact_key("provides"), decode, lambda: self.model.abilities, why
        )

    def count_tokens(self, messages: Messages) -> int | None:
        """Tokens of a prompt; ``None`` where the model does not count. The file keeps the number if
        the model has to be asked."""
        if not self.abilities.counts:
            return None
        if not self.model.finds_out:
            return self.model.count_tokens(messages)
        ask = partial(self.model.count_tokens, messages)
        why = f"say how long a prompt is for {self.name}"
        return self._recall_or_ask(
            self._fact_key("n_tokens", messages), _decode_count, ask, why
        )

    def _recall_or_ask(
        self, key: str, decode: Callable[[str], T], ask: Callable[[], T], why: str
    ) -> T:
        """What the model says of itself: from the file, or from it, and then read as a replay will.
        Offline only a model in a folder here is asked; ``LookupError``: another would have to
        be."""
        facts = self._read_rows([key], decode)
        if key in facts:
            return facts[key]
        if self.offline and not self.model.is_packaged:
            where = f"the cache {self.path} does not {why}"
            raise LookupError(f"offline, and {where}; run once online")
        fact = ask()
        if self.offline or fact is None:
            return fact
        content = {"n_tokens": fact} if isinstance(fact, int) else fact
        self._insert({key: to_json(content)})
        return self._read_rows([key], decode)[key]

    def _fact_key(self, what: str, *more: object) -> str:
        """The key of something that the model says of itself."""
        content = to_json([what, self.name, self.revision, *more])
        return hashlib.sha256(content.encode()).hexdigest()

    def _insert(self, values: Mapping[str, str]) -> None:
        """Add values by key; one that is there stays."""
        rows = [(key, _with_checksum(key, value)) for key, value in values.items()]
        with self._writing, self._connection:
            self._connection.executemany(INSERT, rows)

    def generate(
        self, requests: Sequence[Request], *, keep: Keep | None = None
    ) -> list[list[Reply]]:
        """Answer every request; the model is asked only for those with an unknown reply."""
        if self.trial is not None:
            self.trial(self, requests)
        purposes = ", ".join(dict.fromkeys(request.purpose for request in requests))
        n = totals({self.name: self.counts})
        n_unread = n["asked"] - n["read"]
        with progress(
            total=len(requests),
            unit="request",
            what=f"{self.name}: {purposes}",
            is_shown=self.shows_bars,
            note=f"unread {n_unread:,} of {n['asked']:,} replies",
        ) as bar:
            return self._answered(requests, bar.update)

    def _answered(
        self, requests: Sequence[Request], report: Callable[[int], object]
    ) -> list[list[Reply]]:
        """The replies; ``report`` gets the number of requests that are done since its last call."""
        if not self.model.structured:
            requests = [
                replace(request, schema=None) if request.schema else request
                for request in requests
            ]
        keys = [request_keys(request, self.name, self.revision) for request in requests]
        replies_by_key = self._look_up(chain(*keys))
        n_cached = [sum(key in replies_by_key for key in row) for row in keys]
        incomplete = [i for i, row in enumerate(keys) if n_cached[i] < len(row)]
        for i, reply in self._too_long_replies(requests, incomplete).items():
            for key in keys[i]:
                replies_by_key.setdefault(key, reply)
            incomplete.remove(i)
        if incomplete and self.offline:
            first = incomplete[0]
            raise self._cache_miss(requests[first], n_cached[first], len(incomplete))
        n_complete = len(requests) - len(incomplete)
        if n_complete:
            report(n_complete)
        costs: dict[int, _Cost] = {}
        streams = bool(incomplete) and self.model.streams
        blocks = [incomplete] if streams else _blocks(requests, incomplete, self.block)
        for block in blocks:
            parts = _parts(requests, keys, block, replies_by_key)
            costs |= self._ask(parts, replies_by_key, len(block), report, streams)
        rows: list[list[Reply]] = []
        for i, request in enumerate(requests):
            replies = [replies_by_key[key] for key in keys[i]]
            self._record_call(request, replies, costs.get(i, _Cost()))
            rows.append(replies)
        return rows

    def _ask(
        self,
        parts: Sequence[_Part],
        replies_by_key: dict[str, Reply],
        n_requests: int,
        report: Callable[[int], object],
        streams: bool,
    ) -> dict[int, _Cost]:
        """Ask the model for a block, commit, add to ``replies_by_key``; request index -> its cost.
        What streams is committed, and its requests reported, as it comes."""
        n_awaited = Counter[int]()  # replies by request index
        for part in parts:
            n_awaited[part.index] += part.request.n
        stored: set[str] = set()

        def keep(k: int, first: int, replies: list[Reply]) -> None:
            part = parts[k]
            fresh = dict(zip(part.keys[first:], replies, strict=False))
            stored.update(self._store(fresh))
            n_awaited[part.index] -= len(replies)
            if n_awaited[part.index] == 0:
                report(1)

        if streams:
            report(n_requests - len(n_awaited))  # their replies are others' too
        part_requests = [part.request for part in parts]
        start = time.perf_counter()
        try:
            rows = super().generate(part_requests, keep=keep if streams else None)
        except Stopped as stopped:
            if stopped.replies:
                self._store_parts(parts, stopped.replies, stored)
            raise
        elapsed = time.perf_counter() - start
        n_returned = [len(row) for row in rows]
        n_requested = [request.n for request in part_requests]
        if n_returned != n_requested:
            raise ValueError(
                f"{self.name} returned {n_returned} replies for n={n_requested}"
            )
        fresh = self._store_parts(parts, rows, stored)
        # another process may have been the first
        replies_by_key |= fresh | self._look_up(fresh)
        if not streams:
            report(n_requests)
        return _costs(parts, rows, elapsed)

    def _store_parts(
        self,
        parts: Sequence[_Part],
        replies_by_part: Sequence[list[Reply]],
        stored: Collection[str],
    ) -> dict[str, Reply]:
        """Store what is complete and not yet ``stored``, and the lengths of prompts that are too
        long; all replies by key."""
        fresh: dict[str, Reply] = {}
        for part, replies in zip(parts, replies_by_part, strict=True):
            fresh |= dict(zip(part.keys, replies, strict=False))
        self._store({key: reply for key, reply in fresh.items() if key not in stored})
        for part, replies in zip(parts, replies_by_part, strict=True):
            if not replies or not replies[0].missing:
                continue
            n_tokens = replies[0].n_tokens_in
            if n_tokens and replies[0] == too_long(self.name, self.window, n_tokens):
                key = self._fact_key("n_tokens", part.request.messages)
                self._recall_or_ask(key, _decode_count, partial(int, n_tokens), "")
        return fresh

    def _store(self, fresh: Mapping[str, Reply]) -> set[str]:
        """Store the complete replies; their keys."""
        complete = {key: reply for key, reply in fresh.items() if reply.missing is None}
        values: dict[str, str] = {}
        for key, reply in complete.items():
            try:
                values[key] = encode_reply(reply)
            except ValueError as error:
                why = f"a reply of {self.name} is not kept: {error}"
                warnings.warn(f"{why}; it reads {str(reply.text)[:80]!r}", stacklevel=4)
        self._insert(values)
        return set(complete)

    def _record_call(self, request: Request, replies: list[Reply], cost: _Cost) -> None:
        """Count a request that was served, and hand it to the recorder."""
        self.served.update(reply.served_by for reply in replies if reply.served_by)
        answered = [
            reply for reply in replies if reply.missing is None or reply.n_tokens_in
        ]
        counts_in: Any = [reply.n_tokens_in for reply in answered]
        counts_out: Any = [reply.n_tokens_out for reply in answered]
        # of the prompt; 0: of an older version
        n_in = max(counts_in, default=0) if all(counts_in) else None
        n_out = None if None in counts_out else sum(counts_out)
        if n_in and self.model.finds_out:
            self._count_cut_prompt(request, n_in)
        n_cached = request.n - cost.n_replies
        if cost.n_replies and request.temperature == 0:
            n_cached = 0
        readings = [read_reply(reply, request.about) for reply in replies]
        examples = {words for role, words in request.messages if role == "assistant"}
        n_examples = sum((reply.text or "").strip() in examples for reply in replies)
        count(self.counts, request.purpose, readings, n_examples)
        if self.recorder is not None:
            counts = {
                "n_cached": n_cached,
                "n_made": cost.n_replies,
                "seconds": cost.seconds,
            }
            self.recorder(self.name, request, replies, readings, counts)
        call = {
            "purpose": request.purpose,
            "n": request.n,
            "n_tokens_in": n_in,
            "n_tokens_out": n_out,
            "seconds": cost.seconds,
            "n_made": cost.n_replies,
            "n_cached": n_cached,
        }
        self.calls.append(call)

    def _count_cut_prompt(self, request: Request, n_tokens: int) -> None:
        """Count a prompt that a server says to have as many tokens as the one before it, of which
        one contains the other: it cuts prompts, or miscounts them."""
        prompt = "\n".join(content for _, content in request.messages)
        if n_tokens == self._last_n_tokens:
            shorter, longer = sorted([self._last_prompt, prompt], key=len)
            self.n_cut_prompts += contains(longer, shorter)
        self._last_prompt = prompt
        self._last_n_tokens = n_tokens

    def _too_long_replies(
        self, requests: Sequence[Request], indices: Sequence[int]
    ) -> dict[int, Reply]:
        """Request index -> its reply, where a stored length is longer than the window."""
        key_by_index = {
            i: self._fact_key("n_tokens", requests[i].messages) for i in indices
        }
        lengths = self._read_rows(key_by_index.values(), _decode_count)
        window = self.window if lengths else math.inf
        replies: dict[int, Reply] = {}
        for i, key in key_by_index.items():
            n_tokens = lengths.get(key, 0)
            if n_tokens > window:
                replies[i] = too_long(self.name, window, n_tokens)
        return replies

    def _look_up(self, keys: Iterable[str]) -> dict[str, Reply]:
        """The stored replies by key; one that was stored with a thought in its text is parted."""
        replies_by_key = self._read_rows(keys, decode_reply)
        if self.model.thinking == "auto":
            for key, reply in replies_by_key.items():
                if reply.reasoning is None:
                    tokens = reply.trace.tokens if reply.trace else ()
                    replies_by_key[key] = apart(reply, pieces=tokens, named=tokens)
        return replies_by_key

    def _read_rows(
        self, keys: Iterable[str], decode: Callable[[str], T]
    ) -> dict[str, T]:
        """What the file has of these keys, without damaged rows: these are dropped, so that they
        are asked again."""
        values: dict[str, T] = {}
        damage: dict[str, str] = {}
        for key, stored in select(self._connection, "replies", "value", keys):
            try:
                values[key] = decode(_without_checksum(key, stored))
            except DAMAGE as error:
                damage[key] = str(error)
        if damage and not self.offline:
            with self._writing:
                _drop(self._connection, damage)
        fate = "is left out" if self.offline else "is dropped, and asked again"
        for key, why in damage.items():
            warnings.warn(
                f"{self.path}: the damaged row {key} {fate}: {why}", stacklevel=5
            )
        return values

    def _cache_miss(
        self, request: Request, n_cached: int, n_incomplete: int
    ) -> CacheMiss:
        """The error of a run without a model: how many requests lack replies, and the first."""
        missing = f"{n_incomplete} request(s) not in the reply cache {self.path}"
        about = (
            f"model {self.name}, revision {self.revision}; purpose {request.purpose!r}"
        )
        settings = f"n={request.n}, temperature={request.temperature}"
        settings += f", max_tokens={request.max_tokens}, seed={request.seed}"
        prior = "absent" if request.prior_messages is None else "given"
        lines = [
            f"{missing}, and {self._why_offline}. The first:",
            f"{about}; {n_cached} of {request.n} replies known",
            settings,
            f"want={sorted(request.want)}, prior_messages {prior}",
        ]
        for role, content in request.messages:
            lines.append(f"{role}: {shortened(content)}")
        return CacheMiss("\n  ".join(lines), request)

    def calls_table(self) -> pd.DataFrame:
        """One row for each request served since the last reset.
        ``n_tokens_in`` counts the prompt once, ``n_tokens_out`` all ``n`` replies, kept or new; NaN
        where the server does not count them.
        ``seconds`` is the request's share, by tokens out, of its block's wall time (0 where nothing
        was asked). ``n_made`` replies were asked of the model now, ``n_cached`` were served without
        it (of 15 with 10 known, 5 are asked for)."""
        import pandas as pd

        types: dict[str, str] = dict.fromkeys(CALL_COLUMNS, "int64")
        types |= {"seconds": "float64", "purpose": "str"}
        table = pd.DataFrame(self.calls, columns=list(CALL_COLUMNS))
        return typed(table, types)

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
# bytes of an exported reply at most; no more of a line is unpacked
LONGEST_LINE = 64 << 20
DAMAGE = (ValueError, TypeError, RecursionError)  # what reading a damaged row raises
_KEY = re.compile(r"[0-9a-f]{64}")
_KIND = re.compile(r'[{,]\s*"(n_tokens|provides)"\s*:')
_LINE = re.compile(
    r'\s*\{\s*"key"\s*:\s*"([^"]*)"\s*,\s*"value"\s*:\s*(\{.*\})\s*\}\s*'
)
"""An exported reply; what follows the value is no JSON of one."""
DAMAGED = "a damaged one, whose whole rows trustlab cache export saves"
PAGE = 4096  # bytes of a page of SQLite's
MOST_ON_PAGE = PAGE - 35  # bytes of a row that has no other page
# bytes on its own page of a row that has others
LEAST_ON_PAGE = (PAGE - 12) * 32 // 255 - 23
_CELL = re.compile(rb"\x81\x0d([\x80-\xff]{0,4}[\x00-\x7f])([0-9a-f]{64}\{)")
"""How SQLite begins a row here: the kinds of key and value, a key, and an object of JSON."""
_BROKEN = {sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


class _StoredRow(NamedTuple):
    """A row of a cache: its JSON in ``value``, or ``why`` it is damaged."""

    key: str
    value: str
    why: str = ""


def export_cache(path: AnyPath, target: AnyPath) -> int:
    """Write every whole reply of the cache to one JSON-lines file, sorted by key; the number of
    replies. It is compressed by gzip, or by xz, smaller and slower, where its name ends in ".xz".
    The same replies give the same bytes. What is damaged is left out with a warning.
    FileNotFoundError if there is no cache at ``path``."""
    n_rows = 0
    with packed(Path(target), 9) as file:
        for row in _every_row(path):
            if row.why:
                words = f"{row.key} is damaged, and not written: {row.why}"
                warnings.warn(f"{path}: {words}", stacklevel=2)
            else:
                file.write(f'{{"key":"{row.key}","value":{row.value}}}\n'.encode())
                n_rows += 1
    return n_rows


def damaged_rows(path: AnyPath) -> dict[str, str]:
    """Key -> what is wrong, of the rows of a cache that no run takes; a run asks for them again.
    Where SQLite finds the file itself damaged, the one key is "the file"."""
    return {row.key: row.why for row in _every_row(path) if row.why}


def _every_row(path: AnyPath) -> Iterator[_StoredRow]:
    """All rows of a cache, sorted by key, or those that are whole of a file that is damaged itself;
    ``ValueError`` if it has none."""
    why = _damage(path)
    if not why:
        query = "SELECT key, value FROM replies ORDER BY key"
        with closing(_open_existing(path)) as connection, connection.named():
            for key, stored in connection.execute(query):
                yield _checked_row(key, stored)
        return
    values = _whole_values(Path(path))
    if not values:
        raise ValueError(f"{path} holds no whole reply: {why}")
    hint = f"trustlab cache export saves its {len(values)} whole rows"
    yield _StoredRow("the file", "", f"{why} ({hint})")
    for key in sorted(values):
        yield _StoredRow(key, values[key])


def _damage(path: AnyPath) -> str:
    """What SQLite finds wrong with the file itself; '' where it is whole."""
    try:
        with closing(_open_existing(path)) as connection:
            return _integrity(connection)
    except (sqlite3.DatabaseError, ValueError) as error:
        is_sqlite = isinstance(error, sqlite3.Error)
        if is_sqlite and error.sqlite_errorcode & 0xFF not in _BROKEN:
            raise
        return str(error)


def _integrity(connection: Store) -> str:
    """What SQLite finds wrong first; '' where all is well."""
    (words,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    return "" if words == "ok" else words


def _open_existing(path: AnyPath) -> Store:
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no reply cache at {path}")
    return _open_replies(path)


def _open_replies(path: AnyPath | None) -> Store:
    """The reply cache at ``path``, made where it is absent. ``ValueError`` for a file with another
    table, or one whose own description is damaged: an empty table there would be asked all anew."""
    if path not in (None, ":memory:") and Path(path).is_file():
        with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as connection:
            _refuse_another(connection, path)
    return connect(path, SCHEMA)


def _refuse_another(connection: sqlite3.Connection, path: object) -> None:
    """``ValueError`` where a file that is not empty has no table ``replies``."""
    type_by_name = dict(
        connection.execute("SELECT lower(name), type FROM sqlite_master")
    )
    (n_pages,) = connection.execute("PRAGMA page_count").fetchone()
    is_empty = not type_by_name and n_pages <= 1
    if type_by_name.get("replies") != "table" and not is_empty:
        raise ValueError(
            f"{path} holds no table of replies: it is another's file, or {DAMAGED}"
        )


def _drop(connection: Store, keys: Iterable[str]) -> None:
    """Drop rows; ``ValueError`` where the file itself is damaged: a key may lead to another row."""
    why = _integrity(connection)
    if why:
        raise ValueError(f"{connection.path}: {why}: {DAMAGED}")
    with connection:
        connection.executemany(
            "DELETE FROM replies WHERE key = ?", [(key,) for key in keys]
        )


def _whole_values(path: Path) -> dict[str, str]:
    """Key -> value of the whole rows in a damaged file, and in what SQLite has beside it."""
    raw = b""
    for file in (path, path.with_name(f"{path.name}-wal")):
        if file.is_file():
            raw += file.read_bytes()
    values: dict[str, str] = {}
    for key, stored in _carved(raw):
        row = _checked_row(key, stored)
        if not row.why:
            values[key] = row.value
    return values


def _carved(raw: bytes) -> Iterator[tuple[str, str]]:
    """Key and stored value of each row in the bytes of a file, wherever it stands in them
    (sqlite.org/fileformat2.html)."""
    for cell in _CELL.finditer(raw):
        size_code = cell[1]
        n_header = 3 + len(size_code)
        n_bytes = 64 + (_varint(size_code) - 13) // 2  # of key and value
        n_on_page = _n_on_page(n_header + n_bytes) - n_header
        start = cell.start(2)
        row = _with_overflow(raw, start, start + n_on_page, n_bytes)
        text = row.decode(errors="surrogateescape")
        yield text[:64], text[64:]


def _with_overflow(raw: bytes, start: int, end: int, n_bytes: int) -> bytes:
    """At most ``n_bytes`` from ``start``: those before ``end``, and behind them what stands in a
    chain of other pages, whose first number is at ``end``."""
    n_pages = len(raw) // PAGE
    row = raw[start:end]
    pointer = raw[end : end + 4]
    page_number = int.from_bytes(pointer)
    while len(row) < n_bytes and 0 < page_number <= n_pages:
        page_start = (page_number - 1) * PAGE
        page = raw[page_start : page_start + PAGE]
        row += page[4:]
        page_number = int.from_bytes(page[:4])
    return row[:n_bytes]


def _varint(raw: bytes) -> int:
    """A number as SQLite writes it: seven bits in each byte, the highest first."""
    number = 0
    for byte in raw:
        number = number << 7 | byte & 0x7F
    return number


def _n_on_page(n_bytes: int) -> int:
    """How many bytes of a row stand on its own page."""
    if n_bytes <= MOST_ON_PAGE:
        return n_bytes
    n_fitting = LEAST_ON_PAGE + (n_bytes - LEAST_ON_PAGE) % (PAGE - 4)
    return n_fitting if n_fitting <= MOST_ON_PAGE else LEAST_ON_PAGE


def _checked_row(key: object, stored: object) -> _StoredRow:
    name = str(key)
    try:
        return _StoredRow(name, _canonical_json(name, _without_checksum(name, stored)))
    except DAMAGE as error:
        return _StoredRow(name, "", str(error))


def _canonical_json(key: str, value: str) -> str:
    """A value as this version writes it; ``ValueError`` or ``TypeError`` if it is none, or the key
    is none."""
    if not _KEY.fullmatch(key):
        raise ValueError(f"key must be 64 hex digits, got {key!r}")
    kind = _KIND.search(value)  # within a text its quotes would have backslashes
    if kind is None:
        return to_json(decode_reply(value))
    if kind[1] == "n_tokens":
        return to_json({"n_tokens": _decode_count(value)})
    return to_json(decode_abilities(value))


@contextmanager
def packed(path: Path, level: int = 4) -> Iterator[BinaryIO]:
    """A file to write to, :func:`~trustlab.paths.whole`, compressed without a time or a name in it:
    by gzip, or by xz, smaller and slower, where its name ends in ".xz"."""
    with (
        whole(path) as beside,
        beside.open("wb") as raw,
        _compressor(raw, path, level) as file,
    ):
        yield file


def _compressor(raw: BinaryIO, path: Path, level: int) -> Any:
    if path.suffix == ".xz":
        return lzma.open(raw, "wb", preset=9)
    return gzip.GzipFile(
        filename="", mode="wb", compresslevel=level, fileobj=raw, mtime=0
    )


def json_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """(number from 1, line) of a file that :func:`packed` wrote; ``ValueError`` where it is
    damaged, or a line is too long."""
    kind = "xz" if path.suffix == ".xz" else "gzip"
    compression: Any = lzma if kind == "xz" else gzip
    n = 0
    try:
        with compression.open(path, "rb") as file:
            while line := file.readline(LONGEST_LINE + 1):
                n += 1
                if len(line) > LONGEST_LINE:
                    most = (
                        f"a line has at most {LONGEST_LINE:,} bytes, this one has more"
                    )
                    raise ValueError(f"{path}, line {n}: {most}")
                yield n, line
    except (gzip.BadGzipFile, lzma.LZMAError, EOFError, zlib.error) as error:
        where = f"{path} is not a whole {kind} file (after line {n})"
        raise ValueError(f"{where}: {error}") from error


def import_cache(path: AnyPath, source: AnyPath) -> dict[str, int]:
    """Add the replies of an exported file, or of another cache, to the cache at ``path``: counts of
    new, known and conflicting ones. A key already there with another reply is conflicting and stays
    as it was. ValueError names the line or key of the first bad row; nothing of the file is then
    added. FileNotFoundError: there is no such file."""
    counts = {"new": 0, "known": 0, "conflicting": 0}
    with Path(source).open("rb") as file:
        is_cache = file.read(len(SQLITE)) == SQLITE
    rows = _cache_rows if is_cache else _exported_rows
    with closing(_open_replies(path)) as connection, connection:
        connection.execute("BEGIN IMMEDIATE")
        for key, value in rows(Path(source)):
            outcome = _import_row(connection, key, value)
            counts[outcome] += 1
    return counts


def _import_row(connection: Store, key: str, value: str) -> str:
    """Add a row: "new", or "known" or "conflicting" where the key has a row with this or another
    value. A damaged one is replaced."""
    stored = _with_checksum(key, value)
    if connection.execute(INSERT, (key, stored)).rowcount:
        return "new"
    (present,) = connection.execute(
        "SELECT value FROM replies WHERE key = ?", (key,)
    ).fetchone()
    try:
        is_same = _without_checksum(key, present) == value
    except ValueError:
        connection.execute("UPDATE replies SET value = ? WHERE key = ?", (stored, key))
        return "new"
    return "known" if is_same else "conflicting"


def _cache_rows(source: Path) -> Iterator[tuple[str, str]]:
    for row in _every_row(source):
        if row.why:
            raise ValueError(f"{source} is no whole reply cache: {row.key}: {row.why}")
        yield row.key, row.value


def _exported_rows(source: Path) -> Iterator[tuple[str, str]]:
    for n, line in json_lines(source):
        try:
            text = line.decode()
            match = _LINE.fullmatch(text)
            if match is None:
                form = 'a line is {"key": ..., "value": {...}}'
                raise ValueError(f"{form}, got {shortened(text.strip())}")
            key, value = match.groups()
            value = _canonical_json(key, value)
        except DAMAGE as error:
            raise ValueError(f"{source}, line {n}: {error}") from error
        yield key, value
