"""What GPU code is checked on without a GPU: small subgraphs and small models.

The subgraphs are those of `subgraph_cases.py` with fewer channels, rows and pixels:
each keeps several tiles along every dimension and extents that divide nothing. The
models are those of `model_cases.py` with few layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import subgraph_cases
import torch
from model_cases import Unmasked, settle, stateless
from papers.bsrn import BSRN
from papers.conformer import Conformer
from papers.nafnet import NAFNet
from papers.nerf import NeRF
from papers.restormer import Restormer
from papers.unet import UNet
from torch import Tensor, nn
from torch.fx.experimental.proxy_tensor import make_fx

from magweld.importer.importer import ImportedGraph, import_graph

_SMALL_SHAPES: dict[str, tuple[subgraph_cases.Shape, ...]] = {
    "scores": ((2, 2, 32, 16), (2, 2, 16, 32), (2, 1, 1, 32)),
    "attention": ((2, 2, 32, 16),) * 3 + ((2, 1, 1, 32),),
    "long-attention": ((1, 2, 64, 16),) * 3,
    "window-attention": ((4, 3, 49, 32),) * 3 + ((1, 3, 49, 49),),
    "channel-attention": ((1, 1, 12, 1024),) * 3 + ((1, 1, 1),),
    "linear-add-norm": ((16, 96), (96, 96), (96,), (16, 96), (96,), (96,)),
    "embedding-norm": ((2, 8), (2, 8), (100, 96), (8, 96), (2, 96), (96,), (96,)),
    "feed-forward": ((16, 48), (192, 48), (192,), (48, 192), (48,)),
    "feed-forward-small": ((64, 24), (96, 24), (96,), (24, 96), (24,)),
    "mlp": ((64, 16),) + ((16, 16),) * 6 + ((3, 16),),
    "conv-relu-pool": ((1, 8, 20, 20), (16, 8, 3, 3), (16,)),
    "double-conv": ((1, 8, 14, 14), (8, 8, 3, 3), (8,), (8, 8, 3, 3), (8,)),
    "inverted-residual": (
        (2, 8, 14, 14),
        (24, 8, 1, 1),
        (24,),
        (24, 1, 3, 3),
        (24,),
        (8, 24, 1, 1),
        (8,),
    ),
    "depthwise-pointwise": (
        (2, 8, 14, 14),
        (8, 1, 3, 3),
        (8,),
        (16, 8, 1, 1),
        (16,),
    ),
    "norm-gate": (
        (1, 8, 16, 16),
        (8,),
        (8,),
        (16, 8, 1, 1),
        (16,),
        (16, 1, 3, 3),
        (16,),
    ),
    "gated-feed-forward": (
        (1, 8, 16, 16),
        (8,),
        (8,),
        (16, 8, 1, 1),
        (16,),
        (8, 8, 1, 1),
        (8,),
        (1, 8, 1, 1),
    ),
    "pooled-scale": ((1, 8, 16, 16), (8, 8, 1, 1), (8,)),
    "gated-depthwise": ((1, 8, 12, 12), (26, 8, 1, 1), (26, 1, 3, 3), (8, 13, 1, 1)),
    "conformer-convolution": (
        (1, 40, 32),
        (32,),
        (32,),
        (64, 32, 1),
        (64,),
        (32, 1, 31),
        (32,),
        (32,),
        (32, 32, 1),
        (32,),
    ),
    "patch-norm-linear": ((2, 24, 8, 8), (24,), (24,), (16, 24)),
    "add-norm": ((32, 96), (32, 96), (96,), (96,)),
}
_SMALL_INDICES = {"embedding-norm": ((0, 100), (1, 2))}

SUBGRAPHS = {
    case.name: replace(
        case,
        shapes=_SMALL_SHAPES[case.name],
        indices=_SMALL_INDICES.get(case.name, case.indices),
    )
    for case in subgraph_cases.CASES
}


@dataclass(frozen=True)
class Model:
    """A small model; `build` makes it, `inputs` are its arguments."""

    build: Callable[[], nn.Module]
    inputs: Callable[[], tuple[Tensor, ...]]

    def make(self) -> tuple[nn.Module, tuple[Tensor, ...]]:
        """Return the model for inference, with seeded weights, and its inputs."""
        torch.manual_seed(0)
        model = self.build().eval()
        inputs = self.inputs()
        with torch.no_grad():
            settle(model, inputs)
        return model, inputs


def _bert() -> nn.Module:
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=200,
        hidden_size=48,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=96,
    )
    return Unmasked(BertModel(config, add_pooling_layer=False))


def _timm(name: str, size: int, **options: Any) -> Model:
    def build() -> nn.Module:
        import timm

        model: nn.Module = timm.create_model(name, num_classes=10, **options)
        return model

    return Model(build, _images(size))


def _images(size: int) -> Callable[[], tuple[Tensor, ...]]:
    return lambda: (torch.randn(1, 3, size, size),)


def _rays() -> tuple[Tensor, ...]:
    points = torch.rand(64, 3) * 2 - 1
    return points, nn.functional.normalize(torch.randn_like(points), dim=1)


_VIT = {"embed_dim": 48, "depth": 1, "num_heads": 3, "img_size": 32}
_SWIN = {"img_size": 56, "depths": (2, 1), "num_heads": (2, 4), "embed_dim": 32}
MODELS: dict[str, Model] = {
    "bert": Model(_bert, lambda: (torch.randint(0, 200, (1, 16)),)),
    "vit": _timm("vit_tiny_patch16_224", 32, **_VIT),
    "swin": _timm("swin_tiny_patch4_window7_224", 56, **_SWIN),
    "convnext": _timm("convnext_tiny", 64, depths=(1, 1, 1, 1), dims=(16, 32, 48, 64)),
    "resnet18": _timm("resnet18", 64),
    "resnet50": _timm("resnet50", 64),
    "mobilenetv2": _timm("mobilenetv2_050", 64),
    "mobilevit": _timm("mobilevit_xxs", 64),
    "unet": Model(lambda: UNet(8, 2), _images(32)),
    "nafnet": Model(lambda: NAFNet(8, (1,), 1, (1,)), _images(16)),
    "conformer": Model(
        lambda: Conformer(16, 1, 2, 7, 16), lambda: (torch.randn(1, 32, 16),)
    ),
    "restormer": Model(
        lambda: Restormer(8, (1, 1, 1, 1), (1, 2, 2, 4), 1), _images(16)
    ),
    "bsrn": Model(lambda: BSRN(8, 1), _images(16)),
    "nerf": Model(lambda: NeRF(32, 6), _rays),
}


def in_turns(cases: Sequence[str], dtypes: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield all pairs of cases and types: every case in some type before any in two.

    Types change from case to case, so that a run that is ended early has seen all.
    """
    for turn in range(len(dtypes)):
        for number, case in enumerate(cases):
            yield case, dtypes[(number + turn) % len(dtypes)]


@dataclass(frozen=True)
class Captured:
    """A case as the compiler gets it for a GPU.

    Attributes:
        graph: The imported graph.
        function: The case, called with `tensors`.
        tensors: Arguments, then the state of a model.
    """

    graph: ImportedGraph
    function: Callable[..., Any]
    tensors: list[Tensor]


def captured(name: str, cast: torch.dtype = torch.float32) -> Captured:
    """Return a case by its name in `SUBGRAPHS` or `MODELS`, its tensors in a type."""
    if name in MODELS:
        model, inputs = MODELS[name].make()
        state = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        tensors = [*inputs, *(tensor.detach() for tensor in state.values())]
        function = stateless(model, len(inputs), list(state))
    else:
        case = SUBGRAPHS[name]
        tensors, function = case.arguments(), case.function
    tensors = [x.to(cast) if x.is_floating_point() else x for x in tensors]
    with torch.no_grad():
        traced = make_fx(function, tracing_mode="fake", pre_dispatch=True)(*tensors)
    meta = torch.device("meta")
    graph = import_graph(traced, tensors, look_ups=True, device=meta)
    return Captured(graph, function, tensors)
