"""Reads MediTOD's dialogues."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, model_validator

from trustlab.agents.giveaway import giveaway
from trustlab.choices import utf8
from trustlab.datasets.cases_file import MIN_STATEMENTS, Read, Row, Text, allowed, checked, of_kind
from trustlab.knowledge import load_knowledge
from trustlab.records import Case, Statement, normalise
from trustlab.tables import DataError, whole_json, within

NEEDED = (
    "the MediTOD repository (dair-iitd/MediTOD), its data or raw_data folder, or a JSON file of its"
    " dialogues"
)
FILES = ("dialogs.json", "data/dialogs.json", "raw_data/dialogs.json")
ANNOTATIONS = ("annotations.json", "../annotations/{stem}_annotations.json")
"""Where the annotations of a raw file of dialogues may be, from its folder."""
SPEAKERS, NOBODY = ("doctor", "patient"), "control"
"""Who speaks. An utterance of ``control`` holds notes of the labelling tool; nobody says it."""
NOTE, NO_NAME = "differential", frozenset(("other", "unknown", ""))
"""The intent of such a note, and values that name no disease."""
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
UNKNOWN = "utterances with an unknown intent"
SEVERAL = "dialogues whose last diagnosis names several diseases"
_PICKS = re.compile(r",(?! )")  # the labelling tool joins several picks by a comma without a space


@dataclass(frozen=True)
class Utterance:
    """What one of the two says. ``diseases``: those of the last diagnosis in it first, then of
    those before; ``ruled_out``: those that a diagnosis in it names with the status No."""

    speaker: str
    text: str
    intents: tuple[str, ...] = ()
    diseases: tuple[str, ...] = ()
    ruled_out: tuple[str, ...] = ()


Dialogues = dict[str, list[Utterance]]  # id -> the utterances in their order


def _names_disease(value: str) -> bool:
    picks = [pick for pick in _PICKS.split(value) if pick.strip()]
    return utf8(value) and bool(picks) and all(map(normalise, picks))


Disease = Annotated[str, allowed("the name of a disease", _names_disease)]
Objects = of_kind("a list of objects", list)


class _Diagnosis(Row):
    """What has details only where it is a diagnosis; elsewhere they are not looked at."""

    @model_validator(mode="before")
    @classmethod
    def _details(cls, entry: Any) -> Any:
        if not isinstance(entry, dict) or "diagnosis" in (entry.get("action"), entry.get("intent")):
            return entry
        return {name: entry[name] for name in ("action", "intent") if name in entry}


class _Named(Row):
    """``status`` No says that this is not the diagnosis; Yes, Maybe and none that it may be."""

    value: Disease
    status: str = ""


class _Action(_Diagnosis):
    action: Text
    status: str = ""
    disease: list[_Named] = []


class _Entry(_Diagnosis):
    intent: Text
    status: str = ""
    value: Disease = ""


class _Spoken(Row):
    speaker: Annotated[
        str, allowed(" or ".join(SPEAKERS), lambda one: one.strip().lower() in (*SPEAKERS, NOBODY))
    ]
    text: Annotated[str, allowed("a str", utf8)]
    uttr_id: Annotated[int | str, allowed("a number, or text that is not empty", str)]
    nlu: Annotated[list[_Entry], Objects] = []
    actions: Annotated[list[_Action], Objects] = []


class _Dialogue(Row):
    utterances: Annotated[list[dict[str, Any]], Field(min_length=1)]


def read(path: Path, seed: int = 0, split: str | None = None) -> Read:
    """The dialogues of ``path`` as cases, in file order; ``split``: train, valid or test alone.
    What ``path`` may be, how a dialogue becomes a case and what is left out: the card in
    data/README.md. Of a repository's two forms the canonicalised one is read where both have as
    many dialogues. Exchanges that give the diagnosis away are counted; dropped are dialogues
    without a diagnosis, or with 10 statements or fewer. ``ValueError``: no file, no such split.
    :class:`DataError`: a bad file. ``seed``: not used."""
    if split is not None and split not in SPLITS:
        raise ValueError(f"split is {split!r}; allowed are {', '.join(SPLITS)}, or None for all")
    file, dialogues, n_unread = _largest(path)
    splits = _splits(file, set(dialogues))
    if split is not None and split not in splits.values():
        without = f"{file.parent} has no {split}_ids.json with an id in it"
        raise ValueError(f"split is {split!r}, but {without}")
    chosen = {i: us for i, us in dialogues.items() if split is None or splits.get(i) == split}
    dropped: defaultdict[str, list[str]] = defaultdict(list)
    facts: Counter[str] = Counter({SPOKEN: 0, SEVERAL: 0, UNKNOWN: 0})
    cases: list[Case] = []
    for own_id, utterances in chosen.items():
        facts[UNKNOWN] += sum(bool(set(u.intents) - KEPT - OTHERS) for u in utterances)
        at = max((i for i, utterance in enumerate(utterances) if utterance.diseases), default=None)
        if at is None:
            dropped[NO_DIAGNOSIS].append(own_id)
            continue
        case, n_spoken = _case(own_id, utterances, at, splits.get(own_id))
        if len(case.statements) < MIN_STATEMENTS:
            dropped[SHORT].append(own_id)
            continue
        cases.append(case)
        facts[SPOKEN] += n_spoken
        facts[SEVERAL] += "also_named" in case.patient
    if n_unread:
        facts[UNREAD] = n_unread
    return Read(cases, len(chosen), dict(dropped), dict(facts))


def _case(
    own_id: str, utterances: Sequence[Utterance], at: int, split: str | None
) -> tuple[Case, int]:
    """The case, however short, and how many exchanges were left out: they speak the diagnosis."""
    gold, *others = utterances[at].diseases
    accepted = load_knowledge().names_for(gold)
    given_away = giveaway(accepted, utterances[at].text)
    known = {normalise(name) for name in accepted}
    statements, n_spoken = [], 0
    for exchange in _exchanges(utterances, at):
        said = ((who, [u.text for u in exchange if u.speaker == who]) for who in SPEAKERS)
        text = "\n".join(f"{who.capitalize()}: {' '.join(texts)}" for who, texts in said if texts)
        named = {normalise(name) for u in exchange for name in (*u.diseases, *u.ruled_out)}
        if named & known or given_away.heard_in(text):
            n_spoken += 1
        else:
            statements.append(Statement(text))
    patient: dict[str, object] = {"split": split} if split else {}
    if others:
        patient["also_named"] = tuple(others)
    case = Case(f"meditod-{own_id}", "meditod", tuple(statements), gold, accepted, patient)
    return case, n_spoken


def _exchanges(utterances: Sequence[Utterance], end: int) -> list[list[Utterance]]:
    """Of each exchange the utterances to show, which come before position ``end``.
    They are formed before anything is left out, so that an answer is not joined to a question that
    it did not answer."""
    found: list[list[Utterance]] = [[]]
    speaker = ""
    for i, utterance in enumerate(utterances):
        if (speaker, utterance.speaker) == ("patient", "doctor"):
            found.append([])
        speaker = utterance.speaker
        if i < end and utterance.text and KEPT & set(utterance.intents):
            found[-1].append(utterance)
    return [exchange for exchange in found if exchange]


def _largest(path: Path) -> tuple[Path, Dialogues, int]:
    """The file that ``path`` means, its dialogues, and how many another file has."""
    files = [path] if path.is_file() else [path / name for name in FILES if (path / name).is_file()]
    if not files:
        what = f"the folder {str(path)!r}, without a dialogs.json"
        raise ValueError(f"path is {what}; allowed is {NEEDED}")
    first, *rest = sorted(((f, _dialogues(f)) for f in files), key=lambda pair: -len(pair[1]))
    return *first, sum(len(dialogues) for _, dialogues in rest)


def _dialogues(file: Path) -> Dialogues:
    value: Any = whole_json(file)
    if isinstance(value, dict) and isinstance(value.get("utterances"), list):
        value = {str(value.get("dlg_id", file.stem)): value}  # one, as the labelling tool has it
    if not isinstance(value, dict) or not value:
        raise DataError(file, None, "JSON", value, "dialogues by id, at least one")
    raw = {
        key: checked(_Dialogue, dialogue, within(file, f"dialogue {key}")).utterances
        for key, dialogue in value.items()
    }
    own = any("actions" in u or "nlu" in u for utterances in raw.values() for u in utterances)
    source, entries = (file, {}) if own else _annotations(file, list(raw))
    found: Dialogues = {}
    for key, utterances in raw.items():
        numbers: list[str] = []
        every: list[_Spoken] = []
        for position, utterance in enumerate(utterances):
            place = within(file, f"dialogue {key}, utterance {position}")
            every.append(checked(_Spoken, utterance, place))
            numbers.append(str(every[-1].uttr_id))
            if numbers[-1] in numbers[:-1]:
                raise place("uttr_id", numbers[-1], "a number that no earlier one has")
        own_entries = [] if entries.get(key) is None else entries[key]
        noted = _by_utterance(source, f"dialogue {key}", numbers, own_entries)
        told = [_utterance(u, noted[n]) for u, n in zip(every, numbers, strict=True)]
        found[key] = [utterance for utterance in told if utterance.speaker != NOBODY]
    return found


def _utterance(spoken: _Spoken, entries: Sequence[_Entry]) -> Utterance:
    """The utterance, with the ``entries`` of a raw file: one diagnosis together, since that format
    has no actions that could part them."""
    picks = [(pick, e.status) for e in entries for pick in _PICKS.split(e.value) if pick.strip()]
    noted = [_Named(value=pick, status=status) for pick, status in picks]
    diseases: list[str] = []
    ruled_out: list[str] = []
    for action in [*spoken.actions, _Action(action="diagnosis", disease=noted)]:
        here: dict[bool, list[str]] = {False: [], True: []}
        for one in action.disease:
            here["no" in (action.status.strip().lower(), one.status.strip().lower())] += [one.value]
        diseases, ruled_out = here[False] + diseases, ruled_out + here[True]
    return Utterance(
        spoken.speaker.strip().lower(),
        " ".join(spoken.text.split()),
        (*(e.intent for e in (*spoken.nlu, *entries)), *(a.action for a in spoken.actions)),
        _distinct(diseases),
        _distinct(ruled_out),
    )


def _distinct(diseases: list[str]) -> tuple[str, ...]:
    names = (" ".join(name.split()) for name in diseases)
    return tuple(dict.fromkeys(name for name in names if name.lower() not in NO_NAME))


def _annotations(file: Path, keys: list[str]) -> tuple[Path, Mapping[str, Any]]:
    """The file of annotations for the raw dialogues of ``file``, and what it holds, by dialogue."""
    places = [file.parent / name.format(stem=file.stem) for name in ANNOTATIONS]
    source = next((place for place in places if place.is_file()), None)
    if source is None:
        needed = f"those, or {ANNOTATIONS[0]} beside the file"
        raise DataError(file, None, "utterances", "no actions and no nlu in any", needed)
    value = whole_json(source)
    if isinstance(value, list) and len(keys) == 1:
        value = {keys[0]: value}
    if not isinstance(value, dict):
        raise DataError(source, None, "JSON", value, "annotations by dialogue id")
    if not set(value) & set(keys):
        known = f"those of {file.name}, {', '.join(keys[:5])}, ..."
        raise DataError(source, None, "dialogue ids", list(value)[:5], known)
    return source, value


def _by_utterance(
    source: Path, place: str, numbers: list[str], entries: Any
) -> Mapping[str, list[_Entry]]:
    """The entries of each utterance, by its ``uttr_id``."""
    if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
        raise DataError(source, None, place, entries, "a list of objects")
    found: dict[str, list[_Entry]] = defaultdict(list)
    for entry in entries:
        uid = entry.get("uid")
        if entry.get("intent") == NOTE:
            continue
        if type(uid) not in (int, str) or str(uid) not in numbers:
            raise DataError(source, None, f"{place}, uid", uid, "the uttr_id of an utterance")
        found[str(uid)].append(checked(_Entry, entry, within(source, f"{place}, uid {uid}")))
    return found


def _splits(file: Path, known: set[str]) -> dict[str, str]:
    """Dialogue id -> split, from the lists of ids beside ``file``; each in one list only."""
    found: dict[str, str] = {}
    for split in SPLITS:
        source = file.parent / f"{split}_ids.json"
        ids = whole_json(source) if source.is_file() else []
        if not isinstance(ids, list) or not all(type(one) in (int, str) for one in ids):
            raise DataError(source, None, "ids", ids, "a list of dialogue ids")
        for one in map(str, ids):
            needed = f"an id that a dialogue of {file.name} has"
            if one in found:
                needed = f"an id that is listed once ({found[one]}_ids.json lists it)"
            if one in found or one not in known:
                raise DataError(source, None, "id", one, needed)
            found[one] = split
    return found
