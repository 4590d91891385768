"""Runs `gpu.func` on the CPU: all threads of a block in lockstep, races detected.

Every SSA value is a scalar or an array with one entry a thread. Memory remembers for
each byte which thread wrote and read it since the last barrier; an access that
depends on the timing of another thread raises `RaceError`. Shared and private memory
start as NaN, so that a read of what nobody wrote shows in the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpu_async_copies
import gpu_bulk_copies
import gpu_fragments
import gpu_inline_products
import gpu_warpgroups
import numpy as np
from gpu_arithmetic import (
    FLOAT_TESTS,
    INTEGER_TESTS,
    INTRINSICS,
    PURE,
    bf16_bits,
    unsigned,
)
from gpu_memory import (
    Block,
    Code,
    Memory,
    Observer,
    View,
    dtype_of,
    load,
    store,
    whole_view,
)

from magweld.bindings import arith, func, gpu, ir, memref
from magweld.passes.gpu.tensor_maps import maps_of


def run_host(module: ir.Module, inputs: list[np.ndarray]) -> np.ndarray:
    """Run `@main` of a module whose kernels are launches; return its one result."""
    functions = {f.name.value: f for f in module.body if isinstance(f, func.FuncOp)}
    body = functions["main"].entry_block
    values: dict[Any, np.ndarray] = dict(zip(body.arguments, inputs, strict=True))
    for op in body.operations:
        if isinstance(op, memref.AllocOp):
            shape = tuple(op.memref.type.shape)
            values[op.memref] = np.full(shape, np.nan, np.float32)
        elif isinstance(op, func.CallOp):
            called = functions[op.callee.value]
            launch(module, [values[v] for v in op.operands], called)
        elif isinstance(op, func.ReturnOp):
            return values[op.operands[0]]
    raise AssertionError("main returns nothing")


def launch(
    module: ir.Module,
    arguments: list[np.ndarray],
    host: func.FuncOp | None = None,
    observer_of: Callable[[int], Observer] | None = None,
) -> None:
    """Run the only launch of a function, or of the module; arrays are changed.

    Args:
        module: What holds the kernel.
        arguments: The arguments of the function; of a tensor map nothing, or where the
            tensor lies that it was made of.
        host: The function.
        observer_of: Called with the number of each block when it begins.
    """
    (launched,) = _find((host or module).operation, gpu.LaunchFuncOp)
    name = ir.SymbolRefAttr(launched.kernel).value[-1]
    (function,) = (
        f for f in _find(module.operation, gpu.GPUFuncOp) if f.name.value == name
    )
    blocks = _constant(launched.gridSizeX)
    threads = _constant(launched.blockSizeX)
    size = launched.dynamicSharedMemorySize
    shared_bytes = 0 if size is None else _constant(size)
    memories = _parameters(launched, arguments)
    epoch = 0
    code: Code = {}
    for number in range(blocks):
        shared = Memory(np.full(shared_bytes, 0xFF, np.uint8), "shared memory")
        mask = np.ones(threads, bool)
        observer = None if observer_of is None else observer_of(number)
        copies = gpu_async_copies.CopyGroups()
        products = gpu_warpgroups.WarpgroupGroups()
        block = Block(
            *(number, threads, epoch + 1, {}, mask, shared, copies, code),
            *(products, observer),
        )
        body = function.entry_block
        for argument, memory in zip(body.arguments, memories, strict=True):
            is_map = isinstance(memory, gpu_bulk_copies.MappedTensor)
            block.values[argument] = (
                memory if is_map else whole_view(argument.type, memory)
            )
        with np.errstate(all="ignore"):
            _run(body, block)
        copies.check_all_arrived()
        gpu_bulk_copies.check_all_arrived(block.barriers)
        products.check_all_finished()
        epoch = block.epoch


def _parameters(launched: Any, arguments: list[np.ndarray]) -> list[Any]:
    """Return what the parameters of a launch are: memories, and maps of some."""
    function = launched.operation.parent.opview
    maps = {one.number: one for one in maps_of(function)}
    numbers = [operand.arg_number for operand in launched.kernelOperands]
    memories: dict[int, Memory] = {}
    for number in (maps[n].argument if n in maps else n for n in numbers):
        if number not in memories:
            raw = np.reshape(arguments[number], -1).view(np.uint8)
            memories[number] = Memory(raw, f"argument {number}")
    found: list[Any] = []
    for number in numbers:
        if number not in maps:
            found.append(memories[number])
            continue
        memory = memories[maps[number].argument]
        if number < len(arguments):
            assert arguments[number] == memory.data.ctypes.data, (
                "a map of another tensor"
            )
        found.append(gpu_bulk_copies.MappedTensor(memory, maps[number].map))
    return found


def _find(root: ir.Operation, kind: type) -> list[Any]:
    found = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if isinstance(op.opview, kind):
            found.append(op.opview)
        return ir.WalkResult.ADVANCE

    root.walk(visit)
    return found


def _constant(value: ir.Value) -> int:
    return ir.IntegerAttr(value.owner.attributes["value"]).value


def _run(body: ir.Block, block: Block) -> None:
    key = body.owner
    if key not in block.code:  # looked at once, not in each iteration and block
        block.code[key] = [_decoded(op) for op in body.operations]
    values = block.values
    for function, operands, result in block.code[key]:
        if result is None:
            function(operands, block)
        else:
            values[result] = function(*[values[operand] for operand in operands])


def _decoded(op: Any) -> tuple[Callable[..., Any], Any, Any]:
    """Return what runs an operation and on what, and the value that it sets.

    That is None for operations whose handlers set their results themselves.
    """
    name = op.operation.name
    if name in _HANDLERS:
        return _HANDLERS[name], op, None
    return _pure(op, name), list(op.operands), op.results[0]


def _pure(op: Any, name: str) -> Callable[..., Any]:
    if name == "llvm.call_intrinsic":
        known = INTRINSICS | gpu_fragments.INTRINSICS
        return known[ir.StringAttr(op.intrin).value]
    return PURE[name]


def _alloca(op: Any, block: Block) -> None:
    view = whole_view(op.memref.type, None)
    size = int(np.prod(view.shape, dtype=np.int64)) * view.dtype.itemsize
    private = np.full((block.threads, size), 0xFF, np.uint8)
    block.values[op.memref] = whole_view(op.memref.type, private)


def _view(op: Any, block: Block) -> None:
    source: View = block.values[op.source]
    shift = int(block.values[op.byte_shift])
    made = whole_view(op.result.type, source.memory)
    assert shift % made.dtype.itemsize == 0, "a view must be aligned"
    block.values[op.result] = whole_view(
        op.result.type, source.memory, shift // made.dtype.itemsize
    )


def _reinterpret(op: Any, block: Block) -> None:
    source: View = block.values[op.source]
    dynamic = iter(op.offsets)
    marker = ir.ShapedType.get_dynamic_stride_or_offset()
    (static,) = list(op.static_offsets)
    offset = block.values[next(dynamic)] if static == marker else static
    strides, _ = ir.MemRefType(op.result.type).get_strides_and_offset()
    # An offset counts from the start of the allocation, not of the source.
    block.values[op.result] = View(
        source.memory,
        source.dtype,
        offset + (source.offset if _is_placed(op.source) else 0),
        tuple(strides),
        tuple(op.result.type.shape),
    )


def _is_placed(value: ir.Value) -> bool:
    """Tell whether a memref is a view, whose allocation starts at its byte shift."""
    return not isinstance(value, ir.BlockArgument) and (
        value.owner.name == "memref.view"
    )


def _if(op: Any, block: Block) -> None:
    outer = block.mask
    block.mask = outer & np.broadcast_to(block.values[op.condition], block.threads)
    if block.mask.any():
        _run(op.regions[0].blocks[0], block)
    block.mask = outer
    assert not list(op.results), "scf.if with results"


def _for(op: Any, block: Block) -> None:
    bounds = (op.lowerBound, op.upperBound, op.step)
    lower, upper, step = (int(block.values[v]) for v in bounds)
    carried = [block.values[v] for v in op.initArgs]
    *_, terminator = op.body.operations
    for index in range(lower, upper, step):
        block.values[op.induction_variable] = np.int64(index)
        block.values.update(zip(op.inner_iter_args, carried, strict=True))
        _run(op.body, block)
        carried = [block.values[v] for v in terminator.operands]
    block.values.update(zip(op.results, carried, strict=True))


def _barrier(op: Any, block: Block) -> None:
    assert block.mask.all(), "a barrier that some threads skip"
    block.epoch += 1


def _shuffle(op: Any, block: Block) -> None:
    """Give each thread the value of a neighbour; subgroups must be whole."""
    assert str(op.mode) == "#gpu<shuffle_mode xor>", f"shuffle {op.mode}"
    width, distance = (int(block.values[v]) for v in (op.width, op.offset))
    assert block.threads % width == 0, "a block ends within a subgroup"
    assert 0 < distance < width, "no such lane"
    lanes = block.mask.reshape(-1, width)
    assert (lanes.all(1) | ~lanes.any(1)).all(), "a shuffle that some lanes skip"
    value = np.broadcast_to(block.values[op.value], block.threads)
    block.values[op.shuffleResult] = value[np.arange(block.threads) ^ distance]
    block.values[op.valid] = np.full(block.threads, True)


def _nothing(op: Any, block: Block) -> None:
    """Terminators."""


def _constant_op(op: arith.ConstantOp, block: Block) -> None:
    if op.result in block.values:
        return  # of an iteration before
    attribute = op.operation.attributes["value"]
    type_ = op.result.type
    is_vector = isinstance(type_, ir.VectorType)
    if is_vector:  # of equal elements, the only ones that are folded
        attribute = ir.DenseElementsAttr(attribute).get_splat_value()
    element = type_.element_type if is_vector else type_
    value = attribute.value
    if isinstance(element, ir.BF16Type):
        value = bf16_bits(np.float32(value))
    made = dtype_of(element).type(value)
    width = (block.threads, *type_.shape) if is_vector else ()
    block.values[op.result] = np.full(width, made) if is_vector else made


def _shared(op: Any, block: Block) -> None:
    block.values[op.result] = View(block.shared, np.dtype("u1"), 0, (1,), (-1,))


def _identity(numbers: Callable[[Block], Any]) -> Callable[[Any, Block], None]:
    def set_value(op: Any, block: Block) -> None:
        is_x = str(op.dimension) == "#gpu<dim x>"
        block.values[op.result] = numbers(block) if is_x else np.int64(0)

    return set_value


def _compare(op: Any, block: Block) -> None:
    left, right = (block.values[v] for v in op.operands)
    predicate = ir.IntegerAttr(op.operation.attributes["predicate"]).value
    table = FLOAT_TESTS if isinstance(op, arith.CmpFOp) else INTEGER_TESTS
    block.values[op.result] = table[predicate](left, right)


def _cast(op: Any, block: Block) -> None:
    value = np.asarray(block.values[op.operands[0]])
    block.values[op.results[0]] = value.astype(dtype_of(op.results[0].type))


def _extend_unsigned(op: Any, block: Block) -> None:
    value = unsigned(block.values[op.operands[0]])
    block.values[op.results[0]] = value.astype(dtype_of(op.results[0].type))


def _convert_float(op: Any, block: Block) -> None:
    value = np.asarray(block.values[op.operands[0]])
    source, target = op.operands[0].type, op.results[0].type
    if isinstance(source, ir.BF16Type):
        value = (value.astype(np.uint32) << 16).view(np.float32)
    if isinstance(target, ir.BF16Type):
        value = bf16_bits(value)
    block.values[op.results[0]] = value.astype(dtype_of(target))


def _convert_unsigned(op: Any, block: Block) -> None:
    value = unsigned(block.values[op.operands[0]]).astype(np.float32)
    is_bf16 = isinstance(op.results[0].type, ir.BF16Type)
    kind = dtype_of(op.results[0].type)
    block.values[op.results[0]] = bf16_bits(value) if is_bf16 else value.astype(kind)


def _bitcast(op: Any, block: Block) -> None:
    value = np.asarray(block.values[op.operands[0]])
    block.values[op.results[0]] = value.view(dtype_of(op.results[0].type))


_HANDLERS: dict[str, Callable[[Any, Block], None]] = {
    **gpu_async_copies.HANDLERS,
    **gpu_bulk_copies.HANDLERS,
    **gpu_fragments.HANDLERS,
    **gpu_inline_products.HANDLERS,
    **gpu_warpgroups.HANDLERS,
    "arith.bitcast": _bitcast,
    "arith.cmpf": _compare,
    "arith.cmpi": _compare,
    "arith.constant": _constant_op,
    "arith.extf": _convert_float,
    "arith.extui": _extend_unsigned,
    "arith.fptosi": _convert_float,
    "arith.index_cast": _cast,
    "arith.sitofp": _cast,
    "arith.truncf": _convert_float,
    "arith.uitofp": _convert_unsigned,
    "arith.trunci": _cast,
    "gpu.barrier": _barrier,
    "gpu.block_id": _identity(lambda block: np.int64(block.number)),
    "gpu.dynamic_shared_memory": _shared,
    "gpu.return": _nothing,
    "gpu.shuffle": _shuffle,
    "gpu.thread_id": _identity(lambda block: np.arange(block.threads)),
    "memref.alloca": _alloca,
    "memref.load": load,
    "memref.reinterpret_cast": _reinterpret,
    "memref.store": store,
    "memref.view": _view,
    "scf.for": _for,
    "scf.if": _if,
    "scf.yield": _nothing,
}
