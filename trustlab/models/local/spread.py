"""Asks a local model in several processes."""

from __future__ import annotations

import pickle
import warnings
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from trustlab.models.base import Keep, Messages, Model, Request
from trustlab.models.wrapper import Wrapper
from trustlab.processes import as_they_come, processes, seldom_collected
from trustlab.records import Reply

CHUNK = 64  # distinct prompts given at once, whatever the processes: batches do not depend on it


class SpreadModel(Wrapper):
    """The model of ``opened`` (name or path, and options of its backend) in ``n_jobs`` processes,
    each of which opens it for itself; all else is ``model``'s. Replies come as they are done."""

    def __init__(self, model: Model, opened: tuple[str, dict[str, Any]], n_jobs: int) -> None:
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
        tell = keep or (lambda i, first, replies: None)
        sharing: dict[Messages, list[int]] = {}
        for i, request in enumerate(requests):
            sharing.setdefault(request.messages, []).append(i)
        # The replies of a batch, and its prompts, are about as long.
        most = {m: max(requests[i].max_tokens for i in at) for m, at in sharing.items()}
        groups = sorted(sharing, key=lambda m: (most[m], sum(len(c) for _, c in m)), reverse=True)
        starts = range(0, len(groups), CHUNK)
        chunks = [[i for m in groups[k : k + CHUNK] for i in sharing[m]] for k in starts]
        each = ([requests[i] for i in chunk] for chunk in chunks)
        if len(chunks) == 1 or processes(self._n_jobs) == 1:
            done = ((k, self.model.generate(some), {}) for k, some in enumerate(each))
        else:
            asked = ((k, self._opened, some) for k, some in enumerate(each))
            done = as_they_come(_asked, asked, self._n_jobs)
        replies: list[list[Reply]] = [[] for _ in requests]
        for k, answers, usage in done:
            for i, row in zip(chunks[k], answers, strict=True):
                replies[i] = row
                tell(i, 0, row)
            self.model.usage = Counter(self.model.usage) + Counter(usage)
        return replies


@lru_cache(maxsize=2)  # two models may take turns
@seldom_collected()
def _open(opened: bytes) -> Any:
    import torch

    from trustlab.models.local.huggingface import HuggingFaceModel

    torch.set_num_threads(1)
    source, options = pickle.loads(opened)
    with warnings.catch_warnings(action="ignore"):  # the caller's own model has said it
        return HuggingFaceModel(source, **options)


def _asked(
    k: int, opened: bytes, requests: list[Request]
) -> tuple[int, list[list[Reply]], dict[str, float]]:
    """In a process of its own: chunk ``k``, its replies, and what the model counted meanwhile."""
    model = _open(opened)
    model.usage.clear()
    return k, model.generate(requests), dict(model.usage)
