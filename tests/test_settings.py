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
    with pytest.raises(ValueError, match=f"^{name} is -1; it must be a (whole )?number"):
        Parameters(**given)


@each(
    ("given", "words"),
    [
        ({"topk_combination": "median"}, "is 'median'; it must be 'mean', 'first' or 'max'"),
        ({"relevance_context": "median"}, "is 'median'; it must be 'answer' or 'full'"),
        ({"alpha": 2}, "there is no parameter 'alpha'; did you mean renyi_alpha?"),
        ({"n_samples": 3.5}, "n_samples is 3.5; it must be a whole number"),
        ({"n_samples": True}, "n_samples is True"),
        ({"renyi_alpha": "2"}, "renyi_alpha is '2'; it must be a number"),
        ({"renyi_alpha": float("nan")}, "renyi_alpha is nan"),
    ],
)
def test_the_methods_open_choices_are_checked(given: dict, words: str):
    for choices in (Parameters, lambda **of: Setup(parameters=cast(Any, of))):
        if choices is Parameters or "n_samples" not in given:
            with pytest.raises(ValueError) as refused:
                choices(**given)
            assert words in str(refused.value)


# Refused, in one line


NAMED = ("model", "assessor", "patient", "panel", "encoder", "retriever", "medconf")
"""Choices where a name belongs, and no data."""
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"n_jobs": 0}, "n_jobs is 0; it must be a whole number, at least 1, or -1"),
    ({"seed": -1}, "seed is -1; it must be a whole number, at least 0"),
    ({"seed": None}, "seed is None; it must be"),
    ({"model": "hf:a\ud800"}, r"model is 'hf:a\ud800'; it must be text that UTF-8 can write"),
    ({"data_options": {"starter": {"x\ud800": 1}}}, r"{'x\ud800': 1}}; it must be text that UTF-8"),
    ({"samples": 0}, "samples is 0; it must be a whole number, at least 1"),
    ({"budgets": {"answer": 0}}, "budgets is {'answer': 0}; it must be whole numbers of at least"),
    ({"budgets": [5]}, "budgets is [5]; it must be whole numbers of at least 1"),
    ({"budgets": {"thinking": 5}, "model": FakeModel()}, "open it with thinking_tokens=5"),
    ({"temperature": 0}, "temperature is 0; it must be a number above 0"),
    ({"n": "many"}, "n is 'many'; it must be a whole number"),
    ({"usd_in": 1.0}, "usd_in is 1.0 and usd_out is None; both must be given, or neither"),
    ({"levels": [1.5]}, "levels is [1.5]; it must be whole numbers from 1 to 100"),
    ({"levels": []}, "levels is []; it must be"),
    ({"levels": [20, 20]}, "levels is [20, 20]; each must be given once"),
    ({"methods": ["apples"]}, "there is no method 'apples'"),
    ({"methods": 3}, "methods is 3; it must be a name or a list of names"),
    ({"dataset": "nosuch"}, "name is 'nosuch'; allowed are starter"),
    ({"dataset": []}, "0 data sets need one path each"),
    ({"dataset": "ddxplus"}, "path is None; ddxplus is"),
    ({"dataset": "ddxplus", "path": "nowhere"}, "path is 'nowhere', which does not exist"),
    ({"path": ["a", "b"]}, "1 data sets need one path each"),
    ({"n": [3, 4]}, "1 data sets need one n, or one each (null for none); n is [3, 4]"),
    ({"n": [0]}, "n is [0]; it must be a whole number, at least 1, or None for all"),
    ({"data_options": {"starter": {"x": 1}}}, "starter has no option 'x'"),
    ({"data_options": {"medqa": {}}}, "the data sets asked for are starter"),
    ({"model": "nosuch"}, "model is 'nosuch'; allowed are embedded"),
    ({"model": "hf:./nosuch"}, "no model at './nosuch'"),
    ({"model_options": {"max_calls": 1}}, "model_options has no option 'max_calls'; allowed are"),
    ({"reader_options": {"budget": 1}}, "reader_options has no option 'budget'; allowed are"),
    ({"parameters": {"alpha": 1}}, "there is no parameter 'alpha'"),
    ({"parameters": {"n_samples": 3}}, "it must be given as samples"),
    ({"parameters": []}, "parameters is []; it must be a dict"),
    ({"grader": "nonsense"}, "grader is 'nonsense'; allowed are synonym, exact"),
    ({"grader": "judge:nonsense"}, "model is 'nonsense'; allowed are embedded"),
    ({"grader": None}, "grader is None; it must be a grader's name"),
    *(({name: value}, "") for name in NAMED for value in ({"a": 1}, [], 3, [["a"]])),
    ({"wording": 3}, "wording is 3; it must be a model's name"),
    ({"corpus": "nowhere"}, "path is 'nowhere', which is no file or folder"),
    ({"medical_encoder": "./no"}, "medical_encoder is './no'; there is no such file or folder"),
    ({"entailment": "./no"}, "entailment is './no'; there is no such file or folder"),
]
"""What no run can be made with -> what is said: of the choices of notebook 01."""
FURTHER: list[tuple[str, dict[str, Any], str]] = [
    ("02_robustness", {"changes": ["x"]}, "there is no change 'x'; there are small_talk"),
    ("02_robustness", {"paraphrase_seeds": [-1]}, "paraphrase_seeds is [-1]"),
    ("03_ablations", {"n_samples": []}, "n_samples is []"),
    ("03_ablations", {"cosines": [2]}, "cosines is [2]"),
    ("03_ablations", {"corpora": {"mine": "nowhere"}}, "path is 'nowhere', which is no file"),
    ("04_consultation", {"max_turns": 0}, "max_turns is 0"),
    ("04_consultation", {"price": -1}, "price is -1"),
    ("04_consultation", {"patient": "nobody"}, "model is 'nobody'"),
    ("05_trust_indices", {"panel": ["nobody"]}, "model is 'nobody'"),
    ("05_trust_indices", {"model": ["embedded", "x"], "panel": ["x"]}, "panel is given"),
    ("06_published_tables", {"draws": 0}, "draws is 0; it must be a whole number, at least 1"),
    ("06_published_tables", {"n_points": 8}, "it must be a whole number from 3 to 7"),
    ("06_published_tables", {"share_right": 1}, "share_right is 1"),
    ("06_published_tables", {"power": 80}, "power is 80"),
]


@each(
    ("name", "given", "words"),
    [("01_benchmark", given, words) for given, words in REFUSED] + FURTHER,
)
def test_a_notebook_refuses_it_before_its_kernel_starts(name: str, given: dict, words: str):
    with pytest.raises((ValueError, FileNotFoundError)) as refused:
        check_parameters(notebook_path(name), given)
    assert words in str(refused.value) and "\n" not in str(refused.value)


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
    assert done.stderr == "trustlab: samples is 0; it must be a whole number, at least 1\n"


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
        with pytest.raises(ValueError, match="has no parameter 'cosine'; did you mean cosines"):
            check_parameters(path, given)


# What a setup does


def test_what_is_no_setup_is_refused():
    with pytest.raises(TypeError, match="setup is 15; it must be a tl.Setup"):
        tl.benchmark([], [], "paper", [100], 15)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="unexpected keyword argument 'smaples'"):
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
