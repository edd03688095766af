"""Makes the table of trust indices by team of doctors and reviewers. An index is a statistic of the
cases of one configuration: weighted sums of what each case adds (:func:`each_case`), put together
by the functions of :mod:`trustlab.metrics.trust`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from trustlab.metrics import estimate as engine
from trustlab.metrics import schema, trust
from trustlab.metrics.estimate import (
    NAN,
    Line,
    Metric,
    Rows,
    Statistic,
    Values,
    between,
    quotient,
    ratio,
)
from trustlab.metrics.ties import check_allowed

RUN = ["model", "dataset", "level"]
KEYS = [*RUN, "configuration", "safety"]
RX = ["n_safe", "n_caution", "n_unsafe"]
TESTS = ["n_unflagged", "n_risky", "n_redundant"]
COUNTS = [
    "n_prescriptions", *RX, "n_rx_unknown", "n_rx_unreadable",
    "n_tests", *TESTS, "n_tests_unknown", "n_tests_unreadable",
]  # fmt: skip
COSINES = {"trust-x": "cosine", "medguard-x": "cosine_med"}
NEEDED = [
    *KEYS, "n_doctors", "case_id", "diagnoses", "diagnosis", "tied", "correct", "correct_share",
    "cosine", "cosine_missing", "cosine_med", "cosine_med_missing", *COUNTS, "plan_missing",
]  # fmt: skip
"""The columns of ``reviews``."""
OPTIONAL = {"n_no_answer": 0, "cosine_med_proxy": "", "unread": ""}
"""Further columns of ``reviews``, and what a table without them means."""
MEANS = {
    "accuracy": "right",
    "accuracy_shared": "shared",
    "cdr": "apart",
    "rdc": "cosine",
}
"""Index -> what it is the mean of, over the cases that have it."""
PROPOSALS = {
    "unsafe_rx_percent": ("prescriptions", "n_rx_rated"),
    "test_alerts_percent": ("tests", "n_tests_rated"),
}
"""Index -> what is proposed, and the count of those rated."""
PARTS = {
    "eti": ("accuracy", "cdr", "rdc"),
    "eti_percent": ("accuracy", "cdr", "rdc"),
    "osi": tuple(PROPOSALS),
    "fti": ("eti", "osi"),
    "fti_as_printed": ("eti", "osi"),
}
"""What each index is made of, parts first."""
BY_DEFINITION = "0 by definition with one doctor"
CDR_VARIANTS = {
    "largest vote": trust.cdr,
    "any disagreement": trust.any_disagreement,
    "unreadable disagrees": partial(trust.cdr, unreadable="disagrees"),
}
LOWEST = {"correct_share": 0, "cosine": -1, "cosine_med": -1}
"""Column of ``reviews`` whose highest value is 1 -> its lowest."""
Masks = dict[str, np.ndarray]  # index -> which cases (n,)
Reasons = dict[str, str]  # index -> why it has no value, or no interval


class Index(NamedTuple):
    """How the interval of an index is made.

    - ``kind``: of the interval.
    - ``low`` and ``high``: its lowest and highest value in ``trust-x``; in ``medguard-x`` all lie
      in 0 to 100.
    - ``hits`` and ``of``: of a share what is counted, and of what ('': of the cases).
    - ``far``: its differences are far smaller than they could be.
    """

    kind: str
    low: float
    high: float
    hits: str = ""
    of: str = ""
    far: bool = False


INTERVALS = {
    "accuracy": Index("share", 0.0, 1.0, hits="right"),
    "accuracy_shared": Index("share", 0.0, 1.0, hits="shared"),
    "cdr": Index("cdr", 0.0, 1.0),
    "rdc": Index("rdc", -1.0, 1.0, far=True),
    "eti": Index("eti", -0.3, 1.0),
    "eti_percent": Index("eti", -30.0, 100.0),
    "unsafe_rx_percent": Index("rated", 0.0, 100.0, hits="n_objected", of="n_rx_rated"),
    "test_alerts_percent": Index(
        "rated", 0.0, 100.0, hits="n_alerts", of="n_tests_rated"
    ),
    "osi": Index("osi", 0.0, 100.0, far=True),
    "fti": Index("fti", -15.0, 100.0, far=True),
    "fti_as_printed": Index("fti as printed", -0.15, 50.5, far=True),
}
INDICES = list(INTERVALS)


@dataclass(frozen=True)
class Choices:
    """The choices that the sources leave open; ``ValueError`` for one that is not allowed.
    See :mod:`trustlab.metrics.trust`; the default of ``rx_variant`` is the formulation's own."""

    formulation: str = "trust-x"
    rx_variant: str = ""
    cdr_variant: str = "largest vote"

    def __post_init__(self) -> None:
        if not self.rx_variant:
            headline = trust.HEADLINE.get(self.formulation, "")
            object.__setattr__(self, "rx_variant", headline)
        check_allowed("formulation", self.formulation, trust.FORMULATIONS)
        check_allowed("rx_variant", self.rx_variant, trust.RX_VARIANTS)
        check_allowed("cdr_variant", self.cdr_variant, CDR_VARIANTS)

    @property
    def is_trust_x(self) -> bool:
        """Whether accuracy, CDR and RDC are fractions."""
        return self.formulation == "trust-x"


def trust_indices(
    reviews: pd.DataFrame, formulation: str = "trust-x", **choices: Any
) -> pd.DataFrame:
    """Every index of :data:`INDICES` for every model, data set, level, configuration and safety.

    - ``reviews``: one row for each of these and each case, with the columns :data:`NEEDED`.
      ``diagnoses`` is a tuple with one entry for each doctor (None where unreadable), ``diagnosis``
      the panel's, ``tied`` the names that tied, ``correct_share`` the share of them that are right.
      ``cosine`` and ``cosine_med`` are means over doctors. Others count the plan's ratings, or give
      reasons for what is missing.
    - :data:`OPTIONAL`: ``n_no_answer`` counts doctors whose reply is no answer; others say who
      stood in for the biomedical encoder (``proxy`` of RDC), and why too few replies could be read.
    - Values are in percent, but accuracy, cdr, rdc and eti of ``trust-x`` are fractions: ``fti``
      uses ETI times 100, ``fti_as_printed`` does not. ``accuracy_shared`` counts a tie by
      ``correct_share``. Percentages pool the items of all readable plans.
    - ``n``: the cases behind an index; for ETI, OSI and FTI the fewest of their parts. ``missing``
      says where these differ. What is 0 by definition or by rule has no interval.
    - ``choices``: see :class:`Choices`. ``ValueError`` for others, and as in :func:`check_reviews`.
    """
    chosen = Choices(formulation, **choices)
    lines = []
    for label, own_reviews, interval_rows in configurations(
        check_reviews(reviews), chosen
    ):
        for line in _index_lines(own_reviews, interval_rows, chosen):
            lines.append({**label, **line})
    return schema.table(lines, [*KEYS, "formulation", "n_doctors"], ["proxy"])


def review_counts(
    reviews: pd.DataFrame, formulation: str = "trust-x", **choices: Any
) -> pd.DataFrame:
    """The counts behind :func:`trust_indices`: one row for each configuration and safety.
    ``n_judged`` of the ``n_cases`` are behind the accuracy. ``rx_unrated_percent`` and
    ``tests_unrated_percent`` are of what was proposed, with safety on.
    """
    chosen = Choices(formulation, **choices)
    lines = [
        label | _review_counts(own_reviews, interval_rows.asked)
        for label, own_reviews, interval_rows in configurations(
            check_reviews(reviews), chosen
        )
    ]
    return pd.DataFrame(lines).drop(columns="formulation")


def _review_counts(part: pd.DataFrame, cases: Any) -> Line:
    """The counts of one configuration's reviews, and of its cases (:func:`each_case`)."""
    summed = cases[[*COUNTS, "n_rx_rated", "n_tests_rated"]].sum()
    counts = summed.astype(int).to_dict()
    n_rx, n_tests = counts["n_prescriptions"], counts["n_tests"]
    rx_unrated = tests_unrated = NAN
    if part["safety"].iloc[0]:
        rx_unrated = _unrated_percent(n_rx, counts["n_rx_rated"])
        tests_unrated = _unrated_percent(n_tests, counts["n_tests_rated"])
    return {
        "n_cases": len(cases),
        "n_judged": int(cases["right"].notna().sum()),
        "n_ties": sum(len(names) > 0 for names in part["tied"]),
        "n_unreadable_diagnoses": sum(map(_n_unreadable, part["diagnoses"])),
        "n_no_plan": int((cases["planned"] == 0).sum()),
        "rx_unrated_percent": rx_unrated,
        "tests_unrated_percent": tests_unrated,
        **counts,
    }


def _unrated_percent(n_proposed: int, n_rated: int) -> float:
    if not n_proposed:
        return NAN
    return 100 * (n_proposed - n_rated) / n_proposed


def configurations(
    reviews: pd.DataFrame, choices: Choices
) -> Iterator[tuple[Line, pd.DataFrame, Rows]]:
    """What each configuration is, its reviews (n), and its rows (:func:`each_case`)."""
    for label, part in engine.groups(reviews, [*KEYS, "n_doctors"]):
        label["formulation"] = choices.formulation
        all_cases = np.ones(len(part), bool)
        cases = each_case(part, choices)
        yield label, part, Rows(cases, all_cases)


def each_case(part: pd.DataFrame, choices: Choices) -> pd.DataFrame:
    """What the cases (n) of one configuration add to its indices: ``case_id`` and numbers.
    ``right`` (accuracy's), ``shared``, ``apart`` (CDR's) and ``cosine``, NaN where missing;
    ``safety``, ``diagnosed`` and ``planned`` (a readable plan), 0 or 1; all counts, and how many
    are rated."""
    has_diagnosis = part["diagnosis"].notna()
    is_unanswered = part["n_no_answer"] >= part["n_doctors"]  # else it is wrong
    without_diagnosis = np.where(is_unanswered, np.nan, 0.0)
    objections = ["n_unsafe", "n_caution"]
    if choices.rx_variant == "unsafe":
        objections = ["n_unsafe"]
    cases = part[COUNTS].assign(
        right=part["correct"].where(has_diagnosis, without_diagnosis),
        shared=part["correct_share"].where(has_diagnosis, without_diagnosis),
        apart=part["diagnoses"].map(CDR_VARIANTS[choices.cdr_variant]),
        cosine=part[COSINES[choices.formulation]],
        safety=part["safety"],
        diagnosed=has_diagnosis,
        planned=part["plan_missing"].fillna("") == "",
        n_rx_rated=part[RX].sum(axis=1),
        n_tests_rated=part[TESTS].sum(axis=1),
        n_objected=part[objections].sum(axis=1),
        n_alerts=part[["n_risky", "n_redundant"]].sum(axis=1),
    )
    return cases.astype(float).assign(case_id=part["case_id"].astype(str))


def _mean_of_present(rows: Rows, column: str) -> np.ndarray:
    """The mean of a column's values but NaN, then that without each case; NaN without any."""
    values = rows[column]
    is_present = ~np.isnan(values)
    total = rows.total(np.where(is_present, values, 0.0))
    return quotient(total, rows.total(is_present))


def index_values(rows: Rows, choices: Choices) -> np.ndarray:
    """All of :data:`INDICES` of rows of :func:`each_case`, (indices, 1 + cases)."""
    formulation = choices.formulation
    full = 100
    if choices.is_trust_x:
        full = 1
    accuracy = full * _mean_of_present(rows, "right")
    accuracy_shared = full * _mean_of_present(rows, "shared")
    cdr = full * _mean_of_present(rows, "apart")
    cosine = _mean_of_present(rows, "cosine")
    rdc = trust.rdc(cosine, formulation)
    eti = trust.eti(accuracy, cdr, rdc, formulation=formulation)
    eti_percent = eti * (100 / full)
    n_with_safety = rows.total(rows["safety"])[0]
    safety = bool(n_with_safety)
    rx, tests = _proposal_percents(rows, choices, safety)
    osi = trust.osi(rx, tests, safety=safety, formulation=formulation)
    fti = trust.fti(eti, osi, formulation)
    fti_as_printed = trust.fti(eti, osi, formulation, as_printed=True)
    means = [accuracy, accuracy_shared, cdr, rdc, eti, eti_percent]
    return np.stack([*means, rx, tests, osi, fti, fti_as_printed])


def _proposal_percents(rows: Rows, choices: Choices, safety: bool) -> np.ndarray:
    """UnsafeRx % and TestAlerts %, (2, 1 + cases); NaN with safety off or without a plan."""

    def total(column: str) -> np.ndarray:
        return rows.total(rows[column])

    rx = trust.unsafe_rx_percent(
        total("n_unsafe"),
        total("n_caution"),
        total("n_rx_rated"),
        choices.rx_variant,
        total("n_prescriptions"),
    )
    tests = trust.test_alerts_percent(
        total("n_risky"), total("n_redundant"), total("n_tests_rated"), total("n_tests")
    )
    is_planned = total("planned") > 0
    return np.where(safety & is_planned, [rx, tests], np.nan)


@lru_cache
def statistics(choices: Choices) -> dict[str, Statistic]:
    """Index -> its statistic, of rows of :func:`each_case`."""
    by_index = {}
    for place, (name, index) in enumerate(INTERVALS.items()):
        low, high = 0.0, 100.0
        if choices.is_trust_x:
            low, high = index.low, index.high
        interval = None
        if index.hits:
            is_uneven = name in PROPOSALS
            share = ratio(index.hits, index.of, unit=high, uneven=is_uneven)
            interval = share.interval
        by_index[name] = Statistic(
            _values_at(place, choices),
            index.kind,
            between(low, high),
            interval,
            far=index.far,
        )
    return by_index


def _values_at(place: int, choices: Choices) -> Values:
    """The values of the index at a place of :data:`INDICES`."""
    return lambda rows: index_values(rows, choices)[place]


def answered(each: pd.DataFrame, choices: Choices) -> pd.DataFrame:
    """Which cases of one configuration (:func:`each_case`) could answer each index, (n, indices).
    Those with all of its parts: for accuracy a judged diagnosis; for OSI a readable plan of whose
    prescriptions one at least is rated or none proposed, and its tests likewise, or a value by
    rule."""
    is_diagnosed = each["diagnosed"] > 0
    judged_right = each["right"].where(is_diagnosed)
    judged = each.assign(right=judged_right)
    masks = _cases_by_index(judged, choices, np.logical_and.reduce)
    return pd.DataFrame(masks, index=each.index)


def _cases_by_index(
    cases: pd.DataFrame,
    choices: Choices,
    join_parts: Callable[[list[np.ndarray]], np.ndarray],
) -> Masks:
    """Which cases have each index; one made of parts has what ``join_parts`` makes of theirs."""
    masks = {name: cases[column].notna().to_numpy() for name, column in MEANS.items()}
    safety = cases["safety"] > 0
    is_planned = cases["planned"] > 0
    for name, (kind, n_rated) in PROPOSALS.items():
        is_rated = (cases[n_rated] > 0) | (cases[f"n_{kind}"] == 0)
        has_index = is_rated & is_planned & safety
        if choices.is_trust_x:
            has_index |= ~safety  # 0 by rule
        masks[name] = has_index.to_numpy()
    for name, parts in PARTS.items():
        masks[name] = join_parts([masks[part] for part in parts])
    return masks


def _fewest(masks: list[np.ndarray]) -> np.ndarray:
    return min(masks, key=np.sum)


def _index_lines(part: pd.DataFrame, rows: Rows, choices: Choices) -> Iterator[Line]:
    """A line for each index of one configuration."""
    values = dict(zip(INDICES, index_values(rows, choices), strict=True))
    value = {name: float(of_index[0]) for name, of_index in values.items()}
    rated_cases: Masks = {}
    for name, (_, n_rated) in PROPOSALS.items():
        is_rated = rows.asked[n_rated] > 0
        rated_cases[name] = is_rated.to_numpy()
    reasons = _undefined_reasons(part, value, choices)
    zero_reasons = _zero_reasons(part, value, rated_cases)
    index_cases = _cases_by_index(rows.asked, choices, _fewest)
    counted_cases = index_cases | rated_cases
    interval_rows = _interval_rows(index_cases, rated_cases, zero_reasons)
    for name, statistic in statistics(choices).items():
        notes = [zero_reasons.get(name, "")]
        if not np.isnan(value[name]):
            notes.append(_note_of_parts(name, index_cases))
        note = "; ".join(filter(None, notes))
        measured = replace(rows, known=interval_rows[name], none=reasons[name])
        computed = replace(statistic, values=lambda _, name=name: values[name])
        metric = Metric(computed, undefined=reasons[name])
        line = engine.estimate(measured, metric, note=note)
        if name in zero_reasons:
            line["low"] = NAN
            line["high"] = NAN
            line["missing"] = zero_reasons[name]
        n = int(counted_cases[name].sum())
        counts = {"n": n, "n_cases": n, "n_missing": len(part) - n}
        proxy = ""
        if name == "rdc":
            proxy = _proxy(part, choices)
        yield {**line, **counts, "metric": name, "proxy": proxy}


def _interval_rows(
    index_cases: Masks, rated_cases: Masks, zero_reasons: Reasons
) -> Masks:
    """The cases over which each index has its interval: those that it counts, but all of them where
    nothing was proposed; for OSI and FTI the fewest of their parts."""
    interval_rows = index_cases | rated_cases
    smallest = [index_cases["osi"]]
    for name, mask in rated_cases.items():
        if mask.any():
            smallest.append(mask)
        if name in zero_reasons:
            interval_rows[name] = np.ones(len(mask), bool)
    interval_rows["osi"] = _fewest(smallest)
    fti_rows = _fewest([index_cases["eti"], interval_rows["osi"]])
    return interval_rows | {"fti": fti_rows, "fti_as_printed": fti_rows}


def _proxy(part: Any, choices: Choices) -> str:
    """What stood in for the biomedical encoder, or ''."""
    if choices.is_trust_x:
        return ""
    proxies = part["cosine_med_proxy"].fillna("").unique()
    return ", ".join(filter(None, proxies))


def _note_of_parts(name: str, index_cases: Masks) -> str:
    """How many cases each part of an index has, where these differ, or ''."""
    parts = PARTS.get(name, ())
    n_by_part = {part: index_cases[part].sum() for part in parts}
    if len(set(n_by_part.values())) < 2:
        return ""
    counts = ", ".join(f"{part} {n}" for part, n in n_by_part.items())
    return f"n differs: {counts}"


def _undefined_reasons(part: Any, value: dict[str, float], choices: Choices) -> Reasons:
    """Index -> why it would have no value."""
    cosine_missing = part[f"{COSINES[choices.formulation]}_missing"]
    reasons = {
        "accuracy": "no judged diagnosis",
        "accuracy_shared": "no judged diagnosis",
        "cdr": "no case has enough readable diagnoses",
        "rdc": engine.most_frequent(part.assign(missing=cosine_missing)),
    }
    for name, parts in PARTS.items():
        undefined = [p for p in parts if np.isnan(value[p])]
        reasons[name] = f"without {' and '.join(undefined)}"
    for name, (kind, _) in PROPOSALS.items():
        reasons[name] = f"none of {part[f'n_{kind}'].sum()} {kind} rated"
    operational = [*PROPOSALS, "osi"]
    safety = part["safety"].iloc[0]
    if not safety:
        reasons |= dict.fromkeys(operational, "safety off")
    elif part["plan_missing"].fillna("").ne("").all():
        reasons |= dict.fromkeys(operational, "no readable plan")
    unread = part["unread"].iloc[0]
    if unread:
        for name, reason in reasons.items():
            if safety or reason != "safety off":
                reasons[name] = unread
    return reasons


def _zero_reasons(part: Any, value: dict[str, float], rated_cases: Masks) -> Reasons:
    """Index -> why it is 0 without anybody's doing."""
    reasons = {}
    n_doctors = part["n_doctors"].iloc[0]
    if n_doctors == 1:
        reasons["cdr"] = BY_DEFINITION
    for name, (kind, _) in PROPOSALS.items():
        if not rated_cases[name].any():
            reasons[name] = f"no rated {kind} (0 proposed)"
    if not part["safety"].iloc[0]:
        reasons["osi"] = "0 by rule"
    return {name: reason for name, reason in reasons.items() if value[name] == 0}


def check_reviews(reviews: pd.DataFrame) -> pd.DataFrame:
    """``reviews`` with all of :data:`OPTIONAL`; ``ValueError`` for none, lacking columns, and a bad
    row."""
    schema.need(reviews, NEEDED, "reviews")
    if reviews.empty:
        raise ValueError(
            "reviews hold no row; a row a case and configuration is needed"
        )
    defaults = {
        name: value for name, value in OPTIONAL.items() if name not in reviews.columns
    }
    reviews = reviews.assign(**defaults)
    safety = reviews["safety"]
    is_off = ~safety.astype(bool)
    correct = reviews["correct"]
    diagnoses = reviews["diagnoses"]
    counts: Any = reviews[[*COUNTS, "n_no_answer"]].astype(float)
    is_count = (counts >= 0) & (counts % 1 == 0)
    proposed = counts[["n_prescriptions", "n_tests"]].to_numpy()
    n_rated = [counts[RX].sum(axis=1), counts[TESTS].sum(axis=1)]
    rated = np.stack(n_rated, axis=1)
    has_plan = reviews["plan_missing"].fillna("").eq("")
    n_diagnoses = diagnoses.map(_n_diagnoses)
    n_teams: Any = reviews.groupby(KEYS, observed=True)["n_doctors"].transform(
        "nunique"
    )
    n_unreadable = diagnoses.map(_n_unreadable)
    no_answer_fits = is_count["n_no_answer"] & (counts["n_no_answer"] <= n_unreadable)
    refuse = partial(schema.refuse, reviews)
    refuse(~safety.isin([True, False]), "safety must be True or False")
    is_repeated = reviews.duplicated([*KEYS, "case_id"])
    refuse(is_repeated, "each case may come once in a configuration")
    refuse(correct.notna() & ~correct.isin([0, 1]), "correct must be 0, 1 or NaN")
    refuse(~is_count[COUNTS].all(axis=1), "counts must be whole and not negative")
    too_many = (rated > proposed).any(axis=1)
    refuse(too_many, "no more prescriptions or tests may be rated than were proposed")
    refuse(rated.any(axis=1) & is_off, "with safety off nothing may be rated")
    without_plan = (
        "a plan with a reason in plan_missing has no prescriptions and no tests"
    )
    refuse(proposed.any(axis=1) & ~has_plan, without_plan)
    has_entries = n_diagnoses == reviews["n_doctors"]
    refuse(
        ~has_entries, "diagnoses must be a tuple with an entry for each of n_doctors"
    )
    refuse(n_teams > 1, "a configuration has one n_doctors")
    at_most = "n_no_answer must be whole, and at most the diagnoses that are None"
    refuse(~no_answer_fits, at_most)
    for name, low in LOWEST.items():
        values = reviews[name].astype(float).fillna(low)
        is_within = values.between(low - trust.ROUNDING, 1 + trust.ROUNDING)
        refuse(~is_within, f"{name} must lie between {low} and 1")
    return reviews


def _n_diagnoses(diagnoses: Any) -> int:
    if not isinstance(diagnoses, tuple):
        return -1
    return len(diagnoses)


def _n_unreadable(diagnoses: Any) -> int:
    if not isinstance(diagnoses, tuple):
        return 0
    return sum(name is None for name in diagnoses)
