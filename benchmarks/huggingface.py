"""Times fifteen samples on one prompt, read once, against fifteen separate calls: ``python -m
benchmarks.huggingface``.

Ours is ``HuggingFaceModel.generate`` with ``n`` samples; theirs is one ``generate`` of transformers
for each sample, on the same model, prompt, temperature and number of tokens. They take turns, after
one round that does not count. Every sample takes its own path, so the tokens differ; the work does
not: no reply ends before its last token.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.chain import cores, processor
from trustlab.models.base import Messages, Request
from trustlab.models.local.huggingface import HuggingFaceModel

AIM = 4.0
VOCABULARY = 4000


def random_llama(folder: Path) -> Path:
    """A random model shaped like the embedded one, 4 layers x 256, with a vocabulary of 4,000
    words, saved in ``folder``."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    core = Tokenizer(
        models.WordLevel({f"w{i}": i for i in range(VOCABULARY)}, unk_token="w0")
    )
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer: Any = PreTrainedTokenizerFast(tokenizer_object=core, unk_token="w0")
    tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=256, intermediate_size=672, num_hidden_layers=4,
        num_attention_heads=4, max_position_embeddings=4096, bos_token_id=None, eos_token_id=None,
        pad_token_id=None, tie_word_embeddings=True,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def prompt_of(model: HuggingFaceModel, n_tokens: int) -> tuple[Messages, list[int]]:
    """A conversation of about ``n_tokens`` tokens (exactly so many for the random model) and its
    token ids."""

    def words(n: int) -> Messages:
        return (("user", " ".join(f"w{1 + i % 3000}" for i in range(n))),)

    few = model.count_tokens(words(100))
    each = (model.count_tokens(words(200)) - few) / 100
    messages = words(max(1, round(100 + (n_tokens - few) / each)))
    return messages, list(model._encode([messages])[0])


def timed(work: Callable[[], Any], device: str) -> float:
    """Seconds that ``work`` takes, a GPU's queue included."""
    import torch

    began = time.perf_counter()
    work()
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    return time.perf_counter() - began


def compare(
    model: HuggingFaceModel, options: argparse.Namespace
) -> tuple[list[float], list[float], int]:
    """Seconds of every repetition, ours and theirs, and the length of the prompt in tokens."""
    import torch

    messages, ids = prompt_of(model, options.prompt_tokens)
    # Without end tokens both sides make every token asked for.
    model._ends = model._ends[:0]
    config = model._model.generation_config
    config.eos_token_id, config.pad_token_id = None, 0
    n, length, temperature = options.samples, options.new_tokens, options.temperature
    read = torch.tensor([ids], device=model.device)
    mask = torch.ones_like(read)
    law = {
        "do_sample": True,
        "temperature": temperature,
        "top_k": 0,
        "top_p": 1.0,
        "max_new_tokens": length,
    }

    def ours(seed: int) -> None:
        [replies] = model.generate(
            [
                Request(
                    messages, n=n, temperature=temperature, max_tokens=length, seed=seed
                )
            ]
        )
        assert [reply.n_tokens_out for reply in replies] == [length] * n

    def theirs(seed: int) -> None:
        torch.manual_seed(seed)
        for _ in range(n):
            assert (
                model._model.generate(read, attention_mask=mask, **law).shape[1]
                == len(ids) + length
            )

    seconds: tuple[list[float], list[float]] = ([], [])
    for repetition in range(options.repetitions + 1):
        turns = list(zip(seconds, (ours, theirs), strict=True))
        for kept, work in turns if repetition % 2 else turns[::-1]:
            took = timed(
                lambda work=work, repetition=repetition: work(repetition), model.device
            )
            if repetition:
                kept.append(took)
    return *seconds, len(ids)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.huggingface",
        description=(__doc__ or "").split("\n\n")[0],
    )
    parser.add_argument(
        "--model",
        help="hf:NAME_OR_PATH; default: a random Llama of 4 layers x 256, vocabulary 4,000",
    )
    parser.add_argument("--device", help="default: a GPU if there is one")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--samples", type=int, default=15)
    parser.add_argument("--prompt-tokens", type=int, default=1000)
    parser.add_argument("--new-tokens", type=int, default=8)
    parser.add_argument("--temperature", type=float, default=0.5)
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args(arguments)
    if options.repetitions < 3:
        parser.error(
            f"--repetitions is {options.repetitions}; a median needs at least 3"
        )
    return options


def main() -> int:
    """Print both medians, the ratio and where it was measured; 0 if the aim is met, else 1."""
    import torch

    options = parse()
    with tempfile.TemporaryDirectory() as folder:
        source = (options.model or "").removeprefix("hf:") or random_llama(Path(folder))
        model = HuggingFaceModel(source, device=options.device, dtype=options.dtype)
        ours, theirs, n_tokens = compare(model, options)
    ratio = statistics.median(theirs) / statistics.median(ours)
    print(
        f"{options.samples} samples of {options.new_tokens} tokens on one prompt of {n_tokens:,}"
        " tokens"
    )
    print(
        f"model {options.model or 'random Llama, 4 x 256'} in {options.dtype} on {model.device}\n"
    )
    print(f"{'seconds':<42}{'median':>9}{'least':>9}{'most':>9}")
    for name, values in (
        ("trustlab, one call", ours),
        (f"transformers, {options.samples} calls of generate", theirs),
    ):
        print(
            f"{name:<42}{statistics.median(values):>9.3f}{min(values):>9.3f}{max(values):>9.3f}"
        )
    print(
        f"\n{ratio:.1f} times as fast (aim: {AIM:g} times), {options.repetitions} repetitions in"
        " turn"
    )
    libraries = ", ".join(
        f"{name} {version(name).split('+')[0]}"
        for name in ("torch", "transformers", "numpy")
    )
    where = (
        torch.cuda.get_device_name()
        if model.device.startswith("cuda")
        else f"{processor()}, {cores()} cores"
    )
    print(
        f"{where}, {torch.get_num_threads()} threads; Python {platform.python_version()},"
        f" {libraries}"
    )
    return 0 if ratio >= AIM else 1


if __name__ == "__main__":
    sys.exit(main())
