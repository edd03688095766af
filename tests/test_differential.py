"""The differential that the knowledge table implies, worked out by hand on a small table, and its
flatness."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from studies.robustness import Strata, differential, flatness, tertiles
from trustlab.knowledge import Condition, Finding, Knowledge, load_knowledge
from trustlab.records import Statement


def finding(name: str, background: float, **more) -> Finding:
    return Finding(
        name,
        name,
        "symptom",
        f"{name}?",
        (f"{name} yes",),
        (f"{name} no",),
        background=background,
        **more,
    )


def condition(name: str, prior: float, findings: dict[str, float]) -> Condition:
    return Condition(name, name, (), prior, "any", (0, 99), "all", findings, {}, {})


SMALL = Knowledge(
    findings={
        f.id: f
        for f in (
            finding("cough", 0.1),
            finding("rash", 0.05),
            finding("where", 0.3, parent="rash"),
        )
    },
    conditions={
        c.id: c
        for c in (
            condition("flu", 3, {"cough": 0.7}),
            condition("measles", 1, {"cough": 0.5, "rash": 0.92}),
        )
    },
    values={},
)
COUGH, NO_COUGH, RASH = (
    Statement("", "cough", True),
    Statement("", "cough", False),
    Statement("", "rash", True),
)
NO_RASH = Statement("", "rash", False)


def test_prior_times_the_chance_of_what_is_told() -> None:
    # flu: 3 x 0.7 x (1 - 0.05) = 1.995; measles: 1 x 0.5 x (1 - 0.92) = 0.04.
    found = differential([COUGH, NO_RASH], SMALL)
    assert found == pytest.approx({"flu": 1.995 / 2.035, "measles": 0.04 / 2.035}) and list(
        found
    ) == ["flu", "measles"]
    # flu: 3 x 0.3 x 0.05 = 0.045; measles: 1 x 0.5 x 0.92 = 0.46.
    found = differential([NO_COUGH, RASH], SMALL)
    assert found == pytest.approx({"measles": 0.46 / 0.505, "flu": 0.045 / 0.505}) and list(
        found
    ) == ["measles", "flu"]


def test_a_finding_counts_once_as_first_told_and_follow_ups_and_loose_talk_not_at_all() -> None:
    once = differential([COUGH], SMALL)
    rest = [
        NO_COUGH,
        COUGH,
        Statement("", "where", True),
        Statement("Nice weather."),
        Statement("", "unheard", True),
    ]
    assert (
        differential([COUGH, *rest], SMALL)
        == once
        == pytest.approx({"flu": 2.1 / 2.6, "measles": 0.5 / 2.6})
    )


@pytest.mark.parametrize(
    "told",
    [[], [Statement("He coughs.")], [Statement("", "where", True)], [Statement("", "cough", None)]],
)
def test_without_a_finding_there_is_no_differential(told: list[Statement]) -> None:
    with pytest.raises(ValueError, match=f"none of {len(told)} statements carries a finding"):
        differential(told, SMALL)


def test_flatness_by_hand() -> None:
    assert flatness({"a": 1.0, "b": 0.0}) == 0
    assert flatness({str(i): 0.25 for i in range(4)}) == pytest.approx(math.log(4))
    assert flatness({"a": 0.9, "b": 0.1}) == pytest.approx(
        0.325083, abs=1e-6
    )  # -(0.9 ln 0.9 + 0.1 ln 0.1)


@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(load_knowledge().findings)), st.booleans()),
        min_size=1,
        max_size=12,
    )
)
def test_on_the_shipped_table_probabilities_sum_to_one_whatever_is_told(
    told: list[tuple[str, bool]],
) -> None:
    statements = [Statement("", "fever", True), *(Statement("", f, yes) for f, yes in told)]
    found = differential(statements, load_knowledge())
    assert sum(found.values()) == pytest.approx(1) and set(found) == set(
        load_knowledge().conditions
    )
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert 0 <= flatness(found) <= math.log(len(found))


def test_telling_a_typical_finding_raises_its_condition_and_denying_it_lowers_it() -> None:
    table = load_knowledge()
    before, after = (
        differential([Statement("", "fever", True), *more], table)
        for more in ((), [Statement("", "cough", True)])
    )
    denied = differential([Statement("", "fever", True), Statement("", "cough", False)], table)
    name = max(
        (c for c in table.conditions.values() if "cough" in c.findings),
        key=lambda c: c.findings["cough"],
    ).id
    assert denied[name] < before[name] < after[name]


def test_tertiles_cut_where_a_third_lies_below_and_missing_is_in_none() -> None:
    cuts = tertiles([0.0, 1.0, 2.0, 3.0, math.nan])
    assert cuts == Strata(1.0, 2.0)
    assert [cuts.of(v) for v in (0.0, 1.0, 1.1, 2.0, 2.1, math.nan)] == [
        "clear",
        "clear",
        "middle",
        "middle",
        "flat",
        None,
    ]
    assert [cuts.describe(s) for s in ("clear", "flat")] == [
        "clear (up to 1.00 nats)",
        "flat (above 2.00 nats)",
    ]
    with pytest.raises(ValueError, match="at least 3 values; received 2"):
        tertiles([1.0, 2.0, math.nan])
    with pytest.raises(ValueError, match="stratum is 'steep'"):
        cuts.describe("steep")
