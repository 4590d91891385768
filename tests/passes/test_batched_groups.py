"""Groups that share a launch with equal ones: what they take, what is fused then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from magweld.bindings import ir
from magweld.context import make_context
from magweld.passes.analysis.graph_body import GraphBody, read_body
from magweld.passes.infrastructure.execution import run_pipeline
from magweld.passes.infrastructure.pipeline import Pipeline
from magweld.passes.ir.utils import find_function
from magweld.passes.tile.alike_merges import AlikeMerges
from magweld.passes.tile.equal_parts import connect_parts
from magweld.passes.tile.form_tile_graph import FormTileGraph
from magweld.passes.tile.group_search import GroupSearch
from magweld.passes.tile.merger import Merger
from magweld.passes.tiling.batched_cost import batched_seconds
from magweld.passes.tiling.group import Group
from magweld.passes.tiling.policy import Scheduler
from magweld.passes.tiling.propagation import Refusal
from magweld.passes.tiling.tile_plan import Plan
from magweld.targets import device
from magweld.targets.device import LAUNCH_SECONDS, Device

ROWS, WIDTH = 32, 64


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with make_context(), ir.Location.unknown():
        yield


def joined(arguments: str, bodies: str, count: int, rows: int, width: int) -> str:
    """Return a function that joins the results `%r0`, `%r1`, ... of its bodies.

    Args:
        arguments: Of the function.
        bodies: What computes the results.
        count: How many results there are.
        rows: Of each result.
        width: Columns of each result.
    """
    part, row = f"tensor<{rows}x{width}xf32>", f"tensor<{rows}xf32>"
    whole = f"tensor<{rows}x{width * count}xf32>"
    made = ", ".join(f"%r{n}" for n in range(count))
    types = ", ".join([part] * count)
    return f"""
#whole = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
func.func @main({arguments}) -> {whole} {{
  %zero = arith.constant 0.0 : f32
  %z = tensor.empty() : {row}
  %f = linalg.fill ins(%zero : f32) outs(%z : {row}) -> {row}
  %e = tensor.empty() : {part}{bodies}
  %c = tensor.concat dim(1) {made} : ({types}) -> {whole}
  return %c : {whole}
}}
"""


def shares_of_rows(count: int) -> str:
    """Return what divides rows of tensors by their sums, and joins the results."""
    part, row = f"tensor<{ROWS}x{WIDTH}xf32>", f"tensor<{ROWS}xf32>"
    arguments = ", ".join(f"%x{n}: {part}" for n in range(count))
    bodies = "".join(
        f"""
  %s{n} = linalg.generic {{indexing_maps = [#whole, #row],
                          iterator_types = ["parallel", "reduction"]}}
      ins(%x{n} : {part}) outs(%f : {row}) {{
  ^bb0(%p: f32, %o: f32):
    %q = arith.addf %o, %p : f32
    linalg.yield %q : f32
  }} -> {row}
  %r{n} = linalg.generic {{indexing_maps = [#whole, #row, #whole],
                          iterator_types = ["parallel", "parallel"]}}
      ins(%x{n}, %s{n} : {part}, {row}) outs(%e : {part}) {{
  ^bb0(%p: f32, %t: f32, %o: f32):
    %q = arith.divf %p, %t : f32
    linalg.yield %q : f32
  }} -> {part}"""
        for n in range(count)
    )
    return joined(arguments, bodies, count, ROWS, WIDTH)


def scaled_rows(tensors: Sequence[str]) -> str:
    """Return what divides rows by their products with vectors, and joins the results.

    Args:
        tensors: For each member the name of the tensor whose rows it reads.
    """
    rows, width, count = 64, 256, len(tensors)
    part, row = f"tensor<{rows}x{width}xf32>", f"tensor<{rows}xf32>"
    vector = f"tensor<{width}xf32>"
    read = [f"{tensor}: {part}" for tensor in dict.fromkeys(tensors)]
    arguments = ", ".join([*read, *(f"%w{n}: {vector}" for n in range(count))])
    bodies = "".join(
        f"""
  %s{n} = linalg.generic {{indexing_maps = [#whole, #column, #row],
                          iterator_types = ["parallel", "reduction"]}}
      ins({x}, %w{n} : {part}, {vector}) outs(%f : {row}) {{
  ^bb0(%p: f32, %v: f32, %o: f32):
    %m = arith.mulf %p, %v : f32
    %q = arith.addf %o, %m : f32
    linalg.yield %q : f32
  }} -> {row}
  %r{n} = linalg.generic {{indexing_maps = [#whole, #row, #whole],
                          iterator_types = ["parallel", "parallel"]}}
      ins({x}, %s{n} : {part}, {row}) outs(%e : {part}) {{
  ^bb0(%p: f32, %t: f32, %o: f32):
    %q = arith.divf %p, %t : f32
    linalg.yield %q : f32
  }} -> {part}"""
        for n, x in enumerate(tensors)
    )
    return joined(arguments, bodies, count, rows, width)


def body_of(text: str, name: str) -> tuple[ir.Module, GraphBody]:
    module = ir.Module.parse(text)
    run_pipeline(Pipeline((FormTileGraph(name),)), module)
    return module, read_body(find_function(module.operation, "main"))


def groups(body: GraphBody, name: str, batch: bool) -> list[tuple[int, ...]]:
    merger = Merger(body, Scheduler(device(name)), "all", (), batch)
    count = len(body.operators)
    found = GroupSearch(merger, 4, 128).run(range(count))
    return sorted(cluster.members for cluster in found.clusters.values())


@pytest.mark.parametrize("name", ["v100", "h100"])
def test_a_serial_kernel_of_few_blocks_loses_against_a_batch(name: str) -> None:
    """32 rows are 32 blocks, each of which would compute all parts of its row."""
    count = 16
    _module, body = body_of(shares_of_rows(count), name)
    batched = groups(body, name, batch=True)
    last = len(body.operators) - 1
    assert (last,) in batched
    assert len(batched) == count + 1
    alone = groups(body, name, batch=False)
    assert (last,) not in alone


class _CountingScheduler(Scheduler):
    """Keeps the groups that it was asked to plan."""

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self.asked: set[Group] = set()

    def plan(self, group: Group) -> Plan | Refusal:
        self.asked.add(group)
        return super().plan(group)


@pytest.mark.parametrize("name", ["v100", "h100"])
def test_equal_parts_of_a_concatenation_are_judged_once(name: str) -> None:
    """Each plan looks at all parts: one for each would take quadratic time."""
    asked = []
    for count in (33, 40):
        _module, body = body_of(shares_of_rows(count), name)
        scheduler = _CountingScheduler(device(name))
        merger = Merger(body, scheduler, "all", (), True)
        found = connect_parts(merger, GroupSearch(merger, 4, 128))
        last = len(body.operators) - 1
        assert found.clusters[last].members == (last,)
        refused = [found.refusals[edge.connect] for edge in body.edges_to[last]]
        assert len({refusal.rule for refusal in refused}) == 1
        asked.append(len(scheduler.asked))
    assert asked[0] == asked[1]


def form_of(text: str, part: int, equal: int = 1) -> object:
    """Return what a merge has in common with alike ones."""
    _module, body = body_of(text, "h100")
    merger = Merger(body, Scheduler(device("h100")), "all", (), True)
    last = len(body.operators) - 1
    grouping = GroupSearch(merger, 4, 128).run(range(last))
    grouping.add(last)
    root = grouping.root_of[body.edges_to[last][part].producer]
    members = grouping.clusters[root].members
    counts = (equal,) * len(members)
    form = AlikeMerges(body).form(grouping, (root, last), merger.group(members), counts)
    return form and (*form[1:], len(members))


def test_merges_with_any_part_of_a_concatenation_are_alike() -> None:
    text = shares_of_rows(4)
    assert form_of(text, 0) is not None
    assert form_of(text, 0) == form_of(text, 2)


def test_parts_with_other_numbers_of_equal_ones_are_not_alike() -> None:
    text = shares_of_rows(4)
    assert form_of(text, 0, equal=1) != form_of(text, 0, equal=2)


def test_a_part_that_shares_a_tensor_with_the_concatenation_is_judged() -> None:
    text = shares_of_rows(4).replace("dim(1) %r0, %r1", "dim(1) %r0, %x0")
    assert form_of(text, 0) is None
    assert form_of(text, 1) is not None


@pytest.mark.parametrize(
    ("tensors", "parts"),
    [(["%x"] * 8, 9), (["%x"] * 7 + ["%y"], 1)],
    ids=["all-read-it", "one-reads-another"],
)
def test_what_all_members_read_comes_from_memory_once(
    tensors: list[str], parts: int
) -> None:
    _module, body = body_of(scaled_rows(tensors), "v100")
    assert len(groups(body, "v100", batch=True)) == parts


def test_a_single_member_is_fused_as_without_batches() -> None:
    _module, body = body_of(shares_of_rows(1), "h100")
    assert groups(body, "h100", batch=True) == groups(body, "h100", batch=False)


def test_members_share_the_start_of_a_launch_and_idle_units() -> None:
    gpu = device("h100")
    _module, body = body_of(shares_of_rows(2), "h100")
    merger = Merger(body, Scheduler(gpu), "all", ())
    plan = merger.plan((0, 1))
    assert isinstance(plan, Plan)

    def taken(members: int) -> float:
        return batched_seconds(plan.cost, plan.tiles.grid, gpu, plan.level, members)

    assert taken(1) == pytest.approx(plan.cost.seconds)
    # 32 blocks leave 100 units idle: four members take little longer than one.
    assert plan.tiles.grid < gpu.units
    assert 4 * taken(4) < plan.cost.seconds * 1.1
    # Full units gain the launch alone.
    full = replace(gpu, levels=tuple(replace(one, units=1) for one in gpu.levels))
    alone = batched_seconds(plan.cost, plan.tiles.grid, full, plan.level, 2)
    assert plan.cost.seconds - alone == pytest.approx(LAUNCH_SECONDS / 2)


def test_shared_bytes_are_taken_off_the_outermost_memory() -> None:
    gpu = device("v100")
    _module, body = body_of(scaled_rows(["%x"] * 2), "v100")
    merger = Merger(body, Scheduler(gpu), "all", ())
    plan = merger.plan((0, 1))
    assert isinstance(plan, Plan)

    def taken(members: int, shared: int) -> float:
        grid, level = plan.tiles.grid, plan.level
        return batched_seconds(plan.cost, grid, gpu, level, members, shared)

    assert taken(1, 1 << 10) == taken(1, 0)
    half, all_of_it = (plan.cost.traffic // n for n in (2, 1))
    assert taken(4, 0) > taken(4, half) > taken(4, all_of_it)
    assert taken(4, 2 * plan.cost.traffic) == taken(4, all_of_it) > 0
