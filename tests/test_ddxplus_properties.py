"""DDXPlus, whatever the row: a case, a counted drop or one clear error; nothing is lost between the
three."""

from __future__ import annotations

import ast
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_ddxplus import CODES, ROW, patients, release

from trustlab.datasets import DataError, ddxplus, load_cases, read_data
from trustlab.datasets.ddxplus import COLUMNS


def codes_of(name: str) -> st.SearchStrategy[list[str]]:
    """What a patient may say of one evidence: nothing, or it with a value, or with several where it
    is multi-choice."""
    kind, values = CODES[name]["data_type"], CODES[name]["possible-values"]
    if kind == "B":
        return st.sampled_from([[], [name]])
    most = len(values) if kind == "M" else 1
    return st.lists(st.sampled_from(values), max_size=most, unique=True).map(
        lambda vs: [f"{name}_@_{v}" for v in vs]
    )


PATIENTS = st.tuples(*map(codes_of, CODES)).map(
    lambda said: [code for codes in said for code in codes]
)


def row_of(codes: list[str]) -> dict[str, str]:
    first = next((code for code in codes if "_@_" not in code), "E_91")
    codes = codes if first in codes else [*codes, first]
    return ROW | {"EVIDENCES": str(codes), "INITIAL_EVIDENCE": first}


@given(st.lists(PATIENTS, min_size=1, max_size=6), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_every_sound_row_is_a_case_or_a_counted_drop_and_every_evidence_one_statement(
    patients: list[list[str]], seed: int
) -> None:
    rows = [row_of(codes) for codes in patients]
    with tempfile.TemporaryDirectory() as folder:
        found = ddxplus.read(release(Path(folder), rows), seed)
        left_out = [number for numbers in found.dropped.values() for number in numbers]
        named = [*(c.case_id.removeprefix("ddxplus-") for c in found.cases), *left_out]
        assert sorted(named, key=int) == [str(i) for i in range(1, len(rows) + 1)]
        assert found.n_entries == len(rows)
        for case in found.cases:
            row = rows[int(case.case_id.removeprefix("ddxplus-")) - 1]
            names = {code.split("_@_")[0] for code in ast.literal_eval(row["EVIDENCES"])}
            assert len(case.statements) == len(names) > 10
            assert all("_@_" not in s.text and "{value}" not in s.text for s in case.statements)


@given(st.sampled_from(COLUMNS), st.text(max_size=40))
@settings(max_examples=150, deadline=None)
def test_whatever_stands_in_a_field_it_is_read_or_refused_by_row_and_field(
    column: str, text: str
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = release(Path(name), [ROW, ROW | {column: text}])
        try:
            assert ddxplus.read(folder).n_entries == 2
        except DataError as error:
            assert error.row in (2, 3, None) and error.field in (
                *COLUMNS,
                "row",
                "content",
                "header",
            )


@pytest.mark.parametrize(
    "content",
    ["[true]", "[null]", "[['Made-up disease', true]]", "[['Made-up disease', NaN]]", "true"],
)
def test_what_is_json_and_no_python_literal_is_refused(tmp_path: Path, content: str) -> None:
    for column in ("EVIDENCES", "DIFFERENTIAL_DIAGNOSIS"):
        with pytest.raises(DataError):
            ddxplus.read(release(tmp_path, [ROW | {column: content}]))


def test_quotation_marks_of_either_kind_are_read(tmp_path: Path) -> None:
    double = ROW["EVIDENCES"].replace("'", '"')
    single, other = ddxplus.read(release(tmp_path, [ROW, ROW | {"EVIDENCES": double}])).cases
    assert {s.finding for s in single.statements} == {s.finding for s in other.statements}


def test_a_pick_makes_objects_of_the_picked_rows_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = release(tmp_path, patients(40))
    made: list[int] = []
    whole = ddxplus._Cases._case
    monkeypatch.setattr(
        ddxplus._Cases,
        "_case",
        lambda self, number, row: made.append(number) or whole(self, number, row),
    )
    picked = load_cases("ddxplus", path=folder, n=4, seed=1)
    assert [f"ddxplus-{n}" for n in made] == [c.case_id for c in picked]


def test_a_bad_row_is_found_though_it_was_not_picked(tmp_path: Path) -> None:
    folder = release(tmp_path, [*patients(40), ROW | {"AGE": "old"}])
    with pytest.raises(DataError, match=r"row 41.*AGE: received 'old'"):
        load_cases("ddxplus", path=folder, n=1)


def test_looking_twice_at_a_case_shows_the_same(tmp_path: Path) -> None:
    cases = read_data("ddxplus", path=release(tmp_path, patients(12)), seed=5).cases
    assert (
        cases[3] == cases[3]
        and cases[2:5] == [cases[2], cases[3], cases[4]]
        and list(cases)[-1] == cases[-1]
    )
