"""Registers each method with its needs, scale, equation and source."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import chain, compress
from typing import Any, NamedTuple

import numpy as np

from trustlab.records import GIVEN, UNNAMED, Generation

FAMILIES = (
    "token",
    "consistency",
    "verbalized",
    "medconf",
    "baseline",
    "trust",
    "reference",
)
BY_ENCODER = frozenset({
    "similarity", "answer_similarity", "relevance", "sample_relevance", "panel.cosines",
})  # fmt: skip
BY_JUDGE = frozenset({
    "entailment", "contradiction", "answer_entailment", "answer_contradiction",
    "alternative_entailment",
})  # fmt: skip
"""Needs that the general encoder meets, and those of the judge of entailment."""
OWN = "own"
"""The family of scores that a table of replies brings."""
SCALES = ("probability", "score")
"""probability: in [0, 1], meant as a chance. score: only the order means something."""

GIVEN_NEEDS = frozenset(f"probes.{name}" for name in GIVEN)
"""Likelihoods of given texts: many requests an answer, so that what reads them is in no group."""
NEEDS = (
    "answer", "answer.logprobs", "answer.entropies", "answer.renyi", "answer.fisher_rao",
    "answer.prior_logprobs", "answer.alternatives", "answer.certainty", "samples",
    "samples.logprobs", "similarity", "similarity_med", "entailment", "contradiction",
    "answer_similarity", "answer_entailment", "answer_contradiction", "relevance",
    "sample_relevance",
    "alternative_entailment", "probes.ce", "probes.cot_ce", "probes.topk_ce", "probes.p_true",
    *sorted(GIVEN_NEEDS), "assessment", "panel", "panel.cosines", "shown", "exact",
)  # fmt: skip
"""Parts of a generation that a method may need. ``shown``: how much was shown, always there;
``exact``: what the data set knows of the answer's chance."""

WHITE_NEEDS = frozenset(
    {need for need in NEEDS if need.startswith("answer.")}
    | {"samples.logprobs", "alternative_entailment", *GIVEN_NEEDS}
)
"""The needs that only a model which shows its token probabilities can meet."""

LOGARITHMS = {need for need in NEEDS if need.endswith("logprobs")} | {
    "answer.alternatives"
}
"""The needs that hold log-probabilities, of which -inf is one; no other number may be infinite."""

PAPER = (
    "asp", "msp", "perplexity", "entropy", "pmi", "conditional_pmi", "renyi_divergence",
    "fisher_rao", "token_sar", "ccp", "poc", "lexical_similarity", "semantic_similarity",
    "semantic_similarity_med", "num_set", "eigv", "deg", "ecc", "mc_se", "mc_nse",
    "semantic_entropy", "sentence_sar", "sar", "ce", "cot_ce", "topk_ce", "p_true", "medconf",
    "information_level", "word_count", "random",
)  # fmt: skip
"""The 27 methods of Ren et al. 2026, theirs (MedConf) and three baselines, in the paper's order."""

VARIANTS = (
    *PAPER, "sequence_probability", "min_token_probability", "conditional_pmi_original", "ccp_min",
    "ccp_mean", "sentence_sar_printed", "semantic_poc", "semantic_entropy_normalised",
    "semantic_entropy_discrete", "medconf_weighted",
)  # fmt: skip
"""The paper's and variants of them. Published numbers rest on these two lists: a method that is
added stands in neither, and moves none."""

LATER = (
    "answer_agreement", "noncontradiction", "bsdetector", "kernel_language_entropy",
    "semantic_density", "cocoa_msp", "cocoa_ppl", "luq", "snne", "deepconf_lowest",
    "self_certainty",
)  # fmt: skip
"""The field's later methods."""
BY_NAME = frozenset({*LATER, "kernel_language_entropy_rescaled"})
"""These and their variants are in no group of others: they are asked for by name, or as "later"."""

UNREADABLE = "unreadable answer"


class MissingValue(Exception):
    """A confidence that cannot be computed; its words say why."""


class Evaluation(NamedTuple):
    """One confidence (NaN if missing), why it is missing, and which bound it is; '' for neither."""

    confidence: float
    missing: str
    bound: str


@dataclass(frozen=True)
class Method:
    """A registered confidence method; higher is more confident.
    ``label``: its name in figures; ``ratio``: whether its zero is a true zero. ``falls_with``: the
    needs that the confidence falls with, which turn a bound on them round; ``either_way``: those it
    may rise or fall with. ``cite``: keys of ``references.bib``."""

    name: str
    label: str
    family: str
    scale: str
    equation: str
    needs: tuple[str, ...]
    cite: str
    summary: str
    function: Callable[[Generation], float]
    ratio: bool = False
    falls_with: tuple[str, ...] = ()
    either_way: tuple[str, ...] = ()

    @property
    def access(self) -> str:
        """white: token probabilities or distributions are read; black: words are enough."""
        return "white" if WHITE_NEEDS & set(self.needs) else "black"

    @property
    def grouped(self) -> bool:
        """Whether it is in the group "all", and not asked for by its name alone."""
        stands_alone = self.family == "reference" or self.name in BY_NAME
        return not stands_alone and not GIVEN_NEEDS & set(self.needs)

    def score(self, generation: Generation) -> float:
        """The confidence, finite; :class:`MissingValue` where it cannot be computed."""
        answer = generation.answer
        if answer is not None and answer.text is None:
            why = answer.missing
            raise MissingValue(UNREADABLE if why is None or why in UNNAMED else why)
        for need in self.needs:
            absent = absence(generation, need)
            if absent:
                raise MissingValue(absent)
        # a probability of 0 may make an infinity, which is missing
        with np.errstate(all="ignore"):
            value = float(self.function(generation))
        if not math.isfinite(value):
            raise MissingValue(f"{self.name} is {value}")
        return value

    def evaluate(self, generation: Generation) -> Evaluation:
        """As :meth:`score`, with why it is missing and the bound it is; a missing value is NaN."""
        try:
            value = self.score(generation)
            bound = self.bound(generation)
        except MissingValue as missing:
            return Evaluation(math.nan, str(missing), "")
        return Evaluation(value, "", bound)

    def bound(self, generation: Generation) -> str:
        """'lower', 'upper', '' (exact); :class:`MissingValue` where both would meet."""
        bounds: set[str] = set()
        for need in self.needs:
            bounds |= self._bounds_by(need, _bounds(generation, need))
        if len(bounds) > 1:
            raise MissingValue(
                "truncated distributions bound it neither from above nor from below"
            )
        return bounds.pop() if bounds else ""

    def _bounds_by(self, need: str, bounds: set[str]) -> set[str]:
        """The bounds on the confidence that ``bounds`` on a need make."""
        if bounds and need in self.either_way:
            return set(TURNED)
        if need in self.falls_with:
            return {TURNED[bound] for bound in bounds}
        return bounds


OWN_SCALES = {"confidence": "score", "probability": "probability"}
"""How the name of somebody's own score begins, before a colon -> its scale."""


class Methods(dict[str, Method]):
    """The registered methods by name. A name such as "confidence:probe", or "probability:probe",
    is that of a score which a table of replies brings (:data:`OWN_SCALES`)."""

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or is_own(str(name))

    def __missing__(self, name: str) -> Method:
        if not is_own(name):
            raise KeyError(name)
        kind, _, own_name = name.partition(":")
        scale = OWN_SCALES[kind]
        return Method(
            name=name,
            label=f"{own_name} ({scale})",
            family=OWN,
            scale=scale,
            equation="",
            needs=(),
            cite="",
            summary="A score that the table of replies brings; higher is surer.",
            function=partial(_own_score, name),
            ratio=scale == "probability",
        )


def is_own(name: str) -> bool:
    """Whether a method's name is that of a score which a table of replies brings."""
    kind, _, own_name = name.partition(":")
    return kind in OWN_SCALES and bool(own_name.strip())


def _own_score(name: str, generation: Generation) -> float:
    if name not in generation.own:
        raise MissingValue(generation.reasons.get(name, f"no {name} was given"))
    return generation.own[name]


TURNED = {"lower": "upper", "upper": "lower"}
METHODS = Methods()
GROUPS: dict[str, Callable[[Method], bool]] = {
    "paper": lambda m: m.name in PAPER,
    "variants": lambda m: m.name in VARIANTS,
    "ratio": lambda m: m.name in VARIANTS and m.ratio,
    "all": lambda m: m.grouped,
    "later": lambda m: m.name in LATER,
}
"""Names of several methods, and who is among them."""


def method(  # noqa: PLR0913
    label: str,
    scale: str,
    needs: str,
    equation: str = "",
    cite: str = "",
    *,
    family: str,
    ratio: bool = False,
    falls_with: str = "",
    either_way: str = "",
) -> Callable[[Callable[[Generation], float]], Callable[[Generation], float]]:
    """Register the decorated function under its own name; the function itself stays as it is.

    - ``needs``, ``cite``, ``falls_with`` and ``either_way``: words with spaces between.
    - A probability is on a ratio scale, a score where ``ratio`` says so.
    - ``ValueError`` for an unknown family, scale or need, and for a name already taken.
    """
    _check_choice("family", family, FAMILIES)
    _check_choice("scale", scale, SCALES)
    needed = tuple(needs.split())
    falling = tuple(falls_with.split())
    either = tuple(either_way.split())
    for need in needed:
        if need not in NEEDS:
            raise ValueError(f"there is no need {need!r}; known are {', '.join(NEEDS)}")
    for what, turning in (("falls_with", falling), ("either_way", either)):
        stray = sorted(set(turning) - set(needed))
        if stray:
            raise ValueError(
                f"{what} names {stray}, not among the needs {list(needed)}"
            )

    def register(
        function: Callable[[Generation], float],
    ) -> Callable[[Generation], float]:
        name = function.__name__
        if name in METHODS:
            earlier = METHODS[name].family
            raise ValueError(
                f"a method {name!r} is registered already (family {earlier})"
            )
        METHODS[name] = Method(
            name=name,
            label=label,
            family=family,
            scale=scale,
            equation=equation,
            needs=needed,
            cite=cite,
            summary=" ".join((function.__doc__ or "").split("\n\n")[0].split()),
            function=function,
            ratio=ratio or scale == "probability",
            falls_with=falling,
            either_way=either,
        )
        return function

    return register


def _check_choice(what: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{what} is {value!r}; allowed are {', '.join(allowed)}")


def select(methods: str | Iterable[str] = "paper") -> list[Method]:
    """The methods named: one of :data:`GROUPS`, one name, or several of either; repeats once.
    ``"paper"`` and ``"variants"`` are fixed lists, ``"ratio"`` those of the latter on a ratio
    scale, ``"later"`` the field's later methods; ``"all"`` is whatever is registered, but for
    these, references and what scores given texts, which are asked for by name. ``ValueError`` for
    another."""
    named = [methods] if isinstance(methods, str) else methods
    names = list(dict.fromkeys(chain.from_iterable(map(_members, named))))
    choices = f"known are {', '.join(map(repr, GROUPS))} and {', '.join(METHODS)}"
    if not names:
        raise ValueError(f"no methods are named; {choices}")
    for name in names:
        if name not in METHODS:
            raise ValueError(f"there is no method {name!r}; {choices}")
    return [METHODS[name] for name in names]


def _members(name: str) -> Iterable[str]:
    """The methods of a group, the paper's in its order, all others by family; else the name."""
    if name == "paper":
        return PAPER
    if name not in GROUPS:
        return [name]
    members = filter(GROUPS[name], METHODS.values())
    return [m.name for m in sorted(members, key=lambda m: FAMILIES.index(m.family))]


def label(method: str) -> str:
    """A method's short human name; an unlisted ``some_method`` becomes 'Some method'."""
    words = method.replace("_", " ")
    return METHODS[method].label if method in METHODS else words[:1].upper() + words[1:]


def families(methods: Iterable[str]) -> dict[str, str]:
    """Method -> its family, of those among ``methods`` that are registered or a table's own."""
    names = dict.fromkeys(methods)
    return {name: METHODS[name].family for name in names if name in METHODS}


def absence(generation: Generation, need: str) -> str:
    """Why ``need`` cannot be read from ``generation``; '' if it can."""
    part = _part(generation, need)
    if part is None:
        reasons = generation.reasons
        return (
            reasons.get(need)
            or reasons.get(need.partition(".")[0])
            or f"{need} not collected"
        )
    if need.startswith("answer.") and len(part) == 0:  # pyright: ignore
        return "the diagnosis has no tokens"
    numbers = _numbers(generation, need, part)
    if np.isfinite(numbers).all() or (
        need in LOGARITHMS and (numbers < math.inf).all()
    ):
        return ""
    return f"{need} holds NaN or infinity"


def _numbers(generation: Generation, need: str, part: Any) -> np.ndarray:
    """The numbers of a part that methods calculate with, not those of unreadable samples."""
    if isinstance(part, np.ndarray):
        return part
    if need == "answer.alternatives":
        return np.array([logprob for listed in part for _, logprob in listed])
    if need == "panel.cosines":  # NaN and None are doctors without one
        return np.array([c for c in part if c is not None and c == c])
    if need == "samples.logprobs":
        part = compress(
            part, (sample.text is not None for sample in generation.samples or ())
        )
    elif need not in ("sample_relevance", "alternative_entailment"):
        part = ()
    return np.concatenate([np.zeros(0), *part])


def _part(generation: Generation, need: str) -> object | None:
    """What ``need`` names, ``None`` if it is not there."""
    head, _, tail = need.partition(".")
    if head == "shown":
        return True
    if head == "probes":
        return generation.probes.get(tail) or None
    value = getattr(generation, head)
    if value is None or not tail:
        return value
    if head == "panel":
        return getattr(value, tail)
    replies = value if head == "samples" else (value,)
    parts = [
        None if reply.trace is None else getattr(reply.trace, tail) for reply in replies
    ]
    if any(part is None for part in parts):
        return None
    return parts if head == "samples" else parts[0]


def _bounds(generation: Generation, need: str) -> set[str]:
    """The kinds of bound that the token statistics named by ``need`` are."""
    head, _, tail = need.partition(".")
    if not tail or head in ("probes", "panel"):
        return set()
    part = getattr(generation, head)
    replies = part if head == "samples" else (part,)
    bounds = set()
    for reply in replies:
        if tail in reply.trace.bounds:
            bounds.add(reply.trace.bounds[tail])
    return bounds
