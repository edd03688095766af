"""Counts what a run would ask before anything is spent.

:func:`plan_study` makes a dry run of what a notebook asks, on a stand-in for each model that talks
on as long as it can: what depends on replies is the most, or nearly, that can be.
"""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from trustlab.agents.medconf import profile_text
from trustlab.agents.rephrase import reword
from trustlab.cli.run_notebooks import check_parameters, filled, notebook_path, study_of
from trustlab.confidence import select
from trustlab.graders import JUDGE, JudgeGrader, judge_request
from trustlab.levels import views
from trustlab.models.base import Keep, Model, Request
from trustlab.models.by_name import taught_by
from trustlab.prompts import Prompts
from trustlab.records import LEVELS, Case, Criterion, Generation, Reply, View
from trustlab.runs.collect import collect, needs_of
from trustlab.runs.workbench import Workbench, opened
from trustlab.settings import ROLES, Role, Setup, as_list, given

WORDS_PER_TOKEN = 0.75
"""Rule of thumb for English text and large models' tokenizers; the table says tokens are
estimates."""
PROFILE = [Criterion(i, "a criterion of some words", "moderate") for i in range(1, 9)]
"""A symptom profile of as many criteria as in the paper's case study."""


def _table(rows: Sequence[tuple[str, int, int, int]]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["purpose", "n_replies", "n_tokens_in", "n_tokens_out"])
    grouped: Any = table.groupby("purpose", sort=False)
    return grouped.sum().assign(n_requests=grouped.size()).reset_index()


def _row(r: Request, thought: int) -> tuple[str, int, int, int]:
    words = sum(len(content.split()) for _, content in r.messages)
    return r.purpose, r.n, round(words / WORDS_PER_TOKEN), r.n * (r.max_tokens + thought)


DryRun = Callable[[Sequence[Case], Sequence[Model], Workbench], None]
"""Asks, of its study's own choices, what a notebook asks."""
MOST_CASES = 12
"""Of a data set in a dry run of a study; of more cases the counts are multiplied."""


@dataclass
class StandIn(Model):
    """In place of a model: it counts what it is asked in ``rows``, and replies, in the printed
    form, what leads to the most questions. A diagnosis is one of ``answers``, by a hash of the
    question. ``thought``: tokens added to each reply.
    """

    name: str
    answers: Sequence[str]
    thought: int = 0
    taught: Mapping[str, Any] = field(default_factory=dict)
    rows: list[tuple[str, int, int, int]] = field(default_factory=list)
    prompts: Prompts | None = None
    revision = "plan"
    provides = frozenset({"text"})
    scores_text = True

    def generate(
        self, requests: Sequence[Request], *, keep: Keep | None = None
    ) -> list[list[Reply]]:
        """Count the requests; one reply said ``n`` times to each."""
        self.rows += [_row(r, self.thought) for r in requests]
        return [[Reply(self._said(r))] * r.n for r in requests]

    def _said(self, request: Request) -> str:
        said = request.messages[-1][1]
        place = int.from_bytes(hashlib.sha256(said.encode()).digest()[:8])
        answer = self.answers[place % len(self.answers)]
        if request.purpose.startswith("rephrase") and (told := _TAGGED.findall(said)):
            return f"[Well, {told[-1][1]}]"  # usable: it says the same
        if request.purpose == "profile":
            return profile_text(PROFILE)
        doctor = f"<thinking_process>So it is.</thinking_process>\n[{answer}]"
        more = {"ask": f"[Question {said.count('Doctor: ')}?]", "doctor": doctor}
        return (REPLIES | more).get(request.purpose, f"[{answer}]")


REPLIES = {
    "ce": "[50]", "cot_ce": "It fits. [50]", "p_true": "True", "judge": "False", "enough": "[more]",
    "topk_ce": " ".join(f"G{k}: [50]" for k in range(1, 6)), "patient": "[I don't know.]",
    "plan": json.dumps({
        "prescriptions": [{"drug": "paracetamol", "dose": "1 g", "route": "by mouth"}],
        "tests": ["full blood count"],
    }),
}  # fmt: skip
"""Purpose -> what a stand-in says, where that is always the same."""
_TAGGED = re.compile(r"<(\w+)>\n?(.*?)\n?</\1>", re.DOTALL)


def plan_study(name: str, choices: Setup) -> tuple[pd.DataFrame, str]:
    """Requests, replies and tokens by purpose of a notebook that asks models, and how it was found.

    - Tokens in are estimated from words, a prompt once a request; tokens out are the most that is
      allowed, thought included. Several models are counted together.
    - A benchmark is asked about all cases (:func:`_benchmark`). A study says what it asks by
      ``dry_run(cases, models, setup)``; of more than :data:`MOST_CASES` cases so many are asked
      about, and counts multiplied. New wordings are counted once, whatever the number of models.
    - ``ValueError`` for a notebook that asks no model.
    """
    of_benchmark = name in BENCHMARKS
    dry_run: DryRun | None = getattr(study_of(name), "dry_run", None)
    if dry_run is None and not of_benchmark:
        raise ValueError(f"{name} asks no model: there is nothing to plan")
    asked = opened(choices)
    every = asked.cases()
    cases = every if of_benchmark else every[:: -(-len(every) // MOST_CASES)]
    answers = sorted({c.diagnosis for c in cases})
    thought, aside = map(asked.thinking_tokens, (asked.model_options, asked.reader_options))
    names = [str(name) for name in as_list(asked.model)]
    models = [StandIn(name, answers, thought, taught_by(name)) for name in names]
    judges: list[StandIn] = []
    if str(asked.grader).startswith(JUDGE):
        own = taught_by(str(asked.grader).removeprefix(JUDGE))
        judges = [StandIn("judge", answers, aside, own)]
    by_role: dict[Role, list[StandIn]] = {}
    for role in ROLES:
        who = None if role in asked.UNUSED else asked.who(role, names)
        if who not in (None, "facts"):
            each = [StandIn(f"{role} {n}", answers, aside, taught_by(n)) for n in as_list(who)]
            by_role[role] = each
    stands = [*models, *judges, *chain.from_iterable(by_role.values())]
    if dry_run is None:
        _benchmark(cases, models, asked, judges, by_role)
        return _table([row for one in stands for row in one.rows]), ""
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of samples that are alike, say
        alone = asked.with_(
            model=models,
            grader=JudgeGrader(judges[0]) if judges else asked.grader,
            **{role: each if role == "panel" else each[0] for role, each in by_role.items()},
            model_options={},
            reader_options={},
            budgets={k: n for k, n in asked.budgets.items() if k != "thinking"},
            cache=Path(folder) / "replies.sqlite",
            run_dir=None,
            trial=False,
            n_jobs=1,
            quiet=True,
        )
        dry_run(cases, models, alone.shared())
    table = _table([row for one in stands for row in one.rows])
    if (times := len(every) / len(cases)) == 1:
        return table, "a dry run; at most, or nearly"
    counted = table.columns.drop("purpose")
    table[counted] = (table[counted] * times).round().astype(int)
    told = f"a dry run on {len(cases)} of {len(every)} cases, multiplied; at most, or nearly"
    return table, told


class Unread:
    """In place of encoders and judges of entailment: what replies mean is left open."""

    def read(
        self, generations: Sequence[Generation], views: Sequence[View], needs: Collection[str]
    ) -> list[Generation]:
        """The generations as they are."""
        return list(generations)


def _benchmark(
    cases: Sequence[Case],
    models: Sequence[StandIn],
    setup: Workbench,
    judges: Sequence[StandIn],
    by_role: Mapping[Role, Sequence[StandIn]],
) -> None:
    """Ask what a benchmark asks; no encoder is opened.

    MedConf asks for keyword and profile once a distinct answer, here of the data's own diagnoses. A
    judge is asked once an answer, the most it can be.
    """
    shown = views(cases, given(setup.levels, LEVELS))
    methods = select(given(setup.methods, "paper"))
    assessors = by_role.get("assessor", [])
    doctors = by_role.get("panel", [])
    for one in (*models, *doctors, *assessors):
        one.prompts = setup.prompts_for(one)
    for model in models:
        collect(
            model,
            shown,
            methods,
            setup.settings,
            readers=Unread(),
            retriever=setup.library if "assessment" in needs_of(methods) else None,
            assessor=assessors[0] if assessors else None,
            doctors=doctors,
        )
    for judge in judges:
        prompts = setup.prompts_for(judge)
        cases_judged = [v.case for v in shown] * len(models)
        asked = [(c.diagnosis, c.accepted, 0, prompts, c.question) for c in cases_judged]
        judge.generate([judge_request(*each) for each in asked])
    if setup.wording:
        (wording,) = by_role["wording"]
        wording.prompts = setup.prompts_for(setup.who("wording"))
        reword((s.text for case in cases for s in case.statements), wording)


def plan_all(
    values: Mapping[str, Mapping[str, Any]], needs: Mapping[str, str], rates: Mapping[str, float]
) -> Iterator[str]:
    """What each notebook with parameters in ``values`` asks, alone, in lines. A name stands in for
    a model among the ``needs`` that is not given; without its data a notebook cannot be counted.
    ``rates``: ``usd_in`` and ``usd_out``, where there are any."""
    rows = []
    for name, section in values.items():
        if lacks := [need for need in needs if f"${need}" in as_list(section.get("path"))]:
            yield f"{name} cannot be counted without {', '.join(lacks)}"
        elif section and (name in BENCHMARKS or hasattr(study_of(name), "dry_run")):
            of = {of: filled(value, _stand_ins(of, needs)) for of, value in section.items()}
            asked = check_parameters(notebook_path(name), of).with_(**rates)
            counts: Any = plan_study(name, asked)[0].drop(columns="purpose").sum()
            into = counts["n_tokens_in"] * (asked.usd_in or 0)
            out = asked.usd_out or 0
            dollars = (into + counts["n_tokens_out"] * out) / 1e6
            rows.append({"notebook": name, **counts, "dollars": round(dollars, 2)})
    if rows:
        table = pd.DataFrame(rows)
        table.loc[len(table)] = ["in all", *table.iloc[:, 1:].sum()]
        yield table.to_string(index=False)
        yield "each notebook alone: what several ask is asked once; tokens out and dollars at most"


def _stand_ins(parameter: str, needs: Iterable[str]) -> dict[str, str | None]:
    """Need -> a name in its place: a model's where the parameter names models, else none."""
    begins = {"grader": f"{JUDGE}openai:"} | dict.fromkeys(("model", *ROLES), "openai:")
    return {need: begins[parameter] + need if parameter in begins else None for need in needs}


BENCHMARKS = ("01_benchmark", "07_calibration", "08_graders")
"""Notebooks that ask through a benchmark alone: their questions are known."""
