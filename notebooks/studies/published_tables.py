"""06: the tables and claims of Ren et al. 2026 (arXiv 2601.15645 v1), recomputed from print."""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false
# pyright: reportReturnType=false, reportOperatorIssue=false

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import combinations
from math import isnan, nan
from string import Template
from typing import Annotated, Any

import numpy as np
import pandas as pd
from pydantic import Field

from trustlab.choices import Chance, Count, Seed, choices
from trustlab.confidence import METHODS
from trustlab.confidence.registry import label
from trustlab.metrics.audit import (
    CELL,
    DATASETS,
    MODELS,
    attainable_n,
    audit_correlations,
    fitting_points,
    published_case,
    published_claims,
    published_table,
    recomputed,
)
from trustlab.metrics.correlation import rising_band, spearman_exact_p, spearman_p, spearman_values
from trustlab.metrics.significance import (
    auroc_difference_standard_error,
    benjamini_hochberg,
    holm,
    sample_size_for_power,
)
from trustlab.settings import Flat, Folder

UNCERTAINTIES = ("perplexity", "entropy", "pmi", "token_sar", "mc_se", "mc_nse", "semantic_entropy")
"""Methods whose formula, as the paper prints it (A3 to A5, A10, A21 to A23), grows as the model
becomes less sure."""
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


@choices
class Asked(Flat):
    """The choices of notebook 06."""

    n_points: Annotated[int, Field(ge=3, le=7, description="a whole number from 3 to 7")] = 6
    """Information levels that each correlation is taken over."""
    alpha: Chance = 0.05
    level: Chance = 0.95
    """Of the chance band."""
    draws: Count = 20000
    seed: Seed = 0
    max_n: Count = 120
    """Largest number of consultations tried."""
    share_right: Chance = 0.5
    """Of the answers, for the sampling error of an AUROC."""
    auroc_correlation: Annotated[
        float, Field(ge=0, lt=1, description="a number from 0 to below 1")
    ] = 0.0
    power: Chance = 0.8
    run_dir: Folder = None


def correlations(n_points: int = 6, alpha: float = 0.05) -> pd.DataFrame:
    """Table 2 through :func:`trustlab.metrics.audit.audit_correlations`, a row a coefficient, all
    in one family.

    Further columns: ``family`` (ours), ``r`` (the value as a number), ``p_number`` (the printed p
    where it is a number), ``significant`` (the printed p is at most ``alpha``).
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
    """How many rows of each model and data set have each value of ``column``, columns in the given
    order."""
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
    """For each number of points: how many of the p-values printed as numbers fit their coefficient
    by the t-test."""
    exact = audit[audit["p_number"].notna()]
    points = range(least, most + 1)
    fitting = [
        n
        for value, p in zip(exact["value"], exact["p_printed"], strict=True)
        for n in fitting_points(value, p, points)
    ]
    return pd.Series({n: fitting.count(n) for n in points}, name="n_fit").rename_axis("points")


def standings(audit: pd.DataFrame, alpha: float = 0.05) -> pd.DataFrame:
    """Each coefficient with the strictest correction over the whole table that it passes at
    ``alpha``, one of STANDINGS."""
    passed = [audit["p_holm"] <= alpha, audit["p_bh"] <= alpha, audit["significant"]]
    shown = [*CELL, "family", "statistic", "value", "n", "p_printed", "p_t", "p_bh", "p_holm"]
    return audit[shown].assign(standing=np.select(passed, STANDINGS[:0:-1], STANDINGS[0]))


def survivors(audit: pd.DataFrame, alpha: float = 0.05) -> pd.DataFrame:
    """How many coefficients stay significant after correction, for several families: rows family,
    statistic, p_from.

    ``printed``, ``uncorrected``, ``benjamini_hochberg`` and ``holm`` count those at ``alpha``. The
    p-values are recomputed: by the t-test, or (Spearman) exact. Families: the whole table, each
    statistic, each model, data set and statistic.
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
                # The family keeps its other half by the t-test, the only one that a printed Pearson
                # allows.
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
    """Every value from 0 up that Spearman's rho over ``n_points`` can take without ties, and every
    other that is printed.

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
    """The Spearman coefficients that are printed as significant and are not by an exact permutation
    test."""
    chosen = (audit["statistic"] == "spearman") & audit["significant"] & (audit["p_exact"] > alpha)
    return audit.loc[chosen, [*CELL, "value", "p_printed", "p_t", "p_exact"]].reset_index(drop=True)


def unattainable(audit: pd.DataFrame) -> pd.DataFrame:
    """The Spearman coefficients that their number of points cannot have without ties, with the
    values beside them.

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

    ``kind``: "one method, two data sets", "two methods, one data set" (of one model) or "another
    model or both differ".
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
    """How many pairs of cells would agree in Pearson and Spearman if the last digits of Pearson
    were arbitrary.

    Of the pairs with the same Spearman, ``n_near`` have Pearsons at most 0.050 apart; one in 101 of
    them would agree in all three decimals (``expected``), beside which stands how many do
    (``n_same``). Rows: the kinds of :func:`identical`, and all.
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
        kind = "another model or both differ"
        if same_model and (same_method or same_set):
            one_method, one_set = "one method, two data sets", "two methods, one data set"
            kind = one_method if same_method else one_set
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
    """Signs of the coefficients, for methods whose printed formula is an uncertainty and for the
    others: a row a method or group.

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
    """The printed Pearsons, MedConf's of Table 3 among them, beside what two unrelated rising
    series of as many points give.

    Both are drawn, since the tables print no accuracies by level; each run's own would give another
    band. Columns model dataset method family r n low median high place (one of PLACES); ``n``
    counts the points, ``low`` and ``high`` bound the band.
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


MEASURES = {"AUROC": "auroc", "Pearson": "pearson"}
"""Quantities that Tables 3 and 6 both print -> their columns."""


def disagreements(audit: pd.DataFrame) -> pd.DataFrame:
    """Every quantity that two tables print, side by side, those that differ most first.

    Columns quantity model dataset method first value_first second value_second difference also;
    ``also`` names the other methods for which Table 2 prints the second table's value, for the same
    model, data set and statistic.
    """
    two = audit[audit["statistic"] == "pearson"]
    three, six = published_table("comparison"), published_table("ablation")
    both = two.merge(three[[*CELL, "pearson"]], on=CELL, validate="one_to_one")
    rows = [
        ("Pearson", *_cell(row), 2, row["r"], 3, row["pearson"]) for row in both.to_dict("records")
    ]
    whole = (
        six[six["variant"] == "full"]
        .assign(method="medconf")
        .merge(three, on=CELL, suffixes=("_6", "_3"), validate="1:1")
    )
    for row in whole.to_dict("records"):
        rows += [
            (name, *_cell(row), 3, row[f"{key}_3"], 6, row[f"{key}_6"])
            for name, key in MEASURES.items()
        ]
    columns = ["quantity", *CELL, "first", "value_first", "second", "value_second"]
    table = pd.DataFrame(rows, columns=columns)
    table["difference"] = (table["value_second"] - table["value_first"]).round(6)
    table["also"] = [
        _also(two, row) if row["difference"] else "" for row in table.to_dict("records")
    ]
    return table.sort_values(
        "difference", key=abs, ascending=False, kind="stable", ignore_index=True
    )


def consultations(max_n: int = 200) -> pd.DataFrame:
    """Over how many consultations the means of Table 5 can be taken: a row a reading, the numbers
    up to ``max_n`` that fit.

    Columns reading smallest n_fit numbers; ``numbers`` is a list. Utterances are in hundredths,
    accuracy in whole percent.
    """
    table = published_table("consultation", as_text=True)
    talked = list(table["utterances"])
    right = [f"{float(percent) / 100:.2f}" for percent in table["accuracy_percent"]]
    found = {
        "mean utterances": attainable_n(talked, max_n),
        "mean utterances, an even number in each consultation": attainable_n(talked, max_n, step=2),
        "accuracy": attainable_n(right, max_n),
        "mean utterances, were nothing rounded": attainable_n(talked, max_n, exactly=True),
        "accuracy, were nothing rounded": attainable_n(right, max_n, exactly=True),
    }
    words = list(found)
    found["both"] = sorted(set(found[words[0]]) & set(found[words[2]]))
    found["both, utterances even"] = sorted(set(found[words[1]]) & set(found[words[2]]))
    found["both, were nothing rounded"] = sorted(set(found[words[3]]) & set(found[words[4]]))
    rows = [(reading, min(n, default=np.nan), len(n), n) for reading, n in found.items()]
    return pd.DataFrame(rows, columns=["reading", "smallest", "n_fit", "numbers"])


def auroc_differences(
    share_right: float = 0.5,
    correlation: float = 0.0,
    n_levels: int = 6,
    power: float = 0.8,
    alpha: float = 0.05,
) -> pd.DataFrame:
    """MedConf's AUROC minus each baseline's of Table 3, with what its sampling error may be and how
    many cases would show it.

    Two rows a difference: ``unit`` "answer" takes the ``n_levels`` answers of a case for
    independent, "case" lets a case count once: the truth lies between. ``share_right`` of the
    answers are taken to be right (the tables do not say), and the two AUROCs to correlate so over
    samples. Columns model dataset method family medconf baseline difference unit n n_rarer se low
    high n_cases cases; ``n_rarer``: right or wrong answers, whichever are taken to be fewer. Hanley
    & McNeil 1982, 1983; ``low`` and ``high`` bound the normal 95 % interval. ``ValueError`` for a
    share outside (0, 1).
    """
    if not 0 < share_right < 1:
        raise ValueError(f"share_right must lie between 0 and 1; received {share_right}")
    sizes = {name: int(claimed(f"cases_{name}")) for name in DATASETS}
    rows = []
    for row in advantages().to_dict("records"):
        cases = sizes[row["dataset"]]
        for unit, n in (("answer", n_levels * cases), ("case", cases)):
            right = round(share_right * n)
            se = auroc_difference_standard_error(
                row["medconf"], row["baseline"], right, n - right, correlation
            )
            needed = sample_size_for_power(row["difference"], se, cases, power, alpha)
            reach = 1.959964 * se
            ends = {"low": row["difference"] - reach, "high": row["difference"] + reach}
            counts = {"unit": unit, "n": n, "n_rarer": min(right, n - right)}
            rows.append({**row, **counts, "se": se, **ends, "n_cases": cases, "cases": needed})
    return pd.DataFrame(rows)


def advantages() -> pd.DataFrame:
    """MedConf's AUROC and each baseline's of Table 3: model dataset method family medconf baseline
    difference best.

    ``best``: the baseline with the highest AUROC of its model and data set.
    """
    table = published_table("comparison")
    whole = table[table["method"] == "medconf"].rename(columns={"auroc": "medconf"})[
        ["model", "dataset", "medconf"]
    ]
    rest = (
        table[table["method"] != "medconf"]
        .rename(columns={"auroc": "baseline"})
        .drop(columns="pearson")
    )
    joined = rest.merge(whole, on=["model", "dataset"], validate="many_to_one")
    joined["family"] = [METHODS[name].family for name in joined["method"]]
    joined["difference"] = (joined["medconf"] - joined["baseline"]).round(6)
    best = joined.groupby(["model", "dataset"])["baseline"].transform("max") == joined["baseline"]
    return joined[[*CELL, "family", "medconf", "baseline", "difference"]].assign(best=best)


def claimed(which: str) -> float:
    """The figure of the claim with this id; NaN where it gives none. Raises ``KeyError`` for an
    unknown id."""
    return float(published_claims().set_index("id").loc[which, "claimed"] or "nan")


def _cell(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(row[name] for name in CELL)


def _also(two: pd.DataFrame, row: dict[str, Any]) -> str:
    """The other methods for which Table 2 prints the value of ``row``'s second table."""
    if row["quantity"] != "Pearson":
        return ""
    here = two[
        (two["model"] == row["model"])
        & (two["dataset"] == row["dataset"])
        & (two["r"] == row["value_second"])
    ]
    return ", ".join(label(name) for name in here["method"] if name != row["method"])


YES, NO, UNKNOWN, NO_FIGURE = "yes", "no", "cannot be recomputed", "no figure is claimed"
Again = tuple[float, dict[str, object]]
"""A figure had again, NaN if it cannot be, and what the words of its source want to know."""


def claims_table() -> pd.DataFrame:
    """One row a claimed figure: id place claim claimed recomputed difference agrees how.

    ``agrees``: "yes" within rounding of the claim and of the printed figures it is made of
    (``slack``), "no", "cannot be recomputed" or "no figure is claimed". A claim to lie above or
    below something is held against the nearest printed figure. ``ValueError`` for an expression
    that is none of :data:`EXPRESSIONS`.
    """
    rows = []
    for claim in published_claims().to_dict("records"):
        value, words = recompute(claim["expression"])
        given = float(claim["claimed"] or "nan")
        decimals = len(claim["claimed"].partition(".")[2])
        room = float(claim["slack"]) + (0.5 * 10.0**-decimals if decimals else 0.0) + 1e-9
        verdict = UNKNOWN if isnan(value) else judged(value - given, claim["relation"], room)
        rows.append(
            {
                **{name: claim[name] for name in ("id", "place", "claim", "claimed")},
                "recomputed": round(value, 6),
                "difference": round(value - given, 6),
                "agrees": verdict if claim["claimed"] else NO_FIGURE,
                "how": Template(claim["source"]).substitute(words),
            }
        )
    return pd.DataFrame(rows)


def recompute(expression: str) -> Again:
    """What ``expression`` of ``claims.csv`` gives: one of :data:`EXPRESSIONS` and its arguments."""
    name, *arguments = expression.split()
    if name not in EXPRESSIONS:
        known = ", ".join(EXPRESSIONS)
        raise ValueError(f"claims.csv has the expression {expression!r}; known are {known}")
    return EXPRESSIONS[name](*arguments)


def judged(difference: float, relation: str, room: float) -> str:
    """Whether recomputed minus claimed fits "=", ">" (recomputed lies above) or "<" within
    ``room``."""
    fits = {"=": abs(difference) <= room, ">": difference >= -room, "<": difference <= room}
    return YES if fits[relation] else NO


@cache
def _audit() -> pd.DataFrame:
    return correlations()


def _filtered(table: pd.DataFrame, filters: Sequence[str]) -> pd.DataFrame:
    """The rows where every ``column=value|value`` holds, but not all of those with a "!" before."""
    kept = pd.Series(True, index=table.index)
    left_out = pd.Series(any(one.startswith("!") for one in filters), index=table.index)
    for one in filters:
        column, _, values = one.lstrip("!").partition("=")
        holds = table[column].isin(values.split("|"))
        if one.startswith("!"):
            left_out &= holds
        else:
            kept &= holds
    return table[kept & ~left_out]


def _listed(values: Iterable[float], form: str = ".3f") -> str:
    return ", ".join(format(value, form) for value in values)


def _points() -> Again:
    """The number of points that most printed p-values fit."""
    counts = points_that_fit(_audit())
    points = int(counts.idxmax())
    second = int(counts.drop(points).max())
    return points, {"points": points, "most": counts[points], "second": second}


def _methods(access: str) -> Again:
    """Methods of Table 2 with Llama-3.1, "any" or those of one access."""
    names = published_table("correlation").groupby("model")["method"].unique()
    n = sum(access in ("any", METHODS[name].access) for name in names["llama-3.1"])
    return n, {"gpt": len(names["gpt-4.1"])}


def _over_mean(statistic: str) -> Again:
    """MedConf's of Table 6 minus the mean of Table 2 for the same model and data set."""
    cell = ["model=llama-3.1", "dataset=ddxplus", f"statistic={statistic}"]
    table = _filtered(published_table("correlation"), cell)["value"]
    whole, mean = _pick("ablation", statistic, "only", "variant=full")[0], table.mean()
    with_it = whole - (table.sum() + whole) / (len(table) + 1)
    told = {"whole": f"{whole:.3f}", "mean": f"{mean:.3f}", "with_it": f"{with_it:.3f}"}
    return whole - mean, {"n": len(table), **told}


def _over_mean_auroc() -> Again:
    """Not printed for all 27; if Table 3 holds the best of each family, their mean is bounded."""
    here = _filtered(published_table("comparison"), ["model=llama-3.1", "dataset=ddxplus"])
    rivals = here.set_index("method")["auroc"]
    medconf = rivals.pop("medconf")
    family = {METHODS[name].family: auroc for name, auroc in rivals.items()}
    names = published_table("correlation")["method"].unique()
    highest = sum(family[METHODS[name].family] for name in names) / len(names)
    other = _pick("ablation", "auroc", "only", "variant=full")[0]
    figures = {"highest": highest, "medconf": medconf, "other": other, "pmi": rivals["pmi"]}
    figures |= {"least": medconf - highest, "other_least": other - highest}
    figures["gap"] = medconf - rivals["pmi"]
    return nan, {name: f"{figure:.3f}" for name, figure in figures.items()}


def _gap(column: str, which: str) -> Again:
    """MedConf minus the highest other method, over the configurations.

    AUROCs are those of Table 3, Pearsons those of Tables 2 and 3. ``which``: the mean, min or max;
    how far "below" it lies at most; in how many it lies "above".
    """
    gaps = _pearson_gaps() if column == "pearson" else advantages().query("best")["difference"]
    above, level = int((gaps > 0).sum()), int((gaps == 0).sum())
    words = {"above": above, "level": level, "rest": len(gaps) - above - level}
    words |= {"listed": _listed(gaps), "signed": _listed(gaps, "+.3f")}
    special = {"below": -gaps.min(), "above": above}
    return special[which] if which in special else gaps.agg(which), words


def _pearson_gaps() -> pd.Series:
    two = _filtered(published_table("correlation"), ["statistic=pearson"])
    both = pd.concat([two.rename(columns={"value": "pearson"}), published_table("comparison")])
    ours = both["method"] == "medconf"
    rest = both[~ours].groupby(["model", "dataset"])["pearson"].max()
    mine = both[ours].set_index(["model", "dataset"])["pearson"]
    return (mine - rest.reindex(mine.index)).round(6)


def _pick(table: str, column: str, which: str, *filters: str) -> Again:
    """The min, the max or the only one of a column's printed values."""
    values = _filtered(published_table(table), filters)[column]
    value = values.item() if which == "only" else values.agg(which)
    return value, {"n": len(values), "listed": _listed(values)}


def _minus(table: str, column: str, first: str, second: str) -> Again:
    """One method's printed value minus another's."""
    printed = published_table(table).set_index("method")[column]
    one, other = printed[first], printed[second]
    return one - other, {"first": f"{one:.3f}", "second": f"{other:.3f}"}


def _significant(expected: str, *filters: str) -> Again:
    """How many coefficients of Table 2 are printed as significant, and which are not as
    expected."""
    picked = _filtered(_audit(), filters)
    others = picked[picked["significant"] != (expected == "yes")]
    listed = "; ".join(
        f"{label(row.method)} on {DATASETS[row.dataset]} with {MODELS[row.model]}, "
        f"{row.statistic} {row.value}, p {row.p_printed}"
        for row in others.itertuples()
    )
    return int(picked["significant"].sum()), {"n": len(picked), "exceptions": listed or "none"}


def _case(method: str) -> Again:
    """A confidence of the case study, from its printed numbers."""
    row = recomputed().set_index("method").loc[method]
    return row["recomputed"], {"how": row["how"]}


def _fixed_weights() -> Again:
    return nan, {"fixed": f"{_case('medconf_weighted')[0]:.1f}"}


def _five_tokens() -> Again:
    total = 5 * claimed("five_tokens")
    told = {"at_0": f"{total / 4:.3f}", "at_half": f"{(total - 0.5) / 4:.3f}"}
    return nan, {"total": f"{total:.2f}", **told}


EXPRESSIONS: dict[str, Callable[..., Again]] = {
    "absent": lambda: (nan, {}),
    "case": _case,
    "five_tokens": _five_tokens,
    "fixed_weights": _fixed_weights,
    "gap": _gap,
    "methods": _methods,
    "minus": _minus,
    "over_mean": _over_mean,
    "over_mean_auroc": _over_mean_auroc,
    "pick": _pick,
    "points": _points,
    "significant": _significant,
    "votes": lambda: (sum(published_case().votes), {}),
}
"""What the expressions of ``claims.csv`` may say."""


def p_values_message(table: pd.DataFrame) -> str:
    """How many printed p-values of :func:`told` are not that of their coefficient."""
    n = int(table["apart"].gt(0).sum())
    far = int(table["apart"].gt(0.05).sum())
    first = f"{n} of {len(table)} p-values printed as numbers are not that of their coefficient"
    return f"{first}, {far} of them by more than 0.05" if n else first


def standings_message(table: pd.DataFrame) -> str:
    """How many coefficients of :func:`standings` pass which correction."""
    n = table["standing"].value_counts().reindex(STANDINGS, fill_value=0)
    return (
        f"Of {len(table)} printed coefficients {n['Holm']} stay significant after Holm,"
        f" {n['Holm'] + n['Benjamini–Hochberg']} after Benjamini–Hochberg; {n['printed only']}"
        " are so by their printed p alone"
    )


def chance_band_message(table: pd.DataFrame) -> str:
    """How many printed Pearsons lie beyond what two unrelated rising series give."""
    n = table["place"].value_counts().reindex(PLACES, fill_value=0)
    low, high = table[["low", "high"]].iloc[0]
    within = n[PLACES[1]] + n[PLACES[2]]
    return (
        f"Two unrelated series that rise have a Pearson of {low:.2f} to {high:.2f}: of"
        f" {len(table)} printed {n[PLACES[3]]} above, {within} within, {n[PLACES[0]]} below"
    )


def auroc_differences_message(table: pd.DataFrame) -> str:
    """In how many comparisons of :func:`auroc_differences` the interval of the lead is above 0."""
    n = table.assign(clear=table["low"].gt(0)).groupby("unit")["clear"].agg(["sum", "count"])
    each, case = n.loc["answer"], n.loc["case"]
    return (
        f"MedConf's printed lead has an interval above 0 in {each['sum']} of {each['count']}"
        f" comparisons if every answer counts for itself, in {case['sum']} if a case counts once"
    )
