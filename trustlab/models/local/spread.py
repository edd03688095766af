"""Asks a local model in several processes, or on a cluster's workers."""

from __future__ import annotations

import math
import pickle
import socket
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from trustlab.cluster import Cluster
from trustlab.models.base import Keep, Messages, Model, Request
from trustlab.models.wrapper import Wrapper
from trustlab.processes import as_they_come, is_alone, seldom_collected
from trustlab.records import Reply
from trustlab.stops import Stopped, Unlike

# distinct prompts given at once, whatever the processes: batches do not depend on it
CHUNK = 64
FACTS = (
    "name",
    "revision",
    "provides",
    "lacks",
    "window",
    "structured",
    "thinking",
    "thinking_tokens",
    "taught",
    "asked_with",
)
"""What a cluster's client takes from the model of its workers."""


class SpreadModel(Wrapper):
    """The model that ``open_it`` opens in ``n_jobs`` processes, in each for itself; all else is
    ``model``'s. Replies come as they are done."""

    def __init__(self, model: Model, open_it: Callable[[], Model], n_jobs: int) -> None:
        super().__init__(model)
        self._opened = pickle.dumps(open_it)
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
        if is_alone(self._n_jobs, len(chunks)):
            answers = (
                ChunkAnswer(k, self.model.generate(chunk_requests), {})
                for k, chunk_requests in _tasks(requests, chunks)
            )
        else:
            tasks = _tasks(requests, chunks, self._opened, self.revision)
            answers = as_they_come(_answer, tasks, self._n_jobs)
        return _gathered(self.model, answers, chunks, keep)


class ClusterModel(Model):
    """The model that ``open_it`` opens on each worker of a cluster; what it is, they say."""

    streams = True
    scores_text = True
    finds_out = True

    def __init__(self, open_it: Callable[[], Model], cluster: Cluster) -> None:
        """:class:`~trustlab.stops.Unlike`: it is another one on some worker, or cannot be opened
        there."""
        self._opened = pickle.dumps(open_it)
        self._cluster = cluster
        facts = cluster.ask_each(_facts, self._opened)
        for fact, value in facts.items():
            setattr(self, fact, value)

    def generate(
        self, requests: Sequence[Request], *, keep: Keep | None = None
    ) -> list[list[Reply]]:
        """Answer every request with its ``n`` replies, in order; as the model."""
        chunks = chunks_of(requests)
        tasks = _tasks(requests, chunks, self._opened, self.revision)
        completed = self._cluster.completed(_answer, tasks)
        answers = (answer for _, answer in completed)
        return _gathered(self, answers, chunks, keep)

    def count_tokens(self, messages: Messages) -> int | None:
        """Tokens of a prompt; a worker counts."""
        return self._cluster.call(_count, self._opened, messages)


class ChunkAnswer(NamedTuple):
    """Which chunk, the replies to its requests, and what the model counted meanwhile."""

    chunk: int
    replies: list[list[Reply]]
    usage: dict[str, float]


def _tasks(
    requests: Sequence[Request], chunks: Iterable[Sequence[int]], *more: Any
) -> Iterator[tuple[Any, ...]]:
    """Of each chunk its number, what is given of ``more``, and its requests."""
    for k, chunk in enumerate(chunks):
        yield (k, *more, [requests[i] for i in chunk])


def _gathered(
    model: Model,
    answers: Iterable[ChunkAnswer],
    chunks: Sequence[Sequence[int]],
    keep: Keep | None,
) -> list[list[Reply]]:
    """The replies to all requests, in order, as their chunks come; ``model`` counts."""
    replies: list[list[Reply]] = [[] for chunk in chunks for _ in chunk]
    try:
        for answer in answers:
            for i, row in zip(chunks[answer.chunk], answer.replies, strict=True):
                replies[i] = row
                if keep is not None:
                    keep(i, 0, row)
            model.usage = Counter(model.usage) + Counter(answer.usage)
    except Stopped as stopped:
        stopped.replies = replies
        raise
    return replies


def chunks_of(requests: Sequence[Request]) -> list[list[int]]:
    """The requests in chunks of at most :data:`CHUNK` prompts, and at least two, the longest first,
    by their places: the replies of a batch, and its prompts, are about as long."""
    places_of = {}
    for i, request in enumerate(requests):
        places_of.setdefault(request.messages, []).append(i)

    def lengths(messages: Messages) -> tuple[int, int]:
        n_tokens = max(requests[i].max_tokens for i in places_of[messages])
        n_characters = sum(len(content) for _, content in messages)
        return n_tokens, n_characters

    prompts = sorted(places_of, key=lengths, reverse=True)
    chunks = []
    size = max(1, min(CHUNK, math.ceil(len(prompts) / 2)))
    for start in range(0, len(prompts), size):
        chunk = []
        for messages in prompts[start : start + size]:
            chunk += places_of[messages]
        chunks.append(chunk)
    return chunks


@lru_cache(maxsize=2)  # two models may take turns
@seldom_collected()
def _open(opened: bytes) -> Any:
    open_it = pickle.loads(opened)
    import torch

    torch.set_num_threads(1)
    with warnings.catch_warnings(action="ignore"):  # the caller's own model has said it
        return open_it()


def _facts(opened: bytes) -> dict[str, Any]:
    """What the model is that a worker opens."""
    model = _open(opened)
    facts = {}
    for fact in FACTS:
        value = getattr(model, fact)
        if isinstance(value, Mapping):
            value = dict(value)  # a view of one does not travel
        facts[fact] = value
    return facts


def _count(opened: bytes, messages: Messages) -> int | None:
    return _open(opened).count_tokens(messages)


def _answer(
    k: int, opened: bytes, revision: str, requests: list[Request]
) -> ChunkAnswer:
    """Answer chunk ``k`` in a process of its own."""
    model = _open(opened)
    if model.revision != revision:
        other = f"{model.revision} at {socket.gethostname()}, and not {revision}"
        raise Unlike(f"the model {model.name} is {other}")
    model.usage.clear()
    replies = model.generate(requests)
    return ChunkAnswer(k, replies, dict(model.usage))
