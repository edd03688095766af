"""Doctors who vote, reviewers who check: what the trust indices are computed from.

For each model, case and level a panel of doctors judges independently, the majority decides, the doctor in charge proposes a
plan, a reviewer marks its prescriptions and another its tests, and the rule check marks them too. One doctor alone is the panel's
first doctor, so that the two configurations are paired; with safety off the reviews are left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from trustlab.agents.panel import Doctor, convene, decide, doctors_of, in_charge
from trustlab.agents.plan import Proposed, propose
from trustlab.agents.reviewers import Review, review
from trustlab.chart import chart_of
from trustlab.correctness import Grader, SynonymGrader, open_grader
from trustlab.experiments.benchmark import cases_hash, given_once
from trustlab.experiments.consultations import with_bar
from trustlab.experiments.trust_rows import (
    MARKS,
    OPINIONS,
    REVIEWS,
    Checked,
    mark_rows,
    opinion_rows,
    review_rows,
)
from trustlab.levels import views as views_of
from trustlab.meaning import NO_MEDICAL_ENCODER
from trustlab.models.base import Model
from trustlab.models.cache import CachedModel
from trustlab.paths import NOTICE
from trustlab.reasoning import cosines, with_cosines
from trustlab.records import Case, Panel, View
from trustlab.rule_check import check_prescriptions, check_tests
from trustlab.semantics import Encoder

ONE = "one doctor"
MIXED = "a mixed panel"
PROXY = "proxy: {}, no biomedical encoder"
"""What tables, figures and captions say where the general encoder stands in."""


@dataclass(frozen=True)
class TrustRun:
    """Tables of one run, each tidy, and what made them.

    ``reviews``: a row for each model, data set, configuration, safety, level and case, as :func:`trustlab.trust_indices` takes
    it. ``opinions``: a row a doctor. ``marks``: a row for each prescription and test with the reviewer's verdict and the rule
    check's. ``calls``: a row a request. ``checked`` holds panel, plan and review of each as records.
    """

    reviews: pd.DataFrame
    opinions: pd.DataFrame
    marks: pd.DataFrame
    calls: pd.DataFrame
    parameters: dict[str, Any]
    checked: tuple[Checked, ...] = field(default=(), repr=False)

    def save(self, folder: Path) -> None:
        """Write the tables (CSV) and ``run.json``."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("reviews", "opinions", "marks", "calls"):
            getattr(self, name).to_csv(folder / f"{name}.csv", index=False)
        made, cached = (int(self.calls[c].to_numpy().sum()) for c in ("n_made", "n_cached"))
        facts = {
            "notice": NOTICE,
            "trust": self.parameters,
            "calls_made": made,
            "calls_from_cache": cached,
        }
        (folder / "run.json").write_text(
            json.dumps(facts, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
        )


def trust(
    cases: Sequence[Case],
    models: Sequence[Model],
    *,
    n_doctors: int = 3,
    levels: Sequence[int] = (100,),
    temperature: float = 0.5,
    seed: int = 0,
    mixed: bool = False,
    reviewer: Model | None = None,
    grader: Grader | str | None = None,
    encoder: Encoder | None = None,
    medical_encoder: Encoder | str | Path | None = None,
    medical_proxy: bool = True,
    run_dir: str | Path | None = None,
    cache: str | Path | None = None,
    quiet: bool = False,
) -> TrustRun:
    """Convene, plan and review for every model, case and level.

    ``mixed`` adds a panel whose doctors are of all ``models`` in turn. ``reviewer`` marks the plans
    (the model of the doctor in charge where ``None``). ``medical_encoder`` is the one that
    ``medguard-x`` calls for; without it ``encoder`` stands in, named in the column
    ``cosine_med_proxy``, or with ``medical_proxy`` off its RDC is missing. The doctor in charge is
    the first who voted for the panel's diagnosis, and draws its plan at the doctors'
    ``temperature``. METHODS: trust indices. ``ValueError`` for a model or case given twice, or
    fewer than one doctor.
    """
    given_once(cases, models, levels)
    for case in cases:  # a chart that cannot be read is refused before anything is spent
        chart_of(case)
    store = cache or (Path(run_dir) / "replies.sqlite" if run_dir else None)
    shown, judge = views_of(cases, levels), open_grader(grader or SynonymGrader())
    vectors = None if store is None else Path(store).with_name("vectors.sqlite")
    encoder = encoder or Encoder(cache_path=vectors)
    medical = (
        Encoder(medical_encoder, cache_path=vectors)
        if isinstance(medical_encoder, str | Path)
        else medical_encoder
    )
    stands_in = medical is None and medical_proxy
    proxy = PROXY.format(encoder.name) if stands_in else ""
    readers = encoder, encoder if stands_in else medical, proxy
    cached = _cached([*models, *([reviewer] if reviewer else [])], store)
    doctors = [cached[id(m)] for m in models]
    teams = {m.name: doctors_of([m], n_doctors) for m in doctors}
    if mixed and len(doctors) > 1:
        teams[MIXED] = doctors_of(doctors, max(n_doctors, len(doctors)))
    checked: list[Checked] = []
    for name, team in teams.items():
        by = cached.get(id(reviewer))
        checked += _checked(name, team, shown, by, temperature, seed, *readers, quiet)
    checked = _graded(checked, judge)
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
        "cases_sha256": cases_hash(cases),
        "levels": list(levels),
        "n_doctors": n_doctors,
        "doctor_temperature": temperature,
        "seed": seed,
        "mixed": mixed,
        "grader": judge.name,
        "encoder": encoder.revision,
        "medical_encoder": medical and medical.revision,
        "medical_proxy": proxy,
    }
    run = _tables(checked, calls, parameters)
    if run_dir:
        run.save(Path(run_dir))
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


def _tables(
    checked: Sequence[Checked], calls: pd.DataFrame, parameters: dict[str, Any]
) -> TrustRun:
    """Everything as tables; one doctor is a row of the panel's opinions already, unless there is no panel."""
    panels = [c for c in checked if c.n_doctors > 1 or parameters["n_doctors"] == 1]
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
    temperature: float,
    seed: int,
    encoder: Encoder,
    medical: Encoder | None,
    proxy: str,
    quiet: bool,
) -> list[Checked]:
    """Every configuration of one team: the panel, and its first doctor alone."""
    put = None if quiet else with_bar(name)
    whole = with_cosines(
        encoder, convene(views, doctors, temperature=temperature, seed=seed, ask=put)
    )
    medical_cosines = [cosines(medical, p.opinions) for p in whole] if medical else None
    configurations = (
        {ONE: [_first(p, v.case.case_id) for p, v in zip(whole, views, strict=True)]}
        if name != MIXED
        else {}
    )
    if len(doctors) > 1:
        configurations[f"panel of {len(doctors)}"] = whole
    made = []
    for configuration, panels in configurations.items():
        n = 1 if configuration == ONE else len(doctors)
        plans = _plans(doctors, views, panels, temperature, seed, put)
        reviews = _reviews(doctors, views, panels, plans, reviewer, seed, put)
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


def _plans(
    doctors, views, panels: Sequence[Panel], temperature: float, seed: int, put
) -> list[Proposed]:
    """The plan of the doctor in charge for each panel's diagnosis; a panel without a diagnosis has none."""
    made = [Proposed(None, "no diagnosis to plan for")] * len(views)
    for model in {id(d.model): d.model for d in doctors}.values():
        at = [
            i
            for i, p in enumerate(panels)
            if (k := in_charge(p)) is not None and doctors[k].model is model
        ]
        asked = [(views[i], str(panels[i].diagnosis)) for i in at]
        for i, proposed in zip(
            at, propose(model, asked, temperature=temperature, seed=seed, ask=put), strict=True
        ):
            made[i] = proposed
    return made


def _reviews(
    doctors, views, panels, plans: Sequence[Proposed], reviewer: Model | None, seed: int, put
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
        for i, found in zip(at, review(model, asked, seed=seed, ask=put), strict=True):
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
    """Each with the grades of its diagnosis and of all that tied for it; NaN where there is none or it cannot be judged."""
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
