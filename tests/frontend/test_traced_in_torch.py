"""Tracers, transforms and modes of torch see the program behind a traced one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.flop_counter import FlopCounterMode

from magweld.frontend import trace

X, Y = torch.randn(3, 4), torch.randn(3, 4)


def program(x: Tensor) -> Tensor:
    return torch.relu(x * 2 + 1)


def traced(target: Any, backend: str) -> Any:
    fast = trace(target, backend=backend)
    with torch.no_grad():
        for _ in range(3):
            fast(X)
    assert fast.stats()["hits"] == 2
    return fast


def pairs(backend: str) -> Iterator[tuple[Any, Any]]:
    """Yield programs and what they give in eager, each with hits behind it."""
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).eval()
    fast, function = traced(net, backend), traced(program, backend)
    yield function, program
    yield fast, net
    yield nn.Sequential(fast, nn.Sigmoid()), nn.Sequential(net, nn.Sigmoid())
    yield lambda x: function(x) + 1, lambda x: program(x) + 1


def jit_trace(run: Any, x: Tensor) -> Any:
    return torch.jit.trace(run, (x,))


def compiled(run: Any, x: Tensor) -> Any:
    torch._dynamo.reset()
    return torch.compile(run, backend="eager")


def fully_compiled(run: Any, x: Tensor) -> Any:
    torch._dynamo.reset()
    # Dynamo splits the graph when a traced function is the outermost frame itself.
    return torch.compile(lambda x: run(x), backend="eager", fullgraph=True)


def exported(run: Any, x: Tensor, strict: bool = False) -> Any:
    module = run if isinstance(run, nn.Module) else Calls(run)
    return torch.export.export(module, (x,), strict=strict).module()


class Calls(nn.Module):
    def __init__(self, run: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.run = run

    def forward(self, x: Tensor) -> Tensor:
        return self.run(x)


TAKERS = {
    "jit.trace": jit_trace,
    "compile": compiled,
    "compile, full graph": fully_compiled,
    "export": exported,
    "strict export": functools.partial(exported, strict=True),
    "make_fx": lambda run, x: make_fx(run)(x),
    "make_fx, fake": lambda run, x: (
        make_fx(run, tracing_mode="fake")(x) if not isinstance(run, nn.Module) else run
    ),
    "symbolic_trace": lambda run, x: torch.fx.symbolic_trace(run),
    "vmap": lambda run, x: torch.func.vmap(run),
    "functionalize": lambda run, x: torch.func.functionalize(run),
    "gradient": lambda run, x: torch.func.jacrev(run),
    "jvp": lambda run, x: lambda y: torch.func.jvp(run, (y,), (y,)),
}


@pytest.mark.sample(5)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", ["eager", "magweld"])
@pytest.mark.parametrize("take", TAKERS.values(), ids=TAKERS)
def test_what_takes_a_program_takes_the_one_behind(take: Any, backend: str) -> None:
    with torch.no_grad():
        for run, plain in pairs(backend):
            for _ in range(2):
                took, expected = take(run, X), take(plain, X)
                # A graph of a hit, or of constants, gives what it gave for X.
                torch.testing.assert_close(took(Y), expected(Y))


@pytest.mark.filterwarnings("ignore")
def test_scripting_takes_the_original() -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    fast = traced(net, "eager")
    for run in (fast, nn.Sequential(fast)):
        torch.testing.assert_close(torch.jit.script(run)(Y), net(Y))


def test_modes_see_the_operators() -> None:
    fast = traced(nn.Linear(4, 4), "eager")
    with FlopCounterMode(display=False) as counter:
        fast(X)
    assert counter.get_total_flops() == 2 * 3 * 4 * 4
    assert "mode" in str(fast.breaks[0])


def test_tensors_without_data() -> None:
    fast = traced(program, "magweld")
    modes = FakeTensorMode()
    fake = modes.from_tensor(X)
    for _ in range(3):
        assert fast(fake).shape == X.shape
        with modes:
            assert fast(fake).shape == X.shape
        assert fast(X.to("meta")).device.type == "meta"
        with torch.device("meta"):
            assert fast(torch.ones(3, 4)).device.type == "meta"
    torch.testing.assert_close(fast(Y), program(Y))


def test_functional_call_puts_other_parameters_in() -> None:
    net = nn.Linear(4, 1)
    fast = traced(net, "eager")
    others = {name: torch.ones_like(item) for name, item in net.named_parameters()}

    def loss(module: nn.Module) -> Callable[..., Tensor]:
        def call(parameters: dict[str, Tensor], x: Tensor) -> Tensor:
            return torch.func.functional_call(module, parameters, (x,)).sum()

        return call

    for _ in range(2):
        torch.testing.assert_close(loss(fast)(others, X), loss(net)(others, X))
        torch.testing.assert_close(fast(X), net(X))
        for own, theirs in zip(
            torch.func.grad(loss(fast))(others, X).values(),
            torch.func.grad(loss(net))(others, X).values(),
            strict=True,
        ):
            torch.testing.assert_close(own, theirs)
    stacked, _ = torch.func.stack_module_state([fast, traced(nn.Linear(4, 1), "eager")])
    assert stacked["weight"].shape == (2, 1, 4)
