"""Owns the base classes of passes: frozen dataclasses whose fields are the options."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from magweld.bindings import func, ir, rewrite

if TYPE_CHECKING:
    from magweld.passes.infrastructure.pipeline import Step

Pattern = Callable[[Any, Any], bool]
"""`pattern(op, rewriter)`; returns True when it has rewritten `op`."""


@dataclass(frozen=True)
class Pass(ABC):
    """One rewrite of a module.

    A subclass is a frozen dataclass, sets `name`, and its docstring is the
    documentation: the first line is the summary. A field annotated with
    `Annotated[type, "help"]` carries its own help text.

    Attributes:
        name: Name in pipelines, in kebab case.
        anchors: Operations that pipeline text may nest the pass under.
    """

    name: ClassVar[str]
    anchors: ClassVar[tuple[str, ...]] = ("builtin.module",)

    @abstractmethod
    def run(self, module: ir.Operation) -> None:
        """Rewrite the module in place.

        An error diagnostic that is emitted meanwhile fails the pass as well.

        Raises:
            PassError: The pass cannot do its work on this module.
        """

    @classmethod
    def summary(cls) -> str:
        """Return the first line of the pass's documentation."""
        return (inspect.getdoc(cls) or "").partition("\n")[0]

    @classmethod
    def details(cls) -> str:
        """Return the pass's documentation after its first line."""
        return (inspect.getdoc(cls) or "").partition("\n")[2].strip()


@dataclass(frozen=True)
class FunctionPass(Pass):
    """A pass that rewrites every `func.func` with a body, each on its own.

    It sees the functions directly in the module, as `func.func(...)` in an upstream
    pipeline does, and may be nested so in pipeline text.
    """

    anchors: ClassVar[tuple[str, ...]] = ("builtin.module", "func.func")

    def run(self, module: ir.Operation) -> None:
        """Run on all functions of the module in their order."""
        block = module.regions[0].blocks[0]
        functions = [op for op in block if isinstance(op, func.FuncOp)]
        for function in functions:
            if not function.is_external:
                self.run_on_function(function)

    @abstractmethod
    def run_on_function(self, function: func.FuncOp) -> None:
        """Rewrite one function in place; errors are reported as by `run`."""


@dataclass(frozen=True)
class PatternPass(FunctionPass):
    """A pass that applies patterns to every function until nothing changes."""

    @abstractmethod
    def patterns(self) -> Sequence[tuple[type[ir.OpView], Pattern]]:
        """Return the patterns with the operation class each is rooted at."""

    def run_on_function(self, function: func.FuncOp) -> None:
        """Apply the patterns greedily, with folding and removal of dead code."""
        apply_patterns(function.operation, self.patterns())


@dataclass(frozen=True)
class NamedPipeline(ABC):
    """A list of steps with a name, which pipeline text may use like a pass.

    A subclass is a frozen dataclass whose fields are its options, as those of a pass.

    Attributes:
        name: Name in pipeline text, in kebab case.
    """

    name: ClassVar[str]

    @abstractmethod
    def steps(self) -> tuple[Step, ...]:
        """Return what the name stands for.

        Raises:
            MagweldError: The options name something that does not exist.
        """

    @classmethod
    def summary(cls) -> str:
        """Return the first line of the pipeline's documentation."""
        return (inspect.getdoc(cls) or "").partition("\n")[0]


def apply_patterns(
    root: ir.Operation, patterns: Sequence[tuple[type[ir.OpView], Pattern]]
) -> None:
    """Apply patterns below an operation greedily until nothing changes.

    What a pattern builds is looked at in the next round: something may move past one
    operation in each. So there are as many rounds as operations, and a few more.

    Raises:
        Exception: Whatever a pattern raised; the IR is then half rewritten.
    """
    raised: list[BaseException] = []
    pattern_set = rewrite.RewritePatternSet(root.context)
    for operation_class, pattern in patterns:
        pattern_set.add(operation_class, _to_native(pattern, raised))
    config = rewrite.GreedyRewriteConfig()
    for region in root.regions:
        config.max_iterations += sum(len(block.operations) for block in region.blocks)
    try:
        rewrite.apply_patterns_and_fold_greedily(root, pattern_set.freeze(), config)
    finally:
        if raised:
            raise raised[0]


def _to_native(
    pattern: Pattern, raised: list[BaseException]
) -> Callable[[Any, Any], bool]:
    def call(op: Any, rewriter: Any) -> bool:
        # The bindings take a falsy result for success, and an exception must not
        # unwind through the native driver: keep it, and match nothing from then on.
        if raised:
            return True
        try:
            with rewriter.ip, op.location:
                return not pattern(op, rewriter)
        except BaseException as error:
            raised.append(error)
            return True

    return call
