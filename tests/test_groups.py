"""Groups of cases: measures and Welch's differences by a second program, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from each import each
from saying import saying
from scipy.stats import t as student
from scipy.stats import ttest_ind

import trustlab as tl
from trustlab.metrics.groups import GAP, UNSTATED, group_table, in_bands
from trustlab.runs.run import FACTS, case_facts

pytestmark = pytest.mark.usefixtures("every_interval")
LEVELS = (1, 60, 100)
SCALES = {"p": "probability", "s": "score"}


def made(n: int = 80, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Answers of n cases at three levels, a third of them of group "b", and two methods."""
    rng = np.random.default_rng(seed)
    keys: Any = {
        "case_id": np.repeat([f"c{i}" for i in range(n)], 3),
        "dataset": "d",
        "level": np.tile(LEVELS, n),
        "model": "m",
    }
    sure = np.round(rng.random(3 * n), 2)
    right = (rng.random(3 * n) < 0.3 + 0.5 * sure).astype(float)
    group = np.repeat(np.where(np.arange(n) % 3, "a", "b"), 3)
    answers = pd.DataFrame({**keys, "answer": "x", "truth": "t", "correct": right, "group": group})
    rows = []
    for method, values in (("p", sure), ("s", -np.exp(5 * (1 - sure)))):
        rows.append(
            pd.DataFrame(
                {**keys, "method": method, "confidence": values, "bound": "", "missing": ""}
            )
        )
    return answers, pd.concat(rows, ignore_index=True)


def row(table: pd.DataFrame, **values: Any) -> Any:
    found = tl.pick(table, **values)
    assert len(found) == 1
    return found.iloc[0]


@each(("metric", "ends"), [("accuracy", [0, 1]), (GAP, [-1, 1])])
def test_a_difference_of_means_is_scipys_welch_with_a_case_of_each_end_in_both_groups(
    metric: str, ends: list[int]
) -> None:
    answers, confidence = made()
    found = row(group_table(answers, confidence, SCALES, "g"), metric=metric, against="a")
    of = answers.assign(value=answers["correct"])
    if metric == GAP:
        of["value"] = confidence["confidence"][: len(of)].to_numpy() - of["correct"]
    of_case = of.groupby(["group", "case_id"])["value"].mean()
    plain = of_case["b"].mean() - of_case["a"].mean()
    assert found["difference"] == pytest.approx(plain, abs=1e-12)
    expected: Any = ttest_ind(
        np.append(of_case["b"], ends), np.append(of_case["a"], ends), equal_var=False
    )
    span = expected.confidence_interval()
    got = [found["p"], found["low"], found["high"]]
    assert got == pytest.approx([expected.pvalue, span.low, span.high], abs=1e-9)


def area(rows: pd.DataFrame) -> float:
    """The share of pairs of one level in which the right answer is surer, pair by pair."""
    won = 0.0
    n_pairs = 0
    for _, part in rows.groupby("level"):
        right = part.loc[part["correct"] == 1, "confidence"].to_numpy()[:, None]
        wrong = part.loc[part["correct"] == 0, "confidence"].to_numpy()
        won += (right > wrong).sum() + (right == wrong).sum() / 2
        n_pairs += right.size * wrong.size
    return won / n_pairs


@each("method", ["p", "s"])
def test_a_difference_of_auroc_pair_by_pair(method: str) -> None:
    answers, confidence = made()
    found = row(
        group_table(answers, confidence, SCALES, "g"), method=method, metric="auroc", against="a"
    )
    values = confidence[confidence["method"] == method]["confidence"].to_numpy()
    table = answers.assign(confidence=values)
    sides = []
    for group in ("b", "a"):
        mine = table[table["group"] == group]
        cases = mine["case_id"].unique()
        n = len(cases)
        whole = area(mine)
        leaves = np.array([area(mine[mine["case_id"] != case]) for case in cases])
        n_rarer = min(mine["correct"].sum(), (1 - mine["correct"]).sum())
        rarer = min(mine[mine["correct"] == v]["case_id"].nunique() for v in (0, 1))
        worth = min(n_rarer * n / len(mine), rarer)
        error2 = (n - 1) * np.mean((leaves - leaves.mean()) ** 2)
        middle = (worth * whole + 1) / (worth + 2)
        squares = (worth - 1) * worth * error2 + worth * (whole - middle) ** 2
        squares += middle**2 + (1 - middle) ** 2
        sides.append((whole, middle, squares / ((worth + 1) * (worth + 2)), worth + 1))
    (whole, middle, variance, degrees), (other, other_middle, more, other_degrees) = sides
    assert found["difference"] == pytest.approx(whole - other, abs=1e-9)
    error = np.sqrt(variance + more)
    df = (variance + more) ** 2 / (variance**2 / degrees + more**2 / other_degrees)
    reach = student.ppf(0.975, df) * error
    gap = middle - other_middle
    p = 2 * student.sf(abs(gap) / error, df)
    got = [found["p"], found["low"], found["high"]]
    assert got == pytest.approx([p, gap - reach, gap + reach], abs=1e-9)


def test_holm_is_over_all_groups_and_measures_and_ece_is_never_differenced() -> None:
    answers, confidence = made(240)
    answers["group"] = np.repeat(np.array(["a", "b", "c"])[np.arange(240) % 3], 3)
    table = group_table(answers, confidence, SCALES, "g")
    compared = table[table["p"].notna()]
    # two groups against a third: accuracy, and of two methods AUROC, of one the gap
    assert len(compared) == 2 * 4 and set(compared["against"]) == {"a"}
    p = np.sort(compared["p"])
    stepped = np.minimum(np.maximum.accumulate(p * np.arange(8, 0, -1)), 1)
    assert np.sort(compared["p_holm"]) == pytest.approx(stepped)
    ece = tl.pick(table, metric="ece")
    assert len(ece) == 3 and ece["difference"].isna().all() and ece["p"].isna().all()
    assert (ece["chance_low"] < ece["chance"]).all()


def test_a_group_needs_ten_cases_of_each_outcome_and_unstated_cases_are_not_compared() -> None:
    answers, confidence = made(120)
    group = np.array(["a"] * 60 + ["b"] * 9 + [UNSTATED] * 51)
    answers["group"] = np.repeat(group, 3)
    table = group_table(answers, confidence, SCALES, "g")
    small = table[table["group"].eq("b")]
    assert small["value"].isna().all() and small["p"].isna().all()
    assert small["missing"].str.contains("fewer than 10 cases").all()
    assert row(table, group=UNSTATED, metric="accuracy")["value"] > 0


def test_bands_are_named_by_their_edges() -> None:
    bands = in_bands(pd.Series([0, 17.9, 18, 64, 65, float("nan")]), (18, 65))
    names = ["below 18", "below 18", "18 to below 65", "18 to below 65", "65 or more", UNSTATED]
    assert list(bands) == names
    assert list(bands.cat.categories) == ["below 18", "18 to below 65", "65 or more", UNSTATED]
    assert list(in_bands(pd.Series([4, 5]), [5])) == ["below 5", "5 or more"]
    for edges in ((40, 18), (1, 1)):
        with pytest.raises(ValueError, match="monotonically|unique"):
            in_bands(pd.Series([1.0]), edges)


def replies(tmp_path: Path, **changed: Any) -> Path:
    """A table of replies of 60 cases with groups."""
    rng = np.random.default_rng(1)
    columns: dict[str, Any] = {
        "case_id": [f"{i:03}" for i in range(60)],
        "answer": "gout",
        "truth": np.where(rng.random(60) < 0.5, "gout", "flu"),
        "probability:own": rng.random(60).round(2),
        "group:hospital": ["01", "NA 2"] * 30,
        "group:age": range(60),
    }
    file = tmp_path / "replies.csv"
    pd.DataFrame(columns | changed).to_csv(file, index=False)
    return file


def test_a_tables_groups_are_in_the_run_and_come_back_with_it(tmp_path: Path) -> None:
    setup = tl.Setup(run_dir=tmp_path / "run")
    run = tl.score(replies(tmp_path), ["probability:own"], setup)
    loaded = tl.load_run(tmp_path / "run")
    pd.testing.assert_frame_equal(run.facts, loaded.facts, check_dtype=False)
    for by, edges in (("group:hospital", None), ("group:age", [20, 40])):
        found = tl.by_group(run, by, edges=edges)
        pd.testing.assert_frame_equal(found, tl.by_group(loaded, by, edges=edges))
    assert set(tl.by_group(run, "group:hospital")["group"]) == {"01", "NA 2"}
    counts = tl.pick(tl.by_group(run, "group:age", edges=[20]), metric="accuracy", against="")
    assert dict(zip(counts["group"], counts["n_cases"], strict=True)) == {
        "below 20": 20,
        "20 or more": 40,
    }
    with pytest.raises(ValueError, match=saying("'sex'", "group:hospital")):
        tl.by_group(run, "sex")
    with pytest.raises(ValueError, match=saying("parse", "NA 2")):
        tl.by_group(run, "group:hospital", edges=[1])


def test_a_case_is_in_one_group(tmp_path: Path) -> None:
    file = replies(tmp_path, case_id=[f"{i // 2}" for i in range(60)], level=[1, 100] * 30)
    run = tl.score(file, ["probability:own"])
    with pytest.raises(ValueError, match=saying("group:hospital", "once", "'NA 2'")):
        tl.by_group(run, "group:hospital")


def test_groups_of_a_table_of_cases_and_no_other_fact_are_in_a_run(tmp_path: Path) -> None:
    cases = []
    for i in range(3):
        statements = [f"Statement {k}." for k in range(12)]
        facts = {"group:ward": i % 2, "sex": "female", "name": "N. N."}
        cases.append({"id": str(i), "diagnosis": "gout", "statements": statements, **facts})
    file = tmp_path / "cases.jsonl"
    file.write_text("\n".join(map(json.dumps, cases)))
    table = pd.DataFrame(case_facts(tl.load_cases("table", path=file)), columns=list(FACTS))
    assert set(table["fact"]) == {"group:ward", "sex"} and len(table) == 6
    assert list(tl.pick(table, fact="group:ward")["value"]) == ["0", "1", "0"]


def test_age_sex_and_frequency() -> None:
    cases = tl.load_cases("starter", n=60)
    rng = np.random.default_rng(2)
    answers = pd.DataFrame(
        {
            "case_id": [case.case_id for case in cases],
            "dataset": "starter",
            "level": 100,
            "model": "m",
            "answer": "x",
            "truth": [case.diagnosis for case in cases],
            "correct": (rng.random(60) < 0.5).astype(float),
        }
    )
    confidence = answers[["case_id", "dataset", "level", "model"]].assign(
        method="poc", confidence=rng.random(60), bound="", missing=""
    )
    facts = pd.DataFrame(case_facts(cases), columns=list(FACTS))
    run = tl.Run(answers, confidence, pd.DataFrame(), {}, facts=facts)
    by_sex = tl.by_group(run, "sex", methods=["poc"])
    assert set(by_sex["method"]) == {"", "poc"}
    table = tl.pick(by_sex, metric="accuracy", against="")
    counts = pd.Series([str(case.patient["sex"]) for case in cases]).value_counts()
    assert counts.to_dict() == dict(zip(table["group"], table["n_cases"], strict=True))
    ages = tl.pick(tl.by_group(run, "age"), metric="accuracy", against="")
    n_old = sum(int(str(case.patient["age"])) >= 65 for case in cases)
    assert row(ages, group="65 or more")["n_cases"] == n_old
    assert "18 to below 40" in set(ages["group"])
    n_alike = answers.groupby("truth")["case_id"].transform("size")
    often = tl.pick(tl.by_group(run, "frequency", edges=[2]), metric="accuracy", against="")
    assert row(often, group="2 or more")["n_cases"] == (n_alike >= 2).sum()
    no_truth = replace(run, answers=answers.assign(truth=answers["truth"].where(n_alike > 1, "")))
    assert {"2", UNSTATED} <= set(tl.by_group(no_truth, "frequency")["group"])
    unstated = tl.pick(tl.by_group(no_truth, "frequency"), metric="accuracy", group=UNSTATED)
    assert unstated["n_cases"].item() == (n_alike == 1).sum()
    earlier = replace(run, facts=facts[:0])
    with pytest.raises(ValueError, match=saying("'sex'", "fact")):
        tl.by_group(earlier, "sex")
