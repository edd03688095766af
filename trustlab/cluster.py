"""Gives work to the workers of a Dask cluster."""

from __future__ import annotations

import asyncio
import hashlib
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import trustlab
from trustlab.stops import Gone, Unlike

T = TypeVar("T")
WAIT_S = 60.0
"""Without a scheduler or a worker for so long, a run stops."""
LOOKS_EVERY_S = 1.0
LOCAL = "local:"
Facts = dict[str, Any]


class Cluster:
    """The workers of the scheduler at ``address`` ("tcp://HOST:PORT", "tls://HOST:PORT"), or of one
    that is started here ("local:N": with N workers).

    - ``hosts``: the scheduler's, and each that had a worker since. They see what is worked on.
    - :class:`~trustlab.stops.Gone`: no scheduler, or no worker within :data:`WAIT_S`.
    - :class:`~trustlab.stops.Unlike`: workers of several threads, or of other versions.
    """

    def __init__(self, address: str) -> None:
        from dask import config
        from dask.distributed import Client, LocalCluster

        self.address = address
        scheduler: Any = address
        if address.startswith(LOCAL):
            n_workers = int(address.removeprefix(LOCAL))
            scheduler = LocalCluster(
                n_workers=n_workers, threads_per_worker=1, dashboard_address=None
            )
        # a part's records are larger than a graph should be by default
        config.set({"distributed.admin.large-graph-warning-threshold": "1GB"})
        try:
            self._client = Client(scheduler, timeout=WAIT_S, set_as_default=False)
        except OSError as error:
            reason = f"no scheduler answers within {WAIT_S:.0f} s: {error}"
            raise Gone(f"cluster {address}: {reason}") from error
        self.hosts = {_host(self._client.scheduler.address)}
        self._versions = self.ask_each(versions)
        # which may lack the libraries of models
        here = {"trustlab": versions()["trustlab"]}
        _compare("this process", here, address, self._versions)

    def workers(self) -> list[str]:
        """The addresses of the workers; the first is awaited."""
        deadline = time.monotonic() + WAIT_S
        while True:
            try:
                n_threads = self._client.nthreads()
            except OSError as error:
                raise Gone(f"cluster {self.address}: its scheduler is gone") from error
            self.hosts.update(map(_host, n_threads))
            for worker, n in n_threads.items():
                if n > 1:
                    lack = (
                        f"worker {worker} has {n} threads, which cannot share a model"
                    )
                    raise Unlike(f"{lack}; start it with --nthreads 1")
            if n_threads:
                return sorted(n_threads)
            if time.monotonic() > deadline:
                raise Gone(f"cluster {self.address}: no worker within {WAIT_S:.0f} s")
            time.sleep(LOOKS_EVERY_S / 4)

    def ask_each(self, function: Callable[..., Facts], *arguments: Any) -> Facts:
        """The facts that ``function`` gives on every worker; ``Unlike`` where two differ, or where
        it fails."""
        facts_by_worker: dict[str, Any] = {}
        while not facts_by_worker:
            self.workers()
            answers = self._client.run(_apart, function, *arguments, on_error="return")
            # one that ended meanwhile answers nothing
            workers = self.workers()
            facts_by_worker = {
                worker: answers[worker] for worker in workers if worker in answers
            }
        first, *_ = facts_by_worker
        for worker, facts in facts_by_worker.items():
            if isinstance(facts, Exception):
                raise Unlike(f"worker {worker}: {facts}") from facts
            _compare(worker, facts, first, facts_by_worker[first])
        return facts_by_worker[first]

    def completed(
        self, function: Callable[..., T], calls: Iterable[tuple]
    ) -> Iterator[tuple[int, T]]:
        """The place of each of the calls' arguments and what ``function`` gives of it, as soon as
        it is there. At most two calls for each worker are under way."""
        executor = self._client.get_executor(pure=False)
        places: dict[Future[T], int] = {}
        waiting = enumerate(calls)
        try:
            while True:
                n_new = max(0, 2 * len(self.workers()) - len(places))
                for place, arguments in islice(waiting, n_new):
                    future = executor.submit(
                        _on_worker, self._versions, function, *arguments
                    )
                    places[future] = place
                if not places:
                    return
                done, _ = wait(places, LOOKS_EVERY_S, FIRST_COMPLETED)
                for future in done:
                    yield places.pop(future), future.result()
        except CancelledError as error:
            reason = "its scheduler is gone"
            raise Gone(f"cluster {self.address}: {reason}") from error
        finally:
            for future in places:
                future.cancel()

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """What ``function`` gives on one of the workers."""
        [(_, result)] = self.completed(function, [arguments])
        return result


_open_cluster = cache(Cluster)
_used: list[Cluster] = []
"""The cluster that is used, if one is."""


def use(address: str | None) -> None:
    """From now on what spreads over processes goes to this cluster; ``None``: it stays here."""
    _used.clear()
    if address is not None:
        _used.append(_open_cluster(address))


def used() -> Cluster | None:
    """The cluster that is used."""
    return _used[0] if _used else None


def facts() -> Facts:
    """For a manifest: the cluster that is used, and the hosts that saw what was worked on."""
    cluster = used()
    if cluster is None:
        return {}
    return {"cluster": cluster.address, "cluster_hosts": sorted(cluster.hosts)}


@cache
def versions() -> Facts:
    """Of this process: trustlab with a hash of its code, torch and transformers ('': not there)."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(file.read_bytes())
    by_library = {"trustlab": f"{trustlab.__version__} {digest.hexdigest()[:8]}"}
    for library in ("torch", "transformers"):
        try:
            by_library[library] = version(library)
        except PackageNotFoundError:
            by_library[library] = ""
    return by_library


def _compare(place: str, facts: Facts, other_place: str, other_facts: Facts) -> None:
    """``Unlike`` where the facts of two places differ."""
    for name, fact in facts.items():
        other = other_facts[name]
        if fact != other:
            both = f"{name} is {fact!r} at {place}, and {other!r} at {other_place}"
            raise Unlike(f"{both}; it must be the same at all workers")


def _host(address: str) -> str:
    return urlsplit(address).hostname or address


async def _apart(function: Callable[..., T], *arguments: Any) -> T:
    """In a thread, so that the worker goes on speaking to its scheduler."""
    return await asyncio.to_thread(function, *arguments)


def _on_worker(expected: Facts, function: Callable[..., T], *arguments: Any) -> T:
    """What ``function`` gives, on a worker that may have come after the others were asked."""
    _compare(socket.gethostname(), versions(), "the others", expected)
    return function(*arguments)
