"""Owns launch-members: one launch of a GPU kernel runs all members of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import arith, gpu, ir, llvm
from magweld.passes.gpu.structure import kernels_of
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import operations_of

# On a kernel: how many members a launch of it has.
MEMBERS = "magweld.members"

POINTER_BYTES = 8
# LLVM's number for global memory, on NVPTX and AMDGPU alike.
_GLOBAL_ADDRESS_SPACE = 1
# What says about a function that it is a kernel, and of which shape.
_OF_KERNELS = ("gpu.", "nvvm.", "rocdl.")
_GRID = "gpu.known_grid_size"


@dataclass(frozen=True)
class _Backend:
    """How kernels of a family of GPUs take a table of pointers.

    Attributes:
        marker: Attribute of its kernels.
        row: Operation that reads the second number of a block.
        table: Type of the parameter that is the table.
        passed: Attribute that says that the caller passes the table itself.
    """

    marker: str
    row: str
    table: str
    passed: str


_BACKENDS = (
    _Backend("nvvm.kernel", "nvvm.read.ptx.sreg.ctaid.y", "!llvm.ptr", "llvm.byval"),
    _Backend("rocdl.kernel", "rocdl.workgroup.id.y", "!llvm.ptr<4>", "llvm.byref"),
)


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

    Kernels of one member stay as they are.
    """

    name: ClassVar[str] = "launch-members"

    def run(self, module: Any) -> None:
        """Give entries to the kernels of batches."""
        functions = {
            (str(device.sym_name.value), str(function.sym_name.value)): function
            for device in operations_of(module, gpu.GPUModuleOp)
            for function in operations_of(device, llvm.LLVMFuncOp)
        }
        for kernel in kernels_of(module):
            if MEMBERS not in kernel.attributes:
                continue
            members = ir.IntegerAttr(kernel.attributes[MEMBERS]).value
            for launch in operations_of(kernel, gpu.LaunchFuncOp):
                device, name = ir.SymbolRefAttr(launch.kernel).value
                with launch.location:
                    entry = _make_entry(functions[device, name], members)
                    _launch_entry(launch, [device, entry], members)


def _make_entry(kernel: Any, members: int) -> str:
    """Make an entry that finds the pointers of a member; return its name."""
    attributes = kernel.operation.attributes
    backend = next(one for one in _BACKENDS if one.marker in attributes)
    count = len(kernel.operation.regions[0].blocks[0].arguments)
    name = f"{kernel.sym_name.value}_members"
    void, table = "!llvm.void", ir.Type.parse(backend.table)
    passed = {
        backend.passed: ir.TypeAttr.get(
            ir.Type.parse(f"!llvm.array<{members * count} x ptr>")
        ),
        "llvm.align": ir.IntegerAttr.get(
            ir.IntegerType.get_signless(64), POINTER_BYTES
        ),
    }
    with ir.InsertionPoint.after(kernel.operation):
        entry = llvm.LLVMFuncOp(
            name,
            ir.TypeAttr.get(ir.Type.parse(f"!llvm.func<{void} ({backend.table})>")),
            arg_attrs=ir.ArrayAttr.get([ir.DictAttr.get(passed)]),
        )
    for attribute in [name for name in attributes if name.startswith(_OF_KERNELS)]:
        entry.operation.attributes[attribute] = attributes[attribute]
        del attributes[attribute]
    if _GRID in entry.operation.attributes:
        x, _, z = ir.DenseI32ArrayAttr(entry.operation.attributes[_GRID])
        grid = ir.DenseI32ArrayAttr.get([x, members, z])
        entry.operation.attributes[_GRID] = grid
    attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")
    attributes["always_inline"] = ir.UnitAttr.get()
    _forget_row(kernel, backend)
    block = ir.Block.create_at_start(entry.operation.regions[0], [table])
    with ir.InsertionPoint(block):
        _call_member(kernel, backend, block.arguments[0], count)
    return name


def _forget_row(kernel: Any, backend: _Backend) -> None:
    """Let a kernel take its row of blocks for the first one."""
    for op in operations_of(kernel, ir.OpView):
        if op.operation.name == backend.row:
            with ir.InsertionPoint(op):
                type_ = op.operation.results[0].type
                zero = llvm.ConstantOp(type_, ir.IntegerAttr.get(type_, 0)).result
            op.operation.results[0].replace_all_uses_with(zero)
            op.operation.erase()


def _call_member(kernel: Any, backend: _Backend, table: Any, count: int) -> None:
    """Call a kernel with what stands in the table for this row of blocks."""
    i32, i64 = (ir.IntegerType.get_signless(bits) for bits in (32, 64))
    pointer = ir.Type.parse("!llvm.ptr")
    outside = ir.Type.parse(f"!llvm.ptr<{_GLOBAL_ADDRESS_SPACE}>")
    row = ir.Operation.create(backend.row, results=[i32]).results[0]
    member = llvm.ZExtOp(i64, row).result
    kind = ir.Type.parse(f"!llvm.array<{count} x ptr>")
    operands = []
    for number in range(count):
        place = llvm.GEPOp(
            table.type, table, [member], [_DYNAMIC, number], kind, _NO_FLAGS
        ).result
        loaded = llvm.LoadOp(
            outside, place, alignment=POINTER_BYTES, invariant=True
        ).result
        operands.append(llvm.AddrSpaceCastOp(pointer, loaded).result)
    llvm.CallOp(None, operands, [], [], callee=kernel.sym_name.value)
    llvm.ReturnOp()


# Of an index that is a value and no constant.
_DYNAMIC = -(2**31)
_NO_FLAGS = 0


def _launch_entry(launch: Any, symbols: list[str], members: int) -> None:
    """Launch an entry, with a row of blocks for each member."""
    with ir.InsertionPoint(launch):
        rows = arith.ConstantOp(ir.IndexType.get(), members).result
    operation = launch.operation
    place = list(operation.operands).index(launch.gridSizeY, 1)
    operation.operands[place] = rows
    operation.attributes["kernel"] = ir.SymbolRefAttr.get(symbols)
