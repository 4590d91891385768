"""Owns the body of a kernel: one forall whose tiles compute all operators in order."""

from __future__ import annotations

from typing import Any

from magweld.bindings import affine, ir, scf, tensor
from magweld.dialects.tile_graph import TileAttr, captured_values, root_operation
from magweld.passes.analysis.cloning import ValueMap, clone_mapped, nested_operations
from magweld.passes.analysis.graph_body import read_body
from magweld.passes.analysis.operator_model import root_accesses
from magweld.passes.analysis.propagation import Refusal, propagate
from magweld.passes.analysis.regions import (
    ZERO,
    Access,
    Interval,
    LinearIndex,
    OperatorModel,
)
from magweld.passes.ir_utils import located_error

Box = tuple[Interval, ...]


def build_tiled_body(
    subgraph: Any, inputs: dict[Any, Any], destinations: list[Any]
) -> list[Any]:
    """Build the loop over tiles at the insertion point and return its results.

    Args:
        subgraph: A `tile_graph.subgraph` with a `tile`.
        inputs: What stands for each tensor that the subgraph reads.
        destinations: One tensor a result, overwritten completely.

    Raises:
        PassError: The tile does not fit the operators.
    """
    body = read_body(subgraph)
    group = body.group(list(range(len(body.operators))))
    tile = TileAttr(subgraph.attributes["tile"]).sizes
    tiles = propagate(group, tile)
    if isinstance(tiles, Refusal):
        raise located_error(subgraph, f"{tiles.rule}: {tiles.detail}")
    loops = [
        loop
        for loop, size in zip(group.root.parallel, tile, strict=True)
        if size < group.root.extents[loop]
    ]
    sizes = dict(zip(group.root.parallel, tile, strict=True))
    # A loop that is not split still needs one forall dimension to be a tile loop.
    bounds = [(group.root.extents[i], sizes[i]) for i in loops] or [(1, 1)]
    forall = scf.ForallOp(
        [0] * len(bounds), [e for e, _ in bounds], [s for _, s in bounds], destinations
    )
    arguments = list(forall.body.arguments)
    ivs = dict(zip(loops, arguments[: len(bounds)], strict=False))
    with ir.InsertionPoint(forall.body):
        emitter = _TileEmitter(subgraph, inputs, arguments[len(bounds) :], ivs)
        for number, box in enumerate(tiles.boxes):
            emitter.emit(
                body.operators[number], body.inputs[number], body.models[number], box
            )
        parallel = scf.InParallelOp()
    with ir.InsertionPoint(parallel.region.blocks[0]):
        emitter.insert_results(group.root, tiles.boxes[-1])
    return list(forall.results)


class _TileEmitter:
    """Emits the operators of one tile; values of results are boxes of them."""

    def __init__(
        self,
        subgraph: Any,
        inputs: dict[Any, Any],
        destinations: list[Any],
        ivs: dict[int, Any],
    ) -> None:
        block = subgraph.operation.regions[0].blocks[0]
        self._tensors = inputs
        self._connects = {
            op.operation.results[0]: op.operation.operands[0]
            for op in block.operations
            if op.operation.name == "tile_graph.connect"
        }
        self._tiles: dict[Any, tuple[Any, Box]] = {}
        self._destinations = destinations
        self._ivs = ivs
        self._root: Any = list(block.operations)[-1].operands[0].owner.operation

    def emit(
        self, operator: Any, inputs: tuple[Any, ...], model: OperatorModel, box: Box
    ) -> None:
        """Compute one operator for a box of its iterations."""
        root = root_operation(operator)
        with root.location:
            if model.tileable:
                self._emit_tiled(operator, inputs, root, model, box)
            else:
                self._emit_whole(operator, inputs, root, model)

    def insert_results(self, model: OperatorModel, box: Box) -> None:
        """Write the tiles of the last operator into the destinations."""
        for write, result, destination in zip(
            model.writes, self._root.results, self._destinations, strict=True
        ):
            value, _ = self._tiles[result]
            region = write.box(box) if model.tileable else _whole(write.shape)
            sizes = [interval.size for interval in region]
            static, dynamic = self._insert_offsets(region)
            tensor.parallel_insert_slice(
                value,
                destination,
                dynamic,
                [],
                [],
                static,
                sizes,
                [1] * len(sizes),
            )

    def _emit_whole(
        self, operator: Any, inputs: tuple[Any, ...], root: Any, model: OperatorModel
    ) -> None:
        """An operator without known regions is computed whole, in one tile."""
        values = ValueMap()
        for value in inputs:
            values[value] = self._tensors[value]
        for value in captured_values(operator):
            self._clone_helper(value, values)
        for op in list(operator.regions[0].blocks[0].operations)[:-1]:
            clone_mapped(op, values)
        for result, write, inner in zip(
            operator.results, model.writes, root.results, strict=True
        ):
            self._tiles[result] = (values[inner], _whole(write.shape))

    def _emit_tiled(
        self,
        operator: Any,
        inputs: tuple[Any, ...],
        root: Any,
        model: OperatorModel,
        box: Box,
    ) -> None:
        helpers = ValueMap()
        accesses = root_accesses(root)
        inits = len(accesses) - len(root.results)
        operands = []
        for position, (value, access) in enumerate(
            zip(root.operands, accesses, strict=True)
        ):
            if access.argument < 0 and position >= inits:
                destination = self._destination(operator, position - inits)
                operands.append(self._init(value, access, box, destination, helpers))
            elif access.argument < 0:
                operands.append(self._helper(value, access, box, helpers))
            else:
                source = inputs[access.argument]
                operands.append(self._read(value, source, access, box, helpers))
        for value in _scalar_captures(root):
            self._clone_helper(value, helpers)
        clone = clone_mapped(root, helpers)
        for position, value in enumerate(operands):
            clone.operands[position] = value
        for result, value in zip(clone.results, operands[inits:], strict=True):
            result.set_type(value.type)
        self._shift_indices(clone, box)
        for result, write, made in zip(
            operator.results, model.writes, clone.results, strict=True
        ):
            self._tiles[result] = (made, write.box(box))

    def _destination(self, operator: Any, number: int) -> Any | None:
        return self._destinations[number] if operator == self._root else None

    def _init(
        self, value: Any, access: Access, box: Box, destination: Any, helpers: ValueMap
    ) -> Any:
        """The tile that a root writes: filled if the operator fills it."""
        region = access.box(box)
        if destination is not None:
            empty = self._slice(destination, region)
        else:
            element = ir.RankedTensorType(value.type).element_type
            empty = tensor.EmptyOp([i.size for i in region], element).result
        producer = value.owner.operation
        if producer.name == "tensor.empty":
            return empty
        if producer.name != "linalg.fill":
            return self._helper(value, access, box, helpers)
        self._clone_helper(producer.operands[0], helpers)
        helpers[producer.operands[1]] = empty
        fill = producer.clone()
        fill.operands[0] = helpers[producer.operands[0]]
        fill.operands[1] = empty
        fill.results[0].set_type(empty.type)
        return fill.results[0]

    def _helper(self, value: Any, access: Access, box: Box, helpers: ValueMap) -> Any:
        """A value that the operator makes itself: made whole, then sliced."""
        self._clone_helper(value, helpers)
        made = helpers[value]
        if not isinstance(made.type, ir.RankedTensorType):
            return made
        return self._slice(made, access.box(box))

    def _clone_helper(self, value: Any, helpers: ValueMap) -> None:
        if value in helpers or isinstance(value, ir.BlockArgument):
            return
        producer = value.owner.operation
        for operand in producer.operands:
            self._clone_helper(operand, helpers)
        clone_mapped(producer, helpers)

    def _read(
        self,
        value: Any,
        operand: Any,
        access: Access,
        box: Box,
        helpers: ValueMap,
    ) -> Any:
        region = access.box(box)
        source = self._connects.get(operand, operand)
        if source in self._tiles:
            tile, origin = self._tiles[source]
            return self._slice(tile, _relative(region, origin))
        whole = self._tensors[operand]
        if not access.padded:
            return self._slice(whole, region)
        helpers[operand] = whole
        self._clone_helper(value, helpers)
        return self._slice(helpers[value], region)

    def _slice(self, value: Any, region: Box) -> Any:
        type_ = ir.RankedTensorType(value.type)
        sizes = [interval.size for interval in region]
        if sizes == list(type_.shape):
            return value
        static, dynamic = self._offsets(region)
        result = ir.RankedTensorType.get(sizes, type_.element_type)
        return tensor.extract_slice(
            result, value, dynamic, [], [], static, sizes, [1] * len(sizes)
        )

    def _offsets(self, region: Box) -> tuple[list[int], list[Any]]:
        """Static offsets, with the marker where the dynamic ones go."""
        marker = ir.ShapedType.get_dynamic_stride_or_offset()
        static: list[int] = []
        dynamic: list[Any] = []
        for interval in region:
            if interval.offset.terms:
                static.append(marker)
                dynamic.append(self._index(interval.offset))
            else:
                static.append(interval.offset.constant)
        return static, dynamic

    def _insert_offsets(self, region: Box) -> tuple[list[int], list[Any]]:
        # The terminator's block takes insertions only: offsets are made before it.
        terminator = ir.InsertionPoint.current.block.owner
        with ir.InsertionPoint(terminator):
            return self._offsets(region)

    def _index(self, offset: LinearIndex) -> Any:
        terms = [(self._ivs[loop], factor) for loop, factor in offset.terms]
        if offset.constant == 0 and len(terms) == 1 and terms[0][1] == 1:
            return terms[0][0]
        expr = ir.AffineExpr.get_constant(offset.constant)
        for position, (_, factor) in enumerate(terms):
            expr = ir.AffineExpr.get_dim(position) * factor + expr
        map_ = ir.AffineMap.get(len(terms), 0, [expr])
        return affine.AffineApplyOp(map_, [iv for iv, _ in terms]).result

    def _shift_indices(self, root: Any, box: Box) -> None:
        """Add the tile's offset to what linalg.index gives inside `root`."""
        for op in list(nested_operations(root)):
            if op.name != "linalg.index":
                continue
            offset = box[ir.IntegerAttr(op.attributes["dim"]).value].offset
            if offset == ZERO:
                continue
            with ir.InsertionPoint(root):
                start = self._index(offset)
            uses = [
                (use.owner.operation, use.operand_number) for use in op.results[0].uses
            ]
            d0, d1 = ir.AffineExpr.get_dim(0), ir.AffineExpr.get_dim(1)
            add = ir.AffineMap.get(2, 0, [d0 + d1])
            with ir.InsertionPoint.after(op):
                moved = affine.AffineApplyOp(add, [op.results[0], start]).result
            for user, position in uses:
                user.operands[position] = moved


def _whole(shape: tuple[int, ...]) -> Box:
    return tuple(Interval(ZERO, extent) for extent in shape)


def _relative(region: Box, origin: Box) -> Box:
    """Return where `region` lies inside a tile that starts at `origin`."""
    return tuple(
        Interval(_difference(a.offset, b.offset), a.size)
        for a, b in zip(region, origin, strict=True)
    )


def _difference(left: LinearIndex, right: LinearIndex) -> LinearIndex:
    merged = dict(left.terms)
    for loop, factor in right.terms:
        merged[loop] = merged.get(loop, 0) - factor
    terms = tuple(sorted((k, v) for k, v in merged.items() if v))
    return LinearIndex(terms, left.constant - right.constant)


def _scalar_captures(root: Any) -> list[Any]:
    """Values that the region of `root` takes from the operator's block."""
    found: dict[Any, None] = {}
    for op in nested_operations(root):
        for operand in op.operands:
            if isinstance(operand, ir.BlockArgument):
                continue
            if operand.owner.operation.parent != root:
                found[operand] = None
    return list(found)
