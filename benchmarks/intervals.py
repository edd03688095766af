"""Do the intervals hold what they promise? ``python -m benchmarks.intervals --keep``, 40 minutes on
two cores.

Laws whose truth is known from a very large sample (or by construction) give clustered cases: six
answers each, one an information level, which go together, since an easy case is answered rightly,
and confidently, at most levels; or plans, panels and paraphrased conditions of a case. In each
repetition a new sample of 12, 24, 60 or 240 cases is drawn and every kind of interval made as the
tables make it. The table says how often the truth lies inside: ``trustlab/metrics/coverage.csv``,
shown in ``docs/coverage.md``. The package prints no interval that does not hold there.
"""

# pandas' types leave open what a row of a table holds.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.special import expit, logit

from trustlab.metrics import coverage
from trustlab.metrics.agreement import AGREEMENT
from trustlab.metrics.calibration import CALIBRATION
from trustlab.metrics.correlation import OVER_LEVELS
from trustlab.metrics.discrimination import RANKING
from trustlab.metrics.estimate import (
    Draws,
    Metric,
    Rows,
    across,
    at_least,
    difference,
    estimate,
    mean,
    of_kind,
    within,
)
from trustlab.metrics.paired import best_against
from trustlab.metrics.selective import SELECTIVE, risk_at
from trustlab.metrics.significance import holm
from trustlab.metrics.stability import CVS, views
from trustlab.metrics.trust_table import COUNTS, INDICES, INTERVALS, RX, TESTS, Choices, indices
from trustlab.paths import ROOT

sys.path.insert(0, str(ROOT / "notebooks"))
from studies.calibration import _recalibrated
from studies.trust_indices import CORRELATIONS

SIZES = {12: 300, 24: 300, 60: 300, 240: 100}
"""Cases -> repetitions."""
TRUTH = 8_000
"""Cases of the very large sample; five of them are averaged."""
LEVELS = 6
N_METHODS = 27
"""Methods of Holm's family, and 13 of those a best is chosen from."""
Found = dict[str, dict[str, Any]]
"""Kind of interval -> its estimate."""
FEW = at_least(10)
RISING = (0.0, 0.12, 0.24, 0.36, 0.48, 0.60)


def _answers(
    rng: np.random.Generator, n: int, draws: int, *, ease: float = 0.0, signal: float = 0.7,
    other: float | None = None, steps: int = 0, offsets: tuple[float, ...] = RISING,
    honest: tuple[float, float] | None = None,
) -> Found:  # fmt: skip
    """Answers of two methods. ``signal``: how far right answers lie above wrong ones, in standard
    deviations of the noise; ``honest`` (k, c): the first method's confidence is the chance of being
    right, p, as expit(k logit p + c). ``offsets``: what a level adds to a confidence."""
    case, level = np.repeat(np.arange(n), LEVELS), np.tile(np.arange(LEVELS), n)
    easy = rng.normal(size=n)[case]
    p = expit(-1.0 + 0.45 * level + 1.2 * easy + ease)
    right = (rng.random(len(case)) < p).astype(float)
    common = rng.normal(size=len(case))

    def confidence(strength: float) -> np.ndarray:
        noise = np.sqrt(0.5) * (common + rng.normal(size=len(case)))
        by_level = np.array(offsets)[level]
        sure = expit(strength * (right - 0.5) + by_level + 0.4 * easy + noise)
        return np.round(sure * steps) / steps if steps else sure

    sides = [confidence(signal), confidence(signal if other is None else other)]
    if honest:
        sides[0] = expit(honest[0] * logit(np.clip(p, 1e-9, 1 - 1e-9)) + honest[1])
    keys = {"case_id": case, "level": level, "correct": right}
    drawn = Draws.of(case, draws, int(rng.integers(1 << 30)))
    every = np.ones(len(case), bool)
    theirs, mine = (
        Rows(pd.DataFrame({**keys, "confidence": c}), every, drawn) for c in sides[::-1]
    )
    mine = replace(mine, reference=theirs)
    one = {name: of for name, (of, _) in RANKING.items()}
    each: dict[str, Any] = {name: Metric(of, FEW) for name, of in one.items()}
    each |= {f"{name} within": Metric(within(of), FEW) for name, of in one.items()}
    each |= {name: Metric(across(of)) for name, of in OVER_LEVELS.items()}
    each |= {"mean": Metric(mean("confidence"))}
    compared = [*each]
    each |= CALIBRATION | {name: Metric(of, FEW) for name, of in SELECTIVE.items()}
    each |= {"share": mean("correct")}
    found = {name: estimate(mine, of) for name, of in each.items()}
    if not honest:
        for name in compared:
            gap = Metric(difference(each[name].statistic), each[name].withheld)
            found[f"difference of {name}"] = estimate(mine, gap)
    last = mine.by("level")[LEVELS - 1]
    found["share @ one level"] = estimate(last, mean("correct"))
    found["auroc @ one level"] = estimate(last, each["auroc"])
    correct, sure = mine["correct"], mine["confidence"]
    curve = mine.over(lambda w: risk_at(correct, sure, w.astype(int), [0.5]).T)[0]
    found["risk"] = estimate(mine, Metric(of_kind("risk", lambda _: curve), FEW))
    if honest and draws and mine.rarer:
        at, one_point = min(_recalibrated(mine), key=lambda point: abs(point[0] - np.median(sure)))
        k, c = honest
        found["recalibration"] = one_point | {"truth": float(expit((logit(at) - c) / k))}
    return found


@cache
def _area(strength: float) -> float:
    """The pooled AUROC of a method of this strength."""
    large = _answers(np.random.default_rng(7), 40_000, 0, signal=strength)
    return large["auroc"]["value"]


def _many(
    rng: np.random.Generator, n: int, draws: int, *, better: float = 0.0, ahead: float = 0.0
) -> Found:
    """Many methods against one: the best of 13, and what Holm finds among 27 that are equal.

    They know equally much, but for the first (by ``better``) and the one (by ``ahead``).
    """
    case, level = np.repeat(np.arange(n), LEVELS), np.tile(np.arange(LEVELS), n)
    easy = rng.normal(size=n)[case]
    right = (rng.random(len(case)) < expit(-1 + 0.45 * level + 1.2 * easy)).astype(float)
    common = rng.normal(size=len(case))
    equal = better == ahead == 0
    # Holm over 27 asks for p below 0.0018, which 500 draws cannot show.
    drawn = Draws.of(case, 4 * draws if equal else draws, int(rng.integers(1 << 30)))
    auroc, made = RANKING["auroc"][0], []
    for extra in (ahead, better, *[0.0] * ((N_METHODS if equal else 13) - 1)):
        noise = np.sqrt(0.5) * (common + rng.normal(size=len(case)))
        sure = (0.7 + extra) * right + np.array(RISING)[level] + 0.4 * easy + noise
        table = pd.DataFrame({"case_id": case, "correct": right, "confidence": sure})
        made.append(Rows(table, np.ones(len(case), bool), drawn))
    areas = np.stack([rows.drawn(auroc) for rows in made[:14]])
    best = best_against(areas[1:, 0], areas[1:, 1:], areas[0, 0], areas[0, 1:], case)
    chosen = better if best["which"] == 0 else 0.0
    ends = {"value": best["difference"], "low": best["low"], "high": best["high"]}
    found = {"best": ends | {"truth": _area(0.7 + chosen) - _area(0.7 + ahead)}}
    if equal:
        pairs = [replace(rows, reference=made[0]) for rows in made[1:]]
        p = [estimate(pair, difference(auroc), test=True)["p"] for pair in pairs]
        wrong = float(np.nanmin(holm(p), initial=1) < 0.05)
        found["Holm's correction"] = {"value": 0.0, "low": -1.0 + 2 * wrong, "high": 1.0}
    return found


def _conditions(
    rng: np.random.Generator, n: int, draws: int, *, effect: float = 0.0, noise: float = 0.3
) -> Found:
    """Two methods under three conditions at two levels; ``effect``: what a condition adds to a
    confidence (as a logit), none of it changes anything; ``noise``: of a single answer."""
    case = np.repeat(np.arange(n), 2)
    easy = rng.normal(size=n)[case, None]
    shift = effect * np.array([-1.0, 0.0, 1.0])
    sides = [expit(easy + shift + noise * rng.normal(size=(len(case), 3))) for _ in range(2)]
    found, seed = {}, int(rng.integers(1 << 30))
    for name, of in CVS.items():
        mine, theirs = views(name, sides, case, draws, seed)
        found[name] = estimate(mine, of)
        found[f"difference of {name}"] = estimate(replace(mine, reference=theirs), difference(of))
    return found


def _graders(rng: np.random.Generator, n: int, draws: int, *, differ: float = 0.1) -> Found:
    """Two graders of six answers a case, who differ on this share of them."""
    case = np.repeat(np.arange(n), LEVELS)
    first = (rng.random(len(case)) < expit(1.2 * rng.normal(size=n)[case])).astype(float)
    other = rng.random(len(case)) < expit(logit(differ) + rng.normal(size=n)[case])
    table = pd.DataFrame(
        {"case_id": case, "first": first, "second": np.where(other, 1 - first, first)}
    )
    table["same"] = (table["first"] == table["second"]).astype(float)
    rows = Rows.of(table, "same", draws, int(rng.integers(1 << 30)))
    return {
        "kappa": estimate(rows, AGREEMENT["kappa"]),
        "share": estimate(rows, AGREEMENT["agreement"]),
    }


def _panels(
    rng: np.random.Generator, n: int, draws: int, *, right: float = 0.6, apart: float = 0.3,
    unsafe: float = 0.2,
) -> Found:  # fmt: skip
    """Two configurations of three doctors and two reviewers, a case a row.

    ``right``: the share that is; ``apart``: of doctors who dissent; ``unsafe``: of what is proposed
    that is objected to, half of it with the worse word.
    """
    easy, seed = rng.normal(size=n), int(rng.integers(1 << 30))

    def configuration() -> pd.DataFrame:
        dissent = rng.binomial(2, expit(logit(apart) - 0.8 * easy))
        table = pd.DataFrame(0.0, index=range(n), columns=[*COUNTS, "n_rx_rated", "n_tests_rated"])
        for total, kinds in (("n_prescriptions", RX), ("n_tests", TESTS)):
            some = rng.integers(1, 6, size=n)
            hit = rng.binomial(some, expit(logit(unsafe) + 0.8 * rng.normal(size=n)))
            worse = rng.binomial(hit, 0.5)
            table[total] = some
            table[kinds] = np.stack([some - hit, hit - worse, worse], axis=1)
        table["n_rx_rated"], table["n_tests_rated"] = table["n_prescriptions"], table["n_tests"]
        hit = (rng.random(n) < expit(logit(right) + easy)).astype(float)
        more = {"right": hit, "shared": hit, "apart": dissent / 3, "safety": 1.0, "planned": 1.0}
        cosine = np.clip(0.5 + 0.15 * rng.normal(size=n), -1, 1)
        return table.assign(**more, cosine=cosine, diagnosed=1.0, case_id=np.arange(n))

    one, other = (Rows.of(configuration(), "right", draws, seed) for _ in range(2))
    pair, found = replace(one, reference=other), {}
    for name in ("accuracy", "cdr", "rdc", "eti_percent", "unsafe_rx_percent", "osi", "fti"):
        unit = 100 if name in ("eti_percent", "unsafe_rx_percent", "osi", "fti") else 1
        kind, of = INTERVALS[name], partial(_index, INDICES.index(name), unit)
        found[kind if kind != "share" else "share @ a row a case"] = estimate(one, of)
        found[f"difference of {kind}"] = estimate(pair, difference(of))
    return found


def _index(place: int, unit: int, rows: Rows) -> np.ndarray:
    return rows.drawn(indices(Choices()))[place] / unit


def _pairs(rng: np.random.Generator, n: int, draws: int, *, rho: float) -> Found:
    """Two numbers a case that go together."""
    x, z = rng.normal(size=(2, n))
    table = pd.DataFrame({"case_id": np.arange(n), "x": x, "y": rho * x + np.sqrt(1 - rho**2) * z})
    rows = Rows.of(table, "x", draws, int(rng.integers(1 << 30)))
    return {f"{name} of cases": estimate(rows, of) for name, of in CORRELATIONS.items()}


ZIGZAG, DIPS = (0.0, 0.7, 0.1, 0.8, 0.3, 0.9), (0.0, 0.3, 0.2, 0.5, 0.45, 0.7)
WORLDS: dict[str, tuple[Callable[..., Found], dict[str, Any]]] = {
    "knows nothing": (_answers, {"signal": 0.0}),
    "middle": (_answers, {}),
    "middle, falls between levels": (_answers, {"offsets": ZIGZAG}),
    "middle, dips": (_answers, {"offsets": DIPS}),
    "a little better": (_answers, {"signal": 0.9, "other": 0.6}),
    "strong, 15 steps": (_answers, {"signal": 1.6, "steps": 15}),
    "nearly perfect": (_answers, {"signal": 4.0}),
    "few wrong": (_answers, {"ease": 2.0}),
    "hardly any wrong": (_answers, {"ease": 4.0}),
    "few right": (_answers, {"ease": -2.5}),
    "calibrated": (_answers, {"honest": (1.0, 0.0)}),
    "ECE 0.02": (_answers, {"honest": (1.15, 0.0)}),
    "ECE 0.05": (_answers, {"honest": (1.4, 0.1)}),
    "ECE 0.10": (_answers, {"honest": (1.6, 0.6)}),
    "ECE 0.20": (_answers, {"honest": (1.2, 1.3)}),
    "ECE 0.30": (_answers, {"honest": (1.0, 2.0)}),
    "equal methods": (_many, {}),
    "one is better": (_many, {"better": 0.5}),
    "conditions change nothing": (_conditions, {}),
    "conditions change little": (_conditions, {"effect": 0.05}),
    "conditions change much": (_conditions, {"effect": 0.4}),
    "steady answers": (_conditions, {"noise": 0.03}),
    "graders agree": (_graders, {"differ": 0.02}),
    "graders differ": (_graders, {"differ": 0.15}),
    "panel, middle": (_panels, {}),
    "panel, near the edge": (_panels, {"right": 0.95, "apart": 0.03, "unsafe": 0.03}),
    "panel, bad": (_panels, {"right": 0.25, "apart": 0.5, "unsafe": 0.5}),
    "unrelated": (_pairs, {"rho": 0.0}),
    "related": (_pairs, {"rho": 0.5}),
    "much alike": (_pairs, {"rho": 0.95}),
    "one is a little better": (_many, {"better": 0.2}),
    "all are a little worse": (_many, {"ahead": 0.2}),
    "all are worse": (_many, {"ahead": 0.7}),
    "all are far worse": (_many, {"ahead": 1.8}),
}
"""Name -> how its samples are made. Methods and configurations of a pair are equal unless named."""


def truths(name: str) -> dict[str, float]:
    """Every kind's value in very large samples; 0 where two are equal, or nothing changes."""
    make, how = WORLDS[name]
    if make is _many:
        gap = _area(0.7 + how.get("better", 0.0)) - _area(0.7 + how.get("ahead", 0.0))
        return {"best": gap, "Holm's correction": 0.0}
    large = [make(np.random.default_rng((9, i)), TRUTH, 0, **how) for i in range(5)]
    found = {kind: float(np.mean([one[kind]["value"] for one in large])) for kind in large[0]}
    if "other" not in how:
        equal = [kind for kind in found if kind.startswith("difference of")]
        found |= dict.fromkeys(equal if "honest" not in how else [], 0.0)
    if "effect" in WORLDS[name][1] or make is not _conditions:
        return found
    return found | {"cv_group": 0.0}


def repetition(name: str, n_cases: int, key: int, n_draws: int) -> list[dict[str, Any]]:
    """One sample: a line a kind."""
    coverage.withheld = lambda *_: ""  # type: ignore[assignment]  # every interval is made
    make, how = WORLDS[name]
    rng = np.random.default_rng((list(WORLDS).index(name), n_cases, key))
    ends = ("value", "low", "high", "truth")
    return [
        {"kind": kind, **{end: found.get(end, np.nan) for end in ends}}
        for kind, found in make(rng, n_cases, n_draws, **how).items()
    ]


def simulated(name: str, n_draws: int, jobs: int, share: float) -> pd.DataFrame:
    """All sizes of one law: a row a kind and size."""
    right, lines = truths(name), []
    for n_cases, repetitions in SIZES.items():
        keys = range(int(repetitions * share))
        calls = (delayed(repetition)(name, n_cases, key, n_draws) for key in keys)
        done: Any = Parallel(n_jobs=jobs, backend="multiprocessing")(calls)
        table = pd.DataFrame([row for rows in done for row in rows])
        for kind, part in table.groupby("kind", sort=False):
            truth = right.get(kind, np.nan)
            lines.append(_line(name, str(kind), n_cases, truth, part))
    return pd.DataFrame(lines)


def _line(name: str, kind: str, n_cases: int, truth: float, part: Any) -> dict[str, Any]:
    """How often the intervals of one kind, law and size hold the truth."""
    made, (kind, _, where) = part.dropna(subset="low"), kind.partition(" @ ")
    of_each = made["truth"].fillna(truth)
    share = float(((made["low"] <= of_each) & (of_each <= made["high"])).mean())
    low, middle, high = part["value"].quantile([0.05, 0.5, 0.95])
    return {
        "kind": kind,
        "law": ", ".join(filter(None, [name, where])),
        "n_cases": n_cases,
        "truth": truth if np.isfinite(truth) else part["truth"].mean(),
        "low": low,
        "middle": middle,
        "high": high,
        "coverage": share,
        "standard_error": float(np.sqrt(share * (1 - share) / max(len(made), 1))),
        "repetitions": len(part),
        "with_interval": len(made),
    }


HEAD = """# Which intervals hold

A 95 % interval should contain the truth 95 times in 100 (its *coverage*). We tried each kind of
interval on simulated cases whose truth is known (`python -m benchmarks.intervals --keep`: 500
bootstrap draws; 300 samples, or 100 of 240 cases). `trustlab/metrics/coverage.csv` has every truth
with its standard error. **The package reads this table.** It prints an interval near an estimate
only if all truths that give such estimates have a coverage of at least 90 %, less one standard
error of the simulation, with this number of cases and with more. Below 12 cases it prints none.

A *law* is a way to simulate cases. A cell has the lowest and the highest coverage over all laws.
**Bold** means that all laws reach the 90 % from this number of cases on. Otherwise it depends on
the estimate: the second table lists the truths at which the interval fails. *Holm's correction*
succeeds in a sample if it calls none of 27 equal methods different.
"""


def page(table: pd.DataFrame) -> str:
    """``docs/coverage.md``: one row for each kind, then what fails."""
    table = table.assign(holds=table["coverage"] + table["standard_error"] >= coverage.LEAST)
    known = table.dropna(subset="coverage")
    lines = [
        HEAD,
        "| kind of interval | laws | 12 cases | 24 | 60 | 240 |",
        "|---|---|---|---|---|---|",
    ]
    for kind, part in known.groupby("kind", sort=False):
        cells = []
        for size in SIZES:
            at, on = part[part["n_cases"].eq(size)]["coverage"], part[part["n_cases"].ge(size)]
            low, high = at.min(), at.max()
            words = f"{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f} to {high:.2f}"
            words = words if len(at) else "–"
            cells.append(f"**{words}**" if len(at) and on["holds"].all() else words)
        lines.append(f"| {' | '.join([str(kind), str(part['law'].nunique()), *cells])} |")
    lines += [
        "\n## Where it fails\n",
        "| kind | law | truth | cases | held ± standard error | middle estimate |",
    ]
    lines += ["|---|---|---|---|---|---|"]
    for r in known[~known["holds"]].sort_values(["kind", "law", "n_cases"]).itertuples():
        held = f"{r.coverage:.2f} ± {r.standard_error:.2f}"
        lines.append(
            f"| {r.kind} | {r.law} | {r.truth:.3g} | {r.n_cases} | {held} | {r.middle:.3g} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.intervals", description=__doc__)
    parser.add_argument("--draws", type=int, default=500, help="of each sample (%(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (%(default)s)")
    parser.add_argument("--share", type=float, default=1.0, help="of the repetitions (%(default)s)")
    parser.add_argument("--only", default="", help="laws whose name holds this")
    parser.add_argument("--keep", action="store_true", help="write the table and its page")
    parser.add_argument("--page", action="store_true", help="write the page of the kept table")
    o = parser.parse_args()
    if o.page:
        (ROOT / "docs" / "coverage.md").write_text(page(pd.read_csv(coverage.FILE)))
        return
    began, parts = time.perf_counter(), []
    for name in WORLDS:
        if o.only in name:
            parts.append(simulated(name, o.draws, o.jobs, o.share))
            print(f"{name}: {time.perf_counter() - began:.0f} s", flush=True)
    table = pd.concat(parts, ignore_index=True)
    print(table.to_string(float_format=lambda x: f"{x:.3f}"))
    if o.keep and o.only:
        kept = pd.read_csv(coverage.FILE)
        table = pd.concat([kept[~kept["law"].str.contains(o.only)], table], ignore_index=True)
    if o.keep:
        table.to_csv(coverage.FILE, index=False, float_format="%.4g")
        (ROOT / "docs" / "coverage.md").write_text(page(pd.read_csv(coverage.FILE)))


if __name__ == "__main__":
    main()
