"""The whole vocabulary: cases, what a model replied, and everything known about one answer.

All records are frozen; arrays inside them are read by methods and never written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from trustlab.choices import Count, Warmth, Weight, choices

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

LEVELS: tuple[int, ...] = (1, 20, 40, 60, 80, 100)
"""Information levels in percent of a case's statements; 1 shows exactly one statement."""


@dataclass(frozen=True)
class Statement:
    """One doctor-patient exchange, or one sentence of a report.

    ``finding`` and ``affirmed`` say what it tells, where the data set knows (``None`` elsewhere);
    no model ever sees them.
    """

    text: str
    finding: str | None = None
    affirmed: bool | None = None

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Case:
    """A patient: statements in the order they are told, and the diagnosis they lead to.

    ``accepted`` holds every name that counts as the same diagnosis (``diagnosis`` among them);
    ``patient`` holds what else is known (age in years, sex), which is not shown unless a statement
    says it; a panel's doctors and its reviewers see part of it as a chart
    (:mod:`trustlab.safety.chart`). ``posteriors`` holds what could be known, where the data set
    tells it: after so many statements, the chance of each diagnosis by name; nobody is shown it.
    ``record`` holds what else is so, which the patient tells only if asked. ``denies`` are the
    findings of the knowledge table that are not so where neither statements nor record hold them;
    of all others nothing is known.
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

    @property
    def facts(self) -> tuple[Statement, ...]:
        """All that the patient can say: the statements, then the record."""
        return (*self.statements, *self.record)


@dataclass(frozen=True)
class View:
    """A case as shown at one information level: its first ``n_statements`` of ``n_total``."""

    case: Case
    level: int
    statements: tuple[Statement, ...]

    @property
    def text(self) -> str:
        """What the model reads: one statement per paragraph."""
        return "\n".join(s.text for s in self.statements)

    @property
    def posterior(self) -> Mapping[str, float] | None:
        """The chance of each diagnosis by name, given what is shown; ``None`` where it is not
        known, or where something else is shown than the case's first statements."""
        shown = len(self.statements)
        own = self.statements == self.case.statements[:shown]
        return self.case.posteriors.get(shown) if own else None

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
    """Token statistics of one reply, each of shape (L,), from the model's own distribution at
    temperature 1.

    Natural logarithms. ``None`` where a backend cannot say. ``alternatives[l]`` lists the most
    probable tokens at position l as (token, log-probability), best first. ``bounds`` maps a field's
    name to ``"lower"`` or ``"upper"`` where it came from a truncated distribution; ``lacks`` one
    that is ``None`` to why, where this reply alone has none.
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

    ARRAYS = ("logprobs", "entropies", "renyi", "fisher_rao", "prior_logprobs")

    def __len__(self) -> int:
        return len(self.tokens)

    def part(self, start: int, stop: int) -> TokenTrace:
        """The statistics of tokens ``start`` to ``stop - 1``."""
        cut = {
            name: None if getattr(self, name) is None else getattr(self, name)[start:stop]
            for name in self.ARRAYS
        }
        alternatives = None if self.alternatives is None else self.alternatives[start:stop]
        return replace(self, tokens=self.tokens[start:stop], alternatives=alternatives, **cut)


@dataclass(frozen=True)
class Reply:
    """What a model returned once.

    ``text`` is ``None`` where there is nothing readable, and ``missing`` says why. ``raw`` keeps
    the words as they came when ``text`` has been parsed out of them. ``finish`` is "stop", "length"
    (the tokens ran out: no answer, whatever the text says:
    :func:`trustlab.parsing.reply.no_answer`)
    or "error". ``served_by`` is the model that the server says it used, '' where it says none;
    ``reasoning`` what the model thought before the text, ``None`` where it shows no thought.
    """

    text: str | None
    trace: TokenTrace | None = None
    n_tokens_in: int = 0
    n_tokens_out: int = 0
    finish: str = "stop"
    missing: str | None = None
    raw: str | None = None
    served_by: str = ""
    reasoning: str | None = None


NO_DIAGNOSIS = "no diagnosis in square brackets"
"""Why an answer that names no disease is missing."""
PLACEHOLDER = "a placeholder in place of a diagnosis"
"""Why one is whose brackets hold the words of a form ("[Insert diagnosis here]")."""
UNNAMED = (None, NO_DIAGNOSIS, PLACEHOLDER)
"""What ``missing`` says of an answer that was given and cannot be read: it is wrong."""
NO_VERDICT = "neither True nor False"
"""Why a judgement that says something else is missing."""
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
    """One entry of a symptom profile; ``importance`` is ``None`` in a profile without
    importance."""

    id: int
    description: str
    importance: str | None = None


@dataclass(frozen=True)
class Evidence:
    """A criterion held against the patient's words.

    ``quote_occurs`` says whether the quotation stands in them (``None``: there is no quotation).
    """

    criterion: Criterion
    support_level: str
    quote: str | None = None
    quote_occurs: bool | None = None


@dataclass(frozen=True)
class Assessment:
    """What MedConf found for one diagnosis: each step's result, ``None`` or empty from the step
    that failed on.

    ``score`` is 0 to 100; ``missing`` says which step failed and why. ``passages`` holds the ids
    shown, best first; ``n_dropped`` how many more were found but did not fit the model's window.
    ``summary_agrees`` says whether the model's summary says the same as its list. ``replies`` keeps
    each step's words as they came. Without ``keyword_read`` the diagnosis stands in for a keyword
    that could not be read.
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
        """Whether it is sure (100) of what nothing supports."""
        levels = {e.support_level for e in self.evidence}
        return self.score == 100 and bool(levels) and "supported" not in levels


@dataclass(frozen=True)
class Opinion:
    """What one doctor of a panel thinks: its reasoning and its diagnosis, each ``None`` where it
    cannot be read.

    ``missing`` says why; ``seed`` and ``model`` say whose it is; ``raw`` keeps the reply as it
    came.
    """

    model: str
    seed: int
    thinking: str | None
    diagnosis: str | None
    missing: str = ""
    raw: str | None = None


@dataclass(frozen=True)
class Panel:
    """Doctors who judged the same patient independently.

    ``votes`` holds, for each opinion in order, the name under which its diagnosis is counted
    (synonyms merged), ``None`` where it has none. ``diagnosis`` is the majority's name, ``tied``
    those that shared the most votes where there were several. ``cosines`` are between each
    opinion's reasoning and its diagnosis, NaN where one of them is missing or was not encoded.
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

    ``verdict`` is one of :data:`RATINGS` or :data:`FLAGS`, ``None`` where it cannot be read
    (``missing`` says why). ``quote`` holds the words that speak against it, ``quote_occurs``
    whether they stand in what was shown (``None``: no quotation); ``reason`` the rule in words.
    ``rule`` is the id of the table's rule where the rule check speaks.
    """

    verdict: str | None
    quote: str | None = None
    quote_occurs: bool | None = None
    reason: str | None = None
    rule: str | None = None
    missing: str = ""


@dataclass(frozen=True)
class Generation:
    """Everything known about one answer: what every confidence method reads.

    Of the K readable ``samples``: ``similarity`` and ``similarity_med`` are (K, K) cosines;
    ``entailment[i, j]`` and ``contradiction[i, j]``, (K, K), the probabilities that sample i
    entails and contradicts sample j; ``sample_relevance`` holds K arrays (L_k,). Of the answer:
    ``relevance`` (L,) says how much each token matters, 0 to 1; ``alternative_entailment`` holds,
    for each position, the class of each alternative put in its place, (A,): 1 entails the answer,
    -1 contradicts it, 0 neither. ``probes`` maps a question (``"ce"``, ``"p_true"``) to the replies
    it got, each read by :func:`trustlab.parsing.scores.probe_reply` but those of :data:`GIVEN`.
    ``n_wordings`` is how many different texts the samples came in, readable or not, where there are
    two or more. A part that nobody asked for, or that the backend cannot give, is ``None``, and
    ``reasons`` may say why. ``exact`` is the chance of the answer given what was shown, if known.
    ``parameters`` are the open choices that its methods read; ``told`` the patient's words, so that
    a number in them is never taken for the model's.
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


@lru_cache(maxsize=1 << 15)
def normalise(name: str) -> str:
    """Lower-case letters and digits separated by single spaces, for comparing names."""
    return " ".join("".join(c if c.isalnum() else " " for c in name.casefold()).split())


def place_of(token: str, logprob: float, alternatives: tuple[tuple[str, float], ...]) -> int | None:
    """Where among the alternatives the token itself stands; ``None`` where it is none of them.

    Its text tells, and of several alternatives with its text the probability. A token that
    completes no character has no text of its own ('' or the replacement character): there, and only
    there, an alternative of the same probability is taken for it.
    """
    near = [lp == logprob or abs(lp - logprob) < 1e-6 for _, lp in alternatives]
    same = [text == token for text, _ in alternatives]
    tells = [_tells(text) and _tells(token) for text, _ in alternatives]
    places = range(len(alternatives))
    found = [i for i in places if same[i] and near[i]]
    found += [i for i in places if same[i] and tells[i]]
    found += [i for i in places if near[i] and not tells[i]]
    return found[0] if found else None


def _tells(text: str) -> bool:
    """Whether a token's text says which token it is."""
    return bool(text) and "\ufffd" not in text
