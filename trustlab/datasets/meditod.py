"""Reads MediTOD's dialogues."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, model_validator

from trustlab.choices import utf8
from trustlab.datasets.cases_file import (
    MIN_STATEMENTS,
    Read,
    Row,
    Text,
    allowed,
    parse_row,
)
from trustlab.knowledge.findings import load_knowledge
from trustlab.knowledge.giveaway import giveaway
from trustlab.records import Case, Statement, normalise
from trustlab.tables import DataError, whole_json, within

NEEDED = "the MediTOD repository (dair-iitd/MediTOD), its data folder, or its data/dialogs.json"
FILES = ("dialogs.json", "data/dialogs.json")
SPEAKERS = ("doctor", "patient")
NO_NAME = frozenset(("other", "unknown"))
"""Values that name no disease."""
SHOWN_INTENTS = frozenset(("inform", "inquire", "diagnosis"))
"""An utterance is shown if it has one of these intents."""
OTHER_INTENTS = frozenset(("chit-chat", "nod_prompt_salutations", "other"))
"""The other intents that MediTOD defines."""
SPLITS = ("train", "valid", "test")
NO_DIAGNOSIS, SHORT = (
    "no diagnosis",
    f"fewer than {MIN_STATEMENTS} statements before the diagnosis",
)
SPOKEN = "exchanges that speak the diagnosis, left out"
UNKNOWN = "utterances with an unknown intent"
SEVERAL = "dialogues whose last diagnosis names several diseases"


@dataclass(frozen=True)
class Utterance:
    """What doctor or patient says at once. ``diseases``: those of the last diagnosis in it first,
    then of those before; ``ruled_out``: those that a diagnosis in it names with the status No."""

    speaker: str
    text: str
    intents: tuple[str, ...] = ()
    diseases: tuple[str, ...] = ()
    ruled_out: tuple[str, ...] = ()


Dialogues = dict[str, list[Utterance]]  # id -> the utterances in their order


def _is_name(value: str) -> bool:
    return utf8(value) and normalise(value) != ""


class _Disease(Row):
    """A disease of a diagnosis; its ``status`` No says that this is not the diagnosis."""

    value: Annotated[str, allowed("the name of a disease", _is_name)]
    status: str = ""


class _Action(Row):
    """An action of the doctor; its details count only where it is a diagnosis."""

    action: Text
    status: str = ""
    disease: list[_Disease] = []

    @model_validator(mode="before")
    @classmethod
    def _details(cls, entry: Any) -> Any:
        if not isinstance(entry, dict) or entry.get("action") in (None, "diagnosis"):
            return entry
        return {"action": entry["action"]}


class _Intent(Row):
    intent: Text


class _Spoken(Row):
    speaker: Annotated[str, allowed(" or ".join(SPEAKERS), SPEAKERS.__contains__)]
    text: Annotated[str, allowed("a str", utf8)]
    nlu: list[_Intent] = []
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
        raise ValueError(
            f"split is {split!r}; allowed are {', '.join(SPLITS)}, or None for all"
        )
    file = _dialogues_file(path)
    dialogues = _read_dialogues(file)
    split_of_id = _read_splits(file, set(dialogues))
    if split is not None:
        if split not in split_of_id.values():
            lack = f"{file.parent} has no {split}_ids.json with an id in it"
            raise ValueError(f"split is {split!r}, but {lack}")
        for own_id in list(dialogues):
            if split_of_id.get(own_id) != split:
                del dialogues[own_id]
    dropped: defaultdict[str, list[str]] = defaultdict(list)
    facts: Counter[str] = Counter({SPOKEN: 0, SEVERAL: 0, UNKNOWN: 0})
    cases: list[Case] = []
    for own_id, utterances in dialogues.items():
        facts[UNKNOWN] += sum(map(_has_unknown_intent, utterances))
        last = _last_diagnosis(utterances)
        if last is None:
            dropped[NO_DIAGNOSIS].append(own_id)
            continue
        case, n_spoken = _make_case(own_id, utterances, last, split_of_id.get(own_id))
        if len(case.statements) < MIN_STATEMENTS:
            dropped[SHORT].append(own_id)
            continue
        cases.append(case)
        facts[SPOKEN] += n_spoken
        facts[SEVERAL] += "also_named" in case.patient
    return Read(cases, len(dialogues), dict(dropped), dict(facts))


def _has_unknown_intent(utterance: Utterance) -> bool:
    return bool(set(utterance.intents) - SHOWN_INTENTS - OTHER_INTENTS)


def _last_diagnosis(utterances: Sequence[Utterance]) -> int | None:
    """The position of the last utterance that names a disease; ``None`` without one."""
    positions = [i for i, utterance in enumerate(utterances) if utterance.diseases]
    return max(positions, default=None)


def _make_case(
    own_id: str, utterances: Sequence[Utterance], end: int, split: str | None
) -> tuple[Case, int]:
    """The case that ends before the diagnosis at position ``end``, however short, and how many
    exchanges were left out, since they speak the diagnosis."""
    diagnosis, *other_diseases = utterances[end].diseases
    accepted = load_knowledge().names_for(diagnosis)
    accepted_words = set(map(normalise, accepted))
    speech = giveaway(accepted, utterances[end].text)
    statements = []
    n_spoken = 0
    for exchange in _shown_exchanges(utterances, end):
        text = _exchange_text(exchange)
        if _named_diseases(exchange) & accepted_words or speech.heard_in(text):
            n_spoken += 1
        else:
            statements.append(Statement(text))
    patient: dict[str, object] = {"split": split} if split else {}
    if other_diseases:
        patient["also_named"] = tuple(other_diseases)
    case = Case(
        f"meditod-{own_id}", "meditod", tuple(statements), diagnosis, accepted, patient
    )
    return case, n_spoken


def _exchange_text(exchange: Sequence[Utterance]) -> str:
    """What the doctor says, and what the patient says, on a line each."""
    lines = []
    for speaker in SPEAKERS:
        texts = [
            utterance.text for utterance in exchange if utterance.speaker == speaker
        ]
        if texts:
            lines.append(f"{speaker.capitalize()}: {' '.join(texts)}")
    return "\n".join(lines)


def _named_diseases(exchange: Sequence[Utterance]) -> set[str]:
    """The diseases that an exchange diagnoses or rules out, normalised."""
    return {
        normalise(name)
        for utterance in exchange
        for name in (*utterance.diseases, *utterance.ruled_out)
    }


def _shown_exchanges(
    utterances: Sequence[Utterance], end: int
) -> list[list[Utterance]]:
    """Of each exchange the utterances to show, which come before position ``end``.
    They are formed before anything is left out, so that an answer is not joined to a question that
    it did not answer."""
    exchanges: list[list[Utterance]] = [[]]
    speaker = ""
    for position, utterance in enumerate(utterances):
        if speaker == "patient" and utterance.speaker == "doctor":
            exchanges.append([])
        speaker = utterance.speaker
        is_shown = bool(utterance.text) and not SHOWN_INTENTS.isdisjoint(
            utterance.intents
        )
        if position < end and is_shown:
            exchanges[-1].append(utterance)
    return [exchange for exchange in exchanges if exchange]


def _dialogues_file(path: Path) -> Path:
    """The file of dialogues that ``path`` means."""
    if path.is_file():
        return path
    for name in FILES:
        if (path / name).is_file():
            return path / name
    raise ValueError(
        f"path is the folder {str(path)!r}, without a dialogs.json; allowed is {NEEDED}"
    )


def _read_dialogues(file: Path) -> Dialogues:
    """The dialogues of a file, at least one, with an intent somewhere in them."""
    content: Any = whole_json(file)
    if not isinstance(content, dict) or not content:
        raise DataError(file, None, "JSON", content, "dialogues by id, at least one")
    dialogues: Dialogues = {}
    n_intents = 0
    for own_id, dialogue in content.items():
        place = f"dialogue {own_id}"
        rows = parse_row(_Dialogue, dialogue, within(file, place)).utterances
        dialogues[own_id] = []
        for position, row in enumerate(rows):
            bad = within(file, f"{place}, utterance {position}")
            utterance = _make_utterance(parse_row(_Spoken, row, bad))
            dialogues[own_id].append(utterance)
            n_intents += len(utterance.intents)
    if n_intents == 0:
        raise DataError(
            file, None, "utterances", "no actions and no nlu", "dialogues as in data"
        )
    return dialogues


def _make_utterance(spoken: _Spoken) -> Utterance:
    """The utterance of a row, with the diseases that its diagnoses affirm and rule out."""
    diseases: list[str] = []
    ruled_out: list[str] = []
    for action in spoken.actions:
        affirmed: list[str] = []
        for disease in action.disease:
            if _is_no(action.status) or _is_no(disease.status):
                ruled_out.append(disease.value)
            else:
                affirmed.append(disease.value)
        diseases = affirmed + diseases
    text = " ".join(spoken.text.split())
    intents = [entry.intent for entry in spoken.nlu]
    intents += [action.action for action in spoken.actions]
    return Utterance(
        spoken.speaker,
        text,
        tuple(intents),
        _distinct_names(diseases),
        _distinct_names(ruled_out),
    )


def _is_no(status: str) -> bool:
    return status.strip().lower() == "no"


def _distinct_names(diseases: list[str]) -> tuple[str, ...]:
    """The diseases with white space made single, each once, without :data:`NO_NAME`."""
    names = {}
    for disease in diseases:
        name = " ".join(disease.split())
        if name.lower() not in NO_NAME:
            names[name] = None
    return tuple(names)


def _read_splits(file: Path, dialogue_ids: set[str]) -> dict[str, str]:
    """Dialogue id -> split, from the lists of ids beside ``file``; each in one list only."""
    split_of_id: dict[str, str] = {}
    for split in SPLITS:
        source = file.parent / f"{split}_ids.json"
        ids = whole_json(source) if source.is_file() else []
        if not isinstance(ids, list) or not all(
            type(own_id) in (int, str) for own_id in ids
        ):
            raise DataError(source, None, "ids", ids, "a list of dialogue ids")
        for own_id in map(str, ids):
            if own_id in split_of_id:
                words = f"an id that is listed once ({split_of_id[own_id]}_ids.json lists it)"
                raise DataError(source, None, "id", own_id, words)
            if own_id not in dialogue_ids:
                words = f"an id that a dialogue of {file.name} has"
                raise DataError(source, None, "id", own_id, words)
            split_of_id[own_id] = split
    return split_of_id
