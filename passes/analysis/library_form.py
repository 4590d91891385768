"""Owns what a call of a library is: operation, operands, attributes, reshapes."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any

from magweld.bindings import ir
from magweld.dialects.integers import i64, i64s
from magweld.targets.device import CONVOLUTION, PRODUCT


@dataclass(frozen=True)
class Reshape:
    """A reshape on the way to a library.

    Attributes:
        groups: Which dimensions of the larger rank make one of the smaller.
        expand: The library's tensor has the larger rank.
    """

    groups: tuple[tuple[int, ...], ...]
    expand: bool

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the library's shape of a tensor; new dimensions have extent one."""
        if not self.expand:
            return tuple(math.prod(shape[i] for i in group) for group in self.groups)
        inner = (
            (extent, *(1 for _ in group[1:]))
            for extent, group in zip(shape, self.groups, strict=True)
        )
        return tuple(itertools.chain.from_iterable(inner))


@dataclass(frozen=True)
class LibraryCall:
    """A call that the runtime can carry out with torch.

    Attributes:
        op: Name in the runtime's library table.
        operands: Operand numbers of the operator, in the order of the call.
        attributes: Integers, booleans and lists of integers.
        reshapes: For each operand, then the result, the dimensions of the library's
            tensor that belong to each dimension of ours, or the other way round;
            None where the shapes agree.
        adopts: The library brings its own result tensor instead of filling one.
    """

    op: str
    operands: tuple[int, ...]
    attributes: dict[str, bool | int | list[int]] = field(default_factory=dict)
    reshapes: tuple[Reshape | None, ...] = ()
    adopts: bool = False

    @property
    def operation(self) -> str:
        """What devices state a rate of libraries for."""
        return CONVOLUTION if self.op == "convolution" else PRODUCT

    def attribute(self) -> Any:
        """Return the call as a dictionary attribute, `op` among its entries."""
        entries = {key: _attribute(value) for key, value in self.attributes.items()}
        return ir.DictAttr.get({"op": ir.StringAttr.get(self.op), **entries})


def _attribute(value: bool | int | list[int]) -> Any:
    if isinstance(value, bool):
        return ir.BoolAttr.get(value)
    if isinstance(value, int):
        return i64(value)
    return i64s(value)
