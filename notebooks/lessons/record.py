"""The record of a student's checks: a file of JSON lines, which a class can hand in.

Anybody can edit it: it serves to talk about answers, not to mark them.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from trustlab.paths import PRIVATE

NAME = "record.jsonl"
"""File in the working folder that checks are appended to."""
MOST_CHARACTERS = 300


class Check(BaseModel):
    """A line of a record; ``sentence`` says what is wrong, "" where nothing is."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    time: AwareDatetime
    exercise: Annotated[str, Field(pattern=r"^[1-9][a-z]$")]
    verdict: Literal["right", "wrong"]
    sentence: Annotated[str, Field(pattern=r"^([^=+@\x00-\x1f-][^\x00-\x1f]{0,299})?$")]


def append(exercise: str, sentence: str) -> None:
    """Add a check to the record of the working folder; where it cannot be written, say so."""
    line = Check(
        time=datetime.now(UTC).replace(microsecond=0),
        exercise=exercise,
        verdict="wrong" if sentence else "right",
        sentence=_plain(sentence),
    )
    file = Path(NAME)
    try:
        file.touch(mode=PRIVATE)
        with file.open("a", encoding="utf-8") as lines:
            lines.write(line.model_dump_json() + "\n")
    except OSError as error:
        print(f"not recorded: {NAME} cannot be written ({error.strerror})")


def _plain(sentence: str) -> str:
    """A sentence without control characters, as long as a record may hold it."""
    printable = "".join(c if c.isprintable() else " " for c in sentence)
    return printable.strip().lstrip("=+@-")[:MOST_CHARACTERS].strip()
