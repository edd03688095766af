"""Defaults where the sources leave a choice open or state one, named here once and read everywhere else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Parameters:
    """The values; units and reasons beside those that need one."""

    n_samples: int = 15
    """K: samples per answer, and replies to the true-or-false question."""
    sample_temperature: float = 0.5
    p_true_temperature: float = 1.0
    renyi_alpha: float = 0.5
    pmi_weight: float = 0.5
    """Lambda of conditional PMI: not stated by the paper."""
    pmi_threshold: float = 1.0
    """Tau of conditional PMI, in nats: not stated by the paper."""
    topk_combination: Literal["mean", "first", "max"] = "mean"
    """What the five guesses of a score become: their mean, the first of them, or the highest."""


PARAMETERS = Parameters()
