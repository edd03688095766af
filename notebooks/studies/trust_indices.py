"""05: doctors who vote, reviewers who check, and what the trust indices stand on."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

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
from trustlab.metrics import trust_table as made
from trustlab.metrics.correlation import pearson_rows, spearman_rows
from trustlab.metrics.estimate import NAN, Metric, Rows, Statistic, between, groups
from trustlab.metrics.paired import compared, corrected
from trustlab.metrics.schema import need, table
from trustlab.metrics.trust_table import KEYS, RUN, Choices, check_reviews
from trustlab.models.base import Model
from trustlab.models.cache import CachedModel
from trustlab.parsing.counts import Counts, add, why_few
from trustlab.parsing.reply import CUT
from trustlab.paths import NOTICE, save_json, save_tables
from trustlab.records import FLAGS, RATINGS, Case, Mark, Opinion, Panel, View
from trustlab.runs import experiment as runs
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
RX: dict[Any, str] = dict(zip((*RATINGS, None), made.COUNTS[1:6], strict=True))
TESTS: dict[Any, str] = dict(zip((*FLAGS, None), made.COUNTS[7:], strict=True))
COLUMN = {"prescription": RX, "test": TESTS}
"""Kind -> verdict that counts -> the column that counts it; None could not be read."""


def no_answer(opinion: Opinion) -> bool:
    """Whether a doctor's reply is no answer: it was cut off, is all thought, or never came."""
    return opinion.raw is None or opinion.missing.startswith(CUT)


def review_rows(c: Checked) -> Iterator[dict[str, Any]]:
    """Two rows: safety off (no plan is reviewed, all counts of marks are 0) and on."""
    plan = c.proposed.plan
    panel = c.panel
    no_medical = NO_MEDICAL_ENCODER if c.medical_cosines is None else ""
    named = {
        **c.keys,
        "configuration": c.configuration,
        "n_doctors": c.n_doctors,
        "diagnoses": panel.votes,
        "diagnosis": panel.diagnosis,
        "tied": panel.tied,
        "n_no_answer": sum(no_answer(o) for o in panel.opinions),
        "truth": c.view.case.diagnosis,
        "correct": c.correct,
        "correct_share": c.correct_share,
        **_cosine("cosine", panel.cosines, ""),
        **_cosine("cosine_med", c.medical_cosines, no_medical),
        "cosine_med_proxy": c.proxy,
        "n_prescriptions": len(plan.prescriptions) if plan else 0,
        "n_tests": len(plan.tests) if plan else 0,
        "plan_missing": c.proposed.missing,
    }
    counts = Counter(dict.fromkeys((*RX.values(), *TESTS.values()), 0))
    yield {**named, "safety": False, **counts}
    counts.update(COLUMN[kind][_verdict(mark, known)] for kind, _, _, known, mark, _ in _items(c))
    yield {**named, "safety": True, **counts}


def opinion_rows(c: Checked) -> Iterator[dict[str, Any]]:
    """A row for each doctor of a panel, from 1."""
    cosines = c.panel.cosines or [math.nan] * c.n_doctors
    each = zip(c.panel.opinions, c.panel.votes, cosines, strict=True)
    for i, (o, name, cosine) in enumerate(each, 1):
        yield {
            **c.keys,
            "doctor": i,
            "speaker": o.model,
            "diagnosis": o.diagnosis,
            "vote": name,
            "thinking": o.thinking,
            "cosine": cosine,
            "missing": o.missing,
        }


def mark_rows(c: Checked) -> Iterator[dict[str, Any]]:
    """A row a prescription or test: ``said`` is the reviewer's word, ``verdict`` what counts."""
    keys = c.keys | {"configuration": c.configuration}
    for kind, i, text, known, mark, rule in _items(c):
        yield {
            **keys,
            "kind": kind,
            "item": i,
            "text": text,
            "known": known,
            **vars(mark),
            "said": mark.verdict,
            "verdict": _verdict(mark, known),
            "rule": rule.rule,
            "rule_verdict": rule.verdict,
            "rule_quote": rule.quote,
        }


def _items(c: Checked) -> Iterator[tuple[str, int, str, bool, Mark, Mark]]:
    """Kind, place, text, whether the table knows it, reviewer's and rule check's mark, an item."""
    plan = c.proposed.plan
    if plan is None or c.review is None or c.rules is None:
        return
    drugs, tests = known_items(plan)
    rx = map(str, plan.prescriptions), drugs, c.review.prescriptions, c.rules.prescriptions
    kinds = {"prescription": rx, "test": (plan.tests, tests, c.review.tests, c.rules.tests)}
    for kind, columns in kinds.items():
        for i, each in enumerate(zip(*columns, strict=True), 1):
            yield kind, i, *each


def _verdict(mark: Mark, known: bool) -> str | None:
    """The verdict that counts: UNKNOWN of what the safety table does not know, whatever is said."""
    return mark.verdict if known else "UNKNOWN"


def _cosine(name: str, values: Sequence[float] | None, why: str) -> dict[str, Any]:
    """The mean over the doctors that have one, and why there is none."""
    there = [v for v in values or () if not math.isnan(v)]
    missing = "" if there else why or "no doctor gave both reasoning and diagnosis"
    return {name: sum(there) / len(there) if there else math.nan, f"{name}_missing": missing}


ONE = "one doctor"
PROXY = "proxy: {}, no biomedical encoder"


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
    for case in cases:  # a chart that cannot be read is refused before anything is spent
        chart_of(case)
    n_doctors = setup.chosen.n_doctors
    judge = setup.judge
    panel: list[Model] = setup.role("panel", models) or []
    reviewer: Model | None = setup.role("reviewer")
    encoder = setup.readers.encoder
    medical = setup.readers.medical
    proxy = PROXY.format(encoder.name) if medical is None and setup.medical_proxy else ""
    verdicts = judge.model if isinstance(judge, JudgeGrader) else None
    if verdicts is not None:
        verdicts.reset_calls()
    cached = _cached([*(panel or models), *([reviewer] if reviewer else [])], setup)
    shown = views_of(cases, levels)
    checked = []
    with recording(setup.run_dir) as attach:
        attach(*cached.values(), verdicts)
        for m in models:
            team = [cached[id(d)] for d in panel or [m]]
            doctors = agents.doctors_of(team, n_doctors)
            checked += _checked(m.name, doctors, shown, cached.get(id(reviewer)), proxy, setup)
        checked = _graded(checked, judge)
    runs.refuse_waiting([*cached.values(), verdicts])
    asked = cached.values()
    counts = Counts()
    each = [one.calls_table().assign(model=one.name) for one in asked]
    for one in dict.fromkeys([*asked, verdicts]):
        if isinstance(one, CachedModel):
            add(counts, {one.name: one.counts})
    for one in asked:
        if id(one) not in cached:  # what came in as a cache stays open
            one.close()
    parameters: dict[str, Any] = {
        "models": {m.name: m.revision for m in models},
        "reviewer": reviewer and {reviewer.name: reviewer.revision},
        "dataset": sorted({c.dataset for c in cases}),
        "cases": len(cases),
        **runs.sharded(setup),
        "cases_sha256": runs.cases_hash(cases),
        "levels": list(levels),
        "n_doctors": n_doctors,
        "doctor_temperature": setup.chosen.doctor_temperature,
        "seed": setup.seed,
        "panel": {m.name: m.revision for m in panel} or None,
        "budgets": dict(setup.budgets),
        "reading": setup.reading,
        "reasoning_from": setup.reasoning_from,
        "replies_read": counts,
        "grader": judge.name,
        "encoder": encoder.revision,
        "medical_encoder": medical and medical.revision,
        "medical_proxy": proxy,
        "served_by": runs.served_by(asked),
        **runs.request_facts(asked),
        "unknown_answers": {} if verdicts else _unknown_answers(checked),
    }
    panels = [c for c in checked if c.n_doctors > 1 or n_doctors == 1]  # one doctor is on a panel
    run = TrustRun(
        reviews=pd.DataFrame([row for c in checked for row in review_rows(c)]),
        opinions=pd.DataFrame([row for c in panels for row in opinion_rows(c)]),
        marks=pd.DataFrame([row for c in checked for row in mark_rows(c)], columns=MARKS),
        calls=pd.concat(each, ignore_index=True),
        parameters=parameters,
        checked=tuple(checked),
    )
    run = _without_unread(run)
    if setup.run_dir:
        run.save(setup.run_dir)
    runs.warn(parameters)
    return run


def _cached(models: Sequence[Model], setup: Workbench) -> dict[int, CachedModel]:
    """``id`` of each model -> the model over the store of ``setup``, its count of calls at 0.
    A doctor's model that reviews, too, has one entry, so that its calls are counted once."""
    found: dict[int, CachedModel] = {}
    for model in models:
        found.setdefault(id(model), setup.cached(model)).reset_calls()
    return found


def _unknown_answers(checked: Sequence[Checked]) -> dict[str, dict[str, int]]:
    """Model -> how many diagnoses its doctors gave (``answers``), and how many of them a grader
    that is no judge does not know."""
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for c in checked:
        if c.panel.diagnosis is not None:
            is_unknown = math.isnan(c.correct)
            found[c.keys["model"]].update(answers=1, unknown=int(is_unknown))
    return {model: dict(n) for model, n in found.items()}


def _without_unread(run: TrustRun) -> TrustRun:
    """The run without what rests on replies of which less than half could be read."""
    reviews: Any = run.reviews.copy()
    marks: Any = run.marks
    for model in run.parameters["models"]:
        why = partial(why_few, run.parameters["replies_read"], model)
        judged = why(["judge"]) or why_unknown(run.parameters, model)
        thought = why(["doctor"])
        done = thought or why(["plan", "review_prescriptions", "review_tests"])
        mine = reviews["model"].eq(model)
        if judged or thought:
            reviews.loc[mine, ["correct", "correct_share"]] = math.nan
        if thought:
            none = reviews["n_doctors"].map(lambda n: (None,) * n)
            reviews["diagnoses"] = reviews["diagnoses"].mask(mine, none)
            reviews["diagnosis"] = reviews["diagnosis"].mask(mine, None)
            reviews["n_no_answer"] = reviews["n_no_answer"].mask(mine, reviews["n_doctors"])
            reviews.loc[mine, ["cosine", "cosine_med"]] = math.nan
            reviews.loc[mine, ["cosine_missing", "cosine_med_missing"]] = thought
        if done:
            reviews.loc[mine, made.COUNTS] = 0
            reviews.loc[mine, "plan_missing"] = done
            marks = marks[marks["model"].ne(model)]
        if unread := thought or done or judged:
            before = reviews.get("unread", pd.Series("", reviews.index))
            reviews["unread"] = before.mask(mine, unread)
    return replace(run, reviews=reviews, marks=marks)


def _checked(
    name: str,
    doctors: Sequence[Model],
    views: Sequence[View],
    reviewer: Model | None,
    proxy: str,
    setup: Workbench,
) -> list[Checked]:
    """Every configuration of one team: its first doctor alone, and the panel."""
    panels = agents.convene(
        views,
        doctors,
        temperature=setup.chosen.panel_temperature,
        seed=setup.seed,
        max_tokens=setup.budgets.get("doctor", agents.MAX_TOKENS),
        reading=setup.reading,
        reasoning_from=setup.reasoning_from,
    )
    panels = with_cosines(setup.readers.encoder, panels)
    medical = setup.readers.encoder if proxy else setup.readers.medical
    medically = [tuple(cosines(medical, p.opinions) if medical else ()) for p in panels]
    checked = []
    for n in sorted({1, len(doctors)}):
        each = panels if n > 1 else [_first(p, v) for p, v in zip(panels, views, strict=True)]
        plans, reviews = _planned(doctors, views, each, reviewer, setup)
        named = f"panel of {n}" if n > 1 else ONE
        for i, (view, panel) in enumerate(zip(views, each, strict=True)):
            one = Checked(
                model=name,
                configuration=named,
                n_doctors=n,
                view=view,
                panel=panel,
                medical_cosines=medically[i][:n] or None,
                proxy=proxy,
                proposed=plans[i],
                review=reviews[i],
                rules=_rules(view, panel, plans[i]),
            )
            checked.append(one)
    return checked


def _first(panel: Panel, view: View) -> Panel:
    """The panel's first doctor alone."""
    alone = agents.decide(panel.opinions[:1], view.case.case_id)
    return replace(alone, cosines=panel.cosines and panel.cosines[:1])


def _planned(
    doctors: Sequence[Model],
    views: Sequence[View],
    panels: Sequence[Panel],
    reviewer: Model | None,
    setup: Workbench,
) -> tuple[list[Proposed], list[Review | None]]:
    """The plan of each panel's doctor in charge, and its review; none without a diagnosis."""
    models = list({id(d): d for d in doctors}.values())
    charge = [None if (k := agents.in_charge(p)) is None else doctors[k] for p in panels]
    plans = [Proposed(None, "no diagnosis to plan for")] * len(views)
    for model in models:
        at = [i for i, who in enumerate(charge) if who is model]
        asked = [(views[i], str(panels[i].diagnosis)) for i in at]
        drawn = reviewing.propose(
            model,
            asked,
            temperature=setup.chosen.panel_temperature,
            seed=setup.seed,
            max_tokens=setup.budgets.get("plan", reviewing.MAX_TOKENS),
            reading=setup.reading,
        )
        for i, proposed in zip(at, drawn, strict=True):
            plans[i] = proposed
    reviews: list[Review | None] = [None] * len(views)
    for model in [reviewer] if reviewer else models:
        mine = [i for i, who in enumerate(charge) if reviewer or who is model]
        there = {i: plan for i in mine if (plan := plans[i].plan) is not None}
        planned = [(views[i], str(panels[i].diagnosis), plan) for i, plan in there.items()]
        marked = reviewing.review(
            model,
            planned,
            seed=setup.seed,
            max_tokens=setup.budgets.get("review", reviewing.MAX_TOKENS_REVIEW),
            reading=setup.reading,
        )
        for i, review in zip(there, marked, strict=True):
            reviews[i] = review
    return plans, reviews


def _rules(view: View, panel: Panel, proposed: Proposed) -> Review | None:
    """What the rule check says of a plan."""
    if (plan := proposed.plan) is None:
        return None
    asked = plan, chart_of(view.case, view.statements), panel.diagnosis
    return Review(check_prescriptions(*asked), check_tests(*asked))


def _graded(checked: Sequence[Checked], grader: Grader) -> list[Checked]:
    """Each with the grades of its diagnosis and of all that tied for it; NaN where unjudged."""
    names = [sorted(filter(None, {c.panel.diagnosis, *c.panel.tied})) for c in checked]
    asked = [(c, name) for c, each in zip(checked, names, strict=True) for name in each]
    grades = grader.grade([name for _, name in asked], [c.view.case for c, _ in asked])
    found: dict[tuple[int, str | None], float] = {
        (id(c), name): math.nan if g.correct is None else float(g.correct)
        for (c, name), g in zip(asked, grades, strict=True)
    }
    done = []
    for c in checked:
        own = found.get((id(c), c.panel.diagnosis), math.nan)
        tied = [found[id(c), name] for name in c.panel.tied] or [own]
        done.append(replace(c, correct=own, correct_share=sum(tied) / len(tied)))
    return done


WEIGHTS = ["w_accuracy", "w_agreement", "w_rdc"]
PARTS = ["accuracy", "cdr", "rdc"]


def weight_grid(steps: int = 20) -> np.ndarray:
    """All weights of (accuracy, 1 - CDR, RDC) in steps of 1/``steps`` that sum to 1, (n, 3)."""
    grid = [(i, j, steps - i - j) for i in range(steps + 1) for j in range(steps + 1 - i)]
    return np.array(grid) / steps


def weight_sweep(indices: pd.DataFrame, steps: int = 20) -> pd.DataFrame:
    """The highest ETI (``trust-x``, percent) at each point of the grid of weights, and whose it is.
    ``winner``: a configuration, "tie" (``tied`` names them), or "" with the reason in ``missing``;
    ``margin`` to the next: NaN for one alone, 0 in a tie. ``n`` configurations are compared;
    ``n_missing`` lack a part; ``n_cases`` is the fewest behind the ETI of any. ``ValueError`` where
    ``indices`` hold nothing of ``trust-x``."""
    lines = []
    for label, part in groups(contenders(indices), RUN):
        known = part.dropna(subset=PARTS)
        label |= {
            "metric": "eti_percent",
            "n": len(known),
            "n_missing": len(part) - len(known),
            "n_cases": int(known["n"].min()) if len(known) else 0,
        }
        for weights in weight_grid(steps):
            at = dict(zip(WEIGHTS, weights, strict=True))
            lines.append(label | at | _winner(eti_at(known, weights)))
    return table(lines, [*RUN, *WEIGHTS], ["winner", "tied", "margin"])


def contenders(indices: pd.DataFrame) -> pd.DataFrame:
    """The configurations that differ in a part of ETI, a row each: parts, n of ETI, name.
    Safety is in the name only where it matters."""
    need(indices, ["formulation", *KEYS, "metric", "value", "n"], "indices")
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


def eti_at(contenders: pd.DataFrame, weights: Sequence[float]) -> pd.Series:
    """The ETI of each of the :func:`contenders` under ``weights`` (3,), in percent."""
    accuracy, cdr, rdc = contenders[PARTS].to_numpy(float).T
    return pd.Series(100 * formulas.eti(accuracy, cdr, rdc, weights), contenders["contender"])


def _winner(eti: pd.Series) -> dict[str, Any]:
    """Who has the highest ETI."""
    if not len(eti):
        return {"winner": "", "tied": (), "missing": "no configuration has accuracy, CDR and RDC"}
    best = sorted(str(name) for name in eti.index[eti >= eti.max() - 100 * formulas.ROUNDING])
    high = [*eti.nlargest(2), np.nan]
    who = {"winner": best[0], "tied": (), "margin": high[0] - high[1]}
    if len(best) > 1:
        who = {"winner": "tie", "tied": tuple(best), "margin": 0.0}
    return {"value": high[0], "missing": "", **who}


def _over_cases(correlation: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Metric:
    """A correlation (B, n), (B, n) -> (B,) of ``x`` and ``y``, a row a case. It has no interval:
    with one far case none holds."""

    def values(rows: Rows) -> np.ndarray:
        return correlation(rows["x"][None], rows["y"][None])

    return Metric(Statistic(values), withheld=lambda rows: rows.none)


CORRELATIONS = {"pearson": _over_cases(pearson_rows), "spearman": _over_cases(spearman_rows)}
"""Of ETI and OSI over cases, as the notebook takes them."""
SHOWN = ("accuracy", "eti_percent", "osi", "fti")
FAMILY = [*RUN, "safety"]


def percent(share: Statistic) -> Statistic:
    """A share in [0, 1], times 100."""
    values = share.values
    return replace(share, values=lambda rows: 100 * values(rows), ends=between(0.0, 100.0))


def configuration_differences(reviews: pd.DataFrame, against: str = ONE) -> pd.DataFrame:
    """Each configuration's indices (:data:`SHOWN`, ``trust-x``) minus those of ``against``, in
    percent.
    Over the ``n`` cases that both could answer (:func:`trustlab.metrics.trust_table.answered`);
    ``p_holm`` is over the rows of a :data:`FAMILY`. A team without ``against`` has
    no row; ``ValueError`` where it is nowhere."""
    table = check_reviews(reviews)
    choices = Choices()
    if against not in (teams := list(table["configuration"].unique())):
        raise ValueError(f"against is {against!r}; the reviews hold {teams}")
    lines: list[dict[str, Any]] = []
    every = made.configurations(table, choices)
    of = {(label["configuration"], *map(label.get, FAMILY)): rows for label, _, rows in every}
    for (configuration, *run), mine in of.items():
        theirs = of.get((against, *run))
        if configuration == against or theirs is None:
            continue
        label = dict(zip(FAMILY, run, strict=True)) | {"configuration": configuration}
        for name in SHOWN:
            pair = _pair(mine, theirs, name, choices)
            statistic = made.statistics(choices)[name]
            found = compared(pair, percent(statistic) if name == "accuracy" else statistic)
            lines.append({**label, "against": against, "metric": name, **found})
    return corrected(lines, [*FAMILY, "configuration", "against"], family=FAMILY)


def indices_on_shared_cases(reviews: pd.DataFrame, of: Sequence[str] = RUN) -> pd.DataFrame:
    """The indices (``trust-x``) of the cases that all configurations could
    answer.
    "All" are those of a group ``of`` keys whose ETI has a case at all; where they share no case,
    every index is missing."""
    choices = Choices()
    found = []
    for _, group in groups(check_reviews(reviews), of):
        cases = (rows.asked for _, _, rows in made.configurations(group, choices))
        could = [{*each["case_id"][made.answered(each, choices)["eti"]]} for each in cases]
        shared = set[str].intersection(*filter(None, could)) if any(could) else set()
        kept = group[group["case_id"].astype(str).isin(shared)]
        indices = made.trust_indices(kept if len(kept) else group)
        if not len(kept):
            indices = indices.assign(value=NAN, low=NAN, high=NAN, n=0, n_cases=0)
            indices["missing"] = "no case that all could answer"
        found.append(indices)
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
    both = each[0] & each[1]
    asked = [side.reindex(cases).reset_index() for side in sides]
    return Rows(asked[0], both, none=none, reference=Rows(asked[1], both, none=none))


BY = ["model", "dataset", "level", "kind"]
SAID = ["item", "text", "verdict", "quote", "reason", "rule"]
NEEDED = [*BY, "case_id", "configuration", *SAID, "known", "quote_occurs", "rule_verdict"]
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
    items = once(marks)
    known = load_safety()
    items = items[items["known"].astype(bool) & items["verdict"].isin([*OBJECTIONS, *FINE])]
    kinds = {name: of.kind for name, of in {**known.test_rules, **known.drug_rules}.items()}
    return items.assign(
        case_id=items["dataset"].astype(str) + " " + items["case_id"].astype(str),
        objects=items["verdict"].isin(OBJECTIONS),
        accepts=items["verdict"].isin(FINE),
        quotes=items["quote_occurs"].eq(True),
        rule_objects=items["rule_verdict"].isin(OBJECTIONS),
        rule_kind=items["rule"].astype(object).fillna("").map(lambda rule: kinds.get(rule, rule)),
    )


def once(marks: pd.DataFrame) -> Any:
    """Each review once: of configurations whose reviews are alike in every item, the first."""
    need(marks, NEEDED, "marks")
    review = [*BY, "case_id", "configuration"]
    texts = list(marks[SAID].astype(str).itertuples(index=False, name=None))
    said = pd.Series(texts, marks.index, dtype=object)
    each: Any = marks[review].assign(said=said).groupby(review, sort=False)["said"].agg(tuple)
    first = each.reset_index().drop_duplicates([*review[:-1], "said"])
    return marks.merge(first[review], on=review, validate="many_to_one")


def dry_run(cases: Sequence[Case], models: Sequence[Model], asked: Asked) -> None:
    """Ask what the notebook asks, for ``trustlab plan``."""
    trust(cases, models, setup=asked)
    methods = [*(m.name for m in select(given(asked.methods, "paper"))), "agreement", "rdc"]
    runs.benchmark(cases, models, list(dict.fromkeys(methods)), setup=asked)
