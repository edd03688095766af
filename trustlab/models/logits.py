"""What is read from logits, worked out on the device where they lie: only results leave it."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator

import numpy as np
import torch

CPU_VALUES, GPU_VALUES = 1 << 20, 1 << 24
"""Logits that are worked on in float64 at once."""
FLOOR = -1e4
"""Least log-probability in a sum of P log P: a probability of 0 adds 0, and not 0 x inf."""


class Logits:
    """Rows of logits (n, N) of any floating type. Sums are in float64 (on MPS, which has none, in
    float32). ``rows`` (m,) of a method are row numbers. ValueError: a row's largest logit is not
    finite."""

    def __init__(self, logits: torch.Tensor) -> None:
        self._raw = logits
        self._precise = torch.float32 if logits.device.type == "mps" else torch.float64
        if not logits.amax(1).isfinite().all():
            raise ValueError('the model gave logits that are not finite; try dtype="float32"')

    def likeliest(self, rows: np.ndarray) -> np.ndarray:
        """The most probable token of each row, the first of equals, (m,)."""
        return self._raw[self._index(rows)].argmax(1).cpu().numpy()

    def drawn(
        self, rows: np.ndarray, back: np.ndarray, uniform: np.ndarray, temperature: float
    ) -> np.ndarray:
        """Tokens drawn at ``temperature`` from ``rows[back]``, (A,) each: the first whose
        cumulative weight exceeds ``uniform`` (A,) in [0, 1) times the row's."""
        token, order = np.empty(len(back), np.int64), np.argsort(back, kind="stable")
        below = 1 - 4 * torch.finfo(self._precise).eps
        for here, values in self._parts(rows):
            values = (values - values.amax(1, keepdim=True)) / max(temperature, 1e-300)
            cumulative = values.exp_().cumsum(1)
            own = order[slice(*np.searchsorted(back, (here.start, here.stop), sorter=order))]
            row = back[own] - here.start
            nth = np.arange(len(row)) - np.searchsorted(row, row)  # of those at its row
            chance = np.zeros((len(cumulative), nth.max() + 1))
            chance[row, nth] = uniform[own]
            target = self._index(chance).to(self._precise).clamp(max=below) * cumulative[:, -1:]
            found = torch.searchsorted(cumulative, target, right=True)
            token[own] = found.cpu().numpy()[row, nth]
        return token

    def logprobs(self, rows: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """Natural log-probabilities (A,) of ``tokens`` (A,) in ``rows`` (A,)."""
        at = self._index(rows)
        return _given(self._raw[at, self._index(tokens)].to(self._precise) - self._totals[at])

    def statistics(self, rows: np.ndarray, alpha: float) -> np.ndarray:
        """Entropy (nats), Rényi divergence from uniform (nats), Fisher-Rao distance [0, 1), (3, m).

        With q = 1/N: H = -sum P log P; 1/(a-1) log sum P^a q^(1-a), its limit log N - H at a = 1;
        (2/pi) arccos min(1, sum sqrt(P q)).
        """
        log_n, found = math.log(self._raw.shape[1]), []
        for _, values in self._parts(rows):
            logs = values.log_softmax(1)
            entropy = -(logs.exp() * logs.clamp(min=FLOOR)).sum(1)
            overlap = (logs / 2).exp_().sum(1) / math.exp(log_n / 2)
            renyi = log_n - entropy
            if alpha != 1:
                renyi = ((alpha * logs).logsumexp(1) - (1 - alpha) * log_n) / (alpha - 1)
            distance = 2 / math.pi * overlap.clamp(max=1.0).acos()
            found.append(_given(torch.stack([entropy, renyi, distance])))
        return np.concatenate(found, axis=1)

    def best(self, rows: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The ``k`` most probable tokens of each row (all, of a smaller vocabulary) and their
        natural log-probabilities, (m, k) each: best first, equals by number."""
        at = self._index(rows)
        found, ids = self._raw[at].topk(min(k, self._raw.shape[1]), dim=1)
        ids = ids.cpu().numpy()
        logprobs = _given(found.to(self._precise) - self._totals[at][:, None])
        order = np.lexsort((ids, -logprobs), axis=1)
        return np.take_along_axis(ids, order, 1), np.take_along_axis(logprobs, order, 1)

    @functools.cached_property
    def _totals(self) -> torch.Tensor:
        """The log sum e^x of every row, (n,)."""
        parts = self._parts(np.arange(len(self._raw)))
        return torch.cat([values.logsumexp(1) for _, values in parts])

    def _parts(self, rows: np.ndarray) -> Iterator[tuple[slice, torch.Tensor]]:
        """Some of the rows at a time, in full precision, with their places in ``rows``."""
        most = CPU_VALUES if self._raw.device.type == "cpu" else GPU_VALUES
        step = max(1, most // self._raw.shape[1])
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            yield slice(start, start + len(part)), self._raw[self._index(part)].to(self._precise)

    def _index(self, numbers: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(numbers).to(self._raw.device)


def statistics_of(logits: np.ndarray, alpha: float) -> np.ndarray:
    """:meth:`Logits.statistics` of every row of an array (n, N)."""
    return Logits(torch.from_numpy(logits)).statistics(np.arange(len(logits)), alpha)


def _given(values: torch.Tensor) -> np.ndarray:
    return values.cpu().double().numpy()
