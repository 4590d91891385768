"""Calls that are one function of native code give what others give, in all states."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.profiler import profile
from torch.utils._python_dispatch import TorchDispatchMode

from magweld.artifact import Place, Program, Value
from magweld.runtime import native_calls as calls
from magweld.runtime import whole_calls
from magweld.runtime.frame import RunExternal
from magweld.runtime.machine import HOST
from magweld.runtime.native_calls import native_calls
from magweld.runtime.program import LoadedProgram

SHAPE = (4, 8)
Build = Callable[[Sequence[Any]], bytes]


def test_torch_lets_native_code_make_results() -> None:
    assert native_calls() is not None


@pytest.fixture
def program(affine: Any, build_object: Build) -> Program:
    """x, y -> (x + 1, x + y, 2 * y), the results in another order, y seen as a view."""
    kernels = (
        affine("one", (0,), 3, 32, 1.0, 1.0),
        affine("sum", (0, 2), 4, 32),
        affine("twice", (2,), 5, 32, 2.0),
    )
    return Program(
        values=(
            Value(SHAPE, "f32", Place.INPUT, index=0),
            Value(SHAPE, "f32", Place.INPUT, index=1),
            Value((32,), "f32", Place.VIEW, index=1),
            *(Value(SHAPE, "f32", Place.OUTPUT) for _ in range(3)),
        ),
        steps=tuple(kernel.step for kernel in kernels),
        results=(5, 3, 4),
        arena_bytes=0,
        objects=(build_object(kernels),),
    )


@pytest.fixture
def loaded(program: Program, no_externals: RunExternal) -> LoadedProgram:
    return LoadedProgram(program, no_externals)


def expected(x: Tensor, y: Tensor) -> list[Tensor]:
    return [2 * y, x + 1, x + y]


def is_whole(loaded: LoadedProgram) -> bool:
    """Whether calls are such functions."""
    return loaded._whole_on(loaded._make_frame()) is not None


def test_results_are_new_each_time(loaded: LoadedProgram) -> None:
    assert is_whole(loaded)
    kept = []
    for number in range(20):
        x, y = torch.full(SHAPE, float(number)), torch.randn(SHAPE)
        results = loaded([x, y])
        assert type(results) is list
        kept.append((results, expected(x, y)))
    for results, right in kept:
        assert all(map(torch.equal, results, right))
    storages = {t.untyped_storage().data_ptr() for results, _ in kept for t in results}
    assert len(storages) == 60


def test_results_are_plain_tensors(loaded: LoadedProgram) -> None:
    x, y = torch.randn(SHAPE), torch.randn(SHAPE)
    loaded([x, y])
    for grad in (torch.no_grad, torch.enable_grad, torch.inference_mode):
        with grad():
            (result, *_), made = loaded([x, y]), torch.empty(SHAPE)
        assert type(result) is Tensor
        assert result.is_inference() == made.is_inference()
        assert not result.requires_grad
        assert result.is_leaf
        assert sys.getrefcount(result) == sys.getrefcount(made)
        if not result.is_inference():
            assert result._version == 0
            result.add_(1)
            assert result._version == 1
            result.untyped_storage().resize_(4096)
            result.resize_(16, 64)


def test_results_end_with_their_last_reference(loaded: LoadedProgram) -> None:
    x, y = torch.randn(SHAPE), torch.randn(SHAPE)
    loaded([x, y])
    counts = sys.getrefcount(x), sys.getrefcount(y)
    results = loaded([x, y])
    gone = [weakref.ref(result) for result in results]
    del results
    gc.collect()
    assert all(one() is None for one in gone)
    assert (sys.getrefcount(x), sys.getrefcount(y)) == counts


def test_a_program_ends_with_its_last_reference(
    program: Program, no_externals: RunExternal
) -> None:
    """Its memory must not wait for the collector."""
    loaded = LoadedProgram(program, no_externals)
    like = LoadedProgram(program, no_externals, like=loaded)
    x, y = torch.randn(SHAPE), torch.randn(SHAPE)
    for one in (loaded, like, like, loaded, like):
        assert all(map(torch.equal, one([x, y]), expected(x, y)))
    gc.collect()
    gc.disable()
    try:
        ends = [weakref.ref(one) for one in (loaded, like, loaded._whole_calls)]
        del one, like, loaded
        assert all(end() is None for end in ends)
    finally:
        gc.enable()


def test_a_mode_sees_nothing(loaded: LoadedProgram) -> None:
    class Seen(TorchDispatchMode):
        calls = 0

        def __torch_dispatch__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            self.calls += 1
            return function(*args, **(kwargs or {}))

    x, y = torch.randn(SHAPE), torch.randn(SHAPE)
    loaded([x, y])
    with Seen() as seen, torch.device("meta"):
        results = loaded([x, y])
    assert seen.calls == 0
    assert all(map(torch.equal, results, expected(x, y)))


def test_profilers_are_shown_the_kernels(loaded: LoadedProgram) -> None:
    x, y = torch.randn(SHAPE), torch.randn(SHAPE)
    loaded([x, y])
    with profile() as seen:
        results = loaded([x, y])
    assert all(map(torch.equal, results, expected(x, y)))
    assert any("one" in event.name for event in seen.events())


def test_what_torch_refuses_is_an_error_as_before(loaded: LoadedProgram) -> None:
    x, y = torch.randn(SHAPE), torch.randn(SHAPE)
    loaded([x, y])
    with pytest.raises(RuntimeError, match="a tensor has no memory"):
        loaded.call_alike([x, torch.randn(SHAPE).to_sparse()])
    assert all(map(torch.equal, loaded([x, y]), expected(x, y)))


def test_a_result_without_memory_is_an_error_of_torch(
    affine: Any, build_object: Build, no_externals: RunExternal
) -> None:
    kernel = affine("one", (0,), 1, 1, 1.0, 1.0)
    program = Program(
        values=(
            Value((1,), "f32", Place.INPUT),
            Value((1 << 44,), "f32", Place.OUTPUT),
        ),
        steps=(kernel.step,),
        results=(1,),
        arena_bytes=0,
        objects=(build_object([kernel]),),
    )
    loaded = LoadedProgram(program, no_externals)
    assert is_whole(loaded)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="allocate"):
            loaded([torch.ones(1)])


def test_types_and_empty_results(
    affine: Any, build_object: Build, no_externals: RunExternal
) -> None:
    kernel = affine("one", (0,), 1, 32, 1.0, 1.0)
    types = {"i1": torch.bool, "i64": torch.int64, "f16": torch.float16}
    others = tuple(
        Value(shape, name, Place.OUTPUT)
        for name in types
        for shape in ((), (0, 3), (2, 1, 3))
    )
    program = Program(
        values=(
            Value(SHAPE, "f32", Place.INPUT),
            Value(SHAPE, "f32", Place.OUTPUT),
            *others,
        ),
        steps=(replace(kernel.step, writes=(*range(1, 2 + len(others)),)),),
        results=tuple(range(1, 2 + len(others))),
        arena_bytes=0,
        objects=(build_object([kernel]),),
    )
    loaded = LoadedProgram(program, no_externals)
    assert is_whole(loaded)
    x = torch.randn(SHAPE)
    for _ in range(3):
        first, *rest = loaded([x])
        assert torch.equal(first, x + 1)
        found = [(tuple(t.shape), t.dtype) for t in rest]
        assert found == [
            (shape, dtype)
            for dtype in types.values()
            for shape in ((), (0, 3), (2, 1, 3))
        ]


def test_other_programs_run_as_before(
    chain_program: Program, matmul_program: Program, no_externals: RunExternal
) -> None:
    assert is_whole(LoadedProgram(chain_program, no_externals))
    twice = replace(chain_program, results=(3, 3))
    assert not is_whole(LoadedProgram(twice, no_externals))
    kept = replace(chain_program, results=(3, 1))
    assert not is_whole(LoadedProgram(kept, no_externals))
    assert not is_whole(LoadedProgram(matmul_program, no_externals))


def test_where_torch_lacks_a_function_calls_run_as_before(
    monkeypatch: pytest.MonkeyPatch, program: Program, no_externals: RunExternal
) -> None:
    monkeypatch.setattr(calls, "_WRAP", "no_such_function")
    assert native_calls.__wrapped__() is None
    monkeypatch.setattr(whole_calls, "native_calls", lambda: None)
    loaded = LoadedProgram(program, no_externals)
    assert not is_whole(loaded)
    for _ in range(3):
        x, y = torch.randn(SHAPE), torch.randn(SHAPE)
        assert all(map(torch.equal, loaded([x, y]), expected(x, y)))


def test_results_that_differ_are_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    def other(shape: Any, stride: Any, dtype: torch.dtype) -> Tensor:
        return torch.empty_strided(shape, stride, dtype=dtype)[None]

    monkeypatch.setattr(HOST, "empty", other, raising=False)
    assert native_calls.__wrapped__() is None


def test_threads_call_at_once(loaded: LoadedProgram) -> None:
    x, y = torch.randn(SHAPE), torch.randn(SHAPE)
    right, wrong = expected(x, y), []

    def run() -> None:
        for _ in range(200):
            if not all(map(torch.equal, loaded([x, y]), right)):
                wrong.append(1)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
