"""Counts what each method costs in replies, tokens and money."""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from trustlab.confidence import METHODS, Method
from trustlab.metrics import schema
from trustlab.metrics.estimate import groups, most_frequent
from trustlab.records import GIVEN
from trustlab.runs.collect import SAMPLE_NEEDS

ANSWER = "diagnosis"  # the purpose of the request that gives the answer itself

ASSESSED = ("keyword", "profile", "evidence")  # those of MedConf's requests

PURPOSES: tuple[tuple[frozenset[str], tuple[str, ...]], ...] = (
    (SAMPLE_NEEDS, ("samples",)),
    *(
        (frozenset({f"probes.{n}"}), (n,))
        for n in ("ce", "cot_ce", "topk_ce", "p_true", *GIVEN)
    ),
    (frozenset({"assessment"}), ASSESSED),
    (frozenset({"panel", "panel.cosines"}), ("doctor",)),
)
"""Needs, and the purposes of the requests that any of them adds to the answer's."""
SAMPLED = " ".join(sorted(SAMPLE_NEEDS))
CALLS_OF: dict[str, str] = {
    "answer.prior_logprobs": "1 scoring",
    SAMPLED: "K",
    **dict.fromkeys(("probes.ce", "probes.cot_ce", "probes.topk_ce"), "1"),
    "probes.p_true": "K",
    **{f"probes.{name}": f"{len(texts)} scoring" for name, (_, texts) in GIVEN.items()},
    "assessment": "1 + 2 per distinct answer",
    "panel panel.cosines": "K doctors",
}
"""Needs, and the calls that any of them adds to the one that gives the answer."""
READERS: dict[str, str] = {
    "similarity answer_similarity relevance sample_relevance panel.cosines": "encoder",
    "similarity_med": "medical encoder",
    "entailment contradiction answer_entailment answer_contradiction alternative_entailment": (
        "entailment"
    ),
    "assessment": "retriever",
}
"""Needs, and who else has to read for them."""
ASIDE = {"assessor": ASSESSED, "panel": ("doctor",)}
"""Who may reply in the model's place, and to what."""
CALLS = ("purpose", "n", "n_tokens_in", "n_tokens_out", "model")
AMOUNTS = ["n_replies", "n_tokens_in", "n_tokens_out"]
COSTS = [
    "model", "method", "family", "purposes", "n_answers", "n_values", *AMOUNTS, "usd",
    "not_counted", "missing",
]  # fmt: skip


def purposes_of(method: Method) -> tuple[str, ...]:
    """The purposes of all requests that ``method`` reads: the answer's, then its own."""
    all_purposes = [ANSWER]
    for needs, purposes in PURPOSES:
        if not needs.isdisjoint(method.needs):
            all_purposes += purposes
    return tuple(all_purposes)


def calls(method: Method) -> str:
    """Model calls for one answer, such as ``1 + K`` (the answer's own, K samples); '0' where none
    is read."""
    if set(method.needs) <= {"shown"}:
        return "0"
    return " + ".join(["1", *_needed(method, CALLS_OF)])


def readers(method: Method) -> str:
    """Who else reads, such as ``encoder, entailment``; '' if nobody."""
    return ", ".join(_needed(method, READERS))


def _needed(method: Method, table: dict[str, str]) -> list[str]:
    words = []
    for needs, word in table.items():
        if not set(needs.split()).isdisjoint(method.needs):
            words.append(word)
    return words


def method_costs(
    run: Any, usd_in: float | None = None, usd_out: float | None = None
) -> pd.DataFrame:
    """Replies, tokens and dollars that an answer costs with each method alone, a row a model and
    method.

    - ``run``: its tables ``answers``, ``confidence`` and ``calls`` (with :data:`CALLS`), and
      ``parameters`` with ``methods`` and, where there are, ``assessor`` and ``panel``.
    - ``n_replies``, ``n_tokens_in``, ``n_tokens_out``: means over all ``n_answers`` asked for.
      Requests that several methods share count fully for each; what is asked once a distinct
      diagnosis (MedConf's keyword and profile) is spread over all answers, an assessor's and a
      panel's replies over all models'. A prompt counts once, however many replies it has.
    - ``usd``: from US dollars for a million tokens; NaN without.
    - ``n_values`` of the answers have a value. ``not_counted``: other readers, PMI's scoring of the
      answer without the patient, which no table of requests holds, and tokens that the server does
      not count, of one request or more: their columns are then NaN, and so is ``usd``.
    - ``ValueError`` for lacking columns, and negative or half-given rates.
    """
    schema.need(run.calls, CALLS, "calls")
    rates = (usd_in, usd_out)
    if any((rate is None) != (usd_in is None) or (rate or 0) < 0 for rate in rates):
        raise ValueError(
            f"usd_in and usd_out must be both given, at least 0; received {rates}"
        )
    replies = run.calls.assign(n_replies=run.calls["n"])
    by_purpose = replies.groupby(["model", "purpose"])
    amounts_by_purpose = by_purpose[AMOUNTS].sum(skipna=False).astype(float)
    models_by_role = {}
    for role in ASIDE:
        models = run.parameters.get(role)
        if models:
            models_by_role[role] = list(models)
    rows = []
    for labels, answers in groups(run.answers, ["model"]):
        amounts = _amounts_of(labels["model"], amounts_by_purpose)
        share = len(answers) / len(run.answers)
        for role, models in models_by_role.items():
            of_role: Any = sum(
                _amounts_of(model, amounts_by_purpose) for model in models
            )
            amounts.loc[list(ASIDE[role])] = of_role * share
        of_model = run.confidence[run.confidence["model"] == labels["model"]]
        for name in run.parameters["methods"]:
            if name not in METHODS:
                continue
            method = METHODS[name]
            of_method = amounts.loc[list(purposes_of(method))]
            of_values = of_model[of_model["method"] == name]
            means = of_method.sum(skipna=False) / len(answers)
            row = {
                "method": name,
                "family": method.family,
                "purposes": ", ".join(of_method.index),
                "n_answers": len(answers),
                "n_values": int(of_values["confidence"].notna().sum()),
                "not_counted": ", ".join(_not_counted(method, of_method)),
                "missing": "; ".join(_notes(of_method, of_values, models_by_role)),
            }
            rows.append({**labels, **row, **means})
    table = pd.DataFrame(rows, columns=COSTS)
    price_in = math.nan if usd_in is None else usd_in / 1e6
    price_out = math.nan if usd_out is None else usd_out / 1e6
    return table.assign(
        usd=table["n_tokens_in"] * price_in + table["n_tokens_out"] * price_out
    )


def _amounts_of(model: str, spent: Any) -> pd.DataFrame:
    """Replies and tokens of a model, a row a purpose; NaN for what was never asked."""
    all_purposes = [ANSWER]
    for _, purposes in PURPOSES:
        all_purposes += purposes
    index = pd.MultiIndex.from_product([[model], all_purposes])
    return spent.reindex(index).droplevel(0)


def _not_counted(method: Method, amounts: pd.DataFrame) -> Iterator[str]:
    """Costs of a method that the amounts do not contain: tokens that a server does not count, a
    scoring, other readers."""
    has_gap = amounts["n_replies"].notna() & amounts.isna().any(axis=1)
    purposes = amounts.index[has_gap]
    if len(purposes):
        yield f"tokens of {', '.join(purposes)}"
    if "answer.prior_logprobs" in method.needs:
        yield "scoring without the patient"
    others = readers(method)
    if others:
        yield others


def _notes(
    amounts: pd.DataFrame, values: pd.DataFrame, aside: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """Why a method's costs or values lack, and whose replies are shared."""
    without_requests = amounts.index[amounts["n_replies"].isna()]
    if len(without_requests):
        yield f"never asked: {', '.join(without_requests)}"
    if values["confidence"].isna().to_numpy().all():
        yield f"no value: {most_frequent(values)}"
    if len(without_requests):
        return
    for role, models in aside.items():
        if not set(ASIDE[role]).isdisjoint(amounts.index):
            yield f"replies of the {role} {', '.join(models)}: shared equally among answers"
