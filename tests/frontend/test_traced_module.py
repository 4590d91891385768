"""A traced module is a module: it shares all it holds with the original."""

from __future__ import annotations

import asyncio
import copy
import inspect
import io
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from magweld.frontend import trace


class Net(nn.Module):
    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.first = nn.Linear(width, width)
        self.norm = nn.BatchNorm1d(width)
        self.register_buffer("scale", torch.ones(width))
        self.trained = 0
        self._cache = "of the module"

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.norm(self.first(x))) * self.scale

    def train(self, mode: bool = True) -> Net:
        self.trained += 1
        return super().train(mode)

    def width(self) -> int:
        return self.first.in_features

    def itself(self) -> Net:
        return self


def traced_net() -> tuple[Net, Any]:
    net = Net().eval()
    return net, trace(net, backend="eager")


def test_it_is_a_module_of_its_class() -> None:
    net, fast = traced_net()
    assert isinstance(fast, nn.Module)
    assert isinstance(fast, Net)
    assert type(trace(Net())) is type(fast)
    assert fast.width() == 4
    assert fast._cache == "of the module"
    assert dict(fast.named_parameters()).keys() == dict(net.named_parameters()).keys()
    assert all(a is b for a, b in zip(fast.parameters(), net.parameters(), strict=True))
    assert [name for name, _ in fast.named_modules()] == ["", "first", "norm"]
    assert fast.state_dict().keys() == net.state_dict().keys()
    assert list(fast.children()) == list(net.children())


def test_calls_are_answered_by_records_and_methods_are_the_original_s() -> None:
    net, fast = traced_net()
    x = torch.randn(3, 4)
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(fast(x), net(x))
    assert fast.stats()["hits"] == 2
    assert len(fast.records) == 1
    assert not fast.breaks
    assert "record 0" in fast.explain()
    torch.testing.assert_close(fast.forward(x), net.forward(x))


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.eval(),
        lambda m: m.train(),
        lambda m: m.double(),
        lambda m: m.half(),
        lambda m: m.to(torch.float64),
        lambda m: m.requires_grad_(False),
        lambda m: m.apply(lambda child: None),
        lambda m: m.itself(),
        lambda m: m.cpu().float().eval(),
    ],
)
def test_what_returns_the_module_returns_the_traced_one(change: Any) -> None:
    net, fast = traced_net()
    trained = net.trained
    assert change(fast) is fast
    assert fast.training is net.training
    assert net.trained >= trained
    assert next(fast.parameters()).dtype is next(net.parameters()).dtype


def test_overridden_methods_are_called() -> None:
    net, fast = traced_net()
    before = net.trained
    fast.train()
    assert (net.trained, net.training) == (before + 1, True)


def test_what_is_set_on_one_is_set_on_the_other() -> None:
    net, fast = traced_net()
    fast.first = nn.Linear(4, 4)
    assert net.first is fast.first
    net.added = nn.Parameter(torch.ones(2))
    assert fast.added is net.added
    del fast.added
    assert not hasattr(net, "added")
    fast.load_state_dict(Net().state_dict())
    assert net.state_dict().keys() == fast.state_dict().keys()
    x = torch.randn(3, 4)
    with torch.no_grad():
        torch.testing.assert_close(fast(x), net(x))


def test_hooks_run_once() -> None:
    _, fast = traced_net()
    seen: list[str] = []
    fast.register_forward_hook(lambda *a: seen.append("forward"))
    fast.register_forward_pre_hook(lambda *a: seen.append("before"))
    x = torch.randn(3, 4)
    with torch.no_grad():
        for _ in range(3):
            seen.clear()
            fast(x)
            assert seen == ["before", "forward"]


class Outer(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner
        self.head = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.inner(x))


def test_it_is_an_ordinary_child() -> None:
    torch.manual_seed(0)
    net, fast = traced_net()
    outer = Outer(fast)
    plain = Outer(net)
    assert outer.state_dict().keys() == plain.state_dict().keys()
    assert len(list(outer.parameters())) == len(list(plain.parameters()))
    assert {n for n, _ in outer.named_modules()} == {
        n for n, _ in plain.named_modules()
    }
    optimizer = torch.optim.SGD(outer.parameters(), lr=0.1)
    before = net.first.weight.detach().clone()
    outer(torch.randn(3, 4)).sum().backward()
    optimizer.step()
    assert not torch.equal(net.first.weight, before)
    outer.double()
    assert net.first.weight.dtype is torch.float64
    chain = nn.Sequential(fast, nn.ReLU()).float()
    x = torch.randn(3, 4)
    with torch.no_grad():
        torch.testing.assert_close(chain(x), net(x).relu())
        whole = trace(outer.float().eval(), backend="eager")
        for _ in range(2):
            torch.testing.assert_close(whole(x), outer.head(net(x)))
    assert whole.stats()["hits"] == 1


def test_containers_keep_their_methods() -> None:
    fast = trace(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), backend="eager")
    assert len(fast) == 2
    assert isinstance(fast[1], nn.ReLU)
    assert [type(child).__name__ for child in fast] == ["Linear", "ReLU"]
    fast.append(nn.Linear(4, 3))
    assert fast(torch.randn(2, 4)).shape == (2, 3)


def copied_by_pickle(module: Any) -> Any:
    return pickle.loads(pickle.dumps(module))


def copied_by_save(module: Any) -> Any:
    buffer = io.BytesIO()
    torch.save(module, buffer)
    buffer.seek(0)
    return torch.load(buffer, weights_only=False)


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, copy.copy, copied_by_pickle, copied_by_save]
)
def test_copies_are_traced_and_leave_records_behind(copied: Any) -> None:
    net = Net().eval()
    fast = trace(net, backend="eager", dynamic=False)
    x = torch.randn(3, 4)
    with torch.no_grad():
        fast(x)
        other = copied(fast)
        assert type(other) is type(fast)
        assert not other.records
        assert other._magweld_options["backend"] == "eager"
        assert other._magweld_options["dynamic"] is False
        torch.testing.assert_close(other(x), net(x))
    shares = other.first.weight is net.first.weight
    assert shares is (copied is copy.copy)


def double(x: Tensor, factor: float = 2.0) -> Tensor:
    """Multiply."""
    return x * factor


def test_a_traced_function_looks_like_the_function() -> None:
    fast = trace(double, backend="eager")
    assert fast.__name__ == "double"
    assert inspect.signature(fast) == inspect.signature(double)
    assert len(repr(fast)) < 80
    other = pickle.loads(pickle.dumps(fast))
    torch.testing.assert_close(other(torch.ones(2)), torch.full((2,), 2.0))


class Methods:
    factor = 3.0

    @trace
    def scale(self, x: Tensor) -> Tensor:
        return x * self.factor

    @staticmethod
    @trace
    def outside(x: Tensor) -> Tensor:
        return x + 1

    @trace
    @staticmethod
    def inside(x: Tensor) -> Tensor:
        return x + 2

    @classmethod
    @trace
    def of_class(cls, x: Tensor) -> Tensor:
        return x * cls.factor

    @trace
    @classmethod
    def of_traced_class(cls, x: Tensor) -> Tensor:
        return x * (cls.factor + 1)


def test_methods_bind() -> None:
    x = torch.ones(2)
    for _ in range(3):
        methods = Methods()
        assert methods.scale(x).tolist() == [3.0, 3.0]
        assert methods.outside(x).tolist() == [2.0, 2.0]
        assert Methods.inside(x).tolist() == [3.0, 3.0]
        assert methods.inside(x).tolist() == [3.0, 3.0]
        assert Methods.of_class(x).tolist() == [3.0, 3.0]
        assert Methods.of_traced_class(x).tolist() == [4.0, 4.0]
    assert Methods.scale.stats()["hits"] >= 1


class Registered(nn.Module):
    subclasses: list[str] = []

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        Registered.subclasses.append(cls.__name__)

    def forward(self, x: Tensor) -> Tensor:
        return x + 1


def test_a_class_does_not_hear_of_its_traced_modules() -> None:
    fast = trace(Registered(), backend="eager")
    assert Registered.subclasses == []
    assert fast(torch.zeros(1)).item() == 1


class Meta(type):
    pass


class OfMeta(nn.Module, metaclass=Meta):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1


def test_a_module_with_a_metaclass_is_a_module() -> None:
    fast = trace(OfMeta(), backend="eager")
    assert isinstance(fast, nn.Module)
    assert fast(torch.zeros(1)).item() == 1
    assert fast.eval() is fast


def test_a_scripted_module_is_traced_as_a_callable() -> None:
    scripted = torch.jit.trace(nn.Linear(2, 2), torch.ones(1, 2))
    fast = trace(scripted, backend="eager")
    x = torch.ones(1, 2)
    torch.testing.assert_close(fast(x), scripted(x))


def test_records_and_tables_are_short() -> None:
    _, fast = traced_net()
    with torch.no_grad():
        fast(torch.randn(3, 4))
    assert len(repr(fast.records)) < 100


async def awaited(x: Tensor) -> Tensor:
    return x * 2


async def numbered(x: Tensor) -> Any:
    for k in range(3):
        yield x * k


def test_coroutine_functions_run_as_they_are() -> None:
    fast = trace(awaited, backend="eager")
    for _ in range(4):
        assert asyncio.run(fast(torch.ones(2))).tolist() == [2.0, 2.0]
    assert "async" in str(fast.breaks[0])

    async def collected(call: Any) -> list[Any]:
        return [item.tolist() async for item in call(torch.ones(1))]

    every = trace(numbered, backend="eager")
    for _ in range(4):
        assert asyncio.run(collected(every)) == asyncio.run(collected(numbered))
