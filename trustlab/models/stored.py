"""How a reply is written down as JSON and read again: complete replies only, numbers in full precision."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from trustlab.models.base import STATISTICS
from trustlab.records import Reply, TokenTrace

to_json = json.JSONEncoder(allow_nan=False, sort_keys=True, separators=(",", ":")).encode
_REPLY_FIELDS = {"finish", "n_tokens_in", "n_tokens_out", "raw", "text", "trace"}
ABILITY_FIELDS = {"lacks", "provides"}
_TRACE_FIELDS = {"tokens", "alternatives", "bounds", *TokenTrace.ARRAYS}


def encode_reply(reply: Reply) -> str:
    """A complete reply as JSON, floats in full precision; ValueError for NaN, infinity or a reply that is missing."""
    if reply.missing is not None or reply.text is None:
        raise ValueError(f"only complete replies are kept, got missing={reply.missing!r}, text={reply.text!r}")
    counts = {"n_tokens_in": int(reply.n_tokens_in), "n_tokens_out": int(reply.n_tokens_out)}
    fields: dict[str, object] = {"text": reply.text, "raw": reply.raw, "finish": reply.finish, "trace": None, **counts}
    if (trace := reply.trace) is not None:
        arrays = {name: _array(name, getattr(trace, name), len(trace)) for name in TokenTrace.ARRAYS}
        listed = {name: None if array is None else array.tolist() for name, array in arrays.items()}
        best = trace.alternatives and [[(token, float(logprob)) for token, logprob in row] for row in trace.alternatives]
        fields["trace"] = {"tokens": trace.tokens, "alternatives": best, "bounds": dict(trace.bounds), **listed}
    return to_json(fields)


def decode_reply(value: str | Mapping[str, object]) -> Reply:
    """The reply that :func:`encode_reply` wrote, arrays as float64 (L,); ValueError or TypeError if it is anything else."""
    fields = json.loads(value, parse_constant=refuse_constant) if isinstance(value, str) else value
    if not isinstance(fields, Mapping) or set(fields) != _REPLY_FIELDS:
        raise ValueError(f"a reply has the fields {sorted(_REPLY_FIELDS)}, got {shortened(str(fields))}")
    for name in _REPLY_FIELDS - {"trace"}:
        kinds = int if name.startswith("n_") else (str, type(None)) if name == "raw" else str
        if not isinstance(fields[name], kinds):
            raise ValueError(f"{name} has the wrong type: {fields[name]!r}")
    trace = fields["trace"]
    return Reply(**{**fields, "trace": None if trace is None else _decode_trace(trace)})  # type: ignore[arg-type]


def decode_abilities(fields: object) -> dict[str, Any]:
    """What a model provides and lacks, as it was kept; ValueError if it is anything else."""
    if not isinstance(fields, dict) or set(fields) != ABILITY_FIELDS:
        raise ValueError(f"what a model provides has the fields {sorted(ABILITY_FIELDS)}, got {shortened(str(fields))}")
    provides, lacks = fields["provides"], fields["lacks"]
    if not isinstance(provides, list) or not set(map(str, provides)) <= {"text", *STATISTICS}:
        raise ValueError(f"provides must be among {('text', *STATISTICS)}, got {provides!r}")
    if not isinstance(lacks, dict) or not all(isinstance(why, str) for why in lacks.values()):
        raise ValueError(f"lacks must map needs to reasons, got {lacks!r}")
    return fields


def _decode_trace(trace: object) -> TokenTrace:
    if not isinstance(trace, Mapping) or set(trace) != _TRACE_FIELDS:
        raise ValueError(f"a trace has the fields {sorted(_TRACE_FIELDS)}, got {shortened(str(trace))}")
    tokens, alternatives, bounds = trace["tokens"], trace["alternatives"], trace["bounds"]
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise ValueError(f"tokens must be a list of strings, got {tokens!r}")
    if not isinstance(bounds, Mapping) or not all(side in ("lower", "upper") for side in bounds.values()):
        raise ValueError(f'bounds must map fields to "lower" or "upper", got {bounds!r}')
    arrays = {name: _array(name, trace[name], len(tokens)) for name in TokenTrace.ARRAYS}
    if alternatives is not None:
        alternatives = tuple(tuple((str(token), float(logprob)) for token, logprob in row) for row in alternatives)
        if len(alternatives) != len(tokens):
            raise ValueError(f"alternatives must have {len(tokens)} positions, got {len(alternatives)}")
    return TokenTrace(tokens=tuple(tokens), alternatives=alternatives, bounds=dict(bounds), **arrays)


def _array(name: str, values: object, n_tokens: int) -> np.ndarray | None:
    array = None if values is None else np.asarray(values, dtype=np.float64)
    if array is not None and (array.shape != (n_tokens,) or not np.isfinite(array).all()):
        raise ValueError(f"{name} must hold {n_tokens} finite numbers, got {values!r}")
    return array


def refuse_constant(word: str) -> float:
    """What JSON does with NaN and infinities here: ValueError."""
    raise ValueError(f"{word} is no number that the cache keeps")


def shortened(text: str, limit: int = 200) -> str:
    """``text`` in quotes, cut where it is long."""
    return repr(text) if len(text) <= limit else f"{text[:limit]!r}… ({len(text)} characters)"
