"""Fetching data sets from a server on this machine that serves well and in every bad way we know;
unpacking; the table of homes; ``trustlab data``."""

from __future__ import annotations

import hashlib
import io
import json
import re
import stat
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from each import each
from file_server import FileServer
from hypothesis import example, given, settings
from hypothesis import strategies as st
from made_medqa import official, row
from saying import saying, says
from test_cli import trustlab
from typer.testing import CliRunner

from trustlab.cli.commands import app
from trustlab.datasets.fetch import (
    HOMES,
    SCHEME,
    SOURCE,
    Fetched,
    File,
    Home,
    fetch,
    safe_place,
    unpack,
)

ROWS = b"id,answer\n" + b"".join(b"%d,row %d\n" % (i, i) for i in range(2000))
OTHER = b'{"a": 1}\n'
KNOWN = hashlib.sha256(ROWS).hexdigest()


def zipped(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def server() -> Iterator[FileServer]:
    files = {"/rows.csv": ROWS, "/other.json": OTHER, "/set.zip": zipped(rows=ROWS)}
    with FileServer(files) as running:
        yield running


def home(server: FileServer, *files: File) -> dict[str, Home]:
    given = files or (File("rows.csv", f"{server.url}/rows.csv", len(ROWS), KNOWN),)
    about = ("made-up rows", "CC BY 4.0", "https://example.org/rows", "direct", "nothing")
    return {"made-up": Home(*about, given)}


def other(server: FileServer) -> File:
    return File("data/other.json", f"{server.url}/other.json", len(OTHER))


def unchecked(server: FileServer, path: str = "rows.csv", unpack: Any = "none") -> dict[str, Home]:
    return home(server, File(path, f"{server.url}/{path}", unpack=unpack))


def get(folder: Path, homes: dict[str, Home]) -> Fetched:
    return fetch("made-up", folder, accept=True, homes=homes)


def left(folder: Path) -> list[str]:
    """Everything in ``folder``, hidden or not."""
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*")) if folder.exists() else []


def test_without_consent_or_a_way_nothing_is_asked_or_written(tmp_path, server) -> None:
    with pytest.raises(ValueError, match=saying("CC BY 4.0", "accept=True")):
        fetch("made-up", tmp_path / "new", homes=home(server))
    with pytest.raises(ValueError, match=saying("'ddxplu'", "ddxplus", "medqa")):
        fetch("ddxplu", tmp_path, accept=True)
    with pytest.raises(ValueError, match="by hand") as caught:
        fetch("medqa-full", tmp_path / "here", accept=True)
    steps = HOMES["medqa-full"].by_hand.replace("FOLDER", str(tmp_path / "here"))
    assert steps in str(caught.value)
    assert (server.asked, left(tmp_path)) == ([], [])


def test_a_file_arrives_whole_with_a_note_of_its_source(tmp_path: Path, server: FileServer) -> None:
    folder = tmp_path / "a" / "b"
    assert get(folder, home(server)).downloaded == ["rows.csv"]
    assert (folder / "rows.csv").read_bytes() == ROWS and left(folder) == [SOURCE, "rows.csv"]
    assert server.headers[0]["accept-encoding"] == "identity"
    note = json.loads((folder / SOURCE).read_text())
    fetched = note["rows.csv"].pop("fetched")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", fetched)
    about = {"home": "made-up", "url": f"{server.url}/rows.csv", "sha256": KNOWN}
    about |= {"size": len(ROWS), "checked": "sha256", "licence": "CC BY 4.0"}
    assert note == {"rows.csv": about}
    assert get(folder, home(server)).downloaded == [] and len(server.asked) == 1  # is there
    homes = home(server, *home(server)["made-up"].files, other(server))
    assert get(folder, homes).downloaded == ["data/other.json"]
    assert server.asked == ["/rows.csv", "/other.json"]
    assert list(json.loads((folder / SOURCE).read_text())) == ["rows.csv", "data/other.json"]


def test_how_a_file_was_checked_is_told_and_holds_from_then_on(tmp_path, server) -> None:
    for _ in range(2):
        source = get(tmp_path / "a", unchecked(server)).sources["rows.csv"]
        assert (source.checked, source.sha256) == ("not verified", KNOWN)
    assert len(server.asked) == 1
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "rows.csv").write_bytes(ROWS)
    source = get(tmp_path / "c", home(server)).sources["rows.csv"]
    assert (source.url, source.checked) == ("put there by hand", "sha256")
    (tmp_path / "a" / "rows.csv").unlink()
    server.files["/rows.csv"] = ROWS + b"more"
    with pytest.raises(ValueError, match=f"expected is {KNOWN}, noted in"):
        get(tmp_path / "a", unchecked(server))
    assert left(tmp_path / "a") == [SOURCE]


FAILURES = [
    ("cut", "rows.csv"),
    ("corrupt", ("sha256", KNOWN, "table")),
    ("truncated", (f"{len(ROWS) // 2:,}", f"{len(ROWS):,}")),
    ("endless", ("more", f"{len(ROWS):,}")),
    ("nothing", ("rows.csv", "empty")),
    ("page", "web page"),
    ("pointer", "git-LFS"),
]


@pytest.mark.parametrize(("trouble", "told"), FAILURES)
def test_a_lasting_trouble_is_told_and_leaves_nothing(tmp_path, server, trouble, told):
    server.plan = lambda k: trouble
    with pytest.raises(ValueError, match=saying(told)) as caught:
        get(tmp_path / "new", home(server))
    assert says(caught.value, "https://example.org/rows", tmp_path / "new" / "rows.csv")
    assert (len(server.asked), left(tmp_path / "new")) == (1, [])
    if trouble not in ("corrupt", "truncated", "endless"):  # seen without a size and a hash, too
        with pytest.raises(ValueError, match=saying("rows.csv", "downloaded")):
            get(tmp_path / "new", unchecked(server))
        assert left(tmp_path / "new") == []


def test_the_files_before_a_failure_stay_and_the_next_call_goes_on(tmp_path, server) -> None:
    homes = home(server, *home(server)["made-up"].files, other(server))
    server.plan = lambda k: 404 if k == 1 else None
    with pytest.raises(ValueError, match=saying("other.json", "downloaded")):
        get(tmp_path, homes)
    assert {SOURCE, "rows.csv"} <= set(left(tmp_path)) <= {SOURCE, "rows.csv", "data"}
    assert get(tmp_path, homes).downloaded == ["data/other.json"]


def test_an_archive_is_kept_and_unpacked_once_into_a_folder_of_its_name(tmp_path, server) -> None:
    for _ in range(2):
        got = get(tmp_path, unchecked(server, "set.zip", "zip"))
        assert got.unpacked == [tmp_path / "set"]
    assert left(tmp_path) == [SOURCE, "set", "set.zip", "set/rows"]
    assert (tmp_path / "set" / "rows").read_bytes() == ROWS
    server.files["/set.zip"] = zipped(**{"../out": b"x"})
    with pytest.raises(ValueError, match=saying("set.zip", "not unpacked")):
        get(tmp_path / "new", unchecked(server, "set.zip", "zip"))
    assert left(tmp_path / "new") == []


def make(path: Path, members: Iterable[tuple[str, bytes]]) -> Path:
    """A zip with these members, names as they are; a name that ends in a slash is a folder."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            info = zipfile.ZipInfo("placeholder")
            info.filename = info.orig_filename = name
            archive.writestr(info, content, zipfile.ZIP_DEFLATED)
    return path


def test_files_and_folders_arrive_whole_within_the_limits(tmp_path: Path) -> None:
    members = [("./", b""), ("a/", b""), ("a/b.txt", b"one"), ("./c d/é.txt", b"")]
    archive = make(tmp_path / "x", [*members, ("big", bytes(3_000_000))])
    unpack(archive, tmp_path / "out", ratio=10**6)
    assert left(tmp_path / "out") == ["a", "a/b.txt", "big", "c d", "c d/é.txt"]
    assert (tmp_path / "out/big").stat().st_size == 3_000_000
    archive = make(tmp_path / "x", [(f"f{i}", b"0123456789") for i in range(10)])
    unpack(archive, tmp_path / "all", n_bytes=100)
    for limit, words in (({"n_bytes": 99}, "holds 100 bytes in 10"), ({"n_members": 9}, "and 9")):
        with pytest.raises(ValueError, match=words):
            unpack(archive, tmp_path / "none", **limit)
    assert len(left(tmp_path / "all")) == 10 and not (tmp_path / "none").exists()


def lying(archive: Path) -> None:
    content, (ten, three) = archive.read_bytes(), (n.to_bytes(4, "little") for n in (10, 3))
    assert content.count(ten) == 2
    archive.write_bytes(content.replace(ten, three))


def linked(archive: Path) -> None:
    with zipfile.ZipFile(archive, "w") as opened:
        info = zipfile.ZipInfo("innocent")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        opened.writestr(info, "/etc")


def bomb(archive: Path) -> None:
    make(archive, [("zeros", bytes(20_000_000))])


BAD = {lying: "", linked: "'innocent'", bomb: "bytes in .* members; allowed"}


@each("change, words", BAD.items())
def test_any_other_archive_leaves_nothing(tmp_path: Path, change, words: str) -> None:
    archive = make(tmp_path / "x", [("a", b"0123456789")])
    change(archive)
    with pytest.raises(ValueError, match=f"x is not unpacked.*{words}"):
        unpack(archive, tmp_path / "out")
    assert left(tmp_path) == ["x"]


pieces = st.sampled_from(["..", ".", "/", "\\", "C:", "a", "~", "\0", " ", "%2e%2e", "\u2025", "é"])
names = st.text(max_size=20) | st.lists(pieces, max_size=8).map("".join)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@settings(max_examples=60)
@given(first=names, second=names)
@example(first="a", second="../outside")
@example(first="a\0/../../outside", second="b")
def test_no_name_whatsoever_leads_outside_the_folder(first: str, second: str) -> None:
    with tempfile.TemporaryDirectory() as name, suppress(ValueError):
        around = Path(name)
        archive = make(around / "x", [(first, b"1"), (second, b"22")])
        with suppress(ValueError):
            unpack(archive, around / "in" / "out")
        written = [p for p in around.rglob("*") if not p.is_dir()]
        assert all(p == archive or (around / "in" / "out") in p.parents for p in written)


@each("name", HOMES)
def test_every_home_tells_its_licence_and_can_be_fetched_or_says_what_to_do(name: str) -> None:
    home, files = HOMES[name], HOMES[name].files
    assert home.what and home.licence and home.verified and home.page.startswith("https://")
    direct = bool(files) and all(file.url for file in files)
    assert (direct or home.by_hand) and home.how.startswith("direct") == direct
    pinned = re.compile(rf"{SCHEME}[a-z0-9-]+==[0-9.]+/[^/].+")  # pip's own address is as secure
    for file in files:
        assert str(safe_place(file.name)) == file.name
        assert file.sha256 is None or re.fullmatch("[0-9a-f]{64}", file.sha256)
        if url := file.url:
            assert url.startswith("https://") or (pinned.fullmatch(url) and file.sha256)
            assert "githubusercontent" not in url or re.search("/[0-9a-f]{40}/", url)
    assert name not in ("medrag-statpearls", "medrag-textbooks", "medqa-full") or not direct


def test_the_command_shows_the_licence_and_asks_first(tmp_path, server, monkeypatch) -> None:
    monkeypatch.setitem(HOMES, "made-up", home(server)["made-up"])
    words = ["data", "fetch", "made-up", "--to", str(tmp_path / "new")]
    done = CliRunner().invoke(app, words, input="y\n")
    assert done.exit_code == 2 and "Licence: CC BY 4.0" in done.stdout
    assert says(done.stderr, "no terminal", "licence", "--accept")
    assert not server.asked and not (tmp_path / "new").exists()
    terminal = "typer.testing._NamedTextIOWrapper.isatty"
    monkeypatch.setattr(terminal, lambda stdin: True, raising=False)
    done = CliRunner().invoke(app, words, input="n\n")
    assert done.exit_code == 1 and "Licence: CC BY 4.0" in done.stdout
    assert done.stdout.count("icence") > 1
    assert not server.asked and not (tmp_path / "new").exists()
    done = CliRunner().invoke(app, words, input="y\n")
    assert done.exit_code == 0 and f"downloaded, {len(ROWS):,} bytes" in done.stdout
    assert "(checked: sha256)" in done.stdout
    assert "was there" in trustlab(*words, "--accept") and len(server.asked) == 1


def test_check_reads_a_set_with_its_options_and_refuses_in_a_line(tmp_path: Path) -> None:
    path = official(tmp_path, [row(), row("A short one. What is the most likely diagnosis?")])
    told = trustlab("data", "check", "medqa", "--path", path, "--option", "ids=['1']")
    assert says(told.splitlines()[0], "medqa", 2, 1)
    assert says(told, "medqa-1", "Gout")
    assert "trustlab data fetch ddxplus" in trustlab("data", "check", "ddxplus", status=2)
