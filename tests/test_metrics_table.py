"""The metrics table on small runs whose answer is known, and against intervals made by hand."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from each import each
from resampled import jackknife, one_row
from saying import says

import trustlab as tl
from trustlab.metrics import auprc, auroc, brier, ece, pearson, spearman
from trustlab.metrics.bands import rising_band
from trustlab.metrics.correlation import pearson_permutation_p, spearman_permutation_p
from trustlab.metrics.coverage import NOT_HELD
from trustlab.runs.measures import metrics_table

pytestmark = pytest.mark.usefixtures("every_interval")
LEVELS = (1, 20, 40, 60, 80, 100)
KEYS = ["case_id", "dataset", "level", "model"]


def a_run(n_cases: int = 40, methods=("good",)) -> SimpleNamespace:
    """A run whose accuracy rises with the level; confidences lean towards the truth."""
    rng = np.random.default_rng(0)
    answers, confidence = [], []
    for c in range(n_cases):
        for level in LEVELS:
            key = {"case_id": f"case-{c:03d}", "dataset": "toy", "level": level, "model": "m"}
            correct = int(rng.random() < 0.2 + 0.006 * level)
            said = {"answer": "flu", "truth": "flu" if correct else "cold", "correct": correct}
            answers.append({**key, **said, "n_statements": 12, "n_words": 50})
            for method in methods:
                value = 0.6 * rng.random() + 0.003 * level + 0.1 * correct
                confidence.append({**key, "method": method, "confidence": value})
    told = pd.DataFrame(confidence).assign(bound="", missing="")
    return SimpleNamespace(answers=pd.DataFrame(answers), confidence=told)


def entry(table: pd.DataFrame, metric: str, level: str, method: str = "good") -> dict[Any, Any]:
    return dict(one_row(table, metric=metric, level=level, method=method))


def table_of(run, **options) -> pd.DataFrame:
    return metrics_table(run, **{"scales": {"good": "probability"}, **options})


def judged(run: SimpleNamespace) -> pd.DataFrame:
    return run.answers.merge(run.confidence.dropna(subset="confidence"), on=KEYS)


def test_table_has_every_metric_once():
    run = a_run(12, methods=("plain", "good"))
    table = table_of(run)
    levels = [str(level) for level in LEVELS]
    expected = [("", "accuracy", level) for level in [*levels, "pooled"]]
    for method in ("good", "plain"):
        expected += [(method, "mean_confidence", level) for level in levels]
        every = [*levels, "pooled", "within"]
        expected += [(method, m, level) for m in ("auroc", "auprc") for level in every]
        expected += [(method, m, "across") for m in ("pearson", "spearman")]
    expected += [("good", m, "pooled") for m in ("brier", "ece")]
    found = zip(table["method"], table["metric"], table["level"], strict=True)
    assert sorted(found) == sorted(expected)
    assert list(dict.fromkeys(table["method"])) == ["", "plain", "good"]  # as the run has them


def statistics(rows: pd.DataFrame) -> dict[tuple[str, str], float]:
    """(metric, level) -> its value, from the functions alone."""
    right, sure = rows["correct"], rows["confidence"]
    means = rows.groupby("level")[["correct", "confidence"]].mean()
    inner = {q: auprc(part["correct"], part["confidence"]) for q, part in rows.groupby("level")}
    n_right = rows.groupby("level")["correct"].sum()
    pairs = n_right * (rows.groupby("level").size() - n_right)
    return {
        ("auroc", "pooled"): auroc(right, sure),
        ("auprc", "within"): float(np.average(list(inner.values()), weights=pairs)),
        ("auprc", "20"): inner[20],
        ("auprc", "100"): inner[100],
        ("mean_confidence", "40"): means.loc[40, "confidence"],
        ("pearson", "across"): pearson(means["correct"], means["confidence"]),
        ("spearman", "across"): spearman(means["correct"], means["confidence"]),
        ("brier", "pooled"): brier(right, sure),
        ("ece", "pooled"): ece(right, sure),
    }


def test_values_are_those_of_the_functions_and_intervals_by_hand():
    run = a_run(n_cases=12)
    table, rows = table_of(run, min_per_class=1), judged(run)
    accuracy = entry(table, "accuracy", "pooled", "")
    assert (accuracy["value"], accuracy["n"]) == (run.answers["correct"].mean(), 72)
    for (metric, level), value in statistics(rows).items():
        assert entry(table, metric, level)["value"] == pytest.approx(value), metric
    score = entry(table_of(run, scales={}), "mean_confidence", "40")
    assert np.isnan(score["low"]) and score["missing"] == NOT_HELD  # it may be any number
    leaves = [statistics(rows[rows["case_id"] != case]) for case in rows["case_id"].unique()]
    rarer = min(rows["correct"].sum(), 72 - rows["correct"].sum()) / 6  # of six answers a case
    three = (("auroc", "pooled", rarer), ("brier", "pooled", 12), ("mean_confidence", "40", 12))
    for metric, level, r in three:
        found, values = entry(table, metric, level), [leaf[metric, level] for leaf in leaves]
        ends = jackknife(found["value"], values, (0, 1), r)
        assert (found["low"], found["high"]) == pytest.approx(ends), metric
    for metric, level in (("pearson", "across"), ("spearman", "across"), ("auprc", "within")):
        assert entry(table, metric, level)["missing"] == NOT_HELD
    assert np.isnan(entry(table, "ece", "pooled")["low"])


def test_discrimination_stands_beside_chance():
    run = a_run()
    table, by_level = table_of(run), run.answers.groupby("level")["correct"].mean()
    assert {entry(table, "auroc", q)["chance"] for q in ("pooled", "within", "20")} == {0.5}
    assert entry(table, "auprc", "pooled")["chance"] == pytest.approx(run.answers["correct"].mean())
    assert entry(table, "auprc", "20")["chance"] == pytest.approx(by_level[20])


def test_a_correlation_stands_beside_rising_series_and_its_permutation_p():
    run = a_run()
    run.confidence.loc[run.confidence["level"] == 60, "confidence"] = np.nan
    table = table_of(run)
    means = judged(run).groupby("level")[["correct", "confidence"]].mean()
    for metric, p in (("pearson", pearson_permutation_p), ("spearman", spearman_permutation_p)):
        row = entry(table, metric, "across")
        assert row["p"] == pytest.approx(p(means["correct"], means["confidence"]))
        band = rising_band(means["correct"], metric)  # of the five levels that have a value
        assert (row["chance_low"], row["chance"], row["chance_high"]) == band


def counted(row: dict[Any, Any]) -> tuple[int, int, str]:
    return row["n"], row["n_missing"], row["missing"]


def test_missing_rows_and_bounds_are_left_out_or_counted():
    run = a_run()
    gone = run.confidence["case_id"].le("case-001") & run.confidence["level"].le(20)
    run.confidence.loc[gone, ["confidence", "missing"]] = [np.nan, "no brackets"]
    run.confidence.loc[[50, 51], "bound"] = "lower"
    # a row that is not there is missing too
    run.confidence = run.confidence.drop(run.confidence.index[-1])
    table, kept = table_of(run), judged(run)
    pooled = entry(table, "auroc", "pooled")
    *counts, why = counted(pooled)
    assert counts == [235, 5] and says(why, "2 of 235", "bounds")
    assert pooled["value"] == pytest.approx(auroc(kept["correct"], kept["confidence"]))
    full = entry(table_of(a_run()), "accuracy", "pooled", "")
    pd.testing.assert_series_equal(*map(pd.Series, (full, entry(table, "accuracy", "pooled", ""))))
    run.confidence[["confidence", "missing"]] = [np.nan, "no token probabilities"]
    mine = table_of(run).query("method == 'good'")
    assert np.isnan(mine[["value", "low", "high"]].to_numpy()).all() and (mine["n"] == 0).all()
    assert {says(why, "no confidence", "no token probabilities") for why in mine["missing"]} == {
        True
    }


def with_failed(run: SimpleNamespace, gone: Any) -> SimpleNamespace:
    """With some calls for an answer failed; a method that needs none keeps its confidence."""
    lost, answers = gone.to_numpy(), run.answers
    right = answers["correct"].astype(float).mask(lost)
    answers = answers.assign(correct=right, answer=answers["answer"].mask(lost))
    return SimpleNamespace(answers=answers, confidence=run.confidence)


def test_a_failed_answer_changes_nothing_but_what_is_counted_as_missing():
    run = a_run(n_cases=30)
    gone = run.answers["case_id"].between("case-003", "case-005") & run.answers["level"].le(20)
    kept = ~gone.to_numpy()
    never = SimpleNamespace(answers=run.answers[kept], confidence=run.confidence[kept])
    found, wanted = table_of(with_failed(run, gone)), table_of(never)
    told = ["n_missing", "missing"]
    pd.testing.assert_frame_equal(found.drop(columns=told), wanted.drop(columns=told))
    for metric, level, method, expected in [
        ("accuracy", "20", "", (27, 3, "3 answers missing")),
        ("accuracy", "40", "", (30, 0, "")),
        ("brier", "pooled", "good", (174, 6, "6 answers missing")),
    ]:
        assert counted(entry(found, metric, level, method)) == expected, (metric, level)


@each(
    ("which", "change", "message"),
    [
        ("answers", lambda t: t.drop(columns="correct"), "correct"),
        ("answers", lambda t: pd.concat([t, t.tail(1)]), "once"),
        ("answers", lambda t: t.iloc[1:], "answers"),
        ("confidence", lambda t: t.assign(confidence=np.inf), "finite"),
        ("confidence", lambda t: t.assign(confidence=2.0), "'good'"),
    ],
)
def test_bad_tables_are_refused(which, change, message):
    run = a_run(n_cases=3)
    setattr(run, which, change(getattr(run, which)))
    with pytest.raises(ValueError, match=message):
        table_of(run)


def test_methods_stand_on_the_answers_that_they_share_and_others_have_a_mark():
    run = a_run(methods=("a", "b", "few", "hard"))
    rng = np.random.default_rng(1)
    table = run.confidence.merge(run.answers[[*KEYS, "correct"]], on=KEYS)
    lost = (
        (table["method"].eq("b") & (rng.random(len(table)) < 0.05))
        | (table["method"].eq("few") & (rng.random(len(table)) < 0.4))
        | (table["method"].eq("hard") & table["correct"].eq(0) & (rng.random(len(table)) < 0.3))
    )
    run.confidence = table.assign(confidence=table["confidence"].mask(lost)).drop(columns="correct")
    found = table_of(run, scales={}).query("method != ''")
    own = found.groupby("method")["own_rows"].unique().map(list).to_dict()
    assert own == {"a": [False], "b": [False], "few": [True], "hard": [True]}
    beside = found[~found["own_rows"].astype(bool)]
    assert (beside.groupby(["metric", "level"])["n"].nunique() == 1).all()

    has = run.confidence.set_index(["method", *KEYS])["confidence"].unstack("method")
    correct = run.answers.set_index(KEYS)["correct"].reindex(has.index)
    shared = has[["a", "b"]].notna().all(axis=1)
    for method, rows in (("a", shared), ("b", shared), ("hard", has["hard"].notna())):
        line = entry(found, "auroc", "pooled", method)
        value = auroc(correct[rows], has.loc[rows, method])
        assert (line["n"], line["value"]) == (rows.sum(), pytest.approx(value)), method
        least = auroc(correct, has[method].fillna(-1))
        assert line["least_sure"] == pytest.approx(least), method


def test_a_method_without_any_value_takes_no_answer_from_the_others():
    run = a_run(methods=("a", "none"))
    nothing = run.confidence["method"].eq("none")
    run.confidence = run.confidence.assign(
        confidence=run.confidence["confidence"].mask(nothing),
        missing=np.where(nothing, "no reply", ""),
    )
    found = table_of(run, scales={})
    assert entry(found, "auroc", "pooled", "a")["n"] == len(run.answers)
    none = entry(found, "auroc", "pooled", "none")
    assert (none["n"], none["own_rows"], none["missing"]) == (0, False, "no confidence: no reply")
    assert np.isnan(none["value"]) and np.isnan(none["least_sure"])


def test_rows_are_picked_by_value_and_what_is_not_there_is_named() -> None:
    metrics = ["auroc", "auroc", "ece"]
    table = pd.DataFrame({"metric": metrics, "level": ["pooled", "40", "pooled"], "n": [1, 2, 3]})
    assert list(tl.pick(table, metric="auroc", level="40")["n"]) == [2]
    assert list(tl.pick(table, level=["40", "pooled"])["n"]) == [1, 2, 3]
    with pytest.raises(ValueError, match=r"lacks the columns \['method'\]"):
        tl.pick(table, method="asp")
    with pytest.raises(
        ValueError, match=r"column 'level' has no \[40\]; it has \['pooled', '40'\]"
    ):
        tl.pick(table, level=40)
    with pytest.raises(ValueError, match=r"column 'level' has no \['40'\]; it has \['pooled'\]"):
        tl.pick(table, metric="ece", level=["40", "pooled"])


def test_one_wrong_answer_is_enough_where_one_is_asked_for() -> None:
    run = a_run(n_cases=12)
    run.answers["correct"] = 1
    run.answers.loc[run.answers.index[0], "correct"] = 0
    assert entry(table_of(run, min_per_class=1), "auroc", "pooled")["value"] >= 0
    withheld = entry(table_of(run, min_per_class=2), "auroc", "pooled")
    assert np.isnan(withheld["value"]) and says(withheld["missing"], "fewer than 2")
