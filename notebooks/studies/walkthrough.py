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
from trustlab.metrics.estimate import NAN, Rows, grouped, groups, mean_share, measure, rate
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
KEYS = ["case_id", "level", "model"]
MIN_ANSWERS = 10  # a mean of fewer answers is left out of a figure of means


def token_table(run: Run) -> pd.DataFrame:
    """One row a token of each greedy diagnosis whose token probabilities are known."""
    correct = run.answers.set_index(KEYS)["correct"].to_dict()
    rows = []
    for g in run.generations:
        trace = g.answer.trace if g.answer is not None else None
        if trace is not None and trace.logprobs is not None:
            key = (g.case_id, g.level, g.model)
            each = enumerate(np.exp(trace.logprobs), start=1)
            rows += [(*key, len(trace), i, float(p), correct[key]) for i, p in each]
    columns = [*KEYS, "n_tokens", "position", "probability", "correct"]
    return pd.DataFrame(rows, columns=columns).assign(n=1)


def wrong_by_length(tokens: pd.DataFrame) -> pd.DataFrame:
    """Of wrong answers, by number of tokens: mean probability of all (asp) and of the first."""
    wrong = tokens[tokens["correct"] == 0].groupby([*KEYS, "n_tokens"])["probability"]
    answers = wrong.agg(asp="mean", first="first").reset_index()
    return _group_means(answers, ["n_tokens"], ["asp", "first"])


def _group_means(rows: Any, by: list[str], columns: list[str]) -> pd.DataFrame:
    """The means of ``columns`` by group, ascending, of groups of at least 10 answers."""
    enough = rows.groupby(by)[columns[0]].transform("size") >= MIN_ANSWERS
    held = grouped(rows[enough].sort_values(by), by, columns[0])
    return table(measure(held, {name: mean_share(name) for name in columns}), by)


def agreement_table(run: Run, knowledge: Knowledge) -> pd.DataFrame:
    """One row an answer: how common the answered condition is, and how far the samples agree.
    ``prior``: the condition's share of all priors in ``knowledge``, NaN where none is named; ``n``:
    1 where there is a PoC, else 0. ``ValueError`` for a run without PoC."""
    if "poc" not in set(run.confidence["method"]):
        raise ValueError("the run has no method 'poc', so its samples' agreement is unknown")
    whole = sum(c.prior for c in knowledge.conditions.values())
    found: Any = _with_confidence(run, ["poc"])
    named = [knowledge.condition_named(a) if isinstance(a, str) else None for a in found["answer"]]
    found["prior"] = [NAN if c is None else c.prior / whole for c in named]
    found["n"] = found["poc"].notna().astype(int)
    return found[[*KEYS, "answer", "prior", "poc", "correct", "n"]].reset_index(drop=True)


def prior_means(table: pd.DataFrame, bins: int = 5) -> pd.DataFrame:
    """Mean ``poc`` by fifths of the answers' prior, right and wrong answers apart; from 10 answers
    on.
    ``prior`` is the bin's mean over right and wrong. Equal priors share a bin."""
    known: Any = table.dropna(subset=["prior", "poc"]).copy()
    if known["prior"].nunique() <= bins:
        place = known["prior"].rank(method="dense") - 1
    else:
        place = np.minimum(bins * (known["prior"].rank() - 0.5) / len(known), bins - 1)
    known["bin"] = place.astype(int)
    known["prior"] = known.groupby("bin")["prior"].transform("mean")
    found = _group_means(known, ["correct", "bin", "prior"], ["poc"])
    return found.sort_values("correct", ascending=False, kind="stable", ignore_index=True)


def consistent_table(run: Run, threshold: float = 0.8) -> pd.DataFrame:
    """By level, of the answers whose PoC reaches ``threshold``: four means, 0 to 1.
    ``shown``: the share of the case's statements told. ``n_answers``: all that could be had."""
    total = {(g.case_id, g.level, g.model): g.n_total for g in run.generations}
    answers = _with_confidence(run, ["poc", "medconf"]).rename(columns={"correct": "accuracy"})
    whole = [total[key] for key in answers[KEYS].itertuples(index=False, name=None)]
    answers["shown"] = answers["n_statements"] / whole
    columns = ["accuracy", "poc", "medconf", "shown"]
    lines = []
    for about, part in groups(answers, ["model"]):
        for level, every in part.groupby("level"):
            had = every[every["accuracy"].notna()]
            chosen = had.loc[reaches(had["poc"], threshold), ["case_id", *columns]]
            about |= {"level": level, "threshold": threshold, "n_answers": len(had)}
            for name in columns:
                rows = Rows.of(chosen, name, none="" if len(chosen) else "no answer")
                statistic = rate(name) if name == "accuracy" else mean_share(name)
                lines += measure([(about, rows)], {name: statistic})
    return table(lines, ["model", "level", "threshold"], ["n_answers"])


def moves_table(run: Run, case_id: str) -> pd.DataFrame:
    """Every method's confidence at every level for one case; ``ValueError`` for an unknown one."""
    mine = run.confidence[run.confidence["case_id"] == case_id]
    if not len(mine):
        known = ", ".join(run.answers["case_id"].unique()[:10])
        raise ValueError(f"the run has no case {case_id!r}; it has {known} ...")
    said = run.answers[[*KEYS, "answer", "correct"]]
    found: Any = mine.merge(said, on=KEYS, how="left", validate="many_to_one")
    found["family"] = [METHODS[m].family for m in found["method"]]
    found["scale"] = [METHODS[m].scale for m in found["method"]]
    found["n"] = found["confidence"].notna().astype(int)
    found["place"] = pd.factorize(found["method"])[0]
    found = found.sort_values(["model", "place", "level"], kind="stable", ignore_index=True)
    columns = ["case_id", "model", "level", "method", "family", "scale", "confidence", "n"]
    return found[[*columns, "missing", "answer", "correct"]]


def _with_confidence(run: Run, methods: list[str]) -> pd.DataFrame:
    """The answers, each of these methods' confidence beside them, NaN where missing."""
    wide = run.confidence.pivot(index=KEYS, columns="method", values="confidence")
    return run.answers.join(wide.reindex(columns=methods), on=KEYS)


@choices
class Asked(Workbench):
    """The choices of notebook 00."""

    UNUSED = ("doctor", "patient", "reviewer", "wording", "medical_proxy")

    live: Switch
    """Whether a model is asked even where ``data/walkthrough`` has the answers."""


setup = Asked.of


CHOICES, HELD, HELD_WORDS = "choices.json", "held.jsonl.gz", "held.json"
"""Of the pack: its choices; assessments of one diagnosis, and the patient's words for each."""
JUDGED = ["sequence_probability", "poc", "ce", "medconf"]
"""Methods that the notebook reads of many patients."""


class Answers:
    """The notebook's answers: those of the pack where it has them, else the model's, asked now.
    The pack has those of its own choices, cases, methods and levels; where a run is kept, and
    by how many processes, changes no answer. What is taken from it is copied to ``run_dir``."""

    def __init__(self, setup: Asked) -> None:
        assert setup.run_dir, "study.setup names a folder"
        self.setup, self.run_dir = setup, setup.run_dir

    @cached_property
    def models(self) -> list[Model]:
        """The models to ask, opened when first needed."""
        return self.setup.models()

    @cached_property
    def packed(self) -> bool:
        """Whether the pack was made with these choices."""
        if self.setup.live or self.setup.shard or not (PACK / CHOICES).is_file():
            return False
        kept = {f.name: getattr(self.setup, f.name) for f in fields(Keep)}
        return self.setup == Asked(**{**_json(PACK / CHOICES), **kept, "live": False})

    def of(
        self, part: str, cases: Sequence[Case], methods: Sequence[str], levels: Sequence[int]
    ) -> Run:
        """The run ``part`` (a folder below ``run_dir``) of these cases, methods and levels."""
        if self.packed:
            facts = _json(PACK / part / RUN)["benchmark"]
            asked = [m.name for m in select(methods)], list(levels), cases_hash(cases)
            if asked == (facts["methods"], facts["levels"], facts["cases_sha256"]):
                copied = shutil.copytree(PACK / part, self.run_dir / part, dirs_exist_ok=True)
                return load_run(copied)
        return benchmark(cases, self.models, methods, levels, self.setup.below(part))

    def assessed(self, told: Sequence[str], diagnosis: str) -> list[Assessment]:
        """MedConf on one diagnosis after each of these words of a patient."""
        asked = {"told": list(told), "diagnosis": diagnosis}
        if self.packed and _json(PACK / HELD_WORDS) == asked:
            return list(read_records(PACK / HELD, Assessment))
        model = self.setup.cached(self.models[0])
        questions = [(words, diagnosis) for words in told]
        found = assess(model, questions, self.setup.library, seed=self.setup.seed)
        save_records(found, self.run_dir / HELD)
        save_json(asked, self.run_dir / HELD_WORDS)
        return found


def _json(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def dry_run(cases: Sequence[Case], models: Sequence[Model], setup: Asked) -> None:
    """Ask what the notebook asks where its answers are not kept, for ``trustlab plan``."""
    benchmark(cases, models, METHODS_ASKED, setup.levels, setup)
    patient = load_cases("starter-dialogue", n=1)  # about as long as the notebook's own
    benchmark(patient, models, METHODS_ASKED, setup.levels, setup)
    unknown = {"dataset": "table", "path": UNKNOWN}
    for more in (*({"dataset": name} for name in STARTERS), unknown):
        benchmark(setup.with_(**more).cases(), models, JUDGED, [100], setup)
