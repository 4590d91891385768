"""Owns lower-register-streams: streams whose tiles subgroups have in registers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from magweld.bindings import arith, func, gpu, ir
from magweld.dialects.tile_graph import SUBGROUP_ROWS, TileAttr
from magweld.passes.gpu.lane_layouts import FRAGMENT_ROWS, LAYOUTS, LaneLayout
from magweld.passes.gpu.pointer_table import takes_pointers
from magweld.passes.gpu.register_tiles import Lanes
from magweld.passes.gpu.stream_boxes import barrier_bytes
from magweld.passes.gpu.stream_kernel import StreamKernel
from magweld.passes.gpu.streamed_operands import StreamLoop
from magweld.passes.gpu.structure import block_loop_of, kernels_of
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import located_error
from magweld.passes.tiling.register_streams import MOST_SUBGROUPS, SUBGROUPS

_STAGES, _TILE = "tile_graph.copy_stages", "tile_graph.tile"


@dataclass(frozen=True)
class LowerRegisterStreams(Pass):
    """Make launches of kernels whose tiles lie in the registers of subgroups.

    Those with `tile_graph.subgroup_rows`, as the plan says: each of four subgroups, or
    of eight, has so many rows of a tile, and all of their columns. Results of matrix
    instructions are, as lanes have them, operands of others (`lane_layouts.py`), so
    that of

        scf.for %k = 0 to 2048 step 64 iter_args(%max, %sum, %out) {
          %s = product of %q and rows %k .. of %keys
          ... maxima and sums of the rows of %s, exponentials %p ...
          %o = product of %p and rows %k .. of %values, added to %out
        }

    nothing but the blocks of keys and values goes through shared memory: a ring for
    each has `tile_graph.copy_stages` slots. Lanes that share a row combine what they
    have of it by shuffles. What the loop carries is a value for each element.

    Columns behind the end of the last block change nothing: their factors are zeros,
    and reductions leave them out.

    Where warpgroups read all blocks, the last product of a block is computed beside the
    next block: it and the scores of the next block begin together, and weights are made
    of these meanwhile. Its sums are waited for and scaled in the next iteration
    (`stream_rotation.py`).
    """

    name: ClassVar[str] = "lower-register-streams"

    matrix: Annotated[str, "family of matrix instructions"] = ""
    has_async_copies: Annotated[bool, "whether threads go on while they copy"] = False
    has_warpgroups: Annotated[
        bool, "whether four subgroups compute products together"
    ] = False
    bulk_capacity: Annotated[
        int, "bytes of shared memory of a block whose copies are boxes, 0 for no boxes"
    ] = 0

    def run(self, module: Any) -> None:
        """Lower the kernels of the module that have such tiles."""
        for kernel in kernels_of(module):
            if SUBGROUP_ROWS in kernel.attributes:
                with kernel.location:
                    self._lower(kernel)

    def _lower(self, kernel: func.FuncOp) -> None:
        if self.matrix not in LAYOUTS:
            raise located_error(kernel, "expected a target with matrix instructions")
        layout = LAYOUTS[self.matrix]
        rows = ir.IntegerAttr(kernel.attributes[SUBGROUP_ROWS]).value
        if rows < FRAGMENT_ROWS or rows % FRAGMENT_ROWS:
            raise located_error(
                kernel, f"expected whole fragments of 16 rows, got {rows} rows"
            )
        lines = math.prod(TileAttr(kernel.attributes[_TILE]).sizes[:-1])
        subgroups = lines // rows
        if lines % rows or subgroups not in (SUBGROUPS, MOST_SUBGROUPS):
            detail = f"{lines} rows in parts of {rows}"
            raise located_error(kernel, f"expected four or eight parts, got {detail}")
        stages = 1
        if self.has_async_copies:
            stages = 2
        if self.has_async_copies and _STAGES in kernel.attributes:
            stages = max(2, ir.IntegerAttr(kernel.attributes[_STAGES]).value)
        how: dict[str, Any] = {
            "capacity": self.bulk_capacity if takes_pointers(kernel) else 0,
            "subgroups": subgroups,
            "has_async_copies": self.has_async_copies,
            "has_warpgroups": self.has_warpgroups,
        }
        _Launch(kernel, layout, rows // FRAGMENT_ROWS, stages, how).build()


class _Launch:
    """Builds the launch of a kernel, which replaces its loop over tiles."""

    def __init__(
        self,
        kernel: func.FuncOp,
        layout: LaneLayout,
        fragments: int,
        stages: int,
        how: dict[str, Any],
    ) -> None:
        self._kernel = kernel
        self._loop = block_loop_of(kernel)
        self._layout = layout
        self._fragments = fragments
        self._stages = stages
        self._how = dict(how)
        self._capacity: int = self._how.pop("capacity")

    def build(self) -> None:
        """Build it in a function on buffers, and drop the kernel on tensors."""
        kernel = self._kernel
        threads = self._how["subgroups"] * self._layout.subgroup
        types = [_buffer(argument.type) for argument in kernel.arguments]
        with ir.InsertionPoint(kernel):
            made = func.FuncOp(kernel.name.value, (types, []))
        for named in kernel.attributes:
            if named not in ("function_type", "sym_name", "arg_attrs", "res_attrs"):
                made.attributes[named] = kernel.attributes[named]
        *_, shared = StreamLoop.of(self._loop).starts(
            self._stages, has_warpgroups=self._how["has_warpgroups"]
        )
        rings = len(StreamLoop.of(self._loop).operands)
        more = barrier_bytes(rings, self._stages)
        if shared + more <= self._capacity:
            self._how["barriers_at"] = shared
            shared += more
        with ir.InsertionPoint(made.add_entry_block()):
            one = arith.ConstantOp(ir.IndexType.get(), 1).result
            (upper,) = self._loop.staticUpperBound
            grid = arith.ConstantOp(ir.IndexType.get(), upper).result
            size = arith.ConstantOp(ir.IndexType.get(), threads).result
            i32 = ir.IntegerType.get_signless(32)
            launch = gpu.LaunchOp(
                (grid, one, one),
                (size, one, one),
                dynamic_shared_memory_size=arith.ConstantOp(i32, shared).result,
            )
            func.ReturnOp([])
        block = launch.operation.regions[0].blocks[0]
        with ir.InsertionPoint(block):
            anchor = arith.ConstantOp(ir.IndexType.get(), 0)
            end = gpu.TerminatorOp()
        arguments = list(block.arguments)
        lanes = Lanes(
            self._layout,
            self._fragments,
            arguments[3],
            lambda: ir.InsertionPoint(anchor),
        )
        with ir.InsertionPoint(end):
            StreamKernel(
                self._loop,
                dict(zip(kernel.arguments, made.arguments, strict=True)),
                lanes,
                arguments[0],
                self._stages,
                **self._how,
            ).build_all()
        kernel.erase()


def _buffer(type_: Any) -> Any:
    tensor = ir.RankedTensorType(type_)
    return ir.MemRefType.get(list(tensor.shape), tensor.element_type)
