"""Asks a local model in several processes, or on a cluster's workers."""

from __future__ import annotations

import pickle
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from socket import gethostname
from typing import Any, NamedTuple

from trustlab.cluster import Cluster, Facts
from trustlab.models.base import Keep, Messages, Model, Request
from trustlab.models.wrapper import Wrapper
from trustlab.processes import as_they_come, processes, seldom_collected
from trustlab.records import Reply
from trustlab.stops import Unlike

# distinct prompts given at once, whatever the processes: batches do not depend on it
CHUNK = 64


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
        requests_by_chunk = ([requests[i] for i in chunk] for chunk in chunks)
        if min(len(chunks), processes(self._n_jobs)) == 1:
            answers = (
                ChunkAnswer(k, self.model.generate(chunk), {})
                for k, chunk in enumerate(requests_by_chunk)
            )
        else:
            tasks = (
                (k, self._opened, self.revision, chunk)
                for k, chunk in enumerate(requests_by_chunk)
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


class WorkersModel(Model):
    """What the local model is that ``open_it`` opens on each worker of the cluster; they say it.
    :class:`SpreadModel` asks it."""

    scores_text = True
    finds_out = True

    def __init__(self, open_it: Callable[[], Model], workers: Cluster) -> None:
        """:class:`~trustlab.stops.Unlike`: it is another one on some worker, or cannot be opened
        there."""
        self._opened = pickle.dumps(open_it)
        self._workers = workers
        vars(self).update(workers.ask_each(_facts, self._opened, here={}))

    def count_tokens(self, messages: Messages) -> int | None:
        """Tokens of a prompt; a worker counts."""
        return self._workers.call(_count, self._opened, messages)


class ChunkAnswer(NamedTuple):
    """Which chunk, the replies to its requests, and what the model counted meanwhile."""

    chunk: int
    replies: list[list[Reply]]
    usage: dict[str, float]


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
    size = min(CHUNK, (len(prompts) + 1) // 2) or 1
    for start in range(0, len(prompts), size):
        chunk = []
        for messages in prompts[start : start + size]:
            chunk += places_of[messages]
        chunks.append(chunk)
    return chunks


# of a worker that answers questions about a model while another client's call opens it
OPENING = threading.Lock()


def open_once(opened: bytes) -> Any:
    """What a pickled function opens, with one thread, in a process of its own."""
    with OPENING:  # transformers opens one model at a time
        return _opened_by(opened)


@lru_cache(maxsize=4)  # two models may take turns, an encoder and a judge
@seldom_collected()
def _opened_by(opened: bytes) -> Any:
    open_it = pickle.loads(opened)
    import torch

    torch.set_num_threads(1)
    with warnings.catch_warnings(action="ignore"):  # the caller's own model has said it
        return open_it()


def _facts(opened: bytes) -> Facts:
    """What the model is that a worker opens."""
    model = open_once(opened)
    return {
        "name": model.name,
        "revision": model.revision,
        "provides": model.provides,
        "window": model.window,
        "structured": model.structured,
        "thinking": model.thinking,
        "thinking_tokens": model.thinking_tokens,
        "taught": model.taught,
        "asked_with": model.asked_with,
    }


def _count(opened: bytes, messages: Messages) -> int | None:
    return open_once(opened).count_tokens(messages)


def _answer(
    k: int, opened: bytes, revision: str, requests: list[Request]
) -> ChunkAnswer:
    """Answer chunk ``k`` in a process of its own."""
    model = open_once(opened)
    if model.revision != revision:
        raise Unlike(f"{gethostname()} opens {model.revision}, and not {revision}")
    model.usage.clear()
    replies = model.generate(requests)
    return ChunkAnswer(k, replies, dict(model.usage))
