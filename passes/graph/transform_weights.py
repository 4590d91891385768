"""Owns transform-weights: kernels that transform the weights of convolutions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

from magweld.bindings import affine, func, ir, linalg, scf, tensor
from magweld.dialects.integers import i64
from magweld.dialects.tile_graph import INTERIOR, KERNEL, OPERATORS, is_kernel
from magweld.passes.analysis.winograd import (
    TILE,
    WEIGHTS,
    winograd_tile,
)
from magweld.passes.analysis.winograd_weights import transform_rows, turn_rows
from magweld.passes.graph.weight_uses import transforms_in_tiles
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.cloning import defining_op
from magweld.passes.ir.tensor_slices import extract_slice, insert_in_parallel
from magweld.passes.ir.utils import Declarations, functions_of, operations_of
from magweld.passes.tiling.tile_sizes import largest_divisor
from magweld.passes.tiling.winograd_forms import (
    FORMS,
    IN_TILES,
    ROWS,
    WINDOW,
    WinogradForm,
    padded_depth,
)

# Channels of the image that one tile of the transform takes.
CHANNELS = 64


@dataclass(frozen=True)
class TransformWeights(Pass):
    """Transform the weights of convolutions with `magweld.winograd` in kernels before.

    A kernel with such convolutions gets one argument more for each of their weights,
    and `magweld.winograd_weights` tells its number; the host function calls the kernel
    that makes it. Nothing is kept from call to call, as weights may change in between.
    Where few tiles need the same weights, they transform them themselves, part by part
    in a cache.

    A convolution loses the mark where its tile has no whole blocks of 16 channels.

    Attributes:
        in_tiles: How often tiles may transform a weight before a kernel does it once.
    """

    name: ClassVar[str] = "transform-weights"

    in_tiles: int = IN_TILES

    def run(self, module: Any) -> None:
        """Rewrite the kernels of the module and the calls of them."""
        declarations = Declarations(module)
        made: dict[tuple[str, int], Any] = {}
        for kernel in list(functions_of(module)):
            if not is_kernel(kernel) or kernel.is_external:
                continue
            marked = _marked(kernel, self.in_tiles)
            if marked:
                wanted = _extend(kernel, marked)
                for caller in functions_of(module):
                    for call in operations_of(caller, func.CallOp):
                        if call.callee.value == kernel.name.value:
                            _call(call, kernel, wanted, declarations, made)


def _marked(kernel: Any, in_tiles: int) -> list[tuple[Any, int]]:
    """Return the convolutions of a kernel with shared weights, and their arguments.

    What is transformed in the kernel is not among them. Others lose their mark.
    """
    found: list[tuple[Any, int]] = []
    transforms: Counter[int] = Counter()
    for view in operations_of(kernel, linalg.Conv2DNchwFchwOp):
        op = view.operation
        if not (op.results and winograd_tile(op)):
            continue
        argument = _weights_of(op)
        if argument is None:
            for name in (TILE, INTERIOR):
                if name in op.attributes:
                    del op.attributes[name]
        else:
            found.append((op, argument))
            weights = kernel.arguments[argument].type
            transforms[argument] += transforms_in_tiles(op, weights.shape[0])
    return [(op, argument) for op, argument in found if transforms[argument] > in_tiles]


def _weights_of(op: Any) -> int | None:
    """Return the kernel's argument that the weights are whole rows of."""
    value = op.operands[1]
    maker = defining_op(value)
    if maker is not None and maker.operation.name == "tensor.extract_slice":
        value = maker.operation.operands[0]
        whole, part = (
            ir.RankedTensorType(v.type).shape for v in (value, op.operands[1])
        )
        if list(whole[1:]) != list(part[1:]):
            return None
    rows = ir.RankedTensorType(op.operands[1].type).shape[0]
    if rows % ROWS or not isinstance(value, ir.BlockArgument):
        return None
    return int(value.arg_number)


def _transformed_type(form: WinogradForm, weights: Any) -> Any:
    rows, depth, *_ = ir.RankedTensorType(weights).shape
    element = ir.RankedTensorType(weights).element_type
    shape = [rows // ROWS, form.products, padded_depth(depth), ROWS]
    return ir.RankedTensorType.get(shape, element)


def _extend(kernel: Any, marked: list[tuple[Any, int]]) -> list[tuple[int, int]]:
    """Give a kernel an argument for each transformed weight, destinations last.

    Returns:
        For each of the new arguments the argument that it is made of, and the tile.
    """
    block = kernel.entry_block
    inputs = len(block.arguments) - len(kernel.type.results)
    destinations = list(block.arguments)[inputs:]
    made: dict[tuple[int, int], int] = {}
    for op, argument in marked:
        key = (argument, winograd_tile(op))
        if key not in made:
            weights = block.arguments[argument].type
            type_ = _transformed_type(FORMS[key[1]], weights)
            block.add_argument(type_, kernel.location)
            made[key] = inputs + len(made)
        op.attributes[WEIGHTS] = i64(made[key])
    for old in destinations:
        old.replace_all_uses_with(block.add_argument(old.type, kernel.location))
    for _ in destinations:
        block.erase_argument(inputs)
    types = [argument.type for argument in block.arguments]
    kernel.attributes["function_type"] = ir.TypeAttr.get(
        ir.FunctionType.get(types, kernel.type.results)
    )
    return list(made)


def _call(
    call: Any,
    kernel: Any,
    wanted: list[tuple[int, int]],
    declarations: Declarations,
    made: dict[tuple[str, int], Any],
) -> None:
    """Replace a call by calls of the transforms and of the kernel."""
    operands = list(call.operands)
    inputs = len(operands) - len(call.results)
    transformed = []
    with ir.InsertionPoint(call), call.location:
        for argument, tile in wanted:
            weights = operands[argument]
            key = (str(weights.type), tile)
            if key not in made:
                made[key] = _build(declarations, FORMS[tile], weights.type)
            result = ir.RankedTensorType(made[key].type.results[0])
            empty = tensor.EmptyOp(list(result.shape), result.element_type).result
            before = func.CallOp(made[key], [weights, empty])
            before.attributes[OPERATORS] = ir.ArrayAttr.get(
                [ir.StringAttr.get("winograd_weights")]
            )
            transformed.append(before.results[0])
        after = func.CallOp(
            kernel, [*operands[:inputs], *transformed, *operands[inputs:]]
        )
    for name in call.operation.attributes:
        if name != "callee":
            after.attributes[name] = call.operation.attributes[name]
    for old, new in zip(call.results, after.results, strict=True):
        old.replace_all_uses_with(new)
    call.operation.erase()


def _build(declarations: Declarations, form: WinogradForm, weights: Any) -> Any:
    """Make the kernel that transforms weights of a type."""
    result = _transformed_type(form, weights)
    function = declarations.add("weights", [weights, result], [result])
    function.attributes[KERNEL] = ir.UnitAttr.get()
    blocks, depth = result.shape[0], ir.RankedTensorType(weights).shape[1]
    channels = largest_divisor(depth, CHANNELS)
    with ir.InsertionPoint(function.add_entry_block()):
        source, destination = function.arguments
        loop = scf.ForallOp([0, 0], [blocks, depth], [1, channels], [destination])
        block, channel, out = loop.body.arguments
        with ir.InsertionPoint(loop.body):
            turned = _turn(source, block, channel, channels)
            _transform(form, turned, out, (block, channel, channels))
        func.ReturnOp(list(loop.results))
    return function


def _turn(source: Any, block: Any, channel: Any, channels: int) -> Any:
    """Bring the rows of a block side by side: t[c, i, j, f] = w[f, c, i, j]."""
    kind = ir.RankedTensorType(source.type)
    rows = ir.AffineMap.get(1, 0, [ir.AffineExpr.get_dim(0) * ROWS])
    first = affine.AffineApplyOp(rows, [block]).result
    sizes = [ROWS, channels, WINDOW, WINDOW]
    part = extract_slice(source, [first, channel, 0, 0], sizes, sizes)
    empty = tensor.EmptyOp([channels, WINDOW, WINDOW, ROWS], kind.element_type).result
    return turn_rows(part, empty).results[0]


def _transform(
    form: WinogradForm, turned: Any, out: Any, at: tuple[Any, Any, int]
) -> None:
    """Emit u[f / 16, p, c, f % 16] = transform of t[c, i, j, f]."""
    block, channel, channels = at
    # One slice for all layers: of several that a loop inserts into one tensor, only
    # one is left where the loop has a single iteration and is folded away.
    sizes = [1, form.products, channels, ROWS]
    offsets = [block, 0, channel, 0]
    part = extract_slice(out, offsets, sizes, sizes[1:])
    layer = [1, *sizes[2:]]
    outs = [
        extract_slice(part, [p, 0, 0], layer, sizes[2:]) for p in range(form.products)
    ]
    for p, value in enumerate(transform_rows(form, turned, outs).results):
        part = tensor.insert_slice(value, part, [], [], [], [p, 0, 0], layer, [1] * 3)
    parallel = scf.InParallelOp()
    with ir.InsertionPoint(parallel.region.blocks[0]):
        insert_in_parallel(part, out, offsets, sizes)
