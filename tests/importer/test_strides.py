"""Where elements of views lie, compared with torch."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from magweld.importer.strides import Strided, viewed

aten = torch.ops.aten
SHAPES = ((2, 3, 4), (1, 6, 2), (5, 1, 1), (7,), (3, 1, 4, 2), ())
FIRST: tuple[tuple[Any, tuple[Any, ...]], ...] = (
    (aten.transpose.int, (0, -1)),
    (aten.transpose.int, (1, 2)),
    (aten.permute.default, ([2, 0, 1],)),
    (aten.select.int, (1, -1)),
    (aten.select.int, (-1, 0)),
    (aten.slice.Tensor, (0, 1, 9223372036854775807)),
    (aten.slice.Tensor, (-1, -3, -1, 2)),
    (aten.slice.Tensor, (0, 9, 20)),
    (aten.expand.default, ([6, -1, -1, -1],)),
    (aten.t.default, ()),
    (aten.view.default, ([-1],)),
)
SECOND = (
    *FIRST,
    (aten.view.default, ([2, -1],)),
    (aten.view.default, ([3, 1, 2, -1],)),
    (aten.view.default, ([1, 4, 6],)),
    (aten.view.default, ([2, 3, 2, 2, 1],)),
    (aten.view.default, ([6, 2, 2],)),
)


def test_views_of_views_are_those_of_torch() -> None:
    known = 0
    for shape, *views in itertools.product(SHAPES, FIRST, SECOND):
        tensor = torch.empty(shape)
        found: Strided | None = Strided.dense(shape)
        try:
            for target, args in views:
                tensor = target(tensor, *args)
        except (RuntimeError, IndexError):
            continue  # no such view: nothing is asked for
        for target, args in views:
            assert found is not None
            found = viewed(target, found, *args)
        if found is None:
            assert tensor.numel() == 0, "views of nothing are left to torch"
            continue
        known += 1
        assert found.shape == tensor.shape
        assert found.offset == tensor.storage_offset()
        pairs = zip(tensor.shape, found.strides, tensor.stride(), strict=True)
        assert all(ours == theirs for extent, ours, theirs in pairs if extent > 1)
    assert known > 100


@pytest.mark.parametrize("sizes", [[8, 3], [24], [2, 12], [4, 2, 3]])
def test_no_view_has_elements_in_another_order(sizes: list[int]) -> None:
    turned = viewed(aten.transpose.int, Strided.dense((2, 3, 4)), 0, 2)
    assert turned is not None
    with pytest.raises(RuntimeError):
        torch.empty(2, 3, 4).transpose(0, 2).view(sizes)
    assert viewed(aten.view.default, turned, sizes) is None


def test_what_is_no_view_has_no_strides() -> None:
    assert viewed(aten.relu.default, Strided.dense((2,))) is None
