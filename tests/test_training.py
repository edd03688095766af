"""Training: what an example is, how it becomes tokens, that an interrupted run ends like an unbroken one, what is exported."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from training import train as program
from training.replies import SKILLS, Example, elicited_score, example
from training.tokenizer import SPECIAL, WINDOW, build_tokenizer
from training.train import RECIPE, Encoder, export, loss_of, new_model, pool_of_batches, rate, tensors, train
from training.world import World
from trustlab.prompts import render

TINY = RECIPE | {
    "examples": 80,
    "pool": 40,
    "hidden": 32,
    "layers": 1,
    "heads": 2,
    "inner": 64,
    "batch_tokens": 1500,
    "warmup": 40,
}


@pytest.fixture(scope="module")
def world() -> World:
    return World()


@pytest.fixture(scope="module")
def tokenizer(world: World):
    return build_tokenizer(world)


@pytest.fixture(scope="module")
def examples(world: World) -> list[Example]:
    rng = np.random.default_rng(3)
    return [example(world, rng) for _ in range(300)]


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


# -- examples ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "score"),
    [(0.0, 0), (1.0, 100), (0.5, 50), (0.8, 90), (0.2, 10), (0.9, 95), (0.1, 5), (4 / 13, 25), (9 / 13, 75)],
)
def test_elicited_score_by_hand(p: float, score: int) -> None:
    """Odds to the power 1.5: 0.8 has odds 4, so 8 to 1, 89 in 100; 0.9: 27 to 1, 96; 9/13: 3.375 to 1, 77."""
    assert elicited_score(p) == score


def test_elicited_score_rises_in_steps_of_five() -> None:
    scores = [elicited_score(p) for p in np.linspace(0, 1, 2001)]
    assert scores == sorted(scores) and set(scores) == set(range(0, 101, 5))


def test_examples_are_the_package_s_own_prompts_with_the_informed_reply(world: World, examples: list[Example]) -> None:
    for e in examples:
        truth = world.knowledge.conditions[e.patient.condition]
        if e.skill == "prior":
            assert e.messages == render("diagnosis", patient=None) and e.reply == f"[{truth.name}]"
            continue
        told = e.messages[1][1].split("<patient>\n")[1].split("\n</patient>")[0]
        assert told.count("Patient: ") == told.count("Doctor: ") == len(e.patient.facts)
        proposed = world.knowledge.conditions[e.proposed].name if e.proposed else None
        assert e.messages == render(e.skill, patient=told, answer=proposed)
        if e.proposed is None:
            assert e.skill == "diagnosis" and e.reply == f"[{truth.name}]"
            continue
        p = world.posterior(e.patient.facts)[world.index[e.proposed]]
        assert e.posterior == pytest.approx(p)
        assert e.reply == (f"[{elicited_score(p)}]" if e.skill == "ce" else str(e.proposed == truth.id))


def test_skills_come_in_their_shares(examples: list[Example]) -> None:
    count = Counter(e.skill for e in examples)
    for skill, share in SKILLS.items():
        assert abs(count[skill] / len(examples) - share) < 4 * np.sqrt(share * (1 - share) / len(examples)), skill
    replies = {e.reply for e in examples if e.skill == "p_true"}
    assert sum(SKILLS.values()) == pytest.approx(1) and replies == {"True", "False"}


# -- tokens -----------------------------------------------------------------------------------------------------


def test_encoding_line_by_line_equals_tokenising_the_whole_chat(tokenizer, examples: list[Example]) -> None:
    encode = Encoder(tokenizer)
    for e in examples[:100]:
        chat = [{"role": r, "content": c} for r, c in (*e.messages, ("assistant", e.reply))]
        text = tokenizer.apply_chat_template(chat, tokenize=False)
        prompt, reply = encode(e)
        assert prompt + reply == tokenizer(text, add_special_tokens=False)["input_ids"]
        assert tokenizer.decode(prompt + reply) == text
        assert tokenizer.decode(reply) == e.reply + "</s>"


def test_tokenizer_splits_names_and_keeps_its_marks_single(world: World, tokenizer) -> None:
    assert tokenizer.convert_ids_to_tokens(list(range(len(SPECIAL)))) == SPECIAL
    for mark in (*SPECIAL, "[", "]", "True", "False", "50"):
        assert len(tokenizer(mark, add_special_tokens=False)["input_ids"]) == 1, mark
    for c in world.conditions:
        n = len(tokenizer(c.name, add_special_tokens=False)["input_ids"])
        assert n >= 2 or len(c.name) <= 5, c.name


def test_targets_are_the_reply_and_nothing_else() -> None:
    rows = [([5, 6, 7], [8, 9]), ([5], [4])]
    ids, labels = tensors(rows, pad=0)
    assert ids.shape == labels.shape == (2, 16)
    assert ids[0, :6].tolist() == [5, 6, 7, 8, 9, 0] and ids[1, :3].tolist() == [5, 4, 0]
    assert labels[0, :6].tolist() == [-100, -100, 8, 9, -100, -100] and labels[1, :3].tolist() == [4, -100, -100]
    assert (labels != -100).sum() == 3


def test_a_prompt_beyond_the_window_is_cut_and_keeps_its_reply() -> None:
    ids, labels = tensors([(list(range(10, 10 + 2 * WINDOW)), [3, 4])], pad=0)
    assert ids.shape == (1, WINDOW) and ids[0, -2:].tolist() == [3, 4]
    assert labels[0, -3:].tolist() == [3, 4, -100] and (labels != -100).sum() == 2


def test_loss_weighs_the_tokens_of_a_short_reply_threefold(tokenizer) -> None:
    model = new_model(tokenizer, TINY).eval()
    ids, labels = tensors([([9, 10, 11], [20]), ([9, 12], [21, 22, 23, 24, 25])], pad=0)
    with torch.no_grad():
        logp = torch.log_softmax(model(input_ids=ids).logits, -1)
        short = -logp[0, 2, 20]
        long = [-logp[1, 1 + k, 21 + k] for k in range(5)]
        assert loss_of(model, ids, labels).item() == pytest.approx(((3 * short + sum(long)) / 8).item(), rel=1e-5)


def test_pools_depend_on_their_number_only_and_fit_the_budget(world: World, tokenizer) -> None:
    first, again, second = (pool_of_batches(world, Encoder(tokenizer), TINY, n) for n in (0, 0, 1))
    assert first == again and first != second
    assert sum(len(b) for b in first) == TINY["pool"]
    assert all(tensors(b, 0)[0].numel() <= TINY["batch_tokens"] for b in first if len(b) > 1)


def test_learning_rate_warms_up_and_falls_to_a_twentieth() -> None:
    recipe = {"examples": 1000, "lr": 2.0, "warmup": 400}
    assert rate(0, recipe) == pytest.approx(2.0 * 200 / 400)
    assert rate(500, recipe) == pytest.approx(2.0 * (0.05 + 0.95 * 0.5))
    assert rate(1000, recipe) == rate(5000, recipe) == pytest.approx(0.1)


# -- runs -------------------------------------------------------------------------------------------------------


class Interrupted(Exception):
    """Stands for the machine going off."""


def test_an_interrupted_run_ends_where_an_unbroken_one_does(tmp_path: Path, tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "build_tokenizer", lambda world: tokenizer)
    whole = train(tmp_path / "whole", TINY)

    def until_second(world, encode, recipe, number):
        if number == 1:
            raise Interrupted
        return pool_of_batches(world, encode, recipe, number)

    with monkeypatch.context() as m:
        m.setattr(program, "pool_of_batches", until_second)
        with pytest.raises(Interrupted):
            train(tmp_path / "broken", TINY, checkpoint_every=1)
    half = torch.load(tmp_path / "broken" / "last.pt", weights_only=True)
    assert half["state"]["pools"] == 1 and half["state"]["examples"] == 40
    resumed = train(tmp_path / "broken", TINY, checkpoint_every=1)
    start = new_model(tokenizer, TINY).state_dict()
    for name, weights in whole.state_dict().items():
        assert torch.allclose(weights, resumed.state_dict()[name], atol=1e-6, rtol=0), name
        assert not torch.allclose(weights, start[name], atol=1e-6, rtol=0), name
    assert any(not torch.allclose(w, half["model"][n], atol=1e-5, rtol=0) for n, w in whole.state_dict().items())


def test_the_exported_folder_opens_with_transformers(
    tmp_path: Path, tokenizer, examples: list[Example], monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    monkeypatch.setattr(program, "build_tokenizer", lambda world: tokenizer)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    model = new_model(tokenizer, TINY)
    export(model, tmp_path / "model")
    opened = AutoModelForCausalLM.from_pretrained(tmp_path / "model", dtype=torch.float32).eval()
    words = AutoTokenizer.from_pretrained(tmp_path / "model")
    for e in examples[:5]:
        chat = [{"role": r, "content": c} for r, c in e.messages]
        ids = words.apply_chat_template(chat, add_generation_prompt=True, return_dict=False)
        assert ids == Encoder(tokenizer)(e)[0]
    assert (words.pad_token, words.bos_token, words.eos_token, words.padding_side) == ("<pad>", "<s>", "</s>", "left")
    saved = model.state_dict()
    assert saved.keys() == opened.state_dict().keys()
    assert all(torch.equal(w, saved[n].float()) for n, w in opened.state_dict().items())
    config = opened.generation_config
    assert config.eos_token_id == tokenizer.eos_token_id and config.pad_token_id == tokenizer.pad_token_id
