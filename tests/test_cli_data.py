"""``trustlab data``: what check and fetch print, and that nothing is downloaded before the licence
was seen."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from file_server import FileServer
from made_medqa import official, row
from test_cli import trustlab
from typer.testing import CliRunner

from trustlab.cli import app
from trustlab.datasets.fetch import HOMES, File, Home

ROWS = b"id,answer\n1,yes\n"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    """A server on this machine that has one data set, which the table of homes knows."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with FileServer({"/rows.csv": ROWS}) as running:
        file = File(
            "rows.csv", (f"{running.url}/rows.csv",), len(ROWS), hashlib.sha256(ROWS).hexdigest()
        )
        monkeypatch.setitem(
            HOMES,
            "made-up",
            Home("made-up rows", "CC BY 4.0", "https://example.org", "direct", "all", (file,), ""),
        )
        yield running


def test_fetch_shows_the_licence_and_asks_before_anything_is_downloaded(
    tmp_path: Path, server: FileServer
) -> None:
    done = CliRunner().invoke(
        app, ["data", "fetch", "made-up", "--to", str(tmp_path / "new")], input="n\n"
    )
    assert (
        done.exit_code == 1
        and "Licence: CC BY 4.0" in done.stdout
        and "Do you keep to this licence?" in done.stdout
    )
    assert not server.asked and not (tmp_path / "new").exists()


@pytest.mark.parametrize("consent", [["--accept"], []], ids=["by option", "by answer"])
def test_with_consent_the_file_arrives_and_its_check_is_told(
    tmp_path: Path, server: FileServer, consent: list[str]
) -> None:
    done = CliRunner().invoke(
        app, ["data", "fetch", "made-up", "--to", str(tmp_path), *consent], input="y\n"
    )
    assert (
        done.exit_code == 0
        and "downloaded, 16 bytes" in done.stdout
        and "(as expected)" in done.stdout
    )
    assert (tmp_path / "rows.csv").read_bytes() == ROWS
    assert "was there" in trustlab("data", "fetch", "made-up", "--to", tmp_path, "--accept")
    assert len(server.asked) == 1


def test_check_reads_a_set_with_its_options(tmp_path: Path) -> None:
    path = official(tmp_path, [row(), row("A short one. What is the most likely diagnosis?")])
    told = trustlab("data", "check", "medqa", "--path", path, "--option", "ids=['1']")
    assert (
        told.startswith("medqa: 2 entries read, 1 case\n")
        and "the first case: medqa-1, Gout" in told
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nosuch"], "name is 'nosuch'; allowed are starter,"),
        (["ddxplus"], "trustlab data fetch ddxplus"),
        (["starter", "--option", "split=test"], "starter has no option 'split'; it has none"),
    ],
)
def test_check_refuses_bad_input_in_a_line(words: list[str], message: str) -> None:
    assert message in trustlab("data", "check", *words, status=2)
