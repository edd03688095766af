"""The paper's tables recomputed: counts that can be had by hand, and every figure of its sentences
held against its tables."""

from __future__ import annotations

import re
from math import isnan

import numpy as np
import pandas as pd
import pytest
from each import each

from studies import published_tables as claims
from studies import published_tables as others
from studies import published_tables as recomputed
from trustlab.metrics.audit import CELL, TABLES, published_claims, published_table
from trustlab.paths import DATA, ROOT

SENTENCES = ROOT.parent / "shared" / "published" / "README.md"


@pytest.fixture(scope="module")
def audit() -> pd.DataFrame:
    return recomputed.correlations()


@pytest.fixture(scope="module")
def told() -> pd.DataFrame:
    return claims.claims_table().set_index("id")


def cell(table: pd.DataFrame, model: str, dataset: str, method: str, statistic: str) -> pd.Series:
    query = (
        "model == @model and dataset == @dataset and method == @method and statistic == @statistic"
    )
    (row,) = table.query(query).to_dict("records")
    return pd.Series(row)


# -- Table 2
# --------------------------------------------------------------------------------------------------


def test_every_printed_coefficient_is_audited_with_its_zeros(audit: pd.DataFrame) -> None:
    assert len(audit) == (27 + 11) * 3 * 2 and audit["p_t"].notna().all()
    assert set(audit.loc[audit["value"].str.len() == 4, "value"]) == {"0.14", "0.18"}
    assert published_table("correlation", as_text=True).loc[0, "value"] == "0.794"
    assert np.allclose(
        audit["p_t"], 1 - 1.5 * audit["r"].abs() + 0.5 * audit["r"].abs() ** 3, atol=1e-12
    )


def test_printed_significance_is_read_from_thresholds_and_numbers(audit: pd.DataFrame) -> None:
    raw = (DATA / "published" / "correlation.csv").read_text(encoding="utf-8")
    assert audit["significant"].sum() == raw.count(",<=0.05\n") == 85
    assert audit["p_number"].notna().sum() == 228 - 85
    assert (
        recomputed.correlations(alpha=0.03)["significant"].sum() == 0
    )  # "at most 0.05" is not at most 0.03


def test_pairs_that_do_not_belong_together_are_listed_farthest_first(audit: pd.DataFrame) -> None:
    off = recomputed.apart(audit)
    assert off["apart"].is_monotonic_decreasing and (off["apart"] > 0).all() and len(off) == 17
    msp = cell(off, "llama-3.1", "meditod", "msp", "pearson")
    assert (msp["value"], msp["p_printed"]) == ("0.807", "0.137") and round(msp["p_t"], 3) == 0.052
    # the p of this one is that of 0.429, which six points can have
    pmi = cell(off, "llama-3.1", "ddxplus", "conditional_pmi", "spearman")
    assert pmi["value"] == "0.042" and pmi["value_of_p"] == pytest.approx(0.429, abs=0.001)


def test_a_mark_whose_p_is_another_is_told_in_words_and_the_others_are_not(
    audit: pd.DataFrame,
) -> None:
    told = recomputed.told(audit)
    assert len(told) == audit["p_number"].notna().sum()
    words = told.loc[told["told"].ne(""), "told"].tolist()
    assert len(words) == 17 == told["apart"].gt(0).sum()
    first = "Conditional PMI, DDXPlus, Llama-3.1: Spearman 0.042, p 0.397, recomputed 0.937"
    assert words[0] == first
    assert "MSP, MediTOD, Llama-3.1: Pearson 0.807, p 0.137, recomputed 0.052" in words


def test_most_printed_p_values_fit_six_points(audit: pd.DataFrame) -> None:
    fits = recomputed.points_that_fit(audit)
    assert fits.idxmax() == 6 and fits[6] == 143 - 17 and fits.drop(6).max() < 10


def test_a_coefficient_stands_by_the_strictest_correction_that_it_passes(
    audit: pd.DataFrame,
) -> None:
    standing = recomputed.standings(audit)
    assert dict(standing["standing"].value_counts()) == {
        "not significant": 143, "printed only": 36, "Benjamini–Hochberg": 29, "Holm": 20,
    }  # fmt: skip
    by_hand = standing["p_t"].sort_values().to_numpy()
    assert (standing["standing"] == "Holm").sum() == np.argmin(
        by_hand * np.arange(228, 0, -1) <= 0.05
    )
    assert (standing["standing"].isin(["Holm", "Benjamini–Hochberg"])).sum() == np.flatnonzero(
        by_hand <= 0.05 * np.arange(1, 229) / 228
    ).max() + 1
    assert (
        recomputed.standings(audit, alpha=1e-9)["standing"] == "Holm"
    ).sum() == 16  # the perfect ones, whose p is 0


def test_no_rank_correlation_over_six_points_survives_holm_exactly(audit: pd.DataFrame) -> None:
    found = recomputed.survivors(audit).set_index(["family", "statistic", "p_from"])
    whole = found.loc[("the whole table", "spearman", "exact permutation")]
    assert (whole["n"], whole["printed"], whole["uncorrected"], whole["holm"]) == (114, 42, 35, 0)
    assert found.loc[("the whole table", "spearman", "t-test"), "holm"] == 16
    assert found.loc[("the whole table", "pearson", "t-test"), "holm"] == 4
    columns = found.loc["each model, data set, statistic"]
    assert (
        columns.loc[("spearman", "exact permutation"), "holm"] == 7
    )  # among 11 tests, 1.000 passes: 11 · 2/720 is 0.031
    assert (found["holm"] <= found["benjamini_hochberg"]).all() and (
        found["benjamini_hochberg"] <= found["uncorrected"]
    ).all()


def test_seven_spearmans_are_significant_by_the_approximation_only(audit: pd.DataFrame) -> None:
    fails = recomputed.exact_fails(audit)
    assert len(fails) == 7 and set(fails["value"]) == {"0.829"}
    assert np.allclose(fails["p_exact"], 42 / 720) and (fails["p_t"] < 0.05).all()
    assert len(recomputed.exact_fails(audit, alpha=0.06)) == 0


def test_two_printed_spearmans_are_not_among_the_possible_values(audit: pd.DataFrame) -> None:
    odd = recomputed.unattainable(audit).set_index("value")
    assert dict(odd["nearest"]) == {"0.042": "0.029, 0.086", "0.571": "0.543, 0.600"} and set(
        odd["attainable"]
    ) == {"no"}
    assert odd.loc["0.571", "points"].split(", ")[0] == "7"  # 1 - 6 · 24/336
    steps = recomputed.spearman_steps(audit)
    assert (steps["attainable"] == "yes").sum() == 18 and steps["n_printed"].sum() == 114
    assert steps["n_significant"].sum() == 42 and steps["p_exact"].iloc[-1] == pytest.approx(
        2 / 720
    )


def test_cells_that_print_the_same_pair_are_found(audit: pd.DataFrame) -> None:
    same = recomputed.identical(audit)
    twins = same[same["kind"] == "one method, two data sets"]
    assert {first.split(",")[0] for first in twins["first"]} == {"NumSet", "Ecc", "CE"}
    # 0.473 and 0.473, but 0.600 and 0.486: the same Pearson is not enough
    assert not same["first"].str.startswith("MC-NSE").any()
    counts = recomputed.coincidence(audit).set_index("kind")
    assert counts["n_same"].to_dict() == {**same["kind"].value_counts().to_dict(), "all": len(same)}
    assert counts.loc["all", "n_pairs"] == 114 * 113 // 2
    # 27 methods with Llama-3.1 and 11 with GPT-4.1: 3 pairs of sets each, and C(27, 2) + C(11, 2)
    # pairs on each of 3 sets
    assert list(counts["n_pairs"][:2]) == [38 * 3, (351 + 55) * 3]
    assert counts["expected"].to_numpy() == pytest.approx(counts["n_near"].to_numpy() / 101)


def test_coincidence_counts_neighbours_by_hand() -> None:
    rows = [
        ("a", "0.500", "0.6"),
        ("b", "0.500", "0.6"),
        ("c", "0.550", "0.6"),
        ("d", "0.551", "0.6"),
        ("e", "0.500", "0.7"),
    ]
    key = {"model": "gpt-4.1", "dataset": "medqa", "p_printed": "0.2"}
    made = [
        {**key, "method": m, "statistic": s, "r": float(v)}
        for m, p, rho in rows
        for s, v in (("pearson", p), ("spearman", rho))
    ]
    found = (
        recomputed.coincidence(pd.DataFrame(made))
        .set_index("kind")
        .loc["two methods, one data set"]
    )
    # a to d share a Spearman: 6 pairs, of which a-d and b-d are 0.051 apart; a and b agree
    assert list(found[["n_pairs", "n_same_spearman", "n_near", "n_same"]]) == [10, 6, 4, 1]


def test_no_printed_coefficient_is_negative(audit: pd.DataFrame) -> None:
    found = recomputed.signs(audit).set_index("method")
    assert (
        (found["n_negative"] == 0).all()
        and found.loc["these 7", "n"] == 42
        and found.loc["the other 20", "n"] == 186
    )
    assert found.loc["Entropy", "least"] == 0.029 and found.loc["the other 20", "n_zero"] == 1
    turned = audit.assign(r=-audit["r"])
    counts = recomputed.signs(turned).set_index("method")
    assert (
        counts.loc["these 7", "n_negative"] == 42
        and counts.loc["these 7", "n_negative_of_these"] == 27
    )
    assert counts.loc["the other 20", "n_negative"] == 185


def test_printed_pearsons_are_placed_in_the_band_of_chance(audit: pd.DataFrame) -> None:
    band = recomputed.over_band(audit, n_draws=4000)
    assert len(band) == 114 + 6 and (band["family"] == "medconf").sum() == 6
    low, median, high = band[["low", "median", "high"]].iloc[0]
    assert low < median < high
    wanted = np.select(
        [band["r"] < low, band["r"] < median, band["r"] < high],
        recomputed.PLACES[:3],
        recomputed.PLACES[3],
    )
    assert list(band["place"]) == list(wanted) and set(wanted) == set(recomputed.PLACES)
    tallied = recomputed.tally(band, "place", recomputed.PLACES)
    assert tallied.to_numpy().sum() == 120 and list(tallied.columns) == list(recomputed.PLACES)
    assert tallied.index[0] == ("Llama-3.1", "DDXPlus")


# -- the other tables
# --------------------------------------------------------------------------------------------------


def test_what_two_tables_print_is_set_side_by_side(audit: pd.DataFrame) -> None:
    found = others.disagreements(audit)
    assert len(found) == 15 + 2
    first, second, third = found.head(3).to_dict("records")
    assert (first["quantity"], first["method"], first["value_first"], first["value_second"]) == (
        "AUROC",
        "medconf",
        0.722,
        0.772,
    )
    assert (second["method"], second["first"], second["second"], second["difference"]) == (
        "pmi",
        2,
        3,
        0.048,
    )
    assert second["also"] == "Conditional PMI" and third["difference"] == 0.001
    assert (found["difference"][3:] == 0).all() and (found["also"][3:] == "").all()


def test_fifty_consultations_are_the_fewest_that_fit() -> None:
    found = others.consultations(120).set_index("reading")
    smallest = dict(found["smallest"])
    assert (
        smallest["both"]
        == smallest["both, utterances even"]
        == smallest["both, were nothing rounded"]
        == 50
    )
    assert smallest["mean utterances"] == 25 and smallest["accuracy"] == 33
    assert found.loc["both, were nothing rounded", "numbers"] == [50, 100]
    assert (
        70 in found.loc["both", "numbers"]
        and 70 not in found.loc["both, utterances even", "numbers"]
    )
    assert 25 not in found.loc["accuracy", "numbers"]  # 30 % of 25 is no whole number
    assert found["n_fit"].to_list() == [len(n) for n in found["numbers"]]
    few = others.consultations(20).set_index("reading")
    assert few["smallest"].isna().all() and (few["n_fit"] == 0).all()


def test_auroc_differences_and_their_sampling_error() -> None:
    found = others.auroc_differences()
    assert len(found) == 2 * 15 and found.groupby("unit").size().to_dict() == {
        "answer": 15,
        "case": 15,
    }
    ce = found.query("model == 'llama-3.1' and dataset == 'ddxplus' and method == 'ce'").set_index(
        "unit"
    )
    assert ce["difference"].to_list() == [0.052, 0.052] and ce["n"].to_dict() == {
        "answer": 1026,
        "case": 171,
    }
    # Hanley & McNeil 1982 by hand, 513 right and 513 wrong
    variances = []
    for a in (0.722, 0.670):
        q1, q2 = a / (2 - a), 2 * a * a / (1 + a)
        variances.append((a * (1 - a) + 512 * (q1 - a * a) + 512 * (q2 - a * a)) / 513**2)
    assert ce.loc["answer", "se"] == pytest.approx(sum(variances) ** 0.5)
    assert (ce["high"] - ce["low"]).to_numpy() == pytest.approx(2 * 1.959964 * ce["se"].to_numpy())
    assert ce.loc["case", "cases"] == np.ceil(
        171 * ((1.959964 + 0.841621) * ce.loc["case", "se"] / 0.052) ** 2
    )
    related = others.auroc_differences(correlation=0.5)
    assert (related["se"] < found["se"]).all() and (related["cases"] < found["cases"]).all()


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5])
def test_a_share_of_right_answers_outside_0_to_1_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match=f"share_right must lie between 0 and 1; received {share}"):
        others.auroc_differences(share_right=share)


def test_the_best_baseline_is_marked_in_each_configuration() -> None:
    found = others.advantages()
    assert (
        found.groupby(["model", "dataset"])["best"].sum().to_list() == [1] * 6 and len(found) == 15
    )
    assert set(found.loc[found["best"], "method"]) == {"ce", "entropy", "ecc"}


# -- the sentences
# --------------------------------------------------------------------------------------------------


def test_every_claim_is_answered_once(told: pd.DataFrame) -> None:
    assert (
        list(told.index) == list(published_claims()["id"])
        and told.index.is_unique
        and len(told) == 46
    )
    assert told["agrees"].value_counts().to_dict() == {
        claims.YES: 26, claims.UNKNOWN: 11, claims.NO: 8, claims.NO_FIGURE: 1,
    }  # fmt: skip
    assert (told["how"] != "").all() and told["recomputed"].isna().equals(
        told["agrees"] == claims.UNKNOWN
    )


@each(
    ("name", "value", "agrees"),
    [
        ("mean_pearson", 0.968 - 15.07 / 27, "yes"), ("mean_spearman", 0.943 - 12.617 / 27, "yes"),
        ("best_mean", 0.313 / 6, "no"), ("best_least", 0.690 - 0.667, "no"),
        ("best_most", 0.795 - 0.682, "no"), ("levels", 6, "yes"), ("methods", 27, "yes"),
        ("black_box", 12, "no"), ("white_box", 15, "no"),
        ("superior_auroc", 6, "yes"), ("superior_pearson", 2, "no"),
        ("pearson_close", 0.989 - 0.936, "no figure is claimed"),
        ("pearson_least", 0.936, "yes"), ("pearson_most", 0.989, "yes"),
        ("auroc_least", 0.672, "yes"), ("auroc_most", 0.796, "yes"),
        ("two_medqa_pearson", 0.978, "yes"), ("two_others_pearson", 0.515, "yes"),
        ("two_others_spearman", 0.486, "yes"),
        ("ce_significant", 21, "no"), ("graph_excellent", 12, "yes"), ("graph_elsewhere", 1, "no"),
        ("robust_ce_sample", 47.575 - 12.401, "yes"), ("robust_asp_group", 2.580 - 2.343, "yes"),
        ("case_asp", (32.04 + 97.22 + 99.99) / 3, "yes"), ("case_poc", 1000 / 15, "yes"),
        ("case_samples", 15, "yes"),
        ("entropy_medqa_auroc", 0.766, "yes"), ("cot_spearman", 0.086, "yes"),
    ],
)  # fmt: skip
def test_claims_by_hand(told: pd.DataFrame, name: str, value: float, agrees: str) -> None:
    assert (
        told.loc[name, "recomputed"] == pytest.approx(value, abs=1e-6)
        and told.loc[name, "agrees"] == agrees
    )


@each(
    ("difference", "relation", "agrees"),
    [
        (0.001, "=", "yes"), (-0.001, "=", "yes"), (0.002, "=", "no"), (-0.002, "=", "no"),
        (0.5, ">", "yes"), (-0.001, ">", "yes"), (-0.002, ">", "no"),
        (-0.5, "<", "yes"), (0.001, "<", "yes"), (0.002, "<", "no"),
    ],
)  # fmt: skip
def test_agreement_leaves_room_for_rounding_on_the_right_side(
    difference: float, relation: str, agrees: str
) -> None:
    assert claims.judged(difference, relation, 0.001) == agrees


def test_rounding_of_a_claim_and_of_what_it_is_made_of_both_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, words = claims.recompute("over_mean pearson")
    # half a unit of 0.410, and a unit for the two printed numbers
    for shift, agrees in ((0.0014, "yes"), (0.0017, "no")):
        monkeypatch.setitem(
            claims.EXPRESSIONS, "over_mean", lambda _, shift=shift: (0.410 + shift, words)
        )
        assert claims.claims_table().set_index("id").loc["mean_pearson", "agrees"] == agrees


def test_an_expression_that_is_not_known_is_refused() -> None:
    with pytest.raises(ValueError, match="'__import__ os'; known are absent, case"):
        claims.recompute("__import__ os")
    said = {expression.split()[0] for expression in published_claims()["expression"]}
    assert said == set(claims.EXPRESSIONS)


def test_claimed_figures_are_read_and_unknown_ones_refused() -> None:
    assert others.claimed("cases_ddxplus") == 171 and isnan(others.claimed("pearson_close"))
    with pytest.raises(KeyError, match="apples"):
        others.claimed("apples")


def test_the_words_stay_neutral(told: pd.DataFrame) -> None:
    words = " ".join(
        [
            *told["claim"],
            *told["how"],
            (DATA / "published" / "README.md").read_text(encoding="utf-8"),
        ]
    ).lower()
    assert not re.search(r"\b(error|wrong|flawed|suspicious|mistake|false|fabricat\w*)\b", words)


@pytest.mark.realdata
@pytest.mark.skipif(
    not SENTENCES.is_file(), reason="the sentences as they were first copied are absent"
)
def test_every_figure_of_the_sentences_is_among_the_claims() -> None:
    text = SENTENCES.read_text(encoding="utf-8").split("as figures to check:")[1]
    figures = set(re.findall(r"(?<![\w.])\d+\.\d+(?![\w])", text)) - {"3.1", "4.1"}
    held = " ".join(published_claims()[["claim", "claimed"]].to_numpy().ravel())
    assert figures - set(re.findall(r"\d+\.\d+", held)) == set()


def test_the_tables_of_the_audit_are_those_of_the_paper() -> None:
    assert set(published_table("correlation")["method"]) >= set(
        published_table("comparison")["method"]
    ) - {"medconf"}
    assert set(TABLES.values()) == {2, 3, 4, 5, 6} and CELL == ["model", "dataset", "method"]
