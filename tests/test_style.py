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
from saying import says

from trustlab.reports.plots import intervals, save_figure, style, use_style

PLACE = {"model": "embedded", "dataset": "starter (structured)", "n_cases": 120, "n_rows": 1440}
pytestmark = pytest.mark.usefixtures("house_style")


def test_a_figure_drawn_and_saved_again_gives_the_same_bytes(tmp_path):
    told = {"method": ["asp", "ce"], "value": [0.7, np.nan], "low": [0.6, np.nan]}
    told |= {"high": [0.8, np.nan], "n": [72, 0], "n_cases": [12, 0], "missing": ["", "no number"]}
    table, saved = pd.DataFrame(told), []
    families = {"asp": "token", "ce": "verbalized"}
    draw = {"rows": lambda: intervals(table, families=families, xlabel="AUROC")}
    for folder in ("a", "b"):
        figure = Drawn(draw, **PLACE, note="one long remark about this figure " * 6).figure("rows")
        paths = save_figure(figure, table, "x", tmp_path / "new" / folder)
        saved.append([path.read_bytes() for path in paths])
    assert saved[0] == saved[1]
    png, svg, csv = saved[0]
    np.testing.assert_array_equal(pixels_of(BytesIO(png)), rendered(figure, whole_of(figure)))
    assert b"Software" not in png and b"dc:date" not in svg and b"dc:creator" not in svg
    assert b"clinical use</text>" in svg  # text stays text
    assert csv.splitlines()[1:] == [b"asp,0.7,0.6,0.8,72,12,", b"ce,,,,0,0,no number"]
    with pytest.raises(ValueError, match="name is"):
        save_figure(figure, table, "../x", tmp_path)


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"value": [], "missing": []}, "no rows"),
        ({"value": [np.nan], "missing": ["fewer than 10 correct"]}, "fewer than 10 correct"),
    ],
)
def test_a_figure_without_anything_to_draw_is_not_saved_and_says_why(table, why, tmp_path, capsys):
    figure = plt.figure()
    assert save_figure(figure, pd.DataFrame(table), "auroc", tmp_path) is None
    assert not list(tmp_path.iterdir()) and not plt.fignum_exists(figure.number)
    assert says(capsys.readouterr().out, "auroc", why)


SETTINGS = {
    "TeX": {"text.usetex": True},
    "layout": {"figure.autolayout": True},
    "constrained": {"figure.constrained_layout.use": True},
    "fonts": {"font.family": "Helvetica", "font.size": 22, "axes.unicode_minus": False},
    "saved": {"savefig.transparent": True, "savefig.format": "pdf", "savefig.bbox": None,
              "savefig.pad_inches": 2, "savefig.facecolor": "red", "savefig.dpi": 40},
    "dark": {"figure.facecolor": "black", "axes.facecolor": "black", "text.color": "white"},
    "by hand": {"path.sketch": (1, 100, 2)},
    "ticks": {"xtick.top": True, "ytick.right": True, "axes.formatter.useoffset": False,
              "xtick.minor.visible": True, "axes.spines.top": False, "axes.xmargin": 0.4},
    "SVG": {"svg.fonttype": "path", "svg.hashsalt": None, "svg.image_inline": False},
    "lines": {"lines.marker": "s", "lines.linestyle": ":", "axes.prop_cycle": plt.cycler(lw=[9])},
}  # fmt: skip


def drawn_bytes(folder) -> list[bytes]:
    use_style()
    table = pd.DataFrame({"method": ["asp", "ce"], "value": [0.7, 0.6], "low": [0.6, 0.5]})
    table = table.assign(high=[0.8, 0.7], n=72, n_cases=12, missing="")
    axes = intervals(table, families={"asp": "token", "ce": "verbalized"}, xlabel="AUROC")
    saved = save_figure(axes[0].figure, table, "x", folder)
    plt.close("all")
    assert saved is not None
    return [path.read_bytes() for path in saved]


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_of_the_user_s_own_change_no_byte(name, tmp_path):
    plain = drawn_bytes(tmp_path / "plain")
    plt.rcParams.update(SETTINGS[name])
    assert drawn_bytes(tmp_path / "own") == plain


def test_the_style_has_the_resolution_and_the_inks_of_the_code():
    assert plt.rcParams["figure.dpi"] == plt.rcParams["savefig.dpi"] == style.DPI
    assert plt.rcParams["text.color"] == style.INK
    assert plt.rcParams["svg.hashsalt"] == style.SVG["svg.hashsalt"]


@pytest.mark.parametrize(
    ("message", "category", "line"),
    [
        (UserWarning("13 % of 429\nreplies"), UserWarning, "Warning: 13 % of 429 replies\n"),
        ("soon gone", FutureWarning, "FutureWarning: soon gone\n"),
    ],
)
def test_the_style_of_notebooks_writes_a_warning_as_one_line_without_its_place(
    message, category, line, monkeypatch
):
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)
    use_style()
    assert warnings.formatwarning(message, category, "/a b/c.py", 3) == line
