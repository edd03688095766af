"""Tables of how the talk went: how consultations ended, what the doctor tried, what the patient replied, which are left out."""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportReturnType=false, reportCallIssue=false

from __future__ import annotations

import pandas as pd

from trustlab.agents.consultation import CONFIDENT, ENDS
from trustlab.agents.patient import OUTCOMES
from trustlab.experiments.consultations import ConsultationRun


def left_out_table(run: ConsultationRun) -> pd.DataFrame:
    """The consultations that the tables of stopping leave out, and why: model case_id level why, a row an answer not judged.

    ``why`` is the answer's ``missing``. They are not left out at random: a long consultation may not fit the model's window.
    """
    gone = run.answers[run.answers["correct"].isna()]
    return gone[["model", "case_id", "level", "missing"]].rename(columns={"missing": "why"}).reset_index(drop=True)


def patient_table(run: ConsultationRun) -> pd.DataFrame:
    """What the patient's replies were, counted: model what n share; and how they compare with the rule patient.

    ``share`` is of all turns for outcomes; for "found", "missed" and "another fact" of the turns whose question asks for a known
    finding that is among the facts; for "rightly not known" and "spoke though not told" of those where it is not.
    """
    rows = []
    for model, turns in run.turns.groupby("model", sort=False):
        for outcome in OUTCOMES:
            rows.append((model, outcome, int((turns["outcome"] == outcome).sum()), len(turns)))
        known = turns[turns["reference"].str.isdigit()]
        not_told = turns[turns["reference"] == "not told"]
        silent = known["fact"] == ""
        rows += [(model, "found", int((known["fact"] == known["reference"]).sum()), len(known))]
        rows += [(model, "missed", int(silent.sum()), len(known))]
        rows += [(model, "another fact", int((~silent & (known["fact"] != known["reference"])).sum()), len(known))]
        rows += [(model, "rightly not known", int((not_told["fact"] == "").sum()), len(not_told))]
        rows += [(model, "spoke though not told", int((not_told["fact"] != "").sum()), len(not_told))]
    table = pd.DataFrame(rows, columns=["model", "what", "n", "of"])
    return table.assign(share=table["n"] / table["of"].where(table["of"] > 0))


def ended_table(run: ConsultationRun) -> pd.DataFrame:
    """Why the consultations ended: model ended n share mean_questions."""
    rows = []
    for model, part in run.ended.groupby("model", sort=False):
        for why in ENDS:
            mine = part[part["ended"] == why]
            if why == CONFIDENT and not len(mine):
                continue  # nothing stops a recorded consultation
            rows.append((model, why, len(mine), len(mine) / len(part), mine["n_turns"].mean()))
    return pd.DataFrame(rows, columns=["model", "ended", "n", "share", "mean_questions"])


def tries_table(run: ConsultationRun) -> pd.DataFrame:
    """Which of the doctor's tries the questions put were: model tries n share; 1 is the greedy question."""
    rows = []
    for model, turns in run.turns.groupby("model", sort=False):
        for k in range(1, int(turns["tries"].max()) + 1):
            n = int((turns["tries"] == k).sum())
            rows.append((model, k, n, n / len(turns)))
    return pd.DataFrame(rows, columns=["model", "tries", "n", "share"])
