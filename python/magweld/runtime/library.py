"""Owns the table of library operations that torch runs into planned buffers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from magweld.artifact import LibraryStep
from magweld.runtime.errors import ProgramError

Shape = Sequence[int]


class LibraryOperation(Protocol):
    """One library operation with its attributes, which are its fields."""

    writes_out: ClassVar[bool]
    """Whether `compute` can write into a given buffer."""

    def result_shape(self, *operands: Shape) -> Shape:
        """Return the shape of the result.

        Raises:
            ValueError: The operands do not fit, e.g. in number or extents.
        """
        ...

    def arrange(self, position: int, operand: Tensor) -> Tensor:
        """Return a view of an operand as `compute` wants it."""
        ...

    def compute(self, operands: Sequence[Tensor], out: Tensor | None) -> Tensor:
        """Run on arranged operands; into `out` where that is possible."""
        ...


def make_operation(step: LibraryStep) -> LibraryOperation:
    """Return the operation of a step.

    Raises:
        ProgramError: The table has no such operation or it no such attributes.
    """
    operation = _OPERATIONS.get(step.op)
    if operation is None:
        known = ", ".join(sorted(_OPERATIONS))
        raise ProgramError(
            "unknown-library-op", f"no library operation {step.op!r}; known: {known}"
        )
    try:
        return operation(**step.attributes)
    except TypeError as error:
        raise ProgramError(
            "bad-library-attributes", f"library operation {step.op!r}: {error}"
        ) from error


@dataclass(frozen=True)
class _Contraction:
    """Attributes that all matrix products share: operands stored transposed."""

    transpose_a: bool = False
    transpose_b: bool = False

    writes_out: ClassVar[bool] = True
    lhs: ClassVar[int] = 0
    rank: ClassVar[int] = 2

    def arrange(self, position: int, operand: Tensor) -> Tensor:
        flags = {self.lhs: self.transpose_a, self.lhs + 1: self.transpose_b}
        return operand.mT if flags.get(position, False) else operand

    def result_shape(self, *operands: Shape) -> Shape:
        a, b = operands
        if len(a) != self.rank or len(b) != self.rank:
            raise ValueError(f"operands of rank {len(a)} and {len(b)}")
        m, inner_a = (a[-1], a[-2]) if self.transpose_a else (a[-2], a[-1])
        inner_b, n = (b[-1], b[-2]) if self.transpose_b else (b[-2], b[-1])
        if inner_a != inner_b or tuple(a[:-2]) != tuple(b[:-2]):
            raise ValueError(f"extents {tuple(a)} and {tuple(b)} do not fit")
        return (*a[:-2], m, n)


@dataclass(frozen=True)
class Matmul(_Contraction):
    """`matmul(a, b)`: product of matrices [m, k] and [k, n]."""

    def compute(self, operands: Sequence[Tensor], out: Tensor | None) -> Tensor:
        return torch.mm(operands[0], operands[1], out=out)


@dataclass(frozen=True)
class BatchMatmul(_Contraction):
    """`batch_matmul(a, b)`: product of [batch, m, k] and [batch, k, n].

    One operand may be [m, k] or [k, n], the same for the whole batch.
    """

    rank: ClassVar[int] = 3

    def result_shape(self, *operands: Shape) -> Shape:
        a, b = operands
        if {len(a), len(b)} == {self.rank, self.rank - 1}:
            batch = max(a, b, key=len)[0]
            a, b = ((batch, *one)[-self.rank :] for one in (a, b))
        return super().result_shape(a, b)

    def compute(self, operands: Sequence[Tensor], out: Tensor | None) -> Tensor:
        a, b = operands
        if a.dim() < b.dim():
            a = a.expand(len(b), -1, -1)
        elif b.dim() < a.dim():
            b = b.expand(len(a), -1, -1)
        return torch.bmm(a, b, out=out)


@dataclass(frozen=True)
class Addmm(_Contraction):
    """`addmm(bias, a, b)`: `a @ b + bias`, bias of shape [n], [1, n] or [m, n]."""

    lhs: ClassVar[int] = 1

    def result_shape(self, *operands: Shape) -> Shape:
        bias, a, b = operands
        product = super().result_shape(a, b)
        # Equal ranks not needed: trailing extents are compared, as torch broadcasts.
        pairs = zip(reversed(bias), reversed(product), strict=False)
        if len(bias) > 2 or any(x not in (1, y) for x, y in pairs):
            raise ValueError(f"bias {tuple(bias)} does not broadcast to {product}")
        return product

    def compute(self, operands: Sequence[Tensor], out: Tensor | None) -> Tensor:
        return torch.addmm(operands[0], operands[1], operands[2], out=out)


@dataclass(frozen=True)
class Convolution:
    """`convolution(x, weight[, bias])` over 1 to 3 spatial dimensions, channels first.

    Extents: x [batch, groups * c, ...], weight [out, c, ...], bias [out]. Attribute
    lists have one entry for each spatial dimension; `front` and `behind` are zeros
    beyond `padding`, where the two sides of an image differ. torch has no true `out`
    variant of it, so the result is best adopted.
    """

    strides: Sequence[int]
    padding: Sequence[int]
    dilation: Sequence[int]
    groups: int = 1
    front: Sequence[int] = ()
    behind: Sequence[int] = ()

    writes_out: ClassVar[bool] = False

    def arrange(self, position: int, operand: Tensor) -> Tensor:
        return operand

    def result_shape(self, *operands: Shape) -> Shape:
        x, weight, *bias = operands
        spatial = len(x) - 2
        lists = (self.strides, self.padding, self.dilation)
        if spatial < 1 or any(len(entries) != spatial for entries in lists):
            raise ValueError(f"attributes do not fit an operand of rank {len(x)}")
        sides = (self.front, self.behind)
        if any(len(side) != spatial or min(side) < 0 for side in sides if side):
            raise ValueError(f"borders {sides} do not fit an operand of rank {len(x)}")
        if len(weight) != len(x) or x[1] != weight[1] * self.groups:
            raise ValueError(f"extents {tuple(x)} and {tuple(weight)} do not fit")
        if weight[0] % self.groups or len(bias) > 1:
            raise ValueError(f"{weight[0]} channels do not fit {self.groups} groups")
        if bias and tuple(bias[0]) != (weight[0],):
            raise ValueError(f"bias {tuple(bias[0])} for {weight[0]} channels")
        return (x[0], weight[0], *map(self._extent, range(spatial), x[2:], weight[2:]))

    def _extent(self, dim: int, extent: int, window: int) -> int:
        reach = self.dilation[dim] * (window - 1) + 1
        border = sum(side[dim] for side in (self.front, self.behind) if side)
        padded = extent + 2 * self.padding[dim] + border
        return (padded - reach) // self.strides[dim] + 1

    def compute(self, operands: Sequence[Tensor], out: Tensor | None) -> Tensor:
        x, weight, *bias = operands
        if self.front or self.behind:
            x = self._bordered(x)
        return torch.convolution(
            x,
            weight,
            bias[0] if bias else None,
            self.strides,
            self.padding,
            self.dilation,
            False,
            (0,) * len(self.strides),
            self.groups,
        )

    def _bordered(self, x: Tensor) -> Tensor:
        none = (0,) * len(self.strides)
        sides = zip(self.front or none, self.behind or none, strict=True)
        # The last dimension comes first.
        amounts = [amount for side in reversed(list(sides)) for amount in side]
        return torch.nn.functional.pad(x, amounts)


_OPERATIONS: dict[str, type[LibraryOperation]] = {
    "addmm": Addmm,
    "batch_matmul": BatchMatmul,
    "convolution": Convolution,
    "matmul": Matmul,
}
