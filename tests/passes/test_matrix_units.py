"""Prices of matrix instructions: which tiles have them, how long they take."""

from __future__ import annotations

from dataclasses import replace

import pytest
from operator_models import access, chain, loops

from magweld.passes.tiling.cost import cost
from magweld.passes.tiling.matrix_units import matrix_work
from magweld.passes.tiling.policy import schedule, staged_step
from magweld.passes.tiling.propagation import propagate
from magweld.passes.tiling.regions import OperatorKind, OperatorModel
from magweld.passes.tiling.trials import Plan
from magweld.targets import device
from magweld.targets.device import ARITHMETIC

SIZE = 1024


def product(
    k: int = SIZE, factors: str = "bf16", batch: int = 1, rows: int = SIZE
) -> OperatorModel:
    """A product of halves, or of what else there is, summed up in f32."""
    size = 2 if factors else 4
    reads = (
        access(0, (batch, rows, k), loops(0, 1, 3)),
        access(1, (batch, k, SIZE), loops(0, 3, 2)),
    )
    return OperatorModel(
        name="product",
        kind=OperatorKind.CONTRACTION,
        extents=(batch, rows, SIZE, k),
        parallel=(0, 1, 2),
        reads=tuple(replace(read, element_bytes=size) for read in reads),
        writes=(access(0, (batch, rows, SIZE), loops(0, 1, 2)),),
        flops=4,
        factors=factors,
    )


def work(node: OperatorModel, tile: tuple[int, ...], name: str = "h100"):
    tiles = propagate(chain(node), tile)
    return matrix_work(tiles.parts[-1], device(name))


def rate_of(name: str, instruction: str) -> float:
    rates = {one.name: one.gflops * 1e9 for one in device(name).instructions}
    return rates[instruction]


@pytest.mark.parametrize(
    ("name", "instruction"),
    [
        ("a100", "mma.m16n8k16.bf16"),
        ("h100", "mma.m16n8k16.bf16"),
        ("mi300x", "v_mfma_f32_16x16x16_bf16"),
    ],
)
def test_a_tile_takes_the_time_of_its_instructions(name: str, instruction: str) -> None:
    found = work(product(), (1, 64, 64), name)
    operations = 2 * 64 * 64 * SIZE
    assert found.operations == operations
    assert found.seconds == pytest.approx(operations / rate_of(name, instruction))


def test_each_subgroup_loads_its_rows_and_columns() -> None:
    # Eight warps: two along the rows and four along the columns.
    found = work(product(), (1, 128, 128))
    assert found.loaded == (4 * 128 + 2 * 128) * SIZE * 2


@pytest.mark.parametrize(
    ("node", "tile"),
    [
        (product(), (1, 8, 128)),  # less than the rows of an instruction
        (product(), (1, 128, 4)),
        (product(k=24), (1, 128, 128)),  # a step and a half
        (product(), (1, 256, 128)),  # more sums than registers
        (product(batch=4), (2, 64, 64)),  # two matrices
        (product(factors=""), (1, 128, 128)),
        (product(factors="f8E5M2"), (1, 128, 128)),
    ],
)
def test_other_tiles_have_none(node: OperatorModel, tile: tuple[int, ...]) -> None:
    assert work(node, tile) is None


def test_a_device_without_such_instructions_has_none() -> None:
    assert work(product(), (1, 128, 128), "v100") is None


def test_costs_have_the_time_of_instructions_and_the_bytes_that_they_load() -> None:
    node, one = product(), device("h100")
    group, tile = chain(node), (1, 128, 128)
    tiles = propagate(group, tile)
    level = one.level("shared")
    found = cost(group, tiles, one, level, 32)
    shares = {share.name: share for share in found.shares}
    arithmetic = shares[ARITHMETIC]
    assert arithmetic.amount == 2 * SIZE**3
    least = arithmetic.amount / rate_of("h100", "mma.m16n8k16.bf16")
    assert least <= arithmetic.seconds <= 3 * least  # 64 tiles for 132 units
    other = chain(replace(node, factors=""))
    plain = cost(other, propagate(other, tile), one, level, 32)
    before = {share.name: share for share in plain.shares}
    loaded = work(node, tile).loaded * tiles.grid
    assert shares["shared"].amount == before["shared"].amount + loaded


def test_the_planner_takes_tiles_of_whole_fragments() -> None:
    found = schedule(chain(product()), device("h100"))
    assert isinstance(found, Plan)
    assert matrix_work(found.tiles.parts[-1], device("h100")) is not None


@pytest.mark.parametrize(
    ("k", "factors", "step"), [(48, "f16", 16), (48, "", 24), (20, "f16", 20)]
)
def test_steps_are_whole_where_they_can_be(k: int, factors: str, step: int) -> None:
    assert staged_step(chain(product(k=k, factors=factors))) == step
