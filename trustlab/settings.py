"""Defaults where the sources leave a choice open or state one, named here once and read everywhere else."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

Combination = Literal["mean", "first", "max"]
Context = Literal["answer", "full"]


@dataclass(frozen=True)
class Parameters:
    """The values; units and reasons beside those that need one. ``ValueError`` for one that is out of range.

    They travel with every :class:`~trustlab.records.Generation`, so that a method stays a function of its record alone.
    """

    n_samples: int = 15
    """K: samples per answer, and replies to the true-or-false question."""
    sample_temperature: float = 0.5
    p_true_temperature: float = 1.0
    renyi_alpha: float = 0.5
    """Order of the Rényi divergence: not stated by the paper."""
    pmi_weight: float = 0.5
    """Lambda of conditional PMI: not stated by the paper."""
    pmi_threshold: float = 1.0
    """Tau of conditional PMI, in nats: not stated by the paper."""
    n_alternatives: int = 10
    """Most probable tokens at each position that CCP puts in place: not stated by the paper."""
    sar_temperature: float = 0.001
    """t of sentence-level SAR: not stated by the paper."""
    eigenvalue_cut: float = 0.9
    """Eigenvectors of the graph Laplacian below it count for eccentricity: k is not stated by the paper."""
    topk_combination: Combination = "mean"
    """What the five guesses of a score become: their mean, the first of them, or the highest."""
    relevance_context: Context = "answer"
    """What a token's relevance (SAR) is judged in: the answer alone, or the answer with the patient information after it."""
    entailment_context: Context = "answer"
    """What is compared for entailment: bare diagnoses, or each with the patient information in front."""
    n_doctors: int = 3
    """K of a panel: doctors who judge a patient independently."""
    doctor_temperature: float = 0.5
    """Temperature of a panel's doctors: not stated by the sources."""

    def __post_init__(self) -> None:
        rules = {
            "n_samples": (self.n_samples >= 1, "at least 1"),
            "sample_temperature": (0 < self.sample_temperature < 100, "above 0"),
            "p_true_temperature": (0 < self.p_true_temperature < 100, "above 0"),
            "renyi_alpha": (0 < self.renyi_alpha < 100, "above 0"),
            "pmi_weight": (0 <= self.pmi_weight < 1e6, "at least 0"),
            "pmi_threshold": (0 <= self.pmi_threshold < 1e6, "at least 0, in nats"),
            "n_alternatives": (self.n_alternatives >= 1, "at least 1"),
            "sar_temperature": (0 < self.sar_temperature < 1e6, "above 0"),
            "eigenvalue_cut": (0 < self.eigenvalue_cut <= 2, "above 0 and at most 2"),
            "topk_combination": (
                self.topk_combination in get_args(Combination),
                " or ".join(get_args(Combination)),
            ),
            "relevance_context": (
                self.relevance_context in get_args(Context),
                " or ".join(get_args(Context)),
            ),
            "entailment_context": (
                self.entailment_context in get_args(Context),
                " or ".join(get_args(Context)),
            ),
            "n_doctors": (self.n_doctors >= 1, "at least 1"),
            "doctor_temperature": (0 <= self.doctor_temperature < 100, "at least 0"),
        }
        for name, (allowed, words) in rules.items():
            if not allowed:
                raise ValueError(f"{name} is {getattr(self, name)!r}; it must be {words}")

    @classmethod
    def named(cls, **values: Any) -> Parameters:
        """The defaults with some values changed; ``ValueError`` names what can be set, or the kind of value it takes."""
        known = {f.name: f for f in fields(cls)}
        for name, value in values.items():
            if name not in known:
                raise ValueError(f"there is no parameter {name!r}; known are {', '.join(known)}")
            kinds = {int: (int,), float: (int, float), str: (str,)}[type(known[name].default)]
            if not isinstance(value, kinds) or isinstance(value, bool):
                raise ValueError(
                    f"{name} is {value!r}; it must be a {kinds[-1].__name__}, as its default {known[name].default!r}"
                )
        return cls(**values)


PARAMETERS = Parameters()
