"""A small OpenAI-compatible server on the loopback interface, with a toy model whose distributions
are stated.

The toy: after a text, the distribution over :data:`VOCABULARY` is read off a hash of the text; "["
is favoured at first and "]" at the fourth token, where the reply ends. Choice j is drawn with the
seed + j, as vLLM does.
"""

from __future__ import annotations

import hashlib
import json
import math
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import numpy as np

from trustlab.models.base import Request

WORDS = (
    " flu", " cold", " asthma", " gout", " mumps", " croup", " angina", " anemia", " measles",
    " malaria", " lupus", " rabies", " scurvy", " sepsis", " typhus", " ulcer", " rickets",
    " tetanus", " cholera", " colitis", " rosacea", " stroke",
)  # fmt: skip
VOCABULARY = ("[", "]", *WORDS)
LENGTH = 4
TEMPLATE = "{% for m in messages %}{{ m['role'] }}={{ m['content'] }};{% endfor %}>"
KEY = "local-0123456789abcdef"


def rendered(messages: list[dict[str, str]]) -> str:
    """What :data:`TEMPLATE` makes of a conversation."""
    return "".join(f"{m['role']}={m['content']};" for m in messages) + ">"


def distribution(prompt: str, said: str, position: int) -> np.ndarray:
    """Natural log-probabilities over the vocabulary (24,) of the token at ``position`` after
    ``prompt`` and ``said``."""
    digest = hashlib.sha256((prompt + said).encode()).digest()
    logits = np.random.default_rng(list(digest[:8])).normal(scale=2.0, size=len(VOCABULARY))
    logits[0 if position == 0 else 1] += 9.0 if position in (0, LENGTH - 1) else -9.0
    return logits - np.log(np.exp(logits).sum())


def drawn(prompt: str, n_tokens: int, temperature: float, seed: int | None) -> list[int]:
    """Token ids of one reply."""
    rng, said, ids = np.random.default_rng(seed), "", []
    for position in range(min(n_tokens, LENGTH)):
        logprobs = distribution(prompt, said, position)
        if temperature == 0:
            ids.append(int(logprobs.argmax()))
        else:
            weights = np.exp((logprobs - logprobs.max()) / temperature)
            ids.append(int(rng.choice(len(weights), p=weights / weights.sum())))
        said += VOCABULARY[ids[-1]]
    return ids


def cut(text: str) -> list[str]:
    """``text`` in tokens: words of the vocabulary, else single characters."""
    tokens = []
    while text:
        token = next((word for word in VOCABULARY if text.startswith(word)), text[0])
        tokens.append(token)
        text = text[len(token) :]
    return tokens


def scored(text: str) -> list[float | None]:
    """The log-probability of each token of ``text`` after those before it; the first has none."""
    prompt, _, reply = text.rpartition(">")
    tokens = cut(text)
    start = len(cut(prompt + ">"))
    values: list[float | None] = [None, *[-3.0] * (len(tokens) - 1)]
    for k, token in enumerate(cut(reply)):
        if token in VOCABULARY:
            said = "".join(cut(reply)[:k])
            values[start + k] = float(distribution(prompt + ">", said, k)[VOCABULARY.index(token)])
    return values


def least(schema: dict[str, Any]) -> Any:
    """The smallest value that a schema takes: lists with one entry, a score as a text."""
    if schema.get("type") == "object":
        return {name: least(schema["properties"][name]) for name in schema["required"]}
    if "anyOf" in schema:
        return None
    if schema["type"] == "array":
        return [least(schema["items"])]
    said = {"integer": 1, "boolean": True, "string": schema.get("enum", ["<<50>>"])[0]}
    return said[schema["type"]]


def refusal(status: int, message: str, param: str | None = None) -> tuple[int, dict]:
    return status, {"error": {"message": message, "param": param}}


class Loopback:
    """Serves on the loopback interface while a block of code runs; ``handler``: one connection."""

    handler: Callable[..., BaseHTTPRequestHandler]
    path = ""
    url: str

    def __enter__(self) -> Self:
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self.handler)
        self._http.handle_error = lambda *_: None  # a client that went away is no error here
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}{self.path}"
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


class Quiet(BaseHTTPRequestHandler):
    """A connection of the server ``behaviour``, which logs nothing."""

    def __init__(self, server: Any, *args) -> None:
        self.behaviour = server
        super().__init__(*args)

    def log_message(self, format: str, *args) -> None:
        pass

    def reset(self) -> None:
        """Have the connection die where it is closed."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@dataclass
class Server(Loopback):
    """What the server does, to be set by a test, and what it saw.

    ``plan(k, body)`` names what happens to the k-th request (from 0): None for an answer, a number
    for that HTTP status, or one of "garbage", "no choices", "null content", "hang", "drip", "cut",
    "filter", "refusal", "redirect" (to ``elsewhere``), "echo" (of the key) and "digits"; or is a
    function that makes the answer odd: another one, or its bytes; or status, bytes and headers of
    an answer. ``models``: the list's bytes.
    ``refuses``: parameters that get a 400 by name. ``said``: tokens
    (bytes) of every reply, ``finish`` and ``message`` how it ends and what is in its message
    besides. ``per_second``: calls that are answered in each second, others get a 429.
    ``named(k)``: the model that it says it used. ``window``, ``scores_chats``, ``holds``: what vLLM
    tells and does besides.
    """

    path = "/v1"
    plan: Callable[[int, dict], Any] = lambda k, body: None
    latency_s: float = 0.0
    hang_s: float = 1.0
    ignores_n: bool = False
    # or "null", "content null", "empty", "malformed", "zero", "nan"
    logprobs: str = "given"
    refuses: set[str] = field(default_factory=set)
    most_top: int = 20
    limit: str = "max_tokens"
    system: bool = True
    retry_after: dict[str, str] = field(default_factory=lambda: {"retry-after-ms": "1"})
    said: list[bytes] | None = None
    content: str | None = None
    finish: str | None = None
    message: dict = field(default_factory=dict)
    named: Callable[[int], str | None] = lambda k: None
    n_tokens: float | None = None
    elsewhere: str = ""
    window: int | None = None  # told, and held to
    models: bytes = b""
    counts: bool = True  # the tokens of a prompt, where it has a window
    scores_chats: bool = False
    only_default: bool = False  # temperature
    holds: bool = False  # a reply to its schema
    per_second: int = 0
    seconds: Counter = field(default_factory=Counter)
    received: list[dict] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    connections: set[tuple] = field(default_factory=set)
    n_in_flight: int = 0
    most_in_flight: int = 0
    url: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def handler(self, *given: Any) -> Handler:
        return Handler(self, *given)

    def chats(self) -> list[dict]:
        """The bodies of the chat calls."""
        both = zip(self.paths, self.received, strict=True)
        return [body for path, body in both if path == "/v1/chat/completions"]

    def problem(self, body: dict) -> tuple[int, dict] | None:
        """The refusal that a body meets: the first of those that the server has."""
        limit, messages = body.get(self.limit), body.get("messages", ())
        heat = body.get("temperature", 1)
        n_in = len(cut(rendered(messages)))
        refused = next(iter(self.refuses & body.keys()), None)
        unsupported = "is not supported with this model."
        if refused:
            words = f"Unsupported parameter: '{refused}' {unsupported}"
            return refusal(400, words, refused)
        if self.only_default and heat != 1:
            words = f"does not support {heat}. Only the default (1) value is supported."
            return refusal(400, f"'temperature' {words}", "temperature")
        if self.window and limit and n_in + limit > self.window:
            return refusal(400, f"This model's maximum context length is {self.window} tokens.")
        if body.get("top_logprobs", 0) > self.most_top:
            words = f"Requested sample logprobs greater than max allowed: {self.most_top}"
            return refusal(400, words, "top_logprobs")
        if messages and limit is None and not body.get("add_generation_prompt"):
            words = f"Unsupported parameter: 'max_tokens' {unsupported} Use '{self.limit}' instead."
            return refusal(400, words, "max_tokens")
        if not self.system and any(m["role"] == "system" for m in messages):
            return refusal(500, "Jinja: System role not supported")
        return None

    def chat(self, body: dict, action: str | None) -> dict:
        """The answer to a chat call."""
        choices = [self.choice(body, action, j) for j in range(body.get("n", 1))]
        choices = choices[: 1 if self.ignores_n else None]
        n_in = len(cut(rendered(body["messages"])))
        n_out = sum(LENGTH if c["finish_reason"] == "stop" else body[self.limit] for c in choices)
        n_in, n_out = (n_in, n_out) if self.n_tokens is None else (self.n_tokens,) * 2
        answer: dict = {
            "object": "chat.completion",
            "choices": [] if action == "no choices" else choices,
            "usage": {"prompt_tokens": n_in, "completion_tokens": n_out},
        }
        if self.scores_chats and "prompt_logprobs" in body:
            answer["prompt_logprobs"] = self.prompt(body["messages"])
        return answer

    def choice(self, body: dict, action: str | None, j: int) -> dict:
        """The choice with index ``j``."""
        prompt, said, entries = rendered(body["messages"]), "", []
        ids = drawn(prompt, body[self.limit], body.get("temperature", 1.0), body.get("seed", 0) + j)
        for position, i in enumerate(ids):
            row = distribution(prompt, said, position)
            entries.append(self.entry(row, i, body.get("top_logprobs")))
            said += VOCABULARY[i]
        if self.said is not None:
            entries = [self.plain(token) for token in self.said]
            said = b"".join(self.said).decode()
        asked = body.get("response_format") if self.holds else None
        if asked:
            said = json.dumps(least(asked["json_schema"]["schema"]))
            ids = [0] * LENGTH
        content = said if self.content is None else self.content
        message = {"role": "assistant", "content": content, "refusal": None} | self.message
        if action == "null content":
            message["content"] = None
        elif action == "refusal":
            message |= {"content": None, "refusal": "I cannot help with that."}
        finish = self.finish or ("stop" if len(ids) == LENGTH or self.said else "length")
        finish = "content_filter" if action == "filter" else finish
        told = self.told(entries) if body.get("logprobs") else None
        return {"index": j, "message": message, "finish_reason": finish, "logprobs": told}

    def entry(self, logprobs: np.ndarray, i: int, n_top: int | None) -> dict:
        """One token as the chat API lists it."""

        def told(k: int) -> dict:
            return {"token": VOCABULARY[k], "logprob": float(logprobs[k]), "bytes": None}

        return told(i) | {"top_logprobs": [told(k) for k in np.argsort(-logprobs)[: n_top or 0]]}

    @staticmethod
    def plain(token: bytes) -> dict:
        text = token.decode("utf-8", "replace")
        return {"token": text, "logprob": -0.5, "bytes": list(token), "top_logprobs": []}

    def told(self, entries: list[dict]) -> object:
        """The log-probabilities of a choice, in the server's own way."""
        if self.logprobs in ("null", "malformed"):
            return None if self.logprobs == "null" else ["-0.1", 3]
        if self.logprobs in ("zero", "nan"):
            for one in (row for entry in entries for row in (entry, *entry["top_logprobs"])):
                one["logprob"] = 0.0 if self.logprobs == "zero" else math.nan
        return {"content": {"content null": None, "empty": []}.get(self.logprobs, entries)}

    @staticmethod
    def prompt(messages: list[dict[str, str]]) -> list[dict | None]:
        """The tokens of a chat whose last message is the assistant's, as vLLM lists them."""
        text = rendered(messages[:-1]) + messages[-1]["content"]
        pairs = zip(cut(text), scored(text), strict=True)
        return [
            None if p is None else {str(k): {"logprob": p, "rank": 1, "decoded_token": token}}
            for k, (token, p) in enumerate(pairs)
        ]


BODIES = {
    "garbage": b"<html>502 Bad Gateway</html>",
    "digits": b'{"choices": [' + b"9" * 5000 + b"]}",
}


class Handler(Quiet):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # headers and body in one packet: apart, the second waits for the first

    def do_POST(self) -> None:
        server = self.behaviour
        chat = self.path == "/v1/chat/completions"
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with server.lock:
            k = len(server.received)
            server.received.append(body)
            server.headers.append({name.lower(): value for name, value in self.headers.items()})
            server.paths.append(self.path)
            server.connections.add(self.client_address)
            server.n_in_flight += 1
            server.most_in_flight = max(server.most_in_flight, server.n_in_flight)
            second = int(time.monotonic())
            server.seconds[second] += 1
            over = 0 < server.per_second < server.seconds[second]
        try:
            time.sleep(0 if over else server.latency_s)
            action = 429 if over else server.plan(k, body)
            problem = server.problem(body)
        finally:
            with server.lock:  # before the answer: the client may then send the next
                server.n_in_flight -= 1
        key = self.headers["authorization"].split()[-1]
        if action == "hang":
            time.sleep(server.hang_s)
            self.close_connection = True
        elif action == "cut":
            self.reset()
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        elif isinstance(action, int):
            error = {"error": {"message": f"Something about {key} went wrong ({action})"}}
            self.answer(action, error, server.retry_after)
        elif problem is not None:
            self.answer(*problem, server.retry_after)
        elif isinstance(action, tuple):
            self.answer(*action)
        elif action in BODIES:
            self.answer(200, BODIES[action])
        elif callable(action):
            self.answer(200, action(server.chat(body, None) if chat else None))
        elif action == "redirect":
            self.answer(307, b"", {"location": server.elsewhere})
        elif action == "drip":
            self.drip(json.dumps(server.chat(body, None)).encode())
        elif chat:
            said = server.chat(body, action) | ({"model": m} if (m := server.named(k)) else {})
            if action == "echo":
                said["choices"][0]["message"]["content"] += f" {key}"
            self.answer(200, said)
        elif self.path == "/tokenize" and server.window and server.counts:
            n = len(cut(rendered(body["messages"])))
            self.answer(200, {"count": n, "max_model_len": server.window})
        else:
            self.answer(404, {"error": {"message": "no such path"}})

    def do_GET(self) -> None:
        window = self.behaviour.window
        told = {"id": "toy"} | ({"max_model_len": window} if window else {})
        self.answer(200, self.behaviour.models or {"object": "list", "data": [told]})

    def drip(self, body: bytes) -> None:
        """A byte every 50 ms: each in time, the whole never."""
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        with suppress(OSError):
            for k in range(len(body)):
                self.wfile.write(body[k : k + 1])
                self.wfile.flush()
                time.sleep(0.05)

    def answer(self, status: int, said: Any, headers: dict[str, str] | None = None) -> None:
        """Send ``said``, bytes or what becomes JSON."""
        body = said if isinstance(said, bytes) else json.dumps(said).encode()
        self.send_response(status)
        told = {"content-type": "application/json", "content-length": str(len(body))}
        for name, value in (told | (headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def ask(patient: str = "Cough?", **options: Any) -> Request:
    return Request((("user", patient),), **{"max_tokens": 8, **options})


@contextmanager
def opening(server: Server, **defaults: Any) -> Iterator[Callable[..., Any]]:
    """Opens models of the server, with these options where no others are given, and closes them at
    the end."""
    from trustlab.models.server.openai import OpenAIModel

    models: list[OpenAIModel] = []

    def open_it(**options: Any) -> OpenAIModel:
        given = {"base_url": server.url, "max_retries": 1, "timeout_s": 5.0, **defaults, **options}
        model: Any = OpenAIModel("toy", **given)
        model.taught = {"set": "embedded"}  # the toy knows no form: no trial refuses it
        models.append(model)
        return model

    yield open_it
    for model in models:
        model.close()
