"""What is compared with what: shared rows, conditions that show one text, corrected p-values,
strata in words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from asking import ask
from fake_model import FakeEncoder, FakeModel, made_cases
from test_robustness import Voice, answers, confidence, one, told_cases

from studies.robustness import (
    NOT_SHARED,
    SAME,
    compared_rows,
    robustness,
    scatter_table,
    shift_table,
    strata_cells,
    variation_cells,
    variation_table,
)
from trustlab.metrics.stability import NOT_WHOLE, cv_group_by_chance

NAN = float("nan")
CONDITIONS = ("original", "paraphrase_1", "paraphrase_2", "paraphrase_3")


def varied(rows: list[list[float]], method: str = "poc", **more) -> pd.DataFrame:
    """A row of values (as told, three paraphrases) a case."""
    return confidence(
        {name: [row[i] for row in rows] for i, name in enumerate(CONDITIONS)}, method, **more
    )


ROWS = [[0.9, 0.2, 0.4, 0.6], [0.9, 0.6, 0.6, 0.6]]


# -- rows
# --------------------------------------------------------------------------------------------------


def used_and_own(
    whole: pd.DataFrame, possible: list[bool] | bool = True
) -> tuple[dict[str, list[int]], set[str]]:
    """Of a table rows x methods: method -> which rows are used (0 or 1), and the methods on their
    own."""
    rows = (
        whole.reset_index(drop=True).rename_axis("case_id").reset_index().assign(possible=possible)
    )
    long = rows.melt(["case_id", "possible"], var_name="method", value_name="whole")
    found = compared_rows(long.assign(percent=100, level="all"), ["level"])
    used = found.groupby("method")["used"].apply(lambda column: column.astype(int).tolist())
    return used.to_dict(), set(found.loc[found["own"], "method"])


def test_methods_share_their_rows_and_one_with_fewer_than_half_keeps_its_own() -> None:
    whole = pd.DataFrame(
        {"a": [1, 1, 1, 0], "b": [0, 1, 1, 1], "c": [1, 0, 0, 0], "d": [0, 0, 0, 0]}, dtype=bool
    )
    used, own = used_and_own(whole)
    assert own == {"c"} and used == {
        "a": [0, 1, 1, 0], "b": [0, 1, 1, 0], "c": [1, 0, 0, 0], "d": [0, 0, 0, 0]
    }  # fmt: skip
    half, alone = used_and_own(whole.iloc[[0, 1]])
    assert half["c"] == half["a"] == [0, 0] and not alone  # half is enough to be compared
    impossible = pd.concat(
        [whole, pd.DataFrame({"a": [1], "b": [0], "c": [0], "d": [1]}, dtype=bool)]
    )
    more, alone = used_and_own(impossible, [True] * 4 + [False])
    assert alone == {"c"} and {m: rows[:4] for m, rows in more.items()} == used
    assert {m: rows[4] for m, rows in more.items()} == dict.fromkeys("abcd", 0)


def test_variation_is_taken_over_the_rows_that_all_methods_have() -> None:
    lacking = [[0.9, NAN, 0.4, 0.6], [0.9, 0.3, 0.3, 0.3]]
    found = variation_table(pd.concat([varied(ROWS), varied(lacking, "asp")]), 50)
    for method in ("poc", "asp"):
        row = one(found, method=method, level="all", metric="cv_sample")
        assert (row["value"], row["n"], row["n_missing"], row["own_rows"]) == (0, 1, 1, False)
    no_as_told = varied([[NAN, 0.2, 0.4, 0.6], ROWS[1]])
    assert (
        one(variation_table(no_as_told, 50), level="all", metric="cv_sample")["n"] == 1
    )  # the AUROC as told needs it too
    few = pd.concat([varied(ROWS * 2), varied([[0.5, 0.2, 0.4, 0.6], *[[NAN] * 4] * 3], "asp")])
    marked = variation_table(few, 50).set_index(["method", "level", "metric"])
    assert marked.loc[("asp", "all", "cv_sample"), ["n", "own_rows"]].tolist() == [1, True]
    assert marked.loc[("poc", "all", "cv_sample"), ["n", "own_rows"]].tolist() == [4, False]
    apart = pd.concat([varied([ROWS[0], [NAN] * 4]), varied([[NAN] * 4, ROWS[0]], "asp")])
    assert set(variation_table(apart, 50)["missing"]) == {NOT_SHARED}


def test_views_whose_conditions_show_one_text_twice_are_left_out_and_counted() -> None:
    table = varied(ROWS)
    twin = table["case_id"].eq("c0") & table["condition"].eq("paraphrase_2")
    table.loc[twin, "shown"] = "paraphrase_1"
    row = one(variation_table(table, 50), level="all", metric="cv_sample")
    assert (row["value"], row["n"], row["n_same"], row["n_missing"]) == (0, 1, 1, 0)
    alike = table.assign(shown="one text")
    row = one(variation_table(alike, 50), level="100", metric="cv_group")
    assert (row["n"], row["n_same"], row["missing"]) == (0, 2, SAME) and np.isnan(
        [row["value"], row["chance"]]
    ).all()


def test_a_level_with_one_statement_says_why_it_has_no_variation() -> None:
    asked = {"encoder": FakeEncoder(), "samples": 3, "wording": Voice(), "changes": []}
    found = ask(robustness, told_cases(3), [FakeModel()], ["asp"], (1, 100), **asked)
    table = variation_table(found.confidence, 50)
    assert set(table.loc[table["level"] == "1", "missing"]) == {SAME} and set(
        table.loc[table["level"] == "1", "n_same"]
    ) == {3}
    texts = {
        (c, r.case_id): r.shown
        for c, part in found.answers.query("level == 1").groupby("condition")
        for r in part.itertuples()
    }
    assert all(
        texts["paraphrase_1", c] == texts["paraphrase_2", c] != texts["original", c] for c in "abc"
    )


def test_chance_stands_beside_cv_group_alone() -> None:
    found = variation_table(varied(ROWS), 50, 7)
    expected = cv_group_by_chance([row[1:] for row in ROWS], 50, 7)
    assert one(found, level="all", metric="cv_group")["chance"] == expected > 0
    assert np.isnan(one(found, level="all", metric="cv_sample")["chance"])


def test_variation_is_told_by_level_with_interval_and_count() -> None:
    many = [[0.5, 0.2 + 0.02 * i, 0.4, 0.6] for i in range(12)]
    cv = variation_table(pd.concat([varied(many, level=100), varied(ROWS, level=20)]), 50)
    found = variation_cells(cv)
    assert list(found.columns) == ["model", "dataset", "method", "metric", "20", "100", "all"]
    row = one(cv, level="100", metric="cv_sample")
    told = one(found, model="fake", dataset="made", method="poc", metric="cv_sample")
    ends = f"[{row['low']:.1f}, {row['high']:.1f}]"
    assert told[["20", "100"]].tolist() == ["20.4, n 2", f"{row['value']:.1f} {ends}, n 12"]


# -- shifts
# --------------------------------------------------------------------------------------------------


def test_shifts_of_all_methods_are_over_the_same_rows() -> None:
    said = answers({"original": ["Flu"] * 3, "small_talk": ["Flu"] * 3})
    first = confidence({"original": [0.5, 0.5, 0.5], "small_talk": [0.6, 0.9, 0.5]})
    other = confidence({"original": [0.5, 0.5, 0.5], "small_talk": [0.4, NAN, 0.5]}, "asp")
    few = confidence({"original": [0.5, 0.5, 0.5], "small_talk": [NAN, 0.8, NAN]}, "ce")
    found = shift_table(said, pd.concat([first, other, few]), 50)
    found = found[(found["level"] == "all") & (found["among"] == "all answers")].set_index("method")
    assert found["value"].to_dict() == pytest.approx({"poc": 0.05, "asp": -0.05, "ce": 0.3})
    assert found["n"].to_dict() == {"poc": 2, "asp": 2, "ce": 1}
    assert found["own_rows"].to_dict() == {"poc": False, "asp": False, "ce": True}


def test_the_p_of_a_shift_is_a_paired_t_over_cases_corrected_over_the_field() -> None:
    moves = np.linspace(-0.01, 0.11, 12)
    said = pd.concat(
        [answers({"original": ["Flu"] * 12, c: ["Flu"] * 12}) for c in ("small_talk", "reordered")]
    ).drop_duplicates()
    still = [0.5 + 0.01 * (-1) ** i for i in range(12)]
    held = confidence({"original": [0.5] * 12, "small_talk": list(0.5 + moves), "reordered": still})
    both = [
        pd.concat([t, t.assign(level=20)]) for t in (said, held)
    ]  # a case's levels are one unit, not two
    found = shift_table(*both, 50)
    found = found[(found["level"] == "all") & (found["among"] == "all answers")].set_index(
        "condition"
    )
    t = moves.mean() / (
        moves.std(ddof=1) / np.sqrt(12)
    )  # 0.05 by 0.03933 / sqrt(12), 11 degrees of freedom
    assert t == pytest.approx(4.4035, abs=1e-4) and found.loc["small_talk", "p"] == pytest.approx(
        0.00106, abs=1e-5
    )
    assert found.loc["small_talk", "p_holm"] == pytest.approx(2 * found.loc["small_talk", "p"])
    assert found.loc["reordered", "p_holm"] == found.loc["reordered", "p"] == pytest.approx(1)


def test_few_cases_and_shifts_that_are_all_alike_have_no_p_and_no_conditions_no_rows() -> None:
    said = answers({"original": ["Flu"] * 12, "small_talk": ["Flu"] * 12})
    alike = confidence({"original": [0.5] * 12, "small_talk": [0.6] * 12})
    assert shift_table(said, alike, 50)[["p", "p_holm"]].isna().all(axis=None)
    few = confidence({"original": [0.5] * 3, "small_talk": [0.6, 0.7, 0.8]})
    assert shift_table(said, few, 50)["p"].isna().all()
    told = [t[t["condition"] == "original"] for t in (said, alike)]
    assert shift_table(*told, 50).empty and "p_holm" in shift_table(*told, 50)


# -- beside discrimination
# --------------------------------------------------------------------------------------------


def test_stability_and_discrimination_are_of_the_same_rows() -> None:
    n = 40
    right = ["Flu" if i % 2 else "Cold" for i in range(n)]
    said = answers(dict.fromkeys(CONDITIONS, right)).assign(missing="")
    # Ranks right above wrong on the first 30 cases, the other way round on the last ten, which the
    # other method lacks.
    values = [0.6 + 0.2 * (i % 2 if i < 30 else 1 - i % 2) for i in range(n)]
    mine = varied([[v, v, v + 0.05, v - 0.05 + 0.001 * i] for i, v in enumerate(values)])
    other = varied([[0.5 if i < 30 else NAN] * 4 for i in range(n)], "asp")
    rare = varied([[0.1 * (i % 2) + 0.5 if i < 12 else NAN] * 4 for i in range(n)], "ce")
    held = pd.concat([mine, other, rare]).assign(bound="", missing="")
    cv = variation_table(held, 50)
    found = scatter_table(cv, said, held, 100, 50).set_index(["metric", "method"])
    for metric in ("cv_group", "cv_sample", "auroc"):
        assert found.loc[metric, "n"].to_dict() == {"poc": 30, "asp": 30, "ce": 12}
    auroc = found.loc["auroc"]
    assert (
        auroc.loc[["poc", "asp"], "value"].tolist() == [1, 0.5]
        and auroc.loc["asp", "n_rarer"] == 15
    )
    assert found.loc[("cv_sample", "asp"), "value"] == 0
    assert auroc.loc["ce", "own_rows"] and np.isnan(auroc.loc["ce", "value"])
    assert auroc.loc["ce", "missing"] == "fewer than 10 correct or wrong"
    assert auroc.loc["poc", "missing"] == "no interval: all draws alike"
    mine = one(cv, method="poc", level="100", metric="cv_group")
    assert found.loc[("cv_group", "poc"), ["value", "low", "high"]].tolist() == [
        mine["value"],
        mine["low"],
        mine["high"],
    ]


def test_a_method_without_rows_has_no_auroc_for_the_reason_that_it_has_no_cv() -> None:
    said = answers(dict.fromkeys(CONDITIONS, ["Flu", "Cold"] * 12)).assign(missing="")
    held = pd.concat([varied([[0.4, 0.5, 0.6, 0.7]] * 24), varied([[NAN] * 4] * 24, "asp")]).assign(
        bound="", missing=""
    )
    found = scatter_table(variation_table(held, 20), said, held, "all", 20)
    assert len(found) == 6 and set(found.loc[found["method"].eq("asp"), "missing"]) == {NOT_WHOLE}
    assert one(found, method="asp", metric="auroc")["n"] == 0


# -- strata
# --------------------------------------------------------------------------------------------------


def test_strata_are_told_with_interval_and_count() -> None:
    key = {
        "model": "fake",
        "dataset": "made",
        "metric": "mean_confidence",
        "told": "one patient",
        "missing": "",
    }
    numbers = [
        ("flat", 0.623, 0.5, 0.741, 20),
        ("clear", 0.8, NAN, NAN, 3),
        ("middle", NAN, NAN, NAN, 0),
    ]
    rows = [
        {**key, "method": m, "stratum": s, "value": v, "low": a, "high": b, "n": n}
        for m in ("", "poc")
        for s, v, a, b, n in numbers
    ]
    found = strata_cells(pd.DataFrame(rows))
    assert list(found.columns) == ["model", "dataset", "method", "told", "clear", "middle", "flat"]
    assert found["method"].tolist() == ["accuracy", "poc"]
    assert found.iloc[0, 4:].tolist() == ["80, n 3", "–, n 0", "62 [50, 74], n 20"]


def test_no_cases_in_common_with_the_table_leave_nothing_to_tell() -> None:
    alone = {"changes": [], "paraphrase_seeds": [], "samples": 3}
    found = ask(robustness, made_cases(2), [FakeModel()], ["asp"], (100,), **alone)
    assert (
        variation_table(found.confidence).empty
        and shift_table(found.answers, found.confidence).empty
    )
