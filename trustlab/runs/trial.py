"""Tries how much of a model's replies can be read, before a run is spent."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any

from trustlab.agents.consultation import requests_after
from trustlab.agents.medconf import assess
from trustlab.agents.patient import ModelPatient
from trustlab.agents.rephrase import reword
from trustlab.agents.review import propose, review
from trustlab.confidence import select
from trustlab.datasets import load_cases
from trustlab.graders import JudgeGrader
from trustlab.levels import view
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


def ask_everything(model: CachedModel, shown: Sequence[View], bench: Workbench) -> None:
    """Every purpose that any notebook asks, about these views; ``model.counts`` has what became of
    the replies."""
    collect(
        model, shown, select(EVERY), bench.settings, readers=bench.readers, retriever=bench.library
    )
    asked = [(v.text, v.case.diagnosis, v.case.question) for v in shown]  # the library knows these
    about = [About.of(v) for v in shown]
    assess(model, asked, bench.library, bench.procedure, reading=bench.reading, about=about)
    plans = propose(model, [(v, v.case.diagnosis) for v in shown])
    planned = zip(shown, plans, strict=True)
    review(model, [(v, v.case.diagnosis, of.plan) for v, of in planned if of.plan is not None])
    model.generate([r for v in shown for r in requests_after(model, v)])
    questions = ["Have you had a fever?", "How long has it lasted?", "Do you smoke?"]
    pairs = zip(shown, cycle(questions), strict=False)
    ModelPatient(model).answer([(v.case, question) for v, question in pairs], 0)
    texts = [v.case.statements[-1].text for v in shown]
    reword(texts, model, about=dict(zip(texts, about, strict=True)))
    JudgeGrader(model).grade(["A disease of the heart"] * len(shown), [v.case for v in shown])


def try_model(model: Any, cases: Sequence[Case] | None = None, setup: Setup | None = None) -> Trial:
    """Test how much of a model's replies can be read: three views of each purpose, before a run.

    - ``model``: an open model or a name; ``cases=None``: starter cases; ``setup``: a ``Setup``.
    - Each purpose is printed when it ends, unless ``setup.quiet``.
    - ``trial.table()`` has counts by purpose; ``trial.lines()`` shows replies.
    """
    chosen = setup or Setup()
    bench = opened(chosen.with_(trial=False, samples=min(chosen.samples, N_REPLIES)))
    (one,) = bench.models(model)
    cached = one if isinstance(one, CachedModel) else CachedModel(one, bench.store)
    cached.trial = trial = Trial(stops=False, quiet=bench.quiet)
    each = zip(spread(cases or load_cases("starter", n=N_VIEWS)), (20, 60, 100), strict=False)
    ask_everything(cached, [view(case, level) for case, level in each], bench)
    return trial
