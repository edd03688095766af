"""Calibrators: what they say of a run, what they refuse, and their file."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from each import each
from scipy.stats import beta
from typer.testing import CliRunner

import trustlab as tl
from studies import calibration as study
from trustlab.cli.commands import app
from trustlab.datasets import DataError
from trustlab.metrics.sets import hashed_half
from trustlab.paths import ROOT

FACTS: dict[str, Any] = {
    "models": {"m": "revision 1"},
    "methods": ["p_true"],
    "prompts": {"m": {"sha256": "abc"}},
    "grader": "synonym",
    "n_samples": 15,
}


def made(n: int = 60, seed: int = 0, level: int = 100, sharp: float = 1.0) -> tl.Run:
    """Two answers a case, at ``level`` and 20; a wrong answer is unsure."""
    rng = np.random.default_rng(seed)
    keys = {
        "case_id": np.repeat([f"{seed} {i}" for i in range(n)], 2),
        "dataset": "d",
        "level": np.tile([20, level], n),
        "model": "m",
    }
    sure = rng.integers(0, 16, size=2 * n) / 15
    right = (rng.random(2 * n) < sure**sharp).astype(float)
    answers = pd.DataFrame(keys | {"answer": "a", "truth": "a", "correct": right, "missing": ""})
    own = {"method": "p_true", "confidence": sure, "bound": "", "missing": ""}
    return tl.Run(answers, pd.DataFrame(keys | own), pd.DataFrame(), dict(FACTS))


def with_facts(run: tl.Run, **facts: Any) -> tl.Run:
    return replace(run, parameters=run.parameters | facts)


@pytest.fixture(scope="module")
def cal() -> tl.Calibrator:
    return tl.calibrate(made(200), "p_true", risk=0.2)


def test_what_is_fitted_is_said(cal: tl.Calibrator, capsys: pytest.CaptureFixture[str]) -> None:
    run = made(200)
    run.confidence.loc[0, ["confidence", "missing"]] = [np.nan, "unreadable"]
    fitted = tl.calibrate(run, "p_true", risk=0.2)
    assert "20 cases" in capsys.readouterr().out
    assert fitted.n_right + fitted.n_wrong == 399 and fitted.n_missing == 1
    assert cal.kind == "isotonic" and cal.n_cases == 200 and cal.levels == [20, 100]
    assert cal.threshold is not None and cal.threshold.risk < 0.2 <= cal.threshold.share
    assert cal.worth["Brier score, calibrated"] < 0.25 and "ECE, as given" in cal.worth
    assert tl.calibrate(made(60), "p_true").kind == "logistic"
    assert tl.calibrate(made(60), "p_true", risk=0.01).threshold is None


def test_a_file_brings_back_the_calibrator(cal: tl.Calibrator, tmp_path: Path) -> None:
    for one in (cal, tl.calibrate(made(60), "p_true", risk=0.01)):
        one.save(tmp_path / "c.json")
        assert tl.load_calibrator(tmp_path / "c.json") == one
        assert (tmp_path / "c.json").stat().st_size < 5000


def test_answers_of_other_cases(cal: tl.Calibrator) -> None:
    run = made(100, seed=1)
    run.confidence.loc[0, "confidence"] = np.nan
    run.answers.loc[1, ["answer", "correct"]] = [None, 0]
    applied = cal.apply(run)
    table, report = applied.table, applied.report.iloc[0]
    assert cal.threshold is not None and not applied.differences
    assert table["given"].tolist()[:2] == ["missing", "missing"]
    lowest = cal.threshold.confidence
    assert table["given"].eq("yes").tolist() == table["confidence"].ge(lowest).tolist()
    by_confidence = table.dropna().sort_values("confidence")["probability"]
    assert by_confidence.is_monotonic_increasing and by_confidence.between(0, 1).all()
    given = table[table["given"].eq("yes")]
    assert report["coverage"] == len(given) / 200 and report["outside"] == 0
    assert report["value"] == pytest.approx(1 - given["correct"].mean())
    assert report["low"] < report["value"] < report["high"]
    assert report["reference"] == 0.2 and report["promise"] == "kept"


@each(
    ("run", "promise"),
    [
        (made(100, seed=2, sharp=8.0), "broken"),  # the confidence says too much there
        (made(6, seed=1, sharp=8.0), "open"),  # too few cases for an interval
    ],
)
def test_a_promise_elsewhere(cal: tl.Calibrator, run: tl.Run, promise: str) -> None:
    assert cal.apply(run).report["promise"].tolist() == [promise]


def test_without_a_truth_the_share_outside_is_shown() -> None:
    run = made(100, seed=3)
    cal = tl.calibrate(replace(run, confidence=_times(run.confidence, 0.5)), "p_true")
    ungraded = run.answers.assign(correct=np.nan, missing="no truth")
    report = cal.apply(replace(run, answers=ungraded)).report.iloc[0]
    assert np.isnan(report["value"]) and report["promise"] == "open"
    assert report["outside"] == pytest.approx(run.confidence["confidence"].gt(0.5).mean())


def _times(confidence: pd.DataFrame, share: float) -> pd.DataFrame:
    return confidence.assign(confidence=share * confidence["confidence"])


def renamed(run: tl.Run) -> tl.Run:
    tables = {name: getattr(run, name).assign(model="n") for name in ("answers", "confidence")}
    return with_facts(replace(run, **tables), models={"n": "revision 1"}, prompts={"n": {}})


def of_method(run: tl.Run) -> tl.Run:
    return replace(run, confidence=run.confidence.assign(method="ce"))


OTHERS: dict[str, tuple[Callable[[tl.Run], tl.Run], str]] = {
    "model": (renamed, "model is 'n', fitted was 'm'"),
    "revision": (lambda run: with_facts(run, models={"m": "2"}), "revision is '2'"),
    "no revision": (lambda run: with_facts(run, models={"m": ""}), "revision is None"),
    "parameter": (lambda run: with_facts(run, n_samples=5), "n_samples is 5, fitted was 15"),
    "prompts": (lambda run: with_facts(run, prompts={"m": {"sha256": "d"}}), "prompts is"),
    "grader": (lambda run: with_facts(run, grader="exact"), "grader is 'exact'"),
    "options": (lambda run: with_facts(run, model_options={"m": {"t": 1}}), "model_options is"),
    "level": (lambda run: made(100, level=60), "levels {60} are none of those fitted"),
}


@each(("change", "words"), OTHERS.values(), OTHERS)
def test_what_was_not_fitted_is_refused_or_marked(
    cal: tl.Calibrator, change: Callable[[tl.Run], tl.Run], words: str
) -> None:
    run = change(made(100))
    with pytest.raises(ValueError, match="the calibrator is refused: ") as refused:
        cal.apply(run)
    assert words in str(refused.value) and "\n" not in str(refused.value)
    applied = cal.apply(run, anyway=True)
    assert any(words in difference for difference in applied.differences)
    assert len(applied.table) == 200


UNKNOWN = {"m": {"answers": 120, "unknown": 100}}
REFUSED: dict[str, tuple[tl.Run, dict[str, Any], str]] = {
    "method": (of_method(made()), {}, "column 'method' has no"),
    "few wrong": (made(30, sharp=0.001), {}, "a calibrator needs 10 of each"),
    "nothing is claimed": (with_facts(made(), unknown_answers=UNKNOWN), {}, "nothing is claimed"),
    "model": (made(), {"model": "n"}, "column 'model' has no"),
    "data set": (made(), {"dataset": "e"}, "column 'dataset' has no"),
    "risk": (made(), {"risk": 0.0}, "risk"),
    "sure": (made(), {"sure": 1.0}, "sure"),
}


@each(("run", "choices", "words"), REFUSED.values(), REFUSED)
def test_what_cannot_be_fitted_is_refused(run: tl.Run, choices: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        tl.calibrate(run, "p_true", **choices)


def _calibrated(run: tl.Run, **choices: Any) -> tl.Calibrator:
    return tl.calibrate(run, "p_true", **choices)


@each(("column", "words"), [("model", "name one model"), ("dataset", "name one data set")])
def test_of_several_one_must_be_named(column: str, words: str) -> None:
    run = made()
    half = np.arange(len(run.answers)) < 60
    tables = {}
    for name in ("answers", "confidence"):
        table = getattr(run, name)
        tables[name] = table.assign(**{column: np.where(half, "x", "y")})
    run = with_facts(replace(run, **tables), models={"m": "", "x": "", "y": ""})
    with pytest.raises(ValueError, match=words):
        tl.calibrate(run, "p_true")
    assert _calibrated(run, **{column: "x"}).n_cases == 30


def test_a_run_that_claims_nothing_is_given_nothing(cal: tl.Calibrator) -> None:
    with pytest.raises(ValueError, match="nothing is claimed of p_true"):
        cal.apply(with_facts(made(), unknown_answers=UNKNOWN), anyway=True)


def test_the_promise_is_kept_in_held_cases_of_ddxplus() -> None:
    """The published answers: fitted on half of the cases by a hash, tried on the others."""
    folder = ROOT / "figures" / "reference" / "01_benchmark"
    tables = [pd.read_parquet(folder / f"{name}.parquet") for name in ("answers", "confidence")]
    answers, confidence = (tl.pick(t, model="embedded", dataset="ddxplus") for t in tables)
    run = tl.Run(answers, confidence, pd.DataFrame(), {"models": {"embedded": ""}})
    names: Any = answers["case_id"].unique()
    half = hashed_half(names)
    fitted = study.of_cases(run, names[half])
    cal = tl.calibrate(fitted, "p_true", risk=0.2)
    assert cal.threshold is not None and cal.threshold.share >= 0.2
    table: Any = cal.apply(study.of_cases(run, names[~half])).table
    given = table[table["given"].eq("yes")]
    n, wrong = len(given), int(given["correct"].eq(0).sum())
    assert n >= 0.2 * len(table) and not set(given["case_id"]) & set(names[half])
    assert beta.ppf(0.05, wrong, n - wrong + 1) <= 0.2


DAMAGES: dict[str, tuple[Callable[[str], str], str]] = {
    "cut": (lambda text: text[:400], "one whole JSON value"),
    "changed": (lambda text: text.replace('"risk": 0.2', '"risk": 0.1', 1), "damaged"),
    "no fingerprint": (lambda text: text.replace("sha256", "sha"), "damaged"),
    "newer": (lambda text: text.replace('"version": 1', '"version": 2'), "a newer trustlab"),
    "no calibrator's": (lambda text: '{"format": "x"}', "a trustlab calibrator's"),
    "a list": (lambda text: "[]", "a trustlab calibrator's"),
}


@each(("damage", "words"), DAMAGES.values(), DAMAGES)
def test_a_file_that_is_not_whole_is_refused(
    cal: tl.Calibrator, tmp_path: Path, damage: Callable[[str], str], words: str
) -> None:
    file = tmp_path / "c.json"
    cal.save(file)
    file.write_text(damage(file.read_text()))
    with pytest.raises(DataError, match=words):
        tl.load_calibrator(file)


def replies(n: int, seed: int, **more: Any) -> pd.DataFrame:
    """A table of replies with a score of its own."""
    run = made(n, seed)
    table = run.answers[["case_id", "level", "answer", "correct"]]
    return table.assign(**{"confidence:own": run.confidence["confidence"]}, **more)


def call(*words: str | Path) -> str:
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.output


def test_the_command_line(tmp_path: Path) -> None:
    fitted, new, file = (tmp_path / name for name in ("a.csv", "b.csv", "c.json"))
    replies(200, 0).to_csv(fitted, index=False)
    replies(100, 1).to_csv(new, index=False)
    call("score", fitted, "--out", tmp_path / "a")
    out = call("calibrate", tmp_path / "a", "--method", "confidence:own", "--out", file)
    assert "cases behind the answers given" in out and '"threshold"' in out
    assert json.loads(file.read_text())["method"] == "confidence:own"
    out = call("score", new, "--calibrator", file, "--out", tmp_path / "b")
    assert "kept" in out
    page = (tmp_path / "b" / "calibrated.html").read_text()
    assert "Its promise does not hold here" not in page and "not compared: revision" in page
    assert len(pd.read_csv(tmp_path / "b" / "calibrated.csv")) == 200
    # a run's own folder, and answers without a verdict
    call("score", tmp_path / "b", "--calibrator", file, "--out", tmp_path / "again")
    untold = replies(100, 1, missing="no truth").drop(columns="correct")
    untold.to_csv(new, index=False)
    assert "open" in call("score", new, "--calibrator", file, "--out", tmp_path / "open")
    # another grader: refused, or marked
    words = ["score", new, "--calibrator", file, "-p", "grader=exact", "--out", tmp_path / "x"]
    refused = CliRunner().invoke(app, [str(word) for word in words])
    assert refused.exit_code == 2 and "the calibrator is refused: grader" in refused.output
    assert "NOT FITTED FOR THIS: grader" in call(*words, "--anyway")
    assert "Its promise does not hold here" in (tmp_path / "x" / "calibrated.html").read_text()
