"""Is a method better than another one on the same answers? Each against a reference, and the best of each family against it.

``answers`` and ``confidence`` are those of a benchmark's :class:`trustlab.experiments.benchmark.Run`. The reference is a method
of the run, by default MedConf; one that is there without any value gives rows that say why. Every ``difference`` is the
method's metric minus the reference's, so that above 0 the method is better. Intervals are 95 % bootstrap over cases.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportReturnType=false

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from trustlab.confidence import METHODS
from trustlab.experiments.shown import with_interval
from trustlab.metrics.best import best_against
from trustlab.metrics.estimate import case_weights
from trustlab.metrics.paired import FAMILY, MIN_COVERAGE, paired_differences, within_level
from trustlab.metrics.power import cases_shown, cases_to_tell_apart
from trustlab.metrics.significance import holm
from trustlab.metrics.table import KEYS

RUN = ["model", "dataset"]
ROW = ["case_id", "level"]
DIFFERENCE = ["value", "reference", "difference", "low", "high", "p", "p_holm", "standard_error"]
COUNTS = ["n", "n_cases", "n_rarer", "n_missing", "cases_needed", "missing"]
COMPARED = [*RUN, "method", "family", "against", "metric", "level", *DIFFERENCE, *COUNTS]
METRIC_NAMES = {"auroc": "AUROC", "auprc": "AUPRC", "cv_group": "CV group", "cv_sample": "CV sample"}
MADE = ("p_holm", "cases_needed")
CHOSEN = ["low_chosen", "high_chosen", "chosen_in"]
BEST = [*RUN, "family", "method", "against", "metric", "level", *DIFFERENCE, *CHOSEN, "n_methods", "left_out", *COUNTS]


def compare_methods(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    reference: str = "medconf",
    metrics: Sequence[str] = ("auroc",),
    n_draws: int = 2000,
    seed: int = 0,
    min_per_class: int = 10,
) -> pd.DataFrame:
    """Every method against ``reference``, each on the rows that the two share: the columns :data:`COMPARED`.

    Underneath is :func:`trustlab.metrics.paired.paired_differences`, whose columns these are; ``p_holm`` is over all methods of a
    model, data set, metric and level. ``against`` names the reference. ``cases_needed``: how many cases like these would tell
    the observed difference from 0 four times in five at 5 % (:func:`trustlab.metrics.power.cases_to_tell_apart`), missing where
    there is no difference or no interval. Empty where there is no other method. ``ValueError`` for an unknown reference.
    """
    table = _joined(answers, confidence, reference)
    if table["method"].nunique() == 1:
        return pd.DataFrame(columns=COMPARED)
    settings: dict[str, Any] = {"n_draws": n_draws, "seed": seed, "min_per_class": min_per_class}
    found = paired_differences(table, reference, by="method", metrics=metrics, **settings)
    return finished(found.assign(against=reference, family=[family_name(m) for m in found["method"]]), COMPARED)


def best_of_families(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    reference: str = "medconf",
    level: str = "within",
    n_draws: int = 2000,
    seed: int = 0,
    min_per_class: int = 10,
) -> pd.DataFrame:
    """In each family the method with the highest AUROC, against ``reference``: a row a family, the columns :data:`BEST`.

    All methods of a family and the reference stand on the rows that all of them have; a method with a value on less than half of
    the graded answers is named in ``left_out`` instead, and ``n_methods`` counts the others. The best was chosen on the very
    cases that it is judged on, which flatters it: ``chosen_in`` is the share of draws in which the same method would have been
    chosen, and ``low_chosen`` to ``high_chosen`` the interval of best minus reference with the choice made anew in each draw
    (:func:`trustlab.metrics.best.best_against`); ``low``, ``high``, ``p`` (``p_holm``: over the families), ``standard_error``
    and ``cases_needed`` hold the method fixed. The reference itself is left out of its family. Withheld as in
    :func:`compare_methods`, with the ``missing``; equals are named there too. ``level`` is "within" or "pooled".
    """
    if level not in ("within", "pooled"):
        raise ValueError(f"level is {level!r}; allowed are 'within' and 'pooled'")
    table = _joined(answers, confidence, reference)
    rows: list[dict[str, Any]] = []
    for key, run in table.groupby(RUN, sort=False):
        label = {**dict(zip(RUN, key, strict=True)), "against": reference, "metric": "auroc", "level": level}
        cases = np.unique(run["case_id"])
        draws = np.ascontiguousarray(case_weights(cases, n_draws, seed).T)
        graded = run.dropna(subset="correct")
        wide = graded.pivot(index=ROW, columns="method", values="confidence")
        right = graded.drop_duplicates(ROW).set_index(ROW)["correct"].reindex(wide.index).astype(float)
        n_asked = len(run.drop_duplicates(ROW))
        for family, members in families_of(dict.fromkeys(run["method"]), reference).items():
            kept, left_out = covered(wide, members)
            row = {"n_methods": len(kept), "left_out": ", ".join(left_out), **_no_best(wide, kept, reference, run)}
            if not row["missing"]:
                both = _mixed(wide[[*kept, reference]].dropna(), right, level)
                row |= _best_row(both, right.loc[both.index], kept, reference, cases, draws, level, max(min_per_class, 1))
            rows.append({**label, "family": family, **row, "n_missing": n_asked - row["n"]})
    return finished(rows, BEST)


def finished(rows: Any, columns: Sequence[str], family: Sequence[str] = FAMILY) -> pd.DataFrame:
    """Rows of differences as a table with these ``columns``: Holm within each ``family``, and the cases needed.

    Read are difference, p, standard_error and n_cases.
    """
    found = pd.DataFrame(rows, columns=list(dict.fromkeys([*(c for c in columns if c not in MADE), "standard_error"])))
    each = zip(found["difference"], found["standard_error"], found["n_cases"], strict=True)
    needed = [cases_to_tell_apart(float(d), float(e), int(n)) for d, e, n in each]
    corrected = found.groupby(list(family), sort=False)["p"].transform(holm) if len(found) else np.nan
    return found.assign(p_holm=corrected, cases_needed=np.array(needed, dtype=float))[list(columns)]


def differences_shown(table: pd.DataFrame, names: Sequence[str] = ("model", "method"), digits: int = 2) -> pd.DataFrame:
    """A table of differences to read: a row a row, ``names`` first, values and intervals as text, "–" where there is none.

    Of bests (:data:`BEST`) also the interval of whoever is best, the share of draws in which this one is, and who was left out.
    """
    shown = table[list(names)].reset_index(drop=True)
    if "metric" in shown:
        shown["metric"] = shown["metric"].replace(METRIC_NAMES)
    rows = table.to_dict("records")
    against = str(table["against"].iloc[0]) if len(table) else "reference"
    shown["value"] = [with_interval(r["value"], np.nan, np.nan, digits) for r in rows]
    shown[against] = [with_interval(r["reference"], np.nan, np.nan, digits) for r in rows]
    shown["difference"] = [with_interval(r["difference"], r["low"], r["high"], digits) for r in rows]
    shown["p"] = [p_shown(r["p"]) for r in rows]
    shown["p (Holm)"] = [p_shown(r["p_holm"]) for r in rows]
    if "low_chosen" in table:
        ends = [(r["low_chosen"], r["high_chosen"]) for r in rows]
        shown["whoever is best"] = ["–" if pd.isna(a) else f"[{a:.{digits}f}, {b:.{digits}f}]" for a, b in ends]
        shown["best in"] = ["–" if pd.isna(r["chosen_in"]) else f"{100 * r['chosen_in']:.0f} %" for r in rows]
        shown["left out"] = table["left_out"].to_numpy()
    for column, name in (("n", "n"), ("n_cases", "cases")):
        if column in table:
            shown[name] = table[column].to_numpy()
    shown["cases to tell apart"] = [cases_shown(r["cases_needed"]) for r in rows]
    return shown.assign(note=table["missing"].to_numpy())


def p_shown(p: float) -> str:
    """A p-value to read: three decimals, "< 0.001" below them, "–" where there is none."""
    return "–" if pd.isna(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"


def reference_of(methods: Iterable[str], wanted: str = "medconf") -> str:
    """``wanted`` where it is among the methods, else the first of them; ``wanted`` too where there is none."""
    names = list(methods)
    return wanted if wanted in names or not names else names[0]


def families_of(methods: Any, reference: str) -> dict[str, list[str]]:
    """Family -> its methods among these but for the reference, in their order."""
    found: dict[str, list[str]] = {}
    for method in methods:
        if method != reference:
            found.setdefault(family_name(method), []).append(method)
    return found


def family_name(method: str) -> str:
    """The family of a registered method, 'other' for one that is not."""
    return METHODS[method].family if method in METHODS else "other"


def covered(wide: pd.DataFrame, members: Sequence[str]) -> tuple[list[str], list[str]]:
    """The methods with a value on at least half of the rows of ``wide`` (n, methods), and the others."""
    has = {m: m in wide and len(wide) > 0 and float(wide[m].notna().mean()) >= MIN_COVERAGE for m in members}
    return [m for m in members if has[m]], [m for m in members if not has[m]]


def _joined(answers: pd.DataFrame, confidence: pd.DataFrame, reference: str) -> pd.DataFrame:
    """The confidences with ``correct`` beside them."""
    names = list(dict.fromkeys(confidence["method"]))
    if reference not in names:
        raise ValueError(f"reference is {reference!r}; the confidences are of {names}")
    return confidence.merge(answers[[*KEYS, "correct"]], on=KEYS, how="left", validate="many_to_one")


def _no_best(wide: pd.DataFrame, kept: Sequence[str], reference: str, run: pd.DataFrame) -> dict[str, Any]:
    """A row without a best, and why there is none; '' where there may be one."""
    reason = "" if kept else "no method has a value on half of the answers"
    if reference not in wide or not wide[reference].notna().any():
        lost = run.loc[run["method"].eq(reference), "missing"].fillna("").replace("", np.nan).dropna() if "missing" in run else []
        reason = f"no {reference}: {lost.mode().iloc[0] if len(lost) else 'no graded answer has a value'}"
    empty = dict.fromkeys([*DIFFERENCE, *CHOSEN], float("nan"))
    return {"method": "", **empty, "n": 0, "n_cases": 0, "n_rarer": 0, "missing": reason}


def _mixed(rows: pd.DataFrame, right: pd.Series, level: str) -> pd.DataFrame:
    """The rows at levels that have both right and wrong answers; all of them for "pooled"."""
    if level == "pooled":
        return rows
    kinds = right.loc[rows.index].groupby(level="level").transform("nunique")
    return rows[kinds > 1]


def _best_row(
    both: pd.DataFrame,
    right: pd.Series,
    kept: Sequence[str],
    reference: str,
    cases: np.ndarray,
    draws: np.ndarray,
    level: str,
    least: int,
) -> dict[str, Any]:
    """The best of ``kept`` on the rows ``both``, or the reason why it is withheld."""
    case, correct = both.index.get_level_values("case_id").to_numpy(), right.to_numpy()
    rarer = int(min(correct.sum(), len(correct) - correct.sum()))
    counts = {"n": len(both), "n_cases": len(np.unique(case)), "n_rarer": rarer}
    if rarer < least:
        return {**counts, "missing": f"fewer than {least} correct or wrong"}
    at = both.index.get_level_values("level").to_numpy(int) if level == "within" else np.zeros(len(both), int)
    weights = draws[np.searchsorted(cases, case)].T
    measured = {m: within_level(at, correct, both[m].to_numpy(float), weights) for m in [*kept, reference]}
    value, drawn = measured.pop(reference)
    best = best_against([v for v, _ in measured.values()], np.stack([d for _, d in measured.values()]), value, drawn, case)
    return {**counts, **told_best(best, kept, value)}


def told_best(best: Any, names: Sequence[str], reference: float) -> dict[str, Any]:
    """A :class:`trustlab.metrics.best.Best` of the methods ``names`` as columns of :data:`BEST`."""
    same = f"as good: {', '.join(names[i] for i in best.tied)}" if best.tied else ""
    columns = ["difference", "low", "high", "p", "standard_error", *CHOSEN]
    return {
        "method": names[best.which],
        "value": reference + best.difference,
        "reference": reference,
        **{name: getattr(best, name) for name in columns},
        "missing": "; ".join(filter(None, [best.reason, same])),
    }
