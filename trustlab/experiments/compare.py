"""Is a method better than another one on the same answers? Each against a reference, and the best.

``answers`` and ``confidence`` are those of a benchmark's
:class:`~trustlab.experiments.benchmark.Run`. The reference is a method of the run, by default
MedConf; one that is there without any value gives rows that say why. Every ``difference`` is the
method's metric minus the reference's, so that above 0 the method is better.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from trustlab.confidence import METHODS
from trustlab.experiments.shown import with_interval
from trustlab.metrics.best import best_against
from trustlab.metrics.discrimination import RANKING
from trustlab.metrics.estimate import (
    Draws,
    Metric,
    Rows,
    Statistic,
    at_least,
    estimate,
    groups,
    most_frequent,
    within,
)
from trustlab.metrics.paired import MIN_COVERAGE, corrected, paired_differences
from trustlab.metrics.run_tables import KEYS
from trustlab.metrics.significance import cases_shown

RUN = ["model", "dataset"]
ROW = ["case_id", "level"]
METRIC_NAMES = {
    "auroc": "AUROC",
    "auprc": "AUPRC",
    "cv_group": "CV group",
    "cv_sample": "CV sample",
}
CHOSEN = ["low_chosen", "high_chosen", "chosen_in"]
BEST = [*RUN, "family", "method", "against", "level"]
OF_BEST = [*CHOSEN, "n_methods", "left_out", "n_rarer"]
"""What a table of bests has beside the columns of differences."""


def compare_methods(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    reference: str = "medconf",
    metrics: Sequence[str] = ("auroc",),
    n_draws: int = 2000,
    seed: int = 0,
    min_per_class: int = 10,
) -> pd.DataFrame:
    """Every method against ``reference``, each on the rows that the two share.

    The rows of :func:`~trustlab.metrics.paired.paired_differences`, with ``family`` and
    ``against``; ``p_holm`` is over all methods of a model, data set, metric and level. Empty where
    there is no other method. ``ValueError`` for an unknown reference.
    """
    table = _joined(answers, confidence, reference)
    how: dict[str, Any] = {"n_draws": n_draws, "seed": seed, "min_per_class": min_per_class}
    if len(set(table["method"])) == 1:
        found = corrected([], [*RUN, "method", "level"], ["n_rarer"])
    else:
        found = paired_differences(table, reference, by="method", metrics=metrics, **how)
    found.insert(3, "family", [family_name(m) for m in found["method"]])
    found.insert(4, "against", reference)
    return found


def best_of_families(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    reference: str = "medconf",
    level: str = "within",
    n_draws: int = 2000,
    seed: int = 0,
    min_per_class: int = 10,
) -> pd.DataFrame:
    """In each family the method with the highest AUROC, against ``reference``: a row a family.

    - All methods of a family and the reference stand on the rows that all of them have; a method
      with a value on less than half of the graded answers is named in ``left_out`` instead, and
      ``n_methods`` counts the others. The reference itself is left out of its family.
    - The best was chosen on the very cases that it is judged on, which flatters it: ``chosen_in``
      is the share of draws in which the same method would have been chosen, ``low_chosen`` to
      ``high_chosen`` the interval with the choice made anew in each draw
      (:func:`~trustlab.metrics.best.best_against`). ``low``, ``high``, ``p`` (``p_holm``: over the
      families), ``standard_error`` and ``cases_needed`` hold the method fixed.
    - Withheld as in :func:`compare_methods`; equals are named in ``missing``, too. ``level`` is
      "within" or "pooled".
    """
    if level not in ("within", "pooled"):
        raise ValueError(f"level is {level!r}; allowed are 'within' and 'pooled'")
    auroc = RANKING["auroc"][0]
    statistic = within(auroc) if level == "within" else auroc
    lines: list[dict[str, Any]] = []
    for run_label, run in groups(_joined(answers, confidence, reference), RUN):
        label = {**run_label, "against": reference, "level": level}
        draws = Draws.of(run["case_id"].to_numpy(), n_draws, seed)
        graded = run.dropna(subset="correct")
        wide = graded.pivot(index=ROW, columns="method", values="confidence")
        right = graded.drop_duplicates(ROW).set_index(ROW)["correct"].reindex(wide.index)
        asked = wide.assign(correct=right.astype(float)).reset_index()
        n_asked = len(run.drop_duplicates(ROW))
        for family, members in families_of(dict.fromkeys(run["method"]), reference).items():
            kept, left_out = covered(wide, members)
            none = "" if kept else "no method has a value on half of the answers"
            if reference not in wide or not wide[reference].notna().any():
                lost = run[run["method"].eq(reference) & run["confidence"].isna()]
                why = most_frequent(lost) if len(lost) else "no graded answer has a value"
                none = f"no {reference}: {why}"
            known = np.full(len(asked), not none)
            if not none:
                known = asked[[*kept, reference]].notna().all(axis=1).to_numpy()
            rows = Rows(asked, known, draws, none)
            if level == "within":
                parts = rows.by("level")
                rows = rows.where("level", [q for q, part in parts.items() if part.rarer])
            counts = {"n_methods": len(kept), "left_out": ", ".join(left_out)}
            found = _best(rows, kept, reference, statistic, at_least(min_per_class)) | counts
            found["n_missing"] = n_asked - found["n"]
            lines.append({**label, "metric": "auroc", "family": family, **found})
    return corrected(lines, BEST, OF_BEST)


def _best(
    rows: Rows, kept: Sequence[str], reference: str, statistic: Statistic, few: Any
) -> dict[str, Any]:
    """The best of ``kept`` on these rows, or the reason why it is withheld."""
    if not len(rows) or few(rows):
        return {**estimate(rows, Metric(statistic, few)), "method": ""}
    drawn = {}
    for method in [*kept, reference]:
        asked = rows.asked.assign(confidence=rows.asked[method])
        drawn[method] = replace(rows, asked=asked).drawn(statistic)
    theirs = drawn.pop(reference)
    each = np.stack(list(drawn.values()))
    best = best_against(each[:, 0], each[:, 1:], theirs[0], theirs[1:], rows.case)
    counts = {"n": len(rows), "n_cases": rows.n_cases, "n_rarer": rows.rarer}
    return {**counts, **told_best(best, kept, float(theirs[0]))}


def differences_shown(
    table: pd.DataFrame, names: Sequence[str] = ("model", "method"), digits: int = 2
) -> pd.DataFrame:
    """A table of differences to read: ``names`` first, values, intervals as text, "–" for none.

    Of bests also the interval of whoever is best, the share of draws in which this one is, and who
    was left out.
    """
    shown: Any = table[list(names)].reset_index(drop=True)
    if "metric" in shown:
        shown["metric"] = shown["metric"].replace(METRIC_NAMES)
    rows = table.to_dict("records")
    against = str(table["against"].iloc[0]) if len(table) else "reference"
    shown["value"] = [with_interval(r["value"], np.nan, np.nan, digits) for r in rows]
    shown[against] = [with_interval(r["reference"], np.nan, np.nan, digits) for r in rows]
    shown["difference"] = [
        with_interval(r["difference"], r["low"], r["high"], digits) for r in rows
    ]
    shown["p"] = [p_shown(r["p"]) for r in rows]
    shown["p (Holm)"] = [p_shown(r["p_holm"]) for r in rows]
    if "low_chosen" in table:
        ends = [(r["low_chosen"], r["high_chosen"]) for r in rows]
        shown["whoever is best"] = [
            "–" if pd.isna(a) else f"[{a:.{digits}f}, {b:.{digits}f}]" for a, b in ends
        ]
        shown["best in"] = [
            "–" if pd.isna(r["chosen_in"]) else f"{100 * r['chosen_in']:.0f} %" for r in rows
        ]
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
    """``wanted`` where it is among the methods, or there is none; else the first of them."""
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
    """The methods with a value on at least half of the rows (n, methods), and the others."""
    share: Any = wide.notna().mean().reindex(list(members)).fillna(0)
    kept = [m for m in members if share[m] >= MIN_COVERAGE]
    return kept, [m for m in members if m not in kept]


def _joined(answers: pd.DataFrame, confidence: pd.DataFrame, reference: str) -> pd.DataFrame:
    """The confidences with ``correct`` beside them."""
    names = list(dict.fromkeys(confidence["method"]))
    if reference not in names:
        raise ValueError(f"reference is {reference!r}; the confidences are of {names}")
    return confidence.merge(
        answers[[*KEYS, "correct"]], on=KEYS, how="left", validate="many_to_one"
    )


def told_best(best: Any, names: Sequence[str], reference: float) -> dict[str, Any]:
    """A :class:`~trustlab.metrics.best.Best` of the methods ``names`` as a line of a table."""
    equals = [str(names[int(i)]) for i in best.tied]
    same = f"as good: {', '.join(equals)}" if equals else ""
    columns = ["difference", "low", "high", "p", "standard_error", *CHOSEN]
    return {
        "method": names[best.which],
        "value": reference + best.difference,
        "reference": reference,
        **{name: getattr(best, name) for name in columns},
        "missing": "; ".join(filter(None, [best.reason, same])),
    }
