"""Every choice is checked in one place: through ``tl.Setup`` and before a notebook's kernel
starts."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

import pytest
from each import each
from fake_model import FakeEncoder, FakeModel, made_cases
from saying import saying, says

import trustlab as tl
from trustlab import paths
from trustlab.cli.run_notebooks import (
    check_parameters,
    choices_of,
    default_parameters,
    notebook_names,
    notebook_path,
)
from trustlab.paths import ROOT, RUNS
from trustlab.records import Parameters
from trustlab.settings import Setup


@each("name", [f.name for f in fields(Parameters) if isinstance(f.default, (int, float))])
def test_a_number_out_of_range_is_refused_by_name(name: str):
    given: dict[str, Any] = {name: -1}
    with pytest.raises(ValueError, match=saying(name, -1, "number")):
        Parameters(**given)


@each(
    ("given", "words"),
    [
        (
            {"topk_combination": "median"},
            ("topk_combination", "'median'", "'mean'", "'first'", "'max'"),
        ),
        ({"relevance_context": "median"}, ("relevance_context", "'median'", "'answer'", "'full'")),
        ({"alpha": 2}, ("'alpha'", "renyi_alpha")),
        ({"n_samples": 3.5}, ("n_samples", 3.5, "whole")),
        ({"n_samples": True}, ("n_samples", True)),
        ({"renyi_alpha": "2"}, ("renyi_alpha", "'2'", "number")),
        ({"renyi_alpha": float("nan")}, ("renyi_alpha", "nan")),
    ],
)
def test_the_methods_open_choices_are_checked(given: dict, words: Any):
    for choices in (Parameters, lambda **of: Setup(parameters=cast(Any, of))):
        if choices is Parameters or "n_samples" not in given:
            with pytest.raises(ValueError) as refused:
                choices(**given)
            assert says(refused.value, words)


# Refused, in one line


NAMED = ("model", "assessor", "patient", "panel", "encoder", "retriever", "medconf")
"""Choices where a name belongs, and no data."""
REFUSED: list[tuple[dict[str, Any], Any]] = [
    ({"n_jobs": 0}, ("n_jobs", 0, 1, -1)),
    ({"seed": -1}, ("seed", -1, 0)),
    ({"seed": None}, ("seed", None)),
    ({"model": "hf:a\ud800"}, ("model", r"'hf:a\ud800'", "UTF-8")),
    ({"data_options": {"starter": {"x\ud800": 1}}}, ("data_options", r"{'x\ud800': 1}}", "UTF-8")),
    ({"samples": 0}, ("samples", 0, 1)),
    ({"budgets": {"answer": 0}}, ("budgets", {"answer": 0}, 1)),
    ({"budgets": [5]}, ("budgets", [5], 1)),
    ({"budgets": {"thinking": 5}, "model": FakeModel()}, "thinking_tokens=5"),
    ({"temperature": 0}, ("temperature", 0, "above 0")),
    ({"n": "many"}, ("n", "'many'", "whole")),
    ({"usd_in": 1.0}, ("usd_in", 1.0, "usd_out", None, "both")),
    ({"levels": [1.5]}, ("levels", [1.5], "1 to 100")),
    ({"levels": []}, ("levels", [], "1 to 100")),
    ({"levels": [20, 20]}, ("levels", [20, 20], "once")),
    ({"methods": ["apples"]}, ("method", "'apples'")),
    ({"methods": 3}, ("methods", 3, "list")),
    ({"dataset": "nosuch"}, ("'nosuch'", "starter")),
    ({"dataset": []}, ("0 data sets", "path")),
    ({"dataset": "ddxplus"}, ("path", None, "ddxplus")),
    ({"dataset": "ddxplus", "path": "nowhere"}, ("path", "'nowhere'", "exist")),
    ({"path": ["a", "b"]}, ("1 data sets", "path")),
    ({"n": [3, 4]}, ("1 data sets", "n", [3, 4])),
    ({"n": [0]}, ("n", [0], 1, None)),
    ({"data_options": {"starter": {"x": 1}}}, ("starter", "'x'")),
    ({"data_options": {"medqa": {}}}, ("'medqa'", "starter")),
    ({"model": "nosuch"}, ("model", "'nosuch'", "embedded")),
    ({"model": "hf:./nosuch"}, ("no model", "'./nosuch'")),
    ({"model_options": {"max_calls": 1}}, ("model_options", "'max_calls'")),
    ({"reader_options": {"budget": 1}}, ("reader_options", "'budget'")),
    ({"parameters": {"alpha": 1}}, ("parameter", "'alpha'")),
    ({"parameters": {"n_samples": 3}}, ("n_samples", "as samples")),
    ({"parameters": {"n_samples": 15}, "samples": 5}, ("n_samples", "as samples")),
    ({"parameters": []}, ("parameters", [], "dict")),
    ({"grader": "nonsense"}, ("grader", "'nonsense'", "synonym", "exact")),
    ({"grader": "judge:nonsense"}, ("model", "'nonsense'", "embedded")),
    ({"grader": None}, ("grader", None, "name")),
    *(({name: value}, "") for name in NAMED for value in ({"a": 1}, [], 3, [["a"]])),
    ({"wording": 3}, ("wording", 3, "name")),
    ({"corpus": "nowhere"}, ("path", "'nowhere'", "file")),
    ({"medical_encoder": "./no"}, ("medical_encoder", "'./no'", "no such file")),
    ({"entailment": "./no"}, ("entailment", "'./no'", "no such file")),
]
"""What no run can be made with -> what is said: of the choices of notebook 01."""
FURTHER: list[tuple[str, dict[str, Any], Any]] = [
    ("02_robustness", {"changes": ["x"]}, ("change", "'x'", "small_talk")),
    ("02_robustness", {"paraphrase_seeds": [-1]}, ("paraphrase_seeds", [-1])),
    ("03_ablations", {"n_samples": []}, ("n_samples", [])),
    ("03_ablations", {"cosines": [2]}, ("cosines", [2])),
    ("03_ablations", {"corpora": {"mine": "nowhere"}}, ("path", "'nowhere'", "file")),
    ("04_consultation", {"max_turns": 0}, ("max_turns", 0)),
    ("04_consultation", {"price": -1}, ("price", -1)),
    ("04_consultation", {"patient": "nobody"}, ("model", "'nobody'")),
    ("05_trust_indices", {"panel": ["nobody"]}, ("model", "'nobody'")),
    ("05_trust_indices", {"model": ["embedded", "x"], "panel": ["x"]}, "panel is given"),
    ("06_published_tables", {"draws": 0}, ("draws", 0, 1)),
    ("06_published_tables", {"n_points": 8}, ("n_points", 8, "3 to 7")),
    ("06_published_tables", {"share_right": 1}, ("share_right", 1)),
    ("06_published_tables", {"power": 80}, ("power", 80)),
]


@each(
    ("name", "given", "words"),
    [("01_benchmark", given, words) for given, words in REFUSED] + FURTHER,
)
def test_a_notebook_refuses_it_before_its_kernel_starts(name: str, given: dict, words: Any):
    with pytest.raises((ValueError, FileNotFoundError)) as refused:
        check_parameters(notebook_path(name), given)
    assert says(refused.value, words) and "\n" not in str(refused.value)


def test_the_command_itself_starts_no_kernel_and_loads_no_model():
    """In a process of its own: neither papermill nor torch is needed to refuse."""
    code = (
        "import sys; from trustlab.cli.commands import app\n"
        "try: app(['run', '01_benchmark', '-p', 'samples=0'])\n"
        "except SystemExit as end: code = end.code\n"
        "print(sorted({'torch', 'papermill', 'transformers'} & set(sys.modules))); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (2, "[]")
    assert says(done.stderr, "trustlab:", "samples", 0, 1) and done.stderr.count("\n") == 1


@each("name", notebook_names())
def test_each_notebook_s_parameters_are_choices_of_its_study(name: str):
    known = {f.name for f in fields(choices_of(name))}
    own = set(default_parameters(notebook_path(name)))
    assert own - {"more"} <= known
    check_parameters(notebook_path(name), {})


def test_a_notebook_with_more_takes_every_choice_of_its_study_by_name():
    path = notebook_path("03_ablations")
    for given in ({"cosines": [0.7]}, {"more": {"cosines": [0.7]}}):
        assert check_parameters(path, given).cosines == [0.7]
    for given in ({"cosine": 0.7}, {"more": {"cosine": 0.7}}):
        with pytest.raises(ValueError, match=saying("'cosine'", "cosines")):
            check_parameters(path, given)


# What a setup does


def test_what_is_no_setup_is_refused():
    with pytest.raises(TypeError, match=saying("setup", 15, "tl.Setup")):
        tl.benchmark([], [], "paper", [100], 15)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="'smaples'"):
        cast(Any, tl.benchmark)([], [], smaples=3)


def test_a_copy_is_checked_again_and_keeps_the_rest():
    setup = tl.opened(Setup(samples=3, seed=5))
    assert (setup.with_(samples=4).samples, setup.with_(samples=4).seed) == (4, 5)
    with pytest.raises(ValueError, match="samples is 0"):
        setup.with_(samples=0)


def test_what_is_opened_is_opened_once_and_shared(tmp_path: Path):
    how: dict[str, Any] = {"run_dir": str(tmp_path), "encoder": FakeEncoder()}
    setup = tl.opened(Setup(**how, grader="exact"))
    below = setup.below("parts")
    assert below.run_dir == tmp_path / "parts" and below.store == tmp_path / "replies.sqlite"
    assert below.judge is setup.judge and below.library is setup.library
    assert below.readers.encoder is setup.encoder
    assert tl.opened(Setup()).below("parts").run_dir is None


def test_without_a_folder_replies_are_kept_in_runs_or_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "REPLIES", tmp_path / "runs" / "replies.sqlite")
    how: dict[str, Any] = {"methods": ["asp"], "levels": [1], "quiet": True}

    def asked(**more: Any) -> int:
        """Replies asked of the model."""
        run = tl.benchmark(made_cases(1), [FakeModel()], setup=Setup(**how, **more))
        return int(run.calls["n_made"].sum())

    in_memory = {"cache": ":memory:"}
    first = asked(**in_memory)
    assert first > 0 and not (tmp_path / "runs").exists()
    assert asked() == first and asked() == 0
    assert (tmp_path / "runs" / "replies.sqlite").is_file()
    assert tl.opened(Setup()).readers.encoder.cache_path == tmp_path / "runs" / "vectors.sqlite"
    assert asked(**in_memory, run_dir=tmp_path / "own") == first
    assert not (tmp_path / "own" / "replies.sqlite").exists()
    memory = tl.opened(Setup(cache=cast(Any, ":memory:"))).shared().below("parts")
    assert memory.store is None and memory.readers.encoder.cache_path is None


def test_embedded_models_have_a_sibling_for_what_they_were_not_taught() -> None:
    apart = ("doctor", "panel", "reviewer", "wording")
    for models in (["embedded"], ["embedded", FakeModel("embedded-closed")]):
        assert {tl.opened(Setup()).who(role, models) for role in apart} == {"embedded-clinic"}
        others = {tl.opened(Setup()).who(role, models) for role in ("assessor", "patient")}
        assert others == {None}
    for models in ([], ["openai:x"], ["embedded", "openai:x"], ["embedded-clinic"]):
        assert {tl.opened(Setup()).who(role, models) for role in apart} == {None}
    assert tl.opened(Setup(doctor="openai:x")).who("doctor", ["embedded"]) == "openai:x"
    (doctor,) = tl.opened(Setup()).role("panel", ["embedded"])
    (model,) = tl.opened(Setup(model=["embedded-closed"])).models()
    assert (doctor.name, model.name) == ("embedded-clinic", "embedded-closed")


def test_a_notebook_s_variables_become_its_setup(monkeypatch):
    monkeypatch.setattr(paths, "REPLIES", RUNS / "replies.sqlite")
    cell = default_parameters(notebook_path("04_consultation"))
    asked = choices_of("04_consultation").of(**cell | {"more": {"seed": 3}})
    assert (asked.seed, asked.max_turns, asked.grader) == (3, 6, "synonym")
    assert asked.run_dir == RUNS / "interactive" and asked.store == RUNS / "replies.sqlite"


def test_budgets_reach_the_requests_and_the_run_s_parameters() -> None:
    how: dict[str, Any] = {"methods": ["ce"], "levels": [100], "samples": 2}
    setup = tl.opened(tl.Setup(**how, budgets={"answer": 500, "score": 30}))
    run = tl.benchmark(made_cases(1), [model := FakeModel()], setup=setup)
    assert (run.parameters["max_tokens_answer"], run.parameters["max_tokens_score"]) == (500, 30)
    assert run.parameters["max_tokens_reasoning"] == 256
    asked = {(q.purpose, q.max_tokens) for batch in model.asked for q in batch}
    assert asked == {("diagnosis", 500), ("ce", 30)}
