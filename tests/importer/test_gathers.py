"""Look-ups of rows: generated code finds them, behind torch's own error."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from magweld.importer.gathers import checked_on_device
from magweld.importer.importer import import_graph

TABLE = torch.arange(60.0).reshape(10, 6)
IDS = torch.tensor([[1, 9, 0], [4, 4, 2]])
ENDS = torch.tensor([-1, -10, 9, 0])

LOOK_UPS: dict[str, tuple[Any, tuple[torch.Tensor, ...]]] = {
    "embedding": (lambda t, i: F.embedding(i, t) * 2, (TABLE, IDS)),
    "embedding-narrow": (lambda t, i: F.embedding(i, t), (TABLE, IDS.int())),
    "embedding-padding": (lambda t, i: F.embedding(i, t, 0) + 1, (TABLE, IDS)),
    "index": (lambda t, i: t[i] + 1, (TABLE, IDS)),
    "index-from-the-end": (lambda t, i: t[i].exp(), (TABLE.neg(), ENDS)),
    "index-narrow": (lambda t, i: t[i].sum(0), (TABLE.double(), ENDS.int())),
    "index-of-whole-numbers": (lambda t, i: t[i] + 1, (TABLE.long(), IDS)),
    "index-of-more-dimensions": (lambda t, i: t[i], (TABLE.view(10, 2, 3), IDS)),
    "index-of-a-result": (lambda t, i: (t * 2)[i].mT * 3, (TABLE, IDS)),
    "index-of-rows-that-are-columns": (
        lambda t, i: t.t()[i.clamp(max=5)],
        (TABLE, IDS),
    ),
    "index-select": (
        lambda t, i: t.index_select(0, i) * 2,
        (TABLE, torch.tensor([3, 0])),
    ),
    "half": (lambda t, i: F.embedding(i, t), (TABLE.half(), IDS)),
    "slices-of-rows": (lambda t, i: t[i][..., 1:4] + t[:2, None, 1:4], (TABLE, IDS)),
}
SQUARES = torch.arange(120.0).view(4, 5, 6)
FIRST, SECOND = torch.tensor([0, 4, -5, 2]), torch.tensor([5, -1, 0, 2])
# Several dimensions, or another one than the first; how many checks.
INNER: dict[str, tuple[Any, tuple[torch.Tensor, ...], int]] = {
    "pairs": (lambda t, i, j: t[:, i, j] * 2, (SQUARES, FIRST, SECOND), 2),
    "pairs-of-the-first": (lambda t, i, j: t[i, j], (SQUARES[0], FIRST, SECOND), 2),
    "pairs-before-rows": (
        lambda t, i, j: t[i, j] + 1,
        (SQUARES, FIRST[:2] % 4, FIRST[2:]),
        2,
    ),
    "triples": (
        lambda t, i, j, k: t[k, i, j],
        (SQUARES, FIRST, SECOND, FIRST % 4),
        3,
    ),
    "pairs-of-shapes": (
        lambda t, i, j: t[:, i[:, None], j.int()],
        (SQUARES, FIRST, SECOND),
        2,
    ),
    "columns": (lambda t, i: t[:, :, i].exp(), (SQUARES.neg(), SECOND), 1),
    "middle": (lambda t, i: t[:, i], (SQUARES, FIRST), 1),
    "middle-of-a-transpose": (lambda t, i: t.mT[:, i], (SQUARES, FIRST), 1),
    "constants": (lambda t: t[:, torch.tensor([0, 3])], (TABLE,), 1),
    "index-select": (lambda t, i: t.index_select(1, i), (TABLE, IDS[0] % 6), 1),
    "halves": (lambda t, i, j: t[:, i, j], (SQUARES.half(), FIRST, SECOND), 2),
    "one-part": (lambda t, i, j: t[:, i, j], (SQUARES[:1], FIRST, SECOND), 2),
}
# Operators that stay whole.
OTHERS: dict[str, tuple[Any, tuple[torch.Tensor, ...]]] = {
    "no-indices": (lambda t, i: t[i], (TABLE, IDS[:0])),
    "no-pairs": (lambda t, i: t[:, i, i], (SQUARES, FIRST[:0])),
    "no-neighbours": (lambda t, i: t[i, :, i], (SQUARES, FIRST.clamp(-4, 3))),
    "vector": (lambda t, i: t[i], (TABLE[:, 0].clone(), IDS)),
    "byte": (lambda t, i: F.embedding(i, t), (TABLE.to(torch.int8), IDS)),
}


@pytest.mark.parametrize("name", LOOK_UPS)
def test_rows_are_those_of_eager(name: str, check: Any) -> None:
    function, inputs = LOOK_UPS[name]
    reference = check(function, *inputs, look_ups=True)
    (external,) = reference.imported.externals
    assert external.startswith("checked_")


@pytest.mark.parametrize("name", INNER)
def test_elements_are_those_of_eager(name: str, check: Any) -> None:
    function, inputs, checks = INNER[name]
    reference = check(function, *inputs, look_ups=True)
    found = reference.imported
    assert all(external.startswith("checked_places") for external in found.externals)
    assert len(found.externals) == len(found.index_checks) == checks


@pytest.mark.parametrize("name", OTHERS)
def test_other_look_ups_run_through_torch(name: str, check: Any) -> None:
    function, inputs = OTHERS[name]
    reference = check(function, *inputs, look_ups=True)
    assert not any(node.startswith("checked_") for node in reference.imported.externals)


@pytest.mark.parametrize(
    ("function", "indices"),
    [
        (lambda t, i: F.embedding(i, t) * 2, [1, 10]),
        (lambda t, i: F.embedding(i, t) * 2, [1, -1]),
        (lambda t, i: t[i] * 2, [0, 10]),
        (lambda t, i: t[i] * 2, [-11, 3]),
        (lambda t, i: t.index_select(0, i) * 2, [10, 0]),
        (lambda t, i: t.index_select(0, i) * 2, [-1, 0]),
    ],
)
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_an_index_out_of_range_raises_what_torch_raises(
    function: Any, indices: list[int], dtype: torch.dtype, record: Any
) -> None:
    good, bad = torch.tensor([0, 1], dtype=dtype), torch.tensor(indices, dtype=dtype)
    imported = import_graph(record(function, TABLE, good), [TABLE, good], look_ups=True)
    (node,) = imported.externals
    assert torch.equal(imported.run_external(node, [TABLE, good])[0], good)
    with pytest.raises(IndexError) as theirs:
        function(TABLE, bad)
    with pytest.raises(IndexError) as mine:
        imported.run_external(node, [TABLE, bad])
    assert str(mine.value) == str(theirs.value)


@pytest.mark.parametrize(
    ("function", "indices"),
    [
        (lambda t, i: t[:, i, i], [4, 5]),
        (lambda t, i: t[:, i, i], [-5, -6]),
        (lambda t, i: t[:, i, i - 5], [6, 0]),
        (lambda t, i: t[:, :, i], [0, 6]),
        (lambda t, i: t.index_select(1, i), [5, 0]),
        (lambda t, i: t.index_select(2, i), [-1, 0]),
    ],
)
def test_an_inner_index_out_of_range_raises_what_torch_raises(
    function: Any, indices: list[int], record: Any
) -> None:
    good, bad = torch.tensor([0, 1]), torch.tensor(indices)
    imported = import_graph(
        record(function, SQUARES, good), [SQUARES, good], look_ups=True
    )
    with pytest.raises((IndexError, RuntimeError)) as theirs:
        function(SQUARES, bad)
    with pytest.raises(theirs.type) as mine:
        imported.aten(SQUARES, bad)
    assert str(mine.value) == str(theirs.value)
    assert torch.equal(imported.aten(SQUARES, good), function(SQUARES, good))


ON_DEVICE: dict[str, Any] = {
    "embedding": torch.ops.aten.embedding,
    "index": lambda t, i: torch.ops.aten.index(t, [i]),
    "index_select": lambda t, i: t.index_select(0, i),
}


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("embedding", (10, 6)),
        ("index", (10, 6)),
        ("index", (10, 2, 3)),
        ("index_select", (10, 2, 3)),
    ],
)
def test_checks_on_gpus_look_up_one_element_of_a_row(
    name: str, shape: tuple[int, ...]
) -> None:
    seen: list[torch.Size] = []

    def look_up(table: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
        seen.append(table.shape)
        found: torch.Tensor = ON_DEVICE[name](table, indices)
        return found

    check = checked_on_device(look_up)
    good = torch.tensor([0, 9])
    assert check(TABLE.view(shape), good) is good
    assert seen == [(10, *[1] * (len(shape) - 1))]
    with pytest.raises(IndexError):
        check(TABLE.view(shape), torch.tensor([3, 10]))


@pytest.mark.parametrize("name", [*ON_DEVICE, "embedding_bag", "places"])
def test_checks_have_kernels_for_gpus(name: str) -> None:
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    assert has(f"magweld::checked_{name}", "CPU")
    assert has(f"magweld::checked_{name}", "CUDA")


def test_without_leave_look_ups_stay_operators_of_torch(check: Any) -> None:
    function, inputs = LOOK_UPS["embedding"]
    assert list(check(function, *inputs).imported.externals) == ["embedding"]
