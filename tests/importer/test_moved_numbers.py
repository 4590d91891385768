"""Numbers that a graph takes from the CPU, and copies that are none of its device."""

from __future__ import annotations

import pytest
import torch
from torch import fx

from magweld.importer.simplify import simplify

HOME = "meta"  # stands for a device that this machine may not have


@pytest.mark.parametrize(
    ("number", "to", "stays"),
    [((), HOME, False), ((1,), HOME, True), ((), "cpu", False), ((1,), "cpu", False)],
)
def test_a_copy_to_the_device_of_a_graph(
    number: tuple[int, ...], to: str, stays: bool
) -> None:
    graph = fx.Graph()
    x, n = graph.placeholder("x"), graph.placeholder("n")
    x.meta["val"] = torch.empty(2, device=HOME)
    n.meta["val"] = torch.empty(number)
    copy = graph.call_function(torch.ops.aten._to_copy.default, (n,), {"device": to})
    copy.meta["val"] = torch.empty(number, device=to)
    made = graph.call_function(torch.ops.aten.mul.Tensor, (x, copy))
    made.meta["val"] = x.meta["val"]
    graph.output((made,))
    simplify(graph)
    assert (copy in graph.nodes) == stays
