"""The replies, relevances and judgements that a run read, packed into files without pickles.

Sentence vectors are no part of them: they are made again from the words, and would take as much
room as the replies.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np

from trustlab.meaning import encoder, entailment
from trustlab.models.cache import connect, export_cache, import_cache

REPLIES = "replies.jsonl.xz"
ARRAYS = {
    "relevances": (encoder.READ_OFF_SCHEMA, "<f8"),
    "entailment": (entailment.SCHEMA, "<f8"),
}
"""Table of a cache beside the replies -> how it is made, and the type of its numbers."""
DIGEST = 64
"""A key is the name of a model, ":" and this many hex digits."""


def caches_of(kept: Path, folder: Path) -> None:
    """Make the caches in ``folder`` anew from the ``kept`` replies; ``ValueError`` where none are
    kept."""
    if not (kept / REPLIES).is_file():
        raise ValueError(f"{kept} keeps no replies: they stay in the repository, not in the wheel")
    for name in ("replies", *ARRAYS):
        for old in folder.glob(f"{name}.sqlite*"):
            old.unlink()
    unpack(kept, folder)


def pack(caches: Path, folder: Path) -> dict[str, int]:
    """Write what the caches in ``caches`` hold to ``folder``; how many of each.

    The same replies, relevances and judgements give the same bytes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    counts = {}
    if (caches / "replies.sqlite").is_file():
        counts["replies"] = export_cache(caches / "replies.sqlite", folder / REPLIES)
    for table in ARRAYS:
        if (caches / f"{table}.sqlite").is_file():
            counts[table] = _pack_arrays(caches / f"{table}.sqlite", folder / f"{table}.npz", table)
    return counts


def unpack(folder: Path, caches: Path) -> None:
    """Make the caches that :func:`pack` wrote down."""
    if (folder / REPLIES).is_file():
        import_cache(caches / "replies.sqlite", folder / REPLIES)
    for table in ARRAYS:
        if (folder / f"{table}.npz").is_file():
            _unpack_arrays(folder / f"{table}.npz", caches / f"{table}.sqlite", table)


def _pack_arrays(path: Path, target: Path, table: str) -> int:
    schema, kind = ARRAYS[table]
    with closing(connect(path, schema)) as connection:
        rows = list(connection.execute(f"SELECT key, value FROM {table} ORDER BY key"))
    if not rows:
        return 0
    # What is kept stays: a processor that makes it again differs in last bits, and git keeps both.
    kept = dict(_kept(target, kind)) if target.is_file() else {}
    each = [kept.get(key, np.frombuffer(value, dtype=kind)) for key, value in rows]
    numbers = np.concatenate(each)
    models = sorted({key[: -DIGEST - 1] for key, _ in rows})
    digests = b"".join(bytes.fromhex(key[-DIGEST:]) for key, _ in rows)
    # All first bytes, then all second ones: signs and exponents are alike and compress well.
    planes = numbers.view(np.uint8).reshape(len(numbers), numbers.itemsize).transpose()
    np.savez_compressed(
        target,
        models=np.array(models),
        model=np.array([models.index(key[: -DIGEST - 1]) for key, _ in rows]),
        digests=np.frombuffer(digests, dtype=np.uint8).reshape(len(rows), -1),
        lengths=np.array([len(numbers) for numbers in each], dtype=np.int32),
        planes=np.ascontiguousarray(planes),
    )
    return len(rows)


def _kept(source: Path, kind: str) -> Iterator[tuple[str, np.ndarray]]:
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


def _unpack_arrays(source: Path, path: Path, table: str) -> None:
    schema, kind = ARRAYS[table]
    with closing(connect(path, schema)) as connection, connection:
        rows = ((key, row.tobytes()) for key, row in _kept(source, kind))
        connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows)
