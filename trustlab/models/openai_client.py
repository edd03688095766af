"""Calls to an OpenAI-compatible server: where it is, what it refuses, and a client that lives in a thread of its own.

The thread lets a plain function wait for many calls at once, also where an event loop runs already (Jupyter). The key is
read from the environment when the client starts, handed to it, and cut out of whatever comes back.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import re
import threading
import weakref
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from trustlab.models.openai_replies import shortened

T = TypeVar("T")

OPENAI = "https://api.openai.com/v1"
NO_KEY = "none"
"""Sent where a server of one's own needs no key: the client insists on one."""
HIDDEN = "[key]"

_KEY_LIKE = re.compile(r"\bsk-[\w*.-]{4,}|(?<=Bearer )\S+")
_NAMED_N = re.compile(r"['\"`]n['\"`]|\bn\s*(=|>|!=|must|is not|should)|only one completion", re.IGNORECASE)
_SYSTEM_ROLE = re.compile(r"system.{0,20}role|role.{0,80}system|roles must alternate", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Address:
    """Where a server is. ``url`` goes to the client; ``shown`` is host, port and path; ``login`` is kept out of both."""

    url: str
    shown: str
    login: str | None

    def __repr__(self) -> str:
        return f"Address({self.shown!r})"

    @classmethod
    def of(cls, base_url: str | None) -> Address:
        """The address given, else ``OPENAI_BASE_URL``, else OpenAI's. ``ValueError`` if it is none, or carries a query."""
        parts = urlsplit(base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("base_url must be http://HOST/PATH or https://HOST/PATH (most servers: .../v1)")
        if parts.query or parts.fragment:
            raise ValueError(f"base_url for {parts.hostname} must end with its path; a key belongs in OPENAI_API_KEY")
        host = parts.netloc.rpartition("@")[2]
        login = None
        if parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        path = parts.path.rstrip("/")
        return cls(f"{parts.scheme}://{host}{path}", f"{host}{path}", login)


@dataclass(frozen=True)
class Outcome:
    """What became of one call. ``answer`` is the JSON it brought; else ``reason`` says why there is none.

    ``status`` is the HTTP status (``None``: no answer came); ``named`` the parameter and words the server complained with.
    """

    answer: Any = None
    reason: str = ""
    status: int | None = None
    named: str = ""
    code: str = ""
    n_retries: int = 0


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
        """The dialect that avoids what was refused; the same one where the refusal names nothing that can be left out.

        A temperature is never left out: the reply would come from another distribution than the one asked for.
        """
        words = outcome.named
        if outcome.status not in (400, 403, 422, 500, 501) or "context" in outcome.code or "context length" in words:
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
    """A client with its event loop, in a thread of its own; opened by the first call, and again after :meth:`close`."""

    def __init__(self, address: Address, *, timeout_s: float, max_retries: int, concurrency: int) -> None:
        self.address, self.timeout_s, self.max_retries, self.concurrency = address, timeout_s, max_retries, concurrency
        self._secrets: tuple[str, ...] = ()
        self._opening = threading.Lock()
        self._open: tuple[asyncio.AbstractEventLoop, Any, asyncio.Semaphore] | None = None
        self._finalizer: weakref.finalize | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run ``work`` in the thread and wait. An interruption cancels it. ``ValueError``: no key, and one is needed."""
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
    def slots(self) -> asyncio.Semaphore:
        """Free places for calls, shared by all that use the line; to be taken inside the thread."""
        return self._now()[2]

    def _now(self) -> tuple[asyncio.AbstractEventLoop, Any, asyncio.Semaphore]:
        if self._open is None:
            raise RuntimeError("the model was closed while it was being asked")
        return self._open

    def _opened(self) -> tuple[asyncio.AbstractEventLoop, Any, asyncio.Semaphore]:
        with self._opening:
            if self._open is None:
                key = os.environ.get("OPENAI_API_KEY") or (NO_KEY if self.address.url != OPENAI else None)
                if key is None:
                    raise ValueError("the environment variable OPENAI_API_KEY is not set; for a server of your own give base_url")
                basic = self.address.login and base64.b64encode(self.address.login.encode()).decode()
                password = (self.address.login or "").partition(":")[2]
                self._secrets = tuple(s for s in (key, basic, password) if s and s != NO_KEY)
                loop = asyncio.new_event_loop()
                client = self._client(key, {"Authorization": f"Basic {basic}"} if basic else None)
                thread = threading.Thread(target=loop.run_forever, name="trustlab-openai", daemon=True)
                thread.start()
                self._open = loop, client, asyncio.Semaphore(self.concurrency)
                self._finalizer = weakref.finalize(self, _shut, loop, client, thread)
            return self._open

    def _client(self, key: str, headers: dict[str, str] | None) -> Any:
        try:
            import openai
        except ImportError as error:
            raise ImportError("OpenAIModel needs the openai client: pip install openai") from error
        limits = type(openai.DEFAULT_CONNECTION_LIMITS)(
            max_connections=self.concurrency, max_keepalive_connections=self.concurrency, keepalive_expiry=60.0
        )
        return openai.AsyncOpenAI(
            api_key=key, base_url=self.address.url, timeout=self.timeout_s, max_retries=self.max_retries,
            default_headers=headers, http_client=openai.DefaultAsyncHttpxClient(limits=limits, timeout=self.timeout_s),
        )  # fmt: skip

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
        """One call of ``/chat/completions`` (kind "chat") or ``/completions`` ("score"), with the client's retries.

        An answer that is not JSON is asked for again as often as any other failure. Never raises for what a server does.
        """
        client = self._now()[1]
        endpoint = client.chat.completions if kind == "chat" else client.completions
        n_retries, words = 0, ""
        for attempt in range(self.max_retries + 1):
            if attempt:
                n_retries += 1
                await asyncio.sleep(min(0.5 * 2 ** (attempt - 1), 8.0))
            raw, failed = await self._once(endpoint, body)
            if failed is not None:
                return replace(failed, n_retries=failed.n_retries + n_retries)
            n_retries += raw.retries_taken
            text = raw.http_response.content.decode("utf-8", "replace")
            for secret in self._secrets:
                text = text.replace(secret, HIDDEN)
            try:
                return Outcome(json.loads(text), status=raw.http_response.status_code, n_retries=n_retries)
            except (json.JSONDecodeError, RecursionError):
                words = shortened(self.scrubbed(text))
        return Outcome(reason=f"the server's answer is not JSON{_after(n_retries)}: {words!r}", status=200, n_retries=n_retries)

    async def _once(self, endpoint: Any, body: Mapping[str, Any]) -> tuple[Any, Outcome | None]:
        import openai

        # Everything goes as extra fields: the client passes these on as they are, and walks through its own one by one.
        empty = {"model": body["model"]} | ({"messages": []} if "messages" in body else {"prompt": ""})
        try:
            return await endpoint.with_raw_response.create(**empty, extra_body=body), None
        except openai.APITimeoutError as error:
            n = _retries(error)
            return None, Outcome(reason=f"no answer within {self.timeout_s:g} s{_after(n)}", n_retries=n)
        except openai.APIConnectionError as error:
            n, cause = _retries(error), type(error.__cause__).__name__
            return None, Outcome(reason=f"the connection to {self.address.shown} failed{_after(n)} ({cause})", n_retries=n)
        except openai.APIStatusError as error:
            n, said = _retries(error), error.body
            words = (said.get("message") or said.get("detail") or said) if isinstance(said, dict) else said
            words = self.scrubbed(str(words or error.response.reason_phrase))
            named = f"{error.param} {words}" if error.param else words
            reason = f"HTTP {error.status_code}{_after(n)}: {shortened(words)}"
            return None, Outcome(None, reason, error.status_code, named, str(error.code or ""), n)
        except openai.OpenAIError as error:
            return None, Outcome(reason=shortened(self.scrubbed(f"{type(error).__name__}: {error}")))


def _retries(error: Any) -> int:
    """How often the client tried again before it gave up: it numbers its requests."""
    return int(error.request.headers.get("x-stainless-retry-count", 0))


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

    if thread is threading.current_thread():  # the last reference went inside the loop: it cannot wait for itself
        loop.stop()
    elif thread.is_alive():
        with contextlib.suppress(Exception):
            asyncio.run_coroutine_threadsafe(finish(), loop).result(timeout=5)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=5)
    if not loop.is_running():
        loop.close()
