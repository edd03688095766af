"""The OpenAI backend against a server nobody here wrote: llama.cpp with the embedded model's
weights says what transformers says.

Run by `make test-e2e`, which builds the server. Its weights, keys and values are float32, its
tokenizer the model's own.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from serve import serving
from transformers import AutoTokenizer

from trustlab.datasets import load_cases
from trustlab.levels import views
from trustlab.models import EMBEDDED, open_model
from trustlab.models.base import Model, Request
from trustlab.models.huggingface import HuggingFaceModel
from trustlab.prompts import render
from trustlab.records import LEVELS, Reply
from trustlab.run import Run, benchmark
from trustlab.settings import Setup

FOLDER = EMBEDDED["embedded"]
SERVED = "embedded-served"
VOCABULARY = json.loads((FOLDER / "config.json").read_text())["vocab_size"]
PLAIN = {"repeat_penalty": 1.0, "top_k": 0, "min_p": 0.0}
"""The server's defaults change the distribution: repetition penalty 1.1, at most 40 tokens, none
under 5 % of the best."""
OPTIONS = {
    "extra_body": PLAIN,
    "n_top": 10,
    "concurrency": 1,
}  # the server answers one call at a time
CLOSE = 1e-3

EXACT = (
    "asp",
    "msp",
    "sequence_probability",
    "min_token_probability",
    "perplexity",
    "pmi",
    "ce",
    "medconf",
    "information_level",
)
AT_MOST = ("entropy", "renyi_divergence", "fisher_rao")
"""What the server lists of a distribution bounds these confidences from above."""


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(FOLDER, tmp_path_factory.mktemp("served"), name=SERVED, window=2048) as url:
        yield url


@pytest.fixture(scope="session")
def served(address: str) -> Model:
    return open_model(
        f"openai:{SERVED}",
        base_url=address,
        chat_template=str(FOLDER),
        vocabulary_size=VOCABULARY,
        **OPTIONS,
    )


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
    methods = (*EXACT, *AT_MOST, "poc")
    setup = Setup(samples=5, quiet=True)
    return benchmark(load_cases("starter", n=10), [served, direct], methods, setup=setup)


def beside(run: Run, method: str) -> Any:
    """A row a case and level: the method's values from the server's replies, and from those of
    transformers."""
    table: Any = run.confidence[run.confidence["method"] == method]
    one, other = (table[table["model"] == name] for name in (SERVED, "embedded"))
    return one.merge(
        other, on=["case_id", "level"], suffixes=("_served", "_direct"), validate="one_to_one"
    )


def test_the_server_cuts_prompts_into_the_same_tokens(address: str, asked: list[Request]):
    tokenizer: Any = AutoTokenizer.from_pretrained(FOLDER)
    for request in asked:
        turns = [{"role": role, "content": content} for role, content in request.messages]
        text = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        body = json.dumps({"input": text}).encode()
        call = urllib.request.Request(
            address.replace("/v1", "/extras/tokenize"), body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(call, timeout=60) as answer:
            assert json.load(answer)["tokens"] == tokenizer.encode(text, add_special_tokens=False)


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
    assert len(one) == 10 * len(LEVELS)
    pd.testing.assert_frame_equal(one.reset_index(drop=True), other.reset_index(drop=True))


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
    # Other random streams: single values differ; the mean over 60 answers of 5 samples has a
    # standard error of about 0.03.
    table = beside(run, "poc")
    assert (table["missing_served"] == "").all()
    assert abs((table["confidence_served"] - table["confidence_direct"]).mean()) < 0.1
    assert table["confidence_served"].corr(table["confidence_direct"]) > 0.5


def test_what_a_server_does_not_tell_is_missing_with_its_reason(address: str):
    bare = open_model(f"openai:{SERVED}", base_url=address, **OPTIONS)
    methods = ("asp", "entropy", "pmi", "renyi_divergence", "fisher_rao")
    run = benchmark(load_cases("starter", n=1), [bare], methods, (100,), Setup(quiet=True))
    missing = dict(zip(run.confidence["method"], run.confidence["missing"], strict=True))
    assert missing["asp"] == missing["entropy"] == ""
    assert "chat_template" in missing["pmi"]
    assert (
        "vocabulary_size" in missing["renyi_divergence"]
        and "vocabulary_size" in missing["fisher_rao"]
    )
