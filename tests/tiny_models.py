"""Tiny causal language models with random weights, and tokenizers with every habit that makes
trouble."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from trustlab.models.local.huggingface import HuggingFaceModel

TEMPLATE = (
    "<s>{% for m in messages %}{{ m['role'] }}={{ m['content'] }};{% endfor %}{% if"
    " add_generation_prompt %}>{% endif %}"
)
BOS, EOS = "<s>", "</s>"

SHAPE = {
    "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 512, "bos_token_id": 0, "eos_token_id": 1,
    "pad_token_id": None, "initializer_range": 0.3,
}  # fmt: skip
"""What the models have in common; weights so large that some tokens are far likelier than
others."""
GPT = {
    "n_embd": 32, "n_layer": 2, "n_head": 4, "bos_token_id": 0, "eos_token_id": 1,
    "initializer_range": 0.3,
}  # fmt: skip
MAMBA = {
    "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4, "bos_token_id": 0,
    "eos_token_id": 1, "pad_token_id": None, "initializer_range": 0.3,
}  # fmt: skip
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("LlamaConfig", SHAPE | {"tie_word_embeddings": False}),
    "gpt2": ("GPT2Config", GPT | {"n_positions": 512}),
    "mistral": ("MistralConfig", SHAPE | {"sliding_window": 8}),
    "gemma2": ("Gemma2Config", SHAPE | {"head_dim": 8, "sliding_window": 12}),
    "bloom": ("BloomConfig", {"hidden_size": 32, "n_layer": 2, "n_head": 4, "bos_token_id": 0,
                              "eos_token_id": 1, "initializer_range": 0.3}),
    "gpt_neo": ("GPTNeoConfig", {
        "hidden_size": 32, "num_layers": 2, "num_heads": 4, "window_size": 8,
        "attention_types": [[["global", "local"], 1]], "bos_token_id": 0, "eos_token_id": 1,
        "max_position_embeddings": 512, "initializer_range": 0.3}),
    "mamba": ("MambaConfig", MAMBA),
    "recurrent_gemma": ("RecurrentGemmaConfig",
                        {k: v for k, v in SHAPE.items() if k != "max_position_embeddings"}
                        | {"num_hidden_layers": 3, "attention_window_size": 8, "lru_width": 32}),
    "rwkv": ("RwkvConfig", {"context_length": 512, "hidden_size": 32, "num_hidden_layers": 2,
                            "bos_token_id": 0, "eos_token_id": 1}),
}  # fmt: skip
"""Config class and values. Sliding windows of 8 and 12; no positions asked for (bloom); no cache
(rwkv); a recurrent state in the cache (mamba) or inside the modules
(recurrent_gemma)."""

SWITCH = 48
LONGROPE = {
    "rope_type": "longrope", "rope_theta": 100.0, "original_max_position_embeddings": SWITCH,
    "short_factor": [1.0] * 4, "long_factor": [20.0] * 4,
}  # fmt: skip
BY_LENGTH: dict[str, tuple[str, dict[str, Any]]] = {
    "phi3": ("Phi3Config", SHAPE | {
        "rope_parameters": LONGROPE, "pad_token_id": 0,
        "original_max_position_embeddings": SWITCH}),
    "llama_longrope": ("LlamaConfig", SHAPE | {"rope_parameters": LONGROPE}),
    "gemma3_by_layer": ("Gemma3TextConfig", SHAPE | {
        "head_dim": 8, "sliding_window": 600, "query_pre_attn_scalar": 8,
        "layer_types": ["full_attention", "sliding_attention"],
        "rope_parameters": {"full_attention": LONGROPE, "sliding_attention": {
            "rope_type": "default", "rope_theta": 100.0}}}),
    "phimoe": ("PhimoeConfig", SHAPE | {
        "num_local_experts": 2, "num_experts_per_tok": 1,
        "rope_parameters": LONGROPE | {"short_mscale": 1.0, "long_mscale": 1.5}}),
}  # fmt: skip
"""Models whose rotary factors change where a row of a pass has more than :data:`SWITCH` tokens, as
those of Phi-3.5 and Phi-4-mini beyond 4,096."""

SEES = {
    "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
    "image_size": 16, "patch_size": 8, "initializer_range": 0.3,
}  # fmt: skip
IMAGE_TEXT: dict[str, tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "gemma3": ("Gemma3Config",
               SHAPE | {"head_dim": 8, "sliding_window": 12, "query_pre_attn_scalar": 8},
               SEES | {"model_type": "siglip_vision_model"},
               {"mm_tokens_per_image": 4, "image_token_index": 10, "boi_token_index": 12,
                "eoi_token_index": 13}),
}  # fmt: skip
"""Models of images and text: config class, and values of its text, its vision and itself."""


def as_pickle(folder: Path, name: str = "pytorch_model.bin") -> None:
    """A folder's weights as torch pickles them, in place of its safetensors."""
    import torch
    from safetensors.torch import load_file

    torch.save(load_file(folder / "model.safetensors"), folder / name)
    (folder / "model.safetensors").unlink()


def byte_names() -> list[str]:
    """The names of the 256 bytes in byte-level vocabularies, byte b at place b."""
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    names = bytes_to_unicode()
    return [names[b] for b in range(256)]


def byte_level(text: str) -> str:
    """How a byte-level vocabulary spells ``text``."""
    names = byte_names()
    return "".join(names[b] for b in text.encode())


def wrapped(core: Any, chat_template: str | None = TEMPLATE, **options: Any) -> Any:
    """A transformers tokenizer around one of ``tokenizers``, with <s> and </s> unless ``options``
    say otherwise."""
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, **({"bos_token": BOS, "eos_token": EOS} | options)
    )
    tokenizer.chat_template = chat_template
    return tokenizer


def byte_tokenizer(
    chat_template: str | None = TEMPLATE, words: Sequence[str] = (), **options: Any
) -> Any:
    """One token per byte, so that letters beyond ASCII are split over tokens; ``words`` are further
    tokens for replies."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    names = dict.fromkeys(
        [BOS, EOS, *sorted(pre_tokenizers.ByteLevel.alphabet()), *map(byte_level, words)]
    )
    core = Tokenizer(models.BPE(vocab={name: i for i, name in enumerate(names)}, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = decoders.ByteLevel()
    return wrapped(core, chat_template, **options)


def metaspace_tokenizer(words: Sequence[str], chat_template: str | None = TEMPLATE) -> Any:
    """As Llama 2's: a space is part of the word behind it, and the decoder strips the first one;
    unknown letters are bytes."""
    from tokenizers import Tokenizer, decoders, models, normalizers

    bytes_, spelled = [f"<0x{b:02X}>" for b in range(256)], [w.replace(" ", "▁") for w in words]
    vocab = {name: i for i, name in enumerate([BOS, EOS, "<unk>", *bytes_, *spelled])}
    core = Tokenizer(
        models.BPE(vocab=vocab, merges=[], byte_fallback=True, unk_token="<unk>", fuse_unk=True)
    )
    core.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    spaces, first = decoders.Replace("▁", " "), decoders.Strip(" ", 1, 0)
    core.decoder = decoders.Sequence([spaces, decoders.ByteFallback(), decoders.Fuse(), first])
    return wrapped(core, chat_template, unk_token="<unk>")


def adds(tokenizer: Any, single: str) -> Any:
    """``tokenizer`` made to write special tokens around every text, such as ``"<s> $A"``."""
    from tokenizers import processors

    specials = [(token, tokenizer.convert_tokens_to_ids(token)) for token in (BOS, EOS)]
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single=single, special_tokens=specials
    )
    return tokenizer


def save_tiny(
    folder: Path, kind: str = "llama", tokenizer: Any = None, dtype: str = "float32", **changes: Any
) -> Path:
    """A random model of one of :data:`KINDS`, :data:`BY_LENGTH` or :data:`IMAGE_TEXT` with its
    tokenizer; ``changes`` go to the config (of the text)."""
    import torch
    import transformers

    torch.manual_seed(5)
    tokenizer = tokenizer or byte_tokenizer()
    if kind in IMAGE_TEXT:
        name, text, vision, values = IMAGE_TEXT[kind]
        text = {"vocab_size": len(tokenizer), **text, **changes}
        config = getattr(transformers, name)(text_config=text, vision_config=vision, **values)
        auto: Any = transformers.AutoModelForImageTextToText
    else:
        name, values = (KINDS | BY_LENGTH)[kind]
        given = {"vocab_size": len(tokenizer), **copy.deepcopy(values), **changes}
        config = getattr(transformers, name)(**given)
        auto = transformers.AutoModelForCausalLM
    model: Any = auto.from_config(config)
    model.to(getattr(torch, dtype)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def speaking(
    folder: Path,
    tokenizer: Any,
    said: Sequence[int],
    monkeypatch: pytest.MonkeyPatch,
    others: Sequence[int] = (),
) -> HuggingFaceModel:
    """A model whose greedy reply is ``said`` and then </s>; at every step ``others`` are the next
    likely, in order."""
    model = HuggingFaceModel(
        save_tiny(folder, tokenizer=tokenizer, initializer_range=0.01), device="cpu"
    )
    forward = model._model.forward
    script = iter([*said, tokenizer.convert_tokens_to_ids(EOS)])

    def scripted(*args: Any, **given: Any) -> Any:
        out = forward(*args, **given)
        for height, token in zip(range(12, 0, -2), others, strict=False):
            out.logits[:, -1, token] += height
        if (token := next(script, None)) is not None:
            out.logits[:, -1, token] += 20
        return out

    monkeypatch.setattr(model._model, "forward", scripted)
    return model
