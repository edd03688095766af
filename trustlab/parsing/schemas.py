"""The JSON schemas of what the steps ask for, for servers that hold a reply to one.

The readers beside it decide what is read; a schema only helps a model to write it. A list stands
inside an object, since services take no other.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, get_args

from trustlab.parsing.agents import _Flagged, _Rated
from trustlab.records import IMPORTANCES, SUPPORT_LEVELS

_TEXT, _ID = {"type": "string"}, {"type": "integer"}
_MAYBE = {"type": ["string", "null"]}


def schema_of(step: str, options: Collection[str] = ()) -> str | None:
    """The schema of a step's reply as JSON, ``None`` of one that is no JSON.

    ``step`` is the name of its prompt; of MedConf's, ``options`` are those that are switched on
    (:attr:`trustlab.agents.medconf.MedConf.options`).
    """
    found = _PANEL.get(step)
    if step == "profile" and "structure" in options:
        found = _object(criteria=_list(id=_ID, **_weight(options), description=_TEXT))
    elif step == "evidence":
        found = _object(**_table(options), confidence=_CONFIDENCE)
    return None if found is None else json.dumps(found)


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object", "properties": properties, "required": list(properties),
        "additionalProperties": False,
    }  # fmt: skip


def _list(**properties: Any) -> dict[str, Any]:
    return {"type": "array", "items": _object(**properties)}


def _words(words: Collection[str]) -> dict[str, Any]:
    return {"type": "string", "enum": list(words)}


def _weight(options: Collection[str]) -> dict[str, Any]:
    return {"importance": _words(IMPORTANCES)} if "importance" in options else {}


def _table(options: Collection[str]) -> dict[str, Any]:
    """The criteria one by one, and their ids by support, where the profile is a list."""
    if not {"profile", "structure"} <= set(options):
        return {}
    ids: dict[str, Any] = {"type": "array", "items": _ID}
    if "importance" in options:
        ids = _object(**dict.fromkeys(IMPORTANCES, ids))
    criteria = _list(
        id=_ID, **_weight(options), description=_TEXT, evidence=_MAYBE,
        support_level=_words(SUPPORT_LEVELS),
    )  # fmt: skip
    return {"criteria": criteria, "summary": _object(**dict.fromkeys(SUPPORT_LEVELS, ids))}


def _marks(kind: type[Any], key: str) -> dict[str, Any]:
    words = _words(get_args(kind.model_fields[key].annotation))
    return _object(items=_list(id=_ID, quote=_MAYBE, **{key: words}, reason=_MAYBE))


_CONFIDENCE = _object(reasoning=_TEXT, confidence_score=_TEXT)
_PANEL = {
    "plan": _object(
        prescriptions=_list(drug=_TEXT, dose=_TEXT, route=_TEXT),
        tests={"type": "array", "items": _TEXT},
    ),
    "review_prescriptions": _marks(_Rated, "rating"),
    "review_tests": _marks(_Flagged, "flag"),
}
