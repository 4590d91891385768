"""Rows that all parts of a tensor of any size read: copied, and the rest generated."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from recording import Operators, record
from torch import Tensor
from torch.nn import functional as F

from magweld.artifact import StandIns
from magweld.importer.importer import ImportedGraph, import_graph
from magweld.importer.joined_rows import JoinedRows

# Stand for a batch and a length.
BATCH, LENGTH = 53, 61
STAND_INS = StandIns((BATCH, LENGTH))
aten = torch.ops.aten


def imported(function: Callable[..., Any], *examples: Tensor) -> ImportedGraph:
    """Import a function for any batch and length."""
    with torch.no_grad():
        graph = record(function, *examples)
        return import_graph(graph, examples, stand_ins=STAND_INS)


def externals(found: ImportedGraph) -> list[object]:
    """Return the last operators of what runs through torch."""
    return [one.node.target for one in found.externals.values()]


def example(*shape: int) -> Tensor:
    """Return numbers that are no round ones."""
    return torch.randn(shape)


@pytest.mark.parametrize("shape", [(LENGTH, 8), (1, LENGTH, 8)])
@pytest.mark.parametrize("how", [operator.add, operator.sub, operator.mul])
@pytest.mark.parametrize("first", [False, True])
def test_rows_are_copied_in_native_code(
    how: Callable[..., Tensor], shape: tuple[int, ...], first: bool
) -> None:
    def program(x: Tensor, rows: Tensor) -> Tensor:
        y = torch.relu(x)
        return how(rows, y) if first else how(y, rows)

    found = imported(program, example(BATCH, LENGTH, 8), example(*shape))
    (external,) = found.externals.values()
    assert external.node.target is aten.repeat.default
    code = external.sized(STAND_INS)
    assert code is not None
    for batch, length in [(1, 1), (1, 5), (7, 1), (3, 4), (200, 3), (2, 333)]:
        run = code.at((batch, length))
        assert isinstance(run, JoinedRows)
        rows = example(*shape[:-2], length, 8)
        with Operators() as ran:
            (spread,) = run(rows)
        assert not ran.names
        assert torch.equal(spread, rows.expand(batch, length, 8))


def test_rows_of_a_table_are_copied_where_they_begin() -> None:
    def program(x: Tensor, table: Tensor) -> Tensor:
        return torch.relu(x) + table[3 : 3 + x.shape[1]]

    found = imported(program, example(BATCH, LENGTH, 8), example(100, 8))
    (external,) = found.externals.values()
    assert external.node.target is aten.repeat.default


@pytest.mark.parametrize(
    "program",
    [
        lambda x, rows: x + rows,
        lambda x, rows: F.softmax(x, 1) + rows,
        lambda x, rows: torch.relu(x.double()) + rows,
        lambda x, rows: torch.relu(x.transpose(0, 1)) + rows[0],
    ],
    ids=["alone", "beside torch", "f64", "one row"],
)
def test_others_stay_as_they_are(program: Callable[..., Tensor]) -> None:
    """A kernel between steps of torch is one step more; others are not native."""
    found = imported(program, example(BATCH, LENGTH, 8), example(LENGTH, 8))
    assert aten.repeat.default not in externals(found)


def test_columns_of_any_size_stay_as_they_are() -> None:
    found = imported(
        lambda x, rows: torch.relu(x) + rows, example(BATCH, LENGTH), example(LENGTH)
    )
    assert aten.repeat.default not in externals(found)
