"""Layers of LSTMs over any number of steps: native code beside torch's."""

from __future__ import annotations

import math

import pytest
import torch
from recording import Operators
from torch import Tensor, fx

from magweld.artifact import StandIns
from magweld.codegen.recurrent_code import RECURRENT_CODE
from magweld.codegen.shared_code import float_lanes
from magweld.importer.importer import ImportedGraph, import_graph
from magweld.importer.nodes import values_of
from magweld.importer.recurrent_layers import is_native_layer, run_layer

UNITS = 2 * float_lanes()
STAND_INS = StandIns((61,))


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def layer(inputs: int, units: int, *, bias: bool = True) -> list[Tensor]:
    """Return weights of the input and the state, and their biases."""
    rows = 4 * units
    weights = [torch.randn(rows, inputs), torch.randn(rows, units)]
    biases = [torch.randn(rows) for _ in range(2)] if bias else []
    return [one / math.sqrt(units) for one in (*weights, *biases)]


def expected(source: Tensor, weights: list[Tensor], *states: Tensor) -> list[Tensor]:
    """Return what torch makes of steps one by one."""
    state, cell = states
    rows = []
    for step in source:
        state, cell = torch.lstm_cell(step, (state, cell), *weights)
        rows.append(state)
    shape = (0, *state.shape)
    result = torch.stack(rows) if rows else state.new_empty(shape)
    return [result, state, cell]


@pytest.mark.parametrize("sequences", [1, 2, 3, 7, 13])
@pytest.mark.parametrize("steps", [0, 1, 2, 31])
def test_any_steps_have_the_results_of_torch(steps: int, sequences: int) -> None:
    for inputs, units in ((1, UNITS), (5, 3 * UNITS)):
        weights = layer(inputs, units)
        source = torch.randn(steps, sequences, inputs)
        states = torch.randn(sequences, units), torch.randn(sequences, units)
        before = [one.clone() for one in states]
        found = run_layer(source, *weights, *states, False, True)
        for one, other in zip(found, expected(source, weights, *states), strict=True):
            torch.testing.assert_close(one, other)
        assert all(map(torch.equal, states, before)), "no operand is written to"


def test_steps_may_go_back() -> None:
    weights = layer(4, UNITS)
    source, zeros = torch.randn(9, 3, 4), torch.zeros(3, UNITS)
    found = run_layer(source, *weights, zeros, zeros, True, True)
    rows, state, cell = expected(source.flip(0), weights, zeros, zeros)
    for one, other in zip(found, (rows.flip(0), state, cell), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 1e30, -1e30, 100.0])
def test_gates_have_any_number(number: float) -> None:
    weights = layer(2, UNITS)
    source, zeros = torch.randn(3, 4, 2), torch.zeros(4, UNITS)
    source[1, 2, 0] = number
    found = run_layer(source, *weights, zeros, zeros, False, True)
    for one, other in zip(found, expected(source, weights, zeros, zeros), strict=True):
        torch.testing.assert_close(one, other, equal_nan=True)


def test_threads_change_no_bit() -> None:
    weights = layer(4, UNITS)
    source, zeros = torch.randn(9, 5, 4), torch.zeros(5, UNITS)
    before = torch.get_num_threads()
    found = []
    try:
        for number in (1, 2, 3):
            torch.set_num_threads(number)
            found.append(run_layer(source, *weights, zeros, zeros, False, True))
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert all(map(torch.equal, found[0], other))


def imported(
    units: int, dtype: torch.dtype = torch.float32, stand_ins: StandIns = STAND_INS
) -> ImportedGraph:
    """Return a graph with one layer of so many units."""
    weights = [one.to(dtype) for one in layer(8, units)]

    def function(x: Tensor, state: Tensor, *given: Tensor) -> Tensor:
        rows, _, _ = torch.lstm(
            x, (state, state), list(given), True, 1, 0.0, False, False, False
        )
        return torch.relu(rows[-1]) * 2

    graph = fx.symbolic_trace(lambda x, h, a, b, c, d: function(x, h, a, b, c, d))
    given = [torch.zeros(61, 3, 8, dtype=dtype), torch.zeros(1, 3, units, dtype=dtype)]
    with torch.no_grad():
        return import_graph(graph, [*given, *weights], stand_ins=stand_ins)


def layers_of(units: int, dtype: torch.dtype = torch.float32) -> list[fx.Node]:
    """Return the recurrent layers of such a graph."""
    found = imported(units, dtype)
    run = [n for one in found.externals.values() for n in (*one.beside, one.node)]
    target = torch.ops.aten.mkldnn_rnn_layer.default
    return [node for node in run if node.target is target]


def test_whole_vectors_of_units_have_native_code() -> None:
    assert [*map(is_native_layer, layers_of(UNITS))] == [True]


def test_other_layers_are_torchs() -> None:
    assert [*map(is_native_layer, layers_of(UNITS + 1))] == [False]
    assert [*map(is_native_layer, layers_of(32 * 32))] == [False], "too many units"
    assert not any(map(is_native_layer, layers_of(UNITS, torch.bfloat16)))


def test_programs_for_one_size_have_it_as_well() -> None:
    lstm = torch.nn.LSTM(8, UNITS, batch_first=True)
    # Operands are told apart by their shapes.
    lstm.bias_hh_l0.data.copy_(lstm.bias_ih_l0.data)
    weights = [weight.detach() for weight in lstm.parameters()]

    def function(x: Tensor, state: Tensor, *given: Tensor) -> Tensor:
        rows, _, _ = torch.lstm(
            x, (state, state), list(given), True, 1, 0.0, False, False, True
        )
        return torch.relu(rows[:, -1]) * 2

    graph = fx.symbolic_trace(lambda x, h, a, b, c, d: function(x, h, a, b, c, d))
    given = [torch.randn(3, 40, 8), torch.zeros(1, 3, UNITS), *weights]
    with torch.no_grad():
        found = import_graph(graph, given)
        (external,) = found.externals.values()
        source = given[0].transpose(0, 1)
        operands = (source, *weights, given[1][0])
        by_shape = {tuple(one.shape): one for one in operands}
        shapes = [tuple(values_of(node).shape) for node in external.operands]
        with Operators() as ran:
            rows, *_ = external([by_shape[shape] for shape in shapes])
        assert not [name for name in ran.names if "rnn_layer" in name]
        torch.testing.assert_close(rows.transpose(0, 1), lstm(given[0])[0])


@pytest.mark.parametrize("stand_ins", [StandIns(()), STAND_INS])
@pytest.mark.parametrize("units", [UNITS, UNITS + 1])
def test_a_graph_tells_the_native_code_of_its_layers(
    units: int, stand_ins: StandIns
) -> None:
    found = imported(units, stand_ins=stand_ins).shared_code
    assert found == ([RECURRENT_CODE] if units == UNITS else [])
