"""Holds the JSON schemas of what is asked for.

Each has bounds, so that a reply comes to its end. A list stands inside an object, since services
take no other. One of type "string" has the ``pattern`` of a whole reply that is no JSON, one of
type "grammar" a grammar of llguidance's. Names are never held to a form.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any, get_args

from trustlab.parsing.agents import _Flagged, _Rated
from trustlab.records import IMPORTANCES, SUPPORT_LEVELS

MOST_ROWS, MOST_ITEMS = 10, 6  # criteria of a profile, and prescriptions or tests of a plan
_ID = {"type": "integer", "minimum": 1, "maximum": 99}
_NUMBER = "(100|[1-9]?[0-9])"
_WHOLE = {
    "ce": rf"\[{_NUMBER}\]",
    "cot_ce": rf"[^\[\]<>0-9\x00-\x1f]{{20,400}}\n\[{_NUMBER}\]",
    "doctor": r"<thinking_process>[^<>\x00-\x1f]{20,600}</thinking_process>\n\[[^\x00]{1,200}",
    "topk_ce": " ".join(rf"G{k}: \[{_NUMBER}\]" for k in range(1, 6)),
    "p_true": "True|False",
    "judge": "True|False",
}
"""Step -> pattern of its whole reply."""


def schema_of(step: str, options: Collection[str] = (), ids: Collection[int] = ()) -> str | None:
    """The schema of a step's reply as JSON, where it has one. ``step``: the name of its prompt;
    ``options``: those of MedConf's that are switched on; ``ids``: of the profile's criteria, or of
    what is reviewed."""
    found = None
    if step in _WHOLE:
        found = {"type": "string", "pattern": _WHOLE[step]}
    elif step == "profile" and "structure" in options:
        weight = {"importance": _words(IMPORTANCES)} if "importance" in options else {}
        row = _object(id=_ID, **weight, description=_text(120))
        found = _object(criteria=_list(row, 1, MOST_ROWS))
    elif step == "evidence":
        number = {"type": "string", "pattern": f"^<<{_NUMBER}>>$"}
        confidence = _object(reasoning=_text(300), confidence_score=number)
        found = _object(**_table(options, ids), confidence=confidence)
    elif step == "plan":
        drug = _object(drug=_text(60), dose=_text(60), route=_text(40))
        found = _object(prescriptions=_list(drug), tests=_list(_text(80)))
    elif step in _MARKS:
        kind, key = _MARKS[step]
        words = _words(get_args(kind.model_fields[key].annotation))
        row = _object(id=_ID, quote=_maybe(160), **{key: words}, reason=_maybe(160))
        found = _object(items=_list(row, len(ids), len(ids) or MOST_ITEMS))
    return None if found is None else json.dumps(found)


def _text(most: int) -> dict[str, Any]:
    return {"type": "string", "maxLength": most}


def _maybe(most: int) -> dict[str, Any]:
    return {"anyOf": [_text(most), {"type": "null"}]}


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object", "properties": properties, "required": list(properties),
        "additionalProperties": False,
    }  # fmt: skip


def _list(row: Any, least: int = 0, most: int = MOST_ITEMS) -> dict[str, Any]:
    return {"type": "array", "items": row, "minItems": least, "maxItems": most}


def _words(words: Collection[str]) -> dict[str, Any]:
    return {"type": "string", "enum": list(words)}


def _table(options: Collection[str], ids: Collection[int]) -> dict[str, Any]:
    """The criteria of the case by their ids, where the profile is a list."""
    if not {"profile", "structure"} <= set(options):
        return {}
    row = _object(support_level=_words(SUPPORT_LEVELS), evidence=_maybe(200))
    return {"criteria": _object(**{str(i): row for i in ids})}


TAUGHT_STEPS = ("evidence",)  # held to the form of prompts/embedded/*.lark, which was taught


def taught_schema_of(step: str, options: Collection[str] = (), profile: str = "") -> str | None:
    """The grammar of one of :data:`TAUGHT_STEPS`, in JSON; ``profile`` as the prompt shows it."""
    if step not in TAUGHT_STEPS or not {"profile", "structure"} <= set(options):
        return None
    form = (Path(__file__).parents[1] / "prompts" / "embedded" / f"{step}.lark").read_text("utf-8")
    begun = json.dumps(profile.removeprefix("[\n").removesuffix("}\n]"), ensure_ascii=False)
    rows = begun.replace(r"},\n", r'" verdict ",\n') + " verdict"
    sums = "weighed" if "importance" in options else "ids"
    return json.dumps({"type": "grammar", "lark": form.replace("SUMS", sums).replace("ROWS", rows)})


HELD = (*_WHOLE, "profile", "evidence", "plan", "review_prescriptions", "review_tests")
"""Steps whose replies are held to a form, where a model can be."""
_MARKS = {"review_prescriptions": (_Rated, "rating"), "review_tests": (_Flagged, "flag")}
"""The reviewers' steps: what an entry is, and its mark."""
