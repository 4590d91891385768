"""Graphs with control flow through the compiler: pieces compiled, results equal."""

from __future__ import annotations

import pytest
import torch

from magweld.bindings import ir
from magweld.frontend.traced import trace
from magweld.piecewise import PiecewiseGraph


def deep(x):
    """Return what is too far from the inputs for a guard."""
    for _ in range(60):
        x = x * 1.01
    return x


def with_branch(x):
    h = deep(x)
    if h.sum() > 0:
        h = torch.relu(h * 2 + 1).softmax(-1) + h
    return h.exp() * 2 - 1, h


def with_loop(x):
    h = deep(x)
    while h.norm() > 1:
        h = h * 0.5 - h.mean() * 0.001
        h = h + 0.0001
    return h * 2


def with_both(x):
    h = deep(x)
    k = h
    while h.abs().max() > 2:
        if h.mean() > 0:
            h = (h * 0.5 - 0.01).tanh() * 1.5
        else:
            h = h * 0.7 + k * 0.001
    return h, k


def with_writes(x):
    h = deep(x)
    if h.sum() > 0:
        x.add_(1).mul_(0.5).sub_(h)
    else:
        h = x
    h.mul_(2)
    return h + x, h


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("program", "is_one"),
    [(with_branch, True), (with_loop, True), (with_both, True), (with_writes, False)],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_compiled_pieces(program, is_one):
    traced = trace(program)
    torch.manual_seed(2)
    with torch.no_grad():
        for scale in (1.0, -1.0, 5.0, 0.1, -3.0):
            x = (torch.randn(4, 16) + 0.2) * scale
            mine, theirs = x.clone(), x.clone()
            results, expected = traced(mine), program(theirs)
            torch.testing.assert_close(results, expected)
            torch.testing.assert_close(mine, theirs)
            if isinstance(results, tuple):
                aliases = [r.data_ptr() == mine.data_ptr() for r in results]
                assert aliases == [e.data_ptr() == theirs.data_ptr() for e in expected]
    assert traced.stats()["graphs"] == 1
    (record,) = traced.records
    assert record.breaks == []
    assert isinstance(record.compiled, PiecewiseGraph) is not is_one
    if not is_one:
        assert record.inspectable.report()["pieces"] >= 1
    assert "linalg.generic" in record.mlir("linalg")


@pytest.mark.parametrize(
    ("program", "operations"),
    [
        (with_branch, ["scf.if"]),
        (with_loop, ["scf.while"]),
        (with_both, ["scf.if", "scf.while"]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_control_flow_is_lowered(program, operations):
    traced = trace(program)
    with torch.no_grad():
        traced(torch.full((4, 16), 3.0))
    (record,) = traced.records
    text = record.mlir("torch")
    assert text.count("func.func @main(") == 1
    lowered = record.mlir("linalg")
    assert all(operation in lowered for operation in operations)
    assert "torch." not in lowered
    # Later stages are those of the pieces.
    assert "scf.if" not in record.mlir("tile-graph")


def test_a_loop_that_leaves_on_true_is_lowered():
    def program(x):
        h = deep(x)
        while True:
            h = h * 0.5 - 0.001 + h.mean() * 0.01
            if h.norm() < 1:
                break
        return h

    traced = trace(program)
    with torch.no_grad():
        for scale in (1.0, 30.0):
            x = torch.ones(4, 16) * scale
            torch.testing.assert_close(traced(x), program(x))
    assert traced.stats()["hits"] == 1
    assert "scf.while" in traced.records[0].mlir("linalg")


def test_gradients_run_through_torch():
    weight = torch.randn(16, requires_grad=True)

    def program(x):
        return with_branch(x * weight)[1].sum()

    traced = trace(program)
    for scale in (1.0, -1.0):
        x = torch.ones(4, 16) * scale
        (mine,) = torch.autograd.grad(traced(x), weight)
        (theirs,) = torch.autograd.grad(program(x), weight)
        assert torch.equal(mine, theirs)
    assert [item.id for item in traced.records[0].breaks] == ["training-graph"]


class Recurrent(torch.nn.Module):
    """A gated cell, step by step."""

    def __init__(self):
        super().__init__()
        self.inputs = torch.nn.Linear(8, 32)
        self.hidden = torch.nn.Linear(16, 32)

    def forward(self, x):
        h = x.new_zeros(x.size(0), 16)
        outputs = []
        for step in range(x.size(1)):
            gate, new = (self.inputs(x[:, step]) + self.hidden(h)).chunk(2, 1)
            h = torch.sigmoid(gate) * h + torch.tanh(new)
            outputs.append(h * (step + 1))
        return torch.stack(outputs, 1), h


def test_a_loop_over_a_range_is_lowered():
    torch.manual_seed(0)
    module = Recurrent()
    traced = trace(module, dynamic={"x": (0, 1)})
    with torch.no_grad():
        for rows, steps in ((3, 4), (2, 3), (3, 4), (3, 4), (3, 4), (2, 6), (3, 4)):
            x = torch.randn(rows, steps, 8)
            torch.testing.assert_close(traced(x), module(x))
    assert traced.stats()["records"] == 1
    (record,) = traced.records
    assert record.compiled.compiled == 1
    assert "torch.prim.Loop" in record.mlir("torch")
    lowered = record.mlir("linalg")
    assert "scf.for" in lowered
    assert "iter_args" in lowered
    assert "torch." not in lowered
    with ir.Context():
        ir.Module.parse(lowered)


def test_loops_with_numbers_that_index_and_count():
    def program(x, n):
        total = x[0]
        for i in range(1, n, 2):
            total = torch.tanh(total * 0.5 + x[i - 1, None, :].select(0, 0)) - i
        return total

    traced = trace(program, dynamic={"n": True})
    with torch.no_grad():
        x = torch.randn(9, 16)
        for n in (6, 4, 9):
            torch.testing.assert_close(traced(x, n), program(x, n))
    (record,) = traced.records
    assert "scf.for" in record.mlir("linalg")


def test_a_list_that_leaves_the_graph_has_no_module():
    traced = trace(lambda x, n: [x * i for i in range(n)], dynamic={"n": True})
    traced(torch.ones(4), 3)
    with pytest.raises(ValueError, match="list"):
        traced.records[0].mlir("linalg")
