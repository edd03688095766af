"""Writes the body of one call to a server, and makes the HTTP request."""

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
# characters of a key that is searched for: a shorter one may be part of a word
SHORTEST_KEY = 8
MOST_BYTES = 64 * 2**20
"""Of an answer with replies; of any other a sixteenth."""
# of one call, in or out; a server that counts more is not believed
MOST_TOKENS = 10_000_000
PATHS = {"chat": "/chat/completions", "models": "/models", "tokenize": "/tokenize"}
CONNECT_S = 4.0  # a connection takes no longer, or the server is not there
# in place of an HTTP status: the server did what is not allowed, and would do it again
UNFIT = 0
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
        address = base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI
        try:
            parts = urlsplit(address.strip())
            host = parts.hostname or ""
            _ = parts.port  # raises for what is no port
        except ValueError:  # its words repeat what may be a password
            raise ValueError(form) from None
        if parts.scheme not in ("http", "https") or not host:
            raise ValueError(form)
        if parts.query or parts.fragment or parts.username is not None:
            where = "must have host and path alone; a key belongs in OPENAI_API_KEY"
            raise ValueError(f"base_url for {host} {where}")
        path = parts.path.rstrip("/").removesuffix(PATHS["chat"])
        shown_path = "/".join(_segment(part) for part in path.split("/"))
        here = host in ("localhost", "::1", "0.0.0.0") or host.startswith("127.")
        url = f"{parts.scheme}://{parts.netloc}{path}"
        return cls(url, f"{parts.netloc}{shown_path}", here)


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
        after = f" after {self.retries} retries" if self.retries else ""
        if self.retries == 1:
            after = " after 1 retry"
        return f"{self.what}{after}{self.words}"

    @property
    def is_refusal(self) -> bool:
        """Whether the server takes no more calls for now; a batch file's is in no hurry."""
        is_served = (
            self.what.startswith("HTTP") and "insufficient_quota" not in self.code
        )
        return self.status in (429, 503) and is_served

    @property
    def may_pass_later(self) -> bool:
        """Whether the same call may well pass later."""
        if self.answer is not None or self.what == ECHOED:
            return False
        return self.status in (None, 200, 408, 409, 429) or (self.status or 0) >= 500

    @property
    def lost(self) -> bool:
        """Whether the call failed by the server's fault, for now or at all."""
        return self.may_pass_later or (self.answer is None and self.status == UNFIT)


def field(value: Any, *names: str) -> Any:
    """What JSON holds under these names, one below the other; ``None``: it has another form."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def pause_of(headers: Mapping[str, str]) -> float:
    """The seconds that a server asks to wait, written as a number; 0 if none."""
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
        self.address = address
        self.timeout_s = timeout_s
        self.concurrency = concurrency
        self.limiter = Limiter(concurrency)
        self._secret = ""
        self._process = os.getpid()
        self._opening = threading.Lock()
        self._client: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._finalizer: weakref.finalize | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run ``work`` in the thread and wait. An interruption cancels it. ``ValueError``: no key,
        and one is needed."""
        try:
            loop = self._running_loop()
        except BaseException:
            work.close()
            raise
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        """The event loop in the thread; both are begun where there is none."""
        # the thread stayed behind, in the process before the fork
        if self._process != os.getpid():
            self._process = os.getpid()
            self._opening = threading.Lock()
            self._loop = None
        with self._opening:
            if self._loop is None:
                key = key_for(self.address)
                self._secret = key if len(key) >= SHORTEST_KEY else ""
                client = self._open_client(key)
                loop = asyncio.new_event_loop()
                thread = threading.Thread(
                    target=loop.run_forever, name="trustlab", daemon=True
                )
                thread.start()
                self._loop = loop
                self._client = client
                self.limiter = Limiter(self.concurrency)
                self._finalizer = weakref.finalize(self, _shut, loop, client, thread)
            return self._loop

    def _open_client(self, key: str) -> Any:
        """The client, with its limits on size, time and connections."""
        try:
            import openai
        except ImportError as error:
            raise ImportError(
                "OpenAIModel needs the openai client: pip install openai"
            ) from error
        http = _http()
        timeout = http.Timeout(self.timeout_s, connect=CONNECT_S)
        limits = http.Limits(
            max_connections=self.concurrency,
            max_keepalive_connections=self.concurrency,
            keepalive_expiry=60.0,
        )
        http_client = openai.DefaultAsyncHttpxClient(
            limits=limits,
            timeout=timeout,
            event_hooks={"response": [_bound]},
            follow_redirects=False,  # the patient's words go nowhere else
            trust_env=not self.address.here,  # a proxy does not reach this machine
        )
        return openai.AsyncOpenAI(
            api_key=key,
            base_url=self.address.url,
            timeout=timeout,
            max_retries=0,
            # a packed answer has no known size
            default_headers={"Accept-Encoding": "identity"},
            http_client=http_client,
        )

    def close(self) -> None:
        """Give the connections back and end the thread."""
        with self._opening:
            finalizer = self._finalizer
            self._loop = None
            self._finalizer = None
        if finalizer is not None:
            finalizer()

    def scrubbed(self, text: str) -> str:
        """``text`` without the key, or anything that looks like one."""
        if self._secret:
            text = text.replace(self._secret, HIDDEN)
        shorter = r"\bsk-[\w*.-]{4,}|(?i:(?<=bearer ))\S+|(?<=://)[^\s/@]+(?=@)"
        return re.sub(f"{KEY_LIKE.pattern}|{shorter}", HIDDEN, text)

    def echoes(self, *texts: str | None) -> bool:
        """Whether one of the texts holds the key."""
        return bool(self._secret) and any(
            self._secret in text for text in texts if text
        )

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
            return self._outcome_of(answer.content, pause_of(answer.headers))
        except (TimeoutError, openai.APITimeoutError) as error:
            if isinstance(error.__cause__, http.ConnectTimeout):
                return self._unreached(error.__cause__)
            return Outcome(what=f"no answer within {self.timeout_s:g} s")
        except UnicodeEncodeError:
            return Outcome(
                what="the prompt holds characters that no call can", status=400
            )
        except openai.APIStatusError as error:
            response = error.response
            body_of_error = error.body or response.reason_phrase
            return self._refusal(
                error.status_code, body_of_error, pause_of(response.headers)
            )
        except (openai.OpenAIError, OSError, Unfit, http.HTTPError) as error:
            cause = (
                error.__cause__
                if isinstance(error, openai.APIConnectionError)
                else error
            )
            if isinstance(cause, Unfit):
                return Outcome(what=str(cause), status=UNFIT)
            return self._unreached(cause)
        except Exception as error:  # what a client does not foresee of a server
            what = f"the server's answer cannot be read ({type(error).__name__})"
            return Outcome(what=what, status=UNFIT)

    def _unreached(self, cause: BaseException | None) -> Outcome:
        """The outcome of a call whose connection failed."""
        http = _http()
        what = f"the connection to {self.address.shown} failed"
        words = f" ({type(cause).__name__})"
        is_refused = isinstance(cause, (http.ConnectError, http.ConnectTimeout))
        return Outcome(what=what, words=words, reached=not is_refused)

    def _outcome_of(self, content: bytes, pause: float = 0.0) -> Outcome:
        """The JSON object in an answer's ``content``; an error inside, and an answer that holds the
        key, are none."""
        text = content.decode("utf-8", "replace")
        try:
            answer = json.loads(content)
            plain = json.dumps(answer, ensure_ascii=False)
            # half a character is a ValueError, and so is a number of 5,000 digits
            plain.encode()
        except (ValueError, RecursionError):
            answer = None
            plain = None
        if not isinstance(answer, dict):
            what = "the server's answer is not a JSON object"
            words = shortened(self.scrubbed(text))
            return Outcome(what=what, words=f": {words!r}", status=200)
        if self.echoes(text, plain):
            return Outcome(what=ECHOED, status=200)
        error = answer.get("error")
        if error:
            return self._refusal(200, error, pause)
        return Outcome(answer, status=200)

    def _refusal(self, status: int | None, error: Any, pause: float = 0.0) -> Outcome:
        """The outcome of a refused call, in the words of its error."""
        message = field(error, "message") or error or "no reason is given"
        words = shortened(self.scrubbed(str(message)))
        what = f"HTTP {status}"
        if status is None:
            what = "the batch brought no answer"
        elif status == 200:
            what = "an error inside HTTP 200"
        return Outcome(
            what=what,
            words=f": {words}",
            status=status,
            param=str(field(error, "param") or ""),
            code=f"{field(error, 'code')} {field(error, 'type')}",
            pause=pause,
        )


def _http() -> Any:
    """The HTTP library that the installed client is made of (httpx, or its successor)."""
    import openai

    library = type(openai.DEFAULT_CONNECTION_LIMITS).__module__
    return importlib.import_module(library.partition(".")[0])


async def _bound(response: Any) -> None:
    """Have a client read no endless answer and no packed one, whose size nobody knows before it is
    unpacked."""
    encoding = response.headers.get("content-encoding", "identity")
    if encoding.strip().lower() not in ("", "identity"):
        raise Unfit(
            f"the server's answer is packed ({shortened(encoding)}), and not read"
        )
    path = response.request.url.path
    has_replies = response.status_code < 400 and path.endswith("completions")
    most = MOST_BYTES if has_replies else MOST_BYTES // 16
    response.stream = _bounded(response.stream, most)


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


def _shut(
    loop: asyncio.AbstractEventLoop, client: Any, thread: threading.Thread
) -> None:
    """Close the client inside its loop, then the loop and its thread."""

    async def finish() -> None:
        others = [
            task for task in asyncio.all_tasks() if task is not asyncio.current_task()
        ]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        if client is not None:
            await client.close()

    # the last reference went inside: no wait for itself
    if thread is threading.current_thread():
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
    content = json.dumps([request.seed, request.messages])
    digest = hashlib.sha256(content.encode()).digest()
    first_seed = int.from_bytes(digest[:4], "little")
    place = request.first + index
    return (first_seed + place) % 2**31


def chat_body(
    name: str, request: Request, start: int, n: int, n_top: int, dialect: Dialect
) -> dict[str, Any]:
    """The call for replies ``start`` to ``start + n - 1``; ``n_top`` alternatives where wanted."""
    body: dict[str, Any] = {
        "model": name,
        "messages": turns(request.messages, dialect),
        dialect.limit: request.max_tokens,
    }
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
            json_schema = {"name": "reply", "strict": True, "schema": schema}
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": json_schema,
            }
    return body


def prior_body(
    name: str, messages: Messages, reply: str, dialect: Dialect
) -> dict[str, Any]:
    """The call that scores ``reply`` after ``messages`` in the server's own chat template."""
    scored_turn = {"role": "assistant", "content": reply}
    body = {
        "model": name,
        "messages": [*turns(messages, dialect), scored_turn],
        "add_generation_prompt": False,
        "continue_final_message": True,
        "prompt_logprobs": 0,
        dialect.limit: 1,
    }
    if "temperature" not in dialect.without:
        body["temperature"] = 0.0
    return body


def window_of(answer: Any, name: str) -> float:
    """The window of the model ``name`` in vLLM's list of models; infinite where it has none."""
    rows = field(answer, "data")
    for row in rows if isinstance(rows, list) else ():
        n_tokens = _count(field(row, "max_model_len"))
        if field(row, "id") == name and n_tokens is not None:
            return n_tokens
    return math.inf


def _count(value: Any) -> int | None:
    """A number of tokens above 0 that can be believed; ``None``: it is none."""
    return value if type(value) is int and 0 < value <= MOST_TOKENS else None


def count_in(answer: Any) -> int | None:
    """The number of tokens that a server counted; ``None``: it did not."""
    return _count(field(answer, "count"))


def turns(messages: Messages, dialect: Dialect) -> list[dict[str, str]]:
    """The conversation as dictionaries."""
    if "system" in dialect.without:
        messages = system_in_user(messages)
    return [{"role": role, "content": content} for role, content in messages]
