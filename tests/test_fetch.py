"""Fetching data sets: from a server on this machine that serves well and in every bad way we
know."""

from __future__ import annotations

import hashlib
import io
import json
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from file_server import PAGE, FileServer
from made_ddxplus import release

from trustlab.datasets import load_cases
from trustlab.datasets.cases_file import DataError
from trustlab.datasets.fetch import HOMES, SOURCE, Fetched, File, Home, fetch, licence_notice

ROWS = b"id,answer\n" + b"".join(b"%d,row %d\n" % (i, i) for i in range(2000))
OTHER = b'{"a": 1}\n'
KNOWN = hashlib.sha256(ROWS).hexdigest()
ONCE = 1
TRIES = 3  # the first, and two more


def zipped(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trustlab.datasets.fetch.time.sleep", lambda seconds: None)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def server() -> Iterator[FileServer]:
    with FileServer(
        {"/rows.csv": ROWS, "/other.json": OTHER, "/set.zip": zipped(rows=ROWS)}
    ) as running:
        yield running


def home(
    server: FileServer, *files: File, how: str = "direct", by_hand: str = ""
) -> dict[str, Home]:
    given = files or (File("rows.csv", (f"{server.url}/rows.csv",), len(ROWS), KNOWN),)
    return {
        "made-up": Home(
            "made-up rows", "CC BY 4.0", "https://example.org/rows", how, "nothing", given, by_hand
        )
    }


def unchecked(server: FileServer, path: str = "rows.csv", unpack: str = "none") -> dict[str, Home]:
    return home(server, File(path, (f"{server.url}/{path}",), unpack=unpack))


def get(folder: Path, homes: dict[str, Home]) -> Fetched:
    return fetch("made-up", folder, accept=True, homes=homes, progress=False)


def left(folder: Path) -> list[str]:
    """Everything in ``folder``, hidden or not."""
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*")) if folder.exists() else []


# -- before anything is asked for


def test_without_consent_the_licence_is_told_and_nothing_is_asked_or_written(
    tmp_path: Path, server: FileServer
) -> None:
    with pytest.raises(ValueError, match=r"Licence: CC BY 4.0(.|\n)*accept=True"):
        fetch("made-up", tmp_path / "new", homes=home(server))
    assert (server.asked, left(tmp_path)) == ([], [])


def test_the_notice_tells_all_that_one_agrees_to() -> None:
    notice = licence_notice("meditod")
    for part in ("none stated", "github.com/dair-iitd/MediTOD", "UMLS licence", "forms.gle"):
        assert part in notice


@pytest.mark.parametrize("name", ["medrag-statpearls", "medqa-full"])
def test_what_is_had_by_hand_only_says_the_steps_with_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="by hand") as caught:
        fetch(name, tmp_path / "here", accept=True)
    assert HOMES[name].by_hand.replace("FOLDER", str(tmp_path / "here")) in str(caught.value)
    assert left(tmp_path) == []


def test_an_unknown_name_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'ddxplu'; allowed are ddxplus, "):
        fetch("ddxplu", tmp_path, accept=True)


def test_a_file_is_no_folder(tmp_path: Path, server: FileServer) -> None:
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(ValueError, match="taken'.*a file"):
        get(tmp_path / "taken", home(server))
    assert (tmp_path / "taken").read_text() == "mine"


# -- a download that goes well


def test_a_file_arrives_whole_with_a_note_of_its_source(tmp_path: Path, server: FileServer) -> None:
    got = get(tmp_path / "a" / "b", home(server))
    assert (tmp_path / "a" / "b" / "rows.csv").read_bytes() == ROWS
    assert got.downloaded == ["rows.csv"]
    note = json.loads((tmp_path / "a" / "b" / SOURCE).read_text())["rows.csv"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", note.pop("fetched"))
    assert note == {
        "home": "made-up",
        "url": f"{server.url}/rows.csv",
        "sha256": KNOWN,
        "size": len(ROWS),
        "checked": "sha256",
        "licence": "CC BY 4.0",
    }
    assert left(tmp_path / "a" / "b") == [SOURCE, "rows.csv"]


def test_files_can_be_read_by_whom_the_user_lets_read(tmp_path: Path, server: FileServer) -> None:
    get(tmp_path, home(server))
    (tmp_path / "mine").touch()
    modes = {path.stat().st_mode for path in tmp_path.iterdir()}
    assert len(modes) == 1


def test_what_is_there_and_right_is_not_asked_for_again(tmp_path: Path, server: FileServer) -> None:
    get(tmp_path, home(server))
    note = json.loads((tmp_path / SOURCE).read_text())
    note["rows.csv"]["fetched"] = "2020-02-02T02:02:02+00:00"
    (tmp_path / SOURCE).write_text(json.dumps(note))
    again = get(tmp_path, home(server))
    assert len(server.asked) == ONCE
    assert again.downloaded == []
    assert json.loads((tmp_path / SOURCE).read_text()) == note


def test_a_file_put_there_by_hand_is_checked_and_kept(tmp_path: Path, server: FileServer) -> None:
    (tmp_path / "rows.csv").write_bytes(ROWS)
    got = get(tmp_path, home(server))
    assert (server.asked, got.sources["rows.csv"].url, got.sources["rows.csv"].checked) == (
        [],
        "put there by hand",
        "sha256",
    )


def test_several_files_and_their_folders_are_made_and_only_the_missing_one_is_asked_for(
    tmp_path: Path, server: FileServer
) -> None:
    homes = home(
        server,
        *home(server)["made-up"].files,
        File("data/other.json", (f"{server.url}/other.json",), len(OTHER)),
    )
    (tmp_path / "rows.csv").write_bytes(ROWS)
    assert get(tmp_path, homes).downloaded == ["data/other.json"]
    assert server.asked == ["/other.json"]
    assert (tmp_path / "data" / "other.json").read_bytes() == OTHER


def test_two_data_sets_share_a_folder_and_its_notes(tmp_path: Path, server: FileServer) -> None:
    get(tmp_path, home(server))
    get(tmp_path, home(server, File("other.json", (f"{server.url}/other.json",))))
    assert list(json.loads((tmp_path / SOURCE).read_text())) == ["rows.csv", "other.json"]


def test_where_no_hash_is_known_the_one_found_is_told_and_holds_from_then_on(
    tmp_path: Path, server: FileServer
) -> None:
    for downloaded in (["rows.csv"], []):
        got = get(tmp_path, unchecked(server))
        assert got.downloaded == downloaded
        assert (got.sources["rows.csv"].checked, got.sources["rows.csv"].sha256) == (
            "not verified",
            KNOWN,
        )
    assert len(server.asked) == ONCE


def test_where_only_the_size_is_known_it_is_what_was_checked(
    tmp_path: Path, server: FileServer
) -> None:
    got = get(tmp_path, home(server, File("rows.csv", (f"{server.url}/rows.csv",), len(ROWS))))
    assert (got.sources["rows.csv"].checked, got.sources["rows.csv"].sha256) == ("size", KNOWN)


def test_a_fetched_release_is_what_the_loader_reads(tmp_path: Path, server: FileServer) -> None:
    (tmp_path / "official").mkdir()
    release(tmp_path / "official")
    patients = (tmp_path / "official" / "release_test_patients.csv").read_bytes()
    (tmp_path / "official" / "release_test_patients.zip").write_bytes(
        zipped(release_test_patients=patients)
    )
    names = [file.name for file in HOMES["ddxplus"].files]
    server.files = {f"/{name}": (tmp_path / "official" / name).read_bytes() for name in names}
    get(tmp_path / "mine", home(server, *(File(name, (f"{server.url}/{name}",)) for name in names)))
    assert load_cases("ddxplus", path=tmp_path / "mine") == load_cases(
        "ddxplus", path=tmp_path / "official" / names[-1]
    )


def test_the_bytes_are_asked_for_as_they_are(tmp_path: Path, server: FileServer) -> None:
    get(tmp_path, home(server))
    assert server.headers[0]["accept-encoding"] == "identity"


@pytest.mark.parametrize("trouble", ["cut", "corrupt", "truncated", "endless", "nothing", 503, 429])
def test_a_passing_trouble_is_overcome(
    tmp_path: Path, server: FileServer, trouble: str | int
) -> None:
    server.plan = lambda k: trouble if k == 0 else None
    get(tmp_path, home(server))
    assert (tmp_path / "rows.csv").read_bytes() == ROWS
    assert left(tmp_path) == [SOURCE, "rows.csv"]


def test_the_second_address_helps_where_the_first_fails(tmp_path: Path, server: FileServer) -> None:
    got = get(
        tmp_path,
        home(
            server,
            File("rows.csv", (f"{server.url}/gone", f"{server.url}/rows.csv"), len(ROWS), KNOWN),
        ),
    )
    assert got.sources["rows.csv"].url == f"{server.url}/rows.csv"
    assert server.asked == ["/gone", "/rows.csv"]


# -- a download that fails

FAILURES = [
    ("cut", TRIES, "IncompleteRead|Connection"),
    ("corrupt", TRIES, f"has sha256 [0-9a-f]{{64}}; expected is {KNOWN}, in the table"),
    ("truncated", TRIES, f"has {len(ROWS) // 2:,} bytes; expected are {len(ROWS):,}"),
    ("too long", TRIES, "IncompleteRead"),
    ("endless", TRIES, f"more than {len(ROWS):,} bytes"),
    ("nothing", TRIES, "rows.csv is empty"),
    ("page", TRIES, "a web page, perhaps a login"),
    ("pointer", TRIES, "a git-LFS pointer"),
    (404, ONCE, "404"),
    (403, ONCE, "403"),
    (500, TRIES, "500"),
]


@pytest.mark.parametrize(("trouble", "times", "told"), FAILURES)
def test_a_lasting_trouble_is_told_and_leaves_nothing(
    tmp_path: Path, server: FileServer, trouble: str | int, times: int, told: str
) -> None:
    server.plan = lambda k: trouble
    with pytest.raises(ValueError, match=told) as caught:
        get(tmp_path / "new", home(server))
    assert "rows.csv could not be downloaded" in str(caught.value)
    assert f"save it from https://example.org/rows as {tmp_path / 'new' / 'rows.csv'}" in str(
        caught.value
    )
    assert (len(server.asked), left(tmp_path / "new")) == (times, [])


@pytest.mark.parametrize("trouble", ["cut", "too long", "nothing", "page", "pointer", 404, 500])
def test_trouble_is_seen_even_where_neither_size_nor_hash_is_known(
    tmp_path: Path, server: FileServer, trouble: str | int
) -> None:
    server.plan = lambda k: trouble
    with pytest.raises(ValueError, match="rows.csv could not be downloaded"):
        get(tmp_path, unchecked(server))
    assert left(tmp_path) == []


def test_nobody_listening_is_told(tmp_path: Path, server: FileServer) -> None:
    homes = home(server)
    with FileServer({}) as gone:
        url = gone.url
    homes = home(server, File("rows.csv", (f"{url}/rows.csv",), len(ROWS), KNOWN))
    with pytest.raises(ValueError, match=r"rows.csv could not be downloaded. http://127.0.0.1"):
        get(tmp_path, homes)
    assert left(tmp_path) == []


def test_the_files_before_a_failure_stay_and_the_next_call_goes_on(
    tmp_path: Path, server: FileServer
) -> None:
    homes = home(
        server,
        *home(server)["made-up"].files,
        File("other.json", (f"{server.url}/other.json",), len(OTHER)),
    )
    server.plan = lambda k: 404 if k == 1 else None
    with pytest.raises(ValueError, match="other.json could not be downloaded"):
        get(tmp_path, homes)
    assert left(tmp_path) == [SOURCE, "rows.csv"]
    assert get(tmp_path, homes).downloaded == ["other.json"]


@pytest.mark.parametrize("found", [ROWS[:-1], ROWS[:-1] + b"x"])
def test_another_file_in_the_place_is_named_and_left_alone(
    tmp_path: Path, server: FileServer, found: bytes
) -> None:
    (tmp_path / "rows.csv").write_bytes(found)
    with pytest.raises(ValueError, match=r"rows.csv has .*expected (is|are).*; move it away"):
        get(tmp_path, home(server))
    assert ((tmp_path / "rows.csv").read_bytes(), server.asked) == (found, [])


def test_a_file_that_nobody_can_vouch_for_is_not_taken_for_whole(
    tmp_path: Path, server: FileServer
) -> None:
    (tmp_path / "rows.csv").write_bytes(ROWS[:100])
    with pytest.raises(
        ValueError, match="rows.csv: neither the table nor SOURCE.json tells whether it is whole"
    ):
        get(tmp_path, unchecked(server))


def test_a_file_changed_since_it_was_noted_is_refused(tmp_path: Path, server: FileServer) -> None:
    get(tmp_path, unchecked(server))
    (tmp_path / "rows.csv").write_bytes(ROWS + b"more")
    with pytest.raises(ValueError, match=f"expected is {KNOWN}"):
        get(tmp_path, unchecked(server))


def test_a_server_that_changed_its_file_since_it_was_noted_is_refused(
    tmp_path: Path, server: FileServer
) -> None:
    get(tmp_path, unchecked(server))
    (tmp_path / "rows.csv").unlink()
    server.files["/rows.csv"] = ROWS + b"more"
    with pytest.raises(ValueError, match=f"expected is {KNOWN}, noted in"):
        get(tmp_path, unchecked(server))
    assert left(tmp_path) == [SOURCE]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"rows.csv": {"url": "x"}}', '{"rows.csv": 1}'])
def test_a_broken_note_is_named(tmp_path: Path, server: FileServer, text: str) -> None:
    (tmp_path / SOURCE).write_text(text)
    with pytest.raises(DataError, match="SOURCE.json, content"):
        get(tmp_path, home(server))


# -- archives


def test_an_archive_is_kept_and_unpacked_into_a_folder_of_its_name_once(
    tmp_path: Path, server: FileServer
) -> None:
    for _ in range(2):
        got = get(tmp_path, unchecked(server, "set.zip", "zip"))
        assert got.unpacked == [tmp_path / "set"]
    assert (tmp_path / "set" / "rows").read_bytes() == ROWS
    assert left(tmp_path) == [SOURCE, "set", "set.zip", "set/rows"]
    assert len(server.asked) == ONCE


def test_an_unpacked_folder_that_was_lost_is_made_again_without_asking(
    tmp_path: Path, server: FileServer
) -> None:
    get(tmp_path, unchecked(server, "set.zip", "zip"))
    (tmp_path / "set" / "rows").unlink()
    (tmp_path / "set").rmdir()
    get(tmp_path, unchecked(server, "set.zip", "zip"))
    assert (tmp_path / "set" / "rows").read_bytes() == ROWS
    assert len(server.asked) == ONCE


def test_a_page_saved_by_hand_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "medqa.zip").write_bytes(PAGE)
    with pytest.raises(ValueError, match="medqa.zip is a web page.*move it away"):
        fetch("medqa-full", tmp_path, accept=True)
    assert left(tmp_path) == ["medqa.zip"]


def test_a_folder_in_a_file_s_place_is_named(tmp_path: Path, server: FileServer) -> None:
    (tmp_path / "rows.csv").mkdir()
    with pytest.raises(ValueError, match="rows.csv.*directory.*move it away"):
        get(tmp_path, home(server))


def test_an_archive_saved_by_hand_is_unpacked(tmp_path: Path) -> None:
    (tmp_path / "medqa.zip").write_bytes(zipped(**{"data_clean/questions/US/test.jsonl": OTHER}))
    got = fetch("medqa-full", tmp_path, accept=True)
    assert (
        tmp_path / "medqa" / "data_clean" / "questions" / "US" / "test.jsonl"
    ).read_bytes() == OTHER
    assert got.sources["medqa.zip"].checked == "not verified"


@pytest.mark.parametrize(
    "content", [b"PK\x03\x04 cut off", zipped(**{"../out": b"x"}), zipped(rows=ROWS)[:-30]]
)
def test_a_bad_archive_leaves_neither_itself_nor_a_part_of_it(
    tmp_path: Path, server: FileServer, content: bytes
) -> None:
    server.files["/set.zip"] = content
    with pytest.raises(ValueError, match="set.zip is not unpacked"):
        get(tmp_path / "new", unchecked(server, "set.zip", "zip"))
    assert left(tmp_path) == ["new"]


def test_a_folder_in_the_way_is_left_alone(tmp_path: Path, server: FileServer) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "mine").write_text("mine")
    with pytest.raises(ValueError, match="set is there already"):
        get(tmp_path, unchecked(server, "set.zip", "zip"))
    assert left(tmp_path) == ["set", "set/mine"]


def test_without_pooch_the_error_says_how_to_get_it(
    tmp_path: Path, server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r'needs pooch: pip install "trustlab\[data\]"$'):
        get(tmp_path / "made", home(server))
    assert left(tmp_path / "made") == []
