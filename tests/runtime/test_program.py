from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from llvmlite import binding
from torch import Tensor

from magweld.artifact import (
    ExternalStep,
    LibraryStep,
    Place,
    Program,
    Value,
)
from magweld.runtime.errors import ProgramError
from magweld.runtime.frame import RunExternal
from magweld.runtime.program import LoadedProgram

INPUT, ARENA, OUTPUT = Place.INPUT, Place.ARENA, Place.OUTPUT
VIEW, ADOPTED, CONSTANT = Place.VIEW, Place.ADOPTED, Place.CONSTANT
SHAPE = (4, 8)


def test_kernels_run_in_order(
    no_externals: RunExternal, chain_program: Program
) -> None:
    x = torch.randn(SHAPE)
    loaded = LoadedProgram(chain_program, no_externals)
    (result,) = loaded([x])
    torch.testing.assert_close(result, 3 * (2 * x + 1) + x)
    assert result.is_contiguous()
    assert loaded.results_are_fresh


def test_each_step_is_timed(no_externals: RunExternal, chain_program: Program) -> None:
    loaded, x = LoadedProgram(chain_program, no_externals), torch.randn(SHAPE)
    before = x.clone()
    times = loaded.measure([x], rounds=2)
    assert len(times) == len(chain_program.steps)
    assert all(0 < seconds < float("inf") for seconds in times)
    assert chain_program.step_kinds() == ("generated",) * 3
    assert torch.equal(x, before)
    (result,) = loaded([x])
    torch.testing.assert_close(result, 3 * (2 * x + 1) + x)


def test_timing_runs_externals_and_frees_what_they_return(
    external_program: Callable[..., Program],
) -> None:
    calls = []

    def run(node: str, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        calls.append(node)
        return tuple(tensor + 1 for tensor in tensors)

    program = external_program(ADOPTED)
    times = LoadedProgram(program, run).measure([torch.zeros(SHAPE)], rounds=2)
    assert calls == ["f"] * 3
    assert len(times) == 1
    assert program.step_kinds() == ("external",)


def test_views_show_the_bytes_of_their_roots(
    no_externals: RunExternal, build_object: Any, affine: Any
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
    loaded = LoadedProgram(program, no_externals)
    output, view, flat = loaded([x])
    assert not loaded.results_are_fresh
    torch.testing.assert_close(output, 2 * x + 1)
    assert view.shape == (2, 16)
    assert view.data_ptr() == output.data_ptr()
    assert flat.data_ptr() == x.data_ptr()


def test_library_reads_and_writes_planned_buffers(no_externals: RunExternal) -> None:
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
    no_externals: RunExternal, build_object: Any, affine: Any
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


def test_constants_are_shared_and_never_given_away(no_externals: RunExternal) -> None:
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


def test_results_in_the_arena_are_copied(
    external_program: Callable[..., Program],
) -> None:
    program = external_program(ARENA)
    loaded = LoadedProgram(program, lambda node, tensors: (tensors[0] + 1,))
    x = torch.randn(SHAPE)
    (first,) = loaded([x])
    (second,) = loaded([x + 1])
    assert torch.equal(first, x + 1)
    assert torch.equal(second, (x + 1) + 1)


@pytest.mark.parametrize("place", [ARENA, OUTPUT, ADOPTED])
@pytest.mark.parametrize("returns", [True, False])
def test_external_results_of_any_layout(
    external_program: Callable[..., Program], place: Place, returns: bool
) -> None:
    def run(node: str, tensors: Sequence[Tensor]) -> tuple[Tensor]:
        return (tensors[0].t() if node == "f" else tensors[0] * 1,)

    program = external_program(place, (8, 4), returns=returns)
    x = torch.randn(SHAPE)
    loaded = LoadedProgram(program, run)
    (result,) = loaded([x])
    assert loaded.results_are_fresh == (place is OUTPUT or not returns)
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


@pytest.mark.parametrize("nbytes", [4, 60, 128])
def test_externals_take_all_of_the_arena_as_elements(nbytes: int) -> None:
    values = (
        Value((nbytes // 4,), "f32", INPUT),
        Value((nbytes // 4,), "f32", ARENA),
        Value((), "f64", ADOPTED),
    )
    steps = (ExternalStep("clone", (0,), (1,)), ExternalStep("sum", (1,), (2,)))
    program = Program(values, steps, results=(2,), arena_bytes=nbytes)

    def run(node: str, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        whole = torch.empty(0, dtype=torch.float32).set_(tensors[0].untyped_storage())
        assert whole.nbytes == tensors[0].untyped_storage().nbytes()
        assert node == "clone" or whole.nbytes % 16 == 0
        return (tensors[0].clone() if node == "clone" else tensors[0].double().sum(),)

    (result,) = LoadedProgram(program, run)([torch.ones(nbytes // 4)])
    assert result.item() == nbytes // 4


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
    external_program: Callable[..., Program],
    place: Place,
    results: tuple[Tensor, ...],
    message: str,
) -> None:
    loaded = LoadedProgram(external_program(place), lambda node, tensors: results)
    with pytest.raises(ProgramError, match=f"external node 'f'.*{message}"):
        loaded([torch.zeros(SHAPE)])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (torch.zeros(4, 1), "has shape"),
        (torch.zeros(SHAPE, dtype=torch.float64), "has dtype"),
        (torch.zeros(SHAPE, device="meta"), "is on meta"),
        (torch.zeros(SHAPE).to_sparse(), "has layout"),
        (3.0, "is a float"),
    ],
)
def test_results_are_refused_behind_others_that_were_right(
    external_program: Callable[..., Program], wrong: Any, message: str
) -> None:
    given: list[Any] = [torch.ones(SHAPE), torch.ones(SHAPE), wrong, torch.ones(SHAPE)]
    x, results = torch.zeros(SHAPE), iter(given)
    loaded = LoadedProgram(external_program(ADOPTED), lambda *_: (next(results),))
    for _ in range(2):
        assert torch.equal(loaded([x])[0], given[0])
    with pytest.raises(ProgramError, match=f"external node 'f'.*{message}"):
        loaded([x])
    assert torch.equal(loaded([x])[0], given[0])


def test_what_lies_or_reads_otherwise_is_copied_behind_plain_results(
    external_program: Callable[..., Program],
) -> None:
    plain = torch.arange(float(SHAPE[0] * SHAPE[1])).view(SHAPE)
    others = [plain.T.contiguous().T, torch._neg_view(-plain), plain[:, :]]
    results = iter([plain, plain, *others])
    loaded = LoadedProgram(external_program(ADOPTED), lambda *_: (next(results),))
    for _ in range(2 + len(others)):
        (found,) = loaded([torch.zeros(SHAPE)])
        assert torch.equal(found, plain)
        assert found.is_contiguous()
        assert not found.is_neg()


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


def test_missing_symbol_and_garbage_object_are_refused(
    no_externals: RunExternal, chain_program: Program
) -> None:
    for objects in ((), (b"not an object file",)):
        with pytest.raises(ProgramError, match="bad-object-code"):
            LoadedProgram(replace(chain_program, objects=objects), no_externals)


def test_object_code_that_needs_an_unknown_symbol_is_refused(
    chain_program: Program, no_externals: RunExternal
) -> None:
    """Found when loading: a call would jump to nowhere."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    module = binding.parse_assembly(
        """
        declare void @magweld_test_nowhere()
        define void @first(ptr %table) {
          call void @magweld_test_nowhere()
          ret void
        }
        """
    )
    machine = binding.Target.from_default_triple().create_target_machine(reloc="pic")
    program = replace(
        chain_program,
        steps=chain_program.steps[:1],
        results=(1,),
        objects=(machine.emit_object(module),),
    )
    with pytest.raises(ProgramError, match="bad-object-code"):
        LoadedProgram(program, no_externals)
