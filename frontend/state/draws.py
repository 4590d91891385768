"""Owns numbers that a run draws from the random generators of the process."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from magweld.frontend.state.values import float_bits


@dataclass(frozen=True)
class Generator:
    """A random generator that lives as long as the process.

    Attributes:
        read: Returns its state.
        write: Gives it a state.
    """

    read: Callable[[], Any]
    write: Callable[[Any], None]


@dataclass
class Draw:
    """One draw.

    Attributes:
        generator: Where from.
        function: Its bound method.
        args: Arguments, which nobody else holds.
        kwargs: Keyword arguments.
        value: What it gave.
        where: The user's instruction.
        decides: A comparison that is the only use of the number, and its outcome.
    """

    generator: Generator
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    value: Any
    where: Any
    decides: tuple[Callable[[Any], Any], Any] | None = None

    def decide(self, symbol: str, other: Any, reflected: bool) -> None:
        """Take note that the number is only compared, with `other`."""
        compare = COMPARISONS[symbol]

        def test(value: Any) -> Any:
            return compare(other, value) if reflected else compare(value, other)

        self.decides = (test, test(self.value))

    def repeats(self) -> bool:
        """Draw again; return whether the same comes out."""
        value = self.function(*self.args, **self.kwargs)
        if self.decides is not None:
            test, outcome = self.decides
            return test(value) is outcome
        return _same(value, self.value)


COMPARISONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _same(left: Any, right: Any) -> bool:
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return float_bits(left) == float_bits(right)
    if hasattr(left, "tobytes"):
        form = (left.dtype, left.shape) == (right.dtype, right.shape)
        return form and left.tobytes() == right.tobytes()
    return bool(left == right)


@dataclass
class Draws:
    """The draws of a run, in order.

    A later call draws again: the generators are left as the program would leave them.
    Other numbers than those of the run put them back, and the call is recorded anew.
    """

    items: list[Draw] = field(default_factory=list)
    _before: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._generators = list(dict.fromkeys(item.generator for item in self.items))

    def repeat(self) -> bool:
        """Draw all numbers again; return whether they are those of the run."""
        self._before = [generator.read() for generator in self._generators]
        for item in self.items:
            if not item.repeats():
                self.undo()
                return False
        return True

    def undo(self) -> None:
        """Put the generators back to where they were before the last repetition."""
        for generator, state in zip(self._generators, self._before, strict=True):
            generator.write(state)
