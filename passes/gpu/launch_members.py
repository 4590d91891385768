"""Owns launch-members: one launch of a GPU kernel runs all members of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import arith, gpu, ir, llvm
from magweld.passes.gpu.pointer_table import (
    JOINT_LAUNCH,
    backend_of,
    load_pointers,
    make_entry,
    members_of,
    replace_reads,
)
from magweld.passes.gpu.structure import constant_of, device_functions, kernels_of
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import operations_of


@dataclass(frozen=True)
class LaunchMembers(Pass):
    """Run all members of a batch by one launch of a GPU kernel.

    A kernel whose host function has `magweld.members` gets an entry that takes one
    table of pointers as its parameter, those of one member after another. The grid has
    a row of blocks for each member: a block loads the pointers of its row, and runs
    the kernel, which is inlined. The table is in the memory of the launch's
    parameters, which is constant.

        gpu.launch_func @k::@k blocks in (%c8, %c1, %c1) ... args(%a, %o)
        llvm.func @k(%a: !llvm.ptr, %o: !llvm.ptr) attributes {nvvm.kernel}
    =>
        gpu.launch_func @k::@k_members blocks in (%c8, %c5, %c1) ... args(%a, %o)
        llvm.func internal @k(%a: !llvm.ptr, %o: !llvm.ptr) attributes {always_inline}
        llvm.func @k_members(%table: !llvm.ptr {llvm.byval = !llvm.array<10 x ptr>})
            attributes {nvvm.kernel}

    Kernels of one member stay as they are, and so do those that run beside others,
    which `join-launches` gives an entry.
    """

    name: ClassVar[str] = "launch-members"

    def run(self, module: Any) -> None:
        """Give entries to the kernels of batches."""
        functions = device_functions(module)
        for kernel in kernels_of(module):
            members = members_of(kernel)
            if members == 1 or JOINT_LAUNCH in kernel.attributes:
                continue
            for launch in operations_of(kernel, gpu.LaunchFuncOp):
                device, name = ir.SymbolRefAttr(launch.kernel).value
                blocks = constant_of(launch.gridSizeX, launch)
                with launch.location:
                    entry = _make_entry(functions[device, name], members, blocks)
                    _launch_entry(launch, [device, entry], members)


def _make_entry(kernel: Any, members: int, blocks: int) -> str:
    """Make an entry that finds the pointers of a member; return its name."""
    backend = backend_of(kernel)
    count = len(kernel.operation.regions[0].blocks[0].arguments)
    name = f"{kernel.sym_name.value}_members"
    entry = make_entry(kernel, name, members * count, (blocks, members, 1))
    replace_reads(kernel, backend.row, None)
    table = ir.Type.parse(backend.table)
    block = ir.Block.create_at_start(entry.operation.regions[0], [table])
    i32, i64 = (ir.IntegerType.get_signless(bits) for bits in (32, 64))
    with ir.InsertionPoint(block):
        row = ir.Operation.create(backend.row, results=[i32]).results[0]
        member = llvm.ZExtOp(i64, row).result
        operands = load_pointers(block.arguments[0], member, count)
        llvm.CallOp(None, operands, [], [], callee=kernel.sym_name.value)
        llvm.ReturnOp()
    return name


def _launch_entry(launch: Any, symbols: list[str], members: int) -> None:
    """Launch an entry, with a row of blocks for each member."""
    with ir.InsertionPoint(launch):
        rows = arith.ConstantOp(ir.IndexType.get(), members).result
    operation = launch.operation
    place = list(operation.operands).index(launch.gridSizeY, 1)
    operation.operands[place] = rows
    operation.attributes["kernel"] = ir.SymbolRefAttr.get(symbols)
