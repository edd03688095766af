"""Which files make a corpus, what is in them line by line, and what tells one corpus from another."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from trustlab.datasets.errors import DataError

SNIPPETS, TEXTS = (".jsonl", ".jsonl.gz"), (".txt", ".md")
ALLOWED = f"files that end in {', '.join((*SNIPPETS, *TEXTS))}, folders of such files, or a list of these"

CorpusPath = str | Path | Sequence[str | Path]


@dataclass(frozen=True)
class CorpusFile:
    """A file of passages. ``name`` is its path within the folder that was asked for, or else its own name."""

    path: Path
    name: str
    in_folder: bool = False

    @property
    def is_text(self) -> bool:
        """Plain text, whose name becomes ids and title; otherwise snippets, one JSON object a line."""
        return self.path.name.lower().endswith(TEXTS)


def corpus_files(path: CorpusPath) -> tuple[CorpusFile, ...]:
    """The files of ``path`` (a file, a folder, or a list of either): a list's in its order, a folder's sorted by name.

    A folder is searched through all its folders. Passed over in it: other endings, hidden files and folders, and
    ``README`` files, which come with a downloaded corpus and are no part of it. Raises ``ValueError`` for a path that is
    not there, has another ending, or is a folder without such files, and for an empty list.
    """
    paths = [path] if isinstance(path, str | Path) else list(path) if isinstance(path, Sequence) else []
    if not all(isinstance(one, str | Path) for one in paths) or not (paths or isinstance(path, Sequence)):
        raise ValueError(f"path is {path!r}; allowed is {ALLOWED}")
    if not paths:
        raise ValueError(f"path is an empty list; allowed is {ALLOWED}")
    return tuple(file for one in paths for file in _files(Path(one).expanduser()))


def _files(path: Path) -> Iterator[CorpusFile]:
    if path.is_file():
        if not path.name.lower().endswith((*SNIPPETS, *TEXTS)):
            raise ValueError(f"path is {str(path)!r}, whose ending is unknown; allowed is {ALLOWED}")
        yield CorpusFile(path, path.name)
        return
    if not path.is_dir():
        raise ValueError(f"path is {str(path)!r}, which is no file or folder; allowed is {ALLOWED}")
    within = {file.relative_to(path): file for file in path.rglob("*")}
    kept = {name.as_posix(): file for name, file in within.items() if _belongs(name) and file.is_file()}
    if not kept:
        raise ValueError(f"path is {str(path)!r}, a folder that holds no corpus file; allowed is {ALLOWED}")
    for name in sorted(kept):
        yield CorpusFile(kept[name], name, in_folder=True)


def _belongs(name: Path) -> bool:
    hidden = any(part.startswith(".") for part in name.parts)
    return not hidden and name.stem.lower() != "readme" and name.name.lower().endswith((*SNIPPETS, *TEXTS))


def lines(file: CorpusFile) -> Iterator[tuple[int, str]]:
    """(number from 1, line without its end) of a UTF-8 file, gzipped or not, without a byte-order mark.

    Raises :class:`DataError` for another encoding and for a broken gzip file.
    """
    for number, raw in enumerate(_raw_lines(file.path), 1):
        raw = raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
        if b"\0" in raw:  # JSON and text have none, and UTF-16 has one beside nearly every letter
            raise DataError(file.path, number, "encoding", raw[:4], "UTF-8 text; this looks like UTF-16: save it as UTF-8")
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(file.path, number, "encoding", raw[error.start : error.start + 4], "UTF-8 text") from error
        yield number, text.rstrip("\r\n")


def _raw_lines(path: Path) -> Iterator[bytes]:
    try:
        with gzip.open(path, "rb") if path.name.lower().endswith(".gz") else path.open("rb") as stream:
            yield from stream
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(path, None, "file", str(error), "a whole gzip file") from error


def digest(files: Sequence[CorpusFile]) -> str:
    """SHA-256 of the files' bytes in their order, and of a text file's name, which its ids and title are made of."""
    whole = hashlib.sha256()
    for file in files:
        with file.path.open("rb") as stream:
            own = hashlib.file_digest(stream, "sha256").hexdigest()
        kind = f"text {file.name}" if file.is_text else "snippets"
        whole.update(f"{kind}\0{file.path.suffix.lower() == '.gz'}\0{own}\n".encode())
    return whole.hexdigest()
