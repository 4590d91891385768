"""Owns what expressions are made of, and what may be demanded of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from magweld.frontend.expressions.expressions import Expression
from magweld.frontend.state.nodes import Kind, Node, Where

Slot = tuple[int, Kind, Any]


class ArgumentSource(NamedTuple):
    """An argument of the call: "args" or "kwargs", and its key."""

    holder: str
    key: Any


class EdgeSource(NamedTuple):
    """A guarded read of the RefGraph, by its slot."""

    slot: Slot


class SizeSource(NamedTuple):
    """A size of a tensor: of a graph input, or of the tensor of a graph node."""

    of: Any
    dim: int


class ValueSource(NamedTuple):
    """A number that follows from graph inputs, as a predicate would guard it.

    Attributes:
        compute: Computes it from the tensors; each read of a value has its own.
        nodes: The inputs.
    """

    compute: Callable[..., Any]
    nodes: tuple[Node, ...]


class InductionSource(NamedTuple):
    """The number that an iteration of a followed loop began with."""

    loop: int
    iteration: int


class StridesSource(NamedTuple):
    """The strides of a graph input."""

    of: Node


@dataclass(frozen=True)
class Condition:
    """What must hold of an expression on every hit.

    Attributes:
        expression: The expression.
        expected: Its value, compared by type and bits; a class is compared by identity.
        where: The user's instruction that relied on it.
    """

    expression: Expression
    expected: Any
    where: Where | None
