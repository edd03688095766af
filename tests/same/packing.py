"""The caches of a run as files for the repository, which :mod:`trustlab.runs.folder.kept` reads."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np

from trustlab.models.cache import connect, export_cache
from trustlab.runs.folder.kept import ARRAYS, REPLIES, arrays_in

DIGEST = 64
"""A key is the name of a model, ":" and this many hex digits."""


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


def _pack_arrays(path: Path, target: Path, table: str) -> int:
    schema, kind = ARRAYS[table]
    with closing(connect(path, schema)) as connection:
        rows = list(connection.execute(f"SELECT key, value FROM {table} ORDER BY key"))
    if not rows:
        return 0
    # What is kept stays: a processor that makes it again differs in last bits, and git keeps both.
    kept = dict(arrays_in(target, kind)) if target.is_file() else {}
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
