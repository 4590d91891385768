"""Owns the calls that run an if or a while, as attributes of what they call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from magweld.bindings import ir

IF = "magweld.if"
WHILE = "magweld.while"


@dataclass(frozen=True)
class IfCall:
    """A call that runs one of two functions.

    Operand 0 of the call is a truth value; the others are the arguments of both
    functions, whose results are those of the call.

    Attributes:
        on_true: Name of the function that runs when the truth value is true.
        on_false: Name of the other one.
    """

    on_true: str
    on_false: str

    @property
    def functions(self) -> tuple[str, ...]:
        """The names of the functions."""
        return (self.on_true, self.on_false)

    def attribute(self) -> Any:
        """Return the call as an attribute."""
        return ir.DictAttr.get(
            {
                "on_false": ir.FlatSymbolRefAttr.get(self.on_false),
                "on_true": ir.FlatSymbolRefAttr.get(self.on_true),
            }
        )


@dataclass(frozen=True)
class WhileCall:
    """A call that runs a function as long as a truth value is true.

    Operand 0 of the call is the first truth value; the others are the arguments of the
    function, those that are carried first. The results of the function are what is
    carried into the next iteration, then the next truth value; those of the call are
    what is carried in the end.

    Attributes:
        function: Name of the function, an iteration.
    """

    function: str

    @property
    def functions(self) -> tuple[str, ...]:
        """The name of the function."""
        return (self.function,)

    def attribute(self) -> Any:
        """Return the call as an attribute."""
        return ir.DictAttr.get({"function": ir.FlatSymbolRefAttr.get(self.function)})


ControlCall = IfCall | WhileCall


def control_of(callee: Any) -> ControlCall | None:
    """Return the if or while that a declaration stands for, None if it is neither."""
    if IF in callee.attributes:
        entries = ir.DictAttr(callee.attributes[IF])
        return IfCall(_symbol(entries["on_true"]), _symbol(entries["on_false"]))
    if WHILE in callee.attributes:
        entries = ir.DictAttr(callee.attributes[WHILE])
        return WhileCall(_symbol(entries["function"]))
    return None


def _symbol(attribute: Any) -> str:
    return str(ir.FlatSymbolRefAttr(attribute).value)
