"""Published correlations and means: do value, p-value and number of points fit each other? By hand
and against scipy."""

from __future__ import annotations

import doctest
from itertools import permutations
from math import isnan

import numpy as np
import pandas as pd
import pytest
from each import each
from scipy.stats import pearsonr, spearmanr

from trustlab.metrics import audit
from trustlab.metrics.audit import attainable_n, audit_correlations, fitting_points


def table(*rows: tuple) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["statistic", "value", "p_printed", "n"])


def one(statistic="pearson", value="0.500", p_printed=None, n=6, **options) -> pd.Series:
    return audit_correlations(table((statistic, value, p_printed, n)), **options).iloc[0]


def p_of_six(r: float) -> float:
    """Student's t with 4 degrees of freedom has a closed form: two-sided p of a correlation over
    six points."""
    return 1 - 1.5 * abs(r) + 0.5 * abs(r) ** 3


# -- the p-value again
# -------------------------------------------------------------------------------------------------


@each("r", [-0.943, -0.2, 0.0, 0.14, 0.5, 0.8114, 0.999])
@each("statistic", ["pearson", "spearman"])
def test_p_over_six_points_is_that_of_the_closed_form(statistic: str, r: float) -> None:
    found = one(statistic, f"{r:.4f}")
    assert found["p_t"] == pytest.approx(p_of_six(r), abs=1e-12)
    assert found["p_low"] == pytest.approx(p_of_six(min(abs(r) + 0.0005, 1)), abs=1e-12)
    assert found["p_high"] == pytest.approx(p_of_six(max(abs(r) - 0.0005, 0)), abs=1e-12)


def test_p_is_scipys_on_plain_data() -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 9))
    for statistic, test in (("pearson", pearsonr), ("spearman", spearmanr)):
        r, p = test(x, y)
        assert one(statistic, float(r), n=9)["p_t"] == pytest.approx(p, abs=1e-12)


@pytest.mark.parametrize(
    ("value", "p"),
    [("0.829", 42 / 720), ("-0.829", 42 / 720), ("0.943", 12 / 720), ("1.000", 2 / 720)],
)
def test_exact_p_of_spearman_counts_orders(value: str, p: float) -> None:
    first = np.arange(6)
    rho = [1 - 6 * ((first - np.array(order)) ** 2).sum() / 210 for order in permutations(range(6))]
    assert np.mean(np.abs(rho) >= abs(float(value)) - 0.001) == pytest.approx(p)
    assert one("spearman", value)["p_exact"] == pytest.approx(p)


def test_pearson_has_no_exact_p_and_many_points_have_none_either() -> None:
    assert isnan(one("pearson", "0.829")["p_exact"])
    assert one("spearman", "1.000", n=8)["p_exact"] == pytest.approx(2 / 40_320)
    many = one("spearman", "0.500", "0.117", 11)
    assert (
        isnan(many["p_exact"])
        and many["reason"] == "no exact p above 8 points"
        and many["fits"] == "t"
    )


# -- rounding
# --------------------------------------------------------------------------------------------------


def test_the_digits_that_stand_there_say_how_far_a_value_was_rounded() -> None:
    wide, narrow = one(value="0.14"), one(value="0.140")
    assert wide["p_t"] == narrow["p_t"]
    assert wide["p_high"] == pytest.approx(p_of_six(0.135)) and narrow["p_high"] == pytest.approx(
        p_of_six(0.1395)
    )


def test_a_float_counts_the_digits_of_its_shortest_form() -> None:
    assert one(value=0.14)["p_high"] == one(value="0.14")["p_high"] != one(value="0.140")["p_high"]
    assert one(value=0.141)["p_high"] == one(value="0.141")["p_high"]
    assert one(value=1.0)["p_high"] == one(value="1.000")["p_high"] == one(value=1)["p_high"]


def test_no_value_is_more_exact_than_the_given_rounding() -> None:
    assert one(value="0.14159")["p_high"] == pytest.approx(p_of_six(0.14159 - 0.0005))
    assert one(value="0.14159", rounding=0)["p_high"] == pytest.approx(p_of_six(0.14159 - 0.000005))
    assert one(value="0.14159", rounding=0.01)["p_high"] == pytest.approx(p_of_six(0.13159))


@pytest.mark.parametrize(
    ("p", "fits"),
    [("0.047", "neither"), ("0.048", "t"), ("0.053", "t"), ("0.054", "neither"), ("0.05", "t")],
)
def test_p_fits_within_its_own_rounding_and_that_of_the_value(p: str, fits: str) -> None:
    # 0.81 is anything from 0.805 to 0.815, whose p is 0.0532 to 0.0482
    assert (round(p_of_six(0.815), 4), round(p_of_six(0.805), 4)) == (0.0482, 0.0533)
    assert one(value="0.81", p_printed=p)["fits"] == fits


def test_how_far_apart_is_measured_from_the_nearer_end_beyond_rounding() -> None:
    found = one(value="0.807", p_printed="0.137")
    assert found["fits"] == "neither" and found["apart"] == pytest.approx(0.1365 - p_of_six(0.8065))
    below = one(value="0.807", p_printed="0.010")
    assert below["apart"] == pytest.approx(p_of_six(0.8075) - 0.0105)
    assert one(value="0.807", p_printed="0.052")["apart"] == 0
    assert one(value="0.900", p_printed="<0.01")["apart"] == pytest.approx(p_of_six(0.9005) - 0.01)
    assert one(value="0.900", p_printed=">0.05")["apart"] == pytest.approx(0.05 - p_of_six(0.8995))


# -- what the printed p belongs to
# -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statistic", "value", "p", "fits"),
    [
        ("spearman", "0.829", "0.042", "t"),
        ("spearman", "0.829", "0.058", "exact"),
        ("spearman", "0.829", "0.06", "exact"),
        ("spearman", "0.371", "0.5", "t and exact"),
        ("pearson", "0.829", "0.058", "neither"),
        ("pearson", "0.620", "0.095", "one-sided t"),
        ("pearson", "-0.620", "0.189", "t"),
    ],
)
def test_the_test_that_a_printed_p_fits_is_named(
    statistic: str, value: str, p: str, fits: str
) -> None:
    assert one(statistic, value, p)["fits"] == fits


@each(
    ("p", "fits"),
    [
        ("<0.05", "t"), ("<=0.05", "t"), ("≤ 0.05", "t"), ("p < .05", "t"), ("P=0.042", "t"),
        ("<0.001", "neither"), (">0.05", "exact"), (">= 0.04", "t and exact"), ("n.s.", "exact"),
        ("ns", "exact"), (">0.2", "neither"), (0.042, "t"),
    ],
)  # fmt: skip
def test_thresholds_are_read_and_compared(p: object, fits: str) -> None:
    # rho 0.829 over six points: 0.042 by t, 0.058 exactly
    assert one("spearman", "0.829", p)["fits"] == fits


def test_a_threshold_is_strict_where_it_is_printed_so() -> None:
    exact = 12 / 720  # 0.943, where t gives 0.0048
    assert one("spearman", "0.943", f">{exact}", rounding=0.0005)["fits"] == "neither"
    assert one("spearman", "0.943", f">={exact}")["fits"] == "exact"
    assert (
        one("pearson", "0.000", "<1")["fits"] == "t"
        and one("pearson", "0.000", ">1")["fits"] == "neither"
    )
    assert one("pearson", "0.000", ">1")["apart"] > 0


def test_not_significant_means_above_the_given_alpha() -> None:
    assert one("pearson", "0.900", "n.s.")["fits"] == "neither"  # p 0.0145
    assert one("pearson", "0.900", "n.s.", alpha=0.01)["fits"] == "t"


@pytest.mark.parametrize(
    ("value", "p", "n", "fits_n"),
    [
        ("0.90", "0.04", 6, "5"),
        ("0.900", "0.001", 6, "9"),
        ("0.500", "0.01", 20, "24 to 29"),
        ("0.300", "0.060", 20, "40"),
    ],
)
def test_the_numbers_of_points_at_which_it_would_fit_are_found(
    value: str, p: str, n: int, fits_n: str
) -> None:
    fitting = [k for k in range(3, 41) if one(value=value, p_printed=p, n=k)["fits"] == "t"]
    assert " to ".join(map(str, dict.fromkeys([fitting[0], fitting[-1]]))) == fits_n
    assert one(value=value, p_printed=p, n=n)["fits_n"] == fits_n


def test_fitting_points_are_those_among_the_given_ones() -> None:
    assert (
        fitting_points("0.90", "0.04", range(3, 9)) == [5]
        and fitting_points("0.90", "0.04", [6, 7]) == []
    )
    assert fitting_points("0.90", "<0.05", range(3, 8)) == [5, 6, 7]
    assert (
        fitting_points("0.90", None, range(3, 8)) == [] == fitting_points(None, "0.04", range(3, 8))
    )
    with pytest.raises(ValueError, match="'p_printed'.*'much'"):
        fitting_points("0.90", "much", [6])


def test_the_value_that_has_the_printed_p_has_it() -> None:
    found = one(value="0.807", p_printed="0.137")
    assert p_of_six(found["value_of_p"]) == pytest.approx(0.137) and found["fits_n"] == ""
    assert (
        one(value="0.807", p_printed="0")["value_of_p"] == 1
        and one(value="0.9", p_printed="1")["value_of_p"] == 0
    )
    fitting = one(value="0.807", p_printed="0.052")
    assert isnan(fitting["value_of_p"]) and fitting["fits_n"] == ""


# -- values, signs, families
# -------------------------------------------------------------------------------------------


@each(
    ("value", "n", "attainable", "nearest"),
    [
        ("0.943", 6, "yes", ""), ("-0.943", 6, "yes", ""), ("1.000", 6, "yes", ""),
        ("0.042", 6, "no", "0.029, 0.086"), ("0.500", 6, "only with ties", "0.486, 0.543"),
        ("-0.042", 6, "no", "-0.086, -0.029"), ("0.995", 6, "no", "0.943, 1.000"),
        ("0.5", 6, "yes", ""), ("0.571", 7, "yes", ""), ("0.500", 3, "yes", ""),
        ("0.013", 8, "not without ties", "0.000, 0.024"), ("0.987", 7, "no", "0.964, 1.000"),
    ],
)  # fmt: skip
def test_a_spearman_over_few_points_takes_few_values(
    value: str, n: int, attainable: str, nearest: str
) -> None:
    found = one("spearman", value, n=n)
    assert (found["attainable"], found["nearest"]) == (attainable, nearest)
    assert one("pearson", value, n=n)["attainable"] == ""


def test_ties_that_make_a_value_attainable_can_be_shown() -> None:
    assert spearmanr([1, 2, 2, 3, 4, 5], [2, 4, 1, 3, 3, 5])[0] != 0
    reached = {
        round(spearmanr(a, b)[0], 3)
        for a in ([1, 1, 1, 2, 2, 2], [1, 2, 3, 4, 5, 5])
        for b in permutations([1, 1, 1, 2, 2, 2])
    }
    tied = sorted(
        v for v in reached if v > 0 and one("spearman", f"{v:.3f}")["attainable"] != "yes"
    )
    assert tied and {one("spearman", f"{v:.3f}")["attainable"] for v in tied} == {"only with ties"}


@pytest.mark.parametrize(
    ("value", "sign"),
    [("-0.5", "negative"), ("−0.5", "negative"), ("0.5", ""), ("0", ""), ("-0.000", "")],
)
def test_negative_values_are_marked(value: str, sign: str) -> None:
    assert one(value=value)["sign"] == sign


def test_holm_and_benjamini_hochberg_over_all_rows_or_within_families() -> None:
    # p over six points: 0.0145, 0.0417 (0.8282...), 0.104, with the middle one in a family of its
    # own
    rows = table(
        ("pearson", "0.900", None, 6), ("pearson", "0.950", None, 6), ("pearson", "0.700", None, 6)
    ).assign(set=["a", "b", "a"])
    p = [p_of_six(r) for r in (0.9, 0.95, 0.7)]
    found = audit_correlations(rows)
    assert found["p_holm"].to_list() == pytest.approx([2 * p[0], 3 * p[1], p[2]])
    assert found["p_bh"].to_list() == pytest.approx([1.5 * p[0], 3 * p[1], p[2]])
    within = audit_correlations(rows, family="set")
    assert within["p_holm"].to_list() == pytest.approx([2 * p[0], p[1], p[2]])
    assert audit_correlations(rows, family=["set", "n"])["p_bh"].to_list() == pytest.approx(
        [2 * p[0], p[1], p[2]]
    )


def test_a_missing_value_is_no_test_in_a_family() -> None:
    found = audit_correlations(table(("pearson", "0.900", None, 6), ("pearson", None, "0.2", 6)))
    assert found["p_holm"][0] == pytest.approx(p_of_six(0.9)) and isnan(found["p_holm"][1])


# -- tables and cells
# --------------------------------------------------------------------------------------------------


def test_further_columns_index_and_order_are_kept_and_the_input_is_not_changed() -> None:
    given = (
        table(("spearman", "0.943", "<0.05", 6), ("Pearson", 0.9, None, 6.0))
        .assign(method=["b", "a"])
        .set_axis([7, 7])
    )
    before = given.copy()
    found = audit_correlations(given)
    pd.testing.assert_frame_equal(given, before)
    assert list(found.index) == [7, 7] and list(found.columns) == [*given.columns, *audit.FOUND]
    pd.testing.assert_frame_equal(found[given.columns], given)


@each(
    ("value", "p", "n", "reason"),
    [
        (None, "0.2", 6, "no value"), ("", "0.2", 6, "no value"),
        ("0.5", "0.2", None, "no number of points"), ("0.5", "0.2", 2, "fewer than 3 points"),
        ("0.5", None, 6, "no printed p"), ("0.5", float("nan"), 6, "no printed p"),
        ("0.5", pd.NA, 6, "no printed p"), ("0.5", "0.2", 6, ""),
    ],
)  # fmt: skip
def test_what_cannot_be_computed_is_missing_with_its_reason(value, p, n, reason: str) -> None:
    found = one("pearson", value, p, n)
    assert found["reason"] == reason
    if reason and reason != "no printed p":
        assert (
            found[["p_t", "p_low", "p_high", "p_exact", "apart", "p_holm", "p_bh"]].isna().all()
            and found["fits"] == ""
        )
    elif reason:
        assert (
            found["p_t"] == pytest.approx(p_of_six(0.5))
            and isnan(found["apart"])
            and found["fits"] == ""
        )


def test_no_rows_give_no_rows() -> None:
    found = audit_correlations(table())
    assert len(found) == 0 and set(audit.FOUND) <= set(found.columns)
    assert len(audit_correlations(table().assign(set=[]), family="set")) == 0


@each(
    ("column", "cell", "words"),
    [
        ("value", "1.2", "a number from -1 to 1"), ("value", "high", "a number from -1 to 1"),
        ("value", np.inf, "from -1 to 1"), ("value", "nan", "from -1 to 1"),
        ("value", True, "from -1 to 1"),
        ("statistic", "kendall", "'pearson' or 'spearman'"),
        ("statistic", None, "'pearson' or 'spearman'"),
        ("p_printed", "1.5", "from 0 to 1"), ("p_printed", "-0.1", "0 to 1"),
        ("p_printed", "small", "'<0.001'"), ("p_printed", "<", "'<0.001'"),
        ("n", 5.5, "a whole number"), ("n", 0, "at least 1"),
        ("n", "six", "a whole number"), ("n", np.inf, "a whole number"),
    ],
)  # fmt: skip
def test_a_bad_cell_is_refused_with_row_column_value_and_what_is_allowed(
    column: str, cell: object, words: str
) -> None:
    rows = (
        table(("pearson", "0.5", "0.2", 6), ("pearson", "0.5", "0.2", 6))
        .astype(object)
        .set_axis(["first", "second"])
    )
    rows.loc["second", column] = cell
    with pytest.raises(ValueError, match="allowed") as raised:
        audit_correlations(rows)
    for part in ("'second'", repr(column), repr(cell), words):
        assert part in str(raised.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"alpha": 0}, "alpha must lie between 0 and 1; received 0"),
        ({"alpha": 1.0}, "alpha"),
        ({"rounding": -0.1}, "rounding must lie from 0 to below 1; received -0.1"),
        ({"family": "set"}, r"family names \['set'\]"),
    ],
)
def test_bad_options_are_refused(change: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        audit_correlations(table(("pearson", "0.5", "0.2", 6)), **change)


def test_a_table_that_lacks_a_column_or_has_one_of_ours_is_refused() -> None:
    with pytest.raises(ValueError, match=r"it lacks \['n'\]"):
        audit_correlations(table(("pearson", "0.5", "0.2", 6)).drop(columns="n"))
    with pytest.raises(ValueError, match=r"\['p_t'\] itself"):
        audit_correlations(table(("pearson", "0.5", "0.2", 6)).assign(p_t=1))


def test_the_worked_example_does_what_it_shows() -> None:
    (example,) = doctest.DocTestFinder().find(audit_correlations, "audit_correlations", globs={})
    assert len(example.examples) == 5
    assert (
        doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE)
        .run(example)
        .failed
        == 0
    )


# -- how many there were
# -----------------------------------------------------------------------------------------------


def test_every_n_over_which_the_means_can_be_taken() -> None:
    brute = [
        n
        for n in range(1, 61)
        if all(
            any(abs(total / n - mean) <= 0.005 + 1e-9 for total in range(3 * n + 1))
            for mean in (1.33, 2.25)
        )
    ]
    assert attainable_n(["1.33", "2.25"], 60) == brute
    assert attainable_n(["1.33"], 6) == [3, 6] and attainable_n(["1.33", "2.25"], 12) == [12]


def test_zeros_at_the_end_count_in_text() -> None:
    assert (
        attainable_n(["0.5"], 12) == attainable_n([0.5], 12, decimals=1) == [2, 4, 6, 8, 10, 11, 12]
    )  # 5 of 11 are 0.45
    assert attainable_n(["0.50"], 12) == attainable_n([0.5], 12, decimals=2) == [2, 4, 6, 8, 10, 12]
    assert set(attainable_n(["0.50"], 60)) < set(attainable_n(["0.5"], 60))


def test_things_counted_in_pairs_leave_fewer() -> None:
    assert attainable_n(["1.00"], 3) == [1, 2, 3] and attainable_n(["1.00"], 3, step=2) == [2]
    assert attainable_n(["5.20"], 20, step=2) == [
        n for n in range(1, 21) if any(abs(k / n - 5.2) <= 0.005 for k in range(0, 200, 2))
    ]


def test_without_rounding_only_multiples_remain() -> None:
    assert attainable_n(["17.84", "5.20", "18.00", "25.04"], 100, exactly=True) == [25, 50, 75, 100]
    assert 49 in attainable_n(["17.84", "5.20", "18.00", "25.04"], 100)


@pytest.mark.parametrize(
    ("means", "options", "words"),
    [
        ([], {}, "at least one mean"), (["1.0"], {"max_n": 0}, "max_n 0"),
        (["1.0"], {"step": 0}, "step 0"), (["1.0"], {"decimals": -1}, "decimals -1"),
        (["many"], {}, "received 'many'"), ([float("nan")], {}, "received nan"),
        ([float("inf")], {}, "received inf"),
    ],
)  # fmt: skip
def test_bad_means_are_refused(means: list, options: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        attainable_n(means, **options)
