"""What is compared with what: shared rows, and conditions that show one text."""

from __future__ import annotations

import numpy as np
import pandas as pd
from asking import ask
from fake_model import FakeEncoder, FakeModel, made_cases
from test_robustness import Voice, confidence, one, told_cases

from studies.robustness import (
    NOT_SHARED,
    SAME,
    compared_rows,
    robustness,
    variation_table,
)
from trustlab.metrics.stability import cv_group_by_chance

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


def test_no_cases_in_common_with_the_table_leave_nothing_to_tell() -> None:
    alone = {"changes": [], "paraphrase_seeds": [], "samples": 3}
    found = ask(robustness, made_cases(2), [FakeModel()], ["asp"], (100,), **alone)
    assert variation_table(found.confidence).empty
