"""Owns the end of a run with lifted values: what is an input, what must hold."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass

from torch import fx

from magweld.frontend.lifting.expressions import Expression, Literal
from magweld.frontend.lifting.recorder import LiftingRecorder
from magweld.frontend.lifting.state import Condition, Lifting, Simplifier
from magweld.frontend.operators.graph import has_effects
from magweld.frontend.state.refgraph import Node

_INT64_MAX = (1 << 63) - 1


@dataclass(frozen=True)
class Settled:
    """What has become of the lifted values of a run.

    Attributes:
        scalars: Nodes of the recorded graph that stand for numbers.
        conditions: What must hold of expressions.
        simplify: Gives the final form of an expression.
        pinned: Paths that were to be lifted, but whose value decides.
    """

    scalars: Mapping[fx.Node, Expression]
    conditions: list[Condition]
    simplify: Simplifier
    pinned: tuple[str, ...]

    def final(self, item: Node | Expression) -> Node | Expression:
        """Return what a hit fetches: an object, or an expression in its final form."""
        return item if isinstance(item, Node) else self.simplify(item)


def settle(recorder: LiftingRecorder, lifting: Lifting) -> Settled:
    """Decide what the lifted values of a finished run are on a hit."""
    if has_effects(recorder.graph):
        # A call whose operators raise cannot be repeated eagerly then.
        for expression in recorder.risky:
            lifting.pin(expression)
        for expression in recorder.scalars.values():
            _bound(lifting, expression)
    simplify = lifting.simplifier()
    scalars = {node: simplify(found) for node, found in recorder.scalars.items()}
    return Settled(scalars, lifting.conditions(simplify), simplify, lifting.decisive())


def _bound(lifting: Lifting, expression: Expression) -> None:
    # Integers beyond 64 bits make operators raise.
    if type(expression.value) is not int:
        return
    make = lifting.make
    size = make.apply(abs, (expression,), abs(expression.value))
    fits = abs(expression.value) <= _INT64_MAX
    lifting.truth(make.apply(operator.le, (size, Literal(_INT64_MAX)), fits), fits)
