"""Opens a model by its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

from trustlab import cluster
from trustlab.models.base import Model, taught_in
from trustlab.models.local.opening import Later, local_model, may_have_gpu, need_local
from trustlab.models.wrapper import TextOnly
from trustlab.paths import DATA, offline
from trustlab.processes import seldom_collected

CLINIC = "embedded-clinic"
DIAGNOSING = ("embedded", "embedded-closed", "embedded-overconfident")
"""Those that diagnose, say how sure they are and weigh evidence; the other tasks (doctor, reviewer,
questions, a patient's voice, new wordings) :data:`CLINIC` was taught."""
EMBEDDED = {name: DATA / "models" / name for name in (*DIAGNOSING, CLINIC)}
# those of them that show their words and no probabilities
CLOSED = ("embedded-closed",)
SERVED = ("openai", "openai-batch")
"""Kinds of models behind a server, by calls and by files."""
# parameters of backends that a model's name gives
NOT_OPTIONS = {"name", "name_or_path"}


def open_model(name: str, *, n_jobs: int = 1, **options) -> Model:
    """Open a model: one of :data:`EMBEDDED`, ``"hf:NAME_OR_PATH"``, ``"openai:NAME"``, or
    ``"openai-batch:NAME"``.

    - ``hf:`` is any Hugging Face causal language model, or a GGUF file (or a folder with one),
      whose weights are opened as float32. ``openai:`` is a model behind any OpenAI-compatible
      server (``OPENAI_BASE_URL``, ``OPENAI_API_KEY``), ``openai-batch:`` one asked by files.
    - ``n_jobs``: processes that ask a local model on the CPU (-1: all); each loads it into memory.
      On a cluster that is used (:mod:`trustlab.cluster`), its workers do, on a GPU too; a path is
      one of theirs.
    - ``options`` go to the backend (``device``, ``dtype``; ``base_url``, ``max_calls``).

    ``ValueError`` names what is allowed; ``FileNotFoundError``: there is no such model.
    ``ImportError``: torch or transformers is not installed, which all but servers need.
    """
    is_here = cluster.used is None
    check_model_name(name, is_here)
    kind, _, rest = name.partition(":")
    if kind in SERVED:
        backend: Any = backend_of(name)
        return backend(rest, **options)
    if is_here and name in EMBEDDED and not EMBEDDED[name].is_dir():
        raise FileNotFoundError(
            f"there is no model {name!r}: its folder {EMBEDDED[name]} is missing"
        )
    # kept replies need no model
    if is_here and not (name in EMBEDDED and offline()):
        need_local(f"model {name!r}", "torch", "transformers")
    open_it = partial(_opened, name, n_jobs, options)
    has_taught_form = options.get("structured") == "taught"
    can_wait = {"batch_tokens"}  # options with which it need not be opened yet
    if has_taught_form:
        can_wait.add("structured")
    is_late = is_here and name in EMBEDDED and not may_have_gpu()
    if is_late and options.keys() <= can_wait:
        model = Later(name, EMBEDDED[name], open_it, taught=has_taught_form)
    else:
        model = open_it()
    if name in CLOSED:
        return TextOnly(model)
    return model


@seldom_collected()
def _opened(name: str, n_jobs: int, options: dict[str, Any]) -> Model:
    from trustlab.models.local.spread import SpreadModel, WorkersModel

    open_it = partial(_open_here, name, options)
    if cluster.used is not None:
        return SpreadModel(WorkersModel(open_it, cluster.used), open_it, n_jobs)
    model = open_it()
    if n_jobs != 1 and model.device == "cpu" and options.get("device_map") is None:
        return SpreadModel(model, open_it, n_jobs)
    return model


def _open_here(name: str, options: dict[str, Any]) -> Any:
    """A local model's weights, opened in whatever process this is."""
    from trustlab.models.local.huggingface import HuggingFaceModel

    if name in EMBEDDED:
        return HuggingFaceModel(EMBEDDED[name], name=name, **options)
    return HuggingFaceModel(name.removeprefix("hf:"), **options)


def check_model_name(name: object, here: bool = True) -> None:
    """``ValueError`` unless :func:`open_model` takes a name of this form, or the form of what is
    there; ``FileNotFoundError`` for a path to nothing. Hub and servers are not asked. ``here``: a
    path is one of this machine."""
    kind = ""
    rest = ""
    if isinstance(name, str):
        kind, _, rest = name.partition(":")
    if name not in EMBEDDED and not (kind in ("hf", *SERVED) and rest):
        allowed = (
            f"{', '.join(EMBEDDED)}, hf:NAME_OR_PATH, openai:NAME and openai-batch:NAME"
        )
        raise ValueError(f"model is {name!r}; allowed are {allowed}")
    if kind == "hf" and here:
        local_model(rest)


def taught_by(name: str) -> dict[str, Any]:
    """How the model of this name was taught to be asked, where its folder says so."""
    if name in EMBEDDED:
        return taught_in(EMBEDDED[name])
    kind, _, rest = name.partition(":")
    if kind != "hf":
        rest = ""
    return taught_in(Path(rest).expanduser())


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


def check_options(
    called: str, options: Mapping[str, object], names: Sequence[object]
) -> None:
    """``ValueError`` for an option that a backend of ``names`` does not have, or none at all where
    every one is an object, which is open already."""
    if not options:
        return
    model_names = [name for name in names if isinstance(name, str)]
    backends = dict.fromkeys(map(backend_of, model_names or ("hf:", "openai:")))
    options_by_backend = []
    for backend in backends:
        options_by_backend.append(signature(backend).parameters.keys() - NOT_OPTIONS)
    if not model_names:
        options_by_backend = [set().union(*options_by_backend)]
    for backend_options in options_by_backend:
        for option in options.keys() - backend_options:
            allowed = ", ".join(sorted(backend_options))
            raise ValueError(
                f"{called} has no option {option!r}; allowed are {allowed}"
            )
    for name in dict.fromkeys(model_names):
        backend_of(name).check_options(options)
