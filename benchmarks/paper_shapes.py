"""The sizes of the papers: what differs from those of this machine."""

from __future__ import annotations

from subgraph_cases import Case, Shape

_HEADS = (64, 12, 128, 64)
_IMAGES = (64, 16, 256, 256)
_ROWS = (8192, 768)
_LONG = (1, 16, 4096, 64)
_WINDOWS = (4096, 3, 49, 32)

# Name of a case -> the arguments that are larger there, by position.
_LARGER: dict[str, dict[int, Shape]] = {
    "scores": {0: _HEADS, 1: (64, 12, 64, 128), 2: (64, 1, 1, 128)},
    "attention": {0: _HEADS, 1: _HEADS, 2: _HEADS, 3: (64, 1, 1, 128)},
    "long-attention": {0: _LONG, 1: _LONG, 2: _LONG},
    "window-attention": {0: _WINDOWS, 1: _WINDOWS, 2: _WINDOWS},
    "linear-add-norm": {0: _ROWS, 3: _ROWS},
    "embedding-norm": {0: (64, 128), 1: (64, 128)},
    "feed-forward": {0: _ROWS},
    "feed-forward-small": {0: (200704, 96)},
    "mlp": {0: (2073600, 64)},
    "conv-relu-pool": {0: (64, 64, 112, 112)},
    "double-conv": {0: (1, 64, 224, 224)},
    "inverted-residual": {0: (64, 24, 56, 56)},
    "depthwise-pointwise": {0: (64, 32, 112, 112)},
    "norm-gate": {0: _IMAGES},
    "gated-feed-forward": {0: _IMAGES},
    "pooled-scale": {0: _IMAGES},
    "gated-depthwise": {0: (1, 48, 256, 256)},
    "conformer-convolution": {0: (64, 512, 512)},
    "patch-norm-linear": {0: (64, 144, 32, 32)},
    "add-norm": {0: _ROWS, 1: _ROWS},
}


def paper_shapes(case: Case) -> list[Shape]:
    """Return the shapes of a case's arguments at the size of its paper."""
    larger = _LARGER.get(case.name, {})
    return [larger.get(number, shape) for number, shape in enumerate(case.shapes)]
