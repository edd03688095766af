"""Where the project's own folders are, and the words every result carries."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "data"
NOTEBOOKS = ROOT / "notebooks"
FIGURES = ROOT / "figures"
RUNS = ROOT / (os.environ.get("TRUSTLAB_RUNS") or "runs")
"""What runs leave behind, the reply cache among it; the environment variable TRUSTLAB_RUNS names another folder."""


def offline() -> bool:
    """Whether TRUSTLAB_OFFLINE=1 forbids to ask any model: what is not kept is then an error."""
    return os.environ.get("TRUSTLAB_OFFLINE") == "1"


NOTICE = "Research only. Not for clinical use."
