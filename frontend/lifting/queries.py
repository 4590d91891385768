"""Owns numbers that come out of tensors: sizes that are asked for, integers held."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import torch
from torch import fx
from torch.overrides import handle_torch_function

from magweld.frontend.expressions.expressions import (
    Expression,
    Leaf,
    Literal,
    SizeSource,
)
from magweld.frontend.lifting.call_rules import CONVERSIONS
from magweld.frontend.lifting.state import Lifting
from magweld.frontend.operators.kinds import operator_of
from magweld.frontend.operators.predicates import MAX_OPERATORS
from magweld.frontend.operators.tensors import TensorMap
from magweld.frontend.state.nodes import Kind

if TYPE_CHECKING:
    from magweld.frontend.session.session import Session


# `torch.tensor(n) * 2` holds `n * 2` as long as that is an integer of 64 bits.

LARGEST: Final = (1 << 63) - 1  # the largest integer in a tensor
# Operators on integers, by name.
_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType(
    {
        "__floordiv__": operator.floordiv,
        "__mod__": operator.mod,
        "__rfloordiv__": operator.floordiv,
        "__rmod__": operator.mod,
        "__rsub__": operator.sub,
        "add": operator.add,
        "floor_divide": operator.floordiv,
        "mul": operator.mul,
        "neg": operator.neg,
        "remainder": operator.mod,
        "rsub": operator.sub,
        "sub": operator.sub,
    }
)
# Those whose first operand is the second of the function.
_REFLECTED: Final = ("__rfloordiv__", "__rmod__", "__rsub__", "rsub")


class TensorNumber(NamedTuple):
    """The number in a tensor.

    Attributes:
        expression: What it is.
        integers: What must fit into a tensor on the way there.
    """

    expression: Expression
    integers: tuple[Expression, ...]


def number_in(
    lifting: Lifting, tensors: TensorMap, read: fx.Node, needed: set[fx.Node]
) -> TensorNumber | None:
    """Return the number that a node reads from a tensor, None if it is not followed.

    Args:
        read: The node, which has the tensor for its only argument.
        needed: What the number depends on, writes to memory included.
    """
    if len(needed) > MAX_OPERATORS:
        return None
    follower = _Follower(lifting, tensors, {read})
    expression = follower.find(read.args[0])
    if expression is None or not needed <= follower.nodes:
        return None
    return TensorNumber(expression, tuple(follower.integers))


@dataclass
class _Follower:
    """Follows integers through tensors of one element.

    Attributes:
        nodes: Nodes that were followed.
        integers: What they hold.
    """

    lifting: Lifting
    tensors: TensorMap
    nodes: set[fx.Node]
    integers: list[Expression] = field(default_factory=list)

    def find(self, arg: Any) -> Expression | None:
        """Return what an argument is, None if it is no integer that is followed."""
        if not isinstance(arg, fx.Node):
            return Literal(arg) if type(arg) is int else None
        self.nodes.add(arg)
        expression = self.lifting.scalars.expressions.get(arg)
        if expression is None:
            expression = self._held(arg)
        if expression is None or type(expression.value) is not int:
            return None
        if abs(expression.value) > LARGEST:
            return None
        self.integers.append(expression)
        return expression

    def _held(self, node: fx.Node) -> Expression | None:
        """Return the integer in the tensor that a node has made."""
        tensor = self.tensors.tensor(node)
        if tensor is None or tensor.dtype is not torch.int64 or tensor.numel() != 1:
            return None
        if node.target is torch.tensor:
            plain = len(node.args) == 1 and node.kwargs.keys() <= {"dtype", "device"}
            return self.find(_only(node.args[0])) if plain else None
        name = operator_of(node)
        function = _FUNCTIONS.get(name)
        if function is None or node.kwargs:
            return None
        operands = [self.find(arg) for arg in node.args]
        known = [operand for operand in operands if operand is not None]
        if len(known) < len(operands):
            return None
        if name in _REFLECTED:
            known.reverse()
        value = function(*(operand.value for operand in known))
        return self.lifting.make.apply(function, known, value)


def _only(data: Any) -> Any:
    """Return the one element of lists in lists, or what is none."""
    while isinstance(data, (list, tuple)) and len(data) == 1:
        data = data[0]
    return data


def require_integers(lifting: Lifting, expressions: Iterable[Expression]) -> None:
    """Demand that integers fit into a tensor, where that is not known."""
    for expression in expressions:
        require_within(lifting, expression, LARGEST)


def require_within(lifting: Lifting, expression: Expression, largest: float) -> None:
    """Demand that a number is not larger than another, whatever its sign."""
    if isinstance(expression, Literal):
        return
    is_size = isinstance(expression, Leaf) and isinstance(expression.source, SizeSource)
    if is_size and largest >= LARGEST:
        return
    make = lifting.make
    size = make.apply(abs, (expression,), abs(expression.value))
    lifting.require(make.apply(operator.le, (size, Literal(largest)), True))


_DIRECT: Final = CONVERSIONS | {id(handle_torch_function)}


def size_path(path: str, dim: int) -> str:
    """Return the path of one size of a tensor."""
    return f"{path}.shape[{dim}]"


@dataclass(frozen=True)
class Query:
    """A question about tensors whose answer must be the same on every hit.

    Attributes:
        function: What was called.
        args: Its arguments as the graph holds them.
        kwargs: Its keyword arguments as the graph holds them.
        result: The answer.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any


class Queries:
    """Follows the answer to a question about the form of a tensor."""

    def __init__(self, tensors: TensorMap, lifting: Lifting, session: Session) -> None:
        self._tensors = tensors
        self._lifting = lifting
        self._observer = session.current

    def note(self, func: Any, name: str, args: Any, kwargs: Any, result: Any) -> None:
        """Take note of a question and its answer."""
        if type(result) is torch.Size:
            for dim, _ in enumerate(result):
                size = self.size(args[0], dim)
                if not isinstance(size, Literal):
                    self._lifting.place(result, Kind.INDEX, dim, size)
                    if not self._is_direct():
                        self._lifting.pin(size)
            return
        answer = self._number(name, args, kwargs)
        if answer is None:
            convert = self._tensors.convert
            fx_kwargs = {key: convert(value) for key, value in kwargs.items()}
            fx_args = tuple(map(convert, args))
            self._lifting.operands.queries.append(
                Query(func, fx_args, fx_kwargs, result)
            )
        elif not isinstance(answer, Literal):
            self.answer(answer)

    def answer(self, answer: Expression) -> None:
        """Take note of the number that the current instruction has got."""
        shadow = None if self._observer is None else self._observer.shadow
        step = None if shadow is None else shadow.step
        if step is not None and step.answer is None and self._is_direct():
            step.answer = answer
        else:
            # Code that is not followed has asked.
            self._lifting.pin(answer)

    def _number(self, name: str, args: Any, kwargs: Any) -> Expression | None:
        if kwargs:
            return None
        tensor = args[0]
        if name == "size" and len(args) == 2 and type(args[1]) is int:
            return self.size(tensor, args[1] % tensor.dim())
        if name == "__len__":
            return self.size(tensor, 0)
        if name in ("numel", "nelement"):
            count: Expression = Literal(1)
            for dim in range(tensor.dim()):
                count = self._product(count, self.size(tensor, dim))
            return count
        return None

    def _product(self, left: Expression, right: Expression) -> Expression:
        value = left.value * right.value
        return self._lifting.make.apply(operator.mul, (left, right), value)

    def size(self, tensor: torch.Tensor, dim: int) -> Expression:
        """Return a size of a tensor, a literal if it is the same on every hit."""
        value = int(tensor.shape[dim])
        item = self._tensors.inputs.get(id(tensor))
        if item is None:
            node = self._tensors.node(tensor)
            return self._lifting.size_leaf(SizeSource(node, dim), value)
        if dim in self._lifting.operands.lifted_dims(item.node):
            return self._lifting.size_leaf(SizeSource(item.node, dim), value)
        return Literal(value)

    def _is_direct(self) -> bool:
        observer = self._observer
        if observer is None or observer.shadow is None:
            return False
        step = observer.shadow.step
        link = None if step is None else step.link
        if link is not None and link.callee in _DIRECT:
            return True
        return bool(observer.awaits_operator)
