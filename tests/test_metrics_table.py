"""The metrics table on small runs whose answer is known, and against a bootstrap done by hand."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from each import each
from resampled import case_weights

from trustlab.measures import metrics_table
from trustlab.metrics import auprc, auroc, brier, coverage, ece, pearson, spearman
from trustlab.metrics.correlation import (
    pearson_permutation_p,
    rising_band,
    spearman_permutation_p,
)
from trustlab.metrics.estimate import percentile_interval

pytestmark = pytest.mark.usefixtures("every_interval")
WITHHELD = coverage.withheld


LEVELS = (1, 20, 40, 60, 80, 100)
COLUMNS = ["model", "dataset", "method", "level", "metric", "value", "low", "high", "p"]
COLUMNS += [
    "chance",
    "chance_low",
    "chance_high",
    "n",
    "n_cases",
    "n_rarer",
    "n_missing",
    "missing",
]


def a_run(n_cases: int = 40, levels=LEVELS, methods=("good",), seed: int = 0) -> SimpleNamespace:
    """A run whose accuracy rises with the level.

    Every confidence leans towards the truth, and repeats with its seed.
    """
    rng = np.random.default_rng(seed)
    answers, confidence = [], []
    for c in range(n_cases):
        for level in levels:
            key = {"case_id": f"case-{c:03d}", "dataset": "toy", "level": level, "model": "m"}
            correct = int(rng.random() < 0.2 + 0.006 * level)
            said = {"answer": "flu", "truth": "flu" if correct else "cold", "correct": correct}
            answers.append({**key, **said, "n_statements": 12, "n_words": 50})
            for method in methods:
                value = 0.6 * rng.random() + 0.003 * level + 0.1 * correct
                confidence.append(
                    {**key, "method": method, "confidence": value, "bound": "", "missing": ""}
                )
    return SimpleNamespace(answers=pd.DataFrame(answers), confidence=pd.DataFrame(confidence))


def entry(table: pd.DataFrame, metric: str, level: str, method: str = "good") -> dict[str, Any]:
    found = table[
        (table["metric"] == metric) & (table["level"] == level) & (table["method"] == method)
    ]
    assert len(found) == 1
    return found.iloc[0].to_dict()


def table_of(run, **options) -> pd.DataFrame:
    return metrics_table(run, **{"n_draws": 200, "scales": {"good": "probability"}, **options})


def test_table_has_every_metric_once():
    table = table_of(a_run(methods=("good", "plain")))
    assert list(table.columns) == COLUMNS
    assert not table.duplicated(["model", "dataset", "method", "metric", "level"]).any()
    levels = [str(level) for level in LEVELS]
    expected = {("", "accuracy", level) for level in [*levels, "pooled"]}
    for method in ("good", "plain"):
        expected |= {(method, "mean_confidence", level) for level in levels}
        expected |= {
            (method, m, level)
            for m in ("auroc", "auprc")
            for level in [*levels, "pooled", "within"]
        }
        expected |= {(method, m, "across") for m in ("pearson", "spearman")}
    expected |= {("good", "brier", "pooled"), ("good", "ece", "pooled")}
    assert set(zip(table["method"], table["metric"], table["level"], strict=True)) == expected


def test_table_values_are_those_of_the_functions():
    run = a_run()
    table = table_of(run)
    rows = run.answers.merge(run.confidence, on=["case_id", "dataset", "level", "model"])
    assert entry(table, "accuracy", "pooled", "")["value"] == pytest.approx(
        run.answers["correct"].mean()
    )
    assert entry(table, "auroc", "pooled")["value"] == pytest.approx(
        auroc(rows["correct"], rows["confidence"])
    )
    assert entry(table, "brier", "pooled")["value"] == pytest.approx(
        brier(rows["correct"], rows["confidence"])
    )
    assert entry(table, "ece", "pooled")["value"] == pytest.approx(
        ece(rows["correct"], rows["confidence"])
    )
    at_20 = rows[rows["level"] == 20]
    assert entry(table, "auprc", "20")["value"] == pytest.approx(
        auprc(at_20["correct"], at_20["confidence"])
    )
    means = rows.groupby("level")[["correct", "confidence"]].mean()
    assert entry(table, "mean_confidence", "60")["value"] == pytest.approx(
        means.loc[60, "confidence"]
    )
    assert entry(table, "pearson", "across")["value"] == pytest.approx(
        pearson(means["correct"], means["confidence"])
    )
    assert entry(table, "spearman", "across")["value"] == pytest.approx(
        spearman(means["correct"], means["confidence"])
    )


def test_discrimination_stands_beside_chance():
    run = a_run()
    table = table_of(run)
    by_level = run.answers.groupby("level")["correct"].mean()
    for level in ("pooled", "within", "20"):
        assert entry(table, "auroc", level)["chance"] == 0.5
    assert entry(table, "auprc", "pooled")["chance"] == pytest.approx(run.answers["correct"].mean())
    assert entry(table, "auprc", "20")["chance"] == pytest.approx(by_level[20])
    # one class: left out of the mean over levels
    run.answers.loc[run.answers["level"] == 100, "correct"] = 1
    run.confidence = run.confidence[
        (run.confidence["level"] > 1) | (run.confidence["case_id"] > "case-019")
    ]
    # chance is of the method's rows
    kept = run.answers[(run.answers["level"] > 1) | (run.answers["case_id"] > "case-019")]
    by_level = kept[kept["level"] < 100].groupby("level")["correct"].mean()
    assert entry(table_of(run), "auprc", "within")["chance"] == pytest.approx(by_level.mean())


def test_a_correlation_stands_beside_rising_series_and_its_permutation_p():
    run = a_run()
    run.confidence.loc[run.confidence["level"] == 60, "confidence"] = np.nan
    table = table_of(run)
    rows = run.answers.merge(
        run.confidence.dropna(subset="confidence"), on=["case_id", "dataset", "level", "model"]
    )
    means = rows.groupby("level")[["correct", "confidence"]].mean()
    for metric, p_value in (
        ("pearson", pearson_permutation_p),
        ("spearman", spearman_permutation_p),
    ):
        row = entry(table, metric, "across")
        assert row["p"] == pytest.approx(p_value(means["correct"], means["confidence"]))
        band = rising_band(means["correct"], metric)  # of the five levels that have a value
        assert (row["chance_low"], row["chance"], row["chance_high"]) == band


def steep_run(n: int = 50) -> SimpleNamespace:
    """Accuracies of 16, 64, 82, 90, 95, 96 %, much as on DDXPlus; the confidence is the level."""
    run = a_run(n, methods=("good",))
    share = {1: 0.16, 20: 0.64, 40: 0.82, 60: 0.90, 80: 0.95, 100: 0.96}
    place = run.answers["case_id"].str[-3:].astype(int)
    run.answers["correct"] = ((place + 0.5) / n < run.answers["level"].map(share)).astype(int)
    run.confidence["confidence"] = run.confidence["level"] / 100
    return run


def test_a_steep_curve_has_a_lower_band_than_an_even_one():
    run = steep_run()
    row = entry(table_of(run), "pearson", "across")
    found = [row["chance_low"], row["chance"], row["chance_high"]]
    assert found == pytest.approx([0.62, 0.84, 0.985], abs=0.01)
    place = run.answers["case_id"].str[-3:].astype(int)
    even = run.answers["level"].rank(method="dense") / 6
    run.answers["correct"] = ((place + 0.5) / 50 < even).astype(int)
    assert entry(table_of(run), "pearson", "across")["chance"] == pytest.approx(0.96, abs=0.005)


def test_a_dip_in_accuracy_lowers_what_a_rising_confidence_ranks():
    run = steep_run()
    place = run.answers["case_id"].str[-3:].astype(int)
    at_80 = run.answers["level"] == 80
    # 70 %, as between 20 and 40
    run.answers.loc[at_80, "correct"] = (place[at_80] < 35).astype(int)
    rho = entry(table_of(run), "spearman", "across")
    assert [rho["chance_low"], rho["chance"], rho["chance_high"]] == pytest.approx([29 / 35] * 3)
    assert rho["value"] == pytest.approx(29 / 35)


def test_a_method_that_misses_a_level_has_the_band_of_the_others():
    run = steep_run()
    run.confidence.loc[run.confidence["level"] == 1, "confidence"] = np.nan
    steps = run.answers[run.answers["level"] > 1].groupby("level")["correct"].mean()
    row = entry(table_of(run), "pearson", "across")
    assert row["chance"] == rising_band(steps)[1] > 0.86


def test_only_what_has_a_level_of_chance_or_a_p_says_so():
    # enough of both classes in all levels together, not in each
    table = table_of(a_run(24, levels=(1, 20, 40)))
    known = table[table["value"].notna()]
    assert set(known.loc[known["chance"].notna(), "metric"]) == {
        "auroc",
        "auprc",
        "pearson",
        "spearman",
        "ece",
    }
    tested, by_chance = (set(known.loc[known[c].notna(), "metric"]) for c in ("p", "chance_low"))
    assert tested == {"pearson", "spearman"} and by_chance == tested | {"ece"}
    gone = table[table["value"].isna()]
    assert len(gone) and gone[["chance", "chance_low", "chance_high", "p"]].isna().all(axis=None)


def test_nine_levels_have_a_band_and_no_exact_p():
    run = a_run(12, levels=tuple(range(10, 100, 10)))
    row = entry(table_of(run), "pearson", "across")
    band = rising_band(run.answers.groupby("level")["correct"].mean())
    assert np.isnan(row["p"]) and row["chance"] == band[1] and row["low"] < row["high"]


def test_intervals_are_those_of_a_bootstrap_done_by_hand():
    run = a_run(n_cases=12)
    # a draw without case 0 has one class here
    run.answers.loc[run.answers["level"] == 100, "correct"] = [0] + [1] * 11
    table = table_of(run, n_draws=60, seed=7, min_per_class=1)
    rows = run.answers.merge(run.confidence, on=["case_id", "dataset", "level", "model"])
    draws: dict[tuple[str, str], list] = {}
    for weight in case_weights(rows["case_id"], 60, seed=7):
        drawn = rows.loc[np.repeat(rows.index, weight)]
        means = drawn.groupby("level")[["correct", "confidence"]].mean()
        inner = [auprc(part["correct"], part["confidence"]) for _, part in drawn.groupby("level")]
        for key, value in {
            ("auroc", "pooled"): auroc(drawn["correct"], drawn["confidence"]),
            ("auprc", "within"): np.nanmean(inner),
            ("auprc", "100"): inner[-1],
            ("mean_confidence", "40"): means.loc[40, "confidence"],
            ("pearson", "across"): pearson(means["correct"], means["confidence"]),
            ("spearman", "across"): spearman(means["correct"], means["confidence"]),
            ("brier", "pooled"): brier(drawn["correct"], drawn["confidence"]),
            ("ece", "pooled"): ece(drawn["correct"], drawn["confidence"]),
        }.items():
            draws.setdefault(key, []).append(value)
    assert any(np.isnan(value) for value in draws.pop(("auprc", "100")))
    for (metric, level), values in draws.items():
        found = entry(table, metric, level)
        # a draw repeats cases, which makes ECE larger
        excess = np.mean(values) - found["value"] if metric == "ece" else 0.0
        assert (found["low"], found["high"]) == pytest.approx(
            percentile_interval(np.array(values) - excess), abs=1e-9
        ), metric


def test_intervals_cover_the_estimate_and_counts_add_up():
    table = table_of(a_run(n_cases=80))
    given = table[table["low"].notna()]
    assert len(given) > 20
    low, value, high = (np.asarray(given[name]) for name in ("low", "value", "high"))
    assert np.all(low <= value) and np.all(value <= high) and np.all(low < high)
    assert set(table.loc[table["level"] == "pooled", "n"]) == {480} and set(table["n_cases"]) == {
        80
    }


def test_table_repeats_with_its_seed_and_ignores_row_order():
    run = a_run(n_cases=20)
    mixed = SimpleNamespace(
        answers=run.answers.sample(frac=1, random_state=1),
        confidence=run.confidence.sample(frac=1, random_state=2),
    )
    first, again = table_of(run, n_draws=50), table_of(run, n_draws=50)
    pd.testing.assert_frame_equal(first, again)
    pd.testing.assert_frame_equal(first, table_of(mixed, n_draws=50))
    other = table_of(run, n_draws=50, seed=1)
    np.testing.assert_array_equal(other["value"], first["value"])
    assert not other["low"].equals(first["low"])


def test_within_level_average_by_hand():
    # Level 1: AUROC 1. Level 20: AUROC 1/2. Level 40: all correct, so it has none and is left out:
    # (1 + 1/2)/2.
    spec = {
        1: ([1, 1, 0, 0], [0.9, 0.8, 0.2, 0.1]),
        20: ([1, 0, 0, 1], [0.9, 0.5, 0.4, 0.1]),
        40: ([1] * 4, [0.1, 0.2, 0.3, 0.4]),
    }
    run = a_run(n_cases=4, levels=tuple(spec))
    for level, (correct, confidence) in spec.items():
        run.answers.loc[run.answers["level"] == level, "correct"] = correct
        run.confidence.loc[run.confidence["level"] == level, "confidence"] = confidence
    within = entry(table_of(run, min_per_class=1), "auroc", "within")
    assert within["value"] == pytest.approx(0.75)
    assert within["n"] == 8 and "level 40" in within["missing"]


def test_discrimination_is_withheld_below_ten_of_a_class():
    run = a_run(n_cases=12, levels=(1, 20, 40))
    run.answers["correct"] = 1
    run.answers.loc[run.answers.index[:9], "correct"] = 0
    table = table_of(run)
    for metric in ("auroc", "auprc"):
        for level in ("pooled", "within", "1"):
            row = entry(table, metric, level)
            assert np.isnan([row["value"], row["low"], row["high"]]).all()
            assert row["missing"] == "fewer than 10 correct or wrong"
    run.answers.loc[run.answers.index[9], "correct"] = 0
    assert entry(table_of(run), "auroc", "pooled")["value"] > 0


def test_missing_rows_are_left_out_and_counted():
    run = a_run()
    full = table_of(run)
    gone = run.confidence["case_id"].isin(["case-000", "case-001"]) & (
        run.confidence["level"] <= 20
    )
    run.confidence.loc[gone, ["confidence", "missing"]] = [np.nan, "no brackets"]
    # a row that is not there is missing too
    run.confidence = run.confidence.drop(run.confidence.index[-1])
    table = table_of(run)
    pooled = entry(table, "auroc", "pooled")
    assert (pooled["n"], pooled["n_missing"], pooled["n_cases"]) == (235, 5, 40)
    kept = run.confidence.dropna(subset="confidence").merge(
        run.answers, on=["case_id", "dataset", "level", "model"]
    )
    assert pooled["value"] == pytest.approx(auroc(kept["correct"], kept["confidence"]))
    at_1 = entry(table, "mean_confidence", "1")
    assert (at_1["n"], at_1["n_missing"], at_1["n_cases"]) == (38, 2, 38)
    accuracies = [pd.Series(entry(t, "accuracy", "pooled", "")) for t in (table, full)]
    pd.testing.assert_series_equal(*accuracies)


def test_a_method_without_values_is_missing_everywhere():
    run = a_run(n_cases=15)
    run.confidence[["confidence", "missing"]] = [np.nan, "no token probabilities"]
    table = table_of(run)
    mine = table.loc[table["method"] == "good"]
    assert np.isnan(mine[["value", "low", "high"]].to_numpy()).all() and (mine["n"] == 0).all()
    assert (mine["missing"] == "no confidence: no token probabilities").all()
    assert entry(table, "auroc", "pooled")["n_missing"] == 90


def test_an_unreadable_answer_is_wrong_for_accuracy_and_missing_for_methods():
    run = a_run(n_cases=30)
    lost = run.answers.index[:12]
    expected = run.answers["correct"].drop(lost).sum() / 180
    run.answers.loc[lost, "answer"], run.answers.loc[lost, "correct"] = None, 0
    table = table_of(run)
    accuracy = entry(table, "accuracy", "pooled", "")
    assert accuracy["value"] == pytest.approx(expected) and (
        accuracy["n"],
        accuracy["n_missing"],
    ) == (180, 0)
    assert (entry(table, "auroc", "pooled")["n"], entry(table, "auroc", "pooled")["n_missing"]) == (
        168,
        12,
    )


def with_failed(run: SimpleNamespace, gone: Any) -> SimpleNamespace:
    """The run with some of its calls for an answer failed.

    A method that needs no answer keeps its confidence.
    """
    lost = gone.to_numpy()
    answers = run.answers.assign(
        correct=run.answers["correct"].astype(float).mask(lost),
        answer=run.answers["answer"].mask(lost),
    )
    return SimpleNamespace(answers=answers, confidence=run.confidence)


def without(run: SimpleNamespace, gone: Any) -> SimpleNamespace:
    """The run as if those answers had never been asked for."""
    return SimpleNamespace(
        answers=run.answers[~gone.to_numpy()], confidence=run.confidence[~gone.to_numpy()]
    )


def test_a_failed_answer_changes_nothing_but_what_is_counted_as_missing():
    run = a_run(n_cases=30)
    gone = run.answers["case_id"].isin(["case-003", "case-004", "case-005"]) & (
        run.answers["level"] <= 20
    )
    found, wanted = table_of(with_failed(run, gone)), table_of(without(run, gone))
    told = ["n_missing", "missing"]
    pd.testing.assert_frame_equal(found.drop(columns=told), wanted.drop(columns=told))
    for metric, level, method, n, n_missing, reason in [
        ("accuracy", "pooled", "", 174, 6, "6 answers missing"),
        ("accuracy", "20", "", 27, 3, "3 answers missing"),
        ("accuracy", "40", "", 30, 0, ""),
        ("mean_confidence", "1", "good", 27, 3, "3 answers missing"),
        ("auroc", "pooled", "good", 174, 6, "6 answers missing"),
        ("ece", "pooled", "good", 174, 6, "6 answers missing"),
    ]:
        row = entry(found, metric, level, method)
        assert (row["n"], row["n_missing"], row["missing"]) == (n, n_missing, reason), (
            metric,
            level,
        )


@each(("said", "why"), [("", "failed answer"), ("the server is gone", "the server is gone")])
def test_a_level_whose_answers_all_failed_has_no_value_and_says_why(said, why):
    run = a_run(n_cases=25)
    run.confidence.loc[run.confidence["level"] == 60, "missing"] = said
    table = table_of(with_failed(run, run.answers["level"] == 60))
    accuracy, mean = entry(table, "accuracy", "60", ""), entry(table, "mean_confidence", "60")
    assert np.isnan(
        [accuracy["value"], accuracy["low"], mean["value"], entry(table, "auroc", "60")["value"]]
    ).all()
    assert accuracy["missing"] == "no answer; 25 answers missing"
    assert mean["missing"] == f"no confidence: {why}; 25 answers missing"
    assert (
        entry(table, "accuracy", "pooled", "")["n"] == 125
        and entry(table, "pearson", "across")["value"] > 0
    )


def test_one_failed_answer_is_counted_in_the_singular_beside_an_unreadable_one():
    run = a_run(n_cases=20)
    gone = run.answers.index == 0
    failed = with_failed(run, pd.Series(gone))
    failed.answers.loc[1, ["answer", "correct"]] = [None, 0]
    accuracy = entry(table_of(failed), "accuracy", "pooled", "")
    assert (accuracy["n"], accuracy["n_missing"], accuracy["missing"]) == (
        119,
        1,
        "1 answer missing",
    )
    assert accuracy["value"] == pytest.approx(run.answers["correct"].iloc[2:].sum() / 119)
    assert entry(table_of(failed), "auroc", "pooled")["n_missing"] == 2


def test_correlation_is_missing_when_flat_or_short():
    flat = a_run(n_cases=15)
    flat.confidence["confidence"] = 0.7
    row = entry(table_of(flat), "spearman", "across")
    assert np.isnan(row["value"]) and "same at every level" in row["missing"]
    short = entry(table_of(a_run(n_cases=15, levels=(1, 20))), "pearson", "across")
    assert np.isnan(short["value"]) and short["missing"] == "fewer than 3 levels"


def test_bounds_are_counted():
    run = a_run(n_cases=30)
    run.confidence.loc[:4, "bound"] = "lower"
    assert entry(table_of(run), "auroc", "pooled")["missing"] == "5 of 180 confidences are bounds"


def test_models_are_paired_and_kept_apart():
    run, other = a_run(n_cases=25), a_run(n_cases=25)
    other.answers["model"] = other.confidence["model"] = "n"
    both = SimpleNamespace(
        answers=pd.concat([run.answers, other.answers]),
        confidence=pd.concat([run.confidence, other.confidence]),
    )
    table = table_of(both)
    first, second = (
        table.loc[table["model"] == name].drop(columns="model").reset_index(drop=True)
        for name in "mn"
    )
    pd.testing.assert_frame_equal(first, second)
    pd.testing.assert_frame_equal(first, table_of(run).drop(columns="model"))


def test_parallel_gives_the_same_table(monkeypatch):
    monkeypatch.setattr(coverage, "withheld", WITHHELD)  # as in the other processes
    run = a_run(n_cases=12, methods=("good", "plain"))
    pd.testing.assert_frame_equal(table_of(run, n_draws=20), table_of(run, n_draws=20, n_jobs=2))


def test_bad_tables_are_refused():
    def spoiled(which, change):
        run = a_run(n_cases=3)
        setattr(run, which, change(getattr(run, which)))
        return run

    for which, change, message in [
        ("answers", lambda t: t.drop(columns="correct"), "correct"),
        ("answers", lambda t: pd.concat([t, t.tail(1)]), "once"),
        ("answers", lambda t: t.assign(correct=2), "0 or 1"),
        ("answers", lambda t: t.assign(correct=np.nan), "0 or 1, or NaN with no answer"),
        ("answers", lambda t: t.assign(correct=2, answer=None), "0 or 1"),
        ("answers", lambda t: t.iloc[1:], "its row in answers"),
        ("confidence", lambda t: pd.concat([t, t.tail(1)]), "once"),
        ("confidence", lambda t: t.assign(confidence=np.inf), "finite"),
        ("confidence", lambda t: t.assign(confidence=2.0), "'good'"),
    ]:
        with pytest.raises(ValueError, match=message):
            table_of(spoiled(which, change), n_draws=5)
