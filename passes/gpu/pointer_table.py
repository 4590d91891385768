"""Owns kernels that take the pointers of several as one table, their only parameter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from magweld.bindings import ir, llvm
from magweld.passes.ir.utils import located_error, operations_of

# On a kernel: how many members a launch of it has.
MEMBERS = "magweld.members"
# On the kernels of a module that run side by side: name of their launch.
JOINT_LAUNCH = "magweld.joint_launch"

POINTER_BYTES = 8
# LLVM's number for global memory, on NVPTX and AMDGPU alike.
_GLOBAL_ADDRESS_SPACE = 1
# What says about a function that it is a kernel, and of which shape.
_OF_KERNELS = ("gpu.", "nvvm.", "rocdl.")
_GRID = "gpu.known_grid_size"
# Of an index that is a value and no constant.
_DYNAMIC = -(2**31)
_NO_FLAGS = 0


@dataclass(frozen=True)
class Backend:
    """How kernels of a family of GPUs take a table of pointers.

    Attributes:
        marker: Attribute of its kernels.
        column: Operation that reads the first number of a block.
        row: Operation that reads the second one.
        table: Type of the parameter that is the table.
        passed: Attribute that says that the caller passes the table itself.
    """

    marker: str
    column: str
    row: str
    table: str
    passed: str


_BACKENDS = (
    Backend(
        marker="nvvm.kernel",
        column="nvvm.read.ptx.sreg.ctaid.x",
        row="nvvm.read.ptx.sreg.ctaid.y",
        table="!llvm.ptr",
        passed="llvm.byval",
    ),
    Backend(
        marker="rocdl.kernel",
        column="rocdl.workgroup.id.x",
        row="rocdl.workgroup.id.y",
        table="!llvm.ptr<4>",
        passed="llvm.byref",
    ),
)


def backend_of(kernel: Any) -> Backend:
    """Return the family of GPUs that a kernel is for."""
    attributes = kernel.operation.attributes
    return next(one for one in _BACKENDS if one.marker in attributes)


def make_entry(kernel: Any, name: str, pointers: int, grid: Sequence[int]) -> Any:
    """Return a kernel without a body, behind another one that it makes a function of.

    It takes a table, and has the shape of the other one, which is inlined where it is
    called.

    Args:
        kernel: A kernel in the LLVM dialect.
        name: Of the new one.
        pointers: How many the table has.
        grid: Its blocks in x, y and z.
    """
    backend = backend_of(kernel)
    passed = {
        backend.passed: ir.TypeAttr.get(
            ir.Type.parse(f"!llvm.array<{pointers} x ptr>")
        ),
        "llvm.align": ir.IntegerAttr.get(
            ir.IntegerType.get_signless(64), POINTER_BYTES
        ),
    }
    kind = ir.Type.parse(f"!llvm.func<!llvm.void ({backend.table})>")
    with ir.InsertionPoint.after(kernel.operation):
        entry = llvm.LLVMFuncOp(
            name,
            ir.TypeAttr.get(kind),
            arg_attrs=ir.ArrayAttr.get([ir.DictAttr.get(passed)]),
        )
    shape = make_function(kernel)
    for attribute, value in shape.items():
        entry.operation.attributes[attribute] = value
    if _GRID in shape:
        entry.operation.attributes[_GRID] = ir.DenseI32ArrayAttr.get(list(grid))
    return entry


def make_function(kernel: Any) -> dict[str, Any]:
    """Make a kernel a function that is inlined; return what made it a kernel."""
    attributes = kernel.operation.attributes
    names = [name for name in attributes if name.startswith(_OF_KERNELS)]
    shape = {name: attributes[name] for name in names}
    for name in names:
        del attributes[name]
    attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")
    attributes["always_inline"] = ir.UnitAttr.get()
    return shape


def members_of(kernel: Any) -> int:
    """Return how many members a launch of a kernel's host function has."""
    if MEMBERS not in kernel.attributes:
        return 1
    return int(ir.IntegerAttr(kernel.attributes[MEMBERS]).value)


def takes_pointers(kernel: Any) -> bool:
    """Tell whether each parameter of a kernel is passed by itself, in no table."""
    return members_of(kernel) == 1 and JOINT_LAUNCH not in kernel.attributes


def argument_numbers(launch: Any) -> list[int]:
    """Return which arguments of its host function a launch takes.

    Raises:
        PassError: It takes other values; located at the launch.
    """
    numbers = []
    for value in launch.kernelOperands:
        if not isinstance(value, ir.BlockArgument):
            raise located_error(
                launch, "expected operands that are arguments of the host function"
            )
        numbers.append(value.arg_number)
    return numbers


def launch_parameters(numbers: Sequence[int], members: int) -> dict[str, ir.Attribute]:
    """Describe what a launch takes.

    Args:
        numbers: Of the arguments of the host function.
        members: How many members the launch has, each with such arguments.
    """
    number = ir.IntegerType.get_signless(64)
    return {
        "arguments": ir.DenseI64ArrayAttr.get(list(numbers)),
        "members": ir.IntegerAttr.get(number, members),
    }


def replace_reads(kernel: Any, name: str, value: Any | None) -> None:
    """Let a kernel take a value for what operations of a name read, None for zero."""
    for op in operations_of(kernel, ir.OpView):
        if op.operation.name == name:
            read = op.operation.results[0]
            found = value
            if found is None:
                zero = ir.IntegerAttr.get(read.type, 0)
                with ir.InsertionPoint(op):
                    found = llvm.ConstantOp(read.type, zero).result
            read.replace_all_uses_with(found)
            op.operation.erase()


def load_pointers(
    table: Any, member: Any | None, count: int, first: int = 0
) -> list[Any]:
    """Return what stands in a table for a member.

    Args:
        table: Where it is.
        member: Number of the member, None for the only one.
        count: How many pointers a member has.
        first: How many pointers are before those of the first member.
    """
    pointer = ir.Type.parse("!llvm.ptr")
    outside = ir.Type.parse(f"!llvm.ptr<{_GLOBAL_ADDRESS_SPACE}>")
    if first:
        table = llvm.GEPOp(table.type, table, [], [first], pointer, _NO_FLAGS).result
    kind = ir.Type.parse(f"!llvm.array<{count} x ptr>")
    members, row = ([], 0) if member is None else ([member], _DYNAMIC)
    found = []
    for number in range(count):
        place = llvm.GEPOp(
            table.type, table, members, [row, number], kind, _NO_FLAGS
        ).result
        loaded = llvm.LoadOp(
            outside, place, alignment=POINTER_BYTES, invariant=True
        ).result
        found.append(llvm.AddrSpaceCastOp(pointer, loaded).result)
    return found
