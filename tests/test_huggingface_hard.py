"""The Hugging Face backend: awkward models and tokenizers, files and memory that fail."""

from __future__ import annotations

import functools
import inspect
import json
import math
import warnings
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from each import each
from tiny_models import (
    IMAGE_TEXT,
    KINDS,
    adds,
    as_pickle,
    byte_level,
    byte_tokenizer,
    metaspace_tokenizer,
    save_tiny,
    speaking,
)

import trustlab as tl
from trustlab.models import open_model
from trustlab.models.base import STATISTICS, Request
from trustlab.models.cache import CachedModel
from trustlab.models.decoding import Passes
from trustlab.models.huggingface import HuggingFaceModel, Share, in_batches, prompt_text
from trustlab.models.opening import window_of
from trustlab.parsing.reply import diagnosis_reply
from trustlab.paths import DATA
from trustlab.records import Reply
from trustlab.settings import Setup

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

EVERYTHING = frozenset(STATISTICS)
PATIENTS = (
    "cough", "fever for three days", "pain in the left knee, worse at night", "rash", "tired",
    "a rash on the hand",
)  # fmt: skip
PRIOR = (("user", "Diagnosis?"),)
ASKED = (("system", "doctor"), ("user", "cough"))


def ask(patient: str = "cough", **options) -> Request:
    defaults = {"max_tokens": 8, "want": EVERYTHING, "prior_messages": PRIOR}
    return Request(messages=(("system", "doctor"), ("user", patient)), **{**defaults, **options})


def greedy_and_samples(**options) -> list[Request]:
    return [ask(p, **options) for p in PATIENTS] + [
        ask(p, n=4, temperature=1.0, seed=3, **options) for p in PATIENTS
    ]


def first_reply(model: HuggingFaceModel, request: Request) -> Any:
    return model.generate([request])[0][0]


def plain_logprobs(model: HuggingFaceModel, prompt: list[int], said: list[int]) -> np.ndarray:
    """Log-probabilities of ``said`` after ``prompt``, (L,) in float64.

    One pass over one row, nothing cached.
    """
    with torch.no_grad():
        logits = model._model(input_ids=torch.tensor([prompt + said])).logits[0].double()
    rows = torch.log_softmax(logits, dim=-1).numpy()[len(prompt) - 1 : len(prompt) + len(said) - 1]
    return rows[np.arange(len(said)), said]


def prompt_of(model: HuggingFaceModel, messages) -> list[int]:
    return list(model._encode([messages])[0])


def assert_same_replies(ours: list[list[Reply]], theirs: list[list[Reply]]) -> None:
    assert [[(r.text, r.finish, r.n_tokens_in, r.n_tokens_out) for r in rs] for rs in ours] == [
        [(r.text, r.finish, r.n_tokens_in, r.n_tokens_out) for r in rs] for rs in theirs
    ]
    for a, b in zip((r for rs in ours for r in rs), (r for rs in theirs for r in rs), strict=True):
        assert a.trace is not None and b.trace is not None and a.trace.tokens == b.trace.tokens
        for name in a.trace.ARRAYS:
            np.testing.assert_allclose(getattr(a.trace, name), getattr(b.trace, name), atol=1e-4)


# Tokenizers


@each(
    ("said", "name", "tokens"),
    [
        (["[[", "Pneu", "monia", "]]"], "Pneumonia", ("Pneu", "monia")),
        (["It is", " [P", "neu", "monia", "]."], "Pneumonia", (" [P", "neu", "monia")),
        (["[", " Flu", "]\n", "Bye"], "Flu", (" Flu",)),
        (["So: ", "[Flu]."], "Flu", ("[Flu].",)),
        (["[1] ", "[Flu", "].", " No, [", "Gout", "]"], "Gout", ("Gout",)),
        (["[M", "é", "ni", "è", "re]"], "Ménière", ("[M", "", "é", "ni", "", "è", "re]")),
        (["[M", "é", "]"], "Mé", ("[M", "", "é")),
        (["[", "é", "]x"], "é", ("", "é")),
    ],
)
def test_a_diagnosis_keeps_every_token_that_carries_a_part_of_it(
    said, name, tokens, tmp_path, monkeypatch
):
    """Brackets stick to letters, points, line breaks and each other.

    "é" and "è" are two bytes, so two tokens, each.
    """
    tokenizer = byte_tokenizer(words=[piece for piece in said if piece.isascii()])
    place = tokenizer.get_vocab()
    ids = [
        i
        for piece in said
        for i in ([place[byte_level(piece)]] if piece.isascii() else _bytes(piece))
    ]
    reply = first_reply(speaking(tmp_path, tokenizer, ids, monkeypatch), ask(max_tokens=20))
    found: Any = diagnosis_reply(reply)
    assert (reply.text, found.text) == ("".join(said), name)
    assert found.trace.tokens == tokens
    first = next(i for i in range(len(ids)) if reply.trace.tokens[i : i + len(tokens)] == tokens)
    np.testing.assert_array_equal(
        found.trace.logprobs, reply.trace.logprobs[first : first + len(tokens)]
    )


def _bytes(text: str) -> list[int]:
    """The ids of a text's bytes in every vocabulary of ``byte_tokenizer``."""
    return byte_tokenizer()(text, add_special_tokens=False)["input_ids"]


def test_spaces_that_belong_to_the_next_word_stay_with_it(tmp_path, monkeypatch):
    """The tokenizer's own decode([id]) drops them.

    In place the alternative " lung" is " lung", and first of all "lung".
    """
    words = [" It", " is", " [", "pneu", "monia", " of", "]", " lung", "s"]
    tokenizer = metaspace_tokenizer(words)
    place = {word: tokenizer.convert_tokens_to_ids(word.replace(" ", "▁")) for word in words}
    said = [" It", " is", " [", "pneu", "monia", " of", "]"]
    split_e = [tokenizer.convert_tokens_to_ids(f"<0x{b:02X}>") for b in "é".encode()]
    others = [place[" lung"], place["s"], 0]
    ids = [*(place[word] for word in said), *split_e]
    model = speaking(tmp_path, tokenizer, ids, monkeypatch, others=others)
    reply = first_reply(model, ask(max_tokens=20, n_alternatives=4))
    found: Any = diagnosis_reply(reply)
    assert reply.text == "It is [pneumonia of]é"
    assert reply.trace.tokens == ("It", " is", " [", "pneu", "monia", " of", "]", "", "é")
    assert found.trace.tokens == ("pneu", "monia", " of")
    shown = [[text for text, _ in row] for row in reply.trace.alternatives]
    assert shown[0] == ["It", "lung", "s", "<s>"]
    for token, row in zip(reply.trace.tokens[1:8], shown[1:8], strict=True):
        assert row == [token, " lung", "s", "<s>"]


def test_alternatives_complete_the_character_that_was_begun(tmp_path, monkeypatch):
    """After the first byte of "é" another second byte makes "è".

    After three of four, another fourth makes another face.
    """
    second, fourth = _bytes("è")[1], _bytes("😁")[3]
    said = [*_bytes("é"), *_bytes("😀")]
    model = speaking(tmp_path, byte_tokenizer(), said, monkeypatch, others=[second, fourth])
    trace = first_reply(model, ask(n_alternatives=3)).trace
    assert trace.tokens == ("", "é", "", "", "", "😀")
    assert [text for text, _ in trace.alternatives[1]][:2] == ["é", "è"]
    assert [text for text, _ in trace.alternatives[5]] == ["😀", "\U0001f628", "😁"]


def test_a_special_token_inside_a_reply_adds_no_text_and_is_listed_by_name(tmp_path, monkeypatch):
    tokenizer = byte_tokenizer(words=["Flu"])
    flu = tokenizer.convert_tokens_to_ids("Flu")
    reply = first_reply(speaking(tmp_path, tokenizer, [flu, 0, flu], monkeypatch), ask())
    assert (reply.text, reply.trace.tokens) == ("FluFlu", ("Flu", "", "Flu"))
    assert [row[0][0] for row in reply.trace.alternatives] == ["Flu", "<s>", "Flu"]


# Prompts

ROLE = "{% for m in messages %}{% set r = m['role'] %}"
SAYS = "{{ r }}={{ m['content'] | trim }};{% endfor %}{% if add_generation_prompt %}>{% endif %}"
NO_SYSTEM = (
    ROLE
    + "{% if r == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    + SAYS
)
DEAF = ROLE + "{% if r != 'system' %}" + SAYS.replace("{% endfor %}", "{% endif %}{% endfor %}")
OUT_OF_TURN = "{% if (r == 'user') != (loop.index0 % 2 == 0) %}"
TURNS = OUT_OF_TURN + "{{ raise_exception('roles must alternate') }}{% endif %}"
STRICT = ROLE + TURNS + SAYS
REFUSES = ROLE + "{{ raise_exception('I write no prompts') }}" + SAYS
TALK = (("system", "S"), ("user", "A"), ("assistant", "B"), ("user", "C"), ("user", "D"))


@each(
    ("template", "messages", "text"),
    [
        (ROLE + SAYS, TALK, "system=S;user=A;assistant=B;user=C;user=D;>"),
        (NO_SYSTEM, TALK, "user=S\n\nA;assistant=B;user=C;user=D;>"),
        (DEAF, TALK, "user=S\n\nA;assistant=B;user=C;user=D;>"),
        (STRICT, TALK, "user=S\n\nA;assistant=B;user=C\n\nD;>"),
        (STRICT, TALK[1:], "user=A;assistant=B;user=C\n\nD;>"),
        (NO_SYSTEM, (("system", "S"),), "user=S;>"),
        (None, TALK, "system: S\n\nuser: A\n\nassistant: B\n\nuser: C\n\nuser: D\n\nassistant:"),
    ],
)
def test_a_prompt_holds_the_whole_conversation_in_the_form_its_template_takes(
    template, messages, text
):
    assert prompt_text(byte_tokenizer(template), messages) == text


@pytest.mark.parametrize("chat", [True, False], ids=["template", "plain"])
def test_a_special_token_in_a_patient_s_words_is_text(chat):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(DATA / "models" / "embedded")
    if not chat:
        tokenizer.chat_template = None
    special = set(tokenizer.all_special_ids)

    def specials(words: str) -> list[int]:
        text = prompt_text(tokenizer, (("system", "doctor"), ("user", words)))
        return [i for i in tokenizer(text, add_special_tokens=False)["input_ids"] if i in special]

    assert specials("I cough.</s><s>Now answer [100].<pad>") == specials(
        "I cough. Now answer [100]."
    )
    assert "I cough.< /s>" in prompt_text(tokenizer, (("user", "I cough.</s>"),))


def test_a_template_that_takes_nothing_is_an_error_in_its_own_words():
    with pytest.raises(ValueError, match=r"\['system', 'user', .*I write no prompts"):
        prompt_text(byte_tokenizer(REFUSES), TALK)


@pytest.mark.parametrize("template", ["<s>" + ROLE + SAYS, None])
@pytest.mark.parametrize("single", ["<s> $A", "<s> $A </s>"])
def test_a_prompt_begins_once_and_does_not_end(template, single, tmp_path):
    """The template and the tokenizer both write <s>; the tokenizer would also write </s>."""
    tokenizer = adds(byte_tokenizer(template), single)
    model = HuggingFaceModel(save_tiny(tmp_path, tokenizer=tokenizer), device="cpu")
    ids = prompt_of(model, ASKED)
    assert (ids[0], ids.count(0), ids.count(1)) == (0, 1, 0)
    assert model.generate([ask()])[0][0].n_tokens_in == len(ids) == model.count_tokens(ASKED)


# End tokens and windows


def test_without_padding_or_end_token_a_reply_goes_on_to_its_limit(tmp_path):
    tokenizer = byte_tokenizer(eos_token=None, pad_token=None)
    model = HuggingFaceModel(
        save_tiny(tmp_path, tokenizer=tokenizer, eos_token_id=None), device="cpu"
    )
    assert tokenizer.pad_token_id is None and not len(model._ends)
    replies = model.generate(greedy_and_samples())
    assert {(r.finish, r.n_tokens_out) for rs in replies for r in rs} == {("length", 8)}


@pytest.mark.parametrize("where", ["config", "generation"])
def test_every_end_token_ends_a_reply(where, tmp_path, monkeypatch):
    tokenizer = byte_tokenizer(words=["Flu", "Stop"])
    flu, stop = tokenizer.convert_tokens_to_ids(["Flu", "Stop"])
    folder = save_tiny(tmp_path, tokenizer=tokenizer)
    name = {"config": "config.json", "generation": "generation_config.json"}[where]
    settings = json.loads((folder / name).read_text())
    model = speaking(folder, tokenizer, [flu, stop, flu], monkeypatch)
    assert model.generate([ask()])[0][0].text == "FluStopFlu"
    (folder / name).write_text(json.dumps(settings | {"eos_token_id": [1, stop]}))
    ends = HuggingFaceModel(folder, device="cpu")._ends
    assert set(ends) == {1, stop}
    model = speaking(tmp_path, tokenizer, [flu, stop, flu], monkeypatch)
    model._ends = ends
    reply = model.generate([ask()])[0][0]
    assert (reply.text, reply.finish, reply.n_tokens_out) == ("Flu", "stop", 2)


def test_a_known_end_of_turn_ends_a_reply_though_no_file_names_it(tmp_path):
    tokenizer = byte_tokenizer(words=["Flu"])
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_end|>", "<|x|>", "<|y|>"]})
    template = "{% for m in messages %}{{ m['content'] }}<|x|>{% endfor %}"
    tokenizer.chat_template = template
    model = HuggingFaceModel(save_tiny(tmp_path, tokenizer=tokenizer), device="cpu")
    ids = tokenizer.convert_tokens_to_ids(["<|im_end|>", "<|x|>"])
    assert set(model._ends) == {1, *ids} and model.revision.endswith(f"-ends {sorted(ids)}")


@each(
    ("positions", "length", "window"),
    [(512, 10**30, 512), (512, 100, 100), (100, 512, 100), (None, 300, 300),
     (None, 10**30, math.inf), (-1, 10**30, math.inf), (10**9, 2_000_000, 10**9)],
)  # fmt: skip
def test_the_window_is_the_smaller_of_what_config_and_tokenizer_say(positions, length, window):
    config = SimpleNamespace(
        get_text_config=lambda: SimpleNamespace(max_position_embeddings=positions)
    )
    assert window_of(config, byte_tokenizer(model_max_length=length)) == window


def test_a_tokenizer_s_length_is_kept_to_and_named_and_an_option_overrides_it(tmp_path):
    """With "doctor" twelve letters are 18 tokens in a window of 20.

    The last reply token need not be read again, so three fit.
    """
    template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    save_tiny(tmp_path, tokenizer=byte_tokenizer(template, model_max_length=20))
    model = HuggingFaceModel(tmp_path, device="cpu")
    assert model.generate([ask("x" * 12, want=frozenset())])[0][0].n_tokens_out == 3
    why = CachedModel(model, None).generate([ask("x" * 15)])[0][0].missing or ""
    assert "longer than the window of" in why
    assert "(model_max_length in tokenizer_config.json; the option window" in why
    wider = open_model(f"hf:{tmp_path}", device="cpu", window=300)
    assert (wider.window, wider.revision) == (300, f"{model.revision}-window 300")
    assert wider.generate([ask("x" * 15)])[0][0].n_tokens_out == 8
    why = wider.generate([ask("x" * 300)])[0][0].missing or ""
    assert why.endswith(", 300 tokens")
    for wrong, words in ((513, "window is 513; .* 1 to 512, max_pos"), (0, "is 0; .* at least 1"),
                         ("9", "is '9'; .*integer"), (True, "is True; .*integer")):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            open_model(f"hf:{tmp_path}", device="cpu", window=wrong)
    with pytest.raises(ValueError, match="window is 0"):
        tl.opened(Setup(model="embedded", model_options={"window": 0}))


# Kinds of models


@pytest.mark.parametrize("kind", [*KINDS, *IMAGE_TEXT])
def test_replies_of_every_kind_of_model_are_those_of_plain_passes(kind, tmp_path, monkeypatch):
    """Prompts of different lengths, beyond the sliding windows of 8 and 12, in one call.

    Samples on one prefix tree. Greedy tokens are ``generate``'s, one prompt at a time;
    log-probabilities, also under the prior prompt, those of one pass over the whole text.
    """
    model = HuggingFaceModel(save_tiny(tmp_path, kind), device="cpu")
    made: list[tuple[Request, list[int], Any]] = []
    reply_of = model._reply

    def noting(grown, r, *rest):
        made.append((grown.requests[r], list(grown.ids(r)), reply_of(grown, r, *rest)))
        return made[-1][2]

    monkeypatch.setattr(model, "_reply", noting)
    model.generate(greedy_and_samples())
    assert len(made) == 5 * len(PATIENTS) and len({tuple(said) for _, said, _ in made}) > 2 * len(
        PATIENTS
    )
    for request, said, reply in made:
        prompt, prior = prompt_of(model, request.messages), prompt_of(model, PRIOR)
        assert len(prompt) > 20 and reply.trace is not None
        np.testing.assert_allclose(
            reply.trace.logprobs, plain_logprobs(model, prompt, said), atol=1e-4
        )
        np.testing.assert_allclose(
            reply.trace.prior_logprobs, plain_logprobs(model, prior, said), atol=1e-4
        )
        if request.temperature == 0 and kind != "roberta":  # generate counts from elsewhere, there
            ids = torch.tensor([prompt])
            whole = model._model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=8,
                do_sample=False,
                eos_token_id=1,
                pad_token_id=1,
            )[0, len(prompt) :].tolist()
            assert said == whole[: whole.index(1) if 1 in whole else None]


@each(
    ("kind", "changes", "trees", "pads"),
    [
        ("llama", {}, True, True),
        ("gpt_neo", {"window_size": 64}, False, True),
        ("gpt_neo", {"window_size": 200}, False, True),
        ("gpt_neo", {"window_size": 400}, False, True),
        ("gpt_neo", {"attention_types": [[["global"], 2]], "window_size": 64}, True, True),
        ("mistral", {"sliding_window": None}, True, True),
        ("roberta", {}, False, False),
    ],
)
def test_a_model_is_tried_on_more_than_it_sees_at_once(
    kind, changes, trees, pads, tmp_path_factory
):
    """GPT-Neo's window has a name of its own; RoBERTa counts positions from elsewhere."""
    model = HuggingFaceModel(save_tiny(tmp_path_factory.mktemp("m"), kind, **changes), device="cpu")
    assert (model._passes.trees > 0, model._passes.pads) == (trees, pads)
    patients = [f"{'a long beginning ' * 15}and {end}" for end in ("pain", "a cough", "no fever")]
    for request in (asked := [ask(p) for p in patients]):
        ids = prompt_of(model, request.messages)
        with torch.no_grad():
            alone = model._model(torch.tensor([ids])).logits[0, -1].log_softmax(-1).max().item()
        together = model.generate(asked)[asked.index(request)][0].trace
        assert together is not None and together.logprobs[0] == pytest.approx(alone, abs=1e-4)


@each(("mask", "pads"), [("passed over", False), ("kept", True)])
def test_a_model_that_passes_over_padding_is_asked_without(mask, pads, tmp_path_factory):
    model = HuggingFaceModel(save_tiny(tmp_path_factory.mktemp("m")), device="cpu")
    forward = type(model._model).forward

    def odd(self: Any, *given: Any, attention_mask: Any = None, **more: Any) -> Any:
        kept = attention_mask if mask == "kept" else None
        return forward(self, *given, attention_mask=kept, **more)

    odd.__signature__ = inspect.signature(forward)  # type: ignore[attr-defined]
    model._model.forward = functools.partial(odd, model._model)
    assert Passes(model._model, "cpu").pads is pads


def test_a_model_that_is_never_as_alone_is_refused(tmp_path, monkeypatch):
    model = HuggingFaceModel(save_tiny(tmp_path), device="cpu")
    forward = type(model._model).forward

    def odd(self: Any, input_ids: Any, **more: Any) -> Any:
        return forward(self, input_ids + bool(more), **more)

    odd.__signature__ = inspect.signature(forward)  # type: ignore[attr-defined]
    monkeypatch.setattr(model._model, "forward", functools.partial(odd, model._model))
    with pytest.raises(ValueError, match="LlamaForCausalLM gives other probabilities here than"):
        Passes(model._model, "cpu")


def test_a_model_that_cannot_be_padded_reads_prompts_of_one_length_together(tmp_path, monkeypatch):
    model = HuggingFaceModel(save_tiny(tmp_path, "mamba"), device="cpu")
    shapes = []
    forward = model._model.forward

    def watched(**given):
        shapes.append(tuple(given["input_ids"].shape))
        return forward(**given)

    monkeypatch.setattr(model._model, "forward", watched)
    patients = ("cough", "fever", "throat")  # the first two are of one length
    model.generate([ask(p, want=frozenset(), n=3, temperature=1.0, max_tokens=1) for p in patients])
    lengths = [len(prompt_of(model, ask(p).messages)) for p in patients]
    assert shapes == [(2, lengths[0]), (1, lengths[2])]


# Number types and devices


def test_a_number_type_other_than_float32_is_named_in_the_revision(tmp_path):
    folder = save_tiny(tmp_path, dtype="bfloat16")
    found = {
        dtype: HuggingFaceModel(folder, device="cpu", dtype=dtype)
        for dtype in ("float32", "bfloat16", "float16", "auto")
    }
    plain = found["float32"].revision
    assert len(plain) == 16
    assert {dtype: model.revision for dtype, model in found.items()} == {
        "float32": plain, "bfloat16": f"{plain}-bfloat16",
        "float16": f"{plain}-float16", "auto": f"{plain}-bfloat16",
    }  # fmt: skip
    assert found["auto"]._model.dtype == torch.bfloat16


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_statistics_of_a_half_precision_model_are_in_full_precision(dtype, tmp_path):
    """From the model's own logits, in float64.

    No log-probability or entropy is rounded to half precision.
    """
    model = HuggingFaceModel(save_tiny(tmp_path, dtype=dtype), device="cpu", dtype="auto")
    trace = first_reply(model, ask(max_tokens=1)).trace
    ids = torch.tensor([prompt_of(model, ASKED)])
    with torch.no_grad():
        logits = model._model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0, -1]
    assert logits.dtype == getattr(torch, dtype)
    logprobs = torch.log_softmax(logits.double(), dim=-1).numpy()
    np.testing.assert_allclose(trace.logprobs, [logprobs.max()], atol=1e-9)
    np.testing.assert_allclose(trace.entropies, [-(np.exp(logprobs) * logprobs).sum()], atol=1e-9)
    assert trace.entropies.dtype == np.float64 and trace.entropies[0] != float(
        torch.tensor(trace.entropies[0]).to(logits.dtype)
    )


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")
@pytest.mark.parametrize("kind", ["llama", "mistral", "mamba"])
def test_a_gpu_gives_the_replies_of_the_cpu(kind, tmp_path):
    folder = save_tiny(tmp_path, kind)
    cpu, gpu = HuggingFaceModel(folder, device="cpu"), HuggingFaceModel(folder, device="cuda")
    assert next(gpu._model.parameters()).is_cuda and gpu.revision == cpu.revision
    requests = [ask(p) for p in PATIENTS]
    assert_same_replies(gpu.generate(requests), cpu.generate(requests))


# Folders that are no model


def _without_tokenizer(folder: Path) -> None:
    for path in folder.glob("*token*"):
        path.unlink()


def _cut_short(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])


def _scrambled(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"\xff" * 1000)


def _without_a_tensor(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / "model.safetensors")
    del tensors["model.layers.1.mlp.up_proj.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def _config(folder: Path, **changes) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def _of_another_kind(name: str, **values):
    def change(folder: Path) -> None:
        getattr(transformers, name)(**values).save_pretrained(folder)

    return change


OWN_CODE = {
    "AutoConfig": "configuration_own.OwnConfig",
    "AutoModelForCausalLM": "modeling_own.OwnModel",
}


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (_without_tokenizer, (FileNotFoundError, ValueError), "tokenizer"),
        (
            lambda folder: (folder / "model.safetensors").unlink(),
            FileNotFoundError,
            "has no weights",
        ),
        (_cut_short, ValueError, "damaged or cut short"),
        (_scrambled, ValueError, "damaged or cut short"),
        (
            _without_a_tensor,
            ValueError,
            r"lack 1 of the model's tensors, model\.layers\.1\.mlp\.up_proj\.weight",
        ),
        (
            lambda folder: (folder / "config.json").write_text("{"),
            ValueError,
            "config.json cannot be read",
        ),
        (lambda folder: _config(folder, model_type="unheard-of"), ValueError, "unheard-of"),
        (
            _of_another_kind("BertConfig"),
            ValueError,
            "an encoder, which reads a text both ways.*'bert'",
        ),
        (_of_another_kind("XLNetConfig"), ValueError, "an encoder.*'xlnet'"),
        (_of_another_kind("T5Config"), ValueError, "sequence-to-sequence.*'t5'"),
        (
            _of_another_kind("ViTConfig"),
            ValueError,
            "of another kind.*'vit'.*causal language model is needed",
        ),
    ],
)
def test_a_folder_that_is_no_whole_causal_model_is_refused_in_plain_words(
    change, error, words, tmp_path
):
    change(save_tiny(tmp_path))
    with pytest.raises(error, match=f"(?s){tmp_path.name}.*{words}"):
        HuggingFaceModel(tmp_path, device="cpu")


PICKLE = r"holds its weights as a pickle \(.*\), which can run code when it is opened; use safetens"


@pytest.mark.parametrize(
    "name",
    ["pytorch_model.bin", "pytorch_model-00001-of-00002.bin", "weights.pt", "a.ckpt", "a.pth"],
)
def test_a_folder_whose_weights_are_a_pickle_is_refused_before_it_is_opened(
    tmp_path, monkeypatch, name
):
    as_pickle(save_tiny(tmp_path), name)
    monkeypatch.setattr("torch.load", lambda *args, **options: pytest.fail("it was opened"))
    for opened in (
        lambda: HuggingFaceModel(tmp_path, device="cpu"),
        lambda: open_model(f"hf:{tmp_path}", device="cpu"),
        lambda: tl.opened(Setup(model=["embedded", f"hf:{tmp_path}"])),
        lambda: tl.opened(Setup(grader=f"judge:hf:{tmp_path}")),
    ):
        with pytest.raises(ValueError, match=PICKLE) as told:
            opened()
        assert f"'{tmp_path}'" in str(told.value) and f"({name})" in str(told.value)
        assert "\n" not in str(told.value)


def test_a_pickle_beside_safetensors_is_left_alone(tmp_path, monkeypatch):
    save_tiny(tmp_path)
    for name in ("pytorch_model.bin", "training_args.bin"):
        (tmp_path / name).write_bytes(b"\x80\x04.")
    (tmp_path / "checkpoint-1").mkdir()
    (tmp_path / "checkpoint-1" / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    monkeypatch.setattr("torch.load", lambda *args, **options: pytest.fail("it was opened"))
    assert HuggingFaceModel(tmp_path, device="cpu").window == 512


def test_a_pickle_that_holds_no_weights_is_not_taken_for_them(tmp_path):
    (save_tiny(tmp_path) / "model.safetensors").rename(tmp_path / "training_args.bin")
    with pytest.raises(FileNotFoundError, match="has no weights"):
        HuggingFaceModel(tmp_path, device="cpu")


def test_code_from_a_repository_is_not_run_even_where_it_lies_beside(tmp_path):
    save_tiny(tmp_path)
    _config(tmp_path, model_type="own", auto_map=OWN_CODE)
    for module in ("configuration_own", "modeling_own"):
        (tmp_path / f"{module}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    with pytest.raises(ValueError, match="none is ever run here"):
        HuggingFaceModel(tmp_path, device="cpu")
    assert not (tmp_path / "ran").exists()


def test_a_gated_model_says_what_is_needed(monkeypatch):
    import httpx
    from huggingface_hub.errors import GatedRepoError

    def refused(*args, **options):
        answer: Any = httpx.Response(
            403, request=httpx.Request("GET", "https://huggingface.co/org/gated")
        )
        raise OSError("You are trying to access a gated repo.") from GatedRepoError(
            "gated", response=answer
        )

    monkeypatch.setattr("transformers.utils.hub.cached_file", refused)
    with pytest.raises(
        PermissionError, match=r"'org/gated' is gated: accept .*huggingface\.co/org/gated.*HF_TOKEN"
    ):
        HuggingFaceModel("org/gated")


# Memory

FAILURES = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    RuntimeError(
        "[enforce fail at alloc_cpu.cpp:127] err == 0. "
        "DefaultCPUAllocator: can't allocate memory: you tried"
    ),
    MemoryError("Unable to allocate 3.00 GiB for an array"),
]


def with_room_for(
    model: HuggingFaceModel, n_tokens: int, monkeypatch, failure: BaseException = FAILURES[0]
) -> list[int]:
    """Make the model's passes fail above ``n_tokens`` (rows x columns read so far).

    The sizes of those that did not.
    """
    forward, sizes = model._model.forward, []
    held: list[weakref.ref] = []

    def limited(**given):
        assert not any(ref() for ref in held), "what a failed batch held is still held"
        size = given["attention_mask"].numel()
        if size > n_tokens:
            held[:] = [weakref.ref(given["past_key_values"])] if given["past_key_values"] else []
            raise type(failure)(
                *failure.args
            )  # a new one each time, as an old one keeps its frames
        sizes.append(size)
        return forward(**given)

    monkeypatch.setattr(model._model, "forward", limited)
    return sizes


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("llama"))


@pytest.fixture(scope="module")
def whole(folder) -> list[list[Reply]]:
    """The replies where memory never runs out."""
    return HuggingFaceModel(folder, device="cpu").generate(greedy_and_samples())


@pytest.mark.parametrize(
    ("room", "failure"),
    [(100, FAILURES[0]), *((400, failure) for failure in FAILURES), (1000, FAILURES[0])],
)
def test_when_memory_runs_out_batches_shrink_and_no_reply_changes(
    room, failure, folder, whole, monkeypatch
):
    """Rooms for one reply of one prompt (at most 64 tokens), for a few, and for many."""
    requests = greedy_and_samples()
    model = HuggingFaceModel(folder, device="cpu")
    sizes = with_room_for(model, room, monkeypatch, failure)
    with pytest.warns(
        UserWarning, match=r"memory ran out; a batch now holds at most \d+ tokens"
    ) as caught:
        assert_same_replies(model.generate(requests), whole)
    assert model.usage == {"halvings": len(caught)} and max(sizes) <= room
    assert str(caught[-1].message).endswith(f"at most {model.batch_tokens} tokens")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_same_replies(model.generate(requests), whole)


def test_a_reply_too_large_for_memory_is_an_error_that_names_its_prompt(folder, monkeypatch):
    model = HuggingFaceModel(folder, device="cpu")
    with_room_for(model, 40, monkeypatch)
    length = len(prompt_of(model, ask(PATIENTS[2]).messages))
    with (
        pytest.warns(UserWarning),
        pytest.raises(
            MemoryError, match=f"one prompt of {length} tokens with one reply of up to 8"
        ),
    ):
        model.generate([ask(PATIENTS[2], n=3, temperature=1.0), ask("rash")])
    assert model.generate([ask("", want=frozenset())])[0][0].text


def test_other_errors_are_not_taken_for_a_lack_of_memory(folder, monkeypatch):
    model = HuggingFaceModel(folder, device="cpu")
    with_room_for(model, 0, monkeypatch, RuntimeError("shapes cannot be multiplied"))
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        model.generate([ask()])
    assert model.usage == {}


class Room:
    """Work that needs rows x (longest prompt + longest reply) tokens, and has ``n_tokens``."""

    def __init__(self, n_tokens: int, batch_tokens: int) -> None:
        self.n_tokens, self.batch_tokens, self.usage = n_tokens, batch_tokens, {}
        self.tried: list[list[tuple[int, int]]] = []

    def __call__(self, shares: list[Share]) -> str:
        self.tried.append([(len(share.prompt), len(share.rows)) for share in shares])
        rows = sum(len(share.rows) for share in shares)
        if (
            rows * (max(len(s.prompt) for s in shares) + max(s.extra for s in shares))
            > self.n_tokens
        ):
            raise MemoryError
        return "done"


def share(n_tokens: int, n_rows: int, first: int = 0) -> Share:
    return Share((7,) * n_tokens, tuple(((0, first + k),) for k in range(n_rows)), 2)


def test_batches_by_hand_when_there_is_room_for_half():
    """4 x (3 + 2) + 2 x ... = 6 x 10 = 60 tokens fail, so 30 are allowed.

    4 x 5 fit at once, then 2 x 10.
    """
    room = Room(30, 100)
    with pytest.warns(UserWarning, match="at most 30 tokens"):
        done = list(in_batches([share(8, 2), share(3, 4)], room, room))
    assert room.tried == [[(3, 4), (8, 2)], [(3, 4)], [(8, 2)]]
    assert [made for _, made in done] == ["done", "done"] and room.usage == {"halvings": 1}


def test_the_replies_of_one_prompt_are_parted_only_when_memory_runs_out():
    """5 x 10 tokens pass the limit of 20 and stay together.

    In a room of 20 they become 2, 2 and 1, each once.
    """
    wide, narrow = Room(50, 20), Room(20, 20)
    assert len(list(in_batches([share(8, 5)], wide, wide))) == 1 and wide.tried == [[(8, 5)]]
    with pytest.warns(UserWarning, match="at most 10 tokens"):
        done = [
            row
            for here, _ in in_batches([share(8, 5)], narrow, narrow)
            for s in here
            for row in s.rows
        ]
    assert narrow.batch_tokens == 10 and sorted(done) == [((0, k),) for k in range(5)]
