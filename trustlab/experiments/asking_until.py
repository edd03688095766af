"""Consultations that are really asked only while a method's confidence is below a threshold (Ren et al. 2026, consultation).

The recordings of :mod:`trustlab.experiments.consultations` give every threshold at once; this is the loop itself, for one.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportReturnType=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from trustlab.agents.consultation import TURN_LIMIT, Consultation, consult, turn_view
from trustlab.confidence import select
from trustlab.experiments.benchmark import Run, benchmark
from trustlab.experiments.consultations import speakers
from trustlab.metrics.ties import reaches
from trustlab.models.base import Model
from trustlab.records import Case


@dataclass(frozen=True)
class AskedUntil:
    """Consultations that stopped at a threshold, in the cases' order, and the benchmark's tables of every state asked about.

    A consultation that stopped has ``ended`` "confident"; its last ``level`` in ``answers`` holds the diagnosis it stopped with.
    """

    consultations: tuple[Consultation, ...]
    answers: pd.DataFrame
    confidence: pd.DataFrame


def consult_until(
    cases: Sequence[Case],
    model: Model,
    method: str,
    threshold: float,
    max_turns: int = 12,
    *,
    patient: Model | str | None = None,
    tries: int = 4,
    seed: int = 0,
    cache: str | Path | None = None,
    quiet: bool = True,
    **asked: Any,
) -> AskedUntil:
    """Ask about each case only while the confidence of ``method`` is below ``threshold``, for ``max_turns`` questions at most.

    Before each question the model names its diagnosis, and ``method`` judges it; a missing confidence (NaN) reaches no threshold.
    Arguments as for :func:`trustlab.experiments.consultations.consultations`; with the same ``cache`` nothing is asked twice. A
    method that reads how much was shown of the whole (``information_level``) knows no whole here. Raises ``ValueError`` as
    there, for a threshold that is no number, no cases, a ``run_dir``, and a method that is not registered.
    """
    if threshold != threshold or not len(cases):
        raise ValueError(
            f"threshold is {threshold}, of {len(cases)} cases; a number and at least one case are needed"
        )
    if "run_dir" in asked:
        raise ValueError(
            f"run_dir is {asked['run_dir']!r}; nothing is written but the replies: give their file as cache"
        )
    select([method])
    with_cache, speaker = speakers(model, patient, cache, seed)
    runs: list[Run] = []

    def judged(going: Sequence[Consultation]) -> Run:
        told, level = (
            [c.case_told for c in going],
            len(going[0].turns),
        )  # all that go on have had as many questions
        run = benchmark(
            told,
            [model],
            [method],
            [level],
            seed=seed,
            cache=cache,
            show=turn_view,
            quiet=quiet,
            **asked,
        )
        runs.append(run)
        return run

    def stop(going: Sequence[Consultation]) -> list[bool]:
        table = judged(going).confidence
        sure = dict(zip(table["case_id"], table["confidence"], strict=True))
        return [bool(reaches(sure[c.case.case_id], threshold)) for c in going]

    try:
        made = consult(
            cases, with_cache[0], speaker, max_turns=max_turns, tries=tries, seed=seed, stop=stop
        )
        if late := [c for c in made if c.ended == TURN_LIMIT]:
            judged(late)  # the diagnosis at the end
    finally:
        for mine in (m for m in with_cache if m is not patient):
            mine.close()
    answers, confidence = (
        pd.concat([getattr(r, name) for r in runs], ignore_index=True)
        for name in ("answers", "confidence")
    )
    return AskedUntil(made, answers, confidence)
