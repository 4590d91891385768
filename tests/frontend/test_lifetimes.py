"""Objects end when the program lets go of them: as many references as in eager.

Nothing is collected while a test runs, so cycles count as well. Each program looks at
references behind a break: in the call that is recorded, in hits, in the parts between
breaks, where frames can be left and where they cannot.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from magweld.frontend import trace

CALLS = 4


class Box:
    def __init__(self, item: Any) -> None:
        self.item = item


class Block:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


@pytest.fixture(autouse=True)
def _nothing_is_collected() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(autouse=True)
def _frames_are_the_interpreters_own() -> Iterator[None]:
    """While a hook evaluates frames the interpreter keeps arguments of calls twice.

    torch counts the threads that want its hook, and a thread that ended while it did is
    counted for ever. So the interpreter itself is asked, not torch.
    """
    api = ctypes.pythonapi
    api.PyInterpreterState_Get.restype = ctypes.c_void_p
    api._PyInterpreterState_GetEvalFrameFunc.restype = ctypes.c_void_p
    interpreter = ctypes.c_void_p(api.PyInterpreterState_Get())
    before = ctypes.c_void_p(api._PyInterpreterState_GetEvalFrameFunc(interpreter))
    api._PyInterpreterState_SetEvalFrameFunc(interpreter, api._PyEval_EvalFrameDefault)
    yield
    api._PyInterpreterState_SetEvalFrameFunc(interpreter, before)


def counts(*objects: Any) -> list[int]:
    return [sys.getrefcount(obj) for obj in objects]


def are_gone(*references: Any) -> list[bool]:
    return [reference() is None for reference in references]


def variables(x: Tensor) -> Any:
    h, box = x * 2, Box(x * 3)
    os.getpid()
    first = sys.getrefcount(h), sys.getrefcount(box), sys.getrefcount(box.item)
    kept = [h]
    y = h * box.item
    second = sys.getrefcount(h), sys.getrefcount(y), sys.getrefcount(kept)
    references = weakref.ref(h), weakref.ref(box), weakref.ref(box.item)
    del h, kept
    box = 1
    return x, y, first, second, are_gone(*references)


def frames_inside(x: Tensor) -> Any:
    def inner(h: Any) -> Any:
        os.getpid()
        count = sys.getrefcount(h)
        reference = weakref.ref(h)
        h = None
        return count, reference() is None

    h = x * 2
    return inner(h), inner(x * 3), inner(Box(x)), sys.getrefcount(h), h


def operands(x: Tensor) -> Any:
    def inner(h: Any) -> float:
        os.getpid()
        return float(sys.getrefcount(h))

    return (x * 2).add(inner(x * 3) + inner(Box(1))), [inner(x + 1)]


def loop(x: Tensor) -> Any:
    seen, h = [], None
    for number in range(3):
        h = x * number
        os.getpid()
        reference = weakref.ref(h)
        h = h + 1
        seen += [reference() is None, sys.getrefcount(h)]
    return seen


def exceptions(x: Tensor) -> Any:
    references = []

    def raising(h: Tensor) -> None:
        h = h * 2
        os.getpid()
        references.append(weakref.ref(h))
        raise ValueError(h)

    try:
        raising(x)
    except ValueError:
        pass
    h = x * 3
    references.append(weakref.ref(h))
    try:
        raise KeyError(h)
    except KeyError:
        h = None
    return are_gone(*references)


def cells(x: Tensor) -> Any:
    h = x * 2

    def read() -> Tensor:
        return h

    os.getpid()
    count = sys.getrefcount(h)
    y = read() + 1
    reference = weakref.ref(h)
    del read
    h = None
    return y, count, reference() is None


def containers(x: Tensor) -> Any:
    items: list[Any] = [x * 2, Box(x)]
    box = Box(Box(x * 3))
    os.getpid()
    seen = [sys.getrefcount(item) for item in items]
    references = [*map(weakref.ref, items), weakref.ref(box.item)]
    items.clear()
    box.item = None
    return seen, are_gone(*references)


def from_the_break(x: Tensor) -> Any:
    made = torch.from_numpy(x.numpy().copy())
    before = sys.getrefcount(made)
    y = x + made
    after = sys.getrefcount(made)
    reference = weakref.ref(made)
    del made
    return y, before, after, reference() is None


def branches(x: Tensor) -> Any:
    h = x * 2
    os.getpid()
    y = h + 1 if h.sum() > 100 else h + 2
    count = sys.getrefcount(h), sys.getrefcount(y)
    reference = weakref.ref(h)
    del h
    return y, count, reference() is None


def not_read_any_more(x: Tensor) -> Any:
    kept = [x * 2, Box(x)]
    references = weakref.ref(kept[0]), weakref.ref(kept[1])
    os.getpid()
    return x * 3, are_gone(*references)


def not_read_by_the_caller(x: Tensor) -> Any:
    def watched() -> list[bool]:
        os.getpid()
        return are_gone(weakref.ref(h), weakref.ref(box))

    h, box = x * 2, Box(x)
    return watched(), x * 3


class Module(nn.Module):
    def forward(self, x: Tensor) -> Any:
        h = x * 2
        os.getpid()
        count, reference = sys.getrefcount(h), weakref.ref(h)
        del h
        return x * 3, count, reference() is None


PROGRAMS: list[Callable[[Tensor], Any]] = [
    variables,
    frames_inside,
    operands,
    loop,
    exceptions,
    cells,
    containers,
    from_the_break,
    branches,
    not_read_any_more,
    not_read_by_the_caller,
    Module(),
]


def plain(program: Any) -> Any:
    return program


def in_a_block(program: Any) -> Any:
    """Frames are not left where a `with` is around the break."""

    def run(*args: Any) -> Any:
        with Block():
            return program(*args)

    return run


def behind_a_break(program: Any) -> Any:
    def run(x: Tensor) -> Any:
        y = x * 1.0
        os.getpid()
        return program(y)

    return run


@pytest.mark.parametrize("around", [plain, in_a_block, behind_a_break])
@pytest.mark.parametrize(
    "program", PROGRAMS, ids=lambda p: getattr(p, "__name__", "module")
)
def test_as_many_references_as_in_eager(program: Any, around: Any) -> None:
    run = around(program)
    expected = [repr(run(torch.ones(2))) for _ in range(CALLS)]
    fast = trace(run, backend="eager")
    found = [repr(fast(torch.ones(2))) for _ in range(CALLS)]
    assert found == expected, fast.explain()


def test_what_a_program_raises_keeps_only_what_it_would() -> None:
    references: list[Any] = []

    def program(x: Tensor) -> None:
        h, box = x * 2, Box(x)
        os.getpid()
        references.extend([weakref.ref(h), weakref.ref(box)])
        raise KeyError(int(h.sum()))

    fast = trace(program, backend="eager")
    for _ in range(CALLS):
        with pytest.raises(KeyError):
            fast(torch.ones(2))
    assert len(references) == 2 * CALLS
    assert all(are_gone(*references)), fast.explain()


def test_a_graph_that_raises_keeps_nothing_for_the_run_in_its_place() -> None:
    ends: list[int] = []

    def program(x: Tensor, index: Tensor) -> Tensor:
        h = x * 2
        os.getpid()
        k = h * 3
        h = None
        try:
            y = torch.take(k, index)
        except IndexError:
            ends.append(sys.getrefcount(k))
            y = x
        return y + 1

    fast = trace(program, backend="eager")
    for index in (1, 0, -9, 1, -9):
        fast(torch.ones(2), torch.tensor(index))
    assert ends == [2, 2]
    assert any(refused.id == "hit-raised" for refused in fast.breaks)


def test_arguments_end_behind_calls_whose_guards_fail() -> None:
    fast = trace(lambda x, box: (x * box.item).sum(), backend="eager")
    references = []
    for dtype in (torch.float32, torch.int32, torch.float64) * 3:
        x, box = torch.ones(3, dtype=dtype), Box(2)
        references += [weakref.ref(x), weakref.ref(box)]
        fast(x, box)
        del x, box
        assert all(are_gone(*references)), fast.explain()


@pytest.mark.parametrize("raises", [False, True])
@pytest.mark.parametrize("check", [False, True])
def test_no_call_keeps_what_it_got(check: bool, raises: bool) -> None:
    """Not until the collector runs either: calls are observed, hits, and compared."""

    def program(x: Tensor, kept: list[Any], end: bool) -> Tensor:
        kept[0] = None
        y = x * 2
        if end:
            raise ValueError
        return y

    traced = trace(program, backend="eager", check=check, dynamic=False)
    for number in range(5):
        x, old = torch.ones(3), Box(None)
        given, dropped = weakref.ref(x), weakref.ref(old)
        kept = [old]
        del old
        with suppress(ValueError):
            traced(x, kept, raises and number % 2 == 1)
        assert dropped() is None, number
        del x
        assert given() is None, number


def raises_itself(x: Tensor, box: Box, index: Tensor) -> Tensor:
    box.item = Box(None)
    x = x * 2
    if int(index) > 5:
        raise ValueError
    return x


def operator_raises(x: Tensor, box: Box, index: Tensor) -> Tensor:
    box.item = Box(None)
    x = x * 2
    return torch.take(x, index)


def raises_behind_a_break(x: Tensor, box: Box, index: Tensor) -> Tensor:
    os.getpid()
    return operator_raises(x, box, index)


def raises_while_handling(x: Tensor, box: Box, index: Tensor) -> Tensor:
    try:
        return operator_raises(x, box, index)
    except IndexError:
        raise KeyError from None


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize(
    "program",
    [
        raises_itself,
        operator_raises,
        raises_behind_a_break,
        raises_while_handling,
        in_a_block(raises_behind_a_break),
    ],
    ids=lambda program: program.__qualname__,
)
def test_an_exception_that_is_kept_keeps_only_what_it_would(
    program: Any, check: bool
) -> None:
    """Frames of its traceback keep their callers: in eager these have no variables."""

    def gone(run: Any) -> list[Any]:
        box, errors, found = Box(Box(None)), [], []
        for number in range(8):
            x = torch.ones(3)
            references = weakref.ref(x), weakref.ref(box.item)
            try:
                run(x, box, torch.tensor(9 if number % 3 == 2 else 0))
            except (ValueError, LookupError) as error:
                errors.append(error)
            del x
            found.append(are_gone(*references))
        assert len(errors) == 2
        return found

    fast = trace(program, backend="eager", check=check)
    assert gone(fast) == gone(program), fast.explain()
