"""Makes caches anew from the kept replies of the published run. Sentence vectors are made again
from the words: they would take as much room as the replies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np

from trustlab.meaning import encoder, entailment
from trustlab.models.cache import connect, import_cache

REPLIES = "replies.jsonl.xz"
ARRAYS = {"relevances": (encoder.READ_OFF_SCHEMA, "<f8"), "entailment": (entailment.SCHEMA, "<f8")}
"""Table of a cache beside the replies -> how it is made, and the type of its numbers."""


def caches_of(kept: Path, folder: Path) -> None:
    """Make the caches in ``folder`` anew from the ``kept`` replies; ``ValueError`` where none are
    kept."""
    if not (kept / REPLIES).is_file():
        raise ValueError(f"{kept} keeps no replies: they stay in the repository, not in the wheel")
    for name in ("replies", *ARRAYS):
        for old in folder.glob(f"{name}.sqlite*"):
            old.unlink()
    unpack(kept, folder)


def unpack(folder: Path, caches: Path) -> None:
    """Make the caches whose rows ``tests/same/packing.py`` wrote down."""
    if (folder / REPLIES).is_file():
        import_cache(caches / "replies.sqlite", folder / REPLIES)
    for table, (schema, kind) in ARRAYS.items():
        if not (source := folder / f"{table}.npz").is_file():
            continue
        with closing(connect(caches / f"{table}.sqlite", schema)) as connection, connection:
            rows = ((key, row.tobytes()) for key, row in arrays_in(source, kind))
            connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows)


def arrays_in(source: Path, kind: str) -> Iterator[tuple[str, np.ndarray]]:
    """Key and numbers of each row of a packed file."""
    with np.load(source, allow_pickle=False) as kept:
        models, model, digests, lengths, planes = (
            kept[k] for k in ("models", "model", "digests", "lengths", "planes")
        )
    flat = np.ascontiguousarray(planes.transpose(1, 0)).reshape(-1).view(kind)
    numbers = np.split(flat, np.cumsum(lengths)[:-1])
    hexed = (digest.tobytes().hex() for digest in digests)
    keys = [f"{models[i]}:{digest}" for i, digest in zip(model, hexed, strict=True)]
    yield from zip(keys, numbers, strict=True)
