"""One procedure with its settings changed: parts of MedConf switched off, passages, samples.

Each variant is a set of keywords for :func:`trustlab.experiments.benchmark.benchmark` over the same
replies, so that only what is new is asked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from trustlab.agents import MedConf
from trustlab.correctness import JudgeGrader, SynonymGrader, open_grader
from trustlab.experiments.benchmark import Run, benchmark
from trustlab.experiments.tables import KEYS
from trustlab.metrics.estimate import NAN, Rows, estimate, groups, mean, measure, share
from trustlab.metrics.paired import MIN_COVERAGE
from trustlab.metrics.schema import table
from trustlab.metrics.table import metrics_table
from trustlab.models.base import Model
from trustlab.models.cache import CachedModel
from trustlab.records import LEVELS, SUPPORT_LEVELS, Case
from trustlab.retrieval import BM25, Retriever, load_corpus

WHOLE = "full"
PARTS: Mapping[str, Mapping[str, Any]] = {
    WHOLE: {"medconf": MedConf()},
    "without_symptom_profile": {"medconf": MedConf(profile=False)},
    "without_retrieval": {"medconf": MedConf(retrieval=False)},
    "without_structured_format": {"medconf": MedConf(structure=False)},
    "without_importance": {"medconf": MedConf(importance=False)},
}
"""MedConf whole and the paper's four ablations, by the names of ``data/published/ablation.csv``."""
MEDCONF = ("medconf", "medconf_weighted")
ASKED_WITH = ("entropy", "pmi")
"""Methods that make the answer's request the benchmark's own: its reply is found, not asked for."""
UNSHARED = "no value in another variant that it is compared with"
SAMPLED = (
    "poc", "semantic_poc", "lexical_similarity", "semantic_similarity", "num_set", "deg", "eigv",
    "ecc", "mc_se", "mc_nse", "semantic_entropy", "semantic_entropy_normalised",
    "semantic_entropy_discrete", "sentence_sar", "sentence_sar_printed", "sar",
)  # fmt: skip
"""The consistency family, without the method that needs a medical encoder."""


@dataclass(frozen=True)
class Ablations:
    """The tables of several variants, each tidy with a column ``variant``, in the variants' order.

    - ``answers`` and ``confidence`` as those of the benchmarks, which are ``runs``.
    - ``calls``: a row a variant and model with the replies asked for (``n_made``) and taken from
      what was there (``n_cached``).
    """

    answers: pd.DataFrame
    confidence: pd.DataFrame
    calls: pd.DataFrame
    runs: Mapping[str, Run] = field(repr=False)

    def judged(self) -> pd.DataFrame:
        """The confidences with ``correct`` beside them, as ``paired_differences`` takes them."""
        keys = ["variant", *KEYS]
        right = self.answers[[*keys, "correct"]]
        return self.confidence.merge(right, on=keys, how="left", validate="many_to_one")


def ablations(
    cases: Sequence[Case],
    models: Sequence[Model],
    variants: Mapping[str, Mapping[str, Any]] = PARTS,
    levels: Sequence[int] = LEVELS,
    *,
    methods: Sequence[str] = MEDCONF,
    run_dir: str | Path | None = None,
    cache: str | Path | None = None,
    **asking: Any,
) -> Ablations:
    """The benchmark once for each variant.

    - ``variants``: name -> the keywords of ``benchmark`` that it changes (medconf, retriever, ...);
      ``asking``: keywords for all of them.
    - Each variant's tables go to a folder of its own below ``run_dir``; replies to ``cache``
      (default: a file in ``run_dir``, without one memory), shared by all.
    - The diagnoses are the same in every variant, since none changes how they are asked.
    - ``ValueError`` for no variants, two with one folder, or what ``benchmark`` refuses.
    """
    folders = {name: re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-") for name in variants}
    if not variants or len(set(folders.values())) < len(variants):
        wanted = "variants must be one or more, each with a folder name of its own"
        raise ValueError(f"{wanted}; received {folders}")
    store = cache or (Path(run_dir) / "replies.sqlite" if run_dir else None)
    asking = {"quiet": True, **asking}
    asking["grader"] = open_grader(asking.get("grader") or SynonymGrader())
    asking["retriever"] = asking.get("retriever") or BM25(load_corpus())
    held = [m if isinstance(m, CachedModel) else CachedModel(m, store) for m in models]
    if asking.get("assessor") is not None and not isinstance(asking["assessor"], CachedModel):
        asking["assessor"] = CachedModel(asking["assessor"], store)
    counted = [asking["assessor"]] if asking.get("assessor") else []
    counted += [asking["grader"].model] if isinstance(asking["grader"], JudgeGrader) else []
    chosen = list(dict.fromkeys([*methods, *ASKED_WITH]))
    runs: dict[str, Run] = {}
    for name, changed in variants.items():
        for one in counted:  # these count from run to run, and a variant shall show its own calls
            one.reset_calls()
        folder = Path(run_dir) / folders[name] if run_dir else None
        how = asking | {"run_dir": folder, "cache": store} | dict(changed)
        runs[name] = benchmark(cases, held, chosen, levels, **how)
    for one, given in zip(held, models, strict=True):
        if one is not given:
            one.close()
    answers = _stacked({name: run.answers for name, run in runs.items()})
    told: Any = answers[answers["answer"].notna()]
    assert (told.groupby(KEYS)["answer"].nunique() == 1).all(), (
        "variants of one procedure were given different answers"
    )
    confidence: Any = _stacked({name: run.confidence for name, run in runs.items()})
    confidence = confidence[confidence["method"].isin(list(methods))].reset_index(drop=True)
    asked: Any = _stacked({name: run.calls for name, run in runs.items()})
    calls = asked.groupby(["variant", "model"], sort=False)[["n", "n_made", "n_cached"]].sum()
    calls = calls.reset_index().rename(columns={"n": "n_replies"})
    return Ablations(answers, confidence, calls, runs)


def passages(counts: Sequence[int], medconf: MedConf | None = None) -> dict[str, dict[str, Any]]:
    """Variants by the number of passages that are looked up."""
    whole = medconf or MedConf()
    return {f"{n} passages": {"medconf": replace(whole, n_passages=n)} for n in counts}


def of_libraries(retrievers: Mapping[str, Retriever]) -> dict[str, dict[str, Any]]:
    """Variants by the library that is searched."""
    return {name: {"retriever": retriever} for name, retriever in retrievers.items()}


def sampling(counts: Sequence[int], temperatures: Sequence[float]) -> dict[str, dict[str, Any]]:
    """Variants by temperature and number of samples (K reads the first of a larger K)."""
    return {
        f"K {k}, temperature {t:g}": {"samples": k, "temperature": t}
        for t in temperatures
        for k in sorted(counts, reverse=True)
    }


def variant_metrics(
    made: Ablations, n_draws: int = 2000, seed: int = 0, n_jobs: int = 1
) -> pd.DataFrame:
    """``metrics_table`` of every variant, with ``n_samples``, ``temperature``, ``n_passages``."""
    parts = {}
    for name, run in made.runs.items():
        shown = made.confidence[made.confidence["variant"] == name]
        found = metrics_table(
            replace(run, confidence=shown), n_draws=n_draws, seed=seed, n_jobs=n_jobs
        )
        p = run.parameters
        parts[name] = found.assign(
            n_samples=p["n_samples"],
            temperature=p["sample_temperature"],
            n_passages=p["medconf"]["n_passages"],
        )
    return _stacked(parts)


def on_shared_rows(made: Ablations, by_method: bool = False) -> Ablations:
    """The same on one set of answers: no variant looks better for having lost the hard ones.

    - Of each model and data set (and method, with ``by_method``) the answers stay for which every
      variant and method compared has a confidence; the others' become missing, with the reason.
    - A variant of a method with values for less than ``MIN_COVERAGE`` of the answers that any of
      these has is not compared: it loses all of them, and its reason says so.
    """
    part = ["model", "dataset", *(["method"] if by_method else [])]
    point = ["model", "dataset", "method", "variant"]
    found = made.confidence.copy()
    known: Any = found["confidence"].notna()
    row = [found[c] for c in dict.fromkeys([*part, *KEYS])]
    any_known = known.groupby(row).transform("any")
    of = [found[c] for c in point]
    n_known, n_any = (has.groupby(of).transform("sum") for has in (known, any_known))
    compared = n_known >= MIN_COVERAGE * n_any
    few = known & ~compared
    unshared = known & compared & ~(known | ~compared).groupby(row).transform("all")
    left_out = "a value for only " + n_known.astype(str) + " of " + n_any.astype(str) + " answers"
    found.loc[few, "missing"] = left_out[few]
    found.loc[unshared, "missing"] = UNSHARED
    found.loc[few | unshared, "confidence"] = NAN
    return replace(made, confidence=found)


def evidence_summary(made: Ablations, n_draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """What MedConf's steps gave in each variant of each model and data set, by metric.

    - ``scores``: share of the answers assessed that got a score; ``missing`` has the reasons of the
      others, counted, most frequent first. ``passages``: mean number shown. ``tables``: share with
      a table of evidence.
    - Of these tables: ``criteria``, their mean length; ``supported``, ``missing`` and
      ``contradicted``, mean shares of their criteria.
    - ``quoted``: share of all their quotations that occur in the patient's words.
    """
    keys = ["model", "dataset", "variant"]
    assessed = []
    for name, run in made.runs.items():
        dataset = dict(zip(run.answers["case_id"], run.answers["dataset"], strict=True))
        assessed += [
            (g.model, dataset[g.case_id], name, g.case_id, g.assessment)
            for g in run.generations
            if g.assessment is not None
        ]
    every = pd.DataFrame(assessed, columns=[*keys, "case_id", "assessment"])
    lines = [
        label | line
        for label, part in groups(every, keys)
        for line in _steps(
            list(zip(part["case_id"], part["assessment"], strict=True)), n_draws, seed
        )
    ]
    return table(lines, keys, ["n_hits"])


def _steps(given: list[tuple[str, Any]], n_draws: int, seed: int) -> Iterator[dict[str, Any]]:
    """The lines of assessments, (case, assessment) each."""
    steps: list[dict[str, Any]] = []
    for case_id, a in given:
        step = {"case_id": case_id, "scores": a.score is not None, "passages": len(a.passages)}
        step |= {"tables": bool(a.evidence), "criteria": len(a.evidence) if a.evidence else NAN}
        for level in SUPPORT_LEVELS if a.evidence else ():
            step[level] = np.mean([e.support_level == level for e in a.evidence])
        steps.append(step)
    told = [(case_id, e.quote_occurs) for case_id, a in given for e in a.evidence or ()]
    quotes = pd.DataFrame(told, columns=["case_id", "quoted"]).dropna()
    why = Counter(a.missing or "no score" for _, a in given if a.score is None)
    reasons = "; ".join(f"{reason} ({n})" for reason, n in why.most_common())
    rows = Rows.of(pd.DataFrame(steps), "passages", n_draws, seed)
    tables = Rows.of(rows.asked, "criteria", rows.draws, none="no table of evidence")
    quoted = Rows.of(quotes, "quoted", rows.draws, none="no quotation")
    yield {"metric": "scores", **share(rows, "scores", note=reasons)}
    yield {"metric": "passages", **estimate(rows, mean("passages"))}
    yield {"metric": "tables", **share(rows, "tables")}
    yield from measure([({}, tables)], {name: mean(name) for name in ("criteria", *SUPPORT_LEVELS)})
    yield {"metric": "quoted", **share(quoted, "quoted")}


def _stacked(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    named = [found.assign(variant=name) for name, found in tables.items()]
    return pd.concat(named, ignore_index=True)
