"""What hits do in few steps is what they do in many."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.autograd.graph import saved_tensors_hooks

from magweld import frontend
from magweld.frontend.guards.checks import StateCheck
from magweld.frontend.operators.torch_state import torch_state


@contextlib.contextmanager
def autocast_dtype(device: str) -> Any:
    before = torch.get_autocast_dtype(device)
    other = torch.bfloat16 if before is torch.float16 else torch.float16
    torch.set_autocast_dtype(device, other)
    yield
    torch.set_autocast_dtype(device, before)


@contextlib.contextmanager
def default_dtype() -> Any:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@contextlib.contextmanager
def deterministic() -> Any:
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


MODES: tuple[Callable[[], Any], ...] = (
    torch.no_grad,
    torch.inference_mode,
    default_dtype,
    deterministic,
    lambda: torch.autocast("cpu"),
    torch._C.DisableTorchFunction,
    lambda: autocast_dtype("cpu"),
    lambda: autocast_dtype("cuda"),
    torch.autograd.detect_anomaly,
    lambda: torch.device("meta"),
    forward_ad.dual_level,
)


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("mode", MODES)
def test_a_check_that_held_does_not_hold_in_another_mode(
    mode: Callable[[], Any],
) -> None:
    check = StateCheck(torch_state())
    for _ in range(2):
        # The second time, a guard of torch's compares most of the modes.
        assert check.holds()
    with mode():
        assert not check.holds()
    assert check.holds()


RESULTS: dict[str, Callable[[Tensor, Tensor, Tensor], Any]] = {
    "list": lambda a, b, c: [a, b, c],
    "tuple": lambda a, b, c: (a, b, c),
    "other order": lambda a, b, c: [c, a, b],
    "part": lambda a, b, c: [b, c],
    "twice": lambda a, b, c: (a, b, b),
    "one": lambda a, b, c: [b],
    "none": lambda a, b, c: [],
    "nested": lambda a, b, c: [[a, b], c],
    "twice the same list": lambda a, b, c: [x := [a, b, c], x],
    "with a number": lambda a, b, c: [a, b, 3],
    "dict": lambda a, b, c: {"a": a, "b": b},
}


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("backend", ["eager", "magweld"])
def test_containers_are_new_and_hold_the_same(name: str, backend: str) -> None:
    make = RESULTS[name]

    def program(x: Tensor) -> Any:
        return make(x + 1, x * 2, x - 3)

    fast = frontend.trace(program, backend=backend, compile="now")
    if backend == "eager":
        fast = frontend.trace(program, backend=backend)
    seen = []
    for number in range(5):
        x = torch.full((2, 3), float(number))
        found, expected = fast(x), program(x)
        assert type(found) is type(expected)
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
        seen.append(found)
        if type(found) is list:
            found.append(number)
    assert fast.stats()["hits"] == 4
    assert len({*map(id, seen)}) == len(seen)


@pytest.mark.parametrize("name", ["list", "tuple", "part"])
def test_results_that_are_missing_are_an_error(name: str) -> None:
    def backend(graph: Any, inputs: Any) -> Any:
        return lambda *inputs: graph(*inputs)[:1]

    fast = frontend.trace(lambda x: RESULTS[name](x + 1, x * 2, x - 3), backend=backend)
    fast(torch.ones(2))
    with pytest.raises(IndexError):
        fast(torch.ones(2))


def test_a_list_is_made_beside_hooks_on_saved_tensors() -> None:
    """Hits that only make objects are no others for programs that are watched."""
    held: list[Tensor] = []

    def program(x: Tensor, y: Tensor) -> list[Tensor]:
        return [x * y, x + y]

    def writing(x: Tensor, y: Tensor) -> list[Tensor]:
        held.append(x * y)
        return [x + y]

    x, y = torch.ones(2, requires_grad=True), torch.ones(2)
    for function, hits in ((program, 5), (writing, 2)):
        fast = frontend.trace(function, backend="eager")
        for _ in range(3):
            fast(x, y)
        with saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor):
            for _ in range(3):
                fast(x, y)
        assert fast.stats()["hits"] >= hits
    assert len(held) == 6


def test_what_hooks_on_saved_tensors_write_is_no_effect_of_the_program() -> None:
    """A run below them whose program has effects makes no record."""
    log: list[str] = []

    def pack(tensor: Tensor) -> Tensor:
        log.append("packed")
        return tensor

    def program(x: Tensor) -> Tensor:
        log.append("called")
        return x.tanh()

    def logs(function: Callable[[Tensor], Tensor]) -> list[list[str]]:
        seen = []
        for hooked in (True, False, True, False, False):
            log.clear()
            hooks = saved_tensors_hooks(pack, lambda tensor: tensor)
            with hooks if hooked else contextlib.nullcontext():
                function(torch.ones(2, requires_grad=True))
            seen.append(list(log))
        return seen

    fast = frontend.trace(program, backend="eager")
    assert logs(fast) == logs(program)
    assert fast.stats()["hits"] >= 2
    assert {item.id for item in fast.breaks} == {"saved-tensor-hooks"}
