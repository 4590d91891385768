"""Compiled bags of embeddings have torch's bits, errors and untouched indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from magweld import frontend
from magweld.api import compile_graph
from magweld.compiler_options import CompileOptions

INF, NAN = float("inf"), float("nan")
# Mode, padding index, whether there are weights.
CALLS: list[tuple[str, int | None, bool]] = [
    ("sum", None, False),
    ("sum", 3, False),
    ("sum", None, True),
    ("sum", 3, True),
    ("mean", None, False),
    ("mean", 3, False),
    ("max", None, False),
    ("max", 3, False),
]


def table(dtype: torch.dtype) -> Tensor:
    """Rows with all that a reduction could treat in another way."""
    rows = torch.randn(10, 20, generator=torch.Generator().manual_seed(0))
    rows[2, :4] = torch.tensor([NAN, INF, -INF, -0.0])
    rows[5, :4] = torch.tensor([1.0, -INF, -INF, 0.0])
    rows[6, 3] = -0.0
    return rows.to(dtype)


def indices(size: int, dtype: torch.dtype) -> Tensor:
    """Bags of the padding index alone, of one row several times, and of others."""
    ids = torch.arange(7 * size).view(7, size) * 7 % 10
    ids[0], ids[1] = 3, 6
    if size > 1:
        ids[2, :2] = torch.tensor([2, 5])
        ids[3, :2] = torch.tensor([5, 2])
        ids[4, :2] = torch.tensor([3, 6])
    return ids.to(dtype)


def bags(
    calls: Sequence[tuple[str, int | None, bool]], rows: Tensor, ids: Tensor, w: Tensor
) -> list[Tensor]:
    return [
        F.embedding_bag(
            ids,
            rows,
            mode=mode,
            padding_idx=padding,
            per_sample_weights=w if weighted else None,
        )
        for mode, padding, weighted in calls
    ]


def traced(function: Callable[..., Any]) -> Any:
    options = CompileOptions(library="never")
    return frontend.trace(function, backend=partial(compile_graph, options=options))


def same_bits(left: Tensor, right: Tensor) -> bool:
    """Tell whether all is equal, zeros with their signs; a nan is a nan."""
    signs = left.signbit() == right.signbit()
    same = left.isnan() & right.isnan() | ((left == right) & signs)
    return left.dtype == right.dtype and bool(same.all())


@pytest.mark.parametrize("kind", [torch.int64, torch.int32])
@pytest.mark.parametrize("size", [1, 5])
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16]
)
def test_bags_have_the_bits_of_eager(
    dtype: torch.dtype, size: int, kind: torch.dtype
) -> None:
    weights = torch.linspace(-2, 2, 7 * size).view(7, size).to(dtype)
    inputs = (table(dtype), indices(size, kind), weights)
    fast = traced(partial(bags, CALLS))
    with torch.no_grad():
        fast(*inputs)
        found, expected = fast(*inputs), bags(CALLS, *inputs)
    assert fast.stats()["hits"] == 1
    for call, mine, theirs in zip(CALLS, found, expected, strict=True):
        assert same_bits(mine, theirs), call
    externals = fast.records[0].compiled.report()["externals"]
    left = [name for name in externals if name.startswith("_embedding_bag")]
    # What torch rounds in a way of its own stays with it.
    assert len(left) == (3 if dtype is torch.bfloat16 else 0)


def test_an_index_out_of_range_raises_in_the_call_that_has_it() -> None:
    def function(rows: Tensor, first: Tensor, second: Tensor) -> Tensor:
        found = F.embedding_bag(first, rows, mode="sum")
        return found + F.embedding_bag(second, rows, mode="max") * 2

    rows = table(torch.float32)
    good = [indices(5, torch.int64) for _ in range(2)]
    fast = traced(function)
    with torch.no_grad():
        fast(rows, *good)
        for number in (1, 2):
            inputs = [rows, *map(torch.clone, good)]
            inputs[number][6, 4] = 10
            with pytest.raises(RuntimeError) as theirs:
                function(*inputs)
            with pytest.raises(RuntimeError) as mine:
                fast(*inputs)
            assert str(mine.value) == str(theirs.value)
            assert same_bits(fast(rows, *good), function(rows, *good))
    assert fast.stats()["records"] == 1


def test_explain_says_why_torch_makes_bags() -> None:
    def function(rows: Tensor, ids: Tensor, offsets: Tensor) -> Tensor:
        return F.embedding_bag(ids, rows, offsets, mode="max")

    inputs = (table(torch.float32), torch.tensor([1, 2, 3]), torch.tensor([0, 2]))
    fast = traced(function)
    with torch.no_grad():
        fast(*inputs)
        assert same_bits(fast(*inputs), function(*inputs))
    assert "bag-offsets: a tensor says where bags begin" in fast.explain()
    assert f"{__file__}:" in fast.explain()
