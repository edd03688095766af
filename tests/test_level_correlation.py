"""The figure of correlations over the levels: values and intervals where they belong, chance behind them, reasons below."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgba

from trustlab.plots.level_correlation import BAND, level_correlation, level_correlations
from trustlab.plots.style import INK, label

FAMILIES = {
    "asp": "token",
    "poc": "consistency",
    "medconf": "medconf",
    "ce": "verbalized",
    "information_level": "baseline",
}
PEARSON = {"asp": 0.9, "poc": -0.35, "medconf": 0.97, "ce": np.nan, "information_level": 0.95}
CHANCE = {"pearson": (0.945, 0.77, 0.99), "spearman": (1, 1, 1)}
NAN = float("nan")
pytestmark = pytest.mark.usefixtures("house_style")


def table(few_levels: str = "") -> pd.DataFrame:
    """A metrics table of five methods, one without a value; ``few_levels`` was compared with another band."""
    rows = []
    for metric, factor in (("pearson", 1.0), ("spearman", 0.9)):
        for method, value in PEARSON.items():
            known = not np.isnan(value)
            middle, low, high = CHANCE[metric] if known else (NAN,) * 3
            if method == few_levels and metric == "pearson":
                middle, low, high = 0.95, 0.3, 0.999
            rows.append(
                {
                    "model": "embedded",
                    "dataset": "starter",
                    "method": method,
                    "metric": metric,
                    "level": "across",
                }
                | {
                    "value": factor * value,
                    "low": factor * value - 0.05,
                    "high": factor * value + 0.02,
                    "n": 240,
                    "n_cases": 40,
                }
                | {
                    "chance": middle,
                    "chance_low": low,
                    "chance_high": high,
                    "missing": "" if known else "no confidence: silent",
                }
            )
    rows.append({**rows[0], "metric": "auroc", "level": "pooled"})
    return pd.DataFrame(rows)


def names(ax) -> list[str]:
    return [tick.get_text() for tick in ax.get_yticklabels()]


def words(ax) -> list[str]:
    return [text.get_text() for text in ax.texts]


def marks(ax) -> dict[str, float]:
    """Method name -> where its mark stands."""
    found = {}
    for line in ax.lines:
        if line.get_marker() not in ("", "None", None):
            found[names(ax)[int(line.get_ydata()[0])]] = float(line.get_xdata()[0])
    return found


def bands(ax) -> list[tuple[float, float, float, float]]:
    """Left, right, upper and lower end of each grey rectangle."""
    grey = [
        c
        for c in ax.collections
        if len(c.get_facecolor()) and np.allclose(c.get_facecolor()[0], to_rgba(BAND))
    ]
    boxes = [c.get_paths()[0].get_extents() for c in grey]
    return [tuple(round(float(x), 6) for x in (b.x0, b.x1, b.y0, b.y1)) for b in boxes]


def test_methods_stand_in_order_with_the_missing_one_at_the_bottom_and_its_reason():
    ax = level_correlation(table(), FAMILIES)
    assert names(ax) == [label(m) for m in ("medconf", "information_level", "asp", "poc", "ce")]
    assert marks(ax) == pytest.approx({label(m): v for m, v in PEARSON.items() if m != "ce"})
    assert "missing: silent" in words(ax) and words(ax).count("240") == 4


def test_the_null_band_stands_behind_the_rows_that_have_a_value():
    ax = level_correlation(table(), FAMILIES)
    assert bands(ax) == [(0.77, 0.99, -0.5, 3.5)]
    medians = [
        s
        for c in ax.collections
        if hasattr(c, "get_segments")
        for s in c.get_segments()
        if s[0][0] == s[1][0]
    ]
    assert [s.tolist() for s in medians] == [[[0.945, -0.5], [0.945, 3.5]]]


def test_a_method_over_fewer_levels_has_its_own_band():
    ax = level_correlation(table(few_levels="information_level"), FAMILIES)
    assert bands(ax) == [(0.77, 0.99, -0.5, 0.5), (0.3, 0.999, 0.5, 1.5), (0.77, 0.99, 1.5, 3.5)]


def test_everything_drawn_lies_inside_the_axis():
    for axes in (
        level_correlations(table(), FAMILIES, unordered=0.886),
        [level_correlation(table("asp"), FAMILIES)],
    ):
        for ax in axes:
            low, high = ax.get_xlim()
            held = [
                *marks(ax).values(),
                *(x for band in bands(ax) for x in band[:2]),
                *(s for v in PEARSON.values() for s in [v]),
            ]
            assert all(low < x < high for x in held if not np.isnan(x))


def test_the_pair_keeps_the_order_of_pearson_and_says_what_rising_series_give():
    left, right = level_correlations(table(), FAMILIES, unordered=31 / 35)
    assert left.get_title() == "Pearson's r" and right.get_title() == "Spearman's rho"
    assert sorted(marks(left).values()) == pytest.approx([-0.35, 0.9, 0.95, 0.97])
    by_row = {
        round(line.get_ydata()[0]): line.get_xdata()[0]
        for line in right.lines
        if line.get_marker() not in ("", "None")
    }
    assert by_row == pytest.approx({0: 0.873, 1: 0.855, 2: 0.81, 3: -0.315})
    said = "any rising confidence: 1"
    assert said in words(right) and said not in words(left)
    dotted = [
        line.get_xdata()[0]
        for line in right.lines
        if line.get_linestyle() == ":" and line.get_color() == INK
    ]
    assert sorted(dotted) == pytest.approx([-31 / 35, 31 / 35])
    assert not [line for line in left.lines if line.get_linestyle() == ":"]


def test_rank_correlations_of_rising_confidences_are_told_where_accuracy_dips():
    dipped = table()
    at = dipped["metric"].eq("spearman") & dipped["chance"].notna()
    dipped.loc[at, ["chance", "chance_low", "chance_high"]] = 29 / 35
    assert "any rising confidence: 0.83" in words(level_correlations(dipped, FAMILIES)[1])
    dipped.loc[at & dipped["method"].eq("asp"), ["chance", "chance_low", "chance_high"]] = -0.5
    assert "any rising confidence: −0.5 to 0.83" in words(level_correlations(dipped, FAMILIES)[1])


def test_a_given_axes_is_used():
    _, given = plt.subplots(1, 2)
    assert level_correlations(table(), FAMILIES, axes=list(given)) == tuple(given)
    assert level_correlation(table(), FAMILIES, "spearman", ax=given[0]) is given[0]


def test_a_table_without_any_value_shows_the_reasons_and_no_band():
    gone = table()
    gone[["value", "low", "high", "chance", "chance_low", "chance_high"]] = NAN
    gone["missing"] = "fewer than 3 levels"
    left, right = level_correlations(gone, FAMILIES)
    assert (
        not bands(left)
        and not marks(right)
        and words(left).count("withheld: fewer than 3 levels") == 5
    )


def test_bad_tables_are_refused():
    for call, message in (
        (lambda: level_correlation(table(), FAMILIES, "kendall"), "kendall"),
        (lambda: level_correlation(table().drop(columns="chance"), FAMILIES), "chance"),
        (lambda: level_correlation(table()[table()["metric"] == "auroc"], FAMILIES), "across"),
        (
            lambda: level_correlation(pd.concat([table(), table().assign(model="n")]), FAMILIES),
            "one model",
        ),
        (lambda: level_correlations(table(), {}), "asp|medconf"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
