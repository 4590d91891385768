"""Owns what must hold of lifted sizes and strides whatever a graph does with them."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from typing import Any

from torch.fx.experimental.symbolic_shapes import ShapeEnv

from magweld.frontend.expressions.expressions import Expression, Literal, pack
from magweld.frontend.lifting.state import Lifting
from magweld.frontend.lifting.symbols import Translator
from magweld.frontend.state.nodes import Node


def bounds(
    lifting: Lifting, env: ShapeEnv, symbols: Mapping[str, Expression]
) -> Iterator[Expression]:
    """Yield that symbols are within what torch assumes of them.

    Args:
        lifting: The lifted values of the run.
        env: Owns the symbols.
        symbols: What they stand for, by name.
    """
    for symbol, interval in env.var_to_range.items():
        leaf = symbols.get(symbol.name)
        if leaf is None:
            continue
        for function, bound in (
            (operator.ge, interval.lower),
            (operator.le, interval.upper),
        ):
            if bound.is_Integer:
                limit = Literal(int(bound))
                holds = function(leaf.value, limit.value)
                yield lifting.make.apply(function, (leaf, limit), holds)


def strides_hold(
    lifting: Lifting, node: Node, fake: Any, translate: Translator
) -> Expression:
    """Return that the strides of an input follow from sizes as those of a fake do."""
    strides = [
        Literal(s) if isinstance(s, int) else translate(s.node.expr)
        for s in fake.stride()
    ]
    values = tuple(stride.value for stride in strides)
    expected = lifting.make.apply(pack, strides, values)
    leaf = lifting.strides_leaf(node)
    same = tuple(leaf.value) == values
    return lifting.make.apply(operator.eq, (leaf, expected), same)
