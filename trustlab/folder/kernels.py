"""Kernels that begin with their libraries imported: forked from one process that imports them once.

A kernel of its own takes some seconds of processor time to import pandas, SciPy and the rest; of
nine notebooks that is a quarter of a repeated ``trustlab run all``. Linux alone: elsewhere, and for
another interpreter, kernels are started as Jupyter starts them.
"""

from __future__ import annotations

import atexit
import gc
import multiprocessing
import os
import sys
import threading
from collections.abc import Sequence
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

from trustlab.paths import environment

FORKS = sys.platform == "linux"
"""Whether a process may be forked here once it has imported libraries."""
LIBRARIES = (
    "__main__",
    "ipykernel.kernelapp",
    "matplotlib_inline.backend_inline",
    "trustlab.plots.rows",
)
"""What a notebook imports, but for torch: most have it open no model."""


_imported_with: list[str | None] = []
"""The folder of runs that the process to fork from knows; empty before it is begun."""


def import_once(modules: Sequence[str] = LIBRARIES) -> None:
    """Begin to import what a :class:`Manager`'s kernels will then have, in the process that they
    are forked from; the first call counts, and none where processes are not forked."""
    if FORKS and not _imported_with:
        _imported_with.append(os.environ.get("TRUSTLAB_RUNS"))
        forkserver.set_forkserver_preload(list(modules))
        with environment({"OMP_NUM_THREADS": "1"}):  # a thread of a library's would not be forked
            forkserver.ensure_running()


class Manager(AsyncKernelManager):
    """Starts a kernel by :class:`Forked`."""

    def __init__(self, **traits: Any) -> None:
        super().__init__(**traits)
        self.provisioner = Forked(parent=self, kernel_spec=self.kernel_spec)


class Forked(LocalProvisioner):
    """The kernel is a fork of Python's fork server."""

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """As Jupyter's own starts it, where nothing is imported yet, or for other runs, or the
        command is not this interpreter's kernel."""
        ours = [sys.executable, "-m", "ipykernel_launcher"]
        if cmd[:3] != ours or _imported_with != [kwargs["env"].get("TRUSTLAB_RUNS")]:
            return await super().launch_kernel(cmd, **kwargs)
        self.cwd = kwargs.get("cwd") or os.getcwd()
        self.process = _Started(cmd[3:], self.cwd, kwargs["env"])
        self.pid = self.process.pid
        return self.connection_info


class _Started:
    """A forked kernel, as :class:`subprocess.Popen` shows a started one."""

    stdin = stdout = stderr = None

    def __init__(self, arguments: Sequence[str], cwd: str, variables: dict[str, str]) -> None:
        forks = multiprocessing.get_context("forkserver")
        given = (tuple(arguments), str(cwd), dict(variables))
        self.process: BaseProcess = forks.Process(target=_kernel, args=given)
        self.process.start()
        self.pid = self.process.pid

    def poll(self) -> int | None:
        return self.process.exitcode

    def wait(self) -> int | None:
        self.process.join()
        return self.process.exitcode

    def send_signal(self, signum: int) -> None:
        """To the kernel and what it has started, as Jupyter's own does."""
        if self.poll() is None and self.pid:
            leads = os.getpgid(self.pid) == self.pid  # not yet, for a moment after the fork
            (os.killpg if leads else os.kill)(self.pid, signum)

    def kill(self) -> None:
        self.process.kill()

    def terminate(self) -> None:
        self.process.terminate()


def _kernel(arguments: Sequence[str], cwd: str, variables: dict[str, str]) -> None:
    """Become the kernel; it ends with the process that asked for it, however that ends."""
    from ipykernel.kernelapp import IPKernelApp

    gc.freeze()  # what is imported is never looked through for circles
    os.setsid()  # what interrupts the asker does not reach it, as with a kernel of Jupyter's
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(variables)
    threading.Thread(target=_end_with_asker, daemon=True).start()
    try:
        IPKernelApp.launch_instance(argv=list(arguments), parent_handle=os.getppid())
    finally:
        atexit._run_exitfuncs()  # a fork leaves without them


def _end_with_asker() -> None:
    if asker := multiprocessing.parent_process():
        asker.join()
        os._exit(1)
