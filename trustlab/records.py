"""Holds the vocabulary: a case, a reply, an answer and all that is known of it.

All records are frozen; arrays inside them are read by methods and never written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Annotated, Any, Literal, Protocol, runtime_checkable

import numpy as np
from pydantic import Field

from trustlab.choices import Count, Warmth, Weight, choices

Combination = Literal["mean", "first", "max"]
Context = Literal["answer", "full"]
Reading = Literal["chat", "strict"]
ReasoningFrom = Literal["section", "thought"]
Readings = Annotated[Reading, Field(description="'chat' or 'strict'")]
Reasoned = Annotated[ReasoningFrom, Field(description="'section' or 'thought'")]
InContext = Annotated[Context, Field(description="'answer' or 'full'")]


@choices
class Parameters:
    """The methods' open choices. They travel with every :class:`Generation`, so that a method stays
    a function of its record alone."""

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
    """Most probable tokens at each position that CCP puts in place: not stated by the paper.
    DeepConf averages over as many."""
    sar_temperature: Annotated[
        float, Field(gt=0, lt=1e6, description="a number above 0")
    ] = 0.001
    """t of sentence-level SAR: not stated by the paper."""
    eigenvalue_cut: Annotated[
        float, Field(gt=0, le=2, description="a number above 0 and at most 2")
    ] = 0.9
    """Eigenvectors of the graph Laplacian below it count for eccentricity: not stated."""
    deepconf_window: Count = 1
    """Tokens of a window of DeepConf; its paper takes 2,048, over a thought."""
    topk_combination: Annotated[
        Combination, Field(description="'mean', 'first' or 'max'")
    ] = "mean"
    """What the five guesses of a score become: their mean, the first of them, or the highest."""
    relevance_context: InContext = "answer"
    """What a token's relevance (SAR) is judged in: the answer, or the patient's words after it."""
    entailment_context: InContext = "answer"
    """What is compared: bare diagnoses, or each with the patient's words in front."""
    n_doctors: Count = 3
    """K of a panel: doctors who judge a patient independently."""
    doctor_temperature: Annotated[
        float | None,
        Field(ge=0, lt=100, description="a number, at least 0 and below 100, or None"),
    ] = None
    """Temperature of a panel's doctors, which the sources do not state; ``None``: that of the
    samples."""
    reading: Readings = "chat"
    """Replies are read also as chat models write them, or ("strict") in the printed form alone."""
    reasoning_from: Reasoned = "section"
    """A doctor's reasoning: its section, or ("thought") where there is none what was thought."""

    @property
    def panel_temperature(self) -> float:
        """The temperature at which a panel's doctors are asked."""
        if self.doctor_temperature is None:
            return self.sample_temperature
        return self.doctor_temperature


PARAMETERS = Parameters()

LEVELS: tuple[int, ...] = (1, 20, 40, 60, 80, 100)
"""Information levels in percent of a case's statements; 1 shows exactly one statement."""


@dataclass(frozen=True)
class Statement:
    """One doctor-patient exchange, or one sentence of a report. ``finding`` and ``affirmed`` give
    its content, where the data set knows it; no model sees them."""

    text: str
    finding: str | None = None
    affirmed: bool | None = None

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Case:
    """A patient: statements in the order in which they are told, and the diagnosis they lead to.

    - ``accepted``: every name that counts as the same diagnosis, ``diagnosis`` among them.
    - ``patient``: other known facts (age in years, sex). They are shown only if a statement says
      them, or to a panel as a chart (:mod:`trustlab.knowledge.chart`).
    - ``posteriors``: number of statements told -> chance of each diagnosis by name; never shown.
    - ``record``: further facts, which the patient tells only if asked.
    - ``denies``: findings that are absent unless statements or record have them; others: unknown.
    - ``question``: asked in place of which disease the patient has; ``diagnosis`` is its answer.
    """

    case_id: str
    dataset: str
    statements: tuple[Statement, ...]
    diagnosis: str
    accepted: tuple[str, ...]
    patient: Mapping[str, object] = field(default_factory=dict)
    posteriors: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    record: tuple[Statement, ...] = ()
    denies: frozenset[str] = frozenset()
    question: str = ""

    @property
    def facts(self) -> tuple[Statement, ...]:
        """Everything that the patient can say: the statements, then the record."""
        return (*self.statements, *self.record)


@dataclass(frozen=True)
class View:
    """A case as shown at one information level: its first ``n_statements`` of ``n_total``."""

    case: Case
    level: int
    statements: tuple[Statement, ...]

    @property
    def text(self) -> str:
        """The text that the model reads: one statement in each paragraph."""
        return "\n".join(s.text for s in self.statements)

    @property
    def posterior(self) -> Mapping[str, float] | None:
        """The chance of each diagnosis by name, given the case's first statements; ``None`` where
        it is not known, or something else is shown."""
        shown = len(self.statements)
        if self.statements != self.case.statements[:shown]:
            return None
        return self.case.posteriors.get(shown)

    @property
    def n_statements(self) -> int:
        """How many statements are shown."""
        return len(self.statements)

    @property
    def n_total(self) -> int:
        """How many statements the case has."""
        return len(self.case.statements)

    @property
    def n_words(self) -> int:
        """How many words are shown."""
        return len(self.text.split())


@dataclass(frozen=True)
class TokenTrace:
    """Token statistics of one reply, each (L,), from the model's own distribution at temperature 1,
    in natural logarithms; ``None`` where a backend cannot give them.

    - ``alternatives[l]``: the most probable tokens at l as (token, log-probability), best first.
    - ``certainty[l]``: minus the mean over the vocabulary of ln(V p), from the whole distribution.
    - ``bounds``: field -> ``"lower"`` or ``"upper"``, if it comes from a truncated distribution.
    - ``lacks``: field that is ``None`` -> the reason, if only this reply has none.
    """

    tokens: tuple[str, ...]
    logprobs: np.ndarray | None = None
    entropies: np.ndarray | None = None
    renyi: np.ndarray | None = None
    fisher_rao: np.ndarray | None = None
    prior_logprobs: np.ndarray | None = None
    alternatives: tuple[tuple[tuple[str, float], ...], ...] | None = None
    bounds: Mapping[str, str] = field(default_factory=dict)
    lacks: Mapping[str, str] = field(default_factory=dict)
    certainty: np.ndarray | None = None

    ARRAYS = (
        "logprobs", "entropies", "renyi", "fisher_rao", "prior_logprobs", "certainty",
    )  # fmt: skip

    def __len__(self) -> int:
        return len(self.tokens)

    def part(self, start: int, stop: int) -> TokenTrace:
        """The statistics of tokens ``start`` to ``stop - 1``."""
        parts = {}
        for name in ("tokens", *self.ARRAYS, "alternatives"):
            values = getattr(self, name)
            parts[name] = None if values is None else values[start:stop]
        return replace(self, **parts)


@dataclass(frozen=True)
class Reply:
    """What a model returned once.

    - ``text``: ``None`` where nothing is readable; ``missing`` says why.
    - ``raw``: the unchanged words, where ``text`` was parsed out of them.
    - ``finish``: "stop", "error", or "length": the tokens ran out, which is no answer, whatever the
      text says (:func:`trustlab.parsing.reply.no_answer`).
    - ``n_tokens_in``, ``n_tokens_out``: ``None`` where the server does not count them.
    - ``served_by``: the model that the server names, or ''; ``reasoning``: the thought before it.
    """

    text: str | None
    trace: TokenTrace | None = None
    n_tokens_in: int | None = 0
    n_tokens_out: int | None = 0
    finish: str = "stop"
    missing: str | None = None
    raw: str | None = None
    served_by: str = ""
    reasoning: str | None = None


GROUP = "group:"
"""How a column of a table begins that puts its cases into groups (``group:hospital``)."""
NO_DIAGNOSIS = "no diagnosis in square brackets"
PLACEHOLDER = "a placeholder in place of a diagnosis"
"""Why an answer is missing whose brackets hold the words of a form ("[Insert diagnosis here]")."""
SEVERAL = "in doubt: several different names"
"""Why an answer is missing that names more than one: it is neither right nor wrong."""
UNKNOWN = "unknown answer: neither the lists of names nor ICD-10-CM have it"
"""Why an answer that nothing settles is neither right nor wrong to the synonym grader."""
UNNAMED = (None, NO_DIAGNOSIS, PLACEHOLDER)
"""What ``missing`` says of an answer that was given and cannot be read: it is wrong."""
NO_VERDICT = "neither True nor False"
GIVEN = {
    "ce_expected": ("ce", tuple(f"[{score}]" for score in range(0, 101, 5))),
    "p_true_probability": ("p_true", ("True", "False")),
}
"""Probe whose replies are given and scored -> the prompt, and the texts that may be the reply."""
PRODUCTS = frozenset({"sequence_probability", "ccp"})
"""Methods whose confidence is a product of probabilities, ranked by its logarithm."""
CUT = "ran out of tokens"
"""Why a reply cut off by the budget or the window is no answer, whatever stands in it."""

IMPORTANCES = ("strong", "moderate", "weak")
SUPPORT_LEVELS = ("supported", "missing", "contradicted")


@dataclass(frozen=True)
class Criterion:
    """One entry of a symptom profile; ``importance`` is ``None`` where the profile gives none."""

    id: int
    description: str
    importance: str | None = None


@dataclass(frozen=True)
class Evidence:
    """One criterion compared with the patient's words. ``quote_occurs``: whether the quotation
    occurs in them (``None``: there is no quotation)."""

    criterion: Criterion
    support_level: str
    quote: str | None = None
    quote_occurs: bool | None = None


@dataclass(frozen=True)
class Assessment:
    """What MedConf found for one diagnosis: the result of each step. From a failed step on, results
    are ``None`` or empty; ``missing`` says which step failed and why.

    - ``keyword_read``: if false, the diagnosis replaces a keyword that could not be read.
    - ``passages``: the ids shown, best first; ``n_dropped``: how many more did not fit the window.
    - ``summary_agrees``: whether the model's summary says the same as its list.
    - ``score``: 0 to 100; ``replies``: the unchanged words of each step.
    """

    diagnosis: str
    keyword: str | None = None
    keyword_read: bool = True
    passages: tuple[str, ...] = ()
    n_dropped: int = 0
    profile: tuple[Criterion, ...] = ()
    prose: str | None = None
    evidence: tuple[Evidence, ...] = ()
    summary_agrees: bool | None = None
    reasoning: str | None = None
    score: float | None = None
    missing: str | None = None
    replies: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_baseless(self) -> bool:
        """Whether the score is 100 although no criterion is supported."""
        if self.score != 100 or not self.evidence:
            return False
        return all(entry.support_level != "supported" for entry in self.evidence)


@dataclass(frozen=True)
class Opinion:
    """What one doctor of a panel thinks, each part ``None`` where it cannot be read: ``missing``
    says why, ``seed`` and ``model`` whose it is; ``raw`` is the reply as it came."""

    model: str
    seed: int
    thinking: str | None
    diagnosis: str | None
    missing: str = ""
    raw: str | None = None


@dataclass(frozen=True)
class Panel:
    """Doctors who judged the same patient independently.

    - ``votes``: of each opinion the name its diagnosis is counted under (synonyms merged).
    - ``diagnosis``: the majority's name; ``tied``: those that shared the most votes, if several.
    - ``cosines``: of each opinion's reasoning and diagnosis, NaN where one is missing.
    """

    opinions: tuple[Opinion, ...]
    votes: tuple[str | None, ...]
    diagnosis: str | None
    tied: tuple[str, ...] = ()
    cosines: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Prescription:
    """One drug as a doctor proposes it."""

    drug: str
    dose: str
    route: str

    def __str__(self) -> str:
        return f"{self.drug}, {self.dose}, {self.route}"


@dataclass(frozen=True)
class Plan:
    """What a doctor wants to give and to order."""

    prescriptions: tuple[Prescription, ...] = ()
    tests: tuple[str, ...] = ()


RATINGS = ("SAFE", "SAFE WITH CAUTION", "UNSAFE", "UNKNOWN")
"""What a reviewer, or the rule check, says of a prescription."""
FLAGS = ("FINE", "RISKY", "REDUNDANT", "UNKNOWN")
"""What a reviewer, or the rule check, says of a test."""


@dataclass(frozen=True)
class Mark:
    """What is said of one prescription or test.

    - ``verdict``: of :data:`RATINGS` or :data:`FLAGS`, ``None`` unreadable: ``missing`` says why.
    - ``quote``: the words against it; ``quote_occurs``: whether they stand in what was shown.
    - ``reason``: the rule in words; ``rule``: its id in the table, where the rule check speaks.
    """

    verdict: str | None
    quote: str | None = None
    quote_occurs: bool | None = None
    reason: str | None = None
    rule: str | None = None
    missing: str = ""


@dataclass(frozen=True)
class Generation:
    """Everything known about one answer: every confidence method reads this. What nobody asked for,
    or the backend cannot give, is ``None``; ``reasons`` may say why.

    - Of the K readable ``samples``: ``similarity`` and ``similarity_med`` are (K, K) cosines;
      ``entailment[i, j]`` and ``contradiction[i, j]`` are the probabilities that sample i entails
      and contradicts sample j; ``sample_relevance`` is K arrays (L_k,). ``n_wordings``: the number
      of different texts of two or more samples, readable or not.
    - Of the answer and the K readable samples: ``answer_similarity`` is (K,) cosines;
      ``answer_entailment`` and ``answer_contradiction`` are (2, K): that the answer entails or
      contradicts each sample, and that each sample entails or contradicts the answer.
    - Of the answer: ``relevance`` (L,) is how much each token matters, 0 to 1.
      ``alternative_entailment`` is, for each position (A,), the class of each alternative put in
      its place: 1 entails the answer, -1 contradicts it, 0 neither. ``exact`` is the answer's
      chance given what was shown, if known.
    - ``probes``: question (``"ce"``, ``"p_true"``) -> replies, each read by
      :func:`trustlab.parsing.scores.probe_reply`, except those of :data:`GIVEN`.
    - ``parameters``: the open choices that methods read; ``told``: the patient's words.
    - ``own``: scores that a table of replies brings, by the name of their method
      ("confidence:probe").
    """

    case_id: str
    level: int
    model: str
    seed: int
    n_statements: int
    n_total: int
    n_words: int
    answer: Reply | None = None
    samples: tuple[Reply, ...] | None = None
    n_wordings: int | None = None
    similarity: np.ndarray | None = None
    similarity_med: np.ndarray | None = None
    entailment: np.ndarray | None = None
    contradiction: np.ndarray | None = None
    answer_similarity: np.ndarray | None = None
    answer_entailment: np.ndarray | None = None
    answer_contradiction: np.ndarray | None = None
    relevance: np.ndarray | None = None
    sample_relevance: tuple[np.ndarray, ...] | None = None
    alternative_entailment: tuple[np.ndarray, ...] | None = None
    probes: Mapping[str, tuple[Reply, ...]] = field(default_factory=dict)
    assessment: Assessment | None = None
    panel: Panel | None = None
    exact: float | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)
    parameters: Parameters = PARAMETERS
    told: str | None = None
    own: Mapping[str, float] = field(default_factory=dict)


def with_each(
    generations: Iterable[Generation], name: str, values: Iterable[Any]
) -> list[Generation]:
    """The records, each with its own of the values in the field ``name``."""
    pairs = zip(generations, values, strict=True)
    return [replace(generation, **{name: value}) for generation, value in pairs]


@dataclass(frozen=True)
class Grade:
    """``correct`` is 1 (right), 0 (wrong), or ``None`` (undecided; ``missing`` says why). ``kind``
    is ``same`` or ``narrower`` for a right answer, ``other`` for a wrong one."""

    correct: int | None
    missing: str = ""
    kind: str = ""

    def __post_init__(self) -> None:
        if not self.kind and self.correct is not None:
            object.__setattr__(self, "kind", "same" if self.correct else "other")


@runtime_checkable
class Grader(Protocol):
    """Anything that can tell a right answer from a wrong one."""

    @property
    def name(self) -> str:
        """The grader's name in tables."""
        ...

    def grade(
        self, answers: Sequence[str | None], cases: Sequence[Case]
    ) -> list[Grade]:
        """A grade for each answer to its case, in order."""
        ...


@lru_cache(maxsize=1 << 15)
def normalise(name: str) -> str:
    """Lower-case letters and digits separated by single spaces, for comparing names."""
    letters = [letter if letter.isalnum() else " " for letter in name.casefold()]
    return " ".join("".join(letters).split())


def place_of(
    token: str, logprob: float, alternatives: tuple[tuple[str, float], ...]
) -> int | None:
    """Where among the alternatives the token itself stands; ``None`` where it is none of them.

    Its text tells, and of several alternatives with its text the probability. Only where a text
    tells nothing ('' or a part of a character) is one of the same probability taken for it.
    """
    ranks = []
    for place, (text, other_logprob) in enumerate(alternatives):
        is_same = text == token
        is_near = other_logprob == logprob or abs(other_logprob - logprob) < 1e-6
        tells = bool(text) and bool(token) and "\ufffd" not in text + token
        if is_same and is_near:
            ranks.append((0, place))
        elif is_same and tells:
            ranks.append((1, place))
        elif is_near and not tells:
            ranks.append((2, place))
    if not ranks:
        return None
    _, best_place = min(ranks)
    return best_place
