"""Grades answers: 1, 0, or ungraded with a reason. A new grader stands in ``__init__.py``.

What is right, what is no diagnosis and where names come from: docs/python.md, with ``grader``. To
all but ``exact`` words of certainty and degree, accents, invisible characters, a possessive 's, a
leading "Diagnosis:" and words turned round change nothing, but "mild A" for "severe A" is wrong;
nor, in brackets at the end, an ICD-10 code, a share, the abbreviation or another true name; nor
does a finding, cause or complication behind a comma, or one wrong letter in a long word. A disease
is no syndrome, and more than 200 characters are no diagnosis.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
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
    has_listed_name,
    is_disease,
    is_named,
    verdict,
)
from trustlab.knowledge.substances import is_substance
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
    """What graders share: each distinct answer to the same names is graded once, by ``rule`` where
    it can tell; ``grade_rest`` grades the rest together."""

    knowledge: Knowledge | None = None
    is_judge = False

    def rule(self, answer: str | None, case: Case) -> Grade | None:
        """The grade, or ``None`` where it takes more than rules."""
        names, knowledge = self.names_of(case)
        return grade_by_rules(answer, names, knowledge, has_judge=self.is_judge)

    def grade_rest(
        self, rest: Mapping[Key, Case], times: Mapping[Key, int]
    ) -> dict[Key, Grade]:
        """A grade for each answer that the rules leave open, which comes so many ``times``."""
        raise NotImplementedError  # of those whose rules leave any

    def names_of(self, case: Case) -> tuple[tuple[str, ...], Knowledge]:
        """The true names, and the table that they are from."""
        knowledge = self.knowledge or load_knowledge()
        return names_of(case, knowledge), knowledge

    def grade(
        self, answers: Sequence[str | None], cases: Sequence[Case]
    ) -> list[Grade]:
        """As in :class:`Grader`; ``ValueError`` unless there are as many answers as cases."""
        if len(answers) != len(cases):
            received = f"{len(answers)} answers and {len(cases)} cases"
            raise ValueError(f"each answer needs its case; received {received}")
        keys = [
            Key(answer, case.diagnosis, tuple(case.accepted), case.question)
            for answer, case in zip(answers, cases, strict=True)
        ]
        case_of_key = dict(zip(keys, cases, strict=True))
        grades: dict[Key, Grade] = {}
        rest: dict[Key, Case] = {}
        for key, case in case_of_key.items():
            grade = self.rule(key.answer, case)
            if grade is None:
                rest[key] = case
            else:
                grades[key] = grade
        if rest:
            grades |= self.grade_rest(rest, Counter(keys))
        return [grades[key] for key in keys]


def _grade_of_kind(kind: str) -> Grade:
    """The grade of a verdict; one that is not right is ``other``."""
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
        if kind or has_listed_name(answer or "", knowledge):
            return _grade_of_kind(kind)
        return Grade(None, UNKNOWN)


def grade_by_rules(
    answer: str | None,
    names: Sequence[str],
    knowledge: Knowledge,
    has_judge: bool = False,
) -> Grade | None:
    """The grade of an answer by the rules alone; ``None`` where it takes a reader of meaning. One
    that only adds words to a true name is a judge's, where there is a judge."""
    kind = verdict(answer or "", names, knowledge)
    if answer is None or (no_diagnosis(answer, names) and kind not in RIGHT):
        return Grade(0)
    if has_judge and adds_words(answer, names) and not is_named(answer, names):
        return None
    return _grade_of_kind(kind) if kind else None


def unknown_truths_warning(grader: Grader, cases: Iterable[Case]) -> str:
    """What to say before a run whose truths its grader's rules mostly do not know, or ''."""
    if not isinstance(grader, SynonymGrader | EncoderGrader):
        return ""
    knowledge = grader.knowledge or load_knowledge()
    case_of_truth = {case.diagnosis: case for case in cases}
    n_unlisted = 0
    for case in case_of_truth.values():
        names = names_of(case, knowledge)
        n_unlisted += not any(
            is_disease(name, knowledge) or is_substance(name) for name in names
        )
    n_truths = len(case_of_truth)
    if 2 * n_unlisted <= n_truths:
        return ""
    return (
        f"{n_unlisted} of {n_truths} true diagnoses are in neither our lists nor"
        " ICD-10-CM: only answers in their very words are right; name a judge"
        " (grader='judge:MODEL')"
    )


def agreement_sentence(pairs: Iterable[tuple[int | None, float]], name: str) -> str:
    """How far the rules and the judge ``name`` agree, of pairs of what each calls right (1 or 0);
    ``None`` and NaN are not graded."""
    n_graded = 0
    n_same = 0
    n_judge_alone = 0
    for by_rules, by_judge in pairs:
        if by_rules is not None and not math.isnan(by_judge):
            n_graded += 1
            n_same += by_rules == by_judge
            n_judge_alone += by_judge > by_rules
    n_rules_alone = n_graded - n_same - n_judge_alone
    return (
        f"Rules and {name} agree on {n_same} of {n_graded} answers; {n_judge_alone} are right to"
        f" the judge alone, {n_rules_alone} to the rules alone."
    )


THRESHOLD = 0.80
DECIMALS = 3
"""Cosines are rounded to these before they are compared: they move by 1e-7 with the batch."""


@dataclass(frozen=True)
class EncoderGrader(ByRule):
    """An answer is right if its cosine with one of the true names is ``threshold`` or more. Cosines
    count where no rule (:func:`grade_by_rules`) decides, and only between names without a clash of
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

    def grade_rest(
        self, rest: Mapping[Key, Case], times: Mapping[Key, int]
    ) -> dict[Key, Grade]:
        """Grades by cosine; all distinct names are encoded together."""
        pairs_of_key: dict[Key, list[tuple[str, str]]] = {}
        for key, case in rest.items():
            answer = str(key.answer)
            names, _ = self.names_of(case)
            pairs_of_key[key] = []
            for name in comparable(answer, names):
                pairs_of_key[key].append((bare_name(answer), bare_name(name)))
        cosines = pair_cosines(self.encoder, chain.from_iterable(pairs_of_key.values()))
        grades = {}
        for key, pairs in pairs_of_key.items():
            best = max((cosines[pair] for pair in pairs), default=-1.0)
            is_right = round(best, DECIMALS) >= self.threshold
            grades[key] = Grade(int(is_right))
        return grades


MAX_TOKENS = 16
SHOWN = 60
"""Characters of an unreadable reply that its reason repeats."""


class JudgeGrader(ByRule):
    """An answer is right if a model says that it and the true diagnosis are one disease.

    - Each pair is asked about once, greedily, with the names (prompt ``judge``), not the patient.
    - Answers that the rules settle (:func:`grade_by_rules`) are not asked about.
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
        reading: Reading = "chat",
    ) -> None:
        self.model = (
            model if isinstance(model, CachedModel) else CachedModel(model, cache)
        )
        self.knowledge = knowledge
        self.reading: Reading = reading

    @property
    def name(self) -> str:
        """The grader's name in tables; it contains the model, since two judges are two graders."""
        return f"judge {self.model.name}"

    def grade_rest(
        self, rest: Mapping[Key, Case], times: Mapping[Key, int]
    ) -> dict[Key, Grade]:
        """The model's verdicts; all distinct questions are sent together."""
        prompts = prompts_of(self.model)
        requests: list[Request] = []
        names_of_key: dict[Key, tuple[str, ...]] = {}
        for key, case in rest.items():
            answer = str(key.answer)
            names, _ = self.names_of(case)
            names_of_key[key] = names
            request = judge_request(answer, names, prompts, case.question)
            about = About(case.dataset, case.case_id, None, times[key], answer)
            readers = both(_read_judgement, self.reading)
            requests.append(replace(request, about=about._replace(**readers)))
        grades: dict[Key, Grade] = {}
        replies = self.model.generate(requests)
        for key, own_replies in zip(rest, replies, strict=True):
            grade = _grade_by_reply(own_replies[0], self.reading)
            answer = str(key.answer)
            if grade.correct and adds_words(answer, names_of_key[key]):
                grade = replace(grade, kind=NARROWER)
            grades[key] = grade
        return grades


def judge_request(
    answer: str, names: Sequence[str], prompts: Prompts, asks: str = ""
) -> Request:
    """The question to a judge whether ``answer`` is what ``names`` name; what the case ``asks``."""
    messages = prompts.render(
        "judge", truth="\n".join(names), proposed=answer, asks=asks
    )
    return Request(messages, max_tokens=MAX_TOKENS, purpose="judge")


def _read_judgement(reply: Reply, reading: Reading) -> int:
    """1 or 0 as a judge replies; :class:`Unreadable` where it says neither."""
    grade = _grade_by_reply(reply, reading)
    if grade.correct is None:
        raise Unreadable(grade.missing)
    return grade.correct


def _grade_by_reply(reply: Reply, reading: Reading) -> Grade:
    """The grade that a judge's reply says, or why it says none."""
    reason = no_answer(reply)
    if reason:
        return Grade(None, f"the judge gave no reply: {reason}")
    is_same = true_or_false(reply.text, reading)
    if is_same is None:
        words = " ".join(str(reply.text).split())[:SHOWN]
        return Grade(
            None, f"the judge's reply is not the one word True or False: {words!r}"
        )
    return Grade(int(is_same))


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
    grader: str | Grader,
    *,
    cache: str | Path | None = None,
    reading: Reading = "chat",
    **options,
) -> Grader:
    """Open a grader by name, of :data:`GRADERS` or ``"judge:MODEL"``; an open one is returned.
    MODEL and ``options`` are as in :func:`trustlab.open_model`. ``cache`` is the SQLite file of the
    judge's replies; the encoder keeps its vectors beside it. ``reading``: how replies are read.
    ``ValueError`` for an unknown name, ``ImportError`` where a library is not installed."""
    check_grader(grader)
    if not isinstance(grader, str):
        return grader
    if grader.startswith(JUDGE):
        model = open_model(grader.removeprefix(JUDGE), **options)
        return JudgeGrader(model, cache=cache, reading=reading)
    if grader == EncoderGrader.name:
        vectors = None if cache is None else Path(cache).with_name(VECTORS)
        encoder = Encoder(cache_path=vectors)
        if encoder.lacks:
            raise ImportError(f"grader={grader!r}: {encoder.lacks}")
        return EncoderGrader(encoder)
    return GRADERS[grader]()
