"""Owns the running of a program: traced, beside an eager twin."""

from __future__ import annotations

import random
import sys
import types
import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import torch

from magweld.frontend import trace
from magweld.frontend.differential.check import CheckError, Ending, run
from magweld.frontend.differential.compare import compare
from magweld.frontend.differential.describe import Description, Walk
from magweld.frontend.differential.process import generator_states
from magweld.frontend.traced import Traced

from .generate import Program, Step
from .world import WORLD

_NAMES = ("x", "y", "k", "flag", "items", "z")
# Lists that double in each call would take all the time.
_LONG = 8
_WORLD = compile(WORLD, "<world>", "exec")


@dataclass
class Report:
    """What the calls of a program gave.

    Attributes:
        failure: How the traced run differed from eager, "" if it did not.
        stats: The counts of the traced callable.
        breaks: Ids and details of refusals.
        raised: Number of calls that raised.
    """

    failure: str = ""
    stats: Counter[str] = field(default_factory=Counter)
    breaks: list[str] = field(default_factory=list)
    raised: int = 0


class Twin:
    """One copy of the state with the program in it."""

    def __init__(self, program: Program) -> None:
        module = types.ModuleType("fuzz_world")
        self.space: dict[str, Any] = vars(module)
        self.space["__file__"] = "<world>"
        # Decorators of classes look for the module there.
        sys.modules["fuzz_world"] = module
        exec(_WORLD, self.space)
        exec(compile(program.source, "<program>", "exec"), self.space)
        self.call: Any = self.space["program"]
        self.seed = program.seed

    def step(self, step: Step, number: int, last: bool) -> tuple[Ending, Description]:
        """Change the state, make arguments, call; return what came of it.

        All state is looked at after the last call only: that is what takes long.
        """
        torch.default_generator.manual_seed(number)
        random.seed(number)
        changed = [
            run(lambda text=text: exec(text, self.space)) for text in step.changes
        ]
        for value in (*self.space.values(), self.space["OBJ"].__dict__.get("items")):
            if isinstance(value, list):
                del value[_LONG:]
        locals_: dict[str, Any] = {}
        for name, text in zip(_NAMES, step.arguments, strict=True):
            locals_[name] = eval(text, self.space, locals_)
        arguments = tuple(locals_.values())
        with torch.set_grad_enabled(step.grad):
            ending = run(lambda: self.call(*arguments))
        if isinstance(ending.error, CheckError):
            raise ending.error
        if self.seed % 2:
            differentiate(ending.result)
        return ending, self.describe(ending, arguments, changed, last)

    def describe(
        self, ending: Ending, arguments: Any, changed: Any, last: bool
    ) -> Description:
        """Describe the outcome, and all state if it was the last call."""
        state = self.space if last else {}
        state = {k: v for k, v in state.items() if k[0] != "_" and k != "program"}
        return Walk().describe(
            [
                ("exception", shown(ending.error)),
                ("result", ending.result),
                ("arguments", arguments),
                ("changes", [shown(item.error) for item in changed]),
                *state.items(),
                *generator_states(),
            ]
        )


def differentiate(result: Any) -> None:
    """Run backward from the tensors of a result; the gradients are state."""
    items = result if isinstance(result, (tuple, list)) else [result]
    for item in items:
        if isinstance(item, torch.Tensor) and item.requires_grad:
            run(lambda item=item: item.sum().backward())


def shown(error: BaseException | None) -> str | None:
    """Return an exception as text."""
    return None if error is None else f"{type(error).__qualname__}: {error}"


def run_program(program: Program) -> Report:
    """Run a program traced and eagerly; the first difference ends it.

    Every fourth program runs in the differential mode too.
    """
    report = Report()
    check = program.seed % 4 == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        eager, mine = Twin(program), Twin(program)
        traced: Traced = trace(mine.call, backend="eager", check=check)
        mine.call = traced
        for number, step in enumerate(program.steps):
            last = number == len(program.steps) - 1
            expected, theirs = eager.step(step, number, last)
            try:
                _, found = mine.step(step, number, last)
            except CheckError as error:
                report.failure = f"call {number}: {error}"
                break
            difference = compare(theirs, found)
            report.raised += expected.error is not None
            if difference is not None:
                report.failure = f"call {number}: {difference}"
                break
    report.stats.update(traced.stats())
    report.breaks = [f"{item.id}: {item.detail}" for item in traced.breaks]
    return report
