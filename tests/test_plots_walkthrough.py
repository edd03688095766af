"""The walkthrough's figures from small made-up tables: what is drawn, axes with units."""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from drawn_figures import Drawn, assert_legible
from each import each
from matplotlib.colors import to_rgb
from matplotlib.text import Text

from trustlab.confidence import METHODS
from trustlab.plots import (
    FAMILY_COLOURS,
    confidence_moves,
    consistent_but_uninformed,
    token_position,
)
from trustlab.plots.style import FEW

LEVELS = (1, 20, 40, 60, 80, 100)
FAMILIES = {name: m.family for name, m in METHODS.items()}
NAN = float("nan")
pytestmark = pytest.mark.usefixtures("house_style")


def tokens(correct_every: int = 3) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = []
    for i in range(300):
        n = 2 + i % 9
        first, right = rng.uniform(0.1, 0.9), int(i % correct_every == 0)
        rows += [
            (f"c{i // 6}", 20 * (i % 6), "m", n, j + 1, 0.97 if j else first, right)
            for j in range(n)
        ]
    return pd.DataFrame(
        rows,
        columns=["case_id", "level", "model", "n_tokens", "position", "probability", "correct"],
    )


def consistent(medconf: float = 0.1) -> pd.DataFrame:
    rows = []
    for i, level in enumerate(LEVELS):
        no_medconf = medconf != medconf
        values = {"accuracy": 0.1 + 0.15 * i, "poc": 0.93 + 0.01 * i, "medconf": medconf * (i + 1)}
        for metric, value in {**values, "shown": (0.07, 0.22, 0.41, 0.61, 0.81, 1.0)[i]}.items():
            n = (0 if no_medconf else 900) if metric == "medconf" else 1000 + i
            ends = {"value": value, "low": value - 0.05, "high": value + 0.05}
            rows.append(
                {
                    "model": "m",
                    "level": level,
                    "threshold": 0.8,
                    "metric": metric,
                    **ends,
                    "n": n,
                    "n_cases": 40,
                }
            )
    return pd.DataFrame(rows)


def moves(names=tuple(METHODS)) -> pd.DataFrame:
    rows = []
    for k, name in enumerate(names):
        for i, level in enumerate(LEVELS):
            probable = METHODS[name].scale == "probability"
            value = (
                min(0.2 + 0.1 * i + 0.03 * (k % 5), 1)
                if probable
                else (-12.3456 + i * (-1) ** k) * (k + 1)
            )
            value, why = (
                (value, "")
                if not (name == "entropy" and level == 40)
                else (NAN, "unreadable answer")
            )
            rows.append(("starter-003", "m", level, name, METHODS[name].scale, value, why, i >= 3))
    columns = ["case_id", "model", "level", "method", "scale", "confidence", "missing", "correct"]
    table = pd.DataFrame(rows, columns=columns)
    gone = table["method"].isin(["pmi", "cot_ce"])
    table.loc[gone, "confidence"] = NAN
    table.loc[gone, "missing"] = (
        "the backend gives no distributions of the patient-free prompt, which it would need"
    )
    table.loc[table["method"] == "fisher_rao", "confidence"] = 0.5
    return table


DRAWINGS = {
    "tokens": lambda: token_position(tokens()),
    "consistent": lambda: consistent_but_uninformed(consistent()),
    "consistent without MedConf": lambda: consistent_but_uninformed(consistent(NAN)),
    "moves": lambda: confidence_moves(moves(), FAMILIES),
    "scores alone": lambda: confidence_moves(moves(("word_count", "random")), FAMILIES),
    "one probability": lambda: confidence_moves(moves(("poc",)), FAMILIES),
}


@pytest.fixture(scope="module")
def drawn() -> Drawn:
    told = {"model": "embedded", "dataset": "starter", "n_cases": 20, "n_rows": 120}
    return Drawn(DRAWINGS, **told, note="one long remark " * 8)


def words_of(holder) -> str:
    return " ".join(
        t.get_text().replace("\n", " ") for t in holder.findobj(Text) if t.get_visible()
    )


@each("name", DRAWINGS)
def test_no_text_is_clipped_or_overlaps(name, drawn):
    assert_legible(drawn.figure(name))


@each("name", DRAWINGS)
def test_every_panel_says_what_its_axes_show_in_which_unit(name, drawn):
    figure = drawn.figure(name)
    assert any("percent" in ax.get_xlabel() or "token" in ax.get_xlabel() for ax in figure.axes)
    assert any("percent" in ax.get_ylabel() for ax in figure.axes) or name == "scores alone"


def test_token_position_draws_means_by_position_and_wrong_answers_by_length(drawn):
    table = tokens()
    left, right = drawn["tokens"]
    lines = [line for line in left.lines if len(line.get_xdata()) > 1]
    assert [len(line.get_xdata()) for line in lines] == list(range(2, 11))
    first = table[(table["n_tokens"] == 4) & (table["position"] == 1)]["probability"].mean()
    np.testing.assert_allclose(lines[2].get_ydata(), [100 * first, 97, 97, 97])
    assert [text.get_text() for text in left.texts][1::2] == [str(n) for n in range(2, 11)]
    asp, alone = (line for line in right.lines if len(line.get_xdata()) > 1)
    wrong = table[(table["correct"] == 0) & (table["n_tokens"] == 3)]
    np.testing.assert_allclose(asp.get_ydata()[0], 100 * wrong["probability"].mean())
    np.testing.assert_allclose(
        alone.get_ydata()[0], 100 * wrong[wrong["position"] == 1]["probability"].mean()
    )
    assert to_rgb(asp.get_color()) == to_rgb(FAMILY_COLOURS["token"])
    assert (
        "n 33" in right.get_xticklabels()[0].get_text()
        or "n 34" in right.get_xticklabels()[0].get_text()
    )


def test_token_position_says_where_there_is_too_little():
    left, right = token_position(tokens(correct_every=1))
    assert "has 10 wrong answers" in words_of(right) and "has 10" not in words_of(left)
    left, _ = token_position(tokens().head(5))
    assert "has 10 answers" in words_of(left)


def test_consistent_but_uninformed(drawn):
    ax = drawn["consistent"]
    curves = [line for line in ax.lines if len(line.get_xdata()) == 6]
    np.testing.assert_allclose([line.get_ydata()[0] for line in curves], [10, 93, 10])
    table = consistent()
    table.loc[table["metric"].eq("medconf") & table["level"].eq(1), "n_cases"] = 3
    few = [line for line in consistent_but_uninformed(table).lines if line.get_label() == FEW]
    assert [line.get_marker() for line in few] == ["D"]  # of MedConf alone
    words = words_of(ax)
    for part in (
        "Share right",
        "Mean PoC",
        "Mean MedConf",
        "chosen from 80 up",
        "1,000",
        "with MedConf",
        "900",
        "percent shown",
        "81",
    ):
        assert part in words
    without = words_of(drawn["consistent without MedConf"])
    assert "No value, not drawn: MedConf" in without and "Mean MedConf" not in without
    own = plt.subplots()[1]
    assert consistent_but_uninformed(consistent(), ax=own) is own


def test_confidence_moves_draws_probabilities_as_lines_with_right_answers_filled():
    made = confidence_moves(moves(("asp", "poc", "ce", "medconf")), FAMILIES)
    assert [ax.get_title(loc="left") for ax in made] == [
        "Token",
        "Consistency",
        "Self-verbalised",
        "MedConf",
    ]
    line, right, wrong = made[1].lines
    np.testing.assert_allclose(line.get_xdata(), LEVELS)
    np.testing.assert_allclose(line.get_ydata(), [23, 33, 43, 53, 63, 73])
    assert list(right.get_xdata()) == [60, 80, 100] and list(wrong.get_xdata()) == [1, 20, 40]
    assert wrong.get_mfc() == "white" and to_rgb(right.get_mfc()) == to_rgb(
        FAMILY_COLOURS["consistency"]
    )
    assert "case starter-003:" in words_of(made[0])


def test_confidence_moves_says_so_where_a_family_has_no_value_at_all():
    table = moves(("asp", "medconf"))
    table.loc[table["method"] == "medconf", "confidence"] = NAN
    _, empty = confidence_moves(table, FAMILIES)
    assert not empty.lines and "no value: MedConf" in words_of(empty)


def test_confidence_moves_shades_scores_from_the_methods_own_lowest_to_its_highest(drawn):
    *_, heat = drawn["moves"]
    names = [tick.get_text() for tick in heat.get_yticklabels()]
    cells = {(round(p.get_y()), round(p.get_x())): sum(p.get_facecolor()[:3]) for p in heat.patches}
    entropy, count, same = (
        names.index("Entropy"),
        names.index("Word count"),
        names.index("Fisher–Rao"),
    )
    # dark is high
    lowest, highest = (max, min) if list(METHODS).index("word_count") % 2 == 0 else (min, max)
    row = [cells[count, j] for j in range(6)]
    assert row[0] == lowest(row) and row[5] == highest(row)
    assert len({cells[same, j] for j in range(6)} | {cells[entropy, 2]}) == 1  # grey
    words = words_of(heat)
    assert (
        "missing: the backend gives no distributions" in words
        and "–" in words
        and "Shade:" in words
    )
    marks = [line for line in heat.lines if line.get_marker() == "o"]
    assert [line.get_mfc() == "white" for line in marks] == [True] * 3 + [False] * 3


def test_confidence_moves_marks_no_answer_that_could_not_be_had_as_right_or_wrong():
    table = moves(("poc", "random"))
    failed = table["level"] == 80
    table = table.assign(correct=table["correct"].astype(float).mask(failed))
    panel, heat = confidence_moves(table, FAMILIES)
    marks = [
        (line.get_xdata()[0], line.get_mfc() == "white")
        for line in heat.lines
        if line.get_marker() == "o"
    ]
    assert marks == [(0.5, True), (1.5, True), (2.5, True), (3.5, False), (5.5, False)]
    _, right, wrong = panel.lines
    assert list(right.get_xdata()) == [60, 100] and list(wrong.get_xdata()) == [1, 20, 40]


def test_one_figure_shows_one_model_and_one_case():
    for draw, table in (
        (token_position, tokens()),
        (consistent_but_uninformed, consistent()),
    ):
        with pytest.raises(ValueError, match="one model"):
            draw(pd.concat([table, table.assign(model="other")]))
        with pytest.raises(ValueError, match="lacks"):
            draw(table.drop(columns="model"))
    with pytest.raises(ValueError, match="one case"):
        confidence_moves(pd.concat([moves(), moves().assign(case_id="other")]), FAMILIES)
    with pytest.raises(ValueError, match="for method 'poc'"):
        confidence_moves(moves(("poc",)), {})


def test_the_tables_are_not_changed():
    for draw, make in (
        (token_position, tokens),
        (consistent_but_uninformed, consistent),
    ):
        table = make()
        draw(table)
        pd.testing.assert_frame_equal(table, make())
