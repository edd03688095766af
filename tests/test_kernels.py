"""Kernels forked from one process: as Jupyter's own, without the imports, and never left over."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import forkserver
from typing import Any

import pytest

from trustlab.folder import kernels
from trustlab.folder.kernels import Manager, import_once

pytestmark = pytest.mark.skipif(not kernels.FORKS, reason="forked on Linux alone")


@pytest.fixture(autouse=True)
def own_server(monkeypatch) -> Iterator[None]:
    """A fork server that this file alone uses, and no other's."""
    own: Any = forkserver.ForkServer()
    for name in ("ensure_running", "get_inherited_fds", "connect_to_new_process"):
        monkeypatch.setattr(forkserver, name, getattr(own, name))
    monkeypatch.setattr(forkserver, "set_forkserver_preload", own.set_forkserver_preload)
    monkeypatch.setattr(forkserver, "_forkserver", own)
    monkeypatch.setattr(kernels, "_imported_with", [])
    import_once(["__main__", "this"])  # nothing else imports it
    yield
    own._stop()


class Kernel:
    """A kernel that runs, with what it said to each code."""

    def __init__(self, manager: Manager, loop: asyncio.AbstractEventLoop) -> None:
        self.manager, self.loop, self.client = manager, loop, manager.client()
        self.client.start_channels()
        loop.run_until_complete(self.client.wait_for_ready(timeout=60))

    def __call__(self, code: str) -> str:
        said: list[str] = []

        def heard(message: dict[str, Any]) -> None:
            content = message["content"]
            said.append(content.get("text") or content.get("evalue") or "")

        asked = self.client.execute_interactive(code, output_hook=heard, timeout=60)
        self.loop.run_until_complete(asked)
        return "".join(said).strip()


@contextmanager
def started(**how: Any) -> Iterator[Kernel]:
    loop = asyncio.new_event_loop()
    manager = Manager(kernel_name="python3")
    loop.run_until_complete(manager.start_kernel(**how))
    kernel = Kernel(manager, loop)
    try:
        yield kernel
    finally:
        kernel.client.stop_channels()
        if manager.has_kernel:
            loop.run_until_complete(manager.shutdown_kernel(now=True))
        loop.close()


def pid_of(kernel: Kernel) -> int:
    return int(kernel("import os; print(os.getpid())"))


def lives(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def comes(what: Callable[[], bool], within_s: float = 20) -> bool:
    until = time.monotonic() + within_s
    while not what() and time.monotonic() < until:
        time.sleep(0.1)
    return what()


def test_it_has_imported_and_runs_where_and_with_what_it_is_given(tmp_path):
    given = {**os.environ, "TRUSTLAB_TOLD": "so"}
    with started(cwd=str(tmp_path), env=given) as kernel:
        assert kernel("import sys; print('this' in sys.modules)") == "True"
        assert kernel("import os; print(os.getcwd())") == str(tmp_path)
        assert kernel("print(os.environ['TRUSTLAB_TOLD'])") == "so"
        assert kernel("print(__name__)") == "__main__"


def test_two_share_nothing_that_one_of_them_changes():
    with started() as one, started() as other:
        assert pid_of(one) != pid_of(other)
        one("import json; json.mine = 1")
        assert other("import json; print(hasattr(json, 'mine'))") == "False"
        assert one("print(json.mine)") == "1"


def test_it_is_interrupted_and_goes_on():
    with started() as kernel:
        pid = pid_of(kernel)
        waits = kernel.client.execute("import time; time.sleep(60)", stop_on_error=False)
        time.sleep(1)
        kernel.loop.run_until_complete(kernel.manager.interrupt_kernel())
        reply = kernel.loop.run_until_complete(kernel.client.get_shell_msg(timeout=20))
        assert reply["parent_header"]["msg_id"] == waits
        assert reply["content"]["ename"] == "KeyboardInterrupt"
        assert pid_of(kernel) == pid


def test_what_is_to_be_done_at_the_end_is_done(tmp_path):
    with started(cwd=str(tmp_path)) as kernel:
        kernel("import atexit, pathlib; _ = atexit.register(pathlib.Path('left').touch)")
        kernel.loop.run_until_complete(kernel.manager.shutdown_kernel())
    assert (tmp_path / "left").is_file()


def test_what_it_has_started_ends_with_it():
    with started() as kernel:
        child = int(kernel("import subprocess; print(subprocess.Popen(['sleep', '90']).pid)"))
        assert lives(child)
        kernel.loop.run_until_complete(kernel.manager.shutdown_kernel(now=True))
        assert comes(lambda: not lives(child))


def test_one_that_dies_is_seen():
    with started() as kernel:
        pid = pid_of(kernel)
        os.kill(pid, signal.SIGKILL)
        alive = kernel.manager.is_alive
        assert comes(lambda: not kernel.loop.run_until_complete(alive()))


@pytest.mark.parametrize("imported_with", [[], ["other runs"]])
def test_where_nothing_fits_a_kernel_is_started_as_jupyter_starts_it(monkeypatch, imported_with):
    monkeypatch.setattr(kernels, "_imported_with", imported_with)
    with started() as kernel:
        assert kernel("import sys, multiprocessing as m; print(m.parent_process())") == "None"
        assert "JPY_PARENT_PID" in kernel("import os; print(dict(os.environ))")


def test_none_outlives_an_asker_that_is_killed(tmp_path):
    script = tmp_path / "asker.py"
    script.write_text(
        textwrap.dedent("""
            import asyncio, time
            from trustlab.folder.kernels import Manager, import_once

            async def main():
                import_once([])
                manager = Manager(kernel_name="python3")
                await manager.start_kernel()
                assert "_Started" in repr(manager.provisioner.process)
                print(manager.provisioner.pid, flush=True)
                time.sleep(120)

            if __name__ == "__main__":
                asyncio.run(main())
        """)
    )
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as asker:
        assert asker.stdout
        pid = int(asker.stdout.readline())
        assert lives(pid)
        asker.kill()
    assert comes(lambda: not lives(pid))
