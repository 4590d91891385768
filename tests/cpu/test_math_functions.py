"""Bounds the errors of the expanded math functions over all of single precision."""

import numpy as np
import pytest
import torch
from torch import Tensor

from magweld.codegen.host import HostTarget

KERNEL = """
#id = affine_map<(d0) -> (d0)>
func.func @kernel_0(%x: tensor<{n}xf32>, %out0: tensor<{n}xf32>) -> tensor<{n}xf32> attributes {{tile_graph.kernel}} {{
  %y = linalg.generic {{indexing_maps = [#id, #id], iterator_types = ["parallel"]}} ins(%x : tensor<{n}xf32>) outs(%out0 : tensor<{n}xf32>) {{
  ^bb0(%p: f32, %u: f32):
    %0 = math.{name} %p : f32
    linalg.yield %0 : f32
  }} -> tensor<{n}xf32>
  return %y : tensor<{n}xf32>
}}
"""  # noqa: E501
# Largest error in units in the last place, as emit_math.py and emit_lookup.py state it.
LOOKS_UP = HostTarget.detect().multiplies_pairs
BOUNDS = {
    "cos": 1.5,
    "erf": 2.5 if LOOKS_UP else 4.0,
    "exp": 1.5,
    "exp2": 1.0,
    "expm1": 2.0,
    "log": 1.0,
    "log1p": 2.0,
    "log2": 1.5,
    "rsqrt": 1.5,
    "sin": 1.5,
    "tanh": 1.5 if LOOKS_UP else 2.0,
}
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1.0, -1.0]
# Where exp overflows and underflows, and its neighbours.
SPECIAL += [88.72283, 88.72284, -87.33655, -103.97208, -103.97209, 3.4e38, -3.4e38]
# Close to multiples of pi/2, the third to 1.7e-9, and at the bounds of its reductions.
SPECIAL += [3.1415927, 1.5707964, 16367173.0 * 2.0**72, 2.0**48, -(2.0**127)]
SPECIAL += [127.99999, 128.0, -149.0, -150.0, -150.00002, 1.1754944e-38]


def every_nth_float(step: int) -> Tensor:
    bits = np.arange(0, 2**32, step, dtype=np.uint64)
    bits += np.random.default_rng(0).integers(0, step, bits.size, dtype=np.uint64)
    values = bits.astype(np.uint32).view(np.float32)
    values[: len(SPECIAL)] = SPECIAL
    return torch.from_numpy(values)


def reference(name: str, x: Tensor) -> Tensor:
    if name == "rsqrt":
        return 1.0 / torch.sqrt(x)
    return getattr(torch, name)(x)


def units_in_last_place(value: Tensor) -> Tensor:
    exponent = torch.floor(torch.log2(value.abs().clamp(min=2.0**-126)))
    return 2.0 ** (exponent - 23)


@pytest.mark.parametrize("name", BOUNDS)
def test_error_and_special_values(name: str, build) -> None:
    x = every_nth_float(2**14 + 1)
    kernel = build(KERNEL.format(n=x.numel(), name=name))
    result = kernel(x, torch.full_like(x, -7.0))
    expected = reference(name, x.double())
    rounded = expected.float()
    finite = rounded.isfinite()
    assert torch.equal(result.isnan(), rounded.isnan())
    assert torch.equal(result.isinf(), rounded.isinf())
    assert torch.equal(result[rounded.isinf()], rounded[rounded.isinf()])
    zero = rounded == 0
    same_sign = result.signbit() == rounded.signbit()
    assert bool(same_sign[zero & (result == 0)].all())
    error = (result.double() - expected).abs() / units_in_last_place(expected)
    assert error[finite].max() <= BOUNDS[name]


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", BOUNDS)
def test_scalars_and_short_vectors_give_the_same(name: str, build) -> None:
    long = build(KERNEL.format(n=64, name=name))
    for extent in (1, 2, 5, 8, 15, 33):
        x = torch.rand(64)[:extent].clone()
        short = build(KERNEL.format(n=extent, name=name))
        padded = torch.cat([x, torch.ones(64 - extent)])
        expected = long(padded, torch.empty(64))[:extent]
        assert torch.equal(short(x, torch.empty(extent)), expected), extent


@pytest.mark.parametrize("name", ["sin", "cos", "atan"])
def test_other_functions_come_from_the_c_library(name: str, build) -> None:
    x = torch.randn(19)
    kernel = build(KERNEL.format(n=19, name=name))
    torch.testing.assert_close(kernel(x, torch.empty(19)), reference(name, x))


@pytest.mark.parametrize(("name", "end"), [("erf", 4.0), ("tanh", 9.02)])
def test_what_nears_one_is_never_greater(name: str, end: float, build) -> None:
    near = torch.linspace(end - 2.0, end + 0.5, 2**16)
    x = torch.cat([near, torch.tensor([1e30, torch.inf])])
    result = build(KERNEL.format(n=x.numel(), name=name))(x, torch.empty_like(x))
    assert bool((result <= 1).all())
    assert bool((result[x >= end] == 1).all())
