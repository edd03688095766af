"""Asks a local model in several processes."""

from __future__ import annotations

import pickle
import warnings
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from trustlab.models.base import Keep, Messages, Model, Request
from trustlab.models.wrapper import Wrapper
from trustlab.processes import as_they_come, processes, seldom_collected
from trustlab.records import Reply

# distinct prompts given at once, whatever the processes: batches do not depend on it
CHUNK = 64


class SpreadModel(Wrapper):
    """The model of ``opened`` (name or path, and options of its backend) in ``n_jobs`` processes,
    each of which opens it for itself; all else is ``model``'s. Replies come as they are done."""

    def __init__(
        self, model: Model, opened: tuple[str, dict[str, Any]], n_jobs: int
    ) -> None:
        super().__init__(model)
        self._opened = pickle.dumps(opened)
        self._n_jobs = n_jobs

    @property
    def streams(self) -> bool:
        """True: replies come as they are done."""
        return True

    def generate(
        self, requests: Sequence[Request], *, keep: Keep | None = None
    ) -> list[list[Reply]]:
        """Answer every request with its ``n`` replies, in order; as the model."""
        chunks = chunks_of(requests)
        requests_by_chunk = ([requests[i] for i in chunk] for chunk in chunks)
        if len(chunks) == 1 or processes(self._n_jobs) == 1:
            answers = (
                ChunkAnswer(k, self.model.generate(chunk), {})
                for k, chunk in enumerate(requests_by_chunk)
            )
        else:
            tasks = (
                (k, self._opened, chunk) for k, chunk in enumerate(requests_by_chunk)
            )
            answers = as_they_come(_answer, tasks, self._n_jobs)
        replies: list[list[Reply]] = [[] for _ in requests]
        for answer in answers:
            for i, row in zip(chunks[answer.chunk], answer.replies, strict=True):
                replies[i] = row
                if keep is not None:
                    keep(i, 0, row)
            self.model.usage = Counter(self.model.usage) + Counter(answer.usage)
        return replies


class ChunkAnswer(NamedTuple):
    """Which chunk, the replies to its requests, and what the model counted meanwhile."""

    chunk: int
    replies: list[list[Reply]]
    usage: dict[str, float]


def chunks_of(requests: Sequence[Request]) -> list[list[int]]:
    """The requests in chunks of :data:`CHUNK` prompts, the longest first, by their places: the
    replies of a batch, and its prompts, are about as long."""
    places_of = {}
    for i, request in enumerate(requests):
        places_of.setdefault(request.messages, []).append(i)

    def lengths(messages: Messages) -> tuple[int, int]:
        n_tokens = max(requests[i].max_tokens for i in places_of[messages])
        n_characters = sum(len(content) for _, content in messages)
        return n_tokens, n_characters

    prompts = sorted(places_of, key=lengths, reverse=True)
    chunks = []
    for start in range(0, len(prompts), CHUNK):
        chunk = []
        for messages in prompts[start : start + CHUNK]:
            chunk += places_of[messages]
        chunks.append(chunk)
    return chunks


@lru_cache(maxsize=2)  # two models may take turns
@seldom_collected()
def _open(opened: bytes) -> Any:
    import torch

    from trustlab.models.local.huggingface import HuggingFaceModel

    torch.set_num_threads(1)
    source, options = pickle.loads(opened)
    with warnings.catch_warnings(action="ignore"):  # the caller's own model has said it
        return HuggingFaceModel(source, **options)


def _answer(k: int, opened: bytes, requests: list[Request]) -> ChunkAnswer:
    """Answer chunk ``k`` in a process of its own."""
    model = _open(opened)
    model.usage.clear()
    replies = model.generate(requests)
    return ChunkAnswer(k, replies, dict(model.usage))
