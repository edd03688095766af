"""A file that is one JSON value, read with errors that say where it breaks."""

from __future__ import annotations

import json
from pathlib import Path

from trustlab.datasets.errors import DataError, each_key_once, read_text


def whole_json(file: Path) -> object:
    """The JSON value of a UTF-8 file. Raises :class:`DataError` where it is no file, no JSON, or an object has a key twice."""
    if not file.is_file():
        raise DataError(file, None, "file", file.name, "a JSON file that exists")
    text = read_text(file)
    try:
        return json.loads(text, object_pairs_hook=each_key_once)
    except (ValueError, RecursionError) as error:
        raise DataError(file, None, "JSON", text[:60], f"one whole JSON value ({error})") from error


def utf8(text: str) -> bool:
    r"""Whether ``text`` can be written as UTF-8: JSON may spell half a character, ``\ud800``."""
    return not any("\ud800" <= c <= "\udfff" for c in text)
