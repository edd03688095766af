"""Made-up dialogues in MediTOD's forms, written into a folder for the tests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path


def doctor(text: str, *intents: str, disease: Sequence[str] = (), **action: object) -> dict:
    """A doctor's utterance; ``disease`` makes it a diagnosis."""
    actions: list[dict] = [{"action": intent} for intent in intents]
    if disease:
        named = [{"value": name} for name in disease]
        actions.append({"action": "diagnosis", "disease": named, **action})
    return {"speaker": "doctor", "text": text, "keywords": [], "actions": actions}


def patient(text: str, *intents: str) -> dict:
    said = [{"intent": intent, "slots": {}} for intent in intents or ("inform",)]
    return {"speaker": "patient", "text": text, "keywords": [], "dialog_state": {}, "nlu": said}


def asked(n: int) -> list[dict]:
    """``n`` exchanges of a question and its answer."""
    return [
        u
        for i in range(1, n + 1)
        for u in (doctor(f"Question {i}?", "inquire"), patient(f"Answer {i}."))
    ]


END = doctor("I think it is gout.", disease=["gout"])


def told(*before: dict, n: int = 11, end: Mapping = END) -> list[dict]:
    """A dialogue of ``n`` exchanges, then ``before``, then the diagnosis and a good-bye."""
    thanks = patient("Thank you, gout it is.", "inform")
    goodbye = doctor("Take care.", "nod_prompt_salutations")
    return [*asked(n), *before, dict(end), thanks, goodbye]


def numbered(utterances: Sequence[Mapping]) -> list[dict]:
    return [{"uttr_id": i, **utterance} for i, utterance in enumerate(utterances)]


def write(file: Path, value: object) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value), encoding="utf-8")
    return file


def canonical(
    folder: Path, dialogues: Mapping[str, Sequence[Mapping]], **splits: Sequence[str]
) -> Path:
    """``dialogs.json`` and the lists of ids, as in the repository's ``data``."""
    for split, ids in splits.items():
        write(folder / f"{split}_ids.json", ids)
    told = {key: {"utterances": numbered(us)} for key, us in dialogues.items()}
    return write(folder / "dialogs.json", told)
