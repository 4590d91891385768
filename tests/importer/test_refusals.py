"""Graphs and inputs that are refused: each with its id, a hint and the source line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from magweld.diagnostics import UnsupportedError
from magweld.frontend import trace
from magweld.importer.importer import import_graph
from magweld.importer.nodes import results_of
from magweld.layouts import note_layout


def tensor(*shape: int) -> torch.Tensor:
    count = torch.Size(shape).numel()
    return (torch.arange(count, dtype=torch.float32) / 7 - 1).reshape(shape)


def complex_values(x: torch.Tensor) -> Any:
    return torch.fft.rfft(x.double())


REFUSED: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "data-dependent-shape": (lambda x: x.nonzero(), (tensor(3),)),
    "tensor-dtype": (complex_values, (tensor(4),)),
    "aliased-mutation": (lambda a, b: a.add_(b), (tensor(3, 4), torch.empty(0))),
    "overlapping-mutation": (lambda x: x.expand(3, 4)[1].add_(1), (tensor(1, 4),)),
    "input-metadata-mutation": (lambda x: x.t_().sum(), (tensor(3, 4),)),
    "output-view-dtype": (lambda x: x.view(torch.int32), (tensor(3, 4),)),
    "random-order": (lambda x: F.alpha_dropout(x.t(), 0.5, True), (tensor(3, 4),)),
    "storage-read": (
        lambda x: (x + 1)[1:].as_strided((2,), (1,), 0) * 2,
        (tensor(4, 6),),
    ),
}


MEMORY: dict[str, Callable[[torch.Tensor], Any]] = {
    "as_strided": lambda x: x.as_strided((2,), (3,), 0) * 2,
    "as_strided_copy": lambda x: torch.as_strided_copy(x, (2,), (3,), 0) * 2,
    "as_strided_scatter": lambda x: torch.as_strided_scatter(
        x, torch.ones(2), (2,), (3,), 0
    ),
}


@pytest.mark.parametrize("name", MEMORY)
@pytest.mark.parametrize(
    "operand",
    [
        lambda x: x[1:],
        lambda x: x[:, ::2],
        lambda x: x.t(),
        lambda x: x[:1].expand(4, 6),
    ],
)
def test_what_counts_elements_in_memory_needs_all_of_it(
    record: Any, name: str, operand: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    function, x = MEMORY[name], operand(tensor(4, 6))
    graph = record(function, x)
    with pytest.raises(UnsupportedError) as caught:
        import_graph(graph, (x,))
    assert caught.value.id == "storage-read"


@pytest.mark.parametrize("id_", REFUSED)
def test_refusals_name_themselves(record: Any, id_: str) -> None:
    function, inputs = REFUSED[id_]
    if id_ == "aliased-mutation":
        inputs = (inputs[0], inputs[0][1:2])
    graph = record(function, *[x.clone() for x in inputs])
    with pytest.raises(UnsupportedError) as caught:
        import_graph(graph, inputs)
    assert caught.value.id == id_
    assert caught.value.hint


@pytest.mark.parametrize(
    "x",
    [
        tensor(1, 4).expand(3, 4),
        tensor(6).as_strided((3, 4), (1, 1)),
        tensor(8).unfold(0, 3, 2),
    ],
    ids=["expanded", "strided", "windows"],
)
@pytest.mark.parametrize(
    "write",
    [lambda x: x.add_(1), lambda x: x[1].mul_(2), lambda x: F.relu(x[:, 1:], True)],
    ids=["whole", "row", "inplace"],
)
def test_inputs_whose_elements_overlap_are_not_written_to(
    record: Any, x: torch.Tensor, write: Any
) -> None:
    graph = record(write, tensor(*x.shape))
    with pytest.raises(UnsupportedError) as caught:
        import_graph(graph, [x])
    assert caught.value.id == "overlapping-mutation"


def test_what_overlaps_may_be_read(check: Any) -> None:
    def masked(x: torch.Tensor) -> Any:
        mask = torch.zeros(4)
        mask[1:].fill_(1)
        wide = mask.expand(3, 4)
        x.add_(wide)
        return x * wide.clone().mul_(2), x.unfold(0, 2, 1).sum(-1)

    check(masked, tensor(3, 4))


def test_refused_inputs(record: Any) -> None:
    graph = record(lambda x: x * 2, tensor(3))
    refused = {
        "tensor-device": torch.empty(3, device="meta"),
        "tensor-layout": tensor(3).to_sparse(),
        "tensor-dtype": torch.zeros(3, dtype=torch.complex128),
    }
    for id_, value in refused.items():
        with pytest.raises(UnsupportedError) as caught:
            import_graph(graph, [value])
        assert caught.value.id == id_


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x.to("meta"),
        lambda x: (x.to(device="meta", dtype=torch.float64), x * 2),
        lambda x: torch.zeros_like(x, device="meta"),
    ],
    ids=["copy", "conversion", "new"],
)
def test_results_elsewhere(record: Any, program: Any) -> None:
    with pytest.raises(UnsupportedError) as caught:
        import_graph(record(program, tensor(3)), [tensor(3)])
    assert caught.value.id == "tensor-device"


def test_refusal_points_at_the_source_line(record: Any) -> None:
    graph = record(lambda x: x.nonzero(), tensor(3))
    for node in graph.graph.nodes:
        node.meta["stack_trace"] = '  File "model.py", line 12, in forward\n    x'
    with pytest.raises(UnsupportedError, match=r"model\.py:12"):
        import_graph(graph, [tensor(3)])


def test_views_of_results_with_strides_of_their_own(record: Any) -> None:
    def views(x: torch.Tensor) -> Any:
        y = x * 2
        return y, y.transpose(0, 1)

    x = tensor(3, 3)
    graph = record(views, x)
    note_layout(graph.graph.find_nodes(op="placeholder")[0], x)
    first, second = results_of(graph.graph)
    note_layout(first, x)
    note_layout(second, x)  # it is transposed
    with pytest.raises(UnsupportedError) as caught:
        import_graph(graph, [x])
    assert caught.value.id == "output-view-strides"


def test_strides_for_other_sizes_are_those_of_the_captured_run(record: Any) -> None:
    x, y = tensor(3, 3), tensor(4, 3)
    for noted, refused in ((x.T, False), (x, True)):
        graph = record(lambda x: x.transpose(0, 1) + 1, x)
        import_graph(graph, [y])  # nothing was noted
        note_layout(graph.graph.find_nodes(op="placeholder")[0], x)
        note_layout(results_of(graph.graph)[0], noted)
        if not refused:
            import_graph(graph, [y])
            continue
        with pytest.raises(UnsupportedError) as caught:
            import_graph(graph, [y])
        assert caught.value.id == "output-strides"


def test_statistics_whose_elements_are_at_one_place_are_left_to_torch() -> None:
    def program(x: torch.Tensor, mean: torch.Tensor, variance: torch.Tensor) -> Any:
        normed = torch.ops.aten._native_batch_norm_legit
        return normed(x, None, None, mean, variance, True, 0.1, 1e-5)[0]

    fast = trace(program, compile="now")
    for _ in range(3):
        x = torch.randn(4, 3)
        found, expected = (
            function(x, torch.zeros(1).expand(3), torch.ones(1).expand(3))
            for function in (fast, program)
        )
        torch.testing.assert_close(found, expected)
