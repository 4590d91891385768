"""Code that tells calls apart that run eagerly: as keys do, if nothing else looks."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from magweld.frontend import trace
from magweld.frontend.call_kinds import kind_of
from magweld.frontend.eager_kinds import eager_kinds
from magweld.frontend.profitability import Profitability, _Lost, _Times


class Meta(type):
    """Classes whose hash is code of a program."""

    def __hash__(cls) -> int:
        return 7


class Odd(metaclass=Meta):
    """One of these."""


@dataclass
class Left:
    left: int = 2


X = torch.ones(2, 3)
CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((), {}),
    ((X,), {}),
    ((torch.ones(3, 2),), {}),
    ((X.double(),), {}),
    ((X, X), {}),
    ((X, 1), {}),
    ((X, 2), {}),
    ((X, 1.0), {}),
    ((X, True), {}),
    ((X, "a"), {}),
    ((X, "a" * 2), {}),
    ((X, None), {}),
    ((X, [1]), {}),
    ((X, {}), {}),
    ((X, nn.Parameter(X)), {}),
    ((X, Odd()), {}),
    ((X,), {"y": X}),
    ((X,), {"y": 1}),
    ((X,), {"y": 1, "z": X}),
    ((X,), {"z": X, "y": 1}),
    ((), {"y": X}),
]


def test_code_tells_kinds_apart_as_keys_do() -> None:
    for (args, kwargs), (other, named) in itertools.product(CALLS, repeat=2):
        kind, left = kind_of(args, kwargs), Left()
        is_eager = eager_kinds({kind: left}, is_module=False)
        if is_eager is None:
            assert any(isinstance(value, (nn.Parameter, Odd)) for value in args)
            continue
        same = kind == kind_of(other, named)
        assert is_eager(other, named) == same, (args, kwargs, other, named)
        assert left.left == 2 - same


def test_calls_of_a_kind_come_to_an_end() -> None:
    lefts = [Left(), Left(1)]
    kinds = dict(zip((kind_of((X,), {}), kind_of((X, 1), {})), lefts, strict=True))
    is_eager = eager_kinds(kinds, is_module=True)
    assert is_eager is not None
    found = [is_eager((X,), {}) for _ in range(4)]
    assert found == [True, True, False, False]
    assert is_eager((X, 1), {})
    assert not is_eager((X, 1), {})
    lefts[0].left = 1
    assert is_eager((X,), {})


def test_kinds_that_differ_in_sizes_alone_are_told_apart_however_many() -> None:
    calls = [
        ((torch.ones(size, other), 1), {"y": torch.ones(3, size)})
        for size in range(1, 6)
        for other in (2, 4)
    ]
    kinds = {kind_of(*call): Left(number) for number, call in enumerate(calls)}
    single = (torch.ones(3), 2.0), {}
    kinds[kind_of(*single)] = Left(1)
    is_eager = eager_kinds(kinds, is_module=False)
    assert is_eager is not None
    for number, call in enumerate(calls):
        assert sum(is_eager(*call) for _ in range(20)) == number
    assert sum(is_eager(*single) for _ in range(20)) == 1
    kinds = {kind: Left(1) for kind in kinds}
    is_eager = eager_kinds(kinds, is_module=False)
    assert is_eager is not None
    x, y = calls[0][0][0], calls[0][1]["y"]
    for other, named in (
        ((x, 2), {"y": y}),
        ((x, True), {"y": y}),
        ((x.double(), 1), {"y": y}),
        ((x, 1), {"z": y}),
        ((x, 1), {"y": torch.ones(3, 2)}),
        ((nn.Parameter(x), 1), {"y": y}),
        ((x, 1, 1), {"y": y}),
        ((torch.ones(4), 2.0), {}),
    ):
        assert not is_eager(other, named)
    assert is_eager((x, 1), {"y": y})


def test_many_kinds_are_told_apart_by_keys() -> None:
    kinds = {kind_of((X, number), {}): Left() for number in range(5)}
    assert eager_kinds(kinds, is_module=False) is None
    assert eager_kinds({}, is_module=False) is None


def lost(left: int) -> _Lost:
    """Return what is known of a kind so many calls of which run eagerly."""
    return _Lost(_Times(), left)


def kept(program: Callable[..., Any], *kinds: Any, **options: Any) -> Any:
    """Trace a program, a million calls of whose kinds run eagerly."""
    fast = trace(program, backend="eager", **options)
    profit = Profitability(compares=False)
    profit.lost.update({kind: lost(1_000_000) for kind in kinds})
    profit.is_open = True
    fast._magweld_engine._profit = profit
    return fast


def program(x: Tensor, log: list[int]) -> Tensor:
    log.append(len(log))
    return x * 2 + len(log)


KIND = kind_of((X, []), {})


def test_calls_that_run_eagerly_are_counted_and_do_what_they_do() -> None:
    fast, log = kept(program, KIND), []
    for number in range(6):
        assert torch.equal(fast(X, log), X * 2 + number + 1)
    assert log == list(range(6))
    assert fast._magweld_engine.is_eager is not None
    stats = fast.stats()
    assert (stats["calls"], stats["eager"], stats["misses"]) == (6, 6, 0)
    # Another kind of calls is recorded.
    for _ in range(3):
        fast(torch.ones(4), [])
    stats = fast.stats()
    assert (stats["calls"], stats["misses"], stats["hits"]) == (9, 1, 2)


def test_another_kind_is_known_from_its_second_call_on() -> None:
    y = torch.ones(7)
    fast, log = kept(program, KIND), []
    fast(X, log)
    first = fast._magweld_engine.is_eager
    fast._magweld_engine._profit.lost[kind_of((y, []), {})] = lost(10)
    fast(y, log)
    second = fast._magweld_engine.is_eager
    assert second is not first
    assert second((X, log), {})
    assert second((y, log), {})
    assert not second((torch.ones(8), log), {})


def test_modes_and_profilers_see_such_calls_as_others() -> None:
    net = nn.Linear(3, 3)
    fast = kept(net, kind_of((X,), {}))
    for _ in range(3):
        fast(X)
    before = fast.stats()["eager"]
    with FlopCounterMode(display=False) as counter:
        fast(X)
    assert counter.get_total_flops() == 2 * 2 * 3 * 3
    assert [item.id for item in fast.breaks] == ["torch-mode"]
    with torch.device("cpu"):
        fast(X)
    assert fast.stats()["eager"] == before
    with torch.profiler.profile() as profile:
        fast(X)
    assert any("magweld: " in event.name for event in profile.events())
    assert fast.stats()["eager"] == before + 1
    assert torch.equal(torch.fx.symbolic_trace(nn.Sequential(fast))(X), net(X))


@pytest.mark.filterwarnings("ignore")
def test_tracers_see_the_program_behind_such_calls() -> None:
    def scaled(x: Tensor) -> Tensor:
        return x * x.shape[0] + 1

    fast, y = kept(scaled, kind_of((X,), {})), torch.randn(2, 3)
    for _ in range(3):
        fast(X)
    torch._dynamo.reset()
    inside = torch.compile(lambda x: fast(x) * 2, backend="eager", fullgraph=True)
    for _ in range(3):
        assert torch.equal(inside(y), scaled(y) * 2)
    assert torch.equal(torch.jit.trace(fast, (X,))(y), scaled(y))
    assert torch.equal(torch.vmap(fast)(y), torch.vmap(scaled)(y))


def test_such_calls_inside_of_other_traced_programs_are_parts_of_them() -> None:
    log: list[int] = []
    inner = kept(lambda x: program(x, log), kind_of((X,), {}))
    outer = trace(lambda x: inner(x) + inner(x * 2), backend="eager")
    for number in range(4):
        expected = X * 6 + 4 * number + 3
        assert torch.equal(outer(X), expected)
        assert len(log) == 2 * number + 2
    assert inner(X) is not None
    assert outer.stats()["breaks"] == 0
    assert inner.stats()["eager"] <= 1


def test_checked_calls_are_checked_first() -> None:
    fast = kept(program, KIND, check=True)
    for _ in range(6):
        fast(X, [])
    assert fast._magweld_engine.is_eager is None


def test_calls_are_counted_once_whatever_becomes_of_their_kind() -> None:
    fast, log = kept(program, KIND), []
    profit = fast._magweld_engine._profit
    one = profit.lost[KIND]
    for number in range(1, 4):
        fast(X, log)
        assert fast.stats()["eager"] == number
    one.left = 1
    one.counted = 1
    fast(X, log)
    one.renew(one.times)
    assert one.left == one.pause
    assert fast.stats()["eager"] == 4
    fast(X, log)
    stats = fast.stats()
    assert stats["calls"] == stats["eager"] == 5
    assert profit.take_eager() == 0


def test_exceptions_of_such_calls_are_those_of_the_program() -> None:
    def raising(x: Tensor) -> Tensor:
        raise KeyError(x.shape[0])

    fast = kept(raising, kind_of((X,), {}))
    for _ in range(3):
        with pytest.raises(KeyError):
            fast(X)
    assert fast.stats()["eager"] == 3


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_tensors_without_sizes_are_a_kind_of_their_own() -> None:
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    fast = kept(lambda x: x * 2, kind_of((X,), {}))
    for _ in range(3):
        # Before and behind the first call that runs eagerly for good.
        assert torch.equal(fast(nested).unbind()[1], torch.full((3,), 2.0))
        assert torch.equal(fast(X), X * 2)
    assert fast._magweld_engine.is_eager is not None
    assert fast.stats()["eager"] == 3
    assert hash(kind_of((nested, X), {"y": nested}))
    fast = kept(lambda x: x * 2, kind_of((nested,), {}))
    assert torch.equal(fast(nested).unbind()[0], torch.full((2,), 2.0))
    assert fast.stats()["eager"] == 1
