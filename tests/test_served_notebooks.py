"""The notebooks of the experiments run unchanged on a server that speaks OpenAI's protocol."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from served_model import ServedModel

from trustlab.models import open_model
from trustlab.run_notebooks import MANIFEST, run_notebook

pytestmark = [pytest.mark.slow, pytest.mark.notebook]

SERVED: dict[str, dict] = {
    "02_robustness": {"levels": [100], "changes": ["small_talk", "instruction_100"]},
    "03_ablations": {
        "levels": [100],
        "n_passages": [1, 15],
        "n_samples": [2],
        "temperatures": [0.5],
        "contexts": ["answer"],
    },
    "04_consultation": {"max_turns": 2},
    "05_trust_indices": {"methods": ["asp", "poc", "ce"]},
}


@pytest.mark.parametrize("name", SERVED)
def test_the_same_notebook_runs_on_an_openai_compatible_server(name, tmp_path, monkeypatch):
    """The embedded model behind a loopback server: what the notebook then shows, it learned through
    that protocol."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("TRUSTLAB_RUNS", str(tmp_path / "cache"))
    values = {"n": 2, "samples": 2, "draws": 200, "prompts": "embedded"} | SERVED[name]
    with ServedModel(model=open_model("embedded", device="cpu")) as server:
        options = {"base_url": server.url, "concurrency": 2}
        folder = run_notebook(
            name, values | {"model": "openai:embedded", "model_options": options}, tmp_path / "run"
        )
    found = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    assert found["ok"] and found["calls_made"] > 0 and len(server.chats()) > 0
    answers = pd.concat(pd.read_csv(f) for f in folder.rglob("answers.csv"))
    assert set(answers["model"]) == {"embedded"} and answers["answer"].notna().mean() > 0.9
