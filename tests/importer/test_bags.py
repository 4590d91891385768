"""Bags of embeddings of one size: what is generated, what is not and why, errors."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from magweld.importer import import_graph

MODES = ["sum", "mean", "max"]


def table(dtype: torch.dtype) -> torch.Tensor:
    return torch.arange(60.0).view(10, 6).to(dtype)


def indices(size: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return (torch.arange(7 * size).view(7, size) % 10).to(dtype)


def imported(record: Any, function: Any, *inputs: torch.Tensor) -> Any:
    return import_graph(record(function, *inputs), inputs, look_ups=True)


@pytest.mark.parametrize("mode", MODES)
def test_of_a_bag_only_the_check_of_its_indices_is_external(
    mode: str, record: Any
) -> None:
    ids = indices(5, torch.int32)
    found = imported(
        record, lambda t, i: F.embedding_bag(i, t, mode=mode), table(torch.float32), ids
    )
    (name,) = found.externals
    assert found.index_checks[name].lowest == 0
    assert not found.reasons


@pytest.mark.parametrize("bad", [10, -1])
@pytest.mark.parametrize(
    "options", [{"mode": "sum"}, {"mode": "sum", "padding_idx": 2}, {"mode": "max"}]
)
@pytest.mark.parametrize("kind", [torch.int64, torch.int32])
def test_an_index_out_of_range_raises_what_torch_raises(
    kind: torch.dtype, options: Any, bad: int, record: Any
) -> None:
    def function(t: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return F.embedding_bag(i, t, **options)

    rows, ids = table(torch.float32), indices(5, kind)
    found = imported(record, function, rows, ids)
    (name,) = found.externals
    wrong = ids.clone()
    wrong[4, 2] = bad
    with pytest.raises(RuntimeError) as theirs:
        function(rows, wrong)
    with pytest.raises(RuntimeError) as mine:
        found.run_external(name, [rows, wrong.view(-1)])
    assert str(mine.value) == str(theirs.value)


OFFSETS = torch.tensor([0, 5, 5])
LEFT: dict[str, tuple[Any, tuple[torch.Tensor, ...]]] = {
    "bag-offsets": (
        lambda t, i, o: F.embedding_bag(i, t, o),
        (table(torch.float32), indices(5).view(-1), OFFSETS),
    ),
    "bag-maximum": (
        lambda t, i: F.embedding_bag(i, t, mode="max"),
        (table(torch.float32), torch.zeros(2, 33, dtype=torch.int64)),
    ),
    "bag-rounding": (
        lambda t, i: F.embedding_bag(i, t, mode="sum"),
        (table(torch.bfloat16), indices(5)),
    ),
    "bag-empty": (
        lambda t, i: F.embedding_bag(i, t, mode="sum"),
        (table(torch.float32), indices(5)[:0]),
    ),
    "bag-gradient": (
        lambda t, i, o: torch.embedding_bag(t, i, o, mode=1)[:3:2],
        (table(torch.float32), indices(5).view(-1), OFFSETS),
    ),
}


@pytest.mark.parametrize("reason", LEFT)
def test_other_bags_run_through_torch_and_say_why(reason: str, record: Any) -> None:
    function, inputs = LEFT[reason]
    found = imported(record, function, *inputs)
    (told,) = found.reasons
    assert f": {reason}: " in told
