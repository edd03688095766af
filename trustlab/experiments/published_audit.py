"""Table 2 of Ren et al. 2026 (arXiv 2601.15645 v1), recomputed from what it prints: one function a question, tables out.

Figures, no verdicts: what does not fit may come from rounding, another number of points or another unit of analysis.
``audit`` is always the table of :func:`correlations`.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportGeneralTypeIssues=false
# pyright: reportReturnType=false, reportOperatorIssue=false

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from trustlab.audit import audit_correlations, fitting_points
from trustlab.confidence import METHODS
from trustlab.experiments.published import CELL, DATASETS, MODELS, published_table
from trustlab.metrics.correlation import rising_band, spearman_exact_p, spearman_p, spearman_values
from trustlab.metrics.significance import benjamini_hochberg, holm
from trustlab.plots.style import label

UNCERTAINTIES = ("perplexity", "entropy", "pmi", "token_sar", "mc_se", "mc_nse", "semantic_entropy")
"""Methods whose formula, as the paper prints it (A3 to A5, A10, A21 to A23), grows as the model becomes less sure."""
PLACES = ("below the band", "in its lower half", "in its upper half", "above it")
MEANINGS = {
    "not significant": "printed p above 0.05",
    "printed only": "printed p at most 0.05",
    "Benjamini–Hochberg": "and after Benjamini–Hochberg",
    "Holm": "and after Holm",
}
STANDINGS = tuple(MEANINGS)
NAMES = MODELS | DATASETS | {"msp": "MSP"}  # the paper has one formula of MSP
HALF, MOST_POINTS = 0.0005 + 1e-9, 10
WINDOW = 50
"""How many units of the last digit, to either side, count as neighbours of a coefficient."""


def correlations(n_points: int = 6, alpha: float = 0.05) -> pd.DataFrame:
    """Table 2 through :func:`trustlab.audit.audit_correlations`, a row a coefficient, all in one family.

    Further columns: ``family`` (ours), ``r`` (the value as a number), ``p_number`` (the printed p where it is a number),
    ``significant`` (the printed p is at most ``alpha``).
    """
    table = published_table("correlation", as_text=True).assign(n=n_points)
    table["family"] = [METHODS[name].family for name in table["method"]]
    audit = audit_correlations(table, alpha=alpha)
    small = pd.to_numeric(audit["p_printed"].str.lstrip("<= ")) <= alpha
    number = pd.to_numeric(audit["p_printed"], errors="coerce")
    return audit.assign(r=pd.to_numeric(audit["value"]), p_number=number, significant=small)


def named(table: pd.DataFrame) -> pd.DataFrame:
    """The table with models, data sets and methods by the names that people read."""
    words: dict[str, Any] = {"model": MODELS.get, "dataset": DATASETS.get, "method": label}
    return table.assign(
        **{name: table[name].map(say) for name, say in words.items() if name in table}
    )


def tally(table: pd.DataFrame, column: str, order: Sequence[str]) -> pd.DataFrame:
    """How many rows of each model and data set have each value of ``column``, columns in the given order."""
    counts = (
        named(table)
        .groupby(["model", "dataset"], sort=False)[column]
        .value_counts()
        .unstack(fill_value=0)
    )
    return counts.reindex(columns=list(order), fill_value=0).rename_axis(columns=None)


def apart(audit: pd.DataFrame) -> pd.DataFrame:
    """The coefficients whose printed p is not that of the printed value, the farthest first."""
    shown = [
        *CELL,
        "family",
        "statistic",
        "value",
        "p_printed",
        "p_number",
        "p_t",
        "p_low",
        "p_high",
    ]
    shown += ["n", "apart", "value_of_p", "fits_n", "fits"]
    return (
        audit.loc[audit["apart"] > 0, shown]
        .sort_values("apart", ascending=False)
        .reset_index(drop=True)
    )


def told(audit: pd.DataFrame) -> pd.DataFrame:
    """The coefficients with a printed p, the farthest from their value's p first.

    ``told`` says what those are whose p is another, and is '' for those that fit.
    """
    given = audit.dropna(subset="p_number").sort_values("apart", ascending=False, kind="stable")
    words = [
        f"{NAMES.get(row.method, label(row.method))}, {DATASETS[row.dataset]}, "
        f"{MODELS[row.model]}: {row.statistic.capitalize()} {row.value}, "
        f"p {row.p_number:.3f}, recomputed {row.p_t:.3f}"
        for row in given.itertuples()
    ]
    return given.assign(told=np.where(given["apart"] > 0, words, ""))


def points_that_fit(audit: pd.DataFrame, least: int = 4, most: int = 9) -> pd.Series:
    """For each number of points: how many of the p-values printed as numbers fit their coefficient by the t-test."""
    exact = audit[audit["p_number"].notna()]
    points = range(least, most + 1)
    fitting = [
        n
        for value, p in zip(exact["value"], exact["p_printed"], strict=True)
        for n in fitting_points(value, p, points)
    ]
    return pd.Series({n: fitting.count(n) for n in points}, name="n_fit").rename_axis("points")


def standings(audit: pd.DataFrame, alpha: float = 0.05) -> pd.DataFrame:
    """Each coefficient with the strictest correction over the whole table that it passes at ``alpha``, one of STANDINGS."""
    passed = [audit["p_holm"] <= alpha, audit["p_bh"] <= alpha, audit["significant"]]
    shown = [*CELL, "family", "statistic", "value", "n", "p_printed", "p_t", "p_bh", "p_holm"]
    return audit[shown].assign(standing=np.select(passed, STANDINGS[:0:-1], STANDINGS[0]))


def survivors(audit: pd.DataFrame, alpha: float = 0.05) -> pd.DataFrame:
    """How many coefficients stay significant after correction, for several families: rows family, statistic, p_from.

    ``printed``, ``uncorrected``, ``benjamini_hochberg`` and ``holm`` count those at ``alpha``. The p-values are recomputed: by
    the t-test, or (Spearman) exact. Families: the whole table, each statistic, each model, data set and statistic.
    """
    ways = {
        "the whole table": ["n"],
        "each statistic": ["statistic"],
        "each model, data set, statistic": ["model", "dataset", "statistic"],
    }
    rows = []
    for name, by in ways.items():
        for statistic, part in audit.groupby("statistic", sort=False):
            for source in ("p_t", "p_exact") if statistic == "spearman" else ("p_t",):
                # The family keeps its other half by the t-test, the only one that a printed Pearson allows.
                p = audit["p_t"].where(audit["statistic"] != statistic, audit[source])
                groups = p.groupby([audit[column] for column in by])
                at = {
                    "benjamini_hochberg": groups.transform(benjamini_hochberg),
                    "holm": groups.transform(holm),
                }
                counts = {
                    test: int((values.loc[part.index] <= alpha).sum())
                    for test, values in at.items()
                }
                plain = {
                    "n": len(part),
                    "printed": int(part["significant"].sum()),
                    "uncorrected": int((part[source] <= alpha).sum()),
                }
                test = "t-test" if source == "p_t" else "exact permutation"
                rows.append(
                    {"family": name, "statistic": statistic, "p_from": test, **plain, **counts}
                )
    return pd.DataFrame(rows)


def spearman_steps(audit: pd.DataFrame, n_points: int = 6) -> pd.DataFrame:
    """Every value from 0 up that Spearman's rho over ``n_points`` can take without ties, and every other that is printed.

    Columns rho, n (points), p_t, p_exact, n_printed (how often this value is printed),
    n_significant (how often as significant), attainable ("yes", "only with ties", "no").
    """
    printed = audit[audit["statistic"] == "spearman"]
    possible = spearman_values(n_points)
    values = [
        *possible[possible >= 0],
        *sorted(set(printed.loc[printed["attainable"] != "yes", "r"].abs())),
    ]
    rows = []
    for rho in values:
        here = printed[(printed["r"].abs() - rho).abs() < 0.0006]
        can = "yes" if np.abs(possible - rho).min() < 1e-9 else here["attainable"].iloc[0]
        counts = {"n_printed": len(here), "n_significant": int(here["significant"].sum())}
        p = {"p_t": spearman_p(rho, n_points), "p_exact": spearman_exact_p(rho, n_points)}
        rows.append({"rho": rho, "n": n_points, **p, **counts, "attainable": can})
    return pd.DataFrame(rows).sort_values("rho", ignore_index=True)


def exact_fails(audit: pd.DataFrame, alpha: float = 0.05) -> pd.DataFrame:
    """The Spearman coefficients that are printed as significant and are not by an exact permutation test."""
    chosen = (audit["statistic"] == "spearman") & audit["significant"] & (audit["p_exact"] > alpha)
    return audit.loc[chosen, [*CELL, "value", "p_printed", "p_t", "p_exact"]].reset_index(drop=True)


def unattainable(audit: pd.DataFrame) -> pd.DataFrame:
    """The Spearman coefficients that their number of points cannot have without ties, with the values beside them.

    ``points``: the numbers of points, from 3 to 10, that can have the value.
    """
    chosen = (audit["statistic"] == "spearman") & (audit["attainable"] != "yes")
    shown = [*CELL, "value", "p_printed", "attainable", "nearest", "value_of_p"]
    table = audit.loc[chosen, [*shown, "r"]].reset_index(drop=True)
    possible = {n: spearman_values(n) for n in range(3, MOST_POINTS + 1)}
    able = [
        [n for n, values in possible.items() if np.abs(values - r).min() <= HALF]
        for r in table.pop("r")
    ]
    return table.assign(points=[", ".join(map(str, n)) for n in able])


def identical(audit: pd.DataFrame) -> pd.DataFrame:
    """Pairs of cells (model, data set, method) that print the same Pearson and the same Spearman.

    ``kind``: "one method, two data sets", "two methods, one data set" (of one model) or "another model or both differ".
    """
    cells = _cells(audit)
    rows = []
    for a, b in combinations(cells.itertuples(), 2):
        if a.pearson == b.pearson and a.spearman == b.spearman:
            alike = {name: getattr(a, name) == getattr(b, name) for name in CELL}
            kind = "another model or both differ"
            if alike["model"] and (alike["method"] or alike["dataset"]):
                kind = (
                    "one method, two data sets" if alike["method"] else "two methods, one data set"
                )
            texts = {
                "pearson": a.pearson,
                "p_pearson": a.p_pearson,
                "spearman": a.spearman,
                "p_spearman": a.p_spearman,
            }
            rows.append({"first": _where(a), "second": _where(b), "kind": kind, **texts})
    columns = ["first", "second", "kind", "pearson", "p_pearson", "spearman", "p_spearman"]
    return pd.DataFrame(rows, columns=columns).sort_values("kind", ignore_index=True)


def coincidence(audit: pd.DataFrame) -> pd.DataFrame:
    """How many pairs of cells would agree in Pearson and Spearman if the last digits of Pearson were arbitrary.

    Of the pairs with the same Spearman, ``n_near`` have Pearsons at most 0.050 apart; one in 101 of them would agree in all
    three decimals (``expected``), beside which stands how many do (``n_same``). Rows: the kinds of :func:`identical`, and all.
    """
    cells = _cells(audit)
    kinds = {
        "one method, two data sets": [],
        "two methods, one data set": [],
        "another model or both differ": [],
    }
    for a, b in combinations(cells.itertuples(), 2):
        same_model, same_set, same_method = (
            a.model == b.model,
            a.dataset == b.dataset,
            a.method == b.method,
        )
        kind = (
            "one method, two data sets" if same_model and same_method
            else "two methods, one data set" if same_model and same_set else "another model or both differ"
        )  # fmt: skip
        kinds[kind].append((round(1000 * abs(a.pearson - b.pearson)), a.spearman == b.spearman))
    rows = []
    for kind, pairs in [*kinds.items(), ("all", sum(kinds.values(), []))]:
        near = [distance for distance, same in pairs if same and distance <= WINDOW]
        counts = {
            "n_pairs": len(pairs),
            "n_same_spearman": sum(same for _, same in pairs),
            "n_near": len(near),
        }
        rows.append(
            {
                "kind": kind,
                **counts,
                "expected": len(near) / (2 * WINDOW + 1),
                "n_same": near.count(0),
            }
        )
    return pd.DataFrame(rows)


def signs(audit: pd.DataFrame) -> pd.DataFrame:
    """Signs of the coefficients, for methods whose printed formula is an uncertainty and for the others: a row a method or group.

    ``expected``: the sign to expect of a method that works, were its formula used as printed.
    """
    turned = audit["method"].isin(UNCERTAINTIES)
    parts = [(label(name), "negative", audit[audit["method"] == name]) for name in UNCERTAINTIES]
    parts.append((f"these {len(UNCERTAINTIES)}", "negative", audit[turned]))
    parts.append(
        (f"the other {audit.loc[~turned, 'method'].nunique()}", "positive", audit[~turned])
    )
    rows = []
    for name, expected, part in parts:
        counts = {
            "n": len(part),
            "n_negative": int((part["r"] < 0).sum()),
            "n_zero": int((part["r"] == 0).sum()),
        }
        loose = part[~part["significant"]]
        loosely = {
            "n_not_significant": len(loose),
            "n_negative_of_these": int((loose["r"] < 0).sum()),
        }
        rows.append(
            {
                "method": name,
                "expected": expected,
                **counts,
                **loosely,
                "least": part["r"].min(),
                "most": part["r"].max(),
            }
        )
    return pd.DataFrame(rows)


def over_band(
    audit: pd.DataFrame,
    n_points: int = 6,
    level: float = 0.95,
    n_draws: int = 20_000,
    seed: int = 0,
) -> pd.DataFrame:
    """The printed Pearsons, MedConf's of Table 3 among them, beside what two unrelated rising series of as many points give.

    Both are drawn, since the tables print no accuracies by level; each run's own would give another
    band. Columns model dataset method family r n low median high place (one of PLACES); ``n`` counts
    the points, ``low`` and ``high`` bound the band.
    """
    ours = (
        published_table("comparison")
        .query("method == 'medconf'")
        .rename(columns={"pearson": "r"})
        .assign(family="medconf")
    )
    rows = pd.concat([audit[audit["statistic"] == "pearson"], ours])[
        [*CELL, "family", "r"]
    ].reset_index(drop=True)
    low, median, high = rising_band(n_points, "pearson", level, n_draws, seed)
    place = pd.cut(rows["r"], [-np.inf, low, median, high, np.inf], labels=PLACES, right=False)
    return rows.assign(n=n_points, low=low, median=median, high=high, place=place.astype(str))


def _cells(audit: pd.DataFrame) -> pd.DataFrame:
    """A row a model, data set and method, with both coefficients as numbers and their printed p."""
    wide = audit.pivot(index=CELL, columns="statistic", values=["r", "p_printed"])
    wide.columns = [
        statistic if what == "r" else f"p_{statistic}" for what, statistic in wide.columns
    ]
    return wide.reset_index()


def _where(cell: Any) -> str:
    return f"{label(cell.method)}, {DATASETS[cell.dataset]}, {MODELS[cell.model]}"
