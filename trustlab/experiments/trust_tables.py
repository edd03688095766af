"""What the trust indices stand on, as tidy tables: their weights, how their parts go together, agreement, weak points.

Pure functions of ``reviews`` (a row a case and configuration, :data:`trustlab.metrics.trust_table.NEEDED`) or of the indices that
:func:`trustlab.metrics.trust_table.trust_indices` makes of them. Intervals are 95 % percentile bootstrap over cases, those of
kappa and AC1 jackknife over cases: a case drawn twice would pass for chance agreement.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportOperatorIssue=false
# pyright: reportReturnType=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import kendalltau

from trustlab.metrics import ties, trust, votes
from trustlab.metrics.correlation import pearson_rows, spearman_rows
from trustlab.metrics.estimate import TOO_FEW, case_weights, enough_cases, jackknife_interval, percentile_interval
from trustlab.metrics.trust_table import (
    ALIKE,
    COUNTS,
    KEYS,
    RUN,
    RX,
    TESTS,
    check_reviews,
    checked_choices,
    each_case,
    trust_indices,
)

WEIGHTS = ["w_accuracy", "w_agreement", "w_rdc"]
PARTS = ["accuracy", "cdr", "rdc"]
WHEN = ("before", "after", "gain", "before_n", "after_n")
CORRELATIONS = {"pearson": pearson_rows, "spearman": spearman_rows}
ALONE = "one doctor: nobody to agree with"
UNREADABLE = "no case has enough readable diagnoses"
VARIANTS: dict[str, dict[str, str]] = {
    "default": {},
    "UNSAFE alone": {"rx_variant": "unsafe"},
    "unreadable votes agree with nobody": {"cdr_variant": "unreadable disagrees"},
}
"""Other readings of what the sources leave open, as choices of ``trust_indices``."""
MEASURED = ["value", "low", "high", "n", "n_missing", "missing"]


def weight_grid(steps: int = 20) -> np.ndarray:
    """All weights of (accuracy, 1 - CDR, RDC) in steps of 1/``steps`` that sum to 1, shape ((steps + 1)(steps + 2)/2, 3)."""
    if steps < 1:
        raise ValueError(f"steps must be at least 1; received {steps}")
    return np.array([(i, j, steps - i - j) for i in range(steps + 1) for j in range(steps + 1 - i)]) / steps


def weight_sweep(indices: pd.DataFrame, steps: int = 20, formulation: str = "trust-x") -> pd.DataFrame:
    """Which configuration has the highest ETI under each weighting: a row a model, data set, level and point of the grid.

    Columns: the run's keys, w_accuracy w_agreement w_rdc, winner (a configuration, "tie", or "" with the reason in
    ``missing``), ``tied`` (the names that tied), eti_percent of the winner, ``margin`` to the next (NaN for one alone, 0 in a
    tie), n_cases (the fewest behind the ETI of any compared), n_configurations, n_left_out (a part
    is missing, so that no weighting is fair). Configurations whose parts are the
    same with safety on and off count once. ``ValueError`` where ``indices`` hold nothing of the ``formulation``.
    """
    rows = []
    for run, part in _groups(_contenders(indices, formulation), RUN):
        known = part.dropna(subset=PARTS)
        counts = {"n_cases": _fewest(known), "n_configurations": len(known), "n_left_out": len(part) - len(known)}
        names = known["contender"].to_numpy()
        for weights in weight_grid(steps):
            won = _winner(names, _eti_percent(known, weights, formulation))
            rows.append(run | dict(zip(WEIGHTS, weights, strict=True)) | won | counts)
    return pd.DataFrame(rows)


def weight_shares(sweep: pd.DataFrame) -> pd.DataFrame:
    """The share of the grid's points that each configuration of a :func:`weight_sweep` wins, ties split evenly.

    Columns: the run's keys, configuration, share (0 to 1), n_points. A configuration that never wins has no row.
    """
    won = sweep[sweep["winner"] != ""]
    named = won.assign(configuration=[t or (w,) for w, t in zip(won["winner"], won["tied"], strict=True)])
    named = named.assign(share=[1 / len(names) for names in named["configuration"]]).explode("configuration")
    points = won.groupby(RUN, sort=False, observed=True).size().rename("n_points").reset_index()
    shares = named.groupby([*RUN, "configuration"], sort=False, observed=True)["share"].sum().reset_index()
    shares = shares.merge(points, on=RUN, validate="many_to_one")
    return shares.assign(share=shares["share"] / shares["n_points"])


def rank_stability(indices: pd.DataFrame, steps: int = 20, formulation: str = "trust-x") -> pd.DataFrame:
    """Kendall's tau-b between the ranking by ETI under the printed weights and under each point of the grid.

    Ranked are all rows of a data set and level, model by configuration (as in :func:`weight_sweep`). Columns: dataset, level,
    the weights, tau (-1 to 1), n ranked, n_cases (the fewest behind the ETI of any of them),
    n_left_out, reason where tau is NaN.
    """
    rows = []
    for label, part in _groups(_contenders(indices, formulation), ["dataset", "level"]):
        known = part.dropna(subset=PARTS)
        printed = _eti_percent(known, np.array(trust.ETI_WEIGHTS), formulation)
        counts = {"n": len(known), "n_cases": _fewest(known), "n_left_out": len(part) - len(known)}
        for weights in weight_grid(steps):
            at = dict(zip(WEIGHTS, weights, strict=True))
            tau, reason = _tau(printed, _eti_percent(known, weights, formulation))
            rows.append(label | at | {"tau": tau, **counts, "missing": reason})
    return pd.DataFrame(rows)


def component_correlations(reviews: pd.DataFrame, draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """How the parts of the indices go together over the cases of a configuration: Pearson and Spearman of each pair.

    The parts of a case: correct, agreement (1 - CDR), cosine, unsafe_rx and test_alerts (shares of what was rated; missing
    where nothing was). Columns: the keys, first, second, measure, value, low, high, n (cases that have both), n_missing,
    reason. No value below 3 cases or where a part is constant; no interval below 10.
    """
    rows = []
    for label, part in _groups(check_reviews(reviews), KEYS):
        parts = _case_parts(part)
        for first, second in combinations(parts.columns, 2):
            both = parts[[first, second]].dropna()
            x, y = both.to_numpy(float).T
            again = _resampled(len(both), part["case_id"][both.index], draws, seed)
            why = _why_no_correlation(parts, both)
            for measure, over_rows in CORRELATIONS.items():
                value = float("nan") if why else float(over_rows(x[None], y[None])[0])
                found = _measured(value, partial(over_rows, x[again], y[again]), len(both), why)
                lost = {"n_missing": len(parts) - len(both)}
                rows.append(label | {"first": first, "second": second, "metric": measure} | found | lost)
    return pd.DataFrame(rows, columns=[*KEYS, "first", "second", "metric", *MEASURED])


def agreement_table(reviews: pd.DataFrame, n_diagnoses: int | None = None, draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """How far the doctors of each configuration agree: raw, whatever their number, and beyond chance.

    ``metric`` is cdr, any_disagreement, pair_agreement (fractions), fleiss_kappa or gwet_ac1 (``n_diagnoses`` as in
    :func:`trustlab.metrics.votes.gwet_ac1`). Columns: model, dataset, level, configuration, n_doctors, measure, value, low,
    high, n (cases behind it), n_missing (too few readable diagnoses), reason. One doctor has CDR 0 by definition and nothing
    else. Intervals of kappa and AC1 are :func:`~trustlab.metrics.estimate.jackknife_interval`, the others bootstrap. Safety
    on and off have the same doctors and count once; where they do not, ``safety`` tells them apart.
    """
    table, keys = _doctors(check_reviews(reviews))
    rows = []
    for label, part in _groups(table, keys):
        label |= {"n_doctors": int(part["n_doctors"].iloc[0])}
        weights = case_weights(part["case_id"].astype(str), draws, seed)
        found = _agreement(part, weights) | _beyond_chance(part, n_diagnoses)
        rows += [label | {"metric": measure} | row | {"n_missing": len(part) - row["n"]} for measure, row in found.items()]
    return pd.DataFrame(rows, columns=[*keys, "n_doctors", "metric", *MEASURED])


def variants(
    reviews: pd.DataFrame,
    formulation: str = "trust-x",
    draws: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """The rows of ``trust_indices`` under each of :data:`VARIANTS`, named in the column ``variant``."""
    how: dict[str, Any] = {"formulation": formulation, "draws": draws, "seed": seed}
    made = [trust_indices(reviews, **how, **c).assign(variant=name) for name, c in VARIANTS.items()]
    return pd.concat(made, ignore_index=True)


def weak_points(
    reviews: pd.DataFrame, formulation: str = "trust-x", constant_cosine: float = 1.0, **choices: Any
) -> pd.DataFrame:
    """What the indices would be if nothing had become better, by construction: a row a configuration and what-if.

    ``what_if``: reviewers who never object (also where safety is off: then they are switched on); an empty plan; a panel
    scored as one doctor (the same diagnosis, nobody to disagree: CDR 0); every reasoning with ``constant_cosine`` to its
    diagnosis, where 1 is reasoning that only repeats the diagnosis, and another value what some fixed text was measured to
    have. Columns: the keys (``safety`` as it was), what_if, n_cases, and eti, osi, fti (all in percent) each ``_before``,
    ``_after``, ``_gain``, and the cases behind the first two, ``_before_n`` and ``_after_n``.
    ``choices`` go to :func:`trustlab.metrics.trust_table.trust_indices`.
    """
    table = check_reviews(reviews)
    safety, panel = table["safety"].astype(bool), table["n_doctors"] > 1
    text = "reasoning that only repeats the diagnosis" if constant_cosine == 1 else f"every cosine {constant_cosine:g}"
    changes: list[tuple[str, Any, Callable[[pd.DataFrame], pd.DataFrame]]] = [
        ("reviewers who never object", safety, _never_objecting),
        ("reviewers who never object", ~safety, _never_objecting),
        ("an empty plan", safety, lambda t: t.assign(**dict.fromkeys(COUNTS, 0), plan_missing="")),
        ("a panel scored as one doctor", panel, _as_one_doctor),
        (text, safety.notna(), lambda t: t.assign(cosine=constant_cosine, cosine_med=constant_cosine)),
    ]
    found = []
    for what_if, where, change in changes:
        if where.any():
            before, after = (trust_indices(t, formulation, draws=0, **choices) for t in (table[where], change(table[where])))
            found.append(_compared(before, after).assign(what_if=what_if))
    result = pd.concat(found, ignore_index=True)
    return result[[*KEYS, "what_if", "n_cases", *(f"{n}_{w}" for n in ("eti", "osi", "fti") for w in WHEN)]]


def _contenders(indices: pd.DataFrame, formulation: str) -> pd.DataFrame:
    """The configurations that differ in a part of ETI, each with its name; safety is in the name only where it matters."""
    trust.check_formulation(formulation)
    lacking = [name for name in ["formulation", *KEYS, *PARTS] if name not in indices.columns]
    if lacking:
        raise ValueError(f"indices lack the columns {lacking}; they have {list(indices.columns)}")
    held = indices[indices["formulation"] == formulation]
    if held.empty:
        raise ValueError(f"indices hold nothing of {formulation!r}; they hold {list(indices['formulation'].unique())}")
    single = held.drop_duplicates([*RUN, "configuration", *PARTS])
    twice = single.duplicated([*RUN, "configuration"], keep=False)
    named = single["configuration"] + single["safety"].map({True: ", safety on", False: ", safety off"})
    return single.assign(contender=named.where(twice, single["configuration"]))


def _fewest(known: pd.DataFrame) -> int:
    """The fewest cases behind the ETI of any row; 0 without rows."""
    return int(known["eti_n"].min()) if len(known) else 0


def _eti_percent(known: pd.DataFrame, weights: np.ndarray, formulation: str) -> np.ndarray:
    value = trust.eti(*(known[name].to_numpy(float) for name in PARTS), tuple(weights), formulation)
    return value * 100 if formulation == "trust-x" else value


def _winner(names: np.ndarray, values: np.ndarray) -> dict[str, Any]:
    if not len(names):
        missing = "no configuration has accuracy, CDR and RDC"
        return {"winner": "", "tied": (), "eti_percent": float("nan"), "margin": float("nan"), "missing": missing}
    level, order = ties.tied(values), np.argsort(-values, kind="stable")
    best = [str(name) for name in names[level == level.max()]]
    margin = 0.0 if len(best) > 1 else float(values[order[0]] - values[order[1]]) if len(values) > 1 else float("nan")
    tied = tuple(sorted(best)) if len(best) > 1 else ()
    winner = "tie" if tied else best[0]
    return {"winner": winner, "tied": tied, "eti_percent": float(values.max()), "margin": margin, "missing": ""}


def _tau(printed: np.ndarray, other: np.ndarray) -> tuple[float, str]:
    if len(printed) < 2:
        return float("nan"), "fewer than 2 rows to rank"
    sides = [ties.tied(side) for side in (printed, other)]
    if min(np.ptp(side) for side in sides) == 0:
        return float("nan"), "all rows have the same ETI"
    return float(kendalltau(*sides).statistic), ""


def _groups(table: pd.DataFrame, keys: list[str]) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    for key, part in table.groupby(keys, sort=False, observed=True, dropna=False):
        yield dict(zip(keys, key, strict=True)), part


def _case_parts(part: pd.DataFrame) -> pd.DataFrame:
    """The parts of the indices case by case, NaN where there is none."""
    each = each_case(part, checked_choices())
    rx, tests = part[RX].sum(axis=1), part[TESTS].sum(axis=1)
    return pd.DataFrame(
        {
            "correct": each["right"].where(each["has_right"] > 0),
            "agreement": [1 - trust.cdr(d) for d in part["diagnoses"]],
            "cosine": part["cosine"].astype(float),
            "unsafe_rx": (part["n_unsafe"] + part["n_caution"]) / rx.where(rx > 0),
            "test_alerts": (part["n_risky"] + part["n_redundant"]) / tests.where(tests > 0),
        },
        index=part.index,
    )


def _why_no_correlation(parts: pd.DataFrame, both: pd.DataFrame) -> str:
    if empty := [str(name) for name, n in parts[list(both)].count().items() if n == 0]:
        return f"no case has {' or '.join(empty)}"
    if len(both) < 3:
        return "fewer than 3 cases have both"
    constant = [name for name, spread in (both.max() - both.min()).items() if spread < ALIKE]
    return f"{' and '.join(map(str, constant))} the same in every case" if constant else ""


def _resampled(n: int, case_ids: pd.Series, draws: int, seed: int) -> np.ndarray:
    """The rows in each draw, (draws, n): row i as often as its case was drawn."""
    if n == 0:
        return np.empty((draws, 0), dtype=int)
    times = case_weights(case_ids.astype(str), draws, seed)
    return np.repeat(np.tile(np.arange(n), draws), times.ravel()).reshape(draws, n)


def _measured(value: float, drawn: Callable[[], np.ndarray], n: int, why: str) -> dict[str, Any]:
    """A value with its interval, or the reason why there is none."""
    low = high = float("nan")
    if not why and not enough_cases(np.arange(n)):
        why = TOO_FEW
    elif not why:
        low, high = percentile_interval(drawn())
        if np.isnan(low):
            why = "no interval: undefined in more than 10 % of the draws"
        elif high - low < ALIKE:
            low, high, why = float("nan"), float("nan"), "no interval: all draws alike"
    return {"value": value, "low": low, "high": high, "n": n, "missing": why}


def _doctors(table: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The doctors' rows once each, and what tells groups apart: safety only where it changed a diagnosis."""
    keys = [*RUN, "configuration"]
    once = table.drop_duplicates([*keys, "case_id", "diagnoses"])
    return (table, KEYS) if once.duplicated([*keys, "case_id"]).any() else (once, keys)


def _agreement(part: pd.DataFrame, weights: np.ndarray) -> dict[str, dict[str, Any]]:
    """The agreement that counts no chance: each measure with its interval, or why it has none."""
    alone = part["n_doctors"].iloc[0] == 1
    found = {}
    for name, measure in (
        ("cdr", trust.cdr),
        ("any_disagreement", trust.any_disagreement),
        ("pair_agreement", trust.pair_agreement),
    ):
        each = np.array([measure(d) for d in part["diagnoses"]], dtype=float)
        at = ~np.isnan(each)
        why = "" if at.any() else UNREADABLE
        if alone:
            why = ALONE if name == "pair_agreement" else why or "0 by definition with one doctor"
        value = float(each[at].mean()) if at.any() else float("nan")
        found[name] = _measured(value, partial(_weighted_mean, each[at], weights[:, at]), int(at.sum()), why)
    return found


def _beyond_chance(part: pd.DataFrame, n_diagnoses: int | None) -> dict[str, dict[str, Any]]:
    """Fleiss' kappa and Gwet's AC1 with their jackknife intervals, or why there is none."""
    counted = votes.count_votes(list(part["diagnoses"]))
    n = len(counted.index)
    without_one = np.vstack([np.ones((1, n)), 1 - np.eye(n)])  # first all cases, then without each
    found = {}
    for name, kappa in (
        ("fleiss_kappa", votes.fleiss_kappa_weighted),
        ("gwet_ac1", partial(votes.gwet_ac1_weighted, n_diagnoses=n_diagnoses)),
    ):
        drawn = kappa(counted, without_one)
        why = ALONE if part["n_doctors"].iloc[0] == 1 else UNREADABLE if n == 0 else ""
        value, low, high = float(drawn[0]), float("nan"), float("nan")
        why = why or ("one diagnosis in all cases" if np.isnan(value) else "")
        if not why:
            low, high, why = jackknife_interval(value, drawn[1:], most=1.0)
        found[name] = {"value": value, "low": low, "high": high, "n": n, "missing": why}
    return found


def _weighted_mean(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The mean of ``values`` (n,) in every draw (B, n), (B,); NaN in a draw without any of them."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return (weights @ values) / weights.sum(axis=1)


def _never_objecting(table: pd.DataFrame) -> pd.DataFrame:
    """Every prescription and test that is known and readable is rated, and nothing is found."""
    rx = (table["n_prescriptions"] - table["n_rx_unknown"] - table["n_rx_unreadable"]).clip(lower=0)
    tests = (table["n_tests"] - table["n_tests_unknown"] - table["n_tests_unreadable"]).clip(lower=0)
    nothing = dict.fromkeys(["n_caution", "n_unsafe", "n_risky", "n_redundant"], 0)
    return table.assign(safety=True, n_safe=rx, n_unflagged=tests, **nothing)


def _as_one_doctor(table: pd.DataFrame) -> pd.DataFrame:
    alone = [(d if isinstance(d, str) else None,) for d in table["diagnosis"]]
    no_answer = (table["n_no_answer"] >= table["n_doctors"]).astype(int)
    return table.assign(diagnoses=alone, n_doctors=1, n_no_answer=no_answer)


def _compared(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """Both tables hold the same configurations in the same order."""
    columns = {"eti": "eti_percent", "osi": "osi", "fti": "fti"}
    values = {f"{name}_before": before[column].to_numpy() for name, column in columns.items()}
    values |= {f"{name}_after": after[column].to_numpy() for name, column in columns.items()}
    gains = {f"{name}_gain": values[f"{name}_after"] - values[f"{name}_before"] for name in columns}
    for name, column in columns.items():
        values[f"{name}_before_n"] = before[f"{column}_n"].to_numpy()
        values[f"{name}_after_n"] = after[f"{column}_n"].to_numpy()
    return before[[*KEYS, "n_cases"]].assign(**values, **gains)
