from __future__ import annotations

from typing import Any

import pytest
import torch

from magweld.artifact import LibraryStep, Place, Program, Value
from magweld.runtime.errors import ProgramError
from magweld.runtime.program import LoadedProgram


def program_of(
    op: str,
    operands: list[torch.Tensor],
    result_shape: tuple[int, ...],
    place: Place,
    attributes: dict[str, Any],
    dtype: str = "f32",
) -> Program:
    values = [
        Value(tuple(t.shape), dtype, Place.INPUT, index=i)
        for i, t in enumerate(operands)
    ]
    values.append(Value(result_shape, dtype, place))
    reads = tuple(range(len(operands)))
    step = LibraryStep(op, reads, (len(operands),), attributes)
    return Program(tuple(values), (step,), (len(operands),), arena_bytes=1 << 16)


def run(
    op: str,
    operands: list[torch.Tensor],
    result_shape: tuple[int, ...],
    place: Place,
    attributes: dict[str, Any],
) -> torch.Tensor:
    program = program_of(op, operands, result_shape, place, attributes)
    (result,) = LoadedProgram(program, lambda node, tensors: ())(operands)
    return result


PLACES = [Place.ARENA, Place.OUTPUT, Place.ADOPTED]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize(
    ("op", "batch"), [("matmul", ()), ("batch_matmul", (3,)), ("addmm", ())]
)
def test_matrix_products(
    op: str,
    batch: tuple[int, ...],
    transpose_a: bool,
    transpose_b: bool,
    place: Place,
) -> None:
    a, b = torch.randn(*batch, 5, 7), torch.randn(*batch, 7, 4)
    bias = [torch.randn(4)] if op == "addmm" else []
    expected = a @ b + (bias[0] if bias else 0)
    stored_a = a.mT.contiguous() if transpose_a else a
    stored_b = b.mT.contiguous() if transpose_b else b
    result = run(
        op,
        operands=[*bias, stored_a, stored_b],
        result_shape=(*batch, 5, 4),
        place=place,
        attributes={"transpose_a": transpose_a, "transpose_b": transpose_b},
    )
    torch.testing.assert_close(result, expected)


@pytest.mark.parametrize("bias_shape", [(4,), (1, 4), (5, 4), (5, 1)])
def test_addmm_broadcasts_its_bias(bias_shape: tuple[int, ...]) -> None:
    bias, a, b = torch.randn(bias_shape), torch.randn(5, 7), torch.randn(7, 4)
    result = run(
        "addmm",
        operands=[bias, a, b],
        result_shape=(5, 4),
        place=Place.OUTPUT,
        attributes={},
    )
    torch.testing.assert_close(result, torch.addmm(bias, a, b))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize(
    ("spatial", "stride", "padding", "dilation", "groups"),
    [
        ((9,), 2, 1, 1, 1),
        ((9, 8), 1, 0, 2, 1),
        ((9, 8), 2, 1, 1, 4),
        ((5, 6, 7), 1, 1, 1, 2),
    ],
)
def test_convolutions(
    spatial: tuple[int, ...],
    stride: int,
    padding: int,
    dilation: int,
    groups: int,
    has_bias: bool,
    place: Place,
) -> None:
    rank = len(spatial)
    x = torch.randn(2, 4, *spatial)
    weight = torch.randn(8, 4 // groups, *(3,) * rank)
    bias = torch.randn(8) if has_bias else None
    convolve = (torch.conv1d, torch.conv2d, torch.conv3d)[rank - 1]
    expected = convolve(x, weight, bias, stride, padding, dilation, groups)
    result = run(
        "convolution",
        operands=[x, weight, *([] if bias is None else [bias])],
        result_shape=tuple(expected.shape),
        place=place,
        attributes={
            "strides": [stride] * rank,
            "padding": [padding] * rank,
            "dilation": [dilation] * rank,
            "groups": groups,
        },
    )
    torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("op", "shapes", "result", "attributes", "message"),
    [
        ("matrix", [(2, 2)], (2, 2), {}, "known: addmm, batch_matmul"),
        ("matmul", [(2, 2)] * 2, (2, 2), {"transposed": 1}, "transposed"),
        ("matmul", [(2, 3), (2, 3)], (2, 3), {}, "do not fit"),
        ("matmul", [(2, 3), (3, 4)], (4, 2), {}, "into"),
        ("matmul", [(2, 3)], (2, 3), {}, "values to unpack"),
        ("matmul", [(2, 2, 2)] * 2, (2, 2, 2), {}, "rank"),
        ("batch_matmul", [(2, 3, 4), (5, 4, 3)], (2, 3, 3), {}, "do not fit"),
        ("addmm", [(3,), (2, 3), (3, 4)], (2, 4), {}, "broadcast"),
        ("convolution", [(1, 2, 4), (2, 2, 3)], (1, 2, 2), {}, "missing"),
        (
            "convolution",
            [(1, 3, 4), (2, 2, 3)],
            (1, 2, 2),
            {"strides": [1], "padding": [0], "dilation": [1]},
            "do not fit",
        ),
        (
            "convolution",
            [(1, 2, 4), (2, 2, 3)],
            (1, 2, 2),
            {"strides": [1, 1], "padding": [0], "dilation": [1]},
            "rank 3",
        ),
    ],
)
def test_steps_that_cannot_run_are_refused_when_loaded(
    op: str,
    shapes: list[tuple[int, ...]],
    result: tuple[int, ...],
    attributes: dict[str, Any],
    message: str,
) -> None:
    operands = [torch.zeros(shape) for shape in shapes]
    program = program_of(op, operands, result, Place.OUTPUT, attributes)
    with pytest.raises(ProgramError, match=message):
        LoadedProgram(program, lambda node, tensors: ())


def test_mixed_element_types_are_refused() -> None:
    values = (
        Value((2, 2), "f32", Place.INPUT),
        Value((2, 2), "f64", Place.OUTPUT),
    )
    program = Program(values, (LibraryStep("matmul", (0, 0), (1,)),), (1,), 0)
    with pytest.raises(ProgramError, match="mixed types"):
        LoadedProgram(program, lambda node, tensors: ())
