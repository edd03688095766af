"""08: who says that an answer is right, and what another one, or chance, would change."""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportGeneralTypeIssues=false, reportReturnType=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from studies.benchmark import RUN
from trustlab.graders import Grader, open_grader
from trustlab.metrics.agreement import COUNTS, agreement
from trustlab.metrics.estimate import (
    Metric,
    Rows,
    Statistic,
    at_least,
    estimate,
    grouped,
    mean,
    mean_of_known,
    measure,
    within,
)
from trustlab.metrics.run_tables import KEYS, Tables, metrics_table, rows_of_methods
from trustlab.metrics.schema import need, table
from trustlab.metrics.ties import tied
from trustlab.records import Case

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


def accuracy_by_grader(
    answers: pd.DataFrame,
    graders: Sequence[str | Grader] = RULES,
    cases: Sequence[Case] | None = None,
    **how: Any,
) -> pd.DataFrame:
    """The share of right answers by each grader, a row a data set, model and grader.

    All levels together. What a grader did not grade is missing. ``how``: n_draws and seed.
    """
    found, names = verdicts(answers, graders, cases)
    lines = []
    for name in names:
        why = f"not graded by {name}"
        each = grouped(found, ["dataset", "model"], name, **how, none=why)
        lines += [line | {"grader": name} for line in measure(each, {"accuracy": mean(name)})]
    return table(lines, ["dataset", "model", "grader"])


def accuracy_message(accuracy: pd.DataFrame) -> str:
    """By how much the accuracy of one model on one data set differs between graders, at most."""
    ends: Any = accuracy.groupby(["dataset", "model"], sort=False)["value"].agg(["min", "max"])
    gaps = (100 * (ends["max"] - ends["min"])).dropna()
    if gaps.empty:
        return "No answer was graded by any grader"
    if gaps.lt(0.5).all():
        return "All graders find the same accuracy on the same answers, to within half a point"
    dataset, model = gaps.idxmax()
    return (
        f"On the same answers graders differ in accuracy by at most {gaps.max():.0f} percentage"
        f" points ({model}, {dataset}); by less than half a point in {int(gaps.lt(0.5).sum())} of"
        f" {len(gaps)} rows"
    )


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
