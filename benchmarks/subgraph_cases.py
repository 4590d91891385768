"""The 21 subgraphs that schedules are judged by, written from the papers.

They cover what the Welder paper names (sections 2 and 6.2): reductions that feed row
operators, matrix products in chains, windows with and without overlap, gathers, and
results that are used inside as well. Sizes are scaled so that a call takes a few
milliseconds on two cores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """A subgraph with the shapes of its arguments.

    Attributes:
        name: Short name.
        function: The subgraph; f32 tensors in, f32 tensors out.
        shapes: Shapes of the arguments on this machine.
        exercises: What a scheduler has to know for it.
        indices: Arguments that hold row numbers, by position: how many rows there are.
    """

    name: str
    function: Callable[..., Tensor | tuple[Tensor, ...]]
    shapes: tuple[Shape, ...]
    exercises: str
    indices: tuple[tuple[int, int], ...] = ()

    def arguments(self, seed: int = 0) -> list[Tensor]:
        """Return random arguments, weights scaled so that results stay near one."""
        generator = torch.Generator().manual_seed(seed)
        rows = dict(self.indices)
        return [
            torch.randint(rows[i], shape, generator=generator)
            if i in rows
            else _random(shape, generator)
            for i, shape in enumerate(self.shapes)
        ]


def _random(shape: Shape, generator: torch.Generator) -> Tensor:
    fan_in = torch.Size(shape[1:]).numel() if len(shape) > 1 else 1
    scale = min(1.0, 4.0 / max(fan_in, 1) ** 0.5) if len(shape) != 3 else 1.0
    return torch.randn(shape, generator=generator) * scale


def _channel_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Normalise the channels of every pixel of an NCHW image."""
    mean = x.mean(1, keepdim=True)
    centred = x - mean
    variance = (centred * centred).mean(1, keepdim=True)
    normal = centred * torch.rsqrt(variance + 1e-6)
    return normal * weight.view(1, -1, 1, 1) + bias.view(1, -1, 1, 1)


def _depthwise(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return F.conv2d(x, weight, bias, padding=1, groups=x.shape[1])


def scores(q: Tensor, k: Tensor, mask: Tensor) -> Tensor:
    """Attention weights of masked rows."""
    return torch.softmax(q @ k * 0.125 + mask, -1)


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """Masked attention, three reductions in a row."""
    return scores(q, k.transpose(-1, -2), mask) @ v


def long_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention whose rows do not fit a fast level."""
    return torch.softmax(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, -1) @ v


def window_attention(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
    """Attention in windows of 7 by 7 pixels."""
    return torch.softmax(q * 32**-0.5 @ k.transpose(-1, -2) + bias, -1) @ v


def channel_attention(q: Tensor, k: Tensor, v: Tensor, scale: Tensor) -> Tensor:
    """Attention between channels: reductions over all pixels."""
    q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
    return torch.softmax(q @ k.transpose(-1, -2) * scale, -1) @ v


def linear_add_norm(
    x: Tensor, w: Tensor, b: Tensor, residual: Tensor, g: Tensor, h: Tensor
) -> Tensor:
    """The end of a transformer's half layer."""
    return F.layer_norm(F.linear(x, w, b) + residual, g.shape, g, h, 1e-12)


def embedding_norm(
    ids: Tensor,
    kinds: Tensor,
    words: Tensor,
    places: Tensor,
    types: Tensor,
    g: Tensor,
    h: Tensor,
) -> Tensor:
    """Three table look-ups and a norm."""
    total = words[ids] + places[: ids.shape[1]] + types[kinds]
    return F.layer_norm(total, g.shape, g, h, 1e-12)


def feed_forward(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    """Two matrix products with a wide tensor between them."""
    return F.linear(F.gelu(F.linear(x, w1, b1)), w2, b2)


def mlp(x: Tensor, *weights: Tensor) -> Tensor:
    """Seven small layers over many rows."""
    for weight in weights[:-1]:
        x = torch.relu(x @ weight.t())
    return x @ weights[-1].t()


def conv_relu_pool(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """Windows without overlap over windows with overlap."""
    return F.max_pool2d(torch.relu(F.conv2d(x, w, b, padding=1)), 2)


def double_conv(x: Tensor, w1: Tensor, s1: Tensor, w2: Tensor, s2: Tensor) -> Tensor:
    """Two 3x3 convolutions: the second one needs a halo of the first."""
    y = torch.relu(F.conv2d(x, w1, padding=1) * s1.view(1, -1, 1, 1))
    return torch.relu(F.conv2d(y, w2, padding=1) * s2.view(1, -1, 1, 1))


def inverted_residual(
    x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, w3: Tensor, b3: Tensor
) -> Tensor:
    """Expand, convolve by channel, contract."""
    y = F.relu6(F.conv2d(x, w1, b1))
    return x + F.conv2d(F.relu6(_depthwise(y, w2, b2)), w3, b3)


def depthwise_pointwise(
    x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor
) -> Tensor:
    """A separable convolution."""
    return F.conv2d(F.relu6(_depthwise(x, w1, b1)), w2, b2)


def norm_gate(
    x: Tensor, g: Tensor, h: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor
) -> Tensor:
    """Norm, 1x1, 3x3 by channel, and the product of the two halves."""
    y = F.conv2d(_channel_norm(x, g, h), w1, b1)
    a, c = _depthwise(y, w2, b2).chunk(2, 1)
    return a * c


def gated_feed_forward(
    y: Tensor,
    g: Tensor,
    h: Tensor,
    w1: Tensor,
    b1: Tensor,
    w2: Tensor,
    b2: Tensor,
    scale: Tensor,
) -> Tensor:
    """A chain of seven pointwise and channel operators of an image."""
    u, v = F.conv2d(_channel_norm(y, g, h), w1, b1).chunk(2, 1)
    return y + F.conv2d(u * v, w2, b2) * scale


def pooled_scale(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """A mean over the whole image that scales the image."""
    return x * F.conv2d(x.mean((2, 3), keepdim=True), w, b)


def gated_depthwise(x: Tensor, w1: Tensor, w2: Tensor, w3: Tensor) -> Tensor:
    """A gated block with 127 channels, a prime number."""
    u, v = _depthwise(F.conv2d(x, w1), w2).chunk(2, 1)
    return F.conv2d(F.gelu(u) * v, w3)


def conformer_convolution(
    x: Tensor,
    g: Tensor,
    h: Tensor,
    w1: Tensor,
    b1: Tensor,
    w2: Tensor,
    scale: Tensor,
    shift: Tensor,
    w3: Tensor,
    b3: Tensor,
) -> Tensor:
    """Norm, gate, a window of 31 steps, SiLU, between two transposes."""
    y = F.glu(F.conv1d(F.layer_norm(x, g.shape, g, h).transpose(1, 2), w1, b1), 1)
    y = F.conv1d(y, w2, padding=15, groups=y.shape[1])
    y = F.silu(y * scale.view(1, -1, 1) + shift.view(1, -1, 1))
    return F.conv1d(y, w3, b3).transpose(1, 2)


def patch_norm_linear(x: Tensor, g: Tensor, h: Tensor, w: Tensor) -> Tensor:
    """Pixels regrouped into patches, then norm and product."""
    n, d, height, width = x.shape
    y = x.view(n, d, height // 2, 2, width // 2, 2).permute(0, 3, 5, 2, 4, 1)
    y = y.reshape(n, 4, height * width // 4, d)
    return F.layer_norm(y, (d,), g, h) @ w.t()


def add_norm(x: Tensor, y: Tensor, g: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """A sum that is a result and the operand of a norm."""
    total = x + y
    return total, F.layer_norm(total, g.shape, g, h)


_HEADS = (4, 12, 128, 64)
_IMAGE = (1, 16, 256, 256)

CASES = (
    Case(
        "scores",
        scores,
        (_HEADS, (4, 12, 64, 128), (4, 1, 1, 128)),
        "a row reduction over a product",
    ),
    Case(
        "attention",
        attention,
        (_HEADS, _HEADS, _HEADS, (4, 1, 1, 128)),
        "three reductions",
    ),
    Case(
        "long-attention",
        long_attention,
        ((1, 4, 2048, 64),) * 3,
        "online softmax, streaming",
    ),
    Case(
        "window-attention",
        window_attention,
        ((256, 3, 49, 32),) * 3 + ((1, 3, 49, 49),),
        "an odd extent",
    ),
    Case(
        "channel-attention",
        channel_attention,
        ((1, 1, 48, 65536),) * 3 + ((1, 1, 1),),
        "reductions over the long axis, two phases",
    ),
    Case(
        "linear-add-norm",
        linear_add_norm,
        ((512, 768), (768, 768), (768,), (512, 768), (768,), (768,)),
        "a product and a norm of its rows",
    ),
    Case(
        "embedding-norm",
        embedding_norm,
        ((16, 128), (16, 128), (30522, 768), (128, 768), (2, 768), (768,), (768,)),
        "gathers",
        indices=((0, 30522), (1, 2)),
    ),
    Case(
        "feed-forward",
        feed_forward,
        ((512, 768), (3072, 768), (3072,), (768, 3072), (768,)),
        "two products, streaming along the second one's reduction",
    ),
    Case(
        "feed-forward-small",
        feed_forward,
        ((12544, 96), (384, 96), (384,), (96, 384), (96,)),
        "two products with weights that fit a cache",
    ),
    Case(
        "mlp", mlp, ((65536, 64),) + ((64, 64),) * 6 + ((3, 64),), "thirteen operators"
    ),
    Case(
        "conv-relu-pool",
        conv_relu_pool,
        ((1, 64, 112, 112), (64, 64, 3, 3), (64,)),
        "a window without overlap over a convolution",
    ),
    Case(
        "double-conv",
        double_conv,
        ((1, 64, 112, 112), (64, 64, 3, 3), (64,), (64, 64, 3, 3), (64,)),
        "a halo that is computed again",
    ),
    Case(
        "inverted-residual",
        inverted_residual,
        (
            (4, 24, 56, 56),
            (144, 24, 1, 1),
            (144,),
            (144, 1, 3, 3),
            (144,),
            (24, 144, 1, 1),
            (24,),
        ),
        "a halo between two products",
    ),
    Case(
        "depthwise-pointwise",
        depthwise_pointwise,
        ((4, 32, 112, 112), (32, 1, 3, 3), (32,), (16, 32, 1, 1), (16,)),
        "a window before a product",
    ),
    Case(
        "norm-gate",
        norm_gate,
        (_IMAGE, (16,), (16,), (32, 16, 1, 1), (32,), (32, 1, 3, 3), (32,)),
        "norm, product, halo, gate",
    ),
    Case(
        "gated-feed-forward",
        gated_feed_forward,
        (
            _IMAGE,
            (16,),
            (16,),
            (32, 16, 1, 1),
            (32,),
            (16, 16, 1, 1),
            (16,),
            (1, 16, 1, 1),
        ),
        "a chain of seven operators with a split",
    ),
    Case(
        "pooled-scale",
        pooled_scale,
        (_IMAGE, (16, 16, 1, 1), (16,)),
        "a reduction of everything, then all of it again",
    ),
    Case(
        "gated-depthwise",
        gated_depthwise,
        ((1, 48, 128, 128), (254, 48, 1, 1), (254, 1, 3, 3), (48, 127, 1, 1)),
        "prime extents",
    ),
    Case(
        "conformer-convolution",
        conformer_convolution,
        (
            (2, 512, 512),
            (512,),
            (512,),
            (1024, 512, 1),
            (1024,),
            (512, 1, 31),
            (512,),
            (512,),
            (512, 512, 1),
            (512,),
        ),
        "a long halo and transposes",
    ),
    Case(
        "patch-norm-linear",
        patch_norm_linear,
        ((16, 144, 32, 32), (144,), (144,), (96, 144)),
        "regrouped indices",
    ),
    Case(
        "add-norm",
        add_norm,
        ((4096, 768), (4096, 768), (768,), (768,)),
        "a result that is used inside as well",
    ),
)
