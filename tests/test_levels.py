"""Information levels: how many statements each shows, and that views of one case nest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustlab.levels import n_shown, view, views
from trustlab.records import LEVELS, Case, Statement


def case_of(n: int, case_id: str = "c") -> Case:
    told = tuple(Statement(f"statement {i}") for i in range(n))
    return Case(case_id, "made", told, "Influenza", ("Influenza",))


@pytest.mark.parametrize(
    ("n_total", "shown"),
    [
        (11, [1, 3, 5, 7, 9, 11]),  # 2.2, 4.4, 6.6, 8.8 rounded up
        (15, [1, 3, 6, 9, 12, 15]),  # whole numbers stay
        (20, [1, 4, 8, 12, 16, 20]),
        (35, [1, 7, 14, 21, 28, 35]),
        (300, [1, 60, 120, 180, 240, 300]),  # one per cent is one statement, not three
    ],
)
def test_statements_shown_worked_by_hand(n_total: int, shown: list[int]) -> None:
    assert LEVELS == (1, 20, 40, 60, 80, 100)
    assert [n_shown(n_total, level) for level in LEVELS] == shown


@pytest.mark.parametrize(
    ("n_total", "level", "named"), [(11, 0, "0"), (11, 101, "101"), (11, -20, "-20"), (0, 20, "0")]
)
def test_levels_and_cases_out_of_range_are_refused(n_total: int, level: int, named: str) -> None:
    with pytest.raises(ValueError, match=rf"is {named}; "):
        n_shown(n_total, level)


@given(n=st.integers(1, 400), level=st.integers(2, 100))
def test_views_nest_and_show_the_smallest_number_that_reaches_the_level(n: int, level: int) -> None:
    k = n_shown(n, level)
    assert 100 * k >= level * n > 100 * (k - 1)
    case = case_of(n)
    assert view(case, level).statements == case.statements[:k]


def test_views_go_by_case_then_ascending_level() -> None:
    found = views([case_of(12, "b"), case_of(12, "a")], (100, 1, 40))
    assert [(v.case.case_id, v.level) for v in found] == [
        *(("b", level) for level in (1, 40, 100)),
        *(("a", level) for level in (1, 40, 100)),
    ]
    shown = view(case_of(11), 20)
    assert shown.text == "statement 0\nstatement 1\nstatement 2"
    assert (shown.n_statements, shown.n_total, shown.n_words) == (3, 11, 6)
