"""Tries how much of a model's replies can be read, before a run is spent."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any

from trustlab import levels
from trustlab.agents.consultation import requests_after
from trustlab.agents.medconf import assess
from trustlab.agents.patient import ModelPatient
from trustlab.agents.rephrase import reword
from trustlab.agents.review import propose, review
from trustlab.confidence import select
from trustlab.datasets import load_cases
from trustlab.graders import JudgeGrader
from trustlab.models.base import About
from trustlab.models.cache import CachedModel
from trustlab.models.trial import ADVICE, N_REPLIES, N_VIEWS, Trial, spread
from trustlab.records import Case, View
from trustlab.runs.collect import collect
from trustlab.runs.workbench import Workbench, opened
from trustlab.settings import Setup

__all__ = ["ADVICE", "Trial", "ask_everything", "try_model"]
EVERY = ("asp", "poc", "ce", "cot_ce", "topk_ce", "p_true", "agreement")
"""Methods that ask for every purpose of a benchmark but MedConf's."""
LEVELS_TRIED = (20, 60, 100)


def ask_everything(model: CachedModel, shown: Sequence[View], bench: Workbench) -> None:
    """Ask a model for every purpose of any notebook, about these views; ``model.counts`` then has
    how many of its replies could be read."""
    collect(
        model,
        shown,
        select(EVERY),
        bench.settings,
        readers=bench.readers,
        retriever=bench.library,
    )
    cases = [view.case for view in shown]
    diagnoses = [case.diagnosis for case in cases]  # the library knows these
    about = [About.of(view) for view in shown]
    questions = []
    for view, case in zip(shown, cases, strict=True):
        questions.append((view.text, case.diagnosis, case.question))
    assess(
        model,
        questions,
        bench.library,
        bench.procedure,
        reading=bench.reading,
        about=about,
    )
    proposals = propose(model, list(zip(shown, diagnoses, strict=True)))
    plans = []
    for view, diagnosis, proposal in zip(shown, diagnoses, proposals, strict=True):
        if proposal.plan is not None:
            plans.append((view, diagnosis, proposal.plan))
    review(model, plans)
    requests = []
    for view in shown:
        requests += requests_after(model, view)
    model.generate(requests)
    doctor_asks = ["Have you had a fever?", "How long has it lasted?", "Do you smoke?"]
    ModelPatient(model).answer(list(zip(cases, cycle(doctor_asks), strict=False)), 0)
    texts = [case.statements[-1].text for case in cases]
    reword(texts, model, about=dict(zip(texts, about, strict=True)))
    JudgeGrader(model).grade(["A disease of the heart"] * len(cases), cases)


def try_model(
    model: Any, cases: Sequence[Case] | None = None, setup: Setup | None = None
) -> Trial:
    """Test how much of a model's replies can be read: three views of each purpose, before a run.

    - ``model``: an open model or a name; ``cases=None``: starter cases; ``setup``: a ``Setup``.
    - Each purpose is printed when it ends, unless ``setup.quiet``.
    - ``trial.table()`` has counts by purpose; ``trial.lines()`` shows replies.
    """
    chosen = setup or Setup()
    bench = opened(chosen.with_(trial=False, samples=min(chosen.samples, N_REPLIES)))
    (opened_model,) = bench.models(model)
    if isinstance(opened_model, CachedModel):
        cached = opened_model
    else:
        cached = CachedModel(opened_model, bench.store)
    trial = Trial(stops=False, quiet=bench.quiet)
    cached.trial = trial
    cases = spread(cases or load_cases("starter", n=N_VIEWS))
    shown = []
    for case, level in zip(cases, LEVELS_TRIED, strict=False):
        shown.append(levels.view(case, level))
    ask_everything(cached, shown, bench)
    return trial
