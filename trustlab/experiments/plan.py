"""What a benchmark would ask of a model, counted before anything is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from trustlab.collect import Settings, answer_requests, needs_of, probe_requests
from trustlab.confidence import select
from trustlab.datasets import load_sets
from trustlab.levels import views
from trustlab.models.base import STATISTICS

WORDS_PER_TOKEN = 0.75
"""Rule of thumb for English text and large models' tokenizers; the table says tokens are estimates."""


def plan_benchmark(parameters: Mapping[str, Any]) -> pd.DataFrame:
    """Requests, replies and tokens by purpose, for the parameters of ``01_benchmark``.

    Tokens in are estimated from words; tokens out are the most that is allowed. The prompt is counted once a request.
    Several models are asked the same and counted together, each as one that gives every statistic.
    """
    cases = load_sets(parameters["dataset"], path=parameters.get("path") or None, n=parameters.get("n"), seed=parameters["seed"])
    n_models = 1 if isinstance(parameters["model"], str) else len(parameters["model"])
    needs = needs_of(select(parameters["methods"]))
    settings = Settings(samples=parameters["samples"], temperature=parameters["temperature"], seed=parameters["seed"])
    rows = []
    for v in views(cases, parameters["levels"]):
        asked = answer_requests(v, needs, frozenset(("text", *STATISTICS)), settings)
        asked += probe_requests(v, v.case.diagnosis, needs, settings).values()
        for r in asked:
            words = sum(len(content.split()) for _, content in r.messages)
            rows.append((r.purpose, r.n, round(words / WORDS_PER_TOKEN), r.n * r.max_tokens))
    table = pd.DataFrame(rows, columns=["purpose", "n_replies", "n_tokens_in", "n_tokens_out"])
    grouped: Any = table.groupby("purpose", sort=False)
    return (n_models * grouped.sum().assign(n_requests=grouped.size())).reset_index()
