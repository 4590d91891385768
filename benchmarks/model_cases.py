"""The whole models of the benchmark, with seeded random weights and inputs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
import models
import torch
from papers.bsrn import BSRN
from papers.conformer import Conformer
from papers.nafnet import NAFNet
from papers.nerf import NeRF
from papers.restormer import Restormer
from papers.unet import UNet
from torch import Tensor, nn
from torch.func import functional_call

TOKENS = 128


class FirstOutput(nn.Module):
    """A language model that returns its last hidden state alone."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return [batch, tokens, width]."""
        return self.model(input_ids=input_ids, attention_mask=attention_mask)[0]


class Unmasked(nn.Module):
    """A language model of token numbers alone."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = FirstOutput(model)

    def forward(self, input_ids: Tensor) -> Tensor:
        return self.model(input_ids, None)


@dataclass(frozen=True)
class Case:
    """A model and its inputs.

    Attributes:
        build: Makes the model.
        inputs: Returns the inputs for a size of the batch, in the model's order.
    """

    build: Callable[[], nn.Module]
    inputs: Callable[[int], tuple[Tensor, ...]]

    def make(self, batch: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
        """Return the model, to be used for inference, and its inputs."""
        torch.manual_seed(0)
        model = self.build().eval()
        with torch.no_grad():
            inputs = self.inputs(batch)
            settle(model, inputs)
        return model, inputs


def settle(model: nn.Module, inputs: tuple[Tensor, ...]) -> None:
    """Give batch norms the statistics of the inputs: activations stay in range."""
    norms = [
        m for m in model.modules() if isinstance(m, nn.modules.batchnorm._NormBase)
    ]
    for norm in norms:
        norm.momentum = 1.0
        norm.train()
    if norms:
        model(*inputs)
    model.eval()


def stateless(model: nn.Module, inputs: int, names: list[str]) -> Callable[..., Tensor]:
    """Return a model as a function of its inputs, then of its state by name."""

    def call(*tensors: Tensor) -> Tensor:
        state = dict(zip(names, tensors[inputs:], strict=True))
        result: Tensor = functional_call(model, state, tensors[:inputs])
        return result

    return call


def bert() -> nn.Module:
    """BERT-base with its pooler left out."""
    from transformers import BertConfig, BertModel

    return FirstOutput(BertModel(BertConfig(), add_pooling_layer=False))


def sentence_encoder() -> nn.Module:
    """MiniLM-L6 with its trained weights."""
    return models.load_sentence_model().encoder


def tokens(batch: int) -> tuple[Tensor, ...]:
    """Return token numbers and masks; rows end in padding of different lengths."""
    lengths = torch.arange(batch) * 7 % (TOKENS // 2)
    mask = torch.arange(TOKENS) < TOKENS - lengths[:, None]
    return torch.randint(1000, 30000, (batch, TOKENS)), mask.to(torch.int64)


def timm_case(name: str, size: int = 224) -> Case:
    """Return an image model of timm's."""
    return Case(lambda: models.load_image_model(name), pictures(size))


def pictures(size: int) -> Callable[[int], tuple[Tensor, ...]]:
    """Return a maker of images."""

    def make(batch: int) -> tuple[Tensor, ...]:
        return (torch.cat([models.photograph(size, i) for i in range(batch)]),)

    return make


def spectra(batch: int) -> tuple[Tensor, ...]:
    """Return spectra of five seconds, a frame every 10 ms."""
    return (torch.randn(batch, 512, 80),)


def rays(batch: int) -> tuple[Tensor, ...]:
    """Return points and directions, 4096 for each of the batch."""
    points = torch.rand(batch * 4096, 3) * 2 - 1
    return points, nn.functional.normalize(torch.randn_like(points), dim=1)


CASES: dict[str, Case] = {
    "minilm": Case(sentence_encoder, tokens),
    "bert-base": Case(bert, tokens),
    "vit-small": timm_case("vit_small_patch16_224"),
    "swin-tiny": timm_case("swin_tiny_patch4_window7_224"),
    "convnext-tiny": timm_case("convnext_tiny"),
    "resnet18": timm_case("resnet18"),
    "resnet50": timm_case("resnet50"),
    "mobilenetv2": timm_case("mobilenetv2_100"),
    "mobilevit": timm_case("mobilevit_s", 256),
    "unet": Case(UNet, pictures(128)),
    "nafnet": Case(NAFNet, pictures(128)),
    "conformer": Case(Conformer, spectra),
    "restormer": Case(Restormer, pictures(64)),
    "bsrn": Case(BSRN, pictures(64)),
    "nerf": Case(NeRF, rays),
}
