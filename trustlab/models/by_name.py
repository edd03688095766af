"""Opens a model by its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

from trustlab.models.base import Model, taught_in
from trustlab.models.local.opening import Later, local_model, may_have_gpu
from trustlab.models.wrapper import TextOnly
from trustlab.paths import DATA
from trustlab.processes import seldom_collected

CLINIC = "embedded-clinic"
DIAGNOSING = ("embedded", "embedded-closed", "embedded-overconfident")
"""Those that diagnose, say how sure they are and weigh evidence; the other tasks (doctor, reviewer,
questions, a patient's voice, new wordings) :data:`CLINIC` was taught."""
EMBEDDED = {name: DATA / "models" / name for name in (*DIAGNOSING, CLINIC)}
CLOSED = ("embedded-closed",)  # those of them that show their words and no probabilities
SERVED = ("openai", "openai-batch")
"""Kinds of models behind a server, by calls and by files."""
NOT_OPTIONS = {"name", "name_or_path"}  # parameters of backends that a model's name gives


def open_model(name: str, *, n_jobs: int = 1, **options) -> Model:
    """Open a model: one of :data:`EMBEDDED`, ``"hf:NAME_OR_PATH"``, ``"openai:NAME"``, or
    ``"openai-batch:NAME"``.

    - ``hf:`` is any Hugging Face causal language model, or a GGUF file (or a folder with one),
      whose weights are opened as float32. ``openai:`` is a model behind any OpenAI-compatible
      server (``OPENAI_BASE_URL``, ``OPENAI_API_KEY``), ``openai-batch:`` one asked by files.
    - ``n_jobs``: processes that ask a local model on the CPU (-1: all); each loads it into memory.
    - ``options`` go to the backend (``device``, ``dtype``; ``base_url``, ``max_calls``).

    ``ValueError`` names what is allowed; ``FileNotFoundError``: there is no such model.
    """
    check_model_name(name)
    kind, _, rest = name.partition(":")
    if kind in SERVED:
        backend: Any = backend_of(name)
        return backend(rest, **options)
    if name in EMBEDDED and not EMBEDDED[name].is_dir():
        missing = f"its folder {EMBEDDED[name]} is missing"
        raise FileNotFoundError(f"there is no model {name!r}: {missing}")
    opened = partial(_opened, EMBEDDED.get(name, rest), n_jobs, options)
    if name not in EMBEDDED:
        return opened()
    opened = partial(opened, name=name)
    taught = options.get("structured") == "taught"
    others = options.keys() - {"batch_tokens"} - ({"structured"} if taught else set())
    if others or may_have_gpu():
        model = opened()
    else:
        model = Later(name, EMBEDDED[name], opened, taught=taught)
    return TextOnly(model) if name in CLOSED else model


@seldom_collected()
def _opened(source: Any, n_jobs: int, options: dict[str, Any], name: str | None = None) -> Any:
    from trustlab.models.local.huggingface import HuggingFaceModel

    options = options | {"name": name}
    model = HuggingFaceModel(source, **options)
    if n_jobs != 1 and model.device == "cpu" and options.get("device_map") is None:
        from trustlab.models.local.spread import SpreadModel

        return SpreadModel(model, (str(source), options), n_jobs)
    return model


def check_model_name(name: object) -> None:
    """``ValueError`` unless :func:`open_model` takes a name of this form, or the form of what is
    there; ``FileNotFoundError`` for a path to nothing. Hub and servers are not asked."""
    kind, _, rest = name.partition(":") if isinstance(name, str) else ("", "", "")
    if name not in EMBEDDED and not (kind in ("hf", *SERVED) and rest):
        allowed = f"{', '.join(EMBEDDED)}, hf:NAME_OR_PATH, openai:NAME and openai-batch:NAME"
        raise ValueError(f"model is {name!r}; allowed are {allowed}")
    if kind == "hf":
        local_model(rest)


def taught_by(name: str) -> dict[str, Any]:
    """How the model of this name was taught to be asked, where its folder says so."""
    kind, _, rest = name.partition(":")
    return taught_in(EMBEDDED.get(name, Path(rest if kind == "hf" else "").expanduser()))


def backend_of(name: str) -> type[Model]:
    """The class that opens models of this name; only its module is loaded."""
    kind = name.partition(":")[0]
    if kind == "openai":
        from trustlab.models.server.openai import OpenAIModel

        return OpenAIModel
    if kind == "openai-batch":
        from trustlab.models.server.batch import BatchModel

        return BatchModel
    from trustlab.models.local.huggingface import HuggingFaceModel

    return HuggingFaceModel


def check_options(called: str, options: Mapping[str, object], names: Sequence[object]) -> None:
    """``ValueError`` for an option that a backend of ``names`` does not have, or none at all where
    every one is an object, which is open already."""
    if not options:
        return
    given = [name for name in names if isinstance(name, str)]
    backends = dict.fromkeys(map(backend_of, given or ("hf:", "openai:")))
    each = [signature(backend).parameters.keys() - NOT_OPTIONS for backend in backends]
    for known in each if given else [set().union(*each)]:
        for option in options.keys() - known:
            allowed = ", ".join(sorted(known))
            raise ValueError(f"{called} has no option {option!r}; allowed are {allowed}")
    for name in dict.fromkeys(given):
        backend_of(name).check_options(options)
