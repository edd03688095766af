"""Says what a request is, and what every model can do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

import yaml

from trustlab.records import PARAMETERS, Reply, View

Messages = tuple[tuple[str, str], ...]
"""(role, content) pairs; roles are ``system``, ``user`` and ``assistant``."""

TAUGHT = "prompts.yml"  # in a model's folder: how it was taught to be asked (taught_in)
STATISTICS = ("logprobs", "distributions", "prior")
"""What a request may want beside the text. ``distributions``: entropy, Rényi, Fisher-Rao,
alternatives."""


class About(NamedTuple):
    """Whose request it is and how its reply is read: for the replies that a run's folder keeps.

    - ``level``: of a consultation the turn; ``None`` where it belongs to no level.
    - ``n_views``: how many views the request serves; the first of them is named.
    - ``diagnosis``: the one that is asked about, where one is.
    - ``reads``: what the reply says, ``None`` or an error for nothing; ``strictly``: the same in
      strict reading, where ``reads`` reads chat, too.
    """

    dataset: str
    case_id: str
    level: int | None
    n_views: int = 1
    diagnosis: str | None = None
    reads: Callable[[Reply], Any] | None = None
    strictly: Callable[[Reply], Any] | None = None

    @classmethod
    def of(cls, view: View, **more: Any) -> Self:
        """About what is shown of a case."""
        return cls(view.case.dataset, view.case.case_id, view.level, **more)


@dataclass(frozen=True)
class Request:
    """One question to a model.

    - ``temperature`` 0 is greedy. ``n`` replies are drawn from ``first`` on, reply i from a random
      stream that depends on ``seed``, i and the messages only: neither batch nor order matters.
    - ``want``: a subset of :data:`STATISTICS`. With "prior" the reply's tokens are scored under
      ``prior_messages``, too: the conversation without the patient information. With
      "distributions" come Rényi divergences of order ``renyi_alpha`` and ``n_alternatives`` listed
      tokens at each position.
    - ``schema``: the JSON schema of the reply, for a backend whose ``structured`` is true.
    - ``continuation``: this text is scored as the reply and none is drawn, by a backend whose
      ``scores_text`` is true.
    - ``purpose`` labels the call in tables, ``about`` says whose it is; neither reaches a model.
    """

    messages: Messages
    n: int = 1
    temperature: float = 0.0
    max_tokens: int = 32
    seed: int = 0
    want: frozenset[str] = frozenset()
    prior_messages: Messages | None = None
    purpose: str = ""
    renyi_alpha: float = PARAMETERS.renyi_alpha
    n_alternatives: int = PARAMETERS.n_alternatives
    first: int = 0
    schema: str | None = None
    continuation: str | None = None
    about: About | None = field(default=None, compare=False, repr=False)


def most_tokens(messages: Messages) -> int:
    """More tokens than a prompt of these messages can have: one a byte, and 512 of the template."""
    return 512 + sum(len(content.encode("utf-8", "replace")) for _, content in messages)


def taught_in(folder: Path | str) -> dict[str, Any]:
    """How a folder's model was taught to be asked, from its ``prompts.yml``; {} without one.
    ``set``: of its prompts; ``free``: nothing holds its replies to a form or ends one that repeats
    itself. ``ValueError`` for anything else in it."""
    if not (file := Path(folder) / TAUGHT).is_file():
        return {}
    found = yaml.safe_load(file.read_text(encoding="utf-8"))
    known: dict[Any, Any] = {"set": ("embedded", "chat"), "free": (True, False)}
    for key, value in (found if isinstance(found, dict) else {"": found}).items():
        if value not in known.get(key, ()):
            raise ValueError(f"{file}: {key!r} is {value!r}; allowed are {known}")
    return found


@runtime_checkable
class Model(Protocol):
    """A backend; ``name`` is what tables show.

    A reply that could not be had has ``text`` ``None`` and the reason in ``missing``; one that was
    cut off has finish "length", also where its text is empty. Where a backend has them, ``usage``
    (names to numbers) and ``asked_with`` (options that are not the default) reach the manifest; one
    whose ``streams`` is true takes ``keep`` (:data:`Keep`), and is asked for everything at once.
    """

    name: str
    revision: str

    @property
    def provides(self) -> frozenset[str]:
        """What it can give: "text", and which of :data:`STATISTICS`."""
        ...

    def generate(self, requests: Sequence[Request]) -> list[list[Reply]]:
        """Answer every request with its ``n`` replies, in order."""
        ...
