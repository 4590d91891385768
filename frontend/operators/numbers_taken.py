"""Owns tensors that operators take for numbers: `x[:n]` for a tensor `n`.

Where a hit knows the number, it stands in the graph, and the shape of the result does
not follow from values of tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import fx

from magweld.frontend.operators.arguments import INDEXES
from magweld.frontend.operators.kinds import NEUTRAL, acts_through_operators, name_of
from magweld.frontend.operators.predicates import Memory, is_constant
from magweld.frontend.operators.recording import Recording

if TYPE_CHECKING:
    from magweld.frontend.lifting.queries import TensorNumber

# Others choose by their elements, or are masks.
_INTEGERS: Final = (torch.int8, torch.int16, torch.int32, torch.int64)
# Native functions that take a tensor of one element for a size, a position or a number.
_SIZED: Final = frozenset(
    (
        "arange as_strided chunk empty expand eye full narrow new_empty new_full"
        " new_ones new_zeros ones pad rand randn repeat reshape roll select tile topk"
        " unfold view zeros"
    ).split()
)
# Python functions of torch that look at no number: a native one gets all of them.
_PASSING: Final = frozenset({torch.nn.functional.pad})

Places = Iterator[fx.Node]
TensorOf = Callable[[fx.Node], torch.Tensor | None]


def write_numbers(
    recording: Recording, memory: Memory, func: Any, node: fx.Node
) -> None:
    """Write numbers into a node in the place of tensors that it takes for them.

    Nothing changes unless all values that the operator has read are such numbers, each
    is known to a hit, and nothing else became of the tensors.

    Args:
        memory: What the nodes did to memory.
        func: The operator, which has run.
        node: Its node, the last one.
    """
    watch, name = recording.watch, name_of(func)
    if watch.compares or not (func in _PASSING or acts_through_operators(func)):
        return
    taken = _taken(name, node, watch.numbers, recording.tensors.tensor)
    if len(taken) < len(watch.numbers):
        return
    graph, operands = recording.graph, recording.operands
    known: dict[fx.Node, Any] = {}
    lifted: dict[fx.Node, TensorNumber] = {}
    with graph.inserting_before(node):
        for source, value in taken.items():
            read = graph.call_method("item", (source,))
            number = None
            if is_constant(graph, read, memory):
                known[source] = value
            elif operands is not None:
                number = operands.number_in(read, memory)
            graph.erase_node(read)
            if number is not None:
                lifted[source] = number
        if len(known) + len(lifted) < len(taken):
            return
        if operands is not None:
            for source, number in lifted.items():
                known[source] = operands.take(number, name in NEUTRAL)
    _write(name, node, known)
    watch.reads = False


def _taken(
    name: str, node: fx.Node, read: dict[int, Any], tensor_of: TensorOf
) -> dict[fx.Node, Any]:
    """Return the tensors that an operator has taken for numbers, with these.

    Args:
        read: Numbers that it has read, by the ids of the tensors.
    """
    if name in INDEXES:
        places = _of_index(node.args[1])
    elif name in NEUTRAL or name in _SIZED:
        places = _single(node)
    else:
        return {}
    found = {}
    for place in places:
        tensor = tensor_of(place)
        if tensor is not None and id(tensor) in read:
            if name not in INDEXES or tensor.dtype in _INTEGERS:
                found[place] = read[id(tensor)]
    return found


def _of_index(index: Any) -> Places:
    """Yield the tensors that are an index or a bound; not those in lists.

    A list of tensors is taken for a tuple, one of numbers for a tensor.
    """
    for item in index if isinstance(index, tuple) else (index,):
        is_slice = isinstance(item, slice)
        for part in (item.start, item.stop, item.step) if is_slice else (item,):
            if isinstance(part, fx.Node):
                yield part


def _single(node: fx.Node) -> Places:
    """Yield the tensors that an operator has taken at one place only."""
    places: list[fx.Node] = []
    fx.map_arg((node.args, node.kwargs), places.append)
    return (place for place in places if places.count(place) == 1)


def _write(name: str, node: fx.Node, known: dict[fx.Node, Any]) -> None:
    def mapped(part: Any) -> Any:
        return fx.map_arg(part, lambda place: known.get(place, place))

    if name in INDEXES:
        # The indexed tensor may be the index as well.
        indexed, index, *rest = node.args
        node.args = (indexed, mapped(index), *rest)
    else:
        node.args, node.kwargs = mapped(node.args), mapped(node.kwargs)
