"""Says what a request is, and what every model can do."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import yaml

from trustlab.models.abilities import Abilities
from trustlab.records import PARAMETERS, Reply, View

if TYPE_CHECKING:
    from trustlab.prompts import Prompts

Messages = tuple[tuple[str, str], ...]
"""(role, content) pairs; roles are ``system``, ``user`` and ``assistant``."""

Keep = Callable[[int, int, list[Reply]], None]
"""Takes the index of a request, of its first reply, and the replies."""
NOTHING: Mapping[str, Any] = MappingProxyType({})
TAUGHT = "prompts.yml"  # in a model's folder: how it was taught to be asked (taught_in)
STATISTICS = ("logprobs", "distributions", "prior")
"""What a request may want beside the text. ``distributions``: entropy, Rényi, Fisher-Rao,
self-certainty, alternatives."""


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


TAUGHT_CHOICES: dict[Any, Any] = {"set": ("embedded", "chat"), "free": (True, False)}
"""What a folder's :data:`TAUGHT` may hold: key -> allowed values."""


def taught_in(folder: Path | str) -> dict[str, Any]:
    """How a folder's model was taught to be asked, from its ``prompts.yml``; {} without one.
    ``set``: of its prompts; ``free``: nothing holds its replies to a form or ends one that repeats
    itself. ``ValueError`` for anything else in it."""
    file = Path(folder) / TAUGHT
    if not file.is_file():
        return {}
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    choices = content if isinstance(content, dict) else {"": content}
    for key, value in choices.items():
        if value not in TAUGHT_CHOICES.get(key, ()):
            raise ValueError(
                f"{file}: {key!r} is {value!r}; allowed are {TAUGHT_CHOICES}"
            )
    return choices


class Model:
    """What every model is. A backend of your own is a subclass with ``name``, ``revision`` and
    :meth:`generate`; all else has a default.

    - ``name`` is what tables show. ``revision`` names weights and options that shape replies; both
      are part of each kept reply's key.
    - ``provides``: "text", and which of :data:`STATISTICS`; ``lacks``: need -> why there is none.
    - ``window``: most tokens of prompt and reply together.
    - ``structured``: a reply is held to its request's schema. ``scores_text``: it scores a text
      that a request gives (``continuation``).
    - ``streams``: :meth:`generate` takes ``keep``, and is given everything at once.
    - ``thinking``, ``thinking_tokens``: how thought is told from the answer, and its budget.
    - ``taught``: how it was taught to be asked (:func:`taught_in`). ``prompts``: those to ask with.
    - ``asked_with``: options that are not the default; ``usage``: names to numbers; ``served``:
      replies by the model that a server names. All three reach the manifest.
    - ``waiting``: requests that wait in batch files; ``None``: it answers at once.
    - ``n_cut_prompts``: prompts that a server seems to have cut.
    - ``finds_out``: its abilities are found out by opening or asking it, so a cache keeps them;
      ``is_packaged``: it can be opened offline; ``settled``: its abilities, once they are known.
    """

    name: str
    revision: str
    provides: frozenset[str] = frozenset({"text"})
    lacks: Mapping[str, str] = NOTHING
    window: float = math.inf
    structured: bool = False
    scores_text: bool = False
    streams: bool = False
    thinking: str | Sequence[str] = "auto"
    thinking_tokens: int = 0
    taught: Mapping[str, Any] = NOTHING
    prompts: Prompts | None = None
    asked_with: Mapping[str, Any] = NOTHING
    usage: Mapping[str, float] = NOTHING
    served: Mapping[str, int] = NOTHING
    waiting: int | None = None
    n_cut_prompts: int = 0
    finds_out: bool = False
    is_packaged: bool = False
    settled: Abilities | None = None

    def generate(
        self, requests: Sequence[Request], *, keep: Keep | None = None
    ) -> list[list[Reply]]:
        """Answer every request with its ``n`` replies, in order.

        - A reply that could not be had has ``text`` ``None`` and the reason in ``missing``; one
          that was cut off has finish "length", also where its text is empty.
        - ``keep(i, k, replies)`` gets replies ``k`` and on of request ``i`` as they arrive; only a
          model that ``streams`` is called with it.
        """
        raise NotImplementedError(f"{type(self).__name__} has no generate")

    def count_tokens(self, messages: Messages) -> int | None:
        """Tokens of a prompt; ``None`` where the model does not count."""
        return None

    @property
    def abilities(self) -> Abilities:
        """What the model can do."""
        return Abilities(self.provides, self.lacks, self.window, counts=True)

    def recall(self, abilities: Abilities) -> None:
        """Take what was found out before, in place of finding it out again."""

    def next_step(self) -> str:
        """What to do about the requests that wait."""
        return ""

    @property
    def innermost(self) -> Model:
        """The backend itself, where this is a wrapper."""
        return self

    @staticmethod
    def check_options(options: Mapping[str, Any]) -> None:
        """``ValueError`` for options that contradict each other or are out of range."""
