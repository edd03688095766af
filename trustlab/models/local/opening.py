"""Finds and opens a local language model."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from trustlab.models.abilities import Abilities
from trustlab.models.base import NOTHING, Model, taught_in
from trustlab.models.wrapper import Wrapper
from trustlab.tables import shortened

MODEL_FILES = (
    "*.safetensors", "*.bin", "*.model", "*.index.json", "config.json", "generation_config.json",
    "tokenizer*.json", "special_tokens_map.json", "added_tokens.json", "vocab.json", "vocab.txt",
    "merges.txt", "chat_template.*",
)  # fmt: skip
"""What the revision of a local folder is a hash of."""
WHOLE = ("model.safetensors", "model.safetensors.index.json")
"""Where one of these is, the libraries open no pickle beside it."""
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".bin.index.json")
NO_WEIGHTS = ("training_args", "openvino")  # how names of other files with such endings begin
BOTH_WAYS = ("bert-generation", "xlnet")
"""Model types that read both ways, beside those listed by the library as masked language models."""
NOT_ONWARDS = (
    "paligemma", "diffusion_gemma", "shieldgemma2", "blip", "blip-2", "instructblip",
    "instructblipvideo", "pi0",
)  # fmt: skip
"""Model types of images and text which read a prompt both ways, fill a canvas, only classify, or
answer nothing without an image."""
GGUF = ".gguf"
NO_CHAT = 'a GGUF file needs gguf and accelerate: pip install "trustlab[chat]"'
NO_MODEL = (
    "no model at {!r}: expected a folder with config.json of a causal language model, its weights"
    " as safetensors and its tokenizer, or one GGUF file; found {}"
    " (docs/your_model.md, Files on a disk, says what to do with other forms; no code of a model's"
    " own is ever run)"
)
PICKLE = "{!r} has weights as a pickle ({}), which can run code when it is opened; use safetensors"


def local_model(source: str) -> Path | None:
    """The folder that ``source`` names, or the GGUF file that it names or that stands alone in it;
    ``None`` for a name of the hub. Nothing is opened. FileNotFoundError: nothing is there.
    ValueError: it is no model of these two forms, or refused by :func:`refuse_pickle`."""
    path = Path(source).expanduser()
    if not path.exists():
        if is_path(source):
            raise FileNotFoundError(NO_MODEL.format(source, "nothing"))
        return None
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    if (path / "config.json").is_file():
        refuse_pickle(path)
        named = _json(path / "config.json").get("transformers_weights")
        if named or any((path / name).is_file() for name in WHOLE):
            return path
    else:
        weights = [p for p in files if p.suffix == GGUF and not p.name.startswith("mmproj")]
        if len(weights) == 1:
            return weights[0]
    names = ", ".join(p.name for p in files)
    raise ValueError(NO_MODEL.format(source, shortened(names) if names else "nothing"))


def shown_name(source: str) -> str:
    """What a local model is called: its folder's or its file's name."""
    path = Path(source).resolve()
    return path.stem if path.suffix == GGUF else path.name


def folder_revision(folder: Path) -> str:
    """First 16 hex digits of a sha256 over the names and bytes of a folder's weight, config and
    tokenizer files, or of a GGUF file."""
    digest = hashlib.sha256()
    files = [folder]
    if folder.is_dir():
        files = sorted(p for p in folder.iterdir() if any(map(p.match, MODEL_FILES)))
    for path in files:
        digest.update(f"{path.name}\0{path.stat().st_size}\0".encode())
        with path.open("rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
    return digest.hexdigest()[:16]


GPUS = ("nvidia*", "kfd", "dxg")  # what /dev holds where torch may find a GPU


def may_have_gpu() -> bool:
    """Whether torch has to be asked for a GPU."""
    return os.name == "nt" or any(True for name in GPUS for _ in Path("/dev").glob(name))


class Later(Wrapper):
    """A local model that is opened when it is first asked something that the cache cannot say."""

    def __init__(
        self, name: str, folder: Path, opened: Callable[[], Any], *, taught: bool = False
    ) -> None:
        """``taught``: it will hold its replies to the form that it was taught."""
        self.name = name
        self.revision = folder_revision(folder)
        self.taught = taught_in(folder)
        self.structured = taught
        self.asked_with = {"structured": "taught"} if taught else {}
        self.finds_out = True
        self.is_packaged = True
        self._open = opened
        self._model: Model | None = None

    @property
    def model(self) -> Model:
        """The model; ``RuntimeError`` where another one was opened."""
        if self._model is not None:
            return self._model
        model: Model = self._open()
        if (model.name, model.revision) != (self.name, self.revision):
            other = f"{model.name} {model.revision}, and not {self.name} {self.revision}"
            raise RuntimeError(f"the model that was opened is {other}")
        self._model = model
        return model

    @property
    def usage(self) -> Mapping[str, float]:
        """What the model counts."""
        return NOTHING if self._model is None else self._model.usage

    @property
    def scores_text(self) -> bool:
        """True, as of any local model."""
        return True

    def recall(self, abilities: Abilities) -> None:
        """Nothing: a model in a folder need not be told."""

    @property
    def innermost(self) -> Model:
        """Itself: nothing is opened to know it."""
        return self


def is_path(text: str) -> bool:
    """Whether this can only be the path of a local file or folder: the hub has no such names."""
    return re.match(r"[./~\\]|[A-Za-z]:|[^/]+/[^/]+/", text) is not None


def refuse_pickle(folder: Path, *, within: bool = False) -> None:
    """ValueError, before anything is opened, where a folder, or with ``within`` one in it, holds
    its weights as a pickle alone, or names code or a pickle (:func:`refuse_named`)."""
    for place in [folder, *sorted(p for p in folder.rglob("*") if within and p.is_dir())]:
        refuse_named(place)
        found = sorted(p.name for p in place.iterdir() if p.name.endswith(PICKLES))
        found = [name for name in found if not name.startswith(NO_WEIGHTS)]
        if found and not any((place / name).is_file() for name in WHOLE):
            raise ValueError(PICKLE.format(str(place), found[0]))


KERNEL = r'"\w*_implementation\w*": (?!null|"[\w|.-]*"|{("\w*": (null|"[\w|.-]*"),? ?)*})[^,}]*'
"""In a config: attention, say, that is more than the name of one of the library's own."""


def refuse_named(folder: Path) -> None:
    """ValueError, before anything is opened, where a folder's config.json names code of the hub
    (:data:`KERNEL`), or it or an index of safetensors names weights that are a pickle."""
    config = _json(folder / "config.json")
    if kernel := re.search(KERNEL, json.dumps(config)):
        raise ValueError(
            f"{str(folder)!r}: config.json has {kernel[0]}, code to download, and none is ever run"
            " here; write 'sdpa' there"
        )
    named = [config.get("transformers_weights") or ".safetensors"]
    for index in folder.glob("*.safetensors.index.json"):
        named += map(str, dict(_json(index).get("weight_map") or {}).values())
    for name in named:
        if not name.endswith((".safetensors", ".safetensors.index.json")):
            raise ValueError(PICKLE.format(str(folder), name))


def _json(file: Path) -> dict[str, Any]:
    """What a JSON file holds; nothing where it cannot be read, as the library says itself."""
    try:
        return dict(json.loads(file.read_text("utf-8")))
    except (OSError, TypeError, ValueError):
        return {}


HUB_WAIT_S = 5.0  # the library itself tries for half a minute


def hub_answers() -> bool:
    """Whether the hub can be reached; ``HF_HUB_OFFLINE`` says no by itself."""
    from huggingface_hub import constants
    from huggingface_hub.utils import get_session

    try:
        get_session().head(constants.ENDPOINT, timeout=HUB_WAIT_S)
    except Exception:  # the library's HTTP client, and so its errors, differ between versions
        return False
    return True


def locate(name_or_path: str | os.PathLike[str]) -> tuple[str, str | None, str]:
    """What to open, its commit (None for a local folder) and the revision to show.
    FileNotFoundError: it is absent. PermissionError: gated, and not open to this account.
    ValueError: it is refused (:func:`local_model`, :func:`refuse_named`)."""
    from huggingface_hub.errors import GatedRepoError
    from transformers.utils.hub import cached_file

    source = os.path.expanduser(os.fspath(name_or_path))
    if (place := local_model(source)) is not None:
        if place.is_file() and not (find_spec("gguf") and find_spec("accelerate")):
            raise ImportError(NO_CHAT)
        return str(place), None, folder_revision(place)
    there = hub_answers()
    try:
        config = Path(cached_file(source, "config.json", local_files_only=not there) or "")
        commit = config.parent.name  # .../snapshots/<commit>/config.json
        cached_file(
            source, "model.safetensors.index.json", revision=commit, local_files_only=not there,
            _raise_exceptions_for_missing_entries=False,
        )  # fmt: skip
    except OSError as error:
        if isinstance(error.__cause__, GatedRepoError):
            page, login = f"https://huggingface.co/{source}", "hf auth login, or HF_TOKEN"
            how = f"accept its conditions at {page}, then log in ({login})"
            raise PermissionError(f"the model {source!r} is gated: {how}") from error
        reason = str(error).splitlines()[0] if there else "it cannot be reached"
        what = f"not a local folder, and not to be had from the hub: {reason}"
        raise FileNotFoundError(f"no model {source!r}: {what}") from error
    refuse_named(config.parent)
    return source, commit, commit


def open_tokenizer(source: str, commit: str | None) -> tuple[Any, Any]:
    """The config and the tokenizer, with its chat template, of what :func:`locate` found.
    FileNotFoundError: no tokenizer. ValueError: a file is damaged, or the model continues no
    text."""
    from transformers import AutoConfig, AutoTokenizer

    is_file = _at(source, commit)[1] is not None
    config = _read(AutoConfig, source, commit, "GGUF file" if is_file else "config.json")
    class_of(config, source)
    tokenizer = _read(AutoTokenizer, source, commit, "tokenizer")
    if not len(tokenizer) or not tokenizer("a b", add_special_tokens=False)["input_ids"]:
        found = "no tokenizer.json, no tokenizer.model, and no vocab with merges"
        raise FileNotFoundError(NO_MODEL.format(source, found))
    if not tokenizer.chat_template:
        tokenizer.chat_template = None if is_file else _processor_template(source, commit)
    return config, tokenizer


def _at(source: str, commit: str | None) -> tuple[str, str | None]:
    """The folder or hub name of a source of :func:`locate`, and its GGUF file, if it is one."""
    if commit is None and source.endswith(GGUF):
        return os.path.dirname(source) or ".", os.path.basename(source)
    return source, None


def _read(auto: Any, source: str, commit: str | None, what: str) -> Any:
    place, file = _at(source, commit)
    try:
        return auto.from_pretrained(
            place, revision=commit or "main", gguf_file=file, trust_remote_code=False
        )
    except Exception as error:  # the library raises whatever its parsers raise
        raise _unreadable(source, what, error) from error


def _processor_template(source: str, commit: str | None) -> str | None:
    """The chat template of a model that reads images, which may lie beside the tokenizer."""
    from transformers.processing_utils import ProcessorMixin

    try:
        return ProcessorMixin.get_processor_dict(source, revision=commit)[0].get("chat_template")
    except (OSError, ValueError):
        return None


def open_weights(
    source: str, commit: str | None, config: Any, dtype: Any, device_map: Any = None
) -> Any:
    """The model of what :func:`locate` found, on the CPU, or spread as ``device_map`` says;
    ``dtype``: torch's, or "auto". ValueError: the weights are absent or damaged, or ``device_map``
    is wrong. ImportError: a library is absent."""
    import transformers
    from safetensors import SafetensorError

    if device_map is not None and find_spec("accelerate") is None:
        raise ImportError(f"{source!r} with device_map needs accelerate: pip install accelerate")
    place, file = _at(source, commit)
    auto: Any = getattr(transformers, class_of(config, source))
    try:
        model, report = auto.from_pretrained(
            place, revision=commit or "main", gguf_file=file, trust_remote_code=False,
            dtype=dtype, device_map=device_map, output_loading_info=True,
        )  # fmt: skip
    except ImportError as error:  # of a quantised checkpoint, say
        raise ImportError(f"{source!r} needs a library: {error}") from error
    except (SafetensorError, OSError, RuntimeError, ValueError) as error:
        raise _unreadable(source, "weights", error) from error
    # The library would fill them with random numbers.
    if missing := sorted(report["missing_keys"]):
        what = f"{len(missing)} of the model's tensors, {missing[0]} among them"
        raise ValueError(NO_MODEL.format(source, f"weights that lack {what}"))
    return model


def is_quantised(config: Any) -> bool:
    """Whether the checkpoint's weights are quantised."""
    holders = (config, config.get_text_config())
    return any(getattr(holder, "quantization_config", None) for holder in holders)


def class_of(config: Any, source: str) -> str:
    """The library's class that opens a model which continues a text from left to right, with or
    without images; ValueError where it does not."""
    from transformers.models.auto import modeling_auto as auto

    kind = config.model_type
    both_ways = kind in (*auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES, *BOTH_WAYS)
    translates = config.is_encoder_decoder or config.get_text_config().is_encoder_decoder
    if not translates and not both_ways:
        if type(config) in auto.MODEL_FOR_CAUSAL_LM_MAPPING:
            return "AutoModelForCausalLM"
        if type(config) in auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING and kind not in NOT_ONWARDS:
            return "AutoModelForImageTextToText"
    raise ValueError(NO_MODEL.format(source, f"config.json with model_type {kind!r}"))


def window_of(config: Any) -> float:
    """The most tokens of prompt and reply together, as the config says; else infinite."""
    positions = getattr(config.get_text_config(), "max_position_embeddings", None)
    return positions if positions is not None and positions > 0 else math.inf


END = re.compile(r"</s>|<\|?(im_end|eot_id|eos|end_?of_?(turn|text|sentence))\|?>|<turn\|>")
"""Special tokens that stand at the end of a turn and nowhere else."""


def end_tokens(model: Any, tokenizer: Any) -> list[int]:
    """Every token id that ends a reply, by tokenizer, config or generation config; may be empty."""
    holders = (tokenizer, model.config, model.config.get_text_config(), model.generation_config)
    found: set[int] = set()
    for end in (getattr(holder, "eos_token_id", None) for holder in holders):
        found.update([] if end is None else [end] if isinstance(end, int) else end)
    return sorted(found)


def ends_of_turn(tokenizer: Any) -> set[int]:
    """Tokens that end a turn by their name (:data:`END`), and the first special one that the chat
    template puts behind a reply."""
    tokens = tokenizer.added_tokens_decoder
    named = {i for i, token in tokens.items() if END.fullmatch(token.content)}
    turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "q9z"}]
    try:
        after = tokenizer.apply_chat_template(turns, tokenize=False).rpartition("q9z")[2]
    except Exception:  # a template may refuse anything
        return named
    ids = tokenizer(after, add_special_tokens=False)["input_ids"]
    return named | {*[i for i in ids if i in tokens and tokens[i].special][:1]}


def _unreadable(source: str, what: str, error: Exception) -> ValueError:
    first = str(error).partition("\n")[0] or type(error).__name__
    return ValueError(NO_MODEL.format(source, f"{what} that cannot be read: {first}"))
