"""What somebody types first: a command, a name, a model; and what a slip or a closed port says."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import closing

import pytest
from each import each
from fake_model import FakeModel
from saying import saying

import trustlab as tl
from trustlab.meaning.encoder import Encoder
from trustlab.models.server.openai import OpenAIModel
from trustlab.paths import ROOT


@pytest.fixture
def closed(monkeypatch) -> str:
    """The address of a port of this machine where nothing listens."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


def test_python_m_trustlab_is_the_command() -> None:
    command = [sys.executable, "-m", "trustlab", "fly"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and "No such command" in done.stderr


@each(
    ("slip", "words"),
    [
        ("load_case", r"no 'load_case'; did you mean load_cases\?"),
        ("Metrics_table", r"did you mean metrics_table\?"),
        ("zzz", r"^trustlab has no 'zzz'$"),
    ],
)
def test_an_unknown_name_names_the_nearest(slip: str, words: str) -> None:
    with pytest.raises(AttributeError, match=words):
        getattr(tl, slip)


def test_one_model_or_a_name_stands_for_a_list_and_what_is_none_is_refused() -> None:
    model, models = FakeModel(), tl.opened().models
    assert models(model) == models([model]) == models((model,)) == [model]
    assert [one.name for one in models([model, "embedded"])] == [model.name, "embedded"]
    assert [one.name for one in models()] == ["embedded"]
    for wrong in (5, [5], {"embedded"}):
        with pytest.raises(ValueError, match=saying("models", wrong, "open model", "list")):
            tl.benchmark(tl.load_cases("starter", n=1), wrong)  # pyright: ignore


def test_a_model_of_one_s_own_is_the_class_of_the_docs(tmp_path, monkeypatch) -> None:
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    part = page.partition("## A model of your own")[2]
    code = part.partition("```python\n")[2].partition("```")[0]
    assert len(code.splitlines()) <= 20
    monkeypatch.setattr("trustlab.paths.REPLIES", tmp_path / "replies.sqlite")
    names: dict = {}
    exec(code, names)
    run = names["run"]
    assert run.answers["answer"].isin(["influenza", "common cold 0"]).all()
    agreement = run.confidence.query("method == 'poc'")
    alike = agreement["confidence"] == 1
    assert alike.any() and not alike.all() and agreement["missing"].eq("").all()


def test_what_is_no_model_is_refused_before_anything_is_asked() -> None:
    class Foreign:
        name, revision, provides = "foreign", "1", frozenset({"text"})

        def generate(self, requests):
            raise AssertionError("asked")

    cases = tl.load_cases("starter", n=2)
    with pytest.raises(ValueError, match=saying("models", "open model")):
        tl.benchmark(cases, Foreign(), ["poc"])
    with pytest.raises(TypeError, match="trustlab.models.base.Model"):
        tl.CachedModel(Foreign(), None)


def test_a_closed_port_is_said_after_one_more_try(closed) -> None:
    words = saying("'toy'", closed.removeprefix("http://") + "/v1", "1 retry", "ConnectError")
    with closing(OpenAIModel("toy", base_url=f"{closed}/v1")) as model:
        with pytest.raises(ConnectionError, match=words):
            tl.benchmark(tl.load_cases("starter", n=1), model, setup=tl.Setup(cache=":memory:"))
        assert model.usage["retries"] == 1


def test_a_hub_that_cannot_be_reached_is_said(closed, monkeypatch, tmp_path, caplog) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", closed)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=saying("'some/model'", "cannot be reached")):
        tl.open_model("hf:some/model")
    with pytest.raises(FileNotFoundError, match=saying("'some/encoder'", "cannot be reached")):
        _ = Encoder("some/encoder").fingerprint
    assert "Retrying" not in caplog.text
