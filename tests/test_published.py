"""The paper's tables as they are kept here: whole, by our names, and as printed."""

from __future__ import annotations

import pandas as pd
import pytest
from saying import saying

from studies.ablations import PARTS
from trustlab.confidence import METHODS
from trustlab.paths import DATA
from trustlab.reports.published import TABLES, published_case, published_table

KEYS = {
    "correlation": ["model", "method", "dataset", "statistic"],
    "comparison": ["model", "dataset", "method"],
    "robustness": ["model", "dataset", "method"],
    "consultation": ["method"],
    "ablation": ["model", "dataset", "variant"],
}


@pytest.mark.parametrize("name", TABLES)
def test_each_table_has_a_row_for_each_of_its_keys_by_our_names_and_as_printed(name: str) -> None:
    table, text = published_table(name), published_table(name, as_text=True)
    assert len(table) > 0 and not table.duplicated(KEYS[name]).any()
    assert table.drop(columns="p_printed", errors="ignore").notna().all(axis=None)
    if "method" in table:
        assert set(table["method"]) <= set(METHODS)
    pd.testing.assert_frame_equal(text.astype(table.dtypes), table)


def test_the_files_are_the_tables_the_claims_and_no_others() -> None:
    files = {file.stem for file in (DATA / "published").glob("*.csv")}
    assert files - {"claims"} == set(TABLES) == set(KEYS)
    assert list(published_table("ablation")["variant"]) == list(PARTS)
    # zeros at the end stay
    assert {"0.14", "0.200", "0.2"} <= set(published_table("correlation", as_text=True)["value"])
    cost = published_table("consultation").set_index("method")["utterances"]
    assert cost.to_dict() == {"medconf": 17.84, "asp": 5.20, "poc": 18.00, "ce": 25.04}
    whole = published_table("ablation").set_index("variant").loc["full"]
    assert (whole["auroc"], whole["spearman"]) == (0.772, 0.943)
    with pytest.raises(ValueError, match=saying("'apples'", "correlation", "consultation")):
        published_table("apples")


def test_what_can_be_computed_of_the_printed_case_comes_out_as_printed() -> None:
    case, printed = published_case()
    assert printed == {"asp": 76.42, "poc": 66.67, "cot_ce": 60, "medconf": 30}
    for method in ("asp", "poc"):
        assert round(100 * METHODS[method].score(case), 2) == printed[method]
    # supported: 2 (strong) and 3 (moderate), 3 + 2 of 3 · 3 + 3 · 2 + 2 · 1
    assert METHODS["medconf_weighted"].score(case) == pytest.approx(5 / 17)
    quoted = [METHODS[method].score(case) for method in ("cot_ce", "medconf")]
    assert quoted == pytest.approx([0.6, 0.3])
