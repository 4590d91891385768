"""Graphs whose Python code is generated when they first run."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor, fx, nn

from magweld.frontend import trace
from magweld.graphs.lazy_code import LazyGraphModule


@pytest.fixture
def generated(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The codes that were generated, in order."""
    codes: list[str] = []
    generate = LazyGraphModule._real_recompile

    def noted(self: LazyGraphModule) -> Any:
        made = generate(self)
        codes.append(made.src)
        return made

    monkeypatch.setattr(LazyGraphModule, "_real_recompile", noted)
    return codes


def graph() -> fx.Graph:
    made = fx.Graph()
    x = made.placeholder("x")
    made.output((made.call_function(torch.relu, (made.call_method("neg", (x,)),)),))
    return made


def test_the_first_run_generates_the_code(generated: list[str]) -> None:
    module, plain = LazyGraphModule({}, graph()), fx.GraphModule({}, graph())
    forward, x = module.forward, torch.randn(4)
    assert generated == []
    for _ in range(3):
        assert torch.equal(forward(x)[0], plain(x)[0])
        assert torch.equal(module(x)[0], plain(x)[0])
    assert generated == [plain.code]
    assert module.code == plain.code


def test_who_asks_gets_the_code(generated: list[str]) -> None:
    module = LazyGraphModule({}, graph())
    assert module.code == fx.GraphModule({}, graph()).code
    assert len(generated) == 1


def test_a_changed_graph_is_generated_anew(generated: list[str]) -> None:
    module = LazyGraphModule({}, graph())
    forward, x = module.forward, torch.randn(4)
    forward(x)
    (node,) = module.graph.find_nodes(op="call_method")
    node.target = "abs"
    module.recompile()
    assert torch.equal(forward(x)[0], x.abs())
    assert torch.equal(module.forward(x)[0], x.abs())
    assert len(generated) == 2


def test_hooks_of_all_modules_do_not_run() -> None:
    seen: list[Any] = []
    handle = nn.modules.module.register_module_forward_hook(
        lambda *args: seen.append(args)
    )
    try:
        forward = LazyGraphModule({}, graph()).forward
        forward(torch.ones(2))
        forward(torch.ones(2))
    finally:
        handle.remove()
    assert seen == []


@pytest.mark.parametrize("runs", [False, True])
def test_copies(runs: bool) -> None:
    module, x = LazyGraphModule({}, graph()), torch.randn(4)
    if runs:
        module(x)
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert torch.equal(other(x)[0], (-x).relu())


def test_a_record_that_no_call_hits_has_no_code(generated: list[str]) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU()).eval()
    fast = trace(model, backend="eager", dynamic=False)

    def same(rows: int) -> None:
        x: Tensor = torch.randn(rows, 3)
        assert torch.equal(fast(x), model(x))

    for rows in (2, 3, 4):
        same(rows)
    assert len(fast.records) == 3
    assert generated == []
    for rows in (3, 3, 3):
        same(rows)
    assert len(generated) == 1
    assert fast.records[0].graph.code == generated[0]
