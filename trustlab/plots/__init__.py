"""Figures: a finished tidy table in, Axes out. Nothing is computed here; colour and marker mean method family everywhere."""

from trustlab.plots.benchmark import (
    accuracy_by_level,
    accuracy_by_set,
    confidence_and_accuracy,
    file_ending,
    rank_correlations,
)
from trustlab.plots.evidence import evidence_table, token_bars
from trustlab.plots.grading import auroc_under_noise
from trustlab.plots.reliability import reliability
from trustlab.plots.selective import risk_coverage
from trustlab.plots.style import (
    FAMILY_COLOURS,
    FAMILY_LABELS,
    FAMILY_MARKERS,
    METHOD_LABELS,
    caption,
    label,
    save_figure,
    use_style,
)
from trustlab.plots.walkthrough import (
    agreement_by_prior,
    confidence_moves,
    consistent_but_uninformed,
    token_position,
)

__all__ = [
    "FAMILY_COLOURS",
    "FAMILY_LABELS",
    "FAMILY_MARKERS",
    "METHOD_LABELS",
    "accuracy_by_level",
    "accuracy_by_set",
    "agreement_by_prior",
    "auroc_under_noise",
    "caption",
    "confidence_and_accuracy",
    "confidence_moves",
    "consistent_but_uninformed",
    "evidence_table",
    "file_ending",
    "label",
    "rank_correlations",
    "reliability",
    "risk_coverage",
    "save_figure",
    "token_bars",
    "token_position",
    "use_style",
]
