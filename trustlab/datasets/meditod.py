"""MediTOD (Saley et al. 2024): annotated doctor-patient dialogues, told up to the doctor's diagnosis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from types import MappingProxyType

from trustlab.datasets.errors import MIN_STATEMENTS, DataError
from trustlab.datasets.giveaway import giveaway
from trustlab.datasets.meditod_files import Dialogue, Utterance, read_dialogues
from trustlab.datasets.reading import Read
from trustlab.datasets.whole_json import whole_json
from trustlab.knowledge import load_knowledge, normalise
from trustlab.records import Case, Statement

KEPT = frozenset(("inform", "inquire", "diagnosis"))
"""An utterance is shown if it has one of these intents."""
OTHERS = frozenset(("chit-chat", "nod_prompt_salutations", "nod_prompt", "salutations", "other", "differential"))
"""The other intents that are known, spelt as in the canonicalised and in the raw annotations."""
SPLITS = ("train", "valid", "test")
NO_DIAGNOSIS, SHORT = "no diagnosis", f"fewer than {MIN_STATEMENTS} statements before the diagnosis"
UNREAD = "dialogues of the repository's other, smaller file, not read"
SPOKEN = "exchanges that speak the diagnosis, left out"
UNKNOWN, SEVERAL = "utterances with an unknown intent", "dialogues whose last diagnosis names several diseases"


def read(path: Path | None = None, seed: int = 0, split: str | None = None) -> Read:
    """The dialogues of ``path`` as cases, in file order; ``split`` picks train, valid or test. ``seed`` changes nothing.

    ``path`` is the repository, its ``data`` or ``raw_data`` folder, or a file of dialogues; :mod:`meditod_files` tells which
    forms are read. A statement is one exchange: what the doctor says, and what the patient says after it. Of both, the
    utterances with an intent in :data:`KEPT` are shown, and exchanges without one are left out.

    The diagnosis is the disease of the doctor's last diagnosis. It is accepted, and so is every name that the knowledge
    table has for it. Where several diseases are named at once, the first is the diagnosis and the others, which are not
    accepted, are in ``Case.patient["also_named"]``. Nothing is shown from that utterance on, nor any exchange before it that
    gives the diagnosis away: by its words (:func:`giveaway.giveaway`, which says what it cannot see), or since an utterance
    in it is annotated as a diagnosis that names the same disease, or rules it out. Those are counted. Dialogues without a
    diagnosis, or with 10 statements or fewer, are dropped. The case is called ``meditod-ID``; ``Case.patient["split"]`` is
    there where known.

    Raises ``ValueError`` where there is no file or no such split, and :class:`DataError` for what breaks the format.
    """
    if split is not None and split not in SPLITS:
        raise ValueError(f"split is {split!r}; allowed are {', '.join(SPLITS)}, or None for all")
    file, dialogues, n_unread = read_dialogues(path)
    splits = _splits(file, {dialogue.id for dialogue in dialogues})
    if split is not None and split not in splits.values():
        raise ValueError(f"split is {split!r}, but {file.parent} has no {split}_ids.json with an id in it")
    chosen = [d for d in dialogues if split is None or splits.get(d.id) == split]
    dropped: dict[str, list[str]] = {}
    facts: Counter[str] = Counter({SPOKEN: 0, SEVERAL: 0, UNKNOWN: 0})
    cases: list[Case] = []
    for dialogue in chosen:
        facts[UNKNOWN] += sum(bool(set(u.intents) - KEPT - OTHERS) for u in dialogue.utterances)
        at = last_diagnosis(dialogue.utterances)
        if at is None:
            dropped.setdefault(NO_DIAGNOSIS, []).append(dialogue.id)
            continue
        case, n_spoken = _case(dialogue, at, splits.get(dialogue.id))
        if len(case.statements) < MIN_STATEMENTS:
            dropped.setdefault(SHORT, []).append(dialogue.id)
            continue
        cases.append(case)
        facts[SPOKEN] += n_spoken
        facts[SEVERAL] += "also_named" in case.patient
    if n_unread:
        facts[UNREAD] = n_unread
    return Read(cases, len(chosen), dropped, dict(facts))


def last_diagnosis(utterances: Sequence[Utterance]) -> int | None:
    """Where the last utterance stands that names a disease as the diagnosis; ``None`` where none does."""
    return max((i for i, utterance in enumerate(utterances) if utterance.diseases), default=None)


@dataclass(frozen=True)
class Exchange:
    """A run of the doctor's utterances and the patient's run after it; either may be empty."""

    doctor: tuple[Utterance, ...]
    patient: tuple[Utterance, ...]

    @property
    def text(self) -> str:
        """What is said, a line for each who says anything."""
        said = (("Doctor", self.doctor), ("Patient", self.patient))
        return "\n".join(f"{who}: {' '.join(u.text for u in run)}" for who, run in said if run)

    @property
    def diagnoses(self) -> frozenset[str]:
        """The diseases, normalised, that a diagnosis in it names or rules out."""
        return frozenset(normalise(name) for u in (*self.doctor, *self.patient) for name in (*u.diseases, *u.ruled_out))


def exchanges(utterances: Sequence[Utterance], end: int) -> Iterator[Exchange]:
    """The exchanges of a whole dialogue, of which the kept utterances before position ``end`` are left.

    They are formed before anything is left out, so that an answer is not joined to a question that it did not answer.
    """

    def shown(run: Sequence[tuple[int, Utterance]]) -> tuple[Utterance, ...]:
        return tuple(u for i, u in run if i < end and u.text and KEPT & set(u.intents))

    doctor: list[tuple[int, Utterance]] = []
    for speaker, group in groupby(enumerate(utterances), key=lambda pair: pair[1].speaker):
        run = list(group)
        if speaker == "patient":
            yield Exchange(shown(doctor), shown(run))
            run = []
        doctor = run
    yield Exchange(shown(doctor), ())


def _case(dialogue: Dialogue, at: int, split: str | None) -> tuple[Case, int]:
    """The case of ``dialogue``, however short, and how many exchanges were left out since they speak the diagnosis."""
    gold, *others = dialogue.utterances[at].diseases
    condition = load_knowledge().condition_named(gold)
    accepted = tuple(dict.fromkeys((gold, *(condition.names if condition else ()))))
    given_away = giveaway(accepted, dialogue.utterances[at].text)
    known = {normalise(name) for name in accepted}
    told = [exchange for exchange in exchanges(dialogue.utterances, at) if exchange.text]
    silent = [one.text for one in told if not (one.diagnoses & known or given_away.heard_in(one.text))]
    patient: dict[str, object] = {"split": split} if split else {}
    if others:
        patient["also_named"] = tuple(others)
    case = Case(
        case_id=f"meditod-{dialogue.id}",
        dataset="meditod",
        statements=tuple(map(Statement, silent)),
        diagnosis=gold,
        accepted=accepted,
        patient=patient,
    )
    return case, len(told) - len(silent)


def _splits(file: Path, known: set[str]) -> Mapping[str, str]:
    """Dialogue id -> split, from the lists of ids beside ``file``; an id may be in one list only."""
    found: dict[str, str] = {}
    for split in SPLITS:
        source = file.parent / f"{split}_ids.json"
        if not source.is_file():
            continue
        ids = whole_json(source)
        if not isinstance(ids, list) or not all(isinstance(i, str | int) and not isinstance(i, bool) for i in ids):
            raise DataError(source, None, "ids", ids, "a list of dialogue ids")
        for one in map(str, ids):
            if one not in known:
                raise DataError(source, None, "id", one, f"an id that a dialogue of {file.name} has")
            if one in found:
                raise DataError(source, None, "id", one, f"an id that is listed once ({found[one]}_ids.json lists it)")
            found[one] = split
    return MappingProxyType(found)
