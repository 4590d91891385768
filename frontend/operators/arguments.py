"""Owns how arguments that have parts are written into the operator graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import torch

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.operators.arrays import MAX_LISTED, OLD_CLASSES
from magweld.frontend.state.contents import elements, read_all
from magweld.frontend.state.nodes import Kind
from magweld.frontend.state.refgraph import RefGraph

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
        for name in ("start", "stop", "step"):
            field = type(obj).__dict__[name]
            graph.read(known, Kind.SLOT, field, field.__get__(obj))


# How what has fixed parts of its own is written.
FORMS: Final[dict[type, Callable[[RefGraph, Any, Convert], Any]]] = {
    slice: _convert_slice,
    range: _convert_range,
}
