"""Figures drawn from small made-up tables: labels, order, legible, the same bytes every time."""

import subprocess
import sys
from io import BytesIO

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from drawn_figures import Drawn, assert_legible, pixels_of, rendered, seen, whole_of
from each import each
from matplotlib.colors import to_rgb
from matplotlib.text import Text

from trustlab.plots import (
    FAMILY_COLOURS,
    FAMILY_LABELS,
    FAMILY_MARKERS,
    METHOD_LABELS,
    accuracy_by_level,
    accuracy_by_set,
    caption,
    confidence_and_accuracy,
    discrimination,
    discrimination_by_set,
    discrimination_pair,
    file_ending,
    label,
    reliability,
    save_figure,
)
from trustlab.plots.auroc import REPEATED
from trustlab.plots.style import FEW, spread, text_colour, told_n

LEVELS = (1, 20, 40, 60, 80, 100)
ACCURACY = (0.2, 0.45, 0.6, 0.72, 0.8, 0.84)
FAMILIES = {
    "asp": "token",
    "msp": "token",
    "poc": "consistency",
    "ce": "verbalized",
    "medconf": "medconf",
}
FAMILIES |= {"random": "baseline", "rdc": "trust"}
POOLED = {
    "asp": 0.7,
    "msp": 0.55,
    "poc": 0.8,
    "ce": np.nan,
    "medconf": 0.9,
    "random": 0.5,
    "rdc": np.nan,
}
WITHIN = {
    "asp": 0.66,
    "msp": 0.52,
    "poc": 0.6,
    "ce": np.nan,
    "medconf": 0.75,
    "random": np.nan,
    "rdc": np.nan,
}
LONG = (
    "the backend does not provide distributions over the whole vocabulary, "
    "only the twenty most probable tokens, a note"
)
REASONS = {
    "ce": "no confidence: no number in square brackets",
    "random": "fewer than 10 correct or wrong",
    "rdc": LONG,
}
PLACE = {"model": "embedded", "dataset": "starter (structured)", "n_cases": 120, "n_rows": 1440}
pytestmark = pytest.mark.usefixtures("house_style")


def metrics_table() -> pd.DataFrame:
    rows = []

    def add(method, metric, level, value):
        known = not np.isnan(value)
        rows.append(
            {
                "model": "embedded",
                "dataset": "starter",
                "method": method,
                "metric": metric,
                "value": value,
                "level": str(level),
            }
            | {
                "low": value - 0.05,
                "high": value + 0.05,
                "n": 720 if known else 0,
                "n_cases": 120,
                "n_missing": 0,
            }
            | {"missing": "" if known else REASONS[method]}
        )

    for level, value in reversed(
        list(zip(LEVELS, ACCURACY, strict=True))
    ):  # out of order on purpose
        add("", "accuracy", level, value)
        for i, method in enumerate(FAMILIES):
            add(
                method,
                "mean_confidence",
                level,
                np.nan if method == "ce" else 0.5 * value + 0.3 + 0.002 * i,
            )
    add("", "accuracy", "pooled", 0.6)
    for metric in ("auroc", "auprc"):
        for level, values in (("pooled", POOLED), ("within", WITHIN)):
            for method, value in values.items():
                add(method, metric, level, value)
    return pd.DataFrame(rows)


def several_sets() -> pd.DataFrame:
    """Two models, the second with a long name, on three data sets.

    On the last, everything is withheld.
    """
    parts = []
    for model in ("embedded", "a-hub/some-model-with-a-long-name-1.5B"):
        for dataset, n_cases in (
            ("starter", 120),
            ("starter-dialogue", 32),
            ("starter-report", 30),
        ):
            part = metrics_table().assign(model=model, dataset=dataset, n_cases=n_cases)
            if n_cases == 30:
                gone = part["metric"].isin(["auroc", "auprc"])
                part.loc[gone, ["value", "low", "high"]] = np.nan
                part.loc[gone, "missing"] = "fewer than 10 correct or wrong"
            parts.append(part)
    return pd.concat(parts, ignore_index=True)


def reliability_table(methods=("asp", "msp", "poc", "ce", "medconf")) -> pd.DataFrame:
    centres = np.array([0.9, 0.1, 0.5])
    bins = {
        "confidence": centres,
        "value": centres * 0.8,
        "low": centres * 0.7,
        "high": centres * 0.9,
        "n": [100, 40, 60],
        "n_cases": [30, 20, 25],
    }
    return pd.concat(
        [pd.DataFrame(bins).assign(method=method) for method in methods], ignore_index=True
    )


ORDER = ["poc", "asp", "ce", "msp", "medconf", "random", "rdc"]


def halved() -> pd.DataFrame:
    """Several sets, on which the second model is right half as often."""
    table = several_sets()
    second = (table["model"] != "embedded") & (table["metric"] == "accuracy")
    table.loc[second, "value"] *= 0.5
    return table


DRAWINGS = {
    "accuracy": lambda: accuracy_by_level(metrics_table()),
    "auroc": lambda: discrimination(metrics_table(), FAMILIES),
    "auprc": lambda: discrimination(metrics_table(), FAMILIES, "auprc", "within", prevalence=0.61),
    "pair": lambda: discrimination_pair(metrics_table(), FAMILIES),
    "confidence": lambda: confidence_and_accuracy(metrics_table(), FAMILIES, list(FAMILIES)),
    "reliability": lambda: reliability(reliability_table(), FAMILIES),
    "accuracy by set": lambda: accuracy_by_set(halved()),
    "auroc by set": lambda: discrimination_by_set(several_sets(), FAMILIES, ORDER),
    "one set": lambda: discrimination_by_set(metrics_table(), FAMILIES, ["poc", "asp"]),
}


@pytest.fixture(scope="module")
def drawn() -> Drawn:
    return Drawn(DRAWINGS, **PLACE, note="one long remark about this figure " * 6)


def words_of(holder) -> list[str]:
    return [
        text.get_text() for text in holder.findobj(Text) if text.get_visible() and text.get_text()
    ]


@each("name", DRAWINGS)
def test_no_text_is_clipped_or_overlaps(name, drawn):
    figure = drawn.figure(name)
    assert drawn.notes[name] in seen(figure)
    assert_legible(figure)


def test_what_is_not_legible_is_found():
    figure = plt.figure()
    for x in (0.2, 0.4, 0.6, 0.8):
        figure.text(x, 0.5, "some words")
    assert_legible(figure)
    beyond = figure.text(1.1, 0.5, "outside")
    assert_legible(figure)  # the image grows with its words
    beyond.set_in_layout(False)
    with pytest.raises(AssertionError, match="is cut off"):
        assert_legible(figure)
    beyond.remove()
    line = plt.Line2D([0.5, 1.5], [0.51, 0.51])
    line.set_in_layout(False)
    figure.add_artist(line)
    with pytest.raises(AssertionError, match="something is cut off"):
        assert_legible(figure)
    line.remove()
    figure.text(0.21, 0.5, "other words")
    with pytest.raises(AssertionError, match="'some words' overlaps 'other words'"):
        assert_legible(figure)


@each("name", ["accuracy", "auroc", "reliability", "one set"])
def test_a_figure_drawn_and_saved_again_gives_the_same_bytes(name, drawn, tmp_path):
    again = Drawn(DRAWINGS, **drawn.told)
    saved = []
    for folder, figure in (("a", drawn.figure(name)), ("b", again.figure(name))):
        paths = save_figure(figure, metrics_table(), "x", tmp_path / "new" / folder)
        saved.append([path.read_bytes() for path in paths])
    assert saved[0] == saved[1]
    png, svg, _ = saved[0]
    np.testing.assert_array_equal(pixels_of(BytesIO(png)), rendered(figure, whole_of(figure)))
    assert b"Software" not in png and b"dc:date" not in svg and b"dc:creator" not in svg
    assert b"research only, not for clinical use</text>" in svg  # text stays text


def test_saved_table_comes_back(tmp_path):
    table = pd.DataFrame(
        {
            "level": ["1", "pooled"],
            "value": [0.12345678, -1e-9],
            "n": [3, 4],
            "missing": ["", "a, b"],
        }
    )
    figure = plt.figure()
    paths = save_figure(figure, table, "accuracy", tmp_path)
    assert [path.name for path in paths] == ["accuracy.png", "accuracy.svg", "accuracy.csv"]
    assert paths[2].read_bytes() == b'level,value,n,missing\n1,0.123457,3,\npooled,0.0,4,"a, b"\n'
    assert table["value"].iloc[0] == 0.12345678
    pairs = pd.DataFrame({"first": ["asp", "poc"], "second": ["poc", "ce"], "value": [0.1, np.nan]})
    path = save_figure(figure, pairs, "pairs", tmp_path)[2]
    pd.testing.assert_frame_equal(pd.read_csv(path), pairs, atol=5.1e-7, rtol=0)
    for wrong in ("", "a/b", "../x"):
        with pytest.raises(ValueError, match="name is"):
            save_figure(figure, table, wrong, tmp_path)


NOTHING = {
    "no rows": (pd.DataFrame({"value": [], "missing": []}), "the table has no rows"),
    "no value": (
        pd.DataFrame({"value": [np.nan] * 2, "missing": ["fewer than 10 correct or wrong"] * 2}),
        "fewer than 10 correct or wrong",
    ),
    "no reason": (pd.DataFrame({"difference": [np.nan]}), "no row has a value"),
}


@pytest.mark.parametrize("name", NOTHING)
def test_a_figure_without_anything_to_draw_is_not_saved_and_says_why(name, tmp_path, capsys):
    table, why = NOTHING[name]
    figure = plt.figure()
    assert save_figure(figure, table, "auroc", tmp_path) is None
    assert not list(tmp_path.iterdir()) and not plt.fignum_exists(figure.number)
    assert capsys.readouterr().out == f"Nothing to draw for auroc: {why}\n"


def test_a_table_without_a_column_of_values_is_saved(tmp_path):
    assert save_figure(plt.figure(), pd.DataFrame({"criterion": ["fever"]}), "evidence", tmp_path)


def test_a_mark_of_fewer_than_ten_cases_is_hollow_and_the_caption_says_so(drawn):
    table = metrics_table()
    table.loc[table["method"] == "asp", "n_cases"] = 9
    ax = discrimination(table, FAMILIES)
    hollow = [line for line in ax.lines if line.get_label() == FEW]
    assert [line.get_ydata()[0] for line in hollow] == [2]  # MedConf and PoC stand above ASP
    assert to_rgb(hollow[0].get_markerfacecolor()) == (1, 1, 1)
    assert to_rgb(hollow[0].get_markeredgecolor()) == to_rgb(FAMILY_COLOURS["token"])
    assert "hollow: fewer than 10 cases" in caption(ax, **PLACE).get_text().replace("\n", " ")
    assert drawn["auroc"] and "hollow" not in drawn.notes["auroc"].get_text()


def test_the_numbers_behind_several_marks_are_told_as_a_range():
    assert told_n([24, 8.0, 24, float("nan")]) == "8 to 24" and told_n([24, 24]) == "24"
    assert told_n([]) == "" and told_n([1200]) == "1,200"


def test_families_differ_in_colour_and_marker_and_their_text_is_legible():
    assert set(FAMILY_COLOURS) == set(FAMILY_MARKERS) == set(FAMILY_LABELS)
    assert set(FAMILY_COLOURS) == {
        "token",
        "consistency",
        "verbalized",
        "medconf",
        "baseline",
        "trust",
    }
    assert len(set(FAMILY_COLOURS.values())) == len(set(FAMILY_MARKERS.values())) == 6
    okabe_ito = {
        "#000000",
        "#E69F00",
        "#56B4E9",
        "#009E73",
        "#F0E442",
        "#0072B2",
        "#D55E00",
        "#CC79A7",
    }
    assert set(FAMILY_COLOURS.values()) <= okabe_ito
    for family in FAMILY_COLOURS:
        linear = [
            c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in text_colour(family)
        ]
        assert 1.05 / (np.dot([0.2126, 0.7152, 0.0722], linear) + 0.05) >= 4.5  # WCAG 2.1, level AA


def test_labels_are_short_unique_and_fall_back():
    assert label("msp") == "MSP (as printed: largest token)"
    assert (label("asp"), label("poc"), label("mc_se"), label("p_true")) == (
        "ASP",
        "PoC",
        "MC-SE",
        "P(True)",
    )
    assert label("my_new_method") == "My new method"
    assert len(set(METHOD_LABELS.values())) == len(METHOD_LABELS)
    assert max(map(len, METHOD_LABELS.values())) <= 32


def test_caption_says_what_was_measured_and_stands_below():
    ax = accuracy_by_level(metrics_table())
    text = caption(ax, **PLACE, note="a_$note$")
    assert text.get_text().replace("\n", " · ") == (
        "model embedded (a very small model) · data starter (structured) · 120 cases, 1,440 answers"
        " · 95 % case-bootstrap interval · a_$note$"
        " · research only, not for clinical use"
    )
    assert text.get_window_extent().y1 < ax.get_tightbbox().y0
    assert "interval" not in caption(ax, **PLACE, interval="").get_text()


def test_a_caption_names_the_levels_once_and_in_order():
    wanted = {
        (): "",
        (100,): " · level 100 %",
        (100, 1, 20): " · levels 1, 20, 100 %",
        (20, 20): " · level 20 %",
    }
    ax = accuracy_by_level(metrics_table())
    told = {levels: caption(ax, **PLACE, levels=levels).get_text() for levels in wanted}
    around = "1,440 answers", " · 95 % case-bootstrap interval"
    lacking = [q for q, w in wanted.items() if w.join(around) not in told[q].replace("\n", " · ")]
    assert lacking == []


def test_a_caption_can_count_something_else_than_cases_and_answers():
    ax = accuracy_by_level(metrics_table())
    text = caption(ax, model="m", dataset="d", counts="228 coefficients", interval="").get_text()
    assert (
        text.replace("\n", " · ")
        == "model m · data d · 228 coefficients · research only, not for clinical use"
    )
    with pytest.raises(ValueError, match="n_cases and n_rows, or counts"):
        caption(ax, model="m", dataset="d", n_cases=3)


def test_accuracy_by_level(drawn):
    ax = drawn["accuracy"]
    (line,) = (line for line in ax.lines if len(line.get_xdata()) > 1)
    np.testing.assert_allclose(line.get_xdata(), LEVELS)
    np.testing.assert_allclose(line.get_ydata(), 100 * np.array(ACCURACY))
    assert [text.get_text() for text in ax.texts] == ["20", "45", "60", "72", "80", "84"]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == [str(level) for level in LEVELS]
    assert "percent" in ax.get_xlabel() and "statements" in ax.get_xlabel()
    assert ax.get_ylabel() == "Accuracy (percent of answers)"
    (band,) = ax.collections
    at_one = band.get_paths()[0].vertices
    assert sorted({round(float(y)) for x, y in at_one if x == 1}) == [15, 25]


def test_discrimination_sorts_marks_and_lists_the_missing(drawn):
    ax = drawn["auroc"]
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    assert names == [
        "MedConf",
        "PoC",
        "ASP",
        "MSP (as printed: largest token)",
        "Random",
        "CE",
        "RDC",
    ]
    assert ax.yaxis_inverted()
    dots = {line.get_ydata()[0]: line for line in ax.lines if len(line.get_xdata()) == 1}
    assert {y: line.get_xdata()[0] for y, line in dots.items()} == {
        0: 0.9,
        1: 0.8,
        2: 0.7,
        3: 0.55,
        4: 0.5,
    }
    for y, family in enumerate(["medconf", "consistency", "token", "token", "baseline"]):
        assert (
            to_rgb(dots[y].get_color()) == to_rgb(FAMILY_COLOURS[family])
            and dots[y].get_marker() == FAMILY_MARKERS[family]
        )
    whiskers = {c.get_segments()[0][0, 1]: c.get_segments()[0][:, 0] for c in ax.collections}
    np.testing.assert_allclose(whiskers[2], [0.65, 0.75])
    words = " ".join(words_of(ax)).replace("\n", " ")
    assert (
        "missing: no number in square brackets" in words
        and "missing: the backend does not provide" in words
    )
    assert "chance 0.50" in words and "720" in words
    assert ax.get_xlabel() == "AUROC pooled over levels, 0 to 1"
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == list(FAMILY_LABELS.values())
    low, high = ax.get_xlim()
    assert low < 0.45 and high > 0.95


def test_discrimination_reference_line_of_auprc_is_given_not_assumed(drawn):
    words = words_of(drawn["auprc"])
    assert "chance 0.61" in words and "withheld: fewer than 10 correct or wrong" in words
    without = discrimination(metrics_table(), FAMILIES, "auprc")
    assert not [word for word in words_of(without) if "chance" in word]


def test_discrimination_pair_shares_the_order_within_level(drawn):
    left, right = drawn["pair"]
    names = [tick.get_text() for tick in left.get_yticklabels()]
    assert (
        names[:4] == ["MedConf", "ASP", "PoC", "MSP (as printed: largest token)"]
        and names[4] == "Random"
    )
    assert left.get_ylim() == right.get_ylim() and left.get_xlim() == right.get_xlim()
    assert (left.get_title(), right.get_title()) == (
        "Pooled over levels",
        "Within level (mean over levels)",
    )

    def dots(ax, grey):
        single = [line for line in ax.lines if len(line.get_xdata()) == 1]
        return {
            line.get_ydata()[0]: line.get_xdata()[0]
            for line in single
            if (line.get_mfc() == REPEATED["mfc"]) == grey
        }

    assert dots(left, False) == {0: 0.9, 1: 0.7, 2: 0.8, 3: 0.55, 4: 0.5}
    assert dots(right, False) == {0: 0.75, 1: 0.66, 2: 0.6, 3: 0.52}
    assert dots(right, True) == {0: 0.9, 1: 0.7, 2: 0.8, 3: 0.55} and not dots(left, True)
    given = plt.subplots(1, 2)[1]
    assert list(discrimination_pair(metrics_table(), FAMILIES, axes=list(given))) == list(given)


def test_confidence_and_accuracy():
    ax = confidence_and_accuracy(metrics_table(), FAMILIES, ["asp", "msp", "poc", "ce"])
    lines = {line.get_label(): line for line in ax.lines if len(line.get_xdata()) > 1}
    assert list(lines) == ["Accuracy", "ASP", "MSP (as printed: largest token)", "PoC"]
    np.testing.assert_allclose(lines["ASP"].get_ydata(), [100 * (0.5 * a + 0.3) for a in ACCURACY])
    assert (
        lines["ASP"].get_color()
        == lines["MSP (as printed: largest token)"].get_color()
        == FAMILY_COLOURS["token"]
    )
    assert lines["ASP"].get_linestyle() != lines["MSP (as printed: largest token)"].get_linestyle()
    assert lines["Accuracy"].get_linewidth() > lines["ASP"].get_linewidth()
    assert "No value, not drawn: CE" in words_of(ax)
    assert {"Accuracy (n 720 a level)", "ASP"} <= set(words_of(ax))
    few = metrics_table()
    few.loc[few["method"] == "asp", "n"] = 500
    assert "ASP (n 500)" in words_of(confidence_and_accuracy(few, FAMILIES, ["asp", "msp"]))
    assert "(percent)" in ax.get_ylabel() and "percent" in ax.get_xlabel()
    with pytest.raises(ValueError, match="nothing_such"):
        confidence_and_accuracy(metrics_table(), FAMILIES, ["nothing_such"])


def test_reliability_has_one_panel_per_method(drawn):
    panels = drawn["reliability"]
    assert [ax.get_title().splitlines()[0] for ax in panels] == [
        "ASP",
        "MSP (as printed:",
        "PoC",
        "CE",
        "MedConf",
    ]
    assert panels[0].get_title() == "ASP\nn 200"
    diagonal, curve = panels[0].lines[:2]
    assert list(diagonal.get_xdata()) == list(diagonal.get_ydata()) == [0, 100]
    np.testing.assert_allclose(curve.get_xdata(), [10, 50, 90])
    np.testing.assert_allclose(curve.get_ydata(), [8, 40, 72])
    assert (panels[0].get_ylabel(), panels[4].get_xlabel()) == (
        "Accuracy (percent)",
        "Mean confidence (percent)",
    )
    sizes = [line.get_markersize() for line in panels[0].lines[2:]]
    assert sizes[2] > sizes[1] > sizes[0]  # 100, 60 and 40 answers
    with pytest.raises(ValueError, match="5 methods"):
        reliability(reliability_table(), axes=[plt.subplots()[1]])


def test_accuracy_by_set_has_a_row_a_model_and_a_column_a_data_set(drawn):
    panels = drawn["accuracy by set"]
    assert len(panels) == 6
    assert [ax.get_title().splitlines()[0] for ax in panels] == [
        "starter",
        "starter-dialogue",
        "starter-report",
    ] * 2
    assert panels[1].get_title().splitlines()[1:] == ["embedded", "n 32 cases a level"]
    lines = {line.get_label(): list(line.get_ydata()) for line in panels[4].lines}
    np.testing.assert_allclose(lines["Accuracy"], [50 * a for a in ACCURACY])
    np.testing.assert_allclose(lines["Accuracy of embedded"], [100 * a for a in ACCURACY])
    alone = accuracy_by_set(metrics_table())
    assert len(alone) == 1 and sum(len(line.get_xdata()) > 1 for line in alone[0].lines) == 1
    table = several_sets()
    lost = (table["model"] != "embedded") & (table["dataset"] == "starter")
    with pytest.raises(ValueError, match="every model needs rows on every data set"):
        accuracy_by_set(table[~lost])


def test_discrimination_by_set_keeps_one_order_and_one_scale_and_says_what_is_withheld(drawn):
    panels = drawn["auroc by set"]
    assert [tick.get_text() for tick in panels[3].get_yticklabels()] == [label(m) for m in ORDER]
    assert len({ax.get_xlim() for ax in panels}) == len({ax.get_ylim() for ax in panels}) == 1
    assert panels[2].get_title().splitlines() == ["starter-report", "embedded", "n 30 cases"]
    assert words_of(panels[2]).count("withheld: fewer than 10 correct or wrong") == 7
    assert "missing: no number in square brackets" in words_of(panels[0])
    dots = [line.get_xdata()[0] for line in panels[0].lines if len(line.get_xdata()) == 1]
    assert dots == [WITHIN[m] for m in ("poc", "asp", "msp", "medconf")]
    assert panels[5].get_xlabel() == "AUROC within level, 0 to 1"
    with pytest.raises(ValueError, match="nothing_such"):
        discrimination_by_set(several_sets(), FAMILIES, ["poc", "nothing_such"])


def test_a_caption_names_every_model_and_data_set():
    figure = accuracy_by_level(metrics_table()).figure
    many = {"model": ["embedded", "big"], "dataset": ["starter", "table"]}
    words = caption(figure, **PLACE | many).get_text().replace("\n", " ")
    assert words.startswith(
        "models embedded (a very small model), big · data starter, table · 120 cases"
    )


def test_files_of_further_models_carry_their_name():
    models = ["embedded", "a-hub/some model_1.5B", "other"]
    assert [file_ending(model, models) for model in models] == [
        "",
        "_a-hub-some-model-1.5B",
        "_other",
    ]


def test_given_axes_are_used():
    own = plt.subplots()[1]
    assert accuracy_by_level(metrics_table(), ax=own) is own
    own = plt.subplots()[1]
    assert discrimination(metrics_table(), FAMILIES, ax=own) is own
    own = plt.subplots()[1]
    assert confidence_and_accuracy(metrics_table(), FAMILIES, ["asp"], ax=own) is own


def test_wrong_input_is_named():
    table = metrics_table()
    with pytest.raises(ValueError, match="metric is 'brier'"):
        discrimination(table, FAMILIES, "brier")
    with pytest.raises(ValueError, match="level is 'across'"):
        discrimination(table, FAMILIES, level="across")
    with pytest.raises(ValueError, match="None for method 'medconf'"):
        discrimination(
            table, {name: family for name, family in FAMILIES.items() if name != "medconf"}
        )
    with pytest.raises(ValueError, match="one model and data set"):
        accuracy_by_level(pd.concat([table, table.assign(model="other")]))
    with pytest.raises(ValueError, match="lacks"):
        accuracy_by_level(table.drop(columns="low"))


def test_the_tables_are_not_changed():
    table = metrics_table()
    before = table.copy(deep=True)
    discrimination_pair(table, FAMILIES)
    confidence_and_accuracy(table, FAMILIES, ["asp"])
    pd.testing.assert_frame_equal(table, before)


def test_spread_moves_names_apart_and_no_more():
    np.testing.assert_allclose(spread([10, 50, 90], 5, 0, 100), [10, 50, 90])
    np.testing.assert_allclose(spread([50, 50, 50], 4, 0, 100), [46, 50, 54])
    np.testing.assert_allclose(spread([99, 100], 10, 0, 100), [90, 100])


def test_matplotlib_is_imported_by_plots_alone():
    code = "import sys, trustlab, trustlab.metrics; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
