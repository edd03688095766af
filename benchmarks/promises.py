"""Are promises kept? ``nice python -m benchmarks.promises --keep``, about five minutes on one core.

- A threshold with a promise (:mod:`trustlab.metrics.promise`): 1,000 fits a law and number of
  cases; the promise is broken where the risk among the answers given, in a very large sample of the
  same law, is above the target. It may be in 5 % of the fits, up to two standard errors.
- Sets of options (:mod:`trustlab.metrics.sets`): 1,000 splits; how often sets fitted on a split
  hold the right option in a very large sample, beside what such splits vary by.

The tables are ``benchmarks/promises.csv`` and ``benchmarks/sets.csv``; ``docs/coverage.md`` shows
them. Nothing in the package reads them.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import softmax

from trustlab.metrics.promise import Threshold, promised, thresholds
from trustlab.metrics.sets import fitted

FITS = 1000
SIZES = (60, 200, 600)
"""Cases of a fit."""
LARGE = 40_000
"""Cases of the very large sample."""
RISKS = (0.1, 0.2)
SURE = 0.95
MOST_BROKEN = 0.05 + 2 * np.sqrt(0.05 * 0.95 / FITS)
"""Share of the fits in which a promise may be broken: 5 %, up to two standard errors."""
ERROR = 0.1
"""Of sets: they hold the right option in 90 % of the cases."""
PROMISES = Path(__file__).with_name("promises.csv")
SETS = Path(__file__).with_name("sets.csv")


def unrelated(rng: np.random.Generator, n: int, *, levels: int) -> Any:
    """Answers of a case are all right (79 % of the cases) or all wrong, and as surely."""
    from benchmarks.intervals import Answers

    correct = np.repeat(rng.random((n, 1)) < 0.79, levels, axis=1)
    values = np.repeat(rng.normal(size=(n, 1)), levels, axis=1)
    return Answers(correct, values, values)


def promise_laws() -> list[Any]:
    """Laws of answers with confidences: answers of a case alike, in part alike, or one a case."""
    from benchmarks.intervals import Law, alike, normal, resampled, surely_wrong

    one_level = {"offsets": (1.45,), "ease": 0.0, "follow": 0.0}
    published = ("embedded", "starter", "p_true", "medconf")
    of_ddxplus = ("embedded", "ddxplus", "p_true", "medconf")
    return [
        Law("one answer a case, right 79 %, confidence knows nothing", unrelated, {"levels": 1}),
        Law("one answer a case, right 81 %", normal, {**one_level, "signal": 1.2}),
        Law("six answers alike, right 79 %, confidence knows nothing", unrelated, {"levels": 6}),
        Law("six answers alike, right 80 %", alike, {"accuracy": 0.8}),
        Law("six answers alike in part", normal, {"offsets": (0.0, 0.5, 1.0, 1.5, 2.0, 2.5)}),
        Law("8 % of the cases wholly wrong and sure", surely_wrong, {"hard": 0.08}),
        Law("published, generated patients", resampled, {"of": published}),
        Law("published, DDXPlus", resampled, {"of": of_ddxplus}),
    ]  # fmt: skip


def _seed(*parts: object) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(repr(parts).encode()))


def _large_sample(law: Any) -> Any:
    from benchmarks.intervals import published, resampled

    if law.make is resampled:
        return published(*law.how["of"])
    return law.answers(_seed(law.name, "large"), LARGE)


def _fit(answers: Any) -> list[Threshold]:
    """The thresholds of a sample; missing confidences are left out."""
    n_cases, n_levels = answers.correct.shape
    case = np.repeat(np.arange(n_cases), n_levels)
    known = ~np.isnan(answers.first.ravel())
    correct = answers.correct.ravel()[known].astype(float)
    return thresholds(correct, answers.first.ravel()[known], case[known])


def simulated_promises(law: Any) -> Iterator[dict[str, Any]]:
    """A row a number of cases and target risk."""
    large = _large_sample(law)
    for n_cases in SIZES:
        found = {risk: [] for risk in RISKS}
        for fit in range(FITS):
            candidates = _fit(law.answers(_seed(law.name, n_cases, fit), n_cases))
            for risk in RISKS:
                found[risk].append(promised(candidates, risk, SURE))
        for risk, of_fits in found.items():
            passed = [threshold for threshold in of_fits if threshold is not None]
            true_risks = []
            for threshold in passed:
                is_given = large.first >= threshold.confidence
                true_risks.append(1 - large.correct[is_given].mean())
            yield {
                "law": law.name,
                "n_cases": n_cases,
                "risk": risk,
                "fits": FITS,
                "broken": np.sum(np.array(true_risks) > risk) / FITS,
                "none": 1 - len(passed) / FITS,
                "given": np.median([t.share for t in passed]) if passed else np.nan,
                "mean_risk": np.mean(true_risks) if passed else np.nan,
            }


def option_scores(law: str, rng: np.random.Generator, n: int) -> np.ndarray:
    """1 less the share of the right one of five options, (n,): shares without ties, or those of
    five samples."""
    values = rng.normal(size=(n, 5))
    values[:, 0] += 2.5
    shares = softmax(values, axis=1)
    if law == "shares of five samples":
        shares = rng.multinomial(5, shares) / 5
    return 1 - shares[:, 0]


def simulated_sets(law: str) -> Iterator[dict[str, Any]]:
    """A row a number of cases that are fitted."""
    large = np.sort(option_scores(law, _seed(law, "large"), 10 * LARGE))
    for n_cases in SIZES:
        coverages = []
        band = []
        for split in range(FITS):
            scores = option_scores(law, _seed(law, n_cases, split), n_cases)
            largest, band = fitted(scores, ERROR)
            coverages.append(np.searchsorted(large, largest + 1e-9) / len(large))
        values = np.array(coverages)
        expected, low, high = band
        yield {
            "law": law,
            "n_cases": n_cases,
            "fits": FITS,
            "coverage": values.mean(),
            "expected": expected,
            "below": np.mean(values < low),
            "above": np.mean(values > high),
        }


HEAD = """
## Promises

`python -m benchmarks.promises --keep` fits thresholds and sets on simulated cases, and on cases
drawn from the published answers, and tries them on a very large sample of the same law.

**A threshold with a promise**: with probability 0.95, at most 10 or 20 % of the answers given are
wrong. *Broken* is the share of 1,000 fits in which more are; {most:.1%} is the most allowed (5 %,
and two standard errors). *None* is the share in which no threshold keeps the promise, so that the
answer is to abstain from all: the price of few cases. *Given* is the median share of answers given
by the other fits, *risk* the mean of their true risks.

| law | cases | target | broken | none | given | risk |
|---|---|---|---|---|---|---|
"""
HEAD_OF_SETS = """
**Sets of options** that should hold the right one in 90 % of the cases. *Coverage* is the mean of
1,000 splits, *expected* what theory gives without ties. *Below* and *above* are the shares of
splits whose coverage is outside the middle 95 % of Beta(k, n + 1 − k). Where options have equal
shares, coverage lies above.

| law | cases fitted | coverage | expected | below | above |
|---|---|---|---|---|---|
"""


def section(promises: pd.DataFrame, sets: pd.DataFrame) -> str:
    """The part of ``docs/coverage.md`` that shows both tables."""
    lines = []
    rows: Any = promises
    for row in rows.itertuples():
        given = "– | –"
        if row.none < 1:
            given = f"{row.given:.0%} | {row.mean_risk:.1%}"
        lines.append(
            f"| {row.law} | {row.n_cases} | {row.risk:.0%} | {row.broken:.1%} | {row.none:.0%}"
            f" | {given} |"
        )
    lines_of_sets = []
    rows = sets
    for row in rows.itertuples():
        lines_of_sets.append(
            f"| {row.law} | {row.n_cases} | {row.coverage:.3f} | {row.expected:.3f}"
            f" | {row.below:.1%} | {row.above:.1%} |"
        )
    parts = [HEAD.format(most=MOST_BROKEN), "\n".join(lines), "\n"]
    parts += [HEAD_OF_SETS, "\n".join(lines_of_sets), "\n"]
    return "".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.promises", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="write the tables")
    parser.add_argument("--only", default="", help="laws whose name holds this")
    chosen = parser.parse_args()
    lines = []
    for law in ("shares without ties", "shares of five samples"):
        lines += simulated_sets(law)
    sets = pd.DataFrame(lines)
    print(sets.to_string(), flush=True)
    lines = []
    for law in promise_laws():
        if chosen.only in law.name:
            lines += simulated_promises(law)
            print(pd.DataFrame(lines[-6:]).to_string(), flush=True)
    if chosen.keep:
        sets.to_csv(SETS, index=False, float_format="%.4g")
        pd.DataFrame(lines).to_csv(PROMISES, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
