"""Whole models through the default backend: one record, one graph, eager's results."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from magweld.api import CompiledGraph
from magweld.frontend import Traced, trace

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module that loads the models of the demo."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module("models")


def require_one_graph(traced: Traced) -> CompiledGraph:
    """Require that two calls made one record that magweld compiled."""
    found = traced.stats()
    assert (found["records"], found["hits"], found["breaks"]) == (1, 1, 0), (
        traced.explain()
    )
    compiled = traced.records[0].compiled
    assert isinstance(compiled, CompiledGraph), traced.explain()
    return compiled


def assert_close(result: Tensor, expected: Tensor) -> None:
    """Allow for sums in another order, relative to the largest magnitude."""
    assert result.stride() == expected.stride()
    scale = float(expected.abs().max())
    torch.testing.assert_close(result, expected, rtol=0.0, atol=1e-5 * scale)


@pytest.mark.whole
@torch.no_grad()
def test_an_image_model(models: Any) -> None:
    model = models.load_image_model("resnet18")
    traced = trace(model)
    traced(models.photograph())
    image = models.photograph(shift=40)
    assert_close(traced(image), model(image))
    report = require_one_graph(traced).report()
    assert not report["externals"]


@torch.no_grad()
@pytest.mark.whole
def test_a_sentence_model(models: Any, whole: bool) -> None:
    loaded = models.load_sentence_model()
    if not whole:  # layers are alike
        encoder = loaded.encoder.model.encoder
        encoder.layer = encoder.layer[:2]
    traced = trace(loaded.encoder)
    length = 24
    traced(**loaded.tokens((models.QUERY, models.SENTENCES[0]), length))
    batch = loaded.tokens((models.SENTENCES[1], models.SENTENCES[4]), length)
    assert_close(traced(**batch), loaded.encoder(**batch))
    compiled = require_one_graph(traced)
    groups = compiled.report()["groups"]
    before, after = (
        sum(group.get(f"traffic_{when}", 0) for group in groups)
        for when in ("before", "after")
    )
    assert after < before
