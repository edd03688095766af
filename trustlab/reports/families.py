"""Says how each family of methods is shown: its colour, its mark, its name."""

from __future__ import annotations

_FAMILIES = {
    "token": ("#0072B2", "o", "token"),
    "consistency": ("#E69F00", "s", "consistency"),
    "verbalized": ("#009E73", "^", "self-verbalised"),
    "medconf": ("#D55E00", "D", "MedConf"),
    "baseline": ("#56B4E9", "X", "baseline"),
    "trust": ("#CC79A7", "P", "trust"),
    "own": ("#7F7F7F", "v", "the table's own"),
    "reference": ("#000000", "*", "reference (no method)"),
}
FAMILY_COLOURS = {family: colour for family, (colour, _, _) in _FAMILIES.items()}
"""Okabe and Ito's colours, which colour-blind readers can tell apart."""
FAMILY_MARKERS = {family: marker for family, (_, marker, _) in _FAMILIES.items()}
"""One shape per family, so that a figure printed in grey can still be read."""
FAMILY_LABELS = {family: words for family, (_, _, words) in _FAMILIES.items()}
