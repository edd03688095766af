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
from drawn_figures import Drawn, pixels_of, rendered, whole_of

from trustlab.plots import (
    caption,
    file_ending,
    rows,
    save_figure,
)
from trustlab.plots.style import axes_row

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


def test_files_of_further_models_carry_their_name():
    models = ["embedded", "a-hub/some model_1.5B", "other"]
    assert [file_ending(model, models) for model in models] == [
        "",
        "_a-hub-some-model-1.5B",
        "_other",
    ]


def test_matplotlib_is_imported_by_plots_alone():
    code = "import sys, trustlab, trustlab.metrics; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
