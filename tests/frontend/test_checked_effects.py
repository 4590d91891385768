"""The differential mode: what a call does outside of what it reaches happens once."""

from __future__ import annotations

import contextlib
import functools
import io
import logging
import types
import warnings
import zlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from magweld.frontend import trace

X = torch.ones(3)
module = types.ModuleType("written")


@pytest.fixture(autouse=True)
def _module() -> None:
    vars(module).update(flag=False, items=[])


def records_its_warnings(x: Tensor) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("early", stacklevel=1)
        y = x + 1
    return y, [str(item.message) for item in caught]


def records_its_warnings_over_a_break(x: Tensor) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("early", stacklevel=1)
        y = x + 1
        zlib.crc32(b"a break")
        warnings.warn("late", stacklevel=1)
        y = y * 2
    return y, [str(item.message) for item in caught]


def records_warnings_twice(x: Tensor) -> Any:
    with warnings.catch_warnings(record=True) as outer:
        warnings.simplefilter("always")
        y = x + 1
        with warnings.catch_warnings(record=True) as inner:
            zlib.crc32(b"a break")
            warnings.warn("inner", stacklevel=1)
            y = y * 2
        zlib.crc32(b"a break")
        warnings.warn("outer", stacklevel=1)
        y = y - 3
    return y, len(outer), len(inner)


def warns_once(x: Tensor) -> Tensor:
    y = x + 1
    warnings.warn("careful", stacklevel=1)
    return y


def writes_a_module(x: Tensor) -> Tensor:
    module.flag = not module.flag
    return x * 2 if module.flag else x * 3


def writes_a_module_over_a_break(x: Tensor) -> Tensor:
    module.flag = not module.flag
    y = x * 2
    zlib.crc32(b"a break")
    module.flag = not module.flag if module.flag else module.flag
    module.items.append(1)
    return y + len(module.items) % 2


def redirects_over_a_break(x: Tensor) -> Any:
    buffer = io.StringIO()
    with contextlib.redirect_stdout(buffer):
        y = x + 1
        zlib.crc32(b"a break")
        y = y * 2
    return y


PROGRAMS = [
    records_its_warnings,
    records_its_warnings_over_a_break,
    records_warnings_twice,
    warns_once,
    writes_a_module,
    writes_a_module_over_a_break,
    redirects_over_a_break,
]


def outcome(program: Callable[..., Any], calls: int) -> Any:
    """Return what some calls give, and what they leave."""
    vars(module).update(flag=False, items=[])
    globals().get("__warningregistry__", {}).clear()
    found = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        state = {name: vars(warnings)[name] for name in _STATE}
        for _ in range(calls):
            result = program(X)
            parts = result if isinstance(result, tuple) else (result,)
            found.append([p.tolist() if isinstance(p, Tensor) else p for p in parts])
            found.append([module.flag, list(module.items)])
            assert all(vars(warnings)[name] is it for name, it in state.items())
    return found, [str(item.message) for item in caught]


_STATE = ("showwarning", "_showwarnmsg_impl", "filters")


@pytest.mark.parametrize("program", PROGRAMS)
def test_effects_on_modules_happen_once(program: Callable[..., Any]) -> None:
    traced = trace(program, backend="eager", check=True)
    assert outcome(traced, 7) == outcome(program, 7)
    assert traced.stats()["hits"] > 2
    assert traced.stats()["checked"] > 2


def test_a_module_holds_what_the_last_call_has_written() -> None:
    traced = trace(writes_a_module, backend="eager", check=True)
    for number in range(6):
        traced(X)
        assert module.flag == (number % 2 == 0)


@pytest.mark.parametrize("breaks", [False, True])
def test_functions_with_a_cache_are_asked_once(breaks: bool) -> None:
    def run(wrap: Callable[[Any], Any]) -> Any:
        called: list[int] = []

        @functools.lru_cache(maxsize=2)
        def scale(n: int) -> float:
            called.append(n)
            return n * 2.0

        def program(x: Tensor, n: int) -> Tensor:
            y = x * scale(n)
            if breaks:
                zlib.crc32(b"a break")
            return y + scale(n)

        fast, found = wrap(program), []
        for n in (1, 1, 1, 2, 2, 1, 3, 1, 1, 1):
            found.append((fast(X, n).tolist(), scale.cache_info(), list(called)))
        return found

    assert run(lambda f: trace(f, backend="eager", check=True)) == run(lambda f: f)


class Kept(logging.Handler):
    """Keeps all that it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.mark.parametrize("stream", [False, True])
def test_logs_are_told_once(stream: bool) -> None:
    # Without parents: a comparison looks at all that the program reaches, and handlers
    # of pytest reach the reports of all tests before.
    logger = logging.Logger("alone")

    def program(x: Tensor) -> Tensor:
        logger.warning("told")
        return x + 1

    kept, told = Kept(), io.StringIO()
    logger.addHandler(kept)
    if stream:
        logger.addHandler(logging.StreamHandler(told))
    traced = trace(program, backend="eager", check=True)
    for number in range(5):
        traced(X)
        assert len(kept.records) == number + 1
        if stream:
            assert told.getvalue() == "told\n" * (number + 1)
    assert traced.stats()["checked"] > 2


def test_warnings_are_put_into_the_list_of_the_caller_once() -> None:
    traced = trace(warns_once, backend="eager", check=True)
    with warnings.catch_warnings(record=True) as caught:
        for action in ("always", "once"):
            caught.clear()
            warnings.simplefilter(action)
            for number in range(5):
                traced(X)
                expected = number + 1 if action == "always" else 1
                assert len(caught) == expected
