"""Where the project's own folders are, and the words every result carries."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "data"
NOTEBOOKS = ROOT / "notebooks"
FIGURES = ROOT / "figures"
RUNS = ROOT / "runs"

NOTICE = "Research only. Not for clinical use."
