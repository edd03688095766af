"""A run method by method: each answer that was asked for, right, wrong or unknown, beside its confidence, had or missing."""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from trustlab.metrics.estimate import case_weights
from trustlab.metrics.run_tables import KEYS, checked_answers, joined


@dataclass(frozen=True)
class MethodRows:
    """Every answer of one model on one data set, with one method's confidence; n of them, an array a column.

    ``correct`` is 0, 1 or NaN where unknown (there is no answer, or no grader could judge),
    ``confidence`` NaN where missing, as it is wherever the answer is unknown or could not be read;
    ``bounded`` marks confidences that are bounds, and ``why`` says why one is missing.
    """

    model: str
    dataset: str
    method: str
    case: np.ndarray
    level: np.ndarray
    correct: np.ndarray
    confidence: np.ndarray
    bounded: np.ndarray
    why: np.ndarray

    @property
    def label(self) -> dict[str, str]:
        """The columns that name these rows in a table."""
        return {"model": self.model, "dataset": self.dataset, "method": self.method}

    @property
    def present(self) -> np.ndarray:
        """Which rows have a confidence, and so an answer known to be right or wrong, (n,)."""
        return ~np.isnan(self.confidence)

    def at(self, keep: np.ndarray) -> MethodRows:
        """The rows where ``keep`` (n,) is true."""
        arrays = ("case", "level", "correct", "confidence", "bounded", "why")
        return replace(self, **{name: getattr(self, name)[keep] for name in arrays})

    def weights(self, n_draws: int, seed: int) -> np.ndarray:
        """How often each row that has a confidence is in each draw of all cases, (n_draws, n present).

        All cases are drawn, so that every method of a run shares its draws.
        """
        return case_weights(self.case, n_draws, seed).T[self.present].T

    def no_value(self) -> str:
        """Why no row has a confidence: the most frequent reason."""
        return f"no confidence: {most_frequent(self.why[~self.present])}"

    def notes(self) -> list[str]:
        """What a reader should know of the rows that have a confidence."""
        n, bounds = int(self.present.sum()), int(self.bounded[self.present].sum())
        return [f"{bounds} of {n} confidences are bounds"] if bounds else []

    def counts(self) -> dict[str, int]:
        """How many rows have a confidence, of how many cases, and how many have none."""
        n = int(self.present.sum())
        return {"n": n, "n_cases": len(np.unique(self.case[self.present])), "n_missing": len(self.present) - n}


def method_rows(answers: pd.DataFrame, confidence: pd.DataFrame) -> Iterator[MethodRows]:
    """The rows of each model, data set and method of a run, in the tables' order.

    Raises ``ValueError`` for missing columns, repeated keys, confidences without an answer, or infinite ones.
    """
    table = checked_answers(answers)
    told = joined(table, confidence)[[*KEYS, "method", "confidence", "bound", "missing"]]
    known = ~(table["failed"] | table["ungraded"])
    table = table[KEYS].assign(correct=table["correct"].astype(float).where(known))
    runs: Any = table.groupby(["dataset", "model"], sort=False)
    for (dataset, model), asked in runs:
        mine: Any = told[(told["dataset"] == dataset) & (told["model"] == model)]
        for method, part in mine.groupby("method", sort=False):
            whole = asked.merge(part, on=KEYS, how="left", validate="one_to_one")
            why = whole["missing"].astype(object).where(whole["method"].notna(), "no row in the table")
            yield MethodRows(
                str(model),
                str(dataset),
                str(method),
                whole["case_id"].to_numpy(),
                whole["level"].to_numpy(),
                whole["correct"].to_numpy(float),
                whole["confidence"].to_numpy(float),
                whole["bound"].astype(object).fillna("").ne("").to_numpy(bool),
                why.fillna("").replace("", "no reason given").to_numpy(object),
            )


def most_frequent(words: np.ndarray) -> str:
    """The most frequent of ``words`` (n,), the first by name among equals; '' without any."""
    names, counts = np.unique(words.astype(str), return_counts=True)
    return str(names[counts.argmax()]) if len(names) else ""
