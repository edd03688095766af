"""The columns that tables of numbers have: name, type, unit and meaning, written down once.
Every table is long, a number a row: what it is about (:data:`KEYS`), the ``metric``, its ``value``,
interval and counts; ``missing`` says why something is not there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike


class Column(NamedTuple):
    """A column's ``type``, its ``unit`` ('' where it has none) and what it means."""

    type: str
    unit: str
    meaning: str


KEYS = {
    "model": Column("text", "", "the model that answered, or whom it is about"),
    "dataset": Column("text", "", "the data set"),
    "level": Column("text", "%", "share of the case told, or pooled, within, across, all"),
    "condition": Column("text", "", "what was changed in what is told"),
    "configuration": Column("text", "", "the team of doctors"),
    "safety": Column("flag", "", "whether reviewers check the plan"),
    "formulation": Column("text", "", "whose formulas of the trust indices"),
    "variant": Column("text", "", "a setting that was changed"),
    "n_doctors": Column("count", "doctors", "doctors of the team"),
    "w_accuracy": Column("number", "share", "weight of accuracy in ETI"),
    "w_agreement": Column("number", "share", "weight of agreement, 1 - CDR, in ETI"),
    "w_rdc": Column("number", "share", "weight of RDC in ETI"),
    "kind": Column("text", "", "prescription or test"),
    "rule_kind": Column("text", "", "what the rule hangs on"),
    "set": Column("text", "", "the set of cases"),
    "told": Column("text", "", "one patient, two at once, or their difference"),
    "policy": Column("text", "", "the rule that stops a consultation"),
    "threshold_low": Column("number", "", "lowest threshold of the folds; infinite: never early"),
    "threshold_high": Column("number", "", "highest threshold of the folds"),
    "questions": Column("count", "questions", "questions asked"),
    "ended": Column("text", "", "why a consultation ended"),
    "tries": Column("count", "", "which of the doctor's tries a question was; 1 is the greedy one"),
    "method": Column("text", "", "the confidence method; '' for the answers themselves"),
    "family": Column("text", "", "the method's family"),
    "role": Column("text", "", "method, or a reference curve"),
    "grader": Column("text", "", "who judged the answers"),
    "choice": Column("text", "", "the kind of choice that was made otherwise"),
    "option": Column("text", "", "the choice made"),
    "how": Column("text", "", "the confidence as given, or calibrated how"),
    "quantity": Column("text", "", "accuracy, or the method whose mean confidence it is"),
    "first": Column("text", "", "the first of a pair"),
    "second": Column("text", "", "the second of a pair"),
    "against": Column("text", "", "the reference of a difference"),
    "coverage": Column("number", "share", "share of the answers given, the surest first"),
    "threshold": Column("number", "", "confidence from which on something is done"),
    "n_samples": Column("count", "samples", "samples per answer"),
    "temperature": Column("number", "", "temperature of the samples"),
    "n_passages": Column("count", "passages", "passages that are looked up"),
    "bin": Column("count", "", "place of a group of confidences, from the lowest"),
    "n_tokens": Column("count", "tokens", "length of the answer"),
    "position": Column("count", "", "place of a token, from 1"),
    "prior": Column("number", "share", "how common the answered condition is"),
    "correct": Column("flag", "", "whether the answers are right"),
    "confidence": Column("number", "", "the confidence at which a curve is read"),
}
"""What a row is about."""
MEASURED = {
    "metric": Column("text", "", "what was measured"),
    "value": Column("number", "the metric's", "its value in the sample"),
    "reference": Column("number", "the metric's", "the reference's value on the same rows"),
    "difference": Column("number", "the metric's", "value minus reference"),
    "low": Column("number", "the metric's", "lower end of the 95 % interval over cases"),
    "high": Column("number", "the metric's", "upper end"),
    "p": Column("number", "", "two-sided p of the value, or difference, being 0"),
    "p_holm": Column("number", "", "p after Holm over the rows compared together"),
    "standard_error": Column("number", "the metric's", "standard deviation over the draws"),
    "chosen_in": Column("number", "share", "share of draws in which this one would be the best"),
    "chance": Column("number", "the metric's", "value of a confidence that knows nothing"),
    "chance_low": Column("number", "the metric's", "lower end of what chance gives"),
    "chance_high": Column("number", "the metric's", "upper end of what chance gives"),
    "n": Column("count", "rows", "rows behind the value"),
    "n_cases": Column("count", "cases", "cases behind the value"),
    "n_answers": Column("count", "answers", "answers of which n were chosen"),
    "n_methods": Column("count", "methods", "methods that are ordered, or the best chosen from"),
    "left_out": Column("text", "", "methods left out, with too few values"),
    "n_shared": Column("count", "rows", "rows that all compared have"),
    "n_rarer": Column("count", "rows", "those of the rarer kind, right or wrong"),
    "n_hits": Column("count", "rows", "those of the n that a share counts"),
    "n_missing": Column("count", "rows", "rows that should have a value and have none"),
    "n_zero": Column("count", "rows", "rows whose mean is 0: they have no variation of their own"),
    "n_same": Column("count", "rows", "rows left out, since two of their conditions show one text"),
    "cases_needed": Column("number", "cases", "sample size for 80 % power"),
    "both_right": Column("count", "rows", "answers that both graders call right"),
    "only_first": Column("count", "rows", "answers that only the first calls right"),
    "only_second": Column("count", "rows", "answers that only the second calls right"),
    "both_wrong": Column("count", "rows", "answers that both call wrong"),
    "own_rows": Column("flag", "", "measured on rows of its own, not on those all share"),
    "winner": Column("text", "", "who has the highest value, or tie"),
    "tied": Column("names", "", "those that share it"),
    "margin": Column("number", "the metric's", "the highest value less the next"),
    "proxy": Column("text", "", "what stood in for what a formula asks for"),
    "missing": Column("text", "", "why a value or an interval is not there; what to know of it"),
}
"""What is said of it."""
COLUMNS = KEYS | MEASURED
LINE = ("metric", "value", "low", "high", "n", "n_cases", "n_missing", "missing")
"""What every table of numbers has."""


def table(
    lines: Iterable[Mapping[str, Any]], keys: Sequence[str], more: Sequence[str] = ()
) -> pd.DataFrame:
    """Lines as a table: ``keys``, then :data:`LINE` and ``more`` in this module's order.
    ``ValueError`` for a column that is not written down here; what a line lacks is missing."""
    if unknown := [name for name in (*keys, *more) if name not in COLUMNS]:
        raise ValueError(f"columns {unknown} are not in trustlab.metrics.schema")
    named = [name for name in COLUMNS if name in {*LINE, *more} - {*keys}]
    return pd.DataFrame(list(lines), columns=[*keys, *named])


def need(found: pd.DataFrame, names: Iterable[str], what: str = "the table") -> None:
    """``ValueError`` where a table, called ``what``, lacks any of the columns ``names``."""
    if lacking := [name for name in names if name not in found.columns]:
        raise ValueError(f"{what} lacks the columns {lacking}; it has {list(found.columns)}")


def refuse(found: pd.DataFrame, bad: ArrayLike, message: str) -> None:
    """``ValueError`` with ``message`` and the first row where ``bad`` (n,) is true, if any is."""
    rows = np.flatnonzero(np.asarray(bad, dtype=bool))
    if len(rows):
        received = f"received {found.iloc[rows[0]].to_dict()} and {len(rows) - 1} more"
        raise ValueError(f"{message}; {received}")
