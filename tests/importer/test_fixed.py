"""Operators of fixed inputs alone are evaluated where they have no generated code."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, fx

from magweld.importer.importer import import_graph


def function(x: Tensor, table: Tensor, places: Tensor) -> Tensor:
    values, order = table.t().sort(dim=0)
    picked = values.gather(0, places + 1)
    return x + picked.lgamma() + order.sum() + table[0].exp().sum()


def test_what_torch_would_make_of_fixed_inputs_is_a_constant(
    record: Callable[..., fx.GraphModule],
) -> None:
    x, table = torch.randn(2, 3), torch.rand(3, 5)
    places = torch.randint(0, 3, (2, 3))
    inputs = [x, table, places]
    graph = record(function, *inputs)
    as_it_is = import_graph(graph, inputs)
    assert len(as_it_is.externals) >= 3
    imported = import_graph(graph, inputs, fixed=frozenset({1, 2}))
    assert not imported.externals
    values, order = table.t().sort(dim=0)
    made = values.gather(0, places + 1).lgamma()
    found = imported.constants[len(as_it_is.constants) :]
    assert any(torch.equal(one, made) for one in found)
    # What has generated code stays: weights are not changed at compile time.
    assert "aten.exp" in imported.text
    partly = import_graph(graph, inputs, fixed=frozenset({1}))
    assert {"gather", "lgamma"} <= set(partly.externals)
    assert "sort" not in partly.externals
    assert order.dtype is torch.int64
