"""Arrays and lists of numbers that change from call to call are inputs of the graph."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from magweld.frontend import trace

WEIGHT = torch.randn(4, 3)


def arrays(dtype: Any = np.float32, rows: Any = (5, 5, 5, 5)) -> Iterator[Any]:
    random = np.random.default_rng(0)
    for count in rows:
        yield ((random.random((count, 4)) * 100).astype(dtype),)


def numbers(counts: Any = (4, 4, 4, 4)) -> Iterator[Any]:
    random = np.random.default_rng(1)
    for count in counts:
        yield (random.integers(0, 50, count).tolist(),)


def product_of(x: Tensor) -> Tensor:
    return x.float() @ WEIGHT


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[], Iterator[Any]]]] = {
    "from_numpy": (lambda a: product_of(torch.from_numpy(a)), arrays),
    "tensor of an array": (lambda a: product_of(torch.tensor(a)), arrays),
    "as_tensor": (lambda a: product_of(torch.as_tensor(a)), arrays),
    "other dtype": (
        lambda a: product_of(torch.as_tensor(a, dtype=torch.float64)),
        arrays,
    ),
    "integers": (
        lambda a: product_of(torch.tensor(a, dtype=torch.int16)),
        lambda: arrays(np.int64),
    ),
    "bytes": (
        lambda a: product_of(torch.from_numpy(a).float() / 255),
        lambda: arrays(np.uint8),
    ),
    "rows": (
        lambda a: product_of(torch.from_numpy(a)),
        lambda: arrays(rows=(3, 4, 5, 6, 7, 3, 8)),
    ),
    "fortran": (
        lambda a: (torch.from_numpy(a), torch.tensor(a), torch.tensor(a).float()),
        lambda: ((np.asfortranarray(a),) for (a,) in arrays(np.float64)),
    ),
    "list": (lambda x: product_of(torch.tensor(x)), numbers),
    "typed list": (lambda x: product_of(torch.tensor(x, dtype=torch.long)), numbers),
    "by name": (lambda x: product_of(torch.tensor(data=x)), numbers),
    "batch of lists": (
        lambda x: product_of(torch.tensor(x)),
        lambda: (([x, x[::-1], [*x]],) for (x,) in numbers()),
    ),
    "tokens": (
        lambda x: torch.tensor([x]).float().sum(1),
        lambda: numbers((3, 5, 9, 4, 6, 7, 3)),
    ),
    "twice in a batch": (lambda x: torch.tensor([x, x]).float().sum(1), numbers),
    "lengths": (
        lambda x: torch.tensor(x).float().cumsum(0),
        lambda: numbers((3, 5, 9, 4, 6, 7, 3)),
    ),
    "twice": (
        lambda a: torch.from_numpy(a) * 2 + torch.tensor(a).sum(),
        arrays,
    ),
    "old class": (lambda x: product_of(torch.FloatTensor(x)), numbers),
    "old class of an array": (
        lambda a: (torch.Tensor(a), torch.FloatTensor(a)),
        lambda: iter([*arrays(), *arrays(np.float64)]),
    ),
    "index": (
        lambda places: WEIGHT[places] * 2,
        lambda: ((np.array([n, 1]),) for n in range(4)),
    ),
    "mask": (
        lambda mask: WEIGHT[mask].sum(0) + WEIGHT.T[:, torch.tensor(mask)].sum(1),
        lambda: ((np.array([True, n > 1, n < 1, n > 1]),) for n in range(4)),
    ),
    "two of them": (
        lambda a, b: torch.from_numpy(a) + torch.from_numpy(b),
        lambda: ((a, a * 2) for (a,) in arrays()),
    ),
    "in a dict": (
        lambda batch: torch.tensor(batch["ids"]) + torch.from_numpy(batch["mask"]),
        lambda: (
            ({"ids": x, "mask": a[0]},)
            for (x,), (a,) in zip(numbers(), arrays(), strict=True)
        ),
    ),
    "kinds of numbers": (
        lambda x: torch.tensor(x) * 2,
        lambda: iter(
            [([1, 2],), ([1.5, 2],), ([3, 4],), ([True, False],), ([2.5, 1],)]
        ),
    ),
}


def shown(result: Any) -> Any:
    """Return what is compared of a result."""
    if isinstance(result, (tuple, list)):
        return [shown(part) for part in result]
    if not isinstance(result, Tensor):
        return result
    return result.dtype, result.shape, result.stride(), result.tolist()


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_eager(name: str, check: bool) -> None:
    program, given = PROGRAMS[name]
    traced = trace(program, backend="eager", check=check)
    for args in given():
        assert shown(traced(*args)) == shown(program(*args))
    count = len({str(shown(torch.as_tensor(x))[:2]) for (x, *_) in _plain(given)})
    assert traced.stats()["records"] <= max(3, count + 1), traced.explain()
    assert traced.stats()["hits"] >= 1, traced.explain()


def _plain(given: Callable[[], Iterator[Any]]) -> Iterator[Any]:
    return (args for args in given() if not isinstance(args[0], dict))


def test_a_long_list_takes_two_records() -> None:
    traced = trace(lambda x: torch.tensor(x).float().mean(), backend="eager")
    for (x,) in numbers([300] * 6):
        assert traced(x) == torch.tensor(x).float().mean()
    assert traced.stats()["records"] == 2


def test_data_that_stays_is_constant() -> None:
    ids = [1, 2, 3]
    traced = trace(lambda x, ids: x + torch.tensor(ids), backend="eager")
    for _ in range(4):
        traced(torch.ones(3), ids)
    (record,) = traced.records
    assert len(record.input_paths) == 1


@pytest.mark.parametrize(
    "program",
    [
        torch.from_numpy,
        torch.asarray,
        lambda a: torch.asarray(obj=a, copy=False),
        lambda a: torch.asarray(a, copy=True),
        lambda a: torch.asarray(a, dtype=torch.float64),
        lambda a: torch.asarray(a, requires_grad=True),
    ],
)
def test_a_result_shares_the_memory_of_its_array(program: Callable[..., Any]) -> None:
    traced = trace(lambda a: program(a), backend="eager")
    for (a,) in arrays():
        other = a.copy()
        found, expected = traced(a), program(other)
        a[0, 0] = other[0, 0] = -1
        assert shown(found) == shown(expected)
        assert found.requires_grad == expected.requires_grad


@pytest.mark.parametrize("check", [False, True])
def test_a_write_to_a_tensor_is_one_to_its_array(check: bool) -> None:
    def program(a: Any) -> Tensor:
        x = torch.from_numpy(a)
        x.mul_(2)
        return x.sum() + torch.from_numpy(a)[0, 0]

    traced = trace(program, backend="eager", check=check)
    for (a,) in arrays():
        other = a.copy()
        assert traced(a) == program(other)
        assert (a == other).all()


def test_a_copy_is_no_view_of_its_array() -> None:
    def program(a: Any) -> tuple[Tensor, Tensor]:
        x, copied = torch.from_numpy(a), torch.tensor(a)
        x.mul_(2)
        return copied, torch.tensor(a)

    traced = trace(program, backend="eager")
    for (a,) in arrays():
        other = a.copy()
        assert shown(traced(a)) == shown(program(other))
        assert (a == other).all()


def test_a_tensor_of_the_caller_may_share_the_memory() -> None:
    def program(a: Any, x: Tensor) -> Tensor:
        before = torch.tensor(a)
        x.add_(1)
        return before + torch.tensor(a)

    traced = trace(program, backend="eager")
    for shares in (False, False, True, False, True, True):
        for (a,) in arrays():
            b = a.copy()
            x, y = torch.from_numpy(a), torch.from_numpy(b)
            if not shares:
                x, y = x.clone(), y.clone()
            assert shown(traced(a, x)) == shown(program(b, y))


def test_a_list_that_the_program_has_changed() -> None:
    def program(x: list[Any]) -> Tensor:
        first = torch.tensor(x)
        x.append(len(x))
        x[0] = 7
        return first.sum() + torch.tensor(x).sum()

    def inner(x: list[Any]) -> Tensor:
        x[0].append(3)
        return torch.tensor(x)

    for function, wrap in ((program, list), (inner, lambda x: [list(x)])):
        traced = trace(function, backend="eager")
        for (x,) in numbers():
            mine, other = wrap(x), wrap(x)
            assert shown(traced(mine)) == shown(function(other))
            assert mine == other


TAKES_ARRAYS: list[Callable[[Tensor, Any], Any]] = [
    lambda x, a: x[a],
    lambda x, a: x[..., a],
    lambda x, a: x.clone().index_put_((torch.tensor(a),), x[0]),
    lambda x, a: x[[a]],
    lambda x, a: x[:a],
    lambda x, a: x.repeat(a).shape[0],
    lambda x, a: torch.zeros(a).shape,
    lambda x, a: torch.ones((a, 2)).shape,
    lambda x, a: x.tensor_split(a),
    lambda x, a: x.topk(a).values.shape,
    lambda x, a: x == a,
    lambda x, a: x + a,
    lambda x, a: x.clamp(max=a),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("place", range(len(TAKES_ARRAYS)))
def test_arrays_as_operands(place: int) -> None:
    """One of no dimension is a number or a size, indices are converted."""
    program = TAKES_ARRAYS[place]

    def outcome(function: Callable[..., Any], *args: Any) -> Any:
        try:
            return shown(function(*args))
        except Exception as error:
            return type(error)

    for dtype in ("int64", "int8", "uint8", "bool", "float32"):
        for shape in ((), (4,)):
            traced = trace(program, backend="eager")
            random = np.random.default_rng(3)
            for _ in range(5):
                a = np.asarray(random.integers(0, 4, shape)).astype(dtype)
                x = torch.arange(4.0)
                assert outcome(traced, x, a) == outcome(program, x.clone(), a.copy())
            raised = [one for one in traced.breaks if one.id == "hit-raised"]
            assert not raised, traced.explain()


class Number:
    """An object that is asked for its value."""

    asked = 0

    def __float__(self) -> float:
        Number.asked += 1
        return 2.5


@pytest.mark.parametrize(
    "given",
    [
        [1, "2"],
        [[1], [2, 3]],
        [1, None],
        [2**70],
        [Number(), 1.0],
        [torch.tensor(3), 1],
        [np.float32(3), 1],
        [[]],
        [],
        (1, 2),
        range(3),
        np.array([1, 2])[::-1],
        np.array(["a"]),
        np.array([1, 2], dtype=">i4"),
        np.array(3),
        np.matrix([[1, 2]]),
        np.zeros((0, 3)),
    ],
    ids=lambda given: f"{type(given).__name__} {given!r}"[:30],
)
def test_data_of_other_kinds_behind_numbers(given: Any) -> None:
    def outcome(function: Callable[..., Any], data: Any) -> Any:
        Number.asked = 0
        try:
            return shown(function(data)), Number.asked
        except Exception as error:
            return type(error), str(error), Number.asked

    def program(data: Any) -> Any:
        return torch.as_tensor(data) * 2

    for usual in (numbers, arrays):
        traced = trace(program, backend="eager")
        calls = [x for (x,) in usual()]
        for data in (*calls[:3], given, calls[3], given):
            assert outcome(traced, data) == outcome(program, data)


def test_arrays_that_may_not_be_written() -> None:
    traced = trace(lambda a: torch.from_numpy(a) * 2, backend="eager")
    for number, (a,) in enumerate(arrays()):
        a.flags.writeable = number < 3
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert shown(traced(a)) == shown(torch.from_numpy(a) * 2)


class Keeps(nn.Module):
    """Takes what is left in an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.bias: list[float] = [0.0]
        self.last: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        self.last = torch.tensor(self.bias)
        return x + self.last


def test_data_in_attributes() -> None:
    model, other = Keeps(), Keeps()
    traced = trace(model, backend="eager")
    for number in range(5):
        model.bias = [float(number)]
        other.bias = [float(number)]
        x = torch.ones(2)
        assert shown(traced(x)) == shown(other(x))
        assert shown(model.last) == shown(other.last)
    assert traced.stats()["hits"] == 3


def test_values_of_the_tensor_decide() -> None:
    def program(x: list[int]) -> Any:
        ids = torch.tensor(x)
        return (ids * 2 if ids.sum() > 60 else ids - 1), ids[0].item()

    traced = trace(program, backend="eager")
    for (x,) in numbers([4] * 12):
        assert shown(traced(x)) == shown(program(x))


def test_a_mode_of_torch_around_the_call() -> None:
    traced = trace(lambda x: torch.tensor(x) * 2, backend="eager")
    kept = torch.get_default_dtype()
    try:
        for number in range(8):
            torch.set_default_dtype(torch.float64 if number % 3 == 2 else kept)
            x = [number + 0.5, 1.0]
            assert shown(traced(x)) == shown(torch.tensor(x) * 2)
    finally:
        torch.set_default_dtype(kept)
    with torch.device("meta"):
        assert traced([1.0, 2.0]).device.type == "meta"
    with torch.inference_mode():
        assert traced([3.0, 2.0]).is_inference()
    assert not traced([4.0, 2.0]).is_inference()


@pytest.mark.parametrize("dtype", [">f4", "M8[s]", "longdouble", "U3", "f4"])
def test_check_mode_compares_arrays_of_any_dtype(dtype: str) -> None:
    def program(x: Tensor, a: Any) -> Any:
        return x * 2, a

    a = np.arange(3).astype(dtype)
    traced = trace(program, backend="eager", check=True)
    for number in range(4):
        x = torch.ones(2) * number
        found, same = traced(x, a)
        assert shown(found) == shown(x * 2)
        assert same is a
    assert traced.stats()["hits"] == 3


@pytest.mark.parametrize("overlaps", [[False, True], [True, False]])
def test_arrays_that_overlap(overlaps: list[bool]) -> None:
    def program(a: Any, b: Any) -> Tensor:
        x, y = torch.from_numpy(a), torch.from_numpy(b)
        x.add_(1)
        return y * 2

    traced = trace(program, backend="eager")
    for overlap in [*overlaps] * 4:
        (a,), (other,) = list(arrays())[:2]
        mine, theirs = (a[:3], a[1:4] if overlap else other[1:4])
        copied = a.copy()
        expected = program(copied[:3], copied[1:4] if overlap else other[1:4].copy())
        assert shown(traced(mine, theirs)) == shown(expected)


def test_a_list_that_is_written_between_calls() -> None:
    model, other = Keeps(), Keeps()
    traced = trace(model, backend="eager")
    for number in range(6):
        model.bias[0] = other.bias[0] = float(number)
        x = torch.ones(2)
        assert shown(traced(x)) == shown(other(x))
    assert traced.stats()["hits"] == 4


def test_numpy_before_and_behind() -> None:
    """The program is split where numpy reads what keeps changing."""

    def program(image: Any) -> Any:
        image = image.astype(np.float32) / 255
        x = torch.from_numpy(image)
        for _ in range(4):
            x = torch.relu(x @ WEIGHT) @ WEIGHT.T - 0.5
        return x.numpy().argmax(1), image.shape[0]

    traced = trace(program, backend="eager")
    for (a,) in arrays(np.uint8, [5] * 12):
        (found, rows), (expected, _) = traced(a), program(a)
        assert found.tolist() == expected.tolist()
        assert rows == 5
    assert traced.stats()["records"] <= 12, traced.explain()
    assert traced.stats()["hits"] >= 8, traced.explain()


def test_few_arrays_have_a_record_each() -> None:
    places = np.array([0, 1]), np.array([1, 2])
    traced = trace(lambda x, a: x[a.max() :], backend="eager")
    for number in range(8):
        assert len(traced(torch.arange(4.0), places[number % 2])) == 3 - number % 2
    assert traced.stats()["hits"] == 6


def test_the_shape_of_an_array_is_no_part_of_its_elements() -> None:
    def program(x: Tensor, a: Any) -> Tensor:
        return x * a.shape[0] + len(a) + a.ndim + a.size

    traced = trace(program, backend="eager")
    for args in arrays(rows=(5, 5, 5, 6, 6, 5)):
        assert shown(traced(WEIGHT, *args)) == shown(program(WEIGHT, *args))
    assert traced.stats()["records"] == 2


def test_all_numbers_of_a_list_are_lifted_once_two_have_changed() -> None:
    def program(x: list[int]) -> Tensor:
        return product_of(torch.tensor([[y / 50 for y in x]]))

    traced = trace(program, backend="eager")
    for (x,) in numbers([4] * 8):
        assert shown(traced(x)) == shown(program(x))
    assert traced.stats()["records"] <= 5, traced.explain()
    assert traced.stats()["hits"] >= 3


def test_numbers_of_a_list_that_decide_stay() -> None:
    def program(x: Tensor, how: list[int]) -> Tensor:
        parts = [x * number for number in range(how[0])]
        return torch.stack(parts).sum(0) + how[1] * how[2]

    traced = trace(program, backend="eager")
    for number in range(24):
        how = [1 + number % 2, number % 5, 7 * number % 11]
        assert shown(traced(WEIGHT, how)) == shown(program(WEIGHT, how))
    assert traced.stats()["records"] <= 12, traced.explain()


@pytest.mark.parametrize(
    "program",
    [
        lambda x: (x.append(5), torch.tensor(x))[1],
        lambda x: (x.extend([1, 2]), torch.tensor([x, x]))[1],
        lambda x: (x.append(5), torch.ones(2) * max(*x, 0))[1],
        lambda x: (x.append(5), torch.tensor(list(x)))[1],
        lambda x: (x.reverse(), torch.tensor(x))[1],
        lambda x: (x.pop(), torch.tensor(x))[1],
        lambda x: (x.pop(0), torch.tensor([x, x]))[1],
    ],
)
def test_a_list_that_grew_keeps_its_own_numbers(program: Callable[..., Any]) -> None:
    traced = trace(program, backend="eager")
    for (x,) in numbers([4] * 9):
        other = list(x)
        assert shown(traced(x)) == shown(program(other))
        assert x == other


def test_the_form_of_an_array_that_the_program_sets() -> None:
    def program(a: Any) -> Any:
        a.shape = (4, 5)
        return torch.from_numpy(a) * 2, a.shape

    traced = trace(program, backend="eager")
    for (a,) in arrays():
        assert shown(traced(a)) == shown(program(a.copy().reshape(5, 4)))
    assert not [one for one in traced.breaks if one.id == "monitor-error"]
