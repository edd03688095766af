"""00: why confidence methods mislead, on a run's own answers, and beyond a model's world. Its
answers are kept in ``data/walkthrough/``, which ``benchmarks/walkthrough.py`` makes anew."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from trustlab.agents.medconf import assess
from trustlab.choices import Switch, choices
from trustlab.confidence import METHODS, PAPER, select
from trustlab.datasets import load_cases
from trustlab.knowledge.findings import Knowledge
from trustlab.metrics.estimate import (
    NAN,
    Rows,
    grouped,
    groups,
    mean_share,
    measure,
    rate,
)
from trustlab.metrics.schema import table
from trustlab.metrics.ties import reaches
from trustlab.models.base import Model
from trustlab.paths import DATA, save_json
from trustlab.records import Assessment, Case
from trustlab.runs.experiment import benchmark, cases_hash
from trustlab.runs.folder.records_file import read_records, save_records
from trustlab.runs.folder.saved import RUN, load_run
from trustlab.runs.run import Run
from trustlab.runs.workbench import Workbench
from trustlab.settings import Keep

PACK = DATA / "walkthrough"
"""The answers of the published run, as :func:`trustlab.runs.folder.saved.load_run` reads them."""
METHODS_ASKED = [*PAPER, "sequence_probability", "medconf_weighted"]
STARTERS = ("starter", "starter-dialogue", "starter-report")
UNKNOWN = DATA / "starter" / "unknown.jsonl"
"""Patients whose disease the embedded models do not know."""
ANSWER_KEYS = ["case_id", "level", "model"]
MIN_ANSWERS = 10  # a mean of fewer answers is left out of a figure of means


def token_table(run: Run) -> pd.DataFrame:
    """One row a token of each greedy diagnosis whose token probabilities are known."""
    correct = run.answers.set_index(ANSWER_KEYS)["correct"].to_dict()
    rows = []
    for record in run.generations:
        trace = None if record.answer is None else record.answer.trace
        if trace is None or trace.logprobs is None:
            continue
        key = (record.case_id, record.level, record.model)
        for position, probability in enumerate(np.exp(trace.logprobs), start=1):
            token = (len(trace), position, float(probability))
            rows.append((*key, *token, correct[key]))
    columns = [*ANSWER_KEYS, "n_tokens", "position", "probability", "correct"]
    return pd.DataFrame(rows, columns=columns).assign(n=1)


def wrong_by_length(tokens: pd.DataFrame) -> pd.DataFrame:
    """Of wrong answers, by number of tokens: mean probability of all (asp) and of the first."""
    wrong = tokens[tokens["correct"] == 0]
    keys = [*ANSWER_KEYS, "n_tokens"]
    by_answer = wrong.groupby(keys)["probability"]
    answers = by_answer.agg(asp="mean", first="first").reset_index()
    return _group_means(answers, ["n_tokens"], ["asp", "first"])


def _group_means(rows: Any, by: list[str], columns: list[str]) -> pd.DataFrame:
    """The means of ``columns`` by group, ascending, of groups of at least 10 answers."""
    first = columns[0]
    sizes = rows.groupby(by)[first].transform("size")
    is_large = sizes >= MIN_ANSWERS
    of_large_groups = rows[is_large].sort_values(by)
    labelled = grouped(of_large_groups, by, first)
    means = {name: mean_share(name) for name in columns}
    lines = measure(labelled, means)
    return table(lines, by)


def agreement_table(run: Run, knowledge: Knowledge) -> pd.DataFrame:
    """One row an answer: how common the answered condition is, and how far the samples agree.
    ``prior``: the condition's share of all priors in ``knowledge``, NaN where none is named; ``n``:
    1 where there is a PoC, else 0. ``ValueError`` for a run without PoC."""
    if "poc" not in set(run.confidence["method"]):
        raise ValueError(
            "the run has no method 'poc', so its samples' agreement is unknown"
        )
    total = sum(condition.prior for condition in knowledge.conditions.values())
    answers: Any = _with_confidence(run, ["poc"])
    priors = []
    for answer in answers["answer"]:
        condition = None
        if isinstance(answer, str):
            condition = knowledge.condition_named(answer)
        priors.append(NAN if condition is None else condition.prior / total)
    answers["prior"] = priors
    answers["n"] = answers["poc"].notna().astype(int)
    columns = [*ANSWER_KEYS, "answer", "prior", "poc", "correct", "n"]
    return answers[columns].reset_index(drop=True)


def prior_means(table: pd.DataFrame, bins: int = 5) -> pd.DataFrame:
    """Mean ``poc`` by fifths of the answers' prior, right and wrong answers apart; from 10 answers
    on.
    ``prior`` is the bin's mean over right and wrong. Equal priors share a bin."""
    answers: Any = table.dropna(subset=["prior", "poc"]).copy()
    priors = answers["prior"]
    if priors.nunique() <= bins:
        places = priors.rank(method="dense") - 1
    else:
        places = np.minimum(bins * (priors.rank() - 0.5) / len(answers), bins - 1)
    answers["bin"] = places.astype(int)
    answers["prior"] = answers.groupby("bin")["prior"].transform("mean")
    means = _group_means(answers, ["correct", "bin", "prior"], ["poc"])
    return means.sort_values(
        "correct", ascending=False, kind="stable", ignore_index=True
    )


def consistent_table(run: Run, threshold: float = 0.8) -> pd.DataFrame:
    """By level, of the answers whose PoC reaches ``threshold``: four means, 0 to 1.
    ``shown``: the share of the case's statements told. ``n_answers``: all that could be had."""
    n_total = {
        (record.case_id, record.level, record.model): record.n_total
        for record in run.generations
    }
    answers = _with_confidence(run, ["poc", "medconf"]).rename(
        columns={"correct": "accuracy"}
    )
    keys = answers[ANSWER_KEYS].itertuples(index=False, name=None)
    answers["shown"] = answers["n_statements"] / [n_total[key] for key in keys]
    statistics = {
        "accuracy": rate("accuracy"),
        "poc": mean_share("poc"),
        "medconf": mean_share("medconf"),
        "shown": mean_share("shown"),
    }
    lines = []
    for label, of_model in groups(answers, ["model"]):
        for level, of_level in of_model.groupby("level"):
            judged = of_level[of_level["accuracy"].notna()]
            is_consistent = reaches(judged["poc"], threshold)
            chosen = judged.loc[is_consistent, ["case_id", *statistics]]
            label |= {"level": level, "threshold": threshold, "n_answers": len(judged)}
            for name, statistic in statistics.items():
                rows = Rows.of(chosen, name, none="" if len(chosen) else "no answer")
                lines += measure([(label, rows)], {name: statistic})
    return table(lines, ["model", "level", "threshold"], ["n_answers"])


def moves_table(run: Run, case_id: str) -> pd.DataFrame:
    """Every method's confidence at every level for one case; ``ValueError`` for an unknown one."""
    of_case = run.confidence[run.confidence["case_id"] == case_id]
    if not len(of_case):
        case_ids = ", ".join(run.answers["case_id"].unique()[:10])
        raise ValueError(f"the run has no case {case_id!r}; it has {case_ids} ...")
    answers = run.answers[[*ANSWER_KEYS, "answer", "correct"]]
    moves: Any = of_case.merge(
        answers, on=ANSWER_KEYS, how="left", validate="many_to_one"
    )
    moves = moves.assign(
        family=[METHODS[method].family for method in moves["method"]],
        scale=[METHODS[method].scale for method in moves["method"]],
        n=moves["confidence"].notna().astype(int),
        place=pd.factorize(moves["method"])[0],
    )
    moves = moves.sort_values(
        ["model", "place", "level"], kind="stable", ignore_index=True
    )
    columns = [
        "case_id",
        "model",
        "level",
        "method",
        "family",
        "scale",
        "confidence",
        "n",
    ]
    return moves[[*columns, "missing", "answer", "correct"]]


def _with_confidence(run: Run, methods: list[str]) -> pd.DataFrame:
    """The answers, each of these methods' confidence beside them, NaN where missing."""
    wide = run.confidence.pivot(
        index=ANSWER_KEYS, columns="method", values="confidence"
    )
    return run.answers.join(wide.reindex(columns=methods), on=ANSWER_KEYS)


@choices
class Asked(Workbench):
    """The choices of notebook 00."""

    UNUSED = ("doctor", "patient", "reviewer", "wording", "medical_proxy")

    live: Switch
    """Whether a model is asked even where ``data/walkthrough`` has the answers."""


setup = Asked.of


CHOICES = "choices.json"
"""Of the pack: its choices."""
HELD = "held.jsonl.gz"
"""Of the pack: assessments of one diagnosis."""
HELD_WORDS = "held.json"
"""Of the pack: the patient's words for each of these."""
JUDGED = ["sequence_probability", "poc", "ce", "medconf"]
"""Methods that the notebook reads of many patients."""


class Answers:
    """The notebook's answers: those of the pack where it has them, else the model's, asked now.
    The pack has those of its own choices, cases, methods and levels; where a run is kept, and
    by how many processes, changes no answer. What is taken from it is copied to ``run_dir``."""

    def __init__(self, setup: Asked) -> None:
        assert setup.run_dir, "study.setup names a folder"
        self.setup = setup
        self.run_dir = setup.run_dir

    @cached_property
    def models(self) -> list[Model]:
        """The models to ask, opened when first needed."""
        return self.setup.models()

    @cached_property
    def packed(self) -> bool:
        """Whether the pack was made with these choices."""
        if self.setup.live or not (PACK / CHOICES).is_file():
            return False
        anywhere = {
            field.name: getattr(self.setup, field.name) for field in fields(Keep)
        }
        choices_of_pack = _read_json(PACK / CHOICES) | anywhere | {"live": False}
        return self.setup == Asked(**choices_of_pack)

    def of(
        self,
        part: str,
        cases: Sequence[Case],
        methods: Sequence[str],
        levels: Sequence[int],
    ) -> Run:
        """The run ``part`` (a folder below ``run_dir``) of these cases, methods and levels."""
        if self.packed:
            facts = _read_json(PACK / part / RUN)["benchmark"]
            names = [method.name for method in select(methods)]
            is_same_run = (
                facts["methods"] == names
                and facts["levels"] == list(levels)
                and facts["cases_sha256"] == cases_hash(cases)
            )
            if is_same_run:
                folder = self.run_dir / part
                return load_run(
                    shutil.copytree(PACK / part, folder, dirs_exist_ok=True)
                )
        return benchmark(cases, self.models, methods, levels, self.setup.below(part))

    def assessed(self, texts: Sequence[str], diagnosis: str) -> list[Assessment]:
        """MedConf on one diagnosis after each of these words of a patient."""
        question = {"told": list(texts), "diagnosis": diagnosis}
        if self.packed and _read_json(PACK / HELD_WORDS) == question:
            return list(read_records(PACK / HELD, Assessment))
        setup = self.setup
        model = setup.cached(self.models[0])
        pairs = [(text, diagnosis) for text in texts]
        library = setup.library
        assessments = assess(model, pairs, library, seed=setup.seed)
        save_records(assessments, self.run_dir / HELD)
        save_json(question, self.run_dir / HELD_WORDS)
        return assessments


def _read_json(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def dry_run(
    cases: Sequence[Case], models: Sequence[Model], notebook_setup: Asked
) -> None:
    """Ask what the notebook asks where its answers are not kept, for ``trustlab plan``."""
    levels = notebook_setup.levels
    patient = load_cases("starter-dialogue", n=1)  # about as long as the notebook's own
    benchmark(cases, models, METHODS_ASKED, levels, notebook_setup)
    benchmark(patient, models, METHODS_ASKED, levels, notebook_setup)
    setups = [notebook_setup.with_(dataset=name) for name in STARTERS]
    setups.append(notebook_setup.with_(dataset="table", path=UNKNOWN))
    for of_dataset in setups:
        benchmark(of_dataset.cases(), models, JUDGED, [100], notebook_setup)
