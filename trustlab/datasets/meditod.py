"""Reads MediTOD's dialogues."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, model_validator

from trustlab.choices import utf8
from trustlab.datasets.cases_file import MIN_STATEMENTS, Read, Row, Text, allowed, checked
from trustlab.knowledge.findings import load_knowledge
from trustlab.knowledge.giveaway import giveaway
from trustlab.records import Case, Statement, normalise
from trustlab.tables import DataError, whole_json, within

NEEDED = "the MediTOD repository (dair-iitd/MediTOD), its data folder, or its data/dialogs.json"
FILES = ("dialogs.json", "data/dialogs.json")
SPEAKERS = ("doctor", "patient")
NO_NAME = frozenset(("other", "unknown"))
"""Values that name no disease."""
KEPT = frozenset(("inform", "inquire", "diagnosis"))
"""An utterance is shown if it has one of these intents."""
OTHERS = frozenset(("chit-chat", "nod_prompt_salutations", "other"))
"""The other intents that are known."""
SPLITS = ("train", "valid", "test")
NO_DIAGNOSIS, SHORT = "no diagnosis", f"fewer than {MIN_STATEMENTS} statements before the diagnosis"
SPOKEN = "exchanges that speak the diagnosis, left out"
UNKNOWN = "utterances with an unknown intent"
SEVERAL = "dialogues whose last diagnosis names several diseases"


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
    return utf8(value) and normalise(value) != ""


Disease = Annotated[str, allowed("the name of a disease", _names_disease)]


class _Named(Row):
    """``status`` No says that this is not the diagnosis."""

    value: Disease
    status: str = ""


class _Action(Row):
    """It has details only where it is a diagnosis; elsewhere they are not looked at."""

    action: Text
    status: str = ""
    disease: list[_Named] = []

    @model_validator(mode="before")
    @classmethod
    def _details(cls, entry: Any) -> Any:
        if not isinstance(entry, dict) or entry.get("action") in (None, "diagnosis"):
            return entry
        return {"action": entry["action"]}


class _Entry(Row):
    intent: Text


class _Spoken(Row):
    speaker: Annotated[str, allowed(" or ".join(SPEAKERS), SPEAKERS.__contains__)]
    text: Annotated[str, allowed("a str", utf8)]
    nlu: list[_Entry] = []
    actions: list[_Action] = []


class _Dialogue(Row):
    utterances: Annotated[list[dict[str, Any]], Field(min_length=1)]


def read(path: Path, seed: int = 0, split: str | None = None) -> Read:
    """The dialogues of ``path`` as cases, in file order; ``split``: train, valid or test alone.
    What ``path`` may be, how a dialogue becomes a case and what is left out: the card in
    data/README.md. Exchanges that give the diagnosis away are counted; dropped are dialogues
    without a diagnosis, or with 10 statements or fewer. ``ValueError``: no file, no such split.
    :class:`DataError`: a bad file. ``seed``: not used."""
    if split is not None and split not in SPLITS:
        raise ValueError(f"split is {split!r}; allowed are {', '.join(SPLITS)}, or None for all")
    file = _file(path)
    dialogues = _dialogues(file)
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


def _file(path: Path) -> Path:
    """The file of dialogues that ``path`` means."""
    if path.is_file():
        return path
    for name in FILES:
        if (path / name).is_file():
            return path / name
    raise ValueError(
        f"path is the folder {str(path)!r}, without a dialogs.json; allowed is {NEEDED}"
    )


def _dialogues(file: Path) -> Dialogues:
    value: Any = whole_json(file)
    if not isinstance(value, dict) or not value:
        raise DataError(file, None, "JSON", value, "dialogues by id, at least one")
    found: Dialogues = {}
    for key, dialogue in value.items():
        place = f"dialogue {key}"
        rows = checked(_Dialogue, dialogue, within(file, place)).utterances
        found[key] = []
        for position, row in enumerate(rows):
            bad = within(file, f"{place}, utterance {position}")
            found[key].append(_utterance(checked(_Spoken, row, bad)))
    if not any(utterance.intents for each in found.values() for utterance in each):
        raise DataError(file, None, "utterances", "no actions and no nlu", "dialogues as in data")
    return found


def _utterance(spoken: _Spoken) -> Utterance:
    diseases: list[str] = []
    ruled_out: list[str] = []
    for action in spoken.actions:
        here: list[str] = []
        for one in action.disease:
            denied = "no" in (action.status.strip().lower(), one.status.strip().lower())
            (ruled_out if denied else here).append(one.value)
        diseases = here + diseases
    return Utterance(
        spoken.speaker,
        " ".join(spoken.text.split()),
        (*(e.intent for e in spoken.nlu), *(a.action for a in spoken.actions)),
        _distinct(diseases),
        _distinct(ruled_out),
    )


def _distinct(diseases: list[str]) -> tuple[str, ...]:
    names = (" ".join(name.split()) for name in diseases)
    return tuple(dict.fromkeys(name for name in names if name.lower() not in NO_NAME))


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
