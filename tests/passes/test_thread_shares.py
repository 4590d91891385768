"""Plans know what threads hold of a result, as code shares it among them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from operator_models import access, chain, loops

from magweld.passes.gpu.thread_layout import balanced_layout, window_layout
from magweld.passes.tiling.matrix_units import MOST_SUMS
from magweld.passes.tiling.policy import schedule
from magweld.passes.tiling.propagation import propagate
from magweld.passes.tiling.regions import OperatorKind, OperatorModel
from magweld.passes.tiling.thread_shares import (
    accessed_bytes,
    in_registers,
    product_counts,
    product_slots,
    window_counts,
)
from magweld.passes.tiling.tile_plan import Plan
from magweld.targets import device

H100 = device("h100")
# What a pass over all banks has.
PASS = 128


def product(rows: int, columns: int, k: int) -> OperatorModel:
    """A product of f32 with both factors along the reduction."""
    return OperatorModel(
        name="product",
        kind=OperatorKind.CONTRACTION,
        extents=(rows, columns, k),
        parallel=(0, 1),
        reads=(
            access(0, (rows, k), loops(0, 2)),
            access(1, (columns, k), loops(1, 2)),
        ),
        writes=(access(0, (rows, columns), loops(0, 1)),),
        flops=2,
    )


def passes(node: OperatorModel, tile: tuple[int, ...], name: str = "h100") -> float:
    """Return the passes of one warp for each step of the reduction."""
    part = propagate(chain(node), tile).parts[-1]
    steps = part.points // part.results
    return accessed_bytes(part, device(name)) / PASS / steps


def test_code_and_plans_share_results_alike() -> None:
    operands = ((0,), (1,))
    for extents in ((64, 64), (197, 96), (49, 32), (1, 256)):
        counts = product_counts(extents, operands, 256)
        assert balanced_layout(extents, operands, 256).threads == counts
        counts = window_counts(extents, operands, 256, 32)
        assert window_layout(extents, operands, 256, 32).threads == counts


def test_a_thread_has_registers_for_so_many_sums() -> None:
    assert in_registers(MOST_SUMS)
    assert not in_registers(MOST_SUMS + 1)


def test_threads_read_their_rows_and_columns_in_wide_pieces() -> None:
    # 16 x 16 threads of 4 x 4 results: a warp has 2 rows and 16 columns.
    assert passes(product(64, 64, 32), (64, 64)) == 8 * (4 * 1 + 4 * 2) / 4


def test_sums_without_registers_are_read_and_written_in_each_step() -> None:
    # 197 threads of 96 sums, and of 64: seven warps.
    large = passes(product(197, 192, 32), (197, 96))
    assert large == 7 * 96 * H100.shared_sum_passes
    assert passes(product(197, 192, 32), (197, 64)) < large / 10


def test_cpus_have_no_threads_that_share() -> None:
    assert not passes(product(64, 64, 32), (64, 64), "cpu")


@pytest.mark.parametrize("rows", [197, 8 * 197])
def test_the_chosen_tile_has_registers(rows: int) -> None:
    plan = schedule(chain(product(rows, 1536, 384)), H100)
    assert isinstance(plan, Plan)
    counts = product_counts(plan.tile, ((0,), (1,)), 256)
    assert in_registers(plan.tile[0] * plan.tile[1] // (counts[0] * counts[1]))


def test_a_device_that_states_it_has_other_prices() -> None:
    part = propagate(chain(product(197, 96, 32)), (197, 96)).parts[-1]
    slow = replace(H100, shared_sum_passes=2 * H100.shared_sum_passes)
    assert accessed_bytes(part, slow) == 2 * accessed_bytes(part, H100)


def narrow(node: OperatorModel) -> OperatorModel:
    """The same product of halves, without matrix instructions."""
    reads = tuple(replace(read, element_bytes=2) for read in node.reads)
    return replace(node, reads=reads)


def test_halves_in_rows_of_no_whole_pieces_are_read_one_by_one() -> None:
    # 16 x 16 threads of 4 x 4 results: eight elements of each factor a step.
    wide = passes(narrow(product(64, 64, 320)), (64, 64))
    odd = passes(narrow(product(64, 64, 319)), (64, 64))
    assert odd == 8 * (4 + 4) * H100.half_window_passes
    assert wide == 8 * (4 * 1 + 4 * 2) / 8
    assert passes(product(64, 64, 319), (64, 64)) == passes(
        product(64, 64, 320), (64, 64)
    )


def test_halves_across_rows_are_read_one_by_one() -> None:
    node = narrow(product(64, 64, 32))
    across = replace(node.reads[1], shape=(32, 64), index=loops(2, 1))
    found = passes(replace(node, reads=(node.reads[0], across)), (64, 64))
    assert found == 8 * (4 * 1 / 8 + 4 * H100.half_window_passes)


def test_large_products_of_threads_take_about_what_they_took() -> None:
    plan = schedule(chain(product(4096, 4096, 4096)), H100)
    assert isinstance(plan, Plan)
    # 3.60 ms on an H100, of which arithmetic at its peak is 2.05.
    assert 0.85 < plan.cost.seconds / 3.60e-3 < 1.15
    part = plan.tiles.parts[-1]
    assert product_slots(part, H100) == H100.product_slots
    assert product_slots(part, device("cpu")) == 1
