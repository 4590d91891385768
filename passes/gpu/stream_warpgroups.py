"""Owns products of a stream that warpgroups compute, rows from their registers.

`wgmma` takes rows of the left factor as the lanes of `mma.sync` have them, and gives
its results so. The right factor it reads from a swizzled ring (`swizzled_tiles.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from magweld.bindings import arith, ir, llvm
from magweld.passes.gpu.lane_layouts import STEPS
from magweld.passes.gpu.register_tiles import applied, as_value
from magweld.passes.gpu.swizzled_tiles import (
    CHUNK,
    PIECE,
    ROW,
    SwizzledTile,
    in_units,
    shared_address,
)

_UNIT_BITS = 4
# Bytes of an element.
_ELEMENT = 2


def can_swizzle(shape: tuple[int, int], element: int) -> bool:
    """Tell whether `wgmma` reads blocks of such rows."""
    rows, columns = shape
    return element == _ELEMENT and rows % STEPS == 0 and columns % ROW == 0


def swizzled_element(first: Any, row: Any, column: Any, rows: int) -> Any:
    """Build where the chunk that begins at a column lies in a swizzled ring.

    Args:
        first: The first row of the slot, a multiple of eight.
        row: The row in the slot.
        column: The column, a multiple of a chunk.
        rows: How many rows all slots have.
    """
    own, at = ir.AffineExpr.get_dim(0), ir.AffineExpr.get_dim(1)
    chunk = ir.AffineExpr.get_floor_div(at, CHUNK) % PIECE
    turned = arith.XOrIOp(
        applied(chunk, [row, column]), applied(own % PIECE, [row, column])
    ).result
    turn, slot = ir.AffineExpr.get_dim(2), ir.AffineExpr.get_dim(3)
    block = ir.AffineExpr.get_floor_div(at, ROW)
    place = block * (rows * ROW) + (own + slot) * ROW + turn * CHUNK
    return applied(place, [row, column, turned, as_value(first)])


def descriptors(
    view: Any, tile: SwizzledTile, first: Any, steps: int, *, across: bool
) -> list[Any]:
    """Build the descriptors of the steps of a slot.

    Args:
        view: The view of shared memory that is the ring.
        tile: How it lies.
        first: The first row of the slot.
        steps: How many steps of 16 there are.
        across: Whether rows are steps of the reduction.
    """
    i64 = ir.IntegerType.get_signless(64)
    row = tile.line_bytes(1, across=False)
    inside = applied(ir.AffineExpr.get_dim(0) * row, [as_value(first)])
    address = arith.AddIOp(shared_address(view), inside).result
    bits = arith.IndexCastOp(i64, address).result
    units = arith.ShRUIOp(bits, arith.ConstantOp(i64, _UNIT_BITS).result).result
    kind = tile.descriptor_bits(across=across)
    return [
        arith.AddIOp(
            units,
            arith.ConstantOp(
                i64, kind + in_units(tile.step_bytes(n * STEPS, across=across))
            ).result,
        ).result
        for n in range(steps)
    ]


@dataclass(frozen=True)
class Begun:
    """Sums that are under way, and what they are computed from.

    Attributes:
        sums: All sums as one value, which nothing may read before they are waited for.
        registers: The left factor, which may not change before either.
    """

    sums: Any
    registers: tuple[Any, ...]

    @property
    def count(self) -> int:
        """How many sums there are."""
        return str(self.sums.type).count("f32")

    def flat(self) -> list[Any]:
        """Return all values, in one order."""
        return [self.sums, *self.registers]

    def of(self, flat: Iterator[Any]) -> Begun:
        """Return the same with the next ones of other values."""
        sums = next(flat)
        return Begun(sums, tuple(next(flat) for _ in self.registers))


def at_rest(sums: Sequence[Any], registers: int) -> Begun:
    """Build sums that are there, as if they had begun with so many registers."""
    i32 = ir.IntegerType.get_signless(32)
    zeros = [arith.ConstantOp(i32, 0).result for _ in range(registers)]
    made = llvm.UndefOp(_singles(len(sums))).result
    for number, value in enumerate(sums):
        place = ir.DenseI64ArrayAttr.get([number])
        made = llvm.InsertValueOp(made, value, place).result
    return Begun(made, tuple(zeros))


def begun_sums(
    lefts: Sequence[Sequence[Any]],
    rights: Sequence[Any],
    sums: Sequence[Any] | None,
    columns: int,
    *,
    across: bool,
) -> Begun:
    """Build all steps of a product, which are one group of instructions.

    Args:
        lefts: The registers of the left factor, by step.
        rights: Descriptors of the right one, by step.
        sums: What is added to; None for zeros.
        columns: Columns of the result.
        across: Whether rows of the right factor are steps.
    """
    i32 = ir.IntegerType.get_signless(32)
    count = columns // 2
    kind = "bf16" if isinstance(lefts[0][0].type.element_type, ir.BF16Type) else "f16"
    registers = [llvm.BitcastOp(i32, value).result for step in lefts for value in step]
    before = [] if sums is None else list(sums)
    first = count + len(before)
    text = _assembly(
        kind, columns, len(lefts), first, fresh=sums is None, across=across
    )
    constraints = [
        *["=f"] * count,
        *map(str, range(len(before))),
        *["r"] * len(registers),
        *["l"] * len(rights),
    ]
    made = _assembled(text, constraints, [*before, *registers, *rights], count)
    return Begun(made, tuple(registers))


def finished_sums(begun: Sequence[Begun], younger: int) -> list[list[Any]]:
    """Build a wait for products, and return what their sums are.

    Registers of the left factor are operands of the wait: until then they are read.

    Args:
        begun: The products.
        younger: How many groups may still be under way, which have begun behind them.
    """
    sums = [value for one in begun for value in _taken(one.sums, one.count)]
    registers = [value for one in begun for value in one.registers]
    constraints = [
        *["=f"] * len(sums),
        *map(str, range(len(sums))),
        *["r"] * len(registers),
    ]
    text = f"wgmma.wait_group.sync.aligned {younger};"
    made = _assembled(text, constraints, [*sums, *registers], len(sums))
    there = iter(_taken(made, len(sums)))
    return [[next(there) for _ in range(one.count)] for one in begun]


def _assembled(
    text: str, constraints: Sequence[str], operands: Sequence[Any], count: int
) -> Any:
    """Build assembly that gives so many numbers, as one value."""
    return llvm.InlineAsmOp(
        _singles(count),
        list(operands),
        text,
        ",".join(constraints),
        has_side_effects=True,
        asm_dialect=0,
    ).res


def _singles(count: int) -> ir.Type:
    return ir.Type.parse(f"!llvm.struct<({', '.join(['f32'] * count)})>")


def _taken(made: Any, count: int) -> list[Any]:
    f32 = ir.F32Type.get()
    return [
        llvm.ExtractValueOp(f32, made, ir.DenseI64ArrayAttr.get([n])).result
        for n in range(count)
    ]


def _assembly(
    kind: str, columns: int, steps: int, first: int, *, fresh: bool, across: bool
) -> str:
    """Return the instructions; operands are numbered, sums first.

    Args:
        kind: Type of the factors.
        columns: Columns of the result.
        steps: How many steps there are.
        first: Number of the first register of the left factor.
        fresh: Whether sums begin at zero.
        across: Whether rows of the right factor are steps.
    """
    total = ", ".join(f"${n}" for n in range(columns // 2))
    name = f"wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.{kind}.{kind}"
    lines = [".reg .pred p;", "setp.ne.b32 p, 0, 0;", "wgmma.fence.sync.aligned;"]
    if not fresh:
        lines[1] = "setp.eq.b32 p, 0, 0;"
    for step in range(steps):
        if step == 1 and fresh:
            lines.append("setp.eq.b32 p, 0, 0;")
        left = ", ".join(f"${first + 4 * step + n}" for n in range(4))
        right = f"${first + 4 * steps + step}"
        transposed = int(across)
        lines.append(f"{name} {{{total}}}, {{{left}}}, {right}, p, 1, 1, {transposed};")
    lines.append("wgmma.commit_group.sync.aligned;")
    return "{\n" + "\n".join(lines) + "\n}"
