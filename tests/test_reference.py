"""The committed tables of the benchmark's reference run, made again in part.

A fortieth of the cases, at every level, is asked again of each model. Another processor rounds the
last bits of a logit otherwise, which can turn one sample of many; the tolerances say how much of
that is allowed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from asking import ask
from same.tables import read_file

from trustlab.cli.run_notebooks import check_parameters, notebook_path, read_parameters
from trustlab.confidence import METHODS
from trustlab.datasets import load_sets
from trustlab.models.by_name import open_model
from trustlab.paths import FIGURES, NOTEBOOKS
from trustlab.runs.experiment import benchmark
from trustlab.runs.folder.saved import table_in
from trustlab.runs.run import Run

NAME = "01_benchmark"
FOLDER = FIGURES / "reference" / NAME
KEYS = ["case_id", "dataset", "level", "model"]
EQUAL_ANSWERS = 0.995
TOLERANCE = {"atol": 1e-3, "rtol": 1e-4}
"""Of a confidence on another processor; the relative part is for perplexity, which can be large."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not FOLDER.is_dir(),
        reason=f"figures/reference/{NAME} is absent: python -m tests.publish 01_benchmark makes it",
    ),
]


@pytest.fixture(scope="module")
def again() -> Run:
    """With the parameters of the reference run: the file's over the notebook's own."""
    given = read_parameters(NOTEBOOKS / "parameters" / "published.yml", notebook=NAME)
    p: Any = check_parameters(notebook_path(NAME), given)
    cases = load_sets(p.dataset, n=p.n, seed=p.seed)[::40]
    names = ("methods", "levels", "samples", "temperature", "seed")
    how = {name: getattr(p, name) for name in names}
    models = [open_model(name, device="cpu") for name in p.model]
    return ask(benchmark, cases, models, **how)


def beside(now: pd.DataFrame, name: str, keys: list[str]) -> pd.DataFrame:
    """Each row made again beside the committed one, whose columns end with ``_then``."""
    then = read_file(table_in(FOLDER, name))
    how: Any = {"how": "left", "validate": "one_to_one", "suffixes": ("", "_then")}
    return now.merge(then, on=keys, **how)


@pytest.fixture(scope="module")
def answers(again: Run) -> pd.DataFrame:
    found = beside(again.answers, "answers", KEYS)
    return found.assign(same=found["answer"].fillna("") == found["answer_then"].fillna(""))


def test_answers_come_out_again(answers):
    for column in ("truth", "n_statements", "n_words"):
        same = answers[column] == answers[f"{column}_then"]
        assert same.all(), f"{column} differs: the cases are not those of the reference"
    same = answers[answers["same"]]
    assert len(same) / len(answers) >= EQUAL_ANSWERS, answers[~answers["same"]].to_string()
    assert (same["correct"] == same["correct_then"]).all()


@pytest.mark.parametrize(
    ("family", "least"),
    [("token", 1), ("baseline", 1), ("consistency", 0.98), ("verbalized", 0.98)],
)
def test_confidences_come_out_again_and_nearly_always_where_they_hang_on_samples(
    family, least, again, answers
):
    """Where both runs gave the same answer."""
    rows = again.confidence.merge(answers.loc[answers["same"], KEYS], on=KEYS)
    rows = beside(rows, "confidence", [*KEYS, "method"])
    rows = rows[rows["method"].map(lambda name: METHODS[name].family) == family]
    near = np.isclose(rows["confidence"], rows["confidence_then"], **TOLERANCE, equal_nan=True)
    shares = pd.Series(near, index=rows["method"]).groupby(level=0).mean()
    assert len(shares) and (shares >= least).all(), shares.to_string()
