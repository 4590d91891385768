"""The promise of the table of generated operators: each was compared with torch."""

from __future__ import annotations

from typing import Any

import test_bags
import test_gathers
import test_layers
import test_operators
import test_reductions
import test_structure
import torch
from samples import X

from magweld.importer.importer import import_graph
from magweld.importer.operators import RULES, is_generated

TABLES = [
    test_operators.BINARY,
    test_structure.STRUCTURE,
    test_reductions.REDUCTIONS,
    test_layers.GENERATED,
    test_layers.EXTERNAL,
    test_layers.ATTENTION,
    test_gathers.LOOK_UPS,
    test_bags.BAGS,
    {name: (f, (X,)) for name, f in test_operators.UNARY.items()},
]


def test_every_generated_operator_is_compared_with_torch(record: Any) -> None:
    seen = set()
    for table in TABLES:
        for function, inputs in table.values():
            graph = record(function, *[tensor.clone() for tensor in inputs])
            imported = import_graph(graph, inputs, look_ups=True)
            for node in imported.aten.graph.nodes:
                if is_generated(node):
                    seen.add(node.target)
    assert {str(op) for op in RULES} - {str(op) for op in seen} == set()
    assert torch.ops.aten.mm.default in seen
