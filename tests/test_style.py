"""Figures as files: the same bytes every time, table and caption, none where nothing is drawn."""

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

from trustlab.plots import caption, file_ending, rows, save_figure
from trustlab.plots.style import axes_row

PLACE = {"model": "embedded", "dataset": "starter (structured)", "n_cases": 120, "n_rows": 1440}
pytestmark = pytest.mark.usefixtures("house_style")


def test_a_figure_drawn_and_saved_again_gives_the_same_bytes(tmp_path):
    told = {"method": ["asp", "ce"], "value": [0.7, np.nan], "low": [0.6, np.nan]}
    told |= {"high": [0.8, np.nan], "n": [72, 0], "n_cases": [12, 0], "missing": ["", "no number"]}
    table, saved = pd.DataFrame(told), []
    families = {"asp": "token", "ce": "verbalized"}
    draw = {"rows": lambda: rows(table, families, xlabel="AUROC")}
    for folder in ("a", "b"):
        figure = Drawn(draw, **PLACE, note="one long remark about this figure " * 6).figure("rows")
        paths = save_figure(figure, table, "x", tmp_path / "new" / folder)
        saved.append([path.read_bytes() for path in paths])
    assert saved[0] == saved[1]
    png, svg, csv = saved[0]
    np.testing.assert_array_equal(pixels_of(BytesIO(png)), rendered(figure, whole_of(figure)))
    assert b"Software" not in png and b"dc:date" not in svg and b"dc:creator" not in svg
    assert b"research only, not for clinical use</text>" in svg  # text stays text
    assert csv.splitlines()[1:] == [b"asp,0.7,0.6,0.8,72,12,", b"ce,,,,0,0,no number"]
    with pytest.raises(ValueError, match="name is"):
        save_figure(figure, table, "../x", tmp_path)


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"value": [], "missing": []}, "the table has no rows"),
        ({"value": [np.nan], "missing": ["fewer than 10 correct"]}, "fewer than 10 correct"),
        ({"difference": [np.nan]}, "no row has a value"),
    ],
)
def test_a_figure_without_anything_to_draw_is_not_saved_and_says_why(table, why, tmp_path, capsys):
    figure = plt.figure()
    assert save_figure(figure, pd.DataFrame(table), "auroc", tmp_path) is None
    assert not list(tmp_path.iterdir()) and not plt.fignum_exists(figure.number)
    assert capsys.readouterr().out == f"Nothing to draw for auroc: {why}\n"


def test_caption_says_what_was_measured_and_stands_below():
    ax = axes_row(6.4, 4.0)[0]
    text = caption(ax, **PLACE, note="a_$note$")
    told = text.get_text().replace("\n", " · ").split(" · ")
    assert told[:3] == [
        "model embedded (a very small model)", "data starter (structured)",
        "120 cases, 1,440 answers",
    ]  # fmt: skip
    assert told[-2:] == ["a_$note$", "research only, not for clinical use"]
    assert text.get_window_extent().y1 < ax.get_tightbbox().y0
    assert "interval" not in caption(ax, **PLACE, interval="").get_text()
    models = ["embedded", "a-hub/some model_1.5B"]
    assert [file_ending(m, models) for m in models] == ["", "_a-hub-some-model-1.5B"]


def test_matplotlib_is_imported_by_plots_alone():
    code = "import sys, trustlab, trustlab.metrics; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
