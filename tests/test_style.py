"""Figures as files: the same bytes every time, table and caption, none where nothing is drawn."""

import warnings
from io import BytesIO

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from drawn_figures import Drawn, pixels_of, rendered, whole_of

from trustlab.plots import rows, save_figure, use_style

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
    ],
)
def test_a_figure_without_anything_to_draw_is_not_saved_and_says_why(table, why, tmp_path, capsys):
    figure = plt.figure()
    assert save_figure(figure, pd.DataFrame(table), "auroc", tmp_path) is None
    assert not list(tmp_path.iterdir()) and not plt.fignum_exists(figure.number)
    assert capsys.readouterr().out == f"Nothing to draw for auroc: {why}\n"


@pytest.mark.parametrize(
    ("message", "category", "line"),
    [
        ("few cases", UserWarning, "Warning: few cases\n"),
        (UserWarning("13 % of 429\nreplies"), UserWarning, "Warning: 13 % of 429 replies\n"),
        ("soon gone", FutureWarning, "FutureWarning: soon gone\n"),
        ("", RuntimeWarning, "RuntimeWarning: \n"),
    ],
)
def test_the_style_of_notebooks_writes_a_warning_as_one_line_without_its_place(
    message, category, line, monkeypatch
):
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)
    use_style()
    assert warnings.formatwarning(message, category, "/a b/c.py", 3) == line
