"""Owns what the operators of a subgraph become in the body of one tile."""

from __future__ import annotations

from typing import Any

from magweld.bindings import ir, tensor
from magweld.dialects.tile_graph import captured_values, root_operation
from magweld.passes.analysis.cloning import (
    ValueMap,
    clone_helper,
    clone_mapped,
    shift_indices,
)
from magweld.passes.analysis.graph_body import GraphBody, source_value
from magweld.passes.analysis.operator_model import root_accesses
from magweld.passes.analysis.pads import static_pad
from magweld.passes.analysis.regions import ZERO, Access
from magweld.passes.graph.tile_slices import (
    Box,
    TileSlicer,
    relative_box,
    whole_box,
)


class TileEmitter:
    """Emits the operators of one tile; values of results are boxes of them."""

    def __init__(
        self,
        body: GraphBody,
        inputs: dict[Any, Any],
        results: list[Any],
        destinations: list[Any],
        slicer: TileSlicer,
    ) -> None:
        """Take what the operators read and where their results go.

        Args:
            body: The operators.
            inputs: What stands for each tensor from outside.
            results: The values that are stored whole.
            destinations: One tensor for each of them.
            slicer: Makes the slices of the tile.
        """
        self._body = body
        self._tensors = inputs
        self._slicer = slicer
        self._results = results
        self._destinations = dict(zip(self._results, destinations, strict=True))
        self._tiles: dict[Any, tuple[Any, Box]] = {}

    def emit(self, number: int, box: Box, accumulator: Any | None = None) -> None:
        """Compute one operator for a box of its iterations.

        Args:
            number: Position of the operator.
            box: Its iterations.
            accumulator: What it accumulates into instead of its own initial value.
        """
        operator = self._body.operators[number]
        with root_operation(operator).location:
            if self._body.models[number].tileable:
                self._emit_tiled(number, box, accumulator)
            else:
                self._emit_whole(number)

    def initial(self, number: int, box: Box) -> Any:
        """Return what an operator with one result accumulates into at first."""
        operator, model = self._body.operators[number], self._body.models[number]
        root = root_operation(operator)
        init = root.operands[len(root.operands) - 1]
        destination = self._destinations.get(operator.results[0])
        with root.location:
            region = model.writes[0].box(box)
            return self._made(init, region, destination, ValueMap())

    def tile_of(self, number: int) -> Any:
        """Return the tile of the first result of an operator."""
        return self._tiles[self._body.operators[number].results[0]][0]

    def bind(self, number: int, tile: Any, box: Box) -> None:
        """Say what stands for the first result of an operator from now on."""
        region = self._body.models[number].writes[0].box(box)
        self._tiles[self._body.operators[number].results[0]] = (tile, region)

    def insert_results(self) -> None:
        """Write the tiles of the results into the destinations."""
        for result in self._results:
            value, region = self._tiles[result]
            self._slicer.insert(value, self._destinations[result], region)

    def _tensor(self, value: Any) -> Any:
        """What stands for a tensor from outside of the subgraph."""
        return self._tensors[value if value in self._tensors else source_value(value)]

    def _emit_whole(self, number: int) -> None:
        """An operator without known regions is computed whole, in one tile."""
        operator = self._body.operators[number]
        values = ValueMap()
        for value in self._body.inputs[number]:
            values[value] = self._tensor(value)
        for value in captured_values(operator):
            clone_helper(value, values)
        *operations, terminator = operator.regions[0].blocks[0].operations
        for op in operations:
            clone_mapped(op, values)
        for result, inner in zip(operator.results, terminator.operands, strict=True):
            shape = tuple(ir.RankedTensorType(result.type).shape)
            self._tiles[result] = (values[inner], whole_box(shape))

    def _emit_tiled(self, number: int, box: Box, accumulator: Any | None) -> None:
        operator, model = self._body.operators[number], self._body.models[number]
        root = root_operation(operator)
        helpers = ValueMap()
        for read in (read for read in model.reads if read.gathered):
            source = self._body.inputs[number][read.argument]
            helpers[source] = self._tensor(source)
        accesses = root_accesses(root)
        inits = len(accesses) - len(root.results)
        destinations = [None] * inits
        destinations += [self._destinations.get(r) for r in operator.results]
        operands: list[Any] = []
        for value, access, destination in zip(
            root.operands, accesses, destinations, strict=True
        ):
            if accumulator is not None and len(operands) == inits:
                tile = accumulator
            elif access.argument < 0:
                tile = self._made(value, access.box(box), destination, helpers)
            else:
                source = self._body.inputs[number][access.argument]
                tile = self._read(value, source, access, box, helpers)
            operands.append(tile)
        for value in captured_values(root):
            clone_helper(value, helpers)
        clone = clone_mapped(root, helpers)
        for position, value in enumerate(operands):
            clone.operands[position] = value
        for result, value in zip(clone.results, operands[inits:], strict=True):
            result.set_type(value.type)
        shift_indices(clone, lambda dim: self._start(box[dim].offset))
        for result, write, made in zip(
            operator.results, model.writes, clone.results, strict=True
        ):
            self._tiles[result] = (made, write.box(box))

    def _made(
        self, value: Any, region: Box, destination: Any | None, helpers: ValueMap
    ) -> Any:
        """The tile of an operand that the operator makes itself.

        Empty tensors and fills are made as tiles, in the destination if there is one;
        anything else is made whole and sliced.
        """
        name = value.owner.operation.name
        if name == "linalg.fill":
            scalar, init = value.owner.operation.operands
            clone_helper(scalar, helpers)
            # A fill writes all of what it is given.
            tile = self._empty(init, region, destination)
            fill = value.owner.operation.clone()
            fill.operands[0] = helpers[scalar]
            fill.operands[1] = tile
            fill.results[0].set_type(tile.type)
            return fill.results[0]
        if name == "tensor.empty":
            return self._empty(value, region, destination)
        clone_helper(value, helpers)
        if not isinstance(value.type, ir.RankedTensorType):
            return helpers[value]
        return self._slicer.slice(helpers[value], region)

    def _empty(self, like: Any, region: Box, destination: Any | None) -> Any:
        if destination is not None:
            return self._slicer.slice(destination, region)
        element = ir.RankedTensorType(like.type).element_type
        return tensor.EmptyOp([i.size for i in region], element).result

    def _read(
        self, value: Any, operand: Any, access: Access, box: Box, helpers: ValueMap
    ) -> Any:
        if access.padded:
            return self._padded(value, operand, access, box, helpers)
        region = access.box(box)
        source = source_value(operand)
        if source in self._tiles:
            tile, origin = self._tiles[source]
            return self._slicer.slice(tile, relative_box(region, origin), access.kept)
        # The tile is taken from the tensor behind the slices at once.
        return self._slicer.slice(self._tensor(operand), region, access.kept)

    def _padded(
        self, value: Any, operand: Any, access: Access, box: Box, helpers: ValueMap
    ) -> Any:
        """The window of a tensor with a border around it."""
        pad = static_pad(value)
        assert pad is not None, "padded operands are such pads"
        clone_helper(pad.fill, helpers)
        source = source_value(operand)
        if source in self._tiles:
            tile, origin = self._tiles[source]
        else:
            tile, origin = self._tensor(operand), whole_box(access.shape)
        window = access.window(box)
        return self._slicer.padded(tile, origin, window, pad, helpers[pad.fill])

    def _start(self, offset: Any) -> Any | None:
        return None if offset == ZERO else self._slicer.index(offset)
