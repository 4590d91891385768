"""Owns which operators a library can compute and how it is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from magweld.bindings import ir
from magweld.dialects.tile_graph import operators_of, root_operation
from magweld.passes.analysis.body_forms import factor_type, starts_at_zero
from magweld.passes.analysis.library_form import LibraryCall, Reshape
from magweld.passes.analysis.library_products import product_sides
from magweld.passes.analysis.library_roundings import rounding_of
from magweld.passes.analysis.operator_model import inputs_of, root_accesses
from magweld.passes.ir.cloning import defining_op
from magweld.passes.ir.constants import constant_number
from magweld.passes.tiling.propagation import Refusal
from magweld.passes.tiling.regions import Access
from magweld.targets.device import Device

Make = Callable[[Any], LibraryCall | Refusal]


def library_call(operator: Any) -> LibraryCall | Refusal:
    """Return how a library computes `operator`, or why none does."""
    return _called(operator, _TABLE, operator.results[0])


def device_call(operators: Sequence[Any]) -> LibraryCall | Refusal:
    """Return how a library of a GPU computes a product or a convolution.

    Products may have any loops there. What follows of one of halves, whose sums are
    f32, is part of the call: they are rounded, as `rounding_of` knows.

    Args:
        operators: The product or convolution, and what rounds it.
    """
    product, *behind = operators
    if not behind:
        return rounded_call(product, product.results[0])
    (last,) = behind
    if not reads_sums(last, product):
        return Refusal("library-rounding", "its sums are not rounded next")
    call = rounded_call(product, last.results[0])
    return call if isinstance(call, Refusal) else _with_bias(call, product, last)


def rounded_call(operator: Any, result: Any) -> LibraryCall | Refusal:
    """Return the call of a GPU's library that makes a result of the type of another."""
    return _called(operator, _DEVICE_TABLE, result)


def reads_sums(last: Any, product: Any) -> bool:
    """Whether an operator rounds what another one makes, and nothing else of it."""
    root = root_operation(last)
    if rounding_of(root) is None:
        return False
    maker = defining_op(root.operands[0])
    if maker is None or maker.operation.name != "tile_graph.connect":
        return False
    return bool(maker.operation.operands[0] == product.results[0])


def call_on(device: Device, operators: Sequence[Any]) -> LibraryCall | Refusal:
    """Return how the library of a device computes operators that are one call."""
    shares_tiles = device.threads > 1
    return device_call(operators) if shares_tiles else library_call(operators[0])


def is_library(op: Any) -> bool:
    """Whether a library computes an operator or a subgraph."""
    attribute = op.attributes.get("implementation")
    return attribute is not None and ir.StringAttr(attribute).value == "library"


def is_joint_call(subgraph: Any) -> bool:
    """Whether one call computes several operators of a subgraph."""
    return is_library(subgraph) and len(operators_of(subgraph)) > 1


def _called(
    operator: Any, table: Mapping[str, Make], result: Any
) -> LibraryCall | Refusal:
    root = root_operation(operator)
    make = table.get(root.name)
    if make is None:
        return Refusal("no-library", "no library call computes this operation")
    if not starts_at_zero(root) or not all(map(_is_tensor, root.operands)):
        return Refusal("library-init", "the accumulator does not start at zero")
    types = [value.type for value in (*list(root.operands)[:2], result)]
    if len({str(ir.ShapedType(type_).element_type) for type_ in types}) > 1:
        return Refusal("library-types", "the operands are narrower than the result")
    return make(root)


def takes_bias(call: LibraryCall, dim: int, operator: Any) -> bool:
    """Whether a call for an operator may add a row along a dimension of its result."""
    if call.op not in _WITH_BIAS:
        return False
    result = root_operation(operator).results[0]
    *_, along = _WITH_BIAS[call.op]
    # Rows of several dimensions that are one are longer.
    reshape = call.reshapes[-1] if call.reshapes else None
    is_one = reshape is None or len(reshape.groups[along]) == 1
    return is_one and dim == along % result.type.rank


def _is_tensor(value: Any) -> bool:
    return isinstance(value.type, ir.RankedTensorType)


def _with_bias(call: LibraryCall, product: Any, last: Any) -> LibraryCall | Refusal:
    """Return a call that adds what the operator behind it adds."""
    rounding = rounding_of(root_operation(last))
    if rounding is None or rounding.bias is None:
        return call
    if not takes_bias(call, rounding.dim, product):
        return Refusal("library-bias", f"{call.op} adds none along {rounding.dim}")
    op, first, _ = _WITH_BIAS[call.op]
    inputs = list(dict.fromkeys((*inputs_of(product), rounding.bias)))
    operands, reshapes = list(call.operands), list(call.reshapes)
    operands.insert(first, inputs.index(rounding.bias))
    if reshapes:
        reshapes.insert(first, None)
    return replace(call, op=op, operands=tuple(operands), reshapes=tuple(reshapes))


def _matmul(op: str, batch: int) -> Callable[[Any], LibraryCall | Refusal]:
    """Calls of mm and bmm, whose operands may be transposed in their last two dims."""

    def make(root: Any) -> LibraryCall | Refusal:
        left, right, result = root_accesses(root)
        order = (left.argument, right.argument)
        if min(order) < 0 or any(a.padded or a.part for a in (left, right)):
            return Refusal("library-operand", "an operand is made by the operator")
        rows, columns = _loops(result)[batch:]
        transposed = (_loops(left)[batch] != rows, _loops(right)[-1] != columns)
        return LibraryCall(
            op, order, {"transpose_a": transposed[0], "transpose_b": transposed[1]}
        )

    return make


def _any_product(root: Any) -> LibraryCall | Refusal:
    """Return the call of a generic operation that is a product."""
    if len(root.operands) != 3 or not factor_type(root):
        return Refusal("no-library", "no library call computes this operation")
    left, right, result = root_accesses(root)
    if any(a.argument < 0 or a.padded or a.part for a in (left, right)):
        return Refusal("library-operand", "an operand is made by the operator")
    loops = [_single_loops(access) for access in (left, right, result)]
    sides = product_sides(*loops) if all(loops) else None
    if sides is None:
        return Refusal("library-loops", "its dimensions are in no order of a library")
    order = (left.argument, right.argument)
    reshapes = [_collapsing(groups) for groups in sides.groups()]
    transposed = sides.transposed
    return LibraryCall(
        "batch_matmul" if sides.batch else "matmul",
        order[::-1] if sides.swapped else order,
        {"transpose_a": transposed[0], "transpose_b": transposed[1]},
        tuple(reshapes) if any(reshapes) else (),
    )


def _single_loops(access: Access) -> tuple[int, ...]:
    """Return the loop of each dimension; none where one is anything else."""
    loops = [index.single_loop if index else None for index in access.index]
    return (
        tuple(loop for loop in loops if loop is not None) if None not in loops else ()
    )


def _collapsing(groups: tuple[tuple[int, ...], ...]) -> Reshape | None:
    return Reshape(groups, expand=False) if any(len(g) > 1 for g in groups) else None


def _loops(access: Access) -> list[int]:
    return [expr.terms[0][0] for expr in access.index if expr is not None]


def _convolution(
    grouped: bool, reshapes: tuple[Reshape | None, ...]
) -> Callable[[Any], LibraryCall | Refusal]:
    """Calls of conv2d; the first dimension of a grouped weight counts the groups."""

    def make(root: Any) -> LibraryCall | Refusal:
        image, weight, _ = root_accesses(root)
        amounts = _padding(root.operands[0]) if image.padded else ([0, 0], [0, 0])
        made = min(image.argument, weight.argument) < 0 or weight.padded
        if made or amounts is None:
            return Refusal("library-operand", "the padding is not of zeros in space")
        # Both sides get the lesser one of the library; the rest is padded before.
        padding = [min(pair) for pair in zip(*amounts, strict=True)]
        rest = [
            [amount - least for amount, least in zip(side, padding, strict=True)]
            for side in amounts
        ]
        border = {"front": rest[0], "behind": rest[1]} if rest[0] != rest[1] else {}
        return LibraryCall(
            "convolution",
            (image.argument, weight.argument),
            {
                "strides": _pair(root, "strides"),
                "padding": padding,
                "dilation": _pair(root, "dilations"),
                "groups": weight.shape[0] if grouped else 1,
                **border,
            },
            reshapes,
            adopts=True,
        )

    return make


def _pair(root: Any, name: str) -> list[int]:
    if name not in root.attributes:
        return [1, 1]
    return [int(v) for v in ir.DenseIntElementsAttr(root.attributes[name])]


def _padding(value: Any) -> tuple[list[int], list[int]] | None:
    """Spatial padding in front and behind that a tensor.pad does.

    None when a library cannot do it: other values than zeros, or other dimensions.
    """
    pad = value.owner.operation
    source = defining_op(pad.operands[0])
    if source is not None and source.operation.name == "tensor.pad":
        return None  # a pad of a pad
    low = list(ir.DenseI64ArrayAttr(pad.attributes["static_low"]))
    high = list(ir.DenseI64ArrayAttr(pad.attributes["static_high"]))
    yielded = list(pad.regions[0].blocks[0].operations)[-1].operands[0]
    if any(low[:-2]) or any(high[:-2]) or min(*low, *high) < 0:
        return None
    if constant_number(yielded) != 0:
        return None
    return [int(v) for v in low[-2:]], [int(v) for v in high[-2:]]


# Calls that add a bias to what others compute, its place among their operands, and the
# dimension of the result that it is along.
_WITH_BIAS = {"matmul": ("addmm", 0, -1), "convolution": ("convolution", 2, 1)}

_TABLE: dict[str, Make] = {
    "linalg.matmul": _matmul("matmul", 0),
    "linalg.batch_matmul": _matmul("batch_matmul", 1),
    "linalg.conv_2d_nchw_fchw": _convolution(grouped=False, reshapes=()),
    # [c, h, w] is [c, 1, h, w] to the library.
    "linalg.depthwise_conv_2d_nchw_chw": _convolution(
        grouped=True, reshapes=(None, Reshape(((0, 1), (2,), (3,)), expand=True), None)
    ),
    # [n, g, c, h, w], [g, f, c, h, w] and [n, g, f, h, w] without their group dim.
    "linalg.conv_2d_ngchw_gfchw": _convolution(
        grouped=True,
        reshapes=(
            Reshape(((0,), (1, 2), (3,), (4,)), expand=False),
            Reshape(((0, 1), (2,), (3,), (4,)), expand=False),
            Reshape(((0,), (1, 2), (3,), (4,)), expand=False),
        ),
    ),
}

_DEVICE_TABLE: dict[str, Make] = {
    **_TABLE,
    "linalg.batch_matmul": _any_product,
    "linalg.generic": _any_product,
    "linalg.matmul": _any_product,
}
