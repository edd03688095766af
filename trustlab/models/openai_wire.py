"""What goes to an OpenAI-compatible server, and how: address, client, requests, dialect."""

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
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from trustlab.choices import may_be_token
from trustlab.models.base import Messages, Request
from trustlab.models.limiter import Limiter
from trustlab.models.templates import dated

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
PATHS = {
    "chat": "/chat/completions",
    "score": "/completions",
    "models": "/models",
    "tokenize": "/tokenize",
}
"""What a server is asked: for replies, for the score of a text, what it has, how long a prompt
is."""
NEARLY_GREEDY = 0.01
"""The temperature of greedy replies where a server takes none of 0."""
CONNECT_S = 4.0
"""A connection takes no longer, or the server is not there."""
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
    ``reason``, between ``what`` and ``words``. ``reached``: whether there was a connection.
    """

    answer: Any = None
    what: str = ""
    words: str = ""
    status: int | None = None
    named: str = ""
    code: str = ""
    pause: float = 0.0
    retries: int = 0
    reached: bool = True

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
    takes_temperature: bool = True
    coldest: float = 0.0
    takes_schema: bool = False
    schema_form: str = "json_schema"
    fewest_top: int = 0
    most_top: int = 20
    system_role: str = "auto"

    def after(self, sent: Mapping[str, Any], outcome: Outcome) -> Dialect:
        """The dialect that avoids what was refused; the same one where the refusal names nothing
        that can be left out. Without a temperature the reply comes from another distribution than
        the one asked for: only who says so may leave it out."""
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
        if _names(words, "response_format|json_schema|schema") and "response_format" in sent:
            return replace(self, takes_schema=False)
        if _names(words, "seed") and "seed" in sent:
            return replace(self, takes_seed=False)
        if _names(words, "temperature") and "temperature" in sent:
            only_default = "default" in words
            if sent["temperature"] == 0 and self.coldest == 0 and not only_default:
                return replace(self, coldest=NEARLY_GREEDY)
            return replace(self, takes_temperature=False)
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
                key = os.environ.get("OPENAI_API_KEY", "").strip() or (
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
                if not re.fullmatch("[!-~]+", key):
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
        timeout = _http().Timeout(self.timeout_s, connect=CONNECT_S)
        http = _guarded(openai.DefaultAsyncHttpxClient)(limits=limits, timeout=timeout)
        return openai.AsyncOpenAI(
            api_key=key,
            base_url=self.address.url,
            timeout=timeout,
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
        """One call of a kind of :data:`PATHS`, in a place that the limiter gave, within
        ``timeout_s`` from its beginning to its end.

        Never raises for what a server does.
        """
        import openai

        client = self._now()[1]
        try:
            async with asyncio.timeout(self.timeout_s):
                return self._told(await self._content(client, kind, body))
        except (TimeoutError, openai.APITimeoutError) as error:
            if isinstance(error.__cause__, _http().ConnectTimeout):
                return self._unreached(error.__cause__)
            return Outcome(what=f"no answer within {self.timeout_s:g} s")
        except UnicodeError:
            return Outcome(what="the prompt holds characters that no call can", status=UNFIT)
        except openai.APIStatusError as error:
            return self._refusal(error)
        except (openai.OpenAIError, OSError, Unfit, _http().HTTPError) as error:
            cause = error.__cause__ if isinstance(error, openai.APIConnectionError) else error
            if isinstance(cause, Unfit):
                return Outcome(what=str(cause), status=UNFIT)
            return self._unreached(cause)

    def _unreached(self, cause: BaseException | None) -> Outcome:
        what = f"the connection to {self.address.shown} failed"
        none = isinstance(cause, (_http().ConnectError, _http().ConnectTimeout))
        return Outcome(what=what, words=f" ({type(cause).__name__})", reached=not none)

    async def _content(self, client: Any, kind: str, body: Mapping[str, Any]) -> bytes:
        """What the server answers, unpacked, which may be much more than it sent."""
        if kind == "models":
            return (await client.get(PATHS[kind], cast_to=_http().Response)).content
        if kind == "tokenize":  # beside, not below, the path of the rest
            path = self.address.url.removesuffix("/v1") + PATHS[kind]
            return (await client.post(path, cast_to=_http().Response, body=body)).content
        endpoint = client.completions if kind == "score" else client.chat.completions
        # Everything goes as extra fields: the client passes these on as they are, and walks through
        # its own one by one.
        empty = {"model": body["model"]} | (
            {"messages": []} if "messages" in body else {"prompt": ""}
        )
        content = bytearray()
        streamed = endpoint.with_streaming_response.create(**empty, extra_body=body)
        async with streamed as response:
            async for part in response.iter_bytes():
                content += part
                if len(content) > MOST_BYTES:
                    raise Unfit(TOO_LONG)
        return bytes(content)

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
        dialect.limit: request.max_tokens,
    }  # fmt: skip
    if dialect.takes_temperature:
        body["temperature"] = max(request.temperature, dialect.coldest)
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
    schema = json.loads(request.schema) if request.schema and dialect.takes_schema else {}
    if schema.get("type") == "object":  # other forms are for local models
        named = {"name": "reply", "strict": True, "schema": schema}
        body["response_format"] = {
            "json_schema": {"type": "json_schema", "json_schema": named},
            "json_object": {"type": "json_object", "schema": schema},  # llama-cpp-python's
        }[dialect.schema_form]
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


def prior_body(name: str, messages: Messages, reply: str, dialect: Dialect) -> dict[str, Any]:
    """The call that scores ``reply`` after ``messages`` in the server's own chat template."""
    said = {"role": "assistant", "content": reply}
    return {
        "model": name, "messages": [*turns(messages, dialect.system_role), said],
        "add_generation_prompt": False, "continue_final_message": True, "prompt_logprobs": 0,
        dialect.limit: 1,
        **({"temperature": dialect.coldest} if dialect.takes_temperature else {}),
    }  # fmt: skip


def tokenize_body(name: str, messages: Messages, dialect: Dialect) -> dict[str, Any]:
    """The call that counts the tokens of a prompt, up to where the reply begins."""
    return {
        "model": name,
        "messages": turns(messages, dialect.system_role),
        "add_generation_prompt": True,
    }


WINDOWS = ("max_model_len", "context_length", "context_window", "max_context_length")
"""What servers call the number of tokens that prompt and reply may have together."""


def window_of(answer: Any, name: str) -> float:
    """The window of the model ``name`` in a server's list of models; infinite where it tells none.
    Of a list of one model, that one is meant."""
    rows = answer.get("data") if isinstance(answer, dict) else None
    rows = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    named = [row for row in rows if row.get("id") == name] or (rows if len(rows) == 1 else [])
    told = [row[key] for row in named for key in WINDOWS if type(row.get(key)) is int]
    return min([n for n in told if n > 0], default=math.inf)


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

    ``text`` is the Jinja text; ``n_vocabulary`` the size of a model's vocabulary, where one is
    named. ``options`` are for the template; the date it prints is fixed.
    ``FileNotFoundError``: no such tokenizer. ``ValueError``: it has no template, or a broken one.
    """

    def __init__(self, source: str, options: Mapping[str, Any] | None = None) -> None:
        try:
            from transformers import AutoTokenizer
        except ImportError as error:
            raise ImportError(
                "chat_template needs transformers: pip install transformers"
            ) from error
        self._tokenizer: Any = None
        self.text, self._options = source, dict(options or {})
        self.n_vocabulary: int | None = None
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
            self.n_vocabulary = _vocabulary_size(source, self._tokenizer)
        self.render((("user", "ok"),), "system")

    def render(self, messages: Messages, system_role: str) -> str:
        """The prompt as text, up to where the reply begins. ``ValueError`` if the template refuses
        the conversation.

        Without a leading begin-of-text token: a server puts its own before a text.
        """
        from jinja2 import TemplateError
        from transformers.utils.chat_template_utils import render_jinja_template

        conversation, template = turns(messages, system_role), dated(self.text, self._options)
        try:
            if self._tokenizer is not None:
                text = self._tokenizer.apply_chat_template(
                    conversation,
                    chat_template=template,
                    tokenize=False,
                    add_generation_prompt=True,
                    **self._options,
                )
                return text.removeprefix(self._tokenizer.bos_token or "")
            rendered = render_jinja_template(
                [conversation],
                chat_template=template,
                add_generation_prompt=True,
                bos_token="",
                eos_token="",
                **self._options,
            )
        except TemplateError as error:
            raise ValueError(f"the chat template fails: {error}") from error
        return rendered[0][0]

    def count(self, messages: Messages, system_role: str) -> int | None:
        """Tokens of the prompt; ``None`` where no tokenizer is named."""
        if self._tokenizer is None:
            return None
        return len(self._tokenizer(self.render(messages, system_role))["input_ids"])


def _vocabulary_size(source: str, tokenizer: Any) -> int:
    """Of the model beside the tokenizer, where its config is there: it may have room to spare."""
    from transformers import AutoConfig

    try:
        config = AutoConfig.from_pretrained(source).get_text_config()
    except (OSError, ValueError):
        return len(tokenizer)
    return getattr(config, "vocab_size", None) or len(tokenizer)


MAX_WORDS = 200
"""Characters of a server's own words that a reason quotes."""


def shortened(text: str) -> str:
    """``text`` on one line, at most :data:`MAX_WORDS` characters."""
    line = " ".join(text.encode("utf-8", "replace").decode().split())
    return line if len(line) <= MAX_WORDS else line[: MAX_WORDS - 1] + "…"
