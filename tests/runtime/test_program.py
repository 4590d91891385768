from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from magweld.artifact import (
    ExternalStep,
    LibraryStep,
    Place,
    Program,
    Step,
    Value,
)
from magweld.runtime.errors import InputMismatchError, ProgramError
from magweld.runtime.program import LoadedProgram

INPUT, ARENA, OUTPUT = Place.INPUT, Place.ARENA, Place.OUTPUT
VIEW, ADOPTED, CONSTANT = Place.VIEW, Place.ADOPTED, Place.CONSTANT
SHAPE = (4, 8)


def no_externals(node: str, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    raise AssertionError(f"no external in this program: {node}")


def external_program(
    place: Place, result_shape: tuple[int, ...] = SHAPE, *, returns: bool = True
) -> Program:
    """x -> external "f" -> value 1; returned, or copied by external "g"."""
    values = [Value(SHAPE, "f32", INPUT), Value(result_shape, "f32", place)]
    steps: list[Step] = [ExternalStep("f", (0,), (1,))]
    if not returns:
        values.append(Value(result_shape, "f32", OUTPUT))
        steps.append(ExternalStep("g", (1,), (2,)))
    return Program(
        tuple(values), tuple(steps), (len(values) - 1,), arena_bytes=128
    )


def test_kernels_run_in_order(chain_program: Program) -> None:
    x = torch.randn(SHAPE)
    (result,) = LoadedProgram(chain_program, no_externals)([x])
    torch.testing.assert_close(result, 3 * (2 * x + 1) + x)
    assert result.is_contiguous()


def test_results_of_two_calls_share_nothing(chain_program: Program) -> None:
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


def test_parameters_are_read_anew_on_each_call(chain_program: Program) -> None:
    loaded = LoadedProgram(chain_program, no_externals)
    parameter = torch.nn.Parameter(torch.ones(SHAPE))
    assert torch.equal(loaded([parameter])[0], torch.full(SHAPE, 10.0))
    parameter.data = torch.zeros(SHAPE)
    (result,) = loaded([parameter])
    assert torch.equal(result, torch.full(SHAPE, 3.0))
    assert not result.requires_grad


def test_views_show_the_bytes_of_their_roots(
    build_object: Any, affine: Any
) -> None:
    kernels = (
        affine("from_view", (1,), 2, 32, 2.0),  # view of the input -> arena
        affine("to_view", (3,), 5, 32, 1.0, 1.0),  # view of the arena -> view of output
    )
    program = Program(
        values=(
            Value(SHAPE, "f32", INPUT),
            Value((32,), "f32", VIEW, index=0),
            Value((32,), "f32", ARENA),
            Value((8, 4), "f32", VIEW, index=2),
            Value(SHAPE, "f32", OUTPUT),
            Value((2, 16), "f32", VIEW, index=6),
            Value((32,), "f32", VIEW, index=4),
        ),
        steps=tuple(k.step for k in kernels),
        results=(4, 5, 1),
        arena_bytes=128,
        objects=(build_object(kernels),),
    )
    x = torch.randn(SHAPE)
    output, view, flat = LoadedProgram(program, no_externals)([x])
    torch.testing.assert_close(output, 2 * x + 1)
    assert view.shape == (2, 16)
    assert view.data_ptr() == output.data_ptr()
    assert flat.data_ptr() == x.data_ptr()


def test_library_reads_and_writes_planned_buffers() -> None:
    program = Program(
        values=(
            Value((4, 8), "f32", INPUT, index=0),
            Value((6, 8), "f32", INPUT, index=1),
            Value((4, 6), "f32", ARENA, offset=64),
            Value((6, 4), "f32", VIEW, index=2),
            Value((4, 4), "f32", ARENA, offset=192),
            Value((4, 4), "f32", OUTPUT),
        ),
        steps=(
            LibraryStep("matmul", (0, 1), (2,), {"transpose_b": True}),
            LibraryStep("matmul", (2, 3), (4,)),
            LibraryStep("addmm", (4, 2, 3), (5,)),
        ),
        results=(5,),
        arena_bytes=256,
    )
    x, w = torch.randn(4, 8), torch.randn(6, 8)
    product = x @ w.T
    expected = 2 * (product @ product.reshape(6, 4))
    loaded = LoadedProgram(program, no_externals)
    for _ in range(2):
        torch.testing.assert_close(loaded([x, w])[0], expected)


def test_adopted_results_reach_kernels_and_views(
    build_object: Any, affine: Any
) -> None:
    kernel = affine("double", (3,), 4, 5 * 36, 2.0)
    program = Program(
        values=(
            Value((1, 3, 8, 8), "f32", INPUT, index=0),
            Value((5, 3, 3, 3), "f32", INPUT, index=1),
            Value((1, 5, 6, 6), "f32", ADOPTED),
            Value((5, 36), "f32", VIEW, index=2),
            Value((5, 36), "f32", OUTPUT),
        ),
        steps=(
            LibraryStep(
                "convolution",
                (0, 1),
                (2,),
                {"strides": [1, 1], "padding": [0, 0], "dilation": [1, 1]},
            ),
            kernel.step,
        ),
        results=(4, 2),
        arena_bytes=0,
        objects=(build_object([kernel]),),
    )
    x, w = torch.randn(1, 3, 8, 8), torch.randn(5, 3, 3, 3)
    expected = torch.conv2d(x, w)
    doubled, convolved = LoadedProgram(program, no_externals)([x, w])
    torch.testing.assert_close(convolved, expected)
    torch.testing.assert_close(doubled, 2 * expected.reshape(5, 36))


def test_constants_are_shared_and_never_given_away() -> None:
    table = torch.arange(6.0)
    program = Program(
        values=(
            Value((6,), "f32", CONSTANT, index=1),
            Value((2, 3), "f32", VIEW, index=0),
            Value((3,), "i1", CONSTANT, index=0),
        ),
        steps=(),
        results=(0, 1, 0, 2),
        arena_bytes=0,
        constants=(bytes([1, 0, 1]), table.numpy().tobytes()),
    )
    loaded = LoadedProgram(program, no_externals)
    flat, view, again, flags = loaded([])
    assert torch.equal(flat, table)
    assert view.shape == (2, 3)
    # Aliases among the results of one call are those of the program.
    assert again is flat
    assert view.data_ptr() == flat.data_ptr()
    assert flags.tolist() == [True, False, True]
    flat.zero_()
    assert torch.equal(loaded([])[0], table)


def test_results_in_the_arena_are_copied() -> None:
    program = external_program(ARENA)
    loaded = LoadedProgram(program, lambda node, tensors: (tensors[0] + 1,))
    x = torch.randn(SHAPE)
    (first,) = loaded([x])
    (second,) = loaded([x + 1])
    assert torch.equal(first, x + 1)
    assert torch.equal(second, (x + 1) + 1)


@pytest.mark.parametrize("place", [ARENA, OUTPUT, ADOPTED])
@pytest.mark.parametrize("returns", [True, False])
def test_external_results_of_any_layout(place: Place, returns: bool) -> None:
    def run(node: str, tensors: Sequence[Tensor]) -> tuple[Tensor]:
        return (tensors[0].t() if node == "f" else tensors[0] * 1,)

    program = external_program(place, (8, 4), returns=returns)
    x = torch.randn(SHAPE)
    (result,) = LoadedProgram(program, run)([x])
    assert torch.equal(result, x.t())
    assert result.is_contiguous()


def test_external_that_returns_its_operand_does_not_leak_the_arena() -> None:
    program = Program(
        values=(
            Value(SHAPE, "f32", INPUT),
            Value(SHAPE, "f32", ARENA),
            Value(SHAPE, "f32", ADOPTED),
        ),
        steps=(
            ExternalStep("add_one", (0,), (1,)),
            ExternalStep("same", (1,), (2,)),
        ),
        results=(2,),
        arena_bytes=128,
    )
    operations: dict[str, Callable[[Tensor], Tensor]] = {
        "add_one": lambda x: x + 1,
        "same": lambda x: x.view(SHAPE),
    }
    loaded = LoadedProgram(program, lambda node, ts: (operations[node](ts[0]),))
    x = torch.randn(SHAPE)
    (first,) = loaded([x])
    loaded([x + 1])
    assert torch.equal(first, x + 1)


@pytest.mark.parametrize("place", [ARENA, OUTPUT, ADOPTED])
@pytest.mark.parametrize(
    ("results", "message"),
    [
        ((torch.zeros(4, 1),), "has shape"),
        ((torch.zeros(SHAPE, dtype=torch.float64),), "has dtype"),
        ((torch.zeros(SHAPE, device="meta"),), "is on meta"),
        ((torch.zeros(SHAPE).to_sparse(),), "has layout"),
        ((3.0,), "is a float"),
        ((), "returned 0 tensors"),
    ],
)
def test_wrong_external_results_are_refused(
    place: Place, results: tuple[Tensor, ...], message: str
) -> None:
    loaded = LoadedProgram(external_program(place), lambda node, tensors: results)
    with pytest.raises(ProgramError, match=f"external node 'f'.*{message}"):
        loaded([torch.zeros(SHAPE)])


def test_call_after_an_exception_is_right() -> None:
    def run(node: str, tensors: Sequence[Tensor]) -> tuple[Tensor]:
        if tensors[0][0, 0] < 0:
            raise ZeroDivisionError("from the external")
        return (tensors[0] + 1,)

    loaded = LoadedProgram(external_program(ARENA), run)
    with pytest.raises(ZeroDivisionError):
        loaded([torch.full(SHAPE, -1.0)])
    assert torch.equal(loaded([torch.zeros(SHAPE)])[0], torch.ones(SHAPE))


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (torch.zeros(8, 4), "has shape"),
        (torch.zeros(SHAPE, dtype=torch.float64), "has dtype"),
        (torch.zeros(8, 4).t(), "strides"),
        (torch.zeros(SHAPE, device="meta"), "is on meta"),
        (torch.zeros(SHAPE).to_sparse(), "layout"),
        (torch._neg_view(torch.zeros(SHAPE)), "negated"),
        ([0.0] * 32, "is a list"),
    ],
)
def test_wrong_arguments_are_refused(
    chain_program: Program, argument: Any, message: str
) -> None:
    loaded = LoadedProgram(chain_program, no_externals)
    with pytest.raises(InputMismatchError, match=message) as caught:
        loaded([argument])
    assert caught.value.index == 0


def test_wrong_number_of_arguments_is_refused(chain_program: Program) -> None:
    loaded = LoadedProgram(chain_program, no_externals)
    with pytest.raises(InputMismatchError, match="2 arguments, expected 1"):
        loaded([torch.zeros(SHAPE)] * 2)


def test_wrapped_tensor_is_refused(chain_program: Program) -> None:
    loaded = LoadedProgram(chain_program, no_externals)
    with pytest.raises(InputMismatchError):
        torch.func.vmap(lambda x: loaded([x])[0])(torch.zeros(3, *SHAPE))


class _Recorder(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Any] = []

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.calls.append(func)
        return func(*args, **(kwargs or {}))


class _DispatchRecorder(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Any] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.calls.append(func)
        return func(*args, **(kwargs or {}))


def matmul_program() -> Program:
    return Program(
        values=(
            Value((4, 4), "f32", INPUT),
            Value((4, 4), "f32", ARENA),
            Value((4, 4), "f32", OUTPUT),
        ),
        steps=(
            LibraryStep("matmul", (0, 0), (1,)),
            ExternalStep("mm", (1, 0), (2,)),
        ),
        results=(2,),
        arena_bytes=64,
    )


def test_the_callers_modes_are_out_of_the_way() -> None:
    def run(node: str, tensors: Sequence[Tensor]) -> tuple[Tensor]:
        assert not torch.is_grad_enabled()
        assert torch.empty(1).device.type == "cpu"
        return (torch.mm(*tensors),)

    loaded = LoadedProgram(matmul_program(), run)
    x = torch.nn.Parameter(torch.randn(4, 4))
    expected = (x @ x @ x).detach()
    recorder, dispatch_recorder = _Recorder(), _DispatchRecorder()
    with (
        torch.device("meta"),
        torch.autocast("cpu", dtype=torch.bfloat16),
        recorder,
        dispatch_recorder,
    ):
        recorder.calls.clear()
        (result,) = loaded([x])
        assert torch.is_autocast_enabled("cpu")
        assert torch.is_grad_enabled()
        assert (recorder.calls, dispatch_recorder.calls) == ([], [])
        assert torch.empty(1).device.type == "meta"
    assert dispatch_recorder.calls
    torch.testing.assert_close(result, expected)
    assert result.dtype is torch.float32
    assert not result.requires_grad


def test_modes_come_back_after_an_exception() -> None:
    def run(node: str, tensors: Sequence[Tensor]) -> tuple[Tensor]:
        raise ZeroDivisionError

    loaded = LoadedProgram(matmul_program(), run)
    recorder = _Recorder()
    with torch.autocast("cpu", dtype=torch.bfloat16), recorder:
        with pytest.raises(ZeroDivisionError):
            loaded([torch.zeros(4, 4)])
        assert torch.is_autocast_enabled("cpu")
        assert torch.is_grad_enabled()
        torch.zeros(1)
    assert recorder.calls


def test_calls_in_and_out_of_inference_mode_mix() -> None:
    loaded = LoadedProgram(matmul_program(), lambda _, tensors: (torch.mm(*tensors),))
    x = torch.randn(4, 4)
    with torch.inference_mode():
        (inside,) = loaded([x])
    (outside,) = loaded([x])
    assert inside.is_inference()
    assert not outside.is_inference()
    assert torch.equal(inside, outside)
    outside.add_(1)


def test_a_call_keeps_nothing_of_the_callers(chain_program: Program) -> None:
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


def test_nested_calls_have_arenas_of_their_own(chain_program: Program) -> None:
    depth = 0

    def run(node: str, tensors: Sequence[Tensor]) -> tuple[Tensor]:
        nonlocal depth
        depth += 1
        inner = loaded([tensors[0] + 1])[0] if depth == 1 else torch.zeros(4, 4)
        return (torch.mm(*tensors) + inner,)

    loaded = LoadedProgram(matmul_program(), run)
    x = torch.randn(4, 4)
    (result,) = loaded([x])
    square = x @ x
    inner = (square + 1) @ (square + 1) @ (square + 1)
    torch.testing.assert_close(result, square @ x + inner)


def test_one_program_in_many_threads(chain_program: Program) -> None:
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


def test_concurrent_calls_never_share_an_arena() -> None:
    barrier = threading.Barrier(6, timeout=60)
    addresses: list[int] = []

    def run(node: str, tensors: Sequence[Tensor]) -> tuple[Tensor]:
        addresses.append(tensors[0].data_ptr())
        barrier.wait()  # all six calls are inside now
        return (torch.mm(*tensors),)

    loaded = LoadedProgram(matmul_program(), run)
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


def test_scalars_and_empty_tensors() -> None:
    program = Program(
        values=(
            Value((), "f32", INPUT, index=0),
            Value((0, 3), "i64", INPUT, index=1),
            Value((), "f32", ARENA),
            Value((0, 3), "i64", OUTPUT),
            Value((3, 0), "i64", VIEW, index=3),
        ),
        steps=(
            ExternalStep("f", (0,), (2,)),
            ExternalStep("f", (1,), (3,)),
        ),
        results=(2, 4),
        arena_bytes=64,
    )
    loaded = LoadedProgram(program, lambda node, tensors: (tensors[0] + 1,))
    scalar, empty = loaded([torch.tensor(2.0), torch.zeros(0, 3, dtype=torch.int64)])
    assert scalar.item() == 3.0
    assert empty.shape == (3, 0)


def test_missing_symbol_and_garbage_object_are_refused(chain_program: Program) -> None:
    for objects in ((), (b"not an object file",)):
        with pytest.raises(ProgramError, match="bad-object-code"):
            LoadedProgram(replace(chain_program, objects=objects), no_externals)
