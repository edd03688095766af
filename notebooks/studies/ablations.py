"""03: MedConf without its parts, other libraries and samples, choices that sources leave open."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, Self

import pandas as pd
import pydantic

from trustlab.agents.medconf import MedConf
from trustlab.choices import Counts, Options, Warmth, choices
from trustlab.confidence import METHODS, select
from trustlab.knowledge.findings import load_knowledge
from trustlab.meaning.encoder import Encoder
from trustlab.meaning.entailment import Entailment
from trustlab.meaning.parts import Readers
from trustlab.metrics import run_tables
from trustlab.metrics.run_tables import Tables
from trustlab.metrics.schema import column_of, rows_where
from trustlab.models.base import Model
from trustlab.records import Case, Context, View, normalise
from trustlab.retrieval import BM25, N_BEST, Passage, Retriever
from trustlab.retrieval.corpora import CorpusPath, corpus_files, load_corpus
from trustlab.retrieval.disk_index import open_retriever
from trustlab.runs.experiment import benchmark, run_each
from trustlab.runs.formatted import JUDGED, KEYS
from trustlab.runs.gate import without_unread
from trustlab.runs.run import Run, confidence_table
from trustlab.runs.workbench import Workbench, opened
from trustlab.settings import Setup

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
_CONSISTENCY = [m for m in select("variants") if m.family == "consistency"]
SAMPLED = tuple(m.name for m in _CONSISTENCY if "similarity_med" not in m.needs)
"""The consistency family, without the method that needs a medical encoder."""


@choices
class Asked(Workbench):
    """The choices of notebook 03."""

    UNUSED = ("doctor", "patient", "reviewer", "wording", "medical_proxy")

    n_passages: Counts
    """Passages that MedConf looks up."""
    corpora: Options = pydantic.Field(default_factory=dict)
    """Further libraries, name -> file or folder of passages."""
    n_samples: Counts
    temperatures: Annotated[
        Sequence[Warmth], pydantic.Field(min_length=1, description="a list of numbers above 0")
    ]
    cosines: Annotated[
        Sequence[Annotated[float, pydantic.Field(ge=-1, le=1)]],
        pydantic.Field(description="a list of numbers from -1 to 1"),
    ] = (0.85,)
    """From which cosine on an encoder takes two diagnoses for the same."""
    contexts: Annotated[
        Sequence[Context], pydantic.Field(description="a list of 'answer', 'full' or both")
    ] = ("answer", "full")

    @pydantic.model_validator(mode="after")
    def _corpora(self) -> Self:
        for path in self.corpora.values():
            corpus_files(path)
        return self


setup = Asked.of


@dataclass(frozen=True)
class Ablations:
    """The tables of several variants, each tidy with a column ``variant``, in the variants' order.
    ``answers`` and ``confidence`` as those of the benchmarks, which are ``runs``. ``calls``: a row
    a variant and model with the replies asked for (``n_made``) and taken from the cache
    (``n_cached``)."""

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
    levels: Sequence[int] | None = None,
    setup: Setup | Workbench | None = None,
    *,
    methods: Sequence[str] = MEDCONF,
) -> Ablations:
    """The benchmark once for each variant, whose diagnoses are the same.

    - ``variants``: name -> what it changes in ``setup`` (medconf, retriever, samples, ...).
    - Each variant's tables go to a folder of its own below ``run_dir``; the replies to one store.
    - ``ValueError`` for no variants, two with one folder, or what ``benchmark`` refuses.
    """
    folders = {name: re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-") for name in variants}
    if not variants or len(set(folders.values())) < len(variants):
        wanted = "variants must be one or more, each with a folder name of its own"
        raise ValueError(f"{wanted}; received {folders}")
    setup = opened(setup).shared().with_(quiet=True, keep_generations=True)
    held = [setup.cached(m) for m in models]
    chosen = list(dict.fromkeys([*methods, *ASKED_WITH]))

    def variant(name: str) -> Run:
        here = setup.below(folders[name]).with_(**variants[name])
        return benchmark(cases, held, chosen, levels, here)

    runs = run_each({name: partial(variant, name) for name in variants})
    for one, before in zip(held, models, strict=True):
        if one is not before:
            one.close()
    answers = _stacked({name: run.answers for name, run in runs.items()})
    confidence: Any = _stacked({name: run.confidence for name, run in runs.items()})
    confidence = confidence[confidence["method"].isin(list(methods))].reset_index(drop=True)
    asked: Any = _stacked({name: run.calls for name, run in runs.items()})
    calls = asked.groupby(["variant", "model"], sort=False)[["n", "n_made", "n_cached"]].sum()
    calls = calls.reset_index().rename(columns={"n": "n_replies"})
    return Ablations(answers, confidence, calls, runs)


def passages(counts: Sequence[int]) -> dict[str, dict[str, Any]]:
    """Variants by the number of passages that are looked up."""
    return {f"{n} passages": {"medconf": MedConf(n_passages=n)} for n in counts}


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


def variants_table(made: Ablations, *, n_jobs: int = 1) -> pd.DataFrame:
    """Every metric of every method in every variant, and the settings of the variant.

    - All variants and methods of a model and data set stand on the answers that they share
      (:func:`~trustlab.metrics.run_tables.shared_rows`): no variant looks better for having lost
      the hard ones. One that would take too many away has ``own_rows``.
    - Columns of :func:`~trustlab.metrics.run_tables.metrics_table` in ``n_jobs`` processes, then
      ``variant n_samples temperature n_passages``. Accuracy, which no variant changes, is absent.
    """
    point = made.confidence["method"] + ", " + made.confidence["variant"]
    names = made.confidence[["method", "variant"]].assign(point=point).drop_duplicates()
    names = names.set_index("point")
    methods = column_of(names, "method")
    scales = {str(name): METHODS[method].scale for name, method in methods.items()}
    answers = next(iter(made.runs.values())).answers
    tables = Tables(answers, made.confidence.assign(method=point))
    found = run_tables.metrics_table(tables, scales, n_jobs=n_jobs)
    found = rows_where(found, found["method"].ne("")).reset_index(drop=True)
    points = column_of(found, "method")
    settings = pd.DataFrame([_settings(run.parameters) for run in made.runs.values()])
    settings = settings.assign(variant=list(made.runs))
    variants = points.map(column_of(names, "variant"))
    found = found.assign(variant=variants, method=points.map(methods))
    return found.merge(settings, on="variant", how="left", validate="many_to_one")


def _settings(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """What variants of sampling and of passages differ in."""
    return {
        "n_samples": parameters["n_samples"],
        "temperature": parameters["sample_temperature"],
        "n_passages": parameters["medconf"]["n_passages"],
    }


def _stacked(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    named = [found.assign(variant=name) for name, found in tables.items()]
    return pd.concat(named, ignore_index=True)


MAX_KINDS = 6  # more kinds of passage than this are titles, not kinds
WRONG = "control: passages of another disease"


class WrongPassages:
    """A retriever that answers with passages for another disease: a control.
    For a keyword it searches one of ``keywords`` (default: the knowledge table's conditions) that
    names another condition, in the order of a hash of ``seed`` and both, without what the keyword
    itself finds and passages whose title names its condition. ``ValueError`` below two keywords."""

    def __init__(
        self, retriever: Retriever, keywords: Sequence[str] | None = None, seed: int = 0
    ) -> None:
        names = [c.name for c in load_knowledge().conditions.values()]
        self.keywords = tuple(dict.fromkeys(names if keywords is None else keywords))
        if len(self.keywords) < 2:
            raise ValueError(f"keywords must be two or more; received {list(self.keywords)}")
        self.retriever, self.seed = retriever, seed
        listed = hashlib.sha256("\0".join(self.keywords).encode()).hexdigest()[:16]
        self.gated = False  # passages of another disease are what it is for
        self.revision = f"wrong passages (seed={seed} keywords={listed}) of {retriever.revision}"

    def search(self, query: str, k: int = N_BEST) -> list[Passage]:
        """The ``k`` best passages for another keyword, best first, none of ``query``'s own."""
        right = {passage.id for passage in self.retriever.search(query, k)}
        meant = _meant(query)

        def place(keyword: str) -> str:
            key = f"{self.seed}\0{normalise(query)}\0{keyword}"
            return hashlib.sha256(key.encode()).hexdigest()

        for keyword in sorted(self.keywords, key=place):
            if _meant(keyword) != meant and (found := self._others(keyword, k, right, meant)):
                return found
        return []

    def _others(self, keyword: str, k: int, right: set[str], meant: str) -> list[Passage]:
        """The ``k`` best for ``keyword``, not ``right``, of no title that is ``meant``, whole or
        before its colon."""
        n = k + len(right)
        while True:
            found = self.retriever.search(keyword, n)
            others = [p for p in found if p.id not in right]
            subjects = ({_meant(p.title), _meant(p.title.rpartition(": ")[0])} for p in others)
            others = [p for p, of in zip(others, subjects, strict=True) if meant not in of]
            if len(others) >= k or len(found) < n:
                return others[:k]
            n *= 2


def _meant(name: str) -> str:
    """The id of the condition that ``name`` names in the knowledge table; else its words."""
    condition = load_knowledge().condition_named(name)
    return condition.id if condition else normalise(name)


def libraries(
    corpus: CorpusPath | None = None, corpora: Mapping[str, CorpusPath] | None = None
) -> dict[str, Retriever]:
    """Name -> retriever: the ``whole`` of ``corpus`` (default: ours), its kinds of passage
    (:func:`kinds`), ``corpora``, the control.
    ``ValueError`` where a name of ``corpora`` is taken already; else as ``open_retriever``."""
    whole = open_retriever(corpus)
    found: dict[str, Retriever] = {"whole": whole}
    if isinstance(whole, BM25):
        found |= {f"only {kind}": BM25(part) for kind, part in kinds(load_corpus(corpus)).items()}
    for name, path in (corpora or {}).items():
        if name in found or name == WRONG:
            raise ValueError(f"corpora has {name!r}, which is taken; taken are {[*found, WRONG]}")
        found[name] = open_retriever(path)
    return found | {WRONG: WrongPassages(whole)}


def kinds(passages: Sequence[Passage]) -> dict[str, list[Passage]]:
    """Kind, after a title's colon -> its passages; none where one has none, or too many."""
    parts: dict[str, list[Passage]] = {}
    for passage in passages:
        _, colon, kind = passage.title.rpartition(": ")
        if not colon:
            return {}
        parts.setdefault(kind, []).append(passage)
    return parts if 1 < len(parts) <= MAX_KINDS else {}


RELEVANT = {"relevance", "sample_relevance"}


def readings(
    run: Run,
    views: Sequence[View],
    rules: Sequence[Entailment],
    contexts: Sequence[str],
    encoder: Encoder,
) -> pd.DataFrame:
    """The run's confidences, and again what reads meaning, under each rule and each context of SAR.
    The columns of ``run.confidence`` and ``choice`` ('', "same meaning" or "context") and
    ``option`` ("default", a rule's name, or a context). Rules compare bare diagnoses. ``views``:
    those that the run showed."""
    shown = {(v.case.case_id, v.level): v for v in views}
    of_run = [shown[g.case_id, g.level] for g in run.generations]
    methods = select(run.parameters["methods"])
    bare = {"entailment_context": "answer"}
    of = run.parameters
    again: list[tuple[str, str, set[str], Readers, dict[str, Any]]] = [
        ("same meaning", rule.name, JUDGED, Readers(encoder, None, rule), bare)
        for rule in rules
        if rule.name != of["entailment"]["name"]
    ]
    again += [
        ("context", context, RELEVANT, Readers.of(encoder), {"relevance_context": context})
        for context in contexts
        if context != of["relevance_context"]
    ]
    parts = [run.confidence.assign(choice="", option="default")]
    for choice, option, family, readers, changed in again:
        if changing := [m for m in methods if family.intersection(m.needs)]:
            needs = {need for m in changing for need in m.needs} & family
            fresh: Any = {"parameters": replace(run.generations[0].parameters, **changed)}
            given = [replace(g, **fresh, **dict.fromkeys(needs)) for g in run.generations]
            made = confidence_table(of_run, readers.read(given, of_run, needs), changing)
            made = without_unread(replace(run, confidence=made)).confidence
            parts.append(made.assign(choice=choice, option=option))
    return pd.concat(parts, ignore_index=True)


def dry_run(cases: Sequence[Case], models: Sequence[Model], asked: Asked) -> None:
    """Ask what the notebook asks, for ``trustlab plan``."""
    ablations(cases, models, setup=asked)
    ablations(cases, models, of_libraries(libraries(asked.corpus, asked.corpora)), setup=asked)
    ablations(cases, models, passages(asked.n_passages), setup=asked)
    warmth = sampling(asked.n_samples, asked.temperatures)
    ablations(cases, models, warmth, methods=SAMPLED, setup=asked)
    benchmark(cases, models, setup=asked)
