"""Metrics: arrays go in, numbers come out."""

from trustlab.metrics.calibration import brier, cross_fitted, ece
from trustlab.metrics.correlation import (
    pearson,
    spearman,
    spearman_exact_p,
    spearman_permutation_p,
    spearman_values,
)
from trustlab.metrics.discrimination import auprc, auroc
from trustlab.metrics.stability import cv_group, cv_sample

__all__ = [
    "auprc", "auroc", "brier", "cross_fitted", "cv_group", "cv_sample", "ece",
    "pearson", "spearman", "spearman_exact_p", "spearman_permutation_p",
    "spearman_values",
]  # fmt: skip
