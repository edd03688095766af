"""Says what a model turned out to be able to do."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, field
from inspect import signature
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from trustlab.choices import check_no_key
from trustlab.records import Reply


@dataclass(frozen=True)
class Abilities:
    """What a backend had to find out of its model.

    - ``provides``: which statistics; ``lacks``: need -> why there is none.
    - ``window``: in tokens; infinite: not known. ``counts``: whether it counts a prompt's tokens.
    - ``temperature``, ``structured``, ``several``: whether it takes a temperature, holds a reply to
      a schema, gives several replies to one call.

    The fields are strict where a cache is read (:func:`trustlab.models.cache.decode_abilities`);
    those of an older version are passed over.
    """

    __pydantic_config__ = ConfigDict(strict=True, extra="ignore", allow_inf_nan=False)

    provides: frozenset[
        Annotated[str, Field(pattern="^(text|logprobs|distributions|prior)$")]
    ]
    lacks: Mapping[str, str] = field(default_factory=dict)
    window: Annotated[float, Field(ge=1)] = math.inf
    counts: bool = False
    temperature: bool = True
    structured: bool = True
    several: bool = True


def not_default(
    backend: type[Any], options: Mapping[str, Any], beside: Collection[str]
) -> Any:
    """The options of a backend that are not the default, without those ``beside`` its replies."""
    changed: dict[str, Any] = {}
    for name, parameter in signature(backend).parameters.items():
        value = options[name]
        if name not in beside and value != parameter.default:
            changed[name] = sorted(value) if isinstance(value, Set) else value
    check_no_key("options", changed)  # a run's manifest holds them
    return changed


def too_long(name: str, window: float, n_tokens: int = 0) -> Reply:
    """The reply to a prompt that the model called ``name`` cannot read to its end."""
    why = f"the prompt is longer than the window of {name}, {window:.0f} tokens"
    return Reply(None, n_tokens_in=n_tokens, missing=why, finish="error")
