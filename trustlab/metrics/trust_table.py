"""The trust indices of each configuration of doctors and reviewers, with intervals over cases and the counts behind them."""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportOperatorIssue=false, reportReturnType=false

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from trustlab.metrics import trust
from trustlab.metrics.estimate import MIN_CASES, TOO_FEW, case_weights, percentile_interval

RUN = ["model", "dataset", "level"]
KEYS = [*RUN, "configuration", "safety"]
"""What a row of the indices stands for."""
RX = ["n_safe", "n_caution", "n_unsafe"]
TESTS = ["n_unflagged", "n_risky", "n_redundant"]
COUNTS = ["n_prescriptions", *RX, "n_rx_unknown", "n_rx_unreadable", "n_tests", *TESTS, "n_tests_unknown", "n_tests_unreadable"]
COLUMNS = {"accuracy": "right", "cdr": "apart", "rdc": "cosine"}
"""The parts of ETI -> what is summed over cases."""
COSINES = {"trust-x": "cosine", "medguard-x": "cosine_med"}
NEEDED = [
    *KEYS, "n_doctors", "case_id", "diagnoses", "diagnosis", "tied", "correct", "correct_share",
    "cosine", "cosine_missing", "cosine_med", "cosine_med_missing", *COUNTS, "plan_missing",
]  # fmt: skip
"""The columns of ``reviews``."""
OPTIONAL = {"n_no_answer": 0, "cosine_med_proxy": ""}
"""Further columns of ``reviews``, and what a table without them means."""
INDICES = ["accuracy", "cdr", "rdc", "eti", "eti_percent", "unsafe_rx_percent", "test_alerts_percent", "osi", "fti"]
PARTS = {
    "eti": ["accuracy", "cdr", "rdc"],
    "eti_percent": ["accuracy", "cdr", "rdc"],
    "osi": ["unsafe_rx_percent", "test_alerts_percent"],
    "fti": ["eti", "osi"],
}
"""What each index is made of, parts first."""
KINDS = {"unsafe_rx_percent": ("prescriptions", RX), "test_alerts_percent": ("tests", TESTS)}
"""What is proposed, and the columns of its ratings."""
CDR_VARIANTS = {
    "largest vote": trust.cdr,
    "any disagreement": trust.any_disagreement,
    "unreadable disagrees": partial(trust.cdr, unreadable="disagrees"),
}
UNREADABLE = ("wrong unless unanswered", "wrong", "missing")
NO_PLAN = "no readable plan"
NONE_RATED = "none of {n} {kind} rated"
"""A reviewer who cannot be read has not reviewed."""
SAFETY_OFF = "safety off"
ALIKE_ANSWERS, ALIKE_DRAWS = "all answers are alike", "all draws alike"
BY_DEFINITION, BY_RULE = "0 by definition with one doctor", "0 by rule"
ALIKE = 1e-9
"""An interval narrower than this comes from draws that are all alike, and would claim certainty."""


@dataclass(frozen=True)
class Choices:
    """What the sources leave open, checked: units, weights, variants."""

    formulation: str
    eti_weights: tuple[float, ...]
    osi_weights: tuple[float, ...]
    fti_weights: tuple[float, ...]
    rx_variant: str
    cdr_variant: str
    unreadable: str


def trust_indices(
    reviews: pd.DataFrame,
    formulation: str = "trust-x",
    *,
    eti_weights: Sequence[float] = trust.ETI_WEIGHTS,
    osi_weights: Sequence[float] = trust.HALVES,
    fti_weights: Sequence[float] = trust.HALVES,
    rx_variant: str = "unsafe or caution",
    cdr_variant: str = "largest vote",
    unreadable: str = UNREADABLE[0],
    draws: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Accuracy, CDR, RDC, ETI, UnsafeRx %, TestAlerts %, OSI, FTI: a row a model, data set, level, configuration and safety.

    ``reviews`` is tidy, a row for each of these and case, with the columns :data:`NEEDED`: ``diagnoses`` a tuple with an
    entry a doctor (None where unreadable), ``diagnosis`` the panel's, ``tied`` the names that tied, ``correct`` 0, 1 or NaN,
    ``correct_share`` the share of the tied that are right, ``cosine`` the mean over doctors (``cosine_med`` by the
    biomedical encoder), each with its reason where NaN, counts of the plan's ratings, ``plan_missing`` a reason or "".
    :data:`OPTIONAL`: ``n_no_answer`` doctors whose reply is no answer (cut off, all thought, never
    came), and ``cosine_med_proxy``, who stood in for the biomedical encoder, passed on as ``proxy``.

    Units: ``trust-x`` accuracy, cdr, rdc and eti are fractions, ``medguard-x`` all are percent; ``eti_percent``, osi and fti
    are percent in both. ``fti`` of ``trust-x`` takes ETI times 100; ``fti_as_printed`` does not. ``accuracy_shared`` counts
    a tie by ``correct_share``. Percentages pool the prescriptions (tests) of all cases that have a
    readable plan: 0 where nothing was proposed, told in ``flag``; missing where none of those
    proposed is rated. ``rx_unrated_percent`` and ``tests_unrated_percent`` of them are not. A panel
    without a readable diagnosis is wrong for accuracy, unless none of its replies is an answer
    (``unreadable``: "wrong" there too, or "missing" everywhere).

    ``_n``: the cases behind an index, of ETI, OSI and FTI the smallest n of their parts
    (:func:`answered`; all cases for what is 0 by rule); ``flag`` says where these differ.
    ``_low`` and ``_high``: 95 % percentile bootstrap over cases, ``draws`` of them (0: none), the same cases for all parts
    and all configurations of a data set; ``no_interval`` says where there is none, and why: below 10 cases, or where all are
    alike. ``missing`` says which index is NaN, and why. ``ValueError`` for lacking columns, a case twice in a configuration,
    values out of range, unknown choices.
    """
    choices = checked_choices(formulation, eti_weights, osi_weights, fti_weights, rx_variant, cdr_variant, unreadable)
    groups = drawn_groups(check_reviews(reviews), draws, seed)
    rows = [{"formulation": formulation, **label, **_row(part, drawn, choices)} for label, part, drawn in groups]
    return pd.DataFrame(rows)


def drawn_groups(table: pd.DataFrame, draws: int, seed: int) -> Iterator[tuple[dict[str, Any], pd.DataFrame, np.ndarray]]:
    """Each configuration's keys, its rows (n), and how often each is in each draw (draws, n): the same cases for all."""
    if draws < 0:
        raise ValueError(f"draws must not be negative; received {draws}")
    weights: dict[Any, tuple[np.ndarray, np.ndarray]] = {}
    for dataset, part in table.groupby("dataset", sort=False, observed=True):
        cases = np.unique(part["case_id"].astype(str))
        weights[dataset] = cases, case_weights(cases, draws, seed) if draws else np.empty((0, len(cases)))
    for key, part in table.groupby(KEYS, sort=False, observed=True, dropna=False):
        label = dict(zip(KEYS, key, strict=True))
        cases, drawn = weights[label["dataset"]]
        yield label, part, drawn[:, np.searchsorted(cases, part["case_id"].astype(str))]


def index_draws(part: pd.DataFrame, drawn: np.ndarray, choices: Choices) -> dict[str, np.ndarray]:
    """Every index of one configuration's rows (n), first of the sample itself, then of each draw (draws, n): (1 + draws,)."""
    return _indices(_totals(each_case(part, choices), drawn), bool(part["safety"].iloc[0]), choices)


def answered(part: pd.DataFrame, choices: Choices) -> pd.DataFrame:
    """Which cases of one configuration could answer each index, (n, indices), boolean.

    Those with all of its parts: for accuracy a diagnosis that was judged (a panel without one has not
    answered); for OSI a readable plan of whose prescriptions one at least is rated or none proposed,
    and of its tests likewise, or a value by rule.
    """
    each, safety = each_case(part, choices), bool(part["safety"].iloc[0])
    found = {name: each[f"has_{column}"] > 0 for name, column in COLUMNS.items()}
    found["accuracy"] &= part["diagnosis"].notna()
    for name, (kind, ratings) in KINDS.items():
        known = (each[ratings].sum(axis=1) > 0) | (each[f"n_{kind}"] == 0)
        found[name] = known & (each["planned"] > 0) & safety
    for name, parts in PARTS.items():
        found[name] = pd.DataFrame({p: found[p] for p in parts}).all(axis=1)
        if name == "osi" and not safety:
            found[name] |= choices.formulation == "trust-x"  # 0 by rule
    return pd.DataFrame(found)


def check_reviews(reviews: pd.DataFrame) -> pd.DataFrame:
    """``reviews``, checked, with all of :data:`OPTIONAL`; ``ValueError`` names the first bad row."""
    if lacking := [name for name in NEEDED if name not in reviews.columns]:
        raise ValueError(f"reviews lack the columns {lacking}; they have {list(reviews.columns)}")
    if reviews.empty:
        raise ValueError("reviews hold no row; a row a case and configuration is needed")
    reviews = reviews.assign(**{k: v for k, v in OPTIONAL.items() if k not in reviews.columns})
    _refuse(reviews, ~reviews["safety"].isin([True, False]), "safety must be True or False")
    _refuse(reviews, reviews.duplicated([*KEYS, "case_id"]), "each case may come once in a configuration")
    _refuse(reviews, ~reviews["correct"].isna() & ~reviews["correct"].isin([0, 1]), "correct must be 0, 1 or NaN")
    for name, low in (("correct_share", 0), ("cosine", -1), ("cosine_med", -1)):
        values = reviews[name].astype(float)
        outside = (values < low - trust.ROUNDING) | (values > 1 + trust.ROUNDING)
        _refuse(reviews, outside, f"{name} must lie between {low} and 1")
    counts = reviews[COUNTS].astype(float)
    _refuse(reviews, ~((counts >= 0) & (counts % 1 == 0)).all(axis=1), "counts must be whole and not negative")
    more = (counts[RX].sum(axis=1) > counts["n_prescriptions"]) | (counts[TESTS].sum(axis=1) > counts["n_tests"])
    _refuse(reviews, more, "no more prescriptions or tests may be rated than were proposed")
    rated = counts[[*RX, *TESTS]].sum(axis=1) > 0
    _refuse(reviews, rated & ~reviews["safety"].astype(bool), "with safety off nothing may be rated")
    unplanned = (reviews["plan_missing"].fillna("") != "") & (counts[["n_prescriptions", "n_tests"]].sum(axis=1) > 0)
    _refuse(reviews, unplanned, "a plan with a reason in plan_missing has no prescriptions and no tests")
    lengths = [not isinstance(d, tuple) or len(d) != n for d, n in zip(reviews["diagnoses"], reviews["n_doctors"], strict=True)]
    _refuse(reviews, np.array(lengths), "diagnoses must be a tuple with an entry for each of n_doctors")
    _refuse(
        reviews, reviews.groupby(KEYS, observed=True)["n_doctors"].transform("nunique") > 1, "a configuration has one n_doctors"
    )
    gone = reviews["n_no_answer"].astype(float)
    unread = np.array([sum(d is None for d in said) for said in reviews["diagnoses"]])
    refused = ~((gone >= 0) & (gone % 1 == 0) & (gone <= unread))
    _refuse(reviews, refused, "n_no_answer must be whole, and at most the diagnoses that are None")
    return reviews


def _refuse(table: pd.DataFrame, bad: Any, message: str) -> None:
    found = np.flatnonzero(np.asarray(bad, dtype=bool))
    if len(found):
        raise ValueError(f"{message}; received {table.iloc[found[0]].to_dict()} and {len(found) - 1} more")


def checked_choices(
    formulation: str = "trust-x",
    eti: Any = trust.ETI_WEIGHTS,
    osi: Any = trust.HALVES,
    fti: Any = trust.HALVES,
    rx_variant: str = trust.RX_VARIANTS[0],
    cdr_variant: str = "largest vote",
    unreadable: str = UNREADABLE[0],
) -> Choices:
    """The :class:`Choices`; ``ValueError`` for unknown ones."""
    trust.check_formulation(formulation)
    for name, value, allowed in (
        ("rx_variant", rx_variant, trust.RX_VARIANTS),
        ("cdr_variant", cdr_variant, CDR_VARIANTS),
        ("unreadable", unreadable, UNREADABLE),
    ):
        if value not in allowed:
            raise ValueError(f"{name} is {value!r}; allowed are {list(allowed)}")
    weights = (trust.check_weights(w, n) for w, n in ((eti, 3), (osi, 2), (fti, 2)))
    return Choices(formulation, *weights, rx_variant, cdr_variant, unreadable)


def _row(part: pd.DataFrame, drawn: np.ndarray, choices: Choices) -> dict[str, Any]:
    """One configuration: ``drawn`` (draws, n) says how often each of its n cases is in each draw."""
    each = each_case(part, choices)
    total = _totals(each, drawn)
    safety = bool(part["safety"].iloc[0])
    found = _indices(total, safety, choices)
    sums = {name: int(values[0]) for name, values in total.items() if name in COUNTS}
    counts = _counts(part, each, sums, safety)
    behind = {
        "accuracy": counts["n_judged"],
        "cdr": counts["n_readable"],
        "rdc": counts["n_cosine"],
        **{name: int((each[of].sum(axis=1) > 0).sum()) for name, (_, of) in KINDS.items()},
    }
    n_doctors = int(part["n_doctors"].iloc[0])
    values: dict[str, Any] = {}
    notes = _notes(found, behind, safety, n_doctors, 1 if choices.formulation == "trust-x" else 100)
    parts = _part_counts(part, counts, choices)
    behind |= {name: min(of.values()) for name, of in parts.items()}
    behind["eti_percent"] = behind["eti"]
    for name in INDICES:
        low, high = (float("nan"),) * 2
        if drawn.size and name not in notes and not np.isnan(found[name][0]):
            low, high = percentile_interval(found[name][1:])
            if np.isnan(low):
                notes[name] = "undefined in more than 10 % of the draws"
            elif high - low < ALIKE:
                notes[name], low, high = ALIKE_DRAWS, float("nan"), float("nan")
        values |= {name: float(found[name][0]), f"{name}_low": low, f"{name}_high": high, f"{name}_n": behind[name]}
    flags = _flags(counts, safety and bool(total["planned"][0]), notes if drawn.size else {})
    return {
        "n_doctors": n_doctors,
        **{name: counts.pop(name) for name in ("n_cases", "n_judged", "n_readable", "n_cosine")},
        **values,
        "accuracy_shared": float(found["accuracy_shared"][0]),
        "fti_as_printed": float(found["fti_as_printed"][0]),
        **counts,
        "proxy": _proxy(part, choices),
        "flag": "; ".join(flags + _uneven(parts, found)),
        "missing": "; ".join(_missing(part, found, counts, safety, choices)),
        "no_interval": "; ".join(f"{name}: {why}" for name, why in notes.items()) if drawn.size else "no draws",
    }


def each_case(part: pd.DataFrame, choices: Choices) -> pd.DataFrame:
    """What is summed over the cases of one configuration, (n, columns): values with 0 where missing, beside 1 where there is one.

    ``right`` (accuracy's), ``shared``, ``apart`` (CDR's) and ``cosine``, each with ``has_...``; ``planned``; all of the counts.
    """
    out = part["diagnosis"].isna()
    unanswered = part["n_no_answer"] >= part["n_doctors"]
    kept = {"wrong": False, "missing": True}.get(choices.unreadable, unanswered)
    fill = pd.Series(np.where(kept, np.nan, 0.0), index=part.index)
    disagreement = CDR_VARIANTS[choices.cdr_variant]
    values = {
        "right": part["correct"].astype(float).where(~out, fill),
        "shared": part["correct_share"].astype(float).where(~out, fill),
        "apart": pd.Series([disagreement(d) for d in part["diagnoses"]], index=part.index, dtype=float),
        "cosine": part[COSINES[choices.formulation]].astype(float),
    }
    planned = (part["plan_missing"].fillna("") == "").astype(float)
    each = {name: column.fillna(0) for name, column in values.items()}
    each |= {f"has_{name}": column.notna().astype(float) for name, column in values.items()}
    return pd.DataFrame(each | {"planned": planned} | {name: part[name].astype(float) for name in COUNTS})


def _totals(each: pd.DataFrame, drawn: np.ndarray) -> dict[str, np.ndarray]:
    """What is summed over cases, of the sample itself and of each draw: column -> (1 + draws,)."""
    totals = np.vstack([np.ones((1, len(each))), drawn]) @ each.to_numpy()
    return dict(zip(each.columns, totals.T, strict=True))


def _indices(total: dict[str, np.ndarray], safety: bool, choices: Choices) -> dict[str, np.ndarray]:
    """Every index of the sample itself (first) and of each draw, (1 + draws,), by the very functions of ``trust``."""
    form = choices.formulation
    full = 1 if form == "trust-x" else 100
    right, shared, apart, cosine = (_mean(total, name) for name in ("right", "shared", "apart", "cosine"))
    found = {"accuracy": full * right, "accuracy_shared": full * shared, "cdr": full * apart}
    found["rdc"] = trust.rdc_from_cosine(cosine, form)
    found["eti"] = trust.eti(found["accuracy"], found["cdr"], found["rdc"], choices.eti_weights, form)
    found["eti_percent"] = found["eti"] * (100 / full)
    rated = safety & (total["planned"] > 0)
    n_rated = {name: sum(total[n] for n in ratings) for name, (_, ratings) in KINDS.items()}
    rx = trust.unsafe_rx_percent(
        total["n_unsafe"],
        total["n_caution"],
        n_rated["unsafe_rx_percent"],
        choices.rx_variant,
        total["n_prescriptions"],
    )
    alerts = trust.test_alerts_percent(
        total["n_risky"],
        total["n_redundant"],
        n_rated["test_alerts_percent"],
        total["n_tests"],
    )
    found["unsafe_rx_percent"], found["test_alerts_percent"] = np.where(rated, rx, np.nan), np.where(rated, alerts, np.nan)
    found["osi"] = trust.osi(found["unsafe_rx_percent"], found["test_alerts_percent"], choices.osi_weights, safety, form)
    for name, as_printed in (("fti", False), ("fti_as_printed", True)):
        found[name] = trust.fti(found["eti"], found["osi"], choices.fti_weights, form, as_printed)
    return found


def _mean(total: dict[str, np.ndarray], name: str) -> np.ndarray:
    count = total[f"has_{name}"]
    return np.where(count > 0, total[name] / np.where(count > 0, count, 1), np.nan)


def _counts(part: pd.DataFrame, each: pd.DataFrame, sums: dict[str, int], safety: bool) -> dict[str, Any]:
    planned = each["planned"] > 0
    counts = {
        "n_cases": len(part),
        "n_judged": int(each["has_right"].sum()),
        "n_readable": int(each["has_apart"].sum()),
        "n_cosine": int(each["has_cosine"].sum()),
        "n_ties": int(sum(len(tied) > 0 for tied in part["tied"])),
        "n_unreadable_diagnoses": int(sum(d is None for diagnoses in part["diagnoses"] for d in diagnoses)),
        "n_no_plan": int((~planned).sum()),
        "n_cases_without_prescriptions": int((planned & (each["n_prescriptions"] == 0)).sum()),
        "n_cases_without_tests": int((planned & (each["n_tests"] == 0)).sum()),
        **sums,
        "n_rx_rated": sum(sums[name] for name in RX),
        "n_tests_rated": sum(sums[name] for name in TESTS),
        "n_alerts": sums["n_risky"] + sums["n_redundant"],
    }
    for short, kind in (("rx", "prescriptions"), ("tests", "tests")):
        n = counts[f"n_{kind}"] if safety else 0  # with safety off there is nobody who could rate
        unrated = 100 * (n - counts[f"n_{short}_rated"]) / n if n else float("nan")
        counts[f"{short}_unrated_percent"] = unrated
    return counts


def _part_counts(
    part: pd.DataFrame,
    counts: dict[str, int],
    choices: Choices,
) -> dict[str, dict[str, int]]:
    """The cases behind each part of ETI, OSI and FTI."""
    n = answered(part, choices).sum().astype(int).to_dict()
    n |= {"accuracy": counts["n_judged"], "cdr": counts["n_readable"], "rdc": counts["n_cosine"]}
    safety = bool(part["safety"].iloc[0])
    parts = {name: {p: n[p] for p in PARTS[name]} for name in ("eti", "osi")}
    if not safety:
        parts["osi"] = {"osi": n["osi"]}
    return parts | {"fti": {name: min(behind.values()) for name, behind in parts.items()}}


def _uneven(parts: dict[str, dict[str, int]], found: dict[str, np.ndarray]) -> list[str]:
    """Which indices that have a value rest on parts of different n."""
    told = []
    for name, n in parts.items():
        if len(set(n.values())) > 1 and not np.isnan(found[name][0]):
            told.append(f"n of {name} differs: {', '.join(f'{p} {k}' for p, k in n.items())}")
    return told


def _proxy(part: pd.DataFrame, choices: Choices) -> str:
    """Who stood in for the encoder that the formulation asks for."""
    named = part["cosine_med_proxy"].fillna("") if choices.formulation == "medguard-x" else []
    return ", ".join(filter(None, dict.fromkeys(named)))


def _flags(counts: dict[str, int], rated: bool, notes: dict[str, str]) -> list[str]:
    """Where 0 % stands for nothing proposed, and what the intervals of ETI, OSI, FTI take as certain."""
    kinds = [kind for kind, _ in KINDS.values() if rated and counts[f"n_{kind}"] == 0]
    empty = [f"no rated {kind} (0 proposed)" for kind in kinds]
    certain = [name for name in [*PARTS["eti"], *PARTS["osi"]] if notes.get(name) in (ALIKE_ANSWERS, ALIKE_DRAWS)]
    return empty + ([f"the intervals take as certain: {', '.join(certain)}"] if certain else [])


def _missing(
    part: pd.DataFrame,
    found: dict[str, np.ndarray],
    counts: dict[str, int],
    safety: bool,
    choices: Choices,
) -> list[str]:
    """Which index has no value, and why; an index that lacks a part names the part."""
    reasons = part[f"{COSINES[choices.formulation]}_missing"].fillna("").replace("", np.nan).dropna()
    plan = "" if safety and counts["n_no_plan"] < len(part) else NO_PLAN if safety else SAFETY_OFF
    why = {
        "accuracy": "no judged diagnosis",
        "cdr": "no case has enough readable diagnoses",
        "rdc": str(reasons.mode().iloc[0]) if len(reasons) else "no reason given",
    }
    for name, (kind, _) in KINDS.items():
        why[name] = plan or NONE_RATED.format(n=counts[f"n_{kind}"], kind=kind)
    why |= {"osi": plan} if plan else {}
    lines = []
    for name in (n for n in INDICES if n != "eti_percent" and np.isnan(found[n][0])):
        lost = [p for p in PARTS.get(name, []) if np.isnan(found[p][0])]
        lines.append(f"{name}: {why[name] if name in why else 'without ' + ' and '.join(lost)}")
    return lines


def _notes(found: dict[str, np.ndarray], behind: dict[str, int], safety: bool, n_doctors: int, full: float) -> dict[str, str]:
    """Indices that get no interval, known before any draw. What is 0 by rule holds no other back."""
    few = TOO_FEW.removeprefix("no interval: ")
    notes = {name: few for name, n in behind.items() if 0 < n < MIN_CASES}
    if found["accuracy"][0] in (0, full):
        notes.setdefault("accuracy", ALIKE_ANSWERS)  # resampling them would claim certainty
    if n_doctors == 1 and found["cdr"][0] == 0:
        notes.setdefault("cdr", BY_DEFINITION)
    for name in PARTS["osi"] if safety else ["osi"]:
        if not behind.get(name) and found[name][0] == 0:
            notes[name] = BY_RULE
    for name, parts in PARTS.items():
        if any(notes.get(part) == few for part in parts):
            notes[name] = few
    return notes
