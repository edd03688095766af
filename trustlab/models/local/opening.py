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
from typing import Any, NamedTuple

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
# how names of other files with such endings begin
NO_WEIGHTS = ("training_args", "openvino")
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
    files = [path]
    if path.is_dir():
        files = sorted(path.iterdir())
    if (path / "config.json").is_file():
        refuse_pickle(path)
        config = _json(path / "config.json")
        if config.get("transformers_weights") or has_safetensors(path):
            return path
    else:
        weights = []
        for file in files:
            if file.suffix == GGUF and not file.name.startswith("mmproj"):
                weights.append(file)
        if len(weights) == 1:
            return weights[0]
    names = "nothing"
    if files:
        names = shortened(", ".join(file.name for file in files))
    raise ValueError(NO_MODEL.format(source, names))


def has_safetensors(folder: Path) -> bool:
    """Whether a folder has one of the files beside which no pickle is opened (:data:`WHOLE`)."""
    return any((folder / name).is_file() for name in WHOLE)


def folder_revision(folder: Path) -> str:
    """First 16 hex digits of a sha256 over the names and bytes of a folder's weight, config and
    tokenizer files, or of a GGUF file."""
    digest = hashlib.sha256()
    files = [folder]
    if folder.is_dir():
        files = sorted(
            file for file in folder.iterdir() if any(map(file.match, MODEL_FILES))
        )
    for path in files:
        digest.update(f"{path.name}\0{path.stat().st_size}\0".encode())
        with path.open("rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
    return digest.hexdigest()[:16]


def local_lack(what: str, *libraries: str) -> str:
    """Why ``what`` cannot be used here: the first of the libraries that is not installed, with the
    command; "" where all are."""
    for library in libraries:
        if find_spec(library) is None:
            return f'{what} needs {library.replace("_", "-")}: pip install "trustlab[local]"'
    return ""


def need_local(what: str, *libraries: str) -> None:
    """ImportError where ``what`` cannot be used here (:func:`local_lack`)."""
    lack = local_lack(what, *libraries)
    if lack:
        raise ImportError(lack)


GPUS = ("nvidia*", "kfd", "dxg")  # what /dev holds where torch may find a GPU


def may_have_gpu() -> bool:
    """Whether torch has to be asked for a GPU."""
    if os.name == "nt":
        return True
    return any(any(Path("/dev").glob(name)) for name in GPUS)


class Later(Wrapper):
    """A local model that is opened when it is first asked something that the cache cannot say."""

    def __init__(
        self,
        name: str,
        folder: Path,
        opened: Callable[[], Any],
        *,
        taught: bool = False,
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
            other = (
                f"{model.name} {model.revision}, and not {self.name} {self.revision}"
            )
            raise RuntimeError(f"the model that was opened is {other}")
        self._model = model
        return model

    @property
    def usage(self) -> Mapping[str, float]:
        """What the model counts."""
        if self._model is None:
            return NOTHING
        return self._model.usage

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
    folders = [folder]
    if within:
        folders += sorted(path for path in folder.rglob("*") if path.is_dir())
    for place in folders:
        refuse_named(place)
        if has_safetensors(place):
            continue
        for name in sorted(path.name for path in place.iterdir()):
            if name.endswith(PICKLES) and not name.startswith(NO_WEIGHTS):
                raise ValueError(PICKLE.format(str(place), name))


KERNEL = r'"\w*_implementation\w*": (?!null|"[\w|.-]*"|{("\w*": (null|"[\w|.-]*"),? ?)*})[^,}]*'
"""In a config: attention, say, that is more than the name of one of the library's own."""


def refuse_named(folder: Path) -> None:
    """ValueError, before anything is opened, where a folder's config.json names code of the hub
    (:data:`KERNEL`), or it or an index of safetensors names weights that are a pickle."""
    config = _json(folder / "config.json")
    kernel = re.search(KERNEL, json.dumps(config))
    if kernel:
        raise ValueError(
            f"{str(folder)!r}: config.json has {kernel[0]}, code to download, and none is ever run"
            " here; write 'sdpa' there"
        )
    weight_files = [config.get("transformers_weights") or ".safetensors"]
    for index in folder.glob("*.safetensors.index.json"):
        weight_map = dict(_json(index).get("weight_map") or {})
        weight_files += map(str, weight_map.values())
    for name in weight_files:
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
    # the library's HTTP client, and so its errors, differ between versions
    except Exception:
        return False
    return True


class Location(NamedTuple):
    """A model's ``source``: a path or its name on the hub; its ``commit`` there (``None``: local),
    and the revision to show."""

    source: str
    commit: str | None
    revision: str

    @property
    def name(self) -> str:
        """What the model is called: locally as its folder or its file."""
        if self.commit is not None:
            return self.source
        path = Path(self.source).resolve()
        if path.suffix == GGUF:
            return path.stem
        return path.name

    @property
    def file(self) -> str | None:
        """The name of its GGUF file, if it is one."""
        if self.commit is None and self.source.endswith(GGUF):
            return os.path.basename(self.source)
        return None

    @property
    def folder(self) -> str:
        """Its folder or its name on the hub."""
        if self.file is None:
            return self.source
        return os.path.dirname(self.source) or "."


def locate(name_or_path: str | os.PathLike[str]) -> Location:
    """Where a model is. FileNotFoundError: it is absent. PermissionError: gated, and not open to
    this account. ValueError: it is refused (:func:`local_model`, :func:`refuse_named`)."""
    from huggingface_hub.errors import GatedRepoError
    from transformers.utils.hub import cached_file

    source = os.path.expanduser(os.fspath(name_or_path))
    place = local_model(source)
    if place is not None:
        if place.is_file() and not (find_spec("gguf") and find_spec("accelerate")):
            raise ImportError(NO_CHAT)
        return Location(str(place), None, folder_revision(place))
    is_offline = not hub_answers()
    try:
        file = cached_file(source, "config.json", local_files_only=is_offline)
        config = Path(file or "")
        commit = config.parent.name  # .../snapshots/<commit>/config.json
        cached_file(
            source,
            "model.safetensors.index.json",
            revision=commit,
            local_files_only=is_offline,
            _raise_exceptions_for_missing_entries=False,
        )
    except OSError as error:
        if isinstance(error.__cause__, GatedRepoError):
            page = f"https://huggingface.co/{source}"
            how = f"accept its conditions at {page}, then log in (hf auth login, or HF_TOKEN)"
            raise PermissionError(f"the model {source!r} is gated: {how}") from error
        reason = "it cannot be reached"
        if not is_offline:
            reason = str(error).splitlines()[0]
        what = f"not a local folder, and not to be had from the hub: {reason}"
        raise FileNotFoundError(f"no model {source!r}: {what}") from error
    refuse_named(config.parent)
    return Location(source, commit, revision=commit)


def open_tokenizer(place: Location) -> tuple[Any, Any]:
    """A model's config, and its tokenizer with its chat template. FileNotFoundError: no tokenizer.
    ValueError: a file is damaged, or the model continues no text."""
    from transformers import AutoConfig, AutoTokenizer

    config_file = "config.json"
    if place.file:
        config_file = "GGUF file"
    config = _from_pretrained(AutoConfig, place, config_file)
    class_of(config, place.source)
    tokenizer = _from_pretrained(AutoTokenizer, place, "tokenizer")
    if (
        not len(tokenizer)
        or not tokenizer("a b", add_special_tokens=False)["input_ids"]
    ):
        files = "no tokenizer.json, no tokenizer.model, and no vocab with merges"
        raise FileNotFoundError(NO_MODEL.format(place.source, files))
    if not tokenizer.chat_template:
        template = None
        if not place.file:
            template = _processor_template(place)
        tokenizer.chat_template = template
    return config, tokenizer


def _from_pretrained(auto: Any, place: Location, what: str) -> Any:
    try:
        return auto.from_pretrained(
            place.folder,
            revision=place.commit or "main",
            gguf_file=place.file,
            trust_remote_code=False,
        )
    except Exception as error:  # the library raises whatever its parsers raise
        raise _unreadable(place.source, what, error) from error


def _processor_template(place: Location) -> str | None:
    """The chat template of a model that reads images, which may lie beside the tokenizer."""
    from transformers.processing_utils import ProcessorMixin

    try:
        processor, _ = ProcessorMixin.get_processor_dict(
            place.source, revision=place.commit
        )
    except (OSError, ValueError):
        return None
    return processor.get("chat_template")


def open_weights(place: Location, config: Any, dtype: Any, device_map: Any) -> Any:
    """A model on the CPU, or spread as ``device_map`` says; ``dtype``: torch's, or "auto".
    ValueError: the weights are absent or damaged, or ``device_map`` is wrong. ImportError: a
    library is absent."""
    import transformers
    from safetensors import SafetensorError

    source = place.source
    if device_map is not None and find_spec("accelerate") is None:
        raise ImportError(
            f"{source!r} with device_map needs accelerate: pip install accelerate"
        )
    auto: Any = getattr(transformers, class_of(config, source))
    try:
        model, report = auto.from_pretrained(
            place.folder,
            revision=place.commit or "main",
            gguf_file=place.file,
            trust_remote_code=False,
            dtype=dtype,
            device_map=device_map,
            output_loading_info=True,
        )
    except ImportError as error:  # of a quantised checkpoint, say
        raise ImportError(f"{source!r} needs a library: {error}") from error
    except (SafetensorError, OSError, RuntimeError, ValueError) as error:
        raise _unreadable(source, "weights", error) from error
    # The library would fill them with random numbers.
    missing = sorted(report["missing_keys"])
    if missing:
        what = f"{len(missing)} of the model's tensors, {missing[0]} among them"
        raise ValueError(NO_MODEL.format(source, f"weights that lack {what}"))
    return model


def is_quantised(config: Any) -> bool:
    """Whether the checkpoint's weights are quantised."""
    configs = (config, config.get_text_config())
    return any(getattr(part, "quantization_config", None) for part in configs)


def class_of(config: Any, source: str) -> str:
    """The library's class that opens a model which continues a text from left to right, with or
    without images; ValueError where it does not."""
    from transformers.models.auto import modeling_auto as auto

    kind = config.model_type
    reads_both_ways = (
        kind in auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES or kind in BOTH_WAYS
    )
    translates = (
        config.is_encoder_decoder or config.get_text_config().is_encoder_decoder
    )
    if not translates and not reads_both_ways:
        if type(config) in auto.MODEL_FOR_CAUSAL_LM_MAPPING:
            return "AutoModelForCausalLM"
        if (
            type(config) in auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
            and kind not in NOT_ONWARDS
        ):
            return "AutoModelForImageTextToText"
    raise ValueError(NO_MODEL.format(source, f"config.json with model_type {kind!r}"))


def window_of(config: Any) -> float:
    """The most tokens of prompt and reply together, as the config says; else infinite."""
    n_positions = getattr(config.get_text_config(), "max_position_embeddings", None)
    if n_positions is None or n_positions <= 0:
        return math.inf
    return n_positions


END = re.compile(
    r"</s>|<\|?(im_end|eot_id|eos|end_?of_?(turn|text|sentence))\|?>|<turn\|>"
)
"""Special tokens that stand at the end of a turn and nowhere else."""


def end_tokens(model: Any, tokenizer: Any) -> list[int]:
    """Every token id that ends a reply, by tokenizer, config or generation config; may be empty."""
    config = model.config
    ends: set[int] = set()
    for source in (
        tokenizer,
        config,
        config.get_text_config(),
        model.generation_config,
    ):
        end = getattr(source, "eos_token_id", None)
        if isinstance(end, int):
            ends.add(end)
        elif end is not None:
            ends.update(end)
    return sorted(ends)


def ends_of_turn(tokenizer: Any) -> set[int]:
    """Tokens that end a turn by their name (:data:`END`), and the first special one that the chat
    template puts behind a reply."""
    tokens = tokenizer.added_tokens_decoder
    ends = {i for i, token in tokens.items() if END.fullmatch(token.content)}
    turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "q9z"}]
    try:
        prompt = tokenizer.apply_chat_template(turns, tokenize=False)
    except Exception:  # a template may refuse anything
        return ends
    _, _, behind = prompt.rpartition("q9z")
    for i in tokenizer(behind, add_special_tokens=False)["input_ids"]:
        if i in tokens and tokens[i].special:
            return ends | {i}
    return ends


def _unreadable(source: str, what: str, error: Exception) -> ValueError:
    first_line = str(error).partition("\n")[0] or type(error).__name__
    return ValueError(
        NO_MODEL.format(source, f"{what} that cannot be read: {first_line}")
    )
