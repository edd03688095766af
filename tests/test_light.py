"""What works without the extra ``local``: in a Python that hides it, as ``make fresh`` has none."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import trustlab as tl
from trustlab.paths import DATA, ROOT

HERE = Path(__file__).parent


@pytest.mark.parametrize("part", ["commands", "server", "refusals", "lessons"])
def test_without_local_this_works_and_the_rest_says_what_to_install(part, tmp_path):
    folders = map(str, (HERE / "blocked", ROOT, HERE))
    env = {name: text for name, text in os.environ.items() if not name.startswith("TRUSTLAB_")}
    env |= {"PYTHONPATH": os.pathsep.join(folders), "TRUSTLAB_RUNS": str(tmp_path / "runs")}
    command = [sys.executable, str(HERE / "light.py"), part]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith(f"{part}: works\n")


def test_the_light_install_has_no_torch_and_who_installs_all_has_it():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    local = {"torch", "transformers", "sentence-transformers"}
    assert not [line for line in project["dependencies"] if line.startswith(tuple(local))]
    extras = project["optional-dependencies"]
    assert local < {line.partition(">")[0] for line in extras["local"]}
    assert "trustlab[local]" in extras["chat"]


def test_the_vectors_of_lesson_8_are_the_encoder_s(tmp_path, monkeypatch):
    kept = DATA / "walkthrough" / "panel" / "vectors.sqlite"
    copy = tmp_path / "vectors.sqlite"
    copy.write_bytes(kept.read_bytes())
    texts = ["Stable angina", "Unstable angina", "PSVT"]
    monkeypatch.setattr("trustlab.meaning.encoder._REMEMBERED", {})
    encoder = tl.Encoder(cache_path=copy)
    monkeypatch.setattr(tl.Encoder, "lacks", "none of these is encoded")
    vectors = encoder.encode(texts)
    monkeypatch.undo()
    np.testing.assert_allclose(vectors, tl.Encoder().compute(texts), atol=1e-5)
