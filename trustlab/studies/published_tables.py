"""06: the tables and claims of Ren et al. 2026 (arXiv 2601.15645 v1), recomputed from what is printed."""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportGeneralTypeIssues=false
# pyright: reportReturnType=false, reportOperatorIssue=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations
from math import isnan, nan
from typing import Annotated, Any

import numpy as np
import pandas as pd
from pydantic import Field

from trustlab.confidence import METHODS
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
    cases_to_tell_apart,
    holm,
)
from trustlab.plots.style import label
from trustlab.settings import Chance, Count, Flat, Folder, Seed, choices

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
    """Table 2 through :func:`trustlab.metrics.audit.audit_correlations`, a row a coefficient, all in one family.

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


MEASURES = {"AUROC": "auroc", "Pearson": "pearson"}
"""Quantities that Tables 3 and 6 both print -> their columns."""


def disagreements(audit: pd.DataFrame) -> pd.DataFrame:
    """Every quantity that two tables print, side by side, those that differ most first.

    Columns quantity model dataset method first value_first second value_second difference also; ``also`` names the other methods
    for which Table 2 prints the second table's value, for the same model, data set and statistic.
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
    """Over how many consultations the means of Table 5 can be taken: a row a reading, the numbers up to ``max_n`` that fit.

    Columns reading smallest n_fit numbers; ``numbers`` is a list. Utterances are in hundredths, accuracy in whole percent.
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
    """MedConf's AUROC minus each baseline's of Table 3, with what its sampling error may be and how many cases would show it.

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
            needed = cases_to_tell_apart(row["difference"], se, cases, power, alpha)
            reach = 1.959964 * se
            ends = {"low": row["difference"] - reach, "high": row["difference"] + reach}
            counts = {"unit": unit, "n": n, "n_rarer": min(right, n - right)}
            rows.append({**row, **counts, "se": se, **ends, "n_cases": cases, "cases": needed})
    return pd.DataFrame(rows)


def advantages() -> pd.DataFrame:
    """MedConf's AUROC and each baseline's of Table 3: model dataset method family medconf baseline difference best.

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
    """The figure of the claim with this id; NaN where it gives none. Raises ``KeyError`` for an unknown id."""
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
UNIT = 0.001
"""Unit of the last digit of the printed coefficients: a difference of two of them can be off by one."""
GRAPH = ["eigv", "deg", "ecc"]
NOT_PRINTED = "not in Tables 2 to 6"


@dataclass(frozen=True)
class Again:
    """A figure had again: ``value`` (NaN if it cannot be), ``how``; ``slack``: how far rounding of what it is made of reaches."""

    value: float
    how: str
    slack: float = 0.0


def claims_table() -> pd.DataFrame:
    """One row a claimed figure: id place claim claimed recomputed difference agrees how.

    ``agrees``: "yes" within rounding of the claim and of the printed figures it is made of, "no", "cannot be recomputed" or "no
    figure is claimed". A claim to lie above or below something is held against the nearest printed figure. Raises
    ``ValueError`` where the file names a claim that nothing here recomputes, or lacks one.
    """
    claims = published_claims()
    if unequal := set(claims["id"]) ^ set(WAYS):
        raise ValueError(
            f"claims.csv and the ways to recompute them must name the same claims; these are in one only: {unequal}"
        )
    rows = []
    for claim in claims.to_dict("records"):
        again = WAYS[claim["id"]]()
        given = float(claim["claimed"] or "nan")
        decimals = len(claim["claimed"].partition(".")[2])
        room = again.slack + (0.5 * 10.0**-decimals if decimals else 0.0) + 1e-9
        verdict = judged(again.value - given, claim["relation"], room)
        verdict = NO_FIGURE if not claim["claimed"] else UNKNOWN if isnan(again.value) else verdict
        kept = {name: claim[name] for name in ("id", "place", "claim", "claimed")}
        rows.append(
            {
                **kept,
                "recomputed": round(again.value, 6),
                "difference": round(again.value - given, 6),
                "agrees": verdict,
                "how": again.how,
            }
        )
    return pd.DataFrame(rows)


def judged(difference: float, relation: str, room: float) -> str:
    """Whether recomputed minus claimed fits "=", ">" (recomputed lies above) or "<" within ``room``."""
    fits = {"=": abs(difference) <= room, ">": difference >= -room, "<": difference <= room}
    return YES if fits[relation] else NO


@cache
def _audit() -> pd.DataFrame:
    return correlations()


def _absent(how: str = NOT_PRINTED) -> Again:
    return Again(nan, how)


def _levels() -> Again:
    counts = points_that_fit(_audit())
    most = int(counts.idxmax())
    second = int(counts.drop(most).max())
    return Again(
        most,
        f"{counts[most]} of the p-values printed as numbers fit {most} points, at most {second} another number",
    )


def _methods() -> Again:
    table = published_table("correlation")
    counts = table.groupby("model")["method"].nunique()
    return Again(
        counts["llama-3.1"],
        f"methods in Table 2 with Llama-3.1; with GPT-4.1 there are {counts['gpt-4.1']}",
    )


def _access(access: str) -> Again:
    names = published_table("correlation")["method"].unique()
    n = sum(METHODS[name].access == access for name in names)
    with_gpt = published_table("correlation").query("model == 'gpt-4.1'")["method"].nunique()
    return Again(
        n,
        "by what each formula needs: P(True) needs words only where its answers are sampled, and is counted as black here; "
        f"{with_gpt} methods are printed with GPT-4.1",
    )


def _mean(statistic: str) -> Again:
    table = published_table("correlation").query(
        "model == 'llama-3.1' and dataset == 'ddxplus' and statistic == @statistic"
    )
    whole = published_table("ablation").set_index("variant").loc["full", statistic]
    mean = table["value"].mean()
    with_it = whole - (table["value"].sum() + whole) / (len(table) + 1)
    how = f"{whole:.3f} (Table 6) minus the mean {mean:.3f} of {len(table)} in Table 2; {with_it:.3f} were MedConf in the mean"
    return Again(whole - mean, how, UNIT)


def _mean_auroc() -> Again:
    """Not printed for all 27; if Table 3 holds the best of each family, their mean is bounded."""
    here = published_table("comparison").query("model == 'llama-3.1' and dataset == 'ddxplus'")
    medconf = here.set_index("method").loc["medconf", "auroc"]
    rivals = here[here["method"] != "medconf"].set_index("method")["auroc"]
    family = {METHODS[name].family: auroc for name, auroc in rivals.items()}
    names = published_table("correlation")["method"].unique()
    highest = sum(family[METHODS[name].family] for name in names) / len(names)
    other = published_table("ablation").set_index("variant").loc["full", "auroc"]
    gap = medconf - rivals["pmi"]
    return _absent(
        f"27 AUROCs are not printed. Were Table 3's baselines the highest of their families, the 27 would average at most "
        f"{highest:.3f}, and the difference be at least {medconf - highest:.3f} (MedConf {medconf:.3f} in Table 3) or "
        f"{other - highest:.3f} ({other:.3f} in Table 6). {medconf:.3f} minus PMI's {rivals['pmi']:.3f} is {gap:.3f}"
    )


def _best(which: str) -> Again:
    best = advantages().query("best")
    value = getattr(best["difference"], which)()
    listed = ", ".join(f"{one:.3f}" for one in best["difference"])
    return Again(
        value,
        f"Table 3, MedConf minus the best baseline by AUROC of each configuration: {listed}",
        UNIT,
    )


def _of_medconf(column: str, which: str) -> Again:
    ours = published_table("comparison").query("method == 'medconf'")[column]
    return Again(getattr(ours, which)(), f"Table 3, {len(ours)} configurations")


def _pearson_gaps() -> pd.Series:
    """MedConf's Pearson minus the highest other one of Tables 2 and 3, for each configuration."""
    two = (
        published_table("correlation")
        .query("statistic == 'pearson'")
        .rename(columns={"value": "pearson"})
    )
    three = published_table("comparison")
    rest = (
        pd.concat([two, three[three["method"] != "medconf"]])
        .groupby(["model", "dataset"])["pearson"]
        .max()
    )
    ours = three[three["method"] == "medconf"].set_index(["model", "dataset"])["pearson"]
    return (ours - rest.reindex(ours.index)).round(6)


def _pearson_close() -> Again:
    gaps = _pearson_gaps()
    listed = ", ".join(f"{gap:+.3f}" for gap in gaps)
    return Again(
        -gaps.min(),
        f"how near is close is not said; MedConf minus the highest other Pearson: {listed}",
    )


def _superior(column: str) -> Again:
    gaps = _pearson_gaps() if column == "pearson" else advantages().query("best")["difference"]
    above, level = int((gaps > 0).sum()), int((gaps == 0).sum())
    against = "Tables 2 and 3" if column == "pearson" else "Table 3, at most three baselines each"
    rest = len(gaps) - above - level
    return Again(
        above,
        f"highest in {above}, level with the highest in {level}, below it in {rest}; against {against}",
    )


def _two(datasets: list[str], statistic: str, which: str) -> Again:
    table = published_table("correlation").query(
        "model == 'llama-3.1' and method in ['perplexity', 'token_sar'] and dataset in @datasets and statistic == @statistic"
    )
    listed = ", ".join(f"{value:.3f}" for value in table["value"])
    word = {"min": "smallest", "max": "largest"}[which]
    return Again(getattr(table["value"], which)(), f"Table 2, {word} of {listed}", UNIT / 2)


def _significant(chosen: str, how: str, expected: bool) -> Again:
    """How many of the coefficients of Table 2 that ``chosen`` (a query) picks are printed as significant, and the exceptions."""
    picked = _audit().query(chosen)
    fewer = picked[picked["significant"] != expected]
    kind = "not" if expected else "significant"
    listed = "; ".join(
        f"{label(row.method)} on {DATASETS[row.dataset]} with {MODELS[row.model]}, {row.statistic} {row.value}, p {row.p_printed}"
        for row in fewer.itertuples()
    )
    return Again(
        int(picked["significant"].sum()), f"{how} ({len(picked)}); {kind}: {listed or 'none'}"
    )


def _ce() -> Again:
    of = "method in ['ce', 'cot_ce'] and not (method == 'cot_ce' and dataset == 'meditod' and model == 'llama-3.1')"
    return _significant(of, "Table 2, printed p, Pearson and Spearman", True)


def _graph(there: bool) -> Again:
    where = "model == 'gpt-4.1' and dataset != 'ddxplus'"
    rule = where if there else f"not ({where})"
    return _significant(
        f"method in {GRAPH} and {rule}",
        "read as a printed p of at most 0.05, Pearson and Spearman",
        there,
    )


def _cot(statistic: str) -> Again:
    cell = "model == 'llama-3.1' and dataset == 'meditod' and method == 'cot_ce' and statistic == @statistic"
    return Again(published_table("correlation").query(cell)["value"].item(), "Table 2", UNIT / 2)


def _entropy_on_medqa() -> Again:
    table = published_table("comparison").query(
        "model == 'llama-3.1' and dataset == 'medqa' and method == 'entropy'"
    )
    return Again(table["auroc"].item(), "Table 3", UNIT / 2)


def _robust(method: str, column: str) -> Again:
    table = published_table("robustness").set_index("method")[column]
    return Again(
        table[method] - table["medconf"],
        f"Table 4: {table[method]:.3f} minus {table['medconf']:.3f}",
        UNIT,
    )


def _case(method: str) -> Again:
    row = recomputed().set_index("method").loc[method]
    return Again(row["recomputed"], row["how"])


def _case_medconf() -> Again:
    fixed = recomputed().set_index("method").loc["medconf_weighted", "recomputed"]
    told = "the model's own number; by fixed weights (strong 3, moderate 2, weak 1), not in the paper, the same criteria give"
    return _absent(f"{told} 5/17 = {fixed:.1f}")


def _five() -> Again:
    mean = float(published_claims().set_index("id").loc["five_tokens", "claimed"])
    total = 5 * mean
    return _absent(
        f"the five probabilities are not printed. They sum to {total:.2f}: with the first at 0 the other four average "
        f"{total / 4:.3f}, with the first at 0.5 {(total - 0.5) / 4:.3f}"
    )


WAYS: dict[str, Callable[[], Again]] = {
    "cases_ddxplus": _absent,
    "cases_meditod": _absent,
    "cases_medqa": _absent,
    "levels": _levels,
    "methods": _methods,
    "black_box": partial(_access, "black"),
    "white_box": partial(_access, "white"),
    "mean_pearson": partial(_mean, "pearson"),
    "mean_spearman": partial(_mean, "spearman"),
    "mean_auroc": _mean_auroc,
    "mean_auprc": partial(_absent, "the AUPRCs of the 27 are not printed"),
    "best_mean": partial(_best, "mean"),
    "best_least": partial(_best, "min"),
    "best_most": partial(_best, "max"),
    "auroc_least": partial(_of_medconf, "auroc", "min"),
    "auroc_most": partial(_of_medconf, "auroc", "max"),
    "pearson_least": partial(_of_medconf, "pearson", "min"),
    "pearson_most": partial(_of_medconf, "pearson", "max"),
    "pearson_close": _pearson_close,
    "superior_auroc": partial(_superior, "auroc"),
    "superior_pearson": partial(_superior, "pearson"),
    "two_medqa_pearson": partial(_two, ["medqa"], "pearson", "min"),
    "two_medqa_spearman": partial(_two, ["medqa"], "spearman", "min"),
    "two_others_pearson": partial(_two, ["ddxplus", "meditod"], "pearson", "max"),
    "two_others_spearman": partial(_two, ["ddxplus", "meditod"], "spearman", "max"),
    "ce_significant": _ce,
    "cot_pearson": partial(_cot, "pearson"),
    "cot_spearman": partial(_cot, "spearman"),
    "graph_excellent": partial(_graph, True),
    "graph_elsewhere": partial(_graph, False),
    "entropy_medqa_auroc": _entropy_on_medqa,
    "entropy_medqa_auprc": _absent,
    "entropy_ddxplus_auroc": _absent,
    "entropy_ddxplus_auprc": _absent,
    **{
        f"robust_{method}_{kind}": partial(_robust, method, f"cv_{kind}")
        for method in ("asp", "poc", "ce")
        for kind in ("group", "sample")
    },
    "case_asp": partial(_case, "asp"),
    "case_samples": lambda: Again(sum(published_case().votes), "sum of the three counts"),
    "case_poc": partial(_case, "poc"),
    "case_cot_ce": partial(_absent, "the model's own number after reasoning"),
    "case_medconf": _case_medconf,
    "five_tokens": _five,
}
"""Claim -> how its figure is had again."""
