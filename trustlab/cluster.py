"""Gives work to the workers of a Dask cluster."""

from __future__ import annotations

import asyncio
import hashlib
import pickle
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, wait
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

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
    - ``ValueError``: "tls://..." without a certificate in Dask's configuration.
    - :class:`~trustlab.stops.Gone`: no scheduler, or no worker within :data:`WAIT_S`.
    - :class:`~trustlab.stops.Unlike`: workers of several threads, or of other versions.
    """

    def __init__(self, address: str) -> None:
        from dask import config
        from dask.distributed import Client, LocalCluster

        has_certificate = config.get("distributed.comm.tls.client.cert")
        if address.startswith("tls:") and not has_certificate:
            raise ValueError(
                f"cluster={address!r} needs certificates; set DASK_DISTRIBUTED__COMM__TLS__CA_FILE,"
                " DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT and"
                " DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY"
            )
        config.set(
            {
                # a part's records are larger than a graph should be by default
                "distributed.admin.large-graph-warning-threshold": "1GB",
                # of workers that are started here: nobody looks at it
                "distributed.worker.profile.enabled": False,
            }
        )
        self.address = address
        scheduler: Any = address
        if address.startswith(LOCAL):
            n_workers = int(address.removeprefix(LOCAL))
            # without a limit of memory nothing is spilled to a disk
            scheduler = LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                memory_limit=0,
                dashboard_address=cast(Any, None),
            )
        try:
            self._client: Any = Client(scheduler, timeout=WAIT_S, set_as_default=False)
        except OSError as error:
            raise Gone(f"cluster {address}: no scheduler answers: {error}") from error
        self.hosts: set[Any] = set()
        # torch and transformers need not be here
        self.ask_each(versions, here={"trustlab": code_sha256()})

    def workers(self) -> set[str]:
        """The addresses of the workers; the first is awaited."""
        n_threads: dict[str, int] = {}
        try:
            while not n_threads:  # the one that was awaited may have ended since
                self._client.wait_for_workers(1, WAIT_S)
                n_threads = self._client.nthreads()
        except OSError as error:
            raise Gone(f"cluster {self.address}: {error}") from error
        for address in (self._client.scheduler.address, *n_threads):
            self.hosts.add(urlsplit(address).hostname)
        if set(n_threads.values()) != {1}:
            raise Unlike(f"workers have {n_threads} threads; start with --nthreads 1")
        return set(n_threads)

    def ask_each(
        self, function: Callable[..., Facts], *arguments: Any, here: Facts
    ) -> Facts:
        """The facts that ``function`` gives on every worker, and those of this process, ``here``;
        ``Unlike`` where it fails on one, or two differ in a fact that both have."""
        self.workers()
        # in a thread, so that each goes on speaking to its scheduler
        answers = self._client.run(
            asyncio.to_thread, function, *arguments, on_error="return"
        )
        facts = here
        place = "this process"
        # one that has ended is none, one that has just come is not asked
        for worker in answers.keys() & self.workers():
            answer = answers[worker]
            if isinstance(answer, Exception):
                raise Unlike(f"worker {worker}: {answer}") from answer
            for name in facts.keys() & answer:
                both = f"{answer[name]} at {worker}, and {facts[name]} at {place}"
                if answer[name] != facts[name]:
                    raise Unlike(
                        f"{name} must be the same at all workers; it is {both}"
                    )
            facts = facts | answer
            place = worker
        return facts

    def completed(
        self, function: Callable[..., T], calls: Iterable[tuple]
    ) -> Iterator[T]:
        """``function`` of each of the calls' arguments, as soon as it is there."""
        executor = self._client.get_executor(pure=False)
        futures = set()
        for arguments in calls:
            # as bytes: the scheduler need not import what it only passes on
            call = pickle.dumps((function, arguments))
            futures.add(executor.submit(_unpacked, call))
        while futures:
            done, futures = wait(futures, LOOKS_EVERY_S, FIRST_COMPLETED)
            for future in done:
                try:
                    yield future.result()
                except CancelledError as error:
                    raise Gone(
                        f"cluster {self.address}: its scheduler is gone"
                    ) from error
            self.workers()

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """What ``function`` gives on one of the workers."""
        [result] = self.completed(function, [arguments])
        return result


def _unpacked(call: bytes) -> Any:
    function, arguments = pickle.loads(call)
    return function(*arguments)


_open_cluster = cache(Cluster)
used: Cluster | None = None
"""The cluster that is used."""


def use(address: str | None) -> None:
    """From now on what spreads over processes goes to this cluster; ``None``: it stays here."""
    global used
    used = None if address is None else _open_cluster(address)


def facts() -> Facts:
    """For a manifest: the cluster that is used, and the hosts that saw what was worked on."""
    if used is None:
        return {}
    return {"cluster": used.address, "cluster_hosts": sorted(used.hosts)}


@cache
def code_sha256() -> str:
    """Of this process's trustlab, the first 16 hex digits."""
    files = sorted(Path(__file__).parent.rglob("*.py"))
    code = b"".join(map(Path.read_bytes, files))
    return hashlib.sha256(code).hexdigest()[:16]


def versions() -> Facts:
    """Of what replies depend on, in this process."""
    by_library = {library: version(library) for library in ("torch", "transformers")}
    return {"trustlab": code_sha256(), **by_library}
