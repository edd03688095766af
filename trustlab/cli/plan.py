"""Counts what a run would ask before anything is spent.

:func:`plan_study` makes a dry run of what a notebook asks, on a stand-in for each model that talks
on as long as it can: what depends on replies is the most, or nearly, that can be.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

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


class RequestCount(NamedTuple):
    """A request's purpose, its replies, and its tokens as they are estimated."""

    purpose: str
    n_replies: int
    n_tokens_in: int
    n_tokens_out: int


def count_request(request: Request, thought: int) -> RequestCount:
    """The counts of a request to a model that spends ``thought`` tokens more on each reply."""
    n_words = 0
    for _, content in request.messages:
        n_words += len(content.split())
    most_tokens = request.max_tokens + thought
    n_tokens_in = round(n_words / WORDS_PER_TOKEN)
    return RequestCount(
        request.purpose, request.n, n_tokens_in, request.n * most_tokens
    )


DryRun = Callable[[Sequence[Case], Sequence[Model], Workbench], None]
"""Asks, of its study's own choices, what a notebook asks."""
MOST_CASES = 12
"""Of a data set in a dry run of a study; of more cases the counts are multiplied."""


@dataclass
class StandIn(Model):
    """In place of a model: it counts its requests in ``counts``, and replies, in the printed form,
    what leads to the most questions. A diagnosis is one of ``answers``, by a hash of the question.
    ``thought``: tokens added to each reply.
    """

    name: str
    answers: Sequence[str]
    thought: int = 0
    taught: Mapping[str, Any] = field(default_factory=dict)
    counts: list[RequestCount] = field(default_factory=list)
    prompts: Prompts | None = None
    revision = "plan"
    provides = frozenset({"text"})
    scores_text = True

    def generate(
        self, requests: Sequence[Request], *, keep: Keep | None = None
    ) -> list[list[Reply]]:
        """Count the requests; one reply, repeated ``n`` times, to each."""
        replies = []
        for request in requests:
            self.counts.append(count_request(request, self.thought))
            reply = Reply(self._reply_text(request))
            replies.append([reply] * request.n)
        return replies

    def _reply_text(self, request: Request) -> str:
        purpose = request.purpose
        _, question = request.messages[-1]
        if purpose.startswith("rephrase"):
            tagged = _TAGGED.findall(question)
            if tagged:
                _, statement = tagged[-1]
                return f"[Well, {statement}]"  # usable: it says the same
        if purpose == "profile":
            return profile_text(PROFILE)
        if purpose == "ask":
            n_turns = question.count("Doctor: ")
            return f"[Question {n_turns}?]"
        if purpose in REPLIES:
            return REPLIES[purpose]
        digest = hashlib.sha256(question.encode()).digest()
        place = int.from_bytes(digest[:8])
        answer = self.answers[place % len(self.answers)]
        if purpose == "doctor":
            return f"<thinking_process>So it is.</thinking_process>\n[{answer}]"
        return f"[{answer}]"


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


@dataclass
class StandIns:
    """The stand-ins of a study: of its models, of a judge that grades, of those with a role."""

    models: list[StandIn]
    judges: list[StandIn]
    by_role: dict[Role, list[StandIn]]

    def table(self) -> pd.DataFrame:
        """Requests, replies and tokens of all, a row a purpose."""
        counts = []
        for stand_in in chain(self.models, self.judges, *self.by_role.values()):
            counts += stand_in.counts
        rows = pd.DataFrame(counts, columns=list(RequestCount._fields))
        by_purpose: Any = rows.groupby("purpose", sort=False)
        sums = by_purpose.sum()
        return sums.assign(n_requests=by_purpose.size()).reset_index()


def stand_ins_of(setup: Workbench, answers: Sequence[str]) -> StandIns:
    """A stand-in for each model that a setup names, whose diagnoses are among ``answers``."""
    thought = setup.thinking_tokens(setup.model_options)
    thought_of_readers = setup.thinking_tokens(setup.reader_options)
    names = [str(name) for name in as_list(setup.model)]
    models = [StandIn(name, answers, thought, taught_by(name)) for name in names]
    judges = []
    grader = str(setup.grader)
    if grader.startswith(JUDGE):
        taught = taught_by(grader.removeprefix(JUDGE))
        judges.append(StandIn("judge", answers, thought_of_readers, taught))
    by_role: dict[Role, list[StandIn]] = {}
    for role in ROLES:
        if role in setup.UNUSED:
            continue
        who = setup.who(role, names)
        if who in (None, "facts"):
            continue
        by_role[role] = [
            StandIn(f"{role} {name}", answers, thought_of_readers, taught_by(name))
            for name in as_list(who)
        ]
    return StandIns(models, judges, by_role)


def plan_study(name: str, choices: Setup) -> tuple[pd.DataFrame, str]:
    """Requests, replies and tokens by purpose of a notebook that asks models, and how they were
    counted.

    - Tokens in are estimated from words, a prompt once a request; tokens out are the most that is
      allowed, thought included. Several models are counted together.
    - A benchmark is asked about all cases (:func:`ask_benchmark`), unless the notebook's ``task``
      is a choice alone. A study says what else it asks by ``dry_run(cases, models, setup)``; of
      more than :data:`MOST_CASES` cases so many are asked about, and counts multiplied. New
      wordings are counted once, whatever the number of models.
    - ``ValueError`` for a notebook that asks no model.
    """
    dry_run: DryRun | None = getattr(study_of(name), "dry_run", None)
    if dry_run is None and name not in BENCHMARKS:
        raise ValueError(f"{name} asks no model: there is nothing to plan")
    setup = opened(choices.with_(cluster=None))
    all_cases = setup.cases()
    cases = all_cases
    if name not in BENCHMARKS:
        step = math.ceil(len(all_cases) / MOST_CASES)
        cases = all_cases[::step]
    answers = sorted({case.diagnosis for case in cases})
    stand_ins = stand_ins_of(setup, answers)
    task = getattr(setup, "task", "free")
    if name in BENCHMARKS and "free" in task:
        ask_benchmark(cases, setup, stand_ins)
    if dry_run is not None and task != "free":
        ask_dry(dry_run, cases, setup, StandIns(stand_ins.models, [], {}))
    if dry_run is None or name in BENCHMARKS:
        return stand_ins.table(), ""
    ask_dry(dry_run, cases, setup, stand_ins)
    table = stand_ins.table()
    times = len(all_cases) / len(cases)
    if times == 1:
        return table, "a dry run; at most, or nearly"
    columns = table.columns.drop("purpose")
    table[columns] = (table[columns] * times).round().astype(int)
    share = f"{len(cases)} of {len(all_cases)} cases"
    return table, f"a dry run on {share}, multiplied; at most, or nearly"


def ask_dry(
    dry_run: DryRun, cases: Sequence[Case], setup: Workbench, stand_ins: StandIns
) -> None:
    """Send a study's requests to the stand-ins; nothing is saved."""
    grader = setup.grader
    if stand_ins.judges:
        grader = JudgeGrader(stand_ins.judges[0])
    roles: dict[str, Any] = {}
    for role, models in stand_ins.by_role.items():
        roles[role] = models if role == "panel" else models[0]
    budgets = dict(setup.budgets)
    budgets.pop("thinking", None)
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of samples that are alike, say
        dry_setup = setup.with_(
            model=stand_ins.models,
            grader=grader,
            **roles,
            model_options={},
            reader_options={},
            budgets=budgets,
            cache=Path(folder) / "replies.sqlite",
            run_dir=None,
            trial=False,
            n_jobs=1,
            cluster=None,
            quiet=True,
        )
        dry_run(cases, stand_ins.models, dry_setup.shared())


class NoReaders:
    """In place of encoders and judges of entailment: what replies mean is left open."""

    def read(
        self,
        generations: Sequence[Generation],
        views: Sequence[View],
        needs: Collection[str],
    ) -> list[Generation]:
        """The generations as they are."""
        return list(generations)


def ask_benchmark(cases: Sequence[Case], setup: Workbench, stand_ins: StandIns) -> None:
    """Send a benchmark's requests to the stand-ins; no encoder is opened.

    MedConf asks for keyword and profile once a distinct answer, here of the data's own diagnoses. A
    judge is asked once an answer, the most it can be.
    """
    shown = views(cases, given(setup.levels, LEVELS))
    methods = select(setup.needed_methods)
    assessors = stand_ins.by_role.get("assessor", [])
    doctors = stand_ins.by_role.get("panel", [])
    for stand_in in (*stand_ins.models, *doctors, *assessors):
        stand_in.prompts = setup.prompts_for(stand_in)
    library = setup.library if "assessment" in needs_of(methods) else None
    for model in stand_ins.models:
        collect(
            model,
            shown,
            methods,
            setup.settings,
            readers=NoReaders(),
            retriever=library,
            assessor=assessors[0] if assessors else None,
            doctors=doctors,
        )
    for judge in stand_ins.judges:
        prompts = setup.prompts_for(judge)
        requests = []
        for view in shown * len(stand_ins.models):
            case = view.case
            verdict = judge_request(
                case.diagnosis, case.accepted, prompts, case.question
            )
            requests.append(verdict)
        judge.generate(requests)
    if setup.wording:
        (wording,) = stand_ins.by_role["wording"]
        wording.prompts = setup.prompts_for(setup.who("wording"))
        statements = chain.from_iterable(case.statements for case in cases)
        reword((statement.text for statement in statements), wording)


def plan_all(
    values: Mapping[str, Mapping[str, Any]],
    needs: Mapping[str, str],
    rates: Mapping[str, float],
) -> Iterator[str]:
    """Lines with the counts of each notebook with parameters in ``values``. A name stands in for a
    model among the ``needs`` that lacks; without its data a notebook cannot be counted.
    ``rates``: ``usd_in`` and ``usd_out``, where there are any."""
    rows = []
    for name, section in values.items():
        folders = as_list(section.get("path"))
        lacks = [need for need in needs if f"${need}" in folders]
        if lacks:
            yield f"{name} cannot be counted without {', '.join(lacks)}"
        elif section and (name in BENCHMARKS or hasattr(study_of(name), "dry_run")):
            parameters = {}
            for parameter, value in section.items():
                parameters[parameter] = filled(value, _names_in_place(parameter, needs))
            choices = check_parameters(notebook_path(name), parameters).with_(**rates)
            table, _ = plan_study(name, choices)
            rows.append({"notebook": name, **totals_of(table, choices)})
    if rows:
        table = pd.DataFrame(rows)
        table.loc[len(table)] = ["in all", *table.iloc[:, 1:].sum()]
        yield table.to_string(index=False)
        yield "each notebook alone: what several ask is asked once; tokens out and dollars at most"


def totals_of(table: pd.DataFrame, choices: Setup) -> dict[str, Any]:
    """The counts of a notebook over all purposes, and dollars at the rates of its choices."""
    counts: Any = table.drop(columns="purpose").sum()
    usd_in = choices.usd_in or 0
    usd_out = choices.usd_out or 0
    dollars = counts["n_tokens_in"] * usd_in
    dollars += counts["n_tokens_out"] * usd_out
    return {**counts, "dollars": round(dollars / 1e6, 2)}


def _names_in_place(parameter: str, needs: Iterable[str]) -> dict[str, str | None]:
    """Need -> a name in its place: a model's where the parameter names models, else none."""
    begin = None
    if parameter == "grader":
        begin = f"{JUDGE}openai:"
    elif parameter in ("model", *ROLES):
        begin = "openai:"
    return {need: None if begin is None else begin + need for need in needs}


BENCHMARKS = ("01_benchmark", "07_calibration", "08_graders")
"""Notebooks that ask through a benchmark alone: their questions are known."""
