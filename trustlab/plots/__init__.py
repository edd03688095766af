"""Figures: a finished tidy table in, Axes out. Nothing is computed here; colour and marker mean method family everywhere."""

from trustlab.plots.benchmark import (
    accuracy_by_level,
    confidence_and_accuracy,
    discrimination,
    discrimination_pair,
    rank_correlations,
    reliability,
)
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

__all__ = [
    "FAMILY_COLOURS",
    "FAMILY_LABELS",
    "FAMILY_MARKERS",
    "METHOD_LABELS",
    "accuracy_by_level",
    "caption",
    "confidence_and_accuracy",
    "discrimination",
    "discrimination_pair",
    "label",
    "rank_correlations",
    "reliability",
    "save_figure",
    "use_style",
]
