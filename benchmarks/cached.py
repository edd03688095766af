"""Times 48 new tokens behind a prompt of 900 against two: ``python -m benchmarks.cached [MODEL
...]``.

A model that keeps its cache reads the prompt once, and every new token alone: 48 tokens then cost
at most :data:`AIM` times two. Without one, every token reads the whole prompt again. The library
renames what the cache is called, so quote a table with its versions. ``MODEL`` is a local model
(``hf:smollm2``); without one, random models of :data:`KINDS` are made in a temporary folder. One
thread, processor time, the median of three.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import tempfile
import time
from pathlib import Path

import torch
import transformers

from trustlab.models.base import Request
from trustlab.models.by_name import EMBEDDED
from trustlab.models.local.huggingface import HuggingFaceModel

PROMPT, FEW, MANY = 900, 2, 48
AIM = 6.0
SHAPE = {
    "hidden_size": 512, "intermediate_size": 1536, "num_hidden_layers": 8,
    "num_attention_heads": 8, "num_key_value_heads": 4, "max_position_embeddings": 2048,
    "pad_token_id": 0,
}  # fmt: skip
GPT = {"n_embd": 512, "n_layer": 8, "n_head": 8, "n_positions": 2048}
KINDS: dict[str, dict[str, object]] = {
    "llama": SHAPE, "mistral": SHAPE, "qwen2": SHAPE, "qwen3": SHAPE | {"head_dim": 64},
    "gemma2": SHAPE | {"head_dim": 64}, "phi3": SHAPE, "olmo2": SHAPE, "granite": SHAPE,
    "gpt_neox": SHAPE, "gpt2": GPT,
    "mamba": {"hidden_size": 512, "num_hidden_layers": 8, "pad_token_id": 0},
}  # fmt: skip
"""Kinds of models by the library's names, with the values of their configs."""


def made(kind: str, folder: Path) -> str:
    """The path of a random model of a kind, with the tokenizer of a model of ours."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(EMBEDDED["embedded"])
    values = KINDS[kind] | {"vocab_size": len(tokenizer)}
    config = transformers.AutoConfig.for_model(kind, **values)
    torch.manual_seed(0)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(folder / kind)
    tokenizer.save_pretrained(folder / kind)
    return str(folder / kind)


def seconds(model: HuggingFaceModel, n_tokens: int) -> float:
    """Processor time of one drawn reply of so many tokens behind the prompt."""
    text = "cough"
    while model.count_tokens((("user", text),)) < PROMPT:
        text += " cough"
    request = Request((("user", text),), max_tokens=n_tokens, temperature=1.0)
    times = []
    for _ in range(3):
        began = time.process_time()
        ((reply,),) = model.generate([request])
        times.append(time.process_time() - began)
        if reply.n_tokens_out != n_tokens:
            raise RuntimeError(
                f"the reply has {reply.n_tokens_out} tokens, not {n_tokens}"
            )
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", metavar="MODEL", help="such as hf:smollm2")
    names = parser.parse_args().models
    torch.set_num_threads(1)
    versions = f"transformers {transformers.__version__}, torch {torch.__version__}"
    print(f"{versions}, Python {platform.python_version()}, {platform.machine()}")
    print(
        f"| model | {FEW} tokens, s | {MANY} tokens, s | ratio (aim: at most {AIM:.0f}) |"
    )
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in names or KINDS:
            path = name.removeprefix("hf:") if names else made(name, Path(folder))
            model = HuggingFaceModel(path, device="cpu")
            model._ends = []  # random models and drawn words may end anywhere
            few, many = seconds(model, FEW), seconds(model, MANY)
            print(
                f"| {model.name} | {few:.2f} | {many:.2f} | {many / few:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
