"""05: doctors who vote, reviewers who check, and what the trust indices stand on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from trustlab import cluster
from trustlab.agents import panel as agents
from trustlab.agents import review as reviewing
from trustlab.agents.review import Checked, Proposed, Review
from trustlab.agents.rule_check import check_prescriptions, check_tests
from trustlab.agents.safety_table import known_items, load_safety
from trustlab.choices import choices
from trustlab.confidence import select
from trustlab.graders import Grader, JudgeGrader
from trustlab.knowledge.chart import chart_of
from trustlab.levels import views as views_of
from trustlab.meaning.parts import NO_MEDICAL_ENCODER
from trustlab.meaning.relevance import cosines, with_cosines
from trustlab.metrics import trust as formulas
from trustlab.metrics import trust_table
from trustlab.metrics.correlation import pearson_rows, spearman_rows
from trustlab.metrics.estimate import (
    NAN,
    Metric,
    Rows,
    Statistic,
    between,
    estimate,
    groups,
    ratio,
)
from trustlab.metrics.paired import compared, corrected
from trustlab.metrics.schema import need, table
from trustlab.metrics.trust_table import KEYS, RUN, Choices, check_reviews
from trustlab.models.base import Model
from trustlab.models.cache import CachedModel
from trustlab.parsing.counts import Counts, add, why_few
from trustlab.parsing.reply import CUT
from trustlab.paths import NOTICE, save_json, save_tables
from trustlab.records import FLAGS, RATINGS, Case, Mark, Opinion, Panel, View
from trustlab.runs import experiment
from trustlab.runs.folder.replies_log import recording
from trustlab.runs.formatted import remark_lines
from trustlab.runs.gate import why_unknown
from trustlab.runs.run import refuse_repeats
from trustlab.runs.workbench import Workbench, opened
from trustlab.settings import Setup, given

MARKS = [
    "model", "dataset", "configuration", "level", "case_id", "kind", "item", "text", "known",
    "said", "verdict", "quote", "quote_occurs", "reason", "missing", "rule_verdict", "rule_quote",
    "rule",
]  # fmt: skip
RX: dict[Any, str] = dict(zip((*RATINGS, None), trust_table.COUNTS[1:6], strict=True))
TESTS: dict[Any, str] = dict(zip((*FLAGS, None), trust_table.COUNTS[7:], strict=True))
COLUMN = {"prescription": RX, "test": TESTS}
"""Kind -> verdict that counts -> the column that counts it; None could not be read."""
ONE = "one doctor"
PROXY = "proxy: {}, no biomedical encoder"
PURPOSES_OF_PLANS = ("plan", "review_prescriptions", "review_tests")
NO_COSINE = "no doctor gave both reasoning and diagnosis"


class RatedItem(NamedTuple):
    """A prescription or test of a plan, numbered from 1 in its kind, with the reviewer's and the
    rule check's mark."""

    kind: str
    number: int
    text: str
    is_listed: bool
    """Whether the safety table knows it."""
    mark: Mark
    rule_mark: Mark

    @property
    def verdict(self) -> str | None:
        """The reviewer's verdict, and UNKNOWN of what the safety table does not know."""
        return self.mark.verdict if self.is_listed else "UNKNOWN"


def rated_items(checked: Checked) -> Iterator[RatedItem]:
    """Every prescription, then every test of a plan that was reviewed."""
    plan = checked.proposed.plan
    review = checked.review
    rules = checked.rules
    if plan is None or review is None or rules is None:
        return
    listed_drugs, listed_tests = known_items(plan)
    drugs = map(str, plan.prescriptions)
    drug_marks = zip(
        drugs, listed_drugs, review.prescriptions, rules.prescriptions, strict=True
    )
    for number, columns in enumerate(drug_marks, 1):
        yield RatedItem("prescription", number, *columns)
    test_marks = zip(plan.tests, listed_tests, review.tests, rules.tests, strict=True)
    for number, columns in enumerate(test_marks, 1):
        yield RatedItem("test", number, *columns)


def no_answer(opinion: Opinion) -> bool:
    """Whether a doctor's reply is no answer: it was cut off, is all thought, or never came."""
    return opinion.raw is None or opinion.missing.startswith(CUT)


def review_rows(checked: Checked) -> Iterator[dict[str, Any]]:
    """Two rows: safety off (no plan is reviewed, all counts of marks are 0) and on."""
    plan = checked.proposed.plan
    panel = checked.panel
    no_medical = NO_MEDICAL_ENCODER if checked.medical_cosines is None else NO_COSINE
    facts = {
        **checked.keys,
        "configuration": checked.configuration,
        "n_doctors": checked.n_doctors,
        "diagnoses": panel.votes,
        "diagnosis": panel.diagnosis,
        "tied": panel.tied,
        "n_no_answer": sum(no_answer(opinion) for opinion in panel.opinions),
        "truth": checked.view.case.diagnosis,
        "correct": checked.correct,
        "correct_share": checked.correct_share,
        **_mean_cosine("cosine", panel.cosines, NO_COSINE),
        **_mean_cosine("cosine_med", checked.medical_cosines, no_medical),
        "cosine_med_proxy": checked.proxy,
        "n_prescriptions": len(plan.prescriptions) if plan else 0,
        "n_tests": len(plan.tests) if plan else 0,
        "plan_missing": checked.proposed.missing,
    }
    mark_counts = dict.fromkeys((*RX.values(), *TESTS.values()), 0)
    yield {**facts, "safety": False, **mark_counts}
    for item in rated_items(checked):
        mark_counts[COLUMN[item.kind][item.verdict]] += 1
    yield {**facts, "safety": True, **mark_counts}


def _mean_cosine(
    name: str, cosines: Sequence[float] | None, no_cosine: str
) -> dict[str, Any]:
    """The mean over the doctors that have one, and why there is none."""
    values = [cosine for cosine in cosines or () if not math.isnan(cosine)]
    if not values:
        return {name: math.nan, f"{name}_missing": no_cosine}
    return {name: sum(values) / len(values), f"{name}_missing": ""}


def opinion_rows(checked: Checked) -> Iterator[dict[str, Any]]:
    """A row for each doctor of a panel, from 1."""
    panel = checked.panel
    cosines = panel.cosines or [math.nan] * checked.n_doctors
    for i, opinion in enumerate(panel.opinions):
        yield {
            **checked.keys,
            "doctor": i + 1,
            "speaker": opinion.model,
            "diagnosis": opinion.diagnosis,
            "vote": panel.votes[i],
            "thinking": opinion.thinking,
            "cosine": cosines[i],
            "missing": opinion.missing,
        }


def mark_rows(checked: Checked) -> Iterator[dict[str, Any]]:
    """A row a prescription or test: ``said`` is the reviewer's word, ``verdict`` what counts."""
    for item in rated_items(checked):
        yield {
            **checked.keys,
            "configuration": checked.configuration,
            "kind": item.kind,
            "item": item.number,
            "text": item.text,
            "known": item.is_listed,
            **vars(item.mark),
            "said": item.mark.verdict,
            "verdict": item.verdict,
            "rule": item.rule_mark.rule,
            "rule_verdict": item.rule_mark.verdict,
            "rule_quote": item.rule_mark.quote,
        }


@choices
class Asked(Workbench):
    """The choices of notebook 05."""

    UNUSED = ("doctor", "patient", "wording")


setup = Asked.of


@dataclass(frozen=True)
class TrustRun:
    """Tables of one run, each tidy, and what made them.
    ``reviews``: a row for each model, data set, configuration, safety, level and case, as
    :func:`trustlab.trust_indices` takes it. ``opinions``: a row a doctor. ``marks``: a row a
    prescription or test. ``calls``: a row a request. ``checked``: panel, plan and review of each as
    records."""

    reviews: pd.DataFrame
    opinions: pd.DataFrame
    marks: pd.DataFrame
    calls: pd.DataFrame
    parameters: dict[str, Any]
    checked: tuple[Checked, ...] = field(default=(), repr=False)

    def save(self, folder: Path) -> None:
        """Write the tables (CSV) and ``run.json``."""
        save_tables(self, ("reviews", "opinions", "marks", "calls"), folder)
        facts = {
            "notice": NOTICE,
            "trust": self.parameters,
            "calls_made": int(self.calls["n_made"].to_numpy().sum()),
            "calls_from_cache": int(self.calls["n_cached"].to_numpy().sum()),
            "warnings": remark_lines(self.parameters),
        }
        save_json(facts, folder / "run.json")


def trust(
    cases: Sequence[Case],
    models: Sequence[Model],
    levels: Sequence[int] | None = None,
    setup: Setup | Workbench | None = None,
) -> TrustRun:
    """Convene, plan and review for every model, case and level.

    - ``levels``: those of ``setup``, else 100. Its ``n_doctors``, at their temperature, are of
      the model itself or its sibling for that, or of those of ``panel`` in turn.
    - ``setup.reviewer`` marks the plans (``None``: the model of the doctor in charge, the first who
      voted for the panel's diagnosis, who draws the plan).
    - Without ``setup.medical_encoder``, which ``medguard-x`` calls for, the general one stands in,
      named in ``cosine_med_proxy``, or with ``medical_proxy`` off its RDC is missing.
    - ``ValueError`` for a model or case given twice.
    """
    setup = opened(setup)
    levels = given(levels, setup.levels, (100,))
    refuse_repeats(cases, models, levels)
    # a chart that cannot be read is refused before anything is spent
    for case in cases:
        chart_of(case)
    staff = Staff.of(models, setup)
    views = views_of(cases, levels)
    reviewed = reviewed_panels(views, models, staff)
    experiment.refuse_waiting([*staff.cached.values(), staff.judge_model])
    staff.close()
    parameters = facts_of(cases, models, levels, staff, reviewed)
    run = without_unread(trust_run(reviewed, staff.calls_table(), parameters))
    if setup.run_dir:
        run.save(setup.run_dir)
    experiment.warn(parameters)
    return run


@dataclass(frozen=True)
class Staff:
    """Who replies in a run and who reads the replies, all opened.
    ``cached``: ``id`` of each model -> the model over the store of ``setup``; a doctor's model that
    reviews, too, has one entry, so that its calls are counted once."""

    panel: Sequence[Model]
    reviewer: Model | None
    judge_model: CachedModel | None
    proxy: str
    """The name of the encoder that stands in for a medical one; "" where none does."""
    cached: Mapping[int, CachedModel]
    setup: Workbench

    @classmethod
    def of(cls, models: Sequence[Model], setup: Workbench) -> Staff:
        """The staff for ``models``, its counts of calls at 0."""
        judge = setup.judge
        panel: list[Model] = setup.role("panel", models) or []
        reviewer: Model | None = setup.role("reviewer")
        readers = setup.readers
        readers.check({"RDC": ["panel.cosines"]})
        proxy = ""
        if readers.medical is None and setup.medical_proxy:
            proxy = PROXY.format(readers.encoder.name)
        judge_model = judge.model if isinstance(judge, JudgeGrader) else None
        if judge_model is not None:
            judge_model.reset_calls()
        repliers = list(panel or models)
        if reviewer:
            repliers.append(reviewer)
        cached: dict[int, CachedModel] = {}
        for model in repliers:
            cached.setdefault(id(model), setup.cached(model)).reset_calls()
        return cls(panel, reviewer, judge_model, proxy, cached, setup)

    def doctors(self, model: Model) -> tuple[Model, ...]:
        """The doctors on the panel of ``model``."""
        members = [self.cached[id(member)] for member in self.panel or [model]]
        return agents.doctors_of(members, self.setup.chosen.n_doctors)

    def close(self) -> None:
        """Close what was opened here; what came in as a cache stays open."""
        for model in self.cached.values():
            if id(model) not in self.cached:
                model.close()

    def calls_table(self) -> pd.DataFrame:
        """A row a request of those that reply, with ``model``."""
        tables = [
            model.calls_table().assign(model=model.name)
            for model in self.cached.values()
        ]
        return pd.concat(tables, ignore_index=True)

    def reply_counts(self) -> Counts:
        """How many replies could be read, the judge's among them."""
        counts = Counts()
        for model in dict.fromkeys([*self.cached.values(), self.judge_model]):
            if model is not None:
                add(counts, {model.name: model.counts})
        return counts


def facts_of(
    cases: Sequence[Case],
    models: Sequence[Model],
    levels: Sequence[int],
    staff: Staff,
    reviewed: Sequence[Checked],
) -> dict[str, Any]:
    """What the manifest tells of a run."""
    setup = staff.setup
    reviewer = staff.reviewer
    medical = setup.readers.medical
    repliers = staff.cached.values()
    return {
        "models": {model.name: model.revision for model in models},
        "reviewer": reviewer and {reviewer.name: reviewer.revision},
        "dataset": sorted({case.dataset for case in cases}),
        "cases": len(cases),
        **cluster.facts(),
        "cases_sha256": experiment.cases_hash(cases),
        "levels": list(levels),
        "n_doctors": setup.chosen.n_doctors,
        "doctor_temperature": setup.chosen.doctor_temperature,
        "seed": setup.seed,
        "panel": {model.name: model.revision for model in staff.panel} or None,
        "budgets": dict(setup.budgets),
        "reading": setup.reading,
        "reasoning_from": setup.reasoning_from,
        "replies_read": staff.reply_counts(),
        "grader": setup.judge.name,
        "encoder": setup.readers.encoder.revision,
        "medical_encoder": medical and medical.revision,
        "medical_proxy": staff.proxy,
        "served_by": experiment.served_by(repliers),
        **experiment.request_facts(repliers),
        "unknown_answers": {} if staff.judge_model else unknown_answers(reviewed),
    }


def unknown_answers(reviewed: Sequence[Checked]) -> dict[str, dict[str, int]]:
    """Model -> how many diagnoses its doctors gave (``answers``), and how many of them a grader
    that is no judge does not know."""
    counts = {}
    for checked in reviewed:
        if checked.panel.diagnosis is not None:
            of_model = counts.setdefault(checked.model, {"answers": 0, "unknown": 0})
            of_model["answers"] += 1
            of_model["unknown"] += math.isnan(checked.correct)
    return counts


def trust_run(
    reviewed: Sequence[Checked], calls: pd.DataFrame, parameters: dict[str, Any]
) -> TrustRun:
    """The tables of what was reviewed."""
    reviews = []
    opinions = []
    marks = []
    for checked in reviewed:
        reviews += review_rows(checked)
        marks += mark_rows(checked)
        # the first doctor alone is on the panel, too
        if checked.n_doctors > 1 or parameters["n_doctors"] == 1:
            opinions += opinion_rows(checked)
    return TrustRun(
        reviews=pd.DataFrame(reviews),
        opinions=pd.DataFrame(opinions),
        marks=pd.DataFrame(marks, columns=MARKS),
        calls=calls,
        parameters=parameters,
        checked=tuple(reviewed),
    )


def without_unread(run: TrustRun) -> TrustRun:
    """The run without what rests on replies of which less than half could be read."""
    reviews: Any = run.reviews.copy()
    marks: Any = run.marks
    for model in run.parameters["models"]:
        why = partial(why_few, run.parameters["replies_read"], model)
        no_verdicts = why(["judge"]) or why_unknown(run.parameters, model)
        no_opinions = why(["doctor"])
        no_plans = no_opinions or why(PURPOSES_OF_PLANS)
        of_model = reviews["model"].eq(model)
        if no_verdicts or no_opinions:
            reviews.loc[of_model, ["correct", "correct_share"]] = math.nan
        if no_opinions:
            no_votes = reviews["n_doctors"].map(lambda n: (None,) * n)
            reviews["diagnoses"] = reviews["diagnoses"].mask(of_model, no_votes)
            reviews["diagnosis"] = reviews["diagnosis"].mask(of_model, None)
            n_no_answer = reviews["n_no_answer"]
            reviews["n_no_answer"] = n_no_answer.mask(of_model, reviews["n_doctors"])
            reviews.loc[of_model, ["cosine", "cosine_med"]] = math.nan
            why_none = ["cosine_missing", "cosine_med_missing"]
            reviews.loc[of_model, why_none] = no_opinions
        if no_plans:
            reviews.loc[of_model, trust_table.COUNTS] = 0
            reviews.loc[of_model, "plan_missing"] = no_plans
            marks = marks[marks["model"].ne(model)]
        reason = no_plans or no_verdicts
        if reason:
            before = reviews.get("unread", pd.Series("", reviews.index))
            reviews["unread"] = before.mask(of_model, reason)
    return replace(run, reviews=reviews, marks=marks)


def reviewed_panels(
    views: Sequence[View], models: Sequence[Model], staff: Staff
) -> list[Checked]:
    """Every configuration of every model's team on every view, reviewed and graded."""
    setup = staff.setup
    reviewed = []
    with recording(setup.run_dir) as attach:
        attach(*staff.cached.values(), staff.judge_model)
        for model in models:
            for configuration in configurations_of(model, views, staff):
                reviewed += reviewed_plans(configuration, staff)
        return graded(reviewed, setup.judge)


@dataclass(frozen=True)
class Configuration:
    """A team's panel, or its first doctor alone, on each view.
    ``doctors``: all of the team, of whom the first ``n_doctors`` judge."""

    model: str
    name: str
    n_doctors: int
    doctors: Sequence[Model]
    views: Sequence[View]
    panels: Sequence[Panel]
    medical_cosines: Sequence[Sequence[float]]

    @property
    def in_charge(self) -> list[Model | None]:
        """The doctor in charge of each view; ``None`` without a diagnosis."""
        in_charge = []
        for panel in self.panels:
            place = agents.in_charge(panel)
            in_charge.append(None if place is None else self.doctors[place])
        return in_charge

    @property
    def models(self) -> list[Model]:
        """The doctors' models, each once."""
        return list({id(doctor): doctor for doctor in self.doctors}.values())

    def diagnosis(self, i: int) -> str:
        """The panel's diagnosis on a view that has one."""
        return str(self.panels[i].diagnosis)


def configurations_of(
    model: Model, views: Sequence[View], staff: Staff
) -> Iterator[Configuration]:
    """The first doctor of a model's team alone, then its panel of several."""
    setup = staff.setup
    doctors = staff.doctors(model)
    panels = agents.convene(
        views,
        doctors,
        temperature=setup.chosen.panel_temperature,
        seed=setup.seed,
        max_tokens=setup.budgets.get("doctor", agents.MAX_TOKENS),
        reading=setup.reading,
        reasoning_from=setup.reasoning_from,
    )
    encoder = setup.readers.encoder
    panels = with_cosines(encoder, panels)
    medical_encoder = encoder if staff.proxy else setup.readers.medical
    medical_cosines = [[] for _ in panels]
    if medical_encoder:
        medical_cosines = [cosines(medical_encoder, panel.opinions) for panel in panels]
    alone = []
    for panel, view in zip(panels, views, strict=True):
        first_alone = agents.decide(panel.opinions[:1], view.case.case_id)
        alone.append(replace(first_alone, cosines=panel.cosines and panel.cosines[:1]))
    first_cosines = [panel_cosines[:1] for panel_cosines in medical_cosines]
    yield Configuration(model.name, ONE, 1, doctors, views, alone, first_cosines)
    n = len(doctors)
    if n > 1:
        name = f"panel of {n}"
        yield Configuration(
            model.name, name, n, doctors, views, panels, medical_cosines
        )


def reviewed_plans(configuration: Configuration, staff: Staff) -> Iterator[Checked]:
    """The plan of the doctor in charge of each view, and its reviews."""
    plans = drawn_plans(configuration, staff.setup)
    reviews = plan_reviews(configuration, plans, staff)
    for i, view in enumerate(configuration.views):
        panel = configuration.panels[i]
        yield Checked(
            model=configuration.model,
            configuration=configuration.name,
            n_doctors=configuration.n_doctors,
            view=view,
            panel=panel,
            medical_cosines=tuple(configuration.medical_cosines[i]) or None,
            proxy=staff.proxy,
            proposed=plans[i],
            review=reviews[i],
            rules=rule_review(view, panel, plans[i]),
        )


def drawn_plans(configuration: Configuration, setup: Workbench) -> list[Proposed]:
    """The plan of the doctor in charge of each view; none without a diagnosis."""
    views = configuration.views
    plans = [Proposed(None, "no diagnosis to plan for")] * len(views)
    for model in configuration.models:
        places = []
        diagnosed = []
        for i, doctor in enumerate(configuration.in_charge):
            if doctor is model:
                places.append(i)
                diagnosed.append((views[i], configuration.diagnosis(i)))
        proposals = reviewing.propose(
            model,
            diagnosed,
            temperature=setup.chosen.panel_temperature,
            seed=setup.seed,
            max_tokens=setup.budgets.get("plan", reviewing.MAX_TOKENS),
            reading=setup.reading,
        )
        for i, proposal in zip(places, proposals, strict=True):
            plans[i] = proposal
    return plans


def plan_reviews(
    configuration: Configuration, plans: Sequence[Proposed], staff: Staff
) -> list[Review | None]:
    """The review of each plan, by the run's reviewer or else by the model of the doctor in charge;
    none without a plan."""
    setup = staff.setup
    views = configuration.views
    reviewers = configuration.models
    reviewer_by_view: Sequence[Model | None] = configuration.in_charge
    if staff.reviewer:
        reviewers = [staff.cached[id(staff.reviewer)]]
        reviewer_by_view = reviewers * len(views)
    reviews: list[Review | None] = [None] * len(views)
    for model in reviewers:
        places = []
        planned = []
        for i, reviewer in enumerate(reviewer_by_view):
            plan = plans[i].plan
            if reviewer is model and plan is not None:
                places.append(i)
                planned.append((views[i], configuration.diagnosis(i), plan))
        of_model = reviewing.review(
            model,
            planned,
            seed=setup.seed,
            max_tokens=setup.budgets.get("review", reviewing.MAX_TOKENS_REVIEW),
            reading=setup.reading,
        )
        for i, review in zip(places, of_model, strict=True):
            reviews[i] = review
    return reviews


def rule_review(view: View, panel: Panel, proposed: Proposed) -> Review | None:
    """The rule check's marks of a plan."""
    plan = proposed.plan
    if plan is None:
        return None
    chart = chart_of(view.case, view.statements)
    prescriptions = check_prescriptions(plan, chart, panel.diagnosis)
    tests = check_tests(plan, chart, panel.diagnosis)
    return Review(prescriptions, tests)


def graded(reviewed: Sequence[Checked], grader: Grader) -> list[Checked]:
    """Each with the grades of its diagnosis and of all that tied for it; NaN where unjudged."""
    keys = []
    names = []
    cases = []
    for checked in reviewed:
        diagnoses = {checked.panel.diagnosis, *checked.panel.tied}
        for name in sorted(filter(None, diagnoses)):
            keys.append((id(checked), name))
            names.append(name)
            cases.append(checked.view.case)
    correct_by_key = {}
    grades = grader.grade(names, cases)
    for key, grade in zip(keys, grades, strict=True):
        correct = math.nan if grade.correct is None else float(grade.correct)
        correct_by_key[key] = correct
    with_grades = []
    for checked in reviewed:
        panel = checked.panel
        correct = correct_by_key.get((id(checked), panel.diagnosis), math.nan)
        tied = [correct_by_key[id(checked), name] for name in panel.tied]
        if not tied:
            tied = [correct]
        share = sum(tied) / len(tied)
        with_grades.append(replace(checked, correct=correct, correct_share=share))
    return with_grades


INDEX_NAMES = {
    "accuracy": "Accuracy",
    "cdr": "CDR",
    "rdc": "RDC",
    "eti_percent": "ETI",
    "unsafe_rx_percent": "UnsafeRx %",
    "test_alerts_percent": "TestAlerts %",
    "osi": "OSI",
    "fti": "FTI",
}
"""Index -> its name in figures and tables, in this order."""
IN_FRACTIONS = ["accuracy", "cdr", "rdc"]
LOWER_IS_BETTER = ["cdr", "unsafe_rx_percent", "test_alerts_percent"]
THINKS = [*IN_FRACTIONS, "eti_percent"]
DOES = ["unsafe_rx_percent", "test_alerts_percent", "osi"]
GROUPS = {
    **dict.fromkeys(THINKS, "What it thinks"),
    **dict.fromkeys(DOES, "What it does"),
    "fti": "The whole",
}
CONFIGURATION = ["model", "dataset", "level", "configuration"]


def in_percent(indices: pd.DataFrame) -> pd.DataFrame:
    """The indices with accuracy, CDR and RDC of ``trust-x`` times 100, intervals too."""
    is_trust_x = indices["formulation"].eq("trust-x")
    is_fraction = is_trust_x & indices["metric"].isin(IN_FRACTIONS)
    ends = ["value", "low", "high"]
    percents = indices.copy()
    percents[ends] = indices[ends].astype(float).mul(1 + 99 * is_fraction, axis=0)
    return percents


def rows_of_indices(percents: pd.DataFrame) -> pd.DataFrame:
    """What is drawn: all of ``trust-x``, safety off where it matters; else what RDC changes."""
    metric: Any = percents["metric"]
    safety: Any = percents["safety"]
    is_on = safety.astype(bool)
    is_trust_x = percents["formulation"].eq("trust-x")
    with_reviews = is_on | metric.isin(["osi", "fti"])
    of_trust_x = is_trust_x & metric.isin(list(INDEX_NAMES)) & with_reviews
    of_other = ~is_trust_x & is_on & metric.isin(["rdc", "eti_percent", "fti"])
    places = {name: place for place, name in enumerate(INDEX_NAMES)}
    arrow = metric.isin(LOWER_IS_BETTER).map({True: " ↓", False: ""})
    drawn = percents.assign(
        about=metric.map(GROUPS).where(
            is_trust_x, "medguard-x: RDC is 50 × (1 + cosine)"
        ),
        team=percents["configuration"] + safety.map({True: "", False: ", safety off"}),
        place=metric.map(places),
        metric=metric.map(INDEX_NAMES) + arrow,
    )
    order = ["formulation", "place", "safety"]
    rows: Any = drawn[of_trust_x | of_other]
    rows = rows.sort_values(order, ascending=[False, True, False], kind="stable")
    return rows.drop(columns="place")


WEIGHTS = ["w_accuracy", "w_agreement", "w_rdc"]
PARTS = ["accuracy", "cdr", "rdc"]


def weight_grid(steps: int = 20) -> np.ndarray:
    """All weights of (accuracy, 1 - CDR, RDC) in steps of 1/``steps`` that sum to 1, (n, 3)."""
    grid = [
        (i, k, steps - i - k) for i in range(steps + 1) for k in range(steps - i + 1)
    ]
    return np.array(grid) / steps


def weight_sweep(indices: pd.DataFrame, steps: int = 20) -> pd.DataFrame:
    """The highest ETI (``trust-x``, percent) at each point of the grid of weights, and whose it is.
    ``winner``: a configuration, "tie" (``tied`` names them), or "" with the reason in ``missing``;
    ``margin`` to the next: NaN for one alone, 0 in a tie. ``n`` configurations are compared;
    ``n_missing`` lack a part; ``n_cases`` is the fewest behind the ETI of any. ``ValueError`` where
    ``indices`` hold nothing of ``trust-x``."""
    lines = []
    for label, part in groups(contenders(indices), RUN):
        complete = part.dropna(subset=PARTS)
        label |= {
            "metric": "eti_percent",
            "n": len(complete),
            "n_missing": len(part) - len(complete),
            "n_cases": int(complete["n"].min()) if len(complete) else 0,
        }
        for weights in weight_grid(steps):
            by_name = dict(zip(WEIGHTS, weights, strict=True))
            lines.append({**label, **by_name, **_winner(eti_at(complete, weights))})
    return table(lines, [*RUN, *WEIGHTS], ["winner", "tied", "margin"])


def contenders(indices: pd.DataFrame) -> pd.DataFrame:
    """The configurations that differ in a part of ETI, a row each: parts, n of ETI, name.
    Safety is in the name only where it matters."""
    need(indices, ["formulation", *KEYS, "metric", "value", "n"], "indices")
    of_trust_x: Any = indices[indices["formulation"].eq("trust-x")]
    lacking = {*PARTS, "eti"} - {*of_trust_x["metric"]}
    if lacking:
        raise ValueError(f"indices lack {sorted(lacking)} of 'trust-x'")
    rows = []
    for label, part in groups(of_trust_x, KEYS):
        by_metric = part.set_index("metric")
        parts = by_metric["value"][PARTS].to_dict()
        rows.append({**label, **parts, "n": by_metric["n"]["eti"]})
    configurations = [*RUN, "configuration"]
    distinct_rows = pd.DataFrame(rows).drop_duplicates([*configurations, *PARTS])
    is_twice = distinct_rows.duplicated(configurations, keep=False)
    words = {True: ", safety on", False: ", safety off"}
    safety: Any = distinct_rows["safety"].map(words.get)
    names = distinct_rows["configuration"] + safety.where(is_twice, "")
    return distinct_rows.assign(contender=names)


def eti_at(contenders: pd.DataFrame, weights: Sequence[float]) -> pd.Series:
    """The ETI of each of the :func:`contenders` under ``weights`` (3,), in percent."""
    accuracy, cdr, rdc = contenders[PARTS].to_numpy(float).T
    percents = 100 * formulas.eti(accuracy, cdr, rdc, weights)
    return pd.Series(percents, contenders["contender"])


def _winner(eti: pd.Series) -> dict[str, Any]:
    """Who has the highest ETI."""
    if not len(eti):
        missing = "no configuration has accuracy, CDR and RDC"
        return {"winner": "", "tied": (), "missing": missing}
    highest, second = [*eti.nlargest(2), np.nan][:2]
    is_best = eti >= eti.max() - 100 * formulas.ROUNDING
    best = sorted(str(name) for name in eti.index[is_best])
    line: dict[str, Any] = {
        "value": highest,
        "missing": "",
        "winner": best[0],
        "tied": (),
        "margin": highest - second,
    }
    if len(best) > 1:
        line |= {"winner": "tie", "tied": tuple(best), "margin": 0.0}
    return line


def _over_cases(correlation: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Metric:
    """A correlation (B, n), (B, n) -> (B,) of ETI and OSI, a row a case. It has no interval:
    with one far case none holds."""

    def values(rows: Rows) -> np.ndarray:
        return correlation(rows["ETI"][None], rows["OSI"][None])

    return Metric(Statistic(values), withheld=lambda rows: rows.none)


CORRELATIONS = {
    "pearson": _over_cases(pearson_rows),
    "spearman": _over_cases(spearman_rows),
}
"""Of ETI and OSI over cases, as the notebook takes them."""


def eti_and_osi(cases: pd.DataFrame) -> pd.DataFrame:
    """The ETI and OSI of each case, and their sum where it has ``both``; ``trust-x``."""
    columns = {name: cases[name].to_numpy() for name in cases}
    unsafe_rx = formulas.unsafe_rx_percent(
        columns["n_unsafe"],
        columns["n_caution"],
        columns["n_rx_rated"],
        "unsafe",
        columns["n_prescriptions"],
    )
    test_alerts = formulas.test_alerts_percent(
        columns["n_risky"],
        columns["n_redundant"],
        columns["n_tests_rated"],
        columns["n_tests"],
    )
    eti = formulas.eti(columns["right"], columns["apart"], columns["cosine"])
    values = cases[["case_id"]].assign(
        ETI=eti, OSI=formulas.osi(unsafe_rx, test_alerts)
    )
    is_planned = columns["planned"] > 0
    return values.assign(both=(values["ETI"] + values["OSI"]).where(is_planned))


SHOWN = ("accuracy", "eti_percent", "osi", "fti")
FAMILY = [*RUN, "safety"]


def percent(share: Statistic) -> Statistic:
    """A share in [0, 1], times 100."""
    values = share.values
    return replace(
        share, values=lambda rows: 100 * values(rows), ends=between(0.0, 100.0)
    )


def configuration_differences(
    reviews: pd.DataFrame, against: str = ONE
) -> pd.DataFrame:
    """Each configuration's indices (:data:`SHOWN`, ``trust-x``) minus those of ``against``, in
    percent.
    Over the ``n`` cases that both could answer (:func:`trustlab.metrics.trust_table.answered`);
    ``p_holm`` is over the rows of a :data:`FAMILY`. A team without ``against`` has
    no row; ``ValueError`` where it is nowhere."""
    reviews = check_reviews(reviews)
    configurations = list(reviews["configuration"].unique())
    if against not in configurations:
        raise ValueError(f"against is {against!r}; the reviews hold {configurations}")
    choices = Choices()
    statistics = dict(trust_table.statistics(choices))
    statistics["accuracy"] = percent(statistics["accuracy"])
    rows_by_key: dict[tuple[Any, ...], Rows] = {}
    for label, _, rows in trust_table.configurations(reviews, choices):
        team = [label[name] for name in FAMILY]
        rows_by_key[label["configuration"], *team] = rows
    lines = []
    for (configuration, *team), rows in rows_by_key.items():
        reference = rows_by_key.get((against, *team))
        if configuration == against or reference is None:
            continue
        label = dict(zip(FAMILY, team, strict=True))
        label |= {"configuration": configuration, "against": against}
        for name in SHOWN:
            pair = _on_shared_cases(rows, reference, name, choices)
            lines.append({**label, "metric": name, **compared(pair, statistics[name])})
    return corrected(lines, [*FAMILY, "configuration", "against"], family=FAMILY)


def _on_shared_cases(rows: Rows, reference: Rows, name: str, choices: Choices) -> Rows:
    """The cases of two configurations, of which those count that both could answer in an index."""
    first = rows.asked.set_index("case_id")
    second = reference.asked.set_index("case_id")
    cases = first.index.union(second.index)
    is_shared = cases.isin(first.index) & cases.isin(second.index)
    has_first = is_shared & _could_answer(first, cases, name, choices)
    has_second = is_shared & _could_answer(second, cases, name, choices)
    none = "no case that both have"
    if has_first.any() and has_second.any():
        none = "no case that both could answer"
    elif is_shared.any():
        none = "one of the two has no value"
    has_both = has_first & has_second
    of_second = Rows(second.reindex(cases).reset_index(), has_both, none=none)
    of_first = first.reindex(cases).reset_index()
    return Rows(of_first, has_both, none=none, reference=of_second)


def _could_answer(
    rows: pd.DataFrame, cases: pd.Index, name: str, choices: Choices
) -> np.ndarray:
    """Which ``cases`` a configuration could answer in an index; none that it does not have."""
    answered = trust_table.answered(rows, choices)[name]
    return answered.reindex(cases, fill_value=False).to_numpy(bool)


def indices_on_shared_cases(
    reviews: pd.DataFrame, of: Sequence[str] = RUN
) -> pd.DataFrame:
    """The indices (``trust-x``) of the cases that all configurations could
    answer.
    "All" are those of a group ``of`` keys whose ETI has a case at all; where they share no case,
    every index is missing."""
    choices = Choices()
    tables = []
    for _, group in groups(check_reviews(reviews), of):
        answered = []
        for _, _, rows in trust_table.configurations(group, choices):
            has_eti: Any = trust_table.answered(rows.asked, choices)["eti"]
            if has_eti.any():
                answered.append(set(rows.asked["case_id"][has_eti]))
        shared = set.intersection(*answered) if answered else set()
        on_shared = group[group["case_id"].astype(str).isin(shared)]
        if len(on_shared):
            indices = trust_table.trust_indices(on_shared)
        else:
            indices = trust_table.trust_indices(group)
            indices = indices.assign(value=NAN, low=NAN, high=NAN, n=0, n_cases=0)
            indices["missing"] = "no case that all could answer"
        tables.append(indices)
    return pd.concat(tables, ignore_index=True)


BY = ["model", "dataset", "level", "kind"]
REVIEW = [*BY, "case_id", "configuration"]
WORDS = ["item", "text", "verdict", "quote", "reason", "rule"]
NEEDED = [*REVIEW, *WORDS, "known", "quote_occurs", "rule_verdict"]
OBJECTIONS = (*RATINGS[1:3], *FLAGS[1:3])
FINE = (RATINGS[0], FLAGS[0])


def marks_compared(marks: pd.DataFrame) -> pd.DataFrame:
    """The items that both have rated: known to the table, and read as an objection or as fine.

    - Adds ``objects`` and ``accepts`` (the reviewer), ``quotes`` (its quotation occurs),
      ``rule_objects`` and ``rule_kind`` (what the rule hangs on; "" without); ``case_id`` names the
      data set, too.
    - A review that came out the same, item by item, for one doctor and for the panel counts once.
    - ``ValueError`` for lacking columns.
    """
    items = distinct_reviews(marks)
    safety = load_safety()
    is_rated = items["verdict"].isin([*OBJECTIONS, *FINE])
    items = items[items["known"].astype(bool) & is_rated]
    rules = {**safety.test_rules, **safety.drug_rules}
    rule_kinds = {name: rule.kind for name, rule in rules.items()}
    rule_names = items["rule"].astype(object).fillna("")
    return items.assign(
        case_id=items["dataset"].astype(str) + " " + items["case_id"].astype(str),
        objects=items["verdict"].isin(OBJECTIONS),
        accepts=items["verdict"].isin(FINE),
        quotes=items["quote_occurs"].eq(True),
        rule_objects=items["rule_verdict"].isin(OBJECTIONS),
        rule_kind=rule_names.map(lambda name: rule_kinds.get(name, name)),
    )


def reviewer_shares(items: pd.DataFrame, reviews: pd.DataFrame) -> pd.DataFrame:
    """Of the items :func:`marks_compared`, by model, data set, level and kind: ``sensitivity`` and
    ``specificity`` of the reviewer against the rule check, and how often a ``quotation`` occurs."""
    measures = {  # metric -> which items, what is counted of those, why there is none
        "sensitivity": (
            items["rule_objects"],
            "objects",
            "the rule check objects to none",
        ),
        "specificity": (
            ~items["rule_objects"],
            "accepts",
            "the rule check objects to all",
        ),
        "quotation": (items["objects"], "quotes", "the reviewer objects to none"),
    }
    kinds = pd.DataFrame({"kind": list(COLUMN)})
    labels = reviews[RUN].drop_duplicates().merge(kinds, how="cross")
    lines = []
    for label in labels.to_dict("records"):
        has_label: Any = (items[BY] == pd.Series(label)).all(axis=1)
        for metric, (is_measured, counted, none) in measures.items():
            if not has_label.any():
                none = "no item that both have rated"
            measured: Any = items[has_label & is_measured]
            rows = Rows.of(measured, counted, none)
            share = ratio(counted, kind="rated", uneven=True)
            lines.append({**label, "metric": metric, **estimate(rows, share)})
    return table(lines, BY)


def distinct_reviews(marks: pd.DataFrame) -> Any:
    """Each review once: of configurations whose reviews are alike in every item, the first."""
    need(marks, NEEDED, "marks")
    words = marks[WORDS].astype(str).itertuples(index=False, name=None)
    words_by_item = pd.Series(list(words), marks.index, dtype=object)
    items: Any = marks[REVIEW].copy()
    items["words"] = words_by_item
    words_by_review = items.groupby(REVIEW, sort=False)["words"].agg(tuple)
    reviews = words_by_review.reset_index()
    in_any_configuration = [*BY, "case_id", "words"]
    first_reviews = reviews.drop_duplicates(in_any_configuration)
    return marks.merge(first_reviews[REVIEW], on=REVIEW, validate="many_to_one")


def dry_run(
    cases: Sequence[Case], models: Sequence[Model], notebook_setup: Asked
) -> None:
    """Ask what the notebook asks, for ``trustlab plan``."""
    trust(cases, models, setup=notebook_setup)
    wanted = given(notebook_setup.methods, "paper")
    names = [method.name for method in select(wanted)]
    methods = dict.fromkeys([*names, "agreement", "rdc"])
    experiment.benchmark(cases, models, list(methods), setup=notebook_setup)
