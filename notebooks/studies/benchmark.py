"""01: the best possible accuracy, where the chance of each diagnosis is known."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from trustlab import __version__
from trustlab.choices import choices
from trustlab.levels import views
from trustlab.metrics import schema
from trustlab.metrics.estimate import grouped, groups, measure, rate
from trustlab.parsing.counts import totals
from trustlab.records import LEVELS, Case
from trustlab.runs.collect import NOT_KNOWN
from trustlab.runs.run import Run
from trustlab.runs.workbench import Workbench


@choices
class Asked(Workbench):
    """The choices of notebook 01."""

    UNUSED = ("doctor", "patient", "reviewer", "medical_proxy")

    task: Annotated[
        Literal["free", "choice", "unlisted"], Field(description="'free', 'choice' or 'unlisted'")
    ] = "free"
    """"choice" asks, beside the free answers, which of five candidates each model takes, listed in
    the prompt; "unlisted" asks for a diagnosis and lists none."""


setup = Asked.of


def bayes_optimal_table(cases: Sequence[Case], levels: Sequence[int] = LEVELS) -> pd.DataFrame:
    """How often the likeliest diagnosis is right where the chance of each is known.
    A line a data set and level, metric "bayes_optimal_accuracy", of the cases that have
    ``posteriors``; the others are missing. Near-ties (1e-6) go to the first by name."""
    rows = []
    for one in views(cases, levels):
        known = one.posterior
        right = np.nan
        if known:
            best = max(known.values())
            first = min(name for name, chance in known.items() if chance > best - 1e-6)
            right = float(first in one.case.accepted)
        key = {"dataset": one.case.dataset, "case_id": one.case.case_id, "level": one.level}
        rows.append(key | {"right": right})
    labelled = grouped(pd.DataFrame(rows), ["dataset", "level"], "right", NOT_KNOWN)
    lines = measure(labelled, {"bayes_optimal_accuracy": rate("right")})
    return schema.table(list(lines), ["dataset", "level"])


FOLDERS = r"(?<![^\s:])(?:~|[A-Za-z]:)?[/\\].*[/\\]"
"""The folders of an absolute path within a name."""


def one_line(name: object) -> str:
    """A name without folders, line breaks and control characters, of at most 120 characters."""
    printable = "".join(c if c.isprintable() else " " for c in str(name))
    return re.sub(FOLDERS, "", printable)[:120]


def contribution(run: Run, metrics: pd.DataFrame) -> pd.DataFrame:
    """What others may lay beside theirs: a row a model and data set, no case text and no reply.
    What was asked, whom, and by whom it was read; accuracy of all asked, of those not cut off and
    of those read, each with its n; level-stratified ``auroc_METHOD`` and ``n_METHOD``."""
    p = run.parameters
    rows = []
    for about, part in groups(metrics, ["model", "dataset"]):
        model = about["model"]
        read = totals({model: p["replies_read"].get(model, {})})
        names = {
            "model": model,
            "revision": p["models"][model],
            "dataset": about["dataset"],
            "levels": " ".join(map(str, p["levels"])),
            "grader": p["grader"],
            "entailment": p["entailment"]["name"],
            "encoder": p["encoder"],
            "trustlab": __version__,
            "date": datetime.now(UTC).date(),
            **{f"prompts_{of}": value for of, value in p["prompts"][model].items()},
        }
        row: dict[str, Any] = {
            **{name: one_line(value) for name, value in names.items()},
            "samples": p["n_samples"],
            "temperature": p["sample_temperature"],
            "seed": p["seed"],
            "n_replies": read["asked"],
            "share_read": read["read"] / read["asked"] if read["asked"] else np.nan,
        }
        right = part[part["level"].eq("pooled") & part["method"].eq("")].set_index("metric")
        for name in ("accuracy_asked", "accuracy", "accuracy_read"):
            here = right.loc[name if name in right.index else "accuracy"]
            row |= {name: here["value"], name.replace("accuracy", "n"): here["n"]}
            row.setdefault("n_cases", here["n_cases"])
        ranks = part[part["metric"].eq("auroc") & part["level"].eq("within")].set_index("method")
        for method, rank in ranks.iterrows():
            row |= {f"auroc_{method}": rank["value"], f"n_{method}": rank["n"]}
        rows.append(row)
    return pd.DataFrame(rows)
