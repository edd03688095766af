"""A choice is taken as it is given or refused by name, however it is given; none becomes a default.

Every choice of notebook 01 meets every kind of value, given in the notebook's cell, in ``more``, to
``tl.Setup``, and, as far as text can say it, by ``-p`` and in a file of parameters.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from each import each
from fake_model import FakeEncoder, FakeModel
from saying import saying, says

import trustlab as tl
from trustlab.choices import names_of, plain
from trustlab.cli.run_notebooks import (
    check_parameters,
    choices_of,
    default_parameters,
    notebook_names,
    notebook_path,
    read_parameters,
)
from trustlab.settings import MEMORY, Setup

NOTEBOOK = "01_benchmark"
CELL = default_parameters(notebook_path(NOTEBOOK))
ASKED = choices_of(NOTEBOOK)
CHOICES = names_of(Setup)
MODEL, ENCODER = FakeModel(), FakeEncoder()
OBJECTS: dict[str, tuple[Any, Any]] = {
    "int": (3, 3),
    "NumPy int": (np.int64(3), 3),
    "NumPy array of one number": (np.array(3), 3),
    "float": (0.5, 0.5),
    "NumPy float": (np.float64(0.5), 0.5),
    "whole float": (3.0, 3.0),
    "not a number": (float("nan"), float("nan")),
    "pandas' missing": (pd.NA, pd.NA),
    "switch": (False, False),
    "NumPy switch": (np.bool_(False), False),
    "none": (None, None),
    "text": ("exact", "exact"),
    "NumPy text": (np.str_("exact"), "exact"),
    "empty text": ("", ""),
    "number as text": ("3", "3"),
    "list": ([20, 100], [20, 100]),
    "tuple": ((20, 100), [20, 100]),
    "range": (range(20, 101, 80), [20, 100]),
    "NumPy array": (np.array([20, 100]), [20, 100]),
    "column": (pd.Series([20, 100]), [20, 100]),
    "index of names": (pd.Index(["starter"]), ["starter"]),
    "pandas array": (pd.array([20, 100], dtype="Int64"), [20, 100]),
    "set": ({20, 100}, {20, 100}),
    "iterator": (iter([20, 100]), None),
    "mapping": ({"answer": np.int64(9)}, {"answer": 9}),
    "path": (Path("tests"), Path("tests")),
    "bytes": (b"exact", b"exact"),
    "date": (datetime.date(2026, 1, 1), datetime.date(2026, 1, 1)),
    "open model": (MODEL, MODEL),
    "list of open models": ([MODEL], [MODEL]),
    "open encoder": (ENCODER, ENCODER),
    "any object": (object(), object()),
}
"""Kind -> a value of it, and what it means in Python's own types."""
WORDS: dict[str, Any] = {
    "3": 3, "007": 7, "0.5": 0.5, "1e2": 100.0, "true": True, "False": False, "no": "no",
    "yes": "yes", "null": None, "None": None, "~": None, "": None, "exact": "exact", "'3'": "3",
    "[20, 100]": [20, 100], "(20, 100)": "(20, 100)", "range(3)": "range(3)", "[]": [],
    "[exact]": ["exact"], "{answer: 9}": {"answer": 9}, "2026-01-01": "2026-01-01", "nan": "nan",
}  # fmt: skip
"""Text of a shell or a file -> what it means."""


def chosen(**choices: Any) -> Any:
    """The choices of the notebook whose cell has these beside its own."""
    return ASKED.of(**CELL | choices)


ROUTES: dict[str, Callable[[str, Any], Any]] = {
    "cell": lambda name, value: chosen(**{name: value}),
    "more": lambda name, value: Setup.of(more={name: value}),
    "Setup": lambda name, value: Setup(**{name: value}),
}


def same(stored: Any, meant: Any) -> bool:
    """Whether a choice holds what is meant; text may have become a path, a mapping parameters."""
    if isinstance(stored, tl.Parameters):
        return isinstance(meant, dict) and stored == tl.Parameters(**meant)
    if isinstance(stored, Path) and isinstance(meant, str):
        return stored == Path(meant)
    number = type(stored) is float and type(meant) is int
    return stored is meant or (stored == meant and (number or type(stored) is type(meant)))


def third_column(name: str, meant: Any, choose: Callable[[], Any]) -> str:
    """What is neither taken as it may be meant nor refused in a line; '' where all is well."""
    try:
        stored = getattr(choose(), name)
    except (ValueError, FileNotFoundError) as refused:
        parts = meant if isinstance(meant, list | dict) else [meant]
        named = any(str(word) in str(refused) for word in (name, meant, *parts))
        return "" if named and "\n" not in str(refused) else f"not named: {refused}"
    nowhere = name in ("run_dir", "cache") and meant is None and stored is not None
    return "" if nowhere or same(stored, meant) else f"became {stored!r}"


def wrong(route: str) -> Iterator[str]:
    for name in CHOICES:
        for kind, (value, meant) in OBJECTS.items():
            found = third_column(name, meant, lambda n=name, v=value: ROUTES[route](n, v))
            if found:
                yield f"{name} as {kind}: {found}"


@each("route", list(ROUTES))
def test_a_value_in_python_is_taken_as_it_is_or_refused(route: str):
    assert list(wrong(route)) == []


@each("of_file", [False, True])
def test_text_of_a_shell_or_a_file_is_taken_as_it_is_or_refused(of_file: bool, tmp_path: Path):
    def choose(name: str, text: str) -> Any:
        file = tmp_path / "choices.yml"
        file.write_text(f"{name}: {text}\n")
        pairs = [] if of_file else [f"{name}={text}"]
        return Setup(**read_parameters(file if of_file else None, pairs, NOTEBOOK))

    found = {}
    for name in CHOICES:
        for text, meaning in WORDS.items():
            meant = meaning if text or of_file else ""
            if wrong := third_column(name, meant, lambda n=name, t=text: choose(n, t)):
                found[name, text] = wrong
    assert found == {}


def test_what_is_taken_by_each_way_is_what_was_meant():
    """Not everything is refused: some choices as a researcher gives them."""
    numbers = np.array([1, 100])
    for choose in ROUTES.values():
        assert choose("n", np.int64(3)).n == 3
        assert choose("levels", numbers).levels == choose("levels", (1, 100)).levels == [1, 100]
        assert choose("levels", range(20, 101, 40)).levels == [20, 60, 100]
        assert choose("seed", pd.Series([5])[0]).seed == 5
        assert choose("model", MODEL).model is MODEL and choose("model", [MODEL]).model == [MODEL]
        assert choose("dataset", pd.Index(["starter"])).dataset == ["starter"]
        assert choose("budgets", {"answer": np.int64(9)}).budgets == {"answer": 9}
        assert choose("cache", MEMORY).store is None
    assert read_parameters(None, ["cache=None", "n=None", "seed=3"]) == {
        "cache": None, "n": None, "seed": 3
    }  # fmt: skip


@each(
    ("choices", "words"),
    [
        ({"sampels": 5}, ("'sampels'", "samples")),
        ({"draws": 2000}, ("'draws'", "dataset", "samples")),
        ({"more": {"sampels": 5}}, ("'sampels'", "samples")),
        ({"more": {"samples": 5}}, ("samples", 15, 5, "more", "once")),
        ({"more": 5}, ("more", 5, "mapping")),
        ({"more": None}, ("more", None, "mapping")),
        ({"trial": "no"}, ("trial", "'no'", True, False)),
        ({"trial": 0}, ("trial", 0, True, False)),
        ({"run_dir": ""}, ("run_dir", "''", "folder", "file")),
        ({"cache": ""}, ("cache", "''", "folder", "file")),
        ({"corpus": []}, "path is []"),
        ({"levels": {1, 100}}, ("levels", {1, 100}, "1 to 100")),
        ({"medconf": {"n_passages": 3}}, ("medconf", {"n_passages": 3}, "tl.MedConf")),
        ({"retriever": "bm25"}, ("retriever", "'bm25'", "open")),
        ({"encoder": MODEL}, "encoder is <"),
        ({"wording": "openai:x", "doctor": "openai:x"}, "doctor"),
    ],
)
def test_what_is_no_choice_is_refused_by_name(choices: dict, words: Any):
    with pytest.raises(ValueError) as refused:
        chosen(**choices)
    assert says(refused.value, words) and "\n" not in str(refused.value)


def test_the_runner_refuses_a_misspelt_name_in_a_parameters_cell(tmp_path: Path):
    """Also in a copy of the notebook, where nobody gives it a value by name."""
    own = tmp_path / f"{NOTEBOOK}.ipynb"
    cell = notebook_path(NOTEBOOK).read_text(encoding="utf-8")
    own.write_text(cell.replace("samples = 15", "sampels = 5\\nsamples = 15", 1), encoding="utf-8")
    with pytest.raises(ValueError, match=saying("'sampels'", "samples")):
        check_parameters(own, {})


NO_EFFECT = {
    "00_walkthrough": {"wording", "doctor", "patient", "reviewer"},
    "01_benchmark": {"doctor", "patient", "reviewer"},
    "02_robustness": {"doctor", "patient", "reviewer"},
    "03_ablations": {"wording", "doctor", "patient", "reviewer"},
    "04_consultation": {"wording", "reviewer"},
    "05_trust_indices": {"wording", "doctor", "patient"},
    "07_calibration": {"wording", "doctor", "patient", "reviewer"},
    "08_graders": {"wording", "doctor", "patient", "reviewer"},
    "09_large_models": {"wording", "doctor", "patient", "reviewer"},
}
"""Notebook -> roles that nobody has in it."""


@each("notebook", [name for name in notebook_names() if name != "06_published_tables"])
def test_a_choice_without_an_effect_in_a_notebook_is_refused_there(notebook: str):
    path = notebook_path(notebook)
    for role in ("wording", "doctor", "patient", "reviewer"):
        if role in NO_EFFECT[notebook]:
            with pytest.raises(ValueError, match=saying(notebook, f"'{role}'")):
                check_parameters(path, {role: "embedded"})
            with pytest.raises(ValueError, match=saying(role, "'embedded'", "no effect")):
                check_parameters(path, {}).with_(**{role: "embedded"})
        else:
            assert getattr(check_parameters(path, {role: "embedded"}), role) == "embedded"


# What a choice says is what is done


def test_a_default_stands_once():
    setup, parameters = Setup(), tl.Parameters()
    shared = {"n_samples": "samples", "sample_temperature": "temperature"}
    shared |= dict.fromkeys(("n_doctors", "reading", "reasoning_from"), "")
    for name, choice in shared.items():
        assert getattr(setup, choice or name) == getattr(parameters, name)


@each(
    ("choices", "words"),
    [
        ({"parameters": tl.Parameters(n_samples=3)}, ("n_samples", 3, "samples", 15)),
        ({"parameters": tl.Parameters(reading="strict")}, ("reading", "'chat'")),
        ({"parameters": tl.Parameters(n_doctors=5)}, ("n_doctors", "as")),
        ({"parameters": {"n_doctors": 5}}, ("n_doctors", "as")),
        ({"panel": ["embedded", "openai:x"], "n_doctors": 1}, ("n_doctors", 1, 2)),
        ({"panel": ["a", "b", "c", "d"]}, ("panel", 4, "n_doctors", 3)),
    ],
)  # fmt: skip
def test_two_choices_that_contradict_each_other_are_refused(choices: dict, words: Any):
    with pytest.raises(ValueError) as refused:
        Setup(**choices)
    assert says(refused.value, words)


@each(
    ("choices", "samples", "doctors"),
    [
        ({}, 0.5, 0.5),
        ({"temperature": 0.7}, 0.7, 0.7),
        ({"parameters": {"doctor_temperature": 0.2}}, 0.5, 0.2),
        ({"temperature": 0.7, "parameters": {"doctor_temperature": 0.0}}, 0.7, 0.0),
    ],
)
def test_temperatures_and_doctors_are_those_that_are_asked_and_written(
    choices: dict, samples: float, doctors: float
):
    model = FakeModel()
    setup = Setup(samples=2, levels=[100], n_doctors=2, cache=MEMORY, quiet=True, **choices)
    case = tl.load_cases("starter", n=1)
    run = tl.benchmark(case, [model], methods=["poc", "agreement"], setup=setup)
    asked = [request for batch in model.asked for request in batch]
    panel = {r.temperature for r in asked if r.purpose == "doctor"}
    drawn = {r.temperature for r in asked if r.purpose == "samples"}
    assert (panel, drawn) == ({doctors}, {samples})
    assert run.parameters["doctor_temperature"] == doctors and run.parameters["n_doctors"] == 2
    assert run.parameters["sample_temperature"] == samples


def test_plain_values_stay_as_they_are():
    values = {"a": [np.int64(1), (2.0, np.float32(0.5))], "b": range(2), "c": Path("x")}
    assert plain(values) == {"a": [1, [2.0, 0.5]], "b": [0, 1], "c": Path("x")}
