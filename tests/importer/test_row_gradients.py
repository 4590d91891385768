"""Gradients of tables: which are sums of bags, which torch makes and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, fx

from magweld.artifact import RowOrder
from magweld.importer.importer import import_graph
from magweld.importer.row_gradients import PLACES_BY_ROW, ROW_GRADIENTS
from magweld.training.joint import Halves, trace_halves
from magweld.training.observation import observe_training

aten = torch.ops.aten
ROWS = 7


def indices(*shape: int, kind: torch.dtype = torch.int64) -> Tensor:
    """Return indices, some of them several times, the last row not at all."""
    count = torch.Size(shape).numel()
    return (torch.arange(count) * 4 % (ROWS - 1)).to(kind).view(shape)


def imported(target: Any, *arguments: Any) -> Any:
    """Import a call of an operator on a gradient and indices."""
    graph = fx.Graph()
    inputs = [one for one in arguments if isinstance(one, Tensor)]
    nodes = [graph.placeholder(f"input_{number}") for number in range(len(inputs))]
    rest = [one for one in arguments if not isinstance(one, Tensor)]
    graph.output((graph.call_function(target, (*nodes, *rest)),))
    module = fx.GraphModule(torch.nn.Module(), graph)
    return import_graph(module, inputs, look_ups=True)


@pytest.mark.parametrize("padding", [-1, 2])
@pytest.mark.parametrize("kind", [torch.int64, torch.int32])
def test_gradients_of_embeddings_are_sums_of_bags(
    kind: torch.dtype, padding: int
) -> None:
    ids, gradient = indices(3, 4, kind=kind), torch.randn(3, 4, 5)
    arguments = (gradient, ids, ROWS, padding, False)
    found = imported(aten.embedding_dense_backward.default, *arguments)
    ((name, external),) = found.externals.items()
    assert external.node.target is PLACES_BY_ROW
    assert found.index_checks == {name: RowOrder(0, 1, padding)}
    assert not found.reasons
    (mine,) = found.aten(gradient, ids)
    assert torch.equal(mine, aten.embedding_dense_backward(*arguments))


@pytest.mark.parametrize("padding", [-1, 2])
def test_gradients_of_bags_are_sums_of_bags(padding: int) -> None:
    ids, gradient = indices(12), torch.randn(4, 5, dtype=torch.float64)
    found = imported(ROW_GRADIENTS, gradient, ids, ROWS, 3, padding)
    assert [*found.index_checks.values()] == [RowOrder(0, 3, padding)]
    (mine,) = found.aten(gradient, ids)
    each = gradient.repeat_interleave(3, 0)
    kept = ids != padding
    theirs = torch.zeros(ROWS, 5, dtype=torch.float64).index_add(
        0, ids[kept], each[kept]
    )
    torch.testing.assert_close(mine, theirs)
    through_torch = ROW_GRADIENTS(gradient, ids, ROWS, 3, padding)
    torch.testing.assert_close(through_torch, theirs)


def test_an_order_of_indices_that_name_no_row_is_an_error() -> None:
    for bad in (-1, ROWS):
        with pytest.raises(IndexError):
            PLACES_BY_ROW(torch.tensor([0, bad]), ROWS, 1, -1)


LEFT: dict[str, tuple[Tensor, Tensor, bool]] = {
    "row-gradient-rounding": (torch.randn(6, 5).bfloat16(), indices(6), False),
    "row-gradient-scale": (torch.randn(6, 5), indices(6), True),
    "row-gradient-empty": (torch.randn(0, 5), indices(0), False),
}


@pytest.mark.parametrize("reason", LEFT)
def test_other_gradients_run_through_torch_and_say_why(reason: str) -> None:
    gradient, ids, scaled = LEFT[reason]
    target = aten.embedding_dense_backward.default
    found = imported(target, gradient, ids, ROWS, -1, scaled)
    (told,) = found.reasons
    assert f": {reason}" in told
    (mine,) = found.aten(gradient, ids)
    assert torch.equal(mine, target(gradient, ids, ROWS, -1, scaled))


def halves(function: Callable[..., Any], record: Any, *inputs: Tensor) -> Halves:
    """Return the graphs of both halves of a function."""
    graph = record(lambda *given: (function(*given),), *inputs)
    leaves = [
        one.clone().requires_grad_() if one.is_floating_point() else one
        for one in inputs
    ]
    return trace_halves(graph, leaves, observe_training(graph, leaves))


def targets(graph: fx.GraphModule) -> set[Any]:
    return {node.target for node in graph.graph.nodes}


@pytest.mark.parametrize("padding", [None, 2])
def test_bags_have_gradients_that_read_no_more_of_them(
    padding: int | None, record: Any
) -> None:
    def function(table: Tensor, ids: Tensor) -> Tensor:
        return F.embedding_bag(ids, table, mode="sum", padding_idx=padding)

    table, ids = torch.randn(ROWS, 5), indices(4, 3)
    found = halves(function, record, table, ids)
    (stage,) = found.stages
    assert ROW_GRADIENTS in targets(stage.graph)
    assert aten._embedding_bag_backward.default not in targets(stage.graph)
    # Only the bags are read: generated code makes them.
    assert stage.saved == (("input", 1),)
    with_grad = [table.clone().requires_grad_(), ids]
    made = import_graph(found.forward, with_grad, look_ups=True)
    assert set(made.index_checks) == set(made.externals)


NEAR: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mean": lambda table, ids: F.embedding_bag(ids, table, mode="mean"),
    "max": lambda table, ids: F.embedding_bag(ids, table, mode="max"),
    "scaled": lambda table, ids: F.embedding_bag(
        ids, table, mode="sum", scale_grad_by_freq=True
    ),
    "weighted": lambda table, ids: F.embedding_bag(
        ids, table, mode="sum", per_sample_weights=torch.ones(4, 3)
    ),
    "ragged": lambda table, ids: F.embedding_bag(
        ids.view(-1), table, torch.tensor([0, 5, 5]), mode="sum"
    ),
    "fewer": lambda table, ids: F.embedding_bag(
        ids.view(-1),
        table,
        torch.arange(0, 12, 3),
        mode="sum",
        include_last_offset=True,
    ),
}


@pytest.mark.parametrize("case", NEAR)
def test_gradients_of_other_bags_are_left_as_they_are(case: str, record: Any) -> None:
    found = halves(NEAR[case], record, torch.randn(ROWS, 5), indices(4, 3))
    (stage,) = found.stages
    assert ROW_GRADIENTS not in targets(stage.graph)
    assert aten._embedding_bag_backward.default in targets(stage.graph)
