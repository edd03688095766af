"""The Hugging Face backend against plain forward passes of tiny random models."""

from __future__ import annotations

import functools
import inspect
import itertools
import math
import os
import random
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from each import each
from saying import saying, says
from scipy import stats
from tiny_models import (
    BY_LENGTH,
    IMAGE_TEXT,
    KINDS,
    SWITCH,
    byte_tokenizer,
    metaspace_tokenizer,
    save_tiny,
)

from trustlab.models.base import STATISTICS, Model, Request
from trustlab.models.by_name import EMBEDDED
from trustlab.models.local.decoding import Ids, Passes, rotary_switch, text_pieces
from trustlab.models.local.huggingface import HuggingFaceModel
from trustlab.models.local.logits import Logits

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

EVERYTHING = frozenset(STATISTICS)
WINDOW = 128
PATIENTS = ("cough", "fever for three days", "pain in the left knee, worse at night", "rash")
PRIOR = (("user", "Diagnosis?"),)


def odd_model(model: HuggingFaceModel, change) -> Any:
    """The model with a forward pass whose arguments go through ``change``."""
    forward = type(model._model).forward

    def odd(self: Any, *given: Any, **more: Any) -> Any:
        return forward(self, *given, **change(more))

    odd.__signature__ = inspect.signature(forward)  # type: ignore[attr-defined]
    return functools.partial(odd, model._model)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("llama"), max_position_embeddings=WINDOW)


@pytest.fixture(scope="module")
def llama(folder) -> HuggingFaceModel:
    return HuggingFaceModel(folder, device="cpu")


def ask(patient: str, **options) -> Request:
    defaults = {"max_tokens": 8, "want": EVERYTHING, "prior_messages": PRIOR}
    return Request(messages=(("system", "doctor"), ("user", patient)), **{**defaults, **options})


def prompt_of(model: HuggingFaceModel, messages) -> list[int]:
    return list(model._encode([messages])[0])


def plain_logprobs(model: HuggingFaceModel, prompt: list[int], said: list[int]) -> np.ndarray:
    """Log-probabilities over the vocabulary before each token of ``said``, (L, N) in float64: one
    pass over one row, nothing cached."""
    with torch.no_grad():
        logits = model._model(input_ids=torch.tensor([prompt + said])).logits[0].double()
    return torch.log_softmax(logits, dim=-1).numpy()[len(prompt) - 1 : len(prompt) + len(said) - 1]


def of_said(model: HuggingFaceModel, prompt: list[int], said: list[int]) -> np.ndarray:
    return plain_logprobs(model, prompt, said)[np.arange(len(said)), said]


def assert_same(ours: Any, theirs: Any) -> None:
    for name in ("text", "n_tokens_in", "n_tokens_out", "finish"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert ours.trace.tokens == theirs.trace.tokens
    for name in ours.trace.ARRAYS:
        mine, other = getattr(ours.trace, name), getattr(theirs.trace, name)
        np.testing.assert_allclose(mine, other, atol=1e-4)


def count_rows(model: HuggingFaceModel, monkeypatch) -> list[tuple[int, int]]:
    """The shape of the ids of every forward call from now on."""
    shapes: list[tuple[int, int]] = []
    forward = model._model.forward

    def counting(*args, **given):
        shapes.append(tuple(given["input_ids"].shape))
        return forward(*args, **given)

    monkeypatch.setattr(model._model, "forward", counting)
    return shapes


# Replies and their statistics


def test_batched_replies_are_those_of_one_at_a_time(llama, folder):
    assert isinstance(llama, Model) and llama.generate([]) == []
    alone = HuggingFaceModel(folder, device="cpu", batch_tokens=1)
    requests = [ask(p, **how) for p in PATIENTS for how in ({}, {"n": 3, "temperature": 0.7})]
    rows = zip(llama.generate(requests), alone.generate(requests), strict=True)
    for ours, theirs in (pair for row in rows for pair in zip(*row, strict=True)):
        assert_same(ours, theirs)
        for a, b in zip(ours.trace.alternatives, theirs.trace.alternatives, strict=True):
            np.testing.assert_allclose([p for _, p in a], [p for _, p in b], atol=1e-4)


@each("kind", [*KINDS, *IMAGE_TEXT])
def test_replies_of_every_kind_of_model_are_those_of_plain_passes(kind, tmp_path, monkeypatch):
    """Prompts of different lengths, beyond the sliding windows, in one call; samples on one prefix
    tree. Greedy tokens are ``generate``'s; log-probabilities, also under the prior prompt, those of
    one pass over the whole text."""
    model = HuggingFaceModel(save_tiny(tmp_path, kind), device="cpu")
    made: list[tuple[Request, list[int], Any]] = []
    reply_of = model._reply

    def noting(grown, r, *rest):
        made.append((grown.requests[r], list(grown.ids(r)), reply_of(grown, r, *rest)))
        return made[-1][2]

    monkeypatch.setattr(model, "_reply", noting)
    samples = [ask(p, n=3, temperature=1.0, seed=3) for p in PATIENTS[:3]]
    model.generate([*map(ask, PATIENTS[:3]), *samples])
    assert len(made) == 12
    for request, said, reply in made:
        prompt = prompt_of(model, request.messages)
        np.testing.assert_allclose(reply.trace.logprobs, of_said(model, prompt, said), atol=1e-4)
        prior = of_said(model, prompt_of(model, PRIOR), said)
        np.testing.assert_allclose(reply.trace.prior_logprobs, prior, atol=1e-4)
        if request.temperature == 0:
            ids = torch.tensor([prompt])
            ends = {"eos_token_id": 1, "pad_token_id": 1, "attention_mask": torch.ones_like(ids)}
            whole = model._model.generate(ids, max_new_tokens=8, do_sample=False, **ends)
            whole = whole[0, len(prompt) :].tolist()
            assert said == whole[: whole.index(1) if 1 in whole else None]


def test_statistics_equal_a_plain_pass(llama):
    """Entropy, Rényi at 0.5, Fisher-Rao, self-certainty and alternatives, from their
    definitions."""
    prompt = prompt_of(llama, ask(PATIENTS[1]).messages)
    said = list(prompt)
    for _ in range(8):
        said.append(int(plain_logprobs(llama, said, [0])[0].argmax()))
    said = said[len(prompt) :]
    assert 1 not in said
    (reply,) = llama.generate([ask(PATIENTS[1])])[0]
    plain = plain_logprobs(llama, prompt, said)
    assert reply.text == llama._tokenizer.decode(said)
    assert (reply.n_tokens_in, reply.n_tokens_out, reply.finish) == (len(prompt), 8, "length")
    trace, p, q = reply.trace, np.exp(plain), 1 / plain.shape[1]
    for found, wanted in (
        (trace.entropies, -(p * plain).sum(1)),
        (trace.renyi, [1 / (0.5 - 1) * math.log(sum(r**0.5 * q**0.5)) for r in p]),
        (trace.fisher_rao, [2 / math.pi * math.acos(sum(np.sqrt(r * q))) for r in p]),
        (trace.certainty, [-sum(math.log(r / q) for r in row) * q for row in p]),
    ):
        np.testing.assert_allclose(found, wanted, atol=1e-4)
    for t, (found, row) in enumerate(zip(trace.alternatives, plain, strict=True)):
        best = np.argsort(-row)[:10]
        begun = llama._tokenizer.decode(said[:t])
        for (text, _), i in zip(found, best, strict=True):
            whole = llama._tokenizer.decode([*said[:t], i])
            added = whole[len(os.path.commonprefix([begun, whole])) :]
            assert text == (trace.tokens[t] if i == said[t] else added)
        np.testing.assert_allclose([value for _, value in found], row[best], atol=1e-4)


def test_samples_differ_repeat_and_keep_their_own_stream(llama):
    def texts(n=6, **options):
        asked = ask(PATIENTS[1], n=n, temperature=1.0, **options)
        return [r.text for r in llama.generate([asked])[0]]

    six = texts()
    assert len(set(six)) > 3 and texts() == six and texts(seed=1) != six
    assert texts(n=2) == six[:2] and texts(n=2, first=4) == six[4:]
    assert texts(want=frozenset()) == six
    assert [t[:2] for t in texts(max_tokens=2)] == [t[:2] for t in six]


def test_samples_follow_the_tempered_law_and_are_scored_at_temperature_one(llama):
    n, temperature, want = 800, 0.5, frozenset({"logprobs"})
    request = ask(PATIENTS[2], n=n, temperature=temperature, max_tokens=1, want=want, seed=11)
    logprobs = plain_logprobs(llama, prompt_of(llama, request.messages), [0])[0]
    tempered = np.exp(logprobs / temperature)
    tempered /= tempered.sum()
    common = np.flatnonzero(tempered * n >= 5)
    assert len(common) >= 4
    traces = [r.trace for r in llama.generate([request])[0]]
    values = np.array([t.logprobs[0] if len(t) else logprobs[1] for t in traces])
    distance = np.abs(values[:, None] - logprobs[None])
    assert (distance.min(axis=1) < 1e-4).all()
    counts = np.bincount(distance.argmin(axis=1), minlength=len(logprobs))
    observed = np.append(counts[common], n - counts[common].sum())
    for law, follows in ((tempered, True), (np.exp(logprobs), False)):
        expected = n * np.append(law[common], 1 - law[common].sum())
        assert (stats.chisquare(observed, expected).pvalue > 0.001) == follows


def test_a_reply_may_be_empty_and_ends_at_the_window(llama, folder, tmp_path):
    first = plain_logprobs(llama, prompt_of(llama, ask("x").messages), [0])[0].argmax()
    model = HuggingFaceModel(save_tiny(tmp_path, eos_token_id=int(first)), device="cpu")
    (reply,) = model.generate([ask("x")])[0]
    assert (reply.text, reply.finish, reply.n_tokens_out, len(reply.trace)) == ("", "stop", 1, 0)
    assert all(getattr(reply.trace, name).shape == (0,) for name in reply.trace.ARRAYS)
    empty = len(prompt_of(llama, ask("").messages))
    long, short = llama.generate([ask("x" * (WINDOW + 1 - empty), n=2), ask("x", max_tokens=2)])
    assert [(r.text, r.finish, r.n_tokens_in) for r in long] == [(None, "error", WINDOW + 1)] * 2
    assert says(long[0].missing, "window", llama.name, WINDOW) and short[0].text is not None
    (reply,) = llama.generate([ask("x" * (WINDOW - 3 - empty), max_tokens=20)])[0]
    assert (reply.n_tokens_in, reply.n_tokens_out, reply.finish) == (WINDOW - 3, 4, "length")
    fits, too_long = (ask("x" * (WINDOW - n - empty)).messages for n in (7, 0))
    llama.generate([ask("x", prior_messages=fits)])
    with pytest.raises(ValueError, match=f"window of .*{WINDOW}"):
        llama.generate([ask("x", prior_messages=too_long)])


@each(
    ("options", "words"),
    [
        ({"prior_messages": None}, ("prior_messages", None)),
        ({"temperature": -1}, ("temperature", 0, -1)),
        ({"n": 0}, ("n", 1, "n=0")),
        ({"want": frozenset({"entropy"})}, "'entropy'"),
        ({"renyi_alpha": math.inf}, ("renyi_alpha", "finite", 0, "inf")),
    ],
)
def test_impossible_requests_are_refused(llama, options, words):
    with pytest.raises(ValueError, match=saying(words)):
        llama.generate([ask("x", **options)])


# What is read once


def test_replies_share_the_prompt_their_beginnings_and_their_prior(llama, monkeypatch):
    shapes, plain = count_rows(llama, monkeypatch), {"want": frozenset(), "max_tokens": 1}
    llama.generate([ask(PATIENTS[1], **plain), ask(PATIENTS[1], n=15, temperature=0.5, **plain)])
    assert shapes == [(1, len(prompt_of(llama, ask(PATIENTS[1]).messages)))]
    shapes.clear()
    llama.generate([ask(PATIENTS[1], n=7, max_tokens=2)])
    assert [rows for rows, _ in shapes] == [1, 1, 1]  # the prior, once


# Memory


FAILURES = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    RuntimeError("shapes cannot be multiplied"),
]


@each(("room", "failure"), [(300, FAILURES[0]), (40, FAILURES[0]), (0, FAILURES[1])])
def test_when_memory_runs_out_batches_shrink_and_no_reply_changes(room, failure, llama, folder):
    """A reply too large for it names its prompt; another error is none of memory."""
    model = HuggingFaceModel(folder, device="cpu")
    forward, length = model._model.forward, len(prompt_of(llama, ask(PATIENTS[2]).messages))

    def limited(**given):
        if given["attention_mask"].numel() > room:
            raise type(failure)(*failure.args)  # a new one: an old one keeps its frames
        return forward(**given)

    model._model.forward = limited
    asked = [ask(PATIENTS[2], n=4, temperature=1.0), *map(ask, PATIENTS)]
    if failure is FAILURES[1]:
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            model.generate(asked)
        assert model.usage == {}
    elif room < length:
        words = saying(length, 8)
        with pytest.warns(UserWarning), pytest.raises(MemoryError, match=words):
            model.generate(asked[:1])
    else:
        with pytest.warns(UserWarning, match=r"batch .* \d+ tokens") as caught:
            found = model.generate(asked)
        assert model.usage == {"halvings": len(caught)}
        for ours, theirs in zip(found, llama.generate(asked), strict=True):
            for a, b in zip(ours, theirs, strict=True):
                assert_same(a, b)


# Logits, by hand and in numpy


def test_draws_and_statistics_by_hand():
    """Weights 0, 1, 0, 3 and 2, 0, 0, 0, at temperature 1/2 their squares. P = (1/2, 1/2, 0, 0) and
    uniform over four: entropies log 2, log 4; divergences log 2, 0; angles 1/2, 0; self-certainties
    without end, 0."""
    logits = Logits(torch.tensor([[0.0, 1.0, 0.0, 3.0], [2.0, 0.0, 0.0, 0.0]]).log())
    back, u = np.array([0, 0, 0, 0, 1, 1]), np.array([0.0, 0.24, 0.26, 0.999, 0.0, 0.999])
    np.testing.assert_array_equal(logits.drawn(np.arange(2), back, u, 1.0), [1, 1, 3, 3, 0, 0])
    u = np.array([0.0, 0.09, 0.11, 1 - 2**-53, 0.0, 1 - 2**-53])
    np.testing.assert_array_equal(logits.drawn(np.arange(2), back, u, 0.5), [1, 1, 3, 3, 0, 0])
    logits = Logits(torch.tensor([[3.0, 3.0, -math.inf, -math.inf], [7.0, 7.0, 7.0, 7.0]]))
    wanted = [[math.log(2), math.log(4)], [math.log(2), 0], [0.5, 0], [math.inf, 0]]
    for alpha in (0.5, 1, 2):
        np.testing.assert_allclose(logits.statistics(np.arange(2), alpha), wanted, atol=1e-7)
    with pytest.raises(ValueError, match="not finite"):
        Logits(torch.tensor([[0.0, math.nan]]))


@pytest.mark.parametrize("dtype", ["bfloat16", "float64"])
def test_logits_read_by_torch_are_those_of_numpy(dtype):
    """With equals, and with tokens of probability 0."""
    rng, n_tokens = np.random.default_rng(3), 383
    given = torch.from_numpy(rng.normal(0, 3, (7, n_tokens)).round(1)).to(getattr(torch, dtype))
    given[2, 3:] = -math.inf
    exact = given.double().numpy()
    logprobs = exact - np.log(np.exp(exact).sum(1, keepdims=True))
    logits, rows, k = Logits(given), np.array([1, 2, 3, 6]), 4
    np.testing.assert_array_equal(logits.likeliest(rows), exact[rows].argmax(1))
    best, told = logits.best(rows, k)
    wanted = np.argsort(-exact[rows], axis=1, kind="stable")[:, :k]
    np.testing.assert_allclose(told, np.take_along_axis(logprobs[rows], wanted, 1), atol=1e-12)
    np.testing.assert_allclose(told, np.take_along_axis(logprobs[rows], best, 1), atol=1e-12)
    assert all(len(set(row)) == k for row in best.tolist())
    at, of = np.array([6, 0, 0]), np.array([4, 0, 1])
    np.testing.assert_allclose(logits.logprobs(at, of), logprobs[at, of], atol=1e-12)
    p, q = np.exp(logprobs[rows]), 1 / n_tokens
    with np.errstate(invalid="ignore", divide="ignore"):
        entropy = -np.nansum(p * logprobs[rows], axis=1)
        certainty = (q * np.log(q / p)).sum(axis=1)
    for alpha in (0.5, 1, 2):
        found = logits.statistics(rows, alpha)
        renyi = math.log(n_tokens) - entropy
        if alpha != 1:
            renyi = np.log((p**alpha * q ** (1 - alpha)).sum(1)) / (alpha - 1)
        angle = 2 / math.pi * np.arccos(np.minimum(1, np.sqrt(p * q).sum(1)))
        np.testing.assert_allclose(found, [entropy, renyi, angle, certainty], atol=1e-9)
    back, u = rng.integers(0, 4, 200), rng.random(200)
    for temperature in (0.5, 0.3):
        cumulative = np.cumsum(np.exp(logprobs[rows] / temperature), axis=1)[back]
        drawn = logits.drawn(rows, back, u, temperature)
        np.testing.assert_array_equal(drawn, (cumulative <= u[:, None] * cumulative[:, -1:]).sum(1))


# Pieces of text


def plain_pieces(ids: Ids, decode: Any) -> list[str]:
    """Every beginning decoded anew: what each token adds, by its definition."""
    text, ends = decode(ids), [0]
    for k in range(1, len(ids)):
        begun = decode(ids[:k])
        ends.append(max(ends[-1], len(os.path.commonprefix([begun, text]))))
    ends.append(len(text))
    return [text[a:b] for a, b in zip(ends[:-1], ends[1:], strict=True)] if ids else []


TOKENIZERS: dict[str, Any] = {
    "bytes": lambda: byte_tokenizer(words=["Flu", " cough", " é", "a", "  "]),
    "metaspace": lambda: metaspace_tokenizer([" It", "pneu", " lung", "s", " ", "é", "\ufffd"]),
    "embedded": lambda: transformers.AutoTokenizer.from_pretrained(EMBEDDED["embedded"]),
}
BITS = ["é", "😀", "cough ", "lung", " ", "a", "Ünï", "\n", "日本", "It is ", "\ufffd", "7"]


@each("name", list(TOKENIZERS))
def test_pieces_of_any_reply_are_those_of_every_beginning_decoded(name):
    tokenizer, rng = TOKENIZERS[name](), random.Random(7)

    def decode(ids: Ids) -> str:
        how = {"skip_special_tokens": True, "clean_up_tokenization_spaces": False}
        return tokenizer.decode(list(ids), **how)

    for trial in range(30):
        text = "".join(rng.choice(BITS) for _ in range(rng.choice([0, 3, 60])))
        ids = tokenizer(text, add_special_tokens=False)["input_ids"][:150]
        for _ in range(rng.choice([0, 1, 40])):
            ids.insert(rng.randrange(len(ids) + 1), rng.randrange(len(tokenizer)))
        assert text_pieces(tuple(ids), decode) == plain_pieces(tuple(ids), decode), trial


def test_pieces_of_a_long_reply_decode_few_tokens_at_a_time():
    tokenizer, read = byte_tokenizer(), [0]

    def decode(ids: Ids) -> str:
        read[0] += len(ids)
        return tokenizer.decode(list(ids), skip_special_tokens=True)

    ids = tuple(tokenizer("cough is café 😀 lung " * 200, add_special_tokens=False)["input_ids"])
    assert "".join(text_pieces(ids, decode)) == "cough is café 😀 lung " * 200
    assert len(ids) > 4000 and read[0] < 60 * len(ids)


@each(
    ("kind", "changes", "trees", "pads"),
    [
        ("gpt_neo", {"window_size": 200}, False, True),
        ("gpt_neo", {"attention_types": [[["global"], 2]], "window_size": 64}, True, True),
        ("mistral", {"sliding_window": None}, True, True),
    ],
)
def test_a_model_is_tried_on_more_than_it_sees_at_once(kind, changes, trees, pads, tmp_path):
    """GPT-Neo's window has a name of its own."""
    model = HuggingFaceModel(save_tiny(tmp_path, kind, **changes), device="cpu")
    assert (model._passes.trees > 0, model._passes.pads) == (trees, pads)
    asked = [ask(f"{'a long beginning ' * 15}and {end}") for end in ("pain", "a cough")]
    for request, (reply,) in zip(asked, model.generate(asked), strict=True):
        alone = plain_logprobs(model, prompt_of(model, request.messages), [0])[0].max()
        assert reply.trace is not None and reply.trace.logprobs is not None
        assert reply.trace.logprobs[0] == pytest.approx(alone, abs=1e-4)


def test_a_model_that_passes_over_a_mask_is_asked_without_and_one_never_as_alone_is_refused(folder):
    def deaf(more: dict[str, Any]) -> dict[str, Any]:
        return more | {"attention_mask": None}

    def to_trees(more: dict[str, Any]) -> dict[str, Any]:
        if (mask := more.get("attention_mask")) is not None and mask.ndim == 4:
            raise IndexError("too many indices")
        return more

    def other(more: dict[str, Any]) -> dict[str, Any]:
        return more | ({"input_ids": more["input_ids"] + 1} if "input_ids" in more else {})

    model = HuggingFaceModel(folder, device="cpu")
    for change, pads, takes_trees in ((lambda more: more, True, True), (deaf, False, False),
                                      (to_trees, True, False)):  # fmt: skip
        model._model.forward = odd_model(model, change)
        passes = Passes(model._model, "cpu")
        assert (passes.pads, passes.trees > 0) == (pads, takes_trees)
    model._model.forward = odd_model(model, other)
    with pytest.raises(ValueError, match=saying("LlamaForCausalLM", "probabilities")):
        Passes(model._model, "cpu")


# The cache, under either of its names


CACHELESS = ("rwkv", "recurrent_gemma")


@each("kind", [*KINDS, *IMAGE_TEXT])
def test_a_token_is_read_once_or_its_price_is_said(kind, tmp_path, monkeypatch):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = HuggingFaceModel(save_tiny(tmp_path, kind), device="cpu")
    warned = [str(w.message) for w in caught if "no cache" in str(w.message)]
    assert len(warned) == (kind in CACHELESS)
    assert all(says(text, "24 tokens", "24 times") for text in warned)
    model._ends = []
    shapes = count_rows(model, monkeypatch)
    ((reply,),) = model.generate([ask("cough " * 9, want=frozenset(), prior_messages=None)])
    assert reply.n_tokens_out == 8 and len(shapes) == 8
    widths = [width for _, width in shapes]
    n = widths[0]
    assert widths == ([*range(n, n + 8)] if kind in CACHELESS else [n] + [1] * 7)


@each("name", ["cache", "past_key_values"])
def test_the_cache_has_either_name(name, folder, llama, monkeypatch):
    """Transformers renamed ``past_key_values`` to ``cache`` in 5.24."""
    model = HuggingFaceModel(folder, device="cpu")
    forward, own = model._model.forward, model._passes.cache

    def renamed(input_ids=None, attention_mask=None, position_ids=None, use_cache=None,
                logits_to_keep=0, **more):  # fmt: skip
        assert set(more) <= {name}
        out = forward(
            input_ids=input_ids, attention_mask=attention_mask, position_ids=position_ids,
            use_cache=use_cache, logits_to_keep=logits_to_keep, **{own: more.get(name)},
        )  # fmt: skip
        return SimpleNamespace(**{"logits": out.logits, name: getattr(out, own)})

    plain = list(inspect.signature(renamed).parameters.values())[:-1]
    cache = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None)
    renamed.__signature__ = inspect.Signature([*plain, cache])  # type: ignore[attr-defined]
    monkeypatch.setattr(model._model, "forward", renamed)
    model._passes = Passes(model._model, "cpu")
    assert model._passes.cache == name and model._passes.has_room and model._passes.trees
    shapes = count_rows(model, monkeypatch)
    requests = [ask(p, n=2, temperature=1.0) for p in PATIENTS]
    for ours, theirs in zip(model.generate(requests), llama.generate(requests), strict=True):
        for mine, other in zip(ours, theirs, strict=True):
            assert_same(mine, other)
    assert sum(width == 1 for _, width in shapes) == 7  # eight tokens, the first with the prompts


# Rotary factors that follow the longest row of a pass


def anew(model: HuggingFaceModel, prompt: list[int], said: list[int]) -> np.ndarray:
    """Log-probability of each token of ``said``, the model reading all before it anew, (L,)."""
    rows = []
    for k, token in enumerate(said):
        with torch.no_grad():
            logits = model._model(input_ids=torch.tensor([prompt + said[:k]])).logits[0, -1]
        rows.append(torch.log_softmax(logits.double(), dim=-1)[token].item())
    return np.array(rows)


OPENING = "he has had a cough and a fever"
BOTH_SIDES = ("he has had", "he has had a cough", OPENING, f"{OPENING}, {OPENING}")
LENGTHS = {
    "all below": ("cough", "rash"),
    "beyond beside below": ("cough", f"{OPENING}, {OPENING}"),
    "replies that pass the switch": ("cough and a fever, so", "cough and a rash, and", "cough"),
}


@each(
    ("kind", "patients"),
    [*itertools.product(["phi3"], LENGTHS.values()), *itertools.product(BY_LENGTH, [BOTH_SIDES])],
)
def test_rotary_factors_by_length_are_those_of_each_row(kind, patients, tmp_path, monkeypatch):
    model = HuggingFaceModel(save_tiny(tmp_path, kind), device="cpu")
    assert model._passes.switch == SWITCH
    made: list[tuple[Request, list[int], Any]] = []
    reply_of = model._reply

    def noting(grown, r, *rest):
        made.append((grown.requests[r], list(grown.ids(r)), reply_of(grown, r, *rest)))
        return made[-1][2]

    monkeypatch.setattr(model, "_reply", noting)
    prior = (("user", "D" * (SWITCH - 12)),)
    model.generate([ask(p, max_tokens=8, prior_messages=prior) for p in patients])
    model.generate(
        [ask(p, max_tokens=8, n=2, temperature=1.0, prior_messages=prior) for p in patients]
    )
    assert len(made) == 3 * len(patients)
    for request, said, reply in made:
        alone = anew(model, prompt_of(model, request.messages), said)
        np.testing.assert_allclose(reply.trace.logprobs, alone, atol=2e-4)
        alone = anew(model, prompt_of(model, prior), said)
        np.testing.assert_allclose(reply.trace.prior_logprobs, alone, atol=2e-4)


@each("patient", ["cough", "he has had a cough", OPENING])
def test_given_texts_are_scored_with_the_factors_of_each_length(patient, tmp_path):
    model = HuggingFaceModel(save_tiny(tmp_path, "phi3"), device="cpu")
    texts = ("flu", "a common cold", "pneumonia of the left lung, or a cold")
    want = frozenset({"logprobs"})
    asked = [ask(patient, continuation=t, want=want, prior_messages=None) for t in texts]
    for request, (reply,) in zip(asked, model.generate(asked), strict=True):
        ids = model._cut([request.continuation or ""])[0]
        alone = anew(model, prompt_of(model, request.messages), ids)
        assert reply.trace is not None
        np.testing.assert_allclose(reply.trace.logprobs, alone, atol=2e-4)


def test_factors_that_grow_with_every_length_are_never_reached(tmp_path):
    """Dynamic ones do so beyond max_position_embeddings, which is the window."""
    rope = {"rope_type": "dynamic", "rope_theta": 100.0, "factor": 16.0}
    folder = save_tiny(tmp_path, max_position_embeddings=SWITCH, rope_parameters=rope)
    model = HuggingFaceModel(folder, device="cpu")
    how = {"prior_messages": None, "want": frozenset(), "max_tokens": 64}
    long, short = model.generate([ask(f"{OPENING}, {OPENING}", **how), ask("cough", **how)])
    assert long[0].missing and "48" in long[0].missing
    assert short[0].n_tokens_in + short[0].n_tokens_out == SWITCH + 1


def test_two_lengths_at_which_factors_change_are_refused():
    own, other = ({"rope_type": "longrope", "original_max_position_embeddings": n} for n in (8, 9))
    config = transformers.PreTrainedConfig()
    config.rope_parameters = {"full_attention": own, "sliding_attention": other}
    with pytest.raises(ValueError, match="too many values"):
        rotary_switch(config)
