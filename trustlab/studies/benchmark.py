"""01: level and length alone, calibration, abstention, graders, label noise, what is missing."""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportGeneralTypeIssues=false, reportReturnType=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, groupby
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import isotonic_regression
from scipy.stats import kendalltau, rankdata

from trustlab.collect import NOT_KNOWN
from trustlab.confidence import METHODS
from trustlab.confidence.registry import label as named
from trustlab.graders import Grader, open_grader
from trustlab.levels import views
from trustlab.metrics import formatted, missing_bounds, schema
from trustlab.metrics.agreement import COUNTS, agreement
from trustlab.metrics.audit import DATASETS, MODELS, published_table, with_printed
from trustlab.metrics.calibration import CALIBRATION, cross_fitted
from trustlab.metrics.correlation import OVER_LEVELS, partial_spearman_of
from trustlab.metrics.discrimination import RANKING
from trustlab.metrics.estimate import (
    NAN,
    Metric,
    Rows,
    Statistic,
    across,
    at_least,
    estimate,
    grouped,
    groups,
    mean,
    mean_of_known,
    measure,
    most_frequent,
    within,
)
from trustlab.metrics.missing_bounds import Bounds
from trustlab.metrics.paired import MIN_COVERAGE, family_name
from trustlab.metrics.run_tables import KEYS, RunTables, Tables, metrics_table, rows_of_methods
from trustlab.metrics.schema import need, table
from trustlab.metrics.selective import SELECTIVE, risk_at
from trustlab.metrics.ties import tied
from trustlab.records import LEVELS, Case

STRATA = {"pooled": "Pooled over levels", "within": "Level-stratified (mean over levels)"}


CHANCE, ALPHA = 0.5, 0.05
YARDSTICKS = ("baseline", "reference")
"""Families that methods are held against: no message ranks them."""


def _stratum(table: pd.DataFrame) -> str:
    """The lines that tell more: "within" where there are several levels, else "pooled"."""
    several = table.loc[table["level"].str.isdigit(), "level"].nunique() > 1
    return "within" if several else "pooled"


def _ranked(table: pd.DataFrame) -> Any:
    """The lines of confidence methods, without yardsticks and answers."""
    families = table["method"].map(family_name)
    return table[table["method"].ne("") & ~families.isin(YARDSTICKS)]


def _by_model(table: pd.DataFrame, say: Callable[[Any], str]) -> str:
    """A line for each model, which it names where there are several; '' where nothing is said."""
    told = [(key["model"], say(part)) for key, part in groups(table, ["model"])]
    alone = len(told) == 1
    return "\n".join(words if alone else f"{who}: {words}" for who, words in told if words)


def _listed(words: Sequence[str], most: int = 4) -> str:
    """Up to ``most`` of the words, and how many more there are."""
    more = [f"{len(words) - most} more"] if len(words) > most else []
    return ", ".join([*words[:most], *more])


def auroc_rows(table: pd.DataFrame, families: Mapping[str, str]) -> Any:
    """AUROC of each method beside its interval, of the lines of one data set in a
    ``metrics_table``; level-stratified too where there is more than one level.

    Several models stand in one row, a mark each, in the order of the first one. What no model has
    stands once; what one of them lacks, in the caption (:func:`lacking_words`).
    """
    from trustlab.plots.rows import Line, by_value, rows
    from trustlab.plots.style import FAMILY_LABELS

    last = _stratum(table)
    part: Any = table[table["level"].isin(["pooled", last])]
    models = list(dict.fromkeys(part["model"]))
    order = by_value(part[part["level"].eq(last) & part["model"].eq(models[0])])
    look: dict[str, Any] = {"families": families}
    if len(models) > 1:
        none = part.groupby("method")["value"].transform("count").eq(0)
        part = part[~(none & part.duplicated(["method", "level"]))]
        place = part["method"].map(families).map(list(FAMILY_LABELS).index)
        part = part.assign(family=part["method"].map(families).map(FAMILY_LABELS))
        part = part.iloc[place.argsort(kind="stable")]
        look = {"series": "model", "groups": "family"}
    return rows(
        part,
        **look,
        panels="level",
        ghost="pooled" if last == "within" else "",
        order=[*order, *(m for m in dict.fromkeys(part["method"]) if m not in order)],
        names=STRATA if last == "within" else {"pooled": "All answers"},
        lines=[Line(CHANCE, "chance 0.50")],
        columns={"value": "{value:.2f}", "n": "{n:,.0f}"},
        xlabel="AUROC, 0 to 1",
        reasons=len(models) == 1,
    )


def auroc_message(table: pd.DataFrame) -> str:
    """Of what :func:`auroc_rows` draws, for each model: the highest AUROC, how many methods are
    above chance, and what knowing the level alone is worth."""
    last = _stratum(table)
    where = "Highest AUROC within a level" if last == "within" else "Highest AUROC of all answers"

    def of_model(part: Any) -> str:
        mine = _ranked(part[part["level"].eq(last)])
        known = mine.dropna(subset="value")
        if mine.empty:
            return ""
        n_above = int(known["low"].gt(CHANCE).sum())
        above = f"; {n_above} of {len(known)} intervals lie above chance"
        return formatted.leading(mine) + (above if known["low"].notna().any() else "")

    told = _by_model(table, of_model)
    share = table[table["method"].eq(SHARE)].drop_duplicates("level")  # the first model's
    share = share.set_index("level").reindex(["pooled", "within"])
    if share["value"].notna().all() and last == "within":
        ends = [formatted.told(share.loc[at]) for at in ("pooled", "within")]
        told += f"\nInformation level alone: {ends[0]} pooled, {ends[1]} within a level"
    gap = "\n" if table["model"].nunique() > 1 else " "
    return f"{where}:{gap}{told}" if told else ""


def bayes_optimal_table(
    cases: Sequence[Case], levels: Sequence[int] = LEVELS, *, n_draws: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """How often the likeliest diagnosis is right where the chance of each is known: the accuracy
    that nobody can surpass but by luck.

    A line a data set and level, metric "bayes_optimal_accuracy", of the cases whose ``posteriors``
    tell it; the others are counted as missing. Near-ties (1e-6) go to the first by name.
    """
    rows = []
    for one in views(cases, levels):
        known, right = one.posterior, np.nan
        if known:
            best = max(known.values())
            first = min(name for name, chance in known.items() if chance > best - 1e-6)
            right = float(first in one.case.accepted)
        key = {"dataset": one.case.dataset, "case_id": one.case.case_id, "level": one.level}
        rows.append(key | {"right": right})
    how: dict[str, Any] = {"n_draws": n_draws, "seed": seed, "none": NOT_KNOWN}
    labelled = grouped(pd.DataFrame(rows), ["dataset", "level"], "right", **how)
    lines = measure(labelled, {"bayes_optimal_accuracy": mean("right")})
    return schema.table(list(lines), ["dataset", "level"])


RUN = ["model", "dataset"]
AREAS = {"auroc pooled": "pooled", "auroc within": "within"}
GIVEN: dict[str, tuple[str, ...]] = {
    "spearman per answer": (),
    "partial given level": ("level",),
    "partial given level and words": ("level", "n_words"),
    "partial given level, words and share": ("level", "n_words", "share"),
}
"""Of each rank correlation over answers, what is taken out of it."""
MEASURES = (*AREAS, *GIVEN)
SHARE = "information_level"
"""The method whose value is the share of the statements shown: cases differ in length."""
LACKING = {"n_words": "answers have no n_words", "share": f"{SHARE} has no value for every answer"}
LEFT = "nothing of the confidence or of correctness is left"


def information_adjusted_table(
    run: RunTables,
    metrics: pd.DataFrame | None = None,
    *,
    n_draws: int = 2000,
    seed: int = 0,
    min_per_class: int = 10,
) -> pd.DataFrame:
    """How each method tells right answers from wrong, and how much remains beyond level and length.

    - A row a model, data set, method and metric: "auroc pooled" and "auroc within", those of
      ``metrics`` (the run's ``metrics_table``, made here where it is not given); "spearman per
      answer" (rank correlation of confidence and correctness over answers, -1 to 1), and the same
      "partial given level", "... and words" (the words shown, ``answers``' column ``n_words``) and
      "... and share" (of the statements shown): :mod:`trustlab.metrics.correlation`.
    - Withheld below ``min_per_class`` right or wrong answers. The draws are those of
      ``metrics_table`` with that seed.
    - ``ValueError`` as ``metrics_table``, and for ``metrics`` of another run.
    """
    how: dict[str, Any] = {"n_draws": n_draws, "seed": seed}
    if metrics is None:
        metrics = metrics_table(run, min_per_class=min_per_class, scales={}, **how)
    areas = metrics[metrics["metric"] == "auroc"].set_index([*RUN, "method", "level"])
    areas = {key: found.to_dict() for key, found in areas.iterrows()}
    share = run.confidence.loc[run.confidence["method"] == SHARE, [*KEYS, "confidence"]]
    told = run.answers.assign(n_words=run.answers.get("n_words", np.nan))
    told = told.merge(share.rename(columns={"confidence": "share"}), on=KEYS, how="left")
    few = at_least(min_per_class)
    lines: list[dict[str, Any]] = []
    for label, rows in rows_of_methods(told, run.confidence, **how):
        for metric in MEASURES if label["method"] else ():
            if metric in AREAS:
                key = (*label.values(), AREAS[metric])
                if key not in areas:
                    raise ValueError(f"metrics lacks the AUROC of {key}: it is of another run")
                found = areas[key]
            else:
                given = GIVEN[metric]
                alike = LEFT if given else "all confidences are alike"
                why = partial(_withheld, given=given, few=few)
                found = estimate(rows, Metric(partial(_partial, given=given), why, alike))
            lines.append({**found, **label, "metric": metric})
    return schema.table(lines, [*RUN, "method"])


def _withheld(rows: Rows, given: tuple[str, ...], few: Any) -> str:
    lacking = [LACKING[name] for name in given if pd.isna(rows[name]).any()]
    return few(rows) or (lacking[0] if lacking else "")


def _partial(rows: Rows, given: tuple[str, ...]) -> np.ndarray:
    """The rank correlation of confidence and correctness given these columns, (1 + draws,)."""
    level = rows["level"] if given else np.zeros(len(rows))
    others = rows.table[list(given[1:])].to_numpy(dtype=float)
    answers = rows["correct"], rows["confidence"], level, others
    return partial_spearman_of(*answers, rows.totals)


RUN = ["model", "dataset"]
AS_GIVEN = "as given"
HOWS = (AS_GIVEN, "isotonic", "platt")
WITHOUT_CLASSES = ("brier", "ece")
"""Metrics that can be had of answers that are all right, or all wrong."""
MAX_POINTS = 60
"""Most points of a recalibration curve: more could not be told apart in a small panel."""
ONE_CLASS = "right answers alone, or wrong ones alone"


def calibration_table(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    scales: Mapping[str, str],
    *,
    n_draws: int = 500,
    seed: int = 0,
    n_folds: int = 5,
    min_per_class: int = 10,
) -> pd.DataFrame:
    """Brier score, its parts and ECE of every method, as given and calibrated.

    - A row a model, data set, method, ``how`` and metric of
      :data:`~trustlab.metrics.calibration.CALIBRATION` ("brier" = "miscalibration" -
      "discrimination" + "uncertainty"; "ece" has 15 equal-mass bins).
    - ``how``: "as given" only where ``scales`` (method -> scale) says 'probability'; "isotonic"
      and "platt" are fitted on the other folds of cases
      (:func:`~trustlab.metrics.calibration.cross_fitted`) and held fixed in the draws, while the
      recalibration behind the parts and the bins of ECE are formed anew in each.
    - What needs right and wrong answers is withheld below ``min_per_class`` of either.
    - ``ValueError`` as :func:`~trustlab.metrics.run_tables.rows_of_methods`, and for an "as given"
      confidence outside [0, 1].
    """
    few = at_least(min_per_class)
    lines: list[dict[str, Any]] = []
    for label, rows in rows_of_methods(answers, confidence, n_draws, seed):
        method = label["method"]
        for how in HOWS if method else ():
            if how != AS_GIVEN or scales.get(method) == "probability":
                try:
                    made = list(_calibrated(rows, how, few(rows), n_folds, seed))
                except ValueError as error:
                    raise ValueError(
                        f"method {method!r} has scale 'probability': {error}"
                    ) from error
                lines += [label | {"how": how} | line for line in made]
    return schema.table(lines, [*RUN, "method", "how"])


def _calibrated(
    rows: Rows, how: str, few: str, n_folds: int, seed: int
) -> Iterator[dict[str, Any]]:
    why = few if how != AS_GIVEN else ""
    if how != AS_GIVEN and not few:
        case, correct, sure = (rows[name] for name in ("case_id", "correct", "confidence"))
        prob = cross_fitted(correct, sure, case, how, n_folds, seed)
        if np.isnan(prob).any():
            short = f"fewer than {n_folds} cases to calibrate on"
            why = short if rows.n_cases < n_folds else "one class only outside a fold"
        asked = rows.asked.assign(confidence=NAN)
        asked.loc[rows.known, "confidence"] = prob
        rows = replace(rows, asked=asked)
    for name, metric in CALIBRATION.items():
        no = why or ("" if name in WITHOUT_CLASSES else few)
        yield {"metric": name, **estimate(rows, replace(metric, withheld=lambda _, no=no: no))}


def recalibration_curves(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    scales: Mapping[str, str],
    *,
    n_draws: int = 500,
    seed: int = 0,
) -> pd.DataFrame:
    """How often answers of each confidence are right, as a rising curve without bins.

    - A row a model, data set, method on the probability scale and distinct confidence (at most 60,
      evenly by rank, ends included); ``value`` is the isotonic fit of correct on confidence over
      the same rows, straight between two confidences. Dimitriadis, Gneiting & Jordan 2021.
    - ``low`` and ``high`` are pointwise, fitted anew in each draw.
    - One row, with its reason, for a method without both right and wrong answers.
    """
    lines: list[dict[str, Any]] = []
    for label, rows in rows_of_methods(answers, confidence, n_draws, seed):
        if scales.get(label["method"]) == "probability":
            for point, found in _recalibrated(rows):
                lines.append({**label, "confidence": point, "metric": "accuracy", **found})
    return schema.table(lines, [*RUN, "method", "confidence"])


def _recalibrated(rows: Rows) -> Iterator[tuple[float, dict[str, Any]]]:
    if not rows.rarer:
        yield NAN, estimate(rows, Metric(mean("correct"), lambda _: ONE_CLASS))
        return
    values, group = np.unique(tied(rows["confidence"]), return_inverse=True)
    spaced = np.linspace(0, len(values) - 1, MAX_POINTS).round().astype(int)
    picked, right = values[np.unique(spaced)], rows["correct"].astype(np.float64)

    def fit(weight: np.ndarray) -> np.ndarray:
        mass = np.bincount(group, weight, len(values))
        held = mass > 0
        if not held.any():
            return np.full(len(picked), NAN)
        rate = np.bincount(group, weight * right, len(values))[held] / mass[held]
        return np.interp(picked, values[held], isotonic_regression(rate, weights=mass[held]).x)

    curve = rows.over(lambda weights: np.stack([fit(weight) for weight in weights], axis=1))
    for point, drawn in zip(picked, curve, strict=True):
        yield float(point), estimate(rows, lambda _, drawn=drawn: drawn)


def reliability_table(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    scales: Mapping[str, str],
    bins: int = 10,
    n_draws: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Per method on the probability scale: the accuracy in equal-mass bins of its confidence.

    A row a model, method and ``bin``: ``confidence`` is the bin's mean, ``value`` its accuracy.
    Ties share a bin, so there may be fewer than ``bins`` (ECE has 15); bins are held fixed in the
    draws. ``ValueError`` for less than one bin.
    """
    if bins < 1:
        raise ValueError(f"bins must be at least 1; received {bins}")
    known: Any = judged(answers, confidence)
    probable = [name for name, scale in scales.items() if scale == "probability"]
    known = known[known["method"].isin(probable)].drop(columns="bound")
    lines: list[dict[str, Any]] = []
    for label, rows in grouped(
        known, ["model", "method"], "confidence", n_draws=n_draws, seed=seed
    ):
        rank = rankdata(tied(rows["confidence"]))
        bin_of = np.minimum((bins * (rank - 0.5) / len(rows)).astype(int), bins - 1)
        for b in np.unique(bin_of):
            part = rows.at(bin_of == b)
            place = {"bin": int(b), "confidence": float(part["confidence"].mean())}
            lines.append(
                {**label, **place, "metric": "accuracy", **estimate(part, mean("correct"))}
            )
    return schema.table(lines, ["model", "method", "bin", "confidence"])


def judged(answers: pd.DataFrame, confidence: pd.DataFrame) -> pd.DataFrame:
    """The confidence rows that have a value, each with whether its answer was correct.

    Without those whose answer could not be had (``correct`` NaN): it is neither right nor wrong.
    """
    present = confidence[confidence["confidence"].notna()]
    keys = ["case_id", "dataset", "level", "model"]
    table = present.merge(answers[[*keys, "correct"]], on=keys, how="left", validate="many_to_one")
    return table.dropna(subset="correct").reset_index(drop=True)


RUN = ["model", "dataset"]
COVERAGES = tuple(np.round(np.arange(0.05, 1.0001, 0.05), 2))
ORACLE, ANY_ORDER = "oracle", "any order"
REFERENCES = {ORACLE: lambda rows: rows["correct"], ANY_ORDER: lambda rows: np.zeros(len(rows))}
"""Curves to hold the methods' against -> what they order the answers by."""


def selective_table(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    *,
    n_draws: int = 2000,
    seed: int = 0,
    min_per_class: int = 10,
) -> pd.DataFrame:
    """The areas under the risk–coverage curve of every method, a row a model, data set and metric.

    - ``metric`` is one of :data:`~trustlab.metrics.selective.SELECTIVE`: "aurc" and "augrc" are
      risks, lower is better; "prediction_rejection_ratio" is 1 at best, 0 in any order.
    - Over the ``n`` rows where the method has a value, all levels together.
    - Withheld below ``min_per_class`` right or wrong answers.
    - ``ValueError`` as :func:`~trustlab.metrics.run_tables.rows_of_methods`.
    """
    few = at_least(min_per_class)
    metrics = {name: Metric(statistic, few) for name, statistic in SELECTIVE.items()}
    made = rows_of_methods(answers, confidence, n_draws, seed)
    lines = measure(((label, rows) for label, rows in made if label["method"]), metrics)
    return schema.table(lines, [*RUN, "method"])


def risk_coverage_table(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    methods: Sequence[str] | None = None,
    *,
    coverages: Sequence[float] = COVERAGES,
    n_draws: int = 1000,
    seed: int = 0,
    min_per_class: int = 10,
) -> pd.DataFrame:
    """Risk (share of wrong answers among those given) at each coverage, a row a point of a curve.

    - Curves of ``methods`` in that order (default: all); those of a model and data set stand on the
      ``n_shared`` rows that all of them have, ``n_rarer`` of the rarer kind. A method with a value
      in fewer than half of the answers is left out, in one row that says so.
    - ``role`` is "method", or "reference" for "oracle" (right answers first: no order does better)
      and "any order" (risk is the error rate at every coverage).
    - ``coverage`` is of the shared rows, so that a risk has its own ``n``: the answers given there,
      of ``n_cases`` cases (equal confidences at the end all counted in).
    - Without curves below ``min_per_class`` right or wrong answers: a row a method, and why.
    - ``ValueError`` for a method that the table does not hold, and as :func:`selective_table`.
    """
    held = list(dict.fromkeys(confidence["method"]))
    if lacking := [name for name in methods or () if name not in held]:
        raise ValueError(f"no method {lacking}; the table holds {held}")
    order = list(methods or held)
    made = rows_of_methods(answers, confidence, n_draws, seed)
    wanted = ((label, rows) for label, rows in made if label["method"] in order)
    lines: list[dict[str, Any]] = []
    for run, several in groupby(wanted, key=lambda one: [one[0][key] for key in RUN]):
        rows = {label["method"]: rows for label, rows in several}
        ordered = {method: rows[method] for method in order if method in rows}
        label = dict(zip(RUN, run, strict=True))
        lines += [label | line for line in _curves(ordered, coverages, min_per_class)]
    return schema.table(lines, [*RUN, "method", "role", "coverage"], ["n_shared", "n_rarer"])


def _curves(several: dict[str, Rows], coverages: Sequence[float], least: int) -> Iterator[dict]:
    """The curves of one model and data set, the two references first."""
    compared = {m: rows for m, rows in several.items() if rows.known.mean() >= MIN_COVERAGE}
    shared = np.all([rows.known for rows in compared.values()], axis=0) if compared else np.False_
    few = "" if shared.any() else "no row that all methods have"
    on_shared = {method: replace(rows, known=shared) for method, rows in compared.items()}
    for first in list(on_shared.values())[:1] if not few else ():
        few = at_least(least)(first)
        for name, of in REFERENCES.items() if not few else ():
            asked = first.asked.assign(confidence=NAN, bound=False)
            asked.loc[shared, "confidence"] = of(first)
            yield from _curve(replace(first, asked=asked), name, "reference", coverages)
    for method, rows in on_shared.items() if not few else ():
        yield from _curve(rows, method, "method", coverages)
    for method, rows in several.items():
        if method in compared and not few:
            continue
        alone = f"a value in {len(rows)} of {len(rows.asked)} answers only: not compared"
        why = few if method in compared else alone
        found = estimate(rows, Metric(mean("correct"), lambda _, why=why: why))
        yield {"method": method, "role": "method", "metric": "risk", **found, "n_rarer": NAN}


def _curve(rows: Rows, name: str, role: str, coverages: Sequence[float]) -> Iterator[dict]:
    """One curve: at each coverage the risk among those given, with the counts of these."""
    correct, sure = rows["correct"], rows["confidence"]
    curve = rows.over(lambda weights: risk_at(correct, sure, weights.astype(int), coverages).T)
    of_all = {
        "n_shared": len(rows),
        "n_rarer": rows.rarer,
        "n_missing": len(rows.asked) - len(rows),
    }
    for coverage, drawn in zip(map(float, coverages), curve, strict=True):
        last = max(int(np.ceil(round(coverage * len(rows), 9))), 1)
        given = rows.known.copy()
        given[rows.known] = sure >= np.sort(sure)[len(sure) - last]
        found = estimate(rows.at(given), lambda _, drawn=drawn: drawn)
        label = {"method": name, "role": role, "coverage": coverage, "metric": "risk"}
        yield label | found | of_all


RULES = ("exact", "synonym", "encoder")
"""Graders that need no model."""
LEVELS = ["pooled", "within"]


def grade(
    answers: pd.DataFrame, grader: str | Grader, cases: Sequence[Case] | None = None
) -> pd.DataFrame:
    """A run's answers graded anew: the same rows, a new ``correct``, and ``grader``, its name.

    - ``grader``: a name of :data:`RULES`, or an object such as ``JudgeGrader(model)``.
    - ``cases`` give the accepted names; without them an answer is held against ``truth`` and the
      knowledge table.
    - An answer that could not be graded has ``correct`` NaN and the reason in ``missing``. A failed
      answer (none, and ``correct`` NaN) stays as it is; an unreadable one is wrong.
    - ``ValueError`` for missing columns, a case that ``cases`` lacks, or another truth than its.
    """
    need(answers, [*KEYS, "answer", "truth", "correct"], "answers")
    judge = open_grader(grader)
    said = answers["answer"].astype(object).where(answers["answer"].notna(), None)
    held = _cases_of(answers, cases)
    at = np.flatnonzero(answers["answer"].notna() | answers["correct"].notna())
    grades = judge.grade([said.iloc[i] for i in at], [held[i] for i in at])
    correct = np.full(len(answers), np.nan)
    correct[at] = [np.nan if g.correct is None else g.correct for g in grades]
    told: Any = answers["missing"] if "missing" in answers else pd.Series("", answers.index)
    why = told.astype(object).fillna("").to_numpy(copy=True)
    why[at] = [g.missing if g.correct is None else "" for g in grades]
    if not np.isnan(correct).any():
        correct = correct.astype(int)
    return answers.assign(correct=correct, missing=why, grader=judge.name)


def verdicts(
    answers: pd.DataFrame,
    graders: Sequence[str | Grader] = RULES,
    cases: Sequence[Case] | None = None,
) -> tuple[pd.DataFrame, list[str]]:
    """The answers' keys, ``answer`` and ``truth`` with a column a grader, and their names.

    A grade is 1, 0 or NaN. ``ValueError`` for fewer than two graders or two of one name.
    """
    opened = [open_grader(g) for g in graders]
    names = [g.name for g in opened]
    if len(names) < 2 or len(set(names)) < len(names):
        raise ValueError(f"graders must be two or more, each with its own name; received {names}")
    graded = {g.name: grade(answers, g, cases)["correct"].astype(float) for g in opened}
    return answers[[*KEYS, "answer", "truth"]].assign(**graded), names


def agreement_table(
    answers: pd.DataFrame,
    graders: Sequence[str | Grader] = RULES,
    cases: Sequence[Case] | None = None,
    n_draws: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """How far every two graders agree: ``kappa`` (Cohen's) and ``agreement``, a share.

    Intervals take all models and levels of a case together. Unreadable answers are wrong to both
    and count; what either did not grade is missing. Counts: :data:`COUNTS`.
    """
    found, names = verdicts(answers, graders, cases)
    ids = found["dataset"].astype(str) + "\0" + found["case_id"].astype(str)
    lines = [
        {"first": first, "second": second, **line}
        for first, second in combinations(names, 2)
        for line in agreement(found[first], found[second], ids, n_draws, seed)
    ]
    return table(lines, ["first", "second"], [*COUNTS])


def disagreements(
    answers: pd.DataFrame,
    graders: Sequence[str | Grader] = RULES,
    cases: Sequence[Case] | None = None,
) -> pd.DataFrame:
    """The distinct (answer, truth) pairs not graded alike, with ``n_answers``, most frequent first.

    A column a grader: 1, 0, or NaN where ungraded, which differs from both verdicts.
    """
    found, names = verdicts(answers, graders, cases)
    told: Any = found[found["answer"].notna()]
    pairs = told.groupby(["answer", "truth", *names], dropna=False, sort=False)
    counted = pairs.size().rename("n_answers").reset_index()
    differ = counted[counted[names].nunique(axis=1, dropna=False) > 1]
    order = ["n_answers", "answer", "truth"]
    return differ.sort_values(order, ascending=[False, True, True], ignore_index=True)


def verdict_table(
    pairs: Sequence[tuple[str, str]], graders: Sequence[str | Grader] = RULES
) -> pd.DataFrame:
    """What each grader says of (answer, truth) pairs: a column a grader (1, 0, or NaN)."""
    cases = [Case(f"pair-{i}", "pairs", (), t, (t,)) for i, (_, t) in enumerate(pairs, 1)]
    found = pd.DataFrame(list(pairs), columns=["answer", "truth"])
    for grader in map(open_grader, graders):
        grades = grader.grade([answer for answer, _ in pairs], cases)
        found[grader.name] = pd.array([g.correct for g in grades], dtype="Int64")
    return found


def auroc_by_grader(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    graders: Sequence[str | Grader] = RULES,
    methods: Sequence[str] | None = None,
    cases: Sequence[Case] | None = None,
    **how: Any,
) -> pd.DataFrame:
    """AUROC of each method and the accuracy, had another one graded: ``metrics_table``'s rows.

    - ``metric`` is "auroc" (``level`` "pooled" and "within") or "accuracy" (method '', "pooled").
    - ``methods``: all of ``confidence`` where ``None``, else ``ValueError`` for one not there.
    - ``how``: n_draws, seed, min_per_class and n_jobs; all graders have the same draws.
    """
    held = list(dict.fromkeys(confidence["method"]))
    chosen = held if methods is None else list(methods)
    if not chosen or not set(chosen) <= set(held):
        raise ValueError(f"methods must be one or more of {held}; received {chosen}")
    mine: Any = confidence[confidence["method"].isin(chosen)]
    lines = []
    for grader in map(open_grader, graders):
        graded = Tables(grade(answers, grader, cases), mine)
        found = metrics_table(graded, scales={}, **how)  # no scales: no calibration
        wanted = found["metric"].isin(["auroc", "accuracy"]) & found["level"].isin(LEVELS)
        lines += found[wanted].assign(grader=grader.name).to_dict("records")
    return table(lines, ["model", "dataset", "method", "grader", "level"], ["n_rarer"])


def _cases_of(answers: pd.DataFrame, cases: Sequence[Case] | None) -> list[Case]:
    """The case of each row; made of its truth where no cases are given."""
    rows = answers[["dataset", "case_id", "truth"]].to_numpy().tolist()
    if cases is None:
        return [Case(str(i), str(dataset), (), str(t), (str(t),)) for dataset, i, t in rows]
    known = {(case.dataset, case.case_id): case for case in cases}
    for dataset, case_id, truth in rows:
        if (case := known.get((dataset, case_id))) is None:
            raise ValueError(f"cases lacks case {case_id!r} of data set {dataset!r}")
        if case.diagnosis != truth:
            held = f"{case.diagnosis!r}, but its answers were held against {truth!r}"
            raise ValueError(f"case {case_id!r} has the diagnosis {held}")
    return [known[dataset, case_id] for dataset, case_id, _ in rows]


RATES = (0.0, 0.05, 0.1, 0.2)
RUN = ["model", "dataset"]
NO_ORDER = "fewer than two methods that differ"


def expected_auroc(
    auroc: float, prevalence: float, right_to_wrong: float, wrong_to_right: float | None = None
) -> float:
    """AUROC to expect after flips that do not look at the confidence, in a large sample.

    - ``prevalence``: the true share of right answers, in (0, 1); the other two: the chances that a
      right answer is called wrong and a wrong one right (the same where ``None``).
    - s is the share of right answers among those called right, minus that among those called
      wrong. A pair of one called right and one called wrong is then as it seems, reversed or of
      one kind, so AUROC' = 1/2 + s (AUROC - 1/2).
    - ``ValueError`` for chances outside [0, 1] or a class left empty.
    """
    lost, gained = right_to_wrong, right_to_wrong if wrong_to_right is None else wrong_to_right
    if not (0 < prevalence < 1 and 0 <= lost <= 1 and 0 <= gained <= 1):
        received = f"{prevalence}, {lost}, {gained}"
        raise ValueError(f"prevalence must be in (0, 1) and flips in [0, 1]; received {received}")
    called_right = prevalence * (1 - lost) + (1 - prevalence) * gained
    if not 0 < called_right < 1:
        raise ValueError(f"flips of {lost} and {gained} leave one class only")
    s = prevalence * (1 - lost) / called_right - prevalence * lost / (1 - called_right)
    return 0.5 + s * (auroc - 0.5)


def auroc_under_noise(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    methods: Sequence[str],
    rates: Sequence[float] = RATES,
    n_repeats: int = 20,
    seed: int = 0,
    min_per_class: int = 10,
) -> pd.DataFrame:
    """AUROC of each method when each grade is flipped with chance ``rate``, right or wrong alike.

    - ``level`` is "pooled" or "within": mean over the levels that have both classes without noise.
    - ``value`` is the mean over the repeats, ``low`` and ``high`` hold the middle 95 % of them: the
      spread over flips, not over cases. ``n_rarer`` counts before any flip.
    - ``expected`` is :func:`expected_auroc`, level-stratified as the mean of the levels'.
    - All methods share the flips; a grade flipped at a rate stays flipped at a higher one.
    - Withheld below ``min_per_class`` right or wrong answers. ``ValueError`` for other rates, no
      repeats, or a method that ``confidence`` does not hold.
    """
    few = at_least(min_per_class)
    lines = []
    for label, over, rows, drawn in _parts(answers, confidence, methods, rates, n_repeats, seed):
        for method in methods:
            why = few(rows[method])
            for rate, each in zip(map(float, rates), drawn[method][1:], strict=True):
                noisy = Metric(lambda _, each=each: each, few, widthless=True)
                told = {"method": method, "rate": rate, "metric": "auroc"}
                told["expected"] = np.nan if why else over(_expected(rate))(rows[method])[0]
                lines.append({**label, **told, **estimate(rows[method], noisy)})
    return table(lines, ["model", "dataset", "method", "rate", "level"], ["expected", "n_rarer"])


def order_under_noise(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    methods: Sequence[str],
    rates: Sequence[float] = RATES,
    min_per_class: int = 10,
    **how: Any,
) -> pd.DataFrame:
    """How far flipped grades change the order of the methods: Kendall's tau (b) to that without.

    - ``value`` is the mean over the repeats, ``low`` and ``high`` hold the middle 95 % of them.
    - ``moved`` names the methods whose place changed in the order by mean AUROC, such as "poc 1 to
      2", of ``n_methods``: those without a value are left out. ``n`` counts the answers.
    - Otherwise as :func:`auroc_under_noise`.
    """
    few = at_least(min_per_class)
    lines = []
    for label, _, rows, drawn in _parts(answers, confidence, methods, rates, **how):
        names = [m for m in methods if not few(rows[m]) and not np.isnan(drawn[m]).any()]
        each = np.stack([drawn[m] for m in names] or [np.zeros((1 + len(rates), 2))])[: len(names)]
        clean = each[:, 0, 0]
        for i, rate in enumerate(map(float, rates), 1):
            before, after = (rankdata(-tied(x), "ordinal") for x in (clean, each[:, i, 0]))
            places = zip(names, before, after, strict=True)
            told = {"rate": rate, "metric": "kendall_tau", "n_methods": len(names)}
            told["moved"] = ", ".join(f"{m} {a:.0f} to {b:.0f}" for m, a, b in places if a != b)
            orders = each[:, i, 1:].T if len(names) > 1 else []
            taus = np.array([kendalltau(tied(clean), tied(x))[0] for x in orders] or [np.nan])
            tau = np.append(mean_of_known(taus), taus)
            metric = Metric(lambda _, tau=tau: tau, undefined=NO_ORDER, widthless=True)
            lines.append({**label, **told, **estimate(rows[""], metric)})
    return table(lines, ["model", "dataset", "level", "rate"], ["n_methods", "moved"])


def _parts(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    methods: Sequence[str],
    rates: Sequence[float],
    n_repeats: int = 20,
    seed: int = 0,
) -> Iterator[tuple[dict[str, str], Callable, dict[str, Rows], dict[str, np.ndarray]]]:
    """Each run pooled and level-stratified: its keys, how a statistic is taken there, and by
    method.

    - The rows of each method ('' is the answers).
    - Its AUROC (1 + rates, 1 + n_repeats): first without noise, and first the mean over repeats.
    """
    held = list(dict.fromkeys(confidence["method"]))
    if not methods or not set(methods) <= set(held):
        raise ValueError(f"methods must be one or more of {held}; received {list(methods)}")
    if n_repeats < 1 or not len(rates) or not all(0 <= rate <= 1 for rate in rates):
        received = f"{list(rates)} and {n_repeats}"
        raise ValueError(f"rates must be in [0, 1] and n_repeats at least 1; received {received}")
    given: Any = answers.reset_index(drop=True)
    graded = given[given["answer"].notna() & given["correct"].notna()]
    place = graded.sort_values(["case_id", "level"]).groupby(RUN).cumcount()  # whatever the order
    mine: Any = confidence[confidence["method"].isin(list(methods))]
    runs: dict[tuple[str, str], dict[str, Rows]] = {}
    for label, rows in rows_of_methods(given.assign(place=place), mine, n_repeats, seed):
        runs.setdefault((label["model"], label["dataset"]), {})[label["method"]] = rows
    for key, rows in runs.items():
        n = len(rows[""].asked["place"].dropna())
        chance = np.random.default_rng(seed).random((n_repeats, n))
        inside = {m: _mixed(each) for m, each in rows.items()}
        for level, over, part in (("pooled", lambda of: of, rows), ("within", within, inside)):
            flipped = [over(_flipped(chance, rate)) for rate in (0.0, *rates)]
            drawn = {m: np.stack([of(part[m]) for of in flipped]) for m in methods}
            yield dict(zip(RUN, key, strict=True)) | {"level": level}, over, part, drawn


def _mixed(rows: Rows) -> Rows:
    """The rows at levels that have both classes; all where none has a value."""
    levels = [level for level, part in rows.by("level").items() if part.rarer]
    return rows.where("level", levels) if len(rows) else rows


def _flipped(chance: np.ndarray, rate: float) -> Statistic:
    """AUROC after flips: the mean over the repeats, then each, (1 + n_repeats,)."""

    def of(rows: Rows) -> np.ndarray:
        drawn = _auroc(rows, chance[:, rows["place"].astype(int)] < rate)
        return np.append(mean_of_known(drawn), drawn)

    return of


def _expected(rate: float) -> Statistic:
    """What :func:`expected_auroc` gives, (1,)."""
    return lambda rows: np.array([expected_auroc(_auroc(rows)[0], rows["correct"].mean(), rate)])


def _auroc(rows: Rows, flip: np.ndarray | bool = False) -> np.ndarray:
    """AUROC (R,) after flips (R, n), by Mann and Whitney's count; NaN where one class is left."""
    correct = np.atleast_2d(rows["correct"].astype(bool) ^ flip)
    ranks = rankdata(tied(rows["confidence"]))
    n_right = correct.sum(axis=1)
    n_pairs = n_right * (len(ranks) - n_right)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(n_pairs, (correct @ ranks - n_right * (n_right + 1) / 2) / n_pairs, np.nan)


NOT_OURS = (
    "Grey: as Ren et al. 2026 print it, of large models on other patients, without intervals: not"
    " to be held against ours."
)
THEIRS = "as printed"


def correlations_as_published(metrics: pd.DataFrame, statistic: str) -> pd.DataFrame:
    """Ren et al. 2026's Table 2 with this run's values before the printed ones, as text.

    Accuracy and mean confidence over the levels by ``statistic`` ("pearson" or "spearman"): a row a
    method under its family, a column a model and data set; of ours with interval and ``n`` answers,
    "–" where there is none.
    """
    across = metrics[metrics["metric"].eq(statistic) & metrics["level"].eq("across")]
    printed = published_table("correlation", as_text=True)
    printed = printed[printed["statistic"].eq(statistic)].rename(columns={"value": "shown"})
    return _as_published(_shown_counted(_ranked(across)), printed)


def comparison_as_published(metrics: pd.DataFrame) -> pd.DataFrame:
    """Ren et al. 2026's Table 3 with this run's values before the printed ones, as text.

    The highest AUROC of each family, pooled over levels as theirs presumably is, with its method,
    and this method's Pearson over the levels; the highest is chosen on the answers shown. Rows are
    families and what is measured, columns as in :func:`correlations_as_published`.
    """
    auroc = metrics[metrics["metric"].eq("auroc") & metrics["level"].eq("pooled")]
    mine = _ranked(auroc)
    mine = mine.assign(family=mine["method"].map(family_name))
    keys = ["model", "dataset", "family"]
    best = mine.sort_values("value", ascending=False, kind="stable").drop_duplicates(keys)
    best = best.sort_index(kind="stable")  # the run's order of models and data sets
    pearson = metrics[metrics["metric"].eq("pearson") & metrics["level"].eq("across")]
    same = best[[*RUN, "method"]]
    ours = [_shown_counted(best), _shown_counted(same.merge(pearson, on=[*RUN, "method"]))]
    wide = published_table("comparison", as_text=True)
    parts = []
    for what, mine, column in zip(("AUROC", "Pearson"), ours, ("auroc", "pearson"), strict=True):
        theirs = wide.rename(columns={column: "shown"})
        for source in (mine, theirs):
            source["shown"] = [
                v if v == "–" else f"{named(m)} {v}"
                for m, v in zip(source["method"], source["shown"], strict=True)
            ]
        parts.append(_as_published(mine, theirs, what))
    return pd.concat(parts).fillna("–")


def _shown_counted(lines: pd.DataFrame) -> pd.DataFrame:
    """The lines with their value, interval and n as text in ``shown``."""
    ends = lines[["value", "low", "high", "n"]].itertuples(index=False)
    return lines.assign(
        shown=[
            formatted.with_interval(*each[:3])
            + (f", n {each[3]:,.0f}" if pd.notna(each[0]) else "")
            for each in ends
        ]
    )


def _as_published(ours: pd.DataFrame, printed: pd.DataFrame, what: str = "") -> pd.DataFrame:
    """``shown`` by family and method (or ``what``) down, by source, model and data set across."""
    from trustlab.plots.style import FAMILY_LABELS

    theirs = printed.replace({"model": MODELS, "dataset": DATASETS})
    both = with_printed(ours, theirs)
    both["source"] = both["source"].map({"ours": "this run", "printed": THEIRS})
    words = both["method"].map(family_name).map(FAMILY_LABELS).fillna("other")
    both = both.assign(family=words, row=what or both["method"].map(named))
    order = {name: place for place, name in enumerate(FAMILY_LABELS.values())}
    across, down = ["source", "model", "dataset"], ["family", "row"]
    wide = both.pivot(index=down, columns=across, values="shown")
    rows = (
        both[down]
        .drop_duplicates()
        .sort_values("family", key=lambda f: f.map(order), kind="stable")
    )
    columns = both[across].drop_duplicates()
    wide = wide.reindex(index=pd.MultiIndex.from_frame(rows))
    return wide[list(columns.itertuples(index=False, name=None))].fillna("–")


def printed_in_grey(table: pd.DataFrame, name: str) -> Any:
    """The table for a notebook, all text escaped: printed columns grey, and what they are of."""
    from trustlab.plots.style import GREY

    theirs = [column for column in table.columns if column[0] == THEIRS]
    style = table.style.format(escape="html").format_index(escape="html", axis=0)
    style = style.format_index(escape="html", axis=1).set_uuid(name).set_caption(NOT_OURS)
    return style.set_properties(subset=theirs, color=GREY).set_properties(
        **{"white-space": "normal"}
    )


NO_ENDS = "a score has no ends, so no worst and best"
ONLY_RANGE = "no sharp bound is computed: only the metric's range"
FLAT = "fewer than 3 levels, or one side is the same at every level"
RANGES = {"ece": (1.0, 0.0), "pearson": (-1.0, 1.0), "spearman": (-1.0, 1.0)}
"""Metrics without a sharp bound -> worst and best they can be."""


def missingness_table(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    scales: Mapping[str, str],
    *,
    min_per_class: int = 10,
) -> pd.DataFrame:
    """Each metric on what there is, beside its worst and best were the missing had.

    - A row a model, data set, method and metric, all levels together; method '' for the accuracy of
      the answers themselves. ``n_missing`` of the answers asked for have no value (no grade).
    - ``worst`` and ``best`` are the ends (of a mean confidence the lowest and highest) over every
      way of filling in the others: sharp, but for ECE and the correlations over levels, where only
      the metric's range is given, and for scores that are no probabilities (``scales``, method ->
      scale), whose mean has no ends. No end is an interval's.
    - An unreadable answer is wrong, with a missing confidence; a failed or ungraded one may be
      either. AUROC and AUPRC are withheld below ``min_per_class`` right or wrong answers.
    - ``ValueError`` as :func:`~trustlab.metrics.run_tables.rows_of_methods`.
    """
    lines: list[dict[str, Any]] = []
    for label, rows in rows_of_methods(answers, confidence, n_draws=0):
        is_probability = scales.get(label["method"]) == "probability"
        for line in (
            _of_method(rows, is_probability, min_per_class) if label["method"] else _accuracy(rows)
        ):
            lines.append(label | line)
    found = schema.table(lines, ["model", "dataset", "method"], ["worst", "best"])
    return found.drop(columns=["low", "high"])  # nothing is drawn here


def _accuracy(rows: Rows) -> Iterator[dict[str, Any]]:
    correct = rows.asked["correct"].where(rows.known).to_numpy(dtype=float)
    lost = {
        "missing": int(np.sum(rows.asked["failed"])),
        "ungraded": int(np.sum(rows.asked["ungraded"])),
    }
    why = ", ".join(f"{n} {what}" for what, n in lost.items() if n)
    yield _line(
        "accuracy", rows, Metric(mean("correct")), missing_bounds.accuracy_bounds(correct), why
    )


def _of_method(rows: Rows, is_probability: bool, least: int) -> Iterator[dict[str, Any]]:
    asked, lost = rows.asked, len(rows.asked) - len(rows)
    why = f"{lost} missing, most often: {most_frequent(asked[~rows.known])}" if lost else ""
    why = why if len(rows) else rows.why
    graded = ~(asked["failed"] | asked["ungraded"])
    correct = asked["correct"].where(graded).to_numpy(dtype=float)
    sure = asked["confidence"].to_numpy(dtype=float)
    ends: dict[str, Bounds] = {
        "auroc": missing_bounds.auroc_bounds(correct, sure),
        "auprc": missing_bounds.auprc_bounds(correct, sure),
    }
    metrics = {"mean_confidence": Metric(mean("confidence"))}
    metrics |= {name: Metric(of, at_least(least)) for name, (of, _) in RANKING.items()}
    if is_probability:
        metrics |= {name: CALIBRATION[name] for name in ("brier", "ece")}
        ends["mean_confidence"] = missing_bounds.mean_confidence_bounds(sure)
        ends["brier"] = missing_bounds.brier_bounds(correct, sure)
    metrics |= {name: Metric(across(of), undefined=FLAT) for name, of in OVER_LEVELS.items()}
    for name, metric in metrics.items():
        note = ""
        if lost and name in RANGES:
            ends[name], note = Bounds(*RANGES[name]), ONLY_RANGE
        elif lost and name not in ends:
            ends[name], note = missing_bounds.NONE, NO_ENDS
        yield _line(name, rows, metric, ends.get(name), why, note)


def _line(
    name: str, rows: Rows, metric: Metric, ends: Bounds | None, why: str, note: str = ""
) -> dict[str, Any]:
    """``ends`` are the value itself where nothing is missing."""
    value = (
        float(rows.drawn(metric.statistic)[0]) if len(rows) and not metric.withheld(rows) else NAN
    )
    found = estimate(rows, metric)
    alone = metric.withheld(rows) or (metric.undefined if np.isnan(value) else "")
    told = [note or (alone if len(rows) else ""), why]
    ends = ends or Bounds(value, value)
    more = {"worst": ends.worst, "best": ends.best, "missing": "; ".join(filter(None, told))}
    return {"metric": name, **found, **more}


def compared_message(table: pd.DataFrame) -> str:
    """Which methods the paired differences of ``compare_methods``, level-stratified and of one
    model, tell from the reference after Holm's correction."""
    part = table[table["level"].eq("within")]
    known = part.dropna(subset="p_holm")
    if part.empty:
        return ""
    reference = named(str(part["against"].iloc[0]))
    if known.empty:
        return f"No method can be told from {reference}: {most_frequent(part)}"
    by_size: Any = known.iloc[known["difference"].abs().argsort(kind="stable")[::-1]]
    sure = by_size[by_size["p_holm"].lt(ALPHA)]
    if sure.empty:
        most = by_size.iloc[0]
        shown = formatted.told(most, "difference", sign="+")
        return (
            f"On the same answers no method can be told from {reference}: none of {len(known)}"
            f" differences is beyond chance (Holm), the largest is that of"
            f" {named(most['method'])}, {shown}"
        )
    sides = {"better": sure[sure["difference"].gt(0)], "worse": sure[sure["difference"].lt(0)]}
    told = []
    for word, side in sides.items():
        ends = [formatted.told(line, "difference", sign="+") for _, line in side.iterrows()]
        names = [f"{named(m)} {shown}" for m, shown in zip(side["method"], ends, strict=True)]
        told += [f"{len(names)} {word}: {_listed(names, 3)}"] if names else []
    return (
        f"Different from {reference} on the same answers beyond chance (Holm): {len(sure)} of"
        f" {len(known)} methods and baselines\n{'; '.join(told)}"
    )


def rising_message(table: pd.DataFrame) -> str:
    """How far accuracy rises over the levels of one model, and which confidences that are meant as
    a chance lie outside its interval."""
    single: Any = table[table["level"].astype(str).str.isdigit()].astype({"level": int})
    accuracy = single[single["metric"].eq("accuracy")].dropna(subset="value").sort_values("level")
    if accuracy.empty:
        return ""
    first, last = accuracy.iloc[0], accuracy.iloc[-1]
    ends = [f"{formatted.told(line, scale=100)} at {line['level']} %" for line in (first, last)]
    told = f"The accuracy is {ends[0]} of the statements"
    told += f" and {ends[1]}" if len(accuracy) > 1 else ""
    held = accuracy.dropna(subset="low").set_index("level")
    if held.empty:
        return f"{told}; without intervals, no confidence can be held against it"
    scale = {name: method.scale for name, method in METHODS.items()}
    sure = single[single["metric"].eq("mean_confidence") & single["level"].isin(held.index)]
    sure = sure[sure["method"].map(scale).eq("probability")].dropna(subset="value")
    above = sure["value"] > held["high"].loc[sure["level"]].to_numpy()
    below = sure["value"] < held["low"].loc[sure["level"]].to_numpy()
    sides = {"Above": above, "Below": below}
    for word, side in sides.items():
        n = side.groupby(sure["method"], sort=False).sum().sort_values(ascending=False)
        names = [f"{named(str(m))} ({k} of {len(held)} levels)" for m, k in n.items() if k]
        told += f"\n{word} its interval: {_listed(names) if names else 'none'}" if len(sure) else ""
    return told


def level_correlations_message(table: pd.DataFrame) -> str:
    """How many Pearson correlations over the levels, of one model, are more than what a confidence
    that merely rises has beside the same accuracies."""
    found = table[table["metric"].eq("pearson")].dropna(subset=["value", "chance_low"])
    if found.empty:
        return ""
    mine = _ranked(found)
    n_above = int((mine["value"] > mine["chance_high"] + 1e-6).sum())
    n_below = int((mine["value"] < mine["chance_low"] - 1e-6).sum())
    ends = found[["chance", "chance_low", "chance_high"]].iloc[0].to_list()
    band = formatted.told(dict(zip(["value", "low", "high"], ends, strict=True)))
    told = (
        f"A confidence that merely rises has a Pearson of {band} (95 %); of {len(mine)} methods:"
        f" {n_above} above, {len(mine) - n_above - n_below} within, {n_below} below"
    )
    level = found[found["method"].eq(SHARE)]
    alone = f"; information level alone has {formatted.told(level.iloc[0])}" if len(level) else ""
    return told + alone


def reliability_message(table: pd.DataFrame) -> str:
    """In how many groups of answers, by method or by model, the interval of the accuracy leaves out
    the confidence."""
    known = table.dropna(subset=["bin", "value", "low"])
    if known.empty:
        return "No group of answers has an interval: nothing can be told from a true chance"
    several = known["model"].nunique() > 1
    told = []
    for key, part in groups(known, ["model" if several else "method"]):
        (who,) = key.values()
        over = int(part["confidence"].gt(part["high"] + 1e-6).sum())
        under = int(part["confidence"].lt(part["low"] - 1e-6).sum())
        name = str(who) if several else named(str(who))
        told.append((over, under, len(part), name))
    if not several:
        told.sort(key=lambda one: -one[0] / one[2])
    words = {
        "Too sure": [f"{name} in {over} of {n}" for over, _, n, name in told if over],
        "Not sure enough": [f"{name} in {under} of {n}" for _, under, n, name in told if under],
    }
    lines = [f"{word}: {_listed(names, 5)} groups" for word, names in words.items() if names]
    what = "beyond the interval of a group's accuracy"
    if not lines:
        return f"No confidence lies {what}: these answers cannot tell it from a true chance"
    return "\n".join([f"{lines[0]}, {what}", *lines[1:]])


def risk_message(table: pd.DataFrame) -> str:
    """How many of the answers given are wrong, of one model, when the surest half is given."""
    curves = table.dropna(subset=["coverage", "value"])
    at = curves["coverage"].sub(0.5).abs()
    half = _ranked(curves[at.eq(at.min()) & curves["role"].eq("method")])
    if half.empty:
        return ""
    whole = curves[curves["coverage"].eq(curves["coverage"].max())].iloc[0]
    share = half["coverage"].iloc[0]
    return (
        f"Of all answers {formatted.told(whole, scale=100)} are wrong; of the surest"
        f" {100 * share:.0f} % the fewest by {formatted.leading(half, lowest=True, scale=100)}"
    )


def pairs_message(table: pd.DataFrame) -> str:
    """How many pairs of methods order the answers nearly alike."""
    values = table["value"].dropna()
    if values.empty:
        return ""
    n = int(values.ge(0.9 - 1e-6).sum())
    return (
        f"{n} of {len(values)} pairs of methods order the answers nearly alike (0.90 or more); the"
        f" median correlation is {values.median():.2f}"
    )


def turned_message(table: pd.DataFrame) -> str:
    """How often two models stand on either side of the reference, for a method and a data set."""
    known = table.dropna(subset="difference")
    if known.empty:
        return ""
    reference = named(str(known["against"].iloc[0]))
    n_sure = int((known["low"].gt(0) | known["high"].lt(0)).sum())
    if known["model"].nunique() < 2:
        return f"{n_sure} of {len(known)} differences from {reference} have an interval without 0"
    each = [part for _, part in groups(known, ["method", "dataset"]) if len(part) > 1]
    sides = [(part["difference"].max() > 1e-6, part["difference"].min() < -1e-6) for part in each]
    sure = [(part["low"].gt(0).any(), part["high"].lt(0).any()) for part in each]
    n_turned, n_beyond = sum(map(all, sides)), sum(map(all, sure))
    return (
        f"The order of a method and {reference} turns from one model to another in {n_turned} of"
        f" {len(each)} comparisons, in {n_beyond} of them with intervals that leave out 0 on both"
        " sides"
    )


def cost_message(table: pd.DataFrame) -> str:
    """Whether a method that asks more ranks better than the best of the cheapest, of one model."""
    known = _ranked(table).dropna(subset="value").sort_values("cost", kind="stable")
    if known.empty:
        return ""
    cheap = known["asked"].eq(known["asked"].iloc[0])
    kind = str(known["asked"].iloc[0])
    best = known[cheap].sort_values("value", ascending=False, kind="stable").iloc[0]
    told = f"{kind}: the highest AUROC is that of {named(best['method'])}, {formatted.told(best)}"
    dearer = known[~cheap]
    if dearer.empty or np.isnan(best["low"]):
        return told
    n = int(dearer["low"].gt(best["high"]).sum())
    most = dearer.sort_values("value", ascending=False, kind="stable").iloc[0]
    return (
        f"{told}\nBeyond its interval: {n} of {len(dearer)} methods that ask more; the highest is"
        f" {named(most['method'])}, {formatted.told(most)}"
    )


def reliability_panels(table: pd.DataFrame, families: Mapping[str, str]) -> Any:
    """The lines of :func:`reliability_table`, a panel a method.

    Of one model with bars, beside its :func:`recalibration_curves` where ``table`` holds them too;
    several models side by side, a line each.
    """
    from trustlab.plots.curves import curves
    from trustlab.plots.rows import SERIES

    models = list(dict.fromkeys(table["model"]))
    kind = {True: "isotonic fit", False: "groups of answers"}
    look: dict[str, Any] = {"by": "kind", "bars": [kind[False]], "joined": False}
    look["references"] = {kind[True]: {"lw": 1.2}}
    lines = table.assign(kind=table["bin"].isna().map(kind))
    if len(models) > 1:
        lines = table[table["bin"].notna()].rename(columns={"model": "side"})
        looks = [{"color": c, "marker": m, "lw": 1.2, "ms": 5.5} for c, m in SERIES]
        each = {who: looks[k % len(looks)] | {"label": who} for k, who in enumerate(models)}
        look = {"by": "side", "references": each}
    return curves(
        lines,
        families,
        "confidence",
        panels="method",
        **look,
        guides={"confidence = accuracy": "diagonal"},
        names="legend",
        percent="xy",
        limits=(0, 1),
        words=("Mean confidence (percent)", "Accuracy (percent)"),
    )


def lacking_words(table: pd.DataFrame, confidence: pd.DataFrame) -> str:
    """Which models of a figure's ``table`` have no value of which of its methods, and why."""
    shown = set(table["method"])
    told: dict[tuple[str, str], list[str]] = {}
    for key, part in groups(confidence[confidence["method"].isin(shown)], ["model", "method"]):
        if part["confidence"].isna().all():
            why = (str(key["model"]), most_frequent(part))
            told.setdefault(why, []).append(named(str(key["method"])))
    words = [f"{who}: {', '.join(names)} ({why})" for (who, why), names in told.items()]
    return f"no value of {'; '.join(words)}" if words else ""
