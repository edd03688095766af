"""One procedure with its settings changed: parts of MedConf switched off, passages, samples.

Each variant is a set of keywords for :func:`trustlab.experiments.benchmark.benchmark` over the same
replies, so that only what is new is asked.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportReturnType=false
# pyright: reportGeneralTypeIssues=false, reportOperatorIssue=false

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from trustlab.agents import MedConf
from trustlab.correctness import JudgeGrader, SynonymGrader, open_grader
from trustlab.experiments.benchmark import Run, benchmark
from trustlab.experiments.tables import KEYS
from trustlab.metrics.estimate import NAN, Rows, estimate, mean, share
from trustlab.metrics.paired import MIN_COVERAGE
from trustlab.metrics.schema import table
from trustlab.metrics.table import metrics_table
from trustlab.models.base import Model
from trustlab.models.cache import CachedModel
from trustlab.records import LEVELS, SUPPORT_LEVELS, Case, Generation
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

    - ``answers`` and ``confidence`` as a benchmark's :class:`Run` has them.
    - ``calls``: a row a variant and model with the replies asked for (``n_made``) and taken from
      what was there (``n_cached``).
    - ``runs``: the benchmarks themselves.
    """

    answers: pd.DataFrame
    confidence: pd.DataFrame
    calls: pd.DataFrame
    runs: Mapping[str, Run] = field(repr=False)

    def judged(self) -> pd.DataFrame:
        """The confidences with ``correct`` beside them, as ``paired_differences`` takes them."""
        keys = ["variant", *KEYS]
        return self.confidence.merge(
            self.answers[[*keys, "correct"]], on=keys, how="left", validate="many_to_one"
        )


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
        raise ValueError(
            f"variants must be one or more, each with a folder name of its own; received {folders}"
        )
    store = cache or (Path(run_dir) / "replies.sqlite" if run_dir else None)
    asking = {
        "quiet": True,
        **asking,
        "grader": open_grader(asking.get("grader") or SynonymGrader()),
    }
    asking["retriever"] = asking.get("retriever") or BM25(load_corpus())
    held = [
        model if isinstance(model, CachedModel) else CachedModel(model, store) for model in models
    ]
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
        runs[name] = benchmark(
            cases, held, chosen, levels, run_dir=folder, cache=store, **{**asking, **changed}
        )
    for one, given in zip(held, models, strict=True):
        if one is not given:
            one.close()
    answers = _stacked({name: run.answers for name, run in runs.items()})
    _same_answers(answers)
    confidence = _stacked(
        {
            name: run.confidence[run.confidence["method"].isin(list(methods))]
            for name, run in runs.items()
        }
    )
    return Ablations(answers, confidence, _calls(runs), runs)


def passages(counts: Sequence[int], medconf: MedConf | None = None) -> dict[str, dict[str, Any]]:
    """Variants by the number of passages that are looked up."""
    return {
        f"{n} passages": {"medconf": replace(medconf or MedConf(), n_passages=n)} for n in counts
    }


def of_libraries(retrievers: Mapping[str, Retriever]) -> dict[str, dict[str, Any]]:
    """Variants by the library that is searched."""
    return {name: {"retriever": retriever} for name, retriever in retrievers.items()}


def sampling(counts: Sequence[int], temperatures: Sequence[float]) -> dict[str, dict[str, Any]]:
    """Variants by the number of samples K (a smaller K reads the first of a larger) and temperature."""
    return {
        f"K {k}, temperature {t:g}": {"samples": k, "temperature": t}
        for t in temperatures
        for k in sorted(counts, reverse=True)
    }


def variant_metrics(
    made: Ablations, n_draws: int = 2000, seed: int = 0, n_jobs: int = 1
) -> pd.DataFrame:
    """``metrics_table`` of every variant, with its ``n_samples``, ``temperature``, ``n_passages``."""
    parts = {}
    for name, run in made.runs.items():
        shown = made.confidence[made.confidence["variant"] == name]
        table = metrics_table(
            replace(run, confidence=shown), n_draws=n_draws, seed=seed, n_jobs=n_jobs
        )
        p = run.parameters
        settings = {
            "n_samples": p["n_samples"],
            "temperature": p["sample_temperature"],
            "n_passages": p["medconf"]["n_passages"],
        }
        parts[name] = table.assign(**settings)
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
    table = made.confidence.copy()
    known = table["confidence"].notna()
    row = [table[c] for c in dict.fromkeys([*part, *KEYS])]
    n_known, n_any = (
        has.groupby([table[c] for c in point]).transform("sum")
        for has in (known, known.groupby(row).transform("any"))
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


def evidence_summary(made: Ablations, n_draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """What MedConf's steps gave in each variant of each model and data set, by metric.

    - ``scores``: share of the answers assessed that got a score; ``missing`` has the reasons of the
      others, counted, most frequent first. ``passages``: mean number shown. ``tables``: share with
      a table of evidence.
    - Of these tables: ``criteria``, their mean length; ``supported``, ``missing`` and
      ``contradicted``, mean shares of their criteria.
    - ``quoted``: share of all their quotations that occur in the patient's words.
    """
    lines: list[dict[str, Any]] = []
    for name, run in made.runs.items():
        dataset = dict(zip(run.answers["case_id"], run.answers["dataset"], strict=True))
        groups: dict[tuple[str, str], list[Generation]] = {}
        for g in run.generations:
            if g.assessment is not None:
                groups.setdefault((g.model, dataset[g.case_id]), []).append(g)
        for (model, of), found in groups.items():
            label = {"model": model, "dataset": of, "variant": name}
            lines += [{**label, **line} for line in _steps(found, n_draws, seed)]
    return table(lines, ["model", "dataset", "variant"], ["n_hits"])


def _steps(found: Sequence[Generation], n_draws: int, seed: int) -> Iterator[dict[str, Any]]:
    given: list[tuple[str, Any]] = [(g.case_id, g.assessment) for g in found]
    steps = pd.DataFrame(
        {
            "case_id": case_id,
            "scores": a.score is not None,
            "passages": len(a.passages),
            "tables": bool(a.evidence),
            "criteria": len(a.evidence) if a.evidence else NAN,
            **{
                level: sum(e.support_level == level for e in a.evidence) / len(a.evidence)
                for level in (SUPPORT_LEVELS if a.evidence else ())
            },
        }
        for case_id, a in given
    )
    quotes = pd.DataFrame(
        [(case_id, e.quote_occurs) for case_id, a in given for e in a.evidence or ()],
        columns=["case_id", "quoted"],
    ).dropna()
    why = Counter(a.missing or "no score" for _, a in given if a.score is None)
    reasons = "; ".join(f"{reason} ({n})" for reason, n in why.most_common())
    rows = Rows.of(steps, "passages", n_draws, seed)
    tables = Rows.of(steps, "criteria", rows.draws, none="no table of evidence")
    quoted = Rows.of(quotes, "quoted", rows.draws, none="no quotation")
    yield {"metric": "scores", **share(rows, "scores", note=reasons)}
    yield {"metric": "passages", **estimate(rows, mean("passages"))}
    yield {"metric": "tables", **share(rows, "tables")}
    for name in ("criteria", *SUPPORT_LEVELS):
        yield {"metric": name, **estimate(tables, mean(name))}
    yield {"metric": "quoted", **share(quoted, "quoted")}


def _calls(runs: Mapping[str, Run]) -> pd.DataFrame:
    parts = {
        name: run.calls.groupby("model", sort=False)[["n", "n_made", "n_cached"]]
        .sum()
        .reset_index()
        for name, run in runs.items()
    }
    return _stacked(parts).rename(columns={"n": "n_replies"})


def _stacked(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    return pd.concat(
        [table.assign(variant=name) for name, table in tables.items()], ignore_index=True
    )


def _same_answers(answers: pd.DataFrame) -> None:
    """Every comparison of variants rests on it: where two of them have an answer, it is the same."""
    told = answers[answers["answer"].notna()]
    assert (told.groupby(KEYS)["answer"].nunique() == 1).all(), (
        "variants of one procedure were given different answers"
    )
