"""Owns how arguments that have parts are written into the operator graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.operators.arrays import MAX_LISTED
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
