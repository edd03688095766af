"""Checks of the exercises, a file a lesson: each says what is wrong and gives no answer away."""

from importlib import import_module
from pathlib import Path

for file in sorted(Path(__file__).parent.glob("lesson_*.py")):
    import_module(f"checks.{file.stem}")
