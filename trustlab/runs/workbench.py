"""Opens what a setup names: models, cache, readers, grader, library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self, cast

from pydantic import model_validator

from trustlab import cluster
from trustlab.agents.medconf import MedConf
from trustlab.choices import choices
from trustlab.confidence import select
from trustlab.datasets import check_sets, load_sets
from trustlab.graders import JUDGE, Grader, check_grader, open_grader
from trustlab.meaning.encoder import LIBRARY, Encoder
from trustlab.meaning.entailment import STAND_IN, open_entailment
from trustlab.meaning.parts import Readers
from trustlab.models.base import Model
from trustlab.models.by_name import (
    CLINIC,
    DIAGNOSING,
    EMBEDDED,
    check_model_name,
    check_options,
    open_model,
    taught_by,
)
from trustlab.models.cache import CachedModel
from trustlab.models.local.opening import is_path, need_local, refuse_pickle
from trustlab.models.trial import Trial
from trustlab.paths import offline
from trustlab.prompts import Prompts, named
from trustlab.records import Case
from trustlab.retrieval import Retriever
from trustlab.retrieval.corpora import corpus_files
from trustlab.retrieval.disk_index import open_retriever
from trustlab.runs.collect import Settings
from trustlab.settings import MEMORY, Role, Setup, as_list, given


def opened(setup: Setup | Workbench | None = None) -> Workbench:
    """The workbench of a setup, whose names are checked first (:func:`check_names`); an open
    workbench is returned as it is. Each part is opened when first needed; the cluster, if one is
    named, at once: until another setup is opened it is used."""
    if not isinstance(setup, Setup | None):
        raise TypeError(f"setup is {setup!r}; it must be a tl.Setup")
    bench = setup or Setup()
    if not isinstance(bench, Workbench):
        bench = Workbench(
            **{field.name: getattr(bench, field.name) for field in fields(Setup)}
        )
    cluster.use(None if offline(replies=True) else bench.cluster)
    return bench


def check_names(setup: Setup) -> None:
    """Raise ``ValueError`` or ``FileNotFoundError``, before anything is opened, for a name in
    ``setup`` that names nothing: data set, method, grader, model, option, folder."""
    check_sets(setup.dataset, setup.path, setup.data_options, setup.n)
    if setup.methods is not None:
        select(setup.methods)
    check_grader(setup.grader)
    if setup.prompts is not None:
        named(setup.prompts)
    n_models = len(as_list(setup.model))
    repliers = setup.repliers()
    models = repliers[:n_models]
    others = repliers[n_models:]
    is_here = setup.cluster is None
    for model in repliers:
        if isinstance(model, str):
            check_model_name(model, is_here)
        elif not isinstance(model, Model):
            raise TypeError(
                f"{model!r} is no model; it must be a trustlab.models.base.Model"
            )
    if isinstance(setup.grader, str) and setup.grader.startswith(JUDGE):
        others.append(setup.grader.removeprefix(JUDGE))
    check_options("model_options", setup.model_options, models)
    check_options("reader_options", setup.reader_options, others)
    if setup.cluster and find_spec("distributed") is None:
        raise ImportError(
            f'cluster={setup.cluster!r} needs Dask: pip install "trustlab[cluster]"'
        )
    if is_here:
        _check_reader("encoder", setup.encoder)
        _check_reader("medical_encoder", setup.medical_encoder)
        _check_reader("entailment", setup.entailment)
    if setup.corpus is not None:
        corpus_files(setup.corpus)


def _check_reader(choice: str, reader: object) -> None:
    """``ValueError`` for a folder that is not there, or that holds pickles; ``ImportError`` where
    what opens it is not installed."""
    if not isinstance(reader, str | Path):
        return
    folder = Path(reader).expanduser()
    if is_path(str(reader)) and not folder.exists():
        raise ValueError(
            f"{choice} is {str(reader)!r}; there is no such file or folder"
        )
    if folder.is_dir():
        refuse_pickle(folder, within=True)
    if str(reader) != STAND_IN:
        need_local(f"{choice}={str(reader)!r}", LIBRARY)


@choices
class Workbench(Setup):
    """A setup with everything that it names; each part is opened once, when first needed.

    ``ValueError`` or ``FileNotFoundError`` for a name that names nothing (:func:`check_names`).
    """

    @model_validator(mode="after")
    def _names(self) -> Self:
        check_names(self)
        return self

    @property
    def needed_methods(self) -> list[str]:
        """The methods whose replies a run asks for; a notebook may add some of its own."""
        return as_list(given(self.methods, "paper"))

    @property
    def procedure(self) -> MedConf:
        """MedConf's parameters."""
        procedure: Any = self.medconf or MedConf()
        steps = self.most_tokens("keyword", "profile", "evidence")
        if not steps:
            return procedure
        budgets = {f"max_tokens_{step}": n for step, n in steps.items()}
        return replace(procedure, **budgets)

    @property
    def settings(self) -> Settings:
        """The settings of requests for answers and confidences."""
        replies = self.most_tokens("answer", "score", "reasoning", "guesses", "doctor")
        budgets: Any = {f"max_tokens_{reply}": n for reply, n in replies.items()}
        return Settings(self.chosen, seed=self.seed, medconf=self.procedure, **budgets)

    @cached_property
    def judge(self) -> Grader:
        """The grader."""
        return self.opened_grader(self.grader)

    def opened_grader(self, grader: str | Grader) -> Grader:
        """A grader by name, opened; its replies and vectors go into the same caches as all."""
        if not str(grader).startswith(JUDGE):
            return open_grader(grader, cache=self.store, reading=self.reading)
        options = self.options(self.reader_options) | {"n_jobs": self.n_jobs}
        judge: Any = open_grader(
            grader, cache=self.store, reading=self.reading, **options
        )
        self.cached(judge.model)
        return judge

    @cached_property
    def library(self) -> Retriever:
        """MedConf's retriever."""
        if self.retriever is None:
            return open_retriever(self.corpus)
        return cast(Retriever, self.retriever)

    @cached_property
    def readers(self) -> Readers:
        """The models that read meaning; files beside the replies keep what they find."""
        store = self.store
        encoder: Any = self.encoder
        medical: Any = self.medical_encoder
        entailment: Any = self.entailment
        vectors = store and store.with_name("vectors.sqlite")
        if isinstance(encoder, str | Path | None):
            encoder = Encoder(encoder, cache_path=vectors, n_jobs=self.n_jobs)
        if isinstance(medical, str | Path):
            medical = Encoder(medical, cache_path=vectors, n_jobs=self.n_jobs)
        if isinstance(entailment, str | Path | None):
            verdicts = store and store.with_name("entailment.sqlite")
            entailment = open_entailment(
                entailment, encoder=encoder, cache_path=verdicts
            )
        return Readers(encoder, medical, entailment)

    def cases(self) -> list[Case]:
        """The cases of the data sets."""
        return load_sets(
            self.dataset,
            path=cast(Any, self.path),
            n=cast(Any, self.n),
            seed=self.seed,
            options=self.data_options,
        )

    def models(self, chosen: Any = None) -> list[Model]:
        """The models to ask: one or several ``chosen`` ones, each open or by its name, else those
        of the setup. ``ValueError`` for anything else."""
        options = self.options(self.model_options)
        models = as_list(self.model if chosen is None else chosen)
        for model in models:
            if not isinstance(model, str | Model):
                allowed = (
                    "an open model (tl.open_model), a model's name, or a list of these"
                )
                raise ValueError(f"models is {chosen!r}; it must be {allowed}")
        return [self._open(model, options) for model in models]

    def repliers(self) -> list[str | Model]:
        """Every model that replies; :func:`check_names` refuses what is none."""
        return cast(list[str | Model], super().repliers())

    def prompts_for(self, model: str | Model) -> Prompts:
        """The prompts with which a model, or the model of this name, is asked."""
        prompts = self.prompts
        if prompts is None:
            taught = taught_by(model) if isinstance(model, str) else model.taught
            prompts = taught.get("set")
        return named(prompts).having(self.demonstrations, self.seed)

    @cached_property
    def tried(self) -> Trial | None:
        """The trial of models that were not taught our prompts; ``None`` without a trial."""
        if self.trial is True:
            return Trial(quiet=self.quiet)
        return cast(Trial, self.trial) if self.trial else None

    def cached(self, model: Model) -> CachedModel:
        """The model over the store, or over the one that it has already, with the setup's prompts.
        A model that was not taught them also gets the trial."""
        if not isinstance(model, CachedModel):
            model = CachedModel(model, self.store)
        model.prompts = self.prompts_for(model)
        model.shows_bars = not self.quiet
        if not model.taught and model.innermost.waiting is None:
            model.trial = self.tried
        return model

    def who(self, name: Role, models: Sequence[str | Model] = ()) -> Any:
        """The name of the model that has a role beside ``models``; ``None``: each has it itself."""
        who = getattr(self, name)
        if who is not None or name in ("assessor", "patient"):
            return who
        names = {model if isinstance(model, str) else model.name for model in models}
        if names and names.issubset(DIAGNOSING):
            return CLINIC
        return None

    def role(self, name: Role, models: Sequence[str | Model] = ()) -> Any:
        """The model that has a role beside ``models`` (:meth:`who`), opened; a panel as a list.
        ``None``, and a patient "facts", are returned unchanged."""
        who = self.who(name, models)
        if who is None or who == "facts":
            return who
        options = self.options(self.reader_options)
        models = [self._open(model, options) for model in as_list(who)]
        return models if name == "panel" else models[0]

    def shared(self) -> Workbench:
        """A copy with everything open and one store, which several runs can share."""
        return self.with_(
            encoder=self.readers.encoder,
            medical_encoder=self.readers.medical,
            entailment=self.readers.entailment,
            grader=self.judge,
            retriever=self.library,
            cache=self.store or MEMORY,
            trial=self.tried or False,
            assessor=self.assessed_by,
        )

    @cached_property
    def assessed_by(self) -> CachedModel | None:
        """MedConf's own model over the store, if it has one."""
        who = self.role("assessor")
        return None if who is None else self.cached(who)

    def below(self, folder: str) -> Workbench:
        """A shared copy with the tables in a folder of ``run_dir`` (nowhere without one)."""
        return self.shared().with_(run_dir=self.run_dir and self.run_dir / folder)

    def _open(self, model: Any, options: Mapping[str, Any]) -> Any:
        if not isinstance(model, str):
            return model
        if self.taught_form and model in EMBEDDED:
            if find_spec("llguidance") is None:
                raise ImportError(
                    'taught_form=True needs llguidance: pip install "trustlab[chat]";'
                    " taught_form=False asks freely"
                )
            options = {**options, "structured": "taught"}
        return open_model(model, n_jobs=self.n_jobs, **options)
