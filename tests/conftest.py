"""Runs of the tests, notebook kernels and other child processes among them, leave the user's ``runs/`` alone."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

import pytest

# At import, since trustlab.paths reads the variable when it is first imported.
_FOLDER = tempfile.TemporaryDirectory(prefix="trustlab-tests-", ignore_cleanup_errors=True)
os.environ["TRUSTLAB_RUNS"] = _FOLDER.name
if "PYTEST_XDIST_WORKER" in os.environ:  # as many processes as cores: one thread each
    os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_unconfigure() -> None:
    _FOLDER.cleanup()


@pytest.fixture
def house_style() -> Iterator[None]:
    """Figures in the project's style; no setting and no open figure is left behind."""
    import matplotlib.pyplot as plt  # here, since most tests draw nothing

    from trustlab.plots import use_style

    with plt.rc_context():
        use_style()
        yield
    plt.close("all")
