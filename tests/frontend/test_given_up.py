"""What a program meets whose recording was given up: torch and Python as in eager.

Classes of tensors, and transforms of torch that call operators from within, tell most
easily that something still stands between the program and torch.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.overrides import (
    TorchFunctionMode,
    handle_torch_function,
    has_torch_function,
    wrap_torch_function,
)
from torch.utils import _python_dispatch as dispatch
from torch.utils.checkpoint import checkpoint

from magweld.frontend import trace

CALLS = 4


class Tagged(torch.Tensor):
    """Results of operators on it are of its class."""


class Untouched(torch.Tensor):
    """Results of operators on it are plain tensors."""

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]


class Noting(torch.Tensor):
    """Takes note of the functions that it gets."""

    seen: list[str] = []

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        cls.seen.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


def values(result: Any) -> Any:
    """Return what can be compared of a result, without asking its class."""
    if isinstance(result, tuple):
        return tuple(map(values, result))
    if isinstance(result, torch.Tensor):
        with torch._C.DisableTorchFunction():
            return type(result).__name__, result.requires_grad, result.tolist()
    return result


def seen_of(function: Callable[..., Any], *args: Any) -> Any:
    """Return what a call gives or raises, and what `Noting` has seen in it."""
    Noting.seen.clear()
    try:
        result = function(*args)
    except Exception as error:
        result = type(error).__name__
    return values(result), list(Noting.seen)


def leaf(x: torch.Tensor) -> torch.Tensor:
    return x.detach().clone().requires_grad_()


def backward(x: torch.Tensor) -> Any:
    one = leaf(x)
    (one * one).sum().backward()
    return one.grad


def twice_differentiated(x: torch.Tensor) -> Any:
    one = leaf(x)
    (first,) = torch.autograd.grad((one**3).sum(), one, create_graph=True)
    return first, torch.autograd.grad(first.sum(), one)


def checkpointed(x: torch.Tensor) -> Any:
    one = leaf(x)
    checkpoint(lambda v: (v.sin() * v).sum(), one, use_reentrant=False).backward()
    return one.grad


def called_functionally(x: torch.Tensor) -> Any:
    linear = torch.nn.Linear(3, 2, bias=False)
    return torch.func.functional_call(linear, {"weight": x}, (torch.ones(1, 3),))


TRANSFORMS: dict[str, Callable[[torch.Tensor], Any]] = {
    "vmap": torch.vmap(lambda row: row * 2),
    "vmap in vmap": torch.vmap(torch.vmap(lambda one: one + one)),
    "grad": torch.func.grad(lambda v: (v * v).sum()),
    "grad in vmap": torch.vmap(torch.func.grad(lambda v: (v * v).sum())),
    "jacrev": torch.func.jacrev(lambda v: v.sin()),
    "jvp": lambda x: torch.func.jvp(lambda v: v * v, (x,), (x,)),
    "vjp": lambda x: torch.func.vjp(lambda v: v * v, x)[1](torch.ones(2, 3)),
    "backward": backward,
    "twice": twice_differentiated,
    "checkpoint": checkpointed,
    "functional_call": called_functionally,
    "index out of range": lambda x: x[torch.tensor([7])],
}
# Where the recording is given up.
PROGRAMS: dict[str, Callable[[Any, torch.Tensor], Any]] = {
    "within": lambda transform, x: transform(x),
    "before": lambda transform, x: transform(x + 1),
    "behind a plain operator": lambda transform, x: transform(torch.ones(2, 3) * 2 + x),
    "behind": lambda transform, x: (transform(torch.ones(2, 3)), x * 2),
    "by what it is": lambda transform, x: transform(x) if x.dim() > 1 else x,
}


@pytest.mark.sample(120)
@pytest.mark.parametrize("kind", [torch.Tensor, Tagged, Untouched, Noting])
@pytest.mark.parametrize("way", PROGRAMS)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_types_and_values_are_those_of_eager(
    transform: str, way: str, kind: Any
) -> None:
    def program(x: torch.Tensor) -> Any:
        return PROGRAMS[way](TRANSFORMS[transform], x)

    def given() -> torch.Tensor:
        return torch.arange(6.0).reshape(2, 3).as_subclass(kind)

    torch.manual_seed(0)
    expected = seen_of(program, given())
    fast = trace(program, backend="eager")
    for _ in range(CALLS):
        torch.manual_seed(0)
        assert seen_of(fast, given()) == expected, fast.explain()


@pytest.fixture(autouse=True)
def _no_mode_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take back what torch knows of modes: threads of other tests write it as well."""
    monkeypatch.setattr(dispatch, "_is_in_torch_dispatch_mode", False)


def around() -> tuple[Any, ...]:
    """Return what a program may see of what observes it."""
    return (
        torch._C._len_torch_function_stack(),
        torch._C._len_torch_dispatch_stack(),
        dispatch.is_in_torch_dispatch_mode(),
        gc.isenabled(),
        sys.gettrace() is None,
    )


class Passing(TorchFunctionMode):
    """A mode that does nothing."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


class PassingBelow(dispatch.TorchDispatchMode):
    """The same below autograd."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def pieces(x: torch.Tensor) -> Iterator[Any]:
    yield x.numpy().ctypes.data > 0
    yield x


def by_class(x: torch.Tensor) -> Any:
    y = x.as_subclass(Tagged)
    return y.sum(), *around()


def by_error(x: torch.Tensor) -> Any:
    try:
        x.view(-7)
    except RuntimeError:
        return around()


def in_generator(x: torch.Tensor) -> Any:
    return next(iter(list(pieces(x)))), *around()


def in_callback(x: torch.Tensor) -> Any:
    return sorted([2, 1], key=lambda key: (key, str(x.numpy().ctypes)[:4]))[0], around()


def within_a_mode(x: torch.Tensor) -> Any:
    with Passing():
        (x + 1).as_subclass(Tagged).sum()
    with PassingBelow():
        y = (x + 1).as_subclass(Tagged).sum()
        y = y + y
    return y, around()


@pytest.mark.parametrize(
    "program", [by_class, by_error, in_generator, in_callback, within_a_mode]
)
def test_nothing_is_left_that_observes(program: Callable[..., Any]) -> None:
    expected = values(program(torch.ones(3)))
    fast = trace(program, backend="eager")
    for _ in range(CALLS):
        assert values(fast(torch.ones(3))) == expected, fast.explain()
        assert around() == (0, 0, False, True, True)


@pytest.mark.parametrize("kind", [Passing, PassingBelow])
@pytest.mark.parametrize("tagged", [False, True])
def test_a_mode_that_the_program_leaves_open_stays(kind: Any, tagged: bool) -> None:
    def program(x: torch.Tensor, mode: Any) -> torch.Tensor:
        y = x * 2
        if tagged:
            y = y.as_subclass(Tagged) + 1
        mode.__enter__()
        return y + 1

    def stacks() -> tuple[list[Any], list[Any]]:
        functions = torch.overrides._get_current_function_mode_stack()
        return functions, dispatch._get_current_dispatch_mode_stack()

    fast = trace(program, backend="eager")
    for _ in range(CALLS):
        mode = kind()
        fast(torch.ones(3), mode)
        found, flag = stacks(), dispatch.is_in_torch_dispatch_mode()
        mode.__exit__(None, None, None)
        assert found == (([mode], []) if kind is Passing else ([], [mode]))
        assert flag is (kind is PassingBelow)
        assert around() == (0, 0, False, True, True)


def test_a_mode_that_was_entered_before_stays_below() -> None:
    """One that the program enters is taken out of no stack but its own way."""
    order: list[str] = []

    class Ordered(Passing):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def __torch_function__(self, func: Any, *args: Any, **kwargs: Any) -> Any:
            order.append(self.name)
            return super().__torch_function__(func, *args, **kwargs)

    def program(x: torch.Tensor) -> Any:
        with Ordered("outer"):
            with Ordered("inner"):
                y = x.as_subclass(Tagged) + 1
            return y * 2

    def run(function: Callable[..., Any]) -> Any:
        order.clear()
        return values(function(torch.ones(3))), list(order)

    expected = run(program)
    fast = trace(program, backend="eager")
    for _ in range(CALLS):
        assert run(fast) == expected


calls: list[int] = []


def own_function(x: torch.Tensor) -> torch.Tensor:
    if has_torch_function((x,)):
        calls.append(1)
        return handle_torch_function(own_function, (x,), x)  # type: ignore[no-any-return]
    calls.append(2)
    return x * 2


@wrap_torch_function(lambda x: (x,))
def wrapped_function(x: torch.Tensor) -> torch.Tensor:
    calls.append(3)
    return x * 2


def who_is_there(x: torch.Tensor) -> torch.Tensor:
    calls.append(torch._C._len_torch_function_stack())
    calls.append(torch._C._len_torch_dispatch_stack())
    return x * 2


@pytest.mark.parametrize("kind", [torch.Tensor, Tagged])
@pytest.mark.parametrize("function", [own_function, wrapped_function, who_is_there])
def test_the_program_is_not_told_of_the_modes(function: Any, kind: Any) -> None:
    def program(x: torch.Tensor) -> Any:
        calls.clear()
        y = function(x + 1)
        calls.append(4)
        return y * len(calls), tuple(calls)

    def given() -> torch.Tensor:
        return torch.ones(3).as_subclass(kind)

    expected = values(program(given()))
    fast = trace(program, backend="eager")
    for _ in range(CALLS):
        assert values(fast(given())) == expected, fast.explain()


def test_operators_of_higher_order_run() -> None:
    """Torch refuses them under a mode that does not take them."""

    class Applied(torch._ops.HigherOrderOperator):
        def __call__(self, function: Any, x: torch.Tensor) -> Any:
            return super().__call__(function, x)

    applied = Applied("magweld_test_applied")
    applied.fallthrough(torch._C.DispatchKey.AutogradCPU)
    applied.py_impl(torch._C.DispatchKey.CompositeExplicitAutograd)(
        lambda function, x: function(x)
    )

    def program(x: torch.Tensor) -> Any:
        calls.clear()

        def body(y: torch.Tensor) -> torch.Tensor:
            calls.append(1)
            return y * 2

        return applied(body, x + 1), len(calls)

    expected = values(program(torch.ones(3)))
    fast = trace(program, backend="eager")
    for _ in range(CALLS):
        assert values(fast(torch.ones(3))) == expected, fast.explain()


def test_another_traced_callable_has_hits_behind_the_end_of_a_recording() -> None:
    inner = trace(lambda x: x * 3, backend="eager")

    def program(x: torch.Tensor) -> Any:
        y = x.as_subclass(Tagged) + 1
        return y, inner(torch.ones(3))

    fast = trace(program, backend="eager")
    for _ in range(CALLS):
        assert values(fast(torch.ones(3))) == values(program(torch.ones(3)))
    assert inner.stats()["hits"] > 0
