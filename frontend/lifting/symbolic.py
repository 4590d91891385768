"""Owns sizes of a run as functions of lifted ones: the graph run on fake tensors."""

from __future__ import annotations

import functools
import math
import operator
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch
from torch import fx
from torch._dynamo.source import ConstantSource
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import (
    DimDynamic,
    ShapeEnv,
    StatelessSymbolicContext,
)

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.expressions.expressions import (
    Expression,
    Leaf,
    Literal,
    SizeSource,
    topological,
)
from magweld.frontend.lifting.branch_shapes import branch_results, is_branch
from magweld.frontend.lifting.known_results import KnownResults
from magweld.frontend.lifting.loop_shapes import (
    is_list_operator,
    loop_results,
    run_list_operator,
)
from magweld.frontend.lifting.state import Lifting
from magweld.frontend.lifting.symbolic_calls import (
    RECURRENT,
    is_at_place,
    run_at_place,
)
from magweld.frontend.lifting.symbols import (
    NotSymbolicError,
    SymbolicNumbers,
    Translator,
    bounds,
    strides_hold,
)
from magweld.frontend.operators.kinds import name_of
from magweld.frontend.operators.recorder import OperatorRecorder
from magweld.frontend.operators.values_only import is_value_only
from magweld.frontend.state.nodes import Node
from magweld.graphs.autocast import autocast_kept
from magweld.graphs.control_operators import ForOperator
from magweld.logs import expected_errors


@dataclass(frozen=True)
class Sizes:
    """What the sizes of a run depend on.

    Attributes:
        resolve: Gives the expression of a leaf over what a hit can read.
        conditions: Expressions that must be true.
        dims: Lifted dimensions of graph inputs.
    """

    resolve: Callable[[Leaf], Expression]
    conditions: list[Expression]
    dims: dict[Node, frozenset[int]]


def symbolic_sizes(recorder: OperatorRecorder, lifting: Lifting) -> Sizes:
    """Run the recorded graph on fake tensors with symbolic sizes.

    Raises:
        Exception: Whatever torch or sympy raise for what they cannot express; the
            sizes must then stay as they were.
    """
    replay = Replay(recorder, lifting)
    try:
        replay.make_inputs()
        with _quietly(), replay.mode:
            replay.run()
        return replay.sizes()
    finally:
        # It asks for sizes: a cycle would keep the tensors of the run.
        del replay.numbers


class _Sizes(ShapeEnv):
    """Symbolic sizes; that they come from a line of the user's is not told to torch.

    To find that line, torch would import four hundred modules of its compiler.
    """

    def _get_user_frame(self) -> FrameType | None:
        return sys._getframe(1)


@functools.cache
def import_what_symbols_need() -> None:
    """Make a symbol: torch imports what it needs for symbols when it makes one."""
    context: Any = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC])
    mode = FakeTensorMode(shape_env=_Sizes())
    source = ConstantSource("size")
    mode.from_tensor(torch.empty(3), symbolic_context=context, source=source)


@contextmanager
def _quietly() -> Iterator[None]:
    with (
        torch.random.fork_rng(devices=[]),
        torch.no_grad(),
        autocast_kept(always=True),
        expected_errors(),
    ):
        yield


@dataclass
class Replay:
    """The run once more, on fake tensors.

    Attributes:
        symbols: What each symbol stands for, by name.
        values: What each node of the recorded graph has given.
        dims: Lifted dimensions of graph inputs.
    """

    recorder: OperatorRecorder
    lifting: Lifting
    symbols: dict[str, Expression] = field(default_factory=dict)
    values: dict[fx.Node, Any] = field(default_factory=dict)
    dims: dict[Node, frozenset[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.env = _Sizes(duck_shape=False, specialize_zero_one=True)
        self.mode = FakeTensorMode(shape_env=self.env)
        # Each operator runs once: an entry of the cache costs more than the operator.
        self.mode.cache_enabled = False
        self._fakes: dict[Node, Any] = {}
        self._known = KnownResults()
        # An operator whose fake result lies otherwise in memory than the real one.
        self._estranged = ""
        self.numbers = SymbolicNumbers(
            self.env,
            self.lifting,
            self.lifting.scalars.shaping,
            self._size,
            self.symbols,
        )

    # Running.

    def make_inputs(self) -> None:
        """Make a fake tensor for every input; outside of the mode, as they are real."""
        for item in self.recorder.inputs:
            if item.placeholder is not None:
                fake = self._input(item.placeholder, item.node)
                self.values[item.placeholder] = fake

    def run(self) -> None:
        """Run the graph, then check what else Python has asked about its tensors."""
        for node in self.recorder.graph.nodes:
            if self.lifting.operands.is_unused(node):
                continue
            if (
                node.op != "placeholder"
                and node.target is not torch._C._set_grad_enabled
            ):
                self._run(node)
        for node in self.lifting.scalars.expressions:
            self.number(node)
        if self._estranged and (
            self.lifting.operands.queries or self.lifting.scalars.same
        ):
            raise NotSymbolicError(f"strides of {self._estranged}")
        for query in self.lifting.operands.queries:
            args, kwargs = self._map(query.args), self._map(query.kwargs)
            self._check(query.function(*args, **kwargs), query.result)

    def _run(self, node: fx.Node) -> None:
        if is_branch(node):
            self.values[node] = branch_results(self, node)
            return
        for used in node.all_input_nodes:
            self.number(used)
        name = str(node.target) if node.op == "call_method" else name_of(node.target)
        args = tuple(self._map(a, name, k) for k, a in enumerate(node.args))
        kwargs = {k: self._map(a, name, k) for k, a in node.kwargs.items()}
        self.values[node] = self.call(node, args, kwargs)
        self.compare(node, [self.values[n] for n in node.all_input_nodes])

    def number(self, node: fx.Node) -> Any:
        """Return the value of a number, which its use may be the first to need."""
        expression = self.lifting.scalars.expressions.get(node)
        if expression is not None and node not in self.values:
            self.values[node] = self.numbers.value(expression)
        return self.values[node]

    def _map(self, args: Any, name: str = "", key: Any = None) -> Any:
        # Data takes no symbols: they would be fixed.
        plain = self.lifting.scalars.expressions if is_value_only(name, key) else {}

        def fetch(node: fx.Node) -> Any:
            return plain[node].value if node in plain else self.values[node]

        return fx.map_arg(args, fetch)

    def call(self, node: fx.Node, args: Any, kwargs: Any) -> Any:
        """Run an operator."""
        rolled = self.lifting.operands.rolled.get(node)
        if rolled is not None and isinstance(node.target, ForOperator):
            return loop_results(self, rolled, node.target, args)
        if is_list_operator(node, args):
            return run_list_operator(node, args, kwargs)
        if is_at_place(node, args):
            return run_at_place(node, args)
        if node.op == "call_method":
            name = str(node.target)

            def method(of: Any, *rest: Any, **named: Any) -> Any:
                return getattr(of, name)(*rest, **named)

            return self._known.call(name, method, args, kwargs)
        assert callable(node.target), "a recorded graph has no modules"
        recurrent = RECURRENT.get(name_of(node.target))
        if recurrent is not None:
            return recurrent(*args, **kwargs)
        return self._known.call(id(node.target), node.target, args, kwargs)

    def _input(self, placeholder: fx.Node, node: Node) -> Any:
        real = node.obj
        if real.is_conj() or real.is_neg() or real.layout is not torch.strided:
            raise NotSymbolicError("form of an input")
        dims = self.lifting.operands.lifted_dims(node)
        plain = torch.empty_strided(
            real.shape, real.stride(), dtype=real.dtype, device=real.device
        )
        if not dims:
            return self.mode.from_tensor(plain, static_shapes=True)
        kinds = [
            DimDynamic.DYNAMIC if dim in dims else DimDynamic.STATIC
            for dim in range(real.dim())
        ]
        context: Any = StatelessSymbolicContext(dynamic_sizes=kinds)
        source = ConstantSource(placeholder.name)
        fake = self.mode.from_tensor(plain, symbolic_context=context, source=source)
        self.dims[node] = dims
        self._fakes[node] = fake
        self._name_symbols(node, fake)
        return fake

    def _name_symbols(self, node: Node, fake: Any) -> None:
        lifting, real = self.lifting, node.obj
        for dim in self.dims[node]:
            leaf = lifting.size_leaf(SizeSource(node, dim), real.shape[dim])
            self.symbols[fake.shape[dim].node.expr.name] = leaf
        strides = lifting.strides_leaf(node)
        for dim, stride in enumerate(fake.stride()):
            if not isinstance(stride, int):
                expression = stride.node.expr
                if expression.is_Symbol and expression.name not in self.symbols:
                    place = Literal(dim)
                    self.symbols[expression.name] = lifting.make.apply(
                        operator.getitem, (strides, place), real.stride(dim)
                    )

    def _size(self, source: SizeSource) -> Any:
        of = source.of
        fake = self._fakes[of] if isinstance(of, Node) else self.values[of]
        return fake.shape[source.dim]

    # Comparing with the run.

    def compare(self, node: fx.Node, inputs: list[Any]) -> None:
        """Compare the result of an operator, given what it took, with the run."""
        fake, scalars = self.values[node], self.lifting.scalars
        count = scalars.lengths.get(node)
        if count is not None and len(fake) != count:
            raise NotSymbolicError(f"results of {node.target}")
        same = scalars.same.get(node)
        if same is not None and fake is not self.values[same]:
            raise NotSymbolicError(f"{node.target} returned its argument")
        real = self.recorder.tensors.tensor(node)
        if real is None:
            return
        if same is None and any(fake is taken for taken in inputs):
            raise NotSymbolicError(f"{node.target} returned something new")
        hints = tuple(map(_hint, fake.shape))
        if hints != tuple(real.shape) or fake.dtype is not real.dtype:
            raise NotSymbolicError(f"shape of {node.target}")
        strides = zip(hints, map(_hint, fake.stride()), real.stride(), strict=True)
        if any(size != 1 and left != right for size, left, right in strides):
            self._estranged = str(node.target)

    def _check(self, found: Any, expected: Any) -> None:
        if isinstance(expected, (tuple, list)):
            if len(found) != len(expected):
                raise NotSymbolicError("a query")
            for left, right in zip(found, expected, strict=True):
                self._check(left, right)
        elif not bool(found == expected):
            raise NotSymbolicError("a query")

    # Results.

    def sizes(self) -> Sizes:
        """Return what was found."""
        translate = Translator(self.lifting.make, self.symbols)
        conditions = [
            *bounds(self.lifting, self.env, self.symbols),
            *(translate(guard.expr) for guard in self.env.guards),
            *(
                strides_hold(self.lifting, item.node, self._fakes[item.node], translate)
                for item in self.recorder.inputs
                if item.node in self.dims and item.placeholder is not None
            ),
        ]
        if not all(condition.value is True for condition in conditions):
            raise NotSymbolicError("a guard that does not hold")

        def resolve(leaf: Leaf) -> Expression:
            source = leaf.source
            if not isinstance(source, SizeSource) or isinstance(source.of, Node):
                return leaf
            if source.of not in self.values:
                raise StopRecordingError("tensor-value", "a size in another branch")
            size = self.values[source.of].shape[source.dim]
            if isinstance(size, int):
                return Literal(size)
            return translate(self.env.simplify(size.node.expr))

        for leaf in self._leaves():
            if resolve(leaf).value != leaf.value:
                raise NotSymbolicError(leaf.text)
        return Sizes(resolve, conditions, self.dims)

    def _leaves(self) -> Iterator[Leaf]:
        """Yield the leaves that matter: none of branches that were given up."""
        demanded = {
            *self.lifting.demanded(),
            *self.lifting.scalars.expressions.values(),
        }
        needed = set(topological(demanded))
        for leaf in self.lifting.make.leaves():
            source = leaf.source
            known = not isinstance(source, SizeSource) or isinstance(source.of, Node)
            if known or source.of in self.values:
                yield leaf
            elif leaf in needed:
                raise NotSymbolicError(f"a size of {source.of} in a branch")


def _hint(size: Any) -> int:
    if isinstance(size, int):
        return size
    hint = size.node.hint
    if hint is None or math.isnan(hint):
        raise NotSymbolicError("a size that follows from values")
    return int(hint)
