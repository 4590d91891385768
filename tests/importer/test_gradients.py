"""Backward operators: each decomposition against the operator that it stands for."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.testing import make_tensor

from magweld.importer.gradients import GRADIENTS
from magweld.importer.operators import RULES

aten = torch.ops.aten

MEAN, INVERSE = torch.randn(4, 1), torch.rand(4, 1) + 0.5
CHANNELS = torch.rand(3) + 0.5


def wide(*shape: int) -> torch.Tensor:
    """Return values on both sides of every bend of an activation."""
    return make_tensor(shape, dtype=torch.float32, device="cpu", low=-5, high=5)


CASES: dict[Any, tuple[Any, ...]] = {
    aten._log_softmax_backward_data.default: (
        wide(4, 6),
        wide(4, 6).log_softmax(1),
        1,
        torch.float32,
    ),
    aten._native_batch_norm_legit_functional.default: (
        wide(4, 3, 5),
        CHANNELS,
        CHANNELS,
        CHANNELS,
        CHANNELS,
        True,
        0.1,
        1e-5,
    ),
    aten._softmax_backward_data.default: (
        wide(4, 6),
        wide(4, 6).softmax(0),
        0,
        torch.float32,
    ),
    aten.elu_backward.default: (wide(4, 6), 1.0, 1.0, 1.0, False, wide(4, 6)),
    aten.gelu_backward.default: (wide(4, 6), wide(4, 6)),
    aten.glu_backward.default: (wide(4, 3), wide(4, 6), 1),
    aten.hardsigmoid_backward.default: (wide(4, 6), wide(4, 6)),
    aten.hardswish_backward.default: (wide(4, 6), wide(4, 6)),
    aten.hardtanh_backward.default: (wide(4, 6), wide(4, 6), -1.0, 2.0),
    aten.huber_loss_backward.default: (wide(4, 6), wide(4, 6), wide(4, 6), 0, 1.5),
    aten.leaky_relu_backward.default: (wide(4, 6), wide(4, 6), 0.1, False),
    aten.log_sigmoid_backward.default: (
        wide(4, 6),
        torch.full((4, 6), 0.5),
        torch.full((4, 6), 0.5).neg().exp(),
    ),
    aten.mish_backward.default: (wide(4, 6), wide(4, 6)),
    aten.mse_loss_backward.default: (wide(), wide(4, 6), wide(4, 6), 1),
    aten.native_batch_norm_backward.default: (
        wide(4, 3, 5),
        wide(4, 3, 5),
        CHANNELS,
        CHANNELS,
        CHANNELS,
        CHANNELS,
        CHANNELS,
        True,
        1e-5,
        [True, True, True],
    ),
    aten.native_group_norm_backward.default: (
        wide(2, 4, 6),
        wide(2, 4, 6),
        wide(2, 2),
        torch.rand(2, 2) + 0.5,
        torch.rand(4),
        2,
        4,
        6,
        2,
        [True, True, True],
    ),
    aten.native_layer_norm_backward.default: (
        wide(4, 6),
        wide(4, 6),
        [6],
        MEAN,
        INVERSE,
        wide(6),
        wide(6),
        [True, True, True],
    ),
    aten.select_backward.default: (wide(4), [4, 6], 1, 2),
    aten.sigmoid_backward.default: (wide(4, 6), torch.rand(4, 6)),
    aten.silu_backward.default: (wide(4, 6), wide(4, 6)),
    aten.slice_backward.default: (wide(4, 2), [4, 6], 1, 1, 5, 2),
    aten.smooth_l1_loss_backward.default: (wide(4, 6), wide(4, 6), wide(4, 6), 0, 1.5),
    aten.softplus_backward.default: (wide(4, 6), wide(4, 6), 1.0, 2.0),
    aten.tanh_backward.default: (wide(4, 6), torch.rand(4, 6)),
    aten.threshold_backward.default: (wide(4, 6), wide(4, 6), 0.5),
}

MORE: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
    "gelu-tanh": (
        aten.gelu_backward.default,
        (wide(4, 6), wide(4, 6)),
        {"approximate": "tanh"},
    ),
    "batch-norm-eval": (
        aten.native_batch_norm_backward.default,
        (
            *(wide(4, 3, 5), wide(4, 3, 5), None),
            *(CHANNELS, CHANNELS, torch.zeros(0), torch.zeros(0)),
            *(False, 1e-5, [True, True, False]),
        ),
        {},
    ),
    "layer-norm-plain": (
        aten.native_layer_norm_backward.default,
        (
            *(wide(2, 2, 6), wide(2, 2, 6), [6]),
            *(MEAN.view(2, 2, 1), INVERSE.view(2, 2, 1), None, None),
            [True, False, False],
        ),
        {},
    ),
    "threshold-nan": (
        aten.threshold_backward.default,
        (torch.ones(3), torch.tensor([float("nan"), float("inf"), -1.0]), 0),
        {},
    ),
}


def test_every_gradient_has_a_case() -> None:
    assert set(CASES) == set(GRADIENTS)


@pytest.mark.parametrize("operator", CASES, ids=str)
def test_gradients(operator: Any) -> None:
    check(operator, CASES[operator], {})


@pytest.mark.parametrize("name", MORE)
def test_other_forms(name: str) -> None:
    check(*MORE[name])


@pytest.mark.parametrize("dtype", [torch.float16, torch.int8])
def test_other_types_are_left_to_torch(dtype: torch.dtype) -> None:
    x = torch.ones(3).to(dtype)
    decomposition = GRADIENTS[aten.threshold_backward.default]
    assert decomposition(x, x, 0) is NotImplemented


def check(operator: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    mine = GRADIENTS[operator](*arguments, **options)
    theirs = operator(*arguments, **options)
    assert mine is not NotImplemented
    assert operator not in RULES
    if isinstance(theirs, torch.Tensor):
        mine, theirs = (mine,), (theirs,)
    for left, right in zip(mine, theirs, strict=True):
        if left is None:
            assert right is None or right.numel() == 0 or not right.any()
            continue
        torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-5, equal_nan=True)
        assert left.dtype == right.dtype
