"""Owns how arguments with parts are written into the operator graph, arrays too."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

import torch
from torch import fx

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.operators.targets import ConstantTensor
from magweld.frontend.state.contents import BOUNDS, builtin_base, elements, read_all
from magweld.frontend.state.natives import is_array, owner_of, read_content
from magweld.frontend.state.nodes import Kind
from magweld.frontend.state.refgraph import RefGraph
from magweld.frontend.state.values import is_numpy_scalar
from magweld.storages import storage_of

# An array of so many numbers becomes a list in the graph, a larger one a tensor.
MAX_LISTED: Final = 4096
MAX_BYTES: Final = 1 << 26

# Functions that take data and keep its form, apart from the type of the numbers.
OLD_CLASSES: Final = tuple(
    cls
    for name in dir(torch)
    if name.endswith("Tensor") and isinstance(cls := getattr(torch, name), type)
)
# Functions whose result follows from the data that they take and from their options.
TAKERS: Final = frozenset(
    {torch.tensor, torch.as_tensor, torch.from_numpy, *OLD_CLASSES}
)
# Operators whose operands are indices, and the dtypes of tensors that can be one. Torch
# makes 64-bit integers of an array of another dtype.
INDEXES: Final = frozenset({"__getitem__", "__setitem__"})
_MASKS: Final = frozenset({torch.bool, torch.uint8})
INDEX_DTYPES: Final = _MASKS | {torch.int32, torch.int64}
_LIKE: Final = frozenset({torch.Tensor.new, torch.Tensor.new_tensor})


_SEQUENCES: Final = (list, tuple)


class Arrays:
    """The arrays that torch calls of a run have taken.

    Args:
        graph: Gets the reads of their content.
    """

    def __init__(self, graph: RefGraph) -> None:
        self._graph = graph
        self._shared: list[tuple[torch.Tensor, Any]] = []
        self._twins: dict[int, tuple[Any, torch.Tensor]] = {}

    def follow(self, array: Any, tensor: torch.Tensor) -> None:
        """Take note of an array that shows a tensor of the run."""
        self._twins[id(array)] = array, tensor
        self._graph.computed.add(id(owner_of(array)))
        self._graph.adopt(array)

    def twin(self, array: Any) -> torch.Tensor | None:
        """Return the tensor that an array shows, None if it shows none of the run."""
        return self._twins.get(id(array), (None, None))[1]

    def of_twin(self, func: Any, data: Any, result: torch.Tensor) -> Any:
        """Return the call that makes of a tensor what one makes of its array.

        Raises:
            StopRecordingError: There is none.
        """
        twin = self.twin(data)
        if twin is None or func not in TAKERS or result.device != twin.device:
            return None
        if result.data_ptr() == twin.data_ptr() and result.dtype == twin.dtype:
            return torch.Tensor.detach, (twin,), {}
        if twin.to(result.dtype, copy=True).stride() != result.stride():
            raise StopRecordingError("operator-argument", "the form of an array")
        return torch.Tensor.to, (twin, result.dtype), {"copy": True}

    def replaced(
        self, func: Any, args: Any, kwargs: Any, result: Any
    ) -> tuple[Any, Any, Any]:
        """Return a call that makes the same tensor without an array.

        Raises:
            StopRecordingError: There is none.
        """
        like = args[:1] if func in _LIKE else ()
        options = {key: kwargs[key] for key in kwargs if key != "data"}
        data = (*args[len(like) :], *(kwargs[key] for key in kwargs if key == "data"))
        known = like or func in TAKERS
        if not known or len(data) != 1 or not _has_array(data[0]):
            given = (*args, *kwargs.values())
            if any(is_array(one) and _is_view(result, one) for one in given):
                raise StopRecordingError("operator-argument", "memory of an array")
            return func, args, kwargs
        self._read(data[0])
        if is_array(data[0]) and _is_view(result, data[0]):
            self.lend(result, data[0])
        if not _is_listed(result):
            return ConstantTensor(result), (), {}
        maker = torch.Tensor.new_tensor if like else torch.tensor
        return maker, (*like, result.tolist()), {**options, "dtype": result.dtype}

    def constant(self, graph: fx.Graph, array: Any, taker: str) -> fx.Node:
        """Return a node for an array that is an operand, e.g. an index.

        Args:
            taker: Name of the operator.

        Raises:
            StopRecordingError: It is a mask of no dimension, which adds one elsewhere
                than a tensor does.
        """
        read_content(self._graph, array)
        tensor = torch.tensor(array)
        if taker in INDEXES and tensor.dtype in _MASKS and not array.ndim:
            raise StopRecordingError("operator-argument", "a mask of no dimension")
        if taker in INDEXES and tensor.dtype not in INDEX_DTYPES:
            tensor = tensor.long()
        return graph.call_function(ConstantTensor(tensor), ())

    def check(self, written: set[int], outputs: Iterable[Any], made: Made) -> None:
        """Refuse a run in which the memory of an array matters.

        Args:
            written: Storages that were written.
            outputs: Storages of tensors that the run leaves behind.
            made: Tells whether a hit would have to make an object.

        Raises:
            StopRecordingError: A tensor that shares it was written, or leaves the run,
                or two do: those of a hit would have memory of their own.
        """
        left = set(outputs)
        leaving: dict[int, set[int]] = {}
        for tensor, array in self._shared:
            storage, owner = storage_of(tensor), owner_of(array)
            stays = self._stays(owner, made)
            if storage in written and (stays or self._graph.lent[id(owner)]):
                raise StopRecordingError("tensor-write", "memory of an array")
            if storage in left:
                leaving.setdefault(id(owner), set()).add(storage)
            if storage in left and (stays or len(leaving[id(owner)]) > 1):
                raise StopRecordingError("result-object", "a tensor of an array")

    def _stays(self, owner: Any, made: Made) -> bool:
        """Return whether an array that shows some memory outlives the run.

        What owns it may be an array that only functions of numpy have seen.
        """
        shown = [
            node
            for node in self._graph.nodes.values()
            if is_array(node.obj) and owner_of(node.obj) is owner
        ]
        return not shown or any(node.external or made(node.obj) for node in shown)

    def lend(self, tensor: torch.Tensor, array: Any) -> None:
        """Take note that a tensor and an array share memory."""
        self._shared.append((tensor, array))
        self._graph.lent.setdefault(id(owner_of(array)), False)

    def _read(self, data: Any) -> None:
        """Record the content of nested sequences with arrays in them."""
        if is_array(data):
            read_content(self._graph, data)
        elif builtin_base(data) in _SEQUENCES:
            if self._graph.find(data) is not None:
                read_all(self._graph, data)
            for item in elements(data):
                self._read(item)


def _is_listed(tensor: torch.Tensor) -> bool:
    """Return whether a list of numbers makes the same tensor."""
    if tensor.nbytes > MAX_BYTES or tensor.clone().stride() != tensor.stride():
        raise StopRecordingError("operator-argument", "the form of an array")
    # An array with a new dimension of one is contiguous, with any stride there.
    made = torch.empty(tensor.shape, device="meta").stride()
    small = tensor.numel() <= MAX_LISTED and tensor.stride() == made
    listed = small and (tensor.numel() > 0 or tensor.dim() == 1)
    if tensor.requires_grad and not listed:
        raise StopRecordingError("operator-argument", "an array that gets a gradient")
    return listed


def _has_array(data: Any) -> bool:
    """Return whether there is an array or a number of numpy in nested sequences."""
    if builtin_base(data) in _SEQUENCES:
        return any(map(_has_array, elements(data)))
    return is_array(data) or is_numpy_scalar(data)


Made = Callable[[Any], bool]


def _is_view(result: Any, array: Any) -> bool:
    if not isinstance(result, torch.Tensor) or storage_of(result) < 0:
        return False
    begin: int = array.__array_interface__["data"][0]
    return result.data_ptr() == begin and result.numel() > 0


def of_asarray(args: Any, kwargs: Any) -> tuple[Any, Any, Any]:
    """Return the call that does what one of `torch.asarray` does with an array.

    Raises:
        StopRecordingError: There is none.
    """
    options = {key: value for key, value in kwargs.items() if value is not None}
    data = (*args, *(options.pop(key) for key in ("obj",) if key in options))
    if not is_array(data[0]):
        return torch.asarray, args, kwargs
    if options.pop("requires_grad", False):
        raise StopRecordingError("operator-argument", "an array that gets a gradient")
    function = torch.tensor if options.pop("copy", False) else torch.as_tensor
    return function, data, options


def python_number(obj: Any) -> Any:
    """Return a number of numpy as Python's; torch takes a bool for a float."""
    number = obj.item()
    if type(number) not in (int, float, complex):
        raise StopRecordingError("operator-argument", type(obj).__qualname__)
    return number


Convert: TypeAlias = Callable[[Any], Any]


def convert_sequence(graph: RefGraph, obj: Any, convert: Convert) -> Any:
    """Return a tuple or list with its elements converted, which are all read."""
    if graph.find(obj) is not None:
        read_all(graph, obj)
    converted = [convert(item) for item in elements(obj)]
    return converted if isinstance(obj, list) else tuple(converted)


def of_size(
    func: Any, args: tuple[Any, ...], converted: tuple[Any, ...]
) -> tuple[Any, str, tuple[Any, ...]] | None:
    """Return the call that makes a tensor of a size where an old constructor does.

    `x.new(torch.Size([2, 3]))` has that shape, `x.new((2, 3))` has these elements, and
    the graph holds a size as a tuple. None for any other call.

    Args:
        converted: Its arguments as the graph holds them.

    Raises:
        StopRecordingError: There are no numbers to tell the two apart.
    """
    head = 1 if func is torch.Tensor.new else 0
    if not head and func not in OLD_CLASSES:
        return None
    if len(args) != head + 1 or type(args[head]) is not torch.Size:
        return None
    if head:
        return torch.Tensor.new_empty, "new_empty", converted
    if not len(args[0]):
        raise StopRecordingError("operator-argument", "an empty torch.Size")
    return func, func.__name__, tuple(converted[0])


def _convert_slice(graph: RefGraph, obj: slice, convert: Convert) -> slice:
    _read_fields(graph, obj)
    return slice(*map(convert, (obj.start, obj.stop, obj.step)))


def _convert_range(graph: RefGraph, obj: range, convert: Convert) -> list[int]:
    _read_fields(graph, obj)
    if len(obj) > MAX_LISTED:
        raise StopRecordingError("operator-argument", "a long range")
    return list(obj)


def _read_fields(graph: RefGraph, obj: slice | range) -> None:
    known = graph.find(obj)
    if known is not None:
        for field in BOUNDS[type(obj)]:
            graph.read(known, Kind.SLOT, field, field.__get__(obj))


# How what has fixed parts of its own is written.
FORMS: Final[dict[type, Callable[[RefGraph, Any, Convert], Any]]] = {
    slice: _convert_slice,
    range: _convert_range,
}
