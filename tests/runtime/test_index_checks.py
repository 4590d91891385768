"""Checks of indices in native code: what they copy, find, and leave to torch."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, fx

from magweld.artifact import (
    BoundsCheck,
    ExternalStep,
    IndexCheck,
    NativeCheck,
    Place,
    Program,
    RowOrder,
    Value,
)
from magweld.importer.gathers import index_check_of
from magweld.importer.row_gradients import PLACES_BY_ROW
from magweld.required_truth import REQUIRE_TRUTH
from magweld.runtime import index_scan
from magweld.runtime.frame import Form, Frame
from magweld.runtime.index_checks import bind_index_checks, native_checks
from magweld.runtime.layout import Layout
from magweld.runtime.memory import Constants
from magweld.runtime.program import LoadedProgram

ROWS = 11
KINDS = {"i32": torch.int32, "i64": torch.int64}
CHECK = IndexCheck(table=0, indices=1, lowest=0)
FROM_THE_END = IndexCheck(table=0, indices=1, lowest=None)


def program(counts: Sequence[int], kind: str, results: Sequence[int] = ()) -> Program:
    """A table, indices of some lengths, and a check of each."""
    values = [Value((ROWS, 2), "f32", Place.INPUT)]
    values += [Value((n,), kind, Place.INPUT, 1 + i) for i, n in enumerate(counts)]
    first = len(values)
    values += [Value((n,), kind, Place.ADOPTED) for n in counts]
    steps = tuple(
        ExternalStep(f"check_{i}", (0, 1 + i), (first + i,)) for i in range(len(counts))
    )
    return Program(tuple(values), steps, tuple(results), arena_bytes=0)


class Checks:
    """Checks on a frame, and the nodes that torch was asked to run."""

    def __init__(self, counts: Sequence[int], kind: str, check: IndexCheck) -> None:
        layout = Layout(program(counts, kind))
        names = {step.node: check for step in layout.program.steps}
        self.found = native_checks(layout, names)
        form = Form(layout.signatures, self.run)
        constants = Constants((), torch.device("cpu"))
        self.frame = Frame(layout, form, constants, checks=self.found)
        self.ran: list[str] = []
        steps = [(layout.program.steps[n], one) for n, one in self.found.items()]
        self.act = bind_index_checks(self.frame, steps, self.run)

    def run(self, node: str, tensors: Sequence[Tensor]) -> list[Tensor]:
        self.ran.append(node)
        return [torch.full_like(tensors[1], 7)]

    def __call__(self, indices: Sequence[Tensor]) -> list[Tensor]:
        arguments = [torch.zeros(ROWS, 2), *indices]
        self.frame.begin(arguments, [tensor.data_ptr() for tensor in arguments])
        self.act()
        first = 1 + len(indices)
        return [
            _read(self.frame.table[first + number], tensor)
            for number, tensor in enumerate(indices)
        ]


def _read(address: int, like: Tensor) -> Tensor:
    size = like.numel() * like.element_size()
    data = bytearray(ctypes.string_at(address, size))
    return torch.frombuffer(data, dtype=like.dtype)


def test_no_call_waits_for_the_native_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs with checks make it when they are loaded, others do not need it."""
    made: list[index_scan.Checker] = []
    original = index_scan.checker

    def checker() -> index_scan.Checker:
        made.append(original())
        return made[-1]

    monkeypatch.setattr(index_scan, "checker", checker)
    LoadedProgram(program([4], "i64"), lambda *_: [])
    assert not made
    LoadedProgram(program([4], "i64"), lambda *_: [], checks={"check_0": CHECK})
    assert made


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("check", [CHECK, FROM_THE_END])
def test_what_is_in_range_is_copied(kind: str, check: IndexCheck) -> None:
    counts = [1, 7, 8, 9, 31, 64]
    least = -ROWS if check.lowest is None else 0
    checks = Checks(counts, kind, check)
    assert len(checks.found) == len(counts)
    indices = [torch.randint(least, ROWS, (n,), dtype=KINDS[kind]) for n in counts]
    for one in indices:
        one[0], one[-1] = ROWS - 1, least
    assert all(map(torch.equal, checks(indices), indices))
    assert not checks.ran


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 8, 13])
def test_each_index_out_of_range_is_found(kind: str, count: int) -> None:
    checks = Checks([3, count], kind, CHECK)
    limits = torch.iinfo(KINDS[kind])
    for bad in (-1, ROWS, limits.min, limits.max):
        for place in range(count):
            first = torch.zeros(3, dtype=KINDS[kind])
            second = torch.full((count,), ROWS - 1, dtype=KINDS[kind])
            second[place] = bad
            copies = checks([first, second])
            assert checks.ran == ["check_1"]
            # What torch returned where it raised nothing is what kernels read.
            assert torch.equal(copies[0], first)
            assert copies[1].eq(7).all()
            checks.ran.clear()


def test_several_that_fail_are_all_left_to_torch() -> None:
    checks = Checks([2, 2, 2], "i64", CHECK)
    bad, good = torch.tensor([0, ROWS]), torch.tensor([0, 1])
    checks([bad, good, bad])
    assert checks.ran == ["check_0", "check_2"]


def test_indices_that_are_returned_are_checked_by_torch() -> None:
    returned = program([3], "i64", results=[2])
    names = {"check_0": CHECK}
    assert not native_checks(Layout(returned), names)
    ran: list[str] = []

    def run(node: str, tensors: Sequence[Tensor]) -> list[Tensor]:
        ran.append(node)
        return [tensors[1].clone()]

    loaded = LoadedProgram(returned, run, checks=names)
    indices = torch.tensor([1, 2, 3])
    (result,) = loaded([torch.zeros(ROWS, 2), indices])
    assert torch.equal(result, indices)
    assert ran == ["check_0"]


BOUNDS = BoundsCheck(indices=0, bounds=1)


def bounds_of(kind: str, read: int, written: int, bounds: Sequence[int]) -> Any:
    """Run a check of bounds of eleven indices; return what it copies, and who ran."""
    values = (
        Value((ROWS,), kind, Place.INPUT, 0),
        Value((read,), kind, Place.INPUT, 1),
        Value((written,), kind, Place.ADOPTED),
    )
    step = ExternalStep("check", (0, 1), (2,))
    layout = Layout(Program(values, (step,), (), arena_bytes=0))
    checks: dict[str, NativeCheck] = {"check": BOUNDS}
    assert native_checks(layout, checks) == {0: BOUNDS}
    ran: list[str] = []

    def run(node: str, tensors: Sequence[Tensor]) -> list[Tensor]:
        ran.append(node)
        return [torch.full((written,), 7, dtype=KINDS[kind])]

    constants = Constants((), torch.device("cpu"))
    frame = Frame(layout, Form(layout.signatures, run), constants, checks={0: BOUNDS})

    act = bind_index_checks(frame, [(step, BOUNDS)], run)
    arguments = [torch.zeros(ROWS, dtype=KINDS[kind])]
    arguments.append(torch.tensor(bounds, dtype=KINDS[kind]))
    frame.begin(arguments, [tensor.data_ptr() for tensor in arguments])
    act()
    copy = torch.empty(written, dtype=KINDS[kind])
    return _read(frame.table[2], copy).tolist(), ran


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bounds", [[0], [0, 0], [0, 3, 3, 11], [0, 11, 11], [0, 4, 9]])
def test_bounds_are_copied_and_the_last_one_is_added(
    kind: str, bounds: list[int]
) -> None:
    count = len(bounds)
    assert bounds_of(kind, count, count + 1, bounds) == ([*bounds, ROWS], [])
    if bounds[-1] == ROWS:
        assert bounds_of(kind, count, count, bounds) == (bounds, [])
    else:
        assert bounds_of(kind, count, count, bounds) == ([7] * count, ["check"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("behind", [0, 1])
@pytest.mark.parametrize(
    "bounds", [[1, 11], [0, 12], [0, 5, 4, 11], [0, -1, 11], [-1, 0, 11], [0, 11, 10]]
)
def test_bounds_that_are_none_are_left_to_torch(
    kind: str, behind: int, bounds: list[int]
) -> None:
    count = len(bounds)
    expected = [7] * (count + behind), ["check"]
    assert bounds_of(kind, count, count + behind, bounds) == expected


class Orders:
    """An order of indices on a frame, and the nodes that torch was asked to run."""

    def __init__(self, count: int, kind: str, order: RowOrder) -> None:
        values = (
            Value((count,), kind, Place.INPUT, 0),
            Value((count,), kind, Place.ADOPTED),
            Value((ROWS + 1,), kind, Place.ADOPTED),
        )
        self.shapes = [torch.empty(v.shape, dtype=KINDS[kind]) for v in values[1:]]
        step = ExternalStep("order", (0,), (1, 2))
        layout = Layout(Program(values, (step,), (), arena_bytes=0))
        checks: dict[str, NativeCheck] = {"order": order}
        assert native_checks(layout, checks) == {0: order}
        constants = Constants((), torch.device("cpu"))
        form = Form(layout.signatures, self.run)
        self.frame = Frame(layout, form, constants, checks={0: order})
        self.ran: list[str] = []
        self.act = bind_index_checks(self.frame, [(step, order)], self.run)

    def run(self, node: str, tensors: Sequence[Tensor]) -> list[Tensor]:
        self.ran.append(node)
        return [torch.full_like(shape, 7) for shape in self.shapes]

    def __call__(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        self.frame.begin([indices], [indices.data_ptr()])
        self.act()
        places, bounds = (
            _read(self.frame.table[1 + number], shape)
            for number, shape in enumerate(self.shapes)
        )
        return places, bounds


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("count", "size"), [(1, 1), (24, 1), (24, 3), (60, 60)])
@pytest.mark.parametrize("padding", [-1, 4])
def test_indices_are_sorted_as_torch_sorts_them(
    kind: str, count: int, size: int, padding: int
) -> None:
    orders = Orders(count, kind, RowOrder(0, size, padding))
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        indices = torch.randint(0, ROWS, (count,), generator=generator)
        indices = indices.to(KINDS[kind])
        indices[-1] = ROWS - 1
        places, bounds = orders(indices)
        expected, ends = PLACES_BY_ROW(indices, ROWS, size, padding)
        assert torch.equal(bounds, ends)
        kept = int(ends[-1])
        assert kept == int((indices != padding).sum())
        assert torch.equal(places[:kept], expected[:kept])
    assert not orders.ran


@pytest.mark.parametrize("kind", KINDS)
def test_an_order_of_an_index_out_of_range_is_left_to_torch(kind: str) -> None:
    orders = Orders(4, kind, RowOrder(0, 2, -1))
    limits = torch.iinfo(KINDS[kind])
    for bad in (-1, ROWS, limits.min, limits.max):
        for place in range(4):
            indices = torch.zeros(4, dtype=KINDS[kind])
            indices[place] = bad
            places, bounds = orders(indices)
            assert orders.ran == ["order"]
            # What torch returned where it raised nothing is what kernels read.
            assert places.eq(7).all()
            assert bounds.eq(7).all()
            orders.ran.clear()


def test_an_order_with_one_result_alone_is_left_to_torch() -> None:
    values = (
        Value((4,), "i64", Place.INPUT, 0),
        Value((4,), "i64", Place.ADOPTED),
    )
    step = ExternalStep("order", (0,), (1,))
    layout = Layout(Program(values, (step,), (), arena_bytes=0))
    assert not native_checks(layout, {"order": RowOrder(0, 1, -1)})


@pytest.mark.parametrize("truth", [False, True])
def test_a_truth_that_is_not_the_required_one_is_left_to_torch(truth: bool) -> None:
    condition = Value((), "i1", Place.INPUT)
    step = ExternalStep("check", (0,), (1,))
    values = (condition, Value((), "i1", Place.ADOPTED))
    asked: list[bool] = []

    def run(node: str, tensors: Sequence[Tensor]) -> list[Tensor]:
        asked.append(bool(tensors[0]))
        return list(tensors)

    arguments = (fx.Graph().placeholder("condition"), truth)
    check = index_check_of(str(REQUIRE_TRUTH), arguments, lambda node: 0)
    assert check is not None
    program = Program(values, (step,), (), arena_bytes=0)
    loaded = LoadedProgram(program, run, checks={"check": check})
    for given in (truth, not truth, truth):
        loaded([torch.tensor(given)])
    assert asked == [not truth]


def test_checks_are_part_of_a_call_that_is_one_function(
    affine: Any, build_object: Any
) -> None:
    """A check in front of each of two kernels; the second one is left to torch."""
    kernels = (
        affine("one", (0,), 5, 4, 1.0, 1.0),
        affine("twice", (0,), 6, 4, 2.0),
    )
    values = (
        Value((4,), "f32", Place.INPUT, 0),
        Value((3,), "i64", Place.INPUT, 1),
        Value((3,), "i32", Place.INPUT, 2),
        Value((3,), "i64", Place.ADOPTED),
        Value((3,), "i32", Place.ADOPTED),
        Value((4,), "f32", Place.OUTPUT),
        Value((4,), "f32", Place.OUTPUT),
    )
    steps = (
        ExternalStep("first", (0, 1), (3,)),
        replace(kernels[0].step, reads=(0, 3)),
        ExternalStep("second", (0, 2), (4,)),
        replace(kernels[1].step, reads=(0, 4)),
    )
    asked: list[str] = []

    def run(node: str, tensors: Sequence[Tensor]) -> list[Tensor]:
        asked.append(node)
        raise IndexError(node)

    checks = dict.fromkeys(("first", "second"), CHECK)
    code = (build_object(kernels),)
    whole = Program(values, steps, (5, 6), arena_bytes=0, objects=code)
    loaded = LoadedProgram(whole, run, checks=checks)
    x, right, wrong = torch.randn(4), torch.arange(3), torch.tensor([0, 4, 1])

    def call(first: Tensor, second: Tensor) -> list[Tensor]:
        return loaded([x, first, second.int()])

    call(right, right)
    assert loaded._whole_on(loaded._make_frame()) is not None
    for first, second, names in (
        (right, wrong, ["second"]),
        (wrong, right, ["first"]),
        (wrong, wrong, ["first"]),
    ):
        asked.clear()
        with pytest.raises(IndexError, match=names[0]):
            call(first, second)
        assert asked == names
        assert all(map(torch.equal, call(right, right), (x + 1, 2 * x)))
