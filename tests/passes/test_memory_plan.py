"""What is stored and what is tiled within a budget, on graphs made here."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from magweld.passes.memory.boxes import whole
from magweld.passes.memory.cones import find_cone
from magweld.passes.memory.demands import Nest, Regroup, Window
from magweld.passes.memory.graph import Graph, Node, Tensor
from magweld.passes.memory.plan import MemoryPlan, plan_memory
from magweld.passes.tiling.propagation import Refusal
from magweld.passes.tiling.regions import LinearIndex
from magweld.targets.device import Device, Level, LevelKind

DEVICE = Device(
    name="toy",
    levels=(
        Level("dram", 0, 20.0, 64, 1, LevelKind.EXPLICIT),
        Level("l2", 1 << 20, 200.0, 64, 2, LevelKind.CACHE),
        Level("register", 2048, 800.0, 32, 2, LevelKind.EXPLICIT),
    ),
    units=2,
    threads=1,
    warp=1,
    vector_bits=512,
    peak_gflops=100.0,
)


@dataclass
class Rows:
    """A graph of operations on rows: each row of a result needs rows around it."""

    width: int = 64
    tensors: list[Tensor] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)

    def given(self, rows: int) -> int:
        self.tensors.append(Tensor((rows, self.width), 4, free=True))
        return len(self.tensors) - 1

    def make(
        self, *sources: int, halo: int = 1, stride: int = 1, rule: bool = True
    ) -> int:
        """Add what reads rows `stride * i - halo .. stride * i + halo`."""
        rows = self.tensors[sources[0]].shape[0] // stride
        row = LinearIndex(((0, stride), (2, 1)), -halo)
        column = LinearIndex(((1, 1),))
        windows = tuple(
            Window(number, self.tensors[source].shape, (row, column))
            for number, source in enumerate(sources)
        )
        extents = (rows, self.width, 2 * halo + 1)
        nest = Nest(extents, (0, 1), windows, len(sources)) if rule else None
        result = len(self.tensors)
        self.tensors.append(Tensor((rows, self.width), 4))
        self.nodes.append(Node(sources, (result,), nest, flops=2))
        return result

    def graph(self, *outputs: int) -> Graph:
        return Graph(tuple(self.tensors), tuple(self.nodes), outputs)


def chain(length: int, rows: int = 256) -> tuple[Graph, int]:
    """Return operations one after the other, and the bytes of each tensor."""
    builder = Rows()
    value = builder.given(rows)
    for _ in range(length):
        value = builder.make(value)
    return builder.graph(value), rows * builder.width * 4


def planned(graph: Graph, budget: int) -> MemoryPlan:
    plan = plan_memory(graph, budget, DEVICE)
    assert isinstance(plan, MemoryPlan), plan
    assert plan.use.total <= budget
    return plan


def test_what_fits_is_not_tiled() -> None:
    graph, nbytes = chain(4)
    assert planned(graph, 20 * nbytes).tiled == ()


def test_one_tensor_less_than_needed_makes_tiles() -> None:
    graph, nbytes = chain(4)
    plan = planned(graph, nbytes)
    assert plan.tiled
    # The result is the caller's: it is made in tiles, and not counted.
    assert plan.tiled[-1].cone.root == graph.outputs[0]


def test_less_memory_costs_time() -> None:
    graph, nbytes = chain(6)
    seconds = [planned(graph, nbytes * 4 // part).seconds for part in (1, 4, 16)]
    assert seconds == sorted(seconds)
    assert seconds[0] < seconds[-1]


def test_too_little_memory_is_refused_with_numbers() -> None:
    graph, _ = chain(4)
    refusal = plan_memory(graph, 256, DEVICE)
    assert isinstance(refusal, Refusal)
    assert refusal.rule == "memory-budget"
    assert "tensor of [256, 64]" in refusal.detail


def test_what_has_no_rule_is_stored_with_its_operands() -> None:
    builder = Rows()
    first = builder.make(builder.given(256))
    second = builder.make(first, rule=False)
    graph = builder.graph(builder.make(second))
    nbytes = graph.tensors[first].nbytes
    assert graph.fixed == {first, second, graph.outputs[0]}
    assert isinstance(plan_memory(graph, nbytes, DEVICE), Refusal)
    assert planned(graph, 3 * nbytes).tiled == ()


def test_a_long_way_back_is_made_again_instead_of_stored() -> None:
    """What is read at the beginning and at the end does not stay."""
    builder = Rows()
    skip = builder.make(builder.given(512))
    value = builder.make(skip, stride=4)
    for _ in range(3):
        value = builder.make(value)
    large = builder.make(skip, skip)
    graph = builder.graph(value, large)
    plan = planned(graph, graph.tensors[skip].nbytes // 2)
    members = [set(tiled.cone.members) for tiled in plan.tiled]
    assert sum(0 in member for member in members) == 2


def test_the_tiles_of_a_cone_read_more_than_they_make() -> None:
    graph, _ = chain(3, rows=64)
    cone = find_cone(graph, graph.outputs[0], ())
    trace = cone.trace(((16, 32), (0, 64)))
    assert trace is not None
    assert trace.read[0] == ((13, 35), (0, 64))
    assert [trace.made[t][0] for t in (1, 2, 3)] == [(14, 34), (15, 33), (16, 32)]
    # Two tensors at a time, and a copy of what is read; the result is brought.
    assert trace.use.arena == (22 + 20 + 18) * 256
    assert trace.use.transient == 16 * 256
    at_border = cone.trace(((0, 16), (0, 64)))
    assert at_border is not None
    assert at_border.read[0] == ((0, 19), (0, 64))


def test_stored_tensors_end_a_cone() -> None:
    graph, _ = chain(3)
    cone = find_cone(graph, 3, {2})
    assert (cone.members, cone.leaves) == ((2,), (2,))


def test_views_have_no_bytes_of_their_own() -> None:
    builder = Rows()
    source = builder.make(builder.given(64))
    regroup = Regroup(((0,), (1, 2)), (64, 8, 8), expands=True)
    builder.tensors.append(Tensor((64, 8, 8), 4))
    builder.nodes.append(Node((source,), (2,), regroup, is_view=True))
    graph = builder.graph(2)
    assert graph.storage == (0, 1, 1)
    assert graph.fixed == {1}
    cone = find_cone(graph, 2, ())
    trace = cone.trace(((0, 4), *whole((8, 8))))
    assert trace is not None
    assert trace.made[source] == ((0, 4), (0, 64))


@pytest.mark.parametrize("budget_share", [2, 3, 5, 9])
def test_plans_keep_the_budget(budget_share: int) -> None:
    builder = Rows()
    value = builder.given(512)
    skips = []
    for _ in range(3):
        value = builder.make(builder.make(value))
        skips.append(value)
        value = builder.make(value, halo=0, stride=2)
    results = [builder.make(skip) for skip in skips]
    graph = builder.graph(value, *results)
    total = sum(t.nbytes for t in graph.tensors if not t.free)
    plan = planned(graph, total // budget_share // 2)
    for tiled in plan.tiled:
        trace = tiled.cone.trace(tuple((0, size) for size in tiled.choice.tile))
        assert trace is not None
        assert trace.use.total <= total // budget_share // 2
