"""A test of many values fails where one of them does, and names every one that failed."""

from __future__ import annotations

import inspect
import os
import re
from pathlib import Path

import pytest
from each import each


def test_all_that_fails_is_named_and_nothing_else() -> None:
    tried = []

    @each("n", [1, 2, 3, 4])
    def even(n: int) -> None:
        tried.append(n)
        assert n % 2 == 0, f"{n} is odd"

    with pytest.raises(pytest.fail.Exception) as told:
        even()
    assert tried == [1, 2, 3, 4]
    head, *named = re.sub(r" in line \d+|\nassert.*", "", str(told.value)).split("\n\n")
    assert head == "2 of 4 fail"
    assert named == ["n=1: AssertionError: 1 is odd", "n=3: AssertionError: 3 is odd"]


def test_the_line_that_failed_is_named() -> None:
    @each("n", [1])
    def wrong(n: int) -> None:
        raise KeyError(n)

    with pytest.raises(pytest.fail.Exception) as told:
        wrong()
    said = re.search(r"n=1: KeyError in line (\d+): 1$", str(told.value))
    assert said is not None
    line = Path(__file__).read_text(encoding="utf-8").splitlines()[int(said[1]) - 1]
    assert line.strip() == "raise KeyError(n)"


def test_what_holds_for_every_value_passes() -> None:
    @each(("a", "b"), {"one": 3, "three": 5}.items())
    def as_long(a: str, b: int) -> None:
        assert len(a) == b

    as_long()


@pytest.mark.parametrize(
    ("ids", "name"),
    [(None, "a='x', b=0"), (["first", "second"], "first"), (lambda value: value or None, "x, b=0")],
)
def test_a_value_is_called_by_its_id(ids, name: str) -> None:
    @each("a, b", [("x", 0), ("y", 1)], ids=ids)
    def divides(a: str, b: int) -> None:
        1 / b  # noqa: B018

    with pytest.raises(pytest.fail.Exception, match="1 of 2 fail") as told:
        divides()
    assert f"\n\n{name}: ZeroDivisionError in line " in str(told.value)


def test_a_value_without_words_is_called_by_its_place() -> None:
    @each("change", [str.upper, lambda text: text])
    def rises(change) -> None:
        assert change("a") == "A"

    with pytest.raises(pytest.fail.Exception, match="1 of 2 fail\n\nchange number 1: Assertion"):
        rises()


def test_a_skip_inside_hides_no_failure() -> None:
    @each("n", [1, 2])
    def skipping(n: int) -> None:
        if n == 1:
            pytest.skip("not today")
        raise KeyError(n)

    with pytest.raises(pytest.fail.Exception) as told:
        skipping()
    assert re.search(r"n=1: Skipped in line \d+: not today", str(told.value))
    assert re.search(r"n=2: KeyError in line \d+: 2", str(told.value))


def test_two_loops_name_both_values() -> None:
    @each("a", [1, 2])
    @each("b", [3, 4])
    def product(a: int, b: int) -> None:
        assert (a, b) != (2, 3)

    with pytest.raises(pytest.fail.Exception) as told:
        product()
    assert "a=2: Failed: 1 of 2 fail\n\nb=3: AssertionError" in str(told.value)


def test_pytest_sees_the_fixtures_alone() -> None:
    @each("n", [1])
    def with_fixture(n: int, request: pytest.FixtureRequest) -> None:
        assert request.node.name and n

    assert list(inspect.signature(with_fixture).parameters) == ["request"]


def test_no_values_and_fixtures_of_one_test_are_refused() -> None:
    with pytest.raises(ValueError, match="no values for n: the test could not fail"):
        each("n", [])
    with pytest.raises(ValueError, match="1 ids for 2 values"):
        each("n", [1, 2], ids=["one"])

    def printing(n: int, capsys) -> None: ...

    with pytest.raises(ValueError, match="printing uses capsys: parametrize it"):
        each("n", [1])(printing)


@each("n", [1, 2])
def test_each_value_has_a_folder_and_patches_of_its_own(n: int, tmp_path, monkeypatch) -> None:
    assert not list(tmp_path.iterdir()) and "TRUSTLAB_EACH" not in os.environ
    (tmp_path / "left").write_text("here")
    monkeypatch.setenv("TRUSTLAB_EACH", str(n))


@each("n", range(3))
def test_a_loop_is_collected_as_one_test(n: int, request: pytest.FixtureRequest) -> None:
    assert n in range(3)
    assert request.node.name == "test_a_loop_is_collected_as_one_test"
