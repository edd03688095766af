"""Says what a model turned out to be able to do."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Annotated, Any, cast

from pydantic import ConfigDict, Field

from trustlab.choices import check_no_key
from trustlab.models.base import Model, Request
from trustlab.records import Reply

Keep = Callable[[int, int, list[Reply]], None]  # request, index of the first reply, replies


@dataclass(frozen=True)
class Abilities:
    """What a backend had to find out of its model: which statistics it ``provides``, why it
    ``lacks`` others (need -> reason), its ``window`` in tokens (infinite: not known), whether it
    ``counts`` a prompt's tokens, takes a ``temperature``, holds a reply to a schema and gives
    ``several`` replies to one call. The fields are strict where a cache is read
    (:func:`trustlab.models.cache.decode_abilities`); those of an older version are passed over."""

    __pydantic_config__ = ConfigDict(strict=True, extra="ignore", allow_inf_nan=False)

    provides: frozenset[Annotated[str, Field(pattern="^(text|logprobs|distributions|prior)$")]]
    lacks: Mapping[str, str] = field(default_factory=dict)
    window: Annotated[float, Field(ge=1)] = math.inf
    counts: bool = False
    temperature: bool = True
    structured: bool = True
    several: bool = True


def finds_out(model: Any) -> bool:
    """Whether the model, or the one that it wraps, has to find out what it can do."""
    inner = model.model if isinstance(model, TextOnly) else model
    return isinstance(getattr(type(inner), "provides", None), property)


def abilities_of(model: Any) -> Abilities:
    """What the model says that it can do."""
    if (found := getattr(model, "abilities", None)) is not None:
        return found
    window, counts = getattr(model, "window", math.inf), hasattr(model, "count_tokens")
    return Abilities(model.provides, getattr(model, "lacks", {}), window, counts)


def not_default(backend: type[Any], given: Mapping[str, Any], beside: Collection[str]) -> Any:
    """The options of a backend that are not the default, without those ``beside`` its replies."""
    known = {n: p.default for n, p in signature(backend).parameters.items() if n not in beside}
    found = {n: given[n] for n, default in known.items() if given[n] != default}
    check_no_key("options", found)  # a run's manifest holds them
    return {n: sorted(v) if isinstance(v, Set) else v for n, v in found.items()}


SHOWN = (
    "window", "count_tokens", "usage", "streams", "structured", "thinking", "thinking_tokens",
    "asked_with", "waiting", "next_step", "taught",
)  # fmt: skip
"""What else of the wrapped model can be read, where it has it."""


class TextOnly:
    """``model`` with its token statistics hidden: the same words, no traces. ``name`` is what
    tables show, ``None`` the wrapped model's; ``revision`` is the wrapped model's with ``-text``.
    """

    provides: frozenset[str] = frozenset({"text"})

    def __init__(self, model: Model, name: str | None = None) -> None:
        self.model, self.name, self.revision = model, name or model.name, f"{model.revision}-text"

    def generate(self, requests: Sequence[Request], **named: Any) -> list[list[Reply]]:
        """Answer every request with its ``n`` replies, in order, as the model without ``want``."""
        asked = [replace(request, want=frozenset(), prior_messages=None) for request in requests]
        rows = self.model.generate(asked, **named)
        return [[replace(reply, trace=None) for reply in replies] for replies in rows]

    @property
    def abilities(self) -> Abilities:
        """Those of the wrapped model, text alone."""
        return replace(abilities_of(self.model), provides=self.provides, lacks={})

    @abilities.setter
    def abilities(self, found: Abilities) -> None:
        if finds_out(self.model):
            cast(Any, self.model).abilities = found

    def __getattr__(self, name: str) -> Any:
        if name in SHOWN:
            return getattr(self.model, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def too_long(name: str, window: float, n_tokens: int = 0) -> Reply:
    """The reply to a prompt that the model called ``name`` cannot read to its end."""
    why = f"the prompt is longer than the window of {name}, {window:.0f} tokens"
    return Reply(None, n_tokens_in=n_tokens, missing=why, finish="error")
