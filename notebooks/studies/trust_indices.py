"""05: doctors who vote, reviewers who check, and what the trust indices stand on."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import kendalltau

from trustlab.agents.panel import (
    Checked,
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
from trustlab.formatted import pivoted, remark_lines
from trustlab.graders import Grader
from trustlab.levels import views as views_of
from trustlab.meaning.encoder import Encoder
from trustlab.meaning.parts import NO_MEDICAL_ENCODER
from trustlab.meaning.relevance import cosines, with_cosines
from trustlab.metrics import schema, ties
from trustlab.metrics import trust as formulas
from trustlab.metrics import trust_table as made
from trustlab.metrics.correlation import pearson_rows, spearman_rows
from trustlab.metrics.estimate import (
    NAN,
    Metric,
    Rows,
    all_alike,
    estimate,
    grouped,
    groups,
    mean,
    measure,
)
from trustlab.metrics.paired import compared, corrected
from trustlab.metrics.schema import need, table
from trustlab.metrics.trust_table import (
    INDICES,
    KEYS,
    RUN,
    Choices,
    check_reviews,
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
    with_progress,
)
from trustlab.safety.chart import chart_of
from trustlab.safety.rule_check import check_prescriptions, check_tests
from trustlab.safety.table import Safety, known_items, load_safety
from trustlab.settings import Budget, Setup, given
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
    "model", "dataset", "level", "case_id", "doctor", "speaker", "diagnosis", "vote", "thinking",
    "cosine", "missing",
]  # fmt: skip
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
    drugs, tests = known_items(plan)
    rx = map(str, plan.prescriptions), drugs, c.review.prescriptions, c.rules.prescriptions
    kinds = {"prescription": rx, "test": (plan.tests, tests, c.review.tests, c.rules.tests)}
    for kind, columns in kinds.items():
        for i, (text, known, mark, rule) in enumerate(zip(*columns, strict=True), 1):
            yield {
                **c.keys,
                "configuration": c.configuration,
                "kind": kind,
                "item": i,
                "text": text,
                "known": known,
                "said": mark.verdict,
                "verdict": verdict(mark, known),
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
        **sharded(setup),
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


def weight_grid(steps: int = 20) -> np.ndarray:
    """All weights of (accuracy, 1 - CDR, RDC) that sum to 1 in steps of 1/``steps``, (points,
    3)."""
    if steps < 1:
        raise ValueError(f"steps must be at least 1; received {steps}")
    grid = [(i, j, steps - i - j) for i in range(steps + 1) for j in range(steps + 1 - i)]
    return np.array(grid) / steps


def weight_sweep(indices: pd.DataFrame, steps: int = 20) -> pd.DataFrame:
    """The highest ETI (``trust-x``, percent) at each point of the grid of weights, and whose it is.

    - ``winner``: a configuration, "tie" (``tied`` names them), or "" with the reason in
      ``missing``; ``margin`` to the next: NaN for one alone, 0 in a tie.
    - ``n`` configurations are compared; ``n_missing`` lack a part, so that no weighting is fair to
      them; ``n_cases`` is the fewest behind the ETI of any.
    - Configurations whose parts are the same with safety on and off count once.
    - ``ValueError`` where ``indices`` hold nothing of ``trust-x``.
    """
    swept = _swept(indices, steps, RUN)
    lines = [{**line, "metric": "eti_percent", **_winner(eti)} for line, eti, _ in swept]
    return schema.table(lines, [*RUN, *WEIGHTS], ["winner", "tied", "margin"])


def rank_stability(indices: pd.DataFrame, steps: int = 20) -> pd.DataFrame:
    """Kendall's tau-b between the ranking by ETI under the printed weights and under others.

    A row a data set, level and point of the grid. Ranked are all ``n`` rows of a data set and
    level, model by configuration, counted as in :func:`weight_sweep`.
    """
    swept = _swept(indices, steps, ["dataset", "level"])
    lines = [{**line, "metric": "kendall_tau", **_tau(*etis)} for line, *etis in swept]
    return schema.table(lines, ["dataset", "level", *WEIGHTS])


def _contenders(indices: pd.DataFrame) -> pd.DataFrame:
    """The configurations that differ in a part of ETI, a row each: parts, n of ETI, name.

    Safety is in the name only where it matters.
    """
    schema.need(indices, ["formulation", *KEYS, "metric", "value", "n"], "indices")
    held: Any = indices[indices["formulation"].eq("trust-x")]
    if lacking := {*PARTS, "eti"} - {*held["metric"]}:
        raise ValueError(f"indices lack {sorted(lacking)} of 'trust-x'")
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
    indices: pd.DataFrame, steps: int, by: list[str]
) -> Iterator[tuple[dict[str, Any], pd.Series, pd.Series]]:
    """Keys and counts at each weighting, and the ETI of each contender there and as printed."""
    for label, part in groups(_contenders(indices), by):
        known = part.dropna(subset=PARTS).set_index("contender")
        counts = {"n": len(known), "n_missing": len(part) - len(known)}
        counts["n_cases"] = int(known["n"].min()) if len(known) else 0
        accuracy, cdr, rdc = known[PARTS].to_numpy(float).T
        *swept, printed = (
            100 * pd.Series(formulas.eti(accuracy, cdr, rdc, weights), known.index)
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


def eti_against_osi(reviews: pd.DataFrame, draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """Correlation of ETI and OSI (``trust-x``) over the cases of each configuration, safety on.

    ``n`` cases have both: a judged diagnosis, CDR and RDC, and rated prescriptions and tests (or
    none proposed). Pearson and Spearman; no value below 3 cases or where one of them is constant.
    """
    every, lines = check_reviews(reviews), []
    reviewed: Any = every[every["safety"].astype(bool)]
    for label, _, rows in made.configurations(reviewed, Choices(), draws=0):
        each: Any = rows.asked
        n = {name: each[name].to_numpy() for name in each if name.startswith("n_")}
        rx = formulas.unsafe_rx_percent(
            n["n_unsafe"], n["n_caution"], n["n_rx_rated"], n_proposed=n["n_prescriptions"]
        )
        tests = formulas.test_alerts_percent(
            n["n_risky"], n["n_redundant"], n["n_tests_rated"], n["n_tests"]
        )
        thought = [each[name].to_numpy() for name in ("right", "apart", "cosine")]
        asked = each[["case_id"]].assign(x=formulas.eti(*thought), y=formulas.osi(rx, tests))
        asked["both"] = (asked["x"] + asked["y"]).where(each["planned"] > 0)
        both = asked.dropna()
        same = [name for side, name in (("x", "ETI"), ("y", "OSI")) if all_alike(both[side])]
        why = f"{' and '.join(same)} the same in every case" if same else ""
        why = "fewer than 3 cases have both" if len(both) < 3 else why
        pairs = Rows.of(asked, "both", draws, seed, why)
        lines += measure([(label, pairs)], CORRELATIONS)
    return table(lines, KEYS)


def _over_cases(correlation: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Metric:
    """A correlation (B, n), (B, n) -> (B,) of ``x`` and ``y``, each case as often as drawn."""

    def drawn(rows: Rows, times: np.ndarray) -> np.ndarray:
        places = np.tile(np.arange(len(rows)), len(times))
        again = np.repeat(places, times.astype(int).ravel()).reshape(len(times), -1)
        return correlation(rows["x"][again], rows["y"][again])

    return Metric(lambda rows: rows.over(partial(drawn, rows)), withheld=lambda rows: rows.none)


CORRELATIONS = {"pearson": _over_cases(pearson_rows), "spearman": _over_cases(spearman_rows)}


SHOWN = ("accuracy", "eti_percent", "osi", "fti")
FAMILY = [*RUN, "safety"]


def configuration_differences(
    reviews: pd.DataFrame, against: str = ONE, draws: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """Each configuration's indices (:data:`SHOWN`, ``trust-x``) minus those of ``against``, in
    percent.

    - Each over the ``n`` cases that both could answer
      (:func:`trustlab.metrics.trust_table.answered`): a panel without a readable diagnosis is in no
      comparison, however its accuracy counts it.
    - Both are drawn with the same cases; ``p_holm`` is over the rows of a model, data set, level
      and safety. A team without ``against`` has no row; ``ValueError`` where it is nowhere.
    """
    table, choices = check_reviews(reviews), Choices()
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
        for name in SHOWN:
            unit = 100 if name == "accuracy" else 1
            place, pair = INDICES.index(name), _pair(mine, theirs, name, choices)
            found = compared(pair, lambda r, u=unit, i=place: u * r.drawn(made.indices(choices))[i])
            lines.append({**label, "against": against, "metric": name, **found})
    return corrected(lines, [*FAMILY, "configuration", "against"], family=FAMILY)


def indices_on_shared_cases(reviews: pd.DataFrame, of: Sequence[str] = RUN) -> pd.DataFrame:
    """The indices (``trust-x``), without intervals, of the cases that all configurations could
    answer.

    "All" are those of a group ``of`` keys whose ETI has a case at all; where they share no case,
    every index is missing. What ranks configurations stands on this table.
    """
    choices, found = Choices(), []
    for _, group in groups(check_reviews(reviews), of):
        cases = (rows.asked for _, _, rows in made.configurations(group, choices, draws=0))
        could = [{*each["case_id"][made.answered(each, choices)["eti"]]} for each in cases]
        shared = set[str].intersection(*filter(None, could)) if any(could) else set()
        kept = group[group["case_id"].astype(str).isin(shared)]
        indices = made.trust_indices(kept if len(kept) else group, draws=0)
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
ROW = ["model", "dataset", "level", "configuration"]
GROUPS = {
    "What it thinks": ("accuracy", "cdr", "rdc", "eti_percent"),
    "What it does": ("unsafe_rx_percent", "test_alerts_percent", "osi"),
    "The whole": ("fti",),
}
"""The figure's groups of indices, in ``trust-x``."""
OTHER = "medguard-x: RDC is 50 × (1 + cosine)"
INDEX_NAMES = NAMES | {
    "cdr": "CDR ↓",
    "unsafe_rx_percent": "UnsafeRx % ↓",
    "test_alerts_percent": "TestAlerts % ↓",
}
"""What the figure calls indices, where lower is better with an arrow."""


def in_rows(percent: pd.DataFrame) -> pd.DataFrame:
    """Of :func:`in_percent` what is drawn, group ``about`` by group, a ``team`` a mark.

    All of ``trust-x``, safety off only where it matters, after safety on; of ``medguard-x`` what
    differs by its RDC.
    """
    group = {name: about for about, names in GROUPS.items() for name in names}
    on, main = percent["safety"].astype(bool), percent["formulation"].eq("trust-x")
    metric = percent["metric"]
    whole = main & metric.isin(list(group)) & (on | metric.isin(["osi", "fti"]))
    other = ~main & on & metric.isin(["rdc", "eti_percent", "fti"])
    shown: Any = percent[whole | other]
    off = shown["safety"].map({True: "", False: ", safety off"})
    shown = shown.assign(
        about=shown["metric"].map(group).where(shown["formulation"].eq("trust-x"), OTHER),
        team=shown["configuration"] + off,
        place=shown["metric"].map(list(group).index),
    )
    order = {"by": ["formulation", "place", "safety"], "ascending": [False, True, False]}
    return shown.sort_values(**order, kind="stable").drop(columns="place")


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
    table = named(in_percent(indices))
    keys = [name for name in (*ROW, "formulation", "safety", "variant") if name in table]
    shown = pivoted(table, keys, digits=0)
    of = {name: table[table["metric"].eq(name)] for name in ("RDC", "ETI", "FTI")}
    for name in ("ETI", "FTI"):
        place = list(shown.columns).index(name) + 1
        shown.insert(place, f"n ({name})", of[name]["n"].to_numpy())
    told = (table["metric"] + ": " + table["missing"]).where(table["missing"].ne(""), "")
    table = table.assign(note=told.where(table["low"].notna(), ""))
    note = table.groupby(keys, sort=False)["note"].agg(lambda each: "; ".join(filter(None, each)))
    return shown.assign(**{"RDC by": of["RDC"]["proxy"].to_numpy(), "note": note.to_numpy()})


def named(indices: Any) -> Any:
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
    items, known = once(marks), safety or load_safety()
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
    - What the table does not know, and what could not be read, is left out.
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


def once(marks: pd.DataFrame) -> Any:
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


def dry_run(cases: Sequence[Case], models: Sequence[Any], asked: Any) -> None:
    """Ask what the notebook asks, for ``trustlab plan``."""
    trust(cases, models, setup=asked)
    methods = [*(m.name for m in select(given(asked.methods, "paper"))), "agreement", "rdc"]
    benchmark(cases, models, list(dict.fromkeys(methods)), setup=asked)
