"""Owns layers of LSTMs over any number of steps that are computed by native code."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor, fx
from torch.nn import functional as F

from magweld.codegen.recurrent_code import RECURRENT_CODE
from magweld.codegen.recurrent_kernels import Word
from magweld.codegen.shared_code import float_lanes
from magweld.importer.nodes import (
    argument,
    operand,
    positions_read,
    tensors_of,
)

# The number that torch's library has for LSTMs.
_LSTM: Final = 2
# The part of its results that only gradients need.
_WORKSPACE: Final = 3
_LAYER: Final = torch.ops.aten.mkldnn_rnn_layer.default
_TENSORS: Final = ("input", "weight0", "weight1", "weight2", "weight3", "hx_", "cx_")
_NAMES: Final = (*_TENSORS, "reverse", "has_biases")
# Units whose weights stay in the caches from step to step: torch's library shares out
# more of them among threads.
_MOST_UNITS: Final = 512
# What native code reads of a layer.
_WORDS: Final = f"{len(Word)}q"


def is_native_layer(node: fx.Node) -> bool:
    """Tell whether a recurrent layer of torch's library has native code.

    Args:
        node: Of `mkldnn_rnn_layer`.
    """
    # The operator is one layer in one direction, steps outermost, whatever it is told
    # of the whole that it is a part of.
    if argument(node, "mode") != _LSTM or argument(node, "train"):
        return False
    if argument(node, "batch_sizes") or _WORKSPACE in (positions_read(node) or ()):
        return False
    tensors = [t for one in node.all_input_nodes for t in tensors_of(one)]
    if any(t.dtype is not torch.float32 or t.device.type != "cpu" for t in tensors):
        return False
    units: int = argument(node, "hidden_size")
    shapes = [tuple(tensors_of(operand(node, n))[0].shape) for n in range(3)]
    (_, _, width), own, recurrent = shapes
    fits = (own, recurrent) == ((4 * units, width), (4 * units, units))
    return fits and units % float_lanes() == 0 and units <= _MOST_UNITS


def layer_arguments(node: fx.Node) -> list[Any]:
    """Return what `run_layer` takes, of the arguments of such a node."""
    return [argument(node, name) for name in _NAMES]


def native_layer(node: fx.Node) -> Callable[..., Any] | None:
    """Return what runs in the place of an operator, on its arguments; None if not so.

    Args:
        node: Of any operator.
    """
    if node.target is not _LAYER or not is_native_layer(node):
        return None

    names = [one.name for one in _LAYER._schema.arguments]
    places = [names.index(name) for name in _NAMES]

    def run(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor, Tensor]:
        given = [*args, *(kwargs[name] for name in names[len(args) :])]
        return run_layer(*(given[place] for place in places))

    return run


def run_layer(
    source: Tensor,
    own: Tensor,
    recurrent: Tensor,
    own_bias: Tensor,
    recurrent_bias: Tensor,
    state: Tensor,
    cell: Tensor,
    reverse: bool,
    has_biases: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the states of all steps, the last state, and the last cell.

    Args:
        source: [steps, sequences, inputs].
        own: [4 * units, inputs], weights of the input.
        recurrent: [4 * units, units], weights of the state.
        own_bias: [4 * units].
        recurrent_bias: [4 * units].
        state: The first one, of as many elements as [sequences, units].
        cell: The same.
        reverse: Whether the last step is the first one.
        has_biases: Whether the biases count.
    """
    steps, sequences, _ = source.shape
    units = recurrent.shape[1]
    bias = own_bias + recurrent_bias if has_biases else None
    # A product takes rows with gaps one matrix after another.
    given = F.linear(source.contiguous(), own, bias)
    weight, first = recurrent.contiguous(), state.contiguous()
    result = source.new_empty((steps, sequences, units))
    last = cell.clone(memory_format=torch.contiguous_format)
    packed = source.new_empty(weight.numel())
    stride = sequences * units
    # In the order of `Word`.
    words = struct.pack(
        _WORDS,
        *map(Tensor.data_ptr, (given, weight, first, last, result, packed)),
        *(steps, sequences, units, units // float_lanes()),
        *((steps - 1, -stride) if reverse else (0, stride)),
        min(torch.get_num_threads(), max(sequences, 1)),
    )
    RECURRENT_CODE.loaded().run(words)
    end = first if steps == 0 else result[0 if reverse else steps - 1]
    return result, end.reshape(state.shape).clone(), last
