"""Calls of studies with everything by name: what is no argument of the study goes to its Setup."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, TypeVar

from trustlab.settings import Setup

T = TypeVar("T")


def ask(study: Callable[..., T], *given: Any, **named: Any) -> T:
    """What ``study`` makes of these, quietly."""
    own = signature(study).parameters
    choices: dict[str, Any] = {"quiet": True} | {
        name: of for name, of in named.items() if name not in own
    }
    mine = {name: of for name, of in named.items() if name in own}
    return study(*given, setup=Setup(**choices), **mine)
