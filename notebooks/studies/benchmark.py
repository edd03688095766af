"""01: the best possible accuracy, where the chance of each diagnosis is known."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from trustlab import __version__
from trustlab.choices import choices
from trustlab.collect import NOT_KNOWN
from trustlab.levels import views
from trustlab.metrics import schema
from trustlab.metrics.estimate import grouped, mean, measure
from trustlab.parsing.counts import totals
from trustlab.records import LEVELS, Case
from trustlab.run import Run
from trustlab.settings import Setup


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
    for of, part in metrics.groupby(["model", "dataset"], sort=False):
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
