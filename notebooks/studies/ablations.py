"""03: MedConf without its parts, other libraries and samples, choices that sources leave open."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, Self

import numpy as np
import pandas as pd
import pydantic

from trustlab.agents import MedConf
from trustlab.choices import Counts, Options, Warmth, choices
from trustlab.confidence import METHODS, select
from trustlab.formatted import JUDGED, KEYS
from trustlab.knowledge import load_knowledge
from trustlab.meaning.encoder import Encoder, pair_cosines
from trustlab.meaning.entailment import Entailment, Pair, StandInEntailment
from trustlab.meaning.parts import Readers, with_meaning
from trustlab.measures import metrics_table
from trustlab.metrics.estimate import (
    NAN,
    Rows,
    estimate,
    groups,
    mean,
    measure,
    share,
)
from trustlab.metrics.paired import MIN_COVERAGE, corrected, paired_differences
from trustlab.metrics.schema import table
from trustlab.models.base import Model
from trustlab.models.cache import CachedModel
from trustlab.records import SUPPORT_LEVELS, Case, Context, View, normalise
from trustlab.retrieval import BM25, N_BEST, Passage, Retriever, load_corpus, open_retriever
from trustlab.retrieval.corpus import CorpusPath, corpus_files
from trustlab.run import Run, benchmark, confidence_table, each_asked, without_unread
from trustlab.settings import Setup
from trustlab.workbench import Workbench, opened

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
SAMPLED = tuple(
    m.name
    for m in select("variants")
    if m.family == "consistency" and "similarity_med" not in m.needs
)
"""The consistency family, without the method that needs a medical encoder."""


@choices
class Asked(Setup):
    """The choices of notebook 03."""

    n_passages: Counts = (1, 3, 5, 15, 30)
    """Passages that MedConf looks up."""
    corpora: Options = pydantic.Field(default_factory=dict)
    """Further libraries, name -> file or folder of passages."""
    n_samples: Counts = (2, 3, 5, 10, 15)
    temperatures: Annotated[
        Sequence[Warmth], pydantic.Field(min_length=1, description="a list of numbers above 0")
    ] = (0.2, 0.5, 1.0)
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
    levels: Sequence[int] | None = None,
    setup: Setup | Workbench | None = None,
    *,
    methods: Sequence[str] = MEDCONF,
) -> Ablations:
    """The benchmark once for each variant.

    - ``variants``: name -> what it changes in ``setup`` (medconf, retriever, samples, ...).
    - Each variant's tables go to a folder of its own below ``run_dir``; the replies to one store.
    - The diagnoses are the same in every variant, since none changes how they are asked.
    - ``ValueError`` for no variants, two with one folder, or what ``benchmark`` refuses.
    """
    folders = {name: re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-") for name in variants}
    if not variants or len(set(folders.values())) < len(variants):
        wanted = "variants must be one or more, each with a folder name of its own"
        raise ValueError(f"{wanted}; received {folders}")
    setup = opened(setup).shared().with_(quiet=True, keep_generations=True)
    held = [m if isinstance(m, CachedModel) else CachedModel(m, setup.store) for m in models]
    chosen = list(dict.fromkeys([*methods, *ASKED_WITH]))

    def variant(name: str) -> Run:
        here = setup.below(folders[name]).with_(**variants[name])
        return benchmark(cases, held, chosen, levels, here)

    runs = each_asked({name: partial(variant, name) for name in variants})
    for one, before in zip(held, models, strict=True):
        if one is not before:
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


MAX_KINDS = 6
"""More kinds of passage than this are titles, not kinds."""
WRONG = "control: passages of another disease"


class WrongPassages:
    """A retriever that answers with passages for another disease: a control, so that none of them
    may be a right one.

    For a keyword it searches one of ``keywords`` (default: the names of the knowledge table's
    conditions) that names another condition, picked by a hash of ``seed`` and the keyword. It
    leaves out every passage that the keyword itself would have found, and every one whose title
    names the keyword's condition, by whatever synonym. Where nothing is left, the next in the order
    of the hash is tried. Raises ``ValueError`` for fewer than two keywords.
    """

    def __init__(
        self, retriever: Retriever, keywords: Sequence[str] | None = None, seed: int = 0
    ) -> None:
        names = (
            [c.name for c in load_knowledge().conditions.values()] if keywords is None else keywords
        )
        self.keywords = tuple(dict.fromkeys(names))
        if len(self.keywords) < 2:
            raise ValueError(f"keywords must be two or more; received {list(self.keywords)}")
        self.retriever, self.seed = retriever, seed
        listed = hashlib.sha256("\0".join(self.keywords).encode()).hexdigest()[:16]
        self.revision = f"wrong passages (seed={seed} keywords={listed}) of {retriever.revision}"

    def search(self, query: str, k: int = N_BEST) -> list[Passage]:
        """The ``k`` best passages for another keyword, best first, without those that ``query``
        finds among its own ``k``."""
        right, meant = {passage.id for passage in self.retriever.search(query, k)}, _meant(query)
        for keyword in sorted(self.keywords, key=lambda word: self._place(query, word)):
            if _meant(keyword) != meant and (found := self._others(keyword, k, right, meant)):
                return found
        return []

    def _others(self, keyword: str, k: int, right: set[str], meant: str) -> list[Passage]:
        """The ``k`` best for ``keyword`` that are not ``right`` and whose title does not name what
        is ``meant``."""
        n = k + len(right)
        while True:
            found = self.retriever.search(keyword, n)
            others = [
                p
                for p in found
                if p.id not in right and meant not in (_meant(p.title), _meant(_subject(p.title)))
            ]
            if len(others) >= k or len(found) < n:
                return others[:k]
            n *= 2

    def _place(self, query: str, keyword: str) -> str:
        return hashlib.sha256(f"{self.seed}\0{normalise(query)}\0{keyword}".encode()).hexdigest()


def _meant(name: str) -> str:
    """The id of the condition that ``name`` stands for, as the knowledge table has it; else its
    words, normalised."""
    condition = load_knowledge().condition_named(name)
    return condition.id if condition else normalise(name)


def _subject(title: str) -> str:
    """What stands before the colon of a passage's title: "Influenza" of "Influenza:
    look-alikes"."""
    return title.rpartition(": ")[0]


def libraries(
    corpus: CorpusPath | None = None, corpora: Mapping[str, CorpusPath] | None = None
) -> dict[str, Retriever]:
    """Name -> retriever: the ``whole`` of ``corpus`` (default: our own), its kinds of passage,
    ``corpora``, the control.

    A kind is what stands after the colon in a passage's title ("Influenza: look-alikes"), where all
    titles have one and they are few. Raises ``ValueError`` where a name of ``corpora`` is taken
    already; else as ``open_retriever``.
    """
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
    """Kind -> its passages, in order of appearance; none where a title names no kind, or there are
    one or too many."""
    parts: dict[str, list[Passage]] = {}
    for passage in passages:
        _, colon, kind = passage.title.rpartition(": ")
        if not colon:
            return {}
        parts.setdefault(kind, []).append(passage)
    return parts if 1 < len(parts) <= MAX_KINDS else {}


RELEVANT = {"relevance", "sample_relevance"}
"""Needs that are read in a context."""
CONTEXTS = ("answer", "full")
DEFAULT = "default"
RULE, CONTEXT, FORMULA = "same meaning", "context", "formula"


class ExactEntailment:
    """Two diagnoses mean the same where their words do, without case and punctuation."""

    name, revision, stand_in = "exact strings", "exact strings", True

    def probabilities(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Of each (premise, hypothesis): entailment, neutral, contradiction; (n, 3), 0 or 1."""
        return _certain([normalise(a) == normalise(b) for a, b in pairs])


class CosineEntailment:
    """Two diagnoses mean the same where an encoder puts them at ``threshold`` (cosine) or closer.

    Else they contradict. ``ValueError`` for a threshold outside -1 to 1.
    """

    stand_in = True

    def __init__(self, encoder: Encoder | None = None, threshold: float = 0.85) -> None:
        if not -1 <= threshold <= 1:
            raise ValueError(f"threshold is {threshold!r}; allowed is a cosine, -1 to 1")
        self.encoder, self.threshold = encoder or Encoder(), threshold
        self.name = f"cosine {threshold:g}"

    @property
    def revision(self) -> str:
        """The judge in a manifest's words."""
        return f"{self.name} of {self.encoder.revision}"

    def probabilities(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Of each (premise, hypothesis): entailment, neutral, contradiction; (n, 3), 0 or 1."""
        cosines = pair_cosines(self.encoder, pairs)
        return _certain([cosines[pair] >= self.threshold for pair in pairs])


def _certain(same: Sequence[bool]) -> np.ndarray:
    return np.array([[yes, 0, not yes] for yes in same], dtype=np.float64).reshape(len(same), 3)


def rules(setup: Workbench) -> list[Entailment]:
    """The rules for "same meaning" that are tried beside the default: exact words, cosines and,
    where the default is an NLI model, the rule-based proxy."""
    encoder = setup.readers.encoder
    proxy = [StandInEntailment(encoder)] if setup.entailment else []
    return [ExactEntailment(), *(CosineEntailment(encoder, c) for c in setup.cosines), *proxy]


def forms(methods: Sequence[str]) -> dict[str, list[str]]:
    """Base method -> its variants in ``methods``, by the equation that both are registered with."""
    equation = {m: METHODS[m].equation for m in methods}
    bases = {e: m for m, e in equation.items() if e and not e.endswith(" (variant)")}
    found: dict[str, list[str]] = {}
    for m, e in equation.items():
        if e.endswith(" (variant)") and (base := bases.get(e.removesuffix(" (variant)"))):
            found.setdefault(base, []).append(m)
    return found


def readings(
    run: Run,
    views: Sequence[View],
    rules: Sequence[Entailment],
    contexts: Sequence[str] = CONTEXTS,
    encoder: Encoder | None = None,
) -> pd.DataFrame:
    """The run's confidences, and again what reads meaning, under each rule and each context of SAR.

    - The columns of ``run.confidence`` and ``choice`` ('', "same meaning" or "context") and
      ``option`` ("default", a rule's name, or a context). Rules compare bare diagnoses.
    - ``views``: those that the run showed. ``ValueError`` where one is lacking, for rules of one
      name, or for an unknown context.
    """
    shown = {(v.case.case_id, v.level): v for v in views}
    strange = [(g.case_id, g.level) for g in run.generations if (g.case_id, g.level) not in shown]
    if strange:
        raise ValueError(f"views lack {strange[0]}; received {len(shown)} of them")
    names = [rule.name for rule in rules]
    if len(set(names)) < len(names) or not set(contexts) <= set(CONTEXTS):
        received = f"{names} and {list(contexts)}"
        raise ValueError(f"rules need a name each and contexts are {CONTEXTS}; received {received}")
    of_run = [shown[g.case_id, g.level] for g in run.generations]
    methods, encoder = select(run.parameters["methods"]), encoder or Encoder()
    again: list[tuple[tuple[str, str], set[str], Readers, dict[str, Any]]] = [
        ((RULE, r.name), JUDGED, Readers(encoder, None, r), {"entailment_context": "answer"})
        for r in rules
        if r.name != run.parameters["entailment"]["name"]
    ]
    again += [
        ((CONTEXT, c), RELEVANT, Readers.of(encoder), {"relevance_context": c})
        for c in contexts
        if c != run.parameters["relevance_context"]
    ]
    parts = [run.confidence.assign(choice="", option=DEFAULT)]
    for (choice, option), family, readers, changed in again:
        if changing := [m for m in methods if family.intersection(m.needs)]:
            needs = {need for m in changing for need in m.needs} & family
            fresh: Any = {"parameters": replace(run.generations[0].parameters, **changed)}
            given = [replace(g, **fresh, **dict.fromkeys(needs)) for g in run.generations]
            made = confidence_table(of_run, with_meaning(given, of_run, needs, readers), changing)
            made = without_unread(replace(run, confidence=made)).confidence
            parts.append(made.assign(choice=choice, option=option))
    return pd.concat(parts, ignore_index=True)


def differences(answers: pd.DataFrame, read: pd.DataFrame, **how: Any) -> pd.DataFrame:
    """Level-stratified AUROC under each choice against the default: ``paired_differences`` by
    choice.

    A formula stands under its base's name with ``option`` its own; rules and contexts under the
    method that they change. ``how``: n_draws, seed and min_per_class.
    """
    plain: Any = read[read["option"] == DEFAULT]
    variants = forms(list(dict.fromkeys(plain["method"])))
    parts = [
        plain[plain["method"] == name].assign(method=base, option=name, choice=FORMULA)
        for base, names in variants.items()
        for name in names
    ]
    every = pd.concat([read, *parts], ignore_index=True)
    every = every.merge(answers[[*KEYS, "correct"]], on=KEYS, how="left", validate="many_to_one")
    varied: Any = every[every["method"].isin(every.loc[every["option"] != DEFAULT, "method"])]
    found = corrected([], ["model", "dataset", "method", "option", "level"], ["n_rarer"])
    if len(varied):
        found = paired_differences(varied, DEFAULT, by="option", metrics=["auroc"], **how)
    choice = dict(zip(every["option"], every["choice"], strict=True))
    found = found.assign(choice=[choice[option] for option in found["option"]])
    return found.query("level == 'within'").reset_index(drop=True)


def dry_run(cases: Sequence[Case], models: Sequence[Any], asked: Any) -> None:
    """Ask what the notebook asks, for ``trustlab plan``."""
    ablations(cases, models, setup=asked)
    ablations(cases, models, of_libraries(libraries(asked.corpus, asked.corpora)), setup=asked)
    ablations(cases, models, passages(asked.n_passages), setup=asked)
    warmth = sampling(asked.n_samples, asked.temperatures)
    ablations(cases, models, warmth, methods=SAMPLED, setup=asked)
    benchmark(cases, models, setup=asked)
