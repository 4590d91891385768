"""Bags of embeddings of one size: what is generated, what is not and why, errors."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from magweld.importer import ragged_bags
from magweld.importer.importer import import_graph

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
    "bag-maximum": (
        lambda t, i: F.embedding_bag(i, t, mode="max"),
        (table(torch.float32), torch.zeros(2, 33, dtype=torch.int64)),
    ),
    "bag-empty": (
        lambda t, i: F.embedding_bag(i, t, mode="sum"),
        (table(torch.float32), indices(5)[:0]),
    ),
    "bag-empty: there are no bags": (
        lambda t, i, o: F.embedding_bag(i, t, o, include_last_offset=True),
        (table(torch.float32), indices(5).view(-1), OFFSETS[:1]),
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
    assert f": {reason}" in told


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("mode", MODES)
def test_halves_are_generated_where_it_is_known_how_torch_rounds(
    mode: str, dtype: torch.dtype, record: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def function(t: torch.Tensor, i: torch.Tensor, o: torch.Tensor) -> torch.Tensor:
        return F.embedding_bag(i, t, o, mode=mode)

    inputs = (table(dtype), indices(5).view(-1), OFFSETS)
    assert not imported(record, function, *inputs).reasons
    monkeypatch.setattr(ragged_bags, "_halves_rounded", lambda *_: None)
    reasons = imported(record, function, *inputs).reasons
    assert len(reasons) == (mode != "max")
    assert all(f"bag-rounding: torch rounds sums of {dtype}" in r for r in reasons)


# Mode, padding index, whether there is an offset behind the last bag; how many checks.
RAGGED = [
    ("sum", None, False, 2),
    ("sum", 2, True, 2),
    ("mean", None, False, 2),
    ("mean", None, True, 3),
    ("mean", 2, False, 3),
    ("max", 2, False, 2),
]


def bags(
    mode: str, padding: int | None, last: bool
) -> tuple[Any, tuple[torch.Tensor, ...]]:
    """Return a look-up of bags of any size, and arguments of it."""

    def function(t: torch.Tensor, i: torch.Tensor, o: torch.Tensor) -> torch.Tensor:
        options = {"padding_idx": padding, "include_last_offset": last}
        return F.embedding_bag(i, t, o, mode=mode, **options)

    offsets = torch.tensor([0, 5, 5, 30, 35])
    return function, (table(torch.float32), indices(5).view(-1), offsets)


BAGS = {mode: bags(mode, None, False) for mode in MODES}


@pytest.mark.parametrize(("mode", "padding", "last", "checks"), RAGGED)
def test_bags_of_any_size_have_checks_of_indices_and_bounds(
    mode: str, padding: int | None, last: bool, checks: int, record: Any
) -> None:
    function, inputs = bags(mode, padding, last)
    found = imported(record, function, *inputs)
    assert not found.reasons
    assert found.index_checks.keys() == found.externals.keys()
    assert len(found.externals) == checks
    # The graph that is compiled has torch's results, through torch as well.
    assert torch.equal(found.aten(*inputs), function(*inputs))


def _result(function: Any, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except (RuntimeError, IndexError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("kind", [torch.int64, torch.int32])
@pytest.mark.parametrize(("mode", "padding", "last", "checks"), RAGGED)
@pytest.mark.parametrize(
    "offsets",
    [
        [1, 5, 35],  # not from zero
        [0, 5, 36],  # behind the indices
        [0, 9, 5],  # back
        [0, 5, 30],  # before the last index
    ],
)
def test_offsets_do_what_they_do_in_torch(
    mode: str,
    padding: int | None,
    last: bool,
    checks: int,
    offsets: list[int],
    kind: torch.dtype,
    record: Any,
) -> None:
    if last and mode == "sum" and padding and offsets[1] > offsets[2]:
        pytest.skip("torch writes behind its memory")

    function, (rows, *_) = bags(mode, padding, last)
    ids = indices(5, kind).view(-1)
    right = torch.tensor([0, 5, 35], dtype=kind)
    wrong = torch.tensor(offsets, dtype=kind)
    found = imported(record, function, rows, ids, right)
    mine = _result(lambda: found.aten(rows, ids, wrong))
    theirs = _result(function, rows, ids, wrong)
    if isinstance(theirs, torch.Tensor):
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
        # Torch does not write to bags whose bounds go back: they hold what was there.
        assert offsets != sorted(offsets) or torch.equal(mine, theirs)
    else:
        assert mine == theirs
