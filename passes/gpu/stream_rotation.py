"""Owns streams that compute the last product of a block beside the next block.

    for each block:
        scores = q @ keys; weights = f(scores); sums = sums * g + weights @ v

becomes, where products are under way while threads do something else,

    scores = q @ first keys; weights = f(scores)
    for each further block:
        wait for the sums; scaled = sums * g
        begin q @ keys, then weights @ v of the block before, added to scaled
        wait for the scores; weights = f(scores)
    wait for the sums; sums = sums * g + weights @ last v

Sums are waited for in another iteration than that which begins them: where both are in
one, the compiler waits before most of the weights are made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from magweld.bindings import ir, linalg, scf, tensor
from magweld.passes.gpu.linalg_structure import (
    inputs_of,
    is_structured,
    loop_nest_of,
    outputs_of,
)
from magweld.passes.gpu.product_loops import ProductLoops
from magweld.passes.gpu.streamed_operands import StreamLoop, products_in


@dataclass(frozen=True)
class Rotation:
    """The parts of the loop over blocks.

    Attributes:
        stream: The loop.
        first: Its first product.
        last: The other one, whose result goes to the next iteration alone.
        number: Which of the carried tensors that is.
        early: What is made for the last product without sums, in its order.
        late: What makes of the sums what the last product adds to, and its left factor
            of what that is a rounding of.
        kept: Tensors that go from the former to the latter.
    """

    stream: StreamLoop
    first: Any
    last: Any
    number: int
    early: tuple[Any, ...]
    late: tuple[Any, ...]
    kept: tuple[Any, ...]

    @staticmethod
    def of(stream: StreamLoop) -> Rotation | None:
        """Return the parts of a loop; None where they are not as described."""
        loop = stream.op
        products = list(products_in(loop.body))
        *body, end = loop.body.operations
        if len(products) != 2:
            return None
        first, last = products
        (result,) = last.results
        given = list(end.operands)
        if result not in given or len(list(result.uses)) != 1:
            return None
        number = given.index(result)
        sums = loop.inner_iter_args[number]
        late = _that_need(sums, body, last)
        late = [op for op in body if op in late or _is_rounding_for(op, last)]
        early = [op for op in body if op not in late and op != last]
        made = {sums, *(value for op in late for value in op.results)}
        needed = {value for op in (*early, end) for value in op.operands}
        if first in late or made & needed or not made >= set(_factors(last)):
            return None
        kept = _kept(loop, late, made)
        if kept is None:
            return None
        return Rotation(stream, first, last, number, tuple(early), tuple(late), kept)

    @property
    def others(self) -> Iterator[tuple[int, Any]]:
        """The number of each other tensor that is carried, and what it becomes."""
        *_, end = self.stream.op.body.operations
        for number, value in enumerate(end.operands):
            if number != self.number:
                yield number, value


def _that_need(sums: ir.Value, body: Sequence[Any], last: Any) -> list[Any]:
    """Return the operations that depend on sums, without the product that adds."""
    known, found = {sums}, []
    for op in body:
        if op != last and known & set(op.operands):
            known |= set(op.results)
            found.append(op)
    return found


def _factors(product: Any) -> tuple[Any, Any]:
    """Return the left factor of a product, and what it adds to."""
    left = ProductLoops.of(product, loop_nest_of(product)).left
    return inputs_of(product)[left], outputs_of(product)[0]


def _is_rounding_for(op: Any, product: Any) -> bool:
    """Tell whether an operation makes the left factor of a product of one tile."""
    left, _ = _factors(product)
    if not is_structured(op) or list(op.results) != [left]:
        return False
    return len(inputs_of(op)) == 1 and len(list(left.uses)) == 1


def _kept(
    loop: scf.ForOp, late: Sequence[Any], made: set[Any]
) -> tuple[Any, ...] | None:
    """Return what late operations read of early ones; None where that is no tile."""
    found: dict[Any, None] = {}
    for op in late:
        if not is_structured(op) or _depends_on_place(op, loop):
            return None
        for value in op.operands:
            if value in made or not _is_in(value, loop):
                continue
            if isinstance(value, ir.BlockArgument):
                return None
            maker = value.owner.opview
            if is_structured(maker):
                found[value] = None
            elif not isinstance(maker, tensor.EmptyOp):
                return None
    return tuple(found)


def _is_in(value: Any, loop: scf.ForOp) -> bool:
    """Tell whether a value is one of each iteration."""
    if isinstance(value, ir.BlockArgument):
        return bool(value.owner == loop.body)
    return bool(value.owner.parent == loop.operation)


def _depends_on_place(op: Any, loop: scf.ForOp) -> bool:
    """Tell whether the body of an operation reads more than elements of its tiles."""
    body = op.regions[0].blocks[0].operations
    return any(
        isinstance(nested, linalg.IndexOp)
        or any(_is_in(value, loop) for value in nested.operands)
        for nested in body
    )
