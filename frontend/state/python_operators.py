"""Owns the operators of Python: their symbols, functions and special methods."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from types import BuiltinFunctionType
from typing import Any, Final

# Symbol -> name, of which special methods and the functions of `operator` have theirs.
BINARY: Final = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "truediv",
    "//": "floordiv",
    "%": "mod",
    "**": "pow",
    "@": "matmul",
    "<<": "lshift",
    ">>": "rshift",
    "&": "and",
    "|": "or",
    "^": "xor",
}
COMPARISONS: Final = {
    "==": "eq",
    "!=": "ne",
    "<": "lt",
    "<=": "le",
    ">": "gt",
    ">=": "ge",
}
UNARY: Final = {"-": "neg", "+": "pos", "~": "invert"}
# What the right side of a comparison is asked when the left one does not know.
_REFLECTED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}

# Functions whose result follows from the numbers that they get, by id.
PURE: Final[dict[int, Callable[..., Any]]] = {
    id(function): function
    for function in (
        *(int, float, bool, abs, round, min, max, pow, sum, math.prod),
        *(one for one in vars(math).values() if type(one) is BuiltinFunctionType),
        *(
            vars(operator)[name]
            for name in (
                "add sub mul truediv floordiv mod pow lshift rshift and_ or_ xor neg"
                " pos invert not_ truth eq ne lt le gt ge abs index"
            ).split()
        ),
    )
}


def functions(
    names: Mapping[str, str], prefix: str = ""
) -> dict[str, Callable[..., Any]]:
    """Return the functions of operators by symbol.

    Args:
        names: One of the tables above.
        prefix: "i" for the forms in place.
    """
    return {
        symbol: getattr(operator, f"__{prefix}{name}__")
        for symbol, name in names.items()
    }


def methods_of(comparison: str) -> tuple[str, str]:
    """Return the special methods that the left and the right side have for it."""
    return (
        f"__{COMPARISONS[comparison]}__",
        f"__{COMPARISONS[_REFLECTED[comparison]]}__",
    )
