"""Tables of recorded consultations: what stopping at a threshold would have brought, for which each costs nothing new.

A case whose answer could not be judged at some level is left out of all of them, and ``n_cases`` counts the others: every
threshold is tried on the same cases. Which and why: :func:`trustlab.experiments.talk_tables.left_out_table`. Intervals are 95 %
percentile bootstrap over cases, with the stops held fixed; none below 10 cases, nor where all values are alike.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from trustlab.experiments.consultations import ConsultationRun, purposes_of
from trustlab.metrics.estimate import TOO_FEW, case_weights, enough_cases, percentile_interval
from trustlab.metrics.stopping import along, best_threshold, fold_of, frontier, guarantee, stop_turns
from trustlab.metrics.ties import reaches

PRICE = 0.005
"""Share of accuracy that one utterance is worth when a threshold is chosen: a percentage point buys two utterances."""
ITSELF, ORACLE = "decides itself", "oracle"
ALPHAS = (0.05, 0.1, 0.2, 0.3, 0.4)
FEW = (0.5, 0.6, 0.7, 0.8, 0.9)
"""Thresholds tried for the guarantee: the fewer, the fewer calibration cases it takes. Fixed before any case is seen."""
ALL_ALIKE = "no interval: all alike"
OUTSIDE = "outside the thresholds: no confidence from 0 to 1"


@dataclass(frozen=True)
class Grid:
    """One model's consultations as arrays over (n cases, T + 1 levels): ``correct`` and ``utterances``; NaN nowhere.

    ``length`` (n,) is how many questions were asked in all, ``enough`` the doctor's decision (NaN where none was had).
    """

    model: str
    case_ids: np.ndarray
    correct: np.ndarray
    utterances: np.ndarray
    length: np.ndarray
    enough: np.ndarray
    confidence: dict[str, np.ndarray]


def grid(run: ConsultationRun, model: str) -> Grid:
    """The consultations of ``model``, those without a graded answer at some level left out; ``ValueError`` if it has none."""
    mine = run.answers[run.answers["model"] == model]
    if not len(mine):
        raise ValueError(f"model is {model!r}; the run has {list(dict.fromkeys(run.answers['model']))}")
    wide = mine.pivot(index="case_id", columns="level", values="correct").astype(float)
    wide = wide[wide.notna().all(axis=1)]
    said = mine.pivot(index="case_id", columns="level", values="n_utterances").loc[wide.index]
    told = run.confidence[run.confidence["model"] == model]
    sure = {
        m: told[told["method"] == m].pivot(index="case_id", columns="level", values="confidence").loc[wide.index].to_numpy(float)
        for m in dict.fromkeys(told["method"])
    }
    decided = run.enough[run.enough["model"] == model].pivot(index="case_id", columns="level", values="enough")
    length = run.ended[run.ended["model"] == model].set_index("case_id")["n_turns"]
    return Grid(
        model=model,
        case_ids=wide.index.to_numpy(),
        correct=wide.to_numpy(),
        utterances=said.to_numpy(float),
        length=length.loc[wide.index].to_numpy(int),
        enough=decided.reindex(index=wide.index, columns=wide.columns).to_numpy(float),
        confidence=sure,
    )


def frontier_table(run: ConsultationRun, model: str, n_draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """Accuracy and mean utterances at every threshold: a row a method and threshold, strictest (infinity: never) first.

    Columns model method threshold accuracy low high utterances utterances_low utterances_high early note n_cases; ``early`` is
    the share of cases that stop before the last turn; ``note`` says why accuracy has no interval. Methods without any value are
    left out.
    """
    g = grid(run, model)
    rows = []
    for method, sure in g.confidence.items():
        if np.isnan(sure).all() or not len(sure):
            continue
        found = frontier(sure, g.correct, g.utterances)
        at = np.stack([stop_turns(sure, t) for t in found.thresholds])
        accuracy, said = (_intervals(along(x, at), g.case_ids, n_draws, seed) for x in (g.correct, g.utterances))
        for i, t in enumerate(found.thresholds):
            note = _note(along(g.correct, at[i]), g.case_ids)
            rows.append((model, method, t, found.accuracy[i], *accuracy[i], found.utterances[i], *said[i], found.early[i], note))
    columns = ["model", "method", "threshold", "accuracy", "low", "high", "utterances", "utterances_low", "utterances_high"]
    return pd.DataFrame(rows, columns=[*columns, "early", "note"]).assign(n_cases=len(g.case_ids))


def chosen_thresholds(g: Grid, n_folds: int = 5, price: float = PRICE, seed: int = 0) -> dict[str, np.ndarray]:
    """Method -> the threshold for each case, (n,), chosen on the other folds than the case's own.

    The rule: best accuracy minus ``price`` times mean utterances there, of equals the one with fewer utterances. Methods
    without any value are left out, and so are all where there are fewer than two cases.
    """
    folds = fold_of(g.case_ids, n_folds, seed)
    found = {}
    for method, sure in g.confidence.items():
        if len(sure) < 2 or np.isnan(sure).all():
            continue
        found[method] = np.empty(len(sure))
        for fold in np.unique(folds):
            others = folds != fold
            best = best_threshold(sure[others], g.correct[others], g.utterances[others], price)
            found[method][~others] = best
    return found


def stops(run: ConsultationRun, model: str, n_folds: int = 5, price: float = PRICE, seed: int = 0) -> dict[str, np.ndarray]:
    """Where each policy stops each case, level (n,): methods at their chosen thresholds, and what they are held against.

    A method's threshold is that of :func:`chosen_thresholds`. "decides itself" stops at the first level at which the
    doctor said enough; "fixed k" after k questions; "oracle" where the diagnosis is first right, else at the end: no rule can
    know that. Methods without any value are left out.
    """
    g = grid(run, model)
    n, last = g.correct.shape[0], g.correct.shape[1] - 1
    found: dict[str, np.ndarray] = {}
    for method, threshold in chosen_thresholds(g, n_folds, price, seed).items():
        reached = reaches(g.confidence[method], threshold[:, None])  # a threshold of its own for each case
        found[method] = stop_turns(np.where(reached, 1.0, 0.0), 1.0)
    found[ITSELF] = stop_turns(g.enough, 1.0)
    for k in sorted({0, *range(2, last + 1, 2), last}):
        found[f"fixed {k}"] = np.full(n, k)
    found[ORACLE] = stop_turns(g.correct, 1.0)
    return found


def chosen_table(
    run: ConsultationRun,
    model: str,
    against: str | None = "medconf",
    n_folds: int = 5,
    price: float = PRICE,
    n_draws: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """What each policy of :func:`stops` brings, its threshold picked on other cases than those reported.

    Columns model policy threshold_low threshold_high accuracy low high utterances utterances_low utterances_high questions calls
    replies tokens difference difference_low difference_high note against n_cases. The thresholds are the lowest and the highest
    of the folds, infinity for never early. ``questions``, ``calls``, ``replies`` (fifteen samples are one call and fifteen
    replies) and ``tokens`` are means a case: what the loop would have asked up to its stop (a fixed length and the model's own
    decision ask for one diagnosis, at the end). ``difference`` in accuracy is paired by case, to ``against`` or, where that has
    no value, to the longest consultation. ``note`` says why accuracy has no interval.
    """
    g = grid(run, model)
    at = stops(run, model, n_folds, price, seed)
    picked = chosen_thresholds(g, n_folds, price, seed)
    base = against if against in at else f"fixed {g.correct.shape[1] - 1}"
    right = {policy: along(g.correct, a) for policy, a in at.items()}
    rows = []
    for policy, a in at.items():
        said, n_questions = along(g.utterances, a), np.minimum(a, g.length)
        gap = right[policy] - right[base]
        value = [x for row in (right[policy], said) for x in (_mean(row), *_intervals(row, g.case_ids, n_draws, seed)[0])]
        differs = (np.nan,) * 3 if policy == base else (_mean(gap), *_intervals(gap, g.case_ids, n_draws, seed)[0])
        threshold = (picked[policy].min(), picked[policy].max()) if policy in picked else (np.nan, np.nan)
        note = _note(right[policy], g.case_ids)
        rows.append((model, policy, *threshold, *value, _mean(n_questions), *_cost(run, g, policy, a), *differs, note))
    columns = ["model", "policy", "threshold_low", "threshold_high", "accuracy", "low", "high"]
    columns += ["utterances", "utterances_low", "utterances_high", "questions"]
    columns += ["calls", "replies", "tokens", "difference", "difference_low", "difference_high", "note"]
    return pd.DataFrame(rows, columns=columns).assign(against=base, n_cases=len(g.case_ids))


def chosen_shown(table: pd.DataFrame) -> pd.DataFrame:
    """:func:`chosen_table` to read: a row a policy, numbers with their intervals as text, accuracy and difference in percent.

    A value without an interval stands alone. ``threshold`` is the folds', from the lowest to the highest.
    """

    def text(name: str, low: str, high: str, unit: float, form: str) -> list[str]:
        rows = zip(unit * table[name], unit * table[low], unit * table[high], strict=True)
        return [
            "–" if np.isnan(v) else f"{v:{form}}" if np.isnan(lo) else f"{v:{form}} [{lo:{form}}, {hi:{form}}]"
            for v, lo, hi in rows
        ]

    against = str(table["against"].iloc[0]) if len(table) else ""
    return pd.DataFrame(
        {
            "stops by": table["policy"],
            "threshold": [_span(*ends) for ends in zip(table["threshold_low"], table["threshold_high"], strict=True)],
            "accuracy, %": text("accuracy", "low", "high", 100, ".0f"),
            "utterances": text("utterances", "utterances_low", "utterances_high", 1, ".1f"),
            "questions": table["questions"].round(1),
            "calls": table["calls"].round(1),
            "replies": table["replies"].round(1),
            "tokens": table["tokens"].round(0),
            f"accuracy minus {against}'s": text("difference", "difference_low", "difference_high", 100, "+.0f"),
        }
    )


def stops_table(run: ConsultationRun, model: str, n_folds: int = 5, price: float = PRICE, seed: int = 0) -> pd.DataFrame:
    """How many consultations each rule stops after how many questions: model policy questions n share n_cases.

    A consultation that ended by itself counts with the questions it had.
    """
    g = grid(run, model)
    rows = []
    for policy, at in stops(run, model, n_folds, price, seed).items():
        if policy.startswith("fixed"):
            continue
        asked = np.minimum(at, g.length)
        for k in range(g.correct.shape[1]):
            n = int((asked == k).sum())
            rows.append((model, policy, k, n, n / len(asked) if len(asked) else np.nan, len(asked)))
    return pd.DataFrame(rows, columns=["model", "policy", "questions", "n", "share", "n_cases"])


def guarantee_table(
    run: ConsultationRun,
    model: str,
    alphas: Sequence[float] = ALPHAS,
    delta: float = 0.1,
    thresholds: Sequence[float] = FEW,
    seed: int = 0,
) -> pd.DataFrame:
    """A stopping rule with a guarantee, calibrated on one half of the cases and tried on the other.

    Columns model method alpha delta threshold reason n_calibration n_test n_early n_wrong error low
    high note. ``n_early`` cases of the other half were diagnosed before the last turn, ``error`` of
    them wrongly, with a 95 % Clopper-Pearson interval, or none below 10 of them (``note``). Where
    no threshold can be vouched for ``missing`` says why, and all the others are missing. Scores
    beyond 0 to 1 are outside the thresholds. The assumption: :func:`guarantee`.

    Each row's promise stands for a method and a rate that were named **before** the table was seen; choosing the best row
    afterwards voids it. It is about the population that the cases come from: ``error``, of a few of them, neither proves nor
    refutes it.
    """
    g = grid(run, model)
    half = fold_of(g.case_ids, 2, seed)
    rows = []
    for method, sure in g.confidence.items():
        for alpha in alphas:
            cal, test = half == 0, half == 1
            sizes = (int(cal.sum()), int(test.sum()))
            beyond = bool(((sure < 0) | (sure > 1)).any())  # NaN compares false
            found = None if beyond else guarantee(sure[cal], g.correct[cal], alpha, delta, thresholds)
            if found is None or found.threshold is None:
                reason = OUTSIDE if found is None else found.reason
                rows.append((model, method, alpha, delta, np.nan, reason, *sizes, 0, 0, np.nan, np.nan, np.nan, ""))
                continue
            at = stop_turns(sure[test], found.threshold)
            early = at < g.correct.shape[1] - 1
            n, wrong = int(early.sum()), int((1 - along(g.correct[test], at))[early].sum())
            several = enough_cases(np.arange(n))
            interval = binomtest(wrong, n).proportion_ci(method="exact") if several else (np.nan, np.nan)
            error, note = wrong / n if n else np.nan, "" if several else TOO_FEW if n else "nobody diagnosed early"
            rows.append((model, method, alpha, delta, found.threshold, "", *sizes, n, wrong, error, *interval, note))
    columns = ["model", "method", "alpha", "delta", "threshold", "missing", "n_calibration", "n_test", "n_early", "n_wrong"]
    return pd.DataFrame(rows, columns=[*columns, "error", "low", "high", "note"])


def guarantee_shown(table: pd.DataFrame) -> pd.DataFrame:
    """:func:`guarantee_table` to read: a row a method, a column an allowed error, threshold and errors on the other half.

    One cell, named beforehand, carries the guarantee; the best of them, chosen here, does not.
    """
    words = [f"from {r.threshold:g}: {r.n_wrong} of {r.n_early} wrong" for r in table.itertuples()]
    none = np.where(table["missing"] == OUTSIDE, "no confidence from 0 to 1", "none")
    texts = np.where(table["threshold"].notna(), words, none)
    shown = table.assign(text=texts, allowed=[f"{100 * a:g} % allowed" for a in table["alpha"]])
    wide = shown.pivot(index="method", columns="allowed", values="text")
    return wide.loc[list(dict.fromkeys(shown["method"])), list(dict.fromkeys(shown["allowed"]))].rename_axis(columns=None)


def _cost(run: ConsultationRun, g: Grid, policy: str, at: np.ndarray) -> tuple[float, float, float]:
    """Mean calls, replies and tokens a case up to the stop; NaN for the oracle, which no loop can follow."""
    if policy == ORACLE or not len(at):
        return float("nan"), float("nan"), float("nan")
    spent = run.spent[run.spent["model"] == g.model]
    where = pd.DataFrame({"case_id": g.case_ids, "stop": at, "end": np.minimum(at, g.length)})
    spent = spent.merge(where, on="case_id")
    talk = spent["purpose"].isin(["ask", "patient"])
    keep = talk & (spent["level"] < spent["stop"])
    if policy in g.confidence:
        keep |= spent["purpose"].isin(purposes_of(policy)) & (spent["level"] <= spent["end"])
    else:
        keep |= spent["purpose"].eq("diagnosis") & (spent["level"] == spent["end"])
    if policy == ITSELF:
        keep |= spent["purpose"].eq("enough") & (spent["level"] <= spent["stop"])
    kept = spent[keep]
    calls, replies, tokens = kept["n_requests"].sum(), kept["n_replies"].sum(), (kept["n_tokens_in"] + kept["n_tokens_out"]).sum()
    return float(calls) / len(at), float(replies) / len(at), float(tokens) / len(at)


def _span(low: float, high: float) -> str:
    """Thresholds to read: one, or the lowest and the highest; infinity is "never"."""
    ends = dict.fromkeys("–" if np.isnan(t) else "never" if np.isinf(t) else f"{t:.2f}" for t in (low, high))
    return " to ".join(ends)


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _intervals(rows: np.ndarray, case_ids: np.ndarray, n_draws: int, seed: int) -> list[tuple[float, float]]:
    """The interval of the mean of each row, (G, n) or (n,); NaN where :func:`_note` says why there is none."""
    values, none = np.atleast_2d(rows), (float("nan"), float("nan"))
    if not enough_cases(case_ids):
        return [none] * len(values)
    weights = case_weights(case_ids, n_draws, seed)
    draws = values @ weights.T / weights.sum(axis=1)
    return [none if _note(v, case_ids) else percentile_interval(row) for v, row in zip(values, draws, strict=True)]


def _note(values: np.ndarray, case_ids: np.ndarray) -> str:
    """Why the mean of ``values`` (n,) has no interval, or ''. Of values all alike every draw is alike, which proves nothing."""
    return TOO_FEW if not enough_cases(case_ids) else ALL_ALIKE if np.ptp(values) == 0 else ""
