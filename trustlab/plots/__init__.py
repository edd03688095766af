"""Figures: a finished tidy table in, Axes out. Nothing is computed here; colour and marker mean method family everywhere."""

from trustlab.plots.auroc import discrimination, discrimination_by_set, discrimination_pair
from trustlab.plots.benchmark import (
    accuracy_by_level,
    accuracy_by_set,
    confidence_and_accuracy,
    file_ending,
)
from trustlab.plots.beyond import beyond_world
from trustlab.plots.compare import best_of_families, compared
from trustlab.plots.costs import auroc_by_cost
from trustlab.plots.evidence import evidence_table
from trustlab.plots.grading import auroc_by_grader, auroc_under_noise
from trustlab.plots.grid import grid
from trustlab.plots.level_correlation import level_correlation, level_correlations
from trustlab.plots.points import against, over_columns
from trustlab.plots.reliability import reliability
from trustlab.plots.selective import risk_coverage
from trustlab.plots.simplex import winners
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
    "against",
    "auroc_by_cost",
    "auroc_by_grader",
    "auroc_under_noise",
    "best_of_families",
    "beyond_world",
    "caption",
    "compared",
    "confidence_and_accuracy",
    "confidence_moves",
    "consistent_but_uninformed",
    "discrimination",
    "discrimination_by_set",
    "discrimination_pair",
    "evidence_table",
    "file_ending",
    "grid",
    "label",
    "level_correlation",
    "level_correlations",
    "over_columns",
    "reliability",
    "risk_coverage",
    "save_figure",
    "token_position",
    "use_style",
    "winners",
]
