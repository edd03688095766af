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
from pathlib import Path
from typing import Any, NamedTuple

from trustlab.models.server.openai import OpenAIModel
from trustlab.models.server.openai_wire import PATHS, Address, Line, Outcome, field
from trustlab.models.thought import Thinking
from trustlab.paths import RUNS, whole

MOST_LINES = 50_000  # of one input file: services take no longer ones
MOST_BYTES = 190_000_000  # of one input file
TRIES = 3  # outputs that bring no answer, after which a request is missing
WAITS = "waits in a batch file"


class _AnswerPlace(NamedTuple):
    """Where an answer is: its output file, and the byte at which its line begins."""

    file: Path
    start: int


class FileLine(Line):
    """Answers from the output files of ``folder``; what they lack is written to its input files.

    - ``in-001.jsonl`` and on: requests, each under a hash of its body.
    - ``out-001.jsonl``, ``error-001.jsonl`` and on: what came back of the input file with the same
      number. What it lacks there, or failed in passing, is written again: an output may be cut.
      Lines that are no JSON are counted in ``damaged``.
    """

    def __init__(
        self, folder: Path, address: Address, *, timeout_s: float, concurrency: int
    ) -> None:
        super().__init__(address, timeout_s=timeout_s, concurrency=concurrency)
        self.folder = folder
        self.damaged = 0
        self.waiting: set[str] = set()
        self._lines: list[bytes] = []  # of the next input file
        self._n_bytes = 0
        self._places: dict[str, _AnswerPlace] = {}
        self._failures: dict[str, Outcome] = {}
        self._pending: set[str] = set()  # in an input file without an output
        # input files with an output that each request stands in
        self._n_back = Counter[str]()
        for pattern in ("out-*.jsonl", "error-*.jsonl"):
            for file in sorted(self.folder.glob(pattern)):
                self._read_outputs(file)
        for file in self.folder.glob("in-*.jsonl"):
            self._read_inputs(file)

    def _read_inputs(self, file: Path) -> None:
        """Note an input file's requests: whether they are pending, or have come back once more."""
        names = [str(row.get("custom_id")) for _, row in self._rows(file)]
        number = file.name.removeprefix("in-")
        outputs = [self.folder / f"{kind}-{number}" for kind in ("out", "error")]
        if any(output.exists() for output in outputs):
            self._n_back.update(names)
        else:
            self._pending.update(names)

    def _read_outputs(self, file: Path) -> None:
        """Note where each answer of an output file is, and what failed."""
        for start, row in self._rows(file):
            name = str(row.get("custom_id"))
            status = field(row, "response", "status_code")
            body = field(row, "response", "body")
            if status == 200 and isinstance(body, dict) and not body.get("error"):
                self._places.setdefault(name, _AnswerPlace(file, start))
            else:
                http_status = status if type(status) is int else None
                error = row.get("error") or field(body, "error") or body
                self._failures[name] = self._refusal(http_status, error)

    def _rows(self, file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
        """Each line that is a JSON object, and the byte at which it begins."""
        start = 0
        with file.open("rb") as lines:
            for line in lines:
                try:
                    row = json.loads(line)
                except (ValueError, RecursionError):
                    row = None
                if isinstance(row, dict):
                    yield start, row
                elif line.strip():
                    self.damaged += 1
                start += len(line)

    def _open_client(self, key: str) -> Any:
        """No client: nobody is called."""

    def _refusal(self, status: int | None, error: Any, pause: float = 0.0) -> Outcome:
        """The outcome of a line without an answer; its words name the batch, not a server."""
        outcome = super()._refusal(status, error)
        if not status:
            return outcome
        return replace(outcome, what=f"the batch: {outcome.what}")

    async def post(self, kind: str, body: Mapping[str, Any]) -> Outcome:
        """The answer that came back; else the request waits, and is written by :meth:`write`."""
        content = json.dumps([kind, body], sort_keys=True)
        name = hashlib.sha256(content.encode()).hexdigest()
        if name in self._places:
            place = self._places[name]
            with place.file.open("rb") as lines:
                lines.seek(place.start)
                row = json.loads(lines.readline())
            return self._outcome_of(json.dumps(row["response"]["body"]).encode())
        failure = self._failures.get(name)
        is_final = failure is not None and not failure.may_pass_later
        if is_final or self._n_back[name] >= TRIES:
            return failure or Outcome(what="the batch brought no answer")
        self.waiting.add(name)
        if name not in self._pending:
            row = {
                "custom_id": name,
                "method": "POST",
                "url": f"/v1{PATHS[kind]}",
                "body": body,
            }
            line = json.dumps(row, ensure_ascii=False) + "\n"
            self._write(line.encode())
            self._pending.add(name)
        return Outcome(what=WAITS)

    def _write(self, line: bytes) -> None:
        """Add a line to the next input file, or to the one after it where that one is full."""
        n_bytes = self._n_bytes + len(line)
        if len(self._lines) == MOST_LINES or n_bytes > MOST_BYTES:
            self.write()
        self._lines.append(line)
        self._n_bytes += len(line)

    def write(self) -> None:
        """Make an input file of the requests that are in none yet."""
        if not self._lines:
            return
        stems = [
            file.stem.removeprefix("in-") for file in self.folder.glob("in-*.jsonl")
        ]
        numbers = [int(stem) for stem in stems if stem.isdigit()]
        number = max(numbers, default=0) + 1
        file = self.folder / f"in-{number:03}.jsonl"
        with whole(file) as beside, beside.open("wb") as stream:
            stream.writelines(self._lines)
        self._lines = []
        self._n_bytes = 0


class BatchModel(OpenAIModel):
    """A model behind files: :class:`FileLine` in place of a server.

    - ``batch_dir``: the folder of the files, made where it is absent; ``None``: ``runs/batch``.
    - ``provides``: what the server gives, since nothing can be tried out: some of "logprobs",
      "distributions", "prior"; the other options are those of
      :class:`~trustlab.models.server.openai.OpenAIModel`.

    Replies that wait are missing, and counted in ``waiting``; a study then ends with
    :class:`~trustlab.stops.Waiting`, whose words :meth:`next_step` gives.
    """

    def __init__(  # noqa: PLR0913
        self, name: str, *, batch_dir: str | Path | None = None,
        provides: Sequence[str] = ("logprobs", "distributions"), window: int | None = None,
        n_top: int = 20, vocabulary_size: int | None = None,
        extra_body: Mapping[str, Any] | None = None, thinking: Thinking = "auto",
        thinking_tokens: int = 0, template_options: Mapping[str, Any] | None = None,
        temperature: str = "asked", structured: bool = False, limit: str = "max_tokens",
        without: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """Reads the files that are there. ``ValueError``: an option out of range."""
        super().__init__(
            name,
            base_url="http://batch",
            max_retries=0,
            n_top=n_top,
            vocabulary_size=vocabulary_size,
            extra_body=extra_body,
            provides=provides,
            thinking=thinking,
            thinking_tokens=thinking_tokens,
            template_options=template_options,
            temperature=temperature,
            window=window,
            structured=structured,
            limit=limit,
            without=without,
        )
        folder = Path(batch_dir or RUNS / "batch").expanduser()
        folder.mkdir(parents=True, exist_ok=True)
        line = self._line
        self._line: FileLine = FileLine(
            folder, line.address, timeout_s=line.timeout_s, concurrency=line.concurrency
        )

    def _count_lost_call(self, run: Any, outcome: Outcome) -> None:
        """Nothing: files are never gone."""

    @property
    def waiting(self) -> int | None:
        """How many requests of this object wait for their answer."""
        return len(self._line.waiting)

    def next_step(self) -> str:
        """Write what waits and is in no file yet; how many requests wait, in which files, and what
        to do now."""
        line = self._line
        line.write()
        files = ", ".join(sorted(file.name for file in line.folder.glob("in-*.jsonl")))
        damaged = f"; {line.damaged:,} lines there are no JSON" if line.damaged else ""
        return (
            f"{self.waiting:,} requests of {self.name} wait in {line.folder} ({files}{damaged});"
            " run those without an output, such as: vllm run-batch -i in-001.jsonl -o out-001.jsonl"
            f" --model {self.name}; put what comes back beside them as out-001.jsonl, errors as"
            " error-001.jsonl, and give the same command again"
        )
