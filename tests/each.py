"""One test for many values: it tries them all, then fails with every one that failed, by name."""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

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
    called = (
        list(ids) if ids is not None and not callable(ids) else [_name(row, ids) for row in rows]
    )
    if not rows or len(called) != len(rows):
        raise ValueError(f"{len(rows)} values and {len(called)} ids for {', '.join(names)}")

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)
        if shared := SHARED & set(signature.parameters):
            raise ValueError(f"{test.__name__} uses {', '.join(sorted(shared))}: parametrize it")

        @functools.wraps(test)
        def every(**fixtures: Any) -> None:
            failed = []
            for i, (name, row) in enumerate(zip(called, rows, strict=True)):
                own = dict(fixtures)
                try:
                    with ExitStack() as stack:
                        if "tmp_path" in own:
                            own["tmp_path"] = own["tmp_path"] / str(i)
                            own["tmp_path"].mkdir()
                        if "monkeypatch" in own:
                            patch = stack.enter_context(pytest.MonkeyPatch.context())
                            own["monkeypatch"] = patch
                        test(**own, **dict(zip(names, row, strict=True)))
                except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
                    frames = traceback.extract_tb(error.__traceback__)
                    lines = [f.lineno for f in frames if "/test_" in f.filename][-1:]
                    failed.append(f"{name}: {type(error).__name__} in line {lines}: {error}")
            if failed:
                said = "\n\n".join(failed)
                pytest.fail(f"{len(failed)} of {len(rows)} fail\n\n{said}", pytrace=False)

        rest = [p for name, p in signature.parameters.items() if name not in names]
        every.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        del every.__wrapped__  # pytest would look there for the arguments
        return every

    return decorate


def _name(row: Sequence[Any], ids: Callable[[Any], Any] | None) -> str:
    """What a row is called in a message."""
    called = [ids(value) if ids else None for value in row]
    return ", ".join(str(c or repr(v)) for c, v in zip(called, row, strict=True))[:200]
