"""Owns tile_graph.subgraph."""

from collections.abc import Iterator
from typing import Any

from magweld.bindings import ext, ir
from magweld.dialects.tile_graph.dialect import Operation, read_by_position
from magweld.dialects.tile_graph.structure import (
    VIEWS,
    YIELD,
    parallel_extents,
    root_operation,
)
from magweld.dialects.tile_graph.verification import (
    OPERATOR,
    body_violations,
    found_level,
    implementation_violations,
    integer_violations,
    nontemporal_violations,
    parent_violations,
    region_violations,
    report,
    stage_violations,
    table_violations,
    tile_violations,
)
from magweld.targets.device import ARITHMETIC, Level

_BODY = frozenset({OPERATOR, YIELD, "tile_graph.connect"} | VIEWS)
_LEAST_OF_INTEGER = {
    "footprint": 0,
    "reduction_step": 1,
    "stream_step": 1,
    "subgroup_rows": 16,
    "traffic_after": 0,
    "traffic_before": 0,
}


@read_by_position
class SubgraphOp(Operation, name="subgraph"):
    """Operators that are connected below the outermost level: one kernel.

    It reads the values that its region uses from outside, and gives what its last
    operator makes, then what others make for readers elsewhere.

    Attributes:
        subgraph_name: Name in reports and of the kernel.
        level: Level at which reuse tiles are kept.
        tile: Optional `#tile_graph.tile`: the tile of the last operator's parallel
            dimensions; every size divides its extent unless it is ragged.
        ragged: Optional; present where sizes need not divide: the tiles at the far
            ends are smaller, and tiles of different shapes run different code.
        reduction_step: Optional; how much of a reduction is staged at a time.
        copy_stages: Optional; how many steps of staged operands the level holds: one
            is computed with while the others are on their way.
        nontemporal: Optional; numbers of the results that are stored past the caches,
            where the level of the tiles is one: such a tile is copied out of its place.
        stream_step: Optional; how much of the dimension that goes over its edges with
            `stream` is computed at a time.
        subgroup_rows: Optional; how many rows of the tiles of a stream each of the
            subgroups has in registers: the level holds blocks of what products read.
        implementation: Optional; "generated" code or a "library" call.
        footprint: Optional; bytes that one tile needs at `level`.
        traffic_before, traffic_after: Optional; bytes moved from and to the
            outermost level with the operators apart, and as planned.
        moved_before, moved_after: Optional; the same for each level from the outermost
            to that of the tiles.
        predicted_seconds: Optional; predicted time of one run.
        predicted_shares: Optional; seconds that each level and arithmetic take of it.
        seconds_apart: Optional; predicted time of the operators apart.
        recompute: Optional; arithmetic done over arithmetic needed.
    """

    first: ext.Result[Any]
    second: ext.Result[Any] | None
    subgraph_name: ir.StringAttr
    level: ir.StringAttr
    body: ext.Region

    def verify_region_invariants(self) -> bool:
        """Check the place, the block, and that the plan is possible."""
        return report(self, self._violations())

    def _violations(self) -> Iterator[str]:
        yield from parent_violations(self, ("func.func",))
        yield from region_violations(self)
        yield from body_violations(self, _BODY)
        operators = [
            op
            for op in self.operation.regions[0].blocks[0].operations
            if op.operation.name == OPERATOR
        ]
        if not operators:
            yield f"expected its body to hold a '{OPERATOR}'"
            return
        device = yield from found_level(self, self.level.value)
        yield from self._result_violations(operators)
        yield from implementation_violations(self)
        yield from self._tile_violations(operators[-1])
        for name, least in _LEAST_OF_INTEGER.items():
            yield from integer_violations(self, name, least)
        yield from self._stream_violations()
        yield from self._traffic_violations()
        if device is not None:
            level = device.level(self.level.value)
            yield from self._footprint_violations(level)
            yield from stage_violations(self, level)
            yield from nontemporal_violations(self, level)
            yield from self._share_violations(device.level_names())

    def _share_violations(self, levels: tuple[str, ...]) -> Iterator[str]:
        for name in ("moved_before", "moved_after"):
            yield from table_violations(self, name, levels, ir.IntegerAttr)
        parts = (*levels, ARITHMETIC)
        yield from table_violations(self, "predicted_shares", parts, ir.FloatAttr)

    def _result_violations(self, operators: list[ir.OpView]) -> Iterator[str]:
        *_, terminator = self.operation.regions[0].blocks[0].operations
        given = list(terminator.operands)
        last = list(operators[-1].operation.results)
        if given[: len(last)] != last:
            yield "expected it to give the results of its last operator first"
        made = [value for op in operators for value in op.operation.results]
        if len(set(given)) != len(given) or not set(given).issubset(made):
            yield "expected each of its results to be another one of its operators"

    def _tile_violations(self, operator: ir.OpView) -> Iterator[str]:
        attributes = self.operation.attributes
        if "tile" not in attributes:
            return
        tile, extents = attributes["tile"], parallel_extents(root_operation(operator))
        yield from tile_violations(tile, extents)
        if "ragged" in attributes:
            return
        for index, (size, extent) in enumerate(zip(tile.sizes, extents, strict=True)):
            if extent % size:
                yield (
                    f"expected size #{index} of its tile to divide the extent "
                    f"{extent}, got {size}"
                )

    def _stream_violations(self) -> Iterator[str]:
        attributes = self.operation.attributes
        streamed = any(
            "stream" in op.operation.attributes
            for op in self.operation.regions[0].blocks[0].operations
        )
        if "stream_step" in attributes and not streamed:
            yield "expected an edge with 'stream' in it, since it has a stream_step"
        if streamed and "tile" in attributes and "stream_step" not in attributes:
            yield "expected attribute 'stream_step', since an edge in it has 'stream'"

    def _traffic_violations(self) -> Iterator[str]:
        before, after = self._integer("traffic_before"), self._integer("traffic_after")
        if before is not None and after is not None and after > before:
            yield (
                f"expected traffic_after to be at most traffic_before, {before} "
                f"bytes, got {after} bytes"
            )

    def _footprint_violations(self, level: Level) -> Iterator[str]:
        footprint = self._integer("footprint")
        if footprint is not None and level.capacity and footprint > level.capacity:
            yield (
                f"expected its footprint to fit into level '{level.name}' of "
                f"{level.capacity} bytes, got {footprint} bytes"
            )

    def _integer(self, name: str) -> int | None:
        attributes = self.operation.attributes
        return int(attributes[name].value) if name in attributes else None
