"""Runs side by side: the numbers against ones worked out apart, what is shared, and refusals."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from resampled import one_row as line
from resampled import without_each
from same.tables import read_file
from saying import saying, says
from scipy.stats import norm
from sklearn.metrics import roc_auc_score
from test_cli import trustlab

import trustlab as tl
from trustlab.metrics.intervals import jackknife_error, opposed_p, with_extremes
from trustlab.paths import NOTICE, ROOT
from trustlab.reports.compare import MOST
from trustlab.runs.folder.saved import save_run, table_in

LEVELS = (20, 100)
N = 40
REFERENCE = ROOT / "figures" / "reference" / "01_benchmark"
KNOWS = {"asp": 1.0, "poc": 0.6, "random": 0.0}


def made(model: str, seed: int = 0, cases: Any = range(N), knows=KNOWS, **parameters) -> tl.Run:
    """A run of cases, each right with a chance of its own; ``knows``: how well methods tell."""
    rng = np.random.default_rng(seed)
    rows = [(f"{i:03d}", "made", level, model) for i in cases for level in LEVELS]
    answers = pd.DataFrame(rows, columns=["case_id", "dataset", "level", "model"])
    right = (rng.random(len(rows)) < 0.35 + 0.003 * answers["level"]).astype(float)
    answers = answers.assign(answer="Flu", truth="Flu", correct=right, n_words=9, missing="")
    keys = answers[["case_id", "dataset", "level", "model"]]
    parts = []
    for method, lift in knows.items():
        said = 1 / (1 + np.exp(-lift * (2 * right - 1) - rng.normal(size=len(rows))))
        parts.append(keys.assign(method=method, confidence=said, bound="", missing=""))
    confidence = pd.concat(parts, ignore_index=True)
    facts = {"models": {model: "r1"}, "methods": list(knows), "grader": "synonym"} | parameters
    return tl.Run(answers, confidence, pd.DataFrame({"n_made": [], "n_cached": []}), facts)


def by_hand(one: tl.Run, other: tl.Run, method: str) -> tuple[np.ndarray, int]:
    """Level-stratified AUROC of the other less that of the one, in all and without each case, by
    scikit-learn; and how many cases have an answer of the rarer outcome."""
    sides = []
    for run in (one, other):
        told = run.confidence[run.confidence["method"].eq(method)]
        told = told.merge(run.answers[["case_id", "level", "correct"]], on=["case_id", "level"])
        sides.append(told.sort_values(["case_id", "level"]).set_index(["case_id", "level"]))
    index = sides[0].index.intersection(sides[1].index).sort_values()
    ids, level = (index.get_level_values(name).to_numpy() for name in ("case_id", "level"))

    def stratified(correct: np.ndarray, confidence: np.ndarray, level: np.ndarray) -> float:
        areas, pairs = [], []
        for q in LEVELS:
            right = correct[level == q]
            areas.append(roc_auc_score(right, confidence[level == q]))
            pairs.append(right.sum() * (1 - right).sum())
        return float(np.average(areas, weights=pairs))

    values, rarer, answers = [], [], []
    for side in (each.loc[index] for each in sides):
        columns = side["correct"].to_numpy(), side["confidence"].to_numpy(), level
        values.append(np.append(stratified(*columns), without_each(stratified, ids, *columns)))
        rarer += [len(np.unique(ids[side["correct"] == hit])) for hit in (0, 1)]
        answers += [(side["correct"] == hit).sum() for hit in (0, 1)]
    filled = min(answers) * len(np.unique(ids)) / len(ids)
    return values[1] - values[0], float(np.sqrt(filled * min(rarer)))


@pytest.fixture(scope="module")
def two() -> tuple[tl.Run, tl.Run]:
    better = {"asp": 1.0, "poc": 3.0, "random": 0.0}
    return made("a"), made("b", seed=1, cases=range(5, N + 5), knows=better)


@pytest.fixture(scope="module")
def compared(two) -> Any:
    return tl.compare_runs(*two)


def test_differences_intervals_holm_and_sample_sizes_are_those_worked_out_apart(two, compared):
    ids = sorted(set(two[0].answers["case_id"]) & set(two[1].answers["case_id"]))
    one, other = (
        tl.Run(*(t[t["case_id"].isin(ids)] for t in (run.answers, run.confidence)), run.calls, {})
        for run in two
    )
    p = {}
    for method in KNOWS:
        (value, *leaves), rarer = by_hand(one, other, method)
        found = line(compared.differences, metric="auroc", method=method)
        assert (found["model"], found["against"], found["level"]) == ("b", "a", "within")
        assert found["difference"] == pytest.approx(value, abs=1e-12)
        error = jackknife_error(leaves)
        ends = with_extremes(value, error, rarer, (-1, 1))
        assert (found["low"], found["high"]) == pytest.approx(ends)
        p[method] = opposed_p(value, error, rarer)
        assert found["p"] == pytest.approx(p[method])
        z = norm.ppf(0.975) + norm.ppf(0.8)
        needed = math.ceil((N - 5) * (z * found["standard_error"] / abs(value)) ** 2)
        assert found["cases_needed"] == max(needed, 2) and found["n_cases"] == len(ids) == N - 5
    step, highest = {}, 0.0
    for k, method in enumerate(sorted(p, key=lambda name: p[name])):
        highest = max(highest, p[method] * (len(p) - k))
        step[method] = min(highest, 1.0)
    told = compared.differences[compared.differences["metric"].eq("auroc")]
    assert dict(zip(told["method"], told["p_holm"], strict=True)) == pytest.approx(step)
    right = {"a": one.answers["correct"].mean(), "b": other.answers["correct"].mean()}
    for name, share in right.items():
        found = line(compared.metrics, metric="accuracy", model=name)
        assert found["value"] == pytest.approx(share) and found["n"] == 2 * (N - 5)
    found = line(compared.differences, metric="accuracy")
    assert found["difference"] == pytest.approx(right["b"] - right["a"])
    assert compared.left_out.set_index("model")["n_left_out"].to_dict() == {"a": 10, "b": 10}


def test_what_a_side_lacks_is_missing_with_its_reason():
    one, other = made("a"), made("b", seed=1, knows={"poc": 1.0})
    gone = one.confidence["method"].eq("poc") & one.confidence["case_id"].lt("010")
    why = one.confidence["missing"].mask(gone, "no votes")
    lost = one.confidence.assign(confidence=one.confidence["confidence"].mask(gone), missing=why)
    one = tl.Run(one.answers, lost, one.calls, one.parameters)
    found: Any = tl.compare_runs(one, other)
    assert set(found.differences["method"]) == {"", "poc"}
    assert set(found.metrics["method"]) == {"", *KNOWS}
    alone = tl.compare_runs(made("a", knows={"asp": 1.0}), other)
    assert set(alone.differences["method"]) == {""} and len(alone.notes) == 2
    poc = line(found.differences, method="poc")
    assert (poc["n"], poc["n_cases"], poc["n_missing"]) == (2 * (N - 10), N - 10, 20)
    assert [says(note, "b", "asp", "random") for note in found.notes] == [True]


def test_of_three_sides_only_what_all_share_is_compared_and_holm_is_over_all():
    runs = made("a"), made("b", 1, range(10, N)), made("c", 2, range(N - 5))
    found: Any = tl.compare_runs(*runs)
    auroc = found.differences[found.differences["metric"].eq("auroc")]
    assert (auroc["n_cases"] == 25).all() and len(auroc) == 6
    assert auroc["p_holm"].min() >= min(1, 6 * auroc["p"].min())


def test_sides_of_one_model_are_named_by_their_folders(tmp_path):
    here, there = tmp_path / "here" / "run", tmp_path / "there" / "run"
    save_run(made("a"), here)
    save_run(made("a", seed=1), there)
    assert tl.compare_runs(here, there).sides == (f"a, {here}", f"a, {there}")
    with pytest.raises(ValueError, match=f"a, {here} is given twice"):
        tl.compare_runs(here, here)


def test_what_cannot_be_compared_is_refused_by_name(tmp_path):
    wrong = made("b")
    wrong = tl.Run(wrong.answers.assign(truth="Measles"), wrong.confidence, wrong.calls, {})
    here, there, far, empty = (tmp_path / name for name in ("here", "there", "far", "empty"))
    save_run(made("a"), here)
    save_run(wrong, there)
    save_run(made("b", cases=range(100, 120)), far)
    empty.mkdir()
    refused: dict[Any, Any] = {
        (2, MOST, here, 1): [here],
        ("'000'", "made", "'Flu'", here, "'Measles'", there): [here, there],
        ("shared", here, far): [here, far],
        (empty, "run.json"): [here, empty],
        ("no folder", tmp_path / "none"): [here, tmp_path / "none"],
    }
    for words, runs in refused.items():
        with pytest.raises((ValueError, FileNotFoundError), match=saying(words)):
            tl.compare_runs(*runs)


def test_files_and_figure_of_sides_with_hostile_names(tmp_path):
    runs = made("<b>x", note="<script>"), made("y & co $a$", seed=1, note="$1")
    found: Any = tl.compare_runs(*runs)
    assert found.save(tmp_path) == tmp_path
    names = {str(f.relative_to(tmp_path)) for f in tmp_path.rglob("*") if f.is_file()}
    drawn = {f"figures/compare_auroc.{kind}" for kind in ("png", "svg", "csv")}
    assert names == drawn | {"compare.json", "sides.csv", "differences.csv", "left_out.csv"}
    table: Any = pd.read_csv(tmp_path / "figures" / "compare_auroc.csv")
    assert set(table["model"]) == {"<b>x", "y & co $a$"} and table["difference"].notna().sum() == 3
    svg = (tmp_path / "figures" / "compare_auroc.svg").read_text(encoding="utf-8")
    assert "y &amp; co $a$" in svg  # in the legend: no formula
    facts = json.loads((tmp_path / "compare.json").read_text())
    assert facts["notice"] == NOTICE and facts["sides"] == list(found.sides)


def test_the_command_compares_the_models_of_a_run_and_refuses_in_one_line(tmp_path):
    run, out = tmp_path / "run", tmp_path / "out"
    run.mkdir()
    for name in ("answers", "confidence"):
        table: Any = read_file(table_in(REFERENCE, name))
        table = table[table["dataset"].eq("starter")]
        if name == "confidence":
            table = table[table["method"].eq("medconf")]
        table.to_csv(run / f"{name}.csv", index=False)
    (run / "run.json").write_text(json.dumps({"benchmark": {"models": {"embedded": "1"}}}))
    told = trustlab("compare", run, "--out", out)
    assert "p (Holm)" in told and NOTICE in told and "compare_auroc.png" in told
    none = tmp_path / "none"
    refused = trustlab("compare", run, none, status=2)
    assert says(refused, "trustlab:", "no folder", none)
