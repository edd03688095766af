"""What a benchmark would ask of a model, counted before anything is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from trustlab.agents.medconf import library_text, profile_text
from trustlab.agents.panel import doctor_request
from trustlab.agents.rephrase import rephrase_requests
from trustlab.collect import Settings, answer_requests, needs_of, probe_requests
from trustlab.confidence import PARAMETERS, select
from trustlab.correctness import JUDGE
from trustlab.correctness.judge import judge_request
from trustlab.datasets import load_sets
from trustlab.levels import views
from trustlab.models.base import STATISTICS, Request
from trustlab.prompts import render
from trustlab.records import Criterion, View
from trustlab.retrieval import Retriever, open_retriever

WORDS_PER_TOKEN = 0.75
"""Rule of thumb for English text and large models' tokenizers; the table says tokens are estimates."""
PROFILE = 8
"""Criteria of a symptom profile: as many as in the paper's case study."""


def plan_benchmark(parameters: Mapping[str, Any]) -> pd.DataFrame:
    """Requests, replies and tokens by purpose, for the parameters of ``01_benchmark``.

    Tokens in are estimated from words; tokens out are the most that is allowed. The prompt is counted once a request.
    Several models are asked the same and counted together, each as one that gives every statistic. MedConf asks for a
    keyword and a profile once for each distinct answer; here that is each distinct true diagnosis, an estimate. A judge is
    counted once an answer, the most it can be. New wordings are asked for once, whatever the number of models.
    """
    if "dataset" not in parameters:
        raise ValueError(
            f"only the parameters of 01_benchmark can be planned; received {', '.join(parameters)}"
        )
    cases = load_sets(
        parameters["dataset"],
        path=parameters.get("path") or None,
        n=parameters.get("n"),
        seed=parameters["seed"],
        options=parameters.get("data_options"),
    )
    n_models = 1 if isinstance(parameters["model"], str) else len(parameters["model"])
    needs = needs_of(select(parameters["methods"]))
    p = replace(
        PARAMETERS, n_samples=parameters["samples"], sample_temperature=parameters["temperature"]
    )
    settings = Settings(p, seed=parameters["seed"])
    rows = []
    for v in views(cases, parameters["levels"]):
        asked = answer_requests(v, needs, frozenset(("text", *STATISTICS)), settings)
        asked += probe_requests(v, v.case.diagnosis, needs, settings).values()
        if "panel" in needs:
            asked.append(doctor_request(v, p.doctor_temperature, settings.seed, p.n_doctors))
        rows += [_row(r) for r in asked]
    if "assessment" in needs:
        library = open_retriever(parameters.get("corpus"))
        rows += [
            _row(r)
            for r in _medconf_requests(views(cases, parameters["levels"]), settings, library)
        ]
    if str(parameters.get("grader", "")).startswith(JUDGE):
        rows += [
            _row(judge_request(v.case.diagnosis, v.case.accepted))
            for v in views(cases, parameters["levels"])
        ]
    rows *= n_models
    if parameters.get("wording"):
        rows += [
            _row(r)
            for r in dict.fromkeys(r for rs in rephrase_requests(cases).values() for r in rs)
        ]
    table = pd.DataFrame(rows, columns=["purpose", "n_replies", "n_tokens_in", "n_tokens_out"])
    grouped: Any = table.groupby("purpose", sort=False)
    return grouped.sum().assign(n_requests=grouped.size()).reset_index()


def _row(r: Request) -> tuple[str, int, int, int]:
    words = sum(len(content.split()) for _, content in r.messages)
    return r.purpose, r.n, round(words / WORDS_PER_TOKEN), r.n * r.max_tokens


def _medconf_requests(
    shown: Sequence[View], settings: Settings, library: Retriever
) -> Iterator[Request]:
    """What MedConf would ask if every answer were right, the keyword its name and the profile as long as the paper's."""
    p = settings.medconf
    profile = profile_text(
        [Criterion(i, "a criterion of some words", "moderate") for i in range(1, PROFILE + 1)]
    )
    for answer in dict.fromkeys(v.case.diagnosis for v in shown):
        passages = library_text(library.search(answer, p.n_passages))
        yield Request(
            render("keyword", answer=answer), max_tokens=p.max_tokens_keyword, purpose="keyword"
        )
        messages = render("profile", answer=answer, passages=passages, options=p.options)
        yield Request(messages, max_tokens=p.max_tokens_profile, purpose="profile")
    for v in shown:
        messages = render(
            "evidence", patient=v.text, answer=v.case.diagnosis, profile=profile, options=p.options
        )
        yield Request(messages, max_tokens=p.max_tokens_evidence, purpose="evidence")
