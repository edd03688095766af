"""Spreads work over processes that end with their parent, and says how far it is."""

from __future__ import annotations

import ctypes
import gc
import math
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache, partial
from typing import Any, TypeVar

from joblib import Parallel, delayed, effective_n_jobs
from joblib.externals.loky import ProcessPoolExecutor, process_executor
from joblib.parallel import get_active_backend
from tqdm import tqdm

from trustlab import cluster

T = TypeVar("T")
# seconds between two looks of a worker at whether its parent still lives
LOOKS_EVERY_S = 1.0


def processes(n_jobs: int) -> int:
    """How many are used here for ``n_jobs``, -1 for all: at most those that joblib's active backend
    offers, and none where a cluster is used. ``ValueError`` for 0."""
    if cluster.used is not None:
        return 0
    return min(effective_n_jobs(n_jobs), effective_n_jobs(-1))


def spread(function: Callable[..., T], calls: Iterable[tuple], n_jobs: int) -> list[T]:
    """``function`` of each of the calls' arguments, in their order: by the cluster that is used,
    else in :func:`processes` of ``n_jobs``, which end with their parent, however it ends."""
    tasks = ((place, function, *arguments) for place, arguments in enumerate(calls))
    results = dict(as_they_come(_placed, tasks, n_jobs))
    return [results[place] for place in sorted(results)]


def as_they_come(
    function: Callable[..., T], calls: Iterable[tuple], n_jobs: int
) -> Iterable[T]:
    """The same one by one, each as soon as it is there, in any order; at the end, where joblib's
    active backend gives a list alone."""
    if cluster.used is not None:
        return cluster.used.completed(function, calls)
    backend: Any = get_active_backend()[0]
    return_as = "generator_unordered" if backend.supports_return_generator else "list"
    jobs = (
        delayed(_in_worker)(os.getpid(), function, *arguments) for arguments in calls
    )
    parallel: Any = Parallel(n_jobs=processes(n_jobs), return_as=return_as)
    return parallel(jobs)


def _placed(place: int, function: Callable[..., T], *arguments: Any) -> tuple[int, T]:
    return place, function(*arguments)


@contextmanager
def beside(
    n_jobs: int, first: Callable[..., object]
) -> Iterator[Callable[..., Future[Any]]]:
    """Begins calls that are done in one process beside this one, in turn, or by the cluster that is
    used. ``begin(function, *arguments)`` gives what will hold its result. With one of
    :func:`processes` each is done at once, here. ``first``: a function whose module that process
    imports first."""
    if cluster.used is not None:
        with ThreadPoolExecutor() as pool:
            yield partial(pool.submit, cluster.used.call)
        return
    if processes(n_jobs) == 1:
        yield _at_once
        return
    # joblib's own: it needs no guard in the user's script
    with ProcessPoolExecutor(1) as pool:
        begin = partial(pool.submit, _in_worker, os.getpid())
        begin(callable, first)
        yield begin


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Python looks for circles among objects less often meanwhile: records, and pages made of them,
    are many and hold none."""
    youngest, *older = gc.get_threshold()
    # One may stand within another, and Python takes a C int.
    gc.set_threshold(min(100 * youngest, 1 << 30), *older)
    try:
        yield
    finally:
        gc.set_threshold(youngest, *older)


def progress(
    total: int, unit: str, what: str, is_shown: bool, note: str = ""
) -> tqdm[Any]:
    """A bar in a terminal or a notebook; elsewhere, as in a log, its state once a minute. ``note``
    stands at its end."""
    # a kernel's stderr is no terminal, but draws bars
    is_in_kernel = type(sys.stderr).__module__ == "ipykernel.iostream"
    is_drawn = is_in_kernel or sys.stderr.isatty()
    every_s = 0.1 if is_drawn else 60.0
    return tqdm(
        total=total,
        unit=unit,
        desc=what,
        postfix=note,
        leave=False,
        disable=not is_shown,
        mininterval=every_s,
        miniters=1,
        delay=every_s,
        position=None if is_drawn else 0,
    )


def _at_once(function: Callable[..., T], *arguments: Any) -> Future[T]:
    future: Future[T] = Future()
    future.set_result(function(*arguments))
    return future


def _in_worker(asker: int, function: Callable[..., T], *arguments: Any) -> T:
    _end_with(asker, os.getpid())
    result = function(*arguments)
    if os.getpid() != asker:
        # joblib ends a worker that grows, as one that leaks; what grows here are opened models.
        process_executor._MAX_MEMORY_LEAK_SIZE = math.inf
        # another system's: freed memory stays here
        with suppress(OSError, AttributeError):
            ctypes.CDLL("libc.so.6").malloc_trim(0)
    return result


# once in each process: a fork inherits what its parent remembers, not its number
@cache
def _end_with(asker: int, own: int) -> None:
    """In a child of ``asker``, watch that it lives; nothing in itself, or in another's process."""
    parent = multiprocessing.parent_process()
    # A fork server's children have another parent; 1 adopts those whose own is gone.
    if parent is not None and parent.pid == asker and os.getppid() in (asker, 1):
        threading.Thread(target=_watch, args=(asker,), daemon=True).start()


def _watch(asker: int) -> None:
    while os.getppid() == asker:
        time.sleep(LOOKS_EVERY_S)
    os._exit(1)
