"""Functions of numpy on arrays that show tensors of a run: operators of the graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from magweld.frontend.traced import trace

TABLE = np.arange(4.0, dtype=np.float32)


class Squared(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, factor: float, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        array = x.data.cpu().numpy()
        if np.isclose(factor, 0):
            return torch.Tensor(np.exp(array, dtype=array.dtype))
        return torch.Tensor(np.square(array, dtype=array.dtype))

    @staticmethod
    def backward(ctx: Any, given: torch.Tensor) -> tuple[None, torch.Tensor]:
        return None, given


def written_before(x):
    y = x.clone()
    array = y.numpy()
    y.add_(1.0)
    return torch.from_numpy(np.exp(array)), y


def written_behind(x):
    tensor = torch.from_numpy(np.exp(x.numpy()))
    other = tensor[1:]
    tensor.mul_(2.0)
    return other, tensor


def written_through(x):
    y = x.clone()
    torch.from_numpy(y.numpy()).add_(1.0)
    return y


def shared(x):
    array = np.exp(x.numpy())
    tensor = torch.from_numpy(array)
    tensor += 1.0
    return torch.from_numpy(np.abs(array))


FOLLOWED = {
    "one": lambda x: torch.from_numpy(np.exp(x.numpy())),
    "several": lambda x: torch.from_numpy(np.maximum(x.numpy(), (-x).numpy()) * 2),
    "arithmetic": lambda x: torch.from_numpy(1 - x.numpy() / 2 + x.numpy() ** 2) * x,
    "dtype": lambda x: torch.tensor(np.add(x.numpy(), 1, dtype=np.float64)),
    "converted": lambda x: torch.tensor(np.sin(x.numpy()), dtype=torch.float64),
    "as tensor": lambda x: torch.as_tensor(np.floor(x.double().numpy())).long(),
    "tests": lambda x: torch.from_numpy(np.greater(x.numpy(), 0)) & (x < 2),
    "transposed": lambda x: torch.from_numpy(np.exp(x.reshape(2, 2).t().numpy())),
    "function": lambda x: Squared.apply(2.0, x),
    "same memory": lambda x: torch.from_numpy(x.numpy()) + x,
    "form": lambda x: x * x.numpy().ndim + torch.zeros(1, dtype=x.dtype),
    **{one.__name__: one for one in (written_before, written_behind)},
    **{one.__name__: one for one in (written_through, shared)},
}
# What is not followed is left to numpy, call by call.
OTHERS = {
    "sum": lambda x: x * float(x.numpy().sum()),
    "element": lambda x: x * float(x.numpy()[0]),
    "part": lambda x: torch.from_numpy(x.numpy()[1:]) * 2,
    "length": lambda x: x * len(x.numpy()),
    "shape": lambda x: x * x.numpy().shape[0],
    "list": lambda x: torch.tensor(x.numpy().tolist()) + 1,
    "beside another": lambda x: torch.from_numpy(np.add(x.numpy(), TABLE)),
    "returned": lambda x: (np.exp(x.numpy()), x * 2),
    "itself": lambda x: (x.numpy(), x * 2),
    "kept": lambda x: [np.exp(x.numpy()), x + 1],
    "two results": lambda x: torch.from_numpy(np.modf(x.numpy())[0]),
    "written": lambda x: np.exp(x.numpy(), out=np.zeros(4, np.float32))[0] * x,
    "in place": lambda x: torch.from_numpy(np.negative(x.clone().numpy())).add_(x),
    "test": lambda x: x * 2 if np.exp(x.numpy()).max() > 3 else x - 1,
    "text": lambda x: (str(np.abs(x.numpy())), x + 1),
    "loop": lambda x: [x * float(one) for one in np.sign(x.numpy())],
    "no dimension": lambda x: x * float(np.exp(x.sum().numpy())),
    "mixed": lambda x: x + torch.tensor([np.exp(x.numpy()).max(), 1.0, 2.0, 3.0]),
    "python": lambda x: torch.tensor(
        np.frompyfunc(lambda a: a + 1, 1, 1)(x.numpy()).astype(np.float32)
    ),
    "index": lambda x: x[(np.abs(x.numpy()) > 1)],
    "operand": lambda x: x.numpy() * 2 + np.ones(4, np.float32),
    "changed": lambda x: [a := x.clone().numpy(), a.fill(2.0), torch.from_numpy(a)][2],
    "updated": lambda x: (lambda a: (a.__iadd__(1), torch.from_numpy(a))[1])(
        np.exp(x.numpy())
    ),
    "reshaped": lambda x: torch.from_numpy(np.exp(x.numpy()).reshape(2, 2)),
    "product": lambda x: x * float(np.matmul(x.numpy(), x.numpy())),
    "compared": lambda x: x * float((np.exp(x.numpy()) > 1).all()),
}


def plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, torch.Tensor):
        return "tensor", str(value.dtype), value.stride(), value.tolist()
    if isinstance(value, np.ndarray):
        return "array", str(value.dtype), value.tolist()
    return type(value), value


def agree(program: Any, sizes: tuple[int, ...] = (4, 4, 4, 4)) -> Any:
    fast = trace(program, backend="eager")
    for number, size in enumerate(sizes):
        x = torch.arange(float(size)) * 0.5 - number
        y = x.clone()
        with torch.no_grad():
            assert plain(fast(x)) == plain(program(y))
        assert torch.equal(x, y)
    return fast


@pytest.mark.parametrize("name", FOLLOWED)
def test_functions_of_arrays_are_operators(name):
    fast = agree(FOLLOWED[name])
    counts = fast.stats()
    assert (counts["graphs"], counts["breaks"], counts["hits"]) == (1, 0, 3)


@pytest.mark.parametrize("name", [*FOLLOWED, *OTHERS])
def test_arrays_are_those_of_the_call(name):
    program = {**FOLLOWED, **OTHERS}[name]
    agree(program, (4, 4, 4, 4, 4))
    # One array is of another size; both of a pair are.
    if name not in ("transposed", "beside another", "operand", "mixed", "written"):
        agree(program, (4, 6, 8, 10) if name != "reshaped" else (4,))


def test_arrays_that_leave_share_memory_as_in_eager():
    def program(x):
        array = np.exp(x.numpy())
        return array, torch.from_numpy(array), x.numpy()

    fast = trace(program, backend="eager")
    for _ in range(3):
        x = torch.ones(3)
        array, tensor, itself = fast(x)
        array[0], itself[1] = 7.0, 8.0
        assert tensor[0] == 7.0
        assert x[1] == 8.0


def test_a_compiler_leaves_them_to_numpy():
    fast = trace(lambda x: torch.from_numpy(np.exp(x.numpy())) * 2 + x)
    for number in range(3):
        x = torch.arange(4.0) - number
        expected = torch.from_numpy(np.exp(x.numpy())) * 2 + x
        torch.testing.assert_close(fast(x), expected)
