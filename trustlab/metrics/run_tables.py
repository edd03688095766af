"""Makes one long table of all metrics of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from trustlab.metrics import estimate as engine
from trustlab.metrics.bands import rising_band
from trustlab.metrics.calibration import CALIBRATION, ece_by_chance
from trustlab.metrics.correlation import MAX_EXACT, OVER_LEVELS, PERMUTATION_P
from trustlab.metrics.discrimination import RANKING, STRATIFIED, chance
from trustlab.metrics.estimate import (
    NAN,
    Line,
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
OF_METHOD = ["method", "confidence", "bound", "missing"]
"""The columns of confidences beside :data:`KEYS`."""
NO_ROW = "no row in the table"
LEAST_SHARED = 0.9
"""Share of the right, and of the wrong answers that shared rows keep."""


# (dataset, model) -> method -> places of its rows
Places = dict[Any, dict[Any, np.ndarray]]


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
    table = answers[[*KEYS, "answer", "correct"]].assign(
        level=answers["level"].astype(int)
    )
    refuse(
        table,
        table.duplicated(KEYS),
        "answers must hold each case, level and model once",
    )
    correct = table["correct"]
    readable = table["answer"].notna()
    failed = ~readable & correct.isna()
    reasons: Any = pd.Series("", answers.index)
    if "missing" in answers:
        reasons = answers["missing"]
    reasons = reasons.astype(object).fillna("")
    ungraded = readable & correct.isna() & (reasons != "")
    is_bad = ~failed & ~ungraded & ~correct.isin([0, 1])
    must_be = "0 or 1, or NaN with no answer where none was had, or with a reason where ungraded"
    refuse(table, is_bad, f"correct must be {must_be}")
    return table.assign(
        correct=correct.where(readable & ~ungraded, 0).astype(int),
        readable=readable,
        failed=failed,
        cut=failed & reasons.astype(str).str.startswith((CUT, SEVERAL)),
        ungraded=ungraded,
    )


def joined(answers: pd.DataFrame, confidence: pd.DataFrame) -> pd.DataFrame:
    """Confidence rows with ``correct`` beside them; no value where there is no readable answer.
    ``answers``: of :func:`checked_answers`; ``missing`` says why a value is NaN. ``ValueError`` on
    missing columns, repeated keys, infinite confidences, or answers that are lacking."""
    columns = [*KEYS, *OF_METHOD]
    need(confidence, columns, "confidence")
    table: Any = confidence[columns].astype({"level": int, "confidence": float})
    is_repeated = table.duplicated([*KEYS, "method"])
    refuse(
        table,
        is_repeated,
        "confidence must hold each case, level, model and method once",
    )
    is_infinite = np.isinf(table["confidence"])
    refuse(table, is_infinite, "a confidence must be finite, or NaN where missing")
    graded = answers[[*KEYS, "correct", "readable", "failed", "ungraded"]]
    table = table.merge(graded, on=KEYS, how="left", validate="many_to_one")
    refuse(table, table["correct"].isna(), "every confidence needs its row in answers")
    return _without_unjudged(table)


def _without_unjudged(table: Any) -> pd.DataFrame:
    """The rows without a confidence where the answer could not be read or graded, and why."""
    readable = table["readable"].to_numpy(bool)
    failed = table["failed"].to_numpy(bool)
    ungraded = table["ungraded"].to_numpy(bool)
    missing = table["missing"].astype(object).fillna("").to_numpy()
    reasons = np.where(readable | failed, missing, "unreadable answer").astype(object)
    has_no_reason = reasons == ""
    reasons[failed & has_no_reason] = "failed answer"
    reasons[ungraded & has_no_reason] = "ungraded answer"
    confidence = table["confidence"].where(readable & ~ungraded)
    return table.assign(
        confidence=confidence, missing=pd.Series(reasons, table.index, object)
    )


class MethodPart(NamedTuple):
    """One method's rows of a run, and which of its answers they are of."""

    confidence: Any
    """Its rows in the table."""
    places: np.ndarray
    """The place of each row among the answers, -1 for none."""
    has_value: np.ndarray
    """Which answers (n,) have a confidence and are judged."""


def rows_of_methods(
    answers: pd.DataFrame, confidence: pd.DataFrame
) -> Iterator[tuple[Line, Rows]]:
    """(model dataset method own_rows, rows) of a run: the answers themselves (method ''), then each
    method.

    - ``asked``: every answer, with ``correct confidence level bound failed ungraded readable
      missing`` and further columns of ``answers``; ``known``: those with a confidence (method '': a
      grade), of :func:`shared_rows` alone, so that methods stand side by side on the same answers.
      A method that is not among those has ``own_rows``.
    - ``ValueError`` as :func:`checked_answers` and :func:`joined`.
    """
    checked = checked_answers(answers)
    more = [
        name for name in answers.columns if name not in {*checked.columns, *OF_METHOD}
    ]
    table = checked.assign(**{name: answers[name] for name in more})
    # parts are cut out often: of objects at once
    texts = table.select_dtypes("string").columns
    table = table.astype(dict.fromkeys(texts, object))
    need(confidence, [*KEYS, *OF_METHOD], "confidence")
    # a method at a time: of a large run all together fill the memory
    places = _places(confidence)
    runs = set(table[["dataset", "model"]].itertuples(index=False, name=None))
    for run_key, places_by_method in places.items():
        if run_key not in runs:
            for rows in places_by_method.values():
                joined(checked, confidence.iloc[rows])  # which refuses them
    for run, run_answers in groups(table, ["dataset", "model"]):
        label = {"model": str(run["model"]), "dataset": str(run["dataset"])}
        is_graded = ~(run_answers["failed"] | run_answers["ungraded"]).to_numpy()
        none = _why_ungraded(run_answers, answers)
        yield (
            label | {"method": "", "own_rows": False},
            Rows(run_answers, is_graded, none=none),
        )
        is_judged = is_graded & run_answers["readable"].to_numpy()
        index = pd.MultiIndex.from_frame(run_answers[ROW])
        places_by_method = places.get((run["dataset"], run["model"]), {})
        parts = {
            method: _part(confidence.iloc[rows], index, is_judged)
            for method, rows in places_by_method.items()
        }
        has_value = {method: part.has_value for method, part in parts.items()}
        is_right = run_answers["correct"].eq(1).to_numpy()
        shared, members = shared_rows(has_value, is_judged, is_right)
        for method, part in parts.items():
            own_rows = False
            measured = shared
            if method not in members:
                own_rows = bool(part.has_value.any())
                measured = part.has_value
            rows = Rows(_beside(run_answers, part), measured)
            yield label | {"method": str(method), "own_rows": own_rows}, rows


def _why_ungraded(run_answers: Any, answers: pd.DataFrame) -> str:
    """Why no answer of a run is graded: their reason, where they have one in common."""
    default = "no answer"
    if run_answers["ungraded"].to_numpy().any():
        default = "no graded answer"
    if "missing" not in answers:
        return default
    reasons = answers.loc[run_answers.index, "missing"].unique()
    if len(reasons) > 1:
        return default
    return str(reasons[0] or default)


def _part(confidence: Any, index: pd.MultiIndex, is_judged: np.ndarray) -> MethodPart:
    """One method's rows of a run, with their places in the ``index`` of its answers."""
    keys = confidence[ROW].astype({"level": int})
    own_index = pd.MultiIndex.from_frame(keys)
    places = index.get_indexer(own_index)
    is_measured = confidence["confidence"].notna()
    has_value = np.zeros(len(index), bool)
    has_value[places] = is_measured
    return MethodPart(confidence, places, has_value & is_judged)


def shared_rows(
    has: Mapping[str, np.ndarray], judged: np.ndarray, correct: np.ndarray
) -> tuple[np.ndarray, list[str]]:
    """The answers on which methods stand side by side (n,), and the methods that do.

    - ``has``: method -> the answers (n,) with a value; ``judged``: those read and graded.
    - Methods enter by the number of their values, equal ones by name, while the answers that all
      have keep :data:`LEAST_SHARED` of the right and of the wrong ones.
    """
    right = judged & correct
    wrong = judged & ~correct
    least_right = LEAST_SHARED * right.sum()
    least_wrong = LEAST_SHARED * wrong.sum()
    shared = judged
    members = []
    for method in sorted(has, key=lambda name: (-has[name].sum(), name)):
        still_shared = shared & has[method]
        n_right = (still_shared & right).sum()
        n_wrong = (still_shared & wrong).sum()
        if n_right >= least_right and n_wrong >= least_wrong:
            shared = still_shared
            members.append(method)
    return shared, members


def _beside(run_answers: Any, part: MethodPart) -> pd.DataFrame:
    """The answers with what :func:`joined` gives of one method's rows, :data:`NO_ROW` where it has
    none. ``ValueError`` as that."""
    confidence, places, _ = part
    has_stranger = (places < 0).any()
    is_repeated = len(np.unique(places)) < len(places)
    is_infinite = np.isinf(confidence["confidence"]).any()
    if has_stranger or is_repeated or is_infinite:
        joined(run_answers, confidence)  # which refuses them
    n_answers = len(run_answers)
    types = {"method": object, "confidence": float, "bound": object, "missing": object}
    values = confidence[OF_METHOD].astype(types).set_axis(places)
    in_order = values.reindex(range(n_answers)).set_axis(run_answers.index)
    table = _without_unjudged(run_answers.assign(**in_order))
    has_row = np.isin(np.arange(n_answers), places)
    table.loc[~has_row, "missing"] = NO_ROW
    return table.copy()  # in one piece


def _places(confidence: pd.DataFrame) -> Places:
    """Where the rows of each run and method stand, in the table's order."""
    keys = ["dataset", "model", "method"]
    groups_of_rows: Any = confidence.groupby(
        keys, sort=False, observed=True, dropna=False
    )
    in_order = sorted(groups_of_rows.indices.items(), key=lambda item: item[1][0])
    places: Places = {}
    for (dataset, model, method), rows in in_order:
        of_run = places.setdefault((dataset, model), {})
        of_run[method] = rows
    return places


CHANCE = ["chance", "chance_low", "chance_high"]
BAND = ["chance_low", "chance", "chance_high"]
"""The columns of :data:`CHANCE` in the order of a band: low end, middle, high end."""
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
    least = max(min_per_class, 1)
    calls = (
        (label, rows, scales.get(label["method"]) == "probability", least)
        for label, rows in rows_of_methods(run.answers, run.confidence)
    )
    lines_of_methods = spread(_method_lines, calls, n_jobs)
    more = ["own_rows", "least_sure", "n_rarer", *CHANCE, "p"]
    return table(chain.from_iterable(lines_of_methods), COLUMNS, more)


def _method_lines(
    label: dict[str, str], rows: Rows, is_probability: bool, least: int
) -> list[Line]:
    """The lines of one method, or of the answers themselves (method '')."""
    lines = _accuracy(rows)
    if label["method"]:
        lines = _of_method(rows, is_probability, least)
    try:
        return [label | line for line in lines]
    except ValueError as error:
        raise ValueError(
            f"method {label['method']!r}, scale 'probability': {error}"
        ) from error


def _accuracy(rows: Rows) -> Iterator[Line]:
    """Accuracy with each of its denominators that differ."""
    rows_by_metric = {"accuracy": rows}
    is_cut = rows.all("cut")
    is_unread = rows.known & ~rows.all("readable")
    if is_cut.any() or is_unread.any():
        rows_by_metric |= {
            "accuracy_asked": replace(rows, known=rows.known | is_cut),
            "accuracy_read": replace(rows, known=rows.known & ~is_unread),
        }
    for name, counted in rows_by_metric.items():
        for level, part in {**counted.by("level"), "pooled": counted}.items():
            yield {
                "metric": name,
                "level": str(level),
                **estimate(part, rate("correct")),
            }


def _of_method(rows: Rows, is_probability: bool, least: int) -> Iterator[Line]:
    """Every metric of one method: mean confidence, discrimination, correlation, calibration."""
    mean_confidence = mean("confidence")
    if is_probability:
        mean_confidence = mean_share("confidence")
    for level, part in rows.by("level").items():
        line = estimate(part, mean_confidence)
        yield {"metric": "mean_confidence", "level": str(level), **line}
    yield from _discrimination(rows, least)
    yield from _across(rows)
    if is_probability:
        yield from _calibration(rows)


def _discrimination(rows: Rows, least: int) -> Iterator[Line]:
    """AUROC and AUPRC: pooled, by level and level-stratified."""
    too_few = at_least(least)
    all_graded = missing_least_sure(rows)
    for metric, statistic in RANKING.items():
        for level, part in {"pooled": rows, **rows.by("level")}.items():
            line = estimate(part, Metric(statistic, too_few))
            if not too_few(part):
                line["chance"] = chance(metric, part)
            if level == "pooled":
                line["least_sure"] = statistic(all_graded)[0]
            yield {"metric": metric, "level": str(level), **line}
        line = stratified(rows, metric, least)
        line["least_sure"] = STRATIFIED[metric](all_graded)[0]
        yield {"metric": metric, "level": "within", **line}


def _calibration(rows: Rows) -> Iterator[Line]:
    """Brier score and ECE, with the ECE of the same confidences were they calibrated."""
    brier = estimate(rows, CALIBRATION["brier"])
    yield {"metric": "brier", "level": "pooled", **brier}
    yield {"metric": "ece", "level": "pooled", **calibration_error(rows)}


def calibration_error(rows: Rows) -> Line:
    """The ECE, and what chance gives."""
    line = estimate(rows, CALIBRATION["ece"])
    band = ece_by_chance(rows["correct"], rows["confidence"], rows.case)
    return line | dict(zip(BAND, band, strict=True))


def missing_least_sure(rows: Rows) -> Rows:
    """All graded answers by the rank of their confidence, -1 where it is missing; none where all
    are."""
    confidence = rows.all("confidence").astype(float)
    has_value = ~np.isnan(confidence)
    with_value = replace(rows, known=has_value)
    _, ranks_of_values = np.unique(with_value.ranked, return_inverse=True)
    ranks = np.full(len(confidence), -1.0)
    ranks[has_value] = ranks_of_values
    is_ungraded = rows.all("failed") | rows.all("ungraded")
    is_graded = ~is_ungraded.astype(bool)
    table = rows.asked.drop(columns="method").assign(confidence=ranks)
    return Rows(table, is_graded & has_value.any())


def stratified(rows: Rows, metric: str, least: int = 10) -> Line:
    """The estimate of "auroc" or "auprc", level-stratified, and what ``chance`` would give.
    Answers of the levels that have both classes count; withheld below ``least`` right or wrong
    there.
    """
    too_few = at_least(least)
    mixed = rows.mixed_levels
    inside = rows
    if len(rows):
        inside = rows.where("level", mixed)
    left_out = [level for level in rows.by("level") if level not in mixed]
    note = note_of_left_out(left_out)
    line = estimate(inside, Metric(STRATIFIED[metric], too_few), note=note)
    if not too_few(inside):
        line["chance"] = chance(metric, inside, "level")
    return line


def note_of_left_out(levels: Sequence[Any]) -> str:
    """The note on levels of one class, which are left out of stratified pairs, or ''."""
    if not levels:
        return ""
    return f"one class only at level {', '.join(map(str, levels))}: left out"


def too_few_levels(rows: Rows) -> str:
    """Why rows have no correlation over the levels, or ''."""
    n_levels = sum(len(part) > 0 for part in rows.by("level").values())
    if n_levels < 3:
        return "fewer than 3 levels"
    return ""


def _across(rows: Rows) -> Iterator[Line]:
    """Accuracy against mean confidence over the levels, both on the rows the method has."""
    accuracies = engine.level_means(rows, "correct")
    confidences = engine.level_means(rows, "confidence")
    for metric, correlation in OVER_LEVELS.items():
        statistic = engine.across(correlation)
        line = estimate(rows, Metric(statistic, too_few_levels, FLAT))
        if not np.isnan(line["value"]):
            band = rising_band(accuracies, metric)
            line |= dict(zip(BAND, band, strict=True))
            line["p"] = NAN
            if len(accuracies) <= MAX_EXACT:
                line["p"] = PERMUTATION_P[metric](accuracies, confidences)
        yield {"metric": metric, "level": "across", **line}
