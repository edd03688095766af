"""Holds every choice of a run, checked; it opens nothing.

A value out of range, an unknown name and two choices that do not go together are a ``ValueError``
of one line. Whether what is named exists, :func:`trustlab.workbench.opened` looks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar, cast, get_args

from pydantic import BeforeValidator, Field, model_validator

from trustlab import paths
from trustlab.choices import Count, Options, Seed, Switch, Warmth, choices, names_of, unknown
from trustlab.records import PARAMETERS, Parameters, Readings, Reasoned

T = TypeVar("T")

Role = Literal["assessor", "doctor", "patient", "reviewer", "wording", "panel"]
ROLES: tuple[Role, ...] = get_args(Role)
"""Who replies beside the model that is asked: choices of a :class:`Setup`."""
MEMORY = ":memory:"
"""The cache that is no file: replies are kept in memory."""
GIVEN_AS = {
    "n_samples": "samples",
    "sample_temperature": "temperature",
    "reading": "reading",
    "reasoning_from": "reasoning_from",
}
"""Open choices that a :class:`Setup` has itself, by its own names."""


def _parameters(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    for name in GIVEN_AS.keys() & value.keys():
        raise ValueError(f"parameters has {name!r}; it must be given as {GIVEN_AS[name]}")
    return Parameters(**value)


def _folder(value: Any) -> Any:
    return Path(value).expanduser() if isinstance(value, str) else value


def as_list(value: Any) -> list[Any]:
    """One or several, as a list."""
    return list(value) if isinstance(value, list | tuple) else [value]


Budget = Literal[
    "answer", "score", "reasoning", "guesses", "keyword", "profile", "evidence", "doctor", "plan",
    "review", "thinking",
]  # fmt: skip
Folder = Annotated[Path | None, BeforeValidator(_folder), Field(description="a folder or file")]
Cases = Annotated[int, Field(ge=1)] | None
NAMES = "a name or a list of names (str or list)"
Names = Annotated[str | Sequence[str], Field(description=NAMES)]
Rate = Annotated[float | None, Field(ge=0, description="US dollars for a million tokens")]


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
        None, description="a whole number, at least 1, or None for all (int); or a list of these"
    )
    """A list: one for each data set."""
    methods: str | Sequence[str] | None = Field(None, description=NAMES)
    """Of confidence; ``None``: those that the study asks for by default."""
    levels: Sequence[Annotated[int, Field(ge=1, le=100)]] | None = Field(
        None, min_length=1, description="whole numbers from 1 to 100, at least one (list)"
    )
    """Percent of a case's statements; ``None``: the study's own."""
    samples: Count = 15
    temperature: Warmth = 0.5
    """Of the samples, and of doctors on a panel; the answer itself is greedy."""
    seed: Seed = 0
    budgets: dict[Budget, Count] = Field(
        default_factory=dict,
        description=f"whole numbers of at least 1 for some of {', '.join(get_args(Budget))}",
    )
    """Most tokens of a reply, where they are not those of :class:`trustlab.collect.Settings`, of
    :class:`trustlab.agents.medconf.MedConf` and of the panel; "thinking" is added to each."""
    prompts: str | Path | None = Field(None, description="embedded, chat or a folder of prompts")
    """The set of prompts, or a folder whose files replace those of one; ``None``: what a model's
    own folder names, else "chat"."""
    demonstrations: int | None = Field(
        None, ge=0, le=4, description="a whole number from 0 to 4, or None (int)"
    )
    """Worked examples before each question; ``None``: the set's own number (2 of "chat")."""
    trial: Any = True
    """Models that were not taught our prompts answer three views of each purpose first; ``False``:
    they do not."""
    reading: Readings = "chat"
    """Replies are read also as chat models write them, or ("strict") in the printed form alone."""
    reasoning_from: Reasoned = "section"
    """Of a panel's doctors: "thought" stands in where a reply has no section of reasoning."""
    parameters: Annotated[Parameters, BeforeValidator(_parameters)] = Field(
        PARAMETERS, description="a dict or tl.Parameters"
    )
    """The methods' open choices."""
    medconf: Any = None
    """A :class:`~trustlab.agents.medconf.MedConf`, where its parts are switched off or sized."""

    # Who replies: a model's name or the model itself. None: the model that is asked, or, where that
    # is one of the project's own, the sibling that was taught this role.
    model: Any = "embedded"
    """One or several."""
    model_options: Options = Field(default_factory=dict)
    """For the backend, such as a budget: ``{"max_calls": 1000}``."""
    taught_form: Switch = False
    """MedConf's evidence by the embedded models is held to the form that they were taught; other
    models and other replies are not."""
    assessor: Any = None
    """MedConf's own model."""
    doctor: Any = None
    """Who asks in a consultation."""
    patient: Any = None
    """Who answers there: the doctor's own where ``None``; "facts" is a rule without a model."""
    reviewer: Any = None
    """Marks the plans of all doctors."""
    wording: Any = None
    """Words statements anew."""
    reader_options: Options = Field(default_factory=dict)
    """For the backends of these roles and of a judge."""
    n_doctors: int | None = Field(None, ge=1, description="a whole number, at least 1 (int)")
    """K of a panel; ``None``: that of ``parameters``."""
    panel: Any = None
    """The doctors of a panel are of these models in turn, one or several."""

    # Who reads the replies: a name, a path or the object itself.
    grader: Any = "synonym"
    """Who says that an answer is right: "exact", "synonym", "encoder" or "judge:MODEL"."""
    encoder: Any = None
    medical_encoder: Any = None
    """Without one its method is missing."""
    medical_proxy: Switch = True
    """Trust indices alone: the general encoder stands in for a medical one, by name."""
    entailment: Any = None
    """An NLI cross-encoder; ``None`` is the rule-based proxy."""
    corpus: Any = None
    """MedConf's library: a file or folder of passages, or a list; ``None`` is the project's own."""
    retriever: Any = None
    """A retriever in place of ``corpus``."""


@choices
class Keep:
    """Where everything goes, and how it is counted."""

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
    keep_generations: bool | None = None
    """Whether a run's records stay in memory and its tables are CSV; else only the tables stay, as
    Parquet. ``None``: up to :data:`trustlab.folder.saved.KEPT_UP_TO` views."""
    quiet: Switch = False
    draws: Count = 2000
    """Bootstrap draws for the intervals."""
    shard: Annotated[str | None, Field(description="a share of the cases, such as '1/3'")] = None
    """The i-th of n shares of the cases, by a hash of their ids."""
    usd_in: Rate = None
    """Your rate for a million tokens in; then ``usd_out`` for those out, too."""
    usd_out: Rate = None

    @model_validator(mode="after")
    def _kept(self) -> Self:
        if self.shard is not None:
            paths.shard_of(self.shard)
        if (self.usd_in is None) != (self.usd_out is None):
            received = f"usd_in is {self.usd_in!r} and usd_out is {self.usd_out!r}"
            raise ValueError(f"{received}; both must be given, or neither")
        return self


class Flat:
    """What all choices can do: be copied with changes, and be read from a notebook's variables."""

    def with_(self, **changes: Any) -> Self:
        """A copy with these choices changed, checked again."""
        return replace(cast(Any, self), **changes)

    @classmethod
    def of(cls, variables: Mapping[str, Any]) -> Self:
        """The choices in a notebook's literals (``globals()``) and in its dict ``more``.
        Replies are kept in ``runs/replies.sqlite``, all else in ``run_dir``, by default
        ``runs/interactive``."""
        literal, known = (str, int, float, list, dict, type(None)), names_of(cls)
        named = with_more(variables, known)
        values = {name: named[name] for name in known if isinstance(named.get(name, ...), literal)}
        values["run_dir"] = values.get("run_dir") or paths.RUNS / "interactive"
        if "cache" in known:
            values["cache"] = values.get("cache") or paths.REPLIES
        return cls(**values)


A_NAME = "a name, or what is open already"
OPEN = dict.fromkeys(("model", *ROLES, "encoder", "medical_encoder", "entailment"), A_NAME)
OPEN |= {"retriever": "an open retriever", "medconf": "a tl.MedConf"}
"""Choices that name something or are it -> what is allowed."""


@choices
class Setup(Keep, Ask, Flat):
    """All choices of a run, flat; the further choices of a study are in its own ``Asked``.
    :func:`trustlab.workbench.opened` checks and opens everything that is named here."""

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        if self.levels is not None and len(set(self.levels)) < len(self.levels):
            raise ValueError(f"levels is {self.levels!r}; each must be given once")
        for name, allowed in OPEN.items():
            value = getattr(self, name)
            several = name in ("model", "panel") and isinstance(value, list | tuple)
            if several and not value:
                raise ValueError(f"{name} is {value!r}; at least one is needed")
            for one in value if several else [value]:
                number = isinstance(one, int | float) and name not in ("model", *ROLES)
                unnamed = isinstance(one, str) and allowed != A_NAME
                if number or unnamed or isinstance(one, Mapping | list | tuple):
                    raise ValueError(f"{name} is {value!r}; it must be {allowed}")
        models = as_list(self.model)
        if self.panel is not None and len(models) > 1:
            raise ValueError(f"panel is given, and model is {self.model!r}; one model is needed")
        panel = [] if self.panel is None else as_list(self.panel)
        if len({id(m) if hasattr(m, "generate") else m for m in panel}) < len(panel):
            raise ValueError(f"panel is {self.panel!r}; each model must be given once")
        n = self.budgets.get("thinking")
        if n and any(hasattr(m, "generate") for m in self.repliers()):
            told = "budgets has 'thinking', and a model is open already"
            raise ValueError(f"{told}; open it with thinking_tokens={n}")
        return self

    def repliers(self) -> list[Any]:
        """Every model that replies: those that are asked, then those with a role of their own."""
        own = [self.assessor, self.doctor, self.reviewer, self.wording]
        own += [] if self.panel is None else as_list(self.panel)
        own += [None if self.patient == "facts" else self.patient]
        return [*as_list(self.model), *(one for one in own if one is not None)]

    @property
    def chosen(self) -> Parameters:
        """The methods' open choices; one that is set here replaces that of ``parameters``."""
        panel = {} if self.n_doctors is None else {"n_doctors": self.n_doctors}
        own = {name: getattr(self, given) for name, given in GIVEN_AS.items()}
        return replace(self.parameters, **own, **panel)

    def most_tokens(self, *names: Budget) -> dict[str, int]:
        """The budgets that are set, by name."""
        return {name: self.budgets[name] for name in names if name in self.budgets}

    def options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """A backend's options, with the budget for thought if they do not have their own."""
        thought = self.thinking_tokens(options)
        return dict(options) | ({"thinking_tokens": thought} if thought else {})

    def thinking_tokens(self, options: Mapping[str, Any]) -> int:
        """The budget for thought of a backend with these options."""
        return options.get("thinking_tokens", self.budgets.get("thinking", 0))

    @property
    def store(self) -> Path | None:
        """The file of replies; ``None`` keeps them in memory."""
        beside = self.run_dir / "replies.sqlite" if self.run_dir else paths.REPLIES
        kept = self.cache or beside
        return None if str(kept) == MEMORY else kept


def given(*values: T | None) -> T:
    """The first that is not ``None``."""
    return next(value for value in values if value is not None)


def with_more(
    values: Mapping[str, Any], known: Sequence[str], of: str = "there is"
) -> dict[str, Any]:
    """``values`` with those that their "more" holds by name; ``ValueError`` for others there."""
    more = values.get("more", {})
    if not isinstance(more, Mapping):
        raise ValueError(f"more is {more!r}; it must be a mapping of names to values (a dict)")
    for name in more:
        if name not in known:
            raise ValueError(unknown(str(name), known, of))
    return {**values, **more}
