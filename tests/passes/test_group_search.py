"""The search for groups: what is given back, and that it is never slower for it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import pytest
from random_graphs import random_module

from magweld.bindings import ir
from magweld.context import make_context
from magweld.passes.analysis.graph_body import GraphBody, read_body
from magweld.passes.infrastructure.execution import run_pipeline
from magweld.passes.infrastructure.pipeline import Pipeline
from magweld.passes.ir.utils import find_function
from magweld.passes.tile.equal_parts import connect_parts
from magweld.passes.tile.form_tile_graph import FormTileGraph
from magweld.passes.tile.group_search import GroupSearch
from magweld.passes.tile.grouping import Cluster, Grouping
from magweld.passes.tile.merger import MOST_MEMBERS, Merger
from magweld.passes.tiling.policy import Scheduler
from magweld.targets import device

# Three results are one too many: a small tensor is taken before a large one
# can be.
SMALL_FIRST = """
#cube = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#square = affine_map<(d0, d1, d2) -> (d0, d1)>
func.func @main(%v: tensor<64x16xf32>, %a: tensor<64x16x32xf32>)
    -> (tensor<64x16xf32>, tensor<64x16x32xf32>, tensor<64x16x32xf32>) {
  %0 = tensor.empty() : tensor<64x16xf32>
  %1 = tensor.empty() : tensor<64x16x32xf32>
  %2 = linalg.exp ins(%v : tensor<64x16xf32>) outs(%0 : tensor<64x16xf32>)
      -> tensor<64x16xf32>
  %3 = linalg.generic {indexing_maps = [#cube, #square, #cube],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%a, %2 : tensor<64x16x32xf32>, tensor<64x16xf32>)
      outs(%1 : tensor<64x16x32xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %d = arith.mulf %p, %q : f32
    linalg.yield %d : f32
  } -> tensor<64x16x32xf32>
  %4 = linalg.exp ins(%3 : tensor<64x16x32xf32>) outs(%1 : tensor<64x16x32xf32>)
      -> tensor<64x16x32xf32>
  return %2, %3, %4 : tensor<64x16xf32>, tensor<64x16x32xf32>, tensor<64x16x32xf32>
}
"""


@pytest.fixture
def context() -> Iterator[None]:
    with make_context(), ir.Location.unknown():
        yield


def body_of(text: str) -> tuple[ir.Module, GraphBody]:
    module = ir.Module.parse(text)
    run_pipeline(Pipeline((FormTileGraph("cpu"),)), module)
    return module, read_body(find_function(module.operation, "main"))


def search(body: GraphBody, width: int, trials: int = 128) -> tuple[Grouping, float]:
    """Return a grouping and its predicted time."""
    merger = Merger(body, Scheduler(device("cpu")), "all", ())
    found = GroupSearch(merger, width, trials).run(range(len(merger.body.operators)))
    members = [cluster.members for cluster in found.clusters.values()]
    return found, sum(map(merger.seconds, sorted(members)))


def groups(grouping: Grouping) -> list[tuple[int, ...]]:
    return sorted(cluster.members for cluster in grouping.clusters.values())


@pytest.mark.usefixtures("context")
def test_a_small_tensor_is_given_back_for_a_large_one() -> None:
    module, body = body_of(SMALL_FIRST)
    kept, before = search(body, width=1)
    assert groups(kept) == [(0, 1), (2,)]
    found, after = search(body, width=4)
    assert groups(found) == [(0,), (1, 2)]
    assert after < before
    assert module.operation.verify()


@pytest.mark.usefixtures("context")
def test_without_trials_nothing_is_given_back() -> None:
    _module, body = body_of(SMALL_FIRST)
    assert groups(search(body, width=4, trials=0)[0]) == [(0, 1), (2,)]


@pytest.mark.usefixtures("context")
@pytest.mark.parametrize("seed", range(20))
def test_several_groupings_are_never_slower_than_one(seed: int) -> None:
    _module, body = body_of(random_module(seed, operations=6 + seed % 8))
    alone, before = search(body, width=1)
    found, after = search(body, width=4)
    assert after <= before
    again, _ = search(body, width=4)
    assert groups(again) == groups(found)
    everything = list(range(len(body.operators)))
    for grouping in (alone, found):
        members = [member for one in groups(grouping) for member in one]
        assert sorted(members) == everything


def test_a_part_of_a_part_is_given_back() -> None:
    first, bound = Cluster(0, (0,)), Cluster(1, (1,), bound=True)
    inner = Cluster(2, (2,)).with_taken((first, bound))
    whole = Cluster(4, (4,)).with_taken((inner, Cluster(3, (3,))))
    assert [part.members for part in whole.parts()] == [(0, 1, 2), (0,), (3,)]
    left = whole.without(first)
    assert left.members == (1, 2, 3, 4)
    assert [part.members for part in left.parts()] == [(1, 2), (3,)]


def chain_of_exponentials(links: int) -> str:
    kind = "tensor<64x16xf32>"
    names = [f"%v{number}" for number in range(links + 1)]
    lines = [
        f"  {new} = linalg.exp ins({old} : {kind}) outs(%e : {kind}) -> {kind}\n"
        for old, new in itertools.pairwise(names)
    ]
    return (
        f"func.func @main(%v0: {kind}) -> {kind} {{\n  %e = tensor.empty() : {kind}\n"
        f"{''.join(lines)}  return {names[-1]} : {kind}\n}}\n"
    )


@pytest.mark.usefixtures("context")
def test_a_group_has_a_bounded_number_of_members() -> None:
    _module, body = body_of(chain_of_exponentials(2 * MOST_MEMBERS + 1))
    found, _ = search(body, width=4)
    assert [len(members) for members in groups(found)] == [MOST_MEMBERS] * 2 + [1]
    rules = {refusal.rule for refusal in found.refusals.values()}
    assert rules == {"members"}


# The same work on two slices of a tensor, which begin elsewhere.
SLICES = """
#all = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @main(%x: tensor<64x512xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
"""
SLICE = """  %s{0} = tensor.extract_slice %x[0, {0}] [64, 128] [1, 1]
      : tensor<64x512xf32> to tensor<64x128xf32>
  %t{0} = tensor.extract_slice %x[0, {1}] [64, 128] [1, 1]
      : tensor<64x512xf32> to tensor<64x128xf32>
  %r{0} = linalg.generic {{indexing_maps = [#all, #all, #row],
      iterator_types = ["parallel", "reduction"]}}
      ins(%s{0}, %t{0} : tensor<64x128xf32>, tensor<64x128xf32>)
      outs(%zeros : tensor<64xf32>) {{
  ^bb0(%p: f32, %q: f32, %o: f32):
    %a = arith.mulf %p, %q : f32
    %b = arith.addf %o, %a : f32
    linalg.yield %b : f32
  }} -> tensor<64xf32>
"""


@pytest.mark.usefixtures("context")
@pytest.mark.parametrize("apart", [0, 64, 128])
def test_slices_elsewhere_have_the_plan_that_they_have_alone(apart: int) -> None:
    text = SLICES + SLICE.format(0, 128) + SLICE.format(256 - apart, 384 - apart)
    end = f"  return %r0, %r{256 - apart} : tensor<64xf32>, tensor<64xf32>\n}}\n"
    _module, body = body_of(text + end)
    first, second = (body.group([number]) for number in (0, 1))
    assert first != second
    assert first.with_slices_moved() == second.with_slices_moved()
    shared = Scheduler(device("cpu"))
    plans = [shared.plan(first), shared.plan(second)]
    assert shared.ranking(second, 0.03)[0] == plans[1]
    assert plans[0].tile == plans[1].tile
    assert plans[1].tiles.parts[0].model is second.root


@pytest.mark.usefixtures("context")
def test_slices_of_one_tensor_keep_their_distance() -> None:
    text = SLICES + SLICE.format(0, 128) + SLICE.format(64, 128)
    _module, body = body_of(
        text + "  return %r0, %r64 : tensor<64xf32>, tensor<64xf32>\n}\n"
    )
    near, far = body.group([1]), body.group([0])
    assert near.with_slices_moved() != far.with_slices_moved()


# A number a column is added to a product, whose rows are reduced and then shifted by
# what comes of it: two loop nests make the sum.
SUM_READ_TWICE = """
#full = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>
func.func @main(%x: tensor<128x1536xf32>, %w: tensor<1536x384xf32>,
                %b: tensor<384xf32>) -> tensor<128x384xf32> {
  %zero = arith.constant 0.0 : f32
  %wide = tensor.empty() : tensor<128x384xf32>
  %rows = tensor.empty() : tensor<128xf32>
  %0 = linalg.fill ins(%zero : f32) outs(%wide : tensor<128x384xf32>)
      -> tensor<128x384xf32>
  %1 = linalg.matmul ins(%x, %w : tensor<128x1536xf32>, tensor<1536x384xf32>)
      outs(%0 : tensor<128x384xf32>) -> tensor<128x384xf32>
  %2 = linalg.generic {indexing_maps = [#full, #column, #full],
                       iterator_types = ["parallel", "parallel"]}
      ins(%1, %b : tensor<128x384xf32>, tensor<384xf32>)
      outs(%wide : tensor<128x384xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<128x384xf32>
  %3 = linalg.fill ins(%zero : f32) outs(%rows : tensor<128xf32>) -> tensor<128xf32>
  %4 = linalg.generic {indexing_maps = [#full, #row],
                       iterator_types = ["parallel", "reduction"]}
      ins(%2 : tensor<128x384xf32>) outs(%3 : tensor<128xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = arith.addf %p, %o : f32
    linalg.yield %s : f32
  } -> tensor<128xf32>
  %5 = linalg.generic {indexing_maps = [#full, #row, #full],
                       iterator_types = ["parallel", "parallel"]}
      ins(%2, %4 : tensor<128x384xf32>, tensor<128xf32>)
      outs(%wide : tensor<128x384xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %d = arith.subf %p, %q : f32
    linalg.yield %d : f32
  } -> tensor<128x384xf32>
  return %5 : tensor<128x384xf32>
}
"""


@pytest.mark.usefixtures("context")
def test_what_several_nests_make_again_joins_them_only_where_that_pays() -> None:
    module, body = body_of(SUM_READ_TWICE)
    merger = Merger(body, Scheduler(device("cpu")), "all", ())
    assert merger.group((0, 1, 2, 3)).stays_in_registers(1)
    grouping = Grouping()
    for position in range(4):
        grouping.add(position)
    grouping.merge((0, 1), bound=False)
    grouping.merge((2, 3), bound=False)
    assert not merger.melts(grouping, (1, 3))
    del module


def copies(count: int) -> str:
    """Return what `SMALL_FIRST` does, several times, on arguments each."""
    vector, cube = "tensor<64x16xf32>", "tensor<64x16x32xf32>"
    arguments = ", ".join(f"%v{n}: {vector}, %a{n}: {cube}" for n in range(count))
    values = ", ".join(f"%x{n}, %y{n}, %z{n}" for n in range(count))
    types = ", ".join([vector, cube, cube] * count)
    lines = "".join(
        f"""
  %x{n} = linalg.exp ins(%v{n} : {vector}) outs(%0 : {vector}) -> {vector}
  %y{n} = linalg.generic {{indexing_maps = [#cube, #square, #cube],
                         iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%a{n}, %x{n} : {cube}, {vector}) outs(%1 : {cube}) {{
  ^bb0(%p: f32, %q: f32, %o: f32):
    %d = arith.mulf %p, %q : f32
    linalg.yield %d : f32
  }} -> {cube}
  %z{n} = linalg.exp ins(%y{n} : {cube}) outs(%1 : {cube}) -> {cube}"""
        for n in range(count)
    )
    maps = SMALL_FIRST[: SMALL_FIRST.index("func.func")]
    return f"""{maps}
func.func @main({arguments}) -> ({types}) {{
  %0 = tensor.empty() : {vector}
  %1 = tensor.empty() : {cube}{lines}
  return {values} : {types}
}}
"""


@pytest.mark.usefixtures("context")
def test_equal_parts_are_grouped_as_the_first_one_is() -> None:
    """With the reasons of all edges, each naming operators of its own part."""
    count = 12
    _module, body = body_of(copies(count))
    merger = Merger(body, Scheduler(device("cpu")), "all", ())
    searched: list[int] = []

    class Noting(GroupSearch):
        def run(self, positions: Iterable[int]) -> Grouping:
            searched.extend(positions)
            return super().run(searched)

    found = connect_parts(merger, Noting(merger, 4, 128))
    assert searched == [0, 1, 2]
    whole = GroupSearch(merger, 4, 10**6).run(range(len(body.operators)))
    assert groups(found) == groups(whole)
    assert found.root_of == whole.root_of
    assert found.refusals == whole.refusals
    assert len(found.refusals) == count


@pytest.mark.usefixtures("context")
def test_parts_that_a_value_joins_are_searched_together() -> None:
    _module, body = body_of(chain_of_exponentials(40))
    merger = Merger(body, Scheduler(device("cpu")), "all", ())
    search_ = GroupSearch(merger, 4, 128)
    assert groups(connect_parts(merger, search_)) == groups(search(body, 4)[0])
