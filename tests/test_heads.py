"""The attention heads that the embedded models begin with look where they should, before anything
is learned."""

from __future__ import annotations

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from training.heads import CONSTANT, directions, fill, write_heads

HIDDEN, HEADS, VOCAB, PATIENT, PAD = 256, 4, 400, 7, 0


def fresh(hidden: int = HIDDEN, heads: int = HEADS) -> LlamaForCausalLM:
    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=VOCAB, hidden_size=hidden, intermediate_size=32, num_hidden_layers=2,
        num_attention_heads=heads, num_key_value_heads=heads, max_position_embeddings=512,
        tie_word_embeddings=True, pad_token_id=PAD,
        rope_parameters={"rope_type": "default", "rope_theta": 500_000.0},
        attn_implementation="eager",
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


def looked(model: LlamaForCausalLM, ids: list[int]) -> list[torch.Tensor]:
    """Where each head looks: for each layer, shape (head, from, to)."""
    with torch.no_grad():
        return [layer[0] for layer in model(torch.tensor([ids]), output_attentions=True).attentions]


@pytest.fixture(scope="module")
def model() -> LlamaForCausalLM:
    """A fresh model with heads, in which tokens 201, 202 ... mean the same as tokens 101, 102 ...,
    and no other two do."""
    made = fresh()
    table = made.get_input_embeddings().weight
    with torch.no_grad():
        meaning = torch.randn(100, 32, generator=torch.Generator().manual_seed(1))
        meaning = 0.6 * table.norm(dim=1).median() * meaning / meaning.norm(dim=1, keepdim=True)
        table[100:200, :32] += meaning
        table[200:300, :32] += meaning
    write_heads(made, PATIENT, seed=1)
    return made


def test_the_first_head_looks_one_token_back(model):
    ids = torch.randint(1, VOCAB, (200,), generator=torch.Generator().manual_seed(2)).tolist()
    first = looked(model, ids)[0][0]
    assert (first.diagonal(-1) > 0.9).all()


def test_two_heads_find_what_followed_the_same_token_before(model):
    ids = torch.randperm(90, generator=torch.Generator().manual_seed(4)).add(1).tolist()
    second = looked(model, [*ids, ids[40]])[1]
    found = second[:2, -1, 41]
    assert (found > 0.2).all() and (second[:2, -1].argmax(-1) == 41).all()


def test_two_heads_find_the_patient_s_words_that_mean_the_token_before_or_this_one(model):
    said, others = [104, 112, 131, 150], [170, 171, 172]
    ids = [1, 2, *(t for s in said for t in (PATIENT, s)), *others, 3, 212, 5]
    after, at = looked(model, ids)[1][2, -1], looked(model, ids[:-1])[1][3, -1]
    assert ids[int(after.argmax())] == 112 and ids[int(at.argmax())] == 112
    elsewhere = [1, 2, *said, *others, 3, 212, 5]  # not the patient's words
    assert looked(model, elsewhere)[1][2, -1, elsewhere.index(112)] < after.max() / 2


def test_embeddings_get_one_length_and_a_shared_component(model):
    table = model.get_input_embeddings().weight
    assert not table[PAD].any()
    lengths, shared = table[1:, :-1].norm(dim=1), table[1:, -1]
    assert torch.allclose(lengths, lengths[0].expand_as(lengths), rtol=1e-4)
    assert torch.allclose(shared, CONSTANT * lengths, rtol=1e-4)


def test_the_same_seed_writes_the_same_heads():
    one, same, other = fresh(), fresh(), fresh()
    for made, seed in ((one, 1), (same, 1), (other, 2)):
        write_heads(made, PATIENT, seed)
    weight = [m.model.layers[1].self_attn.v_proj.weight for m in (one, same, other)]
    assert torch.equal(weight[0], weight[1]) and not torch.equal(weight[0], weight[2])


def test_a_model_of_any_size_takes_them():
    small = fresh(16, 2)
    write_heads(small, PATIENT, seed=1)
    assert all(torch.isfinite(p).all() for p in small.parameters())
    assert torch.isfinite(small(torch.tensor([[1, 7, 5, 1]])).logits).all()


def test_one_head_is_filled_and_no_other():
    attention = fresh(16, 2).model.layers[0].self_attn
    before = {n: p.clone() for n, p in attention.named_parameters()}
    four = torch.arange(8 * 16, dtype=torch.float32).reshape(8, 16)
    with torch.no_grad():
        fill(attention, 1, four, four + 1, four[:4] + 2, four[:4] + 3)
    assert torch.equal(attention.q_proj.weight[8:], four) and torch.equal(
        attention.k_proj.weight[8:], four + 1
    )
    assert torch.equal(attention.v_proj.weight[8:12], four[:4] + 2)
    assert torch.equal(attention.o_proj.weight[:, 8:12], (four[:4] + 3).T)
    for name in ("q_proj", "k_proj", "v_proj"):
        assert torch.equal(getattr(attention, name).weight[:8], before[f"{name}.weight"][:8])
    assert torch.equal(attention.v_proj.weight[12:], before["v_proj.weight"][12:])
    assert torch.equal(attention.o_proj.weight[:, :8], before["o_proj.weight"][:, :8])


def test_directions_stand_at_right_angles_to_each_other_and_to_the_shared_component():
    import numpy as np

    found = directions(20, 64, np.random.default_rng(0))
    assert (
        torch.allclose(found @ found.T, torch.eye(20), atol=1e-5)
        and not found[:, -1].abs().gt(1e-6).any()
    )
