"""Owns the running of a program: traced, beside an eager twin."""

from __future__ import annotations

import contextlib
import random
import sys
import types
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy
import torch
from torch import fx
from torch.utils.hooks import RemovableHandle

from magweld.frontend import trace
from magweld.frontend.differential.check import CheckError, Ending, compare, run
from magweld.frontend.differential.describe import Description, Walk, generator_states
from magweld.frontend.operators.torch_state import torch_state
from magweld.frontend.records.backends import run_eagerly
from magweld.frontend.traced import Traced

from .gradients import differentiate, overwrite
from .grammars import GRAMMARS
from .program import Program, Step

_HOOKS = torch.nn.modules.module._global_forward_hooks


def _hook(hooks: dict[int, Any]) -> None:
    _HOOKS.clear()
    _HOOKS.update(hooks)


# Flags of the process that programs and changes write: what reads and what writes one.
_FLAGS: tuple[tuple[Callable[[], Any], Callable[[Any], None]], ...] = (
    (torch.is_grad_enabled, torch._C._set_grad_enabled),
    (torch.get_default_dtype, torch.set_default_dtype),
    (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms),
    (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    (torch._C._get_mkldnn_enabled, torch._C._set_mkldnn_enabled),
    (lambda: dict(_HOOKS), _hook),
)
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
        self.nested = GRAMMARS[program.grammar].nested
        self.originals: dict[int, tuple[Traced, Any]] = {}
        self.process = Process()
        self.parameters = [item.name for item in GRAMMARS[program.grammar].parameters]
        self.differentiates = program.seed % 2 == 1
        self.writes = program.seed % 3 == 2
        self.exact = program.seed % 8 != 5

    def trace(self, **options: Any) -> list[Traced]:
        """Let calls of the functions from outside go through traced ones."""
        for name, function in self.functions.items():
            self.functions[name] = trace(function, **options)
        # `dynamic` names parameters, which others need not have.
        options = {**options, "dynamic": "auto"}
        for name in self.nested:
            original = self.space[name]
            self.space[name] = trace(original, **options)
            self.originals[id(self.space[name])] = self.space[name], original
        nested = [traced for traced, _ in self.originals.values()]
        return [*self.functions.values(), *nested]

    def step(self, step: Step, number: int, last: bool) -> tuple[Ending, Description]:
        """Change the state, make arguments, call; return what came of it.

        All state is looked at after the last call only: that is what takes long.
        """
        with self.process.entered():
            return self._step(step, number, last)

    def _step(self, step: Step, number: int, last: bool) -> tuple[Ending, Description]:
        # Hooks lie in dicts under numbers that the process counts.
        RemovableHandle.next_id = 1000 * (number + 1)
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
        for ending in self.endings(step, arguments):
            if isinstance(ending.error, CheckError):
                raise ending.error
            self.results.append(ending.result)
            if self.differentiates:
                differentiate(ending.result, self.exact)
            if self.writes:
                self.results.append(overwrite(ending.result))
        beside = [*self.space.get("_hidden", list)(), ("torch state", torch_state())]
        with self.shown():
            return ending, self.describe(ending, arguments, changed, beside, last)

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Have the state without hidden names, and what is traced in it as it was."""
        before = dict(self.space)
        for name, item in before.items():
            if name[0] == "_" and name[1] != "_":
                del self.space[name]
            elif id(item) in self.originals:
                self.space[name] = self.originals[id(item)][1]
        try:
            yield
        finally:
            self.space.update(before)

    def endings(self, step: Step, arguments: tuple[Any, ...]) -> Iterator[Ending]:
        """Yield the endings of a step: one, or that in each of its threads."""

        def call() -> Ending:
            around = step.around and eval(step.around, self.space)
            with torch.set_grad_enabled(step.grad), around or contextlib.nullcontext():
                return run(lambda: self.functions[step.function](*arguments))

        if not step.threads:
            yield call()
        for _ in range(step.threads):
            with ThreadPoolExecutor(1) as pool:
                yield pool.submit(call).result()

    def shorten(self) -> None:
        """Cut the lists of the state, those in its objects and those in lists."""
        waiting, seen = list(self.space.values()), set[int]()
        while waiting:
            value = waiting.pop()
            if type(value) in weakref.ProxyTypes or id(value) in seen:
                continue
            seen.add(id(value))
            if isinstance(value, list):
                del value[_LONG:]
                waiting += value
            elif type(value) in (tuple, dict):
                waiting += value.values() if type(value) is dict else value
            else:
                waiting.append(getattr(value, "__dict__", {}).get("items"))

    def describe(
        self, ending: Ending, arguments: Any, changed: Any, beside: Any, last: bool
    ) -> Description:
        """Describe the outcome, and all state if it was the last call."""
        hidden = self.functions.keys()
        state = {**self.space, "results": self.results} if last else {}
        state = {k: v for k, v in state.items() if k not in hidden and k[0] != "_"}
        return Walk(exact=self.exact).describe(
            [
                ("exception", shown(ending.error)),
                ("result", ending.result),
                ("arguments", arguments),
                ("changes", [shown(item.error) for item in changed]),
                *state.items(),
                *beside,
                *generator_states(),
            ]
        )


class Process:
    """Flags and hooks of the process: a twin finds them as it has left them."""

    def __init__(self) -> None:
        self.start = [read() for read, _ in _FLAGS]
        self.values = list(self.start)

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Have the flags of a twin; afterwards those of before."""
        self._write(self.values)
        try:
            yield
        finally:
            self.values = [read() for read, _ in _FLAGS]
            self._write(self.start)

    def _write(self, values: list[Any]) -> None:
        for (_, write), value in zip(_FLAGS, values, strict=True):
            write(value)


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
    # Where no call raises, a graph that raises is a mistake of ours: the call that was
    # to be a hit runs eagerly, and nothing else tells of it. The program may handle it.
    may_raise = report.raised or "except" in program.source
    faults = _FAULTS if may_raise else (*_FAULTS, "backend-failed", "hit-raised")
    for item in traced:
        for refused in item.breaks:
            # A truth that was taken for that of all calls may change.
            changed = "a condition of the program is" in refused.detail
            if refused.id in faults and not changed and not report.failure:
                report.failure = f"{refused.id}: {refused.detail} at {refused.where}"
        report.stats.update(item.stats())
        report.breaks += [f"{refused.id}: {refused.detail}" for refused in item.breaks]
    return report
