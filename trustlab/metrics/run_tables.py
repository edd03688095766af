"""A run's tidy tables, checked and joined: what every table of metrics begins with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd

from trustlab.metrics.estimate import Draws, Rows, groups
from trustlab.metrics.schema import need, refuse

KEYS = ["case_id", "dataset", "level", "model"]


class RunTables(Protocol):
    """What a run must hold: ``answers`` and ``confidence``.

    Keyed by case_id, dataset, level, model (and method).
    """

    @property
    def answers(self) -> pd.DataFrame:
        """One row per case, level and model."""
        ...

    @property
    def confidence(self) -> pd.DataFrame:
        """One row per case, level, model and method."""
        ...


@dataclass(frozen=True)
class Tables:
    """The two tables that make a run to measure."""

    answers: pd.DataFrame
    confidence: pd.DataFrame


def checked_answers(answers: pd.DataFrame) -> pd.DataFrame:
    """The answers with ``correct`` 0 or 1, and what became of each.

    True or false: ``readable``, ``failed`` (none was had) and ``ungraded``. An unreadable answer is
    wrong; the ``correct`` of a failed or ungraded one is 0 and must not be used. Raises
    ``ValueError`` on missing columns, repeated keys, or a ``correct`` that is lacking without such
    a reason.
    """
    need(answers, [*KEYS, "answer", "correct"], "answers")
    table = answers[[*KEYS, "answer", "correct"]].assign(level=answers["level"].astype(int))
    refuse(table, table.duplicated(KEYS), "answers must hold each case, level and model once")
    readable = table["answer"].notna()
    failed = ~readable & table["correct"].isna()
    given: Any = answers["missing"] if "missing" in answers else pd.Series("", answers.index)
    reason = given.astype(object).fillna("")
    ungraded = readable & table["correct"].isna() & (reason != "")
    allowed = "0 or 1, or NaN with no answer where none was had, or with a reason where ungraded"
    bad = ~failed & ~ungraded & ~table["correct"].isin([0, 1])
    refuse(table, bad, f"correct must be {allowed}")
    correct = table["correct"].where(readable & ~ungraded, 0).astype(int)
    return table.assign(correct=correct, readable=readable, failed=failed, ungraded=ungraded)


def joined(answers: pd.DataFrame, confidence: pd.DataFrame) -> pd.DataFrame:
    """Confidence rows with ``correct`` beside them.

    A method has no value where the answer could not be read or had. ``answers`` are those of
    :func:`checked_answers`; ``missing`` says why a value is NaN. Raises ``ValueError`` on missing
    columns, repeated keys, infinite confidences, or answers that are lacking.
    """
    names = [*KEYS, "method", "confidence", "bound", "missing"]
    need(confidence, names, "confidence")
    table: Any = confidence[names].astype({"level": int, "confidence": float})
    again = table.duplicated([*KEYS, "method"])
    refuse(table, again, "confidence must hold each case, level, model and method once")
    infinite = np.isinf(table["confidence"])
    refuse(table, infinite, "a confidence must be finite, or NaN where missing")
    read = answers[[*KEYS, "correct", "readable", "failed", "ungraded"]]
    table = table.merge(read, on=KEYS, how="left", validate="many_to_one")
    refuse(table, table["correct"].isna(), "every confidence needs its row in answers")
    readable = table["readable"].astype(bool)
    failed, ungraded = table["failed"].astype(bool), table["ungraded"].astype(bool)
    why = table["missing"].where(readable | failed, "unreadable answer")
    why = why.mask(failed & (why.isna() | (why == "")), "failed answer")
    why = why.mask(ungraded & (why.isna() | (why == "")), "ungraded answer")
    return table.assign(confidence=table["confidence"].where(readable & ~ungraded), missing=why)


def rows_of_methods(
    answers: pd.DataFrame, confidence: pd.DataFrame, n_draws: int = 2000, seed: int = 0
) -> Iterator[tuple[dict[str, str], Rows]]:
    """(model dataset method, rows) of a run: the answers themselves (method ''), then each method.

    - Every answer that was asked for is among ``asked``, with ``correct``, ``confidence``,
      ``level``, ``bound``, ``failed``, ``ungraded``, ``readable`` and, where a value is missing,
      why; ``known`` are those with a confidence (for method '' with a grade).
    - The methods of a model and data set share their draws, of all cases that were asked.
    - Further columns of ``answers``, such as ``n_words``, are passed on.
    - ``ValueError`` as :func:`checked_answers` and :func:`joined`.
    """
    table = checked_answers(answers)
    of_methods = ["method", "confidence", "bound", "missing"]
    more = [name for name in answers.columns if name not in {*table.columns, *of_methods}]
    whole = table.assign(**{name: answers[name] for name in more})
    told = joined(table, confidence)[[*KEYS, *of_methods]]
    for run, asked in groups(whole, ["dataset", "model"]):
        draws = Draws.of(asked["case_id"].to_numpy(), n_draws, seed)
        label = {"model": str(run["model"]), "dataset": str(run["dataset"])}
        graded = ~(asked["failed"] | asked["ungraded"]).to_numpy()
        none = "no graded answer" if asked["ungraded"].any() else "no answer"
        yield label | {"method": ""}, Rows(asked, graded, draws, none)
        mine: Any = told[(told["dataset"] == run["dataset"]) & (told["model"] == run["model"])]
        for method, part in mine.groupby("method", sort=False):
            every = asked.merge(part, on=KEYS, how="left", validate="one_to_one")
            why = every["missing"].astype(object)
            why = why.where(every["method"].notna(), "no row in the table")
            every = every.assign(missing=why)
            known = every["confidence"].notna().to_numpy()
            yield label | {"method": str(method)}, Rows(every, known, draws)


def shared_rows(confidence: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """The keys (case_id, dataset, level, model) for which all ``methods`` have a confidence.

    They are sorted. ``ValueError`` for no methods or a method that the table does not hold.
    """
    need(confidence, [*KEYS, "method", "confidence"], "confidence")
    wanted, held = set(methods), set(confidence["method"])
    if not wanted or not wanted <= held:
        raise ValueError(
            f"methods must be one or more of {sorted(held)}; received {sorted(wanted)}"
        )
    known = confidence[confidence["method"].isin(list(wanted)) & confidence["confidence"].notna()]
    counts = known.groupby(KEYS, observed=True)["method"].nunique().reset_index()
    return counts.loc[counts["method"] == len(wanted), KEYS].reset_index(drop=True)
