"""Every choice of a run, named, checked and opened in one place: ``Setup``, ``Parameters``.

A value out of range, an unknown name and two choices that do not go together are a ``ValueError``
of one line; a local file or folder that is not there is a ``FileNotFoundError`` or ``ValueError``.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    ParamSpec,
    Self,
    TypeVar,
    cast,
    dataclass_transform,
    get_args,
)

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.dataclasses import dataclass

from trustlab import paths
from trustlab.paths import WRITABLE, utf8

if TYPE_CHECKING:
    from trustlab.agents import MedConf
    from trustlab.graders import Grader
    from trustlab.meaning.parts import Readers
    from trustlab.models.base import Model
    from trustlab.models.cache import CachedModel
    from trustlab.records import Case
    from trustlab.retrieval import Retriever

P = ParamSpec("P")
T = TypeVar("T")
Chosen = TypeVar("Chosen", bound="type[Any]")

STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, arbitrary_types_allowed=True)
"""No text for a number, no True for a 1, no other names."""
Role = Literal["assessor", "doctor", "patient", "reviewer", "wording", "panel"]
ROLES: tuple[Role, ...] = get_args(Role)
"""Who replies beside the model that is asked: choices of a :class:`Setup`."""
MEMORY = ":memory:"
"""The cache that is no file: replies are kept in memory."""


_NAMES_KEY = re.compile(
    r"(.*[_-])?(api[_-]?key|auth|authorization|(auth|access|bearer)[_-]?token|password|secret"
    r"|(secret|access)[_-]?key|passwd|headers?|cookies?|credentials?)|key|token",
    re.IGNORECASE,
)
_IS_KEY = re.compile(r"\b(?:sk-|gsk_|hf_)[\w-]{16,}|\bBearer \S{8,}")


def may_be_token(part: str) -> bool:
    """Whether a part of an address's path may be a token: 12 letters and digits mixed, or more,
    without a break."""
    pieces = re.split(r"[-._]", part)
    return any(len(p) >= 12 and re.search(r"\d", p) and re.search("[a-zA-Z]", p) for p in pieces)


def check_no_key(called: str, value: object) -> None:
    """``ValueError`` for what may carry a key, which would be written into notebook and manifest;
    nothing of the value is repeated."""
    where = "set OPENAI_API_KEY, and OPENAI_BASE_URL, in the environment: parameters are written"
    where += " into notebooks and manifests"
    if isinstance(value, Mapping):
        for name, part in value.items():
            if _NAMES_KEY.fullmatch(str(name)):
                raise ValueError(f"{called} has {str(name)!r}, which may carry a key; {where}")
            if name == "base_url" and (
                re.search(r"[@?#]", str(part)) or any(map(may_be_token, str(part).split("/")[3:]))
            ):
                what = "a login, a query or what looks like a token"
                raise ValueError(f"{called} has a base_url with {what}; {where}")
            check_no_key(called, part)
    elif isinstance(value, list | tuple):
        for part in value:
            check_no_key(called, part)
    elif isinstance(value, str) and _IS_KEY.search(value):
        raise ValueError(f"{called} holds what looks like a key; {where}")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def choices(chosen: Chosen) -> Chosen:
    """Make the class a frozen dataclass whose values pydantic checks.

    Its errors are one line: parameter, received value, what is allowed. What may be a key is
    refused first, so that no other error repeats it.
    """
    made: Any = dataclass(frozen=True, kw_only=True, config=STRICT)(chosen)
    checked = made.__init__

    @functools.wraps(checked)
    def init(self: Any, **values: Any) -> None:
        for name, value in values.items():
            check_no_key(name, value)
            if not utf8(value):
                raise ValueError(f"{name} is {value!r}; it must be {WRITABLE}")
        try:
            checked(self, **values)
        except ValidationError as error:
            raise ValueError(_told(type(self), error, values)) from None

    made.__init__ = init
    return made


def _told(chosen: type[Any], error: ValidationError, values: Mapping[str, Any]) -> str:
    first = error.errors()[0]
    name = str(first["loc"][0]) if first["loc"] else ""
    if first["type"] == "value_error":
        return str(first.get("ctx", {})["error"])
    if first["type"] == "unexpected_keyword_argument":
        return unknown(name, names_of(chosen))
    about = chosen.__pydantic_fields__.get(name)
    allowed = about.description if about and about.description else first["msg"]
    return f"{name} is {values.get(name, first['input'])!r}; it must be {allowed}"


GONE = {"mixed": "panel, the models whose doctors make the panel: panel=['A', 'B']"}
"""Names that were, and what is there now."""


def unknown(name: str, known: Sequence[str], of: str = "there is") -> str:
    """What is said of a name that there is not: names near it, and all; or what came for it."""
    if name in GONE:
        return f"{of} no parameter {name!r} any more; there is {GONE[name]}"
    near = difflib.get_close_matches(name, known, n=3)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    return f"{of} no parameter {name!r}; {hint}known are {', '.join(known)}"


def names_of(chosen: type[Any]) -> list[str]:
    """The names that a class of choices has."""
    return [f.name for f in fields(chosen)]


Count = Annotated[int, Field(ge=1, description="a whole number, at least 1")]
Seed = Annotated[int, Field(ge=0, description="a whole number, at least 0")]
Warmth = Annotated[float, Field(gt=0, lt=100, description="a number above 0 and below 100")]
Weight = Annotated[float, Field(ge=0, lt=1e6, description="a number, at least 0")]
Chance = Annotated[float, Field(gt=0, lt=1, description="a number above 0 and below 1")]
Switch = Annotated[bool, Field(description="True or False")]
Options = Annotated[dict[str, Any], Field(description="a mapping of names to values (a dict)")]
Counts = Annotated[
    Sequence[Count],
    Field(min_length=1, description="a list of whole numbers, at least 1 each, not empty"),
]
Combination = Literal["mean", "first", "max"]
Context = Literal["answer", "full"]
Reading = Literal["chat", "strict"]
"""How replies are read: in the printed form alone, or also as chat models write them."""
ReasoningFrom = Literal["section", "thought"]
"""Whence a doctor's reasoning comes where its reply has no section of it: from nowhere, or from its
thought."""
Readings = Annotated[Reading, Field(description="'chat' or 'strict'")]
Reasoned = Annotated[ReasoningFrom, Field(description="'section' or 'thought'")]
InContext = Annotated[Context, Field(description="'answer' or 'full'")]


@choices
class Parameters:
    """The methods' open choices; units and reasons beside those that need one.

    They travel with every :class:`~trustlab.records.Generation`, so that a method stays a function
    of its record alone.
    """

    n_samples: Count = 15
    """K: samples per answer, and replies to the true-or-false question."""
    sample_temperature: Warmth = 0.5
    p_true_temperature: Warmth = 1.0
    renyi_alpha: Warmth = 0.5
    """Order of the Rényi divergence: not stated by the paper."""
    pmi_weight: Weight = 0.5
    """Lambda of conditional PMI: not stated by the paper."""
    pmi_threshold: Weight = 1.0
    """Tau of conditional PMI, in nats: not stated by the paper."""
    n_alternatives: Count = 10
    """Most probable tokens at each position that CCP puts in place: not stated by the paper."""
    sar_temperature: Annotated[float, Field(gt=0, lt=1e6, description="a number above 0")] = 0.001
    """t of sentence-level SAR: not stated by the paper."""
    eigenvalue_cut: Annotated[
        float, Field(gt=0, le=2, description="a number above 0 and at most 2")
    ] = 0.9
    """Eigenvectors of the graph Laplacian below it count for eccentricity: not stated."""
    topk_combination: Annotated[Combination, Field(description="'mean', 'first' or 'max'")] = "mean"
    """What the five guesses of a score become: their mean, the first of them, or the highest."""
    relevance_context: InContext = "answer"
    """What a token's relevance (SAR) is judged in: the answer, or the patient's words after it."""
    entailment_context: InContext = "answer"
    """What is compared: bare diagnoses, or each with the patient's words in front."""
    n_doctors: Count = 3
    """K of a panel: doctors who judge a patient independently."""
    doctor_temperature: Annotated[
        float, Field(ge=0, lt=100, description="a number, at least 0 and below 100")
    ] = 0.5
    """Temperature of a panel's doctors: not stated by the sources."""
    reading: Readings = "chat"
    """Replies are read also as chat models write them, or ("strict") in the printed form alone."""
    reasoning_from: Reasoned = "section"
    """A doctor's reasoning: the section that was asked for, or ("thought"), where a reply has none,
    what the model thought."""


PARAMETERS = Parameters()


GIVEN_AS = {
    "n_samples": "samples",
    "sample_temperature": "temperature",
    "reading": "reading",
    "reasoning_from": "reasoning_from",
}
"""Open choices that a :class:`Setup` has itself, by its own names."""


def _parameters(value: Any) -> Any:
    if isinstance(value, Mapping):
        for name, instead in GIVEN_AS.items():
            if name in value:
                raise ValueError(f"parameters has {name!r}; it must be given as {instead}")
        return Parameters(**value)
    return value


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
Names = Annotated[str | Sequence[str], Field(description="a name or a list of names (str or list)")]
Rate = Annotated[float | None, Field(ge=0, description="US dollars for a million tokens")]


@choices
class Ask:
    """What is asked about, and how: cases, methods, levels, samples."""

    dataset: Names = "starter"
    path: Annotated[
        str | Path | Sequence[str | Path | None] | None,
        Field(description="a folder or file, or a list of them"),
    ] = None
    data_options: Options = Field(default_factory=dict)
    """The data sets' own, by name."""
    n: Annotated[
        int | None, Field(ge=1, description="a whole number, at least 1, or None for all (int)")
    ] = None
    methods: Annotated[
        str | Sequence[str] | None, Field(description="a name or a list of names (str or list)")
    ] = None
    """Of confidence; ``None``: those that the study asks for by default."""
    levels: Annotated[
        Sequence[Annotated[int, Field(ge=1, le=100)]] | None,
        Field(min_length=1, description="whole numbers from 1 to 100, at least one (list)"),
    ] = None
    """Percent of a case's statements; ``None``: the study's own."""
    samples: Count = 15
    temperature: Warmth = 0.5
    """Of the samples, and of doctors on a panel; the answer itself is greedy."""
    seed: Seed = 0
    budgets: Annotated[
        dict[Budget, Count],
        Field(description=f"whole numbers of at least 1 for some of {', '.join(get_args(Budget))}"),
    ] = Field(default_factory=dict)
    """Most tokens of a reply, where they are not those of :class:`trustlab.collect.Settings`, of
    :class:`trustlab.agents.MedConf` and of the panel; "thinking" is added to each."""
    reading: Readings = "chat"
    """Replies are read also as chat models write them, or ("strict") in the printed form alone."""
    reasoning_from: Reasoned = "section"
    """Of a panel's doctors: "thought" stands in where a reply has no section of reasoning."""
    parameters: Annotated[
        Parameters, BeforeValidator(_parameters), Field(description="a dict or tl.Parameters")
    ] = PARAMETERS
    """The methods' open choices."""
    medconf: Any = None
    """A :class:`~trustlab.agents.MedConf`, where its parts are switched off or sized."""


@choices
class Roles:
    """Who replies: a model's name or the model itself; ``None``: the model that is asked, or, where
    that is one of the project's own, the sibling that was taught this role."""

    model: Any = "embedded"
    """One or several."""
    model_options: Options = Field(default_factory=dict)
    """For the backend, such as a budget: ``{"max_calls": 1000}``."""
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
    n_doctors: Annotated[
        int | None, Field(ge=1, description="a whole number, at least 1 (int)")
    ] = None
    """K of a panel; ``None``: that of ``parameters``."""
    panel: Any = None
    """The doctors of a panel are of these models in turn, one or several."""


@choices
class Read:
    """Who reads the replies: a name, a path or the object itself."""

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
    n_jobs: Annotated[
        int, Field(ge=-1, description="a whole number, at least 1, or -1 for all (int)")
    ] = 1
    """Processes for scoring, and for local models on the CPU; at most those that joblib's backend
    offers."""
    keep_generations: bool | None = None
    """Whether a run's records stay in memory and its tables are CSV; else only the tables stay, as
    Parquet. ``None``: up to :data:`trustlab.run.KEPT_UP_TO` views."""
    quiet: Switch = False
    draws: Count = 2000
    """Bootstrap draws for the intervals."""
    usd_in: Rate = None
    """Your rate for a million tokens in; then ``usd_out`` for those out, too."""
    usd_out: Rate = None

    @model_validator(mode="after")
    def _kept(self) -> Self:
        if self.n_jobs == 0:
            raise ValueError("n_jobs is 0; it must be a whole number, at least 1, or -1 for all")
        if (self.usd_in is None) != (self.usd_out is None):
            received = f"usd_in is {self.usd_in!r} and usd_out is {self.usd_out!r}"
            raise ValueError(f"{received}; both must be given, or neither")
        return self


class Flat:
    """What all choices can: be copied with changes, and be taken from a notebook's variables."""

    def with_(self, **changes: Any) -> Self:
        """A copy with these choices changed, checked again."""
        return replace(cast(Any, self), **changes)

    @classmethod
    def of(cls, variables: Mapping[str, Any]) -> Self:
        """The choices among a notebook's variables (``globals()``): literals alone.

        ``more`` among them is a dict of further choices by name.

        Replies are kept in ``runs/replies.sqlite``; all else goes to ``run_dir``, by default
        ``runs/interactive``.
        """
        literal = (str, int, float, list, dict, type(None))
        more = variables.get("more", {})
        if not isinstance(more, Mapping):
            raise ValueError(f"more is {more!r}; it must be a mapping of names to values (a dict)")
        for name in more:
            if name not in names_of(cls):
                raise ValueError(unknown(str(name), names_of(cls)))
        variables = {**variables, **more}
        given: dict[str, Any] = {
            name: variables[name] for name in names_of(cls) if name in variables
        }
        given = {name: value for name, value in given.items() if isinstance(value, literal)}
        given["run_dir"] = given.get("run_dir") or paths.RUNS / "interactive"
        if "cache" in names_of(cls):
            given["cache"] = paths.REPLIES
        return cls(**given)


@choices
class Setup(Keep, Read, Roles, Ask, Flat):
    """All choices of a run, flat, in four groups: :class:`Ask`, :class:`Roles`, :class:`Read`,
    :class:`Keep`.

    What a study asks further is in its own ``Asked``. Opened once, when first needed: ``judge``,
    ``library``, ``readers``.
    """

    @model_validator(mode="after")
    def _named(self) -> Self:
        from trustlab.confidence import select
        from trustlab.datasets import check_sets
        from trustlab.graders import JUDGE, check_grader
        from trustlab.models import check_model_name, check_options
        from trustlab.retrieval.corpus import corpus_files

        check_sets(self.dataset, self.path, self.data_options)
        if self.methods is not None:
            select(self.methods)
        if self.levels is not None and len(set(self.levels)) < len(self.levels):
            raise ValueError(f"levels is {self.levels!r}; each must be given once")
        check_grader(self.grader)
        if not (models := as_list(self.model)):
            raise ValueError("model is []; at least one is needed")
        if self.panel is not None and len(models) > 1:
            raise ValueError(f"panel is given, and model is {self.model!r}; one model is needed")
        others = [self.assessor, self.doctor, self.reviewer, self.wording]
        panel = [] if self.panel is None else as_list(self.panel)
        if len({id(m) if hasattr(m, "generate") else m for m in panel}) < len(panel):
            raise ValueError(f"panel is {self.panel!r}; each model must be given once")
        others += panel
        others += [None if self.patient == "facts" else self.patient]
        for name in [*models, *others]:
            if name is not None and not hasattr(name, "generate"):
                check_model_name(name)
        if isinstance(self.grader, str) and self.grader.startswith(JUDGE):
            others.append(self.grader.removeprefix(JUDGE))
        if "thinking" in self.budgets and any(
            hasattr(one, "generate") for one in [*models, *others]
        ):
            raise ValueError(
                "budgets has 'thinking', and a model is open already; open it with"
                f" thinking_tokens={self.budgets['thinking']}"
            )
        check_options("model_options", self.model_options, models)
        check_options("reader_options", self.reader_options, others)
        for name in ("encoder", "medical_encoder", "entailment"):
            _local(name, getattr(self, name))
        if self.corpus is not None:
            corpus_files(self.corpus)
        return self

    @property
    def chosen(self) -> Parameters:
        """The methods' open choices, those that are set here as they are set here."""
        panel = {} if self.n_doctors is None else {"n_doctors": self.n_doctors}
        own = {name: getattr(self, given) for name, given in GIVEN_AS.items()}
        return replace(self.parameters, **own, **panel)

    @property
    def procedure(self) -> MedConf:
        """MedConf's parameters."""
        from trustlab.agents import MedConf

        given: Any = self.medconf or MedConf()
        steps = self.most_tokens("keyword", "profile", "evidence")
        most = {f"max_tokens_{name}": n for name, n in steps.items()}
        return replace(given, **most) if most else given

    def most_tokens(self, *names: Budget) -> dict[str, int]:
        """Those budgets that are set, by name."""
        return {name: self.budgets[name] for name in names if name in self.budgets}

    def _options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """A backend's options, with the budget for thought where they do not have their own."""
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

    @cached_property
    def judge(self) -> Grader:
        """The grader."""
        return self.opened_grader(self.grader)

    def opened_grader(self, grader: str | Grader) -> Grader:
        """A grader by name; what it asks and encodes is kept as everything else is."""
        from trustlab.graders import JUDGE, open_grader

        judged = str(grader).startswith(JUDGE)
        options = self._options(self.reader_options) | {"n_jobs": self.n_jobs} if judged else {}
        return open_grader(grader, cache=self.store, reading=self.reading, **options)

    @cached_property
    def library(self) -> Retriever:
        """MedConf's retriever."""
        from trustlab.retrieval import open_retriever

        return self.retriever or open_retriever(self.corpus)

    @cached_property
    def readers(self) -> Readers:
        """Who reads meaning; what they find is kept in files beside the replies."""
        from trustlab.meaning.encoder import Encoder
        from trustlab.meaning.entailment import open_entailment
        from trustlab.meaning.parts import Readers

        vectors, judged = (
            self.store and self.store.with_name(f"{kind}.sqlite")
            for kind in ("vectors", "entailment")
        )
        encoder, medical, entailment = self.encoder, self.medical_encoder, self.entailment
        if encoder is None or isinstance(encoder, str | Path):
            encoder = Encoder(encoder, cache_path=vectors, n_jobs=self.n_jobs)
        if isinstance(medical, str | Path):
            medical = Encoder(medical, cache_path=vectors, n_jobs=self.n_jobs)
        if entailment is None or isinstance(entailment, str | Path):
            entailment = open_entailment(entailment, encoder=encoder, cache_path=judged)
        return Readers(encoder, medical, entailment)

    def cases(self) -> list[Case]:
        """The cases of the data sets; of a shard its own among them."""
        from trustlab.datasets import load_sets

        how: dict[str, Any] = {"path": self.path, "n": self.n, "seed": self.seed}
        cases = load_sets(self.dataset, options=self.data_options, **how)
        return [case for case in cases if paths.in_shard(case.case_id)]

    def models(self) -> list[Model]:
        """The models to ask."""
        options = self._options(self.model_options)
        return [_opened(model, options, self.n_jobs) for model in as_list(self.model)]

    def who(self, name: Role, models: Sequence[Any] = ()) -> Any:
        """Who has a role where ``models`` are asked, by name; ``None``: they have it themselves."""
        from trustlab.models import CLINIC, DIAGNOSING

        who, names = getattr(self, name), [getattr(one, "name", one) for one in models]
        apart = name not in ("assessor", "patient") and names and set(names) <= set(DIAGNOSING)
        return CLINIC if who is None and apart else who

    def role(self, name: Role, models: Sequence[Any] = ()) -> Any:
        """The same, opened, a panel as a list; ``None``, and a patient "facts", stay what they
        are."""
        who = self.who(name, models)
        if who is None or who == "facts":
            return who
        options = self._options(self.reader_options)
        each = [_opened(one, options, self.n_jobs) for one in as_list(who)]
        return each if name == "panel" else each[0]

    def opened(self) -> Self:
        """The same with everything open and one store, for several runs to share."""
        r = self.readers
        read = {"encoder": r.encoder, "medical_encoder": r.medical, "entailment": r.entailment}
        read |= {"grader": self.judge, "retriever": self.library, "cache": self.store or MEMORY}
        return self.with_(**read, assessor=self.assessed_by)

    @cached_property
    def assessed_by(self) -> CachedModel | None:
        """MedConf's own model over the store, where it has one."""
        from trustlab.models.cache import CachedModel

        who = self.role("assessor")
        return who if who is None or isinstance(who, CachedModel) else CachedModel(who, self.store)

    def below(self, folder: str) -> Self:
        """The same, shared, with the tables in a folder of ``run_dir`` (nowhere without one)."""
        return self.opened().with_(run_dir=self.run_dir and self.run_dir / folder)


def _opened(model: Any, options: Mapping[str, Any], n_jobs: int) -> Any:
    from trustlab.models import open_model

    return open_model(model, n_jobs=n_jobs, **options) if isinstance(model, str) else model


def _local(name: str, value: Any) -> None:
    """``ValueError`` for text that can only be a local path, where there is nothing, and for a
    folder whose weights are a pickle."""
    if isinstance(value, str | Path):
        from trustlab.models import is_path
        from trustlab.models.opening import refuse_pickle

        if is_path(str(value)) and not Path(value).expanduser().exists():
            raise ValueError(f"{name} is {str(value)!r}; there is no such file or folder")
        if Path(value).expanduser().is_dir():
            refuse_pickle(Path(value).expanduser(), within=True)


def given(*values: T | None) -> T:
    """The first that is not ``None``."""
    return next(value for value in values if value is not None)


def opened(setup: Setup) -> Setup:
    """What a setup names, opened when first needed."""
    return setup


def takes_setup(function: Callable[P, T]) -> Callable[P, T]:
    """A keyword that is a part of ``setup`` is refused, and says where it is now."""
    known = inspect.signature(function).parameters

    @functools.wraps(function)
    def called(*args: P.args, **named: P.kwargs) -> T:
        for name, value in named.items():
            if name not in known and name in names_of(Setup):
                now = f"tl.{function.__name__}(..., setup=tl.Setup({name}={value!r}))"
                raise TypeError(f"{name} is now part of tl.Setup: {now}")
        setup = inspect.signature(function).bind(*args, **named).arguments.get("setup")
        if not isinstance(setup, Setup | None):
            raise TypeError(f"setup is {setup!r}; it must be a tl.Setup")
        return function(*args, **named)

    return called
