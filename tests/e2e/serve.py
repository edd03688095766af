"""llama-cpp-python's own server, serving a Hugging Face folder's model on loopback while a block of
code runs."""

from __future__ import annotations

import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trustlab.paths import ROOT

PYTHON = ROOT / ".venv" / "e2e" / "bin" / "python"
"""The interpreter of the environment that `make test-e2e` makes: llama.cpp stays out of the main
one."""
START_S = 120.0
"""How long the server may take to open the model."""
F32 = "0"
"""ggml's number for float32: keys and values are else kept in half precision."""


@contextmanager
def serving(model: Path, scratch: Path, *, name: str, window: int) -> Iterator[str]:
    """Serve the folder ``model`` as ``name``, with its own tokenizer; yields the address, ending in
    /v1.

    ``scratch`` receives the converted file and the server's log. FileNotFoundError: the environment
    is not there. RuntimeError: the server did not start.
    """
    if not PYTHON.exists():
        raise FileNotFoundError(f"no {PYTHON}: `make test-e2e` makes it")
    file, log = scratch / "model.gguf", scratch / "log.txt"
    subprocess.run([PYTHON, Path(__file__).with_name("convert.py"), model, file], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = {
        "model": file, "model_alias": name, "hf_pretrained_model_name_or_path": model,
        "host": "127.0.0.1", "port": port, "n_ctx": window, "logits_all": "true", "type_k": F32,
        "type_v": F32, "n_threads": 1, "n_threads_batch": 1,
    }  # fmt: skip
    command = [
        str(PYTHON),
        "-m",
        "llama_cpp.server",
        *(str(x) for k, v in options.items() for x in (f"--{k}", v)),
    ]
    with (
        log.open("w") as words,
        subprocess.Popen(command, stdout=words, stderr=subprocess.STDOUT) as server,
    ):
        try:
            _wait(server, f"http://127.0.0.1:{port}/v1/models", log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()


def _wait(server: subprocess.Popen[bytes], address: str, log: Path) -> None:
    deadline = time.monotonic() + START_S
    while server.poll() is None and time.monotonic() < deadline:
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.2)
    raise RuntimeError(f"the server did not start: {log.read_text(errors='replace')[-2000:]}")
