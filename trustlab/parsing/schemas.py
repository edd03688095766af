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

MOST_ROWS = 10  # criteria of a profile
MOST_ITEMS = 6  # prescriptions, or tests, of a plan
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


def schema_of(
    step: str, options: Collection[str] = (), ids: Collection[int] = ()
) -> str | None:
    """The schema of a step's reply as JSON, where it has one. ``step``: the name of its prompt;
    ``options``: those of MedConf's that are switched on; ``ids``: of the profile's criteria, or of
    what is reviewed."""
    schema = None
    if step in _WHOLE:
        schema = {"type": "string", "pattern": _WHOLE[step]}
    elif step == "profile" and "structure" in options:
        schema = _profile_schema(options)
    elif step == "evidence":
        schema = _evidence_schema(options, ids)
    elif step == "plan":
        drug = _object({"drug": _text(60), "dose": _text(60), "route": _text(40)})
        schema = _object({"prescriptions": _list(drug), "tests": _list(_text(80))})
    elif step in _REVIEWED_ITEMS:
        schema = _review_schema(step, len(ids))
    return None if schema is None else json.dumps(schema)


def _profile_schema(options: Collection[str]) -> dict[str, Any]:
    """A list of criteria, with their importance where that is switched on."""
    properties: dict[str, Any] = {"id": _ID}
    if "importance" in options:
        properties["importance"] = _enum(IMPORTANCES)
    properties["description"] = _text(120)
    return _object({"criteria": _list(_object(properties), 1, MOST_ROWS)})


def _evidence_schema(options: Collection[str], ids: Collection[int]) -> dict[str, Any]:
    """The confidence; before it the criteria by their ids, where the profile is a list."""
    properties: dict[str, Any] = {}
    if {"profile", "structure"} <= set(options):
        row = _object(
            {"support_level": _enum(SUPPORT_LEVELS), "evidence": _text_or_null(200)}
        )
        properties["criteria"] = _object({str(i): row for i in ids})
    score = {"type": "string", "pattern": f"^<<{_NUMBER}>>$"}
    properties["confidence"] = _object(
        {"reasoning": _text(300), "confidence_score": score}
    )
    return _object(properties)


def _review_schema(step: str, n_items: int) -> dict[str, Any]:
    """A mark with quotation and reason for each item that is reviewed."""
    item = _REVIEWED_ITEMS[step]
    key = item.mark_key
    marks = get_args(item.model_fields[key].annotation)
    row = _object(
        {
            "id": _ID,
            "quote": _text_or_null(160),
            key: _enum(marks),
            "reason": _text_or_null(160),
        }
    )
    return _object({"items": _list(row, n_items, n_items or MOST_ITEMS)})


def _text(most: int) -> dict[str, Any]:
    return {"type": "string", "maxLength": most}


def _text_or_null(most: int) -> dict[str, Any]:
    return {"anyOf": [_text(most), {"type": "null"}]}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(row: Any, least: int = 0, most: int = MOST_ITEMS) -> dict[str, Any]:
    return {"type": "array", "items": row, "minItems": least, "maxItems": most}


def _enum(words: Collection[str]) -> dict[str, Any]:
    return {"type": "string", "enum": list(words)}


# held to the form of prompts/embedded/*.lark, which was taught
TAUGHT_STEPS = ("evidence",)


def taught_schema_of(
    step: str, options: Collection[str] = (), profile: str = ""
) -> str | None:
    """The grammar of one of :data:`TAUGHT_STEPS`, in JSON; ``profile`` as the prompt shows it."""
    if step not in TAUGHT_STEPS or not {"profile", "structure"} <= set(options):
        return None
    file = Path(__file__).parents[1] / "prompts" / "embedded" / f"{step}.lark"
    criteria = json.dumps(
        profile.removeprefix("[\n").removesuffix("}\n]"), ensure_ascii=False
    )
    rows = criteria.replace(r"},\n", r'" verdict ",\n') + " verdict"
    sums = "weighed" if "importance" in options else "ids"
    grammar = file.read_text("utf-8").replace("SUMS", sums).replace("ROWS", rows)
    return json.dumps({"type": "grammar", "lark": grammar})


HELD = (*_WHOLE, "profile", "evidence", "plan", "review_prescriptions", "review_tests")
"""Steps whose replies are held to a form, where a model can be."""
_REVIEWED_ITEMS = {"review_prescriptions": _Rated, "review_tests": _Flagged}
"""Reviewers' step -> what an entry of the reply is."""
