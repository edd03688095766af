"""Reads token statistics from logits where they lie."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import torch

PART = 128  # neighbouring tokens whose largest logit, or sum of weights, is looked at first
CPU_VALUES, GPU_VALUES = 1 << 17, 1 << 24
"""Logits worked on at once: on a processor so few that their float64 copies stay in its cache."""
FLOOR = -1e4
"""Below a row's largest logit: a probability of 0 adds 0 x FLOOR to a sum, and not 0 x inf."""
HALF = 0.5 / math.log(2)
"""Times x is the binary logarithm of the root of e^x; powers of 2 are the quicker ones."""


class Sums(NamedTuple):
    """Of each row (n,), for logits x less the largest: log sum e^x, log sum sqrt(P), sum P x, and
    by temperature the sums of e^(x / temperature) over every PART columns, (n, N / PART)."""

    log_total: torch.Tensor
    log_roots: torch.Tensor
    depth: torch.Tensor
    weights: dict[float, torch.Tensor]


class Logits:
    """Rows of logits (n, N) of any floating type, passed over once for tokens drawn at
    ``temperatures`` and, where ``wide``, statistics. Sums are in float64 (on MPS, which has none,
    in float32). ``rows`` (m,) of a method are sorted row numbers, each once. ValueError: a row's
    largest logit is not finite."""

    def __init__(
        self, logits: torch.Tensor, temperatures: Iterable[float] = (), wide: bool = True
    ) -> None:
        self._raw, self._temperatures, self._wide = logits, tuple(temperatures), wide
        self._precise = torch.float32 if logits.device.type == "mps" else torch.float64
        self._maxima = _in_parts(logits, torch.amax)
        self._top = self._maxima.amax(1, keepdim=True)
        if not self._top.isfinite().all():
            raise ValueError('the model gave logits that are not finite; try dtype="float32"')
        self._top = self._top.to(self._precise)
        self._hollow = bool(logits.amin() == -math.inf)

    def likeliest(self, rows: np.ndarray) -> np.ndarray:
        """The most probable token of each row, the first of equals, (m,)."""
        columns, near = self._near(rows, self._of(self._maxima, rows).argmax(1, keepdim=True))
        return columns.gather(1, near.argmax(1, keepdim=True))[:, 0].cpu().numpy()

    def drawn(
        self, rows: np.ndarray, back: np.ndarray, uniform: np.ndarray, temperature: float
    ) -> np.ndarray:
        """Tokens drawn from ``rows[back]``, (A,) each: the first whose cumulative weight exceeds
        ``uniform`` (A,) in [0, 1) times the row's."""
        sums = self._of(self._sums.weights[temperature], rows).cumsum(1)
        below = 1 - 4 * torch.finfo(self._precise).eps
        chance = self._index(uniform).to(self._precise).clamp(max=below)
        of = sums[self._index(back)]
        target = chance * of[:, -1]
        part = _first_above(of, target)
        target = target - torch.nn.functional.pad(of, (1, 0)).gather(1, part[:, None])[:, 0]
        at = rows[back]
        columns, near = self._near(at, part[:, None])
        near = near.to(self._precise) - self._top[self._index(at)]
        cumulative = _tempered(near * HALF, None, temperature).cumsum(1)
        place = _first_above(cumulative, torch.minimum(target, cumulative[:, -1] * below))
        return columns.gather(1, place[:, None])[:, 0].cpu().numpy()

    def logprobs(self, rows: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """Natural log-probabilities (A,) of ``tokens`` (A,) in ``rows`` (A,), in any order."""
        at = self._index(rows)
        said = self._raw[at, self._index(tokens)].to(self._precise) - self._top[at, 0]
        return _given(said - self._sums.log_total[at])

    def statistics(self, rows: np.ndarray, alpha: float) -> np.ndarray:
        """Entropy (nats), Rényi divergence from uniform (nats), Fisher-Rao distance [0, 1), (3, m).
        With q = 1/N: H = -sum P log P; 1/(a-1) log sum P^a q^(1-a), its limit log N - H at a = 1;
        (2/pi) arccos min(1, sum sqrt(P q))."""
        log_n = math.log(self._raw.shape[1])
        log_total = self._of(self._sums.log_total, rows)
        log_roots = self._of(self._sums.log_roots, rows)
        entropy = log_total - self._of(self._sums.depth, rows)
        fisher_rao = 2 / math.pi * (log_roots - log_n / 2).exp().clamp(max=1.0).acos()
        if alpha == 1:
            renyi = log_n - entropy
        else:
            power = log_roots
            if alpha != 0.5:
                power = torch.zeros_like(log_total)
                for here, _, tile in self._tiles(rows):
                    power[here] += tile.mul_(2 * alpha).exp2_().sum(1)
                power = power.log_() - alpha * log_total
            renyi = (power - (1 - alpha) * log_n) / (alpha - 1)
        return _given(torch.stack([entropy, renyi, fisher_rao]))

    def best(self, rows: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The ``k`` most probable tokens of each row (all, of a smaller vocabulary) and their
        natural log-probabilities, (m, k) each: best first, equals by number."""
        k, maxima = min(k, self._raw.shape[1]), self._of(self._maxima, rows)
        columns, near = self._near(rows, maxima.topk(min(k, maxima.shape[1]), dim=1).indices)
        if self._hollow:  # what fills up the last part is as improbable as what is there
            columns, near = None, self._of(self._raw, rows)
        found, at = near.topk(k, dim=1)
        ids = (at if columns is None else columns.gather(1, at)).cpu().numpy()
        values = found.to(self._precise) - self._of(self._top, rows)
        logprobs = _given(values - self._of(self._sums.log_total, rows)[:, None])
        order = np.lexsort((ids, -logprobs), axis=1)
        return np.take_along_axis(ids, order, 1), np.take_along_axis(logprobs, order, 1)

    @functools.cached_property
    def _sums(self) -> Sums:
        total, roots, depth = self._top.new_zeros((3, len(self._raw)))
        weights = {t: self._top.new_empty(self._maxima.shape) for t in self._temperatures}
        for here, parts, half in self._tiles(np.arange(len(self._raw))):
            root = half.exp2()
            for temperature, found in weights.items():
                found[here, parts] = _in_parts(_tempered(half, root, temperature), torch.sum)
            if self._wide:
                roots[here] += root.sum(1)
            total[here] += root.square_().sum(1)
            if self._wide:
                half = half.clamp_(min=FLOOR) if self._hollow else half
                depth[here] += half.mul_(root).sum(1)
        log_total = total.log()
        return Sums(log_total, roots.log_() - log_total / 2, depth / total / HALF, weights)

    def _tiles(self, rows: np.ndarray) -> Iterator[tuple[slice, slice, torch.Tensor]]:
        """Binary logarithms of the roots of e^x, for logits x less the row's largest, in tiles
        (m', N') of their own, each with its places in ``rows`` and among the parts."""
        raw, top = self._raw, self._top
        most = CPU_VALUES if raw.device.type == "cpu" else GPU_VALUES
        width = min(raw.shape[1], most)
        for start in range(0, len(rows), most // width):
            part = rows[start : start + most // width]
            here = self._index(part)
            if part[-1] - part[0] == len(part) - 1:  # neighbours need no copy
                here = slice(int(part[0]), int(part[-1]) + 1)
            for i, tile in enumerate(raw[here].split(width, dim=1)):
                parts = slice(i * width // PART, -(-(i * width + tile.shape[1]) // PART))
                values = torch.sub(tile.to(self._precise), top[here]).mul_(HALF)
                yield slice(start, start + len(part)), parts, values

    def _near(self, rows: np.ndarray, part: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Columns of parts (m, p) and their logits, -inf beyond the last, (m, p x PART) each."""
        columns = (part[:, :, None] * PART + torch.arange(PART, device=part.device)).flatten(1)
        last = self._raw.shape[1] - 1
        near = self._raw[self._index(rows)[:, None], columns.clamp(max=last)]
        return columns, near.masked_fill_(columns > last, -math.inf)

    def _index(self, numbers: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(numbers).to(self._raw.device)

    def _of(self, values: torch.Tensor, rows: np.ndarray) -> torch.Tensor:
        return values if len(rows) == len(values) else values[self._index(rows)]


def statistics_of(logits: np.ndarray, alpha: float) -> np.ndarray:
    """:meth:`Logits.statistics` of every row of an array (n, N)."""
    return Logits(torch.from_numpy(logits)).statistics(np.arange(len(logits)), alpha)


def _in_parts(
    values: torch.Tensor, reduce: Callable[[torch.Tensor, int], torch.Tensor]
) -> torch.Tensor:
    """``values`` (n, N) reduced over every PART columns; the last part may be narrower."""
    whole = values.shape[1] // PART
    found = reduce(values[:, : whole * PART].unflatten(1, (whole, PART)), 2)
    if whole * PART == values.shape[1]:
        return found
    return torch.cat([found, reduce(values[:, whole * PART :], 1)[:, None]], 1)


def _tempered(half: torch.Tensor, root: torch.Tensor | None, temperature: float) -> torch.Tensor:
    """e^(x / temperature) of :meth:`Logits._tiles`' values, of whose 2nd powers ``root`` is."""
    if root is not None and temperature in (0.5, 1):
        return root.square() if temperature == 1 else root.square().square_()
    return (half * (2 / max(temperature, 1e-300))).exp2_()


def _first_above(cumulative: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """First column above ``target`` (A,) in each row of ``cumulative`` (A, n)."""
    return torch.searchsorted(cumulative, target[:, None], right=True)[:, 0]


def _given(values: torch.Tensor) -> np.ndarray:
    return values.cpu().double().numpy()
