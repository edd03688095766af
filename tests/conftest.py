"""Runs of the tests, notebook kernels and other child processes among them, leave the user's ``runs/`` alone."""

from __future__ import annotations

import os
import tempfile

# At import, since trustlab.paths reads the variable when it is first imported.
_FOLDER = tempfile.TemporaryDirectory(prefix="trustlab-tests-", ignore_cleanup_errors=True)
os.environ["TRUSTLAB_RUNS"] = _FOLDER.name


def pytest_unconfigure() -> None:
    _FOLDER.cleanup()
