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
    *((frozenset({f"probes.{n}"}), (n,)) for n in ("ce", "cot_ce", "topk_ce", "p_true", *GIVEN)),
    (frozenset({"assessment"}), ASSESSED),
    (frozenset({"panel", "panel.cosines"}), ("doctor",)),
)
"""Needs, and the purposes of the requests that any of them adds to the answer's."""
SAMPLED = "samples samples.logprobs similarity similarity_med entailment contradiction"
CALLS_OF: dict[str, str] = {
    "answer.prior_logprobs": "1 scoring",
    f"{SAMPLED} sample_relevance": "K",
    **dict.fromkeys(("probes.ce", "probes.cot_ce", "probes.topk_ce"), "1"),
    "probes.p_true": "K",
    **{f"probes.{name}": f"{len(texts)} scoring" for name, (_, texts) in GIVEN.items()},
    "assessment": "1 + 2 per distinct answer",
    "panel panel.cosines": "K doctors",
}
"""Needs, and the calls that any of them adds to the one that gives the answer."""
READERS: dict[str, str] = {
    "similarity relevance sample_relevance panel.cosines": "encoder",
    "similarity_med": "medical encoder",
    "entailment contradiction alternative_entailment": "entailment",
    "assessment": "retriever",
}
"""Needs, and who else has to read for them."""
ASIDE = {"assessor": ASSESSED, "panel": ("doctor",)}
"""Who may reply in the model's place, and to what."""
CALLS = ("purpose", "n", "n_tokens_in", "n_tokens_out", "model")
AMOUNTS = ["n_replies", "n_tokens_in", "n_tokens_out"]
COSTS = ["model", "method", "family", "purposes", "n_answers", "n_values", *AMOUNTS, "usd"]
COSTS += ["not_counted", "missing"]


def purposes_of(method: Method) -> tuple[str, ...]:
    """The purposes of all requests that ``method`` reads: the answer's, then its own."""
    own = (purposes for needs, purposes in PURPOSES if needs & set(method.needs))
    return (ANSWER, *(purpose for purposes in own for purpose in purposes))


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
    return [words for needs, words in table.items() if {*needs.split()} & {*method.needs}]


def method_costs(
    run: Any, usd_in: float | None = None, usd_out: float | None = None
) -> pd.DataFrame:
    """What one answer costs with each method alone, a row a model and method.

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
        raise ValueError(f"usd_in and usd_out must be both given, at least 0; received {rates}")
    requests = run.calls.assign(n_replies=run.calls["n"]).groupby(["model", "purpose"])
    spent = requests[AMOUNTS].sum(skipna=False)
    every = [ANSWER, *(purpose for _, purposes in PURPOSES for purpose in purposes)]

    def of_model(model: str) -> pd.DataFrame:
        """What was spent on a model, a row a purpose; NaN for what was never asked."""
        index = pd.MultiIndex.from_product([[model], every])
        return spent.astype(float).reindex(index).droplevel(0)

    aside = {role: list(who) for role in ASIDE if (who := run.parameters.get(role))}
    methods = [METHODS[name] for name in run.parameters["methods"] if name in METHODS]
    rows = []
    for about, part in groups(run.answers, ["model"]):
        own = of_model(about["model"])
        for role, who in aside.items():
            theirs: Any = sum(map(of_model, who))
            own.loc[list(ASIDE[role])] = theirs * (len(part) / len(run.answers))
        mine = run.confidence[run.confidence["model"] == about["model"]]
        for method in methods:
            values = mine[mine["method"] == method.name]
            asked = own.loc[list(purposes_of(method))]
            scored = "scoring without the patient" * ("answer.prior_logprobs" in method.needs)
            gaps = asked[asked["n_replies"].notna() & asked.isna().any(axis=1)].index
            tokens = f"tokens of {', '.join(gaps)}" * bool(len(gaps))
            rows.append(
                {
                    **about,
                    "method": method.name,
                    "family": method.family,
                    "purposes": ", ".join(asked.index),
                    "n_answers": len(part),
                    "n_values": int(values["confidence"].notna().sum()),
                    **(asked.sum(skipna=False) / len(part)).to_dict(),
                    "not_counted": ", ".join(filter(None, [tokens, scored, readers(method)])),
                    "missing": "; ".join(_notes(asked, values, aside)),
                }
            )
    found = pd.DataFrame(rows, columns=COSTS)
    price = [math.nan if rate is None else rate / 1e6 for rate in rates]
    return found.assign(usd=found["n_tokens_in"] * price[0] + found["n_tokens_out"] * price[1])


def _notes(
    asked: pd.DataFrame, values: pd.DataFrame, aside: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    lacking = ", ".join(asked.index[asked["n_replies"].isna()])
    if lacking:
        yield f"never asked: {lacking}"
    if values["confidence"].isna().to_numpy().all():
        yield f"no value: {most_frequent(values)}"
    for role, who in aside.items():
        if not lacking and set(ASIDE[role]) & set(asked.index):
            yield f"replies of the {role} {', '.join(who)}: shared equally among answers"
