"""Reads the paper's printed tables from data/published.

Large models on other patients than ours: to be read beside our numbers, not held against them.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import yaml

from trustlab.paths import DATA
from trustlab.records import (
    Assessment,
    Criterion,
    Evidence,
    Generation,
    Reply,
    TokenTrace,
)

TABLES = {
    "correlation": 2,
    "comparison": 3,
    "robustness": 4,
    "consultation": 5,
    "ablation": 6,
}
"""Name of a file in ``data/published`` -> number of the table in the paper."""
MODELS = {"llama-3.1": "Llama-3.1", "gpt-4.1": "GPT-4.1"}
DATASETS = {"ddxplus": "DDXPlus", "meditod": "MediTOD", "medqa": "MedQA"}


def published_table(name: str, as_text: bool = False) -> pd.DataFrame:
    """A table of the paper as printed (``data/published/NAME.csv``); ``ValueError`` for a name that
    is not in :data:`TABLES`. ``as_text``: every cell as it stands, so that 0.140 and 0.14 differ.
    """
    if name not in TABLES:
        raise ValueError(
            f"there is no published table {name!r}; there are {', '.join(TABLES)}"
        )
    return pd.read_csv(
        DATA / "published" / f"{name}.csv", dtype=str if as_text else None
    )


def published_case() -> tuple[Generation, dict[str, float]]:
    """The case study's numbers as a record that our methods read, and the printed confidences in
    percent, by method: ``data/published/case.yml``.

    Diagnoses and amounts shown stand in for what is not carried over; what the criteria say is ''.
    """
    case = yaml.safe_load((DATA / "published" / "case.yml").read_text(encoding="utf-8"))
    logprobs = np.log(case["token_probabilities"])
    tokens = tuple(f"token {i}" for i in range(1, len(logprobs) + 1))
    diagnoses: list[str] = []
    for i, n_votes in enumerate(case["votes"], start=1):
        diagnoses += [f"diagnosis {i}"] * n_votes
    evidence = [
        Evidence(Criterion(i, "", importance), level)
        for i, (importance, level) in enumerate(case["criteria"], start=1)
    ]
    assessment = Assessment(
        diagnoses[0],
        profile=tuple(verdict.criterion for verdict in evidence),
        evidence=tuple(evidence),
        score=case["medconf"],
    )
    generation = Generation(
        case_id="published",
        level=100,
        model="published",
        seed=0,
        n_statements=1,
        n_total=1,
        n_words=1,
        answer=Reply(diagnoses[0], TokenTrace(tokens, logprobs=logprobs)),
        samples=tuple(map(Reply, diagnoses)),
        probes={"cot_ce": (Reply(f"{case['cot_ce']:g}"),)},
        assessment=assessment,
    )
    return generation, case["printed"]
