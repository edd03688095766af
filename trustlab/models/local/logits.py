"""Reads token statistics from logits where they lie."""

from __future__ import annotations

import functools
import math

import numpy as np
import torch

FLOOR = -1e4
"""Least log-probability in an entropy: a probability of 0 adds 0 x FLOOR, and not 0 x inf."""


class Logits:
    """Rows of logits (n, N) of any floating type, as natural log-probabilities in float64 (on MPS,
    which has none, in float32). ``rows`` (m,) of a method are sorted row numbers, each once.
    ValueError: a row's largest logit is not finite."""

    def __init__(self, logits: torch.Tensor) -> None:
        if not logits.amax(1).isfinite().all():
            raise ValueError(
                'the model gave logits that are not finite; try dtype="float32"'
            )
        self._logits = logits

    def likeliest(self, rows: np.ndarray) -> np.ndarray:
        """The most probable token of each row, the first of equals, (m,)."""
        tokens = self._logits[self._index(rows)].argmax(1)
        return tokens.cpu().numpy()

    def drawn(
        self,
        rows: np.ndarray,
        inverse: np.ndarray,
        uniform: np.ndarray,
        temperature: float,
    ) -> np.ndarray:
        """Tokens drawn from ``rows[inverse]``, (A,) each: the first whose cumulative weight exceeds
        ``uniform`` (A,) in [0, 1) times the row's."""
        logprobs = self._of(rows)
        less_top = logprobs - logprobs.amax(1, keepdim=True)
        weights = (less_top / max(temperature, 1e-300)).exp()
        cumulative = weights.cumsum(1)
        # A uniform next to 1 must not reach the sum itself, which no token exceeds.
        chance = self._index(uniform).to(cumulative.dtype)
        largest = 1 - 4 * torch.finfo(cumulative.dtype).eps
        chance = chance.clamp(max=largest)
        tokens = np.empty(len(inverse), dtype=np.int64)
        for row, sums in enumerate(cumulative):
            draws = np.flatnonzero(inverse == row)
            targets = chance[self._index(draws)] * sums[-1]
            drawn = torch.searchsorted(sums, targets, right=True)
            tokens[draws] = drawn.cpu().numpy()
        return tokens

    def logprobs(self, rows: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """Natural log-probabilities (A,) of ``tokens`` (A,) in ``rows`` (A,), in any order."""
        places = self._index(rows), self._index(tokens)
        return _array(self._logprobs[places])

    def statistics(self, rows: np.ndarray, alpha: float) -> np.ndarray:
        """Entropy (nats), Rényi divergence from uniform (nats), Fisher-Rao distance [0, 1),
        self-certainty (nats), (4, m). With q = 1/N: H = -sum P log P; 1/(a-1) log sum P^a q^(1-a),
        its limit log N - H at a = 1; (2/pi) arccos min(1, sum sqrt(P q)); -sum q log (P / q)."""
        logprobs = self._of(rows)
        log_n = math.log(logprobs.shape[1])
        probs = logprobs.exp()
        entropy = -(probs * logprobs.clamp(min=FLOOR)).sum(1)
        root_sum = (logprobs / 2).exp().sum(1)
        overlap = root_sum / math.exp(log_n / 2)
        angle = overlap.clamp(max=1.0).acos()
        fisher_rao = 2 / math.pi * angle
        if alpha == 1:
            renyi = log_n - entropy
        else:
            power_sum = root_sum
            if alpha != 0.5:
                power_sum = (logprobs * alpha).exp().sum(1)
            power = power_sum.log()
            renyi = (power - (1 - alpha) * log_n) / (alpha - 1)
        certainty = -logprobs.mean(1) - log_n
        return _array(torch.stack([entropy, renyi, fisher_rao, certainty]))

    def best(self, rows: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The ``k`` most probable tokens of each row (all, of a smaller vocabulary) and their
        natural log-probabilities, (m, k) each: best first, equals by number."""
        of_rows = self._of(rows)
        n_best = min(k, of_rows.shape[1])
        values, tokens = of_rows.topk(n_best, dim=1)
        ids = tokens.cpu().numpy()
        logprobs = _array(values)
        order = np.lexsort((ids, -logprobs), axis=1)
        ids = np.take_along_axis(ids, order, 1)
        logprobs = np.take_along_axis(logprobs, order, 1)
        return ids, logprobs

    @functools.cached_property
    def _logprobs(self) -> torch.Tensor:
        dtype = torch.float64
        if self._logits.device.type == "mps":
            dtype = torch.float32
        return self._logits.log_softmax(1, dtype=dtype)

    def _index(self, numbers: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(numbers).to(self._logits.device)

    def _of(self, rows: np.ndarray) -> torch.Tensor:
        if len(rows) == len(self._logprobs):  # all of them need no copy
            return self._logprobs
        return self._logprobs[self._index(rows)]


def statistics_of(logits: np.ndarray, alpha: float) -> np.ndarray:
    """:meth:`Logits.statistics` of every row of an array (n, N)."""
    rows = np.arange(len(logits))
    return Logits(torch.from_numpy(logits)).statistics(rows, alpha)


def _array(values: torch.Tensor) -> np.ndarray:
    return values.cpu().double().numpy()
