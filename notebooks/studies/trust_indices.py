"""05: doctors who vote, reviewers who check, and what the trust indices stand on."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import kendalltau, rankdata

from studies.consultation import with_progress
from trustlab.agents.panel import (
    Doctor,
    Proposed,
    Review,
    convene,
    decide,
    doctors_of,
    in_charge,
    propose,
    review,
)
from trustlab.choices import choices
from trustlab.confidence import select
from trustlab.folder.replies_log import recording
from trustlab.graders import Grader
from trustlab.levels import views as views_of
from trustlab.meaning.encoder import Encoder
from trustlab.meaning.parts import NO_MEDICAL_ENCODER
from trustlab.meaning.relevance import cosines, with_cosines
from trustlab.metrics import agreement, schema, ties
from trustlab.metrics import trust as formulas
from trustlab.metrics import trust_table as made
from trustlab.metrics.correlation import pearson_permutation_p, pearson_rows, spearman_rows
from trustlab.metrics.estimate import (
    NAN,
    Draws,
    Metric,
    Rows,
    all_alike,
    estimate,
    grouped,
    groups,
    mean,
    measure,
)
from trustlab.metrics.formatted import pivoted, remark_lines, with_interval
from trustlab.metrics.paired import compared, corrected
from trustlab.metrics.schema import need, table
from trustlab.metrics.trust_table import (
    COUNTS,
    INDICES,
    KEYS,
    RUN,
    Choices,
    check_reviews,
    trust_indices,
)
from trustlab.models.base import Model
from trustlab.models.cache import CachedModel
from trustlab.parsing.counts import Counts, add, why_few
from trustlab.parsing.reply import CUT
from trustlab.paths import NOTICE, save_json, save_tables
from trustlab.records import FLAGS, RATINGS, Case, Mark, Opinion, Panel, Parameters, View
from trustlab.run import (
    benchmark,
    cases_hash,
    given_once,
    how_asked,
    refuse_waiting,
    served_by,
    sharded,
    warn,
)
from trustlab.safety.chart import Chart, chart_of
from trustlab.safety.rule_check import check_prescriptions, check_tests
from trustlab.safety.table import Safety, known_items, load_safety
from trustlab.settings import Budget, Setup, as_list, given
from trustlab.workbench import Workbench, opened

REVIEW_KEYS = ("model", "dataset", "configuration", "n_doctors", "safety", "level", "case_id")
REVIEWS = [
    *REVIEW_KEYS, "diagnoses", "diagnosis", "tied", "n_no_answer", "truth", "correct",
    "correct_share", "cosine", "cosine_missing", "cosine_med", "cosine_med_missing",
    "cosine_med_proxy", "n_prescriptions", "n_safe", "n_caution", "n_unsafe", "n_rx_unknown",
    "n_rx_unreadable", "n_tests", "n_unflagged", "n_risky", "n_redundant", "n_tests_unknown",
    "n_tests_unreadable", "plan_missing",
]  # fmt: skip
OPINIONS = [
    "model",
    "dataset",
    "level",
    "case_id",
    "doctor",
    "speaker",
    "diagnosis",
    "vote",
    "thinking",
    "cosine",
    "missing",
]
MARKS = [
    "model", "dataset", "configuration", "level", "case_id", "kind", "item", "text", "known",
    "said", "verdict", "quote", "quote_occurs", "reason", "missing", "rule_verdict", "rule_quote",
    "rule",
]  # fmt: skip
RX = {
    "SAFE": "n_safe",
    "SAFE WITH CAUTION": "n_caution",
    "UNSAFE": "n_unsafe",
    "UNKNOWN": "n_rx_unknown",
    None: "n_rx_unreadable",
}
TESTS = {
    "FINE": "n_unflagged",
    "RISKY": "n_risky",
    "REDUNDANT": "n_redundant",
    "UNKNOWN": "n_tests_unknown",
    None: "n_tests_unreadable",
}


@dataclass(frozen=True)
class Checked:
    """A configuration's panel for one view, the plan of the doctor in charge, the reviewers' marks
    and the rule check's."""

    model: str
    configuration: str
    n_doctors: int
    view: View
    panel: Panel
    medical_cosines: tuple[float, ...] | None
    no_medical: str
    proposed: Proposed
    review: Review | None
    rules: Review | None
    correct: float = math.nan
    correct_share: float = math.nan
    proxy: str = ""

    @property
    def keys(self) -> dict[str, Any]:
        """What every row of it begins with."""
        case = self.view.case
        return {
            "model": self.model,
            "dataset": case.dataset,
            "level": self.view.level,
            "case_id": case.case_id,
        }


def verdict(mark: Mark, known: bool) -> str | None:
    """The verdict that counts: of what the safety table does not know it is UNKNOWN, whatever the
    reviewer says."""
    return mark.verdict if known else "UNKNOWN"


def no_answer(opinion: Opinion) -> bool:
    """Whether a doctor's reply is no answer: it was cut off, is all thought, or never came."""
    return opinion.raw is None or opinion.missing.startswith(CUT)


def review_rows(c: Checked) -> Iterator[dict[str, Any]]:
    """Two rows: safety off (no plan is reviewed, all counts of marks are 0) and on."""
    plan = c.proposed.plan
    named = {
        **c.keys,
        "configuration": c.configuration,
        "n_doctors": c.n_doctors,
        "diagnoses": c.panel.votes,
        "diagnosis": c.panel.diagnosis,
        "tied": c.panel.tied,
        "n_no_answer": sum(no_answer(o) for o in c.panel.opinions),
        "truth": c.view.case.diagnosis,
        "correct": c.correct,
        "correct_share": c.correct_share,
        **_cosine("cosine", c.panel.cosines, ""),
        **_cosine("cosine_med", c.medical_cosines, c.no_medical),
        "cosine_med_proxy": c.proxy,
        "n_prescriptions": len(plan.prescriptions) if plan else 0,
        "n_tests": len(plan.tests) if plan else 0,
        "plan_missing": c.proposed.missing,
    }
    empty = dict.fromkeys([*RX.values(), *TESTS.values()], 0)
    yield {**named, "safety": False, **empty}
    drugs, tests = known_items(c.proposed.plan)
    counts = Counter(empty)
    if c.review:
        counts.update(RX[verdict(m, k)] for m, k in zip(c.review.prescriptions, drugs, strict=True))
        counts.update(TESTS[verdict(m, k)] for m, k in zip(c.review.tests, tests, strict=True))
    yield {**named, "safety": True, **counts}


def opinion_rows(c: Checked) -> Iterator[dict[str, Any]]:
    """A row for each doctor of a panel, from 1."""
    for i, (opinion, name) in enumerate(zip(c.panel.opinions, c.panel.votes, strict=True)):
        yield {
            **c.keys,
            "doctor": i + 1,
            "speaker": opinion.model,
            "diagnosis": opinion.diagnosis,
            "vote": name,
            "thinking": opinion.thinking,
            "cosine": c.panel.cosines[i] if c.panel.cosines else math.nan,
            "missing": opinion.missing,
        }


def mark_rows(c: Checked) -> Iterator[dict[str, Any]]:
    """A row for each prescription and test: ``said`` is the reviewer's own word, ``verdict`` what
    counts."""
    plan = c.proposed.plan
    if plan is None or c.review is None or c.rules is None:
        return
    drugs, tests = known_items(c.proposed.plan)
    kinds = (
        (
            "prescription",
            [str(p) for p in plan.prescriptions],
            drugs,
            c.review.prescriptions,
            c.rules.prescriptions,
        ),
        ("test", list(plan.tests), tests, c.review.tests, c.rules.tests),
    )
    for kind, texts, known, marks, rules in kinds:
        for i, (text, k, mark, rule) in enumerate(zip(texts, known, marks, rules, strict=True), 1):
            yield {
                **c.keys,
                "configuration": c.configuration,
                "kind": kind,
                "item": i,
                "text": text,
                "known": k,
                "said": mark.verdict,
                "verdict": verdict(mark, k),
                "quote": mark.quote,
                "quote_occurs": mark.quote_occurs,
                "reason": mark.reason,
                "missing": mark.missing,
                "rule_verdict": rule.verdict,
                "rule_quote": rule.quote,
                "rule": rule.rule,
            }


def _cosine(name: str, values: Sequence[float] | None, why: str) -> dict[str, Any]:
    """The mean over the doctors that have one, and why there is none."""
    there = [v for v in values or () if not math.isnan(v)]
    missing = "" if there else why or "no doctor gave both reasoning and diagnosis"
    return {name: sum(there) / len(there) if there else math.nan, f"{name}_missing": missing}


ONE = "one doctor"
PROXY = "proxy: {}, no biomedical encoder"
"""What tables, figures and captions say where the general encoder stands in."""


@choices
class Asked(Setup):
    """The choices of notebook 05, whose doctors have one temperature in both its parts."""

    @property
    def chosen(self) -> Parameters:
        """The methods' open choices, the doctors' temperature among them."""
        return replace(super().chosen, doctor_temperature=self.temperature)


@dataclass(frozen=True)
class TrustRun:
    """Tables of one run, each tidy, and what made them.

    ``reviews``: a row for each model, data set, configuration, safety, level and case, as
    :func:`trustlab.trust_indices` takes it. ``opinions``: a row a doctor. ``marks``: a row for each
    prescription and test with the reviewer's verdict and the rule check's. ``calls``: a row a
    request. ``checked`` holds panel, plan and review of each as records.
    """

    reviews: pd.DataFrame
    opinions: pd.DataFrame
    marks: pd.DataFrame
    calls: pd.DataFrame
    parameters: dict[str, Any]
    checked: tuple[Checked, ...] = field(default=(), repr=False)

    def save(self, folder: Path) -> None:
        """Write the tables (CSV) and ``run.json``."""
        save_tables(self, ("reviews", "opinions", "marks", "calls"), folder)
        made, cached = (int(self.calls[c].to_numpy().sum()) for c in ("n_made", "n_cached"))
        facts = {
            "notice": NOTICE,
            "trust": self.parameters,
            "calls_made": made,
            "calls_from_cache": cached,
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

    - ``levels``: those of ``setup``, else 100. Its ``n_doctors`` are on each panel, at its
      ``temperature``. They are of the model itself or its sibling for that, or of those of
      ``panel`` in turn.
    - ``setup.reviewer`` marks the plans (the model of the doctor in charge where ``None``).
    - ``setup.medical_encoder`` is the one that ``medguard-x`` calls for; without it the general one
      stands in, named in the column ``cosine_med_proxy``, or with ``medical_proxy`` off its RDC is
      missing.
    - The doctor in charge is the first who voted for the panel's diagnosis, and draws its plan at
      the same temperature. METHODS: trust indices.
    - ``ValueError`` for a model or case given twice.
    """
    setup = opened(setup)
    levels = given(levels, setup.levels, (100,))
    given_once(cases, models, levels)
    for case in cases:  # a chart that cannot be read is refused before anything is spent
        chart_of(case)
    n_doctors, judge = setup.chosen.n_doctors, setup.judge
    panel, reviewer = setup.role("panel", models) or [], setup.role("reviewer")
    encoder, medical = setup.readers.encoder, setup.readers.medical
    stands_in = medical is None and setup.medical_proxy
    proxy = PROXY.format(encoder.name) if stands_in else ""
    readers = encoder, encoder if stands_in else medical, proxy
    if isinstance(verdicts := getattr(judge, "model", None), CachedModel):
        verdicts.reset_calls()
    cached = _cached([*(panel or models), *([reviewer] if reviewer else [])], setup.store)
    teams = {
        m.name: doctors_of([cached[id(d)] for d in panel or [m]], max(n_doctors, len(panel)))
        for m in models
    }
    shown, checked = views_of(cases, levels), []
    with recording(setup.run_dir) as attach:
        attach(*cached.values(), getattr(judge, "model", None))
        for name, team in teams.items():
            checked += _checked(name, team, shown, cached.get(id(reviewer)), *readers, setup)
        checked = _graded(checked, judge)
    refuse_waiting([*cached.values(), judge])
    asked = {id(one): one for one in cached.values()}.values()
    calls = pd.concat(
        [one.calls_table().assign(model=one.name) for one in asked], ignore_index=True
    )
    for one in asked:
        if id(one) not in cached:  # what came in as a cache stays open
            one.close()
    parameters = {
        "models": {m.name: m.revision for m in models},
        "reviewer": reviewer and {reviewer.name: reviewer.revision},
        "dataset": sorted({c.dataset for c in cases}),
        "cases": len(cases),
        **sharded(),
        "cases_sha256": cases_hash(cases),
        "levels": list(levels),
        "n_doctors": n_doctors,
        "doctor_temperature": setup.temperature,
        "seed": setup.seed,
        "panel": {m.name: m.revision for m in panel} or None,
        "budgets": dict(setup.budgets),
        "reading": setup.reading,
        "reasoning_from": setup.reasoning_from,
        "replies_read": _counted([*cached.values(), verdicts]),
        "grader": judge.name,
        "encoder": encoder.revision,
        "medical_encoder": medical and medical.revision,
        "medical_proxy": proxy,
        "served_by": served_by(asked),
        **how_asked(asked),
    }
    run = _without_unread(_tables(checked, calls, parameters))
    if setup.run_dir:
        run.save(setup.run_dir)
    warn(parameters)
    return run


def _cached(models: Sequence[Model], store: str | Path | None) -> dict[int, CachedModel]:
    """``id`` of each model -> the model over the cache ``store``, its count of calls at 0.

    A doctor's model that reviews, too, has one entry, so that its calls are counted once.
    """
    found: dict[int, CachedModel] = {}
    for model in models:
        if id(model) not in found:
            found[id(model)] = (
                model if isinstance(model, CachedModel) else CachedModel(model, store)
            )
            found[id(model)].reset_calls()
    return found


def _panels(checked: Sequence[Checked], n_doctors: int) -> list[Checked]:
    """Without those of one doctor, who is on the panel already, unless there is no panel."""
    return [c for c in checked if c.n_doctors > 1 or n_doctors == 1]


def _counted(models: Sequence[Any]) -> Counts:
    """What became of the replies of these models, each once."""
    found: Counts = {}
    for one in {id(model): model for model in models if isinstance(model, CachedModel)}.values():
        add(found, {one.name: one.counts})
    return found


def _without_unread(run: TrustRun) -> TrustRun:
    """The run without what rests on replies of which less than half could be read."""
    counts = run.parameters["replies_read"]
    reviews, marks = run.reviews, run.marks
    for model in run.parameters["models"]:
        judged = why_few(counts, model, ["judge"])
        thought = why_few(counts, model, ["doctor"])
        done = thought or why_few(counts, model, ["plan", "review_prescriptions", "review_tests"])
        mine = reviews["model"].eq(model)
        if judged or thought:
            reviews = reviews.assign(
                correct=reviews["correct"].mask(mine),
                correct_share=reviews["correct_share"].mask(mine),
            )
        if thought:
            none = reviews["n_doctors"].map(lambda n: (None,) * n)
            reviews = reviews.assign(
                diagnoses=reviews["diagnoses"].mask(mine, none),
                diagnosis=reviews["diagnosis"].mask(mine, None),
                n_no_answer=reviews["n_no_answer"].mask(mine, reviews["n_doctors"]),
                **{name: reviews[name].mask(mine) for name in ("cosine", "cosine_med")},
                **{f"{n}_missing": reviews[f"{n}_missing"].mask(mine, thought) for n in COSINES},
            )
        if done:
            counted = ["n_prescriptions", "n_tests", *RX.values(), *TESTS.values()]
            empty = {name: reviews[name].mask(mine, 0) for name in counted}
            plan = reviews["plan_missing"].mask(mine, done)
            reviews = reviews.assign(**empty, plan_missing=plan)
            marks = marks[marks["model"].ne(model)]
        if why := thought or done or judged:
            told = reviews.get("unread", pd.Series("", reviews.index))
            reviews = reviews.assign(unread=told.mask(mine, why))
    return replace(run, reviews=reviews, marks=marks)


COSINES = ("cosine", "cosine_med")


def _tables(
    checked: Sequence[Checked], calls: pd.DataFrame, parameters: dict[str, Any]
) -> TrustRun:
    """Everything as tables."""
    panels = _panels(checked, parameters["n_doctors"])
    return TrustRun(
        reviews=pd.DataFrame([row for c in checked for row in review_rows(c)], columns=REVIEWS),
        opinions=pd.DataFrame([row for c in panels for row in opinion_rows(c)], columns=OPINIONS),
        marks=pd.DataFrame([row for c in checked for row in mark_rows(c)], columns=MARKS),
        calls=calls,
        parameters=parameters,
        checked=tuple(checked),
    )


def _checked(
    name: str,
    doctors: Sequence[Doctor],
    views: Sequence[View],
    reviewer: Model | None,
    encoder: Encoder,
    medical: Encoder | None,
    proxy: str,
    setup: Workbench,
) -> list[Checked]:
    """Every configuration of one team: the panel, and its first doctor alone."""
    common = {"seed": setup.seed, "reading": setup.reading}
    common["ask"] = None if setup.quiet else with_progress(name)
    how: dict[Budget, dict[str, Any]] = {
        "doctor": {"temperature": setup.temperature, "reasoning_from": setup.reasoning_from},
        "plan": {"temperature": setup.temperature},
        "review": {},
    }
    for step, own in how.items():
        own |= common | ({"max_tokens": most} if (most := setup.budgets.get(step)) else {})
    whole = with_cosines(encoder, convene(views, doctors, **how["doctor"]))
    medical_cosines = [cosines(medical, p.opinions) for p in whole] if medical else None
    alone = [_first(p, v.case.case_id) for p, v in zip(whole, views, strict=True)]
    configurations = {ONE: alone}
    if len(doctors) > 1:
        configurations[f"panel of {len(doctors)}"] = whole
    made = []
    for configuration, panels in configurations.items():
        n = 1 if configuration == ONE else len(doctors)
        plans = _plans(doctors, views, panels, how["plan"])
        reviews = _reviews(doctors, views, panels, plans, reviewer, how["review"])
        for i, (view, panel) in enumerate(zip(views, panels, strict=True)):
            med = tuple(medical_cosines[i][:n]) if medical_cosines else None
            made.append(
                Checked(
                    model=name,
                    configuration=configuration,
                    n_doctors=n,
                    view=view,
                    panel=panel,
                    medical_cosines=med,
                    no_medical=NO_MEDICAL_ENCODER if med is None else "",
                    proxy=proxy,
                    proposed=plans[i],
                    review=reviews[i],
                    rules=_rules(view, panel, plans[i]),
                )
            )
    return made


def _first(panel: Panel, case_id: str) -> Panel:
    """The panel's first doctor alone."""
    alone = decide(panel.opinions[:1], case_id)
    return replace(alone, cosines=panel.cosines and panel.cosines[:1])


def _plans(doctors, views, panels: Sequence[Panel], how: Mapping[str, Any]) -> list[Proposed]:
    """The plan of the doctor in charge for each panel's diagnosis; a panel without a diagnosis has
    none."""
    made = [Proposed(None, "no diagnosis to plan for")] * len(views)
    for model in {id(d.model): d.model for d in doctors}.values():
        at = [
            i
            for i, p in enumerate(panels)
            if (k := in_charge(p)) is not None and doctors[k].model is model
        ]
        asked = [(views[i], str(panels[i].diagnosis)) for i in at]
        for i, proposed in zip(at, propose(model, asked, **how), strict=True):
            made[i] = proposed
    return made


def _reviews(
    doctors,
    views,
    panels,
    plans: Sequence[Proposed],
    reviewer: Model | None,
    how: Mapping[str, Any],
) -> list[Review | None]:
    made: list[Review | None] = [None] * len(views)
    for model in [reviewer] if reviewer else list({id(d.model): d.model for d in doctors}.values()):
        at = [
            i
            for i, (panel, proposed) in enumerate(zip(panels, plans, strict=True))
            if proposed.plan is not None
            and (reviewer is not None or doctors[in_charge(panel)].model is model)
        ]
        asked = [
            (views[i], str(panels[i].diagnosis), plan)
            for i in at
            if (plan := plans[i].plan) is not None
        ]
        for i, found in zip(at, review(model, asked, **how), strict=True):
            made[i] = found
    return made


def _rules(view: View, panel: Panel, proposed: Proposed) -> Review | None:
    if proposed.plan is None:
        return None
    chart = chart_of(view.case, view.statements)
    return Review(
        check_prescriptions(proposed.plan, chart, panel.diagnosis),
        check_tests(proposed.plan, chart, panel.diagnosis),
    )


def _graded(checked: list[Checked], grader: Grader) -> list[Checked]:
    """Each with the grades of its diagnosis and of all that tied for it; NaN where there is none or
    it cannot be judged."""
    named = [
        (c, {*([c.panel.diagnosis] if c.panel.diagnosis else []), *c.panel.tied}) for c in checked
    ]
    asked = [(c, name) for c, names in named for name in sorted(names)]
    grades = grader.grade([name for _, name in asked], [c.view.case for c, _ in asked])
    found: dict[tuple[int, str], float] = {
        (id(c), name): math.nan if g.correct is None else float(g.correct)
        for (c, name), g in zip(asked, grades, strict=True)
    }
    done = []
    for c in checked:
        own = found.get((id(c), str(c.panel.diagnosis)), math.nan)
        tied = [found[id(c), name] for name in c.panel.tied]
        done.append(replace(c, correct=own, correct_share=sum(tied) / len(tied) if tied else own))
    return done


WEIGHTS = ["w_accuracy", "w_agreement", "w_rdc"]
PARTS = ["accuracy", "cdr", "rdc"]
RAW = {of.__name__: of for of in (formulas.cdr, formulas.any_disagreement, formulas.pair_agreement)}
"""Agreement that counts no chance, case by case."""
ALONE = "one doctor: nobody to agree with"
UNREADABLE = "no case has enough readable diagnoses"
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "UNSAFE alone": {"rx_variant": "unsafe"},
    "unreadable votes agree with nobody": {"cdr_variant": "unreadable disagrees"},
}
"""Other readings of what the sources leave open, as choices of ``trust_indices``."""


def weight_grid(steps: int = 20) -> np.ndarray:
    """All weights of (accuracy, 1 - CDR, RDC) that sum to 1 in steps of 1/``steps``, (points,
    3)."""
    if steps < 1:
        raise ValueError(f"steps must be at least 1; received {steps}")
    grid = [(i, j, steps - i - j) for i in range(steps + 1) for j in range(steps + 1 - i)]
    return np.array(grid) / steps


def weight_sweep(
    indices: pd.DataFrame, steps: int = 20, formulation: str = "trust-x"
) -> pd.DataFrame:
    """The highest ETI, in percent, at each point of the grid of weights, and whose it is.

    - ``winner``: a configuration, "tie" (``tied`` names them), or "" with the reason in
      ``missing``; ``margin`` to the next: NaN for one alone, 0 in a tie.
    - ``n`` configurations are compared; ``n_missing`` lack a part, so that no weighting is fair to
      them; ``n_cases`` is the fewest behind the ETI of any.
    - Configurations whose parts are the same with safety on and off count once.
    - ``ValueError`` where ``indices`` hold nothing of the ``formulation``.
    """
    swept = _swept(indices, steps, formulation, RUN)
    lines = [{**line, "metric": "eti_percent", **_winner(eti)} for line, eti, _ in swept]
    return schema.table(lines, [*RUN, *WEIGHTS], ["winner", "tied", "margin"])


def weight_shares(sweep: pd.DataFrame) -> pd.DataFrame:
    """The share of the ``n`` points of a :func:`weight_sweep` that each configuration wins.

    Ties are split evenly; a configuration that never wins has no row.
    """
    won: Any = sweep[sweep["winner"] != ""]
    winners = won["tied"].where(won["tied"].astype(bool), won["winner"])
    named = won.assign(value=1 / won["tied"].map(len).clip(lower=1), configuration=winners)
    lines = []
    for label, part in groups(named.explode("configuration"), [*RUN, "configuration"]):
        run = won[(won[RUN] == pd.Series(label)[RUN]).all(axis=1)]
        counts = {"n": len(run), "n_cases": run["n_cases"].min(), "n_missing": 0, "missing": ""}
        value = part["value"].sum() / len(run)
        lines.append({**label, "metric": "share", "value": value, **counts})
    return schema.table(lines, [*RUN, "configuration"])


def rank_stability(
    indices: pd.DataFrame, steps: int = 20, formulation: str = "trust-x"
) -> pd.DataFrame:
    """Kendall's tau-b between the ranking by ETI under the printed weights and under others.

    A row a data set, level and point of the grid. Ranked are all ``n`` rows of a data set and
    level, model by configuration, counted as in :func:`weight_sweep`.
    """
    swept = _swept(indices, steps, formulation, ["dataset", "level"])
    lines = [{**line, "metric": "kendall_tau", **_tau(*etis)} for line, *etis in swept]
    return schema.table(lines, ["dataset", "level", *WEIGHTS])


def component_correlations(reviews: pd.DataFrame, draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """How the parts of the indices go together over cases: Pearson and Spearman of each pair.

    - The parts of a case: correct, agreement (1 - CDR), cosine, unsafe_rx and test_alerts (shares
      of what was rated; missing where nothing was).
    - ``n`` cases have both. No value below 3 of them or where a part is constant.
    - ``difference`` is from 0. Where there is an interval: ``p`` of random pairings of the cases (a
      bootstrap's is too small where a part hardly varies), ``p_holm`` over the pairs of a
      configuration, and the ``standard_error`` that parts without a relation have, by formula.
    """
    lines = []
    for label, rows in _pairs(check_reviews(reviews), draws, seed):
        for name, metric in CORRELATIONS.items():
            line = {**label, "metric": name, **estimate(rows, metric)}
            if pd.notna(line["low"]):
                sides = [rows[side].astype(float) for side in "xy"]
                each = sides if name == "pearson" else [rankdata(ties.tied(x)) for x in sides]
                line["p"] = pearson_permutation_p(*each, n_draws=max(draws, 1), seed=seed)
                line["standard_error"] = 1 / math.sqrt(len(rows) - 1)
            lines.append({**line, "difference": line["value"]})
    return corrected(lines, [*KEYS, "first", "second"], family=[*KEYS, "metric"])


def agreement_table(
    reviews: pd.DataFrame, n_diagnoses: int | None = None, draws: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """How far the doctors of each configuration agree: raw (:data:`RAW`) and beyond chance.

    - ``fleiss_kappa`` and ``gwet_ac1`` (``n_diagnoses`` as in
      :func:`trustlab.metrics.agreement.gwet_ac1`) have jackknife intervals: a case drawn twice
      would pass for chance agreement.
    - ``n_missing`` cases have too few readable diagnoses. One doctor has CDR 0 by definition.
    - Safety on and off have the same doctors and count once; where they do not, ``safety`` tells
      them apart.
    """
    table, keys = check_reviews(reviews), [*RUN, "configuration"]
    once = table.drop_duplicates([*keys, "case_id", "diagnoses"])
    if once.duplicated([*keys, "case_id"]).any():
        once, keys = table, KEYS
    keys, how = [*keys, "n_doctors"], (n_diagnoses, draws, seed)
    lines = [{**of, **line} for of, part in groups(once, keys) for line in _agreement(part, *how)]
    return schema.table(lines, keys)


def variants(
    reviews: pd.DataFrame, formulation: str = "trust-x", draws: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """``trust_indices`` under each of :data:`VARIANTS`, named in the column ``variant``."""
    how: dict[str, Any] = {"formulation": formulation, "draws": draws, "seed": seed}
    made = {name: trust_indices(reviews, **how, **c) for name, c in VARIANTS.items()}
    return pd.concat(made, names=["variant"]).reset_index("variant").reset_index(drop=True)


def weak_points(
    reviews: pd.DataFrame,
    formulation: str = "trust-x",
    constant_cosine: float = 1.0,
    **choices: Any,
) -> pd.DataFrame:
    """What ETI, OSI and FTI (percent) would be if nothing had become better, by construction.

    - ``what_if``: reviewers who never object (also where safety is off: then they are switched on);
      an empty plan; a panel scored as one doctor (the same diagnosis, nobody to disagree: CDR 0);
      every reasoning with ``constant_cosine`` to its diagnosis, where 1 is reasoning that only
      repeats the diagnosis, and another value what some fixed text was measured to have.
    - ``reference`` is the index as measured, ``difference`` the gain; ``safety`` is as it was.
    - ``choices`` as in :func:`trustlab.metrics.trust_table.trust_indices`.
    """
    table = check_reviews(reviews)
    safety, panel = table["safety"].astype(bool), table["n_doctors"] > 1
    text = "reasoning that only repeats the diagnosis"
    text = text if constant_cosine == 1 else f"every cosine {constant_cosine:g}"
    cosines = dict.fromkeys(["cosine", "cosine_med"], constant_cosine)
    nothing: dict[str, Any] = dict.fromkeys(COUNTS, 0)
    changes: list[tuple[str, Any, Callable[[Any], pd.DataFrame]]] = [
        ("reviewers who never object", safety, _never_objecting),
        ("reviewers who never object", ~safety, _never_objecting),
        ("an empty plan", safety, lambda t: t.assign(**nothing, plan_missing="")),
        ("a panel scored as one doctor", panel, _as_one_doctor),
        (text, safety.notna(), lambda t: t.assign(**cosines)),
    ]
    found = []
    for what_if, where, change in (each for each in changes if each[1].any()):
        both: Any = (table[where], change(table[where]))
        indices: Any = [trust_indices(t, formulation, draws=0, **choices) for t in both]
        then, now = (t[t["metric"].isin(["eti_percent", "osi", "fti"])] for t in indices)
        why = now["missing"].where(now["value"].isna(), "")
        why = why.mask(then["value"].isna() & why.eq(""), "before: " + then["missing"])
        before = then[["safety"]].assign(reference=then["value"], n_reference=then["n"])
        gain = now["value"] - then["value"]
        found.append(now.assign(**before, what_if=what_if, difference=gain, missing=why))
    lines: Any = pd.concat(found).to_dict("records")
    more = ["reference", "difference", "n_reference"]
    return schema.table(lines, [*KEYS, "formulation", "what_if"], more)


def _contenders(indices: pd.DataFrame, formulation: str) -> pd.DataFrame:
    """The configurations that differ in a part of ETI, a row each: parts, n of ETI, name.

    Safety is in the name only where it matters.
    """
    formulas.check_formulation(formulation)
    schema.need(indices, ["formulation", *KEYS, "metric", "value", "n"], "indices")
    held: Any = indices[indices["formulation"] == formulation]
    if held.empty:
        holds = list(indices["formulation"].unique())
        raise ValueError(f"indices hold nothing of {formulation!r}; they hold {holds}")
    if lacking := {*PARTS, "eti"} - {*held["metric"]}:
        raise ValueError(f"indices lack {sorted(lacking)}; they have {sorted({*held['metric']})}")
    rows = [
        {**label, **of["value"][PARTS].to_dict(), "n": of["n"]["eti"]}
        for label, part in groups(held, KEYS)
        for of in [part.set_index("metric")]
    ]
    single = pd.DataFrame(rows).drop_duplicates([*RUN, "configuration", *PARTS])
    twice = single.duplicated([*RUN, "configuration"], keep=False)
    on: Any = single["safety"].map({True: ", safety on", False: ", safety off"}.get)
    return single.assign(contender=single["configuration"] + on.where(twice, ""))


def _swept(
    indices: pd.DataFrame, steps: int, formulation: str, by: list[str]
) -> Iterator[tuple[dict[str, Any], pd.Series, pd.Series]]:
    """Keys and counts at each weighting, and the ETI of each contender there and as printed."""
    unit = 100 if formulation == "trust-x" else 1
    for label, part in groups(_contenders(indices, formulation), by):
        known = part.dropna(subset=PARTS).set_index("contender")
        counts = {"n": len(known), "n_missing": len(part) - len(known)}
        counts["n_cases"] = int(known["n"].min()) if len(known) else 0
        accuracy, cdr, rdc = known[PARTS].to_numpy(float).T
        *swept, printed = (
            unit * pd.Series(formulas.eti(accuracy, cdr, rdc, weights, formulation), known.index)
            for weights in (*weight_grid(steps), formulas.ETI_WEIGHTS)
        )
        for weights, eti in zip(weight_grid(steps), swept, strict=True):
            yield label | dict(zip(WEIGHTS, weights, strict=True)) | counts, eti, printed


def _winner(eti: pd.Series) -> dict[str, Any]:
    if not len(eti):
        return {"winner": "", "tied": (), "missing": "no configuration has accuracy, CDR and RDC"}
    level = ties.tied(eti.to_numpy())
    best = sorted(str(name) for name in eti.index[level == level.max()])
    high = [*eti.nlargest(2), np.nan]
    found = {"value": high[0], "missing": ""}
    if len(best) > 1:
        return found | {"winner": "tie", "tied": tuple(best), "margin": 0.0}
    return found | {"winner": best[0], "tied": (), "margin": high[0] - high[1]}


def _tau(eti: pd.Series, printed: pd.Series) -> dict[str, Any]:
    if len(eti) < 2:
        return {"missing": "fewer than 2 rows to rank"}
    sides = [ties.tied(side.to_numpy()) for side in (printed, eti)]
    if min(np.ptp(side) for side in sides) == 0:
        return {"missing": "all rows have the same ETI"}
    tau: Any = kendalltau(*sides)
    return {"value": float(tau.statistic), "missing": ""}


def _pairs(reviews: pd.DataFrame, draws: int, seed: int) -> Iterator[tuple[dict[str, Any], Rows]]:
    """Two parts, ``x`` and ``y``, of the cases of each configuration; NaN where there is none."""
    for label, _, rows in made.configurations(reviews, made.Choices(), draws=0):
        each: Any = rows.asked
        rated = each[["n_rx_rated", "n_tests_rated"]].replace(0, np.nan)
        parts = {
            "correct": each["right"],
            "agreement": 1 - each["apart"],
            "cosine": each["cosine"],
            "unsafe_rx": (each["n_unsafe"] + each["n_caution"]) / rated["n_rx_rated"],
            "test_alerts": (each["n_risky"] + each["n_redundant"]) / rated["n_tests_rated"],
        }
        for first, second in combinations(parts, 2):
            asked = each[["case_id"]].assign(x=parts[first], y=parts[second])
            asked["both"] = asked["x"] + asked["y"]
            both, names = asked.dropna(), {"x": first, "y": second}
            empty = [of for side, of in names.items() if asked[side].isna().all()]
            same = [of for side, of in names.items() if all_alike(both[side].to_numpy())]
            why = f"{' and '.join(same)} the same in every case" if same else ""
            why = "fewer than 3 cases have both" if len(both) < 3 else why
            why = f"no case has {' or '.join(empty)}" if empty else why
            found = Rows.of(asked, "both", draws, seed, why)
            yield {**label, "first": first, "second": second}, found


def _over_cases(correlation: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Metric:
    """A correlation (B, n), (B, n) -> (B,) of ``x`` and ``y``, each case as often as drawn."""

    def drawn(rows: Rows, times: np.ndarray) -> np.ndarray:
        places = np.tile(np.arange(len(rows)), len(times))
        again = np.repeat(places, times.astype(int).ravel()).reshape(len(times), -1)
        return correlation(rows["x"][again], rows["y"][again])

    return Metric(lambda rows: rows.over(partial(drawn, rows)), withheld=lambda rows: rows.none)


CORRELATIONS = {"pearson": _over_cases(pearson_rows), "spearman": _over_cases(spearman_rows)}


def _agreement(
    part: pd.DataFrame, n_diagnoses: int | None, draws: int, seed: int
) -> Iterator[dict[str, Any]]:
    """A line for each measure of one configuration."""
    alone = part["n_doctors"].iloc[0] == 1
    lonely = ALONE if alone else UNREADABLE
    each = {name: part["diagnoses"].map(of).astype(float) for name, of in RAW.items()}
    asked = part[["diagnoses"]].assign(case_id=part["case_id"].astype(str), **each)
    drawn = Draws.of(asked["case_id"], draws, seed)
    for name in RAW:
        none = lonely if name == "pair_agreement" else UNREADABLE
        rows = Rows.of(asked, name, drawn, none=none)
        note = made.BY_DEFINITION if alone and len(rows) else ""
        yield {"metric": name, **estimate(rows, mean(name), note=note)}
    without = Draws.without_each(asked["case_id"][asked["pair_agreement"].notna()])
    rows = Rows.of(asked, "pair_agreement", without, none=lonely)
    counted = agreement.count_votes(list(rows["diagnoses"]))
    ac1 = partial(agreement.gwet_ac1_weighted, n_diagnoses=n_diagnoses)
    for name, kappa in (("fleiss_kappa", agreement.fleiss_kappa_weighted), ("gwet_ac1", ac1)):
        over: Any = partial(Rows.over, weighted=partial(kappa, counted))
        metric = Metric(over, undefined="one diagnosis in all cases", jackknife=1.0)
        yield {"metric": name, **estimate(rows, metric)}


def _never_objecting(table: pd.DataFrame) -> pd.DataFrame:
    """Every prescription and test that is known and readable is rated, and nothing is found."""
    found = dict.fromkeys(["n_caution", "n_unsafe", "n_risky", "n_redundant"], 0)
    table = table.assign(safety=True, **found)
    kinds = ("n_safe", "n_prescriptions", "rx"), ("n_unflagged", "n_tests", "tests")
    for fine, n, short in kinds:
        left = table[n] - table[f"n_{short}_unknown"] - table[f"n_{short}_unreadable"]
        table[fine] = left.clip(lower=0)
    return table


def _as_one_doctor(table: pd.DataFrame) -> pd.DataFrame:
    alone = [(d if isinstance(d, str) else None,) for d in table["diagnosis"]]
    no_answer = (table["n_no_answer"] >= table["n_doctors"]).astype(int)
    return table.assign(diagnoses=alone, n_doctors=1, n_no_answer=no_answer)


SHOWN = ("accuracy", "eti_percent", "osi", "fti")
FAMILY = [*RUN, "safety"]


def configuration_differences(
    reviews: pd.DataFrame,
    formulation: str = "trust-x",
    against: str = ONE,
    indices: Sequence[str] = SHOWN,
    draws: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Each configuration's indices minus those of ``against``, all in percent.

    - ``indices``, some of :data:`SHOWN` of ``reviews``, each over the ``n`` cases that both could
      answer (:func:`trustlab.metrics.trust_table.answered`): a panel without a readable diagnosis
      is in no comparison, however its accuracy counts it.
    - Both are drawn with the same cases; ``p_holm`` is over the rows of a model, data set, level
      and safety. A team without ``against`` has no row.
    - ``ValueError`` for an unknown index, or where ``against`` is nowhere.
    """
    if not indices or not set(indices) <= set(SHOWN):
        raise ValueError(f"indices must be some of {list(SHOWN)}; received {list(indices)}")
    table, choices = check_reviews(reviews), Choices(formulation)
    if against not in (teams := list(table["configuration"].unique())):
        raise ValueError(f"against is {against!r}; the reviews hold {teams}")
    lines: list[dict[str, Any]] = []
    every = made.configurations(table, choices, draws, seed)
    of = {(label["configuration"], *map(label.get, FAMILY)): rows for label, _, rows in every}
    for (configuration, *run), mine in of.items():
        theirs = of.get((against, *run))
        if configuration == against or theirs is None:
            continue
        label = dict(zip(FAMILY, run, strict=True)) | {"configuration": configuration}
        for name in indices:
            unit = 100 if name == "accuracy" and formulation == "trust-x" else 1
            place, pair = INDICES.index(name), _pair(mine, theirs, name, choices)
            found = compared(pair, lambda r, u=unit, i=place: u * r.drawn(made.indices(choices))[i])
            lines.append({**label, "against": against, "metric": name, **found})
    return corrected(lines, [*FAMILY, "configuration", "against"], family=FAMILY)


def indices_on_shared_cases(
    reviews: pd.DataFrame, of: Sequence[str] = RUN, formulation: str = "trust-x"
) -> pd.DataFrame:
    """The indices, without intervals, of the cases that all configurations could answer.

    - "All" are those of a group ``of`` keys whose ETI has a case at all; where they share no case,
      every index is missing. What ranks configurations stands on this table.
    """
    choices, found = Choices(formulation), []
    for _, group in groups(check_reviews(reviews), of):
        cases = (rows.asked for _, _, rows in made.configurations(group, choices, draws=0))
        could = [{*each["case_id"][made.answered(each, choices)["eti"]]} for each in cases]
        shared = set[str].intersection(*filter(None, could)) if any(could) else set()
        kept = group[group["case_id"].astype(str).isin(shared)]
        indices = made.trust_indices(kept if len(kept) else group, formulation, draws=0)
        none = {"value": NAN, "n": 0, "n_cases": 0, "missing": "no case that all could answer"}
        found.append(indices if len(kept) else indices.assign(**none))
    return pd.concat(found, ignore_index=True)


def _pair(mine: Rows, theirs: Rows, name: str, choices: Choices) -> Rows:
    """The cases of two configurations; known are those that both could answer in an index."""
    sides = [rows.asked.set_index("case_id") for rows in (mine, theirs)]
    cases = sides[0].index.union(sides[1].index)
    shared = cases.isin(sides[0].index) & cases.isin(sides[1].index)
    could = [made.answered(side, choices)[name].reindex(cases, fill_value=False) for side in sides]
    each = [one.to_numpy(bool) & shared for one in could]
    none = "one of the two has no value" if shared.any() else "no case that both have"
    none = "no case that both could answer" if each[0].any() and each[1].any() else none
    both, asked = each[0] & each[1], [side.reindex(cases).reset_index() for side in sides]
    return Rows(asked[0], both, mine.draws, none, Rows(asked[1], both, mine.draws, none))


NAMES = {
    "accuracy": "Accuracy", "cdr": "CDR", "rdc": "RDC", "eti_percent": "ETI",
    "unsafe_rx_percent": "UnsafeRx %", "test_alerts_percent": "TestAlerts %", "osi": "OSI",
    "fti": "FTI",
}  # fmt: skip
"""The indices shown -> their names."""
COUNTED = {
    "n_cases": "cases", "n_judged": "judged", "n_ties": "ties",
    "n_unreadable_diagnoses": "opinions unreadable", "n_no_plan": "no plan",
    "n_prescriptions": "prescriptions", "n_rx_rated": "rated", "n_unsafe": "unsafe",
    "n_caution": "with caution", "n_rx_unknown": "unknown drugs",
    "n_rx_unreadable": "marks unreadable", "rx_unrated_percent": "% unrated", "n_tests": "tests",
    "n_tests_rated": "tests rated", "n_risky": "risky", "n_redundant": "redundant",
    "n_tests_unknown": "unknown tests", "n_tests_unreadable": "test marks unreadable",
    "tests_unrated_percent": "% of tests unrated",
}  # fmt: skip
ROW = ["model", "dataset", "level", "configuration"]
GROUPS = {
    "What it thinks": ("accuracy", "cdr", "rdc", "eti_percent"),
    "What it does": ("unsafe_rx_percent", "test_alerts_percent", "osi"),
    "The whole": ("fti",),
}
"""The figure's groups of indices."""
INDEX_NAMES = NAMES | {
    "cdr": "CDR ↓",
    "unsafe_rx_percent": "UnsafeRx % ↓",
    "test_alerts_percent": "TestAlerts % ↓",
    "trust-x": "trust-x\nRDC = 100 × cosine; safety off: OSI 0",
    "medguard-x": "medguard-x\nRDC = 50 × (1 + cosine); safety off: none",
}
"""What the figure calls indices, where lower is better with an arrow, and formulations."""


def in_rows(percent: pd.DataFrame) -> pd.DataFrame:
    """Of :func:`in_percent` what is drawn, group ``about`` by group, a ``team`` a mark.

    Safety off only where it matters, after safety on.
    """
    group = {name: about for about, names in GROUPS.items() for name in names}
    shown: Any = percent[percent["metric"].isin(list(group))]
    on = shown["safety"].astype(bool)
    shown = shown[on | shown["metric"].isin(["osi", "fti"])]
    team = shown["configuration"] + shown["safety"].map(
        {True: ", safety on", False: ", safety off"}
    )
    shown = shown.assign(
        about=shown["metric"].map(group), team=team, place=shown["metric"].map(list(group).index)
    )
    order = {"by": ["place", "safety"], "ascending": [True, False], "kind": "stable"}
    return shown.sort_values(**order).drop(columns="place")


def in_percent(indices: pd.DataFrame) -> pd.DataFrame:
    """The indices with accuracy, CDR and RDC of ``trust-x`` times 100, intervals too."""
    fractions = indices["formulation"].eq("trust-x") & indices["metric"].isin(list(NAMES)[:3])
    ends = indices[["value", "low", "high"]].astype(float)
    return indices.assign(**ends.mul((1 + 99 * fractions), axis=0))


def indices_shown(indices: pd.DataFrame) -> pd.DataFrame:
    """Every index in percent with its interval as text: a row a configuration, safety, formulation.

    ETI and FTI with their n; the last columns name who stood in for the encoder that RDC asks for,
    and what to know of the intervals.
    """
    table = _named(in_percent(indices))
    keys = [name for name in (*ROW, "formulation", "safety", "variant") if name in table]
    shown = pivoted(table, keys, digits=0)
    of = {name: table[table["metric"].eq(name)] for name in ("RDC", "ETI", "FTI")}
    for name in ("ETI", "FTI"):
        place = list(shown.columns).index(name) + 1
        shown.insert(place, f"n ({name})", of[name]["n"].to_numpy())
    told = (table["metric"] + ": " + table["missing"]).where(table["missing"].ne(""), "")
    notes = table.assign(note=told.where(table["low"].notna(), "")).groupby(keys, sort=False)[
        "note"
    ]
    note = notes.agg(lambda words: "; ".join(filter(None, words)))
    return shown.assign(**{"RDC by": of["RDC"]["proxy"].to_numpy(), "note": note.to_numpy()})


def proxy_note(indices: pd.DataFrame) -> str:
    """What a caption says where a general encoder stands in for a biomedical one; "" elsewhere."""
    used = indices.loc[indices["proxy"] != "", ["formulation", "proxy"]].drop_duplicates()
    return "; ".join(f"{form} RDC by {proxy}" for form, proxy in used.itertuples(index=False))


def why_missing(indices: pd.DataFrame) -> pd.DataFrame:
    """Which indices have no value or no interval, and why: a row a reason."""
    told = _named(indices[indices["low"].isna() & indices["missing"].ne("")])
    told = told.assign(missing=told["missing"].str.split("; ")).explode("missing")
    each = told.groupby(["formulation", "safety", "missing"], sort=False)["metric"]
    return each.agg(lambda names: ", ".join(dict.fromkeys(names))).reset_index()


def counts_shown(counts: pd.DataFrame) -> pd.DataFrame:
    """The counts behind the percentages (``review_counts``): a row a configuration, safety on."""
    once: Any = counts[counts["safety"].astype(bool)]
    return once[[*ROW, *COUNTED]].rename(columns=COUNTED).reset_index(drop=True)


def _named(indices: Any) -> Any:
    """The indices shown, by their names, with safety "on" or "off"."""
    table = indices[indices["metric"].isin(list(NAMES))]
    on = table["safety"].map({True: "on", False: "off"})
    return table.assign(metric=table["metric"].map(NAMES), safety=on)


BY = ["model", "dataset", "level", "kind"]
SAID = ["item", "text", "verdict", "quote", "reason", "rule"]
NEEDED = [*BY, "case_id", "configuration", *SAID, "known", "quote_occurs", "rule_verdict"]
KINDS = ("prescription", "test")
OBJECTIONS = (*RATINGS[1:3], *FLAGS[1:3])
FINE = (RATINGS[0], FLAGS[0])
RULE_WORDS = {
    "allergy": "allergy", "medication": "another drug", "condition": "illness",
    "pregnancy": "pregnancy", "sex": "sex", "age_below": "age", "age_from": "age",
    "egfr_below": "kidney function", "done": "a test done before",
    "also": "another test of the plan", "duplicate": "taken already",
    "repeat": "done or ordered already",
}  # fmt: skip
"""What a rule hangs on, in words."""
NO_RULE = "the rule check objects to none"
ALL_OBJECT = "the rule check objects to all"
NO_OBJECTION = "the reviewer objects to none"
NOTHING = "no item that both have rated"
MEASURES = {
    "sensitivity": ("rule_objects", True, "objects", NO_RULE),
    "specificity": ("rule_objects", False, "accepts", ALL_OBJECT),
    "quotation": ("objects", True, "quotes", NO_OBJECTION),
}
"""Name -> (column, the value it must have, what is counted among those, why there is none)."""


def marks_compared(marks: pd.DataFrame, safety: Safety | None = None) -> pd.DataFrame:
    """The items that both have rated: known to the table, and read as an objection or as fine.

    - Adds ``objects`` and ``accepts`` (the reviewer), ``quotes`` (its quotation occurs in what it
      was shown), ``rule_objects`` and ``rule_kind`` (what the rule hangs on, in words; "" without).
    - A review that came out the same, item by item, for one doctor and for the panel counts once.
    - ``ValueError`` for lacking columns.
    """
    items, known = _once(marks), safety or load_safety()
    items = items[items["known"].astype(bool) & items["verdict"].isin([*OBJECTIONS, *FINE])]
    rules: Any = {name: of.kind for name, of in {**known.test_rules, **known.drug_rules}.items()}
    rule: Any = items["rule"].where(items["rule"].map(lambda r: isinstance(r, str)), "")
    return items.assign(
        objects=items["verdict"].isin(OBJECTIONS),
        accepts=items["verdict"].isin(FINE),
        quotes=items["quote_occurs"].eq(True),
        rule_objects=items["rule_verdict"].isin(OBJECTIONS),
        rule_kind=rule.map(lambda r: r and RULE_WORDS.get(rules.get(r, r), r)),
    )


def reviewer_table(
    marks: pd.DataFrame,
    reviews: pd.DataFrame | None = None,
    draws: int = 2000,
    seed: int = 0,
    safety: Safety | None = None,
) -> pd.DataFrame:
    """How the reviewers compare with the rule check, by kind: shares of ``n`` items, 0 to 1.

    - ``sensitivity``: of the items that the rules object to, those to which the reviewer objects
      too, whatever the degree; ``specificity``: of the others, those that it lets pass;
      ``quotation``: of its objections, those whose quotation occurs in what it was shown.
    - What the table does not know, and what could not be read, is left out:
      :func:`left_out_table` counts it.
    - With ``reviews`` (a run's) models and data sets of which nothing was marked have rows, too.
    """
    items, lines = _by_case(marks_compared(marks, safety)), []
    runs = (marks if reviews is None else reviews)[BY[:3]].drop_duplicates()
    for label in runs.merge(pd.DataFrame({"kind": KINDS}), how="cross").to_dict("records"):
        part = items[(items[BY] == pd.Series(label)).all(axis=1)]
        for metric, (column, value, counted, none) in MEASURES.items():
            none = none if len(part) else NOTHING
            rows = Rows.of(part[part[column] == value], counted, draws, seed, none)
            lines.append({**label, "metric": metric, **estimate(rows, mean(counted))})
    return table(lines, BY)


def rule_kind_table(
    marks: pd.DataFrame, draws: int = 2000, seed: int = 0, safety: Safety | None = None
) -> pd.DataFrame:
    """Sensitivity by what the rule hangs on, over all data sets and levels, most items first.

    Where several rules speak against an item, the worst one counts.
    """
    items, keys = _by_case(marks_compared(marks, safety)), ["model", "kind", "rule_kind"]
    groups = grouped(items[items["rule_objects"]], keys, "objects", n_draws=draws, seed=seed)
    found = table(measure(groups, {"sensitivity": mean("objects")}), keys)
    order: Any = {"ascending": [True, True, False], "kind": "stable", "ignore_index": True}
    return found.sort_values(["model", "kind", "n"], **order)


def left_out_table(marks: pd.DataFrame) -> pd.DataFrame:
    """What could not be compared: a row a model, data set, level and kind, each review once.

    Columns: n_items, n_compared, and of the rest n_unknown (to the table), n_unreadable (the
    reviewer's mark), n_said_unknown (to the reviewer, though the table knows it).
    """
    items = _once(marks)
    known = items["known"].astype(bool)
    counted = items[BY].assign(
        n_items=1,
        n_compared=known & items["verdict"].isin([*OBJECTIONS, *FINE]),
        n_unknown=~known,
        n_unreadable=known & items["verdict"].isna(),
        n_said_unknown=known & items["verdict"].eq("UNKNOWN"),
    )
    return counted.groupby(BY, sort=False, observed=True).sum().astype(int).reset_index()


def verdict_table(marks: pd.DataFrame) -> pd.DataFrame:
    """How often the reviewer gave which verdict where the rule check gave which, each review once.

    Counts of items, unreadable marks and unknown items too. Index model, kind, rule check; a column
    a verdict of the reviewer, worst last.
    """
    items, keys = _once(marks), ["model", "kind", "rule check", "reviewer"]
    order = [*RATINGS, *FLAGS[:3], "unreadable"]
    rule = pd.Categorical(items["rule_verdict"], order)
    said = pd.Categorical(items["verdict"].fillna("unreadable"), order)
    named = items[keys[:2]].assign(**{"rule check": rule, "reviewer": said})
    return named.groupby(keys, observed=True).size().unstack("reviewer", fill_value=0)


def charts_table(cases: Sequence[Case]) -> pd.DataFrame:
    """How many cases (``n_cases``) have each field of a chart recorded: a row a data set."""
    names = [field.name for field in fields(Chart)]
    charts = pd.DataFrame([vars(chart_of(case)) for case in cases], columns=names).notna()
    charts.insert(0, "n_cases", 1)
    of = pd.Series([case.dataset for case in cases], name="dataset", dtype=object)
    found: Any = charts.groupby(of, sort=False).sum()
    return found.astype(int).reset_index()


def _once(marks: pd.DataFrame) -> Any:
    """Each review once: of configurations whose reviews are alike in every item, the first."""
    need(marks, NEEDED, "marks")
    review = [*BY, "case_id", "configuration"]
    texts = list(marks[SAID].astype(str).itertuples(index=False, name=None))
    said = pd.Series(texts, marks.index, dtype=object)
    each: Any = marks[review].assign(said=said).groupby(review, sort=False)["said"].agg(tuple)
    first = each.reset_index().drop_duplicates([*review[:-1], "said"])
    return marks.merge(first[review], on=review, validate="many_to_one")


def _by_case(items: pd.DataFrame) -> Any:
    """The items with ``case_id`` naming their data set, too: all data sets are drawn together."""
    return items.assign(case_id=items["dataset"].astype(str) + " " + items["case_id"].astype(str))


def by_panel(drawn: pd.DataFrame) -> pd.DataFrame:
    """Of :func:`in_rows` safety on, each formulation and configuration a panel of its own."""
    on = drawn[drawn["safety"].astype(bool)]
    return on.assign(formulation=on["formulation"] + ", " + on["configuration"])


WEAK = 0.3
"""Correlations below this are commonly called weak."""
PART_WORDS = {"unsafe_rx": "objections to prescriptions", "test_alerts": "objections to tests"}


def named_pair(row: Any) -> str:
    """Which two parts a row of :func:`component_correlations` is about."""
    first, second = (PART_WORDS.get(row[side], row[side]) for side in ("first", "second"))
    return f"{first} and {second}"


def weak_pairs(correlations: pd.DataFrame) -> str:
    """How many pairs are shown to be weakly correlated: their intervals lie within ±0.3."""
    known: Any = correlations[correlations["low"].notna()]
    if known.empty:
        return "No pair of parts has an interval."
    weak = known["low"].gt(-WEAK) & known["high"].lt(WEAK)
    return f"Shown to be weak (interval within ±{WEAK:g}): {weak.sum()} of {len(known)} pairs."


def indices_message(percent: pd.DataFrame) -> str:
    """Accuracy beside ETI and FTI of each configuration, safety on, ``trust-x``, of
    :func:`in_percent` at one level and data set; '' where no accuracy has a value."""
    on: Any = percent[percent["safety"].astype(bool) & percent["formulation"].eq("trust-x")]
    lines = []
    for key, part in groups(on, ["model"]):
        told = []
        for team, of in groups(part, ["configuration"]):
            index: dict[str, Any] = {row["metric"]: row for row in of.to_dict("records")}
            right = index["accuracy"]
            if pd.isna(right["value"]):
                continue
            ends = with_interval(right["value"], right["low"], right["high"], 0)
            sums = ", ".join(
                f"{NAMES[m]} {with_interval(index[m]['value'], NAN, NAN, 0)}"
                for m in ("eti_percent", "fti")
            )
            told.append(f"{team['configuration']} is right for {ends} %: {sums}")
        named = f"{key['model']}: " if on["model"].nunique() > 1 else ""
        lines += [f"{named}{'; '.join(told)}."] if told else []
    return "\n".join(lines if len(lines) > 1 else [line[:1].upper() + line[1:] for line in lines])


def reviewers_message(seen: pd.DataFrame) -> str:
    """Of the items that the rules object to, and of the others, what the reviewers do, all panels
    of :func:`reviewer_table` together; '' where nothing was rated by both."""
    told = []
    for key, part in groups(seen, ["kind"]):
        of = {m: mine[mine["n"].gt(0)] for m, mine in part.groupby("metric")}
        hits, n = (
            {m: int((of[m]["n"] * (of[m]["value"] if share else 1)).round().sum()) for m in of}
            for share in (True, False)
        )
        said = []
        if n.get("sensitivity"):
            said.append(f"object to {hits['sensitivity']} of {n['sensitivity']} that the rules do")
        if n.get("specificity"):
            said.append(f"pass {hits['specificity']} of {n['specificity']} that the rules pass")
        told += [f"{key['kind']}s: the reviewers {' and '.join(said)}"] if said else []
    words = "; ".join(told)
    return f"{words[:1].upper()}{words[1:]}." if words else ""


def weights_message(sweep: pd.DataFrame) -> str:
    """Who has the highest ETI at the printed weights, and at how many of all weightings, of
    :func:`weight_sweep` at one level; '' where nobody can be compared."""
    won: Any = sweep[sweep["winner"].ne("")]
    lines, n_of = [], {name: len(set(sweep[name])) for name in ("model", "dataset")}
    for key, part in groups(won, ["model", "dataset"]):
        near = np.isclose(part[WEIGHTS].astype(float), formulas.ETI_WEIGHTS).all(axis=1)
        if not near.any():
            continue
        winner = part.loc[near, "winner"].iloc[0]
        share = 100 * part["winner"].eq(winner).mean()
        named = [str(key[name]) for name, n in n_of.items() if n > 1]
        who = "nobody alone" if winner == "tie" else winner
        lines.append((", ".join(named), who, share))
    return "; ".join(
        f"{named + ': ' if named else ''}{who} has the highest ETI at the printed weights"
        f" and at {share:.0f} % of all weightings"
        for named, who, share in lines
    ) + ("." if lines else "")


def same_doctors(setup: Any, models: Sequence[Any]) -> str:
    """Why only the first of ``models`` is convened, where all have the same doctors; else ''."""
    who = setup.who("panel", models)
    if who is None or len(models) < 2:
        return ""
    names = ", ".join(getattr(one, "name", str(one)) for one in as_list(who))
    asked = ", ".join(getattr(one, "name", str(one)) for one in models)
    return f"the doctors are {names}, whoever is asked ({asked}): their panel is shown once"


def dry_run(cases: Sequence[Case], models: Sequence[Any], asked: Any) -> None:
    """Ask what the notebook asks, for ``trustlab plan``."""
    trust(cases, models, setup=asked)
    methods = [*(m.name for m in select(given(asked.methods, "paper"))), "agreement", "rdc"]
    benchmark(cases, models, list(dict.fromkeys(methods)), setup=asked)
