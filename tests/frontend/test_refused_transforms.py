"""A recording may end anywhere in a transform: torch is afterwards as it was before."""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, func
from torch.autograd import forward_ad
from torch.utils import _pytree as pytree

from magweld.frontend import trace
from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.operators import below, recorder
from magweld.frontend.operators.torch_state import torch_state

WEIGHT = torch.linspace(-1, 1, 4)


def row(v: Tensor) -> Tensor:
    # In forward mode torch runs code of Python for the second operator.
    shifted = torch.ones(4) + v.sin()
    copy = shifted.clone()
    copy.mul_(WEIGHT)
    return copy * copy


def total(v: Tensor) -> Tensor:
    return row(v).sum()


class Twice(torch.autograd.Function):
    """A function with derivatives of its own, which transforms take apart."""

    generate_vmap_rule = True

    @staticmethod
    def forward(v: Tensor) -> Tensor:
        return v.sin() * 2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad * ctx.saved_tensors[0].cos() * 2

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor) -> Tensor:
        return tangent * ctx.saved_tensors[0].cos() * 2


def custom(v: Tensor) -> Tensor:
    return Twice.apply(v) * v


PROGRAMS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "vmap": lambda x, w: func.vmap(row)(x),
    "grad": lambda x, w: func.grad(total)(w),
    "jvp": lambda x, w: func.jvp(row, (w,), (w + 1,)),
    "rows of grad": lambda x, w: func.vmap(func.grad(total))(x),
    "rows of jvp": lambda x, w: func.vmap(lambda v: func.jvp(row, (v,), (v,)))(x),
    "jvp of rows": lambda x, w: func.jvp(func.vmap(row), (x,), (x + 1,)),
    "jvp of grad": lambda x, w: func.jvp(func.grad(total), (w,), (w + 1,)),
    "jacrev": lambda x, w: func.jacrev(row)(w),
    "jacfwd": lambda x, w: func.jacfwd(row)(w),
    "rows of a custom function": lambda x, w: func.vmap(
        func.grad(lambda v: custom(v).sum())
    )(x),
    "jvp of a custom function": lambda x, w: func.jvp(custom, (w,), (w,)),
}


def state() -> tuple[Any, ...]:
    """Return what decides about operators of this thread."""
    return (
        torch_state(),
        str(torch._C._dispatch_tls_local_include_set()),
        str(torch._C._dispatch_tls_local_exclude_set()),
        torch._C._functorch.peek_interpreter_stack(),
        torch._C._is_fwd_grad_enabled(),
        forward_ad._current_level,
        sys.gettrace(),
    )


def computed() -> list[Tensor]:
    """Return what each program gives, and what an ordinary one and a dual level do."""
    x, w = torch.linspace(0, 1, 12).view(3, 4), torch.linspace(1, 2, 4)
    found = [program(x, w) for program in PROGRAMS.values()]
    leaf = w.clone().requires_grad_()
    (leaf * leaf).sum().backward()
    with forward_ad.dual_level():
        dual = tuple(forward_ad.unpack_dual(forward_ad.make_dual(w, x[0]) * 2))
    return pytree.tree_leaves([found, leaf.grad, dual, x + 1])


class Nth:
    """Does something at the n-th time that it is asked, and counts.

    Args:
        number: n, from 1.
    """

    def __init__(self, number: int, act: Callable[[], None]) -> None:
        self.number, self.act, self.count = number, act, 0

    def ask(self) -> None:
        self.count += 1
        if self.count == self.number:
            self.act()


def _refuse() -> None:
    raise StopRecordingError("native-call", "asked for")


def _fail() -> None:
    raise KeyError("a fault of the monitor")


def _at_operators(patch: pytest.MonkeyPatch, nth: Nth) -> None:
    """Ask before each operator that is left when all transforms are done."""
    record = below._record

    def asking(*given: Any) -> None:
        nth.ask()
        record(*given)

    patch.setattr(below, "_record", asking)


def _at_calls(patch: pytest.MonkeyPatch, nth: Nth) -> None:
    """Ask at each call of torch in a transform."""
    run = recorder.run_opaque

    def asking(session: Any, *given: Any) -> Any:
        try:
            nth.ask()
        except StopRecordingError as stop:
            session.stop(stop)
        return run(session, *given)

    patch.setattr(recorder, "run_opaque", asking)


def _at_instructions(patch: pytest.MonkeyPatch, nth: Nth) -> None:
    """Ask before each instruction of a function that is transformed."""
    step = Observer._step

    def asking(self: Observer, *given: Any) -> None:
        if self.session.shown:
            nth.ask()
        step(self, *given)

    patch.setattr(Observer, "_step", asking)


Where = Callable[[pytest.MonkeyPatch, Nth], None]
# Where the recording ends, how, and how many places apart.
WAYS: dict[str, tuple[Where, Callable[[], None], int]] = {
    "operator": (_at_operators, _refuse, 1),
    "fault at an operator": (_at_operators, _fail, 7),
    "call": (_at_calls, _refuse, 1),
    "instruction": (_at_instructions, _refuse, 29),
    "fault at an instruction": (_at_instructions, _fail, 67),
}


@contextlib.contextmanager
def asked(where: Where, nth: Nth) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        where(patch, nth)
        yield


@pytest.mark.sample(14)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("way", WAYS)
def test_torch_is_as_before_where_a_recording_ends_in_a_transform(
    way: str, name: str
) -> None:
    where, act, apart = WAYS[way]
    program = PROGRAMS[name]
    x, w = torch.linspace(-1, 1, 12).view(3, 4), torch.linspace(0, 1, 4)
    expected = pytree.tree_leaves(program(x, w))
    before, values = state(), computed()
    for number in itertools.count(1, apart):
        nth, traced = Nth(number, act), trace(program, backend="eager")
        with asked(where, nth):
            found = pytree.tree_leaves(traced(x, w))
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
        assert state() == before, number
        if nth.count < number:
            break
        assert traced.breaks, number
    assert number > 1 or way == "call" or nth.count == 0
    torch.testing.assert_close(computed(), values, rtol=0, atol=0)
    assert state() == before


class StopHereError(Exception):
    """Raised by a function that is transformed."""


MAKERS: dict[str, Callable[[Any, Tensor, Tensor], Any]] = {
    "vmap": lambda f, x, w: func.vmap(f)(x),
    "grad": lambda f, x, w: func.grad(f)(w),
    "jvp": lambda f, x, w: func.jvp(f, (w,), (w,)),
    "rows of grad": lambda f, x, w: func.vmap(func.grad(f))(x),
    "jacfwd": lambda f, x, w: func.jacfwd(f)(w),
}


def ending(call: Callable[..., Any], x: Tensor, w: Tensor) -> str:
    """Return what a call gives, or that it raises."""
    try:
        return str(call(x, w))
    except StopHereError:
        return "raised"


def raising(make: Any, caught: bool, place: int) -> Callable[[Tensor, Tensor], Any]:
    """Return a program whose transformed function raises in front of an operator."""

    def inner(v: Tensor) -> Tensor:
        for number in range(3):
            if number == place:
                raise StopHereError
            v = v.sin() + torch.ones(4)
        return v.sum()

    def catching(x: Tensor, w: Tensor) -> Any:
        try:
            return make(inner, x, w)
        except StopHereError:
            return x * 2

    return catching if caught else lambda x, w: make(inner, x, w)


@pytest.mark.parametrize("caught", [True, False])
@pytest.mark.parametrize("name", MAKERS)
def test_torch_is_as_before_where_the_function_raises(name: str, caught: bool) -> None:
    x, w = torch.linspace(-1, 1, 12).view(3, 4), torch.linspace(0, 1, 4)
    before, values = state(), computed()
    for place in range(4):
        program = raising(MAKERS[name], caught, place)
        traced = trace(program, backend="eager")
        for _ in range(2):
            assert ending(traced, x, w) == ending(program, x, w)
            assert state() == before, place
    torch.testing.assert_close(computed(), values, rtol=0, atol=0)
