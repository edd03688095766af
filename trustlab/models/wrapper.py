"""Wraps a model: what a wrapper is not itself, the model in it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from trustlab.models.abilities import Abilities
from trustlab.models.base import NOTHING, Keep, Messages, Model, Request
from trustlab.records import Reply


class Wrapper(Model):
    """A model around another, ``model``: the same but where a subclass says otherwise. What the
    model can do is read when it is asked for, since opening it may take time; what waits in files
    is its :attr:`innermost`'s."""

    def __init__(self, model: Model) -> None:
        """``TypeError`` for what is no :class:`~trustlab.models.base.Model`."""
        if not isinstance(model, Model):
            raise TypeError(
                f"{model!r} is no model; it must be a trustlab.models.base.Model"
            )
        self.model = model
        self.name = model.name
        self.revision = model.revision
        self.structured = model.structured
        self.thinking = model.thinking
        self.thinking_tokens = model.thinking_tokens
        self.taught = model.taught
        self.asked_with = model.asked_with
        self.finds_out = model.finds_out
        self.is_packaged = model.is_packaged

    def generate(
        self, requests: Sequence[Request], *, keep: Keep | None = None
    ) -> list[list[Reply]]:
        """Answer every request with its ``n`` replies, in order."""
        if keep is None:
            return self.model.generate(requests)
        return self.model.generate(requests, keep=keep)

    def count_tokens(self, messages: Messages) -> int | None:
        """Tokens of a prompt; ``None`` where the model does not count."""
        return self.model.count_tokens(messages)

    def recall(self, abilities: Abilities) -> None:
        """Take what was found out before, in place of finding it out again."""
        self.model.recall(abilities)

    @property
    def innermost(self) -> Model:
        """The backend itself."""
        return self.model.innermost

    @property
    def abilities(self) -> Abilities:
        """What the model can do."""
        return self.model.abilities

    @property
    def provides(self) -> frozenset[str]:
        """What the model provides."""
        return self.model.provides

    @property
    def lacks(self) -> Mapping[str, str]:
        """Need -> why the model cannot meet it."""
        return self.model.lacks

    @property
    def window(self) -> float:
        """Most tokens of prompt and reply together."""
        return self.model.window

    @property
    def scores_text(self) -> bool:
        """Whether the model scores a text that a request gives."""
        return self.model.scores_text

    @property
    def streams(self) -> bool:
        """Whether the model takes ``keep``."""
        return self.model.streams

    @property
    def usage(self) -> Mapping[str, float]:
        """What the model counts."""
        return self.model.usage


class TextOnly(Wrapper):
    """``model`` with its token statistics hidden: the same words, no traces. ``name`` is what
    tables show, ``None`` the wrapped model's; ``revision`` is the wrapped model's with ``-text``.
    """

    def __init__(self, model: Model, name: str | None = None) -> None:
        super().__init__(model)
        self.name = name or model.name
        self.revision = f"{model.revision}-text"

    def generate(
        self, requests: Sequence[Request], *, keep: Keep | None = None
    ) -> list[list[Reply]]:
        """Answer every request with its ``n`` replies, in order, as the model without ``want``."""
        plain = [
            replace(request, want=frozenset(), prior_messages=None)
            for request in requests
        ]
        rows: list[list[Reply]] = []
        for replies in super().generate(plain, keep=keep):
            rows.append([replace(reply, trace=None) for reply in replies])
        return rows

    @property
    def abilities(self) -> Abilities:
        """What the wrapped model can do, without its statistics."""
        return replace(self.model.abilities, provides=self.provides, lacks=self.lacks)

    @property
    def provides(self) -> frozenset[str]:
        """The text, and no statistics."""
        return frozenset({"text"})

    @property
    def lacks(self) -> Mapping[str, str]:
        """No reasons: a hidden statistic has none of its own."""
        return NOTHING

    @property
    def scores_text(self) -> bool:
        """False: a scored text is a statistic."""
        return False
