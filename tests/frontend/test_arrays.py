"""Arrays of numpy as arguments of torch calls."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from halves import Halves

from magweld.frontend import trace

pytestmark = pytest.mark.filterwarnings("error:To copy construct")

X = torch.arange(6.0).reshape(2, 3)
FORM = np.arange(6.0).reshape(2, 3)
LARGE = np.linspace(0.0, 1.0, 10_000).reshape(100, 100)
PLACES = np.array([1, 0])
FLAGS = np.array([True, False])

PROGRAMS = {
    "from_numpy": lambda x: x * torch.from_numpy(FORM),
    "transposed": lambda x: x.T * torch.from_numpy(FORM.T),
    "old class": lambda x: x * torch.Tensor(FORM),
    "old integers": lambda x: x[torch.LongTensor(PLACES)],
    "tensor": lambda x: x * torch.tensor(FORM, dtype=torch.float32),
    "as_tensor": lambda x: x + torch.as_tensor(FORM),
    "new_tensor": lambda x: x + x.new_tensor(FORM),
    "list of arrays": lambda x: x * torch.tensor(np.float64(2.0)) + torch.Tensor([2.0]),
    "by name": lambda x: x + torch.tensor(data=FORM) + x.new_tensor(data=FORM),
    "large": lambda x: x.sum() + torch.from_numpy(LARGE),
    "large and new": lambda x: x.sum() + torch.from_numpy(LARGE + 1),
    "empty": lambda x: torch.from_numpy(np.zeros((0, 3))).sum() + x,
    "index": lambda x: x[PLACES],
    "mask": lambda x: x[FLAGS],
    "range": lambda x: x[range(2), range(1, 3)],
    "new memory": lambda x: torch.from_numpy(np.zeros((2, 3))).add_(x),
    "nothing else": lambda x: torch.from_numpy(np.ones(3)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_array_as_an_argument(checker, name):
    check = checker(PROGRAMS[name])
    assert check(X.clone()) == "record", check.traced.explain()
    assert check(X + 1.0) == "hit", check.traced.explain()


def test_content_of_arrays_is_read_at_every_call(checker, monkeypatch):
    values = FORM.copy()
    check = checker(lambda x: x[PLACES] * torch.from_numpy(values))
    for place, value in (((0, 0), 7.0), ((1, 2), 8.0)):
        values[place] = value
        assert check(X) in ("record", "hit"), check.traced.explain()
        assert check(X * 2.0) == "hit", check.traced.explain()
    monkeypatch.setitem(globals(), "PLACES", np.array([0, 0]))
    assert check(X) == "hit", check.traced.explain()


def shared_before(x):
    array = np.zeros(3)
    tensor = torch.from_numpy(array)
    tensor.add_(1.0)
    return x * float(array.sum())


def shared_by_two(x):
    array = np.zeros(4, np.float32)
    return x * 2, torch.from_numpy(array), torch.from_numpy(array[1:])


def shared_after(x):
    array = np.zeros(3)
    tensor = torch.from_numpy(array)
    array[0] = 5.0
    return x + tensor


@pytest.mark.parametrize(
    "function",
    [
        shared_before,
        shared_after,
        shared_by_two,
    ],
)
def test_memory_that_arrays_and_tensors_share(checker, function):
    check = checker(function)
    for _ in range(3):
        assert check(X) not in ("record", "hit"), check.traced.explain()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.from_numpy(FORM),
        lambda x: torch.from_numpy(FORM).mul_(1.0) + x,
    ],
)
def test_memory_of_arrays_of_the_caller(checker, function):
    check = checker(function)
    assert [check(X) for _ in range(3)] == ["record", "hit", "hit"]


def _lowest(x):
    kind = torch.tensor(0, dtype=x.dtype).numpy().dtype
    return x.masked_fill(x > 2, float(np.finfo(kind).min))


def _numbers(x):
    array = torch.arange(4)[1:].numpy()
    return x + np.sum(array) + torch.from_numpy(array)[1] + array.shape[0]


def _of_a_size(x):
    return x + torch.zeros(2, x.size(0)).numpy().shape[1]


@pytest.mark.parametrize("function", [_lowest, _numbers, _of_a_size])
def test_an_array_of_a_tensor_that_the_program_decides(checker, function):
    check = checker(function)
    assert check(X.clone()) == "record", check.traced.explain()
    assert check(X + 1.0) == "hit", check.traced.explain()
    assert check((X + 1.0).double().repeat(2, 1)) == "record", check.traced.explain()
    assert check.traced.breaks == [], check.traced.explain()


def _written_tensor(x):
    tensor = torch.arange(3.0)
    array = tensor.numpy()
    tensor += x[0]
    return x + float(array[1])


def _written_alias(x):
    array = torch.arange(3.0).numpy()
    torch.from_numpy(array).add_(x[0])
    return x + float(array.sum())


def _written_array(x):
    tensor = torch.arange(3.0)
    tensor.numpy()[1] = 7.0
    return x + tensor


def _returned_array(x):
    return x, torch.arange(3.0).numpy()


PART = np.ones((4, 3), np.float32)[1:]


def _returned_part(x):
    # What owns the memory is no array that the program names.
    return x + 1, torch.from_numpy(PART[:2])


def _returned_beside(x):
    made = np.tile(np.ones(3, np.float32), (2, 1))
    return x + torch.from_numpy(made), torch.from_numpy(made), made[0]


def _returned_tensor(x):
    tensor = torch.arange(3.0)
    return x + float(tensor.numpy()[1]), tensor


@pytest.mark.parametrize(
    "function",
    [
        _written_tensor,
        _written_alias,
        _written_array,
        _returned_array,
        _returned_part,
        _returned_beside,
    ],
)
def test_memory_of_an_array_that_matters_is_refused(function):
    traced = trace(function, backend="eager")
    for step in range(4):
        expected, found = function(X + step), traced(X + step)
        assert repr(found) == repr(expected)
    assert traced.breaks, traced.explain()


def test_memory_that_only_numpy_has_seen_belongs_to_the_result():
    def program(x):
        return torch.from_numpy(np.tile(np.ones(3, np.float32), (2, 1))[:, None]), x + 1

    traced = trace(program, backend="eager", check=True)
    results = [traced(X) for _ in range(3)]
    assert traced.stats()["hits"] == 2, traced.explain()
    # With the stride of a dimension that numpy has added.
    assert {result.stride() for result, _ in results} == {program(X)[0].stride()}
    results[0][0].zero_()
    assert torch.equal(traced(X)[0], program(X)[0])


def test_a_tensor_whose_array_is_only_read_may_be_returned():
    traced = trace(_returned_tensor, backend="eager", check=True)
    for _ in range(3):
        _, tensor = traced(X)
        assert torch.equal(tensor, torch.arange(3.0))
        tensor.zero_()
    assert traced.stats()["hits"] == 2, traced.explain()


def test_a_compiling_backend_leaves_large_arrays_to_torch():
    traced = trace(PROGRAMS["large and new"], backend=Halves())
    for _ in range(2):
        assert torch.equal(traced(X), PROGRAMS["large and new"](X))
    assert [item.id for item in traced.records[0].breaks] == ["operator-argument"]


def test_misses_tell_arrays_apart():
    fast = trace(lambda x, places: x[places.sum()], backend="eager")
    x = torch.arange(3.0)
    for places in ([1, 0], [0, 2]):
        array = np.array(places)
        assert torch.equal(fast(x, array), x[array.sum()])
    text = fast.explain(recompiles=True)
    first, second = [
        re.search(rf"{word} ndarray <i8 \(2,\) .*? 16 bytes with CRC (\w{{8}})", text)
        for word in ("expected ==", "found")
    ]
    assert first[1] != second[1]
