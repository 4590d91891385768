"""Owns sizes that are worked out behind the calls: what they follow from, when."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import fx

from magweld.frontend.expressions.expressions import (
    ArgumentSource,
    EdgeSource,
    Expression,
    Leaf,
    Operation,
    SizeSource,
    topological,
)
from magweld.frontend.lifting.state import Lifting
from magweld.frontend.operators.recorder import OperatorRecorder
from magweld.frontend.operators.tensors import GraphInput
from magweld.frontend.operators.torch_state import torch_state
from magweld.frontend.state.nodes import Node
from magweld.frontend.state.paths import Paths
from magweld.frontend.state.refgraph import RefGraph
from magweld.graphs.autocast import switches_autocast
from magweld.graphs.control_operators import bodies_of
from magweld.graphs.gradients import switches_gradients
from magweld.paced import Paced

if TYPE_CHECKING:
    from magweld.frontend.lifting.environment import SymbolicEnvironment


@dataclass(frozen=True)
class InputForm:
    """The form of an input of a graph.

    Attributes:
        path: How it is reached.
        name: What the graph calls it.
        dims: Its lifted dimensions.
        shape: Its sizes in the recorded run.
        stride: Its strides there.
        dtype: Type of its elements.
        device: Where it is.
    """

    path: str
    name: str
    dims: frozenset[int]
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device

    @property
    def key(self) -> Hashable:
        """What tells inputs apart whose lifted dimensions may have any size."""
        fixed = [None if dim in self.dims else n for dim, n in enumerate(self.shape)]
        stride = None if self.dims else self.stride
        kind = (self.path, self.dims, self.dtype, self.device)
        return (*kind, tuple(fixed), stride)


def form_of(item: GraphInput, dims: frozenset[int], paths: Paths) -> InputForm | None:
    """Return the form of an input that the graph takes.

    Args:
        item: The input.
        dims: Its lifted dimensions.
        paths: How inputs are reached.

    Returns:
        None if it has more than sizes and strides: it is sparse, or a lazy conjugate.
    """
    real = item.node.obj
    if real.is_conj() or real.is_neg() or real.layout is not torch.strided:
        return None
    sizes = tuple(real.shape), tuple(real.stride())
    names = paths.of(item.node), str(item.placeholder)
    return InputForm(*names, dims, *sizes, real.dtype, real.device)


@dataclass(frozen=True)
class Outline:
    """What the sizes of a recorded run follow from.

    Attributes:
        inputs: The forms of what the graph takes.
        nodes: Its operators, in order.
        numbers: Inputs of the graph that are numbers.
        shaping: Those of the expressions that may decide about shapes.
        asked: Sizes that Python has asked for: a node that gives a tensor, a dimension.
        lifting: Lifted values that the expressions are made of; of no run.
    """

    inputs: Mapping[fx.Node, InputForm]
    nodes: tuple[fx.Node, ...]
    numbers: Mapping[fx.Node, Expression]
    shaping: frozenset[Expression]
    asked: tuple[tuple[fx.Node, int], ...]
    lifting: Lifting


def outline_of(recorder: OperatorRecorder, lifting: Lifting) -> Outline | None:
    """Return the outline of a finished run.

    It keeps no object of the program alive. None if sizes follow from more than forms:
    from control flow, values of tensors, or regions of autocast.
    """
    graph, scalars = recorder.graph, lifting.scalars
    if lifting.operands.rolled or any(bodies_of(node) for node in graph.nodes):
        return None
    if switches_autocast(graph):
        return None
    inputs: dict[fx.Node, InputForm] = {}
    placeholders: dict[Node, fx.Node] = {}
    for item in recorder.inputs:
        dims = lifting.operands.lifted_dims(item.node)
        form = form_of(item, dims, recorder.paths)
        if form is None:
            return None
        inputs[item.placeholder] = form
        placeholders[item.node] = item.placeholder
    parts = topological(scalars.expressions.values())
    if not all(_is_of_forms(part, placeholders) for part in parts):
        return None
    copies = _Copies(lifting, placeholders)
    numbers = {node: copies.of(found) for node, found in scalars.expressions.items()}
    return Outline(
        inputs,
        tuple(operators_of(graph, lifting)),
        numbers,
        frozenset(copies.of(part) for part in parts if part in scalars.shaping),
        tuple(_asked(lifting)),
        copies.lifting,
    )


def _is_of_forms(part: Expression, placeholders: Mapping[Node, fx.Node]) -> bool:
    """Whether a part of an expression can be read without the objects of the run."""
    if not isinstance(part, Leaf):
        return True
    if isinstance(part.source, SizeSource):
        of = part.source.of
        return not isinstance(of, Node) or of in placeholders
    return isinstance(part.source, (ArgumentSource, EdgeSource))


def operators_of(graph: fx.Graph, lifting: Lifting) -> Iterable[fx.Node]:
    """Yield the operators that sizes may follow from, in order.

    They run on fake tensors, which need no gradients.
    """
    for node in graph.nodes:
        switches = switches_gradients(node)
        if node.op == "placeholder" or switches or lifting.operands.is_unused(node):
            continue
        yield node


def _asked(lifting: Lifting) -> Iterable[tuple[fx.Node, int]]:
    for leaf in lifting.make.leaves():
        source = leaf.source
        if isinstance(source, SizeSource) and isinstance(source.of, fx.Node):
            yield source.of, source.dim


class _Copies:
    """Copies of expressions that read sizes of inputs by what stands for these.

    Attributes:
        lifting: What the copies belong to.
    """

    def __init__(self, lifting: Lifting, placeholders: Mapping[Node, fx.Node]) -> None:
        self.lifting = Lifting(frozenset(), RefGraph())
        self._pinned = lifting.pinned
        self._placeholders = placeholders
        self._known: dict[Expression, Expression] = {}

    def of(self, expression: Expression) -> Expression:
        """Return the copy of an expression."""
        for part in topological([expression]):
            if part not in self._known:
                self._known[part] = copy = self._copy(part)
                if part in self._pinned:
                    self.lifting.pin(copy)
        return self._known.get(expression, expression)

    def _copy(self, part: Leaf | Operation) -> Expression:
        make = self.lifting.make
        if isinstance(part, Leaf):
            source = part.source
            if isinstance(source, SizeSource) and isinstance(source.of, Node):
                source = SizeSource(self._placeholders[source.of], source.dim)
            return make.leaf(source, part.value, part.text, part.bounds)
        operands = [self._known.get(operand, operand) for operand in part.operands]
        return make.apply(part.function, operands, part.value)


# Seconds that a call may work on sizes, and that pass from one such call to the next.
_SLICE: Final = 0.02
_PAUSE: Final = 0.01


class SizesAwaitedError(Exception):
    """The sizes of a run are to be worked out behind the calls; nothing is captured.

    Attributes:
        outline: What they follow from.
    """

    def __init__(self, outline: Outline) -> None:
        super().__init__("the sizes are not worked out yet")
        self.outline = outline


@dataclass(frozen=True)
class KnownSizes:
    """What a run that lifts sizes finds of them.

    Attributes:
        environment: Has what a run before it has made of symbols; None if none has.
        may_wait: Whether the run may be for the outline of its sizes alone.
    """

    environment: SymbolicEnvironment | None = None
    may_wait: bool = False


class SizesAhead:
    """Has the sizes of the next lifted run worked out, a little in each call.

    Args:
        wanted: Paths of what is lifted.
        outline: What the sizes follow from.
        clock: Seconds.
    """

    def __init__(
        self,
        wanted: frozenset[str],
        outline: Outline,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.wanted = wanted
        self._clock = clock
        self._modes = _modes()
        work = functools.partial(_propagate, outline)
        self._work: Paced[SymbolicEnvironment] | None = Paced(work, _modes)
        self._environment: SymbolicEnvironment | None = None
        self._worked_at = clock()

    @property
    def environment(self) -> SymbolicEnvironment | None:
        """What a run may take; None before the end, and if nothing came of it."""
        known = self._environment
        return known if known is not None and known.is_for_others else None

    @property
    def has_failed(self) -> bool:
        """Whether it was of no use, and would not be the next time."""
        return self.is_over and self.environment is None

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to be worked out."""
        return self._work is None

    def go_on(self) -> None:
        """Work a little within a call."""
        if self._clock() - self._worked_at >= _PAUSE:
            self.wait(_SLICE)

    def wait(self, seconds: float) -> None:
        """Work for some seconds at most.

        It is over without a result where a caller has other modes of torch than the one
        that began.
        """
        work = self._work
        if work is None:
            return
        fits = _modes() == self._modes
        if fits and not work.go_on(seconds):
            self._worked_at = self._clock()
            return
        if isinstance(work.outcome, tuple):
            (self._environment,) = work.outcome
        self._work = None


def _modes() -> tuple[Any, ...]:
    """Return what the work takes from its thread: modes, but for those of autograd."""
    _grad, _inference, *others = torch_state()
    return tuple(others)


def _propagate(outline: Outline) -> SymbolicEnvironment:
    # Symbolic shapes take long to import.
    from magweld.frontend.lifting.symbolic import propagate

    return propagate(outline)
