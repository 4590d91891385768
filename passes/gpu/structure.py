"""Owns how GPU passes find kernels, block loops, thread loops and their mappings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from magweld.bindings import func, gpu, ir, linalg, llvm, memref, scf
from magweld.dialects.tile_graph import SUBGROUP_ROWS, is_kernel
from magweld.passes.ir.utils import functions_of, located_error, operations_of

# LLVM's number for the memory of a block, on NVPTX and AMDGPU alike.
SHARED_ADDRESS_SPACE = 3
# The widest access of one thread, which must be aligned to its size.
VECTOR_BYTES = 16
SHARED_ALIGNMENT = VECTOR_BYTES

# On an allocation: elements that lie unused behind each row.
PADDING = "magweld.padding"
# On a linalg operation: number of the loop that each thread runs whole.
VECTOR_LOOP = "magweld.vector_loop"

_VIEWS = (
    "memref.cast",
    "memref.collapse_shape",
    "memref.expand_shape",
    "memref.reinterpret_cast",
    "memref.subview",
    "memref.view",
)


def device_functions(module: Any) -> dict[tuple[str, str], llvm.LLVMFuncOp]:
    """Return the functions for the device, by the names of module and function."""
    return {
        (str(device.sym_name.value), str(function.sym_name.value)): function
        for device in operations_of(module, gpu.GPUModuleOp)
        for function in operations_of(device, llvm.LLVMFuncOp)
    }


def kernels_of(module: Any) -> list[func.FuncOp]:
    """Return the functions of a module that are tiled kernels with a body.

    Those that `lower-register-streams` has made launches of are tiled no more, until
    the code of the launch has left them.
    """
    return [
        function
        for function in functions_of(module)
        if is_kernel(function)
        and not function.is_external
        and not _is_launched(function)
    ]


def _is_launched(function: func.FuncOp) -> bool:
    return SUBGROUP_ROWS in function.attributes and any(
        isinstance(op, gpu.LaunchOp) for op in function.entry_block
    )


def block_loop_of(kernel: func.FuncOp) -> Any:
    """Return the `scf.forall` whose iterations are the blocks of a kernel.

    Raises:
        PassError: There is none or more than one; located at the kernel.
    """
    loops = [op for op in kernel.entry_block if isinstance(op, scf.ForallOp)]
    if len(loops) != 1:
        raise located_error(
            kernel, f"expected one scf.forall over block tiles, got {len(loops)}"
        )
    return loops[0]


def block_mapping() -> ir.ArrayAttr:
    """Return the mapping of a loop over tile numbers to blocks."""
    return _linear_mapping("block", 1)


def thread_mapping(rank: int) -> ir.ArrayAttr:
    """Return the mapping of a row-major space to linear thread numbers."""
    return _linear_mapping("thread", rank)


def is_thread_loop(op: Any) -> bool:
    """Tell whether `op` is a loop whose iterations are the threads of a block."""
    if not isinstance(op, scf.ForallOp) or op.mapping is None:
        return False
    return bool(op.mapping == thread_mapping(len(op.mapping)))


def workgroup_space() -> ir.Attribute:
    """Return the memory space that the threads of one block share."""
    return ir.Attribute.parse("#gpu.address_space<workgroup>")


def private_space() -> ir.Attribute:
    """Return the memory space that belongs to one thread."""
    return ir.Attribute.parse("#gpu.address_space<private>")


def is_in_space(value: ir.Value, space: ir.Attribute) -> bool:
    """Tell whether a memref lies in a memory space.

    Raises:
        PassError: It is none; located at what makes it.
    """
    if not isinstance(value.type, ir.MemRefType):
        owner = value.owner
        maker = owner.owner if isinstance(owner, ir.Block) else owner
        raise located_error(maker, f"expected a buffer, got {value.type}")
    found = value.type.memory_space
    # The bindings cannot compare an attribute with None.
    return found is not None and bool(found == space)


def buffers_in(block_loop: Any, space: ir.Attribute) -> list[memref.AllocOp]:
    """Return the allocations of a memory space in the body of a block loop."""
    return [
        op
        for op in phases_in(block_loop.body)
        if isinstance(op, memref.AllocOp) and is_in_space(op.memref, space)
    ]


def phases_in(block: Any) -> Iterator[Any]:
    """Yield the operations that all threads of a block run, in program order.

    Sequential loops and conditions are entered; thread loops are not.
    """
    for op in list(block.operations):
        if isinstance(op, scf.ForOp):
            yield from phases_in(op.body)
        elif isinstance(op, scf.IfOp):
            yield from phases_in(op.then_block)
        yield op


def structure_copies(loop: Any) -> None:
    """Make copies that bufferization added operations that are shared as others are."""
    for op in phases_in(loop.body):
        if isinstance(op, memref.CopyOp):
            with ir.InsertionPoint(op), op.location:
                linalg.copy(op.source, outs=[op.target])
            op.erase()


def constant_of(value: Any, launch: Any) -> int:
    """Return the number that a launch has for a size.

    Raises:
        PassError: It is computed; located at the launch.
    """
    is_constant = (
        not isinstance(value, ir.BlockArgument) and value.owner.name == "arith.constant"
    )
    if not is_constant:
        raise located_error(launch, "expected constant sizes")
    return int(ir.IntegerAttr(value.owner.attributes["value"]).value)


def storage_of(value: Any) -> Any:
    """Return the allocation or argument that a memref is a view of."""
    while not isinstance(value, ir.BlockArgument) and value.owner.name in _VIEWS:
        value = value.owner.operands[0]
    return value


def element_bytes(element: ir.Type) -> int:
    """Return the bytes of one element of a number type.

    Raises:
        ValueError: The type is no number.
    """
    if isinstance(element, ir.IndexType):
        return 8
    if isinstance(element, ir.IntegerType | ir.FloatType):
        return -(-int(element.width) // 8)
    raise ValueError(f"expected a number type, got {element}")


def _linear_mapping(processor: str, rank: int) -> ir.ArrayAttr:
    names = (f"#gpu.{processor}<linear_dim_{i}>" for i in reversed(range(rank)))
    return ir.ArrayAttr.get([ir.Attribute.parse(name) for name in names])
