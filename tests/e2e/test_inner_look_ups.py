"""Elements that indices find in inner dimensions, compiled, against eager."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from magweld import frontend
from magweld.api import compile_graph
from magweld.compiler_options import CompileOptions


class Crosses(nn.Module):
    """Products of each two features, one half of them, beside the features."""

    def __init__(self, features: int) -> None:
        super().__init__()
        rows, columns = torch.tril_indices(features, features, -1)
        self.register_buffer("rows", rows)
        self.register_buffer("columns", columns - features)  # from the end

    def forward(self, x: Tensor) -> Tensor:
        products = x @ x.transpose(1, 2)
        return torch.cat([x.flatten(1), products[:, self.rows, self.columns]], 1)


def look_ups(t: Tensor, i: Tensor, j: Tensor) -> list[Tensor]:
    return [t[i, j] + 1, t.mT[:, i % 4].relu(), t.half()[:, j, i], t.index_select(1, j)]


def traced(function: Any) -> Any:
    options = CompileOptions(library="never")
    return frontend.trace(function, backend=partial(compile_graph, options=options))


def test_crosses_of_features_are_generated() -> None:
    model = Crosses(5).eval()
    fast, x = traced(model), torch.randint(-8, 8, (9, 5, 16)).float()
    with torch.no_grad():
        fast(x)
        assert torch.equal(fast(x), model(x))
    compiled = fast.records[0].compiled
    assert all(
        name.startswith("checked_places") for name in compiled.imported.externals
    )
    assert fast.stats()["hits"] == 1


def test_indices_are_read_and_checked_in_each_call() -> None:
    t = torch.randn(4, 6, 7)
    good = (torch.tensor([0, 3, -4]), torch.tensor([5, 1, 0]))
    fast = traced(look_ups)
    fast(t, *good)
    for first, second in (good, (good[0].flip(0), good[1].flip(0))):
        for mine, theirs in zip(
            fast(t, first, second), look_ups(t, first, second), strict=True
        ):
            assert torch.equal(mine, theirs)
            assert mine.stride() == theirs.stride()
    for number, wrong in ((0, 4), (0, -5), (1, 6), (1, -1)):
        inputs = [one.clone() for one in good]
        inputs[number][1] = wrong
        with pytest.raises((IndexError, RuntimeError)) as theirs_raised:
            look_ups(t, *inputs)
        with pytest.raises(theirs_raised.type) as mine_raised:
            fast(t, *inputs)
        assert str(mine_raised.value) == str(theirs_raised.value)
    assert fast.stats()["records"] == 1
