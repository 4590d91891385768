"""The subgraphs' arguments at the sizes of the papers that they are from."""

from __future__ import annotations

from subgraph_cases import Shape

_HEADS = (64, 12, 128, 64)
_IMAGES = (64, 16, 256, 256)

# Name of a case in `subgraph_cases` -> shapes of its arguments.
PAPER_SHAPES: dict[str, tuple[Shape, ...]] = {
    "scores": (_HEADS, (64, 12, 64, 128), (64, 1, 1, 128)),
    "attention": (_HEADS, _HEADS, _HEADS, (64, 1, 1, 128)),
    "long-attention": ((1, 16, 4096, 64),) * 3,
    "window-attention": ((4096, 3, 49, 32),) * 3 + ((1, 3, 49, 49),),
    "channel-attention": ((1, 1, 48, 65536),) * 3 + ((1, 1, 1),),
    "linear-add-norm": (
        (8192, 768),
        (768, 768),
        (768,),
        (8192, 768),
        (768,),
        (768,),
    ),
    "embedding-norm": (
        (64, 128),
        (64, 128),
        (30522, 768),
        (128, 768),
        (2, 768),
        (768,),
        (768,),
    ),
    "feed-forward": ((8192, 768), (3072, 768), (3072,), (768, 3072), (768,)),
    "feed-forward-small": ((200704, 96), (384, 96), (384,), (96, 384), (96,)),
    "mlp": ((2073600, 64),) + ((64, 64),) * 6 + ((3, 64),),
    "conv-relu-pool": ((64, 64, 112, 112), (64, 64, 3, 3), (64,)),
    "double-conv": (
        (1, 64, 224, 224),
        (64, 64, 3, 3),
        (64,),
        (64, 64, 3, 3),
        (64,),
    ),
    "inverted-residual": (
        (64, 24, 56, 56),
        (144, 24, 1, 1),
        (144,),
        (144, 1, 3, 3),
        (144,),
        (24, 144, 1, 1),
        (24,),
    ),
    "depthwise-pointwise": (
        (64, 32, 112, 112),
        (32, 1, 3, 3),
        (32,),
        (16, 32, 1, 1),
        (16,),
    ),
    "norm-gate": (
        _IMAGES,
        (16,),
        (16,),
        (32, 16, 1, 1),
        (32,),
        (32, 1, 3, 3),
        (32,),
    ),
    "gated-feed-forward": (
        _IMAGES,
        (16,),
        (16,),
        (32, 16, 1, 1),
        (32,),
        (16, 16, 1, 1),
        (16,),
        (1, 16, 1, 1),
    ),
    "pooled-scale": (_IMAGES, (16, 16, 1, 1), (16,)),
    "gated-depthwise": (
        (1, 48, 256, 256),
        (254, 48, 1, 1),
        (254, 1, 3, 3),
        (48, 127, 1, 1),
    ),
    "conformer-convolution": (
        (64, 512, 512),
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
    "patch-norm-linear": ((64, 144, 32, 32), (144,), (144,), (96, 144)),
    "add-norm": ((8192, 768), (8192, 768), (768,), (768,)),
}
