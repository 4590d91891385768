"""Owns a page about a small model, as `magweld explain --html` writes it."""

from __future__ import annotations

import copy
from functools import partial

import pytest
import torch

from magweld.api import compile_graph
from magweld.compiler_options import CompileOptions
from magweld.frontend import trace
from magweld.tools.view.page import page


class Model(torch.nn.Module):
    """A product for the library, a norm, and a sort that torch runs."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(96, 160)
        self.norm = torch.nn.LayerNorm(160)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.nn.functional.gelu(self.linear(x))
        return self.norm(y).sort(dim=1)[0]


@pytest.fixture(scope="session")
def page_text() -> str:
    torch.manual_seed(0)
    model, x = Model().eval(), torch.randn(512, 96)
    # Whether a library computes the product is no matter of this machine then.
    options = CompileOptions(library="always")
    traced = trace(model, backend=partial(compile_graph, options=options))
    with torch.no_grad():
        traced(x)
    compiled = traced.records[0].compiled
    before = [{"record": 0, **copy.deepcopy(compiled.report())}]
    # As if the product had been a kernel.
    before[0]["graphs"][0]["steps"][0]["kind"] = "generated"
    compiled.measure([x, *model.parameters()], 1)
    return page("a <b> & 'c'", traced.records, passes=True, before=before)
