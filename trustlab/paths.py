"""Where the project's own folders are, and the words every result carries."""

import os
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "data"
NOTEBOOKS = ROOT / "notebooks"
FIGURES = ROOT / "figures"
RUNS = ROOT / (os.environ.get("TRUSTLAB_RUNS") or "runs")
"""What runs leave behind, the reply cache among it; the environment variable TRUSTLAB_RUNS names
another folder."""
REPLIES = RUNS / "replies.sqlite"
"""The reply cache of whatever names no other."""


def offline() -> bool:
    """Whether TRUSTLAB_OFFLINE=1 forbids to ask any model: what is not kept is then an error."""
    return os.environ.get("TRUSTLAB_OFFLINE") == "1"


def read_yaml(path: Path) -> Any:
    """What a YAML file of the project holds; read with libyaml where it is there, much the
    faster."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(path.read_text(encoding="utf-8"), Loader=loader)


NOTICE = "Research only. Not for clinical use."
