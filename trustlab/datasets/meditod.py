"""MediTOD: dialogues from its files as cases."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from types import MappingProxyType

from trustlab.choices import utf8
from trustlab.datasets.cases_file import MIN_STATEMENTS, DataError, Read, whole_json
from trustlab.datasets.giveaway import giveaway
from trustlab.knowledge import load_knowledge
from trustlab.records import Case, Statement, normalise

NEEDED = (
    "the MediTOD repository (dair-iitd/MediTOD), its data or raw_data folder, or a JSON file of its"
    " dialogues"
)
SPEAKERS, NOBODY = ("doctor", "patient"), "control"
"""Who speaks. An utterance of ``control`` is a place for notes of the labelling tool, which nobody
says."""
NOTE, NO_NAME = "differential", frozenset(("other", "unknown"))
"""The intent of such a note, and values that name no disease."""
FILES = ("dialogs.json", "data/dialogs.json", "raw_data/dialogs.json")
ANNOTATIONS = (
    "annotations.json",
    "../annotations/{stem}_annotations.json",
    "{stem}_annotations.json",
)
"""Where the annotations of a raw file of dialogues may be, from its folder."""


@dataclass(frozen=True)
class Utterance:
    """What one of the two says: ``diseases`` are those of the last diagnosis in it first, then of
    those before.

    ``ruled_out``: those that a diagnosis in it names with the status No.
    """

    speaker: str
    text: str
    intents: tuple[str, ...] = ()
    diseases: tuple[str, ...] = ()
    ruled_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class Dialogue:
    """A dialogue in the order it was held."""

    id: str
    utterances: tuple[Utterance, ...]


class _At:
    """Makes the error for a place in a file: ``at("field")(value, allowed)``."""

    def __init__(self, file: Path, *place: str):
        self.file, self.place = file, place

    def __truediv__(self, part: str) -> _At:
        return _At(self.file, *self.place, part)

    def error(self, value: object, allowed: str) -> DataError:
        return DataError(self.file, None, ", ".join(self.place), value, allowed)


def read_dialogues(path: Path | None) -> tuple[Path, list[Dialogue], int]:
    """The file of dialogues that ``path`` means, its dialogues, annotated, in file order, and how
    many the other file has.

    A repository has both forms, and its public canonicalised file holds 3 dialogues alone: the file
    with more is read, the canonicalised one where they are equal. Raises ``ValueError`` where there
    is none, :class:`DataError` for a bad one.
    """
    if path is None or not path.exists():
        raise ValueError(f"path is {None if path is None else str(path)!r}; allowed is {NEEDED}")
    files = [path] if path.is_file() else [path / name for name in FILES if (path / name).is_file()]
    if not files:
        raise ValueError(
            f"path is the folder {str(path)!r}, without a dialogs.json; allowed is {NEEDED}"
        )
    read = sorted(((file, _dialogues(file)) for file in files), key=lambda pair: -len(pair[1]))
    return *read[0], sum(len(dialogues) for _, dialogues in read[1:])


def _dialogues(file: Path) -> list[Dialogue]:
    raw = dict(_by_id(file, whole_json(file)))
    if not raw:
        raise DataError(file, None, "dialogues", 0, "at least one dialogue")
    if any("actions" in u or "nlu" in u for utterances in raw.values() for u in utterances):
        return [
            _dialogue(key, [_canonical(_place(file, key, u), u) for u in us])
            for key, us in raw.items()
        ]
    source, entries = _annotations(file, list(raw))
    return [
        _annotated(file, key, utterances, source, entries.get(key, []))
        for key, utterances in raw.items()
    ]


def _dialogue(key: str, utterances: list[Utterance]) -> Dialogue:
    return Dialogue(key, tuple(u for u in utterances if u.speaker != NOBODY))


def _by_id(file: Path, value: object) -> Iterator[tuple[str, list[dict]]]:
    """(id, utterances as they stand) of every dialogue in one of the forms above."""
    if isinstance(value, dict) and isinstance(value.get("utterances"), list):
        value = [value]
    if isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, list):
        pairs = [
            (_own_id(file, i, dialogue, alone=len(value) == 1), dialogue)
            for i, dialogue in enumerate(value, 1)
        ]
    else:
        raise DataError(file, None, "JSON", value, "dialogues by id, a list of them, or one")
    seen: set[str] = set()
    for key, dialogue in pairs:
        at = _At(file, f"dialogue {key}")
        if key in seen:
            raise at.error(key, "an id that no earlier dialogue has")
        seen.add(key)
        utterances = dialogue.get("utterances") if isinstance(dialogue, dict) else dialogue
        if not isinstance(utterances, list) or not utterances:
            raise (at / "utterances").error(utterances, "a list of utterances that is not empty")
        numbers: set[str] = set()
        for position, utterance in enumerate(utterances):
            here = at / f"utterance {position}"
            if not isinstance(utterance, dict):
                raise here.error(utterance, "an object with speaker and text")
            number = utterance.setdefault("uttr_id", position)
            if (
                not isinstance(number, str | int)
                or isinstance(number, bool)
                or str(number) in numbers
            ):
                raise (here / "uttr_id").error(number, "a number that no earlier utterance has")
            numbers.add(str(number))
        yield key, utterances


def _own_id(file: Path, position: int, dialogue: object, alone: bool) -> str:
    found = (
        dialogue.get("dlg_id", file.stem if alone else None) if isinstance(dialogue, dict) else None
    )
    if not isinstance(found, str | int) or isinstance(found, bool) or not str(found):
        raise DataError(
            file, None, f"dialogue {position}", dialogue, "an object with dlg_id and utterances"
        )
    return str(found)


def _place(file: Path, key: str, utterance: Mapping) -> _At:
    return _At(file, f"dialogue {key}", f"utterance {utterance['uttr_id']}")


def _spoken(at: _At, utterance: dict) -> Utterance:
    speaker, text = utterance.get("speaker"), utterance.get("text")
    if not isinstance(speaker, str) or speaker.strip().lower() not in (*SPEAKERS, NOBODY):
        raise (at / "speaker").error(speaker, " or ".join(SPEAKERS))
    if not isinstance(text, str) or not utf8(text):
        raise (at / "text").error(text, "a str")
    return Utterance(speaker.strip().lower(), " ".join(text.split()))


def _objects(at: _At, value: object) -> list[dict]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise at.error(value, "a list of objects")
    return value


def _intent(at: _At, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise at.error(value, "the name of an intent")
    return value


def _name(at: _At, value: object) -> str:
    if not isinstance(value, str) or not normalise(value) or not utf8(value):
        raise at.error(value, "the name of a disease")
    return " ".join(value.split())


def _named(diseases: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in diseases if name.lower() not in NO_NAME))


def _ruled_out(at: _At, entry: Mapping) -> bool:
    """Whether the entry says that this is not the diagnosis; Yes, Maybe and no status at all say
    that it may be."""
    status = entry.get("status", "")
    if not isinstance(status, str):
        raise (at / "status").error(status, "Yes, No or Maybe")
    return status.strip().lower() == "no"


# -- canonicalised
# --------------------------------------------------------------------------------------------------


def _canonical(at: _At, utterance: dict) -> Utterance:
    intents = [
        _intent(at / "nlu.intent", entry.get("intent"))
        for entry in _objects(at / "nlu", utterance.get("nlu", []))
    ]
    diseases: list[str] = []
    ruled_out: list[str] = []
    for action in _objects(at / "actions", utterance.get("actions", [])):
        intents.append(_intent(at / "actions.action", action.get("action")))
        if intents[-1] != "diagnosis":
            continue
        none = _ruled_out(at / "actions", action)
        here: dict[bool, list[str]] = {False: [], True: []}
        for one in _objects(at / "actions.disease", action.get("disease", [])):
            no = _ruled_out(at / "actions.disease", one) or none
            here[no].append(_name(at / "actions.disease.value", one.get("value")))
        diseases = here[False] + diseases
        ruled_out += here[True]
    spoken = _spoken(at, utterance)
    return replace(
        spoken, intents=tuple(intents), diseases=_named(diseases), ruled_out=_named(ruled_out)
    )


# -- raw
# --------------------------------------------------------------------------------------------------


def _annotations(file: Path, keys: list[str]) -> tuple[Path, Mapping[str, object]]:
    """The file of annotations for the raw dialogues of ``file``, and what it holds, by dialogue."""
    places = [file.parent / name.format(stem=file.stem) for name in ANNOTATIONS]
    source = next((place for place in places if place.is_file()), None)
    if source is None:
        raise DataError(
            file,
            None,
            "utterances",
            "no actions and no nlu in any",
            f"those, or {ANNOTATIONS[0]} beside the file",
        )
    value = whole_json(source)
    if isinstance(value, list) and len(keys) == 1:
        value = {keys[0]: value}
    if not isinstance(value, dict):
        raise DataError(source, None, "JSON", value, "annotations by dialogue id")
    if not set(value) & set(keys):
        raise DataError(
            source,
            None,
            "dialogue ids",
            list(value)[:5],
            f"those of {file.name}, {', '.join(keys[:5])}, ...",
        )
    return source, value


def _annotated(
    file: Path, key: str, utterances: list[dict], source: Path, entries: object
) -> Dialogue:
    at = _At(source, f"dialogue {key}")
    of = _by_utterance(at, [str(u["uttr_id"]) for u in utterances], entries)
    return _dialogue(key, [_raw(file, key, u, at, of[str(u["uttr_id"])]) for u in utterances])


def _by_utterance(at: _At, numbers: list[str], entries: object) -> Mapping[str, list[dict]]:
    """The entries of each utterance, by its ``uttr_id``."""
    if isinstance(entries, dict):
        pairs = [
            (uid, entry)
            for uid, some in entries.items()
            for entry in _objects(at / f"uid {uid}", some)
        ]
    elif isinstance(entries, list) and entries and all(isinstance(some, list) for some in entries):
        if len(entries) > len(numbers):
            raise at.error(
                f"{len(entries)} lists",
                f"a list of entries for each of the {len(numbers)} utterances",
            )
        pairs = [
            (entry.get("uid", numbers[i]), entry)
            for i, some in enumerate(entries)
            for entry in _objects(at / f"utterance {i}", some)
        ]
    else:
        pairs = [(entry.get("uid"), entry) for entry in _objects(at, entries)]
    found: dict[str, list[dict]] = defaultdict(list)
    for uid, entry in pairs:
        if entry.get("intent") == NOTE:
            continue
        if not isinstance(uid, str | int) or isinstance(uid, bool) or str(uid) not in numbers:
            raise (at / "uid").error(uid, "the uttr_id of an utterance")
        found[str(uid)].append(entry)
    return found


def _raw(file: Path, key: str, utterance: dict, at: _At, entries: list[dict]) -> Utterance:
    """The utterance with its entries. They are one diagnosis together: this format has no actions
    that could part them."""
    here = at / f"uid {utterance['uttr_id']}"
    intents = tuple(_intent(here / "intent", entry.get("intent")) for entry in entries)
    found: dict[bool, list[str]] = {False: [], True: []}
    for entry in entries:
        if entry["intent"] == "diagnosis" and "value" in entry:
            # The labelling tool joins several picks by a comma without a space.
            picks = re.split(r",(?! )", _name(here / "value", entry["value"]))
            found[_ruled_out(here, entry)] += [
                _name(here / "value", one) for one in picks if one.strip()
            ]
    spoken = _spoken(_place(file, key, utterance), utterance)
    return replace(
        spoken, intents=intents, diseases=_named(found[False]), ruled_out=_named(found[True])
    )


KEPT = frozenset(("inform", "inquire", "diagnosis"))
"""An utterance is shown if it has one of these intents."""
OTHERS = frozenset(
    ("chit-chat", "nod_prompt_salutations", "nod_prompt", "salutations", "other", "differential")
)
"""The other intents that are known, spelt as in the canonicalised and in the raw annotations."""
SPLITS = ("train", "valid", "test")
NO_DIAGNOSIS, SHORT = "no diagnosis", f"fewer than {MIN_STATEMENTS} statements before the diagnosis"
UNREAD = "dialogues of the repository's other, smaller file, not read"
SPOKEN = "exchanges that speak the diagnosis, left out"
UNKNOWN, SEVERAL = (
    "utterances with an unknown intent",
    "dialogues whose last diagnosis names several diseases",
)


def read(path: Path | None = None, seed: int = 0, split: str | None = None) -> Read:
    """The dialogues of ``path`` as cases, in file order; ``split`` picks train, valid or test.
    ``seed`` changes nothing.

    ``path`` is the repository, its ``data`` or ``raw_data`` folder, or a file of dialogues;
    :func:`read_dialogues` tells which forms are read. A statement is one exchange: what the doctor
    says, and what the patient says after it. Of both, the utterances with an intent in :data:`KEPT`
    are shown, and exchanges without one are left out.

    The diagnosis is the disease of the doctor's last diagnosis. It is accepted, and so is every
    name that the knowledge table has for it. Where several diseases are named at once, the first is
    the diagnosis and the others, which are not accepted, are in ``Case.patient["also_named"]``.
    Nothing is shown from that utterance on, nor any exchange before it that gives the diagnosis
    away: by its words (:func:`~trustlab.datasets.giveaway.giveaway`, which says what it cannot
    see), or since an utterance in it is annotated as a diagnosis that names the same disease, or
    rules it out. Those are counted. Dialogues without a diagnosis, or with 10 statements or fewer,
    are dropped. The case is called ``meditod-ID``; ``Case.patient["split"]`` is there where known.

    Raises ``ValueError`` where there is no file or no such split, and :class:`DataError` for what
    breaks the format.
    """
    if split is not None and split not in SPLITS:
        raise ValueError(f"split is {split!r}; allowed are {', '.join(SPLITS)}, or None for all")
    file, dialogues, n_unread = read_dialogues(path)
    splits = _splits(file, {dialogue.id for dialogue in dialogues})
    if split is not None and split not in splits.values():
        raise ValueError(
            f"split is {split!r}, but {file.parent} has no {split}_ids.json with an id in it"
        )
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
    """Where the last utterance stands that names a disease as the diagnosis; ``None`` where none
    does."""
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
        return frozenset(
            normalise(name)
            for u in (*self.doctor, *self.patient)
            for name in (*u.diseases, *u.ruled_out)
        )


def exchanges(utterances: Sequence[Utterance], end: int) -> Iterator[Exchange]:
    """The exchanges of a whole dialogue, of which the kept utterances before position ``end`` are
    left.

    They are formed before anything is left out, so that an answer is not joined to a question that
    it did not answer.
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
    """The case of ``dialogue``, however short, and how many exchanges were left out since they
    speak the diagnosis."""
    gold, *others = dialogue.utterances[at].diseases
    condition = load_knowledge().condition_named(gold)
    accepted = tuple(dict.fromkeys((gold, *(condition.names if condition else ()))))
    given_away = giveaway(accepted, dialogue.utterances[at].text)
    known = {normalise(name) for name in accepted}
    told = [exchange for exchange in exchanges(dialogue.utterances, at) if exchange.text]
    silent = [
        one.text for one in told if not (one.diagnoses & known or given_away.heard_in(one.text))
    ]
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
    """Dialogue id -> split, from the lists of ids beside ``file``; an id may be in one list
    only."""
    found: dict[str, str] = {}
    for split in SPLITS:
        source = file.parent / f"{split}_ids.json"
        if not source.is_file():
            continue
        ids = whole_json(source)
        if not isinstance(ids, list) or not all(
            isinstance(i, str | int) and not isinstance(i, bool) for i in ids
        ):
            raise DataError(source, None, "ids", ids, "a list of dialogue ids")
        for one in map(str, ids):
            if one not in known:
                raise DataError(
                    source, None, "id", one, f"an id that a dialogue of {file.name} has"
                )
            if one in found:
                raise DataError(
                    source,
                    None,
                    "id",
                    one,
                    f"an id that is listed once ({found[one]}_ids.json lists it)",
                )
            found[one] = split
    return MappingProxyType(found)
