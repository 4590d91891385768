"""Owns operator models and devices that tests of the analyses are written with."""

from __future__ import annotations

from collections.abc import Sequence

from magweld.passes.tiling.group import Group, Source
from magweld.passes.tiling.regions import (
    Access,
    LinearIndex,
    OperatorKind,
    OperatorModel,
)
from magweld.targets.device import Device, Level, LevelKind

Terms = tuple[tuple[int, int], ...]
FLOAT_BYTES = 4


def loops(*numbers: int) -> tuple[LinearIndex, ...]:
    """Return the index of a tensor whose dimensions are single loops."""
    return tuple(LinearIndex(((number, 1),)) for number in numbers)


def access(
    argument: int,
    shape: tuple[int, ...],
    index: tuple[LinearIndex | None, ...],
    *,
    border: tuple[tuple[int, int], ...] | None = None,
) -> Access:
    return Access(argument, shape, FLOAT_BYTES, index, border)


def elementwise(
    name: str, shape: tuple[int, ...], reads: Sequence[Access], flops: int = 1
) -> OperatorModel:
    every = tuple(range(len(shape)))
    return OperatorModel(
        name=name,
        kind=OperatorKind.ELEMENTWISE,
        extents=shape,
        parallel=every,
        reads=tuple(reads),
        writes=(access(0, shape, loops(*every)),),
        flops=flops,
    )


def matmul(name: str, m: int, n: int, k: int) -> OperatorModel:
    return OperatorModel(
        name=name,
        kind=OperatorKind.CONTRACTION,
        extents=(m, n, k),
        parallel=(0, 1),
        reads=(access(0, (m, k), loops(0, 2)), access(1, (k, n), loops(2, 1))),
        writes=(access(0, (m, n), loops(0, 1)),),
        flops=2,
    )


def row_reduction(name: str, rows: int, columns: int) -> OperatorModel:
    return OperatorModel(
        name=name,
        kind=OperatorKind.REDUCTION,
        extents=(rows, columns),
        parallel=(0,),
        reads=(access(0, (rows, columns), loops(0, 1)),),
        writes=(access(0, (rows,), loops(0)),),
        flops=1,
    )


def convolution(
    name: str, length: int, taps: int, stride: int, dilation: int
) -> OperatorModel:
    """A convolution over one dimension: y[i] = sum_k x[i * stride + k * dilation]."""
    places = (length - 1 - (taps - 1) * dilation) // stride + 1
    window = (LinearIndex(((0, stride), (1, dilation))),)
    return OperatorModel(
        name=name,
        kind=OperatorKind.CONVOLUTION,
        extents=(places, taps),
        parallel=(0,),
        reads=(access(0, (length,), window), access(1, (taps,), loops(1))),
        writes=(access(0, (places,), loops(0)),),
        flops=2,
    )


def chain(*nodes: OperatorModel) -> Group:
    """Return operators of which each reads the one before it as its first operand."""
    sources = []
    tensors = 0
    for position, node in enumerate(nodes):
        made = []
        for number in range(len(node.reads)):
            inside = position > 0 and number == 0
            made.append(Source(position - 1 if inside else None, tensors))
            tensors += 1
        sources.append(tuple(made))
    return Group(nodes, tuple(sources))


def device(
    *, tile_bytes: int = 65536, units: int = 4, kind: LevelKind = LevelKind.CACHE
) -> Device:
    """Return a device with one level for tiles and no cache outside of it."""
    return Device(
        name="toy",
        levels=(
            Level("dram", 0, 25.0, 64, 1, LevelKind.EXPLICIT),
            Level("l1", tile_bytes, 800.0, 64, units, kind),
            Level("register", 2048, 3200.0, 32, units, LevelKind.EXPLICIT),
        ),
        units=units,
        threads=1,
        warp=1,
        vector_bits=256,
        peak_gflops=100.0,
    )
