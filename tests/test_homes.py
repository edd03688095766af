"""The table of official homes: complete, safe to use, and honest about what cannot be
downloaded."""

from __future__ import annotations

import re

from each import each

from trustlab.datasets.fetch import HOMES, SCHEME, File, safe_place


@each("name", HOMES)
def test_every_home_tells_licence_page_and_way(name: str) -> None:
    assert all((HOMES[name].what, HOMES[name].licence, HOMES[name].verified))
    assert HOMES[name].page.startswith("https://")
    assert re.match(r"(direct|by hand|form)\b", HOMES[name].how)


@each("name", HOMES)
def test_every_home_can_be_fetched_or_says_what_to_do(name: str) -> None:
    files = HOMES[name].files
    assert (files and all(file.urls for file in files)) or HOMES[name].by_hand
    assert HOMES[name].how.startswith("direct") == bool(files and all(file.urls for file in files))


@each("file", [file for home in HOMES.values() for file in home.files], ids=lambda file: file.name)
def test_every_file_has_a_safe_name_secure_addresses_and_a_full_hash(file: File) -> None:
    assert str(safe_place(file.name)) == file.name
    pinned = re.compile(rf"{SCHEME}[a-z0-9-]+==[0-9.]+/[^/].+")  # pip's own address is as secure
    assert all(url.startswith("https://") or pinned.fullmatch(url) for url in file.urls)
    assert file.sha256 is None or re.fullmatch("[0-9a-f]{64}", file.sha256)
    assert file.sha256 or not any(url.startswith(SCHEME) for url in file.urls)


def test_code_from_github_is_pinned_to_a_commit() -> None:
    urls = [
        url
        for home in HOMES.values()
        for file in home.files
        for url in file.urls
        if "githubusercontent" in url
    ]
    assert urls and all(re.search("/[0-9a-f]{40}/", url) for url in urls)


def test_restricted_data_have_no_address_to_download_from() -> None:
    for name in ("medrag-statpearls", "medrag-textbooks", "medqa-full"):
        assert not any(file.urls for file in HOMES[name].files)
