"""Model backends, and the one function that opens them by name."""

from __future__ import annotations

from trustlab.models.base import Messages, Model, Request
from trustlab.paths import DATA

EMBEDDED = {"embedded": DATA / "models" / "embedded"}
"""Short names of the models that live in the repository; each is opened as any other Hugging Face folder."""


def open_model(name: str, **options) -> Model:
    """Open a model: ``"embedded"``, or ``"hf:NAME_OR_PATH"`` for any Hugging Face causal language model.

    ``options`` go to the backend (``device``, ``dtype``, ``batch_tokens``). ``ValueError`` names what is allowed.
    """
    kind, _, rest = name.partition(":")
    if name in EMBEDDED or (kind == "hf" and rest):
        from trustlab.models.huggingface import HuggingFaceModel

        return HuggingFaceModel(EMBEDDED.get(name, rest), name=name if name in EMBEDDED else None, **options)
    raise ValueError(f"model is {name!r}; allowed are {', '.join(EMBEDDED)} and hf:NAME_OR_PATH")


__all__ = ["EMBEDDED", "Messages", "Model", "Request", "open_model"]
