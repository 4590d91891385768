"""Owns the reading of slices: which part of which tensor an operand is."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from magweld.bindings import ir, linalg
from magweld.passes.ir.cloning import defining_op


@dataclass(frozen=True)
class Slice:
    """A box of a tensor as a value, which may lack dimensions of extent one.

    Attributes:
        source: The tensor.
        offsets: Where the box begins, one number for each dimension of the source.
        sizes: Its extents, likewise.
        kept: For each dimension of the value its dimension of the source, rising.
    """

    source: Any
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    kept: tuple[int, ...]

    def of(self, outer: Slice) -> Slice:
        """Return this slice as one of the tensor that its source is a slice of."""
        offsets, sizes = list(outer.offsets), list(outer.sizes)
        for dim, offset, size in zip(outer.kept, self.offsets, self.sizes, strict=True):
            offsets[dim] += offset
            sizes[dim] = size
        kept = tuple(outer.kept[dim] for dim in self.kept)
        return Slice(outer.source, tuple(offsets), tuple(sizes), kept)


def whole(value: Any) -> Slice:
    """Return a tensor, or anything without a shape, as the slice that is all of it."""
    shape = tuple(getattr(value.type, "shape", ()))
    return Slice(value, (0,) * len(shape), shape, tuple(range(len(shape))))


def static_slice(op: Any) -> Slice | None:
    """Return what a `tensor.extract_slice` takes, None for anything but a plain box.

    A plain box has an offset and a size known here, and takes every element of it.
    """
    if op is None or op.operation.name != "tensor.extract_slice":
        return None
    numbers = {
        name: tuple(ir.DenseI64ArrayAttr(op.operation.attributes[f"static_{name}"]))
        for name in ("offsets", "sizes", "strides")
    }
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    dynamic = unknown in numbers["offsets"] or len(op.operation.operands) > 1
    if dynamic or set(numbers["strides"]) - {1}:
        return None
    shape = tuple(op.operation.results[0].type.shape)
    kept = matching_dims(numbers["sizes"], shape)
    return Slice(op.operation.operands[0], numbers["offsets"], numbers["sizes"], kept)


def is_read_in_place(op: Any) -> bool:
    """Tell whether an operation is a box of a tensor that operators read where it is.

    Convolutions want whole images.
    """
    if static_slice(op) is None or 0 in op.results[0].type.shape:
        return False
    users = [use.owner.operation for use in op.results[0].uses]
    return all(
        user.name == "tensor.concat"
        or (user.name.startswith("linalg.") and not linalg.isa_convolution_op(user))
        for user in users
    )


def sliced_operand(value: Any, inputs: Collection[Any]) -> Slice:
    """Trace an operand through plain slices, at most to one of `inputs`."""
    found = whole(value)
    while found.source not in inputs:
        outer = static_slice(defining_op(found.source))
        if outer is None:
            break
        found = found.of(outer)
    return found


def matching_dims(sizes: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the dimensions of a box that are those of a value of the same elements.

    Which one of several of extent one is the same. There are fewer than the value has
    where that is the box in another form.
    """
    kept: list[int] = []
    for dim, size in enumerate(sizes):
        if len(kept) < len(shape) and size == shape[len(kept)]:
            kept.append(dim)
    return tuple(kept)
