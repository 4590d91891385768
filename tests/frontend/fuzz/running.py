"""Owns the running of a program: traced, beside an eager twin."""

from __future__ import annotations

import random
import sys
import types
import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy
import torch
from torch import fx

from magweld.frontend import trace
from magweld.frontend.differential.check import CheckError, Ending, run
from magweld.frontend.differential.compare import compare
from magweld.frontend.differential.describe import Description, Walk
from magweld.frontend.differential.process import generator_states
from magweld.frontend.records.backends import run_eagerly
from magweld.frontend.traced import Traced

from .grammars import GRAMMARS
from .program import Program, Step

# Lists that double in each call would take all the time.
_LONG = 8
# Refusals that no program should meet.
_FAULTS = ("monitor-error", "lost-events")
_WORLDS = {
    name: compile(grammar.world, "<world>", "exec")
    for name, grammar in GRAMMARS.items()
}


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


class Cut:
    """Runs graphs through torch, forward and backward ones by themselves."""

    differentiates = False

    def __call__(self, graph: fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        """Return what runs a graph."""
        return run_eagerly(graph, inputs)


class Twin:
    """One copy of the state with the program in it."""

    def __init__(self, program: Program) -> None:
        module = types.ModuleType("fuzz_world")
        self.space: dict[str, Any] = vars(module)
        self.space["__file__"] = "<world>"
        # Decorators of classes look for the module there.
        sys.modules["fuzz_world"] = module
        exec(_WORLDS[program.grammar], self.space)
        exec(compile(program.source, "<program>", "exec"), self.space)
        names = [item.name for item in program.functions]
        self.functions: dict[str, Any] = {name: self.space[name] for name in names}
        self.results: list[Any] = []
        self.parameters = [item.name for item in GRAMMARS[program.grammar].parameters]
        self.differentiates = program.seed % 2 == 1
        self.exact = program.seed % 8 != 5

    def trace(self, **options: Any) -> list[Traced]:
        """Let calls of the functions from outside go through traced ones."""
        for name, function in self.functions.items():
            self.functions[name] = trace(function, **options)
        return list(self.functions.values())

    def step(self, step: Step, number: int, last: bool) -> tuple[Ending, Description]:
        """Change the state, make arguments, call; return what came of it.

        All state is looked at after the last call only: that is what takes long.
        """
        torch.default_generator.manual_seed(number)
        random.seed(number)
        numpy.random.seed(number)
        changed = [
            run(lambda text=text: exec(text, self.space)) for text in step.changes
        ]
        self.shorten()
        locals_: dict[str, Any] = {}
        for name, text in zip(self.parameters, step.arguments, strict=True):
            locals_[name] = eval(text, self.space, locals_)
        arguments = tuple(locals_.values())
        with torch.set_grad_enabled(step.grad):
            ending = run(lambda: self.functions[step.function](*arguments))
        if isinstance(ending.error, CheckError):
            raise ending.error
        self.results.append(ending.result)
        if self.differentiates:
            differentiate(ending.result)
        return ending, self.describe(ending, arguments, changed, last)

    def shorten(self) -> None:
        """Cut the lists of the state, and those in its objects."""
        for value in list(self.space.values()):
            for item in (value, getattr(value, "__dict__", {}).get("items")):
                if isinstance(item, list):
                    del item[_LONG:]

    def describe(
        self, ending: Ending, arguments: Any, changed: Any, last: bool
    ) -> Description:
        """Describe the outcome, and all state if it was the last call."""
        hidden = self.functions.keys()
        state = {**self.space, "results": self.results} if last else {}
        state = {k: v for k, v in state.items() if k[0] != "_" and k not in hidden}
        return Walk(exact=self.exact).describe(
            [
                ("exception", shown(ending.error)),
                ("result", ending.result),
                ("arguments", arguments),
                ("changes", [shown(item.error) for item in changed]),
                *state.items(),
                *self.space.get("_hidden", list)(),
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

    Every fourth program runs in the differential mode too. Every eighth has its graphs
    cut into forward and backward halves, in which operators are others than in eager.
    """
    report = Report()
    check = program.seed % 4 == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        eager, mine = Twin(program), Twin(program)
        backend = "eager" if mine.exact else Cut()
        traced = mine.trace(backend=backend, check=check, dynamic=program.dynamic)
        for number, step in enumerate(program.steps):
            last = number == len(program.steps) - 1
            expected, theirs = eager.step(step, number, last)
            try:
                _, found = mine.step(step, number, last)
            except CheckError as error:
                report.failure = f"call {number}: {error}"
                break
            difference = compare(theirs, found, exact=mine.exact)
            report.raised += expected.error is not None
            if difference is not None:
                report.failure = f"call {number}: {difference}"
                break
    for item in traced:
        for refused in item.breaks:
            if refused.id in _FAULTS and not report.failure:
                report.failure = f"{refused.id}: {refused.detail} at {refused.where}"
        report.stats.update(item.stats())
        report.breaks += [f"{refused.id}: {refused.detail}" for refused in item.breaks]
    return report
