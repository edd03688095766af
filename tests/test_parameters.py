"""The methods' open choices: named once, checked, and part of what a run says of itself."""

from __future__ import annotations

from dataclasses import asdict, fields

import pytest
from each import each

from trustlab.settings import PARAMETERS, Parameters


def test_the_defaults_are_those_that_are_written_down():
    assert asdict(PARAMETERS) == {
        "n_samples": 15, "sample_temperature": 0.5, "p_true_temperature": 1.0, "renyi_alpha": 0.5, "pmi_weight": 0.5,
        "pmi_threshold": 1.0, "n_alternatives": 10, "sar_temperature": 0.001, "eigenvalue_cut": 0.9,
        "topk_combination": "mean", "relevance_context": "answer", "entailment_context": "answer",
        "n_doctors": 3, "doctor_temperature": 0.5,
    }  # fmt: skip


@each("name", [f.name for f in fields(Parameters) if isinstance(f.default, (int, float))])
def test_a_number_out_of_range_is_refused_by_name(name: str):
    with pytest.raises(ValueError, match=f"{name} is -1; it must be"):
        Parameters(**{name: -1})


@pytest.mark.parametrize("name", ["topk_combination", "relevance_context", "entailment_context"])
def test_an_unknown_word_is_refused_with_those_allowed(name: str):
    with pytest.raises(ValueError, match=rf"{name} is 'median'; it must be \w+ or"):
        Parameters.named(**{name: "median"})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"alpha": 2}, "there is no parameter 'alpha'; known are n_samples,"),
        ({"n_samples": 3.5}, "n_samples is 3.5; it must be a int"),
        ({"n_samples": True}, "n_samples is True"),
        ({"renyi_alpha": "2"}, "renyi_alpha is '2'; it must be a float"),
    ],
)
def test_named_parameters_are_checked(given: dict, words: str):
    with pytest.raises(ValueError, match=words):
        Parameters.named(**given)


def test_a_whole_number_may_stand_for_a_real_one():
    assert Parameters.named(renyi_alpha=2).renyi_alpha == 2
