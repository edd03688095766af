"""03: MedConf without its parts, other libraries and samples, choices that sources leave open."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, NamedTuple, Self

import pandas as pd
import pydantic

from trustlab.agents.medconf import MedConf
from trustlab.choices import Counts, Options, Warmth, choices
from trustlab.confidence import METHODS, select
from trustlab.confidence.registry import BY_JUDGE
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
from trustlab.runs.formatted import KEYS
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
METHODS_OF_BENCHMARK = ("entropy", "pmi")
"""Methods that make the answer's request the benchmark's own, so that its reply is cached."""
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
        Sequence[Warmth],
        pydantic.Field(min_length=1, description="a list of numbers above 0"),
    ]
    cosines: Annotated[
        Sequence[Annotated[float, pydantic.Field(ge=-1, le=1)]],
        pydantic.Field(description="a list of numbers from -1 to 1"),
    ] = (0.85,)
    """From which cosine on an encoder takes two diagnoses for the same."""
    contexts: Annotated[
        Sequence[Context],
        pydantic.Field(description="a list of 'answer', 'full' or both"),
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
    folders = {
        name: re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-") for name in variants
    }
    if not variants or len(set(folders.values())) < len(variants):
        wanted = "variants must be one or more, each with a folder name of its own"
        raise ValueError(f"{wanted}; received {folders}")
    setup = opened(setup).shared().with_(quiet=True, keep_generations=True)
    cached_models = [setup.cached(model) for model in models]
    wanted = list(dict.fromkeys([*methods, *METHODS_OF_BENCHMARK]))

    def run_of(name: str) -> Run:
        changed = setup.below(folders[name]).with_(**variants[name])
        return benchmark(cases, cached_models, wanted, levels, changed)

    runs = run_each({name: partial(run_of, name) for name in variants})
    for cached, model in zip(cached_models, models, strict=True):
        if cached is not model:
            cached.close()
    confidence = _stacked_variants(runs, "confidence")
    is_shown = confidence["method"].isin(list(methods))
    requests = _stacked_variants(runs, "calls")
    of_models = requests.groupby(["variant", "model"], sort=False)
    calls = of_models[["n", "n_made", "n_cached"]].sum().reset_index()
    return Ablations(
        answers=_stacked_variants(runs, "answers"),
        confidence=confidence[is_shown].reset_index(drop=True),
        calls=calls.rename(columns={"n": "n_replies"}),
        runs=runs,
    )


def passages(counts: Sequence[int]) -> dict[str, dict[str, Any]]:
    """Variants by the number of passages that are looked up."""
    return {f"{n} passages": {"medconf": MedConf(n_passages=n)} for n in counts}


def of_libraries(retrievers: Mapping[str, Retriever]) -> dict[str, dict[str, Any]]:
    """Variants by the library that is searched."""
    return {name: {"retriever": retriever} for name, retriever in retrievers.items()}


def sampling(
    counts: Sequence[int], temperatures: Sequence[float]
) -> dict[str, dict[str, Any]]:
    """Variants by temperature and number of samples (K reads the first of a larger K)."""
    return {
        f"K {k}, temperature {t:g}": {"samples": k, "temperature": t}
        for t in temperatures
        for k in sorted(counts, reverse=True)
    }


def variants_table(ablated: Ablations, *, n_jobs: int = 1) -> pd.DataFrame:
    """Every metric of every method in every variant, and the settings of the variant.

    - All variants and methods of a model and data set stand on the answers that they share
      (:func:`~trustlab.metrics.run_tables.shared_rows`): no variant looks better for having lost
      the hard ones. One that would take too many away has ``own_rows``.
    - Columns of :func:`~trustlab.metrics.run_tables.metrics_table` in ``n_jobs`` processes, then
      ``variant n_samples temperature n_passages``. Accuracy, which no variant changes, is absent.
    """
    confidence = ablated.confidence
    points = confidence["method"] + ", " + confidence["variant"]
    of_points = confidence[["method", "variant"]].assign(point=points)
    of_points = of_points.drop_duplicates().set_index("point")
    methods = column_of(of_points, "method")
    scales = {str(name): METHODS[method].scale for name, method in methods.items()}
    first = next(iter(ablated.runs.values()))
    tables = Tables(first.answers, confidence.assign(method=points))
    metrics = run_tables.metrics_table(tables, scales, n_jobs=n_jobs)
    metrics = rows_where(metrics, metrics["method"].ne(""))
    metrics = metrics.reset_index(drop=True)
    points = column_of(metrics, "method")
    variants = column_of(of_points, "variant")
    metrics["variant"] = points.map(variants)
    metrics["method"] = points.map(methods)
    settings = [
        {
            "variant": name,
            "n_samples": run.parameters["n_samples"],
            "temperature": run.parameters["sample_temperature"],
            "n_passages": run.parameters["medconf"]["n_passages"],
        }
        for name, run in ablated.runs.items()
    ]
    of_variants = pd.DataFrame(settings)
    return metrics.merge(of_variants, on="variant", how="left", validate="many_to_one")


def _stacked_variants(runs: Mapping[str, Run], table: str) -> Any:
    """A table of every variant's run, below one another."""
    named = [getattr(run, table).assign(variant=name) for name, run in runs.items()]
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
            raise ValueError(
                f"keywords must be two or more; received {list(self.keywords)}"
            )
        self.retriever = retriever
        self.seed = seed
        listed = hashlib.sha256("\0".join(self.keywords).encode()).hexdigest()[:16]
        self.gated = False  # passages of another disease are what it is for
        self.revision = (
            f"wrong passages (seed={seed} keywords={listed}) of {retriever.revision}"
        )

    def search(self, query: str, k: int = N_BEST) -> list[Passage]:
        """The ``k`` best passages for another keyword, best first, none of ``query``'s own."""
        own_ids = {passage.id for passage in self.retriever.search(query, k)}
        condition = _condition(query)

        def place(keyword: str) -> str:
            key = f"{self.seed}\0{normalise(query)}\0{keyword}"
            return hashlib.sha256(key.encode()).hexdigest()

        for keyword in sorted(self.keywords, key=place):
            if _condition(keyword) == condition:
                continue
            others = self._others(keyword, k, own_ids, condition)
            if others:
                return others
        return []

    def _others(
        self, keyword: str, k: int, own_ids: set[str], condition: str
    ) -> list[Passage]:
        """The ``k`` best for ``keyword`` that are none of ``own_ids`` and whose titles do not name
        ``condition``, whole or before their colon."""
        n = k + len(own_ids)
        while True:
            best = self.retriever.search(keyword, n)
            others = []
            for passage in best:
                before_colon, _, _ = passage.title.rpartition(": ")
                subjects = {_condition(passage.title), _condition(before_colon)}
                if passage.id not in own_ids and condition not in subjects:
                    others.append(passage)
            if len(others) >= k or len(best) < n:
                return others[:k]
            n *= 2


def _condition(name: str) -> str:
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
    retrievers: dict[str, Retriever] = {"whole": whole}
    if isinstance(whole, BM25):
        for kind, part in kinds(load_corpus(corpus)).items():
            retrievers[f"only {kind}"] = BM25(part)
    for name, path in (corpora or {}).items():
        if name in retrievers or name == WRONG:
            taken = [*retrievers, WRONG]
            raise ValueError(f"corpora has {name!r}, which is taken; taken are {taken}")
        retrievers[name] = open_retriever(path)
    retrievers[WRONG] = WrongPassages(whole)
    return retrievers


def kinds(passages: Sequence[Passage]) -> dict[str, list[Passage]]:
    """Kind, after a title's colon -> its passages; none where one has none, or too many."""
    parts = {}
    for passage in passages:
        _, colon, kind = passage.title.rpartition(": ")
        if not colon:
            return {}
        parts.setdefault(kind, []).append(passage)
    has_kinds = 1 < len(parts) <= MAX_KINDS
    return parts if has_kinds else {}


RELEVANT = {"relevance", "sample_relevance"}


class Choice(NamedTuple):
    """Another choice of how meaning is read, and what it changes."""

    name: str
    option: str
    family: set[str] | frozenset[str]
    """The needs of methods that it concerns."""
    readers: Readers
    changes: Mapping[str, Context]
    """Of the parameters."""


def readings(
    run: Run,
    views: Sequence[View],
    rules: Sequence[Entailment],
    contexts: Sequence[Context],
    encoder: Encoder,
) -> pd.DataFrame:
    """The run's confidences, and again what reads meaning, under each rule and each context of SAR.
    The columns of ``run.confidence`` and ``choice`` ('', "same meaning" or "context") and
    ``option`` ("default", a rule's name, or a context). Rules compare bare diagnoses. ``views``:
    those that the run showed."""
    parameters = run.parameters
    again = []
    for rule in rules:
        if rule.name != parameters["entailment"]["name"]:
            readers = Readers(encoder, None, rule)
            changes: Mapping[str, Context] = {"entailment_context": "answer"}
            again.append(Choice("same meaning", rule.name, BY_JUDGE, readers, changes))
    for context in contexts:
        if context != parameters["relevance_context"]:
            readers = Readers.of(encoder)
            changes = {"relevance_context": context}
            again.append(Choice("context", context, RELEVANT, readers, changes))
    view_by_key = {(view.case.case_id, view.level): view for view in views}
    shown = [view_by_key[record.case_id, record.level] for record in run.generations]
    parts = [run.confidence.assign(choice="", option="default")]
    for choice in again:
        confidence = read_again(run, shown, choice)
        if confidence is not None:
            parts.append(confidence.assign(choice=choice.name, option=choice.option))
    return pd.concat(parts, ignore_index=True)


def read_again(run: Run, shown: Sequence[View], choice: Choice) -> pd.DataFrame | None:
    """The confidences that a choice changes; ``None`` where no method of the run depends on it.
    ``shown``: the view of each record."""
    methods = []
    needs = set()
    for method in select(run.parameters["methods"]):
        of_family = choice.family.intersection(method.needs)
        if of_family:
            methods.append(method)
            needs |= of_family
    if not methods:
        return None
    parameters = replace(run.generations[0].parameters, **choice.changes)
    unread: Any = dict.fromkeys(needs)
    records = [
        replace(record, parameters=parameters, **unread) for record in run.generations
    ]
    confidence = confidence_table(
        shown, choice.readers.read(records, shown, needs), methods
    )
    return without_unread(replace(run, confidence=confidence)).confidence


def dry_run(
    cases: Sequence[Case], models: Sequence[Model], notebook_setup: Asked
) -> None:
    """Ask what the notebook asks, for ``trustlab plan``."""
    ablations(cases, models, setup=notebook_setup)
    retrievers = libraries(notebook_setup.corpus, notebook_setup.corpora)
    ablations(cases, models, of_libraries(retrievers), setup=notebook_setup)
    ablations(cases, models, passages(notebook_setup.n_passages), setup=notebook_setup)
    warmth = sampling(notebook_setup.n_samples, notebook_setup.temperatures)
    ablations(cases, models, warmth, methods=SAMPLED, setup=notebook_setup)
    benchmark(cases, models, setup=notebook_setup)
