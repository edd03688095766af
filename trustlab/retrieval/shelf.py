"""Passages kept in a file: any one of a million is read when it is asked for, and none is held in memory."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import overload

import numpy as np

from trustlab.retrieval.corpus import Passage, joined

PASSAGES, STARTS = "passages.jsonl", "starts.npy"


class Shelf(Sequence[Passage]):
    """The passages that :func:`shelve` wrote into ``folder``, in corpus order."""

    def __init__(self, folder: Path):
        self._lines = np.memmap(folder / PASSAGES, mode="r")
        self._starts = np.load(folder / STARTS, mmap_mode="r")

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, index: int) -> Passage: ...
    @overload
    def __getitem__(self, index: slice) -> list[Passage]: ...
    def __getitem__(self, index: int | slice) -> Passage | list[Passage]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        i = range(len(self))[index]  # counts from the end where negative, and refuses what is out of range
        ident, title, content, *own = json.loads(self._lines[self._starts[i] : self._starts[i + 1]].tobytes())
        return Passage(ident, title, content, *(own or [joined(title, content)]))


def shelve(passages: Iterable[Passage], folder: Path) -> Iterator[Passage]:
    """Writes ``passages`` into ``folder`` as they go by; the files are whole once the last one has."""
    starts = array("q", [0])
    with (folder / PASSAGES).open("wb") as out:
        for passage in passages:
            row = [passage.id, passage.title, passage.content]
            if passage.contents != joined(passage.title, passage.content):
                row.append(passage.contents)
            starts.append(starts[-1] + out.write(json.dumps(row, ensure_ascii=False).encode() + b"\n"))
            yield passage
    np.save(folder / STARTS, np.asarray(starts))
