"""Owns sizes of a run as functions of lifted ones: the graph run on fake tensors."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import fx

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.control.rolling import Rolled
from magweld.frontend.expressions.expressions import (
    Expression,
    Leaf,
    Literal,
    SizeSource,
    topological,
)
from magweld.frontend.lifting.ahead import Outline, form_of, operators_of
from magweld.frontend.lifting.control_shapes import (
    branch_results,
    is_branch,
    is_list_operator,
    loop_results,
    run_list_operator,
)
from magweld.frontend.lifting.environment import SymbolicEnvironment, SymbolicInput
from magweld.frontend.lifting.state import Lifting
from magweld.frontend.lifting.symbolic_calls import (
    ON_SYMBOLS,
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
from magweld.frontend.operators.kinds import is_value_only, name_of, operator_of
from magweld.frontend.operators.recorder import OperatorRecorder
from magweld.frontend.operators.tensors import GraphInput
from magweld.frontend.state.nodes import Node
from magweld.graphs.autocast import autocast_kept
from magweld.graphs.control_operators import ForOperator
from magweld.logs import expected_errors, topic
from magweld.paced import checkpoint

_FALLBACKS: Final = topic("fallbacks")


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


def symbolic_sizes(
    recorder: OperatorRecorder,
    lifting: Lifting,
    known: SymbolicEnvironment | None = None,
) -> Sizes:
    """Run the recorded graph on fake tensors with symbolic sizes.

    Args:
        recorder: What the run has recorded.
        lifting: Its lifted values.
        known: Has what an earlier run, maybe with other sizes, has made of symbols.

    Raises:
        Exception: Whatever torch or sympy raise for what they cannot express; the
            sizes must then stay as they were.
    """
    if known is not None:
        known.begin()
        try:
            return _sizes_in(known, recorder, lifting)
        except Exception as error:
            # What holds for the sizes of that run need not hold for those of this one.
            known.is_refuted = True
            _FALLBACKS.info("symbolic sizes are worked out once more: %r", error)
    return _sizes_in(SymbolicEnvironment(), recorder, lifting)


def _sizes_in(
    environment: SymbolicEnvironment, recorder: OperatorRecorder, lifting: Lifting
) -> Sizes:
    replay = Replay(environment, recorder, lifting)
    try:
        replay.make_inputs()
        with _quietly(), environment.mode:
            replay.run()
        return replay.sizes()
    finally:
        # It asks for sizes: a cycle would keep the tensors of the run.
        del replay.numbers


def propagate(outline: Outline) -> SymbolicEnvironment:
    """Return an environment that knows what the operators of a run make of symbols.

    Paced work pauses between operators. What it changes of the process for an operator
    is as before at each pause.

    Raises:
        Exception: Whatever torch or sympy raise for what they cannot express.
    """
    environment = SymbolicEnvironment()
    run = FakeRun(environment, outline.lifting, outline.numbers, outline.shaping)
    for placeholder, form in outline.inputs.items():
        checkpoint()
        run.values[placeholder] = environment.input(form).fake
    for node in outline.nodes:
        checkpoint()
        with _quietly(), environment.mode:
            run.run_operator(node)
    for of, dim in outline.asked:
        checkpoint()
        size = run.values[of].shape[dim]
        if not isinstance(size, int):
            environment.env.simplify(size.node.expr)
    del run.numbers
    return environment


@contextmanager
def _quietly() -> Iterator[None]:
    with (
        torch.random.fork_rng(devices=[]),
        torch.no_grad(),
        autocast_kept(always=True),
        expected_errors(),
    ):
        yield


class FakeRun:
    """Operators of a recorded graph, run on fake tensors.

    Args:
        environment: Has the symbols and what is known of them.
        lifting: What the expressions belong to.
        expressions: Nodes that are numbers.
        shaping: Those of the expressions that may decide about shapes.

    Attributes:
        symbols: What each symbol stands for, by name.
        values: What each node of the recorded graph has given.
    """

    def __init__(
        self,
        environment: SymbolicEnvironment,
        lifting: Lifting,
        expressions: Mapping[fx.Node, Expression],
        shaping: Collection[Expression],
    ) -> None:
        self.symbols: dict[str, Expression] = {}
        self.values: dict[fx.Node, Any] = {}
        self._expressions = expressions
        self._known = environment.known
        self.numbers = SymbolicNumbers(
            environment, lifting, shaping, self._size, self.symbols
        )

    def _size(self, source: SizeSource) -> Any:
        return self.values[source.of].shape[source.dim]

    def run_operator(self, node: fx.Node) -> None:
        """Run an operator on what the nodes have given that it takes."""
        for used in node.all_input_nodes:
            self.number(used)
        name = operator_of(node)
        args = tuple(self.map(a, name, k) for k, a in enumerate(node.args))
        kwargs = {k: self.map(a, name, k) for k, a in node.kwargs.items()}
        self.values[node] = self.call(node, args, kwargs)

    def number(self, node: fx.Node) -> Any:
        """Return the value of a number, which its use may be the first to need."""
        expression = self._expressions.get(node)
        if expression is not None and node not in self.values:
            self.values[node] = self.numbers.value(expression)
        return self.values[node]

    def map(self, args: Any, name: str = "", key: Any = None) -> Any:
        """Return arguments of a node with the values of the nodes in them."""
        # Data takes no symbols: they would be fixed.
        plain = self._expressions if is_value_only(name, key) else {}

        def fetch(node: fx.Node) -> Any:
            return plain[node].value if node in plain else self.values[node]

        return fx.map_arg(args, fetch)

    def call(self, node: fx.Node, args: Any, kwargs: Any) -> Any:
        """Run the operator of a node on some arguments."""
        known = self._known
        if node.op == "call_method":
            name = str(node.target)

            def method(of: Any, *rest: Any, **named: Any) -> Any:
                return getattr(of, name)(*rest, **named)

            return known.call(name, method, args, kwargs)
        function = node.target
        assert callable(function), "a recorded graph has no modules"
        run = ON_SYMBOLS.get(name_of(function), function)
        if is_at_place(node, args):
            run = functools.partial(run_at_place, node)
        writes = function is operator.setitem
        return known.call(id(function), run, args, kwargs, writes=writes)


class Replay(FakeRun):
    """The run once more, on fake tensors, compared with what it was.

    Attributes:
        dims: Lifted dimensions of graph inputs.
    """

    def __init__(
        self,
        environment: SymbolicEnvironment,
        recorder: OperatorRecorder,
        lifting: Lifting,
    ) -> None:
        scalars = lifting.scalars
        super().__init__(environment, lifting, scalars.expressions, scalars.shaping)
        self.dims: dict[Node, frozenset[int]] = {}
        self._environment = environment
        self._recorder = recorder
        self._lifting = lifting
        self._fakes: dict[Node, Any] = {}
        self._translate = Translator(lifting.make, self.symbols)
        # An operator whose fake result lies otherwise in memory than the real one.
        self._estranged = ""

    # Running.

    def make_inputs(self) -> None:
        """Make a fake tensor for every input; outside of the mode, as they are real."""
        for item in self._recorder.inputs:
            self.values[item.placeholder] = self._input(item)

    def run(self) -> None:
        """Run the graph, then check what else Python has asked about its tensors."""
        operands = self._lifting.operands
        for node in operators_of(self._recorder.graph, self._lifting):
            self._run(node)
        for node in self._lifting.scalars.expressions:
            self.number(node)
        if self._estranged and (operands.queries or self._lifting.scalars.same):
            raise NotSymbolicError(f"strides of {self._estranged}")
        for query in operands.queries:
            args, kwargs = self.map(query.args), self.map(query.kwargs)
            self._check(query.function(*args, **kwargs), query.result)

    def _run(self, node: fx.Node) -> None:
        if is_branch(node):
            self.values[node] = branch_results(self, node)
            return
        self.run_operator(node)
        self.compare(node, [self.values[n] for n in node.all_input_nodes])

    def call(self, node: fx.Node, args: Any, kwargs: Any) -> Any:
        """Run the operator of a node, or a loop, on some arguments."""
        rolled: Rolled | None = self._lifting.operands.rolled.get(node)
        if rolled is not None and isinstance(node.target, ForOperator):
            return loop_results(self, rolled, node.target, args)
        if is_list_operator(node, args):
            return run_list_operator(node, args, kwargs)
        return super().call(node, args, kwargs)

    def _input(self, item: GraphInput) -> Any:
        node = item.node
        dims = self._lifting.operands.lifted_dims(node)
        form = form_of(item, dims, self._recorder.paths)
        if form is None:
            raise NotSymbolicError("form of an input")
        made = self._environment.input(form)
        if dims:
            self.dims[node] = dims
            self._fakes[node] = made.fake
            self._name_symbols(node, made)
        return made.fake

    def _name_symbols(self, node: Node, made: SymbolicInput) -> None:
        lifting, real = self._lifting, node.obj
        for dim, name in made.sizes.items():
            leaf = lifting.size_leaf(SizeSource(node, dim), real.shape[dim])
            self.symbols[name] = leaf
        strides = lifting.strides_leaf(node)
        for dim, name in made.strides.items():
            self.symbols[name] = lifting.make.apply(
                operator.getitem, (strides, Literal(dim)), real.stride(dim)
            )

    def _size(self, source: SizeSource) -> Any:
        if isinstance(source.of, Node):
            return self._fakes[source.of].shape[source.dim]
        return super()._size(source)

    # Comparing with the run.

    def compare(self, node: fx.Node, inputs: list[Any]) -> None:
        """Compare the result of an operator, given what it took, with the run."""
        fake, scalars = self.values[node], self._lifting.scalars
        count = scalars.lengths.get(node)
        if count is not None and len(fake) != count:
            raise NotSymbolicError(f"results of {node.target}")
        same = scalars.same.get(node)
        if same is not None and fake is not self.values[same]:
            raise NotSymbolicError(f"{node.target} returned its argument")
        real = self._recorder.tensors.tensor(node)
        if real is None:
            return
        if same is None and any(fake is taken for taken in inputs):
            raise NotSymbolicError(f"{node.target} returned something new")
        sizes = tuple(map(self._in_run, fake.shape))
        if sizes != tuple(real.shape) or fake.dtype is not real.dtype:
            raise NotSymbolicError(f"shape of {node.target}")
        mine = map(self._in_run, fake.stride())
        strides = zip(sizes, mine, real.stride(), strict=True)
        if any(size != 1 and left != right for size, left, right in strides):
            self._estranged = str(node.target)

    def _in_run(self, size: Any) -> int:
        """Return what a size is in the run.

        Raises:
            NotSymbolicError: It follows from values.
        """
        if isinstance(size, int):
            return size
        if not self._environment.is_fresh:
            # The symbols were made for a run with other sizes.
            return int(self._translate(size.node.expr).value)
        hint = size.node.hint
        if hint is None or math.isnan(hint):
            raise NotSymbolicError("a size that follows from values")
        return int(hint)

    def _check(self, found: Any, expected: Any) -> None:
        if isinstance(expected, (tuple, list)):
            if len(found) != len(expected):
                raise NotSymbolicError("a query")
            for left, right in zip(found, expected, strict=True):
                self._check(left, right)
        elif not self._environment.is_fresh and isinstance(found, torch.SymInt):
            # Torch would guard that it is what it was in the run with other sizes.
            raise NotSymbolicError("a query of a size")
        elif not bool(found == expected):
            raise NotSymbolicError("a query")

    # Results.

    def sizes(self) -> Sizes:
        """Return what was found."""
        lifting, translate = self._lifting, self._translate
        env = self._environment.env
        conditions = [
            *bounds(lifting, env, self.symbols),
            *(translate(guard.expr) for guard in env.guards),
            *(
                strides_hold(lifting, item.node, self._fakes[item.node], translate)
                for item in self._recorder.inputs
                if item.node in self.dims
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
            return translate(env.simplify(size.node.expr))

        for leaf in self._leaves():
            if resolve(leaf).value != leaf.value:
                raise NotSymbolicError(leaf.text)
        return Sizes(resolve, conditions, self.dims)

    def _leaves(self) -> Iterator[Leaf]:
        """Yield the leaves that matter: none of branches that were given up."""
        demanded = {
            *self._lifting.demanded(),
            *self._lifting.scalars.expressions.values(),
        }
        needed = set(topological(demanded))
        for leaf in self._lifting.make.leaves():
            source = leaf.source
            known = not isinstance(source, SizeSource) or isinstance(source.of, Node)
            if known or source.of in self.values:
                yield leaf
            elif leaf in needed:
                raise NotSymbolicError(f"a size of {source.of} in a branch")
