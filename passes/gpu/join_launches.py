"""Owns join-launches: kernels that run side by side become one launch of a GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import arith, gpu, ir, llvm
from magweld.passes.gpu.device_symbols import move_symbols
from magweld.passes.gpu.pointer_table import (
    JOINT_LAUNCH,
    Backend,
    argument_numbers,
    backend_of,
    launch_parameters,
    load_pointers,
    make_entry,
    make_function,
    members_of,
    replace_reads,
)
from magweld.passes.gpu.structure import constant_of, kernels_of
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import located_error, operations_of

# On the launch: what each of its kernels takes.
PARTS = "magweld.launch_parts"

# How reads of the place of a block or thread begin, and those that are the same in all
# launches with as many threads.
_READS = ("nvvm.read.ptx.sreg.", "rocdl.workgroup.", "rocdl.grid.")
_OF_THREADS = (
    "nvvm.read.ptx.sreg.tid.",
    "nvvm.read.ptx.sreg.ntid.",
    "nvvm.read.ptx.sreg.laneid",
    "rocdl.workgroup.dim.",
)
_LESS = 6  # of unsigned numbers, as LLVM's dialect numbers comparisons


@dataclass(frozen=True)
class JoinLaunches(Pass):
    """Run the kernels of a module side by side, by one launch.

    Host functions that have `magweld.joint_launch`, all the same name, become one. Its
    kernel takes one table of pointers, those of one kernel after another, and of one
    member after another. The grid is one row: the blocks of the first kernel, those of
    each of its members, then those of the next one. A block finds the kernel whose
    blocks it is among by comparing its number with where these begin, half of them at
    a time, and runs it, which is inlined, with its number among these. The launch has
    the shared memory of the kernel with most.

        gpu.launch_func @a::@a blocks in (%c8, ...)
        gpu.launch_func @b::@b blocks in (%c4, ...)
    =>
        gpu.launch_func @a::@joint_0 blocks in (%c12, ...)
        llvm.func @joint_0(%table) {
          %x = nvvm.read.ptx.sreg.ctaid.x
          %c = llvm.icmp "ult" %x, %c8
          llvm.cond_br %c, ^a, ^b
        ...

    Kernels whose blocks have different numbers of threads are an error, as are those
    that read of the grid more than the number of their block.
    """

    name: ClassVar[str] = "join-launches"

    def run(self, module: Any) -> None:
        """Join the kernels of the module that are to be one launch."""
        hosts = [k for k in kernels_of(module) if JOINT_LAUNCH in k.attributes]
        if not hosts:
            return
        parts = list(_parts_of(module, hosts))
        first, *others = parts
        for part in others:
            _check_alike(first, part)
            move_symbols(part.device, first.device)
        name = ir.StringAttr(first.host.attributes[JOINT_LAUNCH]).value
        with first.launch.location:
            _make_joint(name, parts)
            _launch_joint(name, parts)
        for part in others:
            part.host.operation.erase()
            part.device.operation.erase()


@dataclass(frozen=True)
class _Part:
    """A kernel of a joint launch.

    Attributes:
        host: The function that launches it.
        launch: Its launch.
        device: The module of its code.
        kernel: The kernel, in LLVM's dialect.
        blocks: How many a member has.
        members: How many times it runs.
        first: How many blocks are before its own.
        pointers: How many pointers are before its own.
    """

    host: Any
    launch: Any
    device: Any
    kernel: Any
    blocks: int
    members: int
    first: int
    pointers: int

    @property
    def count(self) -> int:
        """How many pointers a member takes."""
        return len(argument_numbers(self.launch))

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block."""
        size = self.launch.dynamicSharedMemorySize
        return 0 if size is None else constant_of(size, self.launch)


def _parts_of(module: Any, hosts: Sequence[Any]) -> Iterator[_Part]:
    devices = {str(d.sym_name.value): d for d in operations_of(module, gpu.GPUModuleOp)}
    blocks = pointers = 0
    for host in hosts:
        launches = operations_of(host, gpu.LaunchFuncOp)
        if len(launches) != 1:
            raise located_error(host, f"expected one launch, got {len(launches)}")
        (launch,) = launches
        device, name = ir.SymbolRefAttr(launch.kernel).value
        (kernel,) = (
            function
            for function in operations_of(devices[device], llvm.LLVMFuncOp)
            if str(function.sym_name.value) == name
        )
        own, members = constant_of(launch.gridSizeX, launch), members_of(host)
        part = _Part(
            *(host, launch, devices[device], kernel),
            *(own, members, blocks, pointers),
        )
        yield part
        blocks += own * members
        pointers += part.count * members


def _check_alike(one: _Part, other: _Part) -> None:
    """Make sure that blocks of two kernels have equal numbers of threads."""
    found = [constant_of(p.launch.blockSizeX, p.launch) for p in (one, other)]
    if found[0] != found[1]:
        raise located_error(other.launch, f"expected {found[0]} threads of a block")


def _make_joint(name: str, parts: Sequence[_Part]) -> None:
    """Make the kernel that finds out which part a block is of."""
    first, last = parts[0], parts[-1]
    backend = backend_of(first.kernel)
    pointers = last.pointers + last.members * last.count
    entry = make_entry(first.kernel, name, pointers, (_all_blocks(parts), 1, 1))
    for part in parts[1:]:
        make_function(part.kernel)
    for part in parts:
        _take_number(part.kernel, backend)
    region, i32 = entry.operation.regions[0], ir.IntegerType.get_signless(32)
    block = ir.Block.create_at_start(region, [ir.Type.parse(backend.table)])
    with ir.InsertionPoint(block):
        number = ir.Operation.create(backend.column, results=[i32]).results[0]
    _branch(region, block, number, parts)


def _all_blocks(parts: Sequence[_Part]) -> int:
    last = parts[-1]
    return last.first + last.blocks * last.members


def _take_number(kernel: Any, backend: Backend) -> None:
    """Let a kernel take the number of its block as its last argument.

    Raises:
        PassError: It reads more of the grid; located at what does.
    """
    operation, i32 = kernel.operation, ir.IntegerType.get_signless(32)
    entry = operation.regions[0].blocks[0]
    number = entry.add_argument(i32, kernel.location)
    types = ", ".join(str(argument.type) for argument in entry.arguments)
    kind = ir.Type.parse(f"!llvm.func<!llvm.void ({types})>")
    operation.attributes["function_type"] = ir.TypeAttr.get(kind)
    if "arg_attrs" in operation.attributes:
        known = list(ir.ArrayAttr(operation.attributes["arg_attrs"]))
        operation.attributes["arg_attrs"] = ir.ArrayAttr.get(
            [*known, ir.DictAttr.get({})]
        )
    replace_reads(kernel, backend.column, number)
    replace_reads(kernel, backend.row, None)
    for op in operations_of(kernel, ir.OpView):
        read = op.operation.name
        if read.startswith(_READS) and not read.startswith(_OF_THREADS):
            raise located_error(op, "expected a block to read its number alone")


def _branch(region: Any, block: Any, number: Any, parts: Sequence[_Part]) -> None:
    """End a block by running the part that a number of a block is of."""
    if len(parts) == 1:
        with ir.InsertionPoint(block):
            _run_part(region.blocks[0].arguments[0], number, parts[0])
        return
    middle = len(parts) // 2
    halves = parts[:middle], parts[middle:]
    before, behind = region.blocks.append(), region.blocks.append()
    with ir.InsertionPoint(block):
        limit = _number(number.type, parts[middle].first)
        is_before = llvm.ICmpOp(
            ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _LESS), number, limit
        ).results[0]
        llvm.CondBrOp(is_before, [], [], before, behind)
    for half, own in zip((before, behind), halves, strict=True):
        _branch(region, half, number, own)


def _run_part(table: Any, number: Any, part: _Part) -> None:
    """Run a kernel as the block that has a number in the whole grid."""
    own, member = number, None
    if part.first:
        own = _computed("llvm.sub", number, part.first)
    if part.members > 1:
        row = _computed("llvm.udiv", own, part.blocks)
        own = _computed("llvm.urem", own, part.blocks)
        member = llvm.ZExtOp(ir.IntegerType.get_signless(64), row).result
    operands = load_pointers(table, member, part.count, part.pointers)
    llvm.CallOp(None, [*operands, own], [], [], callee=part.kernel.sym_name.value)
    llvm.ReturnOp()


def _computed(name: str, value: Any, constant: int) -> Any:
    operands = [value, _number(value.type, constant)]
    return ir.Operation.create(name, [value.type], operands).results[0]


def _number(type_: Any, value: int) -> Any:
    return llvm.ConstantOp(type_, ir.IntegerAttr.get(type_, value)).result


def _launch_joint(name: str, parts: Sequence[_Part]) -> None:
    """Launch the kernel of all parts in place of the first one."""
    launch = parts[0].launch
    operation, device = launch.operation, parts[0].device.sym_name.value
    with ir.InsertionPoint(launch):
        blocks = arith.ConstantOp(ir.IndexType.get(), _all_blocks(parts)).result
        shared = max(part.shared_bytes for part in parts)
        i32 = ir.IntegerType.get_signless(32)
        size = arith.ConstantOp(i32, shared).result if shared else None
        made = gpu.LaunchFuncOp(
            [str(device), name],
            (blocks, launch.gridSizeY, launch.gridSizeZ),
            (launch.blockSizeX, launch.blockSizeY, launch.blockSizeZ),
            list(launch.kernelOperands),
            dynamic_shared_memory_size=size,
        )
    made.operation.attributes[PARTS] = ir.ArrayAttr.get(
        [
            ir.DictAttr.get(
                launch_parameters(argument_numbers(part.launch), part.members)
            )
            for part in parts
        ]
    )
    operation.erase()
