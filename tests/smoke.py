"""The notebooks run at their own defaults: each once a session, all on one cache of replies."""

from __future__ import annotations

from pathlib import Path

import pytest

from trustlab.cli.run_notebooks import run_notebook
from trustlab.paths import FIGURES, NOTEBOOKS


def contents(folder: Path) -> dict[str, bytes]:
    """Every file in ``folder`` and what it holds."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


class SmokeRuns:
    """This session's runs, in ``folder``; their cache is empty at first."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.cache = folder, folder / "cache"
        self.made: dict[str, Path] = {}

    def of(self, name: str) -> Path:
        """The folder of notebook ``name``'s run, which is made when first asked for."""
        if name not in self.made:
            before = contents(FIGURES), contents(NOTEBOOKS)
            self.made[name] = self.again(name, self.folder / name)
            assert (contents(FIGURES), contents(NOTEBOOKS)) == before, (
                "figures/ or notebooks/ changed"
            )
        return self.made[name]

    def again(self, name: str, folder: Path) -> Path:
        """One more run, into ``folder``; no model is asked what is in the cache."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TRUSTLAB_RUNS", str(self.cache))
            return run_notebook(name, {}, folder)
