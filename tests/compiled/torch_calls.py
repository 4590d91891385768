"""Owns how often each kind of random call is tried, and random graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import arithmetic_calls
import branched_calls
import large_calls
import moving_calls
import product_calls
import reducing_calls
import torch
from torch_graphs import Graph, Refused

Call = Callable[[Graph], Any]

KINDS: dict[Call, int] = {
    arithmetic_calls.unary: 10,
    arithmetic_calls.tanh_gelu: 1,
    arithmetic_calls.leaky: 1,
    arithmetic_calls.positive_unary: 2,
    arithmetic_calls.steps: 1,
    arithmetic_calls.binary: 14,
    arithmetic_calls.with_scalar: 4,
    arithmetic_calls.scaled_add: 1,
    arithmetic_calls.reversed_scalar: 1,
    arithmetic_calls.divide: 4,
    arithmetic_calls.whole_division: 1,
    arithmetic_calls.power: 2,
    arithmetic_calls.compare: 3,
    arithmetic_calls.logic: 2,
    arithmetic_calls.invert: 1,
    arithmetic_calls.bits: 1,
    arithmetic_calls.choose: 3,
    arithmetic_calls.mask: 2,
    arithmetic_calls.clamp: 2,
    arithmetic_calls.blend: 1,
    reducing_calls.cast: 4,
    reducing_calls.alike: 1,
    reducing_calls.filled: 1,
    reducing_calls.counted: 1,
    reducing_calls.total: 8,
    reducing_calls.total_as: 1,
    reducing_calls.extreme: 1,
    reducing_calls.place: 1,
    reducing_calls.truth: 2,
    reducing_calls.spread: 2,
    reducing_calls.length: 1,
    reducing_calls.log_sum: 1,
    reducing_calls.running_total: 1,
    reducing_calls.softmax: 4,
    product_calls.product: 7,
    product_calls.transposed_product: 4,
    product_calls.linear: 5,
    product_calls.add_product: 2,
    product_calls.batches: 2,
    product_calls.einsum: 3,
    product_calls.attention: 3,
    product_calls.convolution: 7,
    product_calls.pool: 4,
    product_calls.adaptive_pool: 1,
    product_calls.resize: 1,
    product_calls.shuffle: 1,
    product_calls.patches: 1,
    reducing_calls.layer_norm: 3,
    reducing_calls.rms_norm: 1,
    reducing_calls.batch_norm: 2,
    reducing_calls.training_norm: 1,
    reducing_calls.group_norm: 1,
    reducing_calls.normalise: 1,
    moving_calls.reshape: 6,
    moving_calls.turn: 6,
    moving_calls.flatten: 1,
    moving_calls.squeeze: 2,
    moving_calls.widen: 2,
    moving_calls.part: 5,
    moving_calls.flip: 2,
    moving_calls.join: 4,
    moving_calls.stack: 2,
    moving_calls.split: 2,
    moving_calls.rejoin: 4,
    moving_calls.repeat: 2,
    moving_calls.pad: 3,
    moving_calls.triangle: 1,
    moving_calls.diagonal: 1,
    moving_calls.windows: 1,
    moving_calls.rows: 3,
    moving_calls.elements: 1,
    moving_calls.select: 1,
    moving_calls.one_hot: 1,
    moving_calls.sort: 1,
    moving_calls.write: 2,
    moving_calls.write_alone: 1,
    moving_calls.write_part: 2,
    moving_calls.write_masked: 1,
}
"""How often each kind of call is tried."""

LARGE: dict[Call, int] = {
    large_calls.minimal_filtering: 4,
    large_calls.joined: 4,
    large_calls.long_reduction: 3,
    large_calls.any_reduction: 2,
    large_calls.streamed: 3,
    large_calls.wide_product: 4,
    large_calls.normed: 2,
    large_calls.turned: 2,
    large_calls.write_large: 2,
    large_calls.ragged: 3,
}
"""The same, on tensors that are made in many tiles."""

BRANCHED: dict[Call, int] = {branched_calls.parts: 3, branched_calls.separate: 2}
"""The same, where several values become the same."""

LARGE_ELEMENTS = 400_000

# What becomes of infinities differs among torch's own algorithms.
FINITE_ONLY = frozenset(
    {
        branched_calls.parts,
        branched_calls.separate,
        large_calls.minimal_filtering,
        large_calls.normed,
        large_calls.streamed,
        product_calls.attention,
        reducing_calls.batch_norm,
        product_calls.convolution,
        reducing_calls.group_norm,
        reducing_calls.layer_norm,
        reducing_calls.rms_norm,
        reducing_calls.spread,
        reducing_calls.training_norm,
    }
)


def random_graph(seed: int) -> Graph:
    """Return a random graph of some calls."""
    g = Graph(seed)
    g.input(g.shape(g.random.choice((1, 2, 2, 3, 3, 4))), torch.float32)
    return _grown(g, KINDS, g.random.randint(2, 20))


def half_graph(seed: int, dtype: torch.dtype) -> Graph:
    """Return a random graph of some calls that begin with a tensor of halves."""
    g = Graph(seed)
    g.input(g.shape(g.random.choice((1, 2, 2, 3, 3, 4))), dtype)
    return _grown(g, KINDS, g.random.randint(2, 20))


def large_graph(seed: int) -> Graph:
    """Return a random graph of some calls, on tensors of many tiles."""
    g = Graph(seed, most=LARGE_ELEMENTS)
    small = sum(KINDS.values())
    most = {call: 2 * small * often for call, often in LARGE.items()}
    few = {call: often * sum(LARGE.values()) for call, often in KINDS.items()}
    large_calls.ragged(g)
    return _grown(g, most | few, g.random.randint(2, 10))


def branched_graph(seed: int) -> Graph:
    """Return a random graph of splits, equal branches and joins."""
    g = Graph(seed)
    g.input(g.shape(g.random.choice((2, 2, 3))), torch.float32)
    small = sum(KINDS.values())
    most = {call: 4 * small * often for call, often in BRANCHED.items()}
    few = {call: often * sum(BRANCHED.values()) for call, often in KINDS.items()}
    return _grown(g, most | few, g.random.randint(6, 30))


def _grown(g: Graph, kinds: dict[Call, int], wanted: int) -> Graph:
    calls = g.random.choices(list(kinds), list(kinds.values()), k=200)
    if g.special:
        calls = [call for call in calls if call not in FINITE_ONLY]
    before = len(list(g.graph.nodes)) - len(g.inputs)
    for call in calls:
        try:
            call(g)
        except Refused:
            continue
        if len(list(g.graph.nodes)) - len(g.inputs) - before >= wanted:
            break
    return g
