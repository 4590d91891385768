"""Methods that change their object, call after call, beside an eager twin."""

from __future__ import annotations

import collections

import pytest
import torch
from torch import nn

from magweld.frontend import trace


class State:
    """What the steps below work on."""

    def __init__(self):
        self.a = [1.0, 2.0]
        self.b = [[3.0], [4.0]]
        self.d = {"x": 1.0, "y": [2.0]}
        self.t = torch.ones(3)
        self.p = torch.zeros(3)
        self.n = None
        self.cache = {}
        self.flag = True
        self.queue = collections.deque([1.0, 2.0])


def fills_cache_once(s, x):
    if s.n is None:
        s.n = x * 2
    return x + s.n


def swaps_attributes(s, x):
    s.t, s.p = s.p, s.t
    return x + s.t - s.p


def toggles_flag(s, x):
    s.flag = not s.flag
    return x if s.flag else -x


def appends_to_shared_list(s, x):
    s.d["l"] = s.a
    s.a.append(x * 3)
    return s.d["l"][-1]


def shares_new_object(s, x):
    new = [x]
    s.d["p"] = s.d["q"] = s.n = new
    new.append(x + 1)
    return new


def sorts_and_reverses(s, x):
    s.a.sort(reverse=True)
    s.b.reverse()
    return x * s.a[0]


def clears_and_pops(s, x):
    if s.d:
        key, _ = s.d.popitem()
        return x + len(key)
    s.a.clear()
    return x


def memoizes_tensor(s, x):
    key = x.shape[0]
    if key not in s.cache:
        s.cache[key] = torch.arange(key)
    return x + s.cache[key]


def writes_tensors_in_place(s, x):
    s.t[1:] += x[1:]
    s.p.copy_(s.t)
    s.t.clamp_(max=5)
    return s.p.sum()


def makes_cyclic_object(s, x):
    new = State.__new__(State)
    new.z = x * 2
    new.me = new
    s.n = new
    return new.z


def writes_through_namespace(s, x):
    vars(s)["w"] = x * 4
    s.__dict__["v"] = 2
    return s.w * s.v


def replaces_slice(s, x):
    s.a[:] = [x, x * 2]
    s.a[1:1] = [0.0]
    return s.a[2]


def stores_view_of_state(s, x):
    view = s.t[:2]
    view.add_(1)
    s.n = view
    return view


def moves_key_to_the_end(s, x):
    s.d["x"] = s.d.pop("x")
    return list(s.d)


def stores_closure(s, x):
    values = [x]

    def function():
        return values

    s.n = function
    return function()[0]


def extends_by_generator(s, x):
    s.a.extend(v * 2 for v in [1.0, 2.0])
    s.queue.extend((x,))
    return len(s.queue)


STEPS = [
    value
    for name, value in sorted(globals().items())
    if getattr(value, "__module__", "") == __name__ and name.islower()
]


def same(left, right, met=()):
    """Whether two object graphs agree; functions are taken as equal."""
    if any(left is item for item in met) or callable(left):
        return True
    met = (*met, left)
    if type(left) is not type(right):
        return False
    if isinstance(left, torch.Tensor):
        return torch.equal(left, right)
    if isinstance(left, (list, tuple, collections.deque)):
        pairs = zip(left, right, strict=False)
        return len(left) == len(right) and all(same(a, b, met) for a, b in pairs)
    if isinstance(left, dict):
        keys = list(left) == list(right)
        return keys and all(same(left[k], right[k], met) for k in left)
    if hasattr(left, "__dict__"):
        return same(vars(left), vars(right), met)
    return left == right


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_state_stays_that_of_the_twin(step):
    mine, twin = State(), State()
    traced = trace(step, backend="eager")
    for number in range(5):
        x, y = torch.ones(3) * number, torch.ones(3) * number
        assert same(traced(mine, x), step(twin, y)), traced.explain()
        assert same(mine, twin), traced.explain()
        assert torch.equal(x, y)
    assert {item.id for item in traced.breaks} <= {"result-object"}, traced.explain()


class Normalized(nn.Module):
    """Trains: running statistics, a replaced buffer, the last loss as attribute."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.linear = nn.Linear(3, 3)
        self.register_buffer("steps", torch.zeros(1))
        self.last = None

    def forward(self, x):
        y = self.norm(self.linear(x))
        self.steps = self.steps + 1
        self.last = y.detach().mean()
        return y * self.steps


def test_training_module_keeps_its_statistics():
    torch.manual_seed(0)
    mine = Normalized()
    twin = Normalized()
    twin.load_state_dict(mine.state_dict())
    traced = trace(mine, backend="eager")
    for number in range(4):
        x = torch.arange(12.0).view(4, 3) * (number + 1)
        mine.zero_grad()
        twin.zero_grad()
        left, right = traced(x), twin(x)
        assert torch.equal(left, right)
        left.sum().backward()
        right.sum().backward()
        assert torch.equal(mine.linear.weight.grad, twin.linear.weight.grad)
        assert torch.equal(mine.last, twin.last)
        for name, value in twin.state_dict().items():
            assert torch.equal(mine.state_dict()[name], value), name
    assert traced.stats()["hits"] >= 2, traced.explain()


def test_the_end_of_a_list_that_grows_needs_no_guard_of_its_length():
    kept = []

    def keep(x):
        kept.append(x * 2.0)
        kept.append(3.0)
        return kept[-2] + kept[-1]

    traced = trace(keep, backend="eager")
    for number in range(4):
        x = torch.full((2,), float(number))
        assert torch.equal(traced(x), x * 2.0 + 3.0)
        assert len(kept) == 2 * number + 2
        assert torch.equal(kept[-2], x * 2.0)
    assert traced.stats()["hits"] == 3, traced.explain()

    def before(x):
        kept.append(x)
        return kept[-2] * x

    traced = trace(before, backend="eager")
    for value in (5.0, 6.0):
        kept[:] = [1.0, value]
        assert torch.equal(traced(torch.ones(2)), torch.full((2,), value))
