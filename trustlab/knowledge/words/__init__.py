"""Reads the lists of words that rules use."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from trustlab.files import read_yaml


@lru_cache
def word_lists(subject: str) -> dict[str, Any]:
    """The lists of ``subject``.yml: each a text of words, or several by name or in a list."""
    return read_yaml(Path(__file__).with_name(f"{subject}.yml"))
