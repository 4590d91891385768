"""Owns reductions over axes that are not kept; views put kept ones back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from magweld.importer.dtypes import generated_floats_only

aten = torch.ops.aten

_Dims = Sequence[int] | None


def _without_kept_axes(operator: OpOverload) -> Callable[..., Any]:
    """Reduce to fewer axes and put axes of extent one back by a view."""

    def reduce(
        x: Tensor, dim: _Dims = None, keepdim: bool = False, **options: Any
    ) -> Any:
        if not keepdim:
            return NotImplemented
        dims = _axes(x, dim)
        reduced = operator(x, dims, False, **options)
        return reduced.view([1 if a in dims else n for a, n in enumerate(x.shape)])

    return reduce


def _axes(x: Tensor, dim: _Dims) -> list[int]:
    if not dim:
        return list(range(x.dim()))
    return sorted(axis % x.dim() for axis in dim) if x.dim() else []


def _product(
    x: Tensor, dim: int, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Any:
    if not keepdim or not x.dim():
        return NotImplemented
    return aten.prod.dim_int(x, dim, False, dtype=dtype).unsqueeze(dim)


def _var_mean(
    x: Tensor,
    dim: _Dims = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> Any:
    dims = _axes(x, dim)
    count = 1
    for axis in dims:
        count *= x.shape[axis]
    degrees = count - (1 if correction is None else correction)
    if degrees <= 0 or not x.is_floating_point():
        return NotImplemented
    spread = [1 if axis in dims else extent for axis, extent in enumerate(x.shape)]
    mean = x.mean(dims)
    centred = x - mean.view(spread)
    variance = (centred * centred).sum(dims) / degrees
    if keepdim:
        return variance.view(spread), mean.view(spread)
    return variance, mean


def _var(x: Tensor, dim: _Dims = None, **options: Any) -> Any:
    result = _var_mean(x, dim, **options)
    return result if result is NotImplemented else result[0]


def _std(x: Tensor, dim: _Dims = None, **options: Any) -> Any:
    result = _var_mean(x, dim, **options)
    return result if result is NotImplemented else torch.sqrt(result[0])


def _highest(x: Tensor) -> Any:
    return aten.amax.default(x, list(range(x.dim())))


def _lowest(x: Tensor) -> Any:
    return aten.amin.default(x, list(range(x.dim())))


_OURS: dict[OpOverload, Callable[..., Any]] = {
    aten.amax.default: _without_kept_axes(aten.amax.default),
    aten.amin.default: _without_kept_axes(aten.amin.default),
    aten.max.default: _highest,
    aten.mean.dim: _without_kept_axes(aten.mean.dim),
    aten.min.default: _lowest,
    aten.prod.dim_int: _product,
    aten.std.correction: _std,
    aten.sum.dim_IntList: _without_kept_axes(aten.sum.dim_IntList),
    aten.var.correction: _var,
    aten.var_mean.correction: _var_mean,
}

# Of truths alone, as torch has them.
_OF_TRUTHS: dict[OpOverload, Callable[..., Any]] = {
    aten._is_all_true.default: aten.all.default,
    aten._is_any_true.default: aten.any.default,
}

REDUCTIONS: dict[OpOverload, Callable[..., Any]] = {
    **{op: generated_floats_only(function) for op, function in _OURS.items()},
    **_OF_TRUTHS,
}
"""Decompositions of reductions."""
