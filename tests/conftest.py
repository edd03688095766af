"""Runs of the tests, notebook kernels and other child processes among them, leave the user's
``runs/`` alone."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from openai_server import Server
    from smoke import SmokeRuns

# At import, since trustlab.paths reads the variable when it is first imported.
_FOLDER = tempfile.TemporaryDirectory(prefix="trustlab-tests-", ignore_cleanup_errors=True)
os.environ["TRUSTLAB_RUNS"] = _FOLDER.name
if "PYTEST_XDIST_WORKER" in os.environ:  # as many processes as cores: one thread each
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# Nothing is timed in a test: with all cores at work any example may take long.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


def pytest_unconfigure() -> None:
    _FOLDER.cleanup()


ON_SMOKE_RUNS = ("test_notebooks.py", "test_run_pages.py")
"""Files whose tests look at the notebooks' runs: one process runs all of them."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With several processes what takes longest comes first."""
    for item in items:
        uses = "smoke_runs" in getattr(item, "fixturenames", ())
        if uses and item.path.name not in ON_SMOKE_RUNS:
            raise pytest.UsageError(f"{item.nodeid} uses smoke_runs: add its file to ON_SMOKE_RUNS")
    if hasattr(config, "workerinput"):
        # Each process begins with two: with the first and third, or the second and fourth.
        first = [*ON_SMOKE_RUNS, "test_paper_run.py", "test_reference.py", "test_gguf.py"]
        first += ["test_same.py", "test_kill.py"]
        items.sort(key=lambda i: (*first, i.path.name).index(i.path.name))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file's tests stay in one process, so that what they share is made once.

    In place of ``--dist loadgroup``: under pytest 9.2 xdist 3.8 finds no groups.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0].rpartition("/")[2]
            return "smoke runs" if file in ON_SMOKE_RUNS else file

    config.option.loadscopereorder = False
    return ByFile(config, log)


@pytest.fixture(scope="session", autouse=True)
def _in_memory() -> Iterator[None]:
    """Replies that a test names no file for stay in memory: no test is given another's."""
    from trustlab import paths  # here, after TRUSTLAB_RUNS is set

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "REPLIES", Path(":memory:"))
        yield


@pytest.fixture(scope="session")
def smoke_runs(tmp_path_factory: pytest.TempPathFactory) -> SmokeRuns:
    """Each notebook's run at its own defaults, made when first asked for."""
    from smoke import SmokeRuns  # here, since most tests run no notebook

    return SmokeRuns(tmp_path_factory.mktemp("smoke"))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server in the manner of OpenAI's, whose key is in the environment."""
    from openai_server import KEY, Server

    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Server() as running:
        yield running


@pytest.fixture
def opened(server: Server, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Opens models of the server, by the test's file's ``OPENED``, and closes them at the end."""
    from openai_server import opening

    with opening(server, **getattr(request.module, "OPENED", {})) as open_it:
        yield open_it


@pytest.fixture(scope="module")
def every_interval() -> Iterator[None]:
    """How an interval is made is tested where none is withheld (tests/test_coverage.py: which)."""
    from trustlab.metrics import coverage

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coverage, "withheld", lambda *_: "")
        yield


@pytest.fixture
def house_style() -> Iterator[None]:
    """Figures in the project's style; no setting and no open figure is left behind."""
    import matplotlib.pyplot as plt  # here, since most tests draw nothing

    from trustlab.reports.plots import use_style

    with plt.rc_context():
        use_style()
        yield
    plt.close("all")
