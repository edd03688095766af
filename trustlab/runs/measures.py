"""Measures a run: the metrics, given each method's family and scale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from trustlab.confidence import METHODS
from trustlab.confidence.registry import families
from trustlab.metrics import paired, run_tables


def metrics_table(
    run: Any,
    scales: Mapping[str, str] | None = None,
    *,
    min_per_class: int = 10,
    n_jobs: int = 1,
) -> pd.DataFrame:
    """Every metric of every method: :func:`trustlab.metrics.run_tables.metrics_table`. It gives
    Brier score and ECE where ``scales`` says "probability"; ``None`` uses the registry's scales."""
    if scales is None:
        names = dict.fromkeys(run.confidence["method"])
        scales = {name: METHODS[name].scale for name in names if name in METHODS}
    return run_tables.metrics_table(
        run, scales, min_per_class=min_per_class, n_jobs=n_jobs
    )


def compare_methods(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    reference: str = "medconf",
    min_per_class: int = 10,
) -> pd.DataFrame:
    """Every method against ``reference``: :func:`trustlab.metrics.paired.compare_methods`."""
    family_of = families(confidence["method"])
    return paired.compare_methods(
        answers, confidence, family_of, reference, min_per_class
    )


def best_of_families(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    reference: str = "medconf",
    min_per_class: int = 10,
) -> pd.DataFrame:
    """The method with the highest AUROC in each family, against ``reference``:
    :func:`trustlab.metrics.paired.best_of_families`."""
    family_of = families(confidence["method"])
    return paired.best_of_families(
        answers, confidence, family_of, reference, min_per_class
    )
