"""Grades answers: 1, 0, or ungraded with a reason; never a guess.

What is right, what is no diagnosis and where names come from: docs/python.md, with ``grader``. To
all but ``exact`` words of certainty and degree, accents, invisible characters, a possessive 's, a
leading "Diagnosis:" and words turned round change nothing, but "mild A" for "severe A" is wrong;
nor, in brackets at the end, an ICD-10 code, a share, the abbreviation or another true name; nor
does a finding, cause or complication behind a comma, or one wrong letter in a long word. A disease
is no syndrome, and more than 200 characters are no diagnosis.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from trustlab.knowledge.findings import Knowledge, load_knowledge
from trustlab.knowledge.same_diagnosis import (
    bare_name,
    names_of,
    no_diagnosis,
    spellings,
)
from trustlab.knowledge.same_or_narrower import (
    NARROWER,
    OTHER,
    RIGHT,
    adds_words,
    comparable,
    is_disease,
    is_known_answer,
    is_named,
    verdict,
)
from trustlab.meaning.encoder import VECTORS, Encoder, pair_cosines
from trustlab.models.base import About, Model, Request
from trustlab.models.by_name import check_model_name, open_model
from trustlab.models.cache import CachedModel
from trustlab.parsing.counts import both
from trustlab.parsing.reply import Unreadable, no_answer
from trustlab.parsing.scores import true_or_false
from trustlab.prompts import Prompts, prompts_of
from trustlab.records import UNKNOWN, Case, Grade, Grader, Reading, Reply


class Key(NamedTuple):
    """An answer, the names that it is held against, and the case's own question ('': none)."""

    answer: str | None
    diagnosis: str
    accepted: tuple[str, ...]
    question: str


class ByRule:
    """What graders share: each distinct answer to the same names is judged once, by ``rule`` where
    it can tell; ``judged`` grades the rest together."""

    knowledge: Knowledge | None = None
    is_judge = False

    def rule(self, answer: str | None, case: Case) -> Grade | None:
        """The grade, or ``None`` where it takes more than rules."""
        return by_rule(answer, *self.names_of(case), judged=self.is_judge)

    def judged(self, left: Mapping[Key, Case], times: Mapping[Key, int]) -> dict[Key, Grade]:
        """A grade for each answer that the rules leave, which comes so many ``times``."""
        raise NotImplementedError  # of those whose rules leave any

    def names_of(self, case: Case) -> tuple[tuple[str, ...], Knowledge]:
        """The true names, and the table that they are from."""
        knowledge = self.knowledge or load_knowledge()
        return names_of(case, knowledge), knowledge

    def grade(self, answers: Sequence[str | None], cases: Sequence[Case]) -> list[Grade]:
        """As in :class:`Grader`; ``ValueError`` unless there are as many answers as cases."""
        if len(answers) != len(cases):
            received = f"{len(answers)} answers and {len(cases)} cases"
            raise ValueError(f"each answer needs its case; received {received}")
        pairs = zip(answers, cases, strict=True)
        keys = [Key(a, c.diagnosis, tuple(c.accepted), c.question) for a, c in pairs]
        found: dict[Key, Grade] = {}
        left: dict[Key, Case] = {}
        for key, case in dict(zip(keys, cases, strict=True)).items():
            if grade := self.rule(key.answer, case):
                found[key] = grade
            else:
                left[key] = case
        if left:
            found |= self.judged(left, Counter(keys))
        return [found[key] for key in keys]


def _graded(kind: str) -> Grade:
    return Grade(int(kind in RIGHT), kind=kind if kind in RIGHT else OTHER)


@dataclass(frozen=True)
class ExactGrader(ByRule):
    """Only the case's own name is right; capitals, punctuation and articles do not count."""

    name = "exact"

    def rule(self, answer: str | None, case: Case) -> Grade:
        """The grade is ``same`` or ``other``."""
        return Grade(int(bool(spellings(answer or "") & spellings(case.diagnosis))))


@dataclass(frozen=True)
class SynonymGrader(ByRule):
    """An answer is right if it is one of ``case.accepted``, names the same condition, or a kind of
    it (:func:`~trustlab.knowledge.same_or_narrower.verdict`). One that nothing settles is wrong if
    its name is known, else ungraded (``trustlab.records.UNKNOWN``). Our ``knowledge`` is the
    default."""

    knowledge: Knowledge | None = None
    name = "synonym"

    def rule(self, answer: str | None, case: Case) -> Grade:
        """The grade is ``same``, ``narrower``, ``other``, or missing with ``UNKNOWN``."""
        names, knowledge = self.names_of(case)
        kind = verdict(answer or "", names, knowledge)
        if kind or is_known_answer(answer or "", knowledge):
            return _graded(kind)
        return Grade(None, UNKNOWN)


def by_rule(
    answer: str | None, names: Sequence[str], knowledge: Knowledge, judged: bool = False
) -> Grade | None:
    """What the rules alone say of an answer; ``None`` where it takes a reader of meaning. One that
    only adds words to a true name is a judge's, where one is there (``judged``)."""
    kind = verdict(answer or "", names, knowledge)
    if answer is None or (no_diagnosis(answer, names) and kind not in RIGHT):
        return Grade(0)
    if judged and adds_words(answer, names) and not is_named(answer, names):
        return None
    return _graded(kind) if kind else None


def unknown_truths_warning(grader: Grader, cases: Iterable[Case]) -> str:
    """What to say before a run whose truths its grader's rules mostly do not know, or ''."""
    if not isinstance(grader, SynonymGrader | EncoderGrader):
        return ""
    table = grader.knowledge or load_knowledge()
    truths = {case.diagnosis: case for case in cases}.values()
    known = sum(any(is_disease(n, table) for n in names_of(case, table)) for case in truths)
    if 2 * known >= len(truths):
        return ""
    unknown = f"{len(truths) - known} of {len(truths)} true diagnoses are in neither the knowledge"
    only = "only answers in their very words are right; name a judge (grader='judge:MODEL')"
    return f"{unknown} table nor ICD-10-CM: {only}"


def agreement_sentence(pairs: Iterable[tuple[int | None, float]], name: str) -> str:
    """How far the rules and the judge ``name`` agree, of pairs of what each calls right (1 or 0);
    ``None`` and NaN are not graded."""
    both = [(a, b) for a, b in pairs if a is not None and b == b]
    same, more = sum(a == b for a, b in both), sum(b > a for a, b in both)
    return (
        f"Rules and {name} agree on {same} of {len(both)} answers; {more} are right to the judge "
        f"alone, {len(both) - same - more} to the rules alone."
    )


THRESHOLD = 0.80
DECIMALS = 3
"""Cosines are rounded to these before they are compared: they move by 1e-7 with the batch."""


@dataclass(frozen=True)
class EncoderGrader(ByRule):
    """An answer is right if its cosine with one of the true names is ``threshold`` or more. Cosines
    count where no rule (:func:`by_rule`) decides, and only between names without a clash of
    qualifiers that share every word, misspelt or not, or no word. The grader forgives slips; it is
    no medical dictionary. The threshold fits the packaged all-MiniLM-L6-v2: it is the smallest
    multiple of 0.05 at which none of 22,656 pairs (name of the table, other condition) is called
    the same. Another encoder needs its own."""

    encoder: Encoder = field(default_factory=Encoder)
    threshold: float = THRESHOLD
    knowledge: Knowledge | None = None
    name = "encoder"

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1:
            allowed = "threshold must lie above 0 and not above 1"
            raise ValueError(f"{allowed}; received {self.threshold}")

    def judged(self, left: Mapping[Key, Case], times: Mapping[Key, int]) -> dict[Key, Grade]:
        """Grades by cosine; all distinct names are encoded together."""
        pairs: dict[Key, list[tuple[str, str]]] = {}
        for key, case in left.items():
            names = comparable(str(key.answer), self.names_of(case)[0])
            pairs[key] = [(bare_name(str(key.answer)), bare_name(name)) for name in names]
        cosines = pair_cosines(self.encoder, (pair for some in pairs.values() for pair in some))
        best = {key: max((cosines[p] for p in some), default=-1.0) for key, some in pairs.items()}
        return {key: Grade(int(round(b, DECIMALS) >= self.threshold)) for key, b in best.items()}


MAX_TOKENS = 16
SHOWN = 60
"""Characters of an unreadable reply that its reason repeats."""


class JudgeGrader(ByRule):
    """An answer is right if a model says that it and the true diagnosis are one disease.

    - Each pair is asked about once, greedily, with the names (prompt ``judge``), not the patient.
    - Answers that the rules settle (:func:`by_rule`) are not asked about.
    - Without a verdict (:func:`~trustlab.parsing.scores.true_or_false`), with a cut reply or a
      failed call, the answer stays ungraded, never wrong.
    - ``cache``: the SQLite file of replies (``None``: in memory; a ``CachedModel`` has its own).
    """

    is_judge = True

    def __init__(
        self,
        model: Model,
        *,
        cache: str | Path | None = None,
        knowledge: Knowledge | None = None,
        seed: int = 0,
        reading: Reading = "chat",
    ) -> None:
        self.model = model if isinstance(model, CachedModel) else CachedModel(model, cache)
        self.knowledge, self.seed = knowledge, seed
        self.reading: Reading = reading

    @property
    def name(self) -> str:
        """The grader's name in tables; it contains the model, since two judges are two graders."""
        return f"judge {self.model.name}"

    def judged(self, left: Mapping[Key, Case], times: Mapping[Key, int]) -> dict[Key, Grade]:
        """The model's verdicts; all distinct questions are sent together."""
        names = {key: self.names_of(case)[0] for key, case in left.items()}
        asked: list[Request] = []
        for key, case in left.items():
            whose = About(case.dataset, case.case_id, None, times[key], str(key.answer))
            whose = whose._replace(**both(_judged, self.reading))
            how = (self.seed, prompts_of(self.model), case.question)
            request = judge_request(str(key.answer), names[key], *how)
            asked.append(replace(request, about=whose))
        found: dict[Key, Grade] = {}
        for key, row in zip(left, self.model.generate(asked), strict=True):
            grade = _verdict(row[0], self.reading)
            narrower = grade.correct and adds_words(str(key.answer), names[key])
            found[key] = replace(grade, kind=NARROWER) if narrower else grade
        return found


def judge_request(
    answer: str, names: Sequence[str], seed: int, prompts: Prompts, asks: str = ""
) -> Request:
    """What a judge is asked: whether ``answer`` is what ``names`` name; what the case ``asks``."""
    messages = prompts.render("judge", truth="\n".join(names), proposed=answer, asks=asks)
    return Request(messages, max_tokens=MAX_TOKENS, seed=seed, purpose="judge")


def _judged(reply: Reply, reading: Reading) -> int:
    grade = _verdict(reply, reading)
    if grade.correct is None:
        raise Unreadable(grade.missing)
    return grade.correct


def _verdict(reply: Reply, reading: Reading) -> Grade:
    if why := no_answer(reply):
        return Grade(None, f"the judge gave no reply: {why}")
    same = true_or_false(reply.text, reading)
    if same is None:
        said = " ".join(str(reply.text).split())
        return Grade(None, f"the judge's reply is not the one word True or False: {said[:SHOWN]!r}")
    return Grade(int(same))


GRADERS: Mapping[str, Callable[[], Grader]] = {
    "synonym": SynonymGrader,
    "exact": ExactGrader,
    "encoder": EncoderGrader,
}
"""Graders that need nothing but the package, by name."""
JUDGE = "judge:"  # what stands before a model's name where that model is to judge


def check_grader(grader: object) -> None:
    """``ValueError`` unless ``grader`` is one, or a name that :func:`open_grader` takes."""
    if isinstance(grader, Grader) or (isinstance(grader, str) and grader in GRADERS):
        return
    if not isinstance(grader, str) or not grader.startswith(JUDGE):
        allowed = f"{', '.join(GRADERS)}, {JUDGE}MODEL, or an object"
        raise ValueError(f"grader is {grader!r}; allowed are {allowed}")
    check_model_name(grader.removeprefix(JUDGE))


def open_grader(
    grader: str | Grader, *, cache: str | Path | None = None, reading: Reading = "chat", **options
) -> Grader:
    """Open a grader by name, of :data:`GRADERS` or ``"judge:MODEL"``; an open one is returned.
    MODEL and ``options`` are as in :func:`trustlab.open_model`. ``cache`` is the SQLite file of the
    judge's replies; the encoder keeps its vectors beside it. ``reading``: how replies are read.
    ``ValueError`` for an unknown name."""
    check_grader(grader)
    if not isinstance(grader, str):
        return grader
    if grader.startswith(JUDGE):
        model = open_model(grader.removeprefix(JUDGE), **options)
        return JudgeGrader(model, cache=cache, reading=reading)
    if grader == EncoderGrader.name and cache is not None:
        return EncoderGrader(Encoder(cache_path=Path(cache).with_name(VECTORS)))
    return GRADERS[grader]()
