"""Lists of words that rules read, a YAML file a subject: part of the code, not the user's data."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import Any

import yaml


@lru_cache
def word_lists(subject: str) -> dict[str, Any]:
    """The lists of ``subject``.yml: each a text of words, or several by name or in a list."""
    return yaml.safe_load(files(__name__).joinpath(f"{subject}.yml").read_text(encoding="utf-8"))
