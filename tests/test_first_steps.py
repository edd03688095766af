"""What somebody types first: a command, a name, a model; and what a slip or a closed port says."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest
from fake_model import FakeModel

import trustlab as tl
from trustlab.meaning.encoder import Encoder
from trustlab.models.openai import OpenAIModel


@pytest.fixture
def closed() -> str:
    """The address of a port of this machine where nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


def test_python_m_trustlab_is_the_command() -> None:
    command = [sys.executable, "-m", "trustlab", "fly"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and "No such command" in done.stderr


@pytest.mark.parametrize(
    ("slip", "near"),
    [
        ("load_case", "load_cases"),
        ("open_modell", "open_model"),
        ("Metrics_table", "metrics_table"),
    ],
)
def test_an_unknown_name_names_the_nearest(slip: str, near: str) -> None:
    with pytest.raises(AttributeError, match=f"no '{slip}'; did you mean {near}\\?"):
        getattr(tl, slip)


def test_a_name_like_no_other_is_only_refused() -> None:
    with pytest.raises(AttributeError, match=r"^trustlab has no 'zzz'$"):
        _ = tl.zzz  # pyright: ignore


def test_one_model_or_a_name_stands_for_a_list() -> None:
    model, models = FakeModel(), tl.opened().models
    assert models(model) == models([model]) == models((model,)) == [model]
    assert [one.name for one in models("embedded")] == ["embedded"]
    assert [one.name for one in models([model, "embedded"])] == [model.name, "embedded"]
    assert [one.name for one in models()] == ["embedded"]


@pytest.mark.parametrize("wrong", [5, [5], {"embedded"}])
def test_what_is_no_model_is_refused_in_one_line(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"models is .*; it must be an open model .*or a list"):
        tl.benchmark(tl.load_cases("starter", n=1), wrong)  # pyright: ignore


def test_a_closed_port_is_said_after_one_more_try(closed, monkeypatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    words = r"'toy' cannot be reached at 127.0.0.1:\d+/v1: .* failed after 1 retry \(ConnectError\)"
    with OpenAIModel("toy", base_url=f"{closed}/v1") as model:
        with pytest.raises(ConnectionError, match=words):
            tl.benchmark(tl.load_cases("starter", n=1), model, setup=tl.Setup(cache=":memory:"))
        assert model.usage["retries"] == 1


def test_a_hub_that_cannot_be_reached_is_said(closed, monkeypatch, tmp_path, caplog) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", closed)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="no model 'some/model'.*cannot be reached"):
        tl.open_model("hf:some/model")
    with pytest.raises(FileNotFoundError, match="no model 'some/encoder'.*cannot be reached"):
        _ = Encoder("some/encoder").fingerprint
    assert "Retrying" not in caplog.text
