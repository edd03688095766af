"""The committed tables of the benchmark's reference run: made again in part, and the metrics
computed from them again.

A fortieth of the cases, at every level, is asked again of each model. Another processor rounds the
last bits of a logit otherwise, which can turn one sample of many; the tolerances say how much of
that is allowed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from asking import ask
from publish import REFERENCE
from same.record import nothing_asked
from same.tables import read_file

from trustlab.confidence import METHODS, select
from trustlab.datasets import load_sets
from trustlab.datasets.replies_file import replies_table
from trustlab.experiment import benchmark, score
from trustlab.folder.kept import unpack
from trustlab.folder.saved import table_in
from trustlab.measures import metrics_table
from trustlab.models import open_models
from trustlab.models.base import Request
from trustlab.models.cache import CachedModel
from trustlab.paths import DATA, FIGURES, NOTEBOOKS
from trustlab.records import Reply
from trustlab.run import Run
from trustlab.run_notebooks import check_parameters, notebook_path, read_parameters
from trustlab.settings import Setup

NAME = "01_benchmark"
FOLDER = FIGURES / "reference" / NAME
KEYS = ["case_id", "dataset", "level", "model"]
EQUAL_ANSWERS, EQUAL_AGREEMENT = 0.995, 0.98
TOLERANCE = {"atol": 1e-3, "rtol": 1e-4}
"""Of a confidence on another processor; the relative part is for perplexity, which can be large."""
ROUNDING = 1e-6
N_CASES = 12
"""Of which 500 replies are drawn."""

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
    return ask(benchmark, cases, open_models(p["model"], device="cpu"), **how)


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


def test_the_reference_covers_every_case_level_and_method():
    p, tables = parameters(), committed()
    models, cases = np.atleast_1d(p["model"]), load_sets(p["dataset"], n=p["n"], seed=p["seed"])
    assert set(tables["answers"]["model"]) == set(models)
    assert len(tables["answers"]) == len(cases) * len(p["levels"]) * len(models)
    assert (
        len(tables["confidence"])
        == len(tables["answers"]) * tables["confidence"]["method"].nunique()
    )
    assert (
        set(tables["confidence"]["method"]) == {m.name for m in select(p["methods"])} < set(METHODS)
    )


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


def test_the_committed_metrics_are_those_of_the_committed_tables():
    p, tables = parameters(), committed()
    run = SimpleNamespace(answers=tables["answers"], confidence=tables["confidence"])
    found = metrics_table(run, n_draws=p["draws"], seed=p["seed"])
    for column in ("method", "missing"):
        tables["metrics"][column] = tables["metrics"][column].astype(object).fillna("")
    # The committed values are rounded: at the edge of a band of docs/coverage.md a bracket flips.
    flipped = found["low"].isna() != tables["metrics"]["low"].isna()
    assert flipped.sum() <= 0.002 * len(found)
    ends = ["low", "high", "missing"]
    found.loc[flipped, ends] = tables["metrics"].loc[flipped, ends]
    pd.testing.assert_frame_equal(
        found, tables["metrics"], check_dtype=False, rtol=0, atol=ROUNDING
    )


@pytest.fixture(scope="module")
def kept(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("kept")
    unpack(DATA / "replies", folder)
    return folder


def test_scoring_the_kept_replies_gives_the_run_s_confidences(kept, tmp_path):
    p = parameters()
    cases = load_sets(p["dataset"], n=p["n"], seed=p["seed"])[::10]
    how = {name: p[name] for name in ("methods", "levels", "samples", "temperature", "seed")}
    setup = Setup(quiet=True, cache=kept / "replies.sqlite", **how)
    with nothing_asked():
        run = benchmark(cases, open_models(p["model"], device="cpu"), setup=setup)
        table = replies_table(run.answers, run.generations)
        table.to_parquet(tmp_path / "replies.parquet")
        scored = score(tmp_path / "replies.parquet", p["methods"], setup)
    pd.testing.assert_frame_equal(scored.answers, run.answers)
    mine, theirs = (one.confidence.set_index("method") for one in (scored, run))
    assert mine.index.equals(theirs.index)
    # The one reads a table of evidence, the other the case's own: neither is among replies.
    read = ~mine.index.isin(["medconf_weighted", "exact_posterior"])
    values = (one.loc[read, "confidence"].to_numpy() for one in (mine, theirs))
    np.testing.assert_allclose(*values, rtol=0, atol=1e-9)
    assert mine.loc[read, "confidence"].notna().mean() > 0.6  # one of the models gives words alone
    then = run.confidence[[*KEYS, "method"]].merge(committed()["confidence"], how="left")
    kept = then.loc[read, "confidence"].to_numpy()
    np.testing.assert_allclose(mine.loc[read, "confidence"], kept, **TOLERANCE)


def test_500_kept_replies_drawn_with_a_seed_are_said_again(kept):
    p, drawn = parameters(), random.Random(500)
    cases = drawn.sample(load_sets(p["dataset"], n=p["n"], seed=p["seed"]), N_CASES)
    opened = open_models(p["model"], device="cpu")
    models = [CachedModel(m, kept / "replies.sqlite", offline=True) for m in opened]
    heard: list[tuple[int, Request, Reply]] = []

    def listen(k: int, _: str, request: Request, replies: Sequence[Reply], *_n: object) -> None:
        each = (replace(request, n=1, first=request.first + i) for i in range(len(replies)))
        heard.extend((k, one, reply) for one, reply in zip(each, replies, strict=True))

    for k, model in enumerate(models):
        model.recorder = partial(listen, k)
    how = {name: p[name] for name in ("methods", "levels", "samples", "temperature", "seed")}
    with nothing_asked():
        ask(benchmark, cases, models, **how)
    assert {one.purpose for _, one, _ in heard} >= {"diagnosis", "samples", "evidence", "p_true"}
    heard = drawn.sample(heard, 500)
    said: dict[int, Reply] = {}
    for k, model in enumerate(opened):
        mine = [i for i, (of, *_) in enumerate(heard) if of == k]
        now = model.generate([heard[i][1] for i in mine])
        said |= {i: reply for i, (reply,) in zip(mine, now, strict=True)}
    same = [i for i, (*_, then) in enumerate(heard) if said[i].text == then.text]
    assert len(same) >= EQUAL_ANSWERS * len(heard), {
        heard[i][1].purpose for i in set(said) - set(same)
    }
    for i in same:
        then, now = heard[i][2].trace, said[i].trace
        assert (then is None) == (now is None)
        if then is not None and then.logprobs is not None:
            np.testing.assert_allclose(now.logprobs, then.logprobs, **TOLERANCE)
