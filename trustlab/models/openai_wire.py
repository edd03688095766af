"""What goes to and comes from an OpenAI-compatible server: client, requests, replies."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import importlib
import json
import math
import os
import re
import threading
import time
import weakref
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Annotated, Any, TypeVar
from urllib.parse import unquote, urlsplit

import numpy as np
from pydantic import BaseModel, Field, ValidationError, WrapValidator

from trustlab.models.base import Messages, Request
from trustlab.models.decoding import BOUNDS, ROUNDING, bounds
from trustlab.models.limiter import Limiter
from trustlab.models.thought import Thinking, apart
from trustlab.records import Reply, TokenTrace
from trustlab.settings import may_be_token

T = TypeVar("T")

OPENAI = "https://api.openai.com/v1"
NO_KEY = "none"
"""Sent where a server of one's own needs no key: the client insists on one."""
HIDDEN = "[key]"
SHORTEST_KEY = 8
"""Characters of the shortest key that is searched for: a shorter one may be part of a word."""
ECHOED = "the server echoed the key"
MOST_BYTES = 64 * 2**20
"""Of one answer."""
TOO_LONG = f"the server's answer has more than {MOST_BYTES:,} bytes"
UNFIT = 0
"""In place of an HTTP status: the server did what is not allowed, and would do it again."""

_KEY_LIKE = re.compile(r"\bsk-[\w*.-]{4,}|(?<=Bearer )\S+")
_NAMED_N = re.compile(
    r"['\"`]n['\"`]|\bn\s*(=|>|!=|must|is not|should)|only one completion", re.IGNORECASE
)
_SYSTEM_ROLE = re.compile(
    r"system.{0,20}role|role.{0,80}system|roles must alternate", re.IGNORECASE | re.DOTALL
)


@dataclass(frozen=True)
class Address:
    """Where a server is. ``url`` goes to the client; ``shown`` is host, port and path without what
    may be a token; ``login`` is kept out of both."""

    url: str
    shown: str
    login: str | None

    def __repr__(self) -> str:
        return f"Address({self.shown!r})"

    @classmethod
    def of(cls, base_url: str | None) -> Address:
        """The address given, else ``OPENAI_BASE_URL``, else OpenAI's. ``ValueError`` if it is none,
        or carries a query."""
        parts = urlsplit(base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(
                "base_url must be http://HOST/PATH or https://HOST/PATH (most servers: .../v1)"
            )
        if parts.query or parts.fragment:
            raise ValueError(
                f"base_url for {parts.hostname} must end with its path; a key belongs in"
                " OPENAI_API_KEY"
            )
        host = parts.netloc.rpartition("@")[2]
        login = None
        if parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        path = parts.path.rstrip("/")
        shown = "/".join(_segment(part) for part in path.split("/"))
        return cls(f"{parts.scheme}://{host}{path}", f"{host}{shown}", login)


def _segment(part: str) -> str:
    """A part of a path as it is shown: one that may be a token by a short hash of it."""
    if not may_be_token(part):
        return part
    return f"({hashlib.sha256(part.encode()).hexdigest()[:6]})"


@dataclass(frozen=True)
class Outcome:
    """What became of one call. ``answer`` is the JSON it brought; else ``reason`` says why there is
    none.

    ``status`` is the HTTP status (``None``: no answer came); ``named`` the parameter and words the
    server complained with; ``pause`` the seconds that it asks to wait. ``retries`` stands inside
    ``reason``, between ``what`` and ``words``.
    """

    answer: Any = None
    what: str = ""
    words: str = ""
    status: int | None = None
    named: str = ""
    code: str = ""
    pause: float = 0.0
    retries: int = 0

    @property
    def reason(self) -> str:
        """Why there is no answer."""
        return f"{self.what}{_after(self.retries)}{self.words}"

    @property
    def refused(self) -> bool:
        """Whether the server takes no more calls for now."""
        return self.status in (429, 503)

    @property
    def passing(self) -> bool:
        """Whether the same call may well pass later."""
        if self.answer is not None or self.what == ECHOED:
            return False
        known = self.status in (None, 200, 408, 409)
        return known or self.refused or (self.status or 0) >= 500


@dataclass(frozen=True)
class Dialect:
    """What a server has been found to accept. Learned from its own refusals, and kept."""

    limit: str = "max_tokens"
    takes_n: bool = True
    takes_seed: bool = True
    takes_top_p: bool = True
    takes_logprobs: bool = True
    fewest_top: int = 0
    most_top: int = 20
    system_role: str = "auto"

    def after(self, sent: Mapping[str, Any], outcome: Outcome) -> Dialect:
        """The dialect that avoids what was refused; the same one where the refusal names nothing
        that can be left out.

        A temperature is never left out: the reply would come from another distribution than the one
        asked for.
        """
        words = outcome.named
        if (
            outcome.status not in (400, 403, 422, 500, 501)
            or "context" in outcome.code
            or "context length" in words
        ):
            return self
        if outcome.status == 403:
            words = words if "logprobs" in words else ""
        if _names(words, "max_completion_tokens") and "max_tokens" in sent:
            return replace(self, limit="max_completion_tokens")
        if _names(words, "top_logprobs|logprobs") and "logprobs" in sent:
            n_top = sent["top_logprobs"]
            if n_top == 0 and self.fewest_top == 0:
                return replace(self, fewest_top=1)
            if n_top > 1 and outcome.status != 403:
                return replace(self, most_top=min(self.most_top, 5 if n_top > 5 else 1))
            return replace(self, takes_logprobs=False)
        if _names(words, "seed") and "seed" in sent:
            return replace(self, takes_seed=False)
        if _names(words, "top_p") and "top_p" in sent:
            return replace(self, takes_top_p=False)
        if "n" in sent and (words.startswith("n ") or _NAMED_N.search(words)):
            return replace(self, takes_n=False)
        if self.system_role == "auto" and _SYSTEM_ROLE.search(words):
            return replace(self, system_role="user")
        return self


def _names(words: str, names: str) -> bool:
    return re.search(rf"(?<!\w)({names})(?!\w)", words) is not None


class Line:
    """A client with its event loop, in a thread of its own; opened by the first call, and again
    after :meth:`close`."""

    def __init__(self, address: Address, *, timeout_s: float, concurrency: int) -> None:
        self.address, self.timeout_s, self.concurrency = address, timeout_s, concurrency
        self._secrets: tuple[str, ...] = ()
        self._opening = threading.Lock()
        self._open: tuple[asyncio.AbstractEventLoop, Any, Limiter] | None = None
        self._finalizer: weakref.finalize | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run ``work`` in the thread and wait. An interruption cancels it. ``ValueError``: no key,
        and one is needed."""
        try:
            loop = self._opened()[0]
        except BaseException:
            work.close()
            raise
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    @property
    def limiter(self) -> Limiter:
        """Places for calls, shared by all that use the line; to be taken inside the thread."""
        return self._now()[2]

    def _now(self) -> tuple[asyncio.AbstractEventLoop, Any, Limiter]:
        if self._open is None:
            raise RuntimeError("the model was closed while it was being asked")
        return self._open

    def _opened(self) -> tuple[asyncio.AbstractEventLoop, Any, Limiter]:
        with self._opening:
            if self._open is None:
                key = os.environ.get("OPENAI_API_KEY") or (
                    NO_KEY if self.address.url != OPENAI else None
                )
                if key is None:
                    raise ValueError(
                        "the environment variable OPENAI_API_KEY is not set; for a server of your"
                        " own give base_url"
                    )
                basic = (
                    self.address.login and base64.b64encode(self.address.login.encode()).decode()
                )
                password = (self.address.login or "").partition(":")[2]
                if not key.isascii():
                    raise ValueError("OPENAI_API_KEY holds characters that no key has")
                user = (self.address.login or "").partition(":")[0]
                known = (key, basic, password, user)
                self._secrets = tuple(s for s in known if s and len(s) >= SHORTEST_KEY)
                loop = asyncio.new_event_loop()
                client = self._client(key, {"Authorization": f"Basic {basic}"} if basic else None)
                thread = threading.Thread(
                    target=loop.run_forever, name="trustlab-openai", daemon=True
                )
                thread.start()
                self._open = loop, client, Limiter(self.concurrency)
                self._finalizer = weakref.finalize(self, _shut, loop, client, thread)
            return self._open

    def _client(self, key: str, headers: dict[str, str] | None) -> Any:
        try:
            import openai
        except ImportError as error:
            raise ImportError("OpenAIModel needs the openai client: pip install openai") from error
        limits = _http().Limits(
            max_connections=self.concurrency,
            max_keepalive_connections=self.concurrency,
            keepalive_expiry=60.0,
        )
        http = _guarded(openai.DefaultAsyncHttpxClient)(limits=limits, timeout=self.timeout_s)
        return openai.AsyncOpenAI(
            api_key=key,
            base_url=self.address.url,
            timeout=self.timeout_s,
            max_retries=0,
            default_headers=headers,
            http_client=http,
        )

    def close(self) -> None:
        """Give the connections back and end the thread."""
        with self._opening:
            finalizer, self._open, self._finalizer = self._finalizer, None, None
        if finalizer is not None:
            finalizer()

    def scrubbed(self, text: str) -> str:
        """``text`` without the key, or anything that looks like one."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return _KEY_LIKE.sub(HIDDEN, text)

    async def post(self, kind: str, body: Mapping[str, Any]) -> Outcome:
        """One call of ``/chat/completions`` (kind "chat") or ``/completions`` ("score"), in a place
        that the limiter gave, within ``timeout_s`` from its beginning to its end.

        Never raises for what a server does.
        """
        import openai

        client = self._now()[1]
        endpoint = client.chat.completions if kind == "chat" else client.completions
        # Everything goes as extra fields: the client passes these on as they are, and walks through
        # its own one by one.
        empty = {"model": body["model"]} | (
            {"messages": []} if "messages" in body else {"prompt": ""}
        )
        try:
            async with asyncio.timeout(self.timeout_s):
                streamed = endpoint.with_streaming_response.create(**empty, extra_body=body)
                async with streamed as response:
                    content = bytearray()
                    async for part in response.iter_bytes():  # unpacked, which may be much more
                        content += part
                        if len(content) > MOST_BYTES:
                            raise Unfit(TOO_LONG)
                    return self._told(bytes(content))
        except (TimeoutError, openai.APITimeoutError):
            return Outcome(what=f"no answer within {self.timeout_s:g} s")
        except UnicodeError:
            return Outcome(what="the prompt holds characters that no call can", status=UNFIT)
        except openai.APIStatusError as error:
            return self._refusal(error)
        except (openai.OpenAIError, OSError, Unfit, _http().HTTPError) as error:
            cause = error.__cause__ if isinstance(error, openai.APIConnectionError) else error
            if isinstance(cause, Unfit):
                return Outcome(what=str(cause), status=UNFIT)
            what = f"the connection to {self.address.shown} failed"
            return Outcome(what=what, words=f" ({type(cause).__name__})")

    def _told(self, content: bytes) -> Outcome:
        """The JSON of an answer's ``content``; one that holds the key is none."""
        text = content.decode("utf-8", "replace")
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):  # a number of 5,000 digits is a ValueError, too
            words = shortened(self.scrubbed(text))
            return Outcome(what="the server's answer is not JSON", words=f": {words!r}", status=200)
        plain = text + json.dumps(answer, ensure_ascii=False) if "\\" in text else text
        if any(secret in plain for secret in self._secrets):
            return Outcome(what=ECHOED, status=200)
        return Outcome(answer, status=200)

    def _refusal(self, error: Any) -> Outcome:
        said = error.body
        if isinstance(said, dict):
            said = said.get("message") or said.get("detail") or said
        words = self.scrubbed(str(said or error.response.reason_phrase))
        return Outcome(
            what=f"HTTP {error.status_code}",
            words=f": {shortened(words)}",
            status=error.status_code,
            named=f"{error.param} {words}" if error.param else words,
            code=str(error.code or ""),
            pause=pause_of(error.response.headers),
        )


def pause_of(headers: Mapping[str, str]) -> float:
    """The seconds that a server asks to wait: a number, in milliseconds, or a date; 0 if none."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        with contextlib.suppress(TypeError, ValueError):
            seconds = unit * float(headers.get(name, ""))
            return seconds if 0 <= seconds < math.inf else 0.0
    with contextlib.suppress(TypeError, ValueError):
        until = parsedate_to_datetime(headers.get("retry-after", ""))
        return max(0.0, until.timestamp() - time.time())
    return 0.0


class Unfit(Exception):
    """A server that does what is not allowed; its words say what."""


def _http() -> Any:
    """The HTTP library that the installed client is made of (httpx, or its successor)."""
    import openai

    library = type(openai.DEFAULT_CONNECTION_LIMITS).__module__
    return importlib.import_module(library.partition(".")[0])


def _guarded(client: type[Any]) -> type[Any]:
    """The client, but it follows no redirect to another host and reads no endless answer."""

    class Guarded(client):
        def __init__(self, **options: Any) -> None:
            super().__init__(event_hooks={"request": [self._same_host]}, **options)
            self._host: tuple[str, str] | None = None

        async def _same_host(self, request: Any) -> None:
            here = (request.url.scheme, request.url.netloc)
            self._host = self._host or here
            if here != self._host:
                raise Unfit("the server redirects to another address")

        async def send(self, request: Any, **options: Any) -> Any:
            response = await super().send(request, **options)
            # What an error says is short; packed, it may be a thousand times as long.
            most = MOST_BYTES if response.status_code < 400 else MOST_BYTES // 1024
            response.stream = _bounded(response.stream, most)
            return response

    return Guarded


def _bounded(stream: Any, most: int) -> Any:
    """The stream of an answer, as long as it has no more than ``most`` bytes."""

    class Bounded(_http().AsyncByteStream):
        async def __aiter__(self):
            n_bytes = 0
            async for part in stream:
                n_bytes += len(part)
                if n_bytes > most:
                    raise Unfit(TOO_LONG)
                yield part

        async def aclose(self) -> None:
            await stream.aclose()

    return Bounded()


def _after(n_retries: int) -> str:
    return f" after {n_retries} {'retry' if n_retries == 1 else 'retries'}" if n_retries else ""


def _shut(loop: asyncio.AbstractEventLoop, client: Any, thread: threading.Thread) -> None:
    """Close the client inside its loop, then the loop and its thread."""

    async def finish() -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await client.close()

    if (
        thread is threading.current_thread()
    ):  # the last reference went inside the loop: it cannot wait for itself
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
    index.

    Servers that draw several replies in one call give reply i the seed + i (vLLM does), so alone or
    together it is the same.
    """
    digest = hashlib.sha256(json.dumps([request.seed, request.messages]).encode()).digest()
    return (int.from_bytes(digest[:4], "little") + request.first + index) % 2**31


def chat_body(
    name: str, request: Request, start: int, n: int, n_top: int, dialect: Dialect
) -> dict[str, Any]:
    """The call for replies ``start`` to ``start + n - 1``, in the server's dialect; ``n_top``
    alternatives where wanted."""
    body: dict[str, Any] = {
        "model": name, "messages": turns(request.messages, dialect.system_role),
        dialect.limit: request.max_tokens, "temperature": request.temperature,
    }  # fmt: skip
    if request.temperature > 0 and dialect.takes_top_p:
        body["top_p"] = 1.0  # some servers cut the distribution unless told
    if dialect.takes_seed:
        body["seed"] = seed_of(request, start)
    if n > 1 and dialect.takes_n:
        body["n"] = n
    if request.want and dialect.takes_logprobs:
        wished = max(n_top, request.n_alternatives) if "distributions" in request.want else 0
        body |= {
            "logprobs": True,
            "top_logprobs": max(min(wished, dialect.most_top), dialect.fewest_top),
        }
    return body


def score_body(name: str, text: str) -> dict[str, Any]:
    """The call that scores ``text``. One token more is made: asked for none, some servers refuse
    and some never end."""
    return {
        "model": name,
        "prompt": text,
        "max_tokens": 1,
        "temperature": 0,
        "echo": True,
        "logprobs": 1,
    }


def turns(messages: Messages, system_role: str) -> list[dict[str, str]]:
    """The conversation as dictionaries; system messages get ``system_role``, "user" puts them
    before the next user message."""
    if system_role != "user":
        role_of = {"system": "system" if system_role == "auto" else system_role}
        return [{"role": role_of.get(role, role), "content": content} for role, content in messages]
    told: list[dict[str, str]] = []
    waiting: list[str] = []
    for role, content in messages:
        if role == "system":
            waiting.append(content)
        elif role == "user":
            told.append({"role": "user", "content": "\n\n".join([*waiting, content])})
            waiting = []
        else:
            told.append({"role": role, "content": content})
    return told + ([{"role": "user", "content": "\n\n".join(waiting)}] if waiting else [])


class Template:
    """A chat template: a Jinja text, or the name or folder of a tokenizer that has one.

    ``text`` is the Jinja text. ``FileNotFoundError``: no such tokenizer. ``ValueError``: it has no
    template, or a broken one.
    """

    def __init__(self, source: str) -> None:
        try:
            from transformers import AutoTokenizer
        except ImportError as error:
            raise ImportError(
                "chat_template needs transformers: pip install transformers"
            ) from error
        self._tokenizer: Any = None
        self.text = source
        if "{{" not in source and "{%" not in source:
            try:
                self._tokenizer = AutoTokenizer.from_pretrained(source)
            except (OSError, ValueError) as error:
                reason = (str(error).splitlines() or [""])[0]
                raise FileNotFoundError(
                    f"chat_template {source!r} is neither a Jinja template nor a tokenizer:"
                    f" {reason}"
                ) from error
            if not self._tokenizer.chat_template:
                raise ValueError(
                    f"the tokenizer {source!r} has no chat template; give the Jinja text itself"
                )
            self.text = self._tokenizer.get_chat_template()
        self.render((("user", "ok"),), "system")

    def render(self, messages: Messages, system_role: str) -> str:
        """The prompt as text, up to where the reply begins. ``ValueError`` if the template refuses
        the conversation.

        Without a leading begin-of-text token: a server puts its own before a text.
        """
        from jinja2 import TemplateError
        from transformers.utils.chat_template_utils import render_jinja_template

        conversation = turns(messages, system_role)
        try:
            if self._tokenizer is not None:
                text = self._tokenizer.apply_chat_template(
                    conversation, tokenize=False, add_generation_prompt=True
                )
                return text.removeprefix(self._tokenizer.bos_token or "")
            rendered = render_jinja_template(
                [conversation],
                chat_template=self.text,
                add_generation_prompt=True,
                bos_token="",
                eos_token="",
            )
        except TemplateError as error:
            raise ValueError(f"the chat template fails: {error}") from error
        return rendered[0][0]


SENTINEL = -9998.0
"""Servers write -9999 for a log-probability that they do not tell."""
MAX_WORDS = 200
"""Characters of a server's own words that a reason quotes."""

BROKEN_OFF = frozenset({"error", "abort", "aborted", "cancelled", "tool_calls", "function_call"})
"""How servers call an end that is none."""
CUT_SHORT = frozenset({"length", "max_tokens", "model_length"})
"""How servers call an end by the token budget or the window; "length" is OpenAI's word."""

NO_LOGPROBS = "the server tells no log-probabilities"
NO_LIST = "the server lists no alternative tokens"
NO_SIZE = "the server does not tell the size of its vocabulary; give vocabulary_size"
NO_TEMPLATE = "a server does not tell its chat template, which scoring needs; give chat_template"
OTHER_TOKENS = "the server scored other tokens than the reply's, or gave no log-probabilities"
NO_ECHO = "the server does not score a given text (completions with echo)"

_SPECIAL = re.compile(rb"\s*(<[^<>\s]*>|\[/?(INST|EOS|PAD|BOS)\])?\s*", re.DOTALL)
_ESCAPED = re.compile(r"bytes:((?:\\x[0-9a-fA-F]{2})+)")


def _or_none(value: Any, validate: Any) -> Any:
    try:
        return validate(value)
    except ValidationError:
        return None


class Top(BaseModel):
    """One listed token of a position."""

    token: str
    logprob: float


class Said(BaseModel):
    """One token of a reply. ``bytes``: its UTF-8 bytes, where it may be part of a character."""

    token: str
    logprob: Annotated[float | None, WrapValidator(_or_none)] = None
    bytes: Annotated[list[int] | None, WrapValidator(_or_none)] = None
    top_logprobs: Annotated[list[Top] | None, WrapValidator(_or_none)] = None


class Logprobs(BaseModel):
    """The tokens of a reply, in order."""

    content: list[Said] | None = None


class Message(BaseModel):
    """What was said, or why not."""

    content: str | None = None
    reasoning: Annotated[str | None, WrapValidator(_or_none)] = None
    reasoning_content: Annotated[str | None, WrapValidator(_or_none)] = None
    refusal: Annotated[str | None, WrapValidator(_or_none)] = None


class Choice(BaseModel):
    """One of the replies to a request."""

    message: Message
    finish_reason: Annotated[str | None, WrapValidator(_or_none)] = None
    logprobs: Annotated[Logprobs | None, WrapValidator(_or_none)] = None


MOST_TOKENS = 10_000_000
"""Of one call, in or out; a server that counts more is not believed."""
Tokens = Annotated[Annotated[int, Field(ge=0, le=MOST_TOKENS)] | None, WrapValidator(_or_none)]


class Usage(BaseModel):
    """Tokens of the prompt, and of all replies together; ``None``: not told, or not believed."""

    prompt_tokens: Tokens = None
    completion_tokens: Tokens = None


class ChatAnswer(BaseModel):
    """The answer of ``/chat/completions``."""

    choices: list[Choice]
    usage: Annotated[Usage | None, WrapValidator(_or_none)] = None
    system_fingerprint: Annotated[str | None, WrapValidator(_or_none)] = None
    model: Annotated[str | None, WrapValidator(_or_none)] = None


class Scored(BaseModel):
    """The tokens of a text that a server scored, with their log-probabilities."""

    tokens: list[str]
    token_logprobs: list[float | None]


class ScoredChoice(BaseModel):
    """The one choice of a scoring answer."""

    logprobs: Scored
    finish_reason: Annotated[str | None, WrapValidator(_or_none)] = None


class ScoreAnswer(BaseModel):
    """The answer of ``/completions`` with ``echo``."""

    choices: list[ScoredChoice]
    usage: Annotated[Usage | None, WrapValidator(_or_none)] = None


def shortened(text: str) -> str:
    """``text`` on one line, at most :data:`MAX_WORDS` characters."""
    line = " ".join(text.encode("utf-8", "replace").decode().split())
    return line if len(line) <= MAX_WORDS else line[: MAX_WORDS - 1] + "…"


def missing(reason: str, n_tokens: tuple[int, int] = (0, 0)) -> Reply:
    """A reply that could not be had, with its reason and the tokens it cost, in and out."""
    return Reply(None, None, *n_tokens, finish="error", missing=reason)


def reasons_lacking(provides: frozenset[str], has_template: bool, has_size: bool) -> dict[str, str]:
    """Need -> why a server that gives no more than ``provides`` cannot meet it."""
    lacks: dict[str, str] = {}
    if "logprobs" not in provides:
        lacks |= dict.fromkeys(("answer.logprobs", "samples.logprobs"), NO_LOGPROBS)
    if "distributions" not in provides:
        wide = ("answer.entropies", "answer.renyi", "answer.fisher_rao", "answer.alternatives")
        lacks |= dict.fromkeys(wide, NO_LIST if "logprobs" in provides else NO_LOGPROBS)
    elif not has_size:
        lacks |= dict.fromkeys(("answer.renyi", "answer.fisher_rao"), NO_SIZE)
    if "prior" not in provides:
        lacks["answer.prior_logprobs"] = (
            NO_TEMPLATE if not has_template else NO_ECHO if "logprobs" in provides else NO_LOGPROBS
        )
    return lacks


def reply_of(
    choice: Choice,
    request: Request,
    n_tokens: tuple[int, int],
    n_top: int,
    vocabulary_size: int | None,
    thinking: Thinking = "auto",
) -> Reply:
    """One reply, with its trace where the request wants statistics and the server's tokens spell
    the text.

    ``n_tokens``: in, and out where the server lists no tokens. ``n_top``: how many alternatives
    were asked for. A reply that was cut off has finish "length", and an empty text if it came to
    none (its thought took all tokens, say); where the server does not say how it ended, its tokens
    are counted.
    """
    said = choice.logprobs.content if choice.logprobs is not None else None
    counts = n_tokens[0], len(said) if said else n_tokens[1]
    if choice.message.refusal:
        return missing(f"the model refused: {shortened(choice.message.refusal)}", counts)
    if choice.finish_reason == "content_filter":
        return missing("withheld by the server's content filter", counts)
    end = choice.finish_reason
    cut = end in CUT_SHORT or (end is None and counts[1] >= request.max_tokens)
    thought = choice.message.reasoning or choice.message.reasoning_content or None
    if end in BROKEN_OFF:
        return missing(f"the server broke the reply off (finish {end!r})", counts)
    if choice.message.content is None and not cut and (not thought or thinking == "none"):
        return missing(f"the server sent no text (finish {choice.finish_reason!r})", counts)
    # A lone surrogate cannot be written to any file.
    text = (choice.message.content or "").encode("utf-8", "replace").decode()
    reply = apart(Reply(text, None, *counts), thinking)
    if thought is not None and thinking != "none":
        thoughts = "\n".join(filter(None, [thought, reply.reasoning]))
        thoughts = thoughts.encode("utf-8", "replace").decode()
        reply = replace(reply, text=str(reply.text).lstrip(), reasoning=thoughts)
    trace = None
    if request.want and said and reply.text:
        trace = trace_of(reply.text, said, request, n_top, vocabulary_size)
    return replace(reply, trace=trace, finish="length" if cut else "stop")


def token_bytes(said: Said) -> bytes:
    """The bytes that a token adds to the text."""
    if said.bytes is not None and all(0 <= b < 256 for b in said.bytes):
        return bytes(said.bytes)
    if escaped := _ESCAPED.fullmatch(said.token):
        return bytes.fromhex(escaped[1].replace("\\x", ""))
    return said.token.encode("utf-8", "replace")


def pieces(text: str, parts: Sequence[bytes]) -> tuple[int, list[str]] | None:
    """Where the tokens ``parts`` that make up ``text`` begin, and the text that each adds; ``None``
    if they do not spell it.

    Tokens before the text (reasoning that the server moved elsewhere, blanks it stripped) are
    passed over, and so are blanks and special tokens after it. A token that completes no character
    adds ''; joined, the pieces are ``text``.
    """
    spoken, joined = text.encode(), b"".join(parts)
    stop, last = len(joined), len(parts)
    while True:
        # Stripped blanks first as they came, then without: a text may itself end in some.
        ends = [end for end in (stop, len(joined[:stop].rstrip())) if joined[:end].endswith(spoken)]
        if ends:
            break
        if last == 0 or not _SPECIAL.fullmatch(parts[last - 1]):
            return None
        last -= 1
        stop -= len(parts[last])
    start = ends[0] - len(spoken)
    offsets = np.cumsum([0, *map(len, parts)])
    inside = [k for k in range(last) if offsets[k] < ends[0] and offsets[k + 1] > start]
    if not inside:
        return 0, []
    first, last = inside[0], inside[-1] + 1
    within = [min(max(int(o) - start, 0), len(spoken)) for o in offsets[first : last + 1]]
    seen = [len(spoken[:end].decode("utf-8", "ignore")) for end in within]
    return first, [text[a:b] for a, b in zip(seen[:-1], seen[1:], strict=True)]


def trace_of(
    text: str, said: list[Said], request: Request, n_top: int, vocabulary_size: int | None
) -> TokenTrace | None:
    """The statistics of a reply's tokens; ``None`` if the tokens do not spell the text.

    A statistic that any token lacks is ``None``, and all are, with ``lacks`` saying why, where the
    log-probabilities of the whole reply are 0, or no numbers. Entropies are lower bounds, Rényi
    divergences and Fisher-Rao distances upper ones (``None`` without ``vocabulary_size``): see
    :mod:`trustlab.models.decoding`.
    """
    found = pieces(text, [token_bytes(s) for s in said])
    if found is None:
        return None
    first, tokens = found
    if (doubt := _doubtful([s.logprob for s in said])) in (NOT_NUMBERS, ALL_ZERO):
        return TokenTrace(tuple(tokens), lacks=dict.fromkeys(NEEDED, doubt))
    said = said[first : first + len(tokens)]
    values = [s.logprob for s in said]
    logprobs, lacks = _logprobs(values), {}
    if logprobs is None and "logprobs" in request.want:
        lacks = {"logprobs": _doubtful(values)}
    wide: dict[str, Any] = {}
    if "distributions" in request.want and all(_told(s) for s in said):
        at_least = [
            bounds(*_listed(s, n_top), alpha=request.renyi_alpha, vocabulary_size=vocabulary_size)
            for s in said
        ]
        for k, name in enumerate(BOUNDS):
            column = [None if row is None else row[k] for row in at_least]
            wide[name] = (
                None
                if any(value is None for value in column)
                else np.array(column, dtype=np.float64)
            )
        named = zip(said, tokens, strict=True)
        wide["alternatives"] = tuple(_alternatives(s, t, request.n_alternatives) for s, t in named)
        wide["bounds"] = {name: side for name, side in BOUNDS.items() if wide[name] is not None}
    shown = logprobs if "logprobs" in request.want else None
    return TokenTrace(tuple(tokens), shown, lacks=lacks, **wide)


NOT_ALL = "the server tells no log-probability of a token"
NOT_NUMBERS = "the server's log-probabilities are not all numbers of at most 0"
ALL_ZERO = "the server's log-probabilities are all 0"
NEEDED = (*TokenTrace.ARRAYS, "alternatives")


def _doubtful(values: Sequence[float | None]) -> str:
    """Why a reply's log-probabilities are not believed; "" where they are."""
    if any(value is None or value <= SENTINEL for value in values):
        return NOT_ALL
    if not all(SENTINEL < (value or 0.0) <= ROUNDING for value in values):  # NaN, too
        return NOT_NUMBERS
    return "" if any(values) or not values else ALL_ZERO


def _logprobs(values: Sequence[float | None]) -> np.ndarray | None:
    """The log-probabilities as an array (L,); ``None`` where they are not believed."""
    if _doubtful(values) not in ("", ALL_ZERO):  # of a whole reply that alone is in doubt
        return None
    return np.minimum(np.array(values, dtype=np.float64), 0.0)


def _told(said: Said) -> list[Top]:
    """The listed tokens with a log-probability, best first."""
    told = [t for t in said.top_logprobs or () if math.isfinite(t.logprob) and t.logprob > SENTINEL]
    return sorted(told, key=lambda t: -t.logprob)


def _listed(said: Said, n_top: int) -> tuple[list[float], float | None]:
    """Log-probabilities of all known tokens, and the cap on the others.

    There is a cap only where the list is whole: as long as asked for, and not brought to that
    length by the chosen token put at its end. Servers that key it by the tokens' text lose those
    that look alike, and these may be any but the most probable.
    """
    told = _told(said)
    known = [t.logprob for t in told]
    whole = len(told) >= n_top and not (1 < len(told) == n_top and told[-1].token == said.token)
    cap = known[n_top - 1] if whole and n_top >= 1 else None
    if (
        said.logprob is not None
        and said.token not in {t.token for t in told}
        and said.logprob > SENTINEL
    ):
        known.append(said.logprob)
    return known, cap


def _alternatives(said: Said, piece: str, n: int) -> tuple[tuple[str, float], ...]:
    """The ``n`` most probable tokens, best first, the chosen one at its place if not among them.

    The chosen one is called as in the trace, ``piece``: servers may write it otherwise.
    """
    best = [(t.token, t.logprob) for t in _told(said)[:n]]
    if (
        said.logprob is not None
        and said.token not in {token for token, _ in best}
        and said.logprob > SENTINEL
    ):
        best = sorted([*best, (said.token, said.logprob)], key=lambda pair: -pair[1])
    return tuple((piece if token == said.token else token, logprob) for token, logprob in best)


def prior_of(answer: ScoreAnswer, tokens: Sequence[str]) -> np.ndarray | None:
    """Log P of each of ``tokens`` (L,) at the end of a scored text; ``None`` unless the server cut
    the text into the same tokens.

    The scored text was the prompt and the reply; the server was made to add one token, which it may
    or may not list. The last tokens must be the reply's own, in one way only. Offsets are not used:
    servers count them differently.
    """
    if not answer.choices or not tokens:
        return np.zeros(0) if not tokens else None
    choice = answer.choices[0]
    scored = choice.logprobs
    n_made = answer.usage.completion_tokens if answer.usage is not None else None
    cuts = {n_made} if n_made in (0, 1) else {0, 1}
    if choice.finish_reason == "stop":
        cuts.add(0)  # an end token is counted, and listed or not
    fits = []
    for cut in cuts:
        stop = len(scored.tokens) - cut
        if stop >= len(tokens) and scored.tokens[stop - len(tokens) : stop] == list(tokens):
            fits.append(scored.token_logprobs[stop - len(tokens) : stop])
    return _logprobs(fits[0]) if len(fits) == 1 else None
