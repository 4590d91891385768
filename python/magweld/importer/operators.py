"""Owns the table of ATen operators that become generated code; all others do not.

An operator is in the table when its lowering was compared with torch. What is not in
it, or has an operand its rule refuses, runs through torch as a whole: an unknown
operator can cost time, but neither break a graph nor be wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload

from magweld.importer.dtypes import GENERATED_FLOATS, HALVES, is_arranged
from magweld.importer.gathers import is_checked
from magweld.importer.nodes import argument, operand, tensors_of, values_of
from magweld.importer.ragged_bags import RAGGED_BAGS

aten = torch.ops.aten

Rule = Callable[[fx.Node], bool]


def is_generated(node: fx.Node) -> bool:
    """Tell whether generated code computes a node of a functional ATen graph."""
    if not isinstance(node.target, OpOverload):
        return False
    rule = RULES.get(node.target)
    if rule is None:
        return False
    tensors = [*tensors_of(node), *_operands(node)]
    if not all(map(_is_plain, tensors)):
        return False
    arranges = node.target in ARRANGING or all(t.dtype not in HALVES for t in tensors)
    return arranges and rule(node)


def _is_plain(value: Any) -> bool:
    return (
        isinstance(value, torch.Tensor)
        and is_arranged(value)
        and value.numel() > 0
        and value.layout is torch.strided
    )


def _operands(node: fx.Node) -> list[Any]:
    return [tensor for source in node.all_input_nodes for tensor in tensors_of(source)]


def _always(node: fx.Node) -> bool:
    return True


def _conversion(node: fx.Node) -> bool:
    # To and from halves all numbers go by f32, as they do in torch.
    types = {value.dtype for value in (*tensors_of(node), *_operands(node))}
    return not types & HALVES or torch.float32 in types or len(types) == 1


def _floats(node: fx.Node) -> bool:
    tensors = [*tensors_of(node), *_operands(node)]
    return all(value.dtype in GENERATED_FLOATS for value in tensors)


def _float_result(node: fx.Node) -> bool:
    return all(value.dtype in GENERATED_FLOATS for value in tensors_of(node))


def _no_bool_result(node: fx.Node) -> bool:
    return all(value.dtype is not torch.bool for value in tensors_of(node))


def _bools(node: fx.Node) -> bool:
    return all(value.dtype is torch.bool for value in _operands(node))


def _bools_or_integers(node: fx.Node) -> bool:
    return all(value.dtype not in GENERATED_FLOATS for value in _operands(node))


def _integers(node: fx.Node) -> bool:
    return all(value.dtype is torch.int64 for value in tensors_of(node))


def _same_numbers(node: fx.Node) -> bool:
    (result,) = tensors_of(node)
    return result.dtype is not torch.bool and _operands(node)[0].dtype is result.dtype


def _same_branches(node: fx.Node) -> bool:
    _, left, right = (values_of(operand(node, position)) for position in range(3))
    return bool(left.dtype == right.dtype)


def _forward_convolution(node: fx.Node) -> bool:
    return _floats(node) and not argument(node, "transposed")


def _divisible_pool(node: fx.Node) -> bool:
    extents = values_of(operand(node)).shape[-2:]
    outputs = argument(node, "output_size")
    return _floats(node) and all(
        extent % output == 0 for extent, output in zip(extents, outputs, strict=True)
    )


def _fractional_power(node: fx.Node) -> bool:
    # Whole exponents are lowered to an operation that vectors do not have.
    return _floats(node) and not float(argument(node, "exponent")).is_integer()


def _power_of_many(node: fx.Node) -> bool:
    return _floats(node) and values_of(operand(node, 1)).dim() > 0


def _growing_pad(node: fx.Node) -> bool:
    return all(extent >= 0 for extent in argument(node, "pad"))


def _table(rule: Rule, operators: Iterable[OpOverload]) -> dict[OpOverload, Rule]:
    return dict.fromkeys(operators, rule)


ARRANGING: frozenset[OpOverload] = frozenset(
    {
        aten._to_copy.default,
        aten.cat.default,
        aten.constant_pad_nd.default,
        aten.expand.default,
        aten.flip.default,
        aten.full.default,
        aten.full_like.default,
        aten.index.Tensor,
        aten.permute.default,
        aten.repeat.default,
        aten.scalar_tensor.default,
        aten.select.int,
        aten.slice.Tensor,
        aten.slice_scatter.default,
        aten.t.default,
        aten.transpose.int,
        aten.view.default,
        aten.where.self,
        RAGGED_BAGS,
    }
)
"""Operators that compute nothing from halves, or round them as torch does."""

RULES: dict[OpOverload, Rule] = {
    **_table(
        _floats,
        [
            aten._adaptive_avg_pool2d.default,
            aten.avg_pool2d.default,
            aten.bmm.default,
            aten.ceil.default,
            aten.cos.default,
            aten.erf.default,
            aten.exp.default,
            aten.expm1.default,
            aten.floor.default,
            aten.gelu.default,
            aten.log.default,
            aten.log10.default,
            aten.log1p.default,
            aten.log2.default,
            aten.max_pool2d.default,
            aten.mean.default,
            aten.mean.dim,
            aten.mm.default,
            aten.neg.default,
            aten.pow.Scalar,
            aten.round.default,
            aten.rsqrt.default,
            aten.sigmoid.default,
            aten.sin.default,
            aten.sqrt.default,
            aten.tanh.default,
        ],
    ),
    aten._adaptive_avg_pool2d.default: _divisible_pool,
    aten._to_copy.default: _conversion,
    aten.constant_pad_nd.default: _growing_pad,
    aten.index.Tensor: is_checked,
    RAGGED_BAGS: _always,
    aten.convolution.default: _forward_convolution,
    aten.pow.Tensor_Scalar: _fractional_power,
    aten.pow.Tensor_Tensor: _power_of_many,
    **_table(_float_result, [aten.div.Tensor, aten.div.Scalar]),
    **_table(
        _no_bool_result,
        [
            aten.abs.default,
            aten.add.Scalar,
            aten.add.Tensor,
            aten.amax.default,
            aten.amin.default,
            aten.maximum.default,
            aten.minimum.default,
            aten.mul.Scalar,
            aten.mul.Tensor,
            aten.prod.default,
            aten.prod.dim_int,
            aten.relu.default,
            aten.sign.default,
            aten.sub.Scalar,
            aten.sub.Tensor,
            aten.sum.default,
            aten.sum.dim_IntList,
        ],
    ),
    **_table(
        _integers, [aten.arange.default, aten.arange.start, aten.arange.start_step]
    ),
    aten.clamp.default: _same_numbers,
    aten.where.self: _same_branches,
    **_table(_bools, [aten.all.default, aten.any.default]),
    **_table(_bools, [aten.all.dim, aten.any.dim]),
    **_table(
        _bools_or_integers,
        [
            aten.bitwise_and.Tensor,
            aten.bitwise_not.default,
            aten.bitwise_or.Tensor,
            aten.bitwise_xor.Tensor,
        ],
    ),
    **_table(
        _always,
        [
            aten.cat.default,
            aten.eq.Tensor,
            aten.expand.default,
            aten.flip.default,
            aten.full.default,
            aten.full_like.default,
            aten.ge.Tensor,
            aten.gt.Tensor,
            aten.le.Tensor,
            aten.logical_and.default,
            aten.logical_not.default,
            aten.logical_or.default,
            aten.logical_xor.default,
            aten.lt.Tensor,
            aten.ne.Tensor,
            aten.permute.default,
            aten.repeat.default,
            aten.scalar_tensor.default,
            aten.select.int,
            aten.slice.Tensor,
            aten.slice_scatter.default,
            aten.t.default,
            aten.transpose.int,
            aten.view.default,
        ],
    ),
}
"""ATen operator to the rule that its operands and results must keep."""
