"""Products, convolutions, pools, norms and attention against eager torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F

Function = Callable[..., Any]
Case = tuple[Function, tuple[torch.Tensor, ...]]


def floats(*shape: int, seed: int = 0) -> Any:
    generator = torch.Generator().manual_seed(seed + 13 * len(shape))
    return torch.randn(shape, generator=generator)


A = floats(4, 6)
B = floats(6, 5, seed=1)
BIAS = floats(5, seed=2)
SEQUENCE = floats(2, 4, 6)
IMAGE = floats(2, 4, 9, 9)
LAST = IMAGE.contiguous(memory_format=torch.channels_last)

GENERATED: dict[str, Case] = {
    "matmul": (torch.matmul, (A, B)),
    "matmul-double": (torch.matmul, (A.double(), B.double())),
    "matmul-transposed": (lambda a, b: b.t() @ a.t(), (A, B)),
    "matmul-vector": (lambda a, b: (a @ b[:, 0], b[:, 0] @ b), (A, B)),
    "matmul-batched": (torch.matmul, (SEQUENCE, floats(2, 6, 3))),
    "matmul-broadcast": (torch.matmul, (floats(3, 1, 4, 6), floats(2, 6, 5))),
    "bmm": (torch.bmm, (SEQUENCE, floats(2, 6, 3))),
    "addmm": (lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2), (BIAS, A, B)),
    "baddbmm": (torch.baddbmm, (floats(2, 4, 3), SEQUENCE, floats(2, 6, 3))),
    "linear": (F.linear, (A, floats(5, 6), BIAS)),
    "linear-sequence": (F.linear, (SEQUENCE, floats(5, 6), BIAS)),
    "linear-no-bias": (F.linear, (SEQUENCE, floats(5, 6))),
    "linear-of-permuted": (
        lambda x, w: F.linear(x.permute(1, 0, 2), w),
        (SEQUENCE, floats(5, 6)),
    ),
    "einsum": (lambda x, y: torch.einsum("bij,bkj->bik", x, y), (SEQUENCE, SEQUENCE)),
    "outer": (lambda x, y: torch.outer(x[0], y[0]), (A, B)),
    "dot": (lambda x: x[0].dot(x[1]), (A,)),
    "convolution": (F.conv2d, (IMAGE, floats(5, 4, 3, 3), BIAS)),
    "convolution-stride": (
        lambda x, w: F.conv2d(x, w, stride=2, padding=1),
        (IMAGE, floats(5, 4, 3, 3)),
    ),
    "convolution-uneven": (
        lambda x, w, b: F.conv2d(x, w, b, stride=(1, 2), padding=(2, 0)),
        (IMAGE, floats(5, 4, 3, 2), BIAS),
    ),
    "convolution-dilation": (
        lambda x, w: F.conv2d(x, w, padding=2, dilation=2),
        (IMAGE, floats(5, 4, 3, 3)),
    ),
    "convolution-groups": (
        lambda x, w: F.conv2d(x, w, padding=1, groups=2),
        (IMAGE, floats(6, 2, 3, 3)),
    ),
    "convolution-depthwise": (
        lambda x, w, b: F.conv2d(x, w, b, padding=3, groups=4),
        (IMAGE, floats(4, 1, 7, 7), floats(4)),
    ),
    "convolution-multiplier": (
        lambda x, w: F.conv2d(x, w, groups=4),
        (IMAGE, floats(8, 1, 3, 3)),
    ),
    "convolution-point": (
        lambda x, w: F.conv2d(x, w, stride=2),
        (IMAGE, floats(5, 4, 1, 1)),
    ),
    "convolution-same": (
        lambda x, w: F.conv2d(x, w, padding="same"),
        (IMAGE, floats(5, 4, 3, 3)),
    ),
    "convolution-channels-last": (F.conv2d, (LAST, floats(5, 4, 3, 3), BIAS)),
    "convolution-1d": (
        lambda x, w: F.conv1d(x, w, padding=1),
        (SEQUENCE, floats(5, 4, 3)),
    ),
    "convolution-3d": (F.conv3d, (floats(1, 2, 5, 5, 5), floats(3, 2, 3, 3, 3))),
    "max-pool": (lambda x: F.max_pool2d(x, 2), (IMAGE,)),
    "max-pool-padded": (lambda x: F.max_pool2d(x, 3, 2, 1), (IMAGE,)),
    "max-pool-negative": (lambda x: F.max_pool2d(x, 3, 2, 1), (-IMAGE.abs(),)),
    "average-pool": (lambda x: F.avg_pool2d(x, 3, 2), (IMAGE,)),
    "average-pool-padded": (lambda x: F.avg_pool2d(x, 3, 2, 1), (IMAGE,)),
    "adaptive-pool-one": (lambda x: F.adaptive_avg_pool2d(x, 1), (IMAGE,)),
    "adaptive-pool-last": (lambda x: F.adaptive_avg_pool2d(x, 1), (LAST,)),
    "adaptive-pool-even": (lambda x: F.adaptive_avg_pool2d(x, 3), (IMAGE,)),
    "average-pool-of-one": (lambda x: F.avg_pool2d(x, 3, 2, 1), (IMAGE[0],)),
    "average-pool-of-rows": (lambda x: F.avg_pool1d(x, 2), (IMAGE[0, 0],)),
    "adaptive-pool-of-one": (lambda x: F.adaptive_avg_pool2d(x, 3), (IMAGE[0],)),
    "layer-norm": (
        lambda x, w, b: F.layer_norm(x, (6,), w, b),
        (SEQUENCE, floats(6), floats(6, seed=1)),
    ),
    "layer-norm-plain": (lambda x: F.layer_norm(x, (4, 6)), (SEQUENCE,)),
    "layer-norm-large": (lambda x: F.layer_norm(x + 5, (6,)), (SEQUENCE,)),
    "rms-norm": (lambda x, w: F.rms_norm(x, (6,), w), (SEQUENCE, floats(6))),
    "group-norm": (
        lambda x, w, b: F.group_norm(x, 2, w, b),
        (IMAGE, floats(4), floats(4, seed=1)),
    ),
    "group-norm-plain": (lambda x: F.group_norm(x, 4), (IMAGE,)),
    "instance-norm": (F.instance_norm, (IMAGE,)),
    "batch-norm": (
        F.batch_norm,
        (IMAGE, floats(4), floats(4).abs() + 0.5, floats(4), floats(4, seed=2)),
    ),
    "batch-norm-plain": (F.batch_norm, (IMAGE, floats(4), floats(4).abs() + 0.5)),
    "batch-norm-rows": (F.batch_norm, (A, floats(6), floats(6).abs() + 0.5)),
    "batch-norm-training": (
        lambda x, m, v, w: F.batch_norm(x, m, v, w, training=True),
        (IMAGE, floats(4), floats(4).abs() + 0.5, floats(4)),
    ),
    "lstm-cell": (
        lambda x, w, u: torch.lstm_cell(x, (A[:, :3], A[:, 3:]), w, u),
        (A, floats(12, 6), floats(12, 3)),
    ),
    "lstm-cell-biases": (
        lambda x, s, w, u, b: torch.lstm_cell(x, (s, s.sin()), w, u, b, b.cos()),
        (A, floats(4, 3), floats(12, 6), floats(12, 3), floats(12)),
    ),
    "gru-cell": (
        lambda x, s, w, u, b: torch.gru_cell(x, s, w, u, b, b.cos()),
        (A, floats(4, 3), floats(9, 6), floats(9, 3), floats(9)),
    ),
    "gru-cell-double": (
        lambda x, s, w, u: torch.gru_cell(x, s, w, u),
        (A.double(), *(floats(*d).double() for d in ((4, 3), (9, 6), (9, 3)))),
    ),
    "rnn-cells": (
        lambda x, s, w, u, b: (
            torch.rnn_tanh_cell(x, s, w, u, b, b),
            torch.rnn_relu_cell(x, s, w, u),
        ),
        (A, floats(4, 3), floats(3, 6), floats(3, 3), floats(3)),
    ),
    "batch-norm-no-statistics": (
        lambda x: F.batch_norm(x, None, None, training=True),
        (IMAGE,),
    ),
}


@pytest.mark.sample(19)
@pytest.mark.parametrize("name", GENERATED)
def test_layer_is_generated(check: Any, name: str) -> None:
    function, inputs = GENERATED[name]
    reference = check(function, *inputs, atol=1e-5)
    assert not reference.externals


EXTERNAL: dict[str, Case] = {
    "embedding": (
        lambda t, i: F.embedding(i, t) * 2,
        (A, torch.tensor([[3, 0, 1], [2, 2, 3]])),
    ),
    "index": (lambda x, i: x[i] + 1, (A, torch.tensor([3, 0, 1]))),
    "index-fill": (lambda x: x.index_fill(0, torch.tensor([1]), 5), (A,)),
    "gather": (lambda x, i: x.gather(1, i) * 2, (A, torch.tensor([[0, 5]] * 4))),
    "scatter": (
        lambda x, i: x.scatter(1, i, 2.0) * 2,
        (A, torch.tensor([[0, 5]] * 4)),
    ),
    "upsample": (lambda x: F.interpolate(x, scale_factor=2) + 1, (IMAGE,)),
    "bilinear": (
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear") + 1,
        (IMAGE,),
    ),
    "transposed": (F.conv_transpose2d, (IMAGE, floats(4, 3, 3, 3))),
    "adaptive-uneven": (lambda x: F.adaptive_avg_pool2d(x, 4) + 1, (IMAGE,)),
    "max-pool-indices": (
        lambda x: F.max_pool2d(x, 2, return_indices=True),
        (IMAGE,),
    ),
    "integer-product": (torch.matmul, (torch.ones(2, 2).long(),) * 2),
    "integer-division": (lambda x: (x // 2, x % 3), (torch.arange(-4, 4),)),
    "remainder": (lambda x: (x % 0.7, torch.fmod(x, 0.7)), (A,)),
    "large-power": (lambda x: (x**17, x ** torch.tensor(2.0)), (A,)),
    "bernoulli-of": (lambda x: torch.bernoulli(x.sigmoid()), (A,)),
}


@pytest.mark.parametrize("name", EXTERNAL)
def test_layer_runs_through_torch(check: Any, name: str) -> None:
    function, inputs = EXTERNAL[name]
    check(function, *inputs)


Q, K, V = (floats(2, 3, 4, 8, seed=s) for s in range(3))
KEYS = torch.tensor([[True] * 4, [True, False, True, False]]).view(2, 1, 1, 4)
ROWS = torch.ones(4, 4, dtype=torch.bool)
ROWS = ROWS.masked_fill(torch.tensor([False, True, False, False])[:, None], False)
MASK = torch.zeros(4, 4).masked_fill(~ROWS, -float("inf"))
attend = F.scaled_dot_product_attention

ATTENTION: dict[str, Case] = {
    "plain": (attend, (Q, K, V)),
    "double": (attend, (Q.double(), K.double(), V.double())),
    "scale": (lambda q, k, v: attend(q, k, v, scale=0.3), (Q, K, V)),
    "causal": (lambda q, k, v: attend(q, k, v, is_causal=True), (Q, K, V)),
    "keys-hidden": (attend, (Q, K, V, KEYS)),
    "row-hidden": (attend, (Q, K, V, ROWS)),
    "row-hidden-additive": (attend, (Q, K, V, MASK)),
    "additive": (attend, (Q, K, V, floats(2, 1, 4, 4))),
    "lowest-number": (attend, (Q, K, V, MASK.clamp(min=-3.4e38))),
    "other-lengths": (attend, (Q[:, :, :2], K, V)),
    "other-value-size": (attend, (Q, K, floats(2, 3, 4, 5))),
    "three-dims": (attend, (Q[0], K[0], V[0])),
    "transposed-heads": (
        lambda x: attend(*(p.transpose(1, 2) for p in x.unbind(2))),
        (floats(2, 4, 3, 3, 8),),
    ),
    "groups": (
        lambda q, k, v: attend(q, k, v, enable_gqa=True),
        (floats(2, 4, 4, 8), floats(2, 2, 4, 8), floats(2, 2, 4, 8, seed=1)),
    ),
    "by-hand": (
        lambda q, k, v: (q @ k.transpose(-2, -1) / 8**0.5).softmax(-1) @ v,
        (Q, K, V),
    ),
    "dropout": (lambda q, k, v: attend(q, k, v, dropout_p=0.4), (Q, K, V)),
}


@pytest.mark.parametrize("name", ATTENTION)
def test_attention(check: Any, name: str) -> None:
    function, inputs = ATTENTION[name]
    check(function, *inputs)


def test_attention_has_one_pass_for_each_term(check: Any) -> None:
    reference = check(attend, Q, K, V)
    # scale, maximum, difference, exponential, sum, reciprocal, product
    assert reference.linalg.count("linalg.generic") == 7
    assert reference.linalg.count("linalg.batch_matmul") == 2
    assert "select" not in reference.linalg


@pytest.fixture
def no_fast_path() -> Iterator[None]:
    """Keep modules from a path that a recording of their functions does not take."""
    enabled = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    yield
    torch.backends.mha.set_fastpath_enabled(enabled)


@pytest.mark.usefixtures("no_fast_path")
def test_multi_head_attention_module(check: Any) -> None:
    torch.manual_seed(0)
    module = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()
    check(lambda x: module(x, x, x)[0], floats(2, 5, 8))


@pytest.mark.usefixtures("no_fast_path")
def test_encoder_layer_module(check: Any) -> None:
    torch.manual_seed(0)
    module = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    check(module, floats(2, 5, 8))


def test_lstm_module(check: Any) -> None:
    torch.manual_seed(0)
    module = torch.nn.LSTM(6, 3, batch_first=True)
    check(lambda x: module(x)[0], SEQUENCE)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("order", [(0, 2, 3, 1), (0, 1, 3, 2), (3, 2, 1, 0)])
def test_batch_norm_gives_images_the_order_that_torch_gives(
    check: Any, order: tuple[int, ...], training: bool
) -> None:
    extents = (2, 3, 4, 5)
    base = torch.randn([extents[d] for d in order])
    image = base.permute([order.index(d) for d in range(4)])

    def norm(x: torch.Tensor, mean: torch.Tensor, var: torch.Tensor) -> Any:
        y = F.batch_norm(x, mean, var, training=training)
        return y, y.relu(), y.flatten(1)

    check(norm, image, torch.randn(3), torch.rand(3))
