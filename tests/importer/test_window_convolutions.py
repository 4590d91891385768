"""Convolutions of images of any size: native code beside torch's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest
import torch
from recording import Operators
from torch import Tensor, fx
from torch.nn import functional as F

from magweld.artifact import StandIns
from magweld.codegen.window_code import WINDOW_CODE, channel_units
from magweld.codegen.window_sizes import Pair, WindowSizes
from magweld.importer.importer import import_graph
from magweld.importer.window_convolutions import convolve

DEPTH, FILTERS = channel_units()
SIZES = [(1, 2), (2, 3), (3, 3), (5, 7), (8, 8), (13, 13), (31, 17), (40, 33)]
# Fewer tiles than filters are computed in another order than more.
CHANNELS = {"few": (DEPTH, FILTERS), "many": (3 * DEPTH, 5 * FILTERS)}

# Steps, padding and spread of windows at every point.
EVERY = ((1, 1), (1, 1), (1, 1))


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def close(result: Tensor, expected: Tensor) -> None:
    """Compare with the tolerance that sums of that many products have."""
    torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-4)


def plain(
    x: Tensor,
    w: Tensor,
    padding: Pair = (1, 1),
    steps: Pair = (1, 1),
    spread: Pair = (1, 1),
) -> Tensor:
    """Return a convolution by native code."""
    return convolve(x, w, None, None, None, (steps, padding, spread), False)


def statistics() -> list[Tensor]:
    """Return a bias, and mean, variance, factors and terms of a norm."""
    bias, mean, factors, terms = torch.randn(4, FILTERS)
    return [bias, mean, torch.rand(FILTERS) + 0.5, factors, terms]


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("size", SIZES)
def test_any_size_has_the_results_of_torch(
    size: tuple[int, int], channels: str
) -> None:
    depth, filters = CHANNELS[channels]
    w = torch.randn(filters, depth, 3, 3) / math.sqrt(9 * depth)
    for images in (1, 3):
        x = torch.randn(images, depth, *size)
        close(plain(x, w), F.conv2d(x, w, None, 1, 1))
        last = x.contiguous(memory_format=torch.channels_last)
        result = plain(last, w)
        close(result, F.conv2d(x, w, None, 1, 1))
        assert result.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("tiles", [23, 24, 25, 47, 48, 49, 71, 73, 97])
@pytest.mark.parametrize("steps", [(1, 1), (2, 2)])
def test_any_number_of_tiles_is_split_into_blocks(tiles: int, steps: Pair) -> None:
    """Tiles are more than filters: threads share out blocks of them."""
    x = torch.randn(1, DEPTH, 2, 2 * tiles)
    w = torch.randn(FILTERS, DEPTH, 3, 3) / math.sqrt(9 * DEPTH)
    close(plain(x, w, steps=steps), F.conv2d(x, w, None, steps, 1))


@pytest.mark.parametrize("padding", [(0, 0), (0, 1), (1, 0), (2, 3), (5, 4)])
def test_any_padding_has_the_results_of_torch(padding: tuple[int, int]) -> None:
    x, w = torch.randn(2, DEPTH, 9, 14), torch.randn(FILTERS, DEPTH, 3, 3) / 9
    close(plain(x, w, padding), F.conv2d(x, w, None, 1, padding))


WINDOWS: dict[str, tuple[Pair, Pair, Pair, Pair]] = {
    "steps": ((3, 3), (1, 1), (2, 2), (1, 1)),
    "steps across": ((3, 3), (0, 1), (1, 3), (1, 1)),
    "a point": ((1, 1), (0, 0), (1, 1), (1, 1)),
    "a point with steps": ((1, 1), (0, 0), (2, 2), (1, 1)),
    "a row": ((1, 5), (0, 2), (1, 1), (1, 1)),
    "a column": ((4, 1), (3, 0), (1, 2), (1, 1)),
    "most points": ((5, 5), (2, 2), (2, 2), (1, 1)),
    "wide windows": ((3, 3), (2, 3), (1, 2), (2, 3)),
}


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("name", WINDOWS)
def test_any_window_has_the_results_of_torch(name: str, channels: str) -> None:
    window, padding, steps, spread = WINDOWS[name]
    depth, filters = CHANNELS[channels]
    w = torch.randn(filters, depth, *window) / math.sqrt(depth * math.prod(window))
    for size in ((7, 7), (5, 9), (23, 16), (41, 40)):
        x = torch.randn(2, depth, *size)
        expected = F.conv2d(x, w, None, steps, padding, spread)
        close(plain(x, w, padding, steps, spread), expected)


FEW: dict[str, tuple[Pair, Pair, Pair, Pair]] = {
    **{name: WINDOWS[name] for name in ("steps", "steps across", "a column")},
    "every point": ((3, 3), (1, 1), (1, 1), (1, 1)),
    "rows apart": ((3, 3), (2, 0), (1, 2), (2, 1)),
    "rows of many vectors": ((1, 12), (0, 5), (1, 1), (1, 1)),
}


@pytest.mark.parametrize("depth", [1, 3, 5])
@pytest.mark.parametrize("name", FEW)
def test_few_channels_have_the_results_of_torch(name: str, depth: int) -> None:
    window, padding, steps, spread = FEW[name]
    w = torch.randn(2 * FILTERS, depth, *window) / math.sqrt(depth * math.prod(window))
    for size in ((7, 7), (5, 23), (41, 40)):
        whole = torch.randn(2, depth + 1, *size)
        last = whole.contiguous(memory_format=torch.channels_last)
        for x in (whole[:, 1:].contiguous(), last[:, 1:], whole[1:, :depth]):
            expected = F.conv2d(x, w, None, steps, padding, spread)
            result = plain(x, w, padding, steps, spread)
            close(result, expected)
            assert result.is_contiguous(memory_format=torch.channels_last)


def test_few_channels_have_norms_and_sums_behind_them() -> None:
    x, w = torch.randn(2, 3, 11, 6), torch.randn(FILTERS, 3, 3, 3) / 9
    beside, (bias, *norm) = torch.randn(2, FILTERS, 11, 6), statistics()
    expected = F.batch_norm(F.conv2d(x, w, bias, 1, 1), *norm)
    expected = torch.relu(expected + beside)
    close(convolve(x, w, bias, (*norm, 1e-5), beside, EVERY, True), expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_results_have_the_type_of_images_whatever_is_the_default(
    dtype: torch.dtype,
) -> None:
    x, w = torch.randn(2, DEPTH, 9, 14), torch.randn(FILTERS, DEPTH, 3, 3) / 9
    expected = F.conv2d(x, w, None, 1, 1)
    torch.set_default_dtype(dtype)
    try:
        result = plain(x, w)
    finally:
        torch.set_default_dtype(torch.float32)
    assert result.dtype is torch.float32
    close(result, expected)


@pytest.mark.parametrize(
    ("depth", "filters"), [(4 * DEPTH + 1, FILTERS), (DEPTH, FILTERS + 1)]
)
def test_channels_of_a_call_that_are_no_whole_vectors_are_torchs(
    depth: int, filters: int
) -> None:
    x, w = torch.randn(2, depth, 9, 14), torch.randn(filters, depth, 3, 3) / 9
    close(plain(x, w), F.conv2d(x, w, None, 1, 1))


def test_channels_that_differ_are_refused_as_by_torch() -> None:
    x, w = torch.randn(2, 2 * DEPTH, 9, 14), torch.randn(FILTERS, DEPTH, 3, 3)
    with pytest.raises(RuntimeError, match="channels"):
        plain(x, w)


def test_what_torch_refuses_is_refused() -> None:
    x, w = torch.randn(1, DEPTH, 2, 9), torch.randn(FILTERS, DEPTH, 3, 3)
    with pytest.raises(RuntimeError, match="Kernel size"):
        plain(x, w, (0, 0))
    assert plain(x[:0], w).shape == (0, FILTERS, 2, 9)


@pytest.mark.parametrize("is_rectified", [False, True])
@pytest.mark.parametrize("has_more", [False, True])
def test_what_follows_is_computed_with_it(has_more: bool, is_rectified: bool) -> None:
    x, w = torch.randn(2, DEPTH, 11, 6), torch.randn(FILTERS, DEPTH, 3, 3) / 9
    beside = torch.randn(2, FILTERS, 11, 6) if has_more else None
    bias, *norm = statistics()
    for given in ([None, *norm], [bias, *norm], [bias, *norm[:2], None, None]):
        expected = F.batch_norm(F.conv2d(x, w, given[0], 1, 1), *given[1:], eps=1e-3)
        if beside is not None:
            expected = expected + beside
        if is_rectified:
            expected = torch.relu(expected)
        follows = (given[0], (*given[1:], 1e-3), beside, EVERY, is_rectified)
        close(convolve(x, w, *follows), expected)


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("depth", [3, DEPTH])
def test_what_is_no_number_is_where_torch_has_it(number: float, depth: int) -> None:
    x, w = torch.randn(1, depth, 12, 12), torch.randn(FILTERS, depth, 3, 3)
    x[0, 1, 4, 7] = number
    x[0, 2, 5, 7] = number
    expected = F.conv2d(x, w, None, 1, 1)
    close(plain(x, w).nan_to_num(7, 8, 9), expected.nan_to_num(7, 8, 9))
    w[3, 1, 0, 0] = number
    expected = torch.relu(F.conv2d(x, w, None, 1, 1))
    result = convolve(x, w, None, None, None, EVERY, True)
    close(result.nan_to_num(7, 8, 9), expected.nan_to_num(7, 8, 9))


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("depth", [3, DEPTH])
@pytest.mark.parametrize("size", [(4, 5), (61, 47)])
def test_threads_change_no_bit(
    size: tuple[int, int], depth: int, threads: Callable[[int], None]
) -> None:
    x, w = torch.randn(2, depth, *size), torch.randn(2 * FILTERS, depth, 3, 3)
    found = []
    for number in (1, 2, 3):
        threads(number)
        found.append(plain(x, w))
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


def test_tiles_cover_results() -> None:
    sizes = WindowSizes(3, (5, 8), 16, 32, padding=(1, 0))
    assert sizes.is_filtered
    assert sizes.result == (5, 6)
    assert sizes.grid == (3, 3)
    assert (sizes.tiles, sizes.length) == (27, 16)
    sizes = WindowSizes(2, (5, 8), 16, 32, steps=(2, 1), padding=(1, 0))
    assert not sizes.is_filtered
    assert sizes.grid == sizes.result == (3, 6)
    assert (sizes.tiles, sizes.length) == (36, 9 * 16)


STAND_INS = StandIns((61,), inner=(31, 15))


def inputs(size: int, window: int, dtype: torch.dtype) -> list[Tensor]:
    """Return images, weights, another tensor, and a norm's statistics and factors."""
    x = torch.randn(2, DEPTH, size, size)
    w = torch.randn(FILTERS, DEPTH, window, window) / 9
    norm = [torch.randn(FILTERS), torch.rand(FILTERS) + 0.5, *torch.randn(2, FILTERS)]
    found = [x, w, torch.randn(2, FILTERS, size, size), *norm]
    return [tensor.to(dtype) for tensor in found]


Body = Callable[..., Tensor]


def operators_run(
    body: Body, window: int = 3, dtype: torch.dtype = torch.float32
) -> list[str]:
    """Compare what runs a function at some sizes with torch; return its operators."""

    def function(*given: Tensor) -> Tensor:
        y = body(torch.tanh(given[0]), *given[1:])
        return torch.relu(y.mean((2, 3))) * 2

    graph = fx.symbolic_trace(
        lambda x, w, y, mean, variance, factors, terms: function(
            x, w, y, mean, variance, factors, terms
        )
    )
    found = import_graph(graph, inputs(61, window, dtype), stand_ins=STAND_INS)
    (external,) = found.externals.values()
    names: list[str] = []
    for size in (5, 16, 33):
        given = inputs(size, window, dtype)
        before = [tensor.clone() for tensor in given]
        numbers = [
            int(node.name.removeprefix("arg").removesuffix("_1"))
            for node in external.operands
        ]
        with Operators() as ran:
            (result,) = found.at((size,)).run_external(
                external.node.name, [given[n] for n in numbers]
            )
        close(torch.relu(result) * 2, function(*given))
        assert all(map(torch.equal, given, before)), "no operand is written to"
        names = ran.names
    return names


def conv(x: Tensor, w: Tensor) -> Tensor:
    return F.conv2d(x, w, None, 1, 1)


WHOLE: dict[str, Body] = {
    "alone": lambda x, w, *_: conv(x, w),
    "with steps": lambda x, w, y, *norm: F.relu(
        F.batch_norm(F.conv2d(x, w, None, 2, 1), *norm)
    ),
    "with a bias": lambda x, w, y, b, *_: F.conv2d(x, w, b, 1, 1),
    "with a norm": lambda x, w, y, *norm: F.batch_norm(conv(x, w), *norm),
    "with a bias and a norm": lambda x, w, y, *norm: F.batch_norm(
        F.conv2d(x, w, norm[0], 1, 1), *norm
    ),
    "rectified": lambda x, w, *_: F.relu(conv(x, w)),
    "with a sum": lambda x, w, y, *_: F.relu(y + conv(x, w)),
    "with all": lambda x, w, y, *norm: F.relu(F.batch_norm(conv(x, w), *norm) + y),
}


@pytest.mark.parametrize("name", WHOLE)
def test_what_follows_a_convolution_is_a_part_of_it(name: str) -> None:
    names = operators_run(WHOLE[name])
    kinds = {name.split(".")[1].rstrip("_") for name in names}
    assert not kinds & {"convolution", "native_batch_norm", "relu"}
    assert not [one for one in names if one in ("aten.add.Tensor", "aten.add_.Tensor")]


APART: dict[str, tuple[Body, str]] = {
    "a sum that is read again": (
        lambda x, w, y, *_: (lambda z: F.relu(z) * z)(conv(x, w) + y),
        "relu",
    ),
    "a sum with itself": (lambda x, w, *_: (lambda z: z + z)(conv(x, w)), "add"),
    "a sum with a multiple": (
        lambda x, w, y, *_: torch.add(y, conv(x, w), alpha=2),
        "add",
    ),
    "a sum with one for each channel": (
        lambda x, w, y, b, *_: conv(x, w) + b.view(-1, 1, 1),
        "add",
    ),
    "another function": (lambda x, w, *_: F.silu(conv(x, w)), "silu"),
    "the norm of what is rectified": (
        lambda x, w, y, *norm: F.batch_norm(F.relu(conv(x, w)), *norm),
        "batch_norm",
    ),
}


@pytest.mark.parametrize("name", APART)
def test_what_is_no_part_of_it_stays_apart(name: str) -> None:
    body, kind = APART[name]
    names = operators_run(body)
    assert [one for one in names if kind in one]
    assert not [one for one in names if "convolution" in one]


TORCH: dict[str, Body] = {
    "groups": lambda x, w, *_: F.conv2d(x, w[:, : DEPTH // 2], None, 1, 1, 1, 2),
    "some filters": lambda x, w, *_: conv(x, w[2:]),
    "a transposed one": lambda x, w, *_: F.conv_transpose2d(
        x, w.transpose(0, 1), None, 1, 1
    ),
}


@pytest.mark.parametrize("name", TORCH)
def test_other_convolutions_are_torchs(name: str) -> None:
    assert [one for one in operators_run(TORCH[name]) if "convolution" in one]


def test_convolutions_of_other_numbers_are_torchs() -> None:
    names = operators_run(lambda x, w, *_: conv(x, w), dtype=torch.float64)
    assert [one for one in names if "convolution" in one]


def test_channels_that_are_no_whole_vectors_are_native_where_they_are_few() -> None:
    names = operators_run(lambda x, w, *_: F.relu(conv(x[:, :3], w[:, :3])))
    assert not [one for one in names if "convolution" in one or "relu" in one]


def test_windows_of_many_points_are_torchs() -> None:
    names = operators_run(lambda x, w, *_: F.conv2d(x, w, None, 2, 3), 7)
    assert [one for one in names if "convolution" in one]


@pytest.mark.parametrize("depth", [3, DEPTH, 4 * DEPTH + 1])
def test_a_graph_tells_the_native_code_of_its_convolutions(depth: int) -> None:
    graph = fx.symbolic_trace(lambda x, w: torch.relu(conv(x, w)) * 2)
    given = [torch.zeros(1, depth, 61, 61), torch.zeros(FILTERS, depth, 3, 3)]
    with torch.no_grad():
        found = import_graph(graph, given, stand_ins=STAND_INS)
    assert found.shared_code == ([WINDOW_CODE] if depth <= DEPTH else [])
