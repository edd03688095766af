"""Says where the project's own files lie, and reads their YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

_PACKAGE = Path(__file__).resolve().parent
ROOT = _PACKAGE / "_data" if (_PACKAGE / "_data").is_dir() else _PACKAGE.parent
"""What comes with the package: the checkout, or the copy of its data and notebooks in a wheel."""
DATA = ROOT / "data"


def read_yaml(path: Path) -> Any:
    """What a YAML file of the project holds; with libyaml, where it is there, much faster."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(path.read_text(encoding="utf-8"), Loader=loader)
