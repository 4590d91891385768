"""Operators of a record know in which modules they run."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from magweld.frontend import trace


def modules_of(target: Any, *inputs: Tensor) -> list[list[str]]:
    """Names of the modules around each operator, the outermost first."""
    traced = trace(target, backend="eager")
    traced(*inputs)
    (record,) = traced.records
    operators = [
        node
        for node in record.graph.graph.nodes
        if node.op not in ("placeholder", "output", "get_attr")
    ]
    return [[*node.meta["nn_module_stack"]] for node in operators]


class Block(nn.Module):
    """A linear layer and an operator of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x).exp()


class Net(nn.Module):
    """Blocks in a list, one of them under a second name."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])
        self.again = self.blocks[0]

    def forward(self, x: Tensor) -> Tensor:
        return self.again(self.blocks[1](self.blocks[0](x))).sin()


def test_operators_have_the_names_of_their_modules() -> None:
    first = [["", "blocks.0", "blocks.0.inner"], ["", "blocks.0"]]
    second = [["", "blocks.1", "blocks.1.inner"], ["", "blocks.1"]]
    expected = [*first, *second, *first, [""]]
    assert modules_of(Net().eval(), torch.ones(2, 4)) == expected


def test_functions_are_named_after_nothing() -> None:
    assert modules_of(lambda x: x.exp(), torch.ones(2)) == [[]]


def test_the_outermost_module_of_a_function_has_no_name() -> None:
    block = Block().eval()
    assert modules_of(lambda x: block(x), torch.ones(2, 4)) == [["", "inner"], [""]]


class Watchful(nn.Module):
    """Counts what is asked of it; its `self` is in a cell."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.inner = nn.Linear(4, 4)

    def named_modules(self, *arguments: Any, **keywords: Any) -> Any:
        self.asked.append("named_modules")
        return super().named_modules(*arguments, **keywords)

    def __getattribute__(self, name: str) -> Any:
        if name == "_modules":
            object.__getattribute__(self, "__dict__")["asked"].append(name)
        return super().__getattribute__(name)

    def forward(self, x: Tensor) -> Tensor:
        def apply(value: Tensor) -> Tensor:
            return value * self.scale

        return apply(self.inner(x))

    scale = 2.0


def test_the_users_class_is_not_asked_for_names() -> None:
    asked = []
    for run in (lambda m, x: m(x), modules_of):
        module = Watchful().eval()
        module.asked.clear()
        found = run(module, torch.ones(2, 4))
        asked.append([*module.asked])
    assert found == [["", "inner"], [""]]
    assert asked[0] == asked[1]


class Forgetful(nn.Module):
    """Deletes its `self`, which is in a cell."""

    def forward(self, x: Tensor) -> Tensor:
        def forget() -> None:
            nonlocal self
            del self

        forget()
        return x.exp()


def test_an_argument_that_was_deleted() -> None:
    assert modules_of(Forgetful().eval(), torch.ones(2)) == [[""]]
