from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor

from magweld.artifact import (
    ExternalStep,
    Place,
    Program,
    Value,
)
from magweld.runtime.frame import RunExternal
from magweld.runtime.program import LoadedProgram

INPUT, ARENA, OUTPUT = Place.INPUT, Place.ARENA, Place.OUTPUT
VIEW, ADOPTED, CONSTANT = Place.VIEW, Place.ADOPTED, Place.CONSTANT
SHAPE = (4, 8)


def test_results_of_two_calls_share_nothing(
    no_externals: RunExternal, chain_program: Program
) -> None:
    loaded = LoadedProgram(chain_program, no_externals)
    x, y = torch.randn(SHAPE), torch.randn(SHAPE)
    (first,) = loaded([x])
    kept = first.clone()
    (second,) = loaded([y])
    assert first.data_ptr() != second.data_ptr()
    assert torch.equal(first, kept)
    second.zero_()
    (third,) = loaded([x])
    assert torch.equal(third, kept)


def test_parameters_are_read_anew_on_each_call(
    no_externals: RunExternal, chain_program: Program
) -> None:
    loaded = LoadedProgram(chain_program, no_externals)
    parameter = torch.nn.Parameter(torch.ones(SHAPE))
    assert torch.equal(loaded([parameter])[0], torch.full(SHAPE, 10.0))
    parameter.data = torch.zeros(SHAPE)
    (result,) = loaded([parameter])
    assert torch.equal(result, torch.full(SHAPE, 3.0))
    assert not result.requires_grad


def test_call_after_an_exception_is_right(
    external_program: Callable[..., Program],
) -> None:
    def run(node: str, tensors: Sequence[Tensor]) -> tuple[Tensor]:
        if tensors[0][0, 0] < 0:
            raise ZeroDivisionError("from the external")
        return (tensors[0] + 1,)

    loaded = LoadedProgram(external_program(ARENA), run)
    with pytest.raises(ZeroDivisionError):
        loaded([torch.full(SHAPE, -1.0)])
    assert torch.equal(loaded([torch.zeros(SHAPE)])[0], torch.ones(SHAPE))


def test_a_call_keeps_nothing_of_the_callers(
    external_program: Callable[..., Program],
) -> None:
    program = external_program(ADOPTED, returns=False)
    loaded = LoadedProgram(program, lambda node, tensors: (tensors[0] + 1,))
    x = torch.zeros(SHAPE)
    (result,) = loaded([x])
    references = [weakref.ref(x), weakref.ref(result)]
    del x, result
    gc.collect()
    assert [r() for r in references] == [None, None]


def test_adopted_tensors_go_when_they_were_read_last() -> None:
    alive: list[bool] = []
    made: list[weakref.ref[Tensor]] = []

    def run(node: str, tensors: Sequence[Tensor]) -> tuple[Tensor]:
        alive.extend(reference() is not None for reference in made)
        result = tensors[0] + 1
        made.append(weakref.ref(result))
        return (result,)

    program = Program(
        values=(
            Value(SHAPE, "f32", INPUT),
            *(Value(SHAPE, "f32", ADOPTED) for _ in range(3)),
        ),
        steps=tuple(ExternalStep("f", (i,), (i + 1,)) for i in range(3)),
        results=(3,),
        arena_bytes=0,
    )
    LoadedProgram(program, run)([torch.zeros(SHAPE)])
    # Before step 1: [first]; before step 2: [first, second].
    assert alive == [True, False, True]


def test_nested_calls_have_arenas_of_their_own(
    matmul_program: Program,
) -> None:
    depth = 0

    def run(node: str, tensors: Sequence[Tensor]) -> tuple[Tensor]:
        nonlocal depth
        depth += 1
        inner = loaded([tensors[0] + 1])[0] if depth == 1 else torch.zeros(4, 4)
        return (torch.mm(*tensors) + inner,)

    loaded = LoadedProgram(matmul_program, run)
    x = torch.randn(4, 4)
    (result,) = loaded([x])
    square = x @ x
    inner = (square + 1) @ (square + 1) @ (square + 1)
    torch.testing.assert_close(result, square @ x + inner)


def test_one_program_in_many_threads(
    no_externals: RunExternal, chain_program: Program
) -> None:
    loaded = LoadedProgram(chain_program, no_externals)
    wrong: list[int] = []
    barrier = threading.Barrier(8)

    def work(seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        barrier.wait()
        for _ in range(200):
            x = torch.randn(SHAPE, generator=generator)
            (result,) = loaded([x])
            if not torch.allclose(result, 3 * (2 * x + 1) + x, atol=1e-5):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_concurrent_calls_never_share_an_arena(matmul_program: Program) -> None:
    barrier = threading.Barrier(6, timeout=60)
    addresses: list[int] = []

    def run(node: str, tensors: Sequence[Tensor]) -> tuple[Tensor]:
        addresses.append(tensors[0].data_ptr())
        barrier.wait()  # all six calls are inside now
        return (torch.mm(*tensors),)

    loaded = LoadedProgram(matmul_program, run)
    x = torch.randn(4, 4)
    results: list[Tensor] = []
    threads = [
        threading.Thread(target=lambda: results.extend(loaded([x]))) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(addresses)) == 6
    assert len({r.data_ptr() for r in results}) == 6
    for result in results:
        torch.testing.assert_close(result, x @ x @ x)
