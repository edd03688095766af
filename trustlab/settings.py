"""Holds every choice of a run, checked; it opens nothing.

A value out of range, an unknown name and two choices that do not go together are a ``ValueError``
of one line. Whether what is named exists, :func:`trustlab.runs.workbench.opened` looks.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    Protocol,
    Self,
    TypeVar,
    cast,
    get_args,
    runtime_checkable,
)

from pydantic import BeforeValidator, Field, model_validator

from trustlab import paths
from trustlab.choices import (
    Count,
    Options,
    Seed,
    Switch,
    Warmth,
    choices,
    names_of,
    unknown,
)
from trustlab.records import PARAMETERS, Grader, Parameters, Readings, Reasoned, Reply

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import numpy as np

    from trustlab.models.base import Request
    from trustlab.models.cache import CachedModel
    from trustlab.retrieval import Passage

T = TypeVar("T")

Role = Literal["assessor", "doctor", "patient", "reviewer", "wording", "panel"]
ROLES: tuple[Role, ...] = get_args(Role)
"""Who replies beside the model that is asked: choices of a :class:`Setup`."""
MEMORY = ":memory:"
"""The cache that is no file: replies are kept in memory."""
GIVEN_AS = {
    "n_samples": "samples",
    "sample_temperature": "temperature",
    "n_doctors": "n_doctors",
    "reading": "reading",
    "reasoning_from": "reasoning_from",
}
"""Open choices that a :class:`Setup` has itself, by its own names."""


@runtime_checkable
class Replier(Protocol):
    """An open model: it answers requests."""

    def generate(self, requests: Sequence[Request]) -> list[list[Reply]]:
        """Replies to the requests, in order."""
        ...


@runtime_checkable
class TextEncoder(Protocol):
    """An open sentence encoder: it makes vectors of texts."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """A row of numbers for each text."""
        ...


@runtime_checkable
class EntailmentJudge(Protocol):
    """An open judge of entailment: it gives probabilities for pairs of texts."""

    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """A row of three probabilities for each pair."""
        ...


@runtime_checkable
class Searcher(Protocol):
    """An open retriever: it finds passages."""

    def search(self, query: str, k: int) -> list[Passage]:
        """The ``k`` best passages."""
        ...


@runtime_checkable
class OpenTrial(Protocol):
    """A trial that several runs share."""

    def apart(self, models: Sequence[CachedModel]) -> AbstractContextManager[None]:
        """A context in which the models' calls are the trial's."""
        ...


@runtime_checkable
class Procedure(Protocol):
    """MedConf's parameters."""

    @property
    def n_passages(self) -> int:
        """Passages that are looked up."""
        ...

    @property
    def max_tokens_profile(self) -> int:
        """Most tokens of a symptom profile."""
        ...


def _parameters(value: object) -> object:
    if not isinstance(value, Mapping):
        return value
    for name in GIVEN_AS.keys() & value.keys():
        raise ValueError(
            f"parameters has {name!r}; it must be given as {GIVEN_AS[name]}"
        )
    return Parameters(**value)


def _folder(value: object) -> object:
    return Path(value).expanduser() if isinstance(value, str) and value else value


def as_list(value: T | Sequence[T]) -> list[T]:
    """One or several, as a list."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return list(cast(Sequence[T], value))
    return [cast(T, value)]


Budget = Literal[
    "answer", "score", "reasoning", "guesses", "keyword", "profile", "evidence", "doctor", "plan",
    "review", "thinking",
]  # fmt: skip
Folder = Annotated[
    Path | None, BeforeValidator(_folder), Field(description="a folder or file")
]
Cases = Annotated[int, Field(ge=1)] | None
NAMES = "a name or a list of names (str or list)"
Names = Annotated[str | Sequence[str], Field(description=NAMES)]
Rate = Annotated[
    float | None, Field(ge=0, description="US dollars for a million tokens")
]
SOMEBODY = "a model's name, an open model (tl.open_model), or None"
Somebody = Annotated[str | Replier | None, Field(description=SOMEBODY)]
SEVERAL = "a model's name, an open model (tl.open_model), or a list of these, each once"
Somebodies = str | Replier | Annotated[Sequence[str | Replier], Field(min_length=1)]
ENCODER = "a name, a folder, an open sentence encoder, or None"
Encoding = Annotated[str | Path | TextEncoder | None, Field(description=ENCODER)]


@choices
class Ask:
    """What is asked about, and how; who replies; who reads the replies."""

    dataset: Names = "starter"
    path: str | Path | Sequence[str | Path | None] | None = Field(
        None, description="a folder or file, or a list of them"
    )
    data_options: Options = Field(default_factory=dict)
    """The data sets' own, by name."""
    n: Cases | Sequence[Cases] = Field(
        None,
        description="a whole number, at least 1, or None for all (int); or a list of these",
    )
    """A list: one for each data set."""
    methods: str | Sequence[str] | None = Field(None, description=NAMES)
    """Of confidence; ``None``: those that the study asks for by default."""
    levels: Sequence[Annotated[int, Field(ge=1, le=100)]] | None = Field(
        None,
        min_length=1,
        description="whole numbers from 1 to 100, at least one (list)",
    )
    """Percent of a case's statements; ``None``: the study's own."""
    samples: Count = PARAMETERS.n_samples
    temperature: Warmth = PARAMETERS.sample_temperature
    """Of the samples and, unless ``parameters`` have a ``doctor_temperature``, of doctors on a
    panel; the answer itself is greedy."""
    seed: Seed = 0
    budgets: dict[Budget, Count] = Field(
        default_factory=dict,
        description=f"whole numbers of at least 1 for some of {', '.join(get_args(Budget))}",
    )
    """Most tokens of a reply, where they are not those of
    :class:`trustlab.runs.collect.Settings`, of :class:`trustlab.agents.medconf.MedConf` and of the
    panel; "thinking" is added to each."""
    prompts: str | Path | None = Field(
        None, description="embedded, chat or a folder of prompts"
    )
    """The set of prompts, or a folder whose files replace those of one; ``None``: what a model's
    own folder names, else "chat"."""
    demonstrations: int | None = Field(
        None, ge=0, le=4, description="a whole number from 0 to 4, or None (int)"
    )
    """Worked examples before each question; ``None``: the set's own number (2 of "chat")."""
    trial: bool | OpenTrial = Field(True, description="True or False")
    """Models that were not taught our prompts answer three views of each purpose first; ``False``:
    they do not."""
    reading: Readings = PARAMETERS.reading
    """Replies are read also as chat models write them, or ("strict") in the printed form alone."""
    reasoning_from: Reasoned = PARAMETERS.reasoning_from
    """Of a panel's doctors: "thought" stands in where a reply has no section of reasoning."""
    parameters: Annotated[Parameters, BeforeValidator(_parameters)] = Field(
        PARAMETERS, description="a dict or tl.Parameters"
    )
    """The methods' open choices."""
    medconf: Procedure | None = Field(None, description="a tl.MedConf, or None")
    """A :class:`~trustlab.agents.medconf.MedConf`, where its parts are switched off or sized."""

    # Who replies: a model's name or the model itself. None: the model that is asked, or, where that
    # is one of the project's own, the sibling that was taught this role.
    model: Somebodies = Field("embedded", description=SEVERAL)
    """One or several."""
    model_options: Options = Field(default_factory=dict)
    """For the backend, such as a budget: ``{"max_calls": 1000}``."""
    taught_form: Switch = False
    """MedConf's evidence by the embedded models is held to the form that they were taught; other
    models and other replies are not."""
    assessor: Somebody = None
    """MedConf's own model."""
    doctor: Somebody = None
    """Who asks in a consultation."""
    patient: Somebody = None
    """Who answers there: the doctor's own where ``None``; "facts" is a rule without a model."""
    reviewer: Somebody = None
    """Marks the plans of all doctors."""
    wording: Somebody = None
    """Words statements anew."""
    reader_options: Options = Field(default_factory=dict)
    """For the backends of these roles and of a judge."""
    n_doctors: Count = PARAMETERS.n_doctors
    """K of a panel: at least as many as ``panel`` has models."""
    panel: Somebodies | None = Field(None, description=f"{SEVERAL}; or None")
    """The doctors of a panel are of these models in turn, one or several."""

    # Who reads the replies: a name, a path or the object itself.
    grader: str | Grader = Field(
        "synonym", description="a grader's name, or an open grader"
    )
    """Who says that an answer is right: "exact", "synonym", "encoder" or "judge:MODEL"."""
    encoder: Encoding = None
    medical_encoder: Encoding = None
    """Without one its method is missing."""
    medical_proxy: Switch = True
    """Trust indices alone: the general encoder stands in for a medical one, by name."""
    entailment: str | Path | EntailmentJudge | None = Field(
        None, description="a name, a folder, an open judge of entailment, or None"
    )
    """An NLI cross-encoder; ``None`` is the rule-based proxy."""
    corpus: str | Path | Sequence[str | Path] | None = Field(
        None, description="a file or folder, a list of them, or None"
    )
    """MedConf's library: a file or folder of passages, or a list; ``None`` is the project's own."""
    retriever: Searcher | None = Field(None, description="an open retriever, or None")
    """A retriever in place of ``corpus``."""


@choices
class Keep:
    """Where everything goes, how many processes work, and what a token costs."""

    run_dir: Folder = None
    """The run's tables and, unless ``cache`` names another file, its replies."""
    cache: Folder = None
    """The file of replies; ``None``: ``replies.sqlite`` in ``run_dir``, without one in ``runs/``;
    ":memory:" keeps them in memory."""
    n_jobs: Literal[-1] | Count = Field(
        1, description="a whole number, at least 1, or -1 for all (int)"
    )
    """Processes for scoring, and for local models on the CPU; at most those that joblib's backend
    offers."""
    cluster: Annotated[
        str | None,
        Field(
            pattern=r"^((tcp|tls)://[^\s/@]+:\d+|local:[1-9]\d*)$",
            validate_default=True,
            description="tcp://HOST:PORT, tls://HOST:PORT, local:N (such as local:4), or None",
        ),
    ] = Field(default_factory=lambda: os.environ.get("TRUSTLAB_CLUSTER") or None)
    """A Dask cluster, whose workers then do what ``n_jobs`` processes do here, and ask local models
    also on a GPU; "local:4" starts one of four here. By default what the environment variable
    TRUSTLAB_CLUSTER names."""
    keep_generations: bool | None = None
    """Whether a run's records stay in memory and its tables are CSV; else only the tables stay, as
    Parquet. ``None``: up to :data:`trustlab.runs.folder.saved.KEPT_UP_TO` views."""
    quiet: Switch = False
    usd_in: Rate = None
    """Your rate for a million tokens in; then ``usd_out`` for those out, too."""
    usd_out: Rate = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.usd_in is None) != (self.usd_out is None):
            received = f"usd_in is {self.usd_in!r} and usd_out is {self.usd_out!r}"
            raise ValueError(f"{received}; both must be given, or neither")
        return self


class Flat:
    """What all choices can do: be copied with changes, and be read from a notebook's variables."""

    run_dir: Folder

    def with_(self, **changes: Any) -> Self:
        """A copy with these choices changed, checked again."""
        return replace(cast(Any, self), **changes)

    @classmethod
    def of(
        cls, *, more: Mapping[str, Any] = MappingProxyType({}), **named: Any
    ) -> Self:
        """The choices of a notebook: each of its cell by name, the others in ``more``.

        - Replies are kept in ``runs/replies.sqlite`` unless ``cache`` names another file, all else
          in ``run_dir``; ``None`` is ``runs/interactive``.
        - ``ValueError`` for a name that is no choice, one given twice, and a value that is not
          allowed.
        """
        names = names_of(cls)
        values = with_more(named, more, names)
        if values.get("run_dir") is None:
            values["run_dir"] = paths.RUNS / "interactive"
        if "cache" in names and values.get("cache") is None:
            values["cache"] = paths.REPLIES
        return cls(**values)


@choices
class Setup(Keep, Ask, Flat):
    """All choices of a run, flat; the further choices of a study are in its own ``Asked``.
    :func:`trustlab.runs.workbench.opened` checks and opens everything that is named here."""

    UNUSED: ClassVar[tuple[str, ...]] = ()
    """Choices without an effect in a study, which refuses them."""

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        defaults = vars(type(self))["__pydantic_fields__"]
        for name in self.UNUSED:
            value = getattr(self, name)
            if value != defaults[name].default:
                raise ValueError(
                    f"{name} is {value!r}; it has no effect here: leave it out"
                )
        for name, choice in GIVEN_AS.items():
            of_parameters = getattr(self.parameters, name)
            own = getattr(self, choice)
            if of_parameters not in (own, getattr(PARAMETERS, name)):
                both = (
                    f"parameters has {name} {of_parameters!r}, and {choice} is {own!r}"
                )
                raise ValueError(f"{both}; it must be given as {choice}")
        if self.levels is not None and len(set(self.levels)) < len(self.levels):
            raise ValueError(f"levels is {self.levels!r}; each must be given once")
        if self.panel is not None:
            self._check_panel(as_list(self.panel))
        n_tokens = self.budgets.get("thinking")
        if n_tokens and not all(isinstance(model, str) for model in self.repliers()):
            reason = "budgets has 'thinking', and a model is open already"
            raise ValueError(f"{reason}; open it with thinking_tokens={n_tokens}")
        return self

    def _check_panel(self, panel: Sequence[str | Replier]) -> None:
        if len(as_list(self.model)) > 1:
            raise ValueError(
                f"panel is given, and model is {self.model!r}; one model is needed"
            )
        distinct = {model if isinstance(model, str) else id(model) for model in panel}
        if len(distinct) < len(panel):
            raise ValueError(f"panel is {self.panel!r}; each model must be given once")
        if len(panel) > self.n_doctors:
            few = f"panel has {len(panel)} models, and n_doctors is {self.n_doctors}"
            raise ValueError(
                f"{few}; it must be at least {len(panel)}: a doctor for each model"
            )

    def repliers(self) -> list[str | Replier]:
        """Every model that replies: those that are asked, then those with a role of their own."""
        repliers = as_list(self.model)
        in_roles = [self.assessor, self.doctor, self.reviewer, self.wording]
        if self.panel is not None:
            in_roles += as_list(self.panel)
        if self.patient != "facts":
            in_roles.append(self.patient)
        for replier in in_roles:
            if replier is not None:
                repliers.append(replier)
        return repliers

    @property
    def chosen(self) -> Parameters:
        """The methods' open choices, with those that are set here."""
        own = {name: getattr(self, choice) for name, choice in GIVEN_AS.items()}
        parameters = replace(self.parameters, **own)
        return replace(parameters, doctor_temperature=parameters.panel_temperature)

    def most_tokens(self, *names: Budget) -> dict[str, int]:
        """The budgets that are set, by name."""
        return {name: self.budgets[name] for name in names if name in self.budgets}

    def options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """A backend's options, with the budget for thought if they do not have their own."""
        with_budget = dict(options)
        n_tokens = self.thinking_tokens(options)
        if n_tokens:
            with_budget["thinking_tokens"] = n_tokens
        return with_budget

    def thinking_tokens(self, options: Mapping[str, Any]) -> int:
        """The budget for thought of a backend with these options."""
        return options.get("thinking_tokens", self.budgets.get("thinking", 0))

    @property
    def store(self) -> Path | None:
        """The file of replies; ``None`` keeps them in memory."""
        file = paths.REPLIES
        if self.cache:
            file = self.cache
        elif self.run_dir:
            file = self.run_dir / "replies.sqlite"
        return None if str(file) == MEMORY else file


def given(*values: T | None) -> T:
    """The first that is not ``None``."""
    return next(value for value in values if value is not None)


def with_more(
    named: Mapping[str, Any], more: object, names: Sequence[str], of: str = "there is"
) -> dict[str, Any]:
    """Choices by name, with those in ``more``. ``ValueError`` for a name that is not of ``names``,
    and for one that is given in both."""
    if not isinstance(more, Mapping):
        raise ValueError(
            f"more is {more!r}; it must be a mapping of names to values (a dict)"
        )
    for name in [*named, *more]:
        if name not in names:
            raise ValueError(unknown(str(name), names, of))
    for name in more:
        if name in named:
            twice = f"{name} is {named[name]!r}, and {more[name]!r} in more"
            raise ValueError(f"{twice}; it must be given once")
    return {**named, **more}
