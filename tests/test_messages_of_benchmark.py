"""What the figures of 00, 01, 06 and 07 say above themselves, from tables of made numbers."""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportGeneralTypeIssues=false, reportOptionalMemberAccess=false

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from drawn_figures import assert_legible, figure_of

from studies import benchmark as study
from studies import calibration, walkthrough
from trustlab.confidence import METHODS
from trustlab.metrics import formatted
from trustlab.plots import caption
from trustlab.plots.rows import SERIES
from trustlab.reporting import Report

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


def test_a_value_as_a_sentence_has_it() -> None:
    one = {"value": -0.001, "low": -0.1, "high": 0.2}
    assert formatted.told(one, sign="+") == "+0.00 [−0.10, +0.20]"
    assert formatted.told(one, scale=100) == "0 % [−10, 20]"
    assert formatted.told({"value": 0.5, "low": NAN, "high": NAN}) == "0.50"
    assert formatted.told({"value": NAN, "low": NAN, "high": NAN}) == "–"


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ([], "ASP, 0.80 [0.70, 0.90]"),
        ([("poc", 0.5, 0.4, 0.6)], "ASP, 0.80 [0.70, 0.90], apart from the other"),
        (
            [("poc", 0.5, 0.4, 0.6), ("ce", 0.75, 0.65, 0.85)],
            "ASP, 0.80 [0.70, 0.90]; 1 of 2 others cannot be told from it by their intervals",
        ),
        (
            [("poc", 0.8 - 1e-9, NAN, NAN)],
            "ASP, 0.80 [0.70, 0.90]; 1 of 1 others cannot be told from it by their intervals",
        ),
    ],
)
def test_the_first_is_never_called_so_without_the_others(others, said) -> None:
    made = table(line("asp", 0.8, 0.7, 0.9), *(line(*one) for one in others))
    assert formatted.leading(made) == said


def test_the_first_without_an_interval_or_a_value() -> None:
    few = table(line("asp", 0.8), line("poc", 0.7))
    assert "nothing says that it is first" in formatted.leading(few)
    assert formatted.leading(table(line("asp"))) == f"no value ({WITHHELD})"
    lowest = table(line("asp", 0.1, 0, 0.2), line("poc", 0.5, 0.4, 0.6))
    assert formatted.leading(lowest, lowest=True, scale=100).startswith("ASP, 10 % [0, 20], apart")


def test_auroc_names_the_first_chance_and_the_level_alone() -> None:
    share = line("information_level", 0.48, 0.36, 0.61)
    made = levels(line("asp", 0.88, 0.76, 0.95), line("poc", 0.6, 0.45, 0.7), share)
    made.loc[made["method"].eq("information_level") & made["level"].eq("pooled"), "value"] = 0.77
    assert study.auroc_message(made) == (
        "Highest AUROC within a level: ASP, 0.88 [0.76, 0.95], apart from the other; 1 of 2"
        " intervals lie above chance\n"
        "Information level alone: 0.77 [0.36, 0.61] pooled, 0.48 [0.36, 0.61] within a level"
    )


def test_auroc_of_one_level_of_none_and_of_two_models() -> None:
    alone = table(line("asp", 0.8, 0.7, 0.9, level="pooled"), line("asp", level="100"))
    assert study.auroc_message(alone).startswith("Highest AUROC of all answers: ASP, 0.80")
    gone = levels(line("asp"), line("poc"))
    assert study.auroc_message(gone) == f"Highest AUROC within a level: no value ({WITHHELD})"
    assert study.auroc_message(gone[gone["method"].eq("")]) == ""
    assert study.auroc_message(levels(line("random", 0.5, 0.4, 0.6))) == ""
    two = pd.concat([levels(line("asp", 0.8, 0.7, 0.9)), gone.assign(model="<b>n</b>")])
    assert study.auroc_message(two).splitlines() == [
        "Highest AUROC within a level:",
        "m: ASP, 0.80 [0.70, 0.90]; 1 of 1 intervals lie above chance",
        f"<b>n</b>: no value ({WITHHELD})",
    ]


def gap(method: str, value: float, p: float, **more) -> dict:
    made = line(method, NAN, value - 0.1, value + 0.1, against="medconf", **more)
    return made | {"difference": value, "p_holm": p}


def test_compared_names_what_holds_and_else_the_largest() -> None:
    held = table(gap("asp", 0.2, 0.01), gap("poc", -0.3, 0.001), gap("ce", 0.4, 0.2))
    assert study.compared_message(held) == (
        "Different from MedConf on the same answers beyond chance (Holm): 2 of 3 methods and"
        " baselines\n1 better: ASP +0.20 [+0.10, +0.30]; 1 worse: PoC −0.30 [−0.40, −0.20]"
    )
    none = study.compared_message(table(gap("asp", 0.2, 0.3), gap("poc", -0.3, 0.4)))
    assert "no method can be told from MedConf: none of 2" in none and "PoC, −0.30" in none
    gone = table(gap("asp", NAN, NAN) | {"missing": WITHHELD})
    assert study.compared_message(gone) == f"No method can be told from MedConf: {WITHHELD}"
    assert study.compared_message(held[held["level"].eq("pooled")]) == ""


def rising(*means: tuple[str, float], ends: bool = True) -> pd.DataFrame:
    """Accuracies 0.2 and 0.8, each 0.1 to either side, and mean confidences, the same twice."""
    width = 0.1 if ends else NAN
    of = {"1": 0.2, "100": 0.8}
    right = [line("", v, v - width, v + width, level=q, metric="accuracy") for q, v in of.items()]
    mean = [line(m, v, level=q, metric="mean_confidence") for m, v in means for q in of]
    return table(*right, *mean)


def test_rising_says_which_chances_lie_outside_the_accuracy() -> None:
    made = rising(("asp", 0.95), ("ce", 0.25), ("eigv", -3.0))
    assert study.rising_message(made) == (
        "The accuracy is 20 % [10, 30] at 1 % of the statements and 80 % [70, 90] at 100 %\n"
        "Above its interval: ASP (2 of 2 levels)\nBelow its interval: CE (1 of 2 levels)"
    )
    assert "without intervals" in study.rising_message(rising(("asp", 0.9), ends=False))
    assert study.rising_message(rising(("asp", 0.9))[lambda t: t["level"].eq("1")]).startswith(
        "The accuracy is 20 % [10, 30] at 1 % of the statements\n"
    )
    assert "interval:" not in study.rising_message(rising())
    assert study.rising_message(table(line("", metric="accuracy", level="1"))) == ""


def test_correlations_over_levels_are_counted_by_their_band() -> None:
    band = {"metric": "pearson", "chance": 0.94, "chance_low": 0.75, "chance_high": 0.99}
    each = {"asp": 0.995, "poc": 0.99, "ce": 0.5, "information_level": 0.96}
    made = table(*(line(m, v, v - 0.1, v, **band) for m, v in each.items()))
    assert study.level_correlations_message(made) == (
        "A confidence that merely rises has a Pearson of 0.94 [0.75, 0.99] (95 %); of 3 methods:"
        " 1 above, 1 within, 1 below; information level alone has 0.96 [0.86, 0.96]"
    )
    assert study.level_correlations_message(made.assign(value=NAN)) == ""


def groups_of(method: str, *bins: tuple[float, float, float], model: str = "m") -> pd.DataFrame:
    """Groups of answers: the mean confidence and the interval of the accuracy."""
    each = enumerate(bins)
    rows = [
        line(method, (a + b) / 2, a, b, bin=k, confidence=c, model=model) for k, (c, a, b) in each
    ]
    return table(*rows)


def test_reliability_counts_groups_whose_interval_leaves_out_the_confidence() -> None:
    sure, fits = groups_of("asp", (0.9, 0.2, 0.4), (0.9, 0.5, 1)), groups_of("ce", (0.3, 0.2, 0.4))
    assert calibration.reliability_message(pd.concat([sure, fits])) == (
        "Too sure: ASP in 1 of 2 groups, beyond the interval of a group's accuracy"
    )
    assert calibration.reliability_message(fits).startswith("No confidence lies beyond")
    low = groups_of("poc", (0.1, 0.2, 0.4), model="n")
    assert calibration.reliability_message(pd.concat([sure, low])).splitlines() == [
        "Too sure: m in 1 of 2 groups, beyond the interval of a group's accuracy",
        "Not sure enough: n in 1 of 1 groups",
    ]
    assert "No group" in calibration.reliability_message(fits.assign(low=NAN, high=NAN))


def test_risk_at_half_the_coverage() -> None:
    at = {"metric": "risk", "role": "method"}
    made = [
        line("poc", 0.1 * q, 0.1 * q - 0.05, 0.1 * q + 0.05, coverage=q, **at) for q in (0.5, 1)
    ]
    made += [line("ce", 0.2 * q, 0.1, 0.3, coverage=q, **at) for q in (0.5, 1)]
    assert calibration.risk_message(table(*made)) == (
        "Of all answers 10 % [5, 15] are wrong; of the surest 50 % the fewest by PoC, 5 % [0, 10];"
        " 1 of 1 others cannot be told from it by their intervals"
    )
    assert calibration.risk_message(table(line("poc", coverage=NAN, **at))) == ""


def test_pairs_turned_and_cost() -> None:
    assert calibration.pairs_message(table(line("asp", 0.9), line("ce", 0.1))).startswith(
        "1 of 2 pairs"
    )
    assert calibration.pairs_message(table(line("asp"))) == ""
    before, after = gap("asp", 0.2, 0.1), gap("asp", -0.2, 0.1, model="n")
    assert study.turned_message(table(before, after)).endswith(
        "in 1 of 1 comparisons, in 1 of them with intervals that leave out 0 on both sides"
    )
    assert "in 0 of 1 comparisons" in study.turned_message(table(before, before | {"model": "n"}))
    assert study.turned_message(table(before)) == (
        "1 of 1 differences from MedConf have an interval without 0"
    )
    assert study.turned_message(table(before | {"difference": NAN})) == ""
    cheap = line("asp", 0.7, 0.6, 0.75, asked="The answer alone", cost=1)
    dear = line("poc", 0.8, 0.76, 0.9, asked="K samples", cost=9)
    assert study.cost_message(table(dear, cheap)) == (
        "The answer alone: the highest AUROC is that of ASP, 0.70 [0.60, 0.75]\n"
        "Beyond its interval: 1 of 1 methods that ask more; the highest is PoC, 0.80"
        " [0.76, 0.90]"
    )
    assert "\n" not in study.cost_message(table(cheap))
    assert study.cost_message(table(cheap | {"value": NAN})) == ""


def test_models_stand_side_by_side_and_a_method_that_none_has_stands_once() -> None:
    none = line("semantic_similarity_med") | {"missing": "no medical encoder is named"}
    one = levels(line("asp", 0.8, 0.7, 0.9), line("random", 0.5, 0.4, 0.6), none)
    axes = study.auroc_rows(pd.concat([one, one.assign(model="n")]), FAMILIES)
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
    assert study.lacking_words(asked.iloc[:1], asked) == (
        "no value of n: ASP (the backend gives no logprobs)"
    )
    assert study.lacking_words(asked.iloc[:1], asked.iloc[:1]) == ""


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


def test_evidence_and_moves_of_one_patient() -> None:
    kinds = ["supported", "missing", "missing"]
    evidence = pd.DataFrame({"support_level": kinds, "quotation_occurs": [False, None, None]})
    assert walkthrough.evidence_message(evidence) == (
        "Of 3 criteria: 1 supported, 2 missing, 0 contradicted; 1 of the quotations was never"
        " spoken"
    )
    assert walkthrough.evidence_message(evidence.iloc[:0]) == ""
    moves = pd.DataFrame({"level": [1, 20, 100], "correct": [0, 0, 1], "confidence": [0.4, 0.9, 1]})
    moves = moves.assign(method="asp", scale="probability")
    assert walkthrough.moves_message(moves) == (
        "The answer is right from 100 % on\nHighest confidence in a wrong answer: ASP 90 %"
    )
    back = walkthrough.moves_message(moves.assign(correct=[1, 0, 1]))
    assert back.startswith("The answer is right from 100 % on, and not always before")
    late = walkthrough.moves_message(moves.assign(correct=[1, 0, 0]))
    assert late.startswith("The answer is right at some levels, and wrong at 100 %")
    assert walkthrough.moves_message(moves.assign(correct=1)) == (
        "The answer is right at every level shown"
    )
    assert walkthrough.moves_message(moves.iloc[:1].assign(confidence=NAN)) == (
        "The answer is wrong at the one level shown"
    )
    assert walkthrough.moves_message(moves.assign(correct=NAN)) == ""


def consistent(right: float, low: float, high: float, agree: float = 0.95) -> pd.DataFrame:
    each = {"accuracy": (right, low, high), "poc": (agree, NAN, NAN)}
    return table(*(line("", *v, level=20, metric=m, threshold=0.8) for m, v in each.items()))


def test_agreement_is_held_against_the_accuracy() -> None:
    assert walkthrough.consistent_message(consistent(0.4, 0.3, 0.6)) == (
        "Answers on which at least 80 % of the samples agree are right less often than they agree,"
        " beyond the interval, at 1 of 1 level\n"
        "Farthest apart at 20 % of the statements: agreement 95 %, right 40 % [30, 60]"
    )
    assert walkthrough.consistent_message(consistent(0.9, 0.8, 1)).endswith("at 0 of 1 level")
    assert "no level has an accuracy" in walkthrough.consistent_message(consistent(0.4, NAN, NAN))
    assert walkthrough.consistent_message(consistent(NAN, NAN, NAN, NAN)) == ""


def test_beyond_its_world_confidences_are_held_against_the_accuracy() -> None:
    known = [line("", 0.8, 0.7, 0.9), line("ce", 0.85, 0.8, 0.95)]
    unknown = [line("", 0.0) | {"n_cases": 16}, line("ce", 0.75, 0.6, 0.85)]
    made = table(*(x | {"set": "s"} for x in known), *(x | {"set": "u"} for x in unknown))
    assert walkthrough.beyond_message(made) == (
        "Answers right: s 80 % [70, 90], u 0 %\n"
        "Mean confidences whose interval lies above that: s 0 of 1, u 1 of 1"
    )
    few = walkthrough.beyond_message(made.assign(low=NAN, high=NAN))
    assert few.endswith("u 0 %\nNo mean confidence has an interval to hold against that")
    assert walkthrough.beyond_message(made.assign(value=NAN)) == ""


def test_the_best_of_the_cheapest_is_no_reference_and_the_message_stands_above() -> None:
    same = {"asked": "The answer alone", "cost": 1.0, "unit": "tokens", "missing": ""}
    known = line("exact_posterior", 0.95, 0.9, 0.99) | same | {"family": "reference"}
    cheap = line("asp", 0.7, 0.6, 0.8) | same | {"family": "token"}
    answers = pd.DataFrame({"model": ["m"], "dataset": "d", "case_id": "c", "level": 1})
    made = Report("", pd.DataFrame(), table(known, cheap), FAMILIES, answers.assign(correct=1))
    ax = made.figure(message="what it shows")
    dotted = [np.ravel(one.get_xdata())[0] for one in ax.lines if one.get_linestyle() == ":"]
    assert dotted == [0.7]
    assert "what it shows" in [text.get_text() for text in figure_of(ax).texts]


def test_why_a_value_is_missing_stands_on_white_above_the_lines() -> None:
    axes = study.auroc_rows(levels(line("asp", 0.8, 0.7, 0.9), line("poc")), FAMILIES)
    (why,) = [text for text in axes[0].texts if WITHHELD in text.get_text()]
    box = why.get_bbox_patch()
    assert box.get_facecolor()[:3] == (1, 1, 1) and why.get_zorder() > 1
    assert box.get_boxstyle().pad > 0.25  # of the size of its letters
