"""Data sets of others, from their official homes: licence first, then the download, the check and a note of the source."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import pandas as pd

from trustlab.datasets.download import download
from trustlab.datasets.errors import DataError, read_text
from trustlab.datasets.homes import HOMES, SOURCE, File, Home
from trustlab.datasets.unpack import safe_place, unpack

_BY_HAND = "put there by hand"
_COLUMNS = ["name", "what", "licence", "size", "how", "page"]


@dataclass(frozen=True)
class Source:
    """Where one file came from, and how it was ``checked``: by "sha256", by "size", or "not verified". Size in bytes."""

    home: str
    url: str
    sha256: str
    size: int
    checked: str
    licence: str
    fetched: str


@dataclass(frozen=True)
class Fetched:
    """What lies in ``folder`` now: each file's source by its name, those just ``downloaded``, and the folders unpacked."""

    name: str
    folder: Path
    sources: Mapping[str, Source]
    downloaded: tuple[str, ...]
    unpacked: tuple[Path, ...]


# -- what there is ------------------------------------------------------------------------------------------------


def homes_table(homes: Mapping[str, Home] = HOMES) -> pd.DataFrame:
    """A row for each data set: name, what, licence, size, how, page; all text, in the table's order."""
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
    """What to know before ``name`` is fetched, in lines. Raises ``ValueError`` for an unknown name."""
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


# -- fetching -----------------------------------------------------------------------------------------------------


def fetch(
    name: str, folder: str | Path, *, accept: bool = False, homes: Mapping[str, Home] = HOMES, progress: bool = True
) -> Fetched:
    """Puts the files of data set ``name`` into ``folder``, checks them, and notes their source in ``SOURCE.json`` there.

    ``accept`` says that you read the licence and keep to it. A file that is there and right is not downloaded again, one
    put there by hand included. Each file appears whole and checked or not at all; after a failure the same call goes on
    with those that are missing. An archive is kept and unpacked into a folder of its name. ``progress`` draws a bar.

    Raises ``ValueError`` for an unknown name; without ``accept``, with the licence; where steps must be taken by hand, with
    the steps; where a download fails or is not what was expected; and where something else is in a file's place, which
    is left alone.
    """
    home, folder = _home(name, homes), Path(folder).expanduser()
    notice = licence_notice(name, homes).replace("FOLDER", str(folder))
    if not home.files:
        raise ValueError(f"{name} is not to be had by a program, only by hand.\n{notice}")
    if not accept:
        raise ValueError(f"{notice}\naccept is False; with accept=True (--accept) you say that you keep to the licence")
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"folder is {str(folder)!r}, which is a file; allowed is a folder, or a name for a new one")
    noted = read_sources(folder)
    there = {file.name: _there(folder, file, noted.get(file.name)) for file in home.files}
    if missing := [file.name for file in home.files if there[file.name] is None and not file.urls]:
        raise ValueError(f"{missing[0]} is not in {str(folder)!r} and is only to be had by hand.\n{notice}")
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
        sources[file.name] = _source(folder, file, url, sha256, name, home, before if there[file.name] else None)
        noted = {**noted, file.name: sources[file.name]}
        _write(folder / SOURCE, json.dumps({n: asdict(s) for n, s in noted.items()}, indent=2, ensure_ascii=False) + "\n")
    downloaded = tuple(file.name for file in home.files if there[file.name] is None)
    return Fetched(name, folder, sources, downloaded, tuple(unpacked))


def read_sources(folder: Path) -> dict[str, Source]:
    """What ``SOURCE.json`` in ``folder`` says, by file name; empty without one. Raises :class:`DataError` for a broken one."""
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
        raise DataError(file, None, "content", text, "what fetch writes; move the file away to go on without it") from error


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
        raise ValueError(f"{path} is there, but neither the table nor {SOURCE} tells whether it is whole; {away}")
    if expected is not None and sha256 != expected:
        raise ValueError(f"{path} has sha256 {sha256}; expected is {expected}; {away}")
    return sha256


def _obtained(folder: Path, file: File, noted: Source | None, home: Home, progress: bool) -> tuple[str, str]:
    """Downloads ``file`` beside its place, unpacks it there where it is an archive, then moves both: (address, sha256)."""
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetching-") as temporary:
        whole = Path(temporary) / Path(file.name).name
        try:
            url = download(file, whole, progress)
        except ValueError as error:
            hint = f"Or save it from {home.page} as {folder / file.name} and run this again: it will be checked"
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


def _unpack_once(folder: Path, file: File, archive: Path, sha256: str, noted: Source | None) -> None:
    if file.unpack == "none":
        return
    place = _unpacked_place(folder, file)
    if not (place.is_dir() and noted is not None and noted.sha256 == sha256):  # else it is this archive's already
        unpack(archive, place, file.unpack)


def _unpacked_place(folder: Path, file: File) -> Path:
    return folder / file.name.removesuffix(f".{file.unpack}")


def _source(folder: Path, file: File, url: str, sha256: str, name: str, home: Home, before: Source | None) -> Source:
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
