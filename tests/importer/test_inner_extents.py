"""Which operators run through torch for their sizes inside of tensors, and how."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from recording import Operators
from torch import Tensor, fx
from torch.nn import functional as F

from magweld.artifact import StandIns
from magweld.importer.importer import ImportedGraph, import_graph
from magweld.importer.nodes import values_of

SIZES = StandIns((37, 41))
Shapes = tuple[tuple[int, ...], ...]


def imported(
    function: Callable[..., Tensor], *shapes: tuple[int, ...]
) -> ImportedGraph:
    """Import a function of tensors whose extents 37 and 41 are sizes of the call."""
    graph = fx.symbolic_trace(function)
    return import_graph(graph, [torch.zeros(s) for s in shapes], stand_ins=SIZES)


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return attention of (batch, heads, length, size), heads side by side."""
    mixed = torch.softmax(q @ k.transpose(-1, -2), -1) @ v
    return torch.relu(mixed.transpose(1, 2).flatten(2))


def test_attention_is_one_external_at_any_sizes() -> None:
    found = imported(attention, *[(37, 4, 41, 8)] * 3)
    (external,) = found.externals.values()
    targets = [str(node.target) for node in external.beside]
    assert "aten._softmax.default" in targets, "a softmax is left whole"
    assert targets.count("aten.bmm.default") == 2
    assert "relu" not in "".join(targets)
    for sizes in ((2, 3), (5, 5), (1, 7), (3, 1)):
        q, k, v = (torch.randn(sizes[0], 4, sizes[1], 8) for _ in range(3))
        given = dict(zip(("arg0_1", "arg1_1", "arg2_1"), (q, k, v), strict=True))
        operands = [given[node.name] for node in external.operands]
        (result,) = found.at(sizes).run_external(external.node.name, operands)
        rows = torch.relu(result.flatten(2))
        torch.testing.assert_close(rows, attention(q, k, v))


def fused_attention(batch: int, length: int) -> Callable[[Tensor, Tensor], Tensor]:
    """Return torch's attention of queries, keys and values that lie side by side.

    No vector is as short as a head, so it is not generated.
    """

    def attend(x: Tensor, mask: Tensor) -> Tensor:
        parts = x.split(32, -1)
        q, k, v = (
            parts[number].view(batch, length, 8, 4).transpose(1, 2)
            for number in range(3)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return torch.relu(mixed.transpose(1, 2).reshape(batch, length, 32))

    return attend


def test_views_around_fused_attention_run_with_it() -> None:
    graph = fx.symbolic_trace(fused_attention(*SIZES.numbers))
    given = [torch.zeros(37, 41, 96), torch.zeros(37, 1, 1, 41)]
    found = import_graph(graph, given, stand_ins=SIZES)
    (external,) = found.externals.values()
    assert external.strides is None, "it draws no random numbers"
    targets = {str(node.target) for node in external.beside}
    assert {"aten.slice.Tensor", "<built-in function getitem>"} <= targets
    for batch, length in ((2, 3), (5, 5), (1, 7), (3, 1)):
        x = torch.randn(batch, length, 96)
        mask = torch.randn(batch, 1, 1, length)
        values = {"arg0_1": x, "arg1_1": mask}
        operands = [values[node.name] for node in external.operands]
        sized = found.at((batch, length))
        with Operators() as ran:
            (result,) = sized.run_external(external.node.name, operands)
        assert ran.names[:3] == ["aten.as_strided.default"] * 3, "queries, keys, values"
        assert "attention" in ran.names[3]
        expected = fused_attention(batch, length)(x, mask)
        torch.testing.assert_close(torch.relu(result.flatten(2)), expected)


GENERATED: dict[str, tuple[Callable[..., Tensor], Shapes]] = {
    "rows": (lambda x, w: torch.softmax(x * w, -1), ((37, 41, 8), (8,))),
    "one size inside of views": (
        lambda x: torch.tanh(x.view(37, 3, 2, 4).permute(1, 0, 2, 3)[0]),
        ((37, 24),),
    ),
    "no size": (lambda x: torch.tanh(x.t()), ((5, 8),)),
}


@pytest.mark.parametrize("name", GENERATED)
def test_outermost_sizes_are_generated(name: str) -> None:
    function, shapes = GENERATED[name]
    assert not imported(function, *shapes).externals


INNER: dict[str, tuple[Callable[..., Tensor], Shapes, str]] = {
    "an inner extent": (lambda x: torch.tanh(x) + 1, ((3, 37),), "add"),
    "other rows": (lambda x, y: x + y, ((37, 41, 8), (41, 8)), "add"),
    "a sum over rows of each": (lambda x: x.sum(1) * 2, ((37, 41, 8),), "sum_1"),
    "exchanged": (
        lambda x: x.transpose(0, 1).flatten(1) * 2,
        ((37, 41, 8),),
        "transpose",
    ),
}


@pytest.mark.parametrize("name", INNER)
def test_inner_sizes_run_through_torch(name: str) -> None:
    function, shapes, last = INNER[name]
    assert list(imported(function, *shapes).externals) == [last]


def test_what_torch_runs_anyway_runs_with_the_views_around_it() -> None:
    lstm = torch.nn.LSTM(8, 16, batch_first=True)
    weights = [weight.detach() for weight in lstm.parameters()]
    state = torch.zeros(1, 3, 16)

    def function(x: Tensor, state: Tensor, *weights: Tensor) -> Tensor:
        rows, _, _ = torch.lstm(
            x, (state, state), list(weights), True, 1, 0.0, False, False, True
        )
        return torch.relu(rows[:, -1]) * 2

    graph = fx.symbolic_trace(lambda x, h, a, b, c, d: function(x, h, a, b, c, d))
    given = [torch.zeros(3, 41, 8), state, *weights]
    with torch.no_grad():
        found = import_graph(graph, given, stand_ins=SIZES)
        (external,) = found.externals.values()
        targets = [str(node.target) for node in external.beside]
        assert "aten.mkldnn_rnn_layer.default" in targets
        assert not found.has_inner_extents, "generated code is no faster"
        for steps in (2, 5, 30):
            inputs = [torch.randn(3, steps, 8), state, *weights]
            operands = [
                inputs[input_number(node)] if node.op == "placeholder" else state[0]
                for node in external.operands
            ]
            sized = found.at((1, steps))
            with Operators() as ran:
                (result,) = sized.run_external(external.node.name, operands)
            assert not [name for name in ran.names if "rnn_layer" in name]
            torch.testing.assert_close(torch.relu(result) * 2, function(*inputs))


def test_an_operand_may_begin_behind_other_elements() -> None:
    def function(x: Tensor) -> Tensor:
        return torch.tanh(x[..., 2:].transpose(1, 2)).sum(2)

    found = imported(function, (37, 41, 8))
    (external,) = found.externals.values()
    x = torch.randn(6, 4, 8)[1:]
    (result,) = found.at((5, 4)).run_external(external.node.name, [x])
    torch.testing.assert_close(result, function(x))


def test_a_value_that_others_read_is_an_external_of_its_own() -> None:
    def function(x: Tensor) -> Tensor:
        scores = torch.tanh(x)
        return (scores + 1).sum(-1) * (scores * 2).sum(-1)

    found = imported(function, (37, 4, 41))
    (first, *others) = found.externals.values()
    assert [node.name for node in first.beside] == []
    assert len(others) == 2
    assert all(first.node in external.operands for external in others)


def test_what_is_read_behind_a_region_is_a_result_of_it() -> None:
    def function(x: Tensor, more: Tensor) -> Any:
        longer = torch.cat((x, more), 1)
        return torch.relu(longer.sum(1)), longer

    found = imported(function, (3, 37, 8), (3, 37, 8))
    (external,) = found.externals.values()
    assert [str(node.target) for node in external.shown] == ["aten.cat.default"]
    assert [tuple(one.shape) for one in external.results] == [(3, 74, 8), (3, 8)]
    x, more = torch.randn(3, 5, 8), torch.randn(3, 5, 8)
    shown, result = found.at((5, 1)).run_external(external.node.name, [x, more])
    torch.testing.assert_close((torch.relu(result), shown), function(x, more))


def test_what_is_read_in_front_of_a_region_is_an_external_of_its_own() -> None:
    def function(x: Tensor) -> Tensor:
        total = x.sum(1)
        rows = torch.relu(total)
        return (x * total[:, None] * rows[:, None]).sum(1)

    found = imported(function, (3, 37, 8))
    first, second = found.externals.values()
    assert [first.node.name, second.node.name] == ["sum_1", "sum_2"]
    assert first.node in second.operands
    assert (first.shown, second.shown) == ((), ())


def gathered(batch: int) -> Callable[[Tensor, Tensor], Tensor]:
    """Return what gathers by the same indices in each batch and head."""

    def gather(x: Tensor, index: Tensor) -> Tensor:
        return torch.relu(torch.gather(x, -1, index.expand(batch, 4, 8, 6)))

    return gather


@pytest.mark.parametrize("stand_ins", [SIZES, StandIns()], ids=["any size", "one size"])
def test_a_broadcast_that_torch_alone_reads_is_none_of_memory(
    stand_ins: StandIns,
) -> None:
    index = torch.randint(0, 9, (1, 1, 8, 6))
    given = [torch.zeros(37, 4, 8, 9), index]
    graph = fx.symbolic_trace(gathered(37))
    found = import_graph(graph, given, stand_ins=stand_ins)
    (external,) = found.externals.values()
    assert [node.op for node in external.operands] == ["placeholder"] * 2
    assert not found.has_inner_extents
    for batch in (2, 5) if stand_ins else (37,):
        sized = found.at((batch, 1)) if stand_ins else found
        x = torch.randn(batch, 4, 8, 9)
        (result,) = sized.run_external(external.node.name, [x, index])
        torch.testing.assert_close(torch.relu(result), gathered(batch)(x, index))


def test_a_broadcast_that_a_kernel_reads_as_well_is_made_once() -> None:
    def function(x: Tensor, index: Tensor) -> Tensor:
        wide = index.expand(4, 8, 6)
        return torch.gather(x, -1, wide) + wide

    given = [torch.zeros(4, 8, 9), torch.zeros(1, 8, 6, dtype=torch.int64)]
    found = import_graph(fx.symbolic_trace(function), given)
    (external,) = found.externals.values()
    assert [tuple(values_of(node).shape) for node in external.operands] == [
        (4, 8, 9),
        (4, 8, 6),
    ]


def test_indices_that_are_broadcast_are_checked_in_memory() -> None:
    """Native code compares all of them, where a check alone reads them."""

    def function(table: Tensor, index: Tensor) -> Tensor:
        return torch.relu(F.embedding(index.expand(5, 8), table))

    given = [torch.zeros(9, 16), torch.zeros(1, 8, dtype=torch.int64)]
    found = import_graph(fx.symbolic_trace(function), given, look_ups=True)
    assert len(found.index_checks) == 1


# What an image of 61 x 61 is behind a window with steps of two, and a pool.
IMAGES = StandIns((61,), inner=(31, 15))


def residual(x: Tensor, w: Tensor, v: Tensor, *norm: Tensor) -> Tensor:
    """Return channels (batch, 12) of images (batch, 3, size, size)."""
    y = F.conv2d(torch.tanh(x), w, None, 2, 1)
    y = F.relu(F.batch_norm(y, *norm))
    z = F.batch_norm(F.conv2d(y, v, norm[0], 1, 1), *norm)
    return torch.relu(F.max_pool2d(F.relu(z + y), 2).mean((2, 3))) * 2


def residual_inputs(size: int) -> list[Tensor]:
    """Return images, weights, and a norm's mean, variance, factors and terms."""
    shapes = [(2, 3, size, size), (12, 3, 3, 3), (12, 12, 3, 3)]
    norm = torch.randn(12), torch.rand(12) + 0.5, torch.randn(12), torch.randn(12)
    return [*map(torch.randn, shapes), *norm]


def image_graph(function: Callable[..., Tensor]) -> fx.GraphModule:
    """Return the graph of a function of what `residual_inputs` gives."""
    return fx.symbolic_trace(
        lambda x, w, v, mean, variance, factors, terms: function(
            x, w, v, mean, variance, factors, terms
        )
    )


def input_number(node: fx.Node) -> int:
    """Return the position among the inputs of what an import calls `arg0_1`."""
    return int(node.name.removeprefix("arg").removesuffix("_1"))


def run_images(function: Callable[..., Tensor]) -> list[list[str]]:
    """Compare what torch runs for some sizes; return the operators that ran.

    Args:
        function: Of what `residual_inputs` gives; its last two operators are generated.
    """
    given = residual_inputs
    found = import_graph(image_graph(function), given(61), stand_ins=IMAGES)
    (external,) = found.externals.values()
    assert found.has_images
    assert not found.has_inner_extents, "convolutions are torch's at any size"
    names = []
    for size in (7, 16, 9, 33):
        inputs = given(size)
        before = [tensor.clone() for tensor in inputs]
        operands = [inputs[input_number(node)] for node in external.operands]
        with Operators() as ran:
            (result,) = found.at((size,)).run_external(external.node.name, operands)
        expected = function(*inputs)
        torch.testing.assert_close(torch.relu(result) * 2, expected)
        assert all(map(torch.equal, inputs, before)), "no operand is written to"
        names.append(ran.names)
    return names


def test_images_are_one_external_in_few_passes() -> None:
    torch.manual_seed(0)
    for names in run_images(residual):
        assert names.count("aten.convolution.default") == 2
        assert not [name for name in names if "batch_norm" in name]
        assert names.count("aten.relu_.default") == 2
        assert names.count("aten.add_.Tensor") == 1
        assert "aten.relu.default" not in names


def test_channels_of_images_lie_next_to_each_other() -> None:
    torch.manual_seed(0)
    layouts: list[bool] = []

    class Layouts(Operators):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            result = super().__torch_dispatch__(func, types, args, kwargs)
            if func is torch.ops.aten.convolution.default:
                last = torch.channels_last
                layouts.append(args[0].is_contiguous(memory_format=last))
                layouts.append(result.is_contiguous(memory_format=last))
            return result

    found = import_graph(image_graph(residual), residual_inputs(61), stand_ins=IMAGES)
    (external,) = found.externals.values()
    inputs = residual_inputs(20)
    operands = [inputs[input_number(node)] for node in external.operands]
    with Layouts():
        found.at((20,)).run_external(external.node.name, operands)
    assert layouts == [True] * 4


KEPT: dict[str, Callable[..., Tensor]] = {
    "an operand": lambda x, w, *_: F.conv2d(F.relu(x), w, None, 2, 1),
    "what is read again": lambda x, w, *_: (lambda y: F.relu(y) * F.silu(y) * y)(
        F.conv2d(x, w, None, 2, 1)
    ),
    "a view": lambda x, w, *_: F.relu(
        F.conv2d(x, w, None, 2, 1).transpose(2, 3)
    ).transpose(2, 3),
    "a sum with itself": lambda x, w, *_: (lambda y: y + y)(F.conv2d(x, w, None, 2, 1)),
    "a sum that is larger": lambda x, w, *_: (
        F.avg_pool2d(F.conv2d(x, w, None, 2, 1), 2).mean((2, 3), True)
        + F.conv2d(x, w, None, 2, 1)
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_others_have_is_not_written_to(name: str) -> None:
    torch.manual_seed(0)
    kept = KEPT[name]

    def function(*inputs: Tensor) -> Tensor:
        return torch.relu(kept(*inputs).mean((2, 3))) * 2

    for names in run_images(function):
        assert not [one for one in names if one.split(".")[1].endswith("_")]


NORMS: dict[str, Callable[..., Tensor]] = {
    "the norm of a norm": lambda x, w, v, *norm: F.batch_norm(
        F.relu(F.conv2d(x, w, None, 2, 1)), *norm
    ),
    "a transposed convolution": lambda x, w, v, *norm: F.batch_norm(
        F.conv_transpose2d(F.conv2d(x, w, None, 2, 1), v, None, 1, 1), *norm
    ),
    "by statistics of the batch": lambda x, w, v, *norm: F.batch_norm(
        F.conv2d(x, w, None, 2, 1), None, None, *norm[2:], training=True
    ),
    "of a result that is read again": lambda x, w, v, *norm: (
        lambda y: y * F.batch_norm(y, *norm)
    )(F.conv2d(x, w, None, 2, 1)),
}


@pytest.mark.parametrize("name", NORMS)
def test_norms_that_are_no_part_of_weights(name: str) -> None:
    torch.manual_seed(0)
    normed = NORMS[name]

    def function(*inputs: Tensor) -> Tensor:
        return torch.relu(normed(*inputs).mean((2, 3))) * 2

    for names in run_images(function):
        assert [one for one in names if "batch_norm" in one]
