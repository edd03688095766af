"""A small web server on the loopback interface that hands out files, well or badly, and remembers
who asked."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGE = b"\n<!DOCTYPE html>\n<html><body>Please log in.</body></html>"


@dataclass
class FileServer:
    """``files``: path -> content, to be set by a test.

    ``plan(k)`` names what happens to the k-th request (from 0): None for the file, a number for
    that HTTP status, or one of "cut" (half of it, then the connection dies), "corrupt" (a bit
    flipped), "truncated" (half, announced as the whole), "too long" (announced longer than it is),
    "endless" (far more than the file, unannounced), "page" (a login page), "pointer" (git-LFS) or
    "nothing" (status 202 without a body).
    """

    files: dict[str, bytes]
    plan: Callable[[int], str | int | None] = lambda k: None
    asked: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    url: str = ""

    def __enter__(self) -> FileServer:
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, self))
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


class Handler(BaseHTTPRequestHandler):
    """One request; HTTP/1.0, so that the connection's end ends a body whose length was not
    announced."""

    def __init__(self, server: FileServer, *args) -> None:
        self.behaviour = server
        super().__init__(*args)

    def log_message(self, format: str, *args) -> None:
        pass

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
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif action == "corrupt":
            self.answer(200, body[:-1] + bytes([body[-1] ^ 1]))
        elif action == "truncated":
            self.answer(200, body[: len(body) // 2])
        elif action == "too long":
            self.answer(200, body, length=len(body) + 10)
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
        try:
            self.wfile.write(body)
            self.wfile.flush()
        except OSError:  # the client had enough
            pass
