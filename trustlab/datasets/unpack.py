"""Unpacking an archive that somebody else made: nothing leaves its folder, and nothing is written before all was looked at.

Python's own extraction renames what it mistrusts and goes on; an archive with such a member is refused here as a whole.
"""

from __future__ import annotations

import errno
import gzip
import io
import lzma
import shutil
import stat
import tarfile
import tempfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

_LONGEST_PART = 255  # bytes, the usual limit of file systems
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Limits:
    """How much an archive may hold: unpacked bytes, bytes for each byte packed, and members."""

    n_bytes: int = 20 * 2**30
    ratio: int = 200  # text packs 5 to 20 times, a bomb about 1,000 times
    n_members: int = 100_000


@dataclass(frozen=True)
class _Member:
    name: str
    kind: str  # "file", "folder", or what else it is
    size: int


def unpack(archive: Path, folder: Path, kind: str, limits: Limits = Limits()) -> list[Path]:  # noqa: B008 (frozen)
    """Unpacks ``archive`` into the new ``folder`` and returns its files, in the archive's order.

    ``kind`` is "zip" or "tar.gz". Archives within it stay as they are. The folder appears whole or not at all. Raises
    ``ValueError`` for a ``folder`` that exists, a broken or encrypted archive, one beyond the ``limits``, and one with a
    member that is a link or a device, leads out of the folder, cannot be a file name everywhere, or is there twice.
    """
    if kind not in _READERS:
        raise ValueError(f"kind is {kind!r}; allowed are {', '.join(_READERS)}")
    if folder.exists() or folder.is_symlink():
        raise ValueError(f"{folder} is there already; move it away to unpack {archive.name}")
    reader = _READERS[kind]
    allowed = min(limits.n_bytes, limits.ratio * archive.stat().st_size)
    with _explained(archive):
        places = _places((member for member, _ in reader(archive, allowed)), archive, allowed, limits.n_members)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".unpacking-") as temporary:
            whole, files = Path(temporary) / "whole", []
            whole.mkdir()
            for (member, stream), place in zip(reader(archive, allowed), places, strict=True):
                _write(member, stream, whole / place)
                files += [folder / place] if member.kind == "file" else []
            whole.rename(folder)
    return files


def safe_place(name: str) -> PurePosixPath:
    """Where a member of this name goes, relative to the folder. Raises ``ValueError`` where that is not plainly inside it."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/"):
        problem = "an absolute path"
    elif "\\" in name or ":" in name:
        problem = "a backslash or a colon, which mean a path or a drive on some systems"
    elif ".." in parts:
        problem = "a step out of the folder"
    elif not parts:
        problem = "no name at all"
    elif any(unicodedata.category(c) in ("Cc", "Cs") for c in name):
        problem = "a control character, or bytes that are no text"
    elif any(part != part.rstrip(". ") for part in parts):
        problem = "a dot or a space at the end, which some systems drop"
    elif max(len(part.encode()) for part in parts) > _LONGEST_PART:
        problem = f"more than {_LONGEST_PART} bytes"
    else:
        return PurePosixPath(*parts)
    raise ValueError(f"a member's name is {name[:200]!r}; allowed is a path inside the archive, not {problem}")


def _places(members: Iterable[_Member], archive: Path, allowed: int, most: int) -> list[PurePosixPath]:
    """The place of every member, in order, all of them checked."""
    places: list[PurePosixPath] = []
    kinds: dict[str, str] = {}  # place, as systems see it that do not tell case or accents apart -> kind
    n_bytes = 0
    for member in members:
        if member.kind not in ("file", "folder"):
            raise ValueError(f"the member {member.name[:200]!r} is {member.kind}; allowed are files and folders")
        itself = member.kind == "folder" and member.name in (".", "./")
        places.append(PurePosixPath() if itself else safe_place(member.name))
        n_bytes += member.size
        if n_bytes > allowed:
            raise _too_large(archive, n_bytes, allowed)
        if len(places) > most:
            raise ValueError(f"it has more than {most:,} members; allowed are that many")
        before = kinds.get(_same(places[-1]))
        if before is not None and (before, member.kind) != ("folder", "folder"):
            raise ValueError(f"the member {member.name[:200]!r} is there twice; allowed is once")
        kinds[_same(places[-1])] = member.kind
    for place in places:
        if inside := next((parent for parent in place.parents if kinds.get(_same(parent)) == "file"), None):
            raise ValueError(f"{str(inside)[:200]!r} is a file and a folder; allowed is one of them")
    return places


def _same(place: PurePosixPath) -> str:
    return unicodedata.normalize("NFC", str(place)).casefold()


def _too_large(archive: Path, n_bytes: int, allowed: int) -> ValueError:
    return ValueError(f"it holds {n_bytes:,} bytes or more, from {archive.stat().st_size:,} packed; allowed are {allowed:,}")


def _write(member: _Member, stream: Callable[[], IO[bytes]], target: Path) -> None:
    if member.kind == "folder":
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with stream() as source, target.open("xb") as sink:
        shutil.copyfileobj(source, sink, _BLOCK)
    if target.stat().st_size != member.size:
        raise ValueError(
            f"{member.name!r} has {target.stat().st_size:,} bytes; allowed are the {member.size:,} it is listed with"
        )


@contextmanager
def _explained(archive: Path) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{archive} is not unpacked: {error}") from error
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError) as error:
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):  # those two come of what the archive says
            raise
        raise ValueError(f"{archive} is not unpacked: it is broken or of another kind ({error})") from error
    except RuntimeError as error:  # how zipfile says encrypted, or packed by a rare method
        raise ValueError(f"{archive} is not unpacked: {error}") from error


# -- the two kinds: each member, and how to read it --------------------------------------------------------------------

_Members = Iterator[tuple[_Member, Callable[[], IO[bytes]]]]


def _zip_members(archive: Path, allowed: int) -> _Members:
    with zipfile.ZipFile(archive) as opened:
        for info in opened.infolist():
            mode = info.external_attr >> 16
            kind = "folder" if info.orig_filename.endswith("/") else "file"
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                kind = "a link" if stat.S_ISLNK(mode) else "a special file"
            elif info.flag_bits & 1:
                kind = "encrypted"
            # orig_filename: zipfile cuts the other one at a NUL
            yield _Member(info.orig_filename, kind, info.file_size), lambda info=info: opened.open(info)


def _tar_members(archive: Path, allowed: int) -> _Members:
    with gzip.open(archive) as unzipped, tarfile.open(fileobj=_Capped(unzipped, archive, allowed), mode="r|") as opened:
        for info in opened:
            kind = "folder" if info.isdir() else "file" if info.isreg() and not info.issparse() else "a special file"
            if info.issym() or info.islnk():
                kind = "a link"
            yield _Member(info.name, kind, info.size), lambda info=info: opened.extractfile(info) or io.BytesIO()


_READERS: dict[str, Callable[[Path, int], _Members]] = {"zip": _zip_members, "tar.gz": _tar_members}


class _Capped(io.RawIOBase):
    """A stream that gives up after ``allowed`` bytes and the headers' share: a tar's members can only be listed by reading."""

    def __init__(self, stream: gzip.GzipFile, archive: Path, allowed: int):
        self._stream, self._archive, self._allowed, self._n_read = stream, archive, allowed, 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        most = self._allowed + _BLOCK + self._allowed // 2  # headers and padding, up to 1 KiB a member
        block = self._stream.read(most - self._n_read + 1 if size < 0 else min(size, most - self._n_read + 1))
        self._n_read += len(block)
        if self._n_read > most:
            raise _too_large(self._archive, self._n_read, self._allowed)
        return block
