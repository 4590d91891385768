"""The largest elements of windows of images of any size: native code beside torch's."""

from __future__ import annotations

import math

import pytest
import torch
from recording import Operators
from torch import Tensor, fx
from torch.nn import functional as F

from magweld.artifact import StandIns
from magweld.codegen.window_code import WINDOW_CODE, channel_units
from magweld.importer.importer import import_graph
from magweld.importer.window_pools import largest

DEPTH, FILTERS = channel_units()
WINDOWS: dict[str, tuple[tuple[int, ...], ...]] = {
    "halved": ((2,), (), (0,), (1,)),
    "overlapping": ((3, 3), (2, 2), (1, 1), (1, 1)),
    "rows": ((1, 4), (1, 2), (0, 2), (1, 1)),
    "apart": ((2, 3), (1, 1), (1, 0), (3, 2)),
}


def images(*shape: int) -> Tensor:
    """Return images with channels side by side."""
    return torch.randn(shape).contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("name", WINDOWS)
def test_results_are_those_of_torch(name: str) -> None:
    torch.manual_seed(0)
    for shape in ((1, DEPTH, 7, 9), (3, 3 * DEPTH, 13, 40), (2, DEPTH, 33, 8)):
        x = images(*shape)
        result, expected = largest(x, *WINDOWS[name]), F.max_pool2d(x, *WINDOWS[name])
        assert torch.equal(result, expected)
        assert result.stride() == expected.stride()


def test_what_is_no_number_is_where_torch_has_it() -> None:
    torch.manual_seed(0)
    x = images(1, DEPTH, 9, 9)
    x[0, 1, 4, 4], x[0, 2] = math.nan, -math.inf
    x[0, 3, 0], x[0, 4, :, 7] = math.inf, math.nan
    for window in WINDOWS.values():
        result, expected = largest(x, *window), F.max_pool2d(x, *window)
        torch.testing.assert_close(result, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize(
    "x",
    [torch.randn(2, DEPTH, 8, 8), images(2, DEPTH + 1, 8, 8), images(0, DEPTH, 8, 8)],
)
def test_other_images_are_torchs(x: Tensor) -> None:
    with Operators() as ran:
        result = largest(x, *WINDOWS["overlapping"])
    assert torch.equal(result, F.max_pool2d(x, 3, 2, 1))
    assert [one for one in ran.names if "max_pool2d" in one]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_change_no_bit(threads: int) -> None:
    x = images(2, DEPTH, 5, 61)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        assert torch.equal(largest(x, (2, 2), (), (0, 0), (1, 1)), F.max_pool2d(x, 2))
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(("ceil", "is_native"), [(False, True), (True, False)])
def test_programs_for_all_sizes_have_it(ceil: bool, is_native: bool) -> None:
    def function(x: Tensor, w: Tensor) -> Tensor:
        y = F.max_pool2d(F.relu(F.conv2d(x, w, None, 1, 1)), 3, 2, 1, 1, ceil)
        return torch.tanh(y.mean((2, 3))) * 2

    stand_ins = StandIns((61,), inner=(31,))
    w = torch.randn(FILTERS, 3, 3, 3)
    with torch.no_grad():
        given = [torch.zeros(2, 3, 61, 61), w]
        found = import_graph(fx.symbolic_trace(function), given, stand_ins=stand_ins)
        assert found.shared_code == [WINDOW_CODE]
        (external,) = found.externals.values()
        for size in (5, 16, 33):
            x = torch.randn(2, 3, size, size)
            run = found.at((size,))
            with Operators() as ran:
                (result,) = run.run_external(external.node.name, [x, w])
            expected = F.max_pool2d(
                F.relu(F.conv2d(x, w, None, 1, 1)), 3, 2, 1, 1, ceil
            ).mean((2, 3))
            torch.testing.assert_close(
                result.view(expected.shape), expected, rtol=1e-4, atol=1e-4
            )
            pools = [one for one in ran.names if "max_pool2d" in one]
            assert (not pools) == is_native
