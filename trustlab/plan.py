"""Counts what a run would ask before anything is spent.

A benchmark's questions are known: :func:`plan_benchmark` writes and counts them. Of every other
notebook :func:`plan_study` makes a dry run of what it asks, on a stand-in for each model that talks
on as long as it can: what depends on replies is the most, or nearly, that can be.
"""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from trustlab.agents.medconf import library_text, profile_text
from trustlab.agents.panel import doctor_request
from trustlab.changes.rephrase import rephrase_requests
from trustlab.collect import Settings, answer_requests, needs_of, probe_requests
from trustlab.confidence import select
from trustlab.graders import JUDGE, JudgeGrader, judge_request
from trustlab.levels import views
from trustlab.models.base import STATISTICS, Request
from trustlab.models.by_name import taught_by
from trustlab.prompts import Prompts
from trustlab.records import LEVELS, Criterion, Reply, View
from trustlab.retrieval import Retriever
from trustlab.run_notebooks import check_parameters, filled, notebook_path, study_of
from trustlab.settings import ROLES, Setup, as_list, given
from trustlab.workbench import Workbench, opened

WORDS_PER_TOKEN = 0.75
"""Rule of thumb for English text and large models' tokenizers; the table says tokens are
estimates."""
PROFILE = [Criterion(i, "a criterion of some words", "moderate") for i in range(1, 9)]
"""A symptom profile of as many criteria as in the paper's case study."""


def plan_benchmark(setup: Setup | Workbench) -> pd.DataFrame:
    """Requests, replies and tokens by purpose, for a benchmark with this setup.

    - Tokens in are estimated from words, a prompt once a request; tokens out are the most that is
      allowed, thought included. Several models are counted together, each with every statistic.
    - MedConf asks for keyword and profile once a distinct answer; here that is each distinct true
      diagnosis, an estimate. A judge is counted once an answer, the most it can be; new wordings
      once, whatever the number of models.
    """
    setup = opened(setup)
    cases, p = setup.cases(), setup.chosen
    shown = views(cases, given(setup.levels, LEVELS))
    needs = needs_of(select(given(setup.methods, "paper")))
    settings = setup.settings
    thought, aside = map(setup.thinking_tokens, (setup.model_options, setup.reader_options))
    rows = []
    for model in as_list(setup.model):
        prompts = setup.prompts_for(model)
        for v in shown:
            asked = answer_requests(v, needs, frozenset(("text", *STATISTICS)), settings, prompts)
            asked += probe_requests(v, v.case.diagnosis, needs, settings, prompts).values()
            if "panel" in needs:
                most: Any = {"n": p.n_doctors, "max_tokens": settings.max_tokens_doctor}
                warmth = p.panel_temperature
                asked.append(doctor_request(v, prompts, warmth, settings.seed, **most))
            rows += [_row(r, thought) for r in asked]
        if "assessment" in needs:
            most = thought if setup.assessor is None else aside
            judged = prompts if setup.assessor is None else setup.prompts_for(setup.assessor)
            medconf = _medconf_requests(shown, settings, setup.library, judged)
            rows += [_row(r, most) for r in medconf]
        if (grader := str(setup.grader)).startswith(JUDGE):
            judge = setup.prompts_for(grader.removeprefix(JUDGE))
            each = [v.case for v in shown]
            names = [(c.diagnosis, c.accepted, 0, judge, c.question) for c in each]
            rows += [_row(judge_request(*one), aside) for one in names]
    if setup.wording:
        requests = rephrase_requests(cases, setup.prompts_for(setup.wording))
        rows += [_row(r, aside) for r in dict.fromkeys(r for rs in requests.values() for r in rs)]
    return _table(rows)


def _table(rows: Sequence[tuple[str, int, int, int]]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["purpose", "n_replies", "n_tokens_in", "n_tokens_out"])
    grouped: Any = table.groupby("purpose", sort=False)
    return grouped.sum().assign(n_requests=grouped.size()).reset_index()


def _row(r: Request, thought: int) -> tuple[str, int, int, int]:
    words = sum(len(content.split()) for _, content in r.messages)
    return r.purpose, r.n, round(words / WORDS_PER_TOKEN), r.n * (r.max_tokens + thought)


def _medconf_requests(
    shown: Sequence[View], settings: Settings, library: Retriever, prompts: Prompts
) -> Iterator[Request]:
    """What MedConf would ask if every answer were right, the keyword its name and the profile as
    long as the paper's."""
    p, profile = settings.medconf, profile_text(PROFILE)

    def asked(purpose: str, max_tokens: int, **slots: Any) -> Request:
        messages = prompts.render(purpose, **slots)
        return Request(messages, max_tokens=max_tokens, purpose=purpose)

    for answer, asks in dict.fromkeys((v.case.diagnosis, v.case.question) for v in shown):
        passages, slots = library_text(library.search(answer, p.n_passages)), {"asks": asks}
        yield asked("keyword", p.max_tokens_keyword, answer=answer, **slots)
        slots |= {"answer": answer, "passages": passages, "options": p.options}
        yield asked("profile", p.max_tokens_profile, **slots)
    for v in shown:
        slots = {"patient": v.text, "answer": v.case.diagnosis, "profile": profile}
        slots |= {"asks": v.case.question, "options": p.options}
        yield asked("evidence", p.max_tokens_evidence, **slots)


MOST_CASES = 12
"""Of a data set in a dry run; of more cases the counts are multiplied."""


@dataclass
class StandIn:
    """In place of a model: it counts what it is asked in ``rows``, and replies, in the printed
    form, what leads to the most questions. A diagnosis is one of ``answers``, by a hash of the
    question. ``thought``: tokens added to each reply.
    """

    name: str
    answers: Sequence[str]
    thought: int = 0
    taught: dict[str, Any] = field(default_factory=dict)
    rows: list[tuple[str, int, int, int]] = field(default_factory=list)
    revision = "plan"
    provides = frozenset({"text"})

    def generate(self, requests: Sequence[Request]) -> list[list[Reply]]:
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
    """The same table for any notebook that asks models, and how it was found.

    A study says what it asks by ``dry_run(cases, models, setup)``; of more than :data:`MOST_CASES`
    cases so many are asked about, and counts multiplied. ``ValueError`` for a notebook that asks no
    model.
    """
    if name in BENCHMARKS:
        return plan_benchmark(opened(choices)), ""
    dry_run = getattr(study_of(name), "dry_run", None)
    if dry_run is None:
        raise ValueError(f"{name} asks no model: there is nothing to plan")
    asked = opened(choices)
    every = asked.cases()
    cases = every[:: -(-len(every) // MOST_CASES)]
    answers = sorted({c.diagnosis for c in cases})
    thought, aside = map(asked.thinking_tokens, (asked.model_options, asked.reader_options))
    names, roles = as_list(asked.model), {}
    models = [StandIn(str(name), answers, thought, taught_by(name)) for name in names]
    stands = [*models]
    if str(asked.grader).startswith(JUDGE):
        own = taught_by(str(asked.grader).removeprefix(JUDGE))
        stands.append(StandIn("judge", answers, aside, own))
        roles["grader"] = JudgeGrader(stands[-1])
    for role in ROLES:
        who = None if role in asked.UNUSED else asked.who(role, names)
        if who not in (None, "facts"):
            each = [StandIn(f"{role} {n}", answers, aside, taught_by(n)) for n in as_list(who)]
            roles[role] = each if role == "panel" else each[0]
            stands += each
    plain: Any = {"model_options": {}, "reader_options": {}, "trial": False, "n_jobs": 1}
    plain["budgets"] = {k: n for k, n in asked.budgets.items() if k != "thinking"}
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of samples that are alike, say
        how = {"cache": Path(folder) / "replies.sqlite", "run_dir": None, "quiet": True}
        dry_run(cases, models, asked.with_(model=models, **roles, **how, **plain).shared())
    table = _table([row for one in stands for row in one.rows])
    if (times := len(every) / len(cases)) == 1:
        return table, "a dry run; at most, or nearly"
    counted = table.columns.drop("purpose")
    table[counted] = (table[counted] * times).round().astype(int)
    told = f"a dry run on {len(cases)} of {len(every)} cases, multiplied; at most, or nearly"
    return table, told


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
            into, out = counts["n_tokens_in"] * (asked.usd_in or 0), asked.usd_out or 0
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
