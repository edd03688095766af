"""What each method costs in replies, tokens, seconds and money."""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from trustlab.collect import SAMPLE_NEEDS
from trustlab.confidence import METHODS, Method
from trustlab.confidence.registry import readers
from trustlab.metrics import schema
from trustlab.metrics.estimate import groups, most_frequent

ANSWER = "diagnosis"
"""The purpose of the request that gives the answer itself."""
ASSESSED = ("keyword", "profile", "evidence")
ASIDE = {"assessor": ASSESSED, "panel": ("doctor",)}
"""Who may reply in the model's place, and to what."""
PURPOSES: tuple[tuple[frozenset[str], tuple[str, ...]], ...] = (
    (SAMPLE_NEEDS, ("samples",)),
    (frozenset({"probes.ce"}), ("ce",)),
    (frozenset({"probes.cot_ce"}), ("cot_ce",)),
    (frozenset({"probes.topk_ce"}), ("topk_ce",)),
    (frozenset({"probes.p_true"}), ("p_true",)),
    (frozenset({"assessment"}), ASSESSED),
    (frozenset({"panel", "panel.cosines"}), ("doctor",)),
)
"""Needs, and the purposes of the requests that any of them adds to the answer's."""
CALLS = ("purpose", "n", "n_tokens_in", "n_tokens_out", "seconds", "n_made", "n_cached", "model")
AMOUNTS = ("n_replies", "n_tokens_in", "n_tokens_out", "seconds", "usd")
MORE = [f"{part}_{name.removeprefix('n_')}" for part in ("extra", "total") for name in AMOUNTS]
COSTS = ["model", "method", "family", "purposes", "n_answers", "n_values", *AMOUNTS, *MORE]
COSTS += ["timed", "not_counted", "missing"]
UNTIMED = "seconds unknown: replies came from the cache"


def purposes_of(method: Method) -> tuple[str, ...]:
    """The purposes of all requests that ``method`` reads: the answer's, then its own."""
    own = (purposes for needs, purposes in PURPOSES if needs & set(method.needs))
    return (ANSWER, *(purpose for purposes in own for purpose in purposes))


def method_costs(
    run: Any,
    usd_in: float | Mapping[str, float] | None = None,
    usd_out: float | Mapping[str, float] | None = None,
) -> pd.DataFrame:
    """What each method costs, a row a model and method, per answer and in all.

    - ``run``: its tables ``answers``, ``confidence`` and ``calls`` (with :data:`CALLS`), and
      ``parameters`` with ``methods`` and, where there are, ``assessor`` and ``panel``.
    - ``n_replies``, ``n_tokens_in``, ``n_tokens_out``, ``seconds``, ``usd``: of one answer with
      this method alone. Requests that several methods share count fully for each of them, the
      answer's own among them; what is asked once a distinct diagnosis (MedConf's keyword and
      profile) is spread over all answers, an assessor's and a panel's replies over all models'.
    - ``extra_...``: the part beyond that answer, which is to be had anyway; ``total_...``: for all
      ``n_answers`` asked for. Requests do not say of which data set they are: it is the whole run.
    - A prompt counts once, however many replies it has, as services charge that give several to one
      call. Answer and samples are two requests.
    - ``usd_in``, ``usd_out``: US dollars for a million tokens, a number or one for each model by
      name; NaN without.
    - ``seconds`` are the model's, a request's share of its batch by tokens out. Those of replies
      from a cache are not known: what was asked now stands for them (``timed``: its share of the
      requests); NaN where nothing was.
    - ``n_values`` of the answers have a value. ``not_counted``: other readers, and PMI's scoring of
      the answer without the patient, which no table of requests holds.
    - ``ValueError`` for lacking columns, and negative or half-given rates.
    """
    schema.need(run.calls, CALLS, "calls")
    if (usd_in is None) != (usd_out is None):
        raise ValueError(f"give usd_in and usd_out or neither; received {usd_in!r} and {usd_out!r}")
    calls, answers = run.calls, run.answers
    spent = _spent(calls, usd_in, usd_out)
    aside = {role: list(who) for role in ASIDE if (who := run.parameters.get(role))}
    methods = [METHODS[name] for name in run.parameters["methods"] if name in METHODS]
    every = [ANSWER, *(purpose for _, purposes in PURPOSES for purpose in purposes)]
    rows = []
    for about, part in groups(answers, ["model"]):
        own = _of_model(spent, about["model"], every)
        for role, who in aside.items():
            theirs: Any = sum(_of_model(spent, one, ASIDE[role]) for one in who)
            own.loc[list(ASIDE[role])] = theirs * (len(part) / len(answers))
        mine = run.confidence[run.confidence["model"] == about["model"]]
        for method in methods:
            values = mine[mine["method"] == method.name]
            rows.append(about | _row(method, own, len(part), values, aside))
    return pd.DataFrame(rows, columns=COSTS)


def _spent(
    calls: pd.DataFrame,
    usd_in: float | Mapping[str, float] | None,
    usd_out: float | Mapping[str, float] | None,
) -> pd.DataFrame:
    """By model and purpose: :data:`AMOUNTS`, ``requests`` in all and those ``timed`` among them."""
    timed = (calls["n_made"] > 0) & (calls["n_cached"] == 0)
    each = calls.assign(requests=1.0, timed=timed.astype(float), n_replies=calls["n"])
    each = each.assign(seconds=calls["seconds"].where(timed, 0), n=calls["n"].where(timed, 0))
    columns = [*AMOUNTS[:-1], "requests", "timed", "n"]
    found: Any = each.groupby(["model", "purpose"])[columns].sum().astype(float)
    found["seconds"] *= found["n_replies"] / found["n"]
    found["usd"] = 0.0
    models = found.index.get_level_values("model")
    for name, given in (("usd_in", usd_in), ("usd_out", usd_out)):
        rates: Any = given if isinstance(given, Mapping) else dict.fromkeys(models, given)
        rates = {m: math.nan if v is None else float(v) for m, v in rates.items()}
        if bad := {m: v for m, v in rates.items() if v < 0 or math.isinf(v)}:
            wanted = f"{name} must be at least 0, US dollars for a million tokens"
            raise ValueError(f"{wanted}; received {bad}")
        tokens = found[name.replace("usd", "n_tokens")]
        found["usd"] += tokens * [rates.get(m, math.nan) for m in models] / 1e6
    return found


def _of_model(spent: pd.DataFrame, model: str, purposes: Any) -> pd.DataFrame:
    """What was spent on a model, a row a purpose; NaN for what was never asked."""
    return spent.reindex(pd.MultiIndex.from_product([[model], purposes])).droplevel(0)


def _row(
    method: Method,
    own: pd.DataFrame,
    n_answers: int,
    values: pd.DataFrame,
    aside: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    """One line of :func:`method_costs`, but for the model's name."""
    purposes = purposes_of(method)
    asked = own.loc[list(purposes)]
    lacking = ", ".join(asked.index[asked["requests"].isna()])
    total = asked.sum(skipna=False)
    extra = asked[1:].sum(skipna=False).where(total.notna())
    timed, n_values = total["timed"] / total["requests"], int(values["confidence"].notna().sum())
    notes = [f"never asked: {lacking}"] if lacking else []
    if not n_values:
        notes.append(f"no value: {most_frequent(values)}")
    if timed < 1:
        notes.append(
            UNTIMED if math.isnan(total["seconds"]) else "seconds from part of the requests"
        )
    for role, who in aside.items():
        if not lacking and set(ASIDE[role]) & set(purposes):
            told = f"the {role} {', '.join(who)}"
            notes.append(f"the replies of {told} are shared equally among all answers")
    scored = "scoring without the patient" if "answer.prior_logprobs" in method.needs else ""
    amounts = list(AMOUNTS)
    each = [*(total[amounts] / n_answers), *(extra[amounts] / n_answers), *total[amounts]]
    return {
        "method": method.name,
        "family": method.family,
        "purposes": ", ".join(purposes),
        "n_answers": n_answers,
        "n_values": n_values,
        **dict(zip([*AMOUNTS, *MORE], each, strict=True)),
        "timed": timed,
        "not_counted": ", ".join(filter(None, [scored, readers(method)])),
        "missing": "; ".join(notes),
    }
