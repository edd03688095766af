"""What each method costs in replies, tokens, seconds and money, and which are worth it."""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportIndexIssue=false

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pandas as pd

from trustlab.collect import SAMPLE_NEEDS
from trustlab.confidence import METHODS, Method
from trustlab.confidence.cost import readers
from trustlab.metrics import schema

ANSWER = "diagnosis"
"""The purpose of the request that gives the answer itself."""
PURPOSES: tuple[tuple[frozenset[str], tuple[str, ...]], ...] = (
    (SAMPLE_NEEDS, ("samples",)),
    (frozenset({"probes.ce"}), ("ce",)),
    (frozenset({"probes.cot_ce"}), ("cot_ce",)),
    (frozenset({"probes.topk_ce"}), ("topk_ce",)),
    (frozenset({"probes.p_true"}), ("p_true",)),
    (frozenset({"assessment"}), ("keyword", "profile", "evidence")),
    (frozenset({"panel", "panel.cosines"}), ("doctor",)),
)
"""Needs, and the purposes of the requests that any of them adds to the answer's."""
ASSESSED = ("keyword", "profile", "evidence")
CALLS = ("purpose", "n", "n_tokens_in", "n_tokens_out", "seconds", "n_made", "n_cached", "model")
PROMPTS = ("once", "each")
AMOUNTS = ("replies", "tokens_in", "tokens_out", "seconds", "usd")
COSTS = [
    "model", "method", "family", "purposes", "n_answers", "n_values",
    "n_replies", "n_tokens_in", "n_tokens_out", "seconds", "usd",
    "extra_replies", "extra_tokens_in", "extra_tokens_out", "extra_seconds", "extra_usd",
    "total_replies", "total_tokens_in", "total_tokens_out", "total_seconds", "total_usd",
    "timed", "not_counted", "missing",
]  # fmt: skip
UNTIMED = "seconds unknown: replies came from the cache"
UNITS = ("replies", "tokens", "seconds", "usd")
"""What a cost can be counted in; tokens are those in and out together."""
PARETO = ["model", "dataset", "method", "family", "level", "cost", "unit"]


class Asked(Protocol):
    """What a run must hold: its tables, and ``parameters``.

    These with ``methods`` and, where there is one, ``assessor``.
    """

    @property
    def answers(self) -> pd.DataFrame:
        """One row per case, level and model."""
        ...

    @property
    def confidence(self) -> pd.DataFrame:
        """One row per case, level, model and method."""
        ...

    @property
    def calls(self) -> pd.DataFrame:
        """One row per request: purpose, n replies, tokens, seconds, n_made, n_cached, model."""
        ...

    @property
    def parameters(self) -> dict[str, Any]:
        """What made the run."""
        ...


def purposes_of(method: Method) -> tuple[str, ...]:
    """The purposes of all requests that ``method`` reads.

    The answer's, since a confidence is one in an answer, and its own.
    """
    return (
        ANSWER,
        *(
            purpose
            for needs, purposes in PURPOSES
            if needs & set(method.needs)
            for purpose in purposes
        ),
    )


def method_costs(
    run: Asked,
    usd_in: float | Mapping[str, float] | None = None,
    usd_out: float | Mapping[str, float] | None = None,
    prompts: str = "once",
) -> pd.DataFrame:
    """What each method costs, a row a model and method, per answer and in all.

    ``n_replies``, ``n_tokens_in``, ``n_tokens_out``, ``seconds`` and ``usd`` say what one answer
    would cost with this method alone: requests that several methods share count fully for each of
    them, the answer's own among them. ``extra_...`` is the part beyond that answer, which is to be
    had anyway (0 for what is read off it); ``total_...`` is for all ``n_answers`` asked for. What
    is asked once a distinct diagnosis (MedConf's keyword and profile) is spread over all answers.
    The costs are those of the whole run: requests do not say which data set they belong to.

    A request's prompt is counted once, however many replies it has, as services charge that give
    several replies to one call; ``prompts="each"`` counts it for every reply, as one is charged
    that gives one at a time. Answer and samples are two requests, each with its prompt. ``usd_in``
    and ``usd_out``: US dollars for a million tokens in and out, one number or one for each model by
    name; NaN without. ``seconds`` are those that the model took, a request's share of its batch by
    tokens out. Of replies from a cache they are not known: those asked for now stand for them
    (``timed``: share of requests), and where there are none, seconds are NaN.

    ``n_values`` of the answers have a value; a method without any keeps its row. ``not_counted``
    names other readers, and PMI's scoring of the answer without the patient, which no table of
    requests holds. An ``assessor``'s replies are shared equally among all models' answers.
    ``missing`` says what is missing and why. Raises ``ValueError`` for lacking columns, negative or
    half-given rates, or ``prompts`` other than "once" and "each".
    """
    if prompts not in PROMPTS:
        raise ValueError(f"prompts is {prompts!r}; allowed are {', '.join(PROMPTS)}")
    if lacking := [name for name in CALLS if name not in run.calls.columns]:
        raise ValueError(f"calls lacks the columns {lacking}; it has {list(run.calls.columns)}")
    methods = [METHODS[name] for name in run.parameters["methods"] if name in METHODS]
    answered = run.answers["model"].value_counts()
    calls = run.calls
    if prompts == "each":
        calls = calls.assign(n_tokens_in=calls["n_tokens_in"] * calls["n"])
    spent = _spent(calls, _rates(usd_in, usd_out, sorted(set(calls["model"]))))
    assessor = next(iter(run.parameters.get("assessor") or ()), None)
    rows = []
    for model in dict.fromkeys(run.answers["model"]):
        n_answers = int(answered[model])
        own = {p: spent.get((model, p)) for p in (ANSWER, *(p for _, ps in PURPOSES for p in ps))}
        if assessor is not None:
            own |= {
                p: _part(spent.get((assessor, p)), n_answers / len(run.answers)) for p in ASSESSED
            }
        mine = run.confidence[run.confidence["model"] == model]
        groups = dict(tuple(mine.groupby("method", sort=False)))
        for method in methods:
            rows.append(
                {
                    "model": model,
                    **_row(method, own, n_answers, groups.get(method.name, mine[:0]), assessor),
                }
            )
    return pd.DataFrame(rows, columns=COSTS)


def pareto_table(
    costs: pd.DataFrame, metrics: pd.DataFrame, level: str = "within", cost: str = "tokens"
) -> pd.DataFrame:
    """Each method's cost per answer beside its AUROC.

    And whether any other method is better for less. ``costs`` is the table of :func:`method_costs`,
    ``metrics`` that of ``metrics_table``; ``cost`` is "replies", "tokens" (in and out), "seconds"
    or "usd", of the method alone. A row a model, data set and method. ``on_front``: no other method
    of that model and data set costs at most as much and is at least as good, one of the two
    strictly; equals are on it together. ``n``, ``n_cases`` and ``n_rarer`` are behind the AUROC,
    ``n_answers`` (of all data sets) behind the mean cost. Methods without cost or value are not on
    it, and ``missing`` says why. Raises ``ValueError`` for an unknown cost, and for a level that
    ``metrics`` does not hold.
    """
    if cost not in UNITS:
        raise ValueError(f"cost is {cost!r}; allowed are {', '.join(UNITS)}")
    columns = {"replies": ["n_replies"], "tokens": ["n_tokens_in", "n_tokens_out"]}.get(
        cost, [cost]
    )
    ranking = metrics[metrics["metric"] == "auroc"]
    levels = ranking["level"].astype(str)
    read = ["model", "dataset", "method", "level", *schema.LINE, "n_rarer"]
    found = ranking[levels == level].reindex(columns=read)
    if not len(found):
        raise ValueError(
            f"metrics holds no AUROC at level {level!r}; it holds {sorted(set(levels))}"
        )
    price = costs[["model", "method", "family", "n_answers"]].assign(
        cost=costs[columns].sum(axis=1, skipna=False),
        why="no cost: " + costs["missing"].fillna("").replace("", "no reason given"),
    )
    table = found.merge(price, on=["model", "method"], how="left", validate="many_to_one")
    why = table["why"].fillna("no cost: not among the costs").where(table["cost"].isna(), "")
    told = zip(table["missing"].fillna(""), why, strict=True)
    table = table.assign(unit=cost, missing=[_joined(*two) for two in told], on_front=False)
    for _, part in table.groupby(["model", "dataset"], sort=False):
        table.loc[part.index, "on_front"] = _undominated(
            part["cost"].to_numpy(float), part["value"].to_numpy(float)
        )
    more = ["n_rarer", "n_answers", "on_front"]
    return schema.table(table.to_dict("records"), PARETO, more)


def _undominated(cost: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Which points (n,) no other beats: cheaper or better, and neither dearer nor worse.

    Rounding makes no difference.
    """
    cost, value = np.round(cost, 9), np.round(value, 9)
    known = ~(np.isnan(cost) | np.isnan(value))
    with np.errstate(invalid="ignore"):
        no_worse = (cost[None] <= cost[:, None]) & (value[None] >= value[:, None])
        better = (cost[None] < cost[:, None]) | (value[None] > value[:, None])
    return known & ~(no_worse & better).any(axis=1)


def _rates(
    usd_in: float | Mapping[str, float] | None,
    usd_out: float | Mapping[str, float] | None,
    models: Sequence[str],
) -> dict[str, tuple[float, float]]:
    """Model -> US dollars for a million tokens in and out, NaN where not given."""
    if (usd_in is None) != (usd_out is None):
        raise ValueError(f"give usd_in and usd_out or neither; received {usd_in!r} and {usd_out!r}")
    sides = []
    for name, given in (("usd_in", usd_in), ("usd_out", usd_out)):
        side = (
            dict(given)
            if isinstance(given, Mapping)
            else dict.fromkeys(models, math.nan if given is None else given)
        )
        if bad := {m: v for m, v in side.items() if v < 0 or math.isinf(v)}:
            raise ValueError(
                f"{name} must be at least 0, US dollars for a million tokens; received {bad}"
            )
        sides.append(side)
    return {m: (float(sides[0].get(m, math.nan)), float(sides[1].get(m, math.nan))) for m in models}


def _spent(
    calls: pd.DataFrame, rates: Mapping[str, tuple[float, float]]
) -> dict[tuple[str, str], dict[str, float]]:
    """(Model, purpose) -> replies, tokens_in, tokens_out, seconds, usd, requests in all.

    And how many of these were timed.
    """
    found = {}
    groups: Any = calls.groupby(["model", "purpose"], sort=False)
    for (model, purpose), part in groups:
        timed = part[(part["n_made"] > 0) & (part["n_cached"] == 0)]
        n_in, n_out = float(part["n_tokens_in"].sum()), float(part["n_tokens_out"].sum())
        rate_in, rate_out = rates[model]
        found[model, purpose] = {
            "replies": float(part["n"].sum()),
            "tokens_in": n_in,
            "tokens_out": n_out,
            "seconds": float(timed["seconds"].sum() / timed["n"].sum() * part["n"].sum())
            if len(timed)
            else math.nan,
            "usd": (n_in * rate_in + n_out * rate_out) / 1e6,
            "requests": float(len(part)),
            "timed": float(len(timed)),
        }
    return found


def _part(spent: Mapping[str, float] | None, share: float) -> dict[str, float] | None:
    return None if spent is None else {name: share * amount for name, amount in spent.items()}


def _row(
    method: Method,
    own: Mapping[str, Mapping[str, float] | None],
    n_answers: int,
    values: pd.DataFrame,
    assessor: str | None,
) -> dict[str, Any]:
    """One line of :func:`method_costs`, but for the model's name."""
    purposes = purposes_of(method)
    n_values = int(values["confidence"].notna().sum())
    lacking = [p for p in purposes if own[p] is None]
    asked = [own[p] or {} for p in purposes]
    all_in = {a: math.nan if lacking else math.fsum(one[a] for one in asked) for a in AMOUNTS}
    more = {
        a: math.nan if math.isnan(all_in[a]) else math.fsum(one[a] for one in asked[1:])
        for a in AMOUNTS
    }
    requests = math.nan if lacking else sum(one["requests"] for one in asked)
    timed = math.nan if lacking else sum(one["timed"] for one in asked) / requests
    notes = [f"never asked: {', '.join(lacking)}"] if lacking else []
    if not n_values:
        notes.append(f"no value: {most_frequent_reason(values)}")
    if not lacking and math.isnan(all_in["seconds"]):
        notes.append(UNTIMED)
    elif not lacking and timed < 1:
        notes.append("seconds from part of the requests")
    if assessor is not None and not lacking and set(ASSESSED) & set(purposes):
        notes.append(f"the replies of the assessor {assessor} are shared equally among all answers")
    others = [
        *(["scoring without the patient"] if "answer.prior_logprobs" in method.needs else []),
        readers(method),
    ]
    named = {"replies": "n_replies", "tokens_in": "n_tokens_in", "tokens_out": "n_tokens_out"}
    return {
        "method": method.name,
        "family": method.family,
        "purposes": ", ".join(purposes),
        "n_answers": n_answers,
        "n_values": n_values,
        **{named.get(a, a): all_in[a] / n_answers for a in AMOUNTS},
        **{f"extra_{a}": more[a] / n_answers for a in AMOUNTS},
        **{f"total_{a}": all_in[a] for a in AMOUNTS},
        "timed": timed,
        "not_counted": ", ".join(filter(None, others)),
        "missing": "; ".join(notes),
    }


def most_frequent_reason(values: pd.DataFrame) -> str:
    """The commonest reason for which ``values`` are missing."""
    if not len(values):
        return "no row in the table"
    why = values["missing"].astype(object).fillna("").replace("", "no reason given")
    return str(why.value_counts().index[0])


def _joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)
