"""What the trust indices stand on: weights, how the parts go together, agreement, weak points.

Pure functions of ``reviews`` (:data:`trustlab.metrics.trust_table.NEEDED`) or of the indices that
:func:`trustlab.metrics.trust_table.trust_indices` makes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import kendalltau

from trustlab.metrics import schema, ties, trust, votes
from trustlab.metrics import trust_table as made
from trustlab.metrics.correlation import pearson_rows, spearman_rows
from trustlab.metrics.estimate import (
    Draws,
    Metric,
    Rows,
    all_alike,
    estimate,
    groups,
    mean,
    measure,
)
from trustlab.metrics.trust_table import COUNTS, KEYS, RUN, check_reviews, trust_indices

WEIGHTS = ["w_accuracy", "w_agreement", "w_rdc"]
PARTS = ["accuracy", "cdr", "rdc"]
RAW = {of.__name__: of for of in (trust.cdr, trust.any_disagreement, trust.pair_agreement)}
"""Agreement that counts no chance, case by case."""
ALONE = "one doctor: nobody to agree with"
UNREADABLE = "no case has enough readable diagnoses"
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "UNSAFE alone": {"rx_variant": "unsafe"},
    "unreadable votes agree with nobody": {"cdr_variant": "unreadable disagrees"},
}
"""Other readings of what the sources leave open, as choices of ``trust_indices``."""


def weight_grid(steps: int = 20) -> np.ndarray:
    """All weights of (accuracy, 1 - CDR, RDC) that sum to 1 in steps of 1/``steps``, (points, 3)."""
    if steps < 1:
        raise ValueError(f"steps must be at least 1; received {steps}")
    grid = [(i, j, steps - i - j) for i in range(steps + 1) for j in range(steps + 1 - i)]
    return np.array(grid) / steps


def weight_sweep(
    indices: pd.DataFrame, steps: int = 20, formulation: str = "trust-x"
) -> pd.DataFrame:
    """The highest ETI, in percent, at each point of the grid of weights, and whose it is.

    - ``winner``: a configuration, "tie" (``tied`` names them), or "" with the reason in
      ``missing``; ``margin`` to the next: NaN for one alone, 0 in a tie.
    - ``n`` configurations are compared; ``n_missing`` lack a part, so that no weighting is fair to
      them; ``n_cases`` is the fewest behind the ETI of any.
    - Configurations whose parts are the same with safety on and off count once.
    - ``ValueError`` where ``indices`` hold nothing of the ``formulation``.
    """
    swept = _swept(indices, steps, formulation, RUN)
    lines = [{**line, "metric": "eti_percent", **_winner(eti)} for line, eti, _ in swept]
    return schema.table(lines, [*RUN, *WEIGHTS], ["winner", "tied", "margin"])


def weight_shares(sweep: pd.DataFrame) -> pd.DataFrame:
    """The share of the ``n`` points of a :func:`weight_sweep` that each configuration wins.

    Ties are split evenly; a configuration that never wins has no row.
    """
    won: Any = sweep[sweep["winner"] != ""]
    winners = won["tied"].where(won["tied"].astype(bool), won["winner"])
    named = won.assign(value=1 / won["tied"].map(len).clip(lower=1), configuration=winners)
    lines = []
    for label, part in groups(named.explode("configuration"), [*RUN, "configuration"]):
        run = won[(won[RUN] == pd.Series(label)[RUN]).all(axis=1)]
        counts = {"n": len(run), "n_cases": run["n_cases"].min(), "n_missing": 0, "missing": ""}
        value = part["value"].sum() / len(run)
        lines.append({**label, "metric": "share", "value": value, **counts})
    return schema.table(lines, [*RUN, "configuration"])


def rank_stability(
    indices: pd.DataFrame, steps: int = 20, formulation: str = "trust-x"
) -> pd.DataFrame:
    """Kendall's tau-b between the ranking by ETI under the printed weights and under others.

    A row a data set, level and point of the grid. Ranked are all ``n`` rows of a data set and
    level, model by configuration, counted as in :func:`weight_sweep`.
    """
    swept = _swept(indices, steps, formulation, ["dataset", "level"])
    lines = [{**line, "metric": "kendall_tau", **_tau(*etis)} for line, *etis in swept]
    return schema.table(lines, ["dataset", "level", *WEIGHTS])


def component_correlations(reviews: pd.DataFrame, draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """How the parts of the indices go together over cases: Pearson and Spearman of each pair.

    - The parts of a case: correct, agreement (1 - CDR), cosine, unsafe_rx and test_alerts (shares
      of what was rated; missing where nothing was).
    - ``n`` cases have both. No value below 3 of them or where a part is constant.
    """
    pairs = _pairs(check_reviews(reviews), draws, seed)
    return schema.table(measure(pairs, CORRELATIONS), [*KEYS, "first", "second"])


def agreement_table(
    reviews: pd.DataFrame, n_diagnoses: int | None = None, draws: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """How far the doctors of each configuration agree: raw (:data:`RAW`) and beyond chance.

    - ``fleiss_kappa`` and ``gwet_ac1`` (``n_diagnoses`` as in
      :func:`trustlab.metrics.votes.gwet_ac1`) have jackknife intervals: a case drawn twice would
      pass for chance agreement.
    - ``n_missing`` cases have too few readable diagnoses. One doctor has CDR 0 by definition.
    - Safety on and off have the same doctors and count once; where they do not, ``safety`` tells
      them apart.
    """
    table, keys = check_reviews(reviews), [*RUN, "configuration"]
    once = table.drop_duplicates([*keys, "case_id", "diagnoses"])
    if once.duplicated([*keys, "case_id"]).any():
        once, keys = table, KEYS
    keys, how = [*keys, "n_doctors"], (n_diagnoses, draws, seed)
    lines = [{**of, **line} for of, part in groups(once, keys) for line in _agreement(part, *how)]
    return schema.table(lines, keys)


def variants(
    reviews: pd.DataFrame, formulation: str = "trust-x", draws: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """``trust_indices`` under each of :data:`VARIANTS`, named in the column ``variant``."""
    how: dict[str, Any] = {"formulation": formulation, "draws": draws, "seed": seed}
    made = {name: trust_indices(reviews, **how, **c) for name, c in VARIANTS.items()}
    return pd.concat(made, names=["variant"]).reset_index("variant").reset_index(drop=True)


def weak_points(
    reviews: pd.DataFrame,
    formulation: str = "trust-x",
    constant_cosine: float = 1.0,
    **choices: Any,
) -> pd.DataFrame:
    """What ETI, OSI and FTI (percent) would be if nothing had become better, by construction.

    - ``what_if``: reviewers who never object (also where safety is off: then they are switched on);
      an empty plan; a panel scored as one doctor (the same diagnosis, nobody to disagree: CDR 0);
      every reasoning with ``constant_cosine`` to its diagnosis, where 1 is reasoning that only
      repeats the diagnosis, and another value what some fixed text was measured to have.
    - ``reference`` is the index as measured, ``difference`` the gain; ``safety`` is as it was.
    - ``choices`` as in :func:`trustlab.metrics.trust_table.trust_indices`.
    """
    table = check_reviews(reviews)
    safety, panel = table["safety"].astype(bool), table["n_doctors"] > 1
    text = "reasoning that only repeats the diagnosis"
    text = text if constant_cosine == 1 else f"every cosine {constant_cosine:g}"
    cosines = dict.fromkeys(["cosine", "cosine_med"], constant_cosine)
    nothing: dict[str, Any] = dict.fromkeys(COUNTS, 0)
    changes: list[tuple[str, Any, Callable[[Any], pd.DataFrame]]] = [
        ("reviewers who never object", safety, _never_objecting),
        ("reviewers who never object", ~safety, _never_objecting),
        ("an empty plan", safety, lambda t: t.assign(**nothing, plan_missing="")),
        ("a panel scored as one doctor", panel, _as_one_doctor),
        (text, safety.notna(), lambda t: t.assign(**cosines)),
    ]
    found = []
    for what_if, where, change in (each for each in changes if each[1].any()):
        both: Any = (table[where], change(table[where]))
        indices: Any = [trust_indices(t, formulation, draws=0, **choices) for t in both]
        then, now = (t[t["metric"].isin(["eti_percent", "osi", "fti"])] for t in indices)
        why = now["missing"].where(now["value"].isna(), "")
        why = why.mask(then["value"].isna() & why.eq(""), "before: " + then["missing"])
        before = then[["safety"]].assign(reference=then["value"], n_reference=then["n"])
        gain = now["value"] - then["value"]
        found.append(now.assign(**before, what_if=what_if, difference=gain, missing=why))
    lines: Any = pd.concat(found).to_dict("records")
    more = ["reference", "difference", "n_reference"]
    return schema.table(lines, [*KEYS, "formulation", "what_if"], more)


def _contenders(indices: pd.DataFrame, formulation: str) -> pd.DataFrame:
    """The configurations that differ in a part of ETI, a row each: parts, n of ETI, name.

    Safety is in the name only where it matters.
    """
    trust.check_formulation(formulation)
    schema.need(indices, ["formulation", *KEYS, "metric", "value", "n"], "indices")
    held: Any = indices[indices["formulation"] == formulation]
    if held.empty:
        holds = list(indices["formulation"].unique())
        raise ValueError(f"indices hold nothing of {formulation!r}; they hold {holds}")
    if lacking := {*PARTS, "eti"} - {*held["metric"]}:
        raise ValueError(f"indices lack {sorted(lacking)}; they have {sorted({*held['metric']})}")
    rows = [
        {**label, **of["value"][PARTS].to_dict(), "n": of["n"]["eti"]}
        for label, part in groups(held, KEYS)
        for of in [part.set_index("metric")]
    ]
    single = pd.DataFrame(rows).drop_duplicates([*RUN, "configuration", *PARTS])
    twice = single.duplicated([*RUN, "configuration"], keep=False)
    on: Any = single["safety"].map({True: ", safety on", False: ", safety off"}.get)
    return single.assign(contender=single["configuration"] + on.where(twice, ""))


def _swept(
    indices: pd.DataFrame, steps: int, formulation: str, by: list[str]
) -> Iterator[tuple[dict[str, Any], pd.Series, pd.Series]]:
    """Keys and counts at each weighting, and the ETI of each contender there and as printed."""
    unit = 100 if formulation == "trust-x" else 1
    for label, part in groups(_contenders(indices, formulation), by):
        known = part.dropna(subset=PARTS).set_index("contender")
        counts = {"n": len(known), "n_missing": len(part) - len(known)}
        counts["n_cases"] = int(known["n"].min()) if len(known) else 0
        accuracy, cdr, rdc = known[PARTS].to_numpy(float).T
        *swept, printed = (
            unit * pd.Series(trust.eti(accuracy, cdr, rdc, weights, formulation), known.index)
            for weights in (*weight_grid(steps), trust.ETI_WEIGHTS)
        )
        for weights, eti in zip(weight_grid(steps), swept, strict=True):
            yield label | dict(zip(WEIGHTS, weights, strict=True)) | counts, eti, printed


def _winner(eti: pd.Series) -> dict[str, Any]:
    if not len(eti):
        return {"winner": "", "tied": (), "missing": "no configuration has accuracy, CDR and RDC"}
    level = ties.tied(eti.to_numpy())
    best = sorted(str(name) for name in eti.index[level == level.max()])
    high = [*eti.nlargest(2), np.nan]
    found = {"value": high[0], "missing": ""}
    if len(best) > 1:
        return found | {"winner": "tie", "tied": tuple(best), "margin": 0.0}
    return found | {"winner": best[0], "tied": (), "margin": high[0] - high[1]}


def _tau(eti: pd.Series, printed: pd.Series) -> dict[str, Any]:
    if len(eti) < 2:
        return {"missing": "fewer than 2 rows to rank"}
    sides = [ties.tied(side.to_numpy()) for side in (printed, eti)]
    if min(np.ptp(side) for side in sides) == 0:
        return {"missing": "all rows have the same ETI"}
    tau: Any = kendalltau(*sides)
    return {"value": float(tau.statistic), "missing": ""}


def _pairs(reviews: pd.DataFrame, draws: int, seed: int) -> Iterator[tuple[dict[str, Any], Rows]]:
    """Two parts, ``x`` and ``y``, of the cases of each configuration; NaN where there is none."""
    for label, _, rows in made.configurations(reviews, made.Choices(), draws=0):
        each: Any = rows.asked
        rated = each[["n_rx_rated", "n_tests_rated"]].replace(0, np.nan)
        parts = {
            "correct": each["right"],
            "agreement": 1 - each["apart"],
            "cosine": each["cosine"],
            "unsafe_rx": (each["n_unsafe"] + each["n_caution"]) / rated["n_rx_rated"],
            "test_alerts": (each["n_risky"] + each["n_redundant"]) / rated["n_tests_rated"],
        }
        for first, second in combinations(parts, 2):
            asked = each[["case_id"]].assign(x=parts[first], y=parts[second])
            asked["both"] = asked["x"] + asked["y"]
            both, names = asked.dropna(), {"x": first, "y": second}
            empty = [of for side, of in names.items() if asked[side].isna().all()]
            same = [of for side, of in names.items() if all_alike(both[side].to_numpy())]
            why = f"{' and '.join(same)} the same in every case" if same else ""
            why = "fewer than 3 cases have both" if len(both) < 3 else why
            why = f"no case has {' or '.join(empty)}" if empty else why
            found = Rows.of(asked, "both", draws, seed, why)
            yield {**label, "first": first, "second": second}, found


def _over_cases(correlation: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Metric:
    """A correlation (B, n), (B, n) -> (B,) of ``x`` and ``y``, each case as often as drawn."""

    def drawn(rows: Rows, times: np.ndarray) -> np.ndarray:
        places = np.tile(np.arange(len(rows)), len(times))
        again = np.repeat(places, times.astype(int).ravel()).reshape(len(times), -1)
        return correlation(rows["x"][again], rows["y"][again])

    return Metric(lambda rows: rows.over(partial(drawn, rows)), withheld=lambda rows: rows.none)


CORRELATIONS = {"pearson": _over_cases(pearson_rows), "spearman": _over_cases(spearman_rows)}


def _agreement(
    part: pd.DataFrame, n_diagnoses: int | None, draws: int, seed: int
) -> Iterator[dict[str, Any]]:
    """A line for each measure of one configuration."""
    alone = part["n_doctors"].iloc[0] == 1
    lonely = ALONE if alone else UNREADABLE
    each = {name: part["diagnoses"].map(of).astype(float) for name, of in RAW.items()}
    asked = part[["diagnoses"]].assign(case_id=part["case_id"].astype(str), **each)
    drawn = Draws.of(asked["case_id"], draws, seed)
    for name in RAW:
        none = lonely if name == "pair_agreement" else UNREADABLE
        rows = Rows.of(asked, name, drawn, none=none)
        note = made.BY_DEFINITION if alone and len(rows) else ""
        yield {"metric": name, **estimate(rows, mean(name), note=note)}
    without = Draws.without_each(asked["case_id"][asked["pair_agreement"].notna()])
    rows = Rows.of(asked, "pair_agreement", without, none=lonely)
    counted = votes.count_votes(list(rows["diagnoses"]))
    ac1 = partial(votes.gwet_ac1_weighted, n_diagnoses=n_diagnoses)
    for name, kappa in (("fleiss_kappa", votes.fleiss_kappa_weighted), ("gwet_ac1", ac1)):
        over: Any = partial(Rows.over, weighted=partial(kappa, counted))
        metric = Metric(over, undefined="one diagnosis in all cases", jackknife=1.0)
        yield {"metric": name, **estimate(rows, metric)}


def _never_objecting(table: pd.DataFrame) -> pd.DataFrame:
    """Every prescription and test that is known and readable is rated, and nothing is found."""
    found = dict.fromkeys(["n_caution", "n_unsafe", "n_risky", "n_redundant"], 0)
    table = table.assign(safety=True, **found)
    kinds = ("n_safe", "n_prescriptions", "rx"), ("n_unflagged", "n_tests", "tests")
    for fine, n, short in kinds:
        left = table[n] - table[f"n_{short}_unknown"] - table[f"n_{short}_unreadable"]
        table[fine] = left.clip(lower=0)
    return table


def _as_one_doctor(table: pd.DataFrame) -> pd.DataFrame:
    alone = [(d if isinstance(d, str) else None,) for d in table["diagnosis"]]
    no_answer = (table["n_no_answer"] >= table["n_doctors"]).astype(int)
    return table.assign(diagnoses=alone, n_doctors=1, n_no_answer=no_answer)
