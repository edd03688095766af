"""A run's tidy tables, checked and joined: what every table of metrics begins with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

KEYS = ["case_id", "dataset", "level", "model"]


class RunTables(Protocol):
    """What a run must hold: ``answers`` and ``confidence``, keyed by case_id, dataset, level, model (and method)."""

    @property
    def answers(self) -> pd.DataFrame:
        """One row per case, level and model."""
        ...

    @property
    def confidence(self) -> pd.DataFrame:
        """One row per case, level, model and method."""
        ...


def need_columns(table: pd.DataFrame, names: Sequence[str], what: str) -> None:
    """Raise ``ValueError`` where ``table``, called ``what``, lacks any of the columns ``names``."""
    lacking = [name for name in names if name not in table.columns]
    if lacking:
        raise ValueError(f"{what} lacks the columns {lacking}; it has {list(table.columns)}")


def checked_answers(answers: pd.DataFrame) -> pd.DataFrame:
    """The answers with ``correct`` 0 or 1 and, each true or false, ``readable``, ``failed`` (none was had) and ``ungraded``.

    An unreadable answer is wrong; the ``correct`` of a failed or ungraded one is 0 and must not be used. Raises
    ``ValueError`` on missing columns, repeated keys, or a ``correct`` that is lacking without such a reason.
    """
    need_columns(answers, [*KEYS, "answer", "correct"], "answers")
    table = answers[[*KEYS, "answer", "correct"]].assign(level=answers["level"].astype(int))
    _refuse(table, table.duplicated(KEYS), "answers must hold each case, level and model once")
    readable = table["answer"].notna()
    failed = ~readable & table["correct"].isna()
    reason = answers["missing"].astype(object).fillna("") if "missing" in answers else pd.Series("", index=answers.index)
    ungraded = readable & table["correct"].isna() & (reason != "")
    allowed = "0 or 1, or NaN with no answer where none was had, or NaN with a reason in missing where it is ungraded"
    _refuse(table, ~failed & ~ungraded & ~table["correct"].isin([0, 1]), f"correct must be {allowed}")
    correct = table["correct"].where(readable & ~ungraded, 0).astype(int)
    return table.assign(correct=correct, readable=readable, failed=failed, ungraded=ungraded)


def joined(answers: pd.DataFrame, confidence: pd.DataFrame) -> pd.DataFrame:
    """Confidence rows with ``correct`` beside them; a method has no value where the answer could not be read or had.

    ``answers`` are those of :func:`checked_answers`; ``missing`` says why a value is NaN. Raises ``ValueError`` on missing
    columns, repeated keys, infinite confidences, or answers that are lacking.
    """
    names = [*KEYS, "method", "confidence", "bound", "missing"]
    need_columns(confidence, names, "confidence")
    table = confidence[names].assign(level=confidence["level"].astype(int), confidence=confidence["confidence"].astype(float))
    _refuse(table, table.duplicated([*KEYS, "method"]), "confidence must hold each case, level, model and method once")
    _refuse(table, np.isinf(table["confidence"]), "a confidence must be finite, or NaN where missing")
    table = table.merge(
        answers[[*KEYS, "correct", "readable", "failed", "ungraded"]], on=KEYS, how="left", validate="many_to_one"
    )
    _refuse(table, table["correct"].isna(), "every confidence needs its row in answers")
    readable = table["readable"].astype(bool)
    failed, ungraded = table["failed"].astype(bool), table["ungraded"].astype(bool)
    why = table["missing"].where(readable | failed, "unreadable answer")
    why = why.mask(failed & (why.isna() | (why == "")), "failed answer")
    why = why.mask(ungraded & (why.isna() | (why == "")), "ungraded answer")
    return table.assign(confidence=table["confidence"].where(readable & ~ungraded), missing=why)


def _refuse(table: pd.DataFrame, bad: ArrayLike, message: str) -> None:
    found = np.flatnonzero(bad)
    if len(found):
        raise ValueError(f"{message}; received {table.iloc[found[0]].to_dict()} and {len(found) - 1} more")
