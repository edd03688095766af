"""How well an embedded model asks, answers as a patient and words anew, on generated patients it
never met."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from trustlab.models.base import Model, Request
from trustlab.parsing.reply import groups

from .replies import TALK
from .talk import UNKNOWN, Row
from .world import World

SEED = 77_002
N = 200
"""Examples of each skill."""


def talk_report(world: World, model: Model, n: int = N) -> dict[str, Any]:
    """For each skill the share of replies that are right, and what else can be said of it; ``n``
    examples each."""
    measures: Mapping[str, Callable[[list[Row], list[str]], dict[str, float | None]]] = {
        "ask": _ask,
        "enough": _right,
        "patient": _patient,
        "rephrase_reply": _right,
        "rephrase_question": _right,
    }
    found: dict[str, Any] = {"examples_of_each": n}
    for k, (skill, measure) in enumerate(measures.items()):
        rng = np.random.default_rng([SEED, k])
        rows = [TALK[skill](world, rng)[1] for _ in range(n)]
        requests = [Request(messages, max_tokens=64) for messages, _, _ in rows]
        said = [
            next((f"[{g.text}]" for g in groups(r[0].text or "")), "")
            for r in model.generate(requests)
        ]
        found[skill] = measure(rows, said)
    return found


def _right(rows: list[Row], said: list[str]) -> dict[str, float | None]:
    return {
        "right": _share([text in options for (*_, options), text in zip(rows, said, strict=True)])
    }


def _ask(rows: list[Row], said: list[str]) -> dict[str, float | None]:
    """Among the best five; the best; not asked before."""
    again = [
        f"Doctor: {text[1:-1]}\n" in messages[1][1]
        for (messages, *_), text in zip(rows, said, strict=True)
    ]
    best = [
        text == max(options, key=lambda o: options[o])
        for (*_, options), text in zip(rows, said, strict=True)
    ]
    return _right(rows, said) | {"best": _share(best), "asked_before": _share(again)}


def _patient(rows: list[Row], said: list[str]) -> dict[str, float | None]:
    """Right where a fact answers, and where none does."""
    unknown = f"[{UNKNOWN}]"
    known = [
        text == reply for (_, reply, _), text in zip(rows, said, strict=True) if reply != unknown
    ]
    open_ = [
        text == unknown for (_, reply, _), text in zip(rows, said, strict=True) if reply == unknown
    ]
    return _right(rows, said) | {
        "right_where_known": _share(known),
        "right_where_unknown": _share(open_),
    }


def _share(hits: list[bool]) -> float | None:
    return round(float(np.mean(hits)), 4) if hits else None
