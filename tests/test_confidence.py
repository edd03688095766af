"""Declaring and choosing methods; what single ones make of replies at the edge: unreadable,
repeated, differently written; what a bound on a statistic makes of a confidence."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from each import each
from generations import (
    FULL,
    STATISTICS,
    answered,
    array,
    generation,
    guessing,
    panel,
    pmi_of,
    said,
    sampled,
    told,
)
from reference_methods import CHANCES, TRUE_ZERO
from saying import saying, says

from trustlab.confidence import METHODS, registry, select
from trustlab.confidence.registry import (
    BY_NAME,
    FAMILIES,
    GIVEN_NEEDS,
    GROUPS,
    LATER,
    PAPER,
    VARIANTS,
    method,
)
from trustlab.parsing.scores import NO_GUESSES, NO_SCORE
from trustlab.records import CUT, PARAMETERS, Generation, Reply

P, Q, R, S = (math.log(p) for p in (0.5, 0.25, 0.1, 0.05))
STRICT = replace(PARAMETERS, reading="strict")


def samples_with(*probs: tuple[float, ...]) -> Generation:
    return generation(samples=tuple(said("Flu", p) for p in probs))


@each(
    ("name", "made", "value"),
    [
        ("lexical_similarity", sampled("lung infections", "lung infection"), 1),  # one stem
        ("lexical_similarity", sampled("viral croup", "croup"), 2 / 3),  # recall 1/2, precision 1
        # Pairs: croup-croup 1; twice croup against "viral croup" 2/3.
        ("lexical_similarity", sampled("croup", "viral croup", "croup"), (1 + 2 / 3 + 2 / 3) / 3),
        # rouge-score reads no word here, but they are one
        ("lexical_similarity", sampled("インフルエンザ", "インフルエンザ"), 1),
        ("poc", sampled(" Flu ", "flu.", "FLU", "The flu"), 0.75),
        ("mc_se", samples_with((0.1, 0.1), (1.0,)), 2 * R / 2),
        ("mc_nse", samples_with((0.1, 0.1), (1.0,)), R / 2),
        # the threshold of 1 nat itself counts
        ("conditional_pmi", pmi_of((0.5, 0.25), (0.1, 0.05), (1.0, 0.999)), (P + Q) / 2 + R / 4),
        ("conditional_pmi", pmi_of((0.5, 0.25), (0.1, 0.05), (1.0, 1.0)),
         (P + Q) / 2 + (R + S) / 4),
        ("p_true", generation(probes={"p_true": told("True", None, "maybe", "false.")}), 0.5),
        ("word_count", generation(n_words=1), 1),
        ("token_sar", generation(answer=said("Flu", (0.5, 0.0)), relevance=array([1, 0])), P),
    ],
)  # fmt: skip
def test_values_at_the_edge_by_hand(name: str, made: Generation, value: float) -> None:
    assert METHODS[name].score(made) == pytest.approx(value)


@each(("combination", "value"), [("mean", 0.82), ("first", 0.8), ("max", 0.9)])
def test_topk_combination_is_a_parameter(combination: Any, value: float) -> None:
    assert PARAMETERS.topk_combination == "mean"
    chosen = replace(FULL, parameters=replace(PARAMETERS, topk_combination=combination))
    assert METHODS["topk_ce"].score(chosen) == pytest.approx(value, rel=1e-12)


REFUSED = Reply(None, missing="refused")


def probed(name: str, reply: Reply, **more: Any) -> Generation:
    return generation(probes={name: (reply,)}, **more)


@each(
    ("name", "made", "missing"),
    [
        *(
            (name, probed(name, Reply(text), parameters=parameters), NO_SCORE)
            for name in ("ce", "cot_ce")
            for text, parameters in (
                ("85", STRICT), ("[101]", STRICT), ("[101]", PARAMETERS), ("[80] [90]", PARAMETERS),
            )
        ),
        *((name, probed(name, REFUSED), "refused") for name in ("ce", "cot_ce", "topk_ce")),
        ("topk_ce", guessing(80, 85, 90, 75), NO_GUESSES),
        ("poc", sampled("Flu"), ("2", "samples")),
        ("topk_ce", guessing(80, 85, 90, 75, 80, 85), NO_GUESSES),
        ("topk_ce", guessing(80, 85, 90, 75, 101), NO_GUESSES),
        ("p_true", generation(probes={"p_true": told("True", "maybe")}),
         (2, True, False)),
        ("pmi", answered(prior_logprobs=[-1.0, -math.inf], entropies=[2.0, 2.0]), "pmi is inf"),
        ("conditional_pmi", answered(prior_logprobs=[-1.0, -math.inf], entropies=[2.0, 2.0]),
         ("conditional_pmi", "-inf")),
        ("information_level", generation(n_total=0, n_statements=0),
         "statements"),
        ("cot_ce", probed("cot_ce", Reply("First [1] fever, then", finish="length")),
         CUT),
    ],
)  # fmt: skip
def test_what_cannot_be_had_is_missing_with_its_reason(name: str, made: Generation, missing: Any):
    found = METHODS[name].evaluate(made)
    assert math.isnan(found.confidence) and says(found.missing, missing)


def test_bounds_in_both_directions_leave_nothing_to_report_and_those_of_samples_count() -> None:
    made = answered(bounds={"logprobs": "lower", "prior_logprobs": "lower"}, **STATISTICS)
    confidence, missing, bound = METHODS["pmi"].evaluate(made)
    assert math.isnan(confidence) and "neither" in missing and bound == ""
    made = generation(samples=(said("Flu"), said("Flu", bounds={"logprobs": "upper"})))
    assert METHODS["mc_se"].evaluate(made).bound == "upper"


def asp(generation: Generation) -> float:
    return 0.0


@each(
    ("changes", "message"),
    [
        ({"family": "tokens"}, ("family", "'tokens'", "token", "consistency")),
        ({"scale": "percent"}, ("scale", "'percent'", "probability", "score")),
        ({"needs": "answer.logits"}, ("'answer.logits'", "answer.logprobs")),
        ({"falls_with": "answer.logprobs"}, ("'answer.logprobs'", "needs")),
        ({}, ("'asp'", "already")),
    ],
)
def test_bad_declarations_are_refused(changes: dict, message: Any) -> None:
    plain = {"family": "token", "scale": "score", "equation": "", "needs": "shown", "cite": ""}
    before = METHODS["asp"]
    with pytest.raises(ValueError, match=saying(message)):
        method(**(plain | {"label": "Plain"} | changes))(asp)
    assert METHODS["asp"] is before


def test_select() -> None:
    assert [m.name for m in select(["poc", "asp", "poc"])] == ["poc", "asp"]
    assert [m.name for m in select("entropy")] == ["entropy"]
    every, variants = select("all"), select("variants")
    families = [FAMILIES.index(m.family) for m in every]
    assert families == sorted(families)
    alone = [m for m in METHODS.values() if m not in every]
    assert {"ce_expected", "p_true_probability", "exact_posterior"} <= {m.name for m in alone}
    for m in alone:
        groups = [group for group in GROUPS if m in select(group)]
        assert groups == (["later"] if m.name in LATER else [])
        assert m.family == "reference" or GIVEN_NEEDS & {*m.needs} or m.name in BY_NAME
    assert {m.name for m in select("later")} == {*LATER} and len(LATER) == 11
    assert [m for m in every if m in variants] == variants
    assert {"agreement", "rdc"} <= {m.name for m in every if m not in variants}
    paper = [m.name for m in select("paper")]
    assert paper == [*PAPER] and "sequence_probability" not in paper
    assert len(PAPER) == len(set(PAPER)) == 27 + 1 + 3
    assert {m.name for m in variants} == {*VARIANTS} and len(VARIANTS) == len(set(VARIANTS))


def test_an_added_method_joins_no_published_set(monkeypatch: pytest.MonkeyPatch) -> None:
    published = {group: select(group) for group in ("paper", "variants", "ratio")}
    monkeypatch.setattr(registry, "METHODS", dict(METHODS))

    @method("New", "probability", "shown", family="baseline")
    def new(generation: Generation) -> float:
        return 0.5

    assert {group: select(group) for group in published} == published
    (added,) = select("new")
    assert added.function is new and added in select("all")


@each(
    ("methods", "message"),
    [
        (["asp", "perplexty"], ("'perplexty'", "'paper'", "perplexity")),
        ("papers", ("'papers'", "'paper'")),
        ([], "no methods"),
    ],
)
def test_select_refuses_unknown_names(methods: str | list[str], message: Any) -> None:
    with pytest.raises(ValueError, match=saying(message)):
        select(methods)


def test_what_is_meant_as_a_chance_and_what_has_a_true_zero() -> None:
    assert {name for name, m in METHODS.items() if m.scale == "probability"} == CHANCES
    assert {name for name, m in METHODS.items() if m.ratio} == TRUE_ZERO


FEW = "fewer than two readable diagnoses"


@each(
    ("votes", "value"),
    [
        (("flu", "flu", "flu"), 1),
        (("flu", "croup", "flu"), 2 / 3),
        (("flu", "croup", "gout"), 1 / 3),
        (("flu", "croup", "croup", "flu"), 1 / 2),
        (("flu", None, "flu"), 1),  # of those that can be read
        (("flu", None, "croup"), 1 / 2),
        *((votes, FEW) for votes in [("flu",), ("flu", None, None), (None, None, None), ()]),
    ],
)
def test_agreement_is_the_share_of_the_largest_group(votes, value: float | str) -> None:
    found = METHODS["agreement"].evaluate(generation(panel=panel(*votes)))
    share, why = (math.nan, value) if isinstance(value, str) else (value, "")
    assert found.confidence == pytest.approx(share, nan_ok=True)
    assert says(found.missing, why) if why else not found.missing
