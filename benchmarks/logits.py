"""Times token statistics read from logits against the NumPy way of before: ``python -m
benchmarks.logits``.

Both get the same CPU tensors, take turns in one process, and must agree: the greedy token, its
log-probability, entropy, Rényi divergence, Fisher-Rao distance and the ten likeliest tokens of
every row; then a token drawn at temperature 0.5 and its log-probability.
"""

from __future__ import annotations

import argparse
import math
import platform
import statistics
import sys
import time
from collections.abc import Callable
from importlib.metadata import version

import numpy as np
import torch

from benchmarks.chain import cores, processor
from trustlab.models.local.logits import Logits

AIM = 5.0
ALPHA, ALTERNATIVES, TEMPERATURE = 0.5, 10, 0.5
BLOCK_VALUES = 1 << 21
Found = tuple[np.ndarray, ...]


def shift(logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Float64 logits less their row's maximum (n, N), and the log of their exponentials' sum."""
    shifted = logits.astype(np.float64)
    top = shifted.max(axis=1, keepdims=True)
    assert np.isfinite(top).all()
    shifted -= top
    return shifted, np.log(np.exp(shifted).sum(axis=1))


def numpy_greedy(raw: np.ndarray, _: np.ndarray) -> Found:
    """Everything of the likeliest token, as the backend did until it stayed on the device."""
    shifted, log_total = shift(raw)
    token = raw.argmax(axis=1)
    logprobs = np.maximum(shifted, -1e4) - log_total[:, None]
    roots = np.exp(logprobs / 2)
    entropy = -(roots * roots * logprobs).sum(axis=1)
    n_tokens = raw.shape[1]
    angle = (
        2
        / math.pi
        * np.arccos(np.minimum(1.0, roots.sum(axis=1) / math.sqrt(n_tokens)))
    )
    renyi = (np.log(roots.sum(axis=1)) - (1 - ALPHA) * math.log(n_tokens)) / (ALPHA - 1)
    whole = shifted - log_total[:, None]
    top = np.sort(
        torch.topk(torch.from_numpy(raw), ALTERNATIVES).indices.numpy(), axis=1
    )
    values = np.take_along_axis(whole, top, axis=1)
    order = np.argsort(-values, axis=1, kind="stable")
    best = (
        np.take_along_axis(top, order, axis=1),
        np.take_along_axis(values, order, axis=1),
    )
    said = shifted[np.arange(len(raw)), token] - log_total
    certainty = -whole.mean(axis=1) - math.log(n_tokens)
    return token, said, entropy, renyi, angle, certainty, *best


def numpy_drawn(raw: np.ndarray, uniform: np.ndarray) -> Found:
    """A token of each row drawn at the temperature, and its log-probability at 1."""
    shifted, log_total = shift(raw)
    cumulative = np.cumsum(np.exp(shifted / TEMPERATURE), axis=1)
    target = uniform * cumulative[:, -1]
    rows = zip(cumulative, target, strict=True)
    token = np.array([np.searchsorted(row, u, side="right") for row, u in rows])
    return token, shifted[np.arange(len(raw)), token] - log_total


def in_blocks(work: Callable[[np.ndarray, np.ndarray], Found]) -> Callable[..., Found]:
    """``work`` on so many rows at once as the backend took."""

    def over(values: torch.Tensor, uniform: np.ndarray) -> Found:
        raw, size = values.numpy(), max(1, BLOCK_VALUES // values.shape[1])
        parts = [
            work(raw[start : start + size], uniform[start : start + size])
            for start in range(0, len(raw), size)
        ]
        return tuple(np.concatenate(column) for column in zip(*parts, strict=True))

    return over


def torch_greedy(values: torch.Tensor, _: np.ndarray) -> Found:
    rows, logits = np.arange(len(values)), Logits(values)
    token = logits.likeliest(rows)
    said = logits.logprobs(rows, token)
    return (
        token,
        said,
        *logits.statistics(rows, ALPHA),
        *logits.best(rows, ALTERNATIVES),
    )


def torch_drawn(values: torch.Tensor, uniform: np.ndarray) -> Found:
    rows, logits = np.arange(len(values)), Logits(values)
    token = logits.drawn(rows, rows, uniform, TEMPERATURE)
    return token, logits.logprobs(rows, token)


WORKS = {
    "greedy, all statistics": (in_blocks(numpy_greedy), torch_greedy),
    "drawn, log-probability": (in_blocks(numpy_drawn), torch_drawn),
}


def main() -> int:
    """Print a row for each kind of token; 0 if the aim is met for greedy ones, else 1."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.logits", description=__doc__
    )
    parser.add_argument("--vocabulary", type=int, default=152_000)
    parser.add_argument(
        "--rows", type=int, default=16, help="replies that grow together"
    )
    parser.add_argument("--repetitions", type=int, default=15)
    options = parser.parse_args()
    torch.manual_seed(0)
    ratios = []
    print(
        f"{'ms a token':<26}{'NumPy':>8}{'torch':>8}{'ratio':>8}{'differ by at most':>20}"
    )
    with torch.inference_mode():
        values = 3 * torch.randn(options.rows, options.vocabulary)
        uniform = np.random.default_rng(0).random(options.rows)
        for name, works in WORKS.items():
            old, new = (work(values, uniform) for work in works)
            assert np.array_equal(old[0], new[0])
            most = max(
                np.abs(a / b - 1).max() for a, b in zip(old[1:], new[1:], strict=True)
            )
            seconds: list[list[float]] = [[], []]
            for _ in range(options.repetitions):
                for kept, work in zip(seconds, works, strict=True):
                    began = time.perf_counter()
                    work(values, uniform)
                    kept.append((time.perf_counter() - began) / options.rows)
            before, after = (1e3 * statistics.median(kept) for kept in seconds)
            ratios.append(before / after)
            print(
                f"{name:<26}{before:>8.2f}{after:>8.2f}{ratios[-1]:>8.1f}{most:>20.1e}"
            )
    print(
        f"\nvocabulary {options.vocabulary:,}, {options.rows} rows; aim {AIM:g} times, greedy"
    )
    libraries = ", ".join(
        f"{name} {version(name).split('+')[0]}" for name in ("torch", "numpy")
    )
    print(
        f"{processor()}, {cores()} cores, {torch.get_num_threads()} threads;"
        f" Python {platform.python_version()}, {libraries}"
    )
    return 0 if ratios[0] >= AIM else 1


if __name__ == "__main__":
    sys.exit(main())
