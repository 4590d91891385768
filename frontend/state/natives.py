"""Owns what native objects consist of: scalars in subclasses, buffers, referents."""

from __future__ import annotations

import array
import gc
import operator
import types
import weakref
import zlib
from collections.abc import Callable
from typing import Any, Final

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.state.nodes import Kind
from magweld.frontend.state.refgraph import RefGraph

# The first base in this order says what the value of an instance is.
_VALUES: Final[dict[type, Any]] = {
    int: int.__int__,
    float: float.__float__,
    complex: complex.__complex__,
    str: str.__str__,
    bytes: lambda obj: bytes.__getitem__(obj, slice(None)),
}
# Content of a larger buffer is not compared on every call.
MAX_BUFFER_BYTES: Final = 1 << 20


def scalar_base(obj: Any) -> type | None:
    """Return the scalar type whose value an instance of a subclass holds, or None."""
    kind = type(obj)
    return next((base for base in _VALUES if issubclass(kind, base)), None)


def base_value(obj: Any) -> Any:
    """Return the value of an instance of a subclass of a scalar type."""
    base = scalar_base(obj)
    assert base is not None, "a subclass of a scalar type is expected"
    return _VALUES[base](obj)


def referent(obj: Any) -> Any:
    """Return the object behind a weak reference or a read-only view of a mapping."""
    if type(obj) is types.MappingProxyType:
        return gc.get_referents(obj)[0]
    return weakref.ref.__call__(obj)


class Content(tuple[Any, ...]):
    """Type, form and bytes of a buffer, or the parts of another native object."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Return what is short, and of bytes a number that tells them apart."""
        *form, last = self
        if type(last) is bytes:
            last = f"{len(last)} bytes with CRC {zlib.crc32(last):08x}"
        return " ".join(map(str, (*form, last)))


def is_array(obj: Any) -> bool:
    """Return whether the object is a plain array of numpy, which is not imported."""
    kind = type(obj)
    return kind.__name__ == "ndarray" and kind.__module__ == "numpy"


def is_buffer(obj: Any) -> bool:
    """Return whether the object is a mutable array of plain numbers."""
    return type(obj) in (bytearray, array.array) or is_array(obj)


def form_of(obj: Any) -> Content:
    """Return what an array is apart from its elements.

    Raises:
        StopRecordingError: It holds objects or records.
    """
    if obj.dtype.hasobject or obj.dtype.names is not None:
        raise StopRecordingError("opaque-value", "an array of objects or records")
    return Content((obj.dtype.str, obj.shape, obj.strides, obj.flags.writeable))


def _array_content(obj: Any) -> Content:
    form = form_of(obj)
    _limit(obj.nbytes)
    return Content(("ndarray", *form, obj.tobytes()))


def _limit(size: int) -> None:
    if size > MAX_BUFFER_BYTES:
        raise StopRecordingError("opaque-value", f"an array of {size} bytes")


def _bytearray_content(obj: bytearray) -> Content:
    _limit(len(obj))
    return Content(("bytearray", bytes(obj)))


def _typed_content(obj: array.array[Any]) -> Content:
    _limit(len(obj) * obj.itemsize)
    return Content(("array", obj.typecode, obj.tobytes()))


def _parts(obj: Any) -> Content:
    return Content((type(obj).__name__, *obj.__reduce__()[1]))


_CONTENTS: Final[dict[type, Callable[[Any], Content]]] = {
    bytearray: _bytearray_content,
    array.array: _typed_content,
    **dict.fromkeys(
        (operator.itemgetter, operator.attrgetter, operator.methodcaller), _parts
    ),
}


def content_of(obj: Any) -> Content:
    """Return what a buffer or a native object with fixed parts holds.

    Raises:
        StopRecordingError: It is too large to be compared, or holds objects.
    """
    read = _CONTENTS.get(type(obj), _array_content if is_array(obj) else None)
    if read is None:
        raise StopRecordingError("opaque-value", type(obj).__qualname__)
    return read(obj)


def read_content(graph: RefGraph, obj: Any) -> None:
    """Record that all that a native object consists of was used.

    Raises:
        StopRecordingError: It is an array whose content keeps changing, or its content
            cannot be compared.
    """
    node, owner = graph.require(obj), id(owner_of(obj))
    if owner in graph.computed:
        raise StopRecordingError("tensor-value", "numpy")
    if not node.owned:
        if is_array(obj) and graph.changing and graph.paths.of(node) in graph.changing:
            raise StopRecordingError("opaque-value", "an array that keeps changing")
        graph.read(node, Kind.CONTENT, None, content_of(obj))
    if owner in graph.lent:
        graph.lent[owner] = True


def read_form(graph: RefGraph, obj: Any) -> None:
    """Record that all of an array but its elements was used."""
    node = graph.require(obj)
    if id(owner_of(obj)) in graph.computed:
        raise StopRecordingError("tensor-value", "numpy")
    if not node.owned:
        graph.read(node, Kind.FORM, None, form_of(obj))


def owner_of(obj: Any) -> Any:
    """Return the object whose memory a buffer shows."""
    while is_array(obj) and obj.base is not None:
        obj = obj.base
    return obj


def check_buffer_write(graph: RefGraph, obj: Any) -> None:
    """Refuse a write to a buffer that existed before the run.

    Other arrays and tensors may share its memory, and no guard tells which do.

    Raises:
        StopRecordingError: It, or what it is a view of, is no buffer of the run.
    """
    owner = owner_of(obj)
    node = graph.find(owner)
    before = node is None or node.external or id(owner) in graph.lent
    before = before or id(owner) in graph.computed
    if before or graph.require(obj).external:
        raise StopRecordingError("native-operator", "write to a buffer")
    graph.changes(graph.require(owner))


def check_buffers(graph: RefGraph, tensors_written: bool) -> None:
    """Check that no buffer was written behind the back of the recording.

    Args:
        tensors_written: Whether tensors from before the run were; on a hit one of them
            may share the memory of an array.

    Raises:
        StopRecordingError: One was.
    """
    for edge in graph.edges.values():
        if edge.kind is Kind.CONTENT and is_buffer(edge.container.obj):
            if tensors_written:
                raise StopRecordingError("read-after-write", "arrays and tensors")
            if content_of(edge.container.obj) != edge.value:
                raise StopRecordingError("read-after-write", "content of a buffer")
