"""How the talk went: how consultations ended, what doctor and patient did, which are left out.

Shares have intervals over cases, with all that was said in them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from trustlab.agents.consultation import CONFIDENT, ENDS
from trustlab.agents.patient import OUTCOMES
from trustlab.experiments.consultations import ConsultationRun
from trustlab.metrics.estimate import Labelled, Rows, estimate, grouped, mean, share
from trustlab.metrics.schema import table

ASKED_FOR = ("found", "missed", "another fact")
NOT_TOLD = ("rightly not known", "spoke though not told")


def left_out_table(run: ConsultationRun) -> pd.DataFrame:
    """The consultations that the tables of stopping leave out: a row an answer not judged.

    Columns model case_id level missing. They are not left out at random: a long consultation may
    not fit the model's window.
    """
    gone: Any = run.answers[run.answers["correct"].isna()]
    return gone[["model", "case_id", "level", "missing"]].reset_index(drop=True)


def patient_table(run: ConsultationRun, n_draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """What the patient's replies were, and how they compare with the rule patient: shares.

    Outcomes of all turns; :data:`ASKED_FOR` of those whose question asks for a known finding that
    is among the facts, :data:`NOT_TOLD` of those where it is not.
    """
    lines = []
    for label, rows in _of_models(run.turns, n_draws, seed):
        turns = rows.asked
        known = turns["reference"].str.isdigit().to_numpy(bool)
        not_told = turns["reference"].eq("not told").to_numpy()
        silent, same = turns["fact"].eq(""), turns["fact"].eq(turns["reference"])
        first = np.select([same, silent], ASKED_FOR[:2], ASKED_FOR[2])
        said = np.where(not_told, np.where(silent, *NOT_TOLD), first)
        rows = Rows.of(turns.assign(said=said), "said", rows.draws, none="no such question")
        lines += [{**label, "metric": o, **share(rows, "outcome", o)} for o in OUTCOMES]
        for part, names in ((rows.at(known), ASKED_FOR), (rows.at(not_told), NOT_TOLD)):
            lines += [{**label, "metric": m, **share(part, "said", m)} for m in names]
    return table(lines, ["model"], ["n_hits"])


def ended_table(run: ConsultationRun, n_draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """Why the consultations ended: the share of each reason, and the mean number of questions."""
    lines = []
    for label, rows in _of_models(run.ended, n_draws, seed):
        for why in ENDS:
            mine = rows.at(rows.asked["ended"].eq(why).to_numpy())
            if why == CONFIDENT and not len(mine):
                continue  # nothing stops a recorded consultation
            about = {**label, "ended": why}
            lines.append({**about, "metric": "share", **share(rows, "ended", why)})
            lines.append({**about, "metric": "questions", **estimate(mine, mean("n_turns"))})
    return table(lines, ["model", "ended"], ["n_hits"])


def tries_table(run: ConsultationRun, n_draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """Which of the doctor's tries the questions put were, as shares; 1 is the greedy question."""
    lines = [
        {**label, "tries": k, "metric": "share", **share(rows, "tries", k)}
        for label, rows in _of_models(run.turns, n_draws, seed)
        for k in range(1, int(rows["tries"].max()) + 1)
    ]
    return table(lines, ["model", "tries"], ["n_hits"])


def _of_models(found: pd.DataFrame, n_draws: int, seed: int) -> Labelled:
    how: Any = {"n_draws": n_draws, "seed": seed, "none": "none of them"}
    return grouped(found, ["model"], "case_id", **how)
