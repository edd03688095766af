"""By how much does one column of confidences beat another on the same answers?

Two columns (variants of a method, formulas, settings) judge the same cases, so their errors go
together: the interval of the difference is drawn from both at once, the same cases in every draw,
and is narrower than two intervals side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from trustlab.metrics import schema
from trustlab.metrics.correlation import OVER_LEVELS
from trustlab.metrics.discrimination import RANKING
from trustlab.metrics.estimate import (
    Draws,
    Metric,
    Rows,
    Statistic,
    across,
    at_least,
    difference,
    estimate,
    groups,
    most_frequent,
    within,
)
from trustlab.metrics.run_tables import KEYS
from trustlab.metrics.significance import cases_to_tell_apart, holm
from trustlab.metrics.table import FLAT

METRICS = (*RANKING, *OVER_LEVELS)
MIN_COVERAGE = 0.5
"""A column with a value in a smaller share of the answers is left out of common comparisons."""
FAMILY = ["model", "dataset", "metric", "level"]
"""What is compared within one of these is a family of tests, corrected together."""
DIFFERENCE = ["reference", "difference", "p", "p_holm", "standard_error"]
"""What a table of differences has beside the columns of every table."""


def paired_differences(
    table: pd.DataFrame,
    reference: str,
    *,
    by: str = "variant",
    metrics: Sequence[str] = METRICS,
    shared: str = "pair",
    n_draws: int = 2000,
    seed: int = 0,
    min_per_class: int = 10,
) -> pd.DataFrame:
    """Each column of confidences against ``reference`` on the same rows: their metrics and the gap.

    - ``table`` is tidy: case_id dataset level model, the name of the column (``by``), confidence
      and correct (0, 1 or NaN), and maybe method (compared within, unless ``by`` names it) and
      missing. Columns may give different answers: each is judged by its own ``correct``.
    - A row a model, data set, method, column, metric and level: 'pooled' and 'within' (mean over
      the levels that have both classes in both columns) for auroc and auprc, 'across' for pearson
      and spearman.
    - ``difference`` is ``value`` (the column's) minus ``reference``; ``low`` and ``high`` bound it,
      from the same draws for all (those of ``metrics_table`` with that seed); ``p`` is two-sided,
      ``p_holm`` after Holm over all that is compared in one :data:`FAMILY`.
    - ``shared``: "pair" compares on the ``n`` rows that the two have, "all" on those that every
      column has; ``n_missing`` are left out; ``n_rarer`` is of the column that has fewer.
    - Withheld below ``min_per_class`` right or wrong answers; ``missing`` says why.
    - ``ValueError`` for lacking columns, an unknown metric or reference, repeated rows, or no other
      column.
    """
    checked = _checked(table, reference, by, metrics, shared)
    inner = _inner(table, by)
    lines: list[dict[str, Any]] = []
    for of_run, run in groups(checked, ["model", "dataset"]):
        draws = Draws.of(run["case_id"].to_numpy(), n_draws, seed)
        for within_run, part in groups(run, inner):
            label = of_run | within_run
            each = part.set_index(["case_id", "level"]).groupby(by, sort=False)
            sides = {str(name): side for name, side in each}
            if reference not in sides:
                raise ValueError(f"{by} has no {reference!r} for {label}; it has {list(sides)}")
            for name, pair in _pairs(sides, reference, shared, draws):
                made = _lines(pair, metrics, max(min_per_class, 1))
                lines += [{**label, by: name, **line} for line in made]
    return corrected(lines, ["model", "dataset", *inner, by, "level"], ["n_rarer"])


def corrected(
    lines: Iterable[Mapping[str, Any]],
    keys: Sequence[str],
    more: Sequence[str] = (),
    family: Sequence[str] = FAMILY,
) -> pd.DataFrame:
    """Lines of differences as a table: Holm within each ``family``, and the cases needed.

    ``cases_needed``: how many cases like these would tell the difference observed from 0 four times
    in five at 5 % (:func:`trustlab.metrics.significance.cases_to_tell_apart`).
    """
    found = schema.table(lines, keys, [*DIFFERENCE, "cases_needed", *more])
    each = zip(found["difference"], found["standard_error"], found["n_cases"], strict=True)
    needed = [cases_to_tell_apart(float(d), float(e), int(n)) for d, e, n in each]
    p = found.groupby(list(family), sort=False)["p"].transform(holm) if len(found) else np.nan
    return found.assign(p_holm=p, cases_needed=np.array(needed, dtype=float))


def compared(pair: Rows, statistic: Statistic, **how: Any) -> dict[str, Any]:
    """One line of a difference: the rows' value, their reference's, and the first minus the second.

    ``how``: ``withheld`` and ``undefined`` of :class:`~trustlab.metrics.estimate.Metric`, ``note``.
    """
    note = how.pop("note", "")
    found = estimate(pair, Metric(difference(statistic), **how), note=note, test=True)
    made = len(pair) and not how.get("withheld", lambda _: "")(pair)
    assert pair.reference is not None
    sides = (pair, pair.reference)
    values = [float(side.drawn(statistic)[0]) if made else np.nan for side in sides]
    return found | {"value": values[0], "reference": values[1], "difference": found["value"]}


def _checked(
    given: pd.DataFrame, reference: str, by: str, metrics: Sequence[str], shared: str
) -> pd.DataFrame:
    schema.need(given, [*KEYS, by, "confidence", "correct"])
    if not metrics or not set(metrics) <= set(METRICS):
        raise ValueError(f"metrics must be some of {list(METRICS)}; received {list(metrics)}")
    if shared not in ("pair", "all"):
        raise ValueError(f"shared is {shared!r}; allowed are 'pair' and 'all'")
    names = list(dict.fromkeys(given[by].astype(str)))
    if reference not in names or len(names) < 2:
        raise ValueError(
            f"{by} must hold the reference {reference!r} and another; it holds {names}"
        )
    keys = [*KEYS, by, *_inner(given, by)]
    if (again := given.duplicated(keys)).any():
        received = given[again].iloc[0].to_dict()
        raise ValueError(f"each {', '.join(keys)} may come once; received {received}")
    return given.assign(**{by: given[by].astype(str), "level": given["level"].astype(int)})


def _inner(given: pd.DataFrame, by: str) -> list[str]:
    """The column that is compared within, if there is one beside ``by``."""
    return ["method"] if "method" in given and by != "method" else []


def _known(side: pd.DataFrame) -> Any:
    return side["confidence"].notna() & side["correct"].notna()


def _pairs(
    sides: dict[str, pd.DataFrame], reference: str, shared: str, draws: Draws
) -> Iterator[tuple[str, Rows]]:
    """Each column with the reference beside it, on all rows of either; what both have is known."""
    has = {name: side.index[_known(side)] for name, side in sides.items()}
    common = has[reference]
    for index in has.values() if shared == "all" else ():
        common = common.intersection(index)
    made: list[tuple[Any, np.ndarray, Rows]] = []  # the reference on the same rows is drawn once
    for name, side in sides.items():
        if name == reference:
            continue
        every = side.index.union(sides[reference].index)
        both = np.asarray(every.isin(has[name].intersection(common)))
        lost = [sides[of] for of in (name, reference) if not len(has[of])]
        none = f"no confidence: {most_frequent(lost[0])}" if lost else "no row that both have"
        columns = ["correct", "confidence"]
        mine, theirs = (x[columns].reindex(every).reset_index() for x in (side, sides[reference]))
        drawn = [rows for at, mask, rows in made if at.equals(every) and np.array_equal(mask, both)]
        made += [] if drawn else [(every, both, Rows(theirs, both, draws, none))]
        yield name, Rows(mine, both, draws, none, drawn[0] if drawn else made[-1][2])


def _lines(pair: Rows, metrics: Sequence[str], least: int) -> Iterator[dict[str, Any]]:
    """AUROC and AUPRC pooled and within level, correlations over the levels."""
    few = at_least(least)
    levels = pair.by("level")
    mixed = [level for level, part in levels.items() if part.rarer]
    inside = pair.where("level", mixed) if mixed else pair
    left_out = ", ".join(str(q) for q, part in levels.items() if q not in mixed and len(part))
    note = f"one class only at level {left_out}: left out" if left_out else ""
    for metric in (m for m in RANKING if m in metrics):
        statistic = RANKING[metric][0]
        for level, rows, said in (("pooled", pair, ""), ("within", inside, note)):
            of = within(statistic) if level == "within" else statistic
            found = compared(rows, of, withheld=few, undefined="", note="" if few(rows) else said)
            found["n_missing"] = len(pair.asked) - found["n"]
            yield {"metric": metric, "level": level, **found}
    short = "fewer than 3 levels" if sum(len(part) > 0 for part in levels.values()) < 3 else ""
    for metric in (m for m in OVER_LEVELS if m in metrics):
        of = across(OVER_LEVELS[metric])
        found = compared(pair, of, withheld=lambda _: short, undefined=FLAT)
        yield {"metric": metric, "level": "across", **found}
