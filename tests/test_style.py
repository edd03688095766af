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
from drawn_figures import Drawn, assert_legible, pixels_of, rendered, whole_of

from trustlab.confidence import METHODS
from trustlab.plots import (
    FAMILY_COLOURS,
    FAMILY_LABELS,
    FAMILY_MARKERS,
    caption,
    file_ending,
    label,
    rows,
    save_figure,
)
from trustlab.plots.style import axes_row, spread, text_colour, told_n

PLACE = {"model": "embedded", "dataset": "starter (structured)", "n_cases": 120, "n_rows": 1440}
pytestmark = pytest.mark.usefixtures("house_style")


def table() -> pd.DataFrame:
    """Two methods, the second without a value."""
    told = {"method": ["asp", "ce"], "value": [0.7, np.nan], "low": [0.6, np.nan]}
    told |= {"high": [0.8, np.nan], "n": [72, 0], "n_cases": [12, 0], "missing": ["", "no number"]}
    return pd.DataFrame(told)


def drawing() -> Drawn:
    families = {"asp": "token", "ce": "verbalized"}
    note = "one long remark about this figure " * 6
    return Drawn({"rows": lambda: rows(table(), families, xlabel="AUROC")}, **PLACE, note=note)


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


def test_a_figure_drawn_and_saved_again_gives_the_same_bytes(tmp_path):
    saved = []
    for folder in ("a", "b"):
        figure = drawing().figure("rows")
        paths = save_figure(figure, table(), "x", tmp_path / "new" / folder)
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
        "reference",
    }
    assert len(set(FAMILY_COLOURS.values())) == len(set(FAMILY_MARKERS.values())) == 7
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
    labels = [m.label for m in METHODS.values()]
    assert len(set(labels)) == len(labels) and max(map(len, labels)) <= 32


def test_caption_says_what_was_measured_and_stands_below():
    ax = axes_row(6.4, 4.0)[0]
    text = caption(ax, **PLACE, note="a_$note$")
    assert (
        text.get_text().replace("\n", " · ")
        == "model embedded (a very small model) · data starter (structured) · 120 cases, 1,440"
        " answers"
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
    ax = axes_row(6.4, 4.0)[0]
    told = {levels: caption(ax, **PLACE, levels=levels).get_text() for levels in wanted}
    around = "1,440 answers", " · 95 % case-bootstrap interval"
    lacking = [q for q, w in wanted.items() if w.join(around) not in told[q].replace("\n", " · ")]
    assert lacking == []


def test_a_caption_can_count_something_else_than_cases_and_answers():
    ax = axes_row(6.4, 4.0)[0]
    text = caption(ax, model="m", dataset="d", counts="228 coefficients", interval="").get_text()
    assert (
        text.replace("\n", " · ")
        == "model m · data d · 228 coefficients · research only, not for clinical use"
    )
    with pytest.raises(ValueError, match="n_cases and n_rows, or counts"):
        caption(ax, model="m", dataset="d", n_cases=3)


def test_a_caption_names_every_model_and_data_set():
    figure = axes_row(6.4, 4.0)[0].figure
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


def test_spread_moves_names_apart_and_no_more():
    np.testing.assert_allclose(spread([10, 50, 90], 5, 0, 100), [10, 50, 90])
    np.testing.assert_allclose(spread([50, 50, 50], 4, 0, 100), [46, 50, 54])
    np.testing.assert_allclose(spread([99, 100], 10, 0, 100), [90, 100])


def test_matplotlib_is_imported_by_plots_alone():
    code = "import sys, trustlab, trustlab.metrics; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
