"""Owns what Python learns of the sizes of tensors in a run with lifted dimensions."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import torch
from torch.overrides import handle_torch_function

from magweld.frontend.expressions.expressions import Expression, Literal, SizeSource
from magweld.frontend.lifting.call_rules import CONVERSIONS
from magweld.frontend.lifting.state import Lifting
from magweld.frontend.operators.tensors import TensorMap
from magweld.frontend.state.nodes import Kind

if TYPE_CHECKING:
    from magweld.frontend.session.session import Session


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
