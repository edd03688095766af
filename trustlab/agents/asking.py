"""Makes a request of a prompt, and puts it to a model."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from trustlab.models.base import About, Model, Request, most_tokens
from trustlab.parsing.counts import both
from trustlab.parsing.schemas import schema_of, taught_schema_of
from trustlab.prompts import EMBEDDED, Prompts, prompts_of
from trustlab.records import Reading, Reply


def put(model: Model, requests: list[Request]) -> list[Reply]:
    """The first reply to each request; a model is not called for none."""
    return [row[0] for row in model.generate(requests)] if requests else []


def request(
    name: str,
    to: Model | Prompts,
    max_tokens: int,
    seed: int = 0,
    about: About | None = None,
    ids: Sequence[int] = (),
    **fill: Any,
) -> Request:
    """What prompt ``name`` asks, greedy; ``ids`` of its schema, ``fill`` as :func:`render`."""
    prompts = to if isinstance(to, Prompts) else prompts_of(to)
    schema = schema_of(name, fill.get("options", ()), ids)
    if prompts.folders[-1:] == EMBEDDED.folders:
        schema = taught_schema_of(
            name, fill.get("options", ()), fill.get("profile", "")
        )
    messages = prompts.render(name, **fill)
    return Request(
        messages,
        max_tokens=max_tokens,
        seed=seed,
        purpose=name,
        about=about,
        schema=schema,
    )


def read_by(
    about: About | None, read: Callable[..., Any], reading: Reading
) -> About | None:
    """``about``, and how the reply is read."""
    return about and about._replace(**both(read, reading))


def reply_room(model: Model, max_tokens: int) -> int:
    """Tokens a reply may take: ``max_tokens``, but at most a quarter of the model's window."""
    if math.isinf(model.window):
        return max_tokens
    return min(max_tokens, int(model.window) // 4)


def fits(model: Model, request: Request) -> bool:
    """Whether prompt, thought and reply fit the model's window, as far as it counts tokens."""
    room = model.window - request.max_tokens - model.thinking_tokens
    if most_tokens(request.messages) <= room:
        return True
    n_tokens = model.count_tokens(request.messages)
    return n_tokens is None or n_tokens <= room
