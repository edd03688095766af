"""What 01 and 07 draw and print beside the published tables, from tables of made numbers."""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportGeneralTypeIssues=false, reportOptionalMemberAccess=false

from __future__ import annotations

import pandas as pd
from drawn_figures import assert_legible, figure_of

from studies import benchmark as study
from studies import calibration
from trustlab import formatted
from trustlab.confidence import METHODS
from trustlab.plots import caption
from trustlab.plots.rows import SERIES, auroc_rows

NAN = float("nan")
WITHHELD = "fewer than 10 correct or wrong"
FAMILIES = {name: method.family for name, method in METHODS.items()}


def line(method: str, value: float = NAN, low: float = NAN, high: float = NAN, **more) -> dict:
    """A line of a table of numbers, of ten cases or more where it has an interval."""
    n_cases = 24 if low == low or value != value else 5
    made = {"model": "m", "dataset": "d", "method": method, "level": "within", "metric": "auroc"}
    made |= {"value": value, "low": low, "high": high, "n": 144, "n_cases": n_cases}
    return made | {"missing": "" if value == value else WITHHELD} | more


def table(*lines: dict) -> pd.DataFrame:
    return pd.DataFrame(list(lines))


def levels(*lines: dict) -> pd.DataFrame:
    """Lines of an AUROC table that has two levels, pooled as within unless given."""
    single = [line(one["method"], level=q) for one in lines for q in ("1", "100")]
    pooled = [one | {"level": "pooled"} for one in lines if one["level"] == "within"]
    return table(*pooled, *lines, *single)


def groups_of(method: str, *bins: tuple[float, float, float], model: str = "m") -> pd.DataFrame:
    """Groups of answers: the mean confidence and the interval of the accuracy."""
    each = enumerate(bins)
    rows = [
        line(method, (a + b) / 2, a, b, bin=k, confidence=c, model=model) for k, (c, a, b) in each
    ]
    return table(*rows)


def test_models_stand_side_by_side_and_a_method_that_none_has_stands_once() -> None:
    none = line("semantic_similarity_med") | {"missing": "no medical encoder is named"}
    one = levels(line("asp", 0.8, 0.7, 0.9), line("random", 0.5, 0.4, 0.6), none)
    axes = auroc_rows(pd.concat([one, one.assign(model="n")]), FAMILIES)
    headings = [t.get_text() for t in axes[0].get_yticklabels() if t.get_weight() == "bold"]
    said = [t.get_text() for ax in axes for t in ax.texts if "medical encoder" in t.get_text()]
    assert headings == ["token", "consistency", "baseline"] and len(said) == 2
    grey = [one.get_ydata()[0] for one in axes[1].lines if one.get_markerfacecolor() == "#D0D0D0"]
    marks = [
        one.get_ydata()[0] for one in axes[1].lines if one.get_color() in {c for c, _ in SERIES}
    ]
    assert len(grey) == 4 and set(grey) <= set(marks)  # each beside its own model's mark
    legend = [t.get_text() for t in axes[0].get_legend().get_texts()]
    assert legend[:2] == ["m", "n"]
    caption(figure_of(axes), model="m", dataset="d", counts="none")
    assert_legible(figure_of(axes))


def test_why_a_value_is_missing_stands_on_white_above_the_lines() -> None:
    axes = auroc_rows(levels(line("asp", 0.8, 0.7, 0.9), line("poc")), FAMILIES)
    (why,) = [text for text in axes[0].texts if WITHHELD in text.get_text()]
    box = why.get_bbox_patch()
    assert box.get_facecolor()[:3] == (1, 1, 1) and why.get_zorder() > 1
    assert box.get_boxstyle().pad > 0.25  # of the size of its letters


def test_reliability_of_several_models_has_a_line_each() -> None:
    one = groups_of("asp", (0.3, 0.1, 0.4), (0.9, 0.5, 1))
    axes = calibration.reliability_panels(pd.concat([one, one.assign(model="n")]), FAMILIES)
    told = {t.get_text() for t in axes[0].figure.findobj(type(axes[0].title))}
    assert {"m", "n", "confidence = accuracy"} <= told and "no value" not in told
    alone = calibration.reliability_panels(one, FAMILIES)
    assert "Groups of answers" in {
        t.get_text() for t in alone[0].figure.findobj(type(axes[0].title))
    }


def test_what_models_lack_is_said_by_the_methods_names() -> None:
    asked = table(line("asp", confidence=0.5), line("asp", model="n", confidence=NAN), line("ce"))
    asked["confidence"] = asked["confidence"].astype(float)
    asked.loc[1, "missing"] = "the backend gives no logprobs"
    assert formatted.lacking_words(asked.iloc[:1], asked) == (
        "no value of n: ASP (the backend gives no logprobs)"
    )
    assert formatted.lacking_words(asked.iloc[:1], asked.iloc[:1]) == ""


def measured(method: str, value: float, **more) -> list[dict]:
    """AUROC pooled and Pearson of a method, each 0.1 to either side."""
    at = {"auroc": "pooled", "pearson": "across", "spearman": "across"}
    return [
        line(method, value, value - 0.1, value + 0.1, metric=m, level=q, **more)
        for m, q in at.items()
    ]


def test_the_published_tables_stand_beside_ours() -> None:
    ours = [*measured("asp", 0.8), *measured("poc", 0.7), *measured("information_level", 0.9)]
    ours += measured("asp", NAN, model="<i>n</i>", dataset="e")
    found = study.correlations_as_published(table(*ours), "pearson")
    assert list(found.columns[:3]) == [
        ("this run", "m", "d"),
        ("this run", "<i>n</i>", "e"),
        ("as printed", "Llama-3.1", "DDXPlus"),
    ]
    row = found.loc[("token", "ASP")]
    assert row.iloc[:3].tolist() == ["0.80 [0.70, 0.90], n 144", "–", "0.794"]
    assert found.loc[("token", "PMI")].iloc[:3].tolist() == ["–", "–", "0.781"]
    assert "Information level" not in found.index.get_level_values("row")
    page = study.printed_in_grey(found, "x").to_html()
    assert "&lt;i&gt;n" in page and "<i>n" not in page and "not to be held against ours" in page
    assert page == study.printed_in_grey(found, "x").to_html()


def test_the_best_of_each_family_beside_the_printed() -> None:
    ours = table(*measured("asp", 0.6), *measured("msp", 0.8), *measured("medconf", 0.7))
    found = study.comparison_as_published(ours)
    mine = found["this run", "m", "d"]
    assert mine["token", "AUROC"] == "MSP (as printed: largest token) 0.80 [0.70, 0.90], n 144"
    assert mine["token", "Pearson"].startswith("MSP") and mine["consistency", "AUROC"] == "–"
    printed = found["as printed", "Llama-3.1", "DDXPlus"]
    assert (
        printed["token", "AUROC"] == "PMI 0.593"
        and printed["MedConf", "Pearson"] == "MedConf 0.968"
    )
    nothing = study.comparison_as_published(ours.assign(value=NAN, low=NAN, high=NAN))
    assert set(nothing["this run", "m", "d"]) == {"–"}
