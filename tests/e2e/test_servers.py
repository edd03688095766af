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
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import serve
from transformers import AutoTokenizer

from trustlab.datasets import load_cases
from trustlab.experiment import benchmark
from trustlab.levels import views
from trustlab.models import EMBEDDED, open_model
from trustlab.models.base import Model, Request, Waiting
from trustlab.models.huggingface import HuggingFaceModel
from trustlab.paths import ROOT
from trustlab.prompts import render
from trustlab.records import LEVELS, Reply
from trustlab.run import Run
from trustlab.settings import Setup

FOLDER = EMBEDDED["embedded"]
SERVED = "embedded-served"
VOCABULARY = json.loads((FOLDER / "config.json").read_text())["vocab_size"]
CLOSE = 1e-3
EXACT = (
    "asp", "msp", "perplexity", "pmi", "token_sar", "ce", "cot_ce", "topk_ce", "medconf",
    "information_level", "word_count",
)  # fmt: skip
"""Methods that read greedy replies alone."""
AT_MOST = ("entropy", "renyi_divergence", "fisher_rao")
"""What a server lists of a distribution bounds these confidences from above."""
PROMPTS = "more={prompts: embedded, trial: false}"
"""A server's model is asked with "chat" unless it is said what it was taught."""
ELSE = "semantic_similarity_med"
"""Needs a medical encoder, whatever the model."""


@dataclass(frozen=True)
class Served:
    """How a server is started, and what a model behind it needs to be told."""

    start: Callable[[Path, Path, str], AbstractContextManager[str]]
    options: dict[str, Any]
    tokens: Callable[[str, str], list[int]]
    """(address, text) -> the ids that it cuts a text into."""
    lacks: tuple[str, ...]
    """Methods that are missing where it is told nothing but its address."""


def checked_choices(address: str, body: dict[str, Any]) -> Any:
    headers = {"Content-Type": "application/json"}
    call = urllib.request.Request(address, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(call, timeout=60) as answer:
        return json.load(answer)


SERVERS = {
    "llama.cpp": Served(
        serve.llama_cpp,
        # Its defaults change the distribution: repetition penalty 1.1, at most 40 tokens, none
        # under 5 % of the best. It answers one call at a time.
        {
            "extra_body": {"repeat_penalty": 1.0, "top_k": 0, "min_p": 0.0},
            "n_top": 10,
            "concurrency": 1,
            "chat_template": str(FOLDER),
        },
        lambda url, text: checked_choices(url.replace("/v1", "/extras/tokenize"), {"input": text})[
            "tokens"
        ],
        ("pmi", "conditional_pmi", "renyi_divergence", "fisher_rao"),
    ),
    "vLLM": Served(
        serve.vllm,
        {"vocabulary_size": VOCABULARY},
        lambda url, text: checked_choices(
            url.replace("/v1", "/tokenize"),
            {"model": SERVED, "prompt": text, "add_special_tokens": False},
        )["tokens"],
        ("renyi_divergence", "fisher_rao"),
    ),
}


@pytest.fixture(scope="session", params=list(SERVERS))
def server(request: pytest.FixtureRequest) -> Served:
    return SERVERS[request.param]


@pytest.fixture(scope="session")
def address(server: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with server.start(FOLDER, tmp_path_factory.mktemp("served"), SERVED) as url:
        yield url


@pytest.fixture(scope="session")
def served(server: Served, address: str) -> Model:
    return open_model(f"openai:{SERVED}", base_url=address, **server.options)


@pytest.fixture(scope="session")
def direct() -> HuggingFaceModel:
    return HuggingFaceModel(FOLDER, name="embedded", device="cpu")


@pytest.fixture(scope="session")
def asked() -> list[Request]:
    shown = views(load_cases("starter", n=7), LEVELS)[:40]
    want = frozenset({"logprobs", "distributions", "prior"})
    prior = render("diagnosis", patient=None)
    return [
        Request(render("diagnosis", patient=v.text), max_tokens=64, want=want, prior_messages=prior)
        for v in shown
    ]


@pytest.fixture(scope="session")
def pairs(
    served: Model, direct: HuggingFaceModel, asked: list[Request]
) -> list[tuple[Reply, Reply]]:
    """The greedy reply of the server and of transformers to each request."""
    return [
        (a, b) for (a,), (b,) in zip(served.generate(asked), direct.generate(asked), strict=True)
    ]


@pytest.fixture(scope="session")
def run(served: Model, direct: HuggingFaceModel) -> Run:
    setup = Setup(samples=5, quiet=True, cache=":memory:", prompts="embedded")  # pyright: ignore
    return benchmark(load_cases("starter", n=6), [served, direct], setup=setup)


def beside(run: Run, method: str) -> Any:
    """A row a case and level: the method's values from the server's replies, and from those of
    transformers."""
    table: Any = run.confidence[run.confidence["method"] == method]
    one, other = (table[table["model"] == name] for name in (SERVED, "embedded"))
    return one.merge(
        other, on=["case_id", "level"], suffixes=("_served", "_direct"), validate="one_to_one"
    )


def test_the_server_cuts_prompts_into_the_same_tokens(
    server: Served, address: str, asked: list[Request]
):
    tokenizer: Any = AutoTokenizer.from_pretrained(FOLDER)
    for request in asked[:10]:
        turns = [{"role": role, "content": content} for role, content in request.messages]
        text = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        ids = tokenizer.encode(text, add_special_tokens=False)
        assert server.tokens(address, text) == ids


def test_the_server_is_found_to_give_every_statistic(served: Model):
    assert served.provides == {"text", "logprobs", "distributions", "prior"}


def test_greedy_replies_are_the_same_word_for_word_and_token_for_token(
    pairs: list[tuple[Reply, Reply]],
):
    for a, b in pairs:
        assert (a.text, a.finish, a.n_tokens_in) == (b.text, b.finish, b.n_tokens_in)
        assert a.trace and b.trace and a.trace.tokens == b.trace.tokens


@pytest.mark.parametrize("field", ["logprobs", "prior_logprobs"])
def test_token_probabilities_agree(pairs: list[tuple[Reply, Reply]], field: str):
    for a, b in pairs:
        np.testing.assert_allclose(
            getattr(a.trace, field), getattr(b.trace, field), rtol=0, atol=CLOSE
        )


def test_alternatives_agree_but_for_tokens_that_look_alike(pairs: list[tuple[Reply, Reply]]):
    for a, b in pairs:
        for listed, full in zip(a.trace.alternatives, b.trace.alternatives, strict=True):  # pyright: ignore
            assert listed[0][0] == full[0][0]
            known = dict(full)
            assert all(
                abs(value - known[token]) < CLOSE for token, value in listed if token in known
            )


def test_bounds_of_token_statistics_hold(pairs: list[tuple[Reply, Reply]]):
    for a, b in pairs:
        assert a.trace and b.trace
        assert a.trace.bounds == {"entropies": "lower", "renyi": "upper", "fisher_rao": "upper"}
        assert (a.trace.entropies <= b.trace.entropies + CLOSE).all()  # pyright: ignore
        assert (a.trace.renyi >= b.trace.renyi - CLOSE).all()  # pyright: ignore
        assert (a.trace.fisher_rao >= b.trace.fisher_rao - CLOSE).all()  # pyright: ignore


def test_the_benchmark_gives_the_same_answers(run: Run):
    answers: Any = run.answers
    one, other = (
        answers[answers["model"] == name].drop(columns="model") for name in (SERVED, "embedded")
    )
    assert len(one) == 6 * len(LEVELS)
    pd.testing.assert_frame_equal(one.reset_index(drop=True), other.reset_index(drop=True))


def test_every_method_that_transformers_computes_is_computed_here(run: Run):
    here, there = (
        set(part.loc[part["missing"] == "", "method"])
        for _, part in run.confidence.groupby("model", sort=False)
    )
    assert here == there == {m for m in run.parameters["methods"] if m != ELSE}
    counts: Any = (
        run.confidence[run.confidence["missing"] == ""].groupby(["method", "model"]).size()
    )
    few = counts.unstack()
    assert (few[SERVED] == few["embedded"]).all(), few


@pytest.mark.parametrize("method", EXACT)
def test_confidences_that_need_no_whole_distribution_agree(run: Run, method: str):
    table = beside(run, method)
    assert (table["missing_served"] == table["missing_direct"]).all()
    assert (table["bound_served"] == "").all()
    np.testing.assert_allclose(
        table["confidence_served"], table["confidence_direct"], rtol=CLOSE, atol=CLOSE
    )


@pytest.mark.parametrize("method", AT_MOST)
def test_confidences_from_a_truncated_distribution_are_marked_bounds_that_hold(
    run: Run, method: str
):
    table = beside(run, method)
    assert (table["missing_served"] == "").all() and (table["bound_served"] == "upper").all()
    assert (table["bound_direct"] == "").all()
    assert (table["confidence_served"] >= table["confidence_direct"] - CLOSE).all()


def test_samples_come_from_the_same_distribution(run: Run):
    # Other random streams: single values differ; the mean over 36 answers of 5 samples has a
    # standard error of about 0.04.
    table = beside(run, "poc")
    assert (table["missing_served"] == "").all()
    assert abs((table["confidence_served"] - table["confidence_direct"]).mean()) < 0.15
    assert table["confidence_served"].corr(table["confidence_direct"]) > 0.5


def test_what_a_server_does_not_tell_is_missing_with_its_reason(server: Served, address: str):
    options = {
        k: v for k, v in server.options.items() if k not in ("chat_template", "vocabulary_size")
    }
    bare = open_model(f"openai:{SERVED}", base_url=address, **options)
    setup = Setup(quiet=True, samples=2, cache=":memory:", prompts="embedded")  # pyright: ignore
    run = benchmark(load_cases("starter", n=1), [bare], None, (100,), setup)
    missing = dict(zip(run.confidence["method"], run.confidence["missing"], strict=True))
    assert {m for m, why in missing.items() if why and m != ELSE} == set(server.lacks)
    for method in server.lacks:
        assert ("chat_template" if "pmi" in method else "vocabulary_size") in missing[method]


def test_a_benchmark_by_files_that_vllm_runs_gives_the_same_answers(
    direct: HuggingFaceModel, tmp_path: Path
):
    cases, methods = load_cases("starter", n=2), ["asp", "entropy", "poc", "ce", "medconf"]
    how: dict[str, Any] = {"cache": ":memory:", "quiet": True, "samples": 3, "levels": [20, 100]}
    how["prompts"] = "embedded"
    how["budgets"] = {"profile": 512, "evidence": 640}  # by files nobody counts the window's tokens
    expected = benchmark(cases, [direct], methods, setup=Setup(**how))
    folder, rounds = tmp_path / "batch", 0
    while True:
        model = open_model(f"openai-batch:{SERVED}", batch_dir=str(folder))
        try:
            found = benchmark(cases, [model], methods, setup=Setup(**how))
            break
        except Waiting:
            rounds += serve.vllm_batch(FOLDER, folder, SERVED)
            assert rounds < 6
    assert rounds == 4
    assert found.answers["answer"].tolist() == expected.answers["answer"].tolist()
    for name in ("asp", "ce", "medconf"):
        mine, theirs = (
            table[table["method"] == name]["confidence"].to_numpy()
            for table in (found.confidence, expected.confidence)
        )
        np.testing.assert_allclose(mine, theirs, atol=CLOSE)
    sampled = found.confidence[found.confidence["method"] == "poc"]
    assert sampled["confidence"].notna().all()


@pytest.mark.parametrize(
    ("notebook", "code"),
    [("01_benchmark", 0), ("05_trust_indices", 5)],  # these weights were not taught to be doctors
)
def test_notebooks_run_from_the_command_line(
    address: str, notebook: str, code: int, tmp_path: Path
):
    command = [str(Path(sys.executable).with_name("trustlab")), "run", notebook]
    for given in (f"model=openai:{SERVED}", "n=4", "samples=3", "draws=200", PROMPTS):
        command += ["-p", given]
    env = os.environ | {"OPENAI_BASE_URL": address, "TRUSTLAB_RUNS": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout[-2000:] + done.stderr[-2000:]
    run = next(tmp_path.rglob("run.json"))
    assert SERVED in json.loads(run.read_text())[notebook[3:].split("_")[0]]["models"]
