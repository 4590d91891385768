"""Exported programs as inputs of `compile`: they do what `program.module()` does."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._higher_order_ops import while_loop
from torch.export import Dim, ExportedProgram, export
from torch.utils._pytree import tree_leaves

import magweld
from magweld.artifact import IfStep, WhileStep
from magweld.diagnostics import UnsupportedError


class Everything(nn.Module):
    """Parameters, written buffers, constants, nested inputs and results, modes."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(4, 5)
        self.norm = nn.BatchNorm1d(5)
        self.tied = nn.Linear(4, 5, bias=False)
        self.tied.weight = self.linear.weight
        self.register_buffer("total", torch.zeros(5))
        self.constant = torch.randn(5)

    def forward(self, xs: list[Tensor], by: dict[str, Tensor], *, scale: float) -> Any:
        with torch.no_grad():
            shift = self.constant * by["a"]
        with torch.autocast("cpu", enabled=False):
            y = self.norm(self.linear(xs[0])) + shift + self.tied(xs[0])
        self.total.add_(y.sum(0))
        xs[1].mul_(2)
        return {"y": y, "total": self.total, "rest": (xs[1], xs[1].t(), 3, None)} | {
            "scaled": y * scale
        }


def arguments(batch: int, seed: int = 0) -> tuple[Any, ...]:
    generator = torch.Generator().manual_seed(seed)
    first = torch.randn(batch, 4, generator=generator)
    second = torch.randn(2, 3, generator=generator)
    return [first, second], {"a": torch.randn(5, generator=generator)}


def exported(model: nn.Module) -> ExportedProgram:
    sizes = {"xs": [{0: Dim("batch", max=16)}, None], "by": {"a": None}, "scale": None}
    return export(model, arguments(3), {"scale": 0.5}, dynamic_shapes=sizes)


@pytest.mark.parametrize("stored", [False, True])
def test_results_writes_and_aliases(stored: bool, tmp_path: Path) -> None:
    program = exported(Everything())
    if stored:
        torch.export.save(program, tmp_path / "model.pt2")
        program = torch.export.load(tmp_path / "model.pt2")
    eager = copy.deepcopy(program).module()
    artifact = magweld.compile(program)
    artifact.save(tmp_path / "a.mw")
    loaded = magweld.load(tmp_path / "a.mw")
    for run in (artifact, loaded):
        reference = copy.deepcopy(eager)
        for seed in range(2):
            ours, theirs = arguments(3, seed), arguments(3, seed)
            found = run(*ours, scale=0.5)
            expected = reference(*theirs, scale=0.5)
            assert list(found) == list(expected)
            torch.testing.assert_close(found["y"], expected["y"])
            torch.testing.assert_close(found["scaled"], expected["scaled"])
            torch.testing.assert_close(found["total"], expected["total"])
            torch.testing.assert_close(ours[0][1], theirs[0][1])
            assert found["rest"][0] is ours[0][1]
            assert found["rest"][1].data_ptr() == ours[0][1].data_ptr()
            assert found["rest"][2:] == (3, None)
            assert run.state["total"].data_ptr() == found["total"].data_ptr()
    assert "linear.weight" in artifact.state
    assert "tied.weight" not in artifact.state


def test_nothing_is_written_by_compiling() -> None:
    program = exported(Everything())
    before = {name: value.clone() for name, value in program.state_dict.items()}
    given = arguments(3)
    kept = given[0][1].clone()
    size = export(nn.ReLU(), (torch.zeros(2),))
    magweld.compile(program)
    magweld.compile(size, (given[0][1][0, :2],))
    torch.testing.assert_close(dict(program.state_dict), before)
    torch.testing.assert_close(given[0][1], kept)


class Scores(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 5)

    def forward(self, pair: tuple[Tensor, Tensor]) -> Tensor:
        return torch.softmax(self.linear(pair[0]), -1) + pair[1]


def test_dynamic_sizes_take_the_sizes_of_the_inputs() -> None:
    model, shift = Scores().eval(), torch.randn(5)
    sizes = {"pair": ({0: Dim("batch", max=16)}, None)}
    program = export(model, ((torch.randn(3, 4), shift),), dynamic_shapes=sizes)
    several = [((torch.randn(batch, 4), shift),) for batch in (2, 7)]
    portable = magweld.compile_portable(program, *several)
    for (pair,) in several:
        expected = model(pair)
        artifact = magweld.compile(program, (pair,))
        torch.testing.assert_close(artifact(pair), expected)
        found = portable(tuple(tensor.numpy() for tensor in pair))
        torch.testing.assert_close(torch.from_numpy(found), expected)


def test_arguments_of_the_export_are_the_default_in_portable_artifacts() -> None:
    model, x = nn.Linear(4, 5), torch.randn(4, 3).t()
    artifact = magweld.compile_portable(export(model, (x,)))
    torch.testing.assert_close(torch.from_numpy(artifact(x.numpy())), model(x))


class Branch(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))


class Loop(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Any:
        def test(steps: Tensor, x: Tensor) -> Tensor:
            return (steps < 5) & (x.norm() < 100)

        def step(steps: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
            return steps + 1, self.layer(x).relu() + x

        return while_loop(test, step, (torch.zeros((), dtype=torch.int64), x))


@pytest.mark.parametrize(("kind", "step"), [(Branch, IfStep), (Loop, WhileStep)])
def test_branches_and_loops_are_native(
    kind: type[nn.Module], step: type[object], tmp_path: Path
) -> None:
    model, x = kind().eval(), torch.randn(3, 4)
    program = export(model, (x,))
    artifact = magweld.compile(program)
    assert step in map(type, artifact.program.steps)
    artifact.save(tmp_path / "model")
    portable = magweld.compile_portable(program, levels=("x86-64-v3",))
    for scale in (1, -1, 0, 30, 500):
        given = x * scale
        expected = tree_leaves(model(given))
        for loaded in (artifact, magweld.load(tmp_path / "model")):
            torch.testing.assert_close(tree_leaves(loaded(given)), expected)
            assert not any(one is given for one in tree_leaves(loaded(given)))
        for one, other in zip(portable.run([given.numpy()]), expected, strict=True):
            torch.testing.assert_close(torch.from_numpy(one), other)


class Mixed(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return x @ x


@pytest.mark.parametrize(
    ("program", "inputs", "identity", "message"),
    [
        (nn.ReLU(), (torch.randn(2, 5),), "export-inputs", r"exported for \(3, 4\)"),
        (nn.ReLU(), (torch.randn(3, 4).double(),), "export-inputs", "float64"),
        (nn.ReLU(), ([torch.randn(3, 4)],), "export-inputs", "nested otherwise"),
        (nn.ReLU(), {"y": torch.randn(3, 4)}, "export-inputs", "nested otherwise"),
        (Mixed(), None, "export-condition", "autocast"),
    ],
)
def test_refusals(program: nn.Module, inputs: Any, identity: str, message: str) -> None:
    example = torch.randn(3, 3 if isinstance(program, Mixed) else 4)
    with pytest.raises(UnsupportedError, match=message) as raised:
        magweld.compile(export(program, (example,)), inputs)
    assert raised.value.id == identity
    assert raised.value.hint
    assert "\n" not in str(raised.value)


class Shifted(nn.Module):
    def forward(self, x: Tensor, y: Tensor, scale: float, absent: None) -> Tensor:
        return x + y[1:] * scale


@pytest.mark.parametrize("examples", [True, False])
def test_arguments_outside_of_the_export_are_refused(examples: bool) -> None:
    def pair(first: int, second: int) -> tuple[Tensor, Tensor]:
        return torch.randn(first, 4), torch.randn(second, 4)

    batch = Dim("batch", min=3, max=9)
    sizes = ({0: batch}, {0: batch + 1}, None, None)
    given = (*pair(3, 4), 0.5, None)
    program = export(Shifted(), given, dynamic_shapes=sizes)
    if not examples:
        program.example_inputs = None
    fitting = (*pair(5, 6), 0.5, None)
    artifact = magweld.compile(program, fitting)
    torch.testing.assert_close(artifact(*fitting), program.module()(*fitting))
    for inputs, message in (
        ((*pair(10, 11), 0.5, None), "<= 9"),
        ((*pair(2, 3), 0.5, None), ">= 3"),
        ((*pair(5, 3), 0.5, None), "shape|size"),
        ((*pair(5, 6), 0.25, None), "is 0.25, exported for 0.5"),
        ((*pair(5, 6), 0.5, 1), "is 1, exported for None"),
        ((*pair(5, 6), 0.5, torch.ones(2)), "is a tensor, exported for None"),
        ((torch.randn(5, 4), None, 0.5, None), "is a NoneType, exported for a tensor"),
    ):
        with pytest.raises(UnsupportedError, match=message) as raised:
            magweld.compile(program, inputs)
        assert raised.value.id == "export-inputs"


def test_constants_may_be_named_as_arguments() -> None:
    class Named(nn.Module):
        def forward(self, x: Tensor, kind: str) -> Tensor:
            return x * 2 if kind == "x" else x

    program = export(Named(), (torch.randn(3), "x"))
    program.example_inputs = None
    x = torch.randn(3)
    torch.testing.assert_close(magweld.compile(program)(x, "x"), x * 2)


def test_views_of_one_memory_are_told_apart() -> None:
    class Conjugate(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            values = torch.randn(4, dtype=torch.complex64)
            self.register_buffer("plain", values.imag)
            self.register_buffer("negated", values.conj().imag)

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return x * self.plain, x * self.negated

    model, x = Conjugate(), torch.randn(4)
    torch.testing.assert_close(magweld.compile(export(model, (x,)))(x), model(x))


def test_models_need_inputs() -> None:
    with pytest.raises(UnsupportedError, match="artifact-no-inputs"):
        magweld.compile(nn.ReLU())
