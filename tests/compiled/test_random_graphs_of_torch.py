"""Random graphs of torch functions give compiled what they give in eager mode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import comparing
import pytest
import torch
from comparing import explanation, options_of, outcome
from torch import Tensor, fx
from torch_calls import branched_graph, large_graph, random_graph
from torch_graphs import Graph

# Usually, and with `--whole`; `--random-graphs` for more.
GRAPHS = (5, 12)
LARGE_GRAPHS = (1, 3)
BRANCHED_GRAPHS = (1, 3)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("make", "usual"),
    [
        (random_graph, GRAPHS),
        (large_graph, LARGE_GRAPHS),
        (branched_graph, BRANCHED_GRAPHS),
    ],
)
def test_compiled_is_eager(
    request: pytest.FixtureRequest,
    make: Callable[[int], Graph],
    usual: tuple[int, int],
    whole: bool,
) -> None:
    asked = request.config.getoption("--random-graphs", default=None)
    count = asked or usual[whole]
    first = request.config.getoption("--random-seed", default=None) or 0
    refused: Counter[str] = Counter()
    for seed in range(first, first + count):
        options = options_of(seed)
        found = outcome(make(seed), options)
        assert not found.failure, explanation(make(seed), options)
        if found.refused:
            refused[found.refused] += 1
    assert refused.total() < max(4, count // 4), refused


def doubling(module: fx.GraphModule, inputs: Sequence[Tensor], **_: Any) -> Any:
    """Stand for a compiler: absolute values are twice as large."""
    graph = fx.Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    for node in graph.find_nodes(op="call_function", target=torch.abs):
        with graph.inserting_after(node):
            twice = graph.call_function(torch.mul, (node, 2))
        node.replace_all_uses_with(twice, lambda user, of=twice: user is not of)
    return fx.GraphModule(torch.nn.Module(), graph)


def test_what_is_wrong_is_found_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "compile_graph", doubling)
    options = options_of(0)
    wrong = [s for s in range(20) if outcome(random_graph(s), options).failure]
    assert len(wrong) > 1
    assert "call_function[target=torch.abs]" in explanation(
        random_graph(wrong[0]), options
    )
