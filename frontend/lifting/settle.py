"""Owns the end of a run with lifted values: what is an input, what must hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torch import fx

from magweld.frontend.expressions.expressions import (
    Condition,
    Expression,
    Leaf,
    Literal,
    SizeSource,
    StridesSource,
)
from magweld.frontend.lifting.ahead import KnownSizes, SizesAwaitedError, outline_of
from magweld.frontend.lifting.queries import LARGEST, require_within
from magweld.frontend.lifting.state import Lifting
from magweld.frontend.operators.effects import has_effects
from magweld.frontend.operators.recorder import OperatorRecorder
from magweld.frontend.state.nodes import Node

if TYPE_CHECKING:
    from magweld.frontend.lifting.symbolic import Sizes

_SHOWN = 120


@dataclass(frozen=True)
class Settled:
    """What has become of the lifted values of a run.

    Attributes:
        scalars: Nodes of the recorded graph that stand for numbers.
        conditions: What must hold of expressions.
        simplify: Gives the final form of an expression.
        pinned: Paths that were to be lifted, but whose value decides.
        dims: Lifted dimensions of graph inputs.
        kept: Why nothing could be lifted, "" if it was.
    """

    scalars: Mapping[fx.Node, Expression] = field(default_factory=dict)
    conditions: Sequence[Condition] = ()
    simplify: Callable[[Expression], Expression] = lambda expression: expression
    pinned: tuple[str, ...] = ()
    dims: Mapping[Node, frozenset[int]] = field(default_factory=dict)
    kept: str = ""

    def final(self, item: Node | Expression) -> Node | Expression:
        """Return what a hit fetches: an object, or an expression in its final form."""
        return item if isinstance(item, Node) else self.simplify(item)


def settle(
    recorder: OperatorRecorder,
    lifting: Lifting | None,
    results: list[fx.Node],
    known: KnownSizes,
) -> Settled:
    """Decide what the lifted values of a finished run are on a hit.

    Args:
        results: Nodes whose tensors a hit needs.
        known: What there is of sizes before this run.

    Raises:
        SizesAwaitedError: The sizes are to be worked out behind the calls.
    """
    if lifting is None:
        return Settled()
    lifting.operands.results = results
    sizes, kept = (
        _sizes(recorder, lifting, known) if lifting.operands.is_symbolic else (None, "")
    )
    if has_effects(recorder.graph):
        # A call whose operators raise cannot be repeated eagerly then.
        for expression in lifting.operands.risky:
            lifting.pin(expression)
        for expression, largest in lifting.operands.bounded.items():
            _bound(lifting, expression, largest)
        for expression in lifting.scalars.expressions.values():
            if type(expression.value) is int:
                # Beyond 64 bits some operators raise, up to 64 unsigned ones not all.
                _bound(lifting, expression, LARGEST)
    dims: Mapping[Node, frozenset[int]] = {}
    simplify = lifting.simplifier(_constant)
    if sizes is not None:
        for condition in sizes.conditions:
            lifting.require(condition)
        dims, simplify = sizes.dims, lifting.simplifier(sizes.resolve)
    scalars = {
        node: simplify(found) for node, found in lifting.scalars.expressions.items()
    }
    conditions = lifting.conditions(simplify)
    pinned = lifting.decisive()
    if kept:
        pinned = tuple(lifting.wanted)
    return Settled(scalars, conditions, simplify, pinned, dims, kept)


def _sizes(
    recorder: OperatorRecorder, lifting: Lifting, known: KnownSizes
) -> tuple[Sizes | None, str]:
    if lifting.untold:
        lifting.give_up()
        return None, f"sizes are asked for inside of {lifting.untold}"
    outline = outline_of(recorder, lifting) if known.may_wait else None
    if outline is not None:
        raise SizesAwaitedError(outline)
    # Symbolic shapes take long to import.
    from magweld.frontend.lifting.symbolic import symbolic_sizes

    try:
        return symbolic_sizes(recorder, lifting, known.environment), ""
    except Exception as error:
        # Torch has no symbolic form for this graph: its numbers and sizes stay.
        lifting.give_up()
        text = str(error).partition("\n")[0][:_SHOWN]
        return None, f"{type(error).__name__}: {text}"


def _constant(leaf: Leaf) -> Expression:
    """Keep lifted numbers; sizes are guarded with the tensors."""
    if isinstance(leaf.source, (SizeSource, StridesSource)):
        return Literal(leaf.value)
    return leaf


def _bound(lifting: Lifting, expression: Expression, largest: float) -> None:
    if abs(expression.value) <= largest:
        require_within(lifting, expression, largest)
    else:
        lifting.pin(expression)
