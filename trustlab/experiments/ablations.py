"""One procedure with its settings changed: parts of MedConf switched off, more or fewer passages, other samples.

Each variant is a set of keywords for :func:`trustlab.experiments.benchmark.benchmark` over the same replies, so that only what is
new is asked.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportGeneralTypeIssues=false, reportReturnType=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from trustlab.agents import MedConf
from trustlab.correctness import JudgeGrader, SynonymGrader, open_grader
from trustlab.experiments.benchmark import Run, benchmark
from trustlab.experiments.tables import KEYS
from trustlab.metrics.paired import MIN_COVERAGE
from trustlab.metrics.table import metrics_table
from trustlab.models.base import Model
from trustlab.models.cache import CachedModel
from trustlab.records import LEVELS, SUPPORT_LEVELS, Assessment, Case
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
"""Methods that make the answer's request the benchmark's own, so that its reply is found and not asked for again."""
UNSHARED = "no value in another variant that it is compared with"
STEPS = ("n", "n_scores", "n_passages", "n_tables", "criteria", *SUPPORT_LEVELS, "quoted", "reasons")
SAMPLED = (
    "poc", "semantic_poc", "lexical_similarity", "semantic_similarity", "num_set", "deg", "eigv", "ecc", "mc_se", "mc_nse",
    "semantic_entropy", "semantic_entropy_normalised", "semantic_entropy_discrete", "sentence_sar", "sentence_sar_printed", "sar",
)  # fmt: skip
"""The consistency family, without the method that needs a medical encoder."""


@dataclass(frozen=True)
class Ablations:
    """The tables of several variants, each tidy and with a column ``variant``, in the order of the variants.

    ``answers`` and ``confidence`` as a benchmark's :class:`Run` has them; ``calls``: a row a variant and model with the
    replies asked for (``n_made``) and taken from what was there (``n_cached``). ``runs`` are the benchmarks themselves.
    """

    answers: pd.DataFrame
    confidence: pd.DataFrame
    calls: pd.DataFrame
    runs: Mapping[str, Run] = field(repr=False)

    def judged(self) -> pd.DataFrame:
        """The confidences with ``correct`` beside them, as :func:`trustlab.metrics.paired.paired_differences` takes them."""
        keys = ["variant", *KEYS]
        return self.confidence.merge(self.answers[[*keys, "correct"]], on=keys, how="left", validate="many_to_one")


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
    """The benchmark once for each variant: name -> the keywords of ``benchmark`` that it changes (medconf, retriever, ...).

    ``asking`` are keywords for all of them. Each variant's tables go to a folder of its own below ``run_dir``; replies to
    ``cache`` (default: a file in ``run_dir``, without one memory), shared by all. The diagnoses are the same in every
    variant, since none changes how they are asked. Raises ``ValueError`` for no variants, two with one folder, or what
    ``benchmark`` refuses.
    """
    folders = {name: re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-") for name in variants}
    if not variants or len(set(folders.values())) < len(variants):
        raise ValueError(f"variants must be one or more, each with a folder name of its own; received {folders}")
    store = cache or (Path(run_dir) / "replies.sqlite" if run_dir else None)
    asking = {"quiet": True, **asking, "grader": open_grader(asking.get("grader") or SynonymGrader())}
    asking["retriever"] = asking.get("retriever") or BM25(load_corpus())
    held = [model if isinstance(model, CachedModel) else CachedModel(model, store) for model in models]
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
        runs[name] = benchmark(cases, held, chosen, levels, run_dir=folder, cache=store, **{**asking, **changed})
    for one, given in zip(held, models, strict=True):
        if one is not given:
            one.close()
    answers = _stacked({name: run.answers for name, run in runs.items()})
    _same_answers(answers)
    confidence = _stacked({name: run.confidence[run.confidence["method"].isin(list(methods))] for name, run in runs.items()})
    return Ablations(answers, confidence, _calls(runs), runs)


def passages(counts: Sequence[int], medconf: MedConf | None = None) -> dict[str, dict[str, Any]]:
    """Variants by the number of passages that are looked up."""
    return {f"{n} passages": {"medconf": replace(medconf or MedConf(), n_passages=n)} for n in counts}


def of_libraries(retrievers: Mapping[str, Retriever]) -> dict[str, dict[str, Any]]:
    """Variants by the library that is searched."""
    return {name: {"retriever": retriever} for name, retriever in retrievers.items()}


def sampling(counts: Sequence[int], temperatures: Sequence[float]) -> dict[str, dict[str, Any]]:
    """Variants by the number of samples K and their temperature; a smaller K reads the first samples of a larger one."""
    return {
        f"K {k}, temperature {t:g}": {"samples": k, "temperature": t} for t in temperatures for k in sorted(counts, reverse=True)
    }


def variant_metrics(made: Ablations, n_draws: int = 2000, seed: int = 0, n_jobs: int = 1) -> pd.DataFrame:
    """``metrics_table`` of every variant, with the columns ``variant``, ``n_samples``, ``temperature``, ``n_passages``."""
    parts = {}
    for name, run in made.runs.items():
        shown = made.confidence[made.confidence["variant"] == name]
        table = metrics_table(replace(run, confidence=shown), n_draws=n_draws, seed=seed, n_jobs=n_jobs)
        p = run.parameters
        settings = {"n_samples": p["n_samples"], "temperature": p["sample_temperature"], "n_passages": p["medconf"]["n_passages"]}
        parts[name] = table.assign(**settings)
    return _stacked(parts)


def on_shared_rows(made: Ablations, by_method: bool = False) -> Ablations:
    """The same with values on one set of answers alone, so that no variant looks better for having lost the hard ones.

    Of each model and data set (and method, with ``by_method``) the answers stay for which every variant and method compared has
    a confidence; the others' confidences become missing, with the reason. A variant of a method with values for less than
    ``MIN_COVERAGE`` of the answers that any of these has is not compared: it loses all of them, and its reason says so.
    """
    part = ["model", "dataset", *(["method"] if by_method else [])]
    point = ["model", "dataset", "method", "variant"]
    table = made.confidence.copy()
    known = table["confidence"].notna()
    row = [table[c] for c in dict.fromkeys([*part, *KEYS])]
    n_known, n_any = (
        has.groupby([table[c] for c in point]).transform("sum") for has in (known, known.groupby(row).transform("any"))
    )
    compared = n_known >= MIN_COVERAGE * n_any
    few = known & ~compared
    everywhere = (known | ~compared).groupby(row).transform("all")
    left_out = "a value for only " + n_known.astype(str) + " of " + n_any.astype(str) + " answers"
    table.loc[few, "missing"] = left_out[few]
    unshared = known & compared & ~everywhere
    table.loc[unshared, "missing"] = UNSHARED
    table.loc[few | unshared, "confidence"] = float("nan")
    return replace(made, confidence=table)


def evidence_summary(made: Ablations) -> pd.DataFrame:
    """What MedConf's steps gave in each variant, a row a model, data set and variant.

    ``n`` answers were assessed, ``n_scores`` of them got a score; ``n_passages`` is the mean number shown. ``n_tables`` have a
    table of evidence: ``criteria`` is its mean length, ``supported``, ``missing`` and ``contradicted`` the mean shares of its
    criteria, ``quoted`` the share of all their quotations that occur in the patient's words. NaN where there is
    nothing to average. ``reasons`` are those of the missing scores, counted, most frequent first.
    """
    rows = []
    for name, run in made.runs.items():
        dataset = dict(zip(run.answers["case_id"], run.answers["dataset"], strict=True))
        groups: dict[tuple[str, str], list[Assessment]] = {}
        for g in run.generations:
            if g.assessment is not None:
                groups.setdefault((g.model, dataset[g.case_id]), []).append(g.assessment)
        rows += [{"model": m, "dataset": d, "variant": name, **_summary(found)} for (m, d), found in groups.items()]
    return pd.DataFrame(rows, columns=pd.Index(["model", "dataset", "variant", *STEPS]))


def _summary(found: Sequence[Assessment]) -> dict[str, Any]:
    tables = [a.evidence for a in found if a.evidence]
    shares = pd.DataFrame([{s: sum(e.support_level == s for e in t) / len(t) for s in SUPPORT_LEVELS} for t in tables])
    occurs = pd.Series([e.quote_occurs for t in tables for e in t if e.quote_occurs is not None], dtype=float)
    why = Counter(a.missing or "no score" for a in found if a.score is None)
    return {
        "n": len(found),
        "n_scores": sum(a.score is not None for a in found),
        "n_passages": pd.Series([len(a.passages) for a in found], dtype=float).mean(),
        "n_tables": len(tables),
        "criteria": pd.Series([len(t) for t in tables], dtype=float).mean(),
        **{s: shares[s].mean() if len(shares) else float("nan") for s in SUPPORT_LEVELS},
        "quoted": occurs.mean(),
        "reasons": "; ".join(f"{reason} ({n})" for reason, n in why.most_common()),
    }


def _calls(runs: Mapping[str, Run]) -> pd.DataFrame:
    parts = {
        name: run.calls.groupby("model", sort=False)[["n", "n_made", "n_cached"]].sum().reset_index()
        for name, run in runs.items()
    }
    return _stacked(parts).rename(columns={"n": "n_replies"})


def _stacked(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    return pd.concat([table.assign(variant=name) for name, table in tables.items()], ignore_index=True)


def _same_answers(answers: pd.DataFrame) -> None:
    """What every comparison of variants rests on: where two of them have an answer, it is the same."""
    told = answers[answers["answer"].notna()]
    assert (told.groupby(KEYS)["answer"].nunique() == 1).all(), "variants of one procedure were given different answers"
