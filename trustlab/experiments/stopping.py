"""Tables of recorded consultations: what stopping at a threshold would have brought.

- A case whose answer could not be judged at some level is left out of all of them and counted in
  ``n_missing``, so that every threshold is tried on the same cases. Which and why:
  :func:`trustlab.experiments.talk_tables.left_out_table`.
- Intervals resample cases, with the stops held fixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from trustlab.experiments.consultations import ConsultationRun, purposes_of
from trustlab.experiments.shown import pivoted
from trustlab.metrics import stopping as rules
from trustlab.metrics.estimate import Draws, Metric, Rows, difference, mean, measure, share
from trustlab.metrics.paired import compared, corrected
from trustlab.metrics.schema import table
from trustlab.metrics.stopping import Guarantee, along, fold_of, stop_turns

PRICE = 0.005
"""Share of accuracy that one utterance is worth: a percentage point buys two of them."""
ITSELF, ORACLE = "decides itself", "oracle"
ALPHAS = (0.05, 0.1, 0.2, 0.3, 0.4)
FEW = (0.5, 0.6, 0.7, 0.8, 0.9)
"""Thresholds tried for the guarantee: the fewer, the fewer cases it takes. Fixed beforehand."""
OUTSIDE = "outside the thresholds: no confidence from 0 to 1"
NONE = "no consultation could be judged throughout"
NOBODY = "nobody could follow this rule"
REACHED = {name: mean(name) for name in ("accuracy", "utterances", "early", "questions")}
"""Means a case; ``early`` is the share of cases that stop before the last turn."""
COST = {name: Metric(mean(name), undefined=NOBODY) for name in ("calls", "replies", "tokens")}
"""What the loop asks up to its stop, a case: fifteen samples are one call and fifteen replies."""


@dataclass(frozen=True)
class Grid:
    """One model's consultations as arrays over (n cases, T + 1 levels); no NaN in the first two.

    - ``length`` (n,): questions asked in all; ``enough``: the doctor's decision, NaN where none
      was had; ``confidence``: of each method; ``left_out``: the cases that are not among the n.
    """

    model: str
    case_ids: np.ndarray
    correct: np.ndarray
    utterances: np.ndarray
    length: np.ndarray
    enough: np.ndarray
    confidence: dict[str, np.ndarray]
    left_out: np.ndarray

    @property
    def known(self) -> dict[str, np.ndarray]:
        """The confidence of the methods that have any value."""
        return {m: sure for m, sure in self.confidence.items() if not np.isnan(sure).all()}


def grid(run: ConsultationRun, model: str) -> Grid:
    """The consultations of ``model`` that were graded throughout; ``ValueError`` if it has none."""
    mine = run.answers[run.answers["model"] == model]
    if not len(mine):
        held = list(dict.fromkeys(run.answers["model"]))
        raise ValueError(f"model is {model!r}; the run has {held}")

    def wide(of: Any, value: str) -> pd.DataFrame:
        return of.pivot(index="case_id", columns="level", values=value).astype(float)

    every = wide(mine, "correct")
    correct = every.dropna()
    cases = correct.index
    told, decided, ended = (x[x["model"] == model] for x in (run.confidence, run.enough, run.ended))
    parts = {m: told[told["method"] == m] for m in dict.fromkeys(told["method"])}
    return Grid(
        model=model,
        case_ids=cases.to_numpy(),
        correct=correct.to_numpy(),
        utterances=wide(mine, "n_utterances").loc[cases].to_numpy(),
        length=ended.set_index("case_id")["n_turns"].loc[cases].to_numpy(int),
        enough=wide(decided, "enough").reindex(cases, columns=correct.columns).to_numpy(),
        confidence={m: wide(p, "confidence").loc[cases].to_numpy() for m, p in parts.items()},
        left_out=every.index.difference(cases).to_numpy(),
    )


def chosen_thresholds(
    g: Grid, n_folds: int = 5, price: float = PRICE, seed: int = 0
) -> dict[str, np.ndarray]:
    """Method -> the threshold for each case, (n,), chosen on the other folds than the case's own.

    The rule there: :func:`~trustlab.metrics.stopping.best_threshold`. Methods without any value are
    left out, and so are all where there are fewer than two cases.
    """
    folds = fold_of(g.case_ids, n_folds, seed)
    known = g.known if len(folds) > 1 else {}
    found = {method: np.empty(len(folds)) for method in known}
    for (method, sure), fold in product(known.items(), np.unique(folds)):
        others = folds != fold
        right, said = g.correct[others], g.utterances[others]
        found[method][~others] = rules.best_threshold(sure[others], right, said, price)
    return found


def stops(run: ConsultationRun, model: str, **how: Any) -> dict[str, np.ndarray]:
    """Where each policy stops each case, level (n,).

    - Methods at their :func:`chosen_thresholds`; ``how``: n_folds, price and seed of these.
    - "decides itself": the first level at which the doctor said enough; "fixed k": after k
      questions; "oracle": where the diagnosis is first right, else at the end: no rule can know
      that.
    """
    g = grid(run, model)
    n, last = g.correct.shape[0], g.correct.shape[1] - 1
    chosen = chosen_thresholds(g, **how).items()
    found = {method: stop_turns(g.confidence[method], t[:, None]) for method, t in chosen}
    found[ITSELF] = stop_turns(g.enough, 1.0)
    found |= {f"fixed {k}": np.full(n, k) for k in sorted({0, *range(2, last + 1, 2), last})}
    return found | {ORACLE: stop_turns(g.correct, 1.0)}


def stopped(
    run: ConsultationRun, model: str, n_draws: int = 2000, seed: int = 0, **how: Any
) -> dict[str, Rows]:
    """Policy -> a row a case with what it brought: :data:`REACHED`, :data:`COST`, ``threshold``.

    ``how``: n_folds and price of :func:`chosen_thresholds`.
    """
    g = grid(run, model)
    draws = Draws.of(g.case_ids, n_draws, seed)
    picked = chosen_thresholds(g, seed=seed, **how)
    found = {}
    for policy, at in stops(run, model, seed=seed, **how).items():
        cost: Any = _cost(run, g, policy, at)
        found[policy] = _stopped(g, at, draws, threshold=picked.get(policy, np.nan), **cost)
    return found


def frontier_table(
    run: ConsultationRun, model: str, n_draws: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """Accuracy, utterances and share of early stops at every threshold of every method.

    Strictest first (infinity: never early). Methods without any value are left out.
    """
    g = grid(run, model)
    draws = Draws.of(g.case_ids, n_draws, seed)
    labelled = (
        ({"model": model, "method": m, "threshold": t}, _stopped(g, stop_turns(sure, t), draws))
        for m, sure in g.known.items()
        for t in rules.frontier(sure, g.correct, g.utterances).thresholds
    )
    shown = {name: REACHED[name] for name in ("accuracy", "utterances", "early")}
    return table(measure(labelled, shown), ["model", "method", "threshold"])


def chosen_table(
    run: ConsultationRun, model: str, against: str | None = "medconf", **how: Any
) -> pd.DataFrame:
    """What each policy of :func:`stops` brings, its threshold picked on other cases.

    - Metrics :data:`REACHED`, :data:`COST` (a fixed length and the model's own decision ask for one
      diagnosis, at the end), and ``difference``: its accuracy minus that of ``against``, or of the
      longest consultation where that has no value, paired by case.
    - ``threshold_low`` and ``threshold_high``: of the folds, infinity for never early.
    - ``how``: as in :func:`stopped`.
    """
    base, found = _paired(run, model, against, how)
    gap = {"difference": difference(REACHED["accuracy"])}
    lines: list[dict[str, Any]] = []
    for policy, rows in found.items():
        picked: Any = rows.asked["threshold"]
        label = {"model": model, "policy": policy, "against": base}
        label |= {"threshold_low": picked.min(), "threshold_high": picked.max()}
        lines += measure([(label, rows)], REACHED | COST | (gap if policy != base else {}))
    return table(lines, ["model", "policy", "against", "threshold_low", "threshold_high"])


def chosen_shown(table: pd.DataFrame) -> pd.DataFrame:
    """:func:`chosen_table` to read: a row a policy, shares in percent, costs without interval.

    ``threshold`` is the folds', from the lowest to the highest.
    """
    percent = table["metric"].isin(["accuracy", "early", "difference"])
    whole = percent | table["metric"].eq("tokens")
    ends = {c: table[c].where(percent | table["metric"].eq("utterances")) for c in ("low", "high")}
    spans = zip(table["threshold_low"], table["threshold_high"], strict=True)
    shown: Any = table.assign(**ends, threshold=[_span(*pair) for pair in spans])
    shown[["value", "low", "high"]] *= np.where(percent, 100, 1)[:, None]
    parts = [
        pivoted(shown[x], ["policy", "threshold"], digits=d) for x, d in ((whole, 0), (~whole, 1))
    ]
    names = {"policy": "stops by", "accuracy": "accuracy, %", "early": "early, %"}
    names["difference"] = f"accuracy minus {table['against'].iloc[0]}'s"
    return parts[0].merge(parts[1]).rename(columns=names).fillna("–")


def rules_compared(
    run: ConsultationRun, model: str, against: str | None = "medconf", **how: Any
) -> pd.DataFrame:
    """Accuracy (0 to 1) and utterances of each rule of :func:`stops` against ``against``'s.

    - The columns of :func:`~trustlab.metrics.paired.corrected`; ``p_holm`` is over the rules of a
      metric. Thresholds are picked on other cases, and held fixed in the draws.
    - Where ``against`` has no rule the longest consultation stands for it. The oracle is left out,
      since nobody could follow it.
    - ``how``: as in :func:`stopped`.
    """
    base, found = _paired(run, model, against, how)
    lines = [
        {"model": model, "policy": policy, "against": base, "metric": metric}
        | compared(rows, REACHED[metric])
        for metric in ("accuracy", "utterances")
        for policy, rows in found.items()
        if policy not in (base, ORACLE)
    ]
    return corrected(lines, ["model", "policy", "against"], family=["metric"])


def stops_table(run: ConsultationRun, model: str, **how: Any) -> pd.DataFrame:
    """Which share of the consultations each rule stops after how many ``questions``.

    A consultation that ended by itself counts with the questions it had. ``how``: as in
    :func:`stopped`.
    """
    lines = [
        {"model": model, "policy": policy, "questions": k, "metric": "share"}
        | share(rows, "questions", k)
        for policy, rows in stopped(run, model, **how).items()
        if not policy.startswith("fixed")
        for k in range(run.max_turns + 1)
    ]
    return table(lines, ["model", "policy", "questions"], ["n_hits"])


def guarantee_table(
    run: ConsultationRun,
    model: str,
    alphas: Sequence[float] = ALPHAS,
    delta: float = 0.1,
    thresholds: Sequence[float] = FEW,
    seed: int = 0,
) -> pd.DataFrame:
    """A stopping rule with a guarantee, calibrated on one half of the cases, tried on the other.

    - ``value``: the error of the ``n`` cases of the other half that were diagnosed before the last
      turn, ``n_hits`` of them wrongly, with a Clopper-Pearson interval; ``n_missing`` were not.
    - Where no ``threshold`` can be vouched for ``missing`` says why. Scores beyond 0 to 1 are
      outside the thresholds. The assumption: :func:`trustlab.metrics.stopping.guarantee`.
    - Each row's promise stands for a method and a rate named **before** the table was seen;
      choosing the best row afterwards voids it. It is about the population that the cases come
      from: the error of a few of them neither proves nor refutes it.
    """
    g = grid(run, model)
    test = fold_of(g.case_ids, 2, seed) == 1
    lines = []
    for (method, sure), alpha in product(g.confidence.items(), alphas):
        found = Guarantee(None, alpha, delta, reason=OUTSIDE)
        if not ((sure < 0) | (sure > 1)).any():  # NaN compares false
            found = rules.guarantee(sure[~test], g.correct[~test], alpha, delta, thresholds)
        threshold = np.nan if found.threshold is None else found.threshold  # NaN stops nobody
        label = {"model": model, "method": method, "alpha": alpha, "delta": delta}
        label |= {"threshold": threshold, "metric": "error", "n_calibration": int((~test).sum())}
        at = stop_turns(sure, threshold)
        wrong = np.where(at < g.correct.shape[1] - 1, 1 - along(g.correct, at), np.nan)
        tried: Any = pd.DataFrame({"case_id": g.case_ids, "wrong": wrong})[test]
        rows = Rows.of(tried, "wrong", 0, none=found.reason or "nobody diagnosed early")
        lines.append(label | share(rows, "wrong", exact=True))
    keys = ["model", "method", "alpha", "delta", "threshold"]
    return table(lines, keys, ["n_calibration", "n_hits"])


def guarantee_shown(table: pd.DataFrame) -> pd.DataFrame:
    """:func:`guarantee_table` to read: threshold and errors on the other half, a row a method.

    One cell, named beforehand, carries the guarantee; the best of them, chosen here, does not.
    """
    rows: Any = table.itertuples()
    words = [f"from {r.threshold:g}: {r.n_hits} of {r.n} wrong" for r in rows]
    none = np.where(table["missing"] == OUTSIDE, "no confidence from 0 to 1", "none")
    texts = np.where(table["threshold"].notna(), words, none)
    shown = table.assign(text=texts, allowed=[f"{100 * a:g} % allowed" for a in table["alpha"]])
    wide = shown.pivot(index="method", columns="allowed", values="text").rename_axis(columns=None)
    return wide.loc[shown["method"].unique(), shown["allowed"].unique()]


def _paired(
    run: ConsultationRun, model: str, against: str | None, how: dict[str, Any]
) -> tuple[str, dict[str, Rows]]:
    """The reference, ``against`` or the longest consultation, and :func:`stopped` beside it."""
    found = stopped(run, model, **how)
    base = against if against in found else [p for p in found if p.startswith("fixed")][-1]
    return base, {p: replace(rows, reference=found[base]) for p, rows in found.items()}


def _stopped(g: Grid, at: np.ndarray, draws: Draws, **more: Any) -> Rows:
    """A row a case stopped at turns ``at`` (n,), and ``more`` of it; those left out lack all."""
    reached = {
        "accuracy": along(g.correct, at),
        "utterances": along(g.utterances, at),
        "early": (at < g.correct.shape[1] - 1).astype(float),
        "questions": np.minimum(at, g.length),
    }
    cases = pd.DataFrame(reached | more, index=pd.Index(g.case_ids, name="case_id"))
    every = cases.reindex([*g.case_ids, *g.left_out]).reset_index()
    return Rows.of(every, "accuracy", draws, none=NONE)


def _cost(run: ConsultationRun, g: Grid, policy: str, at: np.ndarray) -> pd.DataFrame:
    """Calls, replies and tokens of each case up to its stop; NaN for the oracle's."""
    if policy == ORACLE:
        return pd.DataFrame(np.nan, g.case_ids, list(COST))
    where = pd.DataFrame({"case_id": g.case_ids, "stop": at, "end": np.minimum(at, g.length)})
    spent = run.spent[run.spent["model"] == g.model].merge(where, on="case_id")
    purpose, level = spent["purpose"], spent["level"]
    keep = purpose.isin(["ask", "patient"]) & (level < spent["stop"])
    if policy in g.confidence:
        keep |= purpose.isin(list(purposes_of(policy))) & (level <= spent["end"])
    else:
        keep |= purpose.eq("diagnosis") & (level == spent["end"])
    if policy == ITSELF:
        keep |= purpose.eq("enough") & (level <= spent["stop"])
    tokens = spent["n_tokens_in"] + spent["n_tokens_out"]
    named: Any = spent.assign(calls=spent["n_requests"], replies=spent["n_replies"], tokens=tokens)
    return named[keep].groupby("case_id")[list(COST)].sum().reindex(g.case_ids, fill_value=0)


def _span(low: float, high: float) -> str:
    """Thresholds to read: one, or the lowest and the highest; infinity is "never"."""
    ends = ("–" if np.isnan(t) else "never" if np.isinf(t) else f"{t:.2f}" for t in (low, high))
    return " to ".join(dict.fromkeys(ends))
