"""Model backends, and the one function that opens them by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from trustlab.models.base import Messages, Model, Request, TextOnly
from trustlab.paths import DATA

EMBEDDED = {
    "embedded": DATA / "models" / "embedded",
    "embedded-closed": DATA / "models" / "embedded-closed",
}
"""Short names of the models that live in the repository; each is opened as any other Hugging Face folder."""

CLOSED = ("embedded-closed",)
"""Those of them that show their words and no probabilities."""


def open_model(name: str, **options) -> Model:
    """Open a model: ``"embedded"``, ``"embedded-closed"``, ``"hf:NAME_OR_PATH"``, or ``"openai:NAME"``.

    ``hf:`` takes any Hugging Face causal language model, ``openai:`` a model behind any OpenAI-compatible server
    (``OPENAI_BASE_URL``, ``OPENAI_API_KEY``). ``options`` go to the backend (``device``, ``dtype``, ``batch_tokens``;
    ``base_url``, ``concurrency``, ``max_calls``). ``ValueError`` names what is allowed; ``FileNotFoundError``: the model is
    not there.
    """
    check_model_name(name)
    kind, _, rest = name.partition(":")
    if kind == "openai":
        from trustlab.models.openai import OpenAIModel

        return cast(
            Model, OpenAIModel(rest, **options)
        )  # its provides is read-only: it is found out when read
    if name in EMBEDDED and not EMBEDDED[name].is_dir():
        raise FileNotFoundError(
            f"there is no model {name!r}: its folder {EMBEDDED[name]} is missing"
        )
    from trustlab.models.huggingface import HuggingFaceModel

    model = HuggingFaceModel(
        EMBEDDED.get(name, rest), name=name if name in EMBEDDED else None, **options
    )
    return TextOnly(model) if name in CLOSED else model


def check_model_name(name: object) -> None:
    """``ValueError`` unless ``name`` has a form that :func:`open_model` takes; whether the model is there is not looked at."""
    kind, _, rest = name.partition(":") if isinstance(name, str) else ("", "", "")
    if name not in EMBEDDED and not (kind in ("hf", "openai") and rest):
        raise ValueError(
            f"model is {name!r}; allowed are {', '.join(EMBEDDED)}, hf:NAME_OR_PATH and openai:NAME"
        )


def open_models(names: str | Sequence[str], **options) -> list[Model]:
    """Open one model or several, in order; see :func:`open_model`."""
    return [open_model(name, **options) for name in ([names] if isinstance(names, str) else names)]


__all__ = [
    "CLOSED",
    "EMBEDDED",
    "Messages",
    "Model",
    "Request",
    "TextOnly",
    "check_model_name",
    "open_model",
    "open_models",
]
