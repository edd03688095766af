"""The OpenAI backend against servers nobody here wrote: llama.cpp and vLLM with the embedded
model's weights say what transformers says.

Run by `make test-e2e`, which installs the servers. Weights, keys and values are float32, the
tokenizer the model's own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import serve

from trustlab.datasets import load_cases
from trustlab.levels import views
from trustlab.models.base import Model, Request
from trustlab.models.by_name import EMBEDDED, open_model
from trustlab.models.local.huggingface import HuggingFaceModel
from trustlab.paths import ROOT
from trustlab.prompts import render
from trustlab.records import LEVELS, Reply
from trustlab.runs.experiment import benchmark
from trustlab.runs.run import Run
from trustlab.settings import Setup

FOLDER = EMBEDDED["embedded"]
SERVED = "embedded-served"
SIZE = json.loads((FOLDER / "config.json").read_text())["vocab_size"]
CLOSE = 1e-3
EXACT = (
    "asp", "msp", "perplexity", "token_sar", "ce", "cot_ce", "topk_ce", "medconf",
    "information_level", "word_count",
)  # fmt: skip
"""Methods that read greedy replies alone."""
AT_MOST = ("entropy", "renyi_divergence", "fisher_rao")
"""What a server lists of a distribution bounds these confidences from above."""
PRIOR = ("pmi", "conditional_pmi")
ELSE = "semantic_similarity_med"
"""Needs a medical encoder, whatever the model."""
# llama.cpp's defaults change the distribution: repetition penalty 1.1, at most 40 tokens, none
# under 5 % of the best. It answers one call at a time, and scores no chat.
PLAIN = {"repeat_penalty": 1.0, "top_k": 0, "min_p": 0.0}
SERVERS: dict[str, tuple[Any, dict[str, Any], tuple[str, ...]]] = {
    "llama.cpp": (serve.llama_cpp, {"extra_body": PLAIN, "n_top": 10, "concurrency": 1}, PRIOR),
    "vLLM": (serve.vllm, {}, ()),
}
"""How each is started, what a model behind it needs to be told, and the methods that lack."""
HOW: dict[str, Any] = {"quiet": True, "cache": ":memory:", "prompts": "embedded"}


@pytest.fixture(scope="session", params=list(SERVERS))
def server(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="session")
def address(server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with SERVERS[server][0](FOLDER, tmp_path_factory.mktemp("served"), SERVED) as url:
        yield url


@pytest.fixture(scope="session")
def served(server: str, address: str) -> Model:
    options = SERVERS[server][1] | {"vocabulary_size": SIZE}
    return open_model(f"openai:{SERVED}", base_url=address, **options)


@pytest.fixture(scope="session")
def direct() -> HuggingFaceModel:
    return HuggingFaceModel(FOLDER, name="embedded", device="cpu")


@pytest.fixture(scope="session")
def pairs(served: Model, direct: HuggingFaceModel) -> list[tuple[Reply, Reply]]:
    """The greedy reply of the server and of transformers to each request."""
    want = frozenset({"logprobs", "distributions", "prior"})
    prior = render("diagnosis", patient=None)
    asked = [
        Request(render("diagnosis", patient=v.text), max_tokens=64, want=want, prior_messages=prior)
        for v in views(load_cases("starter", n=7), LEVELS)[:40]
    ]
    rows = zip(served.generate(asked), direct.generate(asked), strict=True)
    return [(a, b) for (a,), (b,) in rows]


@pytest.fixture(scope="session")
def run(served: Model, direct: HuggingFaceModel) -> Run:
    return benchmark(load_cases("starter", n=6), [served, direct], setup=Setup(samples=5, **HOW))


def beside(run: Run, method: str) -> Any:
    """A row a case and level: the method's values from the server's replies, and from those of
    transformers."""
    table: Any = run.confidence[run.confidence["method"] == method]
    one, other = (table[table["model"] == name] for name in (SERVED, "embedded"))
    ends = ("_served", "_direct")
    return one.merge(other, on=["case_id", "level"], suffixes=ends, validate="one_to_one")


def test_greedy_replies_are_the_same_token_for_token_with_their_probabilities(pairs, server):
    for a, b in pairs:
        assert (a.text, a.finish, a.n_tokens_in) == (b.text, b.finish, b.n_tokens_in)
        assert a.trace.tokens == b.trace.tokens
        scored = ("logprobs",) if SERVERS[server][2] else ("logprobs", "prior_logprobs")
        for field in scored:
            mine, theirs = getattr(a.trace, field), getattr(b.trace, field)
            np.testing.assert_allclose(mine, theirs, rtol=0, atol=CLOSE)
        for listed, full in zip(a.trace.alternatives, b.trace.alternatives, strict=True):
            assert listed[0][0] == full[0][0]
            known = dict(full)  # tokens may look alike
            assert all(abs(v - known[token]) < CLOSE for token, v in listed if token in known)
        assert a.trace.bounds == {"entropies": "lower", "renyi": "upper", "fisher_rao": "upper"}
        assert (a.trace.entropies <= b.trace.entropies + CLOSE).all()
        assert (a.trace.renyi >= b.trace.renyi - CLOSE).all()
        assert (a.trace.fisher_rao >= b.trace.fisher_rao - CLOSE).all()


def test_the_benchmark_gives_the_same_answers_by_every_method_that_the_server_allows(run, server):
    answers: Any = run.answers
    one, other = (
        answers[answers["model"] == name].drop(columns="model") for name in (SERVED, "embedded")
    )
    assert len(one) == 6 * len(LEVELS)
    pd.testing.assert_frame_equal(one.reset_index(drop=True), other.reset_index(drop=True))
    there = run.confidence[run.confidence["missing"] == ""]
    methods = {name: set(of["method"]) for name, of in there.groupby("model")}
    assert methods["embedded"] == {m for m in run.parameters["methods"] if m != ELSE}
    assert methods["embedded"] - methods[SERVED] == set(SERVERS[server][2])
    for method in EXACT:
        table = beside(run, method)
        assert (table["missing_served"] == table["missing_direct"]).all()
        assert (table["bound_served"] == "").all()
        mine, theirs = table["confidence_served"], table["confidence_direct"]
        np.testing.assert_allclose(mine, theirs, rtol=CLOSE, atol=CLOSE, err_msg=method)
    for method in AT_MOST:
        table = beside(run, method)
        assert (table["missing_served"] == "").all() and (table["bound_served"] == "upper").all()
        assert (table["confidence_served"] >= table["confidence_direct"] - CLOSE).all(), method


def test_samples_come_from_the_same_distribution(run: Run):
    # Other random streams: single values differ; the mean over 36 answers of 5 samples has a
    # standard error of about 0.04.
    table = beside(run, "poc")
    assert (table["missing_served"] == "").all()
    assert abs((table["confidence_served"] - table["confidence_direct"]).mean()) < 0.15
    assert table["confidence_served"].corr(table["confidence_direct"]) > 0.5


@pytest.mark.parametrize(
    ("notebook", "code"),
    [("01_benchmark", 0), ("05_trust_indices", 5)],  # these weights were not taught to be doctors
)
def test_notebooks_run_from_the_command_line(address, notebook, code, tmp_path):
    command = [str(Path(sys.executable).with_name("trustlab")), "run", notebook]
    # A server's model is asked with "chat" unless it is said what it was taught.
    prompts = "more={prompts: embedded, trial: false}"
    for given in (f"model=openai:{SERVED}", "n=4", "samples=3", prompts):
        command += ["-p", given]
    env = os.environ | {"OPENAI_BASE_URL": address, "TRUSTLAB_RUNS": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout[-2000:] + done.stderr[-2000:]
    run = next(tmp_path.rglob("run.json"))
    assert SERVED in json.loads(run.read_text())[notebook[3:].split("_")[0]]["models"]
