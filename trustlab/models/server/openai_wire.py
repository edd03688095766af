"""Writes the body of a call to a server, and sends it."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import importlib
import json
import math
import os
import re
import threading
import weakref
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

from trustlab.choices import KEY_LIKE, may_be_token
from trustlab.models.base import Messages, Request
from trustlab.models.local.templates import system_in_user
from trustlab.models.server.limiter import Limiter

T = TypeVar("T")

OPENAI = "https://api.openai.com/v1"
HIDDEN = "[key]"
ECHOED = "the server echoed the key"
SHORTEST_KEY = 8  # characters of a key that is searched for: a shorter one may be part of a word
MOST_BYTES = 64 * 2**20
"""Of an answer with replies; of any other a sixteenth."""
MOST_TOKENS = 10_000_000  # of one call, in or out; a server that counts more is not believed
PATHS = {"chat": "/chat/completions", "models": "/models", "tokenize": "/tokenize"}
CONNECT_S = 4.0  # a connection takes no longer, or the server is not there
UNFIT = 0  # in place of an HTTP status: the server did what is not allowed, and would do it again
MAX_WORDS = 200  # characters of a server's own words that a reason quotes


def shortened(text: str) -> str:
    """``text`` on one line, at most :data:`MAX_WORDS` characters."""
    line = " ".join(text.encode("utf-8", "replace").decode().split())
    return line if len(line) <= MAX_WORDS else line[: MAX_WORDS - 1] + "…"


@dataclass(frozen=True)
class Address:
    """Where a server is. ``url`` goes to the client; ``shown`` is host, port and path without what
    may be a token; ``here``: it is this machine."""

    url: str
    shown: str
    here: bool

    def __repr__(self) -> str:
        return f"Address({self.shown!r})"

    @classmethod
    def of(cls, base_url: str | None) -> Address:
        """The address given, else ``OPENAI_BASE_URL``, else OpenAI's; ``ValueError`` for no address
        and one with a login or a query."""
        form = "base_url must be http://HOST/PATH or https://HOST/PATH (most servers: .../v1)"
        try:
            parts = urlsplit((base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI).strip())
            host, _ = parts.hostname or "", parts.port
        except ValueError:  # its words repeat what may be a password
            raise ValueError(form) from None
        if parts.scheme not in ("http", "https") or not host:
            raise ValueError(form)
        if parts.query or parts.fragment or parts.username is not None:
            where = "must have host and path alone; a key belongs in OPENAI_API_KEY"
            raise ValueError(f"base_url for {host} {where}")
        at = parts.netloc
        path = parts.path.rstrip("/").removesuffix(PATHS["chat"])
        shown = "/".join(_segment(part) for part in path.split("/"))
        here = host in ("localhost", "::1", "0.0.0.0") or host.startswith("127.")
        return cls(f"{parts.scheme}://{at}{path}", f"{at}{shown}", here)


def _segment(part: str) -> str:
    """A part of a path as it is shown: what may be a token by a short hash."""
    digest = hashlib.sha256(part.encode()).hexdigest()[:6]
    return f"({digest})" if may_be_token(part) else part


def key_for(address: Address) -> str:
    """``OPENAI_API_KEY`` without blanks around it, "none" for a server of one's own, since the
    client insists on one; ``ValueError``, without the key, where OpenAI's is absent or it has
    characters that no key has."""
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    if not key and address.url == OPENAI:
        where = "for a server of your own give base_url"
        raise ValueError(f"the environment variable OPENAI_API_KEY is not set; {where}")
    if not re.fullmatch("[!-~]*", key):
        which = "blanks, line ends or other characters within"
        raise ValueError(f"OPENAI_API_KEY holds characters that no key has: {which}")
    return key or "none"


@dataclass(frozen=True)
class Outcome:
    """What one call brought: its JSON in ``answer``, else a ``reason``.
    ``status``: of HTTP (``None``: no answer came). ``param``: the part of the call that the error
    names. ``pause``: seconds that the server asks to wait. ``reached``: there was a connection. The
    reason is ``what``, the ``retries``, ``words``."""

    answer: Any = None
    what: str = ""
    words: str = ""
    status: int | None = None
    param: str = ""
    code: str = ""
    pause: float = 0.0
    retries: int = 0
    reached: bool = True

    @property
    def reason(self) -> str:
        """Why there is no answer."""
        n = self.retries
        after = f" after {n} {'retry' if n == 1 else 'retries'}" if n else ""
        return f"{self.what}{after}{self.words}"

    @property
    def refused(self) -> bool:
        """Whether the server takes no more calls for now; a batch file's is in no hurry."""
        is_served = self.what.startswith("HTTP") and "insufficient_quota" not in self.code
        return self.status in (429, 503) and is_served

    @property
    def passing(self) -> bool:
        """Whether the same call may well pass later."""
        if self.answer is not None or self.what == ECHOED:
            return False
        return self.status in (None, 200, 408, 409, 429) or (self.status or 0) >= 500

    @property
    def lost(self) -> bool:
        """Whether it says that the server is in no order, for now or at all."""
        return self.passing or (self.answer is None and self.status == UNFIT)


def field(value: Any, *names: str) -> Any:
    """What JSON holds under these names, one below the other; ``None``: it has another form."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def pause_of(headers: Mapping[str, str]) -> float:
    """The seconds that a server asks to wait, told as a number; 0 if none."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        with contextlib.suppress(TypeError, ValueError):
            seconds = unit * float(headers.get(name, ""))
            return seconds if 0 <= seconds < math.inf else 0.0
    return 0.0


@dataclass(frozen=True)
class Dialect:
    """How a call is written: what it names its budget of tokens, and the parts that it goes
    ``without``: "temperature", "seed", "n", "system" (its text goes to the user's) and
    "response_format"."""

    limit: str = "max_tokens"
    without: frozenset[str] = frozenset()


class Unfit(Exception):
    """A server that does what is not allowed; its words say what."""


class Line:
    """A client with its event loop, in a thread of its own; opened by the first call, again after
    :meth:`close`, and by the first in a forked process. ``limiter``: places for calls, to be taken
    inside the thread."""

    def __init__(self, address: Address, *, timeout_s: float, concurrency: int) -> None:
        self.address, self.timeout_s, self.concurrency = address, timeout_s, concurrency
        self._secret = ""
        self._process, self._opening = os.getpid(), threading.Lock()
        self.limiter, self._client = Limiter(concurrency), None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._finalizer: weakref.finalize | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run ``work`` in the thread and wait. An interruption cancels it. ``ValueError``: no key,
        and one is needed."""
        try:
            loop = self._opened()
        except BaseException:
            work.close()
            raise
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _opened(self) -> asyncio.AbstractEventLoop:
        if self._process != os.getpid():  # the thread stayed behind, in the process before the fork
            self._process, self._opening, self._loop = os.getpid(), threading.Lock(), None
        with self._opening:
            if self._loop is None:
                key = key_for(self.address)
                self._secret = key if len(key) >= SHORTEST_KEY else ""
                client = self._made(key)
                loop = asyncio.new_event_loop()
                thread = threading.Thread(target=loop.run_forever, name="trustlab", daemon=True)
                thread.start()
                self._loop, self._client, self.limiter = loop, client, Limiter(self.concurrency)
                self._finalizer = weakref.finalize(self, _shut, loop, client, thread)
            return self._loop

    def _made(self, key: str) -> Any:
        try:
            import openai
        except ImportError as error:
            raise ImportError("OpenAIModel needs the openai client: pip install openai") from error
        n, address, http = self.concurrency, self.address, _http()
        limits = http.Limits(max_connections=n, max_keepalive_connections=n, keepalive_expiry=60.0)
        timeout = http.Timeout(self.timeout_s, connect=CONNECT_S)
        headers = {"Accept-Encoding": "identity"}  # a packed answer has no known size
        return openai.AsyncOpenAI(
            api_key=key, base_url=address.url, timeout=timeout, max_retries=0,
            default_headers=headers, http_client=openai.DefaultAsyncHttpxClient(
                limits=limits, timeout=timeout, event_hooks={"response": [_bound]},
                follow_redirects=False,  # the patient's words go nowhere else
                trust_env=not address.here,  # a proxy does not reach this machine
            ),
        )  # fmt: skip

    def close(self) -> None:
        """Give the connections back and end the thread."""
        with self._opening:
            finalizer, self._loop, self._finalizer = self._finalizer, None, None
        if finalizer is not None:
            finalizer()

    def scrubbed(self, text: str) -> str:
        """``text`` without the key, or anything that looks like one."""
        text = text.replace(self._secret, HIDDEN) if self._secret else text
        shorter = r"\bsk-[\w*.-]{4,}|(?i:(?<=bearer ))\S+|(?<=://)[^\s/@]+(?=@)"
        return re.sub(f"{KEY_LIKE.pattern}|{shorter}", HIDDEN, text)

    def echoes(self, *texts: str | None) -> bool:
        """Whether one of the texts holds the key."""
        return bool(self._secret) and any(self._secret in text for text in texts if text)

    async def post(self, kind: str, body: Mapping[str, Any]) -> Outcome:
        """One call of a kind of :data:`PATHS`, in a place that the limiter gave, within
        ``timeout_s`` from beginning to end. Never raises for what a server does."""
        import openai

        client: Any = self._client
        http = _http()
        # ``/tokenize`` stands beside, not below, the path of the rest.
        path = self.address.url.removesuffix("/v1") if kind == "tokenize" else ""
        try:
            async with asyncio.timeout(self.timeout_s):
                if kind == "models":
                    answer = await client.get(PATHS[kind], cast_to=http.Response)
                else:
                    path += PATHS[kind]
                    answer = await client.post(path, cast_to=http.Response, body=body)
            return self._told(answer.content, pause_of(answer.headers))
        except (TimeoutError, openai.APITimeoutError) as error:
            if isinstance(error.__cause__, http.ConnectTimeout):
                return self._unreached(error.__cause__)
            return Outcome(what=f"no answer within {self.timeout_s:g} s")
        except UnicodeEncodeError:
            return Outcome(what="the prompt holds characters that no call can", status=400)
        except openai.APIStatusError as error:
            said = error.body or error.response.reason_phrase
            return self._refusal(error.status_code, said, pause_of(error.response.headers))
        except (openai.OpenAIError, OSError, Unfit, http.HTTPError) as error:
            cause = error.__cause__ if isinstance(error, openai.APIConnectionError) else error
            if isinstance(cause, Unfit):
                return Outcome(what=str(cause), status=UNFIT)
            return self._unreached(cause)
        except Exception as error:  # what a client does not foresee of a server
            what = f"the server's answer cannot be read ({type(error).__name__})"
            return Outcome(what=what, status=UNFIT)

    def _unreached(self, cause: BaseException | None) -> Outcome:
        what = f"the connection to {self.address.shown} failed"
        none = isinstance(cause, (_http().ConnectError, _http().ConnectTimeout))
        return Outcome(what=what, words=f" ({type(cause).__name__})", reached=not none)

    def _told(self, content: bytes, pause: float = 0.0) -> Outcome:
        """The JSON object in an answer's ``content``; an error inside, and an answer that holds the
        key, are none."""
        text = content.decode("utf-8", "replace")
        try:
            answer = json.loads(content)
            plain = json.dumps(answer, ensure_ascii=False)
            plain.encode()  # half a character is a ValueError, and so is a number of 5,000 digits
        except (ValueError, RecursionError):
            answer = plain = None
        if not isinstance(answer, dict):
            words = shortened(self.scrubbed(text))
            what = "the server's answer is not a JSON object"
            return Outcome(what=what, words=f": {words!r}", status=200)
        if self.echoes(text, plain):
            return Outcome(what=ECHOED, status=200)
        if error := answer.get("error"):
            return self._refusal(200, error, pause)
        return Outcome(answer, status=200)

    def _refusal(self, status: int | None, error: Any, pause: float = 0.0) -> Outcome:
        """What an error says: OpenAI's fields, else all of it."""
        said = field(error, "message") or error or "no reason is given"
        words = shortened(self.scrubbed(str(said)))
        codes = f"{field(error, 'code')} {field(error, 'type')}"
        what = "the batch brought no answer" if status is None else f"HTTP {status}"
        what = "an error inside HTTP 200" if status == 200 else what
        param = str(field(error, "param") or "")
        return Outcome(None, what, f": {words}", status, param, codes, pause)


def _http() -> Any:
    """The HTTP library that the installed client is made of (httpx, or its successor)."""
    import openai

    library = type(openai.DEFAULT_CONNECTION_LIMITS).__module__
    return importlib.import_module(library.partition(".")[0])


async def _bound(response: Any) -> None:
    """Have a client read no endless answer and no packed one, whose size nobody knows before it is
    unpacked."""
    replies = response.status_code < 400 and response.request.url.path.endswith("completions")
    packed = response.headers.get("content-encoding", "identity")
    if packed.strip().lower() not in ("", "identity"):
        raise Unfit(f"the server's answer is packed ({shortened(packed)}), and not read")
    response.stream = _bounded(response.stream, MOST_BYTES if replies else MOST_BYTES // 16)


def _bounded(stream: Any, most: int) -> Any:
    """A stream as long as it has no more than ``most`` bytes."""

    class Bounded(_http().AsyncByteStream):
        async def __aiter__(self):
            n_bytes = 0
            async for part in stream:
                n_bytes += len(part)
                if n_bytes > most:
                    raise Unfit(f"the server's answer has more than {most:,} bytes")
                yield part

        async def aclose(self) -> None:
            await stream.aclose()

    return Bounded()


def _shut(loop: asyncio.AbstractEventLoop, client: Any, thread: threading.Thread) -> None:
    """Close the client inside its loop, then the loop and its thread."""

    async def finish() -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        if client is not None:
            await client.close()

    if thread is threading.current_thread():  # the last reference went inside: no wait for itself
        loop.stop()
    elif thread.is_alive():
        with contextlib.suppress(Exception):
            asyncio.run_coroutine_threadsafe(finish(), loop).result(timeout=5)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=5)
    if not loop.is_running():
        loop.close()


def seed_of(request: Request, index: int) -> int:
    """The seed of reply ``index``, below 2^31: a hash of the request's seed and messages, plus the
    index, as servers that draw several replies in one call count them."""
    digest = hashlib.sha256(json.dumps([request.seed, request.messages]).encode()).digest()
    return (int.from_bytes(digest[:4], "little") + request.first + index) % 2**31


def chat_body(
    name: str, request: Request, start: int, n: int, n_top: int, dialect: Dialect
) -> dict[str, Any]:
    """The call for replies ``start`` to ``start + n - 1``; ``n_top`` alternatives where wanted."""
    body: dict[str, Any] = {
        "model": name, "messages": turns(request.messages, dialect),
        dialect.limit: request.max_tokens,
    }  # fmt: skip
    if "temperature" not in dialect.without:
        body["temperature"] = request.temperature
    if "seed" not in dialect.without:
        body["seed"] = seed_of(request, start)
    if n > 1:
        body["n"] = n
    if request.want:
        body["logprobs"] = True
        body["top_logprobs"] = n_top if "distributions" in request.want else 0
    if request.schema and "response_format" not in dialect.without:
        schema = json.loads(request.schema)
        if schema["type"] == "object":  # other forms are for local models
            named = {"name": "reply", "strict": True, "schema": schema}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
    return body


def prior_body(name: str, messages: Messages, reply: str, dialect: Dialect) -> dict[str, Any]:
    """The call that scores ``reply`` after ``messages`` in the server's own chat template."""
    said = {"role": "assistant", "content": reply}
    body = {
        "model": name, "messages": [*turns(messages, dialect), said],
        "add_generation_prompt": False, "continue_final_message": True, "prompt_logprobs": 0,
        dialect.limit: 1,
    }  # fmt: skip
    if "temperature" not in dialect.without:
        body["temperature"] = 0.0
    return body


def window_of(answer: Any, name: str) -> float:
    """The window of the model ``name`` in vLLM's list of models; infinite where none is told."""
    rows = field(answer, "data")
    for row in rows if isinstance(rows, list) else ():
        n_tokens = field(row, "max_model_len")
        if field(row, "id") == name and type(n_tokens) is int and 0 < n_tokens <= MOST_TOKENS:
            return n_tokens
    return math.inf


def count_in(answer: Any) -> int | None:
    """The number of tokens that a server counted; ``None``: it did not."""
    n_tokens = field(answer, "count")
    return n_tokens if type(n_tokens) is int and 0 < n_tokens <= MOST_TOKENS else None


def turns(messages: Messages, dialect: Dialect) -> list[dict[str, str]]:
    """The conversation as dictionaries."""
    if "system" in dialect.without:
        messages = system_in_user(messages)
    return [{"role": role, "content": content} for role, content in messages]
