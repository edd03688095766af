"""Metrics: arrays in, number out; and the table that holds them all with their intervals."""

from trustlab.metrics.agreement import cohen_kappa
from trustlab.metrics.calibration import (
    Isotonic,
    Platt,
    brier,
    brier_decomposition,
    cross_fitted,
    ece,
)
from trustlab.metrics.correlation import (
    pearson,
    pearson_p,
    pearson_permutation_p,
    rising_band,
    rising_null,
    spearman,
    spearman_exact_p,
    spearman_permutation_p,
    spearman_values,
    unordered_band,
)
from trustlab.metrics.discrimination import auprc, auprc_weighted, auroc, auroc_weighted
from trustlab.metrics.estimate import (
    bootstrap_p,
    bounded_interval,
    case_weights,
    percentile_interval,
)
from trustlab.metrics.paired import paired_differences
from trustlab.metrics.run_tables import shared_rows
from trustlab.metrics.selective import aurc, prediction_rejection_ratio, risk_coverage
from trustlab.metrics.significance import holm, sample_size_for_power
from trustlab.metrics.stability import cv_group, cv_sample
from trustlab.metrics.stopping import frontier, stop_turns

__all__ = [
    "Isotonic",
    "Platt",
    "auprc",
    "auprc_weighted",
    "aurc",
    "auroc",
    "auroc_weighted",
    "bootstrap_p",
    "bounded_interval",
    "brier",
    "brier_decomposition",
    "case_weights",
    "sample_size_for_power",
    "cohen_kappa",
    "cross_fitted",
    "cv_group",
    "cv_sample",
    "ece",
    "frontier",
    "holm",
    "paired_differences",
    "pearson",
    "pearson_p",
    "pearson_permutation_p",
    "percentile_interval",
    "prediction_rejection_ratio",
    "rising_band",
    "rising_null",
    "risk_coverage",
    "shared_rows",
    "spearman",
    "spearman_exact_p",
    "spearman_permutation_p",
    "spearman_values",
    "stop_turns",
    "unordered_band",
]
