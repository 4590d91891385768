"""Numbers that an operator does not accept raise as in eager mode, after any write."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from magweld.frontend import trace
from magweld.frontend.operators.kinds import NEUTRAL, OF_PROBABILITIES, TOTAL

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
NUMBERS = (
    *(0.0, -0.0, 0.5, 1e-320, 6e4, 7e4, 3e38, 1e39, -1e300, math.inf, -math.inf),
    *(math.nan, 0, -1, 1 << 31, (1 << 63) - 1, -1 << 63),
)
# These are no methods, or take the number behind other operands.
OTHERS: dict[str, Callable[[Tensor, Any], Any]] = {
    "addcdiv": lambda x, n: torch.addcdiv(x, x, x, value=n),
    "addcdiv_": lambda x, n: x.addcdiv_(x.clone(), x.clone(), value=n),
    "addcmul": lambda x, n: torch.addcmul(x, x, x, value=n),
    "addcmul_": lambda x, n: x.addcmul_(x.clone(), x.clone(), value=n),
    "elu": F.elu,
    "elu_": F.elu_,
    "leaky_relu": F.leaky_relu,
    "leaky_relu_": F.leaky_relu_,
    "lerp": lambda x, n: torch.lerp(x, x, n),
    "lerp_": lambda x, n: x.lerp_(x.clone(), n),
    "masked_fill": lambda x, n: x.masked_fill(x > 0, n),
    "masked_fill_": lambda x, n: x.masked_fill_(x > 0, n),
    "rsub": torch.rsub,
    "softplus": F.softplus,
    "where": lambda x, n: torch.where(x > 0, x, n),
}


# Lists that such an operator takes before the number.
LISTS = {"lerp": 2, "lerp_": 2, "addcdiv_": 3, "addcmul_": 3}


def fill(x: Tensor, name: str, number: Any) -> Any:
    """Call an operator that takes a number."""
    head, _, kind = name.partition("_foreach_")
    if not head:
        lists = [[x], *[[x.clone()]] * (LISTS.get(kind, 1) - 1)]
        made = getattr(torch, name)(*lists, number)
        return x if made is None else made[0]
    function = OTHERS.get(name)
    if function is not None:
        return function(x, number)
    return getattr(x, name)(number)


def accepts(dtype: torch.dtype, name: str, number: Any) -> bool:
    """Return whether an operator takes a number beside a tensor."""
    try:
        fill(torch.tensor([1.0, -2.0, math.nan]).to(dtype), name, number)
    except RuntimeError:
        return False
    return True


# They take no number, or nothing but numbers.
PLAIN = sorted(NEUTRAL - OF_PROBABILITIES - {"fill", "maximum", "minimum", "__rdiv__"})


@pytest.mark.parametrize("name", PLAIN)
def test_operators_accept_what_they_are_said_to(name: str) -> None:
    for dtype in DTYPES:
        largest = math.inf if name in TOTAL else torch.finfo(dtype).max
        # What is not smaller than that is another record's.
        numbers = [n for n in NUMBERS if name in TOTAL or abs(n) <= largest]
        assert len(numbers) >= 7
        assert [n for n in numbers if not accepts(dtype, name, n)] == []


class Counter:
    n = 0


STEPS = (0.1, 0.2, 0.3, 0.4, 1e300, 0.6, math.inf, 0.7, -1e39, math.nan, 0.8)


@pytest.mark.parametrize(
    "name",
    [
        *("clamp", "alpha", "fill_", "lerp_", "addcmul_", "mul", "clamp_", "pow"),
        *("_foreach_lerp_", "_foreach_mul"),
    ],
)
def test_state_is_that_of_eager_behind_numbers_that_raise(name: str) -> None:
    def program(x: Tensor, y: Tensor, number: float) -> Tensor:
        Counter.n += 1
        x.add_(1)
        made = x.add(y, alpha=number) if name == "alpha" else fill(y, name, number)
        Counter.n += 10
        return torch.as_tensor(made)

    def outcome(call: Callable[..., Tensor], number: float) -> list[Any]:
        Counter.n, x, y = 0, torch.zeros(2), torch.ones(2)
        try:
            found = call(x, y, number).tolist()
        except RuntimeError as error:
            found = [str(error)]
        return [repr(found), x.tolist(), repr(y.tolist()), Counter.n]

    fast = trace(program, backend="eager")
    for number in STEPS:
        assert outcome(fast, number) == outcome(program, number)
    assert fast.stats()["hits"] >= 4
