"""One file from an address, whole and checked or not at all; pooch does the transfer, the retries and the hash."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any

from trustlab.datasets.homes import File

RETRIES = 2
_LARGEST = 200 * 2**30  # bytes, where no source gives a size
_FOR_GOOD = frozenset({400, 401, 403, 404, 405, 410, 451})  # statuses that another try does not change
_HEADERS = {"User-Agent": "trustlab (research)", "Accept-Encoding": "identity"}  # identity: the length sent is the file's
_PAGES = (b"<!doctype html", b"<html", b"<head", b"<?xml version")
_POINTER = b"version https://git-lfs.github.com"


class _Final(Exception):
    """A failure that another try with the same address would only repeat."""


def download(file: File, target: Path, progress: bool = False) -> str:
    """Writes ``file`` to the new ``target`` and returns the address that gave it; the addresses are tried in order.

    Checked are the hash and the size where they are known, and that what came is neither empty, a web page nor a pointer.
    Until then the bytes lie under another name, which goes when anything fails. Raises ``ValueError`` with what each
    address gave instead.
    """
    import pooch  # here, with requests: a plain import of the package stays quick
    import requests

    pooch.get_logger().setLevel("WARNING")
    failures = []
    for url in file.urls:
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


class _Careful:
    """pooch's HTTP downloader, and a look at what came. pooch calls it for each try, and tries again on ``ValueError``."""

    def __init__(self, file: File, progress: bool):
        self._file, self._progress = file, progress

    def __call__(self, url: str, output_file: str | os.PathLike, pooch: Any) -> None:
        from pooch import HTTPDownloader
        from requests import HTTPError

        transfer = HTTPDownloader(progressbar=self._progress, chunk_size=1 << 18, headers=_HEADERS)
        with open(output_file, "wb") as stream:
            try:
                transfer(url, _Capped(stream, self._file.size), pooch)
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
        raise _Final(f"the server sent a web page, perhaps a login or a notice, instead of {file.name}")
    if start.startswith(_POINTER):
        raise _Final(f"the server sent a git-LFS pointer instead of {file.name}")
    if size == 0:
        raise ValueError(f"the server sent nothing instead of {file.name}")
    if file.size is not None and size != file.size:
        raise ValueError(f"{file.name} came with {size:,} bytes; expected are {file.size:,}")


class _Capped:
    """A file that takes no more than was announced, so that a server cannot fill the disk."""

    def __init__(self, stream: IO[bytes], size: int | None):
        self._stream, self._expected, self._n_bytes = stream, size, 0

    def write(self, block: bytes) -> int:
        self._n_bytes += len(block)
        most = _LARGEST if self._expected is None else self._expected
        if self._n_bytes > most:
            raise ValueError(
                f"the server sends more than {most:,} bytes; expected are {'fewer' if self._expected is None else most}"
            )
        return self._stream.write(block)

    def flush(self) -> None:
        """Nothing: pooch asks for it after each block, which slows large files down."""
