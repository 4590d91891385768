"""Owns what operations read before it is widened from f16 or bf16."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from magweld.bindings import arith, ir, linalg, tensor
from magweld.passes.ir.cloning import defining_op
from magweld.passes.ir.constants import constant_number
from magweld.passes.ir.pads import Pad, static_pad


def narrow_source(value: Any) -> Any | None:
    """Return the tensor of halves that another one widens, None for any other."""
    copy = defining_op(value)
    if not isinstance(copy, linalg.GenericOp) or len(copy.inputs) != 1:
        return None
    block = copy.regions[0].blocks[0]
    *body, terminator = block.operations
    if len(body) != 1 or not isinstance(body[0], arith.ExtFOp):
        return None
    if not is_narrow(body[0].in_.type):
        return None
    identity = ir.AffineMap.get_identity(copy.results[0].type.rank)
    plain = all(attr.value == identity for attr in copy.indexing_maps)
    whole = list(terminator.operands) == [body[0].result]
    return copy.inputs[0] if plain and whole else None


def is_narrow(element: ir.Type) -> bool:
    """Whether elements are f16 or bf16."""
    return isinstance(element, ir.F16Type | ir.BF16Type)


@dataclass(frozen=True)
class Factors:
    """What a convolution reads.

    Attributes:
        image: The image, of halves before it is widened and padded.
        weights: The weights, of halves before they are widened.
        pad: The border of zeros around the image, None without one.
    """

    image: Any
    weights: Any
    pad: Pad | None

    @property
    def element_type(self) -> Any:
        """Of the image and the weights."""
        return self.image.type.element_type

    def bordered(self) -> Any:
        """Emit the image with its border."""
        if self.pad is None:
            return self.image
        source, low, high = self.image, self.pad.low, self.pad.high
        element = source.type.element_type
        sizes = [sum(part) for part in zip(source.type.shape, low, high, strict=True)]
        type_ = ir.RankedTensorType.get(sizes, element)
        made = tensor.PadOp(type_, source, [], [], list(low), list(high))
        index = [ir.IndexType.get()] * source.type.rank
        places = [ir.Location.current] * source.type.rank
        block = made.regions[0].blocks.append(*index, arg_locs=places)
        with ir.InsertionPoint(block):
            zero = arith.constant(element, 0.0)
            tensor.YieldOp(zero)
        return made.result


def narrow_factors(op: linalg.Conv2DNchwFchwOp) -> Factors | None:
    """Return the halves that a convolution reads, None where it reads others.

    Its image is of known shape, and may have a border of zeros.
    """
    pad = static_pad(op.inputs[0])
    if pad is not None and constant_number(pad.fill) != 0:
        return None
    image = _halves(op.inputs[0] if pad is None else pad.source)
    weights = _halves(op.inputs[1])
    if image is None or weights is None or not image.type.has_static_shape:
        return None
    alike = image.type.element_type == weights.type.element_type
    return Factors(image, weights, pad) if alike else None


def _halves(value: Any) -> Any | None:
    return value if is_narrow(value.type.element_type) else narrow_source(value)
