"""Independent calls of one kernel run in one launch, with the same bits."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from magweld import frontend
from magweld.api import compile_graph
from magweld.artifact import KernelStep
from magweld.compiler_options import CompileOptions

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from horizontal_models import WIDTH, Branches, Experts, linear, norm, perceptron


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield
    torch.set_num_threads(before)


class TwoLevels(nn.Module):
    """What one half makes is read by the other: two batches, one behind the other."""

    def forward(self, x: Tensor, y: Tensor, z: Tensor) -> list[Tensor]:
        first = [one.softmax(-1) for one in (x, y, z)]
        mixed = zip(first, (first[1], first[2], first[0]), strict=True)
        return [one @ other.t() for one, other in mixed]


def both(module: nn.Module, *inputs: Tensor, **chosen: Any) -> tuple[Any, Any]:
    """Compile with and without batches, and compare the results with each other."""
    made, results = [], []
    for batch in (True, False):
        options = CompileOptions(library="never", batch=batch, **chosen)
        backend = partial(compile_graph, options=options)
        traced = frontend.trace(module.eval(), backend=backend)
        with torch.no_grad():
            traced(*inputs)
            results += [traced(*inputs), traced(*inputs)]
        made.append(traced.records[0].compiled)
    with torch.no_grad():
        expected = module(*inputs)
    for number, theirs in enumerate(listed(expected)):
        ours, again, apart, _ = (listed(result)[number] for result in results)
        torch.testing.assert_close(ours, apart, rtol=0, atol=0)
        torch.testing.assert_close(again, apart, rtol=0, atol=0)
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    return made[0], made[1]


def listed(result: Any) -> list[Tensor]:
    return [result] if isinstance(result, Tensor) else list(result)


def launches(artifact: Any) -> int:
    return sum(isinstance(step, KernelStep) for step in artifact.program.steps)


MEMBERS: dict[str, Callable[[], nn.Module]] = {
    "linear": linear,
    "norm": norm,
    "tanh": nn.Tanh,
    "perceptron": perceptron,
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", MEMBERS)
@pytest.mark.parametrize("rows", [5, 640])
@pytest.mark.usefixtures("threads")
def test_branches_have_the_bits_of_launches_apart(name: str, rows: int) -> None:
    module = Branches(MEMBERS[name], 6)
    batched, apart = both(module, *torch.randn(6, rows, WIDTH))
    # Each launch is one of all members.
    assert launches(batched) * 6 == launches(apart)


@pytest.mark.usefixtures("threads")
def test_experts_share_their_input() -> None:
    batched, apart = both(Experts(perceptron, 5), torch.randn(7, WIDTH))
    assert launches(batched) < launches(apart)


@pytest.mark.usefixtures("threads")
def test_batches_follow_each_other() -> None:
    inputs = [torch.randn(40, 64) for _ in range(3)]
    batched, apart = both(TwoLevels(), *inputs, fusion="none")
    assert launches(apart) == 3 * launches(batched) > 3
    members = [group["members"] for group in batched.report()["groups"]]
    assert {len(one) for one in members} == {3}


class Parts(nn.Module):
    """Layers on the parts of one tensor, which a computation makes or a caller."""

    def __init__(
        self,
        make: Callable[[], nn.Module],
        part: Callable[[Tensor], Any],
        made: bool = False,
    ) -> None:
        super().__init__()
        self.parts = nn.ModuleList(make() for _ in range(3))
        self.part, self.made = part, made

    def forward(self, x: Tensor) -> list[Tensor]:
        x = x.softmax(0) if self.made else x
        parts = self.part(x)
        return [layer(p) for layer, p in zip(self.parts, parts, strict=True)]


PARTS: dict[str, tuple[tuple[int, ...], Callable[[Tensor], Any]]] = {
    "columns": ((7, 3 * WIDTH), lambda x: x.chunk(3, -1)),
    "rows": ((21, WIDTH), lambda x: x.split(7)),
    "unbound": ((7, 3, WIDTH), lambda x: x.unbind(1)),
    "overlapping": (
        (9, WIDTH + 2),
        lambda x: [x[k : k + 7, k : k + WIDTH] for k in range(3)],
    ),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("name", "make", "made"),
    [
        *((name, nn.Tanh, False) for name in PARTS),
        ("columns", linear, True),
        ("unbound", norm, True),
    ],
)
def test_parts_of_one_tensor_are_members(
    name: str, make: Callable[[], nn.Module], made: bool
) -> None:
    shape, part = PARTS[name]
    batched, apart = both(Parts(make, part, made), torch.randn(shape))
    groups = batched.report()["groups"]
    assert max(len(group.get("members", [])) for group in groups) == 3
    assert launches(apart) - launches(batched) >= 2


def test_parts_that_are_unlike_are_apart() -> None:
    module = Parts(nn.Tanh, lambda x: x.split([5, 6, 7], -1))
    batched, apart = both(module, torch.randn(4, 18))
    assert launches(batched) == launches(apart) == 3


def test_weights_that_are_parts_stay_whole_for_convolutions() -> None:
    class Halves(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(32, 16, 3, 3))

        def forward(self, x: Tensor) -> list[Tensor]:
            return [nn.functional.conv2d(x, w) for w in self.weight.chunk(2)]

    both(Halves(), torch.randn(1, 16, 12, 12))


def test_a_chain_stays_as_it_is() -> None:
    class Chain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.links = nn.ModuleList(nn.Linear(16, 16) for _ in range(4))

        def forward(self, x: Tensor) -> Tensor:
            for link in self.links:
                x = link(x)
            return x

    batched, apart = both(Chain(), torch.randn(9, 16))
    assert launches(batched) == launches(apart)
    assert all("members" not in group for group in batched.report()["groups"])


def test_results_of_members_do_not_share_memory() -> None:
    """Members are alive together: what one makes may not overwrite another's."""

    class Sums(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            a, b = x.softmax(-1), y.softmax(-1)
            return a.cumsum(0) @ b.cumsum(0).t()

    both(Sums(), torch.randn(32, 48), torch.randn(32, 48))
