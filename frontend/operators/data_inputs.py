"""Owns data of the caller that becomes an input of the graph: arrays, lists of numbers.

A hit makes the tensor of the data of its own call. Numbers in lists are constants of
the graph until a guard on them has failed: more follows from them than tensors.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any, Final

import torch

from magweld.frontend.operators.arguments import INDEX_DTYPES, INDEXES, TAKERS
from magweld.frontend.state.natives import is_array
from magweld.frontend.state.nodes import Kind, Node
from magweld.frontend.state.refgraph import RefGraph

_SEQUENCES: Final = frozenset({list, tuple})
_NUMBERS: Final = frozenset({bool, int, float})
# Operators that take an array for the tensor of its elements.
_COMPARES: Final = frozenset({"__eq__", "__ne__"})
# Torch refuses data that is nested much deeper.
_DEEPEST: Final = 8

# A function, its arguments and keywords.
Call = tuple[Any, tuple[Any, ...], dict[str, Any]]


class FromArray:
    """Makes the tensor that shares the memory of an array."""

    def __call__(self, array: Any) -> torch.Tensor | None:
        """Return it, None if there is none, or torch would warn about it."""
        if not is_array(array) or not array.flags.writeable:
            return None
        try:
            return torch.from_numpy(array)
        except (TypeError, ValueError):
            return None


class FromNumbers:
    """Makes a tensor of the numbers in nested lists and tuples.

    Args:
        function: A function of torch that takes them.
        options: Its keywords.
    """

    def __init__(self, function: Any, options: dict[str, Any]) -> None:
        self._call = functools.partial(function, **options)

    def __call__(self, data: Any) -> torch.Tensor | None:
        """Return it, None if there is none, or making it could run other code."""
        if not _holds_numbers(data, _DEEPEST):
            return None
        try:
            made: torch.Tensor = self._call(data)
        except (TypeError, ValueError, RuntimeError, OverflowError):
            return None
        return made


def _holds_numbers(data: Any, deepest: int) -> bool:
    if type(data) not in _SEQUENCES or not deepest:
        return False
    kinds = {*map(type, data)}
    if kinds <= _NUMBERS:
        return True
    return kinds <= _SEQUENCES and all(_holds_numbers(x, deepest - 1) for x in data)


class DataInputs:
    """Makes tensors of data of the caller inputs of the graph.

    Args:
        graph: Gets the reads, and knows what keeps changing.
    """

    def __init__(self, graph: RefGraph) -> None:
        self._graph = graph

    def replaced(self, func: Any, args: Any, kwargs: Any, result: Any) -> Call | None:
        """Return the call that makes the same tensor of an input, None if none does.

        A call without a function tells that the result itself is the input.
        """
        data = args[0] if args else kwargs.get("data")
        # What else there is must be the dtype.
        others = {*kwargs} - {"data"}
        if func not in TAKERS or others - {"dtype"} or len(args) > 1:
            return None
        if is_array(data):
            return self._of_array(data, result) if self._is_of_caller(data) else None
        if not self._graph.changing or type(data) not in _SEQUENCES:
            return None
        maker = FromNumbers(func, {key: kwargs[key] for key in others})
        if self._made(data, maker) is not None:
            return self._input(data, maker, result)
        return self._of_rows(data, maker, result)

    def operand(self, array: Any, taker: str) -> torch.Tensor | None:
        """Return the tensor that stands for an array as an operand, e.g. an index.

        None where it does not become an input: other operators take an array for a
        size, and indices of other dtypes are converted.

        Args:
            taker: Name of the operator.
        """
        maker = FromArray()
        alike = taker in INDEXES or taker in _COMPARES
        if not alike or not array.ndim or not self._is_of_caller(array):
            return None
        tensor = maker(array)
        if tensor is None or (taker in INDEXES and tensor.dtype not in INDEX_DTYPES):
            return None
        self._input(array, maker, tensor)
        return tensor

    def _is_of_caller(self, data: Any) -> bool:
        node = self._graph.find(data)
        return node is not None and self._is_untouched(node)

    def _made(self, data: Any, maker: FromNumbers) -> torch.Tensor | None:
        """Return the tensor of numbers of the caller if these keep changing."""
        if not self._is_of_caller(data):
            return None
        path = self._graph.paths.of(self._graph.require(data))
        return maker(data) if path in self._graph.changing else None

    def _of_rows(
        self, rows: Any, maker: FromNumbers, result: torch.Tensor
    ) -> Call | None:
        """Return the call for sequences that the program has put into a new one."""
        pairs = [(row, self._made(row, maker)) for row in rows]
        made = [
            (row, x) for row, x in pairs if x is not None and x.dtype == result.dtype
        ]
        if not made or len(made) < len(pairs):
            return None
        for row, tensor in made:
            # It is the key of the read, and a row may be there twice.
            self._input(row, copy.copy(maker), tensor)
        return torch.stack, ([tensor for _, tensor in made],), {}

    def _is_untouched(self, node: Node) -> bool:
        """Return whether an object is as it was before the run, with all in it."""
        obj = node.obj
        if not node.external or node.owned:
            return False
        if node.changed is not None or id(obj) in self._graph.snapshots:
            return False
        inner = obj if type(obj) in _SEQUENCES else ()
        known = (self._graph.find(part) for part in inner)
        return all(part is None or self._is_untouched(part) for part in known)

    def _of_array(self, array: Any, result: torch.Tensor) -> Call | None:
        shared = FromArray()
        tensor = shared(array)
        if tensor is None or result.device != tensor.device:
            return None
        if result.data_ptr() == tensor.data_ptr() and result.dtype == tensor.dtype:
            return self._input(array, shared, result)
        copied = tensor.to(result.dtype, copy=True)
        if copied.stride() != result.stride():
            return None
        self._input(array, shared, tensor)
        return torch.Tensor.to, (tensor, result.dtype), {"copy": True}

    def _input(
        self, data: Any, maker: Callable[[Any], Any], tensor: torch.Tensor
    ) -> Call:
        self._graph.read(self._graph.require(data), Kind.DATA, maker, tensor)
        return None, (), {}
