"""Owns linalg operations with what makes their operands element by element in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from magweld.bindings import affine, arith, ir, linalg
from magweld.passes.ir.cloning import ValueMap, clone_mapped, defining_op
from magweld.passes.ir.linalg_builder import build_generic

_WITHOUT_DATA = frozenset({"linalg.fill", "tensor.empty"})


def fuse_producers(root: Any) -> Any:
    """Return an operation that computes what it reads of others in its block itself.

    These are element-wise linalg operations with one result that `root` or another
    one of them reads, each for one element at a time; fills and splat constants are
    numbers then, unless they alone have the extent of a loop. `root` itself is returned
    where it reads none of all that.

        %0 = linalg.sub ins(%x, %y)
        %1 = linalg.exp ins(%0)       =>   linalg.generic ins(%x, %y) { subf, exp }

    Args:
        root: An element-wise operation or a reduction.
    """
    nest = _Nest(root)
    if nest.loses_extents:
        nest = _Nest(root, reads_numbers=True)
    if not nest.producers and not nest.numbers:
        return root
    with ir.InsertionPoint(root), root.location:
        made = nest.build()
    for old, new in zip(root.results, made.results, strict=True):
        old.replace_all_uses_with(new)
    for op in (root, *reversed(nest.producers)):
        _erase(op)
    return made


def _erase(op: Any) -> None:
    """Erase an operation, and the fills and empty tensors that only it used."""
    operands = list(dict.fromkeys(op.operands))
    op.erase()
    for value in operands:
        maker = defining_op(value)
        if maker is not None and maker.operation.name in _WITHOUT_DATA:
            if not list(value.uses):
                _erase(maker.operation)


class _Nest:
    """The operations that become one.

    Attributes:
        producers: Those that are computed for `root`, in their order.
        numbers: Operands that are one number everywhere.

    Args:
        root: What the others are computed for.
        reads_numbers: Whether tensors that are one number everywhere are read.
    """

    def __init__(self, root: Any, reads_numbers: bool = False) -> None:
        self.producers: list[Any] = []
        self.numbers: dict[Any, Any] = {}
        self._root = root
        self._reads_numbers = reads_numbers
        self._block = root.block
        maps = indexing_maps(root)
        self._dims = maps[0].n_dims
        self._reduced = set(range(self._dims)) - _plain_loops(maps[_inputs(root) :])
        # The loops of each operation as expressions of those of the root.
        self._kept = ir.AffineMap.get_identity(self._dims)
        self._loops = {root: self._kept}
        # Operands from outside, as often as they are read in another way.
        self._reads: dict[tuple[Any, ir.AffineMap], int] = {}
        # What each operand of an operation is: a read, or what a producer makes.
        self._sources: dict[Any, list[Any]] = {}
        self._visit(root)
        self._leave_out(self._unread_unit_loops())

    @property
    def loses_extents(self) -> bool:
        """Whether no operand tells the extent of some loop any more."""
        return bool(self._unread_loops())

    def _unread_loops(self) -> set[int]:
        """Loops that only read what is computed here now."""
        outputs = indexing_maps(self._root)[_inputs(self._root) :]
        maps = [*(map_ for _, map_ in self._reads), *outputs]
        kept = _plain_loops([_composed(map_, self._kept) for map_ in maps])
        return set(range(self._dims)) - kept

    def _unread_unit_loops(self) -> set[int]:
        """Those of one iteration, which are not needed."""
        extents = _extents(self._root)
        return {loop for loop in self._unread_loops() if extents.get(loop) == 1}

    def _leave_out(self, left: set[int]) -> None:
        """Put zero for some loops, and number the others anew."""
        if not left:
            return
        kept = [loop for loop in range(self._dims) if loop not in left]
        exprs = [ir.AffineExpr.get_constant(0)] * self._dims
        for number, loop in enumerate(kept):
            exprs[loop] = ir.AffineExpr.get_dim(number)
        self._kept = ir.AffineMap.get(len(kept), 0, exprs)
        self._loops = {op: _composed(m, self._kept) for op, m in self._loops.items()}
        self._reduced = {kept.index(loop) for loop in self._reduced - left}
        self._dims = len(kept)

    def _visit(self, op: Any) -> None:
        """Find what an operation reads, in the order of its operands."""
        maps, loops = indexing_maps(op), self._loops[op]
        sources: list[Any] = []
        for number in range(_inputs(op)):
            value, map_ = op.operands[number], _composed(maps[number], loops)
            maker = defining_op(value)
            found = None if maker is None else maker.operation
            if not isinstance(value.type, ir.RankedTensorType):
                self.numbers.setdefault(value, value)
            elif found is not None and (scalar := self._number(found)) is not None:
                self.numbers[value] = scalar
            elif self._is_producer(found):
                if found not in self._loops:
                    self._loops[found] = _loops_for(found, map_)
                    self._visit(found)
                    self.producers.append(found)
            else:
                read = (value, map_)
                sources.append(self._reads.setdefault(read, len(self._reads)))
                continue
            sources.append(value)
        self._sources[op] = sources

    def _number(self, op: Any) -> Any | None:
        return None if self._reads_numbers else _number(op)

    def _is_producer(self, op: Any) -> bool:
        if op is None or op.block != self._block:
            return False
        name = str(op.name)
        return name.startswith("linalg.") and name != "linalg.fill"

    def build(self) -> Any:
        """Make the operation at the insertion point."""
        root = self._root
        first = _inputs(root)
        reads = list(self._reads)
        outputs = list(root.operands)[first:]
        maps = [map_ for _, map_ in reads] + indexing_maps(root)[first:]
        maps = [_composed(map_, self._kept) for map_ in maps]
        inputs = [value for value, _ in reads]
        made = build_generic(inputs, outputs, maps, self._body, self._reduced)
        return made.operation

    def _body(self, arguments: Sequence[Any]) -> Sequence[Any]:
        values = ValueMap()
        for value, scalar in self.numbers.items():
            values[value] = _scalar(scalar)
        for op in self.producers:
            values[op.results[0]] = self._inlined(op, arguments, (), values)[0]
        outputs = arguments[len(self._reads) :]
        return self._inlined(self._root, arguments, outputs, values)

    def _inlined(
        self, op: Any, arguments: Sequence[Any], outputs: Sequence[Any], made: ValueMap
    ) -> list[Any]:
        """Copy the body of an operation, and return what it yields."""
        block, values = op.regions[0].blocks[0], ValueMap()
        inputs = [
            arguments[source] if isinstance(source, int) else made[source]
            for source in self._sources[op]
        ]
        for argument, value in zip(block.arguments, [*inputs, *outputs], strict=False):
            values[argument] = value
        *operations, terminator = block.operations
        for inner in operations:
            if inner.operation.name == "linalg.index":
                dim = ir.IntegerAttr(inner.operation.attributes["dim"]).value
                index = self._index(self._loops[op].results[dim])
                values[inner.operation.results[0]] = index
            else:
                clone_mapped(inner, values)
        return [values[value] for value in terminator.operands]

    def _index(self, expression: Any) -> Any:
        """Where a loop of a producer is, at the insertion point."""
        if isinstance(expression, ir.AffineDimExpr):
            return linalg.IndexOp(expression.position).result
        indices = [linalg.IndexOp(dim).result for dim in range(self._dims)]
        map_ = ir.AffineMap.get(self._dims, 0, [expression])
        return affine.AffineApplyOp(map_, indices).result


def indexing_maps(op: Any) -> list[ir.AffineMap]:
    """Return the map of each operand of a linalg operation."""
    if "indexing_maps" in op.attributes:
        return [attribute.value for attribute in op.attributes["indexing_maps"]]
    return [attribute.value for attribute in linalg.get_indexing_maps(op)]


def _plain_loops(maps: Sequence[ir.AffineMap]) -> set[int]:
    """The loops that index a dimension by themselves."""
    return {
        expr.position
        for map_ in maps
        for expr in map_.results
        if isinstance(expr, ir.AffineDimExpr)
    }


def _extents(op: Any) -> dict[int, int]:
    """The extent of each loop that indexes a dimension by itself."""
    return {
        expr.position: extent
        for value, map_ in zip(op.operands, indexing_maps(op), strict=True)
        if isinstance(value.type, ir.RankedTensorType)
        for expr, extent in zip(map_.results, value.type.shape, strict=True)
        if isinstance(expr, ir.AffineDimExpr)
    }


def _inputs(op: Any) -> int:
    return len(op.operands) - len(op.results)


def _composed(map_: ir.AffineMap, loops: ir.AffineMap) -> ir.AffineMap:
    found = [expr.compose(loops) for expr in map_.results]
    return ir.AffineMap.get(loops.n_dims, 0, found)


def _loops_for(producer: Any, at: ir.AffineMap) -> ir.AffineMap:
    """The loops of a producer that make the element at an index."""
    made = indexing_maps(producer)[-1]
    # A loop of one iteration that indexes nothing is at its begin.
    loops = [ir.AffineExpr.get_constant(0)] * made.n_dims
    for expr, index in zip(made.results, at.results, strict=True):
        if isinstance(expr, ir.AffineDimExpr):
            loops[expr.position] = index
    return ir.AffineMap.get(at.n_dims, 0, loops)


def _number(op: Any) -> Any | None:
    """What all elements of a fill or a constant are: a value or an attribute."""
    if op.name == "linalg.fill":
        value, into = op.operands
        # One of another type is converted to that of the tensor.
        same = value.type == ir.RankedTensorType(into.type).element_type
        return value if same else None
    if op.name != "arith.constant":
        return None
    elements = op.attributes["value"]
    is_splat = isinstance(elements, ir.DenseElementsAttr) and elements.is_splat
    return elements.get_splat_value() if is_splat else None


def _scalar(number: Any) -> Any:
    if isinstance(number, ir.Attribute):
        return arith.constant(number.type, number)
    return number
