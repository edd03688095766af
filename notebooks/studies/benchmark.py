"""01: the best possible accuracy, and Ren et al.'s tables with this run's values beside them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from trustlab import __version__, formatted
from trustlab.choices import choices
from trustlab.collect import NOT_KNOWN
from trustlab.confidence.registry import label as named
from trustlab.levels import views
from trustlab.measures import families
from trustlab.metrics import schema
from trustlab.metrics.estimate import grouped, mean, measure
from trustlab.parsing.counts import totals
from trustlab.plots.style import FAMILY_LABELS
from trustlab.published import published_table
from trustlab.records import LEVELS, Case
from trustlab.run import Run
from trustlab.settings import Setup

RUN = ["model", "dataset"]


@choices
class Asked(Setup):
    """The choices of notebook 01."""

    task: Annotated[
        Literal["free", "choice", "unlisted"], Field(description="'free', 'choice' or 'unlisted'")
    ] = "free"
    """"choice" asks, beside the free answers, which of five candidates each model takes, listed in
    the prompt; "unlisted" asks for a diagnosis and lists none."""


def bayes_optimal_table(
    cases: Sequence[Case], levels: Sequence[int] = LEVELS, *, n_draws: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """How often the likeliest diagnosis is right where the chance of each is known.
    A line a data set and level, metric "bayes_optimal_accuracy", of the cases that have
    ``posteriors``; the others are missing. Near-ties (1e-6) go to the first by name."""
    rows = []
    for one in views(cases, levels):
        known, right = one.posterior, np.nan
        if known:
            best = max(known.values())
            first = min(name for name, chance in known.items() if chance > best - 1e-6)
            right = float(first in one.case.accepted)
        key = {"dataset": one.case.dataset, "case_id": one.case.case_id, "level": one.level}
        rows.append(key | {"right": right})
    how: dict[str, Any] = {"n_draws": n_draws, "seed": seed, "none": NOT_KNOWN}
    labelled = grouped(pd.DataFrame(rows), ["dataset", "level"], "right", **how)
    lines = measure(labelled, {"bayes_optimal_accuracy": mean("right")})
    return schema.table(list(lines), ["dataset", "level"])


ACCURACIES = ("accuracy_asked", "accuracy", "accuracy_read")
"""Of all that were asked, of those not cut off, and of those that could be read."""


def contribution(run: Run, metrics: pd.DataFrame) -> pd.DataFrame:
    """What others may lay beside theirs: a row a model and data set, no case texts and no replies.
    Revision, prompts, share of replies read, accuracies with n, grader, sizes, date, versions; then
    each method's level-stratified AUROC and its n (``auroc_NAME``, ``n_NAME``)."""
    p, rows = run.parameters, []
    for of, part in metrics.groupby(RUN, sort=False):
        model, dataset = of
        mine = run.answers[run.answers["model"].eq(model) & run.answers["dataset"].eq(dataset)]
        prompts, read = p["prompts"][model], totals({model: p["replies_read"].get(model, {})})
        row: dict[str, Any] = {
            "model": model,
            "revision": p["models"][model],
            "dataset": dataset,
            "n_cases": mine["case_id"].nunique(),
            "levels": " ".join(map(str, p["levels"])),
            "samples": p["n_samples"],
            "temperature": p["sample_temperature"],
            "seed": p["seed"],
            **{f"prompts_{name}": value for name, value in prompts.items()},
            "n_replies": read["asked"],
            "share_read": read["read"] / read["asked"] if read["asked"] else np.nan,
            "grader": p["grader"],
            "entailment": p["entailment"]["name"],
            "encoder": p["encoder"],
            "date": datetime.now(UTC).date().isoformat(),
            "trustlab": __version__,
        }
        pooled = part[part["level"].eq("pooled") & part["method"].eq("")].set_index("metric")
        for name in ACCURACIES:
            here = pooled.loc[name if name in pooled.index else "accuracy"]
            row |= {name: here["value"], name.replace("accuracy", "n"): here["n"]}
        ranks = part[part["metric"].eq("auroc") & part["level"].eq("within")]
        for line in ranks.to_dict("records"):
            row |= {f"auroc_{line['method']}": line["value"], f"n_{line['method']}": line["n"]}
        rows.append(row)
    return pd.DataFrame(rows)


OURS, THEIRS = "this run", "as printed"
NAMES = {"llama-3.1": "Llama-3.1", "gpt-4.1": "GPT-4.1"}
NAMES |= {"ddxplus": "DDXPlus", "meditod": "MediTOD", "medqa": "MedQA"}
"""What the paper calls its models and data sets."""


def correlations_as_published(metrics: pd.DataFrame, statistic: str) -> pd.DataFrame:
    """Ren et al. 2026's Table 2 with this run's values before the printed ones, as text.
    Accuracy and mean confidence over the levels by ``statistic`` ("pearson" or "spearman"): a row a
    method under its family, a column a model and data set; ours with interval and ``n`` answers."""
    across = metrics[metrics["metric"].eq(statistic) & metrics["level"].eq("across")]
    printed = published_table("correlation", as_text=True)
    printed = printed[printed["statistic"].eq(statistic)].rename(columns={"value": "shown"})
    return _as_published(_counted(_ranked(across)), printed)


def comparison_as_published(metrics: pd.DataFrame) -> pd.DataFrame:
    """Ren et al. 2026's Table 3 with this run's values before the printed ones, as text.
    The highest AUROC of each family, pooled over levels and chosen on the answers shown, with its
    method, and this method's Pearson over the levels; columns as in
    :func:`correlations_as_published`."""
    auroc = metrics[metrics["metric"].eq("auroc") & metrics["level"].eq("pooled")]
    mine = _ranked(auroc)
    mine = mine.assign(family=mine["method"].map(families()).fillna("other"))
    best = mine.sort_values("value", ascending=False, kind="stable")
    best = best.drop_duplicates([*RUN, "family"])
    best = best.sort_index(kind="stable")  # the run's order of models and data sets
    pearson = metrics[metrics["metric"].eq("pearson") & metrics["level"].eq("across")]
    ours = {"AUROC": best, "Pearson": best[[*RUN, "method"]].merge(pearson, on=[*RUN, "method"])}
    printed, parts = published_table("comparison", as_text=True), []
    for what, lines in ours.items():
        both = [_counted(lines), printed.rename(columns={what.lower(): "shown"})]
        for table in both:
            pairs = zip(table["method"], table["shown"], strict=True)
            table["shown"] = [v if v == "–" else f"{named(m)} {v}" for m, v in pairs]
        parts.append(_as_published(*both, what))
    return pd.concat(parts).fillna("–")


def _ranked(table: pd.DataFrame) -> Any:
    """The lines of methods, without baselines, references and answers."""
    family = table["method"].map(families())
    return table[table["method"].ne("") & ~family.isin(["baseline", "reference"])]


def _counted(lines: pd.DataFrame) -> pd.DataFrame:
    """The lines with their value, interval and n as text in ``shown``."""
    ends = lines[["value", "low", "high", "n"]].itertuples(index=False)
    shown = [formatted.with_interval(*e[:3]) + f", n {e[3]:,.0f}" * pd.notna(e[0]) for e in ends]
    return lines.assign(shown=shown)


def _as_published(ours: pd.DataFrame, printed: pd.DataFrame, what: str = "") -> pd.DataFrame:
    """``shown`` by family and method (or ``what``) down, by source, model and data set across."""
    theirs = printed.replace({"model": NAMES, "dataset": NAMES}).assign(source=THEIRS)
    both = pd.concat([ours.assign(source=OURS), theirs], ignore_index=True)
    words = both["method"].map(families()).map(FAMILY_LABELS).fillna("other")
    both = both.assign(family=words, row=what or both["method"].map(named))
    order = [*FAMILY_LABELS.values(), "other"]
    across, down = ["source", "model", "dataset"], ["family", "row"]
    place: dict[str, Any] = {"key": lambda f: f.map(order.index), "kind": "stable"}
    rows = both[down].drop_duplicates().sort_values("family", **place)
    wide = both.pivot(index=down, columns=across, values="shown")
    wide = wide.reindex(index=pd.MultiIndex.from_frame(rows))
    columns = both[across].drop_duplicates().itertuples(index=False, name=None)
    return wide[list(columns)].fillna("–")
