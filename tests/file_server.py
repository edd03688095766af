"""A small web server on the loopback interface that hands out files, well or badly, and remembers
who asked."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from openai_server import Loopback, Quiet

PAGE = b"\n<!DOCTYPE html>\n<html><body>Please log in.</body></html>"


@dataclass
class FileServer(Loopback):
    """``files``: path -> content, to be set by a test.

    ``plan(k)`` names what happens to the k-th request (from 0): None for the file, a number for
    that HTTP status, or one of "cut" (half of it, then the connection dies), "corrupt" (a bit
    flipped), "truncated" (half, announced as the whole), "endless" (far more than the file,
    unannounced), "page" (a login page), "pointer" (git-LFS) or "nothing" (status 202, no body).
    """

    files: dict[str, bytes]
    plan: Callable[[int], str | int | None] = lambda k: None
    asked: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    url: str = ""

    def handler(self, *given: Any) -> Handler:
        return Handler(self, *given)


class Handler(Quiet):
    """One request; HTTP/1.0, so that the connection's end ends a body whose length was not
    announced."""

    def do_GET(self) -> None:
        server = self.behaviour
        action = server.plan(len(server.asked))
        server.asked.append(self.path)
        server.headers.append({name.lower(): value for name, value in self.headers.items()})
        body = server.files.get(self.path)
        if body is None or isinstance(action, int):
            self.answer(404 if body is None else int(action or 404), b"<html>an error</html>")
        elif action == "cut":
            self.answer(200, body[: len(body) // 2], length=len(body))
            self.reset()
        elif action == "corrupt":
            self.answer(200, body[:-1] + bytes([body[-1] ^ 1]))
        elif action == "truncated":
            self.answer(200, body[: len(body) // 2])
        elif action == "endless":
            self.answer(200, body * 1000, length=None)
        elif action == "page":
            self.answer(200, PAGE)
        elif action == "pointer":
            self.answer(200, b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n")
        elif action == "nothing":
            self.answer(202, b"")
        else:
            self.answer(200, body)

    def answer(self, status: int, body: bytes, length: int | None = -1) -> None:
        self.send_response(status)
        if length is not None:
            self.send_header("content-length", str(len(body) if length < 0 else length))
        self.end_headers()
        with suppress(OSError):  # the client had enough
            self.wfile.write(body)
            self.wfile.flush()
