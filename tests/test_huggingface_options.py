"""The Hugging Face backend's options: templates and their date, thought, places, quantised
weights."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from each import each
from saying import saying
from tiny_models import TEMPLATE, byte_tokenizer, save_tiny

import trustlab as tl
from trustlab.models.base import Request
from trustlab.models.by_name import open_model
from trustlab.models.local.huggingface import HuggingFaceModel, prompt_text
from trustlab.models.local.templates import check_template
from trustlab.parsing.reply import THINKING
from trustlab.settings import Setup

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

TALK = (("system", "S"), ("user", "A"), ("assistant", "B"), ("user", "C"))
THINKS = TEMPLATE.replace("%}>{%", "%}>{% if enable_thinking is not false %}<think>\n{% endif %}{%")


def test_names_that_a_template_sets_itself_or_guards_are_its_options():
    text = (
        "{% if not date_string is defined %}{% set date_string = strftime_now('%d %b %Y') %}"
        "{% endif %}{% generation %}{{ date_string }}{% endgeneration %}{% break %}"
    ).replace("{% break %}", "{% for m in messages %}{% break %}{% endfor %}")
    check_template(text, {"date_string": "1 May 2025", "today": "2025-05-01"})
    with pytest.raises(ValueError, match=saying("'reasoning_effort'", "date_string", "today")):
        check_template(text, {"reasoning_effort": "low"})


IN_PARTS = (
    "{% for m in messages %}{{ m['role'] }}{% if m['content'][0]['type'] == 'image' %}:{% else %}"
    "={% endif %}{% for line in m['content'] %}{% if line['type'] == 'text' %}{{ line['text'] }};"
    "{% endif %}{% endfor %}{% endfor %}{% if add_generation_prompt %}>{% endif %}"
)


def test_the_chat_template_of_a_processor_is_found(tmp_path):
    folder = save_tiny(tmp_path, "gemma3", tokenizer=byte_tokenizer(None))
    (folder / "chat_template.json").write_text(json.dumps({"chat_template": IN_PARTS}))
    model = HuggingFaceModel(folder, device="cpu")
    assert type(model._model).__name__ == "Gemma3ForConditionalGeneration"
    assert model.window == 512 and model.provides >= {"logprobs"}
    assert prompt_text(model._tokenizer, TALK) == (told := "system=S;user=A;assistant=B;user=C;>")
    assert model.count_tokens(TALK) == len(told)


@each("name", ["Florence2Config", "PaliGemmaConfig"])
def test_a_model_that_does_not_go_on_with_a_text_is_refused(name, tmp_path_factory):
    folder = save_tiny(tmp_path_factory.mktemp("tiny"))
    config = getattr(transformers, name)()
    config.save_pretrained(folder)
    words = saying("config.json", "causal language model", f"'{config.model_type}'")
    with pytest.raises(ValueError, match=words):
        HuggingFaceModel(folder, device="cpu")


ALLOWS = THINKS.replace("<think>\n", "/think\n")
THOUGHT = " ".join(f"Is it [a cold], day {i}?" for i in range(12)) + " "


def thinking_model(
    folder: Path, truths: dict[str, str], template: str = THINKS, **options: Any
) -> HuggingFaceModel:
    """A model without a cache that thinks where its template opens a thought, or allows one, and
    answers the truth of the patient whose words stand in the prompt."""
    if not (folder / "config.json").exists():
        save_tiny(folder, "rwkv", tokenizer=byte_tokenizer(template), context_length=1 << 14)
    model = HuggingFaceModel(folder, device="cpu", **options)
    tokenizer = model._tokenizer

    def scripted(input_ids: Any, attention_mask: Any = None, **_: Any) -> Any:
        logits = torch.zeros(len(input_ids), 1, len(tokenizer))
        for row, ids in enumerate(input_ids.tolist()):
            prompt, _, said = tokenizer.decode(ids).rpartition(";>")
            truth = next(truth for words, truth in truths.items() if words in prompt)
            whole = f"[{truth}]"
            if said.startswith(("<think>", "/think")):
                opens = "/think\n<think>\n" if said[0] == "/" else "<think>\n"
                whole = f"{opens}{THOUGHT}</think>\n\n{whole}"
            left = tokenizer(whole[len(said) :], add_special_tokens=False)["input_ids"]
            logits[row, 0, (left or [1])[0]] = 9.0
        return SimpleNamespace(logits=logits)

    model._model.forward = scripted
    return model


@each("template", [THINKS, ALLOWS])
def test_a_model_that_thinks_is_right_with_room_for_it_or_missing(template, tmp_path_factory):
    folder, cases = tmp_path_factory.mktemp("thinks"), tl.load_cases("starter", n=3)
    truths = {f"<patient>\n{case.statements[0].text}": case.diagnosis for case in cases}

    def run(**options: Any) -> Any:
        model = thinking_model(folder, truths, template, **options)
        setup = Setup(samples=2, cache=":memory:", quiet=True, trial=False)  # pyright: ignore
        return tl.benchmark(cases, [model], ["asp", "poc"], [100], setup)

    enough, direct = run(thinking_tokens=300), run(template_options={"enable_thinking": False})
    for made in (enough, direct):
        assert made.answers["correct"].tolist() == [1, 1, 1]
        assert set(made.answers["missing"]) == {""}
    values = [made.confidence["confidence"].astype(float) for made in (enough, direct)]
    np.testing.assert_allclose(*values)
    little = run()
    assert little.answers["missing"].str.contains(THINKING).tolist() == [True] * 3
    assert little.answers["correct"].isna().all()
    assert little.confidence["confidence"].isna().all()
    table = tl.metrics_table(little)
    assert set(table["n"]) == {0} and 3 in set(table["n_missing"])


def test_a_map_of_devices_needs_accelerate(tmp_path, monkeypatch):
    save_tiny(tmp_path)
    monkeypatch.setattr("trustlab.models.local.opening.find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install accelerate"):
        HuggingFaceModel(tmp_path, device_map={"": "cpu"})


def test_a_model_spread_by_a_map_gives_the_same_replies(tmp_path):
    pytest.importorskip("accelerate")
    save_tiny(tmp_path)
    one = open_model(f"hf:{tmp_path}", device="cpu")
    spread = HuggingFaceModel(tmp_path, device_map={"": "cpu"})
    asked = [Request((("user", "x"),), max_tokens=6, n=3, temperature=1.0)]
    assert one.generate(asked) == spread.generate(asked) and spread.revision == one.revision


@pytest.mark.skipif(find_spec("hqq") is not None, reason="hqq is there")
def test_a_quantised_checkpoint_names_the_library_it_needs(tmp_path):
    folder = save_tiny(tmp_path)
    path = folder / "config.json"
    quantised = json.loads(path.read_text()) | {"quantization_config": {"quant_method": "hqq"}}
    path.write_text(json.dumps(quantised))
    with pytest.raises(ImportError, match="(?i)needs a library: .*hqq"):
        HuggingFaceModel(folder, device="cpu")
