"""Servers that nobody here wrote, with a Hugging Face folder's model behind them, on loopback while
a block of code runs: llama-cpp-python's own, and vLLM."""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from trustlab.paths import ROOT

LLAMA_CPP, VLLM = (ROOT / ".venv" / name / "bin" / "python" for name in ("e2e", "vllm"))
"""The interpreters of the environments that `make test-e2e` makes: servers stay out of the main
one."""
START_S = 600.0
"""How long a server may take to open the model: vLLM takes a minute or more."""
F32 = "0"
"""ggml's number for float32: keys and values are else kept in half precision."""
QUIET = {
    "VLLM_CPU_KVCACHE_SPACE": "2", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "2",
    "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1",
}  # fmt: skip
"""vLLM's settings by the environment: two cores, no network."""
WINDOW = 1024
OF_VLLM = (
    "--dtype", "float32", "--enforce-eager", "--max-logprobs", "30",
    "--max-num-seqs", "64", "--max-num-batched-tokens", "32768", "--no-enable-chunked-prefill",
)  # fmt: skip
"""Without the last a request with a seed stops vLLM's engine for CPUs."""


@contextmanager
def llama_cpp(model: Path, scratch: Path, name: str) -> Iterator[str]:
    """Serve the folder ``model`` as ``name``, with its own tokenizer, or a GGUF file with the
    file's; yields the address, ending in /v1.

    ``scratch`` receives the converted file and the server's log. FileNotFoundError: the environment
    is not there. RuntimeError: the server did not start.
    """
    there(LLAMA_CPP)
    port = free_port()
    options: dict[str, object] = {"model_alias": name, "host": "127.0.0.1", "port": port}
    if model.suffix == ".gguf":
        options |= {"model": model, "n_ctx": 8192, "n_threads": 2, "logits_all": "true"}
    else:
        options["model"] = file = scratch / "model.gguf"
        subprocess.run([LLAMA_CPP, Path(__file__).with_name("convert.py"), model, file], check=True)
        options |= {"hf_pretrained_model_name_or_path": model, "n_ctx": 2048, "logits_all": "true"}
        options |= {"type_k": F32, "type_v": F32, "n_threads": 1, "n_threads_batch": 1}
    command = [str(LLAMA_CPP), "-m", "llama_cpp.server"]
    command += [str(x) for k, v in options.items() for x in (f"--{k}", v)]
    with started(command, port, scratch) as url:
        yield url


@contextmanager
def vllm(model: Path, scratch: Path, name: str, window: int = WINDOW) -> Iterator[str]:
    """The same by vLLM, on the CPU; ``window``: most tokens of prompt and reply."""
    there(VLLM)
    port = free_port()
    command = [str(VLLM.with_name("vllm")), "serve", str(model), "--served-model-name", name]
    command += ["--host", "127.0.0.1", "--port", str(port), *OF_VLLM]
    command += ["--max-model-len", str(window)]
    with started(command, port, scratch) as url:
        yield url


def there(python: Path) -> None:
    """FileNotFoundError unless the environment is there."""
    if not python.exists():
        raise FileNotFoundError(f"no {python}: `make test-e2e` makes it")


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextmanager
def started(command: Sequence[str], port: int, scratch: Path) -> Iterator[str]:
    """The address of the server that ``command`` starts, as soon as it answers."""
    log = scratch / "log.txt"
    with (
        log.open("w") as words,
        subprocess.Popen(
            command, stdout=words, stderr=subprocess.STDOUT, env=os.environ | QUIET
        ) as server,
    ):
        try:
            _wait(server, f"http://127.0.0.1:{port}/v1/models", log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()
            try:
                server.wait(30)
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
