"""Figures: a finished tidy table in, Axes out. Nothing is computed here; colour and marker mean method family everywhere."""

from trustlab.plots.auroc import discrimination, discrimination_by_set, discrimination_pair
from trustlab.plots.benchmark import (
    accuracy_by_set,
    file_ending,
    rank_correlations,
)
from trustlab.plots.beyond import beyond_world
from trustlab.plots.compare import best_of_families, compared
from trustlab.plots.costs import auroc_by_cost
from trustlab.plots.evidence import evidence_table, token_bars
from trustlab.plots.grading import auroc_by_grader
from trustlab.plots.level_correlation import level_correlation, level_correlations
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
)

__all__ = [
    "FAMILY_COLOURS",
    "FAMILY_LABELS",
    "FAMILY_MARKERS",
    "METHOD_LABELS",
    "accuracy_by_set",
    "agreement_by_prior",
    "auroc_by_cost",
    "auroc_by_grader",
    "best_of_families",
    "beyond_world",
    "caption",
    "compared",
    "discrimination",
    "discrimination_by_set",
    "discrimination_pair",
    "evidence_table",
    "file_ending",
    "label",
    "level_correlation",
    "level_correlations",
    "rank_correlations",
    "save_figure",
    "token_bars",
    "use_style",
]
