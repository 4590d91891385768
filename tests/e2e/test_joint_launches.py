"""Different small kernels run in one launch, with the bits of launches of their own."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from magweld import frontend
from magweld.api import compile_graph
from magweld.artifact import KernelStep
from magweld.codegen.joint_launch import JointLaunch
from magweld.compiler import compile_text
from magweld.compiler_options import CompileOptions
from magweld.kernel_code import most_scratch

# The same on every machine: what is faster in one launch is predicted.
DEVICES = Path(__file__).parents[2] / "lit_tests/passes/plan/Inputs/four-cores.toml"
WIDTH = 64


@pytest.fixture(params=[1, 2, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield
    torch.set_num_threads(before)


class Mixed(nn.Module):
    """Operators of different kinds and extents, two of them equal."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.linear = nn.Linear(WIDTH, 32)

    def forward(self, *inputs: Tensor) -> list[Tensor]:
        a, b, c, d, e, f = inputs
        return [
            a.softmax(-1),
            self.norm(b),
            c.exp(),
            self.linear(d).tanh(),
            e.sum(-1),
            f.softmax(-1),
        ]


class Levels(nn.Module):
    """What one set makes is read by the next one, by other kernels than made it."""

    def forward(self, x: Tensor, y: Tensor, z: Tensor) -> list[Tensor]:
        made = [x.softmax(-1), y.cumsum(0), z.sort().values[:, :WIDTH] * 2]
        return [made[0] @ made[1].t(), made[1] @ made[2].t(), made[2].amax(-1)]


SHAPES = [(32, WIDTH), (17, WIDTH), (5, 9), (24, WIDTH), (40, 33), (32, WIDTH)]


def compiled(module: nn.Module, inputs: list[Tensor], **chosen: Any) -> Any:
    """Compile a module, and compare its results with eager."""
    options = CompileOptions(library="never", **chosen)
    backend = partial(compile_graph, options=options)
    traced = frontend.trace(module.eval(), backend=backend)
    with torch.no_grad():
        for _ in range(3):
            results = traced(*inputs)
        expected = module(*inputs)
    torch.testing.assert_close(results, expected, rtol=1e-5, atol=1e-5)
    return traced.records[0].compiled, results, traced


def launches(artifact: Any) -> int:
    return sum(isinstance(step, KernelStep) for step in artifact.program.steps)


@pytest.mark.sample(2)
@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("module", [Mixed(), Levels()], ids=["mixed", "levels"])
def test_joint_launches_have_the_bits_of_launches_apart(module: nn.Module) -> None:
    torch.manual_seed(0)
    shapes = SHAPES if isinstance(module, Mixed) else [(40, WIDTH)] * 3
    inputs = [torch.randn(shape) for shape in shapes]
    device = f"{DEVICES}#four-cores"
    joint, ours, _ = compiled(module, inputs, device=device)
    apart, theirs, _ = compiled(module, inputs, device=device, batch=False)
    # Both have the numbers of the device: what is joined of levels is little.
    assert launches(joint) <= launches(apart) - isinstance(module, Mixed)
    for one, other in zip(ours, theirs, strict=True):
        assert torch.equal(one, other)


class Ragged(nn.Module):
    """One layer on tensors of different extents: a grouped product, norms of rows."""

    def __init__(self) -> None:
        super().__init__()
        self.linears = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, *inputs: Tensor) -> list[Tensor]:
        made = [one(x) for one, x in zip(self.linears, inputs, strict=True)]
        return [*made, *(F.layer_norm(x, [WIDTH]) for x in inputs)]


@pytest.mark.usefixtures("threads")
def test_members_of_different_extents_share_a_launch() -> None:
    torch.manual_seed(0)
    module = Ragged()
    inputs = [torch.randn(rows, WIDTH) for rows in (3, 24, 17, 40)]
    device = f"{DEVICES}#four-cores"
    joint, ours, _ = compiled(module, inputs, device=device)
    apart, theirs, _ = compiled(module, inputs, device=device, batch=False)
    assert (launches(joint), launches(apart)) == (1, 8)
    for one, other in zip(ours, theirs, strict=True):
        assert torch.equal(one, other)


def test_explain_names_the_kernels_of_a_joint_launch() -> None:
    inputs = [torch.randn(shape) for shape in SHAPES]
    artifact, _, traced = compiled(Mixed(), inputs, device=f"{DEVICES}#four-cores")
    (group,) = artifact.report()["groups"]
    assert len(set(group["kernels"])) == 5
    assert len(group["members"]) == len(group["kernels"]) == len(group["shares"]) == 6
    assert "5 kernels in one launch, 6 calls: kernel_" in traced.explain()
    text = artifact.mlir("tiled")
    assert "magweld.joint = [{callee = @" in text


def test_slow_launches_are_no_reason_to_join() -> None:
    inputs = [torch.randn(shape) for shape in SHAPES]
    artifact, _, traced = compiled(Mixed(), inputs, device=f"{DEVICES}#slow-start")
    assert launches(artifact) == 5
    assert "are apart: no faster" in traced.explain()


def test_kernels_of_a_joint_launch_are_compiled_side_by_side() -> None:
    inputs = [torch.randn(shape) for shape in SHAPES]
    artifact, _, _ = compiled(Mixed(), inputs, device=f"{DEVICES}#four-cores")
    options = CompileOptions(library="never", device=f"{DEVICES}#four-cores")
    program = compile_text(artifact.imported.text, options, most=3)
    assert len(program.objects) == 3


def test_scratch_is_that_of_all_threads() -> None:
    """Threads may run different parts at one time."""
    launch = JointLaunch("launch_0", (("part_0", 1), ("part_1", 1)))
    scratch = {"part_0": [100], "part_1": [60, 60, 60], "launch_1": [50, 50]}
    assert most_scratch(scratch, [], units=2) == 180
    assert most_scratch(scratch, [launch], units=2) == 180
    assert most_scratch({"part_0": [100], "part_1": [60]}, [launch], units=2) == 160
    assert most_scratch({"part_0": [100], "part_1": [60]}, [launch], units=1) == 100
    assert most_scratch({}, [], units=4) == 0
