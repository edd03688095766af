"""The committed tables of the benchmark's reference run: made again in part, and the metrics
computed from them again.

A fortieth of the cases, at every level, is asked again of each model. Another processor rounds the
last bits of a logit otherwise, which can turn one sample of many; the tolerances say how much of
that is allowed.
"""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
from asking import ask
from publish import REFERENCE
from same.tables import read_file

from trustlab.confidence import METHODS
from trustlab.datasets import load_sets
from trustlab.experiment import benchmark
from trustlab.folder.saved import table_in
from trustlab.models.by_name import open_model
from trustlab.paths import FIGURES, NOTEBOOKS
from trustlab.run import Run
from trustlab.run_notebooks import check_parameters, notebook_path, read_parameters

NAME = "01_benchmark"
FOLDER = FIGURES / "reference" / NAME
KEYS = ["case_id", "dataset", "level", "model"]
EQUAL_ANSWERS, EQUAL_AGREEMENT = 0.995, 0.98
TOLERANCE = {"atol": 1e-3, "rtol": 1e-4}
"""Of a confidence on another processor; the relative part is for perplexity, which can be large."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not FOLDER.is_dir(),
        reason=f"figures/reference/{NAME} is absent: python -m tests.publish 01_benchmark makes it",
    ),
]


def parameters() -> dict:
    """Those of the reference run: the notebook's defaults and the file over them."""
    given = read_parameters(NOTEBOOKS / "parameters" / "published.yml", notebook=NAME)
    chosen = check_parameters(notebook_path(NAME), given)
    return {f.name: getattr(chosen, f.name) for f in fields(chosen)}


def committed() -> dict[str, pd.DataFrame]:
    return {name: read_file(table_in(FOLDER, name)) for name in REFERENCE}


@pytest.fixture(scope="module")
def again() -> Run:
    p = parameters()
    cases = load_sets(p["dataset"], n=p["n"], seed=p["seed"])[::40]
    how = {name: p[name] for name in ("methods", "levels", "samples", "temperature", "seed")}
    return ask(benchmark, cases, [open_model(name, device="cpu") for name in p["model"]], **how)


def beside(again: Run) -> pd.DataFrame:
    """Each confidence made again beside the committed one, where both runs gave the same answer."""
    then = committed()
    answers = again.answers.merge(
        then["answers"], on=KEYS, how="left", validate="one_to_one", suffixes=("", "_then")
    )
    same = answers.loc[answers["answer"].fillna("") == answers["answer_then"].fillna(""), KEYS]
    now = again.confidence.merge(same, on=KEYS, validate="many_to_one")
    return now.merge(
        then["confidence"],
        on=[*KEYS, "method"],
        how="left",
        validate="one_to_one",
        suffixes=("", "_then"),
    )


def agreement(rows: pd.DataFrame) -> np.ndarray:
    """Whether two confidences are the same number, or both missing, (n,)."""
    return np.isclose(rows["confidence"], rows["confidence_then"], **TOLERANCE, equal_nan=True)


def test_answers_come_out_again(again):
    then = again.answers.merge(
        committed()["answers"], on=KEYS, how="left", validate="one_to_one", suffixes=("", "_then")
    )
    for column in ("truth", "n_statements", "n_words"):
        assert (then[column] == then[f"{column}_then"]).all(), (
            f"{column} differs: the cases are not those of the reference"
        )
    same = then["answer"].fillna("") == then["answer_then"].fillna("")
    assert same.mean() >= EQUAL_ANSWERS, then.loc[
        ~same, [*KEYS, "answer", "answer_then"]
    ].to_string()
    assert (then.loc[same, "correct"] == then.loc[same, "correct_then"]).all()


@pytest.mark.parametrize("family", ["token", "baseline"])
def test_confidences_read_off_the_answer_come_out_again(family, again):
    rows = beside(again)
    rows = rows[rows["method"].map(lambda name: METHODS[name].family) == family]
    assert len(rows) and agreement(rows).all(), rows.loc[~agreement(rows)].head(20).to_string()


@pytest.mark.parametrize("family", ["consistency", "verbalized"])
def test_confidences_that_hang_on_samples_come_out_again_nearly_always(family, again):
    rows = beside(again)
    rows = rows[rows["method"].map(lambda name: METHODS[name].family) == family]
    shares = pd.Series(agreement(rows), index=rows["method"]).groupby(level=0).mean()
    assert len(shares) and (shares >= EQUAL_AGREEMENT).all(), shares.to_string()
