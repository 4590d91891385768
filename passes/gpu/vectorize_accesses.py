"""Owns vectorize-accesses: neighbouring loads and stores of a thread become one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, ClassVar

from magweld.bindings import arith, gpu, ir, memref, vector
from magweld.passes.gpu.index_divisors import divisor_of
from magweld.passes.gpu.structure import VECTOR_BYTES, element_bytes, storage_of
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.constants import constant_number
from magweld.passes.ir.utils import operations_of

# Neither read nor write memory that threads share, and wait for nothing.
_TRANSPARENT_DIALECTS = frozenset({"affine", "arith", "index", "math", "ub"})
_TRANSPARENT = frozenset(
    {
        "gpu.block_id",
        "gpu.dynamic_shared_memory",
        "gpu.lane_id",
        "gpu.shuffle",
        "gpu.thread_id",
        "llvm.bitcast",
        "llvm.call_intrinsic",
        "llvm.extractvalue",
        "memref.alloca",
        "memref.reinterpret_cast",
        "memref.view",
        "vector.broadcast",
        "vector.extract",
        "vector.from_elements",
    }
)


@dataclass(frozen=True)
class VectorizeAccesses(Pass):
    """Join accesses of one thread to elements that lie side by side.

        memref.load %x[%i, %c0], memref.load %x[%i, %c1], ...
            =>   vector.load %x[%i, %c0] {alignment = 16} : ..., vector<4xf32>

    As wide as 16 bytes, which is the widest access of a thread, and as the alignment
    that is known allows: parameters of kernels and shared memory begin at multiples of
    16 bytes; what is added to them is looked through (`index_divisors.py`). Loads move
    up to the first and stores down to the last of them. Nothing moves across a barrier,
    a region or an access that may be to the same memory. Loads of one element become
    one as well, so that rows which loaded numbers tell are known to be the same behind
    cse. What remains is scalar.
    """

    name: ClassVar[str] = "vectorize-accesses"

    def run(self, module: Any) -> None:
        """Join the accesses of all kernels."""
        for function in operations_of(module, gpu.GPUFuncOp):
            # Found before anything is erased.
            blocks = list(_blocks_in(function.operation))
            for block in blocks:
                for group in _groups_of(block):
                    _join(group)


def _blocks_in(op: Any) -> Iterator[Any]:
    for region in op.regions:
        for block in region.blocks:
            yield block
            for inner in block.operations:
                if len(inner.operation.regions):
                    yield from _blocks_in(inner.operation)


@dataclass(frozen=True)
class _Last:
    """The index of the last dimension: a number is added to a value, None for 0."""

    base: ir.Value | None
    number: int

    @staticmethod
    def of(index: ir.Value) -> _Last:
        number = _constant(index)
        if number is not None:
            return _Last(None, number)
        owner = None if isinstance(index, ir.BlockArgument) else index.owner
        if owner is not None and owner.name == "arith.addi":
            number = _constant(owner.operands[1])
            if number is not None:
                return _Last(owner.operands[0], number)
        return _Last(index, 0)


@dataclass
class _Group:
    """Loads, or stores, that differ in the number of the last index alone.

    Attributes:
        buffer: The memref.
        is_store: Whether they are stores.
        leading: Indices of the other dimensions, numbers where they are constants.
        base: What the number is added to.
        is_row: Whether elements of neighbouring numbers lie side by side.
        members: Accesses by number; several loads may be of one element.
    """

    buffer: Any
    is_store: bool
    leading: tuple[ir.Value | int, ...]
    base: ir.Value | None
    is_row: bool = True
    members: dict[int, list[Any]] = field(default_factory=dict)

    @property
    def key(self) -> tuple[Any, ...]:
        """What accesses that may be joined have in common."""
        # The bindings cannot compare a value with None.
        base = () if self.base is None else (self.base,)
        return self.buffer, self.is_store, self.leading, base


def _groups_of(block: Any) -> list[_Group]:
    """Return the groups of a block between what accesses cannot be moved across."""
    grouping = _Grouping()
    for op in list(block.operations):
        grouping.add(op)
    grouping.close_all()
    return grouping.closed


class _Grouping:
    """Groups the accesses of a block in program order.

    Attributes:
        closed: Groups that nothing can be added to.
    """

    def __init__(self) -> None:
        self.closed: list[_Group] = []
        # By root of the memory, so that few are looked at for each access.
        self._opened: dict[Any, dict[tuple[Any, ...], _Group]] = {}

    def add(self, op: Any) -> None:
        """Add an operation."""
        name = op.operation.name
        if isinstance(op, memref.LoadOp | memref.StoreOp):
            if not _is_private(storage_of(op.memref)):
                self._add_access(op)
        elif isinstance(op, vector.LoadOp | vector.StoreOp):
            self._close(storage_of(op.base), loads=isinstance(op, vector.StoreOp))
        elif (
            name.partition(".")[0] not in _TRANSPARENT_DIALECTS
            and name not in _TRANSPARENT
        ):
            self.close_all()

    def close_all(self) -> None:
        """Close all groups."""
        for root in self._opened:
            self._close(root, loads=True)

    def _add_access(self, op: Any) -> None:
        root, is_store = storage_of(op.memref), isinstance(op, memref.StoreOp)
        group = _group_for(op)
        key = () if group is None else group.key
        # What lies between may be the same element, but in the group itself.
        self._close(root, loads=is_store, but=key)
        if group is None:
            return
        number = _Last.of(op.indices[len(op.indices) - 1]).number
        groups = self._opened.setdefault(root, {})
        if is_store and key in groups and number in groups[key].members:
            self.closed.append(groups.pop(key))
        kept = groups.setdefault(key, group)
        kept.members.setdefault(number, []).append(op)

    def _close(self, root: Any, *, loads: bool, but: tuple[Any, ...] = ()) -> None:
        groups = self._opened.get(root, {})
        for key in [k for k, g in groups.items() if loads or g.is_store]:
            if key != but:
                self.closed.append(groups.pop(key))


def _group_for(op: Any) -> _Group | None:
    """Return an empty group that an access belongs to, None if it stays alone."""
    type_ = ir.MemRefType(op.memref.type)
    strides, _ = type_.get_strides_and_offset()
    if not strides or not _is_vector_element(type_.element_type):
        return None
    *others, last = op.indices
    numbers = [(_constant(index), index) for index in others]
    leading = tuple(index if n is None else n for n, index in numbers)
    is_store = isinstance(op, memref.StoreOp)
    return _Group(op.memref, is_store, leading, _Last.of(last).base, strides[-1] == 1)


def _is_vector_element(type_: ir.Type) -> bool:
    if isinstance(type_, ir.FloatType):
        return True
    return isinstance(type_, ir.IntegerType) and type_.width in (8, 16, 32, 64)


def _is_private(root: Any) -> bool:
    return not isinstance(root, ir.BlockArgument) and root.owner.name == "memref.alloca"


def _constant(value: ir.Value) -> int | None:
    number = constant_number(value)
    return None if number is None else int(number)


# ---- alignment -----------------------------------------------------------------------


@dataclass(frozen=True)
class _Place:
    """An element of a memory: `number` behind multiples of `divisor`, in elements."""

    divisor: int
    number: int

    def is_multiple(self, width: int) -> bool:
        return self.divisor % width == 0 and self.number % width == 0


def _place_of(group: _Group) -> _Place:
    """Return where the element lies whose last index has the number 0."""
    type_ = ir.MemRefType(group.buffer.type)
    strides, _ = type_.get_strides_and_offset()
    start = _start_of(group.buffer)
    divisor, number = start.divisor, start.number
    for index, stride in zip(group.leading, strides, strict=False):
        if isinstance(index, int):
            number += index * stride
        else:
            divisor = math.gcd(divisor, divisor_of(index) * stride)
    if group.base is not None:
        divisor = math.gcd(divisor, divisor_of(group.base))
    return _Place(divisor, number)


def _start_of(value: Any) -> _Place:
    """Return where a memref begins in its memory."""
    type_ = ir.MemRefType(value.type)
    size = element_bytes(type_.element_type)
    whole = VECTOR_BYTES // size
    if isinstance(value, ir.BlockArgument):
        return _Place(whole, 0)
    op = value.owner.opview
    if isinstance(op, memref.ViewOp):
        return _Place(math.gcd(whole, divisor_of(op.byte_shift) // size), 0)
    if not isinstance(op, memref.ReinterpretCastOp):
        return _Place(1, 0)
    # Its offset counts from the parameter, or from the view of shared memory.
    source = _start_of(op.source)
    (static,) = op.static_offsets
    if static != ir.ShapedType.get_dynamic_stride_or_offset():
        return _Place(source.divisor, source.number + static)
    return _Place(math.gcd(source.divisor, divisor_of(op.offsets[0])), source.number)


# ---- joining -------------------------------------------------------------------------


def _join(group: _Group) -> None:
    for numbers in _runs(group):
        members = [group.members[number] for number in numbers]
        every = [op for ops in members for op in ops]
        if len(every) == 1:
            continue
        if group.is_store:
            _join_stores(group, numbers[0], every)
        else:
            _join_loads(group, numbers[0], members)
        for op in every:
            op.operation.erase()


def _runs(group: _Group) -> Iterator[list[int]]:
    """Yield numbers of accesses that become one, as many as are aligned together."""
    size = element_bytes(ir.MemRefType(group.buffer.type).element_type)
    place = _place_of(group)
    left = sorted(group.members)
    while left:
        first, width = left[0], VECTOR_BYTES // size if group.is_row else 1
        while width > 1:
            at = _Place(place.divisor, place.number + first)
            run = list(range(first, first + width))
            if at.is_multiple(width) and left[:width] == run:
                break
            width //= 2
        yield left[:width]
        left = left[width:]


def _join_loads(group: _Group, number: int, members: Sequence[list[Any]]) -> None:
    at = _earliest([op for ops in members for op in ops])
    width = len(members)
    with ir.InsertionPoint(at), at.location:
        indices = _indices(group, number)
        if width == 1:
            loaded = memref.LoadOp(group.buffer, indices).result
        else:
            type_, alignment = _vector_type(group, width)
            loaded = vector.LoadOp(
                type_, group.buffer, indices, alignment=alignment
            ).result
        for position, ops in enumerate(members):
            if width == 1:
                element = loaded
            else:
                element = vector.ExtractOp(loaded, [], [position]).result
            for op in ops:
                op.result.replace_all_uses_with(element)


def _join_stores(group: _Group, number: int, members: Sequence[Any]) -> None:
    type_, alignment = _vector_type(group, len(members))
    at = _latest(members)
    with ir.InsertionPoint(at), at.location:
        values = vector.FromElementsOp(type_, [op.value for op in members]).result
        vector.StoreOp(
            values, group.buffer, _indices(group, number), alignment=alignment
        )


def _earliest(ops: Sequence[Any]) -> Any:
    return reduce(
        lambda a, b: b if b.operation.is_before_in_block(a.operation) else a, ops
    )


def _latest(ops: Sequence[Any]) -> Any:
    return reduce(
        lambda a, b: a if b.operation.is_before_in_block(a.operation) else b, ops
    )


def _vector_type(group: _Group, width: int) -> tuple[ir.VectorType, int]:
    element = ir.MemRefType(group.buffer.type).element_type
    return ir.VectorType.get([width], element), width * element_bytes(element)


def _indices(group: _Group, number: int) -> list[ir.Value]:
    """Build the indices of the first of neighbouring elements."""
    index = ir.IndexType.get()
    built = [
        arith.ConstantOp(index, i).result if isinstance(i, int) else i
        for i in group.leading
    ]
    last = arith.ConstantOp(index, number).result
    if group.base is not None:
        last = arith.AddIOp(group.base, last).result
    return [*built, last]
