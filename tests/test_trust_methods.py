"""Agreement and RDC as confidences: values by hand, what is missing, and what a collection asks for
them."""

from __future__ import annotations

import math

import pytest
from each import each
from fake_panel import FakePanel, Wordy, case, opinion
from generations import generation, panel

from trustlab.collect import Settings, collect
from trustlab.confidence import METHODS, select
from trustlab.levels import view
from trustlab.meaning.entailment import StandInEntailment
from trustlab.meaning.parts import Readers
from trustlab.records import Parameters

FEW = "fewer than two readable diagnoses in the panel"
NOBODY = "no doctor of the panel gave both reasoning and diagnosis"
NAN = math.nan


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
    expected = (NAN, value) if isinstance(value, str) else (value, "")
    assert (found.confidence, found.missing) == (
        pytest.approx(expected[0], nan_ok=True),
        expected[1],
    )


@each(
    ("cosines", "value"),
    [
        ((0.4, 0.1, 0.1), 0.2),
        ((-0.5, 0.1), -0.2),
        ((0.4, NAN, 0.2), 0.3),
        ((0.7,), 0.7),
        ((NAN, NAN), NAN),
        ((), NAN),
    ],
)
def test_rdc_is_the_mean_cosine_of_the_doctors_that_have_one(cosines, value: float) -> None:
    found = METHODS["rdc"].evaluate(generation(panel=panel(*["flu"] * 2, cosines=cosines)))
    assert found.confidence == pytest.approx(value, nan_ok=True)
    assert found.missing == (NOBODY if math.isnan(value) else "")


def test_both_are_methods_beside_the_papers_and_agreement_needs_no_cosines() -> None:
    made = generation(panel=panel("flu", "flu"))
    assert METHODS["agreement"].score(made) == 1
    assert METHODS["rdc"].evaluate(made).missing == "panel.cosines not collected"
    names = [m.name for m in select("all") if m.family == "trust"]
    assert names == ["agreement", "rdc"] and not {*names} & {m.name for m in select("paper")}


READERS = Readers(encoder := Wordy(), None, StandInEntailment(encoder))  # pyright: ignore[reportArgumentType]


def collected(names: list[str], **parameters):
    three = [
        opinion("Fever", "Fever."),
        opinion("Cough", "Fever."),
        opinion("Fever", "Cough and fever."),
    ]
    model = FakePanel(diagnosis="[Fever]", doctor=[*three, *three])
    settings, views = Settings(Parameters(**parameters), seed=5), [view(case(c), 100) for c in "ab"]
    return model, collect(model, views, select(names), settings, readers=READERS)


def test_a_panel_is_asked_only_where_a_method_reads_it_and_as_the_parameters_say() -> None:
    model, found = collected(["word_count"])
    assert not model.of("doctor") and [g.panel for g in found] == [None, None]
    model, found = collected(["agreement"])
    assert len(model.of("doctor")) == 2
    assert [g.panel.cosines for g in found if g.panel] == [None, None]
    model, found = collected(["agreement", "rdc"], n_doctors=4, doctor_temperature=0.9)
    assert {(r.n, r.first, r.temperature, r.seed) for r in model.of("doctor")} == {(4, 0, 0.9, 5)}
    for made in found:
        assert METHODS["agreement"].score(made) == 3 / 4  # fever, cough, fever, fever
        assert METHODS["rdc"].score(made) == pytest.approx((1 + 0 + 1 / math.sqrt(2) + 1) / 4)
    model, _ = collected(["rdc"])
    assert {(r.n, r.temperature) for r in model.of("doctor")} == {(3, 0.5)}
    _, found = collected(["agreement", "rdc"], n_doctors=1)  # nobody to agree with
    assert {METHODS["agreement"].evaluate(g).missing for g in found} == {FEW}
    assert [METHODS["rdc"].score(g) for g in found] == pytest.approx([1, 1])


@each(
    ("name", "value"),
    [("n_doctors", 0), ("doctor_temperature", -0.1), ("doctor_temperature", 100.0)],
)
def test_parameters_out_of_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} is {value}; it must be a"):
        Parameters(**{name: value})
