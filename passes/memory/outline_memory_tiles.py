"""Owns outline-memory-tiles: outer subgraphs become functions, one a shape of tile."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from magweld.bindings import func, ir, tensor
from magweld.dialects.device_attributes import device_attribute
from magweld.dialects.tile_graph import (
    DEVICE,
    OPERATORS,
    TileAttr,
    device_of,
    is_tile_graph,
    operators_of,
    reports_of,
    set_reports,
    subgraphs_of,
)
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import Declarations, functions_of, located_error
from magweld.passes.memory.boxes import Box, grid, offsets, relative, sizes
from magweld.passes.memory.cones import Trace, find_cone
from magweld.passes.memory.demands import paddings
from magweld.passes.memory.emission import emit_tile
from magweld.passes.memory.fit_memory import HOST
from magweld.passes.memory.reading import ReadGraph, read_graph
from magweld.passes.memory.tile_list import TILES, Tile


@dataclass(frozen=True)
class OutlineMemoryTiles(Pass):
    """Turn every outer subgraph into functions that make one tile each.

    Tiles that differ in place alone share `@tile_N`, which takes the parts of tensors
    that the tile reads and returns it, as linalg: form-tile-graph and what follows
    schedule it like any function. Borders are padded there, and nowhere else. The
    subgraph becomes a call of `@tiled_N(tensors..., destination)`, a declaration whose
    `magweld.tile_runs` lists, for every tile, the function, the operands that it takes
    parts of, where the parts begin, and where the result goes. The device of the graph
    has its own outermost level again.
    """

    name: ClassVar[str] = "outline-memory-tiles"

    def run(self, module: Any) -> None:
        """Outline the outer subgraphs of all graphs of the module."""
        outliner = _Outliner(module)
        for function in list(functions_of(module)):
            if is_tile_graph(function) and device_of(function).levels[0].name == HOST:
                for subgraph in subgraphs_of(function):
                    outliner.outline(subgraph.operation)
                _drop_host_level(function)


def _drop_host_level(function: Any) -> None:
    device = device_of(function)
    inner = replace(device, levels=device.levels[1:])
    function.attributes[DEVICE] = device_attribute(inner)
    for op in function.regions[0].blocks[0].operations:
        if op.operation.name == "tile_graph.connect":
            level = ir.StringAttr.get(inner.levels[0].name)
            op.operation.attributes["level"] = level


@dataclass
class _Outliner:
    """Makes the functions of one module."""

    module: Any
    _tiles: dict[Any, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._declarations = Declarations(self.module)

    def outline(self, subgraph: Any) -> None:
        """Replace a subgraph by a call."""
        if "tile" not in subgraph.attributes:
            raise located_error(subgraph, "expected attribute 'tile', see fit-memory")
        read = read_graph(subgraph)
        cone = find_cone(read.graph, read.outputs[0], ())
        tile = TileAttr(subgraph.attributes["tile"]).sizes
        shape = cone.graph.tensors[cone.root].shape
        self._tiles.clear()
        tiles = []
        for box in grid(shape, tile):
            trace = cone.trace(box)
            if trace is None:
                raise located_error(subgraph, f"has no rule for its tile {box}")
            tiles.append(self._tile(read, trace, box))
        with ir.InsertionPoint(subgraph), subgraph.location:
            self._call(subgraph, [read.values[t] for t in cone.leaves], tiles)
        subgraph.erase()

    def _tile(self, read: ReadGraph, trace: Trace, box: Box) -> Tile:
        key = _shape_of(read, trace)
        if key not in self._tiles:
            self._tiles[key] = self._function(read, trace)
        leaves = trace.cone.leaves
        return Tile(
            self._tiles[key],
            tuple(leaves.index(t) for t in trace.read),
            tuple(offsets(part) for part in trace.read.values()),
            offsets(box),
        )

    def _function(self, read: ReadGraph, trace: Trace) -> str:
        """Make the function of a tile; return its name."""
        operands = [
            _type(read.values[t], sizes(part)) for t, part in trace.read.items()
        ]
        root = trace.cone.root
        result = _type(read.values[root], sizes(trace.made[root]))
        function = self._declare("tile", operands, result)
        with ir.InsertionPoint(function.add_entry_block()):
            arguments = dict(zip(trace.read, function.arguments, strict=True))
            func.ReturnOp([emit_tile(read, trace, arguments)])
        return str(function.name.value)

    def _declare(self, kind: str, operands: list[Any], result: Any) -> Any:
        with ir.Location.unknown():
            return self._declarations.add(kind, operands, [result])

    def _call(self, subgraph: Any, operands: list[Any], tiles: list[Tile]) -> None:
        type_ = ir.RankedTensorType(subgraph.results[0].type)
        destination = tensor.EmptyOp(list(type_.shape), type_.element_type).result
        operands = [*operands, destination]
        function = self._declare("tiled", [v.type for v in operands], type_)
        function.attributes[TILES] = ir.ArrayAttr.get([t.attribute() for t in tiles])
        set_reports(function, reports_of(subgraph))
        call = func.CallOp(function, operands)
        names = [op.op_name for op in operators_of(subgraph)]
        call.attributes[OPERATORS] = ir.ArrayAttr.get(names)
        subgraph.results[0].replace_all_uses_with(call.results[0])


def _type(like: Any, shape: tuple[int, ...]) -> Any:
    return ir.RankedTensorType.get(shape, ir.RankedTensorType(like.type).element_type)


def _shape_of(read: ReadGraph, trace: Trace) -> Any:
    """What makes one tile another code than another one, but for its place.

    Where each part lies in what holds it and how it is padded; and the place itself
    where an operation computes with positions.
    """
    parts = {**trace.read, **trace.made}
    key: list[Any] = [sizes(box) for box in trace.read.values()]
    for number in trace.cone.members:
        node = trace.cone.graph.nodes[number]
        box = trace.made[node.results[0]]
        demand = node.rule.demand(box) if node.rule is not None else None
        assert demand is not None, "the trace has found it before"
        key.append(sizes(box))
        for operand, need in zip(node.operands, demand.needs, strict=True):
            inside = None if need is None else relative(need, parts[operand])
            key.append(inside)
        key.append(paddings(node.rule, box, demand))
        if _uses_positions(read.operations[number]):
            key.append(offsets(box))
    return tuple(key)


def _uses_positions(op: Any) -> bool:
    found = False

    def visit(nested: Any) -> Any:
        nonlocal found
        found = found or nested.name == "linalg.index"
        return ir.WalkResult.ADVANCE

    op.walk(visit)
    return found
