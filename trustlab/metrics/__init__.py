"""Metrics: arrays in, number out; and the table that holds them all with their intervals."""

from trustlab.metrics.agreement import cohen_kappa
from trustlab.metrics.calibration import brier, ece
from trustlab.metrics.correlation import pearson, spearman, spearman_permutation_p
from trustlab.metrics.discrimination import auprc, auprc_weighted, auroc, auroc_weighted
from trustlab.metrics.intervals import case_weights, percentile_interval
from trustlab.metrics.stability import cv_group, cv_sample
from trustlab.metrics.stopping import frontier, guarantee, stop_turns
from trustlab.metrics.table import metrics_table, shared_rows

__all__ = [
    "auprc",
    "auprc_weighted",
    "auroc",
    "auroc_weighted",
    "brier",
    "case_weights",
    "cohen_kappa",
    "cv_group",
    "cv_sample",
    "ece",
    "frontier",
    "guarantee",
    "metrics_table",
    "pearson",
    "percentile_interval",
    "shared_rows",
    "spearman",
    "spearman_permutation_p",
    "stop_turns",
]
