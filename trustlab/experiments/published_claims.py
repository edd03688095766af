"""What Ren et al. 2026 (arXiv 2601.15645 v1) say in words, each figure held against their own printed tables.

``data/published/claims.csv`` holds the claims in our words. Here stands how each figure can be had again from what is printed.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportGeneralTypeIssues=false
# pyright: reportReturnType=false, reportOperatorIssue=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from math import isnan, nan

import pandas as pd

from trustlab.confidence import METHODS
from trustlab.experiments.published import (
    DATASETS,
    MODELS,
    published_case,
    published_claims,
    published_table,
    recomputed,
)
from trustlab.experiments.published_audit import correlations, points_that_fit
from trustlab.experiments.published_others import advantages
from trustlab.plots.style import label

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
