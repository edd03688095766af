"""Makes one long table of all metrics of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from trustlab.metrics import estimate as engine
from trustlab.metrics.bands import rising_band
from trustlab.metrics.calibration import CALIBRATION, ece_by_chance
from trustlab.metrics.correlation import MAX_EXACT, OVER_LEVELS, PERMUTATION_P
from trustlab.metrics.discrimination import RANKING, STRATIFIED, chance
from trustlab.metrics.estimate import (
    NAN,
    Metric,
    Rows,
    at_least,
    estimate,
    groups,
    mean,
    mean_share,
    rate,
)
from trustlab.metrics.schema import need, refuse, table
from trustlab.processes import spread
from trustlab.records import CUT, SEVERAL

KEYS = ["case_id", "dataset", "level", "model"]
ROW = ["case_id", "level"]


@dataclass(frozen=True)
class Tables:
    """The two tables of a run to measure: one row for each case, level, model (and method)."""

    answers: pd.DataFrame
    confidence: pd.DataFrame


def checked_answers(answers: pd.DataFrame) -> pd.DataFrame:
    """The answers with ``correct`` 0 or 1 and four flags: ``readable``, ``failed``, ``cut``,
    ``ungraded``.
    An unreadable answer is wrong; the ``correct`` of a failed (none was had; ``cut``: out of
    tokens, or in doubt) or ungraded one is 0 and must not be used. ``ValueError`` on missing
    columns, repeated keys, or a ``correct`` lacking without a reason."""
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
    cut = failed & reason.astype(str).str.startswith((CUT, SEVERAL))
    states = {"readable": readable, "failed": failed, "cut": cut, "ungraded": ungraded}
    return table.assign(correct=correct, **states)


def joined(answers: pd.DataFrame, confidence: pd.DataFrame) -> pd.DataFrame:
    """Confidence rows with ``correct`` beside them; no value where the answer could not be read or
    had.
    ``answers``: of :func:`checked_answers`; ``missing`` says why a value is NaN. ``ValueError`` on
    missing columns, repeated keys, infinite confidences, or answers that are lacking."""
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
    return _judged(table)


def _judged(table: Any) -> pd.DataFrame:
    """The rows without a confidence where the answer could not be read or graded, and why."""
    readable, failed, ungraded = (
        table[name].to_numpy(bool) for name in ("readable", "failed", "ungraded")
    )
    missing = table["missing"].astype(object).fillna("").to_numpy()
    why = np.where(readable | failed, missing, "unreadable answer").astype(object)
    untold = why == ""
    why[failed & untold] = "failed answer"
    why[ungraded & untold] = "ungraded answer"
    confidence = table["confidence"].where(readable & ~ungraded)
    return table.assign(confidence=confidence, missing=pd.Series(why, table.index, object))


def rows_of_methods(
    answers: pd.DataFrame, confidence: pd.DataFrame
) -> Iterator[tuple[dict[str, Any], Rows]]:
    """(model dataset method own_rows, rows) of a run: the answers themselves (method ''), then each
    method.

    - ``asked``: every answer, with ``correct confidence level bound failed ungraded readable
      missing`` and further columns of ``answers``; ``known``: those with a confidence (method '': a
      grade), of :func:`shared_rows` alone, so that methods stand side by side on the same answers.
      A method that is not among those has ``own_rows``.
    - ``ValueError`` as :func:`checked_answers` and :func:`joined`.
    """
    table = checked_answers(answers)
    of_methods = ["method", "confidence", "bound", "missing"]
    more = [name for name in answers.columns if name not in {*table.columns, *of_methods}]
    whole = table.assign(**{name: answers[name] for name in more})
    texts = whole.select_dtypes("string").columns  # parts are cut out often: of objects at once
    whole = whole.astype(dict.fromkeys(texts, object))
    need(confidence, [*KEYS, *of_methods], "confidence")
    places = _places(confidence)  # a method at a time: of a large run all together fill the memory
    known = set(whole[["dataset", "model"]].itertuples(index=False, name=None))
    for key in places:
        if key[:2] not in known:
            joined(table, confidence.iloc[places[key]])  # which tells what is wrong
    for run, asked in groups(whole, ["dataset", "model"]):
        label = {"model": str(run["model"]), "dataset": str(run["dataset"])}
        graded = ~(asked["failed"] | asked["ungraded"]).to_numpy()
        none = "no graded answer" if asked["ungraded"].any() else "no answer"
        if "missing" in answers and len(told := answers.loc[asked.index, "missing"].unique()) == 1:
            none = str(told[0] or none)
        yield label | {"method": "", "own_rows": False}, Rows(asked, graded, none=none)
        place = pd.MultiIndex.from_frame(asked[ROW])
        judged = graded & asked["readable"].to_numpy()
        parts, at, has = {}, {}, {}
        for *who, method in places:
            if who == [run["dataset"], run["model"]]:
                parts[method] = part = confidence.iloc[places[*who, method]]
                at[method] = place.get_indexer(pd.MultiIndex.from_frame(_rows_of(part)))
                has[method] = np.zeros(len(asked), bool)
                has[method][at[method]] = part["confidence"].notna()
                has[method] &= judged
        shared, members = shared_rows(has, judged, asked["correct"].eq(1).to_numpy())
        for method, part in parts.items():
            every = _beside(asked, at[method], part)
            own = method not in members and bool(has[method].any())
            known = shared if method in members else has[method]
            yield label | {"method": str(method), "own_rows": own}, Rows(every, known)


LEAST_SHARED = 0.9
"""Share of the right, and of the wrong answers that shared rows keep."""


def shared_rows(
    has: Mapping[str, np.ndarray], judged: np.ndarray, correct: np.ndarray
) -> tuple[np.ndarray, list[str]]:
    """The answers on which methods stand side by side (n,), and the methods that do.

    - ``has``: method -> the answers (n,) with a value; ``judged``: those read and graded.
    - Methods enter by the number of their values, equal ones by name, while the answers that all
      have keep :data:`LEAST_SHARED` of the right and of the wrong ones.
    """
    shared, members = judged, []
    for method in sorted(has, key=lambda name: (-has[name].sum(), name)):
        rows = shared & has[method]
        kept = [
            (rows & of).sum() >= LEAST_SHARED * (judged & of).sum() for of in (correct, ~correct)
        ]
        if all(kept):
            shared = rows
            members.append(method)
    return shared, members


def _rows_of(part: Any) -> pd.DataFrame:
    return part[ROW].astype({"level": int})


def _beside(asked: pd.DataFrame, at: np.ndarray, part: Any) -> pd.DataFrame:
    """``asked`` with what :func:`joined` says of one method's rows, :data:`NO_ROW` where it has
    none; ``at``: their places in it, -1 for none. ``ValueError`` as that."""
    if (at < 0).any() or len(np.unique(at)) < len(at) or np.isinf(part["confidence"]).any():
        joined(asked, part)  # which tells what is wrong
    types = {"method": object, "confidence": float, "bound": object, "missing": object}
    values = part[list(types)].astype(types).set_axis(at).reindex(range(len(asked)))
    every = _judged(asked.assign(**values.set_axis(asked.index)))
    every.loc[~np.isin(np.arange(len(asked)), at), "missing"] = NO_ROW
    return every.copy()  # in one piece


NO_ROW = "no row in the table"


def _places(confidence: pd.DataFrame) -> dict[Any, np.ndarray]:
    """(dataset, model, method) -> the places of its rows, in the table's order."""
    by = confidence.groupby(["dataset", "model", "method"], sort=False, observed=True, dropna=False)
    return dict(sorted(by.indices.items(), key=lambda item: item[1][0]))


CHANCE = ["chance", "chance_low", "chance_high"]
BAND = ["chance_low", "chance", "chance_high"]
"""The same in the order of a band: low end, middle, high end."""
COLUMNS = ["model", "dataset", "method", "level"]
FLAT = "accuracy or mean confidence is the same at every level"


def metrics_table(
    run: Any,
    scales: Mapping[str, str],
    *,
    min_per_class: int = 10,
    n_jobs: int = 1,
) -> pd.DataFrame:
    """Accuracy, mean confidence, discrimination, correlation and calibration of every method.

    - One row for each value, with the columns of :mod:`trustlab.metrics.schema`. ``run`` has the
      two tables of :class:`Tables`.
    - ``level``: '1' to '100', 'pooled' (all rows), 'within' (pairs of answers of the
      same level) or 'across' (accuracy against mean confidence over the levels).
    - ``low`` and ``high``: :func:`~trustlab.metrics.estimate.estimate`, with all levels of a case
      together.
    - ``chance``: 0.5 for AUROC, the accuracy for AUPRC, :func:`.rising_band` for a correlation,
      :func:`.ece_by_chance` for ECE; ``chance_low`` and ``chance_high``: the middle 95 %.
    - ``p`` of a correlation: exact, two-sided, by permutation, up to 8 levels.
    - Accuracy has method '' and counts an unreadable answer as wrong. Where answers were cut off or
      unreadable, ``accuracy_asked`` counts all (one cut off is not right), ``accuracy_read`` only
      those read.
    - All else uses the ``n`` answers that the methods share (:func:`shared_rows`), or with
      ``own_rows`` those that the method has. An answer not had or not graded is left out of all.
    - ``least_sure``: AUROC and AUPRC, pooled and level-stratified, of all graded answers, where a
      missing confidence is the least sure.
    - AUROC and AUPRC are withheld below ``min_per_class`` right or wrong answers. Brier and ECE are
      given where ``scales`` (method -> scale) says 'probability'.
    - ``ValueError`` as in :func:`rows_of_methods`.
    """
    every = rows_of_methods(run.answers, run.confidence)
    least = max(min_per_class, 1)
    calls = (
        (label, rows, scales.get(label["method"]) == "probability", least) for label, rows in every
    )
    done = spread(_lines, calls, n_jobs)
    more = ["own_rows", "least_sure", "n_rarer", *CHANCE, "p"]
    return table([line for lines in done for line in lines], COLUMNS, more)


def _lines(label: dict[str, str], rows: Rows, is_probability: bool, least: int) -> list[dict]:
    made = _of_method(rows, is_probability, least) if label["method"] else _accuracy(rows)
    try:
        return [label | line for line in made]
    except ValueError as error:
        raise ValueError(f"method {label['method']!r}, scale 'probability': {error}") from error


def _accuracy(rows: Rows) -> Iterator[dict[str, Any]]:
    """Accuracy with each of its denominators that differ."""
    each = {"accuracy": rows}
    cut, unread = rows.all("cut"), rows.known & ~rows.all("readable")
    if cut.any() or unread.any():
        for name, known in (("asked", rows.known | cut), ("read", rows.known & ~unread)):
            each[f"accuracy_{name}"] = replace(rows, known=known)
    for name, part_of in each.items():
        for level, part in {**part_of.by("level"), "pooled": part_of}.items():
            yield {"metric": name, "level": str(level), **estimate(part, rate("correct"))}


def _of_method(rows: Rows, is_probability: bool, least: int) -> Iterator[dict[str, Any]]:
    """Every metric of one method: mean confidence, discrimination, correlation, calibration."""
    levels = rows.by("level")
    of = mean_share if is_probability else mean
    for level, part in levels.items():
        found = estimate(part, of("confidence"))
        yield {"metric": "mean_confidence", "level": str(level), **found}
    few, everyone = at_least(least), missing_least_sure(rows)
    for metric, statistic in RANKING.items():
        for level, part in {"pooled": rows, **levels}.items():
            found = estimate(part, Metric(statistic, few))
            found |= {} if few(part) else {"chance": chance(metric, part)}
            found |= {"least_sure": statistic(everyone)[0]} if level == "pooled" else {}
            yield {"metric": metric, "level": str(level), **found}
        found = stratified(rows, metric, least)
        found["least_sure"] = STRATIFIED[metric](everyone)[0]
        yield {"metric": metric, "level": "within", **found}
    yield from _across(rows)
    if is_probability:
        for name in ("brier", "ece"):
            found = estimate(rows, CALIBRATION[name])
            if name == "ece":
                band = ece_by_chance(rows["correct"], rows["confidence"], rows.case)
                found |= dict(zip(BAND, band, strict=True))
            yield {"metric": name, "level": "pooled", **found}


def missing_least_sure(rows: Rows) -> Rows:
    """All graded answers by the rank of their confidence, -1 where it is missing; none where all
    are."""
    has = ~np.isnan(rows.all("confidence").astype(float))
    ranks = np.full(len(has), -1.0)
    ranks[has] = np.unique(replace(rows, known=has).ranked, return_inverse=True)[1]
    graded = ~(rows.all("failed") | rows.all("ungraded")).astype(bool) & has.any()
    every = rows.asked.drop(columns="method").assign(confidence=ranks)
    return Rows(every, graded)


def stratified(rows: Rows, metric: str, least: int = 10) -> dict[str, Any]:
    """The estimate of "auroc" or "auprc", level-stratified, and what ``chance`` would give.
    Answers of the levels that have both classes count; withheld below ``least`` right or wrong
    there.
    """
    levels, few = rows.by("level"), at_least(least)
    mixed = [level for level, part in levels.items() if part.rarer]
    inside = rows.where("level", mixed) if len(rows) else rows
    left_out = ", ".join(str(level) for level in levels if level not in mixed)
    note = f"one class only at level {left_out}: left out" if left_out else ""
    none = few(inside)
    found = estimate(inside, Metric(STRATIFIED[metric], few), note="" if none else note)
    return found if none else found | {"chance": chance(metric, inside, "level")}


def _across(rows: Rows) -> Iterator[dict[str, Any]]:
    """Accuracy against mean confidence over the levels, both on the rows the method has."""
    parts = [part for part in rows.by("level").values() if len(part)]
    means = [[float(part[c].mean()) for part in parts] for c in ("correct", "confidence")]
    short = "fewer than 3 levels" if len(parts) < 3 else ""
    for metric, over_rows in OVER_LEVELS.items():
        found = estimate(rows, Metric(engine.across(over_rows), lambda _: short, FLAT))
        if not np.isnan(found["value"]):
            found |= dict(zip(BAND, rising_band(means[0], metric), strict=True))
            found["p"] = PERMUTATION_P[metric](*means) if len(parts) <= MAX_EXACT else NAN
        yield {"metric": metric, "level": "across", **found}
