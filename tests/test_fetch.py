"""Fetching data sets from a server on this machine that serves well and in every bad way we know;
the table of homes; ``trustlab data``."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from each import each
from file_server import FileServer
from made_medqa import official, row
from test_cli import trustlab
from typer.testing import CliRunner

from trustlab.cli import app
from trustlab.datasets.fetch import (
    HOMES,
    SCHEME,
    SOURCE,
    Fetched,
    File,
    Home,
    fetch,
    licence_notice,
)
from trustlab.tables import DataError

ROWS = b"id,answer\n" + b"".join(b"%d,row %d\n" % (i, i) for i in range(2000))
OTHER = b'{"a": 1}\n'
KNOWN = hashlib.sha256(ROWS).hexdigest()
TRIES = 3  # the first, and two more


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trustlab.datasets.fetch.time.sleep", lambda seconds: None)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def server() -> Iterator[FileServer]:
    with FileServer({"/rows.csv": ROWS, "/other.json": OTHER}) as running:
        yield running


def home(server: FileServer, *files: File) -> dict[str, Home]:
    given = files or (File("rows.csv", (f"{server.url}/rows.csv",), len(ROWS), KNOWN),)
    about = ("made-up rows", "CC BY 4.0", "https://example.org/rows", "direct", "nothing")
    return {"made-up": Home(*about, given)}


def other(server: FileServer) -> File:
    return File("data/other.json", (f"{server.url}/other.json",), len(OTHER))


def unchecked(server: FileServer) -> dict[str, Home]:
    return home(server, File("rows.csv", (f"{server.url}/rows.csv",)))


def get(folder: Path, homes: dict[str, Home]) -> Fetched:
    return fetch("made-up", folder, accept=True, homes=homes, progress=False)


def left(folder: Path) -> list[str]:
    """Everything in ``folder``, hidden or not."""
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*")) if folder.exists() else []


# -- before anything is asked for


def test_without_consent_or_a_way_nothing_is_asked_or_written(
    tmp_path: Path, server: FileServer
) -> None:
    with pytest.raises(ValueError, match=r"Licence: CC BY 4.0(.|\n)*accept=True"):
        fetch("made-up", tmp_path / "new", homes=home(server))
    with pytest.raises(ValueError, match="'ddxplu'; allowed are ddxplus, "):
        fetch("ddxplu", tmp_path, accept=True)
    with pytest.raises(ValueError, match="by hand") as caught:
        fetch("medqa-full", tmp_path / "here", accept=True)
    steps = HOMES["medqa-full"].by_hand.replace("FOLDER", str(tmp_path / "here"))
    assert steps in str(caught.value)
    assert (server.asked, left(tmp_path)) == ([], [])
    for part in ("none stated", "github.com/dair-iitd/MediTOD", "UMLS licence", "forms.gle"):
        assert part in licence_notice("meditod")
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(ValueError, match="taken'.*a file"):
        get(tmp_path / "taken", home(server))


def test_without_pooch_the_error_says_how_to_get_it(
    tmp_path: Path, server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r'needs pooch: pip install "trustlab\[data\]"$'):
        get(tmp_path / "made", home(server))
    assert left(tmp_path / "made") == []


# -- a download that goes well


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
    note["rows.csv"]["fetched"] = "2020-02-02T02:02:02+00:00"  # is there and right: not asked again
    (folder / SOURCE).write_text(json.dumps(note))
    assert get(folder, home(server)).downloaded == [] and len(server.asked) == 1
    assert json.loads((folder / SOURCE).read_text()) == note
    homes = home(server, *home(server)["made-up"].files, other(server))
    assert get(folder, homes).downloaded == ["data/other.json"]
    assert server.asked == ["/rows.csv", "/other.json"]
    assert list(json.loads((folder / SOURCE).read_text())) == ["rows.csv", "data/other.json"]


def test_how_a_file_was_checked_is_told_and_holds_from_then_on(
    tmp_path: Path, server: FileServer
) -> None:
    for _ in range(2):
        source = get(tmp_path / "a", unchecked(server)).sources["rows.csv"]
        assert (source.checked, source.sha256) == ("not verified", KNOWN)
    assert len(server.asked) == 1
    sized = home(server, File("rows.csv", (f"{server.url}/rows.csv",), len(ROWS)))
    assert get(tmp_path / "b", sized).sources["rows.csv"].checked == "size"
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "rows.csv").write_bytes(ROWS)
    source = get(tmp_path / "c", home(server)).sources["rows.csv"]
    assert (source.url, source.checked) == ("put there by hand", "sha256")
    (tmp_path / "a" / "rows.csv").write_bytes(ROWS + b"more")
    with pytest.raises(ValueError, match=f"expected is {KNOWN}"):
        get(tmp_path / "a", unchecked(server))
    (tmp_path / "a" / "rows.csv").unlink()
    server.files["/rows.csv"] = ROWS + b"more"
    with pytest.raises(ValueError, match=f"expected is {KNOWN}, noted in"):
        get(tmp_path / "a", unchecked(server))
    assert left(tmp_path / "a") == [SOURCE]


@pytest.mark.parametrize("trouble", ["cut", "corrupt", "nothing", 503])
def test_a_passing_trouble_is_overcome(
    tmp_path: Path, server: FileServer, trouble: str | int
) -> None:
    server.plan = lambda k: trouble if k == 0 else None
    get(tmp_path, home(server))
    assert (tmp_path / "rows.csv").read_bytes() == ROWS
    assert left(tmp_path) == [SOURCE, "rows.csv"]


def test_the_second_address_helps_where_the_first_fails(tmp_path: Path, server: FileServer) -> None:
    urls = (f"{server.url}/gone", f"{server.url}/rows.csv")
    got = get(tmp_path, home(server, File("rows.csv", urls, len(ROWS), KNOWN)))
    assert got.sources["rows.csv"].url == urls[1] and server.asked == ["/gone"] * TRIES + [
        "/rows.csv"
    ]


# -- a download that fails

FAILURES = [
    ("cut", TRIES, "IncompleteRead|Connection"),
    ("corrupt", TRIES, f"has sha256 [0-9a-f]{{64}}; expected is {KNOWN}, in the table"),
    ("truncated", TRIES, f"has {len(ROWS) // 2:,} bytes; expected are {len(ROWS):,}"),
    ("too long", TRIES, "IncompleteRead"),
    ("nothing", TRIES, "rows.csv is empty"),
    ("page", TRIES, "a web page, perhaps a login"),
    ("pointer", TRIES, "a git-LFS pointer"),
    (404, TRIES, "404"),
]


@pytest.mark.parametrize(("trouble", "times", "told"), FAILURES)
def test_a_lasting_trouble_is_told_and_leaves_nothing(
    tmp_path: Path, server: FileServer, trouble: str | int, times: int, told: str
) -> None:
    server.plan = lambda k: trouble
    with pytest.raises(ValueError, match=told) as caught:
        get(tmp_path / "new", home(server))
    by_hand = f"save it from https://example.org/rows as {tmp_path / 'new' / 'rows.csv'}"
    assert "rows.csv could not be downloaded" in str(caught.value) and by_hand in str(caught.value)
    assert (len(server.asked), left(tmp_path / "new")) == (times, [])
    if trouble not in ("corrupt", "truncated"):  # seen without a size and a hash, too
        with pytest.raises(ValueError, match="rows.csv could not be downloaded"):
            get(tmp_path / "new", unchecked(server))
        assert left(tmp_path / "new") == []


def test_the_files_before_a_failure_stay_and_the_next_call_goes_on(
    tmp_path: Path, server: FileServer
) -> None:
    homes = home(server, *home(server)["made-up"].files, other(server))
    server.plan = lambda k: 404 if 1 <= k <= TRIES else None
    with pytest.raises(ValueError, match="other.json could not be downloaded"):
        get(tmp_path, homes)
    assert {SOURCE, "rows.csv"} <= set(left(tmp_path)) and not (
        tmp_path / "data/other.json"
    ).exists()
    assert get(tmp_path, homes).downloaded == ["data/other.json"]


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (ROWS[:-1], "rows.csv has .*expected are"),
        (ROWS[:-1] + b"x", "rows.csv has .*expected is"),
        (None, "rows.csv.*directory"),
    ],
)
def test_another_file_in_the_place_is_named_and_left_alone(
    tmp_path: Path, server: FileServer, found: bytes | None, words: str
) -> None:
    place = tmp_path / "rows.csv"
    place.mkdir() if found is None else place.write_bytes(found)
    with pytest.raises(ValueError, match=f"{words}.*; move it away"):
        get(tmp_path, home(server))
    assert found is None or place.read_bytes() == found
    if found:
        with pytest.raises(ValueError, match="neither the table nor SOURCE.json tells"):
            get(tmp_path, unchecked(server))
    assert server.asked == []


@pytest.mark.parametrize("text", ["", "[]", '{"rows.csv": {"url": "x"}}'])
def test_a_broken_note_is_named(tmp_path: Path, server: FileServer, text: str) -> None:
    (tmp_path / SOURCE).write_text(text)
    with pytest.raises(DataError, match="SOURCE.json, content"):
        get(tmp_path, home(server))


# -- the table of homes


@each("name", HOMES)
def test_every_home_tells_its_licence_and_can_be_fetched_or_says_what_to_do(name: str) -> None:
    home, files = HOMES[name], HOMES[name].files
    assert home.what and home.licence and home.verified and home.page.startswith("https://")
    direct = bool(files)
    assert (direct or home.by_hand) and home.how.startswith("direct") == direct
    pinned = re.compile(rf"{SCHEME}[a-z0-9-]+==[0-9.]+/[^/].+")  # pip's own address is as secure
    for file in files:
        assert not Path(file.name).is_absolute() and ".." not in Path(file.name).parts
        assert file.sha256 is None or re.fullmatch("[0-9a-f]{64}", file.sha256)
        for url in file.urls:
            assert url.startswith("https://") or (pinned.fullmatch(url) and file.sha256)
            assert "githubusercontent" not in url or re.search("/[0-9a-f]{40}/", url)
    assert name not in ("medrag-statpearls", "medrag-textbooks", "medqa-full") or not direct


# -- trustlab data


def test_the_command_shows_the_licence_and_asks_first(
    tmp_path: Path, server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(HOMES, "made-up", home(server)["made-up"])
    words = ["data", "fetch", "made-up", "--to", str(tmp_path / "new")]
    done = CliRunner().invoke(app, words, input="n\n")
    assert done.exit_code == 1 and "Licence: CC BY 4.0" in done.stdout
    assert "Do you keep to this licence?" in done.stdout
    assert not server.asked and not (tmp_path / "new").exists()
    done = CliRunner().invoke(app, words, input="y\n")
    assert done.exit_code == 0 and f"downloaded, {len(ROWS):,} bytes" in done.stdout
    assert "(as expected)" in done.stdout
    assert "was there" in trustlab(*words, "--accept") and len(server.asked) == 1


def test_check_reads_a_set_with_its_options_and_refuses_in_a_line(tmp_path: Path) -> None:
    path = official(tmp_path, [row(), row("A short one. What is the most likely diagnosis?")])
    told = trustlab("data", "check", "medqa", "--path", path, "--option", "ids=['1']")
    assert told.startswith("medqa: 2 entries read, 1 case\n")
    assert "the first case: medqa-1, Gout" in told
    for words, message in (
        (["nosuch"], "name is 'nosuch'; allowed are starter,"),
        (["ddxplus"], "trustlab data fetch ddxplus"),
        (["starter", "--option", "split=test"], "starter has no option 'split'; it has none"),
    ):
        assert message in trustlab("data", "check", *words, status=2)
