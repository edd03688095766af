"""Declaring methods, choosing them, and what a bound on a statistic makes of a confidence."""

from __future__ import annotations

import math

import pytest
from each import each
from generations import STATISTICS, answered, generation, said

from trustlab.confidence import METHODS, select
from trustlab.confidence.registry import FAMILIES, GROUPS, PAPER, method
from trustlab.records import Generation


@each(
    ("name", "bounds", "expected"),
    [
        ("entropy", {"entropies": "lower"}, "upper"),
        ("entropy", {"entropies": "upper"}, "lower"),
        ("entropy", {"logprobs": "lower"}, ""),
        ("fisher_rao", {"fisher_rao": "lower"}, "lower"),
        ("pmi", {"prior_logprobs": "upper"}, "lower"),
        ("pmi", {"logprobs": "lower"}, "lower"),
        ("pmi", {"logprobs": "lower", "prior_logprobs": "upper"}, "lower"),
        ("asp", {"entropies": "lower"}, ""),
    ],
)
def test_bounds_turn_with_the_sign(name: str, bounds: dict[str, str], expected: str) -> None:
    confidence, missing, bound = METHODS[name].evaluate(answered(bounds=bounds, **STATISTICS))
    assert (missing, bound) == ("", expected) and math.isfinite(confidence)


def test_bounds_in_both_directions_leave_nothing_to_report() -> None:
    made = answered(bounds={"logprobs": "lower", "prior_logprobs": "lower"}, **STATISTICS)
    confidence, missing, bound = METHODS["pmi"].evaluate(made)
    assert math.isnan(confidence) and "neither" in missing and bound == ""


def test_bounds_of_samples_count() -> None:
    made = generation(samples=(said("Flu"), said("Flu", bounds={"logprobs": "upper"})))
    assert METHODS["mc_se"].evaluate(made).bound == "upper"


def declared(**changes):
    plain = {
        "family": "token",
        "scale": "score",
        "equation": "",
        "needs": "shown",
        "cite": "",
        "label": "Plain",
    }
    return method(**(plain | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"family": "tokens"}, "family is 'tokens'; allowed are token, consistency"),
        ({"scale": "percent"}, "allowed are probability, score"),
        ({"needs": "answer.logits"}, "no need 'answer.logits'; known are answer"),
        ({"falls_with": "answer.logprobs"}, "not among the needs"),
    ],
)
def test_bad_declarations_are_refused(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        declared(**changes)


def test_a_name_is_registered_once() -> None:
    def asp(generation: Generation) -> float:
        return 0.0

    before = METHODS["asp"]
    with pytest.raises(ValueError, match="'asp' is registered already"):
        declared()(asp)
    assert METHODS["asp"] is before


def test_select() -> None:
    assert [m.name for m in select(["poc", "asp", "poc"])] == ["poc", "asp"]
    assert [m.name for m in select("entropy")] == ["entropy"]
    ordered = sorted(METHODS, key=lambda n: FAMILIES.index(METHODS[n].family))
    alone = {"ce_expected", "p_true_probability", "exact_posterior"}
    assert [m.name for m in select("all")] == [name for name in ordered if name not in alone]
    assert not any(alone & {m.name for m in select(group)} for group in GROUPS)
    assert select("exact_posterior") == [METHODS["exact_posterior"]]
    assert [m for m in select("all") if m not in select("variants")] == [
        METHODS["agreement"],
        METHODS["rdc"],
    ]
    paper = [m.name for m in select("paper")]
    assert paper == [n for n in PAPER if n in METHODS] and "sequence_probability" not in paper
    assert len(PAPER) == len(set(PAPER)) == 27 + 1 + 3


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        (
            ["asp", "perplexty"],
            (
                "no method 'perplexty'; did you mean perplexity.*known are 'paper', 'variants',"
                " 'ratio', 'all' and .*asp"
            ),
        ),
        ("papers", "no method 'papers'"),
        ([], "no methods are named"),
    ],
)
def test_select_refuses_unknown_names(methods: str | list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        select(methods)
