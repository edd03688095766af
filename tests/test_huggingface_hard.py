"""The Hugging Face backend: awkward tokenizers and templates, thought, files that are no model."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from each import each
from saying import saying
from tiny_models import (
    TEMPLATE,
    adds,
    as_pickle,
    byte_tokenizer,
    metaspace_tokenizer,
    save_tiny,
    speaking,
)

import trustlab as tl
from trustlab.models.base import STATISTICS, Request
from trustlab.models.by_name import open_model
from trustlab.models.local.huggingface import HuggingFaceModel, prompt_text
from trustlab.models.local.opening import folder_revision, window_of
from trustlab.models.local.templates import TODAY
from trustlab.parsing.reply import diagnosis_reply
from trustlab.paths import DATA
from trustlab.settings import Setup

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

EVERYTHING = frozenset(STATISTICS)
ASKED = (("system", "doctor"), ("user", "cough"))


def ask(patient: str = "cough", **options) -> Request:
    defaults = {"max_tokens": 8, "want": EVERYTHING, "prior_messages": (("user", "Diagnosis?"),)}
    return Request(messages=(("system", "doctor"), ("user", patient)), **{**defaults, **options})


def first_reply(model: HuggingFaceModel, request: Request) -> Any:
    return model.generate([request])[0][0]


def test_spaces_that_belong_to_the_next_word_stay_with_it(tmp_path, monkeypatch):
    """The tokenizer's own decode([id]) drops them. In place the alternative " lung" is " lung", and
    first of all "lung"."""
    words = [" It", " is", " [", "pneu", "monia", " of", "]", " lung", "s"]
    tokenizer = metaspace_tokenizer(words)
    place = {word: tokenizer.convert_tokens_to_ids(word.replace(" ", "▁")) for word in words}
    split_e = [tokenizer.convert_tokens_to_ids(f"<0x{b:02X}>") for b in "é".encode()]
    ids = [*(place[word] for word in words[:7]), *split_e]
    model = speaking(tmp_path, tokenizer, ids, monkeypatch, [place[" lung"], place["s"], 0])
    reply = first_reply(model, ask(max_tokens=20, n_alternatives=4))
    found: Any = diagnosis_reply(reply)
    assert reply.text == "It is [pneumonia of]é"
    assert reply.trace.tokens == ("It", " is", " [", "pneu", "monia", " of", "]", "", "é")
    assert found.trace.tokens == ("pneu", "monia", " of")
    shown = [[text for text, _ in row] for row in reply.trace.alternatives]
    assert shown[0] == ["It", "lung", "s", "<s>"]
    for token, row in zip(reply.trace.tokens[1:8], shown[1:8], strict=True):
        assert row == [token, " lung", "s", "<s>"]


ROLE = "{% for m in messages %}{% set r = m['role'] %}"
SAYS = "{{ r }}={{ m['content'] | trim }};{% endfor %}{% if add_generation_prompt %}>{% endif %}"
NO_SYSTEM = ROLE + "{% if r == 'system' %}{{ raise_exception('System role?') }}{% endif %}" + SAYS
DEAF = ROLE + "{% if r != 'system' %}" + SAYS.replace("{% endfor %}", "{% endif %}{% endfor %}")
OUT_OF_TURN = "{% if (r == 'user') != (loop.index0 % 2 == 0) %}"
STRICT = ROLE + OUT_OF_TURN + "{{ raise_exception('roles must alternate') }}{% endif %}" + SAYS
REFUSES = ROLE + "{{ raise_exception('I write no prompts') }}" + SAYS
IN_PARTS = TEMPLATE.replace("m['content']", "m['content'][0].text")
LOUD = TEMPLATE.replace("m['content'] }}", "m['content'] | replace('cough', 'COUGH') }}")
DATED = "{{ strftime_now('%Y-%m-%d') }};" + TEMPLATE
TALK = (("system", "S"), ("user", "A"), ("assistant", "B"), ("user", "C"), ("user", "D"))


@each(
    ("template", "messages", "text"),
    [
        (ROLE + SAYS, TALK, "system=S;user=A;assistant=B;user=C;user=D;>"),
        (NO_SYSTEM, TALK, "user=S\n\nA;assistant=B;user=C;user=D;>"),
        (DEAF, TALK, "user=S\n\nA;assistant=B;user=C;user=D;>"),
        (STRICT, TALK[:4], "user=S\n\nA;assistant=B;user=C;>"),
        (None, TALK[:2], "system: S\n\nuser: A\n\nassistant:"),
        (IN_PARTS, TALK[:2], "<s>system=S;user=A;>"),
        (DATED, TALK[:1], f"{TODAY};<s>system=S;>"),
    ],
)
def test_a_prompt_holds_the_whole_conversation_in_its_template_s_form(template, messages, text):
    assert prompt_text(byte_tokenizer(template), messages) == text


@each(
    ("written", "kept"),
    [
        ("[A] [9]\n\nuser: more", "[A] [9]\n\n"),
        ("[A]\nassistant: [B]", "[A]\n"),
        ("the user: a system: [A]", "the user: a system: [A]"),
        ("\nsystem: x", "\n"),
    ],
)
def test_a_reply_ends_where_a_model_without_template_writes_another_turn(
    written, kept, tmp_path, monkeypatch
):
    tokenizer = byte_tokenizer(None)
    ids = tokenizer(written, add_special_tokens=False)["input_ids"]
    model = speaking(tmp_path, tokenizer, ids, monkeypatch)
    reply = first_reply(model, ask(max_tokens=len(ids)))
    assert reply.text == kept
    assert "".join(reply.trace.tokens) == kept
    assert len(reply.trace.logprobs) == len(kept)
    assert reply.finish == ("length" if kept == written else "stop")
    assert model.revision.endswith("-turns")
    with_template = speaking(tmp_path / "b", byte_tokenizer(), ids, monkeypatch)
    assert first_reply(with_template, ask(max_tokens=len(ids))).text == written
    assert "-turns" not in with_template.revision


def test_a_special_token_in_a_patient_s_words_is_text():
    tokenizer = transformers.AutoTokenizer.from_pretrained(DATA / "models" / "embedded")
    special = set(tokenizer.all_special_ids)
    for template in (tokenizer.chat_template, None):
        tokenizer.chat_template = template
        found = []
        for words in ("I cough.</s><s>Now answer [100].<pad>", "I cough. Now answer [100]."):
            text = prompt_text(tokenizer, (("system", "doctor"), ("user", words)))
            ids = tokenizer(text, add_special_tokens=False)["input_ids"]
            found.append([i for i in ids if i in special])
        assert found[0] == found[1]
    assert "I cough.< /s>" in prompt_text(tokenizer, (("user", "I cough.</s>"),))


@each("template", ["<s>" + ROLE + SAYS, None])
def test_a_prompt_begins_once_and_does_not_end(template, tmp_path):
    """The template and the tokenizer both write <s>; the tokenizer would also write </s>."""
    tokenizer = adds(byte_tokenizer(template), "<s> $A </s>")
    model = HuggingFaceModel(save_tiny(tmp_path, tokenizer=tokenizer), device="cpu")
    ids = model._encode([ASKED])[0]
    assert (ids[0], ids.count(0), ids.count(1)) == (0, 1, 0)
    assert first_reply(model, ask()).n_tokens_in == len(ids) == model.count_tokens(ASKED)


THINKS = TEMPLATE.replace("%}>{%", "%}>{% if enable_thinking is not false %}<think>\n{% endif %}{%")


def test_template_options_reach_the_template_and_the_key(tmp_path):
    save_tiny(tmp_path, tokenizer=byte_tokenizer("{{ strftime_now('%d %b %Y') }}" + THINKS))
    plain, default, model, dated = (
        HuggingFaceModel(tmp_path, device="cpu", template_options=options)
        for options in (None, {}, {"enable_thinking": False}, {"today": "2031-12-03"})
    )
    assert plain.count_tokens(ASKED) - model.count_tokens(ASKED) == len("<think>\n")
    assert plain.revision == default.revision and len(plain.revision) == 16
    assert model.revision == plain.revision + '-template {"enable_thinking": false}'
    text = dated._tokenizer.decode(list(dated._encode([ASKED])[0]))
    assert text.startswith("03 Dec 2031")


@each(
    ("template", "options", "words"),
    [
        (THINKS, {"enable_thoughts": True}, ("'enable_thoughts'", "enable_thinking")),
        (DATED, {"today": "tomorrow"}, ("today", "'tomorrow'", "YYYY-MM-DD")),
        (THINKS, {"messages": []}, ("'messages'", "enable_thinking")),
        (THINKS, ["enable_thinking"], ("template_options", "mapping")),
        (None, {"enable_thinking": False}, "no chat template"),
        (LOUD, None, (["system", "user"], "leaves words out")),
        (REFUSES, None, (["system", "user"], "I write no prompts")),
    ],
)
def test_options_that_a_template_does_not_read_are_refused(template, options, words, tmp_path):
    folder = save_tiny(tmp_path, tokenizer=byte_tokenizer(template))
    with pytest.raises(ValueError, match=saying(words)):
        HuggingFaceModel(folder, device="cpu", template_options=options).count_tokens(ASKED)


def test_every_end_token_ends_a_reply_and_without_one_it_goes_on(tmp_path, monkeypatch):
    """Those that config or generation config name."""
    tokenizer = byte_tokenizer(words=["Flu", "Stop"])
    flu, stop = tokenizer.convert_tokens_to_ids(["Flu", "Stop"])
    folder = save_tiny(tmp_path, tokenizer=tokenizer)
    for name in ("config.json", "generation_config.json"):
        settings = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps(settings | {"eos_token_id": [1, stop]}))
        ends = HuggingFaceModel(folder, device="cpu")._ends
        (folder / name).write_text(json.dumps(settings))
        assert set(ends) == {1, stop}
    model = speaking(folder, tokenizer, [flu, stop, flu], monkeypatch)
    model._ends = ends
    reply = first_reply(model, ask())
    assert (reply.text, reply.finish, reply.n_tokens_out) == ("Flu", "stop", 2)
    model = speaking(folder, tokenizer, [flu, stop, flu], monkeypatch)
    model._ends = ends[:0]
    reply = first_reply(model, ask())
    assert (reply.text[:10], reply.finish, reply.n_tokens_out) == ("FluStopFlu", "length", 8)


@each(("positions", "window"), [(512, 512), (None, math.inf), (-1, math.inf), (10**9, 10**9)])
def test_the_window_is_what_the_config_says(positions, window):
    text = SimpleNamespace(max_position_embeddings=positions)
    assert window_of(SimpleNamespace(get_text_config=lambda: text)) == window


def test_half_precision_is_named_in_the_revision_and_its_statistics_are_in_full(tmp_path):
    """From the model's own logits, in float64."""
    folder = save_tiny(tmp_path, dtype="bfloat16")
    plain, half, auto = (
        HuggingFaceModel(folder, device="cpu", dtype=dtype)
        for dtype in ("float32", "float16", "auto")
    )
    assert len(plain.revision) == 16 and half.revision == f"{plain.revision}-float16"
    assert auto.revision == f"{plain.revision}-bfloat16" and auto._model.dtype == torch.bfloat16
    trace = first_reply(auto, ask(max_tokens=1)).trace
    ids = torch.tensor([auto._encode([ASKED])[0]])
    with torch.no_grad():
        logits = auto._model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0, -1]
    logprobs = torch.log_softmax(logits.double(), dim=-1).numpy()
    np.testing.assert_allclose(trace.logprobs, [logprobs.max()], atol=1e-9)
    np.testing.assert_allclose(trace.entropies, [-(np.exp(logprobs) * logprobs).sum()], atol=1e-9)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")
@pytest.mark.parametrize("kind", ["llama", "mistral", "mamba"])
def test_a_gpu_gives_the_replies_of_the_cpu(kind, tmp_path):
    folder = save_tiny(tmp_path, kind)
    asked = [ask(p) for p in ("cough", "a rash on the hand", "tired")]
    cpu, gpu = (HuggingFaceModel(folder, device=where).generate(asked) for where in ("cpu", "cuda"))
    for (ours,), (theirs,) in zip(gpu, cpu, strict=True):
        assert ours.text == theirs.text and ours.trace and theirs.trace
        np.testing.assert_allclose(ours.trace.logprobs, theirs.trace.logprobs, atol=1e-4)


def _no_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def _no_config(folder: Path) -> None:
    (folder / "config.json").unlink()


def _cut_short(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])


def _without_a_tensor(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / "model.safetensors")
    del tensors["model.layers.1.mlp.up_proj.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def _packed_by_mlx(folder: Path) -> None:
    """Eight numbers of 4 bits in one, as mlx_lm writes them."""
    from safetensors.torch import load_file, save_file

    tensors, name = load_file(folder / "model.safetensors"), "model.layers.0.mlp.up_proj"
    rows, columns = tensors[f"{name}.weight"].shape
    tensors[f"{name}.weight"] = torch.zeros(rows, columns // 8, dtype=torch.int32)
    tensors[f"{name}.scales"] = torch.ones(rows, 1)
    tensors[f"{name}.biases"] = torch.zeros(rows, 1)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    changed(folder / "config.json", quantization={"group_size": 64, "bits": 4})


def _reads_both_ways(folder: Path) -> None:
    transformers.BertConfig().save_pretrained(folder)


def _own_code(folder: Path) -> None:
    own = {"AutoConfig": "configuration_own.Own", "AutoModelForCausalLM": "modeling_own.Own"}
    path = folder / "config.json"
    told = json.loads(path.read_text()) | {"model_type": "own", "auto_map": own}
    path.write_text(json.dumps(told))
    for module in ("configuration_own", "modeling_own"):
        (folder / f"{module}.py").write_text("raise SystemExit('it was run')\n")


@each(
    ("change", "error", "words"),
    [
        (_no_weights, ValueError, ("safetensors", "config.json", "generation_config.json")),
        (_cut_short, ValueError, ("expected", "cannot be read", "docs/your_model.md")),
        (_without_a_tensor, ValueError, ("lack 1", "model.layers.1.mlp.up_proj.weight")),
        (_no_config, ValueError, "config.json"),
        (_packed_by_mlx, ValueError, "cannot be read"),
        (_own_code, ValueError, ("code", "model's own")),
        (_reads_both_ways, ValueError, ("causal language model", "'bert'")),
    ],
)
def test_a_folder_that_is_no_whole_causal_model_is_refused(change, error, words, tmp_path):
    folder = save_tiny(tmp_path / "of-mine")
    change(folder)
    with pytest.raises(error, match=saying("of-mine", words)):
        HuggingFaceModel(folder, device="cpu")


PICKLE = saying("pickle", "run code", "safetensors")


def test_a_folder_whose_weights_are_a_pickle_is_refused_before_it_is_opened(tmp_path, monkeypatch):
    monkeypatch.setattr("torch.load", lambda *args, **options: pytest.fail("it was opened"))
    save_tiny(tmp_path)
    (tmp_path / "training_args.bin").write_bytes(b"\x80\x04.")
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    assert HuggingFaceModel(tmp_path, device="cpu").window == 512  # beside safetensors
    (tmp_path / "pytorch_model.bin").unlink()
    as_pickle(tmp_path, "weights.pt")
    for opened in (
        lambda: open_model(f"hf:{tmp_path}", device="cpu"),
        lambda: tl.opened(Setup(model=["embedded", f"hf:{tmp_path}"])),
        lambda: tl.opened(Setup(grader=f"judge:hf:{tmp_path}")),
    ):
        with pytest.raises(ValueError, match=PICKLE) as told:
            opened()
        assert f"'{tmp_path}'" in str(told.value) and "(weights.pt)" in str(told.value)


def changed(file: Path, **values: Any) -> None:
    """The values put into a JSON file."""
    before = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps(before | values))


KERNELS: list[dict[str, Any]] = [
    {"attn_implementation": "kernels-community/flash-attn"},
    {"_attn_implementation": "somebody/attention@main:fast"},
    {"attn_implementation": {"": "paged|kernels-community/flash-attn3"}},
    {"text_config": {"attn_implementation": {"}": "sdpa", "": "some\\/kernel"}}},
    {"_experts_implementation": "kernels-community/megablocks"},
]


@each("named", KERNELS)
def test_a_config_that_names_code_of_the_hub_is_refused_before_anything_is_loaded(
    named, tmp_path, monkeypatch
):
    monkeypatch.setattr("transformers.AutoConfig.from_pretrained", lambda *_, **__: pytest.fail())
    changed(save_tiny(tmp_path) / "config.json", **named)
    for opened in (
        lambda: HuggingFaceModel(tmp_path, device="cpu"),
        lambda: open_model(f"hf:{tmp_path}"),
        lambda: tl.opened(Setup(encoder=tmp_path)),
    ):
        with pytest.raises(ValueError, match="_implementation.*code to download"):
            opened()


@each("plain", ["sdpa", "eager", None, {"": "sdpa", "text_config": "eager"}])
def test_the_library_s_own_attention_may_be_named(plain, tmp_path):
    changed(save_tiny(tmp_path) / "config.json", attn_implementation=plain)
    assert HuggingFaceModel(tmp_path, device="cpu").window == 512


@each(
    ("file", "named", "whole"),
    [
        ("model.safetensors.index.json", {"weight_map": {"lm_head.weight": "shard.bin"}}, False),
        ("model.safetensors.index.json", {"weight_map": {"lm_head.weight": "shard.bin"}}, True),
        (
            "model.safetensors.index.json",
            {"weight_map": {"a": "a.safetensors", "b": "w.dat"}},
            True,
        ),
        ("pytorch_model.bin.index.json", {"weight_map": {"lm_head.weight": "shard"}}, False),
        ("other.safetensors.index.json", {"weight_map": {"lm_head.weight": "../x.pt"}}, True),
        ("config.json", {"transformers_weights": "weights.bin"}, True),
    ],
)
def test_an_index_that_names_a_pickle_is_refused_before_anything_is_loaded(
    file, named, whole, tmp_path, monkeypatch
):
    monkeypatch.setattr("torch.load", lambda *_, **__: pytest.fail("it was opened"))
    monkeypatch.setattr("transformers.AutoConfig.from_pretrained", lambda *_, **__: pytest.fail())
    save_tiny(tmp_path)
    if not whole:
        (tmp_path / "model.safetensors").unlink()
    changed(tmp_path / file, metadata={}, **named)
    for opened in (
        lambda: HuggingFaceModel(tmp_path, device="cpu"),
        lambda: open_model(f"hf:{tmp_path}"),
    ):
        with pytest.raises(ValueError, match=PICKLE):
            opened()


def test_an_index_of_pickles_beside_safetensors_is_not_opened(tmp_path):
    save_tiny(tmp_path)
    changed(tmp_path / "pytorch_model.bin.index.json", weight_map={"lm_head.weight": "shard.bin"})
    assert HuggingFaceModel(tmp_path, device="cpu").window == 512


def test_models_of_the_hub_show_their_commit_or_say_what_is_needed(tmp_path, monkeypatch):
    commit = "0123456789abcdef0123456789abcdef01234567"
    home = tmp_path / "models--org--tiny"
    save_tiny(home / "snapshots" / commit)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(commit)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    model = HuggingFaceModel("org/tiny", device="cpu")
    assert (model.name, model.revision) == ("org/tiny", commit)
    index = home / "snapshots" / commit / "model.safetensors.index.json"
    changed(index, weight_map={"lm_head.weight": "shard.bin"})
    with pytest.raises(ValueError, match=saying("pickle", "(shard.bin)")):
        HuggingFaceModel("org/tiny", device="cpu")
    index.unlink()
    changed(index.with_name("config.json"), attn_implementation="kernels-community/flash-attn")
    with pytest.raises(ValueError, match="kernels-community/flash-attn.*code to download"):
        HuggingFaceModel("org/tiny", device="cpu")
    with pytest.raises(FileNotFoundError, match=saying("'nobody/nothing'", "hub")):
        HuggingFaceModel("nobody/nothing")
    with pytest.raises(FileNotFoundError, match=r"config\.json"):
        HuggingFaceModel(tmp_path / "nothing")


def test_a_revision_follows_the_model_files(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    first = folder_revision(tmp_path)
    assert len(first) == 16 and int(first, 16) >= 0
    (tmp_path / "README.md").write_text("words")
    assert folder_revision(tmp_path) == first
    (tmp_path / "model.safetensors").write_bytes(b"Weights")
    assert folder_revision(tmp_path) != first


@each(
    ("options", "words"),
    [
        ({"dtype": "float8"}, "'float8'"),
        ({"device": "cpu", "device_map": "auto"}, ("device", "device_map")),
        ({"template_options": "enable_thinking"}, "template_options"),
        ({"batch_tokens": 0}, ("batch_tokens", 0, 1)),
        ({"thinking_tokens": -1}, ("thinking_tokens", 0, -1)),
    ],
)
def test_options_out_of_range_are_refused_before_a_run_begins(options, words, monkeypatch):
    with pytest.raises(ValueError, match=saying(words)):
        HuggingFaceModel("anything", **options)
    if "thinking_tokens" not in options:
        with pytest.raises(ValueError, match=saying(words)):
            tl.opened(Setup(model="embedded", model_options=options))
