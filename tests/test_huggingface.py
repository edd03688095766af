"""The Hugging Face backend against plain forward passes of tiny random models."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from each import each
from scipy import stats
from tiny_models import TEMPLATE, byte_tokenizer, save_tiny

from trustlab.models.base import STATISTICS, Model, Request
from trustlab.models.decoding import Branches, pieces, text_pieces, tree_of, trees, uniforms
from trustlab.models.huggingface import HuggingFaceModel, Share, batches
from trustlab.models.logits import PART, Logits
from trustlab.models.opening import folder_revision
from trustlab.records import Reply

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

EVERYTHING = frozenset(STATISTICS)
WINDOW = 128
PATIENTS = (
    "cough",
    "fever for three days",
    "pain in the left knee, worse at night",
    "rash",
    "tired",
)


def save_model(
    folder: Path, kind: str, eos: int | list[int] = 1, chat_template: str | None = TEMPLATE
) -> Path:
    """A random model of :func:`save_tiny` with a window of :data:`WINDOW`, and its end tokens."""
    window = {"llama": "max_position_embeddings", "gpt2": "n_positions"}[kind]
    save_tiny(folder, kind, byte_tokenizer(chat_template), **{window: WINDOW})
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": eos}))
    return folder


@pytest.fixture(scope="session")
def llama_folder(tmp_path_factory) -> Path:
    return save_model(tmp_path_factory.mktemp("llama"), "llama")


@pytest.fixture(scope="session")
def llama(llama_folder) -> HuggingFaceModel:
    return HuggingFaceModel(llama_folder, device="cpu")


@pytest.fixture(scope="session")
def gpt2_folder(tmp_path_factory) -> Path:
    return save_model(tmp_path_factory.mktemp("gpt2"), "gpt2", chat_template=None)


def ask(patient: str, **options) -> Request:
    defaults = {"max_tokens": 8, "want": EVERYTHING, "prior_messages": (("user", "Diagnosis?"),)}
    return Request(messages=(("system", "doctor"), ("user", patient)), **{**defaults, **options})


def prompt_ids(model: HuggingFaceModel, patient: str) -> list[int]:
    """The prompt of ``ask`` spelt by hand: the template of this file, a byte per token."""
    return model._tokenizer(f"<s>system=doctor;user={patient};>", add_special_tokens=False)[
        "input_ids"
    ]


def plain_logprobs(model: HuggingFaceModel, prompt: list[int], said: list[int]) -> np.ndarray:
    """Log-probabilities over the vocabulary before each token of ``said``, (L, N) in float64: one
    pass, no cache."""
    with torch.no_grad():
        logits = (
            model._model(input_ids=torch.tensor([prompt + said]), use_cache=False)
            .logits[0]
            .double()
        )
    return torch.log_softmax(logits, dim=-1).numpy()[len(prompt) - 1 : len(prompt) + len(said) - 1]


def said_ids(model: HuggingFaceModel, prompt: list[int], n: int) -> list[int]:
    """Greedy tokens by n plain passes."""
    ids = list(prompt)
    for _ in range(n):
        ids.append(int(plain_logprobs(model, ids, [0])[0].argmax()))
    return ids[len(prompt) :]


def assert_same(ours: Reply, theirs: Reply) -> None:
    assert (ours.text, ours.n_tokens_in, ours.n_tokens_out, ours.finish) == (
        theirs.text, theirs.n_tokens_in, theirs.n_tokens_out, theirs.finish)  # fmt: skip
    assert ours.trace is not None and theirs.trace is not None
    assert ours.trace.tokens == theirs.trace.tokens
    for name in ours.trace.ARRAYS:
        np.testing.assert_allclose(
            getattr(ours.trace, name), getattr(theirs.trace, name), atol=1e-4
        )
    assert ours.trace.alternatives is not None and theirs.trace.alternatives is not None
    for a, b in zip(ours.trace.alternatives, theirs.trace.alternatives, strict=True):
        np.testing.assert_allclose([p for _, p in a], [p for _, p in b], atol=1e-4)


def count_rows(model: HuggingFaceModel, monkeypatch) -> list[tuple[int, int]]:
    """The shape of the ids of every forward call from now on."""
    shapes: list[tuple[int, int]] = []
    forward = model._model.forward

    def counting(*args, **given):
        shapes.append(tuple(given["input_ids"].shape))
        return forward(*args, **given)

    monkeypatch.setattr(model._model, "forward", counting)
    return shapes


def test_it_is_a_model(llama, llama_folder):
    assert isinstance(llama, Model)
    assert llama.provides == {"text", *STATISTICS}
    assert llama.name == llama_folder.name
    assert llama.generate([]) == []


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_batched_equals_single(kind, llama_folder, gpt2_folder):
    folder = {"llama": llama_folder, "gpt2": gpt2_folder}[kind]
    together, alone = (
        HuggingFaceModel(folder, device="cpu"),
        HuggingFaceModel(folder, device="cpu", batch_tokens=1),
    )
    requests = [ask(p) for p in PATIENTS] + [ask(p, n=5, temperature=0.7, seed=3) for p in PATIENTS]
    batched = together.generate(requests)
    assert len({reply.n_tokens_in for replies in batched for reply in replies}) > 2
    for request, replies in zip(requests, batched, strict=True):
        for model in (together, alone):
            for a, b in zip(replies, model.generate([request])[0], strict=True):
                assert_same(a, b)
    for replies, again in zip(batched, alone.generate(requests), strict=True):
        for a, b in zip(replies, again, strict=True):
            assert_same(a, b)


def test_statistics_equal_a_plain_pass(llama):
    """Greedy tokens, log-probabilities, entropy, Rényi at 0.5, Fisher-Rao and alternatives, from
    their definitions."""
    patient = PATIENTS[1]
    prompt = prompt_ids(llama, patient)
    said = said_ids(llama, prompt, 8)
    assert 1 not in said
    reply = llama.generate([ask(patient)])[0][0]
    plain = plain_logprobs(llama, prompt, said)
    assert reply.text == llama._tokenizer.decode(said)
    assert (reply.n_tokens_in, reply.n_tokens_out, reply.finish) == (len(prompt), 8, "length")
    trace = reply.trace
    np.testing.assert_allclose(trace.logprobs, plain[np.arange(8), said], atol=1e-4)
    p, q = np.exp(plain), 1 / plain.shape[1]
    np.testing.assert_allclose(trace.entropies, -(p * plain).sum(1), atol=1e-4)
    np.testing.assert_allclose(
        trace.renyi, [1 / (0.5 - 1) * math.log(sum(r**0.5 * q**0.5)) for r in p], atol=1e-4
    )
    np.testing.assert_allclose(
        trace.fisher_rao, [2 / math.pi * math.acos(sum(np.sqrt(r * q))) for r in p], atol=1e-4
    )
    assert trace.entropies.std() > 0.05
    for t, (found, row) in enumerate(zip(trace.alternatives, plain, strict=True)):
        best = np.argsort(-row)[:10]
        begun = llama._tokenizer.decode(said[:t])
        for (text, _), i in zip(found, best, strict=True):
            whole = llama._tokenizer.decode([*said[:t], i])
            assert text == (
                trace.tokens[t]
                if i == said[t]
                else whole[len(os.path.commonprefix([begun, whole])) :]
            )
        np.testing.assert_allclose([value for _, value in found], row[best], atol=1e-4)


def test_samples_are_scored_at_temperature_one(llama, monkeypatch):
    """The sampled ids are seen where the prior is scored."""
    seen: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    score = llama._score
    monkeypatch.setattr(llama, "_score", lambda pairs: score(seen.extend(pairs) or pairs))
    for seed in range(5):
        request = ask(
            PATIENTS[0], temperature=0.5, want=frozenset({"logprobs", "prior"}), seed=seed
        )
        reply = llama.generate([request])[0][0]
        said = list(seen[-1][1])
        plain = plain_logprobs(llama, prompt_ids(llama, PATIENTS[0]), said)
        np.testing.assert_allclose(
            reply.trace.logprobs, plain[np.arange(len(said)), said], atol=1e-4
        )
        assert reply.text == llama._decode(tuple(said))
        assert reply.trace.entropies is None and reply.trace.alternatives is None
    assert len({said for _, said in seen}) > 2


def test_prior_equals_a_plain_pass(llama):
    priors = ("Diagnosis?", "What is it, in one word?")
    requests = [ask(p, prior_messages=(("user", q),)) for p in PATIENTS for q in priors]
    for request, (reply,) in zip(requests, llama.generate(requests), strict=True):
        said = said_ids(llama, prompt_ids(llama, request.messages[1][1]), 8)[: len(reply.trace)]
        prior = llama._tokenizer(
            f"<s>user={request.prior_messages[0][1]};>", add_special_tokens=False
        )["input_ids"]
        plain = plain_logprobs(llama, prior, said)
        np.testing.assert_allclose(
            reply.trace.prior_logprobs, plain[np.arange(len(said)), said], atol=1e-4
        )
        assert np.abs(reply.trace.prior_logprobs - reply.trace.logprobs).max() > 0.01


def test_samples_differ_repeat_and_keep_their_own_stream(llama):
    def texts(n=6, **options):
        return [
            r.text for r in llama.generate([ask(PATIENTS[1], n=n, temperature=1.0, **options)])[0]
        ]

    six = texts()
    assert len(set(six)) > 3
    assert texts() == six
    assert texts(n=2) == six[:2]
    assert texts(seed=1) != six
    assert texts(want=frozenset()) == six
    assert [t[:2] for t in texts(max_tokens=2)] == [t[:2] for t in six]


def test_uniforms_depend_on_seed_index_and_messages():
    messages = (("user", "cough"),)
    base = uniforms(messages, 0, 0, 5)
    assert ((base >= 0) & (base < 1)).all()
    np.testing.assert_array_equal(uniforms(messages, 0, 0, 9)[:5], base)
    for other in (
        uniforms(messages, 1, 0, 5),
        uniforms(messages, 0, 1, 5),
        uniforms((("user", "rash"),), 0, 0, 5),
    ):
        assert not np.isclose(other, base).any()


def test_samples_follow_the_tempered_law(llama):
    n, temperature = 800, 0.5
    request = ask(
        PATIENTS[2],
        n=n,
        temperature=temperature,
        max_tokens=1,
        want=frozenset({"logprobs"}),
        seed=11,
    )
    logprobs = plain_logprobs(llama, prompt_ids(llama, PATIENTS[2]), [0])[0]
    tempered = np.exp(logprobs / temperature)
    tempered /= tempered.sum()
    common = np.flatnonzero(tempered * n >= 5)
    assert len(common) >= 4
    values = np.array(
        [r.trace.logprobs[0] if len(r.trace) else logprobs[1] for r in llama.generate([request])[0]]
    )
    distance = np.abs(values[:, None] - logprobs[None])
    assert (distance.min(axis=1) < 1e-4).all()
    counts = np.bincount(distance.argmin(axis=1), minlength=len(logprobs))
    observed = np.append(counts[common], n - counts[common].sum())
    expected = n * np.append(tempered[common], 1 - tempered[common].sum())
    assert stats.chisquare(observed, expected).pvalue > 0.001
    untempered = n * np.append(np.exp(logprobs[common]), 1 - np.exp(logprobs[common]).sum())
    assert stats.chisquare(observed, untempered).pvalue < 0.001


def test_tokens_join_to_the_text(llama):
    replies = llama.generate([ask(p, n=20, temperature=1.5, max_tokens=12) for p in PATIENTS])
    assert any(
        len(r.trace.tokens) > len(r.text) for rs in replies for r in rs
    )  # some characters take several tokens
    for reply in (r for rs in replies for r in rs):
        assert "".join(reply.trace.tokens) == reply.text
        assert (
            len(reply.trace)
            == len(reply.trace.logprobs)
            == len(reply.trace.alternatives)
            == len(reply.trace.prior_logprobs)
        )


def test_text_pieces_of_characters_split_over_tokens():
    tokenizer = byte_tokenizer(None)

    def decode(ids):
        return tokenizer.decode(list(ids), skip_special_tokens=True)

    def pieces(text):
        return text_pieces(tuple(tokenizer(text, add_special_tokens=False)["input_ids"]), decode)

    assert pieces("né!") == ["n", "", "é", "!"]
    assert pieces("😀") == ["", "", "", "😀"]
    assert text_pieces((), decode) == []
    cut = tuple(tokenizer("aé", add_special_tokens=False)["input_ids"][:2])
    assert text_pieces(cut, decode) == ["a", "\ufffd"]
    assert text_pieces((0, *cut[:1]), decode) == ["", "a"]


def test_an_empty_reply_has_empty_statistics(llama, tmp_path):
    first = said_ids(llama, prompt_ids(llama, PATIENTS[1]), 1)[0]
    model = HuggingFaceModel(save_model(tmp_path, "llama", eos=first), device="cpu")
    reply = model.generate([ask(PATIENTS[1])])[0][0]
    assert (reply.text, reply.finish, reply.n_tokens_out, len(reply.trace)) == ("", "stop", 1, 0)
    assert all(getattr(reply.trace, name).shape == (0,) for name in reply.trace.ARRAYS)


def test_greedy_and_samples_share_one_prefill(llama, monkeypatch):
    shapes = count_rows(llama, monkeypatch)
    greedy, samples = (
        ask(PATIENTS[1], want=frozenset()),
        ask(PATIENTS[1], want=frozenset(), n=15, temperature=0.5),
    )
    llama.generate(
        [dataclasses.replace(greedy, max_tokens=1), dataclasses.replace(samples, max_tokens=1)]
    )
    assert shapes == [(1, len(prompt_ids(llama, PATIENTS[1])))]
    shapes.clear()
    llama.generate([greedy, dataclasses.replace(greedy, purpose="again", n=9)])
    assert [rows for rows, _ in shapes] == [1] * 8
    assert [width for _, width in shapes[1:]] == [1] * 7


def test_replies_that_agree_so_far_share_a_forward(llama, monkeypatch):
    """Step t reads the distinct beginnings of t tokens of replies not yet ended; log-probabilities
    tell them apart."""
    shapes = count_rows(llama, monkeypatch)
    replies = llama.generate(
        [ask(PATIENTS[1], want=frozenset({"logprobs"}), n=15, temperature=0.6)]
    )[0]
    going = [[r for r in replies if r.n_tokens_out > step] for step in range(len(shapes))]
    beginnings = [
        {tuple(np.round(r.trace.logprobs[:step], 9)) for r in on} for step, on in enumerate(going)
    ]
    assert [rows for rows, _ in shapes] == [len(b) for b in beginnings]
    assert 1 < len(beginnings[1]) < 15 and any(r.finish == "stop" for r in replies)


def test_prior_is_scored_once_per_distinct_reply(llama, monkeypatch):
    shapes = count_rows(llama, monkeypatch)
    llama.generate([ask(PATIENTS[1], n=7, max_tokens=2)])
    assert [rows for rows, _ in shapes] == [1, 1, 1]


def test_without_chat_template_messages_are_paragraphs(gpt2_folder):
    model = HuggingFaceModel(gpt2_folder, device="cpu", name="tiny")
    reply = model.generate([ask("cough", want=frozenset())])[0][0]
    prompt = model._tokenizer("system: doctor\n\nuser: cough\n\nassistant:")["input_ids"]
    assert (model.name, reply.n_tokens_in, reply.trace) == ("tiny", len(prompt), None)
    assert reply.text == model._tokenizer.decode(said_ids(model, prompt, 8))


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_window(kind, llama_folder, gpt2_folder):
    model = HuggingFaceModel({"llama": llama_folder, "gpt2": gpt2_folder}[kind], device="cpu")
    empty = model.generate([ask("", want=frozenset(), max_tokens=1)])[0][0].n_tokens_in
    long, short = model.generate([ask("x" * (WINDOW + 1 - empty), n=2), ask("x", max_tokens=2)])
    assert [(r.text, r.finish, r.n_tokens_in, r.n_tokens_out) for r in long] == [
        (None, "error", WINDOW + 1, 0)
    ] * 2
    assert (
        f"longer than the window of {model.name}, {WINDOW} tokens" in long[0].missing
        and short[0].text is not None
    )
    reply = model.generate([ask("x" * (WINDOW - 3 - empty), max_tokens=20)])[0][0]
    assert (reply.n_tokens_in, reply.n_tokens_out, reply.finish) == (WINDOW - 3, 4, "length")
    with pytest.raises(ValueError, match=f"window of .*{WINDOW}"):
        model.generate([ask("x", prior_messages=ask("x" * (WINDOW - empty)).messages)])


def test_impossible_requests(llama):
    with pytest.raises(ValueError, match="prior_messages is None"):
        llama.generate([ask("x", prior_messages=None)])
    with pytest.raises(ValueError, match="at least 0, got -1"):
        llama.generate([ask("x", temperature=-1)])
    with pytest.raises(ValueError, match="n=0"):
        llama.generate([ask("x", n=0)])
    with pytest.raises(ValueError, match="'entropy'"):
        llama.generate([ask("x", want=frozenset({"entropy"}))])
    with pytest.raises(ValueError, match="'float8'"):
        HuggingFaceModel("anything", dtype="float8")


def test_missing_model(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    with pytest.raises(FileNotFoundError, match="config.json"):
        HuggingFaceModel(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError, match="config.json"):
        HuggingFaceModel(tmp_path)
    with pytest.raises(FileNotFoundError, match="'nobody/nothing'.*hub"):
        HuggingFaceModel("nobody/nothing")


def test_hub_model_shows_its_commit(tmp_path, monkeypatch):
    commit = "0123456789abcdef0123456789abcdef01234567"
    home = tmp_path / "models--org--tiny"
    save_model(home / "snapshots" / commit, "llama")
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(commit)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    model = HuggingFaceModel("org/tiny", device="cpu")
    assert (model.name, model.revision) == ("org/tiny", commit)


def test_revision_follows_the_model_files(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    first = folder_revision(tmp_path)
    assert len(first) == 16 and int(first, 16) >= 0
    (tmp_path / "README.md").write_text("words")
    assert folder_revision(tmp_path) == first
    (tmp_path / "model.safetensors").write_bytes(b"Weights")
    assert folder_revision(tmp_path) != first


def test_draws_by_hand():
    """Weights 0, 1, 0, 3 and 2, 0, 0, 0; at temperature 1/2 their squares."""
    logits = Logits(torch.tensor([[0.0, 1.0, 0.0, 3.0], [2.0, 0.0, 0.0, 0.0]]).log(), (0.5, 1))
    back, u = np.array([0, 0, 0, 0, 1, 1]), np.array([0.0, 0.24, 0.26, 0.999, 0.0, 0.999])
    np.testing.assert_array_equal(logits.drawn(np.arange(2), back, u, 1.0), [1, 1, 3, 3, 0, 0])
    u = np.array([0.0, 0.09, 0.11, 1 - 2**-53, 0.0, 1 - 2**-53])
    np.testing.assert_array_equal(logits.drawn(np.arange(2), back, u, 0.5), [1, 1, 3, 3, 0, 0])


@pytest.mark.parametrize("n_tokens", [5, PART, PART + 1, 3 * PART - 1])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("values", [1 << 17, 2 * PART])
def test_logits_read_in_parts_are_those_of_the_whole_row(n_tokens, dtype, values, monkeypatch):
    """Also where a row is many tiles, a tile many rows; with equals, and with tokens of probability
    0."""
    monkeypatch.setattr("trustlab.models.logits.CPU_VALUES", values)
    rng = np.random.default_rng(3)
    given = torch.from_numpy(rng.normal(0, 3, (7, n_tokens)).round(1)).to(getattr(torch, dtype))
    given[2, 3:] = -math.inf
    exact = given.double().numpy()
    logprobs = exact - np.log(np.exp(exact).sum(1, keepdims=True))
    logits, rows, k = Logits(given, (0.5, 0.3)), np.array([1, 2, 3, 6]), 4
    np.testing.assert_array_equal(logits.likeliest(rows), exact[rows].argmax(1))
    best, told = logits.best(rows, k)
    wanted = np.argsort(-exact[rows], axis=1, kind="stable")[:, :k]
    np.testing.assert_allclose(told, np.take_along_axis(logprobs[rows], wanted, 1), atol=1e-12)
    np.testing.assert_allclose(told, np.take_along_axis(logprobs[rows], best, 1), atol=1e-12)
    assert all(len(set(row)) == k for row in best.tolist())
    any_order = np.array([6, 0, 0])
    np.testing.assert_allclose(
        logits.logprobs(any_order, np.array([4, 0, 1])), logprobs[any_order, [4, 0, 1]], atol=1e-12
    )
    p, q = np.exp(logprobs[rows]), 1 / n_tokens
    with np.errstate(invalid="ignore"):
        entropy = -np.nansum(p * logprobs[rows], axis=1)
    for alpha in (0.5, 1, 2):
        found = logits.statistics(rows, alpha)
        renyi = math.log(n_tokens) - entropy
        if alpha != 1:
            renyi = np.log((p**alpha * q ** (1 - alpha)).sum(1)) / (alpha - 1)
        angle = 2 / math.pi * np.arccos(np.minimum(1, np.sqrt(p * q).sum(1)))
        np.testing.assert_allclose(found, [entropy, renyi, angle], atol=1e-9)
    back, u = rng.integers(0, 4, 200), rng.random(200)
    for temperature in (0.5, 0.3):
        cumulative = np.cumsum(np.exp(logprobs[rows] / temperature), axis=1)[back]
        drawn = logits.drawn(rows, back, u, temperature)
        np.testing.assert_array_equal(drawn, (cumulative <= u[:, None] * cumulative[:, -1:]).sum(1))


def test_distribution_statistics_by_hand():
    """P = (1/2, 1/2, 0, 0) and uniform over four: entropies log 2, log 4; divergences log 2, 0;
    angles 1/2, 0."""
    logits = Logits(torch.tensor([[3.0, 3.0, -math.inf, -math.inf], [7.0, 7.0, 7.0, 7.0]]))
    for alpha in (0.5, 1, 2):
        np.testing.assert_allclose(
            logits.statistics(np.arange(2), alpha),
            [[math.log(2), math.log(4)], [math.log(2), 0], [0.5, 0]],
            atol=1e-7,
        )
    with pytest.raises(ValueError, match="not finite"):
        Logits(torch.tensor([[0.0, math.nan]]))


def test_batches_keep_to_the_limit():
    """Batches by hand: 2 x (9 + 1) fits 20 and 3 x (30 + 1) does not; three rows of the first leave
    no room for a second."""
    sizes = ((5, 2), (1, 1), (9, 1), (2, 4), (30, 1))
    shares = [Share((7,) * length, (((i, 0),),), more) for i, (length, more) in enumerate(sizes)]
    assert list(batches(shares, 20)) == [[1, 2], [4], [0, 3]]
    assert list(batches(shares, 10_000)) == [[1, 2, 4, 0, 3]]
    shares[1] = Share((7,), (((1, 0),), ((1, 1),), ((1, 2),)), 1)
    assert list(batches(shares, 20)) == [[1], [2], [4], [0, 3]]


def test_a_tree_holds_what_prompts_begin_with_once():
    """By hand: 1 2 3, 1 2 4 5 and 1 2 are five tokens; the fourth (4) sees 1 and 2, not 3."""
    prompts = [(1, 2, 4, 5), (1, 2, 3), (1, 2)]
    (tree,) = trees(prompts, 10)
    assert tree.rows == [2, 1, 0] and tree.ids.tolist() == [1, 2, 3, 4, 5]
    assert tree.depth.tolist() == [0, 1, 2, 2, 3]
    assert [path.tolist() for path in tree.paths] == [[0, 1], [0, 1, 2], [0, 1, 3, 4]]
    assert tree.sees[3].tolist() == [True, True, False, True, False]
    assert [t.rows for t in trees([(1, 2, 3)] * 2 + [(9, 8, 7, 6)], 4)] == [[0, 1], [2]]
    assert trees([(1, 2, 3), (4, 5, 6)], 10) == []  # nothing is shared
    assert tree_of([(7,)], [0]).sees.tolist() == [[True]]


def test_pieces_are_neighbours_about_as_long(monkeypatch):
    monkeypatch.setattr("trustlab.models.decoding.PIECE", 30)
    assert list(pieces([8, 8, 8, 9, 20, 40])) == [range(3), range(3, 4), range(4, 5), range(5, 6)]
    assert list(pieces([5])) == [range(1)]


@torch.inference_mode()
def test_an_output_layer_laid_out_once_gives_the_products_of_its_weights(llama_folder, monkeypatch):
    """At any number of rows; a half-precision one, or one that is too large, stays as it was."""
    layer = HuggingFaceModel(llama_folder, device="cpu")._model.lm_head
    for shape in ((1, 1), (1, 16), (17, 1), (3, 40)):
        values = torch.randn(*shape, layer.in_features)
        wanted = torch.nn.functional.linear(values, layer.weight, layer.bias)
        torch.testing.assert_close(layer(values), wanted, atol=1e-5, rtol=0)
    halved = HuggingFaceModel(llama_folder, device="cpu", dtype="bfloat16")
    monkeypatch.setattr("trustlab.models.opening.PACKED", layer.weight.nbytes - 1)
    large = HuggingFaceModel(llama_folder, device="cpu")
    changed = ["forward" in vars(m) for m in (layer, halved._model.lm_head, large._model.lm_head)]
    assert changed == [torch.backends.mkldnn.is_available(), False, False]


@torch.inference_mode()
def test_prompts_read_as_trees_in_pieces_or_padded_go_on_alike(llama_folder):
    """Rows are exchanged, doubled and dropped between the tokens, and the room grows."""
    model = HuggingFaceModel(llama_folder, device="cpu")
    drawn = np.random.default_rng(3)
    base = tuple(drawn.integers(3, 90, 40).tolist())
    cuts = zip(drawn.integers(5, 40, 12).tolist(), drawn.integers(1, 30, 12), strict=True)
    ends = [(at, tuple(drawn.integers(3, 90, n).tolist())) for at, n in cuts]
    prompts = [base[:at] + end for at, end in ends]
    assert model._passes.trees >= 256
    read = []
    for most, has_room in ((256, True), (0, True), (0, False)):
        model._passes.__dict__["trees"] = most
        model._passes.has_room = has_room
        branches = Branches(model._passes, prompts)
        found, at = [branches.read()], np.arange(len(prompts))
        changes = {1: [3, 3, 0, 7, 11], 4: [4, 1, 2], 66: [0, 2], 68: [0]}
        for step in range(70):
            parent = at[changes.get(step, slice(None))]
            at = branches.extend(parent, 5 + np.arange(len(parent)) % 2 + step % 3)
            found.append(branches.read()[at])
        read.append(found)
    for one, *others in zip(*read, strict=True):
        for other in others:
            np.testing.assert_allclose(one.numpy(), other.numpy(), atol=2e-5)


@each("trouble", [IndexError("too many indices"), "other logits"])
def test_a_model_that_takes_no_mask_of_a_tree_is_asked_without(llama_folder, monkeypatch, trouble):
    """Its replies are those of before; a mask that is passed over gives other logits, and shows."""
    wanted = HuggingFaceModel(llama_folder, device="cpu")
    asked = [ask(f"The same long beginning, and {end}") for end in ("pain", "fever", "a cough")]
    model = HuggingFaceModel(llama_folder, device="cpu")
    forward = type(model._model).forward

    def odd(self: Any, *given: Any, attention_mask: Any = None, **more: Any) -> Any:
        if attention_mask is not None and attention_mask.ndim == 4:
            if isinstance(trouble, Exception):
                raise trouble
            attention_mask = None
        return forward(self, *given, attention_mask=attention_mask, **more)

    odd.__signature__ = inspect.signature(forward)  # type: ignore[attr-defined]
    assert model._passes.trees == wanted._passes.trees > 0
    del model._passes.__dict__["trees"]
    monkeypatch.setattr(model._model, "forward", functools.partial(odd, model._model))
    assert model._passes.trees == 0
    for one, other in zip(model.generate(asked), wanted.generate(asked), strict=True):
        assert [r.text for r in one] == [r.text for r in other]
