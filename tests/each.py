"""One test for many values: it tries them all, then fails with every one that failed, by name."""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

LONGEST_NAME = 200
SHARED = {"capsys", "capfd", "caplog", "recwarn", "house_style"}
"""Fixtures in which the next value would find what one value left."""


def each(
    names: str | Sequence[str],
    values: Iterable[Any],
    ids: Iterable[str] | Callable[[Any], Any] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Written like ``pytest.mark.parametrize``, but one test, whose message names all that fails.

    For many quick values: a test of its own costs each of them some milliseconds. Every value has
    a ``tmp_path`` and a ``monkeypatch`` of its own. ``ValueError`` where there are no values, or
    where the test uses a fixture of :data:`SHARED`.
    """
    names = [n.strip() for n in names.split(",")] if isinstance(names, str) else list(names)
    rows = [tuple(v) if len(names) > 1 else (v,) for v in values]
    called = _names(names, rows, ids)
    if not rows:
        raise ValueError(f"no values for {', '.join(names)}: the test could not fail")

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)
        if shared := SHARED & set(signature.parameters):
            raise ValueError(f"{test.__name__} uses {', '.join(sorted(shared))}: parametrize it")

        @functools.wraps(test)
        def every(**fixtures: Any) -> None:
            failed = []
            for i, (name, row) in enumerate(zip(called, rows, strict=True)):
                try:
                    with ExitStack() as stack:
                        own = _own(fixtures, str(i), stack)
                        test(**own, **dict(zip(names, row, strict=True)))
                except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
                    failed.append(f"{name}: {type(error).__name__}{_place(error)}: {error}")
            if failed:
                told = "\n\n".join(failed)
                pytest.fail(f"{len(failed)} of {len(rows)} fail\n\n{told}", pytrace=False)

        rest = [p for name, p in signature.parameters.items() if name not in names]
        every.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        del every.__wrapped__  # pytest would look there for the arguments
        return every

    return decorate


def _own(fixtures: dict[str, Any], name: str, stack: ExitStack) -> dict[str, Any]:
    """The fixtures for one value: an empty folder, and patches that are undone after it."""
    own = dict(fixtures)
    if "tmp_path" in own:
        own["tmp_path"] = own["tmp_path"] / name
        own["tmp_path"].mkdir()
    if "monkeypatch" in own:
        own["monkeypatch"] = stack.enter_context(pytest.MonkeyPatch.context())
    return own


def _place(error: BaseException) -> str:
    """The line of a test file from which ``error`` came."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename).name.startswith("test_")]
    return f" in line {lines[-1]}" if lines else ""


def _names(names: Sequence[str], rows: Sequence[tuple], ids: Any) -> list[str]:
    """What each row is called in a message."""
    if ids is not None and not callable(ids):
        given = [str(name) for name in ids]
        if len(given) != len(rows):
            raise ValueError(f"{len(given)} ids for {len(rows)} values")
        return given

    def told(i: int, name: str, value: Any) -> str:
        given = ids(value) if callable(ids) else None
        if given is not None:
            return str(given)
        shown = repr(value)
        return f"{name} number {i}" if " at 0x" in shown else f"{name}={shown}"

    called = [", ".join(map(told, [i] * len(row), names, row)) for i, row in enumerate(rows)]
    return [t if len(t) <= LONGEST_NAME else f"{t[:LONGEST_NAME]}..." for t in called]
