"""Asks a model by files, in OpenAI's batch format.

Running the same command again is the whole protocol. Who carries the load is the user's choice:
``vllm run-batch``, a service's batch interface, a cluster.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

from trustlab.models.server.openai import OpenAIModel
from trustlab.models.server.openai_wire import PATHS, Line, Outcome, field
from trustlab.models.thought import Thinking
from trustlab.paths import RUNS, whole

MOST_LINES, MOST_BYTES = 50_000, 190_000_000  # of one input file: services take no longer ones
TRIES = 3  # outputs that bring no answer, after which a request is missing
WAITS = "waits in a batch file"


class FileLine(Line):
    """Answers from the output files of ``folder``; what they lack is written to its input files.

    - ``in-001.jsonl`` and on: requests, each under a hash of its body.
    - ``out-001.jsonl``, ``error-001.jsonl`` and on: what came back of the input file with the same
      number. What it lacks there, or failed in passing, is written again: an output may be cut.
      Lines that are no JSON are counted in ``damaged``.
    """

    def __init__(self, folder: Path, **named: Any) -> None:
        super().__init__(**named)
        self.folder, self.damaged = folder, 0
        self.waiting: set[str] = set()
        self._lines: list[bytes] = []  # of the next input file
        self._n_bytes = 0
        self._places: dict[str, tuple[Path, int]] = {}
        self._failed: dict[str, Outcome] = {}
        self._pending: set[str] = set()  # in an input file without an output
        self._n_back = Counter[str]()  # input files with an output that each request stands in
        for pattern in ("out-*.jsonl", "error-*.jsonl"):
            for file in sorted(self.folder.glob(pattern)):
                for at, row in self._rows(file):
                    self._take(file, at, row)
        for file in self.folder.glob("in-*.jsonl"):
            names = [str(row.get("custom_id")) for _, row in self._rows(file)]
            number = file.name.removeprefix("in-")
            outputs = [self.folder / f"{kind}-{number}" for kind in ("out", "error")]
            if any(output.exists() for output in outputs):
                self._n_back.update(names)
            else:
                self._pending.update(names)

    def _rows(self, file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
        """Each line that is a JSON object, and where it begins."""
        at = 0
        with file.open("rb") as lines:
            for line in lines:
                try:
                    row = json.loads(line)
                except (ValueError, RecursionError):
                    row = None
                if isinstance(row, dict):
                    yield at, row
                else:
                    self.damaged += bool(line.strip())
                at += len(line)

    def _take(self, file: Path, at: int, row: Mapping[str, Any]) -> None:
        name = str(row.get("custom_id"))
        status, body = field(row, "response", "status_code"), field(row, "response", "body")
        if status == 200 and isinstance(body, dict) and not body.get("error"):
            self._places.setdefault(name, (file, at))
        else:
            error = row.get("error") or field(body, "error") or body
            self._failed[name] = self._refusal(status if type(status) is int else None, error)

    def _made(self, key: str) -> Any:
        """No client: nobody is called."""

    def _refusal(self, status: int | None, error: Any, pause: float = 0.0) -> Outcome:
        """What a line says; no server waits behind it."""
        outcome = super()._refusal(status, error)
        return replace(outcome, what=f"the batch: {outcome.what}") if status else outcome

    async def post(self, kind: str, body: Mapping[str, Any]) -> Outcome:
        """The answer that came back; else the request waits, and is written by :meth:`write`."""
        name = hashlib.sha256(json.dumps([kind, body], sort_keys=True).encode()).hexdigest()
        if name in self._places:
            file, at = self._places[name]
            with file.open("rb") as lines:
                lines.seek(at)
                answer = json.loads(lines.readline())["response"]["body"]
            return self._told(json.dumps(answer).encode())
        failed = self._failed.get(name)
        is_final = failed is not None and not failed.passing
        if is_final or self._n_back[name] >= TRIES:
            return failed or Outcome(what="the batch brought no answer")
        self.waiting.add(name)
        if name not in self._pending:
            row = {"custom_id": name, "method": "POST", "url": f"/v1{PATHS[kind]}", "body": body}
            self._write((json.dumps(row, ensure_ascii=False) + "\n").encode())
            self._pending.add(name)
        return Outcome(what=WAITS)

    def _write(self, line: bytes) -> None:
        if len(self._lines) == MOST_LINES or self._n_bytes + len(line) > MOST_BYTES:
            self.write()
        self._lines.append(line)
        self._n_bytes += len(line)

    def write(self) -> None:
        """Make an input file of what was asked for and is in none yet."""
        if not self._lines:
            return
        stems = [file.stem.removeprefix("in-") for file in self.folder.glob("in-*.jsonl")]
        numbers = [int(stem) for stem in stems if stem.isdigit()]
        name = f"in-{max(numbers, default=0) + 1:03}.jsonl"
        with whole(self.folder / name) as beside, beside.open("wb") as file:
            file.writelines(self._lines)
        self._lines, self._n_bytes = [], 0


class BatchModel(OpenAIModel):
    """A model behind files: :class:`FileLine` in place of a server.

    - ``batch_dir``: the folder of the files, made where it is absent; ``None``: ``runs/batch``.
    - ``provides``: what the server gives, since nothing can be tried out: some of "logprobs",
      "distributions", "prior"; the other options are those of
      :class:`~trustlab.models.server.openai.OpenAIModel`.

    Replies that wait are missing, and counted in ``waiting``; a study then ends with
    :class:`~trustlab.models.stops.Waiting`, whose words :meth:`next_step` gives.
    """

    def __init__(
        self, name: str, *, batch_dir: str | Path | None = None,
        provides: Sequence[str] = ("logprobs", "distributions"), window: int | None = None,
        n_top: int = 20, vocabulary_size: int | None = None,
        extra_body: Mapping[str, Any] | None = None, thinking: Thinking = "auto",
        thinking_tokens: int = 0, template_options: Mapping[str, Any] | None = None,
        temperature: str = "asked", structured: bool = False, limit: str = "max_tokens",
        without: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """Reads the files that are there. ``ValueError``: an option out of range."""
        given = dict(locals())
        options = {n: given[n] for n in signature(OpenAIModel).parameters if n in given}
        super().__init__(base_url="http://batch", max_retries=0, **options)
        folder = Path(batch_dir or RUNS / "batch").expanduser()
        folder.mkdir(parents=True, exist_ok=True)
        named = {"timeout_s": self._line.timeout_s, "concurrency": self._line.concurrency}
        self._line: FileLine = FileLine(folder, address=self._line.address, **named)

    def _miss(self, run: Any, outcome: Outcome) -> None:
        """Nothing: files are never gone."""

    @property
    def waiting(self) -> int | None:
        """Requests that this object put and that wait."""
        return len(self._line.waiting)

    def next_step(self) -> str:
        """Write what waits and is in no file yet; how many requests wait, in which files, and what
        to do now."""
        self._line.write()
        files = ", ".join(sorted(f.name for f in self._line.folder.glob("in-*.jsonl")))
        line, n = self._line, self.waiting
        damaged = f"; {line.damaged:,} lines there are no JSON" if line.damaged else ""
        return (
            f"{n:,} requests of {self.name} wait in {line.folder} ({files}{damaged}); run those"
            " without an output, such as: vllm run-batch -i in-001.jsonl -o out-001.jsonl"
            f" --model {self.name}; put what comes back beside them as out-001.jsonl, errors as"
            " error-001.jsonl, and give the same command again"
        )
