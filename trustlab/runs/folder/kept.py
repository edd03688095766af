"""Makes caches anew from the packed replies of the published run. Sentence vectors are made again
from the words: they would take as much room as the replies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np

from trustlab.meaning import encoder, entailment
from trustlab.models.cache import connect, import_cache

REPLIES = "replies.jsonl.xz"
ARRAYS = {
    "relevances": (encoder.READ_OFF_SCHEMA, "<f8"),
    "entailment": (entailment.SCHEMA, "<f8"),
}
"""Table of a cache beside the replies -> how it is made, and the type of its numbers."""


def caches_of(packed: Path, folder: Path) -> None:
    """Make the caches in ``folder`` anew from the replies in ``packed``; ``ValueError`` where there
    are none."""
    if not (packed / REPLIES).is_file():
        raise ValueError(
            f"{packed} keeps no replies: they stay in the repository, not in the wheel"
        )
    for name in ("replies", *ARRAYS):
        for old in folder.glob(f"{name}.sqlite*"):
            old.unlink()
    unpack(packed, folder)


def unpack(folder: Path, caches: Path) -> None:
    """Make the caches whose rows ``tests/same/packing.py`` wrote down."""
    if (folder / REPLIES).is_file():
        import_cache(caches / "replies.sqlite", folder / REPLIES)
    for table, (schema, kind) in ARRAYS.items():
        source = folder / f"{table}.npz"
        if not source.is_file():
            continue
        rows = (
            (array.key, array.numbers.tobytes()) for array in arrays_in(source, kind)
        )
        with (
            closing(connect(caches / f"{table}.sqlite", schema)) as connection,
            connection,
        ):
            connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows)


class PackedArray(NamedTuple):
    """A row of a packed file."""

    key: str
    numbers: np.ndarray


def arrays_in(source: Path, kind: str) -> Iterator[PackedArray]:
    """Key and numbers of each row of a packed file."""
    with np.load(source, allow_pickle=False) as arrays:
        models = arrays["models"]
        places = arrays["model"]
        digests = arrays["digests"]
        lengths = arrays["lengths"]
        planes = arrays["planes"]
    flat = np.ascontiguousarray(planes.transpose(1, 0)).reshape(-1)
    ends = np.cumsum(lengths)
    rows = np.split(flat.view(kind), ends[:-1])
    for place, digest, numbers in zip(places, digests, rows, strict=True):
        key = f"{models[place]}:{digest.tobytes().hex()}"
        yield PackedArray(key, numbers)
