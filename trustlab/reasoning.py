"""How well a doctor's reasoning fits the diagnosis: the cosine that RDC is made of (METHODS: trust indices).

Reasoning longer than the encoder's window is read in parts, and their vectors are averaged: cut off at the window, it would
lose its end, where the conclusion stands. ``truncate`` cuts it all the same, as a plain use of the encoder does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from trustlab.records import Opinion, Panel
from trustlab.semantics import Encoder


def with_cosines(encoder: Encoder, panels: Sequence[Panel], truncate: bool = False) -> list[Panel]:
    """The panels with the cosine of each opinion's reasoning and diagnosis, in [-1, 1]; NaN where one of the two is missing."""
    found = iter(cosines(encoder, [o for panel in panels for o in panel.opinions], truncate))
    return [replace(panel, cosines=tuple(next(found) for _ in panel.opinions)) for panel in panels]


def cosines(encoder: Encoder, opinions: Sequence[Opinion], truncate: bool = False) -> list[float]:
    """cos(E(reasoning), E(diagnosis)) for each opinion, each distinct string encoded once; NaN where a text is missing."""
    whole = [(o.thinking, o.diagnosis) for o in opinions]
    thoughts = dict.fromkeys(t for t, d in whole if t and d)
    if not thoughts:  # nothing to load an encoder for
        return [math.nan] * len(whole)
    parts = {text: [text] if truncate else encoder.windows(text) for text in thoughts}
    encoder.encode(list(dict.fromkeys([p for ps in parts.values() for p in ps] + [d for t, d in whole if t and d])))
    found = []
    for thinking, diagnosis in whole:
        if not thinking or not diagnosis:
            found.append(math.nan)
            continue
        a = encoder.encode(parts[thinking]).astype(np.float64).mean(0)
        b = encoder.encode([diagnosis]).astype(np.float64)[0]
        found.append(float(np.clip(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)), -1, 1)))
    return found
