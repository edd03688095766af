"""A Llama folder of the Hugging Face library as one GGUF file in float32: what llama.cpp serves.

Runs in the environment that `make test-e2e` makes: `python tests/e2e/convert.py FOLDER FILE`.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import gguf  # pyright: ignore[reportMissingImports]
import numpy as np
from safetensors.numpy import load_file


def permuted(weight: np.ndarray, n_heads: int) -> np.ndarray:
    """A query or key projection (n_heads * d, m) with each head's rows reordered.

    transformers rotates row i of a head with row i + d/2, llama.cpp row 2i with row 2i + 1.
    """
    return weight.reshape(n_heads, 2, -1, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)


def token_type(token: str, special: set[str]) -> gguf.TokenType:
    """Special, a single byte (written <0x0A>), or a piece of text."""
    if token in special:
        return gguf.TokenType.CONTROL
    return gguf.TokenType.BYTE if re.fullmatch(r"<0x[0-9A-F]{2}>", token) else gguf.TokenType.NORMAL


def add_shape(writer: gguf.GGUFWriter, config: dict[str, Any]) -> None:
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)


def add_vocabulary(writer: gguf.GGUFWriter, folder: Path, config: dict[str, Any]) -> None:
    """Tokens by id, their kinds and the chat template. Text is cut by the folder's own tokenizer,
    beside the file."""
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    special = {token["content"] for token in tokenizer["added_tokens"] if token["special"]}
    tokens = [token for token, _ in tokenizer["model"]["vocab"]]
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_scores([score for _, score in tokenizer["model"]["vocab"]])
    writer.add_token_types([token_type(token, special) for token in tokens])
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])
    writer.add_pad_token_id(config["pad_token_id"])
    writer.add_add_bos_token(True)  # before a plain text; in a chat the template writes it
    writer.add_chat_template((folder / "chat_template.jinja").read_text(encoding="utf-8"))


def convert(folder: Path, file: Path) -> None:
    """Write the model in ``folder`` to ``file``; ValueError for another architecture."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    if config["model_type"] != "llama":
        raise ValueError(f"model_type is {config['model_type']!r}; allowed is 'llama'")
    writer = gguf.GGUFWriter(file, "llama")
    add_shape(writer, config)
    add_vocabulary(writer, folder, config)
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config["num_hidden_layers"])
    for name, weight in load_file(folder / "model.safetensors").items():
        weight = weight.astype(np.float32)
        n_heads = next((n for part, n in heads.items() if part in name), None)
        new = names.get_name(name, try_suffixes=(".weight",))
        if new is None:
            raise ValueError(f"the weights hold {name!r}, which llama.cpp's llama does not have")
        writer.add_tensor(new, weight if n_heads is None else permuted(weight, n_heads))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
